"""The package as a whole: what it imports, what it caches, what it ships."""

from __future__ import annotations

import ast
import errno
import graphlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zlib
from pathlib import Path
from zipfile import ZipFile

import pytest

import lab2048
from lab2048 import home
from lab2048.engine import jit

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "lab2048"

# Data flows one way: a package imports only from those before it, and within a package modules
# import one another without a cycle.
ORDER = [
    "formatting",
    "home",
    "tabular",
    "remote",
    "game",
    "engine",
    "players",
    "solver",
    "measure",
    "data",
    "learn",
    "gym",
    "env",
    "report",
    "cluster",
    "studio",
    "bench",
    "cli",
    "__init__",
    "__main__",
]


def python(code, **environment):
    """What a piece of code prints in a new interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


# -- shape -------------------------------------------------------------------------------------


def room_of(module):
    """The package, or the file at the top, that a module below `lab2048` is in."""
    return module.partition(".")[0]


def modules():
    """All modules, by their names below `lab2048`; a package is named as its `__init__`."""
    paths = {path: path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py")}
    return {".".join(inner.parts): path for path, inner in paths.items()}


def imports_of(path, known):
    """The modules below `lab2048` that a file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        package, _, inside = node.module.partition(".")
        if package == "lab2048":
            for alias in node.names:
                full = f"{inside}.{alias.name}".removeprefix(".")
                yield full if full in known else inside or "__init__"


def test_packages_import_only_from_those_before_them():
    known = modules()
    assert {room_of(name) for name in known} == set(ORDER)
    wrong = [
        f"{name} imports {used}"
        for name, path in known.items()
        for used in imports_of(path, known)
        if name != "__init__" and ORDER.index(room_of(used)) > ORDER.index(room_of(name))
    ]
    assert wrong == []


def test_no_module_imports_itself_by_a_detour():
    known = modules()
    order = graphlib.TopologicalSorter(
        {
            name: {
                used if used in known else f"{used}.__init__" for used in imports_of(path, known)
            }
            - {name}
            for name, path in known.items()
            if name != "__init__"
        }
    )
    order.prepare()  # it raises a CycleError


def test_kernels_are_only_where_a_change_of_the_source_is_noticed():
    made_by = re.compile(r"from lab2048\.engine\.jit import .*\b(kernel|fragment|inline)\b")
    found = {room_of(name) for name, path in modules().items() if made_by.search(path.read_text())}
    assert found and found <= set(jit.PACKAGES_WITH_KERNELS)


def test_few_things_lie_at_the_top():
    files = [path.name for path in PACKAGE.iterdir() if path.is_file()]
    assert len(files) <= 10, files


def test_every_public_name_is_there():
    for name in lab2048.__all__:
        assert getattr(lab2048, name) is not None
    assert set(lab2048.__all__) <= set(dir(lab2048))
    with pytest.raises(AttributeError, match="nothing"):
        _ = lab2048.nothing


def test_type_checkers_are_told_the_same_names():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    blocks = [n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    told = {alias.asname for node in blocks[0].body for alias in node.names}
    assert told | {"__version__"} == set(lab2048.__all__)


# -- imports -----------------------------------------------------------------------------------


def test_importing_and_parsing_load_no_numba():
    code = (
        "import sys, lab2048\n"
        "heavy = {'numpy', 'numba', 'rich', 'gymnasium', 'torch', 'matplotlib', 'ray'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "board = lab2048.Board.parse('2 4 . / . 8 . / 2 . .')\n"
        "board.legal_moves, board.canonical(), lab2048.Game(lab2048.Rules(4, 4), 1).play(0)\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "import lab2048.cli\n"
        "assert not (heavy - {'rich'}) & set(sys.modules)\n"
    )
    python(code)


def test_probe_needs_no_kernel(own_home):
    code = (
        "import sys; from lab2048 import cli\n"
        "sys.argv = ['lab2048', 'probe', '2 2 . / . . . / . . .', '--json']\n"
        "try: cli.main()\n"
        "except SystemExit: assert 'numba' not in sys.modules\n"
    )
    python(code)
    assert not own_home.exists()


# -- the kernel cache --------------------------------------------------------------------------

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


# -- what is shipped ---------------------------------------------------------------------------


@pytest.mark.slow
def test_the_signature_is_the_one_written_down():
    """It changes only with the engine's behaviour, and then the change log says so."""
    from lab2048.bench.engine import signature

    found = signature()
    stated = re.findall(r"[Ss]ignature (\d+)", (ROOT / "CHANGELOG.md").read_text())
    assert str(found) == stated[0]
    assert str(found) in (ROOT / "docs" / "results.md").read_text()


def test_documents_name_files_that_are_there():
    places = [ROOT, PACKAGE, ROOT / "docs"]
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for name in re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|js|md))`", path.read_text()):
            assert any((place / name).exists() for place in places), f"{path.name}: {name}"


def test_no_document_has_a_gap():
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        assert not re.search(r"@[A-Z]+@", path.read_text()), path


def test_versions_agree():
    version = lab2048.__version__
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_torch_is_pinned_in_one_place():
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().splitlines()
    asked = re.findall(r'"torch[^"]*"', (ROOT / "pyproject.toml").read_text())
    assert set(asked) == {'"torch>=2.6"'}  # of users' own choice; ours is the constraint
    installs = re.findall(r"^.*pip install.*$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert len(installs) == 1 and "--constraint constraints.txt" in installs[0]


@pytest.mark.slow
def test_the_wheel_works_outside_the_checkout(tmp_path):
    """Built, installed into an environment of its own, and used from another folder."""
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    files = {path.relative_to(ROOT / "src").as_posix() for path in PACKAGE.rglob("*.*")}
    shipped = {name for name in files if not name.endswith(".pyc")}
    assert "lab2048/learn/networks/ntuple-4x4.safetensors" in shipped
    assert shipped <= set(ZipFile(wheel).namelist())
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python"), "install"]
    pip += ["--quiet", "--no-compile"]  # most of what comes with it is not imported
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, *constraints, f"{wheel}[gym]"], check=True, capture_output=True)
    home = {**os.environ, "LAB2048_HOME": str(tmp_path / "home")}
    home.pop("PYTHONPATH", None)

    def use(*command):
        run = [str(venv / "bin" / command[0]), *command[1:]]
        done = subprocess.run(
            run, capture_output=True, text=True, cwd=tmp_path, env=home, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert use("lab2048", "--version") == f"lab2048 {lab2048.__version__}\n"
    square = "2 2 . . / . . . . / . . . . / . . . ."  # too large to be solved first
    assert '"legal": true' in use("lab2048", "probe", square, "--json")
    assert "4x4" in use("lab2048", "evaluate", "random", "--games", "50")
    code = (
        "import gymnasium, importlib.resources, lab2048\n"
        "assert importlib.resources.files('lab2048').joinpath('py.typed').is_file()\n"
        "env = gymnasium.make_vec('lab2048.env:lab2048/Game-v0', 2, rows=2, cols=2)\n"
        "print(env.reset(seed=1)[0].shape, lab2048.__file__)\n"
    )
    shape, _, path = use("python", "-c", code).strip().rpartition(" ")
    assert shape == "(2, 2, 2)"
    assert Path(path).is_relative_to(venv)


def test_examples_leave_the_users_data_folder_alone():
    run = [sys.executable, "-m", "pytest", "--setup-show", "-p", "no:cacheprovider"]
    run.append("src/lab2048/game/game.py")
    done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT)
    shown = [line for line in done.stdout.splitlines() if "::" in line]
    assert shown and all("_examples_leave_nothing" in line for line in shown)
