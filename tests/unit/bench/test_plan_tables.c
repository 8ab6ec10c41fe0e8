/*
 * What a plan makes of words, sizes and budgets, where every function has its data, and the numbers in it: as tables
 * in tests/unit/bench/expected/plan_tables.txt.
 */
#include "bench/bench_plan.h"

#include <string.h>

#include "bench/bench_result.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"

/* ---- words and sizes ------------------------------------------------------------------------------- */

typedef int parse_fn(struct bench_plan *plan, const char *text, char *problem, size_t size);

static void show_numbers(struct sink *to, const uint8_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sink_format(to, " %d", numbers[i]);
}

static void show_words(struct sink *to, parse_fn *parse, const char *text)
{
	char problem[512] = "";
	struct bench_plan plan;

	plan_init(&plan);
	sink_format(to, "'%s':", text);
	if (parse(&plan, text, problem, sizeof(problem)) != 0)
		sink_format(to, " %s", problem);
	else if (parse == plan_functions)
		show_numbers(to, plan.functions, plan.function_count);
	else if (parse == plan_datatypes)
		show_numbers(to, plan.datatypes, plan.datatype_count);
	else if (parse == plan_redops)
		show_numbers(to, plan.redops, plan.redop_count);
	else if (parse == plan_modes)
		show_numbers(to, plan.modes, plan.mode_count);
	for (size_t i = 0; parse == plan_sizes && problem[0] == '\0' && i < plan.size_count; i++)
		sink_format(to, " %llu", (unsigned long long)plan.sizes[i]);
	sink_format(to, "; %zu cells\n", plan_cells(&plan));
}

static void show_all_words(struct sink *to)
{
	static const struct {
		parse_fn *parse;
		const char *text;
	} texts[] = {
		{ plan_functions, "all" },
		{ plan_functions, "bcast,broadcast,Reduce" },
		{ plan_functions, "sendrecv,alltoall_perf,ncclScatter,all-gather" },
		{ plan_functions, "perf" },
		{ plan_functions, "nccl" },
		{ plan_functions, "allreduce," },
		{ plan_functions, "a-function-whose-name-is-longer-than-what-is-repeated" },
		{ plan_datatypes, "all" },
		{ plan_datatypes, "half,float16,fp16,int,char,double,bf16" },
		{ plan_datatypes, "f8e4m3,FP8_E5M2" },
		{ plan_datatypes, "quad" },
		{ plan_redops, "all" },
		{ plan_redops, "max,avg" },
		{ plan_redops, "xor" },
		{ plan_modes, "all" },
		{ plan_modes, "b2b,cuda-graph" },
		{ plan_modes, "none" },
		{ plan_sizes, "1,4T,1K" },
		{ plan_sizes, "4398046511105" },
		{ plan_sizes, "0" },
		{ plan_sizes, "1..9" },
		{ plan_sizes, "1..8" },
		{ plan_sizes, "1..7" },
		{ plan_sizes, "3..100*5" },
		{ plan_sizes, "1M..3M+1M,2M,512K" },
		{ plan_sizes, "5..5" },
		{ plan_sizes, "5..4" },
		{ plan_sizes, "1..9*1" },
		{ plan_sizes, "1..2M*1048576" },
		{ plan_sizes, "1..2M*1048577" },
		{ plan_sizes, "1..9+0" },
		{ plan_sizes, "1..x" },
		{ plan_sizes, "x..1" },
		{ plan_sizes, "1,,2" },
		{ plan_sizes, "1..1G+1" },
	};
	char text[256];

	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
		show_words(to, texts[i].parse, texts[i].text);
	memset(text, '0', sizeof(text));
	text[126] = '7';
	text[127] = '\0';
	show_words(to, plan_sizes, text);
	text[127] = '8';
	text[128] = '\0';
	show_words(to, plan_sizes, text);
}

/* ---- budgets --------------------------------------------------------------------------------------- */

static void show_budgets(struct sink *to)
{
	static const struct {
		uint32_t calls, least;
		double seconds, call_ns;
		int nranks;
	} budgets[] = { { 20, 5, 0, 1e6, 2 },	   { 20, 5, 1, 1e6, 2 },
			{ 0, 5, 1, 1e6, 2 },	   { 20, 5, 0.01, 1e6, 2 },
			{ 20, 5, 0.005, 1e6, 2 },  { 20, 5, 0.004, 1e6, 2 },
			{ 20, 0, 0.0001, 1e6, 2 }, { 3, 5, 0.001, 1e6, 2 },
			{ 0, 5, 0, 1e6, 0 },	   { 0, 5, 0, 1e6, 1 },
			{ 0, 5, 0, 1e6, 65536 },   { 4000000, 5, 0, 0, 65536 } };
	static const struct {
		uint32_t warmups, made;
		double seconds, spent_ns, last_ns;
	} warmups[] = { { 5, 0, 0, 1e9, 1e9 },	   { 5, 2, 0, 0, 0 },
			{ 5, 5, 0, 0, 0 },	   { 5, 6, 0, 0, 0 },
			{ 5, 1, 1, 0.1e9, 1e6 },   { 5, 1, 1, 0.5e9, 1e6 },
			{ 5, 1, 1, 0.6e9, 1e6 },   { 5, 1, 1, 0.1e9, 0.2e9 },
			{ 5, 1, 1, 0.1e9, 0.1e9 }, { 5, 1, 1, 0.1e9, 0 } };

	for (size_t i = 0; i < ARRAY_LENGTH(budgets); i++) {
		struct bench_plan plan = { .calls = budgets[i].calls,
					   .least_calls = budgets[i].least,
					   .seconds = budgets[i].seconds };

		sink_format(to,
			    "%u calls, at least %u, %g s, of %g ns, %d ranks: %u of at most %u\n",
			    budgets[i].calls, budgets[i].least, budgets[i].seconds,
			    budgets[i].call_ns, budgets[i].nranks,
			    budget_calls(&plan, budgets[i].call_ns, budgets[i].nranks),
			    budget_calls_limit(budgets[i].nranks));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(warmups); i++) {
		struct bench_plan plan = { .warmups = warmups[i].warmups,
					   .seconds = warmups[i].seconds };

		sink_format(to, "%u warm-ups, made %u in %g of %g s, the last in %g ns: %u more\n",
			    warmups[i].warmups, warmups[i].made, warmups[i].spent_ns / 1e9,
			    warmups[i].seconds, warmups[i].last_ns,
			    budget_warmups(&plan, warmups[i].made, warmups[i].spent_ns,
					   warmups[i].last_ns));
	}
}

/* ---- where data is --------------------------------------------------------------------------------- */

static void show_part(struct sink *to, const char *what, const struct layout_part *part)
{
	sink_format(to, "; %s %llu+%llu phase %u", what, (unsigned long long)part->at,
		    (unsigned long long)part->count, part->phase);
}

static void show_layout(struct sink *to, const struct bench_cell *cell, int rank)
{
	struct bench_layout layout;
	struct layout_part part;

	sink_format(to, "%s of %llu x %u%s, rank %d of %d:", op_function_name(cell->function),
		    (unsigned long long)cell->bytes, op_datatype_bytes(cell->datatype),
		    cell->is_in_place ? " in place" : "", rank, (int)cell->nranks);
	if (!layout_of(&layout, cell, rank)) {
		sink_text(to, " none\n");
		return;
	}
	sink_format(to, " %llu, %llu bytes, send %llu at %llu, receive %llu at %llu, whole %llu%s",
		    (unsigned long long)layout.count, (unsigned long long)layout.bytes,
		    (unsigned long long)layout.send_count, (unsigned long long)layout.send_at,
		    (unsigned long long)layout.recv_count, (unsigned long long)layout.recv_at,
		    (unsigned long long)layout.whole_count,
		    layout_is_repeatable(cell) ? "" : ", not repeatable");
	if (cell->function == OP_SEND_RECV)
		sink_format(to, ", to %d, from %d", layout_send_peer(cell, rank),
			    layout_recv_peer(cell, rank));
	if (layout_input(&layout, cell, rank, &part))
		show_part(to, "input", &part);
	for (int i = 0; layout_expected(&layout, cell, rank, i, &part); i++)
		show_part(to, "expected", &part);
	sink_text(to, "\n");
}

static void show_layouts(struct sink *to)
{
	static int32_t peers[3] = { 2, -1, 0 };

	for (uint8_t function = 0; function < OP_FUNCTIONS; function++)
		for (int in_place = 0; in_place < 2; in_place++)
			for (int rank = 0; rank < 3; rank++) {
				struct bench_cell cell = {
					.function = function,
					.datatype = OP_FLOAT32,
					.redop = in_place ? BENCH_SUM : BENCH_MAX,
					.is_in_place = in_place,
					.root = layout_is_rooted(function) ? 1 : -1,
					.nranks = 3,
					.bytes = 60000
				};

				show_layout(to, &cell, rank);
				if (function == OP_SEND_RECV) {
					cell.peers = peers;
					show_layout(to, &cell, rank);
				}
				if (function == OP_REDUCE_SCATTER || function == OP_ALL_GATHER) {
					cell.bytes = 44;
					show_layout(to, &cell, rank);
					cell.redop = BENCH_MIN;
					cell.datatype = OP_INT8;
					show_layout(to, &cell, rank);
					cell.bytes = 2;
					show_layout(to, &cell, rank);
				}
			}
}

/* ---- what it is ------------------------------------------------------------------------------------ */

/* Means that are not exact are left out: how far they may be off depends on the library's pow(). */
static void show_patterns(struct sink *to)
{
	static const int sizes[] = { 1, 2, 3, 8, 40 };
	static struct bench_pattern pattern;

	for (unsigned int bytes = 1; bytes <= 8; bytes *= 2) {
		pattern_move(&pattern, bytes);
		sink_format(to, "%u bytes:", bytes);
		for (size_t k = 0; k < 3; k++)
			sink_format(to, " %llx not %llx", (unsigned long long)pattern.input[k],
				    (unsigned long long)pattern.poison[k]);
		sink_text(to, "\n");
	}
	EXPECT_THAT("SplitMix64's first number", pattern.input[0] == UINT64_C(0xe220a8397b1dcdaf));
	for (uint8_t datatype = 1; datatype < OP_DATATYPES; datatype++)
		for (uint8_t redop = 1; redop < BENCH_REDOPS; redop++)
			for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
				int rank = sizes[i] - 1;

				if ((redop == BENCH_AVG && number_is_float(datatype) &&
				     (sizes[i] == 3 || sizes[i] == 40)) ||
				    !pattern_reduce(&pattern, datatype, redop, rank, sizes[i]))
					continue;
				sink_format(to, "%s %s of %d:", op_datatype_name(datatype),
					    bench_redop_name(redop), sizes[i]);
				for (size_t k = 0; k < PATTERN_PERIOD; k += 4095)
					sink_format(to, " %llx %llx-%llx not %llx",
						    (unsigned long long)pattern.input[k],
						    (unsigned long long)pattern.low[k],
						    (unsigned long long)pattern.high[k],
						    (unsigned long long)pattern.poison[k]);
				sink_text(to, "\n");
			}
	EXPECT_THAT("at an element, 1024 of many ranks have a part",
		    pattern_reduce(&pattern, OP_INT64, BENCH_SUM, 1023, 2048) &&
			    pattern.input[0] != 0 && pattern.input[1] == 0);
	EXPECT(!pattern_reduce(&pattern, OP_INT8, BENCH_REDOPS, 0, 2));
	EXPECT(!pattern_reduce(&pattern, OP_INT8, BENCH_SUM, 0, 0));
	EXPECT_EQUAL(pattern_advance(8190, 1), 0);
	EXPECT_EQUAL(pattern_advance(8190, UINT64_MAX), (8190 + UINT64_MAX % 8191) % 8191);
}

int main(void)
{
	struct sink text;

	sink_init_memory(&text);
	show_all_words(&text);
	show_budgets(&text);
	show_layouts(&text);
	show_patterns(&text);
	EXPECT_THAT("tables as in plan_tables.txt",
		    expected_text(&text, "tests/unit/bench/expected/plan_tables.txt"));
	return tap_done();
}
