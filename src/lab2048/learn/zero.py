"""A network that teaches itself by search: self-play in the manner of AlphaZero, with chance.

Many games are played side by side. On every board a tree search with the network
(`batched_search`) finds how often each move deserves to be tried, and a move is drawn by these
visits. The network then learns

- the *policy*: moves that lose little, by the values that the search has found (`soft_shares`); or
  the shares of the visits, as in the papers (`soft` = 0);
- the *value of the state*: the lambda-return of what followed, with the values that searches have
  found for later states:  G(t) = r(t) + (1 - lambda) v(t + 1) + lambda G(t + 1) - luck(t);
- the *value of the afterstate* that the move led to: G(t) - r(t).

The luck of a spawn is the network's value of the state that followed, less the mean over all states
that could have. Its expectation is 0, whatever the network says, so subtracting it leaves returns
unbiased; but their variance is far smaller, for nothing else in the game is left to chance. (The
papers do not subtract it; neither does `lucky`.)

The loss has three terms: that of the policy (`gradient.soft_loss`, or the cross-entropy with `soft`
= 0), and, with the weight `worth`, the cross-entropies of both values, which are distributions over
bins (`residual`). With `bins` = 0 values are numbers and their losses squared errors. They are then
in units of the mean score of recent games, and so about 1, however strong the network has become.
When the unit changes, the last layer is rescaled.

The network sees every board upright (`encoding.upright`), so it plays all images alike. Games and
their lessons are in `selfplay`, the settings and presets in `zero_settings`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from lab2048.engine.arrays import Singles, Words
from lab2048.game import Rules
from lab2048.learn.batched_search import Network
from lab2048.learn.checkpoint import Record
from lab2048.learn.gradient import inputs, load_model, model_tensors, soft_loss
from lab2048.learn.learner import GAME, Goal
from lab2048.learn.network_files import Tensors, check_memory
from lab2048.learn.neural import NeuralLearner
from lab2048.learn.replay_buffer import Replay
from lab2048.learn.residual import Tower, frozen
from lab2048.learn.selfplay import LESSON_COLUMNS, Lessons, SelfPlay
from lab2048.learn.settings import Facts
from lab2048.learn.zero_settings import ZeroSettings
from lab2048.players.ties import legal_moves

if TYPE_CHECKING:
    from lab2048.players.player import Player

CHUNK = 32
"""Moves per game and chunk, after which the network is trained."""
SLOW = 0.9
"""The decay of the running mean score, per chunk."""
GATE_SEED = 1 << 30
"""Added to the seed for the games that decide whether weights are kept."""


# -- training ------------------------------------------------------------------------------------


class Part(NamedTuple):
    """One chunk of training: games continued, and learnt from."""

    moves: int
    scores: list[int]
    """Of finished games."""
    losses: tuple[float, float, float]
    """Of the policy, the value of states, and that of afterstates."""
    playing: float
    """Seconds, as in `learning`."""
    learning: float
    weights: tuple[int, int]
    """The oldest and newest weights that games were played with, by the number of chunks before."""
    behind: int = 0
    """The number of chunks learnt from since the oldest weights."""


class Games(NamedTuple):
    """Games continued for a chunk, and their lessons."""

    lessons: list[Lessons]
    scores: list[int]
    """Of finished games."""
    weights: tuple[int, int]


class StoppedError(Exception):
    """Training was stopped."""


class Best(NamedTuple):
    """The best weights so far, the median score that they reached, and their scale."""

    tensors: Tensors
    median: float
    scale: float


class ZeroLearner(NeuralLearner[ZeroSettings]):
    """A network in training by self-play."""

    settings_class = ZeroSettings
    kind = "zero"
    needed: ClassVar = {
        "scale": float, "usual": float, "chunks": int, "moves": int, "games_played": int,
        "steps": int, "threads": int, "begun": list, "following": int,
    }  # fmt: skip
    same_threads = True
    exact_records, judged_as = "none", "bare"

    def __init__(self, settings: ZeroSettings, threads: int | None = None) -> None:
        check_memory(settings.memory, "its games and positions")
        super().__init__(settings, threads, decay=settings.decay)
        games = max(1, settings.games // self.threads)
        self.workers = [SelfPlay(settings, games, settings.seed + k) for k in range(self.threads)]
        self.replay = Replay(settings.buffer, LESSON_COLUMNS)
        self.chunks = self.games = 0
        """The numbers of chunks and of finished games."""
        self.scale = 0.0
        """Points per unit of value: 0 until the first game is over, then always 1 with bins."""
        self.usual = 0.0
        """The running mean score of recent games."""
        self.best = Best(model_tensors(self.net.model), -1.0, 0.0)
        self._parts: list[Part] = []
        """The chunks since the last record."""

    @property
    def moves(self) -> int:
        """The number of moves that became lessons."""
        return self.done

    def counts(self) -> dict[str, float]:
        """Return moves and games of self-play, and training steps."""
        return {"moves": self.done, "games": self.games, "steps": self.net.steps}

    def step(self, goal: Goal) -> None:
        """Play on and learn."""
        self._parts.append(self.chunk(goal.share(self)))

    def chunk(self, share: float) -> Part:
        """Play on and learn; return a summary. `share` is the part of the training that is done.

        If self-play is stopped or fails, the state from before is restored.
        """
        began = time.perf_counter()
        temperature, rate = self.settings.at(share)
        marks = [worker.mark() for worker in self.workers]
        try:
            games = self.play(temperature)
        except BaseException as error:
            for worker, mark in zip(self.workers, marks, strict=True):
                worker.go_back(mark)
            if isinstance(error, StoppedError):
                return Part(0, [], (0.0, 0.0, 0.0), 0.0, 0.0, (self.chunks, self.chunks))
            raise
        for lessons in games.lessons:
            self.replay.add(lessons._asdict())
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
        self.done += new
        self.games += len(scores)
        return Part(new, scores, losses, middle - began, end - middle, games.weights, behind)

    def _rescale(self) -> None:
        """Let the scale follow the mean score of games, keeping values in points the same."""
        before = self.scale
        self.scale = 1.0 if self.settings.bins else max(1.0, self.usual)
        self._keep_points(before)

    def _keep_points(self, before: float) -> None:
        """Rescale weights learnt at another scale, so that their values in points stay the same."""
        if before and before != self.scale:
            with torch.no_grad():
                for parameter in self.net.model.worths.parameters():
                    parameter.mul_(before / self.scale)

    @classmethod
    def in_play(cls, model: Tower) -> nn.Module:
        """Return a copy with faster inference."""
        return frozen(model)

    def _careful(self) -> Network:
        """Return the current network, which raises `StoppedError` once training is stopped."""
        network: Network = self.network()

        def ask(boards: Words) -> tuple[Singles, Singles]:
            if self.stopped:
                raise StoppedError
            return network(boards)

        return ask

    def play(self, temperature: float) -> Games:
        """Play on in all games."""
        network = self._careful()

        def work(worker: SelfPlay) -> Lessons:
            torch.set_num_threads(1)  # of this thread
            worker.searches.scale, worker.usual = self.units
            return worker.play(network, CHUNK, temperature)

        with ThreadPoolExecutor(len(self.workers)) as pool:
            found = list(pool.map(work, self.workers))
        scores = [score for worker in self.workers for score in worker.take_scores()]
        return Games(found, scores, (self.chunks, self.chunks))

    @property
    def units(self) -> tuple[float, float]:
        """The scale and the mean score that self-play uses, which are never 0."""
        return self.scale or 1.0, max(1.0, self.usual)

    def _learn(self, new: int, rate: float) -> tuple[float, float, float]:
        """Learn from random positions, `reuse` per new one, and return the mean losses."""
        torch.set_num_threads(min(len(self.workers), os.cpu_count() or 1))
        draw = np.random.default_rng((self.settings.seed, self.chunks))
        self.net.model.train()
        batch = self.settings.batch
        updates = round(self.settings.reuse * new / batch) if self.scale else 0
        losses = [
            self._update(Lessons(**self.replay.sample(batch, draw)), rate) for _ in range(updates)
        ]
        policy, state, after = np.mean(losses or [[0.0] * 3], axis=0).tolist()
        return policy, state, after

    def _update(self, lessons: Lessons, rate: float) -> list[float]:
        """Train on a batch of positions, and return the three losses from before the step."""
        rules, device = self.settings.rules, self.net.device
        size = len(lessons.states)
        boards = np.concatenate([lessons.states, lessons.afters])
        logits, worths = self.net.model(inputs(boards, rules, device))
        legal = torch.from_numpy(legal_moves(lessons.states, rules)).to(device)
        masked = logits[:size].masked_fill(~legal, -1e9)
        wanted = torch.from_numpy(lessons.policy).to(device)
        policy = (soft_loss if self.settings.soft else F.cross_entropy)(masked, wanted)
        state, after = (
            self.net.model.values.loss(found, torch.from_numpy(right / self.scale).to(device))
            for found, right in (
                (worths[:size, 0], lessons.worths),
                (worths[size:, 1], lessons.after_worths),
            )
        )
        self.net.step(policy + self.settings.worth * (state + after), rate)
        return [policy.item(), state.item(), after.item()]

    def _keep_if_better(self) -> None:
        """Keep the new weights if the median of their games is better, else return to the best.

        If training is stopped before that is known, the new weights stay.
        """
        games = SelfPlay(self.settings, self.settings.games, self.settings.seed + GATE_SEED)
        games.searches.scale = self.scale or 1.0
        try:
            median = float(np.median(games.play_out(self._careful())))
        except StoppedError:
            return
        if median > self.best.median:
            self.best = Best(model_tensors(self.net.model), median, self.scale)
        else:
            load_model(self.net.model, self.best.tensors)
            self._keep_points(self.best.scale)

    def record(self) -> Record:
        """Return a summary of play and learning since the last record."""
        parts, self._parts = self._parts, []
        scores = [score for part in parts for score in part.scores]
        losses = np.mean([part.losses for part in parts], axis=0).tolist()
        playing, learning = sum(p.playing for p in parts), sum(p.learning for p in parts)
        return {
            "games": self.games,
            "mean": float(np.mean(scores)) if scores else self.usual,
            "block": len(scores),
            "policy_loss": losses[0],
            "state_loss": losses[1],
            "after_loss": losses[2],
            "moves_per_second": sum(part.moves for part in parts) / playing,
            "learning": learning / (playing + learning),
            "weights": [min(p.weights[0] for p in parts), max(p.weights[1] for p in parts)],
            "behind": max(part.behind for part in parts),
        }

    # -- stored and played -----------------------------------------------------------------------

    @property
    def facts(self) -> Facts:
        """Metadata of the training run, JSON-serialisable."""
        return {
            **self.settings.facts,
            "scale": self.scale,
            "usual": self.usual,
            "best_median": self.best.median,
            "best_scale": self.best.scale,
            "chunks": self.chunks,
            "moves": self.done,
            "games_played": self.games,
            "steps": self.net.steps,
            "seconds": self.seconds,
            "threads": len(self.workers),
            "begun": [worker.begun for worker in self.workers],
            "following": self.replay.following,
        }

    def tensors(self) -> Tensors:
        """Return all that resuming needs, besides the metadata."""
        found = self.net.tensors() | self.replay.tensors()
        if self.settings.gate:
            found |= {f"{GAME}best.{name}": each for name, each in self.best.tensors.items()}
        for k, worker in enumerate(self.workers):
            found |= {f"{GAME}{k}.{name}": each for name, each in worker.tensors().items()}
        return found

    def resume(self, facts: Facts, tensors: Tensors) -> None:
        """Resume from stored metadata and tensors."""
        self.net.load(tensors, facts["steps"])
        self.replay.load(tensors, facts["following"])
        for k, worker in enumerate(self.workers):
            worker.load(tensors, f"{GAME}{k}.", facts["begun"][k])
        self.chunks, self.done, self.games = facts["chunks"], facts["moves"], facts["games_played"]
        self.seconds, self.scale = facts["seconds"], facts["scale"]
        self.usual = facts["usual"]
        if self.settings.gate:
            prefix = f"{GAME}best."
            found = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
            self.best = Best(found, facts["best_median"], facts["best_scale"])

    @classmethod
    def asking(cls, ask: Callable[[Words], Any], facts: Facts) -> Player:
        """Return the bare policy: the network's choice without search."""
        from lab2048.learn.neural_players import Loaded, Zero

        rules = Rules.parse(facts["board"], facts["p4"])
        return Zero(rules, given=Loaded(ask, facts), simulations=0)

    # -- told ------------------------------------------------------------------------------------

    def introduction(self) -> str:
        """Return a line on what is about to be trained."""
        settings = self.settings
        return (
            f"{settings.rules.name}, preset {settings.preset}, {self.size:,} weights; "
            f"{settings.simulations} simulations, {settings.games} games side by side, "
            f"seed {settings.seed}, on {self.net.device}"
        )

    @classmethod
    def line(cls, record: Record) -> str:
        """Return a record as text."""
        text = (
            f"{record['moves']:>11,} moves  {record['games']:>8,} games  "
            f"mean {record['mean']:>8,.0f}  {record['moves_per_second']:,.0f} moves/s  "
            f"losses {record['policy_loss']:.3f} {record['state_loss']:.5f} "
            f"{record['after_loss']:.5f}"
        )
        if record["behind"]:
            text += f"  weights up to {record['behind']} behind"
        if "bare" in record:
            bare = record["bare"]
            text += f"\n{'bare policy':>17}  mean {bare['mean']:,.0f} +/- "
            text += f"{(bare['ci95'][1] - bare['ci95'][0]) / 2:,.0f}  "
            text += f"agreement {100 * bare['agreement']:.1f}%"
        return text
