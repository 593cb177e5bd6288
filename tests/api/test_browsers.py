"""Pages of trusted origins call the API from a browser."""

import httpx
import pytest

from services.bootstrap import Services
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT
from tests.support.issuer import bearer

PAGE = {"Origin": "https://chat.example", "Sec-Fetch-Site": "cross-site"}
ASKS = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,x-session-id,x-stainless-lang",
}
BODY = {"model": "default", "user": "u-1", "messages": [{"role": "user", "content": "My dog is called Bruno."}]}
PATHS = ("/v1/chat/completions", "/v1/responses", "/api/v1/ui/chat", "/api/v1/ui/ag-ui")

pytestmark = [
    pytest.mark.untraced,
    pytest.mark.settings(auth="api_key", host="0.0.0.0", trusted_origins="https://chat.example"),
]


async def test_a_trusted_page_is_answered_with_a_key_and_reads_the_answer(
    client: httpx.AsyncClient, services: Services
) -> None:
    for path in PATHS:
        preflight = await client.options(path, headers={**PAGE, **ASKS})
        assert preflight.status_code == 200
        assert preflight.headers["Access-Control-Allow-Origin"] == PAGE["Origin"]
        allowed = preflight.headers["Access-Control-Allow-Headers"]
        assert set(ASKS["Access-Control-Request-Headers"].split(",")) <= set(allowed.lower().split(","))
        assert "access-control-allow-credentials" not in preflight.headers
    refused = await client.post(PATHS[0], json=BODY, headers=PAGE)
    assert refused.status_code == 401
    _, key = await ApiKeys(services.database).create(DEFAULT_TENANT, "page", ["chat"])
    answer = await client.post(PATHS[0], json=BODY, headers={**PAGE, **bearer(key)})
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == PAGE["Origin"]
    exposed = answer.headers["Access-Control-Expose-Headers"].lower()
    own = {name for name in answer.headers if name.startswith("x-")}
    assert own
    assert own <= set(exposed.split(", "))
    wrong = await client.post(PATHS[0], json=BODY, headers={**PAGE, **bearer(f"{key}x")})
    assert (wrong.status_code, wrong.headers["Access-Control-Allow-Origin"]) == (401, PAGE["Origin"])


async def test_other_pages_and_other_paths_get_no_leave(client: httpx.AsyncClient) -> None:
    other = {**PAGE, **ASKS, "Origin": "https://evil.example"}
    assert "Access-Control-Allow-Origin" not in (await client.options(PATHS[0], headers=other)).headers
    for path in ("/api/v1/chat", "/api/v1/keys", "/console/session"):
        assert "Access-Control-Allow-Origin" not in (await client.options(path, headers={**PAGE, **ASKS})).headers
