"""Every search against a slow recursion, and the players that are made of them."""

from __future__ import annotations

import time

import numpy as np
import pytest

from lab2048 import Board, Direction, Rules, direction_on_image
from lab2048.game import Game, random_move
from lab2048.players import heuristics, time_limit
from lab2048.players.heuristics import HEURISTICS, ROWS, ROWS_DEAD, SHAPE, SHAPE_DEAD, SHAPE_EDGE
from lab2048.players.registry import make_player
from lab2048.players.ties import pick
from tests import naive, naive_search
from tests.conftest import WITH_JIT

NAIVE = {
    "rows": naive_search.rows(
        {
            "free": ROWS[heuristics.FREE],
            "merge": ROWS[heuristics.MERGE],
            "uneven": ROWS[heuristics.UNEVEN],
            "uneven_power": ROWS[heuristics.UNEVEN_POWER],
            "sum": ROWS[heuristics.SUM],
            "sum_power": ROWS[heuristics.SUM_POWER],
        }
    ),
    "shape": naive_search.shape(
        {
            "free": SHAPE[heuristics.FREE],
            "rough": SHAPE[heuristics.ROUGH],
            "uneven": SHAPE[heuristics.UNEVEN],
            "edge": SHAPE_EDGE,
        }
    ),
    "snake": naive_search.snake,
    "alpha": naive_search.alpha,
    "zero": None,
}
DEAD = {"rows": ROWS_DEAD, "shape": SHAPE_DEAD}
slow = pytest.mark.slow
needs_jit = pytest.mark.skipif(not WITH_JIT, reason="takes minutes without the JIT")
BOARDS = [
    (3, 2),
    pytest.param(2, 2, marks=slow),
    pytest.param(3, 3, marks=[slow, needs_jit]),
]


def positions(rows, cols, count, seed=1, p4=0.1):
    """Boards out of random games, some of them terminal."""
    out, index = [], 0
    while len(out) < count:
        game = Game(Rules(rows, cols, p4), seed, index=index)
        index += 1
        while not game.over:
            out.append(game.board)
            game.play(random_move(game.board, game.own_word))
        out.append(game.board)
    step = max(1, len(out) // count)
    return out[::step][:count]


def grid_of(board):
    return [list(row) for row in board.tiles]


def packed(boards):
    return np.array([board.packed for board in boards], np.uint64)


def values_of(spec, rules, boards):
    """The values of a player, as it says them one by one."""
    player = make_player(spec, rules)
    found = player.values_many(packed(boards), np.arange(len(boards), dtype=np.uint64))
    return [{d: row[d] for d in range(4) if not np.isnan(row[d])} for row in found.tolist()]


def same(found, wanted):
    """Whether values agree but for the rounding of the tables of lines."""
    assert found.keys() == wanted.keys()
    for direction, value in wanted.items():
        assert found[direction] == pytest.approx(value, rel=1e-6, abs=1e-3)


def chosen(values, ties=False):
    """The first of the best moves; None if that is too close to call.

    Without `ties` it is wherever two are nearly the same: tables of lines are rounded.
    """
    best = max(values.values())
    near = [d for d, v in values.items() if v >= best - 1e-6 * max(1e3, abs(best))]
    tied = [d for d, v in values.items() if v >= best - 1e-11 * max(1, abs(best))]
    return near[0] if len(near) == 1 or (ties and near == tied) else None


# -- heuristics --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HEURISTICS)
@pytest.mark.parametrize(
    ("rows", "cols"),
    [(3, 2), *(pytest.param(r, c, marks=[slow, needs_jit]) for r, c in [(3, 3), (4, 3), (4, 4)])],
)
def test_a_heuristic_is_what_its_definition_says(name, rows, cols):
    """Depth 1 values the board after the move."""
    boards = positions(rows, cols, 12)
    found = values_of(f"expectimax:depth=1,heuristic={name}", Rules(rows, cols), boards)
    search = naive_search.Expectimax(NAIVE[name], DEAD.get(name, 0.0))
    for board, values in zip(boards, found, strict=True):
        same(values, search.values(grid_of(board), 1))


def test_alpha_is_the_printed_matrix():
    assert heuristics.slope(Rules(4, 4)).tolist() == naive_search.ALPHA


def test_the_snake_winds_along_rows_and_along_columns():
    assert heuristics.snake(Rules(3, 2)).tolist() == [[32, 16], [4, 8], [2, 1]]
    assert heuristics.snake(Rules(3, 2), vertical=True).tolist() == [[32, 16, 8], [1, 2, 4]]
    assert heuristics.snake_order(Rules(3, 2)) == [0, 1, 3, 2, 4, 5]


# -- searches ----------------------------------------------------------------------------------

SEARCHES = {
    "expectimax": naive_search.Expectimax,
    "minimax": naive_search.Minimax,
    "expectiminimax": naive_search.Expectiminimax,
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("heuristic", ["zero", "rows", "snake"])
@pytest.mark.parametrize(("rows", "cols"), BOARDS)
def test_a_search_is_its_recursion(name, heuristic, rows, cols):
    depth = 3 if rows * cols < 9 else 2
    boards = positions(rows, cols, 8 if rows * cols < 9 else 3)
    search = SEARCHES[name](NAIVE[heuristic], DEAD.get(heuristic, 0.0))
    for d in range(1, depth + 1):
        spec = f"{name}:depth={d},heuristic={heuristic}"
        player = make_player(spec, Rules(rows, cols))
        for board, values in zip(boards, values_of(spec, Rules(rows, cols), boards), strict=True):
            wanted = search.values(grid_of(board), d)
            same(values, wanted)
            move = chosen(wanted, ties=heuristic == "zero") if wanted else None
            if move is not None:
                assert player.choose(board) == move


@pytest.mark.parametrize("p4", [0.0, 1.0, 0.5])
@pytest.mark.parametrize("name", SEARCHES)
def test_other_chances_of_a_four(name, p4):
    boards = positions(3, 2, 6, p4=p4)
    search = SEARCHES[name](None, p4=p4)
    found = values_of(f"{name}:depth=3,heuristic=zero", Rules(3, 2, p4), boards)
    for board, values in zip(boards, found, strict=True):
        same(values, search.values(grid_of(board), 3))


@pytest.mark.parametrize("name", SEARCHES)
def test_fewer_cells(name):
    """Zhou's pruning: only the first cells along the snake."""
    boards = positions(3, 2, 8)
    for cells in (1, 2):
        search = SEARCHES[name](naive_search.alpha, cells=cells)
        found = values_of(f"{name}:depth=3,heuristic=alpha,cells={cells}", Rules(3, 2), boards)
        for board, values in zip(boards, found, strict=True):
            same(values, search.values(grid_of(board), 3))


@pytest.mark.parametrize("cutoff", [0.03, 0.1, 0.2, 0.5])
def test_what_is_unlikely_is_not_looked_into(cutoff):
    boards = positions(3, 2, 30)
    search = naive_search.CutOff(NAIVE["rows"], DEAD["rows"], cutoff)
    spec = "expectimax:depth=3,heuristic=rows"
    exact = values_of(spec, Rules(3, 2), boards)
    found = values_of(f"{spec},cutoff={cutoff}", Rules(3, 2), boards)
    for board, values in zip(boards, found, strict=True):
        same(values, search.values(grid_of(board), 3))
    assert found != exact


def test_alpha_beta_makes_the_same_move_as_plain_minimax():
    for heuristic in ("zero", "alpha", "rows"):
        player = make_player(f"minimax:depth=3,heuristic={heuristic}", Rules(3, 2))
        boards = packed(positions(3, 2, 40))
        words = np.zeros_like(boards)
        plain = pick(player.values_many(boards, words), words, False, player.tie)
        assert player.choose_many(boards, words).tolist() == plain.tolist()


def test_sparse_sampling_of_all_spawns_is_expectimax():
    boards = positions(3, 2, 10)
    for gamma, heuristic in ((1.0, "zero"), (0.9, "zero"), (1.0, "alpha")):
        spec = f"sparse:depth=3,samples=0,gamma={gamma},heuristic={heuristic}"
        search = naive_search.Expectimax(NAIVE[heuristic], gamma=gamma)
        for board, values in zip(boards, values_of(spec, Rules(3, 2), boards), strict=True):
            same(values, search.values(grid_of(board), 3))


def test_sparse_sampling_comes_near_expectimax():
    board = Board.parse("2 4 / 8 2 / . .")
    player = make_player("sparse:depth=2,samples=1000", Rules(3, 2))
    wanted = naive_search.Expectimax(None).values(grid_of(board), 2)
    found = player.values(board, word=5)
    for direction, value in wanted.items():
        assert found[direction] == pytest.approx(value, abs=0.5)


@slow
def test_a_dead_end_may_be_avoided_at_any_price():
    """A move after which some spawn ends the game is worth minus infinity; of such, the first."""
    boards = positions(2, 2, 60)
    rules = Rules(2, 2)
    plain = values_of("sparse:depth=2,samples=0", rules, boards)
    avoid = values_of("sparse:depth=2,samples=0,terminal=avoid", rules, boards)
    assert any(-np.inf in values.values() for values in avoid)
    for board, mild, strict in zip(boards, plain, avoid, strict=True):
        for direction in mild:
            after = naive.move(grid_of(board), direction)[0]
            dead = any(not naive.legal_moves(s) for _, s in naive.spawns(after, 0.1))
            assert strict[direction] == (-np.inf if dead else mild[direction])
        if board.legal_moves and set(strict.values()) == {-np.inf}:
            player = make_player("sparse:depth=2,samples=0,terminal=avoid", rules)
            assert player.choose(board) == board.legal_moves[0]


def test_avoiding_dead_ends_without_a_future():
    boards = positions(3, 2, 60)
    found = values_of("sparse:depth=2,samples=0,gamma=0,terminal=avoid", Rules(3, 2), boards)
    for board, values in zip(boards, found, strict=True):
        assert values == {d: board.move(d).reward for d in board.legal_moves}


@slow
@needs_jit
def test_expectimax_to_the_end_is_perfect_play():
    """On 2x2 no game is longer than 58 moves, but 12 more moves decide nearly always."""
    graph = naive.game_graph(2, 2, naive.Fraction(1, 10))
    exact = naive.expected_scores(graph)
    old = [state for state in exact if sum(map(sum, state)) >= 36]
    boards = [Board.parse([list(row) for row in state]) for state in old]
    for state, values in zip(
        old, values_of("expectimax:depth=12,heuristic=zero", Rules(2, 2), boards), strict=True
    ):
        assert max(values.values(), default=0.0) == pytest.approx(float(exact[state]), abs=1e-9)


# -- random games and trees --------------------------------------------------------------------


@slow
@needs_jit
def test_rollouts_have_the_mean_of_random_games():
    """From one board, the mean over many games is the value of random play there."""
    board = Board.parse("2 4 / 4 2 / 8 .")
    known = {}

    def value(grid):
        key = naive.frozen(grid)
        if key not in known:
            moves = naive.legal_moves(grid)
            known[key] = sum(after_move(grid, d) for d in moves) / len(moves) if moves else 0.0
        return known[key]

    def after_move(grid, direction):
        after, reward = naive.move(grid, direction)
        return reward + sum(float(p) * value(s) for p, s in naive.spawns(after, 0.1))

    player = make_player("montecarlo:rollouts=20000", Rules(3, 2))
    for direction, found in player.values(board, word=3).items():
        assert found == pytest.approx(after_move(grid_of(board), direction), rel=0.03)


@slow
def test_what_a_rollout_backs_up():
    """After the one legal move, any spawn ends the game."""
    board = Board.parse("64 4 / 8 32 / 16 16")
    assert board.legal_moves == (Direction.RIGHT, Direction.LEFT)
    rules = Rules(3, 2)
    after = {"max": 64, "sum": 64 + 4 + 8 + 32 + 32 + 2.2, "score": 32}
    for backup, wanted in after.items():
        player = make_player(f"montecarlo:rollouts=400,backup={backup}", rules)
        assert player.values(board)[Direction.LEFT] == pytest.approx(wanted, abs=0.2)


@slow
@needs_jit
def test_a_tree_search_finds_the_optimal_moves():
    """On 2x2, with many simulations and leaves valued by random games."""
    graph = naive.game_graph(2, 2, naive.Fraction(1, 10))
    exact = naive.expected_scores(graph)
    player = make_player("mcts:simulations=20000,leaf=rollouts,c1=0.5", Rules(2, 2))
    wrong = 0
    states = [state for state in graph if len(graph[state]) > 1][::15]
    for state in states:
        q = {}
        grid = [list(row) for row in state]
        for direction in naive.legal_moves(grid):
            after, reward = naive.move(grid, direction)
            spawns = naive.spawns(after, naive.Fraction(1, 10))
            q[direction] = reward + sum(p * exact[naive.frozen(s)] for p, s in spawns)
        best = max(q.values())
        margin = sorted(q.values())[-2]
        move = player.choose(Board.parse(grid), word=1)
        if best - margin > 1:
            assert q[int(move)] == best, state
        wrong += q[int(move)] != best
    assert wrong <= len(states) // 10


def test_every_simulation_is_a_visit():
    boards = positions(3, 2, 20)
    for spec in (
        "mcts:simulations=50",
        "mcts:simulations=50,depth=1",
        "mcts:simulations=7,cells=1",
    ):
        simulations = int(spec.split("=")[1].split(",")[0])
        for board, values in zip(boards, values_of(spec, Rules(3, 2), boards), strict=True):
            assert sum(values.values()) == (simulations if board.legal_moves else 0)


@needs_jit
def test_with_depth_one_a_tree_search_is_a_mean_over_spawns():
    """Leaves are the states after one move, so the best move is that of a search to depth 2."""
    rules = Rules(3, 2)
    tree = make_player("mcts:simulations=5000,depth=1,heuristic=alpha", rules)
    search = naive_search.Expectimax(naive_search.alpha)
    for board in positions(3, 2, 12):
        values = search.values(grid_of(board), 2)
        ordered = sorted(values.values())
        if len(ordered) > 1 and ordered[-1] - ordered[-2] > 0.05 * abs(ordered[-1]):
            assert tree.choose(board, word=9) == chosen(values)


# -- all players -------------------------------------------------------------------------------

SPECS = [
    "random",
    "greedy",
    "greedy:ties=split",
    "corner",
    "minimax:depth=2",
    "expectimax:depth=2",
    "expectimax:depth=3,cutoff=0.01",
    "expectimax:depth=2,ties=split",
    "expectiminimax:depth=2",
    "sparse",
    pytest.param("montecarlo:rollouts=5", marks=slow),
    "mcts:simulations=20",
    "mcts:simulations=20,leaf=rollouts",
]


@pytest.mark.parametrize("spec", SPECS)
def test_a_player_moves_legally_and_as_its_values_say(spec):
    rules = Rules(3, 2)
    player = make_player(spec, rules)
    boards = positions(3, 2, 30)
    words = np.arange(len(boards), dtype=np.uint64)
    moves = player.choose_many(packed(boards), words)
    values = player.values_many(packed(boards), words)
    for i, board in enumerate(boards):
        if board.is_terminal:
            assert moves[i] == -1 and np.isnan(values[i]).all()
            with pytest.raises(ValueError, match="no move is legal"):
                player.choose(board)
            continue
        assert Direction(int(moves[i])) in board.legal_moves
        assert player.choose(board, int(words[i])) == moves[i]
        assert player.values(board, int(words[i])).keys() == set(board.legal_moves)
        if not player.splits:
            assert values[i, moves[i]] == pytest.approx(np.nanmax(values[i]), rel=1e-9)


@pytest.mark.parametrize("spec", ["random", "greedy:ties=split", "expectimax:depth=2,ties=split"])
def test_symmetric_players_play_images_alike(spec):
    rules = Rules(3, 2)
    player = make_player(spec, rules)
    assert player.symmetric
    for board in positions(3, 2, 30):
        chances = player.probabilities(packed([board]))[0]
        for symmetry in range(4):
            images = player.probabilities(packed([board.image(symmetry)]))[0]
            for direction in Direction:
                turned = direction_on_image(direction, symmetry)
                assert images[turned] == pytest.approx(chances[direction], abs=1e-12)


def test_a_board_too_large_to_be_packed_is_played_by_its_stand_in():
    board = Board.parse("131072 65536 / 2 2 / . .")
    for spec in ("greedy", "expectimax:depth=2", "mcts:simulations=10"):
        assert make_player(spec, Rules(3, 2)).choose(board) in board.legal_moves


@slow
@needs_jit
def test_lines_of_six_cells():
    board = Board.parse("2 2 4 8 16 32 / . . . . . 2")
    search = naive_search.Expectimax(naive_search.alpha)
    found = make_player("expectimax:depth=2,heuristic=alpha", Rules(2, 6)).values(board)
    same({int(d): v for d, v in found.items()}, search.values(grid_of(board), 2))


# -- a limit on the time ---------------------------------------------------------------------------

ENDLESS = [
    "minimax:depth=12",
    "expectiminimax:depth=12",
    "expectimax:depth=12",
    "sparse:depth=10,samples=0",
    "mcts:simulations=300000",
    pytest.param("montecarlo:rollouts=100000", marks=needs_jit),
]


@pytest.mark.parametrize("spec", ENDLESS)
def test_a_search_that_is_told_to_stop_does(spec):
    player, board = make_player(spec, Rules(3, 2)), Board.parse("2 2 / . . / . .")
    make_player(spec.partition(":")[0], Rules(3, 2)).choose(board)  # to compile it
    with time_limit.time_limit(0.1, spec):
        time_limit.stop_flag()[0] = 1
        began = time.monotonic()
        with pytest.raises(time_limit.TimeLimitError, match=r"takes more than 0.1 s"):
            player.values(board)
    assert time.monotonic() - began < 2
    assert time_limit.stop_flag()[0] == 0


def test_the_flag_is_set_when_the_time_is_up_and_a_timed_search_keeps_what_it_has():
    board = Board.parse("2 2 / . . / . .")
    with time_limit.time_limit(0.05, "it"):
        stop = time_limit.stop_flag()
        began = time.monotonic()
        while not stop[0] and time.monotonic() - began < 5:
            time.sleep(0.005)
        waited = time.monotonic() - began
        assert stop[0] and waited > 0.04
        assert make_player("expectimax:time=10s", Rules(3, 2)).choose(board) in board.legal_moves
    time_limit.check_time()
    assert not time_limit._watchdog._due
