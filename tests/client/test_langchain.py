"""The package langchain-anamnesis against the application: a retriever, tools, and the page's examples."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import httpx
import pytest
from langgraph.graph import START, MessagesState, StateGraph

from langchain_anamnesis import AnamnesisRetriever, memory_tools
from tests.client.test_documentation import examples
from tests.support.fork_server import ROOT

NEEDS_LANGCHAIN = "from langchain.agents import"


async def test_tools_and_retriever_in_an_event_loop(url: str) -> None:
    remember, forget, search_memory = memory_tools(url, user="tools")
    assert "cello" in await remember.ainvoke({"text": "Plays the cello."})
    assert "cello" in await search_memory.ainvoke({"query": "cello"})
    retriever = AnamnesisRetriever(url=url, user=lambda runtime: str(runtime.context["user"]))

    async def find(state: MessagesState) -> dict[str, Any]:
        return {"messages": [each.page_content for each in await retriever.ainvoke("boat")]}

    body = {"user_id": "tools", "session_id": "s", "message": "My boat is called Ida."}
    async with httpx.AsyncClient(base_url=url) as client:
        await client.post("/api/v1/chat", json=body)
    graph = StateGraph(MessagesState).add_node(find).add_edge(START, "find").compile()
    messages = (await graph.ainvoke({"messages": []}, context=cast(Any, {"user": "tools"})))["messages"]
    assert any("Ida" in each.text for each in messages)
    instead = await remember.ainvoke({"text": "Plays the viola.", "replaces": "Plays the cello."})
    assert "viola" in instead
    assert "cello" not in await search_memory.ainvoke({"query": "cello"})
    await forget.ainvoke({"what": "Plays the viola."})
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
