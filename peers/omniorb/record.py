#!/usr/bin/env python3
"""Records the golden GIOP messages of orb/giop/tests/golden from omniORB client and server exchanges.

    peers/omniorb/record.py --peers target/interop/omniorb [--out orb/giop/tests/golden]

A relay between the two keeps every octet; the server publishes the relay's address in its references. Each message
is taken apart here, by code of its own, and, where tshark is installed, compared with what its GIOP dissector reads.
Some messages are written by this script because omniORB on this machine would not send them (big-endian ones,
nonsense); then omniORB's answer shows that it understood, and the file says so.

File format: `#` comments; then per message one line of `name=value` words (its expected fields) and lines of hex.
tests/interop/README.md lists the fields.
"""

import argparse
import os
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

TYPES = ["Request", "Reply", "CancelRequest", "LocateRequest", "LocateReply", "CloseConnection", "MessageError",
         "Fragment"]
REPLY_STATUS = ["NO_EXCEPTION", "USER_EXCEPTION", "SYSTEM_EXCEPTION", "LOCATION_FORWARD", "LOCATION_FORWARD_PERM",
                "NEEDS_ADDRESSING_MODE"]
LOCATE_STATUS = ["UNKNOWN_OBJECT", "OBJECT_HERE", "OBJECT_FORWARD", "OBJECT_FORWARD_PERM",
                 "LOC_SYSTEM_EXCEPTION", "LOC_NEEDS_ADDRESSING_MODE"]
LIMIT = 20  # seconds that any single step may take


# ---- taking messages apart ------------------------------------------------------------------------------------

class Reader:
    """CDR as far as GIOP headers need it (CORBA 3.3 Part 2, 9.3)."""

    def __init__(self, octets, order, at=0):
        self.octets, self.at = octets, at
        self.sign = "<" if order == "little" else ">"

    def number(self, letter, size):
        self.at += -self.at % size
        value, = struct.unpack_from(self.sign + letter, self.octets, self.at)
        self.at += size
        return value

    def octet(self):
        return self.number("B", 1)

    def ushort(self):
        return self.number("H", 2)

    def ulong(self):
        return self.number("I", 4)

    def take(self, n):
        if self.at + n > len(self.octets):
            raise ValueError("past the end")
        self.at += n
        return self.octets[self.at - n:self.at]

    def sequence(self):
        return self.take(self.ulong())

    def string(self):
        return self.sequence()[:-1].decode("latin-1")


def contexts(reader):
    found = []
    for _ in range(reader.ulong()):
        kind = reader.ulong()
        found.append(f"{kind:#x}:{reader.sequence().hex()}")
    return ",".join(found) or "none"


def target(reader, version, fields):
    if version < (1, 2):
        fields["key"] = reader.sequence().hex()
        return
    disposition = reader.ushort()
    fields["target"] = ["key", "profile", "reference"][disposition]
    if disposition == 0:
        fields["key"] = reader.sequence().hex()
    elif disposition == 1:
        fields["profile_tag"] = reader.ulong()
        fields["profile"] = reader.sequence().hex()
    else:
        fields["profile_index"] = reader.ulong()
        reference(reader, fields)


def reference(reader, fields):
    fields["ior_type"] = reader.string()
    profiles = []
    for _ in range(reader.ulong()):
        tag = reader.ulong()
        profiles.append(f"{tag:#x}:{reader.sequence().hex()}")
    fields["ior_profiles"] = ",".join(profiles) or "none"


def system_exception(reader, fields):
    fields["exception"] = reader.string()
    fields["minor"] = f"{reader.ulong():#x}"
    fields["completed"] = ["YES", "NO", "MAYBE"][reader.ulong()]


def dissect(octets):
    """The fields of one message, `body` being where what the IDL declares begins."""
    version = (octets[4], octets[5])
    order = "little" if octets[6] & 1 else "big"
    kind = TYPES[octets[7]] if octets[7] < len(TYPES) else str(octets[7])
    fields = {"type": kind, "version": f"{version[0]}.{version[1]}", "order": order}
    if version >= (1, 1):
        fields["more"] = "true" if octets[6] & 2 else "false"
    reader = Reader(octets, order, 8)
    fields["size"] = reader.ulong()
    fields["octets"] = len(octets)
    if kind in ("Request", "LocateRequest", "Reply", "LocateReply", "CancelRequest"):
        if kind in ("Request", "Reply") and version < (1, 2):
            fields["contexts"] = contexts(reader)
        fields["id"] = reader.ulong()
    if kind == "Fragment" and version >= (1, 2):
        fields["id"] = reader.ulong()
    if kind == "Request":
        if version < (1, 2):
            fields["response"] = "true" if reader.octet() else "false"
            if version == (1, 1):
                reader.take(3)
        else:
            flags = reader.octet()
            fields["flags"] = f"{flags:#x}"
            fields["response"] = "true" if flags & 1 else "false"
            reader.take(3)
        target(reader, version, fields)
        fields["operation"] = reader.string()
        if version < (1, 2):
            fields["principal"] = reader.sequence().hex() or "none"
        else:
            fields["contexts"] = contexts(reader)
    elif kind == "LocateRequest":
        target(reader, version, fields)
    elif kind == "Reply":
        status = REPLY_STATUS[reader.ulong()]
        fields["status"] = status
        if version >= (1, 2):
            fields["contexts"] = contexts(reader)
        if version >= (1, 2) and reader.at < len(octets):
            reader.at += -reader.at % 8
        fields["body"] = reader.at
        if status == "USER_EXCEPTION":
            fields["exception"] = reader.string()
        elif status == "SYSTEM_EXCEPTION":
            system_exception(reader, fields)
        elif status.startswith("LOCATION_FORWARD"):
            reference(reader, fields)
    elif kind == "LocateReply":
        status = LOCATE_STATUS[reader.ulong()]
        fields["status"] = status
        if "FORWARD" in status:
            reference(reader, fields)
        elif status == "LOC_SYSTEM_EXCEPTION":
            system_exception(reader, fields)
    if kind == "Request":
        if version >= (1, 2) and reader.at < len(octets):
            reader.at += -reader.at % 8
        fields["body"] = reader.at
    return fields


class Message:
    def __init__(self, octets, sender):
        self.octets, self.sender = octets, sender
        self.fields = dissect(octets)

    def __getattr__(self, name):
        return self.fields.get(name)

    def line(self):
        words = {"from": self.sender, **self.fields}
        return " ".join(f"{name}={quote(str(value))}" for name, value in words.items())


def quote(text):
    return "".join(c if c.isascii() and c.isprintable() and c not in " %\"" else f"%{ord(c):02x}" for c in text)


def split(octets, sender):
    """The whole messages in a stream, and what remains."""
    found = []
    while len(octets) >= 12 and octets[:4] == b"GIOP":
        size, = struct.unpack("<I" if octets[6] & 1 else ">I", octets[8:12])
        if len(octets) < 12 + size:
            break
        found.append(Message(octets[:12 + size], sender))
        octets = octets[12 + size:]
    return found, octets


# ---- the relay ------------------------------------------------------------------------------------------------

class Relay:
    """Passes octets between clients and one server; `exchanges` holds the messages of each connection in order."""

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
        """Runs one case of the client; all messages of it, connection by connection."""
        before = len(self.relay.exchanges)
        subprocess.run([os.path.join(self.peers, "client"), self.reference, "--only", case,
                        "-ORBmaxGIOPVersion", self.version, "-ORBendPoint", "giop:tcp:127.0.0.1:0", *options],
                       timeout=LIMIT * 3, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.05)
        return [m for exchange in self.relay.exchanges[before:] for m in exchange]

    def send(self, octets, answers=1):
        """Sends octets of our own to the server; the messages it answers before the end of file."""
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
    """The first request with these fields, with its fragments and everything that answers it."""
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
    def __init__(self, out, omniorb):
        self.out, self.omniorb, self.kept = out, omniorb, []
        os.makedirs(out, exist_ok=True)

    def keep(self, name, about, messages, how="omniORB {} client and server over a relay"):
        path = os.path.join(self.out, name + ".hex")
        with open(path, "w", encoding="ascii") as f:
            f.write(f"# {about}\n# Recorded by peers/omniorb/record.py: {how.format(self.omniorb)}.\n")
            for m in messages:
                f.write(m.line() + "\n")
                text = m.octets.hex()
                f.writelines(text[i:i + 64] + "\n" for i in range(0, len(text), 64))
        self.kept += [(name, i, m) for i, m in enumerate(messages)]

    def keep_reference(self, name, about, reference, fields):
        with open(os.path.join(self.out, name + ".ior"), "w", encoding="ascii") as f:
            f.write(f"# {about}\n# Recorded by peers/omniorb/record.py: omniORB {self.omniorb} server.\n")
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
        split_up = min((m for m in messages if m.more == "true" and m.type == "Request"),
                       key=lambda m: sum(len(x.octets) for x in exchange_of(messages, id=m.id, type="Request")))
        keep("fragments-request", "A request in fragments",
             [m for m in exchange_of(messages, type="Request", id=split_up.id) if m.sender == "client"])
        # 40,000 octets of answer: take the shortest of those replies that were split.
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
    """Messages that omniORB does not send by itself here: its answers show that it takes them."""
    octets = bytes.fromhex(session.reference[4:])
    reader = Reader(octets, "little" if octets[0] else "big", 1)
    fields = {}
    reference(reader, fields)
    profile = bytes.fromhex(fields["ior_profiles"].split(",")[0].split(":")[1])
    inner = Reader(profile, "little", 3)
    inner.string()
    inner.ushort()
    key = inner.sequence()
    how = "written by the script, answered by an omniORB {} server"

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
        # An omniORB 4.2.5 server that gets one in GIOP 1.0 or 1.1 reads it again and again, for ever.
        keep("cancel", "A CancelRequest", split(cancel, "client")[0], how="written by the script")
    nonsense = b"GIOP" + bytes([1, minor, 1, 99]) + struct.pack("<I", 0)
    answer = session.send(nonsense)
    if answer:  # omniORB 4.2.5 closes without a word in 1.1
        keep("message-error", "A message of unknown type, and the MessageError it gets",
             split(nonsense, "client")[0] + answer, how=how)
    future = b"GIOP" + bytes([1, 9, 1, 0]) + struct.pack("<I", 0)
    answer = session.send(future)
    if answer:
        keep("future-version", "What a server answers to GIOP 1.9", answer, how=how)


def record_closing(session, version, store):
    messages = session.client("errors/timeout")  # a client that gives up: what it sends then
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


# ---- a second opinion -----------------------------------------------------------------------------------------

def compare_with_tshark(store):
    """Asks tshark's GIOP dissector about each message and compares type, sizes, ids, operations and statuses."""
    if not shutil.which("tshark"):
        print("tshark is not installed: its opinion is missing", file=sys.stderr)
        return
    names = ["giop.type", "giop.len", "giop.request_id", "giop.request_op", "giop.replystatus",
             "giop.locale_status", "giop.exceptionid", "giop.minor_code_value", "giop.completion_status",
             "_ws.malformed"]
    asked = [(n, i, m) for n, i, m in store.kept if m.octets[5] <= 2 and m.octets[7] <= 7]
    with tempfile.TemporaryDirectory() as folder:
        hexes, pcap = os.path.join(folder, "messages.txt"), os.path.join(folder, "messages.pcap")
        text = []
        for n, (_, _, m) in enumerate(asked):
            # One connection per message, each in pieces that fit a packet.
            for at in range(0, len(m.octets), 1400):
                piece = m.octets[at:at + 1400]
                text.append(packet(piece, 20000 + n, at))
        with open(pcap, "wb") as f:
            f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101))
            for p in text:
                f.write(struct.pack("<IIII", 0, 0, len(p), len(p)) + p)
        command = ["tshark", "-r", pcap, "-d", "tcp.port==3999,giop", "-T", "fields", "-E", "occurrence=f",
                   "-e", "tcp.srcport"]
        for name in names:
            command += ["-e", name]
        out = subprocess.run(command, capture_output=True, text=True, timeout=120)
    seen = {}
    for line in out.stdout.splitlines():
        values = line.split("\t")
        if values[1]:
            seen[int(values[0]) - 20000] = dict(zip(names, values[1:]))
    if not seen:
        raise SystemExit(f"tshark said nothing: {out.stderr}")
    differences = 0
    for n, (name, i, m) in enumerate(asked):
        opinion = seen.get(n)
        if opinion is None:
            print(f"tshark: {name}[{i}] {m.type}: not dissected as GIOP")
            differences += 1
            continue
        expected = {"giop.type": str(TYPES.index(m.type)), "giop.len": str(m.size)}
        if m.id is not None and m.type != "Fragment":
            expected["giop.request_id"] = str(m.id)
        if m.operation:
            expected["giop.request_op"] = m.operation
        if m.type == "Reply":
            expected["giop.replystatus"] = str(REPLY_STATUS.index(m.status))
        if m.type == "LocateReply":
            expected["giop.locale_status"] = str(LOCATE_STATUS.index(m.status))
        if m.exception:
            expected["giop.exceptionid"] = m.exception
        if opinion["_ws.malformed"]:
            print(f"tshark: {name}[{i}] {m.type}: malformed")
            differences += 1
        for field, value in expected.items():
            got = opinion[field]
            if field == "giop.type" or "status" in field:
                got = str(int(got, 0)) if got else got
            if got != value:
                print(f"tshark: {name}[{i}] {m.type}: {field} is {got!r}, not {value!r}")
                differences += 1
    print(f"tshark read {len(seen)} of {len(asked)} messages; {differences} differences")


def packet(payload, port, sequence):
    """An IPv4 packet with one TCP segment."""
    tcp = struct.pack(">HHIIBBHHH", port, 3999, 1 + sequence, 1, 5 << 4, 0x18, 65535, 0, 0) + payload
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, bytes([127, 0, 0, 1]),
                         bytes([127, 0, 0, 1]))
    return header + tcp


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.join(here, "..", "..")
    parser.add_argument("--peers", default=os.path.join(root, "target/interop/omniorb"))
    parser.add_argument("--out", default=os.path.join(root, "orb/giop/tests/golden"))
    options = parser.parse_args()
    omniorb = subprocess.run(["pkg-config", "--modversion", "omniORB4"], capture_output=True, text=True)
    store = Store(options.out, re.sub(r"\s", "", omniorb.stdout) or "4.2")
    record(options.peers, store)
    print(f"{len(store.kept)} messages in {options.out}")
    compare_with_tshark(store)


if __name__ == "__main__":
    main()
