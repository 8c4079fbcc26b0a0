"""The game on a terminal: keys in, a colour board out."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache

from rich.align import Align
from rich.color import Color
from rich.console import Console, Group
from rich.live import Live
from rich.style import Style
from rich.text import Text

from lab2048 import chance
from lab2048.game import Board, Direction, Game, Rules
from lab2048.home import home, write_atomically
from lab2048.palette import Colour, text_colour, tile_colour
from lab2048.players import Player

MOVE_KEYS = {
    **dict.fromkeys(["up", "w", "k"], Direction.UP),
    **dict.fromkeys(["right", "d", "l"], Direction.RIGHT),
    **dict.fromkeys(["down", "s", "j"], Direction.DOWN),
    **dict.fromkeys(["left", "a", "h"], Direction.LEFT),
}
_ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
_TILE_WIDTH = 8
_AROUND = 6  # lines of the screen that are not the board


# -- keys --------------------------------------------------------------------------------------


class Keys:
    """The keyboard of a terminal that does not wait for the end of a line."""

    def __init__(self) -> None:
        self.fd = sys.stdin.fileno()
        self._buffer = ""

    def read(self, seconds: float | None = None) -> str | None:
        """The next key (`up`, `down`, `left`, `right` or a character); None if none came in time.

        Raises `EOFError` when the terminal is gone.
        """
        if not self._buffer and not self._fill(seconds):
            return None
        # Over a slow line the parts of an arrow key may come one by one.
        while self._buffer in ("\x1b", "\x1b[", "\x1bO") and self._fill(0.1):
            pass
        if self._buffer[0] == "\x1b" and len(self._buffer) > 2 and self._buffer[1] in "[O":
            end = next((i for i, c in enumerate(self._buffer) if i > 1 and c.isalpha()), 2)
            sequence, self._buffer = self._buffer[: end + 1], self._buffer[end + 1 :]
            return _ARROWS.get(sequence[-1], "unknown")
        key, self._buffer = self._buffer[0], self._buffer[1:]
        return key.lower()

    def _fill(self, seconds: float | None) -> bool:
        """Read what has been typed; False if nothing was in time."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        typed = os.read(self.fd, 1024)
        if not typed:
            raise EOFError
        self._buffer += typed.decode("latin-1")
        return True


@contextmanager
def keyboard() -> Iterator[Keys]:
    """A `Keys`, with the terminal put back as it was at the end."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin, termios.TCSANOW)
        yield Keys()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def need_terminal(what: str) -> None:
    """A `ValueError` unless a person can see and type."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ValueError(f"{what} needs a terminal to show the board on and to read keys from")
    try:
        import termios  # noqa: F401
    except ImportError:
        raise ValueError(
            f"{what} needs a POSIX terminal; on Windows use WSL, or Python's API"
        ) from None


# -- screen ------------------------------------------------------------------------------------


@cache
def _style(rank: int) -> Style:
    """How a tile looks."""

    def colour(rgb: Colour) -> Color:
        return Color.from_rgb(*rgb)

    return Style(color=colour(text_colour(rank)), bgcolor=colour(tile_colour(rank)), bold=True)


def draw_board(board: Board, room: int) -> Text:
    """The board as coloured squares, in at most `room` lines where that can be."""
    choices = [(3, 1), (3, 0), (1, 1), (1, 0)]
    height, gap = next(
        ((h, g) for h, g in choices if board.rows * (h + g) - g <= room), choices[-1]
    )
    text = Text()
    for r, row in enumerate(board.tiles):
        for line in range(height):
            for c, tile in enumerate(row):
                rank = board.ranks[r * board.cols + c]
                shown = str(tile or "·") if line == height // 2 else ""
                text.append(shown.center(_TILE_WIDTH), _style(rank))
                text.append(" " if c + 1 < board.cols else "\n")
        text.append("\n" * (gap if r + 1 < board.rows else 0))
    return text


def draw_screen(console: Console, board: Board, head: str, note: str, keys: str) -> Group:
    """A whole screen: a line above the board, one below it, and the keys."""
    body = draw_board(board, console.height - _AROUND)
    # a space where a line is empty, so that nothing jumps when it is filled
    lines = [Text(head, style="bold"), Text(" "), body, Text(note or " "), Text(keys, style="dim")]
    return Group(*(Align.center(line) for line in lines))


# -- best scores -------------------------------------------------------------------------------


@dataclass
class BestScores:
    """The best score of each board, kept in a small file."""

    scores: dict[str, int] = field(default_factory=dict)
    trouble: str = ""

    @classmethod
    def load(cls) -> BestScores:
        path = home() / "best.json"
        try:
            scores = json.loads(path.read_text("utf-8"))
            return cls({str(name): int(score) for name, score in scores.items()})
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, TypeError, AttributeError):
            with suppress(OSError):
                path.replace(path.with_name("best.json.damaged"))
            return cls(trouble="the best scores could not be read; they are in best.json.damaged")

    def of(self, rules: Rules) -> int:
        return self.scores.get(_rules_key(rules), 0)

    def offer(self, rules: Rules, score: int) -> None:
        """Keep a score if it is the best; a disk that is full costs the record, not the game."""
        if score <= self.of(rules):
            return
        self.scores[_rules_key(rules)] = score
        try:
            write_atomically(home() / "best.json", json.dumps(self.scores, indent=1) + "\n")
        except OSError as error:
            self.trouble = f"the best score could not be kept: {error.strerror}"


def _rules_key(rules: Rules) -> str:
    return rules.name if rules.p4 == Rules(2, 2).p4 else f"{rules.name} p4={rules.p4:g}"


# -- playing and watching ----------------------------------------------------------------------

PLAY_KEYS = "arrows, WASD or hjkl: move   u: undo   n: new game   q: quit"
WATCH_KEYS = "space: pause   +/-: faster, slower   q: quit"


def play(rules: Rules, seed: int | None) -> Game:
    """A person plays until they quit; returns the last game."""
    game = Game(rules, seed)
    need_terminal("play")
    best = BestScores.load()
    console = Console()
    note = best.trouble
    undone = False  # a game with a move taken back does not count for the best score

    def screen() -> Group:
        head = f"{rules.name}   score {game.score:,}   best {best.of(rules):,}"
        said = [text for text in ("game over" if game.over else "", note) if text]
        return draw_screen(console, game.board, head, "; ".join(said), PLAY_KEYS)

    with (
        keyboard() as keys,
        Live(console=console, screen=True, auto_refresh=False) as live,
        suppress(KeyboardInterrupt, EOFError),
    ):
        while True:
            live.update(screen(), refresh=True)
            key = keys.read(0.5)  # now and then the screen is drawn anew, for a changed window
            if key is None:
                continue
            note = ""
            if key in ("q", "\x04"):
                break
            if key == "n":
                game, undone = Game(rules), False
            elif key == "u":
                moved = game.undo()
                undone |= moved
                note = "taken back; this game no longer counts for the best score" if moved else ""
            elif key in MOVE_KEYS and not game.over:
                move = game.board.move(MOVE_KEYS[key])
                if move.legal:
                    game.play(MOVE_KEYS[key])
                    if not undone:
                        best.offer(rules, game.score)
                        note = best.trouble
                else:
                    note = f"{MOVE_KEYS[key]} moves nothing"
    return game


def watch(name: str, player: Player, rules: Rules, seed: int | None, speed: float) -> Game:
    """Show a player's game, `speed` moves a second; returns the game."""
    game = Game(rules, seed)
    own = chance.player_key(game.key)

    def step() -> None:
        game.play(player(game.board, chance.word(own, len(game.moves))))

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        while not game.over:
            step()
        return game
    need_terminal("watch")
    console = Console()
    paused = False
    due = time.monotonic()
    with (
        keyboard() as keys,
        Live(console=console, screen=True, auto_refresh=False) as live,
        suppress(KeyboardInterrupt, EOFError),
    ):
        while True:
            head = f"{name} on {rules.name}   score {game.score:,}   move {len(game.moves):,}"
            pace = f"{speed:g} moves a second"
            note = "game over" if game.over else "paused" if paused else pace
            live.update(draw_screen(console, game.board, head, note, WATCH_KEYS), refresh=True)
            waiting = paused or game.over
            key = keys.read(0.5 if waiting else max(0.0, due - time.monotonic()))
            if key in ("q", "\x04"):
                break
            if key == " ":
                paused = not paused
            elif key in ("+", "="):
                speed = min(1024.0, speed * 2)
            elif key == "-":
                speed = max(0.125, speed / 2)
            elif key is None and not waiting:
                step()
                due = max(due, time.monotonic() - 0.5) + 1 / speed
    return game
