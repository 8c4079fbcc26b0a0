"""The page, served at the address of every view, and its files."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Route

from lab2048.game.drawing import RANKS, tile_styles

STATIC = files("lab2048.studio") / "static"
KINDS = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
"""The media types of the page's files, by extension."""
VIEWS = ("play", "watch", "analyse", "review", "results")
"""The views, each a module in static/views, in the order of the menu and of the keys 1, 2, ..."""


def page_files() -> dict[str, bytes]:
    """Return the files of the page, by their paths below /static."""
    found = dict(_files_below(STATIC))
    found["tiles.css"] = tile_styles(RANKS[1:]).encode()  # style.css has that of empty cells
    found["index.html"] = found["index.html"].replace(b"<!-- VIEWS -->", menu().encode())
    return found


def menu() -> str:
    """Return the links to all views. The page's script takes the list of views from them."""
    links = [f'<a href="/{view}" data-view="{view}">{view.title()}</a>' for view in VIEWS]
    return "\n    ".join(links)


def _files_below(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield the path and the bytes of every file in a folder and its subfolders."""
    for each in folder.iterdir():
        if each.is_dir():
            yield from _files_below(each, f"{prefix}{each.name}/")
        else:
            yield prefix + each.name, each.read_bytes()


def add_pages(app: FastAPI, kept: dict[str, bytes]) -> None:
    """Serve the page and its files."""

    async def static(request: Request) -> Response:
        path = request.path_params["path"]
        if path not in kept:
            raise HTTPException(404, "there is no such file")
        return file_answer(request, path, kept[path])

    # first, and without FastAPI's checks of arguments: the page has many small files
    app.router.routes.insert(0, Route("/static/{path:path}", static))

    async def page(request: Request) -> Response:
        return file_answer(request, "index.html", kept["index.html"])

    for path in ("/", *(f"/{view}" for view in VIEWS)):
        app.get(path, include_in_schema=False)(page)

    @app.get("/api/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        return file_answer(request, "docs.html", kept["docs.html"])


def file_answer(request: Request, name: str, body: bytes, status: int = 200) -> Response:
    """Answer with a file of the page, or with 304 if the browser has it already."""
    tag = f'"{zlib.crc32(body):08x}-{len(body)}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if status == 200 and request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    kind = KINDS[name.rpartition(".")[2]]
    return Response(body, status, media_type=kind, headers=headers)
