"""Protocols of front ends, one mapper each over a turn's events: the AI SDK's UI messages, and AG-UI."""
