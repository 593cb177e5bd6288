"""Turns facts found by rules into operations of the memory agent."""

from collections.abc import Mapping, Sequence
from typing import Any

from services.memory.agent.fact import Fact
from services.memory.agent.plan import HUMAN, MOST_OPERATIONS, Content, CoreChange, NewMemory, Plan
from services.memory.episodes.episode import IMPORTANCE, WrittenType
from services.memory.items import SINGLE_FIELDS, find_item
from services.text.contradictions import claim_of
from services.text.language import language_of


def plan_of_facts(facts: Sequence[Fact], core: Content, *, has_core: bool) -> Plan:
    """Return facts as operations: decisions become episodes, all others go to core memory.

    Args:
        facts: what the user stated.
        core: current core memory.
        has_core: whether core memory is on; without it all become episodes.
    """
    human = core.get(HUMAN, {})
    plan: Plan = []
    for fact in facts:
        if fact.field == "decision":
            plan.append(_episode("decision", fact.text))
        elif not has_core:
            kind: WrittenType = "preference" if fact.field == "preferences" else "context"
            if not fact.ended:
                plan.append(_episode(kind, _sentence(fact)))
        elif fact.ended:
            if find_item(human.get(fact.field), fact.text) is not None:
                plan.append(CoreChange(action="remove", field=fact.field, old=fact.text))
        elif not _denies_what_is_unlike(fact, human):
            action = "replace" if fact.field in SINGLE_FIELDS and isinstance(human.get(fact.field), str) else "add"
            plan.append(
                CoreChange(action="add" if action == "add" else "replace", field=fact.field, value=fact.text)
            )
    return plan[:MOST_OPERATIONS]


def _denies_what_is_unlike(fact: Fact, human: Mapping[str, Any]) -> bool:
    """Whether a fact only denies a value that a single-valued field does not have."""
    there = human.get(fact.field)
    if fact.field not in SINGLE_FIELDS or not isinstance(there, str):
        return False
    denies = fact.text.startswith(("no longer ", "不再"))
    return denies and not claim_of(fact.text).contradicts(claim_of(there))


def _episode(episode_type: WrittenType, content: str) -> NewMemory:
    return NewMemory(episode_type=episode_type, content=content, importance=IMPORTANCE[episode_type])


_SENTENCES = {
    "zh": {
        "name": "用户叫{}。",
        "preferred_name": "用户希望被称为{}。",
        "allergies": "用户对{}过敏。",
        "": "用户{}。",
    },
    "en": {
        "name": "The user is called {}.",
        "preferred_name": "The user wants to be called {}.",
        "allergies": "The user is allergic to {}.",
        "": "The user {}.",
    },
}


def _sentence(fact: Fact) -> str:
    sentences = _SENTENCES[language_of([fact.text])]
    bare = fact.field not in sentences and not fact.text[:1].islower() and language_of([fact.text]) == "en"
    return (
        f"{fact.field.replace('_', ' ').capitalize()}: {fact.text}."
        if bare
        else sentences.get(fact.field, sentences[""]).format(fact.text)
    )
