"""Settings, files and servers as people have them: each slip has a sentence of its own."""

import os
import shutil
from pathlib import Path

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from services.errors import ConfigurationError
from services.llm.endpoint import ModelEndpoint
from services.platform.database_errors import sentence, why_away
from services.platform.embedded_postgres import EmbeddedPostgres
from services.platform.setting_values import encoding_of
from services.platform.settings import load_settings
from tests.support.folders import new_folder
from tests.support.model_server import ModelServer, Reply

ENV = "# 模型设置\nANAMNESIS_PORT=8123\nANAMNESIS_LOG_LEVEL=debug\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_env_is_read_as_editors_of_windows_write_it(encoding: str) -> None:
    Path(".env").write_bytes(ENV.replace("\n", "\r\n").encode(encoding))
    settings = load_settings()
    assert (settings.port, settings.log_level) == (8123, "debug")


@pytest.mark.parametrize("content", [ENV.encode("utf-16-le"), b"\xff\xff\xff"])
def test_an_env_in_no_encoding_is_named(content: bytes) -> None:
    Path(".env").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"^\.env is not text in UTF-8, UTF-16 .*; save it as UTF-8"):
        load_settings()
    assert encoding_of(Path("missing")) == "utf-8"


@pytest.mark.parametrize(("key", "position"), [("你的密钥", 1), ("sk-abc\u200bdef", 7), ("sk abc", 3)])
@pytest.mark.parametrize("name", ["llm_api_key", "embedding_api_key"])
def test_a_key_that_can_be_none_is_refused_without_being_shown(name: str, key: str, position: int) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_settings(**{name: key})
    assert f"ANAMNESIS_{name.upper()} is not accepted" in refused.value.message
    assert f"a character that no key has, at position {position}" in refused.value.message
    assert key not in refused.value.message


URL = "postgresql://anna:secret@db.example:5433/memory"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('FATAL:  password authentication failed for user "anna"', "refuses the password of the role 'anna'"),
        ('致命错误:  用户 "anna" 密码 认证失败', "refuses the password of the role 'anna'"),
        ('致命错误:  数据库 "memory" 不存在', "there is no database 'memory'"),
        ('FATAL:  role "anna" does not exist', "there is no role 'anna'"),
        ("connection to server failed: Connection refused", "nothing listens at db.example:5433"),
        ("failed to resolve host 'db.example': Name or service not known", "the host 'db.example' is not known"),
        ("connection timeout expired", "does not answer within 5 seconds"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.1"', "pg_hba.conf"),
        ("FATAL:  sorry, too many clients already", "sorry, too many clients already"),
    ],
)
def test_each_reason_has_its_sentence_and_the_setting(said: str, told: str) -> None:
    found = sentence(said, URL, "ANAMNESIS_DATABASE_URL")
    assert found.startswith("ANAMNESIS_DATABASE_URL: ")
    assert told in found
    assert "secret" not in found


@pytest.mark.process
async def test_a_real_server_that_refuses_is_quoted() -> None:
    with new_folder() as folder:
        server = EmbeddedPostgres(Path(folder))
        await server.start()
        try:
            with psycopg.connect(server.url("postgres", "postgres"), autocommit=True) as admin:
                admin.execute("ALTER ROLE anamnesis PASSWORD 'right'")
                admitted = "local all postgres trust\nlocal all all scram-sha-256\n"
                (Path(folder) / "postgres" / "pg_hba.conf").write_text(admitted)
                admin.execute("SELECT pg_reload_conf()")
            for role, database, told in (
                ("anamnesis:wrong", "anamnesis", "refuses the password of the role 'anamnesis'"),
                ("anamnesis:right", "nothing", "there is no database 'nothing'"),
                ("anamnesis:right", "anamnesis", "None"),
            ):
                assert told in str(why_away(server.url(role, database), "ANAMNESIS_DATABASE_URL"))
        finally:
            await server.stop()


@pytest.mark.process
async def test_a_copied_data_folder_starts() -> None:
    with new_folder() as name:
        folder = Path(name) / "data"
        server = EmbeddedPostgres(folder)
        await server.start()
        await server.stop()
        copy = Path(name) / "copy"
        shutil.copytree(folder, copy)
        for path in (copy / "postgres", *(copy / "postgres").rglob("*")):  # as `cp -r` by root leaves it
            path.chmod(0o755 if path.is_dir() else 0o644)
            os.chown(path, os.geteuid(), os.getegid())
        again = EmbeddedPostgres(copy)
        await again.start()
        with psycopg.connect(again.url("postgres", "postgres")) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        await again.stop()
        assert (copy / "postgres").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_an_address_without_v1_is_tried_with_it(
    model_server: ModelServer, api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model_server.script(Reply(["Good day."]), Reply(["Again."]))
    root = model_server.base_url.removesuffix("/v1")
    endpoint = ModelEndpoint(load_settings(llm_model="m", llm_base_url=root, llm_api_key="k", llm_api=api))
    said = [(await endpoint.ask("m", [HumanMessage("Hello")], on_text=lambda _: None)).text for _ in range(2)]
    await endpoint.close()
    assert said == ["Good day.", "Again."]
    written = "".join(capsys.readouterr())
    assert written.count("ANAMNESIS_LLM_BASE_URL lacks its /v1") == 1
    assert f"{root}/v1" in written
