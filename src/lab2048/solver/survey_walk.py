"""What optimal play is like, exactly: statistics of a solved game.

The chance to visit a state is carried forward through the layers: from the states to the
afterstates of their optimal moves (moves that are equally good share it evenly), from there to the
states that spawns make. A state does not tell how many moves led to it, but

    moves = age / 2 - 2 - fours          score = sum of tile * (rank - 1) - 4 * fours

where `fours` is how many 4s have spawned, so the chance is carried split up by the number of fours
(*columns*), or, on large boards, with its first two moments. The columns are a window that moves
along with the mean; what falls out of it is below `Survey.lost`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab2048.board import Words, all_cells, count, max_rank, merged, occupied
from lab2048.jit import U, kernel
from lab2048.notation import checked_threads
from lab2048.solve.crew import Crew
from lab2048.solve.expand import BLOCK, Sources, potential, smallest
from lab2048.solve.games import perfect_games
from lab2048.solve.keys import Counts, Floats, Index, below, fill, find, region_shift
from lab2048.solve.layers import Mover, afterstates
from lab2048.solve.problem import SCORE
from lab2048.solve.store import TableError, age_of
from lab2048.solve.table import Table
from lab2048.solve.values import divided, value_afters_kernel

Matrix = NDArray[np.float64]
Progress = Callable[[int, int], object]

EXACT_CELLS = 9
"""On boards of up to so many cells the number of fours is carried along exactly."""
DEVIATIONS = 8
"""How many standard deviations of the number of fours the columns go to either side."""
AT_LEAST = 10
"""And how many columns more: where 4s, or 2s, are rare, their number is not spread like a bell."""
GAMES = 100_000
"""Games that are played where the figures by move are not found exactly."""


@dataclass
class ByAge:
    """Figures of each age, for all states of it and weighted by how often they are visited."""

    age: list[int] = field(default_factory=list)
    states: list[int] = field(default_factory=list)
    afterstates: list[int] = field(default_factory=list)
    visits: list[float] = field(default_factory=list)
    """The chance that a game has this age with the player to move."""
    gap: list[float | None] = field(default_factory=list)
    """Mean gap, best q less worst q, over the states with a legal move."""
    margin: list[float | None] = field(default_factory=list)
    """Mean margin, best q less second best, over the states with two legal moves or more."""
    visited_gap: list[float | None] = field(default_factory=list)
    visited_margin: list[float | None] = field(default_factory=list)


@dataclass
class ByMove:
    """Figures of each move number, weighted by visits: move 0 is the first."""

    games: int | None = None
    """How many games were played to find them; None if they are exact."""
    visits: list[float] = field(default_factory=list)
    gap: list[float | None] = field(default_factory=list)
    margin: list[float | None] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    """The chance that a game ends after so many moves."""


@dataclass
class Survey:
    """Exact statistics of optimal play."""

    problem: dict[str, Any]
    value: dict[str, float | None]
    score: dict[str, float]
    moves: dict[str, float]
    final_tile: dict[int, float]
    reach: dict[int, float]
    """The chance to make each tile from 8 on."""
    visited_states: int
    by_age: ByAge
    by_move: ByMove
    lost: float
    """Chance that was lost in the tails of the columns."""

    def as_json(self) -> dict[str, Any]:
        """The survey as plain values."""
        return asdict(self)


# -- kernels -------------------------------------------------------------------------------------


@cache
def judge_kernel(rows: int, cols: int) -> Callable[..., int]:
    """The kernel that compares the moves of states of one shape."""
    cells = rows * cols

    @kernel(
        "int64(uint64[::1], uint64[::1], uint32[::1], uint64[::1], float64[::1], "
        "float64[:, ::1], float64[::1])"
    )
    def judge(
        keys: Words,
        edges: Words,
        sources: Sources,
        afters: Words,
        tolerance: Floats,
        judged: Matrix,
        shares: Floats,
    ) -> int:
        """Write for each state A of its best, second best and worst move, and how many are best.

        `shares` is for each edge its share among the best, 0 if it is not one of them. `afters`
        is the index of A, `tolerance` a factor and the least value that it is applied to. Returns
        how many afterstates were not found.
        """
        values = afters.view(np.float64)
        found, missed = np.empty(BLOCK, np.float64), np.empty(BLOCK, np.int64)
        for i in range(len(keys)):
            judged[i, 0] = judged[i, 1] = -np.inf
            judged[i, 2], judged[i, 3] = np.inf, 0.0
        lost = 0
        for start in range(0, len(edges), BLOCK):
            size = min(BLOCK, len(edges) - start)
            lost += find(edges, start, size, afters, values, found, missed)
            for i in range(size):
                a, state = found[i], sources[start + i]
                shares[start + i] = a
                judged[state, 1] = max(judged[state, 1], min(a, judged[state, 0]))
                judged[state, 0] = max(judged[state, 0], a)
                judged[state, 2] = min(judged[state, 2], a)
        for i in range(len(edges)):
            state = sources[i]
            value = judged[state, 0] - np.float64(potential(keys[state], cells))
            slack = tolerance[0] * max(value, tolerance[1])
            shares[i] = 1.0 if judged[state, 0] - shares[i] <= slack else 0.0
            judged[state, 3] += shares[i]
        for i in range(len(edges)):
            shares[i] /= judged[sources[i], 3]
        return lost

    return judge


@kernel(
    "void(uint64[::1], uint32[::1], float64[::1], float64[:, ::1], uint64[::1], float64[:, ::1])"
)
def pass_on(
    edges: Words, sources: Sources, shares: Floats, chances: Matrix, afters: Words, out: Matrix
) -> None:
    """Add the chances of states to the afterstates of their best moves."""
    for i in range(len(edges)):
        state = sources[i]
        if shares[i] > 0 and chances[state, 0] > 0:
            place = below(afters, len(afters), edges[i])
            for column in range(chances.shape[1]):
                out[place, column] += shares[i] * chances[state, column]


@cache
def spawn_on_kernel(rows: int, cols: int) -> Callable[..., None]:
    """The kernel that carries chances from afterstates of one shape to states."""

    @kernel("void(uint64[::1], float64[:, ::1], uint64, float64, uint64[::1], float64[:, ::1])")
    def spawn_on(
        afters: Words, chances: Matrix, rank: U, weight: float, states: Words, out: Matrix
    ) -> None:
        """Add the chances of afterstates, times a weight, to the states that a tile makes."""
        for i in range(len(afters)):
            if chances[i, 0] <= 0:
                continue
            empty = ~occupied(afters[i]) & all_cells(rows, cols)
            share = weight / np.float64(count(empty))
            while empty != U(0):
                tile = (empty & (U(0) - empty)) * rank
                empty &= empty - U(1)
                place = below(states, len(states), smallest(afters[i] | tile, rows, cols))
                for column in range(chances.shape[1]):
                    out[place, column] += share * chances[i, column]

    return spawn_on


@kernel("void(uint64[::1], int64[::1], int64[::1])")
def ends_of(keys: Words, scores: Counts, ranks: Counts) -> None:
    """Write the score of each board, had no 4 spawned, and the rank of its largest tile."""
    for i in range(len(keys)):
        scores[i] = merged(keys[i])
        ranks[i] = max_rank(keys[i])


# -- the walk ------------------------------------------------------------------------------------

MOMENTS = 3
"""Columns before those of the numbers of fours: chance, chance * fours, chance * fours**2."""


class Columns:
    """Which numbers of fours the columns of an age stand for."""

    def __init__(self, p4: float, exact: bool) -> None:
        self._p4, self._exact = p4, exact

    def first(self, age: int) -> int:
        """The number of fours that the first column stands for."""
        mean, deviation = self._expected(age)
        return max(0, math.floor(mean - DEVIATIONS * deviation) - AT_LEAST)

    def width(self, age: int) -> int:
        """How many columns there are, those of the moments included."""
        if not self._exact:
            return MOMENTS
        mean, deviation = self._expected(age)
        last = math.ceil(mean + DEVIATIONS * deviation) + AT_LEAST
        return MOMENTS + 1 + last - self.first(age)

    def _expected(self, age: int) -> tuple[float, float]:
        """About how many fours there are at an age, and by how much that varies."""
        step = 2 + 2 * self._p4
        return self._p4 * age / step, math.sqrt(4 * self._p4 * (1 - self._p4) * age / step**3)

    def moved(self, chances: Matrix, age: int, fours: int) -> Matrix:
        """Chances at an age as columns of the next one, `fours` (0 or 1) spawned on the way."""
        older = age + 2 + 2 * fours
        out = np.zeros((len(chances), self.width(older)))
        out[:, :MOMENTS] = chances[:, :MOMENTS]
        if fours:
            out[:, 2] += 2 * chances[:, 1] + chances[:, 0]
            out[:, 1] += chances[:, 0]
        shift = self.first(age) + fours - self.first(older)
        source = chances[:, MOMENTS:]
        begin, end = max(0, shift), min(out.shape[1] - MOMENTS, source.shape[1] + shift)
        if end > begin:
            out[:, MOMENTS + begin : MOMENTS + end] = source[:, begin - shift : end - shift]
        return out


class Visited(NamedTuple):
    """A layer, and what is known about its states."""

    age: int
    keys: Words
    chances: Matrix
    """The columns of each state."""
    judged: Matrix
    """A of the best, second best and worst move, and how many are best."""
    options: Counts
    """How many moves are legal."""
    afterstates: int


class Walk:
    """A way through all layers, youngest first, with the chance of every state."""

    def __init__(self, table: Table, crew: Crew, exact: bool) -> None:
        rules = table.rules
        self.table, self.crew, self.exact = table, crew, exact
        self.columns = Columns(rules.p4, self.exact)
        self._shift = region_shift(rules.cells)
        self._rule = np.array(table.problem.rule)
        self._value_afters = value_afters_kernel(rules.rows, rules.cols)
        self._judge = judge_kernel(rules.rows, rules.cols)
        self._spawn_on = spawn_on_kernel(rules.rows, rules.cols)
        self._movers = [Mover(table.problem) for _ in range(crew.threads)]
        self._afters = Index(rules.cells)
        self._indexes: dict[int, Index] = {}
        self._keys: dict[int, Words] = {}
        self._chances: dict[int, Matrix] = {}
        for _, chance, board in table.problem.starts():
            layer, fours = (board.age - 4) // 2, sum(rank == 2 for rank in board.ranks)
            row = self._chances_of(layer)[np.searchsorted(self._keys_of(layer), U(board.packed))]
            row[:MOMENTS] += chance, chance * fours, chance * fours**2
            if self.exact:
                row[MOMENTS + fours - self.columns.first(board.age)] += chance

    def _keys_of(self, layer: int) -> Words:
        """The keys of a layer; none beyond the last."""
        if layer not in self._keys:
            inside = layer < len(self.table.counts)
            self._keys[layer] = self.table.keys.layer(layer) if inside else np.empty(0, np.uint64)
        return self._keys[layer]

    def _index_of(self, layer: int) -> Index:
        """The values of a layer, by key."""
        if layer not in self._indexes:
            keys, index = self._keys_of(layer), Index(self.table.rules.cells)
            (begin,) = index.share_out([len(keys)])
            if len(keys):
                fill(keys, self.table.layer_values(layer).astype(np.float64), index.words, begin)
            self._indexes[layer] = index
        return self._indexes[layer]

    def _chances_of(self, layer: int) -> Matrix:
        """The chances of a layer's states, as far as they have been added up."""
        if layer not in self._chances:
            width = self.columns.width(age_of(layer))
            self._chances[layer] = np.zeros((len(self._keys_of(layer)), width))
        return self._chances[layer]

    def visit(self, layer: int) -> Visited:
        """A layer with all its chances; they are carried on to the next ones."""
        keys, chances = self._keys_of(layer), self._chances_of(layer)
        lots = divided(keys, self.crew.parts(len(keys)), self._shift)
        moves = self.crew.run([partial(m, lot) for m, lot in zip(self._movers, lots, strict=False)])
        afters = afterstates(np.concatenate([edges for edges, _ in moves]))
        self._value(layer, afters)
        judged = np.empty((len(keys), 4))
        options = np.concatenate(
            [np.bincount(s, minlength=len(lot)) for lot, (_, s) in zip(lots, moves, strict=True)]
        )
        places = np.cumsum([0, *map(len, lots)])
        shares = self.crew.run(
            [
                partial(self._judge_lot, lot, *move, judged[places[n] : places[n + 1]])
                for n, (lot, move) in enumerate(zip(lots, moves, strict=True))
            ]
        )
        carried = np.zeros((len(afters), chances.shape[1]))
        for n, (edges, sources) in enumerate(moves):
            lot_chances = chances[places[n] : places[n + 1]]
            pass_on(edges, sources, shares[n], lot_chances, afters, carried)
        self._spawn(layer, afters, carried)
        for kept in (self._keys, self._indexes, self._chances):
            kept.pop(layer, None)
        return Visited(age_of(layer), keys, chances, judged, options, len(afters))

    def _value(self, layer: int, afters: Words) -> None:
        """Put A of the afterstates into their index."""
        two, four = self._index_of(layer + 1).words, self._index_of(layer + 2).words
        lots = divided(afters, self.crew.parts(len(afters)), self._shift)
        begins = self._afters.share_out([len(lot) for lot in lots])

        def value(part: int) -> None:
            out = np.empty(len(lots[part]))
            index = self._afters.words
            lost = self._value_afters(lots[part], two, four, self._rule, out, index, begins[part])
            _check(lost)

        self.crew.run([partial(value, part) for part in range(len(lots))])

    def _judge_lot(self, keys: Words, edges: Words, sources: Sources, judged: Matrix) -> Floats:
        """Compare the moves of some states; the shares of their moves."""
        shares = np.empty(len(edges))
        slack = np.array(self.table.slack)
        _check(self._judge(keys, edges, sources, self._afters.words, slack, judged, shares))
        return shares

    def _spawn(self, layer: int, afters: Words, carried: Matrix) -> None:
        """Carry the chances of afterstates on to the next two layers."""
        visited = np.flatnonzero(carried[:, 0])
        afters, carried, age = afters[visited], carried[visited], age_of(layer)
        p4 = self.table.rules.p4
        for rank, weight in ((1, 1 - p4), (2, p4)):
            if weight > 0 and len(afters):
                moved = self.columns.moved(carried, age, rank - 1)
                states, out = self._keys_of(layer + rank), self._chances_of(layer + rank)
                self._spawn_on(afters, moved, U(rank), weight, states, out)


def _check(lost: int) -> None:
    """Every board that a layer leads to is in the layer it leads to."""
    if lost:
        raise TableError(
            f"{lost} boards are missing from the table; lab2048 table verify says more"
        )


# -- the figures ---------------------------------------------------------------------------------


class Tally:
    """Sums over all layers, of which the survey is made."""

    def __init__(self, table: Table, walk: Walk) -> None:
        self._table, self._walk = table, walk
        self.by_age = ByAge()
        self.final = np.zeros(18)
        self.score, self.moves = np.zeros(3), np.zeros(3)
        self.visited = 0
        longest = table.manifest["max_age"] // 2
        self.made, self.chosen, self.ends = (np.zeros(longest) for _ in range(3))
        self.gaps, self.margins = np.zeros(longest), np.zeros(longest)

    def add(self, layer: Visited) -> None:
        """Count a layer in."""
        chance = layer.chances[:, 0]
        legal, choice = layer.options > 0, layer.options > 1
        with np.errstate(invalid="ignore"):
            gap = np.where(legal, layer.judged[:, 0] - layer.judged[:, 2], 0.0)
            margin = np.where(choice, layer.judged[:, 0] - layer.judged[:, 1], 0.0)
        ages = self.by_age
        ages.age.append(layer.age)
        ages.states.append(len(layer.keys))
        ages.afterstates.append(layer.afterstates)
        ages.visits.append(float(chance.sum()))
        ages.gap.append(_ratio(gap.sum(), legal.sum()))
        ages.margin.append(_ratio(margin.sum(), choice.sum()))
        ages.visited_gap.append(_ratio(gap @ chance, legal @ chance))
        ages.visited_margin.append(_ratio(margin @ chance, choice @ chance))
        self.visited += int(np.count_nonzero(chance))
        self._add_ends(layer, ~legal & (chance > 0))
        if self._walk.exact:
            self._add_moves(layer, gap, margin, legal, choice)

    def _add_ends(self, layer: Visited, over: NDArray[np.bool_]) -> None:
        """Count the games that end in a layer."""
        keys, chances = layer.keys[over], layer.chances[over]
        scores, ranks = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        ends_of(keys, scores, ranks)
        self.final += np.bincount(ranks, chances[:, 0], minlength=18)
        # both are a number less some times the number of fours, whose moments are known
        self.score += _moments(scores.astype(np.float64), 4.0, chances)
        self.moves += _moments(np.full(len(keys), layer.age / 2 - 2), 1.0, chances)

    def _add_moves(
        self,
        layer: Visited,
        gap: Floats,
        margin: Floats,
        legal: NDArray[np.bool_],
        choice: NDArray[np.bool_],
    ) -> None:
        """Count the states of a layer by the number of their move."""
        visited = np.flatnonzero(layer.chances[:, 0])
        columns = layer.chances[visited, MOMENTS:]
        fours = self._walk.columns.first(layer.age) + np.arange(columns.shape[1])
        number = layer.age // 2 - 2 - fours
        inside = (number >= 0) & (number < len(self.made))
        for sums, weight in (
            (self.made, legal),
            (self.chosen, choice),
            (self.ends, ~legal),
            (self.gaps, gap),
            (self.margins, margin),
        ):
            found = weight[visited].astype(np.float64) @ columns
            np.add.at(sums, number[inside], found[inside])

    def by_move(self) -> ByMove:
        """The figures by move number, up to the last move that is ever made."""
        last = int(np.flatnonzero(self.ends).max(initial=0)) + 1
        return ByMove(
            None,
            self.made[:last].tolist(),
            [_ratio(*pair) for pair in zip(self.gaps[:last], self.made[:last], strict=True)],
            [_ratio(*pair) for pair in zip(self.margins[:last], self.chosen[:last], strict=True)],
            self.ends[:last].tolist(),
        )


def _moments(numbers: Floats, factor: float, chances: Matrix) -> Floats:
    """Chance, first and second moment of numbers less a factor times the number of fours."""
    chance, first, second = chances[:, 0], chances[:, 1], chances[:, 2]
    return np.array(
        [
            chance.sum(),
            (numbers * chance - factor * first).sum(),
            (numbers**2 * chance - 2 * factor * numbers * first + factor**2 * second).sum(),
        ]
    )


def _ratio(total: Any, weight: Any) -> float | None:
    """A mean; None if there is nothing to take it of."""
    return float(total / weight) if weight > 0 else None


def _spread(moments: Floats) -> dict[str, float]:
    """Mean and standard deviation."""
    mean = float(moments[1] / moments[0])
    return {"mean": mean, "deviation": math.sqrt(max(0.0, moments[2] / moments[0] - mean**2))}


def prepare(table: Table) -> None:
    """Compile what a survey needs, before progress is shown."""
    with Crew(1) as crew:
        Walk(table, crew, False)
    if table.rules.cells > EXACT_CELLS:
        table.compile()


def survey(
    table: Table,
    *,
    threads: int | None = None,
    by_move: bool = True,
    games: int = GAMES,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> Survey:
    """The statistics of optimal play of a table whose objective is the score.

    `progress` is told how many states are done, and of how many. Figures by move are left out if
    they are not asked for; on boards of more than `EXACT_CELLS` cells they are those of `games`.
    """
    if table.problem.objective != SCORE:
        raise TableError(f"a survey is made of a table for the score, not for {table.problem.goal}")
    exact = by_move and table.rules.cells <= EXACT_CELLS
    with Crew(checked_threads(threads)) as crew:
        walk = Walk(table, crew, exact)
        tally = Tally(table, walk)
        done = 0
        for layer in range(len(table.counts)):
            tally.add(walk.visit(layer))
            done += table.counts[layer]
            progress(done, table.states)
    moves = ByMove(0)
    if by_move:
        moves = tally.by_move() if exact else sampled(table, games, seed, progress)
    final = {1 << rank: float(p) for rank, p in enumerate(tally.final) if p > 0}
    tiles = [1 << rank for rank in range(3, max(final).bit_length())]
    return Survey(
        problem=table.problem.as_json(),
        value=table.start_value,
        score=_spread(tally.score),
        moves=_spread(tally.moves),
        final_tile=final,
        reach={t: min(1.0, math.fsum(p for f, p in final.items() if f >= t)) for t in tiles},
        visited_states=tally.visited,
        by_age=tally.by_age,
        by_move=moves,
        lost=max(0.0, 1 - sum(moves.ends)) if exact else 0.0,
    )


def sampled(table: Table, games: int, seed: int, progress: Progress) -> ByMove:
    """The figures by move of games that are played perfectly."""
    longest = int(table.manifest["max_age"]) // 2
    visits, choices, gaps, margins, ends = np.zeros((5, longest))
    done = 0
    for turn in perfect_games(table, games, seed):
        going = ~np.isnan(turn.q).all(axis=1)
        ends += np.bincount(turn.made[~going], minlength=longest)
        q, made = turn.q[going], turn.made[going]
        choice = np.count_nonzero(~np.isnan(q), axis=1) > 1
        if len(q):
            best, worst = np.nanmax(q, axis=1), np.nanmin(q, axis=1)
            second = np.sort(np.nan_to_num(q, nan=-1.0), axis=1)[:, -2]
            visits += np.bincount(made, minlength=longest)
            gaps += np.bincount(made, best - worst, minlength=longest)
            choices += np.bincount(made[choice], minlength=longest)
            margins += np.bincount(made[choice], (best - second)[choice], minlength=longest)
        done += table.counts[turn.age // 2 - 2]
        progress(done, table.states)
    last = int(np.flatnonzero(ends)[-1]) + 1
    return ByMove(
        games,
        (visits[:last] / games).tolist(),
        [_ratio(*pair) for pair in zip(gaps[:last], visits[:last], strict=True)],
        [_ratio(*pair) for pair in zip(margins[:last], choices[:last], strict=True)],
        (ends[:last] / games).tolist(),
    )
