"""All settings: read once at an entry point (`serve`, `worker`, Studio, a test) and passed on."""

import difflib
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeGuard

from dotenv import dotenv_values
from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    NoDecode,
    SettingsConfigDict,
)

from services.errors import ConfigurationError
from services.platform.machine import machine_locale, machine_timezone
from services.time_reference.zones import time_zone

PREFIX = "ANAMNESIS_"
_SHORTEST_JWT_SECRET = 32
KEY_VARIABLE = f"{PREFIX}KEY"
"""Holds the credential of `anamnesis chat`; no setting of the service, which must not know it."""


def _or_openai(name: str) -> AliasChoices:
    """Read `ANAMNESIS_LLM_<name>`, or else the variable that the OpenAI SDK reads."""
    return AliasChoices(f"{PREFIX}LLM_{name}", f"OPENAI_{name}", f"llm_{name.lower()}")


class Settings(BaseSettings):
    """The service's settings, from the environment (prefix `ANAMNESIS_`) or a `.env` file."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        populate_by_name=True,
        frozen=True,
    )

    # Where the service lives
    data_dir: Path = Field(Path(".anamnesis"), description="folder of the embedded engines")
    host: str = Field("127.0.0.1", description="address to listen on; only loopback while AUTH=none")
    port: int = Field(8000, ge=1, le=65535, description="a port from 1 to 65535")
    worker: Literal["inline", "external"] = Field(
        "inline", description="inline (in this process) or external (anamnesis worker)"
    )
    log_format: Literal["console", "json"] = Field("console", description="console or json")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="debug, info, warning or error"
    )

    # Users of whom nothing else is known
    default_timezone: str = Field(
        default_factory=machine_timezone,
        description="an IANA name such as Europe/Berlin, or an offset such as +08:00; unset = the machine's",
    )
    default_locale: str | None = Field(
        default_factory=machine_locale,
        pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}$",
        description="a BCP 47 tag such as zh-CN; unset = the machine's",
    )

    # Who may call, and how often
    auth: Literal["none", "api_key", "jwt"] = Field("none", description="none (loopback only), api_key or jwt")
    jwt_jwks: str | None = Field(None, description="path or http(s)://… of the issuer's public keys, a JWKS")
    jwt_issuer: str | None = Field(None, description="what a token's iss must be")
    jwt_audience: str | None = Field(None, description="what a token's aud must be or hold")
    jwt_tenant_claim: str | None = Field(
        None, description="claim with the tenant's name or id; unset = the default tenant"
    )
    jwt_scope_claim: str = Field("scope", description="claim with the scopes")
    rate_limit_user_per_minute: int | None = Field(
        None, ge=1, le=1_000_000, description="turns of one user a minute, 1 or more; unset = no limit"
    )
    rate_limit_tenant_per_minute: int | None = Field(
        None, ge=1, le=1_000_000, description="requests of one tenant a minute, 1 or more; unset = no limit"
    )

    # What connections may cost
    http_header_timeout_s: float = Field(
        10.0, gt=0, le=600, description="seconds for the headers of a request, more than 0, at most 600"
    )
    http_body_timeout_s: float = Field(
        30.0, gt=0, le=3600, description="seconds for a request's body, 1 more for each 16 KB; at most 3600"
    )
    http_reader_timeout_s: float = Field(
        30.0, gt=0, le=3600, description="seconds for which a client may take nothing of an answer; at most 3600"
    )
    http_bodies_mb: int = Field(
        512, ge=70, le=1_048_576, description="megabytes of all request bodies under way, 70 or more"
    )
    http_bodies_caller_mb: int = Field(
        160, ge=70, le=1_048_576, description="megabytes of one caller's request bodies under way, 70 or more"
    )
    http_socket_message_mb: int = Field(
        16, ge=1, le=70, description="megabytes of a message over a WebSocket, 1 to 70"
    )

    # OpenAI's clients
    openai_model_aliases: Annotated[dict[str, str], NoDecode] = Field(
        {}, description="names of experts under other names, such as gpt-4o=default,gpt-4o-mini=default"
    )
    openai_default_user: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._:@-]{1,128}$",
        description="user of requests to /v1 that name none, while AUTH=none; unset = these are not remembered",
    )
    openai_system_messages: Literal["append", "ignore"] = Field(
        "append", description="append (clients' system messages follow the expert's prompt) or ignore"
    )
    openai_system_tokens: int = Field(
        1000, ge=0, le=100_000, description="tokens of clients' system messages in a prompt, 0 to 100000"
    )
    openwebui_jwt_secret: SecretStr | None = Field(
        None, description="Open WebUI's FORWARD_USER_INFO_HEADER_JWT_SECRET, 32 characters or more"
    )

    # Stores; each unset = embedded
    database_url: SecretStr | None = Field(None, description="postgresql://… of a role that owns nothing")
    migration_database_url: SecretStr | None = Field(None, description="postgresql://… of the owner")
    milvus_uri: str | None = Field(None, description="http://host:port of a Milvus server")
    milvus_token: SecretStr | None = Field(None, description="user:password or token of that server")
    redis_url: SecretStr | None = Field(None, description="redis://host:port/0")

    # Language model; no model = the built-in offline model
    llm_model: str | None = Field(None, description="the model's name at the endpoint")
    llm_base_url: str | None = Field(
        None, validation_alias=_or_openai("BASE_URL"), description="http(s)://… of an OpenAI-compatible API"
    )
    llm_api_key: SecretStr | None = Field(
        None, validation_alias=_or_openai("API_KEY"), description="the endpoint's key"
    )
    llm_api: Literal["responses", "chat"] = Field("responses", description="responses or chat")
    llm_tools: Literal["auto", "on", "off"] = Field(
        "auto", description="auto (offered until a model refuses them), on or off"
    )
    llm_messages: Literal["compatible", "native"] = Field(
        "compatible", description="compatible (one system message, first) or native (one wherever it applies)"
    )
    small_llm_model: str | None = Field(None, description="model for background work; unset = LLM_MODEL")
    llm_fallback_models: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="names of models at the same endpoint, separated by commas"
    )
    llm_timeout_s: float = Field(60.0, gt=0, le=3600, description="seconds, more than 0, at most 3600")

    # Embeddings; no model = the built-in lexical embedder
    embedding_model: str | None = Field(None, description="the model's name at the endpoint")
    embedding_api: Literal["openai", "local"] = Field(
        "openai", description="openai (an endpoint) or local (a sentence-transformers model on this machine)"
    )
    embedding_base_url: str | None = Field(None, description="http(s)://… of an OpenAI-compatible API")
    embedding_api_key: SecretStr | None = Field(None, description="the endpoint's key")
    embedding_dim: int | None = Field(None, ge=2, le=32768, description="dimensions, 2 to 32768")

    # Turns
    turns_max: int = Field(
        600, ge=1, le=100_000, description="turns that run or wait in one process at the same time, 1 to 100000"
    )
    turn_events_keep_s: int = Field(
        600, ge=1, le=30 * 86_400, description="seconds for which a turn's events can be replayed, 1 to 2592000"
    )

    # Prompt
    context_budget_tokens: int = Field(
        4000, ge=500, le=1_000_000, description="tokens of the prompt without the user's message, 500 or more"
    )

    context_idle_minutes: float = Field(
        30.0, gt=0, le=1440, description="minutes after which a prompt's beginning may change; more than 0"
    )
    context_time: bool = Field(True, description="on or off")

    # Tone
    tone: bool = Field(True, description="on or off")
    tone_llm: bool = Field(False, description="on or off")

    # Memory
    memory_summaries: bool = Field(True, description="on or off")
    memory_summary_min_messages: int = Field(10, ge=2, le=1000, description="messages, 2 to 1000")
    memory_summary_update_delta: int = Field(5, ge=1, le=1000, description="messages, 1 to 1000")
    memory_summary_window_size: int = Field(6, ge=2, le=1000, description="messages, 2 to 1000")
    memory_summary_full_after: int = Field(10, ge=1, le=10_000, description="increments, 1 to 10000")
    memory_summary_chunk_tokens: int = Field(
        8000, ge=500, le=1_000_000, description="tokens of the transcript in one call, 500 or more"
    )
    memory_summary_max_tokens: int = Field(500, ge=50, le=10_000, description="tokens, 50 to 10000")
    memory_topics: bool = Field(True, description="on or off")
    memory_visits: bool = Field(True, description="on or off")
    memory_visit_idle_minutes: float = Field(
        30.0, gt=0, le=1440, description="minutes of silence after which a visit has ended; more than 0"
    )
    memory_days_tokens: int = Field(500, ge=50, le=10_000, description="tokens of a prompt, 50 to 10000")
    memory_share_human: bool = Field(False, description="on or off")
    memory_core: bool = Field(True, description="on or off")
    memory_persona: bool = Field(True, description="on or off")
    memory_agent: bool = Field(True, description="on or off")
    memory_agent_pause_s: float = Field(60.0, ge=0, le=3600, description="seconds, 0 to 3600")
    memory_episodes: bool = Field(True, description="on or off")
    memory_recall: bool = Field(True, description="on or off")
    memory_recall_budget_ms: int = Field(150, ge=1, le=10_000, description="milliseconds, 1 to 10000")
    memory_working_set_mb: int = Field(
        256, ge=0, le=65_536, description="megabytes, 0 to 65536; 0 = none are kept"
    )
    memory_recall_fusion: Literal["scores", "ranks"] = Field("scores", description="scores or ranks")
    memory_recall_items: int = Field(5, ge=1, le=50, description="episodes in a prompt, 1 to 50")
    memory_recall_tokens: int = Field(300, ge=50, le=10_000, description="tokens of a prompt, 50 to 10000")
    memory_compression: bool = Field(True, description="on or off")
    memory_compression_similarity: float = Field(
        0.85, ge=0.5, le=1, description="cosine from which on episodes are alike, 0.5 to 1"
    )
    memory_compression_cluster: int = Field(4, ge=2, le=25, description="episodes that are merged, 2 to 25")
    memory_compression_retire_importance: float = Field(
        0.3, ge=0, le=1, description="importance below which episodes are retired, 0 (none) to 1"
    )
    memory_compression_retire_days: int = Field(
        90, ge=1, le=36_500, description="days after which episodes are retired, 1 to 36500"
    )
    memory_compression_keep_days: int = Field(
        30, ge=1, le=3650, description="days for which a run can be undone, 1 to 3650"
    )
    memory_reflection: bool = Field(True, description="on or off; the expert decides")

    # Knowledge bases
    routing_llm: bool = Field(False, description="on or off")
    knowledge_max_document_mb: int = Field(50, ge=1, le=65, description="megabytes of a document, 1 to 65")

    # Tools
    tools_quick: bool = Field(True, description="on or off")
    tools_filler: bool = Field(True, description="on or off")
    tools_offered: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="names of tools that models are offered beside the usual ones, separated by commas"
    )
    tools_compose: Literal["single", "progressive"] = Field("single", description="single or progressive")
    weather_url: str | None = Field(
        None, description="http(s)://… of an Open-Meteo forecast API; unset = no weather"
    )
    weather_geocoding_url: str | None = Field(
        None, description="http(s)://… of an Open-Meteo geocoding API; unset = WEATHER_URL"
    )

    @field_validator("llm_fallback_models", "tools_offered", mode="before")
    @classmethod
    def _split_names(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(name.strip() for name in value.split(",") if name.strip())
        return value

    @field_validator("openai_model_aliases", mode="before")
    @classmethod
    def _split_aliases(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
        if wrong := [name for name, _, expert in pairs if not name.strip() or not expert.strip()]:
            raise ValueError(f"{wrong[0]!r} is not of the form name=expert")
        return {name.strip(): expert.strip() for name, _, expert in pairs}

    @field_validator("openwebui_jwt_secret")
    @classmethod
    def _is_long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value and len(value.get_secret_value()) < _SHORTEST_JWT_SECRET:
            raise ValueError(f"is shorter than {_SHORTEST_JWT_SECRET} characters")
        return value

    @field_validator("database_url", "migration_database_url")
    @classmethod
    def _is_postgres(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not value.get_secret_value().startswith(("postgresql://", "postgres://")):
            raise ValueError("not a postgresql:// address")
        return value

    @field_validator("default_timezone")
    @classmethod
    def _is_time_zone(cls, value: str) -> str:
        time_zone(value)
        return value

    @field_validator("redis_url")
    @classmethod
    def _is_redis(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not value.get_secret_value().startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("not a redis:// address")
        return value

    @field_validator("milvus_uri", "llm_base_url", "embedding_base_url", "weather_url", "weather_geocoding_url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("not an http:// or https:// address")
        return value

    @model_validator(mode="after")
    def _authentication_fits(self) -> Self:
        if self.auth == "none" and not _is_loopback(self.host):
            raise ValueError(
                f"{PREFIX}HOST={self.host} is not accepted: without authentication only a loopback address is "
                f"served; set {PREFIX}AUTH=api_key or {PREFIX}AUTH=jwt to serve others"
            )
        if self.auth == "jwt":
            needed = {"JWKS": self.jwt_jwks, "ISSUER": self.jwt_issuer, "AUDIENCE": self.jwt_audience}
            if missing := [f"{PREFIX}JWT_{name}" for name, value in needed.items() if not value]:
                raise ValueError(f"{PREFIX}AUTH=jwt needs {', '.join(missing)}")
        return self

    @model_validator(mode="after")
    def _model_has_endpoint(self) -> Self:
        if self.llm_model and not (self.llm_api_key or self.llm_base_url):
            raise ValueError(f"{PREFIX}LLM_MODEL is set, but neither {PREFIX}LLM_API_KEY nor {PREFIX}LLM_BASE_URL")
        if self.embedding_model and not self.embedding_dim:
            raise ValueError(f"{PREFIX}EMBEDDING_MODEL needs {PREFIX}EMBEDDING_DIM, the model's dimensions")
        if self.weather_geocoding_url and not self.weather_url:
            raise ValueError(f"{PREFIX}WEATHER_GEOCODING_URL needs {PREFIX}WEATHER_URL")
        if self.migration_database_url and not self.database_url:
            raise ValueError(f"{PREFIX}MIGRATION_DATABASE_URL needs {PREFIX}DATABASE_URL")
        return self

    @property
    def offline(self) -> bool:
        """Whether the built-in offline model answers."""
        return self.llm_model is None


SECRET_FIELDS = frozenset(
    name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)
)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def load_settings(**overrides: Any) -> Settings:
    """Read the settings.

    Raises:
        ConfigurationError: a value is wrong. Its message is one line that names the variable, the
            value (unless it is secret) and what is accepted.
    """
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise ConfigurationError(_one_line(error)) from None


@dataclass(frozen=True)
class EffectiveSetting:
    """A setting as the service would use it."""

    variable: str
    value: str | None
    """None = unset; a secret is masked."""
    source: Literal["default", ".env", "environment"]
    description: str


def effective_settings(settings: Settings) -> list[EffectiveSetting]:
    """Each setting with its value and where the value comes from, in the order of the class."""
    sources = (("environment", EnvSettingsSource(Settings)()), (".env", DotEnvSettingsSource(Settings)()))
    found = []
    for name, field in Settings.model_fields.items():
        names = {name, *(map(str, field.validation_alias.choices) if _has_choices(field.validation_alias) else ())}
        source: Any = next((label for label, values in sources if names & values.keys()), "default")
        value = getattr(settings, name)
        shown = None if value in (None, (), {}) else _as_text(value)
        found.append(EffectiveSetting(f"{PREFIX}{name.upper()}", shown, source, field.description or ""))
    return found


def _has_choices(alias: object) -> TypeGuard[AliasChoices]:
    return isinstance(alias, AliasChoices)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return ",".join(f"{name}={each}" for name, each in value.items())
    return ",".join(value) if isinstance(value, tuple) else str(value)


def unknown_variables() -> list[str]:
    """One line for each `ANAMNESIS_` variable, set or in `.env`, that is no setting, with the nearest known."""
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | {KEY_VARIABLE}
    lines = []
    for name in sorted({*os.environ, *(each.upper() for each in dotenv_values(".env"))}):
        if name.startswith(PREFIX) and name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            lines.append(f"{name} is not a setting{hint}")
    return lines


def _one_line(error: ValidationError) -> str:
    problem = error.errors()[0]
    reason = str(problem["msg"]).removeprefix("Value error, ")
    if not problem["loc"]:
        return reason
    location = str(problem["loc"][0])
    name = location if location.isupper() else f"{PREFIX}{location.upper()}"
    field = name.removeprefix(PREFIX).lower()
    if (fallback := field.upper().replace("LLM_", "OPENAI_")) in os.environ and name not in os.environ:
        name = fallback
    description = Settings.model_fields[field].description
    value = "" if field in SECRET_FIELDS else f"={problem['input']!s}"
    return f"{name}{value} is not accepted ({reason}); expected: {description}"
