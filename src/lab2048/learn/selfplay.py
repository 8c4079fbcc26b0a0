"""Games that a network plays against chance, by search, and what there is to learn from them.

Many games are played side by side, and on every board a search with the network (`forest`) finds
how often each move deserves to be tried; a move is drawn by these visits. What followed gives a
*lesson* for each position: how likely the moves should be, and what the state and the afterstate
are worth, by lambda-returns (`returns`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lab2048 import chance
from lab2048.board import OVERFLOW, Words, table
from lab2048.choice import legal_moves
from lab2048.game import Rules
from lab2048.jit import U
from lab2048.lanes import Counts, begin_games, next_words, step_kernel
from lab2048.learn.encoding import ON_IMAGE, slid, soft_shares, spawns, upright
from lab2048.learn.files import Facts, Tensors
from lab2048.learn.forest import Found, Network, Searches, Singles
from lab2048.learn.learner import LAST_RATE, check_settings, checked_fields
from lab2048.learn.tower import Tower
from lab2048.player import Floats
from lab2048.wording import nearest

UNTRIED = 4.0
"""How many units a move that was not tried loses, at least (`untried`)."""
COLD = 0.02
"""A temperature that is as good as 0."""
RANGES = {
    "blocks": (0, 1000), "channels": (1, 4096), "head": (1, 4096), "bins": (0, 1 << 16),
    "simulations": (1, 100_000), "games": (1, 1 << 20), "batch": (1, 1 << 20),
    "buffer": (1, 1 << 32), "horizon": (1, 1 << 20), "gate": (0, 1 << 30), "reuse": (0, 1000),
}  # fmt: skip
"""What settings of a stored training may be: far more than is of use, and less than does harm."""
NODE, LESSON = 1 << 10, 40
"""Bytes that a node of a tree takes, about, and a position that is learnt from."""


# -- settings ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What a training depends on."""

    rules: Rules
    preset: str = "small"
    blocks: int = 1
    channels: int = 64
    head: int = 16
    """Channels of the layer of a head."""
    bins: int = 96
    """Of the distribution that a value is (`tower.Bins`); 0: it is a number, in units of the mean
    score of games."""
    simulations: int = 20
    """Of each move in self-play."""
    games: int = 256
    """Side by side."""
    rate: float = 3e-3
    falling: bool = True
    """Whether the learning rate falls to a hundredth along half a cosine."""
    batch: int = 256
    reuse: float = 4.0
    """How often a position is learnt from, on average."""
    buffer: int = 1 << 19
    """Positions that are kept."""
    worth: float = 0.25
    """How much the losses of values count beside that of the policy."""
    soft: float = 0.02
    """The policy learns from what moves lose: one that is worse by this share of the mean score is
    e times less right. 0: it learns the shares of visits, as in the papers."""
    trace: float = 0.8
    """The lambda of returns."""
    lucky: bool = False
    """Whether the luck of spawns stays in returns, as in the papers."""
    horizon: int = 16
    """Moves of a game that a return looks at, at least, if the game goes on for so long."""
    noise: float = 0.1
    """The share of noise in the priors of a root."""
    spread: float = 1.0
    """The parameter of the Dirichlet distribution that noise is drawn from."""
    warm: float = 0.2
    """The temperature at first; it falls to 0 in the course of the training."""
    gate: int = 0
    """After so many chunks weights are kept only if the median of games is better; 0: always."""
    decay: float = 1e-5
    """How fast weights shrink by themselves."""
    c1: float = 0.2
    c2: float = 19652.0
    backup: str = "best"
    """How searches value what is above a leaf (`forest`): best, or mean as in the papers."""
    seed: int = 1

    def __post_init__(self) -> None:
        check_settings(self.rate, self.seed)

    @classmethod
    def of(cls, rules: Rules, preset: str = "small", **more: Any) -> Settings:
        """The settings of a preset, some of them changed."""
        if preset not in PRESETS:
            raise ValueError(f"there is no preset {preset[:40]!r}; {nearest(preset, PRESETS)}")
        return cls(rules, preset, **{**PRESETS[preset], **more})

    def at(self, share: float) -> tuple[float, float]:
        """Temperature and learning rate when so much of the training is done."""
        share = min(1.0, share)
        left = LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * share)) / 2
        return self.warm * (1 - share), self.rate * (left if self.falling else 1.0)

    @property
    def facts(self) -> Facts:
        """The settings as they are stored."""
        found = asdict(self)
        del found["rules"]
        if math.isinf(self.c2):  # which JSON does not know
            found["c2"] = None
        return {"board": self.rules.name, "p4": self.rules.p4, **found}

    @classmethod
    def from_facts(cls, facts: Facts) -> Settings:
        """The settings of a training that was stored."""
        rules = Rules.parse(facts["board"], facts["p4"])
        c2 = math.inf if facts["c2"] is None else facts["c2"]
        return cls(rules, **checked_fields(cls, {**facts, "c2": c2}, RANGES))

    @property
    def memory(self) -> int:
        """How many bytes trees and positions of a training take, about."""
        return NODE * self.games * (self.simulations + 1) + LESSON * self.buffer

    def build(self) -> Tower:
        """A new network, with weights that the seed decides."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return Tower(self.rules, self.channels, self.blocks, self.head, self.bins)


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"blocks": 1, "channels": 16, "head": 8, "games": 64, "buffer": 1 << 16},
    "small": {},
    "paper": {
        "blocks": 10, "channels": 128, "head": 128, "rate": 3e-4, "falling": False, "batch": 1024,
        "games": 1024, "c1": 1.25, "warm": 1.0, "noise": 0.0, "lucky": True, "backup": "mean",
        "reuse": 2.0, "soft": 0.0, "worth": 1.0,
    },
    "zhou": {
        "blocks": 5, "channels": 64, "head": 32, "simulations": 1600, "rate": 3e-4, "games": 32,
        "falling": False, "c1": 1.0, "c2": math.inf, "warm": 0.0, "noise": 0.0, "trace": 1.0,
        "horizon": 1000, "gate": 4, "lucky": True, "bins": 0, "soft": 0.0,
        "backup": "mean", "reuse": 2.0, "worth": 1.0,
    },
}  # fmt: skip
"""Settings by name. `paper` (Yamashita and others, 2022) and `zhou` (2019) have what the papers
print; what they do not print is ours, such as games, batches, and the network of `zhou`."""


# -- games ---------------------------------------------------------------------------------------


class Steps(NamedTuple):
    """Moves of games side by side: of each, what was seen and what came of it, in rows of games."""

    boards: Words
    policy: Singles
    values: Floats
    moves: Counts
    rewards: Counts
    luck: Floats
    """Of the spawn that followed."""
    over: NDArray[np.bool_]
    """Whether the game ended with the move."""


STEP_TYPES = ("uint64", "float32", "float64", "int64", "int64", "float64", "bool")
"""What the arrays of steps hold."""


class SelfPlay:
    """Games of one thread."""

    def __init__(self, settings: Settings, games: int, seed: int) -> None:
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
        self._four = np.array(chance.four_threshold(rules.p4), np.uint64)
        self._tables = table(rules.cols), table(rules.rows)
        self.state = np.zeros((4, games), np.uint64)  # as that of `lanes.begin_games`
        self.scores = np.zeros(games, np.int64)
        self.begun = 0
        self.usual = 1.0
        """The mean score of games."""
        self.last: list[Steps] = []
        """Moves that wait for what follows them."""
        self._finished: list[int] = []
        self._begin(np.ones(games, bool))

    def _begin(self, which: NDArray[np.bool_]) -> None:
        """Begin new games."""
        count = int(which.sum())
        state = np.zeros((4, count), np.uint64)
        numbers = np.arange(self.begun, self.begun + count, dtype=np.uint64)
        begin_games(state, U(self.seed), numbers, self._four, self.rules.rows, self.rules.cols)
        self.state[:, which] = state
        self.begun += count
        self.scores[which] = 0

    def play(self, network: Network, moves: int, temperature: float) -> Lessons:
        """Make so many moves in each game; what there is to learn.

        The last moves of games that go on wait for the next time, which tells how they do.
        """
        draw = np.random.default_rng((self.seed, self.begun, int(self.state[3, 0])))
        before = len(self.last)
        parts = [*self.last, *(self._move(network, temperature, draw) for _ in range(moves))]
        self.last = parts[-self.settings.horizon :]
        return lessons_of(stacked(parts), self.settings, before)

    def play_out(self, network: Network) -> list[int]:
        """The score of one game in each place, played without noise or temperature."""
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
        """Make a move in each game; the rewards. A tile above 32768 ends the game."""
        rewards = np.empty(len(moves), np.int64)
        self._step(self.state[:3], moves, self._four, *self._tables, rewards)
        self.state[2][rewards >= OVERFLOW] = 0
        return rewards & ~np.int64(OVERFLOW)

    def take_scores(self) -> list[int]:
        """The scores of games that are over, once."""
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
        """How likely moves should be, by what searches have found: soft shares, or visits."""
        if self.settings.soft == 0:
            visits: Singles = found.visits.astype(np.float32)
            return np.asarray(visits / visits.sum(axis=1, keepdims=True))
        unit = self.settings.soft * self.usual
        return soft_shares(untried(found.means, legal_moves(boards, self.rules), unit), unit)

    def luck(self, afters: Words, followed: Words, network: Network) -> Floats:
        """What the spawns were worth, in points, that led from afterstates to states."""
        states, chances, owners = spawns(afters, self.rules)
        worths = network(upright(states, self.rules)[0])[1][:, 0] * self.searches.scale
        worths[~legal_moves(states, self.rules).any(axis=1)] = 0.0
        mean = np.bincount(owners, chances * worths, len(afters))
        found = np.full(len(afters), np.nan)
        here = states == followed[owners]
        found[owners[here]] = worths[here]
        luck: Floats = np.nan_to_num(found - mean)  # a tile above 32768 ended the game
        return luck

    def mark(self) -> tuple[Any, ...]:
        """Where the games are now, to come back to."""
        return self.state.copy(), self.scores.copy(), self.begun, [*self.last], [*self._finished]

    def go_back(self, mark: tuple[Any, ...]) -> None:
        """Be where the games were, as if nothing had happened since."""
        self.state, self.scores, self.begun, self.last, self._finished = mark

    def tensors(self) -> Tensors:
        """All that it takes to go on, but for the number of games that were begun."""
        found: Tensors = {"state": self.state, "scores": self.scores}
        if self.last:
            found |= {f"last.{name}": each for name, each in stacked(self.last)._asdict().items()}
        return found

    def load(self, tensors: Tensors, prefix: str, begun: int) -> None:
        """Go on from what was stored; a `ValueError` if it is of other games than these."""
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
    """A move of each row, drawn in proportion to visits ** (1 / temperature); at 0 the best."""
    if temperature < COLD:
        return np.asarray(ranking.argmax(axis=1))
    visits = np.floor(ranking)
    shares = (visits / visits.max(axis=1, keepdims=True)) ** (1 / temperature)
    sums = shares.cumsum(axis=1)
    return np.asarray((sums <= draws[:, None] * sums[:, 3:]).sum(axis=1))


def untried(means: Floats, legal: NDArray[np.bool_], unit: float) -> Floats:
    """Values of moves, in which legal ones without visits (NaN) count as the worst.

    That is as bad as the worst that was tried, and `UNTRIED` units worse than the best at least.
    """
    best, worst = (pick(means, axis=1, keepdims=True) for pick in (np.nanmax, np.nanmin))
    bad = np.minimum(worst, best - UNTRIED * unit)
    return np.where(legal & np.isnan(means), bad, means)


# -- lessons -------------------------------------------------------------------------------------


class Lessons(NamedTuple):
    """Positions to learn from: upright states and afterstates, and what is right about them."""

    states: Words
    policy: Singles
    worths: Singles
    """What the states are worth, in points."""
    afters: Words
    after_worths: Singles


def lessons_of(steps: Steps, settings: Settings, before: int = 0) -> Lessons:
    """What there is to learn from steps, the first of which were looked at before.

    A step waits until its game is over, or has gone on for `horizon` moves.
    """
    ready = ended(steps.over)
    ready[: max(0, len(ready) - settings.horizon)] = True
    ready[:before] &= ~ended(steps.over[:before])  # learnt from when their games ended
    worths = returns(steps, settings.trace)[ready]
    boards, moves, rules = steps.boards[ready], steps.moves[ready], settings.rules
    states, which = upright(boards, rules)
    policy = np.empty((len(boards), 4), np.float32)
    np.put_along_axis(policy, ON_IMAGE[which], steps.policy[ready], axis=1)
    afters, _ = upright(slid(boards, moves, rules), rules)
    rest = worths - steps.rewards[ready]
    return Lessons(states, policy, worths.astype(np.float32), afters, rest.astype(np.float32))


def ended(over: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of each step: whether its game ends with it or with a later one."""
    return np.asarray(np.logical_or.accumulate(over[::-1], axis=0)[::-1])


def stacked(parts: Sequence[Steps]) -> Steps:
    """Steps one after the other as one."""
    return Steps(*(np.stack(each) for each in zip(*parts, strict=True)))


def returns(steps: Steps, trace: float) -> Floats:
    """The lambda-return of every step; of the last ones, their values unless games are over."""
    paid = steps.rewards - steps.luck
    found = np.where(steps.over, paid, steps.values)
    for t in range(len(found) - 2, -1, -1):
        ahead = (1 - trace) * steps.values[t + 1] + trace * found[t + 1]
        found[t] = paid[t] + np.where(steps.over[t], 0.0, ahead)
    return found
