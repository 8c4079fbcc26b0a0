"""N-tuple networks and TD learning with dictionaries and lists: slow and obviously right."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from tests import naive

F = np.float32


def turned(direction: int, symmetry: int) -> int:
    """What a direction is on an image: transposed if 4 is in it, then mirrored (1), flipped (2)."""
    if symmetry & 4:
        direction = {0: 3, 3: 0, 1: 2, 2: 1}[direction]
    if symmetry & 1 and direction in (1, 3):
        direction = 4 - direction
    if symmetry & 2 and direction in (0, 2):
        direction = 2 - direction
    return direction


@dataclass
class Net:
    """The weights of a network, by tuple, direction (0 if they do not differ) and tiles."""

    tuples: list[list[int]]
    by_move: bool = False
    initial: float = 0.0
    weights: dict = field(default_factory=lambda: defaultdict(lambda: F(0)))
    steps: dict = field(default_factory=lambda: defaultdict(lambda: F(0)))
    sizes: dict = field(default_factory=lambda: defaultdict(lambda: F(0)))

    def entries(self, grid, move=0):
        """The names of all weights that the value of a board, or a move there, is the sum of."""
        found = []
        for symmetry, image in enumerate(naive.images(grid)):
            cells = [tile for row in image for tile in row]
            way = turned(move, symmetry) if self.by_move else 0
            for number, places in enumerate(self.tuples):
                found.append((number, way, tuple(cells[place] for place in places)))
        return found

    def weight(self, name):
        return F(self.weights[name])

    def value(self, grid, move=0):
        """The sum of all weights: in float32 for each image, in float64 of them all."""
        weights = [self.weight(name) for name in self.entries(grid, move)]
        n = len(self.tuples)
        images = [sum(weights[k : k + n], F(0)) for k in range(0, len(weights), n)]
        return self.initial + sum(map(float, images))

    def correct(self, grid, move, target, rate, coherent):
        """One update, weight after weight; those that are looked up twice are changed twice."""
        entries = self.entries(grid, move)
        step = F(rate / len(entries) * (target - self.value(grid, move)))
        for e in entries:
            share = F(1)
            if coherent and self.sizes[e] != 0:
                share = abs(self.steps[e]) / self.sizes[e]
            self.weights[e] += share * step
            self.steps[e] += step
            self.sizes[e] += abs(step)


def mean_state(net, after, p4):
    """The mean of V over the spawns; 0 where no move is legal."""
    spawns = naive.spawns(after, Fraction(p4).limit_denominator(1000))
    return sum(float(p) * net.value(s) for p, s in spawns if naive.legal_moves(s))


def worth(net, rule, grid, move, gamma, p4):
    """What a move is worth: with its reward, but for Q, of which that is a part."""
    after, reward = naive.move(grid, move)
    if rule == "td":
        return reward + gamma * net.value(after)
    if rule == "state":
        return reward + gamma * mean_state(net, after, p4)
    return gamma * net.value(grid, move)


def learn_game(net, game, rule, *, rate, coherent=False, backward=False, gamma=1.0):
    """Play a `Game` with the best moves, and learn from it; the score."""
    path = []  # what was valued, the move, its reward
    p4 = game.rules.p4
    while True:
        grid = naive.unpacked(game.board.packed, game.rules.rows, game.rules.cols)
        moves = naive.legal_moves(grid)
        best = max(moves, key=lambda m: worth(net, rule, grid, m, gamma, p4), default=None)
        if path and not backward:
            board, move, reward = path[-1]
            following = 0.0
            if best is not None:
                following = gamma * net.value(grid)
                if rule != "state":
                    following = worth(net, rule, grid, best, gamma, p4)
            target = following if rule == "td" else reward + following
            net.correct(board, move, target, rate, coherent)
        if best is None:
            break
        after, reward = naive.move(grid, best)
        path.append((after if rule == "td" else grid, best, reward))
        game.play(best)
    following = 0.0
    for board, move, reward in reversed(path) if backward else []:
        target = following if rule == "td" else reward + following
        net.correct(board, move, target, rate, coherent)
        following = gamma * net.value(board, move) + (reward if rule == "td" else 0)
    return game.score
