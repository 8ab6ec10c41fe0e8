"""Writes regions that no recorder wrote: full tables of a process that nobody can check.

	forge_regions.py TEMPLATE DIRECTORY COUNT [comms=N] [live=N] [proxies=N] [totals=N] [links=N]

TEMPLATE is a region with at least one communicator. Each copy has its own pid in a namespace that does not exist, so
nobody can tell whether its process runs; it has N used slots of each table.
"""
import os
import re
import struct
import sys

PARTS = {'info': 0, 'names': 1, 'comms': 2, 'live': 3, 'proxies': 4, 'peers': 5, 'totals': 6, 'ring': 7, 'details': 8, 'links': 9}
USED, RUNNING, FOREIGN, INFO_BYTES = 1 << 32, 3, 2, 8192


def part(data, name):
	return struct.unpack_from('<QII', data, 32 + 16 * PARTS[name])


def slots(data, name):
	offset, count, stride = part(data, name)
	return [bytearray(data[offset + i * stride:offset + (i + 1) * stride]) for i in range(count)]


def comm_slot(pattern, i):
	slot = bytearray(pattern)
	struct.pack_into('<Q', slot, 0, USED)
	struct.pack_into('<I', slot, 64, i + 1)  # id
	struct.pack_into('<Q', slot, 72, 0xabc0000 + i)  # hash
	struct.pack_into('<I', slot, 92, 0)  # flags
	struct.pack_into('<Q', slot, 104, 0)  # when it was finalized
	slot[136:136 + 96] = (b'forged %d' % i).ljust(96, b'\0')
	return slot


def live_slot(comms, i):
	slot = bytearray(384)
	struct.pack_into('<Q', slot, 0, USED | 1)
	struct.pack_into('<QQ', slot, 128 + 8, 1 + i % comms, 10 + i)  # communicator, number
	struct.pack_into('<B', slot, 128 + 92, RUNNING)
	return slot


def proxy_slot(comms, i):
	slot = bytearray(448)
	struct.pack_into('<QQIiiBB', slot, 0, USED, 0, 1 + i % comms, i, 0, i % 64, FOREIGN)
	return slot


def total_slot(comms, i):
	kind = i // comms
	key = (1 + i % comms) << 40 | kind % 5 << 32 | kind // 5 % 9 << 24 | 20 + kind // 45 % 20
	return struct.pack('<8Q', key, 100, 1 << 30, 100, 1 << 30, 1 << 25, 1, 1) + bytes(64) + struct.pack('<256Q', *[1] * 256)


def link_slot(comms, i):
	return struct.pack('<8Q', (1 + i % comms) << 34 | i + 1, 1, 1, 1, 1, 1, 1, 0)


def tables_of(template, counts):
	"""The header, and all tables but the info text, which is the first."""
	comms = counts['comms']
	made = {'names': slots(template, 'names'),
		'comms': [comm_slot(slots(template, 'comms')[0], i) for i in range(comms)],
		'live': [live_slot(comms, i) for i in range(counts['live'])],
		'proxies': [proxy_slot(comms, i) for i in range(counts['proxies'])],
		'totals': [bytes(2176)] + [total_slot(comms, i) for i in range(counts['totals'] - 1)],
		'links': [bytes(64)] + [link_slot(comms, i) for i in range(counts['links'] - 1)]}
	header, tables = bytearray(template[:4096]), bytearray()
	struct.pack_into('<QII', header, 32, 4096, 1, INFO_BYTES)
	for name, index in list(PARTS.items())[1:]:
		table = made.get(name, [])
		struct.pack_into('<QII', header, 32 + 16 * index, 4096 + INFO_BYTES + len(tables), len(table), len(table[0]) if table else 0)
		tables += b''.join(table)
		tables += bytes(-len(tables) % 64)
	struct.pack_into('<Q', header, 24, 4096 + INFO_BYTES + len(tables))
	struct.pack_into('<Q', header, 464, 0)  # when it ended
	struct.pack_into('<QQQ', header, 896, comms, counts['live'], counts['proxies'])  # used
	return header, tables


def main():
	template, directory, count = open(sys.argv[1], 'rb').read(), sys.argv[2], int(sys.argv[3])
	counts = {'comms': 500, 'live': 4000, 'proxies': 0, 'totals': 1024, 'links': 1}
	counts.update((key, int(value)) for key, value in (pair.split('=') for pair in sys.argv[4:]))
	header, tables = tables_of(template, counts)
	offset, = struct.unpack_from('<Q', template, 32)
	length, = struct.unpack_from('<Q', template, 368)
	for i in range(count):
		pid, info = 100000 + i, template[offset:offset + length]
		for key, value in ((b'pid', pid), (b'pid_namespace', 17), (b'rank', i)):
			info = re.sub(rb'(?m)^%s=[^\n]*' % key, b'%s=%d' % (key, value), info)
		info = re.sub(rb'(?m)^job=[^\n]*', b'job=forged', info)
		struct.pack_into('<QQ', header, 288, pid, 17)
		struct.pack_into('<Q', header, 368, len(info))
		with open(os.path.join(directory, '%d-1.region' % pid), 'wb') as out:
			out.write(header + info.ljust(INFO_BYTES, b'\0') + tables)


main()
