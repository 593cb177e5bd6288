"""The TypeScript of the client's page fits the types that are generated from `/openapi.json`."""

import re

import httpx

from tests.support.fork_server import ROOT

_PAGE = (ROOT / "docs" / "client.md").read_text("utf-8")


async def test_the_example_sends_every_field_that_its_types_require(client: httpx.AsyncClient) -> None:
    schema = (await client.get("/openapi.json")).json()
    content = schema["paths"]["/api/v1/chat"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    name = content["$ref"].rpartition("/")[2]
    required = set(schema["components"]["schemas"][name]["required"])
    body = re.search(r'POST\("/api/v1/chat".*?body: \{(.*?)\}', _PAGE, re.DOTALL)
    assert body is not None
    assert required <= set(re.findall(r"(\w+):", body[1]))
