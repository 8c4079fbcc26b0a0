"""Players and heuristics on lists of tiles, by their definitions: slow, obviously right."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import inf

from tests import naive
from tests.naive import Grid, State

Heuristic = Callable[[Grid], float]

ALPHA = [[7, 6, 5, 4], [6, 5, 4, 3], [5, 4, 3, 2], [4, 3, 2, 1]]
"""As printed, for 4x4."""


# -- heuristics --------------------------------------------------------------------------------


def alpha(grid: Grid) -> float:
    rows, cols = len(grid), len(grid[0])
    return sum((rows - r + cols - c - 1) * grid[r][c] for r in range(rows) for c in range(cols))


def snake_path(rows: int, cols: int) -> list[tuple[int, int]]:
    """The cells of a path that winds through the rows."""
    path = []
    for r in range(rows):
        cells = [(r, c) for c in range(cols)]
        path += cells if r % 2 == 0 else cells[::-1]
    return path


def snake(grid: Grid) -> float:
    def along(board: Grid) -> float:
        path = snake_path(len(board), len(board[0]))
        return sum(2 ** (len(path) - 1 - k) * board[r][c] for k, (r, c) in enumerate(path))

    return max(along(grid), along(naive.transpose(grid)))


def rank(tile: int) -> int:
    return tile.bit_length() - 1 if tile else 0


def unevenness(line: list[int], power: float) -> float:
    """How far a line is from rising, or from falling, all the way: the less of the two."""
    powers = [rank(tile) ** power for tile in line]
    steps = [b - a for a, b in pairwise(powers)]
    return min(sum(s for s in steps if s > 0), sum(-s for s in steps if s < 0))


def merges(line: list[int]) -> int:
    """Pairs of equal tiles that would merge if the line were slid."""
    tiles = [tile for tile in line if tile]
    found, k = 0, 0
    while k + 1 < len(tiles):
        if tiles[k] == tiles[k + 1]:
            found += 1
            k += 2
        else:
            k += 1
    return found


def roughness(line: list[int]) -> float:
    """How much tiles in neighbouring cells differ, in ranks."""
    return sum(abs(rank(a) - rank(b)) for a, b in pairwise(line) if a and b)


def lines(grid: Grid) -> list[list[int]]:
    return grid + naive.transpose(grid)


def rows(weights: dict[str, float]) -> Heuristic:
    def value(grid: Grid) -> float:
        total = 0.0
        for line in lines(grid):
            total += weights["free"] * line.count(0) + weights["merge"] * merges(line)
            total -= weights["uneven"] * unevenness(line, weights["uneven_power"])
            total -= weights["sum"] * sum(rank(t) ** weights["sum_power"] for t in line if t)
        return total

    return value


def shape(weights: dict[str, float]) -> Heuristic:
    def value(grid: Grid) -> float:
        total = 0.0
        for line in lines(grid):
            total += weights["free"] * line.count(0) - weights["rough"] * roughness(line)
            total -= weights["uneven"] * unevenness(line, 1)
        for board in (grid, naive.transpose(grid)):
            for edge in (board[0], board[-1]):
                total += weights["edge"] * sum(map(rank, edge))
        return total

    return value


# -- searches ----------------------------------------------------------------------------------


class Search:
    """Looks ahead by recursion; `over_spawns` of each kind says what an afterstate is worth."""

    def __init__(
        self,
        heuristic: Heuristic | None,
        dead: float = 0.0,
        p4: float = 0.1,
        gamma: float = 1.0,
        cells: int = 0,
    ) -> None:
        self.heuristic, self.dead, self.gamma = heuristic, dead, gamma
        self.p4, self.cells = Fraction(p4), cells

    def values(self, grid: Grid, depth: int) -> dict[int, float]:
        """What every legal move is worth; with no heuristic the rewards count."""
        out = {}
        for direction in naive.legal_moves(grid):
            after, reward = naive.move(grid, direction)
            gain = reward if self.heuristic is None else 0
            out[direction] = gain + self.gamma * self.after(after, depth - 1)
        return out

    def best(self, grid: Grid, depth: int) -> float:
        return max(self.values(grid, depth).values(), default=self.dead)

    def after(self, grid: Grid, depth: int) -> float:
        if depth == 0:
            return 0.0 if self.heuristic is None else self.heuristic(grid)
        return self.over_spawns(self.spawns(grid), depth)

    def spawns(self, grid: Grid) -> list[tuple[float, tuple[int, int], Grid]]:
        """Chance, cell and state of the spawns that are looked at."""
        found = []
        for chance, state in naive.spawns(grid, self.p4):
            (cell,) = [
                (r, c)
                for r, row in enumerate(state)
                for c, tile in enumerate(row)
                if tile != grid[r][c]
            ]
            found.append((float(chance), cell, state))
        if self.cells:
            order = snake_path(len(grid), len(grid[0]))
            empty = [cell for cell in order if grid[cell[0]][cell[1]] == 0][: self.cells]
            found = [each for each in found if each[1] in empty]
            total = sum(chance for chance, _, _ in found)
            found = [(chance / total, cell, state) for chance, cell, state in found]
        return found


class Expectimax(Search):
    def over_spawns(self, found, depth):
        return sum(chance * self.best(state, depth) for chance, _, state in found)


class CutOff(Expectimax):
    """Expectimax that does not look into what is less likely than `cutoff`, to depth 3.

    An afterstate is as likely as all spawns together that lead to it by some move.
    """

    def __init__(self, heuristic: Heuristic, dead: float, cutoff: float) -> None:
        super().__init__(heuristic, dead)
        self.cutoff = cutoff

    def after(self, grid: Grid, depth: int) -> float:
        if depth < 2:
            return super().after(grid, depth)
        found = self.spawns(grid)
        if max(chance for chance, _, _ in found) < self.cutoff:
            return super().after(grid, 1)
        likely: dict[State, float] = {}
        for chance, _, state in found:
            for direction in naive.legal_moves(state):
                after = naive.frozen(naive.move(state, direction)[0])
                likely[after] = likely.get(after, 0.0) + chance
        worth = {
            after: super(CutOff, self).after([*map(list, after)], int(chance >= self.cutoff))
            for after, chance in likely.items()
        }
        total = 0.0
        for chance, _, state in found:
            moves = [naive.move(state, d)[0] for d in naive.legal_moves(state)]
            best = max((worth[naive.frozen(after)] for after in moves), default=self.dead)
            total += chance * best
        return total


class Minimax(Search):
    def over_spawns(self, found, depth):
        return min(self.best(state, depth) for _, _, state in found)


class Expectiminimax(Search):
    def over_spawns(self, found, depth):
        cells: dict[tuple[int, int], list[tuple[float, float]]] = {}
        for chance, cell, state in found:
            cells.setdefault(cell, []).append((chance, self.best(state, depth)))
        return min(sum(p * v for p, v in each) / sum(p for p, _ in each) for each in cells.values())


# -- exact values of players -------------------------------------------------------------------

Policy = Callable[[Grid], dict[int, Fraction]]
"""The chances of the moves of a player."""


def random_policy(grid: Grid) -> dict[int, Fraction]:
    legal = naive.legal_moves(grid)
    return {direction: Fraction(1, len(legal)) for direction in legal}


def greedy_policy(grid: Grid) -> dict[int, Fraction]:
    legal = naive.legal_moves(grid)
    best = max((naive.move(grid, d)[1] for d in legal), default=-inf)
    chosen = [d for d in legal if naive.move(grid, d)[1] == best]
    return {chosen[0]: Fraction(1)} if chosen else {}


def corner_policy(grid: Grid) -> dict[int, Fraction]:
    legal = naive.legal_moves(grid)
    order = [naive.LEFT, naive.DOWN, naive.UP, naive.RIGHT]
    return {next(d for d in order if d in legal): Fraction(1)} if legal else {}


def policy_value(rows: int, cols: int, p4: Fraction, policy: Policy) -> Fraction:
    """The mean score of a player, by recursion over all boards, without any symmetry."""
    known: dict[State, Fraction] = {}

    def value(state: State) -> Fraction:
        if state not in known:
            grid = [list(row) for row in state]
            total = Fraction(0)
            for direction, chance in policy(grid).items():
                after, reward = naive.move(grid, direction)
                spawns = naive.spawns(after, p4)
                total += chance * (reward + sum(p * value(naive.frozen(s)) for p, s in spawns))
            known[state] = total
        return known[state]

    return sum((p * value(state) for state, p in naive.starts(rows, cols, p4).items()), Fraction(0))
