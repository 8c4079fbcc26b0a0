"""Many keys at once: remove duplicates, merge, and look up the value of a key.

An *index* finds values by key. It is one array of words, viewed both as uint64 and as float64, in
lines of eight words, each of them a cache line:

    line 0              empty; but word 4 is `shift`
    REGIONS / 8 lines   the heads of the regions: where the region's lines begin, and how many
    the others          the lines of the regions: four keys (0 where there are fewer), four values

Keys that differ only in their `shift` low bits share a region. So keys that are neighbours when
sorted stay close together in the caches, and threads that fill different regions do not interfere.
Inside a region a key lies in the line that its hash gives or, if that is full, in the first line
after it that has room; the first line follows the last, and there is always room.

NumPy sorts the keys. The rest is written here: on uint64, `np.unique` is 17 times slower than
sorting and dropping equal neighbours, and Numba's typed dictionary can neither be filled by several
threads nor be laid out by cache lines.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab2048.engine.arrays import Counts, Floats, Words
from lab2048.engine.intrinsics import lowest_bit, match_four, prefetch
from lab2048.engine.jit import U, fragment, kernel
from lab2048.engine.packed import GOLDEN, LOW_HALF
from lab2048.solver.successors import BLOCK, WIN

SIEVE_BITS = 16
SIEVE = 1 << SIEVE_BITS
"""Keys that a sieve remembers: half a megabyte, which stays in the cache of a core."""
LINE = 8
"""Words per line: a cache line holds four keys and their values."""
REGION_BITS = 12
REGIONS = 1 << REGION_BITS
FIRST = LINE + REGIONS
"""The first word of the regions' lines."""


# -- sets ----------------------------------------------------------------------------------------


@fragment
def sift(keys: Words, size: int, seen: Words, out: Words) -> int:
    """Copy keys, leaving out most duplicates and every `WIN`; return the number copied.

    `seen` remembers one key per hash; it has SIEVE places. `out` may be `keys`.
    """
    left = 0
    for i in range(U(size)):
        key = keys[i]
        place = (key * GOLDEN) >> U(64 - SIEVE_BITS)
        out[left] = key
        left += int((seen[place] != key) & (key != WIN))
        seen[place] = key
    return left


@kernel("int64(uint64[::1], int64, uint64)")
def below(keys: Words, size: int, bound: U) -> int:
    """Return the number of keys below a bound among the first `size`, which are sorted."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


def region_shift(cells: int) -> U:
    """The number of low bits of a key that do not determine its region of an index."""
    return U(max(0, 4 * cells - REGION_BITS))


@kernel("void(uint64[:, ::1], int64[::1], uint64, int64[:, ::1])")
def cut(lists: Words, sizes: Counts, shift: U, places: Counts) -> None:
    """Find where to cut sorted lists into parts of nearly equal size.

    Of each list, part p has the keys from places[p] up to, but not including, places[p + 1]; places
    are counted from the first key of the first list. No region of an index is cut in two.
    """
    parts = len(places) - 1
    total = sizes.sum()
    for part in range(parts + 1):
        low, high = U(0), U(REGIONS)
        while low < high:
            middle = (low + high) >> U(1)
            before = 0
            for row in range(len(sizes)):
                before += below(lists[row], sizes[row], middle << shift)
            if before * parts < total * part:
                low = middle + U(1)
            else:
                high = middle
        for row in range(len(sizes)):
            place = sizes[row] if part == parts else below(lists[row], sizes[row], low << shift)
            places[part, row] = row * lists.shape[1] + place


@fragment
def merge(keys: Words, i: U, i_end: U, j: U, j_end: U, out: Words, found: U) -> U:
    """Append the union of keys[i:i_end] and keys[j:j_end], both sorted; return where it ends.

    Either may have repeated keys; the union has none.
    """
    last = U(0)  # which is no key
    while i < i_end and j < j_end:
        x, y = keys[i], keys[j]
        last, before = min(x, y), last
        out[found] = last
        found += U(last != before)
        i += U(x <= y)
        j += U(y <= x)
    if j < j_end:
        i, i_end = j, j_end
    while i < i_end:
        last, before = keys[i], last
        out[found] = last
        found += U(last != before)
        i += U(1)
    return found


@kernel("int64(uint64[::1], int64[:, ::1], uint64[::1], uint64[::1])")
def merge_runs(flat: Words, places: Counts, out: Words, spare: Words) -> int:
    """Merge sorted runs, dropping duplicates; return the number of keys written.

    Run r is flat[places[0, r]:places[1, r]]. `out` and `spare` have room for all keys. Runs are
    merged in pairs, and the results again until one is left.
    """
    runs = places.shape[1]
    begins, ends = np.empty(runs + 1, np.uint64), np.empty(runs + 1, np.uint64)
    for run in range(runs):
        begins[run], ends[run] = places[0, run], places[1, run]
    found = U(0)
    while True:
        begins[runs] = ends[runs] = U(0)  # an odd run is merged with an empty one
        found = U(0)
        for run in range(0, runs, 2):
            start = found
            found = merge(flat, begins[run], ends[run], begins[run + 1], ends[run + 1], out, found)
            begins[run >> 1], ends[run >> 1] = start, found
        runs = (runs + 1) >> 1
        if runs <= 1:
            return int(found)
        spare[: int(found)] = out[: int(found)]
        flat = spare


# -- indexes -------------------------------------------------------------------------------------


def lines_for(keys: int) -> int:
    """The number of lines that suffice for the regions of any `keys` keys."""
    return min(keys, REGIONS) + keys // 2


class Index:
    """The memory of an index, reused from layer to layer."""

    def __init__(self, cells: int) -> None:
        self.shift = region_shift(cells)
        self.words = np.zeros(0, np.uint64)
        self.reserve(0)

    def reserve(self, lines: int) -> None:
        """Clear the index and make room for `lines` lines of regions."""
        size = FIRST + LINE * lines
        if len(self.words) < size:
            room = np.empty(size * 5 // 4 + LINE, np.uint64)
            self.words = room[-(room.ctypes.data // 8) % LINE :]
        self.words[:FIRST] = 0
        self.words[4] = self.shift

    def share_out(self, counts: Sequence[int]) -> list[U]:
        """Make room for several lots of keys; return the word where each begins."""
        lines = [lines_for(count) for count in counts]
        self.reserve(sum(lines))
        return [U(FIRST + LINE * sum(lines[:lot])) for lot in range(len(lines))]


@kernel("uint64(uint64[::1], uint64[::1], uint64)")
def lay_out(keys: Words, words: Words, begin: U) -> U:
    """Give every region of sorted keys its lines, from word `begin` on; return where they end."""
    shift = words[4]
    first = U(0)
    for i in range(U(1), U(len(keys)) + U(1)):
        region = keys[first] >> shift
        if i == U(len(keys)) or keys[i] >> shift != region:
            lines = U(1) + ((i - first) >> U(1))
            words[U(LINE) + region] = (begin << U(32)) | lines
            begin += U(LINE) * lines
            first = U(i)
    return begin


@fragment
def head_of(key: U, words: Words) -> U:
    """The head of a key's region: its first word (high half) and number of lines (low half)."""
    region = (key >> words[4]) & U(REGIONS - 1)  # a `WIN` is no board: keep it in range
    return U(words[U(LINE) + region])


@fragment
def line_of(key: U, head: U) -> U:
    """The first word of the line in which a key is looked for first."""
    place = (((key * GOLDEN) >> U(32)) * (head & LOW_HALF)) >> U(32)
    return (head >> U(32)) + U(LINE) * place


@fragment
def line_after(line: U, head: U) -> U:
    """The line to look in next."""
    line += U(LINE)
    end = (head >> U(32)) + U(LINE) * (head & LOW_HALF)
    return head >> U(32) if line == end else line


@fragment
def keys_in(line: U, words: Words) -> U:
    """The number of keys in a line; they come before the free places."""
    return lowest_bit(match_four(words, line, U(0)) | U(16))


@kernel("void(uint64[::1], float64[::1], uint64[::1], uint64)")
def fill(keys: Words, values: Floats, words: Words, begin: U) -> None:
    """Put sorted keys and their values into an index, from the word `begin` on.

    Their regions must hold no other keys. Of each block, first the keys whose own line has room are
    stored, without branches, then the others. Until a line is full, the word of its last value
    holds the number of its keys: comparing all four would have to wait for the key just written.
    """
    words[begin : lay_out(keys, words, begin)] = U(0)
    floats = words.view(np.float64)
    later, lines = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    for start in range(U(0), U(len(keys)), U(BLOCK)):
        size, waiting = min(U(BLOCK), U(len(keys)) - start), 0
        for i in range(size):
            lines[i] = line_of(keys[start + i], head_of(keys[start + i], words))
        for i in range(size):
            used = U(4) if words[lines[i] + U(3)] != U(0) else words[lines[i] + U(7)]
            place = lines[i] + min(used, U(3))
            fits = used < U(4)
            words[lines[i] + U(7)] = used + U(1) if fits else words[lines[i] + U(7)]
            words[place] = keys[start + i] if fits else words[place]
            floats[place + U(4)] = values[start + i] if fits else floats[place + U(4)]
            later[waiting] = start + i
            waiting += int(not fits)
        for w in range(waiting):
            head = head_of(keys[later[w]], words)
            line = line_of(keys[later[w]], head)
            while keys_in(line, words) == U(4):
                line = line_after(line, head)
            place = line + keys_in(line, words)
            words[line + U(7)] = keys_in(line, words) + U(1)
            words[place] = keys[later[w]]
            floats[place + U(4)] = values[later[w]]


@fragment
def find(
    keys: Words,
    start: int,
    size: int,
    words: Words,
    floats: Floats,
    out: Floats,
    missed: Counts,
    won: float,
) -> int:
    """Write the values of keys[start : start + size], at most `BLOCK`; return how many are missing.

    First prefetch the line of each key, then look in these lines without branches, then look for
    the remaining keys in the lines that follow. A `WIN` is worth `won`.
    """
    lines = np.empty(BLOCK, np.uint64)
    for i in range(U(size)):
        key = keys[U(start) + i]
        lines[i] = line_of(key, head_of(key, words))
        prefetch(words, lines[i])
    missing = 0
    for i in range(U(size)):
        match = match_four(words, lines[i], keys[U(start) + i])
        out[i] = floats[lines[i] + U(4) + (lowest_bit(match | U(8)) & U(3))]
        missed[missing] = i
        missing += int(match == U(0))
    lost = 0
    for m in range(missing):
        key = keys[start + missed[m]]
        if key == WIN:
            out[missed[m]] = won
            continue
        head, line = head_of(key, words), lines[missed[m]]
        match = U(0)
        while match == U(0) and keys_in(line, words) == U(4):
            line = line_after(line, head)
            match = match_four(words, line, key)
        lost += int(match == U(0))
        out[missed[m]] = floats[line + U(4) + (lowest_bit(match | U(8)) & U(3))]
    return lost
