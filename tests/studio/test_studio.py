"""The studio without a browser: its interface, its limits, its manners under load."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from importlib import metadata
from types import SimpleNamespace

import pytest

from lab2048.game import Board, Direction, Rules
from lab2048.measure import positions as analysis
from lab2048.measure.archive import keep_results, read_results
from lab2048.players import registry
from lab2048.players.registry import PLAYERS, player_class
from lab2048.players.simple import Greedy
from lab2048.solver.problem import Problem
from lab2048.solver.table import Table
from lab2048.studio import limits, results, table_jobs
from lab2048.studio.limits import checked_player
from tests.studio.conftest import on_a_loop

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # a server, and much to compile


# -- positions -----------------------------------------------------------------------------------


def test_an_analysis_is_the_object_of_probe(client, made):
    board, rules = Board.parse("16 4 / 2 8 / . 2"), Rules(3, 2)
    asked = {"board": str(board), "player": ["greedy", "random"], "after": "down"}
    found = client.get("/api/analyse", params=asked).json()
    with Table(made) as table:
        thoughts = analysis.opinions(board, rules, ["greedy", "random"])
        wanted = analysis.probed(board, rules, table, "down", thoughts).as_json()
        exact = table.moves(board)
    assert found.pop("note") is None and found.pop("solvable") is False
    assert found == json.loads(json.dumps(wanted))
    for direction in Direction:
        legal = direction in exact
        assert found["moves"][str(direction)]["q"] == (exact[direction].q if legal else None)


def test_an_objective_is_parsed_off_the_event_loop(client, monkeypatch):
    """One that nobody knows is looked for in all distributions that are installed."""
    looked = []
    monkeypatch.setattr(metadata, "entry_points", lambda **_: looked.append(on_a_loop()) or [])
    asked = {"board": "110000", "rules": "3x2", "player": "optimal:objective=luck"}
    found = client.get("/api/analyse", params=asked)
    assert found.status_code == 400 and "luck" in found.json()["detail"]
    assert looked and not any(looked)


def test_a_position_that_no_game_reaches_is_still_analysed(client):
    found = client.get("/api/analyse", params={"board": "64 64 / 64 64 / 64 .", "player": "greedy"})
    facts = found.json()
    assert facts["value"] is None and "no game reaches" in facts["note"]
    assert facts["players"]["greedy"]["choice"] == "up"


def test_small_boards_are_solved_when_they_are_asked_for(client):
    found = {"value": None, "note": "ask again"}
    while found["value"] is None:  # on a busy machine a table takes its time
        assert "ask again" in found["note"]
        found = client.get("/api/analyse", params={"board": "2 2 / 4 ."}).json()
    assert round(found["value"], 4) == 64.9077
    chances = client.get("/api/reach", params={"board": "2 2 / 4 ."}).json()["chances"]
    assert set(chances) == {"8", "16", "32"} and chances["8"] == 1 and 0 < chances["32"] < 0.2
    names = [each["name"] for each in client.get("/api/tables").json()["tables"]]
    assert {"2x2-score", "2x2-reach-32", "3x2-score"} <= set(names)
    surveyed = client.post("/api/surveys/2x2-score")
    assert surveyed.status_code == 202
    end = time.monotonic() + 120
    while client.get("/api/tables").json()["making"]:
        assert time.monotonic() < end
        time.sleep(0.2)
    assert round(client.get("/api/surveys/2x2-score").json()["score"]["mean"], 2) == 66.96


BAD = {
    "/api/analyse?board=2+3+/+4+5": "3",
    "/api/analyse?board=2+4+/+8+16&rules=3x3": "2x2",
    "/api/analyse?board=": "board",
    "/api/analyse": "board",
    "/api/analyse?board=1100&p4=2": "p4",
    "/api/analyse?board=1100&after=north": "after",
    "/api/analyse?board=1112&after=left&rules=4x1": "4x1",
    "/api/analyse?board=2+4+/+.+.+/+.+.&after=left": "not legal",
    "/api/analyse?board=110000&rules=3x2&player=expectimx": "did you mean expectimax",
    "/api/analyse?board=110000&rules=3x2&player=expectimax:depth=9": "at most 5",
    "/api/analyse?board=110000&rules=3x2&player=expectimax:time=9s": "at most 1s",
    "/api/analyse?board=110000&rules=3x2&player=python:os.system": "your own",
    "/api/analyse?board=110000&rules=3x2&player=ntuple:../../x": "name",
    "/api/analyse?board=110000&rules=3x2&player=ntuple:/etc/x.safetensors": "name",
    "/api/analyse?board=110000&rules=3x2&player=zero:device=cpu": "cannot be chosen",
    "/api/analyse?board=110000&rules=3x2" + "&player=greedy" * 5: "player",
    "/api/reach?board=1200000000000000": "12 cells",
    "/api/players?rules=9x9": "9x9",
    "/api/results/20260101-000000-abcdef": "no results",
    "/api/results/..%2F..%2Fbest": "Not Found",
    "/api/surveys/%2e%2e": "no survey",
    "/api/surveys/3x2-score": "no survey",
}


@pytest.mark.parametrize("path", BAD)
def test_a_bad_request_gets_one_clear_line(client, path):
    found = client.get(path)
    detail = found.json()["detail"]
    assert 400 <= found.status_code < 500 and "\n" not in detail
    assert BAD[path] in detail


def test_a_large_board_is_not_solved_on_request(client):
    for board in ("4x3", "5x2"):
        found = client.post("/api/tables", json={"board": board})
        assert found.status_code == 400 and f"lab2048 solve {board}" in found.json()["detail"]
    found = client.post("/api/tables", json={"board": "3x3", "p4": 0.2})  # half a GB for any p4
    assert found.status_code == 400 and "not made on request" in found.json()["detail"]
    assert client.post("/api/tables", json={"board": "4x4"}).status_code == 400


@pytest.mark.parametrize(("limit", "most"), [("SOLVES", 2), ("SOLVED_BYTES", 3_000)])
def test_only_so_many_tables_are_made_on_request(client, monkeypatch, limit, most):
    """Tables are counted, not requests: the chances of the tiles of 2x2 are three."""
    monkeypatch.setattr(table_jobs, limit, most)
    found = client.get("/api/reach", params={"board": "2 2 / 4 .", "p4": 0.3})
    assert found.status_code == 400 and "no room left" in found.json()["detail"]
    assert client.get("/api/tables").json()["making"] == []


def test_tables_that_were_not_made_are_not_counted(solved_home, monkeypatch):
    problems = [Problem.of(Rules(2, 2, 0.3), objective=f"reach:{tile}") for tile in (8, 16)]

    async def one_that_fails():
        jobs = table_jobs.TableJobs()
        monkeypatch.setattr("sys.executable", "false")
        job = jobs.solve(problems)
        assert jobs._made == set(problems)
        await job.task
        return job.trouble, jobs._made

    assert asyncio.run(one_that_fails()) == ("the process was ended", set())


HARMLESS = {"c1", "c2", "cells", "cutoff", "gamma"}
"""Options with a number that does not make a move take longer."""


def test_all_that_a_request_may_ask_for_is_bounded():
    for name in PLAYERS:
        for each in player_class(name).options():
            number = each.default is None or isinstance(each.default, int | float)
            number = number and not each.metadata["choices"]
            mcts_depth = (name, each.name) == ("mcts", "depth")  # simulations are what counts
            if number and each.name not in HARMLESS and not mcts_depth:
                assert (name, each.name) in limits.MOST
    for name, option in limits.MOST:
        value = limits.MOST[name, option]
        text = f"{2 * value}s" if option == "time" else str(int(2 * value))
        with pytest.raises(ValueError, match="at most"):
            checked_player(f"{name}:{option}={text}", Rules(3, 3))


def test_players_that_others_added_are_listed(client, monkeypatch):
    """One that was registered, and one of another distribution that cannot be loaded."""

    class Mine(Greedy):
        name, about = "mine", "a player of mine"

    def load():
        raise RuntimeError("no such device")

    monkeypatch.setitem(registry._registered, "mine", Mine)
    monkeypatch.setattr(registry, "_elsewhere", lambda: {"theirs": SimpleNamespace(load=load)})
    assert client.get("/api").json()["players"] == [*PLAYERS, "theirs", "mine"]
    found = {each["name"]: each for each in client.get("/api/players").json()}
    assert found["mine"]["about"] == "a player of mine" and found["mine"]["trouble"] is None
    assert found["theirs"]["trouble"] == "the player theirs cannot be loaded: no such device"
    assert registry.CUSTOM not in found
    thoughts = client.get(
        "/api/analyse", params={"board": "110000", "rules": "3x2", "player": "mine"}
    )
    assert thoughts.json()["players"]["mine"]["choice"] is not None


# -- results -------------------------------------------------------------------------------------


def test_collections_are_written_off_the_event_loop(client, command, solved_home, on_loop):
    assert command("evaluate", "greedy", "--board", "3x2", "--games", "20")[0] == 0
    texts = on_loop(json, "dumps")
    (name,) = {each["name"] for each in client.get("/api/results").json()}
    for path in (f"results/{name}", "tables", "players"):
        assert client.get(f"/api/{path}").status_code == 200
    (solved_home / "results" / f"{name}.json").unlink()
    assert texts == []


def test_results_are_read_again_only_when_they_have_changed(own_home, monkeypatch):
    scores = {"player": "me", "board": "3x2", "scores": [1, 2], "score": {"mean": 1.5}}
    first = keep_results([scores], ["evaluate"])
    reads = []
    monkeypatch.setattr(
        results, "read_results", lambda name: reads.append(name) or read_results(name)
    )
    listing = results.ResultList()
    assert [each["name"] for each in json.loads(listing.encoded())] == [first.stem]
    second = keep_results([scores], ["evaluate"])
    (first.parent / "20200101-000000-abcdef.json").write_text("damaged")
    for _ in range(2):
        names = {each["name"] for each in json.loads(listing.encoded())}
        assert names == {first.stem, second.stem}
    assert sorted(reads) == sorted([first.stem, second.stem, "20200101-000000-abcdef"])
    second.write_text(second.read_text().replace('"me"', '"somebody else"'))
    players = {each["results"][0]["player"] for each in json.loads(listing.encoded())}
    assert players == {"me", "somebody else"}
    first.unlink()
    assert len(json.loads(listing.encoded())) == 1


# -- everything, garbled -------------------------------------------------------------------------


def test_nothing_that_fits_the_description_is_an_error_of_the_server(address):
    """Requests made up from the interface's own description."""
    import schemathesis
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st
    from schemathesis.generation import GenerationMode

    schema = schemathesis.openapi.from_url(f"{address}/api/openapi.json")
    cases = [each.ok() for each in schema.get_all_operations()]
    assert {case.path for case in cases} >= {"/api/analyse", "/api/reach", "/api/review"}
    quiet = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))

    def ask(case):
        answer = case.call(base_url=address, timeout=60)
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400:
            assert "\n" not in answer.json()["detail"]
        else:
            case.validate_response(answer)

    def wrong(operation):
        return operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    for operation in cases:
        quiet(given(st.one_of(operation.as_strategy(), wrong(operation)))(ask))()


# -- the command ---------------------------------------------------------------------------------


def test_the_command_says_where_it_is_and_what_is_wrong(command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, out, err = command("studio", "--port", str(taken.getsockname()[1]))
    assert code == 2 and out == "" and "--port 0" in err and err.count("\n") == 1
    code, _, err = command("studio", "--host", "no.such.host.invalid")
    assert code == 2 and "cannot listen" in err


def test_a_problem_that_makes_no_sense_is_one_line(capsys):
    from lab2048.studio import solve_process as solving

    assert solving.main([json.dumps(Problem.of("2x2").as_json() | {"objective": "x"})]) == 1
    assert "an objective is" in capsys.readouterr().err
