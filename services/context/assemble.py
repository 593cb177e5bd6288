"""Assembles the prompt of a turn from its sections, the most stable first.

Stable sections come first, so that prompts begin with the same bytes and a provider's cache applies. Volatile
sections follow as one message directly before the user's message. Last comes what the model and its tools have
already said in this turn.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, SystemMessage

from services.context.sources.history import user_message
from services.conversations.values import image_part
from services.llm.request_form import ContextMessage
from services.llm.token_estimates import IMAGE_TOKENS, MESSAGE_OVERHEAD, TokenEstimator
from state.prompt import ContextReport, Epoch, Feature, PrefixMark, PromptSection, SharedPrefix
from state.section import Item, Section

_DIGEST_BYTES = 12


@dataclass(frozen=True)
class Prompt:
    """The messages sent to the model, and the report on them."""

    messages: list[BaseMessage]
    report: ContextReport
    sections: list[PromptSection]
    """Sections of the prompt with their texts, in order."""
    epoch: Epoch
    """The epoch, with the marks that this prompt sets."""
    texts: list[str]
    """The texts of the messages, for learning from the token counts that the model reports."""
    tools: str
    """The tools as described to the model."""
    overhead: int
    """Tokens of the borders of messages."""
    images: int


@dataclass
class _Shown:
    """A section while items are dropped from it."""

    section: Section
    items: list[Item]
    dropped: list[dict[str, Any]] = field(default_factory=list)
    beside: int = 0
    """Tokens that belong to it besides its text."""
    _text: str | None = None
    """The text, cached until an item is dropped; `_size` likewise."""
    _size: int | None = None

    @property
    def text(self) -> str:
        if self._text is None:
            texts = [self.section.text, *[item.text for item in self.items], self.section.closing]
            empty = self.section.items and not self.items
            self._text = "" if empty else self.section.separator.join(filter(None, texts))
        return self._text

    def size(self, tokens: TokenEstimator) -> int:
        if self._size is None:
            text = self.text
            own = tokens.count(text) + (MESSAGE_OVERHEAD if self.section.stable else 0) if text else 0
            self._size = own + sum([item.tokens for item in self.items]) + self.beside
        return self._size

    def drop(self) -> int:
        """Drop the least important item; return the tokens of a message, 0 for other items."""
        self._text = self._size = None
        if self.items[0].message is not None:  # the oldest
            item = self.items.pop(0)
        else:
            item = self.items.pop()
            which = {key: item.about[key] for key in ("episode_id", "document", "position") if key in item.about}
            self.dropped.append(_dropped(self.section.name, 1, **which))
        return item.tokens

    @property
    def can_drop(self) -> bool:
        return len(self.items) > self.section.keeps


def assemble(
    sections: Sequence[Section],
    tokens: TokenEstimator,
    *,
    budget: int,
    epoch: Epoch,
    features: Sequence[Feature],
    message: str,
    images: Sequence[str] = (),
    tools: str = "",
    after: Sequence[AnyMessage] = (),
) -> Prompt:
    """Order the sections, and drop whole items, the least important first, until they fit the budget.

    Args:
        sections: Sections in order; stable ones are moved before the others.
        tokens: Estimator for the model.
        budget: Maximum tokens, not counting the user's message.
        epoch: Epoch of the conversation, with the marks of the previous prompt.
        features: Features that are on in the turn, for the report.
        message: The user's message.
        images: Addresses or data URLs.
        tools: Offered tools, as the model reads them.
        after: What the model and its tools have already said in this turn; not counted.
    """
    shown = [
        _Shown(section, list(section.items), beside=tokens.count(tools) if section.name == "system" else 0)
        for section in sections
    ]
    dropped = _fit(shown, budget, tokens)
    stable = [each for each in shown if each.section.stable and (each.text or each.section.name == "history")]
    volatile = [each for each in shown if not each.section.stable and each.text]
    beginning = [(each.section.name, _messages_of(each, tokens)) for each in stable]
    marks, shared = mark_prefix(beginning, epoch["prefix"])
    tail = volatile_message(each.text for each in volatile)
    question = user_message(message, [image_part(image) for image in images])
    sent = [*(one for _, part in beginning for one, _ in part), *tail, question]
    messages = [*sent, *after]
    sizes = {each.section.name: each.size(tokens) for each in (*stable, *volatile)}
    for first in volatile[:1]:
        sizes[first.section.name] += MESSAGE_OVERHEAD
    sizes["message"] = tokens.count(message) + MESSAGE_OVERHEAD + IMAGE_TOKENS * len(images)
    report = empty_report(budget, epoch, features)
    report["tokens"], report["dropped"], report["prefix"] = sizes, dropped, shared
    report["digest"] = digest_of(sent)
    _report_findings(report, shown)
    return Prompt(
        messages=messages,
        report=report,
        sections=[_prompt_section(each, sizes) for each in (*stable, *volatile)],
        epoch={**epoch, "prefix": marks},
        texts=[one.text for one in messages],
        tools=tools,
        overhead=MESSAGE_OVERHEAD * len(messages),
        images=sum(map(_images_in, messages)),
    )


def _report_findings(report: ContextReport, shown: Iterable[_Shown]) -> None:
    """Add what is shown of recall and of the knowledge bases."""
    for each in shown:
        if each.section.name == "recall" and each.section.data:
            report["recall"] = {**each.section.data, "shown": [item.about["episode_id"] for item in each.items]}
        if each.section.name == "knowledge":
            report["sources"] = [item.about for item in each.items]  # type: ignore[misc]


def _prompt_section(shown: _Shown, sizes: Mapping[str, int]) -> PromptSection:
    return PromptSection(
        name=shown.section.name,
        tokens=sizes[shown.section.name],
        stable=shown.section.stable,
        text=shown.text,
        message_ids=[item.about["message_id"] for item in shown.items if item.message is not None],
    )


def _images_in(message: BaseMessage) -> int:
    if isinstance(message.content, str):  # a loop would look at each character
        return 0
    return sum(isinstance(part, dict) and part.get("type") == "image_url" for part in message.content)


def volatile_message(texts: Iterable[str]) -> list[BaseMessage]:
    """Return the message with the volatile sections; None without any."""
    text = "\n\n".join(texts)
    return [ContextMessage(content=text)] if text else []


def digest_of(messages: Iterable[BaseMessage]) -> str:
    """Return the digest of a prompt: 12 bytes over the kinds and contents of its messages, in hexadecimal."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for message in messages:
        digest.update(_bytes_of(message))
    return digest.hexdigest()


def _bytes_of(message: BaseMessage) -> bytes:
    return f"{message.type}\0{message.content!r}\0".encode()


def empty_report(budget: int, epoch: Epoch, features: Sequence[Feature]) -> ContextReport:
    """Return the report of a turn for which no model was asked."""
    return ContextReport(
        budget=budget,
        digest="",
        tokens={},
        dropped=[],
        parts=list(features),
        strategy=epoch["strategy"],
        epoch=epoch["number"],
        epoch_reason=epoch["reason"],
        prefix=SharedPrefix(tokens=0, share=0.0),
        recall={},
        sources=[],
    )


def without_tools(prompt: Prompt, tokens: TokenEstimator) -> Prompt:
    """Return the prompt as sent to a model that refused the tools: not counted, and not learned from."""
    sizes = prompt.report["tokens"]
    report: ContextReport = {
        **prompt.report,
        "tokens": {**sizes, "system": sizes["system"] - tokens.count(prompt.tools)},
    }
    return replace(prompt, report=report, tools="")


def _fit(shown: Sequence[_Shown], budget: int, tokens: TokenEstimator) -> list[dict[str, Any]]:
    """Drop items until the sections fit; return what was dropped."""
    for each in shown:
        most = each.section.most_tokens
        while most is not None and each.can_drop and tokens.count(each.text) > most:
            each.drop()
    sizes = {each.section.name: each.size(tokens) for each in shown}
    over = sum(sizes.values()) - budget
    if any(each.text for each in shown if not each.section.stable):
        over += MESSAGE_OVERHEAD
    droppable = [each for each in shown if each.section.priority is not None]
    for each in sorted(droppable, key=lambda one: one.section.priority or 0):
        while over > 0 and each.can_drop:
            freed = each.drop()
            if not freed:
                before = sizes[each.section.name]
                sizes[each.section.name] = each.size(tokens)
                freed = before - sizes[each.section.name]
            over -= freed
    dropped = [entry for each in shown for entry in each.dropped]
    for each in shown:
        if each.section.message_ids and (count := len(each.section.items) - len(each.items)):
            # The next summary covers them: it takes everything that follows its point.
            gone = [item.about["message_id"] for item in each.section.items[:count]]
            dropped.append(_dropped(each.section.name, count, first_message_id=gone[0], last_message_id=gone[-1]))
        dropped += [dict(entry) for entry in each.section.dropped]
    return dropped


def _dropped(section: str, items: int, **which: object) -> dict[str, Any]:
    return {"section": section, "items": items, "reason": "over the budget", **which}


def _messages_of(shown: _Shown, tokens: TokenEstimator) -> list[tuple[BaseMessage, int]]:
    if shown.text:
        return [(SystemMessage(shown.text), shown.size(tokens))]
    return [(item.message, item.tokens) for item in shown.items if item.message is not None]


def mark_prefix(
    sections: Iterable[tuple[str, Sequence[tuple[BaseMessage, int]]]], before: Sequence[PrefixMark]
) -> tuple[list[PrefixMark], SharedPrefix]:
    """Compute the digests of a prompt's stable sections, and compare them with those of the previous prompt.

    Args:
        sections: name, and messages with their tokens.
        before: the marks of the previous prompt.
    """
    known = {mark["messages"]: mark["digest"] for mark in before}
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    marks: list[PrefixMark] = []
    count = tokens = shared = 0
    for name, messages in sections:
        for message, size in messages:
            digest.update(_bytes_of(message))
            count += 1
            tokens += size
            if known.get(count) == digest.hexdigest():
                shared = tokens
        marks.append(PrefixMark(section=name, messages=count, digest=digest.hexdigest()))
    return marks, SharedPrefix(tokens=shared, share=round(shared / tokens, 4) if tokens else 0.0)
