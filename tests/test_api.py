"""The public API as a whole: documented, complete, and what the command line calls."""

from __future__ import annotations

import ast
import csv
import importlib.util
import io
import json
import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

import lab2048

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def make_api():
    """The program that writes the reference."""
    spec = importlib.util.spec_from_file_location("make_api", ROOT / "docs" / "make_api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- documentation -----------------------------------------------------------------------------


def test_every_public_name_has_an_example():
    without = [
        name
        for name in lab2048.__all__
        if name != "__version__" and ">>>" not in (getattr(lab2048, name).__doc__ or "")
    ]
    assert without == []


def test_the_reference_is_made_from_the_docstrings(make_api):
    written = (ROOT / "docs" / "api.md").read_text()
    assert written == make_api.reference(), "python docs/make_api.py writes it anew"


def test_every_command_names_its_python_call(make_api):
    commands = make_api.leaves()
    assert len(commands) > 25
    for words, command in commands:
        assert re.match(r"In Python: lab2048\.", command.epilog or ""), words
        make_api.checked(command.epilog.removeprefix("In Python: "))


@pytest.mark.parametrize(
    "call", ["lab2048.nothing()", "lab2048.bench.engine.run()", "lab2048.probe(board)",
             "lab2048.solve('2x2', cores=3)"]
)  # fmt: skip
def test_a_call_that_fails_is_noticed(make_api, call):
    with pytest.raises((AttributeError, AssertionError, TypeError)):
        make_api.checked(call)


def test_no_package_takes_the_place_of_a_public_name():
    """Importing it would put it there."""
    inside = Path(lab2048.__file__).parent
    assert not {each.stem for each in inside.iterdir()} & set(lab2048.__all__)


def test_help_shows_the_call(command):
    _, out, _ = command("evaluate", "--help")
    assert "In Python: lab2048.evaluate(" in out


# -- results -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result(solved_home):
    return lab2048.evaluate(["random", "greedy"], "3x2", games=60, seed=3)


@pytest.fixture(scope="module")
def result_of_one(solved_home):
    return lab2048.evaluate("corner", "2x2", games=2)


@pytest.mark.slow
def test_an_evaluation_is_what_the_command_prints(command, solved_home, result):
    _, out, _ = command(
        "evaluate", "random", "greedy", "--board", "3x2", "--games", "60", "--seed", "3", "--json"
    )
    speed = "moves_per_second"
    printed = [{**each, speed: 0} for each in json.loads(out)]
    assert printed == [{**each, speed: 0} for each in json.loads(result.to_json())]
    rows = list(csv.DictReader(io.StringIO(result.to_csv())))
    assert [float(row["mean"]) for row in rows] == [each.mean for each in result]
    assert rows[1]["player"] == "greedy" and "reach_16" in rows[1]


@pytest.mark.slow
def test_results_are_tables_everywhere(result, tmp_path):
    assert r"\begin{tabular}{lrrrr}" in result.to_latex()
    assert r"$\pm$" in result.to_latex() and r"\%" in result.to_latex()
    assert result.to_markdown(tmp_path / "table.md") == (tmp_path / "table.md").read_text()
    assert result.to_markdown().splitlines()[2].startswith("| random | ")
    assert "<td" in result._repr_html_() and "greedy" in result._repr_html_()


@pytest.mark.slow
def test_players_are_found_by_what_they_were_made_of(result):
    assert result["greedy"] is result[1]
    with pytest.raises(KeyError, match="corner was not evaluated"):
        result["corner"]
    difference = result.compare("greedy", "random")
    assert difference.mean == pytest.approx(result["greedy"].mean - result["random"].mean)
    assert difference.ci95[0] < difference.mean < difference.ci95[1]


def first_legal(ranks, legal):
    return legal.argmax(axis=1)


@pytest.mark.slow
def test_functions_are_players_everywhere(solved_home):
    """Also those without a name of their own."""
    last_legal = lambda ranks, legal: 3 - legal[:, ::-1].argmax(axis=1)  # noqa: E731
    uniform = lambda ranks, legal: legal / legal.sum(axis=1, keepdims=True)  # noqa: E731
    again = lab2048.player(first_legal, "2x2")
    found = lab2048.evaluate(["greedy", last_legal, again, uniform], "2x2", games=20)
    assert [each.player for each in found] == [
        "greedy", "python:<lambda>", "python:first_legal", "python:<lambda>-2",
    ]  # fmt: skip
    assert found[last_legal] is found[1] and found[uniform] is found[3]
    assert found[first_legal] is found[again] is found[2]
    assert found["python:<lambda>-2"] is found[uniform]
    assert found.compare("greedy", last_legal).against == "python:<lambda>"
    assert lab2048.compare(last_legal, uniform, "2x2", games=20).against == "python:<lambda>-2"
    with pytest.raises(KeyError, match="len was not evaluated"):
        found[len]
    with pytest.raises(ValueError, match="given twice"):
        lab2048.evaluate([last_legal, last_legal], "2x2")


@pytest.mark.slow
def test_mean_and_regret_add_up_to_perfect_play(solved_home):
    """The identity behind everything: exactly, and within intervals over games."""
    with lab2048.open_table("3x2") as table:
        best = table.start_value["start"]
        exact = lab2048.exact_value("greedy", "3x2", table=table)
        assert exact.value + exact.regret == pytest.approx(best, abs=1e-9)
        judged = lab2048.evaluate("greedy", "3x2", games=3000, table=table)[0]
    low, high = judged.figures["optimal"]["regret_per_game"]["ci95"]
    assert low < exact.regret < high


@pytest.mark.slow
def test_a_journal_lets_an_evaluation_go_on(solved_home):
    done = []

    def stop(what, games, total):
        done.append(games)
        if games == 30:
            raise KeyboardInterrupt

    call = {"board": "3x2", "games": 80, "seed": 9, "table": False, "resumable": True}
    with pytest.raises(KeyboardInterrupt):
        lab2048.evaluate("greedy", **call, progress=stop, threads=1)
    first = []
    found = lab2048.evaluate("greedy", **call, progress=lambda w, games, t: first.append(games))
    assert first[0] >= 30
    again = lab2048.evaluate("greedy", **call)
    assert again[0].figures["moves_per_second"] is None  # nothing was played
    found.forget()
    fresh = lab2048.evaluate("greedy", **call)
    assert fresh[0].figures["moves_per_second"] is not None
    assert [game.score for game in fresh[0].played] == [game.score for game in found[0].played]
    fresh.forget()


FORMATS = ("to_json", "to_csv", "to_latex", "to_markdown")


def is_a_table(found):
    """Whether a result can be written in all formats, and is shown in a notebook."""
    assert all(getattr(found, name)() for name in FORMATS)
    assert json.loads(found.to_json()) is not None and "<" in found._repr_html_()
    return True


def test_what_a_solve_takes_is_a_table():
    here = lab2048.estimate("3x3", p4=0.2)
    assert is_a_table(here) and here.exact and here.rows()[0]["states"] == 48_713_519
    far = lab2048.estimate("4x3", rate=5e6, threads=2, cores=512, machines=8, keep="summary")
    assert is_a_table(far) and json.loads(far.to_json())["bandwidth"] == far.bandwidth
    with pytest.raises(ValueError, match="how many are there"):
        lab2048.estimate("4x3", machines=3)


@pytest.mark.slow
def test_every_result_is_a_table(result, solved_home, tmp_path):
    assert is_a_table(result[0]) and result[0].rows()[0].items() <= result.rows()[0].items()
    difference = result.compare("greedy", "random")
    assert is_a_table(difference) and difference.rows()[0]["ci95_low"] == difference.ci95[0]
    assert is_a_table(lab2048.save_moves(tmp_path / "moves.txt", "corner", "2x2", moves=20))
    assert is_a_table(lab2048.check_moves(tmp_path / "moves.txt", "2x2"))
    assert is_a_table(lab2048.make_table("2x2", tmp_path / "table"))
    with lab2048.open_table(tmp_path / "table") as table:
        assert is_a_table(lab2048.verify(table))
    match = lab2048.play_match(lab2048.player("greedy", "2x2"), 4, seed=1)
    assert is_a_table(match) and len(match.rows()) == 4
    for games in (5, 0):
        random = lab2048.random_games(lab2048.Rules(2, 2), games)
        assert is_a_table(random) and len(random.rows()) == games


@pytest.mark.slow
def test_reviews_and_games_show_themselves(solved_home):
    game = lab2048.Game(lab2048.Rules(2, 2), seed=3)
    while not game.over:
        game.play(game.board.legal_moves[-1])
    shown = game._repr_html_()
    assert "<svg" in shown and f"score {game.score}" in shown and "over" in shown
    review = lab2048.review(lab2048.Record.of(game, "the <last>"))
    worst = review.worst(2)
    assert is_a_table(worst) and len(worst) == 2 and worst[0].regret >= worst[1].regret
    assert worst._repr_html_().count("<svg") == 2
    assert "the &lt;last&gt;" in review._repr_html_() and "<svg" in review._repr_html_()


# -- pages and pictures ------------------------------------------------------------------------


@pytest.mark.slow
def test_results_are_pages_and_pictures(result, solved_home, tmp_path):
    """What `--report`, `--plots`, `--html`, `--out` and `--tree` write."""
    page = lab2048.write_report(result, tmp_path / "page.html")
    text = page.read_text()
    assert "greedy" in text and "<svg" in text and f"Made by lab2048 {lab2048.__version__}" in text
    with pytest.raises(FileExistsError, match="force=True"):
        lab2048.write_report(result, page)
    lab2048.write_report([result], page, force=True, command=["evaluate", "<b>"])
    assert "<pre>lab2048 evaluate &#x27;&lt;b&gt;&#x27;</pre>" in page.read_text()
    plots = lab2048.write_plots(result, tmp_path / "plots")
    assert plots and all(path.name.startswith("3x2-") and path.exists() for path in plots)
    with pytest.raises(FileExistsError):
        lab2048.write_plots(result, tmp_path / "plots")
    record = lab2048.Record.of(lab2048.Game(lab2048.Rules(2, 2), seed=1), "me")
    text = lab2048.write_report(lab2048.review(record), tmp_path / "review.html").read_text()
    assert "<code>me</code> on 2x2" in text
    tree = lab2048.write_tree("2x2", tmp_path / "tree.svg")
    assert tree.read_text().startswith("<svg")
    with pytest.raises(ValueError, match="3x2 has too many states"):
        lab2048.write_tree("3x2", tmp_path / "large.svg")


@pytest.mark.slow
def test_a_survey_by_p4_is_a_table_with_a_picture(solved_home, tmp_path):
    told = []
    found = lab2048.survey_by_p4("2x2", [0, 0.1, 1], progress=lambda *facts: told.append(facts))
    assert is_a_table(found) and told[0][0].startswith("2x2-score-p4-0")
    assert [row["value"] for row in found.rows()] == pytest.approx([68.0, 66.9641494571, 136.0])
    assert [row["reach_32"] for row in found.rows()] == [
        each.reach.get(32, 0.0) for each in found.surveys
    ]
    (path,) = lab2048.write_plots(found, tmp_path)
    assert path.name == "p4.png"
    with pytest.raises(ValueError, match="at least one p4"):
        lab2048.survey_by_p4("2x2", [])


@pytest.mark.slow
def test_a_training_is_a_picture(own_home, tmp_path):
    run = lab2048.train.ntuple("2x2", episodes=300, block=100, out="x")
    assert lab2048.write_plots(run, tmp_path / "curve.svg") == [tmp_path / "curve.svg"]
    with pytest.raises(ValueError, match="a picture is"):
        lab2048.write_plots(run, tmp_path / "curve.txt")


@pytest.mark.slow
def test_a_tour_is_shown_on_one_page(monkeypatch, solved_home, tmp_path):
    """With players that are quick, on a board that is small."""
    from lab2048.report import tour as module

    monkeypatch.setattr(module, "SMALL", ("random", "corner", "optimal"))
    monkeypatch.setattr(module, "LARGE", ("random",))
    monkeypatch.setattr(module, "compiling", lambda: nullcontext(io.StringIO()))
    small = lab2048.Problem.of("2x2")
    monkeypatch.setattr(module, "Problem", SimpleNamespace(of=lambda board: small))
    seen = []
    found = lab2048.tour(tmp_path / "tour.html", games=20, on_result=seen.append)
    assert seen == list(found) and is_a_table(found) and len(found.rows()) == 4
    assert "random" in found.path.read_text()
    with pytest.raises(FileExistsError):
        lab2048.tour(found.path, games=20)


# -- boards and tables in a notebook -----------------------------------------------------------


def test_a_board_draws_itself():
    picture = lab2048.Board.parse("2 4 . / . 131072 . / 2 . .")._repr_svg_()
    assert picture.startswith("<svg") and picture.count("<rect") == 10
    assert re.findall(r"<text[^>]*>(\d+)</text>", picture) == ["2", "4", "131072", "2"]
    assert "<title>2 4 . / . 131072 . / 2 . .</title>" in picture


@pytest.mark.slow
def test_positions_tables_and_surveys_show_themselves(solved_home):
    shown = lab2048.probe("2 2 / 4 . / . .")._repr_html_()
    assert ("<svg" in shown and "blunder" in shown) or "best" in shown
    with lab2048.open_table("3x2") as table:
        assert "21,752" in table._repr_html_()
        assert "optimal play on 3x2" in lab2048.survey(table)._repr_html_()


@pytest.mark.slow
def test_nothing_is_replaced_unless_told(result_of_one, tmp_path):
    """The library raises plain errors, and asks nobody."""
    path = tmp_path / "games.jsonl"
    assert result_of_one.save_games(path) == 2
    path.write_text("dear to somebody")
    with pytest.raises(FileExistsError, match=r"`force=True` replaces it: .*games\.jsonl"):
        result_of_one.save_games(path)
    assert path.read_text() == "dear to somebody"
    assert result_of_one.save_games(path, force=True) == 2 and path.read_text() != ""


def test_errors_name_keywords_and_the_command_line_names_options(command, own_home):
    with pytest.raises(ValueError, match="a training lasts for `episodes`, `moves` or `minutes`"):
        lab2048.train.ntuple("2x2", out="x")
    code, _, err = command("train", "ntuple", "--board", "2x2", "--out", "x")
    assert code == 2 and err == "lab2048: a training lasts for --episodes, --moves or --minutes\n"


def test_library_errors_name_no_options():
    """Where there is no command line, `--force` means nothing; a whole command may be named."""
    package = Path(lab2048.__file__).parent
    wrong = []
    for path in package.rglob("*.py"):
        raised = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Raise)]
        texts = [ast.unparse(node) for node in raised if path.parent.name != "cli"]
        wrong += [f"{path.name}: {text}" for text in texts if re.search(r"[ '\"]--[a-z]", text)]
    assert [each for each in wrong if "lab2048 " not in each] == []


# -- mistakes ----------------------------------------------------------------------------------


def test_a_player_of_another_board_is_refused():
    small = lab2048.player("greedy", "2x2")
    with pytest.raises(ValueError, match="plays on 2x2"):
        lab2048.player(small, "3x3")
    with pytest.raises(TypeError, match="a spec, a Player or a function"):
        lab2048.player(3, "3x3")
    with pytest.raises(ValueError, match="given twice"):
        lab2048.evaluate(["greedy", "greedy"], "2x2")
    with pytest.raises(ValueError, match="no player to evaluate"):
        lab2048.evaluate([], "2x2")
