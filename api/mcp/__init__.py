"""Memory for assistants that speak the Model Context Protocol. Its SDK is imported with the first request."""
