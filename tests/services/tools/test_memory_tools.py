"""`remember`, `forget` and `search_memory`, over the real stores."""

import pytest
from langchain_core.messages import ToolCall, ToolMessage

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from state.context import TurnContext
from tests.support.turns import exchange, new_turn

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]


async def _context(services: Services) -> TurnContext:
    turn = await services.turns.open(new_turn("question", session_key="asks"))
    return TurnContext(
        tenant_id=str(DEFAULT_TENANT),
        user_id=str(turn.user_id),
        conversation_id=str(turn.conversation_id),
        expert_id=str(turn.expert_id),
        user_message_id=str(turn.user_message_id),
        turn_id=str(turn.turn_id),
    )


async def _call(
    services: Services, context: TurnContext, *calls: tuple[str, dict[str, object]]
) -> list[ToolMessage]:
    asked = [ToolCall(name=name, args=arguments, id=str(place)) for place, (name, arguments) in enumerate(calls)]
    return await services.tool_executor.run(asked, context, lambda *_: None)


async def test_a_search_can_be_limited_to_days(services: Services) -> None:
    await exchange(services.turns, "I planted three pear trees.", "Good.", session_key="s-1")
    context = await _context(services)
    (recent,) = await _call(services, context, ("search_memory", {"query": "pear trees", "days": 2}))
    assert "pear trees" in recent.text
    (before,) = await _call(services, context, ("search_memory", {"query": "pear trees", "until": "2020-01-01"}))
    assert before.text == "Nothing in memory matches."
    (wrong,) = await _call(services, context, ("search_memory", {"query": "pear trees", "since": "May"}))
    assert (wrong.text, wrong.status) == ("Dates are written as 2026-12-24.", "error")


async def test_reads_of_the_same_step_see_what_it_writes(services: Services) -> None:
    await exchange(services.turns, "My sister Ines breeds alpacas.", "How nice.", session_key="s-1")
    found, forgotten = await _call(
        services,
        await _context(services),
        ("search_memory", {"query": "alpacas"}),
        ("forget", {"what": "my sister Ines breeds alpacas"}),
    )
    assert found.text == "Nothing in memory matches."
    assert forgotten.status == "success"
