"""Where well-known providers and servers of models are asked."""

from dataclasses import dataclass
from typing import Literal


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
