/*
 * NCCL's logs: of two real jobs (tests/nccllog), and made-up lines as printed by the sources of
 * 2.18 to 2.30.
 */
#include "import/nccl_log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/nccl_log_stage.h"
#include "tests/tap.h"

static struct nccl_log log_of(const char *text)
{
	struct nccl_log log;

	nccl_log_init(&log);
	if (nccl_log_add_memory(&log, "a.log", text, strlen(text)) != OK)
		abort();
	return log;
}

static void add_file(struct nccl_log *log, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd == -1 || nccl_log_add_fd(log, path, fd) != OK) {
		printf("Bail out! %s\n", path);
		exit(1);
	}
	close(fd);
}

static uint64_t sum_of_kinds(const struct nccl_log *log)
{
	uint64_t sum = 0;

	for (int i = 0; i < NCCL_LOG_KINDS; i++)
		sum += log->kinds[i];
	return sum;
}

/* ---- real ones ------------------------------------------------------------------------------- */

static void a_real_log_of_four_ranks(void)
{
	static const char *const files[] = { "tests/nccllog/info-4ranks-29630.dbg",
					     "tests/nccllog/info-4ranks-29631.dbg",
					     "tests/nccllog/info-4ranks-29632.dbg",
					     "tests/nccllog/info-4ranks-29633.dbg" };
	const struct nccl_log_comm *comm;
	struct nccl_log log;

	nccl_log_init(&log);
	for (int i = 0; i < 4; i++)
		add_file(&log, files[i]);
	EXPECT_EQUAL(log.lines, 220);
	EXPECT_EQUAL(log.nccl_lines, 203);
	EXPECT_EQUAL(sum_of_kinds(&log), 203);
	EXPECT_THAT("every line is understood",
		    log.kinds[NCCL_LOG_KIND_OTHER] == 0 && log.other_count == 0);
	EXPECT_EQUAL(log.process_count, 4);
	EXPECT(strcmp(log.processes[2].host, "vm") == 0 && log.processes[2].pid == 29632);
	EXPECT(strcmp(log.processes[0].version, "2.28.9") == 0 &&
	       strcmp(log.processes[0].cuda_version, "13.0") == 0 &&
	       log.processes[0].driver_version == 13000);
	EXPECT_EQUAL(log.comm_count, 4);
	comm = &log.comms[1];
	EXPECT(comm->hash == 0x8cda0130ee5eb8c7u && comm->rank == 1 && comm->nranks == 4);
	EXPECT(comm->start.file == 1 && comm->start.line == 15 && comm->complete.line == 34 &&
	       comm->end.line == 48);
	EXPECT(strcmp(comm->function, "ncclCommInitRank") == 0 && comm->bus_id == 0x60 &&
	       comm->nnodes == 4);
	EXPECT(comm->total_s > 0.379 && comm->total_s < 0.381 &&
	       comm->phase_s[NCCL_LOG_KERNELS] > 0.329 && comm->phase_s[NCCL_LOG_REST] == 0);
	EXPECT(comm->coll_channels == 2 && comm->nvls_channels == 0 && comm->p2p_per_peer == 2);
	EXPECT(comm->ring_gdr == 0 && comm->has_rings && comm->has_trees);
	EXPECT_EQUAL(log.link_count, 22);
	EXPECT(log.links[0].from == 0 && log.links[0].to == 1 && log.links[0].direction == 's' &&
	       log.links[0].transport == NCCL_LOG_NET &&
	       strcmp(log.links[0].network, "Socket") == 0 && log.links[0].channels[0] == 3 &&
	       log.links[0].comm == 0);
	EXPECT(log.channel_count == 8 && strcmp(log.channels[0].ring, "0 1 2 3") == 0 &&
	       log.channels[0].tree_down[0] == 2 && log.channels[1].tree_up == 1);
	EXPECT(log.net_count == 4 && strcmp(log.nets[0].name, "lo") == 0 &&
	       strcmp(log.nets[0].address, "127.0.0.1") == 0);
	EXPECT(nccl_log_variable(&log, 3, "NCCL_IB_DISABLE") != NULL &&
	       strcmp(nccl_log_variable(&log, 3, "NCCL_IB_DISABLE")->value, "1") == 0 &&
	       strcmp(nccl_log_variable(&log, 3, "NCCL_HOSTID")->value, "host3") == 0);
	EXPECT(nccl_log_variable(&log, 3, "NCCL_ALGO") == NULL);
	nccl_log_release(&log);
}

static void a_real_trace_of_two_ranks(void)
{
	struct nccl_log log;
	bool has_pat = false;

	nccl_log_init(&log);
	add_file(&log, "tests/nccllog/trace-2ranks-29679.dbg");
	add_file(&log, "tests/nccllog/trace-2ranks-29680.dbg");
	EXPECT(log.nccl_lines == 639 && sum_of_kinds(&log) == 639 && log.other_count == 0);
	EXPECT(log.choice_count == 2 && strcmp(log.choices[0].algorithm, "RING") == 0 &&
	       strcmp(log.choices[1].protocol, "SIMPLE") == 0 && log.choices[1].channels == 2 &&
	       log.choices[1].bytes == 1048576);
	for (size_t i = 0; i < log.cost_count; i++)
		has_pat |= strcmp(log.costs[i].algorithm, "PAT") == 0 &&
			   strcmp(log.costs[i].function, "ReduceScatter") == 0 &&
			   strcmp(log.costs[i].protocol, "Simple") == 0 &&
			   log.costs[i].bandwidth > 1.7;
	EXPECT_THAT("the table of costs is read", log.cost_count == 14 && has_pat);
	EXPECT(log.channels[0].ring_previous == 1 && log.channels[0].ring_next == 1);
	EXPECT(log.nets[0].gdr == 0);
	for (size_t i = 0; i < log.operation_count; i++)
		if (strcmp(log.operations[i].function, "Recv") == 0 &&
		    log.operations[i].process == 0)
			EXPECT(log.operations[i].lines == 6 && log.operations[i].first_count == 6 &&
			       log.operations[i].last_count == 0xb && log.operations[i].comm == 0);
	nccl_log_release(&log);
}

/* ---- heads ----------------------------------------------------------------------------------- */

static void what_stands_before_a_line(void)
{
	struct nccl_log log = log_of(
		"[1,3]<stdout>:node1:7:8 [3] NCCL INFO cudaDriverVersion 12080\n"
		"12: node2:7:8 [0] NCCL INFO cudaDriverVersion 12080\r\n"
		"[rank5]: [2026-01-02 10:00:00] node3:7:8 [0] NCCL INFO cudaDriverVersion 12080\n"
		"\x1b[32mnode4:7:8 [0] NCCL\x1b[0m INFO cudaDriverVersion 12080\n"
		"\x1b[32mnode5:7:8 [0] NCCL INFO cudaDriverVersion 12080\x1b[0m\n"
		"Training 10%|#   | 3/30 loss=0.1\rnode6:7:8 [0] NCCL INFO cudaDriverVersion "
		"12080\n"
		"2026-01-02T10:00:00.1Z stdout F node-7.cluster:7:8 [0] NCCL INFO "
		"cudaDriverVersion 12080\n"
		"NCCL INFO cudaDriverVersion 12080\n"
		"NCCL version 2.19.3+cuda12.3\n"
		"no line of NCCL INFO at all, although NCCL is in it\n");

	EXPECT_EQUAL(log.nccl_lines, 9);
	EXPECT_EQUAL(log.kinds[NCCL_LOG_KIND_VERSION], 9);
	EXPECT(log.process_count == 8 && strcmp(log.processes[0].host, "node1") == 0 &&
	       log.processes[0].launcher_rank == 3 && log.processes[0].cuda_device == 3);
	EXPECT(log.processes[1].launcher_rank == 12 && log.processes[2].launcher_rank == 5 &&
	       log.processes[3].launcher_rank == -1);
	EXPECT(strcmp(log.processes[6].host, "node-7.cluster") == 0 &&
	       log.processes[6].driver_version == 12080);
	EXPECT_THAT("all lines without a header share one process",
		    log.processes[7].pid == -1 && log.processes[7].host[0] == '\0' &&
			    strcmp(log.processes[7].version, "2.19.3") == 0);
	nccl_log_release(&log);
}

static void warnings_have_a_source(void)
{
	struct nccl_log log = log_of(
		"\nnode1:7:8 [3] transport/net.cc:12 NCCL WARN NET/Socket : socket progress error\n"
		"[2026-01-02 10:00:00] node1:7:8 [3] misc/socket.cc:71 (socketProgress) NCCL WARN "
		"socketProgress: Connection closed by remote peer 10.0.0.1<4711>\n"
		"node1:7:9 [3] misc/socket.cc:71 NCCL WARN socketProgress: Connection closed by "
		"remote "
		"peer 10.0.0.2<4712>\n"
		"node1:7:8 [3] 12.345678 init.cc:1 NCCL TRACE whatever it is\n");

	EXPECT_EQUAL(log.warning_count, 2);
	EXPECT(strcmp(log.warnings[0].source, "transport/net.cc:12") == 0 &&
	       log.warnings[0].place.line == 2);
	EXPECT(strcmp(log.warnings[1].source, "misc/socket.cc:71 (socketProgress)") == 0);
	EXPECT_THAT("different numbers do not make a different warning",
		    log.warnings[1].lines == 2 && log.warnings[1].last.line == 4);
	EXPECT(log.kinds[NCCL_LOG_KIND_TRACE] == 1 && log.process_count == 1);
	nccl_log_release(&log);
}

static void two_messages_in_one_line(void)
{
	struct nccl_log log = log_of(
		"node1:7:8 [0] NCCL INFO cudaDriverVersion 12080\n"
		"node1:9:9 [1] NCCL INFO Connected allnode1:7:8 [0] NCCL INFO Using network IB\n"
		" trees\n"
		"node1:9:9 [1] NCCL INFO cudaDriverVersion 12080node1:7:8 [0] NCCL INFO NCCL "
		"version "
		"2.28.9+cuda12.8\n");

	EXPECT(log.nccl_lines == 5 && log.cut_lines == 2 && sum_of_kinds(&log) == 5);
	EXPECT_THAT("the second's process is known", log.process_count == 2);
	EXPECT(log.note_count == 1 && strcmp(log.notes[0].text, "Using network IB") == 0 &&
	       log.notes[0].process == 0);
	EXPECT(log.processes[1].driver_version == 12080 &&
	       strcmp(log.processes[0].version, "2.28.9") == 0);
	EXPECT_THAT("the first is counted as not recognized",
		    log.other_count == 1 && strcmp(log.others[0].beginning, "Connected all") == 0);
	nccl_log_release(&log);
}

/* ---- what lines mean -------------------------------------------------------------------------- */

#define HEAD "node1:7:8 [0] NCCL INFO "

static const struct {
	enum nccl_log_kind kind;
	const char *message;
} messages[] = {
	{ NCCL_LOG_KIND_INIT,
	  "comm 0x55aa rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x1f - Init START" },
	{ NCCL_LOG_KIND_INIT, "ncclCommSplit comm 0x55ab rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId "
			      "1000 parent 0x55aa splitCount 1 color 0 key 0- Init START" },
	{ NCCL_LOG_KIND_INIT, "[Rank 0] ncclCommInitRankConfig comm 0x55ac rank 0 nranks 2 cudaDev "
			      "0 nvmlDev 0 busId 1000 commId 0x2f - Init START" },
	{ NCCL_LOG_KIND_INIT, "comm 0x55aa rank 0 nranks 2 cudaDev 0 busId 1000 - Abort COMPLETE" },
	{ NCCL_LOG_KIND_TIMING,
	  "Init timings: rank 0 nranks 2 total 1.50 (kernels 0.10, bootstrap 1.00, allgathers "
	  "0.10, topo 0.10, graphs 0.00, connections 0.10, rest 0.10)" },
	{ NCCL_LOG_KIND_CHANNELS,
	  "4 coll channels, 0 nvls channels, 8 p2p channels, 2 p2p channels per peer" },
	{ NCCL_LOG_KIND_LINK, "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct" },
	{ NCCL_LOG_KIND_LINK, "Channel 00 : 0[0] -> 1[1] via SHM/direct" },
	{ NCCL_LOG_KIND_LINK, "Channel 01/0 : 0[1a000] -> 1[1b000] via P2P/IPC/read" },
	{ NCCL_LOG_KIND_LINK, "Channel 01/0 : 0[0] -> 1[1] via P2P/direct pointer/read" },
	{ NCCL_LOG_KIND_LINK, "Channel 01/0 : 0[0] -> 1[1] via P2P/indirect/3[3]" },
	{ NCCL_LOG_KIND_LINK,
	  "Channel 63/1 : 0[0] -> 1[1] [send] via NET/IB/3(5)/GDRDMA(PCI)/Shared" },
	{ NCCL_LOG_KIND_LINK,
	  "Channel 00/0 : 0[0] -> 1[0] [receive] via NET/AWS Libfabric/2/GDRDMA" },
	{ NCCL_LOG_KIND_COLLNET, "CollNet 00/1 : 0 [send] via COLLNET/SHARP/0/GDRDMA" },
	{ NCCL_LOG_KIND_RING, "Channel 07/16 : 0 1" },
	{ NCCL_LOG_KIND_TREE, "Tree 3 : -1 -> 0 -> 1/-1/-1" },
	{ NCCL_LOG_KIND_NET_DEVICE, "NET/IB : Using [0]mlx5_0:1/IB [1]={[1] mlx5_1:1/RoCE, [2] "
				    "mlx5_2:1/RoCE} [RO]; OOB eth0:10.0.0.1<0>" },
	{ NCCL_LOG_KIND_NET_DEVICE, "NET/IB : Made virtual device [8] name=mlx5_0+mlx5_1 "
				    "speed=800000 ndevs=2 rail=0 plane=0" },
	{ NCCL_LOG_KIND_NETWORK, "NET/IB : No device found." },
	{ NCCL_LOG_KIND_GDR, "NET/AWS Libfabric : GPU Direct RDMA Enabled for HCA 0 'rdmap16s27'" },
	{ NCCL_LOG_KIND_GDR, "GPU Direct RDMA Disabled for GPU 1a000 / HCA 3 (distance 9 > 4)" },
	{ NCCL_LOG_KIND_IB, "NET/IB: IbDev 0 Port 1 qpn 4 set_ece={supported=0, vendor_id=0x0, "
			    "options=0x0, comp_mask=0x0}" },
	{ NCCL_LOG_KIND_OFI, "NET/OFI Selected Provider is efa (found 4 nics)" },
	{ NCCL_LOG_KIND_VARIABLE, "NCCL_IB_HCA set to mlx5_0" },
	{ NCCL_LOG_KIND_VARIABLE, "NCCL_P2P_LEVEL set by environment to SYS" },
	{ NCCL_LOG_KIND_CONFIG, "NCCL_MAX_CTAS 0 is too low, leaving it set at 32" },
	{ NCCL_LOG_KIND_PLUGIN,
	  "NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: cannot open "
	  "shared object file: No such file or directory" },
	{ NCCL_LOG_KIND_PLUGIN, "NET/Plugin: Loaded net plugin AWS Libfabric (v8)" },
	{ NCCL_LOG_KIND_PLUGIN, "TUNER/Plugin: Failed to find ncclTunerPlugin_v3 symbol." },
	{ NCCL_LOG_KIND_PLUGIN, "PROFILER/Plugin: libx.so: undefined symbol: y" },
	{ NCCL_LOG_KIND_PLUGIN, "External tuner plugin x is unsupported" },
	{ NCCL_LOG_KIND_NVLS, "NVLS multicast support is not available on dev 0" },
	{ NCCL_LOG_KIND_MNNVL, "MNNVL 1 cliqueId 7 cliqueSize 8 cliqueRank 3" },
	{ NCCL_LOG_KIND_C2C, "GPU 0 / HCA 1 connected to CPU 0 via C2C link" },
	{ NCCL_LOG_KIND_P2P, "P2P is disabled between connected GPUs 0 and 1. You can repress this "
			     "message with NCCL_IGNORE_DISABLED_P2P=1." },
	{ NCCL_LOG_KIND_TOPOLOGY, "=== System : maxBw 48.0 totalBw 480.0 ===" },
	{ NCCL_LOG_KIND_TOPOLOGY, "Loading topology file /etc/topo.xml" },
	{ NCCL_LOG_KIND_GRAPH, "+ NVL[480.0] - NVS/0-0" },
	{ NCCL_LOG_KIND_CHOICE, "1048576 Bytes -> Algo 1 proto 2 time 61.200000" },
	{ NCCL_LOG_KIND_CHOICE, "AllReduce: 1024 Bytes -> Algo 4 proto 0 time 9.2" },
	{ NCCL_LOG_KIND_CHOICE, "AllReduce [Symmetric]: 4096 Bytes -> Kernel AllReduce_AGxLL_R "
				"nchannels 4 nthreads 512 nWorks 1" },
	{ NCCL_LOG_KIND_CHOICE, "AllGather [Copy Engine]: 4096 Bytes -> cudaMemcpyBatchAsync" },
	{ NCCL_LOG_KIND_RETURN, "init.cc:1234 -> 3 [Async thread]" },
	{ NCCL_LOG_KIND_RETRY, "Call to connect returned Connection refused, retrying" },
	{ NCCL_LOG_KIND_RETRY, "socketPollConnect: connect to 10.0.0.1<1> returned Connection "
			       "refused, retrying (1/34) after sleep for 100 msec" },
	{ NCCL_LOG_KIND_BOOTSTRAP, "Bootstrap : Using eth0:10.0.0.1<0>" },
	{ NCCL_LOG_KIND_DMABUF, "DMA-BUF is available on GPU device 0" },
	{ NCCL_LOG_KIND_RAS, "RAS client listening socket at 127.0.0.1<28028>" },
	{ NCCL_LOG_KIND_PROFILER, "Ringside 0.1: mode flight, region none" },
	{ NCCL_LOG_KIND_OTHER, "Something new that 12 people know" },
};

static void each_kind_of_line_is_known(void)
{
	for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++) {
		char text[2048];
		struct nccl_log log;

		snprintf(text, sizeof(text), HEAD "%s\n", messages[i].message);
		log = log_of(text);
		if (!EXPECT_THAT(messages[i].message,
				 log.nccl_lines == 1 && log.kinds[messages[i].kind] == 1))
			for (int kind = 0; kind < NCCL_LOG_KINDS; kind++)
				if (log.kinds[kind] > 0)
					printf("# it was taken for: %s\n",
					       nccl_log_kind_name((enum nccl_log_kind)kind));
		nccl_log_release(&log);
	}
}

static struct nccl_log log_of_all_messages(void)
{
	char *text = malloc(65536);
	struct nccl_log log;
	size_t used = 0;

	for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++)
		used += (size_t)snprintf(text + used, 65536 - used, HEAD "%s\n",
					 messages[i].message);
	log = log_of(text);
	free(text);
	return log;
}

static const struct nccl_log_link *link_with(const struct nccl_log *log,
					     enum nccl_log_transport transport)
{
	for (size_t i = 0; i < log->link_count; i++)
		if (log->links[i].transport == transport)
			return &log->links[i];
	abort();
}

static void facts_of_single_lines(void)
{
	struct nccl_log log = log_of_all_messages();
	const struct nccl_log_link *link = link_with(&log, NCCL_LOG_NET);

	EXPECT(link->device == 3 && link->through == 5 && link->connection == 1 &&
	       link->channels[0] == UINT64_C(1) << 63 &&
	       link->flags == (NCCL_LOG_LINK_GDR | NCCL_LOG_LINK_GDR_PCI | NCCL_LOG_LINK_SHARED |
			       NCCL_LOG_LINK_PXN));
	EXPECT(link_with(&log, NCCL_LOG_P2P_INDIRECT)->through == 3);
	EXPECT(strcmp(link_with(&log, NCCL_LOG_SHM)->detail, "direct/direct") == 0);
	EXPECT(link_with(&log, NCCL_LOG_P2P_IPC)->from_device == -1 &&
	       link_with(&log, NCCL_LOG_P2P_IPC)->flags == NCCL_LOG_LINK_READ);
	EXPECT(strcmp(link_with(&log, NCCL_LOG_COLLNET)->network, "SHARP") == 0);
	EXPECT(log.net_count == 5 && strcmp(log.nets[0].name, "mlx5_0") == 0 &&
	       log.nets[0].port == 1 && strcmp(log.nets[0].link, "IB") == 0);
	EXPECT(strcmp(log.nets[2].name, "mlx5_2") == 0 && strcmp(log.nets[2].link, "RoCE") == 0 &&
	       log.nets[2].index == 1);
	EXPECT(log.nets[3].is_virtual && log.nets[3].speed == 800000);
	EXPECT(strcmp(log.nets[4].network, "AWS Libfabric") == 0 && log.nets[4].gdr == 1);
	EXPECT(log.gdr_count == 1 && !log.gdrs[0].is_on);
	EXPECT(strcmp(log.choices[0].algorithm, "RING") == 0 &&
	       strcmp(log.choices[0].protocol, "SIMPLE") == 0 &&
	       log.choices[0].function[0] == '\0' && log.choices[0].time_us > 61);
	EXPECT(strcmp(log.choices[2].algorithm, "AllReduce_AGxLL_R") == 0 &&
	       log.choices[2].channels == 4);
	EXPECT(log.plugins[0].state == NCCL_LOG_PLUGIN_NOT_FOUND &&
	       log.plugins[1].state == NCCL_LOG_PLUGIN_LOADED && log.plugins[1].version == 8 &&
	       strcmp(log.plugins[1].name, "AWS Libfabric") == 0);
	EXPECT_THAT("a symbol of another version is not a failure",
		    log.plugins[2].state == NCCL_LOG_PLUGIN_FAILED &&
			    strcmp(log.plugins[2].kind, "PROFILER") == 0);
	EXPECT(log.other_count == 1 &&
	       strcmp(log.others[0].beginning, "Something new that # people know") == 0);
	nccl_log_release(&log);
}

static void what_frameworks_say_is_kept_apart(void)
{
	struct nccl_log log = log_of(
		HEAD
		"NET/IB : Using [0]mlx5_0:1:3:0/IB [1]mlx5_1:2::/RoCE [RO]; OOB eth0:10.0.0.1<0>\n"
		"[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective "
		"operation timeout: "
		"WorkNCCL(SeqNum=5, OpType=ALLREDUCE) ran for 600015 milliseconds before timing "
		"out.\n"
		"[rank3]:[E ProcessGroupNCCL.cpp:617] [Rank 3] Watchdog caught collective "
		"operation timeout: "
		"WorkNCCL(SeqNum=7, OpType=ALLREDUCE) ran for 600099 milliseconds before timing "
		"out.\n"
		"Watchdog caught a thief\n"
		"[rank3]:[W ProcessGroupNCCL.cpp:12] hello\n");

	EXPECT(log.nccl_lines == 1 && log.report_count == 1 && log.reports[0].lines == 2 &&
	       log.reports[0].rank == 3 && log.reports[0].place.line == 2);
	EXPECT_THAT("rails and planes of 2.30 are skipped",
		    log.net_count == 2 && strcmp(log.nets[0].link, "IB") == 0 &&
			    log.nets[1].port == 2 && strcmp(log.nets[1].link, "RoCE") == 0);
	nccl_log_release(&log);
}

static void communicators_are_told_apart(void)
{
	struct nccl_log log = log_of_all_messages();

	EXPECT_EQUAL(log.comm_count, 3);
	EXPECT(strcmp(log.comms[0].end_word, "Abort") == 0 && log.comms[0].complete.line == 0);
	EXPECT_THAT("a split has its parent's group in its own", log.comms[1].parent == 0x55aa &&
									 log.comms[1].hash == 0 &&
									 log.comms[1].group != 0);
	EXPECT(log.comms[2].hash == 0x2f &&
	       strcmp(log.comms[2].function, "ncclCommInitRankConfig") == 0);
	nccl_log_release(&log);

	log = log_of(HEAD
		     "comm 0x55aa rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x1 - Init "
		     "START\n" HEAD
		     "comm 0x55aa rank 0 nranks 2 cudaDev 0 busId 1000 - Destroy COMPLETE\n" HEAD
		     "comm 0x55aa rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x2 - Init "
		     "START\n" HEAD "comm 0x55aa rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 "
		     "commId 0x2 - Init COMPLETE\n");
	EXPECT_THAT("reused memory is another communicator",
		    log.comm_count == 2 && log.comms[0].complete.line == 0 &&
			    log.comms[1].complete.line == 4);
	nccl_log_release(&log);
}

/* ---- NCCL 2.31 and 2.32 -------------------------------------------------------------------------- */

/* The formats are those of NCCL's sources: no log of these releases was at hand. */
static void lines_of_newer_releases(void)
{
	struct nccl_log log =
		log_of("\n[2026-11-16 10:00:00] n1:4711:4711 [3] init.cc:812 (initTransportsRank) "
		       "NCCL ATTN "
		       "the plugin is not used\n"
		       "n1:4711 NCCL DIAG === RAS Diagnostics ===\n"
		       "n1:4711 NCCL DIAG [OK]   ECC: no uncorrected volatile errors across 8 "
		       "ranks in comm "
		       "0x77\n"
		       "n1:4711 NCCL DIAG [INFO] ECC: uncorrected volatile errors on rank(s) "
		       "{3,7,...} (N=9) "
		       "(worst=2) across 16 ranks in comm 0x77\n"
		       "n1:4711 NCCL DIAG [INFO] Xid 31 detected 1 time on host n2.\n"
		       "n1:4711 NCCL DIAG [INFO] Xid 79 detected 1 time on host n2.\n"
		       "NCCL DIAG [OK]   p2p: all 56 directed GPU P2P edges verified\n");

	EXPECT_EQUAL(log.nccl_lines, 7);
	EXPECT_EQUAL(log.kinds[NCCL_LOG_KIND_OTHER], 0);
	EXPECT_THAT("header, source and text of level ATTN",
		    log.warning_count == 1 && log.warnings[0].is_attention &&
			    strcmp(log.warnings[0].source, "init.cc:812 (initTransportsRank)") ==
				    0 &&
			    strcmp(log.warnings[0].text, "the plugin is not used") == 0);
	EXPECT_THAT("diagnostics have no thread in their header: the same process",
		    log.process_count == 2 && log.processes[0].pid == 4711 &&
			    strcmp(log.processes[0].host, "n1") == 0);
	EXPECT_THAT("two Xids are two facts", log.diagnosis_count == 3 && log.diagnoses_fine == 2);
	EXPECT(log.diagnoses[0].rank_count == 2 && log.diagnoses[0].ranks[1] == 7 &&
	       log.diagnoses[0].comm_hash == 0x77 && log.diagnoses[0].process == 0);
	nccl_log_release(&log);
}

static void a_real_log_of_2_31(void)
{
	struct nccl_log log;

	nccl_log_init(&log);
	add_file(&log, "tests/gpu/ras/2.31.0-skip.log");
	EXPECT(log.nccl_lines > 100 && sum_of_kinds(&log) == log.nccl_lines &&
	       log.other_count == 0);
	EXPECT(strcmp(log.processes[0].version, "2.31.0a7") == 0 &&
	       strcmp(log.processes[0].git, "main 1f5d73f-dirty") == 0 &&
	       log.processes[0].git_place.line == 8);
	for (size_t i = 0; i < log.plugin_count; i++)
		EXPECT_THAT("only InfiniBand, which is turned off, could not be used",
			    log.plugins[i].state != NCCL_LOG_PLUGIN_FAILED ||
				    strcmp(log.plugins[i].name, "IB") == 0);
	nccl_log_release(&log);
}

/* As 2.27.7, 2.30.7 and 2.31.0 write them on a host without any of these plugins. */
static void plugins_that_nobody_asked_for(void)
{
	struct nccl_log log = log_of(
		HEAD "PROFILER/Plugin: Plugin name set by env to /opt/x.so\n" HEAD
		     "GIN/Plugin: Could not find: libnccl-gin.so\n" HEAD
		     "GIN/Plugin: Failed to load external plugin libnccl-gin.so, dlHandle: (nil), "
		     "ncclGin: (nil)\n" HEAD
		     "RMA/Plugin: Failed to load external plugin librma.so, dlHandle: 0x5581, "
		     "ncclRma: (nil)\n");

	EXPECT_THAT("a name belongs to its kind of plugin",
		    log.variable_count == 1 &&
			    strcmp(log.variables[0].name, "NCCL_PROFILER_PLUGIN") == 0);
	EXPECT_THAT("a library that is not there was not found; one that is there cannot be used",
		    log.plugin_count == 2 && log.plugins[0].state == NCCL_LOG_PLUGIN_NOT_FOUND &&
			    strcmp(log.plugins[0].name, "libnccl-gin.so") == 0 &&
			    log.plugins[1].state == NCCL_LOG_PLUGIN_FAILED &&
			    strcmp(log.plugins[1].name, "librma.so") == 0);
	nccl_log_release(&log);
}

#define ENDS                                                                                      \
	"peer=10.0.0.2<4711> | local: qpn=17 dev=mlx5_3 port=1 lid=7 localGid=fe80::1 | remote: " \
	"qpn=99 port=2 lid=8 remoteGid=fe80::2 | "

static void queue_pairs_have_both_ends(void)
{
	struct nccl_log log = log_of(
		HEAD
		"NET/IB: WQE slow: " ENDS
		"thr=100000ns delta=4100000ns mean=12000ns stddev=100ns p50=11000ns p90=20000ns "
		"p99=90000ns p99.9=4000000ns max=4200000ns count=5000 | t_post=1 t_poll=2\n"
		"\nnode1:7:4720 [0] wqe_lat_mon.cc:9 NCCL WARN NET/IB: WQE stall (no CQE): " ENDS
		"stall_thr=100000ns age=36000000000ns inflight=5\n" HEAD
		"NET/IB-CAST: WQE stall (no CQE): peer=10.0.0.3<1> | local: qpn=18 dev=rdma0 "
		"port=1 "
		"lid=0 localGid= | remote: qpn=1 port=1 lid=0 remoteGid= | stall_thr=5ns age=7ns "
		"inflight=1\n" HEAD "NET/IB: WQE latency summary [recv peer=10.0.0.3<1> dev=rdma0 "
		"qpn=18 port=1]: n=100 "
		"slow=3 thr=5ns | post-to-poll ns: mean=9 std=1 p50=8 p90=9 p99=30 p99.9=9 "
		"max=40\n" HEAD "NET/IB: WQE stall (no CQE): peer= | local: qpn= dev= port=\n");
	const struct nccl_log_queue *queue = log.queues;

	EXPECT_THAT("two queue pairs; a line without one is not lost",
		    log.queue_count == 2 && log.kinds[NCCL_LOG_KIND_LATENCY] == 4 &&
			    log.kinds[NCCL_LOG_KIND_IB] == 1);
	EXPECT(strcmp(queue->device, "mlx5_3") == 0 && queue->port == 1 && queue->number == 17 &&
	       strcmp(queue->peer, "10.0.0.2") == 0 && queue->remote_number == 99 &&
	       queue->remote_port == 2 && queue->local_lid == 7 && queue->remote_lid == 8 &&
	       strcmp(queue->local_gid, "fe80::1") == 0 &&
	       strcmp(queue->remote_gid, "fe80::2") == 0);
	EXPECT_THAT("it stalls after it was slow; level WARN in early builds",
		    queue->is_stalled && queue->slow_lines == 1 && queue->stall_lines == 1 &&
			    queue->stall_ns == UINT64_C(36000000000) &&
			    queue->slowest_ns == 4200000 && queue->in_flight == 5 &&
			    queue->samples == 5000 && queue->median_ns == 11000 &&
			    queue->p99_ns == 90000);
	EXPECT_THAT("a summary comes at the end: it no longer stalls",
		    !queue[1].is_stalled && queue[1].direction == 'r' &&
			    queue[1].slow_samples == 3 && queue[1].slowest_ns == 40 &&
			    queue[1].local_gid[0] == '\0');
	nccl_log_release(&log);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void the_same_again_costs_nothing(void)
{
	struct log_stage stage = log_stage_new(2, 8);
	struct nccl_log once, often;

	log_stage_play(&stage);
	once = log_of(stage.text);
	nccl_log_init(&often);
	for (int i = 0; i < 5; i++)
		nccl_log_add_memory(&often, "again", stage.text, stage.used);
	EXPECT(once.other_count == 0 && once.comm_count == 16);
	EXPECT(often.nccl_lines == 5 * once.nccl_lines && often.comm_count == once.comm_count &&
	       often.link_count == once.link_count && often.net_count == once.net_count &&
	       often.note_count == once.note_count && often.variable_count == once.variable_count);
	nccl_log_release(&once);
	nccl_log_release(&often);
	log_stage_release(&stage);
}

static void unknown_lines_have_a_bound(void)
{
	struct log_stage stage = log_stage_new(1, 1);
	struct nccl_log log;

	for (int i = 0; i < 3000; i++)
		log_put(&stage, HEAD "%c%c%c never seen before\n", 'g' + i % 19, 'g' + i / 19 % 19,
			'g' + i / 361 % 19);
	log = log_of(stage.text);
	EXPECT(log.other_count == 1024 && log.others_left_out > 0 &&
	       log.kinds[NCCL_LOG_KIND_OTHER] == 3000);
	nccl_log_release(&log);
	log_stage_release(&stage);
}

/* Through a pipe, in pieces, with a line that is longer than any buffer. */
static void a_stream_is_read_as_a_file(void)
{
	struct log_stage stage = log_stage_new(1, 8);
	size_t huge = 1 << 20;
	char *filler = malloc(huge);
	struct nccl_log memory, stream;
	int ends[2];

	memset(filler, 'x', huge);
	log_stage_play(&stage);
	if (pipe(ends) == -1)
		abort();
	if (fork() == 0) {
		size_t done = 0;

		close(ends[0]);
		while (done < stage.used) {
			size_t part = 1 + done * 7919 % 3000;

			part = part < stage.used - done ? part : stage.used - done;
			if (write(ends[1], stage.text + done, part) != (ssize_t)part)
				_exit(1);
			done += part;
		}
		if (write(ends[1], filler, huge) != (ssize_t)huge ||
		    write(ends[1], "\n" HEAD "Connected all trees", 1 + strlen(HEAD) + 19) == -1)
			_exit(1);
		_exit(0);
	}
	close(ends[1]);
	nccl_log_init(&stream);
	EXPECT(nccl_log_add_fd(&stream, "pipe", ends[0]) == OK);
	close(ends[0]);
	memory = log_of(stage.text);
	EXPECT(stream.nccl_lines == memory.nccl_lines + 1 &&
	       stream.link_count == memory.link_count && stream.lines == memory.lines + 2 &&
	       stream.long_lines == 1);
	EXPECT_EQUAL(stream.files[0].bytes, stage.used + huge + 1 + strlen(HEAD) + 19);
	nccl_log_release(&stream);
	nccl_log_release(&memory);
	free(filler);
	log_stage_release(&stage);
}

/* How often and where: each line is counted once for its kind, its process and its file. */
static void lines_are_counted(void)
{
	struct nccl_log log = log_of("something else\n"
				     "node1:7:8 [0] NCCL INFO init.cc:1234 -> 3\n"
				     "node1:7:8 [0] NCCL INFO init.cc:1235 -> 3\n"
				     "node1:7:8 [0] NCCL INFO misc.cc:5 Alloc of 7\n"
				     "node1:7:8 [0] NCCL INFO misc.cc:5 a chunk of 7\n"
				     "node1:7:8 [0] NCCL INFO misc.cc:5 Cuda Host 7\n"
				     "node1:7:8 [0] NCCL INFO misc.cc:5 Cuda failure 'x'\n"
				     "node1:7:8 [0] NCCL INFO misc.cc:5 what\n"
				     "node2:7:8 [2] NCCL INFO zzz 17 9 times\n"
				     "node2:7:8 [3] NCCL INFO zzz 0x1f 0 times\n"
				     "node2:7:8 [3] NCCL INFO zzz 9 10g times\n"
				     "node2:7:8 [3] NCCL WARN misc.cc: no number\n");

	EXPECT(log.lines == 12 && log.nccl_lines == 11 && log.file_count == 1 &&
	       log.files[0].lines == 12 && log.files[0].nccl_lines == 11);
	EXPECT_EQUAL(log.kinds[NCCL_LOG_KIND_RETURN], 4);
	EXPECT_EQUAL(log.kinds[NCCL_LOG_KIND_MEMORY], 3);
	EXPECT_EQUAL(log.kinds[NCCL_LOG_KIND_OTHER], 3);
	EXPECT_THAT("the same but for its numbers is one line, several times",
		    log.note_count == 2 && log.notes[0].lines == 2 &&
			    log.notes[0].kind == NCCL_LOG_KIND_RETURN &&
			    log.notes[0].place.line == 2 && log.notes[1].lines == 1 &&
			    log.notes[1].place.line == 7);
	EXPECT_EQUAL(log.other_count, 2);
	EXPECT(strcmp(log.others[0].beginning, "zzz # # times") == 0 && log.others[0].lines == 2 &&
	       log.others[0].place.line == 9);
	EXPECT(strcmp(log.others[1].beginning, "zzz # #g times") == 0 && log.others[1].lines == 1);
	EXPECT(log.process_count == 2 && log.processes[0].lines == 7 &&
	       log.processes[0].first.line == 2 && log.processes[0].last.line == 8 &&
	       log.processes[0].cuda_device == 0);
	EXPECT_THAT("the device of its first line",
		    log.processes[1].lines == 4 && log.processes[1].first.line == 9 &&
			    log.processes[1].last.line == 12 && log.processes[1].cuda_device == 2);
	EXPECT_EQUAL(log.warning_count, 1);
	nccl_log_release(&log);
}

int main(void)
{
	lines_are_counted();
	a_real_log_of_four_ranks();
	a_real_trace_of_two_ranks();
	what_stands_before_a_line();
	warnings_have_a_source();
	two_messages_in_one_line();
	each_kind_of_line_is_known();
	facts_of_single_lines();
	what_frameworks_say_is_kept_apart();
	communicators_are_told_apart();
	lines_of_newer_releases();
	a_real_log_of_2_31();
	plugins_that_nobody_asked_for();
	queue_pairs_have_both_ends();
	the_same_again_costs_nothing();
	unknown_lines_have_a_bound();
	a_stream_is_read_as_a_file();
	return tap_done();
}
