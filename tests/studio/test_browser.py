"""The studio in a real browser."""

from __future__ import annotations

import json
import os
import re
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from lab2048.game import Board, Direction, Game, Rules
from lab2048.game.record import Record
from lab2048.measure.review import review
from lab2048.report.evaluation_page import write_report
from lab2048.report.review_page import write_review
from lab2048.solver.table import Table
from lab2048.studio import app, pages
from tests.serving import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KEYS = ("ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft")
RULES = Rules(3, 2)
expect.set_options(timeout=60_000)  # a player may have to be compiled
VIEWS = ("play", "watch", "analyse", "review", "results")


@pytest.fixture(scope="module")
def browser():
    """Debian's chromium; where there is none, only CI insists on it."""
    path = shutil.which("chromium")
    if path is None:
        missing = "there is no chromium; `make browser` installs it"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def context(browser, address):
    found = browser.new_context(
        base_url=address, viewport={"width": 1280, "height": 900}, reduced_motion="reduce"
    )
    found.set_default_timeout(60_000)
    yield found
    found.close()


@pytest.fixture
def page(context):
    """A page; whatever goes wrong in it fails the test."""
    found = context.new_page()
    troubles = []
    found.on("pageerror", lambda error: troubles.append(str(error)))
    found.on("console", lambda line: troubles.append(line.text) if line.type == "error" else None)
    yield found
    assert troubles == []


def ranks(page, place=".board"):
    """The board that is shown, and that the tiles on the page are those."""
    board = page.locator(place).first
    found = [int(rank) for rank in board.get_attribute("data-ranks").split()]
    tiles = board.locator(".face").all_inner_texts()
    assert sorted(map(int, tiles)) == sorted(2**rank for rank in found if rank)
    return tuple(found)


def first_moves(game, count=10**6):
    """Make the first legal move again and again; the keys for it."""
    keys = []
    while not game.over and len(keys) < count:
        keys.append(KEYS[game.board.legal_moves[0]])
        game.play(game.board.legal_moves[0])
    return keys


def begin(page):
    """Open a game, and wait until it takes keys."""
    page.goto("/play?rules=3x2&seed=7")
    expect(page.locator(".board .tile")).to_have_count(2)


PACKED = 'async (moves) => (await import("/static/game.js")).packMoves(moves)'
"""The moves of a game as an address has them."""


def arrived(page, last, count=None):
    """Wait for what a page shows last: at least one such element, or as many as are given."""
    found = page.locator(last)
    if count is None:
        found.first.wait_for(state="attached")
    else:
        expect(found).to_have_count(count)


def hexadecimal(board):
    return Board.parse(board).hex


# -- play ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "p4", "seed"), [("3x2", 0.1, 7), ("4x4", 0.37, 2**64 - 1)])
def test_a_game_by_keyboard_is_the_engine_s(page, size, p4, seed):
    page.goto(f"/play?rules={size}&p4={p4}&seed={seed}")
    game = Game(Rules.parse(size, p4), seed)
    expect(page.locator(".board")).to_have_attribute(
        "data-ranks", " ".join(map(str, game.board.ranks))
    )
    for number, key in enumerate(first_moves(game, 150)):
        page.keyboard.press(key)
        if number % 25 == 0:
            ranks(page)
    assert ranks(page) == game.board.ranks
    expect(page.locator(".scores output").first).to_have_text(f"{game.score:,}")
    expect(page.locator(".ending")).to_be_visible(visible=game.over)
    packed = page.evaluate(PACKED, list(map(int, game.moves)))
    expect(page).to_have_url(re.compile(f"#{packed}$"))  # written three times a second, at most
    page.reload()  # it has the whole game
    expect(page.locator(".scores output").nth(2)).to_have_text(str(len(game.moves)))
    assert ranks(page) == game.board.ranks


def test_undo_and_a_move_that_moves_nothing(page):
    begin(page)
    game = Game(RULES, 7)
    start = game.board
    (key,) = first_moves(game, 1)
    page.keyboard.press(key)
    assert ranks(page) == game.board.ranks
    page.keyboard.press("u")
    assert ranks(page) == start.ranks
    expect(page.get_by_test_id("mark")).to_contain_text("taken back")
    illegal = next(d for d in Direction if not start.move(d).legal)
    page.keyboard.press(KEYS[illegal])
    expect(page.get_by_test_id("mark")).to_contain_text("moves nothing")
    page.keyboard.press(key)  # the same move brings the same tile
    assert ranks(page) == game.board.ranks


def test_swipes_and_letters_move_too(page):
    begin(page)
    game = Game(RULES, 7)
    box = page.locator(".board").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for key in first_moves(game, 6):
        dx, dy = {"ArrowUp": (0, -90), "ArrowRight": (90, 0), "ArrowDown": (0, 90)}.get(
            key, (-90, 0)
        )
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + dx, y + dy, steps=4)
        page.mouse.up()
    assert ranks(page) == game.board.ranks
    letters = dict(zip(KEYS, "wdsa", strict=True))
    for key in first_moves(game, 4):
        page.keyboard.press(letters[key])
    assert ranks(page) == game.board.ranks


def test_hints_and_marks_are_the_table_s(page, made):
    begin(page)
    game = Game(RULES, 7)
    page.keyboard.press("i")
    with Table(made) as table:
        for _ in range(8):
            moves = table.moves(game.board)
            worst = max(moves, key=lambda d: moves[d].regret)
            rows = page.locator(".bars .bar-row")
            for direction, move in moves.items():
                shown = rows.nth(int(direction)).locator(".value")
                expect(shown).to_have_text(f"{move.q:,.1f}")
                best = rows.nth(int(direction)).locator(".lost")
                small = "≈ 0" if move.regret < 0.05 else "−"
                expect(best).to_contain_text("best" if move.optimal else small)
            page.keyboard.press(KEYS[worst])
            if moves[worst].optimal:
                expect(page.get_by_test_id("mark")).to_contain_text(f"{worst}: best")
            else:
                better = table.best(game.board)[0]
                expect(page.get_by_test_id("mark")).to_contain_text(f"better {better}")
            game.play(worst)
            assert ranks(page) == game.board.ranks
    marks = page.locator(".marks .grade")
    assert marks.count() == 8


def test_the_live_region_tells_the_moves(page):
    begin(page)
    game = Game(RULES, 7)
    (key,) = first_moves(game, 1)
    page.keyboard.press(key)
    expect(page.locator("#live")).to_contain_text(f"score {game.score}")
    tiles = str(game.board).replace(".", "empty").replace(" / ", "; ")
    expect(page.locator(".board")).to_have_attribute("aria-label", f"Board: {tiles}")


def test_arrows_on_a_list_or_a_number_move_tiles(page):
    """They neither choose another board nor another p4; a number that is edited keeps its keys."""
    begin(page)
    game = Game(RULES, 7)
    size = page.get_by_label("Board size")
    p4 = page.get_by_label("p4, the chance that a new tile is a 4")
    for field, value in (
        (size, "3x2"),
        (page.get_by_label("Judge", exact=True), "auto"),
        (p4, "0.1"),
    ):
        field.focus()
        for key in first_moves(game, 3):
            page.keyboard.press(key)
        assert ranks(page) == game.board.ranks
        expect(field).to_have_value(value)
        expect(field).to_be_focused()
    p4.fill("0.25")
    page.keyboard.press("ArrowLeft")
    page.keyboard.type("1")  # before the 5
    expect(p4).to_have_value("0.215")
    assert ranks(page) == game.board.ranks


def test_a_running_game_is_left_only_when_that_is_said(page):
    begin(page)
    game = Game(RULES, 7)
    size = page.get_by_label("Board size")
    p4 = page.get_by_label("p4, the chance that a new tile is a 4")
    question = page.get_by_role("alertdialog")
    ways = {
        "key": lambda: page.keyboard.press("n"),
        "button": lambda: page.get_by_role("button", name="New game").click(),
        "size": lambda: size.select_option("2x2"),
        "p4": lambda: (p4.fill("0.5"), p4.press("Enter")),
        "menu": lambda: page.locator("nav a[data-view=play]").click(),
    }
    for way, leave in ways.items():
        for key in first_moves(game, 2):
            page.keyboard.press(key)
        leave()
        expect(question, way).to_be_visible()
        expect(question).to_contain_text(f"{len(game.moves)} moves")
        page.keyboard.press("ArrowUp")  # moves nothing while one is asked
        page.keyboard.press("Escape" if way == "key" else "Enter")  # the button that keeps it
        expect(question).not_to_be_visible()
        assert ranks(page) == game.board.ranks
        expect(size).to_have_value("3x2")
        expect(p4).to_have_value("0.1")
    page.keyboard.press("x")
    page.get_by_role("button", name="Play from here").click()
    page.get_by_role("button", name="Keep this one").click()
    expect(page.locator(".view.analyse")).to_be_visible()
    page.keyboard.press("1")
    assert ranks(page) == game.board.ranks
    page.keyboard.press("n")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".scores output").nth(2)).to_have_text("0")
    page.keyboard.press("n")  # there is nothing to lose
    expect(question).not_to_be_visible()
    page.go_back()
    page.go_back()  # what was left can still be found
    expect(page.locator(".scores output").nth(2)).to_have_text(str(len(game.moves)))
    assert ranks(page) == game.board.ranks


# -- analyse -------------------------------------------------------------------------------------


def test_an_analysis_shows_the_table_s_figures(page, made):
    board = Board.parse("16 4 / 2 8 / . 2")
    page.goto(f"/analyse?board={board.hex}&rules=3x2&player=greedy")
    with Table(made) as table:
        for direction, move in table.moves(board).items():
            row = page.locator(f"tr[data-move={direction}]")
            regret = "best" if move.optimal else f"−{move.regret:,.2f}"
            expect(row).to_contain_text(regret)
            cells = row.locator("td").all_inner_texts()
            assert cells[:3] == [str(move.reward), f"{move.after_value:,.2f}", f"{move.q:,.2f}"]
        best = table.best(board)[0]
    expect(page.locator(".verdict")).to_contain_text(f"{str(best).title()} is best")
    expect(page.locator("th.player")).to_have_text("greedy")
    expect(page.locator("td.player .choice")).to_have_count(1)


def test_a_walk_through_a_spawn_and_back(page, made):
    board = Board.parse("16 4 / 2 8 / . 2")
    page.goto(f"/analyse?board={board.hex}&rules=3x2&player=none")
    page.locator("tr[data-move=down] button").click()
    after = board.move("down").after
    with Table(made) as table:
        spawns = table.spawns(after)
        expect(page.locator(".spawn")).to_have_count(len(spawns))
        spawn, value = spawns[-1]
        there = page.locator(f'.spawn[data-board="{spawn.board}"]')
        expect(there).to_contain_text(f"{100 * spawn.probability:.1f}%")
        expect(there).to_contain_text(f"{value:,.1f}")
        there.click()
        expect(page.locator("input.text")).to_have_value(str(spawn.board))
        expect(page.locator(".verdict")).to_contain_text(f"{table.value(spawn.board):,.2f}")
    page.go_back()
    expect(page.locator("input.text")).to_have_value(str(board))
    expect(page.locator(".spawn")).to_have_count(len(spawns))
    page.keyboard.press("Backspace")
    expect(page.locator(".spawn")).to_have_count(0)
    assert page.url.endswith(f"board={board.hex}&rules=3x2&player=none")


def test_the_editor_and_pasted_text_set_up_a_position(page):
    page.goto("/analyse?board=000000&rules=3x2&player=none")
    expect(page.locator(".verdict")).to_contain_text("Set up a position")
    page.get_by_role("radio", name="16", exact=True).click()
    page.locator("[data-cell='0']").click()
    page.locator("[data-cell='3']").click()
    page.locator("[data-cell='3']").click(button="right")
    page.locator("[data-cell='1']").focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("+")
    expect(page.locator("input.text")).to_have_value("16 4 / . 2 / . .")
    page.keyboard.press("Delete")
    expect(page.locator("input.text")).to_have_value("16 4 / . . / . .")
    text = page.locator("input.text")
    text.fill("[[2, 4], [8, 16], [0, 2]]")
    text.press("Enter")
    assert f"board={hexadecimal('2 4 / 8 16 / . 2')}" in page.url
    text.fill("2 3 / 4 5")
    text.press("Enter")
    expect(page.locator("#toast")).to_contain_text("“3” is no tile")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_board_of_several_lines_is_pasted(page, end):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/analyse?board=000000&rules=3x2&player=none")
    text = page.locator("input.text")
    for lines in (["2 4 .", ". 8 16"], ["[[2, 4, 0],", " [0, 8, 16]]", ""]):
        page.get_by_role("button", name="Clear").click()
        page.evaluate("text => navigator.clipboard.writeText(text)", end.join(lines))
        text.focus()
        page.keyboard.press("Control+A")
        page.keyboard.press("Control+V")
        expect(text).to_have_value("2 4 . / . 8 16")
        expect(page).to_have_url(re.compile(f"board={hexadecimal('2 4 . / . 8 16')}&rules=2x3"))


def test_another_player_is_one_that_was_not_asked_yet(page):
    """The usual player of 3x3 has an option: it is still the same player."""
    page.goto("/analyse?board=643512114&rules=3x3")
    expect(page.get_by_label("Player 1", exact=True)).to_have_value("ntuple")
    page.get_by_role("button", name="+ Player").click()
    expect(page.get_by_label("Player 2", exact=True)).to_have_value("expectimax")


# -- watch ---------------------------------------------------------------------------------------


def test_another_board_is_watched_with_its_own_usual_player(page):
    """There is no network for 5x2: the usual player of 4x4 could not play there."""
    page.goto("/watch?rules=4x4&seed=5&at=1")
    expect(page.locator(".player-name")).to_have_text("ntuple:depth=3")
    page.get_by_label("Board size").select_option("5x2")
    expect(page.locator(".player-name")).to_have_text(re.compile("^expectimax"))
    expect(page.locator(".side .note")).to_have_text("")
    page.get_by_label("Board size").select_option("4x4")
    expect(page.locator(".player-name")).to_have_text("ntuple:depth=3")


@pytest.mark.parametrize("width", [375, 414])
def test_a_player_who_is_watched_on_a_phone(browser, address, width):
    context = browser.new_context(base_url=address, viewport={"width": width, "height": 720})
    page = context.new_page()
    page.goto("/watch?rules=3x2&player=greedy&seed=5&at=3")
    expect(page.locator(".bars .best")).to_contain_text("its move")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    beyond = "each => each.scrollWidth - each.clientWidth"
    assert {row.evaluate(beyond) for row in page.locator(".bars .bar-row").all()} == {0}
    context.close()


FRAMES = """
async () => {
  const found = [];
  const bars = [...document.querySelectorAll(".bars .bar")];
  for (const begin = performance.now(); performance.now() < begin + 600;) {
    await new Promise(requestAnimationFrame);
    const share = (bar) => 100 * bar.offsetWidth / bar.parentElement.clientWidth;
    found.push(Math.max(...bars.map((bar) => Math.abs(share(bar) - parseFloat(bar.style.width)))));
  }
  return found;
}
"""


def test_bars_change_together_with_their_numbers(browser, address):
    """In every frame of a game a bar is as long as it was made when its number was written."""
    context = browser.new_context(base_url=address, reduced_motion="no-preference")
    page = context.new_page()
    page.goto("/watch?rules=4x4&player=greedy&seed=5&speed=30")
    expect(page.locator(".bars .best")).to_have_count(1)
    assert max(page.evaluate(FRAMES)) <= 1
    assert int(page.locator(".scores output").nth(1).inner_text()) > 3
    context.close()


def test_a_game_at_full_speed_ends_as_it_should(page):
    page.goto("/watch?rules=3x2&player=greedy&player=random&seed=5&speed=0")
    for place, spec in enumerate(("greedy", "random")):
        from lab2048.players.registry import make_player

        game = Game(RULES, 5)
        player = make_player(spec, RULES)
        while not game.over:
            game.play(player.choose(game.board, game.own_word))
        side = page.locator(".side").nth(place)
        expect(side.locator(".note")).to_contain_text(f"Game over: {game.score:,} points")
        expect(side.locator(".scores output").nth(1)).to_have_text(str(len(game.moves)))


def test_watching_step_by_step(page):
    page.goto("/watch?rules=3x2&player=greedy&seed=5&at=3")
    moves = page.locator(".scores output").nth(1)
    expect(moves).to_have_text("3")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    page.keyboard.press(".")
    expect(moves).to_have_text("4")
    expect(page.locator(".bars .best")).to_have_count(1)
    expect(page).to_have_url(re.compile("at=4"))
    page.keyboard.press("f")
    page.keyboard.press(" ")
    expect(page.locator(".side .note")).to_contain_text("Game over")
    page.keyboard.press("r")
    expect(page.locator(".review .verdict")).to_contain_text("greedy")


def test_a_watched_game_waits_for_who_comes_back(page):
    page.goto("/watch?rules=4x4&player=random&seed=5")
    expect(page.locator(".scores output").nth(1)).not_to_have_text(re.compile("^[012]?$"))
    page.keyboard.press("5")
    expect(page.locator(".view.results")).to_be_visible()
    page.keyboard.press("2")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("at="))
    at = re.search(r"at=(\d+)", page.url)[1]
    assert int(at) >= 3
    expect(page.locator(".scores output").nth(1)).to_have_text(at)


def test_two_clients_never_see_each_other_s_games(browser, address):
    pages = []
    for seed in (5, 6):
        context = browser.new_context(base_url=address)
        pages.append(context.new_page())
        pages[-1].goto(f"/watch?rules=4x4&player=random&seed={seed}&speed=0")
    for seed, page in zip((5, 6), pages, strict=True):
        game = Game(Rules(4, 4), seed)
        from lab2048.players.registry import make_player

        player = make_player("random", game.rules)
        while not game.over:
            game.play(player.choose(game.board, game.own_word))
        expect(page.locator(".side .note")).to_contain_text(f"{game.score:,} points", timeout=60000)
        page.goto("/review")
        expect(page.locator(".game")).to_have_count(1)
        expect(page.locator(".game")).to_contain_text(f"{game.score:,}")
        page.context.close()


# -- review --------------------------------------------------------------------------------------


@pytest.fixture
def bad_game(made, tmp_path):
    """A game in which perfect play makes one mistake, at its tenth move; its file."""
    game = Game(RULES, 3)
    with Table(made) as table:
        while not game.over:
            moves = table.moves(game.board)
            choose = max if len(game.moves) == 9 else min
            game.play(choose(moves, key=lambda d: moves[d].regret))
    path = tmp_path / "games.jsonl"
    path.write_text(Record.of(game, "me").to_json() + "\n")
    return path


def test_a_review_marks_the_mistake(page, bad_game, made):
    page.goto("/review")
    page.locator("input[type=file]").set_input_files(bad_game)
    record = Record.from_json(bad_game.read_text())
    turn = list(record.turns())[9]
    with Table(made) as table:
        regret = table.moves(turn.board)[turn.move].regret
        better = table.best(turn.board)[0]
    mistakes = page.locator("button.mistake-card")
    expect(mistakes).to_have_count(1)
    expect(mistakes).to_contain_text("Move 10 ")
    expect(mistakes).to_contain_text(f"{turn.move}, better {better}")
    expect(mistakes).to_contain_text(f"lost {regret:,.1f}")
    expect(page.locator(".review .scores output").nth(2)).to_have_text(f"{regret:,.1f}")
    expect(page.locator("circle.event")).to_have_count(2)  # one in each graph
    page.keyboard.press("m")
    assert ranks(page, ".board-side .board") == turn.board.ranks
    expect(page.locator(".mark")).to_contain_text(f"better {better}")
    expect(page).to_have_url(re.compile("at=9"))
    page.reload()
    expect(mistakes).to_have_count(1)
    assert ranks(page, ".board-side .board") == turn.board.ranks
    page.get_by_role("button", name="Practise this").click()
    expect(page.locator(".play")).to_be_visible()
    assert ranks(page) == turn.board.ranks
    page.keyboard.press(KEYS[turn.move])
    expect(page.locator(".scores output").nth(2)).to_have_text("1")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".scores output").nth(2)).to_have_text("0")
    assert ranks(page) == turn.board.ranks


def test_a_judge_that_may_be_wrong_counts_marks_and_no_points(page, bad_game):
    page.goto("/review")
    page.locator("input[type=file]").set_input_files(bad_game)
    expect(page.get_by_test_id("counts")).to_contain_text("best")
    expect(page.locator(".review .scores")).to_contain_text("points lost")
    expect(page.locator(".graphs svg")).to_have_count(2)
    page.get_by_label("Judge", exact=True).select_option("greedy")
    expect(page.locator(".review .verdict")).to_contain_text("judged by greedy")
    expect(page.get_by_test_id("counts")).to_contain_text("not the judge's move")
    expect(page.locator(".review .scores")).not_to_contain_text("points lost")
    expect(page.locator(".review")).to_contain_text("only tells which moves are its own")
    expect(page.locator(".graphs svg")).to_have_count(1)


def test_the_page_of_a_review_steps_through_the_game(browser, bad_game, made, tmp_path):
    record = Record.from_json(bad_game.read_text())
    turns = list(record.turns())
    with Table(made) as table:
        found = review(record, table)
    write_review(record, found, tmp_path / "review.html", [])
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((tmp_path / "review.html").as_uri())
    said, cells = page.locator("#said"), page.locator("#board td")
    shown = lambda: [int(text or 0) for text in cells.all_inner_texts()]  # noqa: E731
    expect(said).to_contain_text(f"Move 1 of {len(turns)}: {turns[0].move}, best")
    page.keyboard.press("m")
    expect(said).to_contain_text(f"Move 10 of {len(turns)}: {turns[9].move}, slip")
    assert shown() == [tile for row in turns[9].board.tiles for tile in row]
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("Move 11 ")
    page.keyboard.press("End")
    expect(said).to_contain_text(f"Move {len(turns)} ")
    page.locator("[data-move='10']").click()
    expect(said).to_contain_text("Move 10 ")
    assert page.evaluate("document.documentElement.scrollHeight") < 2500
    page.close()


def test_the_game_just_played_is_reviewed(page):
    begin(page)
    game = Game(RULES, 7)
    for key in first_moves(game):
        page.keyboard.press(key)
    page.keyboard.press("r")
    expect(page.locator(".review .verdict")).to_contain_text(f"you: {game.score:,} points")
    expect(page.locator(".chip")).to_have_count(len(game.moves))
    page.goto("/review")
    page.locator(".game").click()
    expect(page.locator(".chip")).to_have_count(len(game.moves))


def test_a_file_that_holds_no_game_is_refused(page, tmp_path):
    page.goto("/review")
    expect(page.locator(".empty")).to_contain_text("None yet")
    (tmp_path / "x.jsonl").write_text("no\n")
    page.locator("input[type=file]").set_input_files(tmp_path / "x.jsonl")
    expect(page.locator("#toast")).to_contain_text("no file of games")


# -- results -------------------------------------------------------------------------------------


def test_results_are_listed_sorted_and_drawn(page, solved_home, command):
    page.goto("/results")
    expect(page.locator(".empty")).to_contain_text("No player has been evaluated yet")
    expect(page.locator("text=21,752").first).to_be_visible()
    assert command("evaluate", "random", "greedy", "--board", "3x2", "--games", "40")[0] == 0
    page.reload()
    names = page.locator(".evals td.name")
    expect(names).to_have_count(2)
    page.get_by_role("button", name="mean score").click()
    kept = json.loads(next((solved_home / "results").glob("*.json")).read_text())["results"]
    order = sorted(kept, key=lambda each: -each["score"]["mean"])
    expect(names.first).to_have_text(order[0]["player"])
    page.get_by_role("button", name="mean score").click()
    expect(names.first).to_have_text(order[1]["player"])
    expect(page).to_have_url(re.compile("sort=mean&order=up"))
    expect(page.locator(".charts svg.chart")).to_have_count(3)


# -- tables --------------------------------------------------------------------------------------

LONG = "expectimax:depth=2,cutoff=0.001,heuristic=snake,cells=4,ties=split"
WIDE = """
() => [...document.querySelectorAll("table")].filter((each) =>
  Math.max(each.scrollWidth, each.getBoundingClientRect().width) > each.parentElement.clientWidth
).map((each) => each.outerHTML.slice(0, 80))
"""


@pytest.fixture
def results(solved_home, command):
    """Kept results on 3x2 of players with long names; the first is made to look exact."""
    kept = solved_home / "results"
    before = {*kept.glob("*.json")}
    assert command("evaluate", "random", "greedy", "--board", "3x2", "--games", "40")[0] == 0
    (path,) = {*kept.glob("*.json")} - before
    content = json.loads(path.read_text())
    for each, name in zip(content["results"], (LONG, f"{LONG},time=0.25"), strict=True):
        each |= {"player": name, "scores": each["quantiles"]}
    exact = {"value": 61.168, "optimal_value": 480.258, "regret": 419.09}
    content["results"][0]["exact"] = exact
    path.write_text(json.dumps(content))
    yield content["results"]
    path.unlink()


@pytest.mark.parametrize("width", [375, 768, 1280])
def test_no_table_is_wider_than_its_column(page, results, tmp_path, width):
    page.set_viewport_size({"width": width, "height": 900})
    report = tmp_path / "page.html"
    large = [{**each, "board": "4x4", "exact": None, "optimal": None} for each in results]
    write_report([*results, *large], report, ["evaluate"])
    players = "&player=".join(["", "greedy", "random", "corner", "sparse"])
    for place, last, count in (
        (report.as_uri(), "table", None),
        ("/results", ".charts svg.chart", 3),
        (f"/analyse?board=643110&rules=3x2{players}", "td.player .choice", 4),
        (f"/analyse?board=643512114&rules=3x3{players}", "td.player .choice", 4),
        ("/api/docs", "table", None),
    ):
        page.goto(place)
        arrived(page, last, count)
        assert page.locator("table").count() > 0, place
        assert page.evaluate(WIDE) == [], place
        assert page.evaluate("document.documentElement.scrollWidth") <= width, place


@pytest.mark.parametrize("width", [375, 1280])
def test_what_matters_most_comes_first(page, results, tmp_path, width):
    """The player, its mean score, what it loses, how often it agrees: exact where that is known."""
    page.set_viewport_size({"width": width, "height": 900})
    report = tmp_path / "page.html"
    write_report(results, report, ["evaluate"])
    exact, played = results[0]["exact"], results[1]["score"]["mean"]
    for place, row in ((report.as_uri(), "table.players tr"), ("/results", ".evals tr")):
        page.goto(place)
        for name, mean in (
            (LONG, f"{exact['value']:,.2f}"),
            (f"{LONG},time=0.25", f"{played:.1f}"),
        ):
            cells = page.locator(row).filter(has=page.get_by_text(name, exact=True)).locator("td")
            expect(cells.last).to_be_visible()
            texts = [text for text in cells.all_inner_texts() if text.strip()]
            assert texts[0] == name and texts[1].startswith(mean), place
            assert texts[3].endswith("%"), place
        first = page.locator(row).filter(has=page.get_by_text(LONG, exact=True)).locator("td")
        expect(first.filter(has_text=f"{exact['regret']:,.2f}")).to_be_in_viewport(ratio=1)


def test_a_phone_shows_what_players_think_of_a_board_that_is_not_solved(page):
    page.set_viewport_size({"width": 375, "height": 720})
    page.goto("/analyse?board=643512114&rules=3x3&player=greedy")
    board = Board.parse("643512114")
    for direction in board.legal_moves:
        value = page.locator(f"tr[data-move={direction}] td.player")
        expect(value).to_be_visible()
        expect(value).to_contain_text(f"{board.move(direction).reward:.1f}")
    expect(page.locator("th.player")).to_be_visible()


# -- everywhere ----------------------------------------------------------------------------------


OVER = '.side .note:has-text("Game over")'


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_everything_without_overflow(browser, address, scheme):
    context = browser.new_context(
        base_url=address,
        viewport={"width": 375, "height": 720},
        color_scheme=scheme,
        has_touch=True,
    )
    context.set_default_timeout(60_000)
    page = context.new_page()
    for path, last, count in (
        ("/play?rules=4x4&seed=1", "option[title]", None),
        ("/watch?rules=3x2&player=greedy&player=random&seed=1&speed=0", OVER, 2),
        ("/analyse?board=643110&rules=3x2&player=greedy&after=right", ".reach-list", 1),
        ("/review?rules=3x2&seed=7#1Q", ".chip", None),
        ("/results", ".boards", 1),
        ("/api/docs", "table", None),
    ):
        page.goto(path)
        arrived(page, last, count)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 375, path
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", back)[:3])) > 3 * 128
        assert light == (scheme == "light"), path
    context.close()


def test_keys_help_and_theme(page):
    page.goto("/play")
    for number, view in enumerate(VIEWS, 1):
        page.keyboard.press(str(number))
        expect(page.locator(f".view.{view}")).to_be_visible()
        expect(page.locator("nav a[aria-current]")).to_have_text(view.title())
        page.keyboard.press("?")
        expect(page.locator("dialog")).to_contain_text(view)
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).not_to_be_visible()
    before = page.locator("html").get_attribute("data-theme")
    page.keyboard.press("t")
    expect(page.locator("html")).not_to_have_attribute("data-theme", before)
    page.reload()
    expect(page.locator("html")).not_to_have_attribute("data-theme", before)


EXTRA = """
export const TITLE = "Extra";
export const KEYS = [["z", "nothing yet"]];
export function open(root) {
  root.textContent = "something new";
  return {};
}
"""


def test_a_new_view_is_a_module_and_a_name(browser, solved_home, monkeypatch):
    files = pages.page_files
    monkeypatch.setattr(pages, "VIEWS", (*VIEWS, "extra"))
    monkeypatch.setattr(app, "page_files", lambda: {**files(), "views/extra.js": EXTRA.encode()})
    page = browser.new_page()
    with serving() as address:
        page.goto(f"{address}/play?rules=3x2&seed=7")
        expect(page.locator(".board .tile")).to_have_count(2)
        page.keyboard.press("6")
        expect(page.locator(".view.extra")).to_have_text("something new")
        expect(page.locator("nav a[aria-current]")).to_have_text("Extra")
        page.keyboard.press("?")
        expect(page.locator("dialog")).to_contain_text("Results, Extra")
        page.goto(f"{address}/extra")
        expect(page.locator(".view.extra")).to_be_visible()
        page.close()


def test_what_comes_late_changes_nothing(page):
    """A view that was left does not write its address; the link past the menu keeps the game."""
    page.clock.install()
    held = []
    facts = re.compile(r"/api\?$")
    page.route(facts, lambda route: held.append(route))  # noqa: PLW0108
    begin(page)
    page.keyboard.press("2")
    expect(page.locator(".view.watch")).to_be_visible()
    page.keyboard.press("5")
    expect(page.locator(".view.results")).to_be_visible()
    with page.expect_response(facts):
        held[0].continue_()
    page.clock.run_for(1000)  # the address is written a while after it has changed
    assert page.url.endswith("/results")
    page.keyboard.press("1")  # a view that was there before takes keys at once
    game = Game(RULES, 7)
    for key in first_moves(game, 6):
        page.keyboard.press(key)
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert ranks(page) == game.board.ranks


def test_keys_never_reach_a_view_that_was_left(page):
    """While another one is on its way; where it does not come, the old one goes on."""
    begin(page)
    held = []
    page.route("**/watch.js", lambda route: held.append(route))  # noqa: PLW0108
    page.keyboard.press("2")
    expect(page).to_have_url(re.compile("/watch"))
    game = Game(RULES, 7)
    (key,) = first_moves(game, 1)
    page.keyboard.press(key)
    assert ranks(page) == Game(RULES, 7).board.ranks
    held[0].fulfill(content_type="text/javascript", body="throw 1")
    expect(page.locator("#toast")).to_contain_text("does not answer")
    assert "/play?rules=3x2&seed=7" in page.url
    page.keyboard.press(key)
    assert ranks(page) == game.board.ranks


def test_p4_of_any_size(page):
    page.clock.install()
    begin(page)
    field = page.get_by_label("p4, the chance that a new tile is a 4")
    field.fill("0.13")
    field.press("Enter")
    expect(page).to_have_url(re.compile("p4=0.13"))
    field.fill("7")
    field.press("Enter")
    page.clock.run_for(1000)
    assert "p4=0.13" in page.url


def test_a_wrong_address_says_what_is_wrong(page):
    page.goto("/play?rules=9x9")
    expect(page.locator("#toast")).to_contain_text("9x9")
    page.goto("/analyse?board=zz")
    expect(page.locator("#toast")).to_contain_text("no rank")
    page.goto("/review?rules=3x2&seed=7#9!!")
    expect(page.locator("#toast")).to_contain_text("damaged")


def test_a_page_that_is_not_there(context):
    page = context.new_page()  # its status is an error in the console
    page.goto("/nowhere")
    expect(page.locator("#toast")).to_contain_text("there is no page /nowhere")
    expect(page.locator(".view.play")).to_be_visible()


def test_every_element_that_acts_has_a_name(page):
    """What a screen reader meets: buttons, links, fields."""
    for path, last in (
        ("/play?seed=1", "option[title]"),
        ("/analyse?board=643110&rules=3x2&player=greedy", ".reach-list"),
        ("/results", ".boards"),
    ):
        page.goto(path)
        arrived(page, last)
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, a, input, select")].filter((each) =>
                 !(each.textContent.trim() || each.ariaLabel || each.title || each.labels?.length))
               .map((each) => each.outerHTML)"""
        )
        assert nameless == [], path


def test_the_page_is_small_and_quick(page):
    sizes = []
    page.on("response", lambda response: sizes.append(len(response.body())))
    begin(page)
    expect(page.locator(".board .tile")).to_have_count(2)
    page.wait_for_load_state("networkidle")
    assert sum(sizes) < 300_000
    for view in VIEWS:
        page.goto(f"/{view}")
    assert sum(sizes) < 600_000
