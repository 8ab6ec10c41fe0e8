/*
 * Reads a trace of torch.profiler (Kineto): Chrome's JSON, plain or gzip, of any size in bounded memory.
 *
 *	{"schemaVersion": 1, "deviceProperties": [...],
 *	 "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2, ...},
 *	 "baseTimeNanoseconds": 1763000000000000000,
 *	 "traceEvents": [{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)",
 *			  "pid": 0, "tid": 20, "ts": 5273.456, "dur": 12.800,
 *			  "args": {"correlation": 4711, "External id": 99, ...}}, ...]}
 *
 * ts and dur are microseconds. Kineto adds baseTimeNanoseconds to get CLOCK_REALTIME; traces before
 * PyTorch 2.4 have no base and are absolute. Events are in no order. The pid of an event on the host is
 * that of the process; of one on a GPU the number of the device. A plain array of events is read, too.
 */
#ifndef KINETO_H
#define KINETO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum {
	KINETO_NAME = 256,
	/* Bytes of one event, or of one other value, in the file: longer ones are skipped and counted. */
	KINETO_EVENT_MAX = 1 << 20,
	KINETO_GROUP_NAME = 96,
};

enum kineto_kind {
	KINETO_OTHER = 0,
	KINETO_CPU_OP = 1,
	KINETO_ANNOTATION = 2, /* user_annotation */
	KINETO_RUNTIME = 3,    /* cuda_runtime, cuda_driver */
	KINETO_KERNEL = 4,
	KINETO_MEMCPY = 5,
	KINETO_MEMSET = 6,
	KINETO_GPU_ANNOTATION = 7,
	KINETO_SYNC = 8,
};

enum kineto_phase {
	KINETO_UNKNOWN = 0,  /* counters, flows and whatever else is not read */
	KINETO_SLICE = 1,    /* "X" */
	KINETO_INSTANT = 2,  /* "i" */
	KINETO_METADATA = 3, /* "M": `label` has the name of a process or thread */
};

/* Texts are borrowed until the visitor returns. */
struct kineto_event {
	enum kineto_phase phase;
	enum kineto_kind kind;
	char name[KINETO_NAME]; /* cut to fit */
	char category[48];
	bool has_place; /* pid and tid are numbers */
	int64_t pid;
	int64_t tid;
	uint64_t start_ns; /* after the base */
	uint64_t duration_ns;
	const char *args; /* the object's text; NULL: none */
	size_t args_length;
	uint64_t correlation;	       /* of a call of CUDA and what it started; 0: none */
	bool is_nccl;		       /* a kernel of NCCL */
	char label[KINETO_GROUP_NAME]; /* metadata: args.name */
	char group
		[KINETO_GROUP_NAME]; /* of a kernel of NCCL: description, else name of its process group */
};

/* What the file says beside its events. */
struct kineto_about {
	bool has_base;
	uint64_t base_ns;    /* ns since 1970; 0 if the file has none: times are absolute */
	int64_t rank;	     /* -1: unknown */
	int64_t world_size;  /* -1: unknown */
	uint64_t events;     /* all, of any phase */
	uint64_t too_long;   /* skipped: longer than KINETO_EVENT_MAX */
	uint64_t unusable;   /* skipped: no object, or a slice without a usable time */
	const char *problem; /* static; of ERR_FORMAT and ERR_TRUNCATED */
	uint64_t offset;     /* where, in the unpacked text */
};

/* False: stop; kineto_read() returns ERR_GONE. */
typedef bool kineto_visit(const struct kineto_event *event, void *context);

/*
 * Reads a whole file. ERR_SYSTEM (errno), ERR_FORMAT and ERR_TRUNCATED (about->problem), ERR_NO_SPACE, ERR_GONE.
 * What was visited before a failure was valid.
 */
enum status kineto_read(const char *path, struct kineto_about *about, kineto_visit *visit,
			void *context);

/* The same from any source: `more` returns the number of bytes it has put into `to`, 0 at the end, -1 (errno). */
typedef long kineto_more(void *source, char *to, size_t room);
enum status kineto_parse(kineto_more *more, void *source, struct kineto_about *about,
			 kineto_visit *visit, void *context);

#endif
