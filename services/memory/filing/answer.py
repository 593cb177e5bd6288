"""The small model's answer about what to file: parsed leniently, with the faults of operations that cannot be
carried out."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as field_of
from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, Field

from services.llm.structured_output import json_answer
from services.memory.core.content import FIELD_LABELS
from services.memory.core.items import LIST_FIELDS, SINGLE_FIELDS, item_text
from services.memory.filing.story import NO_STORY, Story, StoryTold, story_of_answer
from services.memory.reading.mood import Mood
from services.text.language import Language
from services.text.storable import storable

MOST_OPERATIONS = 8
"""How many operations a model may return in one answer; after a full answer it is asked for the rest."""
_MOST_TAKEN = 16
"""How many operations of an answer are read; the model is asked again for further ones."""
LONGEST_TEXT = 300
"""Maximum length of a statement, in characters."""

OperationKind = Literal["add", "replace", "end", "forget", "leave_out"]

FIELDS = (
    *("name", "preferred_name", "home", "work", "studies", "birthday", "family", "people", "pets", "health"),
    *("allergies", "diet", "preferences", "languages", "possessions", "plans", "dates", "habits", "hobbies"),
    *("wishes", "events", "facts"),
)
"""Fields of core memory that a model may choose; events are written as memories instead."""

_KNOWN_FIELDS = frozenset([*FIELDS, *SINGLE_FIELDS, *LIST_FIELDS])

Fault = Literal[
    "object",
    "name",
    "id",
    "message",
    "text",
    "length",
    "field",
    "date",
    "quote",
    "others",
    "example",
    "script",
    "unsaid",
    "asked",
]
"""Kinds of faults in an operation."""
_FAULTS: dict[Language, dict[Fault, str]] = {
    "en": {
        "object": "is no object",
        "name": "has no known op",
        "id": "has an id of no listed memory",
        "message": "names no message of the user",
        "text": "has no text",
        "length": f"has a text of more than {LONGEST_TEXT} characters",
        "field": "has a field that is not listed",
        "date": "has a date that is not YYYY-MM-DD, YYYY-MM or YYYY",
        "quote": "has a quote that the user has not said; copy at least two words letter by letter",
        "others": "has a quote of words that are not the user's own",
        "example": "repeats the example",
        "script": "has a text in another script than the user's words",
        "unsaid": "has a text without a word of the messages",
        "asked": "rests on a question",
    },
    "zh": {
        "object": "不是对象",
        "name": "的 op 无法识别",
        "id": "的 id 不是所列的记忆",
        "message": "没有指明用户的哪条消息",
        "text": "没有 text",
        "length": f"的 text 超过{LONGEST_TEXT}个字符",
        "field": "的 field 不在所列之中",
        "date": "的 date 不是 YYYY-MM-DD、YYYY-MM 或 YYYY",
        "quote": "的 quote 不是用户的原话；至少照抄四个字",
        "others": "的 quote 不是用户自己的话",
        "example": "重复了示例",
        "script": "的 text 与用户的话不是同一种文字",
        "unsaid": "的 text 里没有消息中的任何词",
        "asked": "依据的是提问",
    },
}
EXAMPLES: dict[Language, str] = {"en": "has a dog called Bruno", "zh": "养了一只狗叫布鲁诺"}
"""The statement in the prompt's example, which some models copy."""
_NAMED: dict[Language, tuple[str, str]] = {
    "en": ("operation {number} {fault}", "; the others are kept, repeat only the corrected ones"),
    "zh": ("第{number}个操作{fault}", "；其余已收下，只需重写改正后的操作"),
}


class Operation(BaseModel):
    """One operation, in the requested form."""

    op: str = Field(description="add, replace, end, forget or leave_out")
    id: str = Field("", description="short id of the memory that changes: m1")
    text: str = Field("", description="the statement, for add and replace")
    field: str = Field("", description="one of the listed fields, for add")
    date: str = Field("", description="of end: the day until which it held, 2026-12-02")
    message: str = Field("", description="short id of the message, for leave_out: u1")
    quote: str = Field("", description="words of the user that it rests on, copied letter by letter")


class Reminder(BaseModel):
    """A promise of the assistant to come back to something, in the requested form."""

    text: str = Field(description="what about")
    when: str = Field(description="the user's words that say when, as they stand")
    quote: str = Field(description="words of the user that ask for it, copied letter by letter")


class Answer(BaseModel):
    """The model's whole answer, in the requested form."""

    operations: list[Operation]
    story: Story = Field(default_factory=Story, description="a game or story that the user has announced")
    mood: Mood = Field(default_factory=Mood, description="how the user feels, where their words say it")
    complaint: str = Field("", description="the user's words against the last answer, copied letter by letter")
    promises: list[Reminder] = Field(default_factory=list, description="what the user asks to be reminded of")


class _Listed(BaseModel):
    operations: list[Any]
    story: Any = False
    mood: Any = None
    complaint: Any = None
    promises: Any = None


@dataclass(frozen=True)
class FilingOperation:
    """A change of memory that the model wants; it names memories and messages by the short ids of the prompt."""

    kind: OperationKind
    quote: str = ""
    text: str = ""
    memory: str = ""
    """Short id of a memory; empty for `add` and `leave_out`."""
    message: str = ""
    """Short id of a message, for `leave_out`."""
    field: str = ""
    date: str = ""
    """Day, month or year of an `end` in ISO 8601; empty = the day of the message."""
    number: int = field_of(default=0, compare=False)
    """Its place in the answer, from 1."""


@dataclass(frozen=True)
class FilingAnswer:
    """A model's answer to a filing prompt."""

    operations: tuple[FilingOperation, ...] = ()
    story: StoryTold = NO_STORY
    """The game or story that was announced."""
    mood: Any = None
    """How the user feels, as the model wrote it."""
    complaint: Any = None
    """The user's words against an answer, as the model wrote them."""
    promises: Any = None
    """Reminders that the user asks for, as the model wrote them."""
    faults: tuple[tuple[int, Fault], ...] = ()
    """Faults of operations, by their places in the answer. An operation whose only fault is an unlisted field or a
    wrong date is kept without it."""
    is_full: bool = False
    """Whether it has as many operations as were asked for, so that there may be more to file."""


class _Unusable(Exception):
    """Raised for an operation that cannot be carried out."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault: Fault = fault


_WORDS: dict[str, tuple[str, ...]] = {
    "add": ("add", "insert", "create", "append", "new", "set", "store", "save", "remember", "memorize", "memorise",
            "note", "record", "添加", "新增", "增加", "记住", "记录"),
    "replace": ("replace", "update", "change", "modify", "edit", "correct", "fix", "supersede",
                "替换", "更新", "更正"),
    "end": ("end", "close", "expire", "finish", "结束", "到期"),
    "forget": ("forget", "remove", "delete", "drop", "erase", "retire", "删除", "忘掉"),
    "leave_out": ("leave_out", "leaveout", "exclude", "off_record", "不记"),
    "none": ("none", "noop", "no_op", "skip", "ignore", "nothing", "keep", "无"),
}  # fmt: skip
_OPERATIONS: dict[str, str] = {word: name for name, words in _WORDS.items() for word in words}
_KEYS: dict[str, tuple[str, ...]] = {
    "op": ("op", "operation", "action", "type", "kind"),
    "id": ("id", "memory_id", "memory", "target", "item", "ref", "replaces"),
    "text": ("text", "content", "value", "fact", "statement", "new", "sentence", "new_value", "memory_text"),
    "field": ("field", "key", "attribute", "category", "name"),
    "date": ("date", "until", "on", "end_date"),
    "message": ("message", "message_id", "said"),
    "quote": ("quote", "quotation", "words", "evidence", "source", "原话", "引用"),
}
_ID = re.compile(r"\W{0,4}(?:(?:(m|u)|id|memory|message)[ _#:-]{0,2})?(\d{1,4})\W{0,4}", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})(?:[-/.年](\d{1,2})(?:[-/.月](\d{1,2})日?|月)?|年)?", re.ASCII)
_LABELS = {label: name for labels in FIELD_LABELS.values() for name, label in labels.items()}


def filing_of_answer(text: str, memories: Iterable[str], messages: Iterable[str]) -> FilingAnswer:
    """Return the operations in an answer, and the faults of the others.

    Names of operations in any case, synonyms, null fields and bare lists are accepted.

    Args:
        memories: Short ids of the memories that the model was shown.
        messages: Short ids of the messages that it was shown.

    Raises:
        BadModelOutput: The answer has no list of operations.
    """
    listed = json_answer(_Listed, text, items="operations")
    known = frozenset(memories), frozenset(messages)
    found: dict[FilingOperation, None] = {}
    faults: list[tuple[int, Fault]] = []
    for number, each in enumerate(listed.operations[:_MOST_TAKEN], 1):
        try:
            operation = _operation(each, number, faults, *known)
        except _Unusable as error:
            faults.append((number, error.fault))
        else:
            found |= {operation: None} if operation else {}
    is_full = len(listed.operations) >= MOST_OPERATIONS
    story = story_of_answer(listed.story)
    told = (listed.mood, listed.complaint, listed.promises)
    return FilingAnswer(tuple(found), story, *told, tuple(faults), is_full)


def told_faults(faults: Iterable[tuple[int, Fault]], language: Language) -> str:
    """Return the message that tells a model what is wrong with operations of its answer, by their places."""
    one, rest = _NAMED[language]
    told = [one.format(number=number, fault=_FAULTS[language][fault]) for number, fault in sorted(faults)]
    return ("; " if language == "en" else "；").join(told[:MOST_OPERATIONS]) + rest


def shown_fields(language: Language) -> str:
    """Return the fields as the prompt in a language lists them."""
    return ("、" if language == "zh" else ", ").join(FIELD_LABELS[language].get(each, each) for each in FIELDS)


def listed_field(given: str) -> str | None:
    """Return the field that a name or a label stands for; None if it is not listed."""
    name = _LABELS.get(given.strip()) or given.strip().casefold().replace(" ", "_")
    return name if name in _KNOWN_FIELDS else None


def _operation(
    asked: Any, number: int, faults: list[tuple[int, Fault]], memories: frozenset[str], messages: frozenset[str]
) -> FilingOperation | None:
    """Return an operation; parts of it that are not listed are dropped and noted among the faults."""
    if not isinstance(asked, Mapping):
        raise _Unusable("object")
    given = _fields(asked)
    kind = _OPERATIONS.get(given["op"].casefold().replace(" ", "_").replace("-", "_"))
    if kind == "none":
        return None
    if kind is None:
        raise _Unusable("name")
    memory, quote, text = _short_id(given["id"], "m"), given["quote"], " ".join(given["text"].split())
    if kind == "leave_out":
        message = _short_id(given["message"] or given["id"], "u")
        if message not in messages:
            raise _Unusable("message")
        return FilingOperation("leave_out", quote, message=message, number=number)
    if kind == "add" and memory in memories and not given["field"]:
        kind = "replace"  # with an id it means that memory
    if kind != "add" and memory not in memories:
        raise _Unusable("id")
    if kind in {"add", "replace"} and not text:
        raise _Unusable("text")
    if len(text) > LONGEST_TEXT:
        raise _Unusable("length")
    if kind == "replace":
        return FilingOperation("replace", quote, text, memory=memory, number=number)
    if kind == "forget":
        return FilingOperation("forget", quote, memory=memory, number=number)
    if kind == "end":
        return FilingOperation("end", quote, memory=memory, date=_listed_day(given, number, faults), number=number)
    return FilingOperation("add", quote, text, field=_listed_name(given, number, faults), number=number)


def _listed_day(given: Mapping[str, str], number: int, faults: list[tuple[int, Fault]]) -> str:
    day = _day(given["date"])
    if given["date"] and not day:
        faults.append((number, "date"))
    return day


def _listed_name(given: Mapping[str, str], number: int, faults: list[tuple[int, Fault]]) -> str:
    name = listed_field(given["field"]) if given["field"] else ""
    if name is None:
        faults.append((number, "field"))
    return name or "facts"


def _fields(asked: Mapping[str, Any]) -> dict[str, str]:
    """Return an operation's fields as texts, under the names that were asked for."""
    given = {str(key).strip().casefold(): value for key, value in asked.items() if value is not None}
    found = {}
    for name, others in _KEYS.items():
        value = next((given[each] for each in others if each in given), "")
        found[name] = storable(item_text(value)).strip()
    return found


def _short_id(given: str, letter: str) -> str:
    found = _ID.fullmatch(given)
    if found is None or (found[1] and found[1].casefold() != letter):
        return ""
    return f"{letter}{int(found[2])}"


def _day(given: str) -> str:
    """Return a day, month or year in the form of ISO 8601; empty = the text is none of these."""
    found = _DATE.fullmatch("".join(given.split()))
    if found is None:
        return ""
    parts = [int(each) for each in found.groups() if each]
    try:
        date(*[*parts, 1, 1][:3])
    except ValueError:
        return ""
    return "-".join((f"{parts[0]:04}", *(f"{each:02}" for each in parts[1:])))
