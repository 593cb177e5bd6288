"""Plain statements in Chinese: the subject, and the frame that says what to keep of the statement."""

import re
from collections.abc import Iterator

from services.memory.agent.fact import Fact
from services.memory.agent.frames_chinese import FRAMES, FUTURE, KIN, KIN_SAYS, NAME, PET
from services.text.clauses import Clause

_ADVERBS = (
    r"(?:现在|目前|如今|最近|一直|已经|其实|也|都|还|还是|最|更|很|非常|特别|超级|超|挺|比较|有点儿?|真的|真|就|"
    r"才|刚刚|刚|"
    r"从小|今年|个人|确实|平时|平常|一般|向来|从来|可|又|再|只|天生|本来就|算是|大概|差不多|快|终于|正|正在|"
    r"打小|严重|"
    r"主要|基本上?|总是|经常|常常|这两年|这几年|这学期|有些|明年|自己|一个人|一家人?|全家|老早|早就|本人|这边|"
    r"上个?月|上周|昨天|去年|前年|前阵子|前几天|今天|刚才|不久前|几年前|大学毕业后?|毕业后|结婚后|退休后|后来)"
)
_NEGATION = r"(?:不再|再也不|不太|不怎么|不是很|不大|并不|从不|从来不|不|没有|没)"
_NO_LONGER = ("不再", "再也不")
_ON_ONE_DAY = re.compile(r"今[天晚早]|昨[天晚]|前天|前几天|刚|上周|那天|待会|等会|一会|正在")
"""What is done on one day is no habit."""
_NOT_PLAIN = re.compile(
    r"如果|要是|假如|假设|万一|可能|也许|大概会|或许|好像|似乎|仿佛|听说|据说|以为|差点|差一点|希望|想象|假装|"
    r"梦见|梦到|幻想|"
    r"比如|例如|开玩笑|才怪|反话|呵呵|可太|真是太|(?:真|好|太)(?:喜欢|爱).*[啊哦呢呀]$|小说[里中]|剧本|角色|"
    r"电影里|歌词|台词|故事里|扮演|巴不得|恨不得|"
    r"应该|恐怕|说不定|"
    r"(?:他|她|它|妈|爸|老师|医生|朋友|同事|老板|客户|有人|别人|人家|大家|网友|对方|老婆|老公|同学|领导|你|"
    r"们)(?:都|总|老|常|还|"
    r"也|就|一直)?(?:说|讲|觉得|认为|问|告诉|以为)|[“”「」\"]|不知道|不确定|算不算|是否|怎么|什么|哪|谁|吗$|呢$|"
    r"多少|为什么|干嘛|啥|咋"
)
_PAST = re.compile(r"以前|曾经|曾|过去|小时候|原来|原先|从前|当年|那时候?|之前|本来")
_SELF = r"(?:我们?(?:家|俩|两口子|一家)?|本人|咱们?|俺们?)"
_ENDS = re.compile(
    r"(?:[,，;；:：(（]|(?:但是?|不过|可是|因为|所以|而且|然后|已经|都|有|"
    r"快)(?:[\d一二两三四五六七八九十几半多好]*(?:年|个月|天|周)(?:了|多了?)?).*$|"
    r"(?:但是|不过|可是|因为|所以|而且|然后).*$|(?<=[^\d孕])[\d一二两三四五六七八九十几半多好]+(?:年|个月|天|周)"
    r"(?:多)?了?$|"
    r"已经.*$|很久了?$|好久了?$)"
)
_DOUBLED = re.compile(
    r"(?P<verb>[弹拉吹打学练做开养])(?P<what>[^,，\s了过着]{1,6})(?P=verb)了?(?:快|有|将近|差不多)?"
    r"[\d一二两三四五六七八九十几半好多]+(?:年|个月)(?:多)?了?$"
)
"""弹古筝弹了十年: how long, told by the verb said twice."""
_ME = ("我", "咱", "本人", "俺")
_SPACE = re.compile(r"(?<=[\u4e00-\u9fff]) | (?=[\u4e00-\u9fff])")
_NAMED = re.compile(r"(?:名字)?叫(?P<V>[\u4e00-\u9fffA-Za-z]{1,8})")
_MARKS = " .,;:!?。，；：！？、~～"
_LONGEST = 30
_LONGEST_LOVE = 8
"""爱 is a liking only before something that one does."""
_VAGUE = re.compile(
    r"^(?:第|来不及|迟到|麻烦|打扰|忘|被|误会|失败|出错|你|您|它|他|她|这|那|哪|什么|怎么|的是|上了?$|我$|一下|"
    r"东西$|一个?$|起来|家$|家里$|学校$|公司$|一起$|"
    r"外面$|这里|那里|"
    r"同一|隔壁|楼上|楼下|附近|别人|自己$|大家|谁|不|没|了|过|着|得|完|点|到|看看|试试|想|问|说|听说)"
)
_ANYTHING = r"(?P<V>\S.*)"
_COMPILED = tuple(
    (re.compile(f"(?:{frame.words})(?:{_ANYTHING if frame.shape == 'V' else frame.shape})"), frame)
    for frame in FRAMES
)
_LIKING = re.compile(
    r"^(?P<verb>喜欢|喜爱|热爱|酷爱|偏爱|讨厌|厌恶|受不了|爱吃|爱喝|爱看|爱听|爱玩|爱好|迷上了?|爱上了?|"
    r"爱)(?:的是)?(?P<V>[^,，]{1,40})$"
)
_FEAR = re.compile(
    r"^(?:很|特别|最|非常)?(?:害怕|怕)(?P<V>狗|猫|蛇|虫子?|毛毛虫|蜘蛛|老鼠|蟑螂|黑|高|水|冷|热|辣|鬼|打针|抽血|"
    r"坐飞机|坐船|血|打雷|疼|"
    r"痛|坐过山车|密集.{0,4}|社交|一个人.{0,4})$"
)
_FAVOURITE = re.compile(
    r"^我(?:最|比较|特别)(?:喜欢|爱)(?P<what>的[\u4e00-\u9fff]{1,8}?|吃的|看的[\u4e00-\u9fff]{0,4}|"
    r"听的[\u4e00-\u9fff]{0,4})是(?P<V>[^,，]{1,20})$"
)
_HOME = re.compile(
    r"^(?:我们?家)(?:现在|目前|就)?在(?P<V>[^了,，\s]{1,12}(?:[省市区县镇乡村路街州岛]|街道|附近))(?:那边|这边)?$"
)
_DISTASTE = re.compile(r"^(?:看腻|听腻|吃腻|玩腻|看不惯|吃不惯|喝不惯|听不惯)(?:了)?(?P<V>[^,，了]{1,15})")
_SUBJECT = re.compile(rf"^{_SELF}(?P<mid>{_ADVERBS}*)(?P<no>{_NEGATION})?(?P<mid2>{_ADVERBS}*)(?P<rest>\S.*)$")
_OF_KIN = re.compile(rf"^(?:我们?的?家?的?|咱)(?P<who>{KIN})(?:的)?(?P<mid>{_ADVERBS}*)(?P<rest>.+)$")
_OF_PET = re.compile(
    rf"^(?:我们?的?家?的?|咱家)(?P<who>{PET})(?P<rest>(?:的?名字)?(?:叫|是)(?P<V>[\u4e00-\u9fffA-Za-z]{{1,6}}))$"
)
_CALL_ME = re.compile(
    rf"^(?:请|你|您|可以|以后|大家|朋友们?|同事们?|同学们?|家里人|都|就|平时|一般|习惯|直接)*(?:叫|喊|"
    rf"称呼)我(?!的|们|起床|去|来|帮|吃|一声|做|怎么|什么|给|不|别|回|过|出|写)(?:为|做)?{NAME}"
)
_WISH = re.compile(
    r"^(?:请|你|您|麻烦|那|希望你|我希望你|我想让你|能不能|可以)*(?P<when>以后|从现在起|从现在开始|今后|"
    r"从今天起|从今以后|往后|每次|一律|始终|永远|之后)(?:请|你|您|都|就|麻烦|能不能|可以|的?(?:时候|话))*"
    r"(?P<V>(?:都|就|要|请)?(?:不要再?|别再?|不用再?|不准|只)?(?:用|叫|称呼|喊|回答|回复|回我|跟我|和我|对我|"
    r"给我|说话|说|写|讲|解释|翻译|提供|举例|简短|简洁|保持|使用|先|直接|尽量|加|带|列|附|按|把|引用|讨论|"
    r"聊天).{0,40})$"
)
_STOP = re.compile(
    r"^(?:请|你|您|麻烦)*(?P<V>(?:别再?|不要再?|不用再?)(?:用|加|叫我|称呼我|说|写|给我|跟我|道歉|重复|带|列|"
    r"发).{1,20}(?:了|啦))$"
)
_TO_THE_ASSISTANT = re.compile(
    r"回答|回复|回我|答复|说话|叫我|称呼我|喊我|中文|英文|英语|法语|日语|德语|粤语|文言文|简短|简洁|简单|详细|"
    r"表情|emoji|单位|公制|摄氏|例子|举例|列表|"
    r"要点|格式|表格|口语|正式|语气|敬语|您|你|标题|步骤|来源|出处|代码|注释|术语|字以内|一句话|道歉|客气|废话|"
    r"啰嗦|markdown|编号|价格|人民币|跟我|给我",
    re.IGNORECASE,
)
_DECIDED = re.compile(
    r"^(?:我们?|咱们?)(?:已经|最后|终于|最终|现在|刚刚?|还是|商量后|一致|想好了)*决定(?:了|要)?(?!不了|"
    r"权)(?P<V>\S.*?)(?:了|啦|吧)*$"
)
_INTENDS = r"(?:打算|准备|计划|要|将|会|想|定了|订了|约了|得|还要|就要)"
_PLAN = re.compile(
    rf"^{_SELF}(?P<V>{_INTENDS}?(?:在)?{FUTURE}(?:的)?(?:早上|上午|中午|下午|晚上|傍晚)?"
    r"(?![\d一二三四五六七八九十点日号半]*$)[^,，]{2,30})$"
)
_INTENDED = re.compile(rf"(?:{FUTURE}(?:早上|上午|中午|下午|晚上|傍晚)?)?{_INTENDS}")
_TIME_FIRST = re.compile(rf"^(?P<time>{FUTURE}[^,，我要得]{{0,8}})(?P<me>我们?)(?P<rest>{_INTENDS}.+)$")
_DROPPED = re.compile(
    rf"^{_SELF}.{{0,6}}?(?:不打算|不准备|不想|不)(?:再|去)?(?P<V>(?!再|是|会|能|知|用|要)[^,，不没]{{2,12}}?)了$"
)
"""Plans that were dropped."""
_HABIT_FIRST = re.compile(rf"^(?P<time>每[天周年]|每个?(?:星期|周末|月)|周末)(?P<me>{_SELF})")
_PLAN_LATE = re.compile(rf"^{_SELF}(?P<V>(?:打算|准备|计划)(?=.*{FUTURE})[^,，]{{3,30}})$")
_NO_PLAN = re.compile(
    r"想(?:问|知道|请|让你|查)|天气|过得|做什么|有空|没空|没事|再说|再问|放假吗|可以吗|行吗|给你|告诉你|刚|已经|"
    r"了解|过去|见$|完成了|再聊|没|的$"
)
_SOMEBODY = re.compile(r"^(?:你|您|他|她|它|大家|朋友|同学|这|那|人家|别人|老师|医生|天气|今天天气|公司|学校)")


def facts_in_chinese(clauses: list[Clause]) -> list[Fact]:
    """Return what clauses state about the speaker, in order."""
    found: list[Fact] = []
    of_myself = False
    for clause in clauses:
        text = _DOUBLED.sub(r"\g<verb>\g<what>", _SPACE.sub("", clause.text.strip(_MARKS)))
        speaks_of_me = text.startswith(_ME)
        if not speaks_of_me and _SOMEBODY.match(text):
            of_myself = False
        named = _NAMED.fullmatch(text)
        if named and found and found[-1].field in ("pets", "family"):
            found[-1] = Fact(found[-1].field, f"{found[-1].text}叫{named['V']}")
            continue
        text = _HABIT_FIRST.sub(r"\g<me>\g<time>", _TIME_FIRST.sub(r"\g<me>\g<time>\g<rest>", text))
        speaks_of_me = text.startswith(_ME)
        # The subject is named once, but a name needs its subject.
        omitted = of_myself and not speaks_of_me and not named
        found += _facts(f"我{text}" if omitted else text, text)
        if speaks_of_me:
            of_myself = re.match(rf"{_SELF}(?!(?:自己)?的|{KIN})(?!.*[他她它])", text) is not None
    return found


def _facts(text: str, own: str) -> Iterator[Fact]:
    called = _CALL_ME.match(own)
    if called and not _VAGUE.match(called["V"]):
        yield Fact("preferred_name", called["V"].strip(_MARKS))
        return
    wish = _WISH.match(own) or _STOP.match(own)
    if wish and _TO_THE_ASSISTANT.search(wish["V"]):
        yield Fact("wishes", _clean(wish["V"]).removeprefix("请").removeprefix("都").removeprefix("就"))
        return
    if _NOT_PLAIN.search(text) or not text.startswith(_ME):
        return
    decided = _DECIDED.match(text)
    if decided:
        yield Fact("decision", f"用户决定{decided['V'].strip(_MARKS)}。")
        return
    pet, kin = _OF_PET.match(text), _OF_KIN.match(text)
    if pet:
        yield Fact("pets", f"{pet['who']}叫{pet['V']}")
    elif kin:
        yield from _of_kin(kin)
    else:
        facts = list(_of_myself(text, subject_is_named=own.startswith(_ME)))
        yield from facts
        if not facts and (dropped := _DROPPED.match(text)):
            yield Fact("plans", dropped["V"], ended=True)


def _of_kin(found: re.Match[str]) -> Iterator[Fact]:
    if _PAST.search(found.string):
        return
    for pattern, template in KIN_SAYS:
        said = re.match(pattern, found["rest"])
        if said:
            yield Fact("family", template.format(_clean(said["V"]), who=found["who"]))
            return


def _of_myself(text: str, *, subject_is_named: bool) -> Iterator[Fact]:
    past = _PAST.search(text) is not None
    whole = None if past else _favourite_or_plan(text)
    if whole and whole.field == "plans" and not (subject_is_named or _INTENDED.match(whole.text)):
        whole = None  # a time without a subject tells when something was, as often as what is planned
    found = _SUBJECT.match(_PAST.sub("", text))
    if whole:
        yield whole
    elif found:
        no, rest = found["no"] or "", re.sub(rf"^{_ADVERBS}+", "", found["rest"])
        fear = _FEAR.match(rest)
        liking, tired = _LIKING.match(rest), _DISTASTE.match(rest)
        if liking:
            yield from _liking(liking, f"{found['mid']}{found['mid2']}", no, past=past)
        elif fear and not past:
            yield Fact("preferences", f"{'不' if no else ''}怕{fear['V']}")
        elif tired and not no:
            yield Fact("preferences", f"不再喜欢{_clean(tired['V'])}")
        elif not no.startswith("没"):  # 没 denies an event, not a habit
            # What looks like an adverb may begin the predicate.
            over = no in _NO_LONGER or (no == "不" and rest.endswith("了"))
            facts = _by_frame((rest, f"{found['mid2']}{found['rest']}"), denied=bool(no), past=past, over=over)
            yield from (fact for fact in facts if fact.field != "hobbies" or not _ON_ONE_DAY.search(text))


def _favourite_or_plan(text: str) -> Fact | None:
    at_home = _HOME.match(text)
    if at_home:
        return Fact("home", f"住在{at_home['V']}")
    favourite = _FAVOURITE.match(text)
    if favourite:
        return Fact("preferences", f"最喜欢{favourite['what']}是{favourite['V'].strip(_MARKS)}")
    plan = _PLAN.match(text) or _PLAN_LATE.match(text)
    if plan and not _NO_PLAN.search(text) and not text.endswith("了"):
        return Fact("plans", plan["V"].strip(_MARKS))
    return None


def _by_frame(predicates: tuple[str, str], *, denied: bool, past: bool, over: bool) -> Iterator[Fact]:
    for pattern, frame in _COMPILED:
        matches = (pattern.match(rest) for rest in predicates)
        said = next((match for match in matches if match), None)
        if said is None:
            continue
        groups = said.groupdict()
        no = denied or bool(groups.get("denies"))
        text = frame.past if past else frame.denied if no else frame.text
        if over and frame.over:
            text = f"{frame.over}，以前"
        value = _clean(said["V"])
        if frame.field == "allergies" and not past:
            parts = [part for part in re.split(r"[、,，]|和|跟|以及|还有|与|及", value) if part]
            yield from (Fact("allergies", part, no) for part in parts)
        elif text and not (said["V"] and (not value or len(value) > _LONGEST or _VAGUE.match(value))):
            yield Fact(frame.field, text.format(value, verb=groups.get("verb", "")))
        return


def _liking(found: re.Match[str], mid: str, no: str, *, past: bool) -> Iterator[Fact]:
    value = _clean(found["V"])
    verb = found["verb"].removesuffix("上了") + "上" * found["verb"].endswith("上了")
    if not value or len(value) > _LONGEST or _VAGUE.match(value) or (verb == "爱" and len(value) > _LONGEST_LOVE):
        return
    if verb == "爱" and not re.match(r"[吃喝看听玩打做运读旅跑睡熬喝]", value):
        return
    if past and not no:
        return
    degree = next((word for word in ("最", "更") if not no and word in mid), "")
    # 不再喜欢 and 不喜欢…了 mean the same; the shorter one is more idiomatic.
    denied = no if no in ("不太", "不怎么", "不是很") else "不" if no else ""
    yield Fact("preferences", f"{denied}{degree}{verb}{value}")


def _clean(text: str) -> str:
    """Return a value up to where the clause changes the subject, without final particles."""
    value = _ENDS.sub("", text).strip(_MARKS)
    return re.sub(r"(?<=.)(?:了|啦|呢|哦|啊|呀|吧|嘛|哈)+$", "", value).strip(_MARKS)
