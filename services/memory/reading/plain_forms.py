"""Plain forms: the closed list of orders to memory that are obeyed without a model.

A plain form is an imperative to the assistant that is a whole message, or its first or last sentence. The forms
stand in `forms/en.toml` and `forms/zh.toml`. Anything else, however likely, is left to a model.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from services.memory.reading.foreign_words import foreign_text
from services.text.language import Language, Sentence, sentences
from services.text.tokenizer import simplified
from state.memory import PlainForm, PlainFormKind

_FOLDER = Path(__file__).parent / "forms"
_LONGEST = 600
"""Maximum characters of a message with a plain form; a longer message is a text to work on."""
_LONGEST_SENTENCE = 300
_MOST_SENTENCES = 5
_KINDS: tuple[PlainFormKind, ...] = (
    *("off_record", "leave_out", "forget_everything", "forget_last", "forget"),
    *("remember_last", "remember", "standing"),
)
"""Kinds in the order in which they are tried, more specific ones first."""
_LEAVES_OUT = frozenset(["leave_out", "off_record"])
"""Kinds that remove nothing that was remembered before."""
_NAMES = frozenset(["forget", "forget_everything"])
"""Kinds whose `{what}` must name something that can be searched for."""
_QUOTES = frozenset('"“”«»「」『』《》‹›`>|<{}[]')
_EDGES = " \t.!。！~～;；,，…:：-"
_CLAUSE_END = re.compile(r"[,，.。!！~～;；:：…\n]")
_UNIT = re.compile(r"( *)(\[[^\[\]]*\]|\([^()]*\)|\{what[^{}]*\}|[^ \[\](){}]+)")
_STATES = re.compile(r"that $|(?:^|\s)(?:i|i'm|i've|my|we|our)$", re.IGNORECASE)
_STATES_IN_CHINESE = re.compile(r"我们?[^，,]{1,60}[^，,的][，,]")


@dataclass(frozen=True)
class _Forms:
    """Patterns of one language for commands to memory, such as "remember that …"."""

    language: Language
    of_kind: Mapping[PlainFormKind, Sequence[re.Pattern[str]]]
    not_what: Mapping[PlainFormKind, re.Pattern[str]]


def plain_forms(message: str) -> list[PlainForm]:
    """Return the plain forms of a message: first that of its first sentence, then that of its last."""
    text = message.strip()
    if not text or len(text) > _LONGEST or "\n" in text:
        return []
    text = " ".join(text.replace("’", "'").split())
    parts = sentences(text)
    if len(parts) > _MOST_SENTENCES:
        return []
    found = []
    for at in dict.fromkeys((0, len(parts) - 1)):
        others = [each.text for number, each in enumerate(parts) if number != at]
        quoted = any(character in _QUOTES for character in text[: parts[at].start])
        form = None if quoted else _form_of(parts[at], others)
        if form is not None and (form.kind in _LEAVES_OUT or not foreign_text(message)):
            found.append(form)
    return found


def says_yes(message: str) -> bool:
    """Return whether the first clause of a message does nothing but agree; in Chinese a blank ends the clause
    too."""
    clause = simplified(_CLAUSE_END.split(message.strip(), maxsplit=1)[0].replace("’", "'").strip())
    words = clause.split() or [""]
    said = clause if words[0].isascii() else words[0]
    return any(pattern.fullmatch(said) for pattern in _yes_forms())


def _form_of(sentence: Sentence, others: Sequence[str]) -> PlainForm | None:
    own = sentence.text.strip(_EDGES)
    if sentence.asks or not own or len(own) > _LONGEST_SENTENCE:
        return None
    folded = simplified(own)
    if len(folded) != len(own):  # positions would differ
        folded = own
    for forms, kind, match in _matches(folded):
        start, end = match.span("what") if "what" in match.re.groupindex else (0, 0)
        what = own[start:end].strip(_EDGES)
        # “Remember, gifts are not about value”: after a comma a saying begins.
        if start and (own[start] in ",，" or not _can_be_meant(what, kind, forms, folded[:start])):
            continue
        what = own if kind == "standing" else what
        return PlainForm(
            kind=kind,
            what=what,
            rest="".join(others).strip(),
            language=forms.language,
            order=sentence.text.strip(),
        )
    return None


def _matches(sentence: str) -> Iterator[tuple[_Forms, PlainFormKind, re.Match[str]]]:
    for forms in all_forms():
        for kind in _KINDS:
            for pattern in forms.of_kind[kind]:
                if match := pattern.fullmatch(sentence):
                    yield forms, kind, match


def _can_be_meant(what: str, kind: PlainFormKind, forms: _Forms, lead: str) -> bool:
    """Return whether the words in place of `{what}` are enough to say what is meant."""
    if not what or ((excluded := forms.not_what.get(kind)) and excluded.match(simplified(what))):
        return False
    if kind not in _NAMES:
        return True
    if any(character in _QUOTES for character in what):
        return False
    # “Forget the diet, let's eat”: something else may begin after a comma, unless a whole statement is named.
    states = _STATES.search(lead) or _STATES.search(what.split(" ", 1)[0]) or _STATES_IN_CHINESE.match(what)
    return bool(states) or re.search(r"[,，;；:：]| - ", what) is None


@cache
def all_forms() -> tuple[_Forms, ...]:
    """Return the forms of both languages. The first call reads them, which takes 50 ms."""
    return _read("en", space=" ", edge=r"(?!\w)"), _read("zh", space="", edge="")


@cache
def _yes_forms() -> tuple[re.Pattern[str], ...]:
    listed = tomllib.loads((_FOLDER / "yes.toml").read_text(encoding="utf-8"))
    spaces = {"en": " ", "zh": ""}
    return tuple(
        re.compile(_body(form, spaces[language]), re.IGNORECASE)
        for language, of in listed.items()
        for form in of["forms"]
    )


def _read(language: Language, *, space: str, edge: str) -> _Forms:
    listed = tomllib.loads((_FOLDER / f"{language}.toml").read_text(encoding="utf-8"))

    def starts(words: str) -> re.Pattern[str]:
        found = (re.escape(each.rstrip("$")) + ("$" if each.endswith("$") else edge) for each in words.split("|"))
        return re.compile("|".join(found), re.IGNORECASE)

    before = rf"(?:{_choice(listed['before'])}{edge}[ ,，]*){{0,3}}"
    after = rf"(?:[ ,，]*{_choice(listed['after'])}){{0,2}}"
    return _Forms(
        language,
        {
            kind: [
                re.compile(before + _body(form, space) + after, re.IGNORECASE) for form in listed[kind]["forms"]
            ]
            for kind in _KINDS
        },
        {kind: starts(listed[kind]["not_what"]) for kind in _KINDS if "not_what" in listed[kind]},
    )


def _body(form: str, space: str) -> str:
    """Translate a form to a regular expression; in Chinese, blanks only separate the parts of a form."""
    written = ""
    is_open = True
    """Whether the next part needs no blank before it: at the beginning, and after a part that brings its own."""
    for blank, unit in _UNIT.findall(form):
        gap = "" if is_open or not blank else space
        is_open = False
        if unit[0] == "{":
            starts = _choice(unit[6:-1]) + r"\b" if ":" in unit else ""
            written += gap + rf"(?P<what>{starts}.+?)" + ("" if space else " ?")
        elif unit[0] == "[" and not written:
            written, is_open = rf"(?:{_choice(unit[1:-1])}{space})?", True
        elif unit[0] == "[":
            written += rf"(?:{gap}{_choice(unit[1:-1])})?"
        else:
            written += gap + (_choice(unit[1:-1]) if unit[0] == "(" else re.escape(unit))
    return written


def _choice(words: str) -> str:
    return f"(?:{'|'.join(re.escape(each.strip()) for each in words.split('|'))})"
