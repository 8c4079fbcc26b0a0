"""Connect to a cluster by its address, or check what it has."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab2048.cluster import workers as ray_workers
from lab2048.cluster.workers import ClusterError, Node, Team
from lab2048.tabular import Tabular

if TYPE_CHECKING:
    from lab2048.cluster.executor import RayExecutor
    from lab2048.engine.arrays import Floats, Words
    from lab2048.measure.journal import Played
    from lab2048.players.player import Player
    from lab2048.solver.problem import Problem
    from lab2048.solver.threads import WorkerThreads


@dataclass(frozen=True)
class Connection:
    """An open connection to a cluster; calls take it as `cluster=`. See `connect`.

    Its methods do on the cluster what those calls would do on this machine.

    >>> from lab2048 import Connection
    >>> sorted(name for name in vars(Connection) if not name.startswith("_"))
    ['executor', 'judge', 'play']
    """

    team: Team

    def play(
        self, player: Player, games: Iterator[int], seed: int, threads: int | None = None
    ) -> Generator[Played, None, None]:
        """Play games, and yield each as soon as its block is finished."""
        from lab2048.cluster.games import far_games

        return far_games(self.team, player, games, seed, threads)

    def judge(self, teacher: Player, boards: Words) -> Floats:
        """Return the values of all moves on boards."""
        from lab2048.cluster.games import far_judged

        return far_judged(self.team, teacher, boards)

    def executor(self, problem: Problem, folder: Path, threads: WorkerThreads) -> RayExecutor:
        """Return the executor that makes a table."""
        from lab2048.cluster.executor import RayExecutor

        return RayExecutor(problem, folder, threads, team=self.team)


@contextmanager
def connect(
    address: str, workers: int | None = None, shared: Path | str | None = None
) -> Iterator[Connection]:
    """Connect to a Ray cluster, for several calls with `cluster=`.

    The address is such as 10.0.0.1:6379, `auto`, or `local` for a cluster on this machine that
    ends with the connection and has `workers` workers, by default one per core. A `ClusterError`
    unless all machines run the same software, and see the folder `shared` if one is given.

    >>> from lab2048 import connect, evaluate
    >>> with connect("local") as cluster:  # doctest: +SKIP
    ...     evaluate("expectimax:depth=3", games=10_000, cluster=cluster)
    ...     evaluate("ntuple:depth=2", games=10_000, cluster=cluster)
    """
    folder = None if shared is None else Path(shared)
    with ray_workers.connected(address, workers, folder is None) as team:
        if folder is not None:
            team.check(team.nodes(folder), folder)
        yield Connection(team)


@dataclass(frozen=True)
class ClusterNodes(Tabular, Sequence[Node]):
    """The machines of a cluster, and what is wrong with them.

    >>> from lab2048 import ClusterNodes
    >>> ClusterNodes([], "there is no machine").as_json()
    {'nodes': [], 'wrong': 'there is no machine'}
    """

    nodes: Sequence[Node]
    wrong: str
    """Why no long job should be started there; empty if nothing is wrong."""

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, which: Any) -> Any:
        return self.nodes[which]

    def as_json(self) -> dict[str, Any]:
        """Return what `lab2048 cluster check --json` prints."""
        return {"nodes": self.rows(), "wrong": self.wrong or None}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per machine."""
        return [node._asdict() for node in self]


def check_cluster(address: str, shared: Path | str | None = None) -> ClusterNodes:
    """Return the machines of a cluster, and whether it is ready for a long job.

    `shared` is a folder that all machines have to see. The address is as in `connect`.

    >>> from lab2048 import check_cluster
    >>> check_cluster("local").wrong  # doctest: +SKIP
    ''
    """
    folder = None if shared is None else Path(shared)
    with ray_workers.connected(address, None, False) as team:
        nodes = team.nodes(folder)
        try:
            team.check(nodes, folder)
        except ClusterError as error:
            return ClusterNodes(nodes, str(error))
    return ClusterNodes(nodes, "")
