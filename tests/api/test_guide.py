"""The documentation as the service serves it."""

import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Page, TimeoutError
from starlette.applications import Starlette
from starlette.routing import Mount

from api.guide.pages import ARCHIVE, Guide
from tests.console.browser import Watched, chromium

_ATTEMPTS = 12
"""Times 10 s for the page to read its index of all words, on a busy machine."""

pytestmark = pytest.mark.anyio

built = pytest.mark.skipif(not ARCHIVE.is_file(), reason="the site is not built: make docs")


@pytest.fixture
async def guide(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that serves only an archive in `tmp_path`."""
    app = Starlette(routes=[Mount("/guide", Guide(tmp_path / "site.tar.xz"))])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://guide") as opened:
        yield opened


def _build(folder: Path, **pages: str) -> None:
    """Pack pages as `make docs` does."""
    (folder / "pages").mkdir(exist_ok=True)
    for name, text in pages.items():
        (folder / "pages" / f"{name}.html").write_text(text)
    shutil.make_archive(str(folder / "site"), "xztar", folder / "pages")


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
    _build(tmp_path, **{"index": "<h1>Anamnesis</h1>", "404": "<h1>No such page</h1>"})
    for path in ("/guide/nothing.html", "/guide/../pages.py", "/guide/%2e%2e/pages.py"):
        assert (await guide.get(path)).status_code == 404, path
    assert (await guide.get("/guide/nothing.html")).text == "<h1>No such page</h1>"
    assert (await guide.post("/guide/")).status_code == 405


async def test_a_folder_is_answered_by_its_first_page(guide: httpx.AsyncClient, tmp_path: Path) -> None:
    (tmp_path / "pages" / "zh").mkdir(parents=True)
    (tmp_path / "pages" / "zh" / "index.html").write_text("<h1>概览</h1>")
    _build(tmp_path, index="<h1>Anamnesis</h1>")
    assert (await guide.get("/guide/zh/")).text == "<h1>概览</h1>"
    assert (await guide.get("/guide/en/")).status_code == 404


@pytest.mark.parametrize(("path", "up"), [("nothing.html", "./"), ("zh/nothing.html", "../"), ("a/b/c", "../../")])
async def test_the_page_for_missing_pages_finds_its_style_below_any_prefix(
    guide: httpx.AsyncClient, tmp_path: Path, path: str, up: str
) -> None:
    missing = '<link href="/assets/a.css"><script>{"base": "/"}; new URL("/", location)</script><a href="//host">'
    _build(tmp_path, index="<h1>Anamnesis</h1>", **{"404": missing})
    found = (await guide.get(f"/guide/{path}")).text
    assert found == missing.replace('"/assets', f'"{up}assets').replace('"/"', f'"{up}"')


async def test_a_page_that_the_browser_has_is_not_sent_again(guide: httpx.AsyncClient, tmp_path: Path) -> None:
    _build(tmp_path, index="<h1>Anamnesis</h1>")
    first = await guide.get("/guide/")
    again = await guide.get("/guide/", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert (await guide.head("/guide/")).headers["content-length"] == first.headers["content-length"]


async def test_its_pages_may_load_nothing_from_other_hosts(guide: httpx.AsyncClient, tmp_path: Path) -> None:
    _build(tmp_path, index="<h1>Anamnesis</h1>")
    policy = (await guide.get("/guide/")).headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "http" not in policy


async def test_the_service_serves_it(client: httpx.AsyncClient) -> None:
    found = await client.get("/guide", follow_redirects=True)
    assert found.url.path == "/guide/"
    assert ("Anamnesis" in found.text) or ("make docs" in found.text)


async def _search(page: Page, words: str, found: str) -> None:
    """Type words until the page lists an address: what it hears before its search has begun is lost."""
    field = page.locator("[data-md-component=search-query]")
    listed = page.locator(f".md-search-result__item a[href*='{found}']").first
    for _ in range(_ATTEMPTS):
        for typed in ("", words):  # the same words again are no news to it
            await field.fill(typed)
            await field.press("End")
        with contextlib.suppress(TimeoutError):
            await listed.wait_for(state="attached", timeout=10_000)
            return
    pytest.fail(f"the search for {words} does not list {found}")


@built
async def test_a_browser_reads_it_in_both_languages_and_finds_words_without_another_host(url: str) -> None:
    async with chromium() as browser:
        watched = Watched(await browser.new_page(), url)
        watched.watch()
        page = watched.page
        await page.goto(f"{url}/guide/")
        await page.get_by_role("heading", name="Anamnesis", exact=False).first.wait_for()
        await page.goto(f"{url}/guide/deploy.html")
        await page.get_by_role("link", name="中文", exact=True).click()
        await page.wait_for_url(f"{url}/guide/zh/deploy.html")
        assert "部署" in await page.title()
        assert await page.locator("html").get_attribute("lang") == "zh"
        assert await page.get_by_role("link", name="Operations", exact=True).count() == 0
        await page.get_by_role("link", name="English", exact=True).click()
        await page.wait_for_url(f"{url}/guide/deploy.html")
        for words, found in (("记忆", "zh/"), ("exemplars", "metrics.html")):
            await page.goto(f"{url}/guide/")
            await _search(page, words, found)
        assert watched.faults == []
