"""Read a prompt for the built-in offline model: the question, what is remembered, what was said before."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from services.text.language import sentences

_CONTEXT = re.compile(r"<context>\n?(.*?)</context>\s*", re.DOTALL)
"""The service's addition to the user's message, if all messages must be the user's or the model's."""
_DATA = re.compile(r"<(memory|documents)>\n?(.*?)</\1>", re.DOTALL)
_ID = re.compile(r" ?[（(][0-9a-f]{8}-[0-9a-f-]{27}[)）]")
"""Of a memory that may have been meant: a model can name it, a reader cannot."""
_CHANGES = re.compile(r"<memory_changes>\n?(.*?)</memory_changes>", re.DOTALL)
_DATE = r"\[\d{4}-\d\d-\d\d(?: \d\d:\d\d)?\]"
_RECALLED = re.compile(rf"^- {_DATE} (?:[^:：\n]{{1,40}}: )?")
"""Time and speaker precede what was said in another conversation."""
_OWN_ANSWER = re.compile(rf"^(?:- {_DATE}| ) (?:You|你): .*$", re.MULTILINE)
"""What the expert said, among what is recalled."""
_DAY = re.compile(
    r"^(?:- \[(?:[A-Z][a-z]+day, [\d-]+|\d+年\d+月\d+日星期.)\] |  (?=\d\d:\d\d ))"
    r"(?:\d\d:\d\d (?!(?:You|你): )[^:：\n]{1,40}: )?(?!\d\d:\d\d )(.+)$",
    re.MULTILINE,
)
"""The record of a day that the question refers to; if it is verbatim, the user's part."""
_OWN_THEN = re.compile(r"^(?:- \[.*?\] |  )\d\d:\d\d (?:You|你): .*$", re.MULTILINE)
_ABOUT_DAYS = re.compile(r"^(?:The user refers to|用户提到的是).*$", re.MULTILINE)
"""The question precedes the records of days; it answers nothing."""


@dataclass(frozen=True)
class OfflinePrompt:
    """The parts of a prompt that an answer can quote."""

    question: str
    facts: Sequence[str]
    """Lines on the user from core memory, such as `name: Ada`."""
    recalled: Sequence[str]
    """What the user said in other conversations."""
    said: Sequence[str]
    """What the user said in this one, before the question."""
    days: Sequence[str]
    """Records of the days that the question asks about."""
    changes: Sequence[str]
    """Changes of memory that the turn has made already."""
    results: Sequence[str]
    """Results of tools since the question."""
    sentences: Sequence[str]
    """All of these but days and results, and the documents, sentence by sentence."""


def read_prompt(messages: Sequence[BaseMessage]) -> OfflinePrompt:
    """Read a prompt by its structure: roles, tags and the marks of lines."""
    last = max((i for i, message in enumerate(messages) if isinstance(message, HumanMessage)), default=0)
    asked = messages[last].text if messages and isinstance(messages[last], HumanMessage) else ""
    first = 1 if messages and isinstance(messages[0], SystemMessage) else 0
    systems = [message.text for message in messages if isinstance(message, SystemMessage)]
    systems += _CONTEXT.findall(asked)
    memory = [block for text in systems for tag, block in _DATA.findall(text) if tag == "memory"]
    # The first system message holds the expert's instructions, and in one form of the messages memory as well.
    notes = [_quotable(text, tagged_only=number < first) for number, text in enumerate(systems)]
    said = [message.text for message in messages[first:last] if isinstance(message, HumanMessage)]
    context = [
        _ABOUT_DAYS.sub("", _DAY.sub("", _OWN_THEN.sub("", _OWN_ANSWER.sub("", text)))) for text in [*notes, *said]
    ]
    return OfflinePrompt(
        question=_CONTEXT.sub("", asked).strip(),
        facts=[fact for block in memory for fact in _facts(block)],
        recalled=[_RECALLED.sub("", line) for block in memory for line in _recalled_lines(block)],
        said=said,
        days=[day for text in systems for day in _DAY.findall(text)],
        changes=[
            _ID.sub("", line)
            for text in systems
            for block in _CHANGES.findall(text)
            for line in block.splitlines()
            if line
        ],
        results=[message.text for message in _since_the_question(messages) if isinstance(message, ToolMessage)],
        sentences=list(dict.fromkeys(sentence for text in context for sentence in _sentences(text))),
    )


def _quotable(text: str, *, tagged_only: bool) -> str:
    blocks = [block for _, block in _DATA.findall(text)]
    if blocks or tagged_only:
        return "\n".join(blocks)
    # The note about memory changes is no answer to the question.
    return "\n\n".join(part for part in text.split("\n\n") if not _CHANGES.search(part))


def _facts(block: str) -> Iterator[str]:
    """Return the items below the headings of a block; topics and recalled items have none."""
    below_heading = False
    for line in block.splitlines():
        if line.startswith("- "):
            if below_heading and not _RECALLED.match(line):
                yield line.removeprefix("- ").strip()
        elif line.strip():
            below_heading = line.rstrip().endswith((":", "："))


def _recalled_lines(block: str) -> Iterator[str]:
    return (line for line in _OWN_ANSWER.sub("", block).splitlines() if _RECALLED.match(line))


def _sentences(text: str) -> Iterator[str]:
    for sentence in sentences(text):
        if stripped := _RECALLED.sub("", sentence.text.strip()).removeprefix("- "):
            yield stripped


def _since_the_question(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return what has come since the question, and since the model said or called something."""
    first = max((i for i, m in enumerate(messages) if isinstance(m, HumanMessage | AIMessage)), default=-1)
    return messages[first + 1 :]
