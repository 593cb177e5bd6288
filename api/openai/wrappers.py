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
_ATTACHED_FILES = re.compile(r"<attached_files>\s*(?:<file\b[^>]*/>\s*)+</attached_files>")
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
    """Take the wrappers of known clients off a user's message.

    A message that is nothing else stays whole; except a template for a question that holds none, as it comes when
    an answer is to be continued: there `said` is empty.
    """
    attached: list[str] = []
    said, is_template = text, False
    if "<" in text:
        if is_template := bool(_TEMPLATE.match(said) and (_SOURCED_CONTEXT.search(said) or _QUERY.search(said))):
            said = _query_of_template(said, attached)
        for pattern in (_SYSTEM_CONTEXT, _SOURCED_CONTEXT, _SOURCE, _CLIENT_MEMORY, _ATTACHED_FILES):
            found = [match.group().strip() for match in pattern.finditer(said)]
            if found:
                attached += found
                said = pattern.sub("", said)
    if date := _DATE_LINE.match(said):
        attached.append(date.group().strip())
        said = said[date.end() :]
    said = said.strip() if attached else text
    return Unwrapped(said, attached) if said or is_template else Unwrapped(text, [])


def _query_of_template(text: str, attached: list[str]) -> str:
    """The user's question in a template that gives the model passages and then the question."""
    if query := _QUERY.search(text):
        attached.append(text[: query.start()].strip())
        return query.group(1)
    end = max(text.rfind("</context>"), text.rfind("</source>"), text.rfind("</sources>"))
    end = text.index(">", end) + 1
    attached.append(text[:end].strip())
    return text[end:]
