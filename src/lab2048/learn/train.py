"""Train players from Python: `train.ntuple("3x3", episodes=20_000, out="mine", against="3x3")`.

There is a function for every learner, built in or registered; `help(train.zero)` shows its
settings. All take the same arguments besides:

- `board` (such as "3x3", or `Rules`), `p4`; the settings of the learner by name;
- how long: the number of games, moves or steps by the learner's own names for them (`episodes`,
  `moves`, `steps`), or `minutes` of training, not counting what is compiled or measured;
- `out`, the name under which it is kept, and `resume`, to go on with what is there;
- `runs`: trainings NAME-1, NAME-2, ... with seeds that grow by one;
- `against`: a table, or the name of one, to measure what was learnt at every record;
- `threads`; `on_record`, which hears every record and may return True to end the training;
  `progress`, which hears how much is done; `say`, which hears messages. Without these it is silent;
- `cluster`, for learners that can: the address of a Ray cluster to train on, or an open connection
  (see `lab2048.connect`); `threads` is then the number of actors that play;
- `make`, which makes the learner from settings and threads, if it is no usual one.

Ctrl-C saves what was learnt and raises a `KeyboardInterrupt`; `resume=True` goes on from there.

>>> from lab2048 import train
>>> run = train.ntuple("2x2", network="0123", episodes="2k", out="first")
>>> run.facts["games"]
2000
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from lab2048.game import Rules
from lab2048.game.notation import counted
from lab2048.learn.learner import Goal
from lab2048.learn.registry import LearnerEntry, find_learner, imported, is_learner, learners
from lab2048.learn.result import TrainedRun, TrainedRuns
from lab2048.learn.resume import Callbacks, Make, TrainingRequest, plan
from lab2048.learn.settings import (
    LearnerSettings,
    help_of,
    is_a_setting,
    limit_names,
    option_fields,
)
from lab2048.learn.trainer import train_planned
from lab2048.remote import cluster_at
from lab2048.solver.problem import Problem
from lab2048.solver.table import Table
from lab2048.solver.tables import require_table

Train = Callable[..., TrainedRun | TrainedRuns]
RUNS = 100
"""The most runs of one call."""


def train_all(
    kind: str,
    asked: TrainingRequest,
    *,
    limits: Mapping[str, Any] | None = None,
    against: Table | str | None = None,
    make: Make | None = None,
    hear: Callbacks | None = None,
    cluster: Any = None,
) -> TrainedRuns:
    """Train with the learner of a name, once or several times.

    `limits` say how long, by the names of options (`limit_names`). `make` makes learners that are
    no usual ones; `cluster` is where those play that can.
    """
    if not 1 <= asked.runs <= RUNS:
        raise ValueError(f"runs are a number from 1 to {RUNS}, not {asked.runs}")
    entry = find_learner(kind)
    length = checked_limits(entry.load_settings(), limits or {})
    plans = [plan(entry, asked, run) for run in range(asked.runs)]
    found = []
    with ExitStack() as stack:
        if cluster is not None:
            make = far_learners(entry, cluster, stack)
        table = None
        if against is not None:
            entry.load().check_measurable(plans[0].settings)
            table = table_against(against, plans[0].settings.rules, stack)
        for each in plans:
            goal = goal_of(each.settings, length, asked.given, measured=table is not None)
            found.append(train_planned(each, goal, table, make, hear or Callbacks()))
            if not found[-1].finished:
                break
    return TrainedRuns(tuple(found))


def far_learners(entry: LearnerEntry, cluster: Any, stack: ExitStack) -> Make:
    """Return what makes learners that work on a cluster; it connects when there is one to make."""
    if not entry.far:
        raise ValueError(f"{entry.name} does not train on a cluster")
    open_now: list[Any] = []

    def make(settings: Any, threads: int | None) -> Any:
        if not open_now:
            open_now.append(stack.enter_context(cluster_at(cluster, threads)))
        team = open_now[0].team
        return imported(entry.far)(settings, threads or team.workers, team=team)

    return make


def checked_limits(cls: type[LearnerSettings], limits: Mapping[str, Any]) -> dict[str, float]:
    """Return how many games or the like there are to be, or how many minutes, by option.

    A `ValueError` unless it is clear how long a training lasts.
    """
    given = {name: value for name, value in limits.items() if value is not None}
    if len(given) > 1 or (not given and not is_a_setting(cls)):
        *others, last = (f"`{name}`" for name in limit_names(cls))
        raise ValueError(f"a training lasts for {', '.join(others)} or {last}")
    for name, value in given.items():
        if name != "minutes":
            given[name] = counted(str(value), cls.counted if name == cls.goal else name)
        elif not 0 < value <= 1e6:
            raise ValueError(f"`minutes` is a number above 0, not {value:g}")
    return given


def goal_of(
    settings: LearnerSettings,
    limits: Mapping[str, float],
    given: Mapping[str, Any],
    *,
    measured: bool = False,
) -> Goal:
    """Return how long a training lasts; `given` are the options that were asked for."""
    counts: dict[str, Any] = {**limits}
    minutes, count = counts.pop("minutes", None), counts.pop(settings.goal, None)
    if is_a_setting(type(settings)) and (settings.goal in given or not limits):
        count = getattr(settings, settings.goal)
    return Goal(count, None if minutes is None else 60 * minutes, measured, counts)


def table_against(against: Table | str, rules: Rules, stack: ExitStack) -> Table:
    """Return an open table of the board: the one given, or one by its name, closed by `stack`.

    That of a small board is made now if it is missing.
    """
    return stack.enter_context(require_table(Problem.of(rules), against))


def board_options(board: Rules | str | None, p4: float | None) -> dict[str, Any]:
    """Return the options that a board in Python stands for."""
    if isinstance(board, Rules):
        return {"board": board.name, "p4": board.p4}
    given = {"board": board, "p4": p4}
    return {name: value for name, value in given.items() if value is not None}


# -- a function for every learner ----------------------------------------------------------------


def function_of(entry: LearnerEntry) -> Train:
    """Return the function that trains with a learner."""
    cls = entry.load_settings()
    names = limit_names(cls)

    def function(  # noqa: PLR0913
        board: Rules | str | None = None,
        *,
        p4: float | None = None,
        out: str | None = None,
        resume: bool = False,
        runs: int = 1,
        against: Table | str | None = None,
        threads: int | None = None,
        minutes: float | None = None,
        on_record: Callable[[dict[str, Any]], object] | None = None,
        progress: Callable[[float, str], object] | None = None,
        say: Callable[[str], object] | None = None,
        make: Make | None = None,
        cluster: Any = None,
        **settings: Any,
    ) -> TrainedRun | TrainedRuns:
        limits = {each: settings.pop(each, None) for each in names} | {"minutes": minutes}
        given = {n: v for n, v in {**board_options(board, p4), **settings}.items() if v is not None}
        heard: dict[str, Any] = {"on_record": on_record, "progress": progress, "say": say}
        found = train_all(
            entry.name,
            TrainingRequest(given, out, resume, runs, threads),
            limits=limits,
            against=against,
            make=make,
            cluster=cluster,
            hear=Callbacks(**{name: each for name, each in heard.items() if each is not None}),
        )
        return found if runs > 1 else found[0]

    function.__name__ = function.__qualname__ = entry.name
    function.__doc__ = _docstring(entry, cls)
    function.__signature__ = _signature(function, cls)  # type: ignore[attr-defined]
    return function


def _signature(function: Any, cls: type[LearnerSettings]) -> inspect.Signature:
    """Return the signature of a function with the settings of its learner by name."""
    known = inspect.signature(function)
    *usual, _ = known.parameters.values()
    names = [*limit_names(cls)[:-1], *(each.name for each in option_fields(cls))]
    more = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None) for n in names]
    return known.replace(parameters=[*usual, *more])


def _docstring(entry: LearnerEntry, cls: type[LearnerSettings]) -> str:
    """Return what a function does, and the settings of its learner."""
    lines = [entry.about, "", "See `lab2048.train` for the arguments that all learners have.", ""]
    for name in limit_names(cls)[:-1]:
        what = cls.counted if name == cls.goal else name
        lines.append(f"{name}: The number of {what} that it lasts for.")
    lines += [f"{each.name}: {help_of(each)}" for each in option_fields(cls)]
    return "\n".join(lines)


def __getattr__(name: str) -> Train:
    if name.startswith("_") or not is_learner(name):
        raise AttributeError(f"there is no learner {name!r}; there is {', '.join(learners())}")
    found = function_of(find_learner(name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(learners())
