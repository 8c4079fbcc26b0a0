"""A network that teaches itself by search: self-play in the manner of AlphaZero, with chance.

Many games are played side by side. On every board a tree search with the network (`forest`) finds
how often each move deserves to be tried; a move is drawn by these visits. The network then learns

- the *policy*: moves that lose little, by the values that the search has found (`soft_shares`); or
  the shares of the visits, as in the papers (`soft` = 0);
- the *value of the state*: the lambda-return of what followed, with the values that searches have
  found for later states:  G(t) = r(t) + (1 - lambda) v(t + 1) + lambda G(t + 1) - luck(t);
- the *value of the afterstate* that the move led to: G(t) - r(t).

The luck of a spawn is what it changes in the eyes of the network: its value of the state that
followed, less the mean over all that could have. It is nothing on average, whatever the network
says, so returns without it are as right as with it; but they vary far less, for nothing else in the
game is left to chance. (Ours: in the papers it stays. `lucky` is for that.)

The loss is the sum of three: what is wrong with the policy (`learner.soft_loss`), and, with the
weight `worth`, the cross-entropies of both values, which are distributions over bins (`tower`).
With `bins` = 0 values are numbers and their losses squared errors. They are then in units of the
mean score of the games that were played lately: so they are about 1, however good the network has
become. When the unit changes, the last layer is changed too.

The network sees every board upright (`encoding.turn_upright`), so it plays all images alike.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812

from lab2048.board import Words
from lab2048.choice import legal_moves
from lab2048.learn.files import FILE, Facts, Shapes, Tensors, check_memory, write_tensors
from lab2048.learn.folder import Logs, Saver
from lab2048.learn.forest import Network, Singles
from lab2048.learn.learner import (
    Learner,
    asked,
    check_model,
    inputs,
    load_model,
    model_tensors,
    parameters,
    pick_device,
    soft_loss,
)
from lab2048.learn.selfplay import Lessons, SelfPlay, Settings
from lab2048.learn.tower import frozen

FACTS = {
    "board": str, "p4": float, "preset": str, "blocks": int, "channels": int, "head": int,
    "bins": int, "simulations": int, "games": int, "scale": float, "usual": float, "chunks": int,
    "moves": int, "games_played": int, "steps": int, "seconds": float, "threads": int,
    "begun": list, "seed": int, "following": int, "c1": float, "backup": str,
}  # fmt: skip
"""What a file says about a network."""
GAME = "game."
"""How the names of tensors begin that are positions and games."""
CHUNK = 32
"""Moves of each game between two trainings."""
SLOW = 0.9
"""How much of the mean score stays with every chunk."""
GATE_SEED = 1 << 30
"""Games that decide whether weights are kept are those of a seed of their own."""


# -- replay --------------------------------------------------------------------------------------


class Replay:
    """The last positions, in a ring."""

    def __init__(self, size: int) -> None:
        self.size, self.filled, self.following = size, 0, 0
        none = Lessons(
            np.zeros(0, np.uint64),
            np.zeros((0, 4), np.float32),
            np.zeros(0, np.float32),
            np.zeros(0, np.uint64),
            np.zeros(0, np.float32),
        )
        self._columns = {
            name: np.zeros((size, *each.shape[1:]), each.dtype)
            for name, each in none._asdict().items()
        }

    def add(self, new: Lessons) -> None:
        """Put positions in the place of the oldest."""
        places = (self.following + np.arange(len(new.states))) % self.size
        for name, each in new._asdict().items():
            self._columns[name][places] = each
        self.following = int((self.following + len(places)) % self.size)
        self.filled = min(self.size, self.filled + len(places))

    def sample(self, size: int, draw: np.random.Generator) -> Lessons:
        """Positions at random."""
        places = draw.integers(0, self.filled, size)
        return Lessons(**{name: each[places] for name, each in self._columns.items()})

    def tensors(self) -> Tensors:
        """The positions, as they are in the ring."""
        return {f"{GAME}{name}": each[: self.filled] for name, each in self._columns.items()}

    def load(self, tensors: Tensors, following: int) -> None:
        """Take positions that were stored; the next one goes to this place."""
        if not 0 <= following < self.size:
            raise ValueError(f"there is no place {following} among {self.size} positions")
        self.add(Lessons(*(tensors[f"{GAME}{name}"] for name in Lessons._fields)))
        self.following = following


# -- training ------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A part of a training: games played on, and learnt from."""

    moves: int
    scores: list[int]
    """Of games that are over."""
    losses: tuple[float, float, float]
    """Of the policy, the value of states, and that of afterstates."""
    playing: float
    """Seconds."""
    learning: float
    weights: tuple[int, int]
    """The oldest and the newest weights that games were played with: after so many chunks."""
    behind: int = 0
    """How many chunks had been learnt from since the oldest."""


class Games(NamedTuple):
    """Games that were played on, and what there is to learn from them."""

    lessons: list[Lessons]
    scores: list[int]
    """Of those that are over."""
    weights: tuple[int, int]


class StoppedError(Exception):
    """The training was told to end."""


class Best(NamedTuple):
    """The weights that are kept, and the median score that they have reached."""

    tensors: Tensors
    median: float
    scale: float


class Training:
    """A network that plays games with itself, and learns from them."""

    def __init__(self, settings: Settings, device: torch.device, threads: int = 1) -> None:
        self.settings = settings
        check_memory(settings.memory, "its games and positions")
        self.learner = Learner(settings.build(), device, settings.decay)
        games = max(1, settings.games // threads)
        self.crews = [SelfPlay(settings, games, settings.seed + k) for k in range(threads)]
        self.replay = Replay(settings.buffer)
        self.chunks = self.moves = self.games = 0
        """How often it has played and learnt; moves to learn from, and games that are over."""
        self.scale = 0.0
        """How many points a value of 1 is: 1 with bins; not known before the first game is over."""
        self.usual = 0.0
        """The mean score of games that were played lately."""
        self.best = Best(model_tensors(self.learner.model), -1.0, 0.0)
        self.seconds = 0.0
        self.stopped = False

    @property
    def size(self) -> int:
        """How many numbers it learns."""
        return parameters(self.learner.model)

    def chunk(self, share: float) -> Part:
        """Play on and learn; what that was like. The training is as far along as `share` says.

        If it is stopped while it plays, or fails, everything is as it was before.
        """
        began = time.perf_counter()
        temperature, rate = self.settings.at(share)
        marks = [crew.mark() for crew in self.crews]
        try:
            games = self.play(temperature)
        except BaseException as error:
            for crew, mark in zip(self.crews, marks, strict=True):
                crew.go_back(mark)
            if isinstance(error, StoppedError):
                return Part(0, [], (0.0, 0.0, 0.0), 0.0, 0.0, (self.chunks, self.chunks))
            raise
        for lessons in games.lessons:
            self.replay.add(lessons)
        new, scores = sum(len(lessons.states) for lessons in games.lessons), games.scores
        middle = time.perf_counter()
        if scores:
            mean = float(np.mean(scores))
            self.usual = SLOW * self.usual + (1 - SLOW) * mean if self.usual else mean
            self._rescale()
        losses = self._learn(new, rate)
        behind = self.chunks - games.weights[0]
        self.chunks += 1
        if self.settings.gate and self.chunks % self.settings.gate == 0:
            self._keep_if_better()
        end = time.perf_counter()
        self.seconds += end - began
        self.moves += new
        self.games += len(scores)
        return Part(new, scores, losses, middle - began, end - middle, games.weights, behind)

    def _rescale(self) -> None:
        """Let the scale follow the mean score of games; what values mean in points stays."""
        before = self.scale
        self.scale = 1.0 if self.settings.bins else max(1.0, self.usual)
        self._keep_points(before)

    def _keep_points(self, before: float) -> None:
        """Let the values of weights that were learnt at another scale mean the same in points."""
        if before and before != self.scale:
            with torch.no_grad():
                for parameter in self.learner.model.worths.parameters():
                    parameter.mul_(before / self.scale)

    def network(self) -> Network:
        """The network as it is now, as searches and players ask it."""
        return asked(frozen(self.learner.model), self.settings.rules, self.learner.device)

    def _careful(self) -> Network:
        """The network as it is now, which answers until the training is stopped."""
        network = self.network()

        def ask(boards: Words) -> tuple[Singles, Singles]:
            if self.stopped:
                raise StoppedError
            return network(boards)

        return ask

    def play(self, temperature: float) -> Games:
        """Play on in all games."""
        network = self._careful()

        def work(crew: SelfPlay) -> Lessons:
            torch.set_num_threads(1)  # of this thread
            crew.searches.scale, crew.usual = self.units
            return crew.play(network, CHUNK, temperature)

        with ThreadPoolExecutor(len(self.crews)) as pool:
            found = list(pool.map(work, self.crews))
        scores = [score for crew in self.crews for score in crew.take_scores()]
        return Games(found, scores, (self.chunks, self.chunks))

    @property
    def units(self) -> tuple[float, float]:
        """How many points a value of 1 is, and the mean score, as searches take them."""
        return self.scale or 1.0, max(1.0, self.usual)

    def _learn(self, new: int, rate: float) -> tuple[float, float, float]:
        """Learn from positions at random, as many as new ones ask for; the mean losses."""
        torch.set_num_threads(min(len(self.crews), os.cpu_count() or 1))
        draw = np.random.default_rng((self.settings.seed, self.chunks))
        self.learner.model.train()
        batch = self.settings.batch
        updates = round(self.settings.reuse * new / batch) if self.scale else 0
        losses = [self._update(self.replay.sample(batch, draw), rate) for _ in range(updates)]
        policy, state, after = np.mean(losses or [[0.0] * 3], axis=0).tolist()
        return policy, state, after

    def _update(self, lessons: Lessons, rate: float) -> list[float]:
        """Learn from some positions; the three losses before."""
        rules, device = self.settings.rules, self.learner.device
        size = len(lessons.states)
        boards = np.concatenate([lessons.states, lessons.afters])
        logits, worths = self.learner.model(inputs(boards, rules, device))
        legal = torch.from_numpy(legal_moves(lessons.states, rules)).to(device)
        masked = logits[:size].masked_fill(~legal, -1e9)
        wanted = torch.from_numpy(lessons.policy).to(device)
        policy = (soft_loss if self.settings.soft else F.cross_entropy)(masked, wanted)
        state, after = (
            self.learner.model.values.loss(found, torch.from_numpy(right / self.scale).to(device))
            for found, right in (
                (worths[:size, 0], lessons.worths),
                (worths[size:, 1], lessons.after_worths),
            )
        )
        self.learner.step(policy + self.settings.worth * (state + after), rate)
        return [policy.item(), state.item(), after.item()]

    def _keep_if_better(self) -> None:
        """Go on with what was learnt if the median of its games is better, else with the best.

        If it is stopped before that is known, it goes on with what was learnt.
        """
        games = SelfPlay(self.settings, self.settings.games, self.settings.seed + GATE_SEED)
        games.searches.scale = self.scale or 1.0
        try:
            median = float(np.median(games.play_out(self._careful())))
        except StoppedError:
            return
        if median > self.best.median:
            self.best = Best(model_tensors(self.learner.model), median, self.scale)
        else:
            load_model(self.learner.model, self.best.tensors)
            self._keep_points(self.best.scale)

    # -- stored --------------------------------------------------------------------------------

    @property
    def facts(self) -> Facts:
        """All that is known about it."""
        return {
            **self.settings.facts,
            "scale": self.scale,
            "usual": self.usual,
            "best_median": self.best.median,
            "best_scale": self.best.scale,
            "chunks": self.chunks,
            "moves": self.moves,
            "games_played": self.games,
            "steps": self.learner.steps,
            "seconds": self.seconds,
            "threads": len(self.crews),
            "begun": [crew.begun for crew in self.crews],
            "following": self.replay.following,
        }

    def tensors(self) -> Tensors:
        """All that it takes to go on, beside the facts."""
        found = self.learner.tensors() | self.replay.tensors()
        if self.settings.gate:
            found |= {f"{GAME}best.{name}": each for name, each in self.best.tensors.items()}
        for k, crew in enumerate(self.crews):
            found |= {f"{GAME}{k}.{name}": each for name, each in crew.tensors().items()}
        return found

    def resume(self, facts: Facts, tensors: Tensors) -> None:
        """Go on from what was stored."""
        self.learner.load(tensors, facts["steps"])
        self.replay.load(tensors, facts["following"])
        for k, crew in enumerate(self.crews):
            crew.load(tensors, f"{GAME}{k}.", facts["begun"][k])
        self.chunks, self.moves, self.games = facts["chunks"], facts["moves"], facts["games_played"]
        self.seconds, self.scale = facts["seconds"], facts["scale"]
        self.usual = facts["usual"]
        if self.settings.gate:
            prefix = f"{GAME}best."
            found = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
            self.best = Best(found, facts["best_median"], facts["best_scale"])


def check_stored(facts: Facts, shapes: Shapes) -> None:
    """A `ValueError` unless the weights in a file are those of the network that it tells of."""
    check_model(Settings.from_facts(facts).build, shapes)


def player_network(facts: Facts, tensors: Tensors, device: str) -> Network:
    """A network as searches and players ask it."""
    settings = Settings.from_facts(facts)
    model = settings.build()
    load_model(model, tensors)
    return asked(frozen(model), settings.rules, pick_device(device))


@dataclass(frozen=True)
class Goal:
    """How long a training lasts: so many moves to learn from, or so many seconds."""

    moves: int | None = None
    seconds: float | None = None

    def share(self, training: Training) -> float:
        """How much of it is done."""
        if self.moves is not None:
            return training.moves / self.moves
        assert self.seconds is not None
        return training.seconds / self.seconds


def run(
    training: Training,
    goal: Goal,
    folder: Path,
    *,
    block: float,
    tell: Callable[[Facts], object],
    say: Callable[[str], object],
    look: Callable[[], object],
    measure: Callable[[], Facts] | None = None,
) -> list[Facts]:
    """Train until the goal is reached, or it is stopped; the records of all parts.

    A part is the share `block` of the training. `tell` hears of each, `look` is called more often,
    and `measure` adds to what is logged. Whatever goes wrong, what was learnt is kept.
    """

    def write() -> None:
        write_tensors(folder / FILE, "zero", training.facts, training.tensors())

    logs, saver = Logs(folder, training.moves, say, "moves"), Saver(write, say)
    parts: list[Part] = []
    told = goal.share(training)
    with saver.to_the_end(logs):
        while goal.share(training) < 1 and not training.stopped:
            parts.append(training.chunk(goal.share(training)))
            look()
            share = goal.share(training)
            if share >= min(1.0, told + block) and not training.stopped:
                record = summary(training, parts)
                record.update(measure() if measure else {})
                logs.add(record)
                tell(record)
                told, parts = share, []
            if not training.stopped:
                saver.save_now_and_then()
    return logs.records


def summary(training: Training, parts: Sequence[Part]) -> Facts:
    """What is told about parts of a training."""
    moves = sum(part.moves for part in parts)
    scores = [score for part in parts for score in part.scores]
    losses = np.mean([part.losses for part in parts], axis=0).tolist()
    return {
        "moves": training.moves,
        "games": training.games,
        "seconds": round(training.seconds, 3),
        "mean": float(np.mean(scores)) if scores else training.usual,
        "block": len(scores),
        "policy_loss": losses[0],
        "state_loss": losses[1],
        "after_loss": losses[2],
        "moves_per_second": moves / sum(part.playing for part in parts),
        "learning": sum(part.learning for part in parts)
        / sum(part.playing + part.learning for part in parts),
        "weights": [min(p.weights[0] for p in parts), max(p.weights[1] for p in parts)],
        "behind": max(part.behind for part in parts),
    }
