"""A cache of decoded blocks and layers, limited by their size."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class Recent(Generic[K, T]):
    """What was used last, up to `room` bytes. Any thread may ask."""

    def __init__(self, room: int) -> None:
        self._room, self._used = room, 0
        self._kept: OrderedDict[K, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: K, make: Callable[[], T]) -> T:
        """Return the thing of a name, made now if it is not there."""
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
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._used = 0


def _size(thing: Any) -> int:
    """The bytes of decoded keys."""
    arrays = thing if isinstance(thing, tuple) else (thing,)
    return sum(array.nbytes for array in arrays)
