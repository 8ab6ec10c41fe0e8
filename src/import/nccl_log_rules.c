/*
 * Classifies lines: what PyTorch says about NCCL (watchdog timeouts and errors it passes on), and
 * rules for NCCL's own messages.
 */
#include "import/nccl_log.h"
#include "import/nccl_log_internal.h"

#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"

static bool is_report(struct log_text text)
{
	static const char *const words[] = {
		"Watchdog caught", "unhandled cuda error",     "unhandled system error",
		"NCCL error in",   "remote process exited or", "NCCL operations have failed",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
		if (log_has(text, words[i]))
			return true;
	return false;
}

/* "[rank3]:", "[Rank 3]" */
static int64_t rank_in(struct log_text text)
{
	int64_t rank;

	if ((log_find(&text, "[rank") || log_find(&text, "[Rank ")) && log_number(&text, &rank) &&
	    LOG_SKIP(&text, "]"))
		return rank;
	return -1;
}

void log_take_report(struct nccl_log *log, struct log_text text, struct nccl_log_place place)
{
	struct nccl_log_report *report;
	int64_t rank;
	bool is_new;

	if (!log_has(text, "NCCL") || !is_report(text))
		return;
	rank = rank_in(text);
	report = log_entry(log, LOG_REPORTS,
			   hash_word(hash_word(17, (uint64_t)rank), log_shape(text)), &is_new);
	if (report == NULL)
		return;
	if (is_new)
		*report = (struct nccl_log_report){ .rank = rank,
						    .text = log_keep(log, log_trim(text)),
						    .place = place };
	report->lines++;
}

/*
 * The beginning of a message tells what it means: a table of beginnings, by first byte. Messages
 * that begin with a name or a number are recognized by their contents. The rest is counted by
 * beginning.
 */

enum how {
	COUNT = 0, /* nothing of interest in it */
	NOTE = 1,  /* kept as it is */
};

struct rule {
	const char *beginning;
	size_t length;
	enum nccl_log_kind kind;
	enum how how;
	log_taker *take; /* if NULL, by the above */
};

#define BEGINS(text) (text), sizeof(text) - 1

/* Sorted by first byte; the first match counts. */
static const struct rule rules[] = {
	{ BEGINS("+ "), NCCL_LOG_KIND_GRAPH, COUNT, NULL },
	{ BEGINS("===="), NCCL_LOG_KIND_GRAPH, COUNT, NULL },
	{ BEGINS("=== System"), NCCL_LOG_KIND_TOPOLOGY, NOTE, NULL },
	{ BEGINS("[Rank "), 0, 0, log_take_init },
	{ BEGINS("[Proxy "), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("[Service thread]"), NCCL_LOG_KIND_PROXY, NOTE, NULL },
	{ BEGINS("["), NCCL_LOG_KIND_IB, COUNT,
	  NULL }, /* queue pairs of GIN: "[3] Created a QP ..." */
	{ BEGINS("Allocated shareable"), NCCL_LOG_KIND_MEMORY, COUNT, NULL },
	{ BEGINS("Allocated "), NCCL_LOG_KIND_SHM, COUNT, NULL },
	{ BEGINS("Assigned "), NCCL_LOG_KIND_NETWORK, NOTE, NULL },
	{ BEGINS("Bootstrap timings"), 0, 0, log_take_bootstrap_timings },
	{ BEGINS("Bootstrap"), NCCL_LOG_KIND_BOOTSTRAP, NOTE, NULL },
	{ BEGINS("Binding multicast"), NCCL_LOG_KIND_NVLS, COUNT, NULL },
	{ BEGINS("Buffer "), NCCL_LOG_KIND_REGISTRATION, NOTE, NULL },
	{ BEGINS("Channel "), 0, 0, log_take_link },
	{ BEGINS("Connected all "), 0, 0, log_take_connected },
	{ BEGINS("Connected NVLS tree"), NCCL_LOG_KIND_NVLS, COUNT, NULL },
	{ BEGINS("Connected binomial"), NCCL_LOG_KIND_INIT, COUNT, NULL },
	{ BEGINS("Connected Collnet"), NCCL_LOG_KIND_COLLNET, COUNT, NULL },
	{ BEGINS("Connected collnet"), NCCL_LOG_KIND_COLLNET, COUNT, NULL },
	{ BEGINS("Connected to proxy"), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("Connection to proxy"), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("Check P2P Type"), NCCL_LOG_KIND_P2P, NOTE, NULL },
	{ BEGINS("CollNet "), 0, 0, log_take_collnet_link },
	{ BEGINS("Collnet Chains"), NCCL_LOG_KIND_COLLNET, COUNT, NULL },
	{ BEGINS("Comm config"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("Communicator has"), NCCL_LOG_KIND_COLLNET, NOTE, NULL },
	{ BEGINS("CommRevoke"), NCCL_LOG_KIND_INIT, NOTE, NULL },
	{ BEGINS("Could not enable P2P"), NCCL_LOG_KIND_P2P, NOTE, NULL },
	{ BEGINS("Could not get speed"), NCCL_LOG_KIND_NET_DEVICE, NOTE, NULL },
	{ BEGINS("Could not open XML"), NCCL_LOG_KIND_TOPOLOGY, NOTE, NULL },
	{ BEGINS("Could not find a path"), NCCL_LOG_KIND_TOPOLOGY, NOTE, NULL },
	{ BEGINS("Could not find PCI"), NCCL_LOG_KIND_TOPOLOGY, NOTE, NULL },
	{ BEGINS("Could not find real path"), NCCL_LOG_KIND_TOPOLOGY, NOTE, NULL },
	{ BEGINS("Call to connect"), NCCL_LOG_KIND_RETRY, NOTE, NULL },
	{ BEGINS("Call to accept"), NCCL_LOG_KIND_RETRY, NOTE, NULL },
	{ BEGINS("Call to ibv"), NCCL_LOG_KIND_IB, NOTE, NULL },
	{ BEGINS("Call to "), NCCL_LOG_KIND_RETURN, NOTE, NULL },
	{ BEGINS("Capping "), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("Compute Capability"), NCCL_LOG_KIND_PLUGIN, NOTE, NULL },
	{ BEGINS("Continuing in spite"), NCCL_LOG_KIND_RAS, NOTE, NULL },
	{ BEGINS("CC "), NCCL_LOG_KIND_INIT, NOTE, NULL },
	{ BEGINS("CPU/"), NCCL_LOG_KIND_GRAPH, COUNT, NULL },
	{ BEGINS("CPUs with mixed"), NCCL_LOG_KIND_TOPOLOGY, NOTE, NULL },
	{ BEGINS("CTAPolicy"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("CUMEM "), NCCL_LOG_KIND_MEMORY, COUNT, NULL },
	{ BEGINS("Cleanup buffer"), NCCL_LOG_KIND_REGISTRATION, COUNT, NULL },
	{ BEGINS("Closing tuner"), NCCL_LOG_KIND_PLUGIN, COUNT, NULL },
	{ BEGINS("Created shared memory"), NCCL_LOG_KIND_SHM, COUNT, NULL },
	{ BEGINS("Cross-clique"), NCCL_LOG_KIND_MNNVL, NOTE, NULL },
	{ BEGINS("Cuda "), NCCL_LOG_KIND_MEMORY, COUNT, NULL },
	{ BEGINS("DMA-BUF "), NCCL_LOG_KIND_DMABUF, NOTE, NULL },
	{ BEGINS("Detected "), NCCL_LOG_KIND_NET_DEVICE, NOTE, NULL },
	{ BEGINS("Did not find child"), NCCL_LOG_KIND_TOPOLOGY, COUNT, NULL },
	{ BEGINS("Disabling "), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("ENV/Plugin"), 0, 0, log_take_plugin },
	{ BEGINS("ENV: "), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("Enabled NCCL Func"), NCCL_LOG_KIND_TUNING, COUNT, NULL },
	{ BEGINS("External "), 0, 0, log_take_plugin_state },
	{ BEGINS("Failed to initialize any"), NCCL_LOG_KIND_PLUGIN, NOTE, NULL },
	{ BEGINS("Failed to initialize "), 0, 0, log_take_plugin_state },
	{ BEGINS("Failed to bind NVLink SHARP"), NCCL_LOG_KIND_NVLS, NOTE, NULL },
	{ BEGINS("Failed to multicast"), NCCL_LOG_KIND_NVLS, NOTE, NULL },
	{ BEGINS("Failed to open lib"), NCCL_LOG_KIND_IB, NOTE, NULL },
	{ BEGINS("Failed to get DMA-BUF"), NCCL_LOG_KIND_DMABUF, NOTE, NULL },
	{ BEGINS("Failed to register memory"), NCCL_LOG_KIND_DMABUF, NOTE, NULL },
	{ BEGINS("Failed to read refresh"), NCCL_LOG_KIND_TOPOLOGY, COUNT, NULL },
	{ BEGINS("Found child net"), NCCL_LOG_KIND_TOPOLOGY, COUNT, NULL },
	{ BEGINS("Found network interface"), NCCL_LOG_KIND_NET_DEVICE, NOTE, NULL },
	{ BEGINS("GPU Direct RDMA "), 0, 0, log_take_gdr },
	{ BEGINS("GPU/"), NCCL_LOG_KIND_GRAPH, COUNT, NULL },
	{ BEGINS("GPU "), NCCL_LOG_KIND_C2C, NOTE, NULL },
	{ BEGINS("GIN/Plugin"), 0, 0, log_take_plugin },
	{ BEGINS("GIN"), NCCL_LOG_KIND_PLUGIN, NOTE, NULL },
	{ BEGINS("GDRCOPY "), NCCL_LOG_KIND_GDR, NOTE, NULL },
	{ BEGINS("HINT: "), NCCL_LOG_KIND_IB, NOTE, NULL },
	{ BEGINS("Init timings"), 0, 0, log_take_timings },
	{ BEGINS("Initialized state"), NCCL_LOG_KIND_TOPOLOGY, COUNT, NULL },
	{ BEGINS("Initialized a devComm"), NCCL_LOG_KIND_INIT, COUNT, NULL },
	{ BEGINS("Intrusive map"), NCCL_LOG_KIND_REGISTRATION, COUNT, NULL },
	{ BEGINS("Initialized "), 0, 0, log_take_plugin_state },
	{ BEGINS("Imported shareable"), NCCL_LOG_KIND_MEMORY, COUNT, NULL },
	{ BEGINS("Ignoring element"), NCCL_LOG_KIND_TOPOLOGY, COUNT, NULL },
	{ BEGINS("Invalid "), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("Inserted window"), NCCL_LOG_KIND_REGISTRATION, COUNT, NULL },
	{ BEGINS("Init CE"), NCCL_LOG_KIND_INIT, COUNT, NULL },
	{ BEGINS("IPC "), NCCL_LOG_KIND_MEMORY, COUNT, NULL },
	{ BEGINS("Inspector"), NCCL_LOG_KIND_PROFILER, COUNT, NULL },
	{ BEGINS("KV Convert"), NCCL_LOG_KIND_TOPOLOGY, COUNT, NULL },
	{ BEGINS("Loading topology"), NCCL_LOG_KIND_TOPOLOGY, NOTE, NULL },
	{ BEGINS("Loading unnamed"), NCCL_LOG_KIND_TOPOLOGY, NOTE, NULL },
	{ BEGINS("Loading graphs"), NCCL_LOG_KIND_TOPOLOGY, NOTE, NULL },
	{ BEGINS("Loaded NVML"), NCCL_LOG_KIND_INIT, COUNT, NULL },
	{ BEGINS("Last reference to shared"), NCCL_LOG_KIND_SHM, COUNT, NULL },
	{ BEGINS("Legacy IPC"), NCCL_LOG_KIND_P2P, NOTE, NULL },
	{ BEGINS("LSA extended"), NCCL_LOG_KIND_MNNVL, NOTE, NULL },
	{ BEGINS("Local Net device"), NCCL_LOG_KIND_NET_DEVICE, NOTE, NULL },
	{ BEGINS("Local CollNet"), NCCL_LOG_KIND_COLLNET, NOTE, NULL },
	{ BEGINS("MNNVL"), NCCL_LOG_KIND_MNNVL, NOTE, NULL },
	{ BEGINS("MemManager"), NCCL_LOG_KIND_MEMORY, COUNT, NULL },
	{ BEGINS("Mem Realloc"), NCCL_LOG_KIND_MEMORY, COUNT, NULL },
	{ BEGINS("MMAP "), NCCL_LOG_KIND_MEMORY, COUNT, NULL },
	{ BEGINS("Max P2P Peers"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("Marking physical"), NCCL_LOG_KIND_TOPOLOGY, COUNT, NULL },
	{ BEGINS("NCCL version "), 0, 0, log_take_version },
	{ BEGINS("NCCL git version "), 0, 0, log_take_git },
	{ BEGINS("NCCL progress counter"), NCCL_LOG_KIND_RAS, NOTE, NULL },
	{ BEGINS("NCCL Inspector"), NCCL_LOG_KIND_PROFILER, COUNT, NULL },
	{ BEGINS("NCCL_"), 0, 0, log_take_variable },
	{ BEGINS("NCCL_"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("NET/Plugin"), 0, 0, log_take_plugin },
	{ BEGINS("NET/IB : Using"), 0, 0, log_take_net_using },
	{ BEGINS("NET/Socket : Using"), 0, 0, log_take_net_using },
	{ BEGINS("NET/IB : Made"), 0, 0, log_take_virtual_device },
	{ BEGINS("NET/IB : "), 0, 0, log_take_net_gdr },
	{ BEGINS("NET/IB : No device"), NCCL_LOG_KIND_NETWORK, NOTE, NULL },
	{ BEGINS("NET/IB"), NCCL_LOG_KIND_IB, NOTE, NULL },
	{ BEGINS("NET/MLX5"), NCCL_LOG_KIND_IB, NOTE, NULL },
	{ BEGINS("NET/OFI"), NCCL_LOG_KIND_OFI, NOTE, NULL },
	{ BEGINS("NET/Socket: Using"), NCCL_LOG_KIND_NET_DEVICE, NOTE, NULL },
	{ BEGINS("NET/"), 0, 0, log_take_net_gdr },
	{ BEGINS("NET/"), NCCL_LOG_KIND_GRAPH, COUNT, NULL }, /* "NET/0-0 :GPU/0-60 (...)" */
	{ BEGINS("NET_IB"), NCCL_LOG_KIND_IB, NOTE, NULL },
	{ BEGINS("NIC/"), NCCL_LOG_KIND_GRAPH, COUNT, NULL },
	{ BEGINS("NVS/"), NCCL_LOG_KIND_GRAPH, COUNT, NULL },
	{ BEGINS("NVLS multicast support"), NCCL_LOG_KIND_NVLS, NOTE, NULL },
	{ BEGINS("NVLS"), NCCL_LOG_KIND_NVLS, COUNT, NULL },
	{ BEGINS("NVLink target"), NCCL_LOG_KIND_TOPOLOGY, NOTE, NULL },
	{ BEGINS("Net : "), NCCL_LOG_KIND_BOOTSTRAP, NOTE, NULL },
	{ BEGINS("New proxy"), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("No NVML device"), NCCL_LOG_KIND_TOPOLOGY, NOTE, NULL },
	{ BEGINS("No valid CTA"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("Number of segments"), NCCL_LOG_KIND_REGISTRATION, COUNT, NULL },
	{ BEGINS("Opened tuner"), 0, 0, log_take_plugin_words },
	{ BEGINS("P2P Chunksize"), NCCL_LOG_KIND_CHANNELS, NOTE, NULL },
	{ BEGINS("P2P "), NCCL_LOG_KIND_P2P, NOTE, NULL },
	{ BEGINS("PXN Disabled"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("PROFILER/Plugin: init"), NCCL_LOG_KIND_PROFILER, COUNT, NULL },
	{ BEGINS("PROFILER/Plugin"), 0, 0, log_take_plugin },
	{ BEGINS("PARAM: "), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("PCI/"), NCCL_LOG_KIND_GRAPH, COUNT, NULL },
	{ BEGINS("Parsed environment"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("Paths from"), NCCL_LOG_KIND_GRAPH, COUNT, NULL },
	{ BEGINS("Pattern "), NCCL_LOG_KIND_GRAPH, NOTE, NULL },
	{ BEGINS("Peer "), NCCL_LOG_KIND_NVLS, COUNT, NULL },
	{ BEGINS("Plugin name set"), 0, 0, log_take_plugin_words },
	{ BEGINS("Profiler init failed"), 0, 0, log_take_plugin_words },
	{ BEGINS("Profiler "), NCCL_LOG_KIND_PROFILER, COUNT, NULL },
	{ BEGINS("Proxy "), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("Queuing opId"), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("RAS "), NCCL_LOG_KIND_RAS, COUNT, NULL },
	{ BEGINS("RMA/Plugin"), 0, 0, log_take_plugin },
	{ BEGINS("Ring "), 0, 0, log_take_ring },
	{ BEGINS("Received and initiated"), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("Rank "), NCCL_LOG_KIND_INIT, COUNT, NULL },
	{ BEGINS("Register "), NCCL_LOG_KIND_REGISTRATION, COUNT, NULL },
	{ BEGINS("Retrieving state"), NCCL_LOG_KIND_TOPOLOGY, COUNT, NULL },
	{ BEGINS("Ringside "), NCCL_LOG_KIND_PROFILER, NOTE, NULL }, /* our own */
	{ BEGINS("SHM "), NCCL_LOG_KIND_SHM, NOTE, NULL },
	{ BEGINS("Successfully loaded"), 0, 0, log_take_plugin_state },
	{ BEGINS("Search "), NCCL_LOG_KIND_GRAPH, COUNT, NULL },
	{ BEGINS("Set Access"), NCCL_LOG_KIND_MEMORY, COUNT, NULL },
	{ BEGINS("Setting affinity"), NCCL_LOG_KIND_AFFINITY, NOTE, NULL },
	{ BEGINS("Skipping "), NCCL_LOG_KIND_REGISTRATION, COUNT, NULL },
	{ BEGINS("Socket handshake"), NCCL_LOG_KIND_BOOTSTRAP, COUNT, NULL },
	{ BEGINS("Stack size limit"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("SymCheck"), NCCL_LOG_KIND_REGISTRATION, COUNT, NULL },
	{ BEGINS("Symmetric "), NCCL_LOG_KIND_REGISTRATION, NOTE, NULL },
	{ BEGINS("TUNER/Plugin"), 0, 0, log_take_plugin },
	{ BEGINS("TOPO/NET"), NCCL_LOG_KIND_TOPOLOGY, NOTE, NULL },
	{ BEGINS("Topology detection"), NCCL_LOG_KIND_TOPOLOGY, NOTE, NULL },
	{ BEGINS("Trees"), 0, 0, log_take_trees },
	{ BEGINS("Tree "), 0, 0, log_take_tree },
	{ BEGINS("Tuner: "), 0, 0, log_take_plugin_words },
	{ BEGINS("Tuner: "), NCCL_LOG_KIND_PLUGIN, NOTE, NULL },
	{ BEGINS("Tuning P2P"), NCCL_LOG_KIND_TUNING, COUNT, NULL },
	{ BEGINS("UDS"), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("Unable to open"), NCCL_LOG_KIND_TOPOLOGY, NOTE, NULL },
	{ BEGINS("Unexpected error from"), NCCL_LOG_KIND_RAS, NOTE, NULL },
	{ BEGINS("Unlinking shared"), NCCL_LOG_KIND_SHM, COUNT, NULL },
	{ BEGINS("Unloading plugin"), NCCL_LOG_KIND_PLUGIN, COUNT, NULL },
	{ BEGINS("Unable to "), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("Unknown CTA"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("User asked for"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("Using network "), NCCL_LOG_KIND_NETWORK, NOTE, NULL },
	{ BEGINS("Using tuner plugin"), 0, 0, log_take_plugin_words },
	{ BEGINS("Using NCCL_NET_DEVICE"), NCCL_LOG_KIND_NETWORK, COUNT, NULL },
	{ BEGINS("Using non-device"), NCCL_LOG_KIND_NETWORK, COUNT, NULL },
	{ BEGINS("Warning: ENV"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("Widening links"), NCCL_LOG_KIND_TOPOLOGY, COUNT, NULL },
	{ BEGINS("XML Parse"), NCCL_LOG_KIND_TOPOLOGY, COUNT, NULL },
	{ BEGINS("bootstrapSplit"), NCCL_LOG_KIND_BOOTSTRAP, COUNT, NULL },
	{ BEGINS("comm "), 0, 0, log_take_init },
	{ BEGINS("cudaDriverVersion"), 0, 0, log_take_driver },
	{ BEGINS("cuMem host allocations"), NCCL_LOG_KIND_SHM, NOTE, NULL },
	{ BEGINS("collnetEnable"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("dlsym failed"), NCCL_LOG_KIND_IB, COUNT, NULL },
	{ BEGINS("dlvsym failed"), NCCL_LOG_KIND_IB, COUNT, NULL },
	{ BEGINS("devCommCreate"), NCCL_LOG_KIND_INIT, COUNT, NULL },
	{ BEGINS("fallocate"), NCCL_LOG_KIND_SHM, NOTE, NULL },
	{ BEGINS("failed to decode"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("ginForceEnable"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("latencyinter"), NCCL_LOG_KIND_TOPOLOGY, COUNT, NULL },
	{ BEGINS("maxCTAs"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("minCTAs"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("mkstemp"), NCCL_LOG_KIND_SHM, NOTE, NULL },
	{ BEGINS("ncclComm"), 0, 0, log_take_init },
	{ BEGINS("ncclComm"), NCCL_LOG_KIND_INIT, NOTE, NULL },
	{ BEGINS("ncclPollProxyResponse"), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("ncclP2pSchedule"), NCCL_LOG_KIND_CHANNELS, COUNT, NULL },
	{ BEGINS("ncclTopoGetCpuAffinity"), NCCL_LOG_KIND_AFFINITY, NOTE, NULL },
	{ BEGINS("ncclTopo"), NCCL_LOG_KIND_TOPOLOGY, COUNT, NULL },
	{ BEGINS("ncclOs"), NCCL_LOG_KIND_TOPOLOGY, COUNT, NULL },
	{ BEGINS("ncclRma"), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("ncclMaxSharedMem"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("ncclNvml"), NCCL_LOG_KIND_TOPOLOGY, COUNT, NULL },
	{ BEGINS("nvlsCTAs"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("peer query failed"), NCCL_LOG_KIND_P2P, NOTE, NULL },
	{ BEGINS("proxyProgressAsync"), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("proxy "), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("resp.opId"), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("recvConnect "), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("rank "), NCCL_LOG_KIND_REGISTRATION, COUNT, NULL },
	{ BEGINS("register comm"), NCCL_LOG_KIND_REGISTRATION, COUNT, NULL },
	{ BEGINS("sendConnect "), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("socket"), NCCL_LOG_KIND_RETRY, NOTE, NULL },
	{ BEGINS("splitShare"), NCCL_LOG_KIND_CONFIG, NOTE, NULL },
	{ BEGINS("scheduleRma"), NCCL_LOG_KIND_PROXY, COUNT, NULL },
	{ BEGINS("threadThresholds"), NCCL_LOG_KIND_TUNING, COUNT, NULL },
	{ BEGINS("timings: "), NCCL_LOG_KIND_TIMING, NOTE, NULL },
	{ BEGINS("unlink shared"), NCCL_LOG_KIND_SHM, NOTE, NULL },
};

void log_rules_init(struct nccl_log_work *work)
{
	for (size_t i = ARRAY_LENGTH(rules); i-- > 0;) {
		uint16_t *range = work->rules[(unsigned char)rules[i].beginning[0]];

		range[0] = (uint16_t)i;
		if (range[1] == 0)
			range[1] = (uint16_t)(i + 1);
	}
}

/* ---- storing --------------------------------------------------------------------------------- */

void log_note(struct log_line *line, enum nccl_log_kind kind)
{
	uint64_t key =
		hash_word(hash_word(hash_word(14, line->process), kind), log_shape(line->message));
	struct nccl_log_note *note;
	bool is_new;

	note = log_entry(line->log, LOG_NOTES, key, &is_new);
	if (note == NULL)
		return;
	if (is_new)
		*note = (struct nccl_log_note){ .process = line->process,
						.kind = kind,
						.comm = log_comm_of(line, -1, -1),
						.text = log_keep(line->log,
								 log_trim(line->message)),
						.place = line->place };
	note->lines++;
}

static void take_warning(struct log_line *line, bool is_attention)
{
	uint64_t key = hash_word(hash_word(is_attention ? 18 : 15, line->process),
				 log_shape(line->message));
	struct nccl_log_warning *warning;
	bool is_new;

	line->log->kinds[is_attention ? NCCL_LOG_KIND_ATTENTION : NCCL_LOG_KIND_WARNING]++;
	warning = log_entry(line->log, LOG_WARNINGS, key, &is_new);
	if (warning == NULL)
		return;
	if (is_new)
		*warning = (struct nccl_log_warning){
			.process = line->process,
			.is_attention = is_attention,
			.comm = log_comm_of(line, -1, -1),
			.text = log_keep(line->log, log_trim(line->message)),
			.source = log_keep(line->log, line->source),
			.place = line->place,
		};
	warning->lines++;
	warning->last = line->place;
}

/* ---- "NET/IB: WQE stall (no CQE): peer=10.0.0.2<4711> | local: qpn=17 dev=mlx5_0 port=1 ..." ----- */

/* The value of "name=value" in these words. */
static struct log_text value_of(struct log_text text, const char *name)
{
	size_t length = strlen(name);
	struct log_text value = { text.end, text.end };

	while (log_left(&text) > 0) {
		struct log_text word = log_until(&text, ' ');

		if (log_left(&word) > length && word.at[length] == '=' &&
		    memcmp(word.at, name, length) == 0) {
			value = (struct log_text){ word.at + length + 1, word.end };
			break;
		}
	}
	return value;
}

/* "1200ns", "1200.5"; 0 if there is none. */
static uint64_t time_of(struct log_text text, const char *name)
{
	struct log_text value = value_of(text, name);
	int64_t number;

	return log_number(&value, &number) && number > 0 ? (uint64_t)number : 0;
}

static int64_t number_of(struct log_text text, const char *name)
{
	struct log_text value = value_of(text, name);
	int64_t number;

	return log_number(&value, &number) && number >= 0 ? number : -1;
}

static struct log_text section_of(struct log_text text, const char *name)
{
	if (!log_find(&text, name))
		text.at = text.end;
	return log_until(&text, '|');
}

static struct nccl_log_queue *find_queue(struct log_line *line, struct log_text local,
					 struct log_text peer)
{
	struct log_text device = value_of(local, "dev"), address = log_until(&peer, '<');
	int64_t number = number_of(local, "qpn"), port = number_of(local, "port");
	struct nccl_log_queue *queue;
	bool is_new;

	if (log_left(&device) == 0 || number < 0)
		return NULL;
	queue = log_entry(line->log, LOG_QUEUES,
			  hash_word(hash_word(hash_word(19, line->process), (uint64_t)number),
				    hash_bytes(device.at, log_left(&device))),
			  &is_new);
	if (queue == NULL)
		return NULL;
	if (is_new)
		*queue = (struct nccl_log_queue){ .process = line->process,
						  .device = log_keep(line->log, device),
						  .port = port <= INT32_MAX ? (int32_t)port : -1,
						  .number = number,
						  .peer = log_keep(line->log, address),
						  .remote_number = -1,
						  .remote_port = -1,
						  .local_lid = -1,
						  .remote_lid = -1,
						  .local_gid = "",
						  .remote_gid = "",
						  .direction = '-',
						  .first = line->place };
	queue->last = line->place;
	return queue;
}

static void read_ends(struct log_line *line, struct nccl_log_queue *queue, struct log_text local,
		      struct log_text remote)
{
	queue->local_lid = number_of(local, "lid");
	queue->local_gid = log_keep(line->log, value_of(local, "localGid"));
	queue->remote_number = number_of(remote, "qpn");
	queue->remote_port = number_of(remote, "port");
	queue->remote_lid = number_of(remote, "lid");
	queue->remote_gid = log_keep(line->log, value_of(remote, "remoteGid"));
}

static void read_times(struct nccl_log_queue *queue, struct log_text text, uint64_t samples)
{
	uint64_t slowest = time_of(text, "max");

	queue->samples = samples;
	queue->median_ns = time_of(text, "p50");
	queue->p99_ns = time_of(text, "p99");
	queue->slowest_ns = slowest > queue->slowest_ns ? slowest : queue->slowest_ns;
}

/* "NET/IB: WQE latency summary [send peer=... dev=... qpn=... port=...]: n=... | post-to-poll ns: ..." */
static bool take_queue_summary(struct log_line *line, struct log_text text)
{
	struct log_text which = log_until(&text, ']');
	struct nccl_log_queue *queue = find_queue(line, which, value_of(which, "peer"));

	if (queue == NULL)
		return false;
	queue->direction = LOG_SKIP(&which, "send") ? 's' : 'r';
	queue->threshold_ns = time_of(text, "thr");
	queue->slow_samples = time_of(text, "slow");
	read_times(queue, text, time_of(text, "n"));
	queue->is_stalled = false;
	return true;
}

static bool take_queue_event(struct log_line *line, struct log_text text, bool is_stall)
{
	struct log_text local = section_of(text, "local: ");
	struct nccl_log_queue *queue = find_queue(line, local, value_of(text, "peer"));
	uint64_t age;

	if (queue == NULL)
		return false;
	read_ends(line, queue, local, section_of(text, "remote: "));
	queue->is_stalled = is_stall;
	if (is_stall) {
		age = time_of(text, "age");
		queue->threshold_ns = time_of(text, "stall_thr");
		queue->stall_lines++;
		queue->stall_ns = age > queue->stall_ns ? age : queue->stall_ns;
		queue->in_flight = time_of(text, "inflight");
		return true;
	}
	age = time_of(text, "delta");
	queue->threshold_ns = time_of(text, "thr");
	queue->slow_lines++;
	queue->slowest_ns = age > queue->slowest_ns ? age : queue->slowest_ns;
	read_times(queue, text, time_of(text, "count"));
	return true;
}

/* Level INFO or WARN, depending on the release; RCCL has "NET/IB-CAST". */
static bool take_queue(struct log_line *line)
{
	struct log_text text = line->message;
	bool is_known;

	if (!LOG_SKIP(&text, "NET/IB") || !log_find(&text, ": WQE "))
		return false;
	if (LOG_SKIP(&text, "latency summary ["))
		is_known = take_queue_summary(line, text);
	else if (LOG_SKIP(&text, "stall (no CQE): "))
		is_known = take_queue_event(line, text, true);
	else
		is_known = LOG_SKIP(&text, "slow: ") && take_queue_event(line, text, false);
	line->log->kinds[NCCL_LOG_KIND_LATENCY] += is_known;
	return is_known;
}

/* ---- "NCCL DIAG [INFO] ECC: uncorrected volatile errors on rank(s) {3,7} (worst=2) across 8 ranks ..." -- */

static void read_diagnosed_ranks(struct nccl_log_diagnosis *diagnosis, struct log_text text)
{
	if (!log_find(&text, "rank(s) {"))
		return;
	while (diagnosis->rank_count < NCCL_LOG_DIAGNOSIS_RANKS &&
	       log_int(&text, &diagnosis->ranks[diagnosis->rank_count])) {
		diagnosis->rank_count++;
		if (!LOG_SKIP(&text, ","))
			break;
	}
}

/* Without a tag: headings, and how long it took. */
static void take_diagnosis(struct log_line *line)
{
	struct log_text text = line->message, comm;
	struct nccl_log_diagnosis *diagnosis;
	bool is_new;

	line->log->kinds[NCCL_LOG_KIND_DIAGNOSIS]++;
	if (LOG_SKIP(&text, "[OK]")) {
		line->log->diagnoses_fine++;
		return;
	}
	if (LOG_SKIP(&text, "["))
		log_until(&text, ']');
	else if (!log_has(text, "ERROR"))
		return;
	text = log_trim(text);
	diagnosis = log_entry(line->log, LOG_DIAGNOSES,
			      hash_word(20, hash_bytes(text.at, log_left(&text))), &is_new);
	if (diagnosis == NULL)
		return;
	if (is_new) {
		*diagnosis = (struct nccl_log_diagnosis){ .process = line->process,
							  .text = log_keep(line->log, text),
							  .place = line->place };
		comm = text;
		if (log_find(&comm, "comm 0x"))
			log_hex(&comm, &diagnosis->comm_hash);
		read_diagnosed_ranks(diagnosis, text);
	}
	diagnosis->lines++;
}

/* Its first bytes; numbers, with everything attached to them, become '#'. */
static struct log_text beginning_of(struct log_text text, char to[48])
{
	size_t used = 0;

	while (text.at < text.end && used < 47) {
		bool is_number = *text.at >= '0' && *text.at <= '9';

		to[used++] = is_number ? '#' : *text.at;
		text.at++;
		while (is_number && text.at < text.end &&
		       ((*text.at >= '0' && *text.at <= '9') ||
			((*text.at | 0x20) >= 'a' && (*text.at | 0x20) <= 'f') || *text.at == 'x'))
			text.at++;
	}
	return (struct log_text){ to, to + used };
}

static void take_other(struct log_line *line)
{
	char buffer[48];
	struct log_text beginning = beginning_of(line->message, buffer);
	struct nccl_log_other *other;
	uint64_t key = hash_word(16, hash_bytes(beginning.at, log_left(&beginning)));
	bool is_new;

	line->log->kinds[NCCL_LOG_KIND_OTHER]++;
	other = log_entry(line->log, LOG_OTHERS, key, &is_new);
	if (other == NULL) {
		line->log->others_left_out++;
		return;
	}
	if (is_new)
		*other = (struct nccl_log_other){ .beginning = log_keep(line->log, beginning),
						  .place = line->place };
	other->lines++;
}

/* ---- messages without a fixed beginning -------------------------------------------------------- */

static bool count_as(struct log_line *line, enum nccl_log_kind kind)
{
	line->log->kinds[kind]++;
	return true;
}

static bool note_as(struct log_line *line, enum nccl_log_kind kind)
{
	log_note(line, kind);
	return count_as(line, kind);
}

/* "init.cc:1234 -> 3", sometimes followed by "[Async thread]" */
static bool take_source_line(struct log_line *line)
{
	struct log_text text = line->message;
	int32_t number;

	if (!log_find(&text, ".cc:") || !log_int(&text, &number))
		return false;
	if (LOG_SKIP(&text, " -> "))
		return note_as(line, NCCL_LOG_KIND_RETURN);
	if (log_has(text, "uda failure"))
		return note_as(line, NCCL_LOG_KIND_RETURN);
	if (log_has(text, "lloc") || log_has(text, "hunk") || log_has(text, "Cuda "))
		return count_as(line, NCCL_LOG_KIND_MEMORY);
	if (log_has(text, "NCCL WARN"))
		return false;
	return count_as(line, NCCL_LOG_KIND_RETURN);
}

/* Topology drawings, graphs and the tuning table are indented. */
static bool take_indented(struct log_line *line)
{
	struct log_text text = log_trim(line->message);

	if (LOG_SKIP(&text, "Algorithm") || LOG_SKIP(&text, "Protocol") ||
	    LOG_SKIP(&text, "Max NThreads"))
		return log_take_table_head(line);
	if (memchr(text.at, '|', log_left(&text)) != NULL)
		return log_take_table_row(line);
	return count_as(line, NCCL_LOG_KIND_GRAPH);
}

static bool take_shapeless(struct log_line *line)
{
	struct log_text text = line->message;
	char first = text.at < text.end ? text.at[0] : '\0';

	if (first == '\0')
		return count_as(line, NCCL_LOG_KIND_GRAPH);
	if (first == ' ')
		return take_indented(line);
	if (log_take_operation(line) || log_take_choice(line))
		return true;
	if (first >= '0' && first <= '9')
		return log_take_channel_counts(line);
	if (log_has(text, " | "))
		return log_take_table_row(line);
	if (log_has(text, ", retrying"))
		return note_as(line, NCCL_LOG_KIND_RETRY);
	if (log_has(text, "set by environment to"))
		return note_as(line, NCCL_LOG_KIND_CONFIG);
	if (log_has(text, " opId"))
		return count_as(line, NCCL_LOG_KIND_PROXY);
	return take_source_line(line);
}

static bool take_by_rule(struct log_line *line)
{
	struct log_text text = line->message;
	const uint16_t *range;

	if (log_left(&text) == 0 || text.at[0] == ' ')
		return false;
	range = line->log->work->rules[(unsigned char)text.at[0]];
	for (const struct rule *rule = rules + range[0]; rule < rules + range[1]; rule++) {
		/* The last byte distinguishes most of them. */
		if (log_left(&text) < rule->length ||
		    text.at[rule->length - 1] != rule->beginning[rule->length - 1] ||
		    memcmp(text.at, rule->beginning, rule->length) != 0)
			continue;
		if (rule->take != NULL && rule->take(line))
			return true;
		if (rule->take == NULL)
			return rule->how == NOTE ? note_as(line, rule->kind)
						 : count_as(line, rule->kind);
	}
	return false;
}

void log_take(struct log_line *line)
{
	if (line->level != NCCL_LOG_LEVEL_DIAG && take_queue(line))
		return;
	switch (line->level) {
	case NCCL_LOG_LEVEL_WARN:
	case NCCL_LOG_LEVEL_ATTN:
		take_warning(line, line->level == NCCL_LOG_LEVEL_ATTN);
		return;
	case NCCL_LOG_LEVEL_DIAG:
		take_diagnosis(line);
		return;
	case NCCL_LOG_LEVEL_CALL:
		log_take_call(line);
		return;
	case NCCL_LOG_LEVEL_TRACE:
		count_as(line, NCCL_LOG_KIND_TRACE);
		return;
	default:
		break;
	}
	if (!take_by_rule(line) && !take_shapeless(line))
		take_other(line);
}
