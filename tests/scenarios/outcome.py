"""What a step brought about: what was answered, what the models were shown, what is stored."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.scenarios.script import text_of, whole_text
from tests.support.model_server import Received

Event = tuple[int, str, Any]
"""Sequence, kind and content."""

_CONTEXT = re.compile(r"(.*?)<context>\n(.*)\n</context>\s*(.*)", re.DOTALL)
"""What the service adds to the user's message stands before its text."""


@dataclass
class Outcome:
    """All that can be expected of."""

    status: int | None = None
    text: str = ""
    body: Any = None
    events: list[Event] = field(default_factory=list)
    rows: list[list[Any]] | None = None
    turn: dict[str, Any] | None = None
    """As it is stored."""
    requests: Sequence[Received] = ()
    """Those to the large model, in this step."""
    small_requests: Sequence[Received] = ()
    """Those to the small model, since the dialogue began."""
    asked_from: int | None = None
    """Where the requests of this step begin, if not with the step: of what is said several times, the last."""
    answered: bool = False
    """Whether the step asked for an answer, and has one."""

    @property
    def kinds(self) -> list[str]:
        """The kinds of its events, tokens that follow each other as one."""
        kinds = [kind for _, kind, _ in self.events]
        return [
            kind for place, kind in enumerate(kinds) if kind != "token" or kinds[place - 1 : place] != ["token"]
        ]

    @property
    def answer(self) -> str | None:
        """What was said to the user."""
        if self.events:
            return "".join(content for _, kind, content in self.events if kind == "token")
        return self.body.get("answer") if isinstance(self.body, dict) else None

    @property
    def error(self) -> str | None:
        """The code of the error with which it ended."""
        if self.events and self.events[-1][1] == "error":
            return str(self.events[-1][2]["code"])
        return self.body.get("code") if isinstance(self.body, dict) else None

    @property
    def report(self) -> dict[str, Any]:
        return (self.turn or {}).get("context_report") or {}

    def prompt(self, call: int) -> dict[str, list[str]]:
        """The texts of each part of the prompt of a call, from 1; none where there was no such call."""
        if call > len(self.requests):
            return {}
        return prompt_parts(self.requests[call - 1])

    def whole_prompts(self) -> list[str]:
        """The text of each prompt of this step."""
        return [whole_text(request) for request in self.requests]


def prompt_parts(request: Received) -> dict[str, list[str]]:
    """A prompt's messages by part, in the compatible form; what waited unanswered stands before the tail."""
    items = request.body.get("messages") or request.body.get("input") or []
    last = max(place for place, item in enumerate(items) if item.get("role") == "user")
    texts = [text_of(item) for item in items]
    history = next(place for place, item in enumerate(items) if item.get("role") not in {"system", "developer"})
    split = _CONTEXT.fullmatch(texts[last])
    unanswered, tail, message = split.groups() if split else ("", "", texts[last])
    return {
        "beginning": texts[:history],
        "history": [*texts[history:last], *filter(None, [unanswered.strip()])],
        "tail": [tail] if tail else [],
        "message": [message],
        "after": texts[last + 1 :],
        "all": texts,
    }


def at_path(value: Any, path: str) -> Any:
    """What stands at `items.0.content`; None when nothing does."""
    for name in path.split(".") if path else ():
        if isinstance(value, list) and name.lstrip("-").isdigit() and -len(value) <= int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict):
            value = value.get(name)
        else:
            return None
    return value


def includes(value: Any, wanted: Any) -> bool:
    """Whether a value has everything that is wanted: of tables these keys, of lists such items in any place."""
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(
            name in value and includes(value[name], each) for name, each in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(value, list) and all(any(includes(item, each) for item in value) for each in wanted)
    return bool(value == wanted)
