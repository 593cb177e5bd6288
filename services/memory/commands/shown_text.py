"""Finds what a message shows rather than says: text that is quoted, forwarded or pasted, or is to be worked on.

Marks and introductions tell it. Text without a closing mark goes on to the end of the message, because its author
may have chosen how it continues. What the user says themselves may also stand after a colon: it is shown text only
if something announces it, or if it asks something of memory and the words before it are nobody's own wish.
"""

import re
import sys
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from services.text.sentences import Span

_READ = 8_000
"""Characters of a message in which introductions are looked for."""
_LONGEST_QUOTATION = 4_000
_LONG_QUOTATION, _LONG_CHINESE = 40, 14
"""Characters, or Chinese ones, from which on a quotation is a text."""
_JUDGED = 200
"""Characters before a mark that say whether they introduce something."""
_WORDS_BEFORE_DASH = 3
_SHORTEST_PASTED = 40
"""Characters of a text that an afterword points back to."""

_MARKED = re.compile(
    r"^[ \t]*>.*(?:\n[ \t]*>.*)*"  # quoted lines
    r"|(?P<fence>```|\"\"\")[\s\S]*?(?:(?P=fence)|\Z)"
    r"|<(?P<tag>[a-z㐀-鿿][\w-]{1,30})\b[^<>\n]{0,200}>[\s\S]*?(?:</(?P=tag)>|\Z)",
    re.MULTILINE | re.IGNORECASE,
)
"""Quoted lines, code and elements."""
_LONG = f"{{6,{_LONGEST_QUOTATION}}}"
_QUOTED = re.compile(
    rf"“(?P<double>[^“”]{_LONG})”|‘(?P<curly>[^‘’]{_LONG})’"
    rf"|「(?P<corner>[^「」]{_LONG})」|『(?P<white>[^『』]{_LONG})』"
    rf"|\"(?P<straight>[^\"]{_LONG})\"|(?<!\w)'(?P<single>(?:[^'\n]|(?<=\w)'(?=\w)){_LONG})'(?!\w)"
    rf"|(?<!`)`(?P<code>[^`\n]{_LONG})`(?!`)"
)
_CHINESE = re.compile(r"[㐀-鿿]")
_HEADER = (
    r"(?:from|to|cc|sent|date|subject|reply-to|发件人|寄件人|寄件者|收件人|收件者|主题|主旨|日期|发送时间|抄送)"
    r"[ \t]*[:：]"
)
_BORDER = re.compile(
    rf"^[ \t]*{_HEADER}.*\n[ \t]*{_HEADER}"
    r"|^[ \t]*(?:fwd?|fw|forwarded|转发)[^\n:：]{0,30}[:：]"
    r"|^[ \t]*(?:[-*=_~#]{3,}|[—–]{2,})[^\n]*$"
    r"|^[ \t]*(?:dear (?!assistant\b)|(?:尊敬|亲爱|敬爱)的(?!助手))[^\n,，:：]{1,40}[,，:：][ \t]*\n"
    r"|^\[[^\]\n]{1,40}\d:\d\d[^\]\n]{0,20}\]"
    r"|^(?:on|am|在|于)[ \t]?[^\n]{0,60}\d[^\n]{0,60}(?:wrote|schrieb|写道|寫道)[ \t]*[:：][ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
"""A line from which on the message is somebody's text: the header of a mail, a mark of forwarding, a ruled line,
the salutation of a letter, a line of a chat, who wrote and when."""
_CLOCK = r"\d{1,2}[:：]\d\d(?:[:：]\d\d)?(?:[ \t]?[ap]\.?m\b\.?)?"
_STAMP = re.compile(
    r"^(?=\S)(?:[^\n,，。!?！？;；]{1,30}?(?:,|[ \t]{1,4}[—–-])?[ \t]{1,4}"
    rf"(?:today|yesterday|今天|昨天)?(?:[ \t]at)?[ \t]{{0,4}}{_CLOCK}"
    rf"|\d{{4}}[/.-]\d{{1,2}}[/.-]\d{{1,2}}[ \t]{{1,4}}{_CLOCK}[ \t]{{1,4}}\S{{1,20}})[ \t]*\n(?=[ \t]*\S)",
    re.MULTILINE | re.IGNORECASE,
)
"""A line of who and when, as programs write it above each message of a chat."""
_CLAUSE = re.compile(
    r"(?P<text>(?>(?:[^\n.!?。！？;；:：—=<>→⇒←⇐-]|<(?![-=])|>(?!>)"
    r"|[:：](?=\d|//)|;(?=\w)|=(?!>)|(?<! )-(?!>)|-(?![ >]))*))"
    r"(?P<mark>(?:[\n.!?。！？;；:：—→⇒←⇐\- ]|[-=]+>|>>|<[-=]+|\^ )*)"
)
"""Words, and the mark after them. A clock time and an address have colons of another kind."""
_LEADS_BACK = re.compile(r"[ \t]*(?:<[-=]+|←|⇐|\^|——|(?<=[ \t])[-–—])[ \t]*\Z")
_ARROWS = ("→", "⇒", "->", "=>", ">>")

_LETTERS = (
    r"(?:e-?mails?|mails?|messages?|letters?|articles?|texts?|documents?|pages?|posts?|reviews?|notices?|notes?|"
    r"web ?sites?|newsletters?|subject lines?|headlines?|leaflets?|flyers?|signs?|captions?|comments?|"
    r"邮件|消息|短信|信|文章|文档|文件|网页|网站|网上|帖子|评论|通知|公告|说明|原文|内容|标题|传单|留言)"
)
"""Nouns for a text that somebody wrote."""
_WROTE = (
    r"(?:wrote|writes|texted|messaged|e-?mailed|posted|tweeted|forwarded|写道|写着|写的是?|来信说?|发来|转来|转发|"
    r"发(?:了|个|条|来|给我)*(?:短信|消息|微信|邮件)(?:说|给我)*|留言说?)"
)
"""Verbs of writing and sending. Verbs of speech are left out: what somebody said is the user's own report."""
_SAYS = r"(?:says|said|reads|states|stated|goes|replie[sd]|reply|sent|是这么|上说|里说|说|写|回复|发给我|收到)"
_ANNOUNCES_BELOW = re.compile(rf"(?:{_LETTERS}|{_WROTE}|{_SAYS}).{{0,40}}\Z", re.IGNORECASE)
"""With the text on the next line a noun is enough; on the same line an address may follow `email:`."""
_ANNOUNCES = re.compile(
    rf"(?:{_WROTE}.{{0,25}}|{_LETTERS}.{{0,30}}?(?:\bfrom\b|{_SAYS}).{{0,25}}"
    rf"|{_SAYS} (?:on|in|at) .{{0,25}}{_LETTERS}.{{0,15}})\Z",
    re.IGNORECASE,
)
_OWN_WRITING = re.compile(
    r"(?:\b(?:i|we|you)\b|(?<![和跟给向对])[我你您](?!的|爸|妈|哥|姐|弟|妹|家|同|朋|老|男|女|儿))[^,，]{0,20}\Z",
    re.IGNORECASE,
)
"""Before an announcement: users speak of what they wrote themselves, or of what the assistant did."""

_HEADING = re.compile(
    r"[ \t]*(?:(?:(?:ocr|transcri(?:pt|ption)|screenshot)\b|(?:文字)?识别结果|截图|截屏|转写|语音转文字|录音文字)"
    rf"[^\n.!?。！？:：]{{0,30}}|(?:(?:an?|the|my|text|voice) )?(?:sms|{_LETTERS}) from\b[^\n.!?]{{1,40}}"
    rf"|(?!我)[^\n,，。！？]{{1,20}}(?:(?:发来|转来|写来|发给我|写给我)的?|的{_LETTERS}))[ \t]*\n",
    re.IGNORECASE,
)
"""A first line by which a program or a person names the kind of text below it."""

_TELLS_YOU = re.compile(
    r"\b(?:i|we)\b[^,;]{0,25}\b(?:tell|told|telling|remind|ask|let) you(?: know)?(?: this| that)?\Z"
    r"|\breminded me\Z|(?:[跟和向同]你|告诉你)(?:[说说讲講提]?(?:一?声|一下)?)?\Z|想起来?\Z",
    re.IGNORECASE,
)
"""Says that what follows is told to the assistant by the user, whoever had the idea."""

_WORK = re.compile(
    r"translate|proofread|rephrase|paraphrase|rewrite|reword|polish|shorten|simplify|summari[sz]e|spell-?check|"
    r"(?:check|correct|fix)(?: the| my)? (?:grammar|spelling|tone)|tl;?dr|"
    r"(?:gist|summary|key points|meaning|tone) of|(?:read|type) (?:this|it|the following)|"
    r"(?:turn|make|put) (?:this|these|the|it) .{0,40}?(?:\w+er|polite|formal|friendly|into|in|sound)|"
    r"翻译|翻成|译成|改写|改得|改成|改短|润色|校对|缩写|缩短|扩写|精简|简化|总结|概括|归纳|整理成|念给|读给|太长不看|"
    r"检查(?:一下|下)?(?:语法|拼写|错别字|语气)|(?:说说|讲讲|看看).{0,15}(?:大意|意思|要点)",
    re.IGNORECASE,
)
"""Work on a text."""
_THIS = re.compile(r"\bthis\b", re.IGNORECASE)
_FOLLOWS = re.compile(
    r"\bthe following\b|\bbelow\b|\b(?:under(?:neath)?|beneath) this\b|\bas follows\b|以下|下面|下列|如下",
    re.IGNORECASE,
)
_POINTS = re.compile(
    rf"\bth(?:is|ese)\b|{_FOLLOWS.pattern}|这个|这段|这句|这些|这封|这条|这篇|这则|这是|刚发来|刚收到|这[么样][说写讲问]",
    re.IGNORECASE,
)
"""Words that point to what follows."""
_JUDGES = re.compile(
    r"\b(?:spot|find|see|any|correct|fix) (?:(?:the|any|a|all) )?(?:mistakes?|errors?|typos?)\b"
    r"|\bsounds? (?:too |a bit )?(?:rude|harsh|blunt|pushy|polite|formal|friendly|natural|professional)\b"
    r"|\b(?:grammar|wording|phrasing|spelling)\b|错别?字|病句|语病|语气|措辞|通顺|语法|[说写]会不会太",
    re.IGNORECASE,
)
"""Words about how a text is written."""
_BARE_ORDER = re.compile(
    r"(?>(?:please|pls|plz|can you|could you|now|just|ok(?:ay)?|[,，\s]|请|麻烦|帮我|帮忙|给我|你)*)"
    rf"(?:{_WORK.pattern})"
    r"(?:\b(?:in|into|to|as) (?:(?:an?|one|two|three|short|plain|simple) )*[a-z]+"
    r"|\b(?:for me|please|pls|plz|thanks|thx|this|it)\b|[,，\s]"
    r"|一下|下|成\S{1,4}|给我|吧|谢谢|呗|嘛|用\S{1,3}句话)*",
    re.IGNORECASE,
)
"""An order for work that names nothing to work on."""
_ASKS_OF_TEXT = re.compile(
    r"(?:is|does|sounds?) (?:this|that|it) (?:sound )?(?:correct|right|ok(?:ay)?|good|natural|proper)(?: [a-z]+)?"
    r"|(?:any|spot the) (?:mistakes|errors|typos)|how (?:do|would) you (?:say|put) (?:this|that|it)(?: in [a-z]+)?"
    r"|(?:这[句段]话?)?(?:用)?[\u4e00-\u9fff]{0,2}[文语](?:怎么|如何)[说写讲]|(?:这[句段]话?|这样[说写])?(?:有没有|有)?"
    r"(?:语病|错别字|语法错误|通顺|地道|对|自然)吗?",
    re.IGNORECASE,
)
"""A question about the wording of what stands before it."""
_FOUND = re.compile(
    rf"(?:\b(?:found|saw|received|got|read|came across|copied)\b|收到|看到|看见|刷到|读到|发现|抄到).{{0,30}}?"
    rf"(?:{_LETTERS}|\bprompts?\b|提示词)",
    re.IGNORECASE,
)
"""Tells where a text comes from."""
_ABOVE = re.compile(r"\babove\b|以上|上面|上文|上述", re.IGNORECASE)
_PRESENTS = re.compile(r"\bhere(?:'s| is| are)\b|这是", re.IGNORECASE)
_ASKS = re.compile(
    r"[?？]|\b(?:what|how|who|which|is|are|should|can|could)\b|什么|怎么|哪|吗|(.)不\1|如何|帮我",
    re.IGNORECASE,
)
_OF_WRITING = re.compile(rf"{_LETTERS}|{_WROTE}|{_SAYS}|{_WORK.pattern}", re.IGNORECASE)
_TO_MEMORY = re.compile(
    r"\b(?:remember|memori[sz]e|keep in mind|bear in mind|forget|don't forget|make a note|note (?:this|that|down)|"
    r"save|keep (?:this|that|it)|"
    r"profile|memory|memori[sz]ed|retain(?:ed)?|off the record|between us|about me|correction)\b|"
    r"记住|记得|记下|记一下|记忆|记录|保存|勿记|别记|不要记|留存|保密|别忘|忘掉|忘了|备忘$|关于我|更正",
    re.IGNORECASE,
)
"""What introduces the user's own words to memory."""

_FILLERS = (
    r"(?>(?:(?:and|so|but|oh|well|ok(?:ay)?|hi|hey|hello|please|no|yes|then|now|actually|what|that|as|like)\b"
    r"[, ，]*|(?:这样|那|嗯|好|哦|对了|所以|但是|请)[, ，]*)*)"
)
_RECEIVED = r"(?!.*\b(?:got|received|found|saw|read|heard|copied|pasted|came across|was (?:sent|given|told))\b)"
_OWN_LEAD = re.compile(
    rf"{_FILLERS}(?:(?:i|we|i'[a-z]+|we'[a-z]+)\b{_RECEIVED}"
    r"|(?:my|our|your|an?|one|two|three|some|few|the) (?:[\w']+ ){0,2}"
    r"(?:thing|wish|rule|request|plan|favou?r|question|point|reminder|correction|update|preference|detail|fact|note|"
    r"word|record|name)(?:s|es)?\b"
    r"|(?:[\w'.]+ ?){0,2}(?:ps|p\.s|btw|by the way|fyi|also|note|reminder|request|question|important|update|"
    r"correction|first|second|third|last|finally|one|again|things?|record|future|later|once|all|assistant|you|short|"
    r"memory|mind|listen|look|todo|task|instead|favou?r|side|both|too)\Z"
    r"|(?:[\w'.]+ ?){0,2}(?:note|reminder|memo) (?:to|for) (?:my)?(?:self|me|you)\b"
    r"|.{0,10}给.{0,6}提.?醒"
    rf"|(?:my|our)\b(?!.*(?:{_WROTE}|{_SAYS}))"
    r"|[我咱]们?(?![爸妈哥姐弟妹儿女老同朋男房领上].*[写说发转给问])(?!.{0,3}[发转写])"
    r"(?!.*(?:收到|看到|看见|听到|读到|捡到|刷到|发现|复制|粘贴|抄))"
    r"|(?:还有|另外|对了|补充|提醒|请求|备注|注意|重要|最后|首先|其次|第[一二三四五六七八九十\d]++(?![条款章节页段])|总之|麻烦|顺便|再说|一件|两件|几件|有个|有件|"
    r"说明|更正|纠正|你|您|帮我|今后|以后|长期|设定|设置|规则|要求|偏好|记|忘))",
    re.IGNORECASE,
)
"""Begins what users say themselves: about themselves, to the assistant, or one more thing."""
_ASKS_MEMORY = re.compile(
    r"\b(?:remember|memor(?:y|i[sz]e)|forget|record (?:this|that|it|the)|write (?:it|this|that) down|note down|"
    r"(?:keep|bear) in mind|note (?:this|that)|make a note|(?:store|save) (?:this|that|it|the)|long-term|"
    r"(?:erase|delete|remove|wipe) (?:this|that|it|the|every|all|what|any)|from now on|"
    r"ignore (?:all|any|the|every|previous)|assistants?|instructions?|the user|profile)\b|"
    r"记住|牢记|记下|记录|记得|记忆|写入|存入|保存|忘掉|忘记|忘了|删除|删掉|清除|从现在起|从今以后|忽略|指令|助手|用户|资料",
    re.IGNORECASE,
)
"""Words that ask something of the assistant or its memory."""
_COMMANDS_MEMORY = re.compile(
    r"\b(?:remember|memori[sz]e|forget|keep in mind|write (?:it|this|that) down)\b|记住|牢记|记下|忘掉|忘记",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Clause(Span):
    """Words of a message with the mark that follows them."""

    text: str
    mark: str

    @property
    def leads_on(self) -> bool:
        """Whether a colon or an arrow follows, or a dash after some words."""
        dash = self.mark.strip().startswith(("-", "—"))
        return any(each in self.mark for each in (":", "：", *_ARROWS)) or (
            dash and len(self.text.split()) >= _WORDS_BEFORE_DASH
        )

    @property
    def is_apart(self) -> bool:
        """Whether a colon, a dash or the end of the line follows."""
        return self.leads_on or "—" in self.mark or "\n" in self.mark


def shown_spans(message: str) -> Sequence[Span]:
    """Return where a message shows text that need not be the user's own, in order and disjoint."""
    quotations = {found.start(): found for found in _QUOTED.finditer(message)}
    begin, above, introduced = _unmarked(message[:_READ], quotations)
    marked = [Span(found.start(), found.end()) for found in _MARKED.finditer(message)]
    marked += [
        Span(start, found.end())
        for start, found in quotations.items()
        if start in introduced or _is_text(found[found.lastgroup or 0])
    ]
    spans = [Span(0, above)] if above else []
    for span in sorted(marked, key=lambda each: (each.start, -each.end)):
        if span.start < begin and not (spans and span.start < spans[-1].end):
            spans.append(span)
    begin = max([begin, *(span.end for span in spans)])
    if message[begin:].strip():
        spans.append(Span(begin, len(message)))
    return spans


def _is_text(quotation: str) -> bool:
    """Whether a quotation is more than a name or a few words."""
    return (
        len(quotation) >= _LONG_QUOTATION
        or len(_CHINESE.findall(quotation)) >= _LONG_CHINESE
        or _COMMANDS_MEMORY.search(quotation) is not None
    )


def _unmarked(message: str, quotations: Container[int]) -> tuple[int, int, set[int]]:
    """Where shown text without marks begins; where one ends that an afterword points to, 0 = there is none; and
    the places of quotations that are introduced."""
    begins = [found.start() for found in (_BORDER.search(message), _HEADING.match(message)) if found]
    begins += _chat(message)
    asked = max((found.start() for found in _ASKS_MEMORY.finditer(message)), default=-1)
    above, introduced = 0, set[int]()
    for clause in _clauses(message):
        if _announces(clause) or _introduces(clause) or (clause.end <= asked and _leads(clause)):
            if clause.end not in quotations:
                begins.append(clause.end)
                break
            introduced.add(clause.end)
        elif _orders_back(clause, message):
            above = max(above, _end_before(message, clause))
        elif _points_back(clause) and (before := _end_before(message, clause)) >= _SHORTEST_PASTED:
            above = before
    return min(begins, default=sys.maxsize), above, introduced


def _chat(message: str) -> list[int]:
    """Where the first line of a chat stands that has at least two with who and when."""
    stamps = [found.start() for found in _STAMP.finditer(message) if not _STAMP.match(message, found.end())]
    return stamps[:1] if len(stamps) > 1 else []


def _clauses(message: str) -> Iterator[_Clause]:
    for found in _CLAUSE.finditer(message):
        text = found["text"].strip()
        if text:
            short = text if len(text) <= 2 * _JUDGED else f"{text[:_JUDGED]} {text[-_JUDGED:]}"
            yield _Clause(found.start(), found.end(), short, found["mark"])


def _announces(clause: _Clause) -> bool:
    if not clause.leads_on or _TELLS_YOU.search(clause.text):
        return False
    pattern = _ANNOUNCES_BELOW if "\n" in clause.mark else _ANNOUNCES
    found = pattern.search(clause.text)
    return found is not None and not _OWN_WRITING.search(clause.text[: found.start()])


def _introduces(clause: _Clause) -> bool:
    text = clause.text
    if _TO_MEMORY.search(text):
        return False
    if _WORK.search(text) and (clause.is_apart or _THIS.search(text)):
        return True
    if _FOLLOWS.search(text) and _OF_WRITING.search(text):
        return True
    asks = _ASKS.search(text + clause.mark) is not None
    return clause.is_apart and asks and (_POINTS.search(text) is not None or _FOUND.search(text) is not None)


def _points_back(clause: _Clause) -> bool:
    is_asked = _ASKS.search(clause.text + clause.mark) or _OF_WRITING.search(clause.text)
    return is_asked is not None and _ABOVE.search(clause.text) is not None


def _orders_back(clause: _Clause, message: str) -> bool:
    """Whether the message ends with an order or a question that can only mean what stands before it."""
    if message[clause.end :].strip():
        return False
    return (_BARE_ORDER.fullmatch(clause.text) or _ASKS_OF_TEXT.fullmatch(clause.text)) is not None


def _end_before(message: str, clause: _Clause) -> int:
    """Where the text ends that a clause points back to: at a mark that leads back, or with a line; 0 = nowhere."""
    if back := _LEADS_BACK.search(message[: clause.start]):
        return back.start()
    return max(message.rfind("\n", 0, clause.start + 1), 0)


def _leads(clause: _Clause) -> bool:
    """Whether what follows, which asks something of memory, is introduced as something else than a wish."""
    if _TO_MEMORY.search(clause.text):
        return False
    if _FOLLOWS.search(clause.text) or _PRESENTS.search(clause.text):
        return True
    if _JUDGES.search(clause.text) and ("?" in clause.mark or "？" in clause.mark):
        return True
    return clause.leads_on and not (_OWN_LEAD.match(clause.text) or _TELLS_YOU.search(clause.text))
