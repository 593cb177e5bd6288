"""What an admin wants to know before choosing a model: where it is asked, which there are, whether one answers."""

import json
import time
from dataclasses import dataclass
from typing import Literal

from langchain_core.messages import HumanMessage
from pydantic import SecretStr

from services.errors import ModelFailed
from services.llm.chat_models import ChatModels
from services.platform.chosen_model import ChosenModel
from services.platform.outgoing import OutgoingFailed, OutgoingHttp
from services.platform.settings import Settings


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
    Provider("vLLM", "http://127.0.0.1:8000/v1", needs_key=False),
)
"""Others are typed in."""


_WITHIN_S = 10.0
_MOST_BYTES = 2_000_000
_MOST_NAMES = 1_000
_LONGEST_ANSWER = 2_000
_HELLO = "Say hello in one short sentence."


@dataclass(frozen=True)
class Offered:
    """The models of an endpoint."""

    models: list[str]
    problem: str | None = None
    """Why there are none."""


@dataclass(frozen=True)
class Tried:
    """What a model answered to a greeting."""

    answer: str | None
    milliseconds: float | None
    problem: str | None = None
    """Why it did not."""


async def models_of(http: OutgoingHttp, base_url: str, api_key: str | None) -> Offered:
    """Ask an OpenAI-compatible endpoint for the names of its models."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else None
    try:
        body = await http.get(
            f"{base_url.rstrip('/')}/models", {}, within_s=_WITHIN_S, most_bytes=_MOST_BYTES, headers=headers
        )
    except OutgoingFailed as failed:
        return Offered([], _problem(failed))
    try:
        data = json.loads(body)["data"]
        names = sorted({str(each["id"]) for each in data if isinstance(each["id"], str) and each["id"]})
    except (ValueError, KeyError, TypeError):
        return Offered([], "It answers, but not with a list of models; type the model's name.")
    return Offered(names[:_MOST_NAMES])


def _problem(failed: OutgoingFailed) -> str:
    if failed.failure == "status":
        reasons = {401: "It refuses the key.", 403: "It refuses the key."}
        return reasons.get(
            failed.status or 0,
            f"It answers with status {failed.status}; its address usually ends in /v1.",
        )
    if failed.failure == "too_large":
        return "Its list of models is too long; type the model's name."
    return "Nothing answers at this address."


async def try_model(settings: Settings, chosen: ChosenModel) -> Tried:
    """Send a model one short message."""
    key = SecretStr(chosen.api_key) if chosen.api_key else None
    wanted = {
        "llm_model": chosen.model,
        "llm_base_url": chosen.base_url,
        "llm_api_key": key,
        "llm_api": chosen.api,
    }
    models = ChatModels(settings.model_copy(update=wanted))
    begun = time.perf_counter()
    try:
        answer = await models.probe(chosen.model, [HumanMessage(_HELLO)])
    except ModelFailed as failure:
        return Tried(None, None, f"{failure.message} ({failure.detail})" if failure.detail else failure.message)
    finally:
        await models.close()
    return Tried(answer.text[:_LONGEST_ANSWER], round((time.perf_counter() - begun) * 1000, 1))
