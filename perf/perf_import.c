/*
 * How fast logs of other tools are read, in MB of text per second, on one core.
 *
 * Logs are generated in memory in the formats of NCCL Inspector v4.0 (every line complete), v4.0 verbose with eight
 * channels, v4.4 (marker lines, so that lines are half as long) and CoMMA. Each is read ("scan": every line
 * checked, every record made) and imported ("import": also written to a trace file below /tmp). CPU time; the best
 * of a few rounds, because other work only adds to it.
 *
 * Usage: perf_import [MIB]; prints one "name value" line per result.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "format/trace_write.h"
#include "import/foreign.h"

enum { ROUNDS = 7, CHANNELS = 8, PER_DUMP = 16, COMMS = 3 };
#define T0 UINT64_C(1767225600000000)

struct text {
	char *bytes;
	size_t used;
	size_t room;
};

static void fail(const char *what)
{
	fprintf(stderr, "perf_import: %s\n", what);
	exit(1);
}

static void put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *text, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	text->used += (size_t)vsnprintf(text->bytes + text->used, text->room - text->used, format,
					values);
	va_end(values);
	if (text->used + 65536 > text->room) {
		text->room *= 2;
		text->bytes = realloc(text->bytes, text->room);
		if (text->bytes == NULL)
			fail("out of memory");
	}
}

/* Numbers of different lengths, deterministic. */
static uint64_t scatter(uint64_t number, uint64_t most)
{
	return (number * UINT64_C(0x9e3779b97f4a7c15) >> 20) % most;
}

/* ---- logs ------------------------------------------------------------------------------------ */

static void put_whose(struct text *text, const char *version, uint64_t number)
{
	static const char *const names[COMMS] = { "world", "tensor", "data" };
	uint64_t comm = number / PER_DUMP % COMMS;

	put(text,
	    "\"header\":{\"id\":\"0x8cda0130ee5eb%" PRIu64 "\",\"comm_name\":\"%s\",\"rank\":3,"
	    "\"n_ranks\":8,\"nnodes\":1},\"metadata\":{\"inspector_output_format_version\":\"%s\","
	    "\"git_rev\":\"unknown\",\"rec_mechanism\":\"nccl_profiler_interface\","
	    "\"dump_timestamp_us\":%" PRIu64 ",\"hostname\":\"node0001\",\"pid\":29630},",
	    comm, names[comm], version, T0 + number * 500);
}

static void put_perf(struct text *text, uint64_t number, const char *algorithm)
{
	static const char *const functions[] = { "AllReduce", "AllGather", "ReduceScatter",
						 "Broadcast" };
	uint64_t time_us = 20 + scatter(number, 9000);

	put(text,
	    "\"coll_perf\":{\"coll\":\"%s\",%s\"coll_sn\":%" PRIu64
	    ",\"coll_msg_size_bytes\":%" PRIu64 ",\"coll_exec_time_us\":%" PRIu64
	    ",\"coll_timing_source\":\"kernel_gpu\","
	    "\"coll_algobw_gbs\":%.6f,\"coll_busbw_gbs\":%.6f",
	    functions[scatter(number, 4)], algorithm, number / 4,
	    UINT64_C(1024) << scatter(number + 1, 18), time_us,
	    (double)scatter(number + 2, 400000000) / 1e6,
	    (double)scatter(number + 3, 400000000) / 1e6);
}

static void put_channels(struct text *text, const char *what, const char *suffix, uint64_t from)
{
	put(text,
	    ",\"event_trace_%s\":{\"coll_start_%s\":%" PRIu64 ",\"coll_stop_%s\":%" PRIu64
	    ",\"kernel_events\":[",
	    what, suffix, from, suffix, from + 4);
	for (uint64_t i = 0; i < CHANNELS; i++)
		put(text,
		    "%s{\"channel_id\":%" PRIu64 ",\"kernel_start_%s\":%" PRIu64
		    ",\"kernel_stop_%s\":%" PRIu64 ",\"kernel_record_%s\":%" PRIu64 "}",
		    i > 0 ? "," : "", i, suffix, from + 10 + i, suffix, from + 40 + i, suffix,
		    from + 39 + i);
	put(text, "]}");
}

static void put_plain(struct text *text, uint64_t number)
{
	put(text, "{");
	put_whose(text, "v4.0", number);
	put_perf(text, number, "");
	put(text, "}}\n");
}

static void put_verbose(struct text *text, uint64_t number)
{
	put(text, "{");
	put_whose(text, "v4.0", number);
	put_perf(text, number, "");
	put_channels(text, "sn", "sn", 1);
	put_channels(text, "ts", "ts", T0 + number * 500 - 20000);
	put(text, "}}\n");
}

static void put_marked(struct text *text, uint64_t number)
{
	if (number % PER_DUMP == 0) {
		put(text, "{");
		put_whose(text, "v4.4", number);
		put(text,
		    "\"dump_stats\":{\"coll_records\":%d,\"coll_dropped_total\":0,"
		    "\"coll_dropped_since_last_dump\":0,\"p2p_records\":0,\"p2p_dropped_total\":0,"
		    "\"p2p_dropped_since_last_dump\":0}}\n",
		    PER_DUMP);
	}
	put(text, "{");
	put_perf(text, number, "\"coll_algo\":\"RING\",\"coll_proto\":\"LL128\",");
	put(text, "}}\n");
}

static void put_comma(struct text *text, uint64_t number)
{
	uint64_t start = T0 + number * 500, time_us = 20 + scatter(number, 9000);

	put(text,
	    "{\"algo\":\"ring\",\"args\":{\"size\":%" PRIu64
	    "},\"cat\":\"COLL\",\"child_dur\":%" PRIu64 ",\"child_start_ts\":%" PRIu64
	    ",\"comm_hash\":\"0x58aecebabb9e37af\",\"dur\":%" PRIu64
	    ",\"n_max_channel\":8,\"name\":\"all_reduce\",\"ph\":\"X\",\"proto\":\"simple\","
	    "\"rank\":0,"
	    "\"seq_num\":%" PRIu64 ",\"ts\":%" PRIu64 "}\n",
	    UINT64_C(1024) << scatter(number + 1, 18), time_us, start + 40, time_us + 60, number,
	    start);
}

/* ---- reading them ---------------------------------------------------------------------------- */

struct target {
	struct trace_writer writer;
	struct op_record ops[TRACE_OPS_PER_BLOCK];
	struct op_detail details[TRACE_OPS_PER_BLOCK];
	uint32_t op_count;
	uint32_t detail_count;
	uint64_t records;
};

static bool count_op(const struct op_record *op, uint32_t process, void *context)
{
	struct target *target = context;

	(void)op, (void)process;
	target->records++;
	return true;
}

static bool write_op(const struct op_record *op, uint32_t process, void *context)
{
	struct target *target = context;

	(void)process;
	target->records++;
	target->ops[target->op_count++] = *op;
	if (target->op_count < TRACE_OPS_PER_BLOCK)
		return true;
	target->op_count = 0;
	return trace_write_ops(&target->writer, target->ops, TRACE_OPS_PER_BLOCK) == OK;
}

static bool write_detail(const struct op_detail *detail, uint32_t process, void *context)
{
	struct target *target = context;

	(void)process;
	target->details[target->detail_count++] = *detail;
	if (target->detail_count < TRACE_OPS_PER_BLOCK)
		return true;
	target->detail_count = 0;
	return trace_write_details(&target->writer, target->details, TRACE_OPS_PER_BLOCK) == OK;
}

/* Seconds of CPU time to read it once. */
static double read_once(int fd, struct target *target, const struct foreign_request *request)
{
	uint64_t start = clock_system_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct foreign_log log;

	target->records = 0;
	target->op_count = target->detail_count = 0;
	foreign_log_init(&log);
	if (foreign_read(&log, fd, request) != OK || log.damaged > 0 || target->records == 0)
		fail("cannot read a log");
	foreign_log_release(&log);
	return (double)(clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / 1e9;
}

static void import(struct target *target, int fd, const struct foreign_request *request,
		   double *best)
{
	char directory[] = "/tmp/bench_importXXXXXX", path[64];
	double seconds;

	if (mkdtemp(directory) == NULL)
		fail("cannot create a directory below /tmp");
	snprintf(path, sizeof(path), "%s/trace", directory);
	if (trace_writer_open(&target->writer, path, 0600, 0) != OK)
		fail("cannot create a file below /tmp");
	seconds = read_once(fd, target, request);
	if (*best == 0 || seconds < *best)
		*best = seconds;
	trace_writer_close(&target->writer);
	unlink(path);
	rmdir(directory);
}

static void measure(const char *name, void (*put_line)(struct text *, uint64_t), size_t mib)
{
	struct text text = { .room = 1 << 20 };
	struct target *target = calloc(1, sizeof(*target));
	const struct foreign_request scan = { .process = -1,
					      .visit_op = count_op,
					      .context = target };
	const struct foreign_request whole = {
		.process = -1, .visit_op = write_op, .visit_detail = write_detail, .context = target
	};
	double scan_best = 0, import_best = 0, megabytes;
	int fd = memfd_create("log", MFD_CLOEXEC);

	text.bytes = malloc(text.room);
	if (fd == -1 || target == NULL || text.bytes == NULL)
		fail("out of memory");
	for (uint64_t i = 0; text.used < mib << 20 || i % PER_DUMP != 0; i++)
		put_line(&text, i);
	if (write(fd, text.bytes, text.used) != (ssize_t)text.used)
		fail("out of memory");
	for (int i = 0; i < ROUNDS; i++) {
		double seconds = read_once(fd, target, &scan);

		if (scan_best == 0 || seconds < scan_best)
			scan_best = seconds;
		import(target, fd, &whole, &import_best);
	}
	megabytes = (double)text.used / 1e6;
	printf("%s_scan_mb_per_s %.0f\n", name, megabytes / scan_best);
	printf("%s_import_mb_per_s %.0f\n", name, megabytes / import_best);
	printf("%s_import_operations_per_s %.0f\n", name, (double)target->records / import_best);
	free(target);
	free(text.bytes);
	close(fd);
}

int main(int argc, char **argv)
{
	size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;

	if (mib == 0 || mib > 512)
		fail("expected 1 to 512 MiB");
	measure("inspector_v4.0", put_plain, mib);
	measure("inspector_v4.0_verbose", put_verbose, mib);
	measure("inspector_v4.4", put_marked, mib);
	measure("comma", put_comma, mib);
	return 0;
}
