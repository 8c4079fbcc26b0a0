"""Networks that learn from moves: their sizes, the vote, training, and what is kept on disk."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from lab2048.data.batches import Batch
from lab2048.data.move_rows import Moves
from lab2048.game import Board, Rules
from lab2048.learn.encoding import upright
from lab2048.learn.gradient import soft_loss
from lab2048.learn.learner import Goal
from lab2048.learn.network_files import FILE, network_folder, write_tensors
from lab2048.learn.neural_players import Loaded, Supervised
from lab2048.learn.registry import find_learner
from lab2048.learn.resume import Callbacks, TrainingRequest, plan
from lab2048.learn.supervised import Examples, SupervisedLearner, right_moves
from lab2048.learn.supervised_settings import SupervisedSettings
from lab2048.learn.trainer import run
from tests.learn.small_students import in_memory, some_moves, trained

# -- training ----------------------------------------------------------------------------------


@pytest.mark.slow
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
