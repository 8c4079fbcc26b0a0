"""The trainer, with a learner that is none of the package's own."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, fields

import numpy as np
import pytest

import lab2048 as lab
from lab2048.learn import distance, registry, resume, trainer
from lab2048.learn.checkpoint import Logs, read_log
from lab2048.learn.curve import curve, measured
from lab2048.learn.distance import exact_at_end, exact_at_records
from lab2048.learn.learner import DivergedError, Goal
from lab2048.learn.network_files import FILE, network_folder, read_facts
from lab2048.learn.ntuple_settings import NTupleSettings
from lab2048.learn.settings import help_of, option_fields
from lab2048.learn.supervised_settings import SupervisedSettings
from lab2048.learn.train import checked_limits, goal_of
from lab2048.players.registry import PLAYERS, make_player
from tests.learn.climber import Climb, ClimbSettings


@pytest.fixture
def climb():
    """The learner, registered for the time being."""
    lab.register_learner("climb", Climb)
    yield lab.train.climb
    del registry._learners["climb"], PLAYERS["climb"]
    for module in ("lab2048.learn.train", "lab2048.learn.learnt_player"):
        vars(sys.modules.get(module, sys)).pop("climb", None)


def without_times(log):
    return [{n: v for n, v in record.items() if n != "seconds"} for record in log]


# -- a training --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_learner_of_somebody_else_trains_stops_resumes_and_is_measured(warm_home, climb):
    whole = climb(steps=40, out="whole", against="2x2")
    heard = []

    def stop(record):
        heard.append(record)
        return len(heard) == 3

    part = climb(steps=40, out="part", against="2x2", on_record=stop)
    assert part.log == heard and not part.finished and part.facts["steps"] == 6
    again = climb(steps=40, out="part", against="2x2", resume=True)
    assert again.finished and whole.finished and again.seconds > 0
    assert without_times(again.log) == without_times(whole.log) and len(whole.log) == 20
    last = whole.log[-1]
    assert last["steps"] == 40 and last["exact"]["mean"] == pytest.approx(last["mean"])
    assert last["exact"]["regret"] == pytest.approx(whole.perfect - last["mean"])
    assert whole.exact == last["exact"] and whole.counts == {"steps": 40}
    assert last["mean"] > whole.log[0]["mean"] and (whole.path / "tensorboard").is_dir()
    assert read_log(whole.path, 10**9, "steps") == whole.log
    for player in (whole.player(), make_player("climb:whole", lab.Rules(2, 2))):
        assert lab.exact_value(player, table=False).value == pytest.approx(last["mean"])
    with pytest.raises(ValueError, match="the network whole is for 2x2, the board is 2x3"):
        make_player("climb:whole", lab.Rules(2, 3))
    rows = list(csv.DictReader(io.StringIO(whole.to_csv())))
    assert len(rows) == 20 and float(rows[-1]["exact.mean"]) == last["exact"]["mean"]
    assert json.loads(whole.to_json())["log"] == whole.log
    assert whole.to_markdown().count("\n") == 22 and r"\midrule" in whole.to_latex()


@pytest.mark.slow
def test_the_command_of_a_learner_of_somebody_else(warm_home, climb, command, tmp_path):
    picture = tmp_path / "c.svg"
    line = ("train", "climb", "--steps", "20", "--out", "c", "--against", "2x2")
    code, out, err = command(*line, "--size", "1", "--plot", str(picture))
    assert code == 0 and "c is ready: lab2048 evaluate climb:c --board 2x2" in out, err
    assert (
        "c: 2x2, size 1.0, seed 1" in err and "exact mean" in err and "<svg" in picture.read_text()
    )
    resume = ("train", "climb", "--out", "c", "--resume", "--steps")
    code, out, err = command(*resume, "25", "--json")
    assert code == 0 and json.loads(out)["steps"] == 25 and "going on after 20 steps" in err
    code, _, err = command(*resume, "30", "--size", "2")
    assert code == 2 and "c was begun with --size 1.0, not 2.0" in err
    assert "climb" in command("train", "list")[1] and "Change the weights" in command("train")[1]
    code, out, _ = command("evaluate", "climb:c", "--board", "2x2", "--games", "10", "--json")
    assert code == 0


@pytest.mark.slow
def test_several_runs_have_intervals_and_go_on(warm_home, climb):
    runs = climb(steps=20, out="r", runs=3, seed=5, against="2x2")
    assert [run.name for run in runs] == ["r-1", "r-2", "r-3"]
    assert [run.settings.seed for run in runs] == [5, 6, 7] and runs.exact
    points = runs.curve()
    last = [run.log[-1]["exact"]["mean"] for run in runs]
    assert points[-1].count == 20 and points[-1].mean == pytest.approx(np.mean(last))
    assert points[-1].half > 0 and runs.rows()[-1]["ci95_half"] == points[-1].half
    assert [each["name"] for each in json.loads(runs.to_json())] == ["r-1", "r-2", "r-3"]
    (runs[2].path / FILE).unlink()
    again = climb(steps=20, out="r", runs=3, resume=True, against="2x2")
    assert [run.settings.seed for run in again] == [5, 6, 7]
    assert without_times(again[2].log) == without_times(runs[2].log)


@pytest.mark.slow
def test_minutes_are_those_of_steps(warm_home, climb, monkeypatch):
    measured = []

    def slowly(self, table):
        measured.append(time.sleep(0.2))
        return {}

    monkeypatch.setattr(Climb, "measure", slowly)
    began = time.perf_counter()
    found = climb(minutes=0.3 / 60, out="m", against="2x2")
    passed = time.perf_counter() - began
    assert found.finished and len(measured) == len(found.log)
    assert 0.3 <= found.seconds <= passed - 0.2 * len(measured)
    assert found.seconds_exact >= 0.2 * len(measured) and found.exact["regret"] > 0
    assert found.log[-2]["seconds"] <= 0.3  # rounded


@pytest.mark.slow
def test_what_diverges_is_not_saved(warm_home, climb, monkeypatch):
    found = climb(steps=3, out="d")
    kept = (found.path / FILE).read_bytes()

    def diverge(self, goal):
        self.weights = self.weights * np.nan
        self.done += 1

    def grow(self, goal):
        self.weights = self.weights + 1e30
        raise DivergedError("values are beyond all bounds")

    for step, said in ((diverge, "the weights are not numbers any more"), (grow, "beyond all")):
        monkeypatch.setattr(Climb, "step", step)
        with pytest.raises(DivergedError, match=said):
            climb(steps=5, out="d", resume=True)
        assert (found.path / FILE).read_bytes() == kept


@pytest.mark.slow
def test_a_thread_trains_too_and_ctrl_c_keeps_what_was_learnt(warm_home, climb):
    found = []
    thread = threading.Thread(target=lambda: found.append(climb(steps=3, out="t")))
    thread.start()
    thread.join()
    assert found[0].facts["steps"] == 3
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            climb(steps=10**6, out="i", on_record=lambda record: None, progress=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert read_facts(network_folder("i") / FILE)["steps"] == 1


def interrupt(share, what):
    os.kill(os.getpid(), signal.SIGINT)


def write_inside_a_write(text):
    """As stderr does if the signal interrupted a write to it."""
    if text == "stopping":
        raise RuntimeError("reentrant call inside <_io.BufferedWriter name='<stderr>'>")


@pytest.mark.slow
def test_a_signal_may_interrupt_a_line_that_is_being_written(warm_home, climb):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            climb(steps=10**6, out="w", progress=interrupt, say=write_inside_a_write)
    finally:
        signal.signal(signal.SIGINT, before)
    assert read_facts(network_folder("w") / FILE)["steps"] == 1


@pytest.mark.slow
def test_a_record_says_how_well_it_goes(warm_home, climb, monkeypatch):
    monkeypatch.setattr(Climb, "record", lambda self: {"kept": 1})
    with pytest.raises(TypeError, match="a record of climb has neither `mean` nor `loss`"):
        climb(steps=3, out="n")


# -- what is refused ---------------------------------------------------------------------------

WRONG = [
    ({}, "a training lasts for `steps` or `minutes`"),
    ({"steps": 3, "minutes": 1}, "a training lasts for `steps` or `minutes`"),
    ({"steps": 0}, "the number of steps is from 1 to"),
    ({"minutes": -1}, "`minutes` is a number above 0, not -1"),
    ({"steps": 3, "size": 20}, "size is a number from 0 to 10, not 20"),
    ({"steps": 3, "size": "x"}, "size is a number from 0 to 10, not 'x'"),
    ({"steps": 3, "speed": 20}, "climb has no setting 'speed'"),
    ({"steps": 3, "seed": -1}, "the seed of a training is a number from 0"),
    ({"steps": 3, "board": "9x9"}, "not 9x9"),
    ({"steps": 3, "out": "../x"}, "a network's name is of letters"),
    ({"steps": 3, "runs": 0}, "runs are a number from 1 to 100, not 0"),
    ({"steps": 3, "resume": True}, "there is no network 2x2-climb to go on with"),
    ({"steps": 3, "threads": 0}, "threads are a whole number from 1"),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[str(each[0]) for each in WRONG])
def test_wrong_arguments_are_told(own_home, climb, given, said):
    with pytest.raises(ValueError, match=said):
        climb(**given)


def test_a_class_has_as_many_names_as_it_is_registered_under(climb, forgetting):
    lab.register_learner("descend", Climb)
    kinds = [registry.find_learner(name).load().kind for name in ("climb", "descend")]
    assert (*kinds, Climb.kind) == ("climb", "descend", "")


def test_a_name_is_registered_once(climb):
    with pytest.raises(ValueError, match="the learner 'climb' is there already"):
        lab.register_learner("climb", Climb)
    with pytest.raises(ValueError, match="the learner 'no name' is not a valid name"):
        lab.register_learner("no name", Climb)
    with pytest.raises(AttributeError, match="there is no learner 'climbs'"):
        _ = lab.train.climbs
    with pytest.raises(ValueError, match="there is no learner 'climbs'; did you mean climb"):
        registry.find_learner("climbs")


# -- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ntuple", "supervised", "zero"])
def test_every_setting_is_documented_and_an_option(name, command):
    cls = registry.find_learner(name).load_settings()
    told = {each.name for each in option_fields(cls)}
    assert {each.name for each in fields(cls)} == told | {"rules"}
    assert all(
        help_of(each).endswith(".") and len(help_of(each)) > 8 for each in option_fields(cls)
    )
    shown = command("train", name, "--help")[1]
    assert all(f"--{each.replace('_', '-')}" in shown for each in told)
    assert cls.goal in told or f"--{cls.goal}" in shown
    known = getattr(lab.train, name)
    assert told < set(known.__signature__.parameters) and all(
        each in known.__doc__ for each in told
    )


def test_settings_are_what_was_stored():
    settings = ClimbSettings(lab.Rules(2, 3, 0.2), size=2, seed=7)
    assert settings.facts == {"board": "2x3", "p4": 0.2, "seed": 7, "size": 2.0}
    assert ClimbSettings.from_facts(json.loads(json.dumps(settings.facts))) == settings
    with pytest.raises(ValueError, match="it does not say what size is"):
        ClimbSettings.from_facts({**settings.facts, "size": "2"})
    assert settings.resumed({"seed": 6, "board": "2X3"}, "x", run=1) == settings
    with pytest.raises(ValueError, match=r"x was begun with `p4=0\.2`, not 0\.1"):
        settings.resumed({"p4": 0.1}, "x")


def test_a_set_of_runs_that_was_stopped_has_the_settings_of_the_first(own_home, climb):
    entry = registry.find_learner("climb")
    learner = entry.load()(ClimbSettings(lab.Rules(2, 2), size=3.0, seed=4), 1)
    learner.save(network_folder("s-1") / FILE)
    asked = resume.TrainingRequest({}, "s", resume=True, runs=3)
    plans = [resume.plan(entry, asked, run) for run in range(3)]
    assert [(each.settings.size, each.settings.seed) for each in plans] == [(3, 4), (3, 5), (3, 6)]
    assert [each.stamp is None for each in plans] == [False, True, True]
    with pytest.raises(ValueError, match=r"s-1 was begun with `size=3\.0`, not 2"):
        resume.plan(entry, resume.TrainingRequest({"size": 2}, "s", resume=True, runs=3), 2)


def test_limits_become_a_goal():
    settings = SupervisedSettings(lab.Rules(2, 2))
    assert goal_of(settings, {}, {}) == Goal(10)
    assert goal_of(settings, {"minutes": 2.0}, {}) == Goal(seconds=120.0)
    assert goal_of(settings, {"steps": 5}, {"epochs": 10}) == Goal(10, counts={"steps": 5})
    assert checked_limits(NTupleSettings, {"episodes": None, "moves": "2k"}) == {"moves": 2000}
    assert checked_limits(SupervisedSettings, {}) == {}


def test_room_on_the_disk_is_looked_for(tmp_path):
    trainer.check_room(0, tmp_path)
    with pytest.raises(OSError, match=r"the network may need 1,000 PB"):
        trainer.check_room(10**18, tmp_path / "not" / "there")


def test_records_come_in_parts():
    learner = Climb(ClimbSettings(lab.Rules(2, 2)), 1)
    goal, due = Goal(100), []
    learner.start(goal)
    for done in range(1, 101):
        learner.done = done
        due += [done] * learner.due(goal)
    assert due == list(range(5, 101, 5))


# -- the distance from perfect play --------------------------------------------------------------


def test_where_the_distance_from_perfect_play_is_exact():
    def choose(ranks, legal):
        return legal.argmax(axis=1)

    small, large, largest = (lab.player(choose, board) for board in ("2x3", "3x3", "3x4"))
    for boards, found in (("small", (True, False)), ("all", (True, True)), ("none", (False,) * 2)):
        assert (exact_at_records(small, boards), exact_at_records(large, boards)) == found
    assert exact_at_end(large) and not exact_at_end(largest)
    draws = lab.player("random", "2x2")
    assert exact_at_records(draws, "small")
    unknown = lab.player("montecarlo", "2x2")
    assert not exact_at_records(unknown, "all") and not exact_at_end(unknown)


def test_what_was_judged_by_games_is_measured_exactly_at_the_end(monkeypatch):
    learner = Climb(ClimbSettings(lab.Rules(3, 3)), 1)
    monkeypatch.setattr(distance, "exactly", lambda player, table, threads: {"mean": 7.0})
    monkeypatch.setattr(distance, "by_games", lambda player, table, threads: {"mean": 6.0})
    measure = trainer.Measurement(None)
    record = {"steps": 0, **measure.record(learner)}
    assert record["judged"] == {"mean": 6.0} and "exact" not in record
    assert measure.at_end(learner, [record]) == {"mean": 7.0} and "exact" not in record
    monkeypatch.setattr(Climb, "exact_records", "all")
    assert measure.record(learner) == {"exact": {"mean": 7.0}} and measure.seconds > 0
    assert measure.at_end(learner, [{"steps": 0, "exact": {"mean": 8.0}}]) == {"mean": 8.0}


def test_a_curve_is_of_the_best_that_was_measured():
    judged = [{"steps": n, "loss": 1.0, "judged": {"mean": 10.0 * n}} for n in (1, 2)]
    exact = [{"steps": 2, "loss": 1.0, "exact": {"mean": 7.0}, "judged": {"mean": 8.0}}]
    assert measured([judged]) == "judged" and measured([exact]) == "exact"
    assert measured([judged, exact]) == "judged" and measured([[{"loss": 1.0}]]) == ""
    assert [(p.count, p.mean) for p in curve([judged], "steps")] == [(1, 10.0), (2, 20.0)]
    assert [(p.count, p.mean) for p in curve([judged, exact], "steps")] == [(2, 14.0)]


@pytest.mark.parametrize(
    ("error", "said"), [(ImportError("no"), []), (TypeError("odd protobuf"), ["odd protobuf"])]
)
def test_tensorboard_that_does_not_work_is_told(tmp_path, monkeypatch, error, said):
    class Broken:
        def __getattr__(self, name):
            raise error

    monkeypatch.setitem(sys.modules, "lab2048.learn.tensorboard", Broken())
    heard = []
    Logs(tmp_path, 0, heard.append).add({"games": 1, "mean": 2.0})
    assert len(heard) == len(said) and all(map(str.__contains__, heard, said))
    assert read_log(tmp_path, 1) == [{"games": 1, "mean": 2.0}]


# -- what is imported --------------------------------------------------------------------------


def test_listing_learners_imports_nothing_large():
    code = (
        "import sys; from lab2048.learn.registry import learners\n"
        "assert {'ntuple', 'supervised', 'zero'} <= set(learners())\n"
        "for each in learners().values(): each.load_settings()\n"
        "assert not {'numpy', 'numba', 'torch'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_one_entry_makes_a_player_too():
    code = (
        "from lab2048.players.registry import PLAYERS, player_names\n"
        "known, names = {*PLAYERS}, player_names()\n"
        "from lab2048.learn.registry import learners\n"
        "assert {*learners()} <= known <= {*names} and len(names) == len({*names})\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_example_is_a_call_and_a_command():
    entry = registry.find_learner("ntuple")
    assert entry.call() == 'lab2048.train.ntuple("4x4", episodes="100k", out="NAME")'
    assert entry.command("3x3").endswith("ntuple --board 3x3 --episodes 100k --out NAME")
    own = registry.LearnerEntry("climb", Climb)
    assert own.call() == 'lab2048.train.climb("2x2", steps=1000, out="NAME")'


def test_learners_of_other_distributions_are_found(own_home, tmp_path):
    about = tmp_path / "climber-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: climber\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[lab2048.learners]\nclimb = tests.learn.climber:Climb\n"
    )
    paths = os.pathsep.join([str(tmp_path), os.getcwd(), os.environ.get("PYTHONPATH", "")])
    names = "from lab2048.players.registry import player_names; print(player_names())"
    helped = ("-m", "lab2048", "train", "climb", "--help")
    for arguments, wanted in ((helped, "Size of a change; 0.5."), (("-c", names), "'climb'")):
        done = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
        assert done.returncode == 0 and wanted in done.stdout, done.stderr


@dataclass(frozen=True)
class AllKinds(lab.LearnerSettings):
    layers: int = lab.setting(2, "A whole number", low=1, high=9)
    fast: bool = lab.setting(True, "Yes or no")
    limit: float | None = lab.setting(None, "A number, if any", kind=float)
    names: tuple[str, ...] = lab.setting((), "Some texts")


def test_settings_are_of_their_kinds():
    rules = lab.Rules(2, 2)
    assert AllKinds(rules, layers=3.0).layers == 3
    for wrong in ({"layers": 2.7}, {"fast": "no"}, {"fast": 1}, {"limit": "x"}):
        with pytest.raises(ValueError, match="|".join(wrong)):
            AllKinds(rules, **wrong)


def test_settings_of_all_kinds_are_stored_and_may_be_added_later():
    settings = AllKinds(lab.Rules(2, 2), fast=False, limit=0.5, names=["a", "b"])
    stored = json.loads(json.dumps(settings.facts))
    assert AllKinds.from_facts(stored) == settings
    del stored["limit"], stored["layers"]
    assert AllKinds.from_facts(stored) == dataclasses.replace(settings, limit=None)
    with pytest.raises(ValueError, match="fast"):
        AllKinds.from_facts({**stored, "fast": "no"})


def test_a_learner_has_no_name_of_a_player():
    with pytest.raises(ValueError, match="name of a player"):
        lab.register_learner("mcts", Climb)
    assert "mcts" not in registry.learners()


class Failing:
    """What TensorBoard reads, on a disk that is full."""

    def add(self, numbers):
        raise OSError(28, "No space left on device", "events")

    def close(self):
        """Nothing is open."""


def test_a_log_is_written_though_tensorboard_fails(tmp_path):
    said = []
    logs = Logs(tmp_path, 0, said.append, "steps")
    logs.close()
    logs._board = Failing()
    for steps in (1, 2):
        logs.add({"steps": steps, "mean": 1.0})
    assert said == ["the TensorBoard file cannot be written: events: No space left on device"]
    assert len(read_log(tmp_path, 9, "steps")) == 2
