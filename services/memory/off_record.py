"""Keep out of memory what a turn repeats of what is not to be remembered. Pure.

A message off the record stays in its conversation, so that the model reads it in every later turn and may repeat it.
Who asks for something to be forgotten says what it is.
"""

from collections.abc import Mapping, Sequence

from uuid_utils.compat import uuid7

from services.memory.change_wording import summary_of, this_message
from services.memory.remainders import sentences_without
from services.text.language import Language
from services.text.sentences import sentences
from services.text.tokenizer import informative_terms
from state.memory import MemoryChange, PlannedChange, PlannedMessage
from state.prompt import HistoryMessage


def repetition_off_record(
    history: Sequence[HistoryMessage], message: tuple[str, str], answer: tuple[str, str], language: Language
) -> list[PlannedChange]:
    """Return the change that leaves out what a turn shares with such a message; often none.

    Of the user's `message`, given with its id like the `answer`, only questions go: what the user states anew may be
    remembered.
    """
    said = [each["content"] for each in history if each["role"] == "user" and each.get("off_record")]
    if not said:
        return []
    words = informative_terms(" ".join(said))
    own = "".join(
        each.text
        for each in sentences(message[1])
        if not each.asks or words.isdisjoint(informative_terms(each.text))
    )
    return _left_out(
        dict([message, answer]),
        {message[0]: own.strip(), answer[0]: sentences_without(answer[1], " ".join(said))},
        language,
        off_record=True,
    )


def repetition_of_forgotten(
    removed: Sequence[str], texts: Mapping[str, str], language: Language
) -> list[PlannedChange]:
    """Return the change that leaves out what a turn's messages, by their ids, repeat of what it had forgotten."""
    left = {key: sentences_without(text, " ".join(removed)) for key, text in texts.items()} if removed else {}
    return _left_out(texts, left, language, off_record=False)


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
