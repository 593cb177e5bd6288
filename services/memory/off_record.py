"""Keep out of memory what a turn repeats of what is not to be remembered. Pure.

A message off the record stays in its conversation, so that the model reads it in every later turn and may repeat
it, and the user may ask about it there. Who asks for something to be forgotten says what it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.memory.plans import new_plan, summary_of, this_message
from services.memory.remainders import sentences_without
from services.text.language import Language, sentences
from services.text.tokenizer import informative_terms
from state.memory import PlannedChange, PlannedMessage
from state.prompt import HistoryMessage


@dataclass(frozen=True)
class Exchange:
    """A message and its answer, with the ids under which they are stored."""

    message_id: str
    message: str
    answer_id: str
    answer: str

    @property
    def texts(self) -> dict[str, str]:
        """Both by their ids."""
        return {self.message_id: self.message, self.answer_id: self.answer}


def repetition_off_record(
    history: Sequence[HistoryMessage], exchange: Exchange, language: Language
) -> list[PlannedChange]:
    """Return the change that leaves out what an exchange shares with such messages; often none.

    Of the answer every sentence goes that shares an informative word, of the message only questions: what the user
    states again may be remembered.
    """
    said = [each["content"] for each in history if each["role"] == "user" and each.get("off_record")]
    if not said:
        return []
    left = {
        exchange.message_id: _without_questions(exchange.message, " ".join(said)),
        exchange.answer_id: sentences_without(exchange.answer, " ".join(said)),
    }
    return _left_out(exchange.texts, left, language, off_record=True)


def repetition_of_forgotten(removed: Sequence[str], exchange: Exchange, language: Language) -> list[PlannedChange]:
    """Return the change that leaves out what an exchange repeats of what it had forgotten; often none."""
    if not removed:
        return []
    left = {key: sentences_without(text, " ".join(removed)) for key, text in exchange.texts.items()}
    return _left_out(exchange.texts, left, language, off_record=False)


def _without_questions(message: str, said: str) -> str:
    words = informative_terms(said)
    kept = (
        each.text for each in sentences(message) if not each.asks or words.isdisjoint(informative_terms(each.text))
    )
    return "".join(kept).strip()


def _left_out(
    texts: Mapping[str, str], left: Mapping[str, str], language: Language, *, off_record: bool
) -> list[PlannedChange]:
    messages = [
        PlannedMessage(message_id=key, memory_text=kept or None, off_record=off_record)
        for key, kept in left.items()
        if kept != texts[key].strip()
    ]
    if not messages:
        return []
    this = this_message(language)
    plan = new_plan("do_not_remember", summary_of("do_not_remember", [this], language), [this])
    plan["messages"] = messages
    return [plan]
