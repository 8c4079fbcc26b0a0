"""The command `studio`: the web page, until it is stopped."""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from lab2048.cli.console import be_silent
from lab2048.cli.options import in_python
from lab2048.studio.server import PORT, is_loopback, open_browser, serve

app = typer.Typer()


@app.command(epilog=in_python("lab2048.serve()"))
def studio(
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0: any free port.")
    ] = PORT,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; 0.0.0.0: all of this machine.")
    ] = "127.0.0.1",
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Play, watch, analyse, review and explore 2048 in the browser."""
    be_silent()

    def ready(address: str) -> None:
        print(f"lab2048 studio: {address}  (Ctrl-C ends it)", flush=True)
        if not is_loopback(host):
            typer.echo(
                "lab2048: everyone who reaches this machine can open the page and use its "
                "processor; there is no password and nothing is encrypted",
                err=True,
            )
        if show:
            threading.Thread(target=open_browser, args=(address,), daemon=True).start()

    serve(port, host, ready)
