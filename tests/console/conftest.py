"""The application over real HTTP, as the tests of the API have it."""

from tests.api.conftest import client, runner, url

__all__ = ["client", "runner", "url"]
