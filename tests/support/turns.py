"""Turns for tests: a request, a state, an opened turn."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from langgraph.runtime import Runtime

from graph.turns.runner import TurnRunner
from services.bootstrap import Services
from services.conversations.transcript import Message
from services.conversations.turn import TurnOutcome, TurnRequest
from services.conversations.turns import Turns
from services.identity.tenants import DEFAULT_TENANT
from services.memory.core.blocks import Owner
from services.platform.postgres import Database
from state.conversation import ConversationState
from state.events import TurnEvent
from state.prompt import FEATURES, ContextPolicy, Epoch, Passage
from state.turn import OpenTurn, TurnInput

Written = list[dict[str, Any]]
_OF_TURN = {each.name for each in fields(OpenTurn)}
_OF_REQUEST = {each.name for each in fields(TurnRequest)}


def runtime(written: Written | None = None, turn: OpenTurn | None = None, **values: Any) -> Runtime[OpenTurn]:
    """A node's runtime in a turn; what the node writes to the stream is appended to `written`."""
    writer: Callable[[Any], None] = (lambda _: None) if written is None else written.append
    return Runtime(context=given(turn or opened(), **values), stream_writer=writer)


def opened(**values: Any) -> OpenTurn:
    """Return an open turn; `values` belong to it or to its input."""
    asked = TurnInput(user_id="u-1", session_id="s-1", message="Hello")
    turn = OpenTurn(
        turn_id=some_uuid(5),
        tenant_id=DEFAULT_TENANT,
        user_id=some_uuid(1),
        conversation_id=some_uuid(4),
        user_message_id=some_uuid(6),
        answer_message_id=some_uuid(7),
        input=asked,
        timezone="UTC",
        expert_id=some_uuid(3),
        expert="default",
        system_prompt="You are kind.",
        policy=policy(),
    )
    return given(turn, **values)


def given(turn: OpenTurn, **values: Any) -> OpenTurn:
    """Return the turn with other values, its own or of its input."""
    own = {name: value for name, value in values.items() if name in _OF_TURN}
    asked = {name: value for name, value in values.items() if name not in _OF_TURN}
    assert asked.keys() <= TurnInput.__annotations__.keys()
    return replace(turn, **{**own, "input": {**turn.input, **asked}})


def state(**values: Any) -> ConversationState:
    """The state of a turn after `history`."""
    from tests.support.prompts import sections_of

    written: dict[str, Any] = {
        "features": list(FEATURES),
        "sections": sections_of(system_prompt="You are kind.", history=values.get("history", [])),
        "context_budget": 4000,
        "prompt_language": "en",
        "epoch": epoch(),
    }
    assert values.keys() <= ConversationState.__annotations__.keys()
    return ConversationState(**{**written, **values})  # type: ignore[typeddict-item]


def policy(**values: Any) -> ContextPolicy:
    """The default expert's policy."""
    given = {"strategy": "summary", "window": 32000, "threshold": 0.7, "min_archive_messages": 20, "budget": None}
    return ContextPolicy(**{**given, **values})  # type: ignore[typeddict-item]


def epoch(**values: Any) -> Epoch:
    """The first epoch of a conversation."""
    given: dict[str, Any] = {
        "number": 1,
        "strategy": "summary",
        "reason": "first turn",
        "begun_at": datetime.now(UTC),
        "summary": "",
        "summary_version": 0,
        "topics": [],
        "history_from": None,
        "core_memory": {},
        "core_versions": {},
        "persona_card": "",
        "prefix": [],
    }
    return Epoch(**{**given, **values})  # type: ignore[typeddict-item]


def passage_of(text: str, **values: Any) -> Passage:
    """A passage of a handbook."""
    given: dict[str, Any] = {
        "kb_prefix": "handbook",
        "chunk_id": str(some_uuid(1)),
        "document_id": str(some_uuid(2)),
        "document": "handbook.md",
        "position": 1,
        "heading": "",
        "page": None,
        "text": text,
        "score": 1.0,
    }
    return Passage(**{**given, **values})  # type: ignore[typeddict-item]


def new_turn(content: str = "Hello", **values: Any) -> TurnRequest:
    """A request with a message of a user in a conversation; `values` are its own or of its input."""
    own = {name: value for name, value in values.items() if name in _OF_REQUEST}
    asked = {name: value for name, value in values.items() if name not in _OF_REQUEST}
    assert asked.keys() <= TurnInput.__annotations__.keys()
    given = {"user_id": "u-1", "session_id": "s-1", "message": content, **asked}
    return TurnRequest(**{"tenant_id": DEFAULT_TENANT, **own, "input": TurnInput(**given)})  # type: ignore[typeddict-item]


async def exchange(
    turns: Turns,
    content: str,
    answer: str,
    *,
    summary_due: bool = False,
    context_filled: float = 0.0,
    **values: Any,
) -> OpenTurn:
    """A turn that was opened and completed."""
    turn = await turns.open(new_turn(content, **values))
    outcome = TurnOutcome(
        status="completed", answer=answer, episode=True, summary_due=summary_due, context_filled=context_filled
    )
    await turns.end(turn, outcome)
    return turn


def owner_of(turn: OpenTurn) -> Owner:
    return Owner(turn.tenant_id, turn.user_id, turn.expert_id)


_REMEMBERED = """
WITH summary AS (
    INSERT INTO conversation_summaries (conversation_id, tenant_id, summary, summary_version,
        covered_through_created_at, covered_through_message_id, covered_message_count, increments_since_full)
    VALUES (%(conversation_id)s, %(tenant_id)s, %(text)s, 1, now(), %(user_message_id)s, 1, 0)
), part AS (
    INSERT INTO summary_parts (conversation_id, part, tenant_id, summary, through_created_at, through_message_id,
        message_count)
    VALUES (%(conversation_id)s, 1, %(tenant_id)s, %(text)s, now(), %(user_message_id)s, 1)
), topic AS (
    INSERT INTO topics (id, tenant_id, conversation_id, user_id, expert_id, title, summary, message_count,
        first_message_id, last_message_id, first_message_at, last_message_at)
    SELECT gen_random_uuid(), tenant_id, id, user_id, expert_id, left(%(text)s, 100), %(text)s, 2,
        %(user_message_id)s, %(answer_message_id)s, now(), now()
    FROM conversations WHERE id = %(conversation_id)s
), block AS (
    INSERT INTO core_memory_blocks (id, tenant_id, user_id, expert_id, section, content, version)
    SELECT gen_random_uuid(), tenant_id, user_id, expert_id, id::text,
        jsonb_build_object('name', %(text)s::text), 1
    FROM conversations WHERE id = %(conversation_id)s RETURNING id, tenant_id, content
), generation AS (
    INSERT INTO core_memory_generations (user_id, expert_id, tenant_id, generation)
    SELECT user_id, expert_id, tenant_id, 1 FROM conversations WHERE id = %(conversation_id)s
    ON CONFLICT (user_id, expert_id, tenant_id) DO UPDATE SET generation = core_memory_generations.generation + 1
), change AS (
    INSERT INTO core_memory_history (block_id, version, tenant_id, new, trigger_message_id, actor)
    SELECT id, 1, tenant_id, content, %(user_message_id)s, 'memory_agent' FROM block
), pin AS (
    INSERT INTO core_memory_pins (block_id, digest, tenant_id) SELECT id, 'a digest', tenant_id FROM block
), kept_up AS (
    INSERT INTO upkeep_runs (id, tenant_id, user_id, reason, days, importance)
    SELECT gen_random_uuid(), tenant_id, user_id, 'night', 90, 0.3
    FROM conversations WHERE id = %(conversation_id)s RETURNING id, tenant_id, user_id
), kept_up_change AS (
    INSERT INTO upkeep_changes (run_id, episode_id, tenant_id, user_id)
    SELECT id, gen_random_uuid(), tenant_id, user_id FROM kept_up
), night AS (
    INSERT INTO upkeep_nights (user_id, tenant_id, at)
    SELECT user_id, tenant_id, now() FROM conversations WHERE id = %(conversation_id)s ON CONFLICT DO NOTHING
), episode AS (
    INSERT INTO episodes (id, tenant_id, user_id, expert_id, conversation_id, episode_type, content, importance,
        origin, source_message_ids)
    SELECT gen_random_uuid(), tenant_id, user_id, expert_id, id, 'preference', %(text)s, 0.8, 'user_said',
        ARRAY[%(user_message_id)s::uuid]
    FROM conversations WHERE id = %(conversation_id)s
), operation AS (
    INSERT INTO memory_operations (id, tenant_id, user_id, conversation_id, turn_id, type, field, new_value,
        trigger)
    SELECT gen_random_uuid(), tenant_id, user_id, id, %(turn_id)s, 'core_memory_change', 'human',
        jsonb_build_object('name', %(text)s::text), '{}'
    FROM conversations WHERE id = %(conversation_id)s
), day AS (
    INSERT INTO daily_summaries (user_id, expert_id, date, tenant_id, timezone, summary, key_topics, session_count,
        message_count, visit_ids)
    SELECT user_id, expert_id, current_date, tenant_id, 'UTC', %(text)s, jsonb_build_array(%(text)s::text), 1, 2,
        '{}'
    FROM conversations WHERE id = %(conversation_id)s
    ON CONFLICT DO NOTHING
), branch AS (
    INSERT INTO conversation_branches (id, tenant_id, conversation_id, reason)
    SELECT gen_random_uuid(), tenant_id, id, 'edit' FROM conversations WHERE id = %(conversation_id)s
), feedback AS (
    INSERT INTO feedback (message_id, tenant_id, rating, comment, tags)
    SELECT id, tenant_id, -1, %(text)s, ARRAY[%(text)s] FROM messages WHERE id = %(answer_message_id)s
), spent AS (
    INSERT INTO usage (tenant_id, day, user_id, expert_id, purpose, model, calls, input_tokens, output_tokens,
        cached_tokens)
    SELECT tenant_id, current_date, user_id, expert_id, 'turn', 'm', 1, 10, 5, 0
    FROM conversations WHERE id = %(conversation_id)s
    ON CONFLICT DO NOTHING
), exclusion AS (
    INSERT INTO recall_exclusions (id, tenant_id, conversation_id, message_id)
    SELECT gen_random_uuid(), tenant_id, id, %(user_message_id)s FROM conversations WHERE id = %(conversation_id)s
), receipt AS (
    INSERT INTO forget_receipts (id, tenant_id, user_id, document, signature, public_key)
    SELECT gen_random_uuid(), tenant_id, user_id, 'A receipt holds no text of a user.', '', ''
    FROM conversations WHERE id = %(conversation_id)s
), forgotten AS (
    INSERT INTO forgotten_words (tenant_id, user_id, digest, deleted)
    SELECT tenant_id, user_id, decode(md5(id::text), 'hex'), true FROM conversations WHERE id = %(conversation_id)s
), version AS (
    INSERT INTO memory_versions (tenant_id, user_id, message_id, was)
    SELECT tenant_id, user_id, %(user_message_id)s, jsonb_build_object('memory_text', %(text)s::text)
    FROM conversations WHERE id = %(conversation_id)s
), item AS (
    INSERT INTO store_items (id, tenant_id, user_id, namespace, key, value, operation_id)
    SELECT gen_random_uuid(), tenant_id, user_id, 'notes', id::text,
        jsonb_build_object('text', %(text)s::text)::text, gen_random_uuid()
    FROM conversations WHERE id = %(conversation_id)s
), account AS (
    INSERT INTO tool_accounts (tenant_id, user_id, server, signed_in, tools)
    SELECT tenant_id, user_id, id::text, '{}', '[]' FROM conversations WHERE id = %(conversation_id)s
), visit AS (
    UPDATE visits SET summary = %(text)s, key_topics = jsonb_build_array(%(text)s::text)
    WHERE conversation_id = %(conversation_id)s
)
INSERT INTO context_epochs (conversation_id, tenant_id, number, strategy, reason, begun_at, summary,
    summary_version, topics, prefix)
VALUES (%(conversation_id)s, %(tenant_id)s, 1, 'summary', 'first', now(), %(text)s, 1, '[]', '[]')
"""


async def remember(database: Database, turn: OpenTurn, text: str = "Said hello.") -> None:
    """Make a memory of a conversation after its answers."""
    async with database.tenant(turn.tenant_id) as connection:
        await connection.execute(_REMEMBERED, {**asdict(turn), "text": text})
        note = "UPDATE messages SET private_note = jsonb_build_object('thoughts', %s::text) WHERE id = %s"
        await connection.execute(note, [text, turn.answer_message_id])


def some_uuid(number: int) -> UUID:
    """Return a UUID of the form that the service makes."""
    return UUID(f"0190a000-0000-7000-8000-{number:012d}")


async def events_of(runner: TurnRunner, turn_id: UUID, after: int = 0) -> list[TurnEvent]:
    """Return the events of a turn after number `after`, to its end."""
    async with asyncio.timeout(60):
        return [event async for batch in runner.follow(DEFAULT_TENANT, turn_id, after) for event in batch]


async def first_token(runner: TurnRunner, turn_id: UUID) -> None:
    """Wait until a turn has begun to answer."""
    async with asyncio.timeout(60):
        async for batch in runner.follow(DEFAULT_TENANT, turn_id):
            if any(event.status == "token" for event in batch):
                return


async def messages_of(services: Services, conversation_id: UUID) -> list[Message]:
    """The messages of a conversation's current course, oldest first."""
    parts = services.transcript.page_in_parts(DEFAULT_TENANT, conversation_id, after=None, limit=100)
    return [message async for part in parts for message in part]
