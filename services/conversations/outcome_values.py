"""The parameters of the statement that ends a turn: what its outcome stores."""

from typing import Any

from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.conversations.messages import message_digest, message_tokens
from services.conversations.turn import TURN_IMPORTANCE, TurnOutcome
from services.encryption.marks import Words, WordsByKey, WordsDigest, WordsJson, words_in_json, words_json
from state.prompt import Epoch

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
