"""The FastAPI application: the page, the interface under /api, and the WebSocket of games."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from fastapi import FastAPI, Query, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

import lab2048
from lab2048.formatting import one_line
from lab2048.game import P4, Board, Rules
from lab2048.game.notation import SHAPES
from lab2048.measure import positions
from lab2048.measure.archive import read_results
from lab2048.measure.review import usual_judge
from lab2048.players.registry import player_names
from lab2048.solver.problem import ON_THE_FLY, Problem
from lab2048.solver.table import Table
from lab2048.solver.tables import command_for
from lab2048.studio import models
from lab2048.studio.fair_queue import BusyError, Client, Desk
from lab2048.studio.limits import PLAYERS_AT_ONCE, SPEC, describe_players
from lab2048.studio.pages import add_pages, file_answer, page_files
from lab2048.studio.resources import Library, exact_answer, solved_tables, survey_of
from lab2048.studio.results import ResultList
from lab2048.studio.review import checked_record, find_judge, review_lines
from lab2048.studio.watch import Watches

BoardQuery = Annotated[
    str,
    Query(
        max_length=400,
        description="Tiles such as `2 4 . / . 8 . / 2 . .`, a JSON list of rows, or ranks such as "
        "`120030100`.",
        examples=["64 16 4 / 8 32 2 / 2 . 4"],
    ),
]
SizeQuery = Annotated[
    str | None, Query(max_length=9, description="The board's size, such as 3x3.", examples=["3x3"])
]
FourQuery = Annotated[float, Query(ge=0, le=1, description="The chance that a new tile is a 4.")]
PlayersQuery = Annotated[
    list[Annotated[str, Query(max_length=SPEC)]],
    Query(max_length=PLAYERS_AT_ONCE, description="A player to ask; may be repeated."),
]
T = TypeVar("T")
Move = Literal["up", "right", "down", "left"]

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": models.Trouble, "description": what}
    for status, what in {
        400: "The request is invalid, or cannot be carried out.",
        404: "Not found.",
        422: "A parameter or the body is invalid.",
        503: "Too many requests (`Retry-After` says when to ask again), or a file error.",
    }.items()
}


def make_app(threads: int | None = None) -> FastAPI:
    """Return the studio as an application."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        listening = asyncio.create_task(app.state.desk.listen())
        yield
        listening.cancel()
        await app.state.library.close()
        app.state.desk.close()

    app = FastAPI(
        title="lab2048 studio",
        version=lab2048.__version__,
        description="Positions, players, tables and games of 2048. Games are watched over the "
        "WebSocket /api/watch; see docs/studio.md.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
        responses=ERRORS,
    )
    app.state.library = Library()
    app.state.desk = Desk(threads or os.cpu_count() or 1)
    app.state.watches = Watches(app.state.library, app.state.desk)
    kept = page_files()
    _answer_errors(app, kept["index.html"])
    _add_positions(app)
    _add_collections(app)
    _add_games(app)
    add_pages(app, kept)
    _add_facts(app)
    return app


def client_of(connection: Request | WebSocket) -> Client:
    """Return the client of a connection: its address, and the port that tells connections apart."""
    where = connection.client
    return (where.host, where.port) if where is not None else ("", 0)


# -- errors ----------------------------------------------------------------------------------------


def _answer_errors(app: FastAPI, page: bytes) -> None:
    """Answer every error with one line; a browser that asks for an unknown page gets the page."""

    def line(status: int, error: object) -> JSONResponse:
        return JSONResponse({"detail": one_line(error)}, status)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "the body"
        return line(422, f"{where}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404 and "text/html" in request.headers.get("accept", ""):
            return file_answer(request, "index.html", page, 404)
        answer = line(error.status_code, error.detail)
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(BusyError)
    async def busy(request: Request, error: BusyError) -> Response:
        answer = line(503, error)
        answer.headers["retry-after"] = str(error.seconds)
        return answer

    @app.exception_handler(ValueError)
    async def senseless(request: Request, error: ValueError) -> Response:
        return line(400, error)

    @app.exception_handler(OSError)
    async def disk(request: Request, error: OSError) -> Response:
        name = Path(error.filename).name if error.filename else "the data folder"
        return line(503, f"{name}: {error.strerror}")

    @app.exception_handler(ImportError)
    async def missing(request: Request, error: ImportError) -> Response:
        return line(400, error)


async def while_there(request: Request, work: Awaitable[T]) -> T:
    """Wait for work and return its result; cancel it if the client disconnects."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task = asyncio.ensure_future(work)
    tasks = task, asyncio.ensure_future(gone())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise HTTPException(408, "nobody waits for the answer")
        return task.result()
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # retrieve what they raise


async def all_of(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Wait for several coroutines; if one fails, cancel the others and raise its error."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def fresh(found: Any) -> Response:
    """Return JSON that browsers do not cache; bytes have been encoded by a worker thread."""
    body = found if isinstance(found, bytes) else encoded(found)
    return Response(body, media_type="application/json", headers={"cache-control": "no-store"})


def encoded(found: Any) -> bytes:
    """Encode as JSON; NaN and infinities raise a `ValueError`."""
    return json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


# -- positions -------------------------------------------------------------------------------------


def position(board: str, size: str | None, p4: float) -> tuple[Board, Rules]:
    """Return the board and the rules of a request."""
    found = Board.parse(board, size)
    return found, Rules(found.rows, found.cols, p4)


def _add_positions(app: FastAPI) -> None:
    """Add the endpoints for positions."""
    library: Library = app.state.library
    desk: Desk = app.state.desk

    @app.get("/api/analyse", response_model=models.Analysis, tags=["positions"])
    async def analyse(
        request: Request,
        board: BoardQuery,
        rules: SizeQuery = None,
        p4: FourQuery = P4,
        player: PlayersQuery = [],  # noqa: B006
        after: Annotated[Move | None, Query(description="Also the spawns after a move.")] = None,
    ) -> Response:
        """All four moves of a position: their exact values if the board is solved, and opinions.

        The same object as `lab2048 probe --json`. A board of up to eight cells is solved on
        first use.
        """
        place, game = position(board, rules, p4)

        def look_up(table: Table) -> dict[str, Any]:
            return positions.probed(place, game, table, after).as_json()

        found, note = await exact_answer(library, place, game, look_up)
        solvable = found is None and await library.solvable(game)
        if found is None:
            found = positions.probed(place, game, None, after).as_json()

        run = partial(desk.run, client_of(request))

        async def ask(spec: str) -> positions.Opinion:
            await library.ready_for(spec, game, run)
            return await run(library.opinion, spec, game, place)

        specs = dict.fromkeys(player)
        thoughts = await while_there(request, all_of(map(ask, specs))) if specs else []
        opinions = {each.player: positions.opinion_json(each) for each in thoughts}
        return fresh({**found, "players": opinions, "note": note, "solvable": solvable})

    @app.get("/api/reach", response_model=models.Reach, tags=["positions"])
    async def reach(board: BoardQuery, rules: SizeQuery = None, p4: FourQuery = P4) -> Response:
        """The chance of making each tile from a position, for a player that aims at just that tile.

        The tables of boards of up to eight cells are made on first use.
        """
        place, game = position(board, rules, p4)
        chances, missing = await library.reach(place, game)
        note = None
        if missing:
            wanted = Problem.of(game, objective=f"reach:{missing[-1]}")
            note = f"for the chance of making a tile, solve for it once: {command_for(wanted)}"
        elif not chances:
            note = "no game reaches this position"
        shown = {str(tile): chance for tile, chance in chances.items()}
        return fresh({"board": str(place), "chances": shown, "missing": missing, "note": note})


# -- collections -----------------------------------------------------------------------------------


def _add_collections(app: FastAPI) -> None:
    """Add the endpoints for players, tables, surveys and results."""
    library: Library = app.state.library
    desk: Desk = app.state.desk
    listed = ResultList()

    async def work(request: Request, function: Callable[[], T]) -> T:
        """Have a thread call a function, unless the client disconnects first."""
        return await while_there(request, desk.run(client_of(request), function))

    async def answer(request: Request, function: Callable[[], Any], missing: str = "") -> Response:
        """Have a thread call a function and encode its result; None is a 404."""

        def body() -> bytes:
            found = function()
            if found is None:
                raise HTTPException(404, missing)
            return found if isinstance(found, bytes) else encoded(found)

        return fresh(await work(request, body))

    @app.get("/api/players", response_model=list[models.PlayerFacts], tags=["collections"])
    async def players(request: Request, rules: SizeQuery = None, p4: FourQuery = P4) -> Response:
        """All players with their options, and whether they can play on a board."""
        game = Rules.parse(rules or "4x4", p4)
        return await answer(request, partial(describe_players, game))

    @app.get("/api/tables", response_model=models.Tables, tags=["collections"])
    async def tables(request: Request) -> Response:
        """All solved boards, and the tables and surveys in progress."""
        # jobs first: one that ends in between is then listed twice, else it would be missing
        making = [each.as_json() for each in library.jobs.running.values()]
        return await answer(request, lambda: {"tables": solved_tables(), "making": making})

    @app.post(
        "/api/tables", response_model=models.MakingFacts, status_code=202, tags=["collections"]
    )
    async def solve(wanted: models.Wanted) -> Response:
        """Solve a board of up to nine cells; `GET /api/tables` reports the progress."""
        problem = Problem.of(Rules.parse(wanted.board, wanted.p4))
        if await library.tables.get(problem) is not None:
            return JSONResponse({"name": problem.name, "seconds": 0, "share": 1}, 202)
        return JSONResponse(library.jobs.solve([problem]).as_json(), 202)

    @app.get("/api/surveys/{name}", response_model=dict[str, Any], tags=["collections"])
    async def survey(request: Request, name: str) -> Response:
        """The survey of a solved board: statistics of optimal play."""
        missing = "there is no survey of that name"
        return await answer(request, partial(survey_of, name), missing)

    @app.post(
        "/api/surveys/{name}",
        response_model=models.MakingFacts,
        status_code=202,
        tags=["collections"],
    )
    async def make_survey(request: Request, name: str) -> Response:
        """Survey a solved board of up to nine cells; `GET /api/tables` reports the progress."""
        solved = await work(request, solved_tables)
        table = next((each for each in solved if each["name"] == name), None)
        problem = Problem.from_json(table) if table is not None and table["kept"] else None
        if problem is None or not problem.objective.is_score:
            raise HTTPException(404, "there is no table of scores with that name")
        return JSONResponse(library.jobs.survey(problem).as_json(), 202)

    @app.get("/api/results", response_model=list[dict[str, Any]], tags=["collections"])
    async def results(request: Request) -> Response:
        """Past evaluations in brief, newest first."""
        return await answer(request, listed.encoded)

    @app.get("/api/results/{name}", response_model=dict[str, Any], tags=["collections"])
    async def result(request: Request, name: str) -> Response:
        """One evaluation in full."""
        missing = "there are no results of that name"
        return await answer(request, partial(read_results, name), missing)


# -- games -----------------------------------------------------------------------------------------


def _add_games(app: FastAPI) -> None:
    """Add the endpoints that review and watch games."""
    library: Library = app.state.library
    desk: Desk = app.state.desk
    watches: Watches = app.state.watches

    @app.post(
        "/api/review",
        response_class=StreamingResponse,
        responses={200: {"content": {"application/x-ndjson": {}}}},
        tags=["games"],
    )
    async def review(request: Request, wanted: models.GameToReview) -> Response:
        """Review a game. The answer is JSON lines: first `{"judge", "exact", "caveat",
        "points", "moves"}`, then `{"steps": [...]}` for some moves at a time, last `{"summary"}`,
        or `{"error"}`."""
        client = client_of(request)
        record = await desk.run(client, checked_record, wanted.game)
        judge, name = await find_judge(library, desk, client, record, wanted.judge)
        lines = review_lines(desk, client, record, judge, name)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    @app.websocket("/api/watch")
    async def watch(socket: WebSocket) -> None:
        await watches.serve(socket, client_of(socket))


# -- the studio itself -----------------------------------------------------------------------------


def _add_facts(app: FastAPI) -> None:
    """Add the endpoint with what the page needs before any other request."""
    player_names()  # scans other distributions once, before there are requests
    facts = {
        "name": "lab2048",
        "version": lab2048.__version__,
        "most_players": PLAYERS_AT_ONCE,
        "solved_at_once": ON_THE_FLY,
        "judges": {f"{r}x{c}": usual_judge(Rules(r, c)) for r, c in SHAPES},
    }

    @app.get("/api", include_in_schema=False)
    async def about() -> Response:
        return fresh({**facts, "players": player_names()})  # more may be registered later
