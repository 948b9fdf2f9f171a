"""Role specs rendered into the files of one runner, never wider than the role. Standard library only."""
