"""Remainders: what memory keeps of a text when some of it goes; and the words by which a text is found in others.

A remainder is made of whole sentences of the text, or of whole clauses that keep their subject. Nothing is joined
into a new sentence: what cannot stand alone goes as well, and the caller tells what else was said.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from services.memory.content import FIELD_LABELS, FIELD_STATEMENTS
from services.memory.model import Memory
from services.text.language import Sentence, language_of, sentences
from services.text.tokenizer import informative_terms, simplified, terms

_EDGES = " \t\n.,!?;:。，！？；：、…"
_LONGEST_SENTENCE = 1_000
"""Characters; what is longer is a table or a heap of words, and one clause."""
_MOST_CLAUSES = 200
"""Clauses of a text that are looked at one by one; what follows is kept as it is."""
_AND = re.compile(r"(?:[,;] (?:and |but |so )?| (?:and|but|so) )(?=\w)", re.IGNORECASE)
_PRONOUN = re.compile(r"(?:i|we|he|she|they|it)(?:'\w+)? (?!and\b|or\b)\w", re.IGNORECASE)
_PRONOUN_ALONE = re.compile(r"(?:i|we|he|she|they|it|you)\b", re.IGNORECASE)
_SUBJECT = re.compile(r"(?:my|our|his|her|their|its|the)\b", re.IGNORECASE)
_VERB = (
    r"(?:is|are|was|were|am|has|have|had|does|do|did|can|can't|could|will|won't|would|should|must|may|might|isn't|"
    r"aren't|wasn't|doesn't|don't|didn't|lives?|lived|works?|worked|plays?|played|study|studies|studied|likes?|liked|"
    r"loves?|loved|hates?|hated|wants?|wanted|needs?|needed|keeps?|kept|runs?|ran|goes|go|went|comes?|came|makes?|"
    r"made|takes?|took|teach|teaches|taught|sells?|sold|drives?|drove|owns?|owned|eats?|ate|drinks?|drank|sings?|sang|"
    r"speaks?|spoke|starts?|started|moves?|moved|turns?|turned|visits?|visited|stays?|stayed|buys?|bought|collects?|"
    r"paints?|writes?|wrote|reads?|knows?|knew|thinks?|thought|costs?|closes|opens|ends|begins|began|arrives?|"
    r"arrived|retires?|retired|graduates?|graduated|trains?|swims?|swam|dances?|cooks?|bakes?|builds?|built|grows?|"
    r"grew|volunteers?|prefers?|avoids?|enjoys?|enjoyed)\b"
)
_HAS_VERB = re.compile(rf"^(?:\S+ ){{0,6}}?{_VERB}", re.IGNORECASE)
_OPENS_WITH_VERB = re.compile(_VERB, re.IGNORECASE)
_SUBORDINATE = re.compile(
    r"\b(?:if|because|when|while|since|although|though|unless|until|whether|which|who|whose|whereas)\b|"
    r"因为|由于|所以|如果|要是|虽然|但|不过|除非|只要|只有|既然|即使|而是|不是|就是|的话|的时候|才|于是",
    re.IGNORECASE,
)
_CHINESE_COMMA = re.compile(r"[，；]+(?!\d)(?:[而并]且|另外|同时|然后|所以)?|[,;](?=[\u3400-\u9fff])")
_CHINESE_SUBJECT = re.compile(
    r"(?:还有)?(?:我|咱|俺|他|她|它|家里|老婆|老公|妻子|丈夫|爸|妈|父亲|母亲|儿子|女儿|孩子|哥|姐|弟|妹|爷爷|奶奶|外公|外婆)"
)
_CHINESE_VERB = re.compile(
    "[是有在叫住去来做当养爱怕会想要吃喝买用学教开得搬生读看玩打练写说给姓属考唱跑游跳画种卖租弹骑钓爬戴]|"
    "喜欢|讨厌|过敏|工作|上班|结婚|下.?棋"
)
_REFERS = re.compile(r"(?:he|she|they|it|his|her|their|its|this|that|these|those)\b|[他她它这那]", re.IGNORECASE)

_SHORTEST_STEM = 5
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_PERSON = re.compile(
    r"\s{0,8}(?:that\s{1,8})?(?:(?P<own>i\b|i['’]|we\b|我)|(?:she|he|they)\b|[她他])", re.IGNORECASE
)
_LITTLE = frozenset("我你您他她它咱们的地得了着是对有在会于这那个件事都也很吗呢吧啊呀请把和跟与就说过叫")
"""Chinese characters that distinguish no statement."""


@dataclass(frozen=True)
class Clause:
    """A part of a sentence."""

    text: str
    """Its words, without the marks and the conjunction around them."""
    start: int
    end: int
    stands: bool
    """Whether it stands without what precedes it in its sentence."""


@dataclass(frozen=True)
class Remainder:
    """What is left of a text."""

    text: str
    """Whole sentences and clauses of it; empty = nothing is left."""
    gone: tuple[str, ...] = ()
    also_gone: tuple[str, ...] = ()
    """Clauses that went with them because they cannot stand without them."""


def without(text: str, goes: Callable[[str], bool]) -> Remainder:
    """Return what is left of a text without the clauses for which `goes` is true, in the text's own words.

    What refers to a clause that goes (“and he is three”), or depends on it (“and train for a marathon”), goes too.
    """
    gone, also, written = list[str](), list[str](), ""
    seen, follows_gone = 0, False
    for sentence in sentences(text):
        runs: list[list[Clause]] = [[]]
        """Clauses that are kept, those together that stand next to each other."""
        for part in clauses_of(sentence):
            seen += 1
            if seen <= _MOST_CLAUSES and goes(part.text):
                gone.append(part.text)
                follows_gone = True
            elif seen <= _MOST_CLAUSES and follows_gone and (not part.stands or _REFERS.match(part.text)):
                also.append(part.text)
            else:
                runs[-1].append(part)
                follows_gone = False
                continue
            runs.append([])
        if len(runs) == 1:
            written += sentence.text
            continue
        mark = sentence.mark.strip() or ("。" if language_of([sentence.text]) == "zh" else ".")
        space = "" if mark in "。！？" else " "
        for run in filter(None, runs):
            written += text[run[0].start : run[-1].end].strip(_EDGES) + mark + space
    return Remainder(written.strip(), tuple(gone), tuple(also)) if gone else Remainder(text)


def sentences_without(text: str, removed: str) -> str:
    """Return the whole sentences of a text that share no informative word with what was removed."""
    words = informative_terms(removed)
    return "".join(each.text for each in sentences(text) if words.isdisjoint(informative_terms(each.text))).strip()


def clauses_of(sentence: Sentence) -> list[Clause]:
    """Split a sentence into clauses, in order; what cannot be split safely is one clause."""
    is_chinese = language_of([sentence.text]) == "zh"
    boundary = _CHINESE_COMMA if is_chinese else _AND
    is_short = len(sentence.text) <= _LONGEST_SENTENCE
    can_be_split = is_short and not sentence.asks and not _SUBORDINATE.search(simplified(sentence.text))
    cuts: list[tuple[int, int, bool]] = []
    marks = list(boundary.finditer(sentence.text)) if can_be_split else []
    pieces = [
        sentence.text[begin.end() if begin else 0 : end.start() if end else None]
        for begin, end in pairwise([None, *marks, None])
    ]
    for mark, left, right in zip(marks, pieces, pieces[1:], strict=False):
        begins = cuts or _is_whole(sentence.text[: mark.start()], is_chinese)
        stands = _is_whole(right, is_chinese)
        if begins and _ends(left, mark[0], is_chinese) and (stands or _depends(right, is_chinese)):
            cuts.append((mark.start(), mark.end(), stands))
    found_clauses = []
    begin, stands = 0, True
    for end, following, next_stands in [*cuts, (len(sentence.text), len(sentence.text), True)]:
        words = sentence.text[begin:end].strip(_EDGES)
        if words:
            at = sentence.start
            found_clauses.append(Clause(words, at + begin, at + end, stands))
        begin, stands = following, next_stands
    return found_clauses


def _is_whole(words: str, is_chinese: bool) -> bool:
    """Return whether words have a subject of their own and a verb."""
    words = words.strip(_EDGES)
    if is_chinese:
        words = simplified(words)
        return _CHINESE_SUBJECT.match(words) is not None and _CHINESE_VERB.search(words) is not None
    if _PRONOUN.match(words):
        return True
    return _SUBJECT.match(words) is not None and _HAS_VERB.match(words) is not None


def _ends(words: str, mark: str, is_chinese: bool) -> bool:
    """Return whether words end at a mark, and do not begin a subject (“my wife and I live”)."""
    words = words.strip(_EDGES)
    if _is_whole(words, is_chinese):
        return True
    if is_chinese:
        return _CHINESE_SUBJECT.match(simplified(words)) is None
    may_be_subject = _SUBJECT.match(words) or _PRONOUN_ALONE.match(words) or words[:1].isupper()
    return _depends(words, is_chinese) or (mark[0] in ",;" and not may_be_subject)


def _depends(words: str, is_chinese: bool) -> bool:
    """Return whether words go on about the subject before them."""
    words = words.strip(_EDGES)
    if is_chinese:
        return _CHINESE_VERB.search(simplified(words)) is not None
    return _OPENS_WITH_VERB.match(words) is not None


@dataclass(frozen=True)
class Words:
    """The words by which a text is found in others."""

    terms: frozenset[str]
    """Stems of informative words in other scripts than Chinese."""
    characters: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "Words":
        """Return the informative words of a text; where it has none, all of its words."""
        found = informative_terms(text) or frozenset(terms(text))
        characters = frozenset(_CHINESE.findall(simplified(text))) - _LITTLE
        return cls(frozenset(each for each in found if not _CHINESE.search(each)), characters)

    @property
    def count(self) -> float:
        """Return how many words there are; two Chinese characters count as one."""
        return len(self.terms) + len(self.characters) / 2

    def share_in(self, other: "Words") -> float:
        """Return the share of these words, 0 to 1, that stand in another text."""
        if not self.count:
            return 0.0
        shared = len(self.terms & other.terms) + len(self.characters & other.characters) / 2
        return shared / self.count

    def covered_by(self, other: "Words") -> bool:
        """Return whether another text has all of these words, of many Chinese characters nearly all."""
        missing = len(self.characters - other.characters)
        return bool(self.count) and self.terms <= other.terms and missing * 10 <= len(self.characters)

    def resembles(self, other: "Words") -> bool:
        """Return whether another text has all of these words, or some that begin so (“allergy”, “allergic”)."""
        missing = len(self.characters - other.characters)
        beginnings = {each[:_SHORTEST_STEM] for each in other.terms if len(each) >= _SHORTEST_STEM}
        apart = [each for each in self.terms - other.terms if each[:_SHORTEST_STEM] not in beginnings]
        return not apart and missing * 10 <= len(self.characters)


def labelled(memory: Memory) -> str:
    """Return a memory's text, that of a value with the names of its field in both languages."""
    if memory.kind != "value":
        return memory.text
    labels = [each[memory.field] for each in FIELD_LABELS.values() if memory.field in each]
    return " ".join([*labels, memory.field.replace("_", " "), memory.text])


def stated(memory: Memory) -> str:
    """Return a memory's text with every word by which a user may state it."""
    said = FIELD_STATEMENTS.get(memory.field, "") if memory.kind == "value" else ""
    return f"{labelled(memory)} {said}"


def words_of(memory: Memory) -> Words:
    """Return the words by which a memory is found: of a value also those by which a user states it."""
    return Words.of(stated(memory))


def speaks_of_another(text: str, memory: Memory) -> bool:
    """Return whether the one of a text and a memory begins with “I”, and the other with “she”, “he” or “they”."""
    states = memory.kind == "value" and memory.field in FIELD_STATEMENTS
    known = "I" if states else _person(memory.text)
    return {known, _person(text)} == {"I", "they"}


def _person(text: str) -> str | None:
    found = _PERSON.match(text)
    return None if found is None else "I" if found["own"] else "they"


def patterns_of(words: str) -> list[str]:
    """Return patterns of LIKE, of which whatever shares a word with these matches one."""
    stems = {
        term[:-1] if term.isascii() and len(term) >= _SHORTEST_STEM else term
        for term in (informative_terms(words) or frozenset(terms(words)))
    }
    # Traditional characters are stored as they were written, and terms are simplified.
    stems |= {f"{one}{other}" for one, other in pairwise(words) if _CHINESE.match(one) and _CHINESE.match(other)}
    long = {stem for stem in stems if len(stem) > 1} or stems
    return sorted("%" + re.sub(r"([\\%_])", r"\\\1", stem) + "%" for stem in long)
