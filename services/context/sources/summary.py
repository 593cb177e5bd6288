"""The conversation so far in the prompt: its rolling summary, or its archived topics, as of the epoch."""

from collections.abc import Sequence

from services.context.source import Known, PromptTurn, Source
from services.llm.language import Language, language_of
from state.prompt import Epoch, TopicSummary
from state.section import Section

_SUMMARY: dict[Language, str] = {
    "en": "Summary of the conversation so far; the messages that follow come after it.\n\n{summary}",
    "zh": "到目前为止的对话摘要；后面的消息在它之后。\n\n{summary}",
}
_TOPICS: dict[Language, str] = {
    "en": "Topics of the conversation so far, oldest first; the messages that follow are those that belong to no "
    "topic yet.\n\n{topics}",
    "zh": "到目前为止谈过的话题，从早到晚排列；后面是还没有归入任何话题的消息。\n\n{topics}",
}


class SummarySource(Source[None]):
    """Shows what the epoch began with."""

    name = "summary"

    def select(self, turn: PromptTurn, known: Known) -> Sequence[Section]:
        """The summary, or the topics in its place."""
        return (summary_section(known.conversation.epoch),)


def summary_section(epoch: Epoch) -> Section:
    """The summary or the topics of an epoch as a section; empty where there is neither."""
    if epoch["topics"]:
        topics = "\n".join(topic_line(topic) for topic in epoch["topics"])
        return Section("topics", _TOPICS[language_of([topics])].format(topics=topics), stable=True)
    if epoch["summary"]:
        text = _SUMMARY[language_of([epoch["summary"]])].format(summary=epoch["summary"])
        return Section("summary", text, stable=True)
    return Section("summary", stable=True)


def topic_line(topic: TopicSummary) -> str:
    """A topic as the prompt shows it."""
    return f"- {topic['title']}: {topic['summary']}"
