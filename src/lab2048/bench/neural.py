"""How fast neural networks play and learn here: `lab2048 bench neural`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from lab2048.bench.engine import REPEATS, Note, machine
from lab2048.game import Rules

if TYPE_CHECKING:
    from lab2048.learn.selfplay import SelfPlay

BOARD, SIMULATIONS = Rules(3, 3), 20
PRESETS = ("tiny", "small")
MOVES = {"tiny": 32, "small": 8}
"""Moves of each game per timed turn."""
VOTING = {"cnn4, 32 channels": 32, "cnn4, 256 channels": 256}
GAMES = 1000


def bench_neural(note: Note = lambda text: None) -> dict[str, Any]:
    """Every figure of `lab2048 bench neural`, on one thread."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        playing = {}
        for preset in PRESETS:
            note(f"self-play, {preset}")
            playing[preset] = self_play_speed(preset)
        voting = {}
        for name, channels in VOTING.items():
            note(f"votes of {name}")
            voting[name] = voting_speed(channels)
    finally:
        torch.set_num_threads(threads)
    return {"self_play": playing, "voting": voting, "machine": machine()}


class Timed:
    """A network that counts its boards and batches, and keeps the last batch."""

    def __init__(self, network: Callable[[Any], Any]) -> None:
        self.network = network
        self.boards = self.batches = 0
        self.last = np.empty(0, np.uint64)

    def __call__(self, boards: Any) -> Any:
        self.boards += len(boards)
        self.batches += 1
        self.last = boards
        return self.network(boards)


def self_play_speed(preset: str) -> dict[str, Any]:
    """Moves and evaluations per second of self-play, and evaluations of the network alone.

    Both are timed in turns, the network with batches of the mean size that self-play asks for. The
    luck of spawns, which needs batches of another size, is left out: only searches are measured.
    """
    import torch

    from lab2048.learn.gradient import asked
    from lab2048.learn.residual import frozen
    from lab2048.learn.selfplay import SelfPlay
    from lab2048.learn.zero_settings import ZeroSettings

    settings = ZeroSettings.of(BOARD, preset, simulations=SIMULATIONS, lucky=True)
    network = Timed(asked(frozen(settings.build()), BOARD, torch.device("cpu")))
    worker = SelfPlay(settings, settings.games, 1)
    worker.play(network, 2, 1.0)
    found = [_one_turn(worker, network, settings.games, MOVES[preset]) for _ in range(REPEATS)]
    moves, evaluations, bare, size = (
        statistics.median(column) for column in zip(*found, strict=True)
    )
    overheads = [row[2] / row[1] - 1 for row in found]
    return {
        "moves_per_second": round(moves),
        "evaluations_per_second": round(evaluations),
        "mean_batch": round(size, 1),
        "network_alone_evaluations_per_second": round(bare),
        "search_overhead": round(statistics.median(overheads), 4),
    }


def _one_turn(worker: SelfPlay, network: Timed, games: int, moves: int) -> tuple[float, ...]:
    """Moves and evaluations per second, those of the network alone, and the mean batch."""
    network.boards = network.batches = 0
    began = time.perf_counter()
    worker.play(network, moves, 1.0)
    seconds = time.perf_counter() - began
    boards, batches = network.boards, network.batches
    same = np.resize(network.last, round(boards / batches))
    began = time.perf_counter()
    for _ in range(batches):
        network.network(same)
    alone = time.perf_counter() - began
    return games * moves / seconds, boards / seconds, len(same) * batches / alone, boards / batches


def voting_speed(channels: int) -> dict[str, Any]:
    """Moves and evaluations per second of 1,000 games on 4x4, by the vote of eight images."""
    import torch

    from lab2048.learn.gradient import asked
    from lab2048.learn.neural_players import Loaded, Supervised
    from lab2048.learn.supervised_settings import SupervisedSettings
    from lab2048.measure.arena import OpenGames

    rules = Rules(4, 4)
    model = SupervisedSettings(rules, "cnn4", channels).build()
    network = Timed(asked(model, rules, torch.device("cpu")))
    open_games = OpenGames(Supervised(rules, given=Loaded(network, {})), 1)
    open_games.add(list(range(GAMES)))
    open_games.turn()
    rates = []
    for _ in range(REPEATS):
        games, began = len(open_games.games), time.perf_counter()
        open_games.turn()
        rates.append(games / (time.perf_counter() - began))
    rate = statistics.median(rates)
    return {"moves_per_second": round(rate), "evaluations_per_second": round(8 * rate)}
