"""Wrappers of clients around a user's own words: passages, the client's own memories, dates. Pure functions.

The user's words are stored and remembered; what was around them is shown to the model for this one message.
"""

import re
from dataclasses import dataclass

_SYSTEM_CONTEXT = re.compile(
    r"<!--\s*SYSTEM CONTEXT \(NOT PART OF USER QUERY\)\s*-->(.*?)<!--\s*END SYSTEM CONTEXT\s*-->", re.DOTALL
)
_SOURCED_CONTEXT = re.compile(r"<(context|sources)>(?P<inside>(?:(?!</\1>).)*<source\b.*?)</\1>", re.DOTALL)
_SOURCE = re.compile(r"<source\b[^>]*\bid=[^>]*>.*?</source>", re.DOTALL)
_CLIENT_MEMORY = re.compile(r"<(user_memory|user_memories|memory_context)>.*?</\1>", re.DOTALL)
_TEMPLATE = re.compile(r"\A\s*###\s*Task:\s*\n", re.IGNORECASE)
_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_DATE_LINE = re.compile(
    r"\A\s*\[?(?:current (?:date|time|date and time|datetime)|today's date|当前时间|当前日期)\s*[:：][^\n]*\n+",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Unwrapped:
    """A user's message, apart from what the client put around it."""

    said: str
    attached: list[str]


def unwrap(text: str) -> Unwrapped:
    """Take the wrappers of known clients off a user's message; a message that is nothing else stays whole."""
    attached: list[str] = []
    said = text
    if "<" in text:
        if _TEMPLATE.match(said) and ("<source" in said or _QUERY.search(said)):
            said = _query_of_template(said, attached)
        for pattern in (_SYSTEM_CONTEXT, _SOURCED_CONTEXT, _SOURCE, _CLIENT_MEMORY):
            found = [match.group().strip() for match in pattern.finditer(said)]
            if found:
                attached += found
                said = pattern.sub("", said)
    if date := _DATE_LINE.match(said):
        attached.append(date.group().strip())
        said = said[date.end() :]
    said = said.strip() if attached else text
    return Unwrapped(said, attached) if said else Unwrapped(text, [])


def _query_of_template(text: str, attached: list[str]) -> str:
    """The user's question in a template that gives the model passages and then the question."""
    if query := _QUERY.search(text):
        attached.append(text[: query.start()].strip())
        return query.group(1)
    end = max(text.rfind("</context>"), text.rfind("</source>"), text.rfind("</sources>"))
    end = text.index(">", end) + 1
    attached.append(text[:end].strip())
    return text[end:]
