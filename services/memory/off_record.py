"""Keep out of memory what an answer repeats of messages off the record. Pure.

Such a message stays in its conversation, so that the model reads it in every later turn and may repeat it.
"""

from collections.abc import Sequence

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
    left = sentences_without(answer, " ".join(said)) if said else answer.strip()
    if left == answer.strip():
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
            messages=[PlannedMessage(message_id=answer_id, memory_text=left or None, off_record=True)],
            episodes=[],
            items=[],
            written=[],
            own="keep",
            own_text=None,
            removed="",
            reaches_shared=False,
        )
    ]
