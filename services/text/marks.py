"""Marks that mean something to a model or its server: tags of the prompt, and tokens of chat templates.

Data quoted in a prompt may hold them plainly, in full width, or with invisible characters between. A mark is
broken by replacing its first character; the rest of the text stays as it is.
"""

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache

_BROKEN = {"<": "‹", "[": "("}
_BEGIN = re.compile(r"[<\[＜﹤［〈](?![0-9])")
"""Possible beginning of a mark. Dates do not match, and neither do most texts."""
_CHANGES = re.compile(r"[^\x00-\x7f\u4e00-\u9fff]")
"""Character that may have a plainer form, or be invisible."""
_LOOKS = {"〈": "<", "〉": ">", "▁": "_"}
_INVISIBLE = frozenset({"Cf", "Cc", "Mn", "Me", "Cn", "Co"})
_LONGEST = 64
"""Maximum length of a mark in characters, including invisible characters in it."""

# `<|im_end|>`, DeepSeek's `<｜User｜>`, Llama's `[/INST]` and `<</SYS>>`, Gemma's `<end_of_turn>`, GLM's `[gMASK]`
_TOKENS = (
    r"<\|[^<>|\n]{1,40}\|?>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|IMG|gMASK)\]"
    r"|<</?SYS>>|</?(?:start_of_turn|end_of_turn|start_of_image|bos|eos|pad|unk|sop|eop)>"
)
_TOKENS_OF_DATA = r"</?(?:s|think|thinking|tool_call|tool_calls|tool_response|function_calls|invoke)>"
"""Tokens that are broken only in data: a user may well write them when talking about HTML or models."""


def one_line(text: str) -> str:
    """Return a label, such as a name, on one line: line breaks in it could forge lines of the prompt."""
    return " ".join(text.split())


def without_tokens(text: str, tags: Collection[str] = ()) -> str:
    """Return the words of a user with the tokens of chat templates, and these tags of the prompt, broken."""
    return _broken(text, _pattern(tuple(tags), False))


def without_marks(text: str, tags: Collection[str]) -> str:
    """Return data with every mark broken that a model or its server could take for more than text."""
    return _broken(text, _pattern(tuple(tags), True))


@lru_cache(maxsize=8)
def _pattern(tags: tuple[str, ...], of_data: bool) -> re.Pattern[str]:
    named = [rf"<(?=\s*(?:/\s*)?(?:{'|'.join(tags)})\b)"] if tags else []
    return re.compile("|".join([_TOKENS, *([_TOKENS_OF_DATA] if of_data else []), *named]), re.IGNORECASE)


def _broken(text: str, pattern: re.Pattern[str]) -> str:
    if not _BEGIN.search(text):
        return text
    if text.isascii():
        return pattern.sub(lambda found: _BROKEN[found[0][0]] + found[0][1:], text)
    folded, places = _folded(text)
    pieces: list[str] = []
    at = 0
    for found in pattern.finditer(folded):
        place = places[found.start()]
        pieces += [text[at:place], _BROKEN[found[0][0]]]
        at = place + 1
    return "".join([*pieces, text[at:]])


def _folded(text: str) -> tuple[str, list[int]]:
    """Return the plain form of a text, without invisible characters, and the place of each character in it.
    Only the characters soon after a possible beginning of a mark are converted."""
    folded: list[str] = []
    places: list[int] = []
    at = 0
    near = range(0)
    for begin in [found.start() for found in _BEGIN.finditer(text)]:
        near = range(max(begin, near.stop), min(begin + _LONGEST + 1, len(text)))
        for found in _CHANGES.finditer(text, near.start, near.stop):
            place = found.start()
            if (plain := _plain(found[0])) != found[0]:
                folded += [text[at:place], plain]
                places += [*range(at, place), *[place] * len(plain)]
                at = place + 1
    folded.append(text[at:])
    places += range(at, len(text))
    return "".join(folded), places


@lru_cache(maxsize=8_192)
def _plain(character: str) -> str:
    """Return the plain form of a character; empty for an invisible one."""
    if character.isascii():
        return character
    if unicodedata.category(character) in _INVISIBLE:
        return ""
    return _LOOKS.get(character) or unicodedata.normalize("NFKC", character)
