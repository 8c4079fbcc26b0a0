"""How many boards a second `Table.probe_many` looks up, once the layers are decoded.

    lab2048 solve 3x3
    python benchmarks/probe_many.py [TABLE]

Up to 4,000 random states of every age, in random order (seed 0), all cores, medians of 5 repeats.
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np

from lab2048 import open_table

REPEATS = 5

with open_table(sys.argv[1] if len(sys.argv) > 1 else "3x3") as table:
    rng = np.random.default_rng(0)
    layers = [keys for _, keys, _ in table.layers() if len(keys)]
    boards = np.concatenate([rng.choice(keys, min(len(keys), 4000)) for keys in layers])
    rng.shuffle(boards)
    for moves, what in ((False, "values"), (True, "values and q of all moves")):
        table.probe_many(boards, moves=moves)  # decodes and compiles
        speeds = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            table.probe_many(boards, moves=moves)
            speeds.append(len(boards) / (time.perf_counter() - began) / 1e6)
        print(f"{what}: {statistics.median(speeds):.2f} million boards/s ({len(boards):,} boards)")
