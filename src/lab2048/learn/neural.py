"""What learners with a neural network have in common: where it runs, how it is stored and asked.

Such a learner has settings derived from `NeuralSettings`, which build the network, and takes its
steps with `net`. Torch is imported by this module (see `gradient`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from torch import nn

from lab2048.engine.arrays import Words
from lab2048.game import Rules
from lab2048.learn.gradient import (
    NetworkWithAdam,
    asked,
    check_model,
    load_model,
    parameters,
    pick_device,
)
from lab2048.learn.learner import Learner
from lab2048.learn.network_files import TRAINING, Shapes, Tensors, read_tensors
from lab2048.learn.neural_settings import NeuralSettings
from lab2048.learn.settings import Facts
from lab2048.players.player import Player

N = TypeVar("N", bound=NeuralSettings)


class NeuralLearner(Learner[N]):
    """A learner whose player asks a neural network, which Adam teaches.

    With `clip` no gradient is longer than that.
    """

    needed: ClassVar = {"updates": int}

    def __init__(
        self,
        settings: N,
        threads: int | None = None,
        *,
        decay: float = 0.0,
        clip: float | None = None,
    ) -> None:
        super().__init__(settings, threads)
        device = pick_device(settings.device)
        torch.set_num_threads(self.threads)
        self.net = NetworkWithAdam(settings.build(), device, decay, clip)

    @property
    def size(self) -> int:
        """How many numbers it learns."""
        return parameters(self.net.model)

    # -- asked -----------------------------------------------------------------------------------

    @classmethod
    def in_play(cls, model: Any) -> nn.Module:
        """Return a network as it is asked in play, which may be a faster copy."""
        found: nn.Module = model
        return found

    def network(self) -> Callable[[Words], Any]:
        """Return the network as it is now, as players ask it: boards to arrays."""
        return asked(self.in_play(self.net.model), self.settings.rules, self.net.device)

    @classmethod
    def stored_network(
        cls, settings: NeuralSettings, tensors: Tensors, device: str = "auto"
    ) -> Callable[[Words], Any]:
        """Return a network that was stored, as players ask it."""
        model = settings.build()
        load_model(model, tensors)
        return asked(cls.in_play(model), settings.rules, pick_device(device))

    @classmethod
    def asking(cls, ask: Callable[[Words], Any], facts: Facts) -> Player:
        """Return the player that asks a network; a subclass has one if that says no four values."""
        from lab2048.learn.neural_players import BestOutput, Loaded

        return BestOutput(Rules.parse(facts["board"], facts["p4"]), given=Loaded(ask, facts))

    def player(self) -> Player:
        """Return the player that asks the network as it is now."""
        return self.asking(self.network(), self.facts)

    @classmethod
    def player_of(cls, facts: Facts, tensors: Tensors) -> Player:
        """Return the player of what was stored, without what only training needs."""
        settings: Any = cls.settings_class.from_facts(facts)
        return cls.asking(cls.stored_network(settings, tensors), facts)

    # -- stored ----------------------------------------------------------------------------------

    @property
    def facts(self) -> Facts:
        """All that is known about it; a subclass adds what it takes to go on."""
        return {**super().facts, "updates": self.net.steps}

    def tensors(self) -> Tensors:
        """Return the network and what Adam knows; a subclass adds what it takes to go on."""
        return self.net.tensors()

    def resume(self, facts: Facts, tensors: Tensors) -> None:
        """Go on from what was stored."""
        super().resume(facts, tensors)
        self.net.load(tensors, facts["updates"])

    @classmethod
    def check_stored(cls, facts: Facts, shapes: Shapes) -> None:
        """Raise a `ValueError` unless the weights in a file fit the settings that it tells."""
        settings: Any = cls.settings_class.from_facts(facts)
        check_model(settings.build, shapes)

    @classmethod
    def read(cls, path: Path) -> tuple[Facts, Tensors]:
        """Read all that it takes to go on."""
        return read_tensors(path, cls.kind, cls.facts_needed(), check=cls.check_stored)

    @classmethod
    def read_to_play(cls, path: Path) -> tuple[Facts, Tensors]:
        """Read what it takes to play, without what only training needs."""
        needed = cls.facts_needed()
        return read_tensors(path, cls.kind, needed, leave=TRAINING, check=cls.check_stored)
