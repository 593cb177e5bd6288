"""Values that flow through a turn; nothing else of the service is imported here."""
