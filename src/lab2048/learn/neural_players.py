"""The players with neural networks: `supervised` by the vote of images, `zero` by tree search.

Torch is imported when the first of them is made.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lab2048.engine.arrays import Flags, Floats, Singles, Words
from lab2048.engine.jit import kernel
from lab2048.engine.packed import ON_IMAGE
from lab2048.learn.encoding import images, upright
from lab2048.learn.network_files import Facts, NetworkFile, check_board, network_file, read_facts
from lab2048.learn.registry import check_torch, find_learner
from lab2048.learn.zero_settings import BACKUPS
from lab2048.players.player import Player, option
from lab2048.players.ties import legal_moves

if TYPE_CHECKING:
    from lab2048.learn.batched_search import Searches


AS_TRAINED = "as in training if not given"
TOGETHER = 512
"""The number of games played side by side, if there are that many."""
ASKED = 4096
"""The largest batch for a network."""
NODES = 1 << 18
"""The largest number of nodes in all trees of a thread: each takes 2 KB on 4x4."""


class Loaded(NamedTuple):
    """A network ready for use, and the facts about it."""

    ask: Any
    """From boards to the network's outputs as arrays."""
    facts: Facts


@lru_cache(maxsize=8)
def _loaded(file: NetworkFile, kind: str, device: str) -> Loaded:
    """Load a network from a file; it is cached until the file changes."""
    learner = find_learner(kind).load()
    facts, tensors = learner.read_to_play(file.path)
    settings = learner.settings_class.from_facts(facts)
    return Loaded(learner.stored_network(settings, tensors, device), facts)


@dataclass(frozen=True, eq=False)
class Neural(Player):
    """A player with a neural network."""

    network: str = option("", "the name of a network that was trained", kind="name")
    device: str = option("auto", "where the network runs: cpu, cuda, or auto (a GPU if any)")

    given: Loaded | None = field(default=None, repr=False)
    """A network that takes the place of a file; `network` is not used then."""
    loaded: Loaded = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.given is not None:
            object.__setattr__(self, "loaded", self.given)
            return
        check_torch()
        file = network_file(self.network, self.name, self.rules)
        check_board(self.network, read_facts(file.path), self.rules)
        object.__setattr__(self, "loaded", _loaded(file, self.name, self.device))

    @property
    def identity(self) -> str:
        return f"{self.spec} {self.loaded.facts.get('checksums')}"

    @property
    def together(self) -> int:
        return TOGETHER

    def ask(self, boards: Words) -> Any:
        """Return the network's outputs; outside the main thread torch uses one core per thread."""
        import torch

        if threading.current_thread() is not threading.main_thread():
            torch.set_num_threads(1)
        parts = [self.loaded.ask(part) for part in _parts(boards, ASKED) or [boards]]
        if len(parts) == 1:
            return parts[0]
        if isinstance(parts[0], np.ndarray):
            return np.concatenate(parts)
        return tuple(np.concatenate(each) for each in zip(*parts, strict=True))


@dataclass(frozen=True, eq=False)
class BestOutput(Neural):
    """The legal move with the largest of the network's four outputs.

    Neural learners without a player of their own play as this (`learnt_player`).
    """

    name = "best-output"
    about = "the move with the largest output of a network"
    meaning = "the network's outputs"

    def values_many(self, boards: Words, words: Words) -> Floats:
        outputs = self.ask(boards).astype(np.float64)
        return np.where(legal_moves(boards, self.rules), outputs, np.nan)


# -- votes ---------------------------------------------------------------------------------------


@kernel("void(float32[:, :, ::1], boolean[:, ::1], float64[:, ::1])")
def count_votes(outputs: Singles, legal: Flags, out: Floats) -> None:
    """Write the votes of images for each move; `outputs` are by board, image and direction.

    Each image votes for the legal move with its largest output. Tenths rank the moves by the sums
    of their outputs: 3 for the largest of four, 0 for the least.
    """
    sums = np.empty(4)
    for i in range(len(outputs)):
        sums[:] = 0.0
        out[i] = 0.0
        for image in range(outputs.shape[1]):
            chosen = -1
            for direction in range(4):
                output = outputs[i, image, ON_IMAGE[image, direction]]
                sums[direction] += output
                if legal[i, direction] and (
                    chosen < 0 or output > outputs[i, image, ON_IMAGE[image, chosen]]
                ):
                    chosen = direction
            if chosen >= 0:
                out[i, chosen] += 1.0
        for direction in range(4):
            for other in range(4):
                out[i, direction] += 0.1 if sums[direction] > sums[other] else 0.0
        for direction in range(4):
            if not legal[i, direction]:
                out[i, direction] = np.nan


@dataclass(frozen=True, eq=False)
class Supervised(Neural):
    """The move that most images of the board vote for."""

    vote: str = option("on", "all images of a board vote; off: only itself", choices=("on", "off"))

    name = "supervised"
    about = "the vote of a network that has learnt the moves of a strong player"
    meaning = "votes of the board's images; tenths: the order of the sums of outputs"

    @property
    def one_image(self) -> bool:
        """Whether the network was trained on upright boards only: then it sees one image."""
        return bool(self.loaded.facts.get("images") == "upright")

    @property
    def symmetric(self) -> bool:
        return self.vote == "on" or self.one_image

    def values_many(self, boards: Words, words: Words) -> Floats:
        if self.one_image:
            turned, which = upright(boards, self.rules)
            outputs = np.take_along_axis(self.ask(turned), ON_IMAGE[which], axis=1)[:, None]
        else:
            count = self.rules.symmetries if self.vote == "on" else 1
            repeated = np.repeat(boards, count)
            which = np.tile(np.arange(count), len(boards))
            outputs = self.ask(images(repeated, which, self.rules)).reshape(-1, count, 4)
        out = np.empty((len(boards), 4))
        count_votes(np.ascontiguousarray(outputs), legal_moves(boards, self.rules), out)
        return out


# -- search --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Zero(Neural):
    """The move with the most visits of a tree search with the network."""

    simulations: int = option(
        100, "tree descents per move; 0: the network's policy, no search", low=0, high=1_000_000
    )
    c1: float | None = option(None, f"how much to explore; {AS_TRAINED}", low=0, high=1000)
    c2: float | None = option(
        None, f"visits after which exploring grows, inf: never; {AS_TRAINED}", low=1
    )
    backup: str | None = option(
        None, f"a state's value: its best move's, or the mean; {AS_TRAINED}", choices=BACKUPS
    )

    name = "zero"
    about = "tree search with a network that has taught itself by playing"
    meaning = "visits in the tree (tenths: the order of values), or chances without search"
    _own: threading.local = field(default_factory=threading.local, init=False, repr=False)

    @property
    def together(self) -> int:
        return max(1, min(TOGETHER, NODES // (self.simulations + 1)))

    @property
    def draws(self) -> bool:
        return self.simulations > 0

    @property
    def symmetric(self) -> bool:
        return self.simulations == 0

    @property
    def search_settings(self) -> dict[str, Any]:
        """The settings of the search: those of training unless options override them."""
        trained = self.loaded.facts
        c2 = math.inf if trained["c2"] is None else trained["c2"]  # JSON has no infinity
        return {
            "c1": trained["c1"] if self.c1 is None else self.c1,
            "c2": c2 if self.c2 is None else self.c2,
            "backup": self.backup or trained["backup"],
        }

    @property
    def identity(self) -> str:
        searched = f" {self.search_settings}" if self.simulations else ""
        return f"{super().identity}{searched}"

    def values_many(self, boards: Words, words: Words) -> Floats:
        if self.simulations == 0:
            return self.policy(boards)
        parts = [
            self._searches(len(part)).search(part, own, self.ask).ranking
            for part, own in zip(
                _parts(boards, self.together), _parts(words, self.together), strict=True
            )
        ]
        visits = np.concatenate([np.empty((0, 4)), *parts])
        visits[~legal_moves(boards, self.rules)] = np.nan
        return visits

    def policy(self, boards: Words) -> Floats:
        """Return the network's probability of each legal move; NaN for illegal ones."""
        turned, which = upright(boards, self.rules)
        logits = np.take_along_axis(self.ask(turned)[0], ON_IMAGE[which], axis=1).astype(float)
        logits[~legal_moves(boards, self.rules)] = -np.inf
        with np.errstate(invalid="ignore"):
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        out: Floats = shares / shares.sum(axis=1, keepdims=True)
        out[np.isneginf(logits)] = np.nan
        return out

    def _searches(self, boards: int) -> Searches:
        """Return the trees of this thread, at least as many as boards."""
        from lab2048.learn.batched_search import Searches

        found: Searches | None = getattr(self._own, "searches", None)
        if found is None or found.trees < boards:
            scale = self.loaded.facts["scale"]
            found = Searches(
                self.rules, boards, self.simulations, scale=scale, **self.search_settings
            )
            self._own.searches = found
        return found


def _parts(array: Words, size: int) -> list[Words]:
    """Split an array into parts of a size; the last may be smaller."""
    return [array[begin : begin + size] for begin in range(0, len(array), size)]
