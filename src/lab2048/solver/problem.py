"""What is solved: the rules of the game, and what the player is after."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

from lab2048.game import Board, Rules
from lab2048.notation import short

MAX_CELLS = 12
"""Larger boards make tiles that do not fit four bits, in more states than there are disks for."""
ON_THE_FLY = 8
"""Boards of up to so many cells are solved when they are asked for; it takes about a second."""
NEVER = 15
"""The rank of a tile that nobody makes on a board small enough to be solved."""
START_KINDS = ("2+2", "2+4", "4+4")
"""The kinds of start, by the two tiles."""
StartValues = dict[str, float | None]
SCORE, REACH, WORST_CASE = "score", "reach", "worst-case"


@dataclass(frozen=True, slots=True)
class Problem:
    """Rules and an objective.

    - `score`: the expected score of the rest of the game, discounted by `gamma` a move
    - `reach:T`: the chance to make the tile T; the game ends there
    - `worst-case`: the score that is certain, whatever spawns

    >>> Problem.of("3x3", objective="reach:512").name
    '3x3-reach-512'
    """

    rules: Rules
    objective: str = SCORE
    tile: int = 0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if self.rules.cells > MAX_CELLS:
            raise ValueError(
                f"boards of up to {MAX_CELLS} cells can be solved; {self.rules.name} has "
                f"{self.rules.cells}"
            )
        if self.objective not in (SCORE, REACH, WORST_CASE):
            raise ValueError(_not_an_objective(self.objective))
        if self.objective == REACH:
            tiles = [1 << rank for rank in range(3, self.rules.cells + 2)]
            if self.tile not in tiles:
                raise ValueError(
                    f"a tile to reach on {self.rules.name} is a power of two from 8 to "
                    f"{tiles[-1]}, not {short(self.tile)}"
                )
        real = isinstance(self.gamma, Real) and not isinstance(self.gamma, bool)
        if not real or not 0 <= self.gamma <= 1:
            raise ValueError(f"gamma is a number from 0 to 1, not {short(self.gamma)}")
        object.__setattr__(self, "gamma", float(self.gamma) + 0.0)  # -0.0 is 0.0
        if self.gamma != 1 and self.objective != SCORE:
            raise ValueError(f"gamma belongs to the objective score, not to {self.objective}")

    @classmethod
    def of(
        cls,
        board: str | Rules,
        *,
        p4: float | None = None,
        objective: str = SCORE,
        gamma: float = 1.0,
    ) -> Problem:
        """The problem of a board named like `3x3` and an objective named like `reach:512`."""
        rules = board if isinstance(board, Rules) else Rules.parse(board)
        if p4 is not None:
            rules = Rules(rules.rows, rules.cols, p4)
        kind, colon, tile = objective.partition(":") if isinstance(objective, str) else ("", "", "")
        if kind == REACH and tile.isascii() and tile.isdigit() and len(tile) < 10:
            return cls(rules, REACH, int(tile), gamma)
        if colon or kind == REACH or not isinstance(objective, str):
            raise ValueError(_not_an_objective(objective))
        return cls(rules, kind, 0, gamma)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Problem:
        """The problem that `as_json` describes."""
        return cls.of(
            found["board"], p4=found["p4"], objective=found["objective"], gamma=found["gamma"]
        )

    def as_json(self) -> dict[str, Any]:
        """What makes this problem different from others."""
        return {
            "board": self.rules.name,
            "p4": self.rules.p4,
            "objective": self.goal,
            "gamma": self.gamma,
        }

    @property
    def goal(self) -> str:
        """The objective as it is written on the command line."""
        return f"{REACH}:{self.tile}" if self.objective == REACH else self.objective

    @property
    def name(self) -> str:
        """The name of the table's folder, unless another is chosen."""
        parts = [self.rules.name, self.goal.replace(":", "-")]
        if self.rules.p4 != Rules(2, 2).p4:
            parts.append(f"p4-{self.rules.p4!r}")
        if self.gamma != 1:
            parts.append(f"gamma-{self.gamma!r}")
        return "-".join(parts)

    @property
    def stop(self) -> int:
        """The rank that ends the game when it is made; one that nobody makes if there is none."""
        return self.tile.bit_length() - 1 if self.objective == REACH else NEVER

    @property
    def rule(self) -> tuple[float, float, float, float]:
        """What the kernels need: p4, gamma, 1 for the worst case, 1 if rewards count."""
        return (
            self.rules.p4,
            self.gamma,
            float(self.objective == WORST_CASE),
            float(self.objective != REACH),
        )

    def starts(self) -> Iterator[tuple[str, float, Board]]:
        """Every start that has a chance: its kind, its chance, its canonical board."""
        rules = self.rules
        empty = Board((0,) * rules.cells, rules.rows, rules.cols)
        for first in rules.spawns(empty):
            for second in rules.spawns(first.board):
                tiles = sorted((1 << first.rank, 1 << second.rank))
                chance = first.probability * second.probability
                yield f"{tiles[0]}+{tiles[1]}", chance, second.board.canonical().board


def start_values(problem: Problem, value_of: Callable[[Board], float]) -> StartValues:
    """The value of a start drawn by the rules, and of each kind of start; None if it has no chance.

    A kind's value is the mean over the positions of the two tiles.
    """
    found = [(kind, chance, value_of(board)) for kind, chance, board in problem.starts()]
    values: StartValues = {"start": math.fsum(chance * value for _, chance, value in found)}
    for kind in START_KINDS:  # all starts of a kind have the same chance
        some = [value for name, _, value in found if name == kind]
        values[kind] = math.fsum(some) / len(some) if some else None
    return values


def _not_an_objective(found: object) -> str:
    return f"an objective is score, worst-case or reach:TILE, such as reach:512, not {short(found)}"
