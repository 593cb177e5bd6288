"""A tool, its limits, and how a message calls it without a model."""

import inspect
import re
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Any

from langchain_core.tools import ArgsSchema, BaseTool, ToolException, tool

from services.memory.archive import Archive
from services.memory.changes import Changes
from services.memory.core.store import CoreMemory
from services.memory.proposals.settling import Proposals
from services.memory.removal.undo import Undo
from services.platform.outgoing import OutgoingHttp
from services.promises.promises import Promises
from services.text.tokenizer import simplified
from state.prompt import Feature

LONGEST_MESSAGE = 200
"""Maximum characters of a message that may call a tool without a model; a longer one asks for more than that."""
MOST_CALLS = 5

Arguments = Callable[[re.Match[str]], Sequence[dict[str, Any]]]

USUAL_PRIORITY = 100


class WithImages(str):
    """Result of a tool with images that a model can be shown; the text has each in words."""

    images: Sequence[str] = ()


class Settled(str):
    """Result of a tool after which the model is not called again, because its answer is complete."""


@dataclass(frozen=True)
class QuickMatch:
    """How a tool recognises a question.

    A pattern has to match a whole sentence. What it is matched against has its greetings and politeness removed,
    no mark at its end, half-width forms, single spaces and simplified Chinese characters; case does not matter.
    """

    patterns: Sequence[str]
    arguments: Arguments
    """Reads the arguments of each call from a match; returns none if the sentence does not ask for the tool."""

    @cached_property
    def _compiled(self) -> list[re.Pattern[str]]:
        return [re.compile(pattern, re.IGNORECASE) for pattern in self.patterns]

    def calls(self, sentence: str) -> list[dict[str, Any]]:
        """The arguments of the calls that a sentence asks for."""
        for pattern in self._compiled:
            if (match := pattern.fullmatch(sentence)) and (found := self.arguments(match)):
                return list(found)
        return []


QuickQuestion = tuple[str, dict[str, Any]]
"""A tool's name and the arguments of one call."""


def calls_in(
    message: str, tools: Sequence[tuple[str, QuickMatch]], besides: Callable[[str], bool] = lambda _: False
) -> list[QuickQuestion]:
    """Return the calls that a message asks for, in the order of the tools; empty if it says anything else.

    `besides` recognises sentences that are answered in another way and may stand beside such questions.
    """
    found: list[QuickQuestion] = []
    for sentence in _sentences(message):
        asked = _asked(sentence, tools) or _asked_in_parts(sentence, tools, besides)
        if not asked and not besides(sentence):
            return []
        found += asked
    found = [each for place, each in enumerate(found) if each not in found[:place]]
    order = {name: place for place, (name, _) in enumerate(tools)}
    return sorted(found, key=lambda each: order[each[0]]) if len(found) <= MOST_CALLS else []


def _asked(sentence: str, tools: Sequence[tuple[str, QuickMatch]]) -> list[QuickQuestion]:
    return [(name, arguments) for name, quick in tools for arguments in quick.calls(sentence)]


def _asked_in_parts(
    sentence: str, tools: Sequence[tuple[str, QuickMatch]], besides: Callable[[str], bool]
) -> list[QuickQuestion]:
    """Split questions joined by a comma or “and”; empty unless each part is a question."""
    parts = [bare for part in _BETWEEN.split(sentence) if (bare := _bare(part))]
    asked = [_asked(part, tools) for part in parts]
    understood = all(calls or besides(part) for part, calls in zip(parts, asked, strict=True))
    return [each for calls in asked for each in calls] if len(parts) > 1 and understood else []


def _sentences(message: str) -> list[str]:
    """The sentences to read; empty if the message is too long or quotes something."""
    if len(message) > LONGEST_MESSAGE or _FOREIGN.search(message):
        return []
    text = simplified(unicodedata.normalize("NFKC", message)).replace("’", "'")
    lines = [" ".join(part.split()) for part in _END.split(text)]
    return [bare for line in lines if (bare := _bare(line))]


def _bare(sentence: str) -> str:
    """Remove mere politeness."""
    text = sentence.strip(" ,")
    return _AFTER.sub("", _BEFORE.sub("", text, count=1)).strip(" ,~")


# Signs of quotations, code and addresses.
_FOREIGN = re.compile(r'["“”„«»「」『』《》`<>{}\[\]|\\=#*@_]|://')
_END = re.compile(r"[?!。;\n]+|(?<!\.)\.+(?=\s|$)|…+")
_BETWEEN = re.compile(r",|\band (?=what|how|is|will|do|which)|(?=还有|另外|顺便)")
_BEFORE = re.compile(
    r"""(?:(?:
        (?:hi|hello|hey|ok|okay|please|pls|sorry|excuse\ me|by\ the\ way|btw|also|and|good\ (?:morning|evening))\b
        | (?:(?:can|could|would|will)\ you\ (?:please\ |kindly\ )?)?
          (?:tell\ me|let\ me\ know|show\ me|give\ me|check|look\ up|find\ out)\b
        | (?:do\ you\ know|any\ idea|i\ wonder|i'm\ wondering|i(?:'d\ like|\ want|\ would\ like)\ to\ know)\b
        | 你好|您好|嗨|哈喽|早上好|早安|下午好|晚上好|请问一下|请问|劳驾|麻烦你?|(?:我?想)?问一?下|我?想(?:知道|问)
        | (?:能不能|可不可以|可以|能|请)?(?:帮我|帮忙|给我|告诉我|跟我说)
          (?:查询?一?下|查查|查询?|看一?下|看看|看|说说)?
        | 查询?一?下|查查|查询|看一?下|看看|你?知道|请|那么|那(?=,)|顺便|另外|还有|以及
    )[\ ,:啊呀]*)*""",
    re.IGNORECASE | re.VERBOSE,
)
_AFTER = re.compile(
    r"(?:[ ,]{0,8}(?:please|pls|thanks?(?: you)?(?: very much)?|for me|谢谢[你您啦]?|多谢|[呀啊哦噢嘛哈])){0,9}$",
    re.IGNORECASE,
)


class NotConnected(ToolException):
    """The user has no account at a tool's server, or has to agree again; carries the address at which they can."""

    def __init__(self, server: str, address: str, tool: str) -> None:
        super().__init__(
            f"The user's account at {server} is not connected. Ask them to open this address in their browser, to "
            f"agree there, and then to ask again: {address} If their browser shows them a code, call {tool} "
            "with it."
        )
        self.connect = {"server": server, "url": address}


@dataclass(frozen=True)
class ToolServices:
    """Services that tools may use. The context of the run decides whose data a tool reads and changes, its
    arguments never do."""

    core_memory: CoreMemory | None = None
    """None = core memory is switched off."""
    changes: Changes | None = None
    """None = memory is switched off."""
    proposals: Proposals | None = None
    """None = changes never wait for the user."""
    files: bool = False
    """Whether what users say is filed without a tool."""
    undo: Undo | None = None
    """Restores what was left out of memory; None = it cannot be restored."""
    archive: Archive | None = None
    """None = episodes are switched off."""
    promises: Promises | None = None
    http: OutgoingHttp | None = None
    """HTTP client for tools that call other servers; None = no such tools."""
    weather_url: str | None = None
    """Base address of an Open-Meteo forecast API; None = no weather."""
    weather_geocoding_url: str | None = None
    """Base address of its geocoding API; None = the forecast address."""


@dataclass(frozen=True)
class RegisteredTool:
    """A tool and its limits. Name, description and arguments are those of the LangChain tool."""

    tool: BaseTool
    timeout_s: float = 10.0
    quick: QuickMatch | None = None
    """Questions that call this tool without a model; None = none."""
    feature: Feature | None = None
    """The feature it belongs to; experts without the feature lack the tool. None = no feature."""
    offered: bool = True
    """Whether models are offered it by default, or only if a setting names it."""
    alone: bool = False
    """Whether it changes memory. Other calls of the same step wait for it, because they may read the change;
    temporary turns do not offer it."""
    experts: frozenset[str] | None = None
    """Names of the experts who have it; None = all."""
    asks: bool = False
    """Whether the user has to agree to each call first."""
    priority: int = USUAL_PRIORITY
    """Lower comes first: in the list that the model is offered, and among the quick calls of a message. Tools of
    one priority stand in the order of their names."""

    @cached_property
    def takes_runtime(self) -> bool:
        """Whether the tool asks for the run's identity, in a parameter named `runtime`."""
        function = getattr(self.tool, "coroutine", None) or getattr(self.tool, "func", None)
        return function is not None and "runtime" in inspect.signature(function).parameters

    without_filing: BaseTool | None = None
    """The tool of an expert for whom nothing is filed; None = the same."""

    @property
    def name(self) -> str:
        """The name by which the model calls it."""
        return self.tool.name


_SCHEMAS: dict[CodeType, ArgsSchema | None] = {}


def service_tool(function: Callable[..., Awaitable[str]]) -> BaseTool:
    """Make a LangChain tool of a function that is defined once for each `ToolServices`.

    Pydantic takes about 10 ms to build a schema of arguments that include a `ToolRuntime`. It is built once per
    process and kept by the function's code, which all its definitions share.
    """
    made = tool(function, args_schema=_SCHEMAS.get(function.__code__))
    _SCHEMAS[function.__code__] = made.args_schema
    return made
