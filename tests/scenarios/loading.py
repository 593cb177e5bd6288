"""Reads the files of dialogues, and says in which place of which file something is wrong."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tests.scenarios.dialogue import KINDS, Dialogue, Expected, Step

FOLDER = Path(__file__).parent / "dialogues"


class BadDialogue(ValueError):
    """A file is not a dialogue; the message names the file and the place."""


def dialogue_files() -> list[Path]:
    """All of them, those that need the same service one after the other."""
    return sorted(FOLDER.rglob("*.toml"), key=lambda path: (str(_service_of(path)), path))


def _service_of(path: Path) -> Any:
    try:
        head = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError:  # told when it is loaded
        return ""
    return bool(head.get("offline")), head.get("service", {})


def load(path: Path) -> Dialogue:
    """Read a file. Raises `BadDialogue` if it says something that is no part of the format."""
    return parse(path.read_text(encoding="utf-8"), path.name)


def parse(text: str, name: str) -> Dialogue:
    """Read what a file says. Raises `BadDialogue` if it says something that is no part of the format."""
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadDialogue(f"{name}: {error}") from None
    steps = told.get("step", [])
    if not isinstance(steps, list):
        raise BadDialogue(f"{name}: steps are written as [[step]]")
    told["step"] = [_step(step, f"{name}, step {number}") for number, step in enumerate(steps, 1)]
    try:
        return Dialogue.model_validate(told)
    except ValidationError as error:
        raise BadDialogue(f"{name}: {_reasons(error)}") from None


def _step(told: Any, where: str) -> Step:
    kinds = {KINDS[key] for key in told if key in KINDS}
    if len(kinds) != 1:
        raise BadDialogue(f"{where}: a step has exactly one of {', '.join(KINDS)}; this one has {sorted(told)}")
    kind = kinds.pop()
    try:
        step = kind.model_validate(told)
    except ValidationError as error:
        raise BadDialogue(f"{where}: {_reasons(error)}") from None
    if step.expect == Expected():
        raise BadDialogue(f"{where}: its expectations are empty")
    if step.within_s and not step.repeatable:
        raise BadDialogue(f"{where}: within_s is for steps that only read")
    return step


def _reasons(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'file'}: {each['msg']}" for each in error.errors())
