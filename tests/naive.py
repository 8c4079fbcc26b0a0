"""2048 on lists of tiles and fractions: slow, obviously right, sharing nothing with the package.

A grid is a list of rows, a row a list of tiles, 0 where a cell is empty.
"""

from __future__ import annotations

from fractions import Fraction

Grid = list[list[int]]

SHAPES = [(r, c) for r in range(2, 7) for c in range(2, 7) if r * c <= 16]
UP, RIGHT, DOWN, LEFT = range(4)


def slide_row_left(row: list[int]) -> tuple[list[int], int]:
    """Push the tiles together, merge equal neighbours from the left, push together again."""
    tiles = [tile for tile in row if tile != 0]
    out = []
    reward = 0
    while tiles:
        if len(tiles) >= 2 and tiles[0] == tiles[1]:
            out.append(2 * tiles[0])
            reward += 2 * tiles[0]
            tiles = tiles[2:]
        else:
            out.append(tiles[0])
            tiles = tiles[1:]
    return out + [0] * (len(row) - len(out)), reward


def transpose(grid: Grid) -> Grid:
    return [list(column) for column in zip(*grid, strict=True)]


def mirror(grid: Grid) -> Grid:
    return [row[::-1] for row in grid]


def flip(grid: Grid) -> Grid:
    return grid[::-1]


def move(grid: Grid, direction: int) -> tuple[Grid, int]:
    """The afterstate and the reward; the same grid where the move is illegal."""
    if direction == UP:
        after, reward = move(transpose(grid), LEFT)
        return transpose(after), reward
    if direction == DOWN:
        after, reward = move(transpose(grid), RIGHT)
        return transpose(after), reward
    if direction == RIGHT:
        after, reward = move(mirror(grid), LEFT)
        return mirror(after), reward
    rows = [slide_row_left(row) for row in grid]
    return [row for row, _ in rows], sum(reward for _, reward in rows)


def legal_moves(grid: Grid) -> list[int]:
    return [direction for direction in range(4) if move(grid, direction)[0] != grid]


def empty_cells(grid: Grid) -> list[tuple[int, int]]:
    return [(r, c) for r, row in enumerate(grid) for c, tile in enumerate(row) if tile == 0]


def spawns(grid: Grid, p4: Fraction) -> list[tuple[Fraction, Grid]]:
    """Every outcome that has a chance, with it."""
    empty = empty_cells(grid)
    if not empty:
        return []
    chances = [(tile, p / len(empty)) for tile, p in ((2, 1 - p4), (4, p4)) if p > 0]
    out = []
    for r, c in empty:
        for tile, chance in chances:
            after = [list(row) for row in grid]
            after[r][c] = tile
            out.append((chance, after))
    return out


def images(grid: Grid) -> list[Grid]:
    """All images of the same shape, in the order of the package's symmetry numbers."""
    out = []
    for base in [grid, transpose(grid)] if len(grid) == len(grid[0]) else [grid]:
        out += [base, mirror(base), flip(base), flip(mirror(base))]
    return out


def packed(grid: Grid) -> int:
    """The number whose hexadecimal digits are the ranks, the last cell first."""
    digits = [f"{tile.bit_length() - 1 if tile else 0:x}" for row in grid for tile in row]
    return int("".join(reversed(digits)), 16)


def unpacked(number: int, rows: int, cols: int) -> Grid:
    digits = f"{number:0{rows * cols}x}"[::-1]
    ranks = [int(digit, 16) for digit in digits]
    tiles = [2**rank if rank else 0 for rank in ranks]
    return [tiles[r * cols : (r + 1) * cols] for r in range(rows)]


def age(grid: Grid) -> int:
    return sum(sum(row) for row in grid)


def text(grid: Grid) -> str:
    return " / ".join(" ".join(str(tile) if tile else "." for tile in row) for row in grid)


def perft(grid: Grid, depth: int) -> int:
    """How many ways there are to go on for `depth` moves, spawns of 2 and 4 told apart."""
    if depth == 0:
        return 1
    total = 0
    for direction in legal_moves(grid):
        for _, following in spawns(move(grid, direction)[0], Fraction(1, 10)):
            total += perft(following, depth - 1)
    return total


# -- the game as a whole -----------------------------------------------------------------------

State = tuple[tuple[int, ...], ...]
Graph = dict[State, list[tuple[int, State, list[tuple[Fraction, State]]]]]
"""For every state its legal moves: reward, afterstate, and the states that may follow."""


def frozen(grid: Grid) -> State:
    return tuple(tuple(row) for row in grid)


def starts(rows: int, cols: int, p4: Fraction) -> dict[State, Fraction]:
    """Every start with its chance."""
    out: dict[State, Fraction] = {}
    for first, one in spawns([[0] * cols for _ in range(rows)], p4):
        for second, two in spawns(one, p4):
            out[frozen(two)] = out.get(frozen(two), Fraction(0)) + first * second
    return out


def game_graph(rows: int, cols: int, p4: Fraction) -> Graph:
    """Every state that can be reached, without any thought of symmetry."""
    graph: Graph = {}
    waiting = list(starts(rows, cols, p4))
    while waiting:
        state = waiting.pop()
        if state in graph:
            continue
        grid = [list(row) for row in state]
        graph[state] = []
        for direction in legal_moves(grid):
            after, reward = move(grid, direction)
            following = [(chance, frozen(other)) for chance, other in spawns(after, p4)]
            graph[state].append((reward, frozen(after), following))
            waiting += [other for _, other in following]
    return graph


def oldest_first(graph: Graph) -> list[State]:
    return sorted(graph, key=lambda state: -sum(map(sum, state)))


def expected_scores(graph: Graph, gamma: Fraction = Fraction(1)) -> dict[State, Fraction]:
    """The value of every state, exactly."""
    values: dict[State, Fraction] = {}
    for state in oldest_first(graph):
        values[state] = max(
            (
                r + gamma * sum(p * values[s] for p, s in following)
                for r, _, following in graph[state]
            ),
            default=Fraction(0),
        )
    return values


def certain_scores(graph: Graph) -> dict[State, int]:
    """The score that nobody can prevent, whatever spawns."""
    values: dict[State, int] = {}
    for state in oldest_first(graph):
        values[state] = max(
            (r + min(values[s] for _, s in following) for r, _, following in graph[state]),
            default=0,
        )
    return values


def chances_to_make(graph: Graph, tile: int) -> dict[State, Fraction]:
    """The chance of ever making a tile."""
    values: dict[State, Fraction] = {}
    for state in oldest_first(graph):
        made = any(max(row) >= tile for row in state)
        values[state] = Fraction(made) or max(
            (sum(p * values[s] for p, s in following) for _, _, following in graph[state]),
            default=Fraction(0),
        )
    return values


def valued(
    graph: Graph,
    *,
    points: Fraction = Fraction(1),
    per_move: Fraction = Fraction(0),
    gamma: Fraction = Fraction(1),
    worst: Fraction = Fraction(0),
    tile: int = 1 << 20,
) -> dict[State, Fraction]:
    """The value of every state for an objective of any kind; 1 where the tile has been made."""
    values: dict[State, Fraction] = {}
    for state in oldest_first(graph):
        worth = [Fraction(0)] if not graph[state] else []
        for reward, after, following in graph[state]:
            mean = sum(p * values[s] for p, s in following)
            least = min(values[s] for _, s in following)
            later = (1 - worst) * mean + worst * least
            if any(max(row) >= tile for row in after):
                later = Fraction(1)
            worth.append(points * reward + per_move + gamma * later)
        values[state] = Fraction(1) if any(max(row) >= tile for row in state) else max(worth)
    return values


def swept_scores(graph: Graph, gamma: float) -> dict[State, float]:
    """The same as `expected_scores` by sweeping over all states until nothing changes.

    Any order of the states comes to the same; that of the oldest first needs the fewest sweeps.
    """
    edges = {
        state: [(r, [(float(p), s) for p, s in following]) for r, _, following in graph[state]]
        for state in oldest_first(graph)
    }
    values = dict.fromkeys(graph, 0.0)
    changed = True
    while changed:
        changed = False
        for state, moves in edges.items():
            value = max(
                (r + gamma * sum(p * values[s] for p, s in following) for r, following in moves),
                default=0.0,
            )
            changed |= abs(value - values[state]) > 1e-13
            values[state] = value
    return values
