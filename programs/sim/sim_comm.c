#include "programs/sim/sim_comm.h"

#include <stdlib.h>

#include "common/hash.h"
#include "common/text.h"

enum { NVLINK_CHANNELS = 8, LONE_CHANNELS = 2 };

static int channels_of(const struct sim_comm *comm, int channels)
{
	if (comm->nnodes == 1)
		return NVLINK_CHANNELS;
	if (channels != 0)
		return channels;
	if (comm->locals == 1)
		return LONE_CHANNELS;
	if (comm->locals >= NVLINK_CHANNELS)
		return comm->locals;
	return comm->locals * (NVLINK_CHANNELS / comm->locals);
}

static void find_nodes(struct sim_comm *comm, int gpus)
{
	comm->nnodes = 0;
	comm->locals = 0;
	for (int i = 0; i < comm->nranks; i++) {
		if (i == 0 || comm->ranks[i] / gpus != comm->ranks[i - 1] / gpus)
			comm->node_first[comm->nnodes++] = i;
		comm->nodes[i] = comm->nnodes - 1;
		if (i + 1 - comm->node_first[comm->nnodes - 1] > comm->locals)
			comm->locals = i + 1 - comm->node_first[comm->nnodes - 1];
	}
	comm->node_first[comm->nnodes] = comm->nranks;
}

static void lay_rings(struct sim_comm *comm)
{
	for (int channel = 0; channel < comm->channels; channel++) {
		int *ring = comm->ring + (size_t)channel * (size_t)comm->nranks;
		int *position = comm->position + (size_t)channel * (size_t)comm->nranks;

		for (int i = 0; i < comm->nranks; i++) {
			int first = comm->node_first[comm->nodes[i]];
			int local = comm->node_first[comm->nodes[i] + 1] - first;

			ring[i] = first + (i - first + channel) % local;
			position[ring[i]] = i;
		}
	}
}

enum status sim_comm_init(struct sim_comm *comm, enum sim_role role, int index,
			  uint64_t parent_hash, const int *ranks, int count, int gpus, int channels)
{
	struct sim_comm made = { .role = role, .nranks = count };
	size_t n = (size_t)count;

	if (role == SIM_WORLD)
		text_copy(made.name, sizeof(made.name), "world");
	else
		text_format(made.name, sizeof(made.name), "%s-%d", sim_role_name(role), index);
	made.hash = hash_word(hash_word(parent_hash, (uint64_t)role), (uint64_t)index);
	made.ranks = malloc(n * sizeof(int));
	made.nodes = malloc(n * sizeof(int));
	made.node_first = malloc((n + 1) * sizeof(int));
	made.ring = malloc(SIM_CHANNELS_MAX * n * sizeof(int));
	made.position = malloc(SIM_CHANNELS_MAX * n * sizeof(int));
	if (!made.ranks || !made.nodes || !made.node_first || !made.ring || !made.position) {
		sim_comm_release(&made);
		return ERR_NO_SPACE;
	}
	for (int i = 0; i < count; i++)
		made.ranks[i] = ranks[i];
	find_nodes(&made, gpus);
	made.channels = channels_of(&made, channels);
	lay_rings(&made);
	*comm = made;
	return OK;
}

void sim_comm_release(struct sim_comm *comm)
{
	free(comm->ranks);
	free(comm->nodes);
	free(comm->node_first);
	free(comm->ring);
	free(comm->position);
	*comm = (struct sim_comm){ 0 };
}

int sim_comm_next(const struct sim_comm *comm, int channel, int rank)
{
	size_t row = (size_t)channel * (size_t)comm->nranks;

	return comm->ring[row + (size_t)((comm->position[row + (size_t)rank] + 1) % comm->nranks)];
}

int sim_comm_previous(const struct sim_comm *comm, int channel, int rank)
{
	size_t row = (size_t)channel * (size_t)comm->nranks;
	int before = comm->position[row + (size_t)rank] + comm->nranks - 1;

	return comm->ring[row + (size_t)(before % comm->nranks)];
}

int sim_comm_link(const struct sim_comm *comm, int rank, int n)
{
	for (int channel = 0; channel < comm->channels; channel++)
		if ((comm->nnodes == 1 ||
		     sim_comm_is_network(comm, rank, sim_comm_next(comm, channel, rank))) &&
		    --n == 0)
			return channel;
	return -1;
}

int sim_comm_leader(const struct sim_comm *comm, int channel, int node)
{
	int first = comm->node_first[node];

	return first + channel % (comm->node_first[node + 1] - first);
}

int sim_comm_tree(const struct sim_comm *comm, int channel, int rank, int peers[SIM_TREE_EDGES])
{
	int node = comm->nodes[rank];
	int count = 0;

	if (sim_comm_leader(comm, channel, node) != rank)
		return 0;
	if (node > 0)
		peers[count++] = sim_comm_leader(comm, channel, (node - 1) / 2);
	for (int child = 2 * node + 1; child <= 2 * node + 2; child++)
		if (child < comm->nnodes)
			peers[count++] = sim_comm_leader(comm, channel, child);
	return count;
}
