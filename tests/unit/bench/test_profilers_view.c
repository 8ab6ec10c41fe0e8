/*
 * A comparison as text (tests/golden/profilers.txt; REWRITE=1 updates it, to be reviewed), as a page and as JSON,
 * which is read back. With an argument: writes the page there, to be opened in a browser.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/profilers.h"
#include "import/foreign.h"
#include "tests/unit/bench/profilers_stage.h"
#include "tests/tap.h"

enum { CALLS = 12, RUNS = 5, STEPS = CALLS + 3 };

#define GOLDEN "tests/golden/profilers.txt"
#define EVIL "<img src=x onerror=alert(1)>&\"'"

enum { GOOD = 1, LOSSY = 2, SUMS = 3, OTHER = 4 };

static void fill_cells(struct stage_job *job, uint8_t mode, double factor)
{
	static const uint64_t sizes[] = { 1024, 32768, 1 << 20 };

	for (size_t i = 0; i < 3; i++) {
		stage_cell(job, mode, OP_ALL_REDUCE, sizes[i], CALLS, factor);
		stage_cell(job, mode, OP_ALL_GATHER, sizes[i], CALLS, factor);
		stage_cell(job, mode, OP_BROADCAST, sizes[i], CALLS, factor);
	}
}

static void fill_profiles(struct ncclsee_profile profiles[STAGE_RANKS])
{
	memset(profiles, 0, STAGE_RANKS * sizeof(*profiles));
	for (int32_t rank = 0; rank < STAGE_RANKS; rank++) {
		struct ncclsee_profile *profile = &profiles[rank];

		profile->pid = STAGE_PID + rank;
		profile->rows[0] = (struct ncclsee_row){ .function = OP_ALL_REDUCE,
							 .size_class = 2,
							 .calls = STEPS,
							 .has_time = true,
							 .total_ns = STEPS * 31000.0 };
		profile->rows[1] = (struct ncclsee_row){ .function = OP_BROADCAST,
							 .size_class = 3,
							 .calls = STEPS - 1,
							 .has_time = true,
							 .total_ns = STEPS * 22000.0 };
		profile->row_count = 2;
	}
}

static void add_job(struct profilers *work, size_t plugin, uint32_t run, uint8_t mode,
		    const struct stage_faults *faults)
{
	/* Runs differ by more than the overhead of the good plugin. */
	static const double machine[RUNS] = { 1, 1.04, 0.97, 1.02, 0.99 };
	static const double cost[] = { 1, 1, 1.15, 1.3, 1 };
	struct profilers_trial trial = { .plugin = plugin, .run = run, .output = PROFILERS_READ };
	struct ncclsee_profile profiles[STAGE_RANKS];
	struct stage_job job;

	stage_init(&job);
	fill_cells(&job, mode, cost[plugin] * machine[(run + plugin % 2) % RUNS]);
	trial.bench = &job.bench;
	if (faults) {
		stage_record(&job, faults);
		trial.recording = &job.recording;
	} else if (plugin == SUMS) {
		fill_profiles(profiles);
		trial.profiles = profiles;
		trial.profile_count = STAGE_RANKS;
	} else if (plugin == OTHER) {
		trial.output = PROFILERS_UNREADABLE;
		trial.problem = "out.bin: unknown format";
	}
	if (profilers_trial(work, &trial) != OK)
		abort();
	stage_release(&job);
}

static void add_training(struct profilers *work, size_t plugin, uint32_t run)
{
	struct profilers_training training = { .plugin = plugin,
					       .run = run,
					       .output = PROFILERS_READ,
					       .ranks = STAGE_RANKS,
					       .epochs = 5,
					       .is_counted = true };

	for (uint32_t i = 0; i < training.epochs; i++)
		training.epoch_ns[i] = UINT64_C(2000000000) + 10000000 * ((i * 7 + run * 3) % 5) +
				       (plugin == LOSSY ? 300000000 : 0);
	training.issued[OP_ALL_REDUCE] = 1000;
	training.issued[OP_BROADCAST] = 64;
	if (plugin > 0) {
		training.recorded[OP_ALL_REDUCE] = plugin == LOSSY ? 400 : 1000;
		training.recorded[OP_BROADCAST] = 64;
		training.untimed = plugin == LOSSY ? 12 : 0;
		training.comm_ns = UINT64_C(4000000000);
		training.comm_ops = 1064;
		training.has_comm = true;
		training.is_comm_by_time = plugin == GOOD;
	}
	if (profilers_training(work, &training) != OK)
		abort();
}

static void make(struct profilers_comparison *comparison, const char *label)
{
	static const uint8_t modes[] = { BENCH_BLOCKING, BENCH_BACK_TO_BACK, BENCH_GRAPH };
	static const struct stage_faults good = { .factor = 0.96 };
	static const struct stage_faults lossy = {
		.factor = 1.4, .is_rank_missing = true, .lose_every = 9, .untimed_every = 5
	};
	struct profilers_trial failed = { .plugin = LOSSY,
					  .run = 4,
					  .mode = BENCH_GRAPH,
					  .output = PROFILERS_FAILED,
					  .problem = "rank 1 on node-1: ncclAllReduce: unhandled "
						     "cuda error" };
	struct profilers *work = profilers_new();

	profilers_plugin(work, label, "/opt/libnccl-profiler-ringside.so", PROFILERS_RINGSIDE);
	profilers_plugin(work, "lossy", "./liblossy.so", PROFILERS_INSPECTOR);
	profilers_plugin(work, "sums", "./libsums.so", PROFILERS_NCCLSEE);
	profilers_plugin(work, "other", "./libother.so", PROFILERS_UNKNOWN);
	profilers_command(work, "ringside bench profilers --plugin a.so --plugin b.so");
	profilers_not_run(work, "1 GiB: not enough memory for 2 ranks on one GPU");
	profilers_note(work, "several ranks share one GPU: they use sockets");
	for (uint32_t run = 0; run < RUNS; run++)
		for (size_t i = 0; i < 3; i++) {
			add_job(work, 0, run, modes[i], NULL);
			add_job(work, GOOD, run, modes[i], &good);
			if (i < 2 || run < 4)
				add_job(work, LOSSY, run, modes[i], &lossy);
			if (i < 2)
				add_job(work, SUMS, run, modes[i], NULL);
			add_job(work, OTHER, run, modes[i], NULL);
		}
	profilers_trial(work, &failed);
	for (uint32_t run = 0; run < 3; run++)
		for (size_t plugin = 0; plugin < 3; plugin++)
			add_training(work, plugin, run);
	if (profilers_finish(work, comparison) != OK)
		abort();
	profilers_free(work);
}

/* ---- text ------------------------------------------------------------------------------------- */

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *text = calloc(1, 1 << 20);

	if (file && text) {
		text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
		fclose(file);
	}
	return text;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "wb");

	if (file) {
		fputs(text, file);
		fclose(file);
	}
}

static void test_text(const struct profilers_comparison *comparison)
{
	const char *rewrite = getenv("REWRITE");
	struct sink sink;
	char *golden;

	sink_init_memory(&sink);
	EXPECT_EQUAL(profilers_text_write(&sink, comparison, 0), OK);
	if (rewrite && strcmp(rewrite, "1") == 0)
		write_file(GOLDEN, sink_string(&sink));
	golden = read_file(GOLDEN);
	if (!EXPECT_THAT("the text is that of " GOLDEN, strcmp(golden, sink_string(&sink)) == 0))
		printf("# REWRITE=1 updates it, to be reviewed\n");
	free(golden);
	sink_release(&sink);

	sink_init_memory(&sink);
	EXPECT_EQUAL(profilers_text_write(&sink, comparison, 80), OK);
	EXPECT_THAT("columns are dropped on a narrow terminal",
		    strstr(sink_string(&sink), "too narrow for") != NULL);
	sink_release(&sink);
}

static void test_nothing(void)
{
	struct profilers_comparison comparison;
	struct profilers *work = profilers_new();
	struct sink sink;

	EXPECT_EQUAL(profilers_finish(work, &comparison), OK);
	profilers_free(work);
	sink_init_memory(&sink);
	EXPECT_EQUAL(profilers_text_write(&sink, &comparison, 0), OK);
	EXPECT_EQUAL(profilers_html_write(&sink, &comparison), OK);
	sink_release(&sink);
	profilers_comparison_release(&comparison);
}

/* ---- the page --------------------------------------------------------------------------------- */

static bool is_void(const char *name)
{
	return strcmp(name, "meta") == 0 || strcmp(name, "br") == 0 || strcmp(name, "link") == 0;
}

/* Whether start and end tags nest. NULL: yes, otherwise the position. */
static const char *find_wrong_tag(const char *page)
{
	static char open[64][24];
	size_t depth = 0;

	for (const char *at = strchr(page, '<'); at; at = strchr(at + 1, '<')) {
		const char *end = strchr(at, '>');
		bool is_end = at[1] == '/';
		size_t length = strcspn(at + 1 + is_end, " \t\n/>");
		char name[24];

		if (end == NULL || length >= sizeof(name))
			return at;
		if (at[1] == '!')
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)length, at + 1 + is_end);
		if (!isalpha((unsigned char)name[0]))
			return at;
		if (is_end) {
			if (depth == 0 || strcmp(open[--depth], name) != 0)
				return at;
		} else if (end[-1] != '/' && !is_void(name)) {
			if (depth == 64)
				return at;
			snprintf(open[depth++], sizeof(open[0]), "%s", name);
		}
	}
	return depth == 0 ? NULL : page;
}

static size_t count_of(const char *text, const char *what)
{
	size_t count = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		count++;
	return count;
}

static void test_page(const struct profilers_comparison *comparison, const char *path)
{
	const char *page, *wrong;
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT_EQUAL(profilers_html_write(&sink, comparison), OK);
	page = sink_string(&sink);
	if (path)
		write_file(path, page);
	wrong = find_wrong_tag(page);
	if (!EXPECT_THAT("tags nest", wrong == NULL))
		printf("# %.60s\n", wrong);
	EXPECT_THAT("names are escaped", strstr(page, "<img") == NULL);
	EXPECT_THAT("no scripts", strstr(page, "<script") == NULL && !strstr(page, "javascript:"));
	EXPECT_THAT("nothing is fetched: the only address is SVG's namespace",
		    count_of(page, "://") == count_of(page, "http://www.w3.org/2000/svg"));
	EXPECT(strstr(page, "@import") == NULL && strstr(page, " src=\"") == NULL &&
	       strstr(page, "<link") == NULL);
	EXPECT_THAT("one chart per mode etc.: 3, 3, 6 and 2", count_of(page, "<svg") == 14);
	for (int figure = 1; figure <= 4; figure++) {
		char title[24];

		snprintf(title, sizeof(title), "Figure %d:", figure);
		EXPECT(strstr(page, title) != NULL);
	}
	EXPECT(strstr(page, "ringside bench profilers --plugin a.so") && strstr(page, "2.28.9") &&
	       strstr(page, "NVIDIA H200") && strstr(page, "5 runs"));
	EXPECT_THAT("skipped runs are listed", strstr(page, "not enough memory") != NULL);
	EXPECT(strstr(page, "prefers-color-scheme: dark") != NULL);
	sink_release(&sink);
}

/* ---- JSON ------------------------------------------------------------------------------------- */

static void test_json(const struct profilers_comparison *comparison)
{
	struct profilers_comparison again;
	struct bench_read_problem problem = { 0 };
	struct sink first, second, text, other;
	char *cut;

	sink_init_memory(&first);
	sink_init_memory(&second);
	sink_init_memory(&text);
	sink_init_memory(&other);
	EXPECT_EQUAL(profilers_json_write(&first, comparison), OK);
	EXPECT_EQUAL(profilers_read(&again, sink_string(&first), first.used, &problem), OK);
	if (problem.text[0])
		printf("# line %d: %s\n", (int)problem.line, problem.text);
	EXPECT_EQUAL(profilers_json_write(&second, &again), OK);
	EXPECT_THAT("the document is read back unchanged",
		    strcmp(sink_string(&first), sink_string(&second)) == 0);
	profilers_text_write(&text, comparison, 0);
	profilers_text_write(&other, &again, 0);
	EXPECT_THAT("and gives the same text",
		    strcmp(sink_string(&text), sink_string(&other)) == 0);
	profilers_comparison_release(&again);

	EXPECT_EQUAL(profilers_read(&again, sink_string(&first), first.used / 2, &problem),
		     ERR_FORMAT);
	EXPECT(problem.text[0] != '\0' && again.plugin_count == 0);
	EXPECT_EQUAL(profilers_read(&again, "{}", 2, &problem), ERR_FORMAT);
	EXPECT_EQUAL(profilers_read(&again, "{\"format\":\"x\"}", 14, &problem), ERR_UNKNOWN);
	cut = strstr(second.bytes, "\"version\":1");
	cut[10] = '7';
	EXPECT_EQUAL(profilers_read(&again, second.bytes, second.used, &problem), ERR_VERSION);
	cut[10] = '1';
	cut = strstr(second.bytes, "\"completeness\":[{\"plugin\":1");
	cut[26] = '9';
	EXPECT_THAT("an unknown plugin is rejected",
		    profilers_read(&again, second.bytes, second.used, &problem) == ERR_FORMAT);
	cut[26] = '1';
	cut = strstr(second.bytes, "\"ratio\":[null,");
	if (EXPECT_THAT("percentiles with too few values are null", cut != NULL)) {
		cut = strchr(strchr(cut, ',') + 1, ',') + 1;
		memcpy(cut, "null                    ", strcspn(cut, ","));
		EXPECT_THAT("a median is required",
			    profilers_read(&again, second.bytes, second.used, &problem) ==
					    ERR_FORMAT &&
				    strstr(problem.text, "no median"));
	}
	sink_release(&first);
	sink_release(&second);
	sink_release(&text);
	sink_release(&other);
}

int main(int argc, char **argv)
{
	struct profilers_comparison comparison;

	make(&comparison, "ringside");
	test_text(&comparison);
	test_json(&comparison);
	if (argc > 1)
		test_page(&comparison, argv[1]);
	profilers_comparison_release(&comparison);
	make(&comparison, EVIL);
	test_page(&comparison, NULL);
	test_json(&comparison);
	profilers_comparison_release(&comparison);
	test_nothing();
	return tap_done();
}
