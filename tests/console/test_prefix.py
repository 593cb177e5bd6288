"""The console, the guide and /docs below a path, behind the nginx of the guide to deployment."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.console.browser import watched
from tests.support.folders import new_folder
from tests.support.ports import free_port, wait_for_port

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
NGINX = "/usr/sbin/nginx"


def _of_the_guide() -> tuple[str, str]:
    """The settings of the whole host and of a path, as the page has them."""
    blocks = re.findall(r"```nginx\n(.*?)```", (ROOT / "docs/deploy.md").read_text("utf-8"), re.DOTALL)
    whole = next(block for block in blocks if "server_name" in block)
    below = next(block for block in blocks if "location /anamnesis/" in block)
    return whole, below


@pytest.fixture
def proxied(url: str) -> Iterator[str]:
    """The address of an nginx over the application."""
    if not Path(NGINX).exists():
        pytest.skip("no nginx on this machine; install the system's package")
    whole, below = _of_the_guide()
    lines = re.search(r"location / \{\n(.*?)\n    \}", whole, re.DOTALL)
    assert lines
    usual = "\n".join(line for line in lines[1].splitlines() if "proxy_pass" not in line)
    below = below.replace("        # and the lines of `location /` above\n", usual + "\n")
    server = re.sub(r"    (?:listen|server_name|ssl_).*\n", "", whole)
    port = free_port()
    server = server.replace("server {", f"server {{\n    listen 127.0.0.1:{port};\n{below}", 1)
    # The service answers to loopback names alone without authentication.
    server = server.replace("http://127.0.0.1:8000", url).replace("$host;", "localhost;")
    with new_folder() as folder:
        temporary = "".join(
            f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        text = (
            f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
            f"events {{}}\nhttp {{\naccess_log off;\n{temporary}{server}}}\n"
        )
        (Path(folder) / "nginx.conf").write_text(text)
        process = subprocess.Popen([NGINX, "-c", f"{folder}/nginx.conf", "-p", folder], stderr=subprocess.DEVNULL)
        try:
            wait_for_port(port, 10)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


async def test_everything_stays_below_the_path(browser: Browser, proxied: str) -> None:
    address = f"{proxied}/anamnesis"
    async with watched(browser, address) as seen:
        await seen.page.goto(f"{address}/")
        await expect(seen.page.locator(".composer textarea")).to_be_visible()
        assert seen.page.url.startswith(f"{address}/console")
        await seen.ask("Hello")
        await seen.open("memory")
    for each in (proxied, address):
        async with httpx.AsyncClient(base_url=each) as client:
            assert (await client.get("/guide")).headers["location"] == "guide/"
            assert (await client.get("/")).headers["location"] == "console"
            page = await client.get("/docs")
            assert page.status_code == httpx.codes.OK
            assert re.findall(r"""(?:src=|href=|url: )["']/""", page.text) == []
