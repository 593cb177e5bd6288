import pytest

from nodes.history import history
from services.bootstrap import Services
from services.context.prompt import ContextBudget
from services.conversations.turn import TurnOutcome
from tests.support.turns import context_of, exchange, new_turn, runtime, state

pytestmark = pytest.mark.anyio


async def test_history_is_the_completed_messages_before_this_one(services: Services) -> None:
    await exchange(services.turns, "My dog is called Bruno.", "A fine name.")
    broken = await services.turns.open(new_turn("And my cat?"))
    partial = TurnOutcome(status="partial", answer="Your cat is", error={"code": "x"})
    await services.turns.end(broken.tenant_id, broken.turn_id, broken.answer_message_id, partial)
    turn = await services.turns.open(new_turn("My dog is called Bruno."))

    update = await history(
        state(user_message_id=str(turn.user_message_id)),
        runtime(**context_of(turn)),
        transcript=services.transcript,
        budget=ContextBudget(4000),
    )

    assert set(update) == {"history", "history_dropped"}
    shown = [(message["role"], message["content"]) for message in update["history"]]
    # The equal earlier message stays, the broken answer does not enter, nor does the message itself.
    assert shown == [
        ("user", "My dog is called Bruno."),
        ("assistant", "A fine name."),
        ("user", "And my cat?"),
    ]
    assert update["history_dropped"] == 0


async def test_over_the_budget_the_newest_messages_are_kept(services: Services) -> None:
    for number in range(10):
        await exchange(services.turns, f"question {number} " + "x" * 400, f"answer {number} " + "y" * 400)
    turn = await services.turns.open(new_turn("And now?"))

    update = await history(
        state(user_message_id=str(turn.user_message_id), system_prompt=""),
        runtime(**context_of(turn)),
        transcript=services.transcript,
        budget=ContextBudget(600),
    )

    assert [message["content"][:8] for message in update["history"]][-1] == "answer 9"
    assert sum(message["token_count"] for message in update["history"]) <= 600
    assert 3 <= len(update["history"]) <= 6
    assert update["history_dropped"] >= 1


async def test_another_conversation_of_the_same_user_does_not_enter(services: Services) -> None:
    await exchange(services.turns, "A secret of another conversation", "Yes", session_key="other")
    turn = await services.turns.open(new_turn("Hello"))
    update = await history(
        state(user_message_id=str(turn.user_message_id)),
        runtime(**context_of(turn)),
        transcript=services.transcript,
        budget=ContextBudget(4000),
    )
    assert update["history"] == []
