import pytest

from services.errors import ConfigurationError
from services.tools.mcp_config import servers_of


@pytest.mark.parametrize("wrapper", ['{"mcpServers": %s}', '{"servers": %s}', "%s"])
def test_the_forms_of_editors(wrapper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cret")
    given = (
        '{"git": {"type": "stdio", "command": "uvx", "args": ["mcp-server-git"], "env": {"A": "${MY_TOKEN}"}},'
        ' "web": {"url": "https://x.test/mcp", "headers": {"Authorization": "Bearer ${env:MY_TOKEN}"},'
        ' "tools": ["search"], "experts": ["default"], "timeout_s": 3, "approve": "never"},'
        ' "off": {"command": "x", "disabled": true}}'
    )
    found = servers_of(wrapper % given)
    assert set(found) == {"git", "web"}
    assert (found["git"].command, found["git"].args) == ("uvx", ["mcp-server-git"])
    assert found["git"].env["A"].get_secret_value() == "s3cret"
    assert found["web"].headers["Authorization"].get_secret_value() == "Bearer s3cret"
    assert (found["web"].tools, found["web"].experts) == (frozenset({"search"}), frozenset({"default"}))
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("/nowhere/mcp.json", "/nowhere/mcp.json"),
        ("{", "JSON"),
        ('{"a": {}}', "a: needs either"),
        ('{"a": {"url": "ftp://x"}}', "url is not an http"),
        ('{"a b": {"command": "x"}}', "'a b'"),
        ('{"a": {"command": "x", "timeout_s": 0}}', "timeout_s"),
        ('{"a": {"command": "${NO_SUCH_VARIABLE}"}}', "NO_SUCH_VARIABLE"),
        ('{"a": {"url": "http://x", "oauth": {"client_id": "x"}}}', "needs client_secret, or per_user"),
        ('{"a": {"url": "http://x", "oauth": {"per_user": true, "client_secret": "x"}}}', "without a client_id"),
        ('{"a": {"url": "http://x", "oauth": {"per_user": true, "secret": "x"}}}', "oauth.secret"),
    ],
)
def test_what_is_wrong_is_named(setting: str, named: str) -> None:
    with pytest.raises(ConfigurationError, match="ANAMNESIS_MCP_SERVERS") as raised:
        servers_of(setting)
    assert named in raised.value.message
