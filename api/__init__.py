"""The interfaces: HTTP, WebSocket, command line."""
