"""Monte Carlo tree search with decision nodes and chance nodes.

A decision node is a state; each of its legal moves is an *edge* with visits N, a prior P, the mean
value Q found below it, and the move's reward R (if rewards count). Below an edge is its afterstate,
a chance node: the spawn that follows is drawn with its true probability.

A simulation descends from the root. At every state it takes the move with the largest

    Q + P * sqrt(sum N) / (1 + N) * (c1 + log((sum N + c2 + 1) / c2))

until it reaches a state that is not in the tree yet. That one is valued, by the heuristic (of its
best move) or by random games, and added; its value and the rewards on the way go into every Q above
it. In the formula Q is scaled so that the least and the largest in the tree are 0 and 1, and an
edge without visits counts as 0, so that the same c1 fits every board and heuristic. The move with
the most visits is made.

A simulation has three steps, `descend`, the value of a leaf, and `back_up`, so that anything that
values states and gives priors to moves can replace the heuristic.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from lab2048.engine.array_types import FLOAT_ROWS, FLOATS, WORDS
from lab2048.engine.arrays import Counts, Floats, Ints, Words
from lab2048.engine.jit import U, fragment, kernel
from lab2048.engine.packed import CHOICES, GOLDEN, bounded, mix, nth_move, potential
from lab2048.engine.spawns import drawn_tile, spawn
from lab2048.players.heuristic_player import HeuristicPlayer
from lab2048.players.heuristics import DEFAULT, HEURISTICS, Evaluate, evaluate_of, evaluator
from lab2048.players.player import option
from lab2048.players.search_step import SPAWNING, Steps, spawning, steps
from lab2048.players.time_limit import check_time

SPAWNS = 32
"""Spawns are numbered below this: 2 times the cell, and 1 more for a 4."""
DEEPEST = 10_000
"""The most moves from the root to a leaf; a simulation that gets there is valued."""
KEPT = 20_000
"""The most simulations whose tree is kept for the next search: at most 14 MB per thread."""


class Tree(NamedTuple):
    """The tree of one search; node 0 is the root. Not to be shared by threads."""

    states: Words
    values: Floats
    """Of the state when it was added; NaN if it is a dead end."""
    afters: Words
    """Of each node and direction; 0 if that is illegal."""
    gains: Floats
    priors: Floats
    visits: Counts
    totals: Floats
    """Sums of the values found below, so that Q is totals / visits."""
    links: Ints
    """Of each edge and spawn: the node that it leads to, 0 if there is none yet."""
    path: Counts
    """The edges of the current simulation, 4 * node + direction each."""
    facts: Floats
    """The least and the largest Q, the number of nodes, and the number of edges of the path."""


LEAST, LARGEST, NODES, LENGTH = range(4)
# places in the settings of a search
SIMULATIONS, DEPTH, C1, C2, ROLLOUTS = range(5)


def new_tree(simulations: int) -> Tree:
    """An empty tree with room for a number of simulations."""
    nodes = simulations + 1
    return Tree(
        np.zeros(nodes, np.uint64),
        np.zeros(nodes),
        np.zeros((nodes, 4), np.uint64),
        np.zeros((nodes, 4)),
        np.zeros((nodes, 4)),
        np.zeros((nodes, 4), np.int64),
        np.zeros((nodes, 4)),
        np.zeros((4 * nodes, SPAWNS), np.int32),
        np.zeros(DEEPEST, np.int64),
        np.zeros(4),
    )


TREE = numba.typeof(new_tree(1))
RandomAfter = Callable[[U, U, Any, Words, Floats], U]
PlayOut = Callable[[U, U, Any, Any], float]
AddNode = Callable[[U, U, Any, Any, Any, Floats], None]
Search = Callable[[Words, Words, Any, Any, Floats, Any, Floats], None]
Descend = Callable[[U, Any, Any, Any, Floats], int]

_own = threading.local()


def tree_of_thread(simulations: int) -> Tree:
    """A tree that all players of this thread share, or a new one if it is too large to be kept."""
    if simulations > KEPT:
        return new_tree(simulations)
    tree: Tree | None = getattr(_own, "tree", None)
    if tree is None or len(tree.states) <= simulations:
        tree = _own.tree = new_tree(simulations)
    return tree


# -- values of leaves ----------------------------------------------------------------------------


def random_after_kernel(step: Steps) -> RandomAfter:
    """The kernel that makes a random move."""
    make_moves = step.make_moves

    @kernel(types.uint64(types.uint64, types.uint64, step.by, WORDS, FLOATS))
    def random_after(state: U, word: U, by: Any, moved: Words, gains: Floats) -> U:
        """The afterstate of a random legal move; 0 if none is legal."""
        make_moves(state, by, moved, gains)
        mask = 0
        for direction in range(4):
            mask |= (1 << direction) if moved[direction] else 0
        if mask == 0:
            return U(0)
        which, _ = bounded(word, CHOICES[mask])
        return U(moved[nth_move(U(mask), which)])

    return random_after


def play_out_kernel(step: Steps) -> PlayOut:
    """The kernel that plays a random game."""
    rows, cols, random_after = step.rows, step.cols, random_after_kernel(step)

    @kernel(types.float64(types.uint64, types.uint64, step.by, SPAWNING))
    def play_out(state: U, word: U, by: Any, spawns: Any) -> float:
        """The score of a random game from a state."""
        moved, gains = np.empty(4, np.uint64), np.empty(4, np.float64)
        before = potential(state, 16)
        fours = U(0)
        while True:
            word += GOLDEN
            after = random_after(state, mix(word), by, moved, gains)
            if after == U(0):
                return np.float64(potential(state, 16) - before) - 4 * np.float64(fours)
            word += GOLDEN
            state, rank = spawn(after, mix(word), spawns.threshold, rows, cols)
            fours += rank - U(1)

    return play_out


def add_node_kernel(step: Steps) -> AddNode:
    """The kernel that puts a state into a tree."""
    make_moves, worth, play_out = step.make_moves, step.worth, play_out_kernel(step)

    @kernel(types.void(types.uint64, types.uint64, TREE, step.by, SPAWNING, FLOATS))
    def add_node(state: U, word: U, tree: Any, by: Any, spawns: Any, settings: Floats) -> None:
        """Put a state into the tree, with its value and even priors."""
        node = np.int64(tree.facts[NODES])
        tree.facts[NODES] += 1
        tree.states[node] = state
        make_moves(state, by, tree.afters[node], tree.gains[node])
        legal = 0
        best = -np.inf
        for direction in range(4):
            tree.visits[node, direction] = 0
            tree.totals[node, direction] = 0.0
            tree.links[4 * node + direction] = 0
            if tree.afters[node, direction]:
                legal += 1
                best = max(
                    best, tree.gains[node, direction] + worth(tree.afters[node, direction], by)
                )
        for direction in range(4):
            tree.priors[node, direction] = 1.0 / legal if tree.afters[node, direction] else 0.0
        tree.values[node] = best if legal else np.nan
        rollouts = np.int64(settings[ROLLOUTS])
        if legal and rollouts:
            total = 0.0
            for number in range(rollouts):
                total += play_out(state, mix(word ^ U(number)), by, spawns)
            tree.values[node] = total / rollouts

    return add_node


# -- the tree ------------------------------------------------------------------------------------


@fragment
def best_edge(tree: Any, node: int, settings: Floats, unknown: float) -> int:
    """The direction with the largest upper bound; an edge without visits has the Q `unknown`."""
    total = 0
    for direction in range(4):
        total += tree.visits[node, direction]
    growth = np.log((total + settings[C2] + 1) / settings[C2]) if settings[C2] < np.inf else 0.0
    factor = np.sqrt(np.float64(total)) * (settings[C1] + growth)
    span = tree.facts[LARGEST] - tree.facts[LEAST]
    chosen = -1
    most = -np.inf
    for direction in range(4):
        if not tree.afters[node, direction]:
            continue
        visits = tree.visits[node, direction]
        bound = tree.priors[node, direction] * factor / (1 + visits)
        if span > 0:
            mean = tree.totals[node, direction] / visits if visits else unknown
            bound += (mean - tree.facts[LEAST]) / span
        if bound > most:
            most, chosen = bound, direction
    return chosen


@fragment
def spawn_number(cell: U, rank: U) -> Any:
    """The number of a spawn among `SPAWNS`."""
    return 2 * np.int64(cell) + np.int64(rank) - 1


def descend_kernel(step: Steps, add_node: AddNode) -> Descend:
    """The kernel that goes down a tree."""
    open_cells = step.open_cells

    @kernel(types.int64(types.uint64, TREE, step.by, SPAWNING, FLOATS))
    def descend(word: U, tree: Any, by: Any, spawns: Any, settings: Floats) -> int:
        """Descend from the root and return the leaf, which is added to the tree if it is new.

        The edges are written to the path. The leaf may be a dead end, or a node as deep as allowed.
        """
        node: Any = 0
        length = 0
        limit = np.int64(settings[DEPTH])
        while length < limit and not np.isnan(tree.values[node]):
            direction = best_edge(tree, node, settings, tree.facts[LEAST])
            edge = 4 * node + direction
            tree.path[length] = edge
            length += 1
            after = tree.afters[node, direction]
            word += GOLDEN
            cell, rank = drawn_tile(open_cells(after, spawns), mix(word), spawns.threshold)
            state, number = after | (rank << (U(4) * cell)), spawn_number(cell, rank)
            if tree.links[edge, number]:
                node = np.int64(tree.links[edge, number])
                continue
            node = np.int64(tree.facts[NODES])
            tree.links[edge, number] = node
            add_node(state, mix(word ^ GOLDEN), tree, by, spawns, settings)
            break
        tree.facts[LENGTH] = length
        return int(node)

    return descend


@fragment
def back_up(value: float, tree: Any) -> None:
    """Add a leaf's value, and the rewards below, to every edge of the path."""
    for place in range(np.int64(tree.facts[LENGTH]) - 1, -1, -1):
        node, direction = tree.path[place] >> 2, tree.path[place] & 3
        value += tree.gains[node, direction]
        tree.visits[node, direction] += 1
        tree.totals[node, direction] += value
        mean = tree.totals[node, direction] / tree.visits[node, direction]
        tree.facts[LEAST] = min(tree.facts[LEAST], mean)
        tree.facts[LARGEST] = max(tree.facts[LARGEST], mean)


@cache
def search_kernel(rows: int, cols: int, evaluate: Evaluate) -> Search:
    """The kernel that searches a board with a heuristic."""
    step = steps(rows, cols, evaluate)
    add_node = add_node_kernel(step)
    descend = descend_kernel(step, add_node)

    @kernel(types.void(WORDS, WORDS, step.by, SPAWNING, FLOATS, TREE, FLOAT_ROWS))
    def search(
        states: Words, words: Words, by: Any, spawns: Any, settings: Floats, tree: Any, out: Floats
    ) -> None:
        """Write the final visits of each direction of each state; NaN if it is illegal."""
        for i in range(len(states)):
            tree.facts[:] = 0.0
            tree.facts[LEAST], tree.facts[LARGEST] = np.inf, -np.inf
            add_node(states[i], words[i], tree, by, spawns, settings)
            if not np.isnan(tree.values[0]):
                word = words[i]
                for _ in range(np.int64(settings[SIMULATIONS])):
                    if spawns.stop[0]:
                        break
                    word = mix(word + GOLDEN)
                    leaf = descend(word, tree, by, spawns, settings)
                    value = tree.values[leaf]
                    back_up(by.dead if np.isnan(value) else value, tree)
            for direction in range(4):
                visits = np.float64(tree.visits[0, direction])
                out[i, direction] = visits if tree.afters[0, direction] else np.nan

    return search


# -- the player ----------------------------------------------------------------------------------

LEAVES = ("heuristic", "rollouts")


@dataclass(frozen=True, eq=False)
class TreeSearch(HeuristicPlayer):
    """Monte Carlo tree search."""

    simulations: int = option(200, "simulations per move", low=1, high=1_000_000)
    depth: int = option(0, "most own moves from the root to a leaf; 0: any", low=0, high=DEEPEST)
    leaf: str = option("heuristic", "value of a leaf: heuristic, or random games", choices=LEAVES)
    heuristic: str = option(DEFAULT, "what a leaf is worth", choices=HEURISTICS)
    rollouts: int = option(1, "random games from a leaf", low=1, high=10_000)
    c1: float = option(1.25, "how much to explore", low=0, high=1000)
    c2: float = option(19652.0, "visits after which exploring grows; inf: never", low=1)
    cells: int = option(0, "spawn on at most this many cells (Zhou); 0: on all", low=0, high=16)

    name = "mcts"
    about = "Monte Carlo tree search over moves and spawns"
    meaning = "visits of the move in the tree"

    @property
    def draws(self) -> bool:
        return True

    def values_many(self, boards: Words, words: Words) -> Floats:
        rules = self.rules
        random = self.leaf == "rollouts"
        heuristic = "zero" if random else self.heuristic
        by = evaluator(heuristic, rules)
        rollouts = self.rollouts if random else 0
        depth = self.depth or DEEPEST
        settings = np.array([self.simulations, depth, self.c1, self.c2, rollouts], np.float64)
        tree = tree_of_thread(self.simulations)
        out = np.empty((len(boards), 4))
        find = search_kernel(rules.rows, rules.cols, evaluate_of(heuristic))
        find(boards, words, by, spawning(rules, cells=self.cells), settings, tree, out)
        check_time()
        return out
