"""Review a game move by move: what each was worth, judged by a table or a stronger player."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab2048.engine.arrays import Floats
from lab2048.formatting import number
from lab2048.game import Board, Direction, Rules
from lab2048.game.record import Record, RecordError, Turn
from lab2048.measure.marks import (
    BEST,
    NEGLIGIBLE,
    caveat,
    count_marks,
    error_of,
    is_mistake,
    mark,
    marks_text,
    settle,
)
from lab2048.measure.replay import read_game
from lab2048.players.player import Player
from lab2048.players.registry import PlayerLike, player
from lab2048.players.shipped import shipped
from lab2048.solver.optimal import objective_of
from lab2048.solver.table import Table
from lab2048.solver.tables import table_answering
from lab2048.tabular import Tabular

WORST = 5
AT_ONCE = 1 << 20
"""Moves judged per batch."""


class Step(NamedTuple):
    """One move of a game and what it was worth."""

    number: int
    """Counted from 1."""
    board: Board
    move: Direction
    best: Direction
    """The first of the best moves; the one that was made if it is among them."""
    value: float
    """Of the best move."""
    regret: float
    """How much less than the best move's value; 0 if the judge cannot tell them apart."""
    gap: float
    """Best less worst of the legal moves."""
    loss: float | None
    """Total regret so far, including this move; None if the judge is not exact."""
    mark: str
    """How good the move was: see `lab2048.measure.marks`."""

    def as_json(self) -> dict[str, Any]:
        """The step with its board as ranks and its moves as words."""
        words = {"board": self.board.hex, "move": str(self.move), "best": str(self.best)}
        return {**self._asdict(), **words}


def usual_judge(rules: Rules) -> str:
    """The judge of games on an unsolved board: a strong network, where one is shipped."""
    return "ntuple:depth=3" if shipped("ntuple", rules.name).exists() else "expectimax"


class Steps(Tabular, Sequence[Step]):
    """Some moves of a game. A notebook shows their boards.

    >>> Steps([]).rows()
    []
    """

    def __init__(self, steps: Sequence[Step], exact: bool = True) -> None:
        self._steps, self._exact = steps, exact

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, which: Any) -> Any:
        return self._steps[which]

    def as_json(self) -> list[dict[str, Any]]:
        """Return every move with all its figures."""
        return [step.as_json() for step in self]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per move."""
        return [
            {
                "move": step.number,
                "made": str(step.move),
                "mark": step.mark,
                "better": str(step.best),
                "lost": step.regret if self._exact else None,
                "board": str(step.board),
            }
            for step in self
        ]

    def _repr_html_(self) -> str:
        """Return one picture per move, with the move made and a better one."""
        cards = [
            f'<div style="margin:0 1em 1em 0">{step.board._repr_svg_()}'
            f"<p>move {step.number}: {step.move}, {step.mark}; better {step.best}</p></div>"
            for step in self
        ]
        return f'<div style="display:flex;flex-wrap:wrap">{"".join(cards)}</div>'


@dataclass(frozen=True)
class Review(Tabular):
    """A game reviewed move by move, and its judge.

    >>> from lab2048 import Game, Rules
    >>> game = Game(Rules(2, 2), seed=2)
    >>> _ = game.play(game.board.legal_moves[-1])
    >>> review(Record.of(game, "me")).rows()[0]["mark"]
    'best'
    """

    record: Record
    judge: str
    exact: bool
    """Whether regrets are exact, so that their sum is what the game lost."""
    unit: str
    """The unit of losses: points, or a chance."""
    caveat: str
    """The limits of the marks of this judge, in words; empty if they are exact."""
    steps: Sequence[Step]

    def worst(self, count: int = WORST) -> Steps:
        """Return the largest mistakes, largest first."""
        return Steps(worst(self.steps, count), self.exact)

    def as_json(self) -> dict[str, Any]:
        """Return what `lab2048 review --json` prints: the figures of the game, and every move."""
        head = {"player": self.record.player, "score": self.record.score}
        head |= {"judge": self.judge, "exact": self.exact, "caveat": self.caveat or None}
        return {**head, **summary(self.steps), "steps": [step.as_json() for step in self.steps]}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per move."""
        return Steps(self.steps, self.exact).rows()

    def _repr_html_(self) -> str:
        """Return the figures of the game, and its worst moves with their boards."""
        head = f"{self.record.player} on {self.record.rules.name}, judged by {self.judge}"
        facts = html.escape("; ".join([head, *self.facts()]))
        return f"<p>{facts}</p>{self.worst()._repr_html_()}"

    def facts(self) -> list[str]:
        """Return the figures of the game in words."""
        record = self.record
        found = summary(self.steps)
        counts = [marks_text(*each) for each in found["marks"].items()]
        facts = [
            f"score {record.score:,}",
            f"largest tile {record.max_tile}",
            f"{found['moves']:,} moves ({', '.join(counts)})",
            f"{_share(found['agreement'])} of the moves are best",
            f"accuracy {_share(found['accuracy'])}",
        ]
        if found["loss"] is not None:
            facts.append(f"lost {number(found['loss'])} {self.unit}")
        return facts

    def lost(self, step: Step) -> str:
        """What a move gave away; a share of the value, for mistakes, if the judge is not exact."""
        if self.exact:
            return f"lost {number(step.regret)} {self.unit}"
        share = step.regret / max(step.value, 1.0)
        return f"about {share:.0%} less" if is_mistake(step.mark) else ""


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def review(
    source: Record | Path | str,
    judge: Table | PlayerLike | None = None,
    *,
    game: int = 1,
) -> Review:
    """Go through a game and judge every move.

    `source` is a record, or a file of games, of which `game` is the number, counted from 1. The
    judge is a `Table`, a player or its spec; None is the table of the board if it is solved or
    small, else the package's strong player.

    >>> from lab2048 import Game, Record, Rules, review
    >>> game = Game(Rules(2, 2), seed=1)
    >>> while not game.over:
    ...     _ = game.play(game.board.legal_moves[0])
    >>> found = review(Record.of(game, "the first legal move"))
    >>> found.judge, found.exact, len(found.steps) == len(game.moves)
    ('perfect play', True, True)
    """
    record = source if isinstance(source, Record) else read_game(source, game)
    with judge_of(record, judge) as chosen:
        try:
            return reviewed(record, chosen)
        except RecordError as error:
            where = "" if isinstance(source, Record) else f"{source}, game {game}: "
            raise RecordError(f"{where}{error}") from None


@contextmanager
def judge_of(
    record: Record, judge: Table | PlayerLike | None = None, table: Table | None = None
) -> Iterator[Table | Player]:
    """Choose who judges a game: `judge`, or `table` if the game is in it, or a strong player."""
    with ExitStack() as stack:
        if isinstance(judge, Table):
            stack.enter_context(table_answering(record.rules, judge, agree=("board", "p4")))
            yield judge
            return
        if judge is None and table is None:
            table = stack.enter_context(table_answering(record.rules))
        begun = record.start
        if judge is None and table is not None and (begun is None or begun in table):
            yield table
            return
        # the board is not solved, or the game starts where no game by the rules comes
        yield player(judge or usual_judge(record.rules), record.rules)


def reviewed(record: Record, judge: Table | Player) -> Review:
    """Return a game with every move judged."""
    name = "perfect play" if isinstance(judge, Table) else judge.spec
    objective = objective_of(judge)
    unit = "points" if objective is None else objective.unit
    steps = list(review_steps(record, judge, AT_ONCE))
    return Review(record, name, error_of(judge) == 0, unit, caveat(judge), steps)


def review_steps(record: Record, judge: Table | Player, size: int = 1) -> Iterator[Step]:
    """Yield the moves of a game in order, judged in batches of `size`."""
    turns = list(record.turns())
    loss = 0.0
    exact = error_of(judge) == 0
    for begin in range(0, len(turns), size):
        part = turns[begin : begin + size]
        for place, (turn, q) in enumerate(zip(part, _values(part, judge), strict=True), begin + 1):
            best, least = float(np.nanmax(q)), float(np.nanmin(q))
            regret = best - float(q[turn.move])
            loss += regret
            first = turn.move if regret == 0 else Direction(int(np.nanargmax(q)))
            facts = turn.board, turn.move, first, best, regret, best - least
            yield Step(place, *facts, loss if exact else None, mark(regret, best, judge))


def _values(turns: Sequence[Turn], judge: Table | Player) -> Floats:
    """What each move is worth on each board; NaN if it is illegal."""
    boards = [turn.board for turn in turns]
    packed = np.array([board.stand_in().packed for board in boards], np.uint64)
    if isinstance(judge, Player):
        values = judge.values_many(packed, np.zeros_like(packed))
        if np.isinf(values).any():
            raise ValueError(f"{judge.spec} cannot judge: it gives some moves minus infinity")
        return settle(values, judge)
    q = judge.probe_many(packed).q
    assert q is not None
    missing = np.isnan(q).all(axis=1)
    if missing.any():
        board = boards[int(missing.argmax())]
        raise RecordError(f"{board} is not in the table: no game by its rules reaches it")
    return settle(q, judge)


def summary(steps: Sequence[Step]) -> dict[str, Any]:
    """The figures of a reviewed game.

    `loss` is the expected score that all moves together gave away; only an exact judge knows it.
    `marks` says how many moves have each mark, `agreement` is the share of those marked best.
    `accuracy` is the mean of (q - worst) / (best - worst) over the moves that matter, those where
    some legal move is worse than another: 1 if all were best, 0 if all were worst.
    """
    open_moves = [step for step in steps if step.gap > NEGLIGIBLE * max(abs(step.value), 1.0)]
    right = sum(step.mark == BEST for step in steps)
    return {
        "moves": len(steps),
        "marks": count_marks(step.mark for step in steps),
        "loss": steps[-1].loss if steps else None,
        "agreement": right / len(steps) if steps else None,
        "accuracy": float(np.mean([1 - step.regret / step.gap for step in open_moves]))
        if open_moves
        else None,
        "worst": [
            {
                "move": step.number,
                "board": str(step.board),
                "made": str(step.move),
                "better": str(step.best),
                "regret": step.regret,
                "mark": step.mark,
            }
            for step in worst(steps)
        ],
    }


def worst(steps: Sequence[Step], count: int = WORST) -> list[Step]:
    """The moves with the largest regret of those not marked best, largest first."""
    mistakes = [step for step in steps if step.mark != BEST]
    return sorted(mistakes, key=lambda step: -step.regret)[:count]
