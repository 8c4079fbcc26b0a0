"""N-tuple networks: the value of a board is a sum of weights looked up by parts of the board.

A *tuple* is a few cells of the board. The ranks in them are the index of a weight in the tuple's
own table. Every tuple is looked up on all images of the board, so symmetric boards share weights
and have the same value.

    V(s) = V0 + sum over images i of s, and over tuples t, of  W_t[ranks of i in the cells of t]

V0 is the value of every board before training. Each cell is one nibble of the index, so the table
of a tuple of n cells has 16^n weights, for tiles up to 32768. Larger tiles have no weights: players
see a `Board.stand_in` of a board with one, and in training two 32768s merge into one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import types

from lab2048.engine.array_types import SINGLES
from lab2048.engine.arrays import Singles, Words
from lab2048.engine.intrinsics import HAS_EXTRACT, extract_bits
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import ON_IMAGE, flip, mirror, transpose
from lab2048.formatting import nearest
from lab2048.game import Rules

Weights = Singles
"""The weights of all tables, concatenated; in training more numbers may follow each weight."""

LONGEST = 7
"""The largest number of cells of a tuple: a table of 8 would take 17 GB."""

NETWORKS = {
    "4x4": {
        "4x6": "012345 456789 012456 45689a",
        "5x6": "012345 456789 89abcd 012456 45689a",
        "8x6": "012456 456789 012345 234569 01259a 345678 134567 01489a",
        "5x4": "0123 4567 0145 1256 569a",
    },
    "3x3": {"3x6": "012345 012346 123457", "2x6": "012345 012346", "5x3": "012 345 013 134 124"},
    "4x3": {"4x6": "012345 345678 013467 01369a"},
    "5x2": {"3x6": "012345 234567 024689"},
}
"""Named networks by board; the first is the default."""


@dataclass(frozen=True)
class Network:
    """The tuples of a network on a board.

    >>> Network.of("4x6", Rules(4, 4))
    Network(rows=4, cols=4, tuples=('012345', '456789', '012456', '45689a'))
    """

    rows: int
    cols: int
    tuples: tuple[str, ...]
    """The cells of each tuple in hexadecimal, row by row from 0, in rising order."""

    @classmethod
    def of(cls, text: str, rules: Rules) -> Network:
        """Parse a network: its name, or its tuples as cells in hexadecimal, such as `0134 1245`."""
        named = named_networks(rules)
        if text in named:
            text = named[text]
        tuples = [check_tuple(each, rules) for each in re.split(r"[\s,]+", text.strip())]
        (each, times), *_ = Counter(tuples).most_common(1)
        if times > 1:
            raise ValueError(f"the tuple {each} is there twice")
        return cls(rules.rows, rules.cols, tuple(tuples))

    @property
    def name(self) -> str:
        """The name of the network if it has one, or its tuples."""
        text = " ".join(self.tuples)
        named = named_networks(Rules(self.rows, self.cols))
        return next((name for name, tuples in named.items() if tuples == text), text)

    @property
    def features(self) -> int:
        """The number of weights added up for the value of a board."""
        return len(self.tuples) * (8 if self.rows == self.cols else 4)

    @property
    def size(self) -> int:
        """The number of weights in all tables."""
        return sum(16 ** len(each) for each in self.tuples)

    @property
    def begins(self) -> Words:
        """The offset of each tuple's table."""
        sizes = [16 ** len(each) for each in self.tuples]
        return np.cumsum([0, *sizes[:-1]]).astype(np.uint64)

    @property
    def sides(self) -> int:
        """The number of orientations of images: 2 on square boards (transposed too), else 1."""
        return 2 if self.rows == self.cols else 1


def named_networks(rules: Rules) -> dict[str, str]:
    """The named networks of a board, the default first; where none is known, its `blocks`."""
    known = NETWORKS.get(rules.name, {})
    return {name: " ".join(map(_sorted, text.split())) for name, text in known.items()} or {
        "blocks": " ".join(blocks(rules))
    }


def blocks(rules: Rules) -> list[str]:
    """All 2x3 and 3x2 blocks of a board up to symmetry; all cells if it has at most 6."""
    if rules.cells <= 6:
        return ["".join(f"{cell:x}" for cell in range(rules.cells))]
    found: dict[tuple[int, ...], str] = {}
    for high, wide in ((2, 3), (3, 2)):
        for top in range(rules.rows - high + 1):
            for left in range(rules.cols - wide + 1):
                cells = [(r, c) for r in range(top, top + high) for c in range(left, left + wide)]
                images = _images(cells, rules)
                text = "".join(f"{cell:x}" for cell in _numbers(cells, rules))
                found.setdefault(min(images), text)
    return list(found.values())


def _images(cells: list[tuple[int, int]], rules: Rules) -> list[tuple[int, ...]]:
    """The images of cells under the symmetries of the board."""
    found = []
    for turned in range(2 if rules.rows == rules.cols else 1):
        for number in range(4):
            image = [(c, r) if turned else (r, c) for r, c in cells]
            if number & 1:
                image = [(r, rules.cols - 1 - c) for r, c in image]
            if number & 2:
                image = [(rules.rows - 1 - r, c) for r, c in image]
            found.append(_numbers(image, rules))
    return found


def _numbers(cells: list[tuple[int, int]], rules: Rules) -> tuple[int, ...]:
    """The numbers of cells, in rising order."""
    return tuple(sorted(r * rules.cols + c for r, c in cells))


def check_tuple(text: str, rules: Rules) -> str:
    """Return the cells of a tuple in rising order; raise a `ValueError` if it is invalid."""
    shown = text[:20]
    if not re.fullmatch(r"[0-9a-fA-F]+", text):
        named = nearest(shown, named_networks(rules))
        raise ValueError(
            f"{shown!r} is neither a network of {rules.name} ({named}) nor cells in hexadecimal"
        )
    for cell in text:
        if int(cell, 16) >= rules.cells:
            raise ValueError(
                f"the tuple {shown} has cell {cell}, and the cells of {rules.name} are 0 to "
                f"{rules.cells - 1:x}"
            )
        if text.count(cell) > 1:
            raise ValueError(f"the tuple {shown} has cell {cell} twice")
    if len(text) > LONGEST:
        raise ValueError(f"the tuple {shown} has {len(text)} cells; {LONGEST} is the most")
    return _sorted(text)


def _sorted(text: str) -> str:
    """Cells in rising order; their order decides only how weights are numbered."""
    return "".join(sorted(text.lower()))


# -- kernels -------------------------------------------------------------------------------------

Place = Callable[[U, int], U]
Value = Callable[[U, int, Weights], float]

WEIGHTS = SINGLES


class NetworkKernels(NamedTuple):
    """The kernels of a network, on which players and learning rules build."""

    network: Network
    stride: int
    """Numbers stored per weight."""
    by_move: bool
    """Whether each direction has its own tables."""
    place: Place
    value: Value


@cache
def network_kernels(
    network: Network, stride: int, by_move: bool, extract: bool = HAS_EXTRACT
) -> NetworkKernels:
    """The kernels of a network; `extract` says whether one instruction (PEXT) gathers an index."""
    place = extract_kernel(network, stride) if extract else shift_kernel(network, stride)
    value = value_kernel(network, stride, by_move, place)
    return NetworkKernels(network, stride, by_move, place, value)


def extract_kernel(network: Network, stride: int) -> Place:
    """The kernel that locates a weight, with one instruction for its index."""
    cells = np.array([sum(15 << 4 * int(c, 16) for c in t) for t in network.tuples], np.uint64)
    begins = network.begins

    @kernel("uint64(uint64, int64)", lean=True)
    def place(image: U, t: int) -> U:
        """Where the weight is that an image looks up in the table of a tuple."""
        return U((begins[t] + extract_bits(image, cells[t])) * U(stride))

    return place


def shift_kernel(network: Network, stride: int) -> Place:
    """The kernel that locates a weight by shifts: one per run of adjacent cells."""
    found = [_runs(each) for each in network.tuples]
    runs = max(map(len, found))
    cut = np.array([each + [(0, 0)] * (runs - len(each)) for each in found], np.uint64)
    shifts, masks = np.ascontiguousarray(cut[:, :, 0]), np.ascontiguousarray(cut[:, :, 1])
    begins = network.begins

    @kernel("uint64(uint64, int64)", lean=True)
    def place(image: U, t: int) -> U:
        """Where the weight is that an image looks up in the table of a tuple."""
        index = (image >> shifts[t, 0]) & masks[t, 0]
        for run in range(1, runs):
            index |= (image >> shifts[t, run]) & masks[t, run]
        return U((begins[t] + index) * U(stride))

    return place


def value_kernel(network: Network, stride: int, by_move: bool, place: Place) -> Value:
    """The kernel that adds up the weights of a board."""
    rows, cols, tuples = network.rows, network.cols, len(network.tuples)
    sides, size = network.sides, network.size

    @kernel(types.float64(types.uint64, types.int64, WEIGHTS), lean=True)
    def value(board: U, move: int, weights: Weights) -> float:
        """The sum of the weights of a board, from the tables of a move if each has its own.

        An image has the same sum whichever board it is an image of. The sums are added in float64,
        which is exact unless they differ by a factor of many millions; so their order does not
        matter, and all images of a board have the same value.
        """
        total = 0.0
        base = board
        for turned in range(sides):
            if turned:
                base = transpose(board, rows, cols)
            mirrored = mirror(base, rows, cols)
            for number in range(4):
                image = mirrored if number & 1 else base
                if number & 2:
                    image = flip(image, rows, cols)
                first = U(0)
                if by_move:
                    first = U(ON_IMAGE[4 * turned + number, move]) * U(size * stride)
                part = np.float32(0)
                for t in range(tuples):
                    part += weights[first + place(image, t)]
                total += np.float64(part)
        return total

    return value


def _runs(text: str) -> list[tuple[int, int]]:
    """The runs of adjacent cells of a tuple, each as a shift of the board and a mask."""
    cells = [int(cell, 16) for cell in text]
    found: list[tuple[int, int]] = []
    for at, cell in enumerate(cells):
        shift, nibble = 4 * (cell - at), 15 << 4 * at
        if found and found[-1][0] == shift:
            found[-1] = (shift, found[-1][1] | nibble)
        else:
            found.append((shift, nibble))
    return found


def new_weights(network: Network, stride: int = 1, by_move: bool = False) -> Weights:
    """Weights that are all 0; untouched ones take no memory."""
    try:
        return np.zeros(network.size * (4 if by_move else 1) * stride, np.float32)
    except MemoryError:
        raise ValueError(f"the weights of {network.name} do not fit into memory") from None
