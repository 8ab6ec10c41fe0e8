/*
 * How it is built:
 *
 *	seats      one per (process, communicator of the process), in the order of the recording
 *	ranks      the seats of a process belong to one rank, unless it is several (threads):
 *	           then to one rank per GPU, or per rank of the widest communicator; see place_seats()
 *	comms      seats sorted by (group, hash, ranks, generation): a run of equal ones is a communicator
 *
 * Everything is sorted arrays: no order depends on addresses or hash values.
 */
#include "analysis/job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/match.h"
#include "common/attributes.h"
#include "common/search.h"
#include "common/text.h"

static struct recording_comm *seat_comm(const struct job *job, uint32_t seat)
{
	uint32_t process = job->seats[seat].process;

	return &job->recording->processes[process]->comms[seat - job->first_seat[process]];
}

/* ---- ranks ------------------------------------------------------------------------------------ */

static bool are_alive_together(const struct comm_info *a, const struct comm_info *b)
{
	bool a_ended_before = a->finalize_ns != 0 && a->finalize_ns <= b->init_ns;
	bool b_ended_before = b->finalize_ns != 0 && b->finalize_ns <= a->init_ns;

	return !a_ended_before && !b_ended_before;
}

static int by_hash_then_id(const void *left, const void *right)
{
	const struct comm_info *a = *(const struct comm_info *const *)left;
	const struct comm_info *b = *(const struct comm_info *const *)right;

	return ORDER(a->hash, b->hash) ?: ORDER(a->id, b->id);
}

/*
 * A process of several ranks: which of its seats are the same rank? NCCL shows the GPU of a communicator, and no two
 * ranks of a communicator have the same one. Where it is unknown, the communicator that most of the process's ranks are
 * in says how many there are; another that all of them are in has them in the same order, which is NCCL's when it splits
 * one. Seats of any other belong to one of them, and nothing shows to which: each is a rank of its own.
 *
 * Before ranks have indices a seat's `rank` is its place within the process.
 */
#define PLACE_GPU UINT32_C(0x40000000)	 /* plus the GPU */
#define PLACE_ALONE UINT32_C(0x80000000) /* plus the seat, of the process */

/* A communicator in a process, once per rank, whatever it was recreated. */
struct claimed {
	uint64_t hash;
	int32_t rank;
	int32_t nranks;
	uint32_t seat; /* of the process */
};

static int by_hash_and_rank(const void *left, const void *right)
{
	const struct claimed *a = left, *b = right;

	return ORDER(a->hash, b->hash) ?:
	       ORDER(a->nranks, b->nranks) ?:
	       ORDER(a->rank, b->rank) ?:
	       ORDER(a->seat, b->seat);
}

static bool is_same_seats(const struct claimed *a, const struct claimed *b)
{
	return a->hash == b->hash && a->nranks == b->nranks;
}

static size_t end_of_comm(const struct claimed *claims, size_t first, size_t count)
{
	size_t end = first + 1;

	while (end < count && is_same_seats(&claims[first], &claims[end]))
		end++;
	return end;
}

/* Is the process several ranks: twice in one communicator at the same time? */
static enum status is_process_several(const struct job *job, size_t p, bool *is_several,
				      bool *is_gpu_shared)
{
	const struct recording_process *process = job->recording->processes[p];
	const struct comm_info **sorted = calloc(process->comm_count + 1, sizeof(*sorted));

	if (sorted == NULL)
		return ERR_NO_SPACE;
	*is_several = *is_gpu_shared = false;
	for (size_t i = 0; i < process->comm_count; i++)
		sorted[i] = &process->comms[i].info;
	qsort(sorted, process->comm_count, sizeof(*sorted), by_hash_then_id);
	for (size_t i = 1; i < process->comm_count; i++) {
		const struct comm_info *a = sorted[i - 1], *b = sorted[i];

		if (a->hash != b->hash || a->hash == 0 || a->rank == b->rank ||
		    !are_alive_together(a, b))
			continue;
		*is_several = true;
		*is_gpu_shared |= a->gpu >= 0 && a->gpu == b->gpu;
	}
	free(sorted);
	return OK;
}

/* How many ranks of the communicator at claims[first .. end - 1] the process is. */
static uint32_t ranks_of(const struct claimed *claims, size_t first, size_t end)
{
	uint32_t count = 0;

	for (size_t i = first; i < end; i++)
		count += i == first || claims[i].rank != claims[i - 1].rank;
	return count;
}

/* The communicator with the most ranks of the process, of these the largest one. */
static size_t find_widest(const struct claimed *claims, size_t count)
{
	uint32_t most = 0;
	size_t widest = 0, end;

	for (size_t first = 0; first < count; first = end) {
		uint32_t ranks;

		end = end_of_comm(claims, first, count);
		ranks = claims[first].hash != 0 ? ranks_of(claims, first, end) : 0;
		if (ranks > most ||
		    (ranks == most && claims[first].nranks > claims[widest].nranks)) {
			most = ranks;
			widest = first;
		}
	}
	return widest;
}

/*
 * The places of the process's ranks, in the order of the widest communicator: the GPU, if a communicator that all of
 * them are in shows it, else the rank's first seat there.
 */
static void find_places(const struct recording_process *process, const struct claimed *claims,
			size_t count, size_t widest, bool is_gpu_shared, uint32_t *places)
{
	size_t widest_end = end_of_comm(claims, widest, count), end;
	uint32_t ranks = ranks_of(claims, widest, widest_end), n = 0;

	for (size_t i = widest; i < widest_end; i++) {
		n += i > widest && claims[i].rank != claims[i - 1].rank;
		if (i == widest || claims[i].rank != claims[i - 1].rank)
			places[n] = claims[i].seat;
	}
	for (size_t first = 0; first < count && !is_gpu_shared; first = end) {
		end = end_of_comm(claims, first, count);
		if (claims[first].hash == 0 || ranks_of(claims, first, end) != ranks)
			continue;
		n = 0;
		for (size_t i = first; i < end; i++) {
			const struct comm_info *info = &process->comms[claims[i].seat].info;

			n += i > first && claims[i].rank != claims[i - 1].rank;
			if (info->gpu >= 0 && places[n] < PLACE_GPU)
				places[n] = PLACE_GPU + (uint32_t)info->gpu;
		}
	}
}

static void place_comm(struct job *job, size_t p, const struct claimed *claims, size_t first,
		       size_t end, const uint32_t *places, bool is_gpu_shared)
{
	const struct recording_process *process = job->recording->processes[p];
	uint32_t n = 0;

	for (size_t i = first; i < end; i++) {
		const struct comm_info *info = &process->comms[claims[i].seat].info;
		bool is_again =
			i > first && claims[i].rank == claims[i - 1].rank && claims[i].hash != 0;
		uint32_t *place = &job->seats[job->first_seat[p] + claims[i].seat].rank;

		n += i > first && claims[i].rank != claims[i - 1].rank;
		if (info->gpu >= 0 && !is_gpu_shared)
			*place = PLACE_GPU + (uint32_t)info->gpu;
		else if (places != NULL)
			*place = places[n];
		else if (is_again)
			*place = job->seats[job->first_seat[p] + claims[i - 1].seat].rank;
		else
			*place = PLACE_ALONE + claims[i].seat;
	}
}

static enum status place_seats(struct job *job, size_t p)
{
	const struct recording_process *process = job->recording->processes[p];
	bool is_several, is_gpu_shared;
	enum status status = is_process_several(job, p, &is_several, &is_gpu_shared);
	size_t count = process->comm_count, widest, end;
	struct claimed *claims;
	uint32_t *places, ranks;

	if (status != OK || !is_several)
		return status;
	claims = calloc(count, sizeof(*claims));
	places = calloc(count, sizeof(*places));
	if (claims == NULL || places == NULL) {
		free(claims);
		free(places);
		return ERR_NO_SPACE;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct comm_info *info = &process->comms[i].info;

		claims[i] = (struct claimed){ info->hash, info->rank, info->nranks, i };
	}
	qsort(claims, count, sizeof(*claims), by_hash_and_rank);
	widest = find_widest(claims, count);
	ranks = ranks_of(claims, widest, end_of_comm(claims, widest, count));
	find_places(process, claims, count, widest, is_gpu_shared, places);
	for (size_t first = 0; first < count; first = end) {
		bool has_all;

		end = end_of_comm(claims, first, count);
		has_all = claims[first].hash != 0 && ranks_of(claims, first, end) == ranks;
		place_comm(job, p, claims, first, end, has_all ? places : NULL, is_gpu_shared);
	}
	free(claims);
	free(places);
	return OK;
}

/* The rank in the communicator of all ranks, if the launcher gave none. */
static void derive_rank(const struct job *job, struct job_rank *rank, uint32_t place,
			bool is_several, int32_t world)
{
	const struct recording_process *process = job->recording->processes[rank->process];
	uint32_t first = job->first_seat[rank->process];

	rank->rank = is_several ? -1 : process->rank;
	for (uint32_t i = 0; i < process->comm_count; i++) {
		const struct comm_info *info = &process->comms[i].info;

		if (job->seats[first + i].rank != place)
			continue;
		if (rank->gpu < 0)
			rank->gpu = info->gpu;
		if (rank->gpu_uuid[0] == '\0')
			text_from_field(rank->gpu_uuid, sizeof(rank->gpu_uuid), info->gpu_uuid,
					sizeof(info->gpu_uuid));
		if (rank->rank < 0 && info->nranks == world && world > 0 && info->rank >= 0 &&
		    !rank->is_unplaced) {
			rank->rank = info->rank;
			rank->is_derived = true;
		}
	}
}

static int ascending(const void *left, const void *right)
{
	return ORDER(*(const uint32_t *)left, *(const uint32_t *)right);
}

/* The places of a process, without repetition; at least one. */
static uint32_t places_of(const struct job *job, size_t p, uint32_t *places)
{
	uint32_t count = 0, kept = 1;

	for (uint32_t s = job->first_seat[p]; s < job->first_seat[p + 1]; s++)
		places[count++] = job->seats[s].rank;
	if (count == 0)
		places[count++] = 0;
	qsort(places, count, sizeof(*places), ascending);
	for (uint32_t i = 1; i < count; i++)
		if (places[i] != places[i - 1])
			places[kept++] = places[i];
	return kept;
}

/* Per group: the ranks of its largest communicator. */
static int32_t *find_worlds(const struct job *job, const uint32_t *group_of)
{
	int32_t *worlds = calloc(job->group_count + 1, sizeof(*worlds));

	for (size_t s = 0; worlds != NULL && s < job->seat_count; s++) {
		int32_t *world = &worlds[group_of[job->seats[s].process]];

		if (seat_comm(job, (uint32_t)s)->info.nranks > *world)
			*world = seat_comm(job, (uint32_t)s)->info.nranks;
	}
	return worlds;
}

static uint32_t find_host(struct job *job, const char *name)
{
	/* Processes of one host come together: the last one found is nearly always it. */
	for (size_t i = job->host_count; i-- > 0;)
		if (strcmp(job->hosts[i].name, name) == 0)
			return (uint32_t)i;
	text_copy(job->hosts[job->host_count].name, sizeof(job->hosts[0].name), name);
	return (uint32_t)job->host_count++;
}

static enum status add_ranks(struct job *job, size_t p, uint32_t group, int32_t world)
{
	const struct recording_process *process = job->recording->processes[p];
	uint32_t *places = calloc(process->comm_count + 1, sizeof(*places));
	enum status status = places != NULL ? place_seats(job, p) : ERR_NO_SPACE;
	uint32_t count = status == OK ? places_of(job, p, places) : 0;
	void *grown = status == OK
			      ? realloc(job->ranks, (job->rank_count + count) * sizeof(*job->ranks))
			      : NULL;

	if (grown == NULL) {
		free(places);
		return ERR_NO_SPACE;
	}
	job->ranks = grown;
	for (uint32_t i = 0; i < count; i++) {
		struct job_rank *rank = &job->ranks[job->rank_count];

		*rank = (struct job_rank){ .process = (uint32_t)p,
					   .group = group,
					   .gpu = -1,
					   .is_unplaced = (places[i] & PLACE_ALONE) != 0,
					   .pid = process->pid,
					   .life = process->life,
					   .attempt = places[i] };
		derive_rank(job, rank, places[i], count > 1, world);
		job->rank_count++;
	}
	free(places);
	return OK;
}

static int by_group_and_rank(const void *left, const void *right)
{
	const struct job_rank *a = left, *b = right;
	uint64_t rank_a = (uint64_t)a->rank, rank_b = (uint64_t)b->rank; /* -1 comes last */

	return ORDER(a->group, b->group) ?:
	       ORDER(rank_a, rank_b) ?:
	       ORDER(a->process, b->process) ?:
	       ORDER(a->attempt, b->attempt);
}

/* Seats still hold places; `attempt` of a rank holds its place until here. */
static void link_seats_to_ranks(struct job *job)
{
	for (size_t r = job->rank_count; r-- > 0;)
		job->process_rank[job->ranks[r].process] = (uint32_t)r;
	for (size_t r = 0; r < job->rank_count; r++) {
		const struct job_rank *rank = &job->ranks[r];

		for (uint32_t s = job->first_seat[rank->process];
		     s < job->first_seat[rank->process + 1]; s++)
			if (job->seats[s].comm == 0 && job->seats[s].rank == rank->attempt) {
				job->seats[s].rank = (uint32_t)r;
				job->seats[s].comm = 1; /* done */
			}
	}
}

/* A start of a rank, in whichever run of its job. */
struct start {
	uint32_t job; /* its first group */
	int64_t rank;
	uint32_t run;
	uint64_t wall_ns;
	uint32_t index; /* in job.ranks */
};

static int by_start(const void *left, const void *right)
{
	const struct start *a = left, *b = right;

	return ORDER(a->job, b->job) ?:
	       ORDER(a->rank, b->rank) ?:
	       ORDER(a->run, b->run) ?:
	       ORDER(a->wall_ns, b->wall_ns) ?:
	       ORDER(a->index, b->index);
}

static enum status count_attempts(struct job *job)
{
	struct start *starts = calloc(job->rank_count + 1, sizeof(*starts));
	uint32_t first = 0;

	if (starts == NULL)
		return ERR_NO_SPACE;
	for (uint32_t r = 0; r < job->rank_count; r++) {
		const struct job_rank *rank = &job->ranks[r];

		/* Groups of a job are adjacent, and ranks are sorted by group. */
		if (strcmp(job->groups[rank->group].name, job->groups[first].name) != 0)
			first = rank->group;
		starts[r] =
			(struct start){ first, rank->rank, job->groups[rank->group].run,
					job->recording->processes[rank->process]->started_wall_ns,
					r };
	}
	qsort(starts, job->rank_count, sizeof(*starts), by_start);
	for (uint32_t i = 0; i < job->rank_count; i++) {
		bool is_again = i > 0 && starts[i].rank >= 0 &&
				starts[i].job == starts[i - 1].job &&
				starts[i].rank == starts[i - 1].rank;

		job->ranks[starts[i].index].attempt =
			is_again ? job->ranks[starts[i - 1].index].attempt + 1 : 0;
	}
	free(starts);
	return OK;
}

/* Its communicator and its rank there are all that is known. */
static void label_unplaced(struct job *job, uint32_t rank)
{
	struct job_rank *of = &job->ranks[rank];

	for (uint32_t s = job->first_seat[of->process]; s < job->first_seat[of->process + 1]; s++) {
		const struct comm_info *info = &seat_comm(job, s)->info;
		char name[sizeof(info->name)];

		if (job->seats[s].rank != rank)
			continue;
		text_from_field(name, sizeof(name), info->name, sizeof(info->name));
		if (name[0] == '\0')
			text_format(name, sizeof(name), "0x%016" PRIx64, info->hash);
		text_format(of->label, sizeof(of->label), "%d of %.40s", info->rank, name);
		return;
	}
}

static void label_ranks(struct job *job)
{
	for (size_t r = 0; r < job->rank_count; r++) {
		struct job_rank *rank = &job->ranks[r];

		if (rank->is_unplaced)
			label_unplaced(job, (uint32_t)r);
		else if (rank->rank < 0)
			text_format(rank->label, sizeof(rank->label), "%.40s:%" PRId64,
				    job->recording->processes[rank->process]->host, rank->pid);
		else if (rank->attempt > 0)
			text_format(rank->label, sizeof(rank->label), "%" PRId64 " (start %u)",
				    rank->rank, rank->attempt + 1);
		else
			text_format(rank->label, sizeof(rank->label), "%" PRId64, rank->rank);
	}
}

/* A rank that was not placed may be another of its process, unless there is none that was. */
static enum status count_known(struct job *job)
{
	size_t processes = job->recording->count;
	bool *has_placed = calloc(2 * processes + 1, sizeof(*has_placed));
	bool *has_unplaced = &has_placed[processes];

	if (has_placed == NULL)
		return ERR_NO_SPACE;
	for (size_t r = 0; r < job->rank_count; r++)
		(job->ranks[r].is_unplaced ? has_unplaced : has_placed)[job->ranks[r].process] =
			true;
	for (size_t r = 0; r < job->rank_count; r++) {
		struct job_rank *rank = &job->ranks[r];

		rank->is_counted = !rank->is_unplaced || !has_placed[rank->process];
		rank->is_partial = has_unplaced[rank->process];
		job->hosts[rank->host].known_ranks += rank->is_counted;
		job->groups[rank->group].known_ranks += rank->is_counted;
		job->known_ranks += rank->is_counted;
	}
	free(has_placed);
	return OK;
}

static enum status make_hosts(struct job *job)
{
	uint32_t *last_group;

	job->hosts = calloc(job->rank_count + 1, sizeof(*job->hosts));
	last_group = calloc(job->rank_count + 1, sizeof(*last_group));
	if (job->hosts == NULL || last_group == NULL) {
		free(last_group);
		return ERR_NO_SPACE;
	}
	for (size_t r = 0; r < job->rank_count; r++) {
		struct job_rank *rank = &job->ranks[r];
		struct job_group *group = &job->groups[rank->group];

		rank->host = find_host(job, job->recording->processes[rank->process]->host);
		if (group->rank_count++ == 0)
			group->first_rank = (uint32_t)r;
		if (last_group[rank->host] != rank->group + 1)
			group->host_count++;
		last_group[rank->host] = rank->group + 1;
	}
	free(last_group);
	return count_known(job);
}

/* group_of: per process. Seats and groups exist for both, ranks for the second. */
static enum status job_make_ranks(struct job *job, const uint32_t *group_of)
{
	int32_t *worlds = find_worlds(job, group_of);
	enum status status = worlds != NULL ? OK : ERR_NO_SPACE;

	for (size_t g = 0; g < job->group_count && status == OK; g++)
		if (job->groups[g].world_size <= 0)
			job->groups[g].world_size = worlds[g];
	for (size_t p = 0; p < job->recording->count && status == OK; p++)
		status = add_ranks(job, p, group_of[p], worlds[group_of[p]]);
	free(worlds);
	if (status != OK)
		return status;
	if (job->rank_count > 0)
		qsort(job->ranks, job->rank_count, sizeof(*job->ranks), by_group_and_rank);
	link_seats_to_ranks(job);
	status = count_attempts(job);
	if (status != OK)
		return status;
	label_ranks(job);
	return make_hosts(job);
}

/* ---- communicators ---------------------------------------------------------------------------- */

enum job_comm_kind job_comm_kind_of(int32_t nranks, int32_t nnodes)
{
	if (nranks == 1)
		return JOB_COMM_SINGLE;
	if (nranks <= 0 || nnodes <= 0)
		return JOB_COMM_UNKNOWN;
	if (nnodes == 1)
		return JOB_COMM_NVLINK;
	return nnodes >= nranks ? JOB_COMM_NET : JOB_COMM_MIXED;
}

/* A seat with everything that decides which communicator it belongs to. */
struct claim {
	uint32_t seat;
	uint32_t group;
	uint64_t hash;
	int32_t nranks;
	int32_t comm_rank;
	uint32_t process;
	uint32_t id;
	uint32_t generation;
	uint32_t layer; /* above 0: the seat was taken */
};

static int by_owner(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;

	return ORDER(a->process, b->process) ?:
	       ORDER(a->hash, b->hash) ?:
	       ORDER(a->nranks, b->nranks) ?:
	       ORDER(a->comm_rank, b->comm_rank) ?:
	       ORDER(a->id, b->id);
}

static int by_place(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;

	return ORDER(a->group, b->group) ?:
	       ORDER(a->hash, b->hash) ?:
	       ORDER(a->nranks, b->nranks) ?:
	       ORDER(a->generation, b->generation) ?:
	       ORDER(a->comm_rank, b->comm_rank) ?:
	       ORDER(a->process, b->process) ?:
	       ORDER(a->id, b->id);
}

static int by_comm(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;

	return ORDER(a->group, b->group) ?:
	       ORDER(a->hash, b->hash) ?:
	       ORDER(a->nranks, b->nranks) ?:
	       ORDER(a->generation, b->generation) ?:
	       ORDER(a->layer, b->layer) ?:
	       ORDER(a->comm_rank, b->comm_rank);
}

/* A communicator without a hash belongs to its process: the seat makes it unique. */
static bool is_same_comm(const struct claim *a, const struct claim *b)
{
	if (a->hash == 0)
		return false;
	return a->group == b->group && a->hash == b->hash && a->nranks == b->nranks &&
	       a->generation == b->generation && a->layer == b->layer;
}

static void count_generations(struct claim *claims, size_t count)
{
	qsort(claims, count, sizeof(*claims), by_owner);
	for (size_t i = 1; i < count; i++) {
		const struct claim *a = &claims[i - 1], *b = &claims[i];

		if (a->hash != 0 && a->process == b->process && a->hash == b->hash &&
		    a->nranks == b->nranks && a->comm_rank == b->comm_rank)
			claims[i].generation = a->generation + 1;
	}
}

static uint32_t count_layers(struct claim *claims, size_t count)
{
	uint32_t conflicts = 0;

	qsort(claims, count, sizeof(*claims), by_place);
	for (size_t i = 1; i < count; i++) {
		const struct claim *a = &claims[i - 1], *b = &claims[i];

		if (a->hash == 0 || a->group != b->group || a->hash != b->hash ||
		    a->nranks != b->nranks || a->generation != b->generation ||
		    a->comm_rank != b->comm_rank || a->comm_rank < 0)
			continue;
		claims[i].layer = a->layer + 1;
		conflicts++;
	}
	return conflicts;
}

static enum status start_comm(struct job *job, const struct claim *first, size_t members)
{
	const struct comm_info *info = &seat_comm(job, first->seat)->info;
	struct job_comm *comm = &job->comms[job->comm_count];

	comm->seats = calloc(members, sizeof(*comm->seats));
	if (comm->seats == NULL)
		return ERR_NO_SPACE;
	comm->hash = first->hash;
	comm->group = first->group;
	comm->generation = first->generation;
	comm->nranks = info->nranks;
	comm->nnodes = info->nnodes;
	comm->kind = job_comm_kind_of(info->nranks, info->nnodes);
	text_from_field(comm->name, sizeof(comm->name), info->name, sizeof(info->name));
	job->comm_count++;
	return OK;
}

static enum status fill_comms(struct job *job, const struct claim *claims, size_t count)
{
	enum status status = OK;
	size_t next;

	for (size_t i = 0; i < count && status == OK; i = next) {
		next = i + 1;
		while (next < count && is_same_comm(&claims[i], &claims[next]))
			next++;
		status = start_comm(job, &claims[i], next - i);
		for (size_t j = i; j < next && status == OK; j++) {
			struct job_comm *comm = &job->comms[job->comm_count - 1];

			comm->seats[comm->seat_count++] = claims[j].seat;
			job->seats[claims[j].seat].comm = (uint32_t)job->comm_count - 1;
			if (comm->name[0] == '\0')
				text_from_field(comm->name, sizeof(comm->name),
						seat_comm(job, claims[j].seat)->info.name,
						sizeof(comm->name));
			if (comm->nranks > 0 && (uint32_t)comm->nranks > comm->seat_count)
				comm->missing = (uint32_t)comm->nranks - comm->seat_count;
			else
				comm->missing = 0;
		}
	}
	return status;
}

static int by_size_and_name(const void *left, const void *right)
{
	const struct job_comm *a = left, *b = right;

	return ORDER(a->group, b->group) ?:
	       ORDER(b->nranks, a->nranks) ?:
	       strcmp(a->name, b->name) ?:
	       ORDER(a->hash, b->hash) ?:
	       ORDER(a->generation, b->generation) ?:
	       ORDER(a->seats[0], b->seats[0]);
}

static int by_text(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static bool is_name_shared(const char *const *sorted, size_t count, const char *name)
{
	size_t first = SEARCH_FIRST(i, count, strcmp(sorted[i], name) >= 0);

	return first + 1 < count && strcmp(sorted[first + 1], name) == 0;
}

static void label_comm(struct job_comm *comm, size_t number, bool is_shared)
{
	char again[24] = "", which[40];

	if (comm->generation > 0)
		text_format(again, sizeof(again), " (%u)", comm->generation + 1);
	if (comm->hash == 0)
		text_format(which, sizeof(which), "#%zu", number);
	else
		text_format(which, sizeof(which), "0x%016" PRIx64, comm->hash);
	if (comm->name[0] == '\0')
		text_format(comm->label, sizeof(comm->label), "%s%s", which, again);
	else if (is_shared)
		text_format(comm->label, sizeof(comm->label), "%.60s %s%s", comm->name, which,
			    again);
	else
		text_format(comm->label, sizeof(comm->label), "%s%s", comm->name, again);
}

static enum status label_comms(struct job *job)
{
	const char **sorted = calloc(job->comm_count + 1, sizeof(*sorted));

	if (sorted == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < job->comm_count; i++)
		sorted[i] = job->comms[i].name;
	qsort(sorted, job->comm_count, sizeof(*sorted), by_text);
	for (size_t i = 0; i < job->comm_count; i++) {
		struct job_comm *comm = &job->comms[i];

		label_comm(comm, i + 1, is_name_shared(sorted, job->comm_count, comm->name));
		for (uint32_t j = 0; j < comm->seat_count; j++)
			job->seats[comm->seats[j]].comm = (uint32_t)i;
	}
	free(sorted);
	return OK;
}

static enum status job_make_comms(struct job *job, const uint32_t *group_of)
{
	struct claim *claims = calloc(job->seat_count + 1, sizeof(*claims));
	enum status status = ERR_NO_SPACE;

	job->comms = calloc(job->seat_count + 1, sizeof(*job->comms));
	if (claims == NULL || job->comms == NULL)
		goto out;
	for (uint32_t s = 0; s < job->seat_count; s++) {
		const struct comm_info *info = &seat_comm(job, s)->info;

		claims[s] = (struct claim){ .seat = s,
					    .group = group_of[job->seats[s].process],
					    .hash = info->hash,
					    .nranks = info->nranks,
					    .comm_rank = info->rank,
					    .process = job->seats[s].process,
					    .id = info->id };
	}
	count_generations(claims, job->seat_count);
	job->conflicts = count_layers(claims, job->seat_count);
	qsort(claims, job->seat_count, sizeof(*claims), by_comm);
	status = fill_comms(job, claims, job->seat_count);
	if (status == OK && job->comm_count > 0) {
		qsort(job->comms, job->comm_count, sizeof(*job->comms), by_size_and_name);
		status = label_comms(job);
	}
out:
	free(claims);
	return status;
}

enum {
	INTERFACE_WITHOUT_BROADCAST = 6, /* see hot_call.c */
	FLIGHTS_TRIED = 256,
	ENTRIES_MAX = 1 << 22,
	/* Others may be read a moment later, and GPU timestamps are wrong occasionally. */
	UNSEEN_LEAST = 2,
};

/* Function and NCCL's number combined; 0: none that could be compared. */
static uint64_t gap_key(uint8_t function, uint32_t flags, uint64_t sequence, bool is_launched,
			uint32_t interface)
{
	if (function < OP_ALL_REDUCE || function > OP_REDUCE || !is_launched ||
	    flags & (OP_FLAG_REPLAY | OP_FLAG_API_ONLY | OP_FLAG_COPY_ENGINE) ||
	    (function == OP_BROADCAST && interface >= INTERFACE_WITHOUT_BROADCAST))
		return 0;
	return (uint64_t)function << 48 | (sequence & ((UINT64_C(1) << 48) - 1));
}

static int by_key(const void *one, const void *other)
{
	const struct job_gap_entry *a = one, *b = other;

	return ORDER(a->key, b->key);
}

static const struct job_gap_entry *entry_find(const struct job_gap_entry *list, size_t count,
					      uint64_t key)
{
	struct job_gap_entry wanted = { .key = key };

	if (key == 0 || count == 0)
		return NULL;
	return bsearch(&wanted, list, count, sizeof(*list), by_key);
}

/* One without gaps, else the one that recorded most. */
static uint32_t choose_reference(const struct job *job, const struct job_comm *comm)
{
	uint32_t best = comm->seats[0];

	for (uint32_t i = 1; i < comm->seat_count; i++) {
		const struct comm_counts *own = &seat_comm(job, comm->seats[i])->counts;
		const struct comm_counts *others = &seat_comm(job, best)->counts;

		if ((own->missed == 0) != (others->missed == 0) ? own->missed == 0
								: own->recorded > others->recorded)
			best = comm->seats[i];
	}
	return best;
}

/* ---- operations in flight -------------------------------------------------------------------- */

/* The flights of a seat: sorted by communicator and number. */
static struct recording_flight *flights_of(const struct job *job, uint32_t seat, size_t *count)
{
	struct recording_process *process = job->recording->processes[job->seats[seat].process];
	uint32_t id = job->seats[seat].comm_id;
	size_t first = SEARCH_FIRST(i, process->flight_count, process->flights[i].op.comm >= id);

	*count = 0;
	while (first + *count < process->flight_count &&
	       process->flights[first + *count].op.comm == id)
		++*count;
	return *count > 0 ? &process->flights[first] : NULL;
}

uint64_t job_gap_key(const struct job *job, uint32_t seat, const struct op_record *op)
{
	return op->match == 0 ? 0
			      : gap_key(op->function, op->flags, op->nccl_sequence,
					op->task_ns != 0, seat_comm(job, seat)->info.interface);
}

static size_t list_flights(const struct job *job, uint32_t seat, struct job_gap_entry *list)
{
	size_t count, used = 0;
	const struct recording_flight *flights = flights_of(job, seat, &count);

	/* The last ones: what is still in flight on the others is among them. */
	for (size_t i = count; i-- > 0 && used < FLIGHTS_TRIED;) {
		uint64_t key = job_gap_key(job, seat, &flights[i].op);

		if (key != 0)
			list[used++] = (struct job_gap_entry){ key, flights[i].op.match };
	}
	qsort(list, used, sizeof(*list), by_key);
	return used;
}

static bool is_call(const struct op_record *op)
{
	return op_is_collective(op->function) && !(op->flags & OP_FLAG_REPLAY) && op->match != 0;
}

/* How far a seat's numbers are behind those of the reference. False: they have nothing in common. */
static bool find_shift(const struct job *job, uint32_t seat, const struct job_gap_entry *list,
		       size_t used, uint64_t *shift)
{
	size_t count;
	const struct recording_flight *flights = flights_of(job, seat, &count);

	for (size_t i = count; i-- > 0;) {
		uint64_t key = job_gap_key(job, seat, &flights[i].op);
		const struct job_gap_entry *same = entry_find(list, used, key);

		if (same == NULL)
			continue;
		*shift = same->match - flights[i].op.match;
		return true;
	}
	return false;
}

static void shift_seat(const struct job *job, uint32_t seat, uint64_t shift, bool is_placed)
{
	struct recording_comm *of = seat_comm(job, seat);
	size_t count;
	struct recording_flight *flights = flights_of(job, seat, &count);

	of->is_unplaced = !is_placed;
	if (is_placed)
		of->counts.collectives += shift;
	else
		of->counts.signature = 0;
	for (size_t i = 0; i < count; i++) {
		struct op_record *op = &flights[i].op;

		if (!is_call(op))
			continue;
		op->match = is_placed ? op->match + shift : 0;
		op->signature = is_placed ? op->signature : 0;
	}
}

static void align_comm(const struct job *job, const struct job_comm *comm)
{
	struct job_gap_entry list[FLIGHTS_TRIED];
	uint32_t reference = choose_reference(job, comm);
	bool has_gaps = seat_comm(job, reference)->counts.missed > 0;
	size_t used = list_flights(job, reference, list);

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];
		uint64_t shift = 0;
		bool is_placed;

		if (seat == reference || (!has_gaps && seat_comm(job, seat)->counts.missed == 0))
			continue;
		is_placed = find_shift(job, seat, list, used, &shift);
		shift_seat(job, seat, shift, is_placed);
	}
}

/* The last collective that cannot end without all ranks, and ended somewhere. */
static uint64_t last_done(const struct job *job, const struct job_comm *comm)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		size_t count;
		const struct recording_flight *flights = flights_of(job, comm->seats[i], &count);

		for (size_t j = 0; j < count; j++) {
			const struct op_record *op = &flights[j].op;

			if (is_call(op) && op->state == OP_DONE && op->match > last &&
			    match_is_synchronising(op->function) &&
			    !(op->flags & OP_STAMPS_UNTRUSTED))
				last = op->match;
		}
	}
	return last;
}

/* The last collective that a seat recorded, by its count or by what is in flight. */
static uint64_t last_called(const struct job *job, uint32_t seat)
{
	uint64_t last = seat_comm(job, seat)->counts.collectives;
	size_t count;
	const struct recording_flight *flights = flights_of(job, seat, &count);

	for (size_t i = 0; i < count; i++)
		if (is_call(&flights[i].op) && flights[i].op.match > last)
			last = flights[i].op.match;
	return last;
}

/* A seat that has not recorded what ended elsewhere has made these calls nevertheless. */
static void mark_unseen(const struct job *job, const struct job_comm *comm)
{
	uint64_t last = last_done(job, comm);

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		struct recording_comm *of = seat_comm(job, comm->seats[i]);

		/* Its first call after a gap has the numbers from before, until NCCL reports its own. */
		if (of->has_counts && last >= UNSEEN_LEAST &&
		    last_called(job, comm->seats[i]) <= last - UNSEEN_LEAST)
			shift_seat(job, comm->seats[i], 0, false);
	}
}

/* Part of job_make(): counts what was missed, and aligns flights and counts of the recording, in place. */
static void job_align_flights(struct job *job)
{
	for (size_t c = 0; c < job->comm_count; c++) {
		struct job_comm *comm = &job->comms[c];

		for (uint32_t i = 0; i < comm->seat_count; i++) {
			seat_comm(job, comm->seats[i])->is_unplaced = false;
			comm->missed += seat_comm(job, comm->seats[i])->counts.missed;
		}
		if (comm->hash == 0 || comm->seat_count < 2)
			continue;
		if (comm->missed > 0)
			align_comm(job, comm);
		mark_unseen(job, comm);
	}
}

/* ---- recorded operations --------------------------------------------------------------------- */

struct listing {
	struct job_gaps *gaps;
	size_t process;
};

static uint64_t row_key(const struct job *job, const struct job_seat *seat,
			const struct op_batch *batch, uint32_t row)
{
	uint64_t kind = batch->column[OP_WORD_KIND][row];
	uint64_t state = batch->column[OP_WORD_STATE][row];
	const struct comm_info *info = &seat_comm(job, (uint32_t)(seat - job->seats))->info;

	return gap_key((uint8_t)op_kind_names(kind), op_state_flags(state),
		       batch->column[OP_WORD_NCCL_SEQUENCE][row],
		       op_state_state(state) != OP_ISSUED && op_state_state(state) != OP_CAPTURED,
		       info->interface);
}

static bool list_add(struct job_gap_comm *of, uint64_t key, uint64_t match)
{
	if (!list_grow(&of->list, of->count, sizeof(*of->list)))
		return false;
	of->list[of->count++] = (struct job_gap_entry){ key, match };
	return true;
}

static bool list_batch(const struct op_batch *batch, enum recording_place place, void *context)
{
	const struct listing *listing = context;
	struct job_gaps *gaps = listing->gaps;
	const struct job *job = gaps->job;
	const struct job_seat *seat = NULL;

	(void)place;
	for (uint32_t row = 0; row < batch->rows; row++) {
		uint32_t id = op_kind_comm(batch->column[OP_WORD_KIND][row]);
		uint64_t match = batch->column[OP_WORD_MATCH][row], key;

		if (seat == NULL || seat->comm_id != id)
			seat = job_seat(job, listing->process, id);
		if (seat == NULL || match == 0 || job->comms[seat->comm].missed == 0 ||
		    gaps->comms[seat->comm].reference != (uint32_t)(seat - job->seats) ||
		    gaps->comms[seat->comm].count >= ENTRIES_MAX)
			continue;
		key = row_key(job, seat, batch, row);
		if (key != 0 && !list_add(&gaps->comms[seat->comm], key, match))
			gaps->status = ERR_NO_SPACE;
	}
	return gaps->status == OK;
}

static bool is_referred_to(const struct job_gaps *gaps, size_t process)
{
	for (size_t c = 0; c < gaps->job->comm_count; c++)
		if (gaps->job->comms[c].missed > 0 &&
		    gaps->job->seats[gaps->comms[c].reference].process == process)
			return true;
	return false;
}

enum status job_gaps_init(struct job_gaps *gaps, const struct job *job)
{
	const uint32_t words = OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_STATE) |
			       OP_WORD_BIT(OP_WORD_MATCH) | OP_WORD_BIT(OP_WORD_NCCL_SEQUENCE);
	bool has_any = false;

	*gaps = (struct job_gaps){ .job = job };
	for (size_t c = 0; c < job->comm_count; c++)
		has_any |= job->comms[c].missed > 0;
	if (!has_any)
		return OK;
	gaps->comms = calloc(job->comm_count, sizeof(*gaps->comms));
	if (gaps->comms == NULL)
		return ERR_NO_SPACE;
	for (size_t c = 0; c < job->comm_count; c++)
		if (job->comms[c].missed > 0)
			gaps->comms[c].reference = choose_reference(job, &job->comms[c]);
	for (size_t p = 0; p < job->recording->count && gaps->status == OK; p++) {
		struct listing listing = { gaps, p };
		enum status status = OK;

		if (is_referred_to(gaps, p))
			status = recording_each_batch(job->recording->processes[p], words,
						      list_batch, &listing, NULL);
		if (status != OK)
			gaps->status = status;
	}
	for (size_t c = 0; c < job->comm_count; c++)
		if (gaps->comms[c].count > 1)
			qsort(gaps->comms[c].list, gaps->comms[c].count,
			      sizeof(*gaps->comms[c].list), by_key);
	return gaps->status;
}

void job_gaps_release(struct job_gaps *gaps)
{
	for (size_t c = 0; gaps->comms != NULL && c < gaps->job->comm_count; c++)
		free(gaps->comms[c].list);
	free(gaps->comms);
	free(gaps->match);
	free(gaps->signature);
	*gaps = (struct job_gaps){ .job = NULL };
}

uint32_t job_gaps_words(const struct job_gaps *gaps)
{
	return gaps->comms != NULL ? OP_WORD_BIT(OP_WORD_NCCL_SEQUENCE) : 0;
}

static bool gaps_make_room(struct job_gaps *gaps, uint32_t rows)
{
	if (gaps->room >= rows)
		return true;
	free(gaps->match);
	free(gaps->signature);
	gaps->match = malloc(rows * sizeof(*gaps->match));
	gaps->signature = malloc(rows * sizeof(*gaps->signature));
	gaps->room = gaps->match && gaps->signature ? rows : 0;
	return gaps->room > 0;
}

const struct op_batch *job_gaps_batch(struct job_gaps *gaps, size_t process,
				      const struct op_batch *batch, struct op_batch *copy)
{
	const struct job *job = gaps->job;
	const struct job_seat *seat = NULL;

	if (gaps->comms == NULL || batch->rows == 0)
		return batch;
	if (!gaps_make_room(gaps, batch->rows)) {
		gaps->status = ERR_NO_SPACE;
		return batch;
	}
	for (uint32_t row = 0; row < batch->rows; row++) {
		uint64_t kind = batch->column[OP_WORD_KIND][row];
		const struct job_gap_comm *of;
		const struct job_gap_entry *same;

		gaps->match[row] = batch->column[OP_WORD_MATCH][row];
		gaps->signature[row] = batch->column[OP_WORD_SIGNATURE][row];
		if (seat == NULL || seat->comm_id != op_kind_comm(kind))
			seat = job_seat(job, process, op_kind_comm(kind));
		if (seat == NULL || job->comms[seat->comm].missed == 0 ||
		    !op_is_collective((uint8_t)op_kind_names(kind)))
			continue;
		of = &gaps->comms[seat->comm];
		same = entry_find(of->list, of->count, row_key(job, seat, batch, row));
		gaps->match[row] = same != NULL ? same->match : 0;
		gaps->signature[row] = 0;
	}
	*copy = *batch;
	copy->column[OP_WORD_MATCH] = gaps->match;
	copy->column[OP_WORD_SIGNATURE] = gaps->signature;
	return copy;
}

const char *job_comm_kind_name(enum job_comm_kind kind)
{
	static const char *const names[JOB_COMM_KINDS] = { "unknown", "single-rank", "nvlink-only",
							   "net-only", "mixed" };

	return (unsigned int)kind < JOB_COMM_KINDS ? names[kind] : "unknown";
}

/* ---- seats and groups ------------------------------------------------------------------------ */

static enum status make_seats(struct job *job)
{
	const struct recording *recording = job->recording;
	size_t count = 0;

	for (size_t p = 0; p < recording->count; p++)
		count += recording->processes[p]->comm_count;
	job->seats = calloc(count + 1, sizeof(*job->seats));
	job->first_seat = calloc(recording->count + 1, sizeof(*job->first_seat));
	job->process_rank = calloc(recording->count + 1, sizeof(*job->process_rank));
	if (job->seats == NULL || job->first_seat == NULL || job->process_rank == NULL)
		return ERR_NO_SPACE;
	for (size_t p = 0; p < recording->count; p++) {
		const struct recording_process *process = recording->processes[p];

		job->first_seat[p] = (uint32_t)job->seat_count;
		for (size_t i = 0; i < process->comm_count; i++)
			job->seats[job->seat_count++] =
				(struct job_seat){ .process = (uint32_t)p,
						   .comm_id = process->comms[i].info.id,
						   .comm_rank = process->comms[i].info.rank };
	}
	job->first_seat[recording->count] = (uint32_t)job->seat_count;
	return OK;
}

/* The last run is the job. Earlier ones, while they are known, are named by their start, which is the same for every
 * reader; their numbers depend on what each reader still sees. */
static void name_runs(struct job *job)
{
	for (size_t g = 0; g < job->group_count; g++) {
		struct job_group *group = &job->groups[g];
		char name[sizeof(group->name)], start[UNITS_TEXT];
		bool is_replaced = false;

		for (size_t other = 0; group->is_earlier_run && other < job->group_count; other++)
			is_replaced |= job->groups[other].run > group->run &&
				       !job->groups[other].is_earlier_run &&
				       strcmp(job->groups[other].name, group->name) == 0;
		if (!is_replaced)
			continue;
		text_copy(name, sizeof(name), group->name);
		text_format(group->name, sizeof(group->name), "%.95s (run of %s)", name,
			    units_date(start, group->started_wall_ns));
	}
}

/* Processes are sorted by job, but not always by run. */
static enum status make_groups(struct job *job, uint32_t *group_of)
{
	const struct recording *recording = job->recording;
	size_t first_of_job = 0;

	job->groups = calloc(recording->count + 1, sizeof(*job->groups));
	if (job->groups == NULL)
		return ERR_NO_SPACE;
	for (size_t p = 0; p < recording->count; p++) {
		const struct recording_process *process = recording->processes[p];
		struct job_group *group;
		uint64_t hang_after_ns;
		size_t g;

		if (p == 0 || strcmp(process->job, recording->processes[p - 1]->job) != 0)
			first_of_job = job->group_count;
		for (g = job->group_count; g > first_of_job; g--)
			if (job->groups[g - 1].run == process->run)
				break;
		g = g > first_of_job ? g - 1 : job->group_count++;
		group = &job->groups[g];
		text_copy(group->name, sizeof(group->name), process->job);
		group->run = process->run;
		if (group->process_count++ == 0)
			group->owner = process->owner;
		group->is_earlier_run = process->is_earlier_run;
		if (group->process_count == 1 || process->started_wall_ns < group->started_wall_ns)
			group->started_wall_ns = process->started_wall_ns;
		if (process->world_size > group->world_size)
			group->world_size = process->world_size;
		hang_after_ns = recording_hang_after_ns(process);
		if (hang_after_ns > group->hang_after_ns)
			group->hang_after_ns = hang_after_ns;
		group_of[p] = (uint32_t)g;
	}
	name_runs(job);
	return OK;
}

uint64_t job_hang_after_ns(const struct job *job, const char *name)
{
	uint64_t most_ns = 0;

	for (size_t g = 0; g < job->group_count; g++)
		if (job->groups[g].hang_after_ns > most_ns &&
		    strcmp(job->groups[g].name, name) == 0)
			most_ns = job->groups[g].hang_after_ns;
	return most_ns;
}

/* ---- names ----------------------------------------------------------------------------------- */

static uint8_t intern(struct job *job, const char *text)
{
	for (uint32_t i = 0; i < job->name_count; i++)
		if (strcmp(job->names[i], text) == 0)
			return (uint8_t)(OP_NAME_INTERNED + i);
	if (job->name_count == JOB_NAMES_MAX)
		return JOB_NAME_OTHER;
	text_copy(job->names[job->name_count], sizeof(job->names[0]), text);
	return (uint8_t)(OP_NAME_INTERNED + job->name_count++);
}

static enum status make_names(struct job *job)
{
	const struct recording *recording = job->recording;

	job->names = calloc(JOB_NAMES_MAX, sizeof(*job->names));
	job->name_map = calloc(recording->count + 1, sizeof(*job->name_map));
	if (job->names == NULL || job->name_map == NULL)
		return ERR_NO_SPACE;
	for (size_t p = 0; p < recording->count; p++)
		for (size_t i = 0; i < OP_NAMES_INTERNED_MAX; i++) {
			const char *text = recording->processes[p]->names[i];

			job->name_map[p][i] = text[0] ? intern(job, text) : JOB_NAME_OTHER;
		}
	return OK;
}

uint8_t job_name_number(const struct job *job, size_t process, uint8_t number)
{
	if (number < OP_NAME_INTERNED)
		return number;
	if (number >= OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX)
		return JOB_NAME_OTHER;
	return job->name_map[process][number - OP_NAME_INTERNED];
}

const char *job_name(const struct job *job, enum op_name_table table, uint8_t number)
{
	const char *name = NULL;

	if (number < OP_NAME_INTERNED)
		name = op_name(table, number);
	else if ((uint32_t)(number - OP_NAME_INTERNED) < job->name_count)
		name = job->names[number - OP_NAME_INTERNED];
	return name ? name : "?";
}

/* ---------------------------------------------------------------------------------------------- */

const struct job_seat *job_seat(const struct job *job, size_t process, uint32_t comm_id)
{
	uint32_t from = job->first_seat[process], to = job->first_seat[process + 1];

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (job->seats[middle].comm_id == comm_id)
			return &job->seats[middle];
		if (job->seats[middle].comm_id < comm_id)
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

void job_say_rank(char *text, size_t size, const struct job *job, uint32_t seat)
{
	const struct job_rank *rank = &job->ranks[job->seats[seat].rank];

	text_append(text, size,
		    rank->rank < 0 && !rank->is_unplaced ? "process %.48s" : "rank %.48s",
		    rank->label);
}

void job_say_operation(char *text, size_t size, const struct job *job, uint32_t seat,
		       const struct op_record *op)
{
	const struct recording_process *process =
		job->recording->processes[job->seats[seat].process];

	text_append(text, size, "%.24s #%" PRIu64,
		    recording_name(process, OP_NAMES_FUNCTION, op->function),
		    op->match != 0 ? op_shown_number(op->match) : op->number);
	if (op->flags & OP_FLAG_REPLAY)
		text_append(text, size, " (graph replay)");
}

bool job_comm_is_over_network(enum job_comm_kind kind)
{
	return kind == JOB_COMM_NET || kind == JOB_COMM_MIXED;
}

uint32_t job_member(const struct job *job, const struct job_comm *comm, int32_t comm_rank)
{
	size_t at = SEARCH_FIRST(i, comm->seat_count,
				 job->seats[comm->seats[i]].comm_rank >= comm_rank);

	if (comm_rank < 0 || at == comm->seat_count ||
	    job->seats[comm->seats[at]].comm_rank != comm_rank)
		return UINT32_MAX;
	return comm->seats[at];
}

uint32_t job_place_in(const struct job *job, uint32_t comm, uint32_t rank)
{
	for (uint32_t i = 0; i < job->comms[comm].seat_count; i++)
		if (job->seats[job->comms[comm].seats[i]].rank == rank)
			return i;
	return UINT32_MAX;
}

bool job_is_member(const struct job *job, uint32_t comm, uint32_t rank)
{
	return job_place_in(job, comm, rank) != UINT32_MAX;
}

uint32_t job_members_on(const struct job *job, uint32_t comm, uint32_t host)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < job->comms[comm].seat_count; i++)
		count += job->ranks[job->seats[job->comms[comm].seats[i]].rank].host == host;
	return count;
}

bool job_is_on_one_host(const struct job *job, uint32_t comm)
{
	const struct job_comm *of = &job->comms[comm];

	return of->nranks > 0 && of->seat_count > 0 &&
	       job_members_on(job, comm, job->ranks[job->seats[of->seats[0]].rank].host) ==
		       (uint32_t)of->nranks;
}

enum status job_make(struct job *job, const struct recording *recording)
{
	uint32_t *group_of = calloc(recording->count + 1, sizeof(*group_of));
	enum status status = group_of ? OK : ERR_NO_SPACE;

	*job = (struct job){ .recording = recording };
	if (status == OK)
		status = make_seats(job);
	if (status == OK)
		status = make_groups(job, group_of);
	if (status == OK)
		status = job_make_ranks(job, group_of);
	if (status == OK)
		status = job_make_comms(job, group_of);
	if (status == OK)
		status = make_names(job);
	if (status == OK)
		job_align_flights(job);
	free(group_of);
	if (status != OK)
		job_release(job);
	return status;
}

void job_release(struct job *job)
{
	for (size_t i = 0; job->comms != NULL && i < job->comm_count; i++)
		free(job->comms[i].seats);
	free(job->groups);
	free(job->hosts);
	free(job->ranks);
	free(job->comms);
	free(job->seats);
	free(job->first_seat);
	free(job->process_rank);
	free(job->names);
	free(job->name_map);
	*job = (struct job){ .recording = NULL };
}
