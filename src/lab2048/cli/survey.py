"""The command `survey`: what optimal play is like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab2048.cli.console import check_target, counting_bar
from lab2048.cli.options import ForceOption, GammaOption, JsonOption, ThreadsOption, in_python
from lab2048.cli.solve import SizeArgument, kinds, solved
from lab2048.formatting import number, percent
from lab2048.game import P4
from lab2048.game.notation import parse_number
from lab2048.solver.objective import discount_text

if TYPE_CHECKING:
    from lab2048.solver.problem import Problem
    from lab2048.solver.survey import Survey
    from lab2048.solver.table import Table

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
        Path | None, typer.Option("--out", metavar="DIR", help="Where pictures are put.")
    ] = None,
    threads: ThreadsOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """What optimal play is like: exact statistics and pictures. Solves what is not solved yet."""
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
    check_target(folder, files=files, force=force or out is None)  # the usual place is renewed
    if tree:
        _draw_tree(problems[0], folder, as_json)
    elif len(problems) > 1:
        _sweep(problems, folder, threads, as_json)
    else:
        _survey_one(problems[0], folder, threads, as_json)


def _chance(text: str) -> float:
    """A number out of a list on the command line."""
    try:
        return parse_number(text, float)
    except ValueError:
        raise ValueError(
            f"--p4 is a number or several with commas, such as 0,0.1, not {text!r}"
        ) from None


def _draw_tree(problem: Problem, folder: Path, as_json: bool) -> None:
    """Save the drawing of a whole game."""
    from lab2048.home import write_atomically
    from lab2048.report.game_tree import MOST_STATES, draw_tree
    from lab2048.solver.estimate import estimate

    if estimate(problem, "float64", 1).states > MOST_STATES:
        raise ValueError(f"{problem.rules.name} has too many states to be drawn; --tree is for 2x2")
    with solved(problem) as table:
        drawing = draw_tree(table)
    path = folder / TREE[0]
    write_atomically(path, drawing)
    print(json.dumps({"tree": str(path)}) if as_json else f"saved {path}")


def _survey_one(problem: Problem, folder: Path, threads: int | None, as_json: bool) -> None:
    """Print a survey and save its pictures."""
    from lab2048.measure.archive import keep_survey
    from lab2048.report.survey_plots import plot_survey

    with solved(problem, threads) as table:
        found = _surveyed(table, threads)
    keep_survey(found.as_json(), problem.name, folder)
    pictures = plot_survey(found, folder)
    if as_json:
        print(json.dumps({**found.as_json(), "pictures": [str(path) for path in pictures]}))
        return
    _print_survey(found)
    print(f"saved {', '.join(path.name for path in pictures)} and survey.json in {folder}")


def _surveyed(table: Table, threads: int | None, by_move: bool = True) -> Survey:
    """A survey with its progress on stderr."""
    from lab2048.solver.survey import prepare, survey

    prepare(table)
    with counting_bar(f"survey of {table.path.name}", table.states) as progress:
        return survey(table, threads=threads, by_move=by_move, progress=progress)


def _print_survey(found: Survey) -> None:
    """A survey, for people."""
    value, states = found.value, sum(found.by_age.states)
    gamma = found.problem["gamma"]
    words = [found.problem["board"], f"p4 {found.problem['p4']:g}", *discount_text(gamma)]
    print(f"Optimal play on {', '.join(words)}, exactly")
    rows = [
        (
            "score",
            f"{found.score['mean']:,.2f} on average, deviation {found.score['deviation']:,.2f}",
        ),
        (
            "moves",
            f"{found.moves['mean']:,.2f} on average, deviation {found.moves['deviation']:,.2f}",
        ),
        ("states", f"{states:,}, {found.visited_states:,} of them visited by optimal play"),
        ("value", _value_words(value, discounted=gamma != 1)),
    ]
    for name, text in rows:
        print(f"  {name:12} {text}")
    print()
    print("      tile     reached   largest at the end")
    for tile, chance in found.reach.items():
        print(f"  {tile:8,}  {percent(chance)}   {percent(found.final_tile.get(tile, 0.0))}")
    print()
    moves, last = found.by_move, len(found.by_move.visits)
    how = "exact" if moves.games is None else f"from {moves.games:,} games"
    print(f"      move         gap      margin   over before  (means over visits, {how})")
    ended, steps = 0.0, [last * n // 8 for n in range(1, 9)]
    for index in range(last):
        ended += moves.ends[index]
        if index + 1 in steps:
            means = [moves.gap[index], moves.margin[index]]
            shown = "".join(f"  {'-' if m is None else format(m, ',.2f'):>10}" for m in means)
            print(f"  {index + 1:8,}{shown}     {percent(min(1.0, ended))}")
    print("The gap is the best move's q less the worst's, the margin the best's less the second's.")
    print("Moves that are equally good share a state's visits evenly.")


def _value_words(value: dict[str, float | None], discounted: bool) -> str:
    """The values of starts, for people."""
    words = f"{number(value['start'])} of a start drawn by the rules; {kinds(value)}"
    return f"{words} (discounted)" if discounted else words


def _sweep(problems: list[Problem], folder: Path, threads: int | None, as_json: bool) -> None:
    """Print how things depend on p4, and save the picture."""
    from lab2048.home import write_atomically
    from lab2048.report.survey_plots import plot_sweep

    rows: list[dict[str, Any]] = []
    for problem in problems:
        with solved(problem, threads) as table:
            found = _surveyed(table, threads, by_move=False)
        rows.append(
            {
                "p4": problem.rules.p4,
                "value": found.value["start"],
                "mean": found.score["mean"],
                "deviation": found.score["deviation"],
                "reach": found.reach,
            }
        )
    write_atomically(folder / SWEEP[0], json.dumps(rows) + "\n")
    title = ", ".join([problems[0].rules.name, *discount_text(problems[0].gamma, "gamma = {:g}")])
    path = plot_sweep(rows, title, folder / SWEEP[1])
    if as_json:
        print(json.dumps({"rows": rows, "pictures": [str(path)]}))
        return
    tiles = sorted({tile for row in rows for tile in row["reach"]})[-5:]
    print("    p4       value       score   deviation  " + "".join(f"{t:>11}" for t in tiles))
    for row in rows:
        numbers = "".join(f"  {row[name]:10,.2f}" for name in ("value", "mean", "deviation"))
        reach = "".join(f"  {percent(row['reach'].get(tile, 0.0))}" for tile in tiles)
        print(f"  {row['p4']:4g}{numbers}  {reach}")
    print(f"saved {path} and sweep.json")
