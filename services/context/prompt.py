"""The prompt of a turn: rebuilt from data every time, from what never changes to what always does.

1 system prompt            stable: it never changes
2 core memory and card     stable: those of the epoch
3 summary, or topics       stable: those of the epoch
4 history                  stable: grows at its end, until the next epoch
5 volatile tail            one message, made anew every turn
6 the user's message
7 what the model and its tools have said in this turn already
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage

from services.context.core_memory import MOST_TOKENS, changes_text, core_memory_text
from services.context.days_text import days_text
from services.context.parts import PARTS
from services.context.prefix import Section, mark_prefix
from services.context.strategies import USUAL, PromptStrategy
from services.context.tail import Tail, dropped_items
from services.conversations.messages import image_part
from services.llm.language import language_of
from services.llm.token_estimates import TokenEstimator
from services.llm.tokens import IMAGE_TOKENS, MESSAGE_OVERHEAD
from services.tone.guidance import guidance
from state.prompt import (
    AskedDays,
    ContextReport,
    Epoch,
    HistoryMessage,
    Part,
    Passage,
    RecalledEpisode,
    SharedPrefix,
    Tone,
    TopicSummary,
)

_SUMMARY = {
    "en": "Summary of the conversation so far; the messages that follow come after it.\n\n{summary}",
    "zh": "到目前为止的对话摘要；后面的消息在它之后。\n\n{summary}",
}
_TOPICS = {
    "en": "Topics of the conversation so far, oldest first; the messages that follow are those that belong to no "
    "topic yet.\n\n{topics}",
    "zh": "到目前为止谈过的话题，从早到晚排列；后面是还没有归入任何话题的消息。\n\n{topics}",
}


@dataclass(frozen=True)
class Prompt:
    """What the model is sent, and what it is made of."""

    messages: list[BaseMessage]
    report: ContextReport
    epoch: Epoch
    """With the marks of this prompt."""
    texts: list[str]
    """All that the model reads, to learn from how many tokens it reports."""
    overhead: int
    """Tokens of the borders of messages."""
    images: int


@dataclass(frozen=True)
class Ingredients:
    """What a prompt is made of."""

    budget: int
    """Tokens, the user's message not counted."""
    system_prompt: str
    tools: str
    """The tools as they are described to the model."""
    epoch: Epoch
    history: Sequence[HistoryMessage]
    passages: Sequence[Passage]
    message: str
    images: Sequence[str]
    parts: Sequence[Part] = PARTS
    """What is on in the turn, for the report."""
    strategy: PromptStrategy = USUAL
    """How passages are shown, and what the model does with them."""
    kb_instructions: str = ""
    """What the knowledge base's operator tells the model."""
    core_memory: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Content of each section when the epoch began."""
    core_memory_changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What was added to it since."""
    persona_card: str = ""
    """What is known of the user in brief, as of the epoch."""
    asked_days: AskedDays | None = None
    """The days that the message asks about, if it does."""
    episodes: Sequence[RecalledEpisode] = ()
    """What was recalled, the best first."""
    recall: Mapping[str, Any] = field(default_factory=dict)
    """What is reported of the recall."""
    tone: Tone | None = None
    """How the user sounds."""
    time_note: str = ""
    """What is said of the present time."""
    after: Sequence[AnyMessage] = ()
    """What the model and its tools have said in this turn already; not counted."""


def empty_report(budget: int, epoch: Epoch, parts: Sequence[Part]) -> ContextReport:
    """The report of a turn for which no model was asked."""
    return ContextReport(
        budget=budget,
        tokens={},
        dropped=[],
        parts=list(parts),
        strategy=epoch["strategy"],
        epoch=epoch["number"],
        epoch_reason=epoch["reason"],
        prefix=SharedPrefix(tokens=0, share=0.0),
        recall={},
        sources=[],
    )


def build_prompt(parts: Ingredients, tokens: TokenEstimator) -> Prompt:
    """Put the sections in order, and drop whole items, the least important first, until they fit the budget.

    The system prompt, core memory, the summary or the topics, and the user's message always stay.
    """
    system = SystemMessage(parts.system_prompt)
    fixed: list[Section] = [("system", [(system, _size(system, tokens) + tokens.count(parts.tools))])]
    core_memory, left_out = core_memory_text(parts.core_memory, parts.persona_card)
    summary = "topics" if parts.epoch["topics"] else "summary"
    for name, text in (
        ("core_memory", core_memory),
        ("persona_card", parts.persona_card),
        (summary, _summary_of(parts.epoch)),
    ):
        if text:
            message = SystemMessage(text)
            fixed.append((name, [(message, _size(message, tokens))]))
    history = [(_as_message(shown), size_of_stored(shown, tokens)) for shown in parts.history]
    language = language_of([parts.message])
    tail = Tail(
        changes_text(parts.core_memory_changes),
        days_text(parts.asked_days, language) if parts.asked_days else "",
        list(parts.episodes),
        list(parts.passages),
        partial(parts.strategy.text, instructions=parts.kb_instructions, language=language),
        tone=guidance(parts.tone, language) if parts.tone else "",
        time_note=parts.time_note,
    )
    history_from, dropped = _fit(parts, fixed, history, tail, tokens)
    dropped += parts.asked_days["dropped"] if parts.asked_days else []
    if left_out:
        reason = f"over {MOST_TOKENS} tokens"
        dropped.append({"section": "core_memory", "items": len(left_out), "reason": reason, "fields": left_out})
    stable: list[Section] = [*fixed, ("history", history[history_from:])]
    marks, shared = mark_prefix(stable, parts.epoch["prefix"])
    question = _user_message(parts.message, [image_part(image) for image in parts.images])
    sizes = {name: sum(size for _, size in messages) for name, messages in stable}
    sizes |= tail.sizes(tokens)
    sizes["message"] = tokens.count(parts.message) + MESSAGE_OVERHEAD + IMAGE_TOKENS * len(parts.images)
    messages = [*(message for _, part in stable for message, _ in part), *tail.messages(), question, *parts.after]
    report = ContextReport(
        budget=parts.budget,
        tokens=sizes,
        dropped=dropped,
        parts=list(parts.parts),
        strategy=parts.epoch["strategy"],
        epoch=parts.epoch["number"],
        epoch_reason=parts.epoch["reason"],
        prefix=shared,
        recall={**parts.recall, "shown": [each["episode_id"] for each in tail.episodes]} if parts.recall else {},
        sources=tail.sources(),
    )
    images = sum(len(shown["parts"]) for shown in parts.history[history_from:]) + len(parts.images)
    return Prompt(
        messages=messages,
        report=report,
        epoch={**parts.epoch, "prefix": marks},
        texts=[parts.tools, *(message.text for message in messages)],
        overhead=MESSAGE_OVERHEAD * len(messages),
        images=images,
    )


def _fit(
    parts: Ingredients,
    fixed: Sequence[Section],
    history: Sequence[tuple[BaseMessage, int]],
    tail: Tail,
    tokens: TokenEstimator,
) -> tuple[int, list[dict[str, object]]]:
    """Drop items of the tail, then the oldest messages, then the tail's notes; from which message on they stay,
    and what was dropped."""
    left = parts.budget - sum(size for _, messages in fixed for _, size in messages)
    left -= sum(size for _, size in history)
    dropped = tail.keep_within_limits(tokens)
    while sum(tail.sizes(tokens).values()) > left and (entry := tail.drop_least()):
        dropped.append(entry)
    size = sum(tail.sizes(tokens).values())
    first = 0
    while size > left and first < len(history):
        left += history[first][1]
        first += 1
    while size > left and (entry := tail.drop_notes()):
        dropped.append(entry)
        size = sum(tail.sizes(tokens).values())
    if first:
        # The next summary covers them: it takes everything behind its point.
        ids = [message["message_id"] for message in parts.history[:first]]
        dropped.append(dropped_items("history", first, first_message_id=ids[0], last_message_id=ids[-1]))
    return first, dropped


def _summary_of(epoch: Epoch) -> str:
    if epoch["topics"]:
        topics = "\n".join(topic_line(topic) for topic in epoch["topics"])
        return _TOPICS[language_of([topics])].format(topics=topics)
    if epoch["summary"]:
        return _SUMMARY[language_of([epoch["summary"]])].format(summary=epoch["summary"])
    return ""


def topic_line(topic: TopicSummary) -> str:
    """A topic as the prompt shows it."""
    return f"- {topic['title']}: {topic['summary']}"


def _size(message: BaseMessage, tokens: TokenEstimator) -> int:
    return tokens.count(message.text) + MESSAGE_OVERHEAD


def size_of_stored(shown: HistoryMessage, tokens: TokenEstimator) -> int:
    """Estimated tokens of a stored message in a prompt."""
    return tokens.count(shown["content"]) + MESSAGE_OVERHEAD + IMAGE_TOKENS * len(shown["parts"])


def _as_message(shown: HistoryMessage) -> BaseMessage:
    if shown["role"] == "assistant":
        return AIMessage(shown["content"])
    return _user_message(shown["content"], shown["parts"])


def _user_message(text: str, parts: Sequence[dict[str, object]]) -> HumanMessage:
    return HumanMessage([{"type": "text", "text": text}, *parts] if parts else text)
