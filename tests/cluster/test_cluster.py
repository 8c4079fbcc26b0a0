"""Work on a cluster: several machines of Ray here, some of which are lost on the way."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import lab2048
from lab2048.cli import app as cli
from lab2048.cluster import enumeration as layers
from lab2048.cluster import executor as solver
from lab2048.cluster import games as playing
from lab2048.cluster import induction as values
from lab2048.cluster import shard_steps as shards
from lab2048.cluster import workers as team
from lab2048.cluster.executor import RayExecutor
from lab2048.engine.jit import cache_folder, source_digest
from lab2048.game import Rules
from lab2048.measure.arena import play_games
from lab2048.players.registry import make_player
from lab2048.solver import table_writer
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.table_files import BLOCKS, KEYS, MANIFEST, SHARDS, VALUES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LARGE = 16_000
"""Layers of 4x2 with more states are handed out."""


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """Two machines of one core each, as Ray sees them."""
    before = dict(os.environ)
    os.environ.update(
        RAY_AUTH_MODE="token",
        RAY_AUTH_TOKEN=secrets.token_hex(32),
        RAY_USAGE_STATS_ENABLED="0",
        LAB2048_HOME=str(cache_folder().parent.parent),
    )
    from ray import cloudpickle
    from ray.cluster_utils import Cluster

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **SMALL})
    cluster.add_node(num_cpus=1, **SMALL)
    yield cluster
    cluster.shutdown()
    os.environ.clear()
    os.environ.update(before)


SMALL = {"object_store_memory": 10**8, "include_dashboard": False}


@pytest.fixture(scope="module")
def crowd(far):
    """The team of the machines."""
    with team.connected(far.address) as found:
        yield found


@pytest.fixture(autouse=True)
def no_losses(request):
    """Nobody has been lost yet: files are used again."""
    if "crowd" in request.fixturenames:
        request.getfixturevalue("crowd").losses = 0


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """4x2 solved by threads."""
    folder = tmp_path_factory.mktemp("local") / "table"
    make_table("4x2", folder)
    return folder


def shards_of(monkeypatch, least, most):
    """Have shards of at least and at most so many keys."""
    monkeypatch.setattr(layers, "LEAST", least)
    monkeypatch.setattr(layers, "MOST", most)
    monkeypatch.setattr(values, "MOST", most)


@pytest.fixture
def small_shards(monkeypatch):
    """Layers of 4x2 are cut into several shards."""
    shards_of(monkeypatch, 4_000, 6_000)


def assert_same(folder, other):
    for name in (KEYS, BLOCKS, VALUES, MANIFEST):
        assert (folder / name).read_bytes() == (other / name).read_bytes(), name
    assert not (folder / SHARDS).exists()


def dying(function, mark, *args):
    """A task that kills its worker the first time, when it has done all and told nobody."""
    result = function(*args)
    if not os.path.exists(mark):
        with open(mark, "w"):
            os.kill(os.getpid(), signal.SIGKILL)
    return result


def doomed(function, mark, *args):
    """A task that ends Ray on its machine, if that is the one that is to be lost."""
    if "DOOMED" in os.environ and not os.path.exists(mark):
        Path(mark).touch()
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    for _ in range(100):  # all machines are to have work
        if os.path.exists(mark):
            break
        time.sleep(0.1)
    return function(*args)


def patched(monkeypatch, module, name, task):
    """Put a task in the place of another, by the same name."""
    task.__name__ = name
    monkeypatch.setattr(module, name, task)


def dies_once(monkeypatch, module, name, mark):
    """Let one of the tasks of a module kill its worker."""
    patched(monkeypatch, module, name, partial(dying, getattr(module, name), str(mark)))


# -- solve -------------------------------------------------------------------------------------


def test_a_table_is_the_same_though_a_worker_and_a_machine_are_lost(
    far, crowd, local, small_shards, tmp_path, monkeypatch, capsys
):
    """A whole machine while keys are merged, a worker while they are valued."""
    machine = far.add_node(num_cpus=1, env_vars={"DOOMED": "1"}, **SMALL)
    patched(monkeypatch, shards, "move", partial(doomed, shards.move, str(tmp_path / "gone")))
    dies_once(monkeypatch, shards, "value_states", tmp_path / "mark")
    executor = partial(RayExecutor, team=crowd, large=LARGE)
    make_table("4x2", tmp_path / "table", executor=executor)
    far.remove_node(machine, allow_graceful=False)
    assert_same(tmp_path / "table", local)
    told = capsys.readouterr().err
    assert "lost while at value_states (its process ended); retrying on another" in told
    assert "(its machine is gone)" in told


def test_files_are_used_again(crowd, local, small_shards, tmp_path):
    executor = partial(RayExecutor, team=crowd, large=LARGE)
    make_table("4x2", tmp_path / "table", executor=executor)
    assert_same(tmp_path / "table", local)
    assert crowd.losses == 0 and crowd.machines == 1


@pytest.mark.parametrize(
    ("problem", "seconds"),
    [(Problem.of("4x2", p4=1.0), 3.0), (Problem.of("4x2", objective="reach:64"), 0.0)],
    ids=["only-4s", "reach"],
)
def test_other_objectives_and_rounded_values_too(crowd, tmp_path, monkeypatch, problem, seconds):
    """With 4s alone every second layer is empty; rounded values are carried along in files.

    A commit while the next layer is being written leaves what it has of such files alone. Here
    shards are not whole regions, so that the index is filled in a step of its own.
    """
    shards_of(monkeypatch, 500, 1_000)
    monkeypatch.setattr(table_writer, "COMMIT_SECONDS", seconds)
    monkeypatch.setattr(values, "UNEVEN", 0)
    here, there = tmp_path / "here", tmp_path / "there"
    make_table(problem, here, values="float32")
    executor = partial(RayExecutor, team=crowd, large=4_800)
    make_table(problem, there, values="float32", executor=executor, threads=1)
    assert_same(there, here)


DRIVER = """
import sys
from contextlib import nullcontext
from functools import partial
from lab2048.cluster import enumeration as layers, workers as team, induction as values
from lab2048.cluster.executor import RayExecutor
from lab2048.solver.job import make_table
layers.LEAST, layers.MOST, values.MOST = 4_000, 6_000, 6_000
address, folder, stage = sys.argv[1:]
def tell(step):
    if step.stage == stage and step.layer > 16_000:
        print(step.age, flush=True)
with team.connected(address) as crowd:
    executor = partial(RayExecutor, team=crowd, large=16_000)
    make_table("4x2", folder, executor=executor, progress=tell)
"""


def drive(address, folder, stage):
    command = [sys.executable, "-c", DRIVER, address, str(folder), stage]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_driver_that_was_killed_is_resumed(far, local, tmp_path):
    """Whatever its workers were at: the same command goes on, and one without a cluster too."""
    folder = tmp_path / "table"
    for stage in ("enumerate", "values"):
        with drive(far.address, folder, stage) as driver:
            for _ in range(3):
                assert driver.stdout.readline()
            driver.kill()
        assert (folder / "progress.json").exists() and not (folder / MANIFEST).exists()
    make_table("4x2", folder)
    assert_same(folder, local)


def full(function, mark, *args):
    """A task for which there is no room the first time."""
    if not os.path.exists(mark):
        Path(mark).touch()
        raise OSError(28, "No space left on device", str(args[-1]))
    return function(*args)


def test_a_full_folder_is_told_and_the_work_goes_on(
    crowd, local, small_shards, tmp_path, monkeypatch
):
    task = partial(full, shards.value_states, str(tmp_path / "mark"))
    patched(monkeypatch, shards, "value_states", task)
    executor = partial(RayExecutor, team=crowd, large=LARGE)
    with pytest.raises(OSError, match="make room and run the command again: it goes on"):
        make_table("4x2", tmp_path / "table", executor=executor)
    make_table("4x2", tmp_path / "table", executor=executor)
    assert_same(tmp_path / "table", local)


def test_a_task_that_is_always_lost_is_the_reason(crowd, monkeypatch, capsys):
    monkeypatch.setattr(team, "MOST_LOSSES", 2)
    with pytest.raises(team.ClusterError, match="lost while at _exit, 3 times"):
        crowd.run(os._exit, [(1,)])
    assert capsys.readouterr().err.count("retrying on another") == 2


# -- evaluate, data ----------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["greedy", "random"])
def test_games_are_those_of_one_machine(crowd, tmp_path, monkeypatch, spec, capsys):
    dies_once(monkeypatch, playing, "play_block", tmp_path / "mark")
    player = make_player(spec, Rules(3, 3))
    here = sorted(play_games(player, iter(range(60)), 7), key=lambda game: game.index)
    there = sorted(playing.far_games(crowd, player, iter(range(60)), 7), key=lambda g: g.index)
    assert here == there
    assert "a worker was lost while at play_block" in capsys.readouterr().err


def test_boards_are_judged_as_on_one_machine(crowd):
    from lab2048.data.labels import Astray, judged

    player = make_player("greedy", Rules(3, 3))
    boards = np.array([0x123, 0x100200, 0x112233, 0x1], np.uint64)
    there = playing.far_judged(crowd, player, boards)
    np.testing.assert_array_equal(there, judged(player, boards))
    astray = Astray(Rules(3, 3), player, 0.5)
    games = [
        list(play(astray, iter(range(8)), 3, 1))
        for play in (play_games, partial(playing.far_games, crowd))
    ]
    assert sorted(games[0], key=lambda g: g.index) == sorted(games[1], key=lambda g: g.index)


def test_a_player_that_is_another_elsewhere_is_refused():
    recipe = playing.Recipe.of(make_player("greedy", Rules(3, 3)))
    with pytest.raises(team.ClusterError, match="greedy is not the same on all machines"):
        playing.made(recipe._replace(identity="another"))


# -- self-play ---------------------------------------------------------------------------------


def test_self_play_goes_on_though_an_actor_is_killed(crowd, capsys):
    pytest.importorskip("torch")
    from lab2048.cluster.selfplay import FarZeroLearner
    from lab2048.learn.zero_settings import ZeroSettings

    settings = ZeroSettings.of(Rules(2, 2), "tiny", simulations=4, games=16)
    training = FarZeroLearner(settings, 2, team=crowd)
    parts = [training.chunk(0.0) for _ in range(3)]
    victim = crowd.ray.get(training.actors[0].__ray_call__.remote(lambda actor: os.getpid()))
    os.kill(victim, signal.SIGKILL)
    said = ""
    while "an actor was lost" not in said and len(parts) < 200:  # the other one may be faster
        parts.append(training.chunk(0.5))
        said += capsys.readouterr().err
    assert "an actor was lost" in said
    assert all(part.moves > 0 for part in parts) and training.chunks == len(parts)
    versions = [part.weights for part in parts]
    assert versions[0] == (0, 0) and all(0 <= a <= b <= n for n, (a, b) in enumerate(versions))
    assert any(part.behind > 0 for part in parts[1:])
    training.stopped = True
    assert training.chunk(0.5).moves == 0
    crews = [crew.tensors() for crew in training.workers]
    again = FarZeroLearner(settings, 2, team=crowd)
    again.resume(training.facts, training.tensors())
    for crew, before in zip(again.workers, crews, strict=True):
        np.testing.assert_array_equal(crew.state, before["state"])


def test_an_actor_plays_the_same_again():
    """What an actor does depends on its order and the weights alone."""
    pytest.importorskip("torch")
    from lab2048.cluster.selfplay import Actor, Order
    from lab2048.learn.gradient import model_tensors
    from lab2048.learn.selfplay import SelfPlay
    from lab2048.learn.zero_settings import ZeroSettings

    settings = ZeroSettings.of(Rules(2, 2), "tiny", simulations=4, games=16)
    crew, weights = SelfPlay(settings, 8, 5), model_tensors(settings.build())
    order = Order(crew.tensors(), crew.begun, 0.5, (1.0, 1.0), 0, source_digest())
    first, second = Actor(settings, 8, 5), Actor(settings, 8, 5)
    one = first.play(order, weights)
    first.play(order._replace(tensors=one.tensors, begun=one.begun), weights)
    again, other = first.play(order, weights), second.play(order, weights)
    for result in (again, other):
        np.testing.assert_array_equal(result.tensors["state"], one.tensors["state"])
        for a, b in zip(result.lessons, one.lessons, strict=True):
            np.testing.assert_array_equal(a, b)
        assert result.scores == one.scores
    with pytest.raises(team.ClusterError, match="has another lab2048"):
        first.play(order._replace(source="another"), weights)


# -- the cluster -------------------------------------------------------------------------------


def on_machine(crowd, machine):
    """The task of a team, to be done on one of its machines."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = NodeAffinitySchedulingStrategy(machine.node_id, soft=False)
    return crowd._do.options(scheduling_strategy=there)


def test_machines_with_another_version_are_refused(far, crowd, tmp_path):
    package = Path(lab2048.__file__).parent
    shutil.copytree(package, tmp_path / "lab2048", ignore=shutil.ignore_patterns("__pycache__"))
    first = tmp_path / "lab2048" / "__init__.py"
    text = first.read_text()
    assert f'"{lab2048.__version__}"' in text
    first.write_text(text.replace(f'"{lab2048.__version__}"', '"9.8.7"'))
    machine = far.add_node(num_cpus=1, env_vars={"PYTHONPATH": str(tmp_path)}, **SMALL)
    wanted = f"has lab2048 9.8.7, and this machine {lab2048.__version__}"
    try:
        with pytest.raises(team.ClusterError, match=wanted):
            crowd.check(crowd.nodes())
        first.write_text(text + "\n# one line more\n")
        far.remove_node(machine)
        machine = far.add_node(num_cpus=1, env_vars={"PYTHONPATH": str(tmp_path)}, **SMALL)
        with pytest.raises(team.ClusterError, match="but not the same source"):
            crowd.check(crowd.nodes())
        with pytest.raises(team.ClusterError, match="has another lab2048, NumPy or Numba"):
            crowd._result(on_machine(crowd, machine).remote(source_digest(), time.time))
    finally:
        far.remove_node(machine)


def test_a_check_says_what_there_is(far, tmp_path):
    command = [sys.executable, "-m", "lab2048", "cluster", "check", far.address]
    command += ["--shared", str(tmp_path / "shared")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "All machines can do the same work." in done.stdout and "there" in done.stdout
    assert not list((tmp_path / "shared").iterdir())


@pytest.fixture
def lab(crowd, monkeypatch, capsys):
    """Runs a command, with the team there is; what it has printed as JSON."""
    monkeypatch.setattr(team, "connected", lambda *args: nullcontext(crowd))

    def run(*words):
        cli.app([*map(str, words), "--json"], prog_name="lab2048", standalone_mode=False)
        return json.loads(capsys.readouterr().out)

    return run


def test_commands_say_the_same_as_on_one_machine(lab, local, small_shards, tmp_path, monkeypatch):
    match = ["evaluate", "greedy", "--board", "3x3", "--games", 30]
    (here,), (there,) = lab(*match), lab(*match, "--cluster", "x:1")
    for figures in (here, there):
        del figures["moves_per_second"]
    assert here == there and here["games"] == 30
    make = ["data", "make", "--player", "greedy", "--board", "3x3", "--moves", 200]
    lab(*make, "--out", tmp_path / "here.txt")
    lab(*make, "--out", tmp_path / "there.txt", "--cluster", "x:1")
    assert (tmp_path / "here.txt").read_bytes() == (tmp_path / "there.txt").read_bytes()
    monkeypatch.setattr(solver, "LARGE", LARGE)
    dies_once(monkeypatch, shards, "value_afters", tmp_path / "mark")
    table = lab("solve", "4x2", "--cluster", "x:1", "--shared", tmp_path / "shared")["table"]
    assert table == str(tmp_path / "shared" / "4x2-score") and (tmp_path / "mark").exists()
    assert_same(Path(table), local)


def test_calls_work_on_a_cluster(crowd, local, monkeypatch, tmp_path):
    """By its address, or on a connection that is open for several calls."""
    addresses = []
    monkeypatch.setattr(
        team, "connected", lambda *args: addresses.append(args[0]) or nullcontext(crowd)
    )
    here = lab2048.evaluate("greedy", "3x3", games=30, table=False)
    there = lab2048.evaluate("greedy", "3x3", games=30, table=False, cluster="x:1")
    assert [game.moves for game in here[0].played] == [game.moves for game in there[0].played]
    with lab2048.connect("x:2", shared=tmp_path) as cluster:
        with lab2048.solve("4x2", out=tmp_path / "table", cluster=cluster) as table:
            assert_same(table.path, local)
        wanted = {"moves": 100, "teacher": "random", "cluster": cluster}
        assert lab2048.save_labels(tmp_path / "a.parquet", "greedy", "2x2", **wanted).count == 100
    assert addresses == ["x:1", "x:2"]
    with pytest.raises(ValueError, match="ntuple does not train on a cluster"):
        lab2048.train.ntuple("2x2", episodes=10, cluster="x:1")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--cluster", "local"], "--cluster and --shared DIR"),
        (["--shared", "x"], "--cluster and --shared DIR"),
        (["--cores", "8"], "--cores and --machines belong to --estimate"),
        (["--cluster", "local", "--shared", "x", "--out", "y"], "there is no --out"),
    ],
)
def test_options_that_do_not_go_together(words, text):
    with pytest.raises(ValueError, match=text):
        cli.app(["solve", "2x2", *words], prog_name="lab2048", standalone_mode=False)


def test_one_machine_never_imports_ray(tmp_path):
    code = (
        "import sys; from lab2048 import cli\n"
        f"sys.argv = ['lab2048', 'solve', '4x2', '--out', {str(tmp_path / 'table')!r}]\n"
        "try: cli.main()\n"
        "except SystemExit as end: assert not end.code and 'ray' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_folder_that_is_not_the_same_is_noticed(tmp_path):
    assert team.look_around(str(tmp_path / "none"), "mark")[-1] == "is not here"
    assert team.look_around(str(tmp_path), "mark")[-1] == "is not the same folder here"
    (tmp_path / "mark").touch()
    assert team.look_around(str(tmp_path), "mark")[-1] == ""


def test_a_cluster_that_is_not_there():
    with (
        pytest.raises(team.ClusterError, match=r"no Ray cluster at 127\.0\.0\.1:9: .*refused"),
        team.connected("127.0.0.1:9"),
    ):
        pass
    for wrong in ("somewhere", "host:port", ":6379"):
        with (
            pytest.raises(team.ClusterError, match=r"local, auto or such as 10\.0\.0\.1:6379"),
            team.connected(wrong),
        ):
            pass
