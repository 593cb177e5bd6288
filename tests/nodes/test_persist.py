from typing import Any

from nodes.persist import persist
from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from state.conversation import ConversationState, RouteDecision
from tests.support.turns import messages_of, new_turn, runtime, state


def _answered(answer: str = "Bruno.") -> ConversationState:
    return state(
        answer=answer,
        route_decision=RouteDecision(
            kb_prefix=None, worker_name="general", confidence=1.0, method="default", reason="-"
        ),
        usage={"input_tokens": 5, "output_tokens": 1, "total_tokens": 6, "cached_tokens": 0, "model_calls": 1},
        context_report={"budget": 4000, "tokens": {"system": 5}, "dropped": []},
        timings={"route_ms": 0.1},
        degraded=["milvus"],
    )


def _stores(services: Services) -> dict[str, Any]:
    return {
        "turns": services.turns,
        "episodes": True,
        "changes": services.memory.changes,
        "promises": services.promises,
    }


async def test_run_again_it_stores_nothing_twice(services: Services) -> None:
    turn = await services.turns.open(new_turn())
    for _ in range(2):
        await persist(_answered(), runtime(turn=turn), **_stores(services))
    messages = await messages_of(services, turn.conversation_id)
    assert len(messages) == 2


async def test_a_nul_character_of_the_model_is_dropped_on_write(services: Services) -> None:
    turn = await services.turns.open(new_turn())
    answered = _answered("a\x00b")
    await persist(answered, runtime(turn=turn), **_stores(services))
    assert (await services.turns.get(DEFAULT_TENANT, turn.turn_id)).answer == "ab"
