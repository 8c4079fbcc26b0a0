"""The tree search of self-play on lists and dictionaries: slow, and by the description alone.

What it shares with the package is how random words become spawns (`lab2048.game.spawns`).
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log, sqrt

from lab2048.game import randomness as chance
from lab2048.game import spawns
from tests import naive
from tests.naive import Grid

Answer = tuple[list[float], float, float]
Network = Callable[[Grid], Answer]
"""Of a grid: the logits of the four moves, its value as a state, and as an afterstate."""


class Node:
    """A state of the tree."""

    def __init__(self, grid: Grid, network: Network) -> None:
        self.grid = grid
        self.moves = {d: naive.move(grid, d) for d in naive.legal_moves(grid)}
        logits, value, _ = network(grid)
        self.value = value if self.moves else 0.0
        self.after = {d: network(after)[2] for d, (after, _) in self.moves.items()}
        self.visits = dict.fromkeys(self.moves, 0)
        self.total = dict.fromkeys(self.moves, 0.0)
        self.children: dict[int, dict[tuple[int, int], tuple[float, Node]]] = {}
        most = max((logits[d] for d in self.moves), default=0.0)
        shares = {d: exp(logits[d] - most) for d in self.moves}
        self.prior = {d: share / sum(shares.values()) for d, share in shares.items()}

    def best_q(self, d: int) -> float:
        """What a move is worth by expectimax over all that is known below."""
        known = list(self.children.get(d, {}).values())
        value = self.after[d]
        if known:
            seen = sum(p for p, _ in known)
            found = sum(p * child.best_value() for p, child in known) / seen
            guessed = sum(p * child.value for p, child in known) / seen
            value += found - guessed + seen * (guessed - self.after[d])
        return self.moves[d][1] + value

    def best_value(self) -> float:
        found = [self.best_q(d) if self.visits[d] else self.value for d in self.moves]
        return max(found, default=0.0)


class Search:
    """Simulations from one state."""

    def __init__(self, network: Network, p4: float, c1: float, c2: float, backup: str) -> None:
        self.network, self.c1, self.c2, self.backup = network, c1, c2, backup
        self.p4, self.threshold = p4, spawns.four_threshold(p4)
        self.least, self.largest = inf, -inf

    def run(self, grid: Grid, word: int, simulations: int) -> Node:
        root = Node(grid, self.network)
        for _ in range(simulations):
            word = chance.mix((word + chance.GOLDEN) % 2**64)
            self.simulate(root, word)
        return root

    def q(self, node: Node, d: int) -> float:
        if not node.visits[d]:
            return node.value
        return node.best_q(d) if self.backup == "best" else node.total[d] / node.visits[d]

    def bound(self, node: Node, d: int) -> float:
        total = sum(node.visits.values())
        factor = sqrt(total) * (self.c1 + log((total + self.c2 + 1) / self.c2))
        found = node.prior[d] * factor / (1 + node.visits[d])
        if self.largest > self.least:
            found += (self.q(node, d) - self.least) / (self.largest - self.least)
        return found

    def simulate(self, root: Node, word: int) -> None:
        node, path = root, []
        value = 0.0
        while node.moves:
            best = max(node.moves, key=lambda d: self.bound(node, d))
            path.append((node, best))
            if node.visits[best] == 0:
                value = node.after[best]
                break
            word = (word + chance.GOLDEN) % 2**64
            key, likely, state = self.spawn(node.moves[best][0], chance.mix(word))
            known = node.children.setdefault(best, {})
            if key not in known:
                known[key] = likely, Node(state, self.network)
                value = known[key][1].value
                break
            node = known[key][1]
        for node, direction in reversed(path):
            value += node.moves[direction][1]
            node.visits[direction] += 1
            node.total[direction] += value
            found = self.q(node, direction)
            self.least, self.largest = min(self.least, found), max(self.largest, found)

    def spawn(self, after: Grid, word: int) -> tuple[tuple[int, int], float, Grid]:
        cols = len(after[0])
        empty = [c for c in range(len(after) * cols) if after[c // cols][c % cols] == 0]
        which, rank = spawns.draw_spawn(word, len(empty), self.threshold)
        cell = empty[which]
        grid = [row[:] for row in after]
        grid[cell // cols][cell % cols] = 1 << rank
        return (cell, rank), (self.p4 if rank == 2 else 1 - self.p4) / len(empty), grid
