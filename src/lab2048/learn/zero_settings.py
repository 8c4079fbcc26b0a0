"""The settings and presets of self-play with a tree search (`zero`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from lab2048.formatting import nearest
from lab2048.game import Rules
from lab2048.learn.neural_settings import NeuralSettings
from lab2048.learn.settings import Facts, falling_rate, setting

if TYPE_CHECKING:
    from lab2048.learn.residual import Tower

NODE, LESSON = 1 << 10, 40
"""Bytes per tree node (approximately), and per position in the replay buffer."""
BACKUPS = ("best", "mean")

PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"blocks": 1, "channels": 16, "head": 8, "games": 64, "buffer": 1 << 16},
    "small": {},
    "paper": {
        "blocks": 10, "channels": 128, "head": 128, "rate": 3e-4, "falling": False, "batch": 1024,
        "games": 1024, "c1": 1.25, "warm": 1.0, "noise": 0.0, "lucky": True, "backup": "mean",
        "reuse": 2.0, "soft": 0.0, "worth": 1.0,
    },
    "zhou": {
        "blocks": 5, "channels": 64, "head": 32, "simulations": 1600, "rate": 3e-4, "games": 32,
        "falling": False, "c1": 1.0, "c2": math.inf, "warm": 0.0, "noise": 0.0, "trace": 1.0,
        "horizon": 1000, "gate": 4, "lucky": True, "bins": 0, "soft": 0.0,
        "backup": "mean", "reuse": 2.0, "worth": 1.0,
    },
}  # fmt: skip
"""Settings by name. `paper` (Yamashita and others, 2022) and `zhou` (2019) follow the papers; what
these do not state is our choice, such as games, batches, and the network of `zhou`."""


@dataclass(frozen=True)
class ZeroSettings(NeuralSettings):
    """The settings of self-play. Ranges allow far more than is useful, but nothing harmful."""

    preset: str = setting("small", "Settings by name", choices=tuple(PRESETS))
    blocks: int = setting(1, "Residual blocks of the network", low=0, high=1000)
    channels: int = setting(64, "Channels of a block", low=1, high=4096)
    head: int = setting(16, "Channels of the layer of each head", low=1, high=4096)
    bins: int = setting(
        96, "Bins of the distribution over values (0: a value is a number)", low=0, high=1 << 16
    )
    """With 0 bins a value is a number in units of the mean score of games."""
    simulations: int = setting(20, "Simulations per move in self-play", low=1, high=100_000)
    games: int = setting(256, "Games side by side", low=1, high=1 << 20)
    rate: float = setting(3e-3, "Learning rate", low=1e-7, high=1)
    falling: bool = setting(True, "Let the learning rate fall to a hundredth along half a cosine")
    batch: int = setting(256, "Positions per step", low=1, high=1 << 20, counts="positions")
    reuse: float = setting(4.0, "Times that each position is learnt from", low=0, high=1000)
    buffer: int = setting(
        1 << 19, "Positions in the replay buffer", low=1, high=1 << 32, counts="positions"
    )
    worth: float = setting(0.25, "Weight of the value losses relative to the policy loss", low=0)
    soft: float = setting(
        0.02, "A move's target falls e-fold per loss of this share of the mean score (0: learn "
        "the shares of visits, as in the papers)", low=0,
    )  # fmt: skip
    trace: float = setting(0.8, "The lambda of returns", low=0, high=1)
    lucky: bool = setting(False, "Leave the luck of spawns in returns, as in the papers")
    horizon: int = setting(
        16, "Moves of a game that a return looks ahead, at least", low=1, high=1 << 20
    )
    noise: float = setting(0.1, "Share of noise in the priors of a root", low=0, high=1)
    spread: float = setting(1.0, "Parameter of the Dirichlet noise", low=0)
    warm: float = setting(0.2, "Initial temperature, which falls to 0", low=0)
    gate: int = setting(
        0, "Chunks between checks that keep weights only if the median is better (0: no checks)",
        low=0, high=1 << 30,
    )  # fmt: skip
    decay: float = setting(1e-5, "Weight decay", low=0)
    c1: float = setting(0.2, "How much searches explore", low=0)
    c2: float = setting(19652.0, "Visits after which exploring grows (inf: never)", low=0)
    backup: str = setting("best", "How searches back up the values of leaves", choices=BACKUPS)
    parts: int = setting(20, "Lines of the log", low=1, high=100_000, stored=False)

    board: ClassVar[str] = "3x3"
    counted: ClassVar[str] = "moves"
    goal: ClassVar[str] = "moves"
    limits: ClassVar[tuple[str, ...]] = ("steps",)

    @classmethod
    def of(cls, rules: Rules, preset: str = "small", **given: Any) -> Self:
        """Return the settings of a preset, with some changed."""
        if preset not in PRESETS:
            raise ValueError(f"there is no preset {preset[:40]!r}; {nearest(preset, PRESETS)}")
        return cls(rules, preset, **{**PRESETS[preset], **given})

    def at(self, share: float) -> tuple[float, float]:
        """Return the temperature and learning rate when this share of the training is done."""
        share = min(1.0, share)
        return self.warm * (1 - share), self.rate * (falling_rate(share) if self.falling else 1.0)

    @property
    def facts(self) -> Facts:
        """The settings as stored; JSON has no infinity."""
        return {**super().facts, "c2": None if math.isinf(self.c2) else self.c2}

    @classmethod
    def from_facts(cls, facts: Facts) -> Self:
        """Return the settings of a stored training run."""
        return super().from_facts({**facts, "c2": math.inf if facts["c2"] is None else facts["c2"]})

    @property
    def memory(self) -> int:
        """The approximate bytes of the trees and the replay buffer."""
        return NODE * self.games * (self.simulations + 1) + LESSON * self.buffer

    def new_network(self) -> Tower:
        """Return a new residual tower."""
        from lab2048.learn.residual import Tower

        return Tower(self.rules, self.channels, self.blocks, self.head, self.bins)

    @classmethod
    def describe(cls, facts: Facts) -> str:
        """Return the preset and the simulations."""
        return f"{facts['preset']}, {facts['simulations']} simulations"
