"""The base class of learners with a neural network: its device, its storage and its player.

Such a learner has settings derived from `NeuralSettings`, which build the network, and takes its
gradient steps with `net`. This module imports torch (see `gradient`).
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
    """A learner with a neural network, which is trained by Adam.

    `decay` is the weight decay, `clip` the largest norm of a gradient.
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
        """The number of trainable parameters."""
        return parameters(self.net.model)

    # -- in play ---------------------------------------------------------------------------------

    @classmethod
    def in_play(cls, model: Any) -> nn.Module:
        """Return the network to use in play; a subclass may return a faster copy."""
        found: nn.Module = model
        return found

    def network(self) -> Callable[[Words], Any]:
        """Return a function from boards to the network's outputs as arrays, for players.

        Unless `in_play` copies the network, the outputs change as training goes on.
        """
        return asked(self.in_play(self.net.model), self.settings.rules, self.net.device)

    @classmethod
    def stored_network(
        cls, settings: NeuralSettings, tensors: Tensors, device: str = "auto"
    ) -> Callable[[Words], Any]:
        """Return a stored network as a function from boards to outputs as arrays."""
        model = settings.build()
        load_model(model, tensors)
        return asked(cls.in_play(model.eval()), settings.rules, pick_device(device))

    @classmethod
    def asking(cls, ask: Callable[[Words], Any], facts: Facts) -> Player:
        """Return the player of a network; overridden unless its output is four values per board."""
        from lab2048.learn.neural_players import BestOutput, Loaded

        return BestOutput(Rules.parse(facts["board"], facts["p4"]), given=Loaded(ask, facts))

    def player(self) -> Player:
        """Return the player of the network (`network`)."""
        return self.asking(self.network(), self.facts)

    @classmethod
    def player_of(cls, facts: Facts, tensors: Tensors) -> Player:
        """Return the player of a stored network, which needs no tensors for training."""
        settings: Any = cls.settings_class.from_facts(facts)
        return cls.asking(cls.stored_network(settings, tensors), facts)

    # -- stored ----------------------------------------------------------------------------------

    @property
    def facts(self) -> Facts:
        """Metadata of the run; a subclass adds what it needs to resume."""
        return {**super().facts, "updates": self.net.steps}

    def tensors(self) -> Tensors:
        """Return the weights and the state of Adam; a subclass adds what it needs to resume."""
        return self.net.tensors()

    def resume(self, facts: Facts, tensors: Tensors) -> None:
        """Restore the state of a checkpoint."""
        super().resume(facts, tensors)
        self.net.load(tensors, facts["updates"])

    @classmethod
    def check_stored(cls, facts: Facts, shapes: Shapes) -> None:
        """Raise a `ValueError` unless the weights in a file fit the settings in its facts."""
        settings: Any = cls.settings_class.from_facts(facts)
        check_model(settings.build, shapes)

    @classmethod
    def read(cls, path: Path) -> tuple[Facts, Tensors]:
        """Read a checkpoint."""
        return read_tensors(path, cls.kind, cls.facts_needed(), check=cls.check_stored)

    @classmethod
    def read_to_play(cls, path: Path) -> tuple[Facts, Tensors]:
        """Read what is needed to play, without tensors that only training needs."""
        needed = cls.facts_needed()
        return read_tensors(path, cls.kind, needed, leave=TRAINING, check=cls.check_stored)
