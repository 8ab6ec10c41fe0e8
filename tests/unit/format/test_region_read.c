#include "format/region_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/sample_region.h"
#include "tests/tap.h"

static char directory[] = "/tmp/test_region_read.XXXXXX";

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");

	if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
		abort();
}

static enum status try_open(const struct sample *sample, struct status_problem *problem)
{
	struct region region;
	enum status status = region_open_memory(&region, sample->bytes, sample->size, problem);

	if (status == OK)
		region_close(&region);
	return status;
}

/* Change a field, check how it is rejected, change it back. */
#define EXPECT_REFUSED(field, value, wanted)                                                  \
	do {                                                                                  \
		__typeof__(field) before = (field);                                           \
		struct status_problem refusal = { .what = NULL };                             \
		(field) = (__typeof__(field))(value);                                         \
		EXPECT_THAT(#field " = " #value " is refused",                                \
			    try_open(&sample, &refusal) == (wanted) && refusal.what != NULL); \
		(field) = before;                                                             \
	} while (0)

static void test_refusals(void)
{
	struct sample sample = sample_region();
	struct region_header *header = sample_head(&sample);
	struct region_part *live = &header->parts[REGION_LIVE];
	struct status_problem problem = { .what = NULL };

	EXPECT_EQUAL(try_open(&sample, NULL), OK);
	EXPECT_REFUSED(header->magic, 0, ERR_FORMAT);
	EXPECT_REFUSED(header->byte_order, 0x04030201, ERR_FORMAT);
	EXPECT_REFUSED(header->major, 0, ERR_FORMAT);
	EXPECT_REFUSED(header->major, REGION_MAJOR + 1, ERR_VERSION);
	EXPECT_REFUSED(header->header_bytes, 8, ERR_FORMAT);
	EXPECT_REFUSED(header->header_bytes, UINT64_MAX, ERR_FORMAT);
	EXPECT_REFUSED(header->total_bytes, 100, ERR_FORMAT);
	EXPECT_REFUSED(header->total_bytes, UINT64_MAX, ERR_FORMAT);
	EXPECT_REFUSED(header->total_bytes, sample.size + 1, ERR_TRUNCATED);
	EXPECT_REFUSED(header->info_bytes, REGION_INFO_BYTES + 1, ERR_FORMAT);
	EXPECT_REFUSED(header->info_bytes, SAMPLE_INFO_BYTES + 1, ERR_FORMAT);
	EXPECT_REFUSED(live->offset, 64, ERR_FORMAT);
	EXPECT_REFUSED(live->offset, live->offset + 8, ERR_FORMAT);
	EXPECT_REFUSED(live->offset, sample.size & ~UINT64_C(63), ERR_FORMAT);
	EXPECT_REFUSED(live->offset, UINT64_MAX & ~UINT64_C(63), ERR_FORMAT);
	EXPECT_REFUSED(live->count, UINT32_MAX, ERR_FORMAT);
	EXPECT_REFUSED(live->count, 1000, ERR_FORMAT);
	EXPECT_REFUSED(live->stride, 0, ERR_FORMAT);
	EXPECT_REFUSED(live->stride, sizeof(struct region_live) - 8, ERR_FORMAT);
	EXPECT_REFUSED(live->stride, sizeof(struct region_live) + 4, ERR_FORMAT);
	EXPECT_REFUSED(live->stride, UINT32_MAX - 7, ERR_FORMAT);

	header->major = 7;
	header->minor = 5;
	try_open(&sample, &problem);
	EXPECT_THAT("the found version is reported",
		    problem.found_major == 7 && problem.found_minor == 5);
	header->major = REGION_MAJOR;
	header->minor = REGION_MINOR + 1;
	header->parts[12] = (struct region_part){ 3, 5, 7 };
	EXPECT_THAT("a newer minor version may have unknown parts", try_open(&sample, NULL) == OK);
	free(sample.bytes);
}

static void test_cuts(void)
{
	struct sample sample = sample_region();
	size_t whole = sample.size, wrong = 0;

	for (sample.size = 0; sample.size < whole; sample.size++) {
		enum status status = try_open(&sample, NULL);

		wrong += status != (sample.size < 8 ? ERR_FORMAT : ERR_TRUNCATED);
	}
	EXPECT_THAT("a region truncated anywhere is rejected as truncated", wrong == 0);
	free(sample.bytes);
}

static void test_files(void)
{
	struct sample sample = sample_region();
	struct status_problem problem;
	struct region region;
	char link[128];
	int fd;

	write_file(path_of("one"), sample.bytes, sample.size);
	snprintf(link, sizeof(link), "%s", path_of("link"));
	if (symlink(path_of("one"), link) == -1)
		abort();
	EXPECT_EQUAL(region_open(&region, path_of("one"), REGION_NO_LINKS, &problem), OK);
	EXPECT_EQUAL(region_copy(&region, REGION_COPY_STATE), OK);
	EXPECT_EQUAL(region_slots(&region, REGION_LIVE), SAMPLE_LIVE);
	if (truncate(path_of("one"), 5000) == -1)
		abort();
	EXPECT_THAT("truncated while reading: an error, not a signal",
		    region_copy(&region, REGION_COPY_STATE) == ERR_TRUNCATED);
	region_close(&region);
	EXPECT_EQUAL(region_open(&region, path_of("one"), 0, &problem), ERR_TRUNCATED);
	EXPECT_EQUAL(region_open(&region, path_of("none"), 0, &problem), ERR_SYSTEM);
	EXPECT_EQUAL(errno, ENOENT);
	write_file(path_of("one"), sample.bytes, sample.size);
	EXPECT_EQUAL(region_open(&region, link, REGION_NO_LINKS, &problem), ERR_SYSTEM);
	EXPECT_EQUAL(errno, ELOOP);
	EXPECT_EQUAL(region_open(&region, link, 0, &problem), OK);
	region_close(&region);
	region_close(&region);
	fd = memfd_create("ringside", MFD_CLOEXEC);
	if (fd == -1 || write(fd, sample.bytes, sample.size) != (ssize_t)sample.size)
		abort();
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	EXPECT_THAT("a memfd opens through /proc", region_open(&region, link, 0, NULL) == OK);
	region_close(&region);
	close(fd);
	unlink(path_of("one"));
	unlink(path_of("link"));
	free(sample.bytes);
}

static void test_comms(void)
{
	struct sample sample = sample_region();
	struct region_comm *second = sample_slot(&sample, REGION_COMMS, 1), comm;
	const char *problem = NULL;
	struct region region;

	memset(second->info.name, 'x', sizeof(second->info.name));
	second->info.name[1] = '\033';
	((struct region_comm *)sample_slot(&sample, REGION_COMMS, 3))->word = UINT64_C(1) << 32;
	region_open_memory(&region, sample.bytes, sample.size, NULL);
	EXPECT_THAT("nothing is there before the copy", !region_comm_at(&region, 0, &comm, NULL));
	EXPECT_EQUAL(region_copy(&region, REGION_COPY_COMMS), OK);
	EXPECT(region_comm_at(&region, 0, &comm, &problem) && comm.info.id == 1 &&
	       comm.counts.issued == 7 && strcmp(comm.info.name, "tensor") == 0);
	EXPECT(region_comm_at(&region, 1, &comm, &problem));
	EXPECT_THAT("an unterminated name with an escape sequence is cleaned",
		    strlen(comm.info.name) == sizeof(comm.info.name) - 1 &&
			    comm.info.name[1] == '?');
	EXPECT_THAT("a finalized communicator is there",
		    region_comm_at(&region, 2, &comm, &problem) &&
			    comm.info.flags & COMM_FLAG_FINALIZED);
	EXPECT_THAT("one without a number is rejected with a reason",
		    !region_comm_at(&region, 3, &comm, &problem) && problem != NULL);
	EXPECT(!region_comm_at(&region, 4, &comm, &problem) && problem == NULL);
	EXPECT(!region_comm_at(&region, UINT32_MAX, &comm, &problem) && problem == NULL);
	region_close(&region);
	free(sample.bytes);
}

static void test_live(void)
{
	struct sample sample = sample_region();
	struct region_live *slot = sample_slot(&sample, REGION_LIVE, 0), live;
	const char *problem = NULL;
	struct region region;

	slot->word = UINT64_C(1) << 32;
	slot->op = sample_op(1);
	slot->op.state = 200;
	slot = sample_slot(&sample, REGION_LIVE, 2);
	slot->word = UINT64_C(1) << 32 | LIVE_RETIRING;
	region_open_memory(&region, sample.bytes, sample.size, NULL);
	EXPECT_EQUAL(region_copy(&region, REGION_COPY_LIVE), OK);
	EXPECT(!region.is_moving);
	EXPECT(region_live_at(&region, 1, &live, &problem) && live.op.number == 6 &&
	       LIVE_OPEN(live.word) == 2);
	EXPECT_THAT("one that is done and lingers is returned",
		    region_live_at(&region, 4, &live, &problem) && live.op.state == OP_DONE);
	EXPECT_THAT("a free slot is free, whatever is in it",
		    !region_live_at(&region, 6, &live, &problem) && problem == NULL);
	EXPECT_THAT("an invalid state is rejected",
		    !region_live_at(&region, 0, &live, &problem) && problem != NULL);
	EXPECT_THAT("a slot being filled is not an operation yet",
		    !region_live_at(&region, 2, &live, &problem) && problem == NULL &&
			    region_live_is_filling(&region, 2));
	region_close(&region);
	free(sample.bytes);
}

/* A slot is retiring from its claim until its operation is filled in. */
static void test_filling(void)
{
	static const struct {
		const char *sentence;
		uint64_t word;
		bool has_number, has_state, is_filling;
	} cases[] = {
		{ "claimed", UINT64_C(1) << 32 | LIVE_RETIRING, false, false, true },
		{ "the number comes first", UINT64_C(1) << 32 | LIVE_RETIRING, true, false, true },
		{ "or the state", UINT64_C(1) << 32 | LIVE_RETIRING, false, true, true },
		{ "freed on the way", UINT64_C(2) << 32 | LIVE_RETIRING, true, true, true },
		{ "filled and retiring", UINT64_C(1) << 32 | LIVE_RETIRING, true, true, false },
		{ "not retiring", UINT64_C(1) << 32, false, false, false },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct sample sample = sample_region();
		struct region_live *slot = sample_slot(&sample, REGION_LIVE, 2);
		struct region region;

		slot->word = cases[i].word;
		slot->op = sample_op(1);
		slot->op.number = cases[i].has_number ? 9 : 0;
		slot->op.state = cases[i].has_state ? OP_RUNNING : OP_STATE_NONE;
		region_open_memory(&region, sample.bytes, sample.size, NULL);
		region_copy(&region, REGION_COPY_LIVE);
		EXPECT_THAT(cases[i].sentence,
			    region_live_is_filling(&region, 2) == cases[i].is_filling);
		region_close(&region);
		free(sample.bytes);
	}
}

/* Part of a table: its limits, and the slots by their own numbers. */
static void test_slots(void)
{
	struct sample sample = sample_region();
	struct region_copy copy;
	struct region region;

	region_open_memory(&region, sample.bytes, sample.size, NULL);
	EXPECT_EQUAL(region_copy_slots(&region, REGION_RING, SAMPLE_RING, 1, &copy), ERR_RANGE);
	EXPECT_EQUAL(region_copy_slots(&region, REGION_RING, SAMPLE_RING + 1, 0, &copy), ERR_RANGE);
	EXPECT_EQUAL(region_copy_slots(&region, REGION_RING, 3, SAMPLE_RING - 2, &copy), ERR_RANGE);
	EXPECT_EQUAL(region_copy_slots(&region, REGION_RING, 3, UINT32_MAX, &copy), ERR_RANGE);
	EXPECT_EQUAL(region_copy_slots(&region, REGION_RING, SAMPLE_RING, 0, &copy), OK);
	EXPECT_THAT("none at the end", copy.count == 0 && region_copy_slot(&copy, 0) == NULL);
	region_copy_release(&copy);
	EXPECT_EQUAL(region_copy_slots(&region, REGION_RING, 3, SAMPLE_RING - 3, &copy), OK);
	EXPECT_THAT("the rest", copy.count == SAMPLE_RING - 3 && region_copy_index(&copy, 2) == 5 &&
					region_copy_slot(&copy, SAMPLE_RING - 3) == NULL);
	EXPECT_THAT("is what is there",
		    memcmp(region_copy_slot(&copy, 2), sample_slot(&sample, REGION_RING, 5),
			   OP_RECORD_BYTES) == 0);
	region_copy_release(&copy);
	region_close(&region);
	free(sample.bytes);
}

/* Only what is asked for is copied; in brief, only slots in use, with their own numbers. */
static void test_parts(void)
{
	struct sample sample = sample_region();
	const struct region_copy *live;
	struct region region;
	unsigned int copied = 0;

	sample_head(&sample)->proxy_cursor = SAMPLE_PROXIES;
	region_open_memory(&region, sample.bytes, sample.size, NULL);
	EXPECT_EQUAL(region_copy(&region, 1u << REGION_TOTALS), OK);
	for (unsigned int part = 0; part < REGION_PARTS; part++)
		copied |= region.copies[part].bytes != NULL ? 1u << part : 0;
	EXPECT_EQUAL(copied, 1u << REGION_TOTALS);
	region_copy_drop(&region, 1u << REGION_NAMES);
	EXPECT(region.copies[REGION_TOTALS].bytes != NULL);
	region_copy_drop(&region, 1u << REGION_TOTALS);
	EXPECT(region.copies[REGION_TOTALS].bytes == NULL);
	EXPECT_EQUAL(
		region_copy(&region, REGION_COPY_LIVE | REGION_COPY_PROXIES | REGION_COPY_BRIEF),
		OK);
	live = &region.copies[REGION_LIVE];
	EXPECT_THAT("slots 1 and 4", live->count == 2 && region_copy_index(live, 0) == 1 &&
					     region_copy_index(live, 1) == 4);
	EXPECT_THAT("with what is in them",
		    memcmp(region_copy_slot(live, 0), sample_slot(&sample, REGION_LIVE, 1),
			   sizeof(struct region_live)) == 0 &&
			    memcmp(region_copy_slot(live, 1), sample_slot(&sample, REGION_LIVE, 4),
				   sizeof(struct region_live)) == 0);
	EXPECT_EQUAL(region.copies[REGION_PROXIES].count, 3);
	region_close(&region);
	free(sample.bytes);
}

/* More slots than are read at a time. */
static void test_many_slots(void)
{
	enum { SLOTS = 1000, KNOWN = 167 }; /* every sixth slot */
	static const uint32_t hasty[] = { 1, 4, 5, 7 };
	static struct region_known known[KNOWN];
	uint32_t kept = 0;
	struct sample sample = sample_region();
	struct region_header *header;
	struct region_part *part;
	struct region region;
	const struct region_copy *live;
	size_t wrong = 0;

	part = &sample_head(&sample)->parts[REGION_LIVE];
	part->offset = (sample.size + 63) & ~UINT64_C(63);
	part->count = SLOTS;
	sample_head(&sample)->total_bytes = part->offset + (uint64_t)SLOTS * part->stride;
	sample.bytes = realloc(sample.bytes, sample_head(&sample)->total_bytes);
	header = sample_head(&sample);
	memset(sample.bytes + sample.size, 0, header->total_bytes - sample.size);
	sample.size = header->total_bytes;
	for (uint32_t i = 0; i < SLOTS; i += 3) {
		struct region_live *slot = sample_slot(&sample, REGION_LIVE, i);

		slot->word = UINT64_C(1) << 32;
		slot->op = sample_op(1 + i);
		slot->op.number = 1 + i;
	}
	region_open_memory(&region, sample.bytes, sample.size, NULL);
	EXPECT_EQUAL(region_copy(&region, REGION_COPY_LIVE | REGION_COPY_BRIEF), OK);
	live = &region.copies[REGION_LIVE];
	EXPECT_EQUAL(live->count, (SLOTS + 2) / 3);
	for (uint32_t i = 0; i < live->count; i++) {
		struct region_live found;

		memcpy(&found, region_copy_slot(live, i), sizeof(found));
		wrong += region_copy_index(live, i) != 3 * i || found.op.number != 1 + 3 * i;
	}
	EXPECT_THAT("every third slot", wrong == 0);
	for (uint32_t i = 0; i < KNOWN; i++)
		known[i] = (struct region_known){ .slot = 6 * i, .word = UINT64_C(1) << 32 };
	known[KNOWN - 1].word = UINT64_C(3) << 32;
	region.known = known;
	region.known_count = KNOWN;
	EXPECT_EQUAL(region_copy(&region, REGION_COPY_LIVE | REGION_COPY_BRIEF), OK);
	EXPECT_EQUAL(live->count, (SLOTS + 2) / 3 - (KNOWN - 1));
	for (uint32_t i = 0; i < KNOWN; i++)
		wrong += known[i].is_there != (i < KNOWN - 1);
	EXPECT_THAT("known ones are still there, and not copied again", wrong == 0);
	EXPECT_THAT("unless something else is in their place",
		    region_copy_index(live, live->count - 1) == 999 &&
			    region_copy_index(live, live->count - 2) == 6 * (KNOWN - 1));
	region.known_count = 0;
	for (uint32_t i = 0; i < SLOTS; i += 3)
		((struct region_live *)sample_slot(&sample, REGION_LIVE, i))->op.comm = 1 + i % 7;
	((struct region_live *)sample_slot(&sample, REGION_LIVE, 0))->op.state = OP_RUNNING;
	region.hasty = hasty;
	region.hasty_count = ARRAY_LENGTH(hasty);
	EXPECT_EQUAL(region_copy(&region, REGION_COPY_LIVE | REGION_COPY_BRIEF), OK);
	for (uint32_t i = 0; i < live->count; i++) {
		uint32_t slot = region_copy_index(live, i);

		wrong += slot != 0 &&
			 (slot % 7 == 0 || slot % 7 == 3 || slot % 7 == 4 || slot % 7 == 6);
	}
	for (uint32_t i = 0; i < SLOTS; i += 3)
		kept += i == 0 || i % 7 == 1 || i % 7 == 2 || i % 7 == 5;
	EXPECT_THAT("what communicators in a hurry have finished is left out",
		    wrong == 0 && live->count == kept);
	region.hasty_count = 0;
	EXPECT_EQUAL(region_copy(&region, REGION_COPY_LIVE), OK);
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct region_live found;
		bool is_used = region_live_at(&region, i, &found, NULL);

		wrong += is_used != (i % 3 == 0) || (is_used && found.op.number != 1 + i);
	}
	EXPECT_THAT("and by their numbers", wrong == 0);
	region_close(&region);
	free(sample.bytes);
}

static void test_proxies(void)
{
	struct sample sample = sample_region();
	struct region_step steps[WINDOW_STEPS];
	struct region_proxy proxy;
	struct region_live live;
	struct region region;

	region_open_memory(&region, sample.bytes, sample.size, NULL);
	region_copy(&region, REGION_COPY_LIVE | REGION_COPY_PROXIES);
	region_live_at(&region, 1, &live, NULL);
	EXPECT(region_proxy_at(&region, 0, &proxy, NULL) && proxy.posted == 5);
	EXPECT_THAT("readers derive how many were sent and when anything last happened",
		    proxy.transmitted == 5 && proxy.since_ns == 1060002);
	EXPECT(region_proxy_is_of(&proxy, 1, &live));
	EXPECT_THAT("not of the slot's next owner",
		    (live.word += UINT64_C(2) << 32, !region_proxy_is_of(&proxy, 1, &live)));
	live.word -= UINT64_C(2) << 32;
	EXPECT_EQUAL(region_steps(&proxy, steps), 3);
	EXPECT_THAT("open transfers come by step",
		    steps[0].step_plus_1 == 8 && steps[1].step_plus_1 == 9 &&
			    steps[2].step_plus_1 == 10 && steps[2].state == 8);
	EXPECT(region_proxy_at(&region, 1, &proxy, NULL) && region_steps(&proxy, steps) == 0);
	EXPECT_THAT("one of another process has no owner here",
		    region_proxy_at(&region, 2, &proxy, NULL) &&
			    !region_proxy_is_of(&proxy, 1, &live));
	EXPECT(!region_proxy_at(&region, 3, &proxy, NULL));
	region_close(&region);
	free(sample.bytes);
}

static void test_ring(void)
{
	struct sample sample = sample_region();
	struct region_ring ring;
	struct region region;
	struct op_record op, *slot;
	uint64_t expected = SAMPLE_RING_HEAD - SAMPLE_RING + 1;
	int wrong = 0;

	region_open_memory(&region, sample.bytes, sample.size, NULL);
	EXPECT_EQUAL(region_ring_open(&ring, &region, REGION_RING, 0), OK);
	for (; region_ring_next_op(&ring, &op) == OK; expected++)
		wrong += op.sequence != expected;
	EXPECT_THAT("the ring reads by sequence, through its wrap",
		    wrong == 0 && expected == SAMPLE_RING_HEAD + 1);
	EXPECT_EQUAL(region_ring_next_op(&ring, &op), ERR_GONE);
	region_ring_close(&ring);

	region_ring_open(&ring, &region, REGION_RING, 9);
	EXPECT(region_ring_next_op(&ring, &op) == OK && op.sequence == 10);
	region_ring_close(&ring);
	EXPECT_EQUAL(region_ring_open(&ring, &region, REGION_RING, UINT64_MAX), OK);
	EXPECT_EQUAL(region_ring_next_op(&ring, &op), ERR_GONE);
	region_ring_close(&ring);

	slot = sample_slot(&sample, REGION_RING, (6 - 1) % SAMPLE_RING);
	slot->sequence |= RING_BUSY;
	slot = sample_slot(&sample, REGION_RING, (7 - 1) % SAMPLE_RING);
	slot->sequence = 7 + SAMPLE_RING;
	slot = sample_slot(&sample, REGION_RING, (8 - 1) % SAMPLE_RING);
	slot->sequence = 9;
	slot = sample_slot(&sample, REGION_RING, (9 - 1) % SAMPLE_RING);
	slot->function = 100;
	slot = sample_slot(&sample, REGION_RING, (11 - 1) % SAMPLE_RING);
	slot->sequence = 3;
	region_ring_open(&ring, &region, REGION_RING, 0);
	expected = 0;
	while (region_ring_next_op(&ring, &op) == OK)
		expected = expected * 100 + op.sequence;
	EXPECT_EQUAL(expected, 40510);
	EXPECT_EQUAL(ring.torn, 2);
	EXPECT_EQUAL(ring.overwritten, 1);
	EXPECT_EQUAL(ring.refused, 2);
	EXPECT(ring.problem != NULL);
	region_ring_close(&ring);

	sample_head(&sample)->ring_head = UINT64_MAX;
	EXPECT_EQUAL(region_ring_open(&ring, &region, REGION_RING, 0), OK);
	EXPECT_EQUAL(region_ring_next_op(&ring, &op), ERR_GONE);
	region_ring_close(&ring);
	sample_head(&sample)->ring_head = RING_BUSY - 1;
	EXPECT_EQUAL(region_ring_open(&ring, &region, REGION_RING, 0), OK);
	EXPECT_EQUAL(region_ring_next_op(&ring, &op), ERR_GONE);
	region_ring_close(&ring);
	region_close(&region);
	free(sample.bytes);
}

static void test_rest(void)
{
	struct sample sample = sample_region();
	struct region_header *header = sample_head(&sample);
	struct region_total total;
	struct region_link link;
	struct region_ring ring;
	struct op_detail detail;
	struct region region;
	uint64_t now, count = 0;
	char text[64];

	region_open_memory(&region, sample.bytes, sample.size, NULL);
	region_copy(&region, REGION_COPY_STATE);
	EXPECT(!region_link_at(&region, 0, &link) && !region_link_at(&region, 1, &link));
	EXPECT(region_link_at(&region, 2, &link) && link.steps == 48 && link.wait_ns[2] == 3);
	EXPECT(!region_total_at(&region, 0, &total));
	EXPECT(region_total_at(&region, 1, &total) && total.count == 11 && total.buckets[20] == 11);
	region_ring_open(&ring, &region, REGION_DETAILS, 0);
	while (region_ring_next_detail(&ring, &detail) == OK)
		count += detail.kind;
	EXPECT_EQUAL(count, 1 + 2 + 3);
	region_ring_close(&ring);
	EXPECT(region_name(&region, OP_NAME_INTERNED, text, sizeof(text)) &&
	       strcmp(text, "ncclFloat4") == 0);
	EXPECT(!region_name(&region, OP_NAME_INTERNED + 1, text, sizeof(text)));
	EXPECT(!region_name(&region, 255, text, sizeof(text)));
	EXPECT(!region_name(&region, 3, text, sizeof(text)));
	EXPECT(info_get(region.info, region.info_bytes, "job", text, sizeof(text)) &&
	       strcmp(text, "sample") == 0);
	EXPECT(info_get(region.info, region.info_bytes, "label.team", text, 3) &&
	       strcmp(text, "bl") == 0);
	EXPECT(!info_get(region.info, region.info_bytes, "jo", text, sizeof(text)) &&
	       text[0] == '\0');
	EXPECT_THAT("the clock of another host is unknown", !region_now(&region, &now));
	region_close(&region);
	region_boot_id(header->boot_id);
	region_open_memory(&region, sample.bytes, sample.size, NULL);
	EXPECT(region_now(&region, &now) && now > 0);
	region.header.clock.kind = 77;
	EXPECT_THAT("so is an invalid clock", !region_now(&region, &now));
	region_close(&region);
	EXPECT(header->lost[LOST_PROXY_SLOT] == 1);
	free(sample.bytes);
}

/* A newer minor version may have longer slots. */
static void test_longer_slots(void)
{
	struct sample sample = sample_region();
	struct region_header *header = sample_head(&sample);
	struct region_part *ring = &header->parts[REGION_RING];
	struct region_ring walk;
	struct region region;
	struct op_record op;
	uint64_t count = 0;

	header->minor = REGION_MINOR + 1;
	ring->stride = OP_RECORD_BYTES + 64;
	ring->count = 2;
	header->ring_head = 2;
	for (uint64_t i = 1; i <= 2; i++) {
		op = sample_op(i);
		memcpy(sample_slot(&sample, REGION_RING, (uint32_t)i - 1), &op, sizeof(op));
	}
	EXPECT_EQUAL(region_open_memory(&region, sample.bytes, sample.size, NULL), OK);
	region_ring_open(&walk, &region, REGION_RING, 0);
	while (region_ring_next_op(&walk, &op) == OK)
		count += op.sequence;
	EXPECT_EQUAL(count, 3);
	region_ring_close(&walk);
	region_close(&region);
	free(sample.bytes);
}

/* Of an older one they may be shorter. */
static void test_shorter_slots(void)
{
	struct sample sample = sample_region();
	struct region_total total;
	struct region region;

	sample_shorten_totals(&sample);
	EXPECT_EQUAL(region_open_memory(&region, sample.bytes, sample.size, NULL), OK);
	EXPECT_EQUAL(region_copy(&region, 1u << REGION_TOTALS), OK);
	EXPECT(region_total_at(&region, 1, &total) && total.count == 11 && total.sum_ns == 16500);
	EXPECT_THAT("what they lack is 0", total.shared_ns == 0 && total.reserved[6] == 0);
	region_close(&region);
	sample_head(&sample)->parts[REGION_TOTALS].stride -= 8;
	EXPECT_THAT("but none is as short as this",
		    region_open_memory(&region, sample.bytes, sample.size, NULL) == ERR_FORMAT);
	free(sample.bytes);
}

int main(void)
{
	if (mkdtemp(directory) == NULL)
		return tap_skip_all("no temporary directory");
	test_refusals();
	test_cuts();
	test_files();
	test_comms();
	test_live();
	test_filling();
	test_slots();
	test_parts();
	test_many_slots();
	test_proxies();
	test_ring();
	test_rest();
	test_longer_slots();
	test_shorter_slots();
	rmdir(directory);
	return tap_done();
}
