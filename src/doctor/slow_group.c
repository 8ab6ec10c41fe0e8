/*
 * Ranks that come late together because they are held up together. A group that exchanges data by Sends and Recvs
 * (experts) waits for its slowest member there, and all of it comes late to the collectives of the whole job: by
 * these alone, everybody of the group is late. Inside, the one who is waited for spends least time in Sends and
 * Recvs, of which all members make equally many.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "common/text.h"
#include "doctor/slow_find.h"

enum { MEMBERS_LEAST = 3, MEMBERS_MAX = 256, OPERATIONS_LEAST = 64 };
static const double gap_that_matters = 0.4; /* of how far it is below the others */
static const double time_that_matters = 0.05;

static bool is_late(const struct straggler *straggler)
{
	return straggler->late_ns > 0 &&
	       (straggler->class == STRAGGLER_SLOW_RANK || straggler->class == STRAGGLER_SLOW_HOST);
}

/* Who of `comm` is late, by all stragglers there; how many. */
static uint32_t mark_late(const struct slow_search *search, uint32_t comm, bool *is_marked)
{
	const struct stragglers *stragglers = &search->report->stragglers;
	const struct job *job = &search->report->job;
	const struct job_comm *of = &job->comms[comm];
	uint32_t count = 0;

	for (uint32_t i = 0; i < of->seat_count; i++) {
		uint32_t rank = job->seats[of->seats[i]].rank;

		for (size_t j = 0; j < stragglers->count && !is_marked[rank]; j++) {
			const struct straggler *straggler = &stragglers->list[j];

			if (!is_late(straggler) || straggler->comm != comm)
				continue;
			is_marked[rank] = straggler->class == STRAGGLER_SLOW_HOST
						  ? job->ranks[rank].host == straggler->host
						  : straggler->rank == rank;
		}
		count += is_marked[rank];
	}
	return count;
}

/* The communicator whose members are exactly those; UINT32_MAX: none. */
static uint32_t find_group(const struct job *job, const bool *is_marked, uint32_t count,
			   uint32_t within)
{
	for (uint32_t c = 0; c < job->comm_count; c++) {
		const struct job_comm *comm = &job->comms[c];
		uint32_t marked = 0;

		if (comm->group != job->comms[within].group || comm->seat_count != count ||
		    comm->missing > 0)
			continue;
		for (uint32_t i = 0; i < comm->seat_count; i++)
			marked += is_marked[job->seats[comm->seats[i]].rank];
		if (marked == count)
			return c;
	}
	return UINT32_MAX;
}

/* ---- time in Sends and Recvs ------------------------------------------------------------------- */

struct exchange {
	uint32_t comm_id;
	uint64_t operations;
	double ns;
};

static bool add_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct exchange *exchange = context;

	(void)place;
	if (op->comm != exchange->comm_id || (op->function != OP_SEND && op->function != OP_RECV) ||
	    op->time_source != OP_TIME_KERNEL_GPU)
		return true;
	exchange->operations++;
	exchange->ns += (double)op_duration_ns(op);
	return true;
}

static int rising(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

/* The member that spends least, and by how much: index into job.ranks; UINT32_MAX: nobody stands out. */
static uint32_t find_least(const struct timeline_report *report, const struct job_comm *comm,
			   double *delay_ns)
{
	const struct job *job = &report->job;
	double times[MEMBERS_MAX], sorted[MEMBERS_MAX], usual;
	uint64_t operations = 0;
	uint32_t least = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct job_seat *seat = &job->seats[comm->seats[i]];
		struct exchange exchange = { .comm_id = seat->comm_id };

		if (recording_each_op(job->recording->processes[seat->process], add_op, &exchange,
				      NULL) != OK ||
		    exchange.operations < OPERATIONS_LEAST ||
		    (i > 0 && exchange.operations != operations))
			return UINT32_MAX;
		operations = exchange.operations;
		times[i] = sorted[i] = exchange.ns;
		least = times[i] < times[least] ? i : least;
	}
	qsort(sorted, comm->seat_count, sizeof(*sorted), rising);
	usual = sorted[(comm->seat_count - 1) * 3 / 4];
	/* A Send and its Recv go on at the same time, and many of them together. */
	*delay_ns = usual - sorted[0];
	if (*delay_ns < time_that_matters * (double)(report->end_ns - report->start_ns) ||
	    sorted[1] - sorted[0] < gap_that_matters * *delay_ns)
		return UINT32_MAX;
	return job->seats[comm->seats[least]].rank;
}

/* ---------------------------------------------------------------------------------------------- */

static void tell(struct slow_search *search, const struct straggler *late, uint32_t group,
		 uint32_t rank)
{
	const struct job *job = &search->report->job;
	const struct job_comm *of = &job->comms[group], *all = &job->comms[late->comm];
	struct verdict *verdict = slow_verdict(search, VERDICT_SLOW_RANK, SLOW_PAST);
	double caused_ns = (double)late->late_ns * (double)late->meetings *
			   (double)(all->seat_count - of->seat_count);

	text_copy(verdict->rule, sizeof(verdict->rule), "others");
	slow_fill_comm(verdict, job, group, rank);
	slow_fill_rank(verdict, job, rank);
	slow_fill_span(verdict, search->report, &(struct slow_span){ 0 });
	slow_fill_cost(search, verdict, caused_ns);
	verdict->victims = all->seat_count - 1;
	verdict->percent = 100 * late->cost_share;
	verdict->confidence = 0.85 * late->confidence;
	verdict_title(verdict, "rank %.24s on %.100s arrives late, the others wait for it",
		      verdict->rank_label, verdict->host);
	verdict_evidence(verdict,
			 "All %u ranks of %.100s come %s late to the collectives of %.100s: they "
			 "are held up together.",
			 of->seat_count, of->label, units_of_ns((double)late->late_ns).text,
			 all->label);
	verdict_evidence(
		verdict,
		"Of equally many Sends and Recvs in %.100s rank %.24s spends least time in "
		"them: the others of the group wait for it there.",
		of->label, verdict->rank_label);
	verdict_missing(verdict, "Sends and Recvs tell it by their sums alone: when exactly is not "
				 "known.");
	verdict_advice(verdict,
		       "It computes longer than the others, or has more to do: look at GPU "
		       "clocks and temperature, data loading, how work is shared out.");
	verdict_advice(verdict, "$ ssh %.200s nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE,ECC",
		       verdict->host);
	text_copy(verdict->page, sizeof(verdict->page), "runbooks/NcclStraggler.md");
	slow_fill_missing(search, verdict);
}

uint32_t slow_held_up(struct slow_search *search)
{
	const struct stragglers *stragglers = &search->report->stragglers;
	const struct job *job = &search->report->job;
	const struct straggler *late = NULL;
	uint32_t group = UINT32_MAX, count, rank = UINT32_MAX;
	double delay_ns;
	bool *is_marked;

	for (size_t i = 0; i < stragglers->count && late == NULL; i++)
		if (is_late(&stragglers->list[i]) &&
		    job->comms[stragglers->list[i].comm].group == search->group)
			late = &stragglers->list[i];
	if (late == NULL || slow_link_behind(search, late) != NULL)
		return UINT32_MAX;
	is_marked = calloc(job->rank_count + 1, sizeof(*is_marked));
	if (is_marked == NULL) {
		search->status = ERR_NO_SPACE;
		return UINT32_MAX;
	}
	count = mark_late(search, late->comm, is_marked);
	if (count >= MEMBERS_LEAST && count <= MEMBERS_MAX &&
	    count < job->comms[late->comm].seat_count)
		group = find_group(job, is_marked, count, late->comm);
	if (group != UINT32_MAX)
		rank = find_least(search->report, &job->comms[group], &delay_ns);
	free(is_marked);
	if (rank == UINT32_MAX)
		return UINT32_MAX;
	tell(search, late, group, rank);
	return late->comm;
}
