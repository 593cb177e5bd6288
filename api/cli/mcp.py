"""`anamnesis mcp`: memory for an assistant on this machine, over its standard input and output."""

import asyncio
import os
from typing import Annotated

import typer

from api.cli.access import named
from api.cli.shell import WRONG_USE, OfTenant, fail, open_all_services, run
from services.identity.tenants import Tenants
from services.platform.settings import KEY_VARIABLE, Settings
from services.validation import RULE, composed, is_id


def mcp(
    user: Annotated[
        str | None, typer.Option(help="Whose memory it is; unset = me, or with --url the user of the key.")
    ] = None,
    tenant: OfTenant = "default",
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help=f"A running service, such as http://127.0.0.1:8000; its key is in {KEY_VARIABLE}."
        ),
    ] = None,
) -> None:
    """Serve memory to an assistant that starts this program (Model Context Protocol over stdio).

    Without --url it works on the stores of this machine, even while the service is using them.

    Example: `anamnesis mcp --user me`
    """
    if user is not None and not is_id(user):
        fail(f"--user {RULE}", WRONG_USE)
    if url is None:
        run(lambda settings: _serve(settings, composed(user or "me"), tenant))
        return
    if not url.startswith(("http://", "https://")):
        fail(f"--url must begin with http:// or https://; this is {url!r}", WRONG_USE)
    from api.mcp.forwarding import Unreachable, forward  # noqa: PLC0415 — the SDK takes half a second

    try:
        asyncio.run(forward(url, user, os.environ.get(KEY_VARIABLE)))
    except Unreachable as error:
        fail(str(error))


async def _serve(settings: Settings, user: str, tenant: str) -> None:
    from api.mcp.server import serve_stdio  # noqa: PLC0415 — the SDK takes half a second

    async with open_all_services(settings) as services:
        owner = await named(Tenants(services.database), tenant)
        await serve_stdio(services, owner.id, user)
