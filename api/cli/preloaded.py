"""Imports what the workers of `anamnesis serve --workers N` share, for the server that forks them."""

import gc

from api.app import analyse_routes
from api.cli import serving  # noqa: F401 — with all that a worker needs
from services.llm.embeddings import Embedder
from services.platform.milvus import pymilvus
from services.platform.settings import load_settings
from services.warm_up import load_now

_settings = load_settings(
    host="localhost"
)  # each worker reads its own settings; these only tell which models to load
load_now(_settings)
if _settings.embedding_model is None:
    Embedder.of(_settings).load()
pymilvus()
analyse_routes()
gc.collect()
gc.freeze()
