/*
 * Writing trace files. Reading them is tested in test_trace_read.c; disks that are full, stuck or
 * broken in tests/process/completeness.t.
 */
#include "format/trace_write.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/text.h"
#include "format/trace_read.h"
#include "tests/tap.h"

static char scratch[] = "/tmp/ringside-test-XXXXXX";
static char path[64];
static struct op_record ops[TRACE_OPS_PER_BLOCK];

static void use(const char *name)
{
	text_format(path, sizeof(path), "%s/%s", scratch, name);
}

/* Words that differ everywhere: coding differences saves nothing. */
static void make_ops(void)
{
	uint64_t state = 1, *words = (uint64_t *)(void *)ops;

	for (size_t i = 0; i < sizeof(ops) / 8; i++)
		words[i] = state = hash_word(state, i);
}

static uint64_t file_bytes(void)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_size : UINT64_MAX;
}

struct content {
	unsigned int blocks[TRACE_LINKS + 1];
	uint64_t operations;
	unsigned int damages;
	bool is_closed, is_same; /* as make_ops() made them, repeated */
};

static struct content read_all(void)
{
	struct content content = { .is_same = true };
	struct trace_records records;
	struct trace_reader reader;
	struct trace_item item;
	struct op_record op;

	if (trace_open(&reader, path, NULL) != OK)
		return content;
	while (trace_next(&reader, &item) != TRACE_END) {
		content.damages += item.found == TRACE_DAMAGE;
		if (item.found != TRACE_BLOCK)
			continue;
		content.blocks[item.type]++;
		if (item.type != TRACE_OPS || trace_records_init(&records, &item) != OK)
			continue;
		for (uint32_t i = 0; trace_records_op(&records, &op) == OK; i++) {
			content.is_same &= memcmp(&op, &ops[i], sizeof(op)) == 0;
			content.operations++;
		}
	}
	content.is_closed = reader.is_closed;
	trace_close(&reader);
	return content;
}

static void blocks_come_back_as_they_were(void)
{
	struct trace_comm_counts comms[2] = { { 1, { .issued = 5 } }, { 2, { .issued = 6 } } };
	struct trace_counts counts = { .trace_records = 3, .comms = 2 };
	struct trace_writer writer;
	struct content content;

	use("blocks");
	EXPECT_EQUAL(trace_writer_open(&writer, path, 0600, 0), OK);
	EXPECT_EQUAL(writer.bytes, sizeof(struct trace_header));
	EXPECT_EQUAL(trace_write_text(&writer, TRACE_PROCESS, "a=b\n", 4), OK);
	EXPECT_EQUAL(trace_write_ops(&writer, ops, 1), OK);
	EXPECT_EQUAL(trace_write_ops(&writer, ops, TRACE_OPS_PER_BLOCK), OK);
	EXPECT_EQUAL(trace_write_counts(&writer, TRACE_CLOSE, &counts, comms), OK);
	EXPECT_EQUAL(file_bytes(), writer.bytes);
	trace_writer_close(&writer);
	EXPECT_EQUAL(writer.fd, -1);
	trace_writer_close(&writer);
	content = read_all();
	EXPECT(content.is_same && content.is_closed && content.damages == 0);
	EXPECT_EQUAL(content.operations, 1 + TRACE_OPS_PER_BLOCK);
	EXPECT(content.blocks[TRACE_PROCESS] == 1 && content.blocks[TRACE_OPS] == 2 &&
	       content.blocks[TRACE_CLOSE] == 1);
}

static void too_much_at_once_is_refused(void)
{
	struct trace_writer writer;
	struct trace_counts counts = { .comms = 100000 };
	static char text[TRACE_BLOCK_PAYLOAD_MAX + 1];
	uint64_t before;

	use("much");
	EXPECT_EQUAL(trace_writer_open(&writer, path, 0600, 0), OK);
	before = writer.bytes;
	EXPECT_EQUAL(trace_write_ops(&writer, ops, TRACE_OPS_PER_BLOCK + 1), ERR_RANGE);
	EXPECT_EQUAL(trace_write_text(&writer, TRACE_PROCESS, text, sizeof(text)), ERR_RANGE);
	EXPECT_EQUAL(trace_write_records(&writer, TRACE_COMM, text, 256, 5000), ERR_RANGE);
	EXPECT_EQUAL(trace_write_counts(&writer, TRACE_COUNTS, &counts, NULL), ERR_RANGE);
	EXPECT(writer.bytes == before && file_bytes() == before);
	EXPECT_EQUAL(trace_write_text(&writer, TRACE_PROCESS, text, sizeof(text) - 1), OK);
	trace_writer_close(&writer);
}

/* The closing record holds as many communicators as a region can have. */
static void the_quota_keeps_room_for_the_end(void)
{
	const uint64_t quota = 1 << 20;
	struct trace_comm_counts *comms = calloc(512, sizeof(*comms));
	struct trace_counts counts = { .comms = 512 };
	enum status status = OK;
	struct trace_writer writer;
	struct content content;
	uint64_t written = 0, before;

	use("quota");
	EXPECT_EQUAL(trace_writer_open(&writer, path, 0600, quota), OK);
	while ((status = trace_write_ops(&writer, ops, 100)) == OK)
		written += 100;
	EXPECT_EQUAL(status, ERR_RANGE);
	before = writer.bytes;
	EXPECT_EQUAL(trace_write_ops(&writer, ops, TRACE_OPS_PER_BLOCK), ERR_RANGE);
	EXPECT_EQUAL(writer.bytes, before);
	EXPECT_EQUAL(trace_write_counts(&writer, TRACE_CLOSE, &counts, comms), OK);
	trace_writer_close(&writer);
	EXPECT(written > 0 && file_bytes() <= quota);
	content = read_all();
	EXPECT(content.is_closed && content.operations == written && content.damages == 0);
	free(comms);
}

/* A limit on file sizes simulates a disk that takes only part of a block. */
static void a_block_is_there_whole_or_not_at_all(void)
{
	struct rlimit before, limit;
	struct trace_writer writer;
	struct content content;
	uint64_t good;

	use("whole");
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	EXPECT_EQUAL(trace_writer_open(&writer, path, 0600, 0), OK);
	EXPECT_EQUAL(trace_write_ops(&writer, ops, 10), OK);
	good = writer.bytes;
	limit = (struct rlimit){ good + 1000, before.rlim_max };
	setrlimit(RLIMIT_FSIZE, &limit);
	EXPECT_EQUAL(trace_write_ops(&writer, ops, TRACE_OPS_PER_BLOCK), ERR_SYSTEM);
	EXPECT(writer.bytes == good && file_bytes() == good);
	setrlimit(RLIMIT_FSIZE, &before);
	EXPECT_EQUAL(trace_write_ops(&writer, ops, 20), OK);
	trace_writer_close(&writer);
	content = read_all();
	EXPECT(content.operations == 30 && content.is_same && content.damages == 0);
}

static void what_exists_is_never_touched(void)
{
	struct trace_writer writer = { .fd = -1 };
	char target[64];

	use("blocks");
	errno = 0;
	EXPECT(trace_writer_open(&writer, path, 0600, 0) == ERR_SYSTEM && errno == EEXIST);
	EXPECT_EQUAL(writer.fd, -1);
	text_format(target, sizeof(target), "%s/target", scratch);
	use("link");
	EXPECT(symlink(target, path) == 0);
	EXPECT(trace_writer_open(&writer, path, 0600, 0) == ERR_SYSTEM && errno == EEXIST);
	EXPECT(access(target, F_OK) == -1);
	use("no/such/directory");
	EXPECT(trace_writer_open(&writer, path, 0600, 0) == ERR_SYSTEM && errno == ENOENT);
}

static void it_never_becomes_a_standard_stream(void)
{
	struct trace_writer writer;
	int kept = dup(STDIN_FILENO);

	use("stream");
	close(STDIN_FILENO);
	EXPECT_EQUAL(trace_writer_open(&writer, path, 0600, 0), OK);
	EXPECT(writer.fd > STDERR_FILENO);
	EXPECT_THAT("nor does it stay one", fcntl(STDIN_FILENO, F_GETFD) == -1);
	EXPECT_THAT("and it does not outlive an exec", fcntl(writer.fd, F_GETFD) & FD_CLOEXEC);
	trace_writer_close(&writer);
	dup2(kept, STDIN_FILENO);
	close(kept);
}

/* Closing releases what was reserved for the end. */
static void nothing_is_kept_on_disk_after_the_end(void)
{
	struct trace_writer writer;
	struct stat st;

	use("reserve");
	EXPECT_EQUAL(trace_writer_open(&writer, path, 0600, 0), OK);
	EXPECT_EQUAL(trace_write_text(&writer, TRACE_PROCESS, "a=b\n", 4), OK);
	trace_writer_close(&writer);
	EXPECT(stat(path, &st) == 0 && st.st_blocks * 512 < 64 * 1024);
}

/*
 * The same blocks with and without a file; and a part of a larger file reads like a file of its
 * own.
 */
static void memory_holds_the_same_bytes(void)
{
	struct trace_counts counts = { .trace_records = 3 };
	unsigned char *bytes = NULL, *same = NULL;
	struct trace_reader reader;
	struct trace_item item;
	size_t length = 0, blocks = 0;
	int fd;

	use("twin");
	for (int is_memory = 0; is_memory < 2; is_memory++) {
		struct trace_writer writer;

		if ((is_memory ? trace_writer_open_memory(&writer, 77)
			       : trace_writer_open_at(&writer, path, 0600, 0, 77)) != OK)
			abort();
		EXPECT_EQUAL(trace_write_text(&writer, TRACE_PROCESS, "a=b\n", 4), OK);
		for (int i = 0; i < 3; i++)
			EXPECT_EQUAL(trace_write_ops(&writer, ops, TRACE_OPS_PER_BLOCK), OK);
		EXPECT_EQUAL(trace_write_counts(&writer, TRACE_CLOSE, &counts, NULL), OK);
		if (is_memory)
			bytes = trace_writer_take(&writer, &length);
		trace_writer_close(&writer);
	}
	EXPECT(length == file_bytes() && length > 3 * sizeof(ops) / 2);
	same = malloc(length);
	fd = open(path, O_RDWR);
	EXPECT_THAT("both are the same", same != NULL && fd != -1 &&
						 read(fd, same, length) == (ssize_t)length &&
						 memcmp(bytes, same, length) == 0);
	/* Twice in one file, with something between and after. */
	if (pwrite(fd, "x", 1, (off_t)length) != 1 ||
	    pwrite(fd, bytes, length, (off_t)length + 1) != (ssize_t)length ||
	    pwrite(fd, bytes, length, (off_t)(2 * length + 1)) != (ssize_t)length)
		abort();
	EXPECT_EQUAL(trace_open_part(&reader, fd, length + 1, length, NULL), OK);
	while (trace_next(&reader, &item) == TRACE_BLOCK)
		blocks++;
	EXPECT(blocks == 5 && item.found == TRACE_END && reader.is_closed && reader.damages == 0);
	trace_close(&reader);
	close(fd);
	free(bytes);
	free(same);
}

int main(void)
{
	char command[64];

	if (mkdtemp(scratch) == NULL)
		return 1;
	make_ops();
	blocks_come_back_as_they_were();
	too_much_at_once_is_refused();
	the_quota_keeps_room_for_the_end();
	a_block_is_there_whole_or_not_at_all();
	what_exists_is_never_touched();
	it_never_becomes_a_standard_stream();
	nothing_is_kept_on_disk_after_the_end();
	memory_holds_the_same_bytes();
	text_format(command, sizeof(command), "rm -rf %s", scratch);
	if (system(command) != 0)
		return 1;
	return tap_done();
}
