"""How well a model files: a few made-up talks, filed as the service would file them, of which nothing is kept."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal
from uuid import uuid4

from langchain_core.messages import HumanMessage, SystemMessage

from services.errors import BadModelOutput, ModelFailed, Unavailable
from services.llm.chat_models import ChatModels
from services.memory.core.blocks import Owner
from services.memory.filing.checks import Checked, Evidence
from services.memory.filing.decision import decide
from services.memory.filing.prompt import Batch, Said
from services.memory.model import Memory
from services.platform.setting_values import FilingGrade

WITHIN_S = 60.0
_NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
_CANARY = "heliotrope"
_FILLER = "The river was wide and grey that day, and nobody was on the bridge. "
_FILLERS = 260
"""Number of filler sentences: about 4,000 tokens, the length of the largest prompt."""


@dataclass(frozen=True)
class _Talk:
    name: str
    said: str
    keeps: Sequence[str] = ()
    """For each statement worth keeping, one of its words; empty if nothing is worth keeping."""
    known: str = ""
    """A memory that the talk corrects."""
    of: str = ""
    """Name that every kept statement must contain; empty if none must."""


_TALKS = (
    _Talk("two facts", "I moved to Ghent last week, and my cat Minka likes it.", ("Ghent", "Minka")),
    _Talk("a change", "我从恒信辞职了，现在在海风上班。", ("海风",), known="在恒信上班"),
    _Talk("a question", "What's the capital of Peru, and is it going to rain there?"),
    _Talk(
        "somebody else", "My brother Nils is allergic to cashews, so no nut cake for him.", ("Nils",), of="Nils"
    ),
)


@dataclass(frozen=True)
class Attempt:
    """One question to the model, with its result."""

    asked: str
    result: Literal["right", "wrong", "no answer", "not tried"]
    kept: Sequence[str] = ()
    """Statements that would be filed."""


@dataclass(frozen=True)
class GradeFound:
    """How well a model files, with the questions that showed it."""

    model: str
    grade: FilingGrade
    tried: Sequence[Attempt] = field(default_factory=list)
    cuts_prompts: bool = False
    """Whether the endpoint cut off the beginning of a prompt of about 4,000 tokens."""


@dataclass(frozen=True)
class _Form:
    """How talks are asked about, and how many answers must be right."""

    grade: FilingGrade
    name: str
    mistakes: int
    """How many talks may come out wrong."""
    least: int
    """How many talks must come out right if time ends before all are tried."""
    share: float
    """Share of the time after which this form is given up."""


_FORMS = (_Form("well", "all at once", 0, 4, 0.4), _Form("some", "in small questions", 1, 2, 0.9))


async def grade_filing(models: ChatModels, *, within_s: float = WITHIN_S) -> GradeFound | None:
    """Ask the small model for `within_s` seconds at most, billed as usual; None without a model.

    It files well if all talks come out right at once, and some if all but one do in small questions. A slow model
    is graded by the talks that it had time for, two at least.
    """
    if models.offline:
        return None
    begun = time.monotonic()
    tried: list[Attempt] = []
    grade: FilingGrade = "none"
    for form in _FORMS:
        found = await _attempts(models, form, begun + form.share * within_s)
        tried += found
        right = sum(each.result == "right" for each in found)
        wrong = sum(each.result in {"wrong", "no answer"} for each in found)
        if right >= form.least and wrong <= form.mistakes:
            grade = form.grade
            break
    canary = await _canary(models, begun + within_s)
    return GradeFound(models.small_model, grade, [*tried, canary], canary.result == "wrong")


async def _attempts(models: ChatModels, form: _Form, end: float) -> list[Attempt]:
    """Try the talks one by one until too many have come out wrong."""
    found: list[Attempt] = []
    for talk in _TALKS:
        if sum(each.result in {"wrong", "no answer"} for each in found) > form.mistakes:
            break
        found.append(await _attempt(models, talk, form, end))
    return found


async def _attempt(models: ChatModels, talk: _Talk, form: _Form, end: float) -> Attempt:
    asked = f"{talk.name}, {form.name}"
    if time.monotonic() > end:
        return Attempt(asked, "not tried")
    said = Said(uuid4(), None, uuid4(), "user", talk.said, _NOW)
    memories = {"m1": Memory("value", "v1", talk.known, _NOW, "human", "work")} if talk.known else {}
    batch = Batch(Owner(uuid4(), uuid4(), uuid4()), [], [said.conversation_id], {"u1": said}, memories=memories)
    evidence = Evidence(batch.said, [talk.said], known=[talk.known], memories=memories)
    try:
        async with asyncio.timeout(end - time.monotonic()):
            decided = await decide(models, batch, evidence, form.grade)
    except TimeoutError:
        return Attempt(asked, "not tried")
    except (ModelFailed, BadModelOutput, Unavailable):
        return Attempt(asked, "no answer")
    is_right = _is_right(talk, decided.done) and not decided.asked
    return Attempt(asked, "right" if is_right else "wrong", [each.operation.text for each in decided.done])


def _is_right(talk: _Talk, done: Sequence[Checked]) -> bool:
    texts = [each.operation.text for each in done]
    keeps = all(any(word in text for text in texts) for word in talk.keeps)
    needless = [text for text in texts if not any(word in text for word in talk.keeps)]
    invented = [text for text in needless if text and text not in talk.said]
    return keeps and not invented and all(talk.of in text for text in texts)


async def _canary(models: ChatModels, end: float) -> Attempt:
    """Ask for a word at the beginning of a long prompt, because an endpoint that shortens prompts drops their
    beginning."""
    asked = "a word at the beginning of 4,000 tokens"
    if time.monotonic() > end:
        return Attempt(asked, "not tried")
    prompt = [
        SystemMessage(f"The word of the day is {_CANARY}. Tell it if you are asked."),
        HumanMessage(f"{_FILLER * _FILLERS}\nWhat is the word of the day?"),
    ]
    try:
        async with asyncio.timeout(end - time.monotonic()):
            answer = await models.complete(prompt)
    except TimeoutError:
        return Attempt(asked, "not tried")
    except (ModelFailed, Unavailable):
        return Attempt(asked, "no answer")
    return Attempt(asked, "right" if _CANARY in answer.casefold() else "wrong")
