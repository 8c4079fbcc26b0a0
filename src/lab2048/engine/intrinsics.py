"""Processor instructions that Numba does not offer, as LLVM code for kernels.

With NUMBA_DISABLE_JIT=1, plain Python does the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from lab2048.engine.arrays import Counts, Singles, Words
from lab2048.engine.jit import IN_PYTHON, U


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The address of an array's element; the first two arguments are the array and the index."""
    kind = signature.args[0]
    view = context.make_array(kind)(context, builder, arguments[0])
    return cgutils.get_item_pointer(context, builder, kind, view, [arguments[1]])


def _fresh(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    pointer = _pointer(context, builder, signature, arguments)
    return builder.load_atomic(pointer, "acquire", 8)


def _match(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    four = ir.VectorType(ir.IntType(64), 4)
    pointer = _pointer(context, builder, signature, arguments)
    words = builder.load(builder.bitcast(pointer, four.as_pointer()), align=8)
    wanted = ir.Constant(four, ir.Undefined)
    for place in range(4):
        wanted = builder.insert_element(wanted, arguments[2], ir.IntType(32)(place))
    equal = builder.bitcast(builder.icmp_unsigned("==", words, wanted), ir.IntType(4))
    return builder.zext(equal, ir.IntType(64))


def _lowest(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.cttz(arguments[0], ir.IntType(1)(0))


def _prefetch(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    call = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    function = cgutils.get_or_insert_function(builder.module, call, "llvm.prefetch.p0")
    pointer = builder.bitcast(_pointer(context, builder, signature, arguments), byte)
    builder.call(function, [pointer, number(0), number(3), number(1)])  # to read, keep, data
    return context.get_dummy_value()


def _extract(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    word = ir.IntType(64)
    call = ir.FunctionType(word, [word, word])
    function = cgutils.get_or_insert_function(builder.module, call, "llvm.x86.bmi.pext.64")
    return builder.call(function, arguments)


def _has_extract() -> bool:
    """Whether the processor has a fast instruction that gathers bits (PEXT)."""
    if IN_PYTHON:
        return False
    from llvmlite import binding

    slow = ("znver1", "znver2", "bdver4")  # here it takes hundreds of cycles
    return bool(binding.get_host_cpu_features().get("bmi2")) and (
        binding.get_host_cpu_name() not in slow
    )


HAS_EXTRACT = _has_extract()


def _coherent(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    real, number = ir.FloatType(), ir.IntType(32)
    four, step = ir.VectorType(real, 4), arguments[2]
    pointer = _pointer(context, builder, signature, arguments)
    pointer = builder.bitcast(pointer, four.as_pointer())
    record = builder.load(pointer, align=4)
    change, distance = (builder.extract_element(record, number(at)) for at in (1, 2))
    size = builder.fneg(step)
    size = builder.select(builder.fcmp_ordered(">", step, real(0)), step, size)
    sum_size = builder.select(
        builder.fcmp_ordered(">", change, real(0)), change, builder.fneg(change)
    )
    fresh = builder.fcmp_ordered("==", distance, real(0))
    rate = builder.select(fresh, real(1), builder.fdiv(sum_size, distance))
    added = ir.Constant(four, [real(0), real(0), real(0), real(1)])
    for at, what in enumerate((builder.fmul(rate, step), step, size)):
        added = builder.insert_element(added, what, number(at))
    builder.store(builder.fadd(record, added), pointer, align=4)
    return context.get_dummy_value()


if IN_PYTHON:

    def load_fresh(array: Counts, place: int) -> int:
        """An element of an array, as other threads have left it."""
        return int(array[place])

    def match_four(words: Words, place: U, key: U) -> U:
        """Which of the four words from a place on equal a key: bit n for the n-th."""
        return U(sum(1 << n for n in range(4) if words[int(place) + n] == key))

    def lowest_bit(mask: U) -> U:
        """The index of the lowest set bit; the mask must not be 0."""
        return U((int(mask) & -int(mask)).bit_length() - 1)

    def prefetch(words: Words, place: U) -> None:
        """Do nothing; the compiled version loads the words at a place into the cache."""

    def extract_bits(word: U, mask: U) -> U:
        """The bits of a word that a mask selects, moved together."""
        places = [place for place in range(64) if int(mask) >> place & 1]
        return U(sum((int(word) >> place & 1) << k for k, place in enumerate(places)))

    def coherent_step(weights: Singles, at: U, step: np.float32) -> None:
        """Update a weight by temporal coherence; see the compiled version."""
        change, distance = weights[at + U(1)], weights[at + U(2)]
        rate = abs(change) / distance if distance != 0 else np.float32(1)
        weights[at : at + U(4)] += np.array([rate * step, step, abs(step), 1], np.float32)

else:

    @intrinsic  # type: ignore[untyped-decorator]
    def load_fresh(context: Any, array: Any, place: Any) -> Any:
        """An element of an array, as other threads have left it; a plain read may be stale."""
        return types.int64(array, place), _fresh

    @intrinsic  # type: ignore[untyped-decorator]
    def match_four(context: Any, words: Any, place: Any, key: Any) -> Any:
        """Which of the four words from a place on equal a key: bit n for the n-th."""
        return types.uint64(words, place, key), _match

    @intrinsic  # type: ignore[untyped-decorator]
    def lowest_bit(context: Any, mask: Any) -> Any:
        """The index of the lowest set bit; the mask must not be 0."""
        return types.uint64(mask), _lowest

    @intrinsic  # type: ignore[untyped-decorator]
    def prefetch(context: Any, words: Any, place: Any) -> Any:
        """Start loading the words at a place into the cache."""
        return types.void(words, place), _prefetch

    @intrinsic  # type: ignore[untyped-decorator]
    def coherent_step(context: Any, weights: Any, at: Any, step: Any) -> Any:
        """Update a weight by temporal coherence: all four of its numbers at once.

        They are the weight, the sum of its steps so far, the sum of their absolute values, and
        their number. The weight changes by the step times a rate: the absolute value of the first
        sum divided by the second, or 1 while the second is 0.
        """
        return types.void(weights, at, step), _coherent

    @intrinsic  # type: ignore[untyped-decorator]
    def extract_bits(context: Any, word: Any, mask: Any) -> Any:
        """The bits of a word that a mask selects, moved together; only if HAS_EXTRACT."""
        return types.uint64(word, mask), _extract
