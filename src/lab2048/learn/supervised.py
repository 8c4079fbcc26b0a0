"""Networks that learn from recorded moves which move a strong player makes.

A board goes in as planes of zeros and ones, one for each rank; four numbers come out, and the move
with the largest is the network's choice. Training makes the recorded move likelier: the loss is the
cross-entropy between the softmax of the four numbers and the move.

The five networks of the supervised study (2025) are here with the numbers of weights that it
prints. Its convolutions are of 2x2 cells; before each, a row and a column of zeros are put on the
left and on the top (`cnn4`, `cnn5`), so that the board keeps its size, or zeros all around
(`cnn5_sym`), so that it grows. ReLU is between layers, and nothing behind the last.

From labels with the value of each move (`soft`) more is learnt than which move is right: the loss
is then the cross-entropy of all legal moves plus what the network's moves lose on average.

What the study does not print is ours: Adam, a learning rate of 0.001 that falls to a hundredth of
that along half a cosine, and the widths of `mlp4`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from lab2048.board import Words
from lab2048.game import Rules
from lab2048.lanes import Counts
from lab2048.learn.encoding import ON_IMAGE, Batch, Shares, images, planes, upright
from lab2048.learn.files import FILE, Facts, Shapes, Tensors, write_tensors
from lab2048.learn.folder import Logs, Saver
from lab2048.learn.learner import (
    LAST_RATE,
    Learner,
    Planes,
    asked,
    check_model,
    check_settings,
    checked_fields,
    inputs,
    load_model,
    parameters,
    pick_device,
    soft_loss,
)
from lab2048.wording import nearest

NAMES = ("cnn4", "cnn5", "cnn5_sym", "mlp4", "mlp5")
CHANNELS = {"cnn4": 256, "cnn5": 222, "cnn5_sym": 222}
LAYERS = {"cnn4": 4, "cnn5": 5, "cnn5_sym": 5}
IMAGES = ("given", "random", "upright")
RANGES = {"channels": (0, 4096), "epochs": (1, 100_000), "batch": (2, 1 << 20)}
"""What settings of a stored training may be."""
HIDDEN = {"mlp4": (356, 1024, 356), "mlp5": (512, 1024, 2048, 512)}


class Convolutional(nn.Module):
    """Convolutions of 2x2 cells, and a linear layer behind them."""

    def __init__(self, rules: Rules, channels: int, layers: int, around: bool) -> None:
        super().__init__()
        self.planes = Planes(rules)
        self.zeros = (1, 1, 1, 1) if around else (1, 0, 1, 0)  # left, right, top, bottom
        sizes = [planes(rules)] + [channels] * layers
        self.convolutions = nn.ModuleList(
            nn.Conv2d(sizes[k], sizes[k + 1], 2) for k in range(layers)
        )
        more = layers if around else 0
        self.last = nn.Linear(channels * (rules.rows + more) * (rules.cols + more), 4)

    def forward(self, ranks: Tensor) -> Tensor:
        """Four numbers for each board."""
        x = self.planes(ranks)
        for convolution in self.convolutions:
            x = F.relu(convolution(F.pad(x, self.zeros)))
        found: Tensor = self.last(x.flatten(1))
        return found


class Perceptron(nn.Module):
    """Layers that are fully connected."""

    def __init__(self, rules: Rules, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.planes = Planes(rules)
        sizes = [rules.cells * planes(rules), *hidden, 4]
        self.layers = nn.ModuleList(
            nn.Linear(sizes[k], sizes[k + 1]) for k in range(len(sizes) - 1)
        )

    def forward(self, ranks: Tensor) -> Tensor:
        """Four numbers for each board."""
        x = self.planes(ranks).flatten(1)
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        found: Tensor = self.layers[-1](x)
        return found


FACTS = {
    "board": str, "p4": float, "network": str, "channels": int, "epochs": int, "batch": int,
    "rate": float, "images": str, "soft": float, "seed": int, "epoch": int, "batch_in_epoch": int,
    "batches": int, "sums": list, "steps": int, "seconds": float, "data": list,
}  # fmt: skip
"""What a file says about a network."""


@dataclass(frozen=True)
class Settings:
    """What a training depends on, beside its data."""

    rules: Rules
    network: str = "cnn5"
    channels: int = 0
    """Of convolutions; 0 for as many as the study has."""
    epochs: int = 10
    batch: int = 1000
    rate: float = 1e-3
    images: str = "given"
    """Which images of boards are learnt from: as they are, random ones, or upright ones, which are
    then asked about in play too. Only the first is in the study."""
    soft: float = 0.0
    """Of labels: a move that is worse by so much is e times less right; 0: only the best are."""
    seed: int = 1

    def __post_init__(self) -> None:
        if self.network not in NAMES:
            raise ValueError(
                f"there is no network {self.network[:40]!r}; {nearest(self.network, NAMES)}"
            )
        if self.channels and self.network in HIDDEN:
            raise ValueError(f"{self.network} has no channels to choose")
        if self.images not in IMAGES:
            raise ValueError(f"images are {', '.join(IMAGES)}, not {self.images[:40]!r}")
        check_settings(self.rate, self.seed)
        if not 0 <= self.soft < math.inf:
            raise ValueError(f"soft is a number of points, not {self.soft:g}")

    @classmethod
    def of(cls, rules: Rules, **more: Any) -> Settings:
        """The usual settings, some of them changed."""
        return cls(rules, **more)

    def build(self) -> nn.Module:
        """A new network, with weights that the seed decides."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            if self.network in HIDDEN:
                return Perceptron(self.rules, HIDDEN[self.network])
            channels = self.channels or CHANNELS[self.network]
            around = self.network == "cnn5_sym"
            return Convolutional(self.rules, channels, LAYERS[self.network], around)

    @property
    def facts(self) -> Facts:
        """The settings as they are stored."""
        found = asdict(self)
        del found["rules"]
        return {"board": self.rules.name, "p4": self.rules.p4, **found}

    @classmethod
    def from_facts(cls, facts: Facts) -> Settings:
        """The settings of a training that was stored."""
        rules = Rules.parse(facts["board"], facts["p4"])
        return cls(rules, **checked_fields(cls, facts, RANGES))


Batches = Callable[[int], Iterator[Batch]]
"""The batches of an epoch, always the same for the same number."""


class Training:
    """A network that is being trained."""

    def __init__(
        self, settings: Settings, device: torch.device, batches: int, data: Sequence[Path] = ()
    ) -> None:
        self.settings, self.rules = settings, settings.rules
        self.data = [str(path.absolute()) for path in data]
        self.bytes = [path.stat().st_size for path in data]
        """How large the files are: so others are noticed."""
        self.learner = Learner(settings.build(), device)
        self.batches = batches
        """How many an epoch has."""
        self.epoch = self.batch = 0
        """How many epochs are over, and how many batches of the present one."""
        self.seconds = 0.0
        self.sums = np.zeros(3)
        """Of the epoch: boards, their losses, and how many moves were right."""
        self.stopped = False

    @property
    def size(self) -> int:
        """How many numbers it learns."""
        return parameters(self.learner.model)

    @property
    def share(self) -> float:
        """How much of the training is done."""
        return (self.epoch + self.batch / self.batches) / self.settings.epochs

    @property
    def rate(self) -> float:
        """The present learning rate."""
        falling = (1 + math.cos(math.pi * min(1.0, self.share))) / 2
        return self.settings.rate * (LAST_RATE + (1 - LAST_RATE) * falling)

    def run_epoch(self, batches: Batches, look: Callable[[], object]) -> Facts | None:
        """Go on to the end of the epoch, or until it is stopped; what the epoch was like.

        `look` is called after every batch.
        """
        for number, batch in enumerate(batches(self.epoch)):
            if number < self.batch:
                continue  # before it was stopped
            began = time.perf_counter()
            self._learn(batch, number)
            self.seconds += time.perf_counter() - began
            self.batch += 1
            look()
            if self.stopped:
                return None
        boards, losses, right = self.sums.tolist()
        self.epoch, self.batch, self.sums = self.epoch + 1, 0, np.zeros(3)
        return {
            "epoch": self.epoch,
            "moves": int(boards),
            "loss": losses / boards,
            "accuracy": right / boards,
            "seconds": round(self.seconds, 3),
        }

    def _learn(self, batch: Batch, number: int) -> None:
        """Learn from a batch; loss and accuracy are those before."""
        draw = np.random.default_rng((self.settings.seed, self.epoch, number))
        boards, shares = self._turned(batch, draw)
        self.learner.model.train()
        found, wanted = self._ask(boards, shares)
        loss = self._loss(found, wanted)
        self.learner.step(loss, self.rate)
        self.sums += len(boards), loss.item() * len(boards), right_moves(found, wanted)

    def _ask(self, boards: Words, shares: Shares) -> tuple[Tensor, Tensor]:
        """What the network says about boards, and what it should say. Soft shares are of legal
        moves, so it need not learn which moves are: in play illegal ones are left out as well."""
        found = self.learner.model(inputs(boards, self.rules, self.learner.device))
        wanted = torch.from_numpy(shares).to(self.learner.device)
        return found.masked_fill(wanted == 0, -1e9) if self.settings.soft else found, wanted

    def _loss(self, found: Tensor, wanted: Tensor) -> Tensor:
        """How far what the network says is from what it should."""
        return soft_loss(found, wanted) if self.settings.soft else F.cross_entropy(found, wanted)

    def _turned(self, batch: Batch, draw: np.random.Generator) -> Batch:
        """The images of boards that are learnt from, and the shares of their moves."""
        if self.settings.images == "given":
            return batch
        which = draw.integers(0, self.rules.symmetries, len(batch.boards))
        if self.settings.images == "upright":
            _, which = upright(batch.boards, self.rules)
        return turned(batch, which, self.rules)

    def test(self, batches: Iterable[Batch]) -> Facts:
        """Loss and accuracy on other moves."""
        self.learner.model.eval()
        sums = np.zeros(3)
        draw = np.random.default_rng(self.settings.seed)
        with torch.inference_mode():
            for batch in batches:
                boards, shares = self._turned(batch, draw)
                found, wanted = self._ask(boards, shares)
                loss = self._loss(found, wanted).item()
                sums += len(boards), loss * len(boards), right_moves(found, wanted)
        return {"test_loss": sums[1] / sums[0], "test_accuracy": sums[2] / sums[0]}

    @property
    def facts(self) -> Facts:
        """All that is known about it."""
        return {
            **self.settings.facts,
            "epoch": self.epoch,
            "batch_in_epoch": self.batch,
            "batches": self.batches,
            "sums": self.sums.tolist(),
            "steps": self.learner.steps,
            "seconds": self.seconds,
            "data": self.data,
            "bytes": self.bytes,
        }

    def tensors(self) -> Tensors:
        """All that it takes to go on, beside the facts."""
        return self.learner.tensors()

    def check_data(self, facts: Facts) -> None:
        """A `ValueError` unless what was stored has learnt from the same data."""
        if facts["batches"] != self.batches:
            raise ValueError(
                f"it was begun with {facts['batches']:,} batches of data, not {self.batches:,}"
            )
        if facts.get("bytes", self.bytes) != self.bytes:
            raise ValueError("it was begun with other data: the files were of other sizes")

    def resume(self, facts: Facts, tensors: Tensors) -> None:
        """Go on from what was stored."""
        self.learner.load(tensors, facts["steps"])
        self.epoch, self.batch = facts["epoch"], facts["batch_in_epoch"]
        self.sums, self.seconds = np.array(facts["sums"]), facts["seconds"]


def right_moves(found: Tensor, wanted: Tensor) -> float:
    """On how many boards no move should be likelier than the network's choice."""
    best = found.argmax(1, keepdim=True)
    return float((wanted.gather(1, best) == wanted.amax(1, keepdim=True)).sum().item())


def turned(batch: Batch, which: Counts, rules: Rules) -> Batch:
    """One image of each board, of these symmetries, and the shares of its moves."""
    shares = np.empty_like(batch.shares)
    np.put_along_axis(shares, ON_IMAGE[which], batch.shares, axis=1)
    return Batch(images(batch.boards, which, rules), shares)


def run(
    training: Training,
    batches: Batches,
    folder: Path,
    *,
    tell: Callable[[Facts], object],
    say: Callable[[str], object],
    look: Callable[[], object],
    test: Callable[[], Iterable[Batch]] | None = None,
) -> list[Facts]:
    """Train to the last epoch, or until it is stopped; the records of all epochs.

    `tell` hears of every epoch, `look` is called after every batch. Whatever goes wrong, what was
    learnt until then is kept.
    """

    def write() -> None:
        write_tensors(folder / FILE, "supervised", training.facts, training.tensors())

    logs, saver = Logs(folder, training.epoch, say, "epoch"), Saver(write, say)

    def after_batch() -> None:
        look()
        if not training.stopped:
            saver.save_now_and_then()

    with saver.to_the_end(logs):
        while training.epoch < training.settings.epochs and not training.stopped:
            record = training.run_epoch(batches, after_batch)
            if record is not None:
                record.update(training.test(test()) if test else {})
                logs.add(record)
                tell(record)
    return logs.records


def check_stored(facts: Facts, shapes: Shapes) -> None:
    """A `ValueError` unless the weights in a file are those of the network that it tells of."""
    check_model(Settings.from_facts(facts).build, shapes)


def player_network(facts: Facts, tensors: Tensors, device: str) -> Callable[[Words], Any]:
    """A network as it is asked in play: boards to four numbers each."""
    settings = Settings.from_facts(facts)
    model = settings.build()
    load_model(model, tensors)
    return asked(model, settings.rules, pick_device(device))
