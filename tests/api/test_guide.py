"""The documentation as the service serves it."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from api.pages import Guide


@pytest.fixture
async def guide(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that serves only a folder in `tmp_path`."""
    app = Starlette(routes=[Mount("/guide", Guide(tmp_path / "site"))])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://guide") as opened:
        yield opened


def _build(folder: Path, **pages: str) -> None:
    (folder / "site").mkdir(exist_ok=True)
    for name, text in pages.items():
        (folder / "site" / f"{name}.html").write_text(text)


async def test_before_it_is_built_its_address_says_how(guide: httpx.AsyncClient, tmp_path: Path) -> None:
    for path in ("/guide/", "/guide/api.html"):
        missing = await guide.get(path)
        assert (missing.status_code, missing.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "make docs" in missing.text
    _build(tmp_path, index="<h1>Anamnesis</h1>")
    assert (await guide.get("/guide/")).text == "<h1>Anamnesis</h1>"
    _build(tmp_path, index="<h1>Anamnesis again</h1>")
    assert (await guide.get("/guide/index.html")).text == "<h1>Anamnesis again</h1>"


async def test_what_it_does_not_hold_is_not_found(guide: httpx.AsyncClient, tmp_path: Path) -> None:
    _build(tmp_path, index="<h1>Anamnesis</h1>")
    for path in ("/guide/nothing.html", "/guide/../pages.py", "/guide/%2e%2e/pages.py"):
        assert (await guide.get(path)).status_code == 404, path
    assert (await guide.post("/guide/")).status_code == 405


async def test_its_pages_may_load_nothing_from_other_hosts(guide: httpx.AsyncClient, tmp_path: Path) -> None:
    _build(tmp_path, index="<h1>Anamnesis</h1>")
    policy = (await guide.get("/guide/")).headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "http" not in policy


async def test_the_service_serves_it(client: httpx.AsyncClient) -> None:
    found = await client.get("/guide", follow_redirects=True)
    assert found.url.path == "/guide/"
    assert ("Anamnesis" in found.text) or ("make docs" in found.text)
