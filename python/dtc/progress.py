"""Shows on a terminal how far the search of a mesh or a training is."""

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
            self.bar = _bar(desc="searching the mesh", unit="plan")
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


class TrainingProgress:
    """A bar of tqdm, or a line, as of a search, with the steps that are done and the last loss. `total`: of steps, None if it is
    not known."""

    def __init__(self, total, is_shown):
        self.done, self.total, self.bar, self.line, self.shown = 0, total, None, "", 0.0
        self.is_shown = is_shown and sys.stderr is not None and sys.stderr.isatty()
        if self.is_shown:
            self.bar = _bar(total=total, unit="step")

    def __call__(self, metrics):
        self.done += 1
        loss = f"loss {metrics['loss']:.4f}" if metrics.get("loss") is not None else ""
        if self.bar is not None:
            self.bar.set_postfix_str(loss, refresh=False)
            self.bar.update()
        elif self.is_shown and time.monotonic() >= self.shown + BETWEEN:
            self.shown = time.monotonic()
            self.line = f"step {self.done}" + (f" of {self.total}" if self.total is not None else "") + f", {loss}"
            print(f"\r{self.line}\x1b[K", end="", file=sys.stderr, flush=True)

    def close(self):
        """Ends the line; what it says stays."""
        if self.bar is not None:
            self.bar.close()
        elif self.line:
            print(file=sys.stderr, flush=True)


def _bar(**settings):
    """None where tqdm is missing."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(**{"leave": settings["unit"] == "step", "dynamic_ncols": True, "file": sys.stderr} | settings)
