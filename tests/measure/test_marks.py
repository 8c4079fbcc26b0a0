"""Marks: no finer than the judge can tell, and the same wherever moves are marked."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from lab2048.game import Board, Direction, Game, Rules
from lab2048.game.record import Record
from lab2048.measure.marks import ERRORS, MARKS, count_marks, error_of, mark, settle
from lab2048.measure.positions import opinion, probed
from lab2048.measure.review import review, summary, usual_judge
from lab2048.players.registry import make_player
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.table import Table
from lab2048.solver.tables import open_table


@pytest.fixture
def table(made):
    with Table(made) as found:
        yield found


# -- exact judges --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, "best"),
        (1e-9, "best"),
        (9e-7, "best"),
        (2e-6, "good"),
        (0.0049, "good"),
        (0.005, "slip"),
        (0.0299, "slip"),
        (0.03, "mistake"),
        (0.0999, "mistake"),
        (0.10, "blunder"),
        (1.0, "blunder"),
    ],
)
def test_marks_go_by_the_share_of_the_value_that_is_lost(table, share, expected):
    assert mark(share * 1000, 1000.0, table) == expected


@pytest.mark.slow
def test_a_loss_that_nobody_can_see_is_none(table):
    """5,468 points at stake, a millionth of a point lost: not a move to correct."""
    assert mark(1e-6, 5468.49, table) == "best"


@pytest.mark.slow
def test_moves_of_a_position_have_the_marks_of_the_table(table):
    board = Board.parse("2 2 / 4 . / 2 4")
    found = probed(board, Rules(3, 2), table).as_json()["moves"]
    assert found["right"]["mark"] is not None
    for name, move in found.items():
        exact = table.moves(board).get(Direction[name.upper()])
        if exact is None:
            assert move["mark"] is None
        else:
            lost = 0.0 if exact.optimal else exact.regret
            assert move["mark"] == mark(lost, exact.q + exact.regret, table)


@pytest.mark.slow
def test_chances_are_marked_by_their_share(own_home):
    """Whoever gives a chance of 1 in 1,000 away has lost it all."""
    problem = Problem.of("2x2", objective="reach:16")
    make_table(problem)
    with open_table(problem) as chances:
        assert mark(0.001, 0.001, chances) == "blunder" and mark(0.0, 0.0, chances) == "best"
        game = Game(Rules(2, 2), 3)
        while not game.over and game.board.max_tile < 16:
            game.play(game.board.legal_moves[-1])
        found = review(Record.of(game, "me"), chances)
        assert found.exact and found.unit == "of the chance to make 16"
        assert "points" not in " ".join(found.facts())
        same = review(Record.of(game, "me"), "optimal:objective=reach:16")
    assert same.exact and same.unit == found.unit and same.caveat == ""
    assert [step.mark for step in same.steps] == [step.mark for step in found.steps]


# -- judges that may be wrong --------------------------------------------------------------------


def judged(spec, board):
    """The marks of a player, by direction."""
    rules = Rules(board.rows, board.cols)
    return {str(d): each for d, each in opinion(make_player(spec, rules), board).marks.items()}


@pytest.mark.slow
def test_the_usual_judge_does_not_grade_what_it_cannot_tell():
    """One move ahead the network calls right 18% worse than down; deeper, all are within 2%."""
    board = Board.parse("2 . 2 4 / . . . . / . . . 2 / . . . .")
    spec = usual_judge(Rules(4, 4))
    assert spec == "ntuple:depth=3" and set(judged(spec, board).values()) == {"best"}
    shallow = make_player("ntuple", Rules(4, 4))
    values = shallow.values(board)
    assert values[Direction.RIGHT] < 0.85 * values[Direction.DOWN]  # what made it a blunder
    assert judged("ntuple", board)["right"] == "best"  # it may be off by more than that


@pytest.mark.slow
def test_what_is_beyond_the_error_is_still_a_blunder():
    """Left merges nothing and leaves no move but a gamble; right keeps the large tiles apart."""
    board = Board.parse("16384 4096 2048 1024 / 32 128 256 512 / 8 16 64 2 / 4 . 2 8")
    found = judged("ntuple:depth=3", board)
    assert found["left"] == "blunder" and found["right"] == "best"


@pytest.mark.slow
def test_who_was_never_measured_only_says_which_move_is_its_own():
    board = Board.parse("2 2 4 / 4 . 2 / 2 . 4")
    player = make_player("expectimax:depth=2", Rules(3, 3))
    assert error_of(player) is None
    found = judged("expectimax:depth=2", board)
    assert set(found.values()) == {"best", "other"}
    chosen = player.choose(board)
    assert found[str(chosen)] == "best"


@pytest.mark.slow
def test_errors_are_of_the_usual_rules_only():
    assert set(ERRORS) >= {("4x4", "ntuple:depth=3"), ("3x3", "ntuple:depth=3")}
    assert error_of(make_player("ntuple", Rules(3, 3))) == ERRORS["3x3", "ntuple"]
    assert error_of(make_player("ntuple", Rules(3, 3, 0.5))) is None
    assert error_of(make_player("optimal", Rules(2, 2))) == 0


def test_values_within_the_error_are_made_equal():
    judge = make_player("ntuple", Rules(3, 3))
    error = error_of(judge)
    values = np.array([[100.0, 100 * (1 - error) + 0.1, 100 * (1 - error) - 0.1, np.nan]])
    found = settle(values, judge)[0]
    assert found[:2].tolist() == [100, 100] and found[2] == values[0, 2] and np.isnan(found[3])


@pytest.mark.slow
def test_values_of_minus_infinity_are_marked_too():
    player = make_player("sparse:depth=2,terminal=avoid", Rules(2, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = opinion(player, Board.parse("2 4 / 4 4"))
    assert set(found.marks) == set(found.values) and set(found.marks.values()) <= set(MARKS)


# -- games ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def record():
    """A game of the first legal move on 3x2."""
    game = Game(Rules(3, 2), 5)
    while not game.over:
        game.play(game.board.legal_moves[-1])
    return Record.of(game, "me")


@pytest.mark.slow
def test_losses_add_up_only_where_they_are_exact(record, table):
    exact = review(record, table)
    assert exact.exact and not exact.caveat
    losses = sum(step.regret for step in exact.steps)
    assert losses > 0 and summary(exact.steps)["loss"] == pytest.approx(losses)
    assert any("points" in fact for fact in exact.facts())
    other = review(record, make_player("expectimax:depth=2", record.rules))
    assert not other.exact and "not known" in other.caveat
    assert summary(other.steps)["loss"] is None
    assert {step.loss for step in other.steps} == {None}
    assert not any("points" in fact for fact in other.facts())


@pytest.mark.slow
def test_figures_of_a_game_agree_with_its_marks(record, table):
    found = review(record, table)
    figures = summary(found.steps)
    marks = [step.mark for step in found.steps]
    assert figures["marks"] == count_marks(marks) and sum(figures["marks"].values()) == len(marks)
    assert figures["agreement"] == marks.count("best") / len(marks)
    assert [each["mark"] for each in figures["worst"]].count("best") == 0
    assert found.as_json()["steps"][3]["mark"] == marks[3]


@pytest.mark.slow
def test_optimal_play_by_the_player_is_as_exact_as_by_the_table(record, table, own_home):
    by_player = review(record, make_player("optimal", record.rules))
    by_table = review(record, table)
    assert by_player.exact
    assert [step.mark for step in by_player.steps] == [step.mark for step in by_table.steps]
