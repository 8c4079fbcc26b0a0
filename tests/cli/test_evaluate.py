"""The commands evaluate, replay and review: what they print and write, and how they fail."""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from lab2048.measure import journal

SMALL = ("--board", "2x2", "--games", "20", "--seed", "3")


@pytest.fixture
def games(tmp_path, command, warm_home):
    """A file of ten games of greedy on 2x2."""
    path = tmp_path / "games.jsonl"
    code, _, err = command("evaluate", "greedy", *SMALL, "--games", "10", "--save", str(path))
    assert code == 0 and f"saved 10 games in {path}" in err
    return path


# -- what is printed ---------------------------------------------------------------------------


@pytest.mark.slow
def test_the_figures_as_json(command, warm_home):
    code, out, _ = command("evaluate", "greedy", "random", *SMALL, "--exact", "--json")
    assert code == 0
    greedy, random = json.loads(out)
    assert greedy["player"] == "greedy" and random["player"] == "random"
    for found in (greedy, random):
        assert (found["board"], found["games"], found["seed"]) == ("2x2", 20, 3)
        assert {"mean", "ci95", "sd", "median", "min", "max"} == set(found["score"])
        low, high = found["score"]["ci95"]
        assert found["score"]["min"] <= low <= found["score"]["mean"] <= high
        assert {"mean", "ci95"} == set(found["max_tile"])
        assert found["moves"]["mean"] > 1
        assert all({"rate", "ci95"} == set(tile) for tile in found["reach"].values())
        assert found["moves_per_second"] > 0
        exact, optimal = found["exact"], found["optimal"]
        assert exact["value"] + exact["regret"] == pytest.approx(exact["optimal_value"], abs=1e-6)
        assert exact["optimal_value"] == pytest.approx(66.9641, abs=1e-4)
        assert {"mean", "ci95"} == set(optimal["regret_per_game"])
        assert 0 < optimal["agreement"] < 1 and optimal["regret_per_move"] > 0
        assert len(optimal["by_gap"]) == 5
    assert greedy["exact"]["value"] == pytest.approx(26.793, abs=1e-3)


@pytest.mark.slow
def test_the_same_figures_in_other_forms(command, warm_home):
    _, out, _ = command("evaluate", "greedy", *SMALL, "--json")
    (found,) = json.loads(out)
    _, out, _ = command("evaluate", "greedy", *SMALL, "--csv")
    (row,) = csv.DictReader(io.StringIO(out))
    assert float(row["mean"]) == found["score"]["mean"]
    assert float(row["agreement"]) == found["optimal"]["agreement"]
    assert float(row["reach_16"]) == found["reach"].get("16", {"rate": 0})["rate"]
    _, out, _ = command("evaluate", "greedy", *SMALL, "--latex")
    assert rf"\texttt{{greedy}} & {found['score']['mean']:,.1f}" in out
    assert rf"& $\approx$ {found['optimal']['regret_per_game']['mean']:,.1f} &" in out
    _, out, _ = command("evaluate", "greedy", *SMALL)
    assert f"{found['score']['mean']:,.1f}" in out and f"{found['optimal']['agreement']:.1%}" in out
    assert "may exceed what perfect play scores" in " ".join(out.split())
    assert "may exceed" not in command("evaluate", "greedy", *SMALL, "--exact")[1]


@pytest.mark.slow
def test_who_is_better_on_the_same_games(command, warm_home):
    _, out, _ = command("evaluate", "random", "greedy", *SMALL, "--json")
    random, greedy = json.loads(out)
    paired = greedy["paired"]
    assert paired["against"] == "random"
    difference = greedy["score"]["mean"] - random["score"]["mean"]
    assert paired["difference"]["mean"] == pytest.approx(difference)


def test_the_players_and_their_options(command):
    code, out, _ = command("players", "--json")
    found = json.loads(out)
    assert code == 0 and found["expectimax"]["options"]["depth"]["default"] == 3
    assert max(map(len, command("players")[1].splitlines())) < 120


# -- pages -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_report_stands_alone(command, warm_home, tmp_path):
    page, plots = tmp_path / "new" / "page.html", tmp_path / "plots"
    wanted = ("--report", str(page), "--plots", str(plots))
    code, _, err = command("evaluate", "greedy", "random", *SMALL, *wanted)
    assert code == 0 and f"wrote {page}" in err
    text = page.read_text()
    assert text.count("<svg") >= 4 and "evaluate greedy random --board 2x2" in text
    assert "<script" not in text and "src=" not in text and "@import" not in text
    names = {path.name for path in plots.iterdir()}
    assert len(names) == text.count("<svg") and all(name.startswith("2x2-") for name in names)


@pytest.mark.slow
def test_a_page_about_a_game(command, games, tmp_path):
    page = tmp_path / "review.html"
    wanted = ("review", str(games), "--game", "2", "--html", str(page), "--json")
    code, out, _ = command(*wanted)
    found = json.loads(out)
    assert code == 0 and found["judge"] == "perfect play" and found["loss"] > 0
    text = page.read_text()
    assert "<svg" in text and "src=" not in text
    told = json.loads(text.partition('id="game">')[2].partition("</script>")[0])
    assert [board for board, _, _ in told["steps"]] == [step["board"] for step in found["steps"]]
    code, _, err = command(*wanted)
    assert code == 2 and "exists already: --force replaces it" in err
    assert command(*wanted, "--force")[0] == 0


# -- games that were kept ----------------------------------------------------------------------


@pytest.mark.slow
def test_games_are_replayed_and_reviewed(command, games):
    code, out, _ = command("replay", str(games))
    assert code == 0 and out.startswith("10 games with ")
    record = json.loads(games.read_text().splitlines()[3])
    shown = command("replay", str(games), "--game", "4")[1].splitlines()
    assert len(shown) == len(record["moves"]) + 1 and f"score {record['score']}" in shown[-1]
    _, out, _ = command("review", str(games), "--game", "4")
    assert f"score {record['score']}" in out and "of the moves are best" in out
    assert len(out.splitlines()) < 30 and "points" in out
    _, whole, _ = command("review", str(games), "--game", "4", "--all")
    assert len(whole.splitlines()) > len(record["moves"])
    _, told, _ = command("review", str(games), "--game", "4", "--json")
    steps = json.loads(told)["steps"]
    assert "".join(step["move"][0] for step in steps) == "".join(
        "urdl"[int(move)] for move in record["moves"]
    )
    _, out, _ = command("replay", str(games), "--game", "4", "--json")
    assert len(json.loads(out)["turns"]) == len(record["moves"])
    _, out, _ = command("review", str(games), "--by", "expectimax:depth=2", "--json")
    found = json.loads(out)
    assert found["judge"] == "expectimax:depth=2" and found["loss"] is None
    assert set(found["marks"]) <= {"best", "other"} and "not known" in found["caveat"]
    assert "points" not in command("review", str(games), "--by", "expectimax:depth=2")[1]
    code, _, err = command("review", str(games), "--by", "sparse:depth=2,terminal=avoid", "--json")
    assert code == 2 and "minus infinity" in err


@pytest.mark.slow
def test_a_file_cannot_write_to_the_terminal(command, games):
    line = json.loads(games.read_text().splitlines()[0])
    games.write_text(json.dumps({**line, "player": "me\x1b[31m\u202e\n"}) + "\n")
    _, out, _ = command("review", str(games))
    assert "\x1b" not in out and "\u202e" not in out and out.startswith("me?[31m?? on 2x2")


@pytest.mark.slow
def test_a_player_agrees_with_itself(command, warm_home, tmp_path):
    """Values that differ by rounding are no mistakes."""
    path = str(tmp_path / "games.jsonl")
    command("evaluate", "expectimax:depth=3", "--board", "3x2", "--games", "3", "--save", path)
    for game in "123":
        out = command("review", path, "--game", game, "--by", "expectimax:depth=3", "--json")[1]
        assert json.loads(out)["agreement"] == 1 and json.loads(out)["worst"] == []


@pytest.mark.slow
def test_parquet_holds_the_same_games(command, games, tmp_path):
    from lab2048.game.record import read_records

    path = tmp_path / "games.parquet"
    command("evaluate", "greedy", *SMALL, "--games", "10", "--save", str(path))
    assert list(read_records(path)) == list(read_records(games))
    assert command("replay", str(path)) == command("replay", str(games))
    path.write_bytes(path.read_bytes()[:300])
    code, _, err = command("replay", str(path))
    assert code == 2 and len(without_compiling(err)) == 1 and "games.parquet" in err


@pytest.mark.parametrize("name", ["games.jsonl", "games.parquet"])
def test_a_game_may_begin_anywhere(command, tmp_path, name):
    from lab2048.game import Board, Game, Rules
    from lab2048.game.record import Record, read_records, write_records

    start = Board.parse("16 4 / 2 8 / . 2")
    games = [Game(Rules(3, 2), 1), Game(Rules(3, 2), 2, start=start)]
    for game in games:
        while not game.over:
            game.play(game.board.legal_moves[0])
    records = [Record.of(game, "me") for game in games]
    write_records(records, tmp_path / name)
    assert list(read_records(tmp_path / name)) == records
    turns = list(records[1].turns())
    assert (turns[0].board, turns[-1].next) == (start, games[1].board)
    assert len(records[1].spawns) == 2 * len(records[1].moves)
    assert command("replay", str(tmp_path / name))[0] == 0


# -- stopped on the way ------------------------------------------------------------------------

LONG = ("evaluate", "montecarlo:rollouts=10", "--board", "3x3", "--games", "300", "--seed", "5")


def figures_of(out):
    """What a command has printed as JSON, without what depends on the machine."""
    return {k: v for k, v in json.loads(out)[0].items() if k != "moves_per_second"}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_match_that_was_stopped_goes_on(command, warm_home, number):
    started = subprocess.Popen(
        [sys.executable, "-m", "lab2048", *LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    journals = warm_home / "matches"
    until = time.monotonic() + 120
    while not (journals.is_dir() and any(p.read_text() for p in journals.iterdir())):
        assert time.monotonic() < until and started.poll() is None
        time.sleep(0.01)
    started.send_signal(number)
    _, said = started.communicate(timeout=60)
    assert started.returncode == (130 if number == signal.SIGINT else -number)
    if number == signal.SIGINT:
        assert b"the same command resumes" in said and b"Traceback" not in said
    kept = sum(len(path.read_text().splitlines()) - 1 for path in journals.iterdir())
    assert 0 < kept < 300
    _, again, said = command(*LONG, "--json")
    assert f"{kept} of 300 games of montecarlo:rollouts=10 were played before" in said
    assert not list(journals.iterdir())
    _, whole, _ = command(*LONG, "--json")
    assert figures_of(again) == figures_of(whole)


@contextmanager
def small_files():
    """Let no file of this process grow beyond some hundred bytes, as on a disk that is full."""
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (700, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.slow
@pytest.mark.parametrize("wanted", ["journal", "games.jsonl", "games.parquet", "page.html"])
def test_a_full_disk_is_said_and_nothing_is_lost(command, warm_home, tmp_path, wanted):
    arguments = ["evaluate", "greedy", "--board", "2x2", "--games", "5", "--seed", "1"]
    if wanted == "journal":
        arguments[arguments.index("--games") + 1] = "500"
    else:
        option = "--report" if wanted == "page.html" else "--save"
        arguments += [option, str(tmp_path / wanted), "--force"]
    assert command(*arguments)[0] == 0  # everything is compiled and solved
    if wanted != "journal":
        (tmp_path / wanted).write_text("what was there before")
    with small_files():
        code, _, said = command(*arguments)
    assert "Traceback" not in said
    if wanted == "journal":  # which costs only that the match cannot be taken up again
        assert code == 0, said
        kept = f"lab2048: cannot keep finished games in {warm_home / 'matches'}: File too large"
        assert kept in said.splitlines()
    else:
        last = said.splitlines()[-1]
        assert code == 1, said
        assert last.startswith(f"lab2048: {tmp_path / wanted}") and "File too large" in last
        assert (tmp_path / wanted).read_text() == "what was there before"
        assert not list(tmp_path.glob("*.part"))
        kept = next((warm_home / "matches").iterdir()).read_text()
        assert len(kept.splitlines()) - 1 == 5  # to be written the next time
    assert command(*arguments)[0] == 0


@pytest.mark.skipif(not os.path.isdir("/sys"), reason="a folder that nobody can write to")
@pytest.mark.slow
def test_what_needs_no_writing_works_without_a_data_folder(command, monkeypatch):
    monkeypatch.setenv("LAB2048_HOME", "/sys/lab2048")
    code, out, error = command("evaluate", "greedy", "optimal", "--board", "2x2", "--json")
    assert code == 0, error
    greedy, optimal = (each["optimal"]["regret_per_game"]["mean"] for each in json.loads(out))
    assert optimal == 0 < greedy
    said = [line for line in error.splitlines() if line.startswith("lab2048: ")]
    for what in ("cannot keep the table 2x2-score", "cannot keep finished games", "the results"):
        assert any(what in line for line in said), said
    code, out, error = command("probe", "2 2 / . .", "--player", "greedy")
    assert code == 0 and "value " in out and "greedy: " in out, error


# -- bad input ---------------------------------------------------------------------------------

BAD = {
    "evaluate": "Missing argument",
    "evaluate rndom": "there is no player 'rndom'; did you mean random?",
    "evaluate expectimax:dept=3": "did you mean depth?",
    "evaluate expectimax:depth=0": "depth is a whole number from 1",
    "evaluate expectimax:depth=-1": "depth is a whole number from 1",
    "evaluate expectimax:depth=1e9": "depth is a whole number from 1",
    "evaluate expectimax:depth=١": "depth is a whole number from 1",
    "evaluate mcts:c1=１.５": "c1 is a number from 0",
    "evaluate random --seed ٣": "Input should be a valid integer",
    "evaluate random --board ٢x٢": "a board size is written ROWSxCOLS",
    "survey 2x2 --p4 ٠,1": "--p4 is a number or several with commas",
    "evaluate expectimax:time=-1ms": "time is a time such as 10ms",
    "evaluate expectimax:time=1y": "time",
    "evaluate montecarlo:rollouts=0": "rollouts is a whole number from 1",
    "evaluate mcts:simulations=nan": "simulations is a whole number from",
    "evaluate sparse:gamma=2": "gamma is a number from 0 to 1",
    "evaluate greedy greedy": "the same player is given twice",
    "evaluate greedy --games 0": "'--games'",
    "evaluate greedy --seed -1": "a seed is a whole number",
    "evaluate greedy --board 9x9": "a board has 2 to 6 rows",
    "evaluate greedy --table nowhere": "there is no table nowhere",
    "evaluate greedy --json --csv": "only one of",
    "evaluate greedy --save games.txt": "games are saved in a .jsonl or a .parquet file",
    "evaluate greedy --save /dev/null/games.jsonl": "/dev/null is a file",
    "evaluate greedy --report .": ". is a folder",
    "evaluate greedy --exact": "exact values are for boards that can be solved",
    "evaluate montecarlo --board 2x2 --exact": "it draws random games",
    "evaluate expectimax:time=5ms --board 2x2 --exact": "it depends on time",
    "evaluate optimal": "optimal: boards of up to 12 cells can be solved; 4x4 has 16",
    "evaluate python:nowhere.player": "No module named 'nowhere'",
    "evaluate python:os.path": "cannot be called",
    "evaluate python:os": "python:MODULE.FUNCTION names",
    "replay nowhere.jsonl": "file 'nowhere.jsonl' does not exist",
    "review nowhere.jsonl": "file 'nowhere.jsonl' does not exist",
    "review /dev/null --by greedy --table 2x2": "not by both",
    "review /dev/null": "has no game 1",
    "replay /dev/null": "has no games",
}


def without_compiling(err):
    """What was said on stderr, but for lines on kernels being compiled, here or by another test."""
    return [line for line in err.splitlines() if "kernels" not in line]


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_answered_in_one_line(line, command, warm_home):
    code, out, err = command(*line.split())
    assert code == 2 and out == ""
    (said,) = without_compiling(err)
    assert said.startswith("lab2048: ") and BAD[line] in said and len(said) < 250


@pytest.mark.slow
def test_a_table_of_other_rules_is_refused(command, made, warm_home):
    code, _, err = command("evaluate", "greedy", "--board", "2x2", "--table", str(made))
    (said,) = without_compiling(err)
    assert code == 2 and "what is asked for is 2x2-score" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("[9] * len(boards)", "direction 9"),
        ("[0] * len(boards)", "which is not legal"),
        ("legal * float('nan')", "not numbers"),
        ("None", "shape ()"),
        ("1 / 0", "ZeroDivisionError: division by zero (mine"),
    ],
)
def test_a_function_that_misbehaves(answer, message, command, warm_home, tmp_path, monkeypatch):
    name = f"mine{abs(hash(answer))}"
    code = f"def player(boards, legal):\n    return {answer}\n"
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    code, out, err = command("evaluate", f"python:{name}.player", *SMALL)
    assert (code, out) == (2, "") and err.splitlines()[-1].startswith("lab2048: ")
    assert message in err.splitlines()[-1] and "Traceback" not in err


def test_a_changed_function_begins_anew(tmp_path, monkeypatch, own_home):
    from lab2048 import Rules
    from lab2048.players.custom import load

    monkeypatch.chdir(tmp_path)
    paths = set()
    for number in range(2):
        source = f"""
from functools import partial
def player(boards, legal):
    return legal.argmax(1)  # {number}
other = partial(player)
"""
        (tmp_path / "changing.py").write_text(source)
        sys.modules.pop("changing", None)
        os.utime(tmp_path / "changing.py", (number, number))  # or Python would not look again
        for name in ("player", "other"):
            paths.add(journal.journal_path(load(f"changing.{name}", Rules(2, 2)), 1))
    assert len(paths) == 4
