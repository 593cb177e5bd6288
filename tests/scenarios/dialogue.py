"""What a dialogue's file says: its head, its steps, what the model answers and what is expected.

Unknown keys are refused. README.md beside this file tells how to write one, and describes every field.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Texts = Annotated[list[str], BeforeValidator(_listed)]


class Strict(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolAsked(Strict):
    name: str
    arguments: dict[str, Any] = {}
    call: str = ""
    """The id of the call; unless given, its place."""


class Answer(Strict):
    """What the model says once."""

    text: str | None = None
    data: dict[str, Any] | None = None
    """Said as JSON."""
    tools: list[ToolAsked] = []
    status: int = 200
    error: str | None = None
    """The message of an error; None = it says nothing in particular."""


class Rule(Answer):
    """What a model answers whenever a prompt holds these texts."""

    when: Texts
    unless: Texts = []


Answers = Annotated[
    list[Annotated[Answer, BeforeValidator(lambda value: {"text": value} if isinstance(value, str) else value)]],
    BeforeValidator(lambda value: value if isinstance(value, list) else [value]),
]


class EventExpected(Strict):
    """An event that has to be among those of a turn."""

    kind: str
    has: Any = None
    lacks: Texts = []


class PromptExpected(Strict):
    """What a part of a prompt holds."""

    part: Literal["beginning", "history", "tail", "message", "after", "all"] = "all"
    call: int = 1
    """Which of the step's calls, from 1."""
    has: Texts = []
    lacks: Texts = []
    messages: int | None = None


class Expected(Strict):
    """What is expected of a step; all of it has to hold."""

    status: int | None = None
    error: str | None = None
    answer: str | None = None
    answer_has: Texts = []
    answer_lacks: Texts = []
    events: list[str] | None = None
    events_lack: list[str] = []
    event: list[EventExpected] = []
    body: Any = None
    at: dict[str, Any] = {}
    count: dict[str, int] = {}
    absent: Texts = []
    text_has: Texts = []
    text_lacks: Texts = []
    rows: list[list[Any]] | None = None
    prompt: list[PromptExpected] = []
    prompt_has: Texts = []
    prompt_lacks: Texts = []
    sections: list[str] = []
    sections_lack: list[str] = []
    report: dict[str, Any] | None = None
    turn: dict[str, Any] | None = None
    model_calls: int | None = None
    small_calls: int | None = None
    small_has: Texts = []


class Step(Strict):
    """What is common to all steps."""

    tenant: str = "main"
    keep: dict[str, str] = {}
    """Names for what stands at these paths of the answer, or of the rows; `text` is all of it."""
    within_s: float = 0.0
    """Try again for so long until what is expected holds; for steps that only read."""
    note: str = ""
    expect: Expected | None = None
    repeatable: ClassVar[bool] = False


class Say(Step):
    """The user says something."""

    say: str
    user: str = "user"
    session: str = "main"
    times: int = 1
    fields: dict[str, Any] = {}
    model: Answers = []


class Call(Step):
    """Any request; `json` or `lines` or `raw` is its body."""

    call: str
    json_: Any = Field(None, alias="json")
    lines: list[dict[str, Any]] | None = None
    raw: str | None = None
    headers: dict[str, str] = {}
    repeatable: ClassVar[bool] = True


class Past(Step):
    """What was said on an earlier day is imported."""

    past: str
    talk: list[tuple[str, str]]
    user: str = "user"
    session: str = "past"
    fields: dict[str, Any] = {}


class Wait(Step):
    """Time passes."""

    wait: str


class Settle(Step):
    """What goes on in the background comes to its end."""

    settle: Literal["jobs", "index", "night"]
    repeatable: ClassVar[bool] = True


class Run(Step):
    """A background job that runs by the clock, by the name of its task."""

    run: str


class Sql(Step):
    """Read what is stored."""

    sql: str
    repeatable: ClassVar[bool] = True


KINDS: dict[str, type[Step]] = {
    "say": Say,
    "call": Call,
    "past": Past,
    "wait": Wait,
    "settle": Settle,
    "run": Run,
    "sql": Sql,
}


class Dialogue(Strict):
    """A file."""

    title: str
    language: Literal["zh", "en", "mixed"]
    themes: Annotated[list[str], Field(min_length=1)]
    timezone: str | None = None
    offline: bool = False
    """No model at all, but the built-in one."""
    service: dict[str, Any] = {}
    model: list[Rule] = []
    small: list[Rule] = []
    step: Annotated[list[Any], Field(min_length=1)]

    @model_validator(mode="after")
    def _something_is_expected(self) -> "Dialogue":
        if not any(step.expect for step in self.step):
            raise ValueError("no step expects anything: this dialogue could not fail")
        return self
