"""Plain statements in English: a subject, a predicate, and the frame that says what to keep of it."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import takewhile

from services.memory.agent.fact import Fact, Frame
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
    r"\s+(?:and|but)(?: also| now)? (?=(?:live|work|have|love|hate|like|am|play|speak|study|own|drive|enjoy|"
    r"prefer|teach|"
    r"run|do not|can not|never)\b)",
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
_KIN = (
    r"(?:(?:older|younger|elder|little|big|eldest|oldest|youngest|middle|late|twin|step|best|baby|new|first|"
    r"second) )*"
    r"(?:wife|husband|son|daughter|mother|father|mom|mum|dad|sister|brother|partner|kid|child|baby|girlfriend|"
    r"boyfriend|fiancée?|fiance|grandmother|grandfather|grandma|grandpa|aunt|uncle|cousin|niece|nephew|boss|"
    r"manager|"
    r"roommate|flatmate|friend|stepson|stepdaughter|parents|kids|children|sons|daughters|twins|in-laws|neighbou?r)"
)
_PET = (
    r"(?:dog|cat|puppy|kitten|parrot|rabbit|hamster|horse|tortoise|turtle|goldfish|guinea pig|budgie|pet|"
    r"ferret|pony)"
)
_NUMBER = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|a|an|another)"
_JOB = (
    r"(?:[\w-]+ ){0,3}?(?!(?:beginner|fan|lover|reader|believer|customer|member|user|foreigner|newcomer|stranger|"
    r"winner|loser|better|mother|father|parent|sister|brother|person|number|matter|monster|vegetarian|giant|"
    r"moment|"
    r"patient|client|mess|sucker|procrastinator|drinker|smoker|sleeper|riser|eater|sister|other|over|talker|"
    r"listener|"
    r"learner|quitter|extravert|introvert|adult|survivor|supporter|perfectionist|optimist|pessimist|owner|"
    r"hoarder|disaster|failure|vegan|christian|civilian|silent|different)\b)"
    r"(?:[\w-]+(?:er|or|ist|ian|eer|ant|sultant|ologist|dent)|nurse|chef|cook|pilot|coach|judge|architect|clerk|"
    r"vet|barista|midwife|carpenter|translator|surgeon|freelance \w+|police officer|firefighter|salesman|"
    r"saleswoman|postman|businesswoman|businessman|au pair|secretary|monk|priest|housewife|homemaker|intern|"
    r"trainee|apprentice|assistant|"
    r"florist|electrician|mechanic|analyst|data scientist|scientist|product manager|ceo|cto|dj|scholar)"
)
_LANGUAGE = (
    r"(?:English|French|German|Spanish|Italian|Portuguese|Dutch|Swedish|Norwegian|Danish|Finnish|Polish|Czech|"
    r"Russian|"
    r"Ukrainian|Greek|Turkish|Arabic|Hebrew|Hindi|Urdu|Bengali|Tamil|Mandarin|Cantonese|Chinese|Japanese|Korean|"
    r"Thai|"
    r"Vietnamese|Indonesian|Malay|Tagalog|Swahili|Hungarian|Romanian|Catalan|Irish|Welsh|Icelandic|Persian|"
    r"Farsi|Latin)"
)
_LANGUAGES = rf"(?P<V>{_LANGUAGE}(?:(?:, | and |, and | as well as ){_LANGUAGE})*)"
_NAME = r"(?P<V>(?-i:[A-Z])[\w'.-]*(?: (?-i:[A-Z])[\w'.-]*){0,3})$"
_ILLNESS = (
    r"(?:asthma|diabetes|migraines?|epilepsy|adhd|arthritis|hypertension|high blood pressure|low blood pressure|"
    r"insomnia|"
    r"depression|anxiety|ibs|celiac disease|coeliac disease|eczema|psoriasis|anemia|anaemia|sciatica|tinnitus|"
    r"dyslexia|autism|endometriosis|scoliosis|osteoporosis|hypothyroidism|a (?:heart|thyroid|kidney|back|knee) "
    r"\w+|"
    r"a bad (?:knee|back|shoulder|hip)|a pacemaker|type [12] diabetes|a \w+ intolerance|lactose intolerance|"
    r"glaucoma)"
)
_CONDITION = (
    r"(?:diabetic|asthmatic|epileptic|celiac|coeliac|colou?r-?blind|left-?handed|pregnant|deaf|blind|dyslexic|"
    r"autistic|"
    r"lactose[- ]intolerant|gluten[- ]intolerant|short-?sighted|near-?sighted|anemic|anaemic|hard of hearing|"
    r"(?:\w+ )?(?:weeks|months) pregnant)"
)
_EVENT = (
    r"(?:exam|interview|appointment|flight|meeting|wedding|surgery|operation|test|concert|deadline|presentation|"
    r"check-?up|date|trip|conference|race|marathon|graduation|thesis defen[cs]e|anniversary)"
)
_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_WEEKDAY = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_UPCOMING = (
    r".*\b(?:tomorrow|tonight|(?:next|this|on|in|by|from) (?:[\w']+ ){0,2}?"
    rf"(?:{_WEEKDAY}|{_MONTH}|week(?:end)?s?|months?|days?|years?|spring|summer|autumn|fall|winter|christmas|"
    rf"easter|"
    rf"\d{{1,2}}(?:st|nd|rd|th))\b|{_MONTH} \d{{1,2}}).*"
)
_FUTURE = rf"(?P<V>{_UPCOMING})$"

_PLACE = (
    r"(?P<V>(?=.*(?:(?-i:\b[A-Z])|\b(?:village|town|city|suburbs?|countryside|flat|apartment|house|farm|dorm|"
    r"studio|"
    r"caravan|cent(?:re|er)|mountains|coast|island|district|neighbou?rhood|cottage|cabin|houseboat)\b))\S.*)"
)
_NAMED_PLACE = r"(?P<V>(?-i:(?:the )?[A-Z][\w'’-]*(?:,? (?:(?:upon|on|de|la|am|an der) )?[A-Z][\w'’-]*)*)).*"
"""The name at the beginning: what follows says when, and with whom."""
# What follows "I am". The first matching frame applies.
_IS: tuple[Frame, ...] = (
    Frame("allergic to", "allergies", ends=True),
    Frame(
        "",
        "diet",
        "{}",
        denied="is no longer {}",
        past="is no longer {}",
        shape=r"(?:an? )?(?P<V>(?:mostly )?(?:vegetarian|vegan|pescatarian|teetotal|teetotaler|on a keto diet|"
        r"keto|flexitarian))\b",
    ),
    Frame("", "health", "is {}", shape=rf"(?P<V>{_CONDITION})\b"),
    Frame("", "age", "{} years old", shape=r"(?P<V>\d{1,3})(?: years old| years of age)?$"),
    Frame("turning", "age", "turns {}", shape=r"(?P<V>\d{1,3}\b.*)$"),
    Frame(
        "",
        "height",
        "{}",
        shape=r"(?P<V>\d[\d.,]* ?(?:cm|m|meters?|metres?|feet|foot|ft|')(?: ?\d+(?:\.\d+)?)?\"?(?: tall)?)$",
    ),
    Frame(
        "",
        "marital_status",
        "is {}",
        shape=r"(?P<V>(?:married|single|divorced|engaged|widowed|separated)(?: to (?:an? )?[\w' -]+)?)(?: again|"
        r" now)?$",
    ),
    Frame("called", "name", shape=_NAME),
    Frame("named", "name", shape=_NAME),
    Frame("living in", "home", "lives in {}", shape=_PLACE),
    Frame("based in", "home", "lives in {}"),
    Frame("working as", "work", "works as {}"),
    Frame(
        "",
        "work",
        "works as {}",
        past="works as {}",
        shape=rf"start(?:ed|ing) (?:work )?as (?P<V>an? {_JOB}(?: (?:at|for|in|with) .+)?)$",
    ),
    Frame("working at", "work", "works at {}"),
    Frame("working for", "work", "works for {}"),
    Frame("retired", "work", "is retired", shape=r"(?P<V>.{0})(?:$| (?:now|since|from))"),
    Frame("unemployed", "work", "is unemployed", shape=r"(?P<V>.{0})"),
    Frame("self-employed", "work", "is self-employed", shape=r"(?P<V>.{0})"),
    Frame("between jobs", "work", "is between jobs", shape=r"(?P<V>.{0})"),
    Frame("studying", "studies", "studies {}", shape=r"(?!for (?:an? |the |my )?(?:exam|test|quiz))V"),
    Frame("majoring in", "studies", "majors in {}"),
    Frame("doing a phd in", "studies", "is doing a PhD in {}"),
    Frame("doing a master's in", "studies", "is doing a master's in {}"),
    Frame("fluent in", "languages", "speaks {}", shape=_LANGUAGES),
    Frame("learning", "languages", "is learning {}", shape=_LANGUAGES),
    Frame("from", "hometown", "comes from {}", shape=r"(?P<V>(?-i:[A-Z])[\w'.-]*(?:,? (?-i:[A-Z])[\w'.-]*)*)"),
    Frame("afraid of", "preferences", "is afraid of {}", denied="is not afraid of {}"),
    Frame("scared of", "preferences", "is afraid of {}", denied="is not afraid of {}"),
    Frame(
        "",
        "preferences",
        "likes {}",
        denied="does not like {}",
        past="no longer likes {}",
        shape=r"(?:a |an )?(?:(?:big|huge|great|massive) )?(?:fan of|fond of|into|keen on|crazy about|obsessed "
        r"with) V",
    ),
    Frame("tired of", "preferences", "is tired of {}"),
    Frame("training for", "plans", "is training for {}"),
    Frame("saving up for", "plans", "is saving up for {}"),
    Frame("saving for", "plans", "is saving up for {}"),
    Frame("", "work", "is {}", shape=rf"(?P<V>(?:an?|the) {_JOB})(?: (?:at|for|in|with) (?P<where>[\w&' -]+?))?$"),
)

# What follows "I": plain verbs.
_DOES: tuple[Frame, ...] = (
    Frame("live in", "home", "lives in {}", denied="no longer lives in {}", shape=_PLACE),
    Frame("reside in", "home", "lives in {}"),
    Frame(
        "",
        "home",
        "lives in {}",
        past="lives in {}",
        shape=rf"(?:moved|relocated)(?: back)?(?: (?:here )?from .+?)? to {_NAMED_PLACE}",
    ),
    Frame("", "hometown", "grew up in {}", past="grew up in {}", shape=r"(?:grew up|raised) in V"),
    Frame("", "birthday", "born {}", past="born {}", shape=r"born (?P<V>(?:on|in) .*\d.*)$"),
    Frame("born in", "hometown", "was born in {}", past="was born in {}"),
    Frame("work as", "work", "works as {}", ends=True),
    Frame(
        "",
        "work",
        "works as {}",
        past="works as {}",
        shape=rf"(?:start|started|begin|began) (?:work(?:ing)? )?as (?P<V>an? {_JOB}(?: (?:at|for|in|with) .+)?)$",
    ),
    Frame("work at", "work", "works at {}", ends=True),
    Frame("work for", "work", "works for {}", ends=True),
    Frame("work in", "work", "works in {}"),
    Frame(
        "",
        "work",
        "works at {}",
        past="works at {}",
        shape=r"(?:(?:start|started|begin|began)(?: working| (?:my|a) new (?:job|position|role))? at "
        r"(?=(?:the )?(?-i:[A-Z]))|joined (?=(?-i:[A-Z])))V",
    ),
    Frame(
        "",
        "work",
        "{}",
        past="{}",
        shape=r"(?:got|took|accepted|landed) (?:a|the|my) (?:new )?(?:job|position) (?P<V>(?:at|as|with) .+)",
    ),
    Frame("teach", "work", "teaches {}"),
    Frame("", "work", "is retired", past="is retired", shape=r"retired(?P<V>.{0})\b(?! hurt)"),
    Frame(
        "",
        "work",
        "was laid off",
        past="was laid off",
        shape=r"(?:got|been) (?:laid off|fired|made redundant)(?P<V>.{0})",
    ),
    Frame(
        "",
        "work",
        "left their job",
        past="left their job",
        shape=r"(?:quit|left|resigned from) my (?:old |previous )?job(?P<V>.{0})",
    ),
    Frame(
        "",
        "work",
        "runs {}",
        shape=r"run (?P<V>(?:a|an|my own) (?:small |little |family |online )?(?:\w+ )?(?:bakery|shop|business|"
        r"restaurant|cafe|café|company|startup|studio|farm|store|agency|salon|bookshop|practice|hotel|gym|"
        r"school|bar|blog))\b",
    ),
    Frame(
        "",
        "studies",
        "studies {}",
        shape=r"study (?=(?:[\w ]+) at |[a-z]+(?: [a-z]+)?$)(?!hard|every|at home|at night|all|for|with|alone|"
        r"better|best)V",
    ),
    Frame("", "studies", "majors in {}", past="majored in {}", shape=r"major(?:ed)? in V"),
    Frame("", "studies", "graduated from {}", past="graduated from {}", shape=r"graduated from V"),
    Frame(
        "speak",
        "languages",
        "speaks {}",
        denied="does not speak {}",
        shape=rf"(?:fluent |some |good |native |a little |a bit of )?{_LANGUAGES}",
    ),
    Frame("go by", "preferred_name", shape=_NAME),
    Frame(
        "",
        "diet",
        "no longer eats {}",
        past="no longer eats {}",
        shape=r"(?:stopped eating|gave up|given up|cut out) (?!smoking|on|my job|trying|hope)V",
    ),
    Frame(
        "",
        "diet",
        "no longer drinks {}",
        past="no longer drinks {}",
        shape=r"(?:stopped drinking|quit drinking) V",
    ),
    Frame(
        "",
        "habits",
        "no longer smokes",
        past="no longer smokes",
        shape=r"(?:quit|stopped|gave up|given up) smoking(?P<V>.{0})",
    ),
    Frame(
        "",
        "preferences",
        "no longer likes {}",
        past="no longer likes {}",
        shape=r"(?:gone off|went off|lost interest in|grown tired of|got tired of) V",
    ),
    Frame("can not stand", "preferences", "cannot stand {}"),
    Frame("can not eat", "diet", "cannot eat {}"),
    Frame("can not drink", "diet", "cannot drink {}"),
    Frame(
        "can not have",
        "diet",
        "cannot have {}",
        shape=r"(?P<V>gluten|dairy|lactose|nuts|sugar|alcohol|caffeine|seafood|shellfish|eggs|wheat|soy)\b",
    ),
    Frame("eat", "diet", "", denied="does not eat {}"),
    Frame(
        "drink",
        "diet",
        "",
        denied="does not drink {}",
        shape=r"(?P<V>alcohol|coffee|tea|milk|beer|wine|soda|caffeine|\w+ (?:milk|tea))\b",
    ),
    Frame("smoke", "habits", "smokes", denied="does not smoke", shape=r"(?P<V>.{0})$"),
    Frame(
        "weigh",
        "weight",
        "{}",
        shape=r"(?P<V>(?:about |around )?\d[\d.]* ?(?:kg|kilos?|kilograms?|pounds?|lbs?|stone))\b",
    ),
    Frame("wear", "clothing_size", "{}", shape=r"(?:a )?(?P<V>size [\w.]+)"),
    Frame("drive", "possessions", "drives {}", shape=r"(?P<V>an? [\w -]+)$"),
    Frame("own", "possessions", "owns {}", shape=r"(?P<V>(?:an?|two|three) [\w -]+)$"),
    Frame(
        "",
        "possessions",
        "has {}",
        past="has {}",
        shape=r"bought (?P<V>(?:an?|my) (?:[\w-]+ ){0,3}?(?:car|house|flat|apartment|bike|bicycle|motorbike|"
        r"phone|iphone|laptop|piano|guitar|camera|boat|van|tesla|volvo|macbook))\b",
    ),
    Frame(
        "",
        "possessions",
        "",
        past="{}",
        shape=r"sold my (?P<V>car|bike|house|flat|motorbike|boat|piano|[\w-]+)$",
        ends=True,
    ),
    Frame(
        "play",
        "hobbies",
        "plays {}",
        shape=r"(?P<V>(?:the )?(?:piano|guitar|violin|cello|drums|flute|bass|saxophone|trumpet|ukulele|tennis|"
        r"chess|football|soccer|basketball|badminton|volleyball|golf|rugby|squash|bridge|board games|video "
        r"games))\b",
    ),
    Frame(
        "",
        "pets",
        "has {}",
        past="has {}",
        shape=rf"(?:have|adopted|got|own|keep) (?P<V>{_NUMBER} (?:(?!for|of|"
        rf"to)[\w-]+ ){{0,3}}?{_PET}s?(?:,? (?:called|"
        rf"named) (?-i:[A-Z])\w+(?: and (?-i:[A-Z])\w+)?)?)\b",
    ),
    Frame(
        "have",
        "family",
        "has {}",
        denied=None,
        shape=rf"(?P<V>(?:{_NUMBER}|no) (?:[\w-]+ )?{_KIN}s?(?:,? (?:called|named) (?-i:[A-Z])\w+(?: and "
        rf"(?-i:[A-Z])\w+)?)?)\b(?! who| that| over| in town|-)",
    ),
    Frame("have", "allergies", "{}", shape=r"an? (?:severe |bad |mild |serious )?(?P<V>[\w-]+) allergy\b"),
    Frame(
        "",
        "health",
        "has {}",
        past="has {}",
        shape=rf"(?:have|suffer from|been diagnosed with|was diagnosed with|diagnosed with|got diagnosed with) "
        rf"(?P<V>{_ILLNESS})\b",
    ),
    Frame("", "health", "gets {}", shape=rf"(?:get|have) (?P<V>{_ILLNESS} from .+)$"),
    Frame("have", "plans", "has {}", shape=rf"(?=an? (?:[\w'-]+ ){{0,3}}?{_EVENT}\b){_FUTURE}"),
)
_LIKING = {
    "like": "likes", "love": "loves", "enjoy": "enjoys", "adore": "loves", "prefer": "prefers", "hate": "hates",
    "detest": "hates", "dislike": "dislikes", "loathe": "hates",
}  # fmt: skip
# What follows "my": the noun, and the field with its text.
_OWN: tuple[tuple[str, str, str], ...] = (
    (r"(?:first |full |real |given )?name is (?!not)" + _NAME, "name", "{}"),
    (r"(?:nickname is|(?:friends|family|colleagues|parents) (?:all )?call me) " + _NAME, "preferred_name", "{}"),
    (r"pronouns are (?P<V>[\w/ ]+)$", "pronouns", "{}"),
    (r"birthday is (?:on )?(?P<V>.*(?:\d|" + _MONTH + ").*)$", "birthday", "{}"),
    (r"e-?mail(?: address)? is (?P<V>\S+@\S+\.\w+)", "email", "{}"),
    (r"(?:phone|mobile|cell)(?: number)? is (?P<V>\+?[\d -]{6,})$", "phone_number", "{}"),
    (r"(?:home )?address is (?P<V>.*\d.*)$", "address", "{}"),
    (r"hometown is (?P<V>(?-i:[A-Z]).+)$", "hometown", "{}"),
    (r"(?:shoe|foot) size is (?P<V>[\w.]+(?: \d)?)$", "shoe_size", "{}"),
    (r"(?:dress|shirt|clothing|clothes) size is (?P<V>[\w.]+)$", "clothing_size", "{}"),
    (r"blood type is (?P<V>(?:a|b|ab|o)\b.*)$", "blood_type", "{}"),
    (r"height is (?P<V>.*\d.*)$", "height", "{}"),
    (r"weight is (?P<V>.*\d.*)$", "weight", "{}"),
    (rf"(?:native language|mother tongue|first language) is {_LANGUAGES}", "languages", "native language: {}"),
    (
        r"(?P<what>favourite [\w ]{2,30}?) (?:is|are) (?P<V>(?!not|what|it|that|this).+)$",
        "preferences",
        "{what}: {}",
    ),
    (r"(?P<what>car|bike|phone|laptop|motorbike) is (?P<V>an? .+)$", "possessions", "{what}: {}"),
    (rf"(?P<what>(?:\w+ )?{_EVENT}) is (?:on |at )?{_FUTURE}", "plans", "{what} {}"),
    (rf"(?P<what>{_PET})(?:'s name is|,? is (?:called|named)) {_NAME}", "pets", "{what} is called {}"),
    (rf"(?P<what>{_KIN})(?:'s name is| is (?:called|named)) {_NAME}", "family", "{what} is called {}"),
    (
        rf"(?P<what>{_KIN})(?: is| just turned| turned| has just turned)(?: now| already)? (?P<V>\d{{1,3}})"
        r"(?: years old| now| today)?$",
        "family",
        "{what} is {} years old",
    ),
    (rf"(?P<what>{_KIN})(?: is| are) (?P<V>\d+ (?:months|weeks) old)$", "family", "{what} is {}"),
    (
        rf"(?P<what>{_KIN})(?:'s birthday is|'s birthday falls) (?:on )?(?P<V>.*\w+.*)$",
        "family",
        "{what}'s birthday is {}",
    ),
    (rf"(?P<what>{_KIN})(?: is| are) (?:\w+ly )?allergic to (?P<V>.+)$", "family", "{what} is allergic to {}"),
    (rf"(?P<what>{_KIN}) (?P<V>works? (?:as|at|for|in) .+)$", "family", "{what} {}"),
    (rf"(?P<what>{_KIN}) (?P<V>lives? in .+)$", "family", "{what} {}"),
    (rf"(?P<what>{_KIN}) is (?P<V>an? {_JOB})(?: at .+)?$", "family", "{what} is {}"),
    (rf"(?P<what>{_KIN}) (?:is|are) (?P<V>vegan|vegetarian|pregnant|diabetic|retired)$", "family", "{what} is {}"),
    (rf"(?P<what>{_KIN}) (?:has|have) (?P<V>{_ILLNESS})$", "family", "{what} has {}"),
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
    rf"calls? me {_NAME}",
    re.IGNORECASE,
)
_DECIDED = re.compile(
    r"^(?:i|we)(?: have)? (?:\w+ly |now |just )?decided (?P<V>(?:not )?(?:to|that|on|against) \S.*)$",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    rf"^(?:i|we)(?P<mid>(?: {_ADVERBS}| am| are| was| were| have| has| had| been| do| did| will| not| never| no "
    rf"longer| used to| can)*)"
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
    rf"having (?:surgery|an operation|a baby|dinner|lunch)|taking|returning|leaving)\b(?!.*\bnow\b){_UPCOMING})$",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"^(?:and |or |also )?(?P<V>(?!(?:i|so|my|we|but|which|that|it|they|he|she|you|there|please|"
    r"thanks?|sorry|lol|haha|"
    r"ok|okay|btw|bye|cheers|ta|hi|hey|hello|yes|no|honestly|really|though|too|obviously|well|anyway|especially|mostly)\b)"
    r"[\w'-]+(?: [\w'-]+){0,2}(?: (?:and|or) [\w'-]+(?: [\w'-]+){0,2})?)$",
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
    for pattern, field, template in _OWN:
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
    if has and not _PARTICIPLE.match(rest):
        rest, mid = f"have {rest}", mid[: has.start()] + " "
    denied = any(word in mid for word in (" not ", " never ", " no longer "))
    past = any(word in mid for word in (" was ", " were ", " did ", " had ", " used to "))
    if " can " in mid:
        rest = f"can {'not ' if denied else ''}{rest}"
        denied = False
    is_being = any(word in mid for word in (" am ", " are ", " was ", " were ", " been "))
    liked = None if is_being else re.match(rf"(?P<verb>{'|'.join(_LIKING)})d? (?P<V>.+)$", rest, re.IGNORECASE)
    if liked:
        yield from _liking(liked, text, denied=denied, past=" used to " in mid)
        return
    if " will " in mid:
        return
    going = _GOING.match(rest)
    if is_being and not denied and not past and (going or is_first_name(rest)):
        yield Fact("plans", _third_person(going["V"].strip(_MARKS))) if going else Fact("name", rest)
        return
    for frame in _IS if is_being else ():
        facts = list(_by_frame(frame, rest, denied=denied, past=past))
        if facts:
            yield from facts
            return
    for frame in _DOES:
        facts = list(_by_frame(frame, rest, denied=denied, past=past and not is_being))
        if facts:
            yield from facts
            return


def _liking(found: re.Match[str], text: str, *, denied: bool, past: bool) -> Iterator[Fact]:
    value = _value(found["V"])
    if not value or _VAGUE.match(found["V"]) or found["verb"].casefold() + "d " in text.casefold():
        return
    likes = _LIKING[found["verb"].casefold()]
    no_longer = re.search(r"\bno longer\b|\bany ?more\b", text, re.IGNORECASE)
    if past or (denied and no_longer):
        yield Fact("preferences", f"no longer {likes} {value}")
    else:
        yield Fact("preferences", f"does not {found['verb'].casefold()} {value}" if denied else f"{likes} {value}")


def _by_frame(frame: Frame, rest: str, *, denied: bool, past: bool) -> Iterator[Fact]:
    found = _pattern(frame).match(rest)
    if not found:
        return
    ended = frame.ends and denied
    text = frame.text if not denied and not past else frame.denied if denied else frame.past
    if ended:
        text = "{}"
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
