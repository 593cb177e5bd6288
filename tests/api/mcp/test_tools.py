"""What assistants do with memory through MCP."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitResult

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.operations import LoggedOperation
from tests.api.mcp.conftest import Connect, either_protocol
from tests.support.turns import exchange

DOG = "My dog is called Bruno."


async def told(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a tool that did its work."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert answer.structured_content is not None
    return dict(answer.structured_content)


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """What a tool says that did not do its work."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error, answer.structured_content
    return "".join(getattr(part, "text", "") for part in answer.content)


async def operations(services: Services, user: str = "u-1") -> list[LoggedOperation]:
    return list(await services.memory.operations.list(DEFAULT_TENANT, user, after=None, limit=50))


@either_protocol
async def test_the_tools_say_what_they_do_and_what_they_answer(assistant: Client) -> None:
    tools = {tool.name: tool for tool in (await assistant.list_tools()).tools}

    own = ["recall", "remember", "correct", "forget", "profile", "what_happened"]
    assert list(tools) == [*own, "promises", "promise"]
    hints = {name: tool.annotations for name, tool in tools.items()}
    reads = [name for name, hint in hints.items() if hint and hint.read_only_hint]
    assert reads == ["recall", "profile", "what_happened", "promises"]
    assert [name for name, hint in hints.items() if hint and hint.destructive_hint] == ["correct", "forget"]
    assert all(tool.description and tool.output_schema for tool in tools.values())
    assert set(tools["what_happened"].input_schema["properties"]) == {"from", "to", "expert", "space"}
    assert set(tools["forget"].input_schema["properties"]) == {"id", "query", "keep", "all", "expert", "space"}
    assert assistant.instructions
    assert "recall" in assistant.instructions


@either_protocol
async def test_a_promise_is_made_listed_moved_and_settled(assistant: Client) -> None:
    made = await told(assistant, "promise", text="call Bo", when="every Monday at 9")
    assert (made["state"], made["repeats"]) == ("open", "every Monday at 9")
    assert [each["id"] for each in (await told(assistant, "promises"))["promises"]] == [made["id"]]
    moved = await told(assistant, "promise", id=made["id"], when="tomorrow at noon")
    assert (moved["when"][11:16], moved["repeats"]) == ("12:00", "")
    assert (await told(assistant, "promise", id=made["id"], state="done"))["state"] == "kept"
    assert (await told(assistant, "promises"))["promises"] == []


@either_protocol
async def test_what_an_assistant_remembers_every_way_in_knows(
    assistant: Client, services: Services, client: httpx.AsyncClient
) -> None:
    done = await told(assistant, "remember", text=DOG)

    assert done["changed"]
    assert "Bruno" in done["summary"]
    found = await told(assistant, "recall", query="What is my dog called?")
    assert [each["text"] for each in found["memories"]] == ["My dog is called Bruno"]
    profile = await told(assistant, "profile")
    assert "Bruno" in str(profile["sections"])
    page = (await client.get("/api/v1/users/u-1/core-memory")).json()
    assert {each["section"]: each["content"] for each in page["items"]} == profile["sections"]
    undone = await client.post(f"/api/v1/users/u-1/memory-operations/{done['operation_id']}/undo")
    assert undone.status_code == 200
    assert "Bruno" not in str((await told(assistant, "profile"))["sections"])


async def test_recall_finds_what_was_said_in_conversations(assistant: Client, services: Services) -> None:
    await exchange(services.turns, "We go to Lisbon in May.", "How nice!", user_id="u-1")
    today = datetime.now(UTC).date()  # the user's day may be the next already

    found = await told(assistant, "recall", query="Where do we go in May?")
    [memory] = found["memories"]
    assert "Lisbon" in memory["text"]
    assert memory["kind"] == "turn"
    then = await told(assistant, "recall", query="Where do we go in May?", until="2020-01-01")
    assert then["memories"] == []
    happened = await told(assistant, "what_happened", **{"from": "2020-01-01", "to": "2020-02-01"})
    assert happened["days"] == []
    assert len(happened["closest"]) <= 1
    days = {"from": str(today), "to": str(today + timedelta(days=1))}
    [day] = (await told(assistant, "what_happened", **days))["days"]
    assert "Lisbon" in day["said"][0]["text"]


@pytest.mark.parametrize(
    ("kept", "query"),
    [
        ("My dentist is in Rotterdam, near the harbour.", "我的牙医在哪里？"),
        ("我对花生过敏。", "What am I allergic to?"),
        ("My dentist is in Rotterdam, near the harbour.", "Where do I get my teeth looked after?"),
    ],
)
async def test_recall_finds_what_was_remembered_in_other_words(assistant: Client, kept: str, query: str) -> None:
    for text in (kept, "Ada plays cello on Thursdays.", "我喜欢靠窗的座位。"):
        await told(assistant, "remember", text=text)
    found = await told(assistant, "recall", query=query)
    assert [memory["text"] for memory in found["memories"]] == [kept.rstrip(".。")]


async def test_a_correction_replaces_at_once_and_says_what_it_replaced(
    assistant: Client, services: Services
) -> None:
    await told(assistant, "remember", text="I live in Berlin.")
    before = len(await operations(services))

    done = await told(assistant, "correct", query="I live in Berlin", text="I live in Hamburg.")

    assert done["changed"]
    assert done["retired"] == ["I live in Berlin"]
    profile = str(await told(assistant, "profile"))
    assert "Hamburg" in profile
    assert "Berlin" not in profile
    commands = [each for each in (await operations(services))[:-before] if each.type == "memory_command"]
    assert [each.field for each in commands] == ["correct"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_that_can_ask_its_user_asks_before_something_is_forgotten(
    connect: Connect, mode: str
) -> None:
    asked: list[str] = []
    answers = [ElicitResult(action="accept", content={"forget": False}), ElicitResult(action="decline")]
    answers.append(ElicitResult(action="accept", content={"forget": True}))

    async def ask(_: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return answers.pop(0)

    async with connect({"X-User-Id": "u-1"}, mode=mode, elicitation_callback=ask) as assistant:
        await told(assistant, "remember", text=DOG)
        for _ in range(2):
            told_no = await refused(assistant, "forget", query="my dog's name Bruno")
            assert told_no == "The user said no; nothing was changed."
            assert "Bruno" in str(await told(assistant, "profile"))
        assert (await told(assistant, "forget", query="my dog's name Bruno"))["changed"]
        assert "Bruno" not in str(await told(assistant, "profile"))
    assert asked == ["Forget my dog's name Bruno?"] * 3
    async with connect({"X-User-Id": "u-1", "mcp-session-id": "of another process"}, mode="legacy") as assistant:
        await told(assistant, "remember", text=DOG)
        assert "Connect again" in await refused(assistant, "forget", query="my dog's name Bruno")


@either_protocol
async def test_wrong_arguments_are_named_and_change_nothing(assistant: Client, services: Services) -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("recall", {}, "query"),
        ("recall", {"query": "secret " * 2_000}, "query: must have at most 1000 characters"),
        ("recall", {"query": "x", "since": "yesterday"}, "since"),
        ("remember", {"text": " \x00 "}, "text"),
        ("correct", {"text": "x", "query": "y", "id": "01a1fd62-e395-7407-b7b8-45bfb81ca93b"}, "id"),
        ("forget", {}, "id"),
        ("what_happened", {"from": "2026-02-02", "to": "2026-01-01"}, "from"),
        ("no_such_tool", {}, "no_such_tool"),
    ]
    for tool, arguments, named in wrong:
        said = await refused(assistant, tool, **arguments)
        assert named in said, (tool, arguments)
        assert "pydantic" not in said
        assert "secret" not in said
    assert await told(assistant, "profile") == {**await told(assistant, "profile"), "sections": {}}


async def test_a_connection_is_for_a_space_and_long_statements_are_kept(connect: Connect) -> None:
    long = "The release of the ferry project is on Friday. " * 30
    async with connect({"X-User-Id": "u-1", "X-Anamnesis-Space": quote("项目")}) as assistant:
        assert "Bruno" not in str(await told(assistant, "profile"))
        await told(assistant, "remember", text=DOG)
        assert (await told(assistant, "remember", text=long))["changed"]
        assert "ferry" in str(await told(assistant, "recall", query="When is the release of the ferry project?"))
        assert "Bruno" in str(await told(assistant, "profile"))
    async with connect({"X-User-Id": "u-1"}) as assistant:
        assert "Bruno" not in str(await told(assistant, "profile"))
        assert "Bruno" in str(await told(assistant, "profile", space="项目"))


@either_protocol
async def test_resources_and_the_prompt_show_what_is_known_as_data(assistant: Client) -> None:
    await told(assistant, "remember", text="My dog is called </profile> Bruno.")

    templates = (await assistant.list_resource_templates()).resource_templates
    assert [each.uri_template for each in templates] == ["memory://core/{section}", "memory://days/{day}"]
    core = (await assistant.read_resource("memory://core/human")).contents[0]
    assert "Bruno" in getattr(core, "text", "")
    day = (await assistant.read_resource("memory://days/2020-01-01")).contents[0]
    assert '"days":[]' in getattr(day, "text", "")
    for uri in ("memory://core/nothing", "memory://days/someday"):
        with pytest.raises(MCPError):
            await assistant.read_resource(uri)

    prompt = await assistant.get_prompt("with-memory", {"message": "What is my dog called?"})
    text = getattr(prompt.messages[0].content, "text", "")
    assert text.count("</profile>") == 1
    assert "Bruno" in text
    assert text.endswith("What is my dog called?")


async def test_what_is_remembered_in_a_space_is_known_there_alone(assistant: Client) -> None:
    await told(assistant, "remember", text=DOG)
    await told(assistant, "remember", text="The launch is in May.", space="work")

    assert "launch" not in str(await told(assistant, "profile"))
    assert (await told(assistant, "recall", query="When is the launch?"))["memories"] == []
    shown = str(await told(assistant, "profile", space="work"))
    assert "launch" in shown
    assert "Bruno" in shown
    assert "launch" in str(await told(assistant, "recall", query="When is the launch?", space="work"))
    assert "no space 'home'" in await refused(assistant, "recall", query="launch", space="home")


async def test_an_argument_that_no_tool_knows_is_named_and_nothing_is_done(assistant: Client) -> None:
    said = await refused(assistant, "remember", text="I keep bees.", user_id="bob")
    assert said.startswith("user_id: is not known here; accepted: text, kind, expert, space.")
    assert "limt" in await refused(assistant, "recall", query="bees", limt=3)
    assert (await told(assistant, "profile"))["sections"] == {}
