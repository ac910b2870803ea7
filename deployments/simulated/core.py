"""The child process of the simulated engine: `python -m deployments.simulated.core`.

Frames come in on stdin and go out on stdout; it ends when stdin does, so it never outlives its parent.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
import traceback
from queue import Empty, SimpleQueue

import msgspec

from deployments.simulated.frames import (
    LENGTH_BYTES,
    Abort,
    Add,
    Configure,
    Ready,
    ToChild,
    body_length,
    frame,
)
from deployments.simulated.scheduler import Scheduler

Inbox = SimpleQueue[tuple[float, ToChild]]  # with the time of arrival
Outbox = SimpleQueue[bytes]


def main() -> None:
    """Serve until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent; its end ends us
    frames_out = os.dup(1)
    os.dup2(2, 1)  # a stray print must not land among the frames
    inbox: Inbox = SimpleQueue()
    outbox: Outbox = SimpleQueue()
    # Threads, so that the clock runs on while the parent is slow, and stops at once when it is gone.
    threading.Thread(target=_read, args=(0, inbox), daemon=True).start()
    threading.Thread(target=_write, args=(frames_out, outbox), daemon=True).start()
    _, config = inbox.get()
    if not isinstance(config, Configure):
        sys.exit(f"the first frame must be Configure, not {type(config).__name__}")
    time.sleep(config.start_s)
    outbox.put(frame(Ready(os.getpid())))
    run(Scheduler(config), inbox, outbox)


def run(scheduler: Scheduler, inbox: Inbox, outbox: Outbox) -> None:
    """Run the step clock: each step ends at its deadline, and the next begins there."""
    due_at = -math.inf  # when the step before this one was due to end; -inf after idleness
    while True:
        _take_all(scheduler, inbox, outbox)
        now = time.monotonic()
        step = scheduler.begin(now)
        if step is None:
            due_at = -math.inf
            _take(scheduler, outbox, *inbox.get())
            continue
        # Lateness of less than a step is made up for; after a longer stall the clock starts anew.
        started_at = due_at if now - due_at < step.seconds else now
        due_at = started_at + step.seconds
        _sleep_until(due_at)
        _take_all(scheduler, inbox, outbox)
        outbox.put(frame(scheduler.finish(step, started_at, time.monotonic())))


def _sleep_until(deadline: float) -> None:
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(left)


def _take_all(scheduler: Scheduler, inbox: Inbox, outbox: Outbox) -> None:
    while True:
        try:
            arrived_at, message = inbox.get_nowait()
        except Empty:
            return
        _take(scheduler, outbox, arrived_at, message)


def _take(scheduler: Scheduler, outbox: Outbox, arrived_at: float, message: ToChild) -> None:
    if isinstance(message, Add):
        scheduler.add(message, arrived_at)
    elif isinstance(message, Abort) and (outputs := scheduler.abort(message.keys, time.monotonic())):
        outbox.put(frame(scheduler.update(False, outputs)))


def _read(descriptor: int, inbox: Inbox) -> None:
    decoder = msgspec.msgpack.Decoder(ToChild)
    status = 1
    try:
        with os.fdopen(descriptor, "rb") as stream:
            while len(prefix := stream.read(LENGTH_BYTES)) == LENGTH_BYTES:
                message = decoder.decode(stream.read(body_length(prefix)))
                inbox.put((time.monotonic(), message))
        status = 0
    except Exception:
        traceback.print_exc()
    os._exit(status)  # without input there is nothing to live for


def _write(descriptor: int, outbox: Outbox) -> None:
    with os.fdopen(descriptor, "wb", buffering=0) as stream:
        try:
            while True:
                left = memoryview(outbox.get())
                while left:
                    left = left[stream.write(left) :]
        except OSError:
            os._exit(0)  # nobody reads any more


if __name__ == "__main__":
    main()
