"""The replay buffer keeps the last positions."""

from __future__ import annotations

import numpy as np

from lab2048.learn.replay_buffer import Replay
from lab2048.learn.selfplay import (
    LESSON_COLUMNS,
    Lessons,
)


def test_the_ring_keeps_the_last_positions():
    replay = Replay(10, LESSON_COLUMNS)
    for k in range(7):
        numbers = np.arange(3 * k, 3 * k + 3)
        policy = np.repeat(numbers[:, None], 4, axis=1).astype(np.float32)
        words, singles = numbers.astype(np.uint64), numbers.astype(np.float32)
        replay.add(Lessons(words, policy, singles, words, singles)._asdict())
    found = Lessons(**replay.sample(2000, np.random.default_rng(0)))
    assert set(found.states.tolist()) == set(range(11, 21))
    assert (found.states == found.worths).all() and (found.policy[:, 3] == found.worths).all()
    other = Replay(10, LESSON_COLUMNS)
    other.load(replay.tensors(), replay.following)
    again = other.sample(2000, np.random.default_rng(0))
    assert (again["states"] == found.states).all()
