#!/usr/bin/env python3
"""Records golden GIOP messages of a JacORB client and server over a relay, beside those of omniORB (with the relay, the reader and the
file format of peers/omniorb/record.py):

    peers/jacorb/record.py --peers target/interop/jacorb [--out orb/giop/tests/golden]

Files are named `jacorb-…`. JacORB writes big-endian.
"""

import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "omniorb"))

from record import LIMIT, Relay, Store, describe_reference, exchange_of  # noqa: E402
from tshark import compare  # noqa: E402

VERSION = "3.9"


class Session:
    """One JacORB server behind a relay, whose address is in its references."""

    def __init__(self, peers, version):
        self.peers, self.version, self.relay = peers, version, Relay()
        self.server = self.start(["types", "--serve", "--giop", version, "--property",
                                  "jacorb.ior_proxy_host=127.0.0.1", "--property", f"jacorb.ior_proxy_port={self.relay.port}",
                                  "--port-line"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.relay.server = ("127.0.0.1", int(self.server.stdout.readline()))
        self.reference = self.server.stdout.readline().strip()

    def start(self, words, **how):
        classes = os.path.join(self.peers, "classes") + ":" + os.path.join(self.peers, "lib", "*")
        return subprocess.Popen(["java", "-classpath", classes, "peer.Main", *words], **how)

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

    def client(self, case):
        """Runs one case of the client; returns all its messages by connection."""
        before = len(self.relay.exchanges)
        self.start(["types", "--call", self.reference, "--giop", self.version, "--only", case],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait(LIMIT * 3)
        time.sleep(0.05)
        return [m for exchange in self.relay.exchanges[before:] for m in exchange]


def record(peers, store):
    for version in ("1.0", "1.2"):
        with Session(peers, version) as session:
            record_version(session, version, store)


def record_version(session, version, store):
    def keep(name, about, messages):
        store.keep(f"jacorb-{name}-{version}", f"{about} (GIOP {version})", messages)

    store.keep_reference(f"jacorb-hub-{version}", f"The reference of a server for GIOP {version}",
                         session.reference, describe_reference(session.reference))
    messages = session.client("hub/nothing")
    keep("nothing", "A call without parameters and results", exchange_of(messages, operation="nothing"))
    keep("attribute", "Reading an attribute of interface type: the result is a reference",
         exchange_of(messages, operation="_get_the_objects"))
    keep("is-a", "The implicit operation _is_a", exchange_of(session.client("inheritance/widened"), operation="_is_a"))
    keep("mixed", "Parameters of all modes, a structure of variable length among them",
         exchange_of(session.client("hub/mixed"), operation="mixed"))
    messages = session.client("errors/user")
    for name, short in (("Empty", "empty"), ("Plain", "plain")):
        reply = next(m for m in messages if m.status == "USER_EXCEPTION"
                     and m.exception == f"IDL:interop.spandrel/Interop/{name}:1.0")
        keep(f"user-{short}", f"The user exception {name}", exchange_of(messages, operation="raise_user", id=reply.id))
    keep("system", "A system exception with minor code and completion status",
         exchange_of(session.client("errors/BAD_PARAM"), operation="raise_system"))
    keep("bad-operation", "An operation that the object does not have: BAD_OPERATION",
         exchange_of(session.client("errors/unknown-operation"), operation="text"))
    messages = session.client("objects/forwarded")
    forward = next(m for m in messages if m.status == "LOCATION_FORWARD")
    keep("forward", "LOCATION_FORWARD", exchange_of(messages, operation="_get_id", id=forward.id))
    messages = session.client("objects/discard")
    gone = next(m for m in messages if m.exception == "IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0")
    keep("not-exist", "A call to an object that is gone: OBJECT_NOT_EXIST",
         exchange_of(messages, type="Request", id=gone.id))
    keep("oneway", "A one-way call", exchange_of(session.client("oneways/ping"), operation="ping")[:1])
    for case, operation in (("structs/scalars", "rotate_scalars"), ("structs/grid", "rotate_grid"),
                            ("structs/record", "rotate_record"), ("arrays/cube", "rotate_cube"),
                            ("sequences/stringseqs", "rotate_stringseqs"), ("objects/pass-link", "pass_link")):
        messages = session.client(case)
        requests = [m for m in messages if m.operation == operation]
        chosen = requests[2] if len(requests) > 2 else requests[0]
        keep(operation.replace("_", "-"), f"{operation} with the counting values of seed 2"
             if len(requests) > 2 else f"{operation}", exchange_of(messages, operation=operation, id=chosen.id))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = os.path.join(HERE, "..", "..")
    parser.add_argument("--peers", default=os.path.join(root, "target/interop/jacorb"))
    parser.add_argument("--out", default=os.path.join(root, "orb/giop/tests/golden"))
    options = parser.parse_args()
    store = Store(options.out, f"JacORB {VERSION}", "peers/jacorb/record.py")
    record(options.peers, store)
    print(f"{len(store.kept)} messages in {options.out}")
    compare(store.kept)


if __name__ == "__main__":
    main()
