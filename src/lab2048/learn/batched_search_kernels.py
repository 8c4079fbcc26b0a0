"""The kernels of `batched_search`: trees that grow side by side, with leaves for a network."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from lab2048.engine.array_types import COUNTS, FLOATS, SINGLE_ROWS, WORDS
from lab2048.engine.arrays import Counts, Floats, Ints, Singles, Words
from lab2048.engine.jit import U, fragment, kernel
from lab2048.engine.packed import GOLDEN, ON_IMAGE, count, mix
from lab2048.engine.spawns import drawn_tile
from lab2048.players.mcts import (
    LARGEST,
    LEAST,
    LENGTH,
    NODES,
    back_up,
    best_edge,
    spawn_number,
)
from lab2048.players.search_step import SPAWNING, Steps, steps

ROOT, STATE, AFTER = range(3)
"""Kinds of leaves."""
SIMULATIONS, _, C1, C2, SCALE, BEST = range(6)
"""Indices into the settings of a search; the first four are those of `players.mcts`."""
V, P, W, G = range(4)
"""Indices into `Tree.below`: v(x), P, P * W and P * G (`batched_search` defines them)."""


class Tree(NamedTuple):
    """A tree as `mcts.Tree`, with what the `best` backup adds to it."""

    states: Words
    values: Floats
    """The network's value of each node; NaN for a dead end."""
    afters: Words
    gains: Floats
    priors: Floats
    visits: Counts
    totals: Floats
    links: Ints
    path: Counts
    facts: Floats
    worths: Floats
    """V of each node."""
    chances: Floats
    """Of each node: the probability of the spawn that leads to it."""
    below: Floats
    """Of each node and direction: the four numbers V, P, W, G."""


class Forest(NamedTuple):
    """Trees, one per row of each array, and the progress of each."""

    trees: Tree
    words: Words
    """The random word from which that of the next simulation is made."""
    done: Counts
    """The number of finished simulations."""
    kinds: Counts
    """The kind of the leaf that waits for its value."""
    leaves: Counts
    """The node of that leaf; of a chance leaf, the node above it."""


def new_forest(trees: int, simulations: int, cells: int) -> Forest:
    """Allocate `trees` trees with room for `simulations` simulations each."""
    nodes = simulations + 1
    grid, edges = (trees, nodes), (trees, nodes, 4)
    found = Tree(
        np.zeros(grid, np.uint64),
        np.zeros(grid),
        np.zeros(edges, np.uint64),
        np.zeros(edges),
        np.zeros(edges),
        np.zeros(edges, np.int64),
        np.zeros(edges),
        np.zeros((trees, 4 * nodes, 2 * cells), np.int32),
        np.zeros(grid, np.int64),
        np.zeros((trees, 4)),
        np.zeros(grid),
        np.zeros(grid),
        np.zeros((*edges, 4)),
    )
    numbers = (np.zeros(trees, np.int64) for _ in range(3))
    return Forest(found, np.zeros(trees, np.uint64), *numbers)


FOREST = numba.typeof(new_forest(1, 1, 4))
TREE = numba.typeof(Tree(*(array[0] for array in new_forest(1, 1, 4).trees)))
PutNode = Callable[[U, float, Any, Any], int]
Descend = Callable[[U, Any, Any, Any, Floats], tuple[int, int]]
Plant = Callable[[Words, Words, Any, Any, Words, Counts], int]
Grow = Callable[[int, Any, Any, Any, Floats, Words, Counts], int]
Settle = Callable[[Counts, Counts, Singles, Singles, Floats, Any], None]


# -- a tree --------------------------------------------------------------------------------------


@fragment
def tree_of(trees: Any, i: int) -> Any:
    """Tree number `i`."""
    return Tree(
        trees.states[i],
        trees.values[i],
        trees.afters[i],
        trees.gains[i],
        trees.priors[i],
        trees.visits[i],
        trees.totals[i],
        trees.links[i],
        trees.path[i],
        trees.facts[i],
        trees.worths[i],
        trees.chances[i],
        trees.below[i],
    )


def put_node_kernel(board: Steps) -> PutNode:
    """The kernel that adds a state to a tree."""
    make_moves = board.make_moves

    @kernel(types.int64(types.uint64, types.float64, TREE, board.by))
    def put_node(state: U, chance: float, tree: Any, by: Any) -> int:
        """Add a state to a tree: with value NaN if it is a dead end, else 0 until it is known."""
        node = np.int64(tree.facts[NODES])
        tree.facts[NODES] += 1
        tree.states[node] = state
        make_moves(state, by, tree.afters[node], tree.gains[node])
        tree.values[node] = np.nan
        tree.worths[node] = 0.0
        tree.chances[node] = chance
        tree.below[node] = 0.0
        for direction in range(4):
            tree.visits[node, direction] = 0
            tree.totals[node, direction] = 0.0
            tree.priors[node, direction] = 0.0
            tree.links[4 * node + direction] = 0
            if tree.afters[node, direction]:
                tree.values[node] = 0.0
        return int(node)

    return put_node


def descend_kernel(board: Steps, put_node: PutNode) -> Descend:
    """The kernel that descends a tree."""
    open_cells = board.open_cells

    @kernel(types.UniTuple(types.int64, 2)(types.uint64, TREE, board.by, SPAWNING, FLOATS))
    def descend(word: U, tree: Any, by: Any, spawns: Any, settings: Floats) -> tuple[int, int]:
        """Descend from the root to a leaf. Return the kind of the leaf, and its node.

        The edges are written to the path. For a chance leaf, the node is the one above it.
        """
        node: Any = 0
        length = 0
        while not np.isnan(tree.values[node]):
            direction = best_edge(tree, node, settings, tree.values[node])
            edge = 4 * node + direction
            tree.path[length] = edge
            length += 1
            tree.facts[LENGTH] = length
            after = tree.afters[node, direction]
            if tree.visits[node, direction] == 0:
                return AFTER, node
            word += GOLDEN
            cells = open_cells(after, spawns)
            cell, rank = drawn_tile(cells, mix(word), spawns.threshold)
            state, number = after | (rank << (U(4) * cell)), spawn_number(cell, rank)
            if tree.links[edge, number] == 0:
                tree.links[edge, number] = np.int64(tree.facts[NODES])
                chance = (spawns.four if number & 1 else spawns.two) / np.float64(count(cells))
                child = put_node(state, chance, tree, by)
                tree.below[node, direction, P] += chance
                return STATE, child
            node = np.int64(tree.links[edge, number])
        return STATE, node

    return descend


@fragment
def set_priors(tree: Any, node: int, logits: Singles, symmetry: int) -> None:
    """Set the priors of a node to the softmax of the policy over its legal moves."""
    most = -np.inf
    for direction in range(4):
        if tree.afters[node, direction]:
            most = max(most, np.float64(logits[ON_IMAGE[symmetry, direction]]))
    total = 0.0
    for direction in range(4):
        if tree.afters[node, direction]:
            prior = np.exp(np.float64(logits[ON_IMAGE[symmetry, direction]]) - most)
            tree.priors[node, direction] = prior
            total += prior
    for direction in range(4):
        tree.priors[node, direction] /= total


# -- the backup of values ------------------------------------------------------------------------


@fragment
def value_of(tree: Any, node: int) -> float:
    """V(s): the largest Q of a move, where unvisited moves count the network's value."""
    best = -np.inf
    for direction in range(4):
        visits = tree.visits[node, direction]
        if visits:
            best = max(best, tree.totals[node, direction] / visits)
        elif tree.afters[node, direction]:
            best = max(best, tree.values[node])
    return float(best)


@fragment
def after_value(below: Floats) -> float:
    """C(x): the value of an afterstate by the spawns seen so far."""
    value = below[V]
    if below[P] > 0.0:
        mean = below[G] / below[P]
        value += (below[W] - below[G]) / below[P] + below[P] * (mean - below[V])
    return float(value)


@kernel(types.void(types.int64, TREE))
def back_up_best(leaf: int, tree: Any) -> None:
    """Update the values of all moves and states on the path; `leaf` is -1 for a chance leaf."""
    child = leaf
    change = 0.0 if leaf < 0 else tree.worths[leaf]  # it counted 0 before
    for place in range(np.int64(tree.facts[LENGTH]) - 1, -1, -1):
        node, direction = tree.path[place] >> 2, tree.path[place] & 3
        below = tree.below[node, direction]
        if child >= 0:
            below[W] += tree.chances[child] * change
        q = tree.gains[node, direction] + after_value(below)
        tree.visits[node, direction] += 1
        tree.totals[node, direction] = q * tree.visits[node, direction]
        tree.facts[LEAST] = min(tree.facts[LEAST], q)
        tree.facts[LARGEST] = max(tree.facts[LARGEST], q)
        before = tree.worths[node]
        tree.worths[node] = value_of(tree, node)
        change = tree.worths[node] - before
        child = node


# -- many trees ----------------------------------------------------------------------------------


def plant_kernel(board: Steps, put_node: PutNode) -> Plant:
    """The kernel that starts trees."""

    @kernel(types.int64(WORDS, WORDS, FOREST, board.by, WORDS, COUNTS))
    def plant(
        states: Words, words: Words, forest: Any, by: Any, leaves: Words, owners: Counts
    ) -> int:
        """Start a tree for each state. Return the number of leaves: roots with a legal move."""
        waiting = 0
        for i in range(len(states)):
            tree = tree_of(forest.trees, i)
            tree.facts[:] = 0.0
            tree.facts[LEAST], tree.facts[LARGEST] = np.inf, -np.inf
            put_node(states[i], 1.0, tree, by)
            forest.words[i] = words[i]
            forest.done[i] = 0
            forest.kinds[i], forest.leaves[i] = ROOT, 0
            if not np.isnan(tree.values[0]):
                leaves[waiting], owners[waiting] = states[i], i
                waiting += 1
        return waiting

    return plant


def grow_kernel(board: Steps, put_node: PutNode) -> Grow:
    """The kernel that takes trees to their next leaves."""
    descend = descend_kernel(board, put_node)

    @kernel(types.int64(types.int64, FOREST, board.by, SPAWNING, FLOATS, WORDS, COUNTS))
    def grow(
        trees: int,
        forest: Any,
        by: Any,
        spawns: Any,
        settings: Floats,
        leaves: Words,
        owners: Counts,
    ) -> int:
        """Take each tree to its next leaf for the network. Return the number of leaves."""
        waiting = 0
        for i in range(trees):
            tree = tree_of(forest.trees, i)
            if np.isnan(tree.values[0]):
                continue
            while forest.done[i] < np.int64(settings[SIMULATIONS]):
                forest.words[i] = mix(forest.words[i] + GOLDEN)
                kind, node = descend(forest.words[i], tree, by, spawns, settings)
                if kind == AFTER or not np.isnan(tree.values[node]):
                    forest.kinds[i], forest.leaves[i] = kind, node
                    board = tree.states[node]
                    if kind == AFTER:
                        edge = tree.path[np.int64(tree.facts[LENGTH]) - 1]
                        board = tree.afters[edge >> 2, edge & 3]
                    leaves[waiting], owners[waiting] = board, i
                    waiting += 1
                    break
                if settings[BEST] > 0:  # a dead end
                    back_up_best(node, tree)
                else:
                    back_up(0.0, tree)
                forest.done[i] += 1
        return waiting

    return grow


@kernel(types.void(COUNTS, COUNTS, SINGLE_ROWS, SINGLE_ROWS, FLOATS, FOREST))
def settle(
    owners: Counts, which: Counts, logits: Singles, worths: Singles, settings: Floats, forest: Any
) -> None:
    """Give every waiting leaf the network's results, and back its value up.

    `worths` are the values of a board as a state and as an afterstate, in units of the scale.
    """
    for j in range(len(owners)):
        i = owners[j]
        tree = tree_of(forest.trees, i)
        kind, node = forest.kinds[i], forest.leaves[i]
        value = settings[SCALE] * worths[j, 1 if kind == AFTER else 0]
        last = tree.path[np.int64(tree.facts[LENGTH]) - 1]
        if kind == AFTER:
            tree.below[last >> 2, last & 3, V] = value
        else:
            tree.values[node] = tree.worths[node] = value
            set_priors(tree, node, logits[j], which[j])
        if kind == ROOT:
            continue
        if kind == STATE:
            tree.below[last >> 2, last & 3, G] += tree.chances[node] * value
        if settings[BEST] > 0:
            back_up_best(-1 if kind == AFTER else node, tree)
        else:
            back_up(value, tree)
        forest.done[i] += 1


class Growing(NamedTuple):
    """The kernels above, for one board size."""

    plant: Plant
    grow: Grow
    settle: Settle


@cache
def growing(rows: int, cols: int) -> Growing:
    """The kernels for a board size."""
    board = steps(rows, cols)
    put_node = put_node_kernel(board)
    return Growing(plant_kernel(board, put_node), grow_kernel(board, put_node), settle)
