"""Models of requests and answers, for their validation and the OpenAPI description."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from lab2048.game import P4
from lab2048.studio.limits import SPEC


class Trouble(BaseModel):
    """What was wrong with a request."""

    detail: str = Field(description="One line that says what was wrong and what would be right.")


class RulesFacts(BaseModel):
    """The rules of a game."""

    rows: int
    cols: int
    p4: float


class MoveFacts(BaseModel):
    """One of the four moves; null where it is illegal, or the board is not solved."""

    legal: bool
    reward: int | None
    after: str | None = Field(description="The board after the move, before the spawn.")
    after_value: float | None
    q: float | None = Field(description="reward + after_value")
    regret: float | None = Field(description="The best move's q less this one's.")
    optimal: bool | None
    mark: str | None = Field(description="best, good, slip, mistake or blunder.")


class SpawnFacts(BaseModel):
    """A tile that may come after a move."""

    cell: int
    tile: int
    probability: float
    board: str
    value: float | None


class Thoughts(BaseModel):
    """A player's opinion of the moves of a position."""

    meaning: str
    points: bool = Field(description="Whether the values are expected scores.")
    values: dict[str, float | None]
    marks: dict[str, str | None] = Field(
        description="As of a move; `other` is worse, to a player whose error is not known."
    )
    choice: str | None


class Analysis(BaseModel):
    """A position and its moves: the object of `lab2048 probe --json`."""

    board: str
    rules: RulesFacts
    objective: str | None = Field(description="What the table was solved for; null without one.")
    gamma: float | None
    terminal: bool
    value: float | None
    moves: dict[str, MoveFacts]
    players: dict[str, Thoughts] = Field(description="By spec.")
    spawns: list[SpawnFacts] | None = Field(None, description="Only with `after`.")
    note: str | None = Field(description="Why there are no exact values, if there are none.")
    solvable: bool = Field(description="Whether `POST /api/tables` would solve the board.")


class Reach(BaseModel):
    """The chance to make each tile from a position, under play that aims at just that tile."""

    board: str
    chances: dict[str, float]
    missing: list[int] = Field(description="Tiles whose tables have not been made.")
    note: str | None


class OptionFacts(BaseModel):
    """An option of a player."""

    name: str
    about: str
    default: Any
    choices: list[str]
    most: float | None = Field(description="The largest value that a request may have.")


class PlayerFacts(BaseModel):
    """A player."""

    name: str
    about: str
    values: str
    options: list[OptionFacts]
    trouble: str | None = Field(description="Why it cannot play on this board, if so.")


class TableFacts(BaseModel):
    """A solved board."""

    name: str
    board: str
    p4: float
    objective: str
    gamma: float
    states: int
    value: float | None = Field(description="The expected value of a start drawn by the rules.")
    bytes: int
    kept: bool = Field(description="False if only a summary was kept.")
    surveyed: bool


class MakingFacts(BaseModel):
    """A table or a survey in progress."""

    name: str
    seconds: float
    share: float = Field(description="How much is done, from 0 to 1.")


class Tables(BaseModel):
    """All solved boards, and the tables and surveys in progress."""

    tables: list[TableFacts]
    making: list[MakingFacts]


class Wanted(BaseModel):
    """A board to be solved."""

    board: str = Field(max_length=9, examples=["3x3"])
    p4: float = Field(P4, ge=0, le=1)


class GameToReview(BaseModel):
    """A game to review, as a line of the files that `evaluate --save` writes."""

    game: dict[str, Any] = Field(description="See docs/formats.md, games on disk.")
    judge: str | None = Field(
        None, max_length=SPEC, description="A player; null is the table, or else a strong player."
    )
