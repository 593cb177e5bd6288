"""Lineage: the sources of everything derived, and the job, prompt and model that made it."""
