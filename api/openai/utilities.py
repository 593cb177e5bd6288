"""Requests that are not conversation: clients ask the same model for titles, tags and follow-up questions.

The small model answers them; no user data are read or stored.
"""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from uuid_utils.compat import uuid7

from api.access import StartsTurns
from api.openai.client_message import ClientMessage, text_of
from api.openai.models import expert_of
from api.openai.turn_request import NOBODY, StartedTurn
from services.llm.chat_models import BACKGROUND_TEMPERATURE
from services.llm.token_estimates import count_tokens
from services.platform.metrics import UTILITY_REQUESTS
from services.platform.tracing import confidential
from state.events import TurnEvent
from state.turn import Sampling

TASK_HEADER = "X-OpenWebUI-Task"

_SUBJECT = r"(?:chat|conversation|dialog(?:ue)?)"
_PRODUCT = r"(?:titles?|topic names?|tags?|follow[- ]?up (?:questions|prompts)|emojis?|search quer(?:y|ies))"
_MAKE = r"(?:generate|create|provide|write|suggest|summari[sz]e|come up with|give|name)"
_INSTRUCTS = (
    re.compile(rf"\b{_MAKE}\b[^\n]{{0,120}}\b{_PRODUCT}\b[^\n]{{0,120}}\b{_SUBJECT}\b", re.IGNORECASE),
    re.compile(rf"\b{_MAKE}\b[^\n]{{0,80}}\b{_SUBJECT}\b[^\n]{{0,80}}\b{_PRODUCT}\b", re.IGNORECASE),
    re.compile(
        r"(?:生成|总结|概括|起|取|命名|提取)[^\n。]{0,40}(?:会话|对话|聊天)[^\n。]{0,40}(?:标题|主题|标签|题目)"
    ),
    re.compile(
        r"(?:会话|对话|聊天)[^\n。]{0,40}(?:生成|总结|概括|起|取|命名|提取)[^\n。]{0,40}(?:标题|主题|标签|题目)"
    ),
    re.compile(r"(?:生成|起|取)[^\n。]{0,20}(?:标题|题目|标签)[^\n。]{0,40}(?:会话|对话|聊天)"),
)
_NAMES = re.compile(r"\btitles?\b|\btopic names?\b|\btags?\b|标题|题目|主题|标签", re.IGNORECASE)
_TRANSCRIPT = re.compile(
    r"<chat_history>|<conversation>|<messages>|^[ \t]*(?:conversation|chat history|对话内容|聊天记录)[ \t]*[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_USER_LINE = re.compile(r"^[ \t]*(?:user|human|用户)[ \t]*[:：]", re.IGNORECASE | re.MULTILINE)
_ASSISTANT_LINE = re.compile(r"^[ \t]*(?:assistant|ai|助手)[ \t]*[:：]", re.IGNORECASE | re.MULTILINE)
_LONGEST_INSTRUCTION = 1500
"""Maximum number of characters of a system message that only asks for a title; an application's own prompt is
longer."""
_PROMPTS = (
    # NextChat: the topic of a conversation, and its compression
    "使用四到五个字直接返回这句话的简要主题",
    "使用四到五個字直接返回這句話的簡要主題",
    "please generate a four to five word title summarizing our conversation",
    "简要总结一下对话内容，用作后续的上下文提示",
    "简要总结一下你和用户的对话，用作后续的上下文提示",
    "簡要總結一下對話內容，用作後續的上下文提示",
    "簡要總結一下你和用戶的對話，用作後續的上下文提示",
    "summarize the discussion briefly in 200 words or less to use as a prompt for future context",
    "summarize our discussion briefly in 50 characters or less to use as a prompt for future context",
    # Chatbox: a name
    "based on the chat history, give this conversation a name",
    "name the conversation based on the chat records",
    # LobeChat: a title, a description
    "你是一名擅长会话的助理，你需要将用户的会话",
    "you are an assistant who is good at conversation. you need to summarize the user's conversation",
)
"""Beginnings, word for word, of the messages by which clients ask for something about a conversation."""
_TASK = re.compile(r"\A\s*###\s*Task:", re.IGNORECASE)


def is_utility(messages: Sequence[ClientMessage], headers: Mapping[str, str]) -> str | None:
    """Return how a request is recognised as not conversation (`header` or `template`); None = it is conversation.

    Such a request begins word for word as a known client's own prompt. Other requests are recognised by their form
    only if they ask for such a text and also carry a transcript, or if a system message asks for such a text about
    the conversation.
    """
    if headers.get(TASK_HEADER, "").strip():
        return "header"
    system = [text_of(each) for each in messages if each.role in {"system", "developer"}]
    if any(map(_is_prompt, [*system, *map(text_of, messages[-1:])])):
        return "template"
    rest = [each for each in messages if each.role not in {"system", "developer"}]
    if len(rest) > 1:
        # Some send the conversation itself, and as a last message what is wanted of it.
        return "template" if _asks(system) and _TASK.match(text_of(rest[-1])) else None
    said = text_of(rest[0]) if rest else ""
    if _TASK.match(said) and _has_transcript(said):
        return "template"
    if any(pattern.search(said) for pattern in _INSTRUCTS) and _has_transcript(said):
        return "template"
    return "template" if _asks(system) else None


def _is_prompt(text: str) -> bool:
    return " ".join(text[:_LONGEST_INSTRUCTION].split()).lower().startswith(_PROMPTS)


def _asks(texts: Sequence[str]) -> bool:
    """Whether a system message asks for a title or tags of the conversation, and for little else."""
    return any(
        _has_transcript(text) or (len(text) <= _LONGEST_INSTRUCTION and bool(_NAMES.search(text)))
        for text in texts
        if any(pattern.search(text) for pattern in _INSTRUCTS)
    )


def _has_transcript(text: str) -> bool:
    if _TRANSCRIPT.search(text):
        return True
    said = _USER_LINE.search(text)
    return said is not None and _ASSISTANT_LINE.search(text, said.end()) is not None


async def utility_turn(
    starter: StartsTurns, model: str, messages: Sequence[ClientMessage], sampling: Sampling, recognised_by: str
) -> StartedTurn:
    """Return the answer in the form of a turn that is stored nowhere.

    Raises:
        ModelNotFound: there is no such model.
        RateLimited: the caller has started too many turns.
        ModelFailed: the small model did not answer.
    """
    caller = await starter.caller_for(starter.caller.user_id or NOBODY)
    await expert_of(starter.services, caller.tenant_id, model)
    UTILITY_REQUESTS.labels(recognised_by).inc()
    confidential.set(True)  # it is about a conversation that may be temporary
    said = [_message(each) for each in messages if text_of(each)]
    if isinstance(said[-1], SystemMessage):  # a chat template wants to hear the user last
        said[-1] = HumanMessage(said[-1].content)
    options = Sampling(**sampling)
    temperature = options.pop("temperature", BACKGROUND_TEMPERATURE)
    answer = await starter.services.models.complete(said, temperature=temperature, sampling=options)
    used = sum(count_tokens(message.text) for message in said)
    usage = {"input_tokens": used, "output_tokens": count_tokens(answer), "cached_tokens": 0}
    return StartedTurn(caller.tenant_id, uuid7(), model, _events(answer, usage))


async def _events(answer: str, usage: dict[str, int]) -> AsyncGenerator[list[TurnEvent], None]:
    done = {"answer": answer, "sources": [], "usage": usage}
    yield [TurnEvent(1, "turn", {}), TurnEvent(2, "token", answer), TurnEvent(3, "done", done)]


def _message(message: ClientMessage) -> BaseMessage:
    kinds: dict[str, type[BaseMessage]] = {
        "assistant": AIMessage,
        "system": SystemMessage,
        "developer": SystemMessage,
    }
    return kinds.get(message.role, HumanMessage)(content=text_of(message))
