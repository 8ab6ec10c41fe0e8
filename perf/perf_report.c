/*
 * How fast a report is made, and how much memory it needs.
 *
 * A benchmark job of 8 ranks (AllReduce, AllGather, ReduceScatter of three small sizes in turn) is simulated by
 * src/sim until it has the requested number of operations, written as trace files, and read back: once only reading
 * the columns that a report needs, and once for the whole report. Measures CPU time of this one thread, with the
 * files in the page cache. The difference of the two is the cost of src/analysis.
 *
 * Usage: perf_report [MILLIONS | DIRECTORY]; prints one "name value" line per result. Default: 2 million.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/timeline_report.h"
#include "sim/sim_engine.h"
#include "sim/sim_job.h"

enum { RANKS = 8, CALLS_PER_ITERATION = 9, ROUNDS = 3 };

static void fail(const char *what)
{
	fprintf(stderr, "perf_report: %s\n", what);
	exit(1);
}

static double processor_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static void write_job(const char *directory, double millions)
{
	struct sim_options options;
	struct sim_result result;
	struct sim_job job;
	char why[256];

	sim_options_init(&options);
	options.nodes = 1;
	options.gpus = RANKS;
	options.workload = SIM_LOOP;
	options.sizes[0] = 1 << 10;
	options.sizes[1] = 1 << 12;
	options.sizes[2] = 1 << 16;
	options.size_count = 3;
	options.is_offline = true;
	options.times = SIM_TIMES_KERNEL;
	options.is_times_said = true;
	options.iterations = (uint64_t)(millions * 1e6 / RANKS / CALLS_PER_ITERATION) + 1;
	if (sim_options_finish(&options, why, sizeof(why)) != OK ||
	    sim_job_init(&job, &options) != OK || sim_result_init(&result, &job) != OK ||
	    sim_offline_run(&job, directory, &result, why, sizeof(why)) != OK)
		fail("cannot write the job");
	sim_result_release(&result);
	sim_job_release(&job);
}

/* In a separate process, so that its memory does not count. */
static void write_apart(const char *directory, double millions)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		write_job(directory, millions);
		_exit(0);
	}
	if (child == -1 || waitpid(child, &status, 0) != child || status != 0)
		fail("cannot write the job");
}

static bool count_rows(const struct op_batch *batch, enum recording_place place, void *context)
{
	(void)place;
	*(uint64_t *)context += batch->rows;
	return true;
}

/* Reads what the report needs and does nothing with it. */
static double walk(const struct recording *recording, uint64_t *ops)
{
	const uint32_t words = (OP_WORDS_TIME & ~OP_WORD_BIT(OP_WORD_TASK)) |
			       OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_MATCH) |
			       OP_WORD_BIT(OP_WORD_SIGNATURE) | OP_WORD_BIT(OP_WORD_BYTES) |
			       OP_WORD_BIT(OP_WORD_ENDS) | OP_WORD_BIT(OP_WORD_STEPS) |
			       OP_WORD_BIT(OP_WORD_WAITS + OP_WAIT_SEND_NET);
	double start_s = processor_s();

	*ops = 0;
	for (size_t p = 0; p < recording->count; p++)
		if (recording_each_batch(recording->processes[p], words, count_rows, ops, NULL) !=
		    OK)
			fail("cannot read the files");
	return processor_s() - start_s;
}

static double report_once(const struct recording *recording, uint64_t *ops, uint64_t *memory_bytes)
{
	struct timeline_report report;
	double start_s = processor_s(), spent_s;

	if (timeline_report_make(&report, recording, NULL, NULL) != OK)
		fail("cannot make the report");
	spent_s = processor_s() - start_s;
	*ops = report.completeness.read;
	*memory_bytes = report.memory_bytes;
	timeline_report_release(&report);
	return spent_s;
}

static void measure(const char *directory)
{
	double load_s = processor_s(), walk_s = 1e9, report_s = 1e9;
	uint64_t walked = 0, ops = 0, memory_bytes = 0;
	struct recording recording;
	long before_kib;

	recording_init(&recording);
	if (recording_add(&recording, directory, RECORDING_TRACES_ALONE) != OK ||
	    recording_finish(&recording) != OK || recording.count == 0)
		fail("nothing to read");
	load_s = processor_s() - load_s;
	before_kib = peak_kib();
	for (int round = 0; round < ROUNDS; round++) {
		double spent_s = walk(&recording, &walked);

		walk_s = spent_s < walk_s ? spent_s : walk_s;
		spent_s = report_once(&recording, &ops, &memory_bytes);
		report_s = spent_s < report_s ? spent_s : report_s;
	}
	if (ops != walked || ops == 0)
		fail("different numbers of operations in both passes");
	printf("report_processes %zu\n", recording.count);
	printf("report_operations %llu\n", (unsigned long long)ops);
	printf("report_open_ns_per_op %.1f\n", load_s * 1e9 / (double)ops);
	printf("report_walk_ns_per_op %.1f\n", walk_s * 1e9 / (double)ops);
	printf("report_whole_ns_per_op %.1f\n", report_s * 1e9 / (double)ops);
	printf("report_thinking_ns_per_op %.1f\n", (report_s - walk_s) * 1e9 / (double)ops);
	printf("report_million_ops_per_s %.2f\n", (double)ops / report_s / 1e6);
	printf("report_joins_mib %.1f\n", (double)memory_bytes / 1048576);
	printf("report_peak_mib %.1f\n", (double)peak_kib() / 1024);
	printf("report_peak_before_mib %.1f\n", (double)before_kib / 1024);
	recording_release(&recording);
}

static void remove_files(const char *directory)
{
	DIR *list = opendir(directory);
	struct dirent *entry;

	while (list != NULL && (entry = readdir(list)) != NULL)
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(list), entry->d_name, 0);
	if (list != NULL)
		closedir(list);
	rmdir(directory);
}

int main(int argc, char **argv)
{
	char directory[] = "/tmp/bench-report-XXXXXX";
	double millions = argc > 1 ? atof(argv[1]) : 2;

	if (argc > 1 && millions <= 0) {
		measure(argv[1]);
		return 0;
	}
	if (mkdtemp(directory) == NULL)
		fail("cannot create a directory for the files");
	write_apart(directory, millions);
	measure(directory);
	remove_files(directory);
	return 0;
}
