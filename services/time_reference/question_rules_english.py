"""How English asks about earlier talk: the time stands before or after the words, within one clause."""

import re
from functools import cache

from services.time_reference.normalisation import LAST_TALK, TIME, one_of
from services.time_reference.question_rules import Rules

_TIME = f"{TIME}++"
_YOU = "(?:you|u|ya)"
_AUXILIARY = r"(?:'ve|'d|'re|'m| have| had| were| was| did| do| are)?"
_ADVERBS = (
    r"(?: (?:\w+ly|also|already|even|ever|both|all|not?|never|just|once|first|last|been|earlier|ke(?:ep|pt)"
    rf"|ended up|beg[ia]n|(?:start|finish)(?:ed)?|tr(?:y|ied|ying) to|happen to|manage to|go on|{_TIME})){{0,8}}"
)
_PROPOSED = "".join(f"(?<!{word} )" for word in ("can", "could", "shall", "should", "may", "let", "must", "to"))
_REQUESTED = "".join(
    f"(?<!{word} )" for word in ("can", "could", "will", "would", "please", "want", "like", "need")
)
"""Lookbehinds that exclude words before something still to be said."""
_SAY = one_of(
    r"(?:talk, cha+t, discuss, speak, spoke, mention, decid, agree?, cover, ask, explain, recommend, suggest",
    "promis, advis, propos, describ, answer, repl, respond, warn, quot, argu, debat, brainstorm, explor, review",
    "summari, translat, calculat, estimat, predict, confess, complain, settl, conclud, joke, laugh, bicker",
    r"natter, prepar, compar, finish, reach, shar, recit, invent, insist)\w*",
    "sa(?:y|id|ying), t(?:ell|old|elling), g[ai]ven?, giving, teach, taught, show(?:ed|n)?, sen[dt], wr[io]tt?en?",
    "draft(?:ed)?, list(?:ed)?, name[d]?, c[ao]me up with, work(?:ed)? out, fought, figured? out",
    "go(?:ne)? (?:over|through), went (?:over|through), br(?:ing|ought) up, point(?:ed)? out, swore, vowed",
    "sh(?:ake|ook) on",
)
"""Verbs for talking with each other."""
_WE_ALSO = one_of(
    "plan(?:ned|ning)?, le(?:ave|ft) (?:it |things )?off, le(?:ave|ft) (?:it|things), stop(?:ped)?",
    "get(?: up)? to, got(?:ten)?(?: to|$), get, wrap(?:ped)? (?:up|things up), caught up(?: on)?",
    "in the middle of, ma[dk]e (?:an? |the |any |that |some )?(?:plan|list|deal|budget|schedule)s?",
)
_YOU_ALSO = one_of(
    "start(?:ed)?, creat(?:e|ed), design(?:ed)?, us(?:ed?|ing), built?, correct(?:ed)?, rat(?:e|ed)",
    "t(?:ake|ook|aken) (?:a )?notes?, ma[dk]e up, (?:think|thought|feel|felt) (?:of|about) my, know about me",
)
_I_SAY = one_of(
    r"(?:sa(?:id|y|ying)|mention(?:ed|ing)?|br(?:ing|ought) up)(?! (?:to|with) (?!you\b|u\b))",
    rf"ask(?:ed|ing)?(?= about\b| for\b| {_TIME}|$)",
    rf"g[ai]ve(?= {_TIME}|$)",
    "(?:complain|whin|rant|rambl|moan|gush|rav|talk|worr[iy])(?:e|ed|ing)? about",
)
_DO = r"(?!(?:want(?:ed)?|need(?:ed)?|miss(?:ed)?|thank(?:ed)?|see|saw|hear|heard|to|for|with|and|or)\b)\w+"
"""Verbs for what the two do to each other, which they do by words."""
_TO_OTHERS = r"(?! (?:to|with) (?!you\b|u\b|me\b|us\b|each\b|your\b))"
_THINGS = r" (?:an?|the|my|your|our|some|this|that|these|those|two|three|all) \w+(?: \w+)?"
_SAYS = (
    rf"(?:{_PROPOSED}\b(?:we|{_YOU} and (?:i|me))(?! (?:were|got) (?:told|asked|sent)){_AUXILIARY}{_ADVERBS}"
    rf" (?:{_SAY}|{_WE_ALSO})\b{_TO_OTHERS}"
    rf"|{_REQUESTED}\b{_YOU}{_AUXILIARY}(?: (?:wanted|meant|going|about) to)?{_ADVERBS} (?:{_SAY}|{_YOU_ALSO}"
    rf"|{_DO}(?: up| out| on)? (?:(?:to|for|with|at) )?me|{_DO}{_THINGS} (?:to|with|for) me)\b"
    rf"|\bi{_AUXILIARY}{_ADVERBS} (?:{_I_SAY}|{_DO} (?:(?:to|for|with|from) )?{_YOU}\b(?! guys)"
    rf"|{_DO}{_THINGS} (?:to|with) {_YOU}\b(?! guys)"
    rf"|{_DO}(?: (?!(?:that|what|who|how|if|and|but|i|you|we|he|she|they|talk|to)\b)\w+){{0,3}}"
    rf" (?:to|with|by|past|at|from|on) {_YOU}\b(?! guys)))"
)
# No other clause may begin between the words and their time, because the time would belong to it.
_NO_CLAUSE = r"(?!{}\b)".format(
    one_of(
        "i, we, he, she, they, who, which, what, where, when, how, why, if, because, since, was, were, is, are",
        "went",
        rf"happened, with(?! (?:you\b|me\b|{TIME})), that(?! {TIME}), meeting, class, lecture, work, therapy",
        "(?:after|before)(?! (?:bed|sleep|sleeping|breakfast|lunch|dinner|going))",
    )
)
_WORDS = rf"(?: {_NO_CLAUSE}[^\s{TIME[1:-1]}]+){{0,12}} ?"
_WHEN_WE = rf"(?:(?:when|while|as) (?:i|we|you)(?: was| were| had)?{_WORDS})?"
_OPENING = (
    r"(?:,? (?:wh(?:at|ich|ere|o|y|en)|how|did|have|had|that|much|many|the|things?|was|it|were|kind|of|exactly|far"
    r"|evening|morning|afternoon|night|at|in|this|chat|conversation|and|i think|one|topics?|subjects?))*,? "
)
_NOT_OURS = r"(?!'s (?:\w+ ){0,2}(?:class|lecture|meeting|section|seminar|course|episode|show|group|call)\b)"
_TALKS = (
    r"(?:conversations?|chats|discussions?|talks|sessions?|topics?|exchange|(?:chat|conversation) (?:log|history))"
    r"(?! (?:section|group|board|paper|forum|class|show|host|room)\b)"
)
_OF_TWO = "(?:our|the|this|that|your|my|all|any|of|whole|entire|last|previous|long) "
_THE_TALK = rf"\b(?:(?:{_OF_TWO})*{_TALKS}|(?:{_OF_TWO})+(?:talk|chat)\b)"
_OURS = (
    rf"\bour (?:\w+ )?(?:{_TALKS}|talk|chat|argument|debate|lesson|exercise|quiz|dialogue|banter|messages"
    r"|correspondence|history|records?|logs?)\b"
)
_GIVEN = (
    "(?:tips?|suggestions?|recommendations?|advice|explanations?|promise|poem|joke|riddle|recipe|list|story|summary"
    "|quiz|haiku|limerick)"
)
_OPINION = r"your (?:\w+ )?(?:opinions?|take|views?|feedback|answers?|reasons?|points?|words?|warnings?|ideas?)\b"
_TALK = "|".join(
    (
        rf"(?:{_SAYS}|{_OURS}){_WORDS}{_WHEN_WE}{_TIME}{_NOT_OURS}",
        rf"{_TIME}(?:'s)?{_OPENING}(?:{_SAYS}|{_THE_TALK})",
        rf"{_TIME}'s (?:\w+ ){{1,3}}(?:that |which )?(?=(?:i|we|{_YOU})\b){_SAYS}",
        rf"{_TIME},? (?:which|what|whose|how many|how much)(?: \w+){{1,4}}? (?:did|had|have|were|was) {_SAYS}",
        rf"{_SAYS}|{LAST_TALK}+",
        rf"{_THE_TALK}(?: (?:with (?:you|me)|we had|from|on|of|about|during|and|questions))* {_TIME}",
        rf"{_TIME}(?:'s)? (?:\w+ ){{0,2}}(?:{_TALKS}|talk|chat)\b(?! (?:between|with (?!you\b|me\b)))",
        rf"{_TIME}'s (?:\w+ )?{_GIVEN}\b",
        r"\b(?:your|the|that|those|this|these) (?:(?!(?:of|by|in|his|her|their|who)\b)\w+ ){0,2}?"
        rf"{_GIVEN}(?: (?:you gave(?: me)?|from|of|on))* {_TIME}(?!'s)",
        rf"\b(?:was|were|had) {_OPINION}{_WORDS}{_TIME}|{_TIME},?(?: \w+){{0,2}} (?:was|were) {_OPINION}",
        r"\b(?:plans?|lists?|deal|decisions?|agreement) (?:that )?(?:did |have |had )?we (?:have |had )?\w+\b"
        rf"{_WORDS}{_TIME}",
        rf"\bc[ao]mes? up (?:between us|with you|in our \w+)\b{_WORDS}{_TIME}",
        rf"\bwhere (?:were we|was i)(?: at)? ?{_TIME}",
        rf"\bwhere(?: did|'d)? (?:we|i|{_YOU}) (?:left|leave|stop)\w*{_WORDS}{_TIME}",
        r"\bwhat (?:was (?:said|discussed|agreed|decided)|(?:do|can) you (?:remember|recall) (?:from|about|of))"
        rf" {_TIME}\W*$",
        rf"(?<!\bi )\bremember (?:that|the|my|our|those|this)(?: \w+){{1,4}} (?:from )?{_TIME}",
    )
)
_LEAD = r"^(?:[\w']+[\s,]+){0,6}?"
_POLITE = "^(?:please |can you |could you )*"


@cache
def english() -> Rules:
    """Return the rules; compiling them takes too long for an import."""
    return Rules(
        talk=re.compile(_TALK),
        of_then=re.compile(
            rf"{_LEAD}(?:(?:what|which|where|who|how|when|why)\b[^,]{{0,40}}? )?"
            rf"(?:did|had|have|were|was)(?:n't)? {_SAYS}"
        ),
        within=re.compile(
            rf"{_SAYS}(?: (?!and |but )\w+){{0,4}}?(?: that)? (?:i|you|we|he|she|it|they)(?:'d|'m|'s|'re)?"
            r" (?:(?:should|must|could|ca)(?:n't)?|can|need(?:ed)?|ha(?:ve|d) to|like|love|hate|prefer|want(?:ed)?"
            rf"|would|allergic){_WORDS}{_TIME}"
        ),
        elsewhere=re.compile(
            rf"{_POLITE}(?:write|compose|make up|invent|tell me|give me)\b.{{0,30}}\b(?:story|poem|song|script"
            r"|dialog|scene|novel|joke|essay|tale|chapter|haiku)\w*\b"
            rf"|{_POLITE}(?:translate|proofread|rephrase|paraphrase|rewrite|correct|spell)\b[^:]{{0,40}}:"
            r"|\bhow (?:do|would|can) (?:you|i|we) (?:say|translate|spell)\b"
            r"|\bwould (?:you|u|it|we)\b.*\bif (?:i|you|we)\b"
            r"|\b(?:whatsapp|wechat|telegram|slack|discord|teams|zoom|messenger|sms|phone|group|family|team|email)"
            rf"(?:'s)? (?:{_TALKS}|chat|talk)\b"
            r"|\bwhy (?:didn't|did not|haven't) (?:you|u) (?:answer|reply|respond|text|write)\b"
            r"|^if (?!you don't mind|possible|you (?:can|could|still|remember|recall)|i (?:remember|recall))"
            r"|^(?:suppos|imagine|assume|let's say|pretend|what if|you are|role-?play)"
        ),
        said=re.compile(_SAYS),
        intends=re.compile(
            r"\b(?:should|shall|will|can|could|would|want to|going to|gonna|let's) (?:we |i |you )?"
            r"(?:talk|discuss|chat)"
        ),
        detail=re.compile(
            r"\b(?:exact|precise|specific|detail)|\bwhich (?!(?:\w+ )?(?:topic|thing|kind|question|subject)s?\b)"
            r"|\b(?:how (?:much|many(?! times| topics)|long|old|tall|far (?:away|is|was))|what (?:time|date|day)"
            r"|name[sd]?|called|word for word|verbatim|quote|in full|address|number|price|cost|url|link|website"
            r"|password|title|actual words|who|when (?:did i|is|was)|step (?:\d|one|two|three))\b"
            r"|\bwh(?:at|ich)(?:'s|'d|s| was| were| is| are)? (?:the |that |this |those )?(?:\w+ )?(?:restaurant"
            r"|place|hotel|shop|store|book|movie|film|show|song|band|author|app|brand|model|game|company|school|city"
            r"|drug|word|figure|amount|budget|dose|code|breed|colou?r)\b"
        ),
        time_alone=re.compile(
            r"(?:(?:on|in|at|back|so|and|from|about|during|the|of|well|hey|hi|ok|i mean|i meant|that is)[\s,]+)*"
            rf"{_TIME}(?:\s+(?:evening|morning|afternoon|night|again|i mean|that is)|,|:|\?)*"
        ),
    )
