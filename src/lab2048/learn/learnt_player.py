"""A player for every learner without one of its own: `NAME:NETWORK` plays a trained network.

The attribute of this module with the name of a learner is the class of its player.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from lab2048.engine.arrays import Floats, Words
from lab2048.learn.network_files import (
    NetworkFile,
    check_board,
    damage_told,
    find_network,
    network_file,
    read_facts,
)
from lab2048.learn.registry import find_learner, is_learner, kind_of_network
from lab2048.players.player import Moves, Player, option


@dataclass(frozen=True, eq=False)
class LearntPlayer(Player):
    """Plays as the player that a learner makes of a network file."""

    network: str = option("", "the name of a network that was trained", kind="name")
    inner: Player = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        file = network_file(self.network, self.name, self.rules)
        check_board(self.network, read_facts(file.path), self.rules)
        object.__setattr__(self, "inner", _loaded(file, self.name))

    @property
    def identity(self) -> str:
        facts = read_facts(find_network(self.network, self.name, self.rules.name))
        return f"{self.spec} {facts['checksums']}"

    @property
    def draws(self) -> bool:
        return self.inner.draws

    @property
    def timed(self) -> bool:
        return self.inner.timed

    @property
    def parallel(self) -> bool:
        return self.inner.parallel

    @property
    def together(self) -> int:
        return self.inner.together

    @property
    def symmetric(self) -> bool:
        return self.inner.symmetric

    @property
    def points(self) -> bool:
        return self.inner.points

    @property
    def splits(self) -> bool:
        return self.inner.splits

    def values_many(self, boards: Words, words: Words) -> Floats:
        return self.inner.values_many(boards, words)

    def choose_many(self, boards: Words, words: Words) -> Moves:
        return self.inner.choose_many(boards, words)

    def probabilities(self, boards: Words) -> Floats:
        return self.inner.probabilities(boards)


@lru_cache(maxsize=8)
def _loaded(file: NetworkFile, kind: str) -> Player:
    """Return the player of a file, cached until the file changes."""
    cls = find_learner(kind).load()
    facts, tensors = cls.read_to_play(file.path)
    with damage_told(file.path):
        found: Player = cls.player_of(facts, tensors)
    return found


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not is_learner(name):
        raise AttributeError(f"there is no learner {name!r}")
    about = f"what {kind_of_network(name).partition(' ')[2]} has learnt"
    meaning = "values as its learner defines them"
    made = type(name, (LearntPlayer,), {"name": name, "about": about, "meaning": meaning})
    globals()[name] = made
    return made
