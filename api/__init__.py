"""Interfaces of the service: HTTP, WebSocket, command line."""
