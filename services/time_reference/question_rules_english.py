"""How English asks about what was said before. The time may stand before or after the words, within one clause."""

import re
from functools import lru_cache

from services.time_reference.normalisation import LAST_TALK, TIME, one_of
from services.time_reference.question_rules import Rules

_TIME = f"{TIME}++"
_YOU = "(?:you|u|ya)"
_AUXILIARY = r"(?:'ve|'d|'re|'m| have| had| were| was| did| do| are)?"
_ADVERBS = "(?: {}){{0,8}}".format(
    one_of(
        "also, already, even, actually, really, ever, both, all, specifically, exactly, originally, initially",
        "finally, previously, earlier, not, never, recently, just, once, first, last, been, kindly, only",
        "mostly, mainly, ended up, finish(?:ed)?, start(?:ed)?, keep, kept, beg[ia]n, try(?:ing)? to",
        "tried to, manage to, happen to, go on, have, briefly, apparently, supposedly, repeatedly",
        _TIME,
    )
)
_PROPOSED = "".join(f"(?<!{word} )" for word in ("can", "could", "shall", "should", "may", "let", "must", "to"))
_REQUESTED = "".join(
    f"(?<!{word} )" for word in ("can", "could", "will", "would", "please", "want", "like", "need")
)
"""Words before something that is still to be said."""
_WE_SAY = one_of(
    "talk(?:ed|ing)?, chat(?:ted|ting)?, discuss(?:ed|ing)?, sp[eo]ak(?:ing)?, spoken?, said, say(?:ing)?",
    "decided?, deciding, agreed?, settled?, cover(?:ed|ing)?, mention(?:ed)?, plan(?:ned|ning)?, concluded?",
    "(?:go|gone|went|going) (?:over|through), le(?:ave|ft) (?:it |things )?off, left (?:it|things)",
    "stop(?:ped)?, brainstorm(?:ed|ing)?, c[ao]me up with, touch(?:ed)? (?:on|upon), figured? out",
    "argu(?:e|ed|ing), conversed?, work(?:ed|ing)? (?:out|through|on), end(?:ed)?, fight, fought",
    "play(?:ed|ing)?, practi[cs](?:e|ed|ing), g[eo]t(?: up)? to, get, review(?:ed|ing)?",
    "look(?:ed|ing)? (?:at|into), brought up, bring up, cha+t",
    "wrap(?:ped)? (?:up|things up), sign(?:ed)? off, reach(?:ed)?, finish(?:ed)?, got(?:ten)?$, got(?:ten)? to",
    "on about, le(?:ave|ft) (?:it|things)",
    "ma[dk]e (?:an? |the |any |that |some )?(?:plan|list|deal|budget|schedule)s?",
    "natter(?:ed|ing)?, gab(?:bed|bing)?, yak(?:ked|king)?, rap(?:ped|ping)?, catch(?:ing)? up(?: on)?",
    "caught up(?: on)?",
    "sh(?:ake|ook) on, promise[d]?, swear, swore, vow(?:ed)?, bet, swap(?:ped)?, tell each other",
    "told each other, promising",
    "pick(?:ed|ing)?, choose, chose, chosen, select(?:ed)?, nam(?:e|ed|ing), s(?:e|o)ttl(?:e|ed), schedul(?:e|ed)",
    "converse, debat(?:e|ed|ing), stud(?:y|ied|ying), exchanged?, joke[d]?, joking, laugh(?:ed|ing)?",
    "bicker(?:ed)?",
    "dissect(?:ed)?, explor(?:e|ed|ing), examined?, compare[d]?, wr[oi]te, draft(?:ed)?, buil[dt], design(?:ed)?",
    r"\w+(?:ed|ing) about, (?:halfway )?through, in the middle of",
)
_YOU_SAY_TO_ME = one_of(
    "tell, told, telling, ask(?:ed|ing)?, g[ai]ve, given, giving, teach, taught, show(?:ed|n)?, send, sent",
    "shared? with, wr[io]te, draft(?:ed)?",
)
_YOU_SAY = one_of(
    "sa(?:id|y|ying), mention(?:ed|ing)?, recommend(?:ed)?, suggest(?:ed|ing)?, explain(?:ed|ing)?, promised?",
    "advised?, proposed?, described?, list(?:ed)?, quoted?, answer(?:ed)?, repl(?:y|ied), respond(?:ed)?",
    "call(?:ed)? it, warn(?:ed)?, c[ao]me up with, talk(?:ed|ing)? about, calculated?, estimated?, agreed?",
    "point(?:ed)? out, bring up, brought up, refer(?:red)? to, recited?, summari[sz]ed?, translated?, wrote",
    "written, shared?, named?, drew up, ma[dk]e, buil[td], design(?:ed)?, put together, created?, prepared?",
    "start(?:ed)?, began, continued?, invent(?:ed)?, compose[d]?, composed, t(?:ell|old)",
    "found, picked?, chose, planned, claim(?:ed)?, insist(?:ed)?, offer(?:ed)?, used?, cited?, predict(?:ed)?",
    "define[d]?, outlined?, compared?, correct(?:ed)?, (?:think|thought|feel|felt) (?:of|about) my",
    "work(?:ed)? out, figured? out, assign(?:ed)?, set(?: for)?, gave, given, give, used?, using, told, telling",
    "(?:mean|meant)(?: by \\w+)?, learn(?:ed|t)? about me, rememb(?:er|ered) about me, kn[eo]w about me",
    "t(?:ake|ook|aken) (?:a )?notes?, wr[io]te (?:it |that )?down, written down, jot(?:ted)? (?:it |that )?down",
    rf"record(?:ed)?, not(?:e|ed) (?:down|that), talk(?:ed|ing)(?= {_TIME}), speaking(?= {_TIME})",
    r"ma[dk]e up, invent(?:ed)?",
    "comment(?:ed)? on, rat(?:e|ed), describe, disagreed?, argued?, confirm(?:ed)?, den(?:y|ied), confess(?:ed)?",
    rf"{_YOU_SAY_TO_ME} (?:me|us|to me)",
)
_I_SAY_TO_YOU = one_of(
    "t(?:ell|old), telling, ask(?:ed|ing)?, show(?:ed|n)?, g[ai]ve, sen[dt], promised?",
    "complain(?:ed|ing)? to, (?:talk|chat|vent|rant|say)(?:t?ed|t?ing)? (?:to|with), sp[eo]ak? (?:to|with)",
    "spoken (?:to|with), said to, mention(?:ed)? to, explain(?:ed)? to, described? to, confess(?:ed)? to",
    "shared? with, spoke (?:to|with)",
)
_I_SAY = one_of(
    rf"{_I_SAY_TO_YOU} {_YOU}\b",
    r"(?:sa(?:id|y|ying)|mention(?:ed|ing)?)(?! (?:to|with) (?!you\b|u\b))",
    "ask(?:ed|ing)? (?:about|for), bring up, brought up",
    rf"ask(?:ed)?(?= {_TIME}|$)",
    rf"(?:give|gave)(?= {_TIME}|$)",
    "(?:complain|whin|rant|rambl|moan|gush|babbl|rav|talk|worr[iy])(?:e|ed|ing)? about",
)
_NOT_SAID = one_of(
    "miss(?:ed)?, see, saw, hear, heard, know, knew, hated?, loved?, liked?, noticed?, want(?:ed)?",
    "need(?:ed)?, thank(?:ed)?, mean, meant, think, thought, to, for, with, and, or",
)
_DO = rf"(?!{_NOT_SAID}\b)\w+"
"""Whatever the two do to each other they do by words."""
_TO_OTHERS = r"(?! (?:to|with) (?!you\b|u\b|me\b|us\b|each\b|your\b))"
_THINGS = r"(?: (?:an?|the|my|your|our|some|this|that|these|those|two|three|all) \w+(?: \w+)?)"
_NOT_BETWEEN = one_of(
    "that, what, which, who, how, when, where, why, if, and, but, i, you, we, he, she, they, talk, to"
)
_SAYS = (
    rf"(?:{_PROPOSED}\b(?:we|{_YOU} and (?:i|me)){_AUXILIARY}{_ADVERBS} {_WE_SAY}\b{_TO_OTHERS}"
    rf"|{_REQUESTED}\b{_YOU}{_AUXILIARY}(?: (?:wanted|meant|going|about) to)?{_ADVERBS} (?:{_YOU_SAY}"
    rf"|{_DO}(?: up| out| on)? (?:(?:to|for|with|at) )?me"
    rf"|{_DO}{_THINGS} (?:to|with|for) me)\b"
    rf"|\bi{_AUXILIARY}{_ADVERBS} (?:{_I_SAY}|{_DO} (?:(?:to|for|with|from) )?{_YOU}\b(?! guys)"
    rf"|{_DO}{_THINGS} (?:to|with) {_YOU}\b(?! guys)"
    rf"|{_DO}(?: (?!{_NOT_BETWEEN}\b)\w+){{0,3}} (?:to|with|by|past|at|from|on) {_YOU}\b(?! guys)))"
)
# Between the words and their time no other clause may begin, for the time would be its time.
_NO_CLAUSE = r"(?!{}\b)".format(
    one_of(
        "i, we, he, she, they, who, which, what, where, when, how, why, if, because, was, were",
        "(?:after|before)(?! (?:bed|sleep|sleeping|breakfast|lunch|dinner|going)), since",
        rf"is, are, went, happened, with(?! (?:you\b|me\b|{TIME})), meeting, class, lecture, work, therapy",
        f"that(?! {TIME})",
    )
)
_WORDS = rf"(?: {_NO_CLAUSE}[^\s{TIME[1:-1]}]+){{0,12}} ?"
_NOT_OURS = r"(?!'s (?:\w+ ){0,2}(?:class|lecture|meeting|section|seminar|course|episode|show|group|call)\b)"
_WHEN_WE = r"(?:(?:when|while|as) (?:i|we|you)(?: was| were| had)?" + _WORDS + ")?"
_OPENING = r"(?:,? {})*,? ".format(
    one_of(
        "what, which, where, who, why, how, when, did, have, had, that, much, many, the, questions?, things?",
        "was, it, were, kind, of, exactly, evening, morning, afternoon, night, at, in, this, chat",
        "conversation, and, i think, i believe, one, topics?, subjects?, stuff, far",
    )
)
_TALK_ITSELF = (
    r"(?:conversations?|chats|discussions?|talks|sessions?|topics?|exchange"
    r"|(?:chat |conversation )(?:log|history))(?! (?:section|group|board|paper|forum|class|show|host|room)\b)"
)
_OF_TWO = "(?:our|the|this|that|your|my|all|any|of|whole|entire|last|previous|long) "
_OURS = one_of(
    "argument, debate, disagreement, lesson, exercise, quiz, role-?play, brainstorm(?:ing)?, q&a, banter",
    "back-and-forth, dialogue, heart-to-heart, correspondence",
)
_PLANS = one_of("plans?, lists?, deal, budget, schedules?, decisions?, bet, ideas?, names?, options?, agreement")
_MADE = one_of(
    "poems?, jokes?, recipes?, riddles?, (?:reading )?lists?, drafts?, outline, itinerary, haiku, limerick",
    "code, snippet, example, quote, answer, explanation, quiz, workout, bedtime story, playlist, summary",
)
"""Things that the assistant makes."""
_SUCH = "(?:(?:whole|entire|long|short|little|unfinished|great|nice|interesting|previous|last|late|first) )"
_COUNSEL = "(?:tips?|suggestions?|recommendations?|advice|explanations?|promise)"
_COUNSEL_OF_YOURS = one_of(
    f"{_COUNSEL}, opinions?, take, views?, verdict, feedback, answers?, reply, response, reasons?",
    "reasoning, arguments?, points?, thoughts?, (?:last|first|final|exact) (?:words?|message|sentence|point)",
    "conclusions?, questions?, proposals?, ideas?, offer, criticism, comments?, plan for me, warnings?",
)
_THE_TALK = rf"(?:(?:{_OF_TWO})*{_TALK_ITSELF}|(?:{_OF_TWO})+(?:talk|chat))"
_MEDIA = one_of(
    "whatsapp, wechat, telegram, slack, discord, teams, zoom, facebook, messenger, twitter, reddit, instagram",
    "signal, skype, sms, phone, group, family, team, staff, class, panel, podcast, round-table, board, peace",
    "twitch, line, snapchat, imessage, email",
)
"""Where others talk."""
_HAD = one_of(
    "with you, with me, we had, we were having, you and i had, between us, i had with you, from, on, of",
    "about, during, history, and, questions",
)
_GIVEN_BY = one_of("of, by, in, doctor's, boss's, their, his, her, my, government, official, expert, who")
_GAVE = one_of("you gave(?: me)?, from, of, on, about")
_LEFT = one_of("leave, left, stop(?:ped)?, end(?:ed)?")

_TALK = (
    rf"{_SAYS}{_WORDS}{_WHEN_WE}{_TIME}{_NOT_OURS}"
    rf"|{_TIME}'s (?:\w+ ){{1,3}}(?:that |which )?(?=(?:i|we|{_YOU})\b){_SAYS}"
    rf"|{_TIME}'s (?:\w+ )?(?:poem|joke|riddle|recipe|bedtime story|haiku|limerick)\b"
    rf"|\b(?:come|came|comes) up (?:between us|with you|in our \w+)\b{_WORDS}{_TIME}"
    rf"|{_TIME}(?:'s)?{_OPENING}{_SAYS}"
    rf"|{_TIME},? (?:which|what|whose|how many|how much)(?: \w+){{1,4}}? (?:did|had|have|were|was) "
    rf"{_SAYS}"
    rf"|{_SAYS}|{LAST_TALK}+"
    rf"|\b{_THE_TALK}(?: {_HAD})* {_TIME}"
    rf"|\bour {_TALK_ITSELF}\b{_WORDS}{_TIME}|\bour (?:chat |message )?(?:history|logs?|messages"
    rf"|records?)\b{_WORDS}{_TIME}"
    rf"|\b{_PLANS} (?:that )?(?:did |have |had )?we (?:have |had )?(?:ma[dk]e|ha[vd]e?|set|dr[ae]w up"
    rf"|g[eo]t)\b{_WORDS}{_TIME}"
    rf"|\b(?:the|that|those|your) (?:\w+ )?{_MADE} (?:from|of) {_TIME}(?!'s)"
    rf"|\bwhat (?:do|can) you (?:still )?(?:remember|recall) (?:from|about|of) {_TIME}\W*$"
    rf"|\bour (?:little |whole |last )?{_OURS}{_WORDS}{_TIME}"
    rf"|{_TIME}(?:'s)? {_SUCH}{{0,2}}(?:{_TALK_ITSELF}|talk|chat)\b(?! (?:between|with (?!you\b|me\b)))"
    rf"|{_TIME}(?:'s)?{_OPENING}{_THE_TALK}\b"
    rf"|\b(?:your|the|that|those|this"
    rf"|these) (?:(?!{_GIVEN_BY}\b)\w+ ){{0,2}}?{_COUNSEL}(?: {_GAVE})* {_TIME}(?!'s)"
    rf"|^(?:the )?{_TIME}'s (?:\w+ ){{0,2}}{_COUNSEL}\b"
    rf"|\b(?:was|were|had) your {_COUNSEL_OF_YOURS}{_WORDS}{_TIME}"
    rf"|{_TIME},?(?: \w+){{0,2}} (?:was|were) your {_COUNSEL_OF_YOURS}\b"
    rf"|\bwhere (?:were we|was i)(?: at)? ?{_TIME}"
    rf"|\bwhere(?: did|'d)? (?:we|i|{_YOU}) {_LEFT}(?: off| up| things| it)*{_WORDS}{_TIME}"
    rf"|\bwhat (?:was|got) (?:said|discussed|mentioned|agreed|decided) {_TIME}\W*$"
    rf"|(?<!\bi )\bremember (?:that|the|my|our|those|this)(?: \w+){{1,4}} (?:from )?{_TIME}"
)
_WITHIN = (
    rf"{_SAYS}(?: (?!and |but )\w+){{0,4}}?(?: that)? (?:i|you|we|he|she|it|they)(?:'d|'m|'s|'re)?"
    rf" (?:should|shouldn't|must|mustn't|could|can|can't|need|needed|have to|had to|ought|like|love|hate"
    rf"|prefer|want"
    rf"|wanted|would|allergic){_WORDS}{_TIME}"
)

_LEAD = r"^(?:{}[\s,]+)*".format(
    one_of(
        "hi, hey, hello, yo, thanks, thank you, thx, please, pls, so, and, but, ok, okay, btw, by the way",
        "well, sorry, um, uh, also, oh, actually, quick question, question, again, then, now, hmm, right",
        "sure, great, good morning, morning, just, kindly, can you, could you, would you, will you",
        "i want you to, i'd like you to, i need you to, let's, lets, you, assistant, buddy, mate, first",
        "for me, from, about, in, hold on, hang on, one sec, wait a (?:sec|second|minute|moment), quick check",
        f"on, wait, {_TIME}",
    )
)
_FICTION = one_of(
    "story, poem, song, script, dialogue, dialog, scene, novel, joke, lyrics, essay, tale, sketch, chapter",
    "haiku",
)
_NAMED = one_of(
    "restaurant, place, caf[eé], bar, hotel, shop, store, book, novel, movie, film, show, series, song, album",
    "band, artist, author, singer, actor, app, website, site, brand, model, product, podcast, game, company",
    "school, university, city, town, village, street, medicine, drug, pill, word, figure, amount, budget, dose",
    "password, code, breed, colou?r",
)
"""Things with a name or a number that a summary may lack."""
_POLITE = "^(?:please |can you |could you )*"


@lru_cache(maxsize=1)
def english() -> Rules:
    """The rules; compiling them takes long enough to be no part of an import."""
    return Rules(
        talk=re.compile(_TALK),
        of_then=re.compile(
            rf"{_LEAD}(?:what|which|where|who|how|when|why)\b[^,]{{0,40}}? (?:did|had|have|were|was) {_SAYS}"
            rf"|{_LEAD}(?:did|had|have|were|was)(?:n't)? {_SAYS}"
        ),
        within=re.compile(_WITHIN),
        elsewhere=re.compile(
            rf"{_POLITE}(?:write|compose|make up|invent|tell me|give me)\b.{{0,30}}\b{_FICTION}\b"
            rf"|{_POLITE}(?:translate|proofread|rephrase|paraphrase|rewrite|correct|spell)\b[^:]{{0,40}}:"
            r"|\bhow (?:do|would|can) (?:you|i|we) (?:say|translate|spell)\b"
            r"|\bwould (?:you|u|it|we)\b.*\bif (?:i|you|we)\b"
            rf"|\b{_MEDIA}(?:'s)? (?:{_TALK_ITSELF}|chat|talk)\b"
            r"|\bwhy (?:didn't|did not|haven't) (?:you|u) (?:answer|reply|respond|text|write)\b"
            r"|^if (?!you don't mind|possible|you (?:can|could|still|remember|recall)|i (?:remember|recall))"
            r"|^(?:suppose|supposing|imagine|assume|let's say|pretend|what if|you are|role-?play)\b"
        ),
        said=re.compile(_SAYS),
        intends=re.compile(
            r"\b(?:should|shall|will|can|could|would|want to|going to|gonna|let's) (?:we |i |you )?(?:talk|"
            r"discuss|chat)"
        ),
        detail=re.compile(
            r"\b(?:exact|precise|specific|detail)|\bhow (?:much|many(?! times| topics)|long|old|big|tall"
            r"|far (?:away|is|was))\b"
            r"|\bwhich (?!(?:\w+ )?(?:topics?|things?|kinds?|questions?|subjects?)\b)"
            r"|\bwhat (?:time|date|day|year)\b"
            r"|\b(?:name[sd]?|called|word for word|verbatim|quote|in full|address|number|price|cost|url|link"
            r"|website|password)\b"
            rf"|\b(?:what|whats|what's|which|what'd)(?:'s| was| were| is| are)? (?:the |that |this "
            rf"|those )?(?:\w+ )?{_NAMED}\b"
            r"|\b(?:title|actual words|who|when (?:did i|is|was)|step (?:\d|one|two|three|four|five))\b"
        ),
        time_alone=re.compile(
            rf"(?:(?:on|in|at|back|so|and|from|about|during|the|of|well|hey|hi|ok|i mean|i meant"
            rf"|that is)[\s,]+)*{_TIME}"
            r"(?:\s+(?:evening|morning|afternoon|night|again|i mean|that is)|,|:|\?)*"
        ),
    )
