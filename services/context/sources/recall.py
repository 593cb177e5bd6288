"""Earlier conversations in the prompt: what was recalled, is relevant, and is not shown elsewhere."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from services.context.source import MEMORY, PromptDraft, Source, inert
from services.context.sources.already_said import ALREADY_SAID, AlreadySaid, needless, unit_covered
from services.llm.token_estimates import TokenEstimator
from services.memory.episodes.episode import StoredUnit
from services.memory.recall.recall import Recall, RecallResult
from services.memory.removal.exclusions import is_excluded
from services.platform.metrics import RECALLED
from services.search.hits import Ranked, Ranking
from services.search.selection import Recalled, select
from services.text.language import Language, language_of, sentences
from services.text.marks import one_line
from services.text.tokenizer import shared_terms, terms
from services.time_reference.local_days import bounds, hours_of, time_zone
from state.prompt import RecalledEpisode
from state.section import Item, Section

NEVER_USED_HERE = "never used here"
LEFT_OUT_ONCE = "left out of this answer"
_DEPTH = 20
_REPORTED = 12
_MOST_TOKENS_OF_ONE = 110
_LONGEST_QUESTION = 160
"""Characters shown of the question that an answer belongs to."""
SPEAKERS: dict[Language, dict[str, str]] = {
    "en": {"user": "User", "assistant": "You"},
    "zh": {"user": "用户", "assistant": "你"},
}
_UNTIL: dict[Language, str] = {"en": "{}, until {}", "zh": "{}，到{}为止"}
_PRIORITY = 10
_HEADING: dict[Language, str] = {
    "en": "From earlier conversations, may bear on this message:",
    "zh": "以往对话中可能与这条消息有关的内容：",
}


def recall_section(episodes: Sequence[RecalledEpisode], report: Mapping[str, Any], language: Language) -> Section:
    """Return episodes as a section, best first."""
    return Section(
        "recall",
        f"{_HEADING[language]}\n<{MEMORY}>" if episodes else "",
        items=[
            Item(inert(f"- [{each['date']}] {each['text']}"), about={"episode_id": each["episode_id"]})
            for each in episodes
        ],
        closing=f"</{MEMORY}>" if episodes else "",
        priority=_PRIORITY,
        data=report,
    )


class RecallSource(Source[RecallResult]):
    """Recalls for a turn, and selects what its prompt shows."""

    name = "recall"
    features = frozenset({"recall"})
    within_s = None

    def __init__(self, recall: Recall, *, max_items: int, max_tokens: int) -> None:
        """Take the maximum number of episodes, and of their tokens, in a prompt."""
        self._recall = recall
        self._max_items = max_items
        self._max_tokens = max_tokens

    def when_off(self) -> RecallResult:
        """Return an empty result: nothing is recalled."""
        return RecallResult()

    async def load(self, draft: PromptDraft) -> RecallResult:
        """Recall, if there is anything to recall; it sets its own time limits and never fails. A plain question
        about the last visit is answered from that visit only, which another section shows."""
        turn, asked = draft.turn, draft.reference
        if not turn.remembers or (asked and asked["plain"] and asked["kind"] == "last_visit"):
            return RecallResult()
        # Started before the history is awaited, so that one round trip reads both.
        loaded = await self._recall.load(turn)
        then = None
        if asked and asked["start_date"] and asked["end_date"]:
            then = bounds(asked["start_date"], asked["end_date"], turn.timezone)
            if asked["hours"]:
                then = hours_of(asked["start_date"], asked["hours"], turn.timezone)
        return await self._recall.for_turn(
            turn, await draft.earlier_messages(), reference=asked, then=then, loaded=loaded
        )

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """Return what is relevant to the message and not shown elsewhere; the section's data is the report."""
        found = draft.of(RecallSource) or RecallResult()
        for name in found.degraded:
            draft.went_without(name)
        if found.query is None:
            return ()
        tokens, limits = draft.tokens, draft.turn.recall_limits
        not_here, not_now = draft.excluded, draft.without
        best = found.ranking.results[:_DEPTH]
        excluded = _excluded(best, found.units, not_here, not_now) if found.units and (not_here or not_now) else {}
        floor, query = found.floor, found.query
        least = floor.of_each(max((each.likelihood for each in best if each.unit.id not in excluded), default=0.0))
        of_past = draft.reference is not None or floor.then is not None
        excluded |= needless(
            [ranked for ranked in best if ranked.unit.id not in excluded],
            found.units,
            AlreadySaid() if of_past else AlreadySaid.by(draft),
            least=least,
            asks_of_past=of_past or (query.asks and query.of_oneself),
            asks_of_answers=of_past or query.of_assistant,
        )
        usable = [ranked for ranked in best if ranked.unit.id not in excluded]
        asked = terms(query.text)
        short = [
            _shortened(ranked, asked, tokens)
            if ranked.likelihood >= least or floor.admits_by_time(ranked)
            else ranked  # it will not be shown
            for ranked in usable
        ]
        language = language_of([query.text])

        def shown(recalled: Recalled) -> RecalledEpisode:
            return _shown(recalled, found, language, draft.turn.timezone, not_here | not_now)

        selection = select(
            Ranking(tuple(short)),
            floor=floor,
            shown=draft.shown_messages,
            covers=unit_covered,
            best_known=max(
                (each.likelihood for each in best if excluded.get(each.unit.id) == ALREADY_SAID), default=0.0
            ),
            count_tokens=lambda recalled: tokens.count(shown(recalled)["text"]),
            max_items=(limits and limits["items"]) or self._max_items,
            max_tokens=(limits and limits["tokens"]) or self._max_tokens,
            depth=_DEPTH,
        )
        RECALLED.inc(sum(len(recalled.units) for recalled in selection.recalled))
        episodes = [shown(recalled) for recalled in selection.recalled]
        reasons = excluded | {excluded.unit_id: excluded.reason for excluded in selection.excluded}
        return (recall_section(episodes, _report(found, best, reasons), draft.language),)


def _excluded(
    best: Sequence[Ranked], units: Mapping[str, StoredUnit], not_here: Collection[str], not_now: Collection[str]
) -> dict[str, str]:
    """Return why each of the units that the user excluded is left out, by unit id."""
    return {
        unit_id: NEVER_USED_HERE if is_excluded(units[unit_id], not_here) else LEFT_OUT_ONCE
        for unit_id in (ranked.unit.id for ranked in best)
        if is_excluded(units[unit_id], not_here) or is_excluded(units[unit_id], not_now)
    }


def excerpt(text: str, asked: Collection[str], tokens: TokenEstimator, most: int = _MOST_TOKENS_OF_ONE) -> str:
    """Return the sentences of a long text around the one that shares the most terms with the question."""
    if tokens.count(text) <= most:
        return text
    pieces = [sentence.text for sentence in sentences(text)]
    shares = shared_terms(pieces, asked)
    first = last = shares.index(max(shares))
    while True:
        wider = [place for place in (first - 1, last + 1) if 0 <= place < len(pieces)]
        wider = [at for at in wider if tokens.count("".join(pieces[min(at, first) : max(at, last) + 1])) <= most]
        if not wider:
            break
        best = max(wider, key=lambda at: (shares[at], at))
        first, last = min(first, best), max(last, best)
    cut = "".join(pieces[first : last + 1]).strip()
    while tokens.count(cut) > most:
        cut = cut[: int(len(cut) * 0.8)]
    return f"{'…' if first else ''}{cut}{'…' if last + 1 < len(pieces) or cut not in text[-len(cut) :] else ''}"


def _shortened(ranked: Ranked, asked: Collection[str], tokens: TokenEstimator) -> Ranked:
    text = excerpt(ranked.unit.text, asked, tokens)
    return ranked if text is ranked.unit.text else ranked._replace(unit=ranked.unit._replace(text=text))


def _shown(
    recalled: Recalled, found: RecallResult, language: Language, timezone: str, hidden: Collection[str]
) -> RecalledEpisode:
    lines = []
    shown = {ranked.unit.message_id for ranked in recalled.units} | set(hidden)
    for ranked in recalled.units:
        stored = found.units[ranked.unit.id]
        if stored.question and str(stored.question_id) not in shown:
            asked_by = one_line(stored.question_speaker or "") or SPEAKERS[language]["user"]
            lines.append(f"{asked_by}: {_beginning(stored.question)}")
        who = one_line(stored.speaker or "") or SPEAKERS[language][stored.role]
        said = " ".join(ranked.unit.text.split())
        lines.append(f"{who}: {said}" if stored.message_id else said)
    zone = time_zone(timezone)
    date = recalled.best.unit.created_at.astimezone(zone).date().isoformat()
    if (until := found.units[recalled.best.unit.id].valid_until) is not None:
        date = _UNTIL[language].format(date, until.astimezone(zone).date().isoformat())
    return RecalledEpisode(episode_id=recalled.episode_id, date=date, text="\n  ".join(lines))


def _beginning(question: str) -> str:
    text = " ".join(question.split())
    return text if len(text) <= _LONGEST_QUESTION else f"{text[:_LONGEST_QUESTION]}…"


def _report(found: RecallResult, best: Sequence[Ranked], reasons: Mapping[str, str]) -> dict[str, Any]:
    return {
        "queries": [text[:300] for text in found.query.texts] if found.query else [],
        "hits": [_hit(ranked, reasons) for ranked in sorted(best, key=lambda each: -each.likelihood)[:_REPORTED]],
        "found": found.ranking.found,
        "degraded": list(found.degraded),
        "ms": found.milliseconds,
        "loading_ms": found.loading_milliseconds,
    }


def _hit(ranked: Ranked, reasons: Mapping[str, str]) -> dict[str, Any]:
    hit: dict[str, Any] = {
        "unit_id": ranked.unit.id,
        "episode_id": ranked.unit.episode_id,
        "score": round(ranked.score, 4),
        "relevance": round(ranked.words, 3),
        "likelihood": round(ranked.likelihood, 3),
        "ranks": ranked.ranks,
    }
    if ranked.cosine is not None:
        hit["cosine"] = round(ranked.cosine, 3)
    if ranked.unit.id in reasons:
        hit["left_out"] = reasons[ranked.unit.id]
    return hit
