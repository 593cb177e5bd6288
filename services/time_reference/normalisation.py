"""A message made ready for rules: as long as before, place for place, but with one way to write each thing.

Traditional characters become simplified ones, full-width letters plain ones, curly apostrophes straight ones.
What is quoted, or is code, is blotted out. So a place in the result is the same place in the message.
"""

import re

QUOTED = "\ue000"
"""Stands for every character of a quotation, a title or code."""
DAYS, LAST_VISIT, LAST_TALK, JUST_NOW, RECENT = "\ue001", "\ue002", "\ue003", "\ue004", "\ue005"
"""Stand for every character of words that name days, the last visit, the talk at it, a moment ago, lately."""
TIME = f"[{DAYS}{LAST_VISIT}{LAST_TALK}{JUST_NOW}{RECENT}]"

_LONGEST = 500
"""Characters of a message that are looked at whole; of a longer one its beginning and its end are."""
_END = 250

_TRADITIONAL = (
    "們我聊麼什說過記還錄總結話題對問個討論誰嗎給幫請講談當晚後週個訴應諾釋紹報買體詳細幾點價錢號碼電話項目進"
    "復習歸納顧繼續這會兒剛纔從處樣為與發約定決換寫議見時間沒關於現實認識備內容選單據誤網頁圖書館餐廳開聽讀聲"
    "來著東裡裏倆讓學傳訊鐘種歲該誇罵勸舉譯唸託煩錯標題劃練習證師試驗級輪轉複簡單結語臺歡樂舊薦夢診樓訂畫戲難"
)
_SIMPLIFIED = (
    "们我聊么什说过记还录总结话题对问个讨论谁吗给帮请讲谈当晚后周个诉应诺释绍报买体详细几点价钱号码电话项目进"
    "复习归纳顾继续这会儿刚才从处样为与发约定决换写议见时间没关于现实认识备内容选单据误网页图书馆餐厅开听读声"
    "来着东里里俩让学传讯钟种岁该夸骂劝举译念托烦错标题划练习证师试验级轮转复简单结语台欢乐旧荐梦诊楼订画戏难"
)
_FOLD = {
    **{ord(old): new for old, new in zip(_TRADITIONAL, _SIMPLIFIED, strict=True)},
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, f"\u3000\u00a0\t\r{QUOTED}{DAYS}{LAST_VISIT}{LAST_TALK}{JUST_NOW}{RECENT}"), " "),
    **dict.fromkeys(map(ord, "’‘`´"), "'"),
    **{ord("您"): "你", ord("妳"): "你", ord("喺"): "在", ord("､"): ","},
}
_QUOTATION = re.compile(
    r"```.*?(?:```|$)|“[^“”\n]*”|\"[^\"\n]*\"|「[^「」\n]*」|『[^『』\n]*』|《[^《》\n]*》|(?<![a-z0-9])'[^'\n]{3,}'(?![a-z0-9])"
    r"|^[^\S\n]*>[^\n]*",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?。！？;；\n]")


def bounded(message: str) -> str:
    """The message, or of a long one its first and its last whole sentences."""
    if len(message) <= _LONGEST:
        return message
    head, tail = message[:_END], message[-_END:]
    ends = [match.end() for match in _SENTENCE_END.finditer(head)]
    begins = _SENTENCE_END.search(tail)
    return (head[: ends[-1]] if ends else "") + "\n" + (tail[begins.end() :] if begins else "")


def folded(text: str) -> str:
    """The text with one way to write each thing, in lower and upper case as before."""
    plain = text.translate(_FOLD) if "`" not in text else _without_code(text).translate(_FOLD)
    return _QUOTATION.sub(lambda found: QUOTED * len(found[0]), plain)


def lowered(text: str) -> str:
    """In lower case, place for place: the few letters that would become two are left."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


def _without_code(text: str) -> str:
    return re.sub(r"```.*?(?:```|$)|`[^`\n]*`", lambda found: " " * len(found[0]), text, flags=re.DOTALL)
