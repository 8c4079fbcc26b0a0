"""Games in bulk: the same games whatever the threads, kept when stopped, and judged."""

from __future__ import annotations

import errno
import itertools
import json
import os

import numpy as np
import pytest

from lab2048 import Board, Game, Rules, random_games
from lab2048.game.record import Record, RecordError, read_records, write_records
from lab2048.measure import arena as arena_module
from lab2048.measure import journal as journal_module
from lab2048.measure.arena import play_games, play_match, record_of, retrace
from lab2048.measure.figures import (
    against_table,
    compare,
    judge,
    measure,
    summarise,
)
from lab2048.measure.journal import journal_path
from lab2048.players.custom import Custom
from lab2048.players.player import PlayerError
from lab2048.players.registry import make_player
from lab2048.solver.exact_value import evaluate_policy
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.tables import open_table

RULES = Rules(3, 2)
SPECS = [
    "random",
    "corner",
    "greedy:ties=split",
    "expectimax:depth=2",
    "sparse",
    "mcts:simulations=9",
]


def played(spec, games=12, seed=7, **options):
    player = make_player(spec, RULES)
    found = play_games(player, iter(range(games)), seed, **options)
    return sorted(found, key=lambda game: game.index)


@pytest.mark.parametrize("spec", SPECS)
def test_the_same_games_with_any_number_of_threads(spec):
    one = played(spec, threads=1)
    assert one == played(spec, threads=2) == played(spec, threads=5)
    assert [game.index for game in one] == list(range(12))


@pytest.mark.parametrize("spec", SPECS)
def test_games_are_those_of_the_plain_game(spec):
    player = make_player(spec, RULES)
    for game in played(spec, games=3):
        plain = Game(RULES, 7, index=game.index)
        for move in game.moves:
            assert player.choose(plain.board, plain.own_word) == move
            plain.play(move)
        assert plain.over
        assert (plain.score, plain.board.max_tile) == (game.score, game.max_tile)


def test_the_random_player_plays_the_random_games():
    found = played("random", games=200)
    results = random_games(RULES, 200, seed=7)
    assert [game.score for game in found] == results.score.tolist()
    assert [len(game.moves) for game in found] == results.moves.tolist()
    assert [game.max_tile for game in found] == results.max_tile.tolist()


def test_a_game_that_outgrows_the_packed_board_goes_on(monkeypatch):
    """With two 32768s to begin with, the first merge already does not fit."""
    start = Board.parse("32768 32768 / 2 4 / . .")
    real = arena_module.begin_games

    def begin(state, seed, games, four, rows, cols):
        real(state, seed, games, four, rows, cols)
        state[0], state[2] = start.packed, 0b1111

    monkeypatch.setattr(arena_module, "begin_games", begin)
    monkeypatch.setattr(arena_module, "Game", lambda *a, **k: Game(*a, **k, start=start))
    (game,) = played("greedy", games=1)
    assert game.max_tile >= 65536
    assert game.score >= 65536


def test_an_error_in_a_player_ends_the_match():
    def broken(ranks, legal):
        raise RuntimeError("out of ideas")

    with pytest.raises(RuntimeError, match="out of ideas"):
        play_match(Custom(RULES, broken), 5, 1)


# -- journals ----------------------------------------------------------------------------------


def test_a_stopped_match_goes_on(tmp_path):
    journal = tmp_path / "journal.jsonl"
    player = make_player("corner", RULES)
    whole = play_match(player, 40, 3).games

    class EnoughError(Exception):
        pass

    def stop(done):
        if done >= 15:
            raise EnoughError

    with pytest.raises(EnoughError):
        play_match(player, 40, 3, journal=journal, progress=stop)
    kept = len(list(filter(None, journal.read_text().splitlines())))
    assert kept >= 15
    begun = []
    assert play_match(player, 40, 3, journal=journal, progress=begun.append).games == whole
    assert begun[0] == kept
    assert play_match(player, 40, 3, journal=journal).moves_per_second is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[: len(line) // 2],
        lambda line: "garbage",
        lambda line: json.dumps([0, 99999, 8, "00"]),
        lambda line: line.replace('"0', '"7', 1),
        lambda line: line.replace(", ", ", 1", 1),
        lambda line: "[]",
        lambda line: "7",
    ],
)
def test_a_damaged_journal_costs_only_the_game(tmp_path, damage):
    journal = tmp_path / "journal.jsonl"
    player = make_player("corner", RULES)
    whole = play_match(player, 5, 3, journal=journal).games
    lines = journal.read_text().splitlines()
    lines[2] = damage(lines[2])
    journal.write_text("\n".join(lines) + "\n")
    assert play_match(player, 5, 3, journal=journal).games == whole


def test_a_journal_that_cannot_be_written_costs_only_itself(tmp_path, capsys, monkeypatch):
    player = make_player("random", Rules(2, 2))
    whole = play_match(player, 5, 3).games
    (tmp_path / "file").write_text("")
    assert play_match(player, 5, 3, journal=tmp_path / "file" / "journal.jsonl").games == whole
    said = f"lab2048: cannot keep finished games in {tmp_path / 'file'}: "
    assert said in capsys.readouterr().err

    def full(game):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(journal_module, "_journal_line", full)
    assert play_match(player, 5, 3, journal=tmp_path / "journal.jsonl").games == whole
    said = f"lab2048: cannot keep finished games in {tmp_path}: {os.strerror(errno.ENOSPC)}\n"
    assert capsys.readouterr().err == said


def test_every_match_has_a_journal_of_its_own(own_home):
    paths = {
        journal_path(make_player(spec, rules), seed)
        for spec, rules, seed in itertools.product(
            ("corner", "greedy"), (RULES, Rules(3, 2, 0.2)), (1, 2)
        )
    }
    assert len(paths) == 8 and all(path.parent == own_home / "matches" for path in paths)


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
        "the seed is no whole number": {**good, "seed": True},
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


@pytest.mark.slow
def test_the_interval_of_a_sampled_mean_covers_the_exact_mean():
    for spec in ("random", "corner", "greedy"):
        player = make_player(spec, RULES)
        low, high = summarise(play_match(player, 2000, 5).games)["score"]["ci95"]
        assert low < evaluate_policy(player).value < high


@pytest.mark.slow
def test_a_table_of_another_game_is_refused(tmp_path):
    make_table(Problem.of("2x2", gamma=0.5), tmp_path / "table")
    player = make_player("corner", Rules(2, 2))
    with (
        open_table(tmp_path / "table") as other,
        pytest.raises(ValueError, match=r"is of 2x2-score-gamma-0\.5, what is asked for is 2x2"),
    ):
        measure(player, 5, table=other)


def test_a_player_that_makes_no_move_ends_the_match():
    class Lazy(Custom):
        def prepare(self):
            pass

        def choose_many(self, boards, words):
            return np.full(len(boards), -1)

    with pytest.raises(PlayerError, match="makes no move on "):
        play_match(Lazy(RULES, print), 1, 1)


def test_a_summary_and_a_comparison():
    games = play_match(make_player("corner", RULES), 50, 1).games
    others = play_match(make_player("random", RULES), 50, 1).games
    found = summarise(games)
    scores = [game.score for game in games]
    assert found["score"]["mean"] == pytest.approx(np.mean(scores))
    assert (found["score"]["min"], found["score"]["max"]) == (min(scores), max(scores))
    rates = {int(tile): facts["rate"] for tile, facts in found["reach"].items()}
    assert rates == {tile: sum(game.max_tile >= tile for game in games) / 50 for tile in rates}
    assert max(rates) == max(game.max_tile for game in games)
    difference = compare(games, others)
    assert difference["mean"] == pytest.approx(
        np.mean(scores) - np.mean([game.score for game in others])
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judge") / "3x2"
    make_table(Problem.of("3x2"), folder)
    with open_table(folder) as found:
        yield found


@pytest.mark.slow
def test_every_move_is_judged_as_the_table_says(table):
    games = play_match(make_player("corner", RULES), 20, 1).games
    judged = judge(games, 1, table)
    place = 0
    for number, game in enumerate(games):
        plain = Game(RULES, 1, index=number)
        for move in game.moves:
            values = table.moves(plain.board)
            q = [value.q for value in values.values()]
            assert judged.board[place] == plain.board.packed
            assert judged.age[place] == plain.board.age
            assert judged.regret[place] == pytest.approx(values[move].regret, abs=1e-9)
            assert judged.gap[place] == pytest.approx(max(q) - min(q), abs=1e-9)
            assert judged.optimal[place] == values[move].optimal
            assert (judged.game[place], judged.move[place]) == (number, move)
            plain.play(move)
            place += 1
    assert place == len(judged.move)


@pytest.mark.slow
def test_figures_against_a_table(table):
    for spec in ("corner", "random"):
        player = make_player(spec, RULES)
        games = play_match(player, 2000, 1).games
        found = against_table(judge(games, 1, table), 2000, RULES)
        low, high = found["regret_per_game"]["ci95"]
        assert low < table.start_value["start"] - evaluate_policy(player).value < high
        for bins in (found["by_gap"], found["by_age"]):
            assert sum(part["moves"] for part in bins) == sum(len(game.moves) for game in games)
            assert sum(part["share"] for part in bins) == pytest.approx(1)
        apart = found["by_gap"][0]
        assert (apart["above"], apart["to"], apart["agreement"]) == (0, 0, 1)
        assert sum(p["moves"] for p in found["by_equal_count"]) + apart["moves"] == sum(
            p["moves"] for p in found["by_gap"]
        )
        worst = found["worst"]
        assert [each["regret"] for each in worst] == sorted(
            (each["regret"] for each in worst), reverse=True
        )
        value = table.moves(worst[0]["board"])[_direction(worst[0]["move"])]
        assert value.regret == pytest.approx(worst[0]["regret"])


def _direction(name):
    return ["up", "right", "down", "left"].index(name)


@pytest.mark.slow
def test_perfect_play_loses_nothing(table, warm_home):
    make_table(Problem.of("3x2"))
    for spec in ("optimal", "optimal:ties=split"):
        games = play_match(make_player(spec, RULES), 300, 1).games
        found = against_table(judge(games, 1, table), 300, RULES)
        assert found["regret_per_game"]["mean"] == 0 and found["agreement"] == 1
        assert found["worst"] == []


# -- a user's own player -----------------------------------------------------------------------


@pytest.mark.slow
def test_a_function_is_a_player():
    def first_legal(ranks, legal):
        assert ranks.dtype == np.uint8 and ranks.shape[1:] == (3, 2)
        assert legal.dtype == np.bool_
        return legal.argmax(axis=1)

    def alike(ranks, legal):
        return legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)

    player = Custom(RULES, first_legal)
    for game in play_match(player, 5, 1).games:
        plain = Game(RULES, 1, index=game.index)
        for move in game.moves:
            assert move == plain.board.legal_moves[0]
            plain.play(move)
    random = evaluate_policy(make_player("random", RULES)).value
    assert evaluate_policy(Custom(RULES, alike)).value == pytest.approx(random, abs=1e-9)
    moves = np.concatenate(
        [np.frombuffer(g.moves, np.uint8) for g in play_match(Custom(RULES, alike), 300, 1).games]
    )
    assert np.bincount(moves, minlength=4).min() > 0.15 * len(moves)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda legal: np.zeros(len(legal), int) - 1, "direction -1"),
        (lambda legal: np.full(len(legal), 4), "direction 4"),
        (lambda legal: (~legal).argmax(axis=1), "not legal"),
        (lambda legal: np.full((len(legal), 4), np.nan), "not numbers"),
        (lambda legal: np.where(legal, -1.0, 0.0), "negative"),
        (lambda legal: legal * 0.1, "add up to"),
        (lambda legal: np.zeros(len(legal)), "shape"),
        (lambda legal: np.zeros((2, 2)), "shape"),
        (lambda legal: "left", "shape"),
        (lambda legal: None, "shape"),
    ],
)
def test_what_a_function_may_not_return(answer, message):
    player = Custom(RULES, lambda ranks, legal: answer(legal))
    with pytest.raises(PlayerError, match=message):
        play_match(player, 3, 1)
    with pytest.raises(PlayerError, match=message):
        evaluate_policy(player)
