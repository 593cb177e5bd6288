"""`anamnesis model check`: how well the model files, what it was asked for, and the grade that is kept for it."""

import asyncio
from dataclasses import asdict
from typing import Annotated, Any

import httpx
import typer

from anamnesis_client import Anamnesis
from api.cli.service import AtUrl, WithKey, address_of, connected
from api.cli.shell import FAILED, AsJson, command_group, fail, print_json, print_table, read_settings
from services.platform.chosen_model import choose_model, chosen_model
from services.platform.settings import Settings

app = command_group("The language model.")

FILES = {
    "well": "files well: it is asked for all changes of memory at once",
    "some": "files some: it is asked for facts alone, in small questions",
    "none": "only answers: what users say is not filed by it",
}
_CUTS = (
    "It did not see the beginning of a prompt of some 4,000 tokens: its endpoint cuts the context window. Give it "
    "more (Ollama: OLLAMA_CONTEXT_LENGTH=8192; llama.cpp: --ctx-size 8192)."
)
_VARIABLE = "ANAMNESIS_MEMORY_FILING_GRADE"
_PATIENCE_S = 3.0


@app.command()
def check(
    seconds: Annotated[
        float, typer.Option(min=5, max=600, help="The longest time that it takes; a slow model needs more.")
    ] = 60.0,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the grade for the model, where it was chosen in the console.")
    ] = False,
    as_json: AsJson = False,
    url: AtUrl = None,
    key: WithKey = None,
) -> None:
    """Have the model file a few made-up talks, billed as usual, and say how well it does.

    Asks the service at the address or, if none answers, the model that the settings of this shell name. Exit code
    1 without a model.

    Example: `anamnesis model check --keep`
    """
    settings = read_settings()
    if _answers(url or address_of(settings)):
        with connected(url, key) as service:
            found = service.request("POST", "model", "check", params={"seconds": seconds})
            kept = keep and _keep_by(service, found["grade"])
    else:
        found = asyncio.run(_of_shell(settings, seconds))
        kept = keep and _keep_in(settings, found["grade"])
    if as_json:
        print_json({**found, "kept": kept})
        return
    show(found)
    if not kept:
        typer.echo(f"Set {_VARIABLE}={found['grade']} to have it asked so.")


def show(found: dict[str, Any]) -> None:
    """Print a grade and what the model was asked for."""
    typer.echo(f"{found['model']} {FILES[found['grade']]}.")
    tried = [{**each, "kept": "; ".join(each["kept"])} for each in found["tried"]]
    print_table({"asked": "asked", "result": "result", "kept": "would be filed"}, tried)
    if found["cuts_prompts"]:
        typer.echo(_CUTS)


def _answers(address: str) -> bool:
    try:
        httpx.get(f"{address.rstrip('/')}/healthz", timeout=_PATIENCE_S)
    except httpx.HTTPError:
        return False
    return True


def _keep_by(service: Anamnesis, grade: str) -> bool:
    if service.request("GET", "model")["filing_grade_source"] == "environment":
        fail(f"{_VARIABLE} is set in the environment; change it there.", FAILED)
    service.request("PUT", "model", "grade", json={"grade": grade})
    return True


def _keep_in(settings: Settings, grade: Any) -> bool:
    model = chosen_model(settings.data_dir)
    by_environment = settings.memory_filing_grade and not settings.from_console("memory_filing_grade")
    if model is None or by_environment or not settings.from_console("llm_model"):
        fail(f"The environment names the model or its grade: set {_VARIABLE}={grade} there.", FAILED)
    choose_model(settings.data_dir, model.model_copy(update={"filing_grade": grade}))
    return True


async def _of_shell(settings: Settings, seconds: float) -> dict[str, Any]:
    from services.llm.chat_models import ChatModels  # noqa: PLC0415 — half a second
    from services.memory.filing.grade import grade_filing  # noqa: PLC0415 — half a second

    models = ChatModels(settings)
    try:
        found = await grade_filing(models, within_s=seconds)
    finally:
        await models.close()
    if found is None:
        fail("No model is chosen; the built-in one files nothing.", FAILED)
    return asdict(found)
