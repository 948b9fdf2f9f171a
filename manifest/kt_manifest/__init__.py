"""What an agent is, and what it takes to launch it under our eyes."""
