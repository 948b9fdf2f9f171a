"""The one way in which a command of `kt` fails on purpose."""


class Failure(Exception):
    """What was asked cannot be done; the message is for people, the code for scripts (`exit_codes`)."""

    def __init__(self, message: str, *, exit_code: int, code: str = "failed") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.code = code
