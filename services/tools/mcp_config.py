"""Servers of the Model Context Protocol whose tools the model may call, as ANAMNESIS_MCP_SERVERS names them."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from services.errors import ConfigurationError
from services.validation import plain_reason

SETTING = "ANAMNESIS_MCP_SERVERS"
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", re.ASCII)
_WRAPPERS = ("mcpServers", "servers")


class SigningIn(BaseModel):
    """How somebody signs in at a server's authorization server: the service itself, or each user."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    per_user: bool = False
    """Each user connects an account of their own; without it the service signs itself in by its secret."""
    client_id: str | None = None
    """Id of a client that is registered by hand; None = each user's connection registers one."""
    client_secret: SecretStr | None = None
    issuer: str | None = None
    """Address of the authorization server. The service's secret is sent to it alone, whatever the tool server
    says."""
    scope: str | None = None
    callback_url: str | None = None
    """Address of `/api/v1/mcp/callback` as the user's browser sees it; None = at 127.0.0.1."""

    @model_validator(mode="after")
    def _says_enough(self) -> Self:
        if not self.per_user:
            for name in ("client_id", "client_secret", "issuer"):
                if getattr(self, name) is None:
                    raise ValueError(f"needs {name}, or per_user")
            if self.callback_url is not None:
                raise ValueError("has a callback_url, which is for per_user")
        elif self.client_secret is not None and self.client_id is None:
            raise ValueError("has a client_secret without a client_id")
        return self


class McpServerConfig(BaseModel):
    """One server: a program to start (`command`), or an address (`url`)."""

    model_config = ConfigDict(extra="ignore", frozen=True)  # editors keep fields of their own there

    command: str | None = None
    args: list[str] = Field(default_factory=list)
    env: dict[str, SecretStr] = Field(default_factory=dict)
    cwd: Path | None = None
    url: str | None = None
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    oauth: SigningIn | None = None
    disabled: bool = False
    tools: frozenset[str] | None = None
    """Names of its tools that are offered; None = all."""
    experts: frozenset[str] | None = None
    """Names of the experts who may use it; None = all."""
    timeout_s: float = Field(30.0, gt=0, le=600)
    """Seconds for one call."""
    approve: Literal["changes", "always", "never"] = "changes"
    """Calls that the user is asked about first: those that do not declare that they only read, all of them, or
    none."""

    @field_validator("url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("is not an http:// or https:// address")
        return value

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("needs either a command or a url")
        if self.oauth is not None and self.url is None:
            raise ValueError("has oauth without a url")
        return self


def servers_of(setting: str | None) -> dict[str, McpServerConfig]:
    """Read the setting: JSON in the form of Claude Desktop and Cursor, or the path of a file with such JSON.
    Raises `ConfigurationError` if it is neither, or a server has an unknown field, which is named."""
    if not setting or not setting.strip():
        return {}
    text = setting if setting.lstrip().startswith("{") else _content_of(setting.strip())
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"{SETTING} is not JSON, nor the path of a file with JSON: {error}") from None
    if not isinstance(found, dict):
        raise ConfigurationError(f'{SETTING} is not an object such as {{"mcpServers": {{"name": {{…}}}}}}.')
    servers = next((found[each] for each in _WRAPPERS if isinstance(found.get(each), dict)), found)
    made = {name: _server(name, each) for name, each in servers.items()}
    return {name: each for name, each in made.items() if not each.disabled}


def _content_of(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigurationError(f"{SETTING} names {path}, which cannot be read: {reason}.") from None


def _server(name: str, given: Any) -> McpServerConfig:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{SETTING}: {name!r} is no name; use up to 32 letters, digits, - and _.")
    try:
        return McpServerConfig.model_validate(_with_variables(name, given))
    except ValidationError as error:
        wrong = error.errors()[0]
        field = ".".join(map(str, wrong["loc"]))
        reason = wrong["ctx"]["error"] if wrong["type"] == "value_error" else plain_reason(wrong)
        raise ConfigurationError(f"{SETTING}: {name}: {field + ' ' if field else ''}{reason}") from None


def _with_variables(name: str, given: Any) -> Any:
    """Return a value with `${NAME}` and `${env:NAME}` replaced by variables of the environment."""
    if isinstance(given, Mapping):
        return {key: _with_variables(name, each) for key, each in given.items()}
    if isinstance(given, list):
        return [_with_variables(name, each) for each in given]
    if not isinstance(given, str):
        return given

    def value(found: re.Match[str]) -> str:
        if (there := os.environ.get(found[1])) is None:
            raise ConfigurationError(f"{SETTING}: {name} needs the variable {found[1]}, which is not set.")
        return there

    return _VARIABLE.sub(value, given)
