"""Training of n-tuple networks: settings, blocks of games on all cores, checkpoints.

With one thread the weights are the same, bit for bit, whenever a training is repeated, and whether
or not it is interrupted: game n of a training has the spawns of game n of its seed. Several threads
learn from different games and change the same weights without asking one another, so a change is
lost now and then, and no two trainings are quite alike.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab2048.board import Words
from lab2048.chance import checked_seed
from lab2048.game import Rules
from lab2048.jit import U
from lab2048.lanes import Counts, game_keys
from lab2048.learn.ntuple import (
    Network,
    Weights,
    named_networks,
    network_kernels,
    new_weights,
)
from lab2048.learn.td import Lesson, Trail, learning_kernels, lines_of, new_trail
from lab2048.learn.weights import Stored
from lab2048.notation import checked_threads
from lab2048.search.steps import spawning
from lab2048.wording import nearest

RATES = {"td": 0.1, "tc": 1.0, "state": 0.1, "q": 0.1}
"""How fast each rule learns, unless told otherwise."""
SMALL = 12
"""A board of fewer cells is small: from one move to the next, most of what is looked up stays.
Learning backward then goes from value to value that it has just changed, and overshoots."""
SHORT, SHORT_RATE = 5, 0.5
"""How fast temporal coherence learns backward if a tuple has fewer cells: its images look the same
on many a board and change the same weight several times, so that whole steps go ever further."""
LARGEST = 1e12
"""A value beyond this is none."""
SHARE = 0.9
"""How much of a training of two phases is the first."""
METHODS = ("td", "tc", "otd", "otc", "td+tc", "otd+tc", "state", "q")
ORDERS = ("backward", "forward")
RANGES = {"gamma": (0, 1), "epsilon": (0, 1), "rate": (1e-6, 2), "initial": (-1e9, 1e9)}
"""What numbers may be; at a rate of 0 nothing is learnt, above 2 no step gets nearer."""
PART = 32
"""So many games are learnt from in one go at most: in between it can be stopped."""
RECENT = 1000
"""So many of the last games tell how well it plays."""


class Phase(NamedTuple):
    """A part of a training that learns by one rule."""

    rule: str
    """td, state or q: what is learnt."""
    coherent: bool
    rate: float


@dataclass(frozen=True)
class Settings:
    """What a training depends on, besides how long it lasts."""

    rules: Rules
    network: Network
    method: str = "tc"
    rate: float | None = None
    """How fast the first phase learns; the usual if None (`RATES`)."""
    initial: float | None = None
    """What every board is worth at first: 0, or if the method is optimistic `usual_initial`."""
    gamma: float = 1.0
    epsilon: float = 0.0
    order: str | None = None
    """Backward; on a small board, and of Q-learning, forward."""
    seed: int = 1

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            near = nearest(self.method, METHODS)
            raise ValueError(f"there is no method {self.method[:40]!r}; {near}")
        optimistic = self.method.startswith("o")
        if self.initial is None:
            self._set(initial=usual_initial(self.rules) if optimistic else 0.0)
        elif self.initial and not optimistic:
            raise ValueError(f"only otd, otc and otd+tc have an initial value, not {self.method}")
        if self.order is None:
            small = self.rules.cells < SMALL
            self._set(order="forward" if self.method == "q" or small else "backward")
        if self.rate is None:
            self._set(rate=self._usual_rates()[0])
        if self.order not in ORDERS:
            raise ValueError(f"the order is backward or forward, not {str(self.order)[:40]!r}")
        if self.method == "q" and self.order == "backward":
            raise ValueError("Q-learning is forward: its target is the best move, not the one made")
        if self.epsilon and self.method != "q":
            raise ValueError("only Q-learning explores: epsilon is for the method q")
        for name, (low, high) in RANGES.items():
            found = getattr(self, name)
            if found is not None:
                if not low <= found <= high:
                    raise ValueError(f"{name} is a number from {low:g} to {high:g}, not {found}")
                self._set(**{name: float(found)})  # kernels are compiled for these
        self._set(seed=checked_seed(self.seed))

    def _set(self, **values: Any) -> None:
        """Set fields, which nobody else may."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def phases(self) -> list[Phase]:
        """What is learnt one after the other."""
        assert self.rate is not None
        rates = [self.rate, *self._usual_rates()[1:]]
        return [
            Phase("td" if name == "tc" else name, name == "tc", rate)
            for name, rate in zip(self._parts(), rates, strict=True)
        ]

    def _parts(self) -> list[str]:
        """What the method consists of, without the initial value."""
        return [name.removeprefix("o") for name in self.method.split("+")]

    def _usual_rates(self) -> list[float]:
        """How fast each part learns, unless told otherwise."""
        short = self.order == "backward" and min(map(len, self.network.tuples)) < SHORT
        return [SHORT_RATE if short and name == "tc" else RATES[name] for name in self._parts()]

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Settings:
        """The settings of a training that was stored."""
        rules = Rules.parse(facts["board"], facts["p4"])
        names = ("method", "rate", "initial", "gamma", "epsilon", "order", "seed")
        network = Network.of(" ".join(facts["tuples"]), rules)
        return cls(rules, network, **{name: facts[name] for name in names})

    @property
    def facts(self) -> dict[str, Any]:
        """The settings as they are stored with the weights."""
        found = asdict(self)
        del found["rules"], found["network"]
        board, tuples = self.rules.name, list(self.network.tuples)
        return (
            {"board": board, "tuples": tuples}
            | found
            | {"p4": self.rules.p4, "rule": self.phases[0].rule}
            | {"rates": [phase.rate for phase in self.phases]}
        )


class DivergedError(ValueError):
    """What is learnt has grown beyond all bounds."""


class Training:
    """A network that learns: its weights, and how far it has come."""

    def __init__(self, settings: Settings, threads: int | None = None) -> None:
        self.settings = settings
        self.weights: Weights
        self.threads = (
            usual_threads(settings.rules) if threads is None else checked_threads(threads)
        )
        self.games = 0
        self.moves = 0
        self.seconds = 0.0
        self.stopped = False
        """Set by another thread, or by Ctrl-C: what has begun is finished."""
        self.reach: dict[str, float] = {}
        """How many of the last games reached each tile."""
        self.recent = np.zeros((0, 3), np.int64)
        """The results of those games."""
        self._begin(0)
        self._trails = [new_trail() for _ in range(self.threads)]

    @classmethod
    def resumed(cls, stored: Stored, threads: int | None = None) -> Training:
        """A training that goes on where it was when it was stored."""
        facts, settings = stored.facts, Settings.from_facts(stored.facts)
        stride = 4 if settings.phases[facts["phase"]].coherent else 1
        if "packed" in facts or stored.stride != stride:
            why = "it is packed, or was read without learning=True"
            raise ValueError(f"this network cannot go on learning: {why}")
        found = cls(settings, threads)
        found.games, found.moves = facts["games"], facts["moves"]
        found.seconds, found.phase = facts["seconds"], facts["phase"]
        found.reach = facts["reach"]
        found.weights = stored.weights
        return found

    def _begin(self, phase: int) -> None:
        """Begin a phase: its weights are those of the one before."""
        coherent = self.settings.phases[phase].coherent
        by_move = self.settings.phases[0].rule == "q"
        fresh = new_weights(self.settings.network, 4 if coherent else 1, by_move)
        if phase > 0:
            places = np.flatnonzero(self.weights)  # the rest of the memory is not to be touched
            fresh[(4 if coherent else 1) * places] = self.weights[places]
        self.weights = fresh
        self.phase = phase

    def stored(self) -> Stored:
        """The training as it is written to disk."""
        facts = self.settings.facts | {
            "games": self.games,
            "moves": self.moves,
            "seconds": round(self.seconds, 3),
            "phase": self.phase,
            "reach": self.reach,
            "threads": self.threads,
        }
        stride = 4 if self.settings.phases[self.phase].coherent else 1
        return Stored(self.settings.network, self.weights, stride, facts)

    @property
    def largest(self) -> int:
        """How many bytes the weights have in the phase that takes most."""
        most = max(4 if phase.coherent else 1 for phase in self.settings.phases)
        now = 4 if self.settings.phases[self.phase].coherent else 1
        return self.weights.nbytes // now * most

    def enter(self, share: float) -> None:
        """Go on to the next phase if this share of the training is done."""
        if self.phase + 1 < len(self.settings.phases) and share >= SHARE:
            self._begin(self.phase + 1)

    def block(self, games: int, progress: Callable[[int], object] = lambda done: None) -> Counts:
        """Learn from so many games; score, moves and largest rank of each.

        There are fewer if it was stopped. `progress` hears how many games there were in all.
        """
        keys = np.empty(games, np.uint64)
        game_keys(U(self.settings.seed), U(self.games), keys)
        results = np.zeros((games, 3), np.int64)
        lock, failed, taken = threading.Lock(), deque[BaseException](), 0

        def work(trail: Trail) -> None:
            nonlocal taken
            learn = self._learner(trail)
            while True:
                with lock:
                    # fewer and fewer, so that all threads end at the same time
                    part = max(1, min(PART, (games - taken) // (2 * self.threads)))
                    first, last = taken, min(taken + part, games)
                    if first == games or self.stopped or failed:
                        return
                    taken = last
                try:
                    learn(keys[first:last], results[first:last])
                    progress(self.games + last)
                except BaseException as error:
                    failed.append(error)

        self._learner(self._trails[0])  # compiling is not learning
        began = time.perf_counter()
        helpers = [threading.Thread(target=work, args=(trail,)) for trail in self._trails]
        try:
            for helper in helpers:
                helper.start()
            for helper in helpers:
                helper.join()
        except KeyboardInterrupt as error:
            failed.append(error)
            for helper in helpers:
                helper.join()
        self.seconds += time.perf_counter() - began
        self.games += taken
        self.moves += int(results[:taken, 1].sum())
        self._remember(results[:taken])
        if failed:
            raise failed[0]
        self._check()
        return results[:taken]

    def _check(self) -> None:
        """A `DivergedError` if values have grown beyond all bounds, those of first boards too."""
        settings = self.settings
        phase = settings.phases[self.phase]
        kernels = network_kernels(settings.network, 4 if phase.coherent else 1, phase.rule == "q")
        for trail in self._trails:
            found = kernels["value"](trail.boards[0], 0, self.weights)
            if not abs(found) < LARGEST:
                raise DivergedError(
                    f"after {self.games:,} games values are {found:.3g}, beyond all bounds: it "
                    f"takes a lower rate than {phase.rate:g}, from the start"
                )

    def _learner(self, trail: Trail) -> Callable[[Words, Counts], None]:
        """What learns from games with some keys, and writes their results."""
        settings, phase = self.settings, self.settings.phases[self.phase]
        assert settings.initial is not None
        backward = settings.order == "backward"
        kernels = learning_kernels(settings.network, phase.rule, phase.coherent, backward)
        learn = kernels["learn_games"]
        step = phase.rate / settings.network.features
        lesson = Lesson(step, settings.initial, settings.gamma, settings.epsilon)
        ways, spawns = lines_of(settings.rules), spawning(settings.rules)
        weights = self.weights
        return lambda keys, results: learn(keys, ways, spawns, lesson, weights, trail, results)

    def _remember(self, results: Counts) -> None:
        """Keep the results of the last games, and what they reached."""
        self.recent = np.concatenate([self.recent, results])[-RECENT:]
        ranks = self.recent[:, 2]
        if len(ranks) and len(ranks) >= min(RECENT, self.games):
            self.reach = reach_of(ranks)


def reach_of(ranks: NDArray[np.int64]) -> dict[str, float]:
    """How many of some games made each tile, from the largest rank of each."""
    tops = range(1, int(ranks.max()) + 1)
    return {str(1 << rank): float((ranks >= rank).mean()) for rank in tops}


def usual_network(rules: Rules) -> str:
    """The name of the network that a board gets if none is asked for."""
    return next(iter(named_networks(rules)))


def usual_threads(rules: Rules) -> int:
    """How many threads learn: one for each core, but on a small board only one.

    There a training is short, and with one thread repeats itself. Two are on the same boards most
    of the time; if they learn backward, each takes the whole step that one should.
    """
    return checked_threads(None) if rules.cells >= SMALL else 1


def usual_initial(rules: Rules) -> float:
    """What boards are worth at first if a method is optimistic: 320,000 on 4x4 (Guei et al.), and
    half of that for every cell less."""
    return float(320_000 * 0.5 ** (16 - rules.cells))
