"""The speed of engine, solver, search and TD learning here, and a signature of the engine."""

from __future__ import annotations

import importlib.util
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lab2048.engine.random_games import random_games
from lab2048.game import Board, Game, Rules, random_move
from lab2048.game.notation import SHAPES

if TYPE_CHECKING:
    from lab2048.learn.td import NTupleLearner


REPEATS = 7
SOLVES = 5
SOLVED = ("4x2", "3x3")
BATCH = 4096

Note = Callable[[str], object]


def bench_engine(note: Note = lambda text: None) -> dict[str, Any]:
    """Every figure of `lab2048 bench engine`, for one thread, medians of several repeats."""
    note("random play on 3x3")
    small = random_play_speed(Rules(3, 3), 400_000)
    note("random play on 4x4")
    large = random_play_speed(Rules(4, 4), 200_000)
    note("the vector environment")
    vector = vector_env_speed()
    note("import lab2048")
    seconds = import_seconds()
    note("the signature")
    return {
        "random_play_moves_per_second": {"3x3": round(small), "4x4": round(large)},
        "vector_env_steps_per_second": None if vector is None else round(vector),
        "import_seconds": round(seconds, 4),
        "signature": signature(),
        "machine": machine(),
    }


def prepare() -> None:
    """Compile every kernel that is measured, before it is timed."""
    vector_env_speed(steps=1)
    signature()


def random_play_speed(rules: Rules, games: int) -> float:
    """Moves per second of whole random games on one thread, everything included."""
    random_games(rules, 1000, threads=1)
    speeds = []
    for repeat in range(REPEATS):
        began = time.perf_counter()
        moves = int(random_games(rules, games, seed=repeat, threads=1).moves.sum())
        speeds.append(moves / (time.perf_counter() - began))
    return statistics.median(speeds)


def vector_env_speed(steps: int = 200) -> float | None:
    """Steps per second of the 4x4 vector environment, without the choice of random legal moves.

    None where Gymnasium is not installed.
    """
    if importlib.util.find_spec("gymnasium") is None:
        return None
    from lab2048.gym.environments import GameVectorEnv

    env = GameVectorEnv(BATCH)
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    speeds = []
    for repeat in range(REPEATS + 1):
        spent = 0.0
        for _ in range(steps):
            actions = (rng.random((BATCH, 4)) * info["action_mask"]).argmax(axis=1)
            began = time.perf_counter()
            *_, info = env.step(actions)
            spent += time.perf_counter() - began
        if repeat > 0:  # the first round reaches the usual mix of young and old games
            speeds.append(BATCH * steps / spent)
    return statistics.median(speeds)


def import_seconds() -> float:
    """How long `import lab2048` takes in a new interpreter."""
    code = "import time; t = time.perf_counter(); import lab2048; print(time.perf_counter() - t)"
    run = [sys.executable, "-c", code]
    times = [subprocess.run(run, capture_output=True, check=True).stdout for _ in range(REPEATS)]
    return statistics.median(float(text) for text in times)


def prepare_solve() -> None:
    """Compile what `bench_solve` measures, before it is timed."""
    from lab2048.solver.enumeration import Enumeration
    from lab2048.solver.induction import Induction
    from lab2048.solver.problem import Problem
    from lab2048.solver.threads import WorkerThreads

    with WorkerThreads(1) as workers:
        for board in SOLVED:
            Enumeration(Problem.of(board), workers)
            Induction(Problem.of(board), workers)


def bench_solve(note: Note = lambda text: None) -> dict[str, Any]:
    """Every figure of `lab2048 bench solve`: medians of several solves on all cores."""
    from lab2048.solver.job import make_table
    from lab2048.solver.problem import Problem

    boards = {}
    for board in SOLVED:
        runs = []
        for repeat in range(SOLVES):
            note(f"{board}, {repeat + 1} of {SOLVES}")
            with tempfile.TemporaryDirectory() as folder:
                runs.append(make_table(Problem.of(board), Path(folder) / "table"))
        seconds = {
            stage: statistics.median(run["seconds"][stage] for run in runs)
            for stage in ("enumerate", "values", "total")
        }
        states = runs[0]["states"]
        boards[board] = {
            "states": states,
            "seconds": seconds["total"],
            "enumerate_states_per_second": round(states / seconds["enumerate"]),
            "values_states_per_second": round(states / seconds["values"]),
            "bytes_per_state": round(runs[0]["table_bytes"] / states, 3),
            "peak_memory_bytes": max(run["peak_memory_bytes"] or 0 for run in runs) or None,
        }
    return {"boards": boards, "threads": os.cpu_count(), "machine": machine()}


def prepare_search() -> None:
    """Compile what `bench_search` measures, before it is timed."""
    from lab2048.measure.arena import prepare
    from lab2048.players.registry import make_player
    from lab2048.solver.policy_kernels import walk_kernels

    for spec in ("expectimax:depth=2", "montecarlo:rollouts=50", "greedy", "mcts"):
        prepare(make_player(spec, Rules(4, 4)))
    for spec in EXACT:
        player = make_player(spec, Rules(3, 3))
        player.prepare()
        walk_kernels(3, 3, player.symmetric)


EXACT = ("random", "greedy", "corner", "expectimax:depth=1")


def bench_search(note: Note = lambda text: None) -> dict[str, Any]:
    """Every figure of `lab2048 bench search`: medians of several repeats."""
    note("expectimax")
    expectimax = {f"depth={depth}": expectimax_speed(depth) for depth in (3, 4)}
    note("games of montecarlo:rollouts=50")
    rollouts = match_speed("montecarlo:rollouts=50", 8)
    note("games of mcts")
    tree = match_speed("mcts", 4)
    note("games of greedy")
    greedy = match_speed("greedy", 20_000)
    exact = {}
    for spec in EXACT:
        note(f"the exact value of {spec} on 3x3")
        exact[spec] = exact_seconds(spec)
    return {
        "expectimax_moves_per_cpu_second": expectimax,
        "montecarlo_50": rollouts,
        "mcts_200": tree,
        "greedy": greedy,
        "exact_3x3_seconds": exact,
        "threads": os.cpu_count(),
        "machine": machine(),
    }


def expectimax_speed(depth: int) -> dict[str, Any]:
    """Moves that `expectimax` makes and values per second of one thread, on boards of a game.

    `with_found` also counts those whose value it found in memory: the same board was met before.
    """
    from lab2048.measure.arena import play_games, retrace
    from lab2048.players.expectimax import Expectimax
    from lab2048.players.registry import make_player
    from lab2048.players.search_memory import FOUND, MADE

    rules = Rules(4, 4)
    (game,) = play_games(make_player("expectimax:depth=2", rules), iter([0]), 1, threads=1)
    boards = retrace(rules, 1, game).boards[100:1600:30].copy()
    player = Expectimax(rules, depth=depth)
    tally = player.memory(depth).tally
    rates, with_found = [], []
    for repeat in range(REPEATS + 1):
        tally[[MADE, FOUND]] = 0
        began = time.thread_time()
        player.values_many(boards, np.zeros_like(boards))
        seconds = time.thread_time() - began
        if repeat > 0:  # the first round brings the tables into the caches
            rates.append(int(tally[MADE]) / seconds)
            with_found.append(int(tally[[MADE, FOUND]].sum()) / seconds)
    return {
        "moves": round(statistics.median(rates)),
        "with_found": round(statistics.median(with_found)),
        "made_per_decision": round(int(tally[MADE]) / len(boards)),
    }


def match_speed(spec: str, games: int) -> dict[str, Any]:
    """Moves per second of games on 4x4 on all cores, and the core-seconds of a game."""
    from lab2048.measure.arena import play_match
    from lab2048.players.registry import make_player

    found = play_match(make_player(spec, Rules(4, 4)), games, 1)
    speed = found.moves_per_second or 0.0
    moves = statistics.fmean(len(game.moves) for game in found.games)
    return {
        "moves_per_second": round(speed),
        "seconds_per_game": round(moves / speed * (os.cpu_count() or 1), 6),
    }


def exact_seconds(spec: str) -> float:
    """How long the exact value of a player on 3x3 takes, on all cores."""
    from lab2048.players.registry import make_player
    from lab2048.solver.exact_value import evaluate_policy

    player = make_player(spec, Rules(3, 3))
    began = time.perf_counter()
    evaluate_policy(player)
    return round(time.perf_counter() - began, 2)


# -- learning ------------------------------------------------------------------------------------

LEARNING = [(method, network) for network in ("4x6", "8x6") for method in ("td", "tc")]
PLAYING = {1: 400, 2: 60, 3: 4}
"""Number of games per repeat at each depth."""


def _trainings() -> list[tuple[str, str, str]]:
    """What is measured: method, network and order."""
    return [
        (method, network, order)
        for method, network in LEARNING
        for order in ("forward", "backward")
        if order == "forward" or network == "4x6"
    ]


def prepare_td() -> None:
    """Compile what `bench_td` measures, before it is timed."""
    from lab2048.learn.ntuple_player import NTuple
    from lab2048.measure.arena import prepare as prepare_games

    for method, network, order in _trainings():
        _training(method, network, order).block(1)
    for depth in PLAYING:
        stored = _training("td", "4x6", "forward").stored()
        prepare_games(NTuple(Rules(4, 4), given=stored, depth=depth))


def bench_td(note: Note = lambda text: None) -> dict[str, Any]:
    """Every figure of `lab2048 bench td`: moves per second, medians of several blocks of games."""
    cores = os.cpu_count() or 1
    learning = {}
    for method, network, order in _trainings():
        note(f"{method} with {network}, {order}")
        threads = sorted({1, cores})
        found = {str(n): learning_speed(method, network, order, n) for n in threads}
        learning[f"{method} {network} {order}"] = found
    note("games with a network")
    return {
        "learning_moves_per_second": learning,
        "playing_moves_per_second": playing_speed(),
        "machine": machine(),
    }


def _training(method: str, network: str, order: str, threads: int = 1) -> NTupleLearner:
    """A new learner on 4x4."""
    from lab2048.learn.ntuple_settings import NTupleSettings
    from lab2048.learn.td import NTupleLearner

    settings = NTupleSettings.of(Rules(4, 4), network, method=method, order=order)
    return NTupleLearner(settings, threads)


def learning_speed(method: str, network: str, order: str, threads: int) -> int:
    """Moves per second of a new network, after its first 1,000 games."""
    training = _training(method, network, order, threads)
    rates = []
    for block in range(REPEATS + 1):
        seconds = training.seconds
        moves = training.block(1000)[:, 1].sum()
        if block > 0:  # in the first block the memory is new
            rates.append(moves / (training.seconds - seconds))
    return int(statistics.median(rates))


def playing_speed() -> dict[str, int]:
    """Moves per second of one thread with a network that has learnt from 5,000 games."""
    from lab2048.learn.ntuple_player import NTuple
    from lab2048.measure.arena import play_games

    training = _training("td", "4x6", "forward")
    training.block(5000)
    found = {}
    for depth, games in PLAYING.items():
        player = NTuple(Rules(4, 4), given=training.stored(), depth=depth)
        rates = []
        for repeat in range(REPEATS):
            began = time.perf_counter()
            numbers = range(repeat * games, (repeat + 1) * games)
            moves = sum(len(game.moves) for game in play_games(player, iter(numbers), 1, threads=1))
            rates.append(moves / (time.perf_counter() - began))
        found[f"depth={depth}"] = round(statistics.median(rates))
    return found


def signature() -> int:
    """One number that depends on how the engine behaves, and on nothing else.

    It covers games on all boards by `Game`, with the canonical form of every position, and whole
    games by the kernels on five boards: square or not, lines with a table or without.
    """
    crc = 0
    for rows, cols in SHAPES:
        for index in range(3):
            crc = zlib.crc32(_game_trace(Rules(rows, cols), index).encode(), crc)
    for rows, cols, p4 in [(4, 4, 0.1), (3, 3, 0.1), (2, 3, 0.5), (5, 2, 0.0), (2, 6, 1.0)]:
        results = random_games(Rules(rows, cols, p4), 1000, seed=2048)
        for column in results:
            crc = zlib.crc32(column.astype("<i8").tobytes(), crc)
    return crc


def _game_trace(rules: Rules, index: int) -> str:
    """A random game as text: every board with its score and its canonical form."""
    game = Game(rules, 2048, index=index)
    lines = [_position(game.board)]
    while not game.over:
        reward = game.play(random_move(game.board, game.own_word))
        lines.append(f"{reward} {_position(game.board)}")
    return "\n".join(lines)


def _position(board: Board) -> str:
    image, symmetry = board.canonical()
    return f"{board.hex} {image.hex} {symmetry}"


def machine() -> dict[str, Any]:
    """The machine and the versions that the figures were measured with."""
    import numba

    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def _cpu_name() -> str:
    """The processor's name as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
