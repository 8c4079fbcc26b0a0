"""Kernels for many boards at once: whole games of the random player, and one step of each board.

Boards are processed 64 at a time, in *lanes*. Every stage of a move is a short loop over all lanes,
without branches, which the compiler vectorises; unused lanes are computed too, and ignored. A rare
case (a random word that has to be replaced for the draw to be exactly uniform) is only detected in
the loop, and corrected after it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from lab2048.engine.arrays import Bytes, Counts, Flags, Floats, Masks, Slides, Words
from lab2048.engine.jit import U, inline, kernel
from lab2048.engine.packed import (
    CHOICES,
    GOLDEN,
    LOW_HALF,
    PLAYER,
    age,
    bounded,
    count,
    empty_cells,
    game_key,
    legal,
    max_rank,
    mix,
    nth_move,
    potential,
    rank_at,
    select,
    transpose,
)
from lab2048.engine.slides import OVERFLOW, reward_rows, slide_rows
from lab2048.engine.spawns import spawn, start_board, word_after_start

LANES = 64
ILLEGAL = -1
"""The reward reported for an illegal move."""

PlayGames = Callable[[Words, Words, Words, Slides, Slides, Words, Words], None]
Step = Callable[[Words, Counts, Words, Slides, Slides, Counts], None]


# -- stages: each does one thing in every lane --------------------------------------------------


@inline("uint64(uint64[::1], uint64[::1], uint64[::1])")
def choose_moves(masks: Words, words: Words, chosen: Words) -> U:
    """Draw a uniformly random legal move per lane; not 0 if some word has to be replaced."""
    rare = U(0)
    for j in range(LANES):
        words[j] += GOLDEN
        product = (mix(words[j]) >> U(32)) * CHOICES[masks[j]]
        chosen[j] = nth_move(masks[j], product >> U(32))
        rare |= U((product & LOW_HALF) < U(4))
    return rare


@inline("void(uint64[::1], uint64[::1], uint64[::1])")
def mend_choices(masks: Words, words: Words, chosen: Words) -> None:
    """Draw the moves again, replacing words where necessary."""
    for j in range(LANES):
        k, _ = bounded(mix(words[j]), CHOICES[masks[j]])
        chosen[j] = nth_move(masks[j], k)


@inline("void(uint64[::1], uint64[::1], uint64[::1], int64, int64)")
def turn_boards(boards: Words, chosen: Words, turned: Words, rows: int, cols: int) -> None:
    """Transpose the boards, so that columns are rows; squares only where the move is vertical."""
    for j in range(LANES):
        turned[j] = transpose(boards[j], rows, cols)
        if rows == cols:
            horizontal = U(0) - (chosen[j] & U(1))
            turned[j] ^= (turned[j] ^ boards[j]) & horizontal


@inline("void(uint64[::1], uint64[::1], uint64[::1], uint32[::1], uint32[::1], int64, int64)")
def slide_boards(
    boards: Words, turned: Words, chosen: Words, across: Slides, down: Slides, rows: int, cols: int
) -> None:
    """Slide the rows of `turned`; on rectangles also those of `boards`, for horizontal moves."""
    for j in range(LANES):
        side = ((chosen[j] + U(1)) >> U(1)) & U(1)
        turned[j] = slide_rows(turned[j], side, down, cols, rows)
        if rows != cols:
            boards[j] = slide_rows(boards[j], side, across, rows, cols)


@inline(
    "void(uint64[::1], uint64[::1], uint64[::1], uint32[::1], uint32[::1], uint64[::1], "
    "int64, int64)"
)
def sum_rewards(
    boards: Words,
    turned: Words,
    chosen: Words,
    across: Slides,
    down: Slides,
    gained: Words,
    rows: int,
    cols: int,
) -> None:
    """Write the reward per lane, from turned boards before they slide; see `slides.OVERFLOW`."""
    for j in range(LANES):
        gained[j] = reward_rows(turned[j], down, cols, rows)
        if rows != cols:
            horizontal = U(0) - (chosen[j] & U(1))
            straight = reward_rows(boards[j], across, rows, cols)
            gained[j] ^= (gained[j] ^ straight) & horizontal


@inline("void(uint64[::1], uint64[::1], uint64[::1], int64, int64)")
def turn_back(boards: Words, turned: Words, chosen: Words, rows: int, cols: int) -> None:
    """Write the afterstates to `turned`, from the slid boards."""
    for j in range(LANES):
        horizontal = U(0) - (chosen[j] & U(1))
        straight = turned[j] if rows == cols else boards[j]
        back = transpose(turned[j], cols, rows)
        turned[j] = back ^ ((back ^ straight) & horizontal)


@inline("uint64(uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint64, int64, int64)")
def spawn_tiles(
    after: Words, words: Words, boards: Words, fours: Words, threshold: U, rows: int, cols: int
) -> U:
    """`spawns.spawn` in each lane, without a branch; not 0 if some word has to be replaced.

    For a board that is full, or empty with 16 cells, the result is meaningless.
    """
    rare = U(0)
    for j in range(LANES):
        words[j] += GOLDEN
        word = mix(words[j])
        empty = empty_cells(after[j], rows, cols)
        product = (word >> U(32)) * count(empty)
        low = word & LOW_HALF
        four = U(low < threshold)
        cell = select(empty, product >> U(32)) & U(15)
        boards[j] = after[j] | ((U(1) + four) << (cell << U(2)))
        fours[j] += four
        close = U((product & LOW_HALF) < U(16)) & U(empty != U(0))
        rare |= close | U(low == threshold)
    return rare


@inline("void(uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], int64, int64)")
def mend_spawns(
    after: Words, words: Words, boards: Words, fours: Words, four: Words, rows: int, cols: int
) -> None:
    """Draw the spawns again, replacing words where necessary."""
    for j in range(LANES):
        if empty_cells(after[j], rows, cols):
            word = mix(words[j])
            boards[j], rank = spawn(after[j], word, four, rows, cols)
            fours[j] += (rank - U(1)) - U((word & LOW_HALF) < four[0])


@inline("uint64(uint64[::1], uint64[::1], int64, int64)")
def find_moves(boards: Words, masks: Words, rows: int, cols: int) -> U:
    """Write the legal moves per lane; not 0 if some board has none."""
    ended = U(0)
    for j in range(LANES):
        masks[j] = legal(boards[j], rows, cols)
        ended |= U(masks[j] == U(0))
    return ended


# -- whole games -------------------------------------------------------------------------------

# The rows of `lanes`, one column per lane; the last two are the game's number and first turn.
BOARD, MASK, CHOSEN, TURNED, WORD, OWN, FOURS, GAME, SINCE = range(9)


@inline("void(uint64[:, ::1], int64, uint64, uint64, uint64[::1], int64, int64)")
def begin_game(lanes: Words, j: int, key: U, begin: U, four: Words, rows: int, cols: int) -> None:
    """Start the game `key` in a lane, from the board `begin` or, if that is 0, with two spawns."""
    lanes[BOARD, j], lanes[FOURS, j], lanes[WORD, j] = begin, U(0), key
    if begin == U(0):
        lanes[BOARD, j], lanes[FOURS, j] = start_board(key, four, rows, cols)
        lanes[WORD, j] = word_after_start(key)
    lanes[OWN, j] = mix(key ^ PLAYER)
    lanes[MASK, j] = legal(lanes[BOARD, j], rows, cols)


@inline("void(uint64[:, ::1], int64, uint64, uint64[::1], uint64[:, ::1])")
def end_game(lanes: Words, j: int, turn: U, last: Words, counts: Words) -> None:
    """Record the game of a lane, if it had one: its last board, number of moves and spawned 4s."""
    game = lanes[GAME, j]
    if game != U(last.size):
        last[game] = lanes[BOARD, j]
        counts[game, 0] = turn - lanes[SINCE, j]
        counts[game, 1] = lanes[FOURS, j]


@cache
def games_kernel(rows: int, cols: int) -> PlayGames:
    """The kernel that plays whole random games on this board."""

    @kernel(
        "void(uint64[::1], uint64[::1], uint64[::1], uint32[::1], uint32[::1], uint64[::1], "
        "uint64[:, ::1])"
    )
    def play(
        keys: Words,
        begins: Words,
        four: Words,
        across: Slides,
        down: Slides,
        last: Words,
        counts: Words,
    ) -> None:
        """Play the games with these keys; write the last board, number of moves and spawned 4s.

        `begins` has one board per game, or one for all; 0 stands for two spawns.
        """
        n = min(LANES, last.size)  # lanes in use
        started = turn = U(0)
        nothing = U(last.size)  # marks a lane without a game
        lanes = np.zeros((9, LANES), np.uint64)
        lanes[GAME] = nothing
        boards, masks, chosen, turned = lanes[BOARD], lanes[MASK], lanes[CHOSEN], lanes[TURNED]
        words, own, fours = lanes[WORD], lanes[OWN], lanes[FOURS]
        ended = U(1)
        while True:
            j = 0 if ended else n
            while j < n:  # replace each game that has ended by the next, or by the last lane
                if masks[j]:
                    j += 1
                    continue
                end_game(lanes, j, turn, last, counts)
                if started == nothing:
                    n -= 1
                    lanes[:, j] = lanes[:, n]
                    continue
                begin = begins[min(started, U(begins.size - 1))]
                begin_game(lanes, j, keys[started], begin, four, rows, cols)
                lanes[GAME, j], lanes[SINCE, j] = started, turn
                started += U(1)
            if n == 0:
                return
            turn += U(1)
            if choose_moves(masks, own, chosen):
                mend_choices(masks, own, chosen)
            turn_boards(boards, chosen, turned, rows, cols)
            slide_boards(boards, turned, chosen, across, down, rows, cols)
            turn_back(boards, turned, chosen, rows, cols)
            if spawn_tiles(turned, words, boards, fours, four[0], rows, cols):
                mend_spawns(turned, words, boards, fours, four, rows, cols)
            ended = find_moves(boards, masks, rows, cols)

    return play


@kernel("void(uint64, uint64, uint64[::1])")
def game_keys(seed: U, first: U, keys: Words) -> None:
    """Write the keys of the games first, first + 1, ... of a seed."""
    for i in range(len(keys)):
        keys[i] = game_key(seed, first + U(i))


@kernel("void(uint64[::1], uint64[:, ::1], uint64, uint64, int64[:, ::1])")
def summarise(last: Words, counts: Words, begin: U, spawned: U, out: Counts) -> None:
    """Write score, moves and largest rank of each game, and whether two 32768s merged in it.

    `spawned` is the number of tiles that spawned before the first move.
    """
    for i in range(last.size):
        moves, fours = np.int64(counts[i, 0]), np.int64(counts[i, 1])
        tiles = moves + np.int64(spawned)
        out[i, 0] = potential(last[i], 16) - potential(begin, 16) - 4 * fours
        out[i, 1] = moves
        out[i, 2] = max_rank(last[i])
        out[i, 3] = age(last[i]) != age(begin) + 2 * tiles + 2 * fours


# -- one step of many boards -------------------------------------------------------------------


@inline("void(uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1])")
def undo_illegal(
    before: Words, boards: Words, words: Words, masks: Words, chosen: Words, gained: Words
) -> None:
    """Restore lanes whose move was illegal or overflowed; the former have the reward ILLEGAL."""
    for j in range(LANES):
        legal = (masks[j] >> chosen[j]) & U(1)
        fits = U(gained[j] < U(OVERFLOW))
        made = U(0) - (legal & fits)
        boards[j] = before[j] ^ ((before[j] ^ boards[j]) & made)
        words[j] -= GOLDEN & ~made
        gained[j] |= legal - U(1)  # all ones, which is -1, if it was illegal


@cache
def step_kernel(rows: int, cols: int) -> Step:
    """The kernel that makes one move on each of many boards of this size."""

    @kernel("void(uint64[:, ::1], int64[::1], uint64[::1], uint32[::1], uint32[::1], int64[::1])")
    def step(
        state: Words, actions: Counts, four: Words, across: Slides, down: Slides, rewards: Counts
    ) -> None:
        """Move and spawn on every board of `state`, whose rows are boards, words, legal moves.

        An illegal move has the reward ILLEGAL and changes nothing. A reward with the bit OVERFLOW
        leaves the board unchanged as well: the caller has to make that move.
        """
        lanes = np.zeros((8, LANES), np.uint64)
        boards, words, masks, before = lanes[0], lanes[1], lanes[2], lanes[3]
        chosen, turned, gained, fours = lanes[4], lanes[5], lanes[6], lanes[7]
        for begin in range(0, actions.size, LANES):
            n = min(LANES, actions.size - begin)
            lanes[:3, :n] = state[:, begin : begin + n]
            for j in range(n):
                before[j] = boards[j]
                chosen[j] = U(actions[begin + j])
            turn_boards(boards, chosen, turned, rows, cols)
            sum_rewards(boards, turned, chosen, across, down, gained, rows, cols)
            slide_boards(boards, turned, chosen, across, down, rows, cols)
            turn_back(boards, turned, chosen, rows, cols)
            if spawn_tiles(turned, words, boards, fours, four[0], rows, cols):
                mend_spawns(turned, words, boards, fours, four, rows, cols)
            undo_illegal(before, boards, words, masks, chosen, gained)
            find_moves(boards, masks, rows, cols)
            state[:, begin : begin + n] = lanes[:3, :n]
            for j in range(n):
                rewards[begin + j] = np.int64(gained[j])

    return step


@inline("UniTuple(uint64, 3)(uint64, uint64[::1], int64, int64)")
def first_state(key: U, four: Words, rows: int, cols: int) -> tuple[U, U, U]:
    """The start of the game `key` as a column of `state` in `step`: board, word, legal moves."""
    board, _ = start_board(key, four, rows, cols)
    return board, word_after_start(key), legal(board, rows, cols)


@kernel("void(uint64[:, ::1], boolean[::1], uint64[::1], uint64[::1], uint64[::1], int64, int64)")
def restart(
    state: Words,
    which: Flags,
    seeds: Words,
    games: Words,
    four: Words,
    rows: int,
    cols: int,
) -> None:
    """Start game `games[j]` of seed `seeds[j]` on every board j in `which`."""
    for j in range(which.size):
        if which[j]:
            key = game_key(seeds[j], games[j])
            state[0, j], state[1, j], state[2, j] = first_state(key, four, rows, cols)


@kernel("void(int64[::1], int64[:, ::1], float64[::1], boolean[::1])")
def tally(
    rewards: Counts,
    games: Counts,
    gained: Floats,
    illegal: Flags,
) -> None:
    """Add the rewards of a step to the scores, and count each game's illegal moves in a row."""
    for j in range(len(rewards)):
        reward = max(rewards[j], 0)
        illegal[j] = rewards[j] < 0  # ILLEGAL
        gained[j] = reward
        games[0, j] += reward
        games[1, j] = (games[1, j] + 1) * illegal[j]


@kernel("void(uint64[:, ::1], uint8[:, ::1], int8[:, ::1], int64[::1])")
def observe(state: Words, ranks: Bytes, masks: Masks, tiles: Counts) -> None:
    """Write the ranks of every board, its legal moves as four 0s and 1s, and its largest tile."""
    for j in range(state.shape[1]):
        largest = U(0)
        for cell in range(ranks.shape[1]):
            rank = rank_at(state[0, j], cell)
            ranks[j, cell] = rank
            largest = max(largest, rank)
        tiles[j] = U(1) << largest
        for direction in range(4):
            masks[j, direction] = (state[2, j] >> U(direction)) & U(1)


@kernel("void(uint64[:, ::1], uint64, uint64[::1], uint64[::1], int64, int64)")
def begin_games(state: Words, seed: U, games: Words, four: Words, rows: int, cols: int) -> None:
    """Start games of a seed: write boards, spawn words, legal moves and the players' own words."""
    for j in range(len(games)):
        key = game_key(seed, games[j])
        state[0, j], state[1, j], state[2, j] = first_state(key, four, rows, cols)
        state[3, j] = mix(key ^ PLAYER)


@kernel("void(uint64[::1], uint64[::1])")
def next_words(own: Words, words: Words) -> None:
    """Advance every player's own stream and write its next word."""
    for j in range(len(own)):
        own[j] += GOLDEN
        words[j] = mix(own[j])
