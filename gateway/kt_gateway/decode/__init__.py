"""Readers of usage, one dialect a file; the table names them."""
