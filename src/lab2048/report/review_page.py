"""The page of a reviewed game: a stepper through its moves, its graph, its mistakes."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from lab2048.game import Board, Direction
from lab2048.game.drawing import html_table, tile_styles
from lab2048.game.notation import DIGITS
from lab2048.game.record import Record
from lab2048.home import write_atomically
from lab2048.measure.marks import is_mistake
from lab2048.measure.review import Review, Step, worst
from lab2048.report.evaluation_page import PAGE, page_facts
from lab2048.report.pictures import STYLE, svg

STYLES = """<style>
.stepper { max-width: 26rem; }
.stepper input { width: 100%; }
.stepper button { font: inherit; padding: .2rem .8rem; }
.said { min-height: 3rem; margin: .4rem 0; }
.cards { display: flex; flex-wrap: wrap; gap: 1rem; padding: 0; list-style: none; }
.cards button { font: inherit; text-align: left; background: none; border: 1px solid #ccc;
  border-radius: 6px; padding: .5rem; cursor: pointer; width: 11.2rem; height: 100%; }
.board td { width: 3.2rem; height: 3.2rem; text-align: center; border: 3px solid #fff; padding: 0; }
.cards .board { font-size: .6rem; }
.cards .board td { width: 1.9rem; height: 1.9rem; border-width: 2px; }
"""
# The fields of a step are those of `_data`; text is only set as `textContent`, never as HTML.
SCRIPT = """
const game = JSON.parse(document.getElementById("game").textContent);
const $ = (id) => document.getElementById(id);
const cells = [...$("board").querySelectorAll("td")];
const last = game.steps.length - 1;
let at = 0;
function show(to) {
  at = Math.max(0, Math.min(last, to));
  const [ranks, said] = game.steps[at];
  [...ranks].forEach((digit, cell) => {
    const rank = game.digits.indexOf(digit);
    cells[cell].textContent = rank ? 2 ** rank : "";
    cells[cell].className = `r${rank}`;
  });
  $("said").textContent = `Move ${at + 1} of ${last + 1}: ${said}`;
  $("slider").value = at;
}
function mistake(way) {
  for (let i = at + way; i >= 0 && i <= last; i += way)
    if (game.steps[i][2]) return show(i);
}
const KEYS = {
  ArrowLeft: () => show(at - 1), ArrowRight: () => show(at + 1), Home: () => show(0),
  End: () => show(last), m: () => mistake(1), M: () => mistake(-1),
};
addEventListener("keydown", (event) => {
  if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  KEYS[event.key]();
});
$("slider").max = last;
$("slider").oninput = () => show(Number($("slider").value));
$("back").onclick = KEYS.ArrowLeft;
$("on").onclick = KEYS.ArrowRight;
$("next").onclick = KEYS.m;
for (const card of document.querySelectorAll("[data-move]"))
  card.onclick = () => { show(Number(card.dataset.move) - 1); $("board").scrollIntoView(); };
show(0);
"""
STEPPER = """<div class="stepper">{board}<p class="said" id="said" aria-live="polite"></p>
<input type="range" id="slider" min="0" value="0" aria-label="Move">
<p><button id="back" title="One move back (left arrow)">&larr;</button>
<button id="on" title="One move on (right arrow)">&rarr;</button>
<button id="next" title="The next mistake (m)">Next mistake</button></p></div>
<noscript><p>Stepping through the moves needs JavaScript.</p></noscript>"""


def write_review(record: Record, review: Review, path: Path, arguments: Sequence[str]) -> None:
    """Write the page about a game."""
    steps = review.steps
    body = [
        _styles(),
        f"<p><code>{html.escape(record.player)}</code> on {record.rules.name}, judged by "
        f"{html.escape(review.judge)}: {html.escape(', '.join(review.facts()))}.</p>",
    ]
    if review.caveat:
        body.append(f'<p class="note">{html.escape(review.caveat)}</p>')
    if steps:
        body.append(STEPPER.format(board=_board(steps[0].board, 'id="board"')))
        body.append(f"<figure>{svg(_graph(review))}</figure>")
    if cards := [_card(step, review) for step in worst(steps)]:
        body.append(f'<h2>The worst moves</h2><ol class="cards">{"".join(cards)}</ol>')
    if steps:
        data = json.dumps(_data(review)).replace("<", "\\u003c")
        body.append(f'<script type="application/json" id="game">{data}</script>')
        body.append(f"<script>{SCRIPT}</script>")
    title = f"A game of 2048 by {record.player}"
    write_atomically(path, PAGE.format(body="\n".join(body), **page_facts(title, arguments)))


def _styles() -> str:
    """How boards and their steps look."""
    return f"{STYLES}{tile_styles()}</style>"


def _data(review: Review) -> dict[str, object]:
    """What the page steps through: each board, its move in words, and whether it is a mistake."""
    steps = [
        (step.board.hex, _said(step, review), int(is_mistake(step.mark))) for step in review.steps
    ]
    return {"digits": DIGITS, "steps": steps}


def _said(step: Step, review: Review) -> str:
    """A move and its mark in a line."""
    made = f"{Direction(step.move)}, {step.mark}"
    if step.mark == "best":
        return made
    return "; ".join(filter(None, [made, f"better {step.best}", review.lost(step)]))


def _card(step: Step, review: Review) -> str:
    """A mistake, as a button that leads to it."""
    said = html.escape(_said(step, review))
    return (
        f'<li><button data-move="{step.number}">{_board(step.board)}'
        f"Move {step.number}: {said}</button></li>"
    )


def _graph(review: Review) -> Figure:
    """The value before each move and, by an exact judge, the loss so far."""
    steps = review.steps
    numbers = [step.number for step in steps]
    with rc_context(STYLE):
        figure = Figure(figsize=(8, 4.6 if review.exact else 2.6))
        panels = figure.subplots(1 + review.exact, 1, sharex=True, squeeze=False)[:, 0]
        panels[0].plot(numbers, [step.value for step in steps], color="#0072b2", lw=1.2)
        panels[0].set_ylabel("value of the best move")
        if review.exact:
            lost = [step.loss or 0.0 for step in steps]
            panels[1].fill_between(numbers, lost, color="#d55e00", alpha=0.25)
            panels[1].plot(numbers, lost, color="#d55e00", lw=1.2)
            panels[1].set_ylabel("lost so far")
        for step in worst(steps):
            height = step.loss if review.exact else step.value
            panels[-1].plot([step.number], [height], "o", color="#222", ms=4)
        panels[-1].set_xlabel("move")
        figure.align_ylabels()
        return figure


def _board(board: Board, name: str = "") -> str:
    """A board as a small table."""
    return html_table(board.ranks, board.cols, name)
