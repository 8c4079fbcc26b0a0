"""Surveys: exact statistics against the naive game, pictures, and the command line."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from xml.etree import ElementTree

import pytest

from lab2048.report.game_tree import draw_tree
from lab2048.solver import survey as survey_module
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.survey import survey
from lab2048.solver.table_files import TableError
from lab2048.solver.tables import open_table
from tests import naive
from tests.conftest import WITH_JIT, run_command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WITH_JIT, reason="takes too long without the JIT"),
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Finds, or makes, a table."""
    folder = tmp_path_factory.mktemp("tables")

    def find(board, **options):
        problem = Problem.of(board, **options)
        make_table(problem, folder / problem.name)
        return open_table(folder / problem.name)

    return find


class Played:
    """Optimal play on 2x2, worked out with fractions over (state, moves, score)."""

    def __init__(self, p4):
        graph = naive.game_graph(2, 2, p4)
        values = naive.expected_scores(graph)
        self.ends = {}  # (largest tile, moves, score) -> chance
        self.gaps, self.margins, self.visits, self.choices = {}, {}, {}, {}
        present = {(state, 0, 0): chance for state, chance in naive.starts(2, 2, p4).items()}
        while present:
            following = {}
            for (state, moves, score), chance in present.items():
                q = [
                    (reward + sum(p * values[s] for p, s in spawned), reward, spawned)
                    for reward, _, spawned in graph[state]
                ]
                if not q:
                    key = (max(map(max, state)), moves, score)
                    self.ends[key] = self.ends.get(key, 0) + chance
                    continue
                worth = sorted((value for value, _, _ in q), reverse=True)
                self._count(self.visits, moves, chance)
                self._count(self.gaps, moves, chance * (worth[0] - worth[-1]))
                if len(worth) > 1:
                    self._count(self.choices, moves, chance)
                    self._count(self.margins, moves, chance * (worth[0] - worth[1]))
                best = [choice for choice in q if choice[0] == worth[0]]
                for _, reward, spawned in best:
                    for p, other in spawned:
                        key = (other, moves + 1, score + reward)
                        self._count(following, key, chance / len(best) * p)
            present = following

    @staticmethod
    def _count(sums, key, amount):
        sums[key] = sums.get(key, 0) + amount

    def moments(self, place):
        mean = sum(chance * key[place] for key, chance in self.ends.items())
        square = sum(chance * key[place] ** 2 for key, chance in self.ends.items())
        return float(mean), math.sqrt(square - mean**2)


@pytest.mark.parametrize("p4", [0.1, 0.5, 0.0, 1.0])
def test_everything_is_exact_on_2x2(tables, p4):
    played = Played(Fraction(str(p4)))
    with tables("2x2", p4=p4) as table:
        found = survey(table)
    mean, deviation = played.moments(2)
    assert found.score["mean"] == pytest.approx(mean, rel=1e-12)
    assert found.score["deviation"] == pytest.approx(deviation, rel=1e-6, abs=1e-5)
    mean, deviation = played.moments(1)
    assert found.moves["mean"] == pytest.approx(mean, rel=1e-12)
    assert found.moves["deviation"] == pytest.approx(deviation, rel=1e-6, abs=1e-5)
    tiles = {}
    for (tile, _, _), chance in played.ends.items():
        tiles[tile] = tiles.get(tile, 0) + chance
    assert found.final_tile == pytest.approx({t: float(c) for t, c in tiles.items()}, rel=1e-12)
    for tile, chance in found.reach.items():
        assert chance == pytest.approx(float(sum(c for t, c in tiles.items() if t >= tile)))
    by_move = found.by_move
    assert by_move.games is None and found.lost < 1e-12
    for move, chance in played.visits.items():
        assert by_move.visits[move] == pytest.approx(float(chance), rel=1e-10)
        assert by_move.gap[move] == pytest.approx(float(played.gaps[move] / chance), abs=1e-10)
        if move in played.choices:
            wanted = float(played.margins[move] / played.choices[move])
            assert by_move.margin[move] == pytest.approx(wanted, abs=1e-10)
    ended = {}
    for (_, moves, _), chance in played.ends.items():
        ended[moves] = ended.get(moves, 0) + chance
    for move, chance in enumerate(by_move.ends):
        assert chance == pytest.approx(float(ended.get(move, 0)), abs=1e-12)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_mean_score_of_optimal_play_is_the_start_value(tables, threads):
    with tables("3x2") as table:
        found = survey(table, threads=threads)
        assert found.score["mean"] == pytest.approx(table.start_value["start"], rel=1e-11)
        assert sum(found.final_tile.values()) == pytest.approx(1, rel=1e-11)
        assert sum(found.by_age.states) == table.states
        assert sum(found.by_age.afterstates) == table.manifest["afterstates"]
        assert sum(found.by_move.ends) == pytest.approx(1, rel=1e-11)
        # every move takes a game to another age, so both count the same visits
        assert sum(found.by_move.visits) == pytest.approx(found.moves["mean"], rel=1e-11)
        assert 0 < found.visited_states < table.states


def test_a_sample_of_games_agrees_with_the_exact_figures(tables, monkeypatch):
    with tables("3x2") as table:
        exact = survey(table).by_move
        monkeypatch.setattr(survey_module, "EXACT_CELLS", 4)
        found = survey(table, games=20_000, seed=5)
        again = survey(table, games=20_000, seed=5)
    assert found.by_move.games == 20_000
    assert again.by_move == found.by_move
    for move in (0, 10, 40, 60):
        assert found.by_move.visits[move] == pytest.approx(exact.visits[move], abs=0.02)
        assert found.by_move.gap[move] == pytest.approx(exact.gap[move], rel=0.1)
    mean = sum(found.by_move.visits)
    assert mean == pytest.approx(
        found.moves["mean"], abs=5 * found.moves["deviation"] / 20_000**0.5
    )


def test_only_scores_are_surveyed(tables):
    with (
        tables("2x2", objective="worst-case") as table,
        pytest.raises(TableError, match="a survey is made of a table for the score"),
    ):
        survey(table)


def test_one_tree_at_a_time(own_home):
    error = run_command("survey", "2x2", "--tree", "--p4", "0,0.1", code=2).stderr
    assert error == "lab2048: --tree draws one game; give it one --p4\n"


def test_the_tree_shows_every_state(tables):
    with tables("2x2") as table:
        drawing = draw_tree(table)
    root = ElementTree.fromstring(drawing)
    boards = root.findall("{http://www.w3.org/2000/svg}g")
    assert len(boards) == 110 + 67
    assert drawing.count('fill="#e69f00"') == len({b for _, _, b in Problem.of("2x2").starts()})
    assert drawing.count('fill="#0072b2"') == 36
    with tables("3x2") as table, pytest.raises(TableError, match="3x2 has 21,752 states"):
        draw_tree(table)


# -- the command line ----------------------------------------------------------------------------


def test_survey_on_the_command_line(warm_home):
    text = run_command("survey", "2x2").stdout
    assert "66.96 on average" in text and "96.2511%" in text and "share a state's visits" in text
    folder = warm_home / "surveys" / "2x2-score"
    assert {path.name for path in folder.iterdir()} == {
        *("by-move.png", "by-age.png", "tiles.png", "survey.json")
    }
    found = json.loads(run_command("survey", "2x2", "--json").stdout)
    assert found["score"]["mean"] == pytest.approx(found["value"]["start"])
    assert run_command("survey", "2x2", "--tree").stdout.startswith("saved ")
    assert (folder / "tree.svg").read_text().startswith("<svg")
    rows = json.loads(run_command("survey", "2x2", "--p4", "0,0.1,1", "--json").stdout)["rows"]
    assert [row["p4"] for row in rows] == [0, 0.1, 1]
    assert [row["value"] for row in rows] == pytest.approx([68.0, 66.9641494571, 136.0])
    assert (warm_home / "surveys" / "2x2-score-by-p4" / "p4.png").exists()
    assert "deviation" in run_command("survey", "2x2", "--p4", "0,0.1").stdout
    error = run_command("survey", "2x2", "--p4", "0,x", code=2).stderr
    assert error == "lab2048: --p4 is a number or several with commas, such as 0,0.1, not 'x'\n"
    assert "too many states for a tree" in run_command("survey", "3x2", "--tree", code=2).stderr


@pytest.mark.parametrize("games", [0, -1, 1.5])
def test_a_survey_of_no_games_is_refused(made, games):
    with open_table(made) as table, pytest.raises(ValueError, match="`games` is a whole number"):
        survey(table, games=games)
