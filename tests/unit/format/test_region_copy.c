/*
 * A reader and a writer, step by step in one thread. This file replaces pread(): it copies word by
 * word, and between any two words the writer may execute some of its stores, chosen by a seeded
 * generator. So every way in which a copy can tear occurs, and occurs again with the same seed.
 *
 * All words of a record are equal to one small number, so that words repeat from record to record.
 * A record that the reader returns must be one that was written, as a whole.
 *
 * Writers that break R2 test this test: they must be caught.
 */
#include "format/region_read.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "tests/support/sample_region.h"
#include "tests/tap.h"

enum { RING_SLOTS = 2, SEEDS = 1500 };

enum writer_kind {
	WRITER_GOOD,	 /* R2: busy, words, sequence */
	WRITER_NOT_BUSY, /* never marks the slot as busy */
	WRITER_EAGER,	 /* publishes before it is done */
};

static struct {
	unsigned char *region; /* shared mapping of the file that is read */
	enum writer_kind kind;
	uint64_t random;
	uint64_t pace;	   /* the larger, the slower */
	uint64_t sequence; /* being written */
	int step;	   /* 0 take, 1..31 words, 32 publish */
	bool is_running;
	uint64_t *issued; /* incremented by every pread(), while there are some left */
	int64_t issues_left;
} writer;

static uint64_t next_random(void)
{
	writer.random += 0x9e3779b97f4a7c15u;
	return hash_word(writer.random, 1);
}

/*
 * The words of record n: the same small number in both halves, so that values repeat soon and pass
 * as an operation.
 */
static uint64_t value_of(uint64_t sequence)
{
	return (1 + sequence % 3) * UINT64_C(0x100000001);
}

static uint64_t *slot_of(uint64_t sequence)
{
	const struct region_header *header = (void *)writer.region;

	return (void *)(writer.region + header->parts[REGION_RING].offset +
			(sequence - 1) % RING_SLOTS * OP_RECORD_BYTES);
}

/* One store. */
static void writer_step(void)
{
	struct region_header *header = (void *)writer.region;
	uint64_t *slot;

	if (writer.step == 0)
		header->ring_head = ++writer.sequence;
	slot = slot_of(writer.sequence);
	if (writer.step == 0 && writer.kind == WRITER_GOOD)
		slot[0] = RING_BUSY | writer.sequence;
	if (writer.step == 0 && writer.kind == WRITER_EAGER)
		slot[0] = writer.sequence;
	if (writer.step > 0 && writer.step < OP_RECORD_WORDS)
		slot[writer.step] = value_of(writer.sequence);
	if (writer.step == OP_RECORD_WORDS)
		slot[0] = writer.sequence;
	writer.step = writer.step == OP_RECORD_WORDS ? 0 : writer.step + 1;
}

/* Usually nothing, sometimes a few stores, rarely a whole lap. */
static void writer_maybe(void)
{
	uint64_t die = next_random() % writer.pace;
	uint64_t steps = die == 0 ? 150 : die < 6 ? die * 4 : die < 10 ? 1 : 0;

	if (!writer.is_running)
		return;
	while (steps-- > 0)
		writer_step();
}

ssize_t pread(int fd, void *to, size_t size, off_t offset)
{
	/* The order in which a kernel copies is unspecified. */
	bool is_backward = next_random() % 2;

	(void)fd;
	if (writer.issued != NULL && writer.issues_left > 0) {
		writer.issues_left--;
		++*writer.issued;
	}
	for (size_t done = 0; done < size; done += sizeof(uint64_t)) {
		size_t at = is_backward ? (size - 1 - done) / 8 * 8 : done;
		size_t bytes = size - at < sizeof(uint64_t) ? size - at : sizeof(uint64_t);

		writer_maybe();
		memcpy((char *)to + at, writer.region + offset + at, bytes);
	}
	return (ssize_t)size;
}

static struct sample two_slots(void)
{
	struct sample sample = sample_region();
	struct region_header *header = sample_head(&sample);

	header->parts[REGION_RING].count = RING_SLOTS;
	header->ring_head = 0;
	memset(sample_slot(&sample, REGION_RING, 0), 0, RING_SLOTS * OP_RECORD_BYTES);
	return sample;
}

/* Compares raw words: the content need not be a valid record. */
static unsigned int count_torn(const struct region *region, unsigned int *given)
{
	unsigned int torn = 0;
	struct region_copy copy;

	if (region_copy_slots(region, REGION_RING, 0, RING_SLOTS, &copy) != OK)
		return 1;
	for (uint32_t i = 0; i < RING_SLOTS; i++) {
		const unsigned char *slot = region_copy_slot(&copy, i);
		uint64_t words[OP_RECORD_WORDS];

		if (slot == NULL)
			continue;
		memcpy(words, slot, sizeof(words));
		if (words[0] == 0 || words[0] & RING_BUSY)
			continue;
		++*given;
		for (int word = 1; word < OP_RECORD_WORDS; word++)
			if (words[word] != value_of(words[0])) {
				torn++;
				break;
			}
	}
	region_copy_release(&copy);
	return torn;
}

static unsigned int run(enum writer_kind kind, unsigned int *given)
{
	unsigned int torn = 0;

	*given = 0;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sample sample = two_slots();
		struct region region = { .fd = -1 };

		memset(&writer, 0, sizeof(writer));
		writer.region = sample.bytes;
		writer.kind = kind;
		writer.random = seed;
		writer.pace = 64;
		if (region_open_memory(&region, sample.bytes, sample.size, NULL) == OK) {
			/* From here on through pread(); the descriptor is never used. */
			region.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
			for (int i = 0; i < 40; i++)
				writer_step();
			writer.is_running = true;
			torn += count_torn(&region, given);
			region_close(&region);
		}
		free(sample.bytes);
	}
	return torn;
}

/* All words repeat every third record: the walk must return whole records in order. */
static void test_walk(void)
{
	unsigned int given = 0, wrong = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sample sample = two_slots();
		struct region region = { .fd = -1 };
		struct region_ring ring;
		struct op_record op;
		uint64_t last = 0;

		memset(&writer, 0, sizeof(writer));
		writer.region = sample.bytes;
		writer.random = seed;
		writer.pace = 4096;
		region_open_memory(&region, sample.bytes, sample.size, NULL);
		region.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		for (int i = 0; i < 100; i++)
			writer_step();
		writer.is_running = true;
		if (region_ring_open(&ring, &region, REGION_RING, 0) == OK)
			while (region_ring_next_op(&ring, &op) == OK) {
				wrong += op.sequence <= last || op.sequence > ring.head ||
					 op.number != value_of(op.sequence) ||
					 op.reserved != value_of(op.sequence);
				last = op.sequence;
				given++;
			}
		region_ring_close(&ring);
		region_close(&region);
		free(sample.bytes);
	}
	printf("# %u records given, %u wrong\n", given, wrong);
	EXPECT_THAT("a walk concurrent with a writer returns whole records in order",
		    given > 0 && wrong == 0);
}

/* Communicators are copied until nothing moves; if something always does, that is reported. */
static void test_moving(void)
{
	struct sample sample = sample_region();
	struct region region = { .fd = -1 };
	struct region_comm *comm = sample_slot(&sample, REGION_COMMS, 0);

	memset(&writer, 0, sizeof(writer));
	writer.region = sample.bytes;
	writer.pace = 1;
	region_open_memory(&region, sample.bytes, sample.size, NULL);
	region.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	EXPECT(region_copy(&region, REGION_COPY_COMMS | REGION_COPY_LIVE) == OK &&
	       !region.is_moving);
	writer.issued = &comm->counts.issued;
	writer.issues_left = 3;
	EXPECT_THAT("a few operations in between: retried until stable",
		    region_copy(&region, REGION_COPY_COMMS | REGION_COPY_LIVE) == OK &&
			    !region.is_moving && writer.issues_left == 0);
	writer.issues_left = INT64_MAX;
	EXPECT_THAT("constant operations: reported",
		    region_copy(&region, REGION_COPY_COMMS | REGION_COPY_LIVE) == OK &&
			    region.is_moving);
	region_close(&region);
	free(sample.bytes);
}

int main(void)
{
	unsigned int given, torn = run(WRITER_GOOD, &given);

	printf("# %u copies given, %u torn\n", given, torn);
	EXPECT_THAT("with a writer that follows R2 no torn record is returned",
		    given > SEEDS / 4 && torn == 0);
	torn = run(WRITER_NOT_BUSY, &given);
	printf("# not busy: %u copies given, %u torn\n", given, torn);
	EXPECT_THAT("a writer that does not mark the slot busy is caught", torn > 0);
	torn = run(WRITER_EAGER, &given);
	printf("# eager: %u copies given, %u torn\n", given, torn);
	EXPECT_THAT("a writer that publishes too early is caught", torn > 0);
	test_walk();
	test_moving();
	return tap_done();
}
