"""The earlier conversation in the prompt, as of the epoch: its summary or topics, then the messages after them."""

from collections.abc import Mapping, Sequence
from typing import LiteralString

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from services.context.source import MEMORY, PromptDraft, Source, inert, readable, tagged
from services.conversations.values import MAX_IMAGES_BYTES
from services.llm.shorter_prompts import IMAGE_LEFT_OUT
from services.llm.token_estimates import IMAGE_TOKENS, MESSAGE_OVERHEAD, TokenEstimator
from services.text.language import Language
from services.text.tokenizer import indexed_text
from state.prompt import Epoch, HistoryMessage, TopicSummary
from state.section import Item, Section

PARTS_THAT_FIT: LiteralString = """
    CASE WHEN pg_column_size(parts) < 16384
           OR sum(pg_column_size(parts)) OVER (ORDER BY created_at DESC, id DESC) <= %(most_image_characters)s
         THEN parts END AS parts
"""
"""SQL for the images of a prompt's messages: the newest, while they are not too large; NULL = left out. The
size is read without reading the images. Short parts, such as addresses, are always shown."""
MOST_IMAGE_CHARACTERS = (MAX_IMAGES_BYTES + 16384) * 4 // 3
"""`most_image_characters` of that column: Base64 with its surroundings."""
_PRIORITY = 30
_MOST_CUT_OFF = 300
"""Characters shown from the end of an answer that broke off."""
_CUT_OFF: dict[Language, str] = {
    "en": "Your last answer was cut off; this is the end of what the user saw:",
    "zh": "你的上一个回答中断了，用户看到的最后部分是：",
}

_HEADINGS: dict[Language, Mapping[str, str]] = {
    "en": {
        "summary": "Earlier in this conversation:",
        "topics": "Earlier in this conversation, by topic, oldest first:",
    },
    "zh": {"summary": "这段对话更早的内容：", "topics": "这段对话更早的内容，按话题从早到晚："},
}


class HistorySource(Source[None]):
    """Shows what the conversation loaded."""

    name = "history"

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """Return all messages after the epoch's summary, and a note if the last answer broke off."""
        return (
            history_section(each_once(draft.history, draft.turn.message, draft.turn.speaker), draft.tokens),
            Section("cut_off", cut_off_text(draft.cut_off, draft.language)),
        )


def history_section(history: Sequence[HistoryMessage], tokens: TokenEstimator) -> Section:
    """Return the messages as a section, oldest first."""
    return Section(
        "history",
        items=[
            Item(
                message=user_message(_told(shown), shown["parts"])
                if shown["role"] == "user"
                else AIMessage(shown["content"]),
                tokens=size_of_stored(shown, tokens),
                about={"message_id": shown["message_id"]},
            )
            for shown in history
        ],
        stable=True,
        priority=_PRIORITY,
        message_ids=frozenset(shown["message_id"] for shown in history),
    )


def each_once(history: Sequence[HistoryMessage], message: str, speaker: str = "") -> list[HistoryMessage]:
    """Remove unanswered messages that were sent again: these appear where they are answered."""
    following = [
        *((shown["role"], _told(shown), shown["parts"]) for shown in history[1:]),
        ("user", indexed_text(speaker, message), []),
    ]
    return [
        shown
        for shown, (role, content, parts) in zip(history, following, strict=False)
        if not (shown["role"] == role == "user" and (_told(shown), shown["parts"]) == (content, parts))
    ]


def _told(shown: HistoryMessage) -> str:
    """Return a message with the name of another participant who said it."""
    return indexed_text(shown.get("speaker", ""), shown["content"])


def cut_off_text(answer: str, language: Language) -> str:
    """Return a note that the last answer broke off, with its end as the user saw it; empty if it did not."""
    end = readable(answer, language)
    end = f"…{end[-_MOST_CUT_OFF:]}" if len(end) > _MOST_CUT_OFF else end
    return f"{_CUT_OFF[language]}\n{tagged(MEMORY, end)}" if end else ""


def size_of_stored(shown: HistoryMessage, tokens: TokenEstimator) -> int:
    """Estimated tokens of a stored message in a prompt."""
    return tokens.count(_told(shown)) + MESSAGE_OVERHEAD + IMAGE_TOKENS * len(shown["parts"])


def without_images(content: str) -> str:
    """Return what the prompt shows of a message whose images are left out."""
    return IMAGE_LEFT_OUT + content


def user_message(text: str, parts: Sequence[dict[str, object]]) -> BaseMessage:
    """Return a message of the user, with its images as content parts."""
    return HumanMessage([{"type": "text", "text": text}, *parts] if parts else text)


class SummarySource(Source[None]):
    """Shows the summary or topics with which the epoch began."""

    name = "summary"

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """Return the summary, or the topics in its place."""
        return (summary_section(draft.epoch, draft.language),)


def summary_section(epoch: Epoch, language: Language) -> Section:
    """The summary or the topics of an epoch as a section; empty where there is neither."""
    name, text = "summary", inert(epoch["summary"])
    if epoch["topics"]:
        name, text = "topics", "\n".join(topic_line(topic) for topic in epoch["topics"])
    shown = f"{_HEADINGS[language][name]}\n{tagged(MEMORY, text)}" if text else ""
    return Section(name, shown, stable=True)


def topic_line(topic: TopicSummary) -> str:
    """A topic as the prompt shows it."""
    return inert(f"- {topic['title']}: {topic['summary']}")
