"""`lab2048.engine.intrinsics`: what the processor does, and the same in Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab2048.engine.intrinsics import (
    HAS_EXTRACT,
    coherent_step,
    extract_bits,
    load_fresh,
    lowest_bit,
    match_four,
    prefetch,
)
from lab2048.engine.jit import U, kernel
from tests.conftest import WITH_JIT

words = st.integers(0, 2**64 - 1)


@kernel("uint64(uint64)")
def lowest(mask):
    return lowest_bit(mask)


@kernel("uint64(uint64[::1], uint64, uint64)")
def match(array, place, key):
    prefetch(array, place)
    return match_four(array, place, key)


@kernel("int64(int64[::1], int64)")
def load(array, place):
    return load_fresh(array, place)


@kernel("void(float32[::1], uint64, float32)")
def step(weights, at, size):
    coherent_step(weights, at, size)


@given(st.integers(0, 63), words)
def test_the_lowest_bit(bit, above):
    mask = (above << bit | 1 << bit) & 2**64 - 1
    assert int(lowest(U(mask))) == bit


@given(st.lists(st.integers(0, 2), min_size=6, max_size=6), st.integers(0, 2))
def test_four_words_are_compared_with_one(array, key):
    found = int(match(np.array(array, np.uint64), U(2), U(key)))
    assert [found >> n & 1 for n in range(4)] == [int(each == key) for each in array[2:]]


def test_a_number_is_loaded():
    assert [load(np.array([5, -7]), place) for place in (0, 1)] == [5, -7]


@pytest.mark.skipif(WITH_JIT and not HAS_EXTRACT, reason="this processor has no such instruction")
def test_bits_are_gathered():
    @kernel("uint64(uint64, uint64)")
    def gather(word, mask):
        return extract_bits(word, mask)

    @given(words, words)
    def check(word, mask):
        bits = [word >> place & 1 for place in range(64) if mask >> place & 1]
        assert int(gather(U(word), U(mask))) == sum(bit << k for k, bit in enumerate(bits))

    check()


def test_a_weight_takes_as_much_of_a_step_as_its_steps_agree():
    weights = np.zeros(12, np.float32)
    for size in (2.0, -1.0, 0.5):
        step(weights, U(4), np.float32(size))
    # the first step whole; then |2| / 2 of -1, and |1| / 3 of 0.5
    assert weights[4:8] == pytest.approx([2 - 1 + 0.5 / 3, 1.5, 3.5, 3])
    assert not weights[:4].any() and not weights[8:].any()
