"""Clauses that announce what somebody wrote, or that order work on a text beside them. Pure functions."""

import re

_WORK = (
    r"\b(?:translate|proofread|rephrase|paraphrase|rewrite|reword|polish|shorten|simplify|summari[sz]e|summary|"
    r"spell-?check|explain|(?:any|spot|find|the) (?:mistakes|errors)|tl;?dr|gist|key points|plain words|"
    r"correct english|make sense of|answer|reply|respond|think of|make of)\b|"
    r"翻译|翻成|译成|改写|改得|改成|改短|润色|校对|缩写|缩短|扩写|精简|简化|总结|概括|归纳|摘要|整理|念给|读给|解释|"
    r"太长不看|大意|要点|什么意思|怎么[回说写讲]|语气|通顺|行不行|简单些"
)
_ON_WORDING = r"\b(?:grammar|spelling|wording|typos?)\b|错别?字|语病|措辞|语法"
_POINTS = (
    r"\bth(?:is|ese)\b|\bthe following\b|\bbelow\b|\babove\b|\bbeneath\b|\bunderneath\b|\bas follows\b|"
    r"以下|下面|下列|如下|上面|以上|上文|上述|这一?[段句封条篇则页份张]|这[么样]写|这是"
)
_TEXT = (
    r"e-?mails?|mails?|messages?|sms|letters?|articles?|documents?|pages?|posts?|posters?|reviews?|notices?|"
    r"notes? from|web ?sites?|intranet|newsletters?|headlines?|leaflets?|flyers?|signs?|captions?|comments?|"
    r"ocr|transcripts?|screenshots?|prompts?|cards?|recipes?|forums?|mailbox|clause|paragraph|manual|handbook|"
    r"邮件|短信|微信|来信|文章|文档|文件|网页|网站|网上|帖子|评论|通知|公告|告示|传单|留言|截图|截屏|转写|语音转文字|"
    r"识别结果|说明书|手册|提示词|菜谱|论坛|信箱|卡片|消息|[贴留]了?[张个]条|第[一二三四五六七八九十\d]{1,4}[条款章节页段]"
)
_WROTE = (
    r"\b(?:wrote|writes|texted|messaged|e-?mailed|posted|tweeted|forwarded|pasted|copied|says|saying|"
    r"reads|states|replied|sent|handed me)\b|"
    r"写道|寫道|写着|写的|来信说?|发来|转来|转发|抄的|抄来|复制|粘贴|(?:短信|消息|微信|邮件|留言)说|收到"
)
_OWN = re.compile(
    r"\W{0,4}(?:and |so |also |one more thing|note to (?:my)?self|(?:my|our) (?:\w{1,20} ){0,2}?(?:e-?mail|"
    r"wish|note|address)s?\b(?! from)|(?:i|we) (?:\w{1,12} ){0,2}?(?:told|tell|said)|.{0,40}tell you\Z|"
    r"我的(?:邮箱|邮件|要求|地址)|.{0,20}[跟和向同]你说)",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"\b(?:the following|below|above)\b.{0,40}\b(?:sentence|text|paragraph|correct|right)\b|[这句话]对[吗不]"
    rf"|把?这个.{{0,6}}(?:翻|译|润色|改写|总结|校对)|(?:{_WORK}).{{0,60}}?(?:{_POINTS})|(?:{_POINTS}).{{0,60}}?(?:{_WORK})|{_ON_WORDING}",
    re.IGNORECASE,
)
_POLITE = r"(?:please|pls|can you|could you|now|just|ok(?:ay)?|and|[<,，\s—–-]|请|麻烦|帮我|帮忙|给我|你){0,6}"
_WORK_ORDER = re.compile(rf"{_POLITE}(?:{_WORK})", re.IGNORECASE)
_BARE_WORK = re.compile(
    rf"{_POLITE}(?:{_WORK})"
    r"(?:\b(?:in|into|to|as|for|me|it|this|please|pls|thanks|thx|[a-z]{4,9})\b|[,，\s]|一下|下|成|给我|吧|呗|嘛|[英法德日中]文)"
    r"{0,10}|does (?:that|this|it) (?:look|sound) (?:right|ok|odd)|这样对吗|"
    r"[英法德日中]文怎么说|要[理回]吗|怎么回",
    re.IGNORECASE,
)
"""A last clause that is only an order for work, so that it can only mean the text before it."""
_ANNOUNCES = re.compile(rf"{_WROTE}|(?:{_TEXT})(?![a-z])|(?:{_POINTS}).{{0,20}}\Z", re.IGNORECASE)
_POINTS_AT_ITS_END = re.compile(rf"(?:{_POINTS}).{{0,20}}\Z", re.IGNORECASE)
_TO_MEMORY = re.compile(
    r"\b(?:remember|keep in mind|bear in mind|don't forget|note this|my (?:wish|request)s?)\b"
    r"|记住|记得|记下|记一下|别忘",
    re.IGNORECASE,
)


def orders_work(clause: str, *, alone: bool) -> bool:
    """Return whether a clause orders work on a text beside it; with `alone`, the clause ends the message."""
    if _TO_MEMORY.search(clause):
        return False
    return _ORDERS.search(clause) is not None or (alone and _BARE_WORK.fullmatch(clause) is not None)


def announces_text(clause: str, *, below: bool) -> bool:
    """Return whether a clause before a colon or an arrow announces what somebody wrote; with `below`, on the next
    line."""
    if _TO_MEMORY.search(clause) or _OWN.match(clause):
        return False
    if _WORK_ORDER.match(clause):
        return True
    found = _ANNOUNCES.search(clause)
    return found is not None and (below or not _POINTS_AT_ITS_END.search(clause) or bool(re.search(_TEXT, clause)))
