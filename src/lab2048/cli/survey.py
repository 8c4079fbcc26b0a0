"""The command `survey`: statistics of optimal play."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lab2048.cli.console import (
    check_target,
    counting_bar,
    number_table,
    output,
    progress_bar,
    show_facts,
)
from lab2048.cli.options import ForceOption, GammaOption, JsonOption, ThreadsOption, in_python
from lab2048.cli.solve import SizeArgument, kinds, solved
from lab2048.formatting import number, percent
from lab2048.game import P4
from lab2048.game.notation import parse_number
from lab2048.solver.objective import discount_text

if TYPE_CHECKING:
    from rich.progress import TaskID

    from lab2048.solver.problem import Problem
    from lab2048.solver.survey import ByMove, Survey

app = typer.Typer()

TREE, SWEEP = ("tree.svg",), ("sweep.json", "p4.png")
SURVEY = ("survey.json", "by-move.png", "by-age.png", "tiles.png")
"""The files of each kind of survey."""


@app.command(epilog=in_python('lab2048.survey("3x3")'))
def survey(
    board: SizeArgument,
    p4: Annotated[
        str, typer.Option("--p4", help="The chance of a 4, or several: 0,0.05,0.1")
    ] = str(P4),
    gamma: GammaOption = 1.0,
    tree: Annotated[
        bool, typer.Option("--tree", help="Draw all states of a very small board.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for results and pictures.")
    ] = None,
    threads: ThreadsOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Describe optimal play by exact statistics and pictures. Solves the board first if needed."""
    from lab2048.measure.archive import survey_folder
    from lab2048.solver.problem import Problem
    from lab2048.solver.table_files import expanded

    chances = [_chance(text) for text in p4.split(",")]
    problems = [Problem.of(board, p4=chance, gamma=gamma) for chance in chances]
    usual = (
        Problem.of(board, gamma=gamma).name + "-by-p4" if len(problems) > 1 else problems[0].name
    )
    folder = survey_folder(usual) if out is None else expanded(out)
    if tree and len(problems) > 1:
        raise ValueError("--tree draws one game; give it one --p4")
    files = TREE if tree else SWEEP if len(problems) > 1 else SURVEY
    check_target(folder, files=files, force=force or out is None)  # the usual folder is renewed
    if tree:
        _draw_tree(problems[0], folder, as_json)
    elif len(problems) > 1:
        _sweep(problems, folder, threads, as_json)
    else:
        _survey_one(problems[0], folder, threads, as_json)


def _chance(text: str) -> float:
    """Parse one number of a list on the command line."""
    try:
        return parse_number(text, float)
    except ValueError:
        raise ValueError(
            f"--p4 is a number or several with commas, such as 0,0.1, not {text!r}"
        ) from None


def _draw_tree(problem: Problem, folder: Path, as_json: bool) -> None:
    """Save a drawing of all states of a board."""
    from lab2048.report.writing import write_tree

    path = write_tree(problem, folder / TREE[0], force=True)
    print(json.dumps({"tree": str(path)}) if as_json else f"saved {path}")


def _survey_one(problem: Problem, folder: Path, threads: int | None, as_json: bool) -> None:
    """Print a survey and save its pictures."""
    from lab2048.measure.archive import keep_survey
    from lab2048.report.writing import write_plots
    from lab2048.solver.survey import prepare, survey

    with solved(problem, threads) as table:
        prepare(table)
        with counting_bar(f"survey of {table.path.name}", table.states) as progress:
            found = survey(table, threads=threads, progress=progress)
    keep_survey(found.as_json(), problem.name, folder)
    pictures = write_plots(found, folder, force=True)
    if as_json:
        print(json.dumps({**found.as_json(), "pictures": [str(path) for path in pictures]}))
        return
    _print_survey(found)
    print(f"saved {', '.join(path.name for path in pictures)} and survey.json in {folder}")


def _print_survey(found: Survey) -> None:
    """Print a survey."""
    states = sum(found.by_age.states)
    gamma = found.problem["gamma"]
    words = [found.problem["board"], f"p4 {found.problem['p4']:g}", *discount_text(gamma)]
    show_facts(
        f"Optimal play on {', '.join(words)}, exactly",
        [
            ("score", _spread(found.score)),
            ("moves", _spread(found.moves)),
            ("states", f"{states:,}, {found.visited_states:,} of them visited by optimal play"),
            ("value", _value_words(found.value, discounted=gamma != 1)),
        ],
    )
    tiles = number_table("tile", "reached", "largest at the end")
    for tile, chance in found.reach.items():
        tiles.add_row(f"{tile:,}", _share(chance), _share(found.final_tile.get(tile, 0.0)))
    output().print(tiles)
    _print_moves(found.by_move)


def _print_moves(moves: ByMove) -> None:
    """Print figures by move, at every eighth of the longest game."""
    last = len(moves.visits)
    grid = number_table("move", "gap", "margin", "over before")
    ended, steps = 0.0, [last * n // 8 for n in range(1, 9)]
    for index in range(last):
        ended += moves.ends[index]
        if index + 1 in steps:
            means = (
                "-" if m is None else f"{m:,.2f}" for m in (moves.gap[index], moves.margin[index])
            )
            grid.add_row(f"{index + 1:,}", *means, _share(min(1.0, ended)))
    output().print(grid)
    how = "exact" if moves.games is None else f"from {moves.games:,} games"
    print(f"Figures by move are means over visits, {how}.")
    print("The gap is the best move's q less the worst's, the margin the best's less the second's.")
    print("Moves that are equally good share a state's visits evenly.")


def _spread(figure: dict[str, float]) -> str:
    """A mean and standard deviation, as text."""
    return f"{figure['mean']:,.2f} on average, deviation {figure['deviation']:,.2f}"


def _share(chance: float) -> str:
    """A probability as a percentage."""
    return percent(chance).strip()


def _value_words(value: dict[str, float | None], discounted: bool) -> str:
    """The values of starts, as text."""
    words = f"{number(value['start'])} of a start drawn by the rules; {kinds(value)}"
    return f"{words} (discounted)" if discounted else words


def _sweep(problems: list[Problem], folder: Path, threads: int | None, as_json: bool) -> None:
    """Print how optimal play depends on p4, and save the figures and the picture."""
    from lab2048.report.writing import write_plots
    from lab2048.solver.survey_by_p4 import survey_by_p4

    for problem in problems:
        solved(problem, threads).close()
    with progress_bar(parts=True) as bar:
        tasks: dict[str, TaskID] = {}

        def move_on(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(f"survey of {name}", total=total)
            bar.update(tasks[name], completed=done)

        chances = [problem.rules.p4 for problem in problems]
        found = survey_by_p4(
            problems[0].rules.name, chances, gamma=problems[0].gamma, threads=threads,
            progress=move_on,
        )  # fmt: skip
    found.to_json(folder / SWEEP[0])
    (path,) = write_plots(found, folder, force=True)
    if as_json:
        print(json.dumps({"rows": found.as_json(), "pictures": [str(path)]}))
        return
    tiles = found.tiles[-5:]
    grid = number_table("p4", "value", "score", "deviation", *(f"{tile:,}" for tile in tiles))
    for row in found.as_json():
        numbers = (f"{row[name]:,.2f}" for name in ("value", "mean", "deviation"))
        reach = (_share(row["reach"].get(tile, 0.0)) for tile in tiles)
        grid.add_row(f"{row['p4']:g}", *numbers, *reach)
    output().print(grid)
    print(f"saved {path} and sweep.json")
