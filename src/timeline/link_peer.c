/*
 * A link's time on the wire is held against what it would be at the pace of the middle link of the communicator,
 * per byte or per transfer, whichever lets it take longer: small messages have few bytes, and a slow start
 * each. What is above that is too much; the peer with most of it is named. All is weighed by bytes, so that
 * many tiny transfers (trees, barriers) decide nothing.
 */
#include "timeline/link_peer.h"

#include <stdlib.h>

enum { SEND_NET = 2 };
static const double part_that_matters = 0.05;	 /* of the bytes to the peer with most */
static const double slowdown_that_matters = 1.1; /* below, nobody stands out */
static const double share_that_matters = 0.6;
static const double slowdown_certain = 1.5, share_certain = 0.8;

struct pace {
	double ns; /* of a byte, or of a transfer */
	double bytes;
};

/* Links that are compared, one each. */
struct gather {
	struct pace *per_byte;
	struct pace *per_step;
	size_t count;
	size_t room;
};

static bool is_send_of(const struct region_link *link, uint32_t comm_id)
{
	return link->key >> 34 == comm_id && !(link->key >> 32 & 1) && link->bytes > 0 &&
	       link->steps > 0;
}

static int32_t peer_of(const struct region_link *link)
{
	return (int32_t)((uint32_t)link->key - 1);
}

/* Fewer bytes than these decide nothing; 0: it sent nothing. */
static double least_bytes(const struct recording_process *process, uint32_t comm_id)
{
	uint64_t most = 0;

	for (size_t i = 0; i < process->link_count; i++)
		if (is_send_of(&process->links[i], comm_id) && process->links[i].bytes > most)
			most = process->links[i].bytes;
	return part_that_matters * (double)most;
}

static bool grow(struct gather *gather)
{
	size_t room = gather->room ? gather->room * 2 : 64;
	struct pace *more;

	if (gather->count < gather->room)
		return true;
	more = realloc(gather->per_byte, room * sizeof(*more));
	if (more == NULL)
		return false;
	gather->per_byte = more;
	more = realloc(gather->per_step, room * sizeof(*more));
	if (more == NULL)
		return false;
	gather->per_step = more;
	gather->room = room;
	return true;
}

static bool gather_links(struct gather *gather, const struct recording_process *process,
			 uint32_t comm_id)
{
	double least = least_bytes(process, comm_id);

	for (size_t i = 0; i < process->link_count; i++) {
		const struct region_link *link = &process->links[i];

		if (!is_send_of(link, comm_id) || (double)link->bytes < least)
			continue;
		if (!grow(gather))
			return false;
		gather->per_byte[gather->count] =
			(struct pace){ (double)link->wait_ns[SEND_NET] / (double)link->bytes,
				       (double)link->bytes };
		gather->per_step[gather->count++] =
			(struct pace){ (double)link->wait_ns[SEND_NET] / (double)link->steps,
				       (double)link->bytes };
	}
	return true;
}

/* What the middle link takes: half of all bytes went over links that are not slower. */
struct middle {
	double per_byte;
	double per_step;
};

static int by_ns(const void *one, const void *other)
{
	const struct pace *a = one, *b = other;

	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

static double middle_of(struct pace *paces, size_t count)
{
	double all = 0, so_far = 0;
	size_t i = 0;

	for (size_t k = 0; k < count; k++)
		all += paces[k].bytes;
	qsort(paces, count, sizeof(*paces), by_ns);
	while (i + 1 < count && so_far + paces[i].bytes < all / 2)
		so_far += paces[i++].bytes;
	return paces[i].ns;
}

static enum status find_middle(struct middle *middle, const struct job *job, uint32_t comm)
{
	struct gather gather = { .count = 0 };
	enum status status = OK;

	for (uint32_t i = 0; i < job->comms[comm].seat_count && status == OK; i++) {
		const struct job_seat *seat = &job->seats[job->comms[comm].seats[i]];

		if (!gather_links(&gather, job->recording->processes[seat->process], seat->comm_id))
			status = ERR_NO_SPACE;
	}
	*middle = (struct middle){ 0 };
	if (status == OK && gather.count > 1) {
		middle->per_byte = middle_of(gather.per_byte, gather.count);
		middle->per_step = middle_of(gather.per_step, gather.count);
	}
	free(gather.per_byte);
	free(gather.per_step);
	return status;
}

static double expected_ns(const struct region_link *link, const struct middle *middle)
{
	double by_bytes = middle->per_byte * (double)link->bytes;
	double by_steps = middle->per_step * (double)link->steps;

	return by_bytes > by_steps ? by_bytes : by_steps;
}

static void take(struct link_peer *found, const struct region_link *link,
		 const struct middle *middle)
{
	const double mib = 1 << 20;
	double expected = expected_ns(link, middle);

	found->peer = peer_of(link);
	found->slowdown = expected > 0 ? (double)link->wait_ns[SEND_NET] / expected : 0;
	found->transfers = link->steps;
	found->bytes = link->bytes;
	found->ns_per_mib = (double)link->wait_ns[SEND_NET] / (double)link->bytes * mib;
	found->middle_ns_per_mib = middle->per_byte * mib;
}

/* Of several: how sure it is that it is this one. */
static double confidence_of(const struct link_peer *found)
{
	if (found->slowdown < slowdown_that_matters || found->share < share_that_matters)
		return 0;
	if (found->slowdown >= slowdown_certain && found->share >= share_certain)
		return 0.95;
	return 0.7;
}

static void compare(struct link_peer *found, const struct recording_process *process,
		    uint32_t comm_id, const struct middle *middle)
{
	double least = least_bytes(process, comm_id), most = 0, sum = 0;

	for (size_t i = 0; i < process->link_count; i++) {
		const struct region_link *link = &process->links[i];
		double too_much;

		if (!is_send_of(link, comm_id))
			continue;
		found->peers++;
		if ((double)link->bytes < least)
			continue;
		found->peers_weighed++;
		too_much = (double)link->wait_ns[SEND_NET] - expected_ns(link, middle);
		if (too_much > 0)
			sum += too_much;
		if (found->peers_weighed > 1 && too_much <= most)
			continue;
		most = too_much;
		take(found, link, middle);
	}
	found->share = sum > 0 && most > 0 ? most / sum : 0;
}

enum status link_peer_find(struct link_peer *found, const struct job *job, uint32_t seat)
{
	const struct job_seat *of = &job->seats[seat];
	const struct recording_process *process = job->recording->processes[of->process];
	struct middle middle;
	enum status status;

	*found = (struct link_peer){ .peer = -1 };
	if (least_bytes(process, of->comm_id) <= 0)
		return OK;
	status = find_middle(&middle, job, of->comm);
	if (status != OK)
		return status;
	compare(found, process, of->comm_id, &middle);
	if (found->peers_weighed == 1)
		found->confidence = found->peers == 1 ? 1 : 0.98;
	else
		found->confidence = confidence_of(found);
	if (found->confidence <= 0)
		found->peer = -1;
	return OK;
}

uint32_t link_peer_rank(const struct job *job, uint32_t comm, int32_t comm_rank)
{
	const struct job_comm *of = &job->comms[comm];

	for (uint32_t i = 0; i < of->seat_count; i++)
		if (job->seats[of->seats[i]].comm_rank == comm_rank)
			return job->seats[of->seats[i]].rank;
	return UINT32_MAX;
}
