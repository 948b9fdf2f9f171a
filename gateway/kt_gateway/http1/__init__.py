"""HTTP/1.1 as bytes (RFC 9110, RFC 9112): heads, body framing, paths and local answers; sans-io, strict on requests."""
