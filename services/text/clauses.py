"""A message as clauses: which state something of the one who says them, and which only ask, suppose or quote."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from services.text.sentences import SEMICOLONS, sentences

_LONGEST = 2000
"""Characters of a message that are looked at."""

_QUOTED = re.compile(
    r"“[^“”]{3,}”|\"[^\"]{3,}\"|「[^「」]{3,}」|(?<!\w)'[^']{12,}'(?!\w)|```.*?```|`[^`]*`", re.DOTALL
)
_HIDDEN = "\ue000"

_ABOUT_A_TEXT = re.compile(
    r"^(?:(?:please|could you|can you|can you please|请|请你|麻烦你?|帮我|请帮我)\s*)*"
    r"(?:translate|proofread|rephrase|paraphrase|rewrite|correct|summari[sz]e|翻译|改写|润色|校对|造句|缩写|"
    r"扩写|总结)"
    r"|(?:翻译成|译成|翻成|译为|用\S{1,6}怎么说|怎么翻译)|\bhow do (?:you|i) say\b|\bin (?:french|german|"
    r"chinese|english)\?$",
    re.IGNORECASE,
)
"""Marks a message as a text to work on, in which users say nothing about themselves."""

_WRITES = re.compile(
    r"^(?:(?:please|could you|can you|请|请你|麻烦你?|帮我|请帮我|给我|为我)\s*)*"
    r"(?:(?:write|draft|compose|make up|tell me a story|give me an example)\b|(?:写|编|起草|拟|讲)(?:一|个|封|"
    r"篇|首|段))",
    re.IGNORECASE,
)
"""Marks a sentence as saying what is to be written."""

_COMMA = re.compile(
    r"[,，—]+|\s{1,8}-\s{1,8}|\s{1,8}(?:and|but|so|because|yet)\s{1,8}(?=(?:i|i'm|i've|my|we|now)\b)"
    r"|(?<=[\u3400-\u9fff])(?:但是|不过(?!敏)|可是|而且|所以|并且|因此|但)(?=[\u3400-\u9fff])",
    re.IGNORECASE,
)
_LEADING = re.compile(
    r"^(?:(?:and|but|so|also|well|oh|yes|no|hi|hello|hey|actually|honestly|anyway|by the way|btw|ok|okay|"
    r"you know|fyi|please note that|just so you know|for the record|remember that|note that|because|"
    r"now|these days|recently|lately|please remember that|please remember|since)\b[\s:]*|"
    r"(?:其实|对了|那|嗯+|哦|啊|好的|说起来|话说|顺便说一下|顺便|另外|而且|因为|所以|但是|不过|可是|但|"
    r"请记住|记住|帮我记住|跟你说|告诉你|说实话|老实说|你知道|最近|现在|如今|目前|今年|后来)[\s:：]*)+",
    re.IGNORECASE,
)

_ASKS_ENGLISH = re.compile(
    r"^(?:what|when|where|which|who|whom|whose|why|how|is|are|was|were|do|does|did|can|could|will|would|should|"
    r"shall|has|have|had|may|am|tell me|remind me|explain|any|isn't|aren't|don't i|didn't|what's|who's|"
    r"where's)\b"
)
_ASKS_CHINESE = re.compile(
    r"吗$|呢$|么$|什么|哪[里个些儿家位部种年天]|谁|几[点个岁号次]|多少|多大|多久|怎么|怎样|如何|为何|为什么|"
    r"是不是|有没有|"
    r"能不能|可不可以|要不要|该不该|会不会|来着"
)
_SUPPOSES = re.compile(
    r"^(?:if|suppose|supposing|imagine|unless|whether|in case|let's say|assume|assuming|pretend)\b"
    r"|^(?:要是|如果|假如|假设|万一|比如|比方说|倘若|若是|就算|即使|想象一下|扮演)",
)


@dataclass(frozen=True)
class Clause:
    """A clause that states something."""

    text: str
    """As it was said, without what introduces it (by the way, 对了)."""
    folded: str
    """The same in lower case, with ASCII apostrophes."""


def statements(message: str) -> list[Clause]:
    """The clauses of a message that state something; what asks, supposes, quotes, or is to be written is left "
    "out."""
    text = unicodedata.normalize("NFKC", message[:_LONGEST]).replace("’", "'").strip()
    if _ABOUT_A_TEXT.search(text):
        return []
    quotes: list[str] = []
    masked = _QUOTED.sub(lambda found: _hide(found.group(), quotes), text)
    return [_clause(part, quotes) for part in _stating(masked)]


def closes_with_question(message: str) -> bool:
    """Whether the last thing a message says is a question, with or without its mark."""
    text = unicodedata.normalize("NFKC", message[-_LONGEST:]).replace("’", "'").strip()
    last = next((sentence for sentence in reversed(sentences(text, SEMICOLONS)) if sentence.text.strip()), None)
    if last is None or last.asks:
        return last is not None
    pieces = [piece for piece in _COMMA.split(last.text.strip(".!。！;；\n ")) if piece.strip()]
    folded = _LEADING.sub("", pieces[-1].strip()).casefold() if pieces else ""
    return bool(_ASKS_ENGLISH.search(folded) or _ASKS_CHINESE.search(folded))


def _stating(text: str) -> Iterator[str]:
    for sentence in sentences(text, SEMICOLONS):
        whole = sentence.text.rstrip(".!?。！？;；\n ").strip()
        if not whole or _WRITES.search(whole):
            continue
        parts = [part for part in (_LEADING.sub("", piece.strip()) for piece in _COMMA.split(whole)) if part]
        for place, part in enumerate(parts):
            folded = part.casefold()
            if _SUPPOSES.search(folded):  # what follows from it is supposed as well
                break
            if (
                (sentence.asks and place == len(parts) - 1)
                or _ASKS_ENGLISH.search(folded)
                or _ASKS_CHINESE.search(folded)
            ):
                continue
            yield part


def _hide(quote: str, quotes: list[str]) -> str:
    quotes.append(quote)
    return _HIDDEN


def _clause(part: str, quotes: list[str]) -> Clause:
    folded = part.casefold()
    shown = part
    while _HIDDEN in shown and quotes:
        shown = shown.replace(_HIDDEN, quotes.pop(0), 1)
    return Clause(shown, folded)
