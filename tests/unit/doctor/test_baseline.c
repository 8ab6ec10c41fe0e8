#include "doctor/doctor.h"

#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "output/report.h"
#include "tests/unit/doctor/transfers.h"
#include "tests/tap.h"

static char *written(const struct baseline *baseline, size_t *length)
{
	struct sink sink;
	struct json json;
	char *text;

	sink_init_memory(&sink);
	json_init(&json, &sink);
	baseline_json(&json, baseline);
	json_line(&json);
	if (json_status(&json) != OK)
		abort();
	*length = sink.used;
	text = malloc(sink.used + 1);
	memcpy(text, sink.bytes, sink.used);
	text[sink.used] = '\0';
	sink_release(&sink);
	return text;
}

static const struct baseline_row *row_of(const struct baseline *baseline, const char *comm,
					 const char *size)
{
	for (size_t i = 0; i < baseline->count; i++)
		if (strcmp(baseline->rows[i].comm_name, comm) == 0 &&
		    strcmp(baseline->rows[i].size, size) == 0)
			return &baseline->rows[i];
	abort();
}

static void rows(const struct baseline *baseline)
{
	const struct baseline_row *row = row_of(baseline, "tp1", "16 MiB");

	/* tp0 .. tp3, dp0, dp1, world; two sizes each. */
	EXPECT_EQUAL(baseline->count, 14);
	EXPECT_THAT("a row has its communicator, operation and size",
		    strcmp(row->kind, "nvlink-only") == 0 &&
			    strcmp(row->function, "AllReduce") == 0 &&
			    strcmp(row->algorithm, "RING") == 0 &&
			    strcmp(row->protocol, "SIMPLE") == 0 && row->nranks == 2 &&
			    row->nnodes == 1 && row->calls == 2 * TRANSFERS_CALLS);
	/* 16 MiB at 200 GB/s and 5 us, plus the waiting of the faster of two ranks. */
	EXPECT_THAT("its time is the transfer time",
		    row->is_joined && row->mean_ns > 88000 && row->mean_ns < 105000);
	EXPECT_THAT("and so is its bandwidth", row->busbw > 150e9 && row->busbw < 195e9);
	EXPECT_THAT("calls take longer because they wait", row->p99_ns > row->mean_ns * 1.08);
	EXPECT_THAT("the spread is that of transfers",
		    row->log_deviation > 0.005 && row->log_deviation < 0.1);
	EXPECT_THAT("one sample per iteration", row->samples == 160);
	EXPECT_THAT("the header", strcmp(baseline->job, "job") == 0 && baseline->jobs == 1 &&
					  baseline->ranks == 8 && baseline->iterations == 160 &&
					  baseline->iteration_ops == 6);
}

static void round_trip(const struct baseline *baseline)
{
	struct baseline again;
	size_t length, second;
	char why[200], *text = written(baseline, &length), *copy;

	EXPECT_THAT("it reads what it writes",
		    baseline_read(&again, text, length, why, sizeof(why)) == OK);
	copy = written(&again, &second);
	EXPECT_THAT("and loses nothing", length == second && memcmp(text, copy, length) == 0);
	baseline_release(&again);
	free(copy);
	free(text);
}

/* ---- rejected input -------------------------------------------------------------------------- */

#define ROW                                                                                     \
	"{\"comm_name\":\"\",\"kind\":\"mixed\",\"function\":\"AllReduce\",\"size\":\"1 MiB\"," \
	"\"algorithm\":\"RING\",\"protocol\":\"LL\",\"nranks\":8,\"nnodes\":2,\"calls\":10,"    \
	"\"is_joined\":true,\"busbw_bytes_per_second\":1e9,\"mean_ns\":1,\"median_ns\":1,"      \
	"\"p10_ns\":1,\"p99_ns\":1,\"log_mean\":0.5,\"log_deviation\":0.1,\"samples\":10"
#define HEAD "{\"format\":\"ringside-baseline\",\"version\":1,"

static void refused(const char *sentence, const char *text, enum status wanted, const char *word)
{
	struct baseline baseline;
	char why[200];
	enum status status = baseline_read(&baseline, text, strlen(text), why, sizeof(why));

	if (!EXPECT_THAT(sentence, status == wanted && strstr(why, word) != NULL &&
					   strchr(why, '\n') == NULL))
		printf("#   %d: %s\n", status, why);
	if (status == OK)
		baseline_release(&baseline);
}

static void bad_input(void)
{
	refused("nothing", "", ERR_FORMAT, "byte 0");
	refused("not JSON", "hello", ERR_FORMAT, "line 1");
	refused("another kind of JSON", "{\"format\":\"ringside-report\",\"version\":1}",
		ERR_FORMAT, "format");
	refused("any JSON", "{\"a\":1}", ERR_FORMAT, "not a baseline");
	refused("a list", "[]", ERR_FORMAT, "not a JSON object");
	refused("a newer version", "{\"format\":\"ringside-baseline\",\"version\":2,\"rows\":[]}",
		ERR_VERSION, "newer");
	refused("no version", "{\"format\":\"ringside-baseline\",\"rows\":[]}", ERR_FORMAT,
		"version");
	refused("no rows", HEAD "\"job\":\"x\"}", ERR_FORMAT, "rows: is missing");
	refused("rows given twice", HEAD "\"rows\":[],\n\"rows\":[]}", ERR_FORMAT, "line 2");
	refused("truncated", HEAD "\"rows\":[" ROW "},", ERR_FORMAT, "line 1");
	refused("trailing data", HEAD "\"rows\":[]} x", ERR_FORMAT, "byte");
	refused("a row without a required key", HEAD "\"rows\":[{\"comm_name\":\"x\"}]}",
		ERR_FORMAT, "kind: is missing");
	refused("a row that is a number", HEAD "\"rows\":[7]}", ERR_FORMAT, "other than objects");
	refused("a key given twice", HEAD "\"rows\":[" ROW ",\"calls\":3}]}", ERR_FORMAT,
		"calls: is given twice");
	refused("a number given as a string", HEAD "\"rows\":[],\"ranks\":\"8\"}", ERR_FORMAT,
		"ranks: is not a non-negative integer");
	refused("a share above 1", HEAD "\"rows\":[],\"wait_share\":1.5}", ERR_FORMAT,
		"wait_share: is out of range");
	refused("a negative number", HEAD "\"rows\":[],\"iteration_median_ns\":-1}", ERR_FORMAT,
		"out of range");
	refused("a name that is too long",
		HEAD "\"job\":\"0123456789012345678901234567890123456789012345678901234567890123456"
		     "78901234567890123456789012345678901234567890123456789012345678901234567890123"
		     "4567890\",\"rows\":[]}",
		ERR_FORMAT, "job: is too long");
	refused("control characters in names", HEAD "\"job\":\"\\u001b[2J\",\"rows\":[]}",
		ERR_FORMAT, "control");
}

/* Every field of a row and of the head, with the last value that is taken and one beyond it. */
static void limits(void)
{
	static const struct {
		const char *key, *last, *beyond, *why;
	} cases[] = {
		{ "jobs", "4294967295", "4294967296", "jobs: is too large" },
		{ "ranks", "0", "-1", "ranks: is not a non-negative integer" },
		{ "wait_share", "1", "1.0001", "wait_share: is out of range" },
		{ "wait_share", "0", "true", "wait_share: is not a number" },
		{ "iterations", "1000000000000000000", "1000000000000000001", "too large" },
		{ "iteration_median_ns", "1e18", "1.1e18", "out of range" },
		{ "job", "\"x\"", "7", "job: is not a string" },
		{ "job", "\"\"", "\"a\\u007f\"", "job: has control characters" },
	};
	static const struct {
		const char *key, *last, *beyond, *why;
	} of_rows[] = {
		{ "communicators", "1000000000000000000", "1000000000000000001", "too large" },
		{ "channels", "255", "256", "channels: is out of range" },
		{ "wire_ns", "0", "-0.5", "wire_ns: is out of range" },
		{ "consume_ns", "1e18", "2e18", "consume_ns: is out of range" },
	};
	struct baseline baseline;
	char text[1024], why[200];

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		text_format(text, sizeof(text), HEAD "\"%s\":%s,\"rows\":[]}", cases[i].key,
			    cases[i].last);
		if (EXPECT(baseline_read(&baseline, text, strlen(text), why, sizeof(why)) == OK))
			baseline_release(&baseline);
		text_format(text, sizeof(text), HEAD "\"%s\":%s,\"rows\":[]}", cases[i].key,
			    cases[i].beyond);
		refused(cases[i].key, text, ERR_FORMAT, cases[i].why);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(of_rows); i++) {
		text_format(text, sizeof(text), HEAD "\"rows\":[" ROW ",\"%s\":%s}]}",
			    of_rows[i].key, of_rows[i].last);
		if (EXPECT(baseline_read(&baseline, text, strlen(text), why, sizeof(why)) == OK))
			baseline_release(&baseline);
		text_format(text, sizeof(text), HEAD "\"rows\":[" ROW ",\"%s\":%s}]}",
			    of_rows[i].key, of_rows[i].beyond);
		refused(of_rows[i].key, text, ERR_FORMAT, of_rows[i].why);
	}
	refused("version 0", "{\"format\":\"ringside-baseline\",\"version\":0,\"rows\":[]}",
		ERR_FORMAT, "version: 0 is not a valid version");
	refused("rows that are none", HEAD "\"rows\":{}}", ERR_FORMAT, "rows: is not a list");
	refused("a format that is a number", "{\"format\":7}", ERR_FORMAT,
		"format: is not a string");
}

static void good_input(void)
{
	const char *text = HEAD "\"new\":{\"a\":[1,2]},\"rows\":[" ROW ",\"more\":null}]}\n";
	struct baseline baseline;
	char why[200];

	EXPECT_THAT("keys of later versions are skipped",
		    baseline_read(&baseline, text, strlen(text), why, sizeof(why)) == OK &&
			    baseline.count == 1 && baseline.rows[0].nranks == 8 &&
			    baseline.rows[0].comms == 1 && baseline.rows[0].is_joined);
	baseline_release(&baseline);
}

/* ---- several communicators with the same name ------------------------------------------------ */

static void merged(void)
{
	struct timeline_options options = { .custom_by = { BASELINE_BY }, .custom_count = 1 };
	struct hand_made hand = { .list = { NULL } };
	struct timeline_report report;
	struct baseline baseline;

	for (int rank = 0; rank < 4; rank++) {
		struct recording_process *process = hand_process(&hand, "j", rank, "a");
		uint32_t comm =
			hand_comm(process, 0x10 + (uint64_t)(rank / 2), "pair", rank % 2, 2, 1);

		for (uint64_t n = 1; n <= 32; n++)
			hand_op(process, comm, OP_ALL_REDUCE, n, 1 << 20,
				rank < 2 ? 100000 : 200000, n * 1000000);
	}
	if (timeline_report_make(&report, &hand.recording, NULL, &options) != OK ||
	    baseline_make(&baseline, &report) != OK)
		abort();
	EXPECT_EQUAL(baseline.count, 1);
	EXPECT_THAT("communicators with the same name are one row",
		    baseline.rows[0].comms == 2 && baseline.rows[0].calls == 128 &&
			    baseline.rows[0].mean_ns == 150000);
	EXPECT_THAT("whose spread includes the differences between them",
		    fabs(baseline.rows[0].log_deviation - log(2) / 2) < 0.001);
	baseline_release(&baseline);
	report.custom[0].by = TALLY_BY_COMM;
	EXPECT(baseline_make(&baseline, &report) == ERR_RANGE);
	timeline_report_release(&report);
	hand_release(&hand);
}

/* ---- Sends, which nobody joins ----------------------------------------------------------------- */

/* Sends that take a and b in turn: the logarithm's mean and spread are those of the calls. */
static void sends_have_the_spread_of_calls(void)
{
	static const struct {
		uint64_t a_ns, b_ns, calls;
	} cases[] = { { 100000, 100000, 80 }, { 100000, 400000, 80 }, { 100000, 400000, 160 } };
	double samples[ARRAY_LENGTH(cases)];

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct timeline_options options = { .custom_by = { BASELINE_BY },
						    .custom_count = 1 };
		struct hand_made hand = { .list = { NULL } };
		struct timeline_report report;
		struct baseline baseline;
		double mean = (log((double)cases[i].a_ns) + log((double)cases[i].b_ns)) / 2;
		double spread = (log((double)cases[i].b_ns) - log((double)cases[i].a_ns)) / 2;

		for (int rank = 0; rank < 2; rank++) {
			struct recording_process *process = hand_process(&hand, "j", rank, "a");
			uint32_t comm = hand_comm(process, 0x10, "pair", rank, 2, 1);

			for (uint64_t n = 1; n <= cases[i].calls; n++)
				hand_op(process, comm, rank == 0 ? OP_SEND : OP_RECV, n, 1 << 20,
					n % 2 ? cases[i].a_ns : cases[i].b_ns, n * 1000000)
					->peer = 1 - rank;
		}
		if (timeline_report_make(&report, &hand.recording, NULL, &options) != OK ||
		    baseline_make(&baseline, &report) != OK)
			abort();
		EXPECT_EQUAL(baseline.count, 2);
		for (size_t r = 0; r < baseline.count; r++) {
			const struct baseline_row *row = &baseline.rows[r];

			EXPECT(!row->is_joined && row->calls == cases[i].calls);
			/* A bucket is 9% wide. */
			if (!EXPECT(fabs(row->log_mean - mean) < 0.09 &&
				    fabs(row->log_deviation - spread) < 0.05))
				printf("# %g, %g\n", row->log_mean - mean,
				       row->log_deviation - spread);
			samples[i] = row->samples;
		}
		baseline_release(&baseline);
		timeline_report_release(&report);
		hand_release(&hand);
	}
	EXPECT_THAT("twice as many calls are twice as many samples, but calls resemble each other",
		    samples[2] == 2 * samples[1] && samples[1] == samples[0] && samples[0] < 80 &&
			    samples[0] > 0);
}

int main(void)
{
	struct transfers job = { .nodes = 4, .gpus = 2, .seed = 1, .late_rank = -1 };
	struct baseline baseline;

	transfers_make(&job);
	if (baseline_make(&baseline, &job.report) != OK)
		abort();
	rows(&baseline);
	round_trip(&baseline);
	baseline_release(&baseline);
	transfers_release(&job);
	bad_input();
	limits();
	good_input();
	merged();
	sends_have_the_spread_of_calls();
	return tap_done();
}
