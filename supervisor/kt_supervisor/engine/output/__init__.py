"""What agents printed, as files on disk: read forwards, backwards and by time, and kept within a cap."""
