"""Numba types of arrays, named as in `arrays`, for signatures that are built from types.

A kernel that takes only scalars and arrays has a string as its signature. The type of a record
cannot be written in a string, so a kernel that takes one has a signature built from types.
"""

from __future__ import annotations

from numba import types

WORDS, WORD_ROWS = types.uint64[::1], types.uint64[:, ::1]
COUNTS, COUNT_ROWS = types.int64[::1], types.int64[:, ::1]
FLOATS, FLOAT_ROWS = types.float64[::1], types.float64[:, ::1]
SINGLES, SINGLE_ROWS = types.float32[::1], types.float32[:, ::1]
SLIDES = types.uint32[::1]
BYTE_ROWS = types.uint8[:, ::1]
