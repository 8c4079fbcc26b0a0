"""The player that searches with a network of self-play."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from lab2048.game import Board, Game, Rules
from lab2048.learn.network_files import FILE, network_folder, write_tensors
from lab2048.learn.neural_players import Loaded, Zero
from lab2048.learn.zero import ZeroLearner
from lab2048.learn.zero_settings import ZeroSettings
from lab2048.measure.arena import play_games
from lab2048.players.registry import make_player
from lab2048.players.ties import legal_moves
from tests.learn.tiny_zero import tiny


def stored(name, rules, **more):
    training = ZeroLearner(tiny(rules, **more), threads=1)
    training.scale = 50.0
    write_tensors(network_folder(name) / FILE, "zero", training.facts, training.tensors())
    return training


@pytest.mark.slow
def test_a_network_is_played_with_the_settings_that_it_was_trained_with(own_home):
    rules = Rules(3, 2)
    training = stored("papers", rules, c1=1.25, c2=math.inf, backup="mean")
    boards = np.array([Game(rules, 1, index=k).board.packed for k in range(200)], np.uint64)
    player = make_player("zero:papers,simulations=12", rules)
    assert player.search_settings == {"c1": 1.25, "c2": math.inf, "backup": "mean"}
    assert player.spec == "zero:papers,simulations=12"
    given = Loaded(training.network(), {**training.facts, "c1": 0.2, "c2": 300.0, "backup": "best"})
    other = Zero(rules, given=given, simulations=12)
    told = Zero(rules, given=given, simulations=12, c1=1.25, c2=math.inf, backup="mean")
    found = player.values_many(boards, boards)
    assert np.array_equal(found, told.values_many(boards, boards), equal_nan=True)
    assert not np.array_equal(found, other.values_many(boards, boards), equal_nan=True)
    assert other.identity != told.identity
    half = make_player("zero:papers,simulations=12,c1=0.5", rules)
    assert half.search_settings == {"c1": 0.5, "c2": math.inf, "backup": "mean"}


@pytest.mark.slow
def test_the_player_and_its_network(own_home):
    rules = Rules(3, 2)
    training = stored("a", rules)
    given = Loaded(training.network(), training.facts)
    boards = np.array([Game(rules, 1, index=k).board.packed for k in range(600)], np.uint64)
    for more in ("simulations=7", "simulations=0", "simulations=5,backup=mean"):
        player = make_player(f"zero:a,{more}", rules)
        options = dict(each.split("=") for each in more.split(","))
        options["simulations"] = int(options["simulations"])
        same = Zero(rules, given=given, **options)
        found = player.values_many(boards, boards)
        assert np.array_equal(found, same.values_many(boards, boards), equal_nan=True)
        assert (np.isnan(found) == ~legal_moves(boards, rules)).all()
        if options["simulations"]:
            assert (np.nansum(np.floor(found), axis=1) == options["simulations"]).all()
            assert player.draws and not player.symmetric
        else:
            assert np.allclose(np.nansum(found, axis=1), 1)
            assert player.symmetric and not player.draws
    with pytest.raises(ValueError, match="is not a supervised network"):
        make_player("supervised:a", rules)
    with pytest.raises(ValueError, match="there is no zero network for 2x5 in the package"):
        make_player("zero", Rules(2, 5))
    with pytest.raises(ValueError, match="the network a is for 3x2, the board is 4x4"):
        make_player("zero:a", Rules(4, 4))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"blocks": 1_000_000}, "blocks is a number from 0 to 1000, not 1e"),
        ({"channels": 20_000}, "channels is a number from 1 to 4096, not 20000"),
        ({"channels": 4096}, "its weights are those of another network"),
        ({"bins": 10**12}, "bins is a number from 0 to 65536"),
        ({"blocks": True}, "it does not say what blocks is"),
        ({"buffer": 10**15}, "buffer is a number from 1 to"),
        ({"c2": "x"}, "it does not say what c2 is"),
        ({"reuse": float("nan")}, "reuse is a number from 0 to 1000, not nan"),
    ],
)
def test_a_network_is_as_large_as_its_file(own_home, monkeypatch, command, changed, why):
    """It is sketched and compared with the tensors in the file before it is made."""
    rules = Rules(2, 2)
    training = ZeroLearner(tiny(rules), threads=1)
    write_tensors(network_folder("a") / FILE, "zero", training.facts | changed, training.tensors())
    build = ZeroSettings.build

    def sketch(settings):
        assert torch.get_default_device().type == "meta"
        return build(settings)

    monkeypatch.setattr(ZeroSettings, "build", sketch)
    with pytest.raises(ValueError, match=f"is damaged: {why}"):
        make_player("zero:a", rules)
    code, _, error = command("train", "zero", "--out", "a", "--resume", "--moves", "10")
    assert code == 2 and why in error and len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("facts", "tensors", "why"),
    [
        ({"begun": []}, {}, "IndexError"),
        ({"following": 500}, {}, "there is no place 500 among 500 positions"),
        ({}, {"game.states": None}, "KeyError 'game.states'"),
        ({}, {"game.0.state": np.zeros((4, 9), np.uint64)}, "games are those of another training"),
        ({}, {"game.0.scores": np.zeros(8)}, "games are those of another training"),
        ({}, {"adam.moves.bias.exp_avg": np.zeros(1)}, "weights are those of another network"),
        ({"simulations": 100_000, "games": 1 << 20}, {}, "its games and positions take 107 TB of"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_told(own_home, command, facts, tensors, why):
    training = ZeroLearner(tiny(), threads=1)
    changed = {n: t for n, t in (training.tensors() | tensors).items() if t is not None}
    write_tensors(network_folder("a") / FILE, "zero", training.facts | facts, changed)
    code, _, error = command("train", "zero", "--out", "a", "--resume", "--moves", "10")
    assert code == 2 and why in error, error
    assert error.splitlines()[-1].startswith("lab2048: ")


@pytest.mark.slow
def test_games_are_the_same_on_any_number_of_threads(own_home):
    rules = Rules(2, 2)
    stored("a", rules)
    player = make_player("zero:a,simulations=6", rules)
    one, two = (
        {game.index: game for game in play_games(player, iter(range(20)), 3, threads)}
        for threads in (1, 2)
    )
    assert one == two


@pytest.mark.slow
def test_a_dead_end_has_no_values(own_home):
    rules = Rules(2, 2)
    stored("a", rules)
    dead = np.array([Board.parse("2 4/4 2").packed], np.uint64)
    for simulations in (0, 3):
        player = make_player(f"zero:a,simulations={simulations}", rules)
        assert np.isnan(player.values_many(dead, dead)).all()
