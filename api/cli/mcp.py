"""`anamnesis mcp`: memory for an assistant on this machine, over its standard input and output."""

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.shell import WRONG_USE, OfTenant, fail, open_all_services, run
from api.cli.tenants import named
from services.identity.caller import NOBODY_IN_PARTICULAR
from services.identity.tenants import Tenants
from services.names import RULE, is_id
from services.platform.settings import Settings

if TYPE_CHECKING:
    from api.mcp.acting import Acting

KEY_VARIABLE = "ANAMNESIS_KEY"


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
        run(lambda settings: _serve(settings, user or "me", tenant))
        return
    if not url.startswith(("http://", "https://")):
        fail(f"--url must begin with http:// or https://; this is {url!r}", WRONG_USE)
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415 — help needs none of it

    from api.mcp.forwarding import Unreachable, forward  # noqa: PLC0415

    try:
        asyncio.run(forward(url, user, os.environ.get(KEY_VARIABLE)))
    except Unreachable as error:
        fail(str(error))
    except MCPError as error:
        fail(f"{url} refuses: {error}")


async def _serve(settings: Settings, user: str, tenant: str) -> None:
    from api.mcp.acting import Acting  # noqa: PLC0415 — help needs none of it
    from api.mcp.server import make_server  # noqa: PLC0415

    async with open_all_services(settings) as services:
        owner = await named(Tenants(services.database), tenant)
        caller = replace(NOBODY_IN_PARTICULAR, tenant_id=owner.id)

        def acting_of(_: Any) -> "Acting":
            return Acting(services, caller, user)

        await make_server(settings, acting_of).run_stdio_async()
