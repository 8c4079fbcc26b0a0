"""N-tuple networks: values, the rules of learning, training, files, and the player."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple

import naive
import naive_learn
import numpy as np
import pytest
from conftest import WITH_JIT, flip, run_command

from lab2048.board import lines
from lab2048.game import Board, Game, Rules
from lab2048.learn import runs as runs_module
from lab2048.learn.curves import T95, curve, half_width
from lab2048.learn.ntuple import Network, blocks, named_networks, network_kernels, new_weights
from lab2048.learn.play import NTuple, downgrade
from lab2048.learn.runs import Goal, block_size, read_log
from lab2048.learn.training import METHODS, Settings, Training
from lab2048.learn.weights import (
    FILE,
    Stored,
    network_folder,
    read_facts,
    read_weights,
    write_packed,
    write_weights,
)
from lab2048.players import make_player

slow = pytest.mark.slow

SMALL = {"2x2": "0123", "3x2": "012345", "2x3": "012 0134", "3x3": "012 0134 45", "4x3": "0134 258"}


def cells_of(network):
    return [[int(cell, 16) for cell in each] for each in network.tuples]


def entry(network, name):
    """Where a weight of a naive network is among those of the package."""
    number, way, tiles = name
    begin = way * network.size + sum(16 ** len(each) for each in network.tuples[:number])
    return begin + sum((tile.bit_length() - 1) << 4 * k for k, tile in enumerate(tiles) if tile)


def random_grids(rules, n, seed=0, largest=6):
    rng = np.random.default_rng(seed)
    ranks = rng.integers(0, largest, (n, rules.rows, rules.cols))
    return [[[1 << int(r) if r else 0 for r in row] for row in grid] for grid in ranks]


# -- networks ----------------------------------------------------------------------------------


def test_networks_by_name_and_by_cells():
    rules = Rules(4, 4)
    four = Network.of("4x6", rules)
    assert four.tuples == ("012345", "456789", "012456", "45689a")
    assert four.features == 32 and four.size == 4 * 16**6 and four.name == "4x6"
    assert Network.of("8x6", rules).features == 64
    assert Network.of("543210,9876 54", rules).tuples == ("012345", "6789", "45")
    assert Network.of("0123 45", rules).name == "0123 45"
    assert Network.of("012345", Rules(3, 2)).features == 4


@pytest.mark.parametrize("board", ["2x2", "3x2", "2x6", "3x3", "4x3", "5x2", "5x3", "4x4"])
def test_every_board_has_a_network(board):
    rules = Rules.parse(board)
    for name in named_networks(rules):
        network = Network.of(name, rules)
        assert {c for t in cells_of(network) for c in t} <= set(range(rules.cells))
        covered = set()
        numbered = [[r * rules.cols + c for c in range(rules.cols)] for r in range(rules.rows)]
        for image in naive.images(numbered):
            flat = [cell for row in image for cell in row]
            covered |= {flat[c] for t in cells_of(network) for c in t}
        assert covered == set(range(rules.cells)), "some cell is in no tuple"


def test_blocks_are_no_images_of_one_another():
    assert blocks(Rules(2, 3)) == ["012345"]
    assert blocks(Rules(3, 3)) == ["012345"]
    assert blocks(Rules(4, 4)) == ["012456", "45689a"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0129", "the tuple 0129 has cell 9, and the cells of 3x3 are 0 to 8"),
        ("0112", "the tuple 0112 has cell 1 twice"),
        ("01 10", "the tuple 01 is there twice"),
        ("01234567", "the tuple 01234567 has 8 cells; 7 is the most"),
        ("4y6", "'4y6' is neither a network of 3x3"),
        ("", "'' is neither a network of 3x3"),
    ],
)
def test_bad_tuples_are_refused(text, said):
    with pytest.raises(ValueError, match=said):
        Network.of(text, Rules(3, 3))


@slow
@pytest.mark.parametrize("board", SMALL)
def test_values_are_those_of_dictionaries(board):
    rules = Rules.parse(board)
    network = Network.of(SMALL[board], rules)
    weights = new_weights(network)
    weights[:] = np.random.default_rng(1).normal(size=len(weights)).astype(np.float32)
    net = naive_learn.Net(cells_of(network))
    value = network_kernels(network, 1, False)._bound["value"]
    for grid in random_grids(rules, 50):
        for name in net.entries(grid):
            net.weights[name] = weights[entry(network, name)]
        found = value(np.uint64(naive.packed(grid)), 0, weights)
        assert found == pytest.approx(net.value(grid), rel=1e-12)
        for image in naive.images(grid):  # bit for bit
            assert value(np.uint64(naive.packed(image)), 0, weights) == found


# -- learning ----------------------------------------------------------------------------------

RULES = [
    ("td", "td", {}),
    ("tc", "td", {"coherent": True}),
    ("state", "state", {}),
    ("q", "q", {}),
    ("otd", "td", {}),
    ("otc", "td", {"coherent": True}),
]


@slow
@pytest.mark.parametrize("board", ["3x2", "3x3"])
@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize(("method", "rule", "how"), RULES, ids=[each[0] for each in RULES])
def test_learning_is_that_of_dictionaries(board, order, method, rule, how):
    if method == "q" and order == "backward":
        pytest.skip("Q-learning is forward")
    if method == "state" and board == "3x3":
        pytest.skip("moves that are equally good but for rounding are told apart by it")
    rules = Rules.parse(board)
    network = Network.of(SMALL[board], rules)
    gamma = 0.9 if order == "forward" or method == "state" else 1.0
    rate = 0.5
    initial = 40.0 if method.startswith("o") else None
    training = Training(
        Settings(rules, network, method, rate, initial, gamma, order=order, seed=3), 1
    )
    results = np.concatenate([training.block(4), training.block(2)])
    net = naive_learn.Net(cells_of(network), rule == "q", initial or 0.0)
    back = order == "backward"
    for index in range(6):
        game = Game(rules, 3, index=index)
        score = naive_learn.learn_game(
            net, game, rule, rate=rate, backward=back, gamma=gamma, **how
        )
        assert score == results[index, 0]
        assert len(game.moves) == results[index, 1]
        assert game.board.max_tile == 1 << results[index, 2]
    stride = 4 if how else 1
    for name, weight in net.weights.items():
        at = stride * entry(network, name)
        assert training.weights[at] == pytest.approx(weight, rel=1e-4, abs=1e-4)
        if how:
            assert training.weights[at + 1] == pytest.approx(net.steps[name], rel=1e-4, abs=1e-4)
            assert training.weights[at + 2] == pytest.approx(net.sizes[name], rel=1e-4, abs=1e-4)
    changed = sum(weight != 0 for weight in net.weights.values())
    assert np.count_nonzero(training.weights[::stride]) == changed


@slow
def test_the_update_of_one_move_by_hand():
    # 2x2, the whole board as its tuple: a value is the sum of 8 weights. The two halves of the
    # update of one afterstate, "4 . / 2 .", whose target is 10: none of its images are equal, so
    # each of 8 weights takes 0.8 / 8 * 10 = 1.0, and the value is 8; then 0.8 / 8 * 2 = 0.2.
    from lab2048.learn.td import Lesson

    rules = Rules(2, 2)
    network = Network.of("0123", rules)
    kernels = kernels_of(network, "td", False, False)
    weights = new_weights(network)
    lesson = Lesson(0.8 / 8, 0.0, 1.0, 0.0)
    board = np.uint64(Board.parse("4 . / 2 .").packed)
    kernels["correct"](board, 0, 10.0, lesson, weights)
    assert np.count_nonzero(weights) == 8 and weights.max() == weights[0x0102] == 1.0
    kernels["correct"](board, 0, 10.0, lesson, weights)
    assert weights[0x0102] == pytest.approx(1.2) and weights[0x2010] == weights[0x0102]
    # "2 . / . ." has 4 different images, each looked up twice and so changed twice
    corner = np.uint64(Board.parse("2 . / . .").packed)
    kernels["correct"](corner, 0, 10.0, lesson, weights)
    assert weights[0x0001] == pytest.approx(2.0)
    assert kernels["value"](corner, 0, weights) == pytest.approx(16.0)


def kernels_of(network, rule, coherent, backward):
    """The kernels of a rule, by name."""
    from lab2048.learn import td

    found = {}
    real = network_kernels(network, 4 if coherent else 1, rule == "q")
    more = real.more

    def keep(name, **constants):
        found["kernels"] = more(name, **constants)
        return found["kernels"]

    real.more = keep
    try:
        td.learning_kernel.__wrapped__(network, rule, coherent, backward)
    finally:
        real.more = more
    return found["kernels"]._bound


@slow
def test_rates_of_temporal_coherence_are_between_0_and_1():
    rules = Rules(3, 3)
    training = Training(Settings(rules, Network.of("3x6", rules), "tc"), 1)
    training.block(2000)
    records = training.weights.reshape(-1, 4)
    seen = records[records[:, 3] > 0]
    assert len(seen) > 10_000
    assert (np.abs(seen[:, 1]) <= seen[:, 2] * (1 + 1e-5)).all()
    assert (records[records[:, 3] == 0] == 0).all()


def settled(rules, network, method, steps, **more):
    """A training whose rate is lowered step by step, so that the noise goes."""
    training = None
    for number, (rate, games) in enumerate(steps):
        settings = Settings(rules, network, method, rate, seed=number, **more)
        before = training
        training = Training(settings, 1)
        if before is not None:
            training.weights = before.weights
        training.block(games)
    return training


FEWER = [(0.1, 100_000), (0.02, 30_000), (0.004, 30_000)]
MORE = [(0.1, 4_000_000), (0.02, 500_000), (0.004, 500_000)]


@slow
@pytest.mark.parametrize(("board", "steps"), [("2x2", FEWER), ("3x2", MORE)], ids=["2x2", "3x2"])
def test_td_finds_the_exact_values_of_afterstates(board, steps, made):
    from lab2048.learn.truth import distance
    from lab2048.solve.problem import Problem
    from lab2048.solve.solver import make_table
    from lab2048.solve.table import Table

    folder = made
    if board == "2x2":
        folder = made.parent / "2x2"
        make_table(Problem.of("2x2"), folder)
    rules = Rules.parse(board)
    network = Network.of(SMALL[board], rules)
    high = 550.0 if board == "3x2" else 100.0  # above the best, so that all is tried
    training = settled(rules, network, "otd", steps, initial=high, order="forward")
    value = network_kernels(network, 1, False)._bound["value"]
    with Table(folder) as table:
        found = distance(training, table)["exact"]
        assert found["share"] > 0.99
        assert found["error"] < 0.01 * found["mean"]
        # afterstates that almost every game comes to, one by one
        small, large = ("2 . / 2 .", "4 2 / . ."), ("2 . / 2 . / . .", "4 . / . . / . .")
        for text in small if board == "2x2" else large:
            after = Board.parse(text)
            learnt = high + value(np.uint64(after.packed), 0, training.weights)
            assert learnt == pytest.approx(table.after_value(after), rel=0.03)


@slow
def test_q_learning_finds_the_exact_q(made):
    from lab2048.solve.problem import Problem
    from lab2048.solve.solver import make_table
    from lab2048.solve.table import Table

    rules = Rules(2, 2)
    folder = made.parent / "2x2q"
    make_table(Problem.of("2x2"), folder)
    network = Network.of("0123", rules)
    steps = [(rate, 40_000) for rate in (0.5, 0.1, 0.02, 0.004)]
    training = settled(rules, network, "q", steps, order="forward", epsilon=0.3)
    player = NTuple(rules, given=training.stored())
    with Table(folder) as table:
        for text in ("2 2 / . .", "2 4 / . 2", "4 8 / 2 .", "2 . / . 2"):
            board = Board.parse(text)
            exact = {d: each.q for d, each in table.moves(board).items()}
            assert player.values(board) == pytest.approx(exact, rel=0.03)


@slow
@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_on_3x3(method):
    rules = Rules(3, 3)
    order = "forward" if method == "q" else "backward"
    initial = 500.0 if method.startswith("o") else None
    network = Network.of("2x6" if method != "state" else "5x3", rules)
    training = Training(Settings(rules, network, method, initial=initial, order=order), 1)
    first = training.block(200)[:, 0].mean()
    training.block(4000)
    training.enter(0.95)
    training.block(2000)  # temporal coherence begins anew, with large steps
    last = training.block(1000)[:, 0].mean()
    assert last > (1.3 if method == "q" else 2) * first


@slow
def test_a_short_training_on_4x4_reaches_its_score():
    rules = Rules(4, 4)
    training = Training(Settings(rules, Network.of("4x6", rules), "tc", seed=1), 1)
    training.block(1000)
    assert training.block(1000)[:, 0].mean() > 18_000  # 20,400 when it was written


# -- training ----------------------------------------------------------------------------------


def small_settings(method="tc", seed=1, **more):
    rules = Rules(3, 3)
    return Settings(rules, Network.of("012 345 0134", rules), method, seed=seed, **more)


@slow
@pytest.mark.parametrize("method", ["td", "tc", "td+tc", "q"])
def test_one_thread_repeats_itself_and_resumes_bit_for_bit(own_home, method):
    settings = small_settings(method, epsilon=0.1 if method == "q" else 0.0)
    whole, path = Training(settings, 1), own_home / "x.safetensors"
    first = whole.block(100)
    whole.enter(0.9)
    second = whole.block(100)
    whole.block(100)
    assert first.tobytes() != second.tobytes()
    parts = Training(settings, 1)
    for number, games in enumerate((64, 36, 100, 7, 93)):
        if number == 2:
            parts.enter(0.9)
        parts.block(games)
        write_weights(path, parts.stored())
        stored = read_weights(path, learning=True)
        assert Settings.from_facts(stored.facts) == settings
        parts = Training.resumed(settings, stored, 1)
    assert parts.weights.tobytes() == whole.weights.tobytes()
    assert (parts.games, parts.moves) == (whole.games, whole.moves) == (300, whole.moves)


def test_what_is_packed_does_not_go_on(own_home):
    path = own_home / "x.safetensors"
    write_packed(path, stored_example())
    with pytest.raises(ValueError, match="cannot go on learning: it is packed"):
        Training.resumed(small_settings(), read_weights(path, learning=True), 1)


@slow
def test_threads_share_the_weights():
    training = Training(small_settings("td"), 2)
    results = training.block(2000)
    assert len(results) == 2000 and (results[:, 1] > 0).all()
    assert results[1000:, 0].mean() > 1.3 * results[:100, 0].mean()


@slow
def test_the_second_phase_goes_on_with_the_weights_of_the_first():
    training = Training(small_settings("td+tc"), 1)
    training.block(100)
    before = training.weights.copy()
    training.enter(0.5)
    assert training.weights.tobytes() == before.tobytes()
    training.enter(0.9)
    assert training.weights[::4].tobytes() == before.tobytes()
    assert not training.weights.reshape(-1, 4)[:, 1:].any()
    training.block(50)
    assert training.stored().stride == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"method": "tdd"}, "there is no method 'tdd'; did you mean td"),
        ({"order": "sideways"}, "the order is backward or forward"),
        ({"method": "q"}, "Q-learning is forward"),
        ({"epsilon": 0.1}, "only Q-learning explores"),
        ({"gamma": 1.5}, "gamma is a number from 0 to 1"),
        ({"rate": -1.0}, "rate is a number from 0 to 2"),
        ({"initial": 5.0}, "only otd, otc and otd\\+tc have an initial value, not tc"),
        ({"method": "otc", "initial": float("nan")}, "initial is a number from"),
        ({"seed": -1}, "a seed is a whole number"),
    ],
)
def test_bad_settings_are_refused(change, said):
    rules = Rules(3, 3)
    with pytest.raises(ValueError, match=said):
        Settings(rules, Network.of("012", rules), **{"order": "backward", **change})


def test_settings_have_usual_values():
    rules = Rules(3, 3)
    network = Network.of("012", rules)
    assert Settings(rules, network, "otd").initial == 2500.0
    assert Settings(rules, network, "td").initial == 0.0
    assert Settings(rules, network, "q").order == "forward"
    assert Settings(rules, network).order == "backward"
    assert isinstance(Settings(rules, network, gamma=1, rate=1).rate, float)


def test_blocks_and_goals():
    training = namedtuple("Training", "games seconds")
    goal = Goal(games=1000)
    assert goal.share(training(250, 0.0)) == 0.25
    assert goal.next_block(training(250, 0.0), 100) == 50
    assert goal.next_block(training(950, 0.0), 100) == 50
    assert Goal(games=10**6).next_block(training(0, 0.0), 0) == 1000
    assert Goal(games=10**6).next_block(training(2000, 0.0), 0) == 3000
    assert Goal(seconds=60.0).share(training(5, 30.0)) == 0.5
    assert block_size(None, Goal(games=1_000_000), False) == 10_000
    assert block_size(None, Goal(games=1_000_000), True) == 100_000
    assert Goal(games=5000).pause(training(4000, 0.0)) == 4500  # the second phase begins there
    assert Goal(games=5000).pause(training(4500, 0.0)) == 5500
    assert block_size("log", goal, False) == 0
    with pytest.raises(ValueError, match="a block is a number of games, or log"):
        block_size("often", goal, False)


def test_curves_have_the_intervals_of_student():
    from scipy import stats

    for n in range(2, 8):
        assert T95[n - 2] == pytest.approx(stats.t.ppf(0.975, n - 1), abs=1e-3)
    values = [3.0, 4.0, 8.0]
    ends = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert half_width(values) == pytest.approx((ends[1] - ends[0]) / 2, rel=1e-3)
    logs = [[{"games": g, "mean": m * g} for g in (10, 20)] for m in (1, 2)]
    assert [(p.games, p.mean) for p in curve(logs)] == [(10, 15.0), (20, 30.0)]
    assert np.isnan(half_width([1.0]))


# -- files -------------------------------------------------------------------------------------


def stored_example(stride=4, seed=0):
    """A network as it may be in the middle of a training, without any kernel."""
    settings = small_settings()
    weights = new_weights(settings.network, stride).reshape(-1, stride)
    rng = np.random.default_rng(seed)
    some = rng.choice(len(weights), 5000, replace=False)
    weights[some] = rng.normal(0, 300, (5000, stride))
    weights[some, -1] = rng.integers(1, 100, 5000)
    facts = settings.facts | {"games": 10, "moves": 99, "seconds": 1.0, "phase": 0, "reach": {}}
    return Stored(settings.network, weights.reshape(-1), stride, facts)


@pytest.mark.parametrize("stride", [1, 4])
def test_a_network_is_read_as_it_was_written(own_home, stride):
    stored = stored_example(stride)
    path = own_home / "x.safetensors"
    write_weights(path, stored)
    found = read_weights(path, learning=True)
    assert found.weights.tobytes() == stored.weights.tobytes() and found.stride == stride
    assert found.network == stored.network and found.rules == stored.rules
    plain = read_weights(path)
    assert plain.stride == 1 and (plain.weights == stored.weights[::stride]).all()
    assert path.stat().st_size < 5000 * 4 * stride + 20_000  # what was not visited costs nothing
    assert read_facts(path)["games"] == 10
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_packed_network_is_off_by_half_a_step_at_most(own_home):
    stored = stored_example()
    path = own_home / "x.safetensors"
    write_packed(path, stored, step=8.0, visits=20)
    found = read_weights(path)
    records = stored.weights.reshape(-1, 4)
    often = records[:, 3] >= 20
    assert np.abs(found.weights - records[:, 0])[often].max() <= 4.0
    assert not found.weights[~often].any()
    assert found.facts["packed"] == {"step": 8.0, "visits": 20}
    with pytest.raises(ValueError, match="need a larger step"):
        write_packed(path, stored, step=0.001)


def test_damaged_and_foreign_files_are_told_in_a_line(own_home, tmp_path):
    path = own_home / "x.safetensors"
    write_weights(path, stored_example())
    whole = path.read_bytes()
    for cut in (0, 4, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="is damaged, or no safetensors file"):
            read_weights(path)
    for place in range(len(whole) - 20_000, len(whole), 1999):
        path.write_bytes(whole)
        flip(path, place)
        with pytest.raises(ValueError, match="is damaged"):
            read_weights(path, learning=True)
    from safetensors.numpy import save_file

    save_file({"a": np.zeros(3)}, path)
    with pytest.raises(ValueError, match="is not an n-tuple network of lab2048"):
        read_weights(path)
    save_file({"a": np.zeros(3)}, path, metadata={"lab2048": '{"kind": "ntuple", "format": 9}'})
    with pytest.raises(ValueError, match="is of format 9; 1 is known here"):
        read_weights(path)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a b", ".x", "x" * 200])
def test_names_of_networks_are_no_paths(name):
    with pytest.raises(ValueError, match="a network's name is of letters"):
        network_folder(name)


# -- the player --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained():
    """A small network for 3x3 that has learnt a little."""
    training = Training(small_settings(), 1)
    training.block(1000)
    return training.stored()


def naive_net(stored):
    class Looked(naive_learn.Net):
        def value(self, grid, move=0):
            names = self.entries(grid, move)
            weights = [stored.weights[entry(stored.network, name)] for name in names]
            return self.initial + sum(map(float, weights))

    return Looked(cells_of(stored.network))


def naive_q(net, grid, move, depth, p4):
    after, reward = naive.move(grid, move)
    if depth == 1:
        return reward + net.value(after)
    total = 0.0
    for chance, state in naive.spawns(after, p4):
        moves = naive.legal_moves(state)
        total += float(chance) * max(
            (naive_q(net, state, m, depth - 1, p4) for m in moves), default=0.0
        )
    return reward + total


@slow
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_player_looks_ahead_with_the_network(trained, depth):
    from fractions import Fraction

    stored = trained.plain()
    player = NTuple(stored.rules, given=stored, depth=depth, downgrade="off")
    net = naive_net(stored)
    for grid in random_grids(stored.rules, 20 if depth < 3 else 3, seed=depth):
        moves = naive.legal_moves(grid)
        if not moves:
            continue
        found = player.values(Board.parse(naive.text(grid)))
        for move in moves:
            expected = naive_q(net, grid, move, depth, Fraction(1, 10))
            assert found[move] == pytest.approx(expected, rel=1e-9)


@slow
def test_images_of_a_board_are_played_alike(trained):
    player = NTuple(trained.rules, given=trained, ties="split")
    assert player.symmetric
    for grid in random_grids(trained.rules, 50, seed=5):
        boards = np.array([naive.packed(image) for image in naive.images(grid)], np.uint64)
        values = np.sort(player.values_many(boards, np.zeros_like(boards)), axis=1)
        assert np.array_equal(values, np.tile(values[0], (8, 1)), equal_nan=True)


def naive_downgrade(ranks, well):
    ranks = list(ranks)
    while max(ranks) > well:
        missing = max((r for r in range(1, max(ranks)) if r not in ranks), default=0)
        if missing == 0:
            break
        ranks = [r - 1 if r > missing else r for r in ranks]
    return ranks


def test_tiles_are_downgraded_from_the_largest_that_is_missing():
    rng = np.random.default_rng(2)
    boards = rng.integers(0, 16, (300, 16))
    boards[0] = [15, 14, 13, 11, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    packed = np.array([sum(int(r) << 4 * k for k, r in enumerate(b)) for b in boards], np.uint64)
    for well in (15, 14, 11):
        out = np.empty_like(packed)
        downgrade(packed, well, out)
        for ranks, found in zip(boards, out.tolist(), strict=True):
            assert [found >> 4 * k & 15 for k in range(16)] == naive_downgrade(ranks, well)
    assert naive_downgrade(boards[0], 14)[:4] == [14, 13, 12, 11]


class OneByOne(NTuple):
    """The same player, asked for every single move."""

    def play_on(self, state, four, moves, results):
        return False


@slow
@pytest.mark.parametrize("more", ["off", "auto", "64"])
def test_games_in_one_kernel_are_those_move_by_move(trained, more, monkeypatch):
    from lab2048 import arena

    monkeypatch.setattr(arena, "AT_ONCE", 7)
    found = []
    for kind in (NTuple, OneByOne):
        player = kind(trained.rules, given=trained, downgrade=more)
        games = arena.play_games(player, iter(range(40)), 7, threads=2)
        found.append({game.index: game for game in games})
    assert found[0] == found[1] and max(game.score for game in found[0].values()) > 500


@slow
@pytest.mark.parametrize(("method", "gamma"), [("state", 1.0), ("otd", 0.9), ("otd", 1.0)])
def test_networks_of_all_kinds_play_as_they_were_trained(method, gamma):
    settings = small_settings(method, gamma=gamma)
    training = Training(settings, 1)
    training.block(300)
    stored = training.stored()
    player, net = NTuple(stored.rules, given=stored, downgrade="off"), naive_net(stored)
    net.initial = settings.initial
    player.prepare()
    rule = stored.facts["rule"]
    for grid in [*random_grids(stored.rules, 20, seed=8), [[2, 4, 8], [16, 32, 64], [2, 4, 4]]]:
        found = player.values(Board.parse(naive.text(grid)))
        for move in naive.legal_moves(grid):
            expected = naive_learn.worth(net, rule, grid, move, gamma, 0.1)
            assert found[move] == pytest.approx(expected, rel=1e-9)
    if gamma == 1:
        assert NTuple(stored.rules, given=stored, depth=2).values(Board.parse(naive.text(grid)))
    else:
        with pytest.raises(ValueError, match="trained with a discount has depth 1"):
            NTuple(stored.rules, given=stored, depth=2)


@slow
def test_a_tile_that_is_too_large_is_left_to_the_game(trained):
    player = NTuple(trained.rules, given=trained, downgrade="off")
    board = Board.parse("32768 32768 2 / 4 8 16 / 32 64 128")
    state = np.array([[board.packed], [0], [0b1010], [0]], np.uint64)
    moves, results = np.zeros((1, 5), np.uint8), np.zeros((1, 3), np.int64)
    assert player.play_on(state, np.zeros(2, np.uint64), moves, results)
    assert results.tolist() == [[0, 0, 1]] and int(state[0, 0]) == board.packed


@slow
def test_probe_tells_what_players_think(own_home, command):
    code, out, _ = command(
        "probe", "2 2 / . 4", "--player", "greedy", "--player", "corner", "--json"
    )
    found = json.loads(out)["players"]
    assert code == 0 and found["greedy"]["values"] == {"up": None, "right": 4, "down": 0, "left": 4}
    assert found["greedy"]["choice"] == "right" and found["corner"]["choice"] == "left"
    code, out, _ = command("probe", "2 2 / . 4", "--player", "greedy")
    assert "greedy: the reward\nright        4.0000  its move\n" in out
    assert command("probe", "2 2 / . 4", "--player", "gredy")[0] == 2


@slow
def test_specs_of_the_player(own_home, trained):
    write_weights(network_folder("mine") / FILE, trained)
    rules = trained.rules
    player = make_player("ntuple:mine,depth=2,downgrade=512", rules)
    assert player.spec == "ntuple:mine,depth=2,downgrade=512" and player.well == 9
    assert str(make_player("ntuple:mine", rules)) == "ntuple:mine"
    assert make_player("ntuple:mine,time=1ms", rules).timed
    reach = trained.facts["reach"]
    well = max(int(tile) for tile, share in reach.items() if share >= 0.8)
    assert make_player("ntuple:mine", rules).well == well.bit_length() - 1
    before = make_player("ntuple:mine", rules).identity
    other = Training(small_settings(seed=9), 1)
    other.block(10)
    write_weights(network_folder("mine") / FILE, other.stored())
    assert make_player("ntuple:mine", rules).identity != before  # its games are others
    for spec, said in [
        ("ntuple:other", "there is no network other; there is mine"),
        ("ntuple:mine,depth=0", "depth is a whole number from 1 to 12"),
        ("ntuple:mine,depth=2,time=1ms", "a depth or a time, not both"),
        ("ntuple:mine,downgrade=7", "downgrade is auto, off or a tile up to 32768, not 7"),
        ("ntuple:../mine", "a network's name is of letters"),
        ("ntuple:depth=2,mine", "ntuple has no option 'mine'"),
    ]:
        with pytest.raises(ValueError, match=said):
            make_player(spec, rules)
    with pytest.raises(ValueError, match="mine is for 3x3, the board is 4x4"):
        make_player("ntuple:mine", Rules(4, 4))
    with pytest.raises(ValueError, match="there is no network for 5x2 in the package"):
        make_player("ntuple", Rules(5, 2))


# -- the command -------------------------------------------------------------------------------

FEW = ("train", "ntuple", "--board", "2x2", "--network", "0123")


@slow
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
    code, out, err = command("evaluate", "ntuple:a", "--board", "2x2", "--games", "50", "--json")
    assert code == 0 and json.loads(out)[0]["score"]["mean"] > 40


@slow
def test_runs_that_were_stopped_go_on(own_home, command):
    several = (*FEW, "--runs", "2", "--out", "s", "--episodes")
    assert command(*several, "200")[0] == 0
    shutil.rmtree(network_folder("s-2"))
    again = ("train", "ntuple", "--resume", "--runs", "2", "--out", "s", "--network", "3210")
    code, _, err = command(*again, "--episodes", "300", "--rate", "1", "--seed", "1")
    assert code == 0, err
    assert [read_facts(network_folder(f"s-{n}") / FILE)["games"] for n in (1, 2)] == [300, 300]
    assert [read_facts(network_folder(f"s-{n}") / FILE)["seed"] for n in (1, 2)] == [1, 2]


@slow
def test_two_phases_whatever_the_blocks(own_home, command):
    code, _, err = command(*FEW, "--method", "td+tc", "--episodes", "200", "--block", "200")
    assert code == 0, err
    facts = read_facts(network_folder("2x2-blocks-td+tc") / FILE)
    assert facts["phase"] == 1 and facts["games"] == 200


@slow
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


BAD = [
    (("--episodes", "0"), "a number of games is such as 5000, 200k or 1M, not '0'"),
    (("--episodes", "many"), "a number of games is such as"),
    ((), "a training lasts for --episodes or for --minutes"),
    (("--episodes", "10", "--minutes", "1"), "a training lasts for --episodes or for --minutes"),
    (("--minutes", "0"), "--minutes is a number above 0"),
    (("--episodes", "10", "--out", "../x"), "a network's name is of letters"),
    (("--episodes", "10", "--network", "0129"), "the tuple 0129 has cell 9"),
    (("--episodes", "10", "--method", "magic"), "there is no method 'magic'"),
    (("--episodes", "10", "--resume", "--out", "none"), "there is no network none to go on with"),
    (("--episodes", "10", "--plot", "x.gif"), "a picture is .svg, .png or .pdf"),
    (("--episodes", "10", "--block", "0"), "a block is a number of games, or log"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD, ids=[" ".join(each[0]) for each in BAD])
def test_bad_commands_are_told_in_a_line(own_home, command, arguments, said):
    code, out, err = command("train", "ntuple", "--board", "3x3", *arguments)
    lines = [line for line in err.splitlines() if "compiling kernels" not in line]
    assert code == 2 and out == "" and len(lines) == 1 and said in lines[0]


@slow
def test_a_log_that_cannot_be_written_ends_no_training(own_home, command):
    (network_folder("a") / "log.jsonl").mkdir(parents=True)
    code, _, err = command(*FEW, "--episodes", "300", "--block", "100", "--out", "a")
    assert code == 0 and err.count("the log cannot be written") == 1
    assert read_facts(network_folder("a") / FILE)["games"] == 300


@slow
def test_no_room_on_the_disk(own_home, command, monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(runs_module.shutil, "disk_usage", lambda _: usage._replace(free=1000))
    code, _, err = command(*FEW, "--episodes", "300", "--out", "a")
    assert code == 2 and "the network may need" in err
    monkeypatch.undo()
    monkeypatch.setenv("LAB2048_HOME", str(own_home))
    monkeypatch.setattr(runs_module, "SAVE_SECONDS", 0.0)
    real = runs_module.write_weights
    monkeypatch.setattr(runs_module, "write_weights", failing_once(real))
    code, _, err = command(*FEW, "--episodes", "300", "--block", "100", "--out", "a")
    assert code == 0 and "the network cannot be saved now" in err and "No space left" in err
    assert read_facts(network_folder("a") / FILE)["games"] == 300


def failing_once(write):
    """A writer whose first write finds the disk full."""
    failed = []

    def call(path, stored):
        if not failed:
            failed.append(path)
            raise OSError(28, "No space left on device", str(path))
        write(path, stored)

    return call


@slow
def test_what_is_killed_goes_on(warm_home):
    code = (
        "import sys\nfrom lab2048.learn import runs\nruns.SAVE_SECONDS = 0.1\n"
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


@slow
def test_ctrl_c_keeps_what_was_learnt(warm_home):
    arguments = ["train", "ntuple", "--board", "3x3", "--network", "012 345", "--out", "c"]
    process = subprocess.Popen(
        [sys.executable, "-m", "lab2048", *arguments, "--episodes", "1M", "--block", "1000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for line in process.stderr:
        if "1,000 games" in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "--resume goes on from there" in err and out == ""
    assert read_facts(network_folder("c") / FILE)["games"] >= 1000


@slow
def test_tensorboard_can_read_the_curves(own_home, command):
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    assert command(*FEW, "--episodes", "300", "--block", "100", "--out", "t")[0] == 0
    [file] = (network_folder("t") / "tensorboard").iterdir()
    events = [event for event in EventFileLoader(str(file)).Load() if event.summary.value]
    assert [event.step for event in events] == [100, 200, 300]
    tags = {value.tag for value in events[-1].summary.value}
    assert {"mean", "max", "moves_per_second", "reach/8"} <= tags


def test_lines_hold_slides_and_rewards():
    from lab2048.board import OVERFLOW, table

    for length in (2, 3, 4) if WITH_JIT else (2,):
        n = 16**length
        slid, found = table(length), lines(length)
        mask = np.uint64(n - 1)
        assert (found & mask == slid[:n]).all()
        assert ((found >> np.uint64(4 * length)) & mask == slid[n : 2 * n]).all()
        assert (found >> np.uint64(8 * length) == slid[2 * n :] & ~np.uint32(OVERFLOW)).all()
