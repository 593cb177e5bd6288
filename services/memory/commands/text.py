"""A message as the recogniser of commands reads it: characters folded, quotations hidden, material left out."""

import re
import unicodedata
from collections.abc import Sequence

from services.memory.commands.shown_text import shown_spans
from services.text.language import Language
from services.text.sentences import SEMICOLONS, Span, sentences
from services.text.tokenizer import simplified

LONGEST = 2000
"""Characters of a message that are looked at."""
_LONG = 500
"""Characters of a longer message, of which only the ends are read: the rest is material."""
_ENDS = 2
"""Sentences at each end of it."""
SHORT: dict[Language, int] = {"en": 60, "zh": 20}
"""Characters of a message that says one thing."""
_HIDDEN = "\ue000"
_QUOTED = re.compile(
    r"```.*?(?:```|$)|`[^`\n]*`|“[^”]*”|\"[^\"\n]*\"|「[^」]*」|『[^』]*』|《[^》]*》|(?<!\w)'[^'\n]{8,}'(?!\w)",
    re.DOTALL,
)
_ASPECT = re.compile(r"(?<=[记存留惦])著")
"""Traditional texts write it so; 著 by itself has another meaning."""
_ASKING = (
    r"^\W*(?:(?:please|could you|can you|would you|help me|i need you to|请你?|麻烦你?|能不能|可以|帮我|帮忙|给我|"
    r"为我)\s*)*"
)
_IS_TEXT_WORK = re.compile(
    _ASKING + r"(?:translate|proofread|rephrase|paraphrase|rewrite|edit|polish|summari[sz]e|analy[sz]e|explain|"
    r"spell-?check|write|draft|compose|create|generate|tell me a (?:story|joke)|"
    r"give me an? (?:example|story|poem)|"
    r"翻译|改写|润色|校对|造句|缩写|扩写|总结|概括|解释|分析|检查|续写|把(?:这|下面|以下).{0,12}(?:翻译|改|润色|译)|"
    r"(?:再?写|编|起草|拟|创作|生成|作)(?:一|个|封|篇|首|段|几|点|份|张|条))"
    r"|(?:translate|翻译|译)(?:\s*(?:this|it|the following))?\s*(?:in)?(?:to|成|为)"
    r"|\bhow (?:do|would|can|should) (?:you|i|we|one) (?:say|write|translate|phrase|put)\b"
    r"|(?:用|拿)\S{1,6}(?:怎么|如何)(?:说|讲|写|表达)|(?:怎么|如何)(?:翻译|表达)",
    re.IGNORECASE,
)
"""A request to work on a text or to write one: what it says is no request to memory."""


def folded(message: str) -> str:
    """The same characters in the same places where that is possible, in one form of each."""
    text = message[:LONGEST].replace("’", "'").replace("‘", "'")
    for fold in (lambda each: unicodedata.normalize("NFKC", each), simplified):
        changed = fold(text)
        if len(changed) == len(text):
            text = changed
    return _ASPECT.sub("着", text)


def masked(text: str) -> str:
    """In lower case, with quotations and the material of other requests hidden, each character in its place."""
    lower = text.lower()
    text = _hidden(lower if len(lower) == len(text) else text, shown_spans(text))
    text = _QUOTED.sub(lambda found: _HIDDEN * len(found.group()), text)
    sentences = sentences_of(text)
    kept = sentences
    if len(text) > _LONG and len(sentences) > 2 * _ENDS:
        kept = [*sentences[:_ENDS], *sentences[-_ENDS:]]
    shown = [_HIDDEN] * len(text)
    for place, span in enumerate(kept):
        part = text[span.start : span.end]
        if _IS_TEXT_WORK.search(part[:120]):
            if _introduces(part) and place == 0:
                break  # whatever follows a colon is the text itself
            continue
        shown[span.start : span.end] = part
    return "".join(shown)


def _hidden(text: str, spans: Sequence[Span]) -> str:
    for span in spans:
        text = f"{text[: span.start]}{_HIDDEN * (span.end - span.start)}{text[span.end :]}"
    return text


def works_on_text(message: str) -> bool:
    """Whether a message begins by asking to work on a text, which may be part of it."""
    text = folded(message)
    first = next(iter(sentences_of(text)), None)
    return first is not None and _IS_TEXT_WORK.search(text[first.start : first.end][:120]) is not None


def in_the_open(message: str, shown: str) -> str:
    """A message with what is masked left blank; what could not be folded in place is left as it is."""
    if len(message) != len(shown):
        return message[:LONGEST]
    return "".join(" " if mark == _HIDDEN else own for own, mark in zip(message, shown, strict=True))


def emptied(message: str, spans: Sequence[Span]) -> str:
    """A message with spaces in place of these spans."""
    for span in spans:
        message = f"{message[: span.start]}{' ' * (span.end - span.start)}{message[span.end :]}"
    return message


def _introduces(part: str) -> bool:
    """Whether the text to work on stands there in the open."""
    return re.search(r"[:：](?!\s*\ue000)\s*\S?", part) is not None


def sentences_of(text: str) -> Sequence[Span]:
    """Where the sentences of a text stand, with their marks."""
    found = sentences(text, also=f"{SEMICOLONS}…")
    return [each for each in found if each.text.strip(" .!?。！？;；\n…")]
