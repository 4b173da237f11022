#!/usr/bin/env python3
"""A runner for weighbridge: SHA-256 in Python, one JSON line per event. See docs/tests.md, "External runners"."""

import hashlib
import json
import sys
import time

ZEROS_SHA256 = {64: "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"}


def emit(event, **fields):
    print(json.dumps({"event": event, **fields}, allow_nan=False), flush=True)


def hashes(count, size):
    """Hashes `count` blocks and returns the elapsed seconds and the last digest."""
    block = bytes(size)
    start = time.monotonic()
    for _ in range(count):
        digest = hashlib.sha256(block).hexdigest()
    return time.monotonic() - start, digest


def calibrate(seconds, size):
    """Returns a number of hashes that takes at least this long."""
    count = 256
    while True:
        elapsed, _ = hashes(count, size)
        if elapsed >= seconds / 4:
            return max(16, int(count * seconds * 1.1 / elapsed))
        count *= 4


def sample(task):
    size = task["params"]["block"]
    count = task["work"] or calibrate(task["min-time"], size)
    part = max(1, count // 16)
    emit("probe", amount=part, seconds=hashes(part, size)[0])
    seconds, digest = hashes(count, size)
    emit("work", amount=count, seconds=seconds)
    emit("metric", **{"class": "throughput", "name": "hashes", "value": count / seconds, "unit": "hashes/s"})
    emit("metric", **{"class": "latency", "name": "hash", "value": seconds / count * 1e6, "unit": "us"})
    if size in ZEROS_SHA256:
        emit("check", name="the digest is right", passed=digest == ZEROS_SHA256[size], figures=digest)
    emit("artefact", name="digest.txt", text=digest + "\n")


def main():
    emit("hello", protocol=1)
    task = json.load(sys.stdin)
    if sys.argv[1:] != ["sample"] or task["protocol"] != 1:
        emit("failed", reason=f"unsupported request {sys.argv[1:]}: expected `sample` by version 1 of the protocol")
        return
    sample(task)
    emit("done")


main()
