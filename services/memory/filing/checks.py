"""Decides for each operation that a model wants filed: it is done, asked about, or dropped.

Only exact criteria count: whose words the quote is, whether the operation shares a word with the memory that it
changes, and whether figures, addresses, names or negations stand only in text of others. The wording is up to the
model, so translations, resolved names and dates pass.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from services.memory.filing.answer import EXAMPLES, Fault, FilingOperation
from services.memory.model import Memory
from services.memory.reading.foreign_words import own_text
from services.memory.reading.quotes import Quoted, folded, is_quoted, quoted
from services.memory.reading.words import Words, stated
from services.text.language import sentences
from services.text.tokenizer import informative_terms

Verdict = Literal["do", "ask", "drop"]

_MOST_FOREIGN = 1 / 3
"""A statement is foreign if this share of its words or more stand only in foreign text."""
_EXACT = re.compile(
    r"[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}"  # e-mail addresses
    r"|(?:https?://|www\.)[^\s<>\"']{1,200}|[\w-]{1,64}\.(?:com|org|net|io|example|cn|de|eu|uk)\b"
    r"|\b[a-z]{2}\d{2}[ \d\w]{4,40}|\d[\d ,./-]{1,30}\d|\d{3,20}",
    re.IGNORECASE,
)
"""Numbers of three digits or more, account numbers and addresses, which must be quoted exactly."""
_FEWEST_DIGITS = 3
_QUESTION_MARKS = ("?", "？")
_HAN = re.compile(r"[\u3400-\u9fff]")
_NAME = re.compile(r"\b[A-Z][\w'’-]{1,40}")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|without|stopped|former\w*|cannot)\b|n['’]t\b|[不没無无未勿别]",
    re.IGNORECASE,
)


def denies(text: str) -> bool:
    """Return whether a text contains a negation."""
    return _NEGATION.search(text) is not None


@dataclass(frozen=True)
class Evidence:
    """The words of a batch, by who said them."""

    messages: Mapping[str, str]
    """The user's new messages by their short ids, as memory keeps them."""
    said: Sequence[str]
    """The user's own words, in these messages and before."""
    answers: Sequence[str] = ()
    """Words of the assistant."""
    known: Sequence[str] = ()
    """Texts of the user's memories."""
    foreign: Sequence[str] = ()
    """Words of others: in messages, in answers that repeat them, and in memories."""
    memories: Mapping[str, Memory] = field(default_factory=dict)
    """The memories that the model was shown, by their short ids."""
    is_strict: bool = True
    """Whether a statement must share a word with what was said, because the model is not known to file well."""
    least_share: float = 0.0
    """Share of a statement's words, 0 to 1, that must have been said when the check is strict."""
    beside: Mapping[str, str] = field(default_factory=dict)
    """Texts around each message, by its short id; a statement may use their words too."""

    def prepare(self) -> None:
        """Prepare the texts for checking."""
        self.own_text, self.foreign_terms, self.foreign_text, self.told  # noqa: B018
        for text in self.messages.values():
            quoted("…", text)

    @cached_property
    def own_text(self) -> str:
        """Return the user's words and what memory knows, as one text in folded form."""
        return folded("\n".join([*self.said, *self.known]))

    @cached_property
    def said_terms(self) -> frozenset[str]:
        """Return the informative words of what the user has said."""
        return _terms(self.said)

    @cached_property
    def told(self) -> Words:
        """Return the words of everything said or remembered, by anybody; for Chinese, the characters."""
        return Words.of("\n".join([*self.said, *self.answers, *self.known, *self.foreign]))

    @cached_property
    def scripts(self) -> frozenset[str]:
        """Return the scripts in which the user writes."""
        return scripts_of("\n".join(self.said))

    @cached_property
    def foreign_terms(self) -> frozenset[str]:
        """Return the informative words of what only others wrote."""
        return _terms(self.foreign) - self.said_terms - _terms(self.known)

    @cached_property
    def foreign_text(self) -> str:
        """Return what others wrote, folded."""
        return folded("\n".join(self.foreign))


@dataclass(frozen=True)
class Checked:
    """An operation with the verdict on it."""

    operation: FilingOperation
    verdict: Verdict
    source: str = ""
    """Short id of the user's message on which it rests; empty if there is none."""
    fault: Fault | None = None
    """The fault of the operation, if the model can correct it."""
    is_doubtful: bool = False
    """Whether the model must confirm that the user said it, because it is not known to file well."""


def checked(operations: Sequence[FilingOperation], evidence: Evidence) -> list[Checked]:
    """Return the verdict on each operation. If several change one memory, only one is carried out."""
    found: list[Checked] = []
    changed: set[str] = set()
    for each in (losing_nothing(one, evidence) for one in operations):
        one = Checked(each, "drop") if each.memory and each.memory in changed else check(each, evidence)
        if one.verdict == "do" and each.memory:
            changed.add(each.memory)
        found.append(one)
    return found


def _source(operation: FilingOperation, evidence: Evidence) -> tuple[str, Quoted | None]:
    """Return the first message that contains the quote of an operation, and the quotation found there."""
    memory = evidence.memories.get(operation.memory)
    statement = operation.text or (memory.text if memory else "")
    doubtful: tuple[str, Quoted | None] = ("", None)
    for key, text in evidence.messages.items():
        found = quoted(operation.quote, text, statement)
        if found is not None and found.is_certain:
            return key, found
        if found is not None and not doubtful[0]:
            doubtful = key, found
    return doubtful


def losing_nothing(operation: FilingOperation, evidence: Evidence) -> FilingOperation:
    """Return an operation in the form in which it may be done: a statement about something other than its memory
    does not replace the memory.

    Such a statement is added instead if it is in the memory's script and has a word that the user said. Any other
    operation stays as it is, and so does one that stands beside text of others: it waits for the user.
    """
    memory = evidence.memories.get(operation.memory)
    if operation.kind != "replace" or memory is None:
        return operation
    if _is_about(memory, _terms([operation.text, operation.quote])):
        return operation
    said = informative_terms(operation.quote) | evidence.said_terms
    rests = not informative_terms(operation.text).isdisjoint(said)
    if _is_chinese(memory.text) != _is_chinese(operation.text) or any(evidence.foreign) or not rests:
        return operation
    return replace(operation, kind="add", memory="", field="facts")


def check(operation: FilingOperation, evidence: Evidence) -> Checked:
    """Return the verdict on an operation.

    A change whose quote is in words of others waits for the user, if it says something; a change whose quote
    stands nowhere is dropped. Nothing is forgotten here: if a word of the memory was said, the user is asked.
    Pinned memories stay.
    """
    memory = evidence.memories.get(operation.memory)
    if memory is not None and memory.pinned:
        return Checked(operation, "drop")
    if operation.kind == "leave_out":
        rests = any(is_quoted(operation.quote, each) for each in (*evidence.messages.values(), *evidence.said))
        return Checked(operation, "do", operation.message) if rests else Checked(operation, "drop", fault="quote")
    source, found = _source(operation, evidence)
    if found is None:
        return _unfounded(operation, evidence)
    operation = replace(operation, quote=found.text)
    if fault := _fault_of_text(operation, memory, source, evidence):
        return Checked(operation, "drop", source, fault)
    is_doubtful = evidence.is_strict and _is_doubtful(operation, memory, source, evidence)
    verdict = _verdict(operation, memory, found, source, evidence)
    return Checked(operation, verdict, source, is_doubtful=is_doubtful)


def _verdict(
    operation: FilingOperation, memory: Memory | None, found: Quoted, source: str, evidence: Evidence
) -> Verdict:
    """Return the verdict on an operation that rests on the user's own words."""
    if operation.kind == "forget":
        return "ask" if memory is not None and _was_told_of(memory, evidence) else "drop"
    if operation.kind == "end" and memory is not None and not _is_about(memory, evidence.said_terms):
        return "drop"
    return "ask" if _waits(operation, found, source, evidence) else "do"


def _unfounded(operation: FilingOperation, evidence: Evidence) -> Checked:
    """Return the verdict on an operation whose quote is not in the user's words. Others may have said it."""
    if operation.text and stands_in(operation.quote, [*evidence.answers, *evidence.foreign]):
        return Checked(operation, "ask", fault="others")
    return Checked(operation, "drop", fault="quote")


def _is_asked(text: str, quote: str, message: str) -> bool:
    """Return whether a statement rests on questions, in which the user states nothing."""
    _, _, after = message.partition(quote)
    mark = after.lstrip()[:1]
    split = sentences(f"{quote.rstrip()}{mark if mark in _QUESTION_MARKS else ''}")
    asked, told = (Words.of("".join(each.text for each in split if each.asks is asks)) for asks in (True, False))
    return any(each.asks for each in split) and Words.of(text).share_in(asked) >= Words.of(text).share_in(told)


def _is_doubtful(operation: FilingOperation, memory: Memory | None, source: str, evidence: Evidence) -> bool:
    """Return whether a statement rests on a question, or replaces a memory by something nobody has spoken of."""
    text = operation.text
    if not text or _is_asked(text, operation.quote, evidence.messages[source]):
        return bool(text)
    new = Words.of(text).without(Words.of(memory.text)) if memory else Words.of("")
    new = replace(new, terms=frozenset(each for each in new.terms if not any(map(str.isdigit, each))))
    return bool(new.count) and not new.share_in(_near(operation, None, source, evidence))


def _near(operation: FilingOperation, memory: Memory | None, source: str, evidence: Evidence) -> Words:
    """Return the words on which an operation may rest: of its message, of what was said around it, and of its
    memory."""
    around = [evidence.messages[source], evidence.beside.get(source, ""), memory.text if memory else ""]
    return Words.of("\n".join([operation.quote, *around]))


def _fault_of_text(
    operation: FilingOperation, memory: Memory | None, source: str, evidence: Evidence
) -> Fault | None:
    """Return the fault which shows that a model has not understood the words on which its statement rests; None if
    there is none."""
    text, words = operation.text, informative_terms(operation.text)
    if any(folded(text) == folded(each) for each in EXAMPLES.values()) and (
        2 * len(words & evidence.said_terms) <= len(words)
    ):
        return "example"
    written = evidence.scripts | (scripts_of(memory.text) if memory else frozenset())
    if text and scripts_of(text).isdisjoint(written) and scripts_of(text) and written:
        return "script"
    if evidence.least_share and text and _is_asked(text, operation.quote, evidence.messages[source]):
        return "asked"
    said, near = Words.of(text), _near(operation, memory, source, evidence)
    share = max(said.share_in(evidence.told), said.share_in(near))
    is_unsaid = evidence.is_strict and words and (not said.share_in(near) or share < evidence.least_share)
    # What others wrote the user is asked about.
    return "unsaid" if is_unsaid and not is_foreign(text, evidence.messages[source], evidence) else None


def _waits(operation: FilingOperation, found: Quoted, source: str, evidence: Evidence) -> bool:
    """Return whether the user is asked before an operation on their own words is carried out."""
    memory = evidence.memories.get(operation.memory)
    waits = not found.is_certain
    if operation.kind == "replace" and memory is not None:
        waits = waits or not _is_about(memory, _terms([operation.text, operation.quote]))
    if any(evidence.foreign):
        # Foreign text may have named the memory, or said what is to be remembered.
        waits = waits or (memory is not None and informative_terms(memory.text).isdisjoint(evidence.said_terms))
        waits = waits or is_foreign(operation.text, own_text(evidence.messages[source]), evidence)
    return waits


def _was_told_of(memory: Memory, evidence: Evidence) -> bool:
    """Return whether a word of a memory was said. A model that files well may know the memory by other words (工资
    for 月薪)."""
    return not evidence.is_strict or _is_about(memory, _terms([*evidence.said, *evidence.answers]))


def _is_chinese(text: str) -> bool:
    return _HAN.search(text) is not None


def _is_about(memory: Memory, told: frozenset[str]) -> bool:
    """Return whether a memory shares a word with what was told."""
    return not informative_terms(stated(memory)).isdisjoint(told)


def is_foreign(text: str, said: str, evidence: Evidence) -> bool:
    """Return whether a statement says something that stands only in text of others.

    Args:
        said: the user's own words that it rests on.
        evidence: what else was said.
    """
    own, foreign = evidence.own_text, evidence.foreign_text
    figures = _EXACT.findall(text)
    exact = [each for each in figures if sum(map(str.isdigit, each)) >= _FEWEST_DIGITS or not each[0].isdigit()]
    if any(folded(each) in foreign and folded(each) not in own for each in exact):
        return True
    alien = informative_terms(text) & evidence.foreign_terms
    if any(_is_foreign_name(each, own, evidence.foreign) for each in _NAME.finditer(text)):
        return True
    if _NEGATION.search(text) and not _NEGATION.search(said) and _NEGATION.search(" ".join(evidence.foreign)):
        return True
    return len(alien) >= _MOST_FOREIGN * max(len(informative_terms(text)), 1)


def _is_foreign_name(name: re.Match[str], own: str, foreign: Sequence[str]) -> bool:
    """Return whether a capitalised word stands only in text of others. The first word of a text is capitalised
    anyway."""
    if folded(name[0]) in own:
        return False
    before = r"(?<=[\w,;:] )" if name.start() == 0 else r"\b"
    return any(re.search(rf"{before}{re.escape(name[0])}\b", text) for text in foreign)


def stands_in(quote: str, texts: Sequence[str]) -> bool:
    """Return whether a quote stands in any of some texts, whoever wrote it."""
    sought = folded(quote)
    return bool(informative_terms(sought)) and any(sought in folded(text) for text in texts)


def scripts_of(text: str) -> frozenset[str]:
    """Return the scripts of a text's letters, as Unicode names them: `LATIN`, `CJK`."""
    return frozenset(unicodedata.name(each, "").partition(" ")[0] for each in set(text) if each.isalpha())


def _terms(texts: Sequence[str]) -> frozenset[str]:
    return frozenset(term for text in texts for term in informative_terms(text))
