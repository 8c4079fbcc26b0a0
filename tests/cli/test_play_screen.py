"""The terminal game, driven through a pseudo-terminal as a person would."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import pexpect
import pyte
import pytest

from lab2048 import Direction, Game, Rules

pytestmark = pytest.mark.slow  # every test starts a terminal of its own

ARROWS = {
    Direction.UP: "\x1b[A",
    Direction.DOWN: "\x1b[B",
    Direction.RIGHT: "\x1b[C",
    Direction.LEFT: "\x1b[D",
}
LETTERS = {
    "wasd": {0: "w", 1: "d", 2: "s", 3: "a"},
    "hjkl": {0: "k", 1: "l", 2: "j", 3: "h"},
    "application": {0: "\x1bOA", 1: "\x1bOC", 2: "\x1bOB", 3: "\x1bOD"},
}


class Session:
    """A running command and the screen it draws on."""

    def __init__(self, *arguments, size=(24, 80), home):
        # the window decides about the size, not what the tests themselves run in
        usual = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        self.screen = pyte.Screen(size[1], size[0])
        self.stream = pyte.Stream(self.screen)
        self.child = pexpect.spawn(
            sys.executable,
            ["-m", "lab2048", *arguments],
            dimensions=size,
            encoding="utf-8",
            timeout=20,
            env={**usual, "LAB2048_HOME": str(home), "TERM": "xterm-256color"},
            # tests that run in the background of a shell ignore Ctrl-C, and so would the command
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def wait(self, *expected, seconds=15):
        """Read until the screen shows all of this."""
        deadline = time.monotonic() + seconds
        while not all(part in self.text() for part in expected):
            assert time.monotonic() < deadline, f"{expected} not on:\n{self.text()}"
            try:
                self.stream.feed(self.child.read_nonblocking(65536, 0.2))
            except pexpect.TIMEOUT:
                continue
        return self.text()

    def wait_for_board(self, game):
        """Read until the screen shows this very position."""
        tiles = [[str(tile or ".") for tile in row] for row in game.board.tiles]
        deadline = time.monotonic() + 15
        while self.rows() != tiles:
            assert time.monotonic() < deadline, f"{tiles} not on:\n{self.text()}"
            try:
                self.stream.feed(self.child.read_nonblocking(65536, 0.2))
            except pexpect.TIMEOUT:
                continue

    def rows(self):
        """The rows of the board as they are on the screen."""
        lines = [line.split() for line in self.screen.display]
        return [line for line in lines if line and all(c.isdigit() or c == "." for c in line)]

    def send(self, keys):
        self.child.send(keys)

    def finish(self):
        """Read to the end and return the exit code with what was printed last."""
        rest = self.child.read()
        self.child.close()
        return self.child.exitstatus, rest


def wait_for_best(home, board):
    """Wait until a best score is kept."""
    path, deadline = home / "best.json", time.monotonic() + 15
    while not (path.exists() and board in json.loads(path.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("keys", ["arrows", *LETTERS])
def test_a_seeded_game_is_played_by_keys(keys, own_home):
    session = Session("play", "4x4", "--seed", "7", home=own_home)
    game = Game(Rules(4, 4), 7)
    session.wait("score 0", "q: quit")
    session.wait_for_board(game)
    for _ in range(12):
        direction = game.board.legal_moves[-1]
        game.play(direction)
        session.send(ARROWS[direction] if keys == "arrows" else LETTERS[keys][direction])
        session.wait_for_board(game)
        session.wait(f"score {game.score}")
    session.send("q")
    code, rest = session.finish()
    assert code == 0
    assert f"score {game.score}, largest tile {game.board.max_tile}, 12 moves, seed 7" in rest


def test_undo_new_game_and_moves_that_do_nothing(own_home):
    session = Session("play", "3x3", "--seed", "7", home=own_home)
    game = Game(Rules(3, 3), 7)
    session.wait_for_board(game)
    illegal = [d for d in Direction if d not in game.board.legal_moves]
    session.send(ARROWS[illegal[0]])
    session.wait(f"{illegal[0]} moves nothing")
    session.send(ARROWS[game.board.legal_moves[0]])
    session.send("u")
    session.wait("taken back")
    session.wait_for_board(game)
    session.send("n")
    session.wait("score 0")
    session.send("\x1b")  # keys without a meaning are ignored
    session.send("\x1b[5~x%")
    session.send("q")
    assert session.finish()[0] == 0


def test_a_game_ends_and_the_best_score_is_kept(own_home):
    game = Game(Rules(2, 2), 3)
    session = Session("play", "2x2", "--seed", "3", home=own_home)
    session.wait_for_board(game)
    while not game.over:
        direction = game.board.legal_moves[0]
        game.play(direction)
        session.send(ARROWS[direction])
        session.wait_for_board(game)
    session.wait("game over", f"best {game.score}")
    session.send("q")
    assert session.finish()[0] == 0
    assert json.loads((own_home / "best.json").read_text()) == {"2x2": game.score}
    session = Session("play", "2x2", "--seed", "4", home=own_home)
    session.wait("score 0", f"best {game.score}")
    session.send("q")
    session.finish()


def test_a_game_with_a_move_taken_back_does_not_count(own_home):
    session = Session("play", "2x2", "--seed", "3", home=own_home)
    game = Game(Rules(2, 2), 3)
    session.wait_for_board(game)
    game.play(game.board.legal_moves[0])
    session.send(ARROWS[game.moves[0]] + "u" + ARROWS[game.moves[0]])
    while not game.over:
        direction = game.board.legal_moves[0]
        game.play(direction)
        session.send(ARROWS[direction])
    session.wait_for_board(game)
    assert game.score > 0
    session.send("q")
    session.finish()
    kept = own_home / "best.json"
    first_moves = Game(Rules(2, 2), 3).play(game.moves[0])
    assert (json.loads(kept.read_text())["2x2"] if kept.exists() else 0) == first_moves


@pytest.mark.parametrize("how", ["interrupt", "end of file", "kill"])
def test_the_terminal_is_left_as_it_was(how, own_home):
    """After the game the shell's line editing must be back; after kill -9 the score must be."""
    shell = pexpect.spawn(
        "/bin/sh",
        dimensions=(24, 80),
        encoding="utf-8",
        timeout=20,
        env={**os.environ, "LAB2048_HOME": str(own_home), "TERM": "xterm", "PS1": "$ "},
    )
    shell.sendline("stty -a | tr ';' '\\n' | grep -o -- '-*icanon'; echo begin")
    shell.expect("\r\nicanon\r\nbegin")
    play = f"{sys.executable} -m lab2048 play 2x2 --seed 3"
    shell.sendline(f"sh -c 'echo process $$; exec {play}'; echo code $?")
    shell.expect(r"process (\d+)\r")
    process = int(shell.match[1])
    shell.expect("q: quit")
    for key in "wasd" * 3:
        shell.send(key)
        time.sleep(0.02)
    if how == "kill":
        wait_for_best(own_home, "2x2")
        os.kill(process, signal.SIGKILL)
        shell.expect("code 137")
        assert json.loads((own_home / "best.json").read_text())["2x2"] > 0
        shell.close(force=True)
        return
    shell.send("\x03" if how == "interrupt" else "\x04")
    shell.expect("code 0")
    shell.sendline("stty -a | tr ';' '\\n' | grep -o -- '-*icanon'; echo done")
    shell.expect("\r\nicanon\r\ndone")
    shell.close(force=True)


@pytest.mark.parametrize(("rows", "cols"), [(4, 4), (6, 2), (2, 6), (5, 3)])
def test_every_board_fits_80_by_24(rows, cols, own_home):
    session = Session("play", f"{rows}x{cols}", "--seed", "1", home=own_home)
    text = session.wait("score 0", "q: quit")
    session.wait_for_board(Game(Rules(rows, cols), 1))
    assert len(session.rows()) == rows
    assert "best 0" in text.splitlines()[0]
    session.send("q")
    session.finish()


@pytest.mark.parametrize(("rows", "cols", "size"), [(4, 4, (11, 60)), (2, 6, (12, 40))])
def test_a_small_window_still_shows_the_board(rows, cols, size, own_home):
    session = Session("play", f"{rows}x{cols}", "--seed", "1", size=size, home=own_home)
    session.wait("score 0", "q: quit")
    session.wait_for_board(Game(Rules(rows, cols), 1))
    session.send("q")
    session.finish()


def test_without_colours_the_cells_have_sides(own_home, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    session = Session("play", "2x2", "--seed", "3", home=own_home)
    session.wait("[  2   ]", "[  .   ]", "[      ]")
    session.send("q")
    session.finish()


def test_a_dumb_terminal_is_refused(own_home):
    code = "import os; os.environ['TERM'] = 'dumb'; from lab2048.cli import main; main()"
    child = pexpect.spawn(sys.executable, ["-c", code, "play"], encoding="utf-8", timeout=20)
    child.expect("lab2048: play needs a terminal to show the board on")
    child.wait()
    assert child.exitstatus == 2
    child.close()


def test_ctrl_z_does_not_suspend(own_home):
    shell = pexpect.spawn(
        "bash",
        ["--norc", "-i"],
        dimensions=(24, 80),
        encoding="utf-8",
        timeout=20,
        env={**os.environ, "LAB2048_HOME": str(own_home), "TERM": "xterm"},
    )
    shell.sendline(f"{sys.executable} -m lab2048 play 2x2 --seed 3; echo code $?")
    shell.expect("q: quit")
    shell.send("\x1aq")
    assert shell.expect(["Stopped", r"code \d\d", "code 0"]) == 2
    shell.close(force=True)


def test_a_termination_gives_the_terminal_back(own_home):
    session = Session("play", "2x2", "--seed", "3", home=own_home)
    game = Game(Rules(2, 2), 3)
    session.wait_for_board(game)
    game.play(game.board.legal_moves[0])
    session.send(ARROWS[game.moves[0]])
    session.wait_for_board(game)
    session.child.kill(signal.SIGTERM)
    code, rest = session.finish()
    assert code == 128 + signal.SIGTERM
    assert "\x1b[?1049l" in rest and "\x1b[?25h" in rest  # the old screen, and its cursor


def test_a_new_game_is_the_next_of_the_seed(own_home):
    session = Session("play", "3x3", "--seed", "7", home=own_home)
    session.wait_for_board(Game(Rules(3, 3), 7))
    session.send("n")
    session.wait_for_board(Game(Rules(3, 3), 7, index=1))
    session.send("q")
    assert "seed 7, game 2" in session.finish()[1]


def test_two_games_at_once_keep_both_records(own_home):
    games = [Session("play", size, "--seed", "3", home=own_home) for size in ("2x2", "2x3")]
    for session in games:
        session.wait("score 0")
    for session in games:
        session.send("wasd" * 4)
    for session in games:
        session.wait("score ")
        session.send("q")
        session.finish()
    assert set(json.loads((own_home / "best.json").read_text())) == {"2x2", "2x3"}


@pytest.mark.parametrize(
    "damage", [b'{"4x4": 12\xff', b'{"4x4": Infinity}', b"[" * 100_000, b"[1]"]
)
def test_damaged_best_scores_are_set_aside_and_said(damage, own_home):
    own_home.mkdir()
    (own_home / "best.json").write_bytes(damage)
    session = Session("play", home=own_home)
    session.wait("best 0", "the best scores could not be read")
    session.send("q")
    assert session.finish()[0] == 0
    assert (own_home / "best.json.damaged").read_bytes() == damage


def test_a_home_that_cannot_be_written_costs_the_record_only(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    session = Session("play", "2x2", "--seed", "3", home=blocked)
    session.wait("score 0")
    session.send("wasdwasd")
    session.wait("the best score could not be kept")
    session.send("q")
    assert session.finish()[0] == 0


def test_watching_plays_the_game_to_its_end_and_can_pause(warm_home):
    session = Session("watch", "random", "--board", "2x2", "--seed", "5", home=warm_home)
    session.wait("random on 2x2", seconds=60)
    session.send(" ")
    session.wait("paused")
    session.send(" +++++++")
    session.wait("game over")
    session.send("q")
    code, rest = session.finish()
    assert code == 0 and "seed 5" in rest


def test_watching_is_stopped_by_ctrl_c(warm_home):
    session = Session("watch", "random", "--seed", "5", home=warm_home)
    session.wait("random on 4x4", seconds=60)
    session.child.kill(signal.SIGINT)
    assert session.finish()[0] == 0


@pytest.mark.slow
def test_compiling_is_shown_in_a_line_that_goes_away(own_home):
    session = Session("evaluate", "random", "--games", "10", size=(40, 80), home=own_home)
    session.wait("lab2048: compiling kernels", "10 games per player", seconds=240)
    text = session.text()
    lines = [line for line in text.splitlines() if line]
    assert lines[0] == "lab2048: compiling kernels; later runs find them ready"
    assert lines[-1].startswith("10 games per player on 4x4")
    assert session.finish()[0] == 0
