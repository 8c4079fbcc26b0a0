"""The package as a whole: what it imports, what it caches, what it ships."""

from __future__ import annotations

import ast
import graphlib
import os
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import lab2048
from lab2048.engine import jit
from tests.interpreter import python

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


@pytest.mark.slow
def test_the_site_is_built_and_no_link_is_broken(tmp_path):
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in (ROOT / "docs").glob("*.md"):
        assert f" {page.name}\n" in (ROOT / "mkdocs.yml").read_text(), page.name
    assert "points that greedy loses" in (tmp_path / "index.html").read_text()


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


@pytest.mark.slow
def test_examples_leave_the_users_data_folder_alone():
    run = [sys.executable, "-m", "pytest", "--setup-show", "-p", "no:cacheprovider"]
    run.append("src/lab2048/game/game.py")
    done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT)
    shown = [line for line in done.stdout.splitlines() if "::" in line]
    assert shown and all("_examples_leave_nothing" in line for line in shown)
