"""Labels: boards with what perfect play, or a player, says about every move."""

from __future__ import annotations

import numpy as np
import pytest

from lab2048 import save_labels, save_moves
from lab2048.data import labels
from lab2048.data import moves as data
from lab2048.data.parquet import LABELS, DataError, write_parquet
from lab2048.game import Board, Rules
from lab2048.players.registry import make_player
from lab2048.players.ties import legal_moves
from lab2048.solver.table import Table
from tests.data.some_moves import some_moves


@pytest.fixture(scope="module")
def table(made):
    with Table(made) as found:
        yield found


@pytest.mark.slow
def test_perfect_labels_are_exact(tmp_path, table):
    rules = table.rules
    player = make_player("random", rules)
    path = tmp_path / "a.parquet"
    size = labels.write_perfect(path, table, player, likely=0.0)
    assert data.is_labels(path)
    found = labels.read_labels(path, rules)
    assert len(found.boards) == size
    # random play comes to every state that is no end, and the weights are moves of a game
    from lab2048.solver.exact_value import evaluate_policy

    exact = evaluate_policy(player)
    assert found.weights.sum() == pytest.approx(exact.moves, rel=1e-5)
    q = table.probe_many(found.boards).q
    assert np.allclose(found.q, q, rtol=1e-6, equal_nan=True)
    best = np.nanmax(q, axis=1, keepdims=True)
    right = q >= best - table.tolerance(best)
    assert (found.best == (right << np.arange(4)).sum(axis=1)).all()
    assert (found.best & (found.best - 1)).any()  # several moves may be best


@pytest.mark.slow
def test_labels_are_drawn_by_their_weights(tmp_path, table):
    rules = table.rules
    path = tmp_path / "a.parquet"
    player = make_player("optimal:ties=split", rules)
    labels.write_perfect(path, table, player, random=0.1, likely=1e-3)
    found = labels.read_labels(path, rules)
    assert found.weights.min() >= 1e-3
    batches = list(labels.drawn(found, 100, 1, 0))
    assert sum(len(batch.boards) for batch in batches) == len(found.boards)
    for boards, shares in batches[:3]:
        assert np.allclose(shares.sum(axis=1), 1)
        for board, share in zip(boards, shares, strict=True):
            mask = int(found.best[found.boards == board][0])
            chosen = [bool(mask >> d & 1) for d in range(4)]
            assert (share > 0).tolist() == chosen and len(set(share[chosen].tolist())) == 1
    many = np.concatenate([b.boards for e in range(30) for b in labels.drawn(found, 999, 1, e)])
    top = int(found.weights.argmax())
    expected = len(many) * found.weights[top] / found.weights.sum()
    assert abs((many == found.boards[top]).sum() - expected) < 5 * expected**0.5


@pytest.mark.slow
def test_soft_labels_go_by_values(tmp_path, table):
    path = tmp_path / "a.parquet"
    labels.write_perfect(path, table, make_player("random", table.rules), likely=1e-3)
    found = labels.read_labels(path, table.rules)
    rows = np.arange(50)
    shares = labels.shares_of(found, rows, 7.0)
    for q, share in zip(found.q[rows], shares, strict=True):
        likely = [0.0 if np.isnan(each) else np.exp(each / 7.0) for each in q.astype(float)]
        assert np.allclose(share, np.array(likely) / sum(likely), rtol=1e-4)


def test_boards_are_gathered_in_their_order(monkeypatch):
    monkeypatch.setattr(labels, "TOGETHER", 5)
    parts = [np.arange(k, k + 3, dtype=np.uint64) for k in range(0, 12, 3)]
    found = list(labels.gathered(parts))
    assert [len(each) for each in found] == [6, 6]
    assert np.concatenate(found).tolist() == list(range(12))
    assert [len(each) for each in labels.gathered(parts[:3])] == [6, 3]
    assert list(labels.gathered([])) == []


def test_files_count_as_much_as_they_have_boards():
    def some(*weights):
        size = len(weights)
        boards, best = np.arange(size, dtype=np.uint64), np.ones(size, np.uint8)
        return labels.Labels(
            boards, np.array(weights, np.float32), best, np.ones((size, 4), np.float32)
        )

    found = labels.joined([some(1.0, 1.0, 2.0), some(1e-6, 3e-6)])
    assert found.boards.tolist() == [0, 1, 2, 0, 1]
    assert np.allclose(found.weights, [0.75, 0.75, 1.5, 0.5, 1.5])


def test_a_legal_move_always_has_a_share():
    q = np.array([[-1e30, 3.0, np.nan, 1.0]], np.float32)
    found = labels.Labels(np.array([5], np.uint64), np.ones(1, np.float32), np.array([2]), q)
    share = labels.shares_of(found, np.array([0]), 2.0)[0]
    assert 0 < share[0] < 1e-12 and share[2] == 0 and share[1] / share[3] == pytest.approx(np.e)


def test_labels_are_finite_whatever_a_player_says():
    q = np.array([[-np.inf, 3.0, np.nan, 1.0]])
    found = labels.columns_of(np.array([5], np.uint64), np.array([1e-60]), q, q == 3)
    assert found["weight"][0] > 0 and found["best"][0] == 2
    assert np.isfinite(found["q0"][0]) and found["q0"][0] < -1e29 and np.isnan(found["q2"][0])


@pytest.mark.slow
def test_labels_of_no_state_are_not_written(tmp_path, table):
    player = make_player("greedy", table.rules)
    with pytest.raises(DataError, match="there is nothing to write"):
        labels.write_perfect(tmp_path / "a.parquet", table, player, likely=1.0)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_labels_of_a_player_are_its_values(tmp_path):
    rules = Rules(3, 3)
    player = make_player("expectimax:depth=1", rules)
    path = tmp_path / "a.parquet"
    walker = labels.Astray(rules, player, 0.2)
    assert labels.write_labels(path, walker, player, 500, first=20, seed=4) == 500
    found = labels.read_labels(path, rules)
    values = player.values_many(found.boards, np.zeros_like(found.boards))
    assert np.allclose(found.q, values, rtol=1e-6, equal_nan=True)
    assert (found.weights == 1).all()
    ages = [sum(1 << r for r in Board.from_packed(int(b), 3, 3).ranks if r) for b in found.boards]
    begun = [k for k in range(1, 500) if ages[k] < ages[k - 1]]
    assert np.diff(begun).max() == 20 == np.diff(begun).min()  # only the first moves of each game
    batches = list(labels.drawn(found, 64, 1, 0))
    every = np.concatenate([batch.boards for batch in batches])
    assert sorted(every.tolist()) == sorted(found.boards.tolist())


def test_a_player_goes_astray_as_often_as_asked():
    rules = Rules(4, 4)
    player = make_player("greedy", rules)
    boards = some_moves(size=3000).boards
    words = np.arange(3000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    moves = labels.Astray(rules, player, 0.3).choose_many(boards, words)
    own = player.choose_many(boards, words)
    legal = legal_moves(boards, rules)
    assert legal[np.arange(3000), moves].all()
    other = 1 - 1 / legal.sum(axis=1)
    assert abs((moves != own).sum() - 0.3 * other.sum()) < 5 * (0.3 * other.sum()) ** 0.5
    assert (labels.Astray(rules, player, 0.0).choose_many(boards, words) == own).all()


@pytest.mark.slow
def test_labels_that_are_wrong_are_named(tmp_path, table):
    path = tmp_path / "a.parquet"
    labels.write_perfect(path, table, make_player("random", table.rules), likely=1e-3)
    with pytest.raises(DataError, match="has labels of 3x2, not 3x3"):
        labels.read_labels(path, Rules(3, 3))
    with pytest.raises(DataError, match="has no moves of lab2048"):
        data.open_moves(path, table.rules)
    found = labels.read_labels(path, table.rules)
    for name, value in [
        ("best", 0),
        ("best", 31),
        ("weight", np.nan),
        ("board", 1 << 30),
        ("q0", np.inf),
    ]:
        right = (found.best[:, None] >> np.arange(4)) & 1 == 1
        columns = labels.columns_of(found.boards, found.weights, found.q, right)
        columns = {key: each.copy() for key, each in columns.items()}
        columns[name][5] = value
        about = {"kind": LABELS, "board": "3x2", "p4": 0.1}
        write_parquet(path, [columns], about)
        with pytest.raises(DataError, match=r"row 6: board 0x.* is no label"):
            labels.read_labels(path, table.rules)


@pytest.mark.parametrize(
    ("options", "why"),
    [({"first": 0}, "`first` is a whole number"), ({"first": -2}, "`first` is a whole number"),
     ({"random": 1.5}, "`random` is a probability"), ({"random": -0.1}, "`random` is a prob")],
)  # fmt: skip
def test_options_of_labels_are_checked(tmp_path, options, why):
    with pytest.raises(ValueError, match=why):
        save_labels(tmp_path / "labels.parquet", "greedy", "2x2", moves=10, **options)
    if "first" in options:
        with pytest.raises(ValueError, match=why):
            save_moves(tmp_path / "moves.txt", "greedy", "2x2", moves=10, **options)
    assert not list(tmp_path.iterdir())
