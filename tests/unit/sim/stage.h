/* A host with the witness plugin, for tests of the host. */
#ifndef STAGE_H
#define STAGE_H

#include "sim/host.h"
#include "tests/tap.h"
#include "tests/unit/sim/witness.h"

/* All events of a version, except ProxyCtrl. */
enum { STAGE_ALL = 0xffff & ~ABI_PROXY_CTRL };

struct stage {
	struct host *host;
	struct host_comm *comm;
	struct host_user user;
};

static inline struct stage stage_set(const struct host_config *config, int mask)
{
	struct host_config own = *config;
	struct host_comm_config comm = { .hash = 0xabc, .nnodes = 4, .nranks = 4, .rank = 1 };
	struct stage stage = { 0 };

	witness_reset(mask);
	own.linked = &witness_linked;
	if (host_new(&stage.host, &own) != OK ||
	    host_comm_new(stage.host, &stage.comm, &comm) != OK)
		abort();
	return stage;
}

static inline struct stage stage_of(int release, int mask)
{
	struct host_config config = { .release = release, .seed = 7 };

	return stage_set(&config, mask);
}

static inline void stage_strike(struct stage *stage)
{
	host_comm_destroy(stage->comm);
	host_free(stage->host);
}

static inline struct host_op stage_op(const struct stage *stage, enum op_function function)
{
	return host_op_make(stage->comm, function, 1024, OP_FLOAT32);
}

/* Runs the operation and waits until nothing moves. */
static inline void stage_play(struct stage *stage, const struct host_op *op)
{
	if (host_play(&stage->user, op) != OK)
		abort();
	host_comm_settle(stage->comm);
}

static inline void stage_play_group(struct stage *stage, const struct host_op *ops, size_t count)
{
	struct host_group group = { .ops = ops, .count = count };

	if (host_play_group(&stage->user, &group) != OK)
		abort();
	host_comm_settle(stage->comm);
}

/* The calls of one thread, in order: see witness_story(). */
static inline void expect_story(const char *sentence, pthread_t thread, const char *wanted)
{
	char story[2000];

	witness_story(thread, story, sizeof(story));
	if (!EXPECT_THAT(sentence, strcmp(story, wanted) == 0))
		printf("#   got    %s\n#   wanted %s\n", story, wanted);
}

/* Whether the host's counters agree with what the witness saw. */
static inline bool stage_counts_agree(struct stage *stage)
{
	struct host_counts counts;
	bool is_right = true;

	host_counts(stage->host, &counts);
	for (unsigned int event = 0; event < HOST_EVENTS; event++)
		if (counts.starts[event] != witness_starts(1u << event)) {
			printf("# event %u: host %lu, witness %zu\n", event,
			       (unsigned long)counts.starts[event], witness_starts(1u << event));
			is_right = false;
		}
	for (int state = 0; state < HOST_STATES; state++)
		if (counts.states[state] != witness_states(state)) {
			printf("# state %d: host %lu, witness %zu\n", state,
			       (unsigned long)counts.states[state], witness_states(state));
			is_right = false;
		}
	return is_right;
}

/* Every start with a handle has exactly one stop, and every stop its start. */
static inline bool stage_is_balanced(void)
{
	unsigned int *stops = calloc(witness.next_id + 1, sizeof(*stops));
	size_t left = 0;
	bool is_balanced = stops != NULL;

	for (size_t i = 0; is_balanced && i < witness.count; i++)
		if (witness.calls[i].what == 'E') {
			left++;
			if (witness.calls[i].handle <= witness.next_id)
				stops[witness.calls[i].handle]++;
		}
	for (size_t i = 0; is_balanced && i < witness.count; i++) {
		const struct witness_call *call = &witness.calls[i];

		if (call->what != 'S' || call->handle == 0)
			continue;
		is_balanced = stops[call->handle] == 1;
		left--;
		if (!is_balanced)
			printf("# event %lu of type %lu has %u stops\n",
			       (unsigned long)call->handle, (unsigned long)call->type,
			       stops[call->handle]);
	}
	free(stops);
	return is_balanced && left == 0;
}

#endif
