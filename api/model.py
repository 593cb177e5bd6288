"""The model that answers: reading it, and choosing another one in the console."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field, SecretStr

from api.access import KnownCaller, OfServiceAdmins, ServicesOf
from api.problems import CONFLICT, documented
from api.request_bodies import JsonRoute
from api.schemas import Answer, StrictModel, answered
from services.errors import Conflict, InvalidInput
from services.llm.chat_models import ChatModels
from services.llm.model_trials import Tried, settings_with, try_model
from services.llm.offered_models import PROVIDERS, Offered, Provider, models_of
from services.memory.filing.grade import WITHIN_S, GradeFound, grade_filing
from services.platform.chosen_model import ChosenModel, choose_model, chosen_model, key_of_endpoint
from services.platform.outgoing import OutgoingHttp
from services.platform.setting_values import FilingGrade
from services.platform.settings import Settings
from services.usage.ledger import Spender

router = APIRouter(
    route_class=JsonRoute,
    prefix="/api/v1/model",
    tags=["service"],
    dependencies=[OfServiceAdmins],
    responses=documented(HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY),
)

_SHOWN = 4
Source = Literal["environment", "console", "none"]


class ModelView(Answer):
    """The model in use, and where it was named."""

    source: Source = Field(
        description="`environment` includes `.env`; `none`: the built-in offline model answers."
    )
    model: str | None
    base_url: str | None
    api: Literal["responses", "chat"]
    key: str | None = Field(description="The last four characters of its key.")
    small_model: str | None = Field(description="For background work; null = the same.")
    small_model_source: Source
    embedding_model: str | None = Field(description="null = the built-in encoder.")
    embedding_source: Source
    embedding_base_url: str | None = Field(description="Where it is asked; null = at the same address.")
    embedding_key: str | None = Field(description="The last four characters of its own key.")
    filing_grade: FilingGrade | None = Field(description="How well it files; null = not known.")
    filing_grade_source: Source
    restarts: bool = Field(description="Whether the service restarts by itself when another one is chosen.")
    providers: list[Provider] = Field(description="Well-known ones; others are typed in.")


class Endpoint(StrictModel):
    """An endpoint to be asked for its models."""

    base_url: str = Field(pattern=r"^https?://[^\s]+$", max_length=2_000)
    api_key: str | None = Field(None, min_length=1, max_length=2_000)
    keep_key: bool = Field(False, description="Use the key that is kept for this address.")


class Choice(ChosenModel):
    """A model to be tried or kept."""

    keep_key: bool = Field(False, description="Use the key that is kept for this address.")
    keep_embedding_key: bool = Field(False, description="Use the key that is kept for the embeddings' address.")


class Grade(StrictModel):
    """A grade to be kept."""

    grade: FilingGrade | None = Field(description="null = not known.")


class UnusableModel(Conflict):
    """The model did not answer, so it was not kept."""

    def __init__(self, tried: Tried) -> None:
        self.failure = tried.code
        super().__init__(f"{tried.model} was not kept: {tried.problem}")


@router.get("", response_model=ModelView)
async def model(services: ServicesOf, request: Request) -> ModelView:
    """Return the model in use and where it was named."""
    settings = services.settings
    return ModelView(
        source=_source(settings, "llm_model"),
        model=settings.llm_model,
        base_url=settings.llm_base_url,
        api=settings.llm_api,
        key=_masked(settings.llm_api_key),
        small_model=settings.small_llm_model,
        small_model_source=_source(settings, "small_llm_model"),
        embedding_model=settings.embedding_model,
        embedding_source=_source(settings, "embedding_model"),
        embedding_base_url=settings.embedding_base_url,
        embedding_key=_masked(settings.embedding_api_key),
        filing_grade=settings.memory_filing_grade,
        filing_grade_source=_source(settings, "memory_filing_grade"),
        restarts=_restart_of(request) is not None,
        providers=list(PROVIDERS),
    )


@router.post("/models", response_model=answered(Offered))
async def models(endpoint: Endpoint, services: ServicesOf) -> Offered:
    """Ask an endpoint for its models."""
    key = _key(services.settings, endpoint.base_url, endpoint.api_key, keep=endpoint.keep_key)
    http = OutgoingHttp()
    try:
        return await models_of(http, endpoint.base_url, key)
    finally:
        await http.close()


@router.post("/try", response_model=answered(Tried))
async def try_(choice: Choice, services: ServicesOf) -> Tried:
    """Send every model that is chosen one short message, which is billed as usual; nothing is kept."""
    return await try_model(services.settings, _chosen(services.settings, choice))


@router.post("/check", response_model=answered(GradeFound), responses=CONFLICT)
async def check(
    caller: KnownCaller,
    seconds: Annotated[float, Query(ge=5, le=600, description="The longest time that it takes.")] = WITHIN_S,
) -> GradeFound:
    """Have the model in use file a few made-up talks, billed as usual, of which nothing is kept."""
    with caller.services.usage.meter.spending(Spender(caller.tenant_id, "model_check")):
        found = await grade_filing(caller.services.models, within_s=seconds)
    if found is None:
        raise Conflict("No model is chosen; the built-in one files nothing.")
    return found


@router.put("/grade", status_code=HTTPStatus.NO_CONTENT, responses=CONFLICT)
async def set_grade(grade: Grade, services: ServicesOf, request: Request) -> None:
    """Keep how well the model that was chosen files, and restart the service with it, if it can."""
    _check_changeable(services.settings)
    kept = chosen_model(services.settings.data_dir)
    if kept is None or _source(services.settings, "memory_filing_grade") == "environment":
        raise Conflict("The environment decides (ANAMNESIS_MEMORY_FILING_GRADE); change it there.")
    _keep(services.settings, kept.model_copy(update={"filing_grade": grade.grade}), request)


@router.put("", status_code=HTTPStatus.NO_CONTENT, responses=CONFLICT)
async def choose(
    choice: Choice,
    caller: KnownCaller,
    request: Request,
    grade: Annotated[
        bool, Query(description="Whether to find out first, in a minute, how well it files.")
    ] = False,
) -> None:
    """Keep a model that answers in the data folder, and restart the service with it, if it can."""
    settings = caller.services.settings
    _check_changeable(settings)
    chosen = _chosen(settings, choice)
    tried = await try_model(settings, chosen)
    if tried.problem:
        raise UnusableModel(tried)
    found: dict[str, Any] = {"embedding_dim": tried.embedding_dim}
    if grade:
        with caller.services.usage.meter.spending(Spender(caller.tenant_id, "model_check")):
            found["filing_grade"] = await _grade_of(settings_with(settings, chosen))
    _keep(settings, chosen.model_copy(update=found), request)


@router.delete("", status_code=HTTPStatus.NO_CONTENT, responses=CONFLICT)
async def forget(services: ServicesOf, request: Request) -> None:
    """Forget the model that was chosen: from the restart on the built-in one answers."""
    _check_changeable(services.settings)
    _keep(services.settings, None, request)


async def _grade_of(settings: Settings) -> FilingGrade | None:
    models = ChatModels(settings)
    try:
        found = await grade_filing(models)
    finally:
        await models.close()
    return found.grade if found else None


def _masked(key: SecretStr | None) -> str | None:
    secret = key.get_secret_value() if key else ""
    return f"…{secret[-_SHOWN:]}" if len(secret) > 2 * _SHOWN else "…" if secret else None


def _source(settings: Settings, name: str) -> Source:
    if getattr(settings, name) is None:
        return "none"
    return "console" if settings.from_console(name) else "environment"


def _check_changeable(settings: Settings) -> None:
    if not settings.offline and not settings.from_console("llm_model"):
        raise Conflict("The environment names the model (ANAMNESIS_LLM_MODEL); change it there.")


def _chosen(settings: Settings, choice: Choice) -> ChosenModel:
    """Return the choice with its key. Raises `InvalidInput` if the environment already names a part of it, or
    there is no key to keep."""
    for field, name in (("small_model", "small_llm_model"), ("embedding_model", "embedding_model")):
        if getattr(choice, field) and _source(settings, name) == "environment":
            raise InvalidInput(field, f"the environment names it (ANAMNESIS_{name.upper()}); change it there")
    if choice.embedding_base_url and not choice.embedding_model:
        raise InvalidInput("embedding_base_url", "needs the name of an embedding model")
    if not choice.embedding_base_url and (choice.embedding_api_key or choice.keep_embedding_key):
        raise InvalidInput("embedding_api_key", "needs an address of its own")
    keys = {"api_key": _key(settings, choice.base_url, choice.api_key, keep=choice.keep_key)}
    if choice.embedding_base_url:
        own = choice.embedding_base_url, choice.embedding_api_key
        keys["embedding_api_key"] = _key(settings, *own, keep=choice.keep_embedding_key, of="embedding_")
    return ChosenModel(**{**choice.model_dump(exclude={"keep_key", "keep_embedding_key"}), **keys})


def _key(settings: Settings, base_url: str, given: str | None, *, keep: bool, of: str = "") -> str | None:
    """Return the given key, or the kept one, which is only sent to the address that it was given for.

    `of` is the beginning of the names of the fields.
    """
    if given is not None:
        try:
            return key_of_endpoint(given) or None
        except ValueError as error:
            raise InvalidInput(f"{of}api_key", str(error)) from None
    if not keep:
        return None
    kept = chosen_model(settings.data_dir)
    if kept is None or getattr(kept, f"{of}base_url") != base_url:
        raise InvalidInput(f"{of}api_key", "is kept for another address; give it again")
    key: str | None = getattr(kept, f"{of}api_key")
    return key


def _keep(settings: Settings, chosen: ChosenModel | None, request: Request) -> None:
    choose_model(settings.data_dir, chosen)
    if (restart := _restart_of(request)) is not None:
        restart()


def _restart_of(request: Request) -> Callable[[], None] | None:
    found: Callable[[], None] | None = getattr(request.app.state, "restart", None)
    return found
