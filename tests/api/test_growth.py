"""What looks at a text takes no more time than its length, whatever it repeats."""

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog
from langchain_core.messages import HumanMessage, SystemMessage

from api.openai.client_message import ClientMessage
from api.openai.messages import read_messages
from api.openai.utilities import is_utility
from services.conversations.values import message_digest
from services.errors import BadModelOutput, InvalidInput
from services.knowledge.chunking import chunks_of
from services.knowledge.document import Converted, Part
from services.knowledge.encodings import decoded
from services.llm.json_text import json_values
from services.llm.offline import read_prompt, reply_to
from services.llm.token_estimates import count_tokens
from services.memory.filing.answer import filing_of_answer
from services.memory.reading.foreign_words import foreign_text
from services.memory.reading.plain_forms import plain_forms
from services.memory.reading.quotes import is_quoted
from services.memory.reading.what_stays import what_stays
from services.memory.reading.words import Words, patterns_of
from services.search.queries import make_query
from services.store.matching import shared_terms
from services.text.language import language_of, sentences
from services.text.marks import without_marks, without_tokens
from services.text.questions import (
    asks,
    asks_for_work,
    is_about_oneself,
    is_small_talk,
    refers_back,
    states_something,
)
from services.text.secrets import without_secrets
from services.text.tokenizer import informative_terms, simplified_text, terms
from services.time_reference.detect import detect
from services.time_reference.parse import parse as times_in
from services.time_reference.parse import timed
from services.transfer.lines import BadLine, parse
from services.transfer.vendors.readers import openwebui
from tests.support.repetitions import FAMILIES, USUAL, grows_too_fast, repeated

NOW = datetime(2026, 11, 28, tzinfo=UTC)
_TAGS = ("memory", "documents", "context")
Work = Callable[[str], object]


def _sent(text: str) -> list[ClientMessage]:
    return [ClientMessage(role="user", content=text)]


def _chat(text: str) -> dict[str, Any]:
    messages = {"1": {"id": "1", "role": "assistant", "content": text, "timestamp": 1_700_000_000}}
    return {"id": "c", "chat": {"id": "c", "history": {"messages": messages, "currentId": "1"}}}


def _line(text: str) -> bytes:
    said = {"user_id": "u", "session_id": "s", "role": "user", "content": text}
    return json.dumps({**said, "created_at": "2026-01-01T00:00:00Z"}).encode()


def _operation(text: str) -> str:
    return json.dumps({"operations": [{"op": "add", "text": "x", "id": text, "quote": text}]}, ensure_ascii=False)


WORK: dict[str, Work] = {
    "a request's messages": lambda text: read_messages(_sent(text)),
    "a request's template": lambda text: read_messages(_sent(f"### Task:\n{text}")),
    "a question about references": lambda text: read_messages(
        _sent(f"Please answer the question based on the reference materials\n{text}")
    ),
    "a request for a title": lambda text: is_utility(_sent(text), {}),
    "a system message": lambda text: is_utility([ClientMessage(role="system", content=text), *_sent("Hi")], {}),
    "the digest of an answer": lambda text: message_digest("assistant", text),
    "a model's JSON": json_values,
    "an answer of filing": lambda text: filing_of_answer(text, ["m1"], ["u1"]),
    "an operation of filing": lambda text: filing_of_answer(_operation(text), ["m1"], ["u1"]),
    "the offline model's question": lambda text: reply_to(read_prompt([HumanMessage(text)])),
    "the offline model's context": lambda text: reply_to(
        read_prompt([SystemMessage("Be kind."), SystemMessage(text), HumanMessage("What of peanuts?")])
    ),
    "tokens": count_tokens,
    "text of others": foreign_text,
    "a quote": lambda text: is_quoted(text[:200], text),
    "plain forms": plain_forms,
    "what is left of a text": lambda text: what_stays(text, lambda clause: "peanut" in clause),
    "words": Words.of,
    "patterns of words": patterns_of,
    "sentences": sentences,
    "the language": lambda text: language_of([text]),
    "marks in data": lambda text: without_marks(text, _TAGS),
    "marks in a message": lambda text: without_tokens(text, _TAGS),
    "a question": lambda text: (asks(text, "en"), asks(text, "zh"), is_small_talk(text), asks_for_work(text)),
    "whom it is about": lambda text: [
        about(text, language) for about in (is_about_oneself, refers_back) for language in ("en", "zh")
    ],
    "a statement": states_something,
    "secrets": without_secrets,
    "terms": lambda text: (terms(text), informative_terms(text), simplified_text(text)),
    "a query": make_query,
    "shared terms of a store": lambda text: shared_terms(text, "peanut sauce"),
    "a reference to time": lambda text: detect(text, "UTC", NOW),
    "the time of a statement": lambda text: timed(text, NOW),
    "passages of a document": lambda text: chunks_of(Converted("", (Part(text),), headings=True)),
    "bytes of a document": lambda text: decoded(text.encode("gb18030")),
    "a line of an import": lambda text: parse(_line(text)),
    "a broken line of an import": lambda text: parse(text.encode()),
    "a chat of another product": lambda text: openwebui(_chat(text), NOW),
}


def _refused(work: Work) -> Work:
    def tried(text: str) -> None:
        with suppress(BadLine, BadModelOutput, InvalidInput):
            work(text)

    return tried


@pytest.fixture(autouse=True)
def _quiet() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


@pytest.mark.parametrize(
    "families",
    [
        pytest.param(USUAL, id="usual"),
        pytest.param([each for each in FAMILIES if each not in USUAL], id="others", marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize("name", WORK)
def test_what_looks_at_a_text_takes_no_more_than_its_length(name: str, families: Sequence[str]) -> None:
    work = _refused(WORK[name])
    work(repeated("", 1_000))  # what is made at the first use
    slow = [found for family in families if (found := grows_too_fast(work, family))]
    assert slow == []


def test_what_names_times_takes_no_more_than_its_length() -> None:
    """Only questions of a few hundred characters are looked at so closely."""
    slow = [
        found
        for family in ("articles", "Han numbers")
        if (found := grows_too_fast(lambda text: times_in(text, NOW), family))
    ]
    assert slow == []
