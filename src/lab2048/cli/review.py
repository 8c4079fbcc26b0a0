"""The commands about games that were kept: replay, review."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lab2048 import cli_complete
from lab2048.cli_evaluate import TableOption, say, table_for
from lab2048.options import ForceOption, JsonOption
from lab2048.wording import number, plain

if TYPE_CHECKING:
    from lab2048.player import Player
    from lab2048.records import Record, Turn
    from lab2048.review import Review
    from lab2048.solve.table import Table

app = typer.Typer()

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="GAMES",
        exists=True,
        dir_okay=False,
        help="A file of games, as --save writes: .jsonl, .parquet.",
    ),
]


@app.command()
def replay(
    path: FileArgument,
    game: Annotated[
        int | None, typer.Option("--game", min=1, help="Show this game, counted from 1.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Play games of a file again, and see that every move and the score are as written."""
    from lab2048.records import read_records

    if game is not None:
        _show_game(_nth(path, game), as_json)
        return
    count = moves = 0
    for record in read_records(path):
        count += 1
        moves += len(_turns(record, path, count))
    if count == 0:
        raise ValueError(f"{path} has no games")
    if as_json:
        print(json.dumps({"games": count, "moves": moves}))
    else:
        print(f"{count:,} games with {moves:,} moves, all as they are written")


def _show_game(record: Record, as_json: bool) -> None:
    """A game move by move, as it was."""
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


@app.command()
def review(
    path: FileArgument,
    game: Annotated[int, typer.Option("--game", min=1, help="Which game, counted from 1.")] = 1,
    table: TableOption = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="PLAYER",
            help="A strong player to compare with.",
            autocompletion=cli_complete.players,
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
    """Go through a game: how good its moves were, and which were the worst.

    The judge is the table of the solved board, or else a player: the one that is named, the n-tuple
    network of the package where there is one for the board, or expectimax. --json has every move.
    """
    from lab2048.home import check_target
    from lab2048.records import RecordError
    from lab2048.review import review as go_through

    if by is not None and table is not None:
        raise ValueError("a game is judged by a table or by a player, not by both")
    record = _nth(path, game)
    if page is not None:
        check_target(page, force=force)
    with _judge(record, table, by) as judge:
        try:
            found = go_through(record, judge)
        except RecordError as error:
            raise ValueError(f"{path}, game {game}: {error}") from None
    if page is not None:
        from lab2048.review_page import write_review

        write_review(record, found, page, sys.argv[1:])
        say(f"wrote {page}")
    if as_json:
        print(json.dumps({"player": record.player, "score": record.score, **found.as_json()}))
    else:
        _show_review(record, found, every)


@contextmanager
def _judge(record: Record, table: str | None, by: str | None) -> Iterator[Table | Player]:
    """Who judges a game: the table or the player that was named, or what there is for the board."""
    from lab2048.players import make_player
    from lab2048.review import usual_judge

    with ExitStack() as stack:
        found = table_for(record.rules, table) if by is None else None
        if found is not None:
            stack.enter_context(found)
            if table is None and record.start is not None and record.start not in found:
                found = None  # no game comes to where this one began
        yield found or make_player(by or usual_judge(record.rules), record.rules)


def _nth(path: Path, number: int) -> Record:
    """One game of a file."""
    from itertools import islice

    from lab2048.records import read_records

    found = list(islice(read_records(path), number - 1, number))
    if not found:
        raise ValueError(f"{path} has no game {number}")
    _turns(found[0], path, number)
    return found[0]


def _turns(record: Record, path: Path, number: int) -> list[Turn]:
    """The moves of a game, or an error that says which game of the file is none."""
    from lab2048.records import RecordError

    try:
        return list(record.turns())
    except RecordError as error:
        raise ValueError(f"{path}, game {number}: {error}") from None


def _show_review(record: Record, review: Review, every: bool) -> None:
    """The worst moves of a game, or all of them, and its summary."""
    from lab2048.review import worst

    print(f"{plain(record.player)} on {record.rules.name}, judged by {review.judge}")
    if review.caveat:
        print(review.caveat)
    print()
    if every:
        _show_moves(review)
    for step in worst(review.steps):
        facts = [f"{step.move}, {step.mark}", f"better {step.best}", review.lost(step)]
        print(f"move {step.number}: {'; '.join(filter(None, facts))}")
        print(step.board.grid())
        print()
    print("; ".join(review.facts(record)))


def _show_moves(review: Review) -> None:
    """Every move in a line."""
    from lab2048.marks import BEST

    print(" move  made   mark     better       lost  board")
    for step in review.steps:
        better = "" if step.mark == BEST else str(step.best)
        lost = number(step.regret) if review.exact and better else ""
        print(f"{step.number:5}  {step.move!s:6} {step.mark:8} {better:6} {lost:>10}  {step.board}")
    print()
