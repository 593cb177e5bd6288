"""Quick tools: questions that are recognised in a message without a model.

A quick tool runs though nobody has decided it, so a message is taken for such a question only when it says nothing
else: each of its sentences, without greetings and politeness, must match a pattern of a tool as a whole, or ask
about past conversation. What is reported, quoted, or asked beside something else is left to the model.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from services.text.tokenizer import simplified

LONGEST_MESSAGE = 200
"""Longest message, in characters; longer ones ask for more."""
MOST_CALLS = 5

Arguments = Callable[[re.Match[str]], Sequence[dict[str, Any]]]


@dataclass(frozen=True)
class QuickMatch:
    """How a tool recognises a question.

    A pattern has to match a whole sentence. What it is matched against has its greetings and politeness removed,
    no mark at its end, half-width forms, single spaces and simplified Chinese characters; case does not matter.
    """

    patterns: Sequence[str]
    arguments: Arguments
    """Reads the arguments of each call from a match; empty = the sentence does not ask for the tool."""

    @cached_property
    def _compiled(self) -> list[re.Pattern[str]]:
        return [re.compile(pattern, re.IGNORECASE) for pattern in self.patterns]

    def calls(self, sentence: str) -> list[dict[str, Any]]:
        """The arguments of the calls that a sentence asks for."""
        for pattern in self._compiled:
            if (match := pattern.fullmatch(sentence)) and (found := self.arguments(match)):
                return list(found)
        return []


@dataclass(frozen=True)
class QuickQuestion:
    """A call of a quick tool."""

    name: str
    arguments: dict[str, Any]


def calls_in(
    message: str, tools: Sequence[tuple[str, QuickMatch]], besides: Callable[[str], bool] = lambda _: False
) -> list[QuickQuestion]:
    """The calls that a message asks for, in the order of the tools; empty if it says anything else.

    `besides` knows sentences that are answered otherwise, so that they may stand beside such questions.
    """
    found: list[QuickQuestion] = []
    for sentence in _sentences(message):
        asked = _asked(sentence, tools) or _asked_in_parts(sentence, tools, besides)
        if not asked and not besides(sentence):
            return []
        found += asked
    found = [each for place, each in enumerate(found) if each not in found[:place]]
    order = {name: place for place, (name, _) in enumerate(tools)}
    return sorted(found, key=lambda each: order[each.name]) if len(found) <= MOST_CALLS else []


def _asked(sentence: str, tools: Sequence[tuple[str, QuickMatch]]) -> list[QuickQuestion]:
    return [QuickQuestion(name, arguments) for name, quick in tools for arguments in quick.calls(sentence)]


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
    r"(?:[ ,]{0,8}(?:please|pls|thanks?(?: you)?(?: very much)?|for me|谢谢[你您啦]?|多谢|[呀啊哦噢嘛哈]))*$",
    re.IGNORECASE,
)
