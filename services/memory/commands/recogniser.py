"""Memory commands in a message: what the user asks memory to forget, keep, leave out or correct.

A learned model tells which kind of command a message is, and which of its words name what is meant
(`command_model`). Where it is sure the command is obeyed; where it is not, a small model is asked afterwards.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from services.memory.commands.clauses import (
    announces,
    beside_removal,
    clauses_of,
    joined,
    kept_clauses,
    names_something,
    spans_of_commands,
    tells_beside,
    tells_of_user,
    whole_clauses,
)
from services.memory.commands.command_words import (
    EDGES,
    about_of,
    blanked,
    replacement_of,
    stated_behind,
    without,
    words_of_part,
    words_within,
)
from services.memory.commands.contrasts import contrasts
from services.memory.commands.features import Token, tokens
from services.memory.commands.model import Opinion, Part, opinion_on, parts_of
from services.memory.commands.shown_text import shown_spans
from services.memory.commands.text import SHORT, emptied, folded, in_the_open, masked, sentences_of
from services.text.clauses import statements
from services.text.language import language_of
from services.text.sentences import Span
from services.text.tokenizer import informative_terms
from services.text.work_requests import asks_about_something, asks_for_work, asks_to_be_told
from state.memory import Command, CommandScope, MemoryChangeKind, Recognised

_PLAIN: dict[MemoryChangeKind, float] = {
    "do_not_remember": 0.5,
    "forget": 0.75,
    "correct": 0.75,
    "remember": 0.75,
    "standing": 0.75,
}
"""Probability from which on a message is a command. What leaves a message out by mistake costs one message; a
mistake of the others changes what memory holds, or every later answer."""
_PLAIN_OF_WISH = 0.5
_PLAIN_OF_PREVIOUS = 0.75
"""Probability from which on a message changes what was said before it."""
_LIKELY = 0.3
"""From here on it is one where memory holds what it names; else a small model decides."""
_DOUBTFUL = 0.15
"""From here on a small model decides whether a message is to be left out of memory."""
_UNCUED = 0.75
"""From here on a message is a command without any of the words that its kind has."""
_LAST_EXCHANGE = 0.95
"""From here on a request to forget that neither names anything nor says “just now” removes the last exchange."""
_SLIP = 0.06
"""From here on a short message may correct a value of what was said last."""
_NEWS = 0.01
"""From here on a message may tell that something does not hold any more, as memory shows."""
_STATEMENT = 0.05
"""The same where no word says that anything changes."""
_LONGEST_NEWS = 600
_TAKES_BACK = re.compile(
    r"^\W*\*|\b(?:sorry|oops|i mean|i meant|typo|wait|actually|scratch|correction|autocorrect|rather)\b"
    r"|^no\b(?=\W*[,.;:!–—-]|\s+(?:it|that|he|she|they|we|i|not|the|my)\b)|哎|不对|[说說写寫打记記讲講]?[错錯]了?|应该是|我是说|抱歉|不好意思",
    re.IGNORECASE,
)
_BY_ITSELF_OF_SEVERAL = 0.5
_FAMILY: dict[MemoryChangeKind, str] = {
    "forget": "leave out",
    "do_not_remember": "leave out",
    "correct": "correct",
    "remember": "keep",
    "standing": "keep",
}
"""Kinds that one request may be taken for."""
_OF_SENTENCE = 0.5
_BESIDE = 2
"""Informative words of a clause beside a command that is told in it."""
_TELLING = 3
"""Informative words of a target that the message itself states."""
_CUES: dict[MemoryChangeKind, frozenset[str]] = {
    "correct": frozenset(("wrong", "change", "not", "just_now", "said")),
    "forget": frozenset(("remove", "keep", "memory", "said")),
    "do_not_remember": frozenset(("keep", "memory", "said", "secret", "remove")),
    "remember": frozenset(("keep", "memory", "remove")),
}
"""Classes of words of which a command of a kind has one, unless it is beyond doubt."""
_POINTS_BACK = frozenset(("just_now", "this", "said"))
_REMOVES = frozenset(("remove", "keep"))


_LONGEST, _READ = 2_000, 500
"""Characters from which on a message is long, and of each of its ends that are read then."""


def recognise(message: str) -> Recognised:
    """The memory commands of a message; none for most messages. Pure, about a millisecond.

    Of a long message its beginning and its end are read: what stands between is material.
    """
    if len(message) > _LONGEST:
        # An end of shown text does not show by itself that it is one.
        spans = shown_spans(message)
        begin = min([_READ, *(span.start for span in spans)])
        end = max([len(message) - _READ, *(span.end for span in spans)])
        begins, ends = recognise(message[:begin]), recognise(message[end:])
        rest = f"{begins.rest}{message[begin:end]}{ends.rest}"
        return Recognised((*begins.commands, *ends.commands), rest, max(begins.probability, ends.probability))
    text = folded(message)
    shown = masked(text)
    found = tokens(shown)
    sentences = sentences_of(shown)
    opinion = _opinion(found, sentences)
    foreign = shown_spans(text)
    told = emptied(message, foreign)
    if foreign and opinion.kind != "correct" and all(_is_order(told, span) for span in sentences_of(told)):
        return Recognised((), message)
    if opinion.probability < _PLAIN[opinion.kind] and all(_only_asks(shown, span) for span in sentences):
        return Recognised((), message)
    sure = opinion.kind == "correct" and opinion.probability >= _PLAIN["correct"]
    against = _set_against(in_the_open(message, shown), opinion) if sure or not _is_task(shown, sentences) else ()
    if not sentences or not _is_asked(opinion, found) or (against and opinion.kind != "correct"):
        against += _slip(told, opinion) or _news(told, opinion, found)
        return Recognised(against, message, opinion.to_review(found))
    commands: list[Command] = []
    commanding: list[Span] = []
    for spans, of_segment in _segments(found, sentences, opinion):
        within = [token for span in spans for token in _within(found, span)]
        command, own = _command(told, within, spans, of_segment)
        commands.append(command)
        if command.kind != "correct":  # a correction itself states what holds
            commanding += own
    if against:  # found by the old value first; else by what the message says beside it
        commands = [replace(each, certainty="likely") if each.kind == "correct" else each for each in commands]
    commands = [*against, *_slip(told, opinion), *commands]
    return Recognised(tuple(commands), without(message, commanding), opinion.to_review(found))


def _is_asked(opinion: Opinion, found: Sequence[Token]) -> bool:
    """Whether an opinion is sure enough to look in memory, or to ask a small model."""
    words = _CUES.get(opinion.kind, frozenset())
    if words and all(words.isdisjoint(token.classes) for token in found):
        return opinion.probability >= _UNCUED
    return opinion.probability >= (_DOUBTFUL if opinion.kind == "do_not_remember" else _LIKELY)


def _plain_from(kind: MemoryChangeKind, message: str, found: Sequence[Token]) -> float:
    """Probability from which on a message is a command.

    A wish that is all of a short message needs less, and so has one with a word for always, unless the message
    asks for work: “from now on in francs” is meant for all answers, “no jargon, explain it” for one.
    """
    is_short = len(message) <= SHORT[language_of([message])]
    if kind == "remember" and is_short:
        return _PLAIN_OF_WISH
    if kind != "standing" or any(asks_for_work(joined(clause)) for clause in clauses_of(found)):
        return _PLAIN[kind]
    for_all = any("always" in token.classes for token in found)
    return _PLAIN_OF_WISH if for_all or is_short else _PLAIN[kind]


def _is_task(text: str, sentences: Sequence[Span]) -> bool:
    """Whether a message begins as an order for work: then what it sets against each other is material."""
    return bool(sentences) and _is_order(text, sentences[0])


def _is_order(text: str, sentence: Span) -> bool:
    own = text[sentence.start : sentence.end].lower()
    return asks_for_work(own) or asks_about_something(own)


def _only_asks(text: str, sentence: Span) -> bool:
    return asks_to_be_told(text[sentence.start : sentence.end].lower().strip())


def _set_against(message: str, opinion: Opinion) -> tuple[Command, ...]:
    """Corrections by the form of a message, whatever its words: they hold where memory has the old value."""
    if opinion.probability >= _PLAIN[opinion.kind] and opinion.kind != "correct":
        return ()
    doubtful = opinion.probability < _PLAIN["correct"] or opinion.kind != "correct"
    return tuple(
        Command(
            "correct",
            "stated",
            target=each.old,
            named=each.old,
            replacement=each.new,
            about=message.replace(each.old, " ").replace(each.new, " "),
            reach="told",
            certainty="likely" if doubtful else "plain",
            probability=opinion.probability if opinion.kind == "correct" else 0.0,
            needs_match=True,
        )
        for each in contrasts(message)
        if not (doubtful and len(each.old) == 1)
    )


def _slip(message: str, opinion: Opinion) -> tuple[Command, ...]:
    """A short message that may take back a value of what was said last: “sorry, he's turning fourteen”."""
    asks = "?" in message or "？" in message or asks_about_something(folded(message).lower())
    is_short = len(message) <= SHORT[language_of([message])]
    if (
        asks
        or not is_short
        or not _TAKES_BACK.search(message)
        or opinion.kind != "correct"
        or opinion.probability < _SLIP
    ):
        return ()
    value = _TAKES_BACK.sub(" ", message).strip(EDGES)
    return (
        Command(
            "correct",
            "stated",
            replacement=value,
            reach="last",
            certainty="likely",
            needs_match=True,
            probability=opinion.probability,
        ),
    )


def _news(message: str, opinion: Opinion, found: Sequence[Token]) -> tuple[Command, ...]:
    """A message that tells of a change, by which something said before may not hold any more.

    What only states something is no news of that kind: of two days on which somebody ran both may be true.
    """
    if opinion.kind != "correct" or len(message) > _LONGEST_NEWS or not statements(message):
        return ()
    tells_of_change = any("change" in token.classes for token in found)
    if opinion.probability < (_NEWS if tells_of_change else _STATEMENT):
        return ()
    found_news = news(message)
    return (found_news if tells_of_change else replace(found_news, reach="statement"),)


def news(message: str) -> Command:
    """What a message corrects if it does, though nothing in it may say so."""
    shown = masked(folded(message))
    found, spans = tokens(shown), sentences_of(shown)
    opinion = _opinion(found, spans)
    probability = opinion.probability if opinion.kind == "correct" else 0.0
    command = _command(message, found, spans, Opinion("correct", probability))[0]
    return replace(command, certainty="likely", needs_match=True, reach="news")


def _segments(
    found: Sequence[Token], sentences: Sequence[Span], opinion: Opinion
) -> list[tuple[list[Span], Opinion]]:
    """The sentences of each command: of one, unless there are several that are beyond doubt and of other kinds."""
    own = [opinion_on(_within(found, span)) for span in sentences] if len(sentences) > 1 else []
    sure = [each.probability >= _BY_ITSELF_OF_SEVERAL for each in own]
    if len({_FAMILY[each.kind] for each, is_sure in zip(own, sure, strict=True) if is_sure}) < 2:  # noqa: PLR2004
        return [(list(sentences), opinion)]
    segments: list[tuple[list[Span], Opinion | None]] = [([], None)]
    for span, each, is_sure in zip(sentences, own, sure, strict=True):
        spans, current = segments[-1]
        if is_sure and current and _FAMILY[current.kind] != _FAMILY[each.kind]:
            segments.append(([span], each))
        else:
            spans.append(span)
            segments[-1] = (spans, current or (each if is_sure else None))
    return [(spans, each) for spans, each in segments if each]


def _command(
    message: str, found: Sequence[Token], sentences: Sequence[Span], opinion: Opinion
) -> tuple[Command, list[Span]]:
    """A command, and the sentences that give it."""
    kept = kept_clauses(found) if opinion.kind == "forget" else []
    parts: list[Part] = [
        "other" if any(span.start <= token.start < span.end for span in kept) else part
        for token, part in zip(found, parts_of(found, opinion.kind), strict=True)
    ]
    commanding = [
        span for span in sentences if _is_command(_within(found, span), _parts_within(found, parts, span), opinion)
    ] or list(sentences)
    rest = without(message, commanding)
    tasks = [span for span in sentences if _is_work(message, found, span, opinion)]
    about = about_of(message, found, parts, [*kept, *tasks])
    if opinion.kind == "forget":
        parts = _beside_the_verb(found, parts)
    target = words_of_part(message, found, parts, "target")
    if opinion.kind == "standing":
        target = words_within(message, commanding)
    elif opinion.kind == "remember" and informative_terms(target):
        target = words_within(message, whole_clauses(found, parts))
    elif opinion.kind in {"forget", "remember"} and not informative_terms(target):
        target = rest or stated_behind(message, found)
        if opinion.kind == "forget":
            target = about_of(message, found, parts, [*kept, *tasks, *beside_removal(found)]).strip(EDGES)
    bare = blanked(target, spans_of_commands(tokens(masked(folded(target)))))
    scope = _scope(opinion.kind, bare, found)
    points_back = frozenset(("just_now",)) if opinion.kind == "forget" else _POINTS_BACK
    points_nowhere = scope == "previous" and all(points_back.isdisjoint(token.classes) for token in found)
    needed = _LAST_EXCHANGE if opinion.kind == "forget" else _UNCUED
    plain = max(_plain_from(opinion.kind, message, found), _PLAIN_OF_PREVIOUS if scope == "previous" else 0.0)
    is_sure = opinion.probability >= (needed if points_nowhere else plain)
    command = Command(
        kind=opinion.kind,
        scope=scope,
        target=target,
        named=bare,
        replacement=replacement_of(message, found, parts) if opinion.kind == "correct" else "",
        about=about,
        kept=words_within(message, kept),
        tells=any(map(tells_of_user, clauses_of(found)))
        or announces(found)
        or tells_beside(found, least=_TELLING),
        just_now=any("just_now" in token.classes for token in found),
        certainty="plain" if is_sure else "likely" if opinion.kind in {"forget", "correct"} else "unclear",
        probability=opinion.probability,
        needs_match=opinion.kind == "correct" or not is_sure,
    )
    return command, commanding


def _opinion(found: Sequence[Token], sentences: Sequence[Span]) -> Opinion:
    """What the whole message asks, or the sentence of it that asks the surest."""
    if all(token.is_mark for token in found):
        return Opinion("forget", 0.0)
    parts = [_within(found, span) for span in sentences] if len(sentences) > 1 else []
    said = [found, *(part for part in parts if not all(token.is_mark for token in part))]
    return max(map(opinion_on, said), key=lambda opinion: opinion.probability)


def _scope(kind: MemoryChangeKind, target: str, found: Sequence[Token]) -> CommandScope:
    """A command that names nothing is about what was said before it."""
    if kind in {"correct", "standing"}:
        return "stated"
    named = len(informative_terms(target))
    if kind == "do_not_remember":
        points_back = any("just_now" in token.classes for token in found)
        tells = named >= _TELLING or tells_beside(found, least=_BESIDE if not points_back else _TELLING)
        is_told = tells or any(map(tells_of_user, clauses_of(found))) or announces(found)
        return "present" if is_told else "previous"
    if kind == "forget":
        named = min(named, sum(map(names_something, clauses_of(found))))
    return "stated" if named else "previous"


def _is_command(found: Sequence[Token], parts: Sequence[Part], opinion: Opinion) -> bool:
    """Whether a sentence is part of the command, and not said beside it."""
    if any(part != "other" for part in parts):
        return True
    own = opinion_on(found)
    return own.probability >= _OF_SENTENCE and own.kind == opinion.kind


def _is_work(message: str, found: Sequence[Token], span: Span, opinion: Opinion) -> bool:
    """Whether a sentence beside a command only asks for something else."""
    text = folded(message[span.start : span.end]).lower().strip()
    if not asks_for_work(text) and not asks_about_something(text):
        return False
    own = opinion_on(_within(found, span))
    return own.probability < _OF_SENTENCE or own.kind != opinion.kind


def _within(found: Sequence[Token], span: Span) -> list[Token]:
    return [token for token in found if span.start <= token.start < span.end]


def _beside_the_verb(found: Sequence[Token], parts: Sequence[Part]) -> list[Part]:
    """The parts without a target in clauses that only go on about what another one asks to remove."""
    of_clause = list(accumulate(token.is_mark for token in found))
    asking = {
        number for number, token in zip(of_clause, found, strict=True) if not _REMOVES.isdisjoint(token.classes)
    }
    named = {number for number, part in zip(of_clause, parts, strict=True) if part == "target"}
    if not asking & named:
        return list(parts)
    return [
        "other" if part == "target" and number not in asking else part
        for number, part in zip(of_clause, parts, strict=True)
    ]


def _parts_within(found: Sequence[Token], parts: Sequence[Part], span: Span) -> list[Part]:
    return [part for token, part in zip(found, parts, strict=True) if span.start <= token.start < span.end]


def kind_of(text: str) -> MemoryChangeKind | None:
    """The kind of command that a text plainly is."""
    found = recognise(text).commands
    return found[0].kind if found and found[0].certainty == "plain" else None
