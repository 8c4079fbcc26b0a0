"""Locks: one process at a time, whatever becomes of the others."""

import errno
import fcntl
import shutil
import subprocess
import sys
import threading

import pytest

from lab2048 import home

HOLD = """
import sys
from pathlib import Path
from lab2048.home import locked
with locked(Path(sys.argv[1]), "it"):
    print("mine", flush=True)
    sys.stdin.read()
"""

COUNT = """
import sys
from pathlib import Path
from lab2048.home import locked
counter = Path(sys.argv[1])
for _ in range(50):
    with locked(counter.with_name("lock"), "it", wait=True):
        counter.write_text(str(int(counter.read_text()) + 1))
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that has the lock `lock` in a folder."""
    run = [sys.executable, "-c", HOLD, str(tmp_path / "folder" / "lock")]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "mine\n"
        yield process
        process.kill()


def test_who_has_a_lock_is_named(tmp_path, holder):
    path = tmp_path / "folder" / "lock"
    text = f"^it is in use by process {holder.pid}; try again when it has finished$"
    with pytest.raises(ValueError, match=text), home.locked(path, "it"):
        raise AssertionError("two have it")
    holder.communicate("")
    assert holder.returncode == 0 and not path.exists()
    with home.locked(path, "it"):
        assert path.exists()


def test_a_lock_goes_with_its_process(tmp_path, holder):
    path = tmp_path / "folder" / "lock"
    holder.kill()
    holder.wait()
    assert path.exists()
    with home.locked(path, "it"):
        pass
    assert not path.exists()


def test_who_waits_says_so_once_and_survives_the_loss_of_the_folder(tmp_path, holder, monkeypatch):
    """As when another process removes a table that this one is to make."""
    monkeypatch.setattr(home, "QUIET", 0.1)
    path, said, told = tmp_path / "folder" / "lock", [], threading.Event()

    def tell(text):
        said.append(text)
        told.set()

    def wait():
        with home.locked(path, "it", wait=True, tell=tell):
            said.append(path.exists())

    work = threading.Thread(target=wait)
    work.start()
    assert told.wait(60)
    shutil.rmtree(path.parent)
    work.join(60)
    busy = f"it is in use by process {holder.pid}; waiting for it to finish"
    assert said == [busy, True]


def test_only_one_at_a_time(tmp_path):
    """Though everybody removes the file: who was about to lock it must notice."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    run = [sys.executable, "-c", COUNT, str(counter)]
    for each in [subprocess.Popen(run) for _ in range(4)]:
        assert each.wait(60) == 0
    assert counter.read_text() == "200"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS])
def test_a_disk_without_locks_is_named(tmp_path, monkeypatch, number):
    """No file may stand for a lock there: it would be left when its process is killed."""

    def no_locks(handle, how):
        raise OSError(number, "no locks here")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    path = tmp_path / "lock"
    with pytest.raises(OSError, match="no locks here") as caught, home.locked(path, "it"):
        raise AssertionError("it is locked")
    assert caught.value.filename == str(path)
