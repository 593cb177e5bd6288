"""Memory across conversations: core memory, episodes, recall, the changes that are asked for, and filing."""
