"""Lineage: what everything derived was made from, and by which job, prompt and model."""
