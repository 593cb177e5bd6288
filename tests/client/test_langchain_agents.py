"""With LangChain's agents, deepagents and langmem; each test is skipped where its package is not installed."""

import asyncio
from typing import Any

import httpx
import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from pydantic import Field

from langchain_anamnesis import AnamnesisStore, memory_tools

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


class Scripted(GenericFakeChatModel):
    """Says what it is told to, and keeps what it is asked."""

    asked: list[list[BaseMessage]] = Field(default_factory=list)

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        self.asked.append(messages)
        return super()._generate(messages, *args, **options)

    def bind_tools(self, tools: Any, **_: Any) -> Runnable[Any, AIMessage]:
        return self


def scripted(*answers: AIMessage) -> Scripted:
    return Scripted(messages=iter(answers), asked=[])


def calls(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "call_1"}])


def ask(message: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(message)]}


async def _found(client: httpx.AsyncClient, query: str) -> str:
    body = {"query": query}
    return (await client.post("/api/v1/users/ada/episodes/search", json=body)).text


@pytest.mark.parametrize("has_loop", [True, False])
async def test_an_agent_recalls_and_what_is_said_is_kept(
    url: str, client: httpx.AsyncClient, has_loop: bool
) -> None:
    agents = pytest.importorskip("langchain.agents")
    from langchain_anamnesis import AnamnesisMemory

    memory = AnamnesisMemory(url, user=lambda runtime: str(runtime.context["user"]), session="agent")
    model = scripted(AIMessage("Noted."), AIMessage("Bruno."))
    agent = agents.create_agent(model, system_prompt="Be brief.", middleware=[memory])

    async def say(message: str) -> dict[str, Any]:
        if has_loop:
            said: dict[str, Any] = await agent.ainvoke(ask(message), context={"user": "ada"})
        else:
            said = await asyncio.to_thread(agent.invoke, ask(message), context={"user": "ada"})
        return said

    await say("My dog is called Bruno.")
    assert "Bruno" not in model.asked[0][0].text
    assert "My dog is called Bruno." in await _found(client, "dog")
    result = await say("What is my dog called?")
    system = model.asked[1][0].text
    assert system.startswith("Be brief.")
    assert "My dog is called Bruno." in system
    assert "recalled_memory" not in result


async def test_the_prebuilt_agent_uses_tools_and_the_store(url: str, client: httpx.AsyncClient) -> None:
    from langgraph.config import get_store
    from langgraph.prebuilt import create_react_agent  # type: ignore[attr-defined,unused-ignore]

    @tool
    async def note(text: str) -> str:
        """Write a note."""
        await get_store().aput(("notes",), "1", {"text": text})
        return "Written."

    async with AnamnesisStore(url, user="ada") as store:
        model = scripted(
            calls("note", text="Buy milk."), calls("remember", text="Plays the cello."), AIMessage("Ok.")
        )
        tools = [note, *memory_tools(url, user="ada")]
        agent = create_react_agent(model, tools, store=store)
        result = await agent.ainvoke(ask("Note it."))
        assert result["messages"][-1].text == "Ok."
        item = await store.aget(("notes",), "1")
        assert item is not None
        assert item.value == {"text": "Buy milk."}
    assert "cello" in await _found(client, "cello")
