#!/usr/bin/env python3
"""Records the golden GIOP messages of orb/giop/tests/golden from omniORB client and server exchanges.

    peers/omniorb/record.py --peers target/interop/omniorb [--out orb/giop/tests/golden]

A relay between the two records every octet; the server publishes the relay's address in its references. Each message
is parsed here, by independent code, and, where tshark is installed, compared with the output of its GIOP dissector.
Some messages are written by this script because omniORB on this machine would not send them (big-endian ones,
malformed ones); omniORB's reply then shows that it accepted them, and the file notes that.

File format: `#` comments; then per message one line of `name=value` words (its expected fields) and lines of hex.
The README in that folder lists the fields.
"""

import argparse
import os
import re
import select
import socket
import struct
import subprocess
import sys
import threading
import time

from giop import Reader, quote, reference, split
from tshark import compare

LIMIT = 20  # seconds that any single step may take


# ---- the relay ------------------------------------------------------------------------------------------------

class Relay:
    """Relays octets between clients and one server; `exchanges` holds the messages of each connection in order."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.server = None
        self.exchanges = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            exchange = []
            self.exchanges.append(exchange)
            threading.Thread(target=self.pass_on, args=(client, exchange), daemon=True).start()

    def pass_on(self, client, exchange):
        server = socket.create_connection(self.server)
        ends = {client: (server, "client"), server: (client, "server")}
        rest = {client: b"", server: b""}
        open_ends = [client, server]
        while open_ends:
            for end in select.select(open_ends, [], [])[0]:
                other, sender = ends[end]
                try:
                    octets = end.recv(1 << 16)
                except OSError:
                    octets = b""
                if not octets:
                    open_ends.remove(end)
                    try:
                        other.shutdown(socket.SHUT_WR)
                    except OSError:
                        pass
                    continue
                messages, rest[end] = split(rest[end] + octets, sender)
                exchange.extend(messages)
                try:
                    other.sendall(octets)
                except OSError:
                    pass
        client.close()
        server.close()


class Session:
    """One omniORB server behind a relay."""

    def __init__(self, peers, version, *options):
        self.peers, self.version = peers, version
        self.relay = Relay()
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        self.relay.server = ("127.0.0.1", port)
        self.server = subprocess.Popen(
            [os.path.join(peers, "server"), "-ORBendPoint", f"giop:tcp:127.0.0.1:{port}",
             "-ORBendPointPublish", f"giop:tcp:127.0.0.1:{self.relay.port}",
             "-ORBmaxGIOPVersion", version, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.reference = self.server.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stdin.close()
        try:
            self.server.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        self.relay.listener.close()

    def client(self, case, *options):
        """Runs one case of the client; returns all its messages by connection."""
        before = len(self.relay.exchanges)
        subprocess.run([os.path.join(self.peers, "client"), self.reference, "--only", case,
                        "-ORBmaxGIOPVersion", self.version, "-ORBendPoint", "giop:tcp:127.0.0.1:0", *options],
                       timeout=LIMIT * 3, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.05)
        return [m for exchange in self.relay.exchanges[before:] for m in exchange]

    def send(self, octets, answers=1):
        """Sends handwritten octets to the server; returns its messages up to the end of file."""
        with socket.create_connection(self.relay.server) as s:
            s.settimeout(LIMIT)
            s.sendall(octets)
            stream, found = b"", []
            while len(found) < answers:
                piece = s.recv(1 << 16)
                if not piece:
                    break
                messages, stream = split(stream + piece, "server")
                found += messages
        return found


# ---- choosing and writing -------------------------------------------------------------------------------------

def exchange_of(messages, **wanted):
    """The first request with these fields, with its fragments and all its replies."""
    for i, m in enumerate(messages):
        if all(getattr(m, name) == value for name, value in wanted.items()):
            chosen = [m]
            open_request = m.more == "true"
            open_reply = False
            for later in messages[i + 1:]:
                if open_request and later.type == "Fragment" and later.sender == "client":
                    chosen.append(later)
                    open_request = later.more == "true"
                elif later.sender == "server" and (later.id == m.id or open_reply):
                    chosen.append(later)
                    open_reply = later.more == "true"
                    if not open_reply:
                        return chosen
            return chosen
    raise SystemExit(f"no message with {wanted} was recorded")


class Store:
    """The folder of the files, and the origin in their comments: the ORB with its version, and the script."""

    def __init__(self, out, orb, script="peers/omniorb/record.py"):
        self.out, self.orb, self.script, self.kept = out, orb, script, []
        os.makedirs(out, exist_ok=True)

    def keep(self, name, about, messages, how="{} client and server over a relay"):
        path = os.path.join(self.out, name + ".hex")
        with open(path, "w", encoding="ascii") as f:
            f.write(f"# {about}\n# Recorded by {self.script}: {how.format(self.orb)}.\n")
            for m in messages:
                f.write(m.line() + "\n")
                text = m.octets.hex()
                f.writelines(text[i:i + 64] + "\n" for i in range(0, len(text), 64))
        self.kept += [(name, i, m) for i, m in enumerate(messages)]

    def keep_reference(self, name, about, reference, fields):
        with open(os.path.join(self.out, name + ".ior"), "w", encoding="ascii") as f:
            f.write(f"# {about}\n# Recorded by {self.script}: {self.orb} server.\n")
            f.write(f"{fields}\n{reference}\n")


def describe_reference(reference):
    octets = bytes.fromhex(reference[4:])
    reader = Reader(octets, "little" if octets[0] else "big", 1)
    fields = {}
    reference_fields = {}
    reference_reader = reader
    globals()["reference"](reference_reader, reference_fields)
    fields.update(reference_fields)
    for profile in fields["ior_profiles"].split(","):
        tag, data = profile.split(":")
        if tag != "0x0":
            continue
        data = bytes.fromhex(data)
        inner = Reader(data, "little" if data[0] else "big", 1)
        fields["profile_version"] = f"{inner.octet()}.{inner.octet()}"
        fields["host"] = inner.string()
        fields["port"] = inner.ushort()
        fields["key"] = inner.sequence().hex()
        components = []
        if fields["profile_version"] != "1.0":
            for _ in range(inner.ulong()):
                kind = inner.ulong()
                components.append(f"{kind:#x}:{inner.sequence().hex()}")
        fields["components"] = ",".join(components) or "none"
    return " ".join(f"{name}={quote(str(value))}" for name, value in fields.items())


def big_endian_request(key, version, operation, body=b"", request_id=7, response=True):
    """A Request as a big-endian ORB would write it; `body` starts at a multiple of 8 in 1.2, else of 4."""
    def sequence(octets):
        return struct.pack(">I", len(octets)) + octets

    def aligned(octets, size):
        return octets + bytes(-len(octets) % size)

    minor = int(version[2])
    name = operation.encode() + b"\0"
    if minor < 2:
        out = bytes(12) + struct.pack(">II", 0, request_id) + bytes([response])
        out = aligned(out + bytes(3 if minor == 1 else 0), 4)
        out = aligned(out + sequence(key), 4)
        out = aligned(out + sequence(name), 4) + struct.pack(">I", 0)
    else:
        out = bytes(12) + struct.pack(">I", request_id) + bytes([3 if response else 0, 0, 0, 0])
        out = out + struct.pack(">HH", 0, 0) + sequence(key)
        out = aligned(out, 4) + sequence(name)
        out = aligned(out, 4) + struct.pack(">I", 0)
        out = aligned(out, 8) if body else out
    out += body
    return b"GIOP" + bytes([1, minor, 0, 0]) + struct.pack(">I", len(out) - 12) + out[12:]


def record(peers, store):
    for version in ("1.0", "1.1", "1.2"):
        with Session(peers, version) as session:
            record_version(session, version, store)
        with Session(peers, version, "-ORBinConScanPeriod", "1", "-ORBscanGranularity", "1") as session:
            record_closing(session, version, store)
    with Session(peers, "1.2") as session:
        for mode, name in ((1, "profile"), (2, "reference")):
            messages = session.client("hub/nothing", "-ORBgiopTargetAddressMode", str(mode))
            store.keep(f"target-{name}-1.2", f"A target given as a {name} (TargetAddress), and its reply",
                       exchange_of(messages, operation="nothing"))
    with Session(peers, "1.2", "-ORBendPoint", "giop:tcp:127.0.0.1:0", "-ORBendPointPublish", "all(addr)") as session:
        store.keep_reference("alternate-1.2", "A reference with more than one address",
                             session.reference, describe_reference(session.reference))


def record_version(session, version, store):
    def keep(name, about, messages, **how):
        store.keep(f"{name}-{version}", f"{about} (GIOP {version})", messages, **how)

    store.keep_reference(f"hub-{version}", f"The reference of a server for GIOP {version}",
                         session.reference, describe_reference(session.reference))
    messages = session.client("hub/nothing")
    keep("locate", "LocateRequest for an object that is there", exchange_of(messages, type="LocateRequest"))
    keep("nothing", "A call without parameters and results", exchange_of(messages, operation="nothing"))
    keep("is-a", "The implicit operation _is_a of a server's hub, if the client asks, or an attribute",
         exchange_of(session.client("inheritance/widened"), operation="_is_a"))
    keep("attribute", "Reading an attribute of interface type: the result is a reference",
         exchange_of(messages, operation="_get_the_objects"))
    messages = session.client("hub/mixed")
    keep("mixed", "Parameters of all modes, a structure of variable length among them",
         exchange_of(messages, operation="mixed"))
    messages = session.client("errors/user")
    raised = [m for m in messages if m.status == "USER_EXCEPTION"]
    for name, short in (("Empty", "empty"), ("Plain", "plain")):
        reply = next(m for m in raised if m.exception == f"IDL:interop.spandrel/Interop/{name}:1.0")
        keep(f"user-{short}", f"The user exception {name}",
             exchange_of(messages, operation="raise_user", id=reply.id))
    messages = session.client("errors/BAD_PARAM")
    keep("system", "A system exception with minor code and completion status",
         exchange_of(messages, operation="raise_system"))
    messages = session.client("errors/unknown-operation")
    keep("bad-operation", "An operation that the object does not have: BAD_OPERATION",
         exchange_of(messages, operation="text"))
    messages = session.client("objects/forwarded")
    forward = next(m for m in messages if m.status == "LOCATION_FORWARD")
    keep("forward", "LOCATION_FORWARD", exchange_of(messages, operation="_get_id", id=forward.id))
    messages = session.client("objects/dangling")
    unknown = [m for m in messages if m.status == "UNKNOWN_OBJECT"]
    keep("locate-unknown", "LocateRequest for an object that is not there",
         exchange_of(messages, type="LocateRequest", id=unknown[0].id))
    messages = session.client("objects/discard")
    gone = next(m for m in messages if m.exception == "IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0")
    keep("not-exist", "A call to an object that is gone: OBJECT_NOT_EXIST",
         exchange_of(messages, type="Request", id=gone.id))
    messages = session.client("oneways/ping")
    keep("oneway", "A one-way call", exchange_of(messages, operation="ping")[:1])
    if version != "1.0":
        messages = session.client("bulk/octets") if version == "1.2" else session.client("bulk/doubles")
        if version == "1.1":
            structs = session.client("bulk/structs")
            first = next(m for m in structs if m.more == "true" and m.type == "Request")
            keep("fragments-structs", "A request in fragments, the second aligned by its own header",
                 [m for m in exchange_of(structs, type="Request", id=first.id) if m.sender == "client"])
        split_up = min((m for m in messages if m.more == "true" and m.type == "Request"),
                       key=lambda m: sum(len(x.octets) for x in exchange_of(messages, id=m.id, type="Request")))
        keep("fragments-request", "A request in fragments",
             [m for m in exchange_of(messages, type="Request", id=split_up.id) if m.sender == "client"])
        # Replies of 40,000 octets: take the shortest of the fragmented ones.
        replies = []
        for i, m in enumerate(messages):
            if m.type == "Reply" and m.more == "true":
                group = [m]
                for later in messages[i + 1:]:
                    if later.sender == "server" and later.type == "Fragment":
                        group.append(later)
                        if later.more == "false":
                            break
                replies.append(group)
        keep("fragments-reply", "A reply in fragments", min(replies, key=lambda g: sum(len(m.octets) for m in g)))
    for case, operation in (("structs/scalars", "rotate_scalars"), ("structs/grid", "rotate_grid"),
                            ("structs/record", "rotate_record"), ("structs/keywords", "rotate_keywords"),
                            ("primitives/longdouble", "rotate_longdouble"), ("arrays/cube", "rotate_cube"),
                            ("sequences/stringseqs", "rotate_stringseqs"), ("sequences/pointseq", "rotate_pointseq"),
                            ("objects/pass-link", "pass_link")):
        messages = [m for m in session.client(case)]
        requests = [m for m in messages if m.operation == operation]
        if version == "1.2" or operation == "rotate_scalars":
            chosen = requests[2] if len(requests) > 2 else requests[0]
            keep(operation.replace("_", "-"), f"{operation} with the counting values of seed 2"
                 if len(requests) > 2 else f"{operation}", exchange_of(messages, operation=operation, id=chosen.id))
    record_foreign(session, version, keep)


def record_foreign(session, version, keep):
    """Messages that omniORB does not send by itself here; its replies show that it accepts them."""
    octets = bytes.fromhex(session.reference[4:])
    reader = Reader(octets, "little" if octets[0] else "big", 1)
    fields = {}
    reference(reader, fields)
    profile = bytes.fromhex(fields["ior_profiles"].split(",")[0].split(":")[1])
    inner = Reader(profile, "little", 3)
    inner.string()
    inner.ushort()
    key = inner.sequence()
    how = "written by the script, answered by an {} server"

    def ask(octets, expected, answers=1):
        found = session.send(octets, answers)
        if [m.type for m in found] != expected:
            raise SystemExit(f"the server answered {[m.line() for m in found]} instead of {expected}")
        return split(octets, "client")[0] + found

    keep("big-nothing", "A big-endian request, answered in the server's order",
         ask(big_endian_request(key, version, "nothing"), ["Reply"]), how=how)
    body = struct.pack(">ii", 6, 7)
    messages = ask(big_endian_request(key, version, "type", body), ["Reply"])
    answer = messages[1]
    if answer.status != "NO_EXCEPTION" or struct.unpack_from("<ii", answer.octets, answer.body) != (42, -1):
        raise SystemExit(f"the server misunderstood: {answer.line()}")
    keep("big-type", "A big-endian request with two longs, 6 and 7; the reply holds 42 and -1", messages, how=how)
    minor = int(version[2])
    if minor == 2:
        locate = struct.pack(">IHHI", 9, 0, 0, len(key)) + key
    else:
        locate = struct.pack(">II", 9, len(key)) + key
    header = b"GIOP" + bytes([1, minor, 0, 3]) + struct.pack(">I", len(locate))
    keep("big-locate", "A big-endian LocateRequest", ask(header + locate, ["LocateReply"]), how=how)
    cancel = b"GIOP" + bytes([1, minor, 0, 2]) + struct.pack(">II", 4, 7)
    if minor == 2:
        messages = ask(big_endian_request(key, version, "nothing") + cancel +
                       big_endian_request(key, version, "nothing", request_id=8), ["Reply", "Reply"], 2)
        keep("cancel", "A request, a CancelRequest for it that comes late and is ignored, another request; two "
             "replies", messages, how=how)
    else:
        # An omniORB 4.2.5 server that gets one in GIOP 1.0 or 1.1 reads it in an endless loop.
        keep("cancel", "A CancelRequest", split(cancel, "client")[0], how="written by the script")
    nonsense = b"GIOP" + bytes([1, minor, 1, 99]) + struct.pack("<I", 0)
    answer = session.send(nonsense)
    if answer:  # omniORB 4.2.5 closes without a reply in 1.1
        keep("message-error", "A message of unknown type, and the MessageError it gets",
             split(nonsense, "client")[0] + answer, how=how)
    future = b"GIOP" + bytes([1, 9, 1, 0]) + struct.pack("<I", 0)
    answer = session.send(future)
    if answer:
        keep("future-version", "What a server answers to GIOP 1.9", answer, how=how)


def record_closing(session, version, store):
    messages = session.client("errors/timeout")  # the messages of a client whose call times out
    cancels = [m for m in messages if m.type == "CancelRequest"]
    if cancels:
        store.keep(f"client-cancel-{version}", f"CancelRequest of a client whose time is up (GIOP {version})", cancels)
    with socket.create_connection(("127.0.0.1", session.relay.port)) as s:
        s.settimeout(LIMIT)
        s.sendall(b"GIOP" + bytes([1, int(version[2]), 1, 3]) + struct.pack(
            "<I", 12 if version == "1.2" else 8) + (struct.pack("<IHHI", 1, 0, 0, 0) if version == "1.2"
                                                    else struct.pack("<II", 1, 0)))
        stream = b""
        while True:  # the LocateReply, then, once the connection has been idle, CloseConnection
            try:
                piece = s.recv(1 << 16)
            except TimeoutError:
                raise SystemExit("the server did not close an idle connection")
            stream += piece
            messages, _ = split(stream, "server")
            closing = [m for m in messages if m.type == "CloseConnection"]
            if closing:
                store.keep(f"close-{version}", f"CloseConnection of a server on an idle connection (GIOP {version})",
                           closing)
                return
            if not piece:
                raise SystemExit("the server closed an idle connection without CloseConnection")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.join(here, "..", "..")
    parser.add_argument("--peers", default=os.path.join(root, "target/interop/omniorb"))
    parser.add_argument("--out", default=os.path.join(root, "orb/giop/tests/golden"))
    options = parser.parse_args()
    omniorb = subprocess.run(["pkg-config", "--modversion", "omniORB4"], capture_output=True, text=True)
    store = Store(options.out, "omniORB " + (re.sub(r"\s", "", omniorb.stdout) or "4.2"))
    record(options.peers, store)
    print(f"{len(store.kept)} messages in {options.out}")
    compare(store.kept)


if __name__ == "__main__":
    main()
