"""Values: the naive game's, exact fractions, and published ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lab2048.game import Board
from lab2048.solver.tables import open_table
from tests import naive
from tests.solver.solving import canonical, needs_jit, solved

pytestmark = pytest.mark.slow

PUBLISHED = {
    # states, afterstates, largest age, value of 2+2 cut to one decimal
    "2x2": (110, 67, 60, 67.6),
    "3x2": (21_752, 14_883, 252, 480.9),
    "4x2": (4_980_767, 3_406_686, 1020, 2642.6),
    "3x3": (48_713_519, 31_431_374, 2044, 5469.2),
}


# -- values ------------------------------------------------------------------------------------


def compare(table, values, tolerance=1e-11):
    """Every state of the naive game has just that value in the table, and there is no other."""
    assert len({canonical([list(r) for r in state]) for state in values}) == table.states
    for state, value in values.items():
        board = Board.parse([list(row) for row in state])
        assert table.value(board) == pytest.approx(float(value), rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("p4", [0.1, 0.0, 1.0, 0.7])
def test_2x2_is_exact(tmp_path, p4):
    graph = naive.game_graph(2, 2, Fraction(str(p4)))
    found, table = solved(tmp_path, "2x2", p4=p4)
    with table:
        compare(table, naive.expected_scores(graph))
    values = naive.expected_scores(graph)
    begin = naive.starts(2, 2, Fraction(str(p4)))
    mean = sum(chance * values[state] for state, chance in begin.items())
    assert found["value"]["start"] == pytest.approx(float(mean), rel=1e-13)
    kinds = {"2+2": 4, "2+4": 6, "4+4": 8}
    for kind, age in kinds.items():
        some = {s: c for s, c in begin.items() if sum(map(sum, s)) == age}
        if not some:
            assert found["value"][kind] is None
            continue
        mean = sum(c * values[s] for s, c in some.items()) / sum(some.values())
        assert found["value"][kind] == pytest.approx(float(mean), rel=1e-13)


@pytest.mark.parametrize("gamma", [0.9, 0.5, 0.0])
def test_a_discount_is_exact(tmp_path, gamma):
    graph = naive.game_graph(2, 2, Fraction(1, 10))
    _, table = solved(tmp_path, "2x2", gamma=gamma)
    with table:
        compare(table, naive.expected_scores(graph, Fraction(str(gamma))))


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_sweeps_over_all_states_come_to_the_same(tmp_path, gamma):
    _, table = solved(tmp_path, "2x2", gamma=gamma)
    with table:
        compare(table, naive.swept_scores(naive.game_graph(2, 2, Fraction(1, 10)), gamma))


@pytest.mark.parametrize("tile", [8, 16, 32])
def test_the_chance_to_make_a_tile_is_exact(tmp_path, tile):
    graph = naive.game_graph(2, 2, Fraction(1, 10))
    values = naive.chances_to_make(graph, tile)
    _, table = solved(tmp_path, "2x2", objective=f"reach:{tile}")
    reached = 0
    with table:
        for state, value in values.items():
            board = Board.parse([list(row) for row in state])
            found = table.get(board)
            if found is not None:  # the game may end before this state
                reached += 1
                assert found == pytest.approx(float(value), rel=1e-12)
    assert reached > len(values) / 4


def test_the_worst_case_is_exact(tmp_path):
    _, table = solved(tmp_path, "2x2", objective="worst-case")
    with table:
        compare(table, naive.certain_scores(naive.game_graph(2, 2, Fraction(1, 10))), 0.0)


@needs_jit
def test_3x2_agrees_with_the_naive_game(made):
    graph = naive.game_graph(3, 2, Fraction(1, 10))
    assert len(graph) == 85_844
    boards = [Board.parse([list(row) for row in state]) for state in graph]
    packed = np.array([board.packed for board in boards], np.uint64)
    swept = naive.swept_scores(graph, 1.0)
    values = [swept[state] for state in graph]
    with open_table(made) as table:
        np.testing.assert_allclose(table.probe_many(packed).value, values, rtol=1e-9)
        for board, value in list(zip(boards, values, strict=True))[::1000]:
            assert table.value(board) == pytest.approx(value)


@needs_jit
def test_transposed_boards_have_the_same_values(made, tmp_path):
    _, wide = solved(tmp_path / "wide", "2x3")
    with open_table(made) as tall, wide:
        assert tall.states == wide.states
        assert tall.start_value == pytest.approx(wide.start_value, rel=1e-13)
        for _, keys, values in tall.layers():
            for key, value in list(zip(keys.tolist(), values.tolist(), strict=True))[::50]:
                board = Board.from_packed(key, 3, 2).image(4)
                assert wide.value(board) == pytest.approx(value, rel=1e-12)


def check_published(board, found):
    states, afterstates, max_age, value = PUBLISHED[board]
    assert (found["states"], found["afterstates"]) == (states, afterstates)
    assert found["max_age"] == max_age
    assert int(found["value"]["2+2"] * 10) / 10 == value


@needs_jit
@pytest.mark.parametrize(
    "board",
    ["2x2", *[pytest.param(board, marks=pytest.mark.slow) for board in ("3x2", "4x2")]],
)
def test_published_counts_and_values(tmp_path, board):
    found, table = solved(tmp_path, board)
    table.close()
    check_published(board, found)


@needs_jit
def test_3x3_as_published(tmp_path):
    found, table = solved(tmp_path, "3x3")
    table.close()
    check_published("3x3", found)
    assert found["terminals"] == 7_388_502
    assert found["value"]["start"] < found["value"]["2+2"]


@needs_jit
def test_3x3_without_chance_and_in_the_worst_case(tmp_path):
    for p4, value in ((0.0, 7172), (1.0, 14344)):
        found, table = solved(tmp_path / str(p4), "3x3", p4=p4)
        table.close()
        assert found["value"]["start"] == pytest.approx(value, rel=1e-12)
        assert found["states"] < PUBLISHED["3x3"][0]
    found, table = solved(tmp_path / "worst", "3x3", objective="worst-case")
    table.close()
    assert [found["value"][kind] for kind in ("2+2", "2+4", "4+4")] == [184, 180, 164]
    for tile, chance in ((512, 0.74), (1024, 0.01)):
        found, table = solved(tmp_path / f"{tile}", "3x3", objective=f"reach:{tile}")
        table.close()
        assert found["value"]["start"] == pytest.approx(chance, abs=0.005)


def test_chances_to_make_tiles_on_2x2(tmp_path):
    for tile, chance in ((16, 0.96), (32, 0.08)):
        found, table = solved(tmp_path / f"{tile}", "2x2", objective=f"reach:{tile}")
        table.close()
        assert found["value"]["start"] == pytest.approx(chance, abs=0.005)
