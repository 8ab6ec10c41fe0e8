/*
 * Inspector's thread, pass by pass: when it writes, what a disk that fails leaves in the log, which
 * channels a line has, and when a communicator's slot is free.
 */
#include <pthread.h>

#include "common/hash.h"
#include "format/inspector_write.h"
#include "tests/unit/plugin/thread_play.h"

enum { LINE = 512, PID = 77, MOST = 1400, LOG_BYTES = 512 * 1024 };
#define RETRY_NS (200 * MS_NS)

static struct settings settings;
static struct identity identity = { .host = "node", .pid = PID };
static char wanted[4 << 20], found[4 << 20];
static size_t wanted_bytes;
static struct op_record ops[MOST];

/* ---- helpers ------------------------------------------------------------------------------------ */

static struct op_record op_of(uint32_t comm, uint64_t number)
{
	return (struct op_record){ .comm = comm,
				   .function = OP_ALL_REDUCE,
				   .datatype = OP_FLOAT32,
				   .algorithm = OP_RING,
				   .protocol = OP_SIMPLE,
				   .number = number,
				   .match = 1, /* all lines of a communicator are equally long */
				   .count = 1024,
				   .bytes = 4096,
				   .state = OP_DONE,
				   .time_source = OP_TIME_KERNEL_GPU,
				   .issue_ns = THREAD_BEGIN_NS - 3000,
				   .task_ns = THREAD_BEGIN_NS - 2000,
				   .done_ns = THREAD_BEGIN_NS - 1000,
				   .gpu_start_ns = 1000,
				   .gpu_stop_ns = 5000 };
}

static uint64_t wall_at(uint64_t clock_ns, uint64_t now)
{
	return THREAD_WALL_NS + clock_ns - now;
}

/* Append the line that this operation has to get in a pass at this time. */
static size_t want_line(const struct comm_info *comm, const struct op_record *op, uint64_t p2p,
			uint64_t now, const struct inspector_events *events)
{
	struct inspector_speaker speaker = { "node", PID, wall_at(op->done_ns, now) };
	size_t length = inspector_line(wanted + wanted_bytes, sizeof(wanted) - wanted_bytes,
				       &speaker, comm, op, p2p, events);

	wanted_bytes += length;
	return length;
}

static size_t read_log(void)
{
	char path[128];
	FILE *file;
	size_t got;

	text_format(path, sizeof(path), "%s/files/node-pid77.log", thread_dir);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	got = fread(found, 1, sizeof(found) - 1, file);
	fclose(file);
	found[got] = '\0';
	return got;
}

/* The log has so many of the wanted bytes, and no other ones. */
static bool log_has(size_t bytes)
{
	size_t got = read_log();

	if (got == bytes && memcmp(found, wanted, bytes) == 0)
		return true;
	printf("# the log has %zu bytes instead of %zu\n", got, bytes);
	return false;
}

static const char *said(void)
{
	static char text[8192];
	FILE *file = fopen(thread_error, "re");
	size_t got = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;

	text[got] = '\0';
	if (file != NULL)
		fclose(file);
	return text;
}

static bool said_at_the_end(const char *end)
{
	const char *text = said();
	size_t length = strlen(text), bytes = strlen(end);

	if (length >= bytes && strcmp(text + length - bytes, end) == 0)
		return true;
	printf("# %s\n", text);
	return false;
}

/* A communicator whose lines have exactly 512 bytes. */
static void *begin_with_even_lines(void)
{
	char name[96] = "";
	void *context;
	struct op_record op = op_of(1, 1);

	context = play_init(0x11, 1, 8, 3);
	thread_freeze();
	memset(name, 'n', sizeof(name) - 1);
	for (size_t i = 1; i < sizeof(name); i++) {
		text_format(recorder.region.comms[0].info.name, sizeof(name), "%.*s", (int)i, name);
		if (want_line(&recorder.region.comms[0].info, &op, 0, THREAD_BEGIN_NS, NULL) ==
		    LINE)
			break;
	}
	wanted_bytes = 0;
	expect(want_line(&recorder.region.comms[0].info, &op, 0, THREAD_BEGIN_NS, NULL) == LINE);
	wanted_bytes = 0;
	return context;
}

static void start(int64_t interval_us)
{
	settings.inspector.is_on = true;
	settings.inspector.interval_us = interval_us;
	text_format(settings.inspector.dir, sizeof(settings.inspector.dir), "%s/files", thread_dir);
	expect(inspector_start(&settings, &identity) == OK);
}

static void pass_at(uint64_t ns)
{
	thread_now(THREAD_BEGIN_NS + ns);
	thread_pass(inspector_save_comms);
}

/* So many operations at once; their lines are wanted if this is the time of the next pass. */
static void put(uint32_t count, uint64_t now)
{
	for (uint32_t i = 0; i < count; i++) {
		ops[i] = op_of(1, 1);
		want_line(&recorder.region.comms[0].info, &ops[i], 0, THREAD_BEGIN_NS + now, NULL);
	}
	thread_put_ops(ops, count);
}

/* ---- when lines are written --------------------------------------------------------------------- */

static bool is_open(const char *name)
{
	char path[64], target[512];

	for (int fd = 0; fd < 1024; fd++) {
		ssize_t got;

		text_format(path, sizeof(path), "/proc/self/fd/%d", fd);
		got = readlink(path, target, sizeof(target) - 1);
		target[got > 0 ? got : 0] = '\0';
		if (strstr(target, name) != NULL)
			return true;
	}
	return false;
}

static void write_after_an_interval(void)
{
	begin_with_even_lines();
	start(1000000);
	put(3, 0);
	pass_at(0);
	expect(read_log() == 0);
	pass_at(SECOND_NS - 1);
	expect(read_log() == 0);
	pass_at(SECOND_NS);
	expect(log_has(3 * LINE));
	put(1, SECOND_NS);
	pass_at(SECOND_NS);
	pass_at(2 * SECOND_NS - 1);
	expect(log_has(3 * LINE));
	pass_at(2 * SECOND_NS);
	expect(log_has(4 * LINE));
	put(2, 2 * SECOND_NS);
	pass_at(2 * SECOND_NS);
	expect(is_open("node-pid77.log"));
	inspector_finish();
	expect(log_has(6 * LINE) && !is_open("node-pid77.log"));
	expect(said_at_the_end("/files/node-pid77.log: 6 operations, 6 lines, 0 lost\n"));
}

static void write_half_a_buffer(void)
{
	begin_with_even_lines();
	start(INSPECTOR_AT_END);
	put(LOG_BYTES / 2 / LINE, 0);
	pass_at(0);
	pass_at(HOUR_NS);
	expect(read_log() == 0);
	put(1, HOUR_NS);
	pass_at(HOUR_NS);
	expect(log_has(LOG_BYTES / 2 + LINE));
	inspector_finish();
}

/* A line is buffered if the longest possible one would fit. */
static void write_a_full_buffer(void)
{
	enum { FULL = (LOG_BYTES - INSPECTOR_LINE_BYTES) / LINE + 1, COUNT = 1100 };

	begin_with_even_lines();
	start(INSPECTOR_AT_END);
	store_relaxed(&thread_writes, 0);
	put(COUNT, 0);
	pass_at(0);
	expect(log_has((size_t)FULL * LINE));
	expect(load_relaxed(&thread_writes) == 1 && load_relaxed(&thread_sizes[0]) == FULL * LINE);
	inspector_finish();
	expect(log_has((size_t)COUNT * LINE));
	expect(load_relaxed(&thread_writes) == 2 &&
	       load_relaxed(&thread_sizes[1]) == (COUNT - FULL) * LINE);
	expect(said_at_the_end(": 1100 operations, 1100 lines, 0 lost\n"));
}

static void write_what_has_ended(void)
{
	void *context = begin_with_even_lines(), *other = play_init(0x22, 1, 8, 3);

	start(INSPECTOR_AT_END);
	put(2, 0);
	pass_at(0);
	pass_at(HOUR_NS);
	expect(read_log() == 0);
	expect(!inspector_has_comm(0, 1) && !inspector_has_comm(1, 2));
	ncclProfiler_v5.finalize(context);
	pass_at(HOUR_NS);
	expect(log_has(2 * LINE));
	expect(inspector_has_comm(0, 1) && !inspector_has_comm(0, 2) && !inspector_has_comm(1, 2));
	/* Only once. */
	put(1, HOUR_NS);
	pass_at(HOUR_NS);
	expect(log_has(2 * LINE));
	ncclProfiler_v5.finalize(other);
	pass_at(HOUR_NS);
	expect(log_has(3 * LINE));
	expect(inspector_has_comm(0, 1) && inspector_has_comm(1, 2));
	inspector_finish();
}

/* Its records are still in the ring, behind one whose writer is not finished. */
static void wait_for_records_of_the_ended(void)
{
	void *context = begin_with_even_lines();

	start(INSPECTOR_AT_END);
	store_release(&recorder.region.header->ring_head, 1);
	put(1, 0);
	ncclProfiler_v5.finalize(context);
	pass_at(0);
	pass_at(SECOND_NS - 1);
	expect(!inspector_has_comm(0, 1));
	pass_at(SECOND_NS);
	expect(inspector_has_comm(0, 1));
	inspector_finish();
	expect(said_at_the_end(": 2 operations, 1 lines, 1 lost\n"));
	expect(load_relaxed(&recorder.region.header->lost[LOST_INSPECTOR]) == 1);
}

/* ---- a disk that fails -------------------------------------------------------------------------- */

static void plan(const int *writes, uint32_t count)
{
	thread_plan_writes(count, writes);
}

#define PLAN(...) plan((const int[]){ __VA_ARGS__ }, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int))

static void write_in_pieces(void)
{
	begin_with_even_lines();
	start(0);
	PLAN(100, -EINTR, 500, 1, -EINTR);
	put(3, 0);
	pass_at(0);
	expect(log_has(3 * LINE));
	expect(load_relaxed(&thread_writes) == 6 && load_relaxed(&thread_sizes[0]) == 3 * LINE &&
	       load_relaxed(&thread_sizes[1]) == 3 * LINE - 100 &&
	       load_relaxed(&thread_sizes[3]) == 3 * LINE - 600 &&
	       load_relaxed(&thread_sizes[5]) == 3 * LINE - 601);
	PLAN(THREAD_WHOLE);
	put(1, 0);
	pass_at(0);
	expect(log_has(4 * LINE) && load_relaxed(&thread_sizes[0]) == LINE);
	inspector_finish();
	expect(strstr(said(), "cannot write") == NULL);
}

static void retry_later(int error, const char *why)
{
	char text[128];

	begin_with_even_lines();
	start(0);
	PLAN(error, error, error);
	put(2, 0);
	pass_at(0);
	expect(read_log() == 0 && load_relaxed(&thread_writes) == 1);
	text_format(text, sizeof(text), "/files (%s); retrying, ", why);
	expect(strstr(said(), text) != NULL);
	pass_at(RETRY_NS - 1);
	expect(load_relaxed(&thread_writes) == 1);
	pass_at(RETRY_NS);
	expect(load_relaxed(&thread_writes) == 2);
	pass_at(2 * RETRY_NS - 1);
	expect(load_relaxed(&thread_writes) == 2);
	pass_at(2 * RETRY_NS);
	expect(load_relaxed(&thread_writes) == 3);
	pass_at(3 * RETRY_NS);
	expect(load_relaxed(&thread_writes) == 4 && log_has(2 * LINE));
	/* From now on as before. */
	put(1, 3 * RETRY_NS);
	pass_at(3 * RETRY_NS);
	expect(log_has(3 * LINE));
	inspector_finish();
	expect(said_at_the_end(": 3 operations, 3 lines, 0 lost\n"));
	expect(strstr(strstr(said(), "cannot write") + 1, "cannot write") == NULL);
}

static void retry_after_an_error(void)
{
	retry_later(-EIO, "Input/output error");
}

static void retry_when_nothing_was_written(void)
{
	retry_later(0, "no room");
}

static void retry_when_the_disk_was_full(void)
{
	retry_later(-ENOSPC, "no room");
}

static void retry_when_the_quota_was_full(void)
{
	retry_later(-EDQUOT, "no room");
}

static void retry_when_the_file_was_too_large(void)
{
	retry_later(-EFBIG, "no room");
}

/* The same if there is no file yet. */
static void retry_to_open(void)
{
	char path[128];
	int fd;

	begin_with_even_lines();
	text_format(path, sizeof(path), "%s/files", thread_dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	expect(fd != -1 && close(fd) == 0);
	start(0);
	put(2, 0);
	pass_at(0);
	expect(strstr(said(), "/files (Not a directory); retrying, ") != NULL);
	expect(unlink(path) == 0);
	pass_at(RETRY_NS - 1);
	expect(read_log() == 0);
	pass_at(RETRY_NS);
	expect(log_has(2 * LINE));
	put(1, RETRY_NS);
	pass_at(RETRY_NS);
	expect(log_has(3 * LINE));
	inspector_finish();
	expect(said_at_the_end(": 3 operations, 3 lines, 0 lost\n"));
}

/* Whole lines stay, half a line is removed and written again. */
static void cut_half_a_line(void)
{
	begin_with_even_lines();
	start(0);
	put(1, 0);
	pass_at(0);
	PLAN(LINE + 188, -ENOSPC);
	put(3, 0);
	pass_at(0);
	expect(log_has(2 * LINE));
	PLAN(1, -EIO);
	pass_at(RETRY_NS);
	expect(log_has(2 * LINE) && load_relaxed(&thread_sizes[0]) == 2 * LINE);
	PLAN(LINE, -EIO);
	pass_at(2 * RETRY_NS);
	expect(log_has(3 * LINE) && load_relaxed(&thread_sizes[0]) == 2 * LINE);
	pass_at(3 * RETRY_NS);
	expect(log_has(4 * LINE));
	inspector_finish();
	expect(said_at_the_end(": 4 operations, 4 lines, 0 lost\n"));
}

/* Half a line that cannot be removed is ended before the next one. */
static void end_half_a_line(void)
{
	begin_with_even_lines();
	start(0);
	put(1, 0);
	pass_at(0);
	store_relaxed(&thread_cannot_cut, 1);
	PLAN(100, -ENOSPC);
	put(1, 0);
	pass_at(0);
	expect(log_has(LINE + 100));
	PLAN(-EIO);
	pass_at(RETRY_NS);
	expect(load_relaxed(&thread_writes) == 1 && load_relaxed(&thread_sizes[0]) == 1 &&
	       log_has(LINE + 100));
	pass_at(2 * RETRY_NS);
	expect(read_log() == 2 * LINE + 101 && memcmp(found, wanted, LINE + 100) == 0);
	expect(found[LINE + 100] == '\n' && memcmp(found + LINE + 101, wanted + LINE, LINE) == 0);
	/* Once. */
	put(1, 2 * RETRY_NS);
	pass_at(2 * RETRY_NS);
	expect(read_log() == 3 * LINE + 101 &&
	       memcmp(found + LINE + 101, wanted + LINE, (size_t)2 * LINE) == 0);
	inspector_finish();
	expect(said_at_the_end(": 3 operations, 3 lines, 0 lost\n"));
}

/* What has no room in the buffer is lost and counted; the rest is written when the disk works. */
static void lose_what_has_no_room(void)
{
	enum { COUNT = 1050, KEPT = LOG_BYTES / LINE - 1 };

	begin_with_even_lines();
	start(0);
	PLAN(-EIO);
	put(COUNT, 0);
	pass_at(0);
	expect(read_log() == 0 && load_relaxed(&thread_writes) == 1);
	expect(load_relaxed(&recorder.region.header->lost[LOST_INSPECTOR]) == COUNT - KEPT);
	pass_at(RETRY_NS);
	expect(log_has((size_t)KEPT * LINE));
	inspector_finish();
	expect(said_at_the_end(": 1050 operations, 1023 lines, 27 lost\n"));
}

/* Nor is anything written at the end, if the disk does not let us. */
static void lose_what_is_left(void)
{
	begin_with_even_lines();
	start(INSPECTOR_AT_END);
	PLAN(LINE + 1, -EIO);
	put(3, 0);
	pass_at(0);
	inspector_finish();
	expect(log_has(LINE));
	expect(said_at_the_end(": 3 operations, 1 lines, 2 lost\n"));
	expect(load_relaxed(&recorder.region.header->lost[LOST_INSPECTOR]) == 2);
}

/* A disk that does not answer: the exit goes on, and what reaches the file after all is not lost. */
static void exit_without_the_disk(void)
{
	uint64_t *lost;

	begin_with_even_lines();
	lost = &recorder.region.header->lost[LOST_INSPECTOR];
	start(0);
	put(1, 0);
	pass_at(0);
	store_release(&thread_is_stuck, 1);
	put(2, 0);
	thread_wait_until_stuck();
	put(3, 0);
	inspector_finish();
	expect(load_relaxed(lost) == 5);
	while (strchr(said(), '\n') == NULL) /* nobody waited for that either */
		sched_yield();
	expect(said_at_the_end(": 6 operations, 1 lines, 5 lost\n"));
	store_release(&thread_is_stuck, 0);
	while (load_relaxed(lost) != 3)
		sched_yield();
	expect(log_has(3 * LINE));
}

static void keep_to_the_quota(void)
{
	settings.has_quota = true;
	settings.quota = 3 * LINE + 1;
	begin_with_even_lines();
	start(0);
	put(2, 0);
	pass_at(0);
	put(1, 0);
	pass_at(0);
	expect(log_has(3 * LINE));
	put(2, 0);
	pass_at(0);
	expect(log_has(3 * LINE));
	inspector_finish();
	expect(said_at_the_end(": 5 operations, 3 lines, 2 lost\n"));
	expect(strstr(said(), "cannot write") == NULL);
}

/* A quota that the user did not set is that of the trace file only. */
static void have_no_quota(void)
{
	settings.has_quota = false;
	settings.quota = LINE;
	begin_with_even_lines();
	start(0);
	put(3, 0);
	pass_at(0);
	expect(log_has(3 * LINE));
	inspector_finish();
}

static void be_readable_for_all(void)
{
	char path[128];
	struct stat st;

	umask(077);
	begin_with_even_lines();
	start(0);
	put(1, 0);
	pass_at(0);
	text_format(path, sizeof(path), "%s/files/node-pid77.log", thread_dir);
	expect(stat(path, &st) == 0 && (st.st_mode & 07777) == 0644);
	inspector_finish();
}

/* Another user's wish for an existing file is respected. */
static void leave_an_old_file_as_it_is(void)
{
	char path[128];
	struct stat st;
	int fd;

	begin_with_even_lines();
	text_format(path, sizeof(path), "%s/files", thread_dir);
	expect(mkdir(path, 0755) == 0);
	text_format(path, sizeof(path), "%s/files/node-pid77.log", thread_dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	expect(fd != -1 && write(fd, "a\nb", 3) == 3);
	start(0);
	put(1, 0);
	pass_at(0);
	expect(read_log() == LINE + 4 && memcmp(found, "a\nb\n", 4) == 0);
	expect(memcmp(found + 4, wanted, LINE) == 0);
	expect(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
	inspector_finish();
}

/* Only root can make such a file. */
static void find_a_log_of_another(void)
{
	char path[128];

	if (geteuid() != 0)
		return;
	begin_with_even_lines();
	text_format(path, sizeof(path), "%s/files", thread_dir);
	expect(mkdir(path, 0755) == 0);
	text_format(path, sizeof(path), "%s/files/node-pid77.log", thread_dir);
	expect(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) == 0);
	expect(chown(path, 12345, (gid_t)-1) == 0);
	start(0);
	put(1, 0);
	pass_at(0);
	expect(read_log() == 0 && strstr(said(), "/files (Operation not permitted); ") != NULL);
	inspector_finish();
	expect(said_at_the_end(": 1 operations, 0 lines, 1 lost\n"));
}

/* ---- communicators ------------------------------------------------------------------------------ */

/* Sends and Recvs have numbers per communicator, also those that get no line. */
static void number_sends(void)
{
	static const uint8_t functions[] = { OP_SEND, OP_ALL_REDUCE, OP_RECV, OP_SEND, OP_RECV };
	uint64_t p2p[3] = { 0, 0, 0 };

	begin_with_even_lines();
	play_init(0x22, 1, 4, 1);
	settings.inspector.filter.least_bytes = 4096;
	start(0);
	for (uint32_t i = 0; i < 20; i++) {
		uint32_t comm = i % 3 == 0 ? 2 : 1;

		ops[i] = op_of(comm, i + 1);
		ops[i].function = functions[i % 5];
		ops[i].bytes = i % 7 == 3 ? 4095 : 4096;
		p2p[comm] += ops[i].function != OP_ALL_REDUCE;
		if (ops[i].bytes == 4096)
			want_line(&recorder.region.comms[comm - 1].info, &ops[i], p2p[comm],
				  THREAD_BEGIN_NS, NULL);
	}
	thread_put_ops(ops, 20);
	pass_at(0);
	expect(log_has(wanted_bytes));
	inspector_finish();
	expect(said_at_the_end(": 20 operations, 17 lines, 3 below the minimum size, 0 lost\n"));
}

/* A record of a communicator that nobody knows is lost; one that is new in this pass is not. */
static void meet_new_communicators(void)
{
	begin_with_even_lines();
	start(0);
	pass_at(0);
	play_init(0x22, 1, 4, 1);
	ops[0] = op_of(2, 1);
	ops[1] = op_of(9, 1);
	ops[2] = op_of(1, 1);
	want_line(&recorder.region.comms[1].info, &ops[0], 0, THREAD_BEGIN_NS, NULL);
	want_line(&recorder.region.comms[0].info, &ops[2], 0, THREAD_BEGIN_NS, NULL);
	thread_put_ops(ops, 3);
	pass_at(0);
	expect(log_has(wanted_bytes));
	inspector_finish();
	expect(said_at_the_end(": 3 operations, 2 lines, 1 lost\n"));
}

/* Every reason, each as often as its number. */
static void count_every_reason(void)
{
	uint32_t count = 0;

	begin_with_even_lines();
	recorder.region.comms[1].info = recorder.region.comms[0].info;
	recorder.region.comms[1].info.id = 2;
	recorder.region.comms[1].info.nranks = 0;
	recorder.region.comms[1].word = UINT64_C(1) << 32;
	settings.inspector.filter = (struct inspector_filter){ .least_bytes = 2,
							       .is_without_p2p = true,
							       .is_kernel_gpu_only = true };
	start(0);
	for (int fate = INSPECTOR_CAPTURED; fate < INSPECTOR_FATES; fate++)
		for (int i = 0; i < fate; i++) {
			struct op_record op = op_of(1, 1);

			op.state = fate == INSPECTOR_CAPTURED ? OP_CAPTURED : OP_DONE;
			op.comm = fate == INSPECTOR_UNKNOWN_RANKS ? 2 : 1;
			op.bytes = fate == INSPECTOR_SMALL ? 1 : 4096;
			if (fate == INSPECTOR_OTHER_FUNCTION)
				op.function = OP_NAME_INTERNED;
			if (fate == INSPECTOR_NO_P2P)
				op.function = OP_SEND;
			if (fate == INSPECTOR_UNKNOWN_SIZE)
				op.bytes = OP_BYTES_UNKNOWN;
			if (fate == INSPECTOR_NO_TIME)
				op.gpu_stop_ns = op.gpu_start_ns;
			if (fate == INSPECTOR_HOST_TIME)
				op.time_source = OP_TIME_NONE;
			ops[count++] = op;
		}
	thread_put_ops(ops, count);
	put(2, 0);
	pass_at(0);
	expect(log_has(2 * LINE));
	inspector_finish();
	expect(said_at_the_end(
		": 38 operations, 2 lines, 1 captured into graphs, 2 of other functions, 3 of "
		"communicators of unknown size, 4 Send and Recv, 5 of unknown size, 6 below the "
		"minimum size, 7 without a time, 8 timed by the host only, 0 lost\n"));
}

/* ---- channels ----------------------------------------------------------------------------------- */

/* A region with details, and nobody who reads them yet. */
static void begin_verbose(void)
{
	setenv("RINGSIDE_MODE", "full", 1);
	setenv("RINGSIDE_DIR", "/%q", 1); /* no usable path */
	setenv("RINGSIDE_BUFFER", "16MiB", 1);
	play_init(0x11, 1, 8, 3);
	play_init(0x22, 1, 8, 3);
	thread_freeze();
	expect(recorder.region.detail_count >= 1 << 14 && recorder.region.ring_count > MOST);
	settings.inspector.is_verbose = true;
	start(0);
}

static struct op_detail kernel_of(uint32_t comm, uint64_t number, uint8_t channel)
{
	return (struct op_detail){ .comm = comm,
				   .kind = OP_DETAIL_KERNEL,
				   .channel = channel,
				   .number = number,
				   .time_ns = { 1, 2, THREAD_BEGIN_NS - 900 + channel,
						THREAD_BEGIN_NS - 400 + channel } };
}

/* A line with these channels. */
static void want_channels(const struct op_record *op, const uint8_t *channels, size_t count)
{
	static struct inspector_channel list[INSPECTOR_CHANNELS];
	struct inspector_events events = { wall_at(op->task_ns, THREAD_BEGIN_NS), list, count };

	for (size_t i = 0; i < count; i++)
		list[i] = (struct inspector_channel){
			wall_at(THREAD_BEGIN_NS - 900 + channels[i], THREAD_BEGIN_NS),
			wall_at(THREAD_BEGIN_NS - 400 + channels[i], THREAD_BEGIN_NS), channels[i]
		};
	want_line(&recorder.region.comms[op->comm - 1].info, op, 0, THREAD_BEGIN_NS, &events);
}

static void put_channels(uint32_t comm, uint64_t number, const uint8_t *channels, size_t count)
{
	static struct op_detail details[300];

	for (size_t i = 0; i < count; i++)
		details[i] = kernel_of(comm, number, channels[i]);
	thread_put_details(details, (uint32_t)count);
}

/* In order; of this operation, on this communicator; and of kernels only. */
static void give_a_line_its_channels(void)
{
	static const uint8_t three[] = { 1, 7, 200 }, mixed[] = { 200, 1, 7 }, two[] = { 0, 3 },
			     backwards[] = { 3, 0 };
	struct op_detail odd[3] = { kernel_of(1, 5, 9), kernel_of(0, 5, 10), kernel_of(1, 5, 11) };

	begin_verbose();
	odd[0].kind = OP_DETAIL_STEP;
	odd[2].kind = OP_DETAIL_PROXY;
	put_channels(1, 5, mixed, 3);
	put_channels(2, 5, backwards, 2);
	put_channels(1, 6, two, 2);
	thread_put_details(odd, 3);
	ops[0] = op_of(1, 5);
	ops[1] = op_of(2, 5);
	ops[2] = op_of(1, 6);
	ops[3] = op_of(1, 5);
	ops[4] = op_of(2, 6);
	want_channels(&ops[0], three, 3);
	want_channels(&ops[1], two, 2);
	want_channels(&ops[2], two, 2);
	want_channels(&ops[3], NULL, 0); /* they are gone */
	want_channels(&ops[4], NULL, 0);
	thread_put_ops(ops, 5);
	pass_at(0);
	expect(log_has(wanted_bytes));
	inspector_finish();
}

static void bound_the_channels_of_a_line(void)
{
	static uint8_t all[INSPECTOR_CHANNELS];

	begin_verbose();
	for (int i = 0; i < INSPECTOR_CHANNELS; i++)
		all[i] = (uint8_t)i;
	/* The first three are too many: the last ones are found first. */
	put_channels(1, 5, all, 3);
	put_channels(1, 5, all, INSPECTOR_CHANNELS);
	ops[0] = op_of(1, 5);
	want_channels(&ops[0], all, INSPECTOR_CHANNELS);
	thread_put_ops(ops, 1);
	pass_at(0);
	expect(log_has(wanted_bytes));
	inspector_finish();
}

/* Channels of an operation that stays open outlive those of any number of others. */
static void keep_channels_of_an_open_operation(void)
{
	static const uint8_t two[] = { 0, 3 };
	static uint8_t all[INSPECTOR_CHANNELS];
	enum { MANY = (1 << 16) / INSPECTOR_CHANNELS + 2 };

	begin_verbose();
	for (int i = 0; i < INSPECTOR_CHANNELS; i++)
		all[i] = (uint8_t)i;
	put_channels(2, 1, two, 2);
	for (uint64_t i = 1; i <= MANY; i++) {
		put_channels(1, i, all, INSPECTOR_CHANNELS);
		ops[0] = op_of(1, i);
		ops[0].bytes = OP_BYTES_UNKNOWN; /* no line, but it is over, too */
		thread_put_ops(ops, 1);
		pass_at(0);
	}
	ops[0] = op_of(2, 1);
	want_channels(&ops[0], two, 2);
	thread_put_ops(ops, 1);
	pass_at(0);
	expect(log_has(wanted_bytes));
	inspector_finish();
}

/* There is room for 65535 channels; with the next one all others are dropped. */
static void drop_channels_without_room(void)
{
	static const uint8_t two[] = { 0, 3 };
	static uint8_t all[255];

	begin_verbose();
	for (int i = 0; i < 255; i++)
		all[i] = (uint8_t)i;
	for (uint64_t i = 1; i <= 256; i++) {
		put_channels(1, i, all, 255);
		if (i % 32 == 0)
			pass_at(0);
	}
	put_channels(2, 1, all, 255); /* 65535 */
	pass_at(0);
	ops[0] = op_of(1, 1);
	want_channels(&ops[0], all, 255);
	thread_put_ops(ops, 1);
	pass_at(0);
	expect(log_has(wanted_bytes));
	put_channels(2, 2, all, 255);
	pass_at(0);
	put_channels(2, 3, two, 2);
	pass_at(0);
	ops[0] = op_of(1, 2);
	ops[1] = op_of(2, 3);
	ops[2] = op_of(2, 2);
	want_channels(&ops[0], NULL, 0);
	want_channels(&ops[1], two, 2);
	want_channels(&ops[2], NULL, 0);
	thread_put_ops(ops, 3);
	pass_at(0);
	expect(log_has(wanted_bytes));
	inspector_finish();
}

/* A detail whose writer never finishes keeps nobody from the others. */
static void pass_an_unfinished_detail(void)
{
	static const uint8_t two[] = { 0, 3 };

	begin_verbose();
	store_release(&recorder.region.header->details_head, 1);
	put_channels(1, 1, two, 2);
	ops[0] = op_of(1, 1);
	want_channels(&ops[0], two, 2);
	thread_put_ops(ops, 1);
	pass_at(0);
	expect(log_has(wanted_bytes));
	inspector_finish();
}

static void finish_the_detail(void)
{
	struct op_detail detail = kernel_of(1, 1, 5);

	if (load_relaxed(&recorder.region.details[0].sequence) == 1)
		return;
	words_copy((uint64_t *)(void *)&recorder.region.details[0] + 1,
		   (const uint64_t *)(const void *)&detail + 1, OP_DETAIL_WORDS - 1);
	store_release(&recorder.region.details[0].sequence, UINT64_C(1));
}

/* Others wait a moment for a writer that needs no more. */
static void await_an_unfinished_detail(void)
{
	static const uint8_t five[] = { 5 };

	thread_on_yield = finish_the_detail;
	begin_verbose();
	ops[0] = op_of(1, 1);
	want_channels(&ops[0], five, 1);
	store_release(&recorder.region.header->details_head, UINT64_C(1));
	thread_put_ops(ops, 1);
	pass_at(0);
	expect(log_has(wanted_bytes));
	inspector_finish();
}

static void make_a_communicator(void)
{
	struct region_comm *comm = &recorder.region.comms[2];

	if (load_relaxed(&comm->word) != 0)
		return;
	words_copy(&comm->info, &recorder.region.comms[0].info, sizeof(comm->info) / 8);
	store_relaxed(&comm->info.id, 3);
	store_release(&comm->word, UINT64_C(1) << 32);
}

/* It appears after its record was taken. */
static void meet_one_in_the_middle_of_a_pass(void)
{
	thread_on_yield = make_a_communicator;
	begin_verbose();
	ops[0] = op_of(3, 1);
	store_release(&recorder.region.header->details_head, UINT64_C(1));
	thread_put_ops(ops, 1);
	pass_at(0);
	want_channels(&ops[0], NULL, 0);
	expect(log_has(wanted_bytes));
	inspector_finish();
	expect(said_at_the_end(": 1 operations, 1 lines, 0 lost\n"));
}

static uint32_t list_of(uint32_t comm, uint64_t number)
{
	return (uint32_t)hash_word(comm, number) & 0xffff;
}

/* Operations whose channels are in one list: the same number, the same communicator, or neither. */
static void keep_lists_apart(void)
{
	static const uint8_t channels[] = { 4, 5, 6 };
	uint64_t numbers[3] = { 1, 2, 1 };
	static const uint32_t comms[3] = { 1, 1, 2 };

	/* Numbers of the three that share a list. */
	while (list_of(1, numbers[1]) != list_of(1, numbers[0]))
		numbers[1]++;
	while (list_of(2, numbers[2]) != list_of(1, numbers[0]))
		numbers[2]++;
	for (int last = 0; last < 3; last++) {
		if (last == 0)
			begin_verbose();
		for (int i = 0; i < 3; i++)
			put_channels(comms[i], numbers[i], &channels[i], 1);
		for (int i = 0; i < 3; i++) {
			int which = (i + last) % 3;

			ops[i] = op_of(comms[which], numbers[which]);
			want_channels(&ops[i], &channels[which], 1);
		}
		thread_put_ops(ops, 3);
		pass_at(0);
		expect(log_has(wanted_bytes));
	}
	inspector_finish();
}

/* A wish for details without a ring of them: plain lines. */
static void write_plain_lines_without_details(void)
{
	begin_with_even_lines();
	settings.inspector.is_verbose = true;
	start(0);
	put(2, 0);
	pass_at(0);
	expect(log_has(2 * LINE));
	inspector_finish();
}

static void need_a_ring(void)
{
	setenv("RINGSIDE_MODE", "profile", 1);
	play_init(0x11, 1, 8, 3);
	expect(inspector_start(&settings, &identity) == ERR_NO_SPACE);
	expect(inspector_has_comm(0, 1));
	inspector_finish();
	expect(said()[0] == '\0');
}

/* ---- metrics ------------------------------------------------------------------------------------ */

static bool has_metrics(const char *name, const char *text)
{
	char path[128];
	FILE *file;
	size_t got;

	text_format(path, sizeof(path), "%s/files/%s", thread_dir, name);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	got = fread(found, 1, sizeof(found) - 1, file);
	fclose(file);
	found[got] = '\0';
	return strstr(found, text) != NULL;
}

static void begin_metrics(int64_t interval_us)
{
	begin_with_even_lines();
	play_init(0x22, 1, 8, 3);
	text_copy(recorder.region.comms[0].info.gpu_uuid, 48, "GPU-1");
	text_copy(recorder.region.comms[1].info.gpu_uuid, 48, "GPU-2");
	settings.inspector.is_prom = true;
	start(interval_us);
}

static void publish_after(int64_t interval_us, uint64_t interval_ns)
{
	begin_metrics(interval_us);
	put(2, 0);
	pass_at(interval_ns - 1);
	expect(!has_metrics("nccl_inspector_metrics_1.prom", ""));
	pass_at(interval_ns);
	expect(has_metrics("nccl_inspector_metrics_1.prom", "collective=\"AllReduce\""));
	expect(has_metrics("nccl_inspector_metrics_2.prom", "# TYPE"));
	expect(!has_metrics("nccl_inspector_metrics_unknown.prom", ""));
	pass_at(2 * interval_ns - 1);
	expect(has_metrics("nccl_inspector_metrics_1.prom", "collective=\"AllReduce\""));
	pass_at(2 * interval_ns);
	expect(!has_metrics("nccl_inspector_metrics_1.prom", "collective=\"AllReduce\""));
	put(3, 0);
	pass_at(2 * interval_ns);
	inspector_finish();
	expect(!has_metrics("nccl_inspector_metrics_1.prom", ""));
	expect(said_at_the_end(
		"/files: 5 operations, 2 in metrics, 3 since the last metrics, 0 lost\n"));
}

static void publish_every_100_ms(void)
{
	publish_after(99999, 100 * MS_NS);
}

static void publish_every_three_seconds(void)
{
	publish_after(3000000, 3 * SECOND_NS);
}

/* The end of a communicator changes nothing. */
static void publish_in_time_only(void)
{
	begin_metrics(1000000);
	put(1, 0);
	store_release(&recorder.region.comms[1].word, recorder.region.comms[1].word | COMM_ENDED);
	pass_at(SECOND_NS - 1);
	expect(!has_metrics("nccl_inspector_metrics_1.prom", ""));
	inspector_finish();
}

/* What was not published is lost and counted, and the next interval begins. */
static void fail_to_publish(void)
{
	begin_metrics(1000000);
	put(1, 0);
	pass_at(SECOND_NS);
	put(2, 0);
	pass_at(SECOND_NS);
	PLAN(-EIO);
	pass_at(2 * SECOND_NS);
	expect(strstr(said(), "/files (Input/output error); retrying, lost operations") != NULL);
	expect(load_relaxed(&recorder.region.header->lost[LOST_INSPECTOR]) == 2);
	put(4, 0);
	pass_at(3 * SECOND_NS);
	inspector_finish();
	expect(said_at_the_end("/files: 7 operations, 5 in metrics, 2 lost\n"));
}

int main(void)
{
	static const struct {
		const char *name;
		void (*body)(void);
	} cases[] = {
		{ "lines are written after an interval, and at the end", write_after_an_interval },
		{ "or when more than half a buffer is used", write_half_a_buffer },
		{ "or when the next line may not fit", write_a_full_buffer },
		{ "or when a communicator has ended", write_what_has_ended },
		{ "which is over when its records were read", wait_for_records_of_the_ended },
		{ "a disk may take lines in pieces", write_in_pieces },
		{ "after an error it is left alone for 200 ms", retry_after_an_error },
		{ "also before there is a file", retry_to_open },
		{ "and when it takes nothing", retry_when_nothing_was_written },
		{ "and when it is full", retry_when_the_disk_was_full },
		{ "or the user's share of it is", retry_when_the_quota_was_full },
		{ "or the file cannot grow", retry_when_the_file_was_too_large },
		{ "half a line is removed and written later", cut_half_a_line },
		{ "or ended, if it cannot be removed", end_half_a_line },
		{ "what has no room is lost and counted", lose_what_has_no_room },
		{ "and what cannot be written at the end", lose_what_is_left },
		{ "and what a disk does not take that does not answer", exit_without_the_disk },
		{ "and what is over the quota", keep_to_the_quota },
		{ "of the user", have_no_quota },
		{ "everybody may read a new log, whatever the umask", be_readable_for_all },
		{ "an old log keeps its rights and its lines", leave_an_old_file_as_it_is },
		{ "Sends and Recvs are numbered per communicator", number_sends },
		{ "a communicator may be new in a pass", meet_new_communicators },
		{ "each reason for having no line is counted", count_every_reason },
		{ "a verbose line has its own channels, in order", give_a_line_its_channels },
		{ "and not too many of them", bound_the_channels_of_a_line },
		{ "however many others came meanwhile", keep_channels_of_an_open_operation },
		{ "unless too many are open", drop_channels_without_room },
		{ "an unfinished detail is passed", pass_an_unfinished_detail },
		{ "the thread waits a moment for one", await_an_unfinished_detail },
		{ "a communicator may be new in the middle of a pass",
		  meet_one_in_the_middle_of_a_pass },
		{ "operations in one list have their own channels", keep_lists_apart },
		{ "another user's log is not touched", find_a_log_of_another },
		{ "without details lines are plain", write_plain_lines_without_details },
		{ "without a ring there is nothing to write", need_a_ring },
		{ "metrics come every 100 ms at most", publish_every_100_ms },
		{ "or after a longer interval", publish_every_three_seconds },
		{ "and at no other time", publish_in_time_only },
		{ "metrics that cannot be written are lost and counted", fail_to_publish },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		thread_test(cases[i].name, cases[i].body);
	return tap_done();
}
