/* Findings about ranks that are stuck or disagree: that it is so. Why is the doctor's to say
 * (doctor/hang.h), which knows what each of them waits for. */
#include <string.h>

#include "common/op.h"
#include "common/text.h"
#include "timeline/findings_make.h"

enum { NAMED = 8 }; /* ranks that a sentence names */

static void name_rank(char *to, size_t size, size_t nth, const char *label)
{
	size_t used = strlen(to);

	if (nth < NAMED)
		text_format(to + used, size - used, "%s%.24s", nth ? ", " : "", label);
	else if (nth == NAMED)
		text_format(to + used, size - used, ", ...");
}

static const struct scan_open *open_of(const struct scan *scan, uint32_t seat)
{
	const struct job *job = scan->job;
	const struct recording_process *process =
		job->recording->processes[job->seats[seat].process];

	/* What runs now may well be in flight now. */
	if (process->life == RECORDING_ALIVE || process->life == RECORDING_ENDED ||
	    scan->opens[seat].count == 0)
		return NULL;
	return &scan->opens[seat];
}

/* The earliest collective of a communicator that was not over at the end; NULL none. */
static const struct scan_open *first_open(const struct scan *scan, const struct job_comm *comm)
{
	const struct scan_open *first = NULL;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct scan_open *open = open_of(scan, comm->seats[i]);

		if (open != NULL && op_is_collective(open->function) && open->match != 0 &&
		    (first == NULL || open->match < first->match))
			first = open;
	}
	return first;
}

static void stuck_comm(struct findings *findings, const struct scan *scan, uint32_t c)
{
	const struct job *job = scan->job;
	const struct job_comm *comm = &job->comms[c];
	const struct scan_open *first = first_open(scan, comm);
	size_t inside = 0, outside = 0;
	char missing[200] = "";
	struct finding *finding;

	if (first == NULL)
		return;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct scan_open *open = open_of(scan, comm->seats[i]);
		uint32_t rank = job->seats[comm->seats[i]].rank;

		if (open != NULL && open->match == first->match)
			inside++;
		else
			name_rank(missing, sizeof(missing), outside++, job->ranks[rank].label);
	}
	finding = findings_add(findings, FINDINGS_HUNG, FINDINGS_ERROR,
			       "%zu %s did not come out of %.20s %llu of %.32s", inside,
			       text_which(inside, "rank", "ranks"),
			       job_name(job, OP_NAMES_FUNCTION, first->function),
			       (unsigned long long)first->match, comm->label);
	finding->comm = c;
	finding->count = inside;
	finding->of = comm->seat_count;
	if (outside == 0 && inside == 1)
		text_format(finding->text, sizeof(finding->text),
			    "When the recording ended the recorded rank of %.60s was in this "
			    "collective.",
			    comm->label);
	else if (comm->missed > 0)
		text_format(
			finding->text, sizeof(finding->text),
			"When the recording ended at least %zu of %u recorded ranks of %.60s %s in "
			"this collective. NCCL did not show all calls of this communicator, so it "
			"cannot be told who was not.",
			inside, comm->seat_count, comm->label, text_which(inside, "was", "were"));
	else if (outside == 0)
		text_format(finding->text, sizeof(finding->text),
			    "When the recording ended all %zu recorded ranks of %.60s were in this "
			    "collective.",
			    inside, comm->label);
	else
		text_format(finding->text, sizeof(finding->text),
			    "When the recording ended %zu of %u recorded ranks of %.60s %s in this "
			    "collective. Not in it: %s.",
			    inside, comm->seat_count, comm->label,
			    text_which(inside, "was", "were"), missing);
	text_format(finding->hint, sizeof(finding->hint),
		    "`ringside doctor` on the same files says whom they wait for.");
}

/* Two ranks made the same number of collective calls and do not agree on what they were. */
static uint64_t diverged(const struct job *job, const struct job_comm *comm, uint64_t *number)
{
	const struct comm_counts *first = NULL;
	uint64_t differing = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct job_seat *seat = &job->seats[comm->seats[i]];
		const struct recording_comm *of =
			&job->recording->processes[seat->process]
				 ->comms[comm->seats[i] - job->first_seat[seat->process]];

		if (!of->has_counts || of->counts.signature == 0 || comm->hash == 0)
			continue;
		if (first == NULL)
			first = &of->counts;
		if (of->counts.collectives != first->collectives ||
		    of->counts.signature == first->signature)
			continue;
		differing++;
		*number = of->counts.collectives;
	}
	return differing;
}

/* Ranks that hang in the same collective and made different calls. */
static uint64_t differ_in_flight(const struct scan *scan, uint32_t c, uint64_t *number)
{
	const struct job_comm *comm = &scan->job->comms[c];
	const struct scan_open *first = first_open(scan, comm);
	uint64_t differing = 0;
	uint32_t others;

	for (uint32_t i = 0; first != NULL && i < comm->seat_count; i++) {
		const struct scan_open *open = open_of(scan, comm->seats[i]);

		differing += open != NULL && open->match == first->match &&
			     open->signature != first->signature;
	}
	/* Some may be through with it already: with half the count, say. */
	others = first != NULL ? meet_signature(&scan->meet, c, first->match) : 0;
	if (others != 0 && first->signature != 0 && others != (uint32_t)first->signature)
		differing++;
	if (differing > 0)
		*number = first->match;
	return differing;
}

static void mismatched_comm(struct findings *findings, const struct timeline_report *report,
			    const struct scan *scan, uint32_t c)
{
	const struct job_comm *comm = &scan->job->comms[c];
	uint64_t number = report->comms[c].first_mismatch;
	uint64_t count = report->comms[c].mismatches;
	struct finding *finding;

	if (count == 0 && comm->missed == 0)
		count = differ_in_flight(scan, c, &number);
	if (count == 0)
		count = diverged(scan->job, comm, &number);
	if (count == 0)
		return;
	finding = findings_add(findings, FINDINGS_MISMATCH, FINDINGS_ERROR,
			       "ranks of %.32s disagree on collective %llu", comm->label,
			       (unsigned long long)number);
	finding->comm = c;
	finding->count = count;
	text_format(finding->text, sizeof(finding->text),
		    "From collective %llu of %.60s on, ranks called different functions, counts, "
		    "datatypes or roots. NCCL then hangs or mixes data up.",
		    (unsigned long long)number, comm->label);
	text_format(finding->hint, sizeof(finding->hint),
		    "`ringside doctor` on the same files shows both sides; `ringside dump` "
		    "the calls around it, match %llu.",
		    (unsigned long long)number);
}

void findings_stuck(struct findings *findings, const struct timeline_report *report,
		    const struct scan *scan)
{
	for (uint32_t c = 0; c < scan->job->comm_count; c++) {
		if (!report->comms[c].is_shown)
			continue;
		mismatched_comm(findings, report, scan, c);
		stuck_comm(findings, scan, c);
	}
}
