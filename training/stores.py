"""What was said, as recall sees it: stores of units for `training.recall_weights` and `training.scorecard`."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

from services.evaluation.dataset import Dataset
from services.llm.builtin_embeddings import BuiltinEncoder
from services.memory.recall.unit_arrays import ASKS, BY_ASSISTANT, STATES_NOTHING, KeptUnit, UnitContent
from services.memory.recall.working_set import WorkingSet
from services.text.language import language_of
from services.text.questions import asks, states_something
from services.text.tokenizer import indexed_text, terms

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
    """Return the messages as recall sees them, at the places of their order."""
    texts = [indexed_text(said.speaker, said.text) for said in messages]
    units = WorkingSet(512)
    units.replace(
        (),
        [
            KeptUnit(
                unit_id=uuid5(_NAMES, f"{number} {said.id}"),
                episode_id=uuid5(_NAMES, f"{number} {said.id}"),
                conversation_id=uuid5(_NAMES, said.conversation),
                episode_type="turn",
                said_at=said.at,
                waiting=False,
                text_hash=number,
                content=UnitContent(terms(text), _kinds(said)),
                vector=vector,
            )
            for number, (said, text, vector) in enumerate(zip(messages, texts, encode(texts), strict=True))
        ],
    )
    return units


def _kinds(said: Said) -> int:
    if said.role == "assistant" and said.speaker.lower() in {"", "assistant", "ai", "助理", "助手"}:
        return BY_ASSISTANT
    return ASKS * asks(said.text, language_of([said.text])) | STATES_NOTHING * (not states_something(said.text))


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
