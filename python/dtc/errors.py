"""The error of this package."""


class Error(Exception):
    """What was found, what was expected, where, and what to do: the text that the tools of dtc print."""
