"""Sorted lists of keys: cut, merged, and found again by an index."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab2048.engine.jit import U, kernel
from lab2048.solver import keys as keys_module
from lab2048.solver.successors import BLOCK
from tests.solver.solving import needs_jit

key_lists = st.lists(
    st.lists(st.integers(1, 5000), max_size=60).map(sorted), min_size=1, max_size=5
)


@given(key_lists, st.integers(1, 6), st.sampled_from([0, 3, 7]))
def test_lists_are_cut_and_merged_to_their_union(lists, parts, shift):
    width = max(map(len, lists))
    rows, sizes = np.zeros((len(lists), width), np.uint64), np.array([*map(len, lists)])
    for row, keys in zip(rows, lists, strict=True):
        row[: len(keys)] = keys
    places = np.empty((parts + 1, len(lists)), np.int64)
    keys_module.cut(rows, sizes, U(shift), places)
    assert (places[-1] - places[0]).sum() == sizes.sum()
    union = []
    for part in range(parts):
        runs = places[part : part + 2]
        count = (runs[1] - runs[0]).sum()
        out, spare = np.empty(count, np.uint64), np.empty(count, np.uint64)
        size = keys_module.merge_runs(rows.reshape(-1), runs, out, spare)
        assert not union or not size or union[-1] >> shift < int(out[0]) >> shift
        union += out[:size].tolist()
    assert union == sorted({key for keys in lists for key in keys})


def test_parts_are_of_about_equal_size():
    keys = np.sort(np.random.default_rng(1).integers(1, 1 << 36, 100_000).astype(np.uint64))
    places = np.empty((5, 1), np.int64)
    keys_module.cut(keys.reshape(1, -1), np.array([len(keys)]), U(24), places)
    counts = np.diff(places[:, 0])
    assert counts.min() > 24_000 and counts.max() < 26_000


@needs_jit
@pytest.mark.parametrize("low_bits", [3, 10, 24])
def test_an_index_finds_every_key_and_no_other(low_bits):
    """With few low bits every region is full to the brim."""
    rng = np.random.default_rng(low_bits)
    tops = rng.integers(1, 4000, 300, np.uint64) << U(24)
    keys = np.unique(rng.choice(tops, 5000) | rng.integers(1, 1 << low_bits, 5000, np.uint64))
    values = rng.random(len(keys))
    index = keys_module.Index(9)
    half = keys_module.below(keys, len(keys), U(2000 << 24))
    lots = [keys[:half], keys[half:]]
    for lot, begin in zip(lots, index.share_out([len(lot) for lot in lots]), strict=True):
        keys_module.fill(
            lot, values[:half] if lot is lots[0] else values[half:], index.words, begin
        )
    wanted = rng.permutation(keys)
    found, lost = find_all(wanted, index.words)
    assert lost == 0 and (found == values[np.searchsorted(keys, wanted)]).all()
    absent = np.setdiff1d(keys + U(1 << 30), keys)
    assert find_all(absent, index.words)[1] == len(absent)


def find_all(keys, words):
    """What an index has for keys, and how many it does not have."""

    @kernel("int64(uint64[::1], uint64[::1], float64[::1], float64[::1], int64[::1])")
    def find_block(keys, words, floats, out, missed):
        return keys_module.find(keys, 0, len(keys), words, floats, out, missed, 1.0)

    out, missed, lost = np.empty(len(keys)), np.empty(BLOCK, np.int64), 0
    for start in range(0, len(keys), BLOCK):
        part = keys[start : start + BLOCK]
        floats = words.view(np.float64)
        lost += find_block(part, words, floats, out[start : start + BLOCK], missed)
    return out, lost
