"""The running service, as commands use it: its address, a key, a client, and errors in one line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from inspect import Parameter, signature
from typing import Annotated, Concatenate, ParamSpec

import httpx
import typer

from anamnesis_client import Anamnesis, ClientError, ServiceError, Unreachable
from anamnesis_client.calls import NOT_OURS, is_loopback
from api.cli.shell import FAILED, WRONG_USE, fail, one_line_errors, quiet_settings, then
from services.errors import Unavailable
from services.platform.data_folder import address_of_holder
from services.platform.settings import KEY_VARIABLE, URL_VARIABLE, Settings

AtUrl = Annotated[
    str | None,
    typer.Option("--url", envvar=URL_VARIABLE, help="Address of the service; that of this machine unless given."),
]
WithKey = Annotated[
    str | None,
    typer.Option("--key", envvar=KEY_VARIABLE, help="API key or token, where the service asks for one."),
]
Rest = ParamSpec("Rest")

_PATIENCE_S = 20.0


def over_http(command: Callable[Concatenate[Anamnesis, Rest], None]) -> Callable[..., None]:
    """Give a command the options `--url` and `--key`, and as first argument a client for that service."""
    own = list(signature(command).parameters.values())[1:]
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in (("url", AtUrl), ("key", WithKey))
    ]

    def run(url: str | None, key: str | None, *arguments: Rest.args, **given: Rest.kwargs) -> None:
        with connected(url, key) as service:
            command(service, *arguments, **given)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = signature(command).replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in (*own, *options)}
    return run


@contextmanager
def connected(url: str | None, key: str | None, *, after_failure: str = "") -> Iterator[Anamnesis]:
    """Yield a client of the running service; errors end the program with one line.

    Args:
        url: Address of the service; None = the one that `address_of` finds.
        key: An API key or token, if the service requires one.
        after_failure: Sentence after the reason, such as what to do next.
    """
    settings = quiet_settings()  # which also sends log lines where they do not mix with the output
    address = (url or address_of(settings)).rstrip("/")
    if not address.startswith(("http://", "https://")):
        fail(f"--url must begin with http:// or https://; this is {address!r}", WRONG_USE)
    headers = {"Authorization": f"Bearer {key}"} if key else None
    patience = httpx.Timeout(None, connect=_PATIENCE_S)
    with one_line_errors(after_failure):
        try:
            with httpx.Client(
                base_url=address,
                headers=headers,
                timeout=patience,
                trust_env=not is_loopback(address),
                verify=address.startswith("https://"),  # loading certificates takes longer than most commands
            ) as http:
                http.get("/healthz", timeout=_PATIENCE_S)
                yield Anamnesis(address, user="me", http=http)
        except httpx.ConnectError:
            fail(f"No service is running at {address}; start one with: anamnesis serve")
        except (httpx.TransportError, httpx.InvalidURL, Unreachable) as error:
            reason = str(error) or type(error).__name__
            raise Unavailable(f"The service at {address} does not answer ({reason}).") from None
        except ServiceError as error:
            wrong_use = error.status == HTTPStatus.UNPROCESSABLE_ENTITY
            fail(then(told(error), after_failure), WRONG_USE if wrong_use else FAILED)
        except UnicodeEncodeError:
            fail("what is given is not UTF-8", WRONG_USE)


def address_of(settings: Settings) -> str:
    """Return where the service of this machine listens: the configured address, or that of the service on the data
    folder.

    A service may listen elsewhere than its settings say (`anamnesis serve --port 8080`).
    """
    named = {"host", "port"} & settings.model_fields_set
    return settings.address if named else address_of_holder(settings.data_dir) or settings.address


def told(error: ClientError) -> str:
    """Return the error in words."""
    if not isinstance(error, ServiceError):
        return f"The service does not answer ({error})."
    if error.status == HTTPStatus.UNAUTHORIZED:
        return f"The service refuses the key; set {KEY_VARIABLE}, or use --key."
    if error.code == NOT_OURS:
        return f"{error.status} {error.detail}; is that the address of Anamnesis?"
    return error.detail
