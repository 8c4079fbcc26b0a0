"""Tables that are checked, and changed."""

from __future__ import annotations

import zlib

import numpy as np

from lab2048.solver.table_files import read_json, write_json
from lab2048.solver.tables import open_table
from lab2048.solver.verify import verify


def check(folder):
    with open_table(folder) as table:
        verify(table)


def change_value(folder, layer, change, *, seal=True):
    """Change the first value of a layer, and if wanted its checksum; return its board."""
    manifest = read_json(folder / "manifest.json")
    counts, values = manifest["layers"]["states"], np.fromfile(folder / "values.bin", "<f8")
    begin = sum(counts[:layer])
    values[begin] = change(values[begin])
    values.tofile(folder / "values.bin")
    if seal:
        part = values[begin : begin + counts[layer]]
        manifest["layers"]["value_crcs"][layer] = zlib.crc32(part.tobytes())
        write_json(folder / "manifest.json", manifest)
    with open_table(folder) as table:
        return int(table.keys.layer(layer)[0])
