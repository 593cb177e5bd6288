"""A change of memory that waits for the user: one turn asks them, the next one settles it."""

from collections.abc import Sequence
from typing import ClassVar

from services.context.source import Known, PromptTurn, Source
from services.context.wording import inert
from services.memory.open_questions import OpenQuestion, OpenQuestions
from services.text.language import Language
from state.prompt import Feature
from state.section import Section

_CHANGES: dict[Language, dict[str, str]] = {
    "en": {
        "remember": "remember “{text}”",
        "replace": "“{text}” in the place of “{replaces}”",
        "forget": "forget “{text}”",
    },
    "zh": {"remember": "记住“{text}”", "replace": "把“{replaces}”改成“{text}”", "forget": "忘掉“{text}”"},
}
_ASKS: dict[Language, str] = {
    "en": (
        "A change of memory waits for the user's consent: {change}. At the end of your answer, ask them in one "
        "short sentence in their language whether that is right. Call no tool for it now."
    ),
    "zh": (
        "有一项记忆改动等用户同意：{change}。请在回答末尾用一句话问用户，"
        "例如“我想{change}，可以吗？”。现在不要为它调用工具。"
    ),
}
_SETTLES: dict[Language, str] = {
    "en": (
        "You have just asked the user about a change of memory: {change}. If their message says yes, call "
        'remember(confirm="{id}"); if it says no, call forget(ids=["{id}"]); otherwise leave it.'
    ),
    "zh": (
        '你刚才问过用户一项记忆改动：{change}。这条消息若表示同意，调用 remember(confirm="{id}")；若不同意，调用 '
        'forget(ids=["{id}"])；否则不必理会。'
    ),
}


class OpenQuestionSource(Source[OpenQuestion]):
    """Shows the question that this turn asks, or that the turn before has asked."""

    name = "open_question"
    features: ClassVar[frozenset[Feature]] = frozenset({"core_memory"})

    def __init__(self, questions: OpenQuestions) -> None:
        self._questions = questions

    def is_on(self, turn: PromptTurn) -> bool:
        """Whether anything waits, and the model has the tools that settle it."""
        return turn.asks and bool(turn.tools) and not turn.temporary

    async def load(self, turn: PromptTurn) -> OpenQuestion | None:
        """Return the question; None = there is none."""
        return await self._questions.of_turn(turn.owner, turn.conversation_id, turn.message_id)

    def select(self, turn: PromptTurn, known: Known) -> Sequence[Section]:
        """Return what to ask, or what to do with the answer."""
        question = known.of(OpenQuestionSource)
        if question is None:
            return ()
        language = known.conversation.language
        kind = "replace" if question.kind == "remember" and question.replaces else question.kind
        change = _CHANGES[language][kind].format(text=inert(question.text), replaces=inert(question.replaces))
        form = _SETTLES if question.asked_in else _ASKS
        text = form[language].format(change=change, id=question.id)
        return (Section("open_question", text, data=None if question.asked_in else str(question.id)),)
