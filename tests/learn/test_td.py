"""N-tuple networks: values, the rules of learning, and training."""

from __future__ import annotations

import numpy as np
import pytest

from lab2048.engine.slides import lines
from lab2048.game import Board, Game, Rules
from lab2048.learn.curve import curve
from lab2048.learn.learner import Goal
from lab2048.learn.ntuple import (
    Network,
    blocks,
    named_networks,
    network_kernels,
    new_weights,
)
from lab2048.learn.ntuple_files import read_weights, write_packed, write_weights
from lab2048.learn.ntuple_player import NTuple
from lab2048.learn.ntuple_settings import METHODS, NTupleSettings
from lab2048.learn.td import NTupleLearner, block_size, next_block, pause
from lab2048.learn.td_kernels import learning_kernels
from tests import naive, naive_learn
from tests.conftest import WITH_JIT
from tests.small_networks import cells_of, entry, random_grids, small_settings, stored_example

SMALL = {
    "2x2": "0123",
    "3x2": "012345",
    "2x3": "012 0134",
    "3x3": "012 345 0134",  # that of `small_settings`, whose kernels so are compiled once
    "4x3": "0134 258 9a",
}


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


@pytest.mark.slow
@pytest.mark.parametrize("board", SMALL)
def test_values_are_those_of_dictionaries(board):
    rules = Rules.parse(board)
    network = Network.of(SMALL[board], rules)
    weights = new_weights(network)
    weights[:] = np.random.default_rng(1).normal(size=len(weights)).astype(np.float32)
    net = naive_learn.Net(cells_of(network))
    value = network_kernels(network, 1, False).value
    for grid in random_grids(rules, 50):
        for name in net.entries(grid):
            net.weights[name] = weights[entry(network, name)]
        found = value(np.uint64(naive.packed(grid)), 0, weights)
        assert found == pytest.approx(net.value(grid), rel=1e-12)
        for image in naive.images(grid):  # bit for bit
            assert value(np.uint64(naive.packed(image)), 0, weights) == found


@pytest.mark.slow
@pytest.mark.parametrize("board", ["3x3", "4x3"])
def test_places_are_the_same_without_the_instruction_for_them(board):
    rules = Rules.parse(board)
    network = Network.of(SMALL[board], rules)
    weights = new_weights(network)
    weights[:] = np.random.default_rng(1).normal(size=len(weights)).astype(np.float32)
    kernels = network_kernels(network, 1, False)
    other = network_kernels(network, 1, False, extract=False)
    for grid in random_grids(rules, 50):
        board = np.uint64(naive.packed(grid))
        assert other.value(board, 0, weights) == kernels.value(board, 0, weights)


# -- learning ----------------------------------------------------------------------------------

RULES = [
    ("td", "td", {}),
    ("tc", "td", {"coherent": True}),
    ("state", "state", {}),
    ("q", "q", {}),
    ("otd", "td", {}),
    ("otc", "td", {"coherent": True}),
]


@pytest.mark.slow
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
    training = NTupleLearner(
        NTupleSettings(rules, network, method, rate, initial, gamma, order=order, seed=3), 1
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


@pytest.mark.slow
def test_the_update_of_one_move_by_hand():
    # 2x2, the whole board as its tuple: a value is the sum of 8 weights. The two halves of the
    # update of one afterstate, "4 . / 2 .", whose target is 10: none of its images are equal, so
    # each of 8 weights takes 0.8 / 8 * 10 = 1.0, and the value is 8; then 0.8 / 8 * 2 = 0.2.
    from lab2048.learn.td_moves import Lesson

    rules = Rules(2, 2)
    network = Network.of("0123", rules)
    kernels = learning_kernels(network, "td", False, False)
    weights = new_weights(network)
    lesson = Lesson(0.8 / 8, 0.0, 1.0, 0.0)
    board = np.uint64(Board.parse("4 . / 2 .").packed)
    kernels.correct(board, 0, 10.0, lesson, weights)
    assert np.count_nonzero(weights) == 8 and weights.max() == weights[0x0102] == 1.0
    kernels.correct(board, 0, 10.0, lesson, weights)
    assert weights[0x0102] == pytest.approx(1.2) and weights[0x2010] == weights[0x0102]
    # "2 . / . ." has 4 different images, each looked up twice and so changed twice
    corner = np.uint64(Board.parse("2 . / . .").packed)
    kernels.correct(corner, 0, 10.0, lesson, weights)
    assert weights[0x0001] == pytest.approx(2.0)
    assert kernels.value(corner, 0, weights) == pytest.approx(16.0)


@pytest.mark.slow
def test_exploring_is_any_legal_move_with_its_chance():
    rules = Rules(2, 2)
    kernels = learning_kernels(Network.of("0123", rules), "q", False, False)
    board = np.uint64(Board.parse("2 2 / 4 .").packed)  # right, down, left
    words = np.random.default_rng(3).integers(0, 2**64, 30_000, np.uint64)
    moves = [kernels.explore(board, word, 2, 0.3) for word in words]
    shares = np.bincount(moves, minlength=4) / len(moves)
    assert shares == pytest.approx([0.0, 0.1, 0.8, 0.1], abs=0.01)
    assert {kernels.explore(board, word, 2, 0.0) for word in words[:100]} == {2}


@pytest.mark.slow
def test_rates_of_temporal_coherence_are_between_0_and_1():
    training = NTupleLearner(small_settings("tc"), 1)
    training.block(2000)
    records = training.weights.reshape(-1, 4)
    seen = records[records[:, 3] > 0]
    assert len(seen) > 5000
    assert (np.abs(seen[:, 1]) <= seen[:, 2] * (1 + 1e-5)).all()
    assert (records[records[:, 3] == 0] == 0).all()


def settled(rules, network, method, steps, **more):
    """A training whose rate is lowered step by step, so that the noise goes."""
    training = None
    for number, (rate, games) in enumerate(steps):
        settings = NTupleSettings(rules, network, method, rate, seed=number, **more)
        before = training
        training = NTupleLearner(settings, 1)
        if before is not None:
            training.weights = before.weights
        training.block(games)
    return training


FEWER = [(0.1, 100_000), (0.02, 30_000), (0.004, 30_000)]
MORE = [(0.1, 2_000_000), (0.02, 250_000), (0.004, 250_000)]


@pytest.mark.slow
@pytest.mark.parametrize(("board", "steps"), [("2x2", FEWER), ("3x2", MORE)], ids=["2x2", "3x2"])
def test_td_finds_the_exact_values_of_afterstates(board, steps, made):
    from lab2048.solver.job import make_table
    from lab2048.solver.problem import Problem
    from lab2048.solver.table import Table

    folder = made
    if board == "2x2":
        folder = made.parent / "2x2"
        make_table(Problem.of("2x2"), folder)
    rules = Rules.parse(board)
    network = Network.of(SMALL[board], rules)
    high = 550.0 if board == "3x2" else 100.0  # above the best, so that all is tried
    training = settled(rules, network, "otd", steps, initial=high, order="forward")
    value = network_kernels(network, 1, False).value
    with Table(folder) as table:
        found = training.measure(table)["exact"]
        assert found["share"] > 0.99
        assert found["error"] < 0.01 * found["mean"]
        # afterstates that almost every game comes to, one by one
        small, large = ("2 . / 2 .", "4 2 / . ."), ("2 . / 2 . / . .", "4 . / . . / . .")
        for text in small if board == "2x2" else large:
            after = Board.parse(text)
            learnt = high + value(np.uint64(after.packed), 0, training.weights)
            assert learnt == pytest.approx(table.after_value(after), rel=0.03)


@pytest.mark.slow
def test_q_learning_finds_the_exact_q(made):
    from lab2048.solver.job import make_table
    from lab2048.solver.problem import Problem
    from lab2048.solver.table import Table

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


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_on_3x3(method):
    rules = Rules(3, 3)
    order = "forward" if method in ("q", "state") else "backward"
    initial = 500.0 if method.startswith("o") else None
    network = Network.of(SMALL["3x3"], rules)
    training = NTupleLearner(
        NTupleSettings(rules, network, method, initial=initial, order=order), 1
    )
    first = training.block(50)[:, 0].mean()
    training.block(4000)
    training.enter(0.95)
    training.block(2000)  # temporal coherence begins anew, with large steps
    last = training.block(1000)[:, 0].mean()
    assert last > (1.3 if method == "q" else 2) * first


@pytest.mark.slow
def test_a_short_training_on_4x4_reaches_its_score():
    rules = Rules(4, 4)
    training = NTupleLearner(NTupleSettings(rules, Network.of("4x6", rules), "tc", seed=1), 1)
    training.block(1000)
    assert training.block(1000)[:, 0].mean() > 18_000  # 20,400 when it was written


# -- training ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", ["td", "tc", "td+tc", "q"])
def test_one_thread_repeats_itself_and_resumes_bit_for_bit(own_home, method):
    settings = small_settings(method, epsilon=0.1 if method == "q" else 0.0)
    whole, path = NTupleLearner(settings, 1), own_home / "x.safetensors"
    first = whole.block(100)
    whole.enter(0.9)
    second = whole.block(100)
    whole.block(100)
    assert first.tobytes() != second.tobytes()
    parts = NTupleLearner(settings, 1)
    for number, games in enumerate((64, 36, 100, 7, 93)):
        if number == 2:
            parts.enter(0.9)
        parts.block(games)
        write_weights(path, parts.stored())
        stored = read_weights(path, learning=True)
        assert NTupleSettings.from_facts(stored.facts) == settings
        parts = NTupleLearner.resumed(stored, 1)
    assert parts.weights.tobytes() == whole.weights.tobytes()
    assert (parts.games, parts.moves) == (whole.games, whole.moves) == (300, whole.moves)


@pytest.mark.parametrize("method", ["td", "tc"])
def test_what_is_packed_does_not_go_on(own_home, method):
    path = own_home / "x.safetensors"
    stored = stored_example(1 if method == "td" else 4, method=method)
    assert NTupleLearner.resumed(stored, 1).games == 10
    write_packed(path, stored, 1.0)
    with pytest.raises(ValueError, match="cannot go on learning: it is packed"):
        NTupleLearner.resumed(read_weights(path, learning=True), 1)


@pytest.mark.slow
def test_threads_share_the_weights():
    training = NTupleLearner(small_settings("td"), 2)
    for trail in training._trails:
        trail.boards[0] = 0
    results = training.block(2000)
    assert all(trail.boards[0] for trail in training._trails)  # both have played
    assert len(results) == 2000 and (results[:, 1] > 0).all()
    assert results[1000:, 0].mean() > 1.3 * results[:100, 0].mean()


@pytest.mark.slow
def test_the_second_phase_goes_on_with_the_weights_of_the_first():
    training = NTupleLearner(small_settings("td+tc"), 1)
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
        ({"rate": -1.0}, "rate is a number from 1e-06 to 2"),
        ({"initial": 5.0}, "only otd, otc and otd\\+tc have an initial value, not tc"),
        ({"method": "otc", "initial": float("nan")}, "initial is a number from"),
        ({"seed": -1}, "a seed is a whole number"),
    ],
)
def test_bad_settings_are_refused(change, said):
    rules = Rules(3, 3)
    with pytest.raises(ValueError, match=said):
        NTupleSettings(rules, Network.of("012", rules), **{"order": "backward", **change})


def test_settings_have_usual_values():
    rules = Rules(3, 3)
    network = Network.of("012", rules)
    assert NTupleSettings(rules, network, "otd").initial == 2500.0
    assert NTupleSettings(rules, network, "td").initial == 0.0
    assert NTupleSettings(rules, network, "q").order == "forward"
    assert NTupleSettings(rules, network).order == "forward"
    large = Rules(4, 4)
    assert NTupleSettings(large, Network.of("4x6", large)).order == "backward"
    assert NTupleSettings(large, Network.of("4x6", large), "q").order == "forward"
    assert isinstance(NTupleSettings(rules, network, gamma=1, rate=1).rate, float)


def test_blocks_and_goals():
    class Training(NTupleLearner):
        def __init__(self, games, seconds, moves=0):
            self.settings, self.done, self.seconds = NTupleSettings, games, seconds
            self.moves = moves

    training, goal = Training, Goal(1000)
    assert goal.share(training(250, 0.0)) == 0.25
    assert goal.share(training(250, 0.0), games=300) == 0.3
    assert Goal(1000, 60.0, counts={"moves": 50}).share(training(250, 30.0, 40)) == 0.8
    assert next_block(250, 100, goal) == 50
    assert next_block(950, 100, goal) == 50
    assert next_block(0, 0, Goal(10**6)) == 1000
    assert next_block(2000, 0, Goal(10**6)) == 3000
    assert Goal(seconds=60.0).share(training(5, 30.0)) == 0.5
    assert block_size(small_settings(), Goal(1_000_000)) == 10_000
    assert block_size(small_settings(), Goal(1_000_000, measured=True)) == 100_000
    assert pause(4000, Goal(5000)) == 4500  # the second phase begins there
    assert pause(4500, Goal(5000)) == 5500
    assert block_size(small_settings(block="log"), goal) == 0
    assert block_size(small_settings(block="2k"), goal) == 2000
    with pytest.raises(ValueError, match="a block is a number of games, or log"):
        small_settings(block="often")


def test_a_curve_is_the_mean_of_its_runs_where_all_have_one():
    logs = [[{"games": g, "mean": m * g} for g in (10, 20)] for m in (1, 2)]
    logs[0].append({"games": 30, "mean": 1.0})
    assert [(p.count, p.mean) for p in curve(logs)] == [(10, 15.0), (20, 30.0)]
    assert curve(logs)[0].half == pytest.approx(63.53102)  # 12.7062 * 10 / 2


def test_lines_hold_slides_and_rewards():
    from lab2048.engine.slides import OVERFLOW, table

    for length in (2, 3, 4) if WITH_JIT else (2,):
        n = 16**length
        slid, found = table(length), lines(length)
        mask = np.uint64(n - 1)
        assert (found & mask == slid[:n]).all()
        assert ((found >> np.uint64(4 * length)) & mask == slid[n : 2 * n]).all()
        assert (found >> np.uint64(8 * length) == slid[2 * n :] & ~np.uint32(OVERFLOW)).all()
