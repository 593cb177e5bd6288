"""What a later turn of a conversation repeats of what was said off the record there. Pure.

Such a message stays in its conversation, so the model reads it in every later turn and may repeat it. What repeats
it is shown in the conversation as well, and remembered nowhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from uuid_utils.compat import uuid7

from services.memory.commands.change_wording import summary_of, this_message
from services.memory.commands.pieces import content_of
from services.memory.commands.recogniser import recognise
from services.platform.threads import beside_the_loop
from services.text.concepts import concepts
from services.text.mentions import AMOUNTS, Subject, refers_back, statements_of, worth_keeping
from state.conversation import ConversationState
from state.memory import MemoryChange, PlannedChange, PlannedMessage
from state.prompt import HistoryMessage

_LONG = 1_000
"""Number of characters of an exchange beyond which a thread compares it."""


@dataclass(frozen=True)
class Matter:
    """What a message off the record is about."""

    subject: Subject
    concepts: frozenset[str]

    def is_repeated_in(self, statement: str, *, loosely: bool) -> bool:
        """Whether a statement gives it away.

        A question, which states nothing, gives it away by one of its words; `loosely`, anything does that speaks
        of one of the same things.
        """
        if self.subject.touches(statement):
            return True
        if not loosely and not content_of(statement).asks:
            return False
        has_word = self.subject.shares_with(statement)
        return has_word or (loosely and not self.concepts.isdisjoint(concepts(statement)))


def matters_off_record(history: Sequence[HistoryMessage]) -> list[Matter]:
    """What the messages of a conversation that are off the record are about.

    A message that only repeated such a matter asks for nothing itself, and is left out.
    """
    found = []
    for message in history:
        if message["role"] != "user" or not message.get("off_record"):
            continue
        recognised = recognise(message["content"])
        commands = [each for each in recognised.commands if each.kind in {"do_not_remember", "forget"}]
        if commands:
            said = " ".join([recognised.rest, *(f"{each.target} {each.about}" for each in commands)])
            found.append(Matter(Subject.of(said), frozenset(concepts(said)) - AMOUNTS))
    return [each for each in found if each.subject.terms]


async def repetition_off_record(
    state: ConversationState, answer: str, *, message_id: str, answer_id: str
) -> list[PlannedChange]:
    """The change that keeps what a turn repeats out of memory; none where it repeats nothing.

    Of the message the statements that give a matter away are left out; of the answer also those that speak of one
    of the same things. The answer to a message of which nothing is left goes with it.
    """
    plans = state.get("memory_plan", [])
    if any(plan["own"] != "keep" and plan["change"]["operation_id"] for plan in plans):
        return []  # the turn is left out already
    matters = matters_off_record(state.get("history", []))
    if not matters:
        return []
    message = state["message"]
    work = partial(_left_of, message, answer, matters)
    left = await beside_the_loop(work, characters=len(message) + len(answer), most=_LONG)
    if left is None:
        return []
    this = this_message(state["prompt_language"])
    change = MemoryChange(
        kind="do_not_remember",
        summary=summary_of("do_not_remember", [this], state["prompt_language"]),
        operation_id=str(uuid7()),
        items=[this],
    )
    texts = {message_id: left.message, answer_id: left.answer}
    return [
        PlannedChange(
            change=change,
            target="",
            messages=[PlannedMessage(message_id=key, memory_text=text) for key, text in texts.items()],
            episodes=[],
            items=[],
            written=[],
            own="off the record",
            own_text=None,
            gives_away="",
            reaches_shared=False,
        )
    ]


@dataclass(frozen=True)
class _Left:
    message: str | None
    answer: str | None


def _left_of(message: str, answer: str, matters: Sequence[Matter]) -> _Left | None:
    """What memory keeps of an exchange; None where it repeats nothing."""
    said = _without(message, matters, loosely=False)
    told = _without(answer, matters, loosely=True)
    if said is None and told is None:
        return None
    kept = message if said is None else said or None
    return _Left(kept, (answer if told is None else told or None) if kept else None)


def _without(text: str, matters: Sequence[Matter], *, loosely: bool) -> str | None:
    """A text without what repeats a matter; None where nothing does, empty where nothing worth keeping is left."""
    kept: list[str] = []
    is_gone = False
    parts = statements_of(text)
    for part in parts:
        is_repeated = any(each.is_repeated_in(part, loosely=loosely) for each in matters)
        is_gone = is_repeated or (is_gone and refers_back(part))
        if not is_gone:
            kept.append(part)
    return None if len(kept) == len(parts) else worth_keeping("".join(kept))
