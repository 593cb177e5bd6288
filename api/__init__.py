"""The ways in: HTTP, WebSocket, command line."""
