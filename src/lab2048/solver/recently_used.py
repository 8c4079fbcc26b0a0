"""A cache of decoded blocks and layers, limited by their size in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class Recent(Generic[K, T]):
    """A thread-safe cache of the items used last: up to `room` bytes, but at least one item."""

    def __init__(self, room: int) -> None:
        self._room, self._used = room, 0
        self._kept: OrderedDict[K, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: K, make: Callable[[], T]) -> T:
        """Return the item called `name`; `make` it if it is not cached."""
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
                return self._kept[name]
        made = make()
        with self._lock:
            if name not in self._kept:
                self._kept[name] = made
                self._used += _size(made)
            while self._used > self._room and len(self._kept) > 1:
                self._used -= _size(self._kept.popitem(last=False)[1])
        return made

    def clear(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._kept.clear()
            self._used = 0


def _size(thing: Any) -> int:
    """The bytes of an array, or of a tuple of arrays."""
    arrays = thing if isinstance(thing, tuple) else (thing,)
    return sum(array.nbytes for array in arrays)
