"""Play games on a cluster: each task plays a block of game numbers.

A game depends on rules, seed, player and number alone (`arena`), so it does not matter where or in
which order it is played, or whether it is played twice because a worker was lost.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from lab2048.cluster.workers import ClusterError, Team
from lab2048.data.labels import Astray, judged
from lab2048.engine.arrays import Floats, Words
from lab2048.game import Rules
from lab2048.measure.arena import play_games, prepare
from lab2048.measure.journal import Played
from lab2048.players.player import Player
from lab2048.players.registry import make_player

BLOCKS = 8
"""Blocks of games per worker, so that all finish at about the same time."""
LONGEST = 1000
"""The largest number of games in a block."""


class Recipe(NamedTuple):
    """How a worker makes a player."""

    spec: str
    rules: Rules
    astray: float
    """The chance that it makes a random move."""
    identity: str
    """What the player must be; networks of the same name need not be the same."""

    @classmethod
    def of(cls, player: Player) -> Recipe:
        """The recipe of a player."""
        astray = player.random if isinstance(player, Astray) else 0.0
        inner = player.player if isinstance(player, Astray) else player
        return cls(inner.spec, player.rules, astray, inner.identity)


@cache
def made(recipe: Recipe) -> Player:
    """The player, ready to play."""
    player = make_player(recipe.spec, recipe.rules)
    if player.identity != recipe.identity:
        raise ClusterError(
            f"{recipe.spec} is not the same on all machines: its network or code differs"
        )
    chosen = Astray(recipe.rules, player, recipe.astray) if recipe.astray else player
    prepare(chosen)
    return chosen


def play_block(recipe: Recipe, seed: int, numbers: list[int]) -> list[Played]:
    """Task: play a block of games."""
    return list(play_games(made(recipe), iter(numbers), seed, threads=1))


def judge_block(recipe: Recipe, boards: Words) -> Floats:
    """Task: value the moves on some boards."""
    return judged(made(recipe), boards.copy())  # arrays from Ray are read-only


def far_games(
    team: Team, player: Player, games: Iterator[int], seed: int, threads: int | None = None
) -> Generator[Played, None, None]:
    """Play games as `arena.play_games` does; `threads` is ignored: the team has its workers."""
    recipe, numbers = Recipe.of(player), list(games)
    each = math.ceil(len(numbers) / team.workers)
    size = max(1, min(LONGEST, each, max(math.ceil(each / BLOCKS), player.together)))
    jobs = ((recipe, seed, numbers[begin : begin + size]) for begin in range(0, len(numbers), size))
    for found in team.each(play_block, jobs, ahead=2 * team.workers):
        yield from found


def far_judged(team: Team, teacher: Player, boards: Words) -> Floats:
    """The values of all moves on boards, as `labels.judged` finds them."""
    recipe = Recipe.of(teacher)
    parts = np.array_split(boards, BLOCKS * team.workers)
    found = team.run(judge_block, [(recipe, part) for part in parts if len(part)])
    return np.concatenate(found)
