"""Decides what stays of a text when something goes; nothing else decides this.

Whole clauses go, and the others stay letter by letter and in order; nothing is joined into a new sentence. If a
clause says both what goes and something else, or depends on a clause that goes, it is returned as `shared`, so
that the caller can ask about it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

from services.memory.reading.words import Words, names_in
from services.text.language import SEMICOLONS, Sentence, language_of, sentences
from services.text.tokenizer import is_informative, simplified

_EDGES = " \t\n.,!?;:。，！？；：、…"
_LONGEST_SENTENCE = 1_000
"""In characters; a longer sentence is a table or a list of words, and counts as one clause."""
_MOST_CLAUSES = 2_500
"""Maximum number of clauses that are judged, about as many as 20,000 characters have; later ones stay."""
_AND = re.compile(r"(?:[,;] (?:and |but |so )?| (?:and|but|so) )(?:that |also |then |now )?(?=\w)", re.IGNORECASE)
_PRONOUN = re.compile(r"(?:(?:i|we|he|she|they|it)(?:'\w+)?|im|ive) (?!and\b|or\b)\w", re.IGNORECASE)
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
    r"grew|volunteers?|prefers?|avoids?|enjoys?|enjoyed|gets?|got|lost|found|left|broke|fell|gave|told|said|met|won|"
    r"sent|spent|paid|slept|sleeps?|quits?|became|hurt|calls?|gives?|says?|tells?|uses?|wears?|wore|walks?|cancel?led|"
    r"lent|felt|held|led|meant|put|let|cut|hit|shut|bit|bent|brought|caught|chose|dug|drew|fed|fought|flew|forgot|hid|"
    r"forget|delete|remove|erase|drop|"
    r"hung|laid|lay|lit|rode|rang|rose|shook|shot|sank|stole|stuck|stood|swore|swept|tore|threw|understood|woke|"
    r"[a-z]{2,20}ed)\b"
)
_HAS_VERB = re.compile(rf"^(?:\S+ ){{0,6}}?{_VERB}", re.IGNORECASE)
_NAMED = re.compile(rf"[A-Z][\w'-]{{0,30}}(?: [A-Z][\w'-]{{0,30}})? (?:{_VERB})")
_STATES = re.compile(
    r"\b(?:(?:(?:i|we|he|she|they|it)(?:'\w{1,3})?|im|ive) (?!and\b|or\b)\w|"
    rf"(?:my|our|his|her|their|its|the) (?:\S{{1,40}} ){{0,6}}?{_VERB})",
    re.IGNORECASE,
)
_OPENS_WITH_VERB = re.compile(_VERB, re.IGNORECASE)
_ASKS = re.compile(
    r"(?:can|could|would|will|do|does|did|is|are|am|was|were|should|shall|has|have)(?:n't)? "
    r"(?:i|you|u|we|he|she|it|they|that|this)\b|(?:please|pls)\b",
    re.IGNORECASE,
)
"""Begins a question or a request, whose subject follows the verb."""
_ASKS_IN_CHINESE = re.compile(r"帮|请|麻烦|能不能|可不可以|可以|求|给我|怎么|有没有|要不要")
_SUBORDINATE = re.compile(
    r"\b(?:if|because|when|while|since|although|though|unless|until|whether|which|who|whose|whereas)\b|"
    r"因为|由于|所以|如果|要是|虽然|除非|只要|只有|既然|即使|而是|的话|的时候|才|于是",
    re.IGNORECASE,
)
_CHINESE_COMMA = re.compile(
    r"[，；]+(?!\d)(?:[而并]且|另外|同时|然后|所以|但是|不过|可是|但)?|[,;](?=[\u3400-\u9fff])"
    r"|(?<=[\u3400-\u9fff～~]) +(?=[\u3400-\u9fff])|"
    r"(?<=\d) +(?=[\u3400-\u9fff])(?![年月日号點点岁块元个人分天周次米斤公度只条本])"
)
_CHINESE_SUBJECT = re.compile(
    r"(?:还有)?(?:我|咱|俺|你|您|他|她|它|家里|老婆|老公|妻子|丈夫|爸|妈|父亲|母亲|儿子|女儿|孩子|哥|姐|弟|妹|爷爷|奶奶|外公|外婆|姥姥|姥爷|姑|姨|舅|叔|伯|婆婆|公公|侄|孙|"
    r"朋友|同事|室友|邻居|老板|领导|老师|同学|医生|闺蜜|男友|女友)"
)
_CHINESE_VERB = re.compile(
    "[是有在叫住去来做当养爱怕会想要吃喝买用学教开得搬生读看玩打练写说给姓属考唱跑游跳画种卖租弹骑钓爬戴]|"
    r"喜欢|讨厌|过敏|工作|上班|结婚|下.?棋|[了过着很不没都已刚正]|[\d一二三四五六七八九十两半]{1,4}(?:个?月|岁|号|点|斤|公斤|米|厘米|块|元)"
)
_LONGEST_ADVERBIAL = 3
"""Words before the subject of a clause (“on Tuesdays I …”)."""
_ONESELF = frozenset("我咱俺")
_LONGEST_SUBJECT = 3
"""Characters of a Chinese subject."""
_TOUCHED = 0.25
"""Share of its words from which on a part of a clause counts as named. It is not zero, because two lists may share
a character."""
_SEVERAL, _MANY = 2, 6
"""Number of words that say something of their own, and number that say much; a Chinese character is half a
word."""
_COORDINATES = re.compile(
    r"(?:[,;] ?| )(?:and|or|but|as well as|plus)(?= )|[,;](?!\d)| [/&+] |[，；、]|"
    r"(?<=\w)(?:和|与|及|以及|或者?|还有|[而并]且)(?=\w)",
    re.IGNORECASE,
)
"""Marks and words between parts of a clause that may be about different things."""


@dataclass(frozen=True)
class Clause:
    """A part of a sentence."""

    text: str
    """Its words, without the marks and the conjunction around them."""
    start: int
    end: int
    stands: bool
    """Whether it can stand without the clauses before it in its sentence."""
    asks: bool = False
    """Whether it ends in a question mark."""


@dataclass(frozen=True)
class Rest:
    """A text after something has gone: the part that stays, and the part that does not."""

    text: str
    """The sentences and clauses that stay; empty = nothing stays."""
    gone: tuple[str, ...] = ()
    """The clauses that go."""
    shared: tuple[str, ...] = ()
    """Removed clauses that also say something else, each with the following clauses that cannot stand alone."""


def what_stays(
    text: str, goes: Callable[[str], bool], *, says_more: Callable[[str], bool] = lambda _: False
) -> Rest:
    """Return what stays of a text without the clauses for which `goes` is true.

    A clause that depends on one that goes (“and train for a marathon”) goes with it, and so does the rest of a
    clause for which `says_more` is true. Both are in `shared`.
    """
    gone, shared, written = list[str](), list[str](), ""
    seen = 0
    for sentence in sentences(text, SEMICOLONS):
        runs: list[list[Clause]] = [[]]
        """Clauses that stay, grouped into runs of neighbours."""
        subject: Clause | None = None
        """The clause that holds the subject of the following ones, if it goes."""
        for part in clauses_of(sentence):
            seen += 1
            is_named = seen <= _MOST_CLAUSES and goes(part.text)
            if part.stands:
                subject = part if is_named else None
            if is_named and says_more(part.text):
                shared.append(part.text)
            elif not is_named and subject is not None:
                shared.append(text[subject.start : part.end].strip(_EDGES))
            elif not is_named:
                runs[-1].append(part)
                continue
            gone.append(part.text)
            runs.append([])
        if len(runs) == 1:
            written += sentence.text
            continue
        mark = sentence.mark.strip() or ("。" if language_of([sentence.text]) == "zh" else ".")
        space = "" if mark in "。！？" else " "
        for run in filter(None, runs):
            written += text[run[0].start : run[-1].end].strip(_EDGES) + mark + space
    return Rest(written.strip(), tuple(gone), tuple(dict.fromkeys(shared))) if gone else Rest(text)


def says_more_than(clause: str, what: str) -> bool:
    """Return whether a clause says something beyond what the given words name.

    It does if `names_a_part` is true, if it has several words beside a statement that names it, or if it has many
    words beside the name of something (“the wifi password”), to which the clause gives a value.
    """
    named, language = Words.of(what), language_of([what])
    if not named.share_in(Words.of(clause)):
        return False  # it was found by its meaning, as a whole
    if names_a_part(clause, what):
        return True
    several = _SEVERAL if _says_something(what, is_chinese=language == "zh") else _MANY
    return Words.of(clause).without(named).count >= several


def names_a_part(clause: str, what: str) -> bool:
    """Return whether words name only one of several things in a clause.

    This is so if one of its coordinated parts has none of the words; if a part has informative words of its own
    beside a part that has none; or if the words are only names, and the clause has further names.
    """
    named = Words.of(what)
    if not named.count or not named.share_in(Words.of(clause)):
        return False
    parts = parts_of(clause)
    beside = [Words.of(part).without(named).count > 0 for part in parts]
    touched = [named.share_in(Words.of(part)) > _TOUCHED for part in parts]
    if len(parts) > 1 and not all(touched):
        return any(own and not hit for own, hit in zip(beside, touched, strict=True))
    if len(parts) > len(parts_of(what)) and any(beside) and not all(beside):
        return True
    names = names_in(clause)
    is_name = named.covered_by(Words.of(names_in(f"x {what}")))
    return is_name and bool(names) and Words.of(names).without(named).count > 0


def parts_of(clause: str) -> list[str]:
    """Return the coordinated parts of a clause that say something (“peanuts and cats”); the clause itself if it
    has none."""
    parts = (each.strip(_EDGES) for each in _COORDINATES.split(clause))
    return [each for each in parts if len(each) > 1 and is_informative(each)]


def clauses_of(sentence: Sentence) -> list[Clause]:
    """Split a sentence into clauses, in order; a sentence that cannot be split safely is one clause."""
    is_chinese = language_of([sentence.text]) == "zh"
    boundary = _CHINESE_COMMA if is_chinese else _AND
    is_short = len(sentence.text) <= _LONGEST_SENTENCE
    can_be_split = is_short and not _SUBORDINATE.search(simplified(sentence.text))
    cuts: list[tuple[int, int, bool]] = []
    marks = list(boundary.finditer(sentence.text)) if can_be_split else []
    pieces = [
        sentence.text[begin.end() if begin else 0 : end.start() if end else None]
        for begin, end in pairwise([None, *marks, None])
    ]
    for mark, left, right in zip(marks, pieces, pieces[1:], strict=False):
        before = sentence.text[: mark.start()]
        is_question = sentence.asks and mark is marks[-1]
        cut = _cut_in_chinese if is_chinese else _cut_in_english
        stands = cut(before, left, mark[0].strip(), right, goes_on=bool(cuts))
        if stands is not None:
            cuts.append((mark.start(), mark.end(), stands or is_question))
    found_clauses = []
    begin, stands = 0, True
    for end, following, next_stands in [*cuts, (len(sentence.text), len(sentence.text), True)]:
        words = sentence.text[begin:end].strip(_EDGES)
        if words:
            at = sentence.start
            found_clauses.append(Clause(words, at + begin, at + end, stands))
        begin, stands = following, next_stands
    if found_clauses and sentence.asks:
        found_clauses[-1] = replace(found_clauses[-1], asks=True)
    return found_clauses


def _cut_in_chinese(before: str, left: str, mark: str, right: str, *, goes_on: bool) -> bool | None:  # noqa: ARG001
    """Return whether the words after a mark can stand alone; None if they belong to the words before. Every comma
    and blank ends a clause, unless a subject about which nothing is said yet stands beside it."""
    if _is_bare_subject(left) or _is_bare_subject(right) or len(right.strip(_EDGES)) <= 1:
        return None
    subjects = _CHINESE_SUBJECT.findall(simplified(before))
    if _ASKS_IN_CHINESE.match(simplified(right.strip(_EDGES))):
        return True
    # What is said without a subject after words about oneself is about oneself, also when they go.
    return not mark or _is_whole_chinese(right) or all(each in _ONESELF for each in subjects)


def _cut_in_english(before: str, left: str, mark: str, right: str, *, goes_on: bool) -> bool | None:
    """Return whether the words after a mark can stand alone; None if they belong to the words before. A comma and
    a conjunction end a clause if both sides have verbs."""
    is_statement = goes_on or _says_something(before, is_chinese=False) or _ASKS.match(before) is not None
    stands = _is_whole(right)
    if not is_statement or not _ends(left, mark) or not (stands or _opens_with_verb(right)):
        return None
    return stands or not _has_subject(before)


def _is_bare_subject(words: str) -> bool:
    """Return whether Chinese words are only a subject, about which nothing is said yet (我妈)."""
    words = simplified(words.strip(_EDGES))
    if len(words) > _LONGEST_SUBJECT or _CHINESE_VERB.search(words):
        return False
    return _CHINESE_SUBJECT.match(words) is not None


def _is_whole_chinese(words: str) -> bool:
    """Return whether Chinese words begin with a subject and have a verb."""
    words = simplified(words.strip(_EDGES))
    return _CHINESE_SUBJECT.match(words) is not None and _CHINESE_VERB.search(words) is not None


def _is_whole(words: str) -> bool:
    """Return whether English words begin with a subject and have a verb."""
    words = words.strip(_EDGES)
    if _PRONOUN.match(words) or _NAMED.match(words) or _ASKS.match(words):
        return True
    if (found := _STATES.search(words)) is not None and words[: found.start()].count(" ") <= _LONGEST_ADVERBIAL:
        return True
    return _SUBJECT.match(words) is not None and _HAS_VERB.match(words) is not None


def _has_subject(words: str) -> bool:
    """Return whether English words contain a subject with its verb anywhere, for example after “remember that”."""
    return _STATES.search(words) is not None or _NAMED.search(words) is not None


def _says_something(words: str, *, is_chinese: bool) -> bool:
    """Return whether words are a statement, with a subject or without."""
    if is_chinese:
        return _CHINESE_VERB.search(simplified(words)) is not None
    return _has_subject(words) or _opens_with_verb(words)


def _ends(words: str, mark: str) -> bool:
    """Return whether English words end at a mark; they do not if a subject goes on after it (“my wife and I
    live”)."""
    words = words.strip(_EDGES)
    may_be_subject = _SUBJECT.match(words) or _PRONOUN_ALONE.match(words) or words[:1].isupper()
    return _has_subject(words) or _opens_with_verb(words) or (mark[:1] == "," and not may_be_subject)


def _opens_with_verb(words: str) -> bool:
    """Return whether English words continue about the subject before them."""
    return _OPENS_WITH_VERB.match(words.strip(_EDGES)) is not None
