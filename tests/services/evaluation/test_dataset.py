import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from services.errors import InvalidInput
from services.evaluation.dataset import load
from services.search.queries import Utterance

MESSAGE = {
    "conversation_id": "c/1",
    "session_id": "c/1 S1",
    "session_time": "2026-05-02T10:00:00",
    "turn_id": "m1",
    "role": "user",
    "speaker": "Nora",
    "text": "My dog is called Bruno.",
}
QUESTION = {
    "question_id": "q1",
    "conversation_id": "c/1",
    "question": "What is my dog called?",
    "evidence_turn_ids": ["m1"],
}


def folder(path: Path, messages: list[Any], questions: list[Any]) -> Path:
    for name, rows in (("conversations", messages), ("questions", questions)):
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return path


def test_a_question_is_asked_when_it_says_or_behind_the_last_message(tmp_path: Path) -> None:
    asked = {**QUESTION, "question_time": "2026-06-01T00:00:00"}
    first, second = load(folder(tmp_path, [MESSAGE], [asked, QUESTION])).questions
    assert first.asked_at == datetime(2026, 6, 1, tzinfo=UTC)
    assert second.asked_at > datetime(2026, 5, 2, 10, tzinfo=UTC)


def test_what_was_said_before_is_split_from_who_said_it_and_the_question_itself_left_out(tmp_path: Path) -> None:
    context = ["Nora: Hello", "Assistant: Hi: how are you?", "Nora: What is my dog called?"]
    (question,) = load(folder(tmp_path, [MESSAGE], [{**QUESTION, "context": context}])).questions
    assert question.said == (
        Utterance("user", "Hello", "Nora"),
        Utterance("assistant", "Hi: how are you?", "Assistant"),
    )
    assert question.speaker == "Nora"


def test_sessions_are_the_evidence_where_no_message_is_named(tmp_path: Path) -> None:
    by_session = {**QUESTION, "evidence_turn_ids": [], "evidence_session_ids": ["c/1 S1"]}
    both = {**QUESTION, "evidence_session_ids": ["c/1 S1"]}
    said = {**MESSAGE, "text": "My dog\u2028is called Bruno."}
    folder(tmp_path, [json.dumps(said, ensure_ascii=False)], [by_session, both])
    dataset = load(tmp_path)
    assert [each.wanted for each in dataset.questions] == [{dataset.lines[0]["session_id"]}, {"m1"}]


@pytest.mark.parametrize(
    ("messages", "questions", "where"),
    [
        ([MESSAGE, "{"], [QUESTION], "conversations.jsonl:2"),
        ([{**MESSAGE, "role": "system"}], [QUESTION], "conversations.jsonl:1"),
        ([{**MESSAGE, "session_time": "yesterday"}], [QUESTION], "conversations.jsonl:1"),
        ([MESSAGE], [{"question_id": "q"}], "questions.jsonl:1"),
        ([MESSAGE], [{**QUESTION, "conversation_id": "nobody"}], "questions.jsonl:1"),
    ],
)
def test_what_is_wrong_is_named_by_its_line(
    tmp_path: Path, messages: list[Any], questions: list[Any], where: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        load(folder(tmp_path, messages, questions))
    assert refused.value.field == where
