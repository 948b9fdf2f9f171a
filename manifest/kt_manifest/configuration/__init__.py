"""What operators set: the options, their layers and files, and secrets."""
