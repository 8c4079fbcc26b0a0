"""The game on a terminal: keys in, a colour board out.

Rich draws but reads no keys, and curses, which reads them, would have to draw too.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING

from rich.align import Align
from rich.color import Color
from rich.console import Group
from rich.live import Live
from rich.style import Style
from rich.text import Text

from lab2048.cli.console import output
from lab2048.game import P4, Board, Direction, Game, Rules
from lab2048.game.colours import Colour, text_colour, tile_colour
from lab2048.home import home, locked, write_atomically

if TYPE_CHECKING:
    from rich.console import Console

Choose = Callable[[Board, int], Direction]
"""A player as a function: the move for a board, given a random word."""

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
    """Single keys from a terminal that does not wait for the end of a line."""

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
            end = next((i for i, c in enumerate(self._buffer) if i > 1 and "@" <= c <= "~"), 2)
            sequence, self._buffer = self._buffer[: end + 1], self._buffer[end + 1 :]
            return _ARROWS.get(sequence[-1], "unknown")
        key, self._buffer = self._buffer[0], self._buffer[1:]
        return key.lower()

    def _fill(self, seconds: float | None) -> bool:
        """Read what has been typed; False if nothing came in time."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        typed = os.read(self.fd, 1024)
        if not typed:
            raise EOFError
        self._buffer += typed.decode("latin-1")
        return True


@contextmanager
def keyboard() -> Iterator[Keys]:
    """Yield a `Keys`, and restore the terminal at the end."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    # A suspended game would leave the shell on our screen, so ^Z is a key like any other. The
    # terminal is also restored when a signal ends the game.
    handlers = {number: signal.signal(number, _exit) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        tty.setcbreak(sys.stdin, termios.TCSANOW)
        mode = termios.tcgetattr(sys.stdin)
        mode[6][termios.VSUSP] = b"\x00"
        termios.tcsetattr(sys.stdin, termios.TCSANOW, mode)
        yield Keys()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _exit(number: int, frame: object) -> None:
    """Turn a signal into a normal exit, so that the terminal is restored."""
    sys.exit(128 + number)


def on_terminal() -> bool:
    """Whether both stdin and stdout are a terminal."""
    return all(end is not None and end.isatty() for end in (sys.stdin, sys.stdout))


def need_terminal(what: str) -> None:
    """Raise a `ValueError` unless a person can see the board and type."""
    if not on_terminal() or os.environ.get("TERM") == "dumb":
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
    """The style of a tile."""

    def colour(rgb: Colour) -> Color:
        return Color.from_rgb(*rgb)

    return Style(color=colour(text_colour(rank)), bgcolor=colour(tile_colour(rank)), bold=True)


def draw_board(board: Board, width: int, room: int, colour: bool = True) -> Text:
    """Draw the board as squares, in at most `room` lines of `width` columns if possible."""
    choices = [(3, 1), (3, 0), (1, 1), (1, 0)]
    height, gap = next(
        ((h, g) for h, g in choices if board.rows * (h + g) - g <= room), choices[-1]
    )
    digits = len(str(board.max_tile))
    wide = max(digits, min(_TILE_WIDTH, (width + 1) // board.cols - 1))
    text = Text(no_wrap=True, overflow="crop")
    for r, row in enumerate(board.tiles):
        for line in range(height):
            for c, tile in enumerate(row):
                rank = board.ranks[r * board.cols + c]
                shown = str(tile or ".") if line == height // 2 else ""
                if colour:
                    text.append(shown.center(wide), _style(rank))
                else:
                    text.append(f"[{shown.center(wide - 2)}]" if wide > digits + 1 else shown)
                text.append(" " if c + 1 < board.cols else "\n")
        text.append("\n" * (gap if r + 1 < board.rows else 0))
    return text


def draw_screen(console: Console, board: Board, head: str, note: str, keys: list[str]) -> Group:
    """A whole screen: a line above the board, one below it, and help on the keys."""
    help_line = next((text for text in keys if len(text) <= console.width), keys[-1])
    colour = console.color_system is not None and not console.no_color
    body = draw_board(board, console.width, console.height - _AROUND, colour)
    # a space where a line is empty, so that nothing jumps when it is filled
    texts = [(head, "bold"), (" ", ""), (note or " ", ""), (help_line, "dim")]
    lines = [Text(text, style, no_wrap=True, overflow="ellipsis") for text, style in texts]
    return Group(*(Align.center(line) for line in (*lines[:2], body, *lines[2:])))


# -- best scores -------------------------------------------------------------------------------


class BestScores:
    """The best score of each board, kept in a small file that several games may share."""

    def __init__(self) -> None:
        self.path = home() / "best.json"
        self.trouble = ""
        self.scores = self._read()

    def of(self, rules: Rules) -> int:
        """The best score with these rules, 0 if there is none."""
        return self.scores.get(_rules_key(rules), 0)

    def offer(self, rules: Rules, score: int) -> None:
        """Keep a score if it is the best; a full disk goes into `trouble` and stops no game."""
        if score <= self.of(rules):
            return
        try:
            with locked(self.path.with_suffix(".lock"), "the file of best scores", wait=True):
                for name, other in self._read().items():  # another game may have written since
                    self.scores[name] = max(other, self.scores.get(name, 0))
                self.scores[_rules_key(rules)] = max(score, self.of(rules))
                write_atomically(self.path, json.dumps(self.scores, indent=1) + "\n")
        except OSError as error:
            self.trouble = f"the best score could not be kept: {error.strerror}"

    def _read(self) -> dict[str, int]:
        """Read the file; a damaged one is renamed and counts as empty."""
        try:
            scores = json.loads(self.path.read_text("utf-8"))
            return {str(name): int(score) for name, score in scores.items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            self.trouble = f"the best scores could not be read: {error.strerror}"
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            with suppress(OSError):
                self.path.replace(self.path.with_name("best.json.damaged"))
            self.trouble = "the best scores could not be read; see best.json.damaged"
        return {}


def _rules_key(rules: Rules) -> str:
    """The key of a score in the file."""
    return rules.name if rules.p4 == P4 else f"{rules.name} p4={rules.p4:g}"


# -- playing and watching ----------------------------------------------------------------------

# the longest that fits the window is shown
PLAY_KEYS = [
    "arrows, WASD or hjkl: move   u: undo   n: new game   q: quit",
    "arrows: move  u: undo  n: new  q: quit",
    "u: undo  n: new  q: quit",
]
WATCH_KEYS = ["space: pause   +/-: faster, slower   q: quit", "space: pause  q: quit"]


def play(rules: Rules, seed: int | None) -> Game:
    """Let a person play until they quit; return the last game."""
    game = Game(rules, seed)
    need_terminal("play")
    best = BestScores()
    console = output()
    note = ""
    undone = False  # a game with a move taken back does not count for the best score

    def screen() -> Group:
        head = f"{rules.name}   score {game.score:,}   best {best.of(rules):,}"
        said = [text for text in ("game over" if game.over else "", note, best.trouble) if text]
        return draw_screen(console, game.board, head, "; ".join(said), PLAY_KEYS)

    with (
        keyboard() as keys,
        Live(console=console, screen=True, auto_refresh=False) as live,
        suppress(KeyboardInterrupt, EOFError),
    ):
        while True:
            live.update(screen(), refresh=True)
            key = keys.read(0.5)  # redraw now and then: the window may be resized
            if key is None:
                continue
            note = ""
            if key in ("q", "\x04"):
                break
            if key == "n":
                game, undone = Game(rules, game.seed, index=game.index + 1), False
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
                else:
                    note = f"{MOVE_KEYS[key]} moves nothing"
    return game


def watch(name: str, choose: Choose, rules: Rules, seed: int | None, speed: float) -> Game:
    """Show a player's game at `speed` moves per second; return the game."""
    game = Game(rules, seed)
    if not on_terminal():
        while not game.over:
            game.play(choose(game.board, game.own_word))
        return game
    need_terminal("watch")
    console = output()
    paused = False
    due = time.monotonic()
    with (
        keyboard() as keys,
        Live(console=console, screen=True, auto_refresh=False) as live,
        suppress(KeyboardInterrupt, EOFError),
    ):
        while True:
            head = f"{name} on {rules.name}   score {game.score:,}   move {len(game.moves):,}"
            pace = f"{speed:g} moves per second"
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
                game.play(choose(game.board, game.own_word))
                due = max(due, time.monotonic() - 0.5) + 1 / speed
    return game
