"""Runs the migrations in the caller's transaction, or over a new connection."""

from alembic import context
from sqlalchemy import Connection, create_engine, pool


def _migrate(connection: Connection) -> None:
    context.configure(connection=connection, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes
if "connection" in given:
    _migrate(given["connection"])
else:
    engine = create_engine("postgresql+psycopg://", creator=given["connect"], poolclass=pool.NullPool)
    with engine.connect() as made:
        _migrate(made)
