"""An independent check of recorded messages by tshark's GIOP dissector."""

import os
import shutil
import struct
import subprocess
import sys
import tempfile

from giop import LOCATE_STATUS, REPLY_STATUS, TYPES


def compare(kept):
    """Dissects each message with tshark and compares type, sizes, IDs, operations and statuses."""
    if not shutil.which("tshark"):
        print("tshark is not installed: its opinion is missing", file=sys.stderr)
        return
    names = ["giop.type", "giop.len", "giop.request_id", "giop.request_op", "giop.replystatus",
             "giop.locale_status", "giop.exceptionid", "giop.minor_code_value", "giop.completion_status",
             "_ws.malformed"]
    asked = [(n, i, m) for n, i, m in kept if m.octets[5] <= 2 and m.octets[7] <= 7]
    with tempfile.TemporaryDirectory() as folder:
        hexes, pcap = os.path.join(folder, "messages.txt"), os.path.join(folder, "messages.pcap")
        text = []
        for n, (_, _, m) in enumerate(asked):
            # One connection per message, each in segments that fit a packet.
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
