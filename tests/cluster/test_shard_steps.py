"""How the work of a table is divided and put together again, without a cluster."""

from __future__ import annotations

import zlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab2048.cluster.checksum import joined_crc
from lab2048.cluster.enumeration import File, even_cuts, parts_for, pieces_of
from lab2048.cluster.induction import REGIONS, longest, planned
from lab2048.cluster.shard_steps import Out, load, put, put_at
from lab2048.engine.arrays import Buffer
from lab2048.solver.estimate import cluster_estimate, estimate
from lab2048.solver.key_file import PackedAfters, pack_afters
from lab2048.solver.keys import LINE, lines_for
from lab2048.solver.problem import Problem
from lab2048.solver.trial import Rates

sorted_keys = st.lists(st.integers(1, 1 << 36), max_size=50, unique=True).map(sorted)


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_the_checksum_of_parts_is_that_of_the_whole(parts):
    assert joined_crc((zlib.crc32(part), len(part)) for part in parts) == zlib.crc32(
        b"".join(parts)
    )


@given(sorted_keys, st.data())
def test_packed_afterstates_are_found_by_place_and_by_key(keys, data):
    packed = PackedAfters(pack_afters(np.array(keys, np.uint64)))
    begin = data.draw(st.integers(0, len(keys)))
    end = data.draw(st.integers(begin, len(keys)))
    assert packed.keys(begin, end).tolist() == keys[begin:end]
    assert packed.keys().tolist() == keys and len(packed) == len(keys)
    bound = data.draw(st.integers(0, 1 << 37))
    assert packed.below(bound) == sum(key < bound for key in keys)
    places = data.draw(st.lists(st.integers(0, len(keys) - 1) if keys else st.nothing()))
    assert packed.some(np.array(places, np.int64)).tolist() == [keys[place] for place in places]


@given(st.lists(st.integers(0, 9), max_size=6), st.data())
def test_pieces_of_files_are_a_range_of_all(sizes, data):
    files = [File(str(number), size) for number, size in enumerate(sizes)]
    whole = [(str(number), place) for number, size in enumerate(sizes) for place in range(size)]
    begin = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(begin, len(whole)))
    found = [(p.path, n) for p in pieces_of(files, begin, end) for n in range(p.begin, p.end)]
    assert found == whole[begin:end]


def test_shards_are_of_about_the_same_weight():
    keys = np.arange(1, 1001, dtype=np.uint64)
    weights = np.where(keys <= 500, 3.0, 1.0)
    cuts = even_cuts(keys, weights, 4)
    parts = np.split(weights, np.searchsorted(keys, cuts))
    assert len(parts) == 4 and all(abs(part.sum() - 500) < 4 for part in parts)
    assert len(even_cuts(np.empty(0, np.uint64), np.empty(0), 4)) == 0


@pytest.mark.parametrize(
    ("keys", "workers", "parts"),
    [(10, 2, 1), (400_000, 8, 4), (1_500_000, 2, 2), (4_000_000, 2, 4), (298_000_000, 256, 512)],
)
def test_the_number_of_shards(keys, workers, parts):
    assert parts_for(keys, workers, 1_000_000) == parts


class Fake:
    """The keys of a layer, in memory."""

    def __init__(self, keys):
        self.keys, self.count = np.array(keys, np.uint64), len(keys)

    def key(self, place):
        return int(self.keys[place])

    def cuts(self, parts):
        return [self.count * part // parts for part in range(1, parts)]

    def below(self, key):
        return int(np.searchsorted(self.keys, np.uint64(key)))


@given(
    st.lists(st.integers(0, REGIONS * 16 - 1), min_size=1, max_size=200, unique=True).map(sorted),
    st.integers(1, 7),
    st.integers(1, 4),
)
def test_a_plan_has_every_key_once_and_no_region_in_two_places(
    tmp_path_factory, keys, parts, workers
):
    path = str(tmp_path_factory.mktemp("plan") / "index")
    plan = planned(Fake(keys), Out(path, None), parts, workers, 4)
    for lots in filter(None, (plan.shards, plan.fillers)):
        assert [lot.begin for lot in lots[1:]] == [lot.end for lot in lots[:-1]]
        assert (lots[0].begin, lots[-1].end) == (0, len(keys))
    owners = plan.fillers or plan.shards
    for lot in owners:
        first, end = lot.place.regions
        assert all(first <= key >> 4 < end for key in keys[lot.begin : lot.end])
    assert owners[0].place.regions[0] == 0 and owners[-1].place.regions[1] == REGIONS
    for lot, after in pairwise(owners):
        assert lot.place.regions[1] == after.place.regions[0]
        assert lot.place.word + LINE * lines_for(lot.size) <= after.place.word


def test_uneven_shards_will_do_if_the_workers_are_done_at_the_same_time(tmp_path):
    """Half of the keys are in one region: enough for two workers, too few for four."""
    keys = [*range(16, 32), *range(1600, 1728, 8)]
    out = Out(str(tmp_path / "index"), None)
    two, four = (planned(Fake(keys), out, 8, workers, 4) for workers in (2, 4))
    assert [lot.size for lot in two.shards] == [16, 4, 4, 4, 4] and not two.fillers
    assert [lot.size for lot in four.shards] == [4] * 8
    assert [lot.size for lot in four.fillers] == [16, 4, 4, 4, 4]
    assert longest(two.shards, 2) == 16 and longest(two.shards, 3) == 16
    assert longest(four.shards, 3) == 12


def test_a_file_is_put_in_the_place_of_a_spare_one(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    put(str(old), np.arange(1000, dtype=np.uint64))
    number = old.stat().st_ino
    put(str(new), np.arange(3, dtype=np.uint64), spare=str(old))
    assert new.stat().st_ino == number and new.stat().st_size == 24 and not old.exists()
    put(str(new), np.arange(5, dtype=np.uint64), spare=str(old))  # which is gone
    flat, runs = load(pieces_of([File(str(new), 5)], 1, 4), Buffer(np.uint64))
    assert flat.tolist() == [1, 2, 3] and runs.tolist() == [[0], [3]]
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_what_has_its_place_in_a_file_does_not_make_one(tmp_path):
    with pytest.raises(FileNotFoundError):
        put_at(str(tmp_path / "index"), b"lines", 8)
    put_at(str(tmp_path / "values"), b"values", 2, make=True)
    assert (tmp_path / "values").read_bytes() == b"\0\0values"


def test_an_estimate_of_4x3_on_many_machines():
    problem, rates = Problem.of("4x3"), Rates(1, 12e6, 8e6)
    found = cluster_estimate(problem, "float32", "table", 256, 4, rates.both, 2)
    assert (found.states, found.ages, found.largest) == (1_152_817_492_752, 8189, 297_784_736)
    assert found.core_rate == pytest.approx(2.4e6)
    more = cluster_estimate(problem, "float32", "table", 512, 8, rates.both, 2)
    assert found.seconds / 2 < more.seconds < found.seconds
    assert more.read < found.read and more.bandwidth > found.bandwidth
    least = 4 * found.states
    summary = cluster_estimate(problem, "float32", "summary", 256, 4, rates.both, 2)
    assert summary.disk + least == pytest.approx(found.disk)
    assert estimate(problem, "float32", 2, rate=4.8e6).seconds == pytest.approx(
        found.states / 4.8e6
    )
