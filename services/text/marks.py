"""Marks that give a text a meaning to a model or its server: tags of the prompt, and tokens of chat templates.

Data that a prompt quotes may hold them, written plainly, in full width, or with invisible characters between. They
are broken by replacing their first character; the rest of the text stays as it is.
"""

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache

_BROKEN = {"<": "‹", "[": "("}
_BEGIN = re.compile(r"[<\[＜﹤［〈](?![0-9])")
"""Possible beginning of a mark, unlike a date; most texts have none of it."""
_CHANGES = re.compile(r"[^\x00-\x7f\u4e00-\u9fff]")
"""Characters that may have another plain form, or none."""
_LOOKS = {"〈": "<", "〉": ">", "▁": "_"}
_INVISIBLE = frozenset({"Cf", "Cc", "Mn", "Me", "Cn", "Co"})
_LONGEST = 64
"""Characters of the longest mark, with what may be hidden in it."""

# `<|im_end|>`, DeepSeek's `<｜User｜>`, Llama's `[/INST]` and `<</SYS>>`, Gemma's `<end_of_turn>`, GLM's `[gMASK]`
_TOKENS = (
    r"<\|[^<>|\n]{1,40}\|?>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|IMG|gMASK)\]"
    r"|<</?SYS>>|</?(?:start_of_turn|end_of_turn|start_of_image|bos|eos|pad|unk|sop|eop)>"
)
_TOKENS_OF_DATA = r"</?(?:s|think|thinking|tool_call|tool_calls|tool_response|function_calls|invoke)>"
"""Tokens that a user may well write, about HTML or about models; data may not."""


def one_line(text: str) -> str:
    """Return a label, such as a name, on one line: its line breaks would forge lines of a prompt."""
    return " ".join(text.split())


def without_tokens(text: str, tags: Collection[str] = ()) -> str:
    """Return what a user says with tokens of chat templates broken, and these tags of the prompt."""
    return _broken(text, _pattern(tuple(tags), False))


def without_marks(text: str, tags: Collection[str]) -> str:
    """Return data with everything broken that a model or its server could take for more than text."""
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
    """The text in its plain form, without what cannot be seen, and the place of each of its characters.

    Only what comes soon after the beginning of a possible mark is looked at closely.
    """
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
    """Return a character in its plain form; empty = it cannot be seen."""
    if character.isascii():
        return character
    if unicodedata.category(character) in _INVISIBLE:
        return ""
    return _LOOKS.get(character) or unicodedata.normalize("NFKC", character)
