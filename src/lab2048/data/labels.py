"""Labels: boards with the value of each move, and a weight.

The values are those of a player, on boards of its own games or of another player's; or they are
*perfect*: for a solved board, every state that games of some player reach, weighted by how often
they do. The player of the games may be a network whose mistakes are to be corrected. It may make
random moves now and then, so that positions after a mistake are learnt too.

The file is Parquet with the columns `board` (packed), `weight`, `best` (a mask of the best moves:
bit d for direction d), and `q0` to `q3`, the value of each move, NaN if it is illegal. Perfect
labels hold only the canonical image of each board if the player is symmetric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab2048.data.batches import Batch, soft_shares
from lab2048.data.moves import make_moves
from lab2048.data.parquet import (
    LABELS,
    Columns,
    DataError,
    read_facts,
    read_group,
    write_parquet,
)
from lab2048.engine.arrays import Bytes, Counts, Flags, Floats, Singles, Words
from lab2048.engine.batch import next_words
from lab2048.game import Rules
from lab2048.game.notation import short
from lab2048.measure.arena import Play, play_games
from lab2048.players.player import Moves, Player
from lab2048.players.ties import legal_moves, shares
from lab2048.solver.exact_value import evaluate_policy
from lab2048.solver.optimal import even_out
from lab2048.solver.policy_walk import Layer
from lab2048.solver.problem import Problem
from lab2048.solver.table import Table
from lab2048.solver.tables import check_answers

LIKELY = 1e-7
"""Default probability of being reached below which a state is left out."""
Q = ("q0", "q1", "q2", "q3")
COLUMNS = {"board": "u8", "weight": "f4", "best": "u1", **dict.fromkeys(Q, "f4")}
WORST, SMALLEST = -1e30, float(np.finfo(np.float32).tiny)
"""Lower bounds of values and weights: some players value a move at minus infinity."""
TOGETHER = 1 << 17
"""Boards per call of a teacher, at least."""
ASTRAY = np.uint64(0x6173747261792121)


@dataclass(frozen=True, eq=False)
class Astray(Player):
    """A player that makes a random move with probability `random`."""

    player: Player
    random: float
    name = "astray"

    @property
    def draws(self) -> bool:
        return True

    @property
    def together(self) -> int:
        return self.player.together

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.random <= 1:
            raise ValueError(f"`random` is a probability, from 0 to 1, not {short(self.random)}")

    def prepare(self) -> None:
        self.player.prepare()

    def choose_many(self, boards: Words, words: Words) -> Moves:
        chosen = self.player.choose_many(boards, words)
        if self.random == 0:
            return chosen
        drawn = np.empty((2, len(words)), np.uint64)
        for row in drawn:  # words of their own, not those that the player has used
            words = words ^ ASTRAY
            next_words(words, row)
        astray = drawn[0] / 2**64 < self.random
        legal = legal_moves(boards, self.rules)
        which = (drawn[1] % np.maximum(legal.sum(axis=1), 1).astype(np.uint64)).astype(np.int64)
        others = (legal.cumsum(axis=1) > which[:, None]).argmax(axis=1)
        return np.where(astray, others, chosen)

    @property
    def symmetric(self) -> bool:
        return self.player.symmetric

    @property
    def parallel(self) -> bool:
        return self.player.parallel

    def probabilities(self, boards: Words) -> Floats:
        legal = legal_moves(boards, self.rules)
        even = legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)
        found: Floats = (1 - self.random) * self.player.probabilities(boards) + self.random * even
        return found


def judged(teacher: Player, boards: Words) -> Floats:
    """The values of all moves on boards."""
    return teacher.values_many(boards, np.zeros_like(boards))


Judge = Callable[[Player, Words], Floats]
"""The signature of `judged`, for functions that judge boards elsewhere."""


def write_labels(  # noqa: PLR0913
    path: Path,
    walker: Astray,
    teacher: Player,
    size: int,
    *,
    first: int | None = None,
    seed: int = 1,
    threads: int | None = None,
    progress: Callable[[int], object] = lambda moves: None,
    play: Play = play_games,
    judge: Judge = judged,
) -> int:
    """Write `size` boards of games with a teacher's values. Return the number written.

    The teacher may be the player itself, or a better one that corrects it. Only the `first` moves
    of each game count. `play` and `judge` may play games and judge boards elsewhere.
    """
    rules = walker.rules

    def parts() -> Iterator[Columns]:
        games = make_moves(walker, size, seed, threads, progress, first, play)
        for boards in gathered(game.boards for game in games):
            values = judge(teacher, boards)
            best = shares(values, True, teacher.tie) > 0
            yield columns_of(boards, np.ones(len(values)), values, best)

    facts = {
        "values": teacher.spec, "player": walker.player.spec, "random": walker.random,
        "first": first, "seed": seed,
    }  # fmt: skip
    about = {"kind": LABELS, "board": rules.name, "p4": rules.p4, **facts}
    return write_parquet(path, parts(), about)


def gathered(parts: Iterable[Words]) -> Iterator[Words]:
    """Boards in batches of `TOGETHER` or a little more, which a teacher judges faster."""
    waiting: list[Words] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) >= TOGETHER:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def columns_of(boards: Words, weights: Floats, q: Floats, best: Flags) -> Columns:
    """Labels as columns of a file."""
    masks = (best << np.arange(4)).sum(axis=1).astype(np.uint8)
    values = {name: np.maximum(q[:, k], WORST).astype(np.float32) for k, name in enumerate(Q)}
    weight = np.maximum(weights, SMALLEST).astype(np.float32)
    return {"board": boards, "weight": weight, "best": masks, **values}


def write_perfect(
    path: Path,
    table: Table,
    player: Player,
    *,
    random: float = 0.0,
    likely: float = LIKELY,
    threads: int | None = None,
    progress: Callable[[int], object] = lambda age: None,
) -> int:
    """Write perfect labels of the states that a player's games reach. Return their number.

    The player makes a random move with probability `random`. States reached with a probability
    below `likely` are left out. `progress` is called with every age.
    """
    check_answers(table, Problem.of(player.rules))
    parts: list[Columns] = []

    def label(layer: Layer) -> None:
        """Label the states of an age."""
        keep = layer.chances.any(axis=1) & (layer.masses >= likely)
        states = layer.states[keep]
        if len(states):
            q = table.probe_many(states, threads=threads).q
            assert q is not None
            best = even_out(q, table.tolerance) >= np.nanmax(q, axis=1, keepdims=True)
            parts.append(columns_of(states, layer.masses[keep], q, best))
        progress(layer.age)

    evaluate_policy(Astray(player.rules, player, random), threads=threads, visit=label)
    rules = player.rules
    facts = {"values": "perfect", "player": player.spec, "random": random, "likely": likely}
    about = {"kind": LABELS, "board": rules.name, "p4": rules.p4, **facts}
    return write_parquet(path, parts, about)


class Labels(NamedTuple):
    """Labels in memory."""

    boards: Words
    weights: Singles
    best: Bytes
    q: Singles


def read_labels(path: Path, rules: Rules) -> Labels:
    """The labels in a file; a `DataError` if it has none, or those of another board."""
    facts = read_facts(path, LABELS)
    if facts["board"] != rules.name:
        raise DataError(f"{path} has labels of {facts['board']}, not {rules.name}")
    groups = [read_group(path, group, COLUMNS) for group in range(len(facts["groups"]))]
    if not groups:
        raise DataError(f"{path} has no states")
    columns: dict[str, NDArray[Any]] = {
        name: np.concatenate([each[name] for each in groups]) for name in COLUMNS
    }
    q = np.stack([columns.pop(name) for name in Q], axis=1)
    found = Labels(columns["board"], columns["weight"], columns["best"], q)
    _check(path, found, rules)
    return found


def joined(parts: Sequence[Labels]) -> Labels:
    """The labels of several files, each file weighted by its number of boards."""
    even = [each._replace(weights=each.weights / each.weights.mean()) for each in parts]
    return Labels(*(np.concatenate(each) for each in zip(*even, strict=True)))


def _check(path: Path, labels: Labels, rules: Rules) -> None:
    """Raise a `DataError` that names the first invalid row, if there is one."""
    inside = labels.boards >> np.uint64(4 * rules.cells) == 0
    legal = legal_moves(np.where(inside, labels.boards, 0), rules)
    masks = (legal << np.arange(4)).sum(axis=1).astype(np.uint8)
    good = inside & (labels.best > 0) & (labels.best & ~masks == 0)
    good &= np.isfinite(labels.weights) & (labels.weights > 0)
    good &= (np.isfinite(labels.q) == legal).all(axis=1)
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        raise DataError(
            f"{path}, row {row + 1}: board {labels.boards[row]:#x} with the best moves "
            f"{labels.best[row]:#06b} and weight {labels.weights[row]:g} is no label"
        )


def drawn(
    labels: Labels, size: int, seed: int, epoch: int, soft: float | None = None
) -> Iterator[Batch]:
    """Yield an epoch of batches: as many boards as there are labels, drawn by their weights.

    The target is equal shares of the best moves; or, with `soft`, shares of all legal moves
    proportional to exp(q / soft), so that confusing moves of similar value costs little.
    """
    draw = np.random.default_rng((seed, epoch))
    count = len(labels.boards)
    if labels.weights.min() == labels.weights.max():
        order = draw.permutation(count)
    else:
        ends = np.cumsum(labels.weights, dtype=np.float64)
        order = np.searchsorted(ends, draw.random(count) * ends[-1], side="right")
        order = np.minimum(order, count - 1)
    for begin in range(0, count, size):
        rows = order[begin : begin + size]
        yield Batch(labels.boards[rows], shares_of(labels, rows, soft))


def shares_of(labels: Labels, rows: Counts, soft: float | None) -> Singles:
    """Target probabilities of the moves on some boards."""
    if soft is not None:
        return soft_shares(labels.q[rows].astype(np.float64), soft)
    found = ((labels.best[rows, None] >> np.arange(4, dtype=np.uint8)) & 1).astype(np.float32)
    return np.asarray(found / found.sum(axis=1, keepdims=True), np.float32)
