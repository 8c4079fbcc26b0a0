"""Randomness as plain arithmetic: seeds, words, and the draws made from a word.

A *stream* is SplitMix64 read as a function: word number t of the stream with key k is
`mix(k + (t + 1) * GOLDEN)`. Nothing is stored, so any thread can compute any word at any time.
NumPy's generators have a state instead, and do not promise the same draws in every version.

    seed, game index  -> the game's key            game_key
    the game's key    -> the player's key          player_key
    game key,   t     -> spawn number t            (0 and 1 are the two tiles of the start)
    player key, t     -> the random player's move number t

So the spawns of a game depend on its seed and on the moves made, and never on how much
randomness a player used. The functions here work on Python integers and need no Numba;
`lab2048.engine.packed` has them as kernels, and tests check that both agree.
"""

from __future__ import annotations

from lab2048.game.notation import short, whole

MASK64 = 0xFFFF_FFFF_FFFF_FFFF
GOLDEN = 0x9E37_79B9_7F4A_7C15
MIX1 = 0xBF58_476D_1CE4_E5B9
MIX2 = 0x94D0_49BB_1331_11EB
PLAYER = 0x6C61_6232_3034_3821
"""Separates the player's stream from the game's (`lab2048!` in ASCII)."""


def mix(z: int) -> int:
    """SplitMix64's finaliser, a bijection of the 64-bit words."""
    z = ((z ^ (z >> 30)) * MIX1) & MASK64
    z = ((z ^ (z >> 27)) * MIX2) & MASK64
    return z ^ (z >> 31)


def word(key: int, t: int) -> int:
    """Word number `t` of the stream `key`."""
    return mix((key + (t + 1) * GOLDEN) & MASK64)


def game_key(seed: int, index: int = 0) -> int:
    """The key of game number `index` of the run with this seed."""
    return word(mix(seed), index)


def player_key(key: int) -> int:
    """The key of the player's own stream in the game `key`."""
    return mix(key ^ PLAYER)


def again(w: int) -> int:
    """The word that follows `w`, for when one is not enough."""
    return mix((w + GOLDEN) & MASK64)


def bounded(w: int, n: int) -> tuple[int, int]:
    """A number below `n` (at most 2**32) and the word that gave it, exactly uniform (Lemire 2019).

    The upper half of the word times n has the number in its upper half; the few words that would
    favour some numbers, recognised by the product's lower half, are replaced.
    """
    while True:
        product = (w >> 32) * n
        if (product & 0xFFFF_FFFF) >= (1 << 32) % n:
            return product >> 32, w
        w = again(w)


def checked_seed(seed: object, name: str = "a seed") -> int:
    """The seed (or another 64-bit word) as an integer, or a `ValueError`."""
    value = whole(seed)
    if value is None or not 0 <= value <= MASK64:
        raise ValueError(f"{name} is a whole number from 0 to 2**64 - 1, not {short(seed)}")
    return value
