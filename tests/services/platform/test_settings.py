import re
from collections.abc import Callable
from pathlib import Path

import pytest

from services.errors import ConfigurationError
from services.platform.settings import Settings, load_settings
from services.platform.settings_reference import documented_settings, env_file, settings_page, unknown_variables

ROOT = Path(__file__).parents[3]


def test_the_environment_and_the_env_file_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".env").write_text("ANAMNESIS_PORT=8123\nANAMNESIS_HOST=localhost\n")
    monkeypatch.setenv("ANAMNESIS_PORT", "8124")
    settings = load_settings()
    assert (settings.port, settings.host) == (8124, "localhost")


def test_the_endpoint_falls_back_to_the_openai_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "their-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("ANAMNESIS_LLM_MODEL", "m")
    settings = load_settings()
    assert settings.llm_api_key is not None
    assert settings.llm_api_key.get_secret_value() == "their-key"
    assert settings.llm_base_url == "http://localhost:1/v1"
    monkeypatch.setenv("ANAMNESIS_LLM_API_KEY", "our-key")
    ours = load_settings().llm_api_key
    assert ours is not None
    assert ours.get_secret_value() == "our-key"


@pytest.mark.parametrize(
    ("address", "patience"),
    [
        ("http://127.0.0.1:8081/v1", (600, 600)),
        ("http://192.168.1.20:11434/v1", (600, 600)),
        ("http://ollama:11434/v1", (600, 600)),
        ("https://api.example.com/v1", (60, 15)),
        ("https://8.8.8.8/v1", (60, 15)),
    ],
)
def test_a_model_nearby_is_given_time_unless_it_is_set(
    address: str, patience: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANAMNESIS_LLM_BASE_URL", address)
    read = load_settings(llm_model="m")
    assert (read.llm_timeout_s, read.llm_first_token_s) == patience
    monkeypatch.setenv("ANAMNESIS_LLM_TIMEOUT_S", "90")
    monkeypatch.setenv("ANAMNESIS_LLM_FIRST_TOKEN_S", "5")
    read = load_settings(llm_model="m")
    assert (read.llm_timeout_s, read.llm_first_token_s) == (90, 5)


def test_zone_and_locale_are_those_of_the_machine_unless_they_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANAMNESIS_DEFAULT_TIMEZONE", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "America/Lima")
    monkeypatch.setenv("LANG", "es_PE.UTF-8")
    settings = load_settings()
    assert (settings.default_timezone, settings.default_locale) == ("America/Lima", "es-PE")
    monkeypatch.setenv("ANAMNESIS_DEFAULT_TIMEZONE", "+05:30")
    monkeypatch.setenv("ANAMNESIS_DEFAULT_LOCALE", "hi-IN")
    settings = load_settings()
    assert (settings.default_timezone, settings.default_locale) == ("+05:30", "hi-IN")


def test_an_openai_key_alone_sends_nothing_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "their-key")
    assert load_settings().offline


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ANAMNESIS_PORT", "eighty", ["ANAMNESIS_PORT=eighty", "1 to 65535"]),
        ("ANAMNESIS_DEFAULT_TIMEZONE", "Mars/Olympus", ["DEFAULT_TIMEZONE=Mars/Olympus", "Europe/Berlin"]),
        ("ANAMNESIS_DEFAULT_LOCALE", "zh_CN.UTF-8", ["ANAMNESIS_DEFAULT_LOCALE=zh_CN.UTF-8", "such as zh-CN"]),
        ("ANAMNESIS_LLM_API", "soap", ["ANAMNESIS_LLM_API=soap", "responses or chat"]),
        ("ANAMNESIS_LLM_TIMEOUT_S", "0", ["ANAMNESIS_LLM_TIMEOUT_S=0", "more than 0"]),
        ("ANAMNESIS_DATABASE_URL", "mysql://u:geheim@h/d", ["ANAMNESIS_DATABASE_URL", "postgresql://"]),
        ("ANAMNESIS_REDIS_URL", "http://:geheim@h", ["ANAMNESIS_REDIS_URL", "redis://"]),
        ("ANAMNESIS_REDIS_URL", "redis+sentinel://:geheim@h", ["ANAMNESIS_REDIS_URL", "the service's name"]),
        ("ANAMNESIS_REDIS_URL", "redis+cluster://:geheim@h/3", ["ANAMNESIS_REDIS_URL", "no databases but 0"]),
        ("ANAMNESIS_REDIS_URL", "redis+cluster://h:port", ["ANAMNESIS_REDIS_URL", "'h:port' is not of the form"]),
        ("ANAMNESIS_MILVUS_URI", "milvus", ["ANAMNESIS_MILVUS_URI=milvus", "http://host:port"]),
        ("ANAMNESIS_HOST", "0.0.0.0", ["ANAMNESIS_HOST=0.0.0.0", "loopback"]),
        ("ANAMNESIS_AUTH", "basic", ["ANAMNESIS_AUTH=basic", "none", "api_key", "jwt"]),
        ("ANAMNESIS_LLM_MODEL", "m", ["ANAMNESIS_LLM_MODEL", "ANAMNESIS_LLM_API_KEY", "ANAMNESIS_LLM_BASE_URL"]),
        ("ANAMNESIS_EMBEDDING_MODEL", "m", ["ANAMNESIS_EMBEDDING_DIM"]),
        ("ANAMNESIS_MIGRATION_DATABASE_URL", "postgresql://o@h/d", ["ANAMNESIS_DATABASE_URL"]),
        ("ANAMNESIS_WEATHER_URL", "api.example", ["ANAMNESIS_WEATHER_URL=api.example", "Open-Meteo"]),
        (
            "ANAMNESIS_WEATHER_GEOCODING_URL",
            "http://g",
            ["ANAMNESIS_WEATHER_GEOCODING_URL", "ANAMNESIS_WEATHER_URL"],
        ),
        ("OPENAI_BASE_URL", "nowhere", ["OPENAI_BASE_URL=nowhere", "http(s)://"]),
    ],
)
def test_a_wrong_value_is_one_line_that_names_it(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: list[str]
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as wrong:
        load_settings()
    for part in says:
        assert part in wrong.value.message
    assert "\n" not in wrong.value.message
    assert "geheim" not in wrong.value.message


def test_with_authentication_every_address_may_be_served() -> None:
    jwt = {"jwt_jwks": "keys.json", "jwt_issuer": "i", "jwt_audience": "a"}
    assert load_settings(auth="api_key", host="0.0.0.0").host == "0.0.0.0"
    assert load_settings(auth="jwt", host="example.org", **jwt).jwt_scope_claim == "scope"
    with pytest.raises(ConfigurationError, match=r"HOST=0\.0\.0\.0 .* loopback"):
        load_settings(host="0.0.0.0", **jwt)


@pytest.mark.parametrize("missing", ["jwt_jwks", "jwt_issuer", "jwt_audience"])
def test_tokens_need_their_settings(missing: str) -> None:
    given = {"jwt_jwks": "keys.json", "jwt_issuer": "i", "jwt_audience": "a"} | {missing: None}
    with pytest.raises(ConfigurationError, match=f"^ANAMNESIS_AUTH=jwt needs ANAMNESIS_{missing.upper()}$"):
        load_settings(auth="jwt", **given)


def test_secrets_are_not_shown() -> None:
    settings = load_settings(llm_api_key="geheim", database_url="postgresql://u:geheim@h/d")
    assert "geheim" not in repr(settings)
    assert "geheim" not in str(settings.model_dump())


def test_a_misspelt_variable_is_named_with_the_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANAMNESIS_LLM_MODLE", "m")
    monkeypatch.setenv("ANAMNESIS_KEY", "of `anamnesis chat`")
    assert unknown_variables() == ["ANAMNESIS_LLM_MODLE is not a setting; did you mean ANAMNESIS_LLM_MODEL?"]


def test_every_setting_has_a_heading_a_meaning_and_what_it_accepts() -> None:
    found = documented_settings()
    assert [each.variable for each in found] == [f"ANAMNESIS_{name.upper()}" for name in Settings.model_fields]
    assert [each.variable for each in found if not (each.heading and each.meaning and each.accepts)] == []


def test_the_defaults_of_the_env_file_are_those_of_the_service() -> None:
    values = dict(re.findall(r"^# (ANAMNESIS_[A-Z0-9_]+)=(.*)$", env_file(), re.MULTILINE))
    assert set(values) == {f"ANAMNESIS_{name.upper()}" for name in Settings.model_fields}
    Path(".env").write_text("\n".join(f"{name}={value}" for name, value in values.items()))
    assert load_settings() == Settings(_env_file=None)


@pytest.mark.parametrize(("file", "made"), [(".env.example", env_file), ("docs/settings.md", settings_page)])
def test_the_files_that_list_all_settings_are_true(file: str, made: Callable[[], str]) -> None:
    assert (ROOT / file).read_text(encoding="utf-8") == made(), "run: make reference"


def test_the_chinese_page_lists_the_same_settings_with_the_same_defaults_in_the_same_sections() -> None:
    def listed(page: str) -> list[list[str]]:
        lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
        return [
            [cell.strip() for cell in line.split("|")[1:3]] if line.startswith("| `") else ["section"]
            for line in lines
            if line.startswith(("| `", "## "))
        ]

    assert listed("docs/zh/settings.md") == listed("docs/settings.md")
