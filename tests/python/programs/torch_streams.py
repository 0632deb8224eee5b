# Operators in several streams that use one tensor: what orders them, and what does not. Each function
# has its race, if it is racy, at the line that is marked.
# needs: torch
# expect: CS1001 CS1002 @race
# every: @race
# no kernel
import sys

import torch

racy = sys.argv[1] == "racy"
stream = [torch.cuda.Stream() for _ in range(8)]


def tensors(n=1):
    made = [torch.ones(64, 64, device="cuda") for _ in range(n)]
    torch.cuda.synchronize()
    return made


def on(s, work):
    with torch.cuda.stream(stream[s]):
        return work()


def record(s):
    event = torch.cuda.Event()
    event.record(stream[s])
    return event


def default_stream():
    a = torch.rand(64, device="cuda")
    with torch.cuda.stream(stream[0]):
        if not racy:
            stream[0].wait_stream(torch.cuda.default_stream())
        torch.mul(a, 5, out=a)  # @race


def write_after_read():
    a, = tensors()
    on(0, lambda: a * 2)
    event = record(0)
    if not racy:
        stream[1].wait_event(event)
    on(1, lambda: a.add_(1))  # @race


def second_reader():
    a, = tensors()
    on(0, lambda: a.add_(1))
    event = record(0)
    stream[1].wait_event(event)
    if not racy:
        stream[2].wait_event(event)
    on(1, lambda: a * 2)
    on(2, lambda: a * 3)  # @race


def reader_writes():
    a, = tensors()
    on(0, lambda: a.add_(1))
    stream[1].wait_stream(stream[0])
    stream[2].wait_stream(stream[0])
    on(1, lambda: a * 2)
    on(2, lambda: a * 3)
    if not racy:
        stream[1].wait_stream(stream[2])
    on(1, lambda: a.add_(1))  # @race


def chain():
    a, = tensors()
    on(0, lambda: a * 2)
    for s in range(7):
        if not (racy and s == 4):
            stream[s + 1].wait_event(record(s))
    on(7, lambda: a.add_(1))  # @race


def recorded_before():
    a, = tensors()
    event = record(0)
    on(0, lambda: a * 2)
    if not racy:
        event.record(stream[0])
    stream[1].wait_event(event)
    on(1, lambda: a.add_(1))  # @race


def never_recorded():
    a, = tensors()
    on(0, lambda: a * 2)
    event = torch.cuda.Event() if racy else record(0)
    stream[1].wait_event(event)
    on(1, lambda: a.add_(1))  # @race


def recorded_elsewhere():
    a, b = tensors(2)
    on(0, lambda: a * 2)
    on(1, lambda: b * 2)
    event = record(0)
    if racy:
        event.record(stream[1])
    stream[2].wait_event(event)
    on(2, lambda: a.add_(1))  # @race


def one_reader_left():
    a, = tensors()
    for s in range(1, 6):
        on(s, lambda: a * 2)
        if not (racy and s == 5):
            stream[0].wait_event(record(s))
    on(0, lambda: a.add_(1))  # @race


def joined_states():
    a, b = tensors(2)
    on(0, lambda: a.add_(1))
    on(1, lambda: b.add_(1))
    first, second = record(0), record(1)
    on(0, lambda: a.add_(1))
    on(1, lambda: b.add_(1))
    stream[1].wait_event(first)
    stream[0].wait_event(second)
    if not racy:
        stream[0].wait_event(record(1))
    on(0, lambda: torch.add(a, b, out=b))  # @race


def halves():
    a, = tensors()
    on(0, lambda: a[:, ::2].add_(1))
    on(1, lambda: a[:, 0 if racy else 1::2].mul_(2))  # @race


def host_waits():
    a, = tensors()
    on(0, lambda: a.add_(1))
    (stream[1] if racy else stream[0]).synchronize()
    on(1, lambda: a.mul_(2))  # @race


def host_waits_for_an_event():
    a, = tensors()
    on(0, lambda: a.add_(1))
    event = record(0)
    if not racy:
        event.synchronize()
    on(1, lambda: a.mul_(2))  # @race


def result_on_the_host():
    a, = tensors()
    on(0, lambda: a.add_(1))
    on(0, lambda: a.cpu() if not racy else None)  # a copy to pageable memory waits
    on(1, lambda: a.mul_(2))  # @race


def copy_from_pinned():
    a, = tensors()
    pinned = torch.ones(64, 64).pin_memory()
    on(0, lambda: a.copy_(pinned, non_blocking=True))
    if not racy:
        stream[1].wait_stream(stream[0])
    on(1, lambda: a * 2)  # @race


for case in [x for name, x in globals().copy().items() if callable(x) and name not in ("tensors", "on", "record")
             and getattr(x, "__module__", "") == "__main__"]:
    case()
    torch.cuda.synchronize()
