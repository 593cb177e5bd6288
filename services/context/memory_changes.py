"""Changes of memory in the prompt: those that the turn makes, and a change that waits for the user's consent.

What the turn changes is hidden from the rest of the prompt and confirmed to the model. One turn asks the user
about a waiting change, and the next one settles it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from services.context.conversation import Conversation
from services.context.epochs import StoredConversation
from services.context.source import PromptDraft, Source, inert
from services.context.sources.core_memory import CoreMemorySource
from services.context.sources.days import DaysSource
from services.context.sources.recall import RecallSource
from services.memory.core.items import apply_changes
from services.memory.episodes.episode import StoredUnit
from services.memory.planning.wording import note_for_model
from services.memory.proposals.questions import OpenQuestion, OpenQuestions
from services.memory.reading.what_stays import what_stays
from services.memory.reading.words import says
from services.memory.recall.recall import RecallResult
from services.summaries.past_days import DaysResult
from services.summaries.prompts import SaidMessage
from services.text.language import Language
from state.memory import ItemChange, MemoryChange
from state.prompt import CoreMemoryBlock, CoreMemorySections, Feature, HistoryMessage
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


class MemoryChangesSource(Source[None]):
    """Hides from this prompt what the turn's plan takes out of memory, and tells the model what was changed."""

    name = "memory_changes"

    def revise(self, draft: PromptDraft) -> None:
        """Remove what is forgotten from the conversation, core memory, recall and days."""
        planned, data = [each for each in draft.memory_plan if each.changes], draft.data
        texts = {key: text for change in planned for key, text in change.messages.items()}
        episodes = {each for change in planned for each in change.episodes}
        items = [each for change in planned for each in change.items]
        if not (texts or episodes or items):
            return
        # What is off the record stays in its conversation.
        hidden = {
            key: text for change in planned if not change.off_record for key, text in change.messages.items()
        }
        removes = any(change.removed for change in planned)
        data[Conversation] = _conversation(data[Conversation], hidden, removes=removes)
        if data.get(CoreMemorySource):
            data[CoreMemorySource] = _core_memory(data[CoreMemorySource], items)
        if data.get(RecallSource):
            data[RecallSource] = _recalled(data[RecallSource], texts, episodes)
        if data.get(DaysSource):
            removed = [text for change in planned for text in change.removed]
            data[DaysSource] = _days(data[DaysSource], texts, removed)

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """Return what the turn does to memory, so that the model can confirm it."""
        made = [each.change for each in draft.memory_plan] + ([draft.promised] if draft.promised else [])
        changes = [MemoryChange(**{**each, "summary": inert(each["summary"])}) for each in made]
        return (Section("memory_changes", note_for_model(changes, draft.language)),)


def _conversation(
    fetched: StoredConversation, texts: Mapping[str, str | None], *, removes: bool
) -> StoredConversation:
    shown = {message["message_id"] for message in fetched.history}
    history: list[HistoryMessage] = []
    for message in fetched.history:
        text = texts.get(message["message_id"], message["content"])
        if text is not None:
            history.append(HistoryMessage(**{**message, "content": text}))
    if texts.keys() - shown or len(history) < len(fetched.history):
        # The summary or the topics may cover something forgotten: the prompt leaves them out.
        fetched = replace(
            fetched,
            ended_by="memory retracted",
            epoch_summary="",
            epoch_topics=[],
            summary=None if texts.keys() - shown else fetched.summary,
            topics=[] if texts.keys() - shown else fetched.topics,
        )
    elif removes:
        fetched = replace(fetched, ended_by="memory retracted")  # its beginning may show forgotten text
    return replace(fetched, history=history)


def _core_memory(core: CoreMemorySections, items: Sequence[ItemChange]) -> CoreMemorySections:
    changed = dict(core)
    for section, block in core.items():
        own = [item for item in items if item.section == section and item.action != "add"]
        content = apply_changes(block["content"], own).content
        changed[section] = CoreMemoryBlock(**{**block, "content": content})
    return changed


def _recalled(found: RecallResult, texts: Mapping[str, str | None], episodes: set[str]) -> RecallResult:
    """Return the recalled messages in the words that are left of each; one without any words left goes."""
    kept = []
    for ranked in found.ranking.results:
        unit, rest = ranked.unit, texts.get(ranked.unit.message_id or "", ranked.unit.text)
        if rest is not None and unit.episode_id not in episodes:
            kept.append(ranked._replace(unit=unit._replace(text=rest)))
    units = {name: _unit_left(unit, texts) for name, unit in found.units.items()}
    return replace(found, ranking=replace(found.ranking, results=tuple(kept)), units=units)


def _unit_left(unit: StoredUnit, texts: Mapping[str, str | None]) -> StoredUnit:
    if str(unit.message_id) in texts:
        unit = replace(unit, text=texts[str(unit.message_id)] or "")
    if str(unit.question_id) in texts:
        unit = replace(unit, question=texts[str(unit.question_id)])
    return unit


def _days(found: DaysResult, texts: Mapping[str, str | None], removed: Sequence[str]) -> DaysResult:
    """Return days without what goes: their summaries in the clauses that stay, and what was said likewise."""
    days = []
    for day in found.days:
        text = what_stays(day.text, lambda clause: any(says(clause, each) for each in removed)).text
        if text or not day.text:
            days.append(replace(day, text=text, said=_said(day.said, texts)))
    return replace(found, days=days, said=_said(found.said, texts))


def _said(messages: Sequence[SaidMessage], texts: Mapping[str, str | None]) -> list[SaidMessage]:
    kept = ((each, texts.get(str(each.id), each.content)) for each in messages)
    return [replace(each, content=text) for each, text in kept if text is not None]


class OpenQuestionSource(Source[OpenQuestion]):
    """Shows the question that this turn asks, or that the turn before has asked."""

    name = "open_question"
    features: ClassVar[frozenset[Feature]] = frozenset({"core_memory"})

    def __init__(self, questions: OpenQuestions) -> None:
        self._questions = questions

    def is_on(self, draft: PromptDraft) -> bool:
        """Whether anything waits, and the model has the tools that settle it."""
        return draft.turn.asks and bool(draft.tools) and draft.turn.stored and not draft.turn.speaker

    async def load(self, draft: PromptDraft) -> OpenQuestion | None:
        """Return the question; None = there is none."""
        turn = draft.turn
        return await self._questions.of_turn(draft.owner, turn.conversation_id, turn.user_message_id)

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """Return what to ask, or what to do with the answer."""
        question, language = draft.of(OpenQuestionSource), draft.language
        if question is None:
            return ()
        kind = "replace" if question.kind == "remember" and question.replaces else question.kind
        change = _CHANGES[language][kind].format(text=inert(question.text), replaces=inert(question.replaces))
        form = _SETTLES if question.asked_in else _ASKS
        text = form[language].format(change=change, id=question.id)
        asks = None if question.asked_in else str(question.id)
        return (Section("open_question", text, data={"asks": asks, "told": [question.text, question.replaces]}),)
