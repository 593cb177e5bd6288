"""`anamnesis doctor`: check every dependency and say what to do."""

import asyncio
import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from api.cli.shell import FAILED, fail, settings_or_exit
from services.engines import migrate_if_owner, open_engines
from services.errors import AnamnesisError
from services.health import Dependency, check_dependencies, overall
from services.platform.settings import Settings

_LOOKS = 20
_BETWEEN_LOOKS_S = 0.5

_ADVICE = {
    "postgres": "Is the server up? See ANAMNESIS_DATABASE_URL, or postgres.log in the data folder.",
    "milvus": "Turns answer without it. See ANAMNESIS_MILVUS_URI, or milvus.log in the data folder.",
    "redis": "Turns answer without it. See ANAMNESIS_REDIS_URL.",
    "worker": "Start one: anamnesis worker, or ANAMNESIS_WORKER=inline.",
}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")] = False,
) -> None:
    """Check every dependency and say what to do. Exit code 1 when one is down.

    Example: `anamnesis doctor --json`
    """
    settings = settings_or_exit()
    try:
        dependencies = asyncio.run(_check(settings))
    except AnamnesisError as error:
        fail(error.message)
    if as_json:
        typer.echo(json.dumps([asdict(dependency) for dependency in dependencies], ensure_ascii=False))
    else:
        _show(dependencies)
    if overall(dependencies) == "down":
        raise typer.Exit(FAILED)


async def _check(settings: Settings) -> list[Dependency]:
    from services.bootstrap import open_services  # noqa: PLC0415 — help needs none of it

    async with open_engines(settings) as engines:
        await migrate_if_owner(engines)
        async with open_services(settings, engines) as services:
            for _ in range(_LOOKS):
                found = await check_dependencies(services)
                # An embedded engine may have been started just now, by ourselves; a worker never is.
                if settings.milvus_uri or overall([each for each in found if each.name != "worker"]) == "ok":
                    break
                await asyncio.sleep(_BETWEEN_LOOKS_S)
            return found


def _show(dependencies: list[Dependency]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "state", "latency", "what", "what to do"):
        table.add_column(heading)
    colours = {"ok": "green", "degraded": "yellow", "down": "red"}
    for found in dependencies:
        latency = "" if found.latency_ms is None else f"{found.latency_ms:.1f} ms"
        advice = "" if found.state == "ok" else _ADVICE.get(found.name, "")
        state = f"[{colours[found.state]}]{found.state}[/]"
        table.add_row(found.name, state, latency, found.detail, advice)
    Console().print(table)
