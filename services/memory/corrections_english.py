"""Which English sentences correct what was told before."""

import re

from services.memory.command import Clause
from services.memory.terms import english_stems
from state.memory import Command

_WRONG = re.compile(
    r"\b(?:i (?:misspoke|mistyped|misremembered|misstated|got (?:that|it|this|the \w+(?: \w+)?|"
    r"my \w+(?: \w+)?) (?:wrong|mixed up|"
    r"backwards)|mixed (?:that|it|them|those|these|up)\b|(?:was|am) (?:wrong|mistaken|incorrect)|"
    r"made a (?:mistake|typo)|"
    r"said (?:it|that|this) wrong|told you (?:wrong|the wrong)|gave you (?:the wrong|wrong|a wrong)|"
    r"meant to (?:say|write|type)|"
    r"(?:should|meant to) have said|need to correct|have to correct|want to correct)"
    r"|let me (?:correct|fix|rephrase) (?:that|this|it|myself|what i)|(?:small |quick |"
    r"one )?correction(?=\s*[:,—–-])|"
    r"scratch that|"
    r"strike that|(?:what|that thing) i (?:just )?(?:said|told you|wrote)(?: \w+){0,4} (?:was|is|isn't|wasn't) "
    r"(?:wrong|incorrect|not (?:right|true|correct)|a mistake|right|true|correct)|(?:that|this) (?:was|"
    r"is) (?:wrong|a typo|a "
    r"mistake|incorrect|not right|my mistake)|that's (?:wrong|a typo|incorrect|not right|my mistake)|typo|"
    r"my mistake|my bad|"
    r"you(?:'ve| have)? (?:got )?(?:that|it|me|my \w+)(?: \w+)? wrong|you (?:misheard|misunderstood|"
    r"have the wrong|"
    r"have it wrong|"
    r"remember(?:ed)? (?:it |that )?wrong))\b",
    re.I,
)
_MEANT = re.compile(
    r"(?:^|[,.!;—–-]\s*|\b(?:sorry|no|wait|oops|actually|rather|i mean|er|ah|(?:i said|"
    r"told you) [^.,;]{1,40} but)\W+)i (?:meant"
    r"(?: to (?:say|write|type))?[\s:,]+|mean\s+)"
    r"(?!to\b|it\b|that'?s? (?:i|it|you|we)\b|no (?:harm|offen)|what|well\b|you know|come on|business|"
    r"seriously|is\b|by\b|if\b|"
    r"how|why|who|really|honestly|don't|do\b)(?P<new>[^.!?;]+)",
    re.I,
)
_NOT_BUT = re.compile(
    r"\b(?:it's|it is|he's|she's|that's|they're|is|are|was|were|i'm|i am|in|on|at|to|for|with|from|called|"
    r"named|\w+s)?\s*"
    r"\bnot (?P<old>(?:[\w'’/:-]+ ){0,4}[\w'’/:-]+?)[,;]?\s+but\s+(?:rather\s+)?(?P<new>[^.,!?;]+)",
    re.I,
)
_AFTER_ALL = r"\s*(?:any ?more|any longer|after all|now|at all|either)?\s*"
_FEW_WORDS = 3
_PREPOSITIONS = frozenset({"to", "in", "at", "on", "with", "for", "from", "of", "by"})
_NO_LONGER_X_Y = re.compile(
    r"\b(?:(?:don't|doesn't|do not|does not|didn't|did not|no longer) |(?:is|are|am|'s|'m|'re) no longer )"
    rf"(?P<old>[\w'’/:-]+(?: [\w'’/:-]+){{0,5}}?){_AFTER_ALL}[,;.]\s*(?:but |and |now )*"
    r"(?:i|he|she|we|they|it)(?:'m|'s|'re| am| is| are| now| actually| really)*\s+(?P<new>[^.,!?;]+)",
    re.I,
)
_NOT_ONLY = re.compile(
    rf"\b(?:not|isn't|aren't) (?P<old>[\w'’/:-]+(?: [\w'’/:-]+){{0,5}}?){_AFTER_ALL}[,;.]\s*"
    r"(?:but )?(?:only|just) "
    r"(?P<new>[^.,!?;]+)",
    re.I,
)
_VALUE_WRONG = re.compile(
    r"^\W*(?:\w+,? )?(?:my|our|his|her|their|the) [\w' -]{2,40}? (?:was|is|were|are)"
    r"(?: (?:wrong|incorrect|off|outdated|out of date|a typo)|(?:n't| not) (?:right|correct))(?=\s*[,.;:—–-])",
    re.I,
)
_Y_NOT_X = re.compile(
    r"(?P<new>[^.,!?;]{1,80}?),?\s+(?:and |but )?(?:it's |"
    r"it is )?\bnot (?P<old>[\w'’/:-]+(?: [\w'’/:-]+){0,4}?)\s*$",
    re.I,
)
_NOT_X_Y = re.compile(
    r"\b(?P<subject>[\w' ]{0,40}?)(?:'s not|is not|isn't|wasn't|'m not|am not|aren't|are not|"
    r"not)\s+(?P<old>[\w'’/:-]+(?: [\w'’/:-]+){0,5}?)"
    r"[,;.]\s*(?:it's|it is|he's|she's|i'm|they're|that's|rather|but|it should be|it was|they are|he is|"
    r"she is|i am)\s+"
    r"(?P<new>[^.,!?;]+)",
    re.I,
)
_SAYS_NOTHING = re.compile(r"^(?:i mean|it|that|this|well|so|you know|no|he|she|they|maybe|why|or)$", re.I)
_CORRECTS = re.compile(
    r"^\W*(?:no|nope|wait|sorry|oops|actually|hold on|correction|hm+|oh|ah|my bad|my mistake|scratch that|"
    r"whoops|apologies|"
    r"let me correct|i meant|i mean|that's wrong|that was wrong|i was wrong|i misspoke|typo)\b",
    re.I,
)
_NEW_AFTER = re.compile(
    r"(?:\bit(?:'s| is| was| should be| should have been)|\bshould (?:be|have been|read|say)|"
    r"\bmeant to (?:say|write|type)|"
    r"\b(?:he|she|they|i|we|there)(?:'s|'re|'m| is| are| am| was| were)|\b(?:the )?(?:right|correct|actual|"
    r"real) \w+(?: \w+)? is|"
    r"\bmake (?:it|that)|\bactually|[:,—–-])\s+(?P<new>[^.!?;,]+(?:,[^.!?;]+)?)",
    re.I,
)


def correction(sentences: list[list[Clause]], text: str) -> Command | None:
    """A correction of what was told before: that something was wrong, or that not one thing holds but another."""
    for clauses in sentences:
        start, end = clauses[0].start, clauses[-1].end
        said = text[start:end]
        if clauses[0].asks or re.match(
            r"\W*(?:he|she|they|my \w+|the \w+) (?:said|told|says|thinks?|thought|claims?)\b", said, re.I
        ):
            continue
        found = _correction_in(said, text[end:], start, end)
        if found:
            return found
    return None


def _contrast_in(said: str) -> tuple[str, str]:
    """The value that does not hold and the one that does; both empty where none is denied."""
    for pattern in (_NO_LONGER_X_Y, _NOT_ONLY, _NOT_BUT, _NOT_X_Y, _Y_NOT_X):
        contrast = pattern.search(said)
        if pattern is _Y_NOT_X and contrast and not _is_set_off(said, contrast):
            continue
        if contrast and not _SAYS_NOTHING.match(contrast["new"].strip()):
            return _differing(contrast["old"].strip(" ,"), contrast["new"].strip(" ,"))
    return "", ""


def _is_set_off(said: str, contrast: re.Match[str]) -> bool:
    """Whether “Y, not X” is said and no denial, as in “why the joke is not funny”."""
    between = said[contrast.end("new") : contrast.start("old")].lower()
    return "," in between or "and " in between or len(contrast["new"].split()) <= _FEW_WORDS


def _differing(old: str, new: str) -> tuple[str, str]:
    """Without the words at the beginning that both share: “live in Oslo”, “lives in Bergen” → Oslo, Bergen."""
    olds, news = old.split(), new.split()
    olds, news = _behind_preposition(olds, news), _behind_preposition(news, olds)
    while len(olds) > 1 and len(news) > 1 and english_stems(olds[0]) == english_stems(news[0]):
        olds, news = olds[1:], news[1:]
    return " ".join(olds), " ".join(news)


def _behind_preposition(words: list[str], other: list[str]) -> list[str]:
    """“allergic to walnuts” against “to shrimp”: from the preposition on with which the other begins."""
    first = other[0].lower() if len(other) > 1 else ""
    places = [place for place, word in enumerate(words[:-1]) if word.lower() == first]
    return words[places[-1] :] if first in _PREPOSITIONS and places else words


def _correction_in(said: str, following: str, start: int, end: int) -> Command | None:
    corrects = bool(_CORRECTS.match(said))
    wrong = _WRONG.search(said)
    old, new = "", ""
    denies_value = _VALUE_WRONG.search(said)
    if wrong or not denies_value:
        old, new = _contrast_in(said)
    else:
        stated = _NEW_AFTER.search(said[denies_value.end() :] + following)
        new = stated["new"].strip() if stated else ""
    if wrong and not old:
        next_sentence = re.split(r"[.!?\n](?:\s|$)", following.lstrip(" .!,;:"), maxsplit=1)[0]
        contrast = _contrast_in(next_sentence)
        if contrast[0]:
            old, new = contrast
            end = max(end, start + len(said) + following.find(next_sentence) + len(next_sentence))
    meant = _MEANT.search(said)
    if not new and meant:
        new = meant["new"].strip()
    if wrong and not new:
        rest = said[wrong.end() :] if len(said) - wrong.end() > 3 else following  # noqa: PLR2004 — a mark
        stated = _NEW_AFTER.search(rest) or re.match(r"\W*(?P<new>[^.!?]{2,120})", rest)
        new = stated["new"].strip() if stated else ""
        end = end if rest is not following else end + (stated.end() if stated else 0)
    if not (wrong or meant or (corrects and new) or old or (denies_value and new)):
        return None
    certain = bool(wrong or meant or corrects or denies_value)
    return Command(
        "correct",
        "stated" if old else "previous",
        target=old or said,
        replacement=new,
        # A contrast by itself is a correction only of what was told otherwise.
        needs_match=True,
        explicit=bool(wrong or corrects),
        certainty="plain" if certain or old else "unclear",
        start=start,
        end=end,
    )
