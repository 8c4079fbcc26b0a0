"""What tests of the page do: read the board, make moves, wait."""

from __future__ import annotations

from playwright.sync_api import expect

from lab2048.game import Rules

KEYS = ("ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft")


RULES = Rules(3, 2)


VIEWS = ("play", "watch", "analyse", "review", "results")


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


def arrived(page, last, count=None):
    """Wait for what a page shows last: at least one such element, or as many as are given."""
    found = page.locator(last)
    if count is None:
        found.first.wait_for(state="attached")
    else:
        expect(found).to_have_count(count)
