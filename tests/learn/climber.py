"""A learner by somebody else: it uses nothing but what the package exports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import lab2048 as lab


@dataclass(frozen=True)
class ClimbSettings(lab.LearnerSettings):
    size: float = lab.setting(0.5, "Size of a change", low=0, high=10)

    board = "2x2"


class Climb(lab.Learner):
    """Change the weights of a linear policy at random, and keep what is better."""

    settings_class = ClimbSettings

    def __init__(self, settings, threads=None):
        super().__init__(settings, threads)
        self.weights, self.best = np.zeros((settings.rules.cells, 4)), 0.0

    def step(self, goal):
        draw = np.random.default_rng((self.settings.seed, self.done))
        tried = self.weights + draw.normal(0, self.settings.size, self.weights.shape)
        value = lab.exact_value(self.playing(tried), table=False).value
        if value > self.best:
            self.weights, self.best = tried, value
        self.done += 1

    def record(self):
        return {"mean": self.best}

    def tensors(self):
        return {"weights": self.weights}

    def resume(self, facts, tensors):
        super().resume(facts, tensors)
        self.weights = tensors["weights"]
        self.best = lab.exact_value(self.player(), table=False).value

    def player(self):
        return self.playing(self.weights)

    def playing(self, weights):
        def choose(ranks, legal):
            liked = ranks.reshape(len(ranks), -1) @ weights
            return np.where(legal, liked, -np.inf).argmax(axis=1)

        return lab.player(choose, self.settings.rules)
