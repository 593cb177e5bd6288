"""A question set: conversations to remember, questions about them, and the messages that answer each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.errors import InvalidInput
from services.json_levels import shallow_json
from services.search.queries import Utterance

CONVERSATIONS, QUESTIONS = "conversations.jsonl", "questions.jsonl"

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._:@-]")
_BETWEEN_MESSAGES = timedelta(seconds=20)


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore")

    conversation_id: str = Field(min_length=1)
    session_id: str = Field(min_length=1)
    session_time: datetime
    turn_id: str = Field(min_length=1)
    role: str = Field(pattern="^(user|assistant)$")
    speaker: str | None = None
    text: str = Field(min_length=1)


class _Question(BaseModel):
    model_config = ConfigDict(extra="ignore")

    question_id: str
    conversation_id: str
    question: str = Field(min_length=1)
    category: str = "all"
    evidence_turn_ids: list[str] = []
    evidence_session_ids: list[str] = []
    context: list[str] = []
    question_time: datetime | None = None
    asked_at: datetime | None = None
    until: datetime | None = None
    unanswerable: bool = False


@dataclass(frozen=True)
class Question:
    """A question and the messages that answer it."""

    id: str
    user: str
    text: str
    category: str
    evidence: frozenset[str]
    """Ids of the messages that answer it."""
    said: tuple[Utterance, ...]
    """Utterances just before the question."""
    speaker: str
    """Name of the speaker, if it is known."""
    asked_at: datetime
    until: datetime | None = None
    """Moment from which on nothing is searched."""
    sessions: frozenset[str] = frozenset()
    """Sessions that answer it, if no message is named: any message of one counts for the session."""

    @property
    def wanted(self) -> frozenset[str]:
        """Return the ids of what answers it: sessions, or else messages."""
        return self.sessions or self.evidence


@dataclass(frozen=True)
class Dataset:
    """Data to import, and questions to ask."""

    name: str
    lines: list[dict[str, Any]]
    """Lines for an import."""
    questions: list[Question]
    skipped: int
    """Number of questions without evidence."""


def load(folder: Path) -> Dataset:
    """Read a folder with `conversations.jsonl` and `questions.jsonl`. Raises `InvalidInput` if a file is
    missing, or a line of it is wrong; the message says which."""
    messages = [each for _, each in _read(folder / CONVERSATIONS, _Message)]
    times = _times(messages)
    sessions = {message.session_id: _name(message.session_id) for message in messages}
    lines = [
        {
            "user_id": _name(message.conversation_id),
            "session_id": sessions[message.session_id],
            "role": message.role,
            "content": message.text,
            "created_at": at.isoformat(),
            "external_id": message.turn_id,
            **({"speaker": message.speaker} if message.speaker else {}),
        }
        for message, at in zip(messages, times, strict=True)
    ]
    last: dict[str, datetime] = {}
    for message, at in zip(messages, times, strict=True):
        last[message.conversation_id] = max(at, last.get(message.conversation_id, at))
    questions, skipped = [], 0
    for number, asked in _read(folder / QUESTIONS, _Question):
        if asked.conversation_id not in last:
            raise InvalidInput(f"{QUESTIONS}:{number}", f"there is no conversation {asked.conversation_id!r}")
        named = asked.evidence_turn_ids or asked.evidence_session_ids
        if asked.unanswerable or asked.category == "adversarial" or not named:
            skipped += 1
            continue
        at = (
            asked.question_time or asked.asked_at or asked.until or last[asked.conversation_id] + _BETWEEN_MESSAGES
        )
        said = [_said(text) for text in asked.context]
        speaker = ""
        if said and said[-1].text.strip() == asked.question.strip():
            speaker = said.pop().speaker
        questions.append(
            Question(
                id=asked.question_id,
                user=_name(asked.conversation_id),
                text=asked.question,
                category=asked.category,
                evidence=frozenset(asked.evidence_turn_ids),
                said=tuple(said),
                speaker=speaker,
                asked_at=_utc(at),
                until=_utc(asked.until) if asked.until else None,
                sessions=frozenset(() if asked.evidence_turn_ids else map(_name, asked.evidence_session_ids)),
            )
        )
    return Dataset(folder.name, lines, questions, skipped)


def _times(messages: list[_Message]) -> list[datetime]:
    """Return the times of a session's messages, made distinct; times without an offset count as UTC."""
    newest: dict[str, datetime] = {}
    times = []
    for message in messages:
        at = _utc(message.session_time)
        if message.session_id in newest and at <= newest[message.session_id]:
            at = newest[message.session_id] + _BETWEEN_MESSAGES
        newest[message.session_id] = at
        times.append(at)
    return times


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _said(text: str) -> Utterance:
    speaker, separator, words = text.partition(": ")
    if not separator:
        return Utterance("user", text)
    return Utterance("assistant" if speaker.lower() in {"assistant", "ai"} else "user", words, speaker)


def _name(text: str) -> str:
    return _NOT_IN_A_NAME.sub("-", text)[-128:]


def _read(path: Path, model: type[BaseModel]) -> Iterator[tuple[int, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(str(path), "cannot be read: it is not UTF-8 text") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, model.model_validate(shallow_json(line))
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"]))
            raise InvalidInput(f"{path.name}:{number}", f"{where}: {problem['msg']}") from None
        except ValueError:
            raise InvalidInput(f"{path.name}:{number}", "is not JSON") from None
