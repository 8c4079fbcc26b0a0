"""A game gone through move by move: what each was worth, against a table or a stronger player."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lab2048.game import Board, Direction, Rules
from lab2048.learn.files import shipped
from lab2048.player import Floats, Player
from lab2048.records import Record, RecordError, Turn
from lab2048.solve.optimal import even_out
from lab2048.solve.table import Table

WORST = 5
AT_ONCE = 1 << 20
"""Moves that are judged at a time."""


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
    gap: float
    """Best less worst of the legal moves."""
    loss: float
    """All regret so far, this move's included."""


def usual_judge(rules: Rules) -> str:
    """Who judges games on a board that is not solved: a strong network, where there is one."""
    return "ntuple" if shipped("ntuple", rules.name).exists() else "expectimax"


def review(record: Record, judge: Table | Player) -> list[Step]:
    """Every move of a game, with what the judge says about it."""
    return list(review_steps(record, judge, AT_ONCE))


def review_steps(record: Record, judge: Table | Player, size: int = 1) -> Iterator[Step]:
    """The same, one after the other; so many are judged at a time."""
    turns = list(record.turns())
    loss = 0.0
    for begin in range(0, len(turns), size):
        part = turns[begin : begin + size]
        for number, (turn, q) in enumerate(zip(part, _values(part, judge), strict=True), begin + 1):
            best, least = float(np.nanmax(q)), float(np.nanmin(q))
            regret = best - float(q[turn.move])
            loss += regret
            first = turn.move if regret == 0 else Direction(int(np.nanargmax(q)))
            facts = turn.board, turn.move, first, best, regret, best - least, loss
            yield Step(number, *facts)


def _values(turns: Sequence[Turn], judge: Table | Player) -> Floats:
    """What each move is worth on each board; NaN if it is illegal."""
    boards = [turn.board for turn in turns]
    packed = np.array([board.stand_in().packed for board in boards], np.uint64)
    if isinstance(judge, Player):
        values = judge.values_many(packed, np.zeros_like(packed))
        if np.isinf(values).any():
            raise ValueError(f"{judge.spec} cannot judge: it gives moves minus infinity")
        return even_out(values, lambda best: judge.tie * np.maximum(np.abs(best), 1.0))
    q = judge.probe_many(packed).q
    assert q is not None
    missing = np.isnan(q).all(axis=1)
    if missing.any():
        board = boards[int(missing.argmax())]
        raise RecordError(f"{board} is not in the table: no game by its rules comes there")
    return even_out(q, judge.tolerance)


def summary(steps: Sequence[Step]) -> dict[str, Any]:
    """The figures of a game that was reviewed.

    `accuracy` is the mean of (q - worst) / (best - worst) over the moves that matter, those where
    some legal move is worse than another: 1 if all were best, 0 if all were worst.
    """
    open_moves = [step for step in steps if step.gap > 0]
    right = sum(step.regret == 0 for step in steps)
    return {
        "moves": len(steps),
        "loss": steps[-1].loss if steps else 0.0,
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
            }
            for step in worst(steps)
        ],
    }


def worst(steps: Sequence[Step]) -> list[Step]:
    """The largest mistakes, largest first."""
    mistakes = [step for step in steps if step.regret > 0]
    return sorted(mistakes, key=lambda step: -step.regret)[:WORST]
