/*
 * How fast Prometheus' answers become verdicts: a hung job with all ranks in four communicators, generated in
 * memory in Prometheus' format. One rank has not called the operation that the others are in.
 *
 * Usage: perf_prom [RANKS]; prints one "name value" line per result: MB of all answers, MB per second read by
 * prom_take(), seconds until the recording is complete, until hangs and stragglers are found, the largest answer,
 * and peak memory with it. CPU time on one core.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "analysis/job.h"
#include "common/attributes.h"
#include "doctor/prom.h"

enum { COMMS = 4, ON_A_NODE = 8, GROUP = 64, LATE = 4711 };
#define JOB "\"nccl_job\":\"llm-pretraining-7\""

struct text {
	char *bytes;
	size_t used;
	size_t room;
};

static void fail(const char *what)
{
	fprintf(stderr, "perf_prom: %s\n", what);
	exit(1);
}

static void put(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);

static void put(struct text *text, const char *format, ...)
{
	va_list values;

	if (text->used + 4096 > text->room) {
		text->room = text->room * 2 + 65536;
		text->bytes = realloc(text->bytes, text->room);
		if (text->bytes == NULL)
			fail("out of memory");
	}
	va_start(values, format);
	text->used += (size_t)vsnprintf(text->bytes + text->used, text->room - text->used, format,
					values);
	va_end(values);
}

/* The first communicator has all ranks, the others have groups of them. */
static uint64_t hash_of(unsigned int comm, unsigned int rank)
{
	unsigned int group = comm == 0 ? 0 : rank / GROUP * COMMS + comm;

	return (group + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static unsigned int rank_in(unsigned int comm, unsigned int rank)
{
	return comm == 0 ? rank : rank % GROUP;
}

static void put_member(struct text *text, unsigned int comm, unsigned int rank)
{
	put(text, "\"comm\":\"%016" PRIx64 "\",", hash_of(comm, rank));
}

static void put_value(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);

static void put_value(struct text *text, const char *format, ...)
{
	char value[64];
	va_list values;

	va_start(values, format);
	vsnprintf(value, sizeof(value), format, values);
	va_end(values);
	put(text, "},\"value\":[1700000100.123,\"%s\"]},", value);
}

static void put_process(struct text *text, unsigned int rank)
{
	put(text,
	    "{\"metric\":{\"global_rank\":\"%u\",\"gpu\":\"%u\",\"gpu_uuid\":\"GPU-%08x-1111-2222-"
	    "3333-"
	    "444455556666\",\"host\":\"node%05u\",\"interface\":\"5\",\"local_rank\":\"%u\","
	    "\"mode\":"
	    "\"flight\"," JOB ",\"pid\":\"%u\",\"state\":\"alive\",\"world_size\":\"16384\"",
	    rank, rank % ON_A_NODE, rank, rank / ON_A_NODE, rank % ON_A_NODE, 40000 + rank);
	put_value(text, "1700000098.%03u", rank % 1000);
}

static void put_info(struct text *text, unsigned int comm, unsigned int rank, unsigned int ranks)
{
	put(text, "{\"metric\":{");
	put_member(text, comm, rank);
	put(text,
	    "\"comm_name\":\"group%u\",\"global_rank\":\"%u\",\"gpu\":\"%u\",\"host\":\"node%"
	    "05u\"," JOB ",\"nnodes\":\"%u\",\"nranks\":\"%u\",\"pid\":\"%u\",\"rank\":\"%u\"",
	    comm, rank, rank % ON_A_NODE, rank / ON_A_NODE, (comm == 0 ? ranks : GROUP) / ON_A_NODE,
	    comm == 0 ? ranks : GROUP, 40000 + rank, rank_in(comm, rank));
	put_value(text, "1");
}

static void put_numbers(struct text *text, unsigned int comm, unsigned int rank)
{
	static const char *const names[] = {
		"nccl_collective_number_issued",  "nccl_collective_signature",
		"nccl_last_activity_age_seconds", "nccl_oldest_operation_age_seconds",
		"nccl_operation_number_done",	  "nccl_operation_number_issued"
	};
	bool is_in = comm == 0 && rank != LATE;

	for (unsigned int i = 0; i < ARRAY_LENGTH(names); i++) {
		put(text, "{\"metric\":{\"__name__\":\"%s\",", names[i]);
		put_member(text, comm, rank);
		put(text, JOB ",\"rank\":\"%u\"", rank_in(comm, rank));
		if (i == 1)
			put_value(text, "%u", is_in ? 4000123 : 3999999);
		else if (i == 2 || i == 3)
			put_value(text, "%s.123456789", i == 2 || is_in ? "61" : "0");
		else
			put_value(text, "%u", 81234 + (is_in && i != 4));
	}
}

static void put_oldest(struct text *text, unsigned int rank)
{
	put(text, "{\"metric\":{");
	put_member(text, 0, rank);
	put(text,
	    "\"count\":\"6553600\",\"datatype\":\"bfloat16\",\"function\":\"AllReduce\","
	    "\"kernels_started\":\"0-15\",\"kernels_stopped\":\"none\",\"match\":\"81235\"," JOB
	    ",\"node\":\"node%05u\",\"number\":\"81235\",\"peer\":\"%u\",\"rank\":\"%u\",\"root\":"
	    "\"0\","
	    "\"signature\":\"4000123\",\"state\":\"running\",\"waits_for\":\"recv_net\"",
	    rank / ON_A_NODE, rank > 0 ? rank - 1 : 0, rank);
	put_value(text, "1");
}

static void put_wait(struct text *text, unsigned int rank)
{
	put(text, "{\"metric\":{\"channels\":\"0-15\",");
	put_member(text, 0, rank);
	put(text,
	    JOB ",\"node\":\"node%05u\",\"peer\":\"%u\",\"rank\":\"%u\",\"waits_for\":\"recv_net\"",
	    rank / ON_A_NODE, rank > 0 ? rank - 1 : 0, rank);
	put_value(text, "60.5");
}

static void put_sum(struct text *text, unsigned int comm, unsigned int rank, bool is_edge)
{
	put(text, "{\"metric\":{");
	put_member(text, comm, rank);
	if (!is_edge)
		put(text, "\"function\":\"AllReduce\",");
	put(text, JOB);
	if (is_edge)
		put(text, ",\"peer\":\"%u\"", rank_in(comm, rank) + 1);
	put(text, ",\"rank\":\"%u\"%s", rank_in(comm, rank), is_edge ? "" : ",\"size\":\"16MiB\"");
	put_value(text, "%u.123456789", 1000 + rank % 7);
}

static void put_rank(struct text *text, const char *name, unsigned int rank, unsigned int ranks)
{
	bool is_in = rank != LATE;

	if (strcmp(name, "processes") == 0)
		put_process(text, rank);
	if (strcmp(name, "operations in flight") == 0 && is_in)
		put_oldest(text, rank);
	if (strcmp(name, "what they wait for") == 0 && is_in)
		put_wait(text, rank);
	for (unsigned int comm = 0; comm < COMMS; comm++) {
		if (strcmp(name, "communicators") == 0)
			put_info(text, comm, rank, ranks);
		if (strcmp(name, "progress of ranks") == 0 && (comm == 0 || !is_in))
			put_numbers(text, comm, rank);
		if (strstr(name, " now") || strstr(name, " before"))
			put_sum(text, comm, rank,
				strstr(name, "wire") || strstr(name, "transfers"));
	}
}

static struct text make_answer(const char *name, unsigned int ranks)
{
	struct text text = { 0 };

	put(&text, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[");
	for (unsigned int rank = 0; rank < ranks; rank++)
		put_rank(&text, name, rank, ranks);
	if (text.bytes[text.used - 1] == ',')
		text.used--;
	put(&text, "]}}");
	return text;
}

static double seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double peak_mib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss / 1024;
}

/* Answers arrive one after the other, as from ringside-fetch. */
static double read_all(struct prom *prom, unsigned int ranks, double *bytes, double *largest)
{
	char why[PROM_WHY_SIZE];
	double spent = 0;

	for (size_t i = 0; prom_path(prom, i) != NULL; i++) {
		struct text text = make_answer(prom_name(prom, i), ranks);
		double from = seconds();

		if (prom_take(prom, i, text.bytes, text.used, why, sizeof(why)) != OK)
			fail(why);
		spent += seconds() - from;
		*bytes += (double)text.used;
		*largest = (double)text.room > *largest ? (double)text.room : *largest;
		free(text.bytes);
	}
	return spent;
}

static double judge(struct prom *prom, const struct recording *recording, double *slow_s)
{
	struct hang_options hang = { .hang_ns = 0 };
	struct slow_sums_options slow = { .threshold = 0 };
	struct verdicts verdicts;
	double from = seconds(), hang_s;
	struct job job;

	verdicts_init(&verdicts);
	hang.sources = prom_sources(prom, &hang.source_count);
	if (job_make(&job, recording) != OK || hang_find(&verdicts, &job, &hang) != OK)
		fail("out of memory");
	hang_s = seconds() - from;
	from = seconds();
	if (prom_slow(prom, &verdicts, &slow) != OK)
		fail("out of memory");
	*slow_s = seconds() - from;
	verdicts_sort(&verdicts);
	if (verdicts.count == 0 || verdicts.list[0].class != VERDICT_NEVER_ISSUED ||
	    verdicts.list[0].rank != LATE)
		fail("the verdict is wrong");
	job_release(&job);
	verdicts_release(&verdicts);
	return hang_s;
}

int main(int argc, char **argv)
{
	unsigned int ranks = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 16384;
	struct prom_options options = { .job = "llm-pretraining-7" };
	struct prom *prom = prom_new(&options);
	double bytes = 0, largest = 0, spent, from, hang_s, slow_s;
	struct recording recording;

	if (prom == NULL || ranks <= LATE)
		fail("usage: perf_prom [RANKS], more than 4711");
	spent = read_all(prom, ranks, &bytes, &largest);
	printf("answers_mb %.1f\nread_mb_s %.0f\n", bytes / 1e6, bytes / 1e6 / spent);
	recording_init(&recording);
	from = seconds();
	if (prom_finish(prom, &recording) != OK)
		fail("out of memory");
	printf("finish_s %.2f\n", seconds() - from);
	hang_s = judge(prom, &recording, &slow_s);
	printf("hang_s %.2f\nslow_s %.2f\nlargest_answer_mb %.1f\npeak_mib %.0f\n", hang_s, slow_s,
	       largest / 1e6, peak_mib());
	recording_release(&recording);
	prom_free(prom);
	return 0;
}
