"""Makes a hostile region out of a genuine one.

    forge.py SOURCE TARGET [CHANGE...]

A change is part:NAME=COUNT*STRIDE (a larger table, all holes), key:NAME=VALUE (a line of the info
text; \\xNN are bytes), word:OFFSET=VALUE (64 bits of the header) or owner=UID. Without part: the file is
complete, with it only header and info text are stored.
"""
import os
import struct
import sys

PARTS = ["info", "names", "comms", "live", "proxies", "peers", "totals", "ring", "details", "links"]
TABLE, TOTAL_AT, INFO_AT, HEADER = 32, 24, 368, 4096


def parts_of(header):
    return [list(struct.unpack_from("<QII", header, TABLE + 16 * i)) for i in range(16)]


def main():
    source, target, *changes = sys.argv[1:]
    data = bytearray(open(source, "rb").read())
    parts = parts_of(data)
    text = bytes(data[parts[0][0]:parts[0][0] + struct.unpack_from("<Q", data, INFO_AT)[0]])
    larger, owner = {}, None
    for change in changes:
        name, value = change.split("=", 1)
        if name == "owner":
            owner = int(value)
        elif name.startswith("part:"):
            larger[PARTS.index(name[5:])] = [int(part) for part in value.split("*")]
        elif name.startswith("word:"):
            struct.pack_into("<Q", data, int(name[5:]), int(value, 0))
        else:
            key = name[4:].encode()
            lines = [line for line in text.split(b"\n") if line and not line.startswith(key + b"=")]
            lines.insert(0, key + b"=" + value.encode("latin1").decode("unicode_escape").encode("latin1"))
            text = b"\n".join(lines) + b"\n"
    if len(text) > parts[0][1] * parts[0][2]:
        sys.exit("the info text does not fit")
    struct.pack_into("<Q", data, INFO_AT, len(text))
    if larger:
        at, header = HEADER, data[:HEADER]
        for i, (_, count, stride) in enumerate(parts):
            count, stride = larger.get(i, (count, stride))
            struct.pack_into("<QII", header, TABLE + 16 * i, at if count else 0, count, stride)
            at += (count * stride + 63) // 64 * 64
        at = (at + 4095) // 4096 * 4096
        struct.pack_into("<Q", header, TOTAL_AT, at)
        with open(target, "wb") as file:
            file.truncate(at)
            file.write(header)
            file.seek(parts_of(header)[0][0])
            file.write(text)
    else:
        data[parts[0][0]:parts[0][0] + len(text)] = text
        with open(target, "wb") as file:
            file.write(data)
    if owner is not None:
        os.chown(target, owner, owner)


main()
