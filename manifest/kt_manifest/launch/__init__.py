"""What it takes to launch an agent: rendering, its environment, its files, its readiness."""
