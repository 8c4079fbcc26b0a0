"""Many trees that grow side by side, each the search of one game, with a network to value leaves.

The tree is that of `mcts`, with its formula; but a move without visits counts as much as its
state, so that a good one is not missed. What a network adds:

- A move that was never made from a node leads to its afterstate: a *chance leaf*, which gets the
  network's value of an afterstate. The next time, a spawn is drawn behind it, which leads to a
  *state leaf*: that one gets the value of a state, and its moves the priors of the policy.
- A dead end is worth nothing, and needs no network.

So a simulation ends in at most one board that the network has to see. `grow` takes all trees to
their next leaf, the network is asked about all of them in one batch, and `settle` gives the answers
to the trees.

There are two ways to value what is above a leaf. In the papers' one (`mean`) a move is worth the
mean of all simulations that went through it: rewards on the way, and the value of the leaf. That
needs many simulations: the luck of a spawn is often larger than the difference between moves, and
moves that were only tried count as much as good ones. The other way (`best`) is that of expectimax:

    Q(s, a) = r(s, a) + C(x)                        x is s after the move a
    C(x)    = v(x) + (W - G) + P * (G - v(x))       v is what the network says
    V(s)    = max Q(s, a)                           v(s) for moves that were not made yet

P is how likely the spawns are that were looked at, W the mean of V over these, G that of v: so what
a spawn changes in the eyes of the network is taken out as long as few of them are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lab2048.engine.arrays import Counts, Floats, Singles, Words
from lab2048.game import Rules
from lab2048.learn.batched_search_kernels import BEST, SCALE, growing, new_forest
from lab2048.learn.encoding import upright
from lab2048.players.heuristics import evaluator
from lab2048.players.search_step import spawning
from lab2048.players.time_limit import check_time, stop_flag

Network = Callable[[Words], tuple[Singles, Singles]]
"""Boards to the logits of their moves, and what they are worth as states and as afterstates."""


class Found(NamedTuple):
    """What searches have found, a row each."""

    visits: Counts
    """Of the four moves; 0 if it is illegal."""
    means: Floats
    """The mean Q of each; NaN without visits."""
    values: Floats
    """Of the states: by the best moves, or the mean over all simulations."""

    @property
    def ranking(self) -> Floats:
        """Visits, and among equal ones by means: tenths tell their order, 3 of the largest."""
        means = np.nan_to_num(self.means, nan=-np.inf)
        order: Floats = (means[:, :, None] > means[:, None, :]).sum(axis=2)
        return self.visits + 0.1 * order


class Searches:
    """Searches of many states at once. Not to be shared by threads."""

    def __init__(
        self,
        rules: Rules,
        trees: int,
        simulations: int,
        *,
        c1: float = 1.25,
        c2: float = 19652.0,
        scale: float = 1.0,
        backup: str = "best",
    ) -> None:
        self.rules, self.trees, self.simulations = rules, trees, simulations
        self._kernels = growing(rules.rows, rules.cols)
        self._by, self._spawns = evaluator("zero", rules), spawning(rules)
        self._settings = np.array([simulations, 0, c1, c2, scale, backup == "best"], np.float64)
        self.forest = new_forest(trees, simulations, rules.cells)
        self._leaves, self._owners = np.empty(trees, np.uint64), np.empty(trees, np.int64)
        self.asked = self.batches = 0
        """How many boards the network was asked about, and how often."""

    @property
    def scale(self) -> float:
        """How many points the network's value of 1 is."""
        return float(self._settings[SCALE])

    @scale.setter
    def scale(self, scale: float) -> None:
        self._settings[SCALE] = scale

    def search(
        self,
        states: Words,
        words: Words,
        network: Network,
        noise: Floats | None = None,
        share: float = 0.0,
    ) -> Found:
        """Search every state; at most as many as there are trees.

        A share of the priors at the roots is noise.
        """
        size = len(states)
        waiting = self._kernels.plant(
            states, words, self.forest, self._by, self._leaves, self._owners
        )
        self._ask(waiting, network)
        if noise is not None:
            priors = self.forest.trees.priors[:size, 0]
            priors[:] = blend(priors, noise, share)
        stop_flag()  # the time counts from here
        for _ in range(self.simulations):
            check_time()
            waiting = self._kernels.grow(
                size,
                self.forest,
                self._by,
                self._spawns,
                self._settings,
                self._leaves,
                self._owners,
            )
            if not waiting:
                break
            self._ask(waiting, network)
        trees = self.forest.trees
        visits, totals = trees.visits[:size, 0].copy(), trees.totals[:size, 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            values = totals.sum(axis=1) / visits.sum(axis=1)
            if self._settings[BEST]:
                values = trees.worths[:size, 0].copy()
            return Found(visits, totals / visits, values)

    def _ask(self, waiting: int, network: Network) -> None:
        """Let the network value the leaves that wait."""
        if not waiting:
            return
        boards, which = upright(self._leaves[:waiting], self.rules)
        logits, worths = network(boards)
        self._kernels.settle(
            self._owners[:waiting], which, logits, worths, self._settings, self.forest
        )
        self.asked += waiting
        self.batches += 1


def blend(priors: Floats, noise: Floats, share: float) -> Floats:
    """Priors of which a share is noise: random numbers, in proportion, for the legal moves."""
    drawn = np.where(priors > 0, noise, 0.0)
    total = drawn.sum(axis=1, keepdims=True)
    return np.where(
        total > 0, (1 - share) * priors + share * drawn / np.maximum(total, 1e-300), priors
    )
