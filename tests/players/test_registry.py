"""Players by name: specs, options, and what is said of those that are wrong."""

from __future__ import annotations

import re

import numpy as np
import pytest

from lab2048 import Board, Rules
from lab2048.learn.neural_players import Loaded, Neural
from lab2048.players.custom import load
from lab2048.players.expectimax import Expectimax
from lab2048.players.player import PlayerError
from lab2048.players.registry import PLAYERS, make_player, player_class

RULES = Rules(3, 2)


@pytest.mark.parametrize("name", [name for name in PLAYERS if name != "optimal"])
def test_every_player_is_described(name):
    cls = player_class(name)
    if issubclass(cls, Neural):
        player = cls(RULES, given=Loaded(None, {}))
    else:
        player = make_player(name, Rules(3, 3) if name == "ntuple" else RULES)  # has no network
    assert (cls.name, player.spec) == (name, name)
    assert cls.about and cls.meaning and cls.__doc__
    for each in cls.options():
        assert each.metadata["about"]


@pytest.mark.parametrize(
    "spec",
    [
        "expectimax:depth=2",
        "expectimax:time=10ms",
        "expectimax:time=2s",
        "expectimax:depth=2,cutoff=0.001,heuristic=snake",
        "mcts:simulations=10,depth=4,c2=inf",
        "sparse:samples=1,gamma=0.5,terminal=avoid",
        "greedy:ties=split",
    ],
)
def test_a_spec_says_what_it_was_made_from(spec):
    assert make_player(spec, RULES).spec == spec
    assert make_player(f" {spec.replace(',', ', ')} ", RULES).spec == spec


def test_defaults_are_left_out():
    assert make_player("expectimax:depth=3,heuristic=rows", RULES).spec == "expectimax"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "there is no player ''"),
        ("expectimx", "did you mean expectimax?"),
        ("qqqq", "there is random, greedy"),
        ("expectimax:dept=3", "no option 'dept'; did you mean depth?"),
        ("expectimax:xyzzy=3", "no option 'xyzzy'; there is depth, time"),
        ("random:depth=3", "random has no option 'depth'; it has none"),
        ("expectimax:depth", "depth needs a value"),
        ("expectimax:depth=1,depth=2", "depth is given twice"),
        ("expectimax:depth=0", "depth is a whole number from 1 to 12, not 0"),
        ("expectimax:depth=-1", "not -1"),
        ("expectimax:depth=1_0", "not 1_0"),
        ("expectimax:depth=99999999999999999999", "from 1 to 12"),
        ("expectimax:depth=2.5", "depth is a whole number from 1 to 12, not 2.5"),
        ("expectimax:depth=", "depth is a whole number"),
        ("expectimax:time=10", "time is a time such as 10ms or 0.5s, not '10'"),
        ("expectimax:time=1.2.3ms", "time is a time"),
        ("expectimax:time=0ms", "time is a time from"),
        ("expectimax:time=99999s", "time is a time from"),
        ("expectimax:cutoff=nan", "cutoff is a number from 0 to 1, not nan"),
        ("expectimax:depth=2,time=1ms", "a depth or a time, not both"),
        ("expectimax:time=.s", "time is a time such as 10ms"),
        ("expectimax:cutoff=2", "cutoff is a number from 0 to 1, not 2"),
        ("expectimax:heuristic=magic", "heuristic is rows, shape, snake, alpha or zero, not magic"),
        ("montecarlo:rollouts=0", "rollouts is a whole number from 1"),
        ("mcts:simulations=1e9", "simulations is a whole number"),
        ("greedy:ties=some", "ties is first or split, not some"),
        ("sparse:gamma=1.5", "gamma is a number from 0 to 1"),
        ("python:", "names a function in a module"),
        ("python:nothing", "names a function in a module"),
        ("python:no_such_module.f", "No module named"),
        ("python:math.no_such", "math has no no_such"),
        ("python:math.pi", "pi cannot be called"),
    ],
)
def test_a_wrong_spec_is_answered_with_what_would_be_right(spec, message):
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        make_player(spec, RULES)
    assert "\n" not in str(error.value)


def test_a_player_for_another_board_is_refused():
    from lab2048 import Board

    with pytest.raises(ValueError, match="the board is 2x2, the rules are 3x2"):
        make_player("greedy", RULES).choose(Board.parse("2 2 / . ."))


def test_a_function_of_a_module(tmp_path, monkeypatch):
    (tmp_path / "agent.py").write_text(
        "def first(ranks, legal):\n    return legal.argmax(axis=1)\nfirst.draws = True\n"
    )
    monkeypatch.chdir(tmp_path)
    player = make_player("python:agent.first", RULES)
    assert player.spec == "python:agent.first" and player.draws
    assert load("agent.first", RULES).spec == player.spec


def test_an_option_may_be_any_kind_of_whole_number():
    assert Expectimax(RULES, depth=np.int64(2)).spec == "expectimax:depth=2"
    for depth in (3.0, True, np.float64(2)):
        with pytest.raises(PlayerError, match="depth is a whole number"):
            Expectimax(RULES, depth=depth)


def test_a_spec_tells_players_apart():
    near = make_player("sparse:gamma=0.99999999", RULES)
    assert near.spec == "sparse:gamma=0.99999999" != make_player("sparse", RULES).spec
    assert make_player("expectimax:time=1.5ms", RULES).spec == "expectimax:time=1.5ms"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def player(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("import nothing_like_it", "No module named 'nothing_like_it'"),
        ("None.player", "AttributeError"),
        ("other = 1", "has no player"),
        ("import sys; sys.exit(0)", "SystemExit"),
    ],
)
def test_a_module_that_cannot_be_used(source, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = f"unusable{len(message)}"
    (tmp_path / f"{name}.py").write_text(source + "\n")
    with pytest.raises(PlayerError, match=message):
        load(f"{name}.player", RULES)


def test_optimal_needs_a_table(own_home):
    with pytest.raises(
        ValueError, match="there is no table 3x3-score; make it with: lab2048 solve"
    ):
        make_player("optimal", Rules(3, 3))
    with pytest.raises(ValueError, match="optimal"):
        make_player("optimal", Rules(4, 4))
    with pytest.raises(ValueError, match=r"^optimal: an objective is"):
        make_player("optimal:objective=fame", Rules(3, 3))


def test_a_player_takes_a_board_in_any_form():
    player = make_player("greedy", RULES)
    board = Board.parse("2 2 / 4 . / . 8")
    forms = ("2 2 / 4 . / . 8", "112003", [[2, 2], [4, 0], [0, 8]], board.packed)
    for form in (*forms, np.uint64(board.packed), board):
        assert player.choose(form) == player.choose(board)
        assert player.values(form) == player.values(board)
    with pytest.raises(ValueError, match="the board is 2x2, the rules are 3x2"):
        player.choose("2 2 / . .")
    with pytest.raises(ValueError, match="3 is not a tile"):
        player.values("3 . / . . / . .")
    with pytest.raises(ValueError, match=r"no move is legal on 2 4 / 4 2 / 2 4"):
        player.choose("2 4 / 4 2 / 2 4")
    with pytest.raises(ValueError, match="is not a board"):
        player.choose(2.5)
