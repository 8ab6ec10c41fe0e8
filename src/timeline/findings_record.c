/* Findings about the recording itself: what it lacks, and what cannot be concluded because of that. */
#include "common/text.h"
#include "timeline/findings_make.h"

static const double untrusted_share = 0.01, untimed_share = 0.05, mixed_share = 0.01;

static void nothing(struct findings *findings, const struct timeline_report *report)
{
	struct finding *finding;

	if (report->completeness.looked_at > 0)
		return;
	finding = findings_add(findings, FINDINGS_NOTHING_RECORDED, FINDINGS_ERROR,
			       "there is nothing to report on");
	text_format(finding->text, sizeof(finding->text),
		    report->completeness.read > 0
			    ? "%llu operations were read, and none of them passes the filter."
			    : "No operation was read (%llu).",
		    (unsigned long long)report->completeness.read);
}

static void unfinished(struct findings *findings, const struct timeline_report *report)
{
	const struct timeline_completeness *of = &report->completeness;
	size_t count = of->killed + of->unknown_life;
	struct finding *finding;

	if (count == 0)
		return;
	finding = findings_add(findings, FINDINGS_KILLED, FINDINGS_WARNING,
			       "%zu of %zu %s never ended %s recording", count, of->processes,
			       text_which(of->processes, "process", "processes"),
			       text_which(count, "its", "their"));
	finding->count = count;
	finding->of = of->processes;
	text_format(
		finding->text, sizeof(finding->text),
		"%s killed, crashed, or %s copied while %s ran. What %s did last may be missing.",
		text_which(count, "It was", "They were"),
		text_which(count, "its files were", "their files were"),
		text_which(count, "it", "they"), text_which(count, "it", "they"));
}

static void lost(struct findings *findings, const struct timeline_report *report)
{
	const struct timeline_completeness *of = &report->completeness;
	struct finding *finding;
	unsigned int most = 0;

	if (of->lost_operations == 0)
		return;
	for (unsigned int i = 0; i < LOST_REASONS; i++)
		if (op_lost_is_whole(i) && of->lost[i] > of->lost[most])
			most = i;
	finding = findings_add(findings, FINDINGS_LOST, FINDINGS_WARNING, "%llu %s lost",
			       (unsigned long long)of->lost_operations,
			       text_which(of->lost_operations, "operation was", "operations were"));
	finding->count = of->lost_operations;
	finding->of = of->issued;
	finding->percent = of->issued ? 100 * (double)of->lost_operations / (double)of->issued : 0;
	text_format(finding->text, sizeof(finding->text),
		    "%s because of %s. Sums are too low by so much.",
		    text_which(of->lost_operations,
			       "The recorder counted it and has no record of it,",
			       "The recorders counted them and have no record of them, most"),
		    op_lost_name(most) ? op_lost_name(most) : "an unknown reason");
	text_format(finding->hint, sizeof(finding->hint),
		    "`ringside verify` has the counts per process and reason.");
}

/* A file without its end is said by the process that did not end. */
static size_t troubles_but_cuts(const struct recording *recording)
{
	size_t count = recording->troubles_left_out;

	for (size_t i = 0; i < recording->trouble_count; i++)
		count += recording->troubles[i].kind != RECORDING_CUT;
	return count;
}

static void incomplete(struct findings *findings, const struct timeline_report *report)
{
	const struct timeline_completeness *of = &report->completeness;
	size_t troubles = troubles_but_cuts(report->recording);
	uint64_t count = of->damages + of->refused + troubles;
	struct finding *finding;

	if (of->overwritten > 0) {
		finding = findings_add(findings, FINDINGS_INCOMPLETE, FINDINGS_NOTE,
				       "only the last operations are there");
		finding->count = of->read;
		finding->of = of->issued;
		text_format(
			finding->text, sizeof(finding->text),
			of->snapshots > 0
				? "%llu of %llu operations: a snapshot holds the last ones of each "
				  "process."
				: "%llu of %llu operations: this mode keeps the last ones of each "
				  "process.",
			(unsigned long long)of->read, (unsigned long long)of->issued);
		text_format(finding->hint, sizeof(finding->hint),
			    of->snapshots > 0
				    ? "Ask for a snapshot with more operations, or record with "
				      "--mode trace to keep them all."
				    : "Record with --mode trace to keep them all.");
	}
	if (count == 0)
		return;
	finding = findings_add(findings, FINDINGS_INCOMPLETE, FINDINGS_WARNING,
			       "parts of the recording could not be read");
	finding->count = count;
	text_format(
		finding->text, sizeof(finding->text),
		"%llu damaged %s, %llu %s not acceptable, %zu %s with trouble. The rest was read.",
		(unsigned long long)of->damages, text_which(of->damages, "block", "blocks"),
		(unsigned long long)of->refused,
		text_which(of->refused, "record that is", "records that are"), troubles,
		text_which(troubles, "file", "files"));
	text_format(finding->hint, sizeof(finding->hint), "`ringside verify` names them.");
}

static void ranks_missing(struct findings *findings, const struct timeline_report *report)
{
	size_t comms = 0, largest = 0;
	struct finding *finding;

	for (size_t c = 0; c < report->job.comm_count; c++) {
		uint32_t missing = report->job.comms[c].missing;

		if (missing == 0)
			continue;
		if (comms == 0 || missing > report->job.comms[largest].missing)
			largest = c;
		comms++;
	}
	if (comms == 0)
		return;
	finding = findings_add(findings, FINDINGS_RANKS_MISSING, FINDINGS_WARNING,
			       "%zu %s the recordings of some ranks", comms,
			       text_which(comms, "communicator lacks", "communicators lack"));
	finding->count = comms;
	finding->of = report->job.comm_count;
	finding->comm = (uint32_t)largest;
	text_format(
		finding->text, sizeof(finding->text),
		"%.60s has %d %s and recordings of %u of them. %s",
		report->job.comms[largest].label, report->job.comms[largest].nranks,
		text_which((uint64_t)report->job.comms[largest].nranks, "rank", "ranks"),
		report->job.comms[largest].seat_count,
		report->job.comms[largest].seat_count == 1
			? "Who waits for whom shows only where several ranks are recorded."
			: "Waiting is then a lower bound: a rank that is not there may have come "
			  "last.");
	text_format(finding->hint, sizeof(finding->hint),
		    "Give the directories of all hosts to the same command.");
}

static void sources(struct findings *findings, const struct timeline_report *report)
{
	const struct tally_row *total = &report->total;
	double calls = (double)(total->calls ? total->calls : 1);
	double untimed = (double)tally_not_timed(total) / calls;
	unsigned int used = 0;
	struct finding *finding;

	if ((double)total->untrusted / calls > untrusted_share) {
		finding = findings_add(findings, FINDINGS_UNTRUSTED, FINDINGS_NOTE,
				       "GPU stamps of %.1f %% of the calls are not believed",
				       100 * (double)total->untrusted / calls);
		finding->count = total->untrusted;
		finding->of = total->calls;
		finding->percent = 100 * (double)total->untrusted / calls;
		text_format(
			finding->text, sizeof(finding->text),
			"NCCL 2.26 to 2.30 can show another operation's stamps. Those calls have "
			"times from the network side, or none.");
	}
	if (untimed > untimed_share) {
		finding = findings_add(findings, FINDINGS_UNTIMED, FINDINGS_NOTE,
				       "%.1f %% of the calls are of kinds that were never timed",
				       100 * untimed);
		finding->count = tally_not_timed(total);
		finding->of = total->calls;
		finding->percent = 100 * untimed;
		text_format(
			finding->text, sizeof(finding->text),
			"Nothing of their end was seen: kernel events were off, or none of them "
			"was sampled. They count as calls and bytes, not as time.");
	}
	for (unsigned int i = OP_TIME_NONE + 1; i < OP_TIME_SOURCES; i++)
		used += (double)total->by_source[i] / calls > mixed_share;
	if (used > 1) {
		finding = findings_add(findings, FINDINGS_MIXED_SOURCES, FINDINGS_NOTE,
				       "durations come from several sources");
		text_format(finding->text, sizeof(finding->text),
			    "kernel_gpu %llu, proxy %llu, host %llu calls. They measure different "
			    "things; each row says which it has.",
			    (unsigned long long)total->by_source[OP_TIME_KERNEL_GPU],
			    (unsigned long long)total->by_source[OP_TIME_PROXY],
			    (unsigned long long)total->by_source[OP_TIME_HOST]);
		text_format(finding->hint, sizeof(finding->hint), "--by source tells them apart.");
	}
}

static void joins(struct findings *findings, const struct timeline_report *report)
{
	const struct meet *meet = &report->meet;
	struct finding *finding;

	if (report->job.group_count > 1) {
		finding = findings_add(findings, FINDINGS_SEVERAL_JOBS, FINDINGS_NOTE,
				       "%zu jobs are in this recording", report->job.group_count);
		finding->count = report->job.group_count;
		text_format(
			finding->text, sizeof(finding->text),
			"Sums are over all of them; communicators are joined within a job only.");
	}
	if (report->job.conflicts > 0) {
		finding = findings_add(findings, FINDINGS_CONFLICT, FINDINGS_WARNING,
				       "%u %s two processes are the same rank of a communicator",
				       report->job.conflicts,
				       text_which(report->job.conflicts, "time", "times"));
		finding->count = report->job.conflicts;
		text_format(
			finding->text, sizeof(finding->text),
			"Files of different runs, or copies, may be mixed. They are kept apart.");
	}
	if (meet->left_out > 0) {
		finding = findings_add(findings, FINDINGS_SAMPLED, FINDINGS_NOTE,
				       "waiting is taken from a part of the collectives");
		finding->count = meet->joined;
		finding->of = meet->joined + meet->left_out;
		text_format(
			finding->text, sizeof(finding->text),
			"To keep memory bounded, %llu of %llu calls were joined with other ranks. "
			"Waiting in sums is of those alone.",
			(unsigned long long)meet->joined,
			(unsigned long long)(meet->joined + meet->left_out));
	}
	if (report->align.unaligned > 0 && report->completeness.read > 0) {
		finding = findings_add(findings, FINDINGS_UNALIGNED, FINDINGS_NOTE,
				       "%u of %zu %s could not be aligned in time",
				       report->align.unaligned, report->align.count,
				       text_which(report->align.count, "process", "processes"));
		finding->count = report->align.unaligned;
		finding->of = report->align.count;
		text_format(finding->text, sizeof(finding->text),
			    "%s no collective with the others; %s. Only figures over time are "
			    "concerned.",
			    text_which(report->align.unaligned, "It shares", "They share"),
			    text_which(report->align.unaligned, "its own wall clock places it",
				       "their own wall clock places them"));
	}
}

void findings_record(struct findings *findings, const struct timeline_report *report)
{
	nothing(findings, report);
	unfinished(findings, report);
	lost(findings, report);
	incomplete(findings, report);
	ranks_missing(findings, report);
	sources(findings, report);
	joins(findings, report);
}
