/*
 * A good file, changed by the input: what a reader does with it reaches further than with bytes at
 * random. The input is a list of changes, ten bytes each: where (2), what (8). Trace files get their
 * checksums set right again afterwards, when the first byte is odd.
 */
#ifndef FUZZ_SAMPLES_H
#define FUZZ_SAMPLES_H

#include <stdint.h>
#include <string.h>

#include "tests/sample_region.h"
#include "tests/sample_trace.h"

static inline void fuzz_change(struct sample *sample, const uint8_t *data, size_t size)
{
	uint16_t where;

	for (; size >= 10; data += 10, size -= 10) {
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

	if (size == 0)
		return sample;
	fuzz_change(&sample, data + 1, size - 1);
	if (data[0] & 1)
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
