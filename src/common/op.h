/*
 * The meaning of a record: names, sizes, durations, and whether its numbers are valid. Names are in
 * NCCL's spelling, which users know.
 */
#ifndef OP_H
#define OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"
#include "common/op_layout.h"

enum op_name_table {
	OP_NAMES_FUNCTION = 0,
	OP_NAMES_DATATYPE = 1,
	OP_NAMES_ALGORITHM = 2,
	OP_NAMES_PROTOCOL = 3,
	OP_NAME_TABLES = 4,
};

/* NULL if the table has no such number; interned numbers have to be looked up by the caller. */
const char *op_name(enum op_name_table table, uint8_t number);

const char *op_function_name(uint8_t function);	  /* "AllReduce"; "?" past the table */
const char *op_datatype_name(uint8_t datatype);	  /* "float32" */
const char *op_algorithm_name(uint8_t algorithm); /* "RING" */
const char *op_protocol_name(uint8_t protocol);	  /* "LL128" */
const char *op_state_name(uint8_t state);	  /* "running" */
const char *op_time_source_name(uint8_t source);  /* "kernel_gpu"; also of shown sources */
const char *op_wait_name(unsigned int wait);	  /* "send_gpu" */
const char *op_flag_name(unsigned int bit);	  /* "replay"; NULL for a bit without meaning */
const char *op_lost_name(unsigned int reason);	  /* "ring_overrun"; NULL past the table */
const char *op_lost_words(unsigned int reason);	  /* in words: "ring buffer overrun" */
const char *op_odd_name(unsigned int reason);	  /* "stale_handle"; NULL past the table */
const char *op_mode_name(unsigned int mode);	  /* "flight" */

/* The number of a call as people know it. Other tools count each function by itself: a match number then has the
 * function above its number. */
uint64_t op_shown_number(uint64_t match);

/* Is a whole operation missing? Otherwise only details of a recorded one. */
bool op_lost_is_whole(unsigned int reason);
/* Number of lost operations, over all reasons. */
uint64_t op_lost_operations(const uint64_t *lost);
/* Those among them that were not counted as issued. The others were issued and lost later. */
uint64_t op_lost_unseen(const uint64_t *lost);

/* NCCL's own spelling ("ncclFloat32"); NULL if the table has no such number. */
const char *op_name_of_nccl(enum op_name_table table, uint8_t number);

/*
 * The number for NCCL's string. A name that is not in the table gives the table's "unknown", 0;
 * *is_known says whether it was in the table. `text` may be NULL.
 */
uint8_t op_name_find(enum op_name_table table, const char *text, int *is_known);

/* Version 1 of the interface sends numbers. */
uint8_t op_function_from_v1(uint8_t number);
uint8_t op_datatype_from_nccl(uint8_t number);
uint8_t op_algorithm_from_v1(uint8_t number);
uint8_t op_protocol_from_v1(uint8_t number);

/* Bytes of one element; 0: unknown. */
unsigned int op_datatype_bytes(uint8_t datatype);

/*
 * Message size as nccl-tests counts it: the whole buffer for AllGather, ReduceScatter, AlltoAll,
 * Gather and Scatter (nranks times the per-rank count), the count itself otherwise.
 * OP_BYTES_UNKNOWN if the size of an element or a required nranks is unknown (0), or if the result
 * exceeds 64 bits.
 */
uint64_t op_message_bytes(uint8_t function, uint64_t count, unsigned int element_bytes, int nranks);

/* 0: unknown, 1: 0 bytes, else 2 + floor(log2(bytes)). */
unsigned int op_size_class(uint64_t bytes);
/* The range of bytes in a class, inclusive; false for unknown and invalid classes. */
bool op_size_range(unsigned int size_class, uint64_t *least, uint64_t *most);
/* The lower end of a class: "32 MiB"; "unknown". */
void op_size_text(char *to, size_t size, unsigned int size_class);

/* Does every rank of the communicator issue it, so that ranks can be matched by its number? */
static inline bool op_is_collective(uint8_t function)
{
	const uint32_t others = 1u << OP_SEND | 1u << OP_RECV | 1u << OP_SEND_RECV |
				1u << OP_PUT_SIGNAL | 1u << OP_SIGNAL | 1u << OP_WAIT_SIGNAL;

	return function >= 32 || !(others >> function & 1);
}

/*
 * Where a time comes from, as outputs show it: enum op_time_source, CUDA events apart from kernel events, and what another
 * tool measured apart from what this recorder saw of the network and the host. In a record flags tell them apart.
 */
enum {
	OP_TIME_CUDA_EVENT = OP_TIME_SOURCES,
	OP_TIME_TOOL = OP_TIME_SOURCES + 1,
	OP_TIME_SHOWN_SOURCES = OP_TIME_SOURCES + 2,
};

static inline uint8_t op_shown_source(uint8_t source, uint32_t flags)
{
	if (source == OP_TIME_KERNEL_GPU)
		return flags & OP_FLAG_CUDA_EVENT ? OP_TIME_CUDA_EVENT : OP_TIME_KERNEL_GPU;
	return source != OP_TIME_NONE && flags & OP_FLAG_TOOL_TIME ? OP_TIME_TOOL : source;
}

/* Measured on the GPU, however that is shown. */
static inline bool op_source_is_gpu(uint8_t source)
{
	return source == OP_TIME_KERNEL_GPU || source == OP_TIME_CUDA_EVENT;
}

/*
 * Does a shown source say how long an operation took? A network span also has the time in which the operation was queued
 * behind others, and the host's clock only bounds it: they are in no total, no share and no bandwidth. Everything that
 * adds up, averages or compares durations asks here.
 */
static inline bool op_is_duration(uint8_t shown_source)
{
	return op_source_is_gpu(shown_source) || shown_source == OP_TIME_TOOL;
}

static inline bool op_has_duration(const struct op_record *op)
{
	return op_is_duration(op_shown_source(op->time_source, op->flags));
}

/* "cuda_event" for a record's source and flags */
const char *op_time_name(uint8_t source, uint32_t op_flags);

/*
 * From its first to its last moment, by the source named in its record; 0 if there is none. For its place in time:
 * how long it took is op_duration_ns().
 */
static inline uint64_t op_span_ns(const struct op_record *op)
{
	switch (op->time_source) {
	case OP_TIME_KERNEL_GPU:
		return op->gpu_stop_ns - op->gpu_start_ns;
	case OP_TIME_PROXY:
		return op->done_ns - op->active_ns;
	case OP_TIME_HOST:
		return op->done_ns - op->issue_ns;
	default:
		return 0;
	}
}

/* How long an operation took; 0 if that is not known. */
static inline uint64_t op_duration_ns(const struct op_record *op)
{
	return op_has_duration(op) ? op_span_ns(op) : 0;
}

/*
 * Could there be kernel events for this operation? Only then does their absence mean anything. They
 * were requested for all operations of its communicator or, before 0.3, for a share and this one.
 */
static inline bool op_kernels_were_asked(const struct comm_info *comm, const struct op_record *op)
{
	enum { KERNEL_CH = 0x40, FIRST_WITH_KERNELS = 3 }; /* NCCL's number; interface version */

	/* If the requested events are not known, go by what came. */
	if (comm->mask == 0)
		return comm->flags & COMM_FLAG_SEES_KERNELS;
	if (op->flags & OP_FLAG_KERNELS_ASKED)
		return true;
	return comm->mask & KERNEL_CH &&
	       (comm->interface == 0 || comm->interface >= FIRST_WITH_KERNELS);
}

static inline bool op_has_network_time(const struct op_record *op)
{
	return op->state == OP_DONE && op->proxies_stopped > 0 &&
	       op->proxies_stopped == op->proxies_started && op->active_ns != 0;
}

/*
 * Which time of a finished operation can be trusted? For the recorder, and for readers that find
 * the operation before its record is complete.
 */
static inline uint8_t op_choose_time_source(const struct op_record *op)
{
	int has_stamps =
		(op->flags & OP_FLAG_CUDA_EVENT ||
		 (op->kernels_stopped > 0 && op->kernels_stopped == op->kernels_started)) &&
		op->gpu_start_ns != 0 && op->gpu_stop_ns >= op->gpu_start_ns;

	if (has_stamps && !(op->flags & OP_STAMPS_UNTRUSTED))
		return OP_TIME_KERNEL_GPU;
	/*
	 * Samples are timed by the GPU. Network times of the others are a different quantity and
	 * must not be mixed into the same figure. If there are no samples at all, readers use them
	 * instead.
	 */
	if (op->flags & OP_FLAG_NOT_SAMPLED)
		return OP_TIME_NONE;
	return op_has_network_time(op) ? OP_TIME_PROXY : OP_TIME_NONE;
}

/*
 * Multiplied by bytes over time it gives the bus bandwidth of nccl-tests. 0 if nranks is needed and
 * unknown (0); 1 for functions that are unknown or have no factor of their own.
 */
static inline double op_bus_factor(uint8_t function, int32_t nranks)
{
	double ranks = nranks;

	switch (function) {
	case OP_ALL_REDUCE:
		return nranks > 0 ? 2 * (ranks - 1) / ranks : 0;
	case OP_ALL_GATHER:
	case OP_REDUCE_SCATTER:
	case OP_ALL_TO_ALL:
	case OP_GATHER:
	case OP_SCATTER:
		return nranks > 0 ? (ranks - 1) / ranks : 0;
	default:
		return 1;
	}
}

/*
 * Is a record from shared memory or a file safe to use? NULL if every number is in its range, else
 * what is wrong, in a few words. Only ranges are checked: a record that passes can still be false,
 * but indexing tables with it is safe. Times are not checked here: see op_check_time(). Functions,
 * datatypes, algorithms and protocols may be interned; ranks, roots and peers may be any number;
 * unknown flags are allowed (a newer minor version may set them).
 */
const char *op_check(const struct op_record *op);      /* finished: has a sequence */
const char *op_check_live(const struct op_record *op); /* has none yet */
const char *op_check_detail(const struct op_detail *detail);
const char *op_check_comm(const struct comm_info *comm);

/*
 * Do the times fit the source named in the record, so that a duration can be computed? If not, the
 * source is set to none, and the result is false.
 */
bool op_check_time(struct op_record *op);

/*
 * What a name contributes to a signature. Interned numbers differ between processes, so these
 * contribute the hash of their text.
 */
static inline uint64_t op_signature_name(enum op_name_table table, uint8_t number)
{
	return (uint64_t)table << 8 | number;
}

/*
 * The rolling signature of a communicator over function, count, datatype and root of each
 * collective. Recorder and simulator compute it; trace files omit it where it can be recomputed.
 */
static inline uint64_t op_signature(uint64_t before, uint64_t function, uint64_t datatype,
				    int32_t root, uint64_t count)
{
	uint64_t what = function ^ datatype << 16 ^ (uint64_t)(uint32_t)root << 32;

	return hash_word(hash_word(before, what), count);
}

/*
 * Many records at once, word by word: column w holds word w of each record, as in struct op_record.
 * For code that reads a few words of millions of records; other code uses whole records.
 *
 * What the 64-bit words of a record hold. Functions below extract the fields of words with several.
 */
enum op_word {
	OP_WORD_SEQUENCE = 0,
	OP_WORD_KIND = 1, /* comm, function, datatype, algorithm, protocol */
	OP_WORD_NUMBER = 2,
	OP_WORD_MATCH = 3,
	OP_WORD_SIGNATURE = 4,
	OP_WORD_COUNT = 5,
	OP_WORD_BYTES = 6,
	OP_WORD_NCCL_SEQUENCE = 7,
	OP_WORD_USER_TAG = 8,
	OP_WORD_STREAM = 9,
	OP_WORD_ENDS = 10,  /* root, peer */
	OP_WORD_STATE = 11, /* flags, state, time_source, channels, warps */
	OP_WORD_ISSUE = 12,
	OP_WORD_LAUNCH = 13,
	OP_WORD_TASK = 14,
	OP_WORD_ACTIVE = 15,
	OP_WORD_DONE = 16,
	OP_WORD_GPU_START = 17,
	OP_WORD_GPU_STOP = 18,
	OP_WORD_SPREADS = 19,
	OP_WORD_CHILDREN = 20,
	OP_WORD_CAPTURED_NUMBER = 21,
	OP_WORD_SEND_BYTES = 22,
	OP_WORD_RECV_BYTES = 23,
	OP_WORD_WAITS = 24, /* six words */
	OP_WORD_STEPS = 30,
	OP_WORD_RESERVED = 31,
};

#define OP_WORD_BIT(word) (UINT32_C(1) << (word))
#define OP_WORDS_ALL UINT32_MAX
/* The words needed to compute a duration. */
#define OP_WORDS_TIME                                                                          \
	(OP_WORD_BIT(OP_WORD_STATE) | OP_WORD_BIT(OP_WORD_ISSUE) | OP_WORD_BIT(OP_WORD_TASK) | \
	 OP_WORD_BIT(OP_WORD_ACTIVE) | OP_WORD_BIT(OP_WORD_DONE) |                             \
	 OP_WORD_BIT(OP_WORD_GPU_START) | OP_WORD_BIT(OP_WORD_GPU_STOP))

struct op_batch {
	uint32_t rows;
	uint32_t words;				 /* bit w: column w is present */
	const uint64_t *column[OP_RECORD_WORDS]; /* NULL if its bit is not set */
};

/* Parts of OP_WORD_KIND. All but the communicator, in one number: a key to group by. */
static inline uint32_t op_kind_comm(uint64_t kind)
{
	return (uint32_t)kind;
}

static inline uint32_t op_kind_names(uint64_t kind)
{
	return (uint32_t)(kind >> 32);
}

/* Parts of OP_WORD_STATE. */
static inline uint32_t op_state_flags(uint64_t word)
{
	return (uint32_t)word;
}

static inline uint8_t op_state_state(uint64_t word)
{
	return (uint8_t)(word >> 32);
}

static inline uint8_t op_state_source(uint64_t word)
{
	return (uint8_t)(word >> 40);
}

static inline uint8_t op_state_channels(uint64_t word)
{
	return (uint8_t)(word >> 48);
}

/*
 * Buckets for durations: Prometheus' exponential layout, schema 3. Bucket i holds durations d with
 *
 *	2^((i-1)/8) s < d * 2^22 <= 2^(i/8) s
 *
 * So there are eight buckets per octave, each 9% wide, from 238 ns (bucket 0 and below) to 1024 s
 * (bucket 255 and above). Exporting is exact; merging is addition.
 */
enum { HISTOGRAM_BUCKETS = 256, HISTOGRAM_SCHEMA = 3, HISTOGRAM_FIRST_EXPONENT = -22 };

/* The largest whole nanosecond in bucket i. */
uint64_t histogram_upper_ns(unsigned int bucket);

unsigned int histogram_bucket(uint64_t ns);

/* Prometheus' own index for our bucket i in schema 3. */
static inline int histogram_prometheus_index(unsigned int bucket)
{
	return HISTOGRAM_FIRST_EXPONENT * 8 + (int)bucket;
}

#endif
