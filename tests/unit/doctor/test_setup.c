/* Every set-up rule: it has a page, it fires when it should, and is silent on clean logs. */
#include "doctor/doctor.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"
#include "tests/support/nccl_log_stage.h"
#include "tests/tap.h"
#include "tests/support/expected_verdicts.h"

/* ---- queries --------------------------------------------------------------------------------- */

/* All verdicts, each below the last line of its log. */
static struct expected_text kept;

static void keep(const char *text, const struct verdicts *verdicts)
{
	const char *line = text != NULL ? text : "no log";

	for (const char *at = strchr(line, '\n'); at != NULL && at[1] != '\0';
	     at = strchr(line, '\n'))
		line = at + 1;
	expected_put(&kept, "=== %.*s\n", (int)strcspn(line, "\n"), line);
	for (size_t i = 0; i < verdicts->count; i++)
		expected_put_verdict(&kept, &verdicts->list[i]);
}

static struct verdicts verdicts_of(const char *text, const struct recording *recording)
{
	struct verdicts verdicts;
	struct nccl_log log;

	verdicts_init(&verdicts);
	nccl_log_init(&log);
	if (text != NULL && nccl_log_add_memory(&log, "nccl.log", text, strlen(text)) != OK)
		abort();
	if (setup_find(&verdicts, text != NULL ? &log : NULL, recording) != OK)
		abort();
	nccl_log_release(&log);
	keep(text, &verdicts);
	return verdicts;
}

static const struct verdict *find(const struct verdicts *verdicts, const char *rule)
{
	for (size_t i = 0; i < verdicts->count; i++)
		if (strcmp(verdicts->list[i].rule, rule) == 0)
			return &verdicts->list[i];
	return NULL;
}

static bool has_line(const struct verdict_lines *lines, const char *part)
{
	for (size_t i = 0; i < lines->count; i++)
		if (strstr(lines->list[i], part) != NULL)
			return true;
	return false;
}

static void show(const struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++) {
		const struct verdict *verdict = &verdicts->list[i];

		printf("# %s %s: %s\n", verdict_severity_name(verdict->severity), verdict->rule,
		       verdict->title);
		for (size_t j = 0; j < verdict->evidence.count; j++)
			printf("#     %s\n", verdict->evidence.list[j]);
	}
}

/* ---- recordings with an environment -------------------------------------------------------------- */

enum { RANKS = 4 };

struct played {
	struct recording recording;
	struct recording_process processes[RANKS];
	struct recording_process *list[RANKS];
	struct recording_comm comms[RANKS];
	char info[RANKS][1024];
};

static void play(struct played *played, const char *common)
{
	*played = (struct played){ .recording = { .count = RANKS } };
	played->recording.processes = played->list;
	for (int i = 0; i < RANKS; i++) {
		struct recording_process *process = &played->processes[i];

		played->list[i] = process;
		snprintf(process->host, sizeof(process->host), "node%d", i / 2);
		text_copy(process->job, sizeof(process->job), "j7");
		process->rank = i;
		process->pid = 1000 + i;
		process->interface = 6;
		snprintf(
			played->info[i], sizeof(played->info[i]),
			"host=node%d\nrank=%d\nenv.CUDA_VISIBLE_DEVICES=%d\nenv.MASTER_PORT=%d\n%s",
			i / 2, i, i, 29500 + i, common);
		played->comms[i].info.hash = 0x8cda;
		process->comms = &played->comms[i];
		process->comm_count = 1;
		process->info = played->info[i];
		process->info_bytes = strlen(played->info[i]);
	}
}

static void add_info(struct played *played, int rank, const char *line)
{
	size_t *used = &played->processes[rank].info_bytes;

	*used += (size_t)snprintf(played->info[rank] + *used, sizeof(played->info[rank]) - *used,
				  "%s", line);
}

/* ---- the rules ------------------------------------------------------------------------------- */

#define R0 "node0:1000:1000 [0] NCCL INFO "
#define W0 "\nnode0:1000:1000 [0] some.cc:12 NCCL WARN "
#define A0 "\nnode0:1000:1000 [0] init.cc:12 (someFunction) NCCL ATTN "
#define D0 "node0:1000 NCCL DIAG "
#define STALL(age)                                                                              \
	R0 "NET/IB: WQE stall (no CQE): peer=10.0.0.2<4711> | local: qpn=17 dev=mlx5_3 port=1 " \
	   "lid=7 localGid= | remote: qpn=99 port=1 lid=8 remoteGid= | stall_thr=100000ns "     \
	   "age=" age "ns inflight=5\n"
#define INIT(host, rank)                                                              \
	host ":10" #rank ":10" #rank " [0] NCCL INFO ncclCommInitRank comm 0x5" #rank \
	     " rank " #rank " nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x77 - Init "

struct example {
	const char *rule;
	enum verdict_severity severity;
	const char *add;	 /* appended to a clean log of two nodes with eight GPUs */
	const char *from, *to;	 /* or replaced in it */
	const char *alone;	 /* or a separate log */
	const char *environment; /* or no log: a variable */
	const char
		*harmless; /* the same without the problem: silent; NULL: the clean log is enough */
	const char *cited; /* part of a line of evidence */
};

static const struct example examples[] = {
	{ "init-incomplete", VERDICT_ERROR, .alone = INIT("a", 0) "START\n",
	  .cited = "nccl.log:1: ", .harmless = INIT("a", 0) "START\n" INIT("a", 0) "COMPLETE\n" },
	{ "init-incomplete", VERDICT_ERROR,
	  .add = W0 "Bootstrap Root : rank 1 of 2 ranks has already checked in\n" },
	{ "version-mismatch", VERDICT_ERROR, .add = R0 "NCCL version 2.27.5+cuda12.8\n",
	  .cited = "NCCL version 2.27.5+cuda12.8" },
	{ "version-mismatch", VERDICT_ERROR,
	  .add = W0
	  "Mismatched NCCL version detected : rank 0 version 22809 rank 1 version 22703\n" },
	{ "interface-not-found", VERDICT_ERROR, .add = W0 "Bootstrap : no socket interface found\n",
	  .cited = "NCCL_SOCKET_IFNAME set by environment to eth0" },
	{ "peer-lost", VERDICT_ERROR,
	  .add = W0 "socketProgress: Connection closed by remote peer node1<4711>\n",
	  .cited = "node1<4711>" },
	{ "peer-lost", VERDICT_ERROR,
	  .add = W0 "socketPollConnect: connect to 10.0.0.1<5> failed : No route to host\n" },
	{ "shm-full", VERDICT_ERROR,
	  .add = W0 "Error: failed to extend /dev/shm/nccl-abc to 33030532 bytes, error: No space "
		    "left on device "
		    "(28)\n" },
	{ "memlock-limit", VERDICT_ERROR,
	  .add = W0 "Call to ibv_reg_mr failed with error Cannot allocate memory\n" },
	{ "ib-error", VERDICT_ERROR,
	  .add = W0 "NET/IB: Got completion from peer 10.0.0.2<1> with status=12 opcode=0 len=0 "
		    "vendor err 129 "
		    "(Send) hca mlx5_3\n",
	  .cited = "mlx5_3" },
	{ "ib-error", VERDICT_WARNING,
	  .add = W0 "NET/IB : mlx5_0:1 Got async event : port error\n" },
	{ "gpu-error", VERDICT_ERROR,
	  .add = W0 "Cuda failure 214 'uncorrectable ECC error encountered'\n" },
	{ "gpu-error", VERDICT_ERROR, .add = W0 "Cuda failure 'out of memory'\n" },
	{ "duplicate-gpu", VERDICT_ERROR,
	  .add = W0 "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000\n" },
	{ "size-mismatch", VERDICT_ERROR,
	  .add = W0 "Message truncated : received 2048 bytes instead of 1024\n" },
	{ "torch-timeout", VERDICT_ERROR,
	  .add = "[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective "
		 "operation timeout: "
		 "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) "
		 "ran for 600015 "
		 "milliseconds before timing out.\n"
		 "[rank4]:[E ProcessGroupNCCL.cpp:616] [Rank 4] Watchdog caught collective "
		 "operation timeout: "
		 "WorkNCCL(SeqNum=6, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) "
		 "ran for 600015 "
		 "milliseconds before timing out.\n",
	  .harmless = "[rank3]:[W ProcessGroupNCCL.cpp:1] Warning: using GPU 3\n",
	  .cited = "that rank is in collective #5, another one already in #6" },
	{ "nccl-error", VERDICT_ERROR,
	  .add = "torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1970, "
		 "unhandled system "
		 "error (run with NCCL_DEBUG=INFO for details), NCCL version 2.19.3\n",
	  .cited = "unhandled system error" },
	{ "version-mismatch", VERDICT_WARNING,
	  .add = R0 "NCCL git version master 12df1a1\nnode1:1008:1008 [0] NCCL INFO NCCL git "
		    "version master 8898068\n",
	  .harmless = R0 "NCCL git version master 12df1a1\nnode1:1008:1008 [0] NCCL INFO NCCL git "
			 "version master 12df1a1\n",
	  .cited = "NCCL git version master 8898068" },
	{ "version-mismatch", VERDICT_WARNING,
	  .add = A0 "Mismatched NCCL Git revision detected on rank 1\n",
	  .cited = "NCCL ATTN Mismatched NCCL Git revision" },
	{ "nvlink-degraded", VERDICT_WARNING,
	  .add = A0 "Degraded NVLink fabric bandwidth on GPU 3\n", .cited = "NCCL ATTN Degraded" },
	{ "nvlink-degraded", VERDICT_WARNING,
	  .add = D0
	  "[INFO] NVLink: inactive link(s) on rank(s) {3} across 16 ranks in comm 0x8cda\n",
	  .harmless =
		  D0 "[OK]   NVLink: 18 links per GPU, all active at consistent speed across 16 "
		     "ranks in comm 0x8cda\n",
	  .cited = "on rank(s) {3} across" },
	{ "ib-disabled", VERDICT_NOTE, .add = W0 "lib wrapper not initialized.\n" },
	{ "nccl-attention", VERDICT_WARNING, .add = A0 "Net plugin moon was not initialized\n",
	  .cited = "NCCL ATTN Net plugin moon" },
	{ "diagnostics", VERDICT_ERROR,
	  .add = D0 "[INFO] p2p: write mismatch srcRank=0 dstRank=3 expected=0x1 got=0x2\n",
	  .harmless = D0 "[OK]   p2p: all 56 directed GPU P2P edges verified\n",
	  .cited = "p2p: write mismatch" },
	{ "diagnostics", VERDICT_NOTE,
	  .add = D0 "[INFO] ECC: unavailable via NVML across 16 ranks in comm 0x8cda\n",
	  .harmless = D0 "=== RAS Diagnostics ===\n" },
	{ "gpu-error", VERDICT_WARNING,
	  .add = D0 "[INFO] Xid 79 detected 2 times on host node1. For the recommended response, "
		    "see\n",
	  .harmless = D0 "[OK]   Xid/SXid: no events requiring immediate attention across 2 "
			 "hosts\n" },
	{ "environment-differs", VERDICT_WARNING,
	  .add = D0 "[INFO] CUDA driver version: mismatch across 16 ranks in comm 0x8cda, rank(s) "
		    "{8} differ from rank 0 (13000)\n",
	  .harmless = D0 "[OK]   CUDA driver version: 13000 consistent across 16 ranks in comm "
			 "0x8cda\n" },
	{ "ib-stall", VERDICT_WARNING, .add = STALL("36000000000"),
	  .harmless = R0 "NET/IB: WQE latency summary [send peer=10.0.0.2<1> dev=mlx5_3 qpn=17 "
			 "port=1]: n=100 slow=0 thr=100000ns | post-to-poll ns: mean=9 std=1 p50=9 "
			 "p90=9 p99=9 p99.9=9 max=10\n",
	  .cited = "mlx5_3 port 1, queue pair 17 to 10.0.0.2 (node1), queue pair 99: no completion "
		   "for 36.0 s" },
	{ "ib-stall", VERDICT_NOTE, .add = STALL("200000") },
	{ "ib-stall", VERDICT_NOTE,
	  .add = R0 "NET/IB: WQE latency summary [send peer=10.0.0.2<1> dev=mlx5_3 qpn=17 port=1]: "
		    "n=100 slow=3 thr=100000ns | post-to-poll ns: mean=9 std=1 p50=9000 p90=9 "
		    "p99=300000 p99.9=9 max=400000\n",
	  .cited = "of 100 sends there: median 9.00 us, 99% below 300 us" },
	{ "nccl-warning", VERDICT_WARNING, .add = W0 "The moon is in the wrong house\n",
	  .cited = "nccl.log:" },
	{ "net-socket-fallback", VERDICT_WARNING, .from = "NET/IB/3/GDRDMA", .to = "NET/Socket/0",
	  .cited = "via NET/Socket/0" },
	{ "net-socket", VERDICT_NOTE,
	  .alone = R0 "NET/IB : No device found.\n" INIT("node0", 0) "START\n" INIT(
		  "node0", 0) "COMPLETE\n" R0
			      "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n",
	  .cited = "No device found" },
	{ "interface-slow", VERDICT_WARNING,
	  .alone = R0
	  "NET/Socket : Using [0]docker0:172.17.0.1<0>\n" R0
	  "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n"
	  "node1:1:1 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [send] via NET/Socket/0\n",
	  .harmless = R0
	  "NET/Socket : Using [0]eth1:10.0.0.1<0>\n" R0
	  "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n"
	  "node1:1:1 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [send] via NET/Socket/0\n",
	  .cited = "docker0" },
	{ "hcas-unused", VERDICT_WARNING, .from = "NET/IB/3/GDRDMA", .to = "NET/IB/0/GDRDMA",
	  .cited = "NET/IB : Using [0]mlx5_0:1/IB" },
	{ "few-hcas", VERDICT_WARNING,
	  .from = " [1]mlx5_1:1/IB [2]mlx5_2:1/IB [3]mlx5_3:1/IB [4]mlx5_4:1/IB "
		  "[5]mlx5_5:1/IB [6]mlx5_6:1/IB [7]mlx5_7:1/IB",
	  .to = "" },
	{ "gdr-off", VERDICT_WARNING, .from = "/GDRDMA", .to = "", .cited = "via NET/IB/" },
	{ "p2p-disabled", VERDICT_WARNING, .add = R0 "NCCL_P2P_DISABLE set by environment to 1\n",
	  .harmless = R0 "NCCL_P2P_DISABLE set by environment to 0\n",
	  .cited = "NCCL_P2P_DISABLE" },
	{ "p2p-disabled", VERDICT_WARNING, .environment = "env.NCCL_P2P_LEVEL=LOC\n",
	  .harmless = R0 "NCCL_P2P_LEVEL set by environment to SYS\n",
	  .cited = "env of rank 0 (node0): NCCL_P2P_LEVEL=LOC" },
	{ "p2p-not-used", VERDICT_WARNING, .from = "via P2P/CUMEM/read",
	  .to = "via SHM/direct/direct" },
	{ "shm-disabled", VERDICT_WARNING,
	  .add = R0 "NCCL_SHM_DISABLE set by environment to 1.\n" },
	{ "few-channels", VERDICT_WARNING,
	  .add = R0 "NCCL_MAX_NCHANNELS set by environment to 2.\n",
	  .harmless = R0 "NCCL_MAX_NCHANNELS set by environment to 32.\n",
	  .cited = "16 coll channels" },
	{ "few-channels", VERDICT_NOTE, .environment = "env.NCCL_MIN_NCHANNELS=32\n" },
	{ "few-channels", VERDICT_WARNING,
	  .from = "16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels",
	  .to = "2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels",
	  .cited = "2 coll channels, 2 p2p channels" },
	{ "buffer-size", VERDICT_NOTE, .environment = "env.NCCL_BUFFSIZE=8388608\n",
	  .harmless = R0 "NCCL_BUFFSIZE set by environment to 4194304.\n" },
	{ "algorithm-forced", VERDICT_WARNING, .add = R0 "NCCL_ALGO set by environment to Ring\n",
	  .cited = "NCCL_ALGO set by environment to Ring" },
	{ "algorithm-forced", VERDICT_WARNING, .environment = "env.NCCL_PROTO=LL\n" },
	{ "debug-left-on", VERDICT_NOTE, .environment = "env.NCCL_DEBUG=INFO\n" },
	{ "debug-left-on", VERDICT_WARNING, .environment = "env.NCCL_DEBUG=trace\n" },
	{ "environment-differs", VERDICT_WARNING,
	  .add = R0 "NCCL_CROSS_NIC set by environment to 2.\n",
	  .cited = "NCCL_CROSS_NIC is not set" },
	{ "virtual-topology", VERDICT_NOTE,
	  .add = R0
	  "Topology detection : could not read /sys/devices/pci0/0/../max_link_speed, ignoring\n",
	  .harmless = R0
	  "Topology detection : could not read /sys/devices/system/node/node1/cpumap, ignoring\n" },
	{ "virtual-topology", VERDICT_NOTE,
	  .add = R0
	  "Topology detection : could not read /sys/devices/pci0/0/numa_node, ignoring\n" },
	{ "virtual-topology", VERDICT_NOTE,
	  .add = R0 "Could not find real path of /sys/class/pci_bus/0000:07/../../0000:07:00.0\n" },
	{ "virtual-topology", VERDICT_NOTE,
	  .add = W0 "Could not find real path of /sys/class/pci_bus/0000:07/../../0000:07:00.0\n" },
	{ "virtual-topology", VERDICT_NOTE,
	  .add = R0 "Topology detection: network path (name = eth0) "
		    "/sys/devices/virtual/net/eth0 is not a PCI device (net). Attaching to first "
		    "CPU\n" },
	{ "ib-disabled", VERDICT_NOTE, .add = R0 "NCCL_IB_DISABLE set by environment to 1.\n" },
	{ "ib-timeout", VERDICT_WARNING, .environment = "env.NCCL_IB_TIMEOUT=14\n",
	  .harmless = R0 "NCCL_IB_TIMEOUT set by environment to 22.\n" },
	{ "ib-timeout", VERDICT_WARNING, .environment = "env.NCCL_IB_RETRY_CNT=1\n" },
	{ "launch-blocking", VERDICT_WARNING, .environment = "env.CUDA_LAUNCH_BLOCKING=1\n" },
	{ "max-connections", VERDICT_NOTE, .environment = "env.CUDA_DEVICE_MAX_CONNECTIONS=1\n" },
	{ "profiler-plugin", VERDICT_NOTE, .add = R0 "PROFILER/Plugin: Loaded Inspector (v5)\n",
	  .harmless = R0 "PROFILER/Plugin: Loaded Ringside (v5)\n" },
	{ "profiler-plugin", VERDICT_WARNING,
	  .add = R0 "NCCL_PROFILER_PLUGIN set by environment to ringside\n" R0
		    "PROFILER/Plugin: Could not find: ringside libnccl-profiler-ringside.so\n",
	  .cited = "libnccl-profiler-ringside.so" },
	{ "plugin-failed", VERDICT_WARNING,
	  .add = R0
	  "NCCL_NET_PLUGIN set by environment to ofi\n" R0
	  "NET/Plugin: Could not find: ofi libnccl-net-ofi.so. Using internal net plugin.\n",
	  .harmless = R0 "TUNER/Plugin: Could not find: libnccl-tuner.so\n" },
	{ "plugin-failed", VERDICT_WARNING,
	  .add = R0 "TUNER/Plugin: libnccl-tuner-x.so: undefined symbol: cudaFree\n" },
	{ "init-slow", VERDICT_WARNING,
	  .from = "total 1.20 (kernels 0.30, alloc 0.10, bootstrap 0.20",
	  .to = "total 95.10 (kernels 0.30, alloc 0.10, bootstrap 94.10",
	  .cited = "bootstrap 94.10" },
	{ "pxn-off", VERDICT_NOTE, .environment = "env.NCCL_PXN_DISABLE=1\n" },
	{ "nvls-off", VERDICT_NOTE, .environment = "env.NCCL_NVLS_ENABLE=0\n" },
	{ "nvls-failed", VERDICT_WARNING,
	  .add = R0 "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 4 : CUDA error "
		    "401 'x'. Proceeding "
		    "without NVLS support.\n" },
	{ "mnnvl-off", VERDICT_NOTE, .environment = "env.NCCL_MNNVL_ENABLE=0\n" },
	{ "fabric-state", VERDICT_WARNING,
	  .add = R0 "MNNVL busId 0x1000 fabric UUID 1.2 cliqueId 0x1 state 2 healthMask 0x0\n",
	  .harmless =
		  R0 "MNNVL busId 0x1000 fabric UUID 1.2 cliqueId 0x1 state 3 healthMask 0x0\n" },
	{ "torch-watchdog-off", VERDICT_WARNING,
	  .environment = "env.TORCH_NCCL_ASYNC_ERROR_HANDLING=0\n" },
	{ "torch-blocking-wait", VERDICT_WARNING,
	  .environment = "env.TORCH_NCCL_BLOCKING_WAIT=1\n" },
	{ "value-ignored", VERDICT_NOTE,
	  .add = R0 "NCCL_MAX_CTAS 0 is too low, leaving it set at 32\n" },
};

static struct verdicts ask(const struct example *example)
{
	struct log_stage stage = log_stage_new(2, 8);
	struct verdicts verdicts;
	struct played played;

	if (example->environment != NULL) {
		play(&played, example->environment);
		return verdicts_of(NULL, &played.recording);
	}
	if (example->alone != NULL)
		return verdicts_of(example->alone, NULL);
	log_stage_play(&stage);
	if (example->from != NULL)
		log_stage_replace(&stage, example->from, example->to);
	if (example->add != NULL)
		log_put(&stage, "%s", example->add);
	verdicts = verdicts_of(stage.text, NULL);
	log_stage_release(&stage);
	return verdicts;
}

static void each_example_speaks(void)
{
	for (size_t i = 0; i < ARRAY_LENGTH(examples); i++) {
		const struct example *example = &examples[i];
		struct verdicts verdicts = ask(example);
		const struct verdict *verdict = find(&verdicts, example->rule);

		if (!EXPECT_THAT(example->rule,
				 verdict != NULL && verdict->severity == example->severity &&
					 verdict->evidence.count > 0 && verdict->advice.count > 0 &&
					 verdict->class == VERDICT_SETUP &&
					 (example->cited == NULL ||
					  has_line(&verdict->evidence, example->cited))))
			show(&verdicts);
		verdicts_release(&verdicts);
		if (example->harmless == NULL)
			continue;
		verdicts = verdicts_of(example->harmless, NULL);
		EXPECT_THAT("and is silent when it is fine",
			    find(&verdicts, example->rule) == NULL);
		verdicts_release(&verdicts);
	}
}

static bool has_example(const char *rule)
{
	for (size_t i = 0; i < ARRAY_LENGTH(examples); i++)
		if (strcmp(examples[i].rule, rule) == 0)
			return true;
	return false;
}

static void each_rule_has_a_page_and_an_example(void)
{
	char path[128];

	for (size_t i = 0; setup_rule(i) != NULL; i++) {
		snprintf(path, sizeof(path), "docs/setup/%s.md", setup_rule(i)->name);
		EXPECT_THAT(path, access(path, R_OK) == 0 && has_example(setup_rule(i)->name) &&
					  strlen(setup_rule(i)->name) <
						  sizeof(((struct verdict *)0)->rule));
	}
}

static void a_clean_log_has_nothing(void)
{
	const struct {
		int nodes, gpus;
	} shapes[] = { { 1, 1 }, { 1, 8 }, { 2, 8 }, { 32, 8 } };

	for (size_t i = 0; i < ARRAY_LENGTH(shapes); i++) {
		struct log_stage stage = log_stage_new(shapes[i].nodes, shapes[i].gpus);
		struct verdicts verdicts;

		log_stage_play(&stage);
		verdicts = verdicts_of(stage.text, NULL);
		if (!EXPECT_THAT("nothing in a clean log", verdicts.count == 0))
			show(&verdicts);
		verdicts_release(&verdicts);
		log_stage_release(&stage);
	}
}

static void real_logs_get_what_they_deserve(void)
{
	static const char *const files[] = {
		"tests/nccllog/info-4ranks-29630.dbg",	"tests/nccllog/info-4ranks-29631.dbg",
		"tests/nccllog/info-4ranks-29632.dbg",	"tests/nccllog/info-4ranks-29633.dbg",
		"tests/nccllog/trace-2ranks-29679.dbg", "tests/nccllog/trace-2ranks-29680.dbg"
	};

	for (int job = 0; job < 2; job++) {
		struct verdicts verdicts;
		struct nccl_log log;

		verdicts_init(&verdicts);
		nccl_log_init(&log);
		for (int i = job * 4; i < (job == 0 ? 4 : 6); i++) {
			int fd = open(files[i], O_RDONLY | O_CLOEXEC);

			if (fd == -1 || nccl_log_add_fd(&log, files[i], fd) != OK)
				abort();
			close(fd);
		}
		EXPECT(setup_find(&verdicts, &log, NULL) == OK);
		if (!EXPECT_THAT("only notes",
				 !verdicts_has_trouble(&verdicts) && verdicts.count == 2 &&
					 find(&verdicts, "ib-disabled") != NULL &&
					 find(&verdicts, job == 0 ? "profiler-plugin"
								  : "virtual-topology") != NULL))
			show(&verdicts);
		verdicts_release(&verdicts);
		nccl_log_release(&log);
	}
}

/* ---- channels -------------------------------------------------------------------------------- */

static const struct verdict *few_channels(struct verdicts *verdicts, int gpus, const char *counts,
					  const char *add)
{
	struct log_stage stage = log_stage_new(1, gpus);

	log_stage_play(&stage);
	log_stage_replace(&stage, "16 coll channels, 16 collnet channels, 16 nvls channels",
			  counts);
	log_put(&stage, "%s", add);
	*verdicts = verdicts_of(stage.text, NULL);
	log_stage_release(&stage);
	return find(verdicts, "few-channels");
}

/* Direct over PCI, NCCL uses two; NVLink SHARP implies NVLink. A limit is reported once, as a limit. */
static void few_channels_within_a_node(void)
{
	static const struct {
		int gpus;
		const char *counts, *add;
		int severity; /* -1 silent */
	} cases[] = {
		{ 8, "2 coll channels, 0 nvls channels", "", VERDICT_NOTE },
		{ 8, "2 coll channels, 8 nvls channels", "", VERDICT_WARNING },
		{ 8, "8 coll channels, 0 nvls channels", "", -1 },
		{ 4, "2 coll channels, 0 nvls channels", "", -1 },
		{ 8, "2 coll channels, 0 nvls channels",
		  R0 "NCCL_MAX_NCHANNELS set by environment to 2.\n", VERDICT_WARNING },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct verdicts verdicts;
		const struct verdict *verdict =
			few_channels(&verdicts, cases[i].gpus, cases[i].counts, cases[i].add);
		size_t found = 0;

		for (size_t j = 0; j < verdicts.count; j++)
			found += strcmp(verdicts.list[j].rule, "few-channels") == 0;
		EXPECT_EQUAL(found, cases[i].severity >= 0);
		if (!EXPECT_THAT(cases[i].counts,
				 verdict == NULL || (int)verdict->severity == cases[i].severity))
			show(&verdicts);
		if (i == 0)
			EXPECT(verdict != NULL && has_line(&verdict->evidence, "via P2P/CUMEM"));
		verdicts_release(&verdicts);
	}
}

/* ---- which ranks are named ------------------------------------------------------------------- */

static void the_missing_rank_is_named(void)
{
	struct log_stage stage = log_stage_new(2, 8);
	struct verdicts verdicts;
	const struct verdict *verdict;

	stage.silent_rank = 11;
	stage.unfinished_rank = 0;
	log_stage_play(&stage);
	verdicts = verdicts_of(stage.text, NULL);
	verdict = find(&verdicts, "init-incomplete");
	EXPECT(verdict != NULL && strncmp(verdict->title, "rank 11 never reached", 21) == 0 &&
	       verdict->comm_rank == 11 && verdict->victims == 15 && verdict->rank == -1);
	EXPECT(verdict != NULL && verdict->confidence < 1 && verdict->missing.count == 1);
	EXPECT_EQUAL(verdicts.count, 1);
	verdicts_release(&verdicts);
	log_stage_release(&stage);
}

static void one_log_of_many_blames_nobody(void)
{
	struct log_stage stage = log_stage_new(2, 8);
	struct verdicts verdicts;
	const struct verdict *verdict;

	stage.unfinished_rank = 0;
	log_stage_rank(&stage, 3);
	verdicts = verdicts_of(stage.text, NULL);
	verdict = find(&verdicts, "init-incomplete");
	EXPECT(verdict != NULL && strstr(verdict->title, "never completed") != NULL &&
	       verdict->comm_rank == -1 && verdict->confidence < 0.8 &&
	       has_line(&verdict->missing, "0-2,4-15"));
	verdicts_release(&verdicts);
	log_stage_release(&stage);
}

/* Two of 16 ranks warn in turns. */
static void a_rank_counts_once(void)
{
	struct log_stage stage = log_stage_new(2, 8);
	struct verdicts verdicts;
	const struct verdict *verdict;

	log_stage_play(&stage);
	log_put(&stage, "%s",
		W0 "Connection closed by remote peer node7<1>\n"
		   "node0:1001:1001 [1] some.cc:12 NCCL WARN Connection closed by remote peer "
		   "node7<1>\n" W0 "recv: Connection closed by remote peer node7<1>\n"
		   "node0:1001:1001 [1] some.cc:12 NCCL WARN recv: Connection closed by remote "
		   "peer node7<1>\n");
	verdicts = verdicts_of(stage.text, NULL);
	verdict = find(&verdicts, "peer-lost");
	EXPECT_THAT("a rank that warns twice, with another one in between, counts once",
		    verdict != NULL && strstr(verdict->title, ", on 2 of 16 ranks") != NULL &&
			    strcmp(verdict->host, "node0") == 0);
	if (verdict == NULL || strstr(verdict->title, ", on 2 of 16 ranks") == NULL)
		show(&verdicts);
	verdicts_release(&verdicts);
	log_stage_release(&stage);
}

static void the_odd_one_is_named(void)
{
	struct played played;
	struct verdicts verdicts;
	const struct verdict *verdict;

	play(&played, "env.NCCL_IB_HCA=mlx5\n");
	verdicts = verdicts_of(NULL, &played.recording);
	EXPECT_THAT("devices and ports may differ", verdicts.count == 0);
	verdicts_release(&verdicts);

	play(&played, "");
	for (int i = 0; i < RANKS; i++)
		if (i != 2)
			add_info(&played, i, "env.NCCL_IB_HCA=mlx5\n");
	verdicts = verdicts_of(NULL, &played.recording);
	verdict = find(&verdicts, "environment-differs");
	EXPECT(verdict != NULL && verdict->rank == 2 && strcmp(verdict->host, "node1") == 0 &&
	       strcmp(verdict->job, "j7") == 0 && verdict->confidence == 1 &&
	       has_line(&verdict->evidence, "rank 2 (node1): NCCL_IB_HCA is not set") &&
	       has_line(&verdict->evidence, "env of rank 0 (node0): NCCL_IB_HCA=mlx5"));
	verdicts_release(&verdicts);

	play(&played, "");
	add_info(&played, 2, "env.NCCL_IB_HCA=mlx5\n");
	played.comms[2].info.hash = 0x77;
	verdicts = verdicts_of(NULL, &played.recording);
	EXPECT_THAT("ranks without a shared communicator are not compared",
		    find(&verdicts, "environment-differs") == NULL);
	verdicts_release(&verdicts);

	play(&played, "env_left_out=3\n");
	add_info(&played, 2, "env.NCCL_IB_HCA=mlx5\n");
	verdicts = verdicts_of(NULL, &played.recording);
	EXPECT_THAT("a variable that was dropped for lack of room is not unset",
		    find(&verdicts, "environment-differs") == NULL);
	verdicts_release(&verdicts);

	play(&played, "");
	for (int i = 0; i < RANKS; i++)
		add_info(&played, i,
			 (const char *[]){ "env.NCCL_IB_HCA=a\n", "env.NCCL_IB_HCA=b\n",
					   "env.NCCL_IB_HCA=c\n", "env.NCCL_IB_HCA=d\n" }[i]);
	verdicts = verdicts_of(NULL, &played.recording);
	EXPECT_THAT("different values on all ranks are intended", verdicts.count == 0);
	verdicts_release(&verdicts);

	play(&played, "");
	played.processes[3].interface = 5;
	verdicts = verdicts_of(NULL, &played.recording);
	verdict = find(&verdicts, "version-mismatch");
	EXPECT(verdict != NULL && verdict->severity == VERDICT_ERROR && verdict->rank == 3);
	verdicts_release(&verdicts);
}

/* ---- queue pairs ----------------------------------------------------------------------------- */

#define FROM "node0:1000:1 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>\n"
#define TO "node1:1002:1 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.2<0>\n"

/* A hang of the link from rank 0 to this host, and what the log adds to it. */
static struct verdicts hang_with(const char *text, const char *peer_host)
{
	struct verdicts verdicts;
	struct played played;
	struct nccl_log log;
	struct verdict *hang;

	play(&played, "");
	verdicts_init(&verdicts);
	hang = verdicts_add(&verdicts, VERDICT_NETWORK_STUCK, VERDICT_ERROR);
	hang->rank = 0;
	hang->pid = 1000;
	hang->peer = 2;
	hang->confidence = 0.8;
	text_copy(hang->host, sizeof(hang->host), "node0");
	text_copy(hang->peer_host, sizeof(hang->peer_host), peer_host);
	verdict_title(hang, "network send stuck: rank 0 -> rank 2");
	nccl_log_init(&log);
	if (nccl_log_add_memory(&log, "nccl.log", text, strlen(text)) != OK ||
	    setup_find(&verdicts, &log, &played.recording) != OK)
		abort();
	nccl_log_release(&log);
	keep(text, &verdicts);
	return verdicts;
}

static void a_stalled_queue_pair_locates_a_hang(void)
{
	struct verdicts verdicts = hang_with(FROM TO STALL("36000000000"), "node1");
	const struct verdict *hang = &verdicts.list[0];

	EXPECT_THAT("the NIC and its peer are in the verdict",
		    has_line(&hang->evidence, "mlx5_3 port 1, queue pair 17 to 10.0.0.2 (node1)") &&
			    has_line(&hang->advice, "$ ibstat mlx5_3 1"));
	EXPECT_THAT("both agree: more certain", hang->confidence > 0.85 && hang->confidence < 1);
	EXPECT_THAT("it is not reported twice", find(&verdicts, "ib-stall") == NULL);
	verdicts_release(&verdicts);

	verdicts = hang_with(FROM STALL("36000000000"), "node1");
	hang = &verdicts.list[0];
	EXPECT_THAT("whose address it is is not known: no more certain than before",
		    hang->confidence == 0.8 && has_line(&hang->evidence, "mlx5_3 port 1") &&
			    has_line(&hang->missing, "may lead to another rank"));
	verdicts_release(&verdicts);
}

static void a_queue_pair_of_another_link_does_not(void)
{
	struct verdicts verdicts = hang_with(FROM TO STALL("36000000000"), "node7");

	EXPECT_THAT("it leads elsewhere: a finding of its own",
		    verdicts.list[0].evidence.count == 0 && verdicts.list[0].confidence == 0.8 &&
			    find(&verdicts, "ib-stall") != NULL);
	verdicts_release(&verdicts);

	verdicts =
		hang_with(FROM TO STALL("36000000000") R0
			  "NET/IB: WQE slow: peer=10.0.0.2<4711> | local: qpn=17 dev=mlx5_3 port=1 "
			  "lid=7 localGid= | remote: qpn=99 port=1 lid=8 remoteGid= | thr=100000ns "
			  "delta=37000000000ns mean=9ns stddev=1ns p50=9ns p90=9ns p99=9ns "
			  "p99.9=9ns max=37000000000ns count=7 | t_post=1 t_poll=2\n",
			  "node1");
	EXPECT_THAT("it has completed since: not what hangs",
		    verdicts.list[0].evidence.count == 0 && find(&verdicts, "ib-stall") != NULL &&
			    strstr(find(&verdicts, "ib-stall")->title, "and went on") != NULL);
	verdicts_release(&verdicts);

	verdicts = hang_with(FROM TO STALL("200000000"), "node1");
	EXPECT_THAT("a fifth of a second says nothing about a hang",
		    verdicts.list[0].evidence.count == 0);
	verdicts_release(&verdicts);
}

/* The same process in log and recording counts once, and its rank is the recorded one. */
static void log_and_recording_are_joined(void)
{
	struct played played;
	struct verdicts verdicts;
	const struct verdict *verdict;

	play(&played, "");
	add_info(&played, 3, "env.NCCL_ALGO=Tree\n");
	verdicts = verdicts_of("node1:1003:1 [0] NCCL INFO NCCL_ALGO set by environment to Tree\n"
			       "node1.cluster:1003:1 [0] NCCL INFO cudaDriverVersion 12080\n",
			       &played.recording);
	verdict = find(&verdicts, "algorithm-forced");
	EXPECT(verdict != NULL && verdict->rank == 3 && verdict->evidence.count == 1 &&
	       has_line(&verdict->evidence, "env of rank 3 (node1): NCCL_ALGO=Tree"));
	verdicts_release(&verdicts);
	verdicts = verdicts_of(NULL, NULL);
	EXPECT_EQUAL(verdicts.count, 0);
	verdicts_release(&verdicts);
}

/* The first and the last value of each kind of rule, and those beside them. */
static void values_decide(void)
{
	static const struct {
		const char *rule, *variable;
		const char *speaks[8], *silent[8];
	} cases[] = {
		{ "p2p-disabled",
		  "NCCL_P2P_DISABLE",
		  { "1", "2", "-1", "true", "Yes", "ON" },
		  { "0", "false", "no", "off", "maybe" } },
		{ "nvls-off",
		  "NCCL_NVLS_ENABLE",
		  { "0", "False", "NO", "off" },
		  { "1", "2", "-1", "true", "yes", "on", "maybe" } },
		{ "few-channels",
		  "NCCL_MAX_NCHANNELS",
		  { "1", "4" },
		  { "0", "-1", "5", "four", "4x" } },
		{ "ib-timeout", "NCCL_IB_TIMEOUT", { "0", "17" }, { "18", "19", "-1", "x" } },
		{ "buffer-size",
		  "NCCL_BUFFSIZE",
		  { "1", "4194303", "4194305" },
		  { "4194304", "0", "-1", "4M" } },
		{ "p2p-disabled", "NCCL_P2P_LEVEL", { "LOC", "loc", "0" }, { "NVL", "LOCO", "1" } },
		{ "algorithm-forced", "NCCL_ALGO", { "Ring" }, { NULL } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int is_silent = 0; is_silent < 2; is_silent++)
			for (int j = 0; j < 8; j++) {
				const char *value =
					is_silent ? cases[i].silent[j] : cases[i].speaks[j];
				struct verdicts verdicts;
				char line[256];

				if (value == NULL)
					break;
				text_format(line, sizeof(line), R0 "%s set by environment to %s\n",
					    cases[i].variable, value);
				verdicts = verdicts_of(line, NULL);
				if (!EXPECT((find(&verdicts, cases[i].rule) == NULL) == is_silent))
					printf("# %s=%s\n", cases[i].variable, value);
				verdicts_release(&verdicts);
			}
}

int main(void)
{
	values_decide();
	each_example_speaks();
	each_rule_has_a_page_and_an_example();
	a_clean_log_has_nothing();
	real_logs_get_what_they_deserve();
	few_channels_within_a_node();
	the_missing_rank_is_named();
	one_log_of_many_blames_nobody();
	a_rank_counts_once();
	the_odd_one_is_named();
	log_and_recording_are_joined();
	a_stalled_queue_pair_locates_a_hang();
	a_queue_pair_of_another_link_does_not();
	expected_compare(&kept, "tests/unit/doctor/expected/setup.txt");
	return tap_done();
}
