"""Results that were kept are listed."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # a server, and much to compile


def test_evaluations_are_kept_and_listed(client, command, solved_home):
    code, _, _ = command("evaluate", "greedy", "random", "--board", "3x2", "--games", "50")
    assert code == 0
    (found,) = client.get("/api/results").json()
    assert [each["player"] for each in found["results"]] == ["greedy", "random"]
    assert found["results"][0]["regret_per_game"]["mean"] > 0
    whole = client.get(f"/api/results/{found['name']}").json()
    (greedy, _) = whole["results"]
    assert len(greedy["quantiles"]) == 101 and greedy["quantiles"][50] == greedy["score"]["median"]
    assert "scores" not in greedy
    kept = solved_home / "results" / f"{found['name']}.json"
    text = kept.read_text()
    older = kept.with_name("20200101-000000-ffffff.json")
    older.write_text(text)
    listed = [each["name"] for each in client.get("/api/results").json()]
    assert listed == [found["name"], older.stem]  # the newest first
    older.unlink()
    odd = [
        '{"format": 1, "results": [1]}',
        text.replace('"format": 1', '"format": 2'),
        text[: len(text) // 2],
        text.replace('"games": 50', '"games": NaN'),
    ]
    for damaged in odd:
        kept.write_text(damaged)
        assert client.get("/api/results").json() == []
    kept.unlink()
