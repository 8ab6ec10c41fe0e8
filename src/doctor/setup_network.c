/* Between nodes: sockets or InfiniBand, and which interface. */
#include <string.h>

#include "common/text.h"
#include "doctor/setup_machines.h"

/* ---- sockets --------------------------------------------------------------------------------- */

/* A card that somebody found: here, or on another node of the same job. */
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
		verdict_title(verdict, "%s talks through sockets although InfiniBand is there",
			      node->host);
	else
		verdict_title(verdict,
			      "%zu nodes talk through sockets although InfiniBand is there", nodes);
	setup_machines_cite_link(setup, verdict, node->socket_link);
	setup_machines_cite_device(setup, verdict, device);
	note = find_note(setup, node->process, "NET/IB : No device");
	if (note == NULL)
		note = find_note(setup, node->process, "Failed to open lib");
	if (note != NULL)
		setup_cite(setup, verdict, note->place, "%s", note->text);
	verdict_advice(verdict,
		       "Look at the cards of that node, and whether the container sees them "
		       "and has libibverbs");
	verdict_advice(verdict, "$ ibv_devinfo | grep -E 'hca_id|state'");
	verdict_advice(verdict, "Set NCCL_NET=IB: then NCCL stops with an error instead of falling "
				"back");
	if (nodes == 1)
		text_copy(verdict->host, sizeof(verdict->host), node->host);
}

static void tell_sockets(const struct setup *setup, const struct setup_machine *node)
{
	struct verdict *verdict = setup_verdict(setup, "net-socket", VERDICT_NOTE);
	const struct nccl_log_note *note = find_note(setup, node->process, "NET/IB : No device");

	verdict_title(verdict, "traffic between nodes goes through sockets");
	setup_machines_cite_link(setup, verdict, node->socket_link);
	if (note != NULL)
		setup_cite(setup, verdict, note->place, "%s", note->text);
	verdict_advice(verdict, "Nothing to do where the machines have no InfiniBand, RoCE or EFA; "
				"else look for the cards and for the network plugin");
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
	/* On one machine any interface leads to the same place. */
	for (size_t i = 0; hosts > 1 && i < network->count; i++) {
		const struct setup_machine *node = &network->nodes[i];
		const struct nccl_log_net *net = node->interface;
		struct verdict *verdict;

		if (net == NULL || !is_no_data_interface(net->name))
			continue;
		verdict = setup_verdict(setup, "interface-slow", VERDICT_WARNING);
		verdict_title(verdict, "data goes through %s on %s, which is not a network for it",
			      net->name, node->host);
		setup_machines_cite_device(setup, verdict, net);
		setup_machines_cite_link(setup, verdict, node->socket_link);
		if (setup_any(setup, "NCCL_SOCKET_IFNAME") != NULL)
			setup_cite_variable(setup, verdict, setup_any(setup, "NCCL_SOCKET_IFNAME"));
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
