"""Whether what is expected of a step holds; each that does not is one line that says what was seen instead."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.scenarios.dialogue import EventExpected, Expected, PromptExpected
from tests.scenarios.outcome import Outcome, at_path, includes
from tests.scenarios.script import whole_text

_LONGEST_SEEN = 1500


def unmet(expected: Expected, outcome: Outcome) -> list[str]:
    """What does not hold."""
    return [
        *_of_the_answer(expected, outcome),
        *_of_the_events(expected, outcome),
        *_of_the_body(expected, outcome),
        *_of_the_prompts(expected, outcome),
        *_of_what_is_stored(expected, outcome),
    ]


def _of_the_answer(expected: Expected, outcome: Outcome) -> Iterator[str]:
    yield from _equal("status", expected.status, outcome.status)
    yield from _equal("error", expected.error, outcome.error)
    yield from _equal("answer", expected.answer, outcome.answer)
    yield from _texts("answer", expected.answer_has, expected.answer_lacks, outcome.answer or "")


def _of_the_events(expected: Expected, outcome: Outcome) -> Iterator[str]:
    kinds = outcome.kinds
    yield from _equal("events", expected.events, kinds)
    for kind in expected.events_lack:
        if kind in kinds:
            yield f"events_lack: expected no {kind}, seen {kinds}"
    for each in expected.event:
        yield from _event(each, outcome)


def _event(expected: EventExpected, outcome: Outcome) -> Iterator[str]:
    contents = [content for _, kind, content in outcome.events if kind == expected.kind]
    if not any(
        (expected.has is None or includes(content, expected.has))
        and not any(text in _shown(content) for text in expected.lacks)
        for content in contents
    ):
        yield (
            f"event {expected.kind}: expected {_shown(expected.has)}, lacking {expected.lacks}, "
            f"seen {_shown(contents)}"
        )


def _of_the_body(expected: Expected, outcome: Outcome) -> Iterator[str]:
    if expected.body is not None and not includes(outcome.body, expected.body):
        yield f"body: expected {_shown(expected.body)} in it, seen {_shown(outcome.body)}"
    for path, wanted in expected.at.items():
        yield from _equal(f"at {path}", wanted, at_path(outcome.body, path))
    for path, wanted in expected.count.items():
        found = at_path(outcome.body, path)
        size = len(found) if isinstance(found, list | dict) else None
        if size != wanted:
            yield f"count {path}: expected {wanted}, seen {size}: {_shown(found)}"
    for path in expected.absent:
        if (found := at_path(outcome.body, path)) is not None:
            yield f"absent {path}: seen {_shown(found)}"
    yield from _texts("text", expected.text_has, expected.text_lacks, outcome.text)


def _of_the_prompts(expected: Expected, outcome: Outcome) -> Iterator[str]:
    yield from _equal("model_calls", expected.model_calls, len(outcome.requests))
    yield from _equal("small_calls", expected.small_calls, len(outcome.small_requests))
    yield from _texts("prompt", expected.prompt_has, expected.prompt_lacks, "\n".join(outcome.whole_prompts()))
    small = "\n".join(whole_text(request) for request in outcome.small_requests)
    yield from _texts("small", expected.small_has, (), small)
    for each in expected.prompt:
        yield from _prompt(each, outcome)


def _prompt(expected: PromptExpected, outcome: Outcome) -> Iterator[str]:
    name = f"prompt {expected.part} of call {expected.call}"
    parts = outcome.prompt(expected.call)
    if not parts:
        yield f"{name}: seen {len(outcome.requests)} calls"
        return
    texts = parts[expected.part]
    if expected.messages is not None and len(texts) != expected.messages:
        yield f"{name}: expected {expected.messages} messages, seen {len(texts)}: {_shown(texts)}"
    yield from _texts(name, expected.has, expected.lacks, "\n".join(texts))


def _of_what_is_stored(expected: Expected, outcome: Outcome) -> Iterator[str]:
    yield from _equal("rows", expected.rows, outcome.rows)
    if expected.turn is not None and not includes(outcome.turn, expected.turn):
        yield f"turn: expected {_shown(expected.turn)} in it, seen {_shown(outcome.turn)}"
    if expected.report is not None and not includes(outcome.report, expected.report):
        yield f"report: expected {_shown(expected.report)} in it, seen {_shown(outcome.report)}"
    tokens = outcome.report.get("tokens", {})
    for section in expected.sections:
        if not tokens.get(section):
            yield f"sections: expected {section}, seen {tokens}"
    for section in expected.sections_lack:
        if tokens.get(section):
            yield f"sections_lack: expected no {section}, seen {tokens}"


def _equal(name: str, wanted: Any, found: Any) -> Iterator[str]:
    if wanted is not None and found != wanted:
        yield f"{name}: expected {_shown(wanted)}, seen {_shown(found)}"


def _texts(name: str, has: Sequence[str], lacks: Sequence[str], text: str) -> Iterator[str]:
    for each in has:
        if each not in text:
            yield f"{name}_has: expected {each!r}, seen {_cut(text)!r}"
    for each in lacks:
        if each in text:
            place = text.index(each)
            yield f"{name}_lacks: expected no {each!r}, seen {text[max(0, place - 80) : place + 120]!r}"


def _shown(value: Any) -> str:
    return _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SEEN else f"{text[:_LONGEST_SEEN]}… ({len(text)} characters)"
