"""Move data: what is written, what is read, in what order, and what is wrong with it."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter

import numpy as np
import pytest

from lab2048.data import labels, move_text, parquet
from lab2048.data import moves as data
from lab2048.data.move_rows import Moves, may_be
from lab2048.data.move_text import TextFile, to_text
from lab2048.data.moves import ParquetFile
from lab2048.data.parquet import LABELS, DataError, write_parquet
from lab2048.game import Board, Game, Rules
from lab2048.measure.arena import play_games
from lab2048.players.registry import make_player
from lab2048.players.ties import legal_moves
from lab2048.solver.table import Table
from tests import naive

slow = pytest.mark.slow
FOUR = Rules(4, 4)
SMALL = Rules(3, 2)
EXAMPLE = "r 13 5 5 2 14 8 3 1 12 9 1 0 11 10 0 1 : 3 15\n"
"""The line that the study prints."""


def text_file(path, text, rules=FOUR):
    path.write_text(text)
    return TextFile(path, rules)


def some_moves(rules=FOUR, size=1000, spec="greedy", seed=3):
    parts = list(data.make_moves(make_player(spec, rules), size, seed))
    return Moves(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def naive_line(line, rules):
    """Board, direction and cell of a line, and what the cell may be."""
    left, right = line.split(":")
    ranks = [int(each) for each in left.split()[1:]]
    move, cell = map(int, right.split())
    tiles = [1 << rank if rank else 0 for rank in ranks]
    grid = [tiles[r * rules.cols : (r + 1) * rules.cols] for r in range(rules.rows)]
    after, _ = naive.move(grid, move)
    r, c = divmod(cell, rules.cols)
    packed = sum(rank << 4 * k for k, rank in enumerate(ranks))
    may = (grid[r][c] in (2, 4)) + 2 * (after[r][c] == 0) if after != grid else 0
    return packed, move, cell, may


# -- text --------------------------------------------------------------------------------------


def test_the_example_of_the_study(tmp_path):
    found = text_file(tmp_path / "a.txt", EXAMPLE).read(0)
    board = Board.from_packed(int(found.boards[0]), 4, 4)
    assert str(board) == str(Board.parse("8192 32 32 4/16384 256 8 2/4096 512 2 ./2048 1024 . 2"))
    assert (found.moves[0], found.cells[0]) == (3, 15)
    assert to_text(found, FOUR).decode() == EXAMPLE
    assert may_be(found, FOUR)[0] == 3  # a 2 is there, and after the move it is empty


@pytest.mark.parametrize(
    "rules", [FOUR, *(pytest.param(rules, marks=slow) for rules in [Rules(3, 3), Rules(2, 5)])]
)
def test_text_is_read_as_it_was_written(tmp_path, rules):
    moves = some_moves(rules)
    path = tmp_path / "a.txt"
    assert data.write_moves(path, iter([moves]), rules, {}) == 1000
    lines = path.read_text().splitlines()
    found = TextFile(path, rules).read(0)
    for k, line in enumerate(lines):
        board, move, cell, may = naive_line(line, rules)
        assert (found.boards[k], found.moves[k], found.cells[k]) == (board, move, cell)
        assert may & 2  # what is written is the cell of the tile after the move
    expected = [naive_line(line, rules)[3] for line in lines]
    assert may_be(found, rules).tolist() == expected


def test_moves_are_those_of_the_games(tmp_path):
    player = make_player("greedy", SMALL)
    games = sorted(play_games(player, iter(range(8)), 5), key=lambda game: game.index)
    size = sum(len(game.moves) for game in games[:6]) + 7
    found = some_moves(SMALL, size, seed=5)
    place = 0
    for played in games[:7]:
        game = Game(SMALL, 5, index=played.index)
        for move in played.moves[: size - place]:
            assert found.boards[place] == game.board.packed and found.moves[place] == move
            game.play(move)
            assert found.cells[place] == game.spawns[-1][0]
            place += 1
    assert place == size == len(found.boards)


def test_blanks_and_empty_lines_do_not_matter(tmp_path):
    loose = EXAMPLE.replace(" : ", "  :\t").replace("\n", " \r\n")
    source = text_file(tmp_path / "a.txt", f"\n  \n  {loose}\n\n{EXAMPLE.strip()}")
    twice = text_file(tmp_path / "b.txt", EXAMPLE * 2)
    assert source.read(0).boards.tolist() == twice.read(0).boards.tolist()
    assert len(text_file(tmp_path / "c.txt", "\n\n").read(0).boards) == 0
    assert len(text_file(tmp_path / "d.txt", "")) == 0


@pytest.mark.parametrize("piece", [7, 50, 130, 4096])
def test_pieces_have_every_line_once(tmp_path, monkeypatch, piece):
    moves = some_moves(size=300)
    data.write_moves(tmp_path / "a.txt", iter([moves]), FOUR, {})
    monkeypatch.setattr(move_text, "PIECE", piece)
    source = TextFile(tmp_path / "a.txt", FOUR)
    parts = [source.read(k) for k in range(len(source))]
    assert np.concatenate([each.boards for each in parts]).tolist() == moves.boards.tolist()
    assert np.concatenate([each.cells for each in parts]).tolist() == moves.cells.tolist()


WRONG = {
    "s 1 1": "a line is 'r', 16 ranks, ':', a direction and a cell, not 's 1 1'",
    "r 1 1 : 0 0": "a board of 4x4 has 16 ranks, not 2",
    EXAMPLE.replace("13", "16").strip(): "ranks go up to 15",
    EXAMPLE.replace("13", "99999999999999999999").strip(): "ranks go up to 15",
    EXAMPLE.replace("13", "-1").strip(): "a line is 'r', 16 ranks",
    EXAMPLE.replace(": 3", ": 4").strip(): "a direction is a number from 0 to 3, not 4",
    EXAMPLE.replace("3 15", "3 16").strip(): "a cell is a number from 0 to 15, not 16",
    EXAMPLE.replace("3 15", "3 15 1").strip(): "a line is 'r', 16 ranks",
    EXAMPLE.replace("3 15", "3").strip(): "a line is 'r', 16 ranks",
    EXAMPLE.replace("3 15", "3 0").strip(): "has no new tile, and is not empty after the move 3",
    "r" + " 1 0 0 0" * 4 + " : 3 5": "the move 3 is not legal on 2 . . . / ",
    "\x00\xff": "a line is 'r', 16 ranks",
    "r " + "1" * 60 + " x": "a line is 'r', 16 ranks",
}


@pytest.mark.parametrize(("line", "why"), WRONG.items())
@pytest.mark.parametrize("piece", [64, 1 << 20])
def test_a_line_that_is_wrong_is_named(tmp_path, monkeypatch, line, why, piece):
    monkeypatch.setattr(move_text, "PIECE", piece)
    path = tmp_path / "a.txt"
    path.write_bytes((EXAMPLE * 4 + "\n").encode() + line.encode("latin-1") + b"\n" + b"x\n")
    source = TextFile(path, FOUR)
    with pytest.raises(DataError) as error:
        data.summarise(source)
    assert f"{path}, line 6: " in str(error.value) and why in str(error.value)


def test_a_file_that_ends_in_the_middle(tmp_path):
    with pytest.raises(DataError, match="line 2: a line is 'r', 16 ranks"):
        text_file(tmp_path / "a.txt", EXAMPLE + EXAMPLE[:20]).read(0)


@pytest.mark.parametrize("piece", [64, 1 << 12, 1 << 20])
@pytest.mark.parametrize("line", ["r " + "1 " * 200_000, EXAMPLE.strip() + " " * 5000, " " * 5000])
def test_a_line_is_not_read_beyond_a_bound(tmp_path, monkeypatch, line, piece):
    monkeypatch.setattr(move_text, "PIECE", piece)
    source = text_file(tmp_path / "a.txt", EXAMPLE * 3 + line + "\n" + EXAMPLE)
    tracemalloc.start()
    with pytest.raises(DataError, match=r"a.txt, line 4: it has more than 4,096 characters"):
        data.summarise(source)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 * (piece + 100_000)


def test_what_cells_mean_is_found_out(tmp_path):
    moves = some_moves(size=500)
    before = Moves(moves.boards[1:], moves.moves[1:], moves.cells[:-1])
    same_game = np.array([n not in (1, 2) for n in may_be(before, FOUR)])
    before = Moves(*(each[: int(np.argmin(may_be(before, FOUR) & 1))] for each in before))
    assert len(before.boards) > 20 and not same_game.all()
    for name, found in [("after", moves), ("before", before)]:
        data.write_moves(tmp_path / "a.txt", iter([found]), FOUR, {})
        summary = data.summarise(TextFile(tmp_path / "a.txt", FOUR))
        assert summary.cell == name and summary.moves == len(found.boards)
        assert summary.directions == tuple(np.bincount(found.moves, minlength=4))
    both = Moves(*(np.concatenate(each) for each in zip(moves, before, strict=True)))
    data.write_moves(tmp_path / "a.txt", iter([both]), FOUR, {})
    with pytest.raises(DataError, match="some cells can only be those of the tile before the move"):
        data.summarise(TextFile(tmp_path / "a.txt", FOUR))
    assert data.summarise(text_file(tmp_path / "b.txt", EXAMPLE)).cell == "either"


# -- Parquet -----------------------------------------------------------------------------------


def test_parquet_is_read_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "GROUP", 128)
    moves = some_moves()
    parts = [Moves(*(each[a:b] for each in moves)) for a, b in [(0, 300), (300, 310), (310, 1000)]]
    path = tmp_path / "a.parquet"
    assert data.write_moves(path, parts, FOUR, {"player": "greedy"}) == 1000
    source = data.open_moves(path, FOUR)
    assert len(source) == 8 and not data.is_labels(path)
    found = [source.read(k) for k in range(8)]
    assert [len(each.boards) for each in found] == [128] * 7 + [104]
    for k in range(3):
        assert np.concatenate([each[k] for each in found]).tolist() == moves[k].tolist()
    with pytest.raises(DataError, match="has moves on 4x4, not 3x3"):
        ParquetFile(path, Rules(3, 3))


@pytest.mark.parametrize("column", range(3))
def test_a_row_that_is_wrong_is_named(tmp_path, monkeypatch, column):
    monkeypatch.setattr(parquet, "GROUP", 128)
    moves = some_moves(SMALL)
    moves[column][200] = [1 << 40, 7, 9][column]
    data.write_moves(tmp_path / "a.parquet", [moves], SMALL, {})
    with pytest.raises(DataError, match=r"a.parquet, row 201: board 0x.*is no move on 3x2"):
        data.summarise(data.open_moves(tmp_path / "a.parquet", SMALL))


@pytest.fixture
def odd_file(tmp_path):
    """A function that writes a Parquet file of one move on 2x2, some of it changed."""
    import pyarrow as pa
    from pyarrow import parquet

    def write(about=None, **columns):
        usual = {"board": pa.array([0x11], pa.uint64()), "move": pa.array([3]), "cell": [1]}
        table = pa.table({k: v for k, v in (usual | columns).items() if v is not None})
        facts = {"format": 1, "kind": "moves", "board": "2x2", "p4": 0.1}
        text = json.dumps(facts) if about is None else about
        parquet.write_table(
            table.replace_schema_metadata({"lab2048": text}), tmp_path / "a.parquet"
        )
        return data.open_moves(tmp_path / "a.parquet", Rules(2, 2))

    return write


ODD_COLUMNS = {
    "row 1: move is out of range: 259": {"move": [259]},
    "row 1: move is out of range: -1": {"move": [-1]},
    "row 1: cell is out of range: 264": {"cell": [264]},
    "row 1: board is out of range: -5": {"board": [-5]},
    "the column board should have whole numbers, not 'double'": {"board": [17.7]},
    "the column cell should have whole numbers, not 'double'": {"cell": [1.0]},
    "the column move should have whole numbers, not 'bool'": {"move": [True]},
    "the column move should have whole numbers, not 'string'": {"move": ["3"]},
    "row 2: there is no move": {"board": [17, 17], "move": [3, None], "cell": [1, 1]},
    "should have one column cell": {"cell": None},
}


@pytest.mark.parametrize(("why", "columns"), ODD_COLUMNS.items())
def test_numbers_that_are_none_of_a_move(odd_file, why, columns):
    assert odd_file().read(0).moves.tolist() == [3]
    with pytest.raises(DataError, match=f"a.parquet.*{why}"):
        odd_file(**columns).read(0)


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ("[1]", "has no moves of lab2048"),
        ("null", "has no moves of lab2048"),
        ("[" * 100_000, "is damaged, or no Parquet file"),
        ('{"format": 1, "kind": "moves"}', "does not say what its rules are: 'board'"),
        ('{"format": 1, "kind": "moves", "board": 5, "p4": 0}', "a board size is written ROWSxC"),
        ('{"format": 1, "kind": "moves", "board": "2x2", "p4": []}', "p4, the chance of a 4"),
    ],
)
def test_metadata_that_says_nothing(odd_file, about, why):
    with pytest.raises(DataError, match=f"a.parquet.*{why}"):
        odd_file(about)


def test_a_row_group_is_not_read_beyond_a_bound(odd_file, monkeypatch):
    monkeypatch.setattr(parquet, "MOST", 1)
    with pytest.raises(DataError, match="has a row group of more than 1 rows"):
        odd_file(board=[17, 17], move=[3, 3], cell=[1, 1])


def test_files_that_are_no_moves(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 nonsense")
    with pytest.raises(DataError, match="is damaged, or no Parquet file"):
        data.open_moves(path, FOUR)
    parquet.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(DataError, match="has no moves of lab2048"):
        data.open_moves(path, FOUR)
    data.write_moves(path, [some_moves(size=100)], FOUR, {})
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(200) + whole[204:])
    with pytest.raises(DataError, match=r"a.parquet"):
        data.summarise(data.open_moves(path, FOUR))
    with pytest.raises(FileNotFoundError):
        data.open_moves(tmp_path / "b.txt", FOUR)
    with pytest.raises(DataError, match=r"a \.txt or a \.parquet file, not x\.csv"):
        data.check_file(tmp_path / "x.csv")


# -- shuffled ----------------------------------------------------------------------------------


def counted(batches):
    return Counter(
        (int(board), int(share.argmax()))
        for batch in batches
        for board, share in zip(*batch, strict=True)
    )


@pytest.mark.parametrize("pool", [150, 400, 1 << 22])
def test_every_move_is_in_an_epoch_once(tmp_path, monkeypatch, pool):
    monkeypatch.setattr(move_text, "PIECE", 1 << 11)
    moves = some_moves()
    data.write_moves(tmp_path / "a.txt", [Moves(*(each[:700] for each in moves))], FOUR, {})
    data.write_moves(tmp_path / "b.parquet", [Moves(*(each[700:] for each in moves))], FOUR, {})
    sources = [data.open_moves(tmp_path / name, FOUR) for name in ("a.txt", "b.parquet")]
    epochs = [list(data.shuffled(sources, 64, 1, epoch, pool)) for epoch in (0, 0, 1)]
    expected = Counter(zip(moves.boards.tolist(), moves.moves.tolist(), strict=True))
    assert all(counted(epoch) == expected for epoch in epochs)
    orders = [np.concatenate([batch.boards for batch in epoch]).tolist() for epoch in epochs]
    assert orders[0] == orders[1] != orders[2]
    assert [len(batch.boards) for batch in epochs[0]] == [64] * 15 + [40]
    ages = [bin(board).count("1") for board in orders[0]]
    if pool > 1000:
        assert abs(np.corrcoef(ages, range(1000))[0, 1]) < 0.15


def test_the_pool_bounds_what_is_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(move_text, "PIECE", 1 << 11)
    data.write_moves(tmp_path / "a.txt", [some_moves(size=2000)], FOUR, {})
    source = TextFile(tmp_path / "a.txt", FOUR)
    read = []
    real = source.read
    source.read = lambda piece: (read.append(len(real(piece).boards)), real(piece))[1]
    given = 0
    for batch in data.shuffled([source], 50, 1, 0, pool=200):
        assert sum(read) - given <= 200 + 60  # the last piece may go beyond it
        given += len(batch.boards)
    assert given == 2000


# -- perfect labels ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(made):
    with Table(made) as found:
        yield found


@slow
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


@slow
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


@slow
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


@slow
def test_labels_of_no_state_are_not_written(tmp_path, table):
    player = make_player("greedy", table.rules)
    with pytest.raises(DataError, match="there is nothing to write"):
        labels.write_perfect(tmp_path / "a.parquet", table, player, likely=1.0)
    assert not list(tmp_path.iterdir())


@slow
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


@slow
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


# -- commands ----------------------------------------------------------------------------------


def test_make_and_check(command, tmp_path, warm_home):
    for name in ("a.txt", "b.parquet"):
        path = str(tmp_path / name)
        code, out, _ = command(
            "data", "make", "--player", "greedy", "--moves", "2k", "--board", "3x2", "--out", path
        )
        assert code == 0 and "wrote 2,000 moves of greedy to" in out
        code, out, _ = command("data", "check", path, "--board", "3x2")
        assert code == 0 and "2,000 moves" in out and "of the tile after the move" in out
        code, out, _ = command("data", "check", path, "--board", "3x2", "--json")
        assert json.loads(out)[path]["moves"] == 2000
    one, other = (data.open_moves(tmp_path / name, SMALL) for name in ("a.txt", "b.parquet"))
    assert one.read(0).boards.tolist() == other.read(0).boards.tolist()
    code, _, error = command("data", "check", path)
    assert code == 2 and "has moves on 3x2, not 4x4" in error
    code, _, error = command("data", "make", "--moves", "x", "--out", str(tmp_path / "c.txt"))
    assert code == 2 and "a number of moves is such as 5000, 200k or 1M, not 'x'" in error


@slow
def test_labels_by_command(command, tmp_path, warm_home):
    path = str(tmp_path / "a.parquet")
    arguments = [
        "--player",
        "greedy",
        "--moves",
        "300",
        "--random",
        "0.1",
        "--out",
        path,
        "--force",
    ]
    code, out, _ = command("data", "label", *arguments)
    assert code == 0 and "wrote 300 boards of greedy to" in out
    code, out, _ = command("data", "label", *arguments, "--board", "2x2", "--teacher", "optimal")
    assert code == 0 and "wrote 300 boards of greedy to" in out
    taught = labels.read_labels(tmp_path / "a.parquet", Rules(2, 2))
    right = make_player("optimal", Rules(2, 2)).values_many(
        taught.boards, np.zeros_like(taught.boards)
    )
    assert np.allclose(taught.q, right, equal_nan=True)
    code, out, _ = command(
        "data", "perfect", "--board", "2x2", "--out", path, "--likely", "0", "--force"
    )
    assert code == 0 and "states of optimal:ties=split to" in out
    code, _, error = command("data", "perfect", "--board", "2x2", "--out", str(tmp_path / "a.txt"))
    assert code == 2 and "labels go into a .parquet file, not a.txt" in error
    code, _, error = command("data", "perfect", "--board", "3x3", "--out", path, "--force")
    assert code == 2 and "there is no table 3x3-score; make it with: lab2048 solve 3x3" in error
    code, _, error = command(
        "data", "perfect", "--board", "2x2", "--player", "montecarlo", "--out", path, "--force"
    )
    assert code == 2 and "are not known: it draws" in error
