"""Memory for assistants that speak the Model Context Protocol. The SDK is imported with the first request."""
