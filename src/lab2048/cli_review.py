"""The commands about games that were kept: replay, review."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lab2048.cli_evaluate import TableOption, say, table_for
from lab2048.options import JsonOption

if TYPE_CHECKING:
    from lab2048.player import Player
    from lab2048.records import Record, Turn
    from lab2048.review import Step
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
    for number, turn in enumerate(turns, 1):
        print(f"{number:5} {turn.move!s:5} +{turn.reward:<6} {turn.next}")
    print(f"score {record.score:,}, largest tile {record.max_tile}, {len(record.moves)} moves")


@app.command()
def review(
    path: FileArgument,
    game: Annotated[int, typer.Option("--game", min=1, help="Which game, counted from 1.")] = 1,
    table: TableOption = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="PLAYER", help="A strong player to compare with."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with a graph.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Go through a game move by move: what each was worth, and the largest mistakes.

    The judge is the table of the solved board, or else a player: the one that is named, the n-tuple
    network of the package where there is one for the board, or expectimax.
    """
    from lab2048.home import check_target
    from lab2048.players import make_player
    from lab2048.records import RecordError
    from lab2048.review import usual_judge

    if by is not None and table is not None:
        raise ValueError("a game is judged by a table or by a player, not by both")
    record = _nth(path, game)
    if page is not None:
        check_target(page)
    with ExitStack() as stack:
        judge: Table | Player | None = None
        name = "perfect play"
        if by is None:
            judge = table_for(record.rules, table)
            if judge is not None:
                stack.enter_context(judge)
                if table is None and record.start is not None and record.start not in judge:
                    judge = None  # no game comes to where this one began
        if judge is None:
            judge = make_player(by or usual_judge(record.rules), record.rules)
            name = judge.spec
        from lab2048.review import review as go_through
        from lab2048.review import summary

        try:
            steps = go_through(record, judge)
        except RecordError as error:
            raise ValueError(f"{path}, game {game}: {error}") from None
    if page is not None:
        from lab2048.review_page import write_review

        write_review(record, steps, name, page, sys.argv[1:])
        say(f"wrote {page}")
    if as_json:
        print(json.dumps({"player": record.player, "judge": name, **summary(steps)}))
    else:
        _show_review(record, steps, name)


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


def _show_review(record: Record, steps: list[Step], by: str) -> None:
    """A game move by move, and its summary."""
    from lab2048.review import summary, worst

    print(f"{record.player} on {record.rules.name}, judged by {by}")
    print(" move  made   better       lost  loss so far  board")
    for step in steps:
        better, lost = (str(step.best), f"{step.regret:,.2f}") if step.regret else ("", "")
        facts = f"{step.number:5}  {step.move!s:6} {better:6} {lost:>10} {step.loss:12,.2f}"
        print(f"{facts}  {step.board}")
    found = summary(steps)
    print()
    for step in worst(steps):
        print(f"move {step.number}: {step.move}, better {step.best} (lost {step.regret:,.2f})")
        print(step.board.grid())
        print()
    accuracy = "-" if found["accuracy"] is None else f"{found['accuracy']:.1%}"
    agreement = "-" if found["agreement"] is None else f"{found['agreement']:.1%}"
    print(
        f"score {record.score:,}, {found['moves']:,} moves, lost {found['loss']:,.2f}; "
        f"{agreement} of the moves are best, accuracy {accuracy}"
    )
