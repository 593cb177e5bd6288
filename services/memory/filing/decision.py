"""Decides what to file of a batch: asks the model, checks its answer, and tells it once about the faults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from services.errors import BadModelOutput
from services.llm.chat_models import ChatModels
from services.llm.structured_output import ask_for
from services.memory.filing.answer import (
    LONGEST_TEXT,
    Answer,
    Fault,
    FilingOperation,
    filing_of_answer,
    told_faults,
)
from services.memory.filing.checks import Checked, Evidence, checked
from services.memory.filing.plain import decide_plainly, surely_told
from services.memory.filing.promised import AskedPromise, asked_promises
from services.memory.filing.prompt import Batch, filing_prompt
from services.memory.filing.story import NO_STORY, StoryTold
from services.memory.model import Memory
from services.memory.reading.mood import Felt, felt
from services.memory.reading.quotes import is_quoted
from services.platform.patience import beside_the_loop
from services.platform.setting_values import FilingGrade
from services.text.language import folded
from services.text.storable import storable
from services.text.tokenizer import informative_terms
from services.time_reference.local_days import time_zone

_BLEMISHES: frozenset[Fault | None] = frozenset(["field", "date"])
_LEAST_SHARE = 0.5
"""Share of a statement's words that must have been said if the model has the grade `some`, because such models
invent words."""
_LONG = 2_000
"""Characters from which on a batch is read in several steps of the event loop."""


@dataclass(frozen=True)
class Decided:
    """The operations to carry out for a batch, and what else follows from it."""

    by: str
    done: Sequence[Checked] = ()
    asked: Sequence[Checked] = ()
    dropped: int = 0
    memories: Mapping[str, Memory] = field(default_factory=dict)
    story: Sequence[UUID] = ()
    """Turns that belong to a game or story."""
    story_in: UUID | None = None
    """Conversation whose story continues after its last message; None if no story does."""
    is_full: bool = False
    """Whether the batch may hold more to file."""
    mood: Felt | None = None
    complaint: tuple[str, str] | None = None
    """The short id of a message, and words of the user in it against the answer before it."""
    promises: Sequence[AskedPromise] = ()


async def decide(
    models: ChatModels, shown: Batch, evidence: Evidence, grade: FilingGrade | None = None
) -> Decided:
    """Ask the model about a batch, and check what it answers.

    Args:
        grade: how well the model files; None = not known, so that its answers are checked more strictly, and it is
            asked once more whether what it files was told.

    Raises:
        ModelFailed: the model did not answer.
        BadModelOutput: it has answered nothing usable, twice.
    """
    said = sum(map(len, shown.said.values()))
    least = _LEAST_SHARE if grade == "some" else 0.0
    evidence = replace(evidence, is_strict=grade != "well", least_share=least)
    await beside_the_loop(evidence.prepare, characters=said, most=_LONG)
    if grade == "some":
        found = await decide_plainly(models, shown, evidence)
        done, asked = ([each for each in found if each.verdict == what] for what in ("do", "ask"))
        return Decided("model", done, asked, len(found) - len(done) - len(asked), shown.memories)
    answers = _Answers(shown, evidence)
    try:
        await ask_for(models, filing_prompt(shown), answers.take, schema=Answer, purpose="memory_filing")
    except BadModelOutput:
        if not answers.are_usable:
            raise
    decided = answers.decided()
    return decided if grade == "well" else await _looked_at_again(models, decided, shown)


async def _looked_at_again(models: ChatModels, decided: Decided, shown: Batch) -> Decided:
    """Return a decision without statements that the user only supposes, wishes or asks, as the model says when
    asked again."""
    told = [each for each in decided.done if each.operation.text]
    told += [each for each in decided.asked if each.is_doubtful]
    sure = await surely_told(models, told, shown, at_once=True)
    done, asked = ([each for each in some if each in sure or each not in told]
                   for some in (decided.done, decided.asked))  # fmt: skip
    left_out = len(told) - len(sure)
    return replace(decided, done=done, asked=asked, dropped=decided.dropped + left_out)


class _Answers:
    """Collects a model's two answers: the good operations of the first are kept, the bad ones of the second are
    dropped."""

    def __init__(self, shown: Batch, evidence: Evidence) -> None:
        self._shown = shown
        self._evidence = evidence
        self._is_asked_again = False
        self._good: list[Checked] = []
        self._blemished: list[Checked] = []
        """Operations with an unlisted field or date; they are carried out without it, unless the second answer
        corrects them."""
        self._bad = 0
        self._story = NO_STORY
        self._mood: Any = None
        self._complaint: Any = None
        self._promises: dict[AskedPromise, None] = {}
        self._is_full = False
        self.are_usable = False

    def take(self, text: str) -> None:
        """Take an answer. Raises `BadModelOutput` if it cannot be read, or the model could correct a part of
        it."""
        may_mend, self._is_asked_again = not self._is_asked_again, True
        answer = filing_of_answer(text, self._shown.memories, self._shown.said)
        found = checked(answer.operations, self._evidence)
        faults: dict[int, Fault] = dict(answer.faults)
        faults |= {each.operation.number: each.fault for each in found if each.fault}
        good = [each for each in found if not (may_mend and each.operation.number in faults)]
        if may_mend:
            self._blemished = [each for each in found if faults.get(each.operation.number) in _BLEMISHES]
        self._good += [each for each in good if not any(_repeats(each, kept) for kept in self._good)]
        self._bad = len(faults.keys() - {each.operation.number for each in found})
        self._story = answer.story if answer.story.is_told else self._story
        self._mood = answer.mood or self._mood
        self._complaint = answer.complaint or self._complaint
        self._promises |= dict.fromkeys(asked_promises(answer.promises, self._evidence))
        self._is_full = self._is_full or answer.is_full
        self.are_usable = True
        if faults and may_mend:
            raise BadModelOutput(told_faults(faults.items(), self._shown.language))

    def decided(self) -> Decided:
        """Return the decision that follows from the answers so far."""
        left = (each for each in self._blemished if not any(_repeats(each, kept) for kept in self._good))
        good = [*self._good, *left]
        done, asked = ([each for each in good if each.verdict == what] for what in ("do", "ask"))
        story, story_in = turns_of_story(self._shown, self._story)
        fiction = [key for key, each in self._shown.messages.items() if each.turn_id in story]
        return Decided(
            "model",
            done,
            asked,
            self._bad + len(good) - len(done) - len(asked),
            self._shown.memories,
            story,
            story_in,
            self._is_full and bool(done or asked),
            felt(self._mood, self._shown.said, fiction),
            _complaint(self._complaint, self._shown.said, fiction),
            [each for each in self._promises if each.source not in fiction],
        )


def _complaint(given: Any, messages: Mapping[str, str], fiction: Sequence[str]) -> tuple[str, str] | None:
    """Return the newest message outside of a story that contains the words of a complaint, and these words."""
    quote = storable(str(given or "")).strip()
    said = (key for key in reversed([*messages]) if key not in fiction and is_quoted(quote, messages[key]))
    return next(((key, quote) for key in said), None) if len(quote) <= LONGEST_TEXT else None


def _repeats(checked: Checked, kept: Checked) -> bool:
    """Return whether an operation of the second answer repeats one of the first, perhaps in other words."""
    one, other = checked.operation, kept.operation
    if one.memory or other.memory:
        return one.memory == other.memory
    if one.kind != other.kind or one.message != other.message:
        return False
    if folded(one.text) == folded(other.text):
        return True
    words, known = informative_terms(one.text), informative_terms(other.text)
    return folded(one.quote) == folded(other.quote) and 2 * len(words & known) >= max(len(words), len(known))


def dated(checked: Checked, batch: Batch) -> FilingOperation:
    """Return an operation whose end has a date; if the model gave none, the day of the message."""
    operation = checked.operation
    if operation.kind != "end" or operation.date or not checked.source:
        return operation
    message = batch.messages[checked.source]
    day = message.created_at.astimezone(time_zone(message.timezone)).date()
    return replace(operation, date=day.isoformat())


def turns_of_story(batch: Batch, told: StoryTold) -> tuple[list[UUID], UUID | None]:
    """Return the turns of a batch that belong to a story, and the conversation in which it continues. A story
    whose beginning or end is not among the messages counts as none."""
    keys = list(batch.messages)
    first = told.first if told.first in batch.messages else ""
    conversation = batch.messages[first].conversation_id if first else batch.story_in
    chosen: Sequence[str] = told.only
    if not told.only and told.is_told and (first or (batch.story_in and not told.first)):
        keys = [each for each in keys if batch.messages[each].conversation_id == conversation]
        begin = keys.index(first) if first else 0
        end = len(keys) - 1 if told.goes_on else keys.index(told.last) if told.last in keys else -1
        chosen = keys[begin : end + 1]
    said = [each for each in chosen if each in batch.messages and batch.messages[each].role == "user"]
    turns = dict.fromkeys(turn_id for each in said if (turn_id := batch.messages[each].turn_id))
    users = [each for each in batch.messages if batch.messages[each].role == "user"]
    goes_on = told.goes_on or told.only[-1:] == tuple(users[-1:])
    if told.only and said:
        conversation = batch.messages[said[-1]].conversation_id
    if conversation is None and not told.first:  # only that it goes on is said
        conversation = batch.conversations[-1]
    return list(turns), conversation if goes_on and (said or not told.first) else None
