#!/usr/bin/env python3
"""Takes the octets of a bulk offer: fetch.py ENDPOINT TOKEN FILE. Needs the standard library of Python alone."""

import os
import socket
import struct
import sys
import zlib

MAGIC = b"SPBULK\r\n"
DATA, END, DONE, ERROR, CANCEL = 1, 2, 3, 4, 5


def connect(endpoint):
    if endpoint.startswith("unix:"):
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(30)
        stream.connect(endpoint.removeprefix("unix:"))
        return stream
    host, port = endpoint.removeprefix("tcp://").rsplit(":", 1)
    return socket.create_connection((host.strip("[]"), int(port)), timeout=30)


def read_exactly(stream, count):
    octets = b""
    while len(octets) < count:
        more = stream.recv(count - len(octets))
        if not more:
            sys.exit(f"the connection ended after {len(octets)} of {count} octets")
        octets += more
    return octets


def fetch(endpoint, token, file, finish):
    stream = connect(endpoint)
    # Version 1, role 1 (receives), no flags, the token, offset 0.
    stream.sendall(MAGIC + struct.pack(">BBH32sQ", 1, 1, 0, bytes.fromhex(token), 0))
    magic, version, status, _, _offset, _length = struct.unpack(">8sBBHQQ", read_exactly(stream, 28))
    if magic != MAGIC or version != 1:
        sys.exit("the peer speaks another protocol")
    count = checksum = 0
    while True:
        kind, length = struct.unpack(">B3xL", read_exactly(stream, 8))
        if kind == DATA and status == 0:
            while length > 0:
                octets = stream.recv(min(length, 1 << 20))
                if not octets:
                    sys.exit(f"the connection ended after {count} octets")
                file.write(octets)
                checksum = zlib.crc32(octets, checksum)
                count += len(octets)
                length -= len(octets)
        elif kind == END:
            total, has_checksum, expected = struct.unpack(">QB3xL", read_exactly(stream, 16))
            if total != count or has_checksum and expected != checksum:
                sys.exit("the octets are not the ones that were sent")
            finish()
            stream.sendall(struct.pack(">B3xLQB3xL", DONE, 16, count, 1, checksum))
            return count, checksum
        elif kind in (ERROR, CANCEL):
            text = read_exactly(stream, length)[2 if kind == ERROR else 0:]
            sys.exit("refused: " + text.decode(errors="replace"))
        else:
            sys.exit(f"a frame of kind {kind}")


def fetch_whole(endpoint, token, path):
    """Fetches into a file that has its name only once it is whole; until then it is a hidden one beside it."""
    folder, name = os.path.split(path)
    partial = os.path.join(folder, f".{name}.{os.urandom(8).hex()}.part")
    with open(partial, "xb") as file:

        def finish():
            file.flush()
            os.fsync(file.fileno())
            os.replace(partial, path)

        try:
            return fetch(endpoint, token, file, finish)
        except BaseException:
            if os.path.exists(partial):
                os.unlink(partial)
            raise


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: fetch.py ENDPOINT TOKEN FILE")
    print("%d octets, %08x" % fetch_whole(*sys.argv[1:]))
