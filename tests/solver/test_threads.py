"""Worker threads: order, errors, and the same bytes whatever their number."""

from __future__ import annotations

import threading
import time

import pytest

from lab2048.solver import threads as threads_module
from lab2048.solver.threads import WorkerThreads
from tests.solver.solving import needs_jit, solved


@needs_jit
@pytest.mark.slow
def test_any_number_of_threads_makes_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(threads_module, "ENOUGH", 16)  # so that small layers have parts, too
    for threads in (1, 2, 3, 7):
        _, table = solved(tmp_path / f"{threads}", "3x2", threads=threads)
        table.close()
    files = {path.name for path in (tmp_path / "1" / "table").iterdir()} - {"run.json"}
    assert files == {"keys.bin", "blocks.bin", "values.bin", "manifest.json"}
    for name in files:
        contents = {(tmp_path / f"{n}" / "table" / name).read_bytes() for n in (1, 2, 3, 7)}
        assert len(contents) == 1, name


def test_worker_threads_do_everything_in_order_and_pass_errors_on():
    with WorkerThreads(3) as workers:
        for _ in range(200):
            late = [workers.aside(lambda n=n: n) for n in range(3)]
            assert workers.run([lambda n=n: n * n for n in range(5)]) == [0, 1, 4, 9, 16]
            assert [future.result() for future in late] == [0, 1, 2]
        alone = workers.aside(lambda: "asked for")
        assert alone.result() == "asked for"
        with pytest.raises(ZeroDivisionError):
            workers.run([lambda: 1 // 0, lambda: 2])
        assert workers.run([lambda: 3]) == [3]
        with pytest.raises(ZeroDivisionError):
            workers.aside(lambda: 1 // 0).result()


def test_worker_threads_do_not_wait_for_what_was_put_aside():
    begun, go_on = threading.Event(), threading.Event()

    def waits():
        begun.set()
        return go_on.wait(20)

    with WorkerThreads(2) as workers:
        late = workers.aside(waits)
        assert begun.wait(20)  # the helper has taken it
        assert workers.run([lambda: 1, lambda: 2]) == [1, 2]
        assert not late.done()
        go_on.set()
        assert late.result()


def test_worker_threads_that_are_stopped_are_at_rest_and_can_be_used_again():
    begun, over = threading.Event(), threading.Event()

    def takes_a_while():
        begun.set()
        time.sleep(0.05)
        over.set()

    with WorkerThreads(2) as workers:
        workers.aside(takes_a_while)
        assert begun.wait(20)
        never = workers.aside(lambda: 1 // 0)
        workers.stop()
        assert over.is_set()
        assert never.cancelled()
        assert workers.run([lambda: 1, lambda: 2]) == [1, 2]
