"""Stores of units as recall sees them, for `training.recall_weights` and `training.scorecard`."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from uuid import UUID, uuid5

from services.evaluation.dataset import Dataset
from services.llm.builtin_embeddings import BuiltinEncoder
from services.memory.episodes.episode import StoredUnit
from services.memory.recall.unit_arrays import Passage
from services.memory.recall.unit_loading import contents_of
from services.memory.recall.working_set import WorkingSet
from services.text.passages import passages_of
from services.text.tokenizer import embedded_text

_NAMES = UUID(int=0)
_FIRST_DAY = datetime(2026, 1, 1, 9, tzinfo=UTC)
_ENCODER = BuiltinEncoder()
_VECTORS: dict[str, list[float]] = {}


@dataclass(frozen=True)
class Said:
    """A message of a store."""

    id: str
    text: str
    speaker: str
    role: str
    conversation: str
    at: datetime


def encode(texts: list[str]) -> list[list[float]]:
    """Return the embeddings of texts; they are kept."""
    missing = [text for text in dict.fromkeys(texts) if text not in _VECTORS]
    _VECTORS.update(zip(missing, _ENCODER.encode(missing) if missing else (), strict=True))
    return [_VECTORS[text] for text in texts]


def working_set(messages: Sequence[Said]) -> WorkingSet:
    """Return the messages as recall sees them, in their order; those of several passages have as many places."""
    rows = [_row(number, said) for number, said in enumerate(messages)]
    contents = [contents_of(row, {}) for row in rows]
    vectors = iter(
        encode(
            [
                embedded_text(row.role, row.speaker, row.text[each.start : each.end])
                for row in rows
                for each in passages_of(row.text)
            ]
        )
    )
    units = WorkingSet(512)
    units.replace(
        (),
        [
            Passage(row, number, content, next(vectors), waiting=False)
            for row, each in zip(rows, contents, strict=True)
            for number, content in enumerate(each)
        ],
    )
    return units


def places_of(messages: Sequence[Said]) -> list[int]:
    """Return the place of each message in the working set of them all."""
    return [0, *accumulate(len(passages_of(said.text)) for said in messages)][:-1]


def _row(number: int, said: Said) -> StoredUnit:
    unit_id = uuid5(_NAMES, f"{number} {said.id}")
    return StoredUnit(
        episode_id=unit_id,
        unit_id=unit_id,
        episode_type="turn",
        importance=0.0,
        origin="user_said",
        conversation_id=uuid5(_NAMES, said.conversation),
        created_at=said.at,
        role="assistant" if said.role == "assistant" else "user",
        speaker=said.speaker or None,
        external_id=said.id,
        source_message_ids=[unit_id],
        message_id=unit_id,
        text=said.text,
    )


def remarks(texts: Sequence[str]) -> WorkingSet:
    """Return unrelated remarks as recall sees them, at the places of their order."""
    return working_set(
        [
            Said(str(place), text, "", "user", str(place), _FIRST_DAY + timedelta(hours=5 * place))
            for place, text in enumerate(texts)
        ]
    )


def stores_of(dataset: Dataset) -> dict[str, list[Said]]:
    """Return what was said in a set, by its users."""
    stores: defaultdict[str, list[Said]] = defaultdict(list)
    for line in dataset.lines:
        stores[line["user_id"]].append(
            Said(
                line["external_id"],
                line["content"],
                line.get("speaker", ""),
                line["role"],
                line["session_id"],
                datetime.fromisoformat(line["created_at"]),
            )
        )
    return stores
