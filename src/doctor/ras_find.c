/* Joins an answer of NCCL's RAS with a recording, and adds it to verdicts. */
#include "doctor/doctor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"

enum { NAMED = 6 };

/* A rank of a communicator in the recording. */
struct place {
	uint64_t hash;
	int32_t rank;
	int32_t size; /* of the communicator; 0 unknown */
	uint32_t process;
};

struct join {
	struct verdicts *verdicts;
	const struct recording *recording;
	const struct ras_status *ras;
	const char *from;
	const char *job;      /* only of this one; NULL: of all */
	struct place *places; /* sorted */
	size_t place_count;
	bool *is_ours; /* by communicator of the answer */
	bool has_ours;
	bool *is_seen; /* by process of the recording */
};

/* ---- whose answer it is ---------------------------------------------------------------------- */

static int compare_places(const void *one, const void *other)
{
	const struct place *a = one, *b = other;

	return ORDER(a->hash, b->hash) ?: ORDER(a->rank, b->rank);
}

static bool is_wanted(const struct join *join, const char *job)
{
	return join->job == NULL || strcmp(join->job, job) == 0;
}

static enum status list_places(struct join *join)
{
	size_t room = 0;

	for (size_t i = 0; i < join->recording->count; i++)
		room += join->recording->processes[i]->comm_count;
	join->places = calloc(room + 1, sizeof(*join->places));
	join->is_ours = calloc(join->ras->comm_count + 1, sizeof(*join->is_ours));
	join->is_seen = calloc(join->recording->count + 1, sizeof(*join->is_seen));
	if (join->places == NULL || join->is_ours == NULL || join->is_seen == NULL)
		return ERR_NO_SPACE;
	for (uint32_t i = 0; i < join->recording->count; i++) {
		const struct recording_process *process = join->recording->processes[i];

		/* Only the last run of a job can answer. */
		if (process->is_earlier_run || !is_wanted(join, process->job))
			continue;
		for (size_t j = 0; j < process->comm_count; j++)
			if (process->comms[j].info.hash != 0 && process->comms[j].info.rank >= 0)
				join->places[join->place_count++] =
					(struct place){ process->comms[j].info.hash,
							process->comms[j].info.rank,
							process->comms[j].info.nranks, i };
	}
	qsort(join->places, join->place_count, sizeof(*join->places), compare_places);
	return OK;
}

static const struct place *place_of(const struct join *join, const struct ras_rank *rank)
{
	const struct place key = { .hash = join->ras->comms[rank->comm].hash, .rank = rank->rank };

	return bsearch(&key, join->places, join->place_count, sizeof(key), compare_places);
}

/* NULL: it is not in the recording. */
static const struct recording_process *process_of(const struct join *join,
						  const struct ras_rank *rank)
{
	const struct place *place = place_of(join, rank);

	return place != NULL ? join->recording->processes[place->process] : NULL;
}

static bool has_pid(const struct recording_process *process, int64_t pid)
{
	return pid == process->pid || pid == recording_pid(process);
}

/* One rank with another process id, or another size: a different job, or one that makes things up. */
static enum status find_ours(struct join *join)
{
	bool *is_other = calloc(join->ras->comm_count + 1, sizeof(*is_other));

	if (is_other == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < join->ras->rank_count; i++) {
		const struct ras_rank *rank = &join->ras->ranks[i];
		const struct place *place = place_of(join, rank);
		int32_t size = join->ras->comms[rank->comm].size;

		if (place == NULL || rank->pid < 0)
			continue;
		if (has_pid(join->recording->processes[place->process], rank->pid))
			join->is_ours[rank->comm] = true;
		else
			is_other[rank->comm] = true;
		if (size > 0 && place->size > 0 && size != place->size)
			is_other[rank->comm] = true;
	}
	for (size_t i = 0; i < join->ras->comm_count; i++) {
		join->is_ours[i] &= !is_other[i];
		join->has_ours |= join->is_ours[i];
	}
	free(is_other);
	return OK;
}

static void report_stranger(const struct join *join)
{
	struct verdict *verdict = verdicts_add(join->verdicts, VERDICT_BLIND, VERDICT_NOTE);

	text_copy(verdict->rule, sizeof(verdict->rule), "ras");
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#nccls-ras");
	verdict_title(verdict, "NCCL's RAS answers for another job: not used");
	verdict_evidence(verdict,
			 "%s: none of its %zu communicators has the number, size and process ids "
			 "of one in the recording",
			 join->from, join->ras->comm_count);
	verdict_missing(verdict, "ranks that do not answer and errors that only NCCL knows");
	verdict_advice(verdict, "Jobs on one node share a port: give each its own NCCL_RAS_ADDR");
}

/* ---- facts ----------------------------------------------------------------------------------- */

enum fact { FACT_SILENT, FACT_GONE, FACT_ERROR, FACT_BEHIND };

static bool has_fact(const struct join *join, const struct ras_rank *rank, enum fact fact,
		     int *function)
{
	const struct recording_process *process = process_of(join, rank);

	switch (fact) {
	case FACT_SILENT:
	case FACT_GONE:
		/* A rank that ended as it should does not answer any more. */
		return rank->is_missing && rank->is_gone == (fact == FACT_GONE) &&
		       (process == NULL || process->life != RECORDING_ENDED);
	case FACT_ERROR:
		return rank->error != 0;
	default:
		for (*function = 0; *function < (int)join->ras->function_count; ++*function)
			if (rank->counts[*function] >= 0 &&
			    rank->counts[*function] <
				    join->ras->comms[rank->comm].highest[*function])
				return true;
		return false;
	}
}

static void say_rank(char *text, size_t size, const struct join *join, const struct ras_rank *rank)
{
	const struct recording_process *process = process_of(join, rank);

	if (process != NULL && process->rank >= 0)
		text_append(text, size, "%" PRId64, process->rank);
	else
		text_append(text, size, "%d of 0x%" PRIx64, rank->rank,
			    join->ras->comms[rank->comm].hash);
	if (process == NULL && rank->pid > 0)
		text_append(text, size, " (pid %" PRId64 " on %s)", rank->pid,
			    rank->host[0] != '\0' ? rank->host : "an unknown node");
}

/* A process may be in several communicators: the first time counts. Those without a recording are few. */
static bool is_repeated(const struct join *join, size_t index)
{
	const struct ras_rank *rank = &join->ras->ranks[index];
	const struct place *place = place_of(join, rank);
	bool was_seen;

	if (place != NULL) {
		was_seen = join->is_seen[place->process];
		join->is_seen[place->process] = true;
		return was_seen;
	}
	for (size_t i = index > NAMED ? index - NAMED : 0; i < index; i++)
		if (rank->pid > 0 && join->ras->ranks[i].pid == rank->pid &&
		    strcmp(join->ras->ranks[i].host, rank->host) == 0)
			return true;
	return false;
}

/* "5, 7 and 3 more": those with this fact. Returns their number. */
static size_t say_ranks(char *text, size_t size, const struct join *join, enum fact fact,
			const struct ras_rank **first)
{
	size_t count = 0;
	int function;

	text[0] = '\0';
	*first = NULL;
	memset(join->is_seen, 0, join->recording->count * sizeof(*join->is_seen));
	for (size_t i = 0; i < join->ras->rank_count; i++) {
		const struct ras_rank *rank = &join->ras->ranks[i];

		if (!join->is_ours[rank->comm] || !has_fact(join, rank, fact, &function) ||
		    is_repeated(join, i))
			continue;
		*first = *first != NULL ? *first : rank;
		if (count++ >= NAMED)
			continue;
		text_append(text, size, "%s", count > 1 ? ", " : "");
		say_rank(text, size, join, rank);
	}
	if (count > NAMED)
		text_append(text, size, " and %zu more", count - NAMED);
	return count;
}

/* ---- next to a hang -------------------------------------------------------------------------- */

static bool is_of(const struct join *join, const struct ras_rank *rank,
		  const struct verdict *verdict)
{
	const struct recording_process *process = process_of(join, rank);

	return process != NULL && join->is_ours[rank->comm] && verdict->pid > 0 &&
	       has_pid(process, verdict->pid) && strcmp(process->host, verdict->host) == 0;
}

/* What RAS says of the rank that is blamed. */
static void support(const struct join *join, struct verdict *verdict)
{
	bool is_reported[4] = { false };

	for (size_t i = 0; i < join->ras->rank_count; i++) {
		const struct ras_rank *rank = &join->ras->ranks[i];
		const struct ras_comm *comm = &join->ras->comms[rank->comm];
		int function;

		if (!is_of(join, rank, verdict))
			continue;
		if (rank->is_missing && !is_reported[0]) {
			is_reported[0] = true;
			verdict_evidence(
				verdict,
				"NCCL's RAS: the process %s: it is stopped, dead, or out of reach.",
				rank->is_gone ? "has not answered for a minute or more"
					      : "does not answer");
			if (verdict->class == VERDICT_PROCESS_DEAD ||
			    verdict->class == VERDICT_PROCESS_STOPPED)
				verdict->confidence = 1 - (1 - verdict->confidence) / 2;
		}
		if (rank->error != 0 && !is_reported[1]) {
			is_reported[1] = true;
			verdict_evidence(verdict, "NCCL's RAS: it has an asynchronous error, %s.",
					 ras_error_text(rank->error));
		}
		if (comm->hash == verdict->comm_hash && !is_reported[2] &&
		    has_fact(join, rank, FACT_BEHIND, &function)) {
			is_reported[2] = true;
			verdict_evidence(verdict,
					 "NCCL's RAS: it has launched %" PRId64
					 " %s on this communicator, others %" PRId64 ".",
					 rank->counts[function], join->ras->functions[function],
					 comm->highest[function]);
			if (verdict->class == VERDICT_NEVER_ISSUED)
				verdict->confidence = 1 - (1 - verdict->confidence) / 2;
		}
	}
}

/* The others, for the first hang. Errors of waiting ranks are consequences: evidence, nobody is blamed for them. */
static void add_others(const struct join *join, struct verdict *verdict)
{
	static const struct {
		enum fact fact;
		const char *text;
	} facts[] = {
		{ FACT_SILENT, "do not answer" },
		{ FACT_GONE, "have not answered for a minute or more" },
		{ FACT_ERROR, "have an asynchronous error" },
	};
	const struct ras_rank *first;
	char ranks[300];

	for (size_t i = 0; i < ARRAY_LENGTH(facts); i++) {
		size_t count = say_ranks(ranks, sizeof(ranks), join, facts[i].fact, &first);

		if (count == 0 || (count == 1 && is_of(join, first, verdict)))
			continue;
		verdict_evidence(verdict, "NCCL's RAS: these ranks %s: %s%s%s.", facts[i].text,
				 ranks, facts[i].fact == FACT_ERROR ? "; the first: " : "",
				 facts[i].fact == FACT_ERROR ? ras_error_text(first->error) : "");
	}
}

/* ---- alone ----------------------------------------------------------------------------------- */

static struct verdict *new_finding(const struct join *join, const struct ras_rank *rank,
				   size_t count)
{
	struct verdict *verdict = verdicts_add(join->verdicts, VERDICT_SETUP, VERDICT_WARNING);
	const struct recording_process *process = process_of(join, rank);

	text_copy(verdict->rule, sizeof(verdict->rule), "ras");
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#nccls-ras");
	verdict->comm_hash = join->ras->comms[rank->comm].hash;
	if (process == NULL)
		return verdict;
	text_copy(verdict->job, sizeof(verdict->job), process->job);
	if (count > 1)
		return verdict;
	verdict->rank = process->rank;
	verdict->pid = recording_pid(process);
	text_copy(verdict->host, sizeof(verdict->host), process->host);
	if (process->rank >= 0)
		text_format(verdict->rank_label, sizeof(verdict->rank_label), "%" PRId64,
			    process->rank);
	return verdict;
}

static void find_silent(const struct join *join, enum fact fact)
{
	const struct ras_rank *first;
	struct verdict *verdict;
	char ranks[300];
	size_t count = say_ranks(ranks, sizeof(ranks), join, fact, &first);

	if (count == 0)
		return;
	verdict = new_finding(join, first, count);
	verdict_title(verdict,
		      fact == FACT_GONE ? "%s %s %s not answered NCCL's RAS for a minute"
					: "%s %s %s not answer NCCL's RAS",
		      count == 1 ? "rank" : "ranks", ranks,
		      fact == FACT_GONE ? (count == 1 ? "has" : "have")
					: (count == 1 ? "does" : "do"));
	verdict_evidence(verdict, "%s: %s %s", join->from,
			 fact == FACT_GONE ? "considered dead: rank" : "no answer from rank",
			 ranks);
	verdict_missing(verdict, "no operation hangs in this recording: the processes may also be "
				 "slow, ending, or cut off from the others' RAS only");
	verdict->confidence = fact == FACT_GONE ? 0.7 : 0.5;
	verdict_advice(verdict, "Check whether the processes run: ringside ls");
}

static void find_errors(const struct join *join)
{
	const struct ras_rank *first;
	struct verdict *verdict;
	char ranks[300];
	size_t count = say_ranks(ranks, sizeof(ranks), join, FACT_ERROR, &first);

	if (count == 0)
		return;
	verdict = new_finding(join, first, count);
	verdict_title(verdict, "NCCL has an asynchronous error on %s %s: %s",
		      count == 1 ? "rank" : "ranks", ranks, ras_error_text(first->error));
	verdict_evidence(verdict, "%s: %s on rank %s", join->from, ras_error_text(first->error),
			 ranks);
	verdict->confidence = 0.9;
	verdict_missing(verdict, "which rank failed first: a remote process error is seen by the "
				 "ranks that are left");
	verdict_advice(verdict, "Look at the logs of the job: NCCL_DEBUG=WARN shows the cause");
}

/* Adds to the verdicts on hangs. False: there is none. */
static bool support_hangs(const struct join *join)
{
	struct verdict *hang = NULL;

	for (size_t i = 0; i < join->verdicts->count; i++) {
		struct verdict *verdict = &join->verdicts->list[i];

		if (!verdict_is_hang(verdict->class) || !is_wanted(join, verdict->job))
			continue;
		support(join, verdict);
		hang = hang != NULL ? hang : verdict;
	}
	if (hang != NULL)
		add_others(join, hang);
	return hang != NULL;
}

static void release(struct join *join)
{
	free(join->places);
	free(join->is_ours);
	free(join->is_seen);
}

enum status ras_find(struct verdicts *verdicts, const struct recording *recording,
		     const struct ras_status *ras, const char *from)
{
	struct join join = {
		.verdicts = verdicts, .recording = recording, .ras = ras, .from = from
	};
	enum status status = list_places(&join);

	if (status == OK)
		status = find_ours(&join);
	if (status == OK && !join.has_ours && ras->rank_count > 0 && join.place_count > 0)
		report_stranger(&join);
	if (status == OK && join.has_ours && !support_hangs(&join)) {
		find_silent(&join, FACT_GONE);
		find_silent(&join, FACT_SILENT);
		find_errors(&join);
	}
	release(&join);
	return status;
}

enum status ras_support(struct verdicts *verdicts, const struct recording *recording,
			const struct ras_status *ras, const char *job, bool *is_ours)
{
	struct join join = { .verdicts = verdicts, .recording = recording, .ras = ras, .job = job };
	enum status status = list_places(&join);

	if (status == OK)
		status = find_ours(&join);
	if (status == OK && join.has_ours)
		support_hangs(&join);
	if (status == OK)
		*is_ours = join.has_ours;
	release(&join);
	return status;
}
