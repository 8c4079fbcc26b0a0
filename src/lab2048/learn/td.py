"""Temporal-difference learning of n-tuple networks: threads play games and update one network.

With one thread the weights are the same, bit for bit, whenever a training run is repeated, and
whether or not it is interrupted: its game n has the spawns of game n of its seed. Several threads
learn from different games and update shared weights without locks, so an update is lost now and
then, and no two runs are quite alike.

The learning rules are kernels (`td_kernels`), the network is in `ntuple`, the settings with their
defaults in `ntuple_settings`.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from lab2048.engine.arrays import Counts, Words
from lab2048.engine.batch import game_keys
from lab2048.engine.jit import U
from lab2048.formatting import size
from lab2048.game import Rules
from lab2048.game.notation import checked_threads
from lab2048.learn.checkpoint import Record
from lab2048.learn.learner import DivergedError, Goal, Learner
from lab2048.learn.network_files import Tensors
from lab2048.learn.ntuple import Weights, network_kernels, new_weights
from lab2048.learn.ntuple_files import (
    FACTS,
    Stored,
    read_about,
    read_weights,
    write_packed,
    write_weights,
)
from lab2048.learn.ntuple_settings import SMALL, NTupleSettings, usual_initial
from lab2048.learn.settings import Facts, LearnerSettings
from lab2048.learn.td_kernels import Trail, learning_kernels, new_trail
from lab2048.learn.td_moves import Lesson, lines_of
from lab2048.players.search_step import spawning

if TYPE_CHECKING:
    from lab2048.learn.ntuple_player import NTuple

LARGEST = 1e12
"""Values beyond this have diverged."""
SHARE = 0.9
"""The share of the first phase in a training run of two."""
PART = 32
"""Games per kernel call, at most: training can be stopped between calls only."""
SLICE = 1000
"""Games per step, at most: time limits, checkpoints and the like are checked between steps."""
RECENT = 1000
"""The number of last games that tell how well it plays."""
LEVELS, VISITS = 20_000, 3
"""Defaults for packing: steps of rounding per `usual_initial`, and the least visits of a weight. On
4x4 and 3x3 they cost nothing (docs/results.md)."""
VISITED = 0.4
"""The share of the weights that long training of a large network visits, at most."""


class NTupleLearner(Learner[NTupleSettings]):
    """An n-tuple network in training: its weights and its progress."""

    settings_class = NTupleSettings
    kind = "ntuple"
    needed: ClassVar = FACTS
    exact_records = "all"

    def __init__(self, settings: NTupleSettings, threads: int | None = None) -> None:
        super().__init__(settings, usual_threads(settings.rules) if threads is None else threads)
        self.weights: Weights
        self.moves = 0
        self.reach: dict[str, float] = {}
        """The share of the last games that reached each tile."""
        self.recent = np.zeros((0, 3), np.int64)
        """The results of the last games."""
        self._begin(0)
        self._trails = [new_trail() for _ in range(self.threads)]
        self._parts: list[Counts] = []
        """Results of the games of the current block, which ends after `_end` games."""
        self._end, self._began = 0, 0.0
        self.measuring = threads

    @property
    def games(self) -> int:
        """The number of games learnt from."""
        return self.done

    def counts(self) -> dict[str, float]:
        """Return games and moves."""
        return {"games": self.done, "moves": self.moves}

    # -- steps -----------------------------------------------------------------------------------

    def step(self, goal: Goal) -> None:
        """Learn from a slice of games, or fewer where a block or a phase ends."""
        if not self._parts:
            self._began = self.seconds
            self._end = self.done + next_block(self.done, block_size(self.settings, goal), goal)
        self.enter(goal.share(self))
        games = min(self._end, pause(self.done, goal)) - self.done
        games = min(games, self._games_left(goal))
        self._parts.append(
            self.block(games, lambda done: self.report(goal.share(self, games=done)))
        )

    def _games_left(self, goal: Goal) -> int:
        """Return the number of games until a limit on moves, by recent lengths; at most a slice."""
        if "moves" not in goal.counts:
            return SLICE
        if not len(self.recent):
            return PART
        left = goal.counts["moves"] - self.moves
        return max(1, min(SLICE, int(left / self.recent[:, 1].mean())))

    def due(self, goal: Goal) -> bool:
        """Return whether a block or the whole run is over; a block that was stopped counts too."""
        over = self.done >= self._end or goal.share(self) >= 1 or self.stopped
        return over and any(map(len, self._parts))

    def record(self) -> Record:
        """Return a summary of the games of the block."""
        results, seconds = np.concatenate(self._parts), self.seconds - self._began
        scores, moves, ranks = results[:, 0], results[:, 1], results[:, 2]
        self._parts = []
        return {
            "block": len(results),
            "phase": self.settings.method.split("+")[self.phase],
            "mean": float(scores.mean()),
            "max": int(scores.max()),
            "moves": int(moves.sum()),
            "moves_per_second": float(moves.sum() / seconds),
            "reach": reach_of(ranks),
        }

    def _begin(self, phase: int) -> None:
        """Begin a phase with the weights of the one before."""
        coherent = self.settings.phases[phase].coherent
        by_move = self.settings.phases[0].rule == "q"
        fresh = new_weights(self.settings.network, 4 if coherent else 1, by_move)
        if phase > 0:
            places = np.flatnonzero(self.weights)  # untouched memory of `fresh` is never allocated
            fresh[(4 if coherent else 1) * places] = self.weights[places]
        self.weights = fresh
        self.phase = phase

    def enter(self, share: float) -> None:
        """Begin the next phase if `share`, the part of the training that is done, calls for it."""
        if self.phase + 1 < len(self.settings.phases) and share >= SHARE:
            self._begin(self.phase + 1)

    def block(self, games: int, progress: Callable[[int], object] = lambda done: None) -> Counts:
        """Learn from a number of games. Return score, moves and largest rank of each.

        There are fewer if it was stopped. `progress` is called with the total number of games.
        """
        keys = np.empty(games, np.uint64)
        game_keys(U(self.settings.seed), U(self.done), keys)
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
                    progress(self.done + last)
                except BaseException as error:
                    failed.append(error)

        self._learner(self._trails[0])  # compile before the clock starts
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
        self.done += taken
        self.moves += int(results[:taken, 1].sum())
        self._remember(results[:taken])
        if failed:
            raise failed[0]
        self._check()
        return results[:taken]

    def _check(self) -> None:
        """Raise a `DivergedError` if the value of a trail's first board is huge or not a number."""
        settings = self.settings
        phase = settings.phases[self.phase]
        kernels = network_kernels(settings.network, 4 if phase.coherent else 1, phase.rule == "q")
        for trail in self._trails:
            found = kernels.value(trail.boards[0], 0, self.weights)
            if not abs(found) < LARGEST:
                raise DivergedError(
                    f"after {self.done:,} games values are {found:.3g}, beyond all bounds: it "
                    f"takes a lower rate than {phase.rate:g}, from the start"
                )

    def _learner(self, trail: Trail) -> Callable[[Words, Counts], None]:
        """Return a function that learns from the games of given keys, and writes their results."""
        settings, phase = self.settings, self.settings.phases[self.phase]
        assert settings.initial is not None
        backward = settings.order == "backward"
        kernels = learning_kernels(settings.network, phase.rule, phase.coherent, backward)
        learn = kernels.learn_games
        step = phase.rate / settings.network.features
        lesson = Lesson(step, settings.initial, settings.gamma, settings.epsilon)
        ways, spawns = lines_of(settings.rules), spawning(settings.rules)
        weights = self.weights
        return lambda keys, results: learn(keys, ways, spawns, lesson, weights, trail, results)

    def _remember(self, results: Counts) -> None:
        """Keep the results of the last games, and the tiles that they reached."""
        self.recent = np.concatenate([self.recent, results])[-RECENT:]
        ranks = self.recent[:, 2]
        if len(ranks) and len(ranks) >= min(RECENT, self.done):
            self.reach = reach_of(ranks)

    # -- stored and played -----------------------------------------------------------------------

    @property
    def facts(self) -> Facts:
        """Metadata of the training run, JSON-serialisable."""
        return self.settings.facts | {
            "games": self.done,
            "moves": self.moves,
            "seconds": round(self.seconds, 3),
            "phase": self.phase,
            "reach": self.reach,
            "threads": self.threads,
        }

    def tensors(self) -> Tensors:
        """Return the weights as they are in memory."""
        return {"weights": self.weights}

    def stored(self) -> Stored:
        """Return the network as it is written to disk."""
        stride = 4 if self.settings.phases[self.phase].coherent else 1
        return Stored(self.settings.network, self.weights, stride, self.facts)

    def save(self, path: Path) -> None:
        """Write the visited weights and the metadata."""
        write_weights(path, self.stored())

    @classmethod
    def read_about(cls, path: Path) -> Facts:
        """Read the metadata of a training run, without its weights."""
        return read_about(path)

    @classmethod
    def read(cls, path: Path) -> tuple[Facts, Stored]:
        """Read a training run with all that resuming needs."""
        stored = read_weights(path, learning=True)
        return stored.facts, stored

    @classmethod
    def resumed(cls, stored: Stored, threads: int | None = None) -> Self:
        """Return a training run resumed from what was stored."""
        found = cls(NTupleSettings.from_facts(stored.facts), threads)
        found.resume(stored.facts, stored)
        return found

    def resume(self, facts: Facts, tensors: Any) -> None:
        """Resume from stored metadata and weights."""
        stored: Stored = tensors
        stride = 4 if self.settings.phases[facts["phase"]].coherent else 1
        if "packed" in facts or stored.stride != stride:
            why = "it is packed, or was read without learning=True"
            raise ValueError(f"this network cannot go on learning: {why}")
        self.done, self.moves = facts["games"], facts["moves"]
        self.seconds, self.phase = facts["seconds"], facts["phase"]
        self.reach, self.weights = facts["reach"], stored.weights

    @classmethod
    def pack(
        cls, path: Path, file: Path, *, step: float | None = None, visits: int | None = None
    ) -> None:
        """Write a network for play only: the weights visited often enough, rounded."""
        stored = read_weights(path, learning=True)
        usual = VISITS if stored.facts["method"] == "tc" and stored.stride > 1 else 1
        write_packed(file, stored, step or usual_initial(stored.rules) / LEVELS, visits or usual)

    @property
    def largest(self) -> int:
        """The bytes that the weights take in the phase that needs most."""
        most = max(4 if phase.coherent else 1 for phase in self.settings.phases)
        now = 4 if self.settings.phases[self.phase].coherent else 1
        return self.weights.nbytes // now * most

    @property
    def room(self) -> int:
        """The bytes that the file may need."""
        return int(VISITED * self.largest)

    def player(self) -> NTuple:
        """Return the greedy player of the network, which chooses evenly among equal moves."""
        from lab2048.learn.ntuple_player import NTuple

        stored = self.stored()
        return NTuple(stored.rules, given=stored, ties="split", downgrade="off")

    @classmethod
    def check_measurable(cls, settings: LearnerSettings) -> None:
        """Raise a `ValueError` if there is a discount."""
        if isinstance(settings, NTupleSettings) and settings.gamma != 1:
            raise ValueError("a table has no discount: `against` cannot go with `gamma`")

    # -- told ------------------------------------------------------------------------------------

    def introduction(self) -> str:
        """Return a line on what is about to be trained, and how large it is."""
        settings, network = self.settings, self.settings.network
        return (
            f"{settings.rules.name}, tuples {' '.join(network.tuples)} "
            f"({network.size:,} weights, {size(self.largest)}); {settings.method}, "
            f"{settings.order}, seed {settings.seed}, {self.threads} "
            f"thread{'s' * (self.threads > 1)}"
        )

    @classmethod
    def line(cls, record: Record) -> str:
        """Return the record of a block as text."""
        text = (
            f"{record['games']:>11,} games  {record['phase']:3}  mean {record['mean']:>9,.0f}  "
            f"max {record['max']:>7,}  {record['moves_per_second'] / 1e6:5.2f} M moves/s "
        )
        for tile, share in list(record["reach"].items())[-4:]:
            text += f"  {tile}: {100 * share:.1f}%"
        if "exact" in record:
            exact = record["exact"]
            text += (
                f"\n{'exactly':>17}       mean {exact['mean']:>9,.1f}  "
                f"regret {exact['regret']:,.1f}  {100 * exact['share']:.2f}% of perfect; "
                f"values off by {exact['error']:,.1f}"
            )
        return text

    def summary(self) -> Facts:
        """Return statistics of the last games by largest tile."""
        return {"by_tile": by_tile(self.recent)}


# -- blocks of games -----------------------------------------------------------------------------


def block_size(settings: NTupleSettings, goal: Goal) -> int:
    """Return the number of games per block, 0 for `log`; blocks to be measured are longer."""
    asked = settings.block_games()
    if asked is not None:
        return asked
    if goal.count is None:
        return 10_000 if goal.measured else 1000
    return max(100, goal.count // 10 if goal.measured else min(10_000, goal.count // 100))


def next_block(done: int, block: int, goal: Goal) -> int:
    """Return the number of games up to the end of the block, or of the training run.

    If `block` is 0, blocks end at 1, 2 and 5 times the powers of ten, from 1000 on.
    """
    if block == 0:
        ends = (n * 10**power for power in range(3, 13) for n in (1, 2, 5))
        games = int(next(end for end in ends if end > done)) - done
    else:
        games = block - done % block
    return games if goal.count is None else min(games, goal.count - done)


def pause(done: int, goal: Goal) -> int:
    """Return the number of games at the next check: a slice later, or where a phase ends."""
    later = done + SLICE
    if goal.count is None:
        return later
    turn = math.ceil(SHARE * goal.count)
    return min(later, turn) if done < turn else later


def by_tile(results: Counts) -> list[Facts]:
    """Return statistics of games by largest tile: number, means, share, and share that made it."""
    found = []
    for rank in sorted(set(results[:, 2].tolist())):
        games = results[results[:, 2] == rank]
        found.append(
            {
                "tile": 1 << rank,
                "games": len(games),
                "score": float(games[:, 0].mean()),
                "moves": float(games[:, 1].mean()),
                "share": len(games) / len(results),
                "reach": float((results[:, 2] >= rank).mean()),
            }
        )
    return found


def reach_of(ranks: Counts) -> dict[str, float]:
    """The share of games that made each tile, from the largest rank of each game."""
    tops = range(1, int(ranks.max()) + 1)
    return {str(1 << rank): float((ranks >= rank).mean()) for rank in tops}


def usual_threads(rules: Rules) -> int:
    """The default number of threads: one per core, but on a small board only one.

    Training is short there, and reproducible with one thread. Two are on the same boards most of
    the time; if they learn backward, each takes the full step that only one should.
    """
    return checked_threads(None) if rules.cells >= SMALL else 1
