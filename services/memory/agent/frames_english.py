"""What plain statements in English look like: words of people and things, and the frames of predicates."""

from services.memory.agent.fact import Frame
from services.text.concepts import word_pattern

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
_PETS = (
    rf"(?P<V>{_NUMBER} (?:(?!for|of|to)[\w-]+ ){{0,3}}?{_PET}s?"
    rf"(?:,? (?:called|named) (?-i:[A-Z])\w+(?: and (?-i:[A-Z])\w+)?)?)\b"
)
_PLAYED = rf"(?:football|soccer|darts|snooker|bridge|{word_pattern('en', 'instrument', 'ballgame', 'game')})"
ACTIVITY = word_pattern("en", "climbing", "running", "swimming")
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
NAME = r"(?P<V>(?-i:[A-Z])[\w'.-]*(?: (?-i:[A-Z])[\w'.-]*){0,3})$"
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
UPCOMING = (
    r".*\b(?:tomorrow|tonight|(?:next|this|on|in|by|from) (?:[\w']+ ){0,2}?"
    rf"(?:{_WEEKDAY}|{_MONTH}|week(?:end)?s?|months?|days?|years?|spring|summer|autumn|fall|winter|christmas|"
    rf"easter|"
    rf"\d{{1,2}}(?:st|nd|rd|th))\b|{_MONTH} \d{{1,2}}).*"
)
_FUTURE = rf"(?P<V>{UPCOMING})$"

_PLACE = (
    r"(?P<V>(?=.*(?:(?-i:\b[A-Z])|\b(?:village|town|city|suburbs?|countryside|flat|apartment|house|farm|dorm|"
    r"studio|"
    r"caravan|cent(?:re|er)|mountains|coast|island|district|neighbou?rhood|cottage|cabin|houseboat)\b))\S.*)"
)
_NAMED_PLACE = r"(?P<V>(?-i:(?:the )?[A-Z][\w'’-]*(?:,? (?:(?:upon|on|de|la|am|an der) )?[A-Z][\w'’-]*)*)).*"
"""The name at the beginning: what follows says when, and with whom."""
# What follows "I am". The first matching frame applies.
BEING: tuple[Frame, ...] = (
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
    Frame("called", "name", shape=NAME),
    Frame("named", "name", shape=NAME),
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
DOING: tuple[Frame, ...] = (
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
    Frame("go by", "preferred_name", shape=NAME),
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
    Frame("play", "hobbies", "plays {}", over="plays {}", shape=rf"(?P<V>(?:the )?{_PLAYED})\b"),
    Frame("do", "hobbies", "does {}", over="does {}", shape=rf"(?P<V>{ACTIVITY})\b"),
    Frame(
        "go", "hobbies", "goes {}", over="goes {}", shape=rf"(?P<V>(?=\w+ing\b)(?:fishing|dancing|{ACTIVITY}))\b"
    ),
    Frame(
        "sing",
        "hobbies",
        "sings {}",
        over="sings {}",
        shape=r"(?P<V>in (?:an?|the|my) (?:[\w-]+ ){0,3}(?:choir|band|chorus))\b",
    ),
    Frame(
        "",
        "pets",
        "has {}",
        past="has {}",
        shape=rf"(?:adopted|got) {_PETS}",
    ),
    Frame("", "pets", "has {}", shape=rf"(?:have|own|keep) {_PETS}"),
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
LIKING = {
    "like": "likes", "love": "loves", "enjoy": "enjoys", "adore": "loves", "prefer": "prefers", "hate": "hates",
    "detest": "hates", "dislike": "dislikes", "loathe": "hates",
}  # fmt: skip
# What follows "my": the noun, and the field with its text.
OWNED: tuple[tuple[str, str, str], ...] = (
    (r"(?:first |full |real |given )?name is (?!not)" + NAME, "name", "{}"),
    (r"(?:nickname is|(?:friends|family|colleagues|parents) (?:all )?call me) " + NAME, "preferred_name", "{}"),
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
    (rf"(?P<what>{_PET})(?:'s name is|,? is (?:called|named)) {NAME}", "pets", "{what} is called {}"),
    (rf"(?P<what>{_KIN})(?:'s name is| is (?:called|named)) {NAME}", "family", "{what} is called {}"),
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
