"""Journals: a match that was stopped goes on."""

from __future__ import annotations

import errno
import itertools
import json
import os

import pytest

from lab2048 import Rules
from lab2048.measure import journal as journal_module
from lab2048.measure.arena import play_match
from lab2048.measure.journal import journal_path
from lab2048.players.registry import make_player

RULES = Rules(3, 2)


def test_a_stopped_match_goes_on(tmp_path):
    journal = tmp_path / "journal.jsonl"
    player = make_player("corner", RULES)
    whole = play_match(player, 40, 3).games

    class EnoughError(Exception):
        pass

    def stop(done):
        if done >= 15:
            raise EnoughError

    with pytest.raises(EnoughError):
        play_match(player, 40, 3, journal=journal, progress=stop)
    kept = len(list(filter(None, journal.read_text().splitlines())))
    assert kept >= 15
    begun = []
    assert play_match(player, 40, 3, journal=journal, progress=begun.append).games == whole
    assert begun[0] == kept
    assert play_match(player, 40, 3, journal=journal).moves_per_second is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[: len(line) // 2],
        lambda line: "garbage",
        lambda line: json.dumps([0, 99999, 8, "00"]),
        lambda line: line.replace('"0', '"7', 1),
        lambda line: line.replace(", ", ", 1", 1),
        lambda line: "[]",
        lambda line: "7",
    ],
)
def test_a_damaged_journal_costs_only_the_game(tmp_path, damage):
    journal = tmp_path / "journal.jsonl"
    player = make_player("corner", RULES)
    whole = play_match(player, 5, 3, journal=journal).games
    lines = journal.read_text().splitlines()
    lines[2] = damage(lines[2])
    journal.write_text("\n".join(lines) + "\n")
    assert play_match(player, 5, 3, journal=journal).games == whole


def test_a_journal_that_cannot_be_written_costs_only_itself(tmp_path, capsys, monkeypatch):
    player = make_player("random", Rules(2, 2))
    whole = play_match(player, 5, 3).games
    (tmp_path / "file").write_text("")
    assert play_match(player, 5, 3, journal=tmp_path / "file" / "journal.jsonl").games == whole
    said = f"lab2048: cannot keep finished games in {tmp_path / 'file'}: "
    assert said in capsys.readouterr().err

    def full(game):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(journal_module, "_journal_line", full)
    assert play_match(player, 5, 3, journal=tmp_path / "journal.jsonl").games == whole
    said = f"lab2048: cannot keep finished games in {tmp_path}: {os.strerror(errno.ENOSPC)}\n"
    assert capsys.readouterr().err == said


def test_every_match_has_a_journal_of_its_own(own_home):
    paths = {
        journal_path(make_player(spec, rules), seed)
        for spec, rules, seed in itertools.product(
            ("corner", "greedy"), (RULES, Rules(3, 2, 0.2)), (1, 2)
        )
    }
    assert len(paths) == 8 and all(path.parent == own_home / "matches" for path in paths)
