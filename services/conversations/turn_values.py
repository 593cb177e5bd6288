"""Values for the statements that open and end a turn; their findings and refusals."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast
from uuid import UUID

from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.conversations.turn import MOST_WAITING, TURN_IMPORTANCE, TurnOutcome, TurnRequest
from services.conversations.values import image_part, message_digest, message_tokens, title_of
from services.encryption.marks import (
    SoughtDigest,
    Words,
    WordsByKey,
    WordsDigest,
    WordsInJson,
    WordsJson,
    words_in_json,
    words_json,
)
from services.errors import OF_THE_MESSAGE, Conflict, InvalidInput
from services.llm.token_estimates import IMAGE_TOKENS
from services.text.secrets import Secrets
from services.validation import without_nul
from state.client_tools import last_words
from state.prompt import Epoch
from state.turn import OpenTurn, TurnInput

KEY = "idempotency_key"
KEY_OF_ANOTHER_MESSAGE = "belongs to another message of this conversation; send a new message with a new key"

_STORED_ELSEWHERE = frozenset({"user_id", "session_id", "message", "images", "earlier", "space"})
_ECHO = "echo"
_FIELDS = frozenset(each.name for each in fields(OpenTurn))
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
"""Keys of a report whose values are the service's own words."""


def opening_values(request: TurnRequest, turn_id: UUID, message_id: UUID, secrets: Secrets) -> dict[str, Any]:
    """Return the values of the statement that opens a turn."""
    asked = request.input
    content, images = without_nul(asked["message"]), asked.get("images", ())
    kept = secrets.without(content)
    rest = {name: value for name, value in asked.items() if name not in _STORED_ELSEWHERE}
    if request.echo:
        rest[_ECHO] = dict(request.echo)
    return {
        **names_of(request),
        "new_space_id": uuid7(),
        "timezone": asked.get("timezone"),
        "locale": asked.get("locale"),
        "title": Words(title_of(kept)),
        "new_user_id": uuid7(),
        "new_conversation_id": uuid7(),
        "turn_id": turn_id,
        "message_id": message_id,
        "content": Words(content),
        "speaker": Words(asked["speaker"]) if asked.get("speaker") else None,
        "speaker_origin": "document" if asked.get("speaker") else None,
        "memory_text": None if kept == content else Words(kept),
        "parts": WordsJson([image_part(image) for image in images]),
        "token_count": message_tokens(content) + IMAGE_TOKENS * len(images),
        "digest": WordsDigest(digest := message_digest("user", content, images)),
        "digests_sought": [SoughtDigest(digest)],
        "message_external_id": request.external_id,
        "idempotency_key": request.idempotency_key,
        "on_conflict": request.on_conflict,
        "must_begin": request.must_begin,
        "most_waiting": MOST_WAITING,
        "request": WordsInJson(rest, clear=["answer_external_id"]),
        "lease": request.lease,
    }


def names_of(request: TurnRequest) -> dict[str, Any]:
    """Return the names in a request, as values of a statement."""
    asked = request.input
    return {
        "tenant_id": request.tenant_id,
        "external_id": asked["user_id"],
        "session_key": asked["session_id"],
        "expert": asked.get("expert"),
        "kb_prefix": asked.get("requested_kb_prefix"),
        "space": asked.get("space"),
    }


def adopted_input(row: Mapping[str, Any]) -> TurnInput:
    """Return the request of a turn that waited in another process."""
    rest = {name: value for name, value in row["request"].items() if name != _ECHO}
    stored = {
        "user_id": row["external_id"],
        "session_id": row["session_key"],
        "message": row["content"],
        "images": [part["image_url"]["url"] for part in row["parts"]],
    }
    return cast("TurnInput", {**stored, **rest})


def turn_of_row(row: Mapping[str, Any], asked: TurnInput, default_locale: str | None, **more: Any) -> OpenTurn:
    """Return a turn from a row with columns named as its fields; `more` are further values of fields."""
    found = {name: value for name, value in row.items() if name in _FIELDS}
    found["timezone"] = asked.get("timezone") or row["timezone"]
    found["locale"] = asked.get("locale") or row["locale"] or default_locale or ""
    return OpenTurn(**{"answer_message_id": uuid7(), "input": asked, **found, **more})


def refuse_conflict(found: Mapping[str, Any], request: TurnRequest) -> None:
    """Say that a message may not begin a turn beside those under way. Raises `Conflict` if it may not."""
    before = found["waiting_before"]
    if request.on_conflict == "reject" and (found["running_before"] or before):
        raise Conflict("A turn of this conversation is in progress.")
    if before is not None and before >= MOST_WAITING:
        raise Conflict(f"{MOST_WAITING} messages wait in this conversation already; try again later.")


def other_space(name: str | None) -> InvalidInput:
    """Return the error for a conversation that belongs to another space, or to none."""
    belongs = "to no space" if name is None else f"to the space {name!r}"
    return InvalidInput("space", f"the conversation belongs {belongs}; begin another one for this space")


def outcome_values(outcome: TurnOutcome, content: str, kept: str) -> dict[str, Any]:
    """Return the parameters for an outcome; `content` is the answer as stored, `kept` what memory keeps of it."""
    completed = outcome.status == "completed"
    known_by = last_words(content, (outcome.context_report or {}).get("rounds", []))
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
        "digest": WordsDigest(message_digest("assistant", known_by)) if content else None,
        "route_decision": words_json(outcome.route_decision),
        "usage": _jsonb(outcome.usage),
        "timings": _jsonb(outcome.timings),
        "degraded": Jsonb(list(outcome.degraded)),
        "context_report": words_in_json(outcome.context_report, clear=_CLEAR_IN_REPORTS),
        "prompt": words_json(outcome.prompt),
        "error": _jsonb(outcome.error),
        "refuses_message": bool(outcome.error) and outcome.error["code"] in OF_THE_MESSAGE,
        "memory_changes": WordsJson([*outcome.made, *(each.change for each in outcome.memory if each.is_told)]),
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
