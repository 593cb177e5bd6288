"""Alembic's folder: forward-only migrations in plain SQL."""
