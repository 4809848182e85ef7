"""What ends a command: a message for the person who runs it."""


class Problem(Exception):
    """Says what was found, where, and what to do; main() prints it after "error: "."""
