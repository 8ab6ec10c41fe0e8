/* Every row of a comparison as lines of text, for tests that compare all of them. */
#ifndef PROFILERS_SHOW_H
#define PROFILERS_SHOW_H

#include <math.h>
#include <stdlib.h>

#include "bench/profilers.h"
#include "common/op.h"
#include "output/sink.h"

static inline void show_number(struct sink *text, const char *name, double value)
{
	if (isnan(value))
		sink_format(text, " %s -", name);
	else
		sink_format(text, " %s %.5g", name, value);
}

static inline void show_quantiles(struct sink *text, const struct profilers_quantiles *of)
{
	show_number(text, "p05", of->p05);
	show_number(text, "p25", of->p25);
	show_number(text, "p50", of->p50);
	show_number(text, "p75", of->p75);
	show_number(text, "p95", of->p95);
}

static inline const char *show_function(uint8_t function)
{
	return function ? op_function_name(function) : "all";
}

static inline void show_rows(struct sink *text, const struct profilers_comparison *comparison)
{
	char size[PROFILERS_SHORT_TEXT], sentence[PROFILERS_SHORT_SENTENCE];

	for (size_t i = 0; i < comparison->complete_count; i++) {
		const struct profilers_complete *row = &comparison->complete[i];

		sink_format(text, "complete: %d %s %s rank %d %s%s: %llu, %llu, %llu, %llu, %llu\n",
			    row->plugin, bench_mode_name(row->mode), show_function(row->function),
			    (int)row->rank, profilers_size_text(size, row->bytes, row->bytes_to),
			    row->is_align ? " align" : "", (unsigned long long)row->counts.issued,
			    (unsigned long long)row->counts.recorded,
			    (unsigned long long)row->counts.untimed,
			    (unsigned long long)row->counts.missing,
			    (unsigned long long)row->counts.excess);
	}
	for (size_t i = 0; i < comparison->accuracy_count; i++) {
		const struct profilers_accuracy *row = &comparison->accuracy[i];

		sink_format(text, "accuracy: %d %s %s %s source %d%s: %llu calls, %llu %llu:",
			    row->plugin, bench_mode_name(row->mode), show_function(row->function),
			    profilers_size_text(size, row->bytes, row->bytes_to), row->source,
			    row->is_mean_only ? " means" : "", (unsigned long long)row->calls,
			    (unsigned long long)row->in_order, (unsigned long long)row->by_time);
		show_quantiles(text, &row->ratio);
		sink_text(text, "\n");
	}
	for (size_t i = 0; i < comparison->overhead_count; i++) {
		const struct profilers_overhead *row = &comparison->overhead[i];

		sink_format(text, "overhead: %d %s %s %llu %s: %u runs, %u cells, %llu calls, %d:",
			    row->plugin, row->mode ? bench_mode_name(row->mode) : "all modes",
			    show_function(row->function), (unsigned long long)row->bytes,
			    row->clock == BENCH_GPU ? "GPU" : "host", row->runs, row->cells,
			    (unsigned long long)row->calls, (int)profilers_verdict(row));
		show_number(text, "ratio", row->ratio.ratio);
		if (row->has_interval) {
			show_number(text, "low", row->ratio.low);
			show_number(text, "high", row->ratio.high);
		}
		show_number(text, "with", row->with_ns.p50);
		show_number(text, "without", row->without_ns.p50);
		sink_text(text, "\n");
	}
	for (size_t i = 0; i < comparison->training_count; i++) {
		const struct profilers_train *row = &comparison->training[i];

		sink_format(text,
			    "training: %d: %u runs, %u silent, %u unreadable, %u failed, %u x %d;",
			    row->plugin, row->runs, row->silent, row->unreadable, row->failed,
			    row->epochs, (int)row->ranks);
		sink_format(text, " issued %llu, recorded %llu, %llu untimed%s%s%s:",
			    (unsigned long long)row->issued[OP_ALL_REDUCE],
			    (unsigned long long)row->recorded[OP_ALL_REDUCE],
			    (unsigned long long)row->untimed, row->is_counted ? ", counted" : "",
			    row->is_read ? ", read" : "", row->is_comm_by_time ? ", by time" : "");
		show_number(text, "epoch", row->epoch_ns);
		if (row->has_comm) {
			show_number(text, "comm", row->comm_ns);
			show_number(text, "share", row->comm_share);
		}
		show_number(text, "slowdown", row->slowdown.ratio);
		if (row->has_interval) {
			show_number(text, "low", row->slowdown.low);
			show_number(text, "high", row->slowdown.high);
		}
		sink_format(text, " %s\n", row->problem);
	}
	for (size_t i = 1; i < comparison->plugin_count; i++)
		sink_format(text, "in short: %s\n", profilers_short(sentence, comparison, i));
}

/* Everything about it: its rows, and the tables that are made of them. */
static inline void show_comparison(struct sink *text, const struct profilers_comparison *comparison,
				   unsigned int width)
{
	show_rows(text, comparison);
	sink_text(text, "--- as text\n");
	if (profilers_text_write(text, comparison, width) != OK)
		abort();
}

#endif
