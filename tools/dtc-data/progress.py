"""What a person sees while a command works."""

import sys
import time


class Progress:
    """Prints on standard error how far a command is: one line that changes on a terminal, else one every 10 seconds.

    total, done: bytes; `done` is what an earlier run has left."""

    def __init__(self, total, done=0):
        self.total, self.first, self.start = total, done, time.monotonic()
        self.is_terminal = sys.stderr.isatty()
        self.last = self.start if not self.is_terminal else 0.0

    def show(self, done, what):
        """`what` says what has become of the bytes."""
        now = time.monotonic()
        if now - self.last < (0.2 if self.is_terminal else 10.0):
            return
        self.last = now
        rate = (done - self.first) / max(now - self.start, 1e-9)
        left = (self.total - done) / rate if rate > 0 else 0
        line = (f"{done / 1e6:.1f} of {self.total / 1e6:.1f} MB  {what}  {rate / 1e6:.1f} MB/s  "
                f"eta {int(left // 60)}m{int(left % 60):02d}s")
        print(f"\r{line}\x1b[K" if self.is_terminal else line, end="" if self.is_terminal else "\n", file=sys.stderr, flush=True)

    def close(self):
        if self.is_terminal and self.last:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
