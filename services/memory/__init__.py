"""Memory across conversations: core memory, episodes, recall, commands and the memory agent."""
