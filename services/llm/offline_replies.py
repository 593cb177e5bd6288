"""Replies of the built-in offline model: it quotes, lists what is remembered, and says what it cannot do."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from services.llm.offline_prompt import OfflinePrompt
from services.text.language import Language, language_of
from services.text.lexical import stems
from services.text.questions import asks, asks_to_be_told, is_about_oneself, is_small_talk, states_something
from services.text.tokenizer import simplified

_QUOTES = 2
_MOST_LISTED = 12
_ABOUT_THE_USER = re.compile(
    r"\b(?:know|remember|learned|learnt|stored)\b.{0,20} (?:about|on) me\b(?: so far|,? please)?\W*$"
    r"|\bwho am i\W*$|\b(?:know|remember) me\W*$|\bin your memory\W*$"
    r"|(?:知道|了解|记得)我(?:些|的情况|哪些)?(?:什么|多少|事情?|吗)?(?:事情?|吗|呀|呢)?\W*$"
    r"|对我(?:的了解|了解多少)\W*$|关于我\W|我是谁\W*$",
    re.IGNORECASE,
)

_TEXTS: dict[Language, dict[str, str]] = {
    "zh": {
        "quote": "（内置离线模型，只会引用已有的内容）最相关的是：{quotes}",
        "tool": "（内置离线模型）工具的结果：{quotes}",
        "nothing": "（内置离线模型，只会引用已有的内容；要更多请设置 ANAMNESIS_LLM_MODEL）"
        "在我看到的内容里没有找到相关的信息。",
        "noted": "（内置离线模型：没有接入大模型，请设置 ANAMNESIS_LLM_MODEL。）收到，已记在这段对话里。",
        "changed": "（内置离线模型）{changes}",
        "known": "（内置离线模型）关于你，我记得：\n{facts}",
        "stranger": "（内置离线模型）我还不知道关于你的事。说些什么吧，以后的对话里我会记得。",
        "small talk": "我是内置离线模型：能记住你说的话，并在你问起时引用。"
        "要真正对话，请设置 ANAMNESIS_LLM_MODEL。",
        "related": "与此有关的内容：{quotes}",
        "mark": "「{}」",
    },
    "en": {
        "quote": "(Built-in offline model: I can only quote what I was given.) The closest I have: {quotes}",
        "tool": "(Built-in offline model.) The tool says: {quotes}",
        "nothing": "(Built-in offline model: I can only quote what I was given; for more, set "
        "ANAMNESIS_LLM_MODEL.) I found nothing about that.",
        "noted": "(Built-in offline model: no language model is configured, set ANAMNESIS_LLM_MODEL.) Noted; it "
        "is stored in this conversation.",
        "changed": "(Built-in offline model.) {changes}",
        "known": "(Built-in offline model.) This is what I remember about you:\n{facts}",
        "stranger": "(Built-in offline model.) I know nothing about you yet. Tell me something, and I will "
        "remember it in later conversations.",
        "small talk": "I am the built-in offline model: I remember what you tell me and quote it when you "
        "ask. For real conversations set ANAMNESIS_LLM_MODEL.",
        "related": "What I have on it: {quotes}",
        "mark": "“{}”",
    },
}


def reply_to(prompt: OfflinePrompt) -> str:
    """Return the answer to a prompt."""
    language = language_of([prompt.question])
    texts = _TEXTS[language]
    if prompt.results:
        return texts["tool"].format(quotes=_quoted([*prompt.days[:_QUOTES], *prompt.results], texts))
    question = simplified(prompt.question.strip())
    asked = asks(question, language) or asks_to_be_told(question.lower())
    quotes = _closest(prompt.question, prompt.sentences, language) if asked else []
    if prompt.changes:
        also = [texts["related"].format(quotes=_quoted(quotes, texts))] if quotes else []
        return " ".join([texts["changed"].format(changes=" ".join(prompt.changes)), *also])
    if _ABOUT_THE_USER.search(question):
        said = [text for text in (*prompt.recalled, *prompt.said) if states_something(text)]
        return _listed([*prompt.facts, *said], texts)
    if not asked:
        return texts["small talk" if is_small_talk(question) else "noted"]
    quotes = quotes or list(prompt.days[:_QUOTES])
    if not quotes and prompt.facts and is_about_oneself(question, language):
        return _listed(prompt.facts, texts)
    return texts["quote"].format(quotes=_quoted(quotes, texts)) if quotes else texts["nothing"]


def _closest(question: str, sentences: Sequence[str], language: Language) -> list[str]:
    """The sentences that share the rarest words with a question."""
    told = [sentence for sentence in sentences if not asks(sentence, language)]
    seen = Counter(word for sentence in told for word in set(stems(sentence)))
    wanted = set(stems(question))

    def score(sentence: str) -> float:
        return sum(math.log(1 + len(told) / seen[word]) for word in wanted & set(stems(sentence)))

    scored = [(score(sentence), index, sentence) for index, sentence in enumerate(told)]
    best = sorted((row for row in scored if row[0] > 0), key=lambda row: (-row[0], -row[1]))[:_QUOTES]
    return [row[2] for row in best if row[0] >= best[0][0] / 2]


def _listed(known: Sequence[str], texts: dict[str, str]) -> str:
    facts = "\n".join(f"- {fact}" for fact in list(dict.fromkeys(known))[:_MOST_LISTED])
    return texts["known"].format(facts=facts) if facts else texts["stranger"]


def _quoted(quotes: Sequence[str], texts: dict[str, str]) -> str:
    return " ".join(texts["mark"].format(quote) for quote in quotes)
