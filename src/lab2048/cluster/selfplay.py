"""Self-play by actors of a cluster, for a learner that stays one process.

An actor plays a chunk of moves in several games at a time, with the newest weights when it begins,
and returns what there is to learn from them and the state of its games. It keeps no other state: an
actor that is lost is restarted, and continues from the same boards. The learner does not wait for
all actors, so games are played while it learns; results say which weights they were played with.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from lab2048.cluster.workers import ClusterError, Team, check_source, reason
from lab2048.engine.jit import source_digest
from lab2048.game.notation import checked_threads
from lab2048.home import say
from lab2048.learn.batched_search import Network
from lab2048.learn.gradient import model_tensors
from lab2048.learn.network_files import Tensors
from lab2048.learn.selfplay import Lessons, SelfPlay
from lab2048.learn.zero import CHUNK, Games, StoppedError, ZeroLearner
from lab2048.learn.zero_settings import ZeroSettings

MOST_LOSSES = 20
"""How often actors may be lost before the learner has a result per actor."""
LOOK_SECONDS = 0.5
"""Seconds between checks whether the training is to stop."""


class Order(NamedTuple):
    """A request to an actor."""

    tensors: Tensors
    """The state of its games."""
    begun: int
    temperature: float
    units: tuple[float, float]
    version: int
    """The version of the weights: the number of chunks learnt from."""
    source: str
    """Digest of the source of lab2048, which has to be the same where the actor runs."""


class Result(NamedTuple):
    """The reply of an actor."""

    lessons: Lessons
    scores: list[int]
    tensors: Tensors
    begun: int
    version: int


class Actor:
    """Plays games on one thread: the class of Ray's actors."""

    def __init__(self, settings: ZeroSettings, games: int, seed: int) -> None:
        torch.set_num_threads(1)
        self._worker = SelfPlay(settings, games, seed)
        self._settings, self._version = settings, -1
        self._network: Network | None = None

    def play(self, order: Order, weights: Tensors) -> Result:
        """Play a chunk, from the state of the games in the order."""
        check_source(order.source)
        if self._network is None or order.version != self._version:
            self._network = ZeroLearner.stored_network(self._settings, weights, "cpu")
            self._version = order.version
        worker = self._worker
        worker.last = []
        worker.load(writable(order.tensors), "", order.begun)
        worker.searches.scale, worker.usual = order.units
        lessons = worker.play(self._network, CHUNK, order.temperature)
        return Result(lessons, worker.take_scores(), worker.tensors(), worker.begun, order.version)


def writable(tensors: Tensors) -> Tensors:
    """Copies of tensors from Ray, which are read-only."""
    return {name: each.copy() for name, each in tensors.items()}


class FarZeroLearner(ZeroLearner):
    """A learner whose games are played by actors; this process only learns, on all cores."""

    def __init__(self, settings: ZeroSettings, actors: int, *, team: Team) -> None:
        super().__init__(settings, actors)
        torch.set_num_threads(checked_threads(None))
        self._ray = team.ray
        kind = team.ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=0)(Actor)
        games = self.workers[0].state.shape[1]
        self.actors: list[Any] = [
            kind.remote(settings, games, worker.seed) for worker in self.workers
        ]
        self._under_way: dict[Any, tuple[int, tuple[Tensors, int, float]]] = {}
        self._weights: tuple[int, Any] = (-1, None)

    def play(self, temperature: float) -> Games:
        """Collect as many results as there are actors, in the order in which they arrive."""
        if not self._under_way:
            for number, worker in enumerate(self.workers):
                self._begin(number, (worker.tensors(), worker.begun, temperature))
        found: list[tuple[int, Result]] = []
        losses = 0
        while len(found) < len(self.actors):
            if self.stopped:
                raise StoppedError
            ready, _ = self._ray.wait([*self._under_way], num_returns=1, timeout=LOOK_SECONDS)
            for reference in ready:
                number, games = self._under_way.pop(reference)
                result = self._result(reference)
                if result is None:
                    losses += 1
                    if losses > MOST_LOSSES:
                        raise ClusterError("actors are lost again and again; is memory short?")
                    self._begin(number, games)
                else:
                    found.append((number, result))
                    self._begin(number, (result.tensors, result.begun, temperature))
        return self._taken(found)

    def _taken(self, found: list[tuple[int, Result]]) -> Games:
        """Take over the state of the games from results; return what there is to learn."""
        for number, result in found:
            self.workers[number].load(writable(result.tensors), "", result.begun)
        versions = [result.version for _, result in found]
        return Games(
            [result.lessons for _, result in found],
            [score for _, result in found for score in result.scores],
            (min(versions), max(versions)),
        )

    def _begin(self, number: int, games: tuple[Tensors, int, float]) -> None:
        """Have an actor continue its games with the newest weights."""
        if self._weights[0] != self.chunks:
            self._weights = self.chunks, self._ray.put(model_tensors(self.net.model))
        order = Order(*games, self.units, self.chunks, source_digest())
        reference = self.actors[number].play.remote(order, self._weights[1])
        self._under_way[reference] = number, games

    def _result(self, reference: Any) -> Result | None:
        """The reply of an actor; None if it was lost."""
        exceptions = self._ray.exceptions
        try:
            result: Result = self._ray.get(reference)
        except exceptions.RayTaskError as error:
            raise error.cause from None
        except (exceptions.RayActorError, exceptions.ObjectLostError) as error:
            say(f"an actor was lost ({reason(error)}); it is restarted from the same boards")
            return None
        return result
