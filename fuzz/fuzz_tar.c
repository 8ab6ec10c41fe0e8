/* The tar reader: the input as an archive, and an archive of ours with bytes of the input in it. */
#include <stdlib.h>
#include <string.h>

#include "format/tar.h"
#include "fuzz/fuzz_main.h"

static void read_archive(const unsigned char *bytes, size_t length)
{
	struct tar_reader reader;
	struct tar_entry entry;
	size_t end = 0;

	tar_is(bytes, length);
	tar_reader_init(&reader, bytes, length);
	while (tar_next(&reader, &entry) == OK) {
		size_t name = strnlen(entry.name, sizeof(entry.name));

		/* Entries follow each other and are inside the archive. */
		if (entry.offset < end || entry.offset > length ||
		    entry.length > length - entry.offset || entry.bytes != bytes + entry.offset)
			abort();
		end = entry.offset + entry.length;
		if (name == 0 || name == sizeof(entry.name) || entry.name[0] == '/' ||
		    strstr(entry.name, "../") != NULL)
			abort();
	}
}

/* A header with a valid checksum, whatever the input puts into its fields. */
static void correct_sum(unsigned char block[TAR_BLOCK])
{
	unsigned int sum = 0;

	memset(block + 148, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += block[i];
	for (size_t i = 6; i-- > 0; sum >>= 3)
		block[148 + i] = (unsigned char)('0' + (sum & 7));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char archive[8 * TAR_BLOCK] = { 0 };
	size_t at = 0;

	read_archive(data, size);
	for (size_t i = 0; i < 4 && tar_header(archive + at, "a/b", 1, 1) == OK; i++) {
		/* Where in the block, and what to put there. */
		for (int n = 0; n < 24 && size >= 3; n++, data += 3, size -= 3)
			archive[at + (data[0] | (data[1] & 1) << 8)] = data[2];
		correct_sum(archive + at);
		at += 2 * TAR_BLOCK;
	}
	read_archive(archive, sizeof(archive));
	return 0;
}
