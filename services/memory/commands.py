"""Memory commands in a message: what the user plainly asks memory to forget, keep, leave out or correct.

A message is cut into clauses; a clause is a command when it is an imperative, or a request, that is addressed to
the assistant and concerns what it remembers. Statements, questions, quotations and texts to work on are none.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace

from services.llm.language import language_of
from services.memory import commands_chinese, commands_english, corrections_chinese, corrections_english
from services.memory.command import Clause, Reading
from services.memory.terms import informative_terms, simplified
from state.memory import Command, Recognised

LONGEST = 2000
"""Characters of a message that are looked at."""
_LONG = 500
"""Of a longer message only the ends are looked at: the rest is material, not what is asked."""
_ENDS = 2
"""Sentences at each end of it."""

_EDGES = " ,，:：;；、—–-.。!！\n"
_LEAST_SAID = 1
"""Informative words beside a command that “this” may mean."""
_THANKS = frozenset({"谢谢", "拜托", "sorry", "sorri", "thank", "hello", "wait"})
_FIGURE = re.compile(r"\d{2,}")

_QUOTED = re.compile(
    r"```.*?(?:```|$)|`[^`\n]*`|“[^”]*”|\"[^\"\n]*\"|「[^」]*」|『[^』]*』|《[^》]*》|(?<!\w)'[^'\n]{8,}'(?!\w)",
    re.DOTALL,
)
_ASPECT = re.compile(r"(?<=[记存留惦])著")
"""Traditional texts write it so; 著 by itself has another meaning."""
_HIDDEN = "\ue000"
_SENTENCE = re.compile(r"[^.!?。！？;；\n…]*(?:\.(?=\S)[^.!?。！？;；\n…]*)*(?P<mark>[.!?。！？;；\n…]+|$)")
_BREAK = re.compile(
    r"[,，:：]+|\s+[-–]+\s+|[—–]+|\s+(?=(?:but|so|and) (?:please )?(?:don't|do not|forget|remember|you)\b)"
)
_IS_A_TEXT = re.compile(
    r"^\W*(?:(?:please|could you|can you|would you|help me|i need you to|请你?|麻烦你?|能不能|可以|帮我|帮忙|"
    r"给我)\s*)*"
    r"(?:translate|proofread|rephrase|paraphrase|rewrite|edit|polish|fix|improve|summari[sz]e|analy[sz]e|"
    r"explain|"
    r"spell-?check|翻译|改写|润色|校对|造句|缩写|扩写|总结|概括|解释|分析|修改|检查|续写|把(?:这|下面|"
    r"以下).{0,12}"
    r"(?:翻译|改|润色|译))"
    r"|(?:translate|翻译|译)(?:\s*(?:this|it|the following))?\s*(?:in)?(?:to|成|为)"
    r"|\bhow (?:do|would|can|should) (?:you|i|we|one) (?:say|write|translate|phrase|put)\b"
    r"|(?:用|拿)\S{1,6}(?:怎么|如何)(?:说|讲|写|表达)|(?:怎么|如何)(?:翻译|表达)",
    re.IGNORECASE,
)
_IS_TO_BE_WRITTEN = re.compile(
    r"^\W*(?:(?:please|could you|can you|would you|help me|请你?|麻烦你?|能不能|可以|帮我|帮忙|给我|为我)\s*)*"
    r"(?:(?:write|draft|compose|create|generate|make up|come up with|tell me a (?:story|joke)|"
    r"give me an? (?:example|story|"
    r"slogan|poem))\b|(?:再?写|编|起草|拟|讲|创作|生成|作)(?:一|个|封|篇|首|段|几|点|份|张|条))",
    re.IGNORECASE,
)


def recognise(message: str) -> Recognised:
    """The memory commands of a message; none for most messages. Pure, about a tenth of a millisecond."""
    text = _folded(message[:LONGEST])
    masked = _QUOTED.sub(lambda found: _HIDDEN * len(found.group()), text)
    if _IS_A_TEXT.search(masked[:120]) or _IS_TO_BE_WRITTEN.search(masked[:120]):
        return Recognised(rest=message)
    language = language_of([masked])
    rules = commands_chinese if language == "zh" else commands_english
    if not rules.MAY_COMMAND.search(masked.casefold()):
        return Recognised(rest=message)
    sentences = _sentences(masked)
    found = [command for sentence in sentences for command in _of_sentence(sentence, rules.read, masked, text)]
    if not found:
        corrections = corrections_chinese if language == "zh" else corrections_english
        correction = corrections.correction(sentences, text)
        found = [correction] if correction else []
    return _recognised([_as_written(command, text, message) for command in found], message, rules.LEAD)


def _as_written(command: Command, text: str, message: str) -> Command:
    """The command in the message's own characters, where they stand in the same places."""
    if not message.startswith(text) and len(text) != len(message[:LONGEST]):
        return command

    def written(value: str) -> str:
        place = text.find(value) if value else -1
        return message[place : place + len(value)] if place >= 0 else value

    return replace(command, target=written(command.target), replacement=written(command.replacement))


def _folded(message: str) -> str:
    """The same characters in the same places where that is possible, in one form of each."""
    text = message.replace("’", "'").replace("‘", "'")
    for fold in (lambda each: unicodedata.normalize("NFKC", each), simplified):
        folded = fold(text)
        if len(folded) == len(text):
            text = folded
    return _ASPECT.sub("着", text)


def _sentences(masked: str) -> list[list[Clause]]:
    found = [
        list(_clauses(sentence))
        for sentence in _SENTENCE.finditer(masked)
        if sentence.group().strip(" .!?。！？;；\n…")
    ]
    if len(masked) > _LONG and len(found) > 2 * _ENDS:
        return [*found[:_ENDS], *found[-_ENDS:]]
    return found


def _clauses(sentence: re.Match[str]) -> Iterator[Clause]:
    end = sentence.start("mark")
    asks = "?" in sentence["mark"] or "？" in sentence["mark"]
    places = [sentence.start(), *(each.end() for each in _BREAK.finditer(sentence.string, sentence.start(), end))]
    ends = [*(each.start() for each in _BREAK.finditer(sentence.string, sentence.start(), end)), end]
    spans = [
        (start, stop) for start, stop in zip(places, ends, strict=True) if sentence.string[start:stop].strip()
    ]
    for number, (start, stop) in enumerate(spans):
        following = sentence.string[stop : spans[number + 1][0]] if number + 1 < len(spans) else ""
        yield Clause(
            text=sentence.string[start:stop],
            start=start,
            end=stop,
            before=sentence.string[sentence.start() : start].rstrip(),
            after=sentence.string[stop:end],
            sentence_start=sentence.start(),
            sentence_end=sentence.end(),
            introduces=":" in following or "：" in following,
            asks=asks,
        )


def _of_sentence(
    clauses: list[Clause], read: Callable[[Clause], Reading | None], masked: str, text: str
) -> Iterator[Command]:
    for clause in clauses:
        reading = read(clause)
        if reading is None:
            continue
        end = _end_of(clause, reading, masked)
        yield Command(
            kind=reading.kind,
            scope=reading.scope,
            target=_target(clause, reading, end, text),
            certainty=reading.certainty,
            needs_match=reading.needs_match,
            start=clause.start,
            end=end,
        )
        if reading.extent != "clause":
            return  # what follows in the sentence belongs to it


def _end_of(clause: Clause, reading: Reading, masked: str) -> int:
    if reading.extent == "message":
        return len(masked)
    return clause.sentence_end if reading.extent == "sentence" else clause.end


def _target(clause: Clause, reading: Reading, end: int, text: str) -> str:
    if reading.target is None:
        return ""
    start, stop = reading.target
    last = clause.start + stop if reading.extent == "clause" else end
    return text[clause.start + start : last].strip(" ,，:：。.!！;；“”\"'「」\n")


def _recognised(found: list[Command], message: str, lead: re.Pattern[str]) -> Recognised:
    plain = [command for command in found if command.certainty == "plain"]
    ordered = sorted(plain or found, key=lambda each: each.start)
    rest, place = [], 0
    for command in ordered:
        rest.append(message[place : command.start])
        place = max(place, command.end)
    rest.append(message[place:])
    remaining = " ".join(part.strip(_EDGES) for part in rest if part.strip(_EDGES))
    if any(command.scope == "stated" for command in ordered):
        # “I smoke: don't keep that, forget it” names it once.
        ordered = [command for command in ordered if command.scope not in {"here", "before"}] or ordered
    placed = [_placed(command, message, lead) for command in ordered]
    return Recognised(tuple(dict.fromkeys(placed)), remaining)


def _placed(command: Command, message: str, lead: re.Pattern[str]) -> Command:
    """What “this” means: what the message says beside the command, or else the exchange before it."""
    if command.scope not in {"here", "before"}:
        return command
    says = _says_something(lead.sub("", message[: command.start]))
    # What is to be left out or kept may follow; what is to be forgotten was said before.
    if command.kind != "forget" and command.scope == "here":
        says = says or _says_something(message[command.end :])
    return replace(command, scope="present" if says else "previous")


def _says_something(text: str) -> bool:
    return len(informative_terms(text) - _THANKS) >= _LEAST_SAID or bool(_FIGURE.search(text))
