"""What pydantic reports, in plain words."""

import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from services.validation import accepted_fields, plain_reason


class _Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int = 0
    b: str = ""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(min_length=1, max_length=3, pattern="^[a-z]*$")] = "a"
    count: Annotated[int, Field(ge=1, lt=9, multiple_of=2)] = 2
    share: Annotated[float, Field(gt=0, le=1)] = 0.5
    flag: bool = False
    kind: Literal["up", "down"] = "up"
    items: Annotated[list[str], Field(min_length=1, max_length=2)] = ["x"]
    inner: _Inner | None = None
    several: list[_Inner] = []
    id: UUID = UUID(int=0)
    at: AwareDatetime | None = None
    day: datetime.date | None = None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"name": 1}, "must be a text"),
        ({"name": "abcd"}, "must have at most 3 characters"),
        ({"name": "A"}, "must match ^[a-z]*$"),
        ({"count": 0}, "must be 1 or more"),
        ({"count": 10}, "must be less than 9"),
        ({"count": 1.5}, "must be a whole number"),
        ({"count": "9" * 5000}, "is too large a number"),
        ({"kind": "left"}, "must be 'up' or 'down'"),
        ({"items": ["a", "b", "c"]}, "must have at most 2 items"),
        ({"inner": 1}, "must be a JSON object"),
        ({"id": "x"}, "must be a UUID: 8-4-4-4-12 hexadecimal digits"),
        ({"at": "noon"}, "must be an ISO 8601 time such as 2026-11-21T10:00:00+08:00"),
        ({"at": "2026-01-01T00:00:00"}, "needs an offset, such as +08:00 or Z"),
        ({"day": "noon"}, "must be a date such as 2026-11-21"),
        ({"several": [{}, {"c": 1}]}, "is not known here; accepted: a, b"),
        ({"nmae": "x"}, "is not known here; accepted: name, count, share, flag, kind, items, inner, several"),
    ],
)
def test_each_kind_of_error_has_plain_words(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError) as raised:
        _Model.model_validate(given)
    [error] = raised.value.errors()
    accepted = accepted_fields(_Model.model_json_schema(), error["loc"])
    assert plain_reason(error, accepted).startswith(expected)
