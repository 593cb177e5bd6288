"""The model changes core memory by a tool: of the user whose turn it is, and of nobody else."""

from typing import Any

import pytest
from langchain_core.messages import ToolCall

from services.bootstrap import Services
from services.conversations.turn import OpenTurn
from services.identity.tenants import DEFAULT_TENANT
from services.memory.blocks import Owner
from services.tools.registry import ToolRegistry
from services.tools.tool import ToolServices
from state.context import TurnContext
from tests.support.turns import context_of, new_turn

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]


async def _update(services: Services, turn: OpenTurn, **arguments: Any) -> tuple[str, str]:
    call = ToolCall(name="core_memory_update", args=arguments, id="c")
    context = TurnContext(**context_of(turn))
    (message,) = await services.tool_executor.run([call], context, lambda *_: None)
    return message.text, message.status


async def test_a_fact_is_remembered_with_the_message_that_told_it(services: Services) -> None:
    turn = await services.turns.open(new_turn("Call me Wang."))
    answer = await _update(services, turn, section="human", content={"name": "Wang"})
    assert answer == ("Core memory, human, version 1: name.", "success")
    owner = Owner(turn.tenant_id, turn.user_id, turn.expert_id)
    (block,) = await services.memory.core.read(owner)
    assert (block.section, block.content) == ("human", {"name": "Wang"})
    (change,) = await services.memory.core.history(owner, "human", limit=5)
    assert (change.actor, change.trigger_message_id) == ("model", turn.user_message_id)
    (logged,) = await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=5)
    assert (logged.conversation_id, logged.turn_id) == (turn.conversation_id, turn.turn_id)


async def test_wrong_arguments_are_answered_to_the_model(services: Services) -> None:
    turn = await services.turns.open(new_turn("Hello"))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"section": "a b", "content": {"x": 1}}, "section: is 1 to 64 letters, digits and underscores"),
        ({"content": {}}, "content is empty"),
        ({"content": {"x": "y" * 5000}}, "the section human would have 5008 bytes; at most 4096 are accepted"),
        ({"content": {"x": "a\x00b"}}, "NUL"),
        ({"content": "name: Wang"}, "The arguments are wrong: content"),
        ({"section": "human"}, "The arguments are wrong: content"),
    ]
    for arguments, reason in wrong:
        text, status = await _update(services, turn, **arguments)
        assert status == "error"
        assert reason in text
    assert await services.memory.core.read(Owner(turn.tenant_id, turn.user_id, turn.expert_id)) == []


def test_without_core_memory_there_is_no_such_tool() -> None:
    assert ToolRegistry.of_builtin_tools(ToolServices()).get("core_memory_update") is None
