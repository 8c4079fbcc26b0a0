"""What players have in common that value boards by a heuristic."""

from __future__ import annotations

from lab2048.players.heuristics import HEURISTICS, Evaluate, Evaluator, evaluate_of, evaluator
from lab2048.players.player import Player


class HeuristicPlayer(Player):
    """A player with the option `heuristic`; its class says where among its options that is."""

    heuristic: str

    @property
    def identity(self) -> str:
        """Its spec, and the code of a registered heuristic."""
        return f"{self.spec} {HEURISTICS[self.heuristic].fingerprint}".rstrip()

    def evaluation(self) -> tuple[Evaluate, Evaluator]:
        """What values boards in its kernels, and the tables for that on its board."""
        return evaluate_of(self.heuristic), evaluator(self.heuristic, self.rules)
