#include "tests/fake_gpu/fake_model.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op_layout.h"

static const struct {
	const char *name;
	uint8_t number;
} algorithm_names[] = {
	{ "Tree", OP_TREE }, { "Ring", OP_RING }, { "CollNetDirect", OP_COLLNET_DIRECT },
	{ "CollNetChain", OP_COLLNET_CHAIN }, { "NVLS", OP_NVLS }, { "NVLSTree", OP_NVLS_TREE },
	{ "PAT", OP_PAT },
}, protocol_names[] = {
	{ "LL", OP_LL }, { "LL128", OP_LL128 }, { "Simple", OP_SIMPLE },
};

/* Effect of a protocol on latency and bandwidth. */
static const struct {
	double latency;
	double bandwidth;
} protocols[OP_PROTOCOLS] = {
	[OP_LL] = { 1, 0.3 },
	[OP_LL128] = { 1.6, 0.8 },
	[OP_SIMPLE] = { 5, 1 },
};

static int name_find(bool is_protocol, const char *text, size_t length)
{
	size_t count = is_protocol ? ARRAY_LENGTH(protocol_names) : ARRAY_LENGTH(algorithm_names);

	for (size_t i = 0; i < count; i++) {
		const char *name = is_protocol ? protocol_names[i].name : algorithm_names[i].name;

		if (strlen(name) == length && strncasecmp(name, text, length) == 0)
			return is_protocol ? protocol_names[i].number : algorithm_names[i].number;
	}
	return -1;
}

/* "Ring,Tree", "^Tree": which are allowed. Not set: all. */
static int names_read(const char *variable, bool is_protocol, unsigned int *allowed)
{
	const char *text = getenv(variable);
	bool is_without = text != NULL && *text == '^';
	unsigned int named = 0;

	*allowed = ~0u;
	if (text == NULL || *text == '\0')
		return 0;
	for (text += is_without; *text != '\0';) {
		size_t length = strcspn(text, ",");
		int number = name_find(is_protocol, text, length);

		if (number < 0)
			return -1;
		named |= 1u << number;
		text += length + (text[length] == ',');
	}
	*allowed = is_without ? ~named : named;
	return 0;
}

static void slow_read(struct fake_model *model)
{
	const char *text = getenv("FAKE_NCCL_SLOW");

	while (text != NULL && *text != '\0' && model->slow_count < FAKE_SLOW_PAIRS) {
		struct fake_slow_pair *pair = &model->slow[model->slow_count++];
		char *end;

		pair->one = (int)strtol(text, &end, 10);
		pair->other = *end == '-' ? (int)strtol(end + 1, &end, 10) : pair->one;
		pair->factor = *end == ':' ? strtod(end + 1, &end) : 1;
		text = *end == ',' ? end + 1 : NULL;
	}
}

static double real_setting(const char *name, double standard)
{
	const char *value = getenv(name);

	return value != NULL && *value != '\0' ? strtod(value, NULL) : standard;
}

int fake_model_init(struct fake_model *model, int nranks)
{
	*model = (struct fake_model){ .nranks = nranks };
	model->latency_ns = 1000 * real_setting("FAKE_NCCL_LATENCY_US", 5);
	model->bytes_per_ns = real_setting("FAKE_NCCL_GBPS", 10);
	slow_read(model);
	if (names_read("NCCL_ALGO", false, &model->algorithms) != 0)
		return -1;
	return names_read("NCCL_PROTO", true, &model->protocols);
}

/* Whether this pair is connected, in a ring of all ranks or in a binary tree. */
static bool is_hop(uint8_t algorithm, const struct fake_slow_pair *pair, int nranks)
{
	int low = pair->one < pair->other ? pair->one : pair->other;
	int high = pair->one < pair->other ? pair->other : pair->one;

	if (high >= nranks || low == high)
		return false;
	if (algorithm == OP_TREE)
		return (high - 1) / 2 == low;
	return high - low == 1 || (low == 0 && high == nranks - 1);
}

/* The slowest connection determines the speed of all ranks. */
static double slowest_hop(const struct fake_model *model, uint8_t algorithm)
{
	double factor = 1;

	for (size_t i = 0; i < model->slow_count; i++) {
		if (is_hop(algorithm, &model->slow[i], model->nranks) &&
		    model->slow[i].factor > factor)
			factor = model->slow[i].factor;
	}
	return factor;
}

static bool can_do(uint8_t algorithm, uint8_t function)
{
	return algorithm == OP_RING || (algorithm == OP_TREE && function == OP_ALL_REDUCE);
}

static int tree_depth(int nranks)
{
	int depth = 0;

	while (1 << depth < nranks)
		depth++;
	return depth;
}

static double duration_of(const struct fake_model *model, uint8_t function, uint8_t algorithm,
			  uint8_t protocol, uint64_t bytes)
{
	double others = model->nranks - 1, part = others / model->nranks;
	double hops = others, moved = (double)bytes;

	if (function == OP_ALL_REDUCE && algorithm == OP_TREE) {
		hops = 2 * tree_depth(model->nranks);
		moved = 2.2 * (double)bytes;
	} else if (function == OP_ALL_REDUCE) {
		hops = 2 * others;
		moved = 2 * part * (double)bytes;
	} else if (function == OP_ALL_GATHER || function == OP_REDUCE_SCATTER) {
		moved = part * (double)bytes;
	}
	if (model->nranks == 1)
		hops = 1;
	return hops * model->latency_ns * protocols[protocol].latency +
	       moved * slowest_hop(model, algorithm) /
		       (model->bytes_per_ns * protocols[protocol].bandwidth);
}

int fake_model_choose(const struct fake_model *model, uint8_t function, uint64_t bytes,
		      struct fake_choice *choice)
{
	double best = -1;

	for (uint8_t algorithm = OP_TREE; algorithm <= OP_PAT; algorithm++) {
		if (!(model->algorithms >> algorithm & 1) || !can_do(algorithm, function))
			continue;
		for (uint8_t protocol = OP_LL; protocol <= OP_SIMPLE; protocol++) {
			double duration = duration_of(model, function, algorithm, protocol, bytes);

			if (!(model->protocols >> protocol & 1) || (best >= 0 && duration >= best))
				continue;
			best = duration;
			*choice = (struct fake_choice){ algorithm, protocol, (uint64_t)duration };
		}
	}
	return best < 0 ? -1 : 0;
}

uint64_t fake_model_transfer(const struct fake_model *model, int one, int other, uint64_t bytes)
{
	double factor = 1;

	for (size_t i = 0; i < model->slow_count; i++) {
		const struct fake_slow_pair *pair = &model->slow[i];

		if ((pair->one == one && pair->other == other) ||
		    (pair->one == other && pair->other == one))
			factor = pair->factor;
	}
	return (uint64_t)(model->latency_ns + (double)bytes * factor / model->bytes_per_ns);
}
