"""The floor: the stock chat model's stream in a bare route; nothing is stored, routed or remembered.

`python -m benchmarks.floor PORT BASE_URL API [PROCESSES]`
"""

import json
import os
import sys
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr


class Asked(BaseModel):
    """The request, of the same shape as the service's."""

    user_id: str
    session_id: str
    message: str


def make_app(model: ChatOpenAI) -> FastAPI:
    """One route, `POST /chat`."""
    app = FastAPI()

    @app.get("/healthz")
    async def healthz() -> str:
        return "ok"

    @app.post("/chat")
    async def chat(asked: Asked) -> StreamingResponse:
        async def lines() -> AsyncIterator[str]:
            async for chunk in model.astream([HumanMessage(asked.message)]):
                if chunk.text:
                    yield f"data: {json.dumps({'token': chunk.text})}\n\n"
            yield "data: [DONE]\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")

    return app


def serve(app: FastAPI, port: int, processes: int) -> None:
    """Serve from several processes that share a socket; the caller ends the forked ones."""
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
    sockets = [config.bind_socket()]
    for _ in range(processes - 1):
        if os.fork() == 0:
            break
    uvicorn.Server(config).run(sockets=sockets)


if __name__ == "__main__":
    _, given_port, base_url, api, *more = sys.argv
    stock = ChatOpenAI(
        model="stand-in", base_url=base_url, api_key=SecretStr("x"), use_responses_api=api == "responses"
    )
    serve(make_app(stock), int(given_port), int(more[0]) if more else 1)
