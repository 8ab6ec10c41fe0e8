#include "doctor/doctor.h"

#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "tests/unit/doctor/transfers.h"
#include "tests/tap.h"
#include "tests/support/expected_verdicts.h"

/* ---- what can be slow ------------------------------------------------------------------------ */

static bool is_later(const struct transfers_what *what)
{
	return what->call >= TRANSFERS_CALLS / 2;
}

static double network(const struct transfers_what *what)
{
	return what->group != TRANSFERS_TP ? 1.3 : 1;
}

static double nvlink(const struct transfers_what *what)
{
	return what->group == TRANSFERS_TP ? 1.3 : 1;
}

static double nvlink_of_node(const struct transfers_what *what)
{
	return what->group == TRANSFERS_TP && what->index == 2 ? 1.3 : 1;
}

static double one_comm(const struct transfers_what *what)
{
	return what->group == TRANSFERS_DP && what->index == 1 ? 1.3 : 1;
}

static double one_size(const struct transfers_what *what)
{
	return what->group != TRANSFERS_TP && what->bytes == transfers_sizes[0] ? 1.3 : 1;
}

static double everything(const struct transfers_what *what)
{
	(void)what;
	return 1.3;
}

static double faster(const struct transfers_what *what)
{
	(void)what;
	return 0.8;
}

static bool is_large_between_nodes(const struct transfers_what *what)
{
	return what->group != TRANSFERS_TP && what->bytes == transfers_sizes[1];
}

static double small_ones(const struct transfers_what *what)
{
	return what->bytes < 1 << 20 ? 20 : 1;
}

static double large_between_nodes(const struct transfers_what *what)
{
	return is_large_between_nodes(what) ? 1.3 : 1;
}

/* The same from the middle of the recording on. */
#define LATER(name)                                                   \
	static double later_##name(const struct transfers_what *what) \
	{                                                             \
		return is_later(what) ? name(what) : 1;               \
	}
LATER(network)
LATER(nvlink)
LATER(nvlink_of_node)
LATER(one_comm)
LATER(one_size)
LATER(small_ones)
LATER(everything)
LATER(large_between_nodes)

static bool later_is_large_between_nodes(const struct transfers_what *what)
{
	return is_later(what) && is_large_between_nodes(what);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* All verdicts of all jobs. */
static struct expected_text found;

static void find_in(struct verdicts *verdicts, const struct transfers *job,
		    const struct slow_options *options, const char *test)
{
	verdicts_init(verdicts);
	if (slow_find(verdicts, &job->report, options) != OK)
		abort();
	verdicts_sort(verdicts);
	expected_put_verdicts(&found, test, verdicts);
}

#define find(verdicts, job, options) find_in(verdicts, job, options, __func__)

static void show(const struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++) {
		printf("#   %s %s\n", verdict_class_name(verdicts->list[i].class),
		       verdicts->list[i].title);
		for (size_t j = 0; j < verdicts->list[i].evidence.count; j++)
			printf("#      %s\n", verdicts->list[i].evidence.list[j]);
	}
}

struct wanted {
	const char *sentence;
	enum verdict_class class;
	const char *host;
	const char *comm; /* NULL: any */
	double (*slower)(const struct transfers_what *what);
	bool (*is_tree)(const struct transfers_what *what);
};

/* Measured in iterations: what they take longer is lost by all eight ranks. */
static bool is_lost_by_all(const struct verdict *verdict)
{
	double lost_ns = verdict->cost_percent / 100 * (double)verdict->for_ns * 8;

	return !verdict->is_cost_bound && fabs(verdict->gpu_hours * 3600e9 - lost_ns) < 1e3;
}

static void expect_one(const struct verdicts *verdicts, const struct wanted *wanted,
		       const char *rule)
{
	const struct verdict *verdict = verdicts->count == 1 ? &verdicts->list[0] : NULL;

	if (!EXPECT_THAT(
		    wanted->sentence,
		    verdict != NULL && verdict->class == wanted->class &&
			    strcmp(verdict->host, wanted->host) == 0 &&
			    strcmp(verdict->rule, rule) == 0 &&
			    (wanted->comm == NULL || strcmp(verdict->comm, wanted->comm) == 0) &&
			    verdict->percent > 25 && verdict->percent < 35 &&
			    /* It costs next to nothing, as there is little communication. */
			    verdict->severity == VERDICT_NOTE && verdict->cost_percent < 2 &&
			    verdict->confidence > 0.7 && is_lost_by_all(verdict) &&
			    verdict->rank == -1 && verdict->evidence.count > 0 &&
			    verdict->advice.count > 0))
		show(verdicts);
}

static void against_past(void)
{
	static const struct wanted list[] = {
		{ "all inter-node traffic became slower: the network", VERDICT_SLOW_NETWORK, "",
		  NULL, later_network, NULL },
		{ "all within nodes: NVLink", VERDICT_SLOW_NVLINK, "", NULL, later_nvlink, NULL },
		{ "within one node: NVLink there", VERDICT_SLOW_NVLINK, "node2", NULL,
		  later_nvlink_of_node, NULL },
		{ "one communicator between nodes", VERDICT_SLOW_COMM, "", "dp1", later_one_comm,
		  NULL },
		{ "one size", VERDICT_SLOW_SIZE, "", NULL, later_one_size, NULL },
		{ "where another algorithm was chosen, it is that", VERDICT_SLOW_ALGORITHM, "",
		  NULL, later_large_between_nodes, later_is_large_between_nodes },
		{ "everything: none of these", VERDICT_BELOW_EXPECTED, "", NULL, later_everything,
		  NULL },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(list); i++) {
		struct transfers job = { .nodes = 4,
					 .gpus = 2,
					 .seed = 5,
					 .late_rank = -1,
					 .slower = list[i].slower,
					 .is_tree = list[i].is_tree };
		struct slow_options options = { .threshold = 0 };
		struct verdicts verdicts;

		transfers_make(&job);
		find(&verdicts, &job, &options);
		expect_one(&verdicts, &list[i], "past");
		EXPECT_THAT("and its start",
			    verdicts.count == 1 && verdicts.list[0].for_ns > 1000000000 &&
				    strstr(verdicts.list[0].evidence.list[0], "since") != NULL);
		verdicts_release(&verdicts);
		transfers_release(&job);
	}
}

static void against_baseline(const struct baseline *baseline)
{
	static const struct wanted list[] = {
		{ "slower between nodes than in the baseline: the network", VERDICT_SLOW_NETWORK,
		  "", NULL, network, NULL },
		{ "slower within nodes: NVLink", VERDICT_SLOW_NVLINK, "", NULL, nvlink, NULL },
		{ "slower within one node: NVLink there", VERDICT_SLOW_NVLINK, "node2", NULL,
		  nvlink_of_node, NULL },
		{ "one communicator is slower", VERDICT_SLOW_COMM, "", "dp1", one_comm, NULL },
		{ "one size is slower", VERDICT_SLOW_SIZE, "", NULL, one_size, NULL },
		{ "another algorithm than in the baseline", VERDICT_SLOW_ALGORITHM, "", NULL,
		  large_between_nodes, is_large_between_nodes },
		{ "everything is slower than in the baseline", VERDICT_BELOW_EXPECTED, "", NULL,
		  everything, NULL },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(list); i++) {
		struct transfers job = { .nodes = 4,
					 .gpus = 2,
					 .seed = 6,
					 .late_rank = -1,
					 .slower = list[i].slower,
					 .is_tree = list[i].is_tree };
		struct slow_options options = { .baseline = baseline, .gpu_hour_price = 3 };
		struct verdicts verdicts;

		transfers_make(&job);
		find(&verdicts, &job, &options);
		expect_one(&verdicts, &list[i], "baseline");
		EXPECT_THAT("with the cost",
			    verdicts.count == 1 &&
				    verdicts.list[0].money == 3 * verdicts.list[0].gpu_hours);
		verdicts_release(&verdicts);
		transfers_release(&job);
	}
}

/* ---- what durations do not show -------------------------------------------------------------- */

/* A few bytes are not on the wire for long, whatever the network does. */
static void a_few_bytes_tell_nothing(void)
{
	static const struct {
		const char *what;
		uint64_t bytes;
		size_t verdicts;
	} cases[] = { { "slower barriers", 4, 0 },
		      { "slower messages of less than 1 KiB", 1023, 0 },
		      { "slower messages of 1 KiB", 1024, 1 },
		      { "slower messages of 64 KiB", 65536, 1 } };

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct transfers job = { .nodes = 4,
					 .gpus = 2,
					 .seed = 5,
					 .late_rank = -1,
					 .small_bytes = cases[i].bytes,
					 .slower = later_small_ones };
		struct slow_options options = { .threshold = 0 };
		struct verdicts verdicts;

		transfers_make(&job);
		find(&verdicts, &job, &options);
		if (!EXPECT_THAT(cases[i].what, verdicts.count == cases[i].verdicts))
			show(&verdicts);
		verdicts_release(&verdicts);
		transfers_release(&job);
	}
}

static size_t count_class(const struct verdicts *verdicts, enum verdict_class class)
{
	size_t count = 0;

	for (size_t i = 0; i < verdicts->count; i++)
		count += verdicts->list[i].class == class;
	return count;
}

static void after_mismatch(void)
{
	struct transfers job = {
		.nodes = 4, .gpus = 2, .seed = 5, .late_rank = -1, .slower = later_nvlink
	};
	struct slow_options options = { .threshold = 0 };
	struct verdicts verdicts;
	struct verdict *mismatch;

	transfers_make(&job);
	verdicts_init(&verdicts);
	mismatch = verdicts_add(&verdicts, VERDICT_MISMATCH, VERDICT_ERROR);
	snprintf(mismatch->job, sizeof(mismatch->job), "%s", job.report.job.groups[0].name);
	mismatch->number = 40;
	EXPECT(slow_find(&verdicts, &job.report, &options) == OK);
	expected_put_verdicts(&found, __func__, &verdicts);
	if (!EXPECT_THAT("ranks that called different operations: nothing is reported about NVLink",
			 verdicts.count == 2 && count_class(&verdicts, VERDICT_BLIND) == 1))
		show(&verdicts);
	EXPECT_THAT("and a note says that it was not judged",
		    verdicts_has_unjudged(&verdicts) && strcmp(verdicts.list[1].rule, "past") == 0);
	verdicts_release(&verdicts);
	transfers_release(&job);
}

static void shared_gpu(void)
{
	struct transfers job = {
		.nodes = 4, .gpus = 2, .seed = 5, .late_rank = -1, .slower = later_nvlink
	};
	struct slow_options options = { .threshold = 0 };
	struct verdicts verdicts;

	transfers_make(&job);
	for (size_t i = 0; i < job.report.job.rank_count; i++)
		snprintf(job.report.job.ranks[i].gpu_uuid, sizeof(job.report.job.ranks[i].gpu_uuid),
			 "GPU-%u", job.report.job.ranks[i].host);
	verdicts_init(&verdicts);
	EXPECT(slow_find(&verdicts, &job.report, &options) == OK);
	expected_put_verdicts(&found, __func__, &verdicts);
	if (!EXPECT_THAT("ranks that share a GPU have no NVLink between them",
			 count_class(&verdicts, VERDICT_SLOW_NVLINK) == 0))
		show(&verdicts);
	verdicts_release(&verdicts);
	transfers_release(&job);
}

/* One communicator of each node has no durations, as with NCCL 2.27, whose launches cannot be timed. */
static void untimed(void)
{
	struct transfers job = { .nodes = 4, .gpus = 2, .seed = 5, .late_rank = -1 };
	struct slow_options options = { .threshold = 0 };
	struct verdicts verdicts;

	transfers_make(&job);
	for (size_t i = 0; i < job.hand.recording.count; i++) {
		job.hand.list[i]->comms[0].counts.timed = 0;
		job.hand.list[i]->interface = 4;
	}
	verdicts_init(&verdicts);
	EXPECT(slow_find(&verdicts, &job.report, &options) == OK);
	expected_put_verdicts(&found, __func__, &verdicts);
	if (!EXPECT_THAT("untimed operations: speed is not judged, and a note says so",
			 verdicts.count == 1 && verdicts.list[0].is_unjudged &&
				 strcmp(verdicts.list[0].rule, "speed") == 0 &&
				 strstr(verdicts.list[0].title, "0 of ") != NULL))
		show(&verdicts);
	verdicts_release(&verdicts);
	transfers_release(&job);
}

/* ---- no verdict ------------------------------------------------------------------------------ */

static void expect_nobody(const char *sentence, struct transfers *job,
			  const struct slow_options *options)
{
	struct verdicts verdicts;

	transfers_make(job);
	find(&verdicts, job, options);
	if (!EXPECT_THAT(sentence, verdicts.count == 0))
		show(&verdicts);
	verdicts_release(&verdicts);
	transfers_release(job);
}

static void nobody(const struct baseline *baseline)
{
	struct slow_options options = { .baseline = baseline };
	struct transfers fast = {
		.nodes = 4, .gpus = 2, .seed = 9, .late_rank = -1, .slower = faster
	};
	struct transfers smaller = { .nodes = 2, .gpus = 2, .seed = 9, .late_rank = -1 };
	struct transfers tolerated = {
		.nodes = 4, .gpus = 2, .seed = 9, .late_rank = -1, .slower = network
	};

	for (uint64_t seed = 20; seed < 26; seed++) {
		struct transfers job = { .nodes = 4, .gpus = 2, .seed = seed, .late_rank = -1 };

		expect_nobody("a job like the baseline: none", &job, &options);
	}
	expect_nobody("a faster job: none", &fast, &options);
	expect_nobody("a job with half the nodes: none", &smaller, &options);
	options.threshold = 0.5;
	expect_nobody("below the threshold: none", &tolerated, &options);
}

/* ---- several at once ------------------------------------------------------------------------- */

static void late_rank(const struct baseline *baseline)
{
	struct transfers job = {
		.nodes = 4, .gpus = 2, .seed = 7, .late_rank = 5, .late_ns = 300000
	};
	struct slow_options options = { .baseline = baseline, .gpu_hour_price = 2 };
	struct verdicts verdicts;
	const struct verdict *verdict;

	transfers_make(&job);
	/* In a container: the host knows it by another pid, which hang verdicts have, too. */
	job.hand.list[5]->pid_here = 71005;
	find(&verdicts, &job, &options);
	verdict = &verdicts.list[0];
	if (!EXPECT_THAT("a straggler is named, and nothing else",
			 verdicts.count == 1 && verdict->class == VERDICT_SLOW_RANK &&
				 verdict->rank == 5 && strcmp(verdict->host, "node2") == 0 &&
				 verdict->pid == 71005 && verdict->victims == 7))
		show(&verdicts);
	EXPECT_THAT("compared with the others", strcmp(verdict->rule, "others") == 0);
	EXPECT_THAT("always", strstr(verdict->evidence.list[0], "always") != NULL);
	EXPECT_THAT("with what it costs",
		    is_lost_by_all(verdict) && verdict->money == 2 * verdict->gpu_hours);
	verdicts_release(&verdicts);
	transfers_release(&job);
}

static void late_and_slow(const struct baseline *baseline)
{
	struct transfers job = { .nodes = 4,
				 .gpus = 2,
				 .seed = 7,
				 .late_rank = 5,
				 .late_ns = 300000,
				 .slower = network };
	struct slow_options options = { .baseline = baseline };
	struct verdicts verdicts;
	bool has_rank = false, has_network = false;

	transfers_make(&job);
	find(&verdicts, &job, &options);
	for (size_t i = 0; i < verdicts.count; i++) {
		has_rank |=
			verdicts.list[i].class == VERDICT_SLOW_RANK && verdicts.list[i].rank == 5;
		has_network |= verdicts.list[i].class == VERDICT_SLOW_NETWORK;
	}
	if (!EXPECT_THAT("a straggler does not hide a slow network, nor vice versa",
			 verdicts.count == 2 && has_rank && has_network))
		show(&verdicts);
	verdicts_release(&verdicts);
	transfers_release(&job);
}

/* A GPU with lower clocks arrives late and also moves data slower: one cause. */
static void late_and_slow_together(void)
{
	struct transfers job = { .nodes = 4,
				 .gpus = 2,
				 .seed = 7,
				 .late_rank = 5,
				 .late_ns = 300000,
				 .late_from = TRANSFERS_CALLS / 2,
				 .slower = later_network };
	struct slow_options options = { .threshold = 0 };
	struct verdicts verdicts;

	transfers_make(&job);
	find(&verdicts, &job, &options);
	if (!EXPECT_THAT("transfers that became slower when a rank became late are its fault",
			 verdicts.count == 1 && verdicts.list[0].class == VERDICT_SLOW_RANK &&
				 verdicts.list[0].rank == 5))
		show(&verdicts);
	EXPECT_THAT("and part of its evidence",
		    strstr(verdicts.list[0].evidence.list[2], "This explains") != NULL);
	EXPECT_THAT("with the start", strstr(verdicts.list[0].evidence.list[0], "since") != NULL);
	verdicts_release(&verdicts);
	transfers_release(&job);
}

/* Already reported as stuck: its slow transfers are not a second cause. */
static void hung(void)
{
	struct transfers job = {
		.nodes = 4, .gpus = 2, .seed = 7, .late_rank = 5, .late_ns = 300000
	};
	struct slow_options options = { .threshold = 0 };
	struct verdicts verdicts;
	struct verdict *verdict;

	transfers_make(&job);
	verdicts_init(&verdicts);
	verdict = verdicts_add(&verdicts, VERDICT_GPU_STUCK, VERDICT_ERROR);
	snprintf(verdict->job, sizeof(verdict->job), "job");
	verdict->rank = 5;
	EXPECT(slow_find(&verdicts, &job.report, &options) == OK);
	expected_put_verdicts(&found, __func__, &verdicts);
	EXPECT_THAT("a hung rank is not also slow", verdicts.count == 1);
	verdicts_release(&verdicts);
	transfers_release(&job);
}

static void past_and_baseline(const struct baseline *baseline)
{
	struct transfers job = {
		.nodes = 4, .gpus = 2, .seed = 8, .late_rank = -1, .slower = later_network
	};
	struct slow_options options = { .baseline = baseline };
	struct verdicts verdicts;

	transfers_make(&job);
	find(&verdicts, &job, &options);
	if (!EXPECT_THAT("slower than before and than the baseline is reported once",
			 verdicts.count == 1 && strcmp(verdicts.list[0].rule, "past") == 0))
		show(&verdicts);
	verdicts_release(&verdicts);
	transfers_release(&job);
}

/* ---- iterations, expectations, peaks ------------------------------------------------------------- */

static void elsewhere(const struct baseline *baseline)
{
	struct transfers job = {
		.nodes = 4, .gpus = 2, .seed = 6, .late_rank = -1, .pause_ns = 5.65e6
	};
	struct slow_options options = { .baseline = baseline };
	struct verdicts verdicts;

	transfers_make(&job);
	find(&verdicts, &job, &options);
	if (!EXPECT_THAT("iterations 13% longer with equal transfers: not communication",
			 verdicts.count == 1 && verdicts.list[0].class == VERDICT_BELOW_EXPECTED &&
				 verdicts.list[0].percent > 11 && verdicts.list[0].percent < 15 &&
				 strstr(verdicts.list[0].title, "not the cause") != NULL))
		show(&verdicts);
	verdicts_release(&verdicts);
	transfers_release(&job);
}

static size_t count_of(const struct transfers *job, const struct slow_options *options,
		       enum verdict_class class)
{
	struct verdicts verdicts;
	size_t count = 0;

	find(&verdicts, job, options);
	for (size_t i = 0; i < verdicts.count; i++)
		count += verdicts.list[i].class == class;
	if (verdicts.count != count)
		show(&verdicts);
	count = verdicts.count == count ? count : 99;
	verdicts_release(&verdicts);
	return count;
}

/* 16 MiB: 188 GB/s within nodes, 25 between them. */
static void peaks(void)
{
	struct transfers job = { .nodes = 4, .gpus = 2, .seed = 6, .late_rank = -1 };
	struct slow_options options = { .peak_nvlink = 140e9, .peak_network = 20e9 };

	transfers_make(&job);
	EXPECT_THAT("no verdict if the peak is reached",
		    count_of(&job, &options, VERDICT_SLOW_NETWORK) == 0);
	options.peak_nvlink = 450e9;
	EXPECT_THAT("NVLink far below its peak, the network is fine",
		    count_of(&job, &options, VERDICT_SLOW_NVLINK) == 1);
	options.peak_nvlink = 140e9;
	options.peak_network = 100e9;
	EXPECT_THAT("the network far below its peak, NVLink is fine",
		    count_of(&job, &options, VERDICT_SLOW_NETWORK) == 1);
	transfers_release(&job);
}

static void expectations(void)
{
	struct transfers job = { .nodes = 4, .gpus = 2, .seed = 6, .late_rank = -1 };
	struct expected_row *rows = calloc(6, sizeof(*rows));
	const int32_t nranks[] = { 2, 4, 8 };
	struct expected expected = { .rows = rows, .count = 6 };
	struct slow_options options = { .expected = &expected };

	for (size_t i = 0; i < 6; i++)
		rows[i] = (struct expected_row){ .function = OP_ALL_REDUCE,
						 .nranks = nranks[i / 2],
						 .bytes = transfers_sizes[i % 2],
						 .time_ns = 10000000 };
	expected_finish(&expected);
	transfers_make(&job);
	EXPECT_THAT("faster than expected: none",
		    count_of(&job, &options, VERDICT_BELOW_EXPECTED) == 0);
	for (size_t i = 0; i < 6; i++)
		rows[i].time_ns = 20000;
	EXPECT_THAT("slower than expected, everywhere: one verdict",
		    count_of(&job, &options, VERDICT_BELOW_EXPECTED) == 1);
	transfers_release(&job);
	expected_release(&expected);
}

static void nothing_to_compare(void)
{
	struct transfers job = { .nodes = 4, .gpus = 2, .seed = 5, .late_rank = -1 };
	struct baseline baseline = { .rows = NULL };
	struct slow_options options = { .baseline = &baseline };
	struct verdicts verdicts;

	transfers_make(&job);
	find(&verdicts, &job, &options);
	EXPECT_THAT("a baseline of something else: a warning says that nothing was compared",
		    verdicts.count == 1 && verdicts.list[0].class == VERDICT_BLIND &&
			    verdicts.list[0].severity == VERDICT_WARNING);
	verdicts_release(&verdicts);
	transfers_release(&job);
}

static void without_table(void)
{
	struct transfers job = {
		.nodes = 4, .gpus = 2, .seed = 5, .late_rank = -1, .slower = later_network
	};
	struct slow_options options = { .threshold = 0 };
	struct verdicts verdicts;

	transfers_make(&job);
	job.report.custom[0].by = 0;
	find(&verdicts, &job, &options);
	EXPECT_THAT("without the table the slow network is still reported",
		    verdicts.count == 1 && verdicts.list[0].class == VERDICT_SLOW_NETWORK);
	verdicts_release(&verdicts);
	transfers_release(&job);
}

int main(void)
{
	struct transfers good = { .nodes = 4, .gpus = 2, .seed = 1, .late_rank = -1 };
	struct baseline baseline;

	transfers_make(&good);
	if (baseline_make(&baseline, &good.report) != OK)
		abort();
	transfers_release(&good);
	against_past();
	a_few_bytes_tell_nothing();
	after_mismatch();
	shared_gpu();
	untimed();
	against_baseline(&baseline);
	nobody(&baseline);
	late_rank(&baseline);
	late_and_slow(&baseline);
	late_and_slow_together();
	hung();
	past_and_baseline(&baseline);
	elsewhere(&baseline);
	peaks();
	expectations();
	nothing_to_compare();
	without_table();
	baseline_release(&baseline);
	expected_compare(&found, "tests/unit/doctor/expected/slow.txt");
	return tap_done();
}
