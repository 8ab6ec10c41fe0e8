/*
 * Whole comparisons that are made by hand, as text, JSON and HTML: every kind of row, sender and sentence, and tables that are
 * exactly as long as is shown, and one longer.
 */
#include "output/report.h"

#include <string.h>

#include "common/attributes.h"
#include "output/json.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"

enum { ROWS_MAX = 40, SENDERS_MAX = 16 };
#define EXPECTED "tests/unit/output/expected/"

static const struct diff_side side_a = { "expected.json", NULL }, side_b = { "b", NULL };

struct made {
	struct compare compare;
	struct compare_row rows[ROWS_MAX];
	struct compare_sender senders[SENDERS_MAX];
	struct compare_difference differences[2];
};

static struct made made;

static struct compare *begin(void)
{
	memset(&made, 0, sizeof(made));
	made.compare = (struct compare){ .by = TALLY_BY_FUNCTION | TALLY_BY_SIZE,
					 .threshold = 0.05,
					 .rows = made.rows,
					 .senders = made.senders,
					 .differences = made.differences,
					 .judged_share = 1 };
	return &made.compare;
}

/* Both sides timed: 100 calls of 1 ms and of ratio times that. */
static struct compare_row *add(const char *function, double ratio, double error)
{
	struct compare_row *row = &made.rows[made.compare.count++];

	*row = (struct compare_row){
		.a = { .is_there = true, .calls = 100, .timed = 100, .mean_ns = 1e6 },
		.b = { .is_there = true, .calls = 100, .timed = 100, .mean_ns = 1e6 * ratio },
		.basis = COMPARE_DURATION,
		.share = 0.25,
		.has_interval = true,
		.ratio = ratio,
		.ratio_low = ratio - error,
		.ratio_high = ratio + error,
		.samples_a = 64,
		.samples_b = 32,
	};
	snprintf(row->key[0], sizeof(row->key[0]), "%s", function);
	snprintf(row->key[1], sizeof(row->key[1]), "1 MiB");
	made.compare.judged++;
	return row;
}

static struct compare_sender *add_sender(const char *from, const char *to, double ratio)
{
	struct compare_sender *sender = &made.senders[made.compare.sender_count++];

	*sender = (struct compare_sender){
		.comm = "world",
		.host_a = "node-a",
		.host_b = "node-b",
		.wire_a_ns = 2000,
		.wire_b_ns = 2000 * ratio,
		.result = { .ratio = ratio, .ratio_low = ratio - 0.25, .ratio_high = ratio + 0.25 },
	};
	snprintf(sender->from, sizeof(sender->from), "%s", from);
	snprintf(sender->to, sizeof(sender->to), "%s", to);
	return sender;
}

/* As text without a limit of width and of rows, as JSON and as a page. */
static void expect_all(const char *name, bool has_all)
{
	const struct report_text_options options = { .width = 0, .has_all = has_all };
	char path[128];
	struct sink sink;
	struct json json;

	snprintf(path, sizeof(path), EXPECTED "diff-%s.txt", name);
	sink_init_memory(&sink);
	EXPECT_EQUAL(diff_text(&sink, &side_a, &side_b, &made.compare, &options), OK);
	EXPECT_THAT(path, expected_text(&sink, path));

	snprintf(path, sizeof(path), EXPECTED "diff-%s.json.lines", name);
	sink_init_memory(&sink);
	json_init(&json, &sink);
	diff_json(&json, &side_a, &side_b, &made.compare);
	EXPECT_THAT(path, expected_json(&sink, path));
}

/* The page between its style and its end. */
static void expect_page(const char *name, bool has_all)
{
	struct sink page, body;
	const char *from;
	char path[128];

	snprintf(path, sizeof(path), EXPECTED "diff-%s.html", name);
	sink_init_memory(&page);
	sink_init_memory(&body);
	EXPECT_EQUAL(diff_html(&page, &side_a, &side_b, &made.compare, has_all), OK);
	from = strstr(sink_string(&page), "<main");
	EXPECT(from != NULL);
	sink_text(&body, from ? from : "");
	EXPECT_THAT(path, expected_text(&body, path));
	sink_release(&page);
}

/* ---- every kind of row, sender and value ------------------------------------------------------- */

static void add_odd_rows(void)
{
	struct compare *compare = &made.compare;
	struct compare_row *row;

	row = add("AllReduce", 1.5, 0.125);
	row->is_slower = row->is_significant = true;
	row->basis = COMPARE_TRANSFER;
	row->share = 0.75;
	row->median_ratio = 1.5;
	row->mean_ratio = 1.25;
	row->busbw_ratio = 0.5;
	row->a = (struct compare_side){ .is_there = true,
					.calls = 1000,
					.open = 1,
					.timed = 900,
					.not_timed = 2,
					.bytes = 4096,
					.sum_ns = 900000000,
					.total_ns = 1000000000,
					.mean_ns = 1000000,
					.median_ns = 900000,
					.p99_ns = 2000000,
					.algbw = 1.5e9,
					.busbw = 3e9,
					.wait_ns = 100000000,
					.wait_share = 0.125,
					.joined = 800,
					.transfer_ns = 750000,
					.transfer_busbw = 4e9 };
	row->b = row->a;
	row->b.transfer_ns = 1125000;
	row->b.transfer_busbw = 2e9;
	row = add("AllGather", 0.5, 0.125);
	row->is_faster = row->is_significant = true;
	row->a.busbw = row->b.algbw = 2e9;
	add("Broadcast", 1.0625, 0.125);
	add("Reduce", 0.9375, 0.125);
	add("ReduceScatter", 1.03125, 0.0078125)->is_significant = true;
	add("AlltoAll", 0.96875, 0.0078125)->is_significant = true;
	add("Scatter", 1, 0.03125);
	add("only in B", 1, 0)->a.is_there = false;
	add("only in A", 1, 0)->b.is_there = false;
	add("not timed in A", 1, 0)->a.timed = 0;
	add("not timed in B", 1, 0)->b.timed = 0;
	add("other ranks", 1, 0)->basis = COMPARE_BANDWIDTH;
	row = add("few calls", 1, 0);
	row->has_interval = false;
	row->basis = COMPARE_NOTHING;
	row->share = 0;
	row->a.calls = row->b.open = 0;
	row = add("waits", 1, 0);
	row->a.joined = 1;
	row->a.wait_share = 1;
	compare->total = made.rows[0];
	compare->total.b.timed = compare->total.b.calls - compare->total.b.open;
	compare->slower = compare->faster = 1;
	compare->only_a = compare->only_b = compare->not_timed = 2;
	compare->judged = 8;
}

static void add_odd_job(void)
{
	struct compare *compare = &made.compare;

	compare->iteration = (struct compare_value){ .is_known = true,
						     .has_interval = true,
						     .a = 20e6,
						     .b = 25e6,
						     .result = { .ratio = 1.25,
								 .ratio_low = 1.125,
								 .ratio_high = 1.375,
								 .is_significant = true,
								 .is_slower = true } };
	compare->communication = (struct compare_value){ .is_known = true,
							 .a = 4e6,
							 .b = 2e6,
							 .result = { .ratio = 0.5,
								     .is_significant = true,
								     .is_slower = true,
								     .is_faster = true } };
	compare->exposed = (struct compare_exposed){ .is_known = true,
						     .a_low_ns = 0,
						     .a_high_ns = 3000000,
						     .b_low_ns = 1000000,
						     .b_high_ns = 1000000 };
	compare->waiting = (struct compare_value){ .is_known = true,
						   .has_interval = true,
						   .a = 0.25,
						   .b = 0.125,
						   .result = { .ratio = 0.875,
							       .ratio_low = 0.75,
							       .ratio_high = 0.9375,
							       .is_faster = true } };
}

static void test_everything(void)
{
	struct compare *compare = begin();

	add_odd_rows();
	add_odd_job();
	add_sender("0", "1", 1.5)->result.is_slower = true;
	add_sender("1", "", 1.25)->is_undecided = true;
	add_sender("2", "3", 1);
	add_sender("3", "0", 0.5)->result.is_faster = true;
	compare->senders_slower = compare->senders_faster = compare->senders_undecided = 1;
	compare->difference_count = 2;
	snprintf(made.differences[0].what, sizeof(made.differences[0].what), "NCCL");
	snprintf(made.differences[0].a, sizeof(made.differences[0].a), "2.27");
	snprintf(made.differences[0].b, sizeof(made.differences[0].b), "2.28 <b>");
	snprintf(made.differences[1].what, sizeof(made.differences[1].what), "hosts");
	expect_all("everything", true);
	expect_page("everything", true);
}

/* The job without an interval, then with waiting alone; exposed communication that is more, less and known too badly. */
static void test_job(void)
{
	struct compare *compare = begin();

	add_odd_job();
	add("AllReduce", 1, 0.015625);
	compare->by = TALLY_BY_COMM_NAME | TALLY_BY_KIND | TALLY_BY_FUNCTION | TALLY_BY_GROUP;
	compare->iteration.is_known = compare->communication.is_known = false;
	compare->waiting.has_interval = false;
	compare->waiting.result.is_significant = compare->waiting.result.is_slower = true;
	compare->exposed.a_low_ns = 1000000;
	compare->exposed.b_high_ns = 2000000;
	compare->exposed.is_less = true;
	expect_all("waiting", false);
	expect_page("waiting", false);

	compare->exposed.a_low_ns = compare->exposed.b_low_ns = 0;
	compare->waiting.is_known = false;
	compare->iteration.is_known = true;
	compare->iteration.result.is_slower = false;
	compare->is_job_slower = true;
	expect_all("bounds", false);
	expect_page("bounds", false);

	compare->iteration.is_known = false;
	expect_all("no-job", false);
	expect_page("no-job", false);
}

/* ---- how much is shown ------------------------------------------------------------------------- */

static bool has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* `more` rows and senders are not shown. */
static void expect_lengths(size_t rows, size_t senders, bool has_all, size_t more)
{
	const struct report_text_options options = { .width = 0, .has_all = has_all };
	char name[32], words[4][64];
	struct sink text, page;

	begin();
	for (size_t i = 0; i < rows; i++) {
		snprintf(name, sizeof(name), "row-%zu.", i + 1);
		add(name, 1, 0.015625);
	}
	for (size_t i = 0; i < senders; i++) {
		snprintf(name, sizeof(name), "sender-%zu.", i + 1);
		add_sender(name, "", 1.0625);
	}
	sink_init_memory(&text);
	sink_init_memory(&page);
	EXPECT_EQUAL(diff_text(&text, &side_a, &side_b, &made.compare, &options), OK);
	EXPECT_EQUAL(diff_html(&page, &side_a, &side_b, &made.compare, has_all), OK);
	snprintf(words[0], sizeof(words[0]), "row-%zu.", rows);
	snprintf(words[1], sizeof(words[1]), "sender-%zu.", senders);
	for (unsigned int i = 0; i < 2; i++) {
		EXPECT(has(sink_string(&text), words[i]) == (more == 0));
		EXPECT(has(sink_string(&page), words[i]) == (more == 0));
	}
	snprintf(words[0], sizeof(words[0]), "(%zu more row%s; --all", more, more == 1 ? "" : "s");
	snprintf(words[1], sizeof(words[1]), "(%zu more sender%s; --all", more,
		 more == 1 ? "" : "s");
	snprintf(words[2], sizeof(words[2]), ">%zu more row%s: --all", more, more == 1 ? "" : "s");
	snprintf(words[3], sizeof(words[3]), ">%zu more sender%s: --all", more,
		 more == 1 ? "" : "s");
	for (unsigned int i = 0; i < 4; i++)
		EXPECT(has(sink_string(i < 2 ? &text : &page), words[i]) == (more > 0));
	EXPECT(has(sink_string(&page), "--all") == (more > 0));
	sink_release(&text);
	sink_release(&page);
}

static void test_lengths(void)
{
	expect_lengths(30, 10, false, 0);
	expect_lengths(31, 11, false, 1);
	expect_lengths(35, 15, false, 5);
	expect_lengths(35, 15, true, 0);
}

/* ---- sentences --------------------------------------------------------------------------------- */

/* The text below the tables. */
static void expect_words(const char *sentence, const char *wanted)
{
	const struct report_text_options options = { .width = 300 };
	const char *text, *at = NULL;
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT_EQUAL(diff_text(&sink, &side_a, &side_b, &made.compare, &options), OK);
	text = sink_string(&sink);
	for (const char *next = text; (next = strstr(next, "\n\n")) != NULL; next++)
		at = next + 2;
	if (!EXPECT_THAT(sentence, at != NULL && strcmp(at, wanted) == 0))
		printf("# got:\n%s# wanted:\n%s", at ? at : text, wanted);
	sink_release(&sink);
}

static void test_words(void)
{
	struct compare *compare = begin();
	struct compare_row *row;

	expect_words("no rows at all",
		     "Nothing to compare: A and B have no operations in common. Try another --by, "
		     "such as --by function,size.\n"
		     "Result: could not tell whether B is slower than A by more than 5%.\n");
	row = add("AllReduce", 1, 0.015625);
	expect_words("one row, the same",
		     "1 kind of operations compared: none is slower by more than 5%.\n"
		     "Result: no slowdown above 5%.\n");
	row->ratio_high = 1.0625;
	expect_words("the interval reaches beyond the threshold",
		     "1 kind of operations compared: none looks slower by more than 5%, but up to "
		     "6% cannot be excluded (AllReduce, 1 MiB).\n"
		     "Result: no slowdown above 5%.\n");
	add("AllGather", 1, 0.25)->share = COMPARE_SHARE_LEAST / 2;
	expect_words("a row that hardly matters is not the least certain one",
		     "2 kinds of operations compared: none looks slower by more than 5%, but up to "
		     "6% cannot be excluded (AllReduce, 1 MiB).\n"
		     "Result: no slowdown above 5%.\n");
	add("Broadcast", 1, 0.125)->share = COMPARE_SHARE_LEAST;
	expect_words("one that matters just enough is",
		     "3 kinds of operations compared: none looks slower by more than 5%, but up to "
		     "12% cannot be excluded (Broadcast, 1 MiB).\n"
		     "Result: no slowdown above 5%.\n");
	row->is_undecided = true;
	row->ratio = 1.0546875;
	compare->undecided = 1;
	expect_words("one row looks slower",
		     "3 kinds of operations compared: none is certainly slower or faster by more "
		     "than 5%.\n"
		     "1 looks slower (AllReduce, 1 MiB: +5.5%), but the 95% interval, -1.6% to "
		     "6.2%, includes the threshold of 5%.\n"
		     "Result: could not tell whether B is slower than A by more than 5%.\n");
	row->is_undecided = false;
	made.rows[2].is_undecided = true;
	compare->undecided = 2;
	expect_words("two rows do, and the first is not one of them",
		     "3 kinds of operations compared: none is certainly slower or faster by more "
		     "than 5%.\n"
		     "2 look slower (Broadcast, 1 MiB: +0.0%), but the 95% interval, -12.5% to "
		     "12.5%, includes the threshold of 5%.\n"
		     "Result: could not tell whether B is slower than A by more than 5%.\n");
	made.rows[2].is_undecided = false;
	compare->undecided = 0;
	compare->faster = 1;
	compare->threshold = 0.125;
	expect_words("faster ones alone",
		     "3 kinds of operations compared: 0 slower, 1 faster by more than 12.5%.\n"
		     "Result: no slowdown above 12.5%.\n");
	compare->slower = 2;
	compare->faster = 0;
	compare->is_job_slower = true;
	expect_words("slower ones alone",
		     "3 kinds of operations compared: 2 slower, 0 faster by more than 12.5%.\n"
		     "Result: B is slower than A by more than 12.5%.\n");
	compare->slower = 0;
	compare->senders_slower = 1;
	expect_words("the job is slower, and so is a sender",
		     "3 kinds of operations compared: none is slower by more than 12.5%.\n"
		     "Result: B is slower than A by more than 12.5%.\n");
	compare->senders_slower = 0;
	expect_words("the job alone is slower",
		     "3 kinds of operations compared: none is slower by more than 12.5%.\n"
		     "Result: B is slower than A by more than 12.5%. Transfers are not.\n");
}

/* A row that hardly matters comes first: any row that matters replaces it. */
static void test_least_certain(void)
{
	struct compare *compare = begin();

	add("small", 1, 0.5)->share = COMPARE_SHARE_LEAST / 2;
	add("other ranks", 1, 0.75)->basis = COMPARE_BANDWIDTH;
	add("no interval", 1, 0.75)->has_interval = false;
	compare->judged = 1;
	expect_words("a small row is better than none",
		     "1 kind of operations compared: none looks slower by more than 5%, but up to "
		     "50% cannot be excluded (small, 1 MiB).\n"
		     "Not judged, because of different numbers of ranks: 1.\n"
		     "Result: no slowdown above 5% in what could be compared.\n");
	add("large", 1, 0.125);
	expect_words("a row that matters is better than a small one",
		     "2 kinds of operations compared: none looks slower by more than 5%, but up to "
		     "12% cannot be excluded (large, 1 MiB).\n"
		     "Not judged, because of different numbers of ranks: 1.\n"
		     "Result: no slowdown above 5% in what could be compared.\n");
	add("as large", 1, 0.125);
	expect_words("of two alike the first",
		     "3 kinds of operations compared: none looks slower by more than 5%, but up to "
		     "12% cannot be excluded (large, 1 MiB).\n"
		     "Not judged, because of different numbers of ranks: 1.\n"
		     "Result: no slowdown above 5% in what could be compared.\n");
}

static void test_left_out(void)
{
	struct compare *compare = begin();

	add("A", 1, 0)->has_interval = false;
	add("B", 1, 0)->has_interval = false;
	compare->judged = 0;
	compare->only_a = 2;
	expect_words("all rows are of one side",
		     "Nothing to compare: A and B have no operations in common. Try another --by, "
		     "such as --by function,size.\n"
		     "Only in A: 2, only in B: 0.\n"
		     "Result: could not tell whether B is slower than A by more than 5%.\n");
	compare->only_a = 0;
	compare->only_b = 1;
	expect_words("too few calls",
		     "Nothing could be compared: too few calls, or different numbers of ranks.\n"
		     "Only in A: 0, only in B: 1.\n"
		     "Result: could not tell whether B is slower than A by more than 5%.\n");
	compare->not_timed = 1;
	expect_words("not timed",
		     "Nothing to compare: no operation was timed on both sides.\n"
		     "Only in A: 0, only in B: 1. Not compared, because not timed on both sides: "
		     "1.\n"
		     "Result: could not tell whether B is slower than A by more than 5%.\n");
	made.rows[0].basis = COMPARE_BANDWIDTH;
	expect_words("everything that is left out, in one line",
		     "Nothing to compare: no operation was timed on both sides.\n"
		     "Only in A: 0, only in B: 1. Not compared, because not timed on both sides: "
		     "1. Not judged, because of different numbers of ranks: 1.\n"
		     "Result: could not tell whether B is slower than A by more than 5%.\n");
	compare->only_b = 0;
	compare->not_timed = 0;
	expect_words("other numbers of ranks",
		     "Nothing could be compared: too few calls, or different numbers of ranks.\n"
		     "Not judged, because of different numbers of ranks: 1.\n"
		     "Result: could not tell whether B is slower than A by more than 5%.\n");
}

/* ---- baselines --------------------------------------------------------------------------------- */

static void expect_baseline(const char *name, const struct baseline *baseline)
{
	char path[128];
	struct sink sink;
	struct json json;

	snprintf(path, sizeof(path), EXPECTED "baseline-%s.txt", name);
	sink_init_memory(&sink);
	EXPECT_EQUAL(baseline_text(&sink, baseline, 0), OK);
	EXPECT_THAT(path, expected_text(&sink, path));
	snprintf(path, sizeof(path), EXPECTED "baseline-%s.json.lines", name);
	sink_init_memory(&sink);
	json_init(&json, &sink);
	baseline_json(&json, baseline);
	EXPECT_THAT(path, expected_json(&sink, path));
}

static void test_baseline(void)
{
	struct baseline_row rows[2] = { { .nranks = 8,
					  .nnodes = 2,
					  .calls = 12345,
					  .comms = 3,
					  .is_joined = true,
					  .busbw = 1.5e9,
					  .mean_ns = 2.5e6,
					  .median_ns = 2.25e6,
					  .p10_ns = 2e6,
					  .p99_ns = 4e6,
					  .wire_ns = 1000,
					  .consume_ns = 2000,
					  .channels = 4,
					  .log_mean = 14.5,
					  .log_deviation = 0.25,
					  .samples = 64 },
					{ .nranks = -1, .nnodes = -1, .mean_ns = 1e3 } };
	struct baseline baseline = { .rows = rows,
				     .count = 2,
				     .jobs = 1,
				     .ranks = 1,
				     .wait_share = 0.25,
				     .iterations = 1,
				     .iteration_ops = 1,
				     .iteration_ns = 3e6,
				     .iteration_busy_ns = 2e6 };

	snprintf(rows[0].comm_name, sizeof(rows[0].comm_name), "world");
	snprintf(rows[0].kind, sizeof(rows[0].kind), "mixed");
	snprintf(rows[0].function, sizeof(rows[0].function), "AllReduce");
	snprintf(rows[0].size, sizeof(rows[0].size), "1 MiB");
	snprintf(rows[0].algorithm, sizeof(rows[0].algorithm), "RING");
	snprintf(rows[0].protocol, sizeof(rows[0].protocol), "LL");
	snprintf(rows[1].function, sizeof(rows[1].function), "Send");
	expect_baseline("small", &baseline);
	snprintf(baseline.job, sizeof(baseline.job), "train");
	baseline.jobs = baseline.ranks = 2;
	baseline.iterations = 0;
	baseline.saved_wall_ns = 1;
	baseline.count = 0;
	rows[1].busbw = 2e9;
	expect_baseline("empty", &baseline);
	baseline.jobs = 1;
	baseline.count = 2;
	baseline.iterations = 3;
	baseline.iteration_ops = 2;
	rows[0].nranks = rows[0].nnodes = 0;
	expect_baseline("other", &baseline);
}

int main(void)
{
	test_everything();
	test_job();
	test_lengths();
	test_words();
	test_least_certain();
	test_left_out();
	test_baseline();
	return tap_done();
}
