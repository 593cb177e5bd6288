"""With LangChain's agents, deepagents and langmem; each test is skipped where its package is not installed."""

import asyncio
from itertools import pairwise
from typing import Any

import httpx
import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from psycopg.rows import tuple_row
from pydantic import Field

from langchain_anamnesis import AnamnesisStore, memory_tools
from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.ports import free_port

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


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


def _prompt(messages: list[BaseMessage]) -> str:
    return "\n".join(f"{each.type}: {each.content}" for each in messages)


@pytest.mark.parametrize("has_loop", [True, False])
async def test_what_is_said_to_an_agent_is_remembered_and_forgotten(
    url: str, client: httpx.AsyncClient, has_loop: bool, caplog: pytest.LogCaptureFixture
) -> None:
    agents = pytest.importorskip("langchain.agents")
    from langchain_anamnesis import AnamnesisMemory

    memory = AnamnesisMemory(url, user=lambda runtime: str(runtime.context["user"]), tools=False)
    model = scripted(*(AIMessage(f"Answer {number}.") for number in range(6)))
    agent = agents.create_agent(model, system_prompt="Be brief.", middleware=[memory])

    async def say(message: str) -> str:
        if has_loop:
            result: dict[str, Any] = await agent.ainvoke(ask(message), context={"user": "ada"})
        else:
            result = await asyncio.to_thread(agent.invoke, ask(message), context={"user": "ada"})
        assert "shown_memory" not in result
        assert result["messages"][0].content == message
        return _prompt(model.asked[-1])

    assert "memory" not in await say("I live in Leeds and my cat is called Tom.")
    assert not caplog.records  # a new user is nothing to warn of
    await say("Remember that I am allergic to penicillin.")
    prompt = await say("Which medicine must I avoid?")
    assert prompt.startswith("system: Be brief.\nhuman: From earlier")
    assert "I am allergic to penicillin" in prompt
    assert "Leeds" in await say("Where do I live?")
    forgetting = await say("Forget that I live in Leeds.")
    shown, changes, _ = forgetting.partition("<memory_changes>")
    assert changes
    assert "Leeds" not in shown
    asked = await say("Where do I live? And where does my cat live?")
    assert "Leeds" not in asked
    assert "Tom" in asked
    operations = (await client.get("/api/v1/users/ada/memory-operations")).json()["items"]
    assert [each["field"] for each in operations if each["type"] == "memory_command"] == ["forget", "remember"]
    core = (await client.get("/api/v1/users/ada/core-memory")).text
    assert "penicillin" in core


async def test_the_prompts_of_a_thread_go_on_sharing_their_beginning(url: str, client: httpx.AsyncClient) -> None:
    agents = pytest.importorskip("langchain.agents")
    from langgraph.checkpoint.memory import InMemorySaver

    from langchain_anamnesis import AnamnesisMemory

    for said in ("My cat is called Tom.", "My daughter is called Greta.", "I work as a nurse in Leeds."):
        body = {"user_id": "ada", "session_id": "before", "message": said}
        await client.post("/api/v1/chat", json=body)
    model = scripted(*(AIMessage(f"Answer {number}.") for number in range(20)))
    memory = AnamnesisMemory(url, user="ada", tools=False)
    agent = agents.create_agent(model, middleware=[memory], checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "t-1"}}
    asked = ["What is my cat called?", "My dog is called Bruno.", "What are my cat and my dog called?"]
    asked += [
        "How is my daughter called?",
        "Where do I work?",
        "My boat is called Ida.",
        "What is my boat called?",
    ]
    cached = {"type": "text", "cache_control": {"type": "ephemeral"}}
    system: list[str | dict[Any, Any]] = [{**cached, "text": "Be kind."}]
    blocks: list[str | dict[Any, Any]] = [{**cached, "text": "What is my cat called, again?"}]
    await agent.ainvoke({"messages": [SystemMessage(system), HumanMessage(asked[0])]}, thread)
    for each in (*map(HumanMessage, asked[1:]), HumanMessage(blocks)):
        await agent.ainvoke({"messages": [each]}, thread)
    prompts = [_prompt(each) for each in model.asked]
    assert all(after.startswith(before) for before, after in pairwise(prompts))
    assert prompts[-1].count("is called Tom") == 1
    assert prompts[-1].count("Bruno") == 1  # it stands in the thread
    assert prompts[-1].count("Greta") == 1
    assert model.asked[-1][0].content == system
    assert model.asked[-1][-1].content[-1] == blocks[0]

    await client.post("/api/v1/users/ada/memory/forget", json={"what": "my cat is called Tom"})
    await agent.ainvoke(ask("Where do I work, again?"), thread)
    after = _prompt(model.asked[-1])
    assert "Tom" not in after
    assert "nurse" in after


async def test_tools_serve_the_user_of_the_run_and_what_they_change_belongs_to_the_exchange(
    services: Services, url: str, client: httpx.AsyncClient
) -> None:
    agents = pytest.importorskip("langchain.agents")
    from langchain_anamnesis import AnamnesisMemory

    def user(runtime: Any) -> str:
        return str(runtime.context["user"])

    @tool
    def read_page() -> str:
        """Read a page."""
        return "Bob's password is swordfish."

    memory = AnamnesisMemory(url, user=user, space=lambda runtime: runtime.context["space"])
    model = scripted(
        AIMessage("Noted."),
        calls("forget", what="I live in Leeds"),
        AIMessage("Done."),
        calls("read_page"),
        AIMessage("Bob's password is swordfish."),
    )
    agent = agents.create_agent(model, tools=[read_page], middleware=[memory])
    context = {"user": "ada", "space": "home"}
    for said in ("I live in Leeds.", "Could you please drop the Leeds thing, love?", "What does the page say?"):
        result = await agent.ainvoke(ask(said), context=context)
    assert result["messages"][-1].text == "Bob's password is swordfish."
    body = {"query": "Leeds", "space": "home"}
    assert "Leeds" not in (await client.post("/api/v1/users/ada/episodes/search", json=body)).text
    body = {"query": "password of Bob", "space": "home"}
    found = (await client.post("/api/v1/users/ada/episodes/search", json=body)).json()["items"]
    assert "swordfish" in found[0]["content"]
    assert (await client.post("/api/v1/users/ada/episodes/search", json={"query": "page"})).json()["items"] == []
    origins = "SELECT origin FROM messages WHERE content LIKE '%%swordfish%%'"  # all of the answer is foreign
    assert await services.database.fetch(DEFAULT_TENANT, origins, {}, tuple_row) == [("tool",)]


async def test_an_agent_goes_on_without_a_service() -> None:
    forget = memory_tools(f"http://127.0.0.1:{free_port()}", user="ada")[1]
    told = await forget.ainvoke({"what": "all"})
    assert (
        told == "Memory does not answer at the moment: nothing was forgotten. Tell the user, and try again later."
    )


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
    assert "cello" in (await client.get("/api/v1/users/ada/core-memory")).text
