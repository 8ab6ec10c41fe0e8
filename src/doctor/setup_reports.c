/* What PyTorch said of NCCL before it gave up: the witness's words, not the cause. */
#include <stdlib.h>
#include <string.h>

#include "doctor/setup_parts.h"

static bool is_timeout(const struct nccl_log_report *report)
{
	return strstr(report->text, "Watchdog caught") != NULL;
}

/* "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, ...": the number of the collective; -1 none. */
static int64_t sequence_of(const struct nccl_log_report *report)
{
	const char *at = strstr(report->text, "SeqNum=");

	return at != NULL ? strtoll(at + 7, NULL, 10) : -1;
}

static void cite_report(const struct setup *setup, struct verdict *verdict,
			const struct nccl_log_report *report)
{
	setup_cite(setup, verdict, report->place, "%s", report->text);
}

/* Who is furthest behind holds the others up, or is held up itself by one that says nothing: told, not accused. */
static void cite_last(const struct setup *setup, struct verdict *verdict)
{
	const struct nccl_log_report *last = NULL, *first = NULL;

	for (size_t i = 0; i < setup->log->report_count; i++) {
		const struct nccl_log_report *report = &setup->log->reports[i];

		if (!is_timeout(report) || sequence_of(report) < 0)
			continue;
		if (last == NULL || sequence_of(report) < sequence_of(last))
			last = report;
		if (first == NULL || sequence_of(report) > sequence_of(first))
			first = report;
	}
	if (last == NULL || sequence_of(last) == sequence_of(first))
		return;
	cite_report(setup, verdict, last);
	verdict_evidence(verdict, "that rank is in collective %lld, another one already in %lld",
			 (long long)sequence_of(last), (long long)sequence_of(first));
	verdict->confidence = 0.6;
	verdict_missing(verdict,
			"numbers count per process group: they compare only when it is the same");
}

static const struct nccl_log_report *count_reports(const struct setup *setup, bool of_timeouts,
						   size_t *count)
{
	const struct nccl_log_report *first = NULL;

	*count = 0;
	for (size_t i = 0; i < setup->log->report_count; i++)
		if (is_timeout(&setup->log->reports[i]) == of_timeouts) {
			first = first != NULL ? first : &setup->log->reports[i];
			++*count;
		}
	return first;
}

static void find_timeouts(const struct setup *setup)
{
	size_t count;
	const struct nccl_log_report *first = count_reports(setup, true, &count);
	struct verdict *verdict;

	if (first == NULL)
		return;
	verdict = setup_verdict(setup, "torch-timeout", VERDICT_ERROR);
	verdict_title(verdict, "PyTorch's watchdog gave up on a collective, in %zu %s", count,
		      count == 1 ? "report" : "reports");
	cite_report(setup, verdict, first);
	cite_last(setup, verdict);
	verdict_advice(verdict,
		       "Who reports has waited; look for the rank that has no such line, or "
		       "another one before it");
	verdict_advice(verdict, "$ ringside doctor RECORDING");
	verdict->victims = (uint32_t)count;
}

static void find_errors(const struct setup *setup)
{
	size_t count;
	const struct nccl_log_report *first = count_reports(setup, false, &count);
	struct verdict *verdict;

	if (first == NULL)
		return;
	verdict = setup_verdict(setup, "nccl-error", VERDICT_ERROR);
	verdict_title(verdict, "PyTorch got an error from NCCL, in %zu %s", count,
		      count == 1 ? "report" : "reports");
	cite_report(setup, verdict, first);
	verdict->rank = count == 1 ? first->rank : -1;
	if (setup->log->warning_count == 0)
		verdict_missing(verdict,
				"there is no warning of NCCL in these logs, which would say "
				"why: run with NCCL_DEBUG=WARN");
	verdict_advice(verdict, "Look for the first NCCL WARN of all ranks: it has the cause");
}

void setup_find_reports(const struct setup *setup)
{
	find_timeouts(setup);
	find_errors(setup);
}
