"""Many trees at once: each is what a naive search finds."""

from __future__ import annotations

import numpy as np
import pytest

from lab2048.engine.packed import ON_IMAGE
from lab2048.game import Board, Game, Rules
from lab2048.learn.batched_search import Searches
from lab2048.learn.encoding import images, planes, ranks, slid, upright
from lab2048.players.ties import legal_moves
from lab2048.solver.table import Table
from tests import naive_zero


def boards_of(rules, games=30, seed=0):
    """Boards of random games, from young to old."""
    rng = np.random.default_rng(seed)
    found = []
    for index in range(games):
        game = Game(rules, seed, index=index)
        for _ in range(rng.integers(0, 40)):
            if not game.over:
                game.play(rng.choice(game.board.legal_moves))
        if not game.over:
            found.append(game.board.packed)
    return np.array(found, np.uint64)


# -- boards as networks see them ---------------------------------------------------------------


@pytest.mark.parametrize("rules", [Rules(3, 3), Rules(4, 4), Rules(3, 2)])
def test_images_are_those_of_boards(rules):
    boards = boards_of(rules)
    count = 8 if rules.rows == rules.cols else 4
    for symmetry in range(count):
        found = images(boards, np.full(len(boards), symmetry), rules)
        for board, image in zip(boards, found, strict=True):
            expected = Board.from_packed(int(board), rules.rows, rules.cols).image(symmetry)
            assert int(image) == expected.packed
    turned, which = upright(boards, rules)
    for k, board in enumerate(boards):
        every = [images(boards[k : k + 1], np.array([s]), rules)[0] for s in range(count)]
        assert turned[k] == max(every) == every[which[k]], board


def test_moves_on_images_are_moves_on_the_board():
    rules = Rules(3, 3)
    boards = boards_of(rules)
    for symmetry in range(8):
        which = np.full(len(boards), symmetry)
        there = legal_moves(images(boards, which, rules), rules)
        assert (
            np.take_along_axis(there, ON_IMAGE[which], axis=1) == legal_moves(boards, rules)
        ).all()


def test_ranks_and_afterstates():
    rules = Rules(3, 3)
    assert [planes(Rules(*each)) for each in [(2, 2), (3, 3), (4, 3), (4, 4)]] == [6, 11, 14, 16]
    boards = boards_of(rules)
    found = ranks(boards, rules)
    for board, row in zip(boards, found, strict=True):
        assert tuple(row.tolist()) == Board.from_packed(int(board), 3, 3).ranks
    assert ranks(np.array([0xF], np.uint64), rules)[0, 0] == 10  # there is no plane for more
    moves = legal_moves(boards, rules).argmax(axis=1)
    for board, move, after in zip(boards, moves, slid(boards, moves, rules), strict=True):
        assert int(after) == Board.from_packed(int(board), 3, 3).move(int(move)).after.packed


# -- trees -------------------------------------------------------------------------------------


def made_up(rules, seed=0):
    """A network of random numbers that depend on the board alone; and the same for grids."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(rules.cells, 16, 6))

    def network(boards):
        found = np.zeros((len(boards), 6))
        rows = ranks(boards, rules)
        for cell in range(rules.cells):
            found += weights[cell, rows[:, cell]]
        return found[:, :4].astype(np.float32), found[:, 4:].astype(np.float32)

    def naively(grid):
        board = Board.parse(grid)
        turned, which = upright(np.array([board.packed], np.uint64), rules)
        logits, worths = network(turned)
        values = [float(logits[0, ON_IMAGE[which[0], d]]) for d in range(4)]
        return values, SCALE * float(worths[0, 0]), SCALE * float(worths[0, 1])

    return network, naively


SCALE = 37.0


@pytest.mark.parametrize(
    ("rules", "simulations"),
    [
        pytest.param(Rules(2, 2), 60, marks=pytest.mark.slow),
        (Rules(3, 2, 0.4), 40),
        pytest.param(Rules(3, 3), 40, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(("c1", "backup"), [(0.2, "best"), (1.25, "best"), (0.7, "mean")])
def test_trees_are_those_of_a_naive_search(rules, simulations, c1, backup):
    boards = boards_of(rules, games=12)
    words = np.arange(len(boards), dtype=np.uint64) * np.uint64(0x9876543210ABCDEF)
    network, naively = made_up(rules)
    searches = Searches(rules, 16, simulations, c1=c1, c2=300.0, scale=SCALE, backup=backup)
    for _ in range(2):  # trees are used again
        found = searches.search(boards, words, network)
    for k, board in enumerate(boards):
        grid = Board.from_packed(int(board), rules.rows, rules.cols).tiles
        search = naive_zero.Search(naively, rules.p4, c1, 300.0, backup)
        root = search.run([list(row) for row in grid], int(words[k]), simulations)
        assert {d: int(n) for d, n in enumerate(found.visits[k]) if d in root.moves} == root.visits
        for d in root.moves:
            if root.visits[d]:
                assert found.means[k, d] == pytest.approx(search.q(root, d))
        mean = sum(root.total.values()) / simulations
        assert found.values[k] == pytest.approx(mean if backup == "mean" else root.best_value())


def test_visits_sum_up_to_simulations_and_dead_ends_need_no_network():
    rules = Rules(3, 2, 0.4)
    dead = Board.parse("2 4/4 2/2 4").packed
    boards = np.append(boards_of(rules), np.uint64(dead))
    network, _ = made_up(rules)
    searches = Searches(rules, len(boards), 50)
    found = searches.search(boards, np.zeros_like(boards), network)
    assert (found.visits[:-1].sum(axis=1) == 50).all() and not found.visits[-1].any()
    assert searches.asked < 51 * (len(boards) - 1)  # some games end soon


def test_noise_is_a_share_of_the_priors():
    rules = Rules(3, 2)
    boards = boards_of(rules)
    network, _ = made_up(rules)
    searches = Searches(rules, len(boards), 1)
    noise = np.random.default_rng(0).gamma(1.0, size=(len(boards), 4))
    searches.search(boards, np.zeros_like(boards), network)
    before = searches.forest.trees.priors[:, 0].copy()
    searches.search(boards, np.zeros_like(boards), network, noise, 0.25)
    after = searches.forest.trees.priors[:, 0]
    legal = legal_moves(boards, rules)
    drawn = np.where(legal, noise, 0)
    drawn /= drawn.sum(axis=1, keepdims=True)
    assert np.allclose(after, 0.75 * before + 0.25 * drawn)
    assert np.allclose(after.sum(axis=1), 1) and not after[~legal].any()


def uniform(boards):
    return np.zeros((len(boards), 4), np.float32), np.zeros((len(boards), 2), np.float32)


@pytest.fixture(scope="module")
def small_table(tmp_path_factory):
    from lab2048.solver.job import make_table
    from lab2048.solver.problem import Problem

    folder = tmp_path_factory.mktemp("tables") / "2x2"
    make_table(Problem.of("2x2"), folder)
    with Table(folder) as found:
        yield found


@pytest.mark.slow
def test_without_any_knowledge_many_simulations_find_the_best_move(small_table):
    """All of 2x2 fits into the tree, which then knows what every move is worth."""
    rules = Rules(2, 2)
    states = np.array([s for _, layer, _ in small_table.layers() for s in layer], np.uint64)
    states = states[legal_moves(states, rules).any(axis=1)]
    q = small_table.probe_many(states).q
    order = np.sort(np.nan_to_num(q, nan=-np.inf), axis=1)
    clear = order[:, 3] - order[:, 2] > 1.0
    assert clear.sum() > 10
    states, q = states[clear], q[clear]
    searches = Searches(rules, len(states), 3000, c1=1.25)
    found = searches.search(states, np.arange(len(states), dtype=np.uint64), uniform)
    regret = np.nanmax(q, axis=1) - q[np.arange(len(q)), found.ranking.argmax(axis=1)]
    assert (regret < 1e-6).all()


def exact_network(table):
    """The exact values as a network; it knows nothing about moves."""
    rules = table.rules

    def network(boards):
        worths = np.zeros((len(boards), 2), np.float32)
        worths[:, 0] = np.nan_to_num(table.probe_many(boards, moves=False).value)
        for k, board in enumerate(boards):
            after = Board.from_packed(int(board), rules.rows, rules.cols)
            if any(rank == 0 for rank in after.ranks):
                spawns = rules.spawns(after)
                states = np.array([each.board.packed for each in spawns], np.uint64)
                value = table.probe_many(states, moves=False).value
                chances = [each.probability for each in spawns]
                worths[k, 1] = np.nan_to_num(value @ np.array(chances))
        return np.zeros((len(boards), 4), np.float32), worths

    return network


@pytest.mark.slow
def test_with_exact_values_a_few_simulations_play_perfectly(made):
    with Table(made) as table:
        rules = table.rules
        boards = boards_of(rules, games=60, seed=2)
        searches = Searches(rules, len(boards), 8, c1=0.1)
        found = searches.search(
            boards, np.arange(len(boards), dtype=np.uint64), exact_network(table)
        )
        q = table.probe_many(boards).q
        # every move is tried once, and its exact value found at the first visit
        assert (found.visits.sum(axis=1) == 8).all()
        regret = np.nanmax(q, axis=1) - q[np.arange(len(q)), found.ranking.argmax(axis=1)]
        assert regret.max() < 0.1
