#!/usr/bin/env python3
"""Are the link totals of trace files the sums over their operations? Reads the files byte by byte, as
described in docs/FORMATS.md; the operations come from `ringside export`.

usage: links.py DIRECTORY TABLE.csv
"""
import csv
import pathlib
import struct
import sys

HEADER_BYTES, PROCESS, LINKS = 40, 1, 9
STATES = ("gpu", "peer", "net"), ("net", "flush", "gpu")


def links_of(path):
    """Its rank, and sums over all peers by direction: steps, bytes and waits of the newest block."""
    data, at, rank, sums = path.read_bytes(), HEADER_BYTES, None, None
    while at + 24 <= len(data):
        _, kind, _, size, records, _ = struct.unpack_from("<IHHIIQ", data, at)
        payload = data[at + 24:at + 24 + size]
        at += 24 + size
        if kind == PROCESS:
            lines = dict(line.split("=", 1) for line in payload.decode().splitlines())
            rank = int(lines["rank"])
        if kind != LINKS:
            continue
        sums = [[0] * 5, [0] * 5]
        for i in range(records):
            key, _, *values, _ = struct.unpack_from("<8Q", payload, 64 * i)
            if key > 1:
                direction = sums[key >> 32 & 1]
                direction[:] = [a + b for a, b in zip(direction, values)]
    return rank, sums


def moved(table):
    """The same by rank, from operations."""
    found = {}
    for row in csv.DictReader(table):
        sums = found.setdefault(int(row["rank"]), [[0] * 5, [0] * 5])
        for direction, name in enumerate(("send", "recv")):
            names = ["%s_steps" % name, "%s_bytes" % name]
            names += ["wait_%s_%s_ns" % (name, state) for state in STATES[direction]]
            for i, column in enumerate(names):
                sums[direction][i] += int(row[column] or 0)
    return found


def main():
    with open(sys.argv[2], encoding="utf-8") as table:
        wanted = moved(table)
    files = sorted(pathlib.Path(sys.argv[1]).rglob("*.ringside"))
    wrong = 0
    for path in files:
        rank, sums = links_of(path)
        if sums is None or sums != wanted[rank] or sums[0][0] == 0:
            print("%s: links %s, operations %s" % (path.name, sums, wanted.get(rank)))
            wrong += 1
    print("%d files, %s" % (len(files), "all the same" if not wrong else "%d differ" % wrong))
    return wrong > 0


sys.exit(main())
