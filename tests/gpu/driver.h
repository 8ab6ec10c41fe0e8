/*
 * A plain NCCL job of several ranks on one GPU that logs what it calls, to be compared with what the plugin
 * recorded. docs/REAL-NCCL.md explains its use.
 *
 *	nccl_driver probe			the GPU and the versions, as one line of JSON
 *	nccl_driver run --ranks N --out DIR	the cases, one after the other
 *	nccl_driver serve --ranks N --out DIR	blocks of AllReduce on command, for measuring
 *	nccl_driver steady --ranks N --out DIR	one straggler in a loop, to compare timing methods
 *	nccl_driver windows --ranks N --out DIR	graphs, sends to itself and grouped broadcasts in turn
 *	nccl_driver edges --ranks N --out DIR --scene NAME	graphs, threads and ends of all kinds
 *	nccl_driver hang --ranks N --out DIR --scene NAME	hangs until it is killed
 *
 * All except `probe` start their own ranks: the same program with --rank.
 */
#ifndef DRIVER_H
#define DRIVER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Opaque types of CUDA and NCCL, so that this compiles without them. */
struct ncclComm;
struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

enum { SIZES_MAX = 8, COMM_NAME_BYTES = 64, COMMS_MAX = 256 };

struct options {
	const char *verb;
	const char *out;    /* directory for logs, unique ids and the calls */
	const char *kinds;  /* "all" or a comma-separated list */
	const char *styles; /* the same for sync, burst, graph */
	int ranks;
	int rank; /* -1 in the process that starts the ranks */
	size_t sizes[SIZES_MAX];
	int size_count;
	size_t big_bytes; /* one more size for AllReduce and Send+Recv, 0 none */
	int calls;	  /* synchronized calls per kind, size and datatype */
	int burst;	  /* back to back */
	int captured;	  /* calls in a graph */
	int replays;
	int gap_ms; /* between calls whose timestamps must be distinguishable by the clock */
	int is_killed_at_end;
	int is_one_node;     /* NCCL sees one host, not one per rank */
	int seconds;	     /* of `steady` and `windows` */
	int fault_after;     /* of `steady`: seconds until the victim is late */
	const char *scene;   /* of `hang` and `edges` */
	int victim;	     /* for `hang`: the rank with the fault */
	const char *preload; /* library that is only loaded into the victim; NULL: none */
};

/* One NCCL call and its times. All ranks use the host's CLOCK_REALTIME. */
struct issued {
	int comm; /* order of creation in this process, from 1 */
	const char *kind;
	const char *style;
	const char *phase; /* "" or a word that distinguishes calls of one kind */
	const char *function;
	const char *datatype;
	size_t count;
	size_t bytes; /* of the message, as nccl-tests counts them */
	int root;     /* or -1 */
	int peer;     /* or -1 */
	int is_captured;
	uint64_t begin_ns; /* before the call, or before the group it is in */
	uint64_t end_ns;   /* when it was known to be over */
	uint64_t host_ns;  /* in the call, or in the whole group */
	uint64_t event_ns; /* between CUDA events around it, 0: not measured */
};

struct communicator {
	struct ncclComm *comm;
	int order;
	int rank;
	int ranks;
	char name[COMM_NAME_BYTES]; /* NCCL keeps the pointer, so it lives as long as the job */
};

struct shape {
	size_t bytes;
	int type; /* ncclDataType_t */
	size_t element_bytes;
	const char *type_name;
};

struct job {
	struct options options;
	FILE *out;
	struct issued *calls;
	size_t call_count;
	size_t call_room;
	size_t written;
	int comms_made;
	struct communicator *all[COMMS_MAX];
	struct communicator *main;  /* the case's communicator */
	struct communicator *other; /* of the case with two */
	struct communicator *child; /* of the case with a split */
	struct CUstream_st *stream;
	struct CUstream_st *other_stream;
	struct CUevent_st *before, *after, *fork, *join;
	char *send;
	char *recv;
	size_t buffer_bytes;
	const char *kind;
	const char *style;
	const char *phase;
	int is_capturing;
};

struct kind {
	const char *name;
	const char *family; /* kinds of a family share communicators */
	void (*issue)(struct job *job, const struct shape *shape);
	int is_tried_big;
	int is_heavy; /* many operations per step: run fewer steps */
};

/* driver_launch.c */
int launch_run(const struct options *options, int argc, char **argv);
int launch_serve(const struct options *options, int argc, char **argv);
/* Waits for all of them, whatever happens to any. */
int launch_hang(const struct options *options, int argc, char **argv);

/* driver_job.c */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void must_cuda(int result, const char *what); /* cudaError_t */
void must_nccl(int result, const char *what); /* ncclResult_t */
uint64_t now_ns(void);
void pause_us(long us);
void job_open(struct job *job, const struct options *options);
void job_close(struct job *job);
struct communicator *job_communicator(struct job *job, const char *name);
struct communicator *job_split(struct job *job, struct communicator *parent, const char *name);
void job_destroy(struct job *job, struct communicator **communicator);

/* driver_log.c */
void log_open(struct job *job);
void log_communicator(struct job *job, const struct communicator *communicator);
void log_call(struct job *job, const struct communicator *communicator, const char *function,
	      size_t count, const struct shape *shape, int root, int peer);
void log_times(struct job *job, size_t first, uint64_t begin_ns, uint64_t end_ns, uint64_t host_ns,
	       uint64_t event_ns);
void log_replay(struct job *job, size_t first, size_t count, uint64_t begin_ns, uint64_t end_ns,
		uint64_t event_ns);
void log_write(struct job *job);
void log_close(struct job *job);

/* driver_kinds.c */
extern const struct kind kinds[];
extern const size_t kind_count;
const struct kind *kind_find(const char *name);
struct shape shape_of(size_t bytes, int is_uint8);

/* driver_styles.c */
void style_sync(struct job *job, const struct kind *kind, const struct shape *shape, int calls,
		int gap_ms);
void style_burst(struct job *job, const struct kind *kind, const struct shape *shape, int calls);
struct CUgraphExec_st *style_capture(struct job *job, const struct kind *kind,
				     const struct shape *shape, int calls, size_t *first,
				     size_t *count);
void style_replay(struct job *job, struct CUgraphExec_st *graph, size_t first, size_t count,
		  int replays, int is_synchronised, int gap_ms);

/* driver_cases.c */
int cases_run(const struct options *options);

/* driver_timing.c */
int timing_serve(const struct options *options);

/* driver_loops.c */
int loop_steady(const struct options *options);
int loop_windows(const struct options *options);

/* driver_edges.c */
int edges_run(const struct options *options);

/* driver_hang.c */
int hang_run(const struct options *options);

#endif
