/* The network between nodes, and what GPUs of one node use to communicate. */
#include "doctor/setup_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/text.h"

/* What the processes of a host detected of the network and what they use of it, from NCCL's logs. */
struct setup_machine {
	const char *host;
	uint32_t process;  /* the first */
	uint64_t found[4]; /* InfiniBand devices by index */
	uint64_t used[4];
	uint64_t gpus[4]; /* by NVML's number */
	const struct nccl_log_net *device;
	const struct nccl_log_net *interface; /* of socket_link */
	const struct nccl_log_link *ib_link, *socket_link, *gdr_link, *plain_link, *p2p_link;
	size_t socket_links, gdr_links, plain_links;
	bool is_ib_off; /* by the user */
};

struct setup_machines {
	struct setup_machine *nodes;
	size_t count;
	uint32_t *node_of; /* by process */
};

static void mark_bit(uint64_t bits[4], int32_t number)
{
	if (number >= 0 && number < 256)
		bits[number / 64] |= UINT64_C(1) << number % 64;
}

/* Number of bits set. */
static int setup_machines_marked(const uint64_t bits[4])
{
	return __builtin_popcountll(bits[0]) + __builtin_popcountll(bits[1]) +
	       __builtin_popcountll(bits[2]) + __builtin_popcountll(bits[3]);
}

static struct setup_machine *node_named(struct setup_machines *network, const char *host,
					uint32_t process)
{
	for (size_t i = network->count; i-- > 0;)
		if (network->nodes[i].host == host) /* strings are stored once */
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
		mark_bit(node->used, link->device);
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

/* Sockets were requested. */
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

		/* Only those of the list of devices: lines about GPUDirect repeat some. */
		if (strcmp(log->nets[i].network, "IB") != 0 || log->nets[i].port < 0)
			continue;
		mark_bit(node->found, log->nets[i].index);
		node->device = node->device != NULL ? node->device : &log->nets[i];
	}
	for (size_t i = 0; i < log->link_count; i++)
		read_link(network, &log->links[i]);
	for (size_t i = 0; i < log->comm_count; i++)
		mark_bit(network->nodes[network->node_of[log->comms[i].process]].gpus,
			 log->comms[i].nvml_device);
	for (size_t i = 0; i < log->net_count; i++)
		read_interface(network, &log->nets[i]);
	read_wishes(setup, network, "NCCL_IB_DISABLE");
	read_wishes(setup, network, "NCCL_NET");
}

/* ERR_NO_SPACE. Release it in any case. */
static enum status setup_machines_read(struct setup_machines *network, const struct setup *setup)
{
	enum status status = make_nodes(setup, network);

	if (status == OK)
		read_nodes(setup, network);
	return status;
}

static void setup_machines_release(struct setup_machines *network)
{
	free(network->nodes);
	free(network->node_of);
	*network = (struct setup_machines){ .count = 0 };
}

/* Evidence: the line of a link, or of a device. */
static void setup_machines_cite_link(const struct setup *setup, struct verdict *verdict,
				     const struct nccl_log_link *link)
{
	setup_cite(setup, verdict, link->place, "%d -> %d [%s] via NET/%s/%d%s", link->from,
		   link->to, link->direction == 's' ? "send" : "receive", link->network,
		   link->device, link->flags & NCCL_LOG_LINK_GDR ? "/GDRDMA" : "");
}

static void setup_machines_cite_device(const struct setup *setup, struct verdict *verdict,
				       const struct nccl_log_net *net)
{
	if (net->port >= 0)
		setup_cite(setup, verdict, net->place, "NET/IB : Using [%d]%s:%d/%s", net->index,
			   net->name, net->port, net->link);
	else
		setup_cite(setup, verdict, net->place, "NET/%s : Using [%d]%s:%s", net->network,
			   net->index, net->name, net->address);
}

/* How much of the network between nodes is used: cards, GPUDirect RDMA, channels. */

static void cite_choice_of_cards(const struct setup *setup, struct verdict *verdict)
{
	const struct setup_variable *variable = setup_any(setup, "NCCL_IB_HCA");

	if (variable == NULL)
		return;
	setup_cite_variable(setup, verdict, variable);
	verdict_advice(verdict, "Unset NCCL_IB_HCA, or list all cards that belong to the GPUs");
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

/* The first affected node, and how many there are. */
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
		verdict_evidence(verdict, "and on %zu more nodes", count - 1);
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
	verdict_title(verdict, "only %d of %d network cards %s used on %s, which has %d GPUs", used,
		      setup_machines_marked(node->found), used == 1 ? "is" : "are", node->host,
		      setup_machines_marked(node->gpus));
	setup_machines_cite_device(setup, verdict, node->device);
	setup_machines_cite_link(setup, verdict, node->ib_link);
	verdict_advice(
		verdict,
		"Compare with `nvidia-smi topo -m`: each GPU should have a card close to it");
	verdict_advice(
		verdict,
		"In a virtual machine set NCCL_TOPO_FILE; otherwise NCCL assumes equal distances");
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
	verdict_advice(verdict, "Nothing to do if the host has no more cards; otherwise find out "
				"why NCCL found no others");
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

static bool lacks_gdr(const struct setup_machine *node)
{
	return node->plain_links > 0 && node->gdr_links == 0;
}

static void find_gdr(const struct setup *setup, const struct setup_machines *network)
{
	size_t nodes;
	const struct setup_machine *worst = first_node(network, lacks_gdr, &nodes);
	struct verdict *verdict;

	if (worst == NULL)
		return;
	verdict = setup_verdict(setup, "gdr-off", VERDICT_WARNING);
	if (nodes == 1)
		verdict_title(verdict, "GPUDirect RDMA is not used on %s", worst->host);
	else
		verdict_title(verdict, "GPUDirect RDMA is not used on %zu nodes", nodes);
	setup_machines_cite_link(setup, verdict, worst->plain_link);
	find_gdr_lines(setup, verdict, worst->plain_link->process);
	setup_cite_any(setup, verdict, "NCCL_NET_GDR_LEVEL");
	verdict_advice(verdict, "$ lsmod | grep -E 'nvidia_peermem|nv_peer_mem'");
	verdict_advice(verdict, "Load nvidia-peermem, or use a kernel and driver with DMA-BUF; "
				"disable PCI ACS on bare metal; unset NCCL_NET_GDR_LEVEL");
	if (nodes == 1)
		text_copy(verdict->host, sizeof(verdict->host), worst->host);
}

/* ---- channels -------------------------------------------------------------------------------- */

enum { CHANNELS_FEW = 2, GPUS_MANY = 8 };

/* How many of a communicator's ranks are on this node; old releases do not log it. */
static int32_t local_ranks(const struct setup_machines *network, const struct nccl_log_comm *comm)
{
	const struct setup_machine *node = &network->nodes[network->node_of[comm->process]];
	int32_t gpus = setup_machines_marked(node->gpus);

	if (comm->local_ranks >= 0)
		return comm->local_ranks;
	return comm->nranks == gpus * (int32_t)network->count ? gpus : -1;
}

/* Many GPUs that communicate directly, or many cards between nodes, could use more than these. */
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
			setup_group_add_process(setup, &group, setup->log->comms[i].process);
		}
	/* If a variable is the cause, it is reported as such. */
	if (first == NULL || were_channels_limited(setup))
		return;
	node = &network->nodes[network->node_of[first->process]];
	/* GPUs that communicate directly over PCI, not NVLink, do not need more. */
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
	verdict_advice(verdict, "If the GPUs have NVLink or a card each: check for links that are "
				"down and that the host's topology is readable");
	setup_blame(setup, verdict, &group);
}

/* How much of the network is used: cards, GPUDirect RDMA, channels. */
static void setup_find_cards(const struct setup *setup, const struct setup_machines *network)
{
	find_unused_cards(setup, network);
	find_few_cards(setup, network);
	find_gdr(setup, network);
	find_few_channels(setup, network);
}

/* Between nodes: sockets or InfiniBand, and which interface. */

/* ---- sockets --------------------------------------------------------------------------------- */

/* A card that was detected here or on another node of the same job. */
static const struct nccl_log_net *any_device(const struct setup_machines *network)
{
	for (size_t i = 0; i < network->count; i++)
		if (network->nodes[i].device != NULL)
			return network->nodes[i].device;
	return NULL;
}

static const struct nccl_log_note *find_note(const struct setup *setup, uint32_t process,
					     const char *beginning)
{
	for (size_t i = 0; i < setup->log->note_count; i++)
		if (setup->log->notes[i].process == process &&
		    strncmp(setup->log->notes[i].text, beginning, strlen(beginning)) == 0)
			return &setup->log->notes[i];
	return NULL;
}

static void tell_fallback(const struct setup *setup, const struct setup_machine *node, size_t nodes,
			  const struct nccl_log_net *device)
{
	struct verdict *verdict = setup_verdict(setup, "net-socket-fallback", VERDICT_WARNING);
	const struct nccl_log_note *note;

	if (nodes == 1)
		verdict_title(verdict, "%s uses sockets although InfiniBand is present",
			      node->host);
	else
		verdict_title(verdict, "%zu nodes use sockets although InfiniBand is present",
			      nodes);
	setup_machines_cite_link(setup, verdict, node->socket_link);
	setup_machines_cite_device(setup, verdict, device);
	note = find_note(setup, node->process, "NET/IB : No device");
	if (note == NULL)
		note = find_note(setup, node->process, "Failed to open lib");
	if (note != NULL)
		setup_cite(setup, verdict, note->place, "%s", note->text);
	verdict_advice(verdict, "Check the network cards of that node, and that the container sees "
				"them and has libibverbs");
	verdict_advice(verdict, "$ ibv_devinfo | grep -E 'hca_id|state'");
	verdict_advice(verdict,
		       "Set NCCL_NET=IB so that NCCL fails with an error instead of falling back");
	if (nodes == 1)
		text_copy(verdict->host, sizeof(verdict->host), node->host);
}

static void tell_sockets(const struct setup *setup, const struct setup_machine *node)
{
	struct verdict *verdict = setup_verdict(setup, "net-socket", VERDICT_NOTE);
	const struct nccl_log_note *note = find_note(setup, node->process, "NET/IB : No device");

	verdict_title(verdict, "inter-node traffic uses sockets");
	setup_machines_cite_link(setup, verdict, node->socket_link);
	if (note != NULL)
		setup_cite(setup, verdict, note->place, "%s", note->text);
	verdict_advice(verdict, "Nothing to do if the hosts have no InfiniBand, RoCE or EFA; "
				"otherwise check the cards and the network plugin");
	verdict_advice(verdict, "$ ls /sys/class/infiniband");
}

static void find_sockets(const struct setup *setup, const struct setup_machines *network)
{
	const struct nccl_log_net *device = any_device(network);
	const struct setup_machine *fallen = NULL, *plain = NULL;
	size_t fallen_count = 0;

	for (size_t i = 0; i < network->count; i++) {
		const struct setup_machine *node = &network->nodes[i];

		if (node->socket_link == NULL || node->is_ib_off)
			continue;
		if (device != NULL) {
			fallen = fallen != NULL ? fallen : node;
			fallen_count++;
		} else
			plain = plain != NULL ? plain : node;
	}
	if (fallen != NULL)
		tell_fallback(setup, fallen, fallen_count, device);
	else if (plain != NULL)
		tell_sockets(setup, plain);
}

/* ---- interfaces ------------------------------------------------------------------------------ */

static bool is_no_data_interface(const char *name)
{
	static const char *const beginnings[] = { "docker", "virbr", "veth",  "cni",  "flannel",
						  "cali",   "br-",   "idrac", "mgmt", "podman" };

	if (strcmp(name, "lo") == 0)
		return true;
	for (size_t i = 0; i < ARRAY_LENGTH(beginnings); i++)
		if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

static void find_interfaces(const struct setup *setup, const struct setup_machines *network)
{
	size_t hosts = 0;

	for (size_t i = 0; i < network->count; i++)
		hosts += network->nodes[i].host[0] != '\0';
	/* On one host any interface leads to the same place. */
	for (size_t i = 0; hosts > 1 && i < network->count; i++) {
		const struct setup_machine *node = &network->nodes[i];
		const struct nccl_log_net *net = node->interface;
		struct verdict *verdict;

		if (net == NULL || !is_no_data_interface(net->name))
			continue;
		verdict = setup_verdict(setup, "interface-slow", VERDICT_WARNING);
		verdict_title(verdict, "data goes over %s on %s, which is not a data network",
			      net->name, node->host);
		setup_machines_cite_device(setup, verdict, net);
		setup_machines_cite_link(setup, verdict, node->socket_link);
		setup_cite_any(setup, verdict, "NCCL_SOCKET_IFNAME");
		verdict_advice(verdict,
			       "Set NCCL_SOCKET_IFNAME to the fast interface, or to "
			       "^%s,docker,lo",
			       net->name);
		verdict_advice(verdict, "$ ip -br address; ethtool INTERFACE | grep Speed");
		text_copy(verdict->host, sizeof(verdict->host), node->host);
		return;
	}
}

enum status setup_find_network(const struct setup *setup)
{
	struct setup_machines network = { .count = 0 };
	enum status status = setup_machines_read(&network, setup);

	if (status == OK) {
		find_sockets(setup, &network);
		setup_find_cards(setup, &network);
		find_interfaces(setup, &network);
	}
	setup_machines_release(&network);
	return status;
}

/* Within a node: P2P or shared memory, NVLink SHARP, the fabric, the topology, rejected values. */

/* All notes that contain this text, as one finding. */
struct note_rule {
	const char *rule;
	enum nccl_log_kind kind;
	const char *has;
	const char *has_not; /* NULL none */
	enum verdict_severity severity;
	const char *title; /* "%s" where */
	const char *advice;
};

static const struct note_rule note_rules[] = {
	{ "nvls-failed", NCCL_LOG_KIND_NVLS, "Failed to bind NVLink SHARP", NULL, VERDICT_WARNING,
	  "NVLink SHARP is present but could not be used %s",
	  "Check the Fabric Manager and the NVSwitches of that node; NCCL continues without it" },
	{ "virtual-topology", NCCL_LOG_KIND_TOPOLOGY, "is not a PCI device", NULL, VERDICT_NOTE,
	  "network cards are missing from the PCI topology %s",
	  "In a virtual machine, ask the provider for a topology file and set NCCL_TOPO_FILE" },
	{ "virtual-topology", NCCL_LOG_KIND_TOPOLOGY, "Could not find real path of", NULL,
	  VERDICT_NOTE, "devices are missing from the PCI topology %s",
	  "In a virtual machine, ask the provider for a topology file and set NCCL_TOPO_FILE; in a "
	  "container, check that /sys is mounted" },
	/* Paths in /sys/devices/system are about CPUs. */
	{ "virtual-topology", NCCL_LOG_KIND_TOPOLOGY, "could not read /sys/devices/",
	  "/sys/devices/system/", VERDICT_NOTE,
	  "the PCI topology is not readable as on bare metal %s",
	  "In a virtual machine, ask the provider for a topology file and set NCCL_TOPO_FILE" },
	{ "value-ignored", NCCL_LOG_KIND_CONFIG, "Invalid ", "Invalid NCCL_SOCKET", VERDICT_NOTE,
	  "NCCL did not accept a value as given %s", "Use an allowed value, or unset it" },
	{ "value-ignored", NCCL_LOG_KIND_CONFIG, "is too low", NULL, VERDICT_NOTE,
	  "NCCL did not accept a value as given %s", "Use an allowed value, or unset it" },
	{ "value-ignored", NCCL_LOG_KIND_CONFIG, "is not valid", NULL, VERDICT_NOTE,
	  "NCCL did not accept a value as given %s", "Use an allowed value, or unset it" },
	{ "value-ignored", NCCL_LOG_KIND_CONFIG, "User asked for", NULL, VERDICT_NOTE,
	  "NCCL did not accept a value as given %s", "Use an allowed value, or unset it" },
	{ "value-ignored", NCCL_LOG_KIND_CONFIG, "Setting it has no effect", NULL, VERDICT_NOTE,
	  "a variable has no effect in this release %s", "Unset it" },
	{ "value-ignored", NCCL_LOG_KIND_CONFIG, "is deprecated", NULL, VERDICT_NOTE,
	  "a variable is deprecated in this release %s", "Use its replacement" },
};

static bool note_fits(const struct note_rule *rule, const struct nccl_log_note *note)
{
	return note->kind == rule->kind && strstr(note->text, rule->has) != NULL &&
	       (rule->has_not == NULL || strstr(note->text, rule->has_not) == NULL);
}

static void apply_note_rule(const struct setup *setup, const struct note_rule *rule)
{
	const struct nccl_log_note *cited[SETUP_CITED];
	struct setup_group group = { .count = 0 };
	struct verdict *verdict;
	size_t shown = 0;
	char where[400], title[512];

	for (size_t i = 0; i < setup->log->note_count; i++) {
		const struct nccl_log_note *note = &setup->log->notes[i];

		if (!note_fits(rule, note))
			continue;
		setup_group_add_process(setup, &group, note->process);
		if (shown < SETUP_CITED)
			cited[shown++] = note;
	}
	if (group.count == 0)
		return;
	/* With a topology file, unreadable entries do not matter. */
	if (strcmp(rule->rule, "virtual-topology") == 0 &&
	    setup_any(setup, "NCCL_TOPO_FILE") != NULL)
		return;
	verdict = setup_verdict(setup, rule->rule, rule->severity);
	setup_group_text(setup, &group, where, sizeof(where));
	text_format(title, sizeof(title), rule->title, where);
	verdict_title(verdict, "%s", title);
	for (size_t i = 0; i < shown; i++)
		setup_cite(setup, verdict, cited[i]->place, "%s", cited[i]->text);
	verdict_advice(verdict, "%s", rule->advice);
	setup_blame(setup, verdict, &group);
}

/* ---- GPUs that communicate through shared memory --------------------------------------------- */

static bool was_told_so(const struct setup *setup)
{
	const struct setup_variable *variable = setup_any(setup, "NCCL_P2P_DISABLE");

	return (variable != NULL && setup_is_true(variable->value)) ||
	       setup_any(setup, "NCCL_P2P_LEVEL") != NULL;
}

static void cite_reason(const struct setup *setup, struct verdict *verdict)
{
	for (size_t i = 0; i < setup->log->note_count; i++) {
		const struct nccl_log_note *note = &setup->log->notes[i];

		if (note->kind != NCCL_LOG_KIND_P2P || strstr(note->text, "Check P2P Type") != NULL)
			continue;
		setup_cite(setup, verdict, note->place, "%s", note->text);
		return;
	}
}

static void find_shm_links(const struct setup *setup)
{
	const struct nccl_log_link *first = NULL;
	struct setup_group group = { .count = 0 };
	struct verdict *verdict;
	char where[400];

	for (size_t i = 0; i < setup->log->link_count; i++)
		if (setup->log->links[i].transport == NCCL_LOG_SHM) {
			first = first != NULL ? first : &setup->log->links[i];
			setup_group_add_process(setup, &group, setup->log->links[i].process);
		}
	if (first == NULL)
		return;
	verdict = setup_verdict(setup, "p2p-not-used",
				was_told_so(setup) ? VERDICT_NOTE : VERDICT_WARNING);
	verdict_title(verdict, "GPUs of a node communicate through shared memory %s",
		      setup_group_text(setup, &group, where, sizeof(where)));
	setup_cite(setup, verdict, first->place, "%d -> %d via SHM/%s", first->from, first->to,
		   first->detail);
	cite_reason(setup, verdict);
	verdict_advice(verdict, "$ nvidia-smi topo -p2p r");
	verdict_advice(verdict,
		       "If it shows OK or the GPUs have NVLink: unset NCCL_P2P_DISABLE and "
		       "NCCL_P2P_LEVEL, disable PCI ACS, run containers in one IPC namespace");
	setup_blame(setup, verdict, &group);
}

/* ---- the fabric ------------------------------------------------------------------------------ */

/* "MNNVL busId 0x.. fabric UUID .. cliqueId .. state 3 healthMask ..": 3 is what NVML calls completed. */
static void find_fabric(const struct setup *setup)
{
	for (size_t i = 0; i < setup->log->note_count; i++) {
		const struct nccl_log_note *note = &setup->log->notes[i];
		const char *state = strstr(note->text, " state ");
		struct setup_group group = { .count = 0 };
		struct verdict *verdict;
		char where[400];

		if (note->kind != NCCL_LOG_KIND_MNNVL || state == NULL ||
		    strncmp(note->text, "MNNVL busId", 11) != 0 || state[7] == '3' ||
		    state[7] == '\0')
			continue;
		setup_group_add_process(setup, &group, note->process);
		verdict = setup_verdict(setup, "fabric-state", VERDICT_WARNING);
		verdict_title(verdict, "the NVLink fabric is not ready %s",
			      setup_group_text(setup, &group, where, sizeof(where)));
		setup_cite(setup, verdict, note->place, "%s", note->text);
		verdict_advice(verdict, "$ nvidia-smi -q | grep -A 4 Fabric");
		verdict_advice(verdict, "Check the Fabric Manager and, between nodes, IMEX");
		setup_blame(setup, verdict, &group);
		return;
	}
}

void setup_find_node(const struct setup *setup)
{
	for (size_t i = 0; i < ARRAY_LENGTH(note_rules); i++)
		apply_note_rule(setup, &note_rules[i]);
	find_shm_links(setup);
	find_fabric(setup);
}
