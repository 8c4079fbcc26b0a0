"""The command `train`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from lab2048.learn import checkpoint as folder_module
from lab2048.learn import td as td_module
from lab2048.learn import trainer as trainer_module
from lab2048.learn.checkpoint import read_log
from lab2048.learn.network_files import FILE, network_folder, read_facts
from tests.conftest import run_command

FEW = ("train", "ntuple", "--board", "2x2", "--network", "0123")


@pytest.mark.slow
def test_the_command_trains_lists_packs_and_plays(own_home, command, tmp_path):
    code, out, err = command(*FEW, "--episodes", "2k", "--out", "a", "--block", "500")
    assert code == 0 and "largest tile" in out and "the last 1,000 of 2,000 games" in out
    assert "a: 2x2, tuples 0123 (65,536 weights" in err and err.count(" games  tc") == 4
    log = read_log(network_folder("a"), 10**9)
    assert [each["games"] for each in log] == [500, 1000, 1500, 2000]
    assert log[-1]["reach"]["8"] > 0.5 and log[-1]["moves_per_second"] > 0
    code, out, err = command(*FEW, "--episodes", "2k", "--out", "a")
    assert code == 2 and "there is a network a already" in err
    again = ("train", "ntuple", "--resume", "--out", "a", "--episodes")
    code, out, err = command(*again, "3k", "--json")
    found = json.loads(out)[0]
    assert found["games"] == 3000 and found["name"] == "a" and "going on after 2,000" in err
    code, out, err = command(*again, "4k", "--method", "td")
    assert code == 2 and "a was begun with --method tc, not td" in err
    code, out, err = command("train", "list")
    assert code == 0 and "0123" in out and "3,000" in out
    code, out, err = command("train", "pack", "a", str(tmp_path / "a.safetensors"), "--step", "1")
    assert code == 0 and "wrote" in out
    code, out, err = command("train", "pack", "a", str(network_folder("a") / FILE))
    assert code == 2 and "is among the networks that learn" in err
    code, out, err = command(*again, "3k")
    assert code == 0 and "it has had 3,000 games already: there is nothing left to do" in err
    code, out, err = command("evaluate", "ntuple:a", "--board", "2x2", "--games", "50", "--json")
    assert code == 0 and json.loads(out)[0]["score"]["mean"] > 40


@pytest.mark.slow
def test_runs_that_were_stopped_go_on(own_home, command):
    several = (*FEW, "--runs", "2", "--out", "s", "--episodes")
    assert command(*several, "200")[0] == 0
    shutil.rmtree(network_folder("s-2"))
    again = ("train", "ntuple", "--resume", "--runs", "2", "--out", "s", "--network", "3210")
    code, _, err = command(*again, "--episodes", "300", "--rate", "1", "--seed", "1")
    assert code == 0, err
    assert [read_facts(network_folder(f"s-{n}") / FILE)["games"] for n in (1, 2)] == [300, 300]
    assert [read_facts(network_folder(f"s-{n}") / FILE)["seed"] for n in (1, 2)] == [1, 2]


@pytest.mark.slow
def test_two_phases_whatever_the_blocks(own_home, command):
    code, _, err = command(*FEW, "--method", "td+tc", "--episodes", "200", "--block", "200")
    assert code == 0, err
    facts = read_facts(network_folder("2x2-blocks-td+tc") / FILE)
    assert facts["phase"] == 1 and facts["games"] == 200


@pytest.mark.slow
def test_a_training_lasts_for_a_number_of_moves(own_home, command):
    code, out, err = command(*FEW, "--moves", "50k", "--out", "m", "--json")
    [found] = json.loads(out)
    assert code == 0 and 50_000 <= found["moves"] < 50_100, err
    again = ("train", "ntuple", "--resume", "--out", "m")
    assert json.loads(command(*again, "--moves", "60k", "--json")[1])[0]["moves"] >= 60_000
    code, _, err = command(*again, "--moves", "60k", "--episodes", "9k")
    assert code == 2 and LASTS in err


@pytest.mark.slow
def test_runs_against_perfect_play(own_home, command, tmp_path):
    plot = tmp_path / "p.svg"
    code, out, err = command(
        *FEW, "--episodes", "5k", "--block", "log", "--runs", "3", "--out", "r",
        "--against", "2x2", "--plot", str(plot),
    )  # fmt: skip
    assert code == 0, err
    assert "3 trainings; +/-: 95% across them" in out and "exact mean" in out
    assert err.count("% of perfect; values off by") == 9  # after 1000, 2000, 5000 games
    last = read_log(network_folder("r-3"), 10**9)[-1]["exact"]
    assert 0.7 < last["share"] <= 1 and last["regret"] == pytest.approx(
        last["mean"] / last["share"] - last["mean"]
    )
    assert "<svg" in plot.read_text() and "perfect play" in plot.read_text()


LASTS = "a training lasts for --episodes, --moves or --minutes"
BAD = [
    (("--episodes", "0"), "the number of games is from 1 to 1,000,000,000,000, not 0"),
    (("--episodes", "many"), "a number of games is written like"),
    ((), LASTS),
    (
        ("--episodes", "10", "--minutes", "1"),
        "a training lasts for --episodes, --moves or --minutes",
    ),
    (("--minutes", "0"), "--minutes is a number above 0"),
    (("--episodes", "10", "--out", "../x"), "a network's name is of letters"),
    (("--episodes", "10", "--network", "0129"), "the tuple 0129 has cell 9"),
    (("--episodes", "10", "--method", "magic"), "there is no method 'magic'"),
    (("--episodes", "10", "--resume", "--out", "none"), "there is no network none to go on with"),
    (("--episodes", "10", "--plot", "x.gif"), "a picture is .svg, .png or .pdf"),
    (("--episodes", "10", "--block", "0"), "a block is a number of games, or log"),
    (("--episodes", "10", "--block", "\u00b2"), "a block is a number of games, or log"),
    (("--episodes", "10", "--against", "3x3", "--gamma", "0.9"), "a table has no discount"),
    (("--episodes", "10", "--rate", "0"), "rate is a number from 1e-06 to 2, not 0"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD, ids=[" ".join(each[0]) for each in BAD])
def test_bad_commands_are_told_in_a_line(own_home, command, arguments, said):
    code, out, err = command("train", "ntuple", "--board", "3x3", *arguments)
    lines = [line for line in err.splitlines() if "compiling kernels" not in line]
    assert code == 2 and out == "" and len(lines) == 1 and said in lines[0]


@pytest.mark.slow
def test_a_log_that_cannot_be_written_ends_no_training(own_home, command):
    (network_folder("a") / "log.jsonl").mkdir(parents=True)
    code, _, err = command(*FEW, "--episodes", "300", "--block", "100", "--out", "a")
    assert code == 0 and err.count("the log cannot be written") == 1
    assert read_facts(network_folder("a") / FILE)["games"] == 300


@pytest.mark.slow
def test_no_room_on_the_disk(own_home, command, monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(trainer_module.shutil, "disk_usage", lambda _: usage._replace(free=1000))
    code, _, err = command(*FEW, "--episodes", "300", "--out", "a")
    assert code == 1 and "the network may need 419 kB" in err and "1 kB is free" in err
    monkeypatch.undo()
    monkeypatch.setenv("LAB2048_HOME", str(own_home))
    monkeypatch.setattr(folder_module, "SAVE_SECONDS", 0.0)
    real = td_module.write_weights
    monkeypatch.setattr(td_module, "write_weights", failing_once(real))
    code, _, err = command(*FEW, "--episodes", "300", "--block", "100", "--out", "a")
    assert code == 0 and "the network cannot be saved now" in err and "No space left" in err
    assert read_facts(network_folder("a") / FILE)["games"] == 300
    monkeypatch.setattr(folder_module, "SAVE_SECONDS", 300.0)
    monkeypatch.setattr(folder_module, "PAUSE", 0.0)
    monkeypatch.setattr(td_module, "write_weights", failing_once(real))
    code, _, err = command(*FEW, "--episodes", "300", "--block", "100", "--out", "b")
    assert code == 0 and err.count("the network cannot be saved now") == 1
    assert read_facts(network_folder("b") / FILE)["games"] == 300


def failing_once(write):
    """A writer whose first write finds the disk full."""
    failed = []

    def call(path, stored):
        if not failed:
            failed.append(path)
            raise OSError(28, "No space left on device", str(path))
        write(path, stored)

    return call


@pytest.mark.slow
def test_what_is_killed_goes_on(warm_home):
    code = (
        "import sys\nfrom lab2048.learn import checkpoint\ncheckpoint.SAVE_SECONDS = 0.1\n"
        "sys.argv = ['lab2048', *sys.argv[1:]]\nfrom lab2048.cli import main\nmain()\n"
    )
    arguments = ["train", "ntuple", "--board", "3x3", "--network", "012 345", "--out", "k"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments, "--episodes", "1M", "--block", "100"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    path = network_folder("k") / FILE
    end = time.monotonic() + 120
    while not path.exists() and time.monotonic() < end and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    games = read_facts(path)["games"]
    assert games > 0
    done = run_command("train", "ntuple", "--resume", "--out", "k", "--episodes", str(games + 100))
    assert f"going on after {games:,} games" in done.stderr
    log = read_log(network_folder("k"), 10**9)
    assert [each["games"] for each in log] == list(range(100, games + 101, 100))


LONG = (
    "train", "ntuple", "--board", "3x3", "--network", "012 345", "--out", "c",
    "--episodes", "1M", "--block", "1000",
)  # fmt: skip


HEARD = """
import signal, sys
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    signal.signal(getattr(signal, name), signal.SIG_DFL)
sys.argv = ["lab2048", *sys.argv[1:]]
from lab2048.cli import main
main()
"""
"""The command, with signals that do what they usually do, also if tests run in the background."""


@pytest.fixture
def begun(warm_home):
    """A training that has begun."""
    process = subprocess.Popen(
        [sys.executable, "-c", HEARD, *LONG],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for line in process.stderr:
        if "1,000 games" in line:
            break
    yield process
    process.kill()
    process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_what_is_stopped_keeps_what_it_has_learnt(begun, name):
    process = begun
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "--resume goes on from there" in err and out == ""
    assert read_facts(network_folder("c") / FILE)["games"] >= 1000


@pytest.mark.slow
def test_what_is_ignored_stops_nothing(warm_home):
    command = ["nohup", sys.executable, "-m", "lab2048", *LONG]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        for line in process.stderr:
            if "1,000 games" in line:
                break
        process.send_signal(signal.SIGHUP)
        time.sleep(1)
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_a_second_ctrl_c_keeps_what_was_learnt(own_home, command, monkeypatch):
    def measure(player, table, threads):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

    monkeypatch.setattr("lab2048.learn.distance.exactly", measure)
    arguments = ("--episodes", "300", "--block", "100", "--out", "a", "--against", "2x2")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    code, _, err = command(*FEW, *arguments)
    signal.signal(signal.SIGINT, before)
    assert code == 130 and "lab2048: stopping" in err
    assert read_facts(network_folder("a") / FILE)["games"] == 100
    monkeypatch.undo()
    monkeypatch.setenv("LAB2048_HOME", str(own_home))
    (network_folder("a") / f"{FILE}.0.part").touch()
    again = ("train", "ntuple", "--resume", "--out", "a", "--episodes", "300", "--block", "100")
    assert command(*again, "--against", "2x2")[0] == 0
    assert not list(network_folder("a").glob("*.part"))
    log = read_log(network_folder("a"), 10**9)
    assert [each["games"] for each in log][-2:] == [200, 300]


@pytest.mark.slow
def test_what_was_not_measured_is_measured_later(own_home, command):
    few = ("--block", "100", "--out", "a")
    assert command(*FEW, *few, "--episodes", "200")[0] == 0
    again = ("train", "ntuple", "--resume", *few, "--episodes", "300", "--against", "2x2")
    assert command(*again)[0] == 0
    log = read_log(network_folder("a"), 10**9)
    assert ["exact" in each for each in log] == [False, True, True]


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_no_training(begun):
    begun.stderr.close()
    time.sleep(0.5)
    assert begun.poll() is None
    begun.send_signal(signal.SIGTERM)
    assert begun.wait(timeout=60) == 130
    begun.stderr = open(os.devnull)  # noqa: SIM115
    assert read_facts(network_folder("c") / FILE)["games"] >= 1000


@pytest.mark.slow
def test_one_name_is_trained_by_one_process(begun):
    refused = run_command(*LONG, code=2).stderr
    assert f"the network c is in use by process {begun.pid}" in refused
    assert begun.poll() is None


@pytest.mark.slow
def test_what_goes_wrong_costs_nothing_that_was_learnt(own_home, command, monkeypatch):
    def fail(player, table, threads):
        raise MemoryError("too much")

    monkeypatch.setattr("lab2048.learn.distance.exactly", fail)
    arguments = ("--episodes", "300", "--block", "100", "--out", "a", "--against", "2x2")
    code, _, err = command(*FEW, *arguments)
    assert code == 1 and "MemoryError: too much" in err
    assert read_facts(network_folder("a") / FILE)["games"] == 100


@pytest.mark.slow
def test_values_that_grow_beyond_all_bounds_end_a_training(own_home, command):
    several = (
        "train", "ntuple", "--board", "3x3", "--network", "012 345", "--order", "backward",
        "--episodes", "2k",
    )  # fmt: skip
    code, _, err = command(*several, "--rate", "1", "--out", "a")
    assert code == 2 and "beyond all bounds: it takes a lower rate than 1" in err
    code, _, err = command(*several, "--out", "a")
    assert code == 0 and read_log(network_folder("a"), 10**9)[-1]["mean"] > 1000


@pytest.mark.slow
def test_odd_lines_of_a_log_are_left_out(own_home, command, tmp_path):
    few = (*FEW, "--block", "100", "--out", "a")
    assert command(*few, "--episodes", "200")[0] == 0
    log = network_folder("a") / "log.jsonl"
    odd = ['{"games": 5}', '{"games": "x", "mean": 1}', '{"games": 7, "mean": "x"}', "[]", "7"]
    log.write_text("\n".join([*odd, '{"games": 8, "mean": NaN}', "", "{", log.read_text()]))
    again = ("train", "ntuple", "--resume", "--out", "a", "--episodes", "300")
    code, _, err = command(*again, "--plot", str(tmp_path / "p.svg"))
    assert code == 0 and "wrote" in err
    assert [each["games"] for each in read_log(network_folder("a"), 10**9)] == [100, 200, 300]
    log.unlink()
    code, out, err = command(*again, "--plot", str(tmp_path / "q.svg"))
    assert code == 2 and "there is no curve to draw" in err and "a is ready" in out


def test_broken_networks_are_listed(own_home, command):
    (network_folder("a") / FILE).mkdir(parents=True)
    network_folder("b").mkdir()
    (network_folder("b") / FILE).write_bytes(b"x" * 100)
    code, out, _ = command("train", "list", "--json")
    found = json.loads(out)
    assert code == 0 and "Is a directory" in found["a"]["error"]
    assert "is damaged, or no safetensors file" in found["b"]["error"]
    assert command("train", "list")[0] == 0


@pytest.mark.slow
def test_bench_prints_every_figure(command, monkeypatch):
    from lab2048.bench import engine as bench

    monkeypatch.setattr(bench, "LEARNING", [("td", "4x6")])
    monkeypatch.setattr(bench, "PLAYING", {1: 5})
    monkeypatch.setattr(bench, "REPEATS", 1)
    code, out, err = command("bench", "td", "--json")
    assert code == 0, err
    figures = json.loads(out)
    learning = figures["learning_moves_per_second"]
    assert learning.keys() == {"td 4x6 forward", "td 4x6 backward"}
    assert {"1", str(os.cpu_count())} == set(learning["td 4x6 forward"])
    assert learning["td 4x6 forward"]["1"] > 1e4 and figures["machine"]
    assert figures["playing_moves_per_second"]["depth=1"] > 1e4


@pytest.mark.slow
def test_tensorboard_can_read_the_curves(own_home, command):
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    assert command(*FEW, "--episodes", "300", "--block", "100", "--out", "t")[0] == 0
    [file] = (network_folder("t") / "tensorboard").iterdir()
    events = [event for event in EventFileLoader(str(file)).Load() if event.summary.value]
    assert [event.step for event in events] == [100, 200, 300]
    tags = {value.tag for value in events[-1].summary.value}
    assert {"mean", "max", "moves_per_second", "reach/8"} <= tags
