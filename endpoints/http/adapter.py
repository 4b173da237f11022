"""What the adapters for HTTP share: arguments, lines, temporary folders and certificates (see ../README.md)"""

import argparse
import base64
import contextlib
import ctypes
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from urllib.parse import urlsplit

VERSIONS = {"HTTP/1.1": "http1", "HTTP/2.0": "http2", "1.1": "http1", "2": "http2"}


def parse_args(*subcommands, needs):
    """Arguments of the command line; ends with an error where one of the programs in `needs` is not installed"""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    for name in subcommands:
        command = commands.add_parser(name)
        command.add_argument("--version", choices=["http1", "http2"], required=True)
        command.add_argument("--tls", choices=["1.2", "1.3"], required=True)
        if name == "listen":
            command.add_argument("--host", default="127.0.0.1")
            command.add_argument("--port", type=int, default=0)
        else:
            command.add_argument("--address", type=urlsplit, required=True)
            command.add_argument("--send", type=int, required=True)
            command.add_argument("--receive", type=int, required=True)
            command.add_argument("--iterations", type=int, required=True)
            command.add_argument("--timeout", type=float, default=60)
    options = parser.parse_args()
    missing = [program for program in needs if shutil.which(program) is None]
    if missing:
        sys.exit(f"error: no such program: {', '.join(missing)}; install it")
    return options


def url_host(host):
    """An address as part of a URL"""
    return f"[{host}]" if ":" in host else host


def print_line(**line):
    print(json.dumps(line), flush=True)


@contextlib.contextmanager
def temporary_folder():
    """A folder in memory, which is removed at the end, also at the one by SIGTERM"""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="weighbridge-http-", dir=parent) as folder:
        yield folder


def create_certificate(folder):
    """Creates cert.pem and key.pem; returns the hash of the public key in the notation of curl's --pinnedpubkey"""
    key, certificate = os.path.join(folder, "key.pem"), os.path.join(folder, "cert.pem")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
            "/CN=weighbridge", "-days", "30", "-keyout", key, "-out", certificate)
    public_key = openssl("pkey", "-in", key, "-pubout", "-outform", "DER")
    return "sha256//" + base64.b64encode(hashlib.sha256(public_key).digest()).decode()


def openssl(*words):
    return subprocess.run(["openssl", *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def end_with_parent():
    """Before exec in a child: it gets SIGTERM when its parent ends"""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def create_payload(folder, size):
    """A sparse file of zeros"""
    path = os.path.join(folder, "payload")
    with open(path, "wb") as file:
        file.truncate(size)
    return path
