/*
 * Reads what NCCL logs with NCCL_DEBUG=VERSION, WARN, ATTN, INFO, TRACE: any mix of ranks and releases in
 * any number of files, megabytes of them, with lines of other programs in between. Every line of
 * NCCL is either understood and becomes a fact below, or is counted by its beginning in `others`;
 * no line is silently dropped. Facts refer to file and line. docs/SETUP-RULES.md describes what is
 * read.
 *
 *	nccl_log_init(&log);
 *	nccl_log_add_fd(&log, "rank0.log", fd);      any number of files
 *	... log.comms, log.links, log.warnings, ...
 *	nccl_log_release(&log);
 *
 * Memory grows with facts, not with bytes: repeated facts are counted, and every list is bounded.
 * Texts are terminated, without control bytes, valid until nccl_log_release() and never NULL.
 */
#ifndef NCCL_LOG_H
#define NCCL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

struct nccl_log_work; /* private to the reader */

/* Where a fact was found. */
struct nccl_log_place {
	uint32_t file; /* index into nccl_log.files */
	uint64_t line; /* from 1; 0: none */
};

struct nccl_log_file {
	const char *name;
	uint64_t bytes;
	uint64_t lines;
	uint64_t nccl_lines; /* a line with two messages counts twice */
};

/*
 * Lines without a header ("NCCL version ..." of level VERSION, truncated ones) belong to a process
 * with host "" and pid -1, one per file.
 */
struct nccl_log_process {
	const char *host;
	int64_t pid;
	int64_t launcher_rank;	  /* from a launcher's prefix "[1,3]<stdout>:", "3: "; -1: none */
	int32_t cuda_device;	  /* of its first line; -1: unknown */
	const char *version;	  /* "2.28.9"; "": unknown */
	const char *cuda_version; /* that NCCL was built with: "13.0" */
	const char *git;	  /* "v2.32.3-1 12df1a1", of "NCCL git version"; "" */
	int32_t driver_version;	  /* 13000; 0: unknown */
	struct nccl_log_place version_place, git_place;
	struct nccl_log_place first, last;
	uint64_t lines;
	uint64_t levels[8]; /* nccl_log_level */
	int32_t last_comm;  /* its latest communicator; -1: none */
};

enum nccl_log_phase {
	NCCL_LOG_KERNELS = 0,
	NCCL_LOG_ALLOC = 1,
	NCCL_LOG_BOOTSTRAP = 2,
	NCCL_LOG_ALLGATHERS = 3,
	NCCL_LOG_TOPO = 4,
	NCCL_LOG_GRAPHS = 5,
	NCCL_LOG_CONNECTIONS = 6,
	NCCL_LOG_REST = 7,
	NCCL_LOG_PHASES = 8,
};
const char *nccl_log_phase_name(enum nccl_log_phase phase);

/* One rank of one communicator. Numbers are -1 if no line gives them. */
struct nccl_log_comm {
	uint32_t process;
	uint64_t pointer;
	uint64_t hash;	 /* commId; 0: unknown (a split in some releases) */
	uint64_t group;	 /* the same on all its ranks: hash, or parent, count and color */
	uint64_t parent; /* pointer; 0: none */
	int32_t color;
	int32_t rank;
	int32_t nranks;
	int32_t cuda_device;
	int32_t nvml_device;
	uint64_t bus_id;
	int32_t nnodes;
	int32_t local_ranks;
	int32_t local_rank;
	int32_t mnnvl;
	const char *function;			    /* "ncclCommInitRank"; "" in old releases */
	struct nccl_log_place start, complete, end; /* line 0: not seen */
	const char *end_word;			    /* "Destroy", "Abort", "" */
	double total_s;				    /* of init; negative: unknown */
	double phase_s[NCCL_LOG_PHASES];	    /* negative: unknown */
	double bootstrap_s; /* "Bootstrap timings total"; negative: unknown */
	struct nccl_log_place timings;
	int32_t coll_channels, collnet_channels, nvls_channels, p2p_channels, p2p_per_peer;
	struct nccl_log_place channels;
	int32_t ring_pxn, ring_gdr; /* "use ring PXN 0 GDR 1" */
	bool has_rings, has_trees;  /* "Connected all ..." */
	int32_t previous;	    /* the process's previous communicator; -1: none */
};

enum nccl_log_transport {
	NCCL_LOG_P2P_DIRECT = 0, /* same process: direct pointer */
	NCCL_LOG_P2P_IPC = 1,
	NCCL_LOG_P2P_CUMEM = 2,
	NCCL_LOG_P2P_INDIRECT = 3, /* through another GPU */
	NCCL_LOG_P2P_OTHER = 4,
	NCCL_LOG_SHM = 5,
	NCCL_LOG_NET = 6,
	NCCL_LOG_COLLNET = 7,
	NCCL_LOG_TRANSPORTS = 8,
};
const char *nccl_log_transport_name(enum nccl_log_transport transport);

enum nccl_log_link_flag {
	NCCL_LOG_LINK_GDR = 1,
	NCCL_LOG_LINK_GDR_PCI = 2,
	NCCL_LOG_LINK_SHARED = 4,
	NCCL_LOG_LINK_PXN = 8, /* `through` is the rank whose proxy sends */
	NCCL_LOG_LINK_READ = 16,
	NCCL_LOG_LINK_MULTINODE = 32,
};

/* "Channel 00/0 : 2[0] -> 0[0] [receive] via NET/Socket/0": all channels of one edge together. */
struct nccl_log_link {
	uint32_t process;
	int32_t comm; /* index; -1: unknown */
	int32_t from, to;
	int32_t from_device, to_device; /* as in the brackets */
	int32_t connection;
	char direction; /* 's' send, 'r' receive, '-' unknown */
	uint8_t transport;
	uint8_t flags;
	int32_t through;      /* P2P_INDIRECT, PXN; -1: none */
	const char *network;  /* "IB", "Socket", "AWS Libfabric"; "" */
	int32_t device;	      /* network device; -1: none */
	const char *detail;   /* "direct/direct", as logged; "" */
	uint64_t channels[2]; /* bit c: channel c, up to 128 */
	uint64_t lines;
	struct nccl_log_place place;
};

/* Rings and trees, per rank of a communicator and channel. */
struct nccl_log_channel {
	int32_t comm;
	int32_t channel;
	int32_t ring_previous, ring_next; /* -2: unknown */
	int32_t tree_up, tree_down[3];	  /* -1: none, -2: unknown */
	const char *ring;		  /* rank 0 logs all of it: "0 1 2 3"; "" */
	struct nccl_log_place place;
};

/* A network device that NCCL found. */
struct nccl_log_net {
	uint32_t process;
	const char *network; /* "IB", "Socket", "OFI" */
	int32_t index;
	const char *name;    /* "mlx5_0", "eth0" */
	int32_t port;	     /* -1: none */
	const char *link;    /* "IB", "RoCE"; "" */
	const char *address; /* of sockets */
	int32_t speed;	     /* Mbit/s; -1: unknown */
	int8_t gdr;	     /* GPUDirect RDMA: 1 on, 0 off, -1 unknown */
	bool is_virtual;     /* merged from several */
	struct nccl_log_place place, gdr_place;
};

/* "GPU Direct RDMA Disabled for GPU 0 / HCA 1 (distance 5 > 4)" */
struct nccl_log_gdr {
	uint32_t process;
	bool is_on;
	const char *text;
	struct nccl_log_place place;
	uint64_t lines;
};

/*
 * "NCCL_ALGO set by environment to Ring": from the environment or from nccl.conf, which NCCL does
 * not distinguish.
 */
struct nccl_log_variable {
	uint32_t process;
	const char *name;
	const char *value;
	struct nccl_log_place place;
	uint64_t lines;
};

enum nccl_log_plugin_state {
	NCCL_LOG_PLUGIN_LOADED = 0,
	NCCL_LOG_PLUGIN_NOT_FOUND = 1,
	NCCL_LOG_PLUGIN_FAILED = 2, /* found but not usable */
	NCCL_LOG_PLUGIN_INTERNAL = 3,
};

struct nccl_log_plugin {
	uint32_t process;
	const char *kind; /* "NET", "TUNER", "PROFILER", "ENV", "GIN", "RMA", "COLLNET" */
	const char *name; /* or the library that was not found */
	int32_t version;  /* of the interface, -1 */
	uint8_t state;
	const char *text; /* the message */
	struct nccl_log_place place;
	uint64_t lines;
};

/* What was chosen for a size, over all processes. */
struct nccl_log_choice {
	const char *function; /* "" before 2.23 */
	uint64_t bytes;
	const char *algorithm;
	const char *protocol; /* "", for symmetric kernels and copy engines */
	int32_t channels;     /* -1: unknown */
	double time_us;	      /* as tuned, up to 2.23; negative: unknown */
	uint64_t lines;
	struct nccl_log_place place;
};

/* A cell of the tuning table: NCCL's model, not a measurement. */
struct nccl_log_cost {
	const char *function, *algorithm, *protocol;
	double latency_us, bandwidth; /* GB/s */
	struct nccl_log_place place;
};

/* "AllReduce: opCount 1f ... comm 0x...", and "NCCL CALL ncclAllReduce(...)" with comm -1. */
struct nccl_log_operation {
	uint32_t process;
	int32_t comm; /* index; -1: unknown */
	const char *function;
	uint64_t lines;
	uint64_t first_count, last_count; /* opCount */
	uint64_t last_elements;
	int32_t last_datatype; /* -1 */
	struct nccl_log_place first, last;
};

/* Levels WARN and ATTN (2.32). */
struct nccl_log_warning {
	uint32_t process;
	bool is_attention;  /* level ATTN: something to know about, not an error */
	int32_t comm;	    /* that the thread worked for; -1: unknown */
	const char *text;   /* the first of its kind; the others differ in numbers */
	const char *source; /* "transport/net.cc:123"; "" */
	uint64_t lines;
	struct nccl_log_place place, last;
};

/*
 * A queue pair of a NIC, from lines of NCCL_IB_WQE_LATENCY_THRESHOLD_NS (2.31 and later): the time
 * from posting a send to polling its completion. Numbers are 0 and texts "" if no line has them.
 */
struct nccl_log_queue {
	uint32_t process;
	const char *device; /* "mlx5_3" */
	int32_t port;	    /* -1: unknown */
	int64_t number;	    /* of the queue pair */
	const char *peer;   /* address of the peer's process: "10.0.0.2" */
	int64_t remote_number, remote_port, local_lid, remote_lid; /* -1: unknown */
	const char *local_gid, *remote_gid;			   /* with RoCE */
	char direction; /* 's' send, 'r' receive, '-' unknown */
	uint64_t threshold_ns;
	uint64_t slow_lines, stall_lines;
	uint64_t slowest_ns; /* of completions */
	uint64_t stall_ns;   /* the longest time without a completion */
	uint64_t in_flight;  /* at its last stall */
	bool is_stalled;     /* no later line shows a completion */
	uint64_t samples, slow_samples, median_ns, p99_ns;
	struct nccl_log_place first, last; /* lines */
};

/*
 * "NCCL DIAG [INFO] NVLink: inactive link(s) on rank(s) {3} ...": a result of NCCL's diagnostics
 * (2.31 and later; NCCL_RUN_RAS_DIAGNOSTICS, NCCL_RUN_DIAGNOSTICS, ncclras -D) that is not "[OK]".
 * They have no level for errors: [INFO] is a problem or a check that could not be made.
 */
enum { NCCL_LOG_DIAGNOSIS_RANKS = 8 };
struct nccl_log_diagnosis {
	uint32_t process;
	const char *text;			 /* without "[INFO]" */
	uint64_t comm_hash;			 /* 0: none */
	int32_t ranks[NCCL_LOG_DIAGNOSIS_RANKS]; /* of that communicator, as listed */
	size_t rank_count;
	uint64_t lines;
	struct nccl_log_place place;
};

/*
 * What a framework says about NCCL: PyTorch's watchdog, and errors it got from NCCL. These are not
 * lines of NCCL and are not counted as such.
 */
struct nccl_log_report {
	int64_t rank;	  /* as in the line; -1: unknown */
	const char *text; /* the whole line; one per rank of those that differ only in numbers */
	uint64_t lines;
	struct nccl_log_place place;
};

/* The kind of a line. Each line has one. */
enum nccl_log_kind {
	NCCL_LOG_KIND_OTHER = 0, /* not recognized: see others */
	NCCL_LOG_KIND_VERSION,
	NCCL_LOG_KIND_INIT,
	NCCL_LOG_KIND_TIMING,
	NCCL_LOG_KIND_VARIABLE,
	NCCL_LOG_KIND_PLUGIN,
	NCCL_LOG_KIND_NETWORK, /* which network is used */
	NCCL_LOG_KIND_NET_DEVICE,
	NCCL_LOG_KIND_IB,  /* queue pairs, events */
	NCCL_LOG_KIND_OFI, /* NET/OFI ... of AWS' plugin */
	NCCL_LOG_KIND_GDR,
	NCCL_LOG_KIND_DMABUF,
	NCCL_LOG_KIND_LINK,
	NCCL_LOG_KIND_RING,
	NCCL_LOG_KIND_TREE,
	NCCL_LOG_KIND_CHANNELS,
	NCCL_LOG_KIND_NVLS,
	NCCL_LOG_KIND_COLLNET,
	NCCL_LOG_KIND_MNNVL,
	NCCL_LOG_KIND_C2C,
	NCCL_LOG_KIND_P2P, /* P2P disabled, not supported, could not be enabled */
	NCCL_LOG_KIND_TOPOLOGY,
	NCCL_LOG_KIND_GRAPH, /* topology drawing, paths, patterns */
	NCCL_LOG_KIND_TUNING,
	NCCL_LOG_KIND_CHOICE,
	NCCL_LOG_KIND_OPERATION,
	NCCL_LOG_KIND_CALL,
	NCCL_LOG_KIND_WARNING,
	NCCL_LOG_KIND_RETURN, /* "init.cc:1234 -> 3": an error passed up */
	NCCL_LOG_KIND_BOOTSTRAP,
	NCCL_LOG_KIND_RETRY, /* a connection that is retried */
	NCCL_LOG_KIND_PROXY,
	NCCL_LOG_KIND_MEMORY,
	NCCL_LOG_KIND_REGISTRATION,
	NCCL_LOG_KIND_SHM,
	NCCL_LOG_KIND_AFFINITY,
	NCCL_LOG_KIND_CONFIG, /* values that NCCL corrected */
	NCCL_LOG_KIND_PROFILER,
	NCCL_LOG_KIND_RAS,
	NCCL_LOG_KIND_TRACE, /* of level TRACE, other than calls */
	NCCL_LOG_KIND_ATTENTION,
	NCCL_LOG_KIND_LATENCY, /* of queue pairs */
	NCCL_LOG_KIND_DIAGNOSIS,
	NCCL_LOG_KINDS,
};
const char *nccl_log_kind_name(enum nccl_log_kind kind);

/*
 * A line worth keeping that has no structure of its own: one per process, kind and text without
 * numbers.
 */
struct nccl_log_note {
	uint32_t process;
	enum nccl_log_kind kind;
	int32_t comm;
	const char *text;
	uint64_t lines;
	struct nccl_log_place place;
};

/* Unrecognized lines of NCCL by their beginning; '#' stands for a number. */
struct nccl_log_other {
	const char *beginning;
	uint64_t lines;
	struct nccl_log_place place;
};

struct nccl_log {
	struct nccl_log_file *files;
	size_t file_count;
	struct nccl_log_process *processes;
	size_t process_count;
	struct nccl_log_comm *comms;
	size_t comm_count;
	struct nccl_log_link *links;
	size_t link_count;
	struct nccl_log_channel *channels;
	size_t channel_count;
	struct nccl_log_net *nets;
	size_t net_count;
	struct nccl_log_gdr *gdrs;
	size_t gdr_count;
	struct nccl_log_variable *variables;
	size_t variable_count;
	struct nccl_log_plugin *plugins;
	size_t plugin_count;
	struct nccl_log_choice *choices;
	size_t choice_count;
	struct nccl_log_cost *costs;
	size_t cost_count;
	struct nccl_log_operation *operations;
	size_t operation_count;
	struct nccl_log_warning *warnings;
	size_t warning_count;
	struct nccl_log_queue *queues;
	size_t queue_count;
	struct nccl_log_diagnosis *diagnoses;
	size_t diagnosis_count;
	uint64_t diagnoses_fine; /* lines with [OK] */
	struct nccl_log_report *reports;
	size_t report_count;
	struct nccl_log_note *notes;
	size_t note_count;
	struct nccl_log_other *others;
	size_t other_count;
	uint64_t others_left_out;	/* lines that did not fit into `others` */
	uint64_t kinds[NCCL_LOG_KINDS]; /* lines of each kind; their total is nccl_lines */
	uint64_t lines, nccl_lines;
	uint64_t cut_lines;  /* of nccl_lines: cut off by another process's line */
	uint64_t long_lines; /* only their first part was read */
	uint64_t left_out;   /* facts beyond a limit */
	struct nccl_log_work *work;
};

void nccl_log_init(struct nccl_log *log);
void nccl_log_release(struct nccl_log *log);

/*
 * The bytes of a file, or everything from a descriptor. The last line needs no newline.
 * ERR_NO_SPACE (memory: earlier facts stay), ERR_SYSTEM.
 */
enum status nccl_log_add_memory(struct nccl_log *log, const char *name, const void *bytes,
				size_t length);
enum status nccl_log_add_fd(struct nccl_log *log, const char *name, int fd);

/* Of this process; NULL if it was never logged. */
const struct nccl_log_variable *nccl_log_variable(const struct nccl_log *log, uint32_t process,
						  const char *name);

#endif
