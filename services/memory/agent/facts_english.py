"""Plain statements in English: a subject, a predicate, and the frame that says what to keep of it."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import takewhile

from services.memory.agent.fact import Fact, Frame
from services.memory.agent.frames_english import ACTIVITY, BEING, DOING, LIKING, NAME, OWNED, UPCOMING
from services.text.clauses import Clause
from services.text.first_names import is_first_name

_CONTRACTIONS = (
    (r"\b(i)'m\b", r"\1 am"),
    (r"\b(i|we)'ve\b", r"\1 have"),
    (r"\b(i|we)'ll\b", r"\1 will"),
    (r"\b(i|we)'d\b", r"\1 would"),
    (r"\bwe're\b", "we are"),
    (r"\bcan't\b|\bcannot\b", "can not"),
    (r"\bwon't\b", "will not"),
    (r"\b(do|does|did|is|are|was|were|have|has|had|would|could|should)n't\b", r"\1 not"),
    (r"\bhave got\b", "have"),
    (r"\bname's\b", "name is"),
    (r"\bbirthday's\b", "birthday is"),
    (r"\bfavou?rite\b", "favourite"),
)
_ADVERBS = (
    r"(?:really|also|still|just|always|quite|now|so|absolutely|actually|truly|simply|even|particularly|especially|"
    r"currently|usually|recently|already|very|both|originally|finally|definitely|personally|officially|severely|"
    r"terribly|badly|mildly|deathly|highly|slightly|basically|generally|mostly|mainly|only|all|kind of|sort of|"
    r"pretty|rather|these days|normally|typically|secretly|totally|completely|a bit|a little|obviously|honestly|"
    r"temporarily|permanently|presently|fully|partly|more or less|strictly|seriously|newly|freshly|happily)"
)
_NOT_PLAIN = re.compile(
    r"\b(?:would|could|might|(?<!in )(?<!\d )(?<!on )may(?! \d)|maybe|perhaps|probably|possibly|supposedly|"
    r"apparently|should|shall|wish|pretend|"
    r"hopefully|if|unless|whether|imagine|suppose|hypothetically|almost|nearly|thinking of|thinking about|"
    r"considering|thought|joking|kidding|just love|dreamt|dreamed|dream|sarcasm|sarcastic|novel|screenplay|"
    r"fiction|role|"
    r"character|supposed to|as though|like to think|lyrics|not sure|no idea|guess|doubt|forgot|"
    r"(?:said|says|told|tells|claims?|claimed|thinks|believes?|asked|asks|heard|joked|insists?|insisted|"
    r"swears?) )\b"
    r"|\b(?:said|says|told|claims|claimed|thinks|believes|asked|insists|insisted|quotes?|quoted)\b|[\"“”]"
)
_ENDS = re.compile(
    r"\s*(?:[,;(]|:(?!\d)|\s(?:since|because|so|and (?:i|my|we|it|they|he|she|that|there|the)|but|now|"
    r"these days|right now|"
    r"any ?more|at the moment|currently|recently|already|yesterday|today|ago|when|where|which|who|if|though|"
    r"although|"
    r"while|a lot|very much|so much|too|as well|at all|either|by the way|btw|actually|then|again|permanently|"
    r"instead|"
    r"after all|for (?:now|work|almost|about|over|\w+ (?:years?|months?|weeks?)|a (?:while|year|few|couple))|"
    r"last (?:year|month|week|summer|winter|spring|autumn|fall|night)|this (?:year|month|week)|in (?:19|20)\d\d|"
    r"to be honest|tbh|with my|i think|you know|though|lol|haha|as you know|as i said|in case|just so you know|"
    r"(?:a few|a couple of|some|two|three|four|five|six|seven|eight|ten|\d+) (?:days?|weeks?|months?|years?))\b)",
    re.IGNORECASE,
)
_MARKS = " .,;:!?'\"~-–—"
_LONGEST = 80
_SINCE = re.compile(r"(?:please )?(?:from now on|going forward|in (?:the )?future|from here on)", re.IGNORECASE)
_ANOTHER = re.compile(
    r"\s+(?:and|but)(?: (?:also|now|still|really|just|always|only))? (?=(?:live|work|have|love|hate|like|am|play|"
    r"speak|study|own|drive|enjoy|prefer|teach|run|do not|did not|can not|could not|would not|am not|never)\b)",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"^(?:it|that|this|these|those|you|your|yours|them|him|her|his|their|how|what|where|when|why|everything|"
    r"nothing|"
    r"anything|something|so|me|us|being|getting|having to|waiting|paying|doing|one$|another|more|some|any|all|"
    r"none|"
    r"both|every time|each other|here|there|home|work|progress|general|a lot|option \w+|"
    r"\w+ing (?:this|that|it|you)|"
    r"to (?:know|ask|see|say|think|thank|hear|add|tell|point|bother|interrupt|be|break|admit)|"
    r"the (?:way|sound|fact|answer|first|second|third|last|other|same|new|look|result|previous|next)|"
    r"(?:my|our|the|a) (?:current|present|same)|"
    r"the (?:[\w-]+ ){0,2}(?:one|option|version|idea|draft)|"
    r"an? (?:good|nice|bad|better|great|quick|new) (?:idea|question|one|answer))\b",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"^(?:(?:and|so|ok|okay|please|hey|also|could you|can you|would you|i(?: would|'d) (?:like|prefer|"
    r"appreciate) (?:it )?"
    r"(?:if )?(?:you )?(?:to|could|would)?|i want you to|i need you to|you should|remember to)[, ]+)*"
    r"(?P<before>(?:from now on|going forward|in (?:the )?future|from here on(?: out)?|always|never|in general|"
    r"every time|at all times|generally|as a rule)[, ]+)?(?:please )?(?:always |never )?"
    r"(?P<wish>(?:(?:do not|don't|stop|never|always) )?(?:answer|reply|respond|speak|talk|write|use|using|keep|"
    r"call|"
    r"calling|address|addressing|be|explain|give|avoid|start|end|include|add|adding|put|format|show|shorten|begin|"
    r"cite|say|saying|stick|convert|translate|sign|apologi[sz]ing|apologi[sz]e|remind)\b.*?)"
    r"(?P<after>,? (?:from now on|going forward|in (?:the )?future|from here on(?: out)?|always|every time|at "
    r"all times|"
    r"in all (?:your )?(?:answers|replies)|each time))?$",
    re.IGNORECASE,
)
_STANDING = re.compile(r"\b(?:always|never|stop)\b", re.IGNORECASE)
_TO_THE_ASSISTANT = re.compile(
    r"\b(?:answer|repl(?:y|ies)|respond|response|speak|talk|address|calling|call me|emoji|emojis|units?|metric|"
    r"imperial|celsius|"
    r"fahrenheit|short|brief|concise|bullet|bullets|formal|informal|tone|jargon|apologi|polite|first name|"
    r"language|"
    r"english|french|german|spanish|chinese|examples?|sources|markdown|tables?|answers|explanations?|step by "
    r"step|prices?|euros?|"
    r"dollars|24-hour|exclamation|slang|headings|lists?|code|comments|with me|to me)\b",
    re.IGNORECASE,
)
_CALL_ME = re.compile(
    r"^(?:(?:please|just|you can|you may|so|everyone|people|they|most people|friends)[, ]+)*(?:usually |always |"
    r"all |mostly |just )?"
    rf"calls? me {NAME}",
    re.IGNORECASE,
)
_DECIDED = re.compile(
    r"^(?:i|we)(?: have)? (?:\w+ly |now |just )?decided (?P<V>(?:not )?(?:to|that|on|against) \S.*)$",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    rf"^(?:i|we)(?P<mid>(?: {_ADVERBS}| am| are| was| were| have| has| had| been| do(?! {ACTIVITY}\b)| did| will"
    rf"| not| never| no longer| used to| can)*)"
    r" (?P<rest>.+)$",
    re.IGNORECASE,
)
_PARTICIPLE = re.compile(
    r"(?:\w+ed|been|got|gone|bought|sold|quit|left|grown|given|taken|begun|cut|run|become|had|lost|won|moved|"
    r"born)\b",
    re.IGNORECASE,
)
_GOING = re.compile(
    rf"^(?P<V>(?:going|flying|travell?ing|moving|visiting|getting married|starting|hosting|attending|running|"
    rf"driving|"
    rf"having (?:surgery|an operation|a baby|dinner|lunch)|taking|returning|leaving)\b(?!.*\bnow\b){UPCOMING})$",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"^(?:and |or |also )?(?P<V>(?!(?:i|so|my|we|but|which|that|it|they|he|she|you|there|please|"
    r"thanks?|sorry|lol|haha|"
    r"ok|okay|btw|bye|cheers|ta|hi|hey|hello|yes|no|honestly|really|though|too|obviously|well|anyway|especially|mostly)\b)"
    r"[\w'-]+(?: [\w'-]+){0,2}(?: (?:and|or) [\w'-]+(?: [\w'-]+){0,2})?)$",
    re.IGNORECASE,
)
_HABITUAL = {
    **{"living": "live", "working": "work", "playing": "play", "teaching": "teach", "doing": "do", "going": "go"},
    **{"singing": "sing", "driving": "drive", "running": "run"},
}
_BEEN_DOING = re.compile(rf"(?P<doing>{'|'.join(_HABITUAL)}) (?P<rest>.+)$", re.IGNORECASE)
_STOPPED = re.compile(
    rf"(?:stopped|quit|gave up|given up|dropped)(?: (?P<doing>{'|'.join(_HABITUAL)}))? (?P<rest>.+)$",
    re.IGNORECASE,
)
_LIKES = re.compile(r"(?:(?:does not|no longer|cannot) )?\w+ ")


def facts_in_english(clauses: list[Clause]) -> list[Fact]:
    """Return what clauses state about the speaker, in order."""
    found: list[Fact] = []
    texts = list(_predicates(clauses))
    for place, text in enumerate(texts):
        facts = list(_facts(text))
        more = _MORE.match(text)
        if not facts and more and found and found[-1].field == "allergies" and not found[-1].ended:
            facts = [Fact("allergies", part) for part in _parts(more["V"])]
        elif facts and facts[-1].field == "preferences":
            facts += _listed(facts[-1], texts[place + 1 :])
        found += facts
    return found


def _listed(first: Fact, following: Sequence[str]) -> Iterator[Fact]:
    """Yield the further members of "likes a, b, c and d" one by one, from the clauses after the first member."""
    verb = _LIKES.match(first.text)
    members = [more["V"] for more in takewhile(bool, map(_MORE.match, following)) if more]
    parts = [part for member in members for part in _parts(member)]
    if verb and len(parts) > 1:  # a single word after a comma is seldom a member
        yield from (Fact("preferences", f"{verb[0]}{part}") for part in parts)


def _predicates(clauses: list[Clause]) -> Iterator[str]:
    """Yield the clauses, each with one predicate; a "since when" precedes its clause."""
    since = ""
    for clause in clauses:
        text = f"{since}{_expanded(clause.text)}"
        since = f"{text}, " if _SINCE.fullmatch(text) else ""
        if since:
            continue
        subject = re.match(r"(?:i|we)\b", text, re.IGNORECASE)
        first, *others = _ANOTHER.split(text) if subject else [text]
        yield first
        yield from (f"{subject[0]} {other}" for other in others if subject)


def _expanded(text: str) -> str:
    for pattern, whole in _CONTRACTIONS:
        text = re.sub(pattern, whole, text, flags=re.IGNORECASE)
    return " ".join(text.split()).strip(_MARKS)


def _facts(text: str) -> Iterator[Fact]:
    called = _CALL_ME.match(text)
    if called:
        yield Fact("preferred_name", called["V"])
        return
    wish = _WISH.match(text)
    if wish:
        standing = wish["before"] or wish["after"] or _STANDING.search(text)
        if standing and _TO_THE_ASSISTANT.search(text) and len(text) <= 2 * _LONGEST:
            yield Fact("wishes", _as_wish(text, wish))
        return
    if _NOT_PLAIN.search(text.casefold()):
        return
    decided = _DECIDED.match(text)
    if decided:
        yield Fact("decision", f"The user has decided {_third_person(decided['V'])}.")
    elif text[:3].casefold() == "my ":
        yield from _of_what_is_mine(text[3:])
    else:
        yield from _of_myself(text)


def _as_wish(text: str, wish: re.Match[str]) -> str:
    words = wish["wish"].strip(_MARKS)
    words = words[:1].casefold() + words[1:]
    before = (wish["before"] or "").strip(" ,").casefold()
    standing = re.search(r"\b(always|never)\b", text[: wish.start("wish")], re.IGNORECASE)
    prefix = f"{standing[1].casefold()} " if standing else f"{before} " if before in ("always", "never") else ""
    return re.sub(
        r"\bme\b",
        "the user",
        f"{prefix}{words}" if not words.casefold().startswith(prefix.strip() or "\0") else words,
    )


def _of_what_is_mine(text: str) -> Iterator[Fact]:
    for pattern, field, template in OWNED:
        found = re.match(pattern, text, re.IGNORECASE)
        if found:
            value = _value(found["V"], names=field in ("name", "preferred_name"))
            if value:
                what = found.groupdict().get("what", "") or ""
                yield Fact(field, template.format(value, what=what.casefold()))
            return


def _of_myself(text: str) -> Iterator[Fact]:
    found = _SUBJECT.match(text)
    if not found:
        return
    mid = f"{found['mid'].casefold()} "
    rest = re.sub(rf"^(?:{_ADVERBS} )+", "", found["rest"], flags=re.IGNORECASE)
    has = re.search(r" (?:have|had)(?: (?:no|not))?\s*$", mid)
    had = has is not None and "had" in has[0] and " have " not in mid
    if has and not _PARTICIPLE.match(rest):
        rest, mid = f"have {rest}", mid[: has.start()] + " "
    denied = any(word in mid for word in (" not ", " never ", " no longer "))
    past = had or any(word in mid for word in (" was ", " were ", " did ", " used to "))
    if " can " in mid:
        rest = f"can {'not ' if denied else ''}{rest}"
        denied = False
    is_being = any(word in mid for word in (" am ", " are ", " was ", " were ", " been "))
    liked = None if is_being else re.match(rf"(?P<verb>{'|'.join(LIKING)})d? (?P<V>.+)$", rest, re.IGNORECASE)
    if liked:
        yield from _liking(liked, text, denied=denied, past=" used to " in mid)
        return
    if " will " in mid:
        return
    stopped = _STOPPED.match(rest)
    if stopped and not denied:
        doings = [_HABITUAL[stopped["doing"].lower()]] if stopped["doing"] else ["play", "do"]
        former = [fact for doing in doings for fact in _first_fact(DOING, f"{doing} {stopped['rest']}", over=True)]
        if former:
            yield former[0]
            return
    if " been " in mid and " have " in mid and (been := _BEEN_DOING.match(rest)):
        yield from _first_fact(DOING, f"{_HABITUAL[been['doing'].lower()]} {been['rest']}", denied=denied)
        return
    going = _GOING.match(rest)
    if is_being and not denied and not past and (going or is_first_name(rest)):
        yield Fact("plans", _third_person(going["V"].strip(_MARKS))) if going else Fact("name", rest)
        return
    no_longer = denied and re.search(r"\bno longer\b|\bany ?more\b", text, re.IGNORECASE) is not None
    facts = _first_fact(BEING, rest, denied=denied, past=past) if is_being else []
    yield from facts or _first_fact(DOING, rest, denied=denied, past=past and not is_being, over=no_longer)


def _first_fact(
    frames: Sequence[Frame], rest: str, *, denied: bool = False, past: bool = False, over: bool = False
) -> list[Fact]:
    """Return what the first frame that fits files of a predicate."""
    found = (list(_by_frame(frame, rest, denied=denied, past=past, over=over)) for frame in frames)
    return next((facts for facts in found if facts), [])


def _liking(found: re.Match[str], text: str, *, denied: bool, past: bool) -> Iterator[Fact]:
    value = _value(found["V"])
    if not value or _VAGUE.match(found["V"]) or found["verb"].casefold() + "d " in text.casefold():
        return
    likes = LIKING[found["verb"].casefold()]
    no_longer = re.search(r"\bno longer\b|\bany ?more\b", text, re.IGNORECASE)
    if past or (denied and no_longer):
        yield Fact("preferences", f"no longer {likes} {value}")
    else:
        yield Fact("preferences", f"does not {found['verb'].casefold()} {value}" if denied else f"{likes} {value}")


def _by_frame(frame: Frame, rest: str, *, denied: bool, past: bool, over: bool) -> Iterator[Fact]:
    found = _pattern(frame).match(rest)
    if not found:
        return
    ended = frame.ends and denied
    text = frame.text if not denied and not past else frame.denied if denied else frame.past
    if ended:
        text = "{}"
    elif over:
        text = f"{frame.over} formerly" if frame.over else text if denied else None
    value = _value(found["V"]) if found["V"] else ""
    if text is None or text == "" or (found["V"] and (not value or _VAGUE.match(found["V"]))):
        return
    if frame.field == "allergies":
        for part in _parts(value):
            yield Fact("allergies", part, ended)
        return
    where = found.groupdict().get("where")
    yield Fact(frame.field, text.format(value) + (f" at {_value(where)}" if where else ""), ended)


@cache
def _pattern(frame: Frame) -> re.Pattern[str]:
    ends_there = frame.shape.startswith("(?P<V>.{0})")
    words = re.escape(frame.words) + (" " if frame.words and not ends_there else "")
    shape = frame.shape if "(?P<V>" in frame.shape else re.sub(r"V(?!.*V)", r"(?P<V>\\S.*)", frame.shape)
    return re.compile(words + shape, re.IGNORECASE)


def _parts(value: str) -> list[str]:
    # "Allergic to pollen and to latex" repeats the preposition.
    split = re.split(r",| and | or | & ", value)
    parts = [re.sub(r"^to\s+", "", part.strip(_MARKS), flags=re.IGNORECASE) for part in split]
    return [part for part in parts if part and not re.match(r"(?:i|we|my)\b", part, re.IGNORECASE)]


def _value(text: str, *, names: bool = False) -> str:
    """Return a value up to where the clause changes the subject, in the third person."""
    end = _ENDS.search(text)
    value = (text[: end.start()] if end and not names else text).strip(_MARKS)
    return _third_person(value) if len(value) <= _LONGEST else ""


def _third_person(text: str) -> str:
    text = re.sub(r"\b(?:my|our)\b", "their", text, flags=re.IGNORECASE)
    text = re.sub(r"\b(?:me|myself|us)\b", "them", text, flags=re.IGNORECASE)
    return re.sub(r"\b(?:i|we)\b", "they", text, flags=re.IGNORECASE)
