"""Parses a small model's answer to the memory agent leniently: valid operations are kept."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import structlog
from pydantic import BaseModel, Field

from services.errors import BadModelOutput, InvalidInput
from services.llm.structured_output import json_answer
from services.memory.agent.plan import (
    HUMAN,
    MOST_OPERATIONS,
    CoreChange,
    Forgetting,
    Known,
    NewMemory,
    Plan,
    Planned,
    Retirement,
)
from services.memory.content import check_section, check_values
from services.memory.episodes.episode import IMPORTANCE, WrittenType
from services.memory.items import LIST_FIELDS, find_item, item_text
from services.memory.merge import canonical

_LONGEST_CONTENT = 500
_LONGEST_VALUE = 300
_LONGEST_PATCH = 2000
"""Characters."""
_TEN = 10.0
"""Many models rate from 1 to 10, whatever they are asked for; some in percent."""

log = structlog.get_logger(__name__)


class Operation(BaseModel):
    """One operation, in the requested form."""

    op: str = Field(description="add, replace, remove, remember, update, supersede, correct or forget")
    id: str = Field("", description="short id of what is changed: c1 (core memory), e1 (episode)")
    field: str = Field("", description="field of core memory, for add")
    text: str = Field("", description="the new item, or the sentence to remember")
    type: str = Field("", description="of remember: preference, decision, context or outcome")
    importance: float = Field(0.0, description="of remember: 0 to 1")


class Operations(BaseModel):
    """The whole answer."""

    operations: list[Operation]


class _Listed(BaseModel):
    operations: list[Any]


_WORDS: dict[str, tuple[str, ...]] = {
    "add": ("add", "insert", "create", "append", "new", "set", "store", "save", "添加", "新增", "增加"),
    "replace": ("replace", "update", "change", "modify", "edit", "correct", "fix", "替换", "更新", "更正"),
    "remove": ("remove", "delete", "forget", "drop", "clear", "erase", "supersede", "retire", "删除", "忘掉"),
    "remember": ("remember", "memorize", "memorise", "note", "record", "记住", "记录"),
    "none": ("none", "noop", "no_op", "skip", "ignore", "nothing", "keep", "无"),
}  # fmt: skip
_FORGETS = frozenset(["forget", "忘掉"])
_OPERATIONS = {word: name for name, words in _WORDS.items() for word in words}
_NAMES: dict[str, tuple[str, ...]] = {
    "op": ("op", "operation", "action", "operations"),
    "id": ("id", "episode", "target", "item", "ref", "episode_id", "item_id"),
    "field": ("field", "key", "attribute", "category", "name"),
    "text": ("text", "content", "value", "fact", "new", "sentence", "new_value", "memory_text"),
    "old": ("old", "replaces", "old_value", "old_text"),
    "type": ("type", "episode_type", "kind"),
    "patch": ("patch", "changes", "data"),
}
_SECTIONS = {"user": HUMAN, "human": HUMAN, "profile": HUMAN, "core": HUMAN, "": HUMAN, "用户": HUMAN}
_TYPES: dict[str, WrittenType] = {
    **dict.fromkeys(("preference", "preferences", "like", "taste", "偏好"), "preference"),
    **dict.fromkeys(("decision", "choice", "plan", "决定"), "decision"),
    **dict.fromkeys(("outcome", "result", "event", "结果"), "outcome"),
}
_ID = re.compile(r"^\W*(?:([ce])\w*?[ _#:-]*)?(\d+)\W*$", re.IGNORECASE)


def plan_of_answer(text: str, known: Known) -> Plan:
    """Return a model's answer as a plan.

    Operation names in any case, synonyms, null fields, bare lists and merge patches are accepted. What cannot be
    carried out (an unknown id, nothing to store, too long a text) is dropped with a logged reason, and so are
    operations beyond the eighth.

    Raises:
        BadModelOutput: it has no list of operations, or none of them is usable.
    """
    asked = json_answer(_Listed, text, items="operations").operations
    plan: Plan = []
    reasons: list[str] = []
    for number, each in enumerate(asked, 1):
        try:
            plan += _planned(each, known)
        except BadModelOutput as error:
            reasons.append(f"operation {number}: {error.message}")
    if reasons:
        log.info("operations were dropped", reasons=reasons, kept=len(plan))
    if reasons and not plan and len(reasons) == len(asked):
        raise BadModelOutput("; ".join(reasons[:MOST_OPERATIONS]))
    if len(plan) > MOST_OPERATIONS:
        log.info("operations were dropped", reasons=[f"more than {MOST_OPERATIONS}"], kept=MOST_OPERATIONS)
    return plan[:MOST_OPERATIONS]


def _planned(asked: Any, known: Known) -> list[Planned]:
    if not isinstance(asked, Mapping):
        raise BadModelOutput("is no object")
    fields = _fields(asked)
    op = _OPERATIONS.get(str(fields.get("op", "")).strip().casefold().replace(" ", "_"))
    if op == "none":
        return []
    if op is None:
        raise BadModelOutput("its name is unknown")
    patch = fields.get("patch", fields["text"] if isinstance(fields.get("text"), Mapping) else None)
    if isinstance(patch, Mapping):
        return list(_of_patch(op, _section(fields), patch))
    if str(fields.get("op", "")).strip().casefold() in _FORGETS:
        return _of_forgetting(fields, known)
    return [_of_one(op, fields, known, episode="episode" in asked)]


def _of_forgetting(fields: Mapping[str, Any], known: Known) -> list[Planned]:
    """Return the operation to forget what a text or an id names, after the item of core memory was removed."""
    kind, number = _id(fields.get("id"), episode=False)
    target = _text(fields.get("text"))
    if number and kind == "e":
        old = known.episodes().get(f"e{number}")
        target = old.content if old and old.changeable else target
    elif number:
        target = known.items().get(f"c{number}", ("", "", target))[2]
    if not target or len(target) > _LONGEST_VALUE:
        raise BadModelOutput("it does not say what to forget")
    try:
        removal: list[Planned] = [] if kind == "e" else [_of_item("remove", number, target, fields, known)]
    except BadModelOutput:
        removal = []
    return [*removal, Forgetting(target=target)]


def _of_one(op: str, fields: Mapping[str, Any], known: Known, *, episode: bool) -> Planned:
    kind, number = _id(fields.get("id"), episode=episode or fields.get("memory") == "episode")
    value = _text(fields.get("text"))
    if kind == "e":
        return _of_episode(op, number, value, fields, known)
    if op == "remember" or (op == "add" and (fields.get("memory") == "episode" or not fields.get("field"))):
        return _new_memory(value, fields, None)
    return _of_item(op, number, value, fields, known)


def _fields(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return an operation's fields under their requested names."""
    given = {str(key).strip().casefold(): value for key, value in asked.items() if value is not None}
    found: dict[str, Any] = {}
    for name, others in _NAMES.items():
        for other in others:
            if other in given and name not in found:
                found[name] = given[other]
    kind = str(found.get("type", "")).casefold()
    if "op" not in found and kind in _OPERATIONS:
        found["op"] = found.pop("type")
    memory = str(given.get("memory", "")).casefold()
    if memory in ("core", "episode"):
        found["memory"] = memory
    elif memory and "text" not in found:
        found["text"] = given["memory"]
    return {**found, "section": given.get("section", ""), "importance": given.get("importance")}


def _section(fields: Mapping[str, Any]) -> str:
    named = str(fields.get("section", "")).strip()
    return _SECTIONS.get(named.casefold(), named)


def _id(given: Any, *, episode: bool) -> tuple[str, int]:
    """Return the list that an id belongs to (`c`, `e` or neither) and its number."""
    found = _ID.match(str(given)) if given is not None and not isinstance(given, list | dict) else None
    if found is None:
        return ("e", -1) if episode and given is not None else ("", 0)
    return (found[1] or ("e" if episode else "c")).casefold(), int(found[2][:6])


def _text(given: Any) -> str:
    text = item_text(given).strip() if given is not None else ""
    if "\x00" in text:  # PostgreSQL accepts none
        raise BadModelOutput("its text holds a NUL character")
    return text


def _of_episode(op: str, number: int, value: str, fields: Mapping[str, Any], known: Known) -> Planned:
    old = known.episodes().get(f"e{number}")
    if old is None:
        raise BadModelOutput("there is no such episode")
    if not old.changeable:
        raise BadModelOutput(f"e{number} is what was said, and cannot be changed")
    if op == "remove" and not value:
        return Retirement(episode_id=old.id)
    if op == "remove" and str(fields.get("op", "")).casefold() != "supersede":
        return Retirement(episode_id=old.id)
    kept = {"type": old.episode_type, **{key: given for key, given in fields.items() if given not in (None, "")}}
    return _new_memory(value, kept, old)


def _new_memory(value: str, fields: Mapping[str, Any], replaces: Any) -> NewMemory:
    if not value:
        raise BadModelOutput("there is no text to remember")
    if len(value) > _LONGEST_CONTENT:
        raise BadModelOutput(f"its text has more than {_LONGEST_CONTENT} characters")
    kind: WrittenType = _TYPES.get(str(fields.get("type", "")).strip().casefold(), "context")
    importance = _importance(fields.get("importance"), IMPORTANCE[kind])
    return NewMemory(
        episode_type=kind, content=value, importance=importance, replaces=replaces.id if replaces else None
    )


def _importance(given: Any, usual: float) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError, OverflowError):
        return usual
    if value > 1:
        value /= _TEN if value <= _TEN else _TEN * _TEN
    return value if 0 < value <= 1 else usual


def _of_item(op: str, number: int, value: str, fields: Mapping[str, Any], known: Known) -> CoreChange:
    section, name = _section(fields), str(fields.get("field", "")).strip()
    old = _text(fields.get("old")) or None
    if number:
        items = known.items()
        if f"c{number}" not in items:
            raise BadModelOutput(f"there is no item c{number}")
        section, name, old = items[f"c{number}"]
    elif op == "remove" and old is None:
        old, value = value or None, ""
        if not name and old:
            section, name = _where(old, known)
    if not name:
        raise BadModelOutput("it names neither an id nor a field")
    if op == "remove":
        return CoreChange(action="remove", section=section, field=name, old=old)
    if not value:
        raise BadModelOutput("there is no text to store")
    if len(value) > _LONGEST_VALUE:
        raise BadModelOutput(f"its text has more than {_LONGEST_VALUE} characters")
    action = "replace" if op == "replace" and (old is not None or name not in LIST_FIELDS) else "add"
    there = known.core.get(section, {}).get(name)
    shown = None if isinstance(there, str) and number else old
    return _checked(CoreChange(action=action, section=section, field=name, value=value, old=shown))


def _where(text: str, known: Known) -> tuple[str, str]:
    """Return the only field with an item that a text names."""
    found = [
        (section, name)
        for section, content in known.core.items()
        for name, value in content.items()
        if find_item(value, text) is not None
    ]
    if len(found) != 1:
        raise BadModelOutput("it names no item of core memory, or several")
    return found[0]


def _of_patch(op: str, section: str, patch: Mapping[str, Any]) -> Iterator[CoreChange]:
    """Yield the item changes of a merge patch, which models write unasked."""
    if not patch:
        raise BadModelOutput("there is nothing to store")
    if len(canonical(patch)) > _LONGEST_PATCH:
        raise BadModelOutput(f"a patch of more than {_LONGEST_PATCH} characters")
    for name, value in patch.items():
        values: Sequence[Any] = value if isinstance(value, list) else [value]
        for each in values:
            if op == "remove" or each is None:
                old = (
                    item_text(each)
                    if each is not None and (isinstance(value, list) or name in LIST_FIELDS)
                    else None
                )
                yield _checked(CoreChange(action="remove", section=section, field=str(name), old=old))
            else:
                scalar = not isinstance(value, list) and name not in LIST_FIELDS
                action = "replace" if scalar and not isinstance(each, Mapping) else "add"
                yield _checked(CoreChange(action=action, section=section, field=str(name), value=each))


def _checked(change: CoreChange) -> CoreChange:
    try:
        check_section(change.section)
        check_values({change.field: change.value})
    except InvalidInput as error:
        raise BadModelOutput(f"{error.field} {error.message}") from None
    if change.action != "remove" and change.value in ("", [], {}):
        raise BadModelOutput("there is nothing to store")
    return change
