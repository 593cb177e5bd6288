"""Prompts for models without tools: calls and results as text, because their chat templates have no such roles."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage


def without_tool_messages(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with tool results moved into the text of the preceding user message.

    If the model said something before it called tools, the results follow that in a user message.
    """
    plain: list[BaseMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            _append(plain, f"<tool_result name={message.name or 'tool'!r}>\n{message.text}\n</tool_result>")
        elif isinstance(message, AIMessage) and message.tool_calls:
            if message.text:
                plain.append(AIMessage(message.text))
        else:
            plain.append(message)
    return plain


def _append(messages: list[BaseMessage], text: str) -> None:
    last = messages[-1] if messages else None
    if not isinstance(last, HumanMessage):
        messages.append(HumanMessage(text))
    elif isinstance(last.content, str):
        messages[-1] = HumanMessage(f"{last.content}\n\n{text}")
    else:
        messages[-1] = HumanMessage([*last.content, {"type": "text", "text": text}])
