"""The parameters of the statement that ends a turn, for the epoch and the tone that it stores."""

from typing import Any

from psycopg.types.json import Jsonb

from state.prompt import Epoch, Tone

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
_TONE_VALUES = ("tone_message_scores", "tone_scores", "tone_dominant", "tone_empathy", "tone_pace")


def epoch_values(epoch: Epoch | None) -> dict[str, Any]:
    """Of the epoch; without one, nulls."""
    if epoch is None:
        return dict.fromkeys(_EPOCH_VALUES)
    from_at, from_id = epoch["history_from"] or (None, None)
    values = (
        epoch["number"],
        epoch["strategy"],
        epoch["reason"],
        epoch["begun_at"],
        epoch["summary"],
        epoch["summary_version"],
        Jsonb(epoch["topics"]),
        from_at,
        from_id,
        Jsonb(epoch["prefix"]),
        Jsonb(epoch["core_memory"]),
        Jsonb(epoch["core_versions"]),
        epoch["persona_card"],
    )
    return dict(zip(_EPOCH_VALUES, values, strict=True))


def tone_values(tone: Tone | None) -> dict[str, Any]:
    """Of the tone; without one, nulls."""
    if tone is None:
        return dict.fromkeys(_TONE_VALUES)
    values = (
        Jsonb(tone["message_scores"]),
        Jsonb(tone["scores"]),
        tone["dominant"],
        tone["empathy"],
        tone["pace"],
    )
    return dict(zip(_TONE_VALUES, values, strict=True))
