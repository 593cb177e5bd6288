"""References to time in Chinese, simplified or traditional, and the expressions that find them.

A phrase is read from left to right, from wide to narrow: a beginning (去年, 2023年, 三月, 上周), then steps
(十二月, 第一周, 周三, 初). One expression finds beginnings and one finds steps, both in simplified characters.
Each alternative in them is a group: its name ends with `_` for a beginning, or is that of the step; the groups
inside hold what the reader needs. Lookarounds exclude words that only look like time: 五月天, 2号楼.
"""

import re
from datetime import date

from services.time_reference.chinese_readers import READERS, steps_of
from services.time_reference.normalisation import FOLD
from services.time_reference.numerals import CHINESE_NUMERAL, chinese_number
from services.time_reference.numeric import dated
from services.time_reference.phrases import ONE_DAY, Found, Phrase, Span, Unit, joined, one_of, period
from services.time_reference.steps import day_of_month

_N = CHINESE_NUMERAL
_NUMBER = rf"{_N}{{1,8}}"
_HAN = "一二三四五六七八九十"
_WEEK = r"(?:周|星期|礼拜)"
_MONTH_NUMBER = r"(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_DAY_NUMBER = (
    r"(?:[12]\d|3[01]|0?[1-9]|[二廿]十?[一二三四五六七八九]|[三卅]十?一|[二三]?十|十?[一二三四五六七八九]|廿|卅)"
)
_ANY_DAY_NUMBER = rf"(?:\d{{1,2}}|{_DAY_NUMBER})"
_COUNTED = r"(?:天|日|周|星期|礼拜|季度|年(?!级|代|轻|龄|纪)|(?<=[个半多来])月|(?<=个)季)"
_NOT_BEFORE_MONTH = r"(?!亮|球|饼|光|经|台|子|薪|季|嫂|老|票|租|结|刊|天(?!气)|嫌)"
_NOT_AFTER_YEAR = r"(?![轻龄级纪薪味代画货糕夜])"
_NOT_BEFORE_FRONT = r"(?<![目当之以提先眼年月周日天时会课饭赛战事生最然随午])"
_NOT_BEFORE_UP = r"(?<!基本)(?<![早晚马网线路街身地楼手以加赶])"
_NOT_BEFORE_DOWN = r"(?<![楼乡地手线底以当私])"
_NOT_OF_A_NAME = (
    r"(?![楼线店机位桌房厅院电码门车床馆字选队球坑公井台仓库柜座员站口人种文染色称召令角卖贴牌标型病铁航火飞船舰教宿"
    r"出通信钢墨油汽技包箱服题主男女嘉作产样地路街弄巷宅别塔坝矿洞桥闸炉泵管端键区室层元码])"
)
_NOT_A_SPELL = r"(?![游元本语子常益报志行程记夜均租化食照光])"
_ONE_AS_SUCH = r"(?!起|直|样|些|定|般|共|次|边|同|个|下|种|家|块|段|句|名|本|条|位)"
_WEEKDAY = rf"(?:一{_ONE_AS_SUCH}|[二三四五六](?!{_N}|百|千|万|个|年|月|次|岁)|日(?![程常本记])|天(?![天气]))"
_MIDDLE = r"中(?![秋国午文学间旬等期级型心介药餐央外])"


_DAY_WORD = (
    rf"(?:(?P<big>大{{1,4}})(?=[前后][天日晚儿])|(?<!如)(?=今)|(?=[昨寻听])|(?<![说证声表聪文发透])(?=明)|(?<![钢口提])(?=琴)|(?<![日根基记书剧课])(?=本)|{_NOT_BEFORE_FRONT}(?=[前后]))"
    r"(?P<day_word>[今昨前后明](?=[天日儿晚])|[今昨明](?=[早晨夜]|个儿)|[寻琴听](?=晚(?![会场课风餐宴安]))|[本寻琴听](?=日))"
    r"(?:(?<=[前后])天(?![气性使赋生然津])|(?<=[前后])日(?!本)|(?<![前后])天|(?<![前后])日(?!头条|[语剧志])|儿个?|个儿|早上?|晨|晚上?|夜里?)"
)
_YEAR_WORD = (
    rf"(?:(?P<big_year>大{{1,4}})(?=[前后])|(?<!如)(?=今)|(?=[去旧来])|(?<![说证声表聪文发透])(?=明)|(?<![日根基记书剧课])(?=本)|{_NOT_BEFORE_FRONT}(?=[前后]))"
    rf"(?P<year_word>[今本去旧明来前后])年{_NOT_AFTER_YEAR}度?"
)
_NOT_A_SPELL_OF_YEARS = r"(?![前后内里间多来半的了]|以[前后来]|之|历史|时间|级|期|没)"
_YEAR = (
    rf"(?:(?P<era>民国)(?:\d{{1,3}}|{_N}{{1,3}})"
    r"|(?<!\d)(?:1[5-9]|20|21)\d\d(?=\s*年(?![级代]))|(?<!\d)(?:1[5-9]|20|21)\d\d(?=\s*[-–—~到至]\s*(?:1[5-9]|20)\d\d\s*(?!\d|[-/.]))"
    rf"|(?<!{_N})[一二][零〇○一二三四五六七八九]{{3}}(?=\s*年)|[一两二]千[零〇]?{_N}{{1,4}}(?=\s*年)"
    rf"|(?<![\d了过有近约满整共个已快超])(?:\d\d(?=\s*年\s*(?:{_MONTH_NUMBER}\s*月|第|初|底|末|[春夏秋冬]|[上下]半年|[一二三四]季|的?时候|那年))"
    r"|0\d(?=\s*年)|[6-9]\d(?=\s*年(?:以[前后]|之[前后]))"
    rf"|(?:(?<=[在从到自于至])|(?<![^\s,。；;、]))\d\d(?=年{_NOT_A_SPELL_OF_YEARS}))"
    rf"|(?<!{_N})(?:[零〇○][一-九]|[七八九][零〇○一二三四五六七八九])(?=\s*年\s*(?:{_N}|初|底|末|[春夏秋冬]|[上下]半年))"
    r")\s*(?:年度?)?"
)
_YEAR = _YEAR.replace("[一-九]", "[一二三四五六七八九]")


_LUNAR = r"(?:农历|阴历|旧历)"
_LUNAR_TENTH = rf"(?:初(?:一(?![起直共样])|[{_HAN[1:]}])|廿[{_HAN[:-1]}]?|卅)"
_LUNAR_DAY = rf"(?:{_LUNAR_TENTH}|{_N}{{1,3}})"


def _lunar(name: str) -> str:
    """Return a pattern of months that must be lunar, by their name, their day or the word 农历."""
    month = rf"(?P<{name}_month>[正冬腊]|闰?(?:{_MONTH_NUMBER}))"
    said = rf"(?:(?:{_LUNAR}|(?=[正腊闰])|(?={_MONTH_NUMBER}月{_LUNAR_TENTH}))"
    return rf"{said}(?:(?P<{name}_year>{_N}{{2,4}})年)?{month}月(?:(?P<{name}_day>{_LUNAR_DAY})[日号]?)?)"


_FESTIVAL = (
    "(?:元旦(?!晚会)|春节(?!联欢|档)|大年初[一二三四五六七]|农历新年|元宵节|端午(?:节|(?!粽))|七夕|中元节|中秋(?:节|(?!月饼))"
    "|重阳节|腊八(?:节|(?![粥蒜豆]))|除夕|大年三十|大年夜|劳动节|儿童节|教师节|国庆节|圣诞节"
    "|情人节|妇女节|愚人节|五一(?![劳节口个七二三四五六八九十])|国庆|万圣节|平安夜|圣诞|清明节?|立春|春分|立夏|夏至|立秋|秋分|立冬|冬至)"
)


BEGINNINGS = re.compile(
    rf"(?P<lunar_>{_lunar('lunar')})"
    rf"|(?P<festival_>(?:(?P<festival_way>[上下])一?个)?(?P<festival>{_FESTIVAL}))"
    rf"|(?P<decade_>(?:(?P<century>上个?|本|\d\d|{_N}{{1,3}})世纪(?:(?P<decade>\d0|[一二三四五六七八九]?十)年代)?"
    r"|(?<!\d)(?P<decade2>(?:19|20)?[0-9]0|[二三四五六七八九]十)年代))"
    rf"|(?P<day_>{_DAY_WORD})"
    rf"|(?P<year_word_>{_YEAR_WORD})"
    rf"|(?P<ago_>(?!(?:1[5-9]|20|21)\d\d年|[一二][零〇○一二三四五六七八九]{{3}}年|0)(?P<ago_count>(?<!{_N})(?<![第每])(?:[二三四五六七八九]?十)[几多来]|{_NUMBER}|(?<!十)好?几|数|半)个?[多来]?(?P<ago_half>半)?"
    rf"(?P<ago_unit>{_COUNTED})(?P<ago_half2>半)?多?(?P<ago_way>[之以]?前(?![后面方往者边进台锋途景])|[之以过]?后(?![面来者边果悔台背续])))"
    rf"|(?P<year_>(?P<year>{_YEAR}))"
    rf"|(?P<half_>(?:{_NOT_BEFORE_FRONT}(?=[前后])|{_NOT_BEFORE_UP}(?=[上下]))(?P<half_which>[上下前后])半(?P<half_unit>年|月|周))"
    rf"|(?P<roll_>(?P<roll_way>最近|过去|(?<![最附将接靠临亲远])近|这(?![一1])|未来|今后|接下来|往后|{_NOT_BEFORE_FRONT}后|{_NOT_BEFORE_DOWN}下(?![一1半]))的?这?"
    rf"(?P<roll_count>{_NUMBER}|[几数些半])个?(?P<roll_unit>{_COUNTED})(?:以来|[之以]?内|里|来)?)"
    rf"|(?P<within_>(?<!{_N})(?P<within_count>{_NUMBER}|半)个?(?P<within_unit>{_COUNTED})(?P<within_way>[之以]?内(?![容心部存向在外涵])|以来))"
    rf"|(?P<this_>(?P<way>{_NOT_BEFORE_UP}上{{1,4}}|{_NOT_BEFORE_DOWN}下{{1,4}}|这|(?<![日根基记书剧课])本|今)(?:[一1](?!{_N}))?个?"
    rf"(?P<way_unit>周末|星期|礼拜|周(?![年岁期围边折转旋刊身密而])|月{_NOT_BEFORE_MONTH}|季度|半年|年{_NOT_AFTER_YEAR}度?|世纪))"
    rf"|(?P<before_>(?:{_NOT_BEFORE_FRONT}前|{_NOT_BEFORE_UP}上)的?(?P<before_count>{_NUMBER}|[几些数])个?(?P<before_unit>{_COUNTED}))"
    rf"|(?P<season_>[这上]个(?P<only_season>[春夏秋冬])[天季])"
    rf"|(?P<part_>(?<![\d个这那每本今去明上下半来前多几数当{_HAN}])(?P<part_unit>[月年])(?P<part_word>[初底末]|{_MIDDLE})"
    r"|(?P<part_word2>[上中下]旬))"
    rf"|(?P<quarter_>(?<!{_N})(?<![几前每])(?:第(?P<only_quarter>[一二三四1-4])个?|(?P<only_quarter2>[一二三四1-4]))季度)"
    rf"|(?P<month_>(?<!{_N})(?<![几数每第.:/])(?<!每个)(?P<only_month>{_MONTH_NUMBER})(?:\s*月(?:份)?{_NOT_BEFORE_MONTH}"
    rf"|(?=\s*[-–—~到至]\s*{_MONTH_NUMBER}月(?:份)?{_NOT_BEFORE_MONTH})))"
    rf"|(?P<date_>(?<!{_N})(?<![第.:/A-Za-z#-])(?P<only_day>{_ANY_DAY_NUMBER})(?:\s*号{_NOT_OF_A_NAME}"
    rf"|(?:(?<=\d)|(?<={_N}{_N}))日(?![前后内]){_NOT_A_SPELL}"
    rf"|(?=\s*[-–—~到至]\s*{_ANY_DAY_NUMBER}(?:号{_NOT_OF_A_NAME}|日(?![前后内]){_NOT_A_SPELL}))))"
    rf"|(?P<weekend_>(?<![每{_HAN}\d两几])(?:周末|双休日|{_WEEK}六日))"
    rf"|(?P<weekday_>(?<![每{_HAN}\d两几数多半整隔逢各])(?<!每个){_WEEK}(?P<only_weekday>{_WEEKDAY}))"
)


STEPS = re.compile(
    r"\s{0,3}[的,(]?\s{0,3}(?:"
    rf"(?P<lunar>{_lunar('lunar')})|(?P<lunar_day_alone>{_LUNAR_TENTH}(?!{_N}|[号日]))"
    rf"|(?P<festival>{_FESTIVAL})"
    rf"|(?P<month>{_MONTH_NUMBER})\s{{0,3}}月(?:份)?{_NOT_BEFORE_MONTH}"
    rf"|第?(?P<quarter>[一二三四1-4])个?季度"
    rf"|(?P<nth>(?:第(?P<nth_which>{_NUMBER})|(?P<nth_way>最后|[前头后末首])\s{{0,3}}(?P<nth_count>{_NUMBER}))\s{{0,3}}个?"
    rf"(?:{_WEEK}(?P<nth_weekday>{_WEEKDAY})|(?P<nth_weekend>周末)|(?P<nth_unit>天|日|周|星期|礼拜|月|季度|年)))"
    rf"|{_WEEK}(?P<weekday>{_WEEKDAY})\)?"
    rf"|(?:月份?|年|季度?)?(?P<part>[上中下]旬|[前中后早初末]期|[初底末]|{_MIDDLE})"
    r"|(?P<season>[春夏秋冬])[天季]?(?![节运晚游装令奥分])"
    r"|(?P<half>[上下前后])半(?:年|个?月|周)"
    r"|(?P<same>本月|这个月|今天|今日|同月|同一天|这个?时候|同期)"
    rf"|(?P<day>{_ANY_DAY_NUMBER})\s{{0,3}}(?:日{_NOT_A_SPELL}|号{_NOT_OF_A_NAME})"
    rf"|(?P<bare_day>\d{{1,2}}|(?:{_N}{{2,3}}))(?!{_N}|[几多个天点时分%万块元人次倍.:折度岁年月/周])(?!-\d{{1,2}}(?!\d*[日号]))"
    rf"|(?<=[周期拜])(?P<weekday2>{_WEEKDAY})(?![号日])"
    r")"
)


CLOCK = re.compile(
    r"(?:的?(?:大?清早|凌晨|清晨|黎明|早晨|早上|上午|中午|午间|正午|下午|午后|傍晚|晚上|晚间|夜里|夜晚|夜间|半夜|深夜|午夜|白天))?"
    rf"(?:\s{{0,3}}{_N}{{1,3}}(?:点|时|:\d\d)(?:钟|半|整|过|一刻|{_N}{{1,3}}分?|左右|许)*)?"
)


JOINS = {
    "open": re.compile(r"(?:从|自从?|由)\s{0,3}"),
    "to": re.compile(r"\s{0,3}(?:起|开始)?\s{0,3}(?:一?直)?(?:[到至~–—-]{1,2})\s{0,3}"),
    "and": re.compile(r"\s{0,3}[和与跟及]\s{0,3}"),
    "list": re.compile(r"\s{0,3}[和与跟及、,，]\s{0,3}"),
    "close": re.compile(r"\s{0,3}(?:为?止|之间|期间|间)"),
    "since": re.compile(
        r"\s{0,3}(?:以来|起(?=[\s,，。！？]|$)|起?(?:一?直)?(?:到(?:现在|目前|如今)|至今(?![年天日晚早])))"
    ),
    "bare_day": re.compile(rf"(?:\d{{1,2}}(?!\d|[:.%点个])|{_DAY_NUMBER}(?=[号日]))[号日]?"),
    "bare_year": re.compile(r"(?:1[5-9]|20|21)\d\d(?!\d|[-/.])"),
}


TRIGGERS = re.compile(
    rf"(?:{_N}|[今本昨寻琴明听前后去旧来上下这最近过未接往第周星礼月年双半几数好从自由大民中农阴正腊闰端除元春重国圣劳儿教]|情(?=人节)"
    "|妇(?=女节)|愚(?=人节)|万(?=圣)|平(?=安夜)|清(?=明)|立(?=[春夏秋冬])|夏(?=至)|秋(?=分)|冬(?=至))"
)


def found_in(text: str, today: date) -> list[Found]:
    """Return all references to time in a text, from left to right."""
    text = text.translate(FOLD)
    found: list[Found] = []
    before: tuple[Phrase | None, int] = (None, 0)
    at = 0
    while match := TRIGGERS.search(text, at):
        at = match.start()
        opening = JOINS["open"].match(text, at)
        first = _phrase(text, opening.end() if opening else at, today)
        if first is None:
            at += 1
            continue
        phrase, stop = first
        if phrase and before[0] and JOINS["list"].fullmatch(text, before[1], at):
            phrase = _listed(before[0], phrase, today)
        found.append(_reference(text, at, (phrase, stop), today))
        before = phrase, found[-1][2]
        at = max(before[1], at + 1)
    return found


def _listed(first: Phrase, second: Phrase, today: date) -> Phrase:
    """Read 上周二和周四, 去年三月和五月, 3月1日、5日: the second is in the week, year or month of the first."""
    span = first.resolved(today)
    if span is None or second.cycle is None:
        return second
    same = first.base is not None and first.base.unit is second.cycle
    if not same and not (first.cycle is Unit.YEAR and second.cycle is Unit.MONTH and span.unit is Unit.DAY):
        return second
    placed = second.within(period(second.cycle, span.start))
    return placed if placed.resolved(today) else second


def _reference(text: str, at: int, first: tuple[Phrase | None, int], today: date) -> Found:
    phrase, stop = first
    if phrase is None:
        return None, at, stop
    span = phrase.resolved(today)
    if since := JOINS["since"].match(text, stop):
        return (Span(span.start, today) if span and span.start <= today else span), at, since.end()
    return _two_ends(text, at, stop, phrase, today) or (span, at, stop)


def _two_ends(text: str, at: int, stop: int, first: Phrase, today: date) -> Found | None:
    """Read 三月到五月, 3月1日至5日, 周一和周三之间; return None if there is only one end."""
    to = JOINS["to"].match(text, stop)
    middle = to or JOINS["and"].match(text, stop)
    last = _phrase(text, middle.end(), today, after=first) if middle else None
    if last is None:
        return None
    phrase, stop = last
    closing = JOINS["close"].match(text, stop)
    if not to and not closing:
        return None
    stop = closing.end() if closing else stop
    if phrase is None:
        return None, at, stop
    both = joined(first, phrase, today)
    end = phrase.after(both.start) if both and not to else None
    if both and end and end.unit is not Unit.DAY and both.start < end.start:
        both = Span(both.start, end.start - ONE_DAY)
    return (both, at, stop) if both else None


def _phrase(text: str, at: int, today: date, after: Phrase | None = None) -> tuple[Phrase | None, int] | None:
    """Return the longest phrase that begins at a place, and where it stops; no phrase if there is no such day."""
    begun = _beginning(text, at, today, after)
    if begun is None:
        return None
    phrase, stop = begun
    if phrase is None:
        return begun
    span = phrase.resolved(today)
    while span and (match := STEPS.match(text, stop)):
        if match["lunar_day_alone"]:
            return None, match.end()
        narrower = phrase.narrowed(*steps_of(match, today))
        narrowed = narrower.resolved(today)
        if narrowed is None or len(narrower.steps) == len(phrase.steps):
            if match["day"] and span.unit is Unit.MONTH:
                return None, match.end()
            break
        phrase, span, stop = narrower, narrowed, match.end()
    clock = CLOCK.match(text, stop)
    return (phrase if span else None), clock.end() if clock else stop


def _beginning(text: str, at: int, today: date, after: Phrase | None) -> tuple[Phrase | None, int] | None:
    if found := dated(text, at, today, follows=after is not None):
        return found
    if match := BEGINNINGS.match(text, at):
        try:
            phrase = READERS[match.lastgroup or ""](match, today)
        except (ValueError, OverflowError):
            phrase = None
        if phrase or match["lunar_"]:
            return phrase, match.end()
    if after and (match := JOINS["bare_year"].match(text, at)):
        return Phrase(period(Unit.YEAR, date(int(match[0]), 1, 1))), match.end()
    if after and (match := JOINS["bare_day"].match(text, at)):
        return one_of(Unit.MONTH, day_of_month(chinese_number(match[0].rstrip("号日")))), match.end()
    return None
