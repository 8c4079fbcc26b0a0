"""The base class of players that value boards by a heuristic."""

from __future__ import annotations

from lab2048.players.heuristics import HEURISTICS, Evaluate, Evaluator, evaluate_of, evaluator
from lab2048.players.player import Player


class HeuristicPlayer(Player):
    """A player with the option `heuristic`; subclasses say where among their options that is."""

    heuristic: str

    @property
    def identity(self) -> str:
        """The spec, and the fingerprint of a registered heuristic."""
        return f"{self.spec} {HEURISTICS[self.heuristic].fingerprint}".rstrip()

    def evaluation(self) -> tuple[Evaluate, Evaluator]:
        """The function that values boards in its kernels, and its tables for this board."""
        return evaluate_of(self.heuristic), evaluator(self.heuristic, self.rules)
