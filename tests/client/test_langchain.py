"""The package langchain-anamnesis against the application: a retriever, tools, and the page's examples."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from langchain_anamnesis import AnamnesisRetriever, memory_tools
from tests.client.test_documentation import examples
from tests.support.fork_server import ROOT

pytestmark = pytest.mark.anyio

NEEDS_LANGCHAIN = "from langchain.agents import"


async def test_tools_and_retriever_in_an_event_loop(url: str) -> None:
    remember, forget, search_memory = memory_tools(url, user="tools")
    assert "cello" in await remember.ainvoke({"text": "Plays the cello."})
    assert "cello" in await search_memory.ainvoke({"query": "cello"})
    found = await AnamnesisRetriever(url=url, user="tools").ainvoke("cello")
    assert [each.page_content for each in found] == ["Plays the cello."]
    assert found[0].metadata["kind"] == "preference"
    await forget.ainvoke({"what": "Plays the cello."})
    assert await search_memory.ainvoke({"query": "cello"}) == "Nothing was found."


@pytest.mark.parametrize("number", range(5))
async def test_every_example_of_the_page_runs(number: int, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = examples(ROOT / "docs" / "langgraph.md")
    assert len(blocks) == 5
    if NEEDS_LANGCHAIN in blocks[number]:
        pytest.importorskip("langchain")
    code = compile(blocks[number].replace("http://127.0.0.1:8000", url), "documentation", "exec")
    names: dict[str, Any] = {"__name__": "__main__"}
    await asyncio.to_thread(exec, code, names)
    said = capsys.readouterr().out
    wanted: dict[int, Callable[[], bool]] = {
        0: lambda: (
            "pet 0." in said and "work" in said and "{'text': 'My dog is called Bruno.', 'year': 2024}" in said
        ),
        1: lambda: said.split() == ["0", "1"],
        2: lambda: "Bruno." in said,
        3: lambda: "penicillin" in said,
        4: lambda: said.count("cello") >= 2,
    }
    assert wanted[number](), said
