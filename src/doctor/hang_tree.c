/*
 * A GPU that gives nothing, in an AllReduce by tree. What a host sends up a tree waits for what comes from
 * the hosts below, and what it sends down for what comes from above. So of a host's connections that wait
 * for its own GPU, one that waits for nothing from anywhere else than its own other end shows one of two:
 *
 *	the host that gives nothing      its parent waits for it, and so on up to the top
 *	the host at the top              it waits for the child over which nothing comes
 *
 * The first is so in all channels. The top is the host of rank 0 in half of NCCL's trees, another one in the
 * others; were it the cause itself, it would wait for nobody, and hang_transfer.c would have told so.
 */
#include <stdlib.h>

#include "doctor/hang_chain.h"

enum { WORDS = 4, CHANNELS = 64 * WORDS };

/* On one host, by channel: whom its members wait for but their own GPUs. */
enum { NO_PEER = 0, SEVERAL_PEERS = -1 }; /* else the peer's rank and 1 */

struct tree_host {
	int32_t waits_for[CHANNELS];
	uint64_t gives_nothing[WORDS];
	uint32_t seat; /* one that waits for its own GPU */
	bool has_first_rank;
};

static bool is_own(enum flight_reason reason)
{
	return reason == FLIGHT_SEND_GPU || reason == FLIGHT_RECV_GPU ||
	       reason == FLIGHT_RECV_FLUSH;
}

static bool has_channel(const struct flight_wait *wait, int channel)
{
	return wait->channels[channel / 64] >> (channel % 64) & 1;
}

static void note_others(struct tree_host *host, const struct flight_wait *wait)
{
	for (int c = 0; c < CHANNELS && !is_own(wait->reason); c++)
		if (has_channel(wait, c))
			host->waits_for[c] = host->waits_for[c] == NO_PEER ||
							     host->waits_for[c] == wait->peer + 1
						     ? wait->peer + 1
						     : SEVERAL_PEERS;
}

static void note_own(struct tree_host *host, const struct flight_wait *wait, uint32_t seat)
{
	for (int c = 0; c < CHANNELS && wait->reason == FLIGHT_SEND_GPU; c++)
		if (has_channel(wait, c) && host->waits_for[c] == wait->peer + 1) {
			host->gives_nothing[c / 64] |= UINT64_C(1) << (c % 64);
			host->seat = seat;
		}
}

/* All members in it, first what comes from elsewhere. */
static void survey(const struct hang_scene *scene, uint32_t c, struct tree_host *hosts)
{
	const struct job_comm *comm = &scene->job->comms[c];

	for (int is_second = 0; is_second < 2; is_second++)
		for (uint32_t i = 0; i < comm->seat_count; i++) {
			uint32_t s = comm->seats[i];
			const struct hang_seat *seat = &scene->seats[s];
			struct tree_host *host = &hosts[hang_rank(scene, s)->host];

			host->has_first_rank |= scene->job->seats[s].comm_rank == 0;
			for (size_t w = 0; w < seat->wait_count && !is_second; w++)
				note_others(host, &seat->waits[w]);
			for (size_t w = 0; w < seat->wait_count && is_second; w++)
				note_own(host, &seat->waits[w], s);
		}
}

/* The only host of which that is so in all channels in which it is so of any. */
static const struct tree_host *only_one(const struct tree_host *hosts, size_t count)
{
	const struct tree_host *found = NULL;
	uint64_t all[WORDS] = { 0, 0, 0, 0 };
	size_t candidates = 0;

	for (size_t h = 0; h < count; h++)
		for (int w = 0; w < WORDS; w++)
			all[w] |= hosts[h].gives_nothing[w];
	if ((all[0] | all[1] | all[2] | all[3]) == 0)
		return NULL;
	for (size_t h = 0; h < count; h++) {
		bool is_all = !hosts[h].has_first_rank;

		for (int w = 0; w < WORDS; w++)
			is_all &= hosts[h].gives_nothing[w] == all[w];
		if (!is_all)
			continue;
		candidates++;
		found = &hosts[h];
	}
	return candidates == 1 ? found : NULL;
}

bool hang_tree(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	uint32_t first = scene->meetings[c].first;
	const struct tree_host *host;
	struct tree_host *hosts;
	struct hang_end *end;

	if (first == HANG_NOBODY || scene->seats[first].front->op.algorithm != OP_TREE ||
	    scene->job->comms[c].missing > 0)
		return false;
	hosts = calloc(scene->job->host_count + 1, sizeof(*hosts));
	if (hosts == NULL) {
		graph->status = ERR_NO_SPACE;
		return false;
	}
	survey(scene, c, hosts);
	host = only_one(hosts, scene->job->host_count);
	if (host != NULL) {
		end = hang_end_add(graph, VERDICT_GPU_STUCK, c, c, host->seat);
		end->note = HANG_NOTE_TREE;
		end->witness = host->seat;
		end->flight = scene->seats[host->seat].front;
		for (int w = 0; w < WORDS; w++)
			end->channels[w] = host->gives_nothing[w];
		end->confidence = 0.5;
	}
	free(hosts);
	return host != NULL;
}
