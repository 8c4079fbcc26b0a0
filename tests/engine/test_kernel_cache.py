"""The cache of compiled kernels: found again, never trusted blindly, and no obstacle."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zlib
from pathlib import Path

import pytest

from lab2048 import home
from lab2048.engine import jit
from tests.conftest import WITH_JIT
from tests.interpreter import python

pytestmark = pytest.mark.skipif(not WITH_JIT, reason="nothing is compiled")


PLAY = (
    "from lab2048 import Rules, random_games; import numba\n"
    "print(random_games(Rules(2, 2), 10, seed=1).score.tolist(), repr(numba.config.CACHE_DIR))\n"
)


LOOK = (
    "from lab2048 import Board; from lab2048.engine import packed\n"
    'print(packed.smallest(packed.U(Board.parse("4 2 / 2 .").packed), 2, 2))\n'
)
"""It needs fewer kernels, which take less than half the time to compile."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A data folder where `PLAY` has compiled its kernels, and what it printed."""
    folder = tmp_path_factory.mktemp("compiled") / "home"
    return folder, python(PLAY, LAB2048_HOME=str(folder))


@pytest.mark.slow
def test_kernels_are_compiled_once_and_it_is_said(compiled):
    home, first = compiled
    second = python(PLAY, LAB2048_HOME=str(home))
    assert first.stdout == second.stdout
    assert first.stderr == "lab2048: compiling kernels; later runs find them ready\n"
    assert second.stderr == ""
    assert first.stdout.endswith("''\n")  # other packages' kernels go where they always went
    assert len(list((home / "kernels").iterdir())) == 1


@pytest.mark.slow
def test_damaged_kernels_are_compiled_anew(compiled, own_home):
    shutil.copytree(compiled[0], own_home)
    first = python(LOOK)
    assert first.stderr == ""
    files = [*own_home.rglob("*.nbi"), *own_home.rglob("*.nbc")]
    assert len(files) > 20
    for number, path in enumerate(files):
        data = path.read_bytes()
        middle = len(data) // 2
        path.write_bytes(
            [b"", data[:middle], data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]][
                number % 3
            ]
        )
    (seal,) = own_home.rglob("seal.json")
    names = json.loads(seal.read_text())
    seal.write_text(json.dumps({name: names[name] for name in list(names)[::2]}))
    second, third = python(LOOK), python(LOOK)
    assert first.stdout == second.stdout == third.stdout
    assert second.stderr == "lab2048: compiling kernels; later runs find them ready\n"
    assert third.stderr == ""


def test_without_a_seal_nothing_is_trusted(own_home):
    folder = own_home / "kernels"
    code = "from lab2048.engine import jit; print(jit.cache_folder())"
    found = Path(python(code).stdout.strip())
    assert found.parent == folder
    for seal in (None, "not json", "[]"):
        (found / "deep").mkdir(exist_ok=True)
        (found / "deep" / "play.nbi").write_bytes(b"garbage")
        if seal is not None:
            (found / "seal.json").write_text(seal)
        python(code)
        assert not (found / "deep" / "play.nbi").exists()


def sealed_folder(folder):
    """A folder of three kernels that are as they were sealed, and how each can be damaged."""
    files = {
        f"deep/{name}.{end}": f"{name} {end}".encode() for name in "abc" for end in ("nbi", "1.nbc")
    }
    (folder / "deep").mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    seal = {name: zlib.crc32(content) for name, content in files.items()}
    (folder / "seal.json").write_text(json.dumps(seal))
    return sorted(files), seal


def kept_by(folder):
    jit._remove_damaged(folder)
    found = [path for path in folder.rglob("*") if path.name not in ("seal.json", "deep")]
    return sorted(path.relative_to(folder).as_posix() for path in found)


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "garbage", "folder", "link", "none"])
def test_what_is_damaged_or_not_listed_is_thrown_away(tmp_path, damage, listed):
    names, seal = sealed_folder(tmp_path)
    assert kept_by(tmp_path) == names
    for name in ("deep/a.nbi", "deep/b.1.nbc"):
        path = tmp_path / name
        data = path.read_bytes()
        if not listed:
            del seal[name]
        if damage != "none":
            path.unlink()
        if damage == "folder":
            path.mkdir()
            (path / "x").touch()
        elif damage == "link":
            path.symlink_to("nowhere")
        elif damage != "none":
            changed = {"empty": b"", "cut": data[:-1], "flipped": data[:-1] + b"?"}
            path.write_bytes(changed.get(damage, b"garbage"))
    (tmp_path / "seal.json").write_text(json.dumps(seal))
    gone = {"deep/a.nbi", "deep/b.1.nbc"} if damage != "none" or not listed else set()
    assert kept_by(tmp_path) == [name for name in names if name not in gone]


@pytest.mark.parametrize("seal", ["", "not json", "[]", "{}", "[" * 100_000, '{"deep/a.nbi": []}'])
def test_a_seal_that_says_nothing_seals_nothing(tmp_path, seal):
    sealed_folder(tmp_path)
    (tmp_path / "seal.json").write_text(seal)
    assert kept_by(tmp_path) == []


def test_a_folder_in_the_place_of_the_seal_is_removed(tmp_path):
    sealed_folder(tmp_path)
    (tmp_path / "seal.json").unlink()
    (tmp_path / "seal.json").mkdir()
    assert kept_by(tmp_path) == [] and not (tmp_path / "seal.json").exists()


posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="it has other rights")


@posix
@pytest.mark.parametrize("open_to_others", ["kernels", "its own"])
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o755])
def test_kernels_that_others_may_have_written_are_not_trusted(own_home, mode, open_to_others):
    folder = jit.cache_folder.__wrapped__()
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    names, _ = sealed_folder(folder)
    assert jit.cache_folder.__wrapped__() == folder and kept_by(folder) == names
    (folder.parent if open_to_others == "kernels" else folder).chmod(mode)
    assert jit.cache_folder.__wrapped__() == folder and kept_by(folder) == []
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700


@posix
def test_the_kernels_of_another_user_are_not_used(own_home, monkeypatch, capsys):
    sealed_folder(jit.cache_folder.__wrapped__())
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    jit._say_once.cache_clear()
    found = jit.cache_folder.__wrapped__()
    assert not found.is_relative_to(own_home) and kept_by(found) == []
    where = f"{own_home}: {own_home / 'kernels'} belongs to another user"
    assert capsys.readouterr().err == f"lab2048: kernels cannot be kept in {where}\n"


def test_kernels_that_cannot_be_written_are_used_all_the_same(own_home, monkeypatch, capsys):
    folder = jit.cache_folder.__wrapped__()
    names, _ = sealed_folder(folder)
    (folder / "deep" / "b.nbi").write_bytes(b"damaged")

    def full(**options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    jit._say_once.cache_clear()
    found = jit.cache_folder.__wrapped__()
    assert "Read-only file system" in capsys.readouterr().err
    assert not found.is_relative_to(own_home)
    assert kept_by(found) == [name for name in names if name != "deep/b.nbi"]
    shutil.rmtree(found)
    found.mkdir()  # it is the same one for the whole process


def test_a_kernel_waits_while_another_process_compiles_it():
    """Or the variants of one function might be mixed up in Numba's index."""

    def twice(number):
        return number + number

    def thrice(number):
        return 3 * number

    found = []
    jit.kernel("int64(int64)")(thrice)  # from now on such a kernel takes a tenth of a second
    work = threading.Thread(target=lambda: found.append(jit.kernel("int64(int64)")(twice)))
    with home.locked(jit.lock_of(twice), "a kernel"):
        work.start()
        work.join(0.5)
        assert work.is_alive()
    work.join(60)
    assert found[0](21) == 42


@pytest.mark.slow
def test_kernels_that_are_damaged_while_they_are_used(compiled, own_home):
    """Nothing notices that before they are loaded: they are compiled without the cache."""
    shutil.copytree(compiled[0], own_home)
    damage = (
        "import os, pathlib; from lab2048.engine import jit\n"
        "for path in jit.cache_folder().rglob('*.nb[ic]'): path.write_bytes(b'garbage')\n"
    )
    first, second, third = python(damage + LOOK), python(LOOK), python(LOOK)
    assert first.stdout == second.stdout == third.stdout
    assert second.stderr == "lab2048: compiling kernels; later runs find them ready\n"
    assert third.stderr == ""


@pytest.mark.slow
def test_a_home_that_cannot_be_written_is_no_obstacle(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    done = python(
        LOOK + "from lab2048.engine import jit; print(jit.cache_folder())",
        LAB2048_HOME=str(blocked),
    )
    result, folder = done.stdout.strip().splitlines()
    assert result == python(LOOK).stdout.strip()
    assert done.stderr.startswith(f"lab2048: kernels cannot be kept in {blocked}: ")
    assert not Path(folder).exists()


@pytest.mark.slow
def test_a_disk_without_room_is_no_obstacle(own_home, compiled):
    """No file may grow past 4 KiB, as on a disk that is nearly full."""
    limited = f"ulimit -f 4; exec {sys.executable} -c '{LOOK}'"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == python(LOOK, LAB2048_HOME=str(compiled[0])).stdout
    said = [line for line in done.stderr.splitlines() if "cannot be kept" in line]
    assert said == [f"lab2048: kernels cannot be kept in {own_home}: File too large"]


def test_another_source_has_another_cache_and_old_ones_are_cleared(own_home):
    code = (
        "import pathlib, sys\n"
        "from lab2048.engine import jit\n"
        "folder = jit.cache_folder()\n"
        "real = pathlib.Path.read_bytes\n"
        "for n in range(5):\n"
        "    pathlib.Path.read_bytes = lambda path: real(path) + b'# %d' % n\n"
        "    jit.kernel_digest.cache_clear(); jit.cache_folder.cache_clear()\n"
        "    assert jit.cache_folder() != folder\n"
        "    folder = jit.cache_folder()\n"
        "print(len(list(folder.parent.iterdir())))\n"
    )
    assert python(code).stdout == "3\n"


@pytest.mark.slow
def test_folders_of_other_origin_are_left_alone(own_home):
    """Somebody may keep their own kernels in a folder that becomes the data folder."""
    mine = own_home / "kernels" / "mine" / "notes.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("of mine")
    for number in range(5):
        (own_home / "kernels" / f"{number:016x}").mkdir()
    mine.parent.parent.chmod(0o755)
    python(LOOK)
    assert mine.read_text() == "of mine"
    assert mine.parent.parent.stat().st_mode & 0o077 == 0
    ours = {path.name for path in mine.parent.parent.iterdir()} - {"mine"}
    assert len(ours) == 1


def test_what_was_noted_as_compiled_is_forgotten_with_damaged_kernels(own_home):
    folder = jit.cache_folder.__wrapped__()
    (folder / f"solve{jit.NOTE}").touch()
    jit._remove_damaged(folder)
    assert (folder / f"solve{jit.NOTE}").exists()
    (folder / "x.nbi").write_bytes(b"not sealed")
    jit._remove_damaged(folder)
    assert not (folder / f"solve{jit.NOTE}").exists() and not (folder / "x.nbi").exists()
