"""The Numba types of arrays, by their names in `arrays`: for signatures that are no text.

A kernel that takes scalars and arrays alone has a text for a signature. One that takes a record,
whose type has no text, has one that is made of types.
"""

from __future__ import annotations

from numba import types

WORDS, WORD_ROWS = types.uint64[::1], types.uint64[:, ::1]
COUNTS, COUNT_ROWS = types.int64[::1], types.int64[:, ::1]
FLOATS, FLOAT_ROWS = types.float64[::1], types.float64[:, ::1]
SINGLES, SINGLE_ROWS = types.float32[::1], types.float32[:, ::1]
SLIDES = types.uint32[::1]
BYTE_ROWS = types.uint8[:, ::1]
