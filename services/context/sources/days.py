"""The days that a message asks about: their records in the prompt, and the answer if there are none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from services.context.source import MEMORY, WEEKDAYS, PromptDraft, Source, inert, tagged
from services.context.sources.instructions import searches
from services.context.sources.recall import SPEAKERS, RecallSource, excerpt
from services.llm.token_estimates import TokenEstimator
from services.memory.recall.recall import RecallResult
from services.summaries.past_days import DaysQuery, DaysResult, PastDays, ToldDay, not_known
from services.text.language import Language, language_of, sentences
from services.text.marks import one_line
from services.text.tokenizer import terms
from services.time_reference.local_days import bounds, hours_of, time_zone
from state.prompt import AskedDays, DaySummary, SaidThenLine, TimeReference
from state.section import Section

_MOST_SAID = 20
_SAID_TOKENS = 600
_TOKENS_OF_ONE = 90
_TOKENS_OF_A_LINE = 60
_INDENT = "\n  "
_LEAST_TOKENS = 30
"""Minimum tokens per day; of a long period the newest days are shown, each with at least this many."""
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_HEADINGS: dict[Language, Mapping[str, str]] = {
    "en": {
        "asks": "The user refers to what was said on {days} (“{words}”). Use the records of that time for what "
        "the user asks, in your own words.",
        "last_visit": "The user refers to an earlier talk (“{words}”). The last visit was on {days}: use its "
        "records for what the user asks, in your own words. They may also mean an earlier visit.",
        "search": " These are not all records: for what is not in them call search_memory before you say that "
        "it is not known.",
        "guess": " These are not all records: say that they do not tell what is not in them, and do not guess it.",
        "whole_day": " Nothing was said in that part of the day: these are the records of the whole day.",
        "said": "What was said then, word for word:",
        "nothing": "The user refers to {days} (“{words}”). There is no record of a conversation then{closest}. "
        "They may be mistaken about the day: use what else you know, do what they ask, and mention that there is "
        "no record of that time only where it matters.",
        "closest": "; the closest days with one are {closest}",
        "unknown": "The user refers to what was said on {days} (“{words}”). The records of that time cannot be "
        "read at the moment: tell them so.",
    },
    "zh": {
        "asks": "用户提到的是{days}（“{words}”）聊过的内容。请用下面那段时间的记录完成用户的要求，用自己的话说。",
        "last_visit": "用户提到的是以前聊过的内容（“{words}”）。上一次来是{days}，下面是那次的记录，"
        "请据此完成用户的要求，用自己的话说；用户也可能指更早的一次。",
        "search": "这些不是全部记录：其中没有的，先用 search_memory 查，查不到再说不知道。",
        "guess": "这些不是全部记录：其中没有的，就说这些记录里没有，不要猜。",
        "whole_day": "那个时段没有聊过，这是当天全天的记录。",
        "said": "当时的原话：",
        "nothing": "用户提到的是{days}（“{words}”）。那段时间没有你们的聊天记录{closest}。用户可能记错了日子："
        "请根据其他已知内容完成用户的要求；确实缺少内容时，再说明没有那段时间的记录。",
        "closest": "，离得最近、有记录的是{closest}",
        "unknown": "用户提到的是{days}（“{words}”）聊过的内容。那段时间的记录现在读不到：请告诉用户。",
    },
}
_NO_RECORD: dict[Language, Mapping[str, str]] = {
    "en": {
        "days": "We didn't talk {days}.",
        "closest": "The closest days with conversations are {closest}. Shall I tell you about one of them?",
        "closest_day": "The closest day with a conversation is {closest}. Shall I tell you about that one?",
        "never": "In fact, we haven't talked before today.",
        "last_visit": "This is our first conversation, so I have no record of an earlier one.",
    },
    "zh": {
        "days": "{days}我们没有聊过天。",
        "closest": "离得最近、有聊天记录的是{closest}，要我说说其中哪一天吗？",
        "closest_day": "离得最近、有聊天记录的是{closest}，要我说说那天聊了什么吗？",
        "never": "其实今天之前我们还没有聊过天。",
        "last_visit": "这是我们第一次聊天，我这里还没有更早的记录。",
    },
}


class DaysSource(Source[DaysResult]):
    """Reads what was said on the days that the message asks about."""

    name = "daily_summaries"

    def __init__(self, days: PastDays) -> None:
        self._days = days

    def is_on(self, draft: PromptDraft) -> bool:
        """Whether days are asked about."""
        return super().is_on(draft) and days_asked(draft) is not None

    async def load(self, draft: PromptDraft) -> DaysResult | None:
        """Records of the days, if days are asked about."""
        asked = days_asked(draft)
        return await self._days.read(asked) if asked else None

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """Return the days, or a note that they cannot be read; the section's data says which they are."""
        asked = days_asked(draft)
        if asked is None:
            return ()
        excluded = draft.excluded | draft.without
        found = (draft.of(DaysSource) or not_known(asked)).without(excluded)
        recalled = (draft.of(RecallSource) or RecallResult()).without(excluded)
        told = shown_days(asked, found, recalled, draft.tokens, most_tokens=self._days.most_tokens)
        return (
            Section(
                "days",
                days_text(
                    told,
                    draft.language,
                    last_visit=asked.reference["kind"] == "last_visit",
                    searches=searches(draft),
                ),
                dropped=told["dropped"],
                message_ids=frozenset([*told["message_ids"], *(said["message_id"] for said in told["said"])]),
                data=told,
            ),
        )


def days_asked(draft: PromptDraft) -> DaysQuery | None:
    """Return the days that a turn's message asks about; None = none."""
    turn, reference = draft.turn, draft.reference
    # What was said a moment ago is in the conversation itself, unless that has just begun.
    if reference is None or reference["kind"] == "past" or (reference["kind"] == "just_now" and not turn.begins):
        return None
    return DaysQuery(
        owner=draft.owner,
        conversation_id=turn.conversation_id,
        message_id=turn.user_message_id,
        reference=reference,
        message=turn.message,
        now=turn.now,
        timezone=turn.timezone,
    )


def shown_days(
    asked: DaysQuery, found: DaysResult, recalled: RecallResult, tokens: TokenEstimator, *, most_tokens: int
) -> AskedDays:
    """Return what the prompt shows: summaries of days within `most_tokens`, and for a detail up to 20 messages.

    The messages are those of that time that are relevant to the question. If recall has none, perhaps because it
    was late, they are searched by their words; if none shares one, the newest are used.
    """
    days = [_Day.of(asked, day, tokens) for day in found.days]
    summaries, dropped = _summaries(days, tokens.count, most_tokens)
    quoted = {str(day.date): day.message_ids for day in days}
    said: list[SaidThenLine] = []
    if found.known and (asked.reference["detail"] or not found.days):
        said = _said(asked, found, recalled, tokens)
    return AskedDays(
        matched_text=asked.reference["matched_text"],
        start=str(found.start),
        end=str(found.end),
        closest=[str(day) for day in found.closest],
        whole_day=found.whole_day,
        known=found.known,
        summaries=summaries,
        said=said,
        to_summarise=[str(visit_id) for visit_id in found.unprepared],
        message_ids=[name for day in summaries for name in quoted[day["date"]]],
        dropped=dropped,
    )


@dataclass(frozen=True)
class _Day:
    """A day in words, at full length."""

    date: date
    text: str
    key_topics: Sequence[str]
    exchanges: Sequence[Sequence[str]] = ()
    """Messages of both sides, a line each; each message of the user begins an exchange."""
    message_ids: Sequence[str] = ()

    @classmethod
    def of(cls, asked: DaysQuery, day: ToldDay, tokens: TokenEstimator) -> "_Day":
        words, speakers = set(terms(asked.message)), SPEAKERS[language_of([asked.message])]
        zone = time_zone(asked.timezone)
        exchanges: list[list[str]] = []
        for each in day.said:
            text = excerpt(" ".join(each.content.split()), words, tokens, _TOKENS_OF_A_LINE)
            who = one_line(each.speaker or "") or speakers[each.role]
            line = f"{each.created_at.astimezone(zone):%H:%M} {who}: {text}"
            if each.role == "user" or not exchanges:
                exchanges.append([])
            exchanges[-1].append(line)
        return cls(day.date, day.text, day.key_topics, exchanges, [str(each.id) for each in day.said])

    @property
    def whole(self) -> str:
        """The whole day; messages are indented, so that they do not look like another day."""
        lines = [line for exchange in self.exchanges for line in exchange]
        return _INDENT.join([self.text, *lines] if self.text else lines)


def _summaries(
    days: Sequence[_Day], count: Callable[[str], int], most_tokens: int
) -> tuple[list[DaySummary], list[dict[str, object]]]:
    dropped: list[dict[str, object]] = []
    most_days = max(1, most_tokens // _LEAST_TOKENS)
    if len(days) > most_days:
        dropped.append({"section": "days", "items": len(days) - most_days, "reason": "over the budget"})
        days = days[-most_days:]
    sizes = [count(day.whole) for day in days]
    if sum(sizes) <= most_tokens:
        return [DaySummary(date=str(day.date), text=day.whole) for day in days], dropped
    # Long days get the room that short ones leave.
    share, left, waiting = 0, most_tokens, len(days)
    for size in sorted(sizes):
        share = left // waiting
        left -= min(size, share)
        waiting -= 1
    return [DaySummary(date=str(day.date), text=_cut(day, share, count)) for day in days], dropped


def _cut(day: _Day, most: int, count: Callable[[str], int]) -> str:
    """Return the first sentences that fit, otherwise the topics of the day; of messages, some from each part."""
    if count(day.whole) <= most:
        return day.whole
    if day.exchanges:
        return _some_lines(day, most, count)
    kept = ""
    for sentence in sentences(day.text):
        if count(kept + sentence.text) > most:
            break
        kept += sentence.text
    kept = kept.strip() or "; ".join(day.key_topics)
    while count(kept) > most:
        kept = kept[: int(len(kept) * 0.8)]
    return f"{kept}…"


def _some_lines(day: _Day, most: int, count: Callable[[str], int]) -> str:
    """Return as many exchanges as fit, evenly from the whole day, each line with an equal share of the room."""
    every = [*([[day.text]] if day.text else []), *day.exchanges]
    number = min(len(every), max(1, most // (2 * _LEAST_TOKENS)))
    chosen = [line for place in range(number) for line in every[place * len(every) // number]]
    room = max(1, most // len(chosen))
    kept = []
    for line in chosen:
        short = line
        while count(short) > room and len(short) > 1:
            short = short[: int(len(short) * 0.85)]
        kept.append(short if short == line else f"{short}…")
    return _INDENT.join(kept)


def _said(
    asked: DaysQuery, found: DaysResult, recalled: RecallResult, tokens: TokenEstimator
) -> list[SaidThenLine]:
    """Return the best messages of that time, as many as fit, in order of time."""
    hours = asked.reference["hours"] if not found.whole_day else None
    lower, upper = (
        hours_of(found.start, hours, asked.timezone) if hours else bounds(found.start, found.end, asked.timezone)
    )
    units = [recalled.units[ranked.unit.id] for ranked in recalled.ranking.results]
    best = [
        (unit.created_at, unit.message_id, unit.role, unit.speaker, unit.text)
        for unit in units
        if unit.message_id and lower <= unit.created_at < upper
    ]
    words, speakers = set(terms(asked.message)), SPEAKERS[language_of([asked.message])]
    if not best:
        shared = {each.id: len(words.intersection(terms(each.content))) for each in found.said}
        nearest = sorted(found.said, key=lambda each: (shared[each.id], each.created_at, each.id), reverse=True)
        best = [(each.created_at, each.id, each.role, each.speaker, each.content) for each in nearest]
    lines: list[tuple[datetime, UUID, SaidThenLine]] = []
    size = 0
    for at, message_id, role, speaker, text in best[:_MOST_SAID]:
        line = SaidThenLine(
            message_id=str(message_id),
            at=at.astimezone(time_zone(asked.timezone)).strftime("%Y-%m-%d %H:%M"),
            speaker=one_line(speaker or "") or speakers[role],
            text=excerpt(" ".join(text.split()), words, tokens, _TOKENS_OF_ONE),
        )
        size += tokens.count(line["text"])
        if lines and size > _SAID_TOKENS:
            break
        lines.append((at, message_id, line))
    return [line for _, _, line in sorted(lines, key=lambda each: each[:2])]


def days_text(asked: AskedDays, language: Language, *, last_visit: bool = False, searches: bool = True) -> str:
    """Return the text of the section.

    Args:
        last_visit: whether the user named no day, but “last time”, which may be any earlier one.
        searches: whether the model can look for what the records do not have.
    """
    tells = bool(asked["summaries"] or asked["said"])
    kind = ("last_visit" if last_visit else "asks") if tells else "nothing" if asked["known"] else "unknown"
    days = _named(asked["start"], asked["end"], language)
    headings = _HEADINGS[language]
    closest = ("、" if language == "zh" else ", ").join(_day_named(day, language) for day in asked["closest"])
    closest = headings["closest"].format(closest=closest) if closest else ""
    heading = headings[kind].format(days=days, words=inert(asked["matched_text"]), closest=closest)
    if asked["whole_day"]:
        heading += headings["whole_day"]
    if tells:
        heading += headings["search" if searches else "guess"]
    lines = [f"- [{_day_named(each['date'], language)}] {each['text']}" for each in asked["summaries"]]
    if asked["said"]:
        lines.append(headings["said"])
        lines += [f"- [{each['at']}] {each['speaker']}: {each['text']}" for each in asked["said"]]
    return f"{heading}\n{tagged(MEMORY, inert(chr(10).join(lines)))}" if lines else heading


def no_record(reference: TimeReference, asked: AskedDays, today: date, language: Language) -> str:
    """Return the answer to a plain question about a time without records, naming the nearest days that have
    some. A year is named if it is not that of `today`."""
    words = _NO_RECORD[language]
    if reference["start_date"] is None:
        return words["last_visit"]
    start, end = (_spoken(asked[key], today, language) for key in ("start", "end"))
    if language == "zh":
        days = start if start == end else f"{start}到{end}"
    else:
        days = f"on {start}" if start == end else f"between {start} and {end}"
    closest = [_spoken(day, today, language) for day in asked["closest"]]
    kind = "closest" if len(closest) > 1 else "closest_day" if closest else "never"
    joint = "和" if language == "zh" else " and "
    more = words[kind].format(closest=joint.join(closest))
    return f"{words['days'].format(days=days)}{'' if language == 'zh' else ' '}{more}"


def _named(start: str, end: str, language: Language) -> str:
    if start == end:
        return _day_named(start, language)
    between = "{} to {}" if language == "en" else "{}到{}"
    return between.format(_day_named(start, language), _day_named(end, language))


def _day_named(day: str, language: Language) -> str:
    found = date.fromisoformat(day)
    weekday = WEEKDAYS[language][found.weekday()]
    if language == "zh":
        return f"{found.year}年{found.month}月{found.day}日{weekday}"
    return f"{weekday}, {found.isoformat()}"


def _spoken(day: str, today: date, language: Language) -> str:
    """Return a day as people say it: Tuesday, November 17; 11月17日（星期二）."""
    found = date.fromisoformat(day)
    weekday = WEEKDAYS[language][found.weekday()]
    if language == "zh":
        year = f"{found.year}年" if found.year != today.year else ""
        return f"{year}{found.month}月{found.day}日（{weekday}）"
    year = f", {found.year}" if found.year != today.year else ""
    return f"{weekday}, {_MONTHS[found.month - 1]} {found.day}{year}"
