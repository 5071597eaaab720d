"""Parses GIOP messages: an implementation of the standard that is independent of the Rust crates and of omniORB."""

import struct

TYPES = ["Request", "Reply", "CancelRequest", "LocateRequest", "LocateReply", "CloseConnection", "MessageError",
         "Fragment"]
REPLY_STATUS = ["NO_EXCEPTION", "USER_EXCEPTION", "SYSTEM_EXCEPTION", "LOCATION_FORWARD", "LOCATION_FORWARD_PERM",
                "NEEDS_ADDRESSING_MODE"]
LOCATE_STATUS = ["UNKNOWN_OBJECT", "OBJECT_HERE", "OBJECT_FORWARD", "OBJECT_FORWARD_PERM",
                 "LOC_SYSTEM_EXCEPTION", "LOC_NEEDS_ADDRESSING_MODE"]


class Reader:
    """The part of CDR that GIOP headers need (CORBA 3.3 Part 2, 9.3)."""

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
    """The fields of one message; `body` is the offset of the parameters."""
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
    """The whole messages in a stream, and the rest."""
    found = []
    while len(octets) >= 12 and octets[:4] == b"GIOP":
        size, = struct.unpack("<I" if octets[6] & 1 else ">I", octets[8:12])
        if len(octets) < 12 + size:
            break
        found.append(Message(octets[:12 + size], sender))
        octets = octets[12 + size:]
    return found, octets
