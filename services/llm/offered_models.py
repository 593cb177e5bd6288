"""The models that an endpoint offers, and whether the endpoint is this service itself."""

import re
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from services.json_levels import shallow_json
from services.platform.outgoing import OutgoingFailed, OutgoingHttp

OWNER: Final = "anamnesis"
"""Owner of every model that `/v1/models` of this service lists.

If an endpoint's model has this owner, the service would call itself without end, directly or through another
service.
"""
Kind = Literal["chat", "embedding", "other"]
"""Use of a model, as far as its name says; `other`: speech, pictures, moderation and bare completions."""
Problem = Literal["refuses_key", "status", "too_long", "no_list", "silent", "own"]

_WITHIN_S = 10.0
_MOST_BYTES = 2_000_000
_MOST_NAMES = 1_000
_REFUSED = (401, 403)
_NOT_FOUND = 404
_CONTEXT_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Names that vLLM, OpenRouter, Groq and LM Studio give the length of a model's context."""
_WORDS: dict[Kind, str] = {
    "embedding": "embed|embedding|embeddings|bge|gte|e5|m3e|minilm|rerank|reranker",
    "other": (
        "whisper|tts|audio|transcribe|speech|asr|realtime|dall-e|image|images|diffusion|sdxl|flux|video|sora"
        "|moderation|guard|babbage|davinci"
    ),
}
_KINDS: dict[Kind, re.Pattern[str]] = {
    kind: re.compile(rf"(?:^|[-_/.:\d])(?:{words})(?=$|[-_/.:\d])", re.IGNORECASE)
    for kind, words in _WORDS.items()
}
_PROBLEMS: dict[Problem, str] = {
    "refuses_key": "It refuses the key.",
    "status": "It answers with status {status}; its address usually ends in /v1.",
    "too_long": "Its list of models is too long; type the model's name.",
    "no_list": "It answers, but not with a list of models; type the model's name.",
    "silent": "Nothing answers at this address.",
    "own": "This is the address of an Anamnesis service, which would ask itself without end; give a model's own.",
}


@dataclass(frozen=True)
class Provider:
    """A provider, or a server that runs on the user's own machine."""

    name: str
    base_url: str
    api: Literal["responses", "chat"] = "chat"
    needs_key: bool = True


PROVIDERS = (
    Provider("OpenAI", "https://api.openai.com/v1", "responses"),
    Provider("DeepSeek", "https://api.deepseek.com/v1"),
    Provider("Qwen", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
    Provider("Ollama", "http://127.0.0.1:11434/v1", needs_key=False),
    # vLLM's own default is 8000, like this service's; the guide has it started on this port.
    Provider("vLLM", "http://127.0.0.1:8001/v1", needs_key=False),
)
"""Providers to choose from; the address of any other is typed in."""


@dataclass(frozen=True)
class OfferedModel:
    """A model of an endpoint."""

    name: str
    kind: Kind
    context_tokens: int | None
    """Tokens of its context; null where the endpoint does not say."""


@dataclass(frozen=True)
class Offered:
    """The models of an endpoint: first chat models, then embedding models, then others."""

    models: list[OfferedModel]
    problem: str | None = None
    """Why no model is offered; None = there are some."""
    code: Problem | None = None
    status: int | None = None
    """HTTP status of the endpoint's answer, if the status is the problem."""


async def models_of(http: OutgoingHttp, base_url: str, api_key: str | None) -> Offered:
    """Ask an OpenAI-compatible endpoint for its models; those of an Anamnesis service are not offered."""
    try:
        listed = await _listed(http, base_url, api_key)
    except OutgoingFailed as failed:
        return _problem(_code_of(failed), failed.status)
    except (ValueError, KeyError, TypeError):
        return _problem("no_list")
    others = {each["id"]: each for each in listed if not _is_own(each)}
    if listed and not others:
        return _problem("own")
    offered = [OfferedModel(name, kind_of(name), _context_of(each)) for name, each in others.items()]
    offered.sort(key=lambda each: (("chat", "embedding", "other").index(each.kind), each.name))
    return Offered(offered[:_MOST_NAMES])


async def is_own(http: OutgoingHttp, base_url: str, api_key: str | None, model: str) -> bool:
    """Return whether a request for this model would reach an Anamnesis service."""
    addresses = [base_url]
    if not urlsplit(base_url).path.strip("/"):  # it is asked below /v1 as well
        addresses.append(f"{base_url.rstrip('/')}/v1")
    for address in addresses:
        try:
            listed = await _listed(http, address, api_key)
        except (OutgoingFailed, ValueError, KeyError, TypeError):
            continue
        named = [each for each in listed if each["id"] == model] or listed
        return bool(named) and all(map(_is_own, named))
    return False


def text_of(problem: Problem, status: int | None = None) -> str:
    """Say what is wrong with an endpoint."""
    return _PROBLEMS[problem].format(status=status)


def kind_of(name: str) -> Kind:
    """Return what a model is for, as far as its name says."""
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(name)), "chat")


async def _listed(http: OutgoingHttp, base_url: str, api_key: str | None) -> list[dict[str, Any]]:
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else None
    address = f"{base_url.rstrip('/')}/models"
    body = await http.get(address, {}, within_s=_WITHIN_S, most_bytes=_MOST_BYTES, headers=headers)
    data: list[dict[str, Any]] = shallow_json(body)["data"]
    return [each for each in data if isinstance(each["id"], str) and each["id"]]


def _is_own(listed: dict[str, Any]) -> bool:
    return listed.get("owned_by") == OWNER


def _context_of(listed: dict[str, Any]) -> int | None:
    said = (listed.get(name) for name in _CONTEXT_FIELDS)
    return next((each for each in said if type(each) is int and each > 0), None)


def _problem(code: Problem, status: int | None = None) -> Offered:
    return Offered([], text_of(code, status), code, status)


def _code_of(failed: OutgoingFailed) -> Problem:
    if failed.failure == "status":
        return "refuses_key" if failed.status in _REFUSED else "status"
    return "too_long" if failed.failure == "too_large" else "silent"
