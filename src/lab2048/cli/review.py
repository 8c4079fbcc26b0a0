"""The commands about saved games: replay, review."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lab2048.cli import completion
from lab2048.cli.console import check_target, status
from lab2048.cli.evaluate import TableOption, table_for
from lab2048.cli.options import ForceOption, JsonOption, in_python
from lab2048.formatting import number, plain
from lab2048.home import say

if TYPE_CHECKING:
    from lab2048.game.record import Record
    from lab2048.measure.review import Review

app = typer.Typer()

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="GAMES",
        exists=True,
        dir_okay=False,
        help="A file of games, as written by --save: .jsonl, .parquet.",
    ),
]


@app.command(epilog=in_python('lab2048.replay("games.jsonl")'))
def replay(
    path: FileArgument,
    game: Annotated[
        int | None, typer.Option("--game", min=1, help="Show this game, counted from 1.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Replay the games of a file, and check that all moves and scores are as recorded."""
    from lab2048.measure.replay import read_game
    from lab2048.measure.replay import replay as play_again

    if game is not None:
        _show_game(read_game(path, game), as_json)
        return
    with status("replaying") as change:
        found = play_again(path, lambda games: change(f"replaying: {games:,} games"))
    if as_json:
        print(found.to_json(), end="")
    else:
        print(f"{len(found):,} games with {found.moves:,} moves, all as recorded")


def _show_game(record: Record, as_json: bool) -> None:
    """Print a game move by move."""
    turns = list(record.turns())
    if as_json:
        steps = [
            {"board": str(t.board), "move": str(t.move), "reward": t.reward, "next": str(t.next)}
            for t in turns
        ]
        print(json.dumps({"player": record.player, "score": record.score, "turns": steps}))
        return
    for place, turn in enumerate(turns, 1):
        print(f"{place:5} {turn.move!s:5} +{turn.reward:<6} {turn.next}")
    print(f"score {record.score:,}, largest tile {record.max_tile}, {len(record.moves)} moves")


@app.command(epilog=in_python('lab2048.review("games.jsonl").worst(5)'))
def review(
    path: FileArgument,
    game: Annotated[int, typer.Option("--game", min=1, help="Which game, counted from 1.")] = 1,
    table: TableOption = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="PLAYER",
            help="A strong player that judges the moves.",
            autocompletion=completion.players,
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Print every move, not only the worst.")] = (
        False
    ),
    page: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page that steps through the game."),
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Review a game: how good its moves were, and which were the worst.

    The judge is the player named by --by or the table of the solved board; without these, the
    packaged n-tuple network if there is one for the board, else expectimax. --json has every move.
    """
    from lab2048.measure import review as reviewing
    from lab2048.measure.replay import read_game

    if by is not None and table is not None:
        raise ValueError("a game is judged by a table or by a player, not by both")
    record = read_game(path, game)
    if page is not None:
        check_target(page, force=force)
    with ExitStack() as stack:
        known = table_for(record.rules, table) if by is None else None  # made now, with progress
        if known is not None:
            stack.enter_context(known)
        judge = by or (known if table is not None else None)
        found = reviewing.review(path, judge, game=game)
    if page is not None:
        from lab2048.report.writing import write_report

        say(f"wrote {write_report(found, page, force=True, command=sys.argv[1:])}")
    if as_json:
        print(found.to_json(), end="")
    else:
        _show_review(record, found, every)


def _show_review(record: Record, review: Review, every: bool) -> None:
    """Print the worst moves of a game (with `every`, first all moves) and its summary."""
    print(f"{plain(record.player)} on {record.rules.name}, judged by {review.judge}")
    if review.caveat:
        print(review.caveat)
    print()
    if every:
        _show_moves(review)
    for step in review.worst():
        facts = [f"{step.move}, {step.mark}", f"better {step.best}", review.lost(step)]
        print(f"move {step.number}: {'; '.join(filter(None, facts))}")
        print(step.board.grid())
        print()
    print("; ".join(review.facts()))


def _show_moves(review: Review) -> None:
    """Print every move, one per line."""
    from lab2048.measure.marks import BEST

    print(" move  made   mark     better       lost  board")
    for step in review.steps:
        better = "" if step.mark == BEST else str(step.best)
        lost = number(step.regret) if review.exact and better else ""
        print(f"{step.number:5}  {step.move!s:6} {step.mark:8} {better:6} {lost:>10}  {step.board}")
    print()
