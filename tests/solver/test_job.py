"""Making tables in spite of everything: kills, Ctrl-C, full disks, damage, company."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from lab2048 import home
from lab2048.solver import job, table_writer, value_writer
from lab2048.solver import threads as threads_module
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.table import Table
from lab2048.solver.table_files import TableError, read_json, write_json
from lab2048.solver.tables import open_table, remove_table
from tests.conftest import WITH_JIT, flip, run_command, same_bytes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WITH_JIT, reason="takes too long without the JIT"),
]

# -- making a table, in spite of everything ----------------------------------------------------

STEPS = """
import os, random, signal, sys
from lab2048.solver import threads as threads_module
from lab2048.solver import table_writer
from lab2048.solver.problem import Problem
from lab2048.solver.job import make_table
table_writer.COMMIT_SECONDS = float(sys.argv[4])
steps, fatal = 0, int(sys.argv[3])
def progress(step):
    global steps
    steps += 1
    if steps == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
make_table(Problem.of("3x2"), sys.argv[1], values=sys.argv[2], threads=2, progress=progress)
print("done")
"""


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_killed_at_any_layer_it_goes_on_and_ends_with_the_same_bytes(tmp_path, kind):
    whole = tmp_path / "whole"
    make_table(Problem.of("3x2"), whole, values=kind, threads=1)
    rng = random.Random(kind)
    for attempt in range(3):
        folder, kills = tmp_path / f"{attempt}", 0
        while True:
            run = [sys.executable, "-c", STEPS, str(folder), kind, str(rng.randint(1, 140)), "0"]
            done = subprocess.run(run, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                break
            assert done.returncode == -signal.SIGKILL, done.stderr
            assert not (folder / "manifest.json").exists()
            with pytest.raises(TableError):
                open_table(folder)
            kills += 1
        assert kills > 0
        assert same_bytes(whole, folder)
        assert json.loads((folder / "run.json").read_text())["runs"] > 1


def test_a_lost_scratch_file_is_made_up_for(tmp_path, made):
    folder = tmp_path / "t"
    run = [sys.executable, "-c", STEPS, str(folder), "float64", "200", "0"]
    subprocess.run(run, capture_output=True, check=False)
    assert (folder / "progress.json").exists()
    (folder / "afterstates.tmp").write_bytes(b"rubbish")
    make_table(Problem.of("3x2"), folder)
    assert same_bytes(made, folder)


def test_a_damaged_record_of_the_work_is_said(tmp_path):
    folder = tmp_path / "t"
    run = [sys.executable, "-c", STEPS, str(folder), "float64", "200", "0"]
    subprocess.run(run, capture_output=True, check=False)
    flip(folder / "progress.json", 200)
    with pytest.raises(TableError, match=r"progress.json is damaged"):
        make_table(Problem.of("3x2"), folder)


def test_stopped_in_the_middle_nothing_is_lost(tmp_path, made, monkeypatch):
    """Ctrl-C commits what was done."""
    monkeypatch.setattr(table_writer, "COMMIT_SECONDS", 1000.0)
    for stage in ("enumerate", "values"):

        def progress(step, stage=stage):
            if step.stage == stage and step.age == 100:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            make_table(Problem.of("3x2"), tmp_path / "t", progress=progress)
        record = json.loads((tmp_path / "t" / "progress.json").read_text())
        assert len(record["states"]) > 40 and (stage == "enumerate" or record["valued"] > 70)
    make_table(Problem.of("3x2"), tmp_path / "t")
    assert same_bytes(made, tmp_path / "t")


def test_a_full_disk_is_said_and_survived(tmp_path, made):
    """No file may grow past some size, as on a disk without room."""
    folder = tmp_path / "t"
    for blocks in (8, 40, 100):
        limited = f'ulimit -f {blocks}; exec "$0" "$@"'
        run = [
            "bash",
            "-c",
            limited,
            sys.executable,
            "-m",
            "lab2048",
            "solve",
            "3x2",
            "--out",
            str(folder),
        ]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        (line,) = [text for text in done.stderr.splitlines() if text.startswith("lab2048: /")]
        assert "File too large; make room and run the command again: it goes on" in line
    make_table(Problem.of("3x2"), folder)
    assert same_bytes(made, folder)


def test_two_at_once_do_not_get_in_each_others_way(tmp_path, made, capsys, monkeypatch):
    monkeypatch.setattr(home, "QUIET", 0.05)
    folder = tmp_path / "t"
    slow = STEPS.replace(
        "steps += 1", "steps += 1; print('step', flush=True); sys.stdin.readline()"
    )
    run = [sys.executable, "-c", slow, str(folder), "float64", "0", "3"]
    first = subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert first.stdout.readline() == "step\n"
    second = threading.Thread(target=make_table, args=(Problem.of("3x2"), folder))
    second.start()
    said = ""
    while "waiting" not in said and second.is_alive():
        time.sleep(0.01)
        said += capsys.readouterr().err
    busy = f"the table in {folder} is in use by process {first.pid}"
    assert said == f"lab2048: {busy}; waiting for it to finish\n"
    first.communicate("\n" * 1000)
    second.join()
    assert first.returncode == 0
    assert same_bytes(made, folder)


def test_who_waits_goes_on_when_the_other_has_failed(tmp_path, made, capsys, monkeypatch):
    monkeypatch.setattr(home, "QUIET", 0.05)
    folder = tmp_path / "t"
    with home.locked(folder / "lock", "x"):
        second = threading.Thread(target=make_table, args=(Problem.of("3x2"), folder))
        second.start()
        while "waiting" not in capsys.readouterr().err and second.is_alive():
            time.sleep(0.01)
        assert second.is_alive()
    second.join()
    assert same_bytes(made, folder)


def test_a_folder_of_something_else_is_left_alone(tmp_path, made):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("dear")
    with pytest.raises(TableError, match=r"holds other files, such as thesis.tex"):
        make_table(Problem.of("2x2"), tmp_path / "mine")
    with pytest.raises(TableError, match="its board is 3x2, not 2x2"):
        make_table(Problem.of("2x2"), made)
    with pytest.raises(TableError, match="its values is float64, not float32"):
        make_table(Problem.of("3x2"), made, values="float32")
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="is a file; a table is a folder"):
        make_table(Problem.of("2x2"), tmp_path / "file")


def test_a_finished_table_is_not_made_again(made):
    before = {path: path.stat().st_mtime_ns for path in made.iterdir()}
    found = make_table(Problem.of("3x2"), made)
    assert found["states"] == 21_752 and found["table"] == str(made)
    assert {path: path.stat().st_mtime_ns for path in made.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads are a whole number"),
        ({"threads": 1.5}, "threads are a whole number"),
        ({"values": "float16"}, "values are stored as float64 or float32"),
        ({"keep": "all"}, "keep is table or summary"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        make_table(Problem.of("2x2"), tmp_path / "t", **options)
    assert not (tmp_path / "t").exists()


def test_opening_takes_no_time(made):
    times = []
    for _ in range(20):
        began = time.perf_counter()
        Table(made).close()
        times.append(time.perf_counter() - began)
    assert min(times) < 0.05


def test_unfinished_tables_are_listed(warm_home):
    folder = warm_home / "tables" / "3x2-score"
    run = [sys.executable, "-c", STEPS, str(folder), "float64", "100", "0"]
    subprocess.run(run, capture_output=True, check=False)
    assert "unfinished" in run_command("table", "list").stdout
    assert "is unfinished" in run_command("table", "info", "3x2", code=2).stderr


# -- more that went wrong once -------------------------------------------------------------------


def stop_in_values(step):
    if step.stage == "values" and step.age == 100:
        raise KeyboardInterrupt


def test_a_summary_that_was_cut_off_can_become_a_table(tmp_path, made):
    with pytest.raises(KeyboardInterrupt):
        make_table(Problem.of("3x2"), tmp_path / "t", keep="summary", progress=stop_in_values)
    make_table(Problem.of("3x2"), tmp_path / "t")
    assert same_bytes(made, tmp_path / "t")


def test_a_finished_summary_stays_until_the_table_takes_its_place(tmp_path, made, monkeypatch):
    """It took hours on a large board, and the table may take days or not fit on the disk."""
    folder = tmp_path / "t"
    found = make_table("3x2", folder, keep="summary")
    summary = (folder / "manifest.json").read_bytes()

    def full(path, *_):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    run = [sys.executable, "-c", STEPS, str(folder), "float64", "100", "0"]
    assert subprocess.run(run, capture_output=True, check=False).returncode == -signal.SIGKILL
    assert (folder / "manifest.json").read_bytes() == summary
    with pytest.raises(KeyboardInterrupt):
        make_table("3x2", folder, progress=stop_in_values)
    assert (folder / "manifest.json").read_bytes() == summary
    assert make_table("3x2", folder, keep="summary")["states"] == found["states"]
    assert (folder / "progress.json").exists()  # what was begun is left to go on with
    monkeypatch.setattr("lab2048.solver.job.write_json", full)
    with pytest.raises(OSError, match="No space left"):
        make_table("3x2", folder)
    monkeypatch.undo()
    assert (folder / "manifest.json").read_bytes() == summary
    make_table("3x2", folder)
    assert same_bytes(made, folder)


def test_damage_to_a_table_begun_beside_a_summary_is_told(tmp_path):
    folder = tmp_path / "t"
    make_table("3x2", folder, keep="summary")
    with pytest.raises(KeyboardInterrupt):
        make_table("3x2", folder, progress=stop_in_values)
    (folder / "progress.json").write_text("damaged")
    with pytest.raises(TableError, match=r"progress\.json is damaged .* left as it is"):
        make_table("3x2", folder)
    assert make_table("3x2", folder, replace=True)["keep"] == "table"


@pytest.mark.parametrize("name", ["values.bin", "carry"])
@pytest.mark.parametrize("damage", ["missing", "short", "flipped"])
def test_damage_to_values_that_count_is_made_up_for(tmp_path, name, damage):
    """Rounded values are carried along in files of their own."""
    folder, kind = tmp_path / "t", "float32" if name == "carry" else "float64"
    make_table(Problem.of("3x2"), tmp_path / "whole", values=kind)
    with pytest.raises(KeyboardInterrupt):
        make_table(Problem.of("3x2"), folder, values=kind, progress=stop_in_values)
    path = max(folder.glob(f"{name}*"))
    if damage == "missing":
        path.unlink()
    elif damage == "short":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        flip(path, path.stat().st_size - 3)
    make_table(Problem.of("3x2"), folder, values=kind)
    assert same_bytes(tmp_path / "whole", folder)


@pytest.mark.parametrize("name", ["keys.bin", "blocks.bin"])
def test_damage_to_keys_that_count_is_said(tmp_path, made, name):
    folder = tmp_path / "t"
    with pytest.raises(KeyboardInterrupt):
        make_table(Problem.of("3x2"), folder, progress=stop_in_values)
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-9])
    with pytest.raises(TableError, match=f"{name} ends too early"):
        make_table(Problem.of("3x2"), folder)
    (folder / name).write_bytes(whole + b"what does not count")
    make_table(Problem.of("3x2"), folder)
    assert same_bytes(made, folder)


@pytest.mark.parametrize("stage", ["enumerate", "values"])
def test_damaged_keys_are_not_taken_up(tmp_path, stage):
    """Neither where they are used again nor where nothing is left to do with them."""

    def stop(step):
        if step.stage == stage and step.age == 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_table(Problem.of("3x2"), tmp_path / "t", progress=stop)
    keys = (tmp_path / "t" / "keys.bin").read_bytes()
    for place in (20, len(keys) // 2, len(keys) - 50):
        flip(tmp_path / "t" / "keys.bin", place)
        for _ in range(2):
            with pytest.raises(TableError, match=r"block 0 of age .*solve it again"):
                make_table(Problem.of("3x2"), tmp_path / "t")
        (tmp_path / "t" / "keys.bin").write_bytes(keys)
    make_table(Problem.of("3x2"), tmp_path / "t")


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("name", ["keys.bin", "blocks.bin", "values.bin"])
def test_what_changes_while_a_table_is_made_is_noticed_at_the_end(tmp_path, name, kind):
    """What has been written, and is not read again."""
    folder = tmp_path / "t"

    def damage(step):
        if step.stage == "values" and step.age == 20:
            flip(folder / name, (folder / name).stat().st_size - 20)

    with pytest.raises(TableError, match=f"{name}.* damaged: .*checksum is wrong"):
        make_table(Problem.of("3x2"), folder, values=kind, progress=damage)
    assert not (folder / "manifest.json").exists()
    if name == "values.bin":  # they are found again
        make_table(Problem.of("3x2"), folder, values=kind)
        make_table(Problem.of("3x2"), tmp_path / "whole", values=kind)
        assert same_bytes(tmp_path / "whole", folder)


def test_any_field_of_the_record_of_the_work_may_be_odd(tmp_path, made, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: None)  # there is much to write
    with pytest.raises(KeyboardInterrupt):
        make_table(Problem.of("3x2"), tmp_path / "t", progress=stop_in_values)
    sound = read_json(tmp_path / "t" / "progress.json")
    for name in sound:
        for value in (None, -1, 10**30, "", [], {}, [[]], True):
            write_json(tmp_path / "t" / "progress.json", {**sound, name: value})
            fine = ("enumerated", True), ("gamma", True), ("starts", {})
            if name == "carry" or (name, value) in fine:  # those of older versions too
                continue
            with pytest.raises(TableError):
                make_table(Problem.of("3x2"), tmp_path / "t")
    write_json(tmp_path / "t" / "progress.json", {**sound, "carry": 0})  # of an older version
    make_table(Problem.of("3x2"), tmp_path / "t")
    assert same_bytes(made, tmp_path / "t")


def test_a_write_that_fails_once_costs_nothing(tmp_path, made, monkeypatch):
    """A disk that was full for a moment, in the middle of the values."""
    write, calls = value_writer._write_at, []

    def fail_once(*arguments):
        calls.append(1)
        if len(calls) == 30:
            raise OSError(28, "No space left on device")
        write(*arguments)

    monkeypatch.setattr(value_writer, "_write_at", fail_once)
    with pytest.raises(OSError, match="make room and run the command again"):
        make_table(Problem.of("3x2"), tmp_path / "t")
    make_table(Problem.of("3x2"), tmp_path / "t")
    assert same_bytes(made, tmp_path / "t")


def test_ctrl_c_at_any_moment_is_safe(tmp_path, made, monkeypatch):
    """The signal of a timer, which comes when it likes."""
    monkeypatch.setattr(table_writer, "COMMIT_SECONDS", 0.01)
    monkeypatch.setattr(threads_module, "ENOUGH", 64)
    handler = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    rng, stopped, folder = random.Random(7), 0, tmp_path / "t"
    try:
        while stopped < 25:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.002, 0.15))
            try:
                make_table(Problem.of("3x2"), folder, threads=2)
            except KeyboardInterrupt:
                stopped += 1
                continue
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert same_bytes(made, folder)
            shutil.rmtree(folder)
    finally:
        signal.signal(signal.SIGALRM, handler)
    make_table(Problem.of("3x2"), folder)
    assert same_bytes(made, folder)


def test_files_of_others_are_never_touched(tmp_path):
    for name in ("movie.part", "notes.tmp"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("mine")
        with pytest.raises(TableError, match=f"holds other files, such as {name}"):
            make_table(Problem.of("2x2"), folder)
        assert (folder / name).read_text() == "mine"


def test_a_table_in_the_making_is_not_removed(tmp_path):
    def progress(step):
        with pytest.raises(TableError, match=r"in use by process|there is no table"):
            remove_table(tmp_path / "t")

    make_table(Problem.of("2x2"), tmp_path / "t", progress=progress)
    assert remove_table(tmp_path / "t") > 0 and not (tmp_path / "t").exists()


def test_chances_that_are_next_to_nothing(tmp_path):
    found = make_table(Problem.of("2x2", p4=1e-300), tmp_path / "t")
    assert found["value"]["start"] == pytest.approx(68) and found["states"] == 110
    assert found["value"]["4+4"] is not None


def test_ctrl_c_after_the_last_layer_stops_what_comes_next(tmp_path, monkeypatch):
    tidy = job._tidy

    def interrupted(path, manifest):
        os.kill(os.getpid(), signal.SIGINT)
        tidy(path, manifest)

    monkeypatch.setattr(job, "_tidy", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make_table(Problem.of("2x2"), tmp_path / "t")
    with open_table(tmp_path / "t") as table:
        assert table.states == 110
