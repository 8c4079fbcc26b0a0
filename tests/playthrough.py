"""Playthroughs: one readable file a board shape, a seeded game with all there is to see.

`python tests/playthrough.py` writes them anew after a change of behaviour that is meant.
"""

from __future__ import annotations

from pathlib import Path

import naive

from lab2048 import Board, Direction, Game, Rules
from lab2048.game import random_move

FOLDER = Path(__file__).parent / "golden"
SEED = 2048
P4 = {(2, 2): 0.5, (2, 3): 0.0, (3, 2): 1.0}
"""Boards whose playthrough has another p4 than the usual one."""


def playthrough(rows: int, cols: int) -> str:
    """The whole file."""
    rules = Rules(rows, cols, P4.get((rows, cols), 0.1))
    game = Game(rules, SEED)
    lines = [f"lab2048 {rules.name}, p4 {rules.p4:g}, seed {SEED}, random player", ""]
    lines += _position(game.board)
    while not game.over:
        before = game.board
        reward = game.play(random_move(game.board, game.own_word))
        direction = game.moves[-1]
        after = before.move(direction).after
        (spawn,) = [s for s in rules.spawns(after) if s.board == game.board]
        cell, rank, p = spawn.cell, spawn.rank, spawn.probability
        lines += ["", f"move {len(game.moves)}: {direction}, reward {reward}, score {game.score}"]
        lines += [f"after: {after}", f"spawn: {1 << rank} on cell {cell}, chance {p:.6f}"]
        lines += _position(game.board)
    lines += ["", f"over: score {game.score}, largest tile {game.board.max_tile}"]
    return "\n".join(lines) + "\n"


def _position(board: Board) -> list[str]:
    """The board with what it offers."""
    moves = ", ".join(f"{d} +{board.move(d).reward}" for d in Direction if board.move(d).legal)
    image, symmetry = board.canonical()
    return [
        f"board: {board}",
        f"age {board.age}, empty {board.empty}, canonical {image.hex} by symmetry {symmetry}",
        f"legal: {moves or 'none'}",
    ]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for rows, cols in naive.SHAPES:
        (FOLDER / f"{rows}x{cols}.txt").write_text(
            playthrough(rows, cols), encoding="utf-8", newline="\n"
        )
