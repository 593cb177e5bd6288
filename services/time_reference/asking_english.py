"""How English asks about what was said before. The time may stand before or after the words, within one clause."""

import re

from services.time_reference.asking import Rules
from services.time_reference.wording import LAST_TALK, TIME

_TIME = f"{TIME}++"
_YOU = "(?:you|u|ya|we both)"
_AUX = r"(?:'ve|'d|'re|'m| have| had| were| was| did| do| are)?"
_ADVERB = (
    r"(?: (?:also|already|even|actually|really|ever|both|all|specifically|exactly|originally|initially|finally|"
    rf"previously|earlier|not|never|recently|just|once|first|last|been|kindly|only|mostly|mainly|ended up|{_TIME}))*"
)
_WE_SAY = (
    r"(?:talk(?:ed|ing)?|chat(?:ted|ting|tin)?|discuss(?:ed|ing)?|sp[eo]ak(?:ing)?|spoken?|said|say(?:ing)?|"
    r"decided?|deciding|agreed?|settled?|cover(?:ed|ing)?|go over|gone over|went over|going over|mention(?:ed)?|plann?(?:ed|ing)?|"
    r"le(?:ave|ft) (?:it |things )?off|left (?:it|things)|stop(?:ped)?|concluded?|brainstorm(?:ed)?|c[ao]me up with|"
    r"touch(?:ed)? (?:on|upon)|figured? out|work(?:ed|ing)? (?:out|through)|argu(?:ed?|ing)|converse[d]?|go through|went through)"
)
_ME = r"(?: (?:me|us|to me))"
_YOU_SAY = (
    r"(?:sa(?:id|y|ying)|mention(?:ed)?|recommend(?:ed)?|suggest(?:ed)?|explain(?:ed|ing)?|promised?|advised?|proposed?|"
    r"described?|list(?:ed)?|quoted?|answer(?:ed)?|repl(?:y|ied)|respond(?:ed)?|call(?:ed)? it|warn(?:ed)?|c[ao]me up with|"
    r"talk(?:ed|ing)? (?:about|me)|calculated?|estimated?|agreed?|point(?:ed)? out|bring up|brought up|refer(?:red)? to|"
    rf"(?:tell|told|telling|ask(?:ed|ing)?|g[ai]ve|given|teach|taught|show(?:ed|n)?|send|sent|share[d]? with|wr(?:i|o)te|dr[ae]ft(?:ed)?){_ME}|"
    r"recite[d]?|summari[sz]ed?|translated?|wrote|written|shared?|named?|drew up|ma[dk]e|buil[td]|design(?:ed)?|put together|created?|prepared?|found|picked?|chose|planned|claim(?:ed)?|insist(?:ed)?|offer(?:ed)?)"
)
_I_SAY = (
    r"(?:(?:t[eo]ld?|telling|ask(?:ed|ing)?|show(?:ed|n)?|g[ai]ve|sen[dt]|promised?|complain(?:ed|ing)? to|"
    rf"(?:talk|speak|chat|vent|rant|say)(?:ed|ted|ing|ting)? (?:to|with)|sp[eo]k(?:e|en) (?:to|with)|said to|mention(?:ed)? to|explain(?:ed)? to|describe[d]? to|"
    rf"confess(?:ed)? to|shared? with|want(?:ed)?|trust(?:ed)?) {_YOU}\b"
    r"|(?:sa(?:id|y|ying)|mention(?:ed)?|ask(?:ed|ing)? (?:about|for)|bring up|brought up|asked?(?= " + _TIME + r"|$)|(?:complain|whin|rant|rambl|moan|gush|babbl|rav|talk|worr[iy])(?:e|ed|ing)? about))"
)
_SAYS = (
    rf"(?:\b(?:we|(?:you|u) and (?:i|me)){_AUX}{_ADVERB} {_WE_SAY}\b"
    rf"|\b{_YOU}{_AUX}{_ADVERB} {_YOU_SAY}\b"
    rf"|\bi{_AUX}{_ADVERB} {_I_SAY})"
)
# Between the words and their time no other clause may begin, for the time would be its time.
_NO_CLAUSE = (
    r"(?!(?:i|we|he|she|they|who|which|that|what|where|when|how|why|if|because|after|before|was|were|is|are|went|"
    r"happened|with(?! (?:you|me)\b)|meeting|class|lecture|work|therapy)\b)"
)
_WORDS = rf"(?: {_NO_CLAUSE}[^\s{TIME[1:-1]}]+){{0,8}} ?"
_TO_OTHERS = r"(?! (?:to|with) (?!you\b|u\b|me\b|us\b|each\b|your\b))"
_OPENING = (
    r"(?:,? (?:what|which|where|who|why|how|when|did|have|had|that|much|many|the|questions?|things?|was|it|were|kind|of|"
    r"exactly|evening|morning|afternoon|night|at|in|this|chat|conversation|and|i think|i believe|one|topics?|subjects?|stuff))*,? "
)
_TALK_ITSELF = r"(?:conversations?|chats?|discussions?|talks?|sessions?|exchange|chat ?(?:log|history)|messages)"
_COUNSEL = r"(?:tips?|suggestions?|recommendations?|advice|explanations?|promise)"
_OUR = r"(?:(?:our|the|this|that|your|my|all|any|of|whole|entire|last|previous|long) )*"

_TALK = (
    rf"{_SAYS}{_TO_OTHERS}{_WORDS}{_TIME}"
    rf"|{_TIME}(?:'s)?{_OPENING}{_SAYS}{_TO_OTHERS}"
    rf"|{_SAYS}|{LAST_TALK}+"
    rf"|\b{_OUR}{_TALK_ITSELF}(?: (?:with you|with me|we had|we were having|you and i had|between us|i had with you|from|on|of|about|during|history|and|questions))* {_TIME}"
    rf"|{_TIME}(?:'s)? (?:whole |entire |long )?{_TALK_ITSELF}\b(?! (?:between|with (?!you\b|me\b)))"
    rf"|{_TIME}(?:'s)?{_OPENING}{_OUR}{_TALK_ITSELF}\b"
    rf"|\b(?:your|the) {_COUNSEL}(?: (?:you gave(?: me)?|from|of|on|about))* {_TIME}"
    rf"|^(?:the )?{_TIME}'s (?:\w+ ){{0,2}}{_COUNSEL}\b|\bwhere (?:were we|was i)(?: at)? ?{_TIME}"
    rf"|\bwhere(?: did|'d)? (?:we|i) (?:le(?:ave|ft)|stop(?:ped)?|end(?:ed)?)(?: off| up| things| it)*{_WORDS}{_TIME}"
)

_LEAD = (
    r"^(?:(?:hi|hey|hello|yo|thanks|thank you|thx|please|pls|so|and|but|ok|okay|btw|by the way|well|sorry|um|uh|also|oh|actually|"
    r"quick question|question|again|then|now|hmm|right|sure|great|good morning|morning|just|kindly|can you|could you|would you|will you|"
    rf"i want you to|i'd like you to|i need you to|let's|lets|you|assistant|buddy|mate|first|for me|{_TIME}|from|about|in|on)[\s,]+)*"
)
_QUESTION = (
    r"(?:what|whats|what's|wat|wut|whta|which|who|whom|who's|where|where's|when|why|how|how's|did|didn't|do|does|don't|have|haven't|had|was|wasn't|were|is|isn't|are|can|"
    r"could|would|will|any|anything|have|remember|recall|whose)\b"
)
_REQUEST = (
    r"(?:remind me|tell me|summari[sz]e|summary|recap|go over|go back|list|show me|quote|repeat|refresh|sum (?:it |that |them |this |all )*up|remember|recall|pick up|"
    r"picking up|continue|carry on|resume|bring|give me|turn|rewrite|rephrase|compare|explain|elaborate|expand|describe|use|apply|take|add|change|update|modify|save|print|open|convert|translate|suggest|recommend|answer|calculate|book|set|play|plan|think|review|pull up|find|look up|look back|read|based on|using|help me|"
    r"catch me up|get back|take me|walk me|make|put|let me know|say again|search|check|send me|what|according to|write|draft|create|compile)\b"
)
_ELSEWHERE = (
    r"|i(?:'d| would)? (?:want|like|love|need) (?:you )?to (?:know|see|look|review|go|read|hear|revisit|continue|pick|have|get|get back)\b|i(?:'ve)? (?:forgot|forget|forgotten)|i (?:can't|cannot|don't|do not|can not)(?: \w+)? "
    r"(?:remember|recall)|\bi wonder\b|i'm wondering|trying to remember|\bwhat was it\b"
)

_FICTION = r"(?:story|poem|song|script|dialogue|dialog|scene|novel|joke|lyrics|essay|tale|play|sketch|fanfic|chapter|limerick|haiku)"

ENGLISH = Rules(
    talk=re.compile(_TALK),
    elsewhere=re.compile(
        rf"^(?:please |can you |could you )*(?:write|compose|make up|invent|tell me|give me)\b.{{0,30}}\b{_FICTION}\b"
        r"|^(?:please |can you |could you )*(?:translate|proofread|rephrase|paraphrase|rewrite|correct|spell)\b[^:]{0,40}:"
        r"|\bhow (?:do|would|can) (?:you|i|we) (?:say|translate|spell)\b"
        r"|\bwould (?:you|u|it|we)\b.*\bif (?:i|you|we)\b"
        r"|^(?:if|suppose|supposing|imagine|assume|let's say|pretend|what if|you are|role-?play)\b"
    ),
    asks=re.compile(rf"{_LEAD}(?:{_QUESTION}|{_REQUEST}){_ELSEWHERE}"),
    names=re.compile(rf"{_LEAD}(?:the|that|those|this|your|our|one|everything|all|what|whatever)\b.*{TIME}(?: \w+){{0,2}}\??$|^(?:the )?{TIME}+'s (?: ?\w+){{1,4}}$"),
    follows=re.compile(
        r"^(?=.*\b(?:it|that|again|remember|recall|your answer|answer|you say|those|them|did you|was what|which one|remind me)\b)\S+(?: +\S+){0,8} *$"
    ),
    said=re.compile(_SAYS),
    recalls=re.compile(
        r"^(?:\S+ ){0,5}(?:remember|recall|remind me|tell me|refresh|forgot|forgotten|know)(?: \S+){0,3}$"
        r"|^(?:the|an?|or|right|yes|no|correct|please|again|like|i mean|you know)\b[^?]{0,40}\?$"
    ),
    wants=re.compile(
        r"\b(?:turn|rewrite|rephrase|translate|make|put) .*\b(?:into|as|to)\b|\bbased on\b|\busing\b|\bcompare\b|\b(?:write|draft|create|generate) (?:me )?(?:an?|the|up)\b"
    ),
    intends=re.compile(r"\b(?:should|shall|will|can|could|would|want to|going to|gonna|let's) (?:we |i |you )?(?:talk|discuss|chat)"),
    reminder=re.compile(r"\bremind\b|\btell me\b"),
    tasks=re.compile(rf"{_LEAD}(?:{_QUESTION}|{_REQUEST})|\b(?:please|can you|could you)\b"),
    detail=re.compile(
        r"\bexact|\bprecise|\bspecific|\bdetail|\bname[sd]?\b|\bcalled\b|\bhow (?:much|many|long|far|old|big)\b|\bwhich (?!topics?\b|things?\b|kinds?\b|questions?\b|subjects?\b)|"
        r"\bword for word\b|\bverbatim\b|\bquote\b|\bin full\b|\baddress\b|\bphone number\b|\bnumber\b|\bprice\b|\bcost\b|\bwhat (?:time|date|day|year)\b|\burl\b|\blink\b|"
        r"\bpassword\b|\btitle\b|\bactual words\b|\bwho\b|\bwhen (?:did i|is|was)\b|\bstep (?:\d|one|two|three|four|five)\b"
    ),
    time_alone=re.compile(rf"(?:(?:on|in|at|back|so|and|from|about|during|the|of|well|hey|hi|ok)\s+)*{_TIME}(?:\s+(?:evening|morning|afternoon|night|again))*"),
)
