"""What the models answer in a dialogue: the large one by turns, then by rules; the small one by rules."""

import json
import re
from collections.abc import Sequence
from typing import Any

from tests.scenarios.dialogue import Answer, Dialogue, Rule
from tests.scenarios.stage import SMALL
from tests.support.model_server import Received, Reply, ToolCall

_PIECE = re.compile(r"\s*\S{1,12}\s*|\s+")
_DONE = {"zh": "好的。", "en": "All right."}


def reply_of(answer: Answer) -> Reply:
    """The answer as the scripted server gives it."""
    text = json.dumps(answer.data, ensure_ascii=False) if answer.data is not None else answer.text
    return Reply(
        pieces=_PIECE.findall(text) if text else (),
        tool_calls=[
            ToolCall(tool.name, tool.arguments, tool.call or f"call_{number}")
            for number, tool in enumerate(answer.tools, 1)
        ],
        status=answer.status,
        error_message=answer.error,
    )


def whole_text(request: Received) -> str:
    """All texts of a prompt, what tools answered among them."""
    items = request.body.get("messages") or request.body.get("input") or []
    return "\n".join(text_of(item) for item in items)


def text_of(item: dict[str, Any]) -> str:
    """What one item of a prompt says: its text, or the call or result that it is."""
    if "output" in item:
        return str(item["output"])
    if "arguments" in item:
        return f"{item.get('name')} {json.dumps(json.loads(item['arguments']), ensure_ascii=False)}"
    content = item.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


class Director:
    """Answers what is not scripted call by call."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._large, self._small = dialogue.model, dialogue.small
        self._done = _DONE["en" if dialogue.language == "en" else "zh"]

    def __call__(self, request: Received) -> Reply:
        """The first rule that fits, or what a model could say of anything."""
        text = whole_text(request)
        is_small = request.body.get("model") == SMALL
        if rule := _first(self._small if is_small else self._large, text):
            return reply_of(rule)
        return reply_of(_background(text) if is_small else Answer(text=self._done))


def _first(rules: Sequence[Rule], text: str) -> Rule | None:
    for rule in rules:
        if all(each in text for each in rule.when) and not any(each in text for each in rule.unless):
            return rule
    return None


def _background(text: str) -> Answer:
    """What the small model says when a file does not care: nothing to file, no topics, some summary."""
    if '"operations"' in text:
        return Answer(data={"operations": []})
    if '"key_topics"' in text:
        return Answer(data={"summary": "(automatic summary)", "key_topics": ["automatic"]})
    if '"topics"' in text:
        return Answer(data={"topics": []})
    return Answer(text="(automatic summary)")
