"""The exact value of a player: its mean score and how its games end, without sampling.

Age by age, this finds the boards that the player's games reach, and m, the probability that a game
reaches each. P, the probability that the player makes a move, carries m on to the next boards:

    m(x)  = sum over states s of m(s) * P(a | s)       x is s after the move a
    m(s') = sum over afterstates x of m(x) * p(s' | x)

and the mean score is the sum of m(s) * P(a | s) * r(s, a). It equals the value of the start that
induction with the player's own choices would find, and needs no more than three ages in memory.

Boards are not made canonical: most players do not play the symmetric images of a board alike, so
asking them only about canonical boards would give wrong values. A player that declares that it does
(`symmetric`) is asked only about canonical boards, of which there are up to eight times fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lab2048.game import Game, Rules
from lab2048.game.notation import checked_threads
from lab2048.players.player import Player
from lab2048.players.registry import PlayerLike
from lab2048.players.registry import player as make_player
from lab2048.solver.policy_kernels import ENDS, MOVES, REWARD
from lab2048.solver.policy_walk import Layer, Walk
from lab2048.solver.problem import MAX_CELLS
from lab2048.solver.tables import TableLike, table_answering
from lab2048.tabular import Tabular


@dataclass
class ExactValue(Tabular):
    """Exact figures of a player's games, computed without playing any.

    >>> found = exact_value("corner", "2x2")
    >>> round(found.reach[16], 4), found.boards
    (0.2355, 218)
    """

    player: str = ""
    value: float = 0.0
    """The mean score."""
    moves: float = 0.0
    """The mean number of moves."""
    boards: int = 0
    """The number of different boards that its games reach; canonical ones if it is `symmetric`."""
    ends: dict[int, float] = field(default_factory=dict)
    """The probability of each tile to be the largest at the end."""
    optimal_value: float | None = None
    """The mean score of perfect play; None if the board is not solved."""

    @property
    def regret(self) -> float | None:
        """How much more perfect play scores; None if the board is not solved."""
        return None if self.optimal_value is None else self.optimal_value - self.value

    def as_json(self) -> dict[str, Any]:
        """Return all figures as plain values."""
        return {
            "value": self.value,
            "optimal_value": self.optimal_value,
            "regret": self.regret,
            "moves": self.moves,
            "reach": {str(tile): chance for tile, chance in self.reach.items()},
            "boards": self.boards,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the main figures in one row."""
        names = ("player", "value", "optimal_value", "regret", "moves", "boards")
        return [{name: getattr(self, name) for name in names}]

    @property
    def reach(self) -> dict[int, float]:
        """The probability of making each tile."""
        tiles = sorted(self.ends)
        return {tile: sum(self.ends[t] for t in tiles if t >= tile) for tile in tiles}


Visit = Callable[[Layer], object]


def check_exact(player: Player) -> None:
    """Raise a `ValueError` if the exact value of a player cannot be computed."""
    if player.rules.cells > MAX_CELLS:
        raise ValueError(f"exact values are for boards that can be solved, not {player.rules.name}")
    player.probabilities(np.array([Game(player.rules, 0).board.packed], np.uint64))


def evaluate_policy(
    player: Player, *, threads: int | None = None, visit: Visit = lambda layer: None
) -> ExactValue:
    """Return the exact value of a player on its board.

    A player that uses random numbers or the clock is refused with a `PlayerError`. `visit` is
    called with every layer, youngest first.
    """
    workers = checked_threads(threads)
    check_exact(player)
    exact = ExactValue(player.spec)
    with ThreadPoolExecutor(workers) as pool:
        walk = Walk(player, pool)
        while walk.ages:
            layer = walk.youngest()
            visit(layer)
            exact.boards += len(layer.states)
            walk.go_on(layer)
    exact.value, exact.moves = float(walk.sums[REWARD]), float(walk.sums[MOVES])
    ends = walk.sums[ENDS:].tolist()
    exact.ends = {1 << rank: chance for rank, chance in enumerate(ends) if chance > 0}
    return exact


def exact_value(
    player: PlayerLike,
    board: str | Rules | None = None,
    *,
    p4: float | None = None,
    table: TableLike = True,
    threads: int | None = None,
    visit: Visit = lambda layer: None,
) -> ExactValue:
    """Return the exact mean score of a player and its distance from perfect play, without games.

    The player is a spec, a `Player` or a function (`lab2048.player`); its moves, or their
    probabilities, must depend on the board alone. `table` is what to compare with: a `Table`, the
    name of one, True for that of the board if it is solved or small, False for none. `visit` is
    called with every `Layer` of boards that its games reach, youngest first.

    >>> found = exact_value("greedy", "2x2")
    >>> round(found.value, 3), round(found.regret, 3)
    (26.793, 40.171)
    """
    usual = player.rules if isinstance(player, Player) else "4x4"
    entrant = make_player(player, board or usual, p4=p4)
    check_exact(entrant)
    with table_answering(entrant.rules, table) as known:
        found = evaluate_policy(entrant, threads=threads, visit=visit)
        if known is not None:
            found.optimal_value = known.start_value["start"]
    return found
