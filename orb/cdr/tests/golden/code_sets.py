#!/usr/bin/env python3
"""What Python's codecs make of the characters of Unicode's first plane, as code_sets.txt has it.

One line per code set: its number in the OSF registry, Python's name, how many characters beyond ASCII it has, a hash (FNV-1a, 64 bits) of
them all with their octets, and those characters that ../code_sets.rs is to pass over, because vendors differ on them.
What Python has and we refuse to write is left out here, see `has`.
"""

TWINS = [0x2225, 0xFF0D, 0xFF5E, 0xFFE0, 0xFFE1, 0xFFE2]  # U+2016, U+2212 and so on to JIS
NOT_JIS = [0xA5, 0x203E]  # single octets of JIS X 0201, which are a backslash and a tilde to everybody else
# Symbols that vendors read differently, and one character that browsers write where ETEN has it.
BIG5_SYMBOLS = [0x4EDD, 0xA2, 0xA3, 0xA5, 0x2022, 0x203E, 0x223C, 0x2550, 0x255E, 0x2561, 0x256A, 0x2593, 0x2609, 0x2641, 0xFF64]
GB18030_SINCE_2005 = [0x1E3F, *range(0x9FB4, 0x9FBC), *range(0xFE10, 0xFE1A), 0x20087, 0xE5E5, 0xE7C7]
GB18030_SINCE_2005 += [*range(0xE78D, 0xE797), 0xE81E, 0xE826, 0xE82B, 0xE82C, 0xE832, 0xE843, 0xE854, 0xE864]

SETS = {
    **{0x10000 + n: (f"iso8859_{n}", []) for n in range(1, 17) if n != 12},
    **{0x10020000 + n: (f"cp{n}", []) for n in [437, 850, 852, 855, 857, 866, *range(1250, 1259)]},
    0x1002036E: ("koi8_r", []),
    0x10020490: ("koi8_u", []),
    0x000B0001: ("tis_620", []),
    0x00030010: ("euc_jp", TWINS),
    0x0004000A: ("euc_kr", []),
    0x05020002: ("shift_jis", TWINS),
    0x100203AF: ("cp932", [0xA2, 0xA3, 0xAC, 0x2016, 0x2212, 0x301C]),
    0x100203B6: ("cp950", [0x20AC]),
    0x10020567: ("gb2312", [0xB7, 0x2014, 0x2015, 0x30FB]),
    0x1002056A: ("gbk", [0x20AC]),
    0x10020570: ("gb18030", GB18030_SINCE_2005),
}


# IBM's characters stand twice: Python writes them where NEC had put them, others where IBM has.
IBM = {}
for row in range(0xFA, 0xFD):
    for column in range(0x40, 0xFD):
        try:
            IBM[bytes([row, column]).decode("cp932")] = bytes([row, column])
        except UnicodeDecodeError:
            pass


def has(codec, value, octets):
    if codec in ("euc_jp", "shift_jis"):
        return value not in NOT_JIS
    if codec == "euc_kr":  # Python writes other syllables as their parts, each of two octets
        return len(octets) == 2
    if codec == "tis_620":  # Python has the control characters, too
        return octets[0] > 0xA0
    if codec == "cp932":  # without what has no characters of its own
        return octets[0] not in (0x80, 0xA0, 0xFD, 0xFE, 0xFF) and not 0xE000 <= value < 0xF900
    if codec == "cp950":
        row = octets[0]
        added = 0xC6A1 <= int.from_bytes(octets) <= 0xC8FE or int.from_bytes(octets) >= 0xF9D6 or row < 0xA1
        return not added and not 0xE000 <= value < 0xF900 and value not in BIG5_SYMBOLS
    return True


def main():
    for number, (codec, passed_over) in sorted(SETS.items()):
        count, state = 0, 0xCBF29CE484222325
        for value in range(0x80, 0x10000):
            if 0xD800 <= value < 0xE000 or value in passed_over:
                continue
            try:
                octets = chr(value).encode(codec)
            except UnicodeEncodeError:
                continue
            if codec == "cp932" and octets[0] in (0xED, 0xEE):
                octets = IBM[chr(value)]
            if not has(codec, value, octets):
                continue
            count += 1
            for octet in value.to_bytes(4) + octets:
                state = (state ^ octet) * 0x100000001B3 % 2**64
        print(f"{number:08x} {codec} {count} {state:016x}", *(f"{value:x}" for value in passed_over))


if __name__ == "__main__":
    main()
