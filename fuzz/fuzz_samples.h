/*
 * A valid file, changed by the input: a reader gets further with it than with random bytes. The
 * first byte gives the maximum number of changes (bits 2..5), so that most of the file stays valid,
 * and whether the checksums of a trace file are corrected afterwards (bit 0). The rest is a list of
 * changes, ten bytes each: where (2), what (8).
 */
#ifndef FUZZ_SAMPLES_H
#define FUZZ_SAMPLES_H

#include <stdint.h>
#include <string.h>

#include "tests/support/sample_region.h"
#include "tests/support/sample_trace.h"

static inline void fuzz_change(struct sample *sample, const uint8_t *data, size_t size)
{
	unsigned int changes = size > 0 ? 1 + (data[0] >> 2 & 15) : 0;
	uint16_t where;

	for (data += changes > 0; changes > 0 && size > 10; data += 10, size -= 10, changes--) {
		memcpy(&where, data, sizeof(where));
		if (sample->size >= 8)
			memcpy(sample->bytes + where % (sample->size - 7), data + 2, 8);
	}
}

/* As far as one block follows the other. */
static inline void fuzz_set_checksums(struct sample *sample)
{
	struct trace_header *header = (void *)sample->bytes;
	struct trace_block block;
	size_t at = sizeof(*header);

	header->checksum = hash_bytes(header, 32);
	while (sample->size - at >= sizeof(block)) {
		memcpy(&block, sample->bytes + at, sizeof(block));
		if (block.payload_bytes > sample->size - at - sizeof(block))
			return;
		block.checksum = trace_block_checksum(&block, sample->bytes + at + sizeof(block));
		memcpy(sample->bytes + at, &block, sizeof(block));
		at += sizeof(block) + block.payload_bytes;
	}
}

static inline struct sample fuzz_trace_sample(const uint8_t *data, size_t size)
{
	struct sample sample = sample_trace();

	fuzz_change(&sample, data, size);
	if (size > 0 && data[0] & 1)
		fuzz_set_checksums(&sample);
	return sample;
}

static inline struct sample fuzz_region_sample(const uint8_t *data, size_t size)
{
	struct sample sample = sample_region();

	fuzz_change(&sample, data, size);
	return sample;
}

#endif
