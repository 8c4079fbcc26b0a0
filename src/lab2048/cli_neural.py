"""The commands that train neural networks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from lab2048.cli_cluster import team_at
from lab2048.cli_evaluate import say
from lab2048.cli_progress import move_on, progress_bar
from lab2048.cli_train import (
    AgainstOption,
    NameOption,
    board_option,
    check_plot,
    stopping,
    table_against,
    there_already,
)
from lab2048.options import ClusterOption, ForceOption, JsonOption, ThreadsOption, count_option

if TYPE_CHECKING:
    from lab2048.learn.encoding import Batch
    from lab2048.learn.files import Facts, Tensors
    from lab2048.learn.supervised import Settings
    from lab2048.learn.supervised import Training as Supervised
    from lab2048.learn.zero import Goal
    from lab2048.learn.zero import Training as SelfPlay
    from lab2048.solve.table import Table

app = typer.Typer()

MEASURED = 500
"""Games that tell how strong a network is in the course of a training."""

FourOption = Annotated[float | None, typer.Option("--p4", help="The chance of a 4.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on with it.")]
SeedOption = Annotated[int | None, typer.Option("--seed", min=0, help="Of all that is drawn; 1.")]
RateOption = Annotated[float | None, typer.Option("--rate", help="How fast to learn.")]
DeviceOption = Annotated[
    str, typer.Option("--device", help="cpu, cuda, or auto for what there is.")
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw the curves: .svg, .png.")
]


# -- what both have ------------------------------------------------------------------------------


class Before(NamedTuple):
    """What was stored of a training that is to go on."""

    facts: Facts
    tensors: Tensors
    stamp: int
    """When the file was written."""


def stored(name: str, resume: bool, kind: str, module: Any) -> Before | None:
    """What there is under a name, if the training is to go on; a `ValueError` if it cannot."""
    from lab2048.learn.files import FILE, network_folder, read_tensors

    path = network_folder(name) / FILE
    if not path.exists():
        if resume:
            raise ValueError(f"there is no network {name} to go on with")
        return None
    if not resume:
        raise there_already(name)
    stamp = path.stat().st_mtime_ns
    found = read_tensors(path, kind, module.FACTS, check=module.check_stored)
    before = Before(*found, stamp)
    if "packed" in before.facts:
        raise ValueError(f"{name} is packed: it plays, but cannot go on learning")
    return before


def go_on(training: Any, before: Before, name: str) -> None:
    """Let a training go on from what was stored, or raise a `ValueError` if that does not fit."""
    from lab2048.learn.files import damage_told

    with damage_told(name):
        training.resume(before.facts, before.tensors)


def check_unchanged(name: str, before: Before | None) -> None:
    """A `ValueError` if somebody else has trained it since the command began."""
    from lab2048.learn.files import FILE, network_folder

    path = network_folder(name) / FILE
    if before is None and path.exists():
        raise there_already(name)
    if before is not None and path.stat().st_mtime_ns != before.stamp:
        raise ValueError(f"{name} was trained by another command meanwhile; --resume again")


def settings_of(cls: Any, given: dict[str, Any], before: Before | None, name: str) -> Any:
    """Settings as options ask for them, or as they were when the training began.

    Only the number of epochs may change.
    """
    from lab2048.game import P4, Rules

    asked = {key: value for key, value in given.items() if value is not None}
    if before is None:
        rules = Rules.parse(asked.pop("board"), asked.pop("p4", P4))
        return cls.of(rules, **asked)
    facts = {**before.facts, "epochs": asked.get("epochs", before.facts.get("epochs"))}
    for key, value in asked.items():
        if facts[key] != value:
            raise ValueError(f"{name} was begun with --{key} {facts[key]}, not {value}")
    return cls.from_facts(facts)


def tell_ready(kind: str, name: str, training: Any, records: list[Facts], as_json: bool) -> None:
    """Say what was trained, or how to let it play."""
    if as_json:
        print(json.dumps({"name": name, **training.facts, "log": records}))
    else:
        board = training.settings.rules.name
        print(f"{name} is ready: lab2048 evaluate {kind}:{name} --board {board}")


def use_threads(threads: int | None) -> int:
    """Let torch use so many cores; how many that are."""
    import torch

    from lab2048.notation import checked_threads

    found = checked_threads(threads)
    torch.set_num_threads(found)
    return found


# -- supervised ----------------------------------------------------------------------------------


@app.command()
def supervised(  # noqa: PLR0913, PLR0917
    data: Annotated[
        list[Path] | None, typer.Option("--data", metavar="FILE", help="Moves, or perfect labels.")
    ] = None,
    board: Annotated[str | None, board_option("4x4")] = None,
    p4: FourOption = None,
    network: Annotated[
        str | None, typer.Option("--network", help="cnn4, cnn5, cnn5_sym, mlp4 or mlp5; cnn5.")
    ] = None,
    channels: Annotated[
        int | None,
        typer.Option("--channels", min=1, max=4096, help="Of convolutions, if not the study's."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=1, max=100_000, help="Times through the data; 10.")
    ] = None,
    batch: Annotated[
        int | None, count_option("--batch", "moves", "Moves of a step; 1000.", 2, 1 << 20)
    ] = None,
    rate: RateOption = None,
    images: Annotated[
        str | None,
        typer.Option("--images", help="Of boards to learn from: given, random or upright; given."),
    ] = None,
    soft: Annotated[
        float | None,
        typer.Option(
            "--soft", help="Labels: a move that is so much worse is 2.7 times less right."
        ),
    ] = None,
    test: Annotated[
        Path | None, typer.Option("--test", metavar="FILE", help="Other data, to test it with.")
    ] = None,
    out: NameOption = None,
    resume: ResumeOption = False,
    seed: SeedOption = None,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
    plot: PlotOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Train a network on recorded moves, or on perfect labels.

    Stop it with Ctrl-C; --resume goes on. What was learnt plays as supervised:NAME.
    """
    from lab2048.learn.neural import torch_module

    module = torch_module("supervised")
    name = out or f"{board or '4x4'}-{network or 'cnn5'}"
    before = stored(name, resume, "supervised", module)
    given = {
        "board": board or (None if before else "4x4"), "p4": p4, "network": network,
        "channels": channels, "epochs": epochs, "batch": batch, "rate": rate, "images": images,
        "soft": soft, "seed": seed,
    }  # fmt: skip
    settings = settings_of(module.Settings, given, before, name)
    if not data and before:
        data = [Path(each) for each in before.facts["data"]]
    if not data:
        raise ValueError("it needs moves to learn from: --data FILE; lab2048 data make writes some")
    check_plot(plot, force)
    chosen = torch_module("learner").pick_device(device)
    use_threads(threads)
    moves, source = batches_of(data, settings)
    tests = batches_of([test], settings)[1] if test else None
    training = module.Training(settings, chosen, math.ceil(moves / settings.batch), data)
    if before:
        training.check_data(before.facts)
        go_on(training, before, name)
    say(
        f"{name}: {settings.rules.name}, {settings.network} with {training.size:,} weights; "
        f"{moves:,} moves, {settings.epochs} epochs, seed {settings.seed}, on {chosen}"
    )
    records = train_supervised(name, training, source, tests, before)
    if plot is not None:
        from lab2048.learn.curves import plot_epochs

        plot_epochs({name: records}, plot)
        say(f"wrote {plot}")
    tell_ready("supervised", name, training, records, as_json)


def batches_of(
    paths: list[Path], settings: Settings
) -> tuple[int, Callable[[int], Iterator[Batch]]]:
    """How many moves there are in files, which are looked through first, and those of an epoch."""
    from lab2048.data import is_labels, open_moves, shuffled, summarise
    from lab2048.labels import drawn, joined, read_labels

    rules, size, seed, soft = settings.rules, settings.batch, settings.seed, settings.soft
    kinds = {is_labels(path) for path in paths}
    if kinds == {True}:
        labels = joined([read_labels(path, rules) for path in paths])
        return len(labels.boards), lambda epoch: drawn(labels, size, seed, epoch, soft or None)
    if True in kinds or soft:
        raise ValueError("labels cannot be learnt from together with moves; --soft is for labels")
    sources = [open_moves(path, rules) for path in paths]
    moves = 0
    with progress_bar() as bar:
        for source in sources:
            task = bar.add_task(f"reading {source.path.name}", total=len(source))
            found = summarise(source, partial(move_on, bar, task))
            moves += found.moves
            say(
                f"{source.path}: {found.moves:,} moves; cells are of the tile {found.cell} the move"
            )
    if moves == 0:
        raise ValueError("there are no moves in the data")
    return moves, lambda epoch: shuffled(sources, size, seed, epoch)


def train_supervised(
    name: str,
    training: Supervised,
    batches: Callable[[int], Iterator[Batch]],
    tests: Callable[[int], Iterator[Batch]] | None,
    before: Before | None,
) -> list[Facts]:
    """Train with a bar and a line for each epoch; the records of all epochs."""
    from lab2048.learn.files import network_folder
    from lab2048.learn.folder import alone
    from lab2048.learn.supervised import run

    folder = network_folder(name)
    with alone(folder), stopping(training), progress_bar(parts=True) as bar:
        check_unchanged(name, before)
        task = bar.add_task(name, total=1.0)

        def tell(record: Facts) -> None:
            line = (
                f"epoch {record['epoch']:>3}  loss {record['loss']:.4f}  "
                f"accuracy {100 * record['accuracy']:.2f}%"
            )
            if "test_loss" in record:
                line += (
                    f"  test loss {record['test_loss']:.4f}  "
                    f"accuracy {100 * record['test_accuracy']:.2f}%"
                )
            bar.console.print(line, markup=False, highlight=False, soft_wrap=True)

        records = run(
            training,
            batches,
            folder,
            tell=tell,
            say=say,
            look=lambda: bar.update(task, completed=training.share),
            test=None if tests is None else partial(tests, 0),
        )
    if training.stopped:
        say(f"stopped in epoch {training.epoch + 1}; --resume goes on from there")
        raise KeyboardInterrupt
    return records


# -- zero ----------------------------------------------------------------------------------------


@app.command()
def zero(  # noqa: PLR0913, PLR0917
    board: Annotated[str | None, board_option("3x3")] = None,
    p4: FourOption = None,
    preset: Annotated[
        str | None, typer.Option("--preset", help="tiny, small, paper or zhou; small.")
    ] = None,
    simulations: Annotated[
        int | None,
        typer.Option("--simulations", min=1, max=100_000, help="Of each move in self-play."),
    ] = None,
    moves: Annotated[
        int | None, count_option("--moves", "moves", "Moves to learn from, such as 2M.")
    ] = None,
    minutes: Annotated[float | None, typer.Option("--minutes", help="Or how long.")] = None,
    out: NameOption = None,
    resume: ResumeOption = False,
    against: AgainstOption = None,
    parts: Annotated[
        int, typer.Option("--parts", min=1, max=100_000, help="Lines of the log.")
    ] = 20,
    rate: RateOption = None,
    seed: SeedOption = None,
    threads: ThreadsOption = None,
    cluster: ClusterOption = None,
    device: DeviceOption = "auto",
    plot: PlotOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Train a network by self-play with tree search, in the manner of AlphaZero.

    Stop it with Ctrl-C; --resume goes on. What was learnt plays as zero:NAME. On a cluster
    --threads is the number of actors that play; what they have played is learnt from here.
    """
    from lab2048.learn.neural import torch_module

    module = torch_module("zero")
    if (moves is None) == (minutes is None):
        raise ValueError("a training lasts for --moves or for --minutes")
    if minutes is not None and not 0 < minutes <= 1e6:
        raise ValueError(f"--minutes is a number above 0, not {minutes:g}")
    goal = module.Goal(moves, 60 * minutes if minutes is not None else None)
    name = out or f"{board or '3x3'}-zero"
    before = stored(name, resume, "zero", module)
    given = {
        "board": board or (None if before else "3x3"), "p4": p4, "preset": preset,
        "simulations": simulations, "rate": rate, "seed": seed,
    }  # fmt: skip
    settings = settings_of(module.Settings, given, before, name)
    check_plot(plot, force)
    chosen = torch_module("learner").pick_device(device)
    if before and threads not in (None, before.facts["threads"]):
        raise ValueError(f"{name} was begun with --threads {before.facts['threads']}")
    crews = before.facts["threads"] if before else threads
    with team_at(cluster, crews) as team:
        if team is None:
            training = module.Training(settings, chosen, use_threads(crews))
        else:
            from lab2048.cluster.selfplay import FarTraining

            use_threads(None)
            training = FarTraining(settings, chosen, crews or team.workers, team=team)
        if before:
            go_on(training, before, name)
        say(
            f"{name}: {settings.rules.name}, preset {settings.preset}, {training.size:,} weights; "
            f"{settings.simulations} simulations, {settings.games} games side by side, "
            f"seed {settings.seed}, on {chosen}"
        )
        records, perfect = train_zero(name, training, goal, against, parts, before)
    if plot is not None:
        from lab2048.learn.curves import plot_self_play

        plot_self_play({name: records}, plot, perfect)
        say(f"wrote {plot}")
    tell_ready("zero", name, training, records, as_json)


def train_zero(
    name: str,
    training: SelfPlay,
    goal: Goal,
    against: str | None,
    parts: int,
    before: Before | None,
) -> tuple[list[Facts], float | None]:
    """Train with a bar and a line for each part; all records, and what perfect play is worth."""
    from lab2048.learn.files import network_folder
    from lab2048.learn.folder import alone
    from lab2048.learn.zero import run

    folder = network_folder(name)
    with ExitStack() as stack:
        table = None
        if against is not None:
            table = stack.enter_context(table_against(against, training.settings.rules))
        stack.enter_context(alone(folder))
        check_unchanged(name, before)
        if goal.share(training) >= 1:
            say(f"it has had {training.moves:,} moves already: there is nothing left to do")
        stack.enter_context(stopping(training))
        bar = stack.enter_context(progress_bar(parts=True))
        task = bar.add_task(name, total=1.0)
        records = run(
            training,
            goal,
            folder,
            block=1 / parts,
            tell=lambda record: bar.console.print(
                zero_line(record), markup=False, highlight=False, soft_wrap=True
            ),
            say=say,
            look=lambda: bar.update(task, completed=goal.share(training)),
            measure=None if table is None else partial(bare_policy, training, table),
        )
        perfect = None if table is None else table.start_value["start"]
    if training.stopped:
        say(f"stopped after {training.moves:,} moves; --resume goes on from there")
        raise KeyboardInterrupt
    return records, perfect


def bare_policy(training: SelfPlay, table: Table) -> Facts:
    """How the network plays without search, by games that are judged with a table.

    The mean is what perfect play is worth, less what the moves of the games have lost: scores of
    the same games differ far more by luck.
    """
    import numpy as np

    from lab2048.arena import play_games
    from lab2048.learn.neural import Loaded, Zero
    from lab2048.measure import judge, mean_interval

    rules = training.settings.rules
    player = Zero(rules, given=Loaded(training.network(), training.facts), simulations=0)
    playing = play_games(player, iter(range(MEASURED)), 0, len(training.crews))
    games = sorted(playing, key=lambda game: game.index)
    judged = judge(games, 0, table)
    lost = np.bincount(judged.game, judged.regret, len(games))
    best = table.start_value["start"]
    assert best is not None
    low, high = mean_interval(lost) or (0.0, 0.0)
    return {
        "bare": {
            "mean": best - float(lost.mean()),
            "ci95": [best - high, best - low],
            "regret_per_move": float(judged.regret.mean()),
            "agreement": float(judged.optimal.mean()),
        }
    }


def zero_line(record: Facts) -> str:
    """A part of a training in a line."""
    text = (
        f"{record['moves']:>11,} moves  {record['games']:>8,} games  mean {record['mean']:>8,.0f}  "
        f"{record['moves_per_second']:,.0f} moves/s  losses {record['policy_loss']:.3f} "
        f"{record['state_loss']:.5f} {record['after_loss']:.5f}"
    )
    if record["behind"]:
        text += f"  weights up to {record['behind']} behind"
    if "bare" in record:
        bare = record["bare"]
        text += f"\n{'bare policy':>17}  mean {bare['mean']:,.0f} +/- "
        text += f"{(bare['ci95'][1] - bare['ci95'][0]) / 2:,.0f}  "
        text += f"agreement {100 * bare['agreement']:.1f}%"
    return text
