"""Wrappers that known clients put around a user's message: found by their marks and removed.

Anybody may send any text, so each mark is looked for once, from one end. The time is linear in the length of the
text.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

_Span = tuple[int, int]

_OPENS_CONTEXT = re.compile(r"<!--\s{0,9}SYSTEM CONTEXT \(NOT PART OF USER QUERY\)\s{0,9}-->")
_CLOSES_CONTEXT = re.compile(r"<!--\s{0,9}END SYSTEM CONTEXT\s{0,9}-->")
_SOURCE = re.compile(r"<source\b")
_ID = re.compile(r"\bid=")
_CLOSES_SOURCE = "</source>"
_WITH_SOURCES = ("context", "sources")
_CLIENT_MEMORY = ("user_memory", "user_memories", "memory_context")
_OPENS_FILES, _CLOSES_FILES = "<attached_files>", "</attached_files>"
_FILE = re.compile(r"<file\b")
_TEMPLATE = re.compile(r"\A\s{0,99}###\s{0,9}Task:\s{0,9}\n", re.IGNORECASE)
_OPENS_QUERY, _CLOSES_QUERY = "<user_query>", "</user_query>"
_CLOSING = ("</context>", _CLOSES_SOURCE, "</sources>")
_ASKS_ABOUT_REFERENCES = re.compile(r"\A\s{0,99}Please answer the question based on the reference materials(?=\s)")
_QUESTION = re.compile(r"\n## My question is:\s{0,9}\n")
_REFERENCES = "\n## Reference Materials:"
"""A question before its passages, as Cherry Studio writes it."""
_OPENS_DOCUMENTS, _CLOSES_DOCUMENTS = "Attached document(s):\n```md", re.compile(r"\n\n```(?=\s|\Z)")
"""Around the texts of files, as LibreChat writes them."""
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
    """Remove the wrappers of known clients from a user's message.

    A message that consists of a wrapper alone stays whole. The exception is a template without a question, which a
    client sends to have an answer continued; its `said` is empty.
    """
    attached: list[str] = []
    said, is_template = text, False
    if question := _question_before_references(text):
        said = text[slice(*question)]
        attached += [text[: question[0]].strip(), text[question[1] :].strip()]
    elif "<" in text:
        if is_template := bool(_TEMPLATE.match(said) and (_sourced_context(said) or _query(said, 0) is not None)):
            said = _query_of_template(said, attached)
        said = _apart(said, _WRAPPERS, attached)
    if not question:
        said = _apart(said, (_attached_documents,), attached)
    if date := _DATE_LINE.match(said):
        attached.append(date.group().strip())
        said = said[date.end() :]
    said = said.strip() if attached else text
    return Unwrapped(said, attached) if said or is_template else Unwrapped(text, [])


def documents_apart(text: str) -> Unwrapped:
    """Separate the documents from a system message, or from a message that was answered before, and leave the
    rest."""
    attached: list[str] = []
    said = _apart(text, _DOCUMENTS, attached)
    return Unwrapped(said.strip(), attached) if attached else Unwrapped(text, [])


def _apart(text: str, wrappers: Iterable[Callable[[str], _Span | None]], attached: list[str]) -> str:
    """Add the content of each wrapper in the text to `attached`, and return the text without the wrappers."""
    for find in wrappers:
        if found := find(text):
            attached.append(text[slice(*found)].strip())
            text = text[: found[0]] + text[found[1] :]
    return text


def _question_before_references(text: str) -> _Span | None:
    asks = _ASKS_ABOUT_REFERENCES.match(text)
    question = _QUESTION.search(text, asks.end()) if asks else None
    end = text.find(_REFERENCES, question.end() - 1) if question else -1  # an empty question has one line break
    return (question.end(), end) if question and end >= 0 else None


# Documents may contain the marks, so that a wrapper goes on to the last closing one.
def _system_context(text: str) -> _Span | None:
    opens = _OPENS_CONTEXT.search(text)
    closes = _last(_CLOSES_CONTEXT.finditer(text, opens.end())) if opens else None
    return (opens.start(), closes.end()) if opens and closes else None


def _sourced_context(text: str) -> _Span | None:
    source = _last(_SOURCE.finditer(text))
    return _first_element(text, _WITH_SOURCES, until=source.start()) if source else None


def _client_memory(text: str) -> _Span | None:
    return _first_element(text, _CLIENT_MEMORY, until=len(text))


def _first_element(text: str, names: tuple[str, ...], *, until: int) -> _Span | None:
    """Return the first element of one of these names whose opening mark ends before a place."""
    found = []
    for name in names:
        begin, end = text.find(f"<{name}>"), text.rfind(f"</{name}>")
        inside = begin + len(name) + 2
        if begin >= 0 and inside <= min(until, end):
            found.append((begin, end + len(name) + 3))
    return min(found, default=None)


def _source(text: str) -> _Span | None:
    """Find a passage with an id, if the text is nothing else."""
    last = text.rfind(_CLOSES_SOURCE)
    at = 0
    while opens := _SOURCE.search(text, at):
        at = text.find(">", opens.end()) + 1
        if not at or last < at:
            return None
        if _ID.search(text, opens.end(), at):
            return opens.start(), last + len(_CLOSES_SOURCE)
    return None


def _attached_files(text: str) -> _Span | None:
    """Find a list of files, if the text is nothing else. The two marks that are nearest to each other belong
    together."""
    at = 0
    while (closes := text.find(_CLOSES_FILES, at)) >= 0:
        opens = text.rfind(_OPENS_FILES, at, closes)
        at = closes + len(_CLOSES_FILES)
        if opens >= 0 and _holds_files(text[opens + len(_OPENS_FILES) : closes]):
            return opens, at
    return None


def _holds_files(text: str) -> bool:
    *files, rest = text.split("/>")
    return (
        bool(files) and not rest.strip() and all(_FILE.match(each.lstrip()) and ">" not in each for each in files)
    )


def _attached_documents(text: str) -> _Span | None:
    opens = text.find(_OPENS_DOCUMENTS)
    closes = _last(_CLOSES_DOCUMENTS.finditer(text, opens)) if opens >= 0 else None
    return (opens, closes.end()) if closes else None


_DOCUMENTS = (_system_context, _sourced_context, _source, _attached_documents)
_WRAPPERS: tuple[Callable[[str], _Span | None], ...] = (
    *(_system_context, _sourced_context, _source, _client_memory, _attached_files),
)


def _query(text: str, start: int) -> int | None:
    """Return the place where a marked question begins that ends the text."""
    end = len(text.rstrip())
    closes = end - len(_CLOSES_QUERY)
    opens = text.rfind(_OPENS_QUERY, start, max(closes, 0)) if text.endswith(_CLOSES_QUERY, start, end) else -1
    return opens if opens >= 0 and text.find(_CLOSES_QUERY, opens, closes) < 0 else None


def _query_of_template(text: str, attached: list[str]) -> str:
    """Return the user's question in a template that gives the model passages and then the question. A question
    in marks counts only behind the last passage, as passages may contain such marks."""
    end = max((text.rfind(mark) + len(mark) for mark in _CLOSING if mark in text), default=0)
    query = _query(text, end)
    start = end if query is None else query
    attached.append(text[:start].strip())
    return text[start:].strip().removeprefix(_OPENS_QUERY).removesuffix(_CLOSES_QUERY).strip()


def _last(found: Iterator[re.Match[str]]) -> re.Match[str] | None:
    last = None
    for each in found:
        last = each
    return last
