"""The whole game on a small board as one drawing."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean

from lab2048.game import Board
from lab2048.game.colours import BACKGROUND, css
from lab2048.game.drawing import svg_tiles
from lab2048.solver.table import Table
from lab2048.solver.table_files import TableError

MOST_STATES = 1000
"""Maximum number of states; a larger drawing would be unreadable."""
STEP, ROW, CELL, MARGIN = 132, 66, 20, 40
START, TERMINAL, OTHER = "#e69f00", "#0072b2", "#d9d2c9"

Node = tuple[Board, bool]
"""A board, and whether it is a state (else an afterstate)."""


def draw_tree(table: Table) -> str:
    """An SVG of all canonical states and afterstates, one column per age, and the edges between.

    Starts have an orange frame, terminals a blue one; afterstates are the small boards. Optimal
    moves are drawn in bold.
    """
    if table.states > MOST_STATES:
        raise TableError(
            f"{table.rules.name} has {table.states:,} states; only games of up to {MOST_STATES:,} "
            "can be drawn, such as 2x2"
        )
    states = [
        Board.from_packed(int(key), table.rules.rows, table.rules.cols)
        for _, keys, _ in table.layers()
        for key in keys
    ]
    edges = _edges(table, states)
    places = _places(edges, states)
    return _svg(table, states, edges, places)


def _edges(table: Table, states: list[Board]) -> dict[tuple[Node, Node], bool]:
    """The edges from node to node, and whether each is an optimal move."""
    edges: dict[tuple[Node, Node], bool] = {}
    for state in states:
        for direction, move in table.moves(state).items():
            after = (state.move(direction).after.canonical().board, False)
            pair = ((state, True), after)
            edges[pair] = edges.get(pair, False) or move.optimal
    for after in {target for _, target in edges}:
        for spawn in table.rules.spawns(after[0]):
            edges[after, (spawn.board.canonical().board, True)] = False
    return edges


def _places(
    edges: dict[tuple[Node, Node], bool], states: list[Board]
) -> dict[Node, tuple[float, float]]:
    """Where each node is drawn: columns by age, each in the order of its predecessors."""
    columns: dict[float, list[Node]] = defaultdict(list)
    nodes = dict.fromkeys([*((state, True) for state in states), *(n for e in edges for n in e)])
    for board, is_state in nodes:
        columns[(board.age - 4) / 2 + (0 if is_state else 0.5)].append((board, is_state))
    sources: dict[Node, list[Node]] = defaultdict(list)
    for source, target in edges:
        sources[target].append(source)
    tallest = max(len(column) for column in columns.values())
    places: dict[Node, tuple[float, float]] = {}
    for number in sorted(columns):
        column = columns[number]
        heights = {
            node: fmean(places[s][1] for s in sources[node]) if sources[node] else 0.0
            for node in column
        }
        column.sort(key=lambda node: (heights[node], node[0].hex))
        top = MARGIN + 40 + (tallest - len(column)) * ROW / 2
        for row, node in enumerate(column):
            places[node] = (MARGIN + number * STEP, top + row * ROW)
    return places


def _svg(
    table: Table,
    states: list[Board],
    edges: dict[tuple[Node, Node], bool],
    places: dict[Node, tuple[float, float]],
) -> str:
    """The drawing as text."""
    rules = table.rules
    width = max(x for x, _ in places.values()) + CELL * rules.cols + MARGIN
    height = max(y for _, y in places.values()) + CELL * rules.rows + MARGIN
    starts = {board for _, _, board in table.problem.starts()}
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif">',
        f"<title>All {len(states)} states of {rules.name}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        _legend(table),
    ]
    for (source, target), optimal in sorted(edges.items(), key=lambda edge: edge[1]):
        out.append(_curve(table, places[source], places[target], source[1], optimal))
    for (board, is_state), (x, y) in places.items():
        frame = OTHER
        if is_state and board in starts:
            frame = START
        elif is_state and board.is_terminal:
            frame = TERMINAL
        out.append(_board(board, x, y, 1.0 if is_state else 0.6, frame if is_state else ""))
    return "\n".join([*out, "</svg>", ""])


def _legend(table: Table) -> str:
    """What the colours mean."""
    items = [(START, "start"), (TERMINAL, "terminal"), (OTHER, "other state")]
    out = [
        f'<text x="{MARGIN}" y="30" font-size="16" fill="#333">The whole game on '
        f"{table.rules.name}, p4 {table.rules.p4:g}: {table.states} canonical states, age by age; "
        "the small boards are afterstates, the bold lines optimal moves</text>"
    ]
    for number, (colour, name) in enumerate(items):
        x = MARGIN + 130 * number
        out.append(
            f'<rect x="{x}" y="42" width="14" height="14" fill="none" stroke="{colour}" '
            f'stroke-width="4"/><text x="{x + 24}" y="54" font-size="13" fill="#333">{name}</text>'
        )
    return "\n".join(out)


def _curve(
    table: Table,
    source: tuple[float, float],
    target: tuple[float, float],
    from_state: bool,
    optimal: bool,
) -> str:
    """A line from the right of one board to the left of another."""
    large = 1.0 if from_state else 0.6
    small = 0.6 if from_state else 1.0
    x1 = source[0] + CELL * table.rules.cols * large
    y1 = source[1] + CELL * table.rules.rows * large / 2
    x2, y2 = target[0], target[1] + CELL * table.rules.rows * small / 2
    bend = (x2 - x1) / 2
    style = 'stroke="#333" stroke-width="1.8"' if optimal else 'stroke="#b9b2a9" stroke-width="0.8"'
    return (
        f'<path d="M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} '
        f'{x2:.0f} {y2:.0f}" fill="none" {style}/>'
    )


def _board(board: Board, x: float, y: float, scale: float, frame: str) -> str:
    """A board with its tiles."""
    size = CELL * scale
    width, height = size * board.cols, size * board.rows
    return (
        f'<g transform="translate({x:.0f} {y:.0f})" text-anchor="middle">'
        f'<rect x="-3" y="-3" width="{width + 6:.0f}" height="{height + 6:.0f}" rx="3" '
        f'fill="{frame or css(BACKGROUND)}"/>{svg_tiles(board.ranks, board.cols, size - 1, 1)}</g>'
    )
