"""What the service remembers across conversations, and how it finds it again."""
