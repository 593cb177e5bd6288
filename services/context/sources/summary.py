"""The earlier conversation in the prompt: its rolling summary, or its archived topics, as of the epoch."""

from collections.abc import Mapping, Sequence

from services.context.source import Known, PromptTurn, Source
from services.context.wording import MEMORY, inert, tagged
from services.text.language import Language
from state.prompt import Epoch, TopicSummary
from state.section import Section

_HEADINGS: dict[Language, Mapping[str, str]] = {
    "en": {
        "summary": "Earlier in this conversation:",
        "topics": "Earlier in this conversation, by topic, oldest first:",
    },
    "zh": {"summary": "这段对话更早的内容：", "topics": "这段对话更早的内容，按话题从早到晚："},
}


class SummarySource(Source[None]):
    """Shows the summary or topics with which the epoch began."""

    name = "summary"

    def select(self, turn: PromptTurn, known: Known) -> Sequence[Section]:
        """Return the summary, or the topics in its place."""
        return (summary_section(known.conversation.epoch, known.conversation.language),)


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
