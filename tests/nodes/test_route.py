import pytest

from nodes.route import route
from state.conversation import RouteDecision
from tests.support.turns import Written, runtime, state

pytestmark = pytest.mark.anyio


async def test_without_a_knowledge_base_the_route_is_general() -> None:
    written: Written = []
    update = await route(state(requested_kb_prefix=None), runtime(written))
    assert set(update) == {"route_decision", "kb_prefix", "worker_name", "use_retrieval", "routing_ms"}
    assert update["worker_name"] == "general"
    assert update["kb_prefix"] is None
    assert update["use_retrieval"] is False
    assert written == [{"status": "route_decision", "content": update["route_decision"]}]


async def test_a_knowledge_base_that_the_caller_names_is_used() -> None:
    update = await route(state(requested_kb_prefix="handbook"), runtime())
    assert update["route_decision"] == RouteDecision(
        kb_prefix="handbook",
        worker_name="handbook",
        confidence=1.0,
        method="explicit",
        reason="the caller named the knowledge base",
    )
    assert update["use_retrieval"] is True
