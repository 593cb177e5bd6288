"""How each endpoint of the API is asked with somebody's names and ids, and what it may answer."""

import re
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

from tests.support.parties import Ask, Names, Party, header_safe
from tests.support.walk import Build, Endpoint, Entry

CHAT: Endpoint = ("POST", "/api/v1/chat")
CONVERSATIONS: Endpoint = ("GET", "/api/v1/conversations")
CONVERSATION = "/api/v1/conversations/{conversation_id}"
V1_CONVERSATION = "/v1/conversations/{conversation_id}"
RESPONSE = "/v1/responses/{response_id}"
TURN = "/api/v1/turns/{turn_id}"
USER = "/api/v1/users/{user_id}"
EXPERT = "/api/v1/experts/{name}"
EXPERIMENTS = "/api/v1/experiments"
BASES = "/api/v1/knowledge-bases"
BASE = f"{BASES}/{{prefix}}"
SECTION = f"{USER}/core-memory/{{section}}"
CHAT_DOCUMENTS = f"{USER}/sessions/{{session_id}}/documents"
EPISODES = f"{USER}/episodes"
EPISODE = f"{EPISODES}/{{episode_id}}"
PROPOSALS = f"{USER}/memory-proposals"
UPKEEP = f"{USER}/upkeep-runs"
MESSAGES: Endpoint = ("GET", f"{CONVERSATION}/messages")

Value = Callable[[Party, Names, Names, Random], Any]
"""What stands in a place of a request, for who asks, whose ids and whose details it names."""


def ids(own: str, another: str | None = None) -> Value:
    """A name or id of this kind; of the other kind where the ids are another's."""

    def value(me: Party, names: Names, _: Names, chance: Random) -> str:
        is_anothers = isinstance(names, Party) and names is not me
        return names.pick((another or own) if is_anothers else own, chance)

    return value


def more(kind: str, *, instead: str = "", most: int | None = None) -> Value:
    """A detail of this kind; something else where it is empty."""
    return lambda _, __, details, chance: (details.pick(kind, chance) or instead)[:most]


def of_me(most: int = 3000) -> Value:
    """A text of the party."""
    return lambda me, _, details, chance: f"You are of {me.canary}, who says {details.pick('phrase', chance)}"[
        :most
    ]


def said(verb: str = "said") -> Value:
    """A message of the party."""
    return lambda me, _, details, chance: f"{me.canary} {verb} {details.pick('phrase', chance)}"


def any_of(*values: Any) -> Value:
    """One of these."""
    return lambda *names: _filled(names[-1].choice(values), *names)


def at_times(value: Any, share: float = 0.3) -> Value:
    """This, or nothing."""
    return lambda *names: _filled(value, *names) if names[-1].random() < share else None


def safe(value: Value) -> Value:
    """As a header can hold it."""
    return lambda *names: header_safe(value(*names))


def prefixed(prefix: str, value: Value) -> Value:
    """With something before it."""
    return lambda *names: f"{prefix}{value(*names)}"


def page(cursor: str = "cursor") -> dict[str, Any]:
    """Where a list begins and ends."""
    return {"limit": more("limit"), "after": at_times(more(cursor), 0.5)}


def _filled(value: Any, me: Party, names: Names, details: Names, chance: Random) -> Any:
    """A template with every value in its place; what is nothing is left out."""
    if callable(value):
        return value(me, names, details, chance)
    if isinstance(value, dict):
        filled = {key: _filled(each, me, names, details, chance) for key, each in value.items()}
        return {key: each for key, each in filled.items() if each is not None}
    if isinstance(value, list):
        return [_filled(each, me, names, details, chance) for each in value]
    return value


PATHS: dict[str, Any] = {
    "conversation_id": ids("conversation"),
    "turn_id": ids("turn"),
    "user_id": ids("user", "own user"),  # both have users of the shared names
    "session_id": ids("session", "shared session"),
    "name": ids("expert", "own expert"),  # both have one that is named default
    "prefix": ids("own base"),
    "document_id": ids("document"),
    "section": more("section"),
    "episode_id": ids("episode"),
    "memory_id": ids("episode"),
    "space": "none such",
    "job_id": ids("job", "kept job"),
    "model": ids("expert", "own expert"),
    "response_id": prefixed("resp_", ids("turn")),
    # Nobody has any of these by the id of something else.
    "branch_id": ids("turn"),
    "exclusion_id": ids("turn"),
    "proposal_id": ids("turn"),
    "key_id": ids("turn"),
    "run_id": ids("episode"),
    "operation_id": ids("episode"),
    "item_id": prefixed("msg_", ids("conversation")),
}
"""What stands in a place of a path, unless an endpoint says something else."""


def asked(path: str, *, body: Any = None, query: Any = None, headers: Any = None, **places: Any) -> Build:
    """A request to a path, from templates."""
    named = {name: places.get(name, PATHS.get(name)) for name in re.findall(r"{(\w+)}", path)}
    return lambda *names: Ask(
        _filled(named, *names),
        _filled(query or {}, *names),
        _filled(headers or {}, *names),
        _filled(body, *names),
    )


def words_with_key(key: str) -> str:
    """The same words whenever the same key is sent, but never another's canary."""
    return f"number {zlib.crc32(key.encode())}"


def _chat(me: Party, names: Names, details: Names, chance: Random) -> Ask:
    session = ids("session", "shared session")(me, names, details, chance)
    body: dict[str, Any] = {"user_id": names.pick("user", chance), "session_id": session}
    headers = {}
    phrase = details.pick("phrase", chance)
    if chance.random() < 0.3:
        headers["Idempotency-Key"] = header_safe(details.pick("key", chance))
        phrase = words_with_key(headers["Idempotency-Key"])
    elif chance.random() < 0.3 and me.user is None:
        body |= {"expert": details.pick("expert", chance), "session_id": f"new-{chance.randrange(40)}"}
    if chance.random() < 0.2:
        body["kb_prefix"] = details.pick("user", chance)
    return Ask(headers=headers, body={**body, "message": f"{me.canary} says {phrase}"})


NO_EXPERT = "nobody"
"""What is stored, `/v1/chat/completions` says."""

_SESSION = safe(ids("session", "shared session"))
_CANCELLED = any_of(ids("ended turn"), ids("ended turn", "running turn"))  # one's own in progress would end
_LEAVING = ids("leaving conversation", "conversation")  # one's own are still asked for; another's stay
_UI_MESSAGE = [{"id": "m", "role": "user", "parts": [{"type": "text", "text": said("says")}]}]
_MCP_CALLS = any_of(
    {"name": "recall", "arguments": {"query": more("phrase", most=1000)}},
    {"name": "profile", "arguments": {}},
    {"name": "what_happened", "arguments": {"from": "2026-01-01", "to": "2026-12-31"}},
    {"name": "remember", "arguments": {"text": of_me(300)}},
    {"name": "correct", "arguments": {"id": ids("episode"), "text": of_me(300)}},
    {"name": "forget", "arguments": {"id": ids("episode")}},
)
_LINE = {
    "user_id": ids("user"),
    "session_id": ids("session", "shared session"),
    "role": any_of("user", "assistant"),
    "external_id": at_times(lambda *names: words_with_key(more("key")(*names))),
    "content": said(),
    "created_at": "2025-01-01T00:00:00Z",
}

OK, GONE = frozenset({200}), frozenset({404})
MADE, REMOVED = frozenset({201, 409}), frozenset({204})  # 409: the name is taken
LEFT = REMOVED | GONE
BUSY = frozenset({409})  # a running experiment has to be stopped first
FOUND = OK | GONE
REFUSED = frozenset({403})
UNREAD = frozenset({415})
RAN = frozenset({200, 409, 422})
ANSWERED = frozenset({200, 409})  # 409: too many wait in the conversation
STREAMED = OK | frozenset({204})

OUTSIDE_OF_THE_DOCUMENT: frozenset[Endpoint] = frozenset({("POST", "/mcp")})

Statuses = frozenset[int]
TABLE: dict[Endpoint, Entry] = {}


def _row(
    method: str, path: str, own: Statuses, foreign: Statuses = GONE, of_other_user: Statuses = GONE, **asks: Any
) -> None:
    """An endpoint with what it answers to one's own ids, another tenant's, and another user's."""
    kept = {name: asks.pop(name) for name in ("weight", "is_admins") if name in asks}
    build = asks.pop("build", None) or asked(path, **asks)
    TABLE[method, path] = Entry(build, own, foreign, of_other_user, **kept)


def _admins(method: str, path: str, own: Statuses, foreign: Statuses = GONE, **asks: Any) -> None:
    """The same, of an endpoint that is not for users."""
    _row(method, path, own, foreign, asks.pop("of_other_user", foreign), is_admins=True, **asks)


# What a tool refuses it says in its answer; a token may name no other user.
_row(
    "POST", "/mcp", OK, OK, REFUSED,
    headers={"Accept": "application/json, text/event-stream", "X-User-Id": safe(ids("user"))},
    body={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": _MCP_CALLS},
)  # fmt: skip
_row(
    "POST", "/api/v1/ui/chat", GONE,
    body={"id": _SESSION, "user": ids("user"), "expert": NO_EXPERT, "messages": _UI_MESSAGE},
)  # fmt: skip
_row(
    "POST",
    "/api/v1/ui/ag-ui",
    GONE,
    body={
        "threadId": _SESSION,
        "runId": more("key"),
        "messages": [{"id": "m", "role": "user", "content": said("says")}],
        "forwardedProps": {"user": ids("user"), "expert": NO_EXPERT},
    },
)
_row(
    "GET", "/api/v1/ui/chat/{chat_id}/stream", STREAMED, STREAMED, STREAMED,
    chat_id=_SESSION, query={"user": ids("user")},
)  # fmt: skip

# Another tenant's names are one's own names, too; the token's user counts, whatever name is sent.
_row(
    "POST",
    "/v1/chat/completions",
    ANSWERED,
    ANSWERED,
    ANSWERED,
    headers={"X-Session-Id": _SESSION},
    body={
        "model": "default",
        "user": ids("user"),
        "messages": [{"role": "user", "content": said("says")}],
    },
    weight=3,
)
_NO_RESPONSE = prefixed("resp_", ids("conversation", "turn"))  # what was said in the walk must all be found
_row(
    "POST", "/v1/responses", GONE,
    body={"model": "default", "user": "u-1", "input": said("says"), "previous_response_id": _NO_RESPONSE},
)  # fmt: skip
_row("GET", RESPONSE, OK)
_row("DELETE", RESPONSE, GONE, response_id=_NO_RESPONSE)
_row("POST", f"{RESPONSE}/cancel", OK, response_id=prefixed("resp_", _CANCELLED))
_row("GET", f"{RESPONSE}/input_items", OK)
_ITEMS = {"items": [{"role": "user", "content": said()}]}
_V1: dict[str, Any] = {"conversation_id": prefixed("conv_", ids("conversation"))}
_row(
    "POST", "/v1/conversations", OK, FOUND, FOUND,
    body={**_ITEMS, "metadata": {"user": ids("user"), "model": PATHS["model"]}},
)  # fmt: skip
_row("GET", V1_CONVERSATION, OK, **_V1)
_row("DELETE", V1_CONVERSATION, FOUND, conversation_id=prefixed("conv_", _LEAVING))
_row("GET", f"{V1_CONVERSATION}/items", OK, **_V1)
_row("POST", f"{V1_CONVERSATION}/items", OK, body=_ITEMS, **_V1)
_row("GET", f"{V1_CONVERSATION}/items/{{item_id}}", GONE, **_V1)
_row("DELETE", f"{V1_CONVERSATION}/items/{{item_id}}", GONE, **_V1)
_row("GET", "/v1/models", OK, OK, OK)
_row("GET", "/v1/models/{model}", OK, GONE, OK)

# Another's expert is refused.
for _path in ("/api/v1/chat", "/api/v1/chat/stream"):
    _row("POST", _path, ANSWERED | {422}, ANSWERED | {422}, build=_chat, weight=3)
_row("POST", "/api/v1/chat/ticket", OK, OK, OK, weight=1)
_row("GET", TURN, OK)
_row("GET", f"{TURN}/why", OK)
_row("POST", f"{TURN}/replay", ANSWERED, body={"ask": False})
_row(
    "POST", f"{TURN}/feedback", OK,
    turn_id=ids("ended turn", "turn"), body={"rating": any_of("up", -1), "comment": of_me(500)},
)  # fmt: skip
_row("GET", f"{TURN}/feedback", FOUND)
_row("DELETE", f"{TURN}/feedback", LEFT)
_row("GET", f"{TURN}/stream", OK, headers={"Last-Event-ID": safe(more("event"))})
_row("POST", f"{TURN}/cancel", OK, turn_id=_CANCELLED)
_row(
    "POST", f"{TURN}/approve", FOUND | BUSY,
    turn_id=_CANCELLED, body={"approval_id": ids("turn"), "approved": any_of(True, False)},
)  # fmt: skip

_OF_USER = {"user_id": at_times(any_of(ids("user"), ids("own user")), 0.6), **page()}
_row("GET", "/api/v1/turns", OK, OK, FOUND, query=_OF_USER)
_row(
    "GET", "/api/v1/conversations", OK, OK, FOUND, query={**_OF_USER, "session_id": at_times(ids("session"), 0.6)}
)
for _name in ("", "/branches", "/summary", "/exclusions"):
    _row("GET", f"{CONVERSATION}{_name}", OK)
for _name in ("/messages", "/turns", "/topics"):
    _row("GET", f"{CONVERSATION}{_name}", OK, query=page())
_row("PATCH", CONVERSATION, OK, body={"pinned": True})
_row("POST", f"{CONVERSATION}/name", OK)
_row("POST", f"{CONVERSATION}/close", OK)
_row("DELETE", CONVERSATION, FOUND, conversation_id=_LEAVING, query={"keep_memories": any_of("true", "false")})
_row("POST", f"{CONVERSATION}/branches/{{branch_id}}/switch", GONE)
# Nothing that could be excluded: an exclusion that went with its conversation has no owner any more.
_row("POST", f"{CONVERSATION}/exclusions", GONE | {422}, GONE | {422}, body={"what": ids("turn")})
_row("DELETE", f"{CONVERSATION}/exclusions/{{exclusion_id}}", GONE)

# Names of users and sessions are each tenant's own. Bodies are sent as JSON, which is a kind that is not read.
_SOURCE = {"source": more("expert place")}
_row("GET", CHAT_DOCUMENTS, OK, OK, user_id=ids("user"))
_row("POST", CHAT_DOCUMENTS, UNREAD, UNREAD, user_id=ids("user"), query=_SOURCE, body={"a": 1})
_row("DELETE", f"{CHAT_DOCUMENTS}/{{document_id}}", GONE, user_id=ids("user"), document_id=ids("conversation"))
_row("POST", f"{USER}/archive-imports", OK, OK, user_id=ids("user"), query={"vendor": "chatgpt"}, body={"a": 1})
_row("POST", "/api/v1/import", OK, OK, OK, body=_LINE)  # a line for another user is an error of the line
_row("GET", f"{USER}/export", OK, user_id=ids("own user"))

# Users share their tenant's experts; a name that another tenant has taken is free.
_row("GET", "/api/v1/experts", OK, OK, OK, query=page("expert place"))
_admins(
    "POST", "/api/v1/experts", MADE, MADE,
    body={"name": ids("leaving expert", "shared expert"), "system_prompt": of_me()},
)  # fmt: skip
_row("GET", EXPERT, OK, GONE, OK)
_row("GET", f"{EXPERT}/prompt", OK, GONE, OK)
_admins("PATCH", EXPERT, OK, body={"persona": of_me()})
_admins("DELETE", EXPERT, LEFT, name=ids("leaving expert", "own expert"))

# Experiments are for admins alone; names may repeat between tenants.
_admins("GET", EXPERIMENTS, OK, OK, query=page("expert place"))
_admins(
    "POST",
    EXPERIMENTS,
    MADE,
    MADE,
    body={
        "name": ids("leaving experiment", "shared expert"),
        "variants": [{"name": "a"}, {"name": "b", "settings": {"system_prompt": of_me()}}],
    },
)
_admins("GET", f"{EXPERIMENTS}/{{name}}", OK, name=ids("experiment"))
_admins("PATCH", f"{EXPERIMENTS}/{{name}}", OK, name=ids("experiment"), body={"description": of_me(2000)})
_admins("DELETE", f"{EXPERIMENTS}/{{name}}", LEFT | BUSY, name=ids("leaving experiment", "experiment"))
_admins("GET", f"{EXPERIMENTS}/{{name}}/report", OK, name=ids("experiment"))

# Users share their tenant's knowledge bases, too.
_row("GET", BASES, OK, OK, OK, query=page("base place"))
_admins("POST", BASES, MADE, MADE, body={"prefix": ids("leaving base", "shared base"), "description": of_me(2000)})
_row("GET", BASE, OK, GONE, FOUND)
_admins("PATCH", BASE, OK, body={"description": of_me(2000)})
_admins("DELETE", BASE, LEFT, prefix=ids("leaving base", "own base"))
_row("GET", f"{BASE}/documents", OK, GONE, FOUND, query=page("base place"))
_row("GET", f"{BASE}/documents/status", FOUND, GONE, FOUND, query=_SOURCE)
_admins("POST", f"{BASE}/documents", UNREAD, query=_SOURCE, body={"a": 1})
_admins("DELETE", f"{BASE}/documents/{{document_id}}", LEFT)
_row("POST", f"{BASE}/search", OK, GONE, FOUND, body={"query": more("phrase", instead="tea"), "top_k": 20})

_admins("GET", "/api/v1/keys", OK, OK)
_admins("POST", "/api/v1/keys", MADE, MADE, body={"name": of_me(200), "scopes": ["chat"]})
_admins("DELETE", "/api/v1/keys/{key_id}", GONE)
# Another tenant's name has caused nothing here.
_row(
    "GET", "/api/v1/usage", OK, OK,
    query={"limit": more("limit"), "by": any_of("user", "expert", "day"), "user_id": ids("own user")},
)  # fmt: skip
_row("GET", "/api/v1/service", OK, OK, OK)
_admins("GET", "/api/v1/jobs", OK, OK, query=page("job"))
_admins("POST", "/api/v1/jobs/{job_id}/retry", ANSWERED)
# Of a name that is no user yet there is nothing.
_row(
    "POST",
    "/api/v1/store/batch",
    OK,
    FOUND,
    body={
        "user_id": PATHS["user_id"],
        "operations": [{"op": "get", "namespace": ["walk"], "key": "none"}],
    },
)
# Models belong to the whole service, and so to the default tenant.
_ENDPOINT = {"base_url": "http://127.0.0.1:1/v1"}
_admins("POST", "/api/v1/doctor", REFUSED, REFUSED)
_admins("GET", "/api/v1/model", REFUSED, REFUSED)
_admins("PUT", "/api/v1/model", REFUSED, REFUSED, body={**_ENDPOINT, "model": "another"})
_admins("DELETE", "/api/v1/model", REFUSED, REFUSED)
_admins("POST", "/api/v1/model/models", REFUSED, REFUSED, body=_ENDPOINT)
_admins("POST", "/api/v1/model/try", REFUSED, REFUSED, body={**_ENDPOINT, "model": "another"})
_admins("GET", "/api/v1/retention", OK, OK)
_admins("PUT", "/api/v1/retention", OK, OK, body={"turns": 36_500, "operations": 36_500})
_admins("POST", "/api/v1/retention/preview", OK, OK)
_admins("POST", "/api/v1/retention/run", RAN, RAN)  # there may be no rule yet, or a run under way
_admins("GET", "/api/v1/retention/runs", OK, OK)

_row("GET", "/api/v1/mcp", OK, OK, query={"user_id": ids("user")})
_row("GET", "/api/v1/mcp/{server}/connect", GONE, server="none", query={"user_id": ids("user")})
_row("DELETE", "/api/v1/mcp/{server}", GONE, server="none", query={"user_id": ids("user")})

# A section may just have been removed.
for _name in ("", "/core-memory", "/upkeep-preview", "/memories", "/persona", "/spaces"):
    _row("GET", f"{USER}{_name}", OK)
for _name in ("/memory-operations", "/memory-proposals", "/upkeep-runs", "/erasures", "/visits"):
    _row("GET", f"{USER}{_name}", OK, query=page())
_row("GET", f"{USER}/daily-summaries", OK, query={"limit": more("limit")})
_row(
    "GET", f"{USER}/lineage", FOUND,
    query={"of": prefixed("episode:", ids("episode")), "direction": any_of("up", "down")},
)  # fmt: skip
_row("PUT", SECTION, OK, body={"content": {"says": of_me(200)}})
_row("DELETE", SECTION, LEFT, weight=4)
_row("GET", f"{SECTION}/history", FOUND, query=page("version"))
_row("PUT", f"{SECTION}/pins", FOUND, body={"field": "says", "pinned": any_of(True, False)})
_row("POST", f"{SECTION}/rollback", FOUND, body={"version": more("version")})
_row("POST", f"{USER}/memory/ask", OK, body=any_of({"question": more("phrase")}, {}))
_row("POST", f"{USER}/memory/forget", OK, body={"what": of_me()})
_row(
    "POST", f"{USER}/erasures", FOUND,
    body=any_of({"topic": of_me(), "preview": True}, {"episode_id": ids("episode"), "preview": True}),
)  # fmt: skip
_row("POST", f"{PROPOSALS}/{{proposal_id}}", GONE, body={"accept": any_of(True, False)})
_row("POST", f"{PROPOSALS}/{{proposal_id}}/undo", GONE)
_row("POST", f"{USER}/memory-operations/{{operation_id}}/undo", GONE)
_row("GET", "/api/v1/upkeep-policy", OK, OK, OK)
_admins("PUT", "/api/v1/upkeep-policy", OK, OK, body={"fading": "never"})
_row("POST", UPKEEP, frozenset({201}), body={"fading": "archive"})
_row("GET", f"{UPKEEP}/{{run_id}}", GONE)
_row("POST", f"{UPKEEP}/{{run_id}}/undo", GONE)

_ONE_CONVERSATION = {"conversation_id": at_times(ids("conversation"))}
_row(
    "POST", f"{EPISODES}/search", OK,
    body={"query": more("phrase", instead="dog"), "top_k": 20, **_ONE_CONVERSATION},
)  # fmt: skip
_row("GET", EPISODES, OK, query={**page(), **_ONE_CONVERSATION})
_row(
    "POST", EPISODES, frozenset({201}),
    body={"content": of_me(), "episode_type": any_of("preference", "context")},
)  # fmt: skip
_row("GET", EPISODE, FOUND)
_row("PATCH", EPISODE, FOUND | BUSY, body={"content": of_me()})
_row("PUT", f"{EPISODE}/pin", FOUND)
_row("DELETE", f"{EPISODE}/pin", FOUND)
_row("POST", f"{EPISODE}/restore", BUSY | GONE)  # 409: it has not faded
_row("DELETE", EPISODE, LEFT)
# Nobody's of one's own: what was said in the walk must all be found in the end.
_row(
    "POST",
    f"{USER}/memories/{{memory_id}}/correct",
    GONE,
    memory_id=ids("turn", "episode"),
    body={"text": of_me()},
)
_row("POST", f"{USER}/memories/{{memory_id}}/pin", LEFT, body={"pinned": any_of(True, False)})

_row("PATCH", f"{USER}/spaces/{{space}}", GONE, body={"name": "none such either"})
_row("DELETE", f"{USER}/spaces/{{space}}", GONE)
_admins("GET", "/api/v1/users", OK, OK, query={"limit": more("limit"), "prefix": more("user")})
_row("PATCH", USER, OK, body={"display_name": of_me(200), "timezone": "Asia/Kathmandu"})
_admins("DELETE", USER, FOUND, user_id=ids("leaving user", "own user"), weight=9)
