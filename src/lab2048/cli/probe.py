"""The command `probe`: a position, its moves, and what they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lab2048.formatting import precise

if TYPE_CHECKING:
    from lab2048.game import Rules
    from lab2048.measure.positions import Opinion, Probed


def hint_for(rules: Rules, asked: dict[str, Any]) -> str:
    """Return a hint how to solve a board; empty if it is too large to be solved."""
    from lab2048.solver.problem import MAX_CELLS, Problem
    from lab2048.solver.tables import command_for

    if rules.cells > MAX_CELLS:
        return ""
    problem = Problem.of(rules, **{n: value for n, value in asked.items() if value is not None})
    return f"for exact values, solve the board once: {command_for(problem)}"


def show(found: Probed, after: str | None, hint: str) -> None:
    """Print the position and its moves, one per line."""
    from lab2048.solver.objective import discount_text

    board, problem = found.board, found.problem
    print(board.grid())
    facts = [
        found.rules.name,
        f"age {board.age}",
        f"{board.empty} empty",
        f"largest tile {board.max_tile}",
    ]
    print(", ".join(facts + ["no move is legal"] * board.is_terminal))
    image, symmetry = board.canonical()
    print(f"canonical {image} by symmetry {symmetry}")
    if problem is not None and found.value is not None:
        words = [problem.goal, f"p4 {problem.rules.p4:g}", *discount_text(problem.gamma)]
        print(f"value {precise(found.value)} ({', '.join(words)})")
    print()
    if after is not None and found.spawns is not None:
        print(f"after {after}: {board.move(after).after}")
        print()
        _show_spawns(found.spawns, found.value is not None)
    else:
        _show_moves(found)
    for each in found.opinions:
        _show_opinion(each)
    if hint:
        print()
        print(hint)


def _show_moves(found: Probed) -> None:
    """Print all four moves."""
    exact = f"{'q':>14}{'regret':>12}" if found.problem and not found.board.is_terminal else ""
    print(f"move   reward{exact}  afterstate")
    for direction, move in found.moves.items():
        if not move.legal:
            print(f"{direction!s:5}  {'':6}{' ' * len(exact)}  not legal")
            continue
        numbers = ""
        if move.exact:
            regret = "best" if move.exact.optimal else precise(move.exact.regret)
            numbers = f"{precise(move.exact.q):>14}{regret:>12}"
        print(f"{direction!s:5}  {move.reward:6}{numbers}  {move.after}")


def _show_opinion(opinion: Opinion) -> None:
    """Print a player's values of the moves, the best first."""
    print()
    print(f"{opinion.player}: {opinion.meaning}")
    if not opinion.values and opinion.choice is not None:
        print(f"{opinion.choice!s:5}  its move")
    for direction, value in sorted(opinion.values.items(), key=lambda pair: -pair[1]):
        mark = "  its move" if direction == opinion.choice else ""
        print(f"{direction!s:5}{precise(value):>14}{mark}")


def _show_spawns(spawns: Sequence[tuple[Any, float | None]], exact: bool) -> None:
    """Print the spawns that may follow a move."""
    print("tile  chance" + f"{'value':>14}" * exact + "  state")
    for spawn, value in spawns:
        shown = f"{precise(value):>14}" if value is not None else ""
        print(f"{1 << spawn.rank:4}  {100 * spawn.probability:5.2f}%{shown}  {spawn.board}")
