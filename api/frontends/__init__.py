"""Front-end protocols, each a mapper over a turn's events: the AI SDK's UI messages, and AG-UI."""
