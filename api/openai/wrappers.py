"""Wrappers of clients around a user's own words: passages, the client's own memories, dates. Pure functions.

The user's words are stored and remembered; what was around them is shown to the model for this one message.
"""

import re
from dataclasses import dataclass

# Documents may contain the marks, so that a wrapper goes on to the last closing one.
_SYSTEM_CONTEXT = re.compile(
    r"<!--\s{0,9}SYSTEM CONTEXT \(NOT PART OF USER QUERY\)\s{0,9}-->.*<!--\s{0,9}END SYSTEM CONTEXT\s{0,9}-->",
    re.DOTALL,
)
_SOURCED_CONTEXT = re.compile(r"<(context|sources)>(?=.*?<source\b).*</\1>", re.DOTALL)
_SOURCE = re.compile(r"<source\b[^>]*\bid=[^>]*>.*</source>", re.DOTALL)
_CLIENT_MEMORY = re.compile(r"<(user_memory|user_memories|memory_context)>.*</\1>", re.DOTALL)
_ATTACHED_FILES = re.compile(r"<attached_files>\s*(?:<file\b[^>]*/>\s*)+</attached_files>")
_WRAPPERS = (_SYSTEM_CONTEXT, _SOURCED_CONTEXT, _SOURCE, _CLIENT_MEMORY, _ATTACHED_FILES)
_TEMPLATE = re.compile(r"\A\s{0,99}###\s{0,9}Task:\s{0,9}\n", re.IGNORECASE)
_QUERY = re.compile(r"<user_query>(?:(?!</?user_query>).)*</user_query>\s*\Z", re.DOTALL)
_CLOSING = ("</context>", "</source>", "</sources>")
_REFERENCES = re.compile(
    r"\A\s{0,99}Please answer the question based on the reference materials\s.*?\n## My question is:\s{0,9}\n"
    r"(?P<query>.*?)\n## Reference Materials:",
    re.DOTALL,
)
"""A question before its passages, as Cherry Studio writes it."""
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
    if references := _REFERENCES.match(text):
        said = references["query"]
        attached += [text[: references.start("query")].strip(), text[references.end("query") :].strip()]
    elif "<" in text:
        if is_template := bool(_TEMPLATE.match(said) and (_SOURCED_CONTEXT.search(said) or _QUERY.search(said))):
            said = _query_of_template(said, attached)
        for pattern in _WRAPPERS:
            if found := pattern.search(said):
                attached.append(found.group().strip())
                said = said[: found.start()] + said[found.end() :]
    if date := _DATE_LINE.match(said):
        attached.append(date.group().strip())
        said = said[date.end() :]
    said = said.strip() if attached else text
    return Unwrapped(said, attached) if said or is_template else Unwrapped(text, [])


def _query_of_template(text: str, attached: list[str]) -> str:
    """Return the user's question in a template that gives the model passages and then the question.

    A question in marks counts only behind the last passage, as passages may contain such marks.
    """
    end = max(text.rfind(mark) + len(mark) for mark in _CLOSING if mark in text) if _has_passages(text) else 0
    query = _QUERY.search(text, end)
    start = query.start() if query else end
    attached.append(text[:start].strip())
    return text[start:].strip().removeprefix("<user_query>").removesuffix("</user_query>").strip()


def _has_passages(text: str) -> bool:
    return any(mark in text for mark in _CLOSING)
