"""The checksum of a whole from the checksums of its parts.

Python's zlib module has a function for this (`crc32_combine`) from 3.15 on only.
"""

from __future__ import annotations

from collections.abc import Iterable

POLYNOMIAL = 0xEDB88320
"""The polynomial of CRC-32; a word's highest bit is the coefficient of x^0, its lowest of x^31."""
ONE, X = 1 << 31, 1 << 30


def _product(a: int, b: int) -> int:
    """The product of two polynomials, modulo that of CRC-32."""
    product = 0
    for power in range(32):
        if a & ONE >> power:
            product ^= b
        b = b >> 1 ^ (POLYNOMIAL if b & 1 else 0)
    return product


def _power(exponent: int) -> int:
    """x to a power."""
    result, base = ONE, X
    while exponent:
        if exponent & 1:
            result = _product(result, base)
        base = _product(base, base)
        exponent >>= 1
    return result


def joined_crc(parts: Iterable[tuple[int, int]]) -> int:
    """The CRC-32 of concatenated parts, given the CRC-32 and the length in bytes of each."""
    total = 0
    for crc, length in parts:
        total = _product(total, _power(8 * length)) ^ crc
    return total
