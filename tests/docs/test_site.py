"""The documentation holds together: pages, navigation, links and the names of settings."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from services.platform.settings import OF_COMMANDS, PREFIX, Settings
from tests.support.fork_server import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
READ_IN_THE_CHECKOUT = [
    ROOT / f"{name}.md" for name in ("README", "README.zh", "CHANGELOG", "CONTRIBUTING", "SECURITY")
]
DEPLOYMENT = [ROOT / "deploy" / "compose.yaml", ROOT / "deploy" / "env.example"]

FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
VARIABLE = re.compile(rf"{PREFIX}([A-Z0-9_]+[A-Z0-9])(_…)?")


class Configuration(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """Reads mkdocs.yml and leaves its Python objects alone."""


Configuration.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


@cache
def configuration() -> dict[str, Any]:
    """The site's configuration."""
    loaded: dict[str, Any] = yaml.load((ROOT / "mkdocs.yml").read_text(), Configuration)
    return loaded


def in_navigation(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for child in entry.values() if isinstance(entry, dict) else entry:
            yield from in_navigation(child)


def excluded(page: Path) -> bool:
    """Whether a page is left out of the navigation on purpose."""
    patterns = str(configuration()["not_in_nav"]).split()
    return any(page.relative_to(DOCS).match(pattern.lstrip("/")) for pattern in patterns)


@cache
def anchors(page: Path) -> set[str]:
    """The anchors that GitHub and the site give a page's headings."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", page.read_text())):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-"))
    return found


def broken_links(page: Path) -> Iterator[str]:
    """The links of a page that lead nowhere, or from the site to a file that is no part of it."""
    for target in LINK.findall(CODE.sub("``", FENCE.sub("", page.read_text()))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        leaves_the_site = page.is_relative_to(DOCS) and not file.is_relative_to(DOCS)
        if leaves_the_site or not file.exists() or (anchor and anchor not in anchors(file)):
            yield target


def test_the_navigation_names_every_page_once_and_no_other() -> None:
    named = list(in_navigation(configuration()["nav"]))
    assert len(named) == len(set(named))
    assert set(named) == {str(page.relative_to(DOCS)) for page in PAGES if not excluded(page)}


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    broken = {str(page.relative_to(ROOT)): list(broken_links(page)) for page in [*PAGES, *READ_IN_THE_CHECKOUT]}
    assert {page: links for page, links in broken.items() if links} == {}


def test_every_variable_that_is_mentioned_exists() -> None:
    known = {name.upper() for name in Settings.model_fields} | {name.removeprefix(PREFIX) for name in OF_COMMANDS}
    for file in DEPLOYMENT:
        known |= {name for name, _ in VARIABLE.findall(file.read_text())}
    unknown = [
        f"{page.relative_to(ROOT)}: {PREFIX}{name}"
        for page in [*PAGES, *READ_IN_THE_CHECKOUT]
        for name, is_beginning in VARIABLE.findall(page.read_text())
        if not (any(each.startswith(f"{name}_") for each in known) if is_beginning else name in known)
    ]
    assert unknown == []


def test_the_site_asks_no_other_host_for_fonts_or_figures() -> None:
    settings = configuration()
    assert settings["theme"]["font"] is False
    assert "analytics" not in settings["extra"]
    assert not {"extra_javascript", "extra_css", "repo_url"} & settings.keys()


def test_every_file_that_the_map_names_exists() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", (DOCS / "architecture.md").read_text("utf-8")))
    folders = ("api", "graph", "nodes", "services", "state", "anamnesis_agent", "anamnesis_client")
    there = [str(file) for folder in folders for file in (ROOT / folder).rglob("*.py")]
    assert {name for name in named if not any(file.endswith(f"/{name}") for file in there)} == set()
