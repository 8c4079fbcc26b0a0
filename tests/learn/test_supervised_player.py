"""Votes of a board's images."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lab2048.engine.packed import ON_IMAGE
from lab2048.game import Board, Direction, Rules, direction_on_image
from lab2048.learn import neural_players as neural
from lab2048.learn.encoding import images
from lab2048.learn.gradient import asked
from lab2048.learn.network_files import FILE, network_folder, write_tensors
from lab2048.learn.neural_players import Loaded, Supervised, count_votes
from lab2048.learn.supervised import SupervisedLearner
from lab2048.learn.supervised_settings import SupervisedSettings
from lab2048.measure.arena import play_games
from lab2048.players.registry import make_player
from lab2048.players.ties import legal_moves
from tests.conftest import flip
from tests.learn.small_students import some_moves
from tests.small_networks import random_grids

FOUR = Rules(4, 4)


CPU = torch.device("cpu")


# -- votes -------------------------------------------------------------------------------------


def image_with(board, wanted):
    """The symmetry under which a board looks as wanted."""
    (found,) = [s for s in range(8) if str(board.image(s)) == str(wanted)]
    return found


def test_the_vote_of_figure_8():
    """Seven images vote for down, one for right."""
    board = Board.parse("2 2 2 ./4 4 2 ./16 16 64 ./512 256 128 64")
    outputs = np.zeros((1, 8, 4), np.float32)
    printed = [
        # the image as it is printed, and up, right, down, left
        ("2 2 2 ./4 4 2 ./16 16 64 ./512 256 128 64", (0.000, 0.256, 0.660, 0.084)),
        (". 2 2 2/. 2 4 4/. 64 16 16/64 128 256 512", (0.000, 0.178, 0.560, 0.261)),
        ("512 16 4 2/256 16 4 2/128 64 2 2/64 . . .", (0.188, 0.001, 0.444, 0.367)),
        ("2 4 16 512/2 4 16 256/2 2 64 128/. . . 64", (0.095, 0.644, 0.252, 0.009)),
        ("512 256 128 64/16 16 64 ./4 4 2 ./2 2 2 .", (0.673, 0.083, 0.000, 0.244)),
        ("64 128 256 512/. 64 16 16/. 2 4 4/. 2 2 2", (0.649, 0.147, 0.001, 0.202)),
        (". . . 64/2 2 64 128/2 4 16 256/2 4 16 512", (0.317, 0.372, 0.312, 0.000)),
        ("64 . . ./128 64 2 2/256 16 4 2/512 16 4 2", (0.248, 0.001, 0.196, 0.556)),
    ]
    votes = []
    for text, numbers in printed:
        symmetry = image_with(board, Board.parse(text))
        outputs[0, symmetry] = numbers
        best = int(np.argmax(numbers))
        votes.append(next(d for d in Direction if direction_on_image(d, symmetry) == best))
    assert sorted(votes) == [Direction.RIGHT] + 7 * [Direction.DOWN]
    out = np.empty((1, 4))
    count_votes(outputs, np.ones((1, 4), bool), out)
    assert np.floor(out[0]).tolist() == [0, 1, 7, 0]
    assert int(np.argmax(out[0])) == Direction.DOWN


def naive_vote(outputs, legal):
    """Votes and sums of outputs of each move."""
    votes, sums = [0] * 4, [0.0] * 4
    for symmetry, row in enumerate(outputs):
        back = {d: row[direction_on_image(d, symmetry)] for d in range(4)}
        for d in range(4):
            sums[d] += back[d]
        allowed = [d for d in range(4) if legal[d]]
        votes[max(allowed, key=lambda d: back[d])] += 1
    return votes, sums


def test_votes_ties_and_illegal_moves():
    rng = np.random.default_rng(1)
    outputs = rng.integers(0, 4, (500, 8, 4)).astype(np.float32)
    outputs += rng.random(outputs.shape, np.float32) / 100
    legal = rng.random((500, 4)) < 0.7
    legal[~legal.any(axis=1), 2] = True
    out = np.empty((500, 4))
    count_votes(outputs, legal, out)
    ties = 0
    for k in range(500):
        votes, sums = naive_vote(outputs[k], legal[k])
        best = max((d for d in range(4) if legal[k, d]), key=lambda d: (votes[d], sums[d]))
        assert int(np.nanargmax(out[k])) == best
        assert np.isnan(out[k]).tolist() == (~legal[k]).tolist()
        assert np.floor(out[k][legal[k]]).tolist() == [votes[d] for d in range(4) if legal[k, d]]
        ties += sorted(votes)[-1] == sorted(votes)[-2]
    assert ties > 20


def made_up(rules, seed=0):
    """A network with random weights, ready to be asked."""
    settings = SupervisedSettings(rules, "cnn4", channels=8, seed=seed)
    from lab2048.learn.gradient import asked

    return Loaded(asked(settings.build(), rules, CPU), {})


def test_the_player_plays_all_images_alike():
    rules = Rules(3, 3)
    player = Supervised(rules, given=made_up(rules))
    boards = np.array([Board.parse(grid).packed for grid in random_grids(rules, 60)], np.uint64)
    boards = boards[legal_moves(boards, rules).any(axis=1)]
    values = player.values_many(boards, np.zeros_like(boards))
    for symmetry in range(8):
        which = np.full(len(boards), symmetry)
        there = player.values_many(images(boards, which, rules), np.zeros_like(boards))
        back = np.take_along_axis(there, ON_IMAGE[which], axis=1)
        assert np.allclose(back, values, equal_nan=True)
    assert player.symmetric and not Supervised(rules, given=made_up(rules), vote="off").symmetric


def test_games_do_not_depend_on_how_many_are_played_together():
    rules = Rules(3, 3)
    player = Supervised(rules, given=made_up(rules))
    found = [
        {game.index: game for game in play_games(player, iter(range(12)), 3, threads)}
        for threads in (1, 2)
    ]
    alone = {k: next(iter(play_games(player, iter([k]), 3, 1))) for k in range(3)}
    assert found[0] == found[1] and all(found[0][k] == game for k, game in alone.items())


# -- training ----------------------------------------------------------------------------------


# -- on disk -----------------------------------------------------------------------------------


def stored(name, rules, **more):
    """A network on disk that was hardly trained."""
    training = SupervisedLearner(SupervisedSettings(rules, "cnn4", channels=4, **more), 1)
    write_tensors(network_folder(name) / FILE, "supervised", training.facts, training.tensors())
    return training


def test_a_network_is_asked_about_so_many_boards_at_a_time(monkeypatch):
    rules = Rules(3, 3)
    model = SupervisedSettings(rules, "cnn4", channels=4).build()
    player = Supervised(rules, given=Loaded(asked(model, rules, CPU), {}))
    boards = some_moves(rules, 50).boards
    whole = player.values_many(boards, boards)
    monkeypatch.setattr(neural, "ASKED", 7)
    assert np.array_equal(player.values_many(boards, boards), whole, equal_nan=True)
    assert player.values_many(boards[:0], boards[:0]).shape == (0, 4)


def test_a_stored_network_plays_as_it_was(own_home):
    rules = Rules(3, 3)
    training = stored("a", rules)
    player = make_player("supervised:a", rules)
    boards = some_moves(rules, 100).boards
    from lab2048.learn.gradient import asked

    given = Loaded(asked(training.net.model, rules, CPU), {})
    same = Supervised(rules, given=given).values_many(boards, boards)
    assert np.array_equal(player.values_many(boards, boards), same, equal_nan=True)
    assert player.identity != make_player("supervised:a,vote=off", rules).identity


def sketched(build):
    """What builds networks, but none that take memory."""

    def sketch(settings):
        assert torch.get_default_device().type == "meta"
        return build(settings)

    return sketch


def test_files_of_other_networks_and_boards(own_home, monkeypatch):
    rules = Rules(3, 3)
    stored("a", rules)
    with pytest.raises(ValueError, match="the network a is for 3x3, the board is 4x4"):
        make_player("supervised:a", FOUR)
    with pytest.raises(ValueError, match="is not a network of self-play"):
        make_player("zero:a", rules)
    with pytest.raises(ValueError, match="is not an n-tuple network"):
        make_player("ntuple:a", rules)
    with pytest.raises(ValueError, match="there is no network b; there is a"):
        make_player("supervised:b", rules)
    with pytest.raises(ValueError, match="there is no supervised network for 2x5 in the package"):
        make_player("supervised", Rules(2, 5))
    with pytest.raises(ValueError, match="there is no device 'cuda:9' here"):
        make_player("supervised:a,device=cuda:9", rules)
    path = network_folder("a") / FILE
    training = SupervisedLearner(SupervisedSettings(rules, "cnn4", channels=4), 1)
    other = SupervisedLearner(SupervisedSettings(rules, "cnn4", channels=5), 1)
    write_tensors(path, "supervised", training.facts, other.tensors())
    with pytest.raises(ValueError, match="is damaged: its weights are those of another network"):
        make_player("supervised:a", rules)
    for channels, why in [
        (4096, "weights are those of"),
        (20_000, "channels is a number from 0 to"),
    ]:
        write_tensors(
            path, "supervised", training.facts | {"channels": channels}, training.tensors()
        )
        with monkeypatch.context() as patch:
            patch.setattr(SupervisedSettings, "build", sketched(SupervisedSettings.build))
            with pytest.raises(ValueError, match=why):
                make_player("supervised:a", rules)
    write_tensors(path, "supervised", training.facts | {"steps": "x"}, training.tensors())
    with pytest.raises(ValueError, match="is damaged: it does not say what steps is"):
        make_player("supervised:a", rules)
    stored("a", rules)
    flip(path, path.stat().st_size - 9)
    with pytest.raises(ValueError, match="is damaged: the checksum of"):
        make_player("supervised:a", rules).prepare()


def test_without_torch_it_is_said_how_to_get_it(monkeypatch, command, own_home):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    for arguments in (
        ("evaluate", "supervised", "--games", "1"),
        ("train", "supervised", "--data", "x.txt"),
        ("train", "zero", "--minutes", "1"),
    ):
        code, _, error = command(*arguments)
        assert code == 2 and "neural networks need torch: pip install 'lab2048[neural]'" in error
