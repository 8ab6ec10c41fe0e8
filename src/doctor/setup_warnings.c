/* NCCL's warnings in other words: what happened, and what to do. */
#include <string.h>
#include <strings.h>

#include "doctor/setup_parts.h"

struct warning_rule {
	const char *has;
	const char *and_has; /* NULL: nothing more */
	const char *rule;
	enum verdict_severity severity;
	const char *means;
	const char *advice;
};

/* The first that fits counts. */
static const struct warning_rule rules[] = {
	{ "Mismatched NCCL version", NULL, "version-mismatch", VERDICT_ERROR,
	  "ranks run different releases of NCCL",
	  "Install one release of NCCL on all nodes, in all containers and environments of the "
	  "job" },
	{ "NCCL version mismatch", NULL, "version-mismatch", VERDICT_ERROR,
	  "ranks run different releases of NCCL",
	  "Install one release of NCCL on all nodes, in all containers and environments of the "
	  "job" },
	{ "NCCL library", "compiled with NCCL version", "version-mismatch", VERDICT_ERROR,
	  "the program was built for another release of NCCL than it found",
	  "See which libnccl.so is loaded: LD_LIBRARY_PATH, LD_PRELOAD, the container" },
	{ "no socket interface found", NULL, "interface-not-found", VERDICT_ERROR,
	  "no interface fits NCCL_SOCKET_IFNAME",
	  "Set NCCL_SOCKET_IFNAME to an interface that `ip -br address` shows as UP" },
	{ "NET/Socket : no interface found", NULL, "interface-not-found", VERDICT_ERROR,
	  "no interface fits NCCL_SOCKET_IFNAME",
	  "Set NCCL_SOCKET_IFNAME to an interface that `ip -br address` shows as UP" },
	{ "No interface found in the same subnet", NULL, "interface-not-found", VERDICT_ERROR,
	  "no interface of this node is in the subnet of the other side",
	  "Choose with NCCL_SOCKET_IFNAME an interface that all nodes share" },
	{ "No usable listening interface", NULL, "interface-not-found", VERDICT_ERROR,
	  "no interface can be listened on",
	  "Set NCCL_SOCKET_IFNAME to an interface that `ip -br address` shows as UP" },
	{ "NET/IB : No IP interface found", NULL, "interface-not-found", VERDICT_ERROR,
	  "InfiniBand needs an IP interface to connect, and none fits",
	  "Set NCCL_SOCKET_IFNAME to an interface that `ip -br address` shows as UP" },
	{ "Connection closed by remote peer", NULL, "peer-lost", VERDICT_ERROR,
	  "the other side closed the connection: its process ended, crashed or was killed",
	  "Look at the log of the peer that is named: it went first, and knows why" },
	{ "Connection refused", NULL, "peer-lost", VERDICT_ERROR,
	  "nobody listens there: the process is not started yet, gone, or on another interface",
	  "See that rank 0 runs, and that NCCL_SOCKET_IFNAME leads to the same network on all "
	  "nodes" },
	{ "Connection reset by peer", NULL, "peer-lost", VERDICT_ERROR,
	  "the other side's process ended while data was on its way",
	  "Look at the log of the peer that is named: it went first, and knows why" },
	{ "No route to host", NULL, "peer-lost", VERDICT_ERROR,
	  "the nodes cannot reach each other on this interface",
	  "Choose another interface with NCCL_SOCKET_IFNAME; look at firewalls and routes" },
	{ "timed out", NULL, "peer-lost", VERDICT_ERROR, "the other side did not answer in time",
	  "Look at the peer, at firewalls, and at the network between the two nodes" },
	{ "connect to", "failed", "peer-lost", VERDICT_ERROR, "a connection could not be made",
	  "Look at the peer that is named, at firewalls and routes" },
	{ "exceeded error retry count", NULL, "peer-lost", VERDICT_ERROR,
	  "a connection could not be made, however often it was tried",
	  "Look at the peer that is named, at firewalls and routes" },
	{ "socket progress error", NULL, "peer-lost", VERDICT_ERROR, "a connection broke",
	  "Look at the log of the peer: it went first, and knows why" },
	{ "shared memory", NULL, "shm-full", VERDICT_ERROR,
	  "there is too little shared memory, or it cannot be made",
	  "Make /dev/shm larger: docker run --shm-size=8g, in Kubernetes an emptyDir with medium "
	  "Memory" },
	{ "failed to extend", NULL, "shm-full", VERDICT_ERROR,
	  "there is too little room in /dev/shm",
	  "Make /dev/shm larger: docker run --shm-size=8g, in Kubernetes an emptyDir with medium "
	  "Memory" },
	{ "No space left on device", NULL, "shm-full", VERDICT_ERROR,
	  "there is too little room in /dev/shm",
	  "Make /dev/shm larger: docker run --shm-size=8g, in Kubernetes an emptyDir with medium "
	  "Memory" },
	{ "ibv_reg_mr", NULL, "memlock-limit", VERDICT_ERROR,
	  "memory could not be registered with the network card: usually the limit on locked "
	  "memory",
	  "Allow it: ulimit -l unlimited; in containers --ulimit memlock=-1; with Slurm "
	  "PropagateResourceLimits" },
	{ "ibv_create", "Cannot allocate memory", "memlock-limit", VERDICT_ERROR,
	  "the network card's queues need more locked memory than is allowed",
	  "Allow it: ulimit -l unlimited; in containers --ulimit memlock=-1; with Slurm "
	  "PropagateResourceLimits" },
	{ "GID table changed", NULL, "ib-error", VERDICT_WARNING,
	  "the addresses of a RoCE port changed while the job ran",
	  "See who configures that interface; look at the switch" },
	{ "Got completion", NULL, "ib-error", VERDICT_ERROR,
	  "the network card gave up on a transfer: link down, wrong GID, peer gone, congestion",
	  "Look at the link of both ends (ibstat, ibdiagnet, the switch); NCCL_IB_TIMEOUT and "
	  "NCCL_IB_RETRY_CNT decide how long it tries" },
	{ "async fatal event", NULL, "ib-error", VERDICT_ERROR, "the network card failed",
	  "Look at dmesg and at the card of that node" },
	{ "async event", NULL, "ib-error", VERDICT_WARNING,
	  "the network card reported an event: a port went down or came back",
	  "Look at the port, the cable and the switch: ibstat, ethtool" },
	{ "async error event", NULL, "ib-error", VERDICT_WARNING,
	  "the network card reported an event: a port went down or came back",
	  "Look at the port, the cable and the switch: ibstat, ethtool" },
	{ "marked as failed", NULL, "ib-error", VERDICT_WARNING,
	  "a network card failed, and NCCL goes on with another",
	  "Look at the link of that card: ibstat, dmesg, the switch" },
	{ "incompatible", "NCCL_IB_HCA", "ib-error", VERDICT_ERROR,
	  "cards of different kinds (InfiniBand and RoCE) were to be connected",
	  "Name cards of one kind with NCCL_IB_HCA" },
	{ "ibv_", "failed", "ib-error", VERDICT_ERROR, "a call to the network card failed",
	  "Look at dmesg and ibv_devinfo of that node; with RoCE see NCCL_IB_GID_INDEX" },
	{ "collective mismatch", NULL, "size-mismatch", VERDICT_ERROR,
	  "two ranks called the same collective with different sizes",
	  "Compare what the ranks call: ringside doctor on a recording names them" },
	{ "essage truncated", NULL, "size-mismatch", VERDICT_ERROR,
	  "a rank received more than it had asked for: the ranks called different things",
	  "Compare what the ranks call: ringside doctor on a recording names them; and their "
	  "variables" },
	{ "posted incorrect receive", NULL, "size-mismatch", VERDICT_ERROR,
	  "a rank received more than it had asked for: the ranks called different things",
	  "Compare what the ranks call: ringside doctor on a recording names them" },
	{ "Duplicate GPU", NULL, "duplicate-gpu", VERDICT_ERROR,
	  "two ranks were given the same GPU",
	  "Set the device by the local rank: CUDA_VISIBLE_DEVICES, "
	  "torch.cuda.set_device(LOCAL_RANK)" },
	{ "using the same GPU", NULL, "duplicate-gpu", VERDICT_ERROR,
	  "two ranks were given the same GPU",
	  "Set the device by the local rank: CUDA_VISIBLE_DEVICES, "
	  "torch.cuda.set_device(LOCAL_RANK)" },
	{ "Failed to bind NVLink SHARP", NULL, "nvls-failed", VERDICT_WARNING,
	  "NVLink SHARP is there and cannot be used",
	  "Look at the Fabric Manager and the NVSwitches; NCCL_NVLS_ENABLE=0 goes on without it" },
	{ "uda failure", "out of memory", "gpu-error", VERDICT_ERROR,
	  "the GPU has no memory left for NCCL's buffers",
	  "Leave some memory free: NCCL takes a few hundred MiB per communicator" },
	{ "uda failure", "ECC", "gpu-error", VERDICT_ERROR,
	  "the GPU's memory had an error that cannot be corrected",
	  "Look for Xid 48, 63, 94 in dmesg of that node; drain and reset it" },
	{ "uda failure", "illegal memory access", "gpu-error", VERDICT_ERROR,
	  "a kernel touched memory that it must not: often the program's own kernel before NCCL's",
	  "Look for Xid 31 in dmesg; run once with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer" },
	{ "uda failure", "launch failure", "gpu-error", VERDICT_ERROR,
	  "a kernel crashed on the GPU",
	  "Look for Xid in dmesg of that node: 13 and 31 are software, 48, 74, 79, 94 hardware" },
	{ "uda failure", "driver version is insufficient", "gpu-error", VERDICT_ERROR,
	  "the driver is older than the CUDA that NCCL was built with",
	  "Install a newer driver, or NCCL for an older CUDA" },
	{ "uda failure", NULL, "gpu-error", VERDICT_ERROR,
	  "CUDA reported an error, which may come from an earlier kernel",
	  "Look for Xid in dmesg of that node, and for the first error of any rank" },
	{ "Failed to CUDA", NULL, "gpu-error", VERDICT_ERROR,
	  "the GPU has no memory left for NCCL's buffers",
	  "Leave some memory free: NCCL takes a few hundred MiB per communicator" },
	{ "CUDA Driver version found", NULL, "gpu-error", VERDICT_ERROR, "the driver is too old",
	  "Install a newer driver, or NCCL for an older CUDA" },
	{ "Detected mixed local Net device counts", NULL, "environment-differs", VERDICT_ERROR,
	  "nodes have different numbers of network cards",
	  "See which card is missing on which node; NCCL_IGNORE_NET_MISMATCH=1 goes on" },
	{ "Could not find real path of", NULL, "virtual-topology", VERDICT_NOTE,
	  "a device has no place in the PCI topology",
	  "In a virtual machine ask the provider for a topology file and give it as "
	  "NCCL_TOPO_FILE; in a container see that /sys is mounted" },
	{ "is being ignored", NULL, "value-ignored", VERDICT_NOTE,
	  "NCCL did not take a value as it was given", "Give a value that is allowed, or none" },
	{ "Bootstrap Root", NULL, "init-incomplete", VERDICT_ERROR,
	  "ranks disagree on who takes part: wrong number of ranks, or a rank twice",
	  "See that every rank was given its own rank and the same number of ranks" },
};

static const struct warning_rule *rule_for(const char *text)
{
	for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
		if (strstr(text, rules[i].has) != NULL &&
		    (rules[i].and_has == NULL || strstr(text, rules[i].and_has) != NULL))
			return &rules[i];
	return NULL;
}

static const struct warning_rule unknown = {
	"",
	NULL,
	"nccl-warning",
	VERDICT_WARNING,
	"NCCL warned",
	"Read it in its place in the log: the first warning of all ranks is nearest to the cause",
};

static void add_advice(const struct setup *setup, struct verdict *verdict,
		       const struct warning_rule *rule)
{
	verdict_advice(verdict, "%s", rule->advice);
	if (strcmp(rule->rule, "interface-not-found") == 0 &&
	    setup_any(setup, "NCCL_SOCKET_IFNAME") != NULL)
		setup_cite_variable(setup, verdict, setup_any(setup, "NCCL_SOCKET_IFNAME"));
	if (strcmp(rule->rule, "memlock-limit") == 0)
		verdict_advice(verdict, "$ ulimit -l; grep -i 'max locked' /proc/PID/limits");
	if (strcmp(rule->rule, "shm-full") == 0)
		verdict_advice(verdict, "$ df -h /dev/shm");
	if (strcmp(rule->rule, "gpu-error") == 0)
		verdict_advice(verdict, "$ dmesg | grep -i xid");
}

/* Warnings are kept once per process: all of a kind are one finding. */
static void tell(const struct setup *setup, const struct warning_rule *rule, size_t first)
{
	const struct nccl_log *log = setup->log;
	struct setup_group group = { .count = 0 };
	struct verdict *verdict = setup_verdict(setup, rule->rule, rule->severity);
	uint64_t lines = 0;
	size_t shown = 0;
	char where[400];

	for (size_t i = first; i < log->warning_count; i++) {
		const struct nccl_log_warning *warning = &log->warnings[i];
		const struct warning_rule *its = rule_for(warning->text);

		if ((its != NULL ? its : &unknown) != rule)
			continue;
		lines += warning->lines;
		setup_group_add(setup, &group, setup_who_of_process(setup, warning->process));
		if (shown++ < SETUP_CITED)
			setup_cite(setup, verdict, warning->place, "NCCL WARN %s", warning->text);
	}
	if (rule == &unknown)
		verdict_title(verdict, "%llu %s of NCCL that nobody here can explain",
			      (unsigned long long)lines, lines == 1 ? "warning" : "warnings");
	else
		verdict_title(verdict, "%s, %s", rule->means,
			      setup_group_text(setup, &group, where, sizeof(where)));
	if (shown > SETUP_CITED)
		verdict_evidence(verdict, "and %zu more of this kind", shown - SETUP_CITED);
	add_advice(setup, verdict, rule);
	setup_blame(setup, verdict, &group);
}

void setup_find_warnings(const struct setup *setup)
{
	bool is_told[ARRAY_LENGTH(rules) + 1] = { false };

	for (size_t i = 0; i < setup->log->warning_count; i++) {
		const struct warning_rule *rule = rule_for(setup->log->warnings[i].text);
		size_t number = rule != NULL ? (size_t)(rule - rules) : ARRAY_LENGTH(rules);

		if (is_told[number])
			continue;
		is_told[number] = true;
		tell(setup, rule != NULL ? rule : &unknown, i);
	}
}
