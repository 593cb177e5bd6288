"""Which English clauses are memory commands."""

import re

from services.memory.command import Clause, Reading
from state.memory import MemoryChangeKind

MAY_COMMAND = re.compile(
    r"\b(?:rid|purge|discard|strike|drop|take|reference|forget\w*|rememb\w*|memori\w*|memory|records?|recorded|"
    r"keep\w*|kept|stor(?:e|ed|ing)|sav(?:e|ed|ing)|notes?|note[ds]|logs?|logged|writ(?:e|ing)|written|jot|"
    r"files?|"
    r"erase\w*|delet\w*|remov\w*|clear|unremember|hold|track|trace|default|no longer|wipe\w*|scrub|"
    r"scrap|scratch|unlearn|from (?:now|here|today|this)|always|never|ever|"
    r"in (?:the )?future|going forward|moving forward|henceforth|whenever|every|each|all|stop|quit|no more|"
    r"any ?more|any longer|meant|mean|wrong|incorrect|mistaken?|misspoke|mistyped|typo|correction|correct|"
    r"actually|not|\w+n't|dont|mind|pretend|disregard|ignore|off)\b"
)
"""A message without any of these is none, which most messages are."""

LEAD = re.compile(
    r"^\s*(?:(?:oh|ok|okay|hey|hi|hello|wait|hold on|hm+|um+|uh+|well|so|and|but|also|yes|yeah|no|nope|right|"
    r"alright|"
    r"actually|honestly|anyway|by the way|btw|please|pls|plz|kindly|just|now|then|look|listen|oops|sorry|"
    r"thanks|"
    r"thank you|on second thought|one more thing|one thing|for privacy|if possible|if you can|"
    r"in that case)\b\s*)+",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"^(?:(?P<asks>(?:can|could|would|will) (?:you|we)(?: please| kindly| just| mind)*|would you mind|"
    r"(?:is|would) it (?:be )?(?:possible|okay|ok) (?:for you )?(?:to|if you)|may i ask you to|can i (?:get|"
    r"ask) you to)"
    r"|(?:i|we)(?:'d| would)? (?:really )?(?:like|love|want|need|prefer) (?:for )?(?:you|it if you)(?: could|"
    r" would)?"
    r"(?: to)?"
    r"|(?:i|we)(?:'d| would)? (?:rather|prefer)(?: that| it if| if)? you(?= for[gt])"
    r"|i(?:'d| would) (?:appreciate|be grateful) (?:it )?if you (?:could |would )?|i(?:'m| am) asking you to|"
    r"i ask you to"
    r"|you (?:can|could|should|may|must|have to|need to|might as well|'d better|had better)(?: just| safely|"
    r" now)?"
    r"|it(?:'s| is|'d be| would be) (?:best|better|good|nice|great) (?:if you(?: could| would)?|to)"
    r"|let's(?: just| please)?|let us|do me a favou?r and|be so kind as to|(?:please )?make sure (?:to|you|"
    r"that you)"
    r"|be sure to|feel free to|go ahead and|i beg you to|time to|best to|better to)\s+"
    r"(?:please\s+|just\s+|also\s+|completely\s+|totally\s+)*",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(r"\b(?:if|when|whenever|after|once) (?:i|we|you|someone|somebody|a user|people)\b", re.I)
_SPEECH = re.compile(
    r"\b(?:said|says|say|told|tells|goes|called|titled|lyrics?|quote|wrote|sings?|means?|like)\W*$", re.I
)
_ENDING = re.compile(
    r"(?:[\s,]+(?:please|pls|thanks|thank you|ok|okay|for me|again|for good|forever|completely|entirely|"
    r"totally|"
    r"altogether|right (?:now|away)|(?<!just )now|immediately|at once|will you|would you|if you can|if possible|"
    r"either|"
    r"at all|"
    r"though|instead|asap))+\s*$",
    re.IGNORECASE,
)
_FROM_MEMORY = re.compile(
    r"\s*\b(?:(?:from|out of|in|off|to|into)\s+(?:your|the|my|our|its|long[- ]term)\s+(?:long[- ]term\s+|"
    r"permanent\s+)?"
    r"(?:memory|memories|mind|records?|notes?|profile|knowledge|storage|files|list)(?: (?:of|about) me)?"
    r"|(?:from|on|in) what you (?:know|remember|have)(?: about me)?|about me)\b",
    re.IGNORECASE,
)
_CHANGES_SUBJECT = re.compile(
    r"^\W*(?:let's|let us|how about|what about|why don't we|we should|i'd rather|i would rather|focus|tell me|"
    r"instead|"
    r"give me|show me|just (?:tell|give|show|do|use|make|go|write)|go with|do|use|try|make|explain|write)\b",
    re.IGNORECASE,
)

# --- forget
_FORGET = re.compile(
    r"^(?P<verb>forget(?:ting)?|unlearn(?:ing)?|un-?remember)\b\s*(?P<object>.*)$", re.I | re.DOTALL
)
_DELETE = re.compile(
    r"^(?P<verb>(?:delete|deleting|remove|removing|erase|erasing|wipe|wiping|clear|clearing|drop|dropping|"
    r"scrub|"
    r"scrubbing|purge|purging|scratch|discard|discarding|strike|scrap|get(?:ting)? rid of|throw (?:away|out)|"
    r"take)(?: out)?)\b\s*"
    r"(?P<object>.*)$",
    re.I | re.DOTALL,
)
_WANTED_GONE = re.compile(
    r"^(?:i|we)(?:'d| would)? (?:like|love|want|need) (?P<object>(?!to\b|you\b).{2,60}?) "
    r"(?:to be )?(?:removed|deleted|erased|wiped|forgotten|cleared|purged|gone|out)(?: (?:from|out of|"
    r"of) (?:your|the) "
    r"(?:memory|memories|notes?|records?|profile|files?))\W*$",
    re.I,
)
_DISREGARD = re.compile(
    r"^(?:ignore|disregard|never mind|nevermind|pay no attention to|don't mind) (?:what|everything|anything|"
    r"that) i"
    r"(?: just|'ve| have)? (?:said|told|mentioned|wrote)\b",
    re.I,
)
_PRETEND = re.compile(
    r"^(?:pretend|act (?:like|as if)|let's (?:pretend|say)|imagine)(?: that)? (?:(?:i|we) (?:never|didn't|"
    r"did not|hadn't) "
    r"(?:say|said|tell|told|mention|mentioned|bring|brought|have|had)\b.*|(?:you (?:never|didn't|"
    r"did not) (?:hear|heard|"
    r"see|saw|read|know|knew)\b.*))$",
    re.I,
)
_SAID = (
    r"(?:said|told(?: you)?|mentioned|shared|wrote|typed|sent|confessed|revealed|let slip|brought up|gave you|"
    r"confided)"
)
_THIS = re.compile(
    r"^(?:about )?(?:(?:this|that|it|all (?:of )?(?:this|that)|everything above|the above|any of (?:this|that))"
    r"(?: (?:conversation|chat|message|exchange|thing|part|bit|one|last (?:message|part|bit|thing)|"
    r"ever happened|"
    r"happened|please|completely))?"
    r"|(?:the|my|that|this) (?:last|previous) (?:thing|bit|part|message|sentence|statement|comment|remark|one|"
    r"exchange|line|turn)s?(?: (?:of mine|i (?:just )?(?:said|sent|wrote|told you|typed)))?"
    rf"|(?:that |the fact that )?i (?:ever |just |even )*{_SAID}(?: (?:that|this|it|anything|something|so))?"
    rf"|(?:what(?:ever)?|everything|anything|all|the thing|the part|the bit|the stuff)(?: that)? i(?:'ve|"
    rf" have)? (?:just|only) "
    rf"{_SAID}(?: you)?"
    rf"|(?:what(?:ever)?|everything|anything|all|the thing|the part|the stuff)(?: that)? i(?:'ve|"
    rf" have)? {_SAID}(?: you)? "
    r"(?:just now|a (?:moment|second|minute) ago|right now))$",
    re.I,
)
_LAST = re.compile(r"\b(?:last|previous)\b", re.I)
_TOPIC = re.compile(
    rf"^(?:about )?(?:(?:what(?:ever)?|everything|anything|all|the (?:thing|part|bit|stuff|story|things)|"
    rf"all the things)"
    rf"(?: that)?(?: (?:i|we)(?:'ve| have)?(?: just| ever)? {_SAID}| you (?:know|remember|learned|have|stored|"
    rf"saved|"
    rf"noted)|we(?:'ve| have)? (?:discussed|talked|said|spoke)| i)?(?: you)? (?:about|on|regarding|concerning|"
    rf"of|related to)"
    rf"|(?:the fact )?(?:that )?i (?:ever |just )*{_SAID}(?: anything| something| a word)?(?: that| about)?"
    r"|(?:the|my|any|all|your|every|that) (?:memory|memories|notes?|mentions?|records?|entry|entries|traces?|"
    r"references?|"
    r"information|info|details?|facts?|item|data)(?: you have)? (?:about|of|on|to|regarding|that|with|where)"
    r"|the fact that|that|about|(?:the|that) (?:thing|stuff|bit|part) (?:about|with|where|on))\s+",
    re.I,
)
_GIVEN = re.compile(
    rf"^(?:the|that|those|all (?:the|those)?|any) (?P<what>.{{2,60}}?) (?:that )?i(?:'ve| have)? (?:just |"
    rf"once )?"
    rf"(?:{_SAID}|asked you to (?:remember|save|keep|note))\b.*$",
    re.I,
)
_LATER = re.compile(r"^(?:what(?:ever)?|everything|anything|all)(?: that)? i(?:'ve| have)? " + _SAID, re.I)
_IN_GENERAL = re.compile(
    r"^(?:things?|stuff|something|anything|everything|it all|me|you|your|people|words|information|to|how|when|"
    r"where|why|"
    r"who|whether|if|which|-|,|about (?:it|time|you|them|him|her)$)\b"
    r"|^(?:the |all |any |your )?(?:previous |prior |earlier |above )?(?:instructions?|prompts?|rules|context|"
    r"question|"
    r"request)\b|^(?:all|any) (?:of )?(?:your|the|previous|prior)\b|^(?:what|everything|"
    r"anything) (?:i (?:tell|say)|you)\b",
    re.I,
)
_DETERMINED = re.compile(
    r"^(?:about )?(?:my|our|his|her|their|the|that|this|those|these|any|all|both|i|i'm|i've|we|he|she|they|"
    r"there|"
    r"[\w]+'s|\ue000+)\b|^(?:about )?\ue000",
    re.I,
)
_MINE = re.compile(r"^(?:about )?(?:i|i'm|i've|i'd|my|our|we|we're|mine)\b", re.I)

# --- do not remember
_NEGATED = re.compile(
    r"^(?:(?:(?:do not|don't|dont|never|not to|avoid|refrain from|stop|skip|(?:there(?:'s| is) )?no (?:need|"
    r"reason) (?:to|for"
    r" you to)|you (?:don't|do not|needn't|shouldn't|should not|must not|mustn't|can't|cannot|are not to|"
    r"may not)"
    r"(?: have to| need to)?|(?:i|we)(?:'d| would)? (?:rather|prefer)(?: it if| that)? you (?:didn't|don't|"
    r"did not|do not|"
    r"not|wouldn't)(?: to)?|(?:i|we)(?:'d| would)? prefer you not to|(?:i|we) (?:don't|do not|wouldn't|"
    r"never) want (?:you to|"
    r"(?:this|that|it|any of this)(?: to(?: be)?)?)|(?:i|we)(?:'d| would) (?:like|love|want) you (?:not to|"
    r"to not)|"
    r"not)\s+"
    r"(?:please\s+|ever\s+|actually\s+|bother\s+(?:to\s+)?|be\s+|go\s+(?:and\s+)?)*)+)"
    r"(?P<verb>remember(?:ing|ed)?|memori[sz](?:e|ing|ed)|stor(?:e|ing|ed)|sav(?:e|ing|ed)|record(?:ing|ed)?|"
    r"keep(?:ing)?|"
    r"kept|log(?:ging|ged)?|fil(?:e|ing|ed)|not(?:e|ing|ed)|retain(?:ing|ed)?|archiv(?:e|ing)|writ(?:e|ing)|"
    r"jot(?:ting)?|"
    r"commit(?:ting)?|put(?:ting)?|add(?:ing|ed)?|hold(?:ing)?|mak(?:e|ing)|tak(?:e|ing))\b\s*(?P<object>.*)$",
    re.I | re.DOTALL,
)
_NO_LONGER = re.compile(r"\s*\b(?:any ?more|any longer|from now on)\b\s*", re.I)
_ASKED_OF_ME = re.compile(r"^(?:how|what|where|when|who|which|whether|why)(?: \w+)? (?:i|we|my|our)\b", re.I)
_UNKEPT_TAIL = (
    r"(?:\s+(?:down|on file|on record|anywhere|at all|for (?:later|the future|future\b.*|next time|long)|"
    r"as a memory|"
    r"(?:in|into|to|from|out of) (?:your |the |my |long-term |permanent )*(?:memory|memories|mind|notes?|"
    r"records?|profile|file|"
    r"files|history|logs?|database|archive)|about me|please|ok|okay|though|either|thanks|beyond (?:this|"
    r"today).*|"
    r"after (?:this|today|we).*|past (?:this|today).*|that i (?:said|told you|mentioned) (?:this|that|"
    r"it)))*\s*$"
)
_UNKEPT = re.compile(
    r"^(?:down\s+)?(?:(?:a |any )?(?:record|note|notes|track|trace|log|memory|copy)s? (?:of|"
    r"about)\s+)?(?:on to\s+|onto\s+)?"
    r"(?:(?P<this>(?:this|that|it|any of (?:this|that|it)|these|those|all (?:of )?this|(?:this|that|these|"
    r"those|the) "
    r"(?:last |next |whole |entire |conversation |chat )*(?:part|bit|one|thing|things|message|conversation|"
    r"chat|exchange|info|"
    r"information|detail|"
    r"details|secret|piece|turn|sentence|story|comment|remark|fact|topic|stuff)"
    r"|the following|what follows|what (?:i'm|i am) (?:about to|going to) (?:say|tell you|share|write|"
    r"type))(?: here)?)"
    rf"|(?P<said>(?:what(?:ever)?|anything|everything)(?: that)? i(?:'ve| have)?(?: just)? {_SAID}(?: you)?"
    r"(?: just now| here| above| (?:a|one) (?:moment|second|minute) ago| in this (?:chat|message|"
    r"conversation))?))" + _UNKEPT_TAIL,
    re.I,
)
_OFF_THE_RECORD = re.compile(
    r"^(?:(?:this|that|it|what (?:i say next|follows|i'm about to (?:say|tell you)|i (?:just )?(?:said|"
    r"told you))|"
    r"everything (?:here|in this (?:message|chat))|the following|the next (?:bit|part|thing))(?:'s| is| was|"
    r" stays?|"
    r" should (?:be|stay)| has to (?:be|stay)| must (?:be|stay))?|keep (?:this|that|it)|let's keep (?:this|"
    r"that|it)|"
    r"(?:i'm |i am )?(?:telling|saying|tell|say)(?: you)? (?:this|that|it)|(?:can|could) (?:we|"
    r"you) keep (?:this|that|it)|"
    r"speaking)?\s*(?:(?:completely|strictly|totally|entirely|all|very much|purely|"
    r"just)\s+)?off[- ]the[- ]record\b"
    r"(?:\s+(?:please|ok|okay|now|here|for a (?:moment|second|minute)|though|again))*\s*$",
    re.I,
)
_OFF_THE_RECORD_LEADS = re.compile(
    r"^(?:strictly |completely |totally )?off[- ]the[- ]record\s+(?!(?:remark|comment|chat|talk|"
    r"conversation|interview|statement|briefing|meeting|source)s?\b)(?:but |and |because )?\S",
    re.I,
)
_THIS_TELLING = (
    r"(?:this|that|it|any of this|none of this|these|those|what i(?:'m| am) (?:about|going) to (?:say|tell you|"
    r"share)|"
    r"what (?:comes next|follows)|what i (?:just )?(?:said|told you)|everything (?:here|i say (?:here|now)))"
)
_STAYS_OUT = re.compile(
    rf"^(?:(?:keep|leave)\s+{_THIS_TELLING}(?: \w+){{0,2}}\s+out of|{_THIS_TELLING}(?: \w+){{0,2}}?\s+"
    r"(?:doesn't|does not|shouldn't|should not|mustn't|must not|isn't to|is not to|needn't|doesn't need to|"
    r"doesn't have to|shall not|should never|should|can't|cannot|stays?|is to (?:stay|be kept))(?: \w+)?\s+"
    r"(?:go(?: in)?(?:to)?|be (?:in|kept|part of|stored|saved|recorded|remembered|added|put|written|logged|"
    r"filed)|"
    r"end up in|enter|land in|stay in|out of|stick))\b"
    r"(?:.*\b(?:memory|memories|notes?|records?|remember\w*|file|anywhere|saved|stored|recorded|logged)\b.*|"
    r"\s*)$",
    re.I,
)
_NOT_FOR_MEMORY = re.compile(
    rf"^(?:{_THIS_TELLING}(?:'s| is| was| stays?| remains?| should (?:stay|be)| must (?:stay|be)|"
    rf" has to (?:stay|be))?"
    r"\b.{0,30}?\b)?(?:not (?:for|to go in(?:to)?|to be put in(?:to)?|going in(?:to)?|in|meant for|"
    r"something for)|"
    r"out of|outside(?: of)?|away from|nothing for)\s+"
    r"(?:your |the |my |any |long-term )*(?:memory|memories|notes?|records?|profile|files?|logs?|archive)\s*$"
    rf"|^{_THIS_TELLING}(?: one| part| bit)? (?:isn't|is not|wasn't|was not) (?:for|meant for|"
    rf"to go in(?:to)?) (?:your|the) "
    r"(?:memory|memories|notes?|records?|files?)\s*$"
    r"|^(?:nothing|none) of (?:this|that|it)\b.{0,30}\b(?:saved|stored|kept|remembered|recorded|logged|"
    r"memory|notes|"
    r"records)\s*$"
    r"|^(?:keep|make|leave|take|have) no (?:records?|notes?|traces?|copy|copies|memory|logs?) of (?:this|"
    r"that|it|what i "
    r"(?:just )?(?:said|told you))(?: in (?:your|the) \w+)?\s*$",
    re.I,
)
_UNCLEAR = re.compile(
    r"^(?:(?:let's )?keep (?:this|that|it) (?:just )?(?:between (?:us|you and me|the two of us)|private|"
    r"secret|confidential|to "
    r"yourself)|(?:this|that|it)(?:'s| is| stays?)(?: just| strictly)? (?:between (?:us|you and me)|private|"
    r"confidential|secret)"
    r"|(?:just )?between (?:you and me|us|the two of us)|in confidence|don't tell anyone(?: about (?:this|"
    r"that|it))?|"
    r"forget (?:about )?it|forget i asked|never mind(?: that| all that)?)\s*$",
    re.I,
)

_REGRETTED = re.compile(
    r"^\W*(?:and |because |as |since )?i (?:(?:really )?(?:shouldn't|should not|should never|wish i hadn't|"
    r"wish i had not|wish i had never|didn't mean to|did not mean to|never meant to|regret)(?: ever)? "
    r"(?:have )?(?:say|said|saying|tell|told|telling|mention|mentioned|mentioning|share|shared|sharing|"
    r"bring up|brought up)(?: you)?)(?: about)?\s*(?:that|this|it|anything)?\s*(?P<what>[^,.!?;]*)",
    re.I,
)

# --- remember
_REMEMBER = re.compile(
    r"^(?:always\s+)?(?P<verb>remember|memori[sz]e|keep in mind|bear in mind|make (?:a |"
    r"yourself a )?(?:mental )?note|take (?:a "
    r")?note|note down|note|jot down|write down|commit|save|store|record|add|put|log|don't (?:ever )?forget|"
    r"do not (?:ever )?"
    r"forget|never forget)\b\s*(?P<object>.*)$",
    re.I | re.DOTALL,
)
_NOTE_OF_THIS = re.compile(
    r"^(?:(?:jot|write|note|put|take) (?:this|it) down|commit (?:this |it )?to memory|"
    r"(?:this |here's )?(?:one|something) for your (?:memory|notes?|records?)|keep this(?: one)?|"
    r"a note for (?:you|later))\s*$",
    re.I,
)
_KEEP_THIS = re.compile(
    r"^(?:of )?(?:this|that|it|what i (?:just )?(?:said|told you)|all (?:of )?(?:this|that))"
    r"(?: (?:fact|one|info|information|for me|for later|for (?:the )?(?:future|next time)|down|please|about me|"
    r"(?:to|in|into|in your|to your|into your|for your) (?:your )?(?:memory|notes?|mind|records?|"
    r"profile)))*\s*$",
    re.I,
)
_STATEMENT = re.compile(
    r"^(?:(?:that|of the fact that|the fact that|how|for me|for later|down|for (?:the )?(?:future|next time)|"
    r"to memory|"
    r"(?:in|to|into) (?:your )?(?:memory|notes|records|profile))\s+)*(?P<what>(?:(?:i|i'm|i've|i'd|i'll|we|"
    r"we're|we've|my|our|mine)\b|"
    r"(?:the |his |her |their |"
    r"\w+(?: \w+)?'s )?(?:[\w'’#.-]+ ){1,7}?(?:is|are|was|were|has|have|lives?|works?|likes?|prefers?|hates?|"
    r"loves?|starts?|"
    r"begins?|will|wants?|needs?|goes|comes?|turns?|moved|=)\b).*)$",
    re.I | re.DOTALL,
)
_OWN = re.compile(r"^(?:that )?(?:i|i'm|i've|i'd|i'll|we|we're|we've|my|our|mine)\b", re.I)
_NO_STATEMENT = re.compile(
    r"^(?:to|when|how (?:we|you|much|to)|the (?:time|day|days|first time|good)|me\b|what|where|who|why|"
    r"whether|if|us\b)\b",
    re.I,
)
_REFERENCE = re.compile(
    r"^for (?:future reference|the record|your (?:information|memory|notes|records)|next time)\s*$", re.I
)

# --- standing wishes
_BEHAVIOUR = (
    r"(?:answer|reply|respond|speak|talk|write|use|give|call|address|start|begin|end|finish|include|add|show|"
    r"explain|keep|ask|"
    r"format|translate|convert|tell|cite|quote|mention|remind|put|avoid|refer|sign|assume|list|suggest|"
    r"recommend|"
    r"summari[sz]e|be|make|stick|send|greet|say|switch|provide|quiz|correct|check|treat|skip|leave|limit|"
    r"offer|stop|bring|do|"
    r"apologi[sz]e|lecture|repeat|point|spell|round|type|return|review|run|rate|grade|count|present|state|"
    r"double-check|clarify|default|"
    r"round)"
)
_WHEN_ALWAYS = re.compile(
    r"\b(?:from (?:now|here|today|this (?:point|moment|day)) on(?:wards?)?|from now|going forward|"
    r"in (?:the )?future|henceforth|"
    r"moving forward|for (?:all )?future (?:answers|replies|chats|messages|conversations|responses)|"
    r"in (?:all|every) (?:your )?(?:future )?(?:answers?|replies|reply|conversations?|chats?|responses?)|"
    r"(?:every|each) time (?:i|we|you)\b|whenever (?:i|we|you)\b|any ?more|any longer|ever again|"
    r"as a (?:general )?rule|"
    r"by default|"
    r"until (?:further notice|i say otherwise|i tell you otherwise)|starting (?:now|today))",
    re.I,
)
_AFTER_ALWAYS = re.compile(
    rf"^(?:please )?(?:always|never|only ever|only|(?:don't|"
    rf"do not) ever)\s+(?:please\s+)?(?P<verb>{_BEHAVIOUR})\b(?!ing)",
    re.I,
)
_IMPERATIVE = re.compile(
    rf"^(?:please )?(?:always |never |only |just )*(?:(?:do not|don't|stop|quit|no)\s+(?:ever\s+)?\w+|"
    rf"{_BEHAVIOUR}\b)",
    re.I,
)
_WANTS_ALWAYS = re.compile(
    r"^i(?:'d| would)? always (?:want|prefer|like|need|expect) (?:\w+ ){0,4}(?:answers?|repl(?:y|ies)|"
    r"responses?|"
    r"explanations?|summar(?:y|ies)|you to)\b",
    re.I,
)
_NEVER_MENTION = re.compile(
    r"^(?:please )?(?:never|(?:don't|do not)(?: ever)?) (?:mention|bring up|talk about|comment on|"
    r"remind me of|ask me|"
    r"ask about|call me|suggest|recommend|refer to)\b.*\b(?:again|any ?more|any longer|in (?:the )?future)\s*$",
    re.I,
)
_STOPS = re.compile(
    r"^(?:please )?(?:stop|quit|no more|enough with(?: the)?)\s+(?:ever |always |constantly )?(?:apologi[sz]ing|"
    r"apologies|lecturing|greeting me|calling me|addressing me|answering (?:me )?in|replying in|"
    r"using\b.*\b(?:emojis?|"
    r"bullet\w*|jargon|markdown|headings?|tables?|exclamation \w+|slang|abbreviations)|adding|ending (?:your|"
    r"every|"
    r"each)|starting (?:your|every|each)|repeating (?:my|what i|yourself)|asking me (?:if|whether|follow|for|"
    r"how)|"
    r"telling me to|suggesting|recommending|reminding me|bringing up|mentioning|saying (?:sorry|that)|"
    r"thanking|being so|sugar-?coating|small talk|emojis|"
    r"disclaimers|flattering|praising|summari[sz]ing)\b",
    re.I,
)
_DECLARES = re.compile(
    r"^(?:i|i'm|i'll|i've|i'd|we|we're|we'll|my|our|he|she|they|it|there|this|that|the|his|her|their)\b", re.I
)
_ABOUT_ANSWERS = re.compile(
    r"\b(?:you|your|answers?|repl(?:y|ies)|responses?|respond|call me|address me|tell me|give me|ask me|"
    r"remind me|(?:suggest|recommend|offer|show|send)\b.{1,40}\bto me|explain|"
    r"speak|talk to me|write|emojis?|bullet|summar|language|tone|metric|units|in (?:english|french|german|"
    r"spanish|chinese|"
    r"italian|japanese|korean|portuguese|dutch|russian))\b",
    re.I,
)


def read(clause: Clause) -> Reading | None:
    """What a clause commands; None where it commands nothing."""
    if _SPEECH.search(clause.before.rstrip(",: \ue000")[-30:]) and clause.before:
        return None
    lead = LEAD.match(clause.text)
    at = lead.end() if lead else len(clause.text) - len(clause.text.lstrip())
    request = _REQUEST.match(clause.text[at:])
    polite = request is not None
    if request:
        if request["asks"] is None and clause.asks and not clause.text[at:].lower().startswith("let"):
            return None
        at += request.end()
    body = re.sub(r"^forgot\b", "forget", clause.text[at:].rstrip()) if request else clause.text[at:].rstrip()
    if not body:
        return None
    # A question asks the assistant for something only where it is put as a request.
    if clause.asks and not (request and request["asks"]) and not _ask_tag(clause):
        return None
    if clause.asks and _SUPPOSED.search(f"{clause.text}{clause.after}"):
        return None
    return (
        _do_not_remember(body, at, clause)
        or _forget(body, at, clause)
        or _standing(body, at, clause)
        or _remember(body, at, clause, polite=polite)
        or _unclear(body, clause)
    )


def _ask_tag(clause: Clause) -> bool:
    """Whether only a tag makes a question of it: “forget that, will you?”."""
    return bool(
        re.fullmatch(
            r"\W*(?:ok|okay|please|will you|would you|could you|can you|alright|right|"
            r"yeah)\W*",
            clause.after,
            re.I,
        )
    )


def _forget(body: str, at: int, clause: Clause) -> Reading | None:  # noqa: PLR0911 — one rule after the other
    if _PRETEND.match(body):
        return Reading("forget", "here")
    if wanted := _WANTED_GONE.match(clause.text[_lead_end(clause.text) :]):
        return _forgotten(wanted, _lead_end(clause.text), clause, from_memory=True)
    found = _FORGET.match(body)
    if found:
        return _forgotten(found, at, clause, from_memory=False)
    found = _DELETE.match(body)
    if not found:
        if _DISREGARD.match(body):
            return Reading("forget", "here", certainty="unclear")
        return None
    memory = _FROM_MEMORY.search(found["object"])
    topic = _TOPIC.match(found["object"])
    told = (
        _GIVEN.match(found["object"])
        or _LATER.match(found["object"])
        or (topic and topic.group().strip().lower() not in {"that", "about"})
    )
    message = re.match(
        r"(?:the|my|that|this) (?:last|previous) (?:message|exchange|thing i\b)", found["object"], re.I
    )
    if memory or told or message:
        return _forgotten(found, at, clause, from_memory=True)
    if _MINE.match(found["object"]) and found["verb"].lower() not in {"take", "drop", "strike", "clear"}:
        return _forgotten(found, at, clause, from_memory=False)
    return None


def _forgotten(found: re.Match[str], at: int, clause: Clause, *, from_memory: bool) -> Reading | None:  # noqa: PLR0911 — one rule after the other
    start, thing = found.start("object"), found["object"]
    memory = _FROM_MEMORY.search(thing)
    if memory and not thing[: memory.start()].strip():
        # “delete from your memory that I smoke”: what is meant follows.
        start += memory.end() + len(thing[memory.end() :]) - len(thing[memory.end() :].lstrip(" ,:"))
        thing, memory = found["object"][start - found.start("object") :], None
    thing = thing[: memory.start()] if memory and memory.end() >= len(thing.rstrip()) - 12 else thing
    thing = _ENDING.sub("", thing).rstrip()
    if not thing or (_IN_GENERAL.match(thing) and not _THIS.match(thing) and not _TOPIC.match(thing)):
        return None
    if _THIS.match(thing):
        if thing.lower() in {"it", "about it"} and not from_memory:
            return _forget_it(clause)
        return Reading("forget", "previous" if _LAST.search(thing) else "here")
    topic, given = _TOPIC.match(thing), _GIVEN.match(thing)
    if given:
        return Reading("forget", "stated", (at + start + given.start("what"), at + start + given.end("what")))
    if not topic and _LATER.match(thing):
        return Reading("forget", "here", certainty="unclear")
    if not topic and not _DETERMINED.match(thing) and not thing[:1].isupper():
        return None
    begins = topic.end() if topic else 0
    if _CHANGES_SUBJECT.match(clause.after) and not _MINE.match(thing[begins:]):
        return None
    if not thing[begins:].strip() or re.fullmatch(r"(?:this|that|it)", thing[begins:].strip(), re.I):
        return Reading("forget", "here")
    lets = re.match(r"\W*(?:\w+\W+)?let(?:'s| us)\b", clause.text, re.I)
    sure = not lets and (
        from_memory
        or (topic is not None and topic.group().strip().lower() not in {"about", "that"})
        or bool(_MINE.match(thing[begins:]))
    )
    return Reading("forget", "stated", (at + start + begins, at + start + len(thing)), needs_match=not sure)


def _do_not_remember(body: str, at: int, clause: Clause) -> Reading | None:  # noqa: PLR0911 — one rule after the other
    if (
        _OFF_THE_RECORD.match(body)
        or _OFF_THE_RECORD_LEADS.match(body)
        or _STAYS_OUT.match(body)
        or (_NOT_FOR_MEMORY.match(body))
    ):
        told = re.match(r"\w+ (?:was|has been)\b|\w+ what i (?:just )?(?:said|told)", body, re.I)
        return Reading("do_not_remember", "before" if told else "here")
    # What was read as a request may be part of the negation.
    for place in dict.fromkeys((at, len(clause.text) - len(clause.text.lstrip()), _lead_end(clause.text))):
        found = _NEGATED.match(clause.text[place:])
        if not found:
            continue
        thing = _ENDING.sub("", f" {found['object']}").strip()
        kept = found["verb"].lower()
        if not thing:
            passive = re.search(r"\bwant (?:this|that|it|any of this)\b|\bnot to be\b", clause.text, re.I)
            return Reading("do_not_remember", "here") if passive else None
        if unkept := _UNKEPT.match(thing):
            return Reading("do_not_remember", "before" if unkept["said"] else "here")
        held = re.match(r"(?:on ?to|track of|(?:a )?(?:record|note|copy)s? of)\s+", thing, re.I)
        ended = bool(_NO_LONGER.search(clause.text)) or bool(re.match(r"(?:please )?stop\b", found.group(), re.I))
        thing = _NO_LONGER.sub("", thing).rstrip()
        if kept.startswith("rememb") or kept.startswith("memor") or _FROM_MEMORY.search(thing):
            topic = _TOPIC.match(thing)
            begins = topic.end() if topic else 0
            memory = _FROM_MEMORY.search(thing)
            ends = memory.start() if memory else len(thing)
            if _MINE.match(thing[begins:]) or (memory and _DETERMINED.match(thing[begins:])):
                start = place + found.start("object")
                kind: MemoryChangeKind = "forget" if ended else "do_not_remember"
                return Reading(kind, "stated", (start + begins, start + ends))
            if _ASKED_OF_ME.match(thing):
                start = place + found.start("object")
                return Reading("forget", "stated", (start, start + ends))
        elif ended and _MINE.match(thing[held.end() if held else 0 :]):
            start = place + found.start("object")
            # Files and things are kept, too.
            place_of_it = (start + (held.end() if held else 0), start + len(thing))
            return Reading("forget", "stated", place_of_it, needs_match=True)
    return None


def _lead_end(text: str) -> int:
    lead = LEAD.match(text)
    return lead.end() if lead else 0


def _remember(body: str, at: int, clause: Clause, *, polite: bool) -> Reading | None:  # noqa: PLR0911 — one rule after the other
    if _REFERENCE.match(body) and clause.after.strip(" ,:"):
        begins = clause.end - clause.start
        return Reading("remember", "stated", (begins, begins), "sentence")
    if _NOTE_OF_THIS.match(body) and clause.introduces:
        begins = clause.end - clause.start
        return Reading("remember", "stated", (begins, begins), "message")
    found = _REMEMBER.match(body)
    if not found:
        return None
    verb, thing = found["verb"].lower(), found["object"].strip()
    negated = verb.endswith("forget")
    weak = verb in {"note", "save", "store", "record", "add", "put", "log", "commit", "write down", "jot down"}
    if _KEEP_THIS.match(thing) or (not thing and clause.introduces):
        to_memory = bool(_FROM_MEMORY.search(thing)) or "memory" in thing.lower()
        for_later = bool(re.search(r"\bfor (?:later|next time|(?:the )?future|good|me)\b", thing, re.I))
        introduced = clause.introduces and (verb in {"note", "note down"} or for_later)
        if (weak and not to_memory and not introduced) or negated:
            return None
        if clause.introduces:
            begins = clause.end - clause.start
            return Reading("remember", "stated", (begins, begins), "message")
        return Reading("remember", "here")
    if clause.introduces and (memory := _FROM_MEMORY.match(f" {thing}")) and memory.end() > len(thing):
        begins = clause.end - clause.start
        return Reading("remember", "stated", (begins, begins), "message")
    if not thing or _NO_STATEMENT.match(thing):
        wish = re.match(rf"to (?:always |never )?{_BEHAVIOUR}\b", thing, re.I)
        if wish and not negated and _ABOUT_ANSWERS.search(thing):
            return Reading("standing", "stated", (at + found.start("object") + 3, len(clause.text)), "sentence")
        return None
    stated = _STATEMENT.match(thing)
    if not stated or (clause.asks and not polite):
        return None
    own = _OWN.match(stated["what"])
    if (weak or negated) and not own and not _FROM_MEMORY.search(thing):
        return None
    if clause.asks and not own:
        return None
    start = at + found.start("object") + (len(found["object"]) - len(found["object"].lstrip()))
    return Reading("remember", "stated", (start + stated.start("what"), len(clause.text)), "sentence")


def _standing(body: str, at: int, clause: Clause) -> Reading | None:
    whole = f"{clause.text}{clause.after}"
    if _STOPS.match(body) or _STOPS.match(clause.text.lstrip()) or _WANTS_ALWAYS.match(clause.text.lstrip()):
        return Reading("standing", "stated", (at, len(clause.text)), "sentence")
    if _NEVER_MENTION.match(body):
        return Reading("standing", "stated", (at, len(clause.text)), "sentence")
    if _AFTER_ALWAYS.match(body) and (_ABOUT_ANSWERS.search(body) or _ABOUT_ANSWERS.search(clause.after)):
        return Reading("standing", "stated", (at, len(clause.text)), "sentence")
    when = _WHEN_ALWAYS.search(whole)
    if not when or (clause.before.strip() and _DECLARES.match(clause.before.strip())):
        return None
    weak = bool(re.match(r"any ?more|as a|by default|in (?:all|every)|for all", when.group(), re.I))
    weak = weak and not re.search(r"answers?|repl(?:y|ies)|responses?", when.group(), re.I)
    # Before or after the time, what is wished stands.
    wish = LEAD.sub("", whole[: when.start()] + " " + whole[when.end() :].lstrip(" ,"), count=1)
    after = LEAD.sub("", whole[when.end() :].lstrip(" ,"), count=1)
    if when.group().lower().startswith(("whenever", "every time", "each time")):
        after = re.split(r",\s*", whole[when.end() :], maxsplit=1)[-1]
        wish = whole[: when.start()].strip() or after
    for text in (wish.strip(), after.strip()):
        request = _REQUEST.match(text)
        asked = text[request.end() :] if request else text
        wants = re.match(r"^(?:i|we)(?:'d| would)? (?:like|want|prefer|need) (?!to\b)", text, re.I)
        if request is None and not wants and _DECLARES.match(asked):
            continue
        if request or wants or _IMPERATIVE.match(asked):
            if weak and not (_ABOUT_ANSWERS.search(text) or wants or request):
                continue
            return Reading("standing", "stated", (_lead_end(clause.text), len(clause.text)), "sentence")
    return None


def _unclear(body: str, clause: Clause) -> Reading | None:
    if clause.asks or not _UNCLEAR.match(_ENDING.sub("", body)):
        return None
    if not re.match(r"forget|never", body, re.I):
        return Reading("do_not_remember", "here", certainty="unclear")
    return _forget_it(clause)


def _forget_it(clause: Clause) -> Reading:
    """“Forget it” may only change the subject, unless the user regrets to have told it."""
    regretted = _REGRETTED.match(clause.after)
    if regretted is None:
        return Reading("forget", "here", certainty="unclear")
    if not regretted["what"]:
        return Reading("forget", "before")
    begins = clause.end - clause.start
    place = (begins + regretted.start("what"), begins + regretted.end("what"))
    return Reading("forget", "stated", place, "sentence")
