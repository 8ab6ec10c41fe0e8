/* Communicators that were never completed, or took long; plugins that were not loaded. */
#include "doctor/setup_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/attributes.h"
#include "common/text.h"

enum { INIT_SLOW_S = 30, RANKS_NAMED = 400 };

static const struct nccl_log_comm *comm_at(const struct setup *setup, const uint32_t *order,
					   size_t i)
{
	return &setup->log->comms[order[i]];
}

static int compare_comms(const void *one, const void *other, void *context)
{
	const struct nccl_log_comm *comms = context;
	const struct nccl_log_comm *a = &comms[*(const uint32_t *)one];
	const struct nccl_log_comm *b = &comms[*(const uint32_t *)other];

	return ORDER(a->group, b->group) ?: ORDER(a->rank, b->rank) ?: ORDER(a, b);
}

/* ---- incomplete inits ------------------------------------------------------------------------ */

/* "3", "0-2,5": the missing ranks. Sorted by rank. */
static size_t missing_ranks(const struct setup *setup, const uint32_t *order, size_t first,
			    size_t end, char *to, size_t size)
{
	int32_t nranks = comm_at(setup, order, first)->nranks, expected = 0;
	size_t missing = 0, used = 0;

	to[0] = '\0';
	for (size_t i = first; i <= end; i++) {
		int32_t rank = i < end ? comm_at(setup, order, i)->rank : nranks;

		if (rank > expected) {
			missing += (size_t)(rank - expected);
			text_format(to + used, size - used,
				    rank - expected > 1 ? "%s%d-%d" : "%s%d", used > 0 ? "," : "",
				    expected, rank - 1);
			used += strlen(to + used);
		}
		expected = rank + 1 > expected ? rank + 1 : expected;
	}
	return missing;
}

static void tell_missing(struct verdict *verdict, size_t missing, const char *ranks,
			 const struct nccl_log_comm *comm)
{
	const char *word = missing == 1 ? "rank" : "ranks";
	int64_t rank;

	verdict_title(verdict, "%s %s never reached the init of a communicator of %d ranks", word,
		      ranks, comm->nranks);
	verdict_evidence(verdict, "no log line shows that %s %s started it", word, ranks);
	verdict_missing(
		verdict,
		"their logs may be missing from these files; then they need not be the cause");
	verdict->confidence = 0.8;
	verdict_advice(verdict, "Check %s %s: not started, crashed, or waiting elsewhere", word,
		       ranks);
	if (missing == 1 && setup_number(ranks, &rank))
		verdict->comm_rank = (int32_t)rank;
}

static void tell_unended(struct verdict *verdict, size_t missing, const char *ranks,
			 const struct nccl_log_comm *comm)
{
	verdict_title(verdict, "the init of a communicator of %d ranks never completed",
		      comm->nranks);
	if (missing > 0) {
		verdict_missing(verdict, "no log lines from ranks %s: pass their logs, too", ranks);
		verdict->confidence = 0.6;
	}
	verdict_advice(verdict, "Check for warnings, and that all nodes reach each other on the "
				"bootstrap interface");
}

/* Log lines in between: connection retries, the bootstrap interface. */
static void cite_notes(const struct setup *setup, struct verdict *verdict, uint32_t process)
{
	bool has_retry = false;

	for (size_t i = 0; i < setup->log->note_count; i++) {
		const struct nccl_log_note *note = &setup->log->notes[i];

		if ((note->kind == NCCL_LOG_KIND_RETRY && !has_retry) ||
		    (note->kind == NCCL_LOG_KIND_BOOTSTRAP && note->process == process))
			setup_cite(setup, verdict, note->place, "%s", note->text);
		has_retry |= note->kind == NCCL_LOG_KIND_RETRY;
	}
}

/* All in [first, end) are of one communicator. If all visible ranks completed it, it is fine. */
static void look_at_init(const struct setup *setup, const uint32_t *order, size_t first, size_t end)
{
	const struct nccl_log_comm *open = NULL;
	struct setup_group group = { .count = 0 };
	struct verdict *verdict;
	size_t missing, completed = 0;
	char ranks[RANKS_NAMED];

	for (size_t i = first; i < end; i++) {
		const struct nccl_log_comm *comm = comm_at(setup, order, i);

		if (comm->complete.line != 0 || comm->start.line == 0) {
			completed++;
			continue;
		}
		open = open != NULL ? open : comm;
		setup_group_add_process(setup, &group, comm->process);
	}
	/* Aborted before it was complete: a warning has the cause. */
	if (open == NULL)
		return;
	missing = missing_ranks(setup, order, first, end, ranks, sizeof(ranks));
	verdict = setup_verdict(setup, "init-incomplete", VERDICT_ERROR);
	/* If most are missing, their logs are. */
	if (missing > 0 && missing * 2 <= (size_t)open->nranks)
		tell_missing(verdict, missing, ranks, open);
	else
		tell_unended(verdict, missing, ranks, open);
	verdict_advice(verdict, "$ NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,NET COMMAND");
	setup_cite(setup, verdict, open->start,
		   "%s rank %d nranks %d commId 0x%llx - Init START, and no Init COMPLETE",
		   open->function, open->rank, open->nranks, (unsigned long long)open->hash);
	if (open->end.line != 0)
		setup_cite(setup, verdict, open->end, "%s of rank %d", open->end_word, open->rank);
	verdict_evidence(verdict, "%zu of %d ranks started it, %zu completed it", end - first,
			 open->nranks, completed);
	cite_notes(setup, verdict, open->process);
	verdict->victims = (uint32_t)(group.count);
	verdict->comm_hash = open->hash;
	text_format(verdict->comm, sizeof(verdict->comm), "0x%llx", (unsigned long long)open->hash);
	/* Waiting ranks are not to blame: only the job and host are given. */
	text_copy(verdict->job, sizeof(verdict->job), setup->whos[group.first].job);
}

/* ---- slow inits ------------------------------------------------------------------------------ */

static enum nccl_log_phase longest_phase(const struct nccl_log_comm *comm)
{
	int most = 0;

	for (int i = 1; i < NCCL_LOG_PHASES; i++)
		if (comm->phase_s[i] > comm->phase_s[most])
			most = i;
	return (enum nccl_log_phase)most;
}

static const char *phase_advice(enum nccl_log_phase phase)
{
	switch (phase) {
	case NCCL_LOG_KERNELS:
		return "Loading kernels is slow: check the file system of the library, and set "
		       "CUDA_MODULE_LOADING=LAZY";
	case NCCL_LOG_BOOTSTRAP:
		return "Ranks wait for the last rank, or the bootstrap network is slow: start all "
		       "ranks together, and choose the interface with NCCL_SOCKET_IFNAME";
	case NCCL_LOG_ALLGATHERS:
		return "The bootstrap network is slow: choose the interface with "
		       "NCCL_SOCKET_IFNAME; NCCL_OOB_NET_ENABLE=1 uses the fast network";
	case NCCL_LOG_TOPO:
		return "Topology detection is slow: check PCI and the network cards of the host";
	case NCCL_LOG_CONNECTIONS:
		return "Connecting is slow: NCCL_RUNTIME_CONNECT=1 connects on first use";
	default:
		return "Compare the phases with a good run";
	}
}

static void find_slow(const struct setup *setup)
{
	const struct nccl_log_comm *slowest = NULL;
	struct setup_group group = { .count = 0 };
	enum nccl_log_phase phase;
	struct verdict *verdict;

	for (size_t i = 0; i < setup->log->comm_count; i++) {
		const struct nccl_log_comm *comm = &setup->log->comms[i];

		if (comm->total_s < INIT_SLOW_S)
			continue;
		if (slowest == NULL || comm->total_s > slowest->total_s)
			slowest = comm;
		setup_group_add_process(setup, &group, comm->process);
	}
	if (slowest == NULL)
		return;
	phase = longest_phase(slowest);
	verdict = setup_verdict(setup, "init-slow", VERDICT_WARNING);
	verdict_title(verdict, "creating a communicator of %d ranks took %.0f s, %.0f s of it %s",
		      slowest->nranks, slowest->total_s, slowest->phase_s[phase],
		      nccl_log_phase_name(phase));
	setup_cite(setup, verdict, slowest->timings,
		   "Init timings: rank %d nranks %d total %.2f (%s %.2f)", slowest->rank,
		   slowest->nranks, slowest->total_s, nccl_log_phase_name(phase),
		   slowest->phase_s[phase]);
	verdict_evidence(verdict, "the same on %zu ranks", group.count);
	verdict_advice(verdict, "%s", phase_advice(phase));
	setup_blame(setup, verdict, &group);
}

enum status setup_find_init(const struct setup *setup)
{
	size_t count = setup->log->comm_count, first = 0;
	uint32_t *order = calloc(count + 1, sizeof(*order));

	if (order == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), compare_comms, setup->log->comms);
	for (size_t i = 1; i <= count; i++)
		if (i == count ||
		    comm_at(setup, order, i)->group != comm_at(setup, order, first)->group) {
			look_at_init(setup, order, first, i);
			first = i;
		}
	free(order);
	find_slow(setup);
	return OK;
}

/* ---- plugins --------------------------------------------------------------------------------- */

/* NCCL_NET_PLUGIN for NET, and so on: was it requested? */
/* By this job: logs of several jobs may lie in one directory. */
static const struct setup_variable *asked_for(const struct setup *setup,
					      const struct nccl_log_plugin *plugin)
{
	char name[64];

	text_format(name, sizeof(name), "NCCL_%s_PLUGIN", plugin->kind);
	return setup_of_team(setup, name, plugin->process);
}

static bool is_internal(const struct nccl_log_plugin *plugin)
{
	return strcmp(plugin->name, "IB") == 0 || strcmp(plugin->name, "Socket") == 0;
}

static bool is_ours(const char *text)
{
	return strcasestr(text, "ringside") != NULL;
}

static bool plugin_is_wrong(const struct setup *setup, const struct nccl_log_plugin *plugin)
{
	const struct setup_variable *asked = asked_for(setup, plugin);

	if (plugin->state == NCCL_LOG_PLUGIN_FAILED)
		return !is_internal(plugin);
	return plugin->state == NCCL_LOG_PLUGIN_NOT_FOUND && asked != NULL &&
	       strcasecmp(asked->value, "none") != 0;
}

static void tell_plugin(const struct setup *setup, const struct nccl_log_plugin *plugin,
			const struct setup_group *group)
{
	const struct setup_variable *asked = asked_for(setup, plugin);
	bool ours = strcmp(plugin->kind, "PROFILER") == 0 &&
		    (is_ours(plugin->text) || (asked != NULL && is_ours(asked->value)));
	struct verdict *verdict =
		setup_verdict(setup, ours ? "profiler-plugin" : "plugin-failed", VERDICT_WARNING);
	char where[400];

	verdict_title(verdict, "%s plugin %s %s %s", plugin->kind, plugin->name,
		      plugin->state == NCCL_LOG_PLUGIN_FAILED ? "could not be used"
							      : "was not found",
		      setup_group_text(setup, group, where, sizeof(where)));
	setup_cite(setup, verdict, plugin->place, "%s", plugin->text);
	if (asked != NULL)
		setup_cite_variable(setup, verdict, asked);
	verdict_advice(verdict, "$ LD_DEBUG=libs COMMAND 2>&1 | grep nccl");
	verdict_advice(
		verdict,
		ours ? "Use the output of `ringside env`: it gives the full path of the plugin"
		     : "Add its directory to LD_LIBRARY_PATH or give its full path; check that it "
		       "was built for this NCCL release");
	setup_blame(setup, verdict, group);
}

/* Another profiler instead of ours: nothing is recorded. */
static void find_other_profiler(const struct setup *setup)
{
	const struct nccl_log_plugin *first = NULL;
	struct setup_group group = { .count = 0 };
	struct verdict *verdict;

	for (size_t i = 0; i < setup->log->plugin_count; i++) {
		const struct nccl_log_plugin *plugin = &setup->log->plugins[i];

		if (strcmp(plugin->kind, "PROFILER") != 0 ||
		    plugin->state != NCCL_LOG_PLUGIN_LOADED)
			continue;
		if (is_ours(plugin->text))
			return;
		first = first != NULL ? first : plugin;
		setup_group_add_process(setup, &group, plugin->process);
	}
	if (first == NULL)
		return;
	verdict = setup_verdict(setup, "profiler-plugin", VERDICT_NOTE);
	verdict_title(verdict, "another profiler is loaded, so Ringside records nothing");
	setup_cite(setup, verdict, first->place, "%s", first->text);
	setup_cite_any(setup, verdict, "NCCL_PROFILER_PLUGIN");
	verdict_advice(verdict, "Set NCCL_PROFILER_PLUGIN as `ringside env` prints it");
	setup_blame(setup, verdict, &group);
}

void setup_find_plugins(const struct setup *setup)
{
	const struct nccl_log *log = setup->log;

	for (size_t i = 0; i < log->plugin_count; i++) {
		const struct nccl_log_plugin *plugin = &log->plugins[i];
		struct setup_group group = { .count = 0 };
		bool is_first = true;

		if (!plugin_is_wrong(setup, plugin))
			continue;
		for (size_t j = 0; j < i && is_first; j++)
			is_first = log->plugins[j].kind != plugin->kind ||
				   log->plugins[j].state != plugin->state ||
				   log->plugins[j].name != plugin->name;
		for (size_t j = i; is_first && j < log->plugin_count; j++)
			if (log->plugins[j].kind == plugin->kind &&
			    log->plugins[j].state == plugin->state &&
			    log->plugins[j].name == plugin->name)
				setup_group_add_process(setup, &group, log->plugins[j].process);
		if (is_first)
			tell_plugin(setup, plugin, &group);
	}
	find_other_profiler(setup);
}

/* NCCL's warnings explained: what happened, and what to do. */

struct warning_rule {
	const char *has;
	const char *and_has; /* NULL: nothing more */
	const char *rule;
	enum verdict_severity severity;
	const char *means;
	const char *advice;
};

/* The first match counts. */
static const struct warning_rule warning_rules[] = {
	{ "Mismatched NCCL version", NULL, "version-mismatch", VERDICT_ERROR,
	  "ranks run different NCCL releases",
	  "Install the same NCCL release on all nodes and in all containers and environments of "
	  "the job" },
	{ "NCCL version mismatch", NULL, "version-mismatch", VERDICT_ERROR,
	  "ranks run different NCCL releases",
	  "Install the same NCCL release on all nodes and in all containers and environments of "
	  "the job" },
	{ "NCCL library", "compiled with NCCL version", "version-mismatch", VERDICT_ERROR,
	  "the program was built for a different NCCL release than it loaded",
	  "Check which libnccl.so is loaded: LD_LIBRARY_PATH, LD_PRELOAD, the container" },
	{ "no socket interface found", NULL, "interface-not-found", VERDICT_ERROR,
	  "no interface matches NCCL_SOCKET_IFNAME",
	  "Set NCCL_SOCKET_IFNAME to an interface that `ip -br address` shows as UP" },
	{ "NET/Socket : no interface found", NULL, "interface-not-found", VERDICT_ERROR,
	  "no interface matches NCCL_SOCKET_IFNAME",
	  "Set NCCL_SOCKET_IFNAME to an interface that `ip -br address` shows as UP" },
	{ "No interface found in the same subnet", NULL, "interface-not-found", VERDICT_ERROR,
	  "no interface of this node is in the peer's subnet",
	  "Set NCCL_SOCKET_IFNAME to an interface that all nodes share" },
	{ "No usable listening interface", NULL, "interface-not-found", VERDICT_ERROR,
	  "no interface can accept connections",
	  "Set NCCL_SOCKET_IFNAME to an interface that `ip -br address` shows as UP" },
	{ "NET/IB : No IP interface found", NULL, "interface-not-found", VERDICT_ERROR,
	  "InfiniBand needs an IP interface to connect, and none matches",
	  "Set NCCL_SOCKET_IFNAME to an interface that `ip -br address` shows as UP" },
	{ "Connection closed by remote peer", NULL, "peer-lost", VERDICT_ERROR,
	  "the peer closed the connection: its process ended, crashed or was killed",
	  "Check the log of the named peer: it failed first and shows the cause" },
	{ "Connection refused", NULL, "peer-lost", VERDICT_ERROR,
	  "nothing listens there: the process is not started yet, gone, or on another interface",
	  "Check that rank 0 runs, and that NCCL_SOCKET_IFNAME selects the same network on all "
	  "nodes" },
	{ "Connection reset by peer", NULL, "peer-lost", VERDICT_ERROR,
	  "the peer's process ended during a transfer",
	  "Check the log of the named peer: it failed first and shows the cause" },
	{ "No route to host", NULL, "peer-lost", VERDICT_ERROR,
	  "the nodes cannot reach each other on this interface",
	  "Choose another interface with NCCL_SOCKET_IFNAME; check firewalls and routes" },
	{ "timed out", NULL, "peer-lost", VERDICT_ERROR, "the peer did not answer in time",
	  "Check the peer, firewalls, and the network between the two nodes" },
	{ "connect to", "failed", "peer-lost", VERDICT_ERROR,
	  "a connection could not be established", "Check the named peer, firewalls and routes" },
	{ "exceeded error retry count", NULL, "peer-lost", VERDICT_ERROR,
	  "a connection could not be established after several retries",
	  "Check the named peer, firewalls and routes" },
	{ "socket progress error", NULL, "peer-lost", VERDICT_ERROR, "a connection broke",
	  "Check the log of the peer: it failed first and shows the cause" },
	{ "shared memory", NULL, "shm-full", VERDICT_ERROR,
	  "not enough shared memory, or it cannot be created",
	  "Enlarge /dev/shm: docker run --shm-size=8g; in Kubernetes an emptyDir with medium "
	  "Memory" },
	{ "failed to extend", NULL, "shm-full", VERDICT_ERROR, "not enough space in /dev/shm",
	  "Enlarge /dev/shm: docker run --shm-size=8g; in Kubernetes an emptyDir with medium "
	  "Memory" },
	{ "No space left on device", NULL, "shm-full", VERDICT_ERROR,
	  "not enough space in /dev/shm",
	  "Enlarge /dev/shm: docker run --shm-size=8g; in Kubernetes an emptyDir with medium "
	  "Memory" },
	{ "ibv_reg_mr", NULL, "memlock-limit", VERDICT_ERROR,
	  "memory could not be registered with the network card, usually because of the "
	  "locked-memory limit",
	  "Raise the limit: ulimit -l unlimited; in containers --ulimit memlock=-1; with Slurm "
	  "PropagateResourceLimits" },
	{ "ibv_create", "Cannot allocate memory", "memlock-limit", VERDICT_ERROR,
	  "the network card's queues need more locked memory than allowed",
	  "Raise the limit: ulimit -l unlimited; in containers --ulimit memlock=-1; with Slurm "
	  "PropagateResourceLimits" },
	{ "GID table changed", NULL, "ib-error", VERDICT_WARNING,
	  "the addresses of a RoCE port changed during the job",
	  "Find out what configures that interface; check the switch" },
	{ "Got completion", NULL, "ib-error", VERDICT_ERROR,
	  "the network card gave up on a transfer: link down, wrong GID, peer gone or congestion",
	  "Check the link at both ends (ibstat, ibdiagnet, the switch); NCCL_IB_TIMEOUT and "
	  "NCCL_IB_RETRY_CNT set how long it tries" },
	{ "async fatal event", NULL, "ib-error", VERDICT_ERROR, "the network card failed",
	  "Check dmesg and the network card of that node" },
	{ "async event", NULL, "ib-error", VERDICT_WARNING,
	  "the network card reported an event: a port went down or came back",
	  "Check the port, the cable and the switch: ibstat, ethtool" },
	{ "async error event", NULL, "ib-error", VERDICT_WARNING,
	  "the network card reported an event: a port went down or came back",
	  "Check the port, the cable and the switch: ibstat, ethtool" },
	{ "marked as failed", NULL, "ib-error", VERDICT_WARNING,
	  "a network card failed and NCCL continues with another",
	  "Check the link of that card: ibstat, dmesg, the switch" },
	{ "incompatible", "NCCL_IB_HCA", "ib-error", VERDICT_ERROR,
	  "network cards of different kinds (InfiniBand and RoCE) were to be connected",
	  "Select cards of one kind with NCCL_IB_HCA" },
	{ "ibv_", "failed", "ib-error", VERDICT_ERROR, "a call to the network card failed",
	  "Check dmesg and ibv_devinfo on that node; with RoCE see NCCL_IB_GID_INDEX" },
	{ "collective mismatch", NULL, "size-mismatch", VERDICT_ERROR,
	  "two ranks called the same collective with different sizes",
	  "Compare the calls of the ranks: ringside doctor on a recording names them" },
	{ "essage truncated", NULL, "size-mismatch", VERDICT_ERROR,
	  "a rank received more data than it expected: the ranks called different operations",
	  "Compare the calls of the ranks (ringside doctor on a recording names them) and their "
	  "environment variables" },
	{ "posted incorrect receive", NULL, "size-mismatch", VERDICT_ERROR,
	  "a rank received more data than it expected: the ranks called different operations",
	  "Compare the calls of the ranks: ringside doctor on a recording names them" },
	{ "Duplicate GPU", NULL, "duplicate-gpu", VERDICT_ERROR, "two ranks use the same GPU",
	  "Select the device by local rank: CUDA_VISIBLE_DEVICES, "
	  "torch.cuda.set_device(LOCAL_RANK)" },
	{ "using the same GPU", NULL, "duplicate-gpu", VERDICT_ERROR, "two ranks use the same GPU",
	  "Select the device by local rank: CUDA_VISIBLE_DEVICES, "
	  "torch.cuda.set_device(LOCAL_RANK)" },
	{ "Failed to bind NVLink SHARP", NULL, "nvls-failed", VERDICT_WARNING,
	  "NVLink SHARP is present but cannot be used",
	  "Check the Fabric Manager and the NVSwitches; NCCL_NVLS_ENABLE=0 runs without it" },
	{ "uda failure", "out of memory", "gpu-error", VERDICT_ERROR,
	  "the GPU has no free memory for NCCL's buffers",
	  "Leave some GPU memory free: NCCL needs a few hundred MiB per communicator" },
	{ "uda failure", "ECC", "gpu-error", VERDICT_ERROR, "uncorrectable GPU memory error",
	  "Check dmesg on that node for Xid 48, 63, 94; drain and reset it" },
	{ "uda failure", "illegal memory access", "gpu-error", VERDICT_ERROR,
	  "illegal memory access by a kernel, often the program's own kernel before NCCL's",
	  "Check dmesg for Xid 31; run once with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer" },
	{ "uda failure", "launch failure", "gpu-error", VERDICT_ERROR,
	  "a kernel crashed on the GPU",
	  "Check dmesg on that node for Xid: 13 and 31 are software, 48, 74, 79, 94 hardware" },
	{ "uda failure", "driver version is insufficient", "gpu-error", VERDICT_ERROR,
	  "the driver is older than the CUDA version NCCL was built with",
	  "Install a newer driver, or NCCL for an older CUDA" },
	{ "uda failure", NULL, "gpu-error", VERDICT_ERROR,
	  "CUDA reported an error, possibly from an earlier kernel",
	  "Check dmesg on that node for Xid, and find the first error of any rank" },
	{ "Failed to CUDA", NULL, "gpu-error", VERDICT_ERROR,
	  "the GPU has no free memory for NCCL's buffers",
	  "Leave some GPU memory free: NCCL needs a few hundred MiB per communicator" },
	{ "CUDA Driver version found", NULL, "gpu-error", VERDICT_ERROR, "the driver is too old",
	  "Install a newer driver, or NCCL for an older CUDA" },
	{ "Detected mixed local Net device counts", NULL, "environment-differs", VERDICT_ERROR,
	  "nodes have different numbers of network cards",
	  "Find out which card is missing on which node; NCCL_IGNORE_NET_MISMATCH=1 continues "
	  "anyway" },
	{ "Could not find real path of", NULL, "virtual-topology", VERDICT_NOTE,
	  "a device is missing from the PCI topology",
	  "In a virtual machine, ask the provider for a topology file and set NCCL_TOPO_FILE; in a "
	  "container, check that /sys is mounted" },
	{ "is being ignored", NULL, "value-ignored", VERDICT_NOTE,
	  "NCCL did not accept a value as given", "Use an allowed value, or unset it" },
	{ "Bootstrap Root", NULL, "init-incomplete", VERDICT_ERROR,
	  "ranks disagree on the membership: wrong number of ranks, or a duplicate rank",
	  "Check that each rank has its own rank number and the same number of ranks" },
};

static const struct warning_rule *rule_for(const char *text)
{
	for (size_t i = 0; i < ARRAY_LENGTH(warning_rules); i++)
		if (strstr(text, warning_rules[i].has) != NULL &&
		    (warning_rules[i].and_has == NULL ||
		     strstr(text, warning_rules[i].and_has) != NULL))
			return &warning_rules[i];
	return NULL;
}

static const struct warning_rule unknown = {
	"",
	NULL,
	"nccl-warning",
	VERDICT_WARNING,
	"NCCL warned",
	"Read it in context in the log: the first warning of all ranks is closest to the cause",
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

/* Warnings are stored once per process: all of a kind are one finding. */
static void tell_warning(const struct setup *setup, const struct warning_rule *rule, size_t first)
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
		setup_group_add_process(setup, &group, warning->process);
		if (shown++ < SETUP_CITED)
			setup_cite(setup, verdict, warning->place, "NCCL WARN %s", warning->text);
	}
	if (rule == &unknown)
		verdict_title(verdict, "%llu unrecognized %s from NCCL", (unsigned long long)lines,
			      lines == 1 ? "warning" : "warnings");
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
	bool is_told[ARRAY_LENGTH(warning_rules) + 1] = { false };

	for (size_t i = 0; i < setup->log->warning_count; i++) {
		const struct warning_rule *rule = rule_for(setup->log->warnings[i].text);
		size_t number =
			rule != NULL ? (size_t)(rule - warning_rules) : ARRAY_LENGTH(warning_rules);

		if (is_told[number])
			continue;
		is_told[number] = true;
		tell_warning(setup, rule != NULL ? rule : &unknown, i);
	}
}

/* PyTorch's messages about NCCL: symptoms, not the cause. */

static bool is_timeout(const struct nccl_log_report *report)
{
	return strstr(report->text, "Watchdog caught") != NULL;
}

/* "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, ...": the number of the collective; -1 none. */
static int64_t sequence_of(const struct nccl_log_report *report)
{
	const char *at = strstr(report->text, "SeqNum=");

	return at != NULL ? strtoll(at + 7, NULL, 10) : -1;
}

static void cite_report(const struct setup *setup, struct verdict *verdict,
			const struct nccl_log_report *report)
{
	setup_cite(setup, verdict, report->place, "%s", report->text);
}

/* The rank that is furthest behind holds the others up, or is held up itself by a rank without a message:
 * reported, not blamed. */
static void cite_last(const struct setup *setup, struct verdict *verdict)
{
	const struct nccl_log_report *last = NULL, *first = NULL;

	for (size_t i = 0; i < setup->log->report_count; i++) {
		const struct nccl_log_report *report = &setup->log->reports[i];

		if (!is_timeout(report) || sequence_of(report) < 0)
			continue;
		if (last == NULL || sequence_of(report) < sequence_of(last))
			last = report;
		if (first == NULL || sequence_of(report) > sequence_of(first))
			first = report;
	}
	if (last == NULL || sequence_of(last) == sequence_of(first))
		return;
	cite_report(setup, verdict, last);
	verdict_evidence(verdict, "that rank is in collective #%lld, another one already in #%lld",
			 (long long)sequence_of(last), (long long)sequence_of(first));
	verdict->confidence = 0.6;
	verdict_missing(verdict, "numbers count per process group and compare only within one");
}

static const struct nccl_log_report *count_reports(const struct setup *setup, bool of_timeouts,
						   size_t *count)
{
	const struct nccl_log_report *first = NULL;

	*count = 0;
	for (size_t i = 0; i < setup->log->report_count; i++)
		if (is_timeout(&setup->log->reports[i]) == of_timeouts) {
			first = first != NULL ? first : &setup->log->reports[i];
			++*count;
		}
	return first;
}

static void find_timeouts(const struct setup *setup)
{
	size_t count;
	const struct nccl_log_report *first = count_reports(setup, true, &count);
	struct verdict *verdict;

	if (first == NULL)
		return;
	verdict = setup_verdict(setup, "torch-timeout", VERDICT_ERROR);
	verdict_title(verdict, "PyTorch's watchdog timed out on a collective in %zu %s", count,
		      count == 1 ? "report" : "reports");
	cite_report(setup, verdict, first);
	cite_last(setup, verdict);
	verdict_advice(verdict, "The ranks that report have waited; look for the rank without such "
				"a line, or with an earlier one");
	verdict_advice(verdict, "$ ringside doctor RECORDING");
	verdict->victims = (uint32_t)count;
}

static void find_errors(const struct setup *setup)
{
	size_t count;
	const struct nccl_log_report *first = count_reports(setup, false, &count);
	struct verdict *verdict;

	if (first == NULL)
		return;
	verdict = setup_verdict(setup, "nccl-error", VERDICT_ERROR);
	verdict_title(verdict, "PyTorch got an error from NCCL in %zu %s", count,
		      count == 1 ? "report" : "reports");
	cite_report(setup, verdict, first);
	verdict->rank = count == 1 ? first->rank : -1;
	if (setup->log->warning_count == 0)
		verdict_missing(
			verdict,
			"these logs have no NCCL warning with the cause: run with NCCL_DEBUG=WARN");
	verdict_advice(verdict, "Find the first NCCL WARN of all ranks: it shows the cause");
}

void setup_find_reports(const struct setup *setup)
{
	find_timeouts(setup);
	find_errors(setup);
}
