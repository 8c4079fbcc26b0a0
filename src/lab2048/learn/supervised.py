"""Networks that learn from recorded moves which move a strong player makes.

The input is a board as binary planes, one per rank; the output is four logits, and the move with
the largest is the network's choice. Training makes the recorded move likelier: the loss is the
cross-entropy between the softmax of the logits and the move. The networks are those of the
supervised study (`supervised_networks`).

Labels with the value of each move (`soft`) teach more than which move is right: the loss is then
the cross-entropy over all legal moves plus half the mean loss of the network's moves.

What the study does not state is our choice: Adam, a learning rate of 0.001 that falls to a
hundredth of that along half a cosine, and the widths of `mlp4`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from lab2048.data.batches import Batch
from lab2048.engine.arrays import Counts, Singles, Words
from lab2048.engine.packed import ON_IMAGE
from lab2048.game import Rules
from lab2048.learn.checkpoint import Record
from lab2048.learn.encoding import images, upright
from lab2048.learn.gradient import inputs, soft_loss
from lab2048.learn.learner import Goal
from lab2048.learn.network_files import Tensors
from lab2048.learn.neural import NeuralLearner
from lab2048.learn.settings import Facts, falling_rate
from lab2048.learn.supervised_settings import SupervisedSettings

if TYPE_CHECKING:
    from lab2048.players.player import Player

Batches = Callable[[int], Iterator[Batch]]
"""The batches of an epoch, which depend on its number alone."""


class Examples(NamedTuple):
    """Training or test data."""

    moves: int
    """The number of moves per epoch."""
    epoch: Batches


class SupervisedLearner(NeuralLearner[SupervisedSettings]):
    """A network in training on recorded moves."""

    settings_class = SupervisedSettings
    kind = "supervised"
    needed: ClassVar = {
        "epoch": int, "batch_in_epoch": int, "batches": int, "sums": list, "steps": int,
        "data": list,
    }  # fmt: skip

    def __init__(
        self,
        settings: SupervisedSettings,
        threads: int | None = None,
        *,
        examples: Examples | None = None,
    ) -> None:
        super().__init__(settings, threads)
        self.rules = settings.rules
        self.examples = examples
        """If not given, `prepare` reads them from the files in the settings."""
        self.tests: Examples | None = None
        self.bytes: list[int] = []
        """The sizes of the data files, to notice other data when resuming."""
        self.batch = 0
        """The number of batches done in the current epoch."""
        self.sums = np.zeros(3)
        """Sums over the current epoch: boards, their losses, and correct moves."""
        self._ahead: Iterator[Batch] | None = None
        self._next: Batch | None = None
        self._record: Record | None = None

    @classmethod
    def facts_to_pack(cls, facts: Facts) -> Facts:
        """Return the metadata with the names of the data files, without their folders."""
        return {**facts, "data": [Path(each).name for each in facts["data"]]}

    @property
    def epoch(self) -> int:
        """The number of finished epochs."""
        return self.done

    # -- data ------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Open and check the data."""
        settings = self.settings
        if self.examples is None:
            if not settings.data:
                raise ValueError(
                    "it needs moves to learn from: `data=FILE`; lab2048 data make writes some"
                )
            self.examples = self._read([Path(each) for each in settings.data])
        self.bytes = [Path(each).stat().st_size for each in settings.data]
        if settings.test:
            self.tests = self._read([Path(settings.test)])

    def _read(self, paths: list[Path]) -> Examples:
        """Return the examples in files, which are checked and counted in a first pass."""
        from lab2048.data.labels import drawn, joined, read_labels
        from lab2048.data.moves import is_labels, open_moves, shuffled, summarise

        size, seed, soft = self.settings.batch, self.settings.seed, self.settings.soft
        kinds = {is_labels(path) for path in paths}
        if kinds == {True}:
            labels = joined([read_labels(path, self.rules) for path in paths])
            return Examples(
                len(labels.boards), lambda epoch: drawn(labels, size, seed, epoch, soft or None)
            )
        if True in kinds or soft:
            raise ValueError(
                "labels cannot be learnt from together with moves; `soft` is for labels"
            )
        sources = [open_moves(path, self.rules) for path in paths]
        moves = 0
        for source in sources:
            found = summarise(source, partial(self._read_on, source.path.name, len(source)))
            moves += found.moves
            self.say(
                f"{source.path}: {found.moves:,} moves; cells are of the tile {found.cell} the move"
            )
        if moves == 0:
            raise ValueError("there are no moves in the data")
        return Examples(moves, lambda epoch: shuffled(sources, size, seed, epoch))

    def _read_on(self, name: str, whole: int, done: int) -> None:
        """Report how much of a file has been read."""
        self.report(done / max(1, whole), f"reading {name}")

    @property
    def batches(self) -> int:
        """The number of batches per epoch."""
        return math.ceil(self.moves / self.settings.batch)

    @property
    def moves(self) -> int:
        """The number of moves per epoch; 1 before the data is read."""
        return 1 if self.examples is None else self.examples.moves

    def counts(self) -> dict[str, float]:
        """Return epochs (with a fraction), moves learnt from, and steps."""
        moves = self.done * self.moves + self.batch * self.settings.batch
        return {"epoch": self.reached, "moves": moves, "steps": self.net.steps}

    # -- steps -----------------------------------------------------------------------------------

    @property
    def reached(self) -> float:
        """The number of epochs, including the fraction of the current one that is done."""
        return self.done + self.batch / self.batches

    def rate(self, goal: Goal) -> float:
        """Return the current learning rate, which falls with the epochs or, if these do not limit
        the training, with what does."""
        share = goal.share(self) if goal.count is None else self.reached / self.settings.epochs
        return self.settings.rate * falling_rate(share)

    def step(self, goal: Goal) -> None:
        """Train on one batch."""
        if self._ahead is None:
            assert self.examples is not None
            self._ahead = self.examples.epoch(self.done)
            for _ in range(self.batch):
                next(self._ahead, None)  # done before it was stopped
            self._next = next(self._ahead, None)
        if self._next is not None:
            began = time.perf_counter()
            self._learn(self._next, self.batch, self.rate(goal))
            self.seconds += time.perf_counter() - began
            self.batch += 1
            self._next = next(self._ahead, None)
        if self._next is None:
            self._end_epoch()

    def _end_epoch(self) -> None:
        """Make the record of the epoch, and begin the next one."""
        boards, losses, right = self.sums.tolist()
        self._record = {
            "moves": int(boards), "loss": losses / boards, "accuracy": right / boards
        }  # fmt: skip
        self.done, self.batch, self.sums, self._ahead = self.done + 1, 0, np.zeros(3), None

    def due(self, goal: Goal) -> bool:
        """Return whether an epoch has just ended."""
        return self._record is not None

    def record(self) -> Record:
        """Return loss and accuracy of the epoch, and on the test data if there is any."""
        assert self._record is not None
        found, self._record = self._record, None
        return found if self.tests is None else {**found, **self.test(self.tests.epoch(0))}

    def _learn(self, batch: Batch, number: int, rate: float) -> None:
        """Train on one batch; loss and accuracy are measured before the step."""
        draw = np.random.default_rng((self.settings.seed, self.epoch, number))
        boards, shares = self._turned(batch, draw)
        self.net.model.train()
        found, wanted = self._ask(boards, shares)
        loss = self._loss(found, wanted)
        self.net.step(loss, rate)
        self.sums += len(boards), loss.item() * len(boards), right_moves(found, wanted)

    def _ask(self, boards: Words, shares: Singles) -> tuple[Tensor, Tensor]:
        """The network's logits of boards, and the target shares. With `soft` these cover the legal
        moves; the others are masked, as in play, so the network need not learn what is legal."""
        found = self.net.model(inputs(boards, self.rules, self.net.device))
        wanted = torch.from_numpy(shares).to(self.net.device)
        return found.masked_fill(wanted == 0, -1e9) if self.settings.soft else found, wanted

    def _loss(self, found: Tensor, wanted: Tensor) -> Tensor:
        """The loss of logits against target shares."""
        return soft_loss(found, wanted) if self.settings.soft else F.cross_entropy(found, wanted)

    def _turned(self, batch: Batch, draw: np.random.Generator) -> Batch:
        """The images of boards to train on, and the shares of their moves."""
        if self.settings.images == "given":
            return batch
        which = draw.integers(0, self.rules.symmetries, len(batch.boards))
        if self.settings.images == "upright":
            _, which = upright(batch.boards, self.rules)
        return turned(batch, which, self.rules)

    def test(self, batches: Iterable[Batch]) -> Facts:
        """Return loss and accuracy on test data."""
        self.net.model.eval()
        sums = np.zeros(3)
        draw = np.random.default_rng(self.settings.seed)
        with torch.inference_mode():
            for batch in batches:
                boards, shares = self._turned(batch, draw)
                found, wanted = self._ask(boards, shares)
                loss = self._loss(found, wanted).item()
                sums += len(boards), loss * len(boards), right_moves(found, wanted)
        return {"test_loss": sums[1] / sums[0], "test_accuracy": sums[2] / sums[0]}

    # -- stored and played -----------------------------------------------------------------------

    @property
    def facts(self) -> Facts:
        """Metadata of the training run, JSON-serialisable."""
        return {
            **self.settings.facts,
            "epoch": self.done,
            "batch_in_epoch": self.batch,
            "batches": self.batches,
            "sums": self.sums.tolist(),
            "steps": self.net.steps,
            "seconds": self.seconds,
            "data": [str(Path(each).absolute()) for each in self.settings.data],
            "bytes": self.bytes,
        }

    def check_same(self, facts: Facts) -> None:
        """Raise a `ValueError` unless the stored run was trained on data of the same size."""
        if facts["batches"] != self.batches:
            raise ValueError(
                f"it was begun with {facts['batches']:,} batches of data, not {self.batches:,}"
            )
        if facts.get("bytes", self.bytes) != self.bytes:
            raise ValueError("it was begun with other data: the sizes of the files differ")

    def resume(self, facts: Facts, tensors: Tensors) -> None:
        """Resume from stored metadata and tensors."""
        self.net.load(tensors, facts["steps"])
        self.done, self.batch = facts["epoch"], facts["batch_in_epoch"]
        self.sums, self.seconds = np.array(facts["sums"]), facts["seconds"]

    @classmethod
    def asking(cls, ask: Callable[[Words], Any], facts: Facts) -> Player:
        """Return the player in which the images of a board vote."""
        from lab2048.learn.neural_players import Loaded, Supervised

        return Supervised(Rules.parse(facts["board"], facts["p4"]), given=Loaded(ask, facts))

    # -- told ------------------------------------------------------------------------------------

    def introduction(self) -> str:
        """Return a line on what is about to be trained, and on how much data."""
        settings = self.settings
        return (
            f"{settings.rules.name}, {settings.network} with {self.size:,} weights; "
            f"{self.moves:,} moves, {settings.epochs} epochs, seed {settings.seed}, "
            f"on {self.net.device}"
        )

    @property
    def where(self) -> str:
        """The current epoch, in words."""
        return f"in epoch {self.done + 1}"

    @classmethod
    def line(cls, record: Record) -> str:
        """Return the record of an epoch as one line."""
        text = (
            f"epoch {record['epoch']:>3}  loss {record['loss']:.4f}  "
            f"accuracy {100 * record['accuracy']:.2f}%"
        )
        if "test_loss" in record:
            text += (
                f"  test loss {record['test_loss']:.4f}  "
                f"accuracy {100 * record['test_accuracy']:.2f}%"
            )
        return text


def right_moves(found: Tensor, wanted: Tensor) -> float:
    """The number of boards on which no move has a larger target share than the network's choice."""
    best = found.argmax(1, keepdim=True)
    return float((wanted.gather(1, best) == wanted.amax(1, keepdim=True)).sum().item())


def turned(batch: Batch, which: Counts, rules: Rules) -> Batch:
    """The image of each board under the given symmetry, with the shares of its moves."""
    shares = np.empty_like(batch.shares)
    np.put_along_axis(shares, ON_IMAGE[which], batch.shares, axis=1)
    return Batch(images(batch.boards, which, rules), shares)
