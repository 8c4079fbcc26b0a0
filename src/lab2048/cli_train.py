"""The commands that train players."""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol

import typer

from lab2048 import cli_complete
from lab2048.cli_evaluate import say, table_for
from lab2048.cli_progress import progress_bar
from lab2048.game import P4
from lab2048.options import ForceOption, JsonOption, command_group, count_option
from lab2048.wording import size

if TYPE_CHECKING:
    from lab2048.game import Rules
    from lab2048.lanes import Counts
    from lab2048.learn.folder import Record
    from lab2048.learn.ntuple import Network
    from lab2048.learn.runs import Goal
    from lab2048.learn.training import Settings, Training
    from lab2048.solve.table import Table

app = command_group("Train a player, or list and pack what was trained.")

NameOption = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="NAME",
        help="The name that it gets.",
        autocompletion=cli_complete.networks,
    ),
]
AgainstOption = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="TABLE",
        help="Measure it against a table.",
        autocompletion=cli_complete.tables,
    ),
]


def board_option(usual: str) -> Any:
    """The option that says on which board to train."""
    about = f"The board's size; {usual}."
    return typer.Option("--board", metavar="RxC", help=about, autocompletion=cli_complete.boards)


STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""What asks a process to end; Windows does not have all of them."""


@app.command()
def ntuple(  # noqa: PLR0913, PLR0917
    board: Annotated[str | None, board_option("4x4")] = None,
    p4: Annotated[float | None, typer.Option("--p4", help="The chance of a 4.")] = None,
    network: Annotated[
        str | None,
        typer.Option("--network", help="A name such as 4x6, or tuples of cells in hexadecimal."),
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", help="td, tc, otd, otc, td+tc, otd+tc, state or q.")
    ] = None,
    episodes: Annotated[
        int | None, count_option("--episodes", "games", "Games, such as 5000, 200k or 1M.")
    ] = None,
    minutes: Annotated[float | None, typer.Option("--minutes", help="Or how long.")] = None,
    out: NameOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with it.")] = False,
    runs: Annotated[
        int, typer.Option("--runs", min=1, max=100, help="Trainings, each with a seed of its own.")
    ] = 1,
    against: AgainstOption = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", min=1, max=1024, help="As many as cores; 1 below 12 cells."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of the games; 1.")] = None,
    order: Annotated[
        str | None, typer.Option("--order", help="backward, after a game (4x4), or forward.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", help="How fast to learn; 0.1, for tc 1 or 0.5.")
    ] = None,
    initial: Annotated[
        float | None, typer.Option("--initial", help="What boards are worth at first (otd, otc).")
    ] = None,
    gamma: Annotated[float | None, typer.Option("--gamma", help="Discount a move.")] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="The chance of a random move (q).")
    ] = None,
    block: Annotated[
        str | None, typer.Option("--block", metavar="N|log", help="Games between two lines.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the curve: .svg, .png.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Train an n-tuple network by temporal-difference learning.

    Stop it with Ctrl-C; --resume goes on. What was learnt plays as ntuple:NAME.
    """
    from lab2048.learn.runs import Goal
    from lab2048.learn.truth import distance

    if (episodes is None) == (minutes is None):
        raise ValueError("a training lasts for --episodes or for --minutes")
    if minutes is not None and not 0 < minutes <= 1e6:
        raise ValueError(f"--minutes is a number above 0, not {minutes:g}")
    goal = Goal(episodes, 60 * minutes if minutes is not None else None)
    check_plot(plot, force)
    given = {
        "board": board, "p4": p4, "network": network, "method": method, "rate": rate,
        "initial": initial, "gamma": gamma, "epsilon": epsilon, "order": order, "seed": seed,
    }  # fmt: skip
    plans = [planned(given, out, resume, run, runs, threads) for run in range(runs)]
    with ExitStack() as stack:
        table = None
        if against is not None:
            if plans[0].settings.gamma != 1:
                raise ValueError("a table has no discount: --against goes without --gamma")
            table = stack.enter_context(table_against(against, plans[0].settings.rules))
        measure = None if table is None else partial(distance, table=table, threads=threads)
        results = [train(plan, goal, block, measure) for plan in plans]
        perfect = table.start_value["start"] if table is not None else None
    if as_json:
        print(json.dumps(results))
    else:
        for result in results:
            show(result)
        if runs > 1:
            show_runs(results)
    if plot is not None:
        from lab2048.learn.curves import plot_curves

        plot_curves({plans[0].settings.method: [each["log"] for each in results]}, plot, perfect)
        say(f"wrote {plot}")


def check_plot(path: Path | None, force: bool) -> None:
    """A `ValueError` unless a picture may be drawn there, if one is asked for."""
    from lab2048.home import check_target

    if path is not None:
        if path.suffix not in (".svg", ".png", ".pdf"):
            raise ValueError(f"a picture is .svg, .png or .pdf, not {path.name[:40]!r}")
        check_target(path, force=force)


def table_against(name: str, rules: Rules) -> Table:
    """The table of the board, which is made now if that takes no time, or another by its name."""
    from lab2048.solve.problem import ON_THE_FLY, Problem
    from lab2048.solve.table import command_for, find_table

    problem = Problem.of(rules)
    if name == rules.name and rules.cells > ON_THE_FLY and find_table(problem) is None:
        raise ValueError(f"there is no table {name}; make it with: {command_for(problem)}")
    found = table_for(rules, None if name == rules.name else name)
    assert found is not None
    return found


class Stoppable(Protocol):
    """A training that ends in good order when it is told to."""

    stopped: bool


class Plan(NamedTuple):
    """A training that is about to begin, or to go on."""

    name: str
    settings: Settings
    make: Callable[[], Training]
    new: bool


def planned(
    given: dict[str, Any], out: str | None, resume: bool, run: int, runs: int, threads: int | None
) -> Plan:
    """What the options ask for, or a `ValueError`."""
    from lab2048.learn.files import FILE, network_folder
    from lab2048.learn.training import Settings, Training
    from lab2048.learn.weights import read_about, read_weights

    settings = None if resume and out else settings_of(given, run)
    if out is None:
        assert settings is not None
        out = f"{settings.rules.name}-{short_name(settings.network)}-{settings.method}"
    name = f"{out}-{run + 1}" if runs > 1 else out
    path = network_folder(name) / FILE
    if not path.exists():
        first = network_folder(f"{out}-1") / FILE
        if resume and run > 0 and first.exists():  # stopped before it was begun
            before = Settings.from_facts(read_about(first))
            settings = replace(before, seed=before.seed + run)
        elif resume:
            raise ValueError(f"there is no network {name} to go on with")
        settings = settings or settings_of(given, run)
        return Plan(name, settings, partial(Training, settings, threads), True)
    if not resume:
        raise there_already(name)
    settings = resumed_settings(read_about(path), given, name, run)
    return Plan(
        name,
        settings,
        lambda: Training.resumed(read_weights(path, learning=True), threads),
        False,
    )


def there_already(name: str) -> ValueError:
    """Nothing that was learnt is ever replaced."""
    return ValueError(
        f"there is a network {name} already: --resume goes on with it, --out has another name"
    )


def short_name(network: Network) -> str:
    """The network's own name, or one made of its tuples."""
    digest = hashlib.sha256(" ".join(network.tuples).encode()).hexdigest()
    return network.name if " " not in network.name else digest[:8]


def settings_of(given: dict[str, Any], run: int) -> Settings:
    """The settings that options ask for."""
    from lab2048.game import Rules
    from lab2048.learn.ntuple import Network
    from lab2048.learn.training import Settings, usual_network

    found = {name: value for name, value in given.items() if value is not None}
    rules = Rules.parse(found.pop("board", "4x4"), found.pop("p4", P4))
    network = Network.of(found.pop("network", usual_network(rules)), rules)
    method = found.pop("method", "tc")
    found["seed"] = found.get("seed", 1) + run
    return Settings(rules, network, method, **found)


def resumed_settings(facts: dict[str, Any], given: dict[str, Any], name: str, run: int) -> Settings:
    """The settings of a training that goes on; a `ValueError` if options ask for others."""
    from lab2048.learn.ntuple import Network
    from lab2048.learn.training import Settings

    before = Settings.from_facts(facts)
    known = {**facts, "network": before.network.name, "rate": before.phases[0].rate}
    known["seed"] = before.seed - run
    for key, value in given.items():
        same = value == known[key]
        if key == "network" and value is not None:
            same = Network.of(value, before.rules) == before.network
        if value is not None and not same:
            raise ValueError(f"{name} was begun with --{key} {known[key]}, not {value}")
    return before


def train(
    plan: Plan, goal: Goal, block: str | None, measure: Callable[[Training], Record] | None
) -> dict[str, Any]:
    """Train, with progress on stderr; what is known about it at the end."""
    from lab2048.learn.files import FILE, network_folder
    from lab2048.learn.folder import alone
    from lab2048.learn.runs import block_size, check_room

    folder = network_folder(plan.name)
    games = block_size(block, goal, measure is not None)
    with alone(folder):
        if plan.new and (folder / FILE).exists():  # since the command began
            raise there_already(plan.name)
        training = plan.make()
        check_room(training, folder)
        introduce(plan, training, goal)
        records = train_on(plan.name, training, goal, folder, games, measure)
    if training.stopped:
        say(f"stopped after {training.games:,} games; --resume goes on from there")
        raise KeyboardInterrupt
    return {
        "name": plan.name,
        **training.stored().facts,
        "log": records,
        "by_tile": by_tile(training.recent),
    }


def train_on(
    name: str,
    training: Training,
    goal: Goal,
    folder: Path,
    games: int,
    measure: Callable[[Training], Record] | None,
) -> list[Record]:
    """Train with a bar and a line for each block of games; all records of the training."""
    from lab2048.learn.runs import run

    with stopping(training), progress_bar(parts=True) as bar:
        task = bar.add_task(name, total=1.0)

        def moved(done: int) -> None:
            bar.update(task, completed=goal.share_at(training, done))

        def tell(record: Record) -> None:
            bar.console.print(line_of(record), markup=False, highlight=False, soft_wrap=True)

        return run(
            training,
            goal,
            folder,
            block=games,
            tell=tell,
            say=say,
            progress=moved,
            measure=measure,
        )


@contextmanager
def stopping(training: Stoppable) -> Iterator[None]:
    """Let Ctrl-C end a training in good order, or what else asks it to; the second time at once.

    What is ignored, as by nohup, still is.
    """

    def stop(number: int, frame: object) -> None:
        training.stopped = True
        say("stopping")
        signal.signal(number, before[number])

    heard = [each for each in STOPS if signal.getsignal(each) not in (signal.SIG_IGN, None)]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def introduce(plan: Plan, training: Training, goal: Goal) -> None:
    """Say what is about to happen."""
    settings, network = plan.settings, plan.settings.network
    say(
        f"{plan.name}: {settings.rules.name}, tuples {' '.join(network.tuples)} "
        f"({network.size:,} weights, {size(training.largest)}); "
        f"{settings.method}, {settings.order}, seed {settings.seed}, {training.threads} "
        f"thread{'s' * (training.threads > 1)}"
    )
    if goal.share(training) >= 1:
        say(f"it has had {training.games:,} games already: there is nothing left to do")
    elif training.games:
        say(f"going on after {training.games:,} games")


def line_of(record: Record) -> str:
    """A block of games in a line."""
    text = (
        f"{record['games']:>11,} games  {record['phase']:3}  mean {record['mean']:>9,.0f}  "
        f"max {record['max']:>7,}  {record['moves_per_second'] / 1e6:5.2f} M moves/s "
    )
    for tile, share in list(record["reach"].items())[-4:]:
        text += f"  {tile}: {100 * share:.1f}%"
    if "exact" in record:
        exact = record["exact"]
        text += (
            f"\n{'exactly':>17}       mean {exact['mean']:>9,.1f}  regret {exact['regret']:,.1f}  "
            f"{100 * exact['share']:.2f}% of perfect; values off by {exact['error']:,.1f}"
        )
    return text


def by_tile(results: Counts) -> list[dict[str, Any]]:
    """Games by their largest tile: how many, how they were, and how many made at least this one."""
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


def show(result: dict[str, Any]) -> None:
    """The table by tile, and what to do next."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid

    console = Console(highlight=False)
    rows = result["by_tile"]
    if rows:
        grid = Grid(box=box.SIMPLE)
        for heading in ("largest tile", "games", "mean score", "mean moves", "share", "reached"):
            grid.add_column(heading, justify="right")
        for row in rows:
            grid.add_row(
                f"{row['tile']:,}", f"{row['games']:,}", f"{row['score']:,.0f}",
                f"{row['moves']:,.0f}", f"{100 * row['share']:.2f}%", f"{100 * row['reach']:.2f}%",
            )  # fmt: skip
        console.print(grid)
        last = sum(row["games"] for row in rows)
        console.print(f"the last {last:,} of {result['games']:,} games")
    console.print(
        f"{result['name']} is ready: lab2048 evaluate ntuple:{result['name']} "
        f"--board {result['board']}", soft_wrap=True,
    )  # fmt: skip


def show_runs(results: list[dict[str, Any]]) -> None:
    """The curve of several trainings: the mean, and its interval across them."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid

    from lab2048.learn.curves import are_exact, curve

    console = Console(highlight=False)
    grid = Grid(box=box.SIMPLE)
    logs = [each["log"] for each in results]
    for heading in ("games", "exact mean" if are_exact(logs) else "mean score", "+/-"):
        grid.add_column(heading, justify="right")
    for point in curve(logs):
        grid.add_row(f"{point.games:,}", f"{point.mean:,.1f}", f"{point.half:,.1f}")
    console.print(grid)
    console.print(f"{len(results)} trainings; +/-: 95% across them")
