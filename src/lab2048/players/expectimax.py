"""Expectimax: the best move on average over all spawns, some moves ahead.

    Q(s, a, d) = r + W(x, d - 1)          x is s after the move a, r its reward (if rewards count)
    W(x, 0)    = H(x)                     the heuristic
    W(x, d)    = sum over spawns s' on x of p * max over moves of Q(s', a, d)

With a cut-off, afterstates reached with less than this probability are valued by H at once.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lab2048.engine.arrays import Floats, Words
from lab2048.game import Game
from lab2048.players.expectimax_kernels import RootValues, heuristic_search
from lab2048.players.heuristic_player import HeuristicPlayer
from lab2048.players.heuristics import DEFAULT, HEURISTICS
from lab2048.players.player import Player, PlayerError, option, ties_option
from lab2048.players.search_memory import BUDGET, ENOUGH, MADE, MASK, Memory, new_memory, table_size
from lab2048.players.search_step import Spawning, spawning
from lab2048.players.time_limit import check_time

DEEPEST = 12
UNLIKELY = 0.003
"""The default cut-off with a time limit: pruning what is less likely goes deeper, and plays
better."""
FIRST_RATE = 1e7


class _Rooms(threading.local):
    """The memories of a thread by depth, for all players: their own would live as long as they."""

    def __init__(self) -> None:
        self.by_depth: dict[int, Memory] = {}


_rooms = _Rooms()


def time_option() -> Any:
    """The option for the time per move."""
    about = "time per move, in place of a depth"
    return option(None, about, low=1e-4, high=3600, kind="seconds")


def cutoff_option() -> Any:
    """The option for the cut-off probability."""
    about = f"prune what is less likely than this; {UNLIKELY} with a time, else 0"
    return option(None, about, low=0, high=1)


@dataclass(frozen=True, eq=False)
class Searcher(Player):
    """A player that searches to a depth, or as deep as a time limit allows, with any evaluator."""

    depth: int = option(3, "own moves to look ahead", low=1, high=DEEPEST)
    time: float | None = time_option()
    cutoff: float | None = cutoff_option()
    ties: str = ties_option()

    _own: threading.local = field(default_factory=threading.local, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.timed and self.depth != type(self).depth:
            raise PlayerError("it has a depth or a time, not both")

    @property
    def timed(self) -> bool:
        return self.time is not None

    @property
    def symmetric(self) -> bool:
        # what is cut off depends on how a board was reached first
        return self.splits and not self.cutoff and not self.timed

    def prepare(self) -> None:
        """Compile, without spending the time of a whole move."""
        replace(self, time=None, depth=2).choose(Game(self.rules, 0).board)

    def search(self) -> tuple[RootValues, Any]:
        """The search kernel, and the evaluator that it is given."""
        raise PlayerError(f"{self.name} has no search")

    def spawns(self, cutoff: float) -> Spawning:
        """The spawns that a search considers."""
        return spawning(self.rules, cutoff)

    def values_many(self, boards: Words, words: Words) -> Floats:
        search, by = self.search()
        usual = UNLIKELY if self.timed else 0.0
        spawns = self.spawns(usual if self.cutoff is None else self.cutoff)
        out = np.empty((len(boards), 4))
        if self.timed:
            for i in range(len(boards)):
                self._deepen(boards[i : i + 1], out[i : i + 1], by, spawns)
        else:
            search(boards, self.depth, by, spawns, self.memory(self.depth), out)
            check_time()
        return out

    def memory(self, depth: int) -> Memory:
        """This thread's memory for searches of a depth, which all its players share."""
        found = _rooms.by_depth.get(depth)
        if found is None:
            found = _rooms.by_depth[depth] = new_memory(depth)
        found.tally[BUDGET], found.tally[MASK] = ENOUGH, table_size(depth) - 1
        return found

    def _deepen(self, board: Words, out: Floats, by: Any, spawns: Any) -> None:
        """Deepen the search until the time is up; a depth that is not finished does not count."""
        assert self.time is not None
        end = time.perf_counter() + self.time
        search, _ = self.search()
        memory = self.memory(DEEPEST)
        found = np.empty_like(out)
        rate: float = getattr(self._own, "rate", FIRST_RATE)  # moves per second
        for depth in range(1, DEEPEST + 1):
            began = time.perf_counter()
            before = int(memory.tally[MADE])
            allowed = int(rate * (end - began)) if depth > 1 else ENOUGH
            memory.tally[BUDGET] = before + allowed
            memory.tally[MASK] = table_size(depth) - 1
            search(board, depth, by, spawns, memory, found)
            made = int(memory.tally[MADE]) - before
            if made > 10_000:
                rate += 0.2 * (made / (time.perf_counter() - began) - rate)
            if depth > 1 and (made > allowed or spawns.stop[0]):
                spawns.stop[0] = 0  # no error: the result of the depth before counts
                break
            out[:] = found
            if time.perf_counter() >= end:
                break
        self._own.rate = rate


@dataclass(frozen=True, eq=False)
class Expectimax(HeuristicPlayer, Searcher):
    """Expectimax to a depth, or as deep as a time limit allows."""

    heuristic: str = option(DEFAULT, "what the last board is worth", choices=HEURISTICS)
    cells: int = option(0, "spawn on at most this many cells (Zhou); 0: on all", low=0, high=16)

    name = "expectimax"
    about = "the best move on average over all spawns, some moves ahead"
    meaning = "expected value of the last board, by the heuristic, with rewards if they count"

    @property
    def symmetric(self) -> bool:
        return super().symmetric and not self.cells and HEURISTICS[self.heuristic].symmetric

    def spawns(self, cutoff: float) -> Spawning:
        return spawning(self.rules, cutoff, self.cells)

    def search(self) -> tuple[RootValues, Any]:
        evaluate, by = self.evaluation()
        return heuristic_search(self.rules.rows, self.rules.cols, evaluate), by
