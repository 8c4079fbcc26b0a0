"""Tree searches of many games side by side, whose leaves a network values in batches.

Trees and the selection formula are those of `mcts`, except that an unvisited move counts as much as
the network's value of its state, so that good moves are not missed. What a network adds:

- The first visit of a move ends at its afterstate, a *chance leaf*, which gets the network's value
  of an afterstate. The next visit draws a spawn, which leads to a *state leaf*: it gets the value
  of a state, and its moves get the priors of the policy.
- A dead end has value 0, and needs no network.

So a simulation needs the network for at most one board. `grow` takes all trees to their next leaf,
the network evaluates all leaves in one batch, and `settle` returns the results to the trees.

There are two ways to back values up. In that of the papers (`mean`) the value of a move is the mean
over all simulations that went through it: the rewards below, plus the value of the leaf. That needs
many simulations: the luck of a spawn is often larger than the difference between moves, and
exploratory moves count as much as good ones. The other way (`best`) is that of expectimax:

    Q(s, a) = r(s, a) + C(x)                        x is s after the move a
    C(x)    = v(x) + (W - G) + P * (G - v(x))       v is the network's value
    V(s)    = max Q(s, a)                           unvisited moves count v(s)

P is the total probability of the spawns seen so far, W the mean of V over them, and G that of v: so
the luck of the spawns, as the network sees it, is left out while few of them have been seen.
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
"""From boards to the logits of their moves, and to their values as states and as afterstates."""


class Found(NamedTuple):
    """Results of searches, one row each."""

    visits: Counts
    """Of the four moves; 0 if illegal."""
    means: Floats
    """Q of each move; NaN without visits."""
    values: Floats
    """Of the states: V of the root (`best`), or the mean over all simulations (`mean`)."""

    @property
    def ranking(self) -> Floats:
        """Visits, with ties broken by Q: the tenths rank the moves by Q, 3 for the largest."""
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
        """Numbers of boards that the network has evaluated, and of batches."""

    @property
    def scale(self) -> float:
        """The points that a network value of 1 stands for."""
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
        """Search every state, with a random word each; there are at most `trees` states.

        With `noise`, it makes up `share` of the priors at the roots.
        """
        size = len(states)
        waiting = self._kernels.plant(
            states, words, self.forest, self._by, self._leaves, self._owners
        )
        self._ask(waiting, network)
        if noise is not None:
            priors = self.forest.trees.priors[:size, 0]
            priors[:] = blend(priors, noise, share)
        stop_flag()  # a time limit counts from here
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
        """Have the network value the waiting leaves, and pass the results to the trees."""
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
    """Return priors mixed with noise, which is first normalised over the legal moves."""
    drawn = np.where(priors > 0, noise, 0.0)
    total = drawn.sum(axis=1, keepdims=True)
    return np.where(
        total > 0, (1 - share) * priors + share * drawn / np.maximum(total, 1e-300), priors
    )
