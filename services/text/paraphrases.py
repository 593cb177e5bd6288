"""Whether two short statements say the same in other words: the same words that tell something, in a form of their
own, beside words that tell nothing. Rules, in Chinese and English.

Likeness of vectors does not tell this: “green tea” is nearer to “black tea” than most paraphrases to each other.
"""

import re

from services.text.language import Language, language_of
from services.text.tokenizer import english_words, simplified_text

_LONGEST = 200
"""Characters of a statement that is compared."""
_LEAST = 2
"""Telling words that two statements have in common at least; of Chinese, characters."""
_STEM = 5
"""Letters in which two forms of a word agree, as allergic and allergy do."""
_LIGHT_WORDS = """
a an the and of to in on at with as for into it its is are am be been being has have having own owns owned do
does this that there who which user user's i i'm i've my me mine he she they his her their him them every each
because named name called call some also very really so s since currently now still go goes going attend attends
take takes taking part get gets getting got
"""
_LIGHT = frozenset(_LIGHT_WORDS.split())
_LIGHT_CHINESE = frozenset(
    "的了在是有和与跟我用户他她它们个只位名叫也都就还很每为因所以且地得着呢吧啊哦到去里上家会症类份当担任说能常开患辆本这那"
)
_TENSES = re.compile(
    r"\b(?:used to|was|were|had|will|going to|wants?|wanted|plans?|planned|hopes?|would|could|might|almost|nearly|"
    r"formerly|no|not|never|without|only|[a-z]+n't)\b"
    r"|[不没無无未别非曾]|过(?!敏)|以前|从前|原来|将|想|打算|准备|可能|差点|几乎|只"
)
"""Words that turn what is said, or say when or whether it holds."""
_ALIKE = (
    frozenset(("like", "likes", "love", "loves", "enjoy", "enjoys")),
    frozenset(("job", "work", "works", "working", "employed")),
    frozenset(("learns", "learning", "study", "studies", "studying")),
    frozenset(("buy", "purchase", "purchases", "buys")),
    frozenset(("quit", "stopped")),
    frozenset(("begins", "starts", "begin", "start")),
    frozenset(("small", "little")),
    frozenset(("mother", "mum", "mom", "mother's", "mum's", "mom's")),
    frozenset(("father", "dad", "father's", "dad's")),
)
"""Words of one meaning."""
_ALIKE_CHINESE = (
    *(("妈妈", "母亲"), ("爸爸", "父亲"), ("太太", "妻子"), ("老婆", "妻子"), ("老公", "丈夫"), ("爱", "喜欢")),
    *(("星期", "周"), ("礼拜", "周"), ("周天", "周日"), ("早晨", "早上"), ("收藏", "收集"), ("旁边", "附近")),
)
_KIN = re.compile(
    r"\b(?:(?:grand|step)?(?:mother|father|son|daughter|parents?)|mum|mom|dad|wife|husband|partner|brother|sister|uncle|aunt|"
    r"cousin|niece|nephew|boyfriend|girlfriend|friend|boss|child|kid)s?(?:-in-law)?\b"
    r"|[爸妈爹娘]|[父母]亲|[祖外]父|祖母|[爷奶]|外[公婆]|[岳公婆][父母公婆]|妻子|太太|老婆|老公|丈夫|儿子|女儿|[哥弟姐妹]|"
    r"[叔伯舅姨姑]|表|堂|男友|女友|朋友|老板|同事|孩子",
)
"""Whom something is said of, besides the user."""
_EXCLUSIVE = (
    (re.compile(r"\b(?:his|him|he)\b|他"), re.compile(r"\b(?:her|she)\b|她")),
    (re.compile(r"\b(?:is|are|am)\b|是"), re.compile(r"\b(?:has|have|owns?)\b|有")),
)
"""Words of which one in place of the other makes a difference, as in: is a teacher, has a teacher."""
_DAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekends?|days?|mornings?|evenings?"
_MONTHS = r"january|february|march|april|may|june|july|august|september|october|november|december"
_TIMES = re.compile(
    rf"\b(?:(?:on|at|in|every|each|the) )+(?:(?:{_DAYS}) ?)*\b(?:{_DAYS}|{_MONTHS})\b"
    r"|周[末一二三四五六日]|周|每?[天早晚]上?|[上中下]午|夜里|[\d一二三四五六七八九十]{1,8}(?:年|月份?|[日号点])|明年|去年|今年"
)
"""May stand anywhere in a sentence."""


def say_the_same(one: str, other: str) -> bool:
    """Whether two statements say the same in other words; a telling word of only one makes them differ.

    Takes less than a tenth of a millisecond; of longer statements than a sentence or two it says no.
    """
    language = language_of([one])
    if max(len(one), len(other)) > _LONGEST or language != language_of([other]):
        return False
    words = [_telling(simplified_text(text), language) for text in (one, other)]
    if len(set(words[0])) < _LEAST or set(words[0]) != set(words[1]):
        return False
    return not differ_in_sense(one, other)


def differ_in_sense(one: str, other: str) -> bool:
    """Whether two statements of nearly the same words speak of other people or times, deny each other, or swap who
    or what is meant: tea over coffee, coffee over tea."""
    texts = [_usual(simplified_text(text)) for text in (one, other)]
    if any(_forms(kind, texts[0]) != _forms(kind, texts[1]) for kind in (_TENSES, _KIN)):
        return True
    if any(_only(this, that, texts) or _only(that, this, texts) for this, that in _EXCLUSIVE):
        return True
    orders = [_telling(_TIMES.sub(" ", text), language_of([one])) for text in texts]
    return _swapped(*([word for word in orders[place] if word in orders[1 - place]] for place in (0, 1)))


def differ_in_whom(one: str, other: str) -> bool:
    """Whether two statements are about other people: the user and a sister, one grandfather and the other."""
    first, second = (_forms(_KIN, _usual(simplified_text(text))) for text in (one, other))
    return first != second


def _forms(kind: re.Pattern[str], text: str) -> list[str]:
    return sorted(map(_form, kind.findall(text)))


def _only(first: re.Pattern[str], second: re.Pattern[str], texts: list[str]) -> bool:
    """Whether the first text has only words of one kind, and the second only those of the other."""
    one, other = texts
    return bool(first.search(one) and second.search(other) and not second.search(one) and not first.search(other))


def _swapped(one: list[str], other: list[str]) -> bool:
    """Whether the same words stand in another order; repetitions do not count."""
    return list(dict.fromkeys(one)) != list(dict.fromkeys(other))


def _telling(text: str, language: Language) -> list[str]:
    """The words that tell something, in order, each in one form; of Chinese the characters."""
    if language == "en":
        return [_form(word) for word in english_words(text) if word not in _LIGHT]
    return [each for each in re.findall(r"[a-z0-9]+|[^\W_]", _usual(text)) if each not in _LIGHT_CHINESE]


def _usual(text: str) -> str:
    for word, usual in _ALIKE_CHINESE:
        text = text.replace(word, usual)
    return text


def _form(word: str) -> str:
    for words in _ALIKE:
        if word in words:
            return min(words)
    word = word.removesuffix("'s")
    return (
        word
        if len(word) <= _STEM or word[0].isdigit()
        else re.sub(r"(?:ies|ing|ed|es|s|ic|y|ist|e|t|th|n)$", "", word)
    )
