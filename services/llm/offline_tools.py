"""Which tool the built-in offline model calls, and with which arguments."""

import json
import re
import uuid
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import ToolCall
from langchain_core.messages.tool import tool_call

from services.text.lexical import stems

_ENOUGH_SHARED_WORDS = 2
_POLITE = r"(?:please|kindly|hey|hi|ok(?:ay)?|now|and|also|can you|could you|would you|will you)[,:]?\s+"
_POLITE_ZH = r"(?:请|請|麻烦|麻煩|帮我|幫我|帮忙|幫忙|你|您|能不能|可以|现在|現在)*"

_REMEMBER = (
    rf"^(?:{_POLITE})*(?:remember|make a note|take a note|note down|keep in mind|bear in mind)\b"
    rf"(?: (?:this|that|of))?[,:]?\s+(?!when\b|how\b|the time\b)(?P<what>[^?]+)$",
    rf"^{_POLITE_ZH}(?:记住|記住|记一下|記一下|记下|記下|备忘)(?:一下|来|來)?[：:，,\s]*(?P<what>[^?？]+)$",
)
_FORGET = (
    rf"^(?:{_POLITE})*(?:forget|delete|erase|remove)\b"
    rf"(?: (?:what (?:i|you) (?:said|know) about|everything about|all about|about|that))?\s+"
    rf"(?!it\b\W*$|to\b)(?P<what>[^?]+)$",
    rf"^{_POLITE_ZH}(?:忘掉|忘记|忘記|删掉|刪掉|删除|刪除|忘了(?=我|这|這|那))(?P<what>[^?？]+)$",
)
_SEARCH = (
    r"\b(?:search|look (?:in|through|into)|check|go through)\b.{0,30}"
    r"\b(?:memory|memories|conversations|chats?|chat history|what (?:i|we) said)\b",
    r"(?:搜|查|翻|找)(?:索|一下|一查|找)?.{0,8}(?:记忆|記憶|聊天记录|聊天記錄|历史对话|歷史對話|以前的对话)",
)

_TRIGGERS: dict[str, tuple[str, ...]] = {
    "remember": _REMEMBER,
    "core_memory_update": _REMEMBER,
    "forget": _FORGET,
    "search_memory": _SEARCH,
    "get_current_time": (
        r"\bwhat(?:'s| is| are)?\b.{0,20}\b(?:time|date|day|weekday)\b.{0,20}(?:\bit\b|\btoday\b|\bnow\b|\bis\b)"
        r"|\b(?:current|local) (?:time|date)\b|\btime in [A-Z]",
        r"几点(?:了|钟)?[?？]?$|(?:今天|现在).{0,4}(?:几号|星期几|周几|日期|时间)|什么时间了",
    ),
    "get_weather": (
        r"\bweather\b|\bforecast\b|\b(?:will|is|does) it (?:be )?(?:rain|snow|sunny|warm|cold)",
        r"天气|天氣|气温|氣溫|(?:会|會)(?:下雨|下雪)",
    ),
}
"""The tools of the service, and the messages that trigger each. The first that matches is called; a tool without
triggers never. Other tools are chosen by the words that they share with the message."""


def choose_tool(
    tools: Sequence[dict[str, Any]], tool_choice: str | None, question: str
) -> tuple[dict[str, Any], str] | None:
    """Return the tool to call, and the text for its arguments; None if none is called."""
    if not tools or tool_choice == "none":
        return None
    if tool_choice and tool_choice != "auto":
        return next((tool for tool in tools if _name(tool) == tool_choice), tools[0]), question
    for tool in tools:
        for pattern in _TRIGGERS.get(_name(tool), ()):
            if found := re.search(pattern, question.strip(), re.IGNORECASE):
                what = (found.groupdict().get("what") or question).strip()
                return tool, what
    others = [tool for tool in tools if _name(tool) not in _TRIGGERS]
    asked = set(stems(question))
    best = max(others, key=lambda tool: len(asked & _words_of(tool)), default=None)
    if best is None or len(asked & _words_of(best)) < _ENOUGH_SHARED_WORDS:
        return None
    return best, question


def call_of(tool: dict[str, Any], text: str) -> ToolCall:
    """Return a call of the tool with `text` for its required arguments; the same text gives the same call."""
    schema = tool["function"].get("parameters") or {}
    fields: dict[str, Any] = schema.get("properties") or {}
    required = schema.get("required") or [name for name in fields if _is_text(fields[name])][:1]
    arguments = {name: _argument(fields[name], text) for name in required if name in fields}
    identity = uuid.uuid5(uuid.NAMESPACE_OID, _name(tool) + json.dumps(arguments, sort_keys=True))
    return tool_call(name=_name(tool), args=arguments, id=f"call_{identity.hex[:24]}")


def _name(tool: dict[str, Any]) -> str:
    return str(tool["function"]["name"])


def _words_of(tool: dict[str, Any]) -> set[str]:
    return set(stems(f"{_name(tool).replace('_', ' ')} {tool['function'].get('description', '')}"))


def _is_text(field: dict[str, Any]) -> bool:
    return field.get("type") == "string" or any(each.get("type") == "string" for each in field.get("anyOf", ()))


def _argument(field: dict[str, Any], text: str) -> Any:
    if "enum" in field:
        return field["enum"][0]
    note = {"notes": [text]} if field.get("additionalProperties") is True else {}
    values = {"string": text, "integer": 0, "number": 0.0, "boolean": False, "array": [], "object": note}
    return values.get(field.get("type", "string"), text)
