"""Train players from Python: `train.ntuple("3x3", episodes=20_000, out="mine", against="3x3")`.

There is a function for every learner, built in or registered; `help(train.zero)` shows its
settings. All take the same arguments besides:

- `board` (such as "3x3", or `Rules`), `p4`; the settings of the learner by name;
- the length: a number of games, moves or steps under the learner's own names (`episodes`, `moves`,
  `steps`), or `minutes` of training, which do not include compilation and measurements;
- `out`, the name of the run, and `resume`, to continue a run of that name;
- `runs`: train NAME-1, NAME-2, ... with seeds that grow by one;
- `against`: a table, or the name of one, to measure the player at every record;
- `threads`; `on_record`, which is called with every record and may return True to end the run;
  `progress`, which is called with the share that is done; `say`, with messages. By default nothing
  is shown;
- `cluster`, if the learner supports it: the address of a Ray cluster to train on, or an open
  connection (see `lab2048.connect`); `threads` is then the number of actors that play;
- `make`: a function from settings and threads to the learner, in place of its class.

Ctrl-C saves a checkpoint and raises a `KeyboardInterrupt`; `resume=True` goes on from there.

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
"""The largest number of runs per call."""


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
    """Train with the learner called `kind`, once or several times.

    `limits` on the length are by option (`limit_names`). `make` makes the learner in place of its
    class; `cluster` is a cluster to train on.
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
    """Return a function that makes learners on a cluster; it connects when first called."""
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
    """Return the given limit on the length of a run, by option, as a number.

    It is a `ValueError` if there are several, or none where the learner has no default.
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
    """Return the goal of a run; `given` are the settings that the user has chosen."""
    counts: dict[str, Any] = {**limits}
    minutes, count = counts.pop("minutes", None), counts.pop(settings.goal, None)
    if is_a_setting(type(settings)) and (settings.goal in given or not limits):
        count = getattr(settings, settings.goal)
    return Goal(count, None if minutes is None else 60 * minutes, measured, counts)


def table_against(against: Table | str, rules: Rules, stack: ExitStack) -> Table:
    """Return an open table of the board, given itself or by name; `stack` closes it.

    If the board is small and has no table, it is made now.
    """
    return stack.enter_context(require_table(Problem.of(rules), against))


def board_options(board: Rules | str | None, p4: float | None) -> dict[str, Any]:
    """Return `board` and `p4` as options, without those that are None."""
    if isinstance(board, Rules):
        return {"board": board.name, "p4": board.p4}
    given = {"board": board, "p4": p4}
    return {name: value for name, value in given.items() if value is not None}


# -- a function for every learner ----------------------------------------------------------------


def function_of(entry: LearnerEntry) -> Train:
    """Return the public function that trains with a learner."""
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
    """Return the signature of a function, with its learner's limits and settings by name."""
    known = inspect.signature(function)
    *usual, _ = known.parameters.values()
    names = [*limit_names(cls)[:-1], *(each.name for each in option_fields(cls))]
    more = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None) for n in names]
    return known.replace(parameters=[*usual, *more])


def _docstring(entry: LearnerEntry, cls: type[LearnerSettings]) -> str:
    """Return the docstring of a function: what it does, and the learner's settings."""
    lines = [entry.about, "", "See `lab2048.train` for the arguments that all learners have.", ""]
    for name in limit_names(cls)[:-1]:
        what = cls.counted if name == cls.goal else name
        lines.append(f"{name}: The number of {what} to train for.")
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
