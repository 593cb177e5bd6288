"""A server of tools sends the service to its own origin and to public addresses, and nowhere else."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest

from services.errors import Unavailable
from services.tools.mcp_addresses import client_for, guarded
from services.tools.mcp_config import McpServerConfig, SigningIn


def _config(url: str, issuer: str | None = None) -> McpServerConfig:
    return McpServerConfig(url=url, oauth=SigningIn(per_user=True, issuer=issuer), timeout_s=5)


@contextmanager
def _listening() -> Iterator[tuple[str, list[str]]]:
    """A server within the network, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    "address",
    [
        *("http://127.0.0.1:9/x", "http://localhost:9/x", "http://[::1]:9/x", "http://0.0.0.0/x"),
        *("http://10.0.0.8/x", "http://192.168.1.1/x", "http://169.254.169.254/latest/meta-data/iam"),
        *("http://[::ffff:127.0.0.1]/x", "http://[64:ff9b::7f00:1]/x", "http://2130706433/x", "http://0x7f.1/x"),
        *("http://100.64.0.1/x", "http://[fd00::1]/x", "http://[fe80::1]/x", "http://224.0.0.1/x"),
        *("javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "ftp://example.com/x"),
    ],
)
async def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(Unavailable, match="it sends the service to"):
        await guarded(_config("https://tools.example/mcp")).check(httpx2.URL(address))


@pytest.mark.parametrize("address", ["https://8.8.8.8/x", "https://[2001:4860:4860::8888]/x"])
async def test_a_public_address_is_asked(address: str) -> None:
    url = httpx2.URL(address)
    assert await guarded(_config("http://127.0.0.1:9/mcp")).check(url) == url.host


async def test_only_the_very_origins_that_are_configured_may_be_within_the_network() -> None:
    with _listening() as (own, _), _listening() as (named, at_named), _listening() as (other, at_other):
        async with client_for(_config(f"{own}/mcp", named), None) as client:
            assert (await client.get(f"{own}/.well-known/x")).status_code == 200
            assert (await client.get(f"{named}/token")).status_code == 200
            with pytest.raises(Unavailable, match="which is no public address"):
                await client.get(f"{other}/latest/meta-data/iam")
    assert (at_named, at_other) == (["/token"], [])
