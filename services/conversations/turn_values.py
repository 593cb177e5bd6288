"""What the statements are given that open a turn and that end it; what opening finds, and what it refuses."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.conversations.turn import MOST_WAITING, TURN_IMPORTANCE, NewTurn, OpenTurn, TurnOutcome
from services.conversations.values import image_part, message_digest, message_tokens, title_of, without_nul
from services.encryption.marks import (
    Words,
    WordsByKey,
    WordsDigest,
    WordsInJson,
    WordsJson,
    words_in_json,
    words_json,
)
from services.errors import Conflict, InvalidInput
from services.llm.token_estimates import IMAGE_TOKENS
from services.text.secrets import Secrets
from state.prompt import ContextPolicy, Epoch, Feature

KEY = "idempotency_key"
KEY_OF_ANOTHER_MESSAGE = "belongs to another message of this conversation; send a new message with a new key"

_EPOCH_VALUES = (
    "epoch_number",
    "epoch_strategy",
    "epoch_reason",
    "epoch_begun_at",
    "epoch_summary",
    "epoch_summary_version",
    "epoch_topics",
    "epoch_from_at",
    "epoch_from_id",
    "epoch_prefix",
    "epoch_core_memory",
    "epoch_core_versions",
    "epoch_persona_card",
)
_CLEAR_IN_REPORTS = ("parts", "strategy", "epoch_reason", "digest", "section", "reason", "left_out")
"""Keys of a report under which our own words stand."""


@dataclass(frozen=True)
class OpeningRow:
    """What the statement found that opens a turn."""

    user_id: UUID | None
    timezone: str | None
    locale: str | None
    conversation_id: UUID | None
    """None where no turn was opened."""
    status: str | None
    expert_id: UUID
    expert: str
    system_prompt: str
    model: str | None
    policy: ContextPolicy
    parts_off: list[Feature]
    reflects: bool
    space_id: UUID | None
    of_space: bool | None
    """Whether the conversation belongs to the space that the request names, if it names one."""
    known_turn_id: UUID | None
    known_differs: bool | None
    """Whether the known turn answers another message."""
    running: bool | None
    waiting: int | None
    begins: bool
    remembers: bool
    asks: bool
    has_knowledge: bool
    core_memory_generation: int
    memory_generation: int
    experiments: list[dict[str, Any]] | None
    """Those that run."""


@dataclass(frozen=True)
class UnstoredRow:
    """What a turn needs that is not stored."""

    expert_id: UUID
    expert: str
    system_prompt: str
    model: str | None
    policy: ContextPolicy
    parts_off: list[Feature]
    user_id: UUID | None
    timezone: str | None
    locale: str | None
    space_id: UUID | None


def opening_values(new: NewTurn, turn_id: UUID, message_id: UUID, secrets: Secrets) -> dict[str, Any]:
    """The values of the statement that opens a turn."""
    content = without_nul(new.content)
    kept = secrets.without(content)
    return {
        "tenant_id": new.tenant_id,
        "external_id": new.external_user_id,
        "session_key": new.session_key,
        "expert": new.expert,
        "kb_prefix": new.kb_prefix,
        "space": new.space,
        "new_space_id": uuid7(),
        "timezone": new.timezone,
        "locale": new.locale,
        "title": Words(title_of(kept)),
        "new_user_id": uuid7(),
        "new_conversation_id": uuid7(),
        "turn_id": turn_id,
        "message_id": message_id,
        "content": Words(content),
        "memory_text": None if kept == content else Words(kept),
        "parts": WordsJson([image_part(image) for image in new.images]),
        "token_count": message_tokens(content) + IMAGE_TOKENS * len(new.images),
        "digest": WordsDigest(message_digest("user", content, new.images)),
        "message_external_id": new.external_id,
        "idempotency_key": new.idempotency_key,
        "on_conflict": new.on_conflict,
        "must_begin": new.must_begin,
        "most_waiting": MOST_WAITING,
        "request": WordsInJson(new.request, clear=["answer_external_id"]),
        "lease": new.lease,
    }


def opened_turn(
    new: NewTurn, one: OpeningRow, turn_id: UUID, message_id: UUID, *, default_locale: str | None
) -> OpenTurn | None:
    """Return the turn that was stored; None = none was."""
    if not (one.user_id and one.conversation_id and one.timezone):
        return None
    return OpenTurn(
        turn_id=turn_id,
        tenant_id=new.tenant_id,
        user_id=one.user_id,
        conversation_id=one.conversation_id,
        user_message_id=message_id,
        answer_message_id=uuid7(),
        timezone=new.timezone or one.timezone,
        locale=new.locale or one.locale or default_locale,
        expert_id=one.expert_id,
        expert=one.expert,
        system_prompt=one.system_prompt,
        model=one.model,
        policy=one.policy,
        parts_off=one.parts_off,
        reflects=one.reflects,
        space_id=one.space_id,
        waiting=one.status == "waiting",
        begins=one.begins,
        remembers=one.remembers,
        asks=one.asks or one.status == "waiting",
        has_knowledge=one.has_knowledge,
        # The turns before it may still change memory.
        core_memory_generation=None if one.status == "waiting" else one.core_memory_generation,
        memory_generation=None if one.status == "waiting" else one.memory_generation,
    )


def refuse_conflict(found: OpeningRow, new: NewTurn) -> None:
    """Say that a message may not begin a turn beside those under way.

    Raises:
        Conflict: it may not.
    """
    if new.on_conflict == "reject" and (found.running or found.waiting):
        raise Conflict("A turn of this conversation is in progress.")
    if found.waiting is not None and found.waiting >= MOST_WAITING:
        raise Conflict(f"{MOST_WAITING} messages wait in this conversation already; try again later.")


def other_space(name: str | None) -> InvalidInput:
    """That a conversation belongs to the space of this name, or to none, and not to the one that is named."""
    belongs = "to no space" if name is None else f"to the space {name!r}"
    return InvalidInput("space", f"the conversation belongs {belongs}; begin another one for this space")


def outcome_values(outcome: TurnOutcome, content: str, kept: str) -> dict[str, Any]:
    """Return the parameters for an outcome; `content` is the answer as stored, `kept` what memory keeps of it."""
    completed = outcome.status == "completed"
    return {
        "status": outcome.status,
        "episode_id": uuid7() if outcome.episode and completed and content else None,
        "recalled": list(outcome.recalled),
        "origin": outcome.origin,
        "reads_days": outcome.reads_days,
        "reads_note": outcome.reads_note,
        "episode_importance": TURN_IMPORTANCE,
        "content": Words(content),
        "memory_text": None if kept == content else Words(kept),
        "token_count": message_tokens(content),
        "digest": WordsDigest(message_digest("assistant", content)) if content else None,
        "route_decision": words_json(outcome.route_decision),
        "usage": _jsonb(outcome.usage),
        "timings": _jsonb(outcome.timings),
        "degraded": Jsonb(list(outcome.degraded)),
        "context_report": words_in_json(outcome.context_report, clear=_CLEAR_IN_REPORTS),
        "prompt": words_json(outcome.prompt),
        "error": _jsonb(outcome.error),
        "memory_changes": WordsJson([*outcome.made, *(each["change"] for each in outcome.memory)]),
        "messages": 2 if content and completed else 1,
        **_epoch_values(outcome.epoch),
    }


def _epoch_values(epoch: Epoch | None) -> dict[str, Any]:
    if epoch is None:
        return dict.fromkeys(_EPOCH_VALUES)
    from_at, from_id = epoch["history_from"] or (None, None)
    values = (
        epoch["number"],
        epoch["strategy"],
        epoch["reason"],
        epoch["begun_at"],
        Words(epoch["summary"]),
        epoch["summary_version"],
        WordsJson(epoch["topics"]),
        from_at,
        from_id,
        WordsJson(epoch["prefix"]),
        WordsByKey(epoch["core_memory"]),
        Jsonb(epoch["core_versions"]),
        Words(epoch["persona_card"]),
    )
    return dict(zip(_EPOCH_VALUES, values, strict=True))


def _jsonb(value: Any) -> Jsonb | None:
    return None if value is None else Jsonb(value)
