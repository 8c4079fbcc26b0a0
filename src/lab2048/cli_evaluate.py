"""The commands about players: players, evaluate."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab2048 import cli_complete
from lab2048.cli_cluster import player_on, team_at
from lab2048.cli_progress import progress_bar
from lab2048.game import P4
from lab2048.options import (
    BoardOption,
    ClusterOption,
    ForceOption,
    FourOption,
    JsonOption,
    ThreadsOption,
    count_option,
)
from lab2048.wording import number

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table as Grid

    from lab2048.arena import Play
    from lab2048.game import Rules
    from lab2048.measure import Evaluation
    from lab2048.player import Player
    from lab2048.solve.table import Table

app = typer.Typer()

TableOption = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="TABLE",
        help="A table to compare with, by name or folder.",
        autocompletion=cli_complete.tables,
    ),
]
GamesSeedOption = Annotated[int, typer.Option("--seed", help="Same seed, same games.")]


# -- players -------------------------------------------------------------------------------------


@app.command()
def players(as_json: JsonOption = False) -> None:
    """List all players with their options and defaults."""
    from rich.console import Console

    from lab2048.player import format_value
    from lab2048.players import PLAYERS, player_class
    from lab2048.search.heuristics import HEURISTICS

    found = {}
    for name in PLAYERS:
        cls = player_class(name)
        found[name] = {
            "about": cls.about,
            "values": cls.meaning,
            "options": {
                each.name: {
                    "default": each.default,
                    "about": each.metadata["about"],
                    "choices": list(each.metadata["choices"]) or None,
                }
                for each in cls.options()
            },
        }
    if as_json:
        print(json.dumps(found))
        return
    console = Console(highlight=False)
    for name, facts in found.items():
        console.print(f"[bold]{name}[/]  {facts['about']}", soft_wrap=True)
        for each in player_class(name).options():
            choices = each.metadata["choices"]
            default = "-" if each.default is None else format_value(each.default)
            shown = f" ({', '.join(choices)})" if choices else ""
            text = f"    {each.name + '=' + default:22} {each.metadata['about']}{shown}"
            console.print(text, markup=False, soft_wrap=True)
    console.print("[bold]python:MODULE.FUNCTION[/]  your own player (see docs/methods.md)")
    console.print("\nWhat a board may be worth to a search, heuristic=")
    for heuristic, what in HEURISTICS.items():
        console.print(f"    {heuristic:6} {what.about}", markup=False, soft_wrap=True)
    console.print("\nAs in: lab2048 evaluate greedy expectimax:depth=2,heuristic=snake --board 3x3")


# -- evaluate ------------------------------------------------------------------------------------


@app.command()
def evaluate(  # noqa: PLR0913, PLR0917
    specs: Annotated[
        list[str],
        typer.Argument(
            metavar="PLAYER...",
            help="Such as greedy expectimax:depth=2.",
            autocompletion=cli_complete.players,
        ),
    ],
    board: BoardOption = "4x4",
    p4: FourOption = P4,
    games: Annotated[
        int, count_option("--games", "games", "Games per player, such as 500 or 10k.", high=10**8)
    ] = 100,
    seed: GamesSeedOption = 1,
    table: TableOption = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Also the exact mean score, without games.")
    ] = False,
    threads: ThreadsOption = None,
    cluster: ClusterOption = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE", help="Keep the games: .jsonl, .parquet."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write a page with pictures.")
    ] = None,
    plots: Annotated[
        Path | None, typer.Option("--plots", metavar="DIR", help="Save the pictures as SVG files.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table.")] = False,
) -> None:
    """Play games of one or more players, and measure them against each other and perfect play.

    Stop it with Ctrl-C, and go on with the same command.
    """
    from lab2048.chance import checked_seed
    from lab2048.game import Rules
    from lab2048.players import make_player
    from lab2048.solve.policy import check_exact

    if as_json + as_csv + as_latex > 1:
        raise ValueError("only one of --json, --csv and --latex can be printed")
    rules = Rules.parse(board, p4)
    checked_seed(seed)
    check_targets(save, report, plots, rules, force)
    entrants = [make_player(spec, rules) for spec in specs]
    if len({each.spec for each in entrants}) < len(entrants):
        raise ValueError("the same player is given twice")
    if exact:
        for each in entrants:
            check_exact(each)
    with ExitStack() as stack:
        found = table_for(rules, table)
        if found is not None:
            stack.enter_context(found)
        exactly = [each.spec for each in entrants] if exact else []
        team = stack.enter_context(team_at(cluster, threads))
        measured = run(entrants, games, seed, threads, found, exactly, player_on(team))
    results = results_of(measured)
    _keep(results)
    if save is not None:
        save_games(entrants, measured, seed, save)
    if report is not None:
        from lab2048.report import write_report

        write_report(results, report, sys.argv[1:])
        say(f"wrote {report}")
    if plots is not None:
        from lab2048.report import write_plots

        for path in write_plots(results, plots):
            say(f"wrote {path}")
    if as_json:
        print(json.dumps([without_details(each) for each in results]))
    elif as_csv or as_latex:
        print((csv_table if as_csv else latex_table)(results), end="")
    else:
        show_results(results)
    forget(entrants, seed)


def _keep(results: list[dict[str, Any]]) -> None:
    """Keep results for the studio; a full disk costs that, not what is printed."""
    from lab2048.results import keep_results

    try:
        keep_results(results, sys.argv[1:])
    except OSError as error:
        say(f"the results could not be kept: {error.strerror}")


def check_targets(
    save: Path | None, report: Path | None, plots: Path | None, rules: Rules, force: bool
) -> None:
    """An error, before any game is played, if results may not be written where they should."""
    from lab2048.home import check_target
    from lab2048.records import check_file

    if save is not None:
        check_file(save, force)
    if report is not None:
        check_target(report, force=force)
    if plots is not None:
        check_target(plots, files=[f"{rules.name}-*.svg"], force=force)


def table_for(rules: Rules, name: str | None) -> Table | None:
    """The table to compare with: the one that was named, or that of these rules if it is there."""
    from lab2048.solve.problem import MAX_CELLS, ON_THE_FLY, Problem

    if name is not None:
        from lab2048.cli_solve import folder_of
        from lab2048.solve.table import Table

        found = Table(folder_of(name))
        if found.rules != rules or found.problem.goal != "score" or found.problem.gamma != 1:
            problem = found.problem
            found.close()
            raise ValueError(
                f"the table {name} is of {problem.name}, the games are scored on {rules.name} with "
                f"p4 {rules.p4:g}"
            )
        return found
    if rules.cells > MAX_CELLS:
        return None
    from lab2048.solve.table import command_for, find_table, open_table

    problem = Problem.of(rules)
    if find_table(problem) is not None:
        return open_table(problem)
    if rules.cells <= ON_THE_FLY:
        from lab2048.cli_solve import solved

        return solved(problem)
    say(f"for the distance from perfect play, solve the board once: {command_for(problem)}")
    return None


def run(
    entrants: Sequence[Player],
    games: int,
    seed: int,
    threads: int | None,
    table: Table | None,
    exact: Collection[str],
    play: Play | None = None,
) -> list[Evaluation]:
    """Let players play, with progress, and measure each; of those in `exact` exactly too."""
    from lab2048.arena import journal_path, play_games, prepare, read_journal
    from lab2048.measure import evaluate as measured

    for player in entrants:
        prepare(player)  # whatever is compiled has a progress line of its own
        if before := len(read_journal(journal_path(player, seed), games)):
            say(f"{before:,} of {games:,} games of {player.spec} were played before")
    found = []
    with progress_bar() as bar:
        for player in entrants:
            task = bar.add_task(player.spec, total=games)
            try:
                done = measured(
                    player,
                    games,
                    seed,
                    table=table,
                    exact=player.spec in exact,
                    threads=threads,
                    journal=journal_path(player, seed),
                    progress=partial(_advance, bar, task),
                    play=play or play_games,
                )
            except KeyboardInterrupt:
                bar.stop()
                say("what is done is kept; the same command goes on from here")
                raise
            bar.update(task, description=player.spec, completed=games)
            found.append(done)
    return found


def results_of(found: Sequence[Evaluation]) -> list[dict[str, Any]]:
    """All there is to tell about players: figures, scores, and who is better than the first."""
    from lab2048.measure import compare

    results = []
    for place, each in enumerate(found):
        result = {**each.figures, "scores": [game.score for game in each.games]}
        if place > 0:
            difference = compare(each.games, found[0].games)
            result["paired"] = {"against": found[0].figures["player"], "difference": difference}
        results.append(result)
    return results


def save_games(
    entrants: Sequence[Player], found: Sequence[Evaluation], seed: int, path: Path
) -> None:
    """Write all games into a file."""
    from lab2048.arena import record_of
    from lab2048.records import write_records

    records = [
        record_of(player, seed, game)
        for player, each in zip(entrants, found, strict=True)
        for game in each.games
    ]
    write_records(records, path)
    say(f"saved {len(records):,} games in {path}")


def forget(entrants: Iterable[Player], seed: int) -> None:
    """Throw away the journals of matches whose results have been told."""
    from lab2048.arena import journal_path

    for player in entrants:
        with suppress(OSError):
            journal_path(player, seed).unlink(missing_ok=True)


def _advance(bar: Progress, task: TaskID, what: str, done: int, total: int | None) -> None:
    """Move a bar on; what has no known end leaves it where it is."""
    if total is None:
        bar.update(task, description=what)
    else:
        bar.update(task, description=what, completed=done)


# -- what is printed -----------------------------------------------------------------------------


def without_details(result: dict[str, Any]) -> dict[str, Any]:
    """A result as `--json` prints it: without every single score."""
    return {name: value for name, value in result.items() if name != "scores"}


def show_results(results: list[dict[str, Any]]) -> None:
    """The results as a table for people, best first."""
    from rich.console import Console

    from lab2048.measure import WHY_LOSSES_EXCEED

    console = Console()
    console.print(results_grid(results, console.width))
    first = results[0]
    games = "1 game" if first["games"] == 1 else f"{first['games']:,} games"
    words = [f"{games} per player on {first['board']}, seed {first['seed']}"]
    words += ["+/-: 95%"]
    if any(each["optimal"] for each in results):
        words.append("loss: expected score given away a game (= exact, ~ sampled)")
    if any(each["timed"] for each in results):
        words.append("with a time limit, games differ from machine to machine")
    console.print("; ".join(words), style="dim", highlight=False)
    if any(each["optimal"] and not each["exact"] for each in results):
        console.print(
            f"{WHY_LOSSES_EXCEED}; --exact computes the loss itself.", style="dim", highlight=False
        )
    for each in results[1:] if len(results) <= 4 else []:
        paired = each["paired"]["difference"]
        ends = paired["ci95"]
        inside = f" (95%: {ends[0]:+,.1f} to {ends[1]:+,.1f})" if ends else ""
        print(f"{each['player']} less {each['paired']['against']}: {paired['mean']:+,.1f}{inside}")


def results_grid(results: list[dict[str, Any]], width: int) -> Grid:
    """A table with a row for each player, best first; narrow ones leave out what matters less."""
    from rich import box
    from rich.table import Table

    from lab2048.measure import order

    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    columns = _columns(results)
    name = max(len("player"), *(len(each["player"]) for each in results))
    while len(columns) > 2 and name + 2 + sum(_width(c) for c in columns) > width:
        least = max(range(len(columns)), key=lambda place: columns[place][1])
        del columns[least]
    grid.add_column("player", overflow="fold")
    for title, _, _ in columns:
        grid.add_column(title, justify="right", no_wrap=True)
    for place in sorted(range(len(results)), key=lambda place: order(results[place])):
        grid.add_row(results[place]["player"], *(cells[place] for _, _, cells in columns))
    return grid


Column = tuple[str, int, list[str]]
"""A title, how soon the column is left out (the largest first), and its cells."""


def _columns(results: list[dict[str, Any]]) -> list[Column]:
    """What there is to tell about all players."""

    def column(title: str, rank: int, cell: Callable[[dict[str, Any]], str]) -> Column:
        return title, rank, [cell(each) for each in results]

    columns = [
        column("mean score", 0, lambda e: f"{e['score']['mean']:,.1f}"),
        column("+/-", 2, lambda e: half_width(e["score"]["ci95"])),
        column("median", 7, lambda e: f"{e['score']['median']:,.0f}"),
        column("best", 8, lambda e: f"{e['score']['max']:,}"),
    ]
    if any(each["exact"] for each in results):
        columns.append(
            column("exact mean", 1, lambda e: number(e["exact"] and e["exact"]["value"]))
        )
    if any(each["optimal"] for each in results):
        agrees = column("agrees", 3, lambda e: f"{e['optimal']['agreement']:.1%}")
        columns += [column("loss", 1, loss_text), agrees]
    for place, tile in enumerate(telling_tiles(results)):
        columns.append((f"{tile}", 5 + place, [rate_text(each, tile) for each in results]))
    speed = column("moves/s", 6, lambda e: speed_text(e["moves_per_second"]))
    return [*columns, speed]


def _width(column: Column) -> int:
    """How wide a column is, with the room beside it."""
    return 3 + max(len(column[0]), *(len(cell) for cell in column[2]))


def telling_tiles(results: list[dict[str, Any]]) -> list[int]:
    """The two largest tiles that more than a game in a hundred of some player made."""
    often = {
        int(tile)
        for each in results
        for tile, facts in each["reach"].items()
        if facts["rate"] >= 0.01
    }
    return sorted(often)[-2:]


def rate_text(result: dict[str, Any], tile: int) -> str:
    """How many games made a tile."""
    from lab2048.measure import reach_rate

    rate = reach_rate(result, tile)
    return f"{rate:.1%}" if 0 < rate < 0.9995 else f"{rate:.0%}"


def loss_text(result: dict[str, Any]) -> str:
    """What a player gives away a game: exactly, with a mark, or on average."""
    exact = result["exact"] is not None
    lost = result["exact"]["regret"] if exact else result["optimal"]["regret_per_game"]["mean"]
    shown = "0.0" if abs(lost) < 1e-6 else f"{lost:,.1f}"  # the rounding of a table is no loss
    return f"{shown} {'=' if exact else '~'}"


def speed_text(value: float | None) -> str:
    """Moves a second with three digits."""
    if value is None:
        return "-"
    digits = max(0, len(str(int(value))) - 3)
    return f"{round(value / 10**digits) * 10**digits:,}"


def half_width(ends: list[float] | None) -> str:
    """Half the width of an interval."""
    return f"{(ends[1] - ends[0]) / 2:,.1f}" if ends else "-"


COLUMNS = (
    "player",
    "board",
    "p4",
    "games",
    "seed",
    "mean",
    "ci95_low",
    "ci95_high",
    "sd",
    "median",
    "min",
    "max",
    "moves",
    "exact_value",
    "exact_regret",
    "regret_per_game",
    "agreement",
)


def flat(result: dict[str, Any]) -> dict[str, Any]:
    """The main figures of a result in one row."""
    score, exact, optimal = result["score"], result["exact"] or {}, result["optimal"] or {}
    low, high = score["ci95"] or (None, None)
    return {
        **{name: result[name] for name in ("player", "board", "p4", "games", "seed")},
        **{name: score[name] for name in ("mean", "sd", "median", "min", "max")},
        "ci95_low": low,
        "ci95_high": high,
        "moves": result["moves"]["mean"],
        "exact_value": exact.get("value"),
        "exact_regret": exact.get("regret"),
        "regret_per_game": optimal["regret_per_game"]["mean"] if optimal else None,
        "agreement": optimal.get("agreement"),
    }


def csv_table(results: list[dict[str, Any]]) -> str:
    """The results as comma-separated values, with rates of all tiles that were reached."""
    from lab2048.measure import reach_rate

    tiles = sorted({int(tile) for each in results for tile in each["reach"]})
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*COLUMNS, *(f"reach_{tile}" for tile in tiles)])
    for each in results:
        row = flat(each)
        rates = [reach_rate(each, tile) for tile in tiles]
        writer.writerow([*(row[name] for name in COLUMNS), *rates])
    return out.getvalue()


def _latex_loss(result: dict[str, Any]) -> str:
    """A loss; one that is sampled has a sign before it."""
    shown, mark = loss_text(result).split()
    return rf"$\approx$ {shown}" if mark == "~" else shown


def latex_table(results: list[dict[str, Any]]) -> str:
    """The results as a LaTeX table (booktabs)."""
    lines = [
        r"\begin{tabular}{lrrrr}",
        r"\toprule",
        r"player & mean score & 95\% & loss a game & agreement \\",
        r"\midrule",
    ]
    for each in results:
        row = flat(each)
        ends = [row["ci95_low"], row["ci95_high"]]
        cells = [
            r"\texttt{" + str(row["player"]).replace("_", r"\_") + "}",
            f"{row['mean']:,.1f}",
            rf"$\pm$ {half_width(ends)}" if ends[0] is not None else "",
            "" if each["optimal"] is None else _latex_loss(each),
            "" if row["agreement"] is None else rf"{100 * row['agreement']:.2f}\%",
        ]
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def say(text: str) -> None:
    """A line on stderr."""
    print(f"lab2048: {text}", file=sys.stderr)
