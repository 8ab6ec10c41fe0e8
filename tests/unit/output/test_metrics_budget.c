/* How many series there are at most, that sums stay, and that counters never fall. */
#include "tests/unit/output/metrics_read.h"

/* As many of everything as fit, and the sums of what was put in. */
static void play_crowd(struct play *play, struct recording_process *process)
{
	for (unsigned int i = 0; i < OP_NAMES_INTERNED_MAX; i++)
		snprintf(process->names[i], sizeof(process->names[i]), "New%u", i);
	for (uint32_t c = 0; c < 500; c++) {
		struct recording_comm *comm = play_comm(process, 0x1000 + c, "many", 3, 4);

		for (uint32_t k = 0; k < 8; k++) {
			struct region_total *total = play_total(
				process, comm,
				(uint8_t)(c % 2 ? OP_NAME_INTERNED + (c + k) % 64 : 1 + k % 5),
				UINT64_C(1) << (c + 7 * k) % 60, 1 + c, 1000);

			total->key = (total->key & ~UINT64_C(0xffff00)) | (c * 8 + k) % 10 << 16 |
				     (c + k) % 4 << 8;
		}
		for (uint32_t k = 0; k < 8; k++)
			play_link(process, c / 10 + 1, k & 1, c % 10 * 8 + k, 1);
	}
	play_total(process, NULL, 0, 100, 1000, 1);
	/* Of a communicator that is forgotten, and of one that is not listed. */
	process->totals[1].key &= (UINT64_C(1) << 40) - 1;
	process->totals[2].key |= UINT64_C(0xfffff) << 40;
	(void)play;
}

static uint64_t count_of(const struct recording_process *process)
{
	uint64_t count = 0;

	for (size_t i = 0; i < process->total_count; i++)
		count += process->totals[i].count;
	return count;
}

enum { BUDGET = 11000 }; /* series of one GPU: docs/METRICS.md */

static void test_budget(void)
{
	struct play play = { 0 };
	struct recording_process *process = play_process(&play, "j", 3);
	uint64_t count, steps;
	size_t series;
	char *text;

	play_crowd(&play, process);
	count = count_of(process);
	steps = process->link_count - 1;
	text = written(play_look(&play), NULL, -1);
	series = series_of(text, "", LIST(""));
	printf("# %zu series of one GPU\n", series);
	EXPECT_THAT("a GPU with too much of everything keeps to its budget", series <= BUDGET);
	EXPECT_EQUAL(series_of(text, "nccl_operations_issued_total", LIST("")),
		     METRICS_COMMS_PER_GPU + 1);
	EXPECT_THAT("the most used communicator has its own",
		    series_of(text, "nccl_operations_issued_total",
			      LIST("comm=\"00000000000011f3\"")) == 1);
	EXPECT_THAT("the least used is among the others",
		    series_of(text, "nccl_operations_issued_total",
			      LIST("comm=\"0000000000001000\"")) == 0);
	EXPECT_EQUAL(sum_of(text, "nccl_operations_total", LIST("")), count);
	EXPECT_EQUAL(sum_of(text, "nccl_algorithm_operations_total", LIST("")), count);
	EXPECT_EQUAL(sum_of(text, "nccl_operation_duration_seconds_count", LIST("")), count);
	EXPECT_EQUAL(sum_of(text, "nccl_proxy_transfers_total", LIST("")), steps);
	EXPECT_THAT("peers beyond theirs are another peer",
		    series_of(text, "nccl_proxy_bytes_total", LIST("peer=\"other\"")) > 0);
	free(text);
	text = metrics_of(&play);
	says("the number of folded communicators is reported", text,
	     "ringside_agent_folded{what=\"communicators\"}", "436");
	EXPECT(sum_of(text, "ringside_agent_folded", LIST("sizes")) > 0);
	EXPECT(sum_of(text, "ringside_agent_folded", LIST("functions")) > 0);
	EXPECT(sum_of(text, "ringside_agent_folded", LIST("algorithms")) > 0);
	EXPECT(sum_of(text, "ringside_agent_folded", LIST("peers")) > 0);
	free(text);
	play_release(&play);
}

static void test_living_first(void)
{
	struct play play = { 0 };
	struct recording_process *process = play_process(&play, "j", 3);
	struct live *live;
	char *text;

	for (uint32_t c = 0; c < METRICS_COMMS_PER_GPU + 2; c++) {
		struct recording_comm *comm = play_comm(process, 0x1000 + c, "many", 3, 4);

		play_total(process, comm, OP_ALL_REDUCE, 1024,
			   c == 5   ? 1000
			   : c == 6 ? 2
			   : c == 7 ? 1
				    : 10,
			   1);
		if (c == 5)
			comm->info.finalize_ns = 1;
	}
	live = play_look(&play);
	live->seats[5].in_flight = 2;
	live->seats[7].in_flight = 3;
	text = written(live, NULL, -1);
	EXPECT_EQUAL(
		series_of(text, "nccl_operations_issued_total", LIST("comm=\"0000000000001005\"")),
		0);
	EXPECT_EQUAL(
		series_of(text, "nccl_operations_issued_total", LIST("comm=\"0000000000001006\"")),
		1);
	says("a communicator that is over goes first, however much it was used", text,
	     "nccl_operations_issued_total{nccl_job=\"j\",comm=\"other\",rank=\"3\"}", "1001");
	says("what the others have in flight is added up", text,
	     "nccl_operations_in_flight{nccl_job=\"j\",comm=\"other\",rank=\"3\"}", "5");
	free(text);
	play_release(&play);
}

static void test_sizes(void)
{
	struct play play = { 0 };
	struct recording_process *process = play_process(&play, "j", 3);
	struct recording_comm *comm = play_comm(process, 0xab, "dp", 3, 4);
	char *text;

	play_total(process, comm, OP_ALL_REDUCE, OP_BYTES_UNKNOWN, 1, 1);
	play_total(process, comm, OP_ALL_REDUCE, 0, 1, 1);
	for (unsigned int power = 0; power < 64; power++)
		play_total(process, comm, OP_ALL_REDUCE, UINT64_C(1) << power, 1, 1);
	play_total(process, NULL, 0, 1, 1, 1);
	text = metrics_of(&play);
	EXPECT_EQUAL(series_of(text, "nccl_operations_total", LIST("")), METRICS_SIZES);
	says("small ones are one class", text,
	     "nccl_operations_total{" DP ",function=\"AllReduce\",size=\"1B\"}", "8");
	says("large ones are one class", text,
	     "nccl_operations_total{" DP ",function=\"AllReduce\",size=\"8GiB\"}", "31");
	says("each other power of two is one", text,
	     "nccl_operations_total{" DP ",function=\"AllReduce\",size=\"256B\"}", "1");
	says("so is what is not known", text,
	     "nccl_operations_total{" DP ",function=\"AllReduce\",size=\"unknown\"}", "1");
	free(text);
	play_release(&play);
}

/* A user with many jobs is listed first, and leaves room for another one. */
static void test_jobs_of_users(void)
{
	static char mine[] = "uid=1000\nhang_after_s=60\n",
		    theirs[] = "uid=2000\nhang_after_s=60\n";
	struct recording_process *process;
	struct play play = { 0 };
	char name[16], *text;

	for (int i = 0; i < METRICS_JOBS + 10; i++) {
		snprintf(name, sizeof(name), "mine%d", i);
		process = play_process(&play, name, 0);
		process->owner = 1000;
		play_info(process, mine);
	}
	process = play_process(&play, "theirs", 0);
	process->owner = 2000;
	play_info(process, theirs);
	text = metrics_of(&play);
	EXPECT_EQUAL(series_of(text, "nccl_job_info", LIST("user=\"1000\"")), METRICS_JOBS_OF_USER);
	EXPECT_EQUAL(series_of(text, "nccl_job_info", LIST("nccl_job=\"theirs\"")), 1);
	EXPECT_EQUAL(series_of(text, "nccl_job_hang_threshold_seconds", LIST("")),
		     METRICS_JOBS_OF_USER + 1);
	EXPECT_EQUAL(
		series_of(text, "nccl_job_hang_threshold_seconds", LIST("nccl_job=\"theirs\"")), 1);
	says("what is left out of the user with many is counted", text,
	     "ringside_agent_folded{what=\"job_labels\"}", "74");
	free(text);
	play_release(&play);
}

/* ---- over time ------------------------------------------------------------------------------- */

/* Does every counter of `before` say at least as much in `after`, which has the same order? */
static bool is_monotonic(const char *before, const char *after)
{
	bool is_counter = false;
	size_t length;

	for (const char *line = before; *line != '\0'; line += length + 1) {
		const char *later;
		char series[1024];

		length = strcspn(line, "\n");
		if (strncmp(line, "# TYPE", 6) == 0)
			is_counter = memmem(line, length, " gauge", 6) == NULL;
		if (*line == '#' || !is_counter)
			continue;
		snprintf(series, sizeof(series), "%.*s", (int)length, line);
		*strrchr(series, ' ') = '\0';
		later = line_of(after, series);
		if (later == NULL ||
		    strtod(later + strlen(series), NULL) < strtod(line + strlen(series), NULL)) {
			printf("# %s fell\n", series);
			return false;
		}
		after = later;
	}
	return true;
}

static void test_monotonic(void)
{
	struct play play = { 0 };
	struct recording_process *process = play_process(&play, "j", 3);
	char *before, *after;

	play_crowd(&play, process);
	/* A job within the budget: what is beyond changes places as it is used. */
	process->comm_count = 10;
	process->total_count = 1 + 10 * 8;
	before = metrics_of(&play);
	for (size_t i = 0; i < process->total_count; i++) {
		process->totals[i].count += i;
		process->totals[i].timed += i;
		process->totals[i].bytes += i * 10;
		process->totals[i].timed_bytes += i * 10;
		process->totals[i].sum_ns += i * 1001;
		process->totals[i].buckets[3] += i;
	}
	for (size_t i = 0; i < process->comm_count; i++)
		process->comms[i].counts.issued += i;
	after = metrics_of(&play);
	EXPECT_THAT("counters never fall while a job runs", is_monotonic(before, after));
	EXPECT_THAT("and would be seen to", !is_monotonic(after, before));
	free(before);
	free(after);
	play_release(&play);
}

int main(void)
{
	test_budget();
	test_living_first();
	test_sizes();
	test_jobs_of_users();
	test_monotonic();
	return tap_done();
}
