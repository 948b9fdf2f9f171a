"""Which kt this code is.

A constant of the code and no look-up of what is installed: while a process runs, an upgrade may have replaced the files
that it came from, and it would call itself by the version that it is not.
"""

VERSION = "0.1.0"
