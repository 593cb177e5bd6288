"""The questions of `anamnesis init`: which model answers, and where it is asked."""

import asyncio
import re

import typer

from services.llm.model_choice import PROVIDERS, Provider, models_of
from services.platform.chosen_model import ChosenModel, key_of_endpoint
from services.platform.outgoing import OutgoingHttp

_NONE = "none: the built-in offline model, which only quotes"
_OTHER = "another OpenAI-compatible endpoint"
_MOST_SHOWN = 30
_PLAIN = re.compile(r"[\w.:/@+-]*")


def asked_for_model() -> ChosenModel | None:
    """Ask at the terminal for provider, address, key and model; None = no model."""
    names = [each.name for each in PROVIDERS]
    for number, name in enumerate([*names, _OTHER, _NONE], 1):
        typer.echo(f"  {number}  {name}")
    chosen = 0
    while not 1 <= chosen <= len(names) + 2:
        chosen = typer.prompt(f"Which model answers? 1 to {len(names) + 2}", type=int, default=len(names) + 2)
    if chosen == len(names) + 2:
        return None
    provider = PROVIDERS[chosen - 1] if chosen <= len(names) else Provider("", "", needs_key=False)
    base_url = _address(provider.base_url)
    key = _key("Key" if provider.needs_key else "Key, if it needs one")
    offered = asyncio.run(_offered(base_url, key))
    if offered:
        typer.echo("It has: " + ", ".join(offered[:_MOST_SHOWN]) + (", …" if len(offered) > _MOST_SHOWN else ""))
    model = typer.prompt("Model", default=offered[0] if offered else None)
    api = provider.api if base_url == provider.base_url else "chat"
    return ChosenModel(base_url=base_url, api_key=key, model=model.strip(), api=api)


def env_of_model(model: ChosenModel | None) -> str:
    """Return the text of a `.env` that names a model."""
    lines = ["# Every other setting, with its meaning and its default: anamnesis init --stdout"]
    if model is not None:
        values = {"BASE_URL": model.base_url, "API": model.api, "MODEL": model.model, "API_KEY": model.api_key}
        lines += [f"ANAMNESIS_LLM_{name}={_quoted(value)}" for name, value in values.items() if value]
    else:
        lines.append("# ANAMNESIS_LLM_MODEL=")
    return "\n".join(lines) + "\n"


def _address(usual: str) -> str:
    while True:
        given: str = typer.prompt("Address", default=usual or None).strip()
        if re.fullmatch(r"https?://\S+", given):
            return given
        typer.echo("An address begins with http:// or https://.", err=True)


def _key(question: str) -> str | None:
    while True:
        try:
            return key_of_endpoint(typer.prompt(question, default="", show_default=False)) or None
        except ValueError as error:
            typer.echo(f"It {error}.", err=True)


async def _offered(base_url: str, key: str | None) -> list[str]:
    http = OutgoingHttp()
    try:
        found = await models_of(http, base_url, key)
    finally:
        await http.close()
    if found.problem:
        typer.echo(found.problem, err=True)
    return found.models


def _quoted(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
