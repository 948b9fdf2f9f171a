"""The gateway as the engine sees it: found or started, told which listeners there shall be, its journals folded."""
