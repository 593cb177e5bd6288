"""Keep out of memory what a turn repeats of messages off the record. Pure.

Such a message stays in its conversation, so that the model reads it in every later turn and may repeat it, and the
user may ask about it there.
"""

from collections.abc import Sequence
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
    kept = {
        exchange.message_id: (exchange.message.strip(), _without_questions(exchange.message, said)),
        exchange.answer_id: (exchange.answer.strip(), sentences_without(exchange.answer, said)),
    }
    changed = [
        PlannedMessage(message_id=key, memory_text=left or None, off_record=True)
        for key, (whole, left) in kept.items()
        if left != whole
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


def _without_questions(message: str, said: str) -> str:
    words = informative_terms(said)
    kept = (
        each.text for each in sentences(message) if not each.asks or words.isdisjoint(informative_terms(each.text))
    )
    return "".join(kept).strip()
