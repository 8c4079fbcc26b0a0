"""Heuristics that are registered: what they are worth, and what cannot be one."""

from __future__ import annotations

import numpy as np
import pytest

from lab2048 import Rules, list_players
from lab2048.engine.closures import KernelError
from lab2048.engine.jit import U
from lab2048.engine.packed import max_rank, rank_at
from lab2048.game import Board
from lab2048.players import heuristics
from lab2048.players.heuristics import HEURISTICS, register_heuristic
from lab2048.players.registry import make_player
from tests import naive_search
from tests.conftest import WITH_JIT
from tests.players.searching import DEAD, NAIVE, grid_of, positions, same, values_of

needs_jit = pytest.mark.skipif(not WITH_JIT, reason="slow without it, or its refusal")


@pytest.fixture(autouse=True)
def as_before():
    """Forget what a test has registered."""
    before = dict(HEURISTICS)
    yield
    HEURISTICS.clear()
    HEURISTICS.update(before)


def first_row(board, rows, cols):
    """Ten times the ranks of the first row, less the free cells of all."""
    value = 0.0
    for cell in range(rows * cols):
        rank = rank_at(board, cell)
        if rank == U(0):
            value -= 1.0
        elif cell < cols:
            value += 10.0 * rank
    return value


def naive_first_row(grid):
    free = sum(tile == 0 for row in grid for tile in row)
    return 10.0 * sum(tile.bit_length() - 1 for tile in grid[0] if tile) - free


@pytest.mark.parametrize(
    ("name", "search"),
    [
        ("minimax", naive_search.Minimax),
        pytest.param("expectimax", naive_search.Expectimax, marks=pytest.mark.slow),
    ],
)
def test_a_registered_heuristic_is_what_a_search_looks_for(name, search):
    register_heuristic("first-row", first_row, dead=-50.0)
    rules, boards = Rules(3, 2), positions(3, 2, 8)
    wanted = search(naive_first_row, -50.0)
    for depth in (1, 2):
        spec = f"{name}:depth={depth},heuristic=first-row"
        for board, values in zip(boards, values_of(spec, rules, boards), strict=True):
            same(values, wanted.values(grid_of(board), depth))


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["sparse:depth=1,heuristic=", "mcts:simulations=20,heuristic="])
def test_every_search_takes_it(spec):
    register_heuristic("first-row", first_row)
    board = Board.parse(". . / 8 16 / . .")
    found = make_player(f"{spec}first-row", Rules(3, 2)).values(board)
    assert max(found, key=found.get) == 0  # up takes the tiles to the first row


def test_it_is_listed_and_has_a_line_about_it():
    register_heuristic("first-row", first_row)
    assert "first-row" in list_players()["expectimax"].options["heuristic"]["choices"]
    assert HEURISTICS["first-row"].about.startswith("Ten times the ranks")
    with pytest.raises(ValueError, match=r"heuristic is rows, .* or first-row, not last-row"):
        make_player("expectimax:heuristic=last-row", Rules(3, 2))


def counted(times):
    """A heuristic; all that this makes have one name."""

    def value(board, rows, cols):
        return times * np.float64(max_rank(board))

    return value


@pytest.mark.slow
def test_one_that_is_defined_again_takes_its_own_place():
    board, identities = Board.parse("2 2 / 4 8"), set()
    for times in (1.0, 7.0):
        register_heuristic("largest", counted(times))
        player = make_player("minimax:depth=1,heuristic=largest", Rules(2, 2))
        assert set(player.values(board).values()) == {3 * times}
        identities.add(player.identity)
    assert len(identities) == 2  # or a match that one began might go on with the other
    assert make_player("minimax", Rules(2, 2)).identity == "minimax"


@pytest.mark.parametrize("name", ["rows", "taken"])
def test_a_name_is_taken_once(name):
    register_heuristic("taken", counted(1.0))
    with pytest.raises(ValueError, match=f"there is a heuristic {name} already"):
        register_heuristic(name, first_row)


@pytest.mark.parametrize("name", ["", "Mine", "my own", "a,b=c"])
def test_a_name_fits_into_a_spec(name):
    with pytest.raises(ValueError, match="a heuristic's name is of small letters and digits"):
        register_heuristic(name, first_row)


@pytest.mark.parametrize("value", [lambda board: 1.0, 3, max, "rows", object()])
def test_what_is_no_function_of_a_board_is_refused(value):
    with pytest.raises(TypeError, match="a heuristic is a function of a packed board, its rows"):
        register_heuristic("mine", value)
    assert "mine" not in HEURISTICS


@needs_jit
@pytest.mark.parametrize(
    "value",
    [
        lambda board, rows, cols: undefined(board),  # noqa: F821
        lambda board, rows, cols: [rank_at(board, 0)],
        lambda board, rows, cols: board.ranks,
        lambda board, rows, cols: None,
    ],
)
def test_what_does_not_compile_is_refused(value):
    with pytest.raises(KernelError, match=r"the heuristic mine: .* does not compile"):
        register_heuristic("mine", value)
    assert "mine" not in HEURISTICS


# -- those of the package ----------------------------------------------------------------------


@pytest.mark.parametrize("name", HEURISTICS)
@pytest.mark.parametrize(
    ("rows", "cols"),
    [
        (3, 2),
        *(
            pytest.param(r, c, marks=[pytest.mark.slow, needs_jit])
            for r, c in [(3, 3), (4, 3), (4, 4)]
        ),
    ],
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
