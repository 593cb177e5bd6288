"""The documentation's examples run."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.support.fork_server import ROOT

EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def examples(page: Path) -> list[str]:
    """The blocks of Python on a page."""
    return EXAMPLE.findall(page.read_text())


async def test_every_example_of_the_client_runs_in_order(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = [block for page in ("client.md", "build-on-it.md") for block in examples(ROOT / "docs" / page)]
    assert len(blocks) == 4
    for block in blocks:
        code = compile(block.replace("http://127.0.0.1:8000", url), "documentation", "exec")
        await asyncio.to_thread(exec, code, {"__name__": "__main__"})
    said = capsys.readouterr().out
    assert "invalid_input" in said
    assert "known" in said
