"""The commands `bench`: how fast lab2048 is on this machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from lab2048.cli.console import new_table, output, status
from lab2048.cli.options import JsonOption, command_group, in_python

if TYPE_CHECKING:
    from rich.table import Table

    from lab2048.tabular import Figures

app = command_group("Measure how fast lab2048 is on this machine.")


@app.command(epilog=in_python('lab2048.benchmark("engine")'))
def engine(as_json: JsonOption = False) -> None:
    """Measure the game engine on one thread, and print the signature of its behaviour."""
    figures = _measured("engine")
    table = new_table("figure")
    table.add_column("value", justify="right")
    for board, speed in figures["random_play_moves_per_second"].items():
        table.add_row(f"random play on {board}", f"{speed / 1e6:.1f} million moves/s")
    steps = figures["vector_env_steps_per_second"]
    shown = "Gymnasium is not installed" if steps is None else f"{steps / 1e6:.1f} million steps/s"
    table.add_row("vector environment, 4096 boards of 4x4", shown)
    table.add_row("import lab2048", f"{figures['import_seconds'] * 1000:.0f} ms")
    table.add_row("signature", str(figures["signature"]))
    _print_figures(figures, table, as_json)


@app.command("solve", epilog=in_python('lab2048.benchmark("solve")'))
def bench_solve(as_json: JsonOption = False) -> None:
    """Measure the speed of solving 4x2 and 3x3 on all cores, and the size of their tables."""
    figures = _measured("solve")
    table = new_table("board")
    for name in ("states", "seconds", "enumerate, states/s", "values, states/s", "bytes a state"):
        table.add_column(name, justify="right")
    for board, row in figures["boards"].items():
        table.add_row(
            board,
            f"{row['states']:,}",
            f"{row['seconds']:.2f}",
            f"{row['enumerate_states_per_second'] / 1e6:.1f} million",
            f"{row['values_states_per_second'] / 1e6:.1f} million",
            f"{row['bytes_per_state']:.2f}",
        )
    _print_figures(figures, table, as_json)


@app.command("search", epilog=in_python('lab2048.benchmark("search")'))
def bench_search(as_json: JsonOption = False) -> None:
    """Measure the speed of search players, and of computing the exact values of players."""
    figures = _measured("search")
    table = new_table("figure")
    table.add_column("value", justify="right")
    for depth, row in figures["expectimax_moves_per_cpu_second"].items():
        table.add_row(
            f"expectimax:{depth}, one thread", f"{row['moves'] / 1e6:.1f} million moves/s"
        )
    for name in ("montecarlo_50", "mcts_200", "greedy"):
        row = figures[name]
        speed = f"{row['moves_per_second']:,} moves/s, {row['seconds_per_game']:.2g} s a game"
        table.add_row(f"games of {name.replace('_', ', ')} on 4x4", speed)
    for spec, seconds in figures["exact_3x3_seconds"].items():
        table.add_row(f"exact value of {spec} on 3x3", f"{seconds:.1f} s")
    _print_figures(figures, table, as_json)


@app.command("td", epilog=in_python('lab2048.benchmark("td")'))
def bench_td(as_json: JsonOption = False) -> None:
    """Measure the speed of training n-tuple networks on 4x4, and of playing with one."""
    figures = _measured("td")
    table = new_table("figure")
    table.add_column("value", justify="right")
    for name, row in figures["learning_moves_per_second"].items():
        for threads, speed in row.items():
            several = f"{threads} thread{'s' * (threads != '1')}"
            table.add_row(f"learning, {name}, {several}", f"{speed / 1e6:.2f} million moves/s")
    for depth, speed in figures["playing_moves_per_second"].items():
        table.add_row(f"playing, {depth}, 1 thread", f"{speed:,} moves/s")
    _print_figures(figures, table, as_json)


@app.command("neural", epilog=in_python('lab2048.benchmark("neural")'))
def bench_neural(as_json: JsonOption = False) -> None:
    """Measure neural networks on one thread: self-play on 3x3, and voting on 4x4."""
    figures = _measured("neural")
    from lab2048.bench import neural as bench  # it needs torch

    table = new_table("figure")
    table.add_column("value", justify="right")
    for preset, row in figures["self_play"].items():
        name = f"self-play on 3x3, {preset}, {bench.SIMULATIONS} simulations"
        table.add_row(name, f"{row['moves_per_second']:,} moves/s")
        evaluations = f"{row['evaluations_per_second']:,} in batches of {row['mean_batch']:.0f}"
        table.add_row("  evaluations a second", evaluations)
        alone = f"{row['network_alone_evaluations_per_second']:,}"
        table.add_row("  of the network alone", alone)
        table.add_row("  the search costs", f"{100 * row['search_overhead']:.1f}%")
    for name, row in figures["voting"].items():
        speed = f"{row['moves_per_second']:,} moves/s"
        table.add_row(f"votes of {name}, {bench.GAMES:,} games of 4x4", speed)
    _print_figures(figures, table, as_json)


@app.command("cluster", epilog=in_python('lab2048.benchmark("cluster")'))
def bench_cluster(as_json: JsonOption = False) -> None:
    """Measure the overhead of a Ray cluster here compared with threads, on layers of 4x3."""
    figures = _measured("cluster")
    table = new_table("who")
    for name in ("states, states/s", "values, states/s", "both, states/s"):
        table.add_column(name, justify="right")
    for name in ("threads", "workers"):
        row = figures[f"{name}_states_per_second"]
        speeds = [f"{row[stage] / 1e6:.1f} M" for stage in ("enumerate", "values", "both")]
        table.add_row(f"{figures['workers']} {name}", *speeds)
    _print_figures(figures, table, as_json)
    if not as_json:
        turns = ", ".join(f"{each:g}%" for each in figures["more_time_percent_of_turns"])
        print(f"Workers take {figures['more_time_percent']:g}% longer (turns: {turns}).")


@app.command("studio", epilog=in_python('lab2048.benchmark("studio")'))
def bench_studio(as_json: JsonOption = False) -> None:
    """Measure how fast the studio answers one client, and many at once."""
    figures = _measured("studio")
    crowd = figures["crowd"]
    table = new_table("figure")
    table.add_column("value", justify="right")
    table.add_row("start, until the address is printed", f"{figures['start_seconds']:.2f} s")
    page = figures["page"]
    table.add_row(f"page, {page['files']} files", f"{page['bytes'] / 1000:.0f} kB")
    table.add_row("  transfer of all", f"{page['transfer_ms']:.0f} ms")
    table.add_row(
        f"analysis on {figures['board']}, one client", _milliseconds(figures["analyse_ms"])
    )
    many = f"{crowd['clients']} clients, {crowd['watchers']} watching"
    table.add_row(f"analysis, {many}", _milliseconds(crowd))
    table.add_row("  answers a second", f"{crowd['answers_per_second']:,}")
    table.add_row("  frames a second, each watcher", f"{crowd['frames_per_second_a_watcher']}")
    table.add_row("  errors", str(crowd["errors"]))
    crowd = figures["table_crowd"]
    table.add_row(f"analysis, {crowd['clients']} clients", _milliseconds(crowd))
    _print_figures(figures, table, as_json)


def _milliseconds(spread: dict[str, Any]) -> str:
    """The median and the 99th percentile, as text."""
    return f"{spread['median']:.1f} ms, 1% above {spread['p99']:.0f} ms"


def _measured(what: str) -> Figures:
    """Run a benchmark, showing what it is measuring; return its figures."""
    from lab2048.bench.benchmark import benchmark

    with ExitStack() as stack:
        change: list[Callable[[str], None]] = []  # empty while kernels are compiled

        def note(text: str) -> None:
            if not change:
                change.append(stack.enter_context(status("measuring")))
            change[0](f"measuring {text}")

        return benchmark(what, note)


def _print_figures(figures: Figures, table: Table, as_json: bool) -> None:
    """Print figures as JSON, or as a table with a line about the machine."""
    if as_json:
        print(figures.to_json(), end="")
        return
    console = output()
    console.print(table)
    console.print(", ".join(f"{key} {value}" for key, value in figures["machine"].items()))
