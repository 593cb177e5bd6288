"""Load the demo, and remove it."""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from api.access import Admin, ServicesOf
from api.console.demo import DEMO_USER, Demo
from api.paging import NO_CONTENT
from api.problems import documented
from api.request_bodies import JsonRoute

router = APIRouter(
    route_class=JsonRoute,
    prefix="/api/v1/demo",
    include_in_schema=False,  # for the console and the command, and not for programs
    responses=documented(HTTPStatus.SERVICE_UNAVAILABLE),
)


class DemoView(BaseModel):
    """The demo that was loaded."""

    user_id: str
    turns: int = Field(description="That were played.")


@router.post(
    "", response_model=DemoView, status_code=HTTPStatus.CREATED, responses=documented(HTTPStatus.CONFLICT)
)
async def load(services: ServicesOf, caller: Admin) -> Any:
    """Play a month of made-up conversations of a user of its own; no model is asked. 409 if they are there."""
    turns = await Demo(services).load(caller.tenant_id, datetime.now(UTC))
    return {"user_id": DEMO_USER, "turns": turns}


@router.delete("", **NO_CONTENT, responses=documented(HTTPStatus.NOT_FOUND))
async def remove(services: ServicesOf, caller: Admin) -> None:
    """Remove the demo with all that came with it."""
    await Demo(services).remove(caller.tenant_id)
