"""A user with everything that can be derived, all of it from one fact that the user told."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import httpx

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.core.blocks import Owner
from services.memory.episodes.episode import NewEpisode
from services.memory.operations import Trigger
from services.memory.proposals.pairs import Side
from tests.support.archiving import answer, topic
from tests.support.filing import add, file, filed
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.retracting import FILED, WHOLE, repeating, retelling
from tests.support.talks import new_expert
from tests.support.turns import exchange
from tests.support.upkeep import ARCHIVE, write, written_before
from tests.support.visits import import_lines, said, talk_at

DAY = date(2026, 3, 10)
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
KINDS = {*("episode", "core_memory", "summary", "topic", "visit", "day", "persona_card", "private_note")}


async def derive_everything(services: Services, client: httpx.AsyncClient, model_server: ModelServer) -> Owner:
    """Make a summary, topic, visit, day, value, memory, merged memory, note and card from `WHOLE`.

    The expert `archivist` has the topic and the note, `guide` the card, `default` the rest. All models repeat what
    they are shown.
    """
    archivist = new_expert("archivist", context_strategy="topics", reflection=True)
    await services.experts.create(DEFAULT_TENANT, archivist)
    await services.experts.create(DEFAULT_TENANT, new_expert("guide"))
    for session, expert in (("s-1", "default"), ("guided", "guide")):
        where: dict[str, Any] = {"session_id": session, "expert": expert}
        skiing = talk_at(NOON + timedelta(minutes=1), "skiing", **where)
        await import_lines(services, said(NOON, WHOLE, **where), *skiing)
    owner = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")
    guide = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "guide")
    model_server.default = retelling
    for whose in (owner, guide):
        assert await services.daily.make(whose, DAY, "UTC")

    model_server.default = repeating
    turn = await exchange(services.turns, WHOLE, f"Noted: {WHOLE}", session_id="long")
    for number in range(8):
        await exchange(services.turns, f"question {number}", f"answer {number}", session_id="long")
    await services.summaries.update(DEFAULT_TENANT, turn.conversation_id)
    model_server.default = filed(add(WHOLE, WHOLE, "events"), add(WHOLE, WHOLE, "health"))
    assert await file(services, turn) == 2

    for end in ".!…;":
        await exchange(services.turns, f"I love green tea for my asthma{end}", "Good to know.", session_id="tea")
    sources = [turn.user_message_id, turn.answer_message_id]
    for text in ("Drinks green tea for the asthma", "drinks green tea for the asthma."):
        new = NewEpisode(text, "preference", 0.5, "user_said", source_message_ids=sources)
        await services.memory.archive.insert(owner, new, Trigger("user"))
    assert (await services.upkeep.run(DEFAULT_TENANT, "u-1")).merged_ids

    def found(received: Received) -> Reply:
        return Reply([answer(topic(1, 12, summary=received.prompt[-1][1][:900]))])

    kept = await exchange(services.turns, WHOLE, "Take care.", session_id="kept", expert="archivist")
    for number in range(14):
        await exchange(services.turns, f"point {number}", f"reply {number}", session_id="kept", expert="archivist")
    model_server.default = found
    assert await services.topics.archive(DEFAULT_TENANT, kept.conversation_id) == 1
    voice = {"thoughts": "He has asthma.", "feeling": "warm", "intention": "Ask about the asthma."}
    model_server.default = Reply([json.dumps(voice)])
    assert await services.reflection.reflect(DEFAULT_TENANT, kept.turn_id)

    model_server.default = lambda received: Reply([f"You said: {received.said[-1]}"])
    for message in ("I am worried about my asthma since Hamburg!", "What did I say about Hamburg?"):
        body = {"user_id": "u-1", "session_id": "asks", "expert": "guide", "message": message}
        answered = await client.post("/api/v1/chat", json=body)
        assert answered.status_code == 200, answered.text
    await services.memory.indexing.index_waiting()
    return owner


async def maintain_everything(services: Services, client: httpx.AsyncClient, owner: Owner) -> None:
    """Have what was derived proposed, archived and pinned, and shown in twenty prompts."""
    inhaler = "The user carries an inhaler for the asthma every day"
    first, second = await write(services, owner, inhaler, f"{inhaler}.")
    await written_before(services, owner, "Bought a book on asthma in Hamburg")
    assert await services.memory.proposals.pairs.add(owner, "contradiction", Side(first), Side(second))
    assert (await services.upkeep.run(DEFAULT_TENANT, "u-1", ARCHIVE)).faded_ids
    await services.memory.pins.set_on_episode(DEFAULT_TENANT, "u-1", first, pinned=True)
    await services.memory.pins.set_on_value(owner, "human", "health", FILED, pinned=True)
    for number in range(20):
        body = {"user_id": "u-1", "session_id": "shown", "message": f"What did I say about Hamburg? ({number})"}
        answered = await client.post("/api/v1/chat", json=body)
        assert answered.status_code == 200, answered.text
    await services.memory.indexing.index_waiting()
