"""Filing in small questions, for models that can answer only one thing at a time.

The model is asked which lasting facts the user tells, then whether the user's words state each of them, and
whether a fact that is close to a memory replaces it. Nothing else is changed. The second question is also put to
models that answer everything at once, until it is known how well they file.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from services.errors import BadModelOutput
from services.llm.chat_models import ChatModels
from services.llm.structured_output import ask_for, json_answer
from services.memory.filing.answer import LONGEST_TEXT, MOST_OPERATIONS, FilingOperation
from services.memory.filing.checks import Checked, Evidence, checked
from services.memory.filing.prompt import Batch, newly_said
from services.memory.reading.words import Words
from services.text.language import Language, folded, sentences
from services.text.marks import one_line
from services.text.storable import storable

_NEAR = 0.5
"""Share of the words of a fact or of a memory, whichever has fewer, from which on both may be about one
subject."""
_FACTS: dict[Language, str] = {
    "en": (
        "List the lasting facts that the user tells about themselves, their family, health, work, tastes and "
        "plans. For each: quote = the user's exact words; text = the fact as one short sentence in the user's "
        "language, with names in place of “he” or “it”, and dates as 2026-12-02. Questions, wishes, suppositions, "
        "jokes, games, orders and texts of others are no facts. At most {most}. Answer with JSON alone: "
        '{{"facts": [{{"quote": "<words of the user>", "text": "<the fact>"}}]}}, or {{"facts": []}}.'
    ),
    "zh": (
        "列出用户讲到的长期有效的事实：关于本人、家人、健康、工作、喜好和计划。每条：quote 为用户的原话，一字不差"
        "；text 用一句短话写出这件事，用用户的语言，把“他”“那个”换成名字，日期写成2026-12-02。提问、愿望、假设、"
        "玩笑、游戏、要求和别人的文字都不是事实。最多{most}条。只输出 JSON："
        '{{"facts": [{{"quote": "<用户的原话>", "text": "<事实>"}}]}}，没有就输出 {{"facts": []}}。'
    ),
}
"""Question for the facts. Nobody could mistake its example for something that was said."""
_SURE: dict[Language, str] = {
    "en": (
        "The user wrote the words behind “said”. Does each statement behind “kept” follow from them as a fact "
        "about the person it speaks of? Answer no if the words are a supposition, a wish, a question, a joke or a "
        "game, or if they are about somebody else than the statement. Where a statement names nobody, it is about "
        "the user.{context} "
        'Answer with JSON alone, one answer for each number: {{"answers": ["yes", "no"]}}.'
    ),
    "zh": (
        "“原话”是用户写的。“记为”的内容是否就是原话所说的事实，而且说的是同一个人？原话只是假设、愿望、提问、玩笑、游戏，或"
        "说的是别人，就答 no。“记为”里没有写明是谁，就是指用户本人。{context}只输出 JSON，按编号每条一个回答："
        '{{"answers": ["yes", "no"]}}。'
    ),
}
_CONTEXT: dict[Language, str] = {
    "en": " Names, dates and what a “he” or a “yes” stands for may come from the rest of the talk.",
    "zh": "名字、日期，以及“他”“对”指什么，可以来自其余的对话。",
}
_ONE: dict[Language, str] = {
    "en": "{number}. said: “{quote}”\n   kept: “{text}”",
    "zh": "{number}. 原话：“{quote}”\n   记为：“{text}”",
}
_RELATION: dict[Language, str] = {
    "en": (
        "A memory says: “{memory}”. Now the user says: “{text}”. Is that new (both are true), the same (nothing "
        'new), or instead (the memory is no longer true)? Answer with JSON alone: {{"answer": "new"}}.'
    ),
    "zh": (
        "已有一条记忆：“{memory}”。现在用户说：“{text}”。这是新的事（两条都成立，new）、同一件事（没有新内容，same），"
        '还是取代（原来那条不再成立，instead）？只输出 JSON：{{"answer": "new"}}。'
    ),
}
_YES, _NO = ("y", "true", "是"), ("n", "false", "否", "不")
_RELATIONS = ("instead", "same", "new")


class _Fact(BaseModel):
    quote: str = Field(description="the user's exact words")
    text: str = Field(description="the fact as one short sentence")


class _Facts(BaseModel):
    facts: list[_Fact]


class _LooseFacts(BaseModel):
    facts: list[Any]


class _Answers(BaseModel):
    answers: list[str]


class _LooseAnswers(BaseModel):
    answers: list[Any]


class _Answer(BaseModel):
    answer: str


async def decide_plainly(models: ChatModels, shown: Batch, evidence: Evidence) -> list[Checked]:
    """Ask a model for the facts of a batch in small questions, and check them; what is dropped is returned too.
    Raises `ModelFailed` if the model did not answer, and `BadModelOutput` if it listed no facts, twice."""
    language = shown.language

    def facts_of(answer: str) -> list[Checked]:
        return checked(_operations(answer), evidence)

    found = await ask_for(models, _prompt(shown), facts_of, schema=_Facts, purpose="memory_filing")
    listed = [each for each in found if each.verdict != "drop"]
    sure = await surely_told(models, listed, shown)
    dropped = [replace(each, verdict="drop") for each in found if each not in sure]
    operations = [await _placed(models, each.operation, shown, language) for each in sure]
    return [*dropped, *checked([each for each in operations if each is not None], evidence)]


def _prompt(shown: Batch) -> list[BaseMessage]:
    return [SystemMessage(_FACTS[shown.language].format(most=MOST_OPERATIONS)), HumanMessage(newly_said(shown))]


def _operations(answer: str) -> list[FilingOperation]:
    found: dict[str, FilingOperation] = {}
    for number, each in enumerate(json_answer(_LooseFacts, answer, items="facts").facts[:MOST_OPERATIONS], 1):
        given = each if isinstance(each, dict) else {}
        quote, text = (one_line(storable(str(given.get(name) or ""))).strip() for name in ("quote", "text"))
        if quote and text and len(text) <= LONGEST_TEXT:
            found.setdefault(folded(text), FilingOperation("add", quote, text, field="facts", number=number))
    return list(found.values())


async def surely_told(
    models: ChatModels, listed: Sequence[Checked], shown: Batch, *, at_once: bool = False
) -> list[Checked]:
    """Return the statements which the model confirms that the user tells.

    Args:
        at_once: they come from an answer that decided everything: they may speak of what was said elsewhere, and
            without a usable answer only the doubtful ones go. Otherwise all of them do.
    """
    if not listed:
        return []
    language = shown.language
    asked = "\n".join(
        _ONE[language].format(number=number, quote=_sentence_of(each, shown), text=each.operation.text)
        for number, each in enumerate(listed, 1)
    )

    def answers_of(answer: str) -> list[bool]:
        found = [str(each).casefold() for each in json_answer(_LooseAnswers, answer, items="answers").answers]
        if len(found) != len(listed) or not all(each.startswith(_YES + _NO) for each in found):
            raise BadModelOutput(f"{len(listed)} answers are wanted, yes or no for each number")
        return [each.startswith(_YES) for each in found]

    rules = _SURE[language].format(context=_CONTEXT[language] if at_once else "")
    prompt = [SystemMessage(rules), HumanMessage(asked)]
    try:
        answers = await ask_for(models, prompt, answers_of, schema=_Answers, purpose="memory_filing")
    except BadModelOutput:
        return [each for each in listed if at_once and not each.is_doubtful]
    return [each for each, is_told in zip(listed, answers, strict=True) if is_told]


def _sentence_of(checked: Checked, shown: Batch) -> str:
    """Return the user's sentence that contains a quote, because a supposition may begin before the quote."""
    quote, message = checked.operation.quote, shown.messages[checked.source].content
    begin = message.find(quote)
    around = [each.text for each in sentences(message) if each.start < begin + len(quote) and begin < each.end]
    return one_line("".join(around)).strip() if begin >= 0 else quote


async def _placed(
    models: ChatModels, operation: FilingOperation, shown: Batch, language: Language
) -> FilingOperation | None:
    """Return the operation for a fact beside the nearest memory; None if that memory says it already."""
    nearest, share = "", 0.0
    words = Words.of(operation.text)
    for key, memory in shown.memories.items():
        known = Words.of(memory.text)
        if folded(memory.text) == folded(operation.text):
            return None
        one, other = (words, known) if words.count <= known.count else (known, words)
        if one.share_in(other) > share:
            nearest, share = key, one.share_in(other)
    if share < _NEAR:
        return operation
    memory = shown.memories[nearest]
    question = _RELATION[language].format(memory=one_line(memory.text), text=operation.text)

    def relation_of(answer: str) -> str:
        said = json_answer(_Answer, answer).answer.casefold()
        found = next((each for each in _RELATIONS if each in said), None)
        if found is None:
            raise BadModelOutput("one of new, same and instead is wanted")
        return found

    try:
        said = await ask_for(
            models, [HumanMessage(question)], relation_of, schema=_Answer, purpose="memory_filing"
        )
    except BadModelOutput:
        said = "new"
    if said == "same":
        return None
    if said == "new":
        return operation
    return FilingOperation("replace", operation.quote, operation.text, memory=nearest, number=operation.number)
