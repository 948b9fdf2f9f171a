"""The revisions, oldest first; each is frozen once released."""
