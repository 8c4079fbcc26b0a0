"""The bench of neural networks prints every figure."""

from __future__ import annotations

import json

import pytest

from lab2048.game import Rules


@pytest.mark.slow
def test_bench_prints_every_figure(command, monkeypatch):
    from lab2048.bench import neural as bench_neural

    monkeypatch.setattr(bench_neural, "BOARD", Rules(2, 2))
    monkeypatch.setattr(bench_neural, "PRESETS", ("tiny",))
    monkeypatch.setattr(bench_neural, "VOTING", {"small": 4})
    monkeypatch.setattr(bench_neural, "GAMES", 20)
    monkeypatch.setattr(bench_neural, "REPEATS", 1)
    code, out, err = command("bench", "neural", "--json")
    assert code == 0, err
    found = json.loads(out)
    playing = found["self_play"]["tiny"]
    assert 1 < playing["mean_batch"] <= 64 and playing["moves_per_second"] > 1
    speed = playing["network_alone_evaluations_per_second"] / playing["evaluations_per_second"]
    assert playing["search_overhead"] == pytest.approx(speed - 1, abs=0.01)
    votes = found["voting"]["small"]
    assert votes["evaluations_per_second"] == pytest.approx(8 * votes["moves_per_second"], abs=8)
