"""The benches print every figure."""

from __future__ import annotations

import json

import pytest

from tests.cli.running import run


@pytest.mark.slow
def test_bench_prints_every_figure(command, monkeypatch):
    done = run("bench", "engine", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert list(figures) == [
        "random_play_moves_per_second",
        "vector_env_steps_per_second",
        "import_seconds",
        "signature",
        "machine",
    ]
    assert figures["random_play_moves_per_second"].keys() == {"3x3", "4x4"}
    # far below any machine's speed: this tells a broken measurement, not a slow machine
    assert min(figures["random_play_moves_per_second"].values()) > 1e5
    assert figures["vector_env_steps_per_second"] > 1e5
    assert 0 < figures["import_seconds"] < 5
    monkeypatch.setattr("lab2048.bench.engine.bench_engine", lambda say: figures)
    code, out, _ = command("bench", "engine")
    assert code == 0 and "random play on 4x4" in out and str(figures["signature"]) in out
