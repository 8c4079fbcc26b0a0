"""Solving: the kernels against the naive game, counts and values against published ones."""

from __future__ import annotations

import threading
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab2048.engine.jit import U, kernel
from lab2048.engine.slides import pairs
from lab2048.engine.slides import table as slides
from lab2048.game import Board
from lab2048.solver import keys as keys_module
from lab2048.solver import threads as threads_module
from lab2048.solver.enumeration import Enumeration, Mover, afterstates
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.successors import BLOCK, WIN, moves_kernel
from lab2048.solver.tables import open_table
from lab2048.solver.threads import WorkerThreads
from tests import naive
from tests.conftest import WITH_JIT

PUBLISHED = {
    # states, afterstates, largest age, value of 2+2 cut to one decimal
    "2x2": (110, 67, 60, 67.6),
    "3x2": (21_752, 14_883, 252, 480.9),
    "4x2": (4_980_767, 3_406_686, 1020, 2642.6),
    "3x3": (48_713_519, 31_431_374, 2044, 5469.2),
}
FIRST_AGES_4X3 = [
    *(22, 72, 172, 366, 739, 1337, 2307, 3812, 6186, 9574, 14303, 20675, 29166, 39935, 53854),
    *(71393, 92834, 117907, 148006, 182813, 222789, 268627, 320435, 377078, 440276, 509787),
    *(585560, 668214, 759221, 855292, 957949, 1068940, 1186403, 1310041, 1440714, 1577558),
]
"""The published number of states of 4x3 with age 4, 6, 8, ..."""
SHAPES = [(2, 2)] if WITH_JIT else [(2, 2), (3, 2), (3, 3)]
LARGER = [
    pytest.param(*shape, marks=pytest.mark.slow)
    for shape in ((3, 2), (3, 3), (5, 2), (2, 6), (4, 3))
    if WITH_JIT
]

needs_jit = pytest.mark.skipif(not WITH_JIT, reason="takes too long without the JIT")


def solved(folder, board, **options):
    """The description of a table made in a folder, and the table."""
    solving = {name: options.pop(name) for name in ("threads", "values") if name in options}
    found = make_table(Problem.of(board, **options), folder / "table", **solving)
    return found, open_table(folder / "table")


def as_grid(board):
    return [list(row) for row in board.tiles]


# -- kernels -----------------------------------------------------------------------------------


def random_boards(rows, cols, count):
    """Boards that have many small tiles, some empty cells, and sometimes large tiles."""
    rng = np.random.default_rng(rows * 10 + cols)
    largest = rng.choice([2, 3, 5, 10], (count, 1))
    ranks = rng.integers(0, 12, (count, rows * cols)) % (largest + 1)
    return [Board(tuple(map(int, row)), rows, cols) for row in ranks if row.any()]


def canonical(grid):
    return min(naive.packed(image) for image in naive.images(grid))


@pytest.mark.parametrize(("rows", "cols"), SHAPES + LARGER)
def test_moves_lead_to_all_canonical_afterstates(rows, cols):
    boards = random_boards(rows, cols, 700 if WITH_JIT else 40)
    keys = np.array([board.packed for board in boards], np.uint64)
    edges, sources = np.empty(4 * len(keys) + 1, np.uint64), np.empty(4 * len(keys) + 1, np.uint32)
    found = moves_kernel(rows, cols)(keys, U(15), pairs(cols), pairs(rows), edges, sources)
    made = [[] for _ in boards]
    for edge, source in zip(edges[:found].tolist(), sources[:found].tolist(), strict=True):
        made[source].append(edge)
    for board, afters in zip(boards, made, strict=True):
        grid = as_grid(board)
        wanted = [canonical(naive.move(grid, d)[0]) for d in naive.legal_moves(grid)]
        assert sorted(afters) == sorted(wanted), board


def test_a_move_that_makes_the_tile_is_a_win():
    keys = np.array([Board.parse("8 8 / 2 4").packed], np.uint64)
    edges, sources = Mover(Problem.of("2x2", objective="reach:16"))(keys)
    assert edges.tolist() == [int(WIN)] * 2 and sources.tolist() == [0, 0]


def test_a_reward_is_what_a_move_adds_to_the_sum_of_tiles_times_rank_less_one():
    """The values rest on it: no reward is ever looked up."""
    for board in random_boards(3, 3, 300):
        for direction in board.legal_moves:
            _, reward, after = board.move(direction)
            assert after.merged - board.merged == reward


key_lists = st.lists(
    st.lists(st.integers(1, 5000), max_size=60).map(sorted), min_size=1, max_size=5
)


@given(key_lists, st.integers(1, 6), st.sampled_from([0, 3, 7]))
def test_lists_are_cut_and_merged_to_their_union(lists, parts, shift):
    width = max(map(len, lists))
    rows, sizes = np.zeros((len(lists), width), np.uint64), np.array([*map(len, lists)])
    for row, keys in zip(rows, lists, strict=True):
        row[: len(keys)] = keys
    places = np.empty((parts + 1, len(lists)), np.int64)
    keys_module.cut(rows, sizes, U(shift), places)
    assert (places[-1] - places[0]).sum() == sizes.sum()
    union = []
    for part in range(parts):
        runs = places[part : part + 2]
        count = (runs[1] - runs[0]).sum()
        out, spare = np.empty(count, np.uint64), np.empty(count, np.uint64)
        size = keys_module.merge_runs(rows.reshape(-1), runs, out, spare)
        assert not union or not size or union[-1] >> shift < int(out[0]) >> shift
        union += out[:size].tolist()
    assert union == sorted({key for keys in lists for key in keys})


def test_parts_are_of_about_equal_size():
    keys = np.sort(np.random.default_rng(1).integers(1, 1 << 36, 100_000).astype(np.uint64))
    places = np.empty((5, 1), np.int64)
    keys_module.cut(keys.reshape(1, -1), np.array([len(keys)]), U(24), places)
    counts = np.diff(places[:, 0])
    assert counts.min() > 24_000 and counts.max() < 26_000


@needs_jit
@pytest.mark.parametrize("low_bits", [3, 10, 24])
def test_an_index_finds_every_key_and_no_other(low_bits):
    """With few low bits every region is full to the brim."""
    rng = np.random.default_rng(low_bits)
    tops = rng.integers(1, 4000, 300, np.uint64) << U(24)
    keys = np.unique(rng.choice(tops, 5000) | rng.integers(1, 1 << low_bits, 5000, np.uint64))
    values = rng.random(len(keys))
    index = keys_module.Index(9)
    half = keys_module.below(keys, len(keys), U(2000 << 24))
    lots = [keys[:half], keys[half:]]
    for lot, begin in zip(lots, index.share_out([len(lot) for lot in lots]), strict=True):
        keys_module.fill(
            lot, values[:half] if lot is lots[0] else values[half:], index.words, begin
        )
    wanted = rng.permutation(keys)
    found, lost = find_all(wanted, index.words)
    assert lost == 0 and (found == values[np.searchsorted(keys, wanted)]).all()
    absent = np.setdiff1d(keys + U(1 << 30), keys)
    assert find_all(absent, index.words)[1] == len(absent)


def find_all(keys, words):
    """What an index has for keys, and how many it does not have."""

    @kernel("int64(uint64[::1], uint64[::1], float64[::1], float64[::1], int64[::1])")
    def find_block(keys, words, floats, out, missed):
        return keys_module.find(keys, 0, len(keys), words, floats, out, missed, 1.0)

    out, missed, lost = np.empty(len(keys)), np.empty(BLOCK, np.int64), 0
    for start in range(0, len(keys), BLOCK):
        part = keys[start : start + BLOCK]
        floats = words.view(np.float64)
        lost += find_block(part, words, floats, out[start : start + BLOCK], missed)
    return out, lost


# -- layers ------------------------------------------------------------------------------------


def test_the_naive_game_has_the_published_number_of_states():
    assert len(naive.game_graph(2, 2, Fraction(1, 10))) == 662


@pytest.mark.slow
@pytest.mark.parametrize("p4", [0.1, 0.0, 1.0])
def test_the_layers_are_those_of_the_naive_game(p4):
    graph = naive.game_graph(2, 2, Fraction(p4).limit_denominator(10))
    states = {canonical([list(row) for row in state]) for state in graph}
    afters = {canonical([list(row) for row in x]) for ms in graph.values() for _, x, _ in ms}
    with WorkerThreads(1) as workers:
        layers = list(Enumeration(Problem.of("2x2", p4=p4), workers))
    assert [layer.age for layer in layers] == list(range(4, 4 + 2 * len(layers), 2))
    found = np.concatenate([part for layer in layers for part in layer.states]).tolist()
    assert len(found) == len(set(found)) and set(found) == states
    found = np.concatenate([part for layer in layers for part in layer.afters]).tolist()
    assert len(found) == len(set(found)) and set(found) == afters


@needs_jit
@pytest.mark.slow
def test_the_first_ages_of_4x3():
    with WorkerThreads(2) as workers:
        layers = iter(Enumeration(Problem.of("4x3"), workers))
        found = [sum(map(len, next(layers).states)) for _ in FIRST_AGES_4X3]
    assert found == FIRST_AGES_4X3


@pytest.mark.slow
def test_afterstates_can_be_found_again_from_the_states():
    problem = Problem.of("2x2")
    with WorkerThreads(1) as workers:
        for layer in Enumeration(problem, workers):
            edges, _ = Mover(problem)(np.concatenate(layer.states))
            assert (afterstates(edges) == np.concatenate(layer.afters)).all()


# -- values ------------------------------------------------------------------------------------


def compare(table, values, tolerance=1e-11):
    """Every state of the naive game has just that value in the table, and there is no other."""
    assert len({canonical([list(r) for r in state]) for state in values}) == table.states
    for state, value in values.items():
        board = Board.parse([list(row) for row in state])
        assert table.value(board) == pytest.approx(float(value), rel=tolerance, abs=tolerance)


@pytest.mark.slow
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


@pytest.mark.slow
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
@pytest.mark.slow
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
@pytest.mark.slow
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
@pytest.mark.slow
def test_3x3_as_published(tmp_path):
    found, table = solved(tmp_path, "3x3")
    table.close()
    check_published("3x3", found)
    assert found["terminals"] == 7_388_502
    assert found["value"]["start"] < found["value"]["2+2"]


@needs_jit
@pytest.mark.slow
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


# -- parts and threads -------------------------------------------------------------------------


@needs_jit
@pytest.mark.slow
def test_any_number_of_threads_makes_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(threads_module, "ENOUGH", 16)  # so that small layers have parts, too
    for threads in (1, 2, 3, 7):
        _, table = solved(tmp_path / f"{threads}", "3x2", threads=threads)
        table.close()
    files = {path.name for path in (tmp_path / "1" / "table").iterdir()} - {"run.json"}
    assert files == {"keys.bin", "blocks.bin", "values.bin", "manifest.json"}
    for name in files:
        contents = {(tmp_path / f"{n}" / "table" / name).read_bytes() for n in (1, 2, 3, 7)}
        assert len(contents) == 1, name


def test_worker_threads_do_everything_in_order_and_pass_errors_on():
    with WorkerThreads(3) as workers:
        for _ in range(200):
            late = [workers.aside(lambda n=n: n) for n in range(3)]
            assert workers.run([lambda n=n: n * n for n in range(5)]) == [0, 1, 4, 9, 16]
            assert [future.result() for future in late] == [0, 1, 2]
        alone = workers.aside(lambda: "asked for")
        assert alone.result() == "asked for"
        with pytest.raises(ZeroDivisionError):
            workers.run([lambda: 1 // 0, lambda: 2])
        assert workers.run([lambda: 3]) == [3]
        with pytest.raises(ZeroDivisionError):
            workers.aside(lambda: 1 // 0).result()


def test_worker_threads_do_not_wait_for_what_was_put_aside():
    begun, go_on = threading.Event(), threading.Event()

    def waits():
        begun.set()
        return go_on.wait(20)

    with WorkerThreads(2) as workers:
        late = workers.aside(waits)
        assert begun.wait(20)  # the helper has taken it
        assert workers.run([lambda: 1, lambda: 2]) == [1, 2]
        assert not late.done()
        go_on.set()
        assert late.result()


def test_worker_threads_that_are_stopped_are_at_rest_and_can_be_used_again():
    begun, over = threading.Event(), threading.Event()

    def takes_a_while():
        begun.set()
        time.sleep(0.05)
        over.set()

    with WorkerThreads(2) as workers:
        workers.aside(takes_a_while)
        assert begun.wait(20)
        never = workers.aside(lambda: 1 // 0)
        workers.stop()
        assert over.is_set()
        assert never.cancelled()
        assert workers.run([lambda: 1, lambda: 2]) == [1, 2]


# -- what may be asked -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"board": "4x4"}, "boards of up to 12 cells can be solved; 4x4 has 16"),
        ({"board": "3x3", "objective": "win"}, "an objective is score, worst-case or reach:TILE"),
        ({"board": "3x3", "objective": "reach"}, "an objective is"),
        ({"board": "3x3", "objective": "reach:500"}, "a power of two from 8 to 1024, not 500"),
        ({"board": "3x3", "objective": "reach:2048"}, "a power of two from 8 to 1024"),
        ({"board": "3x3", "objective": "reach:4"}, "a power of two from 8 to 1024, not 4"),
        ({"board": "3x3", "objective": "score:1"}, "an objective is"),
        ({"board": "3x3", "gamma": 1.5}, "gamma is a number from 0 to 1, not 1.5"),
        ({"board": "3x3", "gamma": float("nan")}, "gamma is a number"),
        ({"board": "3x3", "objective": "worst-case", "gamma": 0.5}, "gamma belongs to"),
        ({"board": "3x3", "p4": 2}, "p4, the chance of a 4"),
    ],
)
def test_what_cannot_be_solved_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Problem.of(options.pop("board"), **options)


def test_problems_have_names_of_their_own():
    problems = [
        Problem.of("3x3"),
        Problem.of("3x3", p4=0.2),
        Problem.of("3x3", gamma=0.9),
        Problem.of("3x3", objective="reach:64"),
        Problem.of("3x3", objective="worst-case"),
        Problem.of("2x3"),
    ]
    assert len({problem.name for problem in problems}) == len(problems)
    for problem in problems:
        assert Problem.from_json(problem.as_json()) == problem


def test_slides_and_pairs_agree():
    for length in (2, 3, 4):
        lines = 16**length
        entries = pairs(length)
        assert (entries & 0xFFFF == slides(length)[:lines]).all()
        assert (entries >> 16 == slides(length)[lines : 2 * lines]).all()
