"""The extension points of mitmproxy: mode, server, lane."""
