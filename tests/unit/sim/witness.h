/*
 * A plugin that records every call it gets, in all seven versions, for tests of the caller. Its handles and
 * contexts are small numbers, never used twice.
 */
#ifndef WITNESS_H
#define WITNESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/order.h"
#include "plugin/abi_v1.h"
#include "plugin/abi_v2.h"
#include "plugin/abi_v3.h"
#include "plugin/abi_v4.h"
#include "plugin/abi_v5.h"
#include "plugin/abi_v6.h"
#include "plugin/abi_v7.h"
#include "sim/host.h"

struct witness_call {
	char what; /* I init, S start, T state, E end of an event, F finalize */
	int version;
	pthread_t thread;
	uint64_t context; /* returned (I, S) or passed (F) */
	uint64_t handle;  /* returned (S) or passed (T, E) */
	uint64_t parent;
	uint64_t parent_group;
	uint64_t type;
	uint64_t head; /* the descriptor's first 8 bytes */
	int rank;
	int state;
	bool has_args;
	uint64_t arg;
	const char *function; /* string literals of the host */
	const char *datatype;
	uint64_t count;
	uint64_t sequence;
	uint64_t hash;
	uint64_t gpu_ns;
	uint64_t tag;
	int channel;
	int channels;
	int peer;
	int steps;
	int step;
	int is_send;
	int pid;
	int depth;
	bool is_captured;
};

static struct {
	pthread_mutex_t lock;
	struct witness_call *calls;
	size_t count, room;
	uint64_t next_id;
	int mask;
	uint64_t null_types; /* events that get NULL as their handle */
} witness = { .lock = PTHREAD_MUTEX_INITIALIZER };

static inline void witness_reset(int mask)
{
	witness.count = 0;
	witness.next_id = 0;
	witness.mask = mask;
	witness.null_types = 0;
}

/* Under the lock. */
static inline struct witness_call *witness_add(char what, int version)
{
	if (witness.count == witness.room) {
		witness.room = witness.room ? 2 * witness.room : 1024;
		witness.calls = realloc(witness.calls, witness.room * sizeof(*witness.calls));
		if (witness.calls == NULL)
			abort();
	}
	witness.calls[witness.count] =
		(struct witness_call){ .what = what, .version = version, .thread = pthread_self() };
	return &witness.calls[witness.count++];
}

static inline int witness_init(int version, void **context, int *mask, uint64_t hash, int rank)
{
	struct witness_call *call;

	pthread_mutex_lock(&witness.lock);
	call = witness_add('I', version);
	call->context = ++witness.next_id;
	call->hash = hash;
	call->rank = rank;
	*context = (void *)(uintptr_t)call->context;
	store_relaxed(mask, witness.mask); /* other communicators' threads read it */
	pthread_mutex_unlock(&witness.lock);
	return 0;
}

static inline void witness_start(const struct witness_call *seen, void **handle)
{
	struct witness_call *call;

	pthread_mutex_lock(&witness.lock);
	call = witness_add('S', seen->version);
	*call = *seen;
	call->what = 'S';
	call->thread = pthread_self();
	call->handle = witness.null_types & seen->type ? 0 : ++witness.next_id;
	*handle = (void *)(uintptr_t)call->handle;
	pthread_mutex_unlock(&witness.lock);
}

static inline int witness_other(char what, int version, void *id, int state, const void *args)
{
	struct witness_call *call;

	pthread_mutex_lock(&witness.lock);
	call = witness_add(what, version);
	call->state = state;
	call->has_args = args != NULL;
	if (args)
		memcpy(&call->arg, args, sizeof(call->arg));
	if (what == 'F')
		call->context = (uintptr_t)id;
	else
		call->handle = (uintptr_t)id;
	pthread_mutex_unlock(&witness.lock);
	return 0;
}

#define WITNESS_V1(d)                                 \
	if (call.type == ABI_COLL)                    \
		call.hash = d->coll.comm_hash;        \
	if (call.type == ABI_COLL)                    \
		call.channels = d->coll.max_channels; \
	if (call.type == ABI_P2P)                     \
		call.hash = d->p2p.comm_hash;
#define WITNESS_STRINGS(d)                        \
	if (call.type == ABI_COLL) {              \
		call.function = d->coll.function; \
		call.datatype = d->coll.datatype; \
	} else if (call.type == ABI_P2P) {        \
		call.function = d->p2p.function;  \
		call.datatype = d->p2p.datatype;  \
	}
#define WITNESS_KERNEL(d)               \
	if (call.type == ABI_KERNEL_CH) \
		call.channel = d->kernel_ch.channel;
#define WITNESS_V4(d)                             \
	WITNESS_STRINGS(d)                        \
	WITNESS_KERNEL(d)                         \
	if (call.type == ABI_COLL)                \
		call.channels = d->coll.channels; \
	if (call.type == ABI_P2P)                 \
		call.channels = d->p2p.channels;  \
	if (call.type == ABI_KERNEL_CH)           \
		call.gpu_ns = d->kernel_ch.gpu_ns;
#define WITNESS_V5(d)                                                \
	WITNESS_V4(d)                                                \
	if (call.type == ABI_COLL)                                   \
		call.parent_group = (uintptr_t)d->coll.parent_group; \
	if (call.type == ABI_P2P)                                    \
		call.parent_group = (uintptr_t)d->p2p.parent_group;  \
	if (call.type == ABI_GROUP_API) {                            \
		call.is_captured = d->group_api.is_captured;         \
		call.depth = d->group_api.depth;                     \
	} else if (call.type == ABI_COLL_API) {                      \
		call.function = d->coll_api.function;                \
		call.datatype = d->coll_api.datatype;                \
		call.count = d->coll_api.count;                      \
		call.is_captured = d->coll_api.is_captured;          \
	} else if (call.type == ABI_P2P_API) {                       \
		call.function = d->p2p_api.function;                 \
		call.datatype = d->p2p_api.datatype;                 \
		call.count = d->p2p_api.count;                       \
		call.is_captured = d->p2p_api.is_captured;           \
	}
#define WITNESS_V6(d)                                \
	WITNESS_V5(d)                                \
	if (call.type == ABI_CE_COLL) {              \
		call.function = d->ce_coll.function; \
		call.count = d->ce_coll.count;       \
	}
#define WITNESS_V7(d)                            \
	WITNESS_V6(d)                            \
	if (call.type == ABI_COLL_API)           \
		call.tag = d->coll_api.user_tag; \
	if (call.type == ABI_KERNEL_PHASE)       \
		call.gpu_ns = d->kernel_phase.gpu_ns;

#define WITNESS_VERSION(N, more, init_params, hash, rank_)                                    \
	static int witness_init_v##N init_params                                              \
	{                                                                                     \
		return witness_init(N, context, mask, hash, rank_);                           \
	}                                                                                     \
	static int witness_start_v##N(void *context, void **handle, struct abi_descr_v##N *d) \
	{                                                                                     \
		struct witness_call call = {                                                  \
			.version = N,                                                         \
			.context = (uintptr_t)context,                                        \
			.parent = (uintptr_t)d->parent,                                       \
			.type = d->type,                                                      \
			.rank = d->rank,                                                      \
		};                                                                            \
                                                                                              \
		memcpy(&call.head, d, sizeof(call.head));                                     \
		if (call.type == ABI_COLL) {                                                  \
			call.count = d->coll.count;                                           \
			call.sequence = d->coll.sequence;                                     \
		} else if (call.type == ABI_P2P) {                                            \
			call.count = d->p2p.count;                                            \
			call.peer = d->p2p.peer;                                              \
		} else if (call.type == ABI_PROXY_OP) {                                       \
			call.pid = d->proxy_op.pid;                                           \
			call.channel = d->proxy_op.channel;                                   \
			call.peer = d->proxy_op.peer;                                         \
			call.steps = d->proxy_op.steps;                                       \
			call.is_send = d->proxy_op.is_send;                                   \
		} else if (call.type == ABI_PROXY_STEP) {                                     \
			call.step = d->proxy_step.step;                                       \
		}                                                                             \
		more(d) witness_start(&call, handle);                                         \
		return 0;                                                                     \
	}                                                                                     \
	static int witness_stop_v##N(void *handle)                                            \
	{                                                                                     \
		return witness_other('E', N, handle, 0, NULL);                                \
	}                                                                                     \
	static int witness_state_v##N(void *handle, int state, union abi_args_v##N *args)     \
	{                                                                                     \
		return witness_other('T', N, handle, state, args);                            \
	}                                                                                     \
	static int witness_finalize_v##N(void *context)                                       \
	{                                                                                     \
		return witness_other('F', N, context, 0, NULL);                               \
	}                                                                                     \
	static const struct abi_plugin_v##N witness_v##N = {                                  \
		"witness",	   witness_init_v##N,  witness_start_v##N,                    \
		witness_stop_v##N, witness_state_v##N, witness_finalize_v##N,                 \
	};

#define WITNESS_V2(d) WITNESS_V1(d) WITNESS_STRINGS(d)
#define WITNESS_V3(d) WITNESS_V2(d) WITNESS_KERNEL(d)
#define WITNESS_IDENTITY const char *name, int nnodes, int nranks, int rank, abi_log_fn log
#define WITNESS_UNUSED ((void)name, (void)nnodes, (void)nranks, (void)log, rank)

WITNESS_VERSION(1, WITNESS_V1, (void **context, int *mask), 0, -1)
WITNESS_VERSION(2, WITNESS_V2, (void **context, int *mask), 0, -1)
WITNESS_VERSION(3, WITNESS_V3, (void **context, int *mask), 0, -1)
WITNESS_VERSION(4, WITNESS_V4,
		(void **context, int *mask, const char *name, uint64_t hash, int nnodes, int nranks,
		 int rank, abi_log_fn log),
		hash, WITNESS_UNUSED)
WITNESS_VERSION(5, WITNESS_V5, (void **context, uint64_t hash, int *mask, WITNESS_IDENTITY), hash,
		WITNESS_UNUSED)
WITNESS_VERSION(6, WITNESS_V6, (void **context, uint64_t hash, int *mask, WITNESS_IDENTITY), hash,
		WITNESS_UNUSED)
WITNESS_VERSION(7, WITNESS_V7, (void **context, uint64_t hash, int *mask, WITNESS_IDENTITY), hash,
		WITNESS_UNUSED)

static const struct host_linked witness_linked = {
	&witness_v1, &witness_v2, &witness_v3, &witness_v4, &witness_v5, &witness_v6, &witness_v7,
};

/* ---- questions about what was seen ----------------------------------------------------------- */

static inline size_t witness_starts(uint64_t type)
{
	size_t count = 0;

	pthread_mutex_lock(&witness.lock);
	for (size_t i = 0; i < witness.count; i++)
		count += witness.calls[i].what == 'S' && witness.calls[i].type == type;
	pthread_mutex_unlock(&witness.lock);
	return count;
}

/* The nth call (from 0) of this kind; NULL if there are fewer. */
static inline const struct witness_call *witness_nth(uint64_t type, size_t nth)
{
	for (size_t i = 0; i < witness.count; i++)
		if (witness.calls[i].what == 'S' && witness.calls[i].type == type && nth-- == 0)
			return &witness.calls[i];
	return NULL;
}

static inline const struct witness_call *witness_find(char what, uint64_t handle, int state)
{
	for (size_t i = 0; i < witness.count; i++) {
		const struct witness_call *call = &witness.calls[i];

		if (call->what == what && call->handle == handle &&
		    (what != 'T' || call->state == state))
			return call;
	}
	return NULL;
}

static inline size_t witness_count_of(char what, uint64_t handle)
{
	size_t count = 0;

	for (size_t i = 0; i < witness.count; i++)
		count += witness.calls[i].what == what && witness.calls[i].handle == handle;
	return count;
}

static inline size_t witness_states(int state)
{
	size_t count = 0;

	for (size_t i = 0; i < witness.count; i++)
		count += witness.calls[i].what == 'T' && witness.calls[i].state == state;
	return count;
}

/* The last state that this event reached, or -1. */
static inline int witness_last_state(uint64_t handle)
{
	int state = -1;

	for (size_t i = 0; i < witness.count; i++)
		if (witness.calls[i].what == 'T' && witness.calls[i].handle == handle)
			state = witness.calls[i].state;
	return state;
}

/* "S8 T23 S9 E9 ..." of one thread: what, and the bit of the event or the state. */
static inline void witness_story(pthread_t thread, char *text, size_t size)
{
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < witness.count && length + 8 < size; i++) {
		const struct witness_call *call = &witness.calls[i];
		const struct witness_call *start = call;

		if (!pthread_equal(call->thread, thread) || strchr("STE", call->what) == NULL)
			continue;
		if (call->what == 'E')
			start = witness_find('S', call->handle, 0);
		length += (size_t)snprintf(text + length, size - length, "%c%d ", call->what,
					   call->what == 'T' ? call->state
					   : start	     ? __builtin_ctzll(start->type)
							     : -1);
	}
	if (length)
		text[length - 1] = '\0';
}

#endif
