"""The player that looks ahead with an n-tuple network."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lab2048.game import Board, Rules
from lab2048.learn.network_files import FILE, network_folder, read_facts
from lab2048.learn.ntuple_files import write_weights
from lab2048.learn.ntuple_player import NTuple, downgrade
from lab2048.learn.td import NTupleLearner
from lab2048.players.registry import make_player
from lab2048.players.shipped import SHIPPED
from tests import naive, naive_learn
from tests.small_networks import cells_of, entry, random_grids, small_settings

# -- files that are small and claim to be large ------------------------------------------------


LARGE = 1 << 25


def zeros(compressor):
    """So many zeros, compressed."""
    parts = [compressor.compress(bytes(1 << 20)) for _ in range(LARGE >> 20)]
    return np.frombuffer(b"".join(parts) + compressor.flush(), np.uint8)


# -- the player --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained():
    """A small network for 3x3 that has learnt a little."""
    training = NTupleLearner(small_settings(), 1)
    training.block(1000)
    return training.stored()


def naive_net(stored):
    class Looked(naive_learn.Net):
        def weight(self, name):
            return stored.weights[entry(stored.network, name)]

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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "board", "games", "least"),
    [
        ("ntuple", "3x3", 1000, 4300),
        ("ntuple", "4x4", 50, 190_000),
        ("supervised", "4x4", 100, 23_000),
        ("zero:simulations=0", "3x3", 500, 3600),
    ],
)
def test_the_networks_of_the_package_play_well(spec, board, games, least):
    from lab2048.measure.arena import play_games

    player = make_player(spec, Rules.parse(board))
    scores = [game.score for game in play_games(player, iter(range(games)), 1, threads=2)]
    assert np.mean(scores) > least


def test_the_networks_of_the_package_are_small():
    found = {path.name: path.stat().st_size for path in SHIPPED.iterdir()}
    names = ("ntuple-3x3", "ntuple-4x4", "supervised-4x4", "zero-3x3")
    assert set(found) == {f"{name}.safetensors" for name in names}
    assert sum(size for name, size in found.items() if name.startswith("ntuple")) < 25e6
    assert sum(size for name, size in found.items() if not name.startswith("ntuple")) < 10e6
    for name in found:
        facts = read_facts(SHIPPED / name)
        assert f"{facts['kind']}-{facts['board']}.safetensors" == name and facts["packed"]


class OneByOne(NTuple):
    """The same player, asked for every single move."""

    def play_on(self, state, four, moves, results):
        return False


@pytest.mark.slow
@pytest.mark.parametrize("more", ["off", "auto", "64"])
def test_games_in_one_kernel_are_those_move_by_move(trained, more, monkeypatch):
    from lab2048.measure import arena

    monkeypatch.setattr(arena, "AT_ONCE", 7)
    found = []
    for kind in (NTuple, OneByOne):
        player = kind(trained.rules, given=trained, downgrade=more)
        games = arena.play_games(player, iter(range(40)), 7, threads=2)
        found.append({game.index: game for game in games})
    assert found[0] == found[1] and max(game.score for game in found[0].values()) > 500


@pytest.mark.slow
@pytest.mark.parametrize(("method", "gamma"), [("state", 1.0), ("otd", 0.9), ("otd", 1.0)])
def test_networks_of_all_kinds_play_as_they_were_trained(method, gamma):
    settings = small_settings(method, gamma=gamma)
    training = NTupleLearner(settings, 1)
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


def played_on(player, board):
    """The board after a move in one kernel, and what is told about that."""
    legal = sum(1 << move for move in board.legal_moves)
    state = np.array([[board.packed], [0], [legal], [0]], np.uint64)
    moves, results = np.zeros((1, 1), np.uint8), np.zeros((1, 3), np.int64)
    assert player.play_on(state, np.zeros(2, np.uint64), moves, results)
    return Board.from_packed(int(state[0, 0]), board.rows, board.cols), results[0].tolist()


@pytest.mark.slow
def test_a_tile_that_is_too_large_is_left_to_the_game(trained):
    player = NTuple(trained.rules, given=trained, downgrade="off")
    board = Board.parse("32768 32768 2 / 4 8 16 / 32 64 128")
    assert played_on(player, board) == (board, [0, 0, 1])


@pytest.mark.slow
def test_the_largest_tile_is_played_with(trained):
    player = NTuple(trained.rules, given=trained, downgrade="off")
    board = Board.parse("32768 2 2 / 8 16 32 / 64 128 .")
    legal, reward, after = board.move(player.choose(board))
    found, told = played_on(player, board)
    assert legal and told == [1, reward, 0] and found.age == after.age + 2


@pytest.mark.slow
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


@pytest.mark.slow
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
    other = NTupleLearner(small_settings(seed=9), 1)
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
    with pytest.raises(ValueError, match="there is no ntuple network for 5x2 in the package"):
        make_player("ntuple", Rules(5, 2))
