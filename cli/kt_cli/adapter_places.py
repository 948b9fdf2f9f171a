"""The word that names an adapter: the kind of one that comes with kt, or a path; a path that is there comes first."""

import os
from pathlib import Path

import click

from kt_cli import completing

argument = click.argument("adapter", metavar="KIND|PATH", shell_complete=completing.shipped_or_paths)
"""The argument of every verb about one adapter."""


def is_path(word: str) -> bool:
    """Return whether a word can only be meant as a path."""
    marks = [mark for mark in (os.sep, os.altsep, ".toml") if mark]
    return any(mark in word for mark in marks) or Path(word).exists()


def located(word: str) -> Path:
    """Return the folder of an adapter that comes with kt, or the word as the path that it is."""
    if is_path(word):
        return Path(word)
    from kt_manifest.contract import shipped_folder

    return shipped_folder.folder() / word if word in shipped_folder.kinds() else Path(word)
