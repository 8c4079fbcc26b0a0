"""Reviews of games, streamed."""

from __future__ import annotations

import json

import pytest

from lab2048.game import Board, Game, Rules
from lab2048.game.record import Record
from lab2048.studio import review as studio_review
from tests.conftest import run_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # a server, and much to compile


def a_game(rules, seed, moves=10**6):
    """A game in which the first legal move is made."""
    game = Game(rules, seed)
    while not game.over and len(game.moves) < moves:
        game.play(game.board.legal_moves[0])
    return game


def reviewed(client, record, judge=None):
    asked = {"game": json.loads(record.to_json()), "judge": judge}
    found = client.post("/api/review", json=asked)
    assert found.status_code == 200, found.text
    return [json.loads(line) for line in found.text.splitlines()]


def test_a_review_is_that_of_the_command(client, tmp_path, solved_home):
    record = Record.of(a_game(Rules(3, 2), 5), "me")
    lines = reviewed(client, record)
    facts = {"judge": "perfect play", "exact": True, "caveat": None, "points": True}
    assert lines[0] == {**facts, "moves": len(record.moves)}
    path = tmp_path / "game.jsonl"
    path.write_text(record.to_json() + "\n")
    told = json.loads(run_command("review", str(path), "--json").stdout)
    assert lines[-1]["summary"] == {k: told[k] for k in lines[-1]["summary"]}
    steps = [step for line in lines for step in line.get("steps", [])]
    assert len(steps) == len(record.moves)
    assert steps[-1]["loss"] == pytest.approx(sum(step["regret"] for step in steps))


def test_a_review_is_written_off_the_event_loop(client, solved_home, on_loop):
    texts, summaries = on_loop(json, "dumps"), on_loop(studio_review, "summary")
    assert "summary" in reviewed(client, Record.of(a_game(Rules(3, 2), 5), "me"))[-1]
    assert summaries == [] and [len(text) for text in texts if len(text) > 200] == []


def test_a_review_by_a_player_of_a_game_that_began_elsewhere(client):
    start = Board.parse("16 8 . / 4 2 . / 2 . .")
    game = Game(Rules(3, 3), 3, start=start)
    for _ in range(5):
        game.play(game.board.legal_moves[-1])
    lines = reviewed(client, Record.of(game, "me"), "greedy")
    assert lines[0]["judge"] == "greedy" and lines[1]["steps"][0]["board"] == start.hex
    assert not lines[0]["exact"] and "not known" in lines[0]["caveat"]
    assert lines[-1]["summary"]["moves"] == 5 and lines[-1]["summary"]["loss"] is None
    assert set(lines[-1]["summary"]["marks"]) <= {"best", "other"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"moves": "0"}, "1 moves need 3 spawns"),
        ({"score": 1}, "the moves give score"),
        ({"format": 2}, "format 2"),
        ({"rules": {"rows": 9, "cols": 9, "p4": 0.1}}, "9x9"),
        ({"moves": 7}, "wrong kind"),
        ({"start": "0"}, "not a game"),
    ],
)
def test_a_game_that_is_none_is_refused(client, change, why):
    record = json.loads(Record.of(a_game(Rules(3, 2), 5), "me").to_json())
    found = client.post("/api/review", json={"game": {**record, **change}})
    assert found.status_code == 400 and why in found.json()["detail"]
