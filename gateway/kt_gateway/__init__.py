"""How bytes on the wire become usage events."""
