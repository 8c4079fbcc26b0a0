"""Evaluate players against one another and against perfect play: functions and result types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab2048.game import Rules
from lab2048.game.randomness import checked_seed
from lab2048.measure import figures
from lab2048.measure.arena import Play, play_games, prepare, record_of
from lab2048.measure.figures import Progress, order, reach_rate
from lab2048.measure.journal import Played, journal_path
from lab2048.players.custom import Custom
from lab2048.players.player import Player
from lab2048.players.registry import PlayerLike, player
from lab2048.remote import cluster_at
from lab2048.solver.exact_value import check_exact
from lab2048.solver.tables import TableLike, table_answering
from lab2048.tabular import Grid, SingleRow, Tabular

Interval = tuple[float, float]


@dataclass(frozen=True)
class Difference(SingleRow):
    """The mean difference in score of two players, game by game with the same seeds.

    >>> Difference("one", "other", 2.0, (1.0, 3.0), 100).certain
    True
    """

    player: str
    against: str
    mean: float
    ci95: Interval | None
    """The 95% interval of the mean, by the bootstrap; None for a single game."""
    games: int

    @property
    def certain(self) -> bool:
        """Whether the interval excludes 0."""
        return self.ci95 is not None and not self.ci95[0] <= 0 <= self.ci95[1]

    def rows(self) -> list[dict[str, Any]]:
        """Return the one row."""
        low, high = self.ci95 or (None, None)
        row = {"player": self.player, "against": self.against, "mean": self.mean}
        row |= {"ci95_low": low, "ci95_high": high, "games": self.games, "certain": self.certain}
        return [row]


@dataclass(frozen=True)
class PlayerResult(SingleRow):
    """The results of one player.

    `figures` is what `lab2048 evaluate --json` prints about it, without the comparison with the
    first player; the properties are the main figures.

    >>> found = evaluate("greedy", "2x2", games=50, exact=True)[0]
    >>> found.player, round(found.exact, 3), round(found.regret_per_game, 3)
    ('greedy', 26.793, 40.171)
    """

    figures: dict[str, Any]
    played: Sequence[Played]
    """The games, in the order of their numbers."""
    entrant: Player

    @property
    def player(self) -> str:
        """The player's spec."""
        return str(self.figures["player"])

    @property
    def mean(self) -> float:
        """The mean score of the games."""
        return float(self.figures["score"]["mean"])

    @property
    def ci95(self) -> Interval | None:
        """The 95% interval of the mean score."""
        return _interval(self.figures["score"]["ci95"])

    @property
    def exact(self) -> float | None:
        """The exact mean score, if it was asked for."""
        return self.figures["exact"] and float(self.figures["exact"]["value"])

    @property
    def regret_per_game(self) -> float | None:
        """The expected score given away per game: exact if that is known, else from the games."""
        exact, judged = self.figures["exact"], self.figures["optimal"]
        if exact and exact["regret"] is not None:
            return float(exact["regret"])
        return judged and float(judged["regret_per_game"]["mean"])

    @property
    def agreement(self) -> float | None:
        """The share of moves that are optimal; None without a table."""
        return self.figures["optimal"] and float(self.figures["optimal"]["agreement"])

    def as_json(self) -> dict[str, Any]:
        """Return all figures."""
        return self.figures

    def rows(self) -> list[dict[str, Any]]:
        """Return the main figures as one row, as in `Evaluation.rows`."""
        return Evaluation([self]).rows()

    def reach(self, tile: int) -> float:
        """Return the share of games that made a tile."""
        return reach_rate(self.figures, tile)


class Evaluation(Tabular, Sequence[PlayerResult]):
    """The results of several players, in the order in which they were given.

    Index it by position, spec or `Player`; a function stands for the player made from it. It is a
    table (`to_csv`, `to_latex`, `to_markdown`, `to_json`), which a notebook displays.

    >>> result = evaluate(["greedy", "corner"], "2x2", games=50)
    >>> [row["player"] for row in result.rows()], result["corner"] is result[1]
    (['greedy', 'corner'], True)
    """

    def __init__(self, results: Sequence[PlayerResult]) -> None:
        self._results = list(results)

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[PlayerResult]:
        return iter(self._results)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, int | slice):
            return self._results[which]
        if function := _function_of(which):
            for each in self._results:
                if _function_of(each.entrant) is function:
                    return each
            raise self._missing(_name_of(which))
        spec = which.spec if isinstance(which, Player) else _name_of(which)
        with suppress(ValueError):  # the same player may be written in several ways
            spec = player(spec, self._results[0].entrant.rules).spec
        for each in self._results:
            if spec == each.player:
                return each
        raise self._missing(spec)

    def _missing(self, name: str) -> KeyError:
        """The error for a player that was not evaluated."""
        there = ", ".join(each.player for each in self._results)
        return KeyError(f"{name} was not evaluated; there is {there}")

    def compare(self, one: PlayerLike | int, other: PlayerLike | int) -> Difference:
        """Return by how much the first player's scores exceed the second's, on the same seeds."""
        first, second = self[one], self[other]
        found = figures.compare(first.played, second.played)
        return Difference(
            first.player, second.player, found["mean"], _interval(found["ci95"]), len(first.played)
        )

    def details(self) -> list[dict[str, Any]]:
        """Return all figures and scores of every player, and its difference from the first."""
        found = []
        for place, each in enumerate(self):
            result = {**each.figures, "scores": [game.score for game in each.played]}
            if place > 0:
                first = self._results[0]
                difference = figures.compare(each.played, first.played)
                result["paired"] = {"against": first.player, "difference": difference}
            found.append(result)
        return found

    def as_json(self) -> list[dict[str, Any]]:
        """Return what `lab2048 evaluate --json` prints: all figures except individual scores."""
        return [
            {name: value for name, value in each.items() if name != "scores"}
            for each in self.details()
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return the main figures of each player, and the shares of games that made each tile."""
        tiles = sorted({int(tile) for each in self for tile in each.figures["reach"]})
        return [
            {**_flat(each.figures), **{f"reach_{tile}": each.reach(tile) for tile in tiles}}
            for each in self
        ]

    def grid(self) -> Grid:
        """Return a table of mean scores with intervals, losses and agreement."""
        headings = ["player", "mean score", "95%", "loss per game", "agreement"]
        return Grid(headings, [_cells(each.figures) for each in self])

    def keep(self, command: Sequence[str]) -> Path:
        """Archive the results in the data folder, for the studio to show. Return the file."""
        from lab2048.measure.archive import keep_results

        return keep_results(self.details(), command)

    def forget(self) -> None:
        """Delete the journals of these games, which are only needed to resume."""
        for each in self:
            with suppress(OSError):
                journal_path(each.entrant, each.figures["seed"]).unlink(missing_ok=True)

    def save_games(self, path: Path | str, *, force: bool = False) -> int:
        """Write all games to a file (.jsonl, .parquet). Return the number of games written.

        An existing file is a `FileExistsError`, unless `force` says to replace it.
        """
        from lab2048.game.record import check_file, write_records

        check_file(Path(path), force)
        records = [
            record_of(each.entrant, each.figures["seed"], game)
            for each in self
            for game in each.played
        ]
        write_records(records, Path(path))
        return len(records)


def evaluate(  # noqa: PLR0913
    players: PlayerLike | Sequence[PlayerLike],
    board: str | Rules | None = None,
    *,
    p4: float | None = None,
    games: int = 100,
    seed: int = 1,
    table: TableLike = True,
    exact: bool | Collection[str] = False,
    threads: int | None = None,
    resumable: bool = False,
    progress: Progress = lambda what, done, total: None,
    play: Play = play_games,
    cluster: Any = None,
) -> Evaluation:
    """Play games with each player, and measure the players against each other and perfect play.

    A player is a spec such as `"expectimax:depth=2"`, a `Player`, or a function (see `player`).
    All play games 0, 1, ... of the same seed. `table` is the table to compare with: a `Table`, the
    name of one, True for that of the board if it is solved or small, False for none. `exact` asks
    for the exact mean score as well (of all players, or of those with these specs). If `resumable`,
    finished games are kept in a journal, so that the same call resumes an interrupted one;
    `Evaluation.forget` deletes the journal. `progress` is called with the name of the current step,
    the amount done, and the total. `cluster` is the address of a Ray cluster that plays the games,
    or an open connection (see `connect`); `play` is another function that plays them.

    >>> result = evaluate(["greedy", "random"], "2x2", games=200)
    >>> result["greedy"].mean > result["random"].mean
    True
    >>> result.compare("greedy", "random").certain
    True
    """
    several = isinstance(players, Sequence) and not isinstance(players, str)
    entrants = make_players(players if several else [players], board, p4, exact)  # type: ignore[list-item, arg-type]
    checked_seed(seed)
    with (
        table_answering(entrants[0].rules, table) as found,
        cluster_at(cluster, threads) as there,
    ):
        play = there.play if there else play
        more = {"table": found, "threads": threads, "progress": progress, "play": play}
        results = [
            _measured(each, games, seed, resumable, exact=_wanted(each, exact), **more)
            for each in entrants
        ]
    return Evaluation(results)


def _measured(entrant: Player, games: int, seed: int, resumable: bool, **more: Any) -> PlayerResult:
    """Measure one player."""
    journal = journal_path(entrant, seed) if resumable else None
    found = figures.measure(entrant, games, seed, journal=journal, **more)
    return PlayerResult(found.figures, found.games, entrant)


def compare(
    one: PlayerLike,
    other: PlayerLike,
    board: str | Rules | None = None,
    *,
    p4: float | None = None,
    games: int = 100,
    seed: int = 1,
    threads: int | None = None,
) -> Difference:
    """Play the same games with two players. Return by how much the first one's scores are higher.

    >>> found = compare("corner", "random", "3x2", games=300)
    >>> found.mean > 0 and found.certain
    True
    """
    result = evaluate(
        [one, other], board, p4=p4, games=games, seed=seed, table=False, threads=threads
    )
    return result.compare(0, 1)


def _wanted(entrant: Player, exact: bool | Collection[str]) -> bool:
    """Whether the exact mean of a player is wanted."""
    return exact if isinstance(exact, bool) else entrant.spec in exact


def make_players(
    players: Sequence[PlayerLike],
    board: str | Rules | None,
    p4: float | None = None,
    exact: bool | Collection[str] = False,
) -> list[Player]:
    """Return players that are all different and play by the same rules.

    A `ValueError` if there are none, two are the same, or an exact mean that cannot be computed is
    wanted.
    """
    known = next((each.rules for each in players if isinstance(each, Player)), None)
    rules = board or known or "4x4"
    entrants = [player(each, rules, p4=p4) for each in players]
    if not entrants:
        raise ValueError("there is no player to evaluate")
    entrants = _told_apart(entrants)
    if len({each.spec for each in entrants}) < len(entrants):
        raise ValueError("the same player is given twice")
    for each in entrants:
        if _wanted(each, exact):
            check_exact(each)
    return entrants


def _function_of(which: Any) -> Callable[..., Any] | None:
    """The function of a custom player, or `which` itself if it is a function; else None."""
    if isinstance(which, Custom):
        return which.function
    return which if callable(which) and not isinstance(which, Player) else None


def _name_of(which: Any) -> str:
    """The name of a player that is given as a spec or a function."""
    return getattr(which, "__name__", type(which).__name__) if callable(which) else str(which)


def _told_apart(entrants: Sequence[Player]) -> list[Player]:
    """Players with distinct specs for distinct functions: later ones of a name get a number."""
    functions: dict[str, list[object]] = {}
    found = []
    for each in entrants:
        if isinstance(each, Custom):
            known = functions.setdefault(each.spec, [each.function])
            if each.function not in known:
                known.append(each.function)
                each = replace(each, title=f"{each.spec}-{len(known)}")  # noqa: PLW2901
        found.append(each)
    return found


def prepared(
    entrants: Sequence[Player], say: Callable[[str], object], games: int, seed: int
) -> None:
    """Compile what players need, and report how many of their games are in a journal."""
    from lab2048.measure.journal import read_journal

    for each in entrants:
        prepare(each)  # compiling prints its own progress
        if before := len(read_journal(journal_path(each, seed), games)):
            say(f"{before:,} of {games:,} games of {each.spec} were played before")


# -- figures as texts ----------------------------------------------------------------------------


def _interval(ends: Sequence[float] | None) -> Interval | None:
    return None if ends is None else (float(ends[0]), float(ends[1]))


def _flat(result: dict[str, Any]) -> dict[str, Any]:
    """The main figures of a player in one row."""
    score, exact, optimal = result["score"], result["exact"] or {}, result["optimal"] or {}
    low, high = score["ci95"] or (None, None)
    return {
        **{name: result[name] for name in ("player", "board", "p4", "games", "seed")},
        "mean": score["mean"],
        "ci95_low": low,
        "ci95_high": high,
        **{name: score[name] for name in ("sd", "median", "min", "max")},
        "moves": result["moves"]["mean"],
        "exact_value": exact.get("value"),
        "exact_regret": exact.get("regret"),
        "regret_per_game": optimal["regret_per_game"]["mean"] if optimal else None,
        "agreement": optimal.get("agreement"),
    }


def loss_text(result: dict[str, Any]) -> str:
    """Return the score that a player gives away per game: exact (`=`), or from its games (`~`)."""
    exact = result["exact"] is not None
    lost = result["exact"]["regret"] if exact else result["optimal"]["regret_per_game"]["mean"]
    shown = "0.0" if abs(lost) < 1e-6 else f"{lost:,.1f}"  # the rounding of a table is no loss
    return f"{shown} {'=' if exact else '~'}"


def half_width(ends: Sequence[float] | None) -> str:
    """Return half the width of an interval."""
    return f"{(ends[1] - ends[0]) / 2:,.1f}" if ends else "-"


def _cells(result: dict[str, Any]) -> list[str]:
    """The row of a player as text."""
    ends, optimal = result["score"]["ci95"], result["optimal"]
    loss, _, mark = loss_text(result).partition(" ") if optimal else ("", "", "")
    return [
        result["player"],
        f"{result['score']['mean']:,.1f}",
        f"± {half_width(ends)}" if ends else "",
        f"≈ {loss}" if mark == "~" else loss,
        f"{100 * optimal['agreement']:.2f}%" if optimal else "",
    ]


def ranked(results: Sequence[dict[str, Any]]) -> list[int]:
    """Return the indices of players, best first: by the exact mean where it is known."""
    return sorted(range(len(results)), key=lambda place: order(results[place]))
