"""Shows on a terminal how far the search of a mesh is."""

import sys
import time

BETWEEN = 0.1  # seconds, between two changes of the line


class SearchProgress:
    """A callback of a search: a bar of tqdm, where that is installed, or a line on standard error that changes; nothing where
    standard error is no terminal, and nothing of a search that takes less than BETWEEN."""

    def __init__(self):
        self.bar, self.line, self.shown = None, "", time.monotonic()
        self.is_shown = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, probes, probes_to_come, simulated, simulations_to_come, best_seconds):
        """Of the search: the probes and simulations that are done and to come, and the fastest step so far; 0: none."""
        if not self.is_shown or time.monotonic() < self.shown + BETWEEN:
            return
        self.shown = time.monotonic()
        best = f", best step {1e3 * best_seconds:.4g} ms" if best_seconds > 0 else ""
        done, total = probes + simulated, probes + probes_to_come + simulated + simulations_to_come
        if self.bar is None and not self.line:
            self.bar = _bar()
        if self.bar is None:
            self.line = f"searching the mesh: {probes} probes and {simulated} simulations of at most {total}{best}"
            print(f"\r{self.line}\x1b[K", end="", file=sys.stderr, flush=True)
            return
        self.bar.total, self.bar.n = total, done
        self.bar.set_postfix_str(f"{probes} probes, {simulated} simulated{best}", refresh=False)
        self.bar.refresh()

    def close(self):
        """Removes what is shown."""
        if self.bar is not None:
            self.bar.close()
        elif self.line:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _bar():
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(desc="searching the mesh", unit="plan", leave=False, dynamic_ncols=True, file=sys.stderr)
