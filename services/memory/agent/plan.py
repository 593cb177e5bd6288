"""Plans of the memory agent: what it will do, and what it was shown to decide."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, TypeAdapter

from services.memory.episodes.episode import EpisodeType, WrittenType
from services.memory.items import LIST_FIELDS, SINGLE_FIELDS, ItemChange, find_item, item_text
from services.text.contradictions import claim_of, normalised
from services.time_reference.validity import of_mark

MOST_OPERATIONS = 8
HUMAN = "human"
"""Section of core memory about the user."""

Content = Mapping[str, Mapping[str, Any]]
"""Content by section of core memory."""


class CoreChange(BaseModel):
    """A change of one item of core memory."""

    kind: Literal["core"] = "core"
    action: Literal["add", "replace", "remove"]
    section: str = HUMAN
    field: str
    value: Any = None
    old: str | None = None

    def as_item_change(self) -> ItemChange:
        """Return it as core memory takes it."""
        return ItemChange(self.action, self.section, self.field, self.value, self.old)


class NewMemory(BaseModel):
    """An episode to write, and the one that it replaces."""

    kind: Literal["episode"] = "episode"
    episode_type: WrittenType
    content: str
    importance: float
    replaces: UUID | None = None
    sources: list[UUID] = Field(default_factory=list)
    """Messages that it comes from."""


class Retirement(BaseModel):
    """A written episode that no longer holds and has no written replacement."""

    kind: Literal["retire"] = "retire"
    episode_id: UUID


class Forgetting(BaseModel):
    """Something that the user asked to forget: every statement of it is removed from memory."""

    kind: Literal["forget"] = "forget"
    target: str


Planned = CoreChange | NewMemory | Retirement | Forgetting
Plan = list[Planned]
_PLAN: TypeAdapter[Plan] = TypeAdapter(list[Annotated[Planned, Field(discriminator="kind")]])


@dataclass(frozen=True)
class Near:
    """An episode similar to what was said, shown to the model under a short id."""

    id: UUID
    episode_type: EpisodeType
    content: str
    day: str

    @property
    def changeable(self) -> bool:
        """Whether it was written as a memory: what was said cannot be changed."""
        return self.episode_type != "turn"


@dataclass(frozen=True)
class Known:
    """Existing memories, as shown to the model."""

    core: Content = field(default_factory=dict)
    nearest: Sequence[Near] = ()

    def items(self) -> dict[str, tuple[str, str, str]]:
        """Return the items of core memory by their short ids (`c1`, …): section, field and text of each."""
        found: dict[str, tuple[str, str, str]] = {}
        for section, content in self.core.items():
            for name, value in content.items():
                for text in _items_of(value):
                    found[f"c{len(found) + 1}"] = (section, name, text)
        return found

    def episodes(self) -> dict[str, Near]:
        """Return the nearest episodes by their short ids (`e1`, …)."""
        return {f"e{number}": each for number, each in enumerate(self.nearest, 1)}


def _items_of(value: Any) -> list[str]:
    if isinstance(value, list):
        return [item_text(item) for item in value]
    if isinstance(value, Mapping):
        return [f"{key}: {item_text(inner)}" for key, inner in value.items()]
    return [item_text(value)]


def settled(change: CoreChange, content: Mapping[str, Any], today: date) -> list[CoreChange]:
    """Return the changes by which a new item replaces what it plainly contradicts.

    Of two times of the same (likes tea; likes tea, formerly) the new one replaces the other, unless only the other
    is over. What does not hold today contradicts nothing that does.

    Args:
        change: as requested.
        content: its current section. The contradicted item may be in another field.
        today: the day on which both are to hold.
    """
    if change.action == "remove" or not isinstance(change.value, str):
        return [change]
    items = [
        (name, text)
        for name, value in content.items()
        for text in _items_of(value)
        if isinstance(value, list | str)
    ]
    added = change.model_copy(update={"action": "add", "old": None})
    new = of_mark(change.value)
    claim = claim_of(new.text)
    same = [
        (name, text)
        for name, text in items
        if (name == change.field or claim.tells)
        and text != change.value
        and normalised((old := of_mark(text)).text) == claim.text
        and (old.validity.holds_on(today) or not new.validity.holds_on(today))
    ]
    if not new.validity.holds_on(today):
        return _in_place_of(same, added)
    if change.action == "replace" and (
        change.field not in LIST_FIELDS
        if change.old is None
        else find_item(content.get(change.field), change.old) is not None
    ):
        return [change]
    if change.field in SINGLE_FIELDS and isinstance(content.get(change.field), str):
        return [added]
    contradicted = [
        (name, text)
        for name, text in items
        if (name == change.field or claim.tells)
        and (old := of_mark(text)).validity.holds_on(today)
        and claim.contradicts(claim_of(old.text))
    ]
    if not same and contradicted:
        (name, text), *others = contradicted
        replaced = added.model_copy(update={"action": "replace", "field": name, "old": text})
        return [replaced, *_removals(added, others)]
    return _in_place_of(same, added)


def _in_place_of(items: Sequence[tuple[str, str]], added: CoreChange) -> list[CoreChange]:
    """Add an item, in the place of one of its field where there is one, and remove the others."""
    own = next((text for name, text in items if name == added.field), None)
    if own is None or added.field in SINGLE_FIELDS:
        return [added, *_removals(added, items)]
    replaced = added.model_copy(update={"action": "replace", "old": own})
    return [replaced, *_removals(added, [each for each in items if each != (added.field, own)])]


def _removals(added: CoreChange, items: Sequence[tuple[str, str]]) -> list[CoreChange]:
    return [
        added.model_copy(update={"action": "remove", "field": name, "value": None, "old": text})
        for name, text in items
    ]


def is_known(change: CoreChange, content: Mapping[str, Any]) -> bool:
    """Whether a section already says what a change would add."""
    if change.action == "remove" or not isinstance(change.value, str):
        return False
    there = [normalised(text) for text in texts_of(content)]
    if normalised(change.value) not in there:
        return False
    return claim_of(change.value).tells or find_item(content.get(change.field), change.value) is not None


def dump(plan: Plan) -> list[dict[str, Any]]:
    """Return a plan as JSON."""
    dumped: list[dict[str, Any]] = _PLAN.dump_python(plan, mode="json")
    return dumped


def load(plan: Iterable[Mapping[str, Any]]) -> Plan:
    """Return a plan that was stored as JSON."""
    return _PLAN.validate_python(list(plan))


def texts_of(value: Any) -> list[str]:
    """Return the texts in a JSON value, without keys."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for each in inner for text in texts_of(each)]
