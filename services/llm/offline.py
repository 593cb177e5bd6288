"""The built-in offline model: it answers by quoting the prompt's context, and says so.

It exists so that newcomers see memory work without a key. It understands nothing and calls no tools: it finds the
sentences that share the rarest words with the question, and lists what is remembered about the user."""

import math
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from services.llm.request_form import OnText
from services.llm.rules import DATA, REMEMBERS, TEMPORARY
from services.llm.token_estimates import count_tokens
from services.text.elements import elements, without_elements
from services.text.language import Language, language_of, sentences
from services.text.questions import asks, asks_to_be_told, is_about_oneself, is_small_talk, states_something
from services.text.tokenizer import simplified, terms

_PIECE = re.compile(r"(?<!\s)\s*(?:[^\s\u3400-\u9fff]+|[\u3400-\u9fff]{1,4})")

_CONTEXT = "context"
"""Tag around the service's addition to the user's message, used if only the user and the model may speak."""
_DATA = ("memory", "documents")
_ID = re.compile(r" ?[（(][0-9a-f]{8}-[0-9a-f-]{27}[)）]")
"""Id of a memory that may have been meant: a model can name it, a reader cannot."""
_CHANGES = "memory_changes"
_DATE = r"\[\d{4}-\d\d-\d\d(?: \d\d:\d\d)?\]"
_RECALLED = re.compile(rf"^- {_DATE} (?:[^:：\n]{{1,40}}: )?")
"""Time and speaker that precede a recalled message of another conversation."""
_OWN_ANSWER = re.compile(rf"^(?:- {_DATE}| ) (?:You|你): .*$", re.MULTILINE)
"""A recalled answer of the expert itself."""
_DAY = re.compile(
    r"^(?:- \[(?:[A-Z][a-z]+day, [\d-]+|\d+年\d+月\d+日星期.)\] |  (?=\d\d:\d\d ))"
    r"(?:\d\d:\d\d (?!(?:You|你): )[^:：\n]{1,40}: )?(?!\d\d:\d\d )(.+)$",
    re.MULTILINE,
)
"""The record of a day that the question refers to; of a verbatim record, only what the user said."""
_OWN_THEN = re.compile(r"^(?:- \[.*?\] |  )\d\d:\d\d (?:You|你): .*$", re.MULTILINE)
_ABOUT_DAYS = re.compile(r"^(?:The user refers to|用户提到的是).*$", re.MULTILINE)
"""The line that precedes the records of days; it answers nothing."""

_QUOTES = 2
_MOST_LISTED = 12
_ABOUT_THE_USER = re.compile(
    r"\b(?:know|remember|learned|learnt|stored)\b.{0,20} (?:about|on) me\b(?: so far|,? please)?\W*$"
    r"|\bwho am i\W*$|\b(?:know|remember) me\W*$|\bin your memory\W*$"
    r"|(?:知道|了解|记得)我(?:些|的情况|哪些)?(?:什么|多少|事情?|吗)?(?:事情?|吗|呀|呢)?\W*$"
    r"|对我(?:的了解|了解多少)\W*$|关于我\W|我是谁\W*$",
    re.IGNORECASE,
)

_TEXTS: dict[Language, dict[str, str]] = {
    "zh": {
        "quote": "（内置离线模型，只会引用已有的内容）最相关的是：{quotes}",
        "tool": "（内置离线模型）工具的结果：{quotes}",
        "nothing": "（内置离线模型，只会引用已有的内容；要更多，请在控制台的“模型”页面选择模型，"
        "或设置 ANAMNESIS_LLM_MODEL）"
        "在我看到的内容里没有找到相关的信息。",
        "noted": "（内置离线模型：没有接入大模型，请在控制台的“模型”页面选择，或设置 ANAMNESIS_LLM_MODEL。）"
        "收到，已记在这段对话里。",
        "passing": "（内置离线模型：没有接入大模型，请在控制台的“模型”页面选择，或设置 ANAMNESIS_LLM_MODEL。）"
        "收到；这里没有开启记忆，不会保存。",
        "changed": "（内置离线模型）{changes}",
        "known": "（内置离线模型）关于你，我记得：\n{facts}",
        "stranger": "（内置离线模型）我还不知道关于你的事。说些什么吧，以后的对话里我会记得。",
        "unknown": "（内置离线模型）我不知道关于你的事；这里没有开启记忆。",
        "small talk": "我是内置离线模型：能记住你说的话，并在你问起时引用。"
        "要真正对话，请在控制台的“模型”页面选择模型，或设置 ANAMNESIS_LLM_MODEL。",
        "related": "与此有关的内容：{quotes}",
        "mark": "「{}」",
    },
    "en": {
        "quote": "(Built-in offline model: I can only quote what I was given.) The closest I have: {quotes}",
        "tool": "(Built-in offline model.) The tool says: {quotes}",
        "nothing": "(Built-in offline model: I can only quote what I was given; for more, choose a model on the "
        "console's screen Model, or set ANAMNESIS_LLM_MODEL.) I found nothing about that.",
        "noted": "(Built-in offline model: no language model is configured; choose one on the console's screen "
        "Model, or set ANAMNESIS_LLM_MODEL.) Noted; it is stored in this conversation.",
        "passing": "(Built-in offline model: no language model is configured; choose one on the console's screen "
        "Model, or set ANAMNESIS_LLM_MODEL.) Read; memory is off here, and nothing is kept.",
        "changed": "(Built-in offline model.) {changes}",
        "known": "(Built-in offline model.) This is what I remember about you:\n{facts}",
        "stranger": "(Built-in offline model.) I know nothing about you yet. Tell me something, and I will "
        "remember it in later conversations.",
        "unknown": "(Built-in offline model.) I know nothing about you; memory is off here.",
        "small talk": "I am the built-in offline model: I remember what you tell me and quote it when you "
        "ask. For real conversations choose a model on the console's screen Model, or set ANAMNESIS_LLM_MODEL.",
        "related": "What I have on it: {quotes}",
        "mark": "“{}”",
    },
}


class OfflineChatModel(BaseChatModel):
    """A deterministic extractive chat model."""

    NAME: ClassVar[str] = "offline-extractive"

    @property
    def _llm_type(self) -> str:
        return self.NAME

    def _generate(
        self, messages: list[BaseMessage], *_: Any, on_text: OnText | None = None, **__: Any
    ) -> ChatResult:
        reply = _reply(messages)
        list(_pieces(reply.text, on_text))
        return ChatResult(generations=[ChatGeneration(message=reply)])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        return self._generate(messages, **options)

    async def _astream(
        self, messages: list[BaseMessage], *_: Any, on_text: OnText | None = None, **__: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        reply = _reply(messages)
        for piece in _pieces(reply.text, on_text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", usage_metadata=reply.usage_metadata))


def _reply(messages: list[BaseMessage]) -> AIMessage:
    content = reply_to(read_prompt(messages))
    size = sum(count_tokens(message.text) for message in messages)
    answer = count_tokens(content)
    usage = UsageMetadata(input_tokens=size, output_tokens=answer, total_tokens=size + answer)
    return AIMessage(content, usage_metadata=usage)


def _pieces(text: str, on_text: OnText | None) -> Iterator[str]:
    """Pass the text on a word, or a few Chinese characters, at a time, and yield the same."""
    pieces = _PIECE.findall(text)
    for piece in pieces if "".join(pieces) == text else filter(None, [text]):
        if on_text:
            on_text(piece)
        yield piece


@dataclass(frozen=True)
class OfflinePrompt:
    """The parts of a prompt that an answer can quote."""

    question: str
    facts: Sequence[str]
    """Lines on the user from core memory, such as `name: Ada`."""
    said: Sequence[str]
    """The user's statements in other conversations, and in this one before the question."""
    days: Sequence[str]
    """Records of the days that the question asks about."""
    changes: Sequence[str]
    """Changes of memory that the turn has made already."""
    results: Sequence[str]
    """Results of tools since the question."""
    sentences: Sequence[str]
    """Sentences of all of these except days and results, and of the documents."""
    stored: bool = True
    """Whether the conversation is kept."""
    remembers: bool = True
    """Whether what the user says is known in later conversations."""


def read_prompt(messages: Sequence[BaseMessage]) -> OfflinePrompt:
    """Read a prompt by its structure: roles, tags and the marks of lines."""
    last = max((i for i, message in enumerate(messages) if isinstance(message, HumanMessage)), default=0)
    asked = messages[last].text if messages and isinstance(messages[last], HumanMessage) else ""
    spoken = max((i for i, m in enumerate(messages) if isinstance(m, HumanMessage | AIMessage)), default=-1)
    first = 1 if messages and isinstance(messages[0], SystemMessage) else 0
    systems: list[str] = [message.text for message in messages if isinstance(message, SystemMessage)]
    systems += _inside(asked, _CONTEXT)
    memory = [each.inside for text in systems for each in elements(text, *_DATA) if each.name == "memory"]
    # The first system message holds the expert's instructions, in one form also memory.
    notes = [_quotable(text, tagged_only=number < first) for number, text in enumerate(systems)]
    said = [message.text for message in messages[first:last] if isinstance(message, HumanMessage)]
    context = [
        _ABOUT_DAYS.sub("", _DAY.sub("", _OWN_THEN.sub("", _OWN_ANSWER.sub("", text)))) for text in [*notes, *said]
    ]
    return OfflinePrompt(
        question=without_elements(asked, _CONTEXT).strip(),
        facts=[fact for block in memory for fact in _facts(block)],
        said=[
            *(
                _RECALLED.sub("", line)
                for block in memory
                for line in _OWN_ANSWER.sub("", block).splitlines()
                if _RECALLED.match(line)
            ),
            *said,
        ],
        days=[day for text in systems for day in _DAY.findall(text)],
        changes=[
            _ID.sub("", line)
            for text in systems
            for block in _inside(text, _CHANGES)
            for line in block.splitlines()
            if line
        ],
        results=[message.text for message in messages[spoken + 1 :] if isinstance(message, ToolMessage)],
        sentences=list(dict.fromkeys(sentence for text in context for sentence in _sentences(text))),
        stored=not _says(systems, TEMPORARY),
        remembers=_says(systems, REMEMBERS) or not _says(systems, DATA),
    )


def _says(systems: Sequence[str], rule: Mapping[Language, str]) -> bool:
    return any(each in text for text in systems for each in rule.values())


def _inside(text: str, *names: str) -> list[str]:
    return [each.inside.removeprefix("\n") for each in elements(text, *names)]


def _quotable(text: str, *, tagged_only: bool) -> str:
    blocks = _inside(text, *_DATA)
    if blocks or tagged_only:
        return "\n".join(blocks)
    # The note about memory changes is no answer to the question.
    return "\n\n".join(part for part in text.split("\n\n") if not _inside(part, _CHANGES))


def _facts(block: str) -> Iterator[str]:
    """Return the items below the headings of a block; topics and recalled items have none."""
    below_heading = False
    for line in block.splitlines():
        if line.startswith("- "):
            if below_heading and not _RECALLED.match(line):
                yield line.removeprefix("- ").strip()
        elif line.strip():
            below_heading = line.rstrip().endswith((":", "："))


def _sentences(text: str) -> Iterator[str]:
    for sentence in sentences(text):
        if stripped := _RECALLED.sub("", sentence.text.strip()).removeprefix("- "):
            yield stripped


def reply_to(prompt: OfflinePrompt) -> str:
    """Return the answer to a prompt."""
    language = language_of([prompt.question])
    texts = _TEXTS[language]
    if prompt.results:
        return texts["tool"].format(quotes=_quoted([*prompt.days[:_QUOTES], *prompt.results], texts))
    question = simplified(prompt.question.strip())
    asked = asks(question, language) or asks_to_be_told(question.lower())
    quotes = _closest(prompt.question, prompt.sentences) if asked else []
    if prompt.changes:
        also = [texts["related"].format(quotes=_quoted(quotes, texts))] if quotes else []
        return " ".join([texts["changed"].format(changes=" ".join(prompt.changes)), *also])
    if _ABOUT_THE_USER.search(question):
        known = [*prompt.facts, *filter(states_something, prompt.said)]
        return _listed(known, texts) if known or (prompt.stored and prompt.remembers) else texts["unknown"]
    if not asked:
        kept = "small talk" if is_small_talk(question) else "noted"
        return texts[kept if prompt.stored else "passing"]
    quotes = quotes or list(prompt.days[:_QUOTES])
    if not quotes and prompt.facts and is_about_oneself(question, language):
        return _listed(prompt.facts, texts)
    return texts["quote"].format(quotes=_quoted(quotes, texts)) if quotes else texts["nothing"]


def _closest(question: str, sentences: Sequence[str]) -> list[str]:
    """The sentences that share the rarest words with a question."""
    told = [sentence for sentence in sentences if states_something(sentence)]
    seen = Counter(word for sentence in told for word in set(terms(sentence)))
    wanted = set(terms(question))

    def score(sentence: str) -> float:
        return sum(math.log(1 + len(told) / seen[word]) for word in wanted & set(terms(sentence)))

    scored = [(score(sentence), index, sentence) for index, sentence in enumerate(told)]
    best = sorted((row for row in scored if row[0] > 0), key=lambda row: (-row[0], -row[1]))[:_QUOTES]
    return [row[2] for row in best if row[0] >= best[0][0] / 2]


def _listed(known: Sequence[str], texts: dict[str, str]) -> str:
    facts = "\n".join(f"- {fact}" for fact in list(dict.fromkeys(known))[:_MOST_LISTED])
    return texts["known"].format(facts=facts) if facts else texts["stranger"]


def _quoted(quotes: Sequence[str], texts: dict[str, str]) -> str:
    return " ".join(texts["mark"].format(quote) for quote in quotes)
