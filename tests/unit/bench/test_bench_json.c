/* A run is written and read back unchanged. Every modified document is rejected, with the position of the error. */
#include "bench/bench_result.h"

#include <string.h>

#include "common/op_layout.h"
#include "import/expected.h"
#include "tests/support/bench_sample.h"
#include "tests/tap.h"

static int is_cell_same(const struct bench_cell *a, const struct bench_cell *b)
{
	struct bench_cell one = *a, two = *b;
	size_t calls = a->calls_of != NULL ? (size_t)a->nranks * a->calls : 0;

	if ((a->calls_of == NULL) != (b->calls_of == NULL) ||
	    (a->peers == NULL) != (b->peers == NULL))
		return 0;
	one.calls_of = two.calls_of = NULL;
	one.peers = two.peers = NULL;
	/* Comparing field by field would miss new fields. */
	__builtin_clear_padding(&one);
	__builtin_clear_padding(&two);
	return memcmp(&one, &two, sizeof(one)) == 0 && a->calls == b->calls &&
	       (calls == 0 ||
		memcmp(a->calls_of, b->calls_of, calls * sizeof(*a->calls_of)) == 0) &&
	       (a->peers == NULL ||
		memcmp(a->peers, b->peers, (size_t)a->nranks * sizeof(*a->peers)) == 0);
}

/* Bytes after the end of a string do not matter. */
static void clear_behind(char *text, size_t size)
{
	size_t length = strnlen(text, size);

	memset(text + length, 0, size - length);
}

static int is_run_same(const struct bench_run *a, const struct bench_run *b)
{
	struct bench_run one = *a, two = *b;

	for (size_t i = 0; i < BENCH_NOTES_MAX; i++) {
		clear_behind(one.notes[i], sizeof(one.notes[i]));
		clear_behind(two.notes[i], sizeof(two.notes[i]));
	}
	one.ranks = two.ranks = NULL;
	one.cells = two.cells = NULL;
	one.cell_room = two.cell_room = 0;
	if (memcmp(&one, &two, sizeof(one)) != 0 || a->nranks != b->nranks ||
	    memcmp(a->ranks, b->ranks, (size_t)a->nranks * sizeof(*a->ranks)) != 0)
		return 0;
	for (size_t i = 0; i < a->cell_count; i++)
		if (!is_cell_same(&a->cells[i], &b->cells[i])) {
			printf("#   cell %zu differs\n", i);
			return 0;
		}
	return 1;
}

static void test_again(const char *sentence, const struct bench_run *run)
{
	struct bench_read_problem problem = { .text = "" };
	struct bench_run again;
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT_EQUAL(bench_json_write(&sink, run), OK);
	if (EXPECT_THAT(sentence, bench_read(&again, sink.bytes, sink.used, &problem) == OK &&
					  is_run_same(run, &again)))
		bench_run_release(&again);
	else
		printf("#   line %llu, byte %zu: %s\n", (unsigned long long)problem.line,
		       problem.offset, problem.text);
	sink_release(&sink);
}

/* The text with the first `from` after `behind` replaced by `to`. */
static char *changed(const char *text, const char *behind, const char *from, const char *to)
{
	const char *at = strstr(text, behind);
	size_t size = strlen(text) + strlen(to) + 1;
	char *out = malloc(size);

	at = at != NULL ? strstr(at, from) : NULL;
	if (at == NULL || out == NULL)
		abort();
	text_format(out, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	return out;
}

struct change {
	const char *sentence;
	const char *behind;
	const char *from;
	const char *to;
	enum status status;
	const char *why; /* part of the problem's text */
};

static const struct change changes[] = {
	{ "another format is rejected", "", "ringside-bench", "ringside-expected", ERR_UNKNOWN,
	  "format" },
	{ "a newer version is rejected", "", "\"version\":1", "\"version\":2", ERR_VERSION,
	  "newer" },
	{ "a version that is not a number", "", "\"version\":1", "\"version\":\"1\"", ERR_FORMAT,
	  "version" },
	{ "no ranks", "", "\"ranks\":2", "\"ranks\":0", ERR_FORMAT, "ranks" },
	{ "more ranks than members", "", "\"ranks\":2", "\"ranks\":3", ERR_FORMAT,
	  "2 entries in members, but 3 ranks" },
	{ "fewer ranks than members", "", "\"ranks\":2", "\"ranks\":1", ERR_FORMAT,
	  "more than 1 ranks in members" },
	{ "a false number of ranks", "", "\"ranks\":2", "\"ranks\":65536", ERR_FORMAT,
	  "truncated: fewer than 65536 ranks" },
	{ "a fractional number of ranks", "", "\"ranks\":2", "\"ranks\":2.5", ERR_FORMAT,
	  "ranks is not" },
	{ "a host name that is too long", "", "node01",
	  "0123456789012345678901234567890123456789012345678901234567890123", ERR_FORMAT,
	  "host is longer than 63 bytes" },
	{ "a number instead of a string", "", "\"self\"", "7", ERR_FORMAT,
	  "launcher is not a string" },
	{ "a number instead of a boolean", "", "\"mps\":true", "\"mps\":1", ERR_FORMAT,
	  "mps is not true or false" },
	{ "an unknown function", "results", "AllReduce", "AllRedoce", ERR_FORMAT,
	  "result 1: function is not a known name" },
	{ "an unknown mode", "results", "blocking", "blockin", ERR_FORMAT, "mode" },
	{ "an unknown operation", "results", "\"sum\"", "\"some\"", ERR_FORMAT, "redop" },
	{ "a root that is not a rank", "results", "\"root\":-1", "\"root\":2", ERR_FORMAT,
	  "root is rank 2 of 2" },
	{ "more ranks in a result than in the run", "results", "\"ranks\":2", "\"ranks\":3",
	  ERR_FORMAT, "3 ranks in a run of 2" },
	{ "a false number of calls", "results", "\"calls\":4,", "\"calls\":4000000000,", ERR_FORMAT,
	  "truncated: fewer than 4000000000 calls of 2 ranks" },
	{ "one call too many", "results", "\"calls\":4,", "\"calls\":3,", ERR_FORMAT,
	  "begin_ns: more than 3 calls" },
	{ "one call too few", "results", "\"calls\":4,", "\"calls\":5,", ERR_FORMAT,
	  "begin_ns: 4 of 5 calls" },
	{ "a fractional time", "gpu_ns", "[", "[1.5,", ERR_FORMAT, "gpu_ns: not a whole number" },
	{ "a time past 64 bits", "gpu_ns", "[", "[18446744073709551616,", ERR_FORMAT,
	  "gpu_ns: not a whole number" },
	{ "a negative time", "gpu_ns", "[", "[-1,", ERR_FORMAT, "gpu_ns: not a whole number" },
	{ "a duplicate key", "results", "\"bytes\":", "\"bytes\":1,\"bytes\":", ERR_FORMAT,
	  "result 1: bytes is given twice" },
	{ "a missing key", "results", "\"bytes\":", "\"bites\":", ERR_FORMAT, "missing" },
	{ "a missing array", "results", "\"done_ns\":", "\"won_ns\":", ERR_FORMAT, "done_ns" },
	{ "a peer that is not a rank", "SendRecv", "\"peers\":[1,", "\"peers\":[2,", ERR_FORMAT,
	  "a peer" },
	{ "one peer too few", "\"peers\":[1,0]", "[1,0]", "[1]", ERR_FORMAT,
	  "1 peers for 2 ranks" },
	{ "results that are not an array", "results", "[", "{", ERR_FORMAT,
	  "results is not an array" },
	{ "not JSON", "", "{", "x", ERR_UNKNOWN, "" },
	{ "text after the end", "", "[]}]}\n", "[]}]} []\n", ERR_FORMAT, "" },
	{ "an unknown key is skipped", "results",
	  "\"bytes\":", "\"news\":[{\"a\":1}],\"bytes\":", OK, "" },
};

static void test_changes(const char *text)
{
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		const struct change *change = &changes[i];
		char *other = changed(text, change->behind, change->from, change->to);
		struct bench_read_problem problem = { .text = "" };
		struct bench_run run;
		enum status status = bench_read(&run, other, strlen(other), &problem);

		if (!EXPECT_THAT(change->sentence,
				 status == change->status &&
					 strstr(problem.text, change->why) != NULL))
			printf("#   status %d at byte %zu: %s\n", status, problem.offset,
			       problem.text);
		if (status == OK)
			bench_run_release(&run);
		free(other);
	}
}

/* A truncated document is never a run, and always has a reason. */
static void test_cuts(const char *text)
{
	size_t length = strlen(text) - 1, silent = 0, taken = 0;

	for (size_t cut = 0; cut < length; cut += cut < 4000 ? 1 : 97) {
		struct bench_read_problem problem = { .text = "" };
		struct bench_run run;

		if (bench_read(&run, text, cut, &problem) == OK) {
			bench_run_release(&run);
			taken++;
		}
		silent += problem.text[0] == '\0' || problem.offset > cut;
	}
	EXPECT_EQUAL(taken, 0);
	EXPECT_EQUAL(silent, 0);
}

static void test_places(const char *text)
{
	char *other = changed(text, "Broadcast", "\"graph\"", "\"grape\"");
	struct bench_read_problem problem;
	struct bench_run run;

	EXPECT_EQUAL(bench_read(&run, other, strlen(other), &problem), ERR_FORMAT);
	EXPECT_THAT("the position is that of the name",
		    strncmp(other + problem.offset - 7, "\"grape\"", 7) == 0);
	EXPECT_EQUAL(problem.line, 1 + 8);
	EXPECT_THAT("and the run is empty", run.cells == NULL && run.cell_count == 0);
	EXPECT_EQUAL(bench_read(&run, other, strlen(other), NULL), ERR_FORMAT);
	free(other);
}

static void test_texts(void)
{
	struct bench_run run, again;
	struct sink sink;

	sample_plain(&run);
	memset(run.plugin, 'x', sizeof(run.plugin) - 1);
	memcpy(run.plugin + sizeof(run.plugin) - 3, "\342\202", 2); /* cut inside a character */
	memset(run.command, 0xff, sizeof(run.command) - 1);
	sink_init_memory(&sink);
	EXPECT_EQUAL(bench_json_write(&sink, &run), OK);
	if (EXPECT_THAT("invalid UTF-8 still fits its field",
			bench_read(&again, sink.bytes, sink.used, NULL) == OK)) {
		EXPECT_THAT("invalid bytes become question marks",
			    strcmp(again.plugin + sizeof(run.plugin) - 5, "xx??") == 0);
		bench_run_release(&again);
	}
	sink_release(&sink);
	bench_run_release(&run);
}

static void test_refused(void)
{
	struct bench_run run;
	struct sink sink;

	sink_init_memory(&sink);
	sample_plain(&run);
	run.cells[1].nranks = 3;
	EXPECT_EQUAL(bench_json_write(&sink, &run), ERR_RANGE);
	run.cells[1].nranks = 2;
	run.cells[1].mode = BENCH_MODES;
	EXPECT_EQUAL(bench_json_write(&sink, &run), ERR_RANGE);
	bench_run_release(&run);
	bench_run_init(&run);
	EXPECT_EQUAL(bench_json_write(&sink, &run), ERR_RANGE);
	sink_release(&sink);
}

/* ---- what was really measured ------------------------------------------------------------------ */

static char *read_file(const char *path, size_t *length)
{
	FILE *file = fopen(path, "re");
	char *text = malloc(1 << 20);

	if (file == NULL || text == NULL)
		abort();
	*length = fread(text, 1, 1 << 20, file);
	fclose(file);
	return text;
}

static void test_recorded(void)
{
	struct bench_read_problem problem = { .text = "" };
	struct expected_value value = { 0 };
	struct expected expected;
	struct bench_run run;
	size_t length, wrong = 0, calls = 0;
	char *text = read_file("tests/bench/data/h200-shared.json", &length);

	EXPECT_EQUAL(bench_read(&run, text, length, &problem), OK);
	EXPECT_EQUAL(run.cell_count, 36);
	for (size_t i = 0; i < run.cell_count; i++) {
		wrong += run.cells[i].wrong != 0;
		calls += run.cells[i].calls_of != NULL ? run.cells[i].calls : 0;
	}
	EXPECT_EQUAL(wrong, 0);
	EXPECT_EQUAL(calls, 27 * 10);
	EXPECT_THAT("a note says that the GPU was shared", strstr(run.notes[0], "share one GPU"));
	expected_init(&expected);
	EXPECT_EQUAL(expected_add_memory(&expected, text, length, 0), OK);
	EXPECT_EQUAL(expected.damaged, 0);
	expected_finish(&expected);
	EXPECT_THAT("the fastest of its modes and places is the expectation",
		    expected_find(&expected, OP_ALL_REDUCE, 32 << 20, 2, &value) &&
			    value.how == 0 && value.time_ns == 10218816);
	expected_release(&expected);
	bench_run_release(&run);
	free(text);
}

/* Results that do not apply to a job are not used. */
static void test_expected(void)
{
	struct expected_value value = { 0 };
	struct expected expected;
	struct bench_run run;
	struct sink sink;

	sample_everything(&run);
	sink_init_memory(&sink);
	EXPECT_EQUAL(bench_json_write(&sink, &run), OK);
	expected_init(&expected);
	EXPECT_EQUAL(expected_add_memory(&expected, sink.bytes, sink.used, 0), OK);
	expected_finish(&expected);
	EXPECT_THAT("the median of the faster place",
		    expected_find(&expected, OP_ALL_REDUCE, 1 << 20, 2, &value) && value.how == 0 &&
			    value.time_ns == 85805);
	EXPECT_THAT("wrong results are not used",
		    !expected_find(&expected, OP_BROADCAST, 4096, 2, &value));
	EXPECT_THAT("nor are forced algorithms",
		    !expected_find(&expected, OP_ALL_GATHER, 1 << 20, 2, &value));
	EXPECT_THAT("grouped Sends are used",
		    expected_find(&expected, OP_ALL_TO_ALL, 1 << 20, 2, &value));
	EXPECT_EQUAL(expected.damaged, 4);
	expected_release(&expected);
	sink_release(&sink);
	bench_run_release(&run);
}

int main(void)
{
	struct bench_run run;
	struct sink sink;

	sample_start(&run, 1);
	test_again("a run without results is read back", &run);
	bench_run_release(&run);
	sample_plain(&run);
	test_again("a plain run is read back", &run);
	bench_run_release(&run);
	sample_everything(&run);
	test_again("every field is read back", &run);
	sink_init_memory(&sink);
	EXPECT_EQUAL(bench_json_write(&sink, &run), OK);
	test_changes(sink_string(&sink));
	test_cuts(sink_string(&sink));
	test_places(sink_string(&sink));
	sink_release(&sink);
	bench_run_release(&run);
	test_texts();
	test_refused();
	test_expected();
	test_recorded();
	return tap_done();
}
