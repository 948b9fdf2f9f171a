"""The one way in which a command of `kt` fails on purpose: the library's, so that its refusals need no translation."""

from kt_client.errors import KtError as Failure

__all__ = ["Failure"]
