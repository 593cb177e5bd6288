"""How failures are distinguished, and that nothing of the endpoint's words reaches a caller."""

import asyncio
import socket
from collections import Counter

import pytest
from langchain_core.messages import HumanMessage

from services.errors import MODEL_FAILURES, ModelFailed, ModelFailure
from tests.services.llm.clients import SECRET, Make
from tests.support.model_server import ModelServer, Reply

QUESTION = [HumanMessage("When does the train leave?")]

BOTH: dict[str, tuple[ModelFailure, Reply]] = {
    "wrong key": ("llm_unauthorized", Reply(status=401)),
    "forbidden": ("llm_unauthorized", Reply(status=403)),
    "rate limit": ("llm_rate_limited", Reply(status=429)),
    "refused request": ("llm_rejected", Reply(status=400)),
    "context too long": ("llm_context_too_long", Reply(status=400, error_code="context_length_exceeded")),
    "unknown model": ("llm_model_unknown", Reply(status=404, error_code="model_not_found")),
    "server error": ("llm_server_error", Reply(status=500)),
    "overload": ("llm_server_error", Reply(status=503)),
    "gateway page": ("llm_server_error", Reply(status=502, raw=b"<html>sk-very-secret</html>")),
    "error in the stream": ("llm_server_error", Reply(raw=b'data: {"error": {"message": "scripted"}}\n\n')),
    "no credit": ("llm_no_credit", Reply(status=402, error_message="scripted: Insufficient Balance")),
    "no quota": ("llm_no_credit", Reply(status=429, error_code="insufficient_quota", error_message="scripted")),
    "account in arrears": ("llm_no_credit", Reply(status=403, error_message="scripted: Arrearage")),
    "rate as a bad request": ("llm_rate_limited", Reply(status=400, error_message="scripted: 请求过于频繁")),
    "only thoughts": ("llm_only_reasoning", Reply(ending="length")),
    "web page": ("llm_bad_response", Reply(raw=b"<html></html>", headers={"Content-Type": "text/html"})),
    "no JSON": ("llm_bad_response", Reply(raw=b"data: {nonsense}\n\n")),
    "JSON array": ("llm_bad_response", Reply(raw=b'data: ["scripted"]\n\n')),
    "JSON of another shape": ("llm_bad_response", Reply(raw=b'data: {"choices": ["x"]}\n\n')),
    "not text": ("llm_bad_response", Reply(raw=b"data: \xff\xfe\n\n")),
    "empty answer": ("llm_bad_response", Reply()),
    "empty stream": ("llm_stream_broken", Reply(raw=b"")),
    "end mark alone": ("llm_stream_broken", Reply(raw=b"data: [DONE]\n\n")),
    "page that calls itself a stream": ("llm_stream_broken", Reply(raw=b"<html></html>")),
    "ended before the text": ("llm_stream_broken", Reply(ending="cut")),
    "connection closed": ("llm_unreachable", Reply(silent=True, ending="abort")),
    "connection reset": ("llm_unreachable", Reply(silent=True, ending="reset")),
}
_FAILED = b'data: {"type": "response.failed", "response": {"error": {"message": "scripted"}}}\n\n'
CASES: dict[str, dict[str, tuple[ModelFailure, Reply]]] = {
    "chat": {
        **BOTH,
        "not found": ("llm_rejected", Reply(status=404)),
        "method not allowed": ("llm_rejected", Reply(status=405)),
    },
    "responses": {
        **BOTH,
        "not found": ("llm_wrong_api", Reply(status=404)),
        "method not allowed": ("llm_wrong_api", Reply(status=405)),
        "not found, as a page": ("llm_wrong_api", Reply(status=404, raw=b"<html>404</html>")),
        "failed": ("llm_server_error", Reply(raw=_FAILED)),
        "error event": (
            "llm_server_error",
            Reply(raw=b'data: {"type": "error", "code": "x", "message": "scripted"}\n\n'),
        ),
    },
}


async def test_failures_are_told_apart_in_fixed_words(make: Make, model_server: ModelServer, api: str) -> None:
    models = make(model_server.base_url, api)
    cases = CASES[api]
    for name, (_, reply) in cases.items():
        model_server.script(*[reply] * 3, model=name)

    async def ask(name: str) -> ModelFailed:
        with pytest.raises(ModelFailed) as caught:
            await models.answer(QUESTION, on_text=lambda _: None, model=name)
        return caught.value

    errors = dict(zip(cases, await asyncio.gather(*map(ask, cases)), strict=True))

    assert {name: error.failure for name, error in errors.items()} == {
        name: case[0] for name, case in cases.items()
    }
    for error in errors.values():
        assert (error.can_retry, str(error)) == MODEL_FAILURES[error.failure]
        assert not error.begun
        assert SECRET not in str(error)
        assert "scripted" not in str(error)
    tries = Counter(request.body["model"] for request in model_server.requests)
    paid = {name: 2 if error.failure == "llm_bad_response" else 3 for name, error in errors.items()}
    assert tries == {name: paid[name] if error.can_retry else 1 for name, error in errors.items()}


async def test_closed_port_is_unreachable(make: Make, api: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        models = make(f"http://127.0.0.1:{unused.getsockname()[1]}/v1", api)

        with pytest.raises(ModelFailed) as caught:
            await models.answer(QUESTION, on_text=lambda _: None)

    assert (caught.value.failure, caught.value.begun) == ("llm_unreachable", False)
