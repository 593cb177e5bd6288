import asyncio
from typing import Any

import pytest
from langchain_core.messages import ToolCall
from langchain_core.tools import tool
from langgraph.prebuilt import ToolRuntime

from services.tools.executor import ToolExecutor
from services.tools.registry import ToolRegistry
from services.tools.tool import RegisteredTool
from state.turn import OpenTurn
from tests.support.turns import opened


@tool
async def hangs() -> str:
    """Never answer."""
    await asyncio.Event().wait()
    return ""


@tool
async def defective() -> str:
    """Fail."""
    raise ZeroDivisionError("with a secret in it")


@tool
async def whoami(runtime: ToolRuntime[OpenTurn]) -> str:
    """Tell who the user is."""
    return str(runtime.context.user_id)


def _executor() -> ToolExecutor:
    """Over tools of which the first waits for the second."""
    released = asyncio.Event()

    @tool
    async def first(word: str) -> str:
        """Wait for the second, then answer."""
        await released.wait()
        return f"first {word}"

    @tool
    async def second(word: str) -> str:
        """Answer at once."""
        released.set()
        return f"second {word}"

    quick = [RegisteredTool(each) for each in (first, second, defective, whoami)]
    return ToolExecutor(ToolRegistry([*quick, RegisteredTool(hangs, timeout_s=0.05)]))


def _call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name=name, args=arguments, id=f"call {name}")


async def _run(*calls: ToolCall) -> tuple[list[Any], list[tuple[str, dict[str, Any]]]]:
    events: list[tuple[str, dict[str, Any]]] = []
    messages = await _executor().run(calls, opened(), lambda status, content: events.append((status, content)))
    return messages, events


async def test_calls_run_at_once_and_results_come_as_they_are_ready() -> None:
    messages, events = await _run(_call("first", word="a"), _call("second", word="b"))
    assert [message.text for message in messages] == ["first a", "second b"]
    assert [(status, content["name"]) for status, content in events] == [
        ("tool_call", "first"),
        ("tool_call", "second"),
        ("tool_result", "second"),
        ("tool_result", "first"),
    ]
    assert events[2][1]["result"] == "second b"
    assert events[2][1]["duration_ms"] >= 0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (_call("no_such"), "no tool named no_such"),
        (_call("first"), "arguments are wrong: word"),
        (_call("first", word={"not": "text"}), "arguments are wrong: word"),
        (_call("hangs"), "did not answer within 0.05 s"),
        (_call("defective"), "defective failed"),
    ],
)
async def test_a_failure_is_a_result_that_the_model_can_read(call: ToolCall, says: str) -> None:
    messages, events = await _run(call)
    assert says in messages[0].text
    assert messages[0].status == "error"
    assert "secret" not in messages[0].text
    assert events[-1][1]["ok"] is False
    assert says in events[-1][1]["error"]


async def test_identity_is_the_runs_and_not_the_models() -> None:
    messages, _ = await _run(_call("whoami", runtime={"context": {"user_id": "somebody else"}}))
    assert messages[0].text == str(opened().user_id)
