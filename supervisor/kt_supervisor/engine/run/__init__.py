"""One Run: what it is started with, its keeper, its end, and what became of one that nobody watched."""
