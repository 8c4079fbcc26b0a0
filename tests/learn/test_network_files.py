"""N-tuple networks on disk, and the player."""

from __future__ import annotations

import lzma
import os
import tracemalloc
import zlib
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from lab2048.learn.network_files import network_folder, read_facts, read_tensors, write_tensors
from lab2048.learn.ntuple_files import read_about, read_weights, write_packed, write_weights
from tests.conftest import flip
from tests.small_networks import stored_example

# -- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stride", [1, 4])
def test_a_network_is_read_as_it_was_written(own_home, stride):
    stored = stored_example(stride)
    path = own_home / "x.safetensors"
    write_weights(path, stored)
    found = read_weights(path, learning=True)
    assert found.weights.tobytes() == stored.weights.tobytes() and found.stride == stride
    assert found.network == stored.network and found.rules == stored.rules
    plain = read_weights(path)
    assert plain.stride == 1 and (plain.weights == stored.weights[::stride]).all()
    assert path.stat().st_size < 5000 * 4 * stride + 20_000  # what was not visited costs nothing
    assert read_facts(path)["games"] == 10
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_packed_network_is_off_by_half_a_step_at_most(own_home):
    stored = stored_example()
    path = own_home / "x.safetensors"
    write_packed(path, stored, step=8.0, visits=20)
    found = read_weights(path)
    records = stored.weights.reshape(-1, 4)
    often = records[:, 3] >= 20
    assert np.abs(found.weights - records[:, 0])[often].max() <= 4.0
    assert not found.weights[~often].any()
    assert found.facts["packed"] == {"step": 8.0, "visits": 20}
    with pytest.raises(ValueError, match="need a larger step"):
        write_packed(path, stored, step=0.001)
    with pytest.raises(ValueError, match="only known of what learns by tc"):
        write_packed(path, stored.plain(), step=8.0, visits=20)
    write_packed(path, stored.plain(), step=8.0)
    assert np.abs(read_weights(path).weights - records[:, 0]).max() <= 4.0


def test_damaged_and_foreign_files_are_told_in_a_line(own_home):
    path = own_home / "x.safetensors"
    write_weights(path, stored_example())
    whole = path.read_bytes()
    for cut in (0, 4, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="is damaged, or no safetensors file"):
            read_weights(path)
    for place in range(len(whole) - 20_000, len(whole), 1999):
        path.write_bytes(whole)
        flip(path, place)
        with pytest.raises(ValueError, match="is damaged"):
            read_weights(path, learning=True)
    save_file({"a": np.zeros(3)}, path)
    with pytest.raises(ValueError, match="is not a network of lab2048"):
        read_weights(path)
    save_file({"a": np.zeros(3)}, path, metadata={"lab2048": '{"kind": "ntuple", "format": 9}'})
    with pytest.raises(ValueError, match="is of format 9; 1 is known here"):
        read_weights(path)


def test_what_a_file_says_about_itself_is_checked(own_home):
    path = own_home / "x.safetensors"
    for name, value in [("games", "10"), ("tuples", None), ("initial", None), ("reach", [])]:
        stored = stored_example()
        write_weights(path, replace(stored, facts=stored.facts | {name: value}))
        with pytest.raises(ValueError, match=f"is damaged: it does not say what {name} is"):
            read_about(path)
    write_weights(path, replace(stored, facts=stored.facts | {"tuples": ["0129"]}))
    with pytest.raises(ValueError, match="the tuple 0129 has cell 9"):
        read_weights(path)
    write_weights(path, stored)
    path.write_bytes(path.read_bytes().replace(b'games\\": 10', b'games\\": 11'))
    with pytest.raises(ValueError, match="the checksum of its metadata is wrong"):
        read_facts(path)
    write_weights(path, replace(stored, weights=stored.weights[:4000], stride=1))
    with pytest.raises(ValueError, match="it has too few weights, or too many"):
        read_weights(path)
    stored.weights[0] = np.inf
    with pytest.raises(ValueError, match="there are weights that are no numbers"):
        write_weights(path, stored)


# -- files that are small and claim to be large ------------------------------------------------


LARGE = 1 << 25


def zeros(compressor):
    """So many zeros, compressed."""
    parts = [compressor.compress(bytes(1 << 20)) for _ in range(LARGE >> 20)]
    return np.frombuffer(b"".join(parts) + compressor.flush(), np.uint8)


def wide_dictionary(data):
    """A file of xz whose header asks for a gigabyte of memory to unpack it."""
    packed = bytearray(lzma.compress(data, lzma.FORMAT_XZ))
    end = 12 + 4 * (packed[12] + 1) - 4  # of the block's header, in front of its checksum
    assert packed[14:16] == b"\x21\x01"  # LZMA2, and one byte of settings
    packed[16] = 36
    packed[end : end + 4] = zlib.crc32(packed[12:end]).to_bytes(4, "little")
    return np.frombuffer(bytes(packed), np.uint8)


@cache
def bombs():
    """Tensors of a network, some of which are bombs."""
    every = np.frombuffer(zlib.compress(b"\xff" * (73728 // 8)), np.uint8)
    none = np.zeros(0, np.float32)
    return {
        "codes": {"visited": every, "codes": zeros(lzma.LZMACompressor(preset=0))},
        "dictionary": {"visited": every, "codes": wide_dictionary(bytes(2 * 73728))},
        "visited": {"visited": zeros(zlib.compressobj(1)), "weights": none},
        "cut off": {"visited": every[:-3], "weights": none},
        "weights": {"visited": every, "weights": np.zeros(73729, np.float32)},
        "doubles": {"visited": every, "weights": np.zeros(73728)},
        "another": {"visited": every, "weights": np.zeros(73728, np.float32), "x": none},
        "flat": {"visited": every, "weights": np.zeros((1, 73728), np.float32)},
        "nothing": {"weights": none},
    }


@pytest.mark.parametrize("bomb", bombs())
def test_no_more_is_unpacked_than_there_can_be(own_home, bomb):
    path, facts = own_home / "x.safetensors", stored_example(1).facts
    write_tensors(path, "ntuple", {**facts, "packed": {"step": 1.0}}, bombs()[bomb])
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"x\.safetensors is damaged: "):
        read_weights(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < LARGE / 16


def test_tuples_that_do_not_fit_into_memory_are_told(own_home):
    path, facts = own_home / "x.safetensors", stored_example(1).facts
    tuples = ["".join(each) for each in combinations("0123456789abcdef", 7)]
    tensors = {"visited": np.zeros(9, np.uint8), "weights": np.zeros(0, np.float32)}
    write_tensors(path, "ntuple", {**facts, "board": "4x4", "tuples": tuples}, tensors)
    with pytest.raises(ValueError, match=r"weights of these tuples take 12\.3 TB of memory, and"):
        read_weights(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("tuples", [[1]]), ("packed", None), ("packed", {}), ("board", "9x9"), ("p4", 7.0)],
)
def test_facts_that_are_odd_are_told_in_a_line(own_home, name, value):
    path = own_home / "x.safetensors"
    stored = stored_example()
    write_packed(path, stored, step=8.0)
    facts = read_facts(path)
    tensors = load_file(path)
    write_tensors(path, "ntuple", facts | {name: value}, tensors)
    with pytest.raises(ValueError, match=r"x\.safetensors is damaged: "):
        read_weights(path)


def test_metadata_without_an_end_is_told(own_home):
    path = own_home / "x.safetensors"
    own_home.mkdir()
    save_file({"a": np.zeros(3)}, path, metadata={"lab2048": "[" * 100_000})
    for read in (read_weights, read_about, read_facts):
        with pytest.raises(ValueError, match="is damaged, or no safetensors file"):
            read(path)


def test_a_folder_is_no_network(own_home):
    with pytest.raises(IsADirectoryError) as caught:
        read_weights(own_home.parent)
    assert caught.value.filename == str(own_home.parent)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a b", ".x", "x" * 200])
def test_names_of_networks_are_no_paths(name):
    with pytest.raises(ValueError, match="a network's name is of letters"):
        network_folder(name)


def test_numbers_and_views_of_numpy_are_written_like_others(own_home):
    path = own_home / "x.safetensors"
    tensors = {"t": np.arange(6.0).reshape(2, 3).T}
    facts = {"board": "2x2", "p4": 0.1, "games": np.int64(7), "rate": np.float32(0.5)}
    write_tensors(path, "ntuple", facts, tensors)
    assert read_facts(path)["games"] == 7
    found = read_tensors(path, "ntuple", {})[1]["t"]
    assert (found == tensors["t"]).all()
