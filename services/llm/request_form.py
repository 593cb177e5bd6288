"""The form of a request to a model: its messages, and the parts that may be left out.

Many chat templates and endpoints accept only one system message, at the start, followed by user and assistant in
turn; some accept neither tool calls nor tool results. The service puts what belongs to the current message into a
system message right before it.
"""

import re
from collections.abc import Callable, Collection, Sequence
from itertools import takewhile
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from services.errors import RefusalTopic
from services.text.marks import without_tokens
from state.turn import Sampling

MessageForm = Literal["compatible", "native", "user_only"]
"""`compatible` for any usual chat template, `native` unchanged, `user_only` for templates without a system
role."""

OnText = Callable[[str], None]
"""Called with each piece of the answer as it arrives: text, or one of the kinds in `streams.text`."""

CONTEXT = "context"
"""Tag around what the service adds to a user's message."""
TAGS = ("memory", "memory_changes", "documents", "application", CONTEXT)
"""Tags of the prompt. Quoted text can neither open nor close them."""
_BEGINNING_LEFT_OUT = "…"

ALL: frozenset[str] = Sampling.__optional_keys__
_ONLY_CHAT = frozenset({"stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias"})
"""The Responses API has no such parameters."""
RESPONSES = ALL - _ONLY_CHAT
"""Parameters that the Responses API takes."""

LENGTHS = frozenset({"max_tokens", "max_completion_tokens"})
"""Limits of an answer's length."""
_LIMITS = r"max[_ ](?:completion_|output_)?tokens"
_MENTIONS: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "max_tokens": _LIMITS,
        "max_completion_tokens": _LIMITS,
        "stop": r"\bstop\b",
        "reasoning_effort": r"\breasoning|\beffort\b",
        "response_format": r"response_format|json_schema|json_object|text\.format|schema|structured|\bgrammar\b",
    }.items()
}
"""Patterns by which endpoints mention a parameter; a parameter without one is mentioned by its name."""


class ContextMessage(SystemMessage):
    """The service's addition to the user's message that follows it. It is never part of the prompt's stable
    beginning."""


def in_form(messages: Sequence[BaseMessage], form: MessageForm) -> list[BaseMessage]:
    """Return the messages in that form; their content is the same in each. What users and tools say can imitate
    no tag of the prompt, and no token of a chat template."""
    messages = _images_apart([_inert(message) for message in messages])
    if form == "native":
        return list(messages)
    formed = compatible(messages)
    return without_system_role(formed) if form == "user_only" else formed


def _inert(message: BaseMessage) -> BaseMessage:
    if isinstance(message, SystemMessage):
        return message
    content = message.content
    if isinstance(content, str):
        plain: Any = without_tokens(content, TAGS)
    elif isinstance(message, HumanMessage | ToolMessage):
        plain = [_inert_part(part) for part in content]
    else:
        return message
    return message if plain == content else message.model_copy(update={"content": plain})


def _images_apart(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Move the images of tool results into a user message behind them, because Chat Completions takes images only
    from the user."""
    formed: list[BaseMessage] = []
    waiting: list[Any] = []
    for message in messages:
        if isinstance(message, ToolMessage) and isinstance(message.content, list):
            waiting += _of_result(message, message.content[1:])
            formed.append(message.model_copy(update={"content": message.text}))
            continue
        if waiting and not isinstance(message, ToolMessage):
            formed.append(HumanMessage(waiting))
            waiting = []
        formed.append(message)
    return [*formed, HumanMessage(waiting)] if waiting else formed


def _of_result(message: ToolMessage, parts: Sequence[Any]) -> list[Any]:
    """Return parts of a user's message that are a tool's, between the tags that say so."""
    opening, closing = f"<tool_result name={message.name or 'tool'!r}>", "</tool_result>"
    return [{"type": "text", "text": opening}, *parts, {"type": "text", "text": closing}]


def _inert_part(part: Any) -> Any:
    if isinstance(part, dict) and part.get("type") == "text":
        return {**part, "text": without_tokens(str(part.get("text") or ""), TAGS)}
    return part


def without_system_role(formed: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Move the text of the system message of compatible messages to the beginning of the user's first."""
    if not formed or not isinstance(formed[0], SystemMessage):
        return list(formed)
    rest = list(formed[1:])
    first = rest.pop(0) if rest and isinstance(rest[0], HumanMessage) else None
    return [HumanMessage(_joined(formed[0].text, first.content if first else "")), *rest]


def compatible(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return one system message at the start, then user and assistant in turn.

    A later system message goes before the text of the user message that follows, between tags that it cannot
    close; after tool results it goes to the end of the last result. Consecutive messages of one role are joined.
    """
    beginning = [each.text for each in takewhile(_is_beginning, messages)]
    formed: list[BaseMessage] = [SystemMessage("\n\n".join(beginning))] if beginning else []
    waiting: list[str] = []
    for message in messages[len(beginning) :]:
        if isinstance(message, SystemMessage):
            waiting.append(message.text)
            continue
        following = message
        if isinstance(message, HumanMessage) and waiting:
            following = HumanMessage(_joined(_context(waiting), message.content))
            waiting = []
        _append(formed, following)
    if waiting:
        _append_context(formed, _context(waiting))
    return formed


def _is_beginning(message: BaseMessage) -> bool:
    return isinstance(message, SystemMessage) and not isinstance(message, ContextMessage)


def _append(formed: list[BaseMessage], message: BaseMessage) -> None:
    """Add a message, joined with the last one if both have the same role."""
    last = formed[-1] if formed else None
    if isinstance(message, HumanMessage) and isinstance(last, HumanMessage):
        formed[-1] = HumanMessage(_joined(last.content, message.content))
    elif isinstance(message, AIMessage) and isinstance(last, AIMessage) and not last.tool_calls:
        merged = {"content": _joined(last.content, message.content)}
        formed[-1] = message.model_copy(update=merged)
    else:
        if isinstance(message, AIMessage) and (last is None or isinstance(last, SystemMessage)):
            # The oldest messages may have been left out, but the user must speak first.
            formed.append(HumanMessage(_BEGINNING_LEFT_OUT))
        formed.append(message)


def _append_context(formed: list[BaseMessage], text: str) -> None:
    last = formed[-1] if formed else None
    if isinstance(last, ToolMessage):
        formed[-1] = last.model_copy(update={"content": _joined(last.content, text)})
    else:
        _append(formed, HumanMessage(text))


def _context(texts: Sequence[str]) -> str:
    inside = without_tokens("\n\n".join(texts), (CONTEXT,))
    return f"<{CONTEXT}>\n{inside}\n</{CONTEXT}>"


def _joined(first: Any, second: Any) -> Any:
    """Two contents, of which either may consist of parts, such as images."""
    if not first or not second:
        return first or second
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    before, after = _parts(first), _parts(second)
    if before[-1].get("type") == after[0].get("type") == "text":
        before[-1:] = [{**before[-1], "text": f"{before[-1]['text']}\n\n{after[0]['text']}"}]
        after = after[1:]
    return [*before, *after]


def _parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def without_tool_messages(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with tool results moved into the text of the preceding user message. If the model
    said something before it called tools, the results follow that in a user message."""
    plain: list[BaseMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            images = message.content[1:] if isinstance(message.content, list) else []
            _append_parts(plain, _of_result(message, [{"type": "text", "text": message.text}, *images]))
        elif isinstance(message, AIMessage) and message.tool_calls:
            if message.text:
                plain.append(AIMessage(message.text))
        else:
            plain.append(message)
    return plain


def _append_parts(messages: list[BaseMessage], parts: Sequence[Any]) -> None:
    """Add parts to the last message, which is the user's; parts that are only text become one text."""
    if all(part["type"] == "text" for part in parts):
        parts = [{"type": "text", "text": "\n".join(part["text"] for part in parts)}]
    last = messages.pop() if messages and isinstance(messages[-1], HumanMessage) else HumanMessage("")
    only = parts[0]["text"] if len(parts) == 1 else list(parts)
    messages.append(HumanMessage(_joined(last.content, only)))


Tool = BaseTool | dict[str, Any]
"""A tool of the service, or one in the form of OpenAI's API."""


def tool_schema(tool: Tool) -> dict[str, Any]:
    """Return a tool in the form of OpenAI's API."""
    if isinstance(tool, dict):
        return tool
    schema = convert_to_openai_tool(tool)
    for argument in schema["function"]["parameters"].get("properties", {}).values():
        if not argument.get("default"):
            argument.pop("default", None)
        alternatives = [each for each in argument.get("anyOf", ()) if each.get("type") != "null"]
        if len(alternatives) == 1:
            del argument["anyOf"]
            argument.update(alternatives[0])
    return schema


def limited(sampling: Sampling, most_tokens: int | None) -> Sampling:
    """Return the parameters with the answer's length limited to `most_tokens`, if there is a limit."""
    if most_tokens is None:
        return sampling
    limit = Sampling(**sampling)
    if "max_tokens" in limit:
        limit["max_tokens"] = min(limit["max_tokens"], most_tokens)
    if "max_completion_tokens" in limit or "max_tokens" not in limit:
        limit["max_completion_tokens"] = min(limit.get("max_completion_tokens", most_tokens), most_tokens)
    return limit


def call_options(sampling: Sampling, *, responses_api: bool) -> dict[str, Any]:
    """Return the options of a LangChain call; parameters that the API does not have are left out."""
    options: dict[str, Any] = {
        name: value for name, value in sampling.items() if name in (RESPONSES if responses_api else ALL)
    }
    if not responses_api and "max_tokens" in options:
        # LangChain renames it to max_completion_tokens, which many servers do not know.
        options["extra_body"] = {"max_tokens": options.pop("max_tokens")}
    return options


def refused_parameter(message: str, sent: Collection[str], *, limits_only: bool = False) -> str | None:
    """Return the parameter that an endpoint's message is about; None if it names none that was sent. With
    `limits_only`, only a limit of the answer's length may be meant."""
    names = [name for name in sent if not limits_only or name in LENGTHS]
    named = {name: _MENTIONS.get(name) or re.compile(rf"\b{name}\b", re.IGNORECASE) for name in names}
    places = {name: found.start() for name, pattern in named.items() if (found := pattern.search(message))}
    return min(places, key=places.__getitem__, default=None)


_UNSUPPORTED = re.compile(
    r"unsupported|unrecogni|unknown|unexpected|\bextra|deprecated|cannot both|不支持|未知"
    r"|(?:\bnot|n't|\bno longer|\bonly) (?:be )?"
    r"(?:support|permit|allow(?!ed to exceed)|accept|recogni|available|implement)",
    re.IGNORECASE,
)


def is_unsupported(message: str) -> bool:
    """Whether an endpoint refuses a parameter itself, and not its value."""
    return bool(_UNSUPPORTED.search(message))


Option = Literal[
    "tools", "temperature", "response_format", "system_role", "stream_options", "reasoning", "bare_calls"
]
"""Parts that can be left out of a request. Without the system role, its text goes to the user's first message.
`reasoning` is the model's own from earlier calls of the turn. `bare_calls` are calls without reasoning, such as
those of the service; they get an empty one if the part is left out."""


OPTION_OF: dict[RefusalTopic, Option] = {
    "tools": "tools",
    "temperature": "temperature",
    "schema": "response_format",
    "messages": "system_role",
    "stream_options": "stream_options",
    "reasoning": "reasoning",
}
"""The option of a request that a refusal is about."""
