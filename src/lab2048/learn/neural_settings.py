"""What the settings of all neural networks have in common: the device, and the first weights."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from lab2048.learn.settings import LearnerSettings, setting

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class NeuralSettings(LearnerSettings):
    """What the training of a neural network depends on. A learner adds its fields to these."""

    _: KW_ONLY
    device: str = setting("auto", "cpu, cuda, or auto for what there is", stored=False)

    def new_network(self) -> nn.Module:
        """Return a network with weights as torch draws them; a subclass has one."""
        raise NotImplementedError

    def build(self) -> Any:
        """Return a new network, with weights that the seed decides."""
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return self.new_network()
