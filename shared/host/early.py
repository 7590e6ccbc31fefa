"""What a program does before its imports, which take a second; this module itself imports next to nothing."""

from __future__ import annotations

import os
import signal


def end_on_sigterm() -> None:
    """From now on SIGTERM ends the process with status 0, until the program sets a handler of its own.

    For process 1 of a container the kernel drops a signal without a handler (pid_namespaces(7)): a program that was
    told to end while it was still importing would serve on until the kill.
    """
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
