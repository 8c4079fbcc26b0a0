"""A user's own player: any function of a batch of boards."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab2048.engine.arrays import Bytes, Counts, Flags, Floats, Words, ranks_of
from lab2048.game import Board, Rules
from lab2048.players.player import Player, PlayerError

Function = Callable[[Bytes, Flags], Any]


@dataclass(frozen=True, eq=False)
class Custom(Player):
    """A player that is a function from boards and legal moves to moves, or to their probabilities.

    The function is given ranks (uint8, N x rows x cols; 0 is empty, 11 is 2048) and which moves are
    legal (bool, N x 4; up, right, down, left). It returns one direction per board (N integers), or
    the probability of each move (N x 4). Only the user knows whether it `draws`, so that two calls
    with the same boards may return different things; if so, it has no exact value.
    """

    function: Function
    title: str = ""
    random: bool = False
    alike: bool = False
    """Whether it plays all images of a board alike, which is not checked."""

    name = "python"
    about = "your own: python:MODULE.FUNCTION"
    meaning = "chance with which the move is made"

    @property
    def spec(self) -> str:
        return self.title or f"python:{getattr(self.function, '__name__', 'player')}"

    @property
    def identity(self) -> str:
        """The spec, and a hash of the sources of its modules, which the user may change."""
        named = sys.modules.get(self.title.removeprefix(f"{self.name}:").rpartition(".")[0])
        digest = hashlib.sha256()
        for thing in (named, self.function, type(self.function)):
            with suppress(OSError, TypeError):
                module = inspect.getmodule(thing)
                digest.update(inspect.getsource(module).encode() if module else b"")
        return f"{self.spec} {digest.hexdigest()}"

    @property
    def draws(self) -> bool:
        return self.random or bool(getattr(self.function, "draws", False))

    @property
    def parallel(self) -> bool:
        return False

    @property
    def symmetric(self) -> bool:
        return self.alike or bool(getattr(self.function, "symmetric", False))

    @property
    def why(self) -> str:
        return "its function draws by itself; let it return the chances of the moves"

    def values_many(self, boards: Words, words: Words) -> Floats:
        from lab2048.players.ties import legal_moves

        chances = self._ask(boards)
        return np.where(legal_moves(boards, self.rules), chances, np.nan)

    def choose_many(self, boards: Words, words: Words) -> Counts:
        """The moves that the words draw by the probabilities."""
        heaps = np.cumsum(self._ask(boards), axis=1)
        draws = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53 * heaps[:, -1]
        moves = (heaps <= draws[:, None]).sum(axis=1)
        last = 3 - (np.diff(heaps, axis=1, prepend=0.0)[:, ::-1] > 0).argmax(axis=1)
        return np.asarray(np.where(heaps[:, -1] > 0, np.minimum(moves, last), -1), np.int64)

    def probabilities(self, boards: Words) -> Floats:
        if self.draws:
            raise PlayerError(f"the chances of the moves of {self.spec} are not known: {self.why}")
        return self._ask(boards)

    def _ask(self, boards: Words) -> Floats:
        """The probabilities that the function returns, checked."""
        from lab2048.players.ties import legal_moves

        rules = self.rules
        ranks = ranks_of(boards, rules.cells)
        legal = legal_moves(boards, rules)
        some = legal.any(axis=1)
        chances = np.zeros((len(boards), 4))
        if some.any():  # the function never sees boards without a legal move
            shown = ranks[some].reshape(-1, rules.rows, rules.cols)
            answer = self.function(shown, legal[some])
            try:
                given = np.asarray(answer)
            except ValueError as error:
                raise PlayerError(f"{self.spec} returned no array: {error}") from None
            chances[some] = self._checked(given, legal[some], boards[some])
        return chances

    def _checked(self, given: NDArray[Any], legal: Flags, boards: Words) -> Floats:
        """Return the function's result as probabilities, or raise a `PlayerError`."""
        n = len(boards)
        if given.shape == (n,) and given.dtype.kind in "iu":
            wrong = (given < 0) | (given > 3)
            if wrong.any():
                self._refuse(f"direction {given[wrong][0]}, which is not 0 to 3", boards[wrong])
            chances = np.zeros((n, 4))
            chances[np.arange(n), given] = 1.0
        elif given.shape == (n, 4) and given.dtype.kind in "fiub":
            chances = given.astype(np.float64)
        else:
            raise PlayerError(
                f"{self.spec} returned an array of shape {given.shape} and type {given.dtype} for "
                f"{n} boards; moves are ({n},) whole numbers, chances ({n}, 4) numbers"
            )
        broken = ~np.isfinite(chances).all(axis=1) | (chances < 0).any(axis=1)
        if broken.any():
            self._refuse("chances that are negative or not numbers", boards[broken])
        illegal = (chances > 0) & ~legal
        if illegal.any():
            where = illegal.any(axis=1)
            move = ("up", "right", "down", "left")[int(illegal[where][0].argmax())]
            self._refuse(f"{move}, which is not legal", boards[where])
        sums = chances.sum(axis=1)
        off = np.abs(sums - 1) > 1e-6
        if off.any():
            self._refuse(f"chances that add up to {sums[off][0]:g}, not 1", boards[off])
        return np.asarray(chances / sums[:, None], np.float64)

    def _refuse(self, what: str, boards: Words) -> None:
        board = Board.from_packed(int(boards[0]), self.rules.rows, self.rules.cols)
        raise PlayerError(f"{self.spec} returned {what}, on {board}")


def load(path: str, rules: Rules) -> Custom:
    """The player `python:MODULE.FUNCTION`; modules in the current folder are found too."""
    module, _, name = path.rpartition(".")
    if not module or not name.isidentifier():
        raise PlayerError(f"python:MODULE.FUNCTION names a function in a module, not {path[:60]!r}")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise PlayerError(f"python:{path[:60]}: {error}") from None
    except (Exception, SystemExit) as error:  # whatever a user's module does when it is run
        raise PlayerError(f"python:{path[:60]}: {type(error).__name__}: {error}") from error
    function = getattr(found, name, None)
    if function is None:
        raise PlayerError(f"python:{path[:60]}: {module} has no {name}")
    if not callable(function):
        raise PlayerError(f"python:{path[:60]}: {name} cannot be called")
    return Custom(rules, _guarded(function, path), f"python:{path}")


def _guarded(function: Function, path: str) -> Function:
    """Wrap a function so that what it raises becomes an error of one line, with the place."""

    @functools.wraps(function)
    def guarded(ranks: Bytes, legal: Flags) -> Any:
        try:
            return function(ranks, legal)
        except (Exception, SystemExit) as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            raise PlayerError(
                f"python:{path} failed: {type(error).__name__}: {error} "
                f"({Path(last.filename).name}, line {last.lineno})"
            ) from error

    return guarded
