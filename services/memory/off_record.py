"""Keep out of memory what a turn repeats of what is not to be remembered. Pure.

A message off the record stays in its conversation, so that the model reads it in every later turn and may repeat it.
Who asks for something to be forgotten says what it is.
"""

from collections.abc import Mapping, Sequence

from uuid_utils.compat import uuid7

from services.memory.change_wording import summary_of, this_message
from services.memory.remainders import sentences_without
from services.text.language import Language
from state.memory import MemoryChange, PlannedChange, PlannedMessage
from state.prompt import HistoryMessage


def repetition_off_record(
    history: Sequence[HistoryMessage], answer: str, answer_id: str, language: Language
) -> list[PlannedChange]:
    """Return the change that leaves out what an answer shares with such a message; often none."""
    said = [each["content"] for each in history if each["role"] == "user" and each.get("off_record")]
    return _left_out({answer_id: answer}, said, language, off_record=True)


def repetition_of_forgotten(
    removed: Sequence[str], texts: Mapping[str, str], language: Language
) -> list[PlannedChange]:
    """Return the change that leaves out what a turn's messages, by their ids, repeat of what it had forgotten."""
    return _left_out(texts, removed, language, off_record=False)


def _left_out(
    texts: Mapping[str, str], said: Sequence[str], language: Language, *, off_record: bool
) -> list[PlannedChange]:
    left = {key: sentences_without(text, " ".join(said)) for key, text in texts.items()} if said else {}
    messages = [
        PlannedMessage(message_id=key, memory_text=kept or None, off_record=off_record)
        for key, kept in left.items()
        if kept != texts[key].strip()
    ]
    if not messages:
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
            messages=messages,
            episodes=[],
            items=[],
            written=[],
            own="keep",
            own_text=None,
            removed="",
            reaches_shared=False,
        )
    ]
