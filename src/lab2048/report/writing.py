"""Results as pages and pictures: one call for every kind of result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab2048.game import Rules
from lab2048.home import check_target, write_atomically
from lab2048.learn.result import TrainedRun, TrainedRuns
from lab2048.measure.evaluation import Evaluation
from lab2048.measure.review import Review
from lab2048.solver.estimate import estimate
from lab2048.solver.problem import Problem, problem_of
from lab2048.solver.survey import Survey
from lab2048.solver.survey_by_p4 import SurveyByP4
from lab2048.solver.table import Table
from lab2048.solver.tables import solve

PICTURES = (".svg", ".png", ".pdf")
SURVEY_PLOTS = ("by-move.png", "by-age.png", "tiles.png")
P4_PLOT = "p4.png"


def write_report(
    result: Evaluation | Review | Sequence[Evaluation],
    path: Path | str,
    *,
    force: bool = False,
    command: Sequence[str] = (),
) -> Path:
    """Write a result as one self-contained HTML page with its pictures inside.

    The result is an evaluation, several of different boards, or a review: then the page steps
    through the game. `command` is the command line that the page names as its origin. An existing
    file is a `FileExistsError`, unless `force` says to replace it.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lab2048 import evaluate, write_report
    >>> result = evaluate(["greedy", "random"], "2x2", games=20)
    >>> with TemporaryDirectory() as folder:
    ...     "greedy" in write_report(result, Path(folder) / "page.html").read_text("utf-8")
    True
    """
    from lab2048.report import evaluation_page, review_page

    path = Path(path)
    check_target(path, force=force)
    if isinstance(result, Review):
        review_page.write_review(result.record, result, path, command)
    else:
        several = [result] if isinstance(result, Evaluation) else result
        found = [figures for each in several for figures in each.details()]
        evaluation_page.write_report(found, path, command)
    return path


def write_plots(
    result: Evaluation | Survey | SurveyByP4 | TrainedRun | TrainedRuns,
    path: Path | str,
    *,
    force: bool = False,
) -> list[Path]:
    """Draw the pictures of a result. Return their files.

    Those of evaluations and surveys go into the folder `path`. The curve of training runs is one
    picture, the file `path`: .svg, .png or .pdf. Existing files are a `FileExistsError`, unless
    `force` says to replace them.

    >>> from tempfile import TemporaryDirectory
    >>> from lab2048 import survey, write_plots
    >>> with TemporaryDirectory() as folder:
    ...     [picture.name for picture in write_plots(survey("2x2"), folder)]
    ['by-move.png', 'by-age.png', 'tiles.png']
    """
    from lab2048.report import curves, evaluation_page, survey_plots

    path = Path(path)
    check_target(path, files=plot_names(result), force=force)
    if isinstance(result, Survey):
        return survey_plots.plot_survey(result, path)
    if isinstance(result, SurveyByP4):
        return [survey_plots.plot_sweep(result.as_json(), result.title, path / P4_PLOT)]
    if isinstance(result, Evaluation):
        return evaluation_page.write_plots(result.details(), path)
    check_picture(path)
    curves.plot_runs(result if isinstance(result, TrainedRuns) else TrainedRuns((result,)), path)
    return [path]


def plot_names(result: object) -> Sequence[str]:
    """The names of the pictures of a result, or patterns; none if its picture is `path` itself."""
    if isinstance(result, Survey):
        return SURVEY_PLOTS
    if isinstance(result, SurveyByP4):
        return (P4_PLOT,)
    if isinstance(result, Evaluation):
        return evaluation_plots(result[0].entrant.rules)
    return ()


def evaluation_plots(rules: Rules) -> list[str]:
    """The pictures of an evaluation on a board, as a pattern."""
    return [f"{rules.name}-*.svg"]


def check_picture(path: Path) -> None:
    """Raise a `ValueError` unless the name of a file is that of a picture."""
    if path.suffix not in PICTURES:
        raise ValueError(f"a picture is .svg, .png or .pdf, not {path.name[:40]!r}")


def write_tree(
    table: Table | Problem | Rules | str, path: Path | str, *, force: bool = False
) -> Path:
    """Draw all states of a very small board, such as 2x2, into an SVG file.

    The table of a board or a problem is made if it is missing. Starts have an orange frame,
    terminals a blue one; afterstates are the small boards. Optimal moves are drawn in bold. An
    existing file is a `FileExistsError`, unless `force` says to replace it.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lab2048 import write_tree
    >>> with TemporaryDirectory() as folder:
    ...     write_tree("2x2", Path(folder) / "tree.svg").read_text("utf-8")[:4]
    '<svg'
    """
    from lab2048.report.game_tree import MOST_STATES, draw_tree

    path = Path(path)
    check_target(path, force=force)
    if not isinstance(table, Table):
        problem = problem_of(table)
        if estimate(problem, threads=1).states > MOST_STATES:
            raise ValueError(f"{problem.rules.name} has too many states for a tree; 2x2 has few")
        with solve(problem) as solved:
            return write_tree(solved, path, force=force)
    write_atomically(path, draw_tree(table))
    return path
