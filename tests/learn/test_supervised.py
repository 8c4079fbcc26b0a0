"""Networks that learn from moves: their sizes, the vote, training, and what is kept on disk."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from lab2048.data import moves as data
from lab2048.data.batches import Batch
from lab2048.data.move_rows import Moves
from lab2048.engine.packed import ON_IMAGE
from lab2048.game import Board, Direction, Rules, direction_on_image
from lab2048.learn import neural_players as neural
from lab2048.learn.encoding import images, ranks, upright
from lab2048.learn.gradient import asked, parameters, pick_device, soft_loss
from lab2048.learn.learner import Goal
from lab2048.learn.network_files import FILE, network_folder, read_facts, write_tensors
from lab2048.learn.neural_players import Loaded, Supervised, count_votes
from lab2048.learn.registry import find_learner
from lab2048.learn.resume import Callbacks, TrainingRequest, plan
from lab2048.learn.supervised import Examples, SupervisedLearner, right_moves
from lab2048.learn.supervised_settings import SupervisedSettings
from lab2048.learn.trainer import run
from lab2048.measure.arena import play_games
from lab2048.players.registry import make_player
from lab2048.players.ties import legal_moves
from tests.conftest import flip
from tests.small_networks import random_grids

slow = pytest.mark.slow
FOUR = Rules(4, 4)
CPU = torch.device("cpu")


# -- networks ----------------------------------------------------------------------------------

SIZES = {"cnn4": 820_228, "cnn5": 818_074, "cnn5_sym": 875_794, "mlp4": 823_388, "mlp5": 3_807_236}


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_networks_have_as_many_weights_as_in_the_study(name, size):
    model = SupervisedSettings(FOUR, name).build()
    assert parameters(model) == size
    assert model(torch.zeros((3, 16), dtype=torch.int32)).shape == (3, 4)


def test_the_board_of_the_study_as_planes():
    board = Board.parse("8192 32 32 4/16384 256 8 2/4096 512 2 ./2048 1024 . 2")
    model = SupervisedSettings(FOUR, "cnn4").build()
    found = model.planes(torch.from_numpy(ranks(np.array([board.packed], np.uint64), FOUR)))[0]
    assert found.shape == (16, 4, 4) and found.sum() == 16
    assert found[0].tolist() == [[0] * 4, [0] * 4, [0, 0, 0, 1], [0, 0, 1, 0]]
    assert found[5].tolist() == [[0, 1, 1, 0], [0] * 4, [0] * 4, [0] * 4]
    assert found[13, 0, 0] == found[14, 1, 0] == 1


def naive_convolution(x, weight, bias, zeros):
    """Cell by cell; x is of shape (channels, rows, cols)."""
    left, right, top, bottom = zeros
    x = np.pad(x, ((0, 0), (top, bottom), (left, right)))
    rows, cols = x.shape[1] - 1, x.shape[2] - 1
    out = np.empty((len(weight), rows, cols))
    for r in range(rows):
        for c in range(cols):
            out[:, r, c] = (weight * x[:, r : r + 2, c : c + 2]).sum(axis=(1, 2, 3)) + bias
    return out


@pytest.mark.parametrize("name", ["cnn4", "cnn5_sym"])
@pytest.mark.parametrize("rules", [FOUR, Rules(3, 2)])
def test_convolutions_see_what_is_above_and_left(name, rules):
    """In `cnn4` and `cnn5` zeros are put on the left and on the top only."""
    model = SupervisedSettings(rules, name, channels=5).build()
    board = np.array([Board.parse(random_grids(rules, 1)[0]).packed], np.uint64)
    one = ranks(board, rules)
    x = np.eye(model.planes.eye.shape[0])[one[0]].reshape(rules.rows, rules.cols, -1)
    x = x.transpose(2, 0, 1)
    zeros = (1, 1, 1, 1) if name == "cnn5_sym" else (1, 0, 1, 0)
    for layer in model.convolutions:
        weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        x = np.maximum(naive_convolution(x, weight, bias, zeros), 0)
    last = model.last.weight.detach().numpy() @ x.reshape(-1) + model.last.bias.detach().numpy()
    assert np.allclose(model(torch.from_numpy(one)).detach().numpy()[0], last, atol=1e-5)


def test_settings_that_make_no_sense():
    with pytest.raises(ValueError, match="there is no network 'cnn6'; did you mean cnn"):
        SupervisedSettings(FOUR, "cnn6")
    with pytest.raises(ValueError, match="mlp4 has no channels to choose"):
        SupervisedSettings(FOUR, "mlp4", channels=3)
    with pytest.raises(ValueError, match="there is no device 'nonsense' here"):
        pick_device("nonsense")
    with pytest.raises(ValueError, match="there is no device 'cuda:77' here"):
        pick_device("cuda:77")


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


def some_moves(rules, size, spec="greedy"):
    parts = list(data.make_moves(make_player(spec, rules), size, 1))
    return Moves(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def in_memory(moves, batch):
    """Batches of the same moves, every epoch in an order of its own."""

    def batches(epoch):
        order = np.random.default_rng(epoch).permutation(len(moves.boards))
        for begin in range(0, len(order), batch):
            rows = order[begin : begin + batch]
            yield Batch(moves.boards[rows], np.eye(4, dtype=np.float32)[moves.moves[rows]])

    return batches


@slow
@pytest.mark.parametrize("name", ["cnn4", "mlp4"])
def test_a_thousand_moves_are_learnt_by_heart(tmp_path, name):
    rules = Rules(3, 3)
    moves = some_moves(rules, 1000)
    _, first = np.unique(moves.boards, return_index=True)  # a board may be met with another move
    moves = Moves(*(each[first] for each in moves))
    settings = SupervisedSettings(
        rules, name, channels=64 if name == "cnn4" else 0, epochs=60, batch=50, rate=3e-3
    )
    examples = Examples(len(first), in_memory(moves, 50))
    training = SupervisedLearner(settings, 1, examples=examples)
    records = run(training, Goal(60), tmp_path)
    assert len(records) == 60 and records[0]["accuracy"] < 0.6
    assert records[-1]["accuracy"] > 0.99 and records[-1]["loss"] < 0.1
    test = training.test(in_memory(moves, 100)(0))
    assert test["test_accuracy"] > 0.99


def test_a_choice_is_right_if_no_other_should_be_likelier():
    found = torch.tensor([[0.0, 9.0, 1.0, 2.0]]).expand(4, 4)
    wanted = torch.tensor(
        [[0.0, 1.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.6, 0.4, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    )
    assert right_moves(found, wanted) == 2


def test_the_loss_of_soft_shares_counts_what_moves_lose():
    lost = torch.tensor([[0.0, 1.0, 3.0, torch.inf], [2.0, torch.inf, 0.0, torch.inf]])
    wanted = (-lost).softmax(1)
    found = torch.tensor([[0.3, 0.1, -0.2, -1e9], [1.0, -1e9, 0.5, -1e9]])
    entropy = -(wanted * found.log_softmax(1)).sum(1).mean()
    soft = soft_loss(found, wanted)
    likely = found.double().softmax(1)
    expected = (likely[0, 1] + 3 * likely[0, 2] + 2 * likely[1, 0]) / 2
    assert soft.item() == pytest.approx(entropy.item() + expected.item() / 2)


def test_soft_shares_ask_nothing_of_illegal_moves():
    rules = Rules(2, 2)
    board = np.array([1], np.uint64)  # a 2 in the first corner
    shares = np.array([[0.0, 0.25, 0.75, 0.0]], np.float32)
    training = SupervisedLearner(SupervisedSettings(rules, "cnn4", channels=4, soft=5.0), 1)
    found, wanted = training._ask(board, shares)
    assert (found[0, [0, 3]] < -1e8).all() and (found[0, [1, 2]].abs() < 10).all()
    training._loss(found, wanted).backward()
    gradient = training.net.model.last.bias.grad
    assert (gradient[[0, 3]] == 0).all() and (gradient[[1, 2]] != 0).all()


@pytest.mark.parametrize("which", ["random", "upright"])
def test_images_are_learnt_with_their_moves(which):
    rules = Rules(3, 3)
    moves = some_moves(rules, 200)
    given = Batch(moves.boards, np.eye(4, dtype=np.float32)[moves.moves])
    training = SupervisedLearner(SupervisedSettings(rules, "cnn4", channels=4, images=which), 1)
    found = training._turned(given, np.random.default_rng(0))
    assert (found.boards != given.boards).mean() > 0.6
    if which == "upright":
        assert (found.boards == upright(given.boards, rules)[0]).all()
    for k in range(200):
        before, after = (Board.from_packed(int(each.boards[k]), 3, 3) for each in (given, found))
        one = before.move(int(given.shares[k].argmax())).after
        other = after.move(int(found.shares[k].argmax())).after
        assert one.canonical().board == other.canonical().board


def test_a_network_of_upright_boards_is_asked_about_those():
    rules = Rules(3, 3)
    asked = []

    def network(boards):
        asked.append(boards)
        return np.tile(np.array([[4.0, 3.0, 2.0, 1.0]], np.float32), (len(boards), 1))

    player = Supervised(rules, given=Loaded(network, {"images": "upright"}))
    boards = some_moves(rules, 100).boards
    values = player.values_many(boards, boards)
    assert player.symmetric and (asked[0] == upright(boards, rules)[0]).all()
    for board, row in zip(boards, values, strict=True):
        before = Board.from_packed(int(board), 3, 3)
        there = Board.from_packed(int(upright(np.array([board]), rules)[0][0]), 3, 3)
        right = there.move(there.legal_moves[0]).after  # up is the best, then right, and so on
        assert (
            before.move(int(np.nanargmax(row))).after.canonical().board == right.canonical().board
        )


def trained(folder, epochs, stop=None, before=None):
    """A small training, perhaps stopped after some batches and gone on with."""
    rules = Rules(3, 3)
    settings = SupervisedSettings(
        rules, "cnn4", channels=4, epochs=epochs, batch=50, images="random"
    )
    examples = Examples(300, in_memory(some_moves(rules, 300, "random"), 50))
    training = SupervisedLearner(settings, 1, examples=examples)
    if before is not None:
        training.resume(before.facts, before.tensors())
    count = [0]

    def look(share, what):
        count[0] += 1
        training.stopped = count[0] == stop

    training.on_progress = look
    run(training, Goal(epochs), folder)
    return training


def test_what_was_stopped_ends_as_if_it_had_not_been(tmp_path):
    whole = trained(tmp_path / "a", 3)
    part = trained(tmp_path / "b", 3, stop=8)
    assert part.epoch == 1 and part.batch == 2
    again = trained(tmp_path / "b", 3, before=part)
    for name, tensor in whole.tensors().items():
        assert np.array_equal(tensor, again.tensors()[name]), name
    assert again.facts["sums"] == whole.facts["sums"]
    logs = [(tmp_path / name / "log.jsonl").read_text().splitlines() for name in "ab"]
    losses = [[json.loads(line)["loss"] for line in each] for each in logs]
    assert losses[0] == losses[1] and len(losses[0]) == 3
    with pytest.raises(ValueError, match="it was begun with 6 batches of data, not 7"):
        SupervisedLearner(part.settings, 1, examples=Examples(350, None)).check_same(part.facts)
    other = tmp_path / "moves.txt"
    other.write_text("other moves\n")
    settings = replace(part.settings, data=(str(other),))
    again = SupervisedLearner(settings, 1, examples=part.examples)
    again.prepare()
    with pytest.raises(ValueError, match="other data"):
        again.check_same(part.facts)


# -- on disk -----------------------------------------------------------------------------------


def stored(name, rules, **more):
    """A network on disk that was hardly trained."""
    training = SupervisedLearner(SupervisedSettings(rules, "cnn4", channels=4, **more), 1)
    write_tensors(network_folder(name) / FILE, "supervised", training.facts, training.tensors())
    return training


def test_what_diverges_is_told_and_not_kept(tmp_path):
    training = trained(tmp_path, 1)
    kept = (tmp_path / FILE).read_bytes()
    with torch.no_grad():
        training.net.model.last.bias.fill_(np.nan)
    training.settings = replace(training.settings, epochs=2)
    with pytest.raises(ValueError, match="the loss is not a number any more; a smaller `rate`"):
        run(training, Goal(2), tmp_path)
    assert (tmp_path / FILE).read_bytes() == kept


def test_what_is_packed_does_not_go_on(own_home, command, tmp_path):
    folder = network_folder("a")
    folder.mkdir(parents=True)
    training = trained(folder, 1)
    write_tensors(
        folder / FILE, "supervised", {**training.facts, "packed": True}, training.tensors()
    )
    (tmp_path / "a.txt").write_text("r 1 0 0 0 0 0 0 0 0 : 1 2\n")
    arguments = ("--data", str(tmp_path / "a.txt"), "--out", "a", "--resume")
    code, _, error = command("train", "supervised", *arguments)
    assert code == 2 and "a is packed: it plays, but cannot go on learning" in error


def test_what_another_command_has_trained_meanwhile_is_kept(own_home):
    folder = network_folder("a")
    folder.mkdir(parents=True)
    learner = find_learner("supervised")
    new = plan(learner, TrainingRequest({"board": "3x3"}, "a"), 0)
    trained(folder, 1)
    with pytest.raises(ValueError, match="there is a network a already"):
        new.begin(None, Callbacks())
    before = plan(learner, TrainingRequest({}, "a", resume=True), 0)
    with pytest.raises(ValueError, match="it needs moves to learn from"):  # all else is right
        before.begin(None, Callbacks())
    os.utime(folder / FILE, ns=(0, before.stamp + 1))
    with pytest.raises(ValueError, match="a was trained by another command meanwhile"):
        before.begin(None, Callbacks())


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


# -- commands ----------------------------------------------------------------------------------


@slow
def test_train_stop_resume_list_and_pack(command, tmp_path, warm_home):
    path = tmp_path / "moves.txt"
    data.write_moves(path, [some_moves(Rules(2, 2), 2000, "optimal")], Rules(2, 2), {})
    arguments = [
        "train", "supervised", "--board", "2x2", "--network", "mlp4", "--data", str(path), "--out",
        "a", "--batch", "100", "--threads", "1",
    ]  # fmt: skip
    picture = tmp_path / "a.svg"
    code, out, error = command(
        *arguments, "--epochs", "2", "--test", str(path), "--plot", str(picture), "--json"
    )
    assert code == 0 and "cells are of the tile after the move" in error
    found = json.loads(out)
    assert [each["epoch"] for each in found["log"]] == [1, 2] and "test_loss" in found["log"][0]
    assert "<svg" in picture.read_text()
    code, _, error = command(*arguments, "--epochs", "2")
    assert code == 2 and "there is a network a already: --resume goes on with it" in error
    code, out, _ = command("train", "supervised", "--out", "a", "--resume", "--epochs", "4")
    assert code == 0 and "a is ready: lab2048 evaluate supervised:a --board 2x2" in out
    assert read_facts(network_folder("a") / FILE)["epoch"] == 4
    code, _, error = command("train", "supervised", "--out", "a", "--resume", "--seed", "5")
    assert code == 2 and "a was begun with --seed 1, not 5" in error
    code, out, _ = command("train", "list")
    assert code == 0 and "supervised" in out and "4 of 4 epochs" in out
    packed = tmp_path / "b.safetensors"
    code, out, _ = command("train", "pack", "a", str(packed))
    assert code == 0 and packed.stat().st_size < (network_folder("a") / FILE).stat().st_size / 2
    assert read_facts(packed)["data"] == ["moves.txt"]
    code, out, _ = command(
        "evaluate",
        "supervised:a",
        f"supervised:{packed}",
        "--board",
        "2x2",
        "--games",
        "50",
        "--json",
    )
    results = json.loads(out)
    assert results[0]["score"] == results[1]["score"] and results[0]["optimal"]["agreement"] > 0.9


def test_bad_arguments_are_told_in_a_line(command, tmp_path, own_home):
    path = tmp_path / "a.txt"
    path.write_text("nonsense\n")
    wrong = {
        ("--data", str(path)): "line 1: a line is 'r', 16 ranks",
        (): "it needs moves to learn from: --data FILE",
        ("--data", str(path), "--device", "cuda:9"): "there is no device 'cuda:9' here",
        ("--data", str(path), "--network", "x"): "there is no network 'x'",
        ("--data", str(path), "--plot", "x.gif"): "a picture is .svg, .png or .pdf",
        ("--data", str(path), "--soft", "3"): "--soft is for labels",
        ("--data", str(path), "--rate", "-1"): "rate is a number from 1e-07 to 1, not -1",
        ("--data", str(path), "--seed", str(1 << 64)): "the seed of a training is a number from 0",
        ("--resume",): "there is no network 4x4-cnn5 to go on with",
    }
    for arguments, why in wrong.items():
        code, _, error = command("train", "supervised", *arguments)
        assert code == 2 and why in error, error
    (tmp_path / "b.txt").write_text("\n")
    code, _, error = command("train", "supervised", "--data", str(tmp_path / "b.txt"))
    assert code == 2 and "there are no moves in the data" in error
    assert (
        not network_folder("4x4-cnn5").exists() or not (network_folder("4x4-cnn5") / FILE).exists()
    )
