"""Plain forms of a promise: the closed list of sentences that ask, word for word, to be reminded of something.

Such a sentence is a whole message, or its first or last sentence, and says a time that can be read and is to come.
Anything else, however likely, is left to a model.
"""

import re
from collections.abc import Iterator
from datetime import date, datetime

from services.memory.reading.foreign_words import foreign_text
from services.text.language import Sentence, sentences
from services.text.tokenizer import simplified
from services.time_reference.local_days import BadTimeZone
from services.time_reference.occasions import LONGEST, Occasion, names_time, read_occasion
from services.time_reference.recurring import BadOccasion
from state.memory import PlainPromise

_LONGEST = 400
"""Characters of a message; what is longer is a text to work on."""
_MOST_SENTENCES = 5
_MOST_WORDS = 12
"""Words, or Chinese characters, of the time that stands behind or before what is asked for."""
_CUE = re.compile(r"\b(?:remind|ask) me\b|提醒?我|问我", re.IGNORECASE)
_GOES_ON = re.compile(r"(?:^| )(?:for|at|on|in|to|of|with|by|the|an?|my|our|your)$", re.IGNORECASE)
"""End of what is asked for where the time has taken a word of it: “meet Joe for | lunch tomorrow”."""
_QUOTES = frozenset('"“”«»「」『』《》‹›`>|<{}[]')
_EDGES = " \t.!?。！？~～;；,，…:：-"
_LEAD = (
    r"(?:(?:please|pls|plz|kindly|ok|okay|hey|and|also|then)[ ,]{1,2}){0,3}"
    r"(?:(?P<asks>can|could|will|would) you (?:please )?)?"
)
_TAIL = r"(?:[ ,]{1,2}(?:please|thanks|thank you|ok|okay)){0,2}"
_ENGLISH = tuple(
    re.compile(rf"\A{_LEAD}{form}{_TAIL}\Z", re.IGNORECASE)
    for form in (
        r"remind me (?P<first>\S.{0,80} to .{1,300}?)",
        r"remind me (?P<first>\S.{0,80} (?P<about>about|that) .{1,300}?)",
        r"(?P<when>\S.{0,80}?),? (?:please |pls )?remind me to (?P<what>.{1,300}?)",
        r"remind me to (?P<both>.{1,300}?)",
        r"remind me (?P<about>about|of) (?P<both>.{1,300}?)",
        r"ask me (?P<first>\S.{1,300}?)",
    )
)
_LEAD_CHINESE = r"(?:(?:请|麻烦你?|那|好的?|记得|到时候?|帮我)[,，]?){0,3}(?:你(?:能|可以|要)?)?"
_TAIL_CHINESE = r"(?:吧|哦|啊|呀|哈|谢谢|好吗|可以吗|行吗|一下){0,2}"
_CHINESE = tuple(
    re.compile(rf"\A{_LEAD_CHINESE}{form}{_TAIL_CHINESE}\Z")
    for form in (
        r"(?P<when>.{1,40}?)[,，]?(?:请|记得|再|都|你){0,2}提醒?我(?:要|去|一下|[:：,，])?(?P<what>.{1,200}?)",
        r"提醒?我[:：,，]?(?P<both>.{1,240}?)",
        r"(?P<when>.{1,40}?)[,，]?(?:请|记得|再|你){0,2}问我(?:一下)?(?P<what>.{1,200}?)",
    )
)


def plain_promise(message: str, now: datetime, timezone: str) -> PlainPromise | None:
    """Return what a message asks in plain form to be reminded of; most messages are not looked at."""
    if len(message) > _LONGEST or not _CUE.search(message):
        return None
    text = " ".join(message.replace("’", "'").split())
    parts = sentences(text)
    if "\n" in message.strip() or len(parts) > _MOST_SENTENCES or foreign_text(message):
        return None
    for at in dict.fromkeys((0, len(parts) - 1)):
        if parts and not any(character in _QUOTES for character in text[: parts[at].end]):
            for when, what in _pairs(parts[at], now.date()):
                if (found := _occasion(when, now, timezone)) is not None:
                    return PlainPromise(what, when, parts[at].text.strip(), found.at, bool(found.rule))
    return None


def _pairs(sentence: Sentence, today: date) -> Iterator[tuple[str, str]]:
    """Yield what may be the time and what is asked for, the likeliest first."""
    own = sentence.text.strip(_EDGES)
    shown = simplified(own)
    if len(shown) != len(own):  # places would differ
        shown = own
    for form in (*_ENGLISH, *_CHINESE):
        found = form.match(shown)
        groups = found.groupdict() if found else {}
        # “Can you remind me about the meeting tomorrow?” asks to be told of it now.
        if found is None or (groups.get("about") and (groups.get("asks") or sentence.asks)):
            continue
        if groups.get("both") is not None:
            begin, end = found.span("both")
            # What still names a time may mean that one: “about tomorrow's meeting at ten”.
            both = _split(own[begin:end])
            yield from (each for each in both if not (_GOES_ON.search(each[1]) or names_time(each[1], today)))
        elif groups.get("first") is not None:
            yield from _beginnings(own[slice(*found.span("first"))], asks=form.pattern.find("ask me") > 0)
        else:
            when, what = (own[slice(*found.span(name))].strip(_EDGES) for name in ("when", "what"))
            if when and what:
                yield when, what


def _beginnings(said: str, *, asks: bool) -> Iterator[tuple[str, str]]:
    """Yield each way in which a time begins what is asked for, the longest time first."""
    places = re.finditer(r"[ ,]+" if asks else r",? (?:to|about|that) ", said)
    for place in [*places][::-1]:
        if place.start() <= LONGEST:
            yield said[: place.start()].strip(_EDGES), said[place.end() :].strip(_EDGES)


def _split(both: str) -> Iterator[tuple[str, str]]:
    """Yield each way in which a time ends what is asked for, or begins it, the longest time first."""
    if both.isascii():
        words = both.split(" ")
        for count in range(min(_MOST_WORDS, len(words) - 1), 0, -1):
            yield " ".join(words[-count:]).strip(_EDGES), " ".join(words[:-count]).strip(_EDGES)
        return
    for count in range(min(2 * _MOST_WORDS, len(both) - 1), 1, -1):
        yield both[:count].strip(_EDGES), both[count:].strip(_EDGES).removeprefix("要").removeprefix("去")


def _occasion(when: str, now: datetime, timezone: str) -> Occasion | None:
    if len(when) > LONGEST:
        return None
    try:
        return read_occasion(when, now, timezone)
    except (BadOccasion, BadTimeZone):
        return None
