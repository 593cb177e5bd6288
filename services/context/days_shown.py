"""Which of what was said on the days that a message asks about its prompt tells, within its own budget."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from services.context.recalled import SPEAKERS, excerpt
from services.llm.language import language_of
from services.llm.token_estimates import TokenEstimator
from services.memory.recall import RecallResult
from services.memory.terms import terms
from services.summaries.past_days import DaysAsked, DaysFound, ToldDay
from services.time_reference.local_days import local_day
from services.time_reference.zones import time_zone
from state.prompt import AskedDays, DaySummary, SaidThenLine

_MOST_SAID = 20
_SAID_TOKENS = 600
_TOKENS_OF_ONE = 90
_LEAST_TOKENS = 30
"""Of a day; of a long stretch the newest days are told, each so far."""
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*\s*")


def shown_days(
    asked: DaysAsked, found: DaysFound, recalled: RecallResult, tokens: TokenEstimator, *, most_tokens: int
) -> AskedDays:
    """What the prompt tells: days' summaries within `most_tokens`, and for a detail up to 20 messages.

    The messages are those of that time which bear on the question. Where recall has none, also as it was too late,
    they are looked through by their words, and where none shares one, they are the newest.
    """
    summaries, dropped = _summaries(found.days, tokens.count, most_tokens)
    said: list[SaidThenLine] = []
    if found.known and (asked.reference["detail"] or not found.days):
        said = _said(asked, found, recalled, tokens)
    return AskedDays(
        matched_text=asked.reference["matched_text"],
        start=str(found.start),
        end=str(found.end),
        closest=[str(day) for day in found.closest],
        known=found.known,
        summaries=summaries,
        said=said,
        to_summarise=[str(visit_id) for visit_id in found.unprepared],
        dropped=dropped,
    )


def _summaries(
    days: Sequence[ToldDay], count: Callable[[str], int], most_tokens: int
) -> tuple[list[DaySummary], list[dict[str, object]]]:
    dropped: list[dict[str, object]] = []
    most_days = max(1, most_tokens // _LEAST_TOKENS)
    if len(days) > most_days:
        dropped.append({"section": "days", "items": len(days) - most_days, "reason": "over the budget"})
        days = days[-most_days:]
    sizes = [count(day.text) for day in days]
    if sum(sizes) <= most_tokens:
        return [DaySummary(date=str(day.date), text=day.text) for day in days], dropped
    # What short days leave is for the long ones.
    share, left, waiting = 0, most_tokens, len(days)
    for size in sorted(sizes):
        share = left // waiting
        left -= min(size, share)
        waiting -= 1
    return [DaySummary(date=str(day.date), text=_cut(day, share, count)) for day in days], dropped


def _cut(day: ToldDay, most: int, count: Callable[[str], int]) -> str:
    """The first sentences that fit, or else what the day was about."""
    if count(day.text) <= most:
        return day.text
    kept = ""
    for sentence in _SENTENCE.findall(day.text):
        if count(kept + sentence) > most:
            break
        kept += sentence
    kept = kept.strip() or "; ".join(day.key_topics)
    while count(kept) > most:
        kept = kept[: int(len(kept) * 0.8)]
    return f"{kept}…"


def _said(
    asked: DaysAsked, found: DaysFound, recalled: RecallResult, tokens: TokenEstimator
) -> list[SaidThenLine]:
    """The best of that time first, as many as fit; then in order."""
    units = [recalled.units[ranked.unit.id] for ranked in recalled.ranking.results]
    best = [
        (unit.created_at, unit.message_id, unit.role, unit.speaker, unit.text)
        for unit in units
        if unit.message_id and found.start <= local_day(unit.created_at, asked.timezone) <= found.end
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
            speaker=speaker or speakers[role],
            text=excerpt(" ".join(text.split()), words, tokens, _TOKENS_OF_ONE),
        )
        size += tokens.count(line["text"])
        if lines and size > _SAID_TOKENS:
            break
        lines.append((at, message_id, line))
    return [line for _, _, line in sorted(lines, key=lambda each: each[:2])]
