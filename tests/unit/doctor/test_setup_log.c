/*
 * Findings from NCCL's log, whole: every line and field is compared with expected/setup_log.txt. Cases lie at the limits:
 * equal, one less, one more; and each has two or three of what is counted.
 */
#include "doctor/doctor.h"

#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "tests/support/expected_verdicts.h"
#include "tests/support/nccl_log_stage.h"
#include "tests/tap.h"

static struct expected_text found;

/* Rank r of a job of four: ranks 0 and 1 are on node0, the others on node1. */
#define AT0 "node0:1000:1000 [0] NCCL INFO "
#define AT1 "node0:1001:1001 [1] NCCL INFO "
#define AT2 "node1:1002:1002 [0] NCCL INFO "
#define AT3 "node1:1003:1003 [1] NCCL INFO "
#define INIT(rank, nranks, comm, state)                                                   \
	AT##rank "ncclCommInitRank comm 0x5" #rank comm " rank " #rank " nranks " #nranks \
		 " cudaDev 0 nvmlDev 0 busId 1000 commId 0x" comm " - " state "\n"
#define START(rank, nranks, comm) INIT(rank, nranks, comm, "Init START")
#define DONE(rank, nranks, comm) INIT(rank, nranks, comm, "Init COMPLETE")
#define BOTH(rank, nranks, comm) START(rank, nranks, comm) DONE(rank, nranks, comm)
#define WORLD BOTH(0, 4, "77") BOTH(1, 4, "77") BOTH(2, 4, "77") BOTH(3, 4, "77")
#define WARN(host, pid, words) "\n" host ":" pid ":" pid " [0] some.cc:12 NCCL WARN " words "\n"
#define ATTENTION(words) "\nnode0:1000:1000 [0] init.cc:12 (someFunction) NCCL ATTN " words "\n"
#define DIAG(words) "node0:1000 NCCL DIAG [INFO] " words "\n"

/* ---- inits ------------------------------------------------------------------------------------- */

#define TIMES(rank, total, phases)                                                       \
	AT##rank "Init timings - ncclCommInitRank: rank " #rank " nranks 4 total " total \
		 " (" phases ")\n"
#define PHASES(kernels, alloc, bootstrap, allgathers, topo, graphs, connections, rest)          \
	"kernels " kernels ", alloc " alloc ", bootstrap " bootstrap ", allgathers " allgathers \
	", topo " topo ", graphs " graphs ", connections " connections ", rest " rest

/* ---- queue pairs ------------------------------------------------------------------------------- */

#define QUEUE(rank, device, number, peer)                                                         \
	AT##rank "NET/IB: WQE stall (no CQE): peer=" peer "<4711> | local: qpn=" number           \
		 " dev=" device " port=1 lid=7 localGid= | remote: qpn=9" number " port=1 lid=8 " \
		 "remoteGid= | stall_thr=100000ns "
#define STALL(rank, device, number, peer, age) \
	QUEUE(rank, device, number, peer) "age=" age "ns inflight=5\n"
#define SLOW(rank, device, number, delta, count)                                                \
	AT##rank "NET/IB: WQE slow: peer=10.0.0.2<4711> | local: qpn=" number " dev=" device    \
		 " port=1 lid=7 localGid= | remote: qpn=9" number " port=1 lid=8 remoteGid= | " \
		 "thr=100000ns delta=" delta "ns mean=9ns stddev=1ns p50=9000ns p90=9ns "       \
		 "p99=80000ns p99.9=9ns max=" delta "ns count=" count " | t_post=1 t_poll=2\n"
#define SUMMARY(rank, device, number, slow)                                                      \
	AT##rank "NET/IB: WQE latency summary [send peer=10.0.0.2<1> dev=" device " qpn=" number \
		 " port=1]: n=100 slow=" slow " thr=100000ns | post-to-poll ns: mean=9 std=1 "   \
		 "p50=9000 p90=9 p99=300000 p99.9=9 max=400000\n"

/* ---- reports ----------------------------------------------------------------------------------- */

#define TIMEOUT(rank, number)                                                                   \
	"[rank" rank "]:[E ProcessGroupNCCL.cpp:616] [Rank " rank                               \
	"] Watchdog caught collective operation timeout: WorkNCCL(" number "OpType=ALLREDUCE, " \
	"Timeout(ms)=600000) ran for 600015 milliseconds before timing out.\n"
#define ERROR(rank)                                                           \
	"[rank" rank "]: torch.distributed.DistBackendError: NCCL error in: " \
	"../ProcessGroupNCCL.cpp:1970, unhandled system error, NCCL version 2.19.3\n"

static const struct {
	const char *sentence, *log;
} cases[] = {
	/* Inits that never completed. */
	{ "half of the ranks are missing: they are named",
	  BOTH(1, 2, "66") START(0, 4, "77") START(1, 4, "77") },
	{ "three of four are missing: their logs are", START(2, 4, "77") },
	{ "nobody is missing, and one of three has completed",
	  START(0, 3, "77") BOTH(1, 3, "77") START(2, 3, "77") },
	{ "missing in two places", START(1, 4, "77") START(3, 4, "77") },
	{ "of two communicators the second is incomplete, and was aborted",
	  BOTH(0, 2, "55") BOTH(1, 2, "55") START(0, 2, "77") START(1, 2, "77")
		  INIT(0, 2, "77", "Abort COMPLETE") },
	{ "the first retry of all, and the interface of the first rank that waits",
	  AT0 "Bootstrap: Using eth0:10.0.0.1<0>\n" AT1
	      "Bootstrap: Using eth1:10.0.0.1<0>\n" START(0, 3, "77") BOTH(1, 3, "77") AT0
	  "Call to connect returned Connection refused, retrying\n" AT1
	  "Call to accept failed, retrying\n" AT0 "Bootstrap: Using eth2\n" },
	{ "a rank logs two communicators that nobody completes",
	  START(0, 2, "55") START(0, 2, "77") START(1, 2, "55") START(1, 2, "77") },

	/* Inits that took long. */
	{ "30 seconds are long, a little less is not",
	  WORLD TIMES(0, "29.99", PHASES("1", "1", "9", "9", "1", "1", "7", "1"))
		  TIMES(1, "30.00", PHASES("1", "1", "9", "9", "1", "1", "7", "1"))
			  TIMES(2, "1.00", PHASES("1", "1", "1", "1", "1", "1", "1", "1")) },
	{ "the slowest of three is described, and all are counted",
	  WORLD TIMES(0, "40.00", PHASES("30", "1", "9", "0", "0", "0", "0", "0"))
		  TIMES(1, "90.00", PHASES("1", "1", "8", "9", "1", "1", "69", "1"))
			  TIMES(2, "50.00", PHASES("1", "1", "40", "9", "1", "1", "7", "1")) },
	{ "the first of two that took equally long",
	  WORLD TIMES(0, "40.00", PHASES("1", "1", "9", "30", "1", "1", "7", "1"))
		  TIMES(1, "40.00", PHASES("1", "1", "9", "1", "30", "1", "7", "1")) },
	{ "slow topology detection",
	  WORLD TIMES(0, "40.00", PHASES("1", "1", "9", "1", "30", "1", "7", "1")) },
	{ "slow, and no phase has advice of its own",
	  WORLD TIMES(3, "40.00", PHASES("1", "1", "1", "1", "1", "1", "1", "30")) },

	/* Plugins. */
	{ "the same plugin fails on three ranks: one finding",
	  WORLD AT0 "TUNER/Plugin: libnccl-tuner-x.so: undefined symbol: cudaFree\n" AT1
		    "TUNER/Plugin: libnccl-tuner-x.so: undefined symbol: cudaFree\n" AT3
		    "TUNER/Plugin: libnccl-tuner-x.so: undefined symbol: cudaFree\n" },
	{ "other names, other kinds and other states are findings of their own",
	  WORLD AT0 "NCCL_TUNER_PLUGIN set by environment to x\n" AT0
		    "TUNER/Plugin: libx.so: undefined symbol: cudaFree\n" AT1
		    "TUNER/Plugin: liby.so: undefined symbol: cudaFree\n" AT2
		    "NET/Plugin: libx.so: undefined symbol: cudaFree\n" AT3
		    "TUNER/Plugin: Could not find: libx.so\n" },
	{ "a finding is not repeated if another one lies in between",
	  WORLD AT0 "TUNER/Plugin: libx.so: undefined symbol: cudaFree\n" AT1
		    "TUNER/Plugin: liby.so: undefined symbol: cudaFree\n" AT2
		    "TUNER/Plugin: libx.so: undefined symbol: cudaFree\n" },
	{ "a plugin that was requested is not found",
	  WORLD AT0 "NCCL_NET_PLUGIN set by environment to ofi\n" AT0
		    "NET/Plugin: Could not find: libnccl-net-ofi.so\n" },
	{ "a plugin that was requested from nobody is not missed",
	  WORLD AT0 "NCCL_NET_PLUGIN set by environment to none\n" AT0
		    "NET/Plugin: Could not find: libnccl-net-ofi.so\n" },
	{ "our name in another kind of plugin",
	  WORLD AT0 "NET/Plugin: libringside.so: undefined symbol: cudaFree\n" },
	{ "a profiler that fails and that nobody requested",
	  WORLD AT0 "PROFILER/Plugin: libother.so: undefined symbol: cudaFree\n" },
	{ "ours, by its message",
	  WORLD AT0 "PROFILER/Plugin: libringside.so: undefined symbol: cudaFree\n" },
	{ "ours, by the variable",
	  WORLD AT0 "NCCL_PROFILER_PLUGIN set by environment to ringside\n" AT0
		    "PROFILER/Plugin: Could not find: libnccl-profiler.so\n" },
	{ "another one, by the variable",
	  WORLD AT0 "NCCL_PROFILER_PLUGIN set by environment to other\n" AT0
		    "PROFILER/Plugin: Could not find: libnccl-profiler.so\n" },
	{ "internal networks that cannot be used are no finding", WORLD AT0
	  "Failed to initialize NET plugin IB\n" AT0 "Failed to initialize NET plugin Socket\n" },
	{ "another profiler on two ranks", WORLD AT1 "PROFILER/Plugin: Loaded Inspector (v5)\n" AT2
						     "PROFILER/Plugin: Loaded Inspector (v5)\n" },
	{ "ours on one rank is enough", WORLD AT1 "PROFILER/Plugin: Loaded Inspector (v5)\n" AT2
						  "PROFILER/Plugin: Loaded Ringside (v5)\n" },

	/* Warnings. */
	{ "four warnings of a kind are shown",
	  WORLD WARN("node0", "1000", "The moon is full") WARN("node0", "1001", "The moon is full")
		  WARN("node1", "1002", "The moon is full")
			  WARN("node1", "1003", "The moon is full") },
	{ "of seven, four are shown and three counted",
	  WORLD WARN("node0", "1000", "One moon") WARN("node0", "1000", "Another moon")
		  WARN("node0", "1001", "Moons") WARN("node0", "1001", "No moon")
			  WARN("node0", "1000", "Half a moon") WARN("node0", "1000", "Full moon")
				  WARN("node0", "1000", "New moon") },
	{ "a warning that is repeated counts each time",
	  WORLD WARN("node0", "1000", "Moon 1") WARN("node0", "1000", "Moon 2")
		  WARN("node0", "1000", "Moon 3") },
	{ "one message that asks for attention, among warnings",
	  WORLD ATTENTION("Net plugin moon was not initialized")
		  WARN("node0", "1000", "Bootstrap Root : rank 1 has already checked in")
			  WARN("node0", "1001", "The moon is full") },
	{ "two messages that ask for attention",
	  WORLD ATTENTION("Net plugin moon was not initialized") ATTENTION("Moon set is ignored") },
	{ "the last rule of the table comes before attention",
	  WORLD WARN("node0", "1000", "Bootstrap Root : rank 1 has already checked in")
		  ATTENTION("Net plugin moon was not initialized") },
	{ "two ranks in turns are two ranks",
	  WORLD WARN("node0", "1000", "Connection closed by remote peer a<1>")
		  WARN("node1", "1002", "Connection closed by remote peer b<1>")
			  WARN("node0", "1000", "recv: Connection closed by remote peer c<1>")
				  WARN("node1", "1002", "send: Connection closed by remote peer") },
	{ "no interface, and nobody set one",
	  WORLD WARN("node0", "1000", "Bootstrap : no socket interface found") },
	{ "no interface, with the variable",
	  WORLD AT0 "NCCL_SOCKET_IFNAME set by environment to eth7\n" WARN(
		  "node0", "1000", "Bootstrap : no socket interface found") },
	{ "another warning, with the variable of interfaces",
	  WORLD AT0 "NCCL_SOCKET_IFNAME set by environment to eth7\n" WARN("node0", "1000",
									   "The moon is full") },

	/* Diagnostics. */
	{ "the ranks of the communicator that it names",
	  WORLD BOTH(0, 2, "55") BOTH(1, 2, "55")
		  DIAG("NVLink: inactive link(s) on rank(s) {1,3} across 4 ranks in comm 0x77") },
	{ "one rank: it is blamed",
	  WORLD DIAG("NVLink: inactive link(s) on rank(s) {2} across 4 ranks in comm 0x77") },
	{ "another communicator: nobody",
	  WORLD DIAG("NVLink: inactive link(s) on rank(s) {2} across 4 ranks in comm 0x99") },
	{ "no communicator: nobody",
	  WORLD DIAG("NVLink: inactive link(s) on rank(s) {2} across 4 ranks") },
	{ "a note names a rank and does not blame it",
	  WORLD DIAG("ECC: corrected volatile errors on rank(s) {2} across 4 ranks in comm 0x77") },
	{ "four of a kind, all of one rank",
	  WORLD DIAG("NVLink: inactive a on rank(s) {2} in comm 0x77")
		  DIAG("NVLink: inactive b on rank(s) {2} in comm 0x77")
			  DIAG("NVLink: inactive c on rank(s) {2} in comm 0x77")
				  DIAG("NVLink: inactive d on rank(s) {2} in comm 0x77") },
	{ "six of a kind: ranks of those that are not shown are not named",
	  WORLD DIAG("NVLink: inactive a on rank(s) {2} in comm 0x77")
		  DIAG("NVLink: inactive b on rank(s) {2} in comm 0x77")
			  DIAG("NVLink: inactive c on rank(s) {2} in comm 0x77")
				  DIAG("NVLink: inactive d on rank(s) {2} in comm 0x77")
					  DIAG("NVLink: inactive e on rank(s) {3} in comm 0x77")
						  DIAG("NVLink: inactive f on rank(s) {1} in "
						       "comm 0x77") },
	{ "two ranks in turns are two ranks, here, too",
	  WORLD DIAG("NVLink: inactive a on rank(s) {1,3} in comm 0x77")
		  DIAG("NVLink: inactive b on rank(s) {1,3} in comm 0x77") },
	{ "two kinds, one of them last in the table",
	  WORLD DIAG("Something else") DIAG("p2p: read mismatch srcRank=0 dstRank=3") },

	/* Queue pairs. */
	{ "a second without a completion is a stall",
	  WORLD STALL(0, "mlx5_3", "17", "10.0.0.2", "1000000000") },
	{ "a little less is late", WORLD STALL(0, "mlx5_3", "17", "10.0.0.2", "999999999") },
	{ "ten seconds are more certain",
	  WORLD STALL(0, "mlx5_3", "17", "10.0.0.2", "10000000000") },
	{ "a little less is not", WORLD STALL(0, "mlx5_3", "17", "10.0.0.2", "9999999999") },
	{ "ten seconds that ended are not",
	  WORLD STALL(0, "mlx5_3", "17", "10.0.0.2", "10000000000")
		  SUMMARY(0, "mlx5_3", "17", "1") },
	{ "one NIC, several peers", WORLD STALL(0, "mlx5_3", "17", "10.0.0.2", "2000000000") STALL(
					    0, "mlx5_3", "18", "10.0.0.3", "4000000000")
					    STALL(0, "mlx5_3", "19", "10.0.0.2", "3000000000") },
	{ "one peer, NICs of one host",
	  WORLD STALL(0, "mlx5_3", "17", "10.0.0.2", "2000000000")
		  STALL(0, "mlx5_4", "18", "10.0.0.2", "2000000000") },
	{ "one peer, the same name on two hosts",
	  WORLD STALL(0, "mlx5_3", "17", "10.0.0.9", "2000000000")
		  STALL(2, "mlx5_3", "17", "10.0.0.9", "2000000001") },
	{ "two NICs and two peers", WORLD STALL(0, "mlx5_3", "17", "10.0.0.2", "2000000000")
					    STALL(1, "mlx5_4", "18", "10.0.0.3", "20000000000") },
	{ "unknown peers may differ", WORLD STALL(0, "mlx5_3", "17", "", "2000000000")
					      STALL(0, "mlx5_4", "18", "", "2000000000") },
	{ "one that lasts comes before one that was longer and ended",
	  WORLD STALL(0, "mlx5_3", "17", "10.0.0.2", "9000000000") SUMMARY(0, "mlx5_3", "17", "1")
		  STALL(1, "mlx5_4", "18", "10.0.0.3", "2000000000") },
	{ "and in the other order", WORLD STALL(1, "mlx5_4", "18", "10.0.0.3", "2000000000")
					    STALL(0, "mlx5_3", "17", "10.0.0.2", "9000000000")
						    SUMMARY(0, "mlx5_3", "17", "1") },
	{ "four queue pairs are shown",
	  WORLD STALL(0, "mlx5_3", "17", "10.0.0.2", "2000000000")
		  STALL(0, "mlx5_3", "18", "10.0.0.2", "3000000000")
			  STALL(0, "mlx5_3", "19", "10.0.0.2", "4000000000")
				  STALL(0, "mlx5_3", "20", "10.0.0.2", "5000000000") },
	{ "of six, four are shown and two counted; one that is late is not among them",
	  WORLD STALL(0, "mlx5_3", "17", "10.0.0.2", "2000000000") STALL(0, "mlx5_3", "18",
									 "10.0.0.2", "3000000000")
		  STALL(0, "mlx5_3", "11", "10.0.0.2", "300000") STALL(0, "mlx5_3", "19",
								       "10.0.0.2", "4000000000")
			  STALL(0, "mlx5_3", "20", "10.0.0.2", "5000000000")
				  STALL(0, "mlx5_3", "21", "10.0.0.2", "5000000000")
					  STALL(0, "mlx5_3", "22", "10.0.0.2", "1000000000") },
	{ "a second is shown beside a longer one",
	  WORLD STALL(0, "mlx5_3", "17", "10.0.0.2", "1000000000")
		  STALL(0, "mlx5_3", "18", "10.0.0.2", "3000000000") },
	{ "with the host of the peer", WORLD AT1
	  "Bootstrap: Using eth0:10.0.0.1<0>\n" AT2 "Bootstrap: Using eth0:10.0.0.2<0>\n" STALL(
		  0, "mlx5_3", "17", "10.0.0.2", "2000000000") },
	{ "the latest of three, in the middle, and all are counted",
	  WORLD STALL(0, "mlx5_3", "17", "10.0.0.2", "200000")
		  SLOW(1, "mlx5_4", "18", "100000000", "7") SUMMARY(2, "mlx5_5", "19", "1") },
	{ "a little less than 100 ms is a note", WORLD SLOW(0, "mlx5_4", "18", "99999999", "7") },
	{ "late, and its sends were not counted", WORLD SLOW(0, "mlx5_4", "18", "99999999", "0") },
	{ "the first of two that are equally late",
	  WORLD SLOW(0, "mlx5_4", "18", "99999999", "1") SLOW(1, "mlx5_5", "18", "99999999", "2") },
	{ "a summary without slow sends is no finding", WORLD SUMMARY(0, "mlx5_5", "19", "0") },

	/* PyTorch. */
	{ "one timeout", TIMEOUT("3", "SeqNum=5, ") },
	{ "the last and the first of four timeouts, the smallest in the middle",
	  TIMEOUT("3", "SeqNum=7, ") TIMEOUT("4", "SeqNum=5, ") TIMEOUT("5", "SeqNum=9, ")
		  TIMEOUT("6", "SeqNum=9, ") TIMEOUT("7", "SeqNum=5, ") },
	{ "the same number everywhere", TIMEOUT("3", "SeqNum=5, ") TIMEOUT("4", "SeqNum=5, ") },
	{ "number 0 is one", TIMEOUT("3", "SeqNum=0, ") TIMEOUT("4", "SeqNum=5, ") },
	{ "no numbers", TIMEOUT("3", "") TIMEOUT("4", "") },
	{ "one error", ERROR("3") },
	{ "two errors, and a timeout", ERROR("3") ERROR("4") TIMEOUT("5", "SeqNum=5, ") },
	{ "an error, and NCCL warned", ERROR("3") WARN("node0", "1000", "The moon is full") },
	{ "an error with a number is no timeout",
	  TIMEOUT("5", "SeqNum=5, ") "[rank6]: NCCL error in: x.cpp:1, SeqNum=3\n" },
};

static void find_in(const char *sentence, const char *log_text)
{
	struct verdicts verdicts;
	struct nccl_log log;

	verdicts_init(&verdicts);
	nccl_log_init(&log);
	if (nccl_log_add_memory(&log, "nccl.log", log_text, strlen(log_text)) != OK ||
	    setup_find(&verdicts, &log, NULL) != OK)
		abort();
	expected_put_verdicts(&found, sentence, &verdicts);
	nccl_log_release(&log);
	verdicts_release(&verdicts);
}

/* ---- hangs that the log explains ----------------------------------------------------------------- */

#define ADDRESSES \
	AT0 "Bootstrap: Using eth0:10.0.0.1<0>\n" AT2 "Bootstrap: Using eth0:10.0.0.2<0>\n"

static const struct {
	const char *sentence, *host;
	int64_t pid, rank;
	const char *log;
} hangs[] = {
	{ "by host and process", "node0", 1000, -1,
	  WORLD ADDRESSES STALL(0, "mlx5_3", "17", "10.0.0.2", "2000000000") },
	{ "by host and rank: in a container, processes have other numbers", "node0", 7, 0,
	  WORLD ADDRESSES STALL(0, "mlx5_3", "17", "10.0.0.2", "2000000000") },
	{ "the rank on another host is none of it", "node1", 7, 0,
	  WORLD ADDRESSES STALL(0, "mlx5_3", "17", "10.0.0.2", "2000000000") },
	{ "another rank of the host is none of it", "node0", 7, 1,
	  WORLD ADDRESSES STALL(0, "mlx5_3", "17", "10.0.0.2", "2000000000") },
	{ "an unknown rank is none of it", "node0", 7, -1,
	  ADDRESSES STALL(0, "mlx5_3", "17", "10.0.0.2", "2000000000") },
	{ "an unknown host is none of it", "", 1000, 0,
	  WORLD ADDRESSES STALL(0, "mlx5_3", "17", "10.0.0.2", "2000000000") },
	{ "the longest of three stalls, in the middle", "node0", 1000, 0,
	  WORLD ADDRESSES STALL(0, "mlx5_3", "17", "10.0.0.2", "2000000000")
		  STALL(0, "mlx5_4", "18", "10.0.0.2", "4000000000")
			  STALL(0, "mlx5_5", "19", "10.0.0.2", "3000000000") },
	{ "the first of two equal ones", "node0", 1000, 0,
	  WORLD ADDRESSES STALL(0, "mlx5_3", "17", "10.0.0.2", "2000000000")
		  STALL(0, "mlx5_4", "18", "10.0.0.2", "2000000000") },
	{ "a second is enough", "node0", 1000, 0,
	  WORLD ADDRESSES STALL(0, "mlx5_3", "17", "10.0.0.2", "1000000000") },
	{ "a little less is not", "node0", 1000, 0,
	  WORLD ADDRESSES STALL(0, "mlx5_3", "17", "10.0.0.2", "999999999") },
};

/* The second of two hangs is a link to node1. */
static void find_beside_hangs(void)
{
	for (size_t i = 0; i < ARRAY_LENGTH(hangs); i++) {
		struct verdicts verdicts;
		struct verdict *hang;
		struct nccl_log log;

		verdicts_init(&verdicts);
		verdicts_add(&verdicts, VERDICT_NEVER_ISSUED, VERDICT_ERROR);
		hang = verdicts_add(&verdicts, VERDICT_NETWORK_STUCK, VERDICT_ERROR);
		hang->rank = hangs[i].rank;
		hang->pid = hangs[i].pid;
		hang->confidence = 0.8;
		text_copy(hang->host, sizeof(hang->host), hangs[i].host);
		text_copy(hang->peer_host, sizeof(hang->peer_host), "node1");
		verdict_title(hang, "network send stuck");
		nccl_log_init(&log);
		if (nccl_log_add_memory(&log, "nccl.log", hangs[i].log, strlen(hangs[i].log)) !=
			    OK ||
		    setup_find(&verdicts, &log, NULL) != OK)
			abort();
		expected_put_verdicts(&found, hangs[i].sentence, &verdicts);
		nccl_log_release(&log);
		verdicts_release(&verdicts);
	}
}

/* More gaps than a title has room for. */
static void every_other_rank_is_missing(void)
{
	struct log_stage stage = { .nodes = 1 };

	for (int i = 0; i < 512; i += 2)
		log_put(&stage,
			"node%d:%d:1 [0] NCCL INFO ncclCommInitRank comm 0x5%d rank %d nranks 512 "
			"cudaDev 0 nvmlDev 0 busId 1000 commId 0x77 - Init START\n",
			i / 8, 1000 + i, i, i);
	find_in(__func__, stage.text);
	log_stage_release(&stage);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		find_in(cases[i].sentence, cases[i].log);
	every_other_rank_is_missing();
	find_beside_hangs();
	expected_compare(&found, "tests/unit/doctor/expected/setup_log.txt");
	return tap_done();
}
