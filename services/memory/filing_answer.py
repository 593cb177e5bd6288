"""The small model's answer to the filing prompt, parsed leniently: what cannot be understood is dropped."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import structlog
from pydantic import BaseModel, Field

from services.errors import BadModelOutput
from services.llm.structured_output import json_answer
from services.memory.items import item_text
from services.text.storable import storable

MOST_OPERATIONS = 8
LONGEST_TEXT = 300
"""Characters of a statement."""

OperationKind = Literal["add", "replace", "end", "remove", "leave_out"]

log = structlog.get_logger(__name__)


class Operation(BaseModel):
    """One operation, in the requested form."""

    op: str = Field(description="add, replace, end, remove or leave_out")
    id: str = Field("", description="short id of the memory that changes: m1")
    text: str = Field("", description="the statement, for add and replace")
    field: str = Field("", description="kind of statement, for add")
    date: str = Field("", description="of end: until when it held")
    message: str = Field("", description="short id of the message, for leave_out: u1")
    quote: str = Field("", description="words of the user that it rests on, copied letter by letter")


class Answer(BaseModel):
    """The whole answer."""

    operations: list[Operation]
    story: bool = Field(default=False, description="whether a game or story goes on after the last message")


class _Listed(BaseModel):
    operations: list[Any]
    story: Any = False


@dataclass(frozen=True)
class FilingOperation:
    """What is to be done, by the short ids of the prompt."""

    kind: OperationKind
    quote: str = ""
    text: str = ""
    memory: str = ""
    """Short id of a memory; empty for `add` and `leave_out`."""
    message: str = ""
    """Short id of a message, for `leave_out`."""
    field: str = ""
    date: str = ""


@dataclass(frozen=True)
class FilingAnswer:
    """What a model wants filed."""

    operations: tuple[FilingOperation, ...] = ()
    in_story: bool = False
    """Whether a game or story that was announced goes on."""


_WORDS: dict[str, tuple[str, ...]] = {
    "add": ("add", "insert", "create", "append", "new", "set", "store", "save", "remember", "memorize", "memorise",
            "note", "record", "添加", "新增", "增加", "记住", "记录"),
    "replace": ("replace", "update", "change", "modify", "edit", "correct", "fix", "supersede",
                "替换", "更新", "更正"),
    "end": ("end", "close", "expire", "finish", "结束", "到期"),
    "remove": ("remove", "delete", "forget", "drop", "erase", "retire", "删除", "忘掉"),
    "leave_out": ("leave_out", "leaveout", "exclude", "off_record", "不记"),
    "none": ("none", "noop", "no_op", "skip", "ignore", "nothing", "keep", "无"),
}  # fmt: skip
_OPERATIONS: dict[str, str] = {word: name for name, words in _WORDS.items() for word in words}
_NAMES: dict[str, tuple[str, ...]] = {
    "op": ("op", "operation", "action", "type", "kind"),
    "id": ("id", "memory_id", "memory", "target", "item", "ref", "replaces"),
    "text": ("text", "content", "value", "fact", "statement", "new", "sentence", "new_value", "memory_text"),
    "field": ("field", "key", "attribute", "category", "name"),
    "date": ("date", "until", "on", "end_date"),
    "message": ("message", "message_id", "said"),
    "quote": ("quote", "quotation", "words", "evidence", "source", "原话", "引用"),
}
_ID = re.compile(r"\W{0,4}(?:(?:(m|u)|id|memory|message)[ _#:-]{0,2})?(\d{1,4})\W{0,4}", re.IGNORECASE)
_FIELD = re.compile(r"\w[\w -]{0,39}")


def filing_of_answer(text: str, memories: Iterable[str], messages: Iterable[str]) -> FilingAnswer:
    """Return what an answer asks for.

    Names of operations in any case, synonyms, null fields and bare lists are accepted. What cannot be carried out
    (an unknown id, no text) is dropped, and so are operations beyond the eighth.

    Args:
        memories: the short ids of the memories that the model was shown.
        messages: those of the messages.

    Raises:
        BadModelOutput: it has no list of operations, or none of them is usable.
    """
    listed = json_answer(_Listed, text, items="operations")
    known = frozenset(memories), frozenset(messages)
    found: dict[FilingOperation, None] = {}
    reasons: list[str] = []
    for number, each in enumerate(listed.operations, 1):
        try:
            operation = _operation(each, *known)
        except BadModelOutput as error:
            reasons.append(f"operation {number} {error.message}")
        else:
            found |= {operation: None} if operation else {}
    if reasons:
        log.info("operations were dropped", reasons=reasons[:MOST_OPERATIONS], kept=len(found))
    if reasons and len(reasons) == len(listed.operations):
        raise BadModelOutput("; ".join(reasons[:MOST_OPERATIONS]))
    return FilingAnswer(tuple(found)[:MOST_OPERATIONS], listed.story is True)


def _operation(asked: Any, memories: frozenset[str], messages: frozenset[str]) -> FilingOperation | None:
    if not isinstance(asked, Mapping):
        raise BadModelOutput("is no object")
    given = _fields(asked)
    kind = _OPERATIONS.get(given["op"].casefold().replace(" ", "_").replace("-", "_"))
    if kind == "none":
        return None
    if kind is None:
        raise BadModelOutput("has no known name")
    memory = _short_id(given["id"], "m")
    text = " ".join(given["text"].split())
    quote = given["quote"]
    if kind == "leave_out":
        message = _short_id(given["message"] or given["id"], "u")
        if message not in messages:
            raise BadModelOutput("names no message")
        return FilingOperation("leave_out", quote, message=message)
    if kind == "add" and memory in memories and not given["field"]:
        kind = "replace"  # with an id it means that memory
    if kind != "add" and memory not in memories:
        raise BadModelOutput("names no memory")
    if kind in {"add", "replace"} and not text:
        raise BadModelOutput("has no text")
    if len(text) > LONGEST_TEXT:
        raise BadModelOutput(f"has a text of more than {LONGEST_TEXT} characters")
    if kind == "add":
        field = given["field"].strip().casefold().replace(" ", "_")
        return FilingOperation("add", quote, text, field=field if _FIELD.fullmatch(field) else "")
    if kind == "replace":
        return FilingOperation("replace", quote, text, memory=memory)
    if kind == "end":
        return FilingOperation("end", quote, memory=memory, date=" ".join(given["date"].split())[:40])
    return FilingOperation("remove", quote, memory=memory)


def _fields(asked: Mapping[str, Any]) -> dict[str, str]:
    """Return an operation's fields as texts, under the names that were asked for."""
    given = {str(key).strip().casefold(): value for key, value in asked.items() if value is not None}
    found = {}
    for name, others in _NAMES.items():
        value = next((given[each] for each in others if each in given), "")
        found[name] = storable(item_text(value)).strip()
    return found


def _short_id(given: str, letter: str) -> str:
    found = _ID.fullmatch(given)
    if found is None or (found[1] and found[1].casefold() != letter):
        return ""
    return f"{letter}{int(found[2])}"
