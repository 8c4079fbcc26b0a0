"""Recorded games: replayed exactly, and refused line by line."""

from __future__ import annotations

import json

import pytest

from lab2048 import Game, Rules
from lab2048.game.record import Record, RecordError, read_records, write_records
from lab2048.measure.arena import play_games, record_of, retrace
from lab2048.players.registry import make_player

RULES = Rules(3, 2)


def played(spec, games=12, seed=7, **options):
    player = make_player(spec, RULES)
    found = play_games(player, iter(range(games)), seed, **options)
    return sorted(found, key=lambda game: game.index)


# -- records -----------------------------------------------------------------------------------


def records(count=3):
    player = make_player("corner", RULES)
    return [record_of(player, 7, game) for game in played("corner", games=count)]


def test_a_record_replays_exactly(tmp_path):
    path = tmp_path / "games.jsonl"
    write_records(records(), path)
    found = list(read_records(path))
    assert found == records()
    for record, game in zip(found, played("corner", games=3), strict=True):
        boards = retrace(RULES, 7, game).boards
        turns = list(record.turns())
        assert [turn.board.packed for turn in turns] == boards[:-1].tolist()
        assert turns[-1].next.is_terminal
        assert sum(turn.reward for turn in turns) == record.score
        assert Record.of(_played_again(record), record.player) == record


def _played_again(record):
    game = Game(record.rules, record.seed, index=record.index)
    for digit in record.moves:
        game.play(int(digit))
    return game


def test_a_bad_record_is_refused_with_its_line(tmp_path):
    good = json.loads(records(1)[0].to_json())
    bad = {
        "not a game": "nonsense",
        "it has no 'moves'": {k: v for k, v in good.items() if k != "moves"},
        "format 9": {**good, "format": 9},
        "wrong kind": {**good, "score": "many"},
        "the seed is not a whole number": {**good, "seed": True},
        "a number is negative": {**good, "index": -1},
        "codec can't encode": {**good, "player": "\ud800"},
        "a board has 2 to 6 rows": {**good, "rules": {"rows": 1, "cols": 9, "p4": 0.1}},
    }
    for message, facts in bad.items():
        path = tmp_path / "bad.jsonl"
        text = facts if isinstance(facts, str) else json.dumps(facts)
        path.write_text(json.dumps(good) + "\n\n" + text + "\n")
        with pytest.raises(RecordError, match=r"bad.jsonl, line 3: ") as error:
            list(read_records(path))
        assert message in str(error.value)


@pytest.mark.parametrize("line", ["[" * 2_000_000, " " * 2_000_000, "x" * (1 << 20)])
def test_a_line_is_not_read_beyond_a_bound(tmp_path, line):
    path = tmp_path / "bad.jsonl"
    path.write_text(records(1)[0].to_json() + "\n" + line + "\n")
    with pytest.raises(
        RecordError, match=r"bad.jsonl, line 2: it has 1,048,576 characters or more"
    ):
        list(read_records(path))


@pytest.mark.parametrize(
    ("name", "value"), [("score", 17.7), ("index", None), ("moves", 3), ("rows", 2.5), ("p4", None)]
)
def test_a_parquet_file_of_odd_games_is_refused(tmp_path, name, value):
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    write_records(records(1), path)
    table = parquet.read_table(path)
    place = table.schema.get_field_index(name)
    parquet.write_table(table.set_column(place, name, pa.array([value])), path)
    with pytest.raises(RecordError, match=r"a.parquet, line 1: not a game: "):
        list(read_records(path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": 1}, "the moves give score"),
        ({"max_tile": 2}, "the moves give score"),
        ({"spawns": "0111"}, "need"),
        ({"moves": "x"}, "none of 0 to 3"),
        ({"spawns": "z"}, "not possible"),
        ({"spawns": "03"}, "not possible"),
        ({"spawns": "٠١"}, "not possible"),  # digits, but not ours
        ({"spawns": "02", "rules": {"rows": 3, "cols": 2, "p4": 0.0}}, "not possible"),
        ({"rules": {"rows": 3, "cols": 2, "p4": 1.0}}, "not possible"),
    ],
)
def test_a_game_against_the_rules_is_noticed(change, message):
    good = records(1)[0]
    facts = json.loads(good.to_json())
    for name, value in change.items():
        if name == "moves":
            facts[name] = value + facts["moves"][1:]
        elif name == "spawns" and len(value) < 4:
            facts[name] = (value + facts["spawns"])[: len(facts["spawns"])]
        else:
            facts[name] = value
    with pytest.raises(RecordError, match=message):
        list(Record.from_json(json.dumps(facts)).turns())


# -- figures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["seed", "index", "score", "max_tile"])
def test_numbers_that_no_column_holds_are_refused(name):
    facts = json.loads(records(1)[0].to_json())
    with pytest.raises(RecordError, match="too large"):
        Record.from_json(json.dumps({**facts, name: 1 << 64}))
