//! The queue as an MCP server, so that an assistant can be the worker.
