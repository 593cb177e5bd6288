"""Decides what memory keeps of a turn that changes memory: neither the order to forget, nor anything that repeats
what goes.

A message off the record stays in its conversation, so the model reads it in every later turn and may repeat it,
and the user may ask about it.
"""

from collections.abc import Sequence
from dataclasses import replace

from services.memory.planning.closure import without_repetition
from services.memory.planning.wording import this_message
from services.memory.reading.what_stays import clauses_of, what_stays
from services.memory.reading.words import Words, says, shares_name
from services.text.language import SEMICOLONS, Language, sentences
from services.text.tokenizer import informative_terms
from state.memory import MemoryChange, PlannedChange
from state.turn import OpenTurn


def of_own_turn(
    turn: OpenTurn,
    answer: str,
    planned: Sequence[PlannedChange],
    made: Sequence[tuple[MemoryChange, str]],
    off_record: Sequence[str],
    language: Language,
) -> list[PlannedChange]:
    """Return the plans of a turn, with the text that memory keeps of its message and its answer.

    Args:
        turn: The turn.
        answer: Its answer, as far as it was written.
        planned: Changes by plain forms of its message.
        made: Changes by its tools, with the words that named them.
        off_record: What was said off the record before in its conversation.
        language: Language in which changes are told.
    """
    plans = list(planned)
    outside = next((at for at, each in enumerate(plans) if each.changes and each.own == "off the record"), None)
    if outside is not None:
        plans[outside] = replace(plans[outside], messages=_of_turn(turn, answer, None, None))
        return plans
    if any(change["kind"] == "do_not_remember" and turn.message in change["items"] for change, _ in made):
        return [*plans, _untold(_of_turn(turn, answer, None, None, message_too=False), language, off_record=True)]
    cut = next((at for at, each in enumerate(plans) if each.changes and each.own == "cut"), None)
    forgets = [(change, target) for change, target in made if change["kind"] == "forget"]
    removed = [text for each in plans if each.changes for text in each.removed]
    removed += [text for change, _ in forgets for text in change["items"]]
    message = turn.message
    for each in plans if cut is not None else ():
        message = _without_order(message, each.order) if each.order else message
    if cut is not None:
        message = what_stays(message, lambda clause: any(says(clause, text) for text in removed)).text
    else:
        message = _without_removed(message, removed, [target for _, target in forgets if target])
    left = without_repetition(answer, removed) if removed else answer
    if message == turn.message and left == answer:
        return [*plans, *_of_repetition(turn, answer, off_record, language)]
    texts = _of_turn(turn, answer, message, left)
    if cut is None:
        return [*plans, _untold(texts, language)]
    plans[cut] = replace(plans[cut], messages={**plans[cut].messages, **texts})
    return plans


def _of_turn(
    turn: OpenTurn, answer: str, message: str | None, left: str | None, *, message_too: bool = True
) -> dict[str, str | None]:
    """Return the texts that memory keeps of a turn from which something goes."""
    texts = {str(turn.user_message_id): message or None} if message_too and message != turn.message else {}
    if answer and left != answer:
        texts[str(turn.answer_message_id)] = left or None
    return texts


def _untold(texts: dict[str, str | None], language: Language, *, off_record: bool = False) -> PlannedChange:
    change = this_message(language)
    if off_record:
        return PlannedChange.leaving_out(change, messages=texts, is_told=False)
    return replace(PlannedChange.forgetting(change, messages=texts), is_told=False, reaches_shared=False)


def _without_order(message: str, order: str) -> str:
    return "".join(each.text for each in sentences(message) if each.text.strip() != order.strip()).strip()


def _without_removed(message: str, removed: Sequence[str], targets: Sequence[str]) -> str:
    """Return the rest of a message after something that it says was forgotten.

    The clauses that say it go. If there are none, the clauses go that have all words by which it was named; if
    there are none either, those with one of its names, or else the clause that shares most words with it, because
    that clause is the order.
    """
    if not removed:
        return message
    sought = [Words.of(each) for each in targets]
    for goes in (
        lambda clause: any(says(clause, text) for text in removed),
        lambda clause: any(each.covered_by(Words.of(clause)) for each in sought),
        lambda clause: shares_name(clause, removed),
    ):
        rest = what_stays(message, goes)
        if rest.gone:
            return rest.text
    told = Words.of("\n".join([*removed, *targets]))
    clauses = [each.text for sentence in sentences(message, SEMICOLONS) for each in clauses_of(sentence)]
    nearest = max(clauses, key=lambda each: told.share_in(Words.of(each)), default="")
    if not told.share_in(Words.of(nearest)):
        return message
    return what_stays(message, lambda clause: clause == nearest).text


def _of_repetition(
    turn: OpenTurn, answer: str, off_record: Sequence[str], language: Language
) -> list[PlannedChange]:
    """Return the plan that leaves out whatever an answer may repeat from off the record, and questions about it.
    One shared informative word is enough, because a leaked secret is worse than a lost clause of an answer."""
    if not off_record:
        return []
    secret = informative_terms("\n".join(off_record))

    def may_repeat(clause: str) -> bool:
        return not secret.isdisjoint(informative_terms(clause))

    about = [each.text for each in sentences(turn.message) if each.asks and may_repeat(each.text)]
    message = turn.message
    if about:
        message = "".join(each.text for each in sentences(message) if each.text not in about).strip()
    texts = _of_turn(turn, answer, message, what_stays(answer, may_repeat).text)
    return [_untold(texts, language, off_record=True)] if texts else []
