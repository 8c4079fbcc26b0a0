"""The settings that all neural learners share: the device, and the initial weights."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from lab2048.learn.settings import LearnerSettings, setting

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class NeuralSettings(LearnerSettings):
    """The settings of a neural learner, which adds its own fields."""

    _: KW_ONLY
    device: str = setting("auto", "cpu, cuda, or auto for a GPU if there is one", stored=False)

    def new_network(self) -> nn.Module:
        """Return a new torch module; a subclass defines it."""
        raise NotImplementedError

    def build(self) -> Any:
        """Return a new network with weights determined by the seed."""
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return self.new_network()
