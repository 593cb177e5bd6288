"""Run the migrations over a connection that `services.platform.migrate` makes."""

from alembic import context
from sqlalchemy import create_engine, pool

engine = create_engine(
    "postgresql+psycopg://", creator=context.config.attributes["connect"], poolclass=pool.NullPool
)

with engine.connect() as connection:
    context.configure(connection=connection, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
