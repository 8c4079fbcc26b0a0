"""A network that teaches itself by search: self-play in the manner of AlphaZero, with chance.

Many games are played side by side. On every board a tree search with the network (`forest`) finds
how often each move deserves to be tried; a move is drawn by these visits. The network then learns

- the *policy*: the shares of the visits;
- the *value of the state*: the lambda-return of what followed, with the values that searches have
  found for later states:  G(t) = r(t) + (1 - lambda) v(t + 1) + lambda G(t + 1) - luck(t);
- the *value of the afterstate* that the move led to: G(t) - r(t).

The luck of a spawn is what it changes in the eyes of the network: its value of the state that
followed, less the mean over all that could have. It is nothing on average, whatever the network
says, so returns without it are as right as with it; but they vary far less, for nothing else in the
game is left to chance. (Ours: in the papers it stays. `lucky` is for that.)

The loss is the cross-entropy of the policy plus the squared errors of both values. Values are in
units of the mean score of the games that were played lately: so they are about 1, however good the
network has become. When the unit changes, the last layer is changed with it.

The network sees every board upright (`encoding.turn_upright`), so it plays all images alike.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils.fusion import fuse_conv_bn_eval

from lab2048 import chance
from lab2048.board import OVERFLOW, Words, table
from lab2048.game import Rules
from lab2048.jit import U
from lab2048.lanes import Counts, begin_games, next_words, step_kernel
from lab2048.learn.encoding import ON_IMAGE, legal_moves, planes, slid, spawns, upright
from lab2048.learn.files import FILE, Facts, Tensors, write_tensors
from lab2048.learn.folder import Logs, Saver
from lab2048.learn.forest import Network, Searches, Singles
from lab2048.learn.learner import (
    LAST_RATE,
    Learner,
    Planes,
    asked,
    inputs,
    load_model,
    model_tensors,
    parameters,
    pick_device,
)
from lab2048.player import Floats
from lab2048.wording import nearest

FACTS = {
    "board": str, "p4": float, "preset": str, "blocks": int, "channels": int, "head": int,
    "simulations": int, "games": int, "scale": float, "chunks": int, "moves": int,
    "games_played": int, "steps": int, "seconds": float, "threads": int, "begun": list, "seed": int,
    "following": int,
}  # fmt: skip
"""What a file says about a network."""
GAME = "game."
"""How the names of tensors begin that are positions and games."""
CHUNK = 32
"""Moves of each game between two trainings."""
COLD = 0.02
"""A temperature that is as good as 0."""
SLOW = 0.9
"""How much of the scale stays with every chunk."""
GATE_SEED = 1 << 30
"""Games that decide whether weights are kept are those of a seed of their own."""


# -- the network ---------------------------------------------------------------------------------


class Layer(nn.Module):
    """A convolution of 3x3 cells that keeps the board's size, and batch normalisation."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.convolution: nn.Module = nn.Conv2d(before, after, 3, padding=1, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(after)

    def forward(self, x: Tensor) -> Tensor:
        """Of the same shape, but for the channels."""
        found: Tensor = self.norm(self.convolution(x))
        return found


class Block(nn.Module):
    """Two layers, and what went in added to what comes out."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = Layer(channels, channels), Layer(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Of the same shape."""
        return F.relu(x + self.second(F.relu(self.first(x))))


class Tower(nn.Module):
    """A residual tower with two heads, each of a layer and a linear one."""

    def __init__(self, rules: Rules, channels: int, blocks: int, head: int) -> None:
        super().__init__()
        self.planes = Planes(rules)
        self.entry = Layer(planes(rules), channels)
        self.blocks = nn.ModuleList(Block(channels) for _ in range(blocks))
        self.policy, self.moves = Layer(channels, head), nn.Linear(head * rules.cells, 4)
        self.value, self.worths = Layer(channels, head), nn.Linear(head * rules.cells, 2)

    def forward(self, ranks: Tensor) -> tuple[Tensor, Tensor]:
        """The logits of the moves; and the values of the board, as a state and as an afterstate."""
        x = F.relu(self.entry(self.planes(ranks)))
        for block in self.blocks:
            x = block(x)
        policy, value = F.relu(self.policy(x)), F.relu(self.value(x))
        return self.moves(policy.flatten(1)), self.worths(value.flatten(1))


def frozen(model: nn.Module) -> nn.Module:
    """A copy to ask and not to teach, with every normalisation merged into its convolution."""
    found = copy.deepcopy(model).eval()
    for each in found.modules():
        if isinstance(each, Layer):
            each.convolution = fuse_conv_bn_eval(each.convolution, each.norm)  # type: ignore[type-var, arg-type]
            each.norm = nn.Identity()
    return found.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


# -- settings ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What a training depends on."""

    rules: Rules
    preset: str = "small"
    blocks: int = 3
    channels: int = 64
    head: int = 16
    """Channels of the layer of a head."""
    simulations: int = 20
    """Of each move in self-play."""
    games: int = 256
    """Side by side."""
    rate: float = 1e-3
    falling: bool = True
    """Whether the learning rate falls to a hundredth along half a cosine."""
    batch: int = 256
    reuse: float = 2.0
    """How often a position is learnt from, on average."""
    buffer: int = 1 << 19
    """Positions that are kept."""
    trace: float = 0.9
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
    c1: float = 0.3
    c2: float = 19652.0
    backup: str = "mean"
    """How searches value what is above a leaf (`forest`): best, or mean as in the papers."""
    seed: int = 1

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
        return {"board": self.rules.name, "p4": self.rules.p4, **found}

    @classmethod
    def from_facts(cls, facts: Facts) -> Settings:
        """The settings of a training that was stored."""
        rules = Rules.parse(facts["board"], facts["p4"])
        names = [each.name for each in fields(cls) if each.name != "rules"]
        return cls(rules, **{name: facts[name] for name in names})

    def build(self) -> Tower:
        """A new network, with weights that the seed decides."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return Tower(self.rules, self.channels, self.blocks, self.head)


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"blocks": 1, "channels": 16, "head": 8, "games": 64, "buffer": 1 << 16},
    "small": {},
    "paper": {
        "blocks": 10, "channels": 128, "head": 128, "rate": 3e-4, "falling": False, "batch": 1024,
        "games": 1024, "c1": 1.25, "warm": 1.0, "noise": 0.0, "lucky": True,
    },
    "zhou": {
        "blocks": 5, "channels": 64, "head": 32, "simulations": 1600, "rate": 3e-4, "games": 32,
        "falling": False, "c1": 1.0, "c2": math.inf, "warm": 0.0, "noise": 0.0, "trace": 1.0,
        "horizon": 1000, "gate": 4, "lucky": True,
    },
}  # fmt: skip
"""Settings by name. `paper` (Yamashita and others, 2022) and `zhou` (2019) have what the papers
print; what they do not print is ours, such as games, batches, and the network of `zhou`."""


# -- self-play -----------------------------------------------------------------------------------


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

        The last of them wait for the next time, which tells how they go on.
        """
        draw = np.random.default_rng((self.seed, self.begun, int(self.state[3, 0])))
        parts = [*self.last, *(self._move(network, temperature, draw) for _ in range(moves))]
        self.last = parts[-self.settings.horizon :]
        return lessons_of(stacked(parts), self.settings)

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
        policy = (found.visits / found.visits.sum(axis=1, keepdims=True)).astype(np.float32)
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

    def tensors(self) -> Tensors:
        """All that it takes to go on, but for the number of games that were begun."""
        found: Tensors = {"state": self.state, "scores": self.scores}
        if self.last:
            found |= {f"last.{name}": each for name, each in stacked(self.last)._asdict().items()}
        return found

    def load(self, tensors: Tensors, prefix: str, begun: int) -> None:
        """Go on from what was stored."""
        self.state, self.scores = tensors[f"{prefix}state"], tensors[f"{prefix}scores"]
        self.begun = begun
        if f"{prefix}last.boards" in tensors:
            columns = [tensors[f"{prefix}last.{name}"] for name in Steps._fields]
            self.last = [Steps(*row) for row in zip(*columns, strict=True)]


def choose(ranking: Floats, temperature: float, draws: Floats) -> Counts:
    """A move of each row, drawn in proportion to visits ** (1 / temperature); at 0 the best."""
    if temperature < COLD:
        return np.asarray(ranking.argmax(axis=1))
    visits = np.floor(ranking)
    shares = (visits / visits.max(axis=1, keepdims=True)) ** (1 / temperature)
    sums = shares.cumsum(axis=1)
    return np.asarray((sums <= draws[:, None] * sums[:, 3:]).sum(axis=1))


# -- replay --------------------------------------------------------------------------------------


class Lessons(NamedTuple):
    """Positions to learn from: upright states and afterstates, and what is right about them."""

    states: Words
    policy: Singles
    worths: Singles
    """What the states are worth, in points."""
    afters: Words
    after_worths: Singles


def lessons_of(steps: Steps, settings: Settings) -> Lessons:
    """What there is to learn from steps; the last ones only say how the others go on."""
    known = max(0, len(steps.boards) - settings.horizon)
    worths = returns(steps, settings.trace)[:known]
    boards, moves = steps.boards[:known].reshape(-1), steps.moves[:known].reshape(-1)
    rules = settings.rules
    states, which = upright(boards, rules)
    policy = np.empty((len(boards), 4), np.float32)
    np.put_along_axis(policy, ON_IMAGE[which], steps.policy[:known].reshape(-1, 4), axis=1)
    afters, _ = upright(slid(boards, moves, rules), rules)
    rest = worths - steps.rewards[:known]
    columns = (each.reshape(-1).astype(np.float32) for each in (worths, rest))
    return Lessons(states, policy, next(columns), afters, next(columns))


def stacked(parts: Sequence[Steps]) -> Steps:
    """Steps one after the other as one."""
    return Steps(*(np.stack(each) for each in zip(*parts, strict=True)))


def returns(steps: Steps, trace: float) -> Floats:
    """The lambda-return of every step; of the last, its value."""
    found = np.empty(steps.values.shape)
    found[-1] = steps.values[-1]
    for t in range(len(found) - 2, -1, -1):
        ahead = (1 - trace) * steps.values[t + 1] + trace * found[t + 1]
        found[t] = steps.rewards[t] + np.where(steps.over[t], 0.0, ahead) - steps.luck[t]
    return found


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
        self.add(Lessons(*(tensors[f"{GAME}{name}"] for name in Lessons._fields)))
        self.following = following


# -- training ------------------------------------------------------------------------------------


class Best(NamedTuple):
    """The weights that are kept, and the median score that they have reached."""

    tensors: Tensors
    median: float


class Training:
    """A network that plays games with itself, and learns from them."""

    def __init__(self, settings: Settings, device: torch.device, threads: int = 1) -> None:
        self.settings = settings
        self.learner = Learner(settings.build(), device, settings.decay)
        games = max(1, settings.games // threads)
        self.crews = [SelfPlay(settings, games, settings.seed + k) for k in range(threads)]
        self.replay = Replay(settings.buffer)
        self.chunks = self.moves = self.games = 0
        """How often it has played and learnt; moves to learn from, and games that are over."""
        self.scale = 0.0
        """How many points a value of 1 is; not known before the first game is over."""
        self.best = Best(model_tensors(self.learner.model), -1.0)
        self.seconds = 0.0
        self.stopped = False

    @property
    def size(self) -> int:
        """How many numbers it learns."""
        return parameters(self.learner.model)

    def chunk(self, share: float) -> Part:
        """Play on and learn; what that was like. The training is as far along as `share` says."""
        began = time.perf_counter()
        temperature, rate = self.settings.at(share)
        new, scores = self._play(temperature)
        middle = time.perf_counter()
        if scores:
            self._rescale(float(np.mean(scores)))
        losses = self._learn(new, rate)
        self.chunks += 1
        if self.settings.gate and self.chunks % self.settings.gate == 0:
            self._keep_if_better()
        end = time.perf_counter()
        self.seconds += end - began
        self.moves += new
        self.games += len(scores)
        return Part(new, scores, losses, middle - began, end - middle)

    def _rescale(self, mean: float) -> None:
        """Let the scale follow the mean score of games; what values mean in points stays."""
        before = self.scale
        self.scale = max(1.0, SLOW * before + (1 - SLOW) * mean if before else mean)
        if before:
            with torch.no_grad():
                for parameter in self.learner.model.worths.parameters():
                    parameter.mul_(before / self.scale)

    def network(self) -> Network:
        """The network as it is now, as searches and players ask it."""
        return asked(frozen(self.learner.model), self.settings.rules, self.learner.device)

    def _play(self, temperature: float) -> tuple[int, list[int]]:
        """Play on in all games: how many moves there are to learn from, and scores of games."""
        network = self.network()

        def work(crew: SelfPlay) -> Lessons:
            torch.set_num_threads(1)  # of this thread
            crew.searches.scale = self.scale or 1.0
            return crew.play(network, CHUNK, temperature)

        with ThreadPoolExecutor(len(self.crews)) as pool:
            found = list(pool.map(work, self.crews))
        for lessons in found:
            self.replay.add(lessons)
        scores = [score for crew in self.crews for score in crew.take_scores()]
        return sum(len(lessons.states) for lessons in found), scores

    def _learn(self, new: int, rate: float) -> tuple[float, float, float]:
        """Learn from positions at random, as many as new ones ask for; the mean losses."""
        torch.set_num_threads(len(self.crews))
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
        policy = F.cross_entropy(masked, torch.from_numpy(lessons.policy).to(device))
        state, after = (
            F.mse_loss(found, torch.from_numpy(right / self.scale).to(device))
            for found, right in (
                (worths[:size, 0], lessons.worths),
                (worths[size:, 1], lessons.after_worths),
            )
        )
        self.learner.step(policy + state + after, rate)
        return [policy.item(), state.item(), after.item()]

    def _keep_if_better(self) -> None:
        """Go on with what was learnt if the median of its games is better, else with the best."""
        games = SelfPlay(self.settings, self.settings.games, self.settings.seed + GATE_SEED)
        games.searches.scale = self.scale or 1.0
        scores = games.play_out(self.network())
        median = float(np.median(scores))
        if median > self.best.median:
            self.best = Best(model_tensors(self.learner.model), median)
        else:
            load_model(self.learner.model, self.best.tensors)

    # -- stored --------------------------------------------------------------------------------

    @property
    def facts(self) -> Facts:
        """All that is known about it."""
        return {
            **self.settings.facts,
            "scale": self.scale,
            "best_median": self.best.median,
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
        if self.settings.gate:
            prefix = f"{GAME}best."
            found = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
            self.best = Best(found, facts["best_median"])


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
    try:
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
    except BaseException:
        saver.rescue()
        raise
    finally:
        logs.close()
    saver.save_at_last()
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
        "mean": float(np.mean(scores)) if scores else 0.0,
        "block": len(scores),
        "policy_loss": losses[0],
        "state_loss": losses[1],
        "after_loss": losses[2],
        "moves_per_second": moves / sum(part.playing for part in parts),
        "learning": sum(part.learning for part in parts)
        / sum(part.playing + part.learning for part in parts),
    }
