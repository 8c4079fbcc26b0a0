"""Exact statistics of optimal play, from the table of a solved game.

They are sums over all states, weighted by the chance that optimal play visits them, which
`lab2048.solver.survey_walk` carries through the layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from lab2048.engine.arrays import Flags, Floats
from lab2048.game import Rules
from lab2048.game.notation import checked_threads, short, whole
from lab2048.solver.perfect_games import perfect_games
from lab2048.solver.problem import Problem
from lab2048.solver.survey_walk import MOMENTS, Visited, Walk, ends_of
from lab2048.solver.table import Table
from lab2048.solver.table_files import TableError
from lab2048.solver.tables import solve
from lab2048.solver.threads import WorkerThreads
from lab2048.tabular import Tabular, html_table

Progress = Callable[[int, int], object]

EXACT_CELLS = 9
"""On boards of up to this many cells the figures by move are exact."""
GAMES = 100_000
"""The number of games played for the figures by move on larger boards."""


@dataclass
class ByAge:
    """Figures per age, over all its states and weighted by visits."""

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
    """Figures per move number, weighted by visits; the first move is number 0."""

    games: int | None = None
    """The number of games played to estimate them; None if they are exact, 0 if left out."""
    visits: list[float] = field(default_factory=list)
    gap: list[float | None] = field(default_factory=list)
    margin: list[float | None] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    """The chance that a game ends after this number of moves."""


@dataclass
class Survey(Tabular):
    """Exact statistics of optimal play.

    >>> survey("2x2").rows()[0]["reached"]  # the chance to make 8
    1.0
    """

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
    """Chance missing from the exact figures by move (`lab2048.solver.survey_walk`)."""

    def as_json(self) -> dict[str, Any]:
        """Return the survey as plain values."""
        return asdict(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per tile: the chance to make it, and that it is the largest at the end."""
        return [
            {"tile": tile, "reached": chance, "largest_at_the_end": self.final_tile.get(tile, 0.0)}
            for tile, chance in self.reach.items()
        ]

    def _repr_html_(self) -> str:
        """Return the main figures and the table of tiles, as a notebook shows them."""
        states = sum(self.by_age.states)
        rows = [
            ("score", f"{self.score['mean']:,.2f} ± {self.score['deviation']:,.2f} (deviation)"),
            ("moves", f"{self.moves['mean']:,.2f} ± {self.moves['deviation']:,.2f} (deviation)"),
            ("states", f"{states:,}, {self.visited_states:,} of them visited by optimal play"),
        ]
        title = f"optimal play on {self.problem['board']}, p4 {self.problem['p4']:g}"
        return html_table([title, ""], rows) + super()._repr_html_()


# -- the figures ---------------------------------------------------------------------------------


class Tally:
    """Sums over all layers, from which the survey is made."""

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
        """Add a layer to the sums."""
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

    def _add_ends(self, layer: Visited, over: Flags) -> None:
        """Count the games that end in a layer."""
        keys, chances = layer.keys[over], layer.chances[over]
        scores, ranks = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        ends_of(keys, scores, ranks)
        self.final += np.bincount(ranks, chances[:, 0], minlength=18)
        # both are a number minus a multiple of the number of fours, whose moments are known
        self.score += _moments(scores.astype(np.float64), 4.0, chances)
        self.moves += _moments(np.full(len(keys), layer.age / 2 - 2), 1.0, chances)

    def _add_moves(
        self,
        layer: Visited,
        gap: Floats,
        margin: Floats,
        legal: Flags,
        choice: Flags,
    ) -> None:
        """Add the states of a layer to the sums by move number."""
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
        """The figures by move number, up to the end of the longest game."""
        last = int(np.flatnonzero(self.ends).max(initial=0)) + 1
        return ByMove(
            None,
            self.made[:last].tolist(),
            [_ratio(*pair) for pair in zip(self.gaps[:last], self.made[:last], strict=True)],
            [_ratio(*pair) for pair in zip(self.margins[:last], self.chosen[:last], strict=True)],
            self.ends[:last].tolist(),
        )


def _moments(numbers: Floats, factor: float, chances: Floats) -> Floats:
    """Total chance, first and second moment of `numbers` minus `factor` times the fours."""
    chance, first, second = chances[:, 0], chances[:, 1], chances[:, 2]
    return np.array(
        [
            chance.sum(),
            (numbers * chance - factor * first).sum(),
            (numbers**2 * chance - 2 * factor * numbers * first + factor**2 * second).sum(),
        ]
    )


def _ratio(total: Any, weight: Any) -> float | None:
    """The mean; None if the weight is 0."""
    return float(total / weight) if weight > 0 else None


def _spread(moments: Floats) -> dict[str, float]:
    """Mean and standard deviation."""
    mean = float(moments[1] / moments[0])
    return {"mean": mean, "deviation": math.sqrt(max(0.0, moments[2] / moments[0] - mean**2))}


def prepare(table: Table) -> None:
    """Compile what a survey needs, before progress is shown."""
    with WorkerThreads(1) as workers:
        Walk(table, workers, False)
    if table.rules.cells > EXACT_CELLS:
        table.compile()


def survey(
    table: Table | Problem | Rules | str,
    *,
    threads: int | None = None,
    by_move: bool = True,
    games: int = GAMES,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> Survey:
    """Return exact statistics of optimal play, from a table whose objective is the score.

    The table of a board or a problem is made if it is missing. `progress` is called with the
    number of states done and their total. Without `by_move` the figures by move are left out; on
    boards of more than `EXACT_CELLS` cells they come from `games` games, in a second pass.

    >>> found = survey("2x2")
    >>> round(found.score["mean"], 3), round(found.reach[16], 3)
    (66.964, 0.963)
    """
    if not isinstance(table, Table):
        with solve(table, threads=threads) as solved:
            return survey(
                solved, threads=threads, by_move=by_move, games=games, seed=seed, progress=progress
            )
    if not table.objective.is_score:
        raise TableError(f"a survey is made of a table for the score, not for {table.problem.goal}")
    if not (whole(games) or 0) >= 1:
        raise ValueError(f"`games` is a whole number of at least 1, not {short(games)}")
    exact = by_move and table.rules.cells <= EXACT_CELLS
    with WorkerThreads(checked_threads(threads)) as workers:
        walk = Walk(table, workers, exact)
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
    """The figures by move, estimated from games played perfectly."""
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
