"""The conversation's messages in the prompt: those that no summary or topic of the epoch covers, oldest first."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from services.context.source import Known, PromptTurn, Source
from services.llm.token_estimates import TokenEstimator
from services.llm.tokens import IMAGE_TOKENS, MESSAGE_OVERHEAD
from state.prompt import HistoryMessage
from state.section import Item, Section

_PRIORITY = 30


class HistorySource(Source[None]):
    """Shows what the conversation loaded."""

    name = "history"

    def select(self, turn: PromptTurn, known: Known) -> Sequence[Section]:
        """All messages that follow the epoch's summary."""
        return (history_section(known.conversation.history, turn.tokens),)


def history_section(history: Sequence[HistoryMessage], tokens: TokenEstimator) -> Section:
    """The messages as a section, the oldest first."""
    return Section(
        "history",
        items=[
            Item(
                message=user_message(shown["content"], shown["parts"])
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
        data=list(history),
    )


def size_of_stored(shown: HistoryMessage, tokens: TokenEstimator) -> int:
    """Estimated tokens of a stored message in a prompt."""
    return tokens.count(shown["content"]) + MESSAGE_OVERHEAD + IMAGE_TOKENS * len(shown["parts"])


def user_message(text: str, parts: Sequence[dict[str, object]]) -> BaseMessage:
    """A message of the user, with its images as content parts."""
    return HumanMessage([{"type": "text", "text": text}, *parts] if parts else text)
