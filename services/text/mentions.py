"""Find the statements of a text about a subject by their words, and remove or correct them.

What is forgotten is found only in statements that share nearly all informative words with what the user names: a
memory too many that is removed is a loss, one too few can be named again.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import filterfalse, pairwise

from services.text.concepts import concepts
from services.text.language import language_of
from services.text.sentences import ABBREVIATIONS
from services.text.tokenizer import (
    informative_terms,
    lone_characters,
    simplified,
    terms,
)

_OPENS = re.compile(
    "现在|目前|平时|平常|后来|出来以后|去年|今年|明年|上个?月|下个?月|每[周天年月]|周末|另外|还有|不过|但"
)
BEINGS = frozenset({"family", "friend", "boss", "colleague", "neighbour", "teacher", "pet", "divorce", "car"})
"""Concepts about which the same sentence may say more."""
AMOUNTS = frozenset({"money", "measure", "debt", "weekday", "age", "number", "health"})
"""Concepts that are uninformative alone."""
_NEARLY_ALL = 0.75
_FEW = 2
"""Up to this many terms must all be shared."""
_NAMED_WEIGHT = 2.0
"""Weight of names and numbers against other words."""
_READ = 1_000
"""Characters read of the remainder: enough for its first informative words."""
_SHORTEST_LEFT = 4
"""Chinese characters, or letters, that say something by themselves."""

_QUALIFIERS = """
old new previous former current last first recent little whole thing stuff matter fact story part ever
以前 之前 原来 目前 现在 这件 事情 这件事 有关 关于 相关 情况 信息 内容
"""
_KIN = re.compile(
    r"\b(?:my|our|his|her|their) (?:\w+ )?(?:wife|husband|son|daughter|mother|father|mom|mum|dad|parents|"
    r"sister|brother|partner|"
    r"girlfriend|boyfriend|friend|boss|colleague|neighbou?r|uncle|aunt|cousin|grandmother|grandfather|grandma|"
    r"grandpa|"
    r"roommate|flatmate|ex)\b"
    r"|我(?:的|们|家)?(?:老婆|妻子|太太|老公|丈夫|儿子|女儿|孩子|爸爸?|妈妈?|父亲|母亲|爸妈|父母|姐姐?|妹妹?|"
    r"哥哥?|弟弟?|爷爷|奶奶|外公|"
    r"外婆|女朋友|男朋友|女友|男友|朋友|老板|同事|邻居|室友|前任|叔叔|阿姨|表[哥弟姐妹]|舅舅|姑姑)",
    re.IGNORECASE,
)
_END = re.compile(r"(?<![.!?])[.!?]+(?=\s)\s*|[。！？;；\n…]+\s*")
_ABBREVIATION = re.compile(rf"\b(?:{'|'.join((*ABBREVIATIONS, 'no', 'approx'))})\.\s*$", re.IGNORECASE)
_LONGEST_ABBREVIATION = 10
_THOUSANDS = r"(?!(?<=\d,)\d{3}(?!\d))"
"""Not within a number: 1,800."""
_COMMA = re.compile(
    rf"[,，、]{_THOUSANDS}\s*|(?<!\s)\s+(?=(?:and|but|so|because|while) (?:i|i'm|i've|my|we|our|it|he|she|the)\b)",
    re.IGNORECASE,
)
_STANDS_ALONE = re.compile(
    r"^\s*(?:and |but |so |also |而且|但是?|不过|另外|还有|然后)*(?:i|i'm|i've|i'd|my|we|we're|our|he|she|they|"
    r"the|his|"
    r"her|their|"
    r"我|咱|我们|他|她|老婆|老公|孩子|家里|公司|爸|妈)(?![a-z])",
    re.IGNORECASE,
)
_CONNECTIVE = re.compile(
    r"^\s*(?:(?:and|but|so|also|because|while)\b|而且|但是?|不过|另外|还有|然后|所以|因为)[\s,，]*", re.IGNORECASE
)


_REFERS_BACK = re.compile(
    r"^\s*(?:(?:and|but|so|because|also)\s+)*(?:he|she|they|it|his|her|their|its)(?:'s|'re|'d|'ll)?\b"
    r"|^\s*(?:而且|还有|但是?|所以)?(?:他|她|它)",
    re.IGNORECASE,
)
_LIST = re.compile(r",? (?:and|or|&) |, ", re.IGNORECASE)
_LITTLE = frozenset("我你您他她它咱们的地得了着是对有在会于这那个件事都也很吗呢吧啊呀请把")
"""Chinese characters without meaning of their own."""


@dataclass(frozen=True)
class Subject:
    """Subject sought in texts."""

    terms: frozenset[str]
    weights: dict[str, float]
    of_kin: bool
    """Whether it is about a person close to the user."""
    characters: frozenset[str] = frozenset()
    """Informative Chinese characters, for texts cut into other words."""
    of_speaker: bool = False
    """Whether it refers to the user."""

    @classmethod
    def of(cls, words: str) -> "Subject":
        """The subject that these words name; without terms if they name nothing in particular."""
        found = informative_terms(_SPEAKER.sub("", words))
        found = frozenset(term for term in found if term not in _QUALIFIER_TERMS)
        if language_of([words]) == "zh":
            # Of overlapping words keep the longest.
            found = frozenset(t for t in found if not any(t != other and t in other for other in found))
            if all(map(_is_kin, found)):
                # A person alone does not identify a statement: “我欠我弟钱”.
                found |= lone_characters(words)
        weights = {term: _NAMED_WEIGHT if _is_name(term, words) else 1.0 for term in found}
        return cls(
            found,
            weights,
            of_kin=bool(_KIN.search(words)),
            characters=_characters(words),
            of_speaker=bool(_SPEAKER.match(words)),
        )

    def patterns(self) -> list[str]:
        """LIKE patterns; every text about the subject matches one of them."""
        found = []
        for term in self.terms:
            # A stem ends where inflections differ: allerg(i), happi, stud(i).
            stem = term[:-1] if len(term) > 4 and term.isascii() and term[-1] in "ieyy" else term  # noqa: PLR2004
            escaped = re.sub(r"([\\%_])", r"\\\1", stem)
            found.append(f"%{'%'.join(escaped) if _is_separable(term) else escaped}%")
        return sorted(found)

    def is_in(self, text: str) -> bool:
        """Whether one statement speaks of it."""
        if not self.terms:
            return False
        shared = self._shared_with(text)
        if (
            _KIN.search(text)
            and not self.of_kin
            and (self.of_speaker or len(self.terms) < _FEW or shared != self.terms)
        ):
            return False
        if len(self.characters) >= _FEW and _characters(text) == self.characters:
            return True
        if len(self.terms) <= _FEW:
            return shared == self.terms
        weight = sum(self.weights[term] for term in shared)
        return weight / sum(self.weights.values()) >= _NEARLY_ALL

    def _shared_with(self, text: str) -> frozenset[str]:
        there = frozenset(terms(text))
        apart = (term for term in self.terms - there if _is_separable(term))
        folded = simplified(text)
        return (self.terms & there) | {term for term in apart if re.search(rf"{term[0]}.{{1,4}}{term[1]}", folded)}

    def shares_with(self, text: str) -> bool:
        """Whether a text has any of its words."""
        return bool(self.terms & frozenset(terms(text)))

    def touches(self, text: str) -> bool:
        """Whether a statement has one of the subject's names, or enough of its words."""
        shared = self.terms & frozenset(terms(text))
        if len(self.terms) <= _FEW:
            return bool(shared)
        return any(self.weights[term] > 1 for term in shared) or 2 * len(shared) >= len(self.terms)


def refers_back(statement: str) -> bool:
    """Whether a statement is about what the one before it named."""
    return _REFERS_BACK.match(statement) is not None


def stands_alone(clause: str) -> bool:
    """Whether a clause begins with its own subject."""
    return _STANDS_ALONE.match(clause) is not None


def _is_kin(term: str) -> bool:
    """Whether a Chinese word is that for a person close to the user."""
    return _KIN.fullmatch(f"我{term.removeprefix('我')}") is not None


def is_of_kin(text: str) -> bool:
    """Whether a text is about a person close to the user."""
    return _KIN.search(text) is not None


def is_of_speaker(text: str) -> bool:
    """Whether a text refers to the user: “my …”."""
    return _SPEAKER.match(text) is not None


def _characters(text: str) -> frozenset[str]:
    return frozenset(each for each in simplified(text) if "\u4e00" <= each <= "\u9fff" and each not in _LITTLE)


_SPEAKER = re.compile(r"^\s*(?:我们?|咱们?)的?|^\s*(?:i(?:'m|'ve|'d|'ll)?|my|our|we(?:'re|'ve)?)\b", re.IGNORECASE)
_SEPARABLE = 2


def _is_separable(term: str) -> bool:
    """Whether words may stand between its two characters: 投票 and 投了反对票."""
    return len(term) == _SEPARABLE and not term.isascii()


_QUALIFIER_TERMS = frozenset(_QUALIFIERS.split())


def _is_name(term: str, words: str) -> bool:
    if any(character.isdigit() for character in term):
        return True
    found = re.search(rf"(?<=\S )\b{re.escape(term[:4])}", words, re.IGNORECASE) if term.isascii() else None
    return bool(found and found.group()[:1].isupper())


def sentences(text: str) -> list[str]:
    """A text cut after each sentence; joined they are the text."""
    ends = [
        each.end()
        for each in _END.finditer(text)
        # Search only right before the end: otherwise a text of full stops is read again for each of them.
        if not _ABBREVIATION.search(text, max(0, each.start() - _LONGEST_ABBREVIATION), each.end())
    ]
    return [text[start:end] for start, end in pairwise([0, *ends, len(text)]) if text[start:end]]


def statements_of(text: str) -> list[str]:
    """A text cut into statements: sentences, and clauses with their own subject; joined they are the text."""
    found: list[str] = []
    for sentence in sentences(text):
        pieces = pieces_of(sentence)
        for number, piece in enumerate(pieces):
            if number and _STANDS_ALONE.match(piece):
                found.append(piece)
            elif number:
                found[-1] += piece
            else:
                found.append(piece)
    return found


def pieces_of(sentence: str) -> list[str]:
    """A sentence cut after each comma and before each joined clause; joined, the pieces are the sentence."""
    places = [0, *(each.end() for each in _COMMA.finditer(sentence)), len(sentence)]
    return [sentence[a:b] for a, b in pairwise(places) if sentence[a:b]]


def without(text: str, subject: Subject, *, strictly: bool = True) -> str | None:
    """The text without its statements about a subject; None = it has none, empty = nothing worth keeping remains.

    With `strictly` false, whatever gives the subject away goes, too.
    """
    parts = statements_of(text)
    found = [subject.is_in(part) or (not strictly and subject.touches(part)) for part in parts]
    if not any(found) and subject.is_in(text) and len(parts) > 1:
        # It is spread over several statements.
        found = [subject.touches(part) for part in parts]
    if not any(found):
        return None
    for place in range(1, len(parts) if len(subject.terms) == 1 else 1):
        # Remove it if its subject is removed; keep it if only a detail is.
        found[place] = found[place] or (found[place - 1] and refers_back(parts[place]))
    kept = [
        part if not gone else without_member(part, subject) or _other_clauses(part, subject)
        for part, gone in zip(parts, found, strict=True)
    ]
    return worth_keeping("".join(kept))


def _other_clauses(statement: str, subject: Subject) -> str:
    """Clauses of a Chinese statement about another matter than the clause with the subject."""
    clauses = clauses_of(statement)
    if statement.isascii() or len(clauses) == 1:
        return ""
    named = [clause for clause in clauses if subject.is_in(clause)] or _of_a_person(clauses, subject)
    if len(named) != 1:
        return ""
    matter = _matters(f"{named[0]} {' '.join(filterfalse(_is_kin, subject.terms))}")
    place = clauses.index(named[0])
    before = [each for each in clauses[:place] if tells_of_another(each, matter)]
    # A following clause that names no other matter or time continues the removed one.
    after = [
        each
        for each in clauses[place + 1 :]
        if tells_of_another(each, matter) and (_OPENS.match(each) or _matters(each))
    ]
    return "".join(before + after)


def _of_a_person(clauses: Sequence[str], subject: Subject) -> list[str]:
    """The clauses that tell the matter of a person whom another clause names: 我女儿上小学，对芒果过敏."""
    matter = set(filterfalse(_is_kin, subject.terms))
    if not subject.of_kin or not matter or matter == subject.terms:
        return []
    return [clause for clause in clauses if matter <= subject.terms & frozenset(terms(clause))]


def clauses_of(statement: str) -> list[str]:
    """A statement cut after each comma; joined, the clauses are the statement."""
    places = [0, *(each.end() for each in re.finditer(rf"[,，]{_THOUSANDS}\s*", statement)), len(statement)]
    return [statement[a:b] for a, b in pairwise(places) if statement[a:b]]


def tells_of_another(clause: str, matter: frozenset[str]) -> bool:
    """Whether a clause is informative alone, names none of the given concepts, and refers to nothing before it."""
    words = [term for term in informative_terms(clause) if not re.search(r"\d", term)]
    return bool(words) and not refers_back(clause) and not matter & _matters(clause)


def _matters(text: str) -> frozenset[str]:
    """What a text mentions, except amounts and people of whom more may follow."""
    return frozenset(concepts(text)) - (AMOUNTS - {"health"}) - BEINGS


def without_member(statement: str, subject: Subject) -> str | None:
    """An English statement with one member of a list left out: “peanuts and cats” without the cats is “peanuts”.

    None where not one member alone speaks of the subject, or it cannot be told where that one begins.
    """
    breaks = list(_LIST.finditer(statement))
    if not breaks:
        return None
    ends = [*(each.start() for each in breaks), len(statement)]
    pieces = [statement[a:b] for a, b in zip([0, *(each.end() for each in breaks)], ends, strict=True)]
    head, _, first = pieces[0].rpartition(" ")
    members = [first, *pieces[1:]]
    named = [place for place, member in enumerate(members) if subject.shares_with(member)]
    if len(named) != 1 or (" " in members[-1].strip() and " " not in head.strip()):
        return None
    (place,) = named
    if place == 0:
        if any(" " in member.strip() for member in members[1:]):
            return None
        rest = f"{head} {statement[breaks[0].end() :]}".lstrip()
    elif place < len(breaks):
        rest = statement[: breaks[place - 1].start()] + statement[breaks[place].start() :]
    else:
        end = statement[len(statement.rstrip(" .!?")) :]
        rest = statement[: breaks[-1].start()] + end
    return None if subject.is_in(rest) else rest


def worth_keeping(rest: str, *, least: int = 1) -> str:
    """The remainder of a message if it has at least `least` informative words, else an empty text."""
    left = _CONNECTIVE.sub("", rest.strip().strip(",，、;；:： "))
    return left if len(left) >= _SHORTEST_LEFT and len(informative_terms(left[:_READ])) >= least else ""


def known_in(items: Sequence[str], subject: Subject) -> list[str]:
    """The items of core memory about a subject; they are short, so few shared words suffice."""
    found = []
    for item in items:
        words = informative_terms(item) or lone_characters(item)
        if subject.is_in(item) or (words and len(words) <= _FEW and words <= subject.terms and _says(words)):
            found.append(item)
    return found


def _says(words: frozenset[str]) -> bool:
    return any(len(simplified(word)) > 1 for word in words)
