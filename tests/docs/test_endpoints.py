"""Every endpoint is described on a page."""

import re

import httpx

from tests.docs.test_site import DOCS


def _plain(text: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", text)


def _ends(path: str) -> list[str]:
    """The path, and each end of it that pages write behind `…`."""
    parts = path.split("/")[1:]
    ends = ["/".join(parts[start:]) for start in range(1, len(parts))]
    return [f"/{path.removeprefix('/')}", *(f"…/{end}" for end in ends if end.strip("{}/"))]


async def test_every_endpoint_is_on_a_page(client: httpx.AsyncClient) -> None:
    pages = _plain("\n".join(page.read_text("utf-8") for page in DOCS.glob("*.md")))
    paths = (await client.get("/openapi.json")).json()["paths"]
    assert [path for path in paths if not any(end in pages for end in _ends(_plain(path)))] == []
