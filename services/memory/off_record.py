"""Keep out of memory what an exchange repeats of what is not to be remembered. Pure.

A message off the record stays in its conversation, so that the model reads it in every later turn and may repeat
it. Who asks for something to be forgotten says what it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uuid_utils.compat import uuid7

from services.memory.change_wording import summary_of, this_message
from services.memory.remainders import sentences_without
from services.text.language import Language
from services.text.sentences import sentences
from services.text.tokenizer import informative_terms
from state.memory import MemoryChange, PlannedChange, PlannedMessage
from state.prompt import HistoryMessage


@dataclass(frozen=True)
class Exchange:
    """A message and its answer, with the ids under which they are stored."""

    message_id: str
    message: str
    answer_id: str
    answer: str


def repetition_off_record(
    history: Sequence[HistoryMessage], exchange: Exchange, language: Language
) -> list[PlannedChange]:
    """Return the change that leaves out what an exchange shares with such a message; often none.

    Of the answer every sentence goes that shares an informative word, of the message only questions: what the user
    states again may be remembered.
    """
    said = " ".join(each["content"] for each in history if each["role"] == "user" and each.get("off_record"))
    if not said:
        return []
    left = {
        exchange.message_id: _without_questions(exchange.message, said),
        exchange.answer_id: sentences_without(exchange.answer, said),
    }
    return _left_out(exchange, left, language, off_record=True)


def repetition_of_forgotten(removed: Sequence[str], exchange: Exchange, language: Language) -> list[PlannedChange]:
    """Return the change that leaves out what an exchange repeats of what it had forgotten; often none."""
    if not removed:
        return []
    said = " ".join(removed)
    left = {
        exchange.message_id: sentences_without(exchange.message, said),
        exchange.answer_id: sentences_without(exchange.answer, said),
    }
    return _left_out(exchange, left, language, off_record=False)


def _without_questions(message: str, said: str) -> str:
    words = informative_terms(said)
    return "".join(
        each.text for each in sentences(message) if not each.asks or words.isdisjoint(informative_terms(each.text))
    ).strip()


def _left_out(
    exchange: Exchange, left: Mapping[str, str], language: Language, *, off_record: bool
) -> list[PlannedChange]:
    whole = {exchange.message_id: exchange.message, exchange.answer_id: exchange.answer}
    changed = [
        PlannedMessage(message_id=key, memory_text=kept or None, off_record=off_record)
        for key, kept in left.items()
        if kept != whole[key].strip()
    ]
    if not changed:
        return []
    this = this_message(language)
    return [
        PlannedChange(
            change=MemoryChange(
                kind="do_not_remember",
                summary=summary_of("do_not_remember", [this], language),
                operation_id=str(uuid7()),
                items=[this],
            ),
            target="",
            messages=changed,
            episodes=[],
            items=[],
            written=[],
            own="keep",
            own_text=None,
            removed="",
            reaches_shared=False,
        )
    ]
