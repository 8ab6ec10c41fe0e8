#include <math.h>
#include <string.h>

#include "bench/bench_result.h"
#include "bench/cost_model.h"
#include "bench/crossover.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "tests/tap.h"

enum { RANKS = 4, CALLS = 8, SIZES = 7 };

/*
 * A ring has more hops and less data per link: it is slow for small messages and fast for large ones. They cross at
 * 125 KiB; between measured sizes it is interpolated.
 */
static double ring_ns(double bytes)
{
	return 40000 + bytes / 4;
}

static double tree_ns(double bytes)
{
	return 8000 + bytes / 2;
}

static void add_cell(struct bench_run *run, uint8_t algorithm, uint64_t bytes, double ns,
		     uint8_t chosen)
{
	const struct bench_cell like = {
		.function = OP_ALL_REDUCE,
		.datatype = OP_FLOAT32,
		.redop = BENCH_SUM,
		.mode = BENCH_BLOCKING,
		.algorithm = algorithm,
		.protocol = algorithm ? OP_SIMPLE : 0,
		.chosen_algorithm = chosen,
		.chosen_protocol = chosen ? OP_SIMPLE : 0,
		.root = -1,
		.nranks = RANKS,
		.count = bytes / 4,
		.bytes = bytes,
		.calls = CALLS,
	};
	struct bench_cell *cell = bench_run_add_cell(run, &like);

	for (uint32_t i = 0; i < RANKS * CALLS; i++)
		cell->calls_of[i] = (struct bench_call){
			.begin_ns = 1000 + i,
			.gpu_ns = (uint64_t)(ns * (1 + 0.001 * (i % CALLS))),
		};
}

/* NCCL keeps using the tree, which is wrong for large messages. */
static void make_run(struct bench_run *run)
{
	bench_run_init(run);
	bench_run_set_ranks(run, RANKS);
	run->nccl_version = 22809;
	run->nodes = 1;
	for (int32_t i = 0; i < RANKS; i++) {
		text_copy(run->ranks[i].host, sizeof(run->ranks[i].host), "node01");
		text_copy(run->ranks[i].gpu_name, sizeof(run->ranks[i].gpu_name), "A & B <GPU>");
		run->ranks[i].device = i;
	}
	for (unsigned int i = 0; i < SIZES; i++) {
		uint64_t bytes = UINT64_C(1024) << 2 * i;

		add_cell(run, OP_RING, bytes, ring_ns((double)bytes), 0);
		add_cell(run, OP_TREE, bytes, tree_ns((double)bytes), 0);
		add_cell(run, 0, bytes, tree_ns((double)bytes), OP_TREE);
	}
	bench_run_note(run, "not available here: <script>alert(1)</script>");
}

static struct cost_model model;

static struct crossover_view view_of(const struct bench_run *run, struct crossover_set *set)
{
	const struct cost_fit_options options = { .over = BENCH_OVER_MEAN };
	struct crossover_view view = { .run = run, .set = set };

	crossover_set_init(set);
	EXPECT_EQUAL(crossover_find(set, run, BENCH_OVER_MEAN), OK);
	cost_model_init(&model);
	if (cost_fit(&model, NULL, &run, 1, &options) == OK)
		view.model = &model;
	return view;
}

static bool has(const struct sink *sink, const char *text)
{
	bool is_there = strstr(sink_string(sink), text) != NULL;

	if (!is_there)
		printf("# no '%s' in:\n# %s\n", text, sink_string(sink));
	return is_there;
}

static void check_text(const struct crossover_view *view)
{
	const struct crossover_text_options wide = { .has_plot = true, .is_ascii = true };
	const struct crossover_text_options narrow = { .width = 60 };
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT_EQUAL(crossover_text(&sink, view, &wide), OK);
	EXPECT_THAT("what was measured comes first",
		    strncmp(sink_string(&sink), "AllReduce, float32, sum, blocking, 4 ranks\n",
			    43) == 0);
	EXPECT_THAT("the fastest is marked", has(&sink, "Tree+Simple *"));
	EXPECT_THAT("so is its time", has(&sink, "8.54 us *"));
	EXPECT_THAT("the crossing is reported",
		    has(&sink, "Tree+Simple below 13") && has(&sink, "KiB, Ring+Simple above"));
	EXPECT_THAT("advice is given", has(&sink, "\nADVICE\n"));
	EXPECT_THAT("NCCL's choice is shown", has(&sink, "NCCL CHOSE"));
	EXPECT_THAT("the model is shown", has(&sink, "median error"));
	EXPECT_THAT("notes are shown", has(&sink, "<script>alert(1)</script>"));
	sink_release(&sink);

	sink_init_memory(&sink);
	EXPECT_EQUAL(crossover_text(&sink, view, &narrow), OK);
	EXPECT_THAT("a narrow table says how many columns are missing",
		    has(&sink, "(terminal too narrow for "));
	EXPECT_THAT("and keeps the answer", has(&sink, "FASTEST") && has(&sink, "OF BEST"));
	sink_release(&sink);
}

static void check_json(const struct crossover_view *view)
{
	struct bench_run again;
	struct sink sink, twice;
	const char *at;
	size_t size;

	sink_init_memory(&sink);
	EXPECT_EQUAL(crossover_json(&sink, view), OK);
	EXPECT_THAT("it names its format",
		    has(&sink, "{\"format\":\"ringside-crossover\",\"version\":1,"));
	EXPECT_THAT("crossings are in it", has(&sink, "\"answer\":\"crosses\""));
	EXPECT_THAT("regret is in it", has(&sink, "\"is_regret_clear\":true"));
	EXPECT_THAT("advice is in it", has(&sink, "\"kind\":\"change\""));
	EXPECT_EQUAL(run_inside(sink_string(&sink), sink.used, &at, &size), OK);
	EXPECT_EQUAL(bench_read(&again, at, size, NULL), OK);
	EXPECT_EQUAL(again.cell_count, view->run->cell_count);
	bench_run_release(&again);
	sink_init_memory(&twice);
	crossover_json(&twice, view);
	EXPECT_THAT("the output is deterministic",
		    strcmp(sink_string(&sink), sink_string(&twice)) == 0);
	sink_release(&twice);
	sink_release(&sink);
}

static void check_html(const struct crossover_view *view)
{
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT_EQUAL(crossover_html(&sink, view), OK);
	EXPECT_THAT("it is a page", strncmp(sink_string(&sink), "<!doctype html>\n", 16) == 0);
	EXPECT_THAT("it has no scripts", strstr(sink_string(&sink), "<script") == NULL);
	EXPECT_THAT("a note is escaped", has(&sink, "&lt;script&gt;alert(1)&lt;/script&gt;"));
	EXPECT_THAT("so is a GPU's name", has(&sink, "A &amp; B &lt;GPU&gt;"));
	EXPECT_THAT("the policy only allows its own style", has(&sink, "style-src 'sha256-"));
	EXPECT_THAT("it has one style",
		    strstr(strstr(sink_string(&sink), "<style") + 1, "<style") == NULL);
	EXPECT_THAT("it fetches nothing", strstr(sink_string(&sink), "src=") == NULL &&
						  strstr(sink_string(&sink), "@import") == NULL &&
						  strstr(sink_string(&sink), "url(") == NULL);
	EXPECT_THAT("charts have unique ids",
		    has(&sink, "id=\"time-0\"") && has(&sink, "id=\"busbw-0\"") &&
			    has(&sink, "id=\"regret-0\"") && has(&sink, "id=\"model-0\""));
	EXPECT_THAT("it is complete", has(&sink, "</html>\n"));
	sink_release(&sink);
}

/* Wrong results never win, and are marked. */
static void check_wrong(struct bench_run *run)
{
	const struct crossover_text_options wide = { .width = 0 };
	struct crossover_set set;
	struct crossover_view view;
	struct sink sink;

	for (size_t i = 0; i < run->cell_count; i++)
		if (run->cells[i].algorithm == OP_TREE)
			run->cells[i].wrong = 3;
	view = view_of(run, &set);
	sink_init_memory(&sink);
	EXPECT_EQUAL(crossover_text(&sink, &view, &wide), OK);
	EXPECT_THAT("a wrong result is marked", has(&sink, "us !"));
	EXPECT_THAT("and is not the fastest",
		    strstr(sink_string(&sink), "Tree+Simple *") == NULL &&
			    strstr(sink_string(&sink), "Tree+Simple ~") == NULL);
	sink_release(&sink);
	crossover_set_release(&set);
}

static void check_without_model(struct crossover_view view)
{
	const struct crossover_text_options wide = { .width = 0 };
	struct sink sink;

	view.model = NULL;
	view.why_no_model = "fewer than 3 sizes";
	sink_init_memory(&sink);
	EXPECT_EQUAL(crossover_text(&sink, &view, &wide), OK);
	EXPECT_THAT("the reason for a missing model is shown",
		    has(&sink, "- fewer than 3 sizes\n"));
	sink_release(&sink);
	sink_init_memory(&sink);
	EXPECT_EQUAL(crossover_html(&sink, &view), OK);
	EXPECT_THAT("the page, too", has(&sink, "No model: fewer than 3 sizes"));
	sink_release(&sink);
}

static void check_inside(void)
{
	static const char *const foreign[] = { "", "{", "[]", "{\"format\":\"other\",\"run\":{}}",
					       "{\"run\":{}}" };
	static const char *const damaged[] = {
		"{\"format\":\"ringside-crossover\"}",
		"{\"format\":\"ringside-crossover\",\"run\":1}",
		"{\"format\":\"ringside-health\",\"run\":{\"a\":[1,}}",
		"{\"format\":\"ringside-health\",\"x\":{]",
	};
	const char *text =
		"{\"format\":\"ringside-health\",\"x\":[{\"run\":{}}],\"run\": {\"a\":1}}";
	const char *at;
	size_t size;

	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		EXPECT_EQUAL(run_inside(foreign[i], strlen(foreign[i]), &at, &size), ERR_UNKNOWN);
	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++)
		EXPECT_EQUAL(run_inside(damaged[i], strlen(damaged[i]), &at, &size), ERR_FORMAT);
	EXPECT_EQUAL(run_inside(text, strlen(text), &at, &size), OK);
	EXPECT_THAT("the value of its own key is taken",
		    size == 7 && strncmp(at, "{\"a\":1}", 7) == 0);
}

int main(void)
{
	struct crossover_set set;
	struct crossover_view view;
	struct bench_run run;

	make_run(&run);
	view = view_of(&run, &set);
	check_text(&view);
	check_json(&view);
	check_html(&view);
	check_without_model(view);
	crossover_set_release(&set);
	check_wrong(&run);
	bench_run_release(&run);
	check_inside();
	return tap_done();
}
