/* Prints the analysis of a recording, one JSON object per line, for the tests in this directory. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/timeline_report.h"

static void print_row(const struct timeline_report *report, const struct tally_row *row)
{
	const struct job *job = &report->job;

	printf("{\"row\":1,\"comm\":\"%s\",\"rank\":\"%s\",\"function\":\"%s\",\"datatype\":\"%s\","
	       "\"algorithm\":\"%s\",\"protocol\":\"%s\",\"size_class\":%u,\"source\":\"%s\"",
	       job->comms[row->key.comm].label, job->ranks[row->key.rank].label,
	       job_name(job, OP_NAMES_FUNCTION, row->key.function),
	       job_name(job, OP_NAMES_DATATYPE, row->key.datatype),
	       job_name(job, OP_NAMES_ALGORITHM, row->key.algorithm),
	       job_name(job, OP_NAMES_PROTOCOL, row->key.protocol), row->key.size_class,
	       op_time_source_name(row->key.source));
	printf(",\"calls\":%" PRIu64 ",\"timed\":%" PRIu64 ",\"bytes\":%" PRIu64
	       ",\"unknown_size\":%" PRIu64 ",\"untrusted\":%" PRIu64 ",\"sum_ns\":%" PRIu64
	       ",\"min_ns\":%" PRIu64 ",\"max_ns\":%" PRIu64 ",\"wait_ns\":%" PRIu64
	       ",\"joined\":%" PRIu64,
	       row->calls, row->timed, row->bytes, row->unknown_size, row->untrusted, row->sum_ns,
	       row->min_ns, row->max_ns, row->wait_ns, row->joined);
	printf(",\"p50\":%" PRIu64 ",\"p90\":%" PRIu64 ",\"p99\":%" PRIu64
	       ",\"mean\":%.17g,\"algbw\":%.17g,\"busbw\":%.17g}\n",
	       tally_quantile_ns(row, 0.5), tally_quantile_ns(row, 0.9),
	       tally_quantile_ns(row, 0.99), tally_mean_ns(row), tally_algbw(row),
	       tally_busbw(row));
}

static void print_ranks(const struct timeline_report *report)
{
	for (size_t r = 0; r < report->job.rank_count; r++) {
		const struct timeline_rank *rank = &report->ranks[r];

		printf("{\"rank\":\"%s\",\"calls\":%" PRIu64 ",\"sum_ns\":%" PRIu64
		       ",\"wait_ns\":%" PRIu64 ",\"busy_ns\":%" PRIu64 ",\"span_ns\":%" PRIu64
		       "}\n",
		       report->job.ranks[r].label, rank->calls, rank->sum_ns, rank->wait_ns,
		       rank->busy_ns, rank->span_ns);
	}
}

static const char *label(const struct timeline_report *report, uint32_t rank)
{
	return rank == UINT32_MAX ? "-" : report->job.ranks[rank].label;
}

static void print_conclusions(const struct timeline_report *report)
{
	const struct stragglers *stragglers = &report->stragglers;

	for (size_t i = 0; i < stragglers->count; i++) {
		const struct straggler *straggler = &stragglers->list[i];

		printf("{\"straggler\":\"%s\",\"pattern\":\"%s\",\"rank\":\"%s\",\"host\":\"%s\","
		       "\"peer\":\"%s\",\"first_s\":%.3f,\"last_s\":%.3f}\n",
		       straggler_class_name(straggler->class),
		       straggler_pattern_name(straggler->pattern), label(report, straggler->rank),
		       straggler->host == UINT32_MAX ? "-"
						     : report->job.hosts[straggler->host].name,
		       label(report, straggler->peer),
		       (double)(int64_t)(straggler->first_ns - report->start_ns) / 1e9,
		       (double)(int64_t)(straggler->last_ns - report->start_ns) / 1e9);
	}
	for (size_t i = 0; i < report->windows.change_count; i++) {
		const struct windows_change *change = &report->windows.changes[i];

		printf("{\"change\":\"%s\",\"kind\":\"%s\",\"percent\":%.1f,\"at_s\":%.3f,"
		       "\"everywhere\":%s}\n",
		       job_name(&report->job, OP_NAMES_FUNCTION, change->function),
		       job_comm_kind_name(change->kind), change->percent,
		       (double)(int64_t)(change->at_ns - report->start_ns) / 1e9,
		       change->is_everywhere ? "true" : "false");
	}
	for (size_t i = 0; i < report->findings.count; i++)
		printf("{\"finding\":\"%s\",\"title\":\"%s\"}\n",
		       findings_kind_name(report->findings.list[i].kind),
		       report->findings.list[i].title);
}

static void print_sums(const struct timeline_report *report)
{
	const struct matches *matches = &report->matches;

	printf("{\"meet\":1,\"joined\":%" PRIu64 ",\"complete\":%" PRIu64 ",\"partial\":%" PRIu64
	       ",\"alone\":%" PRIu64 ",\"untimed\":%" PRIu64 ",\"wait_ns\":%" PRIu64
	       ",\"differing\":%" PRIu64 ",\"read\":%" PRIu64 ",\"in_flight\":%" PRIu64
	       ",\"is_complete\":%s}\n",
	       matches->joined, matches->complete, matches->partial, matches->alone,
	       matches->untimed, matches->wait_ns, matches->differing, report->completeness.read,
	       report->completeness.in_flight, report->completeness.is_complete ? "true" : "false");
	printf("{\"iterations\":%zu,\"period\":%u,\"median_ns\":%" PRIu64 "}\n",
	       report->iterations.regular, report->iterations.period_ops,
	       report->iterations.median_ns);
	printf("{\"align\":1,\"islands\":%u,\"unaligned\":%u,\"uncertainty_ns\":%" PRIu64
	       ",\"span_ns\":%" PRIu64 "}\n",
	       report->align.island_count, report->align.unaligned,
	       report->align.worst_uncertainty_ns, report->end_ns - report->start_ns);
}

int main(int argc, char **argv)
{
	struct timeline_options options = {
		.custom_by = { TALLY_BY_COMM | TALLY_BY_RANK | TALLY_BY_FUNCTION |
			       TALLY_BY_DATATYPE | TALLY_BY_ALGORITHM | TALLY_BY_PROTOCOL |
			       TALLY_BY_SIZE | TALLY_BY_SOURCE },
		.custom_count = 1,
	};
	struct timeline_report report;
	struct recording recording;
	bool is_brief = argc > 2 && strcmp(argv[2], "brief") == 0;

	recording_init(&recording);
	if (argc < 2 || recording_add(&recording, argv[1], RECORDING_TRACES_ALONE) != OK ||
	    recording_finish(&recording) != OK ||
	    timeline_report_make(&report, &recording, NULL, &options) != OK) {
		fprintf(stderr, "usage: figures DIRECTORY [brief]\n");
		return 2;
	}
	for (size_t i = 0; i < report.custom[0].count && !is_brief; i++)
		print_row(&report, &report.custom[0].rows[i]);
	if (!is_brief)
		print_ranks(&report);
	print_sums(&report);
	print_conclusions(&report);
	timeline_report_release(&report);
	recording_release(&recording);
	return 0;
}
