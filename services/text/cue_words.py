"""Words by which rules recognise kinds of messages. They are plain lists: adding a word improves a language."""

from services.text.language import Language

_Cues = dict[Language, frozenset[str]]


def _cues(english: str, chinese: str) -> _Cues:
    return {"en": frozenset(english.split()), "zh": frozenset(chinese.split())}


REFERS_BACK = _cues(
    """
it its he him his she her hers they them their that those this these there then one ones earlier before
previously mentioned said told again former latter same too also
""",
    """
刚才 刚刚 那个 那家 那部 那本 那位 那次 那件 那里 那儿 那种 那些 那天 那晚 这个 这家 这部 这本 这位 这次 这件
这里 这种 这些 这样 之前 上次 前面 你说 你提 提到 说过 说的 他 她 它 同样 还有 继续 然后
""",
)
"""Words that refer to something named before."""

ASKS = _cues(
    """
what when where which who whom whose why how is are was were do does did can could will would should has have
had may tell remind
""",
    """
什么 啥 哪 谁 几 多少 多大 多久 多高 多长 怎么 怎样 如何 为何 吗 是否 是不是 有没有 来着 告诉我 提醒我
""",
)
"""Question words. An English question begins with one; a Chinese question has one anywhere."""

PLEASANTRIES = _cues(
    """
thanks thank thx cheers hello hi hey bye goodbye good great nice cool fine ok okay sure alright right yes yeah
yep yup no nope well perfect awesome amazing wonderful lovely lol haha hahaha hmm oh ah wow please sorry
welcome morning afternoon evening night see later soon tomorrow today again much very really so you i it it's
that's that is a lot the to me my all too and for got get will do don't worry no problem understood agreed
exactly indeed interesting glad hear how are how's going what's up there doing you're have meet pleased never mind
sounds sound now funny helpful kind day fantastic brilliant excellent appreciate appreciated fun
""",
    """
好的 好吧 好呀 好啊 好 嗯 嗯嗯 哦 噢 啊 呀 吧 呢 哈 哈哈 嘿 嗨 喂 谢谢 多谢 感谢 谢 你 您 您好 你好 早上好
早安 晚上好 中午好 下午好 晚安 再见 拜拜 回头见 明天见 行 可以 没问题 没事 不客气 不用谢 对 对的 是 是的 是啊
不是 知道了 明白 明白了 了解 收到 懂了 真 真的 太 太好了 很 很好 不错 棒 厉害 了 的 我 啦 嘛 最近 怎么样 怎样
在吗 吗 辛苦了 加油 当然 原来如此 没错 非常 没关系 祝 开心 愉快 快乐 有意思 有趣 好玩 随便 聊聊 周末
""",
)
"""Words of courtesy."""

WEAK_WORDS = _cues(
    """
like love want think know say said tell told good great nice day today time thing way lot really make made get
got go going went come came see look feel felt need use work happen talk mention remember recently kind part
place person people year week month new first last much many still even back name exact remind please thank
thanks sure sorry
""",
    """
喜欢 想要 需要 今天 最近 事情 东西 感觉 告诉 告诉我 记得 有点 有些 一下 一点 一起 一直 名字 叫什么 一样 特别
不过 对了 其实 比较 应该 可能 还记得 这样 那样 有什 么样 怎么样 请问 问一 一问 知不知道
""",
)
"""Words so general that two texts may share them and still have nothing in common."""
