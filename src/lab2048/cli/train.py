"""The commands that train players: one per learner, made from the fields of its settings."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import Field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lab2048.cli import completion
from lab2048.cli.console import check_target, new_table, output, progress_bar, say
from lab2048.cli.options import (
    ClusterOption,
    ForceOption,
    JsonOption,
    command_group,
    count_option,
    in_python,
)
from lab2048.learn.registry import LearnerEntry, find_learner, is_learner, learners

if TYPE_CHECKING:
    from lab2048.learn.learner import Learner
    from lab2048.learn.result import TrainedRun, TrainedRuns
    from lab2048.learn.resume import Callbacks
    from lab2048.learn.settings import LearnerSettings

NameOption = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="NAME",
        help="Name of the trained network.",
        autocompletion=completion.networks,
    ),
]
AgainstOption = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="TABLE",
        help="Measure it against perfect play, with this table.",
        autocompletion=completion.tables,
    ),
]
FourOption = Annotated[float | None, typer.Option("--p4", help="The chance of a 4.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Resume an earlier training.")]
RunsOption = Annotated[
    int, typer.Option("--runs", min=1, max=100, help="Number of trainings, each with its own seed.")
]
MinutesOption = Annotated[float | None, typer.Option("--minutes", help="Or how many minutes.")]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw the curve: .svg, .png.")
]


class LearnerCommands(TyperGroup):
    """The group `train`: one command per learner, made on demand, and the others."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, those of learners first."""
        return [*learners(), *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name."""
        if is_learner(cmd_name):
            return command_of(find_learner(cmd_name))
        return super().get_command(ctx, cmd_name)


app = command_group("Train a player, or list and pack what was trained.")
app.info.cls = LearnerCommands


# -- a command from settings ---------------------------------------------------------------------


def command_of(entry: LearnerEntry) -> Any:
    """Return the command that trains with a learner."""
    cls = entry.load_settings()

    def call(**options: Any) -> None:
        train(entry, cls, options)

    call.__signature__ = inspect.Signature(parameters_of(entry, cls))  # type: ignore[attr-defined]
    call.__doc__ = (
        f"{entry.about}\n\nStop it with Ctrl-C; --resume goes on. The trained network plays as "
        f"{entry.name}:NAME."
    )
    if entry.far:
        call.__doc__ += " On a cluster --threads is the number of actors."
    single = typer.Typer(add_completion=False)
    single.command(entry.name, epilog=in_python(entry.call()))(call)
    return typer.main.get_command(single)


def parameters_of(entry: LearnerEntry, cls: type[LearnerSettings]) -> list[inspect.Parameter]:
    """Return the parameters of a command: the common ones, and the settings of the learner."""
    from lab2048.learn.settings import limit_names, option_fields

    fields = option_fields(cls)
    about = f"The board's size; {cls.board}."
    board = typer.Option("--board", metavar="RxC", help=about, autocompletion=completion.boards)
    threads = typer.Option("--threads", min=1, max=1024, help=cls.threads_about)
    found: dict[str, tuple[Any, Any]] = {
        "board": (Annotated[str | None, board], None),
        "p4": (FourOption, None),
    }
    *counts, _ = limit_names(cls)
    for name in counts:
        what = cls.counted if name == cls.goal else name
        told = f"{what.capitalize()}, such as 5000, 200k or 1M."
        told = told if name == cls.goal else f"Or how many {what}."
        found[name] = (Annotated[int | None, count_option(f"--{name}", what, told)], None)
    found["minutes"] = (MinutesOption, None)
    found |= {each.name: (annotation_of(each), None) for each in fields}
    found |= {
        "out": (NameOption, None), "resume": (ResumeOption, False), "runs": (RunsOption, 1),
        "against": (AgainstOption, None), "threads": (Annotated[int | None, threads], None),
    }  # fmt: skip
    if entry.far:
        found["cluster"] = (ClusterOption, None)
    found |= {"plot": (PlotOption, None), "force": (ForceOption, False)}
    found["as_json"] = (JsonOption, False)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(name, keyword, default=default, annotation=annotation)
        for name, (annotation, default) in found.items()
    ]


def annotation_of(each: Field[Any]) -> Any:
    """Return the annotated type of the option of a setting; None if it is not given."""
    from lab2048.learn.settings import help_of

    facts, flag = each.metadata, f"--{each.name.replace('_', '-')}"
    about, kind = help_of(each), facts["kind"]
    if facts["counts"]:
        option = count_option(flag, facts["counts"], about, int(facts["low"]), int(facts["high"]))
        return Annotated[int | None, option]
    if kind is bool:
        return Annotated[bool | None, typer.Option(f"{flag}/--no-{flag[2:]}", help=about)]
    complete = completing(facts["choices"]) if facts["choices"] else None
    found = typer.Option(flag, metavar=facts["metavar"], help=about, autocompletion=complete)
    return Annotated[(list[str] if kind is tuple else kind) | None, found]


def completing(choices: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Return a function that completes one of some words."""
    return lambda incomplete: completion.matching(choices, incomplete)


# -- training ------------------------------------------------------------------------------------


def train(entry: LearnerEntry, cls: type[LearnerSettings], options: dict[str, Any]) -> None:
    """Train with the options of a command, and print the result."""
    from lab2048.learn import train as training
    from lab2048.learn.resume import TrainingRequest
    from lab2048.learn.settings import limit_names, option_fields

    plot: Path | None = options["plot"]
    limits = {name: options[name] for name in limit_names(cls)}
    training.checked_limits(cls, limits)
    check_plot(plot, options["force"])
    names = ["board", "p4", *(each.name for each in option_fields(cls))]
    given = {name: options[name] for name in names if options[name] is not None}
    request = TrainingRequest(
        given, *(options[name] for name in ("out", "resume", "runs", "threads"))
    )
    learner = entry.load()
    with ExitStack() as stack:
        found = training.train_all(
            entry.name,
            request,
            limits=limits,
            against=options["against"],
            cluster=options.get("cluster"),
            hear=callbacks_of(learner, stack),
        )
    show(found, options["as_json"])
    if plot is not None:
        from lab2048.report.writing import write_plots

        write_plots(found, plot, force=True)
        say(f"wrote {plot}")


def callbacks_of(learner: type[Learner[Any]], stack: ExitStack) -> Callbacks:
    """Return the callbacks of a training: a progress bar, and a line per record, on stderr."""
    from lab2048.learn.resume import Callbacks

    bar = stack.enter_context(progress_bar(parts=True))
    tasks: dict[str, Any] = {}

    def move_on(share: float, what: str) -> None:
        if what not in tasks:
            for old in tasks.values():
                bar.remove_task(old)
            tasks.clear()
            tasks[what] = bar.add_task(what, total=1.0)
        bar.update(tasks[what], completed=share)

    def tell(record: dict[str, Any]) -> None:
        line = learner.line(record)
        bar.console.print(line, markup=False, highlight=False, soft_wrap=True)

    return Callbacks(tell, move_on, say)


def check_plot(path: Path | None, force: bool) -> None:
    """Raise a `ValueError` unless a picture may be drawn to a file, if one was given."""
    if path is not None:
        from lab2048.report.writing import check_picture

        check_picture(path)
        check_target(path, force=force)


# -- results -------------------------------------------------------------------------------------


def show(found: TrainedRuns, as_json: bool) -> None:
    """Print what was trained: one JSON value, or tables and what to do next."""
    if as_json:
        value = found.as_json()
        listed = len(found) > 1 or find_learner(found[0].kind).listed
        print(json.dumps(value if listed else value[0]))
        return
    for run in found:
        show_run(run)
    if len(found) > 1:
        show_curve(found)


def show_run(run: TrainedRun) -> None:
    """Print the last games by their largest tile, if that is known, and what to do next."""
    console = output()
    rows = run.more.get("by_tile")
    if rows:
        grid = new_table()
        for heading in ("largest tile", "games", "mean score", "mean moves", "share", "reached"):
            grid.add_column(heading, justify="right")
        for row in rows:
            grid.add_row(
                f"{row['tile']:,}", f"{row['games']:,}", f"{row['score']:,.0f}",
                f"{row['moves']:,.0f}", f"{100 * row['share']:.2f}%", f"{100 * row['reach']:.2f}%",
            )  # fmt: skip
        console.print(grid)
        last = sum(row["games"] for row in rows)
        console.print(f"the last {last:,} of {run.counts['games']:,} games")
    board = run.settings.rules.name
    print(f"{run.name} is ready: lab2048 evaluate {run.kind}:{run.name} --board {board}")


def show_curve(runs: TrainedRuns) -> None:
    """Print the curve of several trainings: the mean, and its interval across them."""
    console = output()
    grid = new_table()
    scores = "mean score" if all("mean" in each for each in runs[0].log) else "loss"
    counted = runs[0].settings.counted
    for heading in (counted, f"{runs.measured} mean" if runs.measured else scores, "+/-"):
        grid.add_column(heading, justify="right")
    digits = 1 if runs.measured or scores == "mean score" else 4
    for point in runs.curve():
        grid.add_row(f"{point.count:,}", f"{point.mean:,.{digits}f}", f"{point.half:,.{digits}f}")
    console.print(grid)
    console.print(f"{len(runs)} trainings; +/-: 95% across them")
