"""`anamnesis doctor`: check every dependency, of the running service if there is one, and say what to do."""

import asyncio
import contextlib
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

import httpx
import typer

from api.cli.model import show as show_grade
from api.cli.service import AtUrl, WithKey, address_of
from api.cli.shell import FAILED, AsJson, fail, open_services_on, print_json, print_table, read_settings
from services.engines import migrate_if_owner, open_engines
from services.errors import Unavailable
from services.platform.settings import KEY_VARIABLE, Settings

_LOOKS = 20
_BETWEEN_LOOKS_S = 0.5
_PATIENCE_S = 10.0
_PATIENCE_WITH_TOOLS = timedelta(seconds=10)
_PATIENCE_WITH_MODELS_S = 600.0

_TRIED = ("streams", "tools", "json_schema", "messages")
_MODEL_COLUMNS = {
    "model": "model",
    "roles": "used as",
    "answers": "answers",
    "streams": "streams",
    "tools": "tools",
    "json_schema": "JSON schema",
    "messages": "messages",
    "time": "time",
}

Findings = dict[str, Any]
"""Results: `dependencies`, `models` and `filing` (None = not asked); `source` (`service` or `shell`) and `url`."""


def doctor(
    ask: Annotated[
        bool, typer.Option("--ask", help="Send each configured model a few tiny requests, billed as usual.")
    ] = False,
    as_json: AsJson = False,
    url: AtUrl = None,
    key: WithKey = None,
) -> None:
    """Check every dependency and say what to do.

    Describes the service at the address or, if none answers, what a service with the settings of this shell would
    find. Exit code 1 if the database is down, or a model that was asked does not answer.

    Example: `anamnesis doctor --ask`
    """
    settings = read_settings()
    address = url or address_of(settings)
    source, found = "service", _of_service(address, key, ask=ask)
    if found is None:
        source, found = "shell", asyncio.run(_of_shell(settings, ask=ask))
    findings = {"source": source, "url": address, **found}
    if as_json:
        print_json(findings)
    else:
        _show(findings)
    is_down = any(found["state"] == "down" for found in findings["dependencies"])
    if is_down or any(not model["answers"] for model in findings["models"] or ()):
        raise typer.Exit(FAILED)


_WANTS_KEY = (
    f"The service at {{address}} is {{state}}. The rest wants the key of an admin of the default tenant: "
    f"set {KEY_VARIABLE}."
)


def _of_service(address: str, key: str | None, *, ask: bool) -> Findings | None:
    """Return what the running service reports; None if none answers."""
    headers = {"Authorization": f"Bearer {key}"} if key else None
    try:
        with httpx.Client(base_url=address, headers=headers, timeout=_PATIENCE_S) as client:
            ready = client.get("/readyz")
            found = _json_of(ready, address)
            if not found.get("dependencies") and not ask:
                fail(_WANTS_KEY.format(address=address, state=found.get("state", "there")))
            if not ask:
                return {"dependencies": found["dependencies"], "models": None, "filing": None}
            asked = client.post("/api/v1/doctor", timeout=_PATIENCE_WITH_MODELS_S)
    except (httpx.ConnectError, httpx.ConnectTimeout):
        return None
    except (httpx.HTTPError, KeyError) as error:
        fail(f"The service at {address} does not answer as it should ({type(error).__name__}).")
    if asked.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
        fail(_WANTS_KEY.format(address=address, state=found["state"]))
    found = _json_of(asked, address)
    if "models" not in found:
        fail(f"The service at {address} cannot check its models: {found.get('detail', asked.status_code)}")
    return {name: found.get(name) for name in ("dependencies", "models", "filing")}


def _json_of(response: httpx.Response, address: str) -> Findings:
    try:
        found = response.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        fail(f"What answers at {address} is not an Anamnesis service; name another address with --url.")
    return found


async def _of_shell(settings: Settings, *, ask: bool) -> Findings:
    from services.health import check_dependencies, overall  # noqa: PLC0415 — a tenth of a second
    from services.llm.model_checks import check_models  # noqa: PLC0415 — half a second
    from services.memory.filing.grade import grade_filing  # noqa: PLC0415 — half a second

    async with open_engines(settings) as engines:
        await migrate_if_owner(engines)
        async with open_services_on(settings, engines) as services:
            services.mcp_servers.start()
            await services.mcp_servers.settled(_PATIENCE_WITH_TOOLS)
            asked = await check_models(settings, services.models, services.embedder) if ask else None
            filing = await grade_filing(services.models) if ask else None
            for _ in range(_LOOKS):
                with contextlib.suppress(Unavailable):
                    await services.index_rebuild.look()
                found = await check_dependencies(services)
                # This command may have just started an embedded engine, but it never starts a worker.
                if settings.milvus_uri or overall([each for each in found if each.name != "worker"]) == "ok":
                    break
                await asyncio.sleep(_BETWEEN_LOOKS_S)
    models = None if asked is None else [asdict(each) for each in asked]
    return {
        "dependencies": [asdict(each) for each in found],
        "models": models,
        "filing": filing and asdict(filing),
    }


def _show(findings: Findings) -> None:
    address = findings["url"]
    if findings["source"] == "service":
        typer.echo(f"The service that runs at {address}:")
    else:
        typer.echo(f"No service answers at {address}; this is what the settings of this shell give:")
    columns = {"name": "", "state": "state", "latency": "latency", "detail": "what", "advice": "what to do"}
    print_table(columns, list(map(_dependency, findings["dependencies"])))
    if findings["models"] is not None:
        typer.echo()
        print_table(_MODEL_COLUMNS, list(map(_model, findings["models"])))
        for model in findings["models"]:
            for line in model["advice"]:
                typer.echo(f"{model['model']}: {line}")
    if filing := findings["filing"]:
        typer.echo()
        show_grade(filing)


def _dependency(found: dict[str, Any]) -> dict[str, Any]:
    latency = "" if found["latency_ms"] is None else f"{found['latency_ms']:.1f} ms"
    return {"advice": "", **found, "state": found["state"].replace("_", " "), "latency": latency}


def _model(model: dict[str, Any]) -> dict[str, Any]:
    if model["roles"] == ["embedding"]:
        tried = {"streams": model["dimensions"] and f"{model['dimensions']} dimensions"}
    else:
        tried = {name: model[name] for name in _TRIED} if model["answers"] else {}
    time = "" if model["answer_ms"] is None else f"{model['answer_ms']:.0f} ms"
    return {**model, **dict.fromkeys(_TRIED), **tried, "time": time}
