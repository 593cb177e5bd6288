"""The built-in tools, one module each; the registry finds every `TOOL`.

A `TOOL` is a `RegisteredTool`, or a function that makes one from `ToolServices`.
"""
