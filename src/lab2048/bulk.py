"""Many games at once: whole games of the random player, and one step of many boards.

Both work in *lanes*: every stage of a move is a short loop over 64 boards, without branches, which
the compiler turns into vector code. What is rare (a word that has to be replaced, for the draw to
be exactly uniform) is only noticed in the loop, and mended after it. In whole games, a lane whose
game has ended is given the next one.

A game's score is not summed up move by move: it is the sum of tile * (rank - 1) on its last board
less that on its first, less 4 for every 4 that spawned. And its age has to be that of the tiles
that spawned; if it is not, two 32768s have merged, and the game is played again, exactly, as a
`lab2048.game.Game`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab2048 import chance
from lab2048.board import (
    GOLDEN,
    LOW_HALF,
    OVERFLOW,
    PLAYER,
    Table,
    Words,
    age,
    all_cells,
    bounded,
    count,
    game_key,
    legal,
    max_rank,
    merged,
    mix,
    occupied,
    rank_at,
    reward_rows,
    select,
    slide_rows,
    spawn,
    start_board,
    table,
    transpose,
)
from lab2048.game import Board, Game, Rules
from lab2048.jit import U, inline, kernel
from lab2048.players import random_player

Counts = NDArray[np.int64]

LANES = 64
_LEGAL = [[d for d in range(4) if mask >> d & 1] for mask in range(16)]
CHOICES = np.array([len(moves) for moves in _LEGAL], np.uint64)
"""How many moves a mask of legal moves has."""
CHOICE = np.array([sum(d << 8 * k for k, d in enumerate(moves)) for moves in _LEGAL], np.uint64)
"""The moves of a mask, one a byte."""


class Results(NamedTuple):
    """What became of each game, as arrays in the order of the games."""

    score: Counts
    moves: Counts
    max_tile: Counts


# -- stages: each does one thing in the first n lanes ------------------------------------------


@inline("uint64(uint64[::1], uint64[::1], uint64[::1], int64)")
def choose_moves(masks: Words, words: Words, chosen: Words, n: int) -> U:
    """A uniformly random legal move a lane; not 0 if some word has to be replaced."""
    rare = U(0)
    for j in range(n):
        words[j] += GOLDEN
        product = (mix(words[j]) >> U(32)) * CHOICES[masks[j]]
        chosen[j] = (CHOICE[masks[j]] >> ((product >> U(32)) << U(3))) & U(3)
        rare |= U((product & LOW_HALF) < U(4))
    return rare


@inline("void(uint64[::1], uint64[::1], uint64[::1], int64)")
def mend_choices(masks: Words, words: Words, chosen: Words, n: int) -> None:
    """The moves again, with words replaced where they must be."""
    for j in range(n):
        k, _ = bounded(mix(words[j]), CHOICES[masks[j]])
        chosen[j] = (CHOICE[masks[j]] >> (k << U(3))) & U(3)


@inline("void(uint64[::1], uint64[::1], uint64[::1], int64, int64, int64)")
def turn_boards(boards: Words, chosen: Words, turned: Words, n: int, rows: int, cols: int) -> None:
    """The boards so that columns are rows: of squares where the move is vertical, else of all."""
    for j in range(n):
        turned[j] = transpose(boards[j], rows, cols)
        if rows == cols:
            horizontal = U(0) - (chosen[j] & U(1))
            turned[j] ^= (turned[j] ^ boards[j]) & horizontal


@inline(
    "void(uint64[::1], uint64[::1], uint64[::1], uint32[::1], uint32[::1], int64, int64, int64)"
)
def slide_boards(
    boards: Words,
    turned: Words,
    chosen: Words,
    across: Table,
    down: Table,
    n: int,
    rows: int,
    cols: int,
) -> None:
    """Slide the rows of `turned`; on rectangles those of the boards too, either may be wanted."""
    for j in range(n):
        side = ((chosen[j] + U(1)) >> U(1)) & U(1)
        turned[j] = slide_rows(turned[j], side, down, cols, rows)
        if rows != cols:
            boards[j] = slide_rows(boards[j], side, across, rows, cols)


@inline(
    "void(uint64[::1], uint64[::1], uint64[::1], uint32[::1], uint32[::1], uint64[::1], "
    "int64, int64, int64)"
)
def sum_rewards(
    boards: Words,
    turned: Words,
    chosen: Words,
    across: Table,
    down: Table,
    gained: Words,
    n: int,
    rows: int,
    cols: int,
) -> None:
    """The reward a lane, of boards that were turned; see `board.OVERFLOW`."""
    for j in range(n):
        gained[j] = reward_rows(turned[j], down, cols, rows)
        if rows != cols:
            horizontal = U(0) - (chosen[j] & U(1))
            straight = reward_rows(boards[j], across, rows, cols)
            gained[j] ^= (gained[j] ^ straight) & horizontal


@inline("void(uint64[::1], uint64[::1], uint64[::1], int64, int64, int64)")
def turn_back(boards: Words, turned: Words, chosen: Words, n: int, rows: int, cols: int) -> None:
    """The afterstates, from the boards that were slid."""
    for j in range(n):
        horizontal = U(0) - (chosen[j] & U(1))
        straight = turned[j] if rows == cols else boards[j]
        back = transpose(turned[j], cols, rows)
        turned[j] = back ^ ((back ^ straight) & horizontal)


@inline("uint64(uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint64, int64, int64, int64)")
def spawn_tiles(
    after: Words,
    words: Words,
    boards: Words,
    fours: Words,
    threshold: U,
    n: int,
    rows: int,
    cols: int,
) -> U:
    """`board.spawn` a lane; not 0 if some word has to be replaced.

    What it makes of a full board is no board.
    """
    rare = U(0)
    for j in range(n):
        words[j] += GOLDEN
        word = mix(words[j])
        empty = ~occupied(after[j]) & all_cells(rows, cols)
        product = (word >> U(32)) * count(empty)
        low = word & LOW_HALF
        four = U(low < threshold)
        cell = select(empty, product >> U(32))
        boards[j] = after[j] | ((U(1) + four) << (cell << U(2)))
        fours[j] += four
        close = U((product & LOW_HALF) < U(16)) & U(empty != U(0))
        rare |= close | U(low == threshold)
    return rare


@inline(
    "void(uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], int64, int64, int64)"
)
def mend_spawns(
    after: Words,
    words: Words,
    boards: Words,
    fours: Words,
    four: Words,
    n: int,
    rows: int,
    cols: int,
) -> None:
    """The spawns again, with words replaced where they must be."""
    for j in range(n):
        word = mix(words[j])
        boards[j], rank = spawn(after[j], word, four, rows, cols)
        fours[j] += (rank - U(1)) - U((word & LOW_HALF) < four[0])


@inline("uint64(uint64[::1], uint64[::1], int64, int64, int64)")
def find_moves(boards: Words, masks: Words, n: int, rows: int, cols: int) -> U:
    """The legal moves a lane; not 0 if some game has ended."""
    ended = U(0)
    for j in range(n):
        masks[j] = legal(boards[j], rows, cols)
        ended |= U(masks[j] == U(0))
    return ended


# -- whole games -------------------------------------------------------------------------------


@cache
def _games_kernel(rows: int, cols: int) -> Callable[..., None]:
    """The kernel that plays whole random games on this board."""

    @kernel(
        "void(uint64, uint64, uint64, uint64[::1], uint32[::1], uint32[::1], "
        "uint64[::1], uint64[:, ::1])"
    )
    def play(
        seed: U,
        first: U,
        begin: U,
        four: Words,
        across: Table,
        down: Table,
        last: Words,
        counts: Words,
    ) -> None:
        """Games first, first + 1, ...: the last board of each, its moves and its spawned 4s.

        They start with `begin`, or with two spawns where that is 0.
        """
        lanes = np.empty((7, LANES), np.uint64)
        boards, masks, chosen, turned = lanes[0], lanes[1], lanes[2], lanes[3]
        words, own, fours = lanes[4], lanes[5], lanes[6]
        game = np.empty(LANES, np.int64)
        since = np.empty(LANES, np.int64)  # the turn that the game began with
        games = last.size
        n = min(LANES, games)
        masks[:] = U(0)
        game[:] = -1
        started = turn = 0
        ended = U(1)
        while True:
            j = 0 if ended else n
            while j < n:
                if masks[j] != U(0):
                    j += 1
                    continue
                if game[j] >= 0:
                    last[game[j]] = boards[j]
                    counts[game[j], 0] = turn - since[j]
                    counts[game[j], 1] = fours[j]
                if started == games:
                    n -= 1
                    lanes[:, j] = lanes[:, n]
                    game[j], since[j] = game[n], since[n]
                    continue
                key = game_key(seed, first + U(started))
                boards[j], fours[j], words[j] = begin, U(0), key
                if begin == U(0):
                    boards[j], fours[j] = start_board(key, four, rows, cols)
                    words[j] = key + GOLDEN + GOLDEN
                own[j] = mix(key ^ PLAYER)
                masks[j] = legal(boards[j], rows, cols)
                game[j], since[j] = started, turn
                started += 1
            if n == 0:
                return
            turn += 1
            if choose_moves(masks, own, chosen, n):
                mend_choices(masks, own, chosen, n)
            turn_boards(boards, chosen, turned, n, rows, cols)
            slide_boards(boards, turned, chosen, across, down, n, rows, cols)
            turn_back(boards, turned, chosen, n, rows, cols)
            if spawn_tiles(turned, words, boards, fours, four[0], n, rows, cols):
                mend_spawns(turned, words, boards, fours, four, n, rows, cols)
            ended = find_moves(boards, masks, n, rows, cols)

    return play


@kernel("void(uint64[::1], uint64[:, ::1], uint64, uint64, int64[:, ::1])")
def summarise(last: Words, counts: Words, begin: U, spawned: U, out: Counts) -> None:
    """Score, moves and largest rank of each game, and whether two 32768s merged on the way.

    `spawned` is the number of tiles that spawned before the first move.
    """
    for i in range(last.size):
        moves, fours = np.int64(counts[i, 0]), np.int64(counts[i, 1])
        tiles = moves + np.int64(spawned)
        out[i, 0] = merged(last[i]) - merged(begin) - 4 * fours
        out[i, 1] = moves
        out[i, 2] = max_rank(last[i])
        out[i, 3] = age(last[i]) != age(begin) + 2 * tiles + 2 * fours


def random_games(
    rules: Rules,
    games: int,
    seed: int = 0,
    *,
    first: int = 0,
    start: Board | None = None,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Results:
    """Play whole games of the random player, which is uniform over the legal moves.

    Game number `first` + i depends on the rules, the seed and its own number alone, and is the
    game that `lab2048.game.Game` plays with the same moves. `start` replaces the two first tiles.
    `progress` is called with the number of games just finished, from this thread.

    >>> results = random_games(Rules(4, 4), 1000, seed=1)
    >>> int(results.max_tile.max())
    512
    """
    if games < 0 or first < 0:
        raise ValueError(f"games and first are at least 0, not {games} and {first}")
    seed = chance.checked_seed(seed)
    if start is not None:
        rules.check(start)
    _games_kernel(rules.rows, rules.cols)  # compiled once, before the threads all ask for it
    workers = threads or os.cpu_count() or 1
    size = max(1, min(16384, -(-games // (4 * workers))))
    out = np.zeros((games, 4), np.int64)

    def block(begin: int) -> int:
        part = out[begin : begin + size]
        _play_block(rules, seed, first + begin, start, part)
        return len(part)

    with ThreadPoolExecutor(workers) as pool:
        try:
            for done in as_completed([pool.submit(block, i) for i in range(0, games, size)]):
                finished = done.result()
                if progress is not None:
                    progress(finished)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return Results(out[:, 0], out[:, 1], np.left_shift(1, out[:, 2]))


def _play_block(rules: Rules, seed: int, first: int, start: Board | None, out: Counts) -> None:
    """Games first, first + 1, ... into the rows of `out`."""
    games = len(out)
    wide = start is not None and start.max_tile > 1 << 15
    if not wide:
        begin = U(start.packed if start is not None else 0)
        last, counts = np.empty(games, np.uint64), np.empty((games, 2), np.uint64)
        four = np.array(chance.four_threshold(rules.p4), np.uint64)
        across, down = table(rules.cols), table(rules.rows)
        play = _games_kernel(rules.rows, rules.cols)
        play(U(seed), U(first), begin, four, across, down, last, counts)
        summarise(last, counts, begin, U(0 if begin else 2), out)
    for i in range(games) if wide else np.flatnonzero(out[:, 3]).tolist():
        out[i] = _play_wide(rules, seed, first + i, start)


def _play_wide(
    rules: Rules, seed: int, index: int, start: Board | None
) -> tuple[int, int, int, bool]:
    """One game of the random player on boards without a largest tile."""
    game = Game(rules, seed, index=index, start=start)
    own = chance.player_key(game.key)
    while not game.over:
        game.play(random_player(game.board, chance.word(own, len(game.moves))))
    return game.score, len(game.moves), max(game.board.ranks), True


# -- one step of many boards -------------------------------------------------------------------

ILLEGAL = -1
"""Stands in place of the reward of a move that was not legal."""


@cache
def step_kernel(rows: int, cols: int) -> Callable[..., None]:
    """The kernel that makes one move on each of many boards of this size."""

    @kernel("void(uint64[:, ::1], int64[::1], uint64[::1], uint32[::1], uint32[::1], int64[::1])")
    def step(
        state: Words, actions: Counts, four: Words, across: Table, down: Table, rewards: Counts
    ) -> None:
        """Move and spawn on every board of `state`, whose rows are boards, words, legal moves.

        The reward is ILLEGAL, and the board as it was, where the move is not legal. Where it has
        the bit OVERFLOW the board is as it was too: the caller has to make that move.
        """
        scratch = np.zeros((5, LANES), np.uint64)
        before, chosen, turned, gained, fours = (
            scratch[0],
            scratch[1],
            scratch[2],
            scratch[3],
            scratch[4],
        )
        for begin in range(0, actions.size, LANES):
            end = min(begin + LANES, actions.size)
            n = end - begin
            boards = state[0][begin:end]
            words = state[1][begin:end]
            masks = state[2][begin:end]
            for j in range(n):
                before[j] = boards[j]
                chosen[j] = U(actions[begin + j])
            turn_boards(boards, chosen, turned, n, rows, cols)
            sum_rewards(boards, turned, chosen, across, down, gained, n, rows, cols)
            slide_boards(boards, turned, chosen, across, down, n, rows, cols)
            turn_back(boards, turned, chosen, n, rows, cols)
            if spawn_tiles(turned, words, boards, fours, four[0], n, rows, cols):
                mend_spawns(turned, words, boards, fours, four, n, rows, cols)
            for j in range(n):
                legal = (masks[j] >> chosen[j]) & U(1)
                fits = U(gained[j] < U(OVERFLOW))
                made = U(0) - (legal & fits)
                boards[j] = before[j] ^ ((before[j] ^ boards[j]) & made)
                words[j] -= GOLDEN & ~made
                rewards[begin + j] = np.int64(gained[j] | (legal - U(1)))  # all ones are -1
            find_moves(boards, masks, n, rows, cols)

    return step


@kernel("void(uint64[:, ::1], boolean[::1], uint64[::1], uint64[::1], uint64[::1], int64, int64)")
def restart(
    state: Words,
    which: NDArray[np.bool_],
    seeds: Words,
    games: Words,
    four: Words,
    rows: int,
    cols: int,
) -> None:
    """Begin game `games[j]` of `seeds[j]` on every board asked for."""
    for j in range(which.size):
        if which[j]:
            key = game_key(seeds[j], games[j])
            board, _ = start_board(key, four, rows, cols)
            state[0, j] = board
            state[1, j] = key + GOLDEN + GOLDEN
            state[2, j] = legal(board, rows, cols)


@kernel("void(uint64[:, ::1], uint8[:, ::1], int8[:, ::1])")
def observe(state: Words, ranks: NDArray[np.uint8], masks: NDArray[np.int8]) -> None:
    """The ranks of every board, cell by cell, and its legal moves as four 0s and 1s."""
    for j in range(state.shape[1]):
        for cell in range(ranks.shape[1]):
            ranks[j, cell] = rank_at(state[0, j], cell)
        for direction in range(4):
            masks[j, direction] = (state[2, j] >> U(direction)) & U(1)
