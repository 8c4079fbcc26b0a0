"""Self-play: games that a network plays by search, and the training examples they give.

Many games are played side by side. On every board a search with the network (`batched_search`)
finds how often each move deserves to be tried, and a move is drawn by these visits. What followed
gives a *lesson* per position: the targets of the policy and of the values of the state and the
afterstate, which are lambda-returns (`returns`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lab2048.data.batches import soft_shares
from lab2048.engine.arrays import Counts, Flags, Floats, Singles, Words
from lab2048.engine.batch import begin_games, next_words, step_kernel
from lab2048.engine.jit import U
from lab2048.engine.packed import ON_IMAGE
from lab2048.engine.slides import OVERFLOW, table
from lab2048.engine.spawns import four_threshold
from lab2048.learn.batched_search import Found, Network, Searches
from lab2048.learn.encoding import slid, spawns, upright
from lab2048.learn.network_files import Tensors
from lab2048.learn.replay_buffer import Columns
from lab2048.learn.zero_settings import ZeroSettings
from lab2048.players.ties import legal_moves

UNTRIED = 4.0
"""The least loss, in units, of a move that was not tried (`untried`)."""
COLD = 0.02
"""Temperatures below this count as 0."""


# -- games ---------------------------------------------------------------------------------------


class Steps(NamedTuple):
    """One move in each game, or several stacked: position, search results, move and outcome.

    Games are the columns: one move has arrays of shape (games,), stacked moves (moves, games).
    """

    boards: Words
    policy: Singles
    values: Floats
    moves: Counts
    rewards: Counts
    luck: Floats
    """Of the spawn that followed."""
    over: Flags
    """Whether the game ended with the move."""


STEP_TYPES = ("uint64", "float32", "float64", "int64", "int64", "float64", "bool")
"""The types of the arrays in `Steps`."""


class SelfPlay:
    """The games of one thread."""

    def __init__(self, settings: ZeroSettings, games: int, seed: int) -> None:
        rules = settings.rules
        self.settings, self.rules, self.seed = settings, rules, seed
        self.searches = Searches(
            rules,
            games,
            settings.simulations,
            c1=settings.c1,
            c2=settings.c2,
            backup=settings.backup,
        )
        self._step = step_kernel(rules.rows, rules.cols)
        self._four = four_threshold(rules)
        self._tables = table(rules.cols), table(rules.rows)
        self.state = np.zeros((4, games), np.uint64)  # as in `begin_games`
        self.scores = np.zeros(games, np.int64)
        self.begun = 0
        self.usual = 1.0
        """The mean score of games."""
        self.last: list[Steps] = []
        """The last moves, which wait for those that follow."""
        self._finished: list[int] = []
        self._begin(np.ones(games, bool))

    def _begin(self, which: Flags) -> None:
        """Begin new games in some of the places."""
        count = int(which.sum())
        state = np.zeros((4, count), np.uint64)
        numbers = np.arange(self.begun, self.begun + count, dtype=np.uint64)
        begin_games(state, U(self.seed), numbers, self._four, self.rules.rows, self.rules.cols)
        self.state[:, which] = state
        self.begun += count
        self.scores[which] = 0

    def play(self, network: Network, moves: int, temperature: float) -> Lessons:
        """Make a number of moves in each game, and return lessons.

        The last moves of unfinished games wait for the next call, which tells how they go on.
        """
        draw = np.random.default_rng((self.seed, self.begun, int(self.state[3, 0])))
        before = len(self.last)
        parts = [*self.last, *(self._move(network, temperature, draw) for _ in range(moves))]
        self.last = parts[-self.settings.horizon :]
        return lessons_of(stacked(parts), self.settings, before)

    def play_out(self, network: Network) -> list[int]:
        """Play all games to their ends, without noise or temperature, and return their scores."""
        places = np.arange(self.state.shape[1])
        scores = np.zeros(len(places), np.int64)
        while len(places):
            words = np.empty(len(places), np.uint64)
            next_words(self.state[3], words)
            found = self.searches.search(self.state[0].copy(), words, network)
            scores[places] += self._step_all(choose(found.ranking, 0.0, np.empty(0)))
            stay = self.state[2] != 0
            self.state, places = np.ascontiguousarray(self.state[:, stay]), places[stay]
        return scores.tolist()

    def _step_all(self, moves: Counts) -> Counts:
        """Make a move in each game, and return the rewards. A tile above 32768 ends the game."""
        rewards = np.empty(len(moves), np.int64)
        self._step(self.state[:3], moves, self._four, *self._tables, rewards)
        self.state[2][rewards >= OVERFLOW] = 0
        return rewards & ~np.int64(OVERFLOW)

    def take_scores(self) -> list[int]:
        """Return the scores of games finished since the last call."""
        found, self._finished = self._finished, []
        return found

    def _move(self, network: Network, temperature: float, draw: np.random.Generator) -> Steps:
        """Make a move in each game."""
        settings, games = self.settings, self.state.shape[1]
        words = np.empty(games, np.uint64)
        next_words(self.state[3], words)
        noise = draw.gamma(settings.spread, size=(games, 4))
        boards = self.state[0].copy()
        found = self.searches.search(boards, words, network, noise, settings.noise)
        moves = choose(found.ranking, temperature, draw.random(games))
        policy = self._policy(found, boards)
        rewards = self._step_all(moves)
        over = self.state[2] == 0
        self.scores += rewards
        luck = np.zeros(games)
        if not settings.lucky:
            luck = self.luck(slid(boards, moves, self.rules), self.state[0], network)
        self._finished += self.scores[over].tolist()
        if over.any():
            self._begin(over)
        return Steps(boards, policy, found.values, moves, rewards, luck, over)

    def _policy(self, found: Found, boards: Words) -> Singles:
        """The policy targets, from search results: soft shares, or shares of visits."""
        if self.settings.soft == 0:
            visits: Singles = found.visits.astype(np.float32)
            return np.asarray(visits / visits.sum(axis=1, keepdims=True))
        unit = self.settings.soft * self.usual
        return soft_shares(untried(found.means, legal_moves(boards, self.rules), unit), unit)

    def luck(self, afters: Words, followed: Words, network: Network) -> Floats:
        """The luck, in points, of the spawns that led from afterstates to states."""
        states, chances, owners = spawns(afters, self.rules)
        worths = network(upright(states, self.rules)[0])[1][:, 0] * self.searches.scale
        worths[~legal_moves(states, self.rules).any(axis=1)] = 0.0
        mean = np.bincount(owners, chances * worths, len(afters))
        found = np.full(len(afters), np.nan)
        here = states == followed[owners]
        found[owners[here]] = worths[here]
        luck: Floats = np.nan_to_num(found - mean)  # NaN: a tile above 32768 ended the game
        return luck

    def mark(self) -> tuple[Any, ...]:
        """Return a snapshot of the games, for `go_back`."""
        return self.state.copy(), self.scores.copy(), self.begun, [*self.last], [*self._finished]

    def go_back(self, mark: tuple[Any, ...]) -> None:
        """Restore a snapshot of the games."""
        self.state, self.scores, self.begun, self.last, self._finished = mark

    def tensors(self) -> Tensors:
        """Return all that resuming needs, except the number of games begun."""
        found: Tensors = {"state": self.state, "scores": self.scores}
        if self.last:
            found |= {f"last.{name}": each for name, each in stacked(self.last)._asdict().items()}
        return found

    def load(self, tensors: Tensors, prefix: str, begun: int) -> None:
        """Resume from stored tensors; raise a `ValueError` if their types or shapes differ."""
        state, scores = tensors[f"{prefix}state"], tensors[f"{prefix}scores"]
        columns = []
        if f"{prefix}last.boards" in tensors:
            columns = [tensors[f"{prefix}last.{name}"] for name in Steps._fields]
        games = len(self.scores)
        wanted = [("uint64", (4, games)), ("int64", (games,))]
        found = [(each.dtype.name, each.shape) for each in (state, scores)]
        wanted += [(kind, (games,)) for kind in STEP_TYPES[: len(columns)]]
        found += [(each.dtype.name, each.shape[1:2]) for each in columns]
        if found != wanted:
            raise ValueError("its games are those of another training")
        self.state, self.scores, self.begun = state, scores, begun
        self.last = [Steps(*row) for row in zip(*columns, strict=True)]


def choose(ranking: Floats, temperature: float, draws: Floats) -> Counts:
    """One move per row, drawn in proportion to visits ** (1 / temperature); at 0 the best."""
    if temperature < COLD:
        return np.asarray(ranking.argmax(axis=1))
    visits = np.floor(ranking)
    shares = (visits / visits.max(axis=1, keepdims=True)) ** (1 / temperature)
    sums = shares.cumsum(axis=1)
    return np.asarray((sums <= draws[:, None] * sums[:, 3:]).sum(axis=1))


def untried(means: Floats, legal: Flags, unit: float) -> Floats:
    """Values of moves, with a low value for legal ones without visits (NaN).

    It is that of the worst move tried, or `UNTRIED` units below the best if that is lower.
    """
    best, worst = (pick(means, axis=1, keepdims=True) for pick in (np.nanmax, np.nanmin))
    bad = np.minimum(worst, best - UNTRIED * unit)
    return np.where(legal & np.isnan(means), bad, means)


# -- lessons -------------------------------------------------------------------------------------


class Lessons(NamedTuple):
    """Training examples: upright states and afterstates, and their targets."""

    states: Words
    policy: Singles
    worths: Singles
    """Values of the states, in points."""
    afters: Words
    after_worths: Singles


LESSON_COLUMNS: Columns = {
    "states": (np.uint64, ()),
    "policy": (np.float32, (4,)),
    "worths": (np.float32, ()),
    "afters": (np.uint64, ()),
    "after_worths": (np.float32, ()),
}
"""The columns of a replay buffer of lessons."""


def lessons_of(steps: Steps, settings: ZeroSettings, before: int = 0) -> Lessons:
    """The lessons of steps, of which the first `before` were in the previous call already.

    A step gives its lesson once its game is over, or has gone on for `horizon` moves.
    """
    ready = ended(steps.over)
    ready[: max(0, len(ready) - settings.horizon)] = True
    ready[:before] &= ~ended(steps.over[:before])  # these gave theirs when their games ended
    worths = returns(steps, settings.trace)[ready]
    boards, moves, rules = steps.boards[ready], steps.moves[ready], settings.rules
    states, which = upright(boards, rules)
    policy = np.empty((len(boards), 4), np.float32)
    np.put_along_axis(policy, ON_IMAGE[which], steps.policy[ready], axis=1)
    afters, _ = upright(slid(boards, moves, rules), rules)
    rest = worths - steps.rewards[ready]
    return Lessons(states, policy, worths.astype(np.float32), afters, rest.astype(np.float32))


def ended(over: Flags) -> Flags:
    """Whether the game of each step ends with it or with a later one."""
    return np.asarray(np.logical_or.accumulate(over[::-1], axis=0)[::-1])


def stacked(parts: Sequence[Steps]) -> Steps:
    """Stack steps along a new first axis."""
    return Steps(*(np.stack(each) for each in zip(*parts, strict=True)))


def returns(steps: Steps, trace: float) -> Floats:
    """The lambda-return of every step; at the last one, the value unless the game is over."""
    paid = steps.rewards - steps.luck
    found = np.where(steps.over, paid, steps.values)
    for t in range(len(found) - 2, -1, -1):
        ahead = (1 - trace) * steps.values[t + 1] + trace * found[t + 1]
        found[t] = paid[t] + np.where(steps.over[t], 0.0, ahead)
    return found
