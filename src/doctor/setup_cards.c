/* How much of the network between nodes is used: cards, GPUDirect RDMA, channels. */
#include <string.h>

#include "common/text.h"
#include "doctor/setup_machines.h"

static void cite_choice_of_cards(const struct setup *setup, struct verdict *verdict)
{
	const struct setup_variable *variable = setup_any(setup, "NCCL_IB_HCA");

	if (variable == NULL)
		return;
	setup_cite_variable(setup, verdict, variable);
	verdict_advice(verdict, "Unset NCCL_IB_HCA, or name all cards that belong to the GPUs");
}

static bool leaves_cards(const struct setup_machine *node)
{
	int found = setup_machines_marked(node->found), used = setup_machines_marked(node->used);

	return used > 0 && found > 1 && used < found && used < setup_machines_marked(node->gpus);
}

static bool has_few_cards(const struct setup_machine *node)
{
	int found = setup_machines_marked(node->found), gpus = setup_machines_marked(node->gpus);

	return node->ib_link != NULL && found > 0 && gpus >= 4 && found * 2 < gpus;
}

/* The first node that is so, and how many are. */
static const struct setup_machine *first_node(const struct setup_machines *network,
					      bool (*is_so)(const struct setup_machine *),
					      size_t *count)
{
	const struct setup_machine *first = NULL;

	*count = 0;
	for (size_t i = 0; i < network->count; i++)
		if (is_so(&network->nodes[i])) {
			first = first != NULL ? first : &network->nodes[i];
			++*count;
		}
	return first;
}

static void name_nodes(struct verdict *verdict, const struct setup_machine *node, size_t count)
{
	if (count == 1)
		text_copy(verdict->host, sizeof(verdict->host), node->host);
	else
		verdict_evidence(verdict, "and so on %zu more nodes", count - 1);
}

static void find_unused_cards(const struct setup *setup, const struct setup_machines *network)
{
	size_t count;
	const struct setup_machine *node = first_node(network, leaves_cards, &count);
	struct verdict *verdict;
	int used;

	if (node == NULL)
		return;
	used = setup_machines_marked(node->used);
	verdict = setup_verdict(setup, "hcas-unused", VERDICT_WARNING);
	verdict_title(verdict, "%d of %d network cards %s used on %s, which has %d GPUs", used,
		      setup_machines_marked(node->found), used == 1 ? "is" : "are", node->host,
		      setup_machines_marked(node->gpus));
	setup_machines_cite_device(setup, verdict, node->device);
	setup_machines_cite_link(setup, verdict, node->ib_link);
	verdict_advice(verdict,
		       "Compare with `nvidia-smi topo -m`: each GPU should have a card near "
		       "to it");
	verdict_advice(verdict,
		       "In a virtual machine give NCCL_TOPO_FILE; else NCCL thinks that all "
		       "are equally far");
	cite_choice_of_cards(setup, verdict);
	name_nodes(verdict, node, count);
}

static void find_few_cards(const struct setup *setup, const struct setup_machines *network)
{
	size_t count;
	const struct setup_machine *node = first_node(network, has_few_cards, &count);
	struct verdict *verdict;
	int found;

	if (node == NULL)
		return;
	found = setup_machines_marked(node->found);
	verdict = setup_verdict(setup, "few-hcas", VERDICT_WARNING);
	verdict_title(verdict, "%d GPUs of %s share %d network %s",
		      setup_machines_marked(node->gpus), node->host, found,
		      found == 1 ? "card" : "cards");
	setup_machines_cite_device(setup, verdict, node->device);
	verdict_advice(verdict,
		       "Nothing to do where the machine has no more; else see why NCCL found "
		       "no others");
	verdict_advice(verdict, "$ ibv_devinfo | grep -E 'hca_id|state|link_layer'");
	cite_choice_of_cards(setup, verdict);
	name_nodes(verdict, node, count);
}

/* ---- GPUDirect RDMA ---------------------------------------------------------------------------- */

static void find_gdr_lines(const struct setup *setup, struct verdict *verdict, uint32_t process)
{
	const struct nccl_log *log = setup->log;

	for (size_t i = 0; i < log->net_count; i++)
		if (log->nets[i].process == process && log->nets[i].gdr == 0) {
			setup_cite(setup, verdict, log->nets[i].gdr_place,
				   "NET/%s : GPU Direct RDMA Disabled for HCA %d '%s'",
				   log->nets[i].network, log->nets[i].index, log->nets[i].name);
			break;
		}
	for (size_t i = 0; i < log->gdr_count; i++)
		if (log->gdrs[i].process == process && !log->gdrs[i].is_on) {
			setup_cite(setup, verdict, log->gdrs[i].place, "%s", log->gdrs[i].text);
			break;
		}
}

static void find_gdr(const struct setup *setup, const struct setup_machines *network)
{
	const struct setup_machine *worst = NULL;
	struct verdict *verdict;
	size_t nodes = 0;

	for (size_t i = 0; i < network->count; i++)
		if (network->nodes[i].plain_links > 0 && network->nodes[i].gdr_links == 0) {
			worst = worst != NULL ? worst : &network->nodes[i];
			nodes++;
		}
	if (worst == NULL)
		return;
	verdict = setup_verdict(setup, "gdr-off", VERDICT_WARNING);
	if (nodes == 1)
		verdict_title(verdict, "GPUDirect RDMA is not used on %s", worst->host);
	else
		verdict_title(verdict, "GPUDirect RDMA is not used on %zu nodes", nodes);
	setup_machines_cite_link(setup, verdict, worst->plain_link);
	find_gdr_lines(setup, verdict, worst->plain_link->process);
	if (setup_any(setup, "NCCL_NET_GDR_LEVEL") != NULL)
		setup_cite_variable(setup, verdict, setup_any(setup, "NCCL_NET_GDR_LEVEL"));
	verdict_advice(verdict, "$ lsmod | grep -E 'nvidia_peermem|nv_peer_mem'");
	verdict_advice(verdict,
		       "Load nvidia-peermem, or use a kernel and driver with DMA-BUF; turn "
		       "PCI ACS off on bare metal; unset NCCL_NET_GDR_LEVEL");
	if (nodes == 1)
		text_copy(verdict->host, sizeof(verdict->host), worst->host);
}

/* ---- channels -------------------------------------------------------------------------------- */

enum { CHANNELS_FEW = 2, GPUS_MANY = 8 };

/* How many of a communicator's ranks are on this node; old releases do not say it. */
static int32_t local_ranks(const struct setup_machines *network, const struct nccl_log_comm *comm)
{
	const struct setup_machine *node = &network->nodes[network->node_of[comm->process]];
	int32_t gpus = setup_machines_marked(node->gpus);

	if (comm->local_ranks >= 0)
		return comm->local_ranks;
	return comm->nranks == gpus * (int32_t)network->count ? gpus : -1;
}

/* Within a node many GPUs that talk directly, between nodes many cards, can feed more than these. */
static bool has_few_channels(const struct setup_machines *network, const struct nccl_log_comm *comm)
{
	const struct setup_machine *node = &network->nodes[network->node_of[comm->process]];
	int32_t local = local_ranks(network, comm);

	if (comm->channels.line == 0 || comm->coll_channels < 1 ||
	    comm->coll_channels > CHANNELS_FEW || local < GPUS_MANY)
		return false;
	return local == comm->nranks
		       ? node->p2p_link != NULL
		       : node->ib_link != NULL && setup_machines_marked(node->found) >= GPUS_MANY;
}

static bool were_channels_limited(const struct setup *setup)
{
	return setup_any(setup, "NCCL_MAX_NCHANNELS") != NULL ||
	       setup_any(setup, "NCCL_MAX_CTAS") != NULL;
}

static void find_few_channels(const struct setup *setup, const struct setup_machines *network)
{
	const struct nccl_log_comm *first = NULL;
	struct setup_group group = { .count = 0 };
	struct verdict *verdict;
	const struct setup_machine *node;
	char where[400];

	for (size_t i = 0; i < setup->log->comm_count; i++)
		if (has_few_channels(network, &setup->log->comms[i])) {
			first = first != NULL ? first : &setup->log->comms[i];
			setup_group_add(setup, &group,
					setup_who_of_process(setup, setup->log->comms[i].process));
		}
	/* A variable that is the reason is told as that. */
	if (first == NULL || were_channels_limited(setup))
		return;
	node = &network->nodes[network->node_of[first->process]];
	/* GPUs that talk directly over PCI, and not over NVLink, do not need more. */
	verdict = setup_verdict(setup, "few-channels",
				local_ranks(network, first) < first->nranks ||
						first->nvls_channels > 0
					? VERDICT_WARNING
					: VERDICT_NOTE);
	verdict_title(verdict, "NCCL uses %d %s for a communicator of %d ranks %s",
		      first->coll_channels, first->coll_channels == 1 ? "channel" : "channels",
		      first->nranks, setup_group_text(setup, &group, where, sizeof(where)));
	setup_cite(setup, verdict, first->channels, "%d coll channels, %d p2p channels",
		   first->coll_channels, first->p2p_channels);
	if (local_ranks(network, first) < first->nranks)
		setup_machines_cite_link(setup, verdict, node->ib_link);
	else
		setup_cite(setup, verdict, node->p2p_link->place, "%d -> %d via P2P/%s",
			   node->p2p_link->from, node->p2p_link->to, node->p2p_link->detail);
	verdict_advice(verdict, "$ nvidia-smi topo -m; nvidia-smi nvlink -s");
	verdict_advice(verdict,
		       "Where GPUs have NVLink or a card each: see whether links are down, "
		       "and whether the machine's topology can be read");
	setup_blame(setup, verdict, &group);
}

void setup_find_cards(const struct setup *setup, const struct setup_machines *network)
{
	find_unused_cards(setup, network);
	find_few_cards(setup, network);
	find_gdr(setup, network);
	find_few_channels(setup, network);
}
