"""How each endpoint of the API is asked with somebody's names and ids, and what it may answer."""

import zlib
from random import Random
from typing import Any

from tests.support.parties import Ask, Names, Party, header_safe
from tests.support.walk import ERASE_CONVERSATION, ERASE_USER, Endpoint, Entry

CHAT: Endpoint = ("POST", "/api/v1/chat")
CONVERSATIONS: Endpoint = ("GET", "/api/v1/conversations")
EXPERIMENTS = "/api/v1/experiments"
BASES = "/api/v1/knowledge-bases"
CORE_MEMORY = "/api/v1/users/{user_id}/core-memory"
CHAT_DOCUMENTS = "/api/v1/users/{user_id}/sessions/{session_id}/documents"
EPISODES = "/api/v1/users/{user_id}/episodes"
UPKEEP = "/api/v1/users/{user_id}/upkeep-runs"
FEEDBACK = "/api/v1/turns/{turn_id}/feedback"
MESSAGES: Endpoint = ("GET", "/api/v1/conversations/{conversation_id}/messages")


def _is_anothers(me: Party, ids: Names) -> bool:
    return isinstance(ids, Party) and ids is not me


def _chat(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    session = ids.pick("shared session" if _is_anothers(me, ids) else "session", chance)
    body: dict[str, Any] = {"user_id": ids.pick("user", chance), "session_id": session}
    headers = {}
    phrase = more.pick("phrase", chance)
    if chance.random() < 0.3:
        headers["Idempotency-Key"] = header_safe(more.pick("key", chance))
        phrase = words_with_key(headers["Idempotency-Key"])
    elif chance.random() < 0.3 and me.user is None:
        body |= {"expert": more.pick("expert", chance), "session_id": f"new-{chance.randrange(40)}"}
    if chance.random() < 0.2:
        body["kb_prefix"] = more.pick("user", chance)
    return Ask(headers=headers, body={**body, "message": f"{me.canary} says {phrase}"})


def _completion(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    session = ids.pick("shared session" if _is_anothers(me, ids) else "session", chance)
    said = {"role": "user", "content": f"{me.canary} says {more.pick('phrase', chance)}"}
    body = {"model": "default", "user": ids.pick("user", chance), "messages": [said]}
    return Ask(headers={"X-Session-Id": header_safe(session)}, body=body)


def _response(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    """Follows another's response, or none that there is: what is stored, `_completion` says."""
    said = f"{me.canary} says {more.pick('phrase', chance)}"
    turn = f"resp_{ids.pick('turn' if _is_anothers(me, ids) else 'conversation', chance)}"
    return Ask(body={"model": "default", "user": "u-1", "input": said, "previous_response_id": turn})


def _response_of(_: Party, ids: Names, __: Names, chance: Random) -> Ask:
    return Ask({"response_id": f"resp_{ids.pick('turn', chance)}"})


def _cancel_response(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask({"response_id": f"resp_{_cancel(me, ids, more, chance).path['turn_id']}"})


def _make_conversation(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    items = [{"role": "user", "content": f"{me.canary} said {more.pick('phrase', chance)}"}]
    user = ids.pick("user", chance)
    return Ask(body={"items": items, "metadata": {"user": user, "model": ids.pick(_experts_of(me, ids), chance)}})


def _v1_conversation(_: Party, ids: Names, __: Names, chance: Random) -> Ask:
    return Ask({"conversation_id": f"conv_{ids.pick('conversation', chance)}"})


def _remove_v1_conversation(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    path = _remove_conversation(me, ids, more, chance).path
    return Ask({"conversation_id": f"conv_{path['conversation_id']}"})


def _add_items(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    items = [{"role": "user", "content": f"{me.canary} said {more.pick('phrase', chance)}"}]
    return Ask(_v1_conversation(me, ids, more, chance).path, body={"items": items})


def _item(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    # Nobody has a message of a conversation's id.
    item = f"msg_{ids.pick('conversation', chance)}"
    return Ask({**_v1_conversation(me, ids, more, chance).path, "item_id": item})


def _remove_response(me: Party, ids: Names, __: Names, chance: Random) -> Ask:
    """Nobody's: what was said in the walk must all be found in the end."""
    kind = "turn" if _is_anothers(me, ids) else "conversation"
    return Ask({"response_id": f"resp_{ids.pick(kind, chance)}"})


def _models(_: Party, __: Names, ___: Names, ____: Random) -> Ask:
    return Ask()


def _model(me: Party, ids: Names, _: Names, chance: Random) -> Ask:
    return Ask({"model": ids.pick(_experts_of(me, ids), chance)})


def words_with_key(key: str) -> str:
    """The same words whenever the same key is sent, but never another's canary."""
    return f"number {zlib.crc32(key.encode())}"


def _conversations(_: Party, ids: Names, more: Names, chance: Random) -> Ask:
    query = {}
    if chance.random() < 0.6:
        query["user_id"] = ids.pick(chance.choice(("user", "own user")), chance)
    if chance.random() < 0.6:
        query["session_id"] = ids.pick("session", chance)
    return Ask(query={**query, **_page(more, chance)})


def _page(more: Names, chance: Random, cursor: str = "cursor") -> dict[str, str]:
    query = {"limit": more.pick("limit", chance)}
    if chance.random() < 0.5:
        query["after"] = more.pick(cursor, chance)
    return query


def _conversation(_: Party, ids: Names, __: Names, chance: Random) -> Ask:
    return Ask({"conversation_id": ids.pick("conversation", chance)})


def _exclude(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    """Nothing that could be excluded: an exclusion that went with its conversation has no owner any more."""
    return Ask(_conversation(me, ids, more, chance).path, body={"what": ids.pick("turn", chance)})


def _use_again(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    path = {**_conversation(me, ids, more, chance).path, "exclusion_id": ids.pick("turn", chance)}
    return Ask(path)


def _turns_of_all(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    query = _conversations(me, ids, more, chance).query
    return Ask(query={name: value for name, value in query.items() if name != "session_id"})


def _remove_conversation(me: Party, ids: Names, _: Names, chance: Random) -> Ask:
    # One's own are still asked for; another's stay whatever happens.
    kind = "conversation" if _is_anothers(me, ids) else "leaving conversation"
    return Ask({"conversation_id": ids.pick(kind, chance)}, {"keep_memories": chance.choice(("true", "false"))})


def _switch(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    # Nobody has a branch of a turn's id.
    return Ask({**_conversation(me, ids, more, chance).path, "branch_id": ids.pick("turn", chance)})


def _messages(_: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask({"conversation_id": ids.pick("conversation", chance)}, _page(more, chance))


def _turn(_: Party, ids: Names, __: Names, chance: Random) -> Ask:
    return Ask({"turn_id": ids.pick("turn", chance)})


def _replay(_: Party, ids: Names, __: Names, chance: Random) -> Ask:
    return Ask({"turn_id": ids.pick("turn", chance)}, body={"ask": False})


def _rate(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    body = {"rating": chance.choice(("up", -1)), "comment": _of(me, more, chance)[:500]}
    return Ask({"turn_id": ids.pick("ended turn" if not _is_anothers(me, ids) else "turn", chance)}, body=body)


def _turn_stream(_: Party, ids: Names, more: Names, chance: Random) -> Ask:
    headers = {"Last-Event-ID": header_safe(more.pick("event", chance))}
    return Ask({"turn_id": ids.pick("turn", chance)}, headers=headers)


def _cancel(me: Party, ids: Names, _: Names, chance: Random) -> Ask:
    # One's own turn that is in progress would end.
    kind = chance.choice(("ended turn", "running turn")) if _is_anothers(me, ids) else "ended turn"
    return Ask({"turn_id": ids.pick(kind, chance)})


def _approve(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    body = {"approval_id": ids.pick("turn", chance), "approved": chance.random() < 0.5}
    return Ask(_cancel(me, ids, more, chance).path, body=body)


def _jobs(_: Party, __: Names, more: Names, chance: Random) -> Ask:
    return Ask(query=_page(more, chance, "job"))


def _keep_for_a_century(_: Party, __: Names, ___: Names, ____: Random) -> Ask:
    return Ask(body={"turns": 36_500, "operations": 36_500})


def _fade_nothing(_: Party, __: Names, ___: Names, ____: Random) -> Ask:
    return Ask(body={"fading": "never"})


def _nothing(_: Party, __: Names, ___: Names, ____: Random) -> Ask:
    return Ask()


def _items(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    user = _core_memory(me, ids, more, chance).path["user_id"]
    return Ask(body={"user_id": user, "operations": [{"op": "get", "namespace": ["walk"], "key": "none"}]})


def _other_endpoint(_: Party, __: Names, ___: Names, ____: Random) -> Ask:
    return Ask(body={"base_url": "http://127.0.0.1:1/v1"})


def _other_model(_: Party, __: Names, ___: Names, ____: Random) -> Ask:
    return Ask(body={"base_url": "http://127.0.0.1:1/v1", "model": "another"})


def _make_key(me: Party, _: Names, more: Names, chance: Random) -> Ask:
    return Ask(body={"name": _of(me, more, chance)[:200], "scopes": ["chat"]})


def _revoke_key(_: Party, ids: Names, __: Names, chance: Random) -> Ask:
    # Nobody has a key of a turn's id.
    return Ask({"key_id": ids.pick("turn", chance)})


def _usage(_: Party, ids: Names, more: Names, chance: Random) -> Ask:
    by = chance.choice(("user", "expert", "day"))
    return Ask(query={"limit": more.pick("limit", chance), "by": by, "user_id": ids.pick("own user", chance)})


def _retry(me: Party, ids: Names, _: Names, chance: Random) -> Ask:
    return Ask({"job_id": ids.pick("kept job" if _is_anothers(me, ids) else "job", chance)})


def _erase(me: Party, ids: Names, _: Names, chance: Random) -> Ask:
    return Ask({"user_id": ids.pick("own user" if _is_anothers(me, ids) else "leaving user", chance)})


def _experts(_: Party, __: Names, more: Names, chance: Random) -> Ask:
    return Ask(query=_page(more, chance, "expert place"))


def _expert(me: Party, ids: Names, _: Names, chance: Random) -> Ask:
    return Ask({"name": ids.pick(_experts_of(me, ids), chance)})


def _experts_of(me: Party, ids: Names) -> str:
    # Both have one that is named default.
    return "own expert" if _is_anothers(me, ids) else "expert"


def _make_expert(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    name = ids.pick("shared expert" if _is_anothers(me, ids) else "leaving expert", chance)
    return Ask(body={"name": name, "system_prompt": _of(me, more, chance)})


def _change_expert(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask({"name": ids.pick(_experts_of(me, ids), chance)}, body={"persona": _of(me, more, chance)})


def _remove_expert(me: Party, ids: Names, _: Names, chance: Random) -> Ask:
    return Ask({"name": ids.pick("own expert" if _is_anothers(me, ids) else "leaving expert", chance)})


def _experiment(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask({"name": ids.pick("experiment", chance)})


def _make_experiment(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    variants = [{"name": "a"}, {"name": "b", "settings": {"system_prompt": _of(me, more, chance)}}]
    name = ids.pick("shared expert" if _is_anothers(me, ids) else "leaving experiment", chance)
    return Ask(body={"name": name, "variants": variants})


def _change_experiment(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask({"name": ids.pick("experiment", chance)}, body={"description": _of(me, more, chance)[:2000]})


def _remove_experiment(me: Party, ids: Names, _: Names, chance: Random) -> Ask:
    return Ask({"name": ids.pick("experiment" if _is_anothers(me, ids) else "leaving experiment", chance)})


def _bases(_: Party, __: Names, more: Names, chance: Random) -> Ask:
    return Ask(query=_page(more, chance, "base place"))


def _base(_: Party, ids: Names, __: Names, chance: Random) -> Ask:
    return Ask({"prefix": ids.pick("own base", chance)})


def _make_base(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    prefix = ids.pick("shared base" if _is_anothers(me, ids) else "leaving base", chance)
    return Ask(body={"prefix": prefix, "description": _of(me, more, chance)[:2000]})


def _change_base(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask(_base(me, ids, more, chance).path, body={"description": _of(me, more, chance)[:2000]})


def _remove_base(me: Party, ids: Names, _: Names, chance: Random) -> Ask:
    return Ask({"prefix": ids.pick("own base" if _is_anothers(me, ids) else "leaving base", chance)})


def _base_documents(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask(_base(me, ids, more, chance).path, _page(more, chance, "base place"))


def _document_status(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask(_base(me, ids, more, chance).path, {"source": more.pick("expert place", chance)})


def _ticket(_: Party, __: Names, ___: Names, ____: Random) -> Ask:
    return Ask()


def _put_document(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    # Bodies are sent as JSON, which is a kind of document that is not read.
    return Ask(_base(me, ids, more, chance).path, {"source": more.pick("expert place", chance)}, body={"a": 1})


def _remove_document(me: Party, ids: Names, _: Names, chance: Random) -> Ask:
    return Ask({**_base(me, ids, _, chance).path, "document_id": ids.pick("document", chance)})


def _chat_documents(me: Party, ids: Names, _: Names, chance: Random) -> Ask:
    session = ids.pick("shared session" if _is_anothers(me, ids) else "session", chance)
    return Ask({"user_id": ids.pick("user", chance), "session_id": session})


def _add_chat_document(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    path = _chat_documents(me, ids, more, chance).path
    return Ask(path, {"source": more.pick("expert place", chance)}, body={"a": 1})


def _remove_chat_document(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    # Nobody has a document of a conversation's id.
    path = _chat_documents(me, ids, more, chance).path
    return Ask({**path, "document_id": ids.pick("conversation", chance)})


def _import_archive(_: Party, ids: Names, __: Names, chance: Random) -> Ask:
    # Bodies are sent as JSON, of which each record is refused.
    return Ask({"user_id": ids.pick("user", chance)}, {"vendor": "chatgpt"}, body={"a": 1})


def _change_conversation(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask(_conversation(me, ids, more, chance).path, body={"pinned": True})


def _search_base(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    body = {"query": more.pick("phrase", chance) or "tea", "top_k": 20}
    return Ask(_base(me, ids, more, chance).path, body=body)


def _core_memory(me: Party, ids: Names, _: Names, chance: Random) -> Ask:
    # Both have users of the shared names.
    return Ask({"user_id": ids.pick("own user" if _is_anothers(me, ids) else "user", chance)})


def _section(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask({**_core_memory(me, ids, more, chance).path, "section": more.pick("section", chance)})


def _section_history(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask(_section(me, ids, more, chance).path, _page(more, chance, "version"))


def _replace_section(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    body = {"content": {"says": _of(me, more, chance)[:200]}}
    return Ask(_section(me, ids, more, chance).path, body=body)


def _pin_value(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    body = {"field": "says", "pinned": chance.choice((True, False))}
    return Ask(_section(me, ids, more, chance).path, body=body)


def _roll_back(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask(_section(me, ids, more, chance).path, body={"version": more.pick("version", chance)})


def _operations(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask(_core_memory(me, ids, more, chance).path, _page(more, chance))


def _erase_space(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask({**_core_memory(me, ids, more, chance).path, "space": "none such"})


def _rename_space(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    path = {**_core_memory(me, ids, more, chance).path, "space": "none such"}
    return Ask(path, body={"name": "none such either"})


def _days(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask(_core_memory(me, ids, more, chance).path, {"limit": more.pick("limit", chance)})


def _change_user(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    body = {"display_name": _of(me, more, chance)[:200], "timezone": "Asia/Kathmandu"}
    return Ask(_core_memory(me, ids, more, chance).path, body=body)


def _search_episodes(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    body = {"query": more.pick("phrase", chance) or "dog", "top_k": 20}
    if chance.random() < 0.3:
        body["conversation_id"] = ids.pick("conversation", chance)
    return Ask(_core_memory(me, ids, more, chance).path, body=body)


def _ask_memory(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    body = {"question": more.pick("phrase", chance)} if chance.random() < 0.5 else {}
    return Ask(_core_memory(me, ids, more, chance).path, body=body)


def _write_episode(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    body = {"content": _of(me, more, chance), "episode_type": chance.choice(("preference", "context"))}
    return Ask(_core_memory(me, ids, more, chance).path, body=body)


def _forget(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask(_core_memory(me, ids, more, chance).path, body={"what": _of(me, more, chance)})


def _lineage(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    query = {"of": f"episode:{ids.pick('episode', chance)}", "direction": chance.choice(("up", "down"))}
    return Ask(_core_memory(me, ids, more, chance).path, query)


def _forget_for_good(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    target = chance.choice(({"topic": _of(me, more, chance)}, {"episode_id": ids.pick("episode", chance)}))
    return Ask(_core_memory(me, ids, more, chance).path, body={**target, "preview": True})


def _settle(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    path = {**_core_memory(me, ids, more, chance).path, "proposal_id": ids.pick("turn", chance)}
    return Ask(path, body={"accept": chance.choice((True, False))})


def _correct_memory(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    """Nobody's of one's own: what was said in the walk must all be found in the end."""
    memory = ids.pick("episode" if _is_anothers(me, ids) else "turn", chance)
    path = {**_core_memory(me, ids, more, chance).path, "memory_id": memory}
    return Ask(path, body={"text": _of(me, more, chance)})


def _pin_memory(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    path = {**_core_memory(me, ids, more, chance).path, "memory_id": ids.pick("episode", chance)}
    return Ask(path, body={"pinned": chance.choice((True, False))})


def _undo_proposal(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask(_settle(me, ids, more, chance).path)


def _mcp(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    episode, text = ids.pick("episode", chance), _of(me, more, chance)
    tool, arguments = chance.choice(
        (
            ("recall", {"query": more.pick("phrase", chance)[:1000]}),
            ("profile", {}),
            ("what_happened", {"from": "2026-01-01", "to": "2026-12-31"}),
            ("remember", {"text": text[:300]}),
            ("correct", {"id": episode, "text": text[:300]}),
            ("forget", {"id": episode}),
        )
    )
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"Accept": "application/json, text/event-stream", "X-User-Id": header_safe(ids.pick("user", chance))}
    return Ask(headers=headers, body=call)


def _list_episodes(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    query = _page(more, chance)
    if chance.random() < 0.3:
        query["conversation_id"] = ids.pick("conversation", chance)
    return Ask(_core_memory(me, ids, more, chance).path, query)


def _edit_episode(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask(_remove_episode(me, ids, more, chance).path, body={"content": _of(me, more, chance)})


def _users(_: Party, __: Names, more: Names, chance: Random) -> Ask:
    return Ask(query={"limit": more.pick("limit", chance), "prefix": more.pick("user", chance)})


def _remove_episode(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask({**_core_memory(me, ids, more, chance).path, "episode_id": ids.pick("episode", chance)})


def _fade(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    return Ask(_core_memory(me, ids, more, chance).path, body={"fading": "archive"})


def _undo(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    # Nobody has a run of an episode's id.
    return Ask({**_core_memory(me, ids, more, chance).path, "run_id": ids.pick("episode", chance)})


def _undo_operation(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    # Nobody has a run of an episode's id.
    return Ask({**_core_memory(me, ids, more, chance).path, "operation_id": ids.pick("episode", chance)})


def _of(me: Party, more: Names, chance: Random) -> str:
    return f"You are of {me.canary}, who says {more.pick('phrase', chance)}"[:3000]


def _import(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    session = ids.pick("shared session" if _is_anothers(me, ids) else "session", chance)
    line = {
        "user_id": ids.pick("user", chance),
        "session_id": session,
        "role": chance.choice(("user", "assistant")),
    }
    if chance.random() < 0.3:
        line["external_id"] = words_with_key(more.pick("key", chance))
    said = {"content": f"{me.canary} said {more.pick('phrase', chance)}", "created_at": "2025-01-01T00:00:00Z"}
    return Ask(body={**line, **said})


def _export(_: Party, ids: Names, __: Names, chance: Random) -> Ask:
    return Ask({"user_id": ids.pick("own user", chance)})


OK, GONE = frozenset({200}), frozenset({404})
MADE, REMOVED = frozenset({201, 409}), frozenset({204})  # 409: the name is taken
LEFT = REMOVED | GONE
BUSY = frozenset({409})  # a running experiment has to be stopped first
FOUND = OK | GONE
REFUSED = frozenset({403})
UNREAD = frozenset({415})
RAN = frozenset({200, 409, 422})
ANSWERED = frozenset({200, 409})  # 409: too many wait in the conversation


NO_EXPERT = "nobody"
"""What is stored, `_completion` says."""


def _ui_chat(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    asked = _completion(me, ids, more, chance)
    assert asked.body is not None
    said = asked.body["messages"][-1]["content"]
    message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": said}]}
    chat = {"id": asked.headers["X-Session-Id"], "user": asked.body["user"], "expert": NO_EXPERT}
    return Ask(body={**chat, "messages": [message]})


def _ui_chat_stream(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    named = _completion(me, ids, more, chance)
    assert named.body is not None
    return Ask({"chat_id": named.headers["X-Session-Id"]}, {"user": named.body["user"]})


def _ag_ui(me: Party, ids: Names, more: Names, chance: Random) -> Ask:
    asked = _ui_chat(me, ids, more, chance).body
    assert asked is not None
    message = {"id": "m", "role": "user", "content": asked["messages"][0]["parts"][0]["text"]}
    run = {"threadId": asked["id"], "runId": more.pick("key", chance), "messages": [message]}
    return Ask(body={**run, "forwardedProps": {"user": asked["user"], "expert": NO_EXPERT}})


STREAMED = OK | frozenset({204})

OUTSIDE_OF_THE_DOCUMENT: frozenset[Endpoint] = frozenset({("POST", "/mcp")})

TABLE: dict[Endpoint, Entry] = {
    # What a tool refuses it says in its answer; a token may name no other user.
    ("POST", "/mcp"): Entry(_mcp, OK, OK, REFUSED),
    ("POST", "/api/v1/ui/chat"): Entry(_ui_chat, GONE, GONE, GONE),
    ("POST", "/api/v1/ui/ag-ui"): Entry(_ag_ui, GONE, GONE, GONE),
    ("GET", "/api/v1/ui/chat/{chat_id}/stream"): Entry(_ui_chat_stream, STREAMED, STREAMED, STREAMED),
    # Another tenant's names are one's own names, too; the token's user counts, whatever name is sent.
    ("POST", "/v1/chat/completions"): Entry(_completion, ANSWERED, ANSWERED, ANSWERED, weight=3),
    ("POST", "/v1/responses"): Entry(_response, GONE, GONE, GONE),
    ("GET", "/v1/responses/{response_id}"): Entry(_response_of, OK, GONE, GONE),
    ("DELETE", "/v1/responses/{response_id}"): Entry(_remove_response, GONE, GONE, GONE),
    ("POST", "/v1/responses/{response_id}/cancel"): Entry(_cancel_response, OK, GONE, GONE),
    ("GET", "/v1/responses/{response_id}/input_items"): Entry(_response_of, OK, GONE, GONE),
    ("POST", "/v1/conversations"): Entry(_make_conversation, OK, OK | GONE, OK | GONE),
    ("GET", "/v1/conversations/{conversation_id}"): Entry(_v1_conversation, OK, GONE, GONE),
    ("DELETE", "/v1/conversations/{conversation_id}"): Entry(_remove_v1_conversation, FOUND, GONE, GONE),
    ("GET", "/v1/conversations/{conversation_id}/items"): Entry(_v1_conversation, OK, GONE, GONE),
    ("POST", "/v1/conversations/{conversation_id}/items"): Entry(_add_items, OK, GONE, GONE),
    ("GET", "/v1/conversations/{conversation_id}/items/{item_id}"): Entry(_item, GONE, GONE, GONE),
    ("DELETE", "/v1/conversations/{conversation_id}/items/{item_id}"): Entry(_item, GONE, GONE, GONE),
    ("GET", "/v1/models"): Entry(_models, OK, OK, OK),
    ("GET", "/v1/models/{model}"): Entry(_model, OK, GONE, OK),
    # Another tenant's names are one's own names, too; another's expert is refused.
    CHAT: Entry(_chat, ANSWERED | {422}, ANSWERED | {422}, GONE, weight=3),
    ("POST", "/api/v1/chat/stream"): Entry(_chat, ANSWERED | {422}, ANSWERED | {422}, GONE, weight=3),
    ("POST", "/api/v1/chat/ticket"): Entry(_ticket, OK, OK, OK, weight=1),
    ("GET", "/api/v1/turns/{turn_id}"): Entry(_turn, OK, GONE, GONE),
    ("GET", "/api/v1/turns/{turn_id}/why"): Entry(_turn, OK, GONE, GONE),
    ("POST", "/api/v1/turns/{turn_id}/replay"): Entry(_replay, OK | {409}, GONE, GONE),
    ("POST", FEEDBACK): Entry(_rate, OK, GONE, GONE),
    ("GET", FEEDBACK): Entry(_turn, FOUND, GONE, GONE),
    ("DELETE", FEEDBACK): Entry(_turn, REMOVED | GONE, GONE, GONE),
    ("GET", "/api/v1/turns/{turn_id}/stream"): Entry(_turn_stream, OK, GONE, GONE),
    ("POST", "/api/v1/turns/{turn_id}/cancel"): Entry(_cancel, OK, GONE, GONE),
    ("POST", "/api/v1/turns/{turn_id}/approve"): Entry(_approve, OK | GONE | {409}, GONE, GONE),
    CONVERSATIONS: Entry(_conversations, OK, OK, OK | GONE),
    ("GET", "/api/v1/turns"): Entry(_turns_of_all, OK, OK, OK | GONE),
    ("GET", "/api/v1/conversations/{conversation_id}/exclusions"): Entry(_conversation, OK, GONE, GONE),
    ("POST", "/api/v1/conversations/{conversation_id}/exclusions"): Entry(
        _exclude, GONE | {422}, GONE | {422}, GONE
    ),
    ("DELETE", "/api/v1/conversations/{conversation_id}/exclusions/{exclusion_id}"): Entry(
        _use_again, GONE, GONE, GONE
    ),
    ("GET", "/api/v1/conversations/{conversation_id}"): Entry(_conversation, OK, GONE, GONE),
    ("PATCH", "/api/v1/conversations/{conversation_id}"): Entry(_change_conversation, OK, GONE, GONE),
    ("POST", "/api/v1/conversations/{conversation_id}/name"): Entry(_conversation, OK, GONE, GONE),
    ERASE_CONVERSATION: Entry(_remove_conversation, FOUND, GONE, GONE),
    MESSAGES: Entry(_messages, OK, GONE, GONE),
    ("GET", "/api/v1/conversations/{conversation_id}/branches"): Entry(_conversation, OK, GONE, GONE),
    ("POST", "/api/v1/conversations/{conversation_id}/branches/{branch_id}/switch"): Entry(
        _switch, GONE, GONE, GONE
    ),
    ("GET", "/api/v1/conversations/{conversation_id}/turns"): Entry(_messages, OK, GONE, GONE),
    ("GET", "/api/v1/conversations/{conversation_id}/summary"): Entry(_conversation, OK, GONE, GONE),
    ("GET", "/api/v1/conversations/{conversation_id}/topics"): Entry(_messages, OK, GONE, GONE),
    # Names of users and sessions are each tenant's own.
    ("GET", CHAT_DOCUMENTS): Entry(_chat_documents, OK, OK, GONE),
    ("POST", CHAT_DOCUMENTS): Entry(_add_chat_document, UNREAD, UNREAD, GONE),
    ("DELETE", f"{CHAT_DOCUMENTS}/{{document_id}}"): Entry(_remove_chat_document, GONE, GONE, GONE),
    ("POST", "/api/v1/users/{user_id}/archive-imports"): Entry(_import_archive, OK, OK, GONE),
    # A line for another user is an error of the line.
    ("POST", "/api/v1/import"): Entry(_import, OK, OK, OK),
    ("GET", "/api/v1/users/{user_id}/export"): Entry(_export, OK, GONE, GONE),
    # Users share their tenant's experts; a name that another tenant has taken is free.
    ("GET", "/api/v1/experts"): Entry(_experts, OK, OK, OK),
    ("POST", "/api/v1/experts"): Entry(_make_expert, MADE, MADE, MADE, is_admins=True),
    ("GET", "/api/v1/experts/{name}"): Entry(_expert, OK, GONE, OK),
    ("GET", "/api/v1/experts/{name}/prompt"): Entry(_expert, OK, GONE, OK),
    ("PATCH", "/api/v1/experts/{name}"): Entry(_change_expert, OK, GONE, OK, is_admins=True),
    ("DELETE", "/api/v1/experts/{name}"): Entry(_remove_expert, REMOVED | GONE, GONE, GONE, is_admins=True),
    # Experiments are for admins alone; names may repeat between tenants.
    ("GET", EXPERIMENTS): Entry(_experts, OK, OK, OK, is_admins=True),
    ("POST", EXPERIMENTS): Entry(_make_experiment, MADE, MADE, MADE, is_admins=True),
    ("GET", f"{EXPERIMENTS}/{{name}}"): Entry(_experiment, OK, GONE, GONE, is_admins=True),
    ("PATCH", f"{EXPERIMENTS}/{{name}}"): Entry(_change_experiment, OK, GONE, GONE, is_admins=True),
    ("DELETE", f"{EXPERIMENTS}/{{name}}"): Entry(_remove_experiment, LEFT | BUSY, GONE, GONE, is_admins=True),
    ("GET", f"{EXPERIMENTS}/{{name}}/report"): Entry(_experiment, OK, GONE, GONE, is_admins=True),
    # Users share their tenant's knowledge bases, too.
    ("GET", BASES): Entry(_bases, OK, OK, OK),
    ("POST", BASES): Entry(_make_base, MADE, MADE, MADE, is_admins=True),
    ("GET", f"{BASES}/{{prefix}}"): Entry(_base, OK, GONE, FOUND),
    ("PATCH", f"{BASES}/{{prefix}}"): Entry(_change_base, OK, GONE, GONE, is_admins=True),
    ("DELETE", f"{BASES}/{{prefix}}"): Entry(_remove_base, REMOVED | GONE, GONE, GONE, is_admins=True),
    ("GET", f"{BASES}/{{prefix}}/documents"): Entry(_base_documents, OK, GONE, FOUND),
    ("GET", f"{BASES}/{{prefix}}/documents/status"): Entry(_document_status, FOUND, GONE, FOUND),
    ("POST", f"{BASES}/{{prefix}}/documents"): Entry(_put_document, UNREAD, GONE, GONE, is_admins=True),
    ("DELETE", f"{BASES}/{{prefix}}/documents/{{document_id}}"): Entry(
        _remove_document, REMOVED | GONE, GONE, GONE, is_admins=True
    ),
    ("POST", f"{BASES}/{{prefix}}/search"): Entry(_search_base, OK, GONE, FOUND),
    ("GET", "/api/v1/keys"): Entry(_nothing, OK, OK, OK, is_admins=True),
    ("POST", "/api/v1/keys"): Entry(_make_key, MADE, MADE, MADE, is_admins=True),
    ("DELETE", "/api/v1/keys/{key_id}"): Entry(_revoke_key, GONE, GONE, GONE, is_admins=True),
    # Another tenant's name has caused nothing here.
    ("GET", "/api/v1/usage"): Entry(_usage, OK, OK, GONE),
    ("GET", "/api/v1/service"): Entry(_nothing, OK, OK, OK),
    ("GET", "/api/v1/jobs"): Entry(_jobs, OK, OK, OK, is_admins=True),
    # Models belong to the whole service, and so to the default tenant.
    ("POST", "/api/v1/doctor"): Entry(_nothing, REFUSED, REFUSED, REFUSED, is_admins=True),
    # Of a name that is no user yet there is nothing.
    ("POST", "/api/v1/store/batch"): Entry(_items, OK, FOUND, GONE),
    ("GET", "/api/v1/model"): Entry(_nothing, REFUSED, REFUSED, REFUSED, is_admins=True),
    ("PUT", "/api/v1/model"): Entry(_other_model, REFUSED, REFUSED, REFUSED, is_admins=True),
    ("DELETE", "/api/v1/model"): Entry(_nothing, REFUSED, REFUSED, REFUSED, is_admins=True),
    ("POST", "/api/v1/model/models"): Entry(_other_endpoint, REFUSED, REFUSED, REFUSED, is_admins=True),
    ("POST", "/api/v1/model/try"): Entry(_other_model, REFUSED, REFUSED, REFUSED, is_admins=True),
    ("GET", "/api/v1/retention"): Entry(_nothing, OK, OK, OK, is_admins=True),
    ("PUT", "/api/v1/retention"): Entry(_keep_for_a_century, OK, OK, OK, is_admins=True),
    ("POST", "/api/v1/retention/preview"): Entry(_nothing, OK, OK, OK, is_admins=True),
    # There may be no rule yet, or a run under way.
    ("POST", "/api/v1/retention/run"): Entry(_nothing, RAN, RAN, RAN, is_admins=True),
    ("GET", "/api/v1/retention/runs"): Entry(_nothing, OK, OK, OK, is_admins=True),
    ("POST", "/api/v1/jobs/{job_id}/retry"): Entry(_retry, ANSWERED, GONE, GONE, is_admins=True),
    # A section may just have been removed.
    ("GET", CORE_MEMORY): Entry(_core_memory, OK, GONE, GONE),
    ("PUT", f"{CORE_MEMORY}/{{section}}"): Entry(_replace_section, OK, GONE, GONE),
    ("DELETE", f"{CORE_MEMORY}/{{section}}"): Entry(_section, REMOVED | GONE, GONE, GONE, weight=4),
    ("GET", f"{CORE_MEMORY}/{{section}}/history"): Entry(_section_history, FOUND, GONE, GONE),
    ("PUT", f"{CORE_MEMORY}/{{section}}/pins"): Entry(_pin_value, FOUND, GONE, GONE),
    ("POST", f"{CORE_MEMORY}/{{section}}/rollback"): Entry(_roll_back, FOUND, GONE, GONE),
    ("GET", "/api/v1/users/{user_id}/memory-operations"): Entry(_operations, OK, GONE, GONE),
    ("POST", "/api/v1/users/{user_id}/memory/ask"): Entry(_ask_memory, OK, GONE, GONE),
    ("POST", "/api/v1/users/{user_id}/memory/forget"): Entry(_forget, OK, GONE, GONE),
    ("POST", "/api/v1/users/{user_id}/erasures"): Entry(_forget_for_good, FOUND, GONE, GONE),
    ("GET", "/api/v1/users/{user_id}/memory-proposals"): Entry(_operations, OK, GONE, GONE),
    ("POST", "/api/v1/users/{user_id}/memory-proposals/{proposal_id}"): Entry(_settle, GONE, GONE, GONE),
    ("POST", "/api/v1/users/{user_id}/memory-proposals"): Entry(_core_memory, OK, GONE, GONE),
    ("POST", "/api/v1/users/{user_id}/memory-proposals/{proposal_id}/undo"): Entry(
        _undo_proposal, GONE, GONE, GONE
    ),
    ("GET", "/api/v1/upkeep-policy"): Entry(_nothing, OK, OK, OK),
    ("PUT", "/api/v1/upkeep-policy"): Entry(_fade_nothing, OK, OK, OK, is_admins=True),
    ("GET", "/api/v1/users/{user_id}/upkeep-preview"): Entry(_core_memory, OK, GONE, GONE),
    ("GET", UPKEEP): Entry(_operations, OK, GONE, GONE),
    ("POST", UPKEEP): Entry(_fade, frozenset({201}), GONE, GONE),
    # Nobody has a run of an episode's id.
    ("GET", f"{UPKEEP}/{{run_id}}"): Entry(_undo, GONE, GONE, GONE),
    ("POST", f"{UPKEEP}/{{run_id}}/undo"): Entry(_undo, GONE, GONE, GONE),
    ("GET", "/api/v1/users/{user_id}/erasures"): Entry(_operations, OK, GONE, GONE),
    ("GET", "/api/v1/users/{user_id}/lineage"): Entry(_lineage, FOUND, GONE, GONE),
    ("POST", "/api/v1/users/{user_id}/memory-operations/{operation_id}/undo"): Entry(
        _undo_operation, GONE, GONE, GONE
    ),
    ("POST", f"{EPISODES}/search"): Entry(_search_episodes, OK, GONE, GONE),
    ("GET", "/api/v1/users/{user_id}/memories"): Entry(_core_memory, OK, GONE, GONE),
    ("POST", "/api/v1/users/{user_id}/memories/{memory_id}/correct"): Entry(_correct_memory, GONE, GONE, GONE),
    ("POST", "/api/v1/users/{user_id}/memories/{memory_id}/pin"): Entry(_pin_memory, LEFT | GONE, GONE, GONE),
    ("GET", EPISODES): Entry(_list_episodes, OK, GONE, GONE),
    ("GET", f"{EPISODES}/{{episode_id}}"): Entry(_remove_episode, FOUND, GONE, GONE),
    ("PATCH", f"{EPISODES}/{{episode_id}}"): Entry(_edit_episode, FOUND | {409}, GONE, GONE),
    ("PUT", f"{EPISODES}/{{episode_id}}/pin"): Entry(_remove_episode, FOUND, GONE, GONE),
    ("DELETE", f"{EPISODES}/{{episode_id}}/pin"): Entry(_remove_episode, FOUND, GONE, GONE),
    # 409: it has not faded
    ("POST", f"{EPISODES}/{{episode_id}}/restore"): Entry(_remove_episode, BUSY | GONE, GONE, GONE),
    ("POST", EPISODES): Entry(_write_episode, frozenset({201}), GONE, GONE),
    ("DELETE", f"{EPISODES}/{{episode_id}}"): Entry(_remove_episode, REMOVED | GONE, GONE, GONE),
    ("POST", "/api/v1/conversations/{conversation_id}/close"): Entry(_conversation, OK, GONE, GONE),
    ("GET", "/api/v1/users/{user_id}/visits"): Entry(_operations, OK, GONE, GONE),
    ("GET", "/api/v1/users/{user_id}/persona"): Entry(_core_memory, OK, GONE, GONE),
    ("GET", "/api/v1/users/{user_id}/daily-summaries"): Entry(_days, OK, GONE, GONE),
    ("GET", "/api/v1/users/{user_id}/spaces"): Entry(_core_memory, OK, GONE, GONE),
    ("PATCH", "/api/v1/users/{user_id}/spaces/{space}"): Entry(_rename_space, GONE, GONE, GONE),
    ("DELETE", "/api/v1/users/{user_id}/spaces/{space}"): Entry(_erase_space, GONE, GONE, GONE),
    ("GET", "/api/v1/users"): Entry(_users, OK, OK, OK, is_admins=True),
    ("GET", "/api/v1/users/{user_id}"): Entry(_core_memory, OK, GONE, GONE),
    ("PATCH", "/api/v1/users/{user_id}"): Entry(_change_user, OK, GONE, GONE),
    ERASE_USER: Entry(_erase, OK | GONE, GONE, GONE, weight=9, is_admins=True),
}
