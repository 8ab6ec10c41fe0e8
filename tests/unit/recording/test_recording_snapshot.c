#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/flight.h"
#include "common/file.h"
#include "common/text.h"
#include "format/region_read.h"
#include "format/tar.h"
#include "recording/recording.h"
#include "tests/support/sample_region.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

static char boot_id[40];

static const char *path_of(const char *name)
{
	static char path[512];

	text_format(path, sizeof(path), "%s/%s", scratch_dir.path, name);
	return path;
}

static void write_file(const char *name, const void *bytes, size_t length)
{
	FILE *file = fopen(path_of(name), "wb");

	if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0)
		abort();
}

static void load(struct recording *recording, const char *path)
{
	recording_init(recording);
	if (recording_add(recording, path, 0) != OK || recording_finish(recording) != OK)
		abort();
}

static void load_memory(struct recording *recording, const void *bytes, size_t length)
{
	recording_init(recording);
	if (recording_add_memory(recording, "memory", bytes, length, 0) != OK ||
	    recording_finish(recording) != OK)
		abort();
}

struct snap {
	unsigned char *bytes;
	size_t length;
};

static struct snap snap_of(const struct recording_process *process, size_t operations)
{
	struct snap snap = { NULL, 0 };

	if (recording_snapshot(process, operations, 0, &snap.bytes, &snap.length) != OK)
		abort();
	return snap;
}

/* ---- the same as it was --------------------------------------------------------------------- */

static bool is_step_same(const struct region_step *a, const struct region_step *b)
{
	return a->step_plus_1 == b->step_plus_1 && a->state == b->state && a->bytes == b->bytes &&
	       memcmp(a->time_ns, b->time_ns, sizeof(a->time_ns)) == 0;
}

static bool is_proxy_same(const struct recording_proxy *a, const struct recording_proxy *b)
{
	const struct region_proxy *p = &a->proxy, *q = &b->proxy;
	bool is_same = p->comm == q->comm && p->peer == q->peer && p->channel == q->channel &&
		       p->number == q->number && p->steps == q->steps && p->done == q->done &&
		       p->start_ns == q->start_ns && p->active_ns == q->active_ns &&
		       p->since_ns == q->since_ns && p->bytes == q->bytes &&
		       p->transmitted == q->transmitted && p->origin_pid == q->origin_pid &&
		       (p->flags & 3) == (q->flags & 3) && a->step_count == b->step_count;

	for (unsigned int i = 0; is_same && i < a->step_count; i++)
		is_same = is_step_same(&a->steps[i], &b->steps[i]);
	return is_same;
}

static bool are_waits_same(const struct recording_proxy *a, size_t a_count,
			   const struct recording_proxy *b, size_t b_count)
{
	struct flight_wait *one, *other;
	size_t ones, others;
	bool is_same;

	if (flight_waits(a, a_count, &one, &ones) != OK ||
	    flight_waits(b, b_count, &other, &others) != OK)
		abort();
	is_same = ones == others && (ones == 0 || memcmp(one, other, ones * sizeof(*one)) == 0);
	free(one);
	free(other);
	return is_same;
}

static bool is_flight_same(const struct recording_flight *a, const struct recording_flight *b)
{
	bool is_same = memcmp(&a->op, &b->op, sizeof(a->op)) == 0 &&
		       a->open_children == b->open_children && a->is_retiring == b->is_retiring;

	/* For operations that are done and linger, channels do not matter. */
	if (!is_same || a->op.state == OP_DONE)
		return is_same;
	is_same = memcmp(a->started, b->started, sizeof(a->started)) == 0 &&
		  memcmp(a->stopped, b->stopped, sizeof(a->stopped)) == 0 &&
		  a->proxy_count == b->proxy_count &&
		  are_waits_same(a->proxies, a->proxy_count, b->proxies, b->proxy_count);
	for (size_t i = 0; is_same && i < a->proxy_count; i++)
		is_same = is_proxy_same(&a->proxies[i], &b->proxies[i]);
	return is_same;
}

static void expect_same(const struct recording_process *a, const struct recording_process *b)
{
	bool is_same = a->flight_count == b->flight_count && a->proxy_count == b->proxy_count;

	for (size_t i = 0; is_same && i < a->flight_count; i++)
		is_same = is_flight_same(&a->flights[i], &b->flights[i]);
	EXPECT_THAT("the same is in flight, and waits for the same", is_same);
	is_same = a->proxy_count == b->proxy_count;
	for (size_t i = 0; is_same && i < a->proxy_count; i++)
		is_same = is_proxy_same(&a->proxies[i], &b->proxies[i]);
	EXPECT_THAT("the same transfers for other processes", is_same);
	is_same = a->comm_count == b->comm_count;
	for (size_t i = 0; is_same && i < a->comm_count; i++)
		is_same = memcmp(&a->comms[i].info, &b->comms[i].info, sizeof(a->comms[i].info)) ==
				  0 &&
			  memcmp(&a->comms[i].counts, &b->comms[i].counts,
				 sizeof(a->comms[i].counts)) == 0 &&
			  a->comms[i].has_counts == b->comms[i].has_counts;
	EXPECT_THAT("the same communicators with the same counts", is_same);
	EXPECT_THAT("the same transfers to and from each peer",
		    a->link_count == b->link_count &&
			    (a->link_count == 0 ||
			     memcmp(a->links, b->links, a->link_count * sizeof(*a->links)) == 0));
	EXPECT(memcmp(a->lost, b->lost, sizeof(a->lost)) == 0 &&
	       memcmp(a->odd, b->odd, sizeof(a->odd)) == 0);
	EXPECT(a->recorded == b->recorded && a->counts_ns == b->counts_ns &&
	       a->has_counts == b->has_counts && a->filling == b->filling);
	EXPECT(memcmp(a->names, b->names, sizeof(a->names)) == 0);
	EXPECT(a->life == b->life && a->process_state == b->process_state);
	EXPECT(strcmp(a->host, b->host) == 0 && strcmp(a->job, b->job) == 0 && a->pid == b->pid &&
	       a->rank == b->rank && strcmp(a->mode, b->mode) == 0 &&
	       a->interface == b->interface && strcmp(a->boot_id, b->boot_id) == 0 &&
	       a->start_ticks == b->start_ticks && a->pid_namespace == b->pid_namespace);
}

/* ---- the tests ------------------------------------------------------------------------------ */

struct given {
	uint64_t list[32];
	size_t count;
};

/* Sequences, or 1000 * communicator + number for live ones. */
static bool note_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct given *given = context;

	if (given->count < 32)
		given->list[given->count++] =
			place == RECORDING_IN_LIVE ? 1000 * op->comm + op->number : op->sequence;
	return true;
}

static bool note_batch(const struct op_batch *batch, enum recording_place place, void *context)
{
	for (uint32_t row = 0; row < batch->rows; row++) {
		struct op_record op = { .sequence = batch->column[OP_WORD_SEQUENCE][row],
					.comm = op_kind_comm(batch->column[OP_WORD_KIND][row]),
					.number = batch->column[OP_WORD_NUMBER][row] };

		note_op(&op, place, context);
	}
	return true;
}

static void expect_walk(const struct recording_process *process, const uint64_t *wanted,
			size_t count)
{
	const uint32_t words = OP_WORD_BIT(OP_WORD_SEQUENCE) | OP_WORD_BIT(OP_WORD_KIND) |
			       OP_WORD_BIT(OP_WORD_NUMBER);
	struct given given = { .count = 0 };
	struct recording_walk walk;

	EXPECT_EQUAL(recording_each_op(process, note_op, &given, &walk), OK);
	EXPECT(given.count == count && memcmp(given.list, wanted, count * sizeof(*wanted)) == 0);
	EXPECT(walk.refused == 0 && walk.damages == 0 && walk.untimed == 0);
	given.count = 0;
	EXPECT_EQUAL(recording_each_batch(process, words, note_batch, &given, NULL), OK);
	EXPECT(given.count == count && memcmp(given.list, wanted, count * sizeof(*wanted)) == 0);
}

static void expect_window(const struct recording_process *process)
{
	struct recording_account account;

	EXPECT_EQUAL(recording_account(&account, process), OK);
	EXPECT_THAT("what it leaves out is neither lost nor damaged",
		    account.is_exact && !account.keeps_all && account.missing == 0 &&
			    account.unread == 0 && account.lost_uncounted == 0);
	EXPECT(account.issued == 13 && account.recorded == 11 && account.in_flight == 2);
	recording_account_release(&account);
}

static void test_region(void)
{
	static const uint64_t last[] = { 8, 9, 10, 11, 1006, 1007 };
	static const uint64_t none[] = { 1006, 1007 };
	static const uint64_t ring[] = { 4, 5, 6, 7, 8, 9, 10, 11, 1006, 1007 };
	struct sample sample = sample_region();
	struct recording region, read;
	struct snap snap;

	/* In a mode in which every record should be there. */
	sample_head(&sample)->mode = REGION_MODE_TRACE;
	sample_head(&sample)->proxy_cursor = SAMPLE_PROXIES;
	write_file("region", sample.bytes, sample.size);
	load(&region, path_of("region"));
	EXPECT(region.count == 1 && region.processes[0]->flight_count == 2 &&
	       region.processes[0]->link_count == 2);
	for (int i = 0; i < 3; i++) {
		snap = snap_of(region.processes[0], i == 0 ? 4 : i == 1 ? 0 : 1000);
		load_memory(&read, snap.bytes, snap.length);
		if (!EXPECT(read.count == 1 && read.trouble_count == 0))
			return;
		EXPECT(read.processes[0]->is_snapshot && read.processes[0]->region == NULL &&
		       read.processes[0]->snapshot_wall_ns != 0);
		EXPECT_EQUAL(read.processes[0]->snapshot_operations, i == 0 ? 4 : i == 1 ? 0 : 8);
		expect_same(region.processes[0], read.processes[0]);
		expect_window(read.processes[0]);
		expect_walk(read.processes[0],
			    i == 0   ? last
			    : i == 1 ? none
				     : ring,
			    i == 0   ? 6
			    : i == 1 ? 2
				     : 10);
		EXPECT_EQUAL(recording_find_flights(&read), OK);
		expect_same(region.processes[0], read.processes[0]);
		recording_release(&read);
		free(snap.bytes);
	}
	recording_release(&region);
	free(sample.bytes);
}

/* Secrets that an older recorder recorded are not passed on. */
static void test_secrets(void)
{
	char info[] = "job=x\nenv.NCCL_ALGO=Ring\nenv.NCCL_X_TOKEN=hidden1\n"
		      "env.NCCL_TOPO_FILE=/t?token=hidden2\n";
	struct sample sample = sample_region();
	struct recording region;
	struct recording_process shown;
	struct snap snap;

	write_file("region", sample.bytes, sample.size);
	load(&region, path_of("region"));
	shown = *region.processes[0];
	shown.info = info;
	shown.info_bytes = sizeof(info) - 1;
	snap = snap_of(&shown, 0);
	EXPECT(memmem(snap.bytes, snap.length, "env.NCCL_ALGO=Ring", 18) != NULL);
	EXPECT(memmem(snap.bytes, snap.length, "hidden", 6) == NULL);
	free(snap.bytes);
	recording_release(&region);
	free(sample.bytes);
}

/*
 * What the sample lacks: a slot being emptied, a proxy operation that waits for its next transfer,
 * a queued one. And the process has continued since it was read: the moment is that of the reading.
 */
static void test_moment(void)
{
	static const uint64_t ring[] = { 8, 9, 10, 11, 1006, 1007 };
	struct sample sample = sample_region();
	struct recording region, read;
	struct region_proxy *proxy;
	struct op_record *op;
	struct snap snap;

	((struct region_live *)sample_slot(&sample, REGION_LIVE, 4))->word |= LIVE_RETIRING;
	proxy = sample_slot(&sample, REGION_PROXIES, 1);
	proxy->start_ns = 1000;
	proxy->active_ns = 2000;
	proxy->since_ns = 5000;
	proxy->bytes = 77;
	proxy = sample_slot(&sample, REGION_PROXIES, 2);
	proxy->flags = PROXY_IS_SEND;
	proxy->start_ns = 1500;
	proxy->posted = proxy->done = proxy->transmitted = 0;
	write_file("region", sample.bytes, sample.size);
	load(&region, path_of("region"));
	EXPECT(region.processes[0]->flights[1].is_retiring &&
	       region.processes[0]->flights[0].proxy_count == 3);
	sample_head(&sample)->ring_head++;
	op = sample_slot(&sample, REGION_RING, SAMPLE_RING_HEAD % SAMPLE_RING);
	*op = sample_op(SAMPLE_RING_HEAD + 1);
	op->comm = 1;
	op->number = 6;
	write_file("region", sample.bytes, sample.size);
	snap = snap_of(region.processes[0], 4);
	load_memory(&read, snap.bytes, snap.length);
	expect_same(region.processes[0], read.processes[0]);
	expect_walk(read.processes[0], ring, 6);
	recording_release(&read);
	recording_release(&region);
	free(snap.bytes);
	free(sample.bytes);
}

/* A snapshot of a snapshot is the same. */
static void test_again(void)
{
	static const uint64_t last[] = { 10, 11, 1006, 1007 };
	struct sample sample = sample_region();
	struct recording region, once, twice;
	struct snap first, second;

	write_file("region", sample.bytes, sample.size);
	load(&region, path_of("region"));
	first = snap_of(region.processes[0], 5);
	load_memory(&once, first.bytes, first.length);
	second = snap_of(once.processes[0], 2);
	load_memory(&twice, second.bytes, second.length);
	if (EXPECT(twice.count == 1 && twice.trouble_count == 0)) {
		expect_same(region.processes[0], twice.processes[0]);
		expect_window(twice.processes[0]);
		expect_walk(twice.processes[0], last, 4);
		EXPECT(twice.processes[0]->snapshot_operations == 2 &&
		       twice.processes[0]->snapshot_wall_ns == once.processes[0]->snapshot_wall_ns);
	}
	recording_release(&twice);
	recording_release(&once);
	recording_release(&region);
	free(first.bytes);
	free(second.bytes);
	free(sample.bytes);
}

static struct sample region_of(pid_t pid, uint64_t start_ticks)
{
	struct sample sample = sample_region();
	struct region_header *header = sample_head(&sample);

	memcpy(header->boot_id, boot_id, sizeof(boot_id));
	header->pid = (uint64_t)pid;
	header->pid_namespace = file_proc_namespace("self");
	header->start_ticks = start_ticks;
	return sample;
}

static uint64_t start_ticks_of(pid_t pid)
{
	unsigned long long ticks = 0;
	char path[64], text[1024] = "";
	FILE *file;

	text_format(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (file == NULL || fgets(text, sizeof(text), file) == NULL)
		abort();
	fclose(file);
	sscanf(strrchr(text, ')') + 2,
	       "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
	       &ticks);
	return ticks;
}

/* A process that is stopped, continues, and ends: its snapshots stay as they were. */
static void test_life(void)
{
	struct recording region, read;
	struct sample sample;
	struct snap snap;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		raise(SIGSTOP);
		pause();
		_exit(0);
	}
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		abort();
	sample = region_of(pid, start_ticks_of(pid));
	write_file("region", sample.bytes, sample.size);
	load(&region, path_of("region"));
	EXPECT(region.processes[0]->life == RECORDING_ALIVE &&
	       region.processes[0]->process_state == 'T');
	snap = snap_of(region.processes[0], 3);
	kill(pid, SIGCONT);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EXPECT_EQUAL(recording_refresh(region.processes[0], 0), OK);
	EXPECT(region.processes[0]->life == RECORDING_KILLED &&
	       region.processes[0]->process_state == 0);
	load_memory(&read, snap.bytes, snap.length);
	EXPECT_THAT("alive then", read.processes[0]->life == RECORDING_ALIVE);
	EXPECT_THAT("stopped then", read.processes[0]->process_state == 'T');
	EXPECT_THAT("its last moment is when the snapshot was made",
		    recording_last_ns(read.processes[0]) == read.processes[0]->counts_ns &&
			    read.processes[0]->counts_ns != 0);
	EXPECT(read.trouble_count == 0 && read.processes[0]->pid_here == -1);
	recording_release(&read);

	/* With the region itself there is nothing to add. */
	recording_init(&read);
	if (recording_add_memory(&read, "snap", snap.bytes, snap.length, 0) != OK ||
	    recording_add(&read, path_of("region"), 0) != OK || recording_finish(&read) != OK)
		abort();
	EXPECT(read.count == 1 && read.processes[0]->region != NULL &&
	       !read.processes[0]->is_snapshot && read.processes[0]->file_count == 0 &&
	       read.processes[0]->life == RECORDING_KILLED && read.processes[0]->flight_count == 2);
	recording_release(&read);
	recording_release(&region);
	free(snap.bytes);
	free(sample.bytes);
}

static pid_t dead_pid(uint64_t *ticks)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	*ticks = start_ticks_of(pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return pid;
}

/* Nothing grows older in a dead process, whenever its snapshot is made. */
static void test_killed(void)
{
	static const char key[] = "snapshot_alive_ns=";
	struct recording region, read;
	struct sample sample;
	struct snap snap;
	uint64_t ticks, last_ns, moment_ns;
	pid_t pid = dead_pid(&ticks);

	sample = region_of(pid, ticks);
	write_file("region", sample.bytes, sample.size);
	load(&region, path_of("region"));
	last_ns = recording_last_ns(region.processes[0]);
	moment_ns = region.processes[0]->counts_ns;
	EXPECT(region.processes[0]->life == RECORDING_KILLED && last_ns != 0 &&
	       last_ns < moment_ns);
	snap = snap_of(region.processes[0], 3);
	load_memory(&read, snap.bytes, snap.length);
	EXPECT_THAT("the moment of its snapshot is its last sign of life",
		    read.processes[0]->counts_ns == last_ns &&
			    recording_last_ns(read.processes[0]) == last_ns &&
			    read.processes[0]->life == RECORDING_KILLED);
	EXPECT_THAT("when it died is unknown without a heartbeat",
		    !recording_end_is_known(region.processes[0]) &&
			    !recording_end_is_known(read.processes[0]));
	recording_release(&read);
	recording_release(&region);
	free(snap.bytes);

	sample_head(&sample)->alive_ns = last_ns + 77;
	write_file("region", sample.bytes, sample.size);
	load(&region, path_of("region"));
	EXPECT_THAT("a heartbeat is a sign of life",
		    recording_last_ns(region.processes[0]) == last_ns + 77);
	region.processes[0]->heartbeat_ns = 1000000000;
	EXPECT_THAT("and shows when it died", recording_end_is_known(region.processes[0]));
	snap = snap_of(region.processes[0], 3);
	load_memory(&read, snap.bytes, snap.length);
	EXPECT_EQUAL(read.processes[0]->counts_ns, last_ns + 77);
	recording_release(&read);
	EXPECT_THAT("the line that says so is there",
		    memmem(snap.bytes, snap.length, key, sizeof(key) - 1));
	recording_release(&region);
	free(snap.bytes);

	sample_head(&sample)->alive_ns = UINT64_MAX / 2;
	write_file("region", sample.bytes, sample.size);
	load(&region, path_of("region"));
	EXPECT_THAT("but not one in the future", recording_last_ns(region.processes[0]) == last_ns);
	recording_release(&region);
	free(sample.bytes);
}

/* One that ended its recording is closed in its snapshot, too. */
static void test_ended(void)
{
	struct sample sample = sample_region();
	struct recording region, read;
	struct snap snap;

	sample_head(&sample)->ended_ns = 1234567;
	write_file("region", sample.bytes, sample.size);
	load(&region, path_of("region"));
	snap = snap_of(region.processes[0], 1);
	load_memory(&read, snap.bytes, snap.length);
	EXPECT(read.processes[0]->life == RECORDING_ENDED && read.trouble_count == 0 &&
	       read.processes[0]->files[0].is_closed);
	recording_release(&read);
	recording_release(&region);
	free(snap.bytes);
	free(sample.bytes);
}

/* Truncated anywhere: that is reported, and everything before it is there. */
static void test_cuts(void)
{
	struct sample sample = sample_region();
	size_t silent = 0, without_flights = 0;
	struct recording region, read;
	struct snap snap;

	write_file("region", sample.bytes, sample.size);
	load(&region, path_of("region"));
	snap = snap_of(region.processes[0], 3);
	for (size_t length = 1; length < snap.length; length++) {
		load_memory(&read, snap.bytes, length);
		silent += read.trouble_count == 0;
		without_flights += read.count == 1 && read.processes[0]->is_final;
		recording_find_flights(&read);
		recording_release(&read);
	}
	EXPECT_EQUAL(silent, 0);
	EXPECT_EQUAL(without_flights, 0);
	recording_release(&region);
	free(snap.bytes);
	free(sample.bytes);
}

struct archive {
	unsigned char *bytes;
	size_t length;
};

static void archive_put(struct archive *archive, const char *name, const void *bytes, size_t length)
{
	size_t padding = name != NULL ? tar_padding(length) : 2 * (size_t)TAR_BLOCK;

	archive->bytes = realloc(archive->bytes, archive->length + TAR_BLOCK + length + padding);
	if (archive->bytes == NULL)
		abort();
	if (name != NULL) {
		if (tar_header(archive->bytes + archive->length, name, length, 0) != OK)
			abort();
		archive->length += TAR_BLOCK;
		memcpy(archive->bytes + archive->length, bytes, length);
		archive->length += length;
	}
	memset(archive->bytes + archive->length, 0, padding);
	archive->length += padding;
}

static struct archive archive_of(const struct recording_process *process)
{
	struct archive archive = { NULL, 0 }, inner = { NULL, 0 };
	struct sample trace = sample_trace(), other = { NULL, 0, 0 };
	struct snap snap = snap_of(process, 2);

	sample_header(&other, TRACE_MAJOR, TRACE_MINOR);
	sample_blocks(&other,
		      "host=node-1\npid=4712\nstart_ticks=1\nrank=4\njob=sample\nmode=trace\n");
	archive_put(&archive, "node-1/agent.json", "{}", 2);
	archive_put(&archive, "node-1/README.txt", "?", 1);
	archive_put(&archive, "node-1/r3-4711.ringside", snap.bytes, snap.length);
	archive_put(&inner, "r4-4712.ringside", other.bytes, other.size);
	archive_put(&inner, NULL, NULL, 0);
	archive_put(&archive, "node-2.tar", inner.bytes, inner.length);
	archive_put(&archive, NULL, NULL, 0);
	free(snap.bytes);
	free(inner.bytes);
	free(trace.bytes);
	free(other.bytes);
	return archive;
}

static void expect_archive(const struct recording *read, const char *name)
{
	static const uint64_t last[] = { 10, 11, 1006, 1007 };
	static const uint64_t all[] = { 1, 2, 3, 4, 5, 6, 7 };
	char wanted[600];

	if (!EXPECT(read->count == 2 && read->trouble_count == 0 && read->files_read == 2 &&
		    read->files_foreign == 1 && read->note_count == 1))
		return;
	text_format(wanted, sizeof(wanted), "%s/node-1/agent.json", name);
	EXPECT(strcmp(read->notes[0].path, wanted) == 0 && strcmp(read->notes[0].text, "{}") == 0);
	text_format(wanted, sizeof(wanted), "%s/node-1/r3-4711.ringside", name);
	EXPECT(strcmp(read->processes[0]->files[0].path, wanted) == 0);
	text_format(wanted, sizeof(wanted), "%s/node-2.tar/r4-4712.ringside", name);
	EXPECT(strcmp(read->processes[1]->files[0].path, wanted) == 0);
	expect_walk(read->processes[0], last, 4);
	expect_walk(read->processes[1], all, 7);
}

static void test_archive(void)
{
	struct sample sample = sample_region();
	struct recording region, read;
	struct archive archive;
	size_t silent = 0, cuts = 0;

	write_file("region", sample.bytes, sample.size);
	load(&region, path_of("region"));
	archive = archive_of(region.processes[0]);
	load_memory(&read, archive.bytes, archive.length);
	expect_archive(&read, "memory");
	recording_release(&read);
	write_file("bundle", archive.bytes, archive.length);
	load(&read, path_of("bundle"));
	expect_archive(&read, path_of("bundle"));
	recording_release(&read);

	/* The same one twice counts once. */
	recording_init(&read);
	for (int i = 0; i < 2; i++)
		if (recording_add_memory(&read, "memory", archive.bytes, archive.length, 0) != OK)
			abort();
	EXPECT(recording_finish(&read) == OK && read.count == 2 &&
	       read.processes[0]->file_count == 1 && read.processes[1]->file_count == 1);
	recording_release(&read);
	for (size_t length = 1; length + 2 * (size_t)TAR_BLOCK < archive.length; length += 97) {
		load_memory(&read, archive.bytes, length);
		silent += read.trouble_count == 0;
		for (size_t i = 0; i < read.trouble_count; i++)
			cuts += read.troubles[i].kind == RECORDING_CUT;
		recording_release(&read);
	}
	EXPECT_EQUAL(silent, 0);
	EXPECT_THAT("a truncated archive is damage, not the end of a process", cuts == 0);
	free(archive.bytes);
	recording_release(&region);
	free(sample.bytes);
}

/* A trace file and a snapshot of the same process: each operation once. */
static void test_with_trace(void)
{
	static const uint64_t all[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1006, 1007 };
	struct sample sample = sample_region(), trace = sample_trace();
	struct recording region, read;
	struct snap snap;

	write_file("region", sample.bytes, sample.size);
	load(&region, path_of("region"));
	snap = snap_of(region.processes[0], 5);
	for (int is_last = 0; is_last < 2; is_last++) {
		recording_init(&read);
		if (is_last && recording_add_memory(&read, "a", snap.bytes, snap.length, 0) != OK)
			abort();
		if (recording_add_memory(&read, "t", trace.bytes, trace.size, 0) != OK)
			abort();
		if (!is_last && recording_add_memory(&read, "a", snap.bytes, snap.length, 0) != OK)
			abort();
		if (recording_finish(&read) != OK || !EXPECT(read.count == 1))
			abort();
		EXPECT(!read.processes[0]->is_snapshot && read.processes[0]->file_count == 2 &&
		       read.processes[0]->flight_count == 2 && read.processes[0]->recorded == 11);
		expect_walk(read.processes[0], all, 13);
		recording_release(&read);
	}
	free(snap.bytes);
	recording_release(&region);
	free(sample.bytes);
	free(trace.bytes);
}

/* Two snapshots of one process: what is in flight is as in the later one. */
static void test_twice(void)
{
	static const uint64_t all[] = { 8, 9, 10, 11, 1007 };
	struct sample sample = sample_region();
	struct recording region, read;
	struct snap snaps[2];

	for (int i = 0; i < 2; i++) {
		if (i == 1) {
			sample_head(&sample)->last_anchor.clock_ns += 1000;
			((struct region_live *)sample_slot(&sample, REGION_LIVE, 1))->word = 0;
		}
		write_file("region", sample.bytes, sample.size);
		load(&region, path_of("region"));
		snaps[i] = snap_of(region.processes[0], 4);
		recording_release(&region);
	}
	for (int first = 0; first < 2; first++) {
		recording_init(&read);
		for (int i = 0; i < 2; i++) {
			const struct snap *snap = &snaps[first ^ i];

			if (recording_add_memory(&read, "a", snap->bytes, snap->length, 0) != OK)
				abort();
		}
		if (recording_finish(&read) != OK || !EXPECT(read.count == 1))
			abort();
		EXPECT(read.processes[0]->is_snapshot && read.processes[0]->file_count == 2 &&
		       read.trouble_count == 0 && read.processes[0]->counts_ns == 2001000);
		expect_walk(read.processes[0], all, 5);
		recording_release(&read);
	}
	free(snaps[0].bytes);
	free(snaps[1].bytes);
	free(sample.bytes);
}

int main(void)
{
	scratch_make();
	region_boot_id(boot_id);
	test_region();
	test_secrets();
	test_moment();
	test_again();
	test_life();
	test_killed();
	test_ended();
	test_cuts();
	test_archive();
	test_with_trace();
	test_twice();
	return tap_done();
}
