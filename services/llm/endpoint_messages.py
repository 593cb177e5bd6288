"""The message in an endpoint's error: read from any of the usual bodies, stripped of secrets, and classified."""

import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pydantic import SecretStr

from services.errors import RefusalTopic
from services.platform.settings import SECRET_FIELDS, Settings
from services.platform.tracing import confidential

MOST_CHARACTERS = 300
"""Characters of an endpoint's message that are kept."""
_QUOTE_BYTES = 24
"""Consecutive bytes that a message must share with the prompt to count as a quotation of it."""
_LONGEST_READ = 2_000

_PATTERNS: tuple[tuple[RefusalTopic, str], ...] = (
    (
        "content",
        r"content exists risk|data_?inspection_?failed|inappropriate content|content_(?:filter|policy)"
        r"|content (?:management )?policy|responsible_?ai|considered high risk|\bflagged\b|censorship"
        r"|machine outputted|new_sensitive|sensitive_?content|sensitive (?:content|information|words?)"
        r"|prohibited_content|usage polic"
        r"|敏感(?:内容|信息|词)|不安全.{0,6}内容|(?:内容|输入|输出).{0,6}(?:审核|违规|不合规)",
    ),
    ("stream_options", r"stream_options|include_usage"),
    (
        "reasoning",
        r"reasoning_(?:content|details)|thinking_blocks"
        r"|\breasoning\b.{0,40}(?:unsupported|not (?:supported|permitted|allowed)|extra)",
    ),
    (
        "credit",
        r"insufficient[_ ]?(?:balance|quota|credits?|funds|account)|arrearage"
        r"|exceeded[_ ](?:your )?current[_ ]quota(?!.{0,400}RESOURCE_EXHAUSTED)|overdue"
        r"|balance (?:is )?(?:not enough|insufficient|too low)|no credits?\b"
        r"|out of credits?|credit balance|payment required|billing[_ ](?:hard[_ ]limit|not[_ ]active)"
        r"|余额(?:不足|已用)|欠费|额度(?:不足|已?用尽|已?用完|已耗尽)|资源包(?:已?用尽|已?用完|不足)|请充值",
    ),
    # Before tools, because such messages also name what used the tokens, such as functions.
    (
        "context",
        r"range of input length|length of prompt_tokens|max(?:imum)? input (?:characters|tokens|length)"
        r"|(?:tokens?|length) (?:limit|over|exceed)\w*\b(?!.{0,30}(?:minute|day))|token limit|max message tokens"
        r"|max_seq_len|max_new_tokens. must be|(?:超过|超出).{0,16}(?:长度|上下文|tokens?)"
        r"|(?:prompt|长度|上下文|输入|tokens?|字数|内容).{0,12}(?:超过|超出|超限|过长|超长)"
        r"|reduce (?:the length of )?(?:the|your) (?:message|prompt|input)|input token count"
        r"|input length.{0,20}exceed|longer than the model|too large for model"
        r"|context[_ ](?:length|window|size)|maximum (?:input|prompt|sequence) length|max_model_len"
        r"|(?:prompt|input|request|conversation) (?:is|was) too (?:long|large)|too many (?:input )?tokens"
        r"|exceed\w* (?:the )?(?:model'?s? )?(?:available |maximum )*(?:context|token|input)",
    ),
    (
        "images",
        r"\bimages?\b|image_?(?:url|input|parse)|multi-?modal|\bvlm\b|\bvision\b|图片|图像"
        r"|content\W{0,3}\s+(?:must|should) be a (?:valid )?string|content\.type",
    ),
    (
        "messages",
        r"roles? must alternate|alternat\w+ (?:between )?(?:user|roles?)"
        r"|system (?:message|prompt|role)s?\b.{0,40}(?:begin|start|first|only|unsupport|not (?:support|allow))"
        r"|\b(?:not|n't|un)[ -]?support\w*\b.{0,30}\bsystem (?:message|prompt|role)"
        r"|\broles?\b.{0,40}\b(?:are|is) (?:not )?(?:supported|allowed)|(?:unexpected|invalid|unknown) role"
        r"|tool_call_id|must be followed by tool messages|preceding message with .?tool_calls"
        r"|(?:first|last) message (?:must|should) (?:be|have)|multiple system messages",
    ),
    ("temperature", r"\btemperature\b"),
    ("schema", r"response_format|json_schema|text\.format|structured output|guided[_ ]decoding|\bgrammar\b"),
    (
        "tools",
        r"^(?=.*(?:\btools?\b|tool[_ -](?:use|choice|call)|\bfunctions?\b|function[_ -]call))"
        r".*(?:support|unavailable|not available|recogni|unknown|unexpected|extra|permit|allow|enable|require"
        r"|disabled|implement|invalid|cannot|can't)",
    ),
    ("schema", r"\bschema\b"),
    (
        "rate",
        r"rate[_ -]?limit|too many requests|throttl|(?:qps|rpm|tpm|concurren\w+).{0,30}(?:limit|exceed)"
        r"|requests? (?:is |are )?too frequent|请求过于频繁|频率|限流|并发|速率|访问量过大",
    ),
    (
        "model",
        r"\bmodels?\b.{0,80}(?:not (?:be )?found|do(?:es)?(?: not|n't) exist|unknown|not available|no access)"
        r"|(?:unknown|invalid|no such|unavailable|not find|access to).{0,20}\bmodel\b|model_not_found"
        r"|DeploymentNotFound|deployment .{0,60}does not exist|模型不存在",
    ),
    (
        "unnamed",
        r"extra (?:inputs|fields)|unrecogni[sz]ed (?:request )?(?:argument|field|key)|additional propert"
        r"|unknown (?:field|argument|parameter)",
    ),
)
_TOPICS = tuple((topic, re.compile(pattern, re.IGNORECASE | re.MULTILINE)) for topic, pattern in _PATTERNS)

_SECRETS = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}://)[^/\s:@]*:[^/\s@]*@"
    r"|(?P<header>\b(?:bearer|basic)\s+)[\w.~+/=*-]{6,}"
    r"|(?P<name>\b(?:api[-_ ]?keys?|access[-_ ]?token|authorization|token|secret|password|sig|key)\b"
    r"(?:\s+(?:is|was|provided|given))?\s*[=:]\s*['\"]?(?:(?:bearer|basic)\s+)?)[\w.~+/*-]{6,}"
    r"|\b(?:sk|pk|rk|gsk|key|hf|xai|nvapi)[-_][\w*.-]{6,}"
    r"|\beyJ[\w-]{8,}(?:\.[\w-]+){1,2}"
    r"|\b(?=[a-z]*\d)[0-9a-f]{32,}\b",
    re.IGNORECASE,
)

_PAGE = re.compile(r"\A\s*<[a-z!?]", re.IGNORECASE)
"""The beginning of HTML or XML; DashScope's messages begin with `<400>`."""
_TEXTS = ("message", "error", "detail", "msg", "error_msg", "status_msg", "base_resp", "errmsg", "title")
"""Fields that may hold the message, in the order in which they are read."""


def endpoint_message(error: Exception) -> str:
    """Return the endpoint's message on one line; for an error without a body, the client's message."""
    text = _in_body(getattr(error, "body", None))
    if not text and (response := getattr(error, "response", None)) is not None:
        kind = response.headers.get("content-type", "").split(";")[0] or "body"
        text = f"HTTP {response.status_code} with a {kind} that holds no message"
    return " ".join((text or f"{type(error).__name__}: {error}")[:_LONGEST_READ].split())


def topic_of(
    message: str, code: str | None = None, parameter: str | None = None, *, images: bool = False
) -> RefusalTopic | None:
    """Return what a refusal is about, judged by its message and the other fields; None for other errors. Only a
    request with `images` can be refused because of them."""
    text = " ".join((message[:_LONGEST_READ], code or "", parameter or ""))
    topics = (topic for topic, pattern in _TOPICS if (images or topic != "images") and pattern.search(text))
    return next(topics, None)


_WAIT = re.compile(
    r"(?:(?:try|retry) (?:again )?(?:in|after)|retry[_-]?(?:delay|after|in)\W{1,4})\s*(?P<number>\d+(?:\.\d+)?)\s*"
    r"(?P<unit>ms|m(?:in)?|s)?",
    re.IGNORECASE,
)
_SECONDS_OF = {"ms": 0.001, "m": 60.0, "min": 60.0}


def retry_after(error: Exception, message: str) -> float | None:
    """Return the seconds after which an endpoint wants to be asked again: by its headers, or else its message."""
    headers = response.headers if (response := getattr(error, "response", None)) is not None else {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        given = headers.get(name, "")
        with suppress(ValueError):
            return max(float(given) * unit, 0.0) if math.isfinite(float(given)) else None
        with suppress(ValueError, TypeError):
            return max((parsedate_to_datetime(given) - datetime.now(UTC)).total_seconds(), 0.0)
    found = _WAIT.search(message)
    return float(found["number"]) * _SECONDS_OF.get((found["unit"] or "").lower(), 1.0) if found else None


def secrets_of(settings: Settings) -> list[str]:
    """The keys and passwords among the settings."""
    values = (getattr(settings, name) for name in SECRET_FIELDS)
    return [value.get_secret_value() for value in values if isinstance(value, SecretStr)]


def for_log(message: str, secrets: Iterable[str], prompt: Iterable[str]) -> str:
    """The message without keys, credentials and quotations of the prompt, at most 300 characters long. A
    temporary turn logs none of it: an endpoint's message may paraphrase the prompt."""
    if confidential.get():
        return "withheld"
    for secret in secrets:
        if secret:
            message = message.replace(secret, "***")
    message = _SECRETS.sub(_masked, message)
    message = _without_quotations(message, "\n".join(prompt))
    return message if len(message) <= MOST_CHARACTERS else f"{message[: MOST_CHARACTERS - 1]}…"


def _masked(found: "re.Match[str]") -> str:
    if scheme := found["scheme"]:
        return f"{scheme}***@"
    return f"{found['header'] or found['name'] or ''}***"


def _without_quotations(message: str, prompt: str) -> str:
    said, given = message.encode(), " ".join(prompt.split()).encode()
    quoted = bytearray(len(said))
    for place in range(len(said) - _QUOTE_BYTES + 1):
        if said[place : place + _QUOTE_BYTES] in given:
            quoted[place : place + _QUOTE_BYTES] = b"\1" * _QUOTE_BYTES
    if not any(quoted):
        return message
    kept = bytearray()
    for place, byte in enumerate(said):
        if not quoted[place]:
            kept.append(byte)
        elif place == 0 or not quoted[place - 1]:
            kept += b"[prompt]"
    return kept.decode(errors="ignore")


def _in_body(body: object) -> str:
    """Return the message in an error body of OpenAI, Ollama, vLLM, llama.cpp, FastAPI, Baidu or MiniMax."""
    if isinstance(body, str):
        return "" if _PAGE.match(body) else body
    if isinstance(body, list):
        return "; ".join(filter(None, map(_in_body, body)))
    if not isinstance(body, Mapping):
        return ""
    fields: Mapping[str, Any] = body
    if isinstance(place := fields.get("loc"), list | tuple):  # of pydantic; its `input` would quote the prompt
        return f"{'.'.join(map(str, place))}: {fields.get('msg', '')}"
    for name in _TEXTS:
        if text := _in_body(fields.get(name)):
            return text
    return ""
