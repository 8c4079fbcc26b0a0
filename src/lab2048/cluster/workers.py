"""Connect to a Ray cluster, and run tasks that survive the loss of some of its workers.

Tasks are functions of this package that depend on their arguments and on files alone, so one whose
worker, or whole machine, is lost is retried on another. That is done here rather than by Ray, so
that the user is told.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from lab2048.engine.jit import source_digest
from lab2048.home import say

LOCAL = "local"
MOST_LOSSES = 5
"""How often one task may be lost and retried; after that it is taken to be the cause."""
OBJECT_STORE = 200_000_000
"""Bytes for the results of tasks in a `local` cluster; everything large is in files."""
REASONS = {
    "WorkerCrashedError": "its process ended",
    "NodeDiedError": "its machine is gone",
    "LocalRayletDiedError": "Ray has ended on its machine",
    "OutOfMemoryError": "its machine ran out of memory",
    "ActorDiedError": "its process ended",
    "ActorUnavailableError": "it does not answer",
    "ObjectLostError": "its result was lost",
    "OwnerDiedError": "its result was lost",
}
"""What happened to a worker, by the name of Ray's error."""
KNOCK_SECONDS = 10.0
"""How long a cluster may take to answer."""
REFRESH_SECONDS = 5.0
"""How long a count of the workers is reused."""


class ClusterError(ValueError):
    """A cluster that cannot be reached, or cannot be used.

    >>> from lab2048 import connect
    >>> with connect("nowhere"):  # doctest: +IGNORE_EXCEPTION_DETAIL
    ...     pass
    Traceback (most recent call last):
    ...
    ClusterError: a cluster is local, auto or such as 10.0.0.1:6379, not 'nowhere'
    """


def reason(error: BaseException) -> str:
    """An error of Ray in a few words."""
    return REASONS.get(type(error).__name__, type(error).__name__)


# -- the cluster ---------------------------------------------------------------------------------


@contextmanager
def connected(address: str, workers: int | None = None, check: bool = True) -> Iterator[Team]:
    """Connect to a cluster by its address, or start one here meanwhile; yield its workers."""
    if find_spec("ray") is None:
        raise ClusterError("`cluster` needs Ray; install it with: pip install 'lab2048[cluster]'")
    if address == LOCAL:
        # a token keeps others out, and no usage statistics are sent
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        if os.environ["RAY_AUTH_MODE"] == "token" and "RAY_AUTH_TOKEN_PATH" not in os.environ:
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    else:
        _knock(address)
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    _keep_stdout_clean()
    try:
        if address == LOCAL:
            ray.init(
                address=LOCAL,
                num_cpus=workers or os.cpu_count(),
                include_dashboard=False,
                object_store_memory=OBJECT_STORE,
                **quiet,
            )
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        first = str(error).strip().split("\n")[0]
        if address == LOCAL:
            raise ClusterError(f"Ray does not start on this machine: {first}") from None
        raise ClusterError(
            f"the Ray cluster at {address} cannot be joined: {first} (is it the same Ray and "
            "Python, and is its token here? docs/cluster.md)"
        ) from None
    try:
        team = Team()
        if check:
            team.check(team.nodes())
        yield team
    finally:
        ray.shutdown()


def _keep_stdout_clean() -> None:
    """Keep Ray from writing to stdout when a worker is lost: `Task` reports it on stderr."""
    from ray._private import worker

    worker.print_to_stdstream = lambda *args, **options: None


def _knock(address: str) -> None:
    """Raise a `ClusterError` at once if there is no cluster: Ray would try for many minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if address == "auto":
        return
    if not colon or not host or not (port.isascii() and port.isdigit()):
        raise ClusterError(f"a cluster is local, auto or such as 10.0.0.1:6379, not {address!r}")
    try:
        socket.create_connection((host, int(port)), KNOCK_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"there is no Ray cluster at {address}: {error}") from None


class Node(NamedTuple):
    """A machine of a cluster, as seen by a task on it."""

    host: str
    address: str
    cores: int
    memory: int
    version: str
    """The version of lab2048."""
    source: str
    """A digest of its source, and of the libraries that its kernels are compiled with."""
    python: str
    shared: str
    """What is wrong with the shared folder, if anything."""


def look_around(shared: str | None, mark: str) -> tuple[str, str, str, str, str]:
    """Describe this machine: the task of `Team.nodes`."""
    import platform

    import lab2048

    wrong = "" if shared is None else _wrong_with(Path(shared), mark)
    python = platform.python_version()
    return socket.gethostname(), lab2048.__version__, source_digest(), python, wrong


def _wrong_with(shared: Path, mark: str) -> str:
    """What is wrong with a shared folder, seen from here; the driver has put `mark` there."""
    if not (shared / mark).exists():
        return "is not the same folder here" if shared.is_dir() else "is not here"
    try:
        trial = shared / f"{mark}.{secrets.token_hex(4)}"
        trial.touch()
        trial.unlink()
    except OSError as error:
        return f"cannot be written to: {error.strerror}"
    return ""


class Team:
    """The workers of a cluster."""

    def __init__(self) -> None:
        import ray

        self.losses = 0
        """How often a worker was lost."""
        self.ray: Any = ray
        self._do = ray.remote(num_cpus=1, max_retries=0)(call)
        self._counted = (0, -REFRESH_SECONDS)

    @property
    def workers(self) -> int:
        """The current number of workers: one per core."""
        count, when = self._counted
        if time.monotonic() - when > REFRESH_SECONDS:
            count = max(1, int(self.ray.cluster_resources().get("CPU", 1)))
            self._counted = (count, time.monotonic())
        return count

    @property
    def machines(self) -> int:
        """The current number of machines; each may be several nodes of Ray."""
        alive = [node for node in self.ray.nodes() if node["Alive"]]
        return len({node["NodeManagerAddress"] for node in alive})

    def nodes(self, shared: Path | None = None) -> list[Node]:
        """All machines, and whether they see a shared folder."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        alive = [node for node in self.ray.nodes() if node["Alive"]]
        mark = f".lab2048-{secrets.token_hex(8)}"
        look = self.ray.remote(num_cpus=0, max_retries=2)(look_around)
        if shared is not None:
            try:
                shared.mkdir(parents=True, exist_ok=True)
                (shared / mark).touch()
            except OSError as error:
                raise ClusterError(
                    f"the shared folder {shared} cannot be written to here: {error.strerror}"
                ) from None
        try:
            asked = [
                look.options(
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                ).remote(None if shared is None else str(shared), mark)
                for node in alive
            ]
            answers = [self._answer(each) for each in asked]
        finally:
            if shared is not None:
                (shared / mark).unlink(missing_ok=True)
        return [
            Node(
                host,
                node["NodeManagerAddress"],
                int(node["Resources"].get("CPU", 0)),
                int(node["Resources"].get("memory", 0)),
                *facts,
            )
            for node, answer in zip(alive, answers, strict=True)
            if answer is not None
            for host, *facts in [answer]
        ]

    def _answer(self, reference: Any) -> Any:
        """The result of a task on one machine; None if the machine has left meanwhile."""
        try:
            return self._result(reference)
        except self.ray.exceptions.TaskUnschedulableError:
            return None

    def check(self, nodes: Sequence[Node], shared: Path | None = None) -> None:
        """Raise a `ClusterError` unless all machines run the same software and see the folder."""
        import platform

        import lab2048

        here = platform.python_version()
        for node in nodes:
            where = f"{node.host} ({node.address})"
            if node.version != lab2048.__version__:
                raise ClusterError(
                    f"{where} has lab2048 {node.version}, and this machine {lab2048.__version__}; "
                    "install the same version on all"
                )
            if node.python != here:
                raise ClusterError(f"{where} has Python {node.python}, and this machine {here}")
            if node.source != source_digest():
                raise ClusterError(
                    f"{where} and this machine both have lab2048 {node.version}, but not the same "
                    "source, NumPy or Numba; install the same on all"
                )
            if node.shared:
                raise ClusterError(f"{shared} {node.shared}, says {where}")

    # -- tasks -----------------------------------------------------------------------------------

    def run(self, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function with each of the argument lists, on any workers; return all results."""
        return results([self.begin(function, *job) for job in jobs])

    def each(
        self, function: Callable[..., Any], jobs: Iterable[tuple[Any, ...]], ahead: int
    ) -> Iterator[Any]:
        """As `run`, but yield results as they arrive; `ahead` calls are under way at a time."""
        coming = iter(jobs)
        running: dict[Any, Task] = {}
        while True:
            for job in islice(coming, ahead - len(running)):
                task = self.begin(function, *job)
                running[task.reference] = task
            if not running:
                return
            (ready, *_), _ = self.ray.wait(list(running), num_returns=1)
            task = running.pop(ready)
            done, result = task.outcome()
            if done:
                yield result
            else:
                running[task.reference] = task

    def begin(self, function: Callable[..., Any], *args: Any) -> Task:
        """Begin to call a function on some worker."""
        return Task(self, function, args)

    def _result(self, reference: Any) -> Any:
        """The result of a task; raise the error of its function if that has failed."""
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None


class Task:
    """A function called on some worker, and retried on another if that one is lost.

    Tasks are never cancelled: if one ends at that very moment, Ray 2.60 ends the driver.
    """

    def __init__(self, team: Team, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._team, self._function, self.args = team, function, args
        self._losses = 0
        self.reference = self._begin()

    def _begin(self) -> Any:
        return self._team._do.remote(source_digest(), self._function, *self.args)

    def result(self) -> Any:
        """Wait for the result."""
        done = False
        while not done:
            done, found = self.outcome()
        return found

    def outcome(self) -> tuple[bool, Any]:
        """Wait; return True and the result, or False if the worker was lost and another retries."""
        ray = self._team.ray
        try:
            return True, self._team._result(self.reference)
        except (ray.exceptions.AuthenticationError, ray.exceptions.RuntimeEnvSetupError):
            raise
        except ray.exceptions.RayError as error:
            self._losses += 1
            self._team.losses += 1
            what = f"a worker was lost while at {self._function.__name__}"
            if self._losses > MOST_LOSSES:
                many = f"{what}, {self._losses} times in a row"
                raise ClusterError(f"{many} ({reason(error)})") from None
            say(f"{what} ({reason(error)}); retrying on another")
            self.reference = self._begin()
            return False, None


def results(tasks: Sequence[Task]) -> list[Any]:
    """Wait for all tasks; return their results."""
    return [task.result() for task in tasks]


def call(source: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function: one task of Ray for all functions, so that it schedules them alike."""
    check_source(source)
    return function(*args)


def check_source(source: str) -> None:
    """Raise a `ClusterError` unless this machine, which may have joined late, has that source."""
    if source != source_digest():
        raise ClusterError(
            f"{socket.gethostname()} has another lab2048, NumPy or Numba than the machine that "
            "runs the command; install the same on all"
        )
