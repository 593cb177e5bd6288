"""Replies of the built-in offline model: it quotes, lists what is remembered, and says what it cannot do."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from services.llm.offline_prompt import OfflinePrompt
from services.text.language import Language
from services.text.lexical import stems

Kind = Literal["about_me", "greeting", "thanks", "farewell", "request", "question", "statement"]
"""Kinds of messages that the offline model tells apart."""

_QUOTES = 2
_MOST_LISTED = 12
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_QUESTION = re.compile(
    r"[?？]|[吗嗎呢]\s*[。！]?$|什么|什麼|哪|谁|誰|几[点号岁个]|幾[點號歲個]|多少|怎么|怎麼|为什么|為什麼|是否"
    r"|^\s*(what|when|where|which|who|whose|why|how|do|does|did|is|are|can|could|will|tell me)\b",
    re.IGNORECASE,
)
_PLEASE = (
    r"^(?:(?:please|kindly|now|ok(?:ay)?|so|can you|could you|would you|will you|help me(?: to)?|i want you to"
    r"|i(?:'d| would) like you to|i need you to)[,:]?\s+)*"
)
_PATTERNS: tuple[tuple[Kind, str], ...] = (
    (
        "about_me",
        r"\bwhat (?:all |else )?(?:do|did|can|could) you (?:know|remember|recall|have (?:stored|saved|noted))"
        r"\b.{0,20}\b(?:about|of|on|regarding) (?:me|us)\b"
        r"|\b(?:everything|all|anything|what) (?:that )?you (?:know|remember|have|learned|stored)\b.{0,20}"
        r"\b(?:about|on) (?:me|us)\b"
        r"|\bwhat have you (?:learned|learnt|stored|saved|noted|remembered)\b.{0,20}\b(?:about|on) (?:me|us)\b"
        r"|^who am i\W*$|\bwhat(?:'s| is) in your memory\b|^do you (?:still )?(?:know|remember) me\W*$"
        r"|(?:你|您).{0,8}(?:知道|了解|瞭解|记得|記得|记住|記住|记录|記錄|掌握|认识|認識).{0,6}我(?:的)?"
        r"(?:些|了)?(?:什么|什麼|哪些|多少|啥|一切|情况|情況|信息|事|吗|嗎)(?:事情?|情况|信息|东西|呢|吗|嗎|了|呀|啊)*\W*$"
        r"|(?:关于|關於|对|對)我.{0,10}(?:知道|了解|瞭解|记得|記得|记住|記住|掌握).{0,4}"
        r"(?:什么|什麼|哪些|多少|啥)(?:事情?|呢|呀|啊)*\W*$"
        r"|对我的了解|對我的瞭解|^我是谁\W*$|^我是誰\W*$",
    ),
    (
        "greeting",
        r"^(?:hi|hello|hey|howdy|greetings|good (?:morning|afternoon|evening|day))\b(?:[\s,]+\w+){0,3}\W*$"
        r"|^how are you\b.{0,15}$"
        r"|^(?:你好|您好|嗨|哈喽|哈囉|早上好|早安|早啊|中午好|下午好|晚上好|在吗|在嗎|大家好)"
        r"[\u3400-\u9fff]{0,3}\W*$",
    ),
    (
        "thanks",
        r"^(?:ok(?:ay)?,? |great,? |perfect,? )?(?:thanks|thank you|thx|cheers|many thanks|much appreciated)\b"
        r"(?:[\s,]+\w+){0,6}\W*$|^(?:好的?，?|太好了，?)?(?:谢谢|謝謝|多谢|多謝|感谢|感謝|谢啦|辛苦了)"
        r"[\u3400-\u9fff]{0,6}\W*$",
    ),
    (
        "farewell",
        r"^(?:bye|goodbye|see you|see ya|good night|talk to you later|until tomorrow)\b(?:[\s,]+\w+){0,3}\W*$"
        r"|^(?:再见|再見|拜拜|晚安|回头见|明天见|下次聊|先这样)[\u3400-\u9fff]{0,3}\W*$",
    ),
    (
        "request",
        _PLEASE + r"(?:write|translate|draft|compose|summari[sz]e|explain|calculate|compute|plan|suggest"
        r"|recommend|give me|make (?:me )?(?:a|an)|create|generate|list|rewrite|rephrase|proofread|correct|"
        r"compare|analy[sz]e|design|find me|look up|book|order|send|call|remind me to|set (?:a|an)|play|draw"
        r"|help me|teach me|show me|tell me (?:a|an))\b"
        r"|^(?:请|請|麻烦|麻煩|你|您|能不能|可以|能|现在|再)*(?:帮我|幫我|帮忙|给我|給我|替我|为我)?"
        r"(?:写|寫|翻译|翻譯|起草|总结|總結|概括|解释|解釋|画|畫|计算|推荐|推薦|规划|規劃|安排|生成|润色|改写"
        r"|列出|编|设计|設計|分析|比较|讲(?:个|一)|說(?:个|一)|提醒|预订|订|播放|教我)"
        r"|^(?:请|請|麻烦|麻煩|你|您|能不能|可以|能)*(?:帮我|幫我|给我|給我|替我)",
    ),
    ("question", _QUESTION.pattern),
)
_KINDS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _PATTERNS)

_OF_USER = re.compile(r"\b(?:i|me|my|mine|i'm|am i)\b|我", re.IGNORECASE)
_LABELS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(asked, re.IGNORECASE), re.compile(label, re.IGNORECASE))
    for asked, label in (
        (
            r"\bname\b|\bcall(?:ed)? me\b|叫什么|叫什麼|名字|称呼|稱呼",
            r"^(?:name|preferred name|nickname|称呼|姓名|昵称)",
        ),
        (r"\bwhere\b.*\blive|\bhome\b|\baddress\b|住|我家", r"^(?:home|liv|住)"),
        (r"\bwork\b|\bjob\b|\bliving\b|\bprofession|工作|上班|职业|公司", r"^(?:work|job|profession|工作|职业)"),
        (
            r"\beat|\bfood|\bdrink|\bcook|\bmeal|\bdish|\bdiet|\brestaurant|吃|喝|菜|餐|口味|饮食",
            r"^(?:diet|allerg|food|preferences?|饮食|过敏|偏好)",
        ),
        (r"\ballerg|\bhealth|\bill\b|\bmedic|过敏|過敏|健康|病|药", r"^(?:allerg|health|medic|过敏|健康)"),
        (
            r"\bfamily|\bchild|\bkids?\b|\bson\b|\bdaughter|\bwife|\bhusband|\bpartner|\bmother|\bfather|家人|孩子"
            r"|儿子|女儿|老婆|妻子|老公|丈夫|爸|妈",
            r"^(?:family|people|家人|身边的人)",
        ),
        (r"\bpets?\b|\bdog|\bcat\b|宠物|狗|猫", r"^(?:pets?|宠物)"),
        (r"\bhobb|\bfree time|\bfor fun|爱好|兴趣|空闲", r"^(?:hobb|habit|preferences?|爱好|习惯|偏好)"),
        (r"\bplan|\bupcoming|\bnext\b|计划|打算|安排", r"^(?:plan|current|dates?|goals?|计划|目前打算|日期)"),
        (r"\bbirthday|\bborn\b|生日|出生", r"^(?:birthday|dates?|生日|日期)"),
        (r"\bold\b|\bage\b|几岁|多大|年龄", r"^(?:age|年龄)"),
        (
            r"\blikes?\b|\blove|\bprefer|\bfavou?rite|\bhate|\benjoy|喜欢|喜歡|爱|偏好|讨厌",
            r"^(?:preferences?|likes?|loves?|hobb|diet|偏好|爱好|饮食)",
        ),
    )
)
"""Labels of the facts that answer a question, by its words."""

_TEXTS: dict[Language, dict[str, str]] = {
    "zh": {
        "quote": "（内置离线模型，只会引用已有的内容）最相关的是：{quotes}",
        "tool": "（内置离线模型）工具的结果：{quotes}",
        "nothing": "（内置离线模型，只会引用已有的内容）在我看到的内容里没有找到相关的信息。",
        "noted": "（内置离线模型，没有接入大模型）收到，已记在这段对话里。",
        "changed": "（内置离线模型）{changes}",
        "about_me": "（内置离线模型）关于你，我记得：\n{facts}",
        "stranger": "（内置离线模型）我还不知道关于你的事。说些什么吧，以后的对话里我会记得。",
        "greeting": "你好{name}！我是内置离线模型：能记住你说的话，并在你问起时引用。"
        "要真正对话，请设置 ANAMNESIS_LLM_MODEL。",
        "thanks": "不客气！",
        "farewell": "再见{name}！你说过的我都记着。",
        "request": "（内置离线模型）这件事我做不了：没有接入大模型，请设置 ANAMNESIS_LLM_MODEL。"
        "你的话已记在这段对话里。",
        "related": "与此有关的内容：{quotes}",
        "mark": "「{}」",
        "name": "，{}",
    },
    "en": {
        "quote": "(Built-in offline model: I can only quote what I was given.) The closest I have: {quotes}",
        "tool": "(Built-in offline model.) The tool says: {quotes}",
        "nothing": "(Built-in offline model: I can only quote what I was given.) I found nothing about that.",
        "noted": "(Built-in offline model: no language model is configured.) Noted; it is stored in this "
        "conversation.",
        "changed": "(Built-in offline model.) {changes}",
        "about_me": "(Built-in offline model.) This is what I remember about you:\n{facts}",
        "stranger": "(Built-in offline model.) I know nothing about you yet. Tell me something, and I will "
        "remember it in later conversations.",
        "greeting": "Hello{name}! I am the built-in offline model: I remember what you tell me and quote it when "
        "you ask. For real conversations set ANAMNESIS_LLM_MODEL.",
        "thanks": "You're welcome!",
        "farewell": "Goodbye{name}! I will remember what you told me.",
        "request": "(Built-in offline model.) I cannot do that: no language model is configured, set "
        "ANAMNESIS_LLM_MODEL. Your message is stored in this conversation.",
        "related": "What I have on it: {quotes}",
        "mark": "“{}”",
        "name": ", {}",
    },
}
_NAME = re.compile(
    r"^(?:preferred name|name|nickname|称呼|昵称|姓名)\s*[:：]\s*([^(（;；,，]{1,40})", re.IGNORECASE
)


def reply_to(prompt: OfflinePrompt) -> str:
    """Return the answer to a prompt if no tool is called."""
    language: Language = "zh" if _CHINESE.search(prompt.question) else "en"
    texts = _TEXTS[language]
    if prompt.results:
        return texts["tool"].format(quotes=_quoted([*prompt.days[:_QUOTES], *prompt.results], texts))
    kind = kind_of(prompt.question)
    if prompt.changes:
        answers = _quoted(closest(prompt), texts)
        also = [texts["related"].format(quotes=answers)] if answers else []
        return " ".join([texts["changed"].format(changes=" ".join(prompt.changes)), *also])
    match kind:
        case "about_me":
            known = list(dict.fromkeys([*prompt.facts, *_statements(prompt.recalled), *_statements(prompt.said)]))
            facts = "\n".join(f"- {fact}" for fact in known[:_MOST_LISTED])
            reply = texts["about_me"].format(facts=facts) if known else texts["stranger"]
        case "greeting" | "farewell":
            reply = texts[kind].format(name=_named(prompt.facts, texts))
        case "question":
            quotes = closest(prompt) or prompt.days[:_QUOTES]
            reply = texts["quote"].format(quotes=_quoted(quotes, texts)) if quotes else texts["nothing"]
        case "request":
            related = _quoted(_best_sentences(prompt.question, prompt.sentences), texts)
            reply = " ".join([texts["request"], *([texts["related"].format(quotes=related)] if related else [])])
        case "thanks":
            reply = texts["thanks"]
        case "statement":
            reply = texts["noted"]
    return reply


def kind_of(message: str) -> Kind:
    """What the message is."""
    return next((kind for kind, pattern in _KINDS if pattern.search(message.strip())), "statement")


def closest(prompt: OfflinePrompt) -> Sequence[str]:
    """Return the sentences closest to a question: by its words, or by the labels of facts; none for others."""
    if not _QUESTION.search(prompt.question):
        return []
    return _best_sentences(prompt.question, prompt.sentences) or _labelled(prompt.question, prompt.facts)


def _best_sentences(question: str, sentences: Sequence[str]) -> list[str]:
    """The sentences that share the rarest words with a question."""
    told = [sentence for sentence in sentences if not _QUESTION.search(sentence)]
    seen = Counter(word for sentence in told for word in set(stems(sentence)))
    wanted = set(stems(question))

    def score(sentence: str) -> float:
        return sum(math.log(1 + len(told) / seen[word]) for word in wanted & set(stems(sentence)))

    scored = [(score(sentence), index, sentence) for index, sentence in enumerate(told)]
    best = sorted((row for row in scored if row[0] > 0), key=lambda row: (-row[0], -row[1]))[:_QUOTES]
    return [row[2] for row in best if row[0] >= best[0][0] / 2]


def _labelled(question: str, facts: Sequence[str]) -> list[str]:
    if not _OF_USER.search(question):
        return []
    labels = [label for asked, label in _LABELS if asked.search(question)]
    return [fact for fact in facts if any(label.search(fact) for label in labels)][:_QUOTES]


def _statements(texts: Sequence[str]) -> list[str]:
    return [text for text in texts if kind_of(text) == "statement"]


def _named(facts: Sequence[str], texts: dict[str, str]) -> str:
    names = [found[1].strip() for fact in facts if (found := _NAME.match(fact))]
    return texts["name"].format(names[0]) if names else ""


def _quoted(quotes: Sequence[str], texts: dict[str, str]) -> str:
    return " ".join(texts["mark"].format(quote) for quote in quotes)
