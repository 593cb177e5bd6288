"""Settings for people to read: those in effect, misspelt ones, and every setting with its meaning.

The class `Settings` is the only description of settings: comments are headings, a field's description says what it
accepts, and the text below a field is its meaning.
"""

import ast
import difflib
import inspect
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal, TypeGuard

from dotenv import dotenv_values
from pydantic import AliasChoices
from pydantic_settings import DotEnvSettingsSource, EnvSettingsSource

from services.platform.chosen_model import chosen_model
from services.platform.setting_values import encoding_of
from services.platform.settings import OF_COMMANDS, PREFIX, Settings

_COMMENT_COLUMNS = 118


@dataclass(frozen=True)
class EffectiveSetting:
    """A setting with the value that the service would use."""

    variable: str
    value: str | None
    """Value as text; None = unset. A secret is masked."""
    source: Literal["default", "console", ".env", "environment"]
    description: str


def effective_settings(settings: Settings) -> list[EffectiveSetting]:
    """Return each setting with its value and the value's source, in the order of the class."""
    chosen = chosen_model(settings.data_dir)
    sources = (
        ("environment", EnvSettingsSource(Settings)()),
        (".env", DotEnvSettingsSource(Settings)()),
        ("console", chosen.as_settings() if chosen and chosen.model == settings.llm_model else {}),
    )
    found = []
    for name, field in Settings.model_fields.items():
        names = {name, *(map(str, field.validation_alias.choices) if _has_choices(field.validation_alias) else ())}
        source: Any = next((label for label, values in sources if names & values.keys()), "default")
        value = _as_text(getattr(settings, name))
        found.append(EffectiveSetting(f"{PREFIX}{name.upper()}", value, source, field.description or ""))
    return found


def unknown_variables() -> list[str]:
    """Return a line for each unknown `ANAMNESIS_` variable, set or in `.env`, with the most similar known one."""
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | OF_COMMANDS
    lines = []
    for name in sorted(
        {*os.environ, *(each.upper() for each in dotenv_values(".env", encoding=encoding_of(Path(".env"))))}
    ):
        if name.startswith(PREFIX) and name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            lines.append(f"{name} is not a setting{hint}")
    return lines


@dataclass(frozen=True)
class DocumentedSetting:
    """A setting as its class describes it."""

    heading: str
    variable: str
    meaning: str
    """Meaning; empty if the class has no text below the field."""
    accepts: str
    default: str
    """Default; empty = unset."""


def documented_settings() -> list[DocumentedSetting]:
    """Return every setting, in the order of the class."""
    return [
        DocumentedSetting(
            heading,
            f"{PREFIX}{name.upper()}",
            meaning,
            field.description or "",
            _as_text(field.default) or "" if field.default_factory is None else "",
        )
        for heading, name, meaning in _fields_of_the_source()
        for field in (Settings.model_fields[name],)
    ]


def env_file() -> str:
    """Return every setting with its meaning and default, commented out: a `.env` to start from."""
    lines = ["# Anamnesis: every setting, with its default. Uncomment what you change."]
    for heading, settings in groupby(documented_settings(), lambda each: each.heading):
        lines += ["", f"# --- {heading} ---"]
        for each in settings:
            text = f"{each.meaning} Accepts: {each.accepts}."
            lines += [f"# {line}" for line in wrap(text, _COMMENT_COLUMNS - 2, break_on_hyphens=False)]
            lines.append(f"# {each.variable}={each.default}")
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """Return every setting as a page of the documentation, in Markdown."""
    lines = [
        "# Every setting",
        "",
        "Set in the environment, or in `.env` in the folder where the service is started; the environment wins. "
        "`anamnesis init` writes a `.env` with all of them commented out, `anamnesis config` shows the "
        "values in effect. `make reference` writes this page.",
    ]
    for heading, settings in groupby(documented_settings(), lambda each: each.heading):
        lines += [
            "",
            f"## {heading}",
            "",
            "| variable | default | meaning | accepts |",
            "| --- | --- | --- | --- |",
        ]
        for each in settings:
            default = f"`{each.default}`" if each.default else ""
            cells = (f"`{each.variable}`", default, each.meaning, each.accepts)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _fields_of_the_source() -> Iterator[tuple[str, str, str]]:
    """Yield heading, name and meaning of each field."""
    source = inspect.getsource(Settings)
    headings = {
        number: line.removeprefix("    # ")
        for number, line in enumerate(source.splitlines(), 1)
        if line.startswith("    # ")
    }
    (definition,) = ast.parse(source).body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    for statement, below in zip(body, [*body[1:], None], strict=True):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        heading = headings[max(number for number in headings if number < statement.lineno)]
        told = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        meaning = str(below.value.value) if told else ""  # type: ignore[union-attr]
        yield heading, statement.target.id, " ".join(meaning.split())


def _has_choices(alias: object) -> TypeGuard[AliasChoices]:
    return isinstance(alias, AliasChoices)


def _as_text(value: Any) -> str | None:
    if value in (None, (), {}):
        return None
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return ",".join(f"{name}={each}" for name, each in value.items())
    return ",".join(value) if isinstance(value, tuple) else str(value)
