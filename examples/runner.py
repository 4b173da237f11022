#!/usr/bin/env python3
"""A runner for weighbridge: hashes in Python, a JSON line per event. See docs/tests.md, "External runners"."""

import hashlib
import json
import sys
import time

ZEROS_SHA256 = {64: "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"}


def say(event, **fields):
    print(json.dumps({"event": event, **fields}, allow_nan=False), flush=True)


def hashes(count, size):
    """Hashes `count` blocks; the seconds that took and the last digest."""
    block = bytes(size)
    start = time.monotonic()
    for _ in range(count):
        digest = hashlib.sha256(block).hexdigest()
    return time.monotonic() - start, digest


def enough(seconds, size):
    """How many hashes take at least so long."""
    count = 256
    while True:
        took, _ = hashes(count, size)
        if took >= seconds / 4:
            return max(16, int(count * seconds * 1.1 / took))
        count *= 4


def sample(task):
    size = task["params"]["block"]
    count = task["work"] or enough(task["min-time"], size)
    part = max(1, count // 16)
    say("probe", amount=part, seconds=hashes(part, size)[0])
    seconds, digest = hashes(count, size)
    say("work", amount=count, seconds=seconds)
    say("metric", **{"class": "throughput", "name": "hashes", "value": count / seconds, "unit": "hashes/s"})
    say("metric", **{"class": "latency", "name": "hash", "value": seconds / count * 1e6, "unit": "us"})
    if size in ZEROS_SHA256:
        say("check", name="the digest is right", passed=digest == ZEROS_SHA256[size], figures=digest)
    say("artefact", name="digest.txt", text=digest + "\n")


def main():
    say("hello", protocol=1)
    task = json.load(sys.stdin)
    if sys.argv[1:] != ["sample"] or task["protocol"] != 1:
        say("failed", reason=f"only `sample` by version 1 of the protocol is known here, not {sys.argv[1:]}")
        return
    sample(task)
    say("done")


main()
