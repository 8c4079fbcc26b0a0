"""Networks that learn from a few moves."""

from __future__ import annotations

import numpy as np

from lab2048.data import moves as data
from lab2048.data.batches import Batch
from lab2048.data.move_rows import Moves
from lab2048.game import Rules
from lab2048.learn.learner import Goal
from lab2048.learn.supervised import Examples, SupervisedLearner
from lab2048.learn.supervised_settings import SupervisedSettings
from lab2048.learn.trainer import run
from lab2048.players.registry import make_player


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
