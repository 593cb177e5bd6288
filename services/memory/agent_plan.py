"""What the memory agent is to do about an exchange: a model's answer checked, or what rules found."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, TypeAdapter

from services.errors import BadModelOutput, InvalidInput
from services.llm.asking import json_answer
from services.llm.language import language_of
from services.memory.agent_rules import Finding
from services.memory.content import check_section, check_values
from services.memory.contradictions import claim_of
from services.memory.episode import IMPORTANCE, EpisodeType, WrittenType
from services.memory.merge import canonical

MOST_OPERATIONS = 8
_LONGEST_CONTENT = 500
_LONGEST_PATCH = 2000
"""Characters of its JSON."""
_HUMAN = "human"
_LISTS = frozenset(["preferences", "allergies"])


class CoreChange(BaseModel):
    """A patch of a section of core memory."""

    kind: Literal["core"] = "core"
    section: str
    patch: dict[str, Any]


class NewMemory(BaseModel):
    """An episode to be written, and the one that it takes the place of."""

    kind: Literal["episode"] = "episode"
    episode_type: WrittenType
    content: str
    importance: float
    replaces: UUID | None = None


class Retirement(BaseModel):
    """An episode that no longer holds, with nothing in its place but what was said."""

    kind: Literal["retire"] = "retire"
    episode_id: UUID


Planned = CoreChange | NewMemory | Retirement
Plan = list[Planned]
_PLAN: TypeAdapter[Plan] = TypeAdapter(list[Annotated[Planned, Field(discriminator="kind")]])


@dataclass(frozen=True)
class Near:
    """An episode that the model is shown, under a number of its own."""

    id: UUID
    episode_type: EpisodeType
    content: str
    day: str

    @property
    def changeable(self) -> bool:
        """Whether it was written as a memory: what was said stays said."""
        return self.episode_type != "turn"


def _no_nul(text: str) -> str:
    if "\x00" in text:  # PostgreSQL takes none
        raise ValueError("holds a NUL character")
    return text


class _Operation(BaseModel):
    operation: Literal["add", "update", "delete", "none"]
    memory: Literal["core", "episode"] = "core"
    section: str = _HUMAN
    patch: dict[str, Any] = Field(default_factory=dict)
    episode: int | None = None
    type: WrittenType | None = None
    content: Annotated[
        str, StringConstraints(strip_whitespace=True, max_length=_LONGEST_CONTENT), AfterValidator(_no_nul)
    ] = ""
    importance: float | None = Field(None, ge=0, le=1)


class _Answer(BaseModel):
    operations: list[_Operation] = Field(max_length=MOST_OPERATIONS)


def plan_of_answer(text: str, nearest: Sequence[Near]) -> Plan:
    """What a model's answer says is to be done.

    Raises:
        BadModelOutput: it is not of the form that was asked for, has too many operations or too long ones, or
            names an episode that it was not shown, or one that nobody may change.
    """
    answer = json_answer(_Answer, text)
    return [_planned(each, nearest) for each in answer.operations if each.operation != "none"]


def _planned(asked: _Operation, nearest: Sequence[Near]) -> Planned:
    if asked.memory == "core":
        return _core_change(asked)
    if asked.operation == "add":
        return _new_memory(asked, asked.type, None)
    if asked.episode is None or not 1 <= asked.episode <= len(nearest):
        raise BadModelOutput(f"there is no episode {asked.episode}")
    old = nearest[asked.episode - 1]
    if not old.changeable:
        raise BadModelOutput(f"episode {asked.episode} is what was said, and cannot be changed")
    if asked.operation == "delete":
        return Retirement(episode_id=old.id)
    kept: Any = old.episode_type if old.episode_type in IMPORTANCE else None
    return _new_memory(asked, asked.type or kept, old.id)


def _core_change(asked: _Operation) -> CoreChange:
    if not asked.patch:
        raise BadModelOutput("a change of core memory without a patch")
    if len(canonical(asked.patch)) > _LONGEST_PATCH:
        raise BadModelOutput(f"a patch of more than {_LONGEST_PATCH} characters")
    patch = dict.fromkeys(asked.patch) if asked.operation == "delete" else asked.patch
    try:
        check_section(asked.section)
        check_values(patch)
    except InvalidInput as error:
        raise BadModelOutput(f"{error.field} {error.message}") from None
    return CoreChange(section=asked.section, patch=patch)


def _new_memory(asked: _Operation, episode_type: WrittenType | None, replaces: UUID | None) -> NewMemory:
    if not asked.content or episode_type is None:
        raise BadModelOutput("an episode without content or type")
    importance = IMPORTANCE[episode_type] if asked.importance is None else asked.importance
    return NewMemory(episode_type=episode_type, content=asked.content, importance=importance, replaces=replaces)


def plan_of_findings(found: Sequence[Finding], human: Mapping[str, Any], *, core: bool) -> Plan:
    """What rules found, as operations: facts and preferences for core memory, decisions for episodes.

    Args:
        found: what the user said of themselves.
        human: that section of core memory, as it is.
        core: whether there is core memory; without it all become episodes.
    """
    patch: dict[str, Any] = {}
    plan: Plan = []
    for each in found:
        if each.field == "decision":
            plan.append(_episode("decision", each.text))
        elif core:
            _place(each, human, patch)
        else:
            plan.append(_episode("preference" if each.field == "preferences" else "context", _sentence(each)))
    changes: Plan = [CoreChange(section=_HUMAN, patch=patch)] if patch else []
    return (changes + plan)[:MOST_OPERATIONS]


def _episode(episode_type: WrittenType, content: str) -> NewMemory:
    return NewMemory(episode_type=episode_type, content=content, importance=IMPORTANCE[episode_type])


def _place(found: Finding, human: Mapping[str, Any], patch: dict[str, Any]) -> None:
    """Put it where what it contradicts stands, so that it takes its place; else under its own name."""
    claim = claim_of(found.text)
    key: str = found.field
    for name, value in human.items():
        texts = value if isinstance(value, list) else [value]
        if claim.tells and any(isinstance(text, str) and claim.contradicts(claim_of(text)) for text in texts):
            key, many = name, isinstance(value, list)
            break
    else:
        many = isinstance(human.get(key), list) or (key in _LISTS and key not in human)
        denies = found.text.startswith(("no longer ", "不再"))
        if denies and key in human and not many:  # it denies what is known to be otherwise already
            return
    if many:
        patch.setdefault(key, []).append(found.text)
    else:
        patch[key] = found.text


def _sentence(found: Finding) -> str:
    chinese = language_of([found.text]) == "zh"
    if found.field == "name":
        return f"用户叫{found.text}。" if chinese else f"The user is called {found.text}."
    if found.field == "allergies":
        return f"用户对{found.text}过敏。" if chinese else f"The user is allergic to {found.text}."
    return f"用户{found.text}。" if chinese else f"The user {found.text}."


def stored(plan: Plan) -> list[dict[str, Any]]:
    """A plan as JSON."""
    dumped: list[dict[str, Any]] = _PLAN.dump_python(plan, mode="json")
    return dumped


def read(plan: Iterable[Mapping[str, Any]]) -> Plan:
    """A plan that was stored."""
    return _PLAN.validate_python(list(plan))


def texts_of(value: Any) -> list[str]:
    """The texts in a value of JSON, keys not counted."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for each in inner for text in texts_of(each)]


def without(patch: Mapping[str, Any], drop: Callable[[str], bool]) -> dict[str, Any]:
    """A patch without the texts for which `drop` says so, and without what that leaves empty."""
    kept = {key: _without(value, drop) for key, value in patch.items()}
    return {key: value for key, value in kept.items() if value is not _EMPTY}


def added_only(patch: Mapping[str, Any], there: Mapping[str, Any]) -> dict[str, Any]:
    """Of a patch what adds to a content, and replaces or removes nothing of it."""
    added: dict[str, Any] = {}
    for key, value in patch.items():
        if key not in there and value is not None:
            added[key] = value
        elif isinstance(value, list) and isinstance(there.get(key), list):
            claims = [claim_of(text) for text in texts_of(there[key])]
            items = [
                item
                for item in value
                if not (isinstance(item, str) and any(claim_of(item).contradicts(claim) for claim in claims))
            ]
            added |= {key: items} if items else {}
    return added


_EMPTY = object()


def _without(value: Any, drop: Callable[[str], bool]) -> Any:
    if isinstance(value, str):
        return _EMPTY if drop(value) else value
    if isinstance(value, list):
        items = [item for item in (_without(each, drop) for each in value) if item is not _EMPTY]
        return items if items or not value else _EMPTY
    if isinstance(value, dict):
        inner = without(value, drop)
        return inner if inner or not value else _EMPTY
    return value
