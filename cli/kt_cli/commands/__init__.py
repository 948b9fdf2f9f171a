"""The verbs, one file each: words in, words out."""
