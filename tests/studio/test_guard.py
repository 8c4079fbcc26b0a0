"""Who may ask: its own page, with a bound on what is sent."""

from __future__ import annotations

import socket

import httpx
import pytest

from lab2048.studio import limits
from lab2048.studio.pages import STATIC, VIEWS, page_files
from tests.serving import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # a server, and much to compile


def test_only_its_own_page_may_ask(client, address):
    own = {"origin": address}
    assert client.get("/api/tables", headers=own).status_code == 200
    assert client.get("/api/tables", headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get("/api/tables", headers={"origin": "null"}).status_code == 403
    other_scheme = {"origin": address.replace("http", "https")}
    assert client.get("/api/tables", headers=other_scheme).status_code == 403
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421
    assert client.get("/", headers={"host": "127.0.0.1.evil.example:80"}).status_code == 421
    assert raw_status(client.base_url, "/api", "Host: evil.example\r\n") == 400
    assert client.get("/", headers={"host": "[::1].evil"}).status_code == 421
    near = {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}  # another port's picture
    assert client.get("/api/tables", headers=near).status_code == 403
    cross = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert client.get("/api/tables", headers=cross).status_code == 403
    framed = {**cross, "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=framed).status_code == 200
    assert client.get("/api/tables", headers=framed).status_code == 403


def test_a_socket_of_another_site_is_refused(address):
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    where = address.replace("http", "ws") + "/api/watch"
    for other in ("http://evil.example", address.replace("http", "https")):
        with pytest.raises(InvalidStatus), connect(where, origin=other):
            pass
    with connect(where, origin=address):
        pass


def test_on_other_addresses_names_are_still_checked(solved_home):
    with serving(["mybox"], any_address=True) as found, httpx.Client(base_url=found) as client:
        assert client.get("/api", headers={"host": "10.1.2.3:2048"}).status_code == 200
        assert client.get("/api", headers={"host": "mybox:2048"}).status_code == 200
        assert client.get("/api", headers={"host": "[::1]:2048"}).status_code == 200
        assert client.get("/api", headers={"host": "evil.example"}).status_code == 421


def test_a_body_has_a_limit(client):
    large = b"[" + b"1," * limits.BODY
    assert client.post("/api/review", content=large).status_code == 413

    def pieces():
        for _ in range(40):
            yield b"x" * 65536

    assert client.post("/api/review", content=pieces()).status_code == 413
    assert client.post("/api/review", content=b"{}").status_code == 422


def test_pages_have_a_policy_without_inline_script(client):
    for path in ("/", *VIEWS, "/api/docs"):
        found = client.get(path)
        policy = found.headers["content-security-policy"]
        assert found.status_code == 200
        assert "unsafe" not in policy and "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert not any(each in found.text for each in ("<script>", "style=", "://"))
    names = {path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file()}
    assert names | {"tiles.css"} == set(page_files())
    for name in names:
        found = client.get(f"/static/{name}")
        assert found.status_code == 200 and found.headers["x-content-type-options"] == "nosniff"
        again = {"if-none-match": found.headers["etag"]}
        assert client.get(f"/static/{name}", headers=again).status_code == 304
    for path in ("/static/../app.py", "/static/..%2fapp.py"):
        assert raw_status(client.base_url, path) == 404


def raw_status(address, path, more=""):
    """The status of an answer to a path, and headers, just as they are given."""
    with socket.create_connection((address.host, address.port)) as link:
        link.sendall(f"GET {path} HTTP/1.1\r\n{more}Host: {address.host}\r\n\r\n".encode())
        return int(link.recv(100).split()[1])


def test_tiles_have_the_colours_of_everything_else(client):
    found = client.get("/static/tiles.css").text
    assert ".r11 { background: rgb(169, 43, 115); color: rgb(255, 255, 255); }" in found
