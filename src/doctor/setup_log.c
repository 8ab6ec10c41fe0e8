/*
 * Communicators that were never completed, or took long; plugins that were not loaded; warnings, diagnostics and slow
 * queue pairs.
 */
#include "doctor/setup_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/attributes.h"
#include "common/text.h"

enum { INIT_SLOW_S = 30, RANKS_NAMED = 400, RANGE_TEXT = 32 };

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

/* "3", "0-2,5", "0,2,4,...": the missing ranks. Sorted by rank. */
static size_t missing_ranks(const struct setup *setup, const uint32_t *order, size_t first,
			    size_t end, char *to, size_t size)
{
	int32_t nranks = comm_at(setup, order, first)->nranks, expected = 0;
	size_t missing = 0;
	bool is_cut = false;

	to[0] = '\0';
	for (size_t i = first; i <= end; i++) {
		int32_t rank = i < end ? comm_at(setup, order, i)->rank : nranks;

		if (rank > expected) {
			missing += (size_t)(rank - expected);
			is_cut |= strlen(to) > size - RANGE_TEXT;
			if (!is_cut)
				text_append(to, size, rank - expected > 1 ? "%s%d-%d" : "%s%d",
					    to[0] != '\0' ? "," : "", expected, rank - 1);
		}
		expected = rank + 1 > expected ? rank + 1 : expected;
	}
	if (is_cut)
		text_append(to, size, ",...");
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
	if (group.count > 1)
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

struct line_rule {
	const char *has;     /* a warning; a diagnosis begins with it */
	const char *and_has; /* NULL: nothing more */
	const char *rule;
	enum verdict_severity severity;
	const char *means;
	const char *advice;
};

#define CHOOSE_INTERFACE "Set NCCL_SOCKET_IFNAME to an interface that `ip -br address` shows as UP"
#define ENLARGE_SHM \
	"Enlarge /dev/shm: docker run --shm-size=8g; in Kubernetes an emptyDir with medium Memory"
#define RAISE_MEMLOCK                                                                          \
	"Raise the limit: ulimit -l unlimited; in containers --ulimit memlock=-1; with Slurm " \
	"PropagateResourceLimits"
#define SELECT_GPU \
	"Select the device by local rank: CUDA_VISIBLE_DEVICES, torch.cuda.set_device(LOCAL_RANK)"

/* The first match counts. */
static const struct line_rule warning_rules[] = {
	/* The words of 2.32 for these two are not known: its release notes announce them. */
	{ "it revision", NULL, "version-mismatch", VERDICT_WARNING,
	  "ranks run different builds of NCCL", SETUP_SAME_BUILD },
	{ "egraded", "NVLink", "nvlink-degraded", VERDICT_WARNING,
	  "the bandwidth of the NVLink fabric is reduced",
	  "Check the NVLinks and NVSwitches of that node, and the Fabric Manager" },
	{ "egraded", "fabric", "nvlink-degraded", VERDICT_WARNING,
	  "the bandwidth of the NVLink fabric is reduced",
	  "Check the NVLinks and NVSwitches of that node, and the Fabric Manager" },
	{ "Mismatched NCCL version", NULL, "version-mismatch", VERDICT_ERROR,
	  "ranks run different NCCL releases", SETUP_SAME_RELEASE },
	{ "NCCL version mismatch", NULL, "version-mismatch", VERDICT_ERROR,
	  "ranks run different NCCL releases", SETUP_SAME_RELEASE },
	{ "NCCL library", "compiled with NCCL version", "version-mismatch", VERDICT_ERROR,
	  "the program was built for a different NCCL release than it loaded",
	  "Check which libnccl.so is loaded: LD_LIBRARY_PATH, LD_PRELOAD, the container" },
	{ "no socket interface found", NULL, "interface-not-found", VERDICT_ERROR,
	  "no interface matches NCCL_SOCKET_IFNAME", CHOOSE_INTERFACE },
	{ "NET/Socket : no interface found", NULL, "interface-not-found", VERDICT_ERROR,
	  "no interface matches NCCL_SOCKET_IFNAME", CHOOSE_INTERFACE },
	{ "No interface found in the same subnet", NULL, "interface-not-found", VERDICT_ERROR,
	  "no interface of this node is in the peer's subnet",
	  "Set NCCL_SOCKET_IFNAME to an interface that all nodes share" },
	{ "No usable listening interface", NULL, "interface-not-found", VERDICT_ERROR,
	  "no interface can accept connections", CHOOSE_INTERFACE },
	{ "NET/IB : No IP interface found", NULL, "interface-not-found", VERDICT_ERROR,
	  "InfiniBand needs an IP interface to connect, and none matches", CHOOSE_INTERFACE },
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
	  "not enough shared memory, or it cannot be created", ENLARGE_SHM },
	{ "failed to extend", NULL, "shm-full", VERDICT_ERROR, "not enough space in /dev/shm",
	  ENLARGE_SHM },
	{ "No space left on device", NULL, "shm-full", VERDICT_ERROR,
	  "not enough space in /dev/shm", ENLARGE_SHM },
	{ "ibv_reg_mr", NULL, "memlock-limit", VERDICT_ERROR,
	  "memory could not be registered with the network card, usually because of the "
	  "locked-memory limit",
	  RAISE_MEMLOCK },
	{ "ibv_create", "Cannot allocate memory", "memlock-limit", VERDICT_ERROR,
	  "the network card's queues need more locked memory than allowed", RAISE_MEMLOCK },
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
	  SELECT_GPU },
	{ "using the same GPU", NULL, "duplicate-gpu", VERDICT_ERROR, "two ranks use the same GPU",
	  SELECT_GPU },
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
	{ "lib wrapper not initialized", NULL, "ib-disabled", VERDICT_NOTE,
	  "NCCL looked for InfiniBand although it is turned off",
	  "Nothing to do if InfiniBand is meant to be off: 2.29 and later warn of it" },
	{ "is being ignored", NULL, "value-ignored", VERDICT_NOTE,
	  "NCCL did not accept a value as given", "Use an allowed value, or unset it" },
	{ "Bootstrap Root", NULL, "init-incomplete", VERDICT_ERROR,
	  "ranks disagree on the membership: wrong number of ranks, or a duplicate rank",
	  "Check that each rank has its own rank number and the same number of ranks" },
};

static const struct line_rule *rule_for(const char *text)
{
	for (size_t i = 0; i < ARRAY_LENGTH(warning_rules); i++)
		if (strstr(text, warning_rules[i].has) != NULL &&
		    (warning_rules[i].and_has == NULL ||
		     strstr(text, warning_rules[i].and_has) != NULL))
			return &warning_rules[i];
	return NULL;
}

static const struct line_rule unknown = {
	"",
	NULL,
	"nccl-warning",
	VERDICT_WARNING,
	"NCCL warned",
	"Read it in context in the log: the first warning of all ranks is closest to the cause",
};

static const struct line_rule attention = {
	"",
	NULL,
	"nccl-attention",
	VERDICT_WARNING,
	"NCCL asks for attention",
	"Read it in context in the log: a setting that does not take effect, or a part that NCCL "
	"does without",
};

static const struct line_rule *rule_of(const struct nccl_log_warning *warning)
{
	const struct line_rule *rule = rule_for(warning->text);

	if (rule != NULL)
		return rule;
	return warning->is_attention ? &attention : &unknown;
}

static void add_advice(const struct setup *setup, struct verdict *verdict,
		       const struct line_rule *rule)
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
static void tell_warning(const struct setup *setup, const struct line_rule *rule, size_t first)
{
	const struct nccl_log *log = setup->log;
	struct setup_group group = { .count = 0 };
	struct verdict *verdict = setup_verdict(setup, rule->rule, rule->severity);
	uint64_t lines = 0;
	size_t shown = 0;
	char where[400];

	for (size_t i = first; i < log->warning_count; i++) {
		const struct nccl_log_warning *warning = &log->warnings[i];

		if (rule_of(warning) != rule)
			continue;
		lines += warning->lines;
		setup_group_add_process(setup, &group, warning->process);
		if (shown++ < SETUP_CITED)
			setup_cite(setup, verdict, warning->place, "NCCL %s %s",
				   warning->is_attention ? "ATTN" : "WARN", warning->text);
	}
	if (rule == &unknown)
		verdict_title(verdict, "%llu unrecognized %s from NCCL", (unsigned long long)lines,
			      lines == 1 ? "warning" : "warnings");
	else if (rule == &attention)
		verdict_title(verdict, "NCCL asks for attention with %llu %s",
			      (unsigned long long)lines, lines == 1 ? "message" : "messages");
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
	enum { KNOWN = ARRAY_LENGTH(warning_rules) };
	bool is_told[KNOWN + 2] = { false };

	for (size_t i = 0; i < setup->log->warning_count; i++) {
		const struct line_rule *rule = rule_of(&setup->log->warnings[i]);
		size_t number = rule == &unknown     ? KNOWN
				: rule == &attention ? KNOWN + 1
						     : (size_t)(rule - warning_rules);

		if (is_told[number])
			continue;
		is_told[number] = true;
		tell_warning(setup, rule, i);
	}
}

/* NCCL's diagnostics. What they print is [OK] or [INFO], and [INFO] is a problem or a check that was not possible. */

/* The first match counts. */
static const struct line_rule diagnosis_rules[] = {
	{ "Xid/SXid:", NULL, "diagnostics", VERDICT_NOTE,
	  "NCCL's diagnostics could not read the kernel log",
	  "Read it yourself: dmesg | grep -i xid" },
	{ "Xid ", NULL, "gpu-error", VERDICT_WARNING, "the kernel log has GPU errors (Xid)",
	  "Look up the Xid in NVIDIA's catalog: 48, 74, 79, 94 and 95 are hardware" },
	{ "SXid ", NULL, "gpu-error", VERDICT_WARNING, "the kernel log has NVSwitch errors (SXid)",
	  "Check the NVSwitches and the Fabric Manager of that host" },
	{ "ECC: uncorrected", NULL, "gpu-error", VERDICT_WARNING,
	  "GPUs have uncorrected memory errors", "Drain the node and reset or replace the GPU" },
	{ "ECC: corrected", NULL, "gpu-error", VERDICT_NOTE,
	  "GPUs have many corrected memory errors",
	  "Watch the GPU: nvidia-smi -q -d ECC; many corrected errors announce uncorrected ones" },
	{ "NVLink: inactive", NULL, "nvlink-degraded", VERDICT_WARNING, "NVLinks are inactive",
	  "Check the links: nvidia-smi nvlink -s; reset the GPU or drain the node" },
	{ "NVLink: link-count mismatch", NULL, "nvlink-degraded", VERDICT_WARNING,
	  "GPUs have different numbers of NVLinks", "Check the links: nvidia-smi nvlink -s" },
	{ "NVLink: inconsistent", NULL, "nvlink-degraded", VERDICT_WARNING,
	  "NVLinks run at different speeds", "Check the links: nvidia-smi nvlink -s" },
	{ "GPU inventory:", "mismatch", "environment-differs", VERDICT_WARNING,
	  "nodes have different GPUs or numbers of GPUs",
	  "Find out which GPU is missing or different; nvidia-smi -L on all nodes" },
	{ "", "driver version: mismatch", "environment-differs", VERDICT_WARNING,
	  "ranks run with different drivers", "Install the same driver on all nodes" },
	{ "NCCL environment:", "comparison may be partial", "diagnostics", VERDICT_NOTE,
	  "NCCL's diagnostics could not compare all variables",
	  "Compare the NCCL_* variables of all ranks" },
	{ "NCCL environment:", "incomplete", "diagnostics", VERDICT_NOTE,
	  "NCCL's diagnostics are incomplete", "Run them again when all ranks answer" },
	{ "NCCL environment:", NULL, "environment-differs", VERDICT_WARNING,
	  "NCCL's variables differ between ranks",
	  "Set them to the same value on all ranks, or on none" },
	{ "Net device", "port is not active", "diagnostics", VERDICT_WARNING,
	  "the port of a network card is not active",
	  "Check the port, the cable and the switch: ibstat, rdma link" },
	{ "Net device", "may be missing", "diagnostics", VERDICT_WARNING,
	  "nodes have different network cards",
	  "Compare ibstat, or rdma link, of the nodes: a card may be missing or renamed" },
	{ "Net device", "differ", "diagnostics", VERDICT_WARNING,
	  "network cards differ in speed, state or kind",
	  "Compare ibstat, or rdma link, of the nodes: a port may run below its speed" },
	{ "p2p: write mismatch", NULL, "diagnostics", VERDICT_ERROR,
	  "data written from one GPU to another arrived damaged",
	  "Do not train on that node: check ACS and the IOMMU, then NVLink and the GPUs" },
	{ "p2p: read mismatch", NULL, "diagnostics", VERDICT_ERROR,
	  "data read by one GPU from another was damaged",
	  "Do not train on that node: check ACS and the IOMMU, then NVLink and the GPUs" },
	{ "p2p:", NULL, "diagnostics", VERDICT_WARNING,
	  "direct transfers between GPUs of a node failed their check",
	  "Look at the warnings before these lines; check ACS and the IOMMU, NVLink and the GPUs" },
	{ "", "incomplete", "diagnostics", VERDICT_NOTE, "NCCL's diagnostics are incomplete",
	  "Run them again when all ranks answer" },
	{ "", "unavailable", "diagnostics", VERDICT_NOTE,
	  "NCCL's diagnostics could not check something",
	  "Check by hand what they could not: nvidia-smi -q" },
	{ "", "skipped", "diagnostics", VERDICT_NOTE,
	  "NCCL's diagnostics could not check something", "Check by hand what they could not" },
	{ "", "not inspected", "diagnostics", VERDICT_NOTE,
	  "NCCL's diagnostics could not check something", "Check by hand what they could not" },
	{ "", NULL, "diagnostics", VERDICT_NOTE, "NCCL's diagnostics report something",
	  "Read the lines: NCCL does not say whether they are errors" },
};

static const struct line_rule *diagnosis_rule(const char *text)
{
	const struct line_rule *rule = diagnosis_rules;

	while (strncmp(text, rule->has, strlen(rule->has)) != 0 ||
	       (rule->and_has != NULL && strstr(text, rule->and_has) == NULL))
		rule++; /* the last one matches everything */
	return rule;
}

/* The processes of the ranks it names, if their logs are here. */
static void add_diagnosed(const struct setup *setup, struct setup_group *group,
			  const struct nccl_log_diagnosis *diagnosis)
{
	for (size_t i = 0; i < setup->log->comm_count && diagnosis->comm_hash != 0; i++) {
		const struct nccl_log_comm *comm = &setup->log->comms[i];

		for (size_t j = 0; j < diagnosis->rank_count; j++)
			if (comm->hash == diagnosis->comm_hash && comm->rank == diagnosis->ranks[j])
				setup_group_add_process(setup, group, comm->process);
	}
}

static void tell_diagnosis(const struct setup *setup, const struct line_rule *rule)
{
	const struct nccl_log *log = setup->log;
	struct setup_group group = { .count = 0 };
	struct verdict *verdict = NULL;
	size_t shown = 0;
	char where[400] = "";

	for (size_t i = 0; i < log->diagnosis_count; i++) {
		const struct nccl_log_diagnosis *diagnosis = &log->diagnoses[i];

		if (diagnosis_rule(diagnosis->text) != rule)
			continue;
		if (verdict == NULL)
			verdict = setup_verdict(setup, rule->rule, rule->severity);
		/* Those that are cited are enough to name ranks. */
		if (shown < SETUP_CITED)
			add_diagnosed(setup, &group, diagnosis);
		if (shown++ < SETUP_CITED)
			setup_cite(setup, verdict, diagnosis->place, "NCCL DIAG %s",
				   diagnosis->text);
	}
	if (verdict == NULL)
		return;
	if (group.count > 0)
		setup_group_text(setup, &group, where, sizeof(where));
	verdict_title(verdict, "%s%s%s", rule->means, where[0] != '\0' ? ", " : "", where);
	if (shown > SETUP_CITED)
		verdict_evidence(verdict, "and %zu more of this kind", shown - SETUP_CITED);
	verdict_advice(verdict, "%s", rule->advice);
	if (rule->severity != VERDICT_NOTE && shown <= SETUP_CITED)
		setup_blame(setup, verdict, &group);
}

void setup_find_diagnoses(const struct setup *setup)
{
	if (setup->log->diagnosis_count == 0)
		return;
	for (size_t i = 0; i < ARRAY_LENGTH(diagnosis_rules); i++)
		tell_diagnosis(setup, &diagnosis_rules[i]);
}

/*
 * Queue pairs. The proxy of the sender posts only what the receiver has made room for, so a send without a completion is
 * the network's: the NICs, the cable, the switches, or a peer that is gone. Below a second it can also be a busy host.
 */

#define STALL_NS UINT64_C(1000000000)
#define LATE_NS UINT64_C(100000000)

/* The host that uses this address for its connections, if its log is here. */
static const char *host_of_address(const struct setup *setup, const char *address)
{
	char part[128];

	if (address[0] == '\0')
		return "";
	text_format(part, sizeof(part), ":%.100s<", address);
	for (size_t i = 0; i < setup->log->note_count; i++) {
		const struct nccl_log_note *note = &setup->log->notes[i];

		if (note->kind == NCCL_LOG_KIND_BOOTSTRAP && strstr(note->text, part) != NULL)
			return setup->log->processes[note->process].host;
	}
	return "";
}

static const struct setup_who *who_of_queue(const struct setup *setup,
					    const struct nccl_log_queue *queue)
{
	return &setup->whos[setup->who_of_logged[queue->process]];
}

/* "10.0.0.2 (node2)" */
static const char *say_peer(const struct setup *setup, const struct nccl_log_queue *queue, char *to,
			    size_t size)
{
	const char *host = host_of_address(setup, queue->peer);

	text_format(to, size, "%.100s", queue->peer[0] != '\0' ? queue->peer : "an unknown peer");
	if (host[0] != '\0')
		text_append(to, size, " (%.100s)", host);
	return to;
}

static void cite_stall(const struct setup *setup, struct verdict *verdict,
		       const struct nccl_log_queue *queue)
{
	char age[UNITS_TEXT], threshold[UNITS_TEXT], peer[256];

	setup_cite(setup, verdict, queue->last,
		   "WQE %s: %s port %d, queue pair %lld to %s, queue pair %lld: no completion "
		   "for %s%s, %llu in flight, threshold %s",
		   queue->is_stalled ? "stall" : "stall that ended", queue->device, queue->port,
		   (long long)queue->number, say_peer(setup, queue, peer, sizeof(peer)),
		   (long long)queue->remote_number, units_duration(age, queue->stall_ns),
		   queue->is_stalled ? "" : " at most", (unsigned long long)queue->in_flight,
		   units_duration(threshold, queue->threshold_ns));
}

/* ---- next to a hang -------------------------------------------------------------------------- */

static bool is_of_verdict(const struct setup *setup, const struct nccl_log_queue *queue,
			  const struct verdict *verdict)
{
	const struct setup_who *who = who_of_queue(setup, queue);

	if (verdict->host[0] == '\0' || !setup_same_host(who->host, verdict->host))
		return false;
	if (who->pid >= 0 && who->pid == verdict->pid)
		return true;
	/* In a container the log may have another process id. */
	return who->recorded < 0 && who->rank >= 0 && who->rank == verdict->rank;
}

/* What NCCL says about the link of this verdict: its sender's NIC, and the peer. The longest stall of those that last. */
static void support_link(const struct setup *setup, struct verdict *verdict, bool *is_used)
{
	const struct nccl_log_queue *worst = NULL;
	bool is_peer_known = false;

	for (size_t i = 0; i < setup->log->queue_count; i++) {
		const struct nccl_log_queue *queue = &setup->log->queues[i];
		const char *host;

		if (!queue->is_stalled || queue->stall_ns < STALL_NS ||
		    !is_of_verdict(setup, queue, verdict))
			continue;
		host = host_of_address(setup, queue->peer);
		if (host[0] != '\0' && verdict->peer_host[0] != '\0' &&
		    !setup_same_host(host, verdict->peer_host))
			continue; /* another link of the same rank */
		is_used[i] = true;
		if (worst != NULL && queue->stall_ns <= worst->stall_ns)
			continue;
		worst = queue;
		is_peer_known = host[0] != '\0' && verdict->peer_host[0] != '\0';
	}
	if (worst == NULL)
		return;
	cite_stall(setup, verdict, worst);
	if (is_peer_known)
		verdict->confidence = 1 - (1 - verdict->confidence) / 2;
	else
		verdict_missing(verdict,
				"these logs do not show whose address %s is: the stalled "
				"queue pair of %s may lead to another rank",
				worst->peer, worst->device);
	verdict_advice(verdict,
		       "Check port %d of %s, its cable and switch port, and the NIC of "
		       "the peer",
		       worst->port, worst->device);
	verdict_advice(verdict, "$ ibstat %s %d; perfquery -x", worst->device, worst->port);
}

/* ---- alone ----------------------------------------------------------------------------------- */

struct stalls {
	const struct nccl_log_queue *worst; /* one that lasts, if any does */
	size_t count;
	bool is_one_device, is_one_peer;
	struct setup_group group;
};

static bool is_worse(const struct nccl_log_queue *queue, const struct nccl_log_queue *than)
{
	if (queue->is_stalled != than->is_stalled)
		return queue->is_stalled;
	return queue->stall_ns > than->stall_ns;
}

static void add_stall(const struct setup *setup, struct stalls *stalls,
		      const struct nccl_log_queue *queue)
{
	const struct nccl_log_queue *worst = stalls->worst;

	setup_group_add_process(setup, &stalls->group, queue->process);
	if (stalls->count++ == 0) {
		stalls->worst = queue;
		stalls->is_one_device = stalls->is_one_peer = true;
		return;
	}
	stalls->is_one_device &=
		strcmp(queue->device, worst->device) == 0 &&
		setup_same_host(who_of_queue(setup, queue)->host, who_of_queue(setup, worst)->host);
	stalls->is_one_peer &= queue->peer[0] != '\0' && strcmp(queue->peer, worst->peer) == 0;
	if (is_worse(queue, worst))
		stalls->worst = queue;
}

static void title_stalls(const struct setup *setup, struct verdict *verdict,
			 const struct stalls *stalls)
{
	const struct nccl_log_queue *worst = stalls->worst;
	const char *host = who_of_queue(setup, worst)->host;
	char age[UNITS_TEXT], peer[256];

	units_duration(age, worst->stall_ns);
	say_peer(setup, worst, peer, sizeof(peer));
	if (!worst->is_stalled)
		verdict_title(verdict, "sends stalled for up to %s and went on: %s on %s", age,
			      worst->device, host);
	else if (stalls->is_one_device && stalls->is_one_peer)
		verdict_title(verdict, "%s on %s has not completed sends to %s for %s",
			      worst->device, host, peer, age);
	else if (stalls->is_one_device)
		verdict_title(verdict, "%s on %s has not completed sends on %zu queue pairs for %s",
			      worst->device, host, stalls->count, age);
	else if (stalls->is_one_peer)
		verdict_title(verdict, "sends to %s have not completed for %s, from several NICs",
			      peer, age);
	else
		verdict_title(verdict, "%zu queue pairs have not completed sends for up to %s",
			      stalls->count, age);
}

static void find_stalls(const struct setup *setup, const bool *is_used)
{
	struct stalls stalls = { .count = 0 };
	struct verdict *verdict;
	size_t shown = 0;

	for (size_t i = 0; i < setup->log->queue_count; i++)
		if (!is_used[i] && setup->log->queues[i].stall_ns >= STALL_NS)
			add_stall(setup, &stalls, &setup->log->queues[i]);
	if (stalls.count == 0)
		return;
	verdict = setup_verdict(setup, "ib-stall", VERDICT_WARNING);
	title_stalls(setup, verdict, &stalls);
	cite_stall(setup, verdict, stalls.worst);
	for (size_t i = 0; i < setup->log->queue_count && shown < SETUP_CITED - 1; i++)
		if (!is_used[i] && setup->log->queues[i].stall_ns >= STALL_NS &&
		    &setup->log->queues[i] != stalls.worst) {
			cite_stall(setup, verdict, &setup->log->queues[i]);
			shown++;
		}
	if (stalls.count > shown + 1)
		verdict_evidence(verdict, "and %zu more queue pairs", stalls.count - shown - 1);
	verdict->confidence =
		stalls.worst->is_stalled && stalls.worst->stall_ns >= 10 * STALL_NS ? 0.9 : 0.7;
	if (!stalls.is_one_device && !stalls.is_one_peer)
		verdict->confidence = 0.6;
	verdict_missing(verdict, "the log does not show whether the cable, a switch or the NIC of "
				 "either end is the cause, nor whether the job waits for it");
	verdict_advice(verdict,
		       "Check port %d of %s, its cable and switch port, and the NIC of "
		       "the peer",
		       stalls.worst->port, stalls.worst->device);
	verdict_advice(verdict, "$ ibstat %s %d; perfquery -x", stalls.worst->device,
		       stalls.worst->port);
	setup_blame(setup, verdict, &stalls.group);
}

static uint64_t latest_of(const struct nccl_log_queue *queue)
{
	return queue->slowest_ns > queue->stall_ns ? queue->slowest_ns : queue->stall_ns;
}

static bool is_late(const struct nccl_log_queue *queue)
{
	return queue->stall_ns < STALL_NS &&
	       (queue->slow_lines > 0 || queue->slow_samples > 0 || queue->stall_lines > 0);
}

/* The threshold is the user's, so most of these are worth no more than a note. */
static void find_late(const struct setup *setup)
{
	const struct nccl_log_queue *worst = NULL;
	struct setup_group group = { .count = 0 };
	char time[UNITS_TEXT], threshold[UNITS_TEXT], median[UNITS_TEXT], p99[UNITS_TEXT];
	struct verdict *verdict;
	size_t count = 0;

	for (size_t i = 0; i < setup->log->queue_count; i++) {
		const struct nccl_log_queue *queue = &setup->log->queues[i];

		if (!is_late(queue))
			continue;
		count++;
		setup_group_add_process(setup, &group, queue->process);
		if (worst == NULL || latest_of(queue) > latest_of(worst))
			worst = queue;
	}
	if (worst == NULL)
		return;
	verdict = setup_verdict(setup, "ib-stall",
				latest_of(worst) >= LATE_NS ? VERDICT_WARNING : VERDICT_NOTE);
	units_duration(threshold, worst->threshold_ns);
	verdict_title(verdict, "sends completed late on %zu queue %s: up to %s on %s (%s)", count,
		      count == 1 ? "pair" : "pairs", units_duration(time, latest_of(worst)),
		      worst->device, who_of_queue(setup, worst)->host);
	setup_cite(setup, verdict, worst->last,
		   "WQE slow: %s port %d, queue pair %lld to %s: %s, threshold %s", worst->device,
		   worst->port, (long long)worst->number, worst->peer, time, threshold);
	if (worst->samples > 0)
		verdict_evidence(verdict, "of %llu sends there: median %s, 99%% below %s",
				 (unsigned long long)worst->samples,
				 units_duration(median, worst->median_ns),
				 units_duration(p99, worst->p99_ns));
	verdict->confidence = 0.6;
	verdict_missing(verdict, "the time includes the host: a busy CPU looks the same");
	verdict_advice(verdict, "Compare %s with the other NICs of the node, and with the CPU load",
		       worst->device);
	verdict_advice(verdict, "$ ringside report RECORDING");
	setup_blame(setup, verdict, &group);
}

enum status setup_find_queues(const struct setup *setup)
{
	bool *is_used;

	if (setup->log->queue_count == 0)
		return OK;
	is_used = calloc(setup->log->queue_count, sizeof(*is_used));
	if (is_used == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < setup->verdicts->count; i++)
		if (setup->verdicts->list[i].class == VERDICT_NETWORK_STUCK)
			support_link(setup, &setup->verdicts->list[i], is_used);
	find_stalls(setup, is_used);
	find_late(setup);
	free(is_used);
	return OK;
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
static void cite_last(const struct setup *setup, struct verdict *verdict,
		      const struct nccl_log_report *cited)
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
	if (last != cited)
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
	cite_last(setup, verdict, first);
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
