"""Loads what the workers of `anamnesis serve --workers N` share; the server that forks them imports this."""

import gc

from api.app import analyse_routes
from api.cli import serving  # noqa: F401 — with all that a worker needs
from services.llm.embeddings import Embedder
from services.platform.milvus import pymilvus
from services.platform.settings import load_settings
from services.warm_up import load_now

_settings = load_settings(host="localhost")  # the worker gets its own; of these the models count
load_now(_settings)
if _settings.embedding_model is None:
    Embedder.of(_settings).load()
pymilvus()
analyse_routes()
gc.collect()
gc.freeze()
