#include "doctor/setup_machines.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void mark(uint64_t bits[4], int32_t number)
{
	if (number >= 0 && number < 256)
		bits[number / 64] |= UINT64_C(1) << number % 64;
}

int setup_machines_marked(const uint64_t bits[4])
{
	return __builtin_popcountll(bits[0]) + __builtin_popcountll(bits[1]) +
	       __builtin_popcountll(bits[2]) + __builtin_popcountll(bits[3]);
}

static struct setup_machine *node_named(struct setup_machines *network, const char *host,
					uint32_t process)
{
	for (size_t i = network->count; i-- > 0;)
		if (network->nodes[i].host == host) /* texts are kept once */
			return &network->nodes[i];
	network->nodes[network->count] = (struct setup_machine){ .host = host, .process = process };
	return &network->nodes[network->count++];
}

static enum status make_nodes(const struct setup *setup, struct setup_machines *network)
{
	const struct nccl_log *log = setup->log;

	network->nodes = calloc(log->process_count + 1, sizeof(*network->nodes));
	network->node_of = calloc(log->process_count + 1, sizeof(*network->node_of));
	if (network->nodes == NULL || network->node_of == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < log->process_count; i++)
		network->node_of[i] =
			(uint32_t)(node_named(network, log->processes[i].host, (uint32_t)i) -
				   network->nodes);
	return OK;
}

static void read_link(struct setup_machines *network, const struct nccl_log_link *link)
{
	struct setup_machine *node = &network->nodes[network->node_of[link->process]];

	if (link->transport <= NCCL_LOG_P2P_OTHER)
		node->p2p_link = link;
	if (link->transport != NCCL_LOG_NET)
		return;
	if (strcmp(link->network, "Socket") == 0) {
		node->socket_link = node->socket_link != NULL ? node->socket_link : link;
		node->socket_links++;
		return;
	}
	if (strcmp(link->network, "IB") == 0) {
		node->ib_link = node->ib_link != NULL ? node->ib_link : link;
		mark(node->used, link->device);
	}
	if (link->flags & NCCL_LOG_LINK_GDR) {
		node->gdr_link = link;
		node->gdr_links++;
	} else {
		node->plain_link = node->plain_link != NULL ? node->plain_link : link;
		node->plain_links++;
	}
}

/* Device numbers of links are indices into the list of interfaces. */
static void read_interface(struct setup_machines *network, const struct nccl_log_net *net)
{
	struct setup_machine *node = &network->nodes[network->node_of[net->process]];

	if (node->socket_link != NULL && node->socket_link->process == net->process &&
	    node->socket_link->device == net->index && strcmp(net->network, "Socket") == 0)
		node->interface = net;
}

/* Sockets were asked for. */
static void read_wishes(const struct setup *setup, struct setup_machines *network, const char *name)
{
	size_t count, first = setup_find_variable(setup, name, &count);

	for (size_t i = first; i < first + count; i++) {
		int64_t process = setup->whos[setup->variables[i].who].logged;
		const char *value = setup->variables[i].value;

		if (process >= 0 && (setup_is_true(value) || strcasecmp(value, "Socket") == 0))
			network->nodes[network->node_of[process]].is_ib_off = true;
	}
}

static void read_nodes(const struct setup *setup, struct setup_machines *network)
{
	const struct nccl_log *log = setup->log;

	for (size_t i = 0; i < log->net_count; i++) {
		struct setup_machine *node =
			&network->nodes[network->node_of[log->nets[i].process]];

		/* Those of the list of devices: lines about GPUDirect name some again. */
		if (strcmp(log->nets[i].network, "IB") != 0 || log->nets[i].port < 0)
			continue;
		mark(node->found, log->nets[i].index);
		node->device = node->device != NULL ? node->device : &log->nets[i];
	}
	for (size_t i = 0; i < log->link_count; i++)
		read_link(network, &log->links[i]);
	for (size_t i = 0; i < log->comm_count; i++)
		mark(network->nodes[network->node_of[log->comms[i].process]].gpus,
		     log->comms[i].nvml_device);
	for (size_t i = 0; i < log->net_count; i++)
		read_interface(network, &log->nets[i]);
	read_wishes(setup, network, "NCCL_IB_DISABLE");
	read_wishes(setup, network, "NCCL_NET");
}

enum status setup_machines_read(struct setup_machines *network, const struct setup *setup)
{
	enum status status = make_nodes(setup, network);

	if (status == OK)
		read_nodes(setup, network);
	return status;
}

void setup_machines_release(struct setup_machines *network)
{
	free(network->nodes);
	free(network->node_of);
	*network = (struct setup_machines){ .count = 0 };
}

void setup_machines_cite_link(const struct setup *setup, struct verdict *verdict,
			      const struct nccl_log_link *link)
{
	setup_cite(setup, verdict, link->place, "%d -> %d [%s] via NET/%s/%d%s", link->from,
		   link->to, link->direction == 's' ? "send" : "receive", link->network,
		   link->device, link->flags & NCCL_LOG_LINK_GDR ? "/GDRDMA" : "");
}

void setup_machines_cite_device(const struct setup *setup, struct verdict *verdict,
				const struct nccl_log_net *net)
{
	if (net->port >= 0)
		setup_cite(setup, verdict, net->place, "NET/IB : Using [%d]%s:%d/%s", net->index,
			   net->name, net->port, net->link);
	else
		setup_cite(setup, verdict, net->place, "NET/%s : Using [%d]%s:%s", net->network,
			   net->index, net->name, net->address);
}
