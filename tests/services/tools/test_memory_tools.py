"""`remember`, `forget` and `search_memory`, over the real stores."""

import pytest
from langchain_core.messages import ToolCall, ToolMessage

from services.bootstrap import Services
from state.turn import OpenTurn
from tests.support.turns import exchange, new_turn

pytestmark = pytest.mark.untraced


async def _turn(services: Services) -> OpenTurn:
    return await services.turns.open(new_turn("question", session_id="asks"))


async def _call(services: Services, turn: OpenTurn, *calls: tuple[str, dict[str, object]]) -> list[ToolMessage]:
    asked = [ToolCall(name=name, args=arguments, id=str(place)) for place, (name, arguments) in enumerate(calls)]
    return await services.tool_executor.run(asked, turn, lambda *_: None)


async def test_other_names_of_the_tools_mean_the_same(services: Services) -> None:
    turn = await _turn(services)
    (kept,) = await _call(
        services, turn, ("archival_memory_insert", {"content": "Plays the oboe.", "importance": 1})
    )
    assert (kept.text, kept.name) == ("Saved to memory: Plays the oboe.", "archival_memory_insert")
    await exchange(services.turns, "My sister Ines breeds alpacas.", "How nice.", session_id="s-1")
    found = await _call(
        services,
        turn,
        ("archival_memory_search", {"query": "alpacas", "top_k": 3}),
        ("search_chat_history", {"query": "alpacas", "time_range": "today"}),
        ("search_chat_history", {"query": "alpacas", "time_range": "whenever"}),
        ("get_user_profile", {"aspect": "alpacas"}),
        ("search_chat_history", {"query": "alpacas", "time_range": "2001-05-12"}),
    )
    assert all("Ines breeds alpacas" in each.text for each in found[:-1])
    assert found[-1].text == "Nothing in memory matches."
    assert services.tool_executor.changes_memory([ToolCall(name="archival_memory_insert", args={}, id="1")])


async def test_a_search_can_be_limited_to_days(services: Services) -> None:
    await exchange(services.turns, "I planted three pear trees.", "Good.", session_id="s-1")
    turn = await _turn(services)
    (recent,) = await _call(services, turn, ("search_memory", {"query": "pear trees", "days": 2}))
    assert "pear trees" in recent.text
    (before,) = await _call(services, turn, ("search_memory", {"query": "pear trees", "until": "2020-01-01"}))
    assert before.text == "Nothing in memory matches."
    (wrong,) = await _call(services, turn, ("search_memory", {"query": "pear trees", "since": "May"}))
    assert (wrong.text, wrong.status) == ("Dates are written as 2026-12-24.", "error")


async def test_reads_of_the_same_step_see_what_it_writes(services: Services) -> None:
    await exchange(services.turns, "My sister Ines breeds alpacas.", "How nice.", session_id="s-1")
    found, forgotten = await _call(
        services,
        await _turn(services),
        ("search_memory", {"query": "alpacas"}),
        ("forget", {"what": "my sister Ines breeds alpacas"}),
    )
    assert found.text == "Nothing in memory matches."
    assert forgotten.status == "success"
