"""The settings of learning from recorded moves (`supervised`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from lab2048.learn.neural_settings import NeuralSettings
from lab2048.learn.settings import Facts, setting

if TYPE_CHECKING:
    from torch import nn

NAMES = ("cnn4", "cnn5", "cnn5_sym", "mlp4", "mlp5")
CHANNELS = {"cnn4": 256, "cnn5": 222, "cnn5_sym": 222}
LAYERS = {"cnn4": 4, "cnn5": 5, "cnn5_sym": 5}
HIDDEN = {"mlp4": (356, 1024, 356), "mlp5": (512, 1024, 2048, 512)}
IMAGES = ("given", "random", "upright")


@dataclass(frozen=True)
class SupervisedSettings(NeuralSettings):
    """The settings of learning from recorded moves."""

    network: str = setting("cnn5", "The network", choices=NAMES)
    channels: int = setting(
        0, "Channels of convolutions (0: as many as in the study)", low=0, high=4096
    )
    epochs: int = setting(10, "Passes through the data", low=1, high=100_000, changes=True)
    batch: int = setting(1000, "Moves per step", low=2, high=1 << 20, counts="moves")
    rate: float = setting(1e-3, "Learning rate", low=1e-7, high=1)
    images: str = setting("given", "Images of boards to learn from", choices=IMAGES)
    """Boards as they are, a random image of each, or the upright one, which play then uses too. The
    study has only the first."""
    soft: float = setting(
        0.0, "Labels: a move's share falls e-fold per loss of this size (0: only the best moves)",
        low=0, high=1e9,
    )  # fmt: skip
    data: tuple[str, ...] = setting((), "Moves, or perfect labels", metavar="FILE", stored=False)
    test: str = setting("", "Data to test it with", metavar="FILE", stored=False)

    counted: ClassVar[str] = "epoch"
    goal: ClassVar[str] = "epochs"
    limits: ClassVar[tuple[str, ...]] = ("moves", "steps")

    def __post_init__(self) -> None:
        super().__post_init__()
        paths = [self.data] if isinstance(self.data, str) else self.data
        object.__setattr__(self, "data", tuple(map(str, paths)))
        if self.channels and self.network in HIDDEN:
            raise ValueError(f"{self.network} has no channels to choose")

    @classmethod
    def from_facts(cls, facts: Facts) -> Self:
        """Return the settings of a stored training run, with the data that it learnt from."""
        return replace(super().from_facts(facts), data=tuple(facts["data"]))

    def new_network(self) -> nn.Module:
        """Return a new network as the settings describe it."""
        from lab2048.learn.supervised_networks import Convolutional, Perceptron

        if self.network in HIDDEN:
            return Perceptron(self.rules, HIDDEN[self.network])
        channels = self.channels or CHANNELS[self.network]
        around = self.network == "cnn5_sym"
        return Convolutional(self.rules, channels, LAYERS[self.network], around)

    def default_name(self, kind: str) -> str:
        """Return a name made of the board and the network."""
        return f"{self.rules.name}-{self.network}"

    @classmethod
    def describe(cls, facts: Facts) -> str:
        """Return the network, and its channels if they are not the study's."""
        return str(facts["network"] + f" of {facts['channels']}" * bool(facts["channels"]))

    @classmethod
    def trained(cls, facts: Facts) -> str:
        """Say for how many epochs it was trained."""
        return f"{facts['epoch']:,} of {facts['epochs']:,} epochs"
