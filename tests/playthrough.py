"""Playthroughs: one readable file a board shape, a seeded game with all there is to see; and one a
player, with what it thought of every move.

`python tests/playthrough.py` writes them anew after a change of behaviour that is meant.
"""

from __future__ import annotations

from pathlib import Path

from lab2048 import Board, Direction, Game, Rules
from lab2048.game import random_move
from lab2048.players.registry import make_player
from tests import naive

FOLDER = Path(__file__).parent / "golden"
SEED = 2048
P4 = {(2, 2): 0.5, (2, 3): 0.0, (3, 2): 1.0}
"""Boards whose playthrough has another p4 than the usual one."""
PLAYERS = {
    "random": "random",
    "greedy": "greedy",
    "corner": "corner",
    "minimax": "minimax:depth=2",
    "expectimax": "expectimax:depth=2",
    "expectiminimax": "expectiminimax:depth=2",
    "sparse": "sparse:depth=2,samples=2",
    "montecarlo": "montecarlo:rollouts=5",
    "mcts": "mcts:simulations=30",
    "optimal": "optimal",
}
"""The players that have a playthrough, on 3x2."""


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


def player_playthrough(name: str) -> str:
    """The whole file of a player."""
    game = Game(Rules(3, 2), SEED)
    player = make_player(PLAYERS[name], game.rules)
    lines = [f"lab2048 3x2, seed {SEED}, player {player.spec}", f"values: {player.meaning}", ""]
    while not game.over:
        word = game.own_word
        values = player.values(game.board, word)
        thought = ", ".join(f"{d} {value:.6g}" for d, value in values.items())
        move = player.choose(game.board, word)
        lines += [f"{game.board}: {thought}; {move}"]
        game.play(move)
    lines += [f"{game.board}: over, score {game.score}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (FOLDER / "players").mkdir(parents=True, exist_ok=True)
    for name in PLAYERS:
        (FOLDER / "players" / f"{name}.txt").write_text(
            player_playthrough(name), encoding="utf-8", newline="\n"
        )
    for rows, cols in naive.SHAPES:
        (FOLDER / f"{rows}x{cols}.txt").write_text(
            playthrough(rows, cols), encoding="utf-8", newline="\n"
        )
