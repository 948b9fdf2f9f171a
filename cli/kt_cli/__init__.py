"""Words in, words out: the only room that knows all the others."""
