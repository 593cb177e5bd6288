"""Whether a message says anything, or only asks, orders and acknowledges; and requests for work.

After "Translate …", "What is …" or 写一篇… follows a task and its material.
"""

import re

from services.text.caches import text_cache
from services.text.language import language_of
from services.text.questions import asks, is_small_talk
from services.text.sentences import SEMICOLONS, sentences
from services.text.tokenizer import simplified_text

_ENGLISH_VERBS = (
    "add analy[sz]e answer arrange assume brainstorm build calculate categori[sz]e change check choose classify "
    "combine come_up_with compare complete compose compute construct continue convert correct create decide "
    "define describe design detect determine develop discuss draft edit estimate evaluate examine expand explain "
    "extract fill_in find fix format generate give given group identify imagine implement improve in_this_task "
    "list make match mention name order organi[sz]e outline paraphrase perform plan pretend proofread propose "
    "provide rank rate read recommend refactor rephrase replace respond rewrite select show simplify solve sort "
    "state suggest summari[sz]e tell_me tell_if tell_whether translate turn use verify write "
)
"""Beginnings of orders; a _ stands for a space."""
_CHINESE_VERBS = (
    "写 撰写 编写 起草 翻译 改写 重写 润色 续写 仿写 总结 概括 归纳 列出 列举 解释 说明 "
    "描述 介绍 讲讲 讲解 分析 比较 对比 计算 判断 评价 评估 给出 提供 生成 创建 创作 设计 "
    "制定 提取 找出 选出 选择 回答 证明 推荐 扮演 分类 排序 补充 修改 纠正 检查 查找 告诉我 "
    "谈谈 举例 造句 填空 推断 推理 阐述 论述 指出 简述 识别 确定 实现 转换 标注 预测 查一下 "
    "查下 搜一下 搜下 "
)
_POLITE_ENGLISH = r"\W{0,40}(?:(?:please|can you|could you|would you|now|then|also|and|ok|hi|hello|hey)\W+)*"
_POLITE_CHINESE = (
    r"\W{0,40}(?:[你您]好\W*)?"
    r"(?:(?:请问|请|麻烦你?|帮我|帮忙|你?能不能|你?能否|可以|给我|现在|然后|接下来|再|并)\W*)*"
)
_ORDER = re.compile(
    rf"\A(?:{_POLITE_ENGLISH}(?:{'|'.join(_ENGLISH_VERBS.split()).replace('_', ' ')})\b"
    rf"|{_POLITE_CHINESE}(?:根据|基于|针对|按照|关于|通过|作为|假设|想象|给定|已知|设|阅读|参考|结合"
    r"|(?:[把将用以按从在对为向就].{1,40}?|给[^,，。]{1,12}?|重新|详细|简要|简单|分别|逐步|一步步)?"
    rf"(?:{'|'.join(_CHINESE_VERBS.split())})(?![了过])))"
)
_QUESTION = re.compile(
    rf"\A(?:{_POLITE_ENGLISH}(?:(?:what|which|who|whose|when|where)"
    r"(?:'s| (?:is|are|was|were|does|do|did|can|could|would|will|should|kind|type|makes?|causes?))"
    r"|how (?:to|do|does|did|can|could|many|much|long|far|often|old|should)"
    r"|why (?:is|are|do|does|did|was|were)|is there|are there)\b"
    rf"|{_POLITE_CHINESE}(?:什么是|什么叫|何为|为什么|为何|如何|怎样|怎么才能|哪[些个位家种里年]|多少"
    r"|几[个种年月点]|谁[是在的]|是否|有没有|有哪些))"
)
_QUESTION_AT_ITS_END = re.compile(
    r"(?:是什么|是谁|有哪些|有什么(?!用)|是多少|的区别|的原因|的含义|的意思|的作用|的方法|什么意思"
    r"|怎么[读写念拼说做用治选买煮洗]|几画|[反近同]义词|造句|成语|作者|导演|歌词|哪[些个位家种里年]|多少|是否"
    r"|还是.{1,20})[吗呢?？。]*\s*$"
)
_TELL = re.compile(
    rf"\A(?:{_POLITE_ENGLISH}"
    r"(?:(?:tell|remind|show|read) (?:me|us)|(?:list|explain|describe|look up|summari[sz]e|recap)\b)"
    rf"|{_POLITE_CHINESE}(?:再|把.{{1,20}}?)?(?:跟我|给我|对我)?"
    r"(?:告诉我|提醒我一?下|说说|说一下|讲讲|讲一下|念|列出|列一下|查一?下|查查|看一?下|看看|总结|解释))"
)


def asks_for_work(sentence: str) -> bool:
    """Tell whether a folded sentence begins as an order for work."""
    return _ORDER.match(sentence) is not None


def asks_to_be_told(sentence: str) -> bool:
    """Tell whether a folded sentence asks for something that is known or written, and so states nothing."""
    forms = (_TELL.match, _QUESTION.match, _QUESTION_AT_ITS_END.search)
    return any(form(sentence) for form in forms)


_MOST_CHARACTERS = 2_000
_SHORT, _KEPT = 500, 2_000
"""Characters of texts of which it is kept, and their number: turns recall the same ones."""


def states_something(text: str) -> bool:
    """Whether a sentence of a message states something."""
    return (_kept if len(text) <= _SHORT else _states_something)(text)


def _states_something(text: str) -> bool:
    language = language_of([text])
    for sentence in sentences(text[:_MOST_CHARACTERS], SEMICOLONS):
        said = sentence.text.strip()
        if not said or is_small_talk(said) or asks(said, language):
            continue
        folded = simplified_text(said).replace("’", "'")
        if not asks_for_work(folded) and not asks_to_be_told(folded):
            return True
    return False


_kept = text_cache(_KEPT)(_states_something)
