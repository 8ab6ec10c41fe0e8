#include "sim/sim_job.h"

#include <string.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"
#include "sim/host.h"

static const char *const role_names[SIM_ROLES] = { "world", "tp", "pp", "dp", "ep" };

const char *sim_role_name(int role)
{
	return role >= 0 && role < SIM_ROLES ? role_names[role] : "?";
}

/* -1: unknown. */
static int sim_role_find(const char *name)
{
	for (int role = 0; role < SIM_ROLES; role++)
		if (strcmp(role_names[role], name) == 0)
			return role;
	return -1;
}

enum status sim_tags_parse(uint64_t tags[SIM_ROLES], const char *text, char *why, size_t size)
{
	for (const char *at = text;; at++) {
		char word[64], *equals;
		size_t length = strcspn(at, ",");
		int64_t tag;
		int role;

		text_format(word, sizeof(word), "%.*s", (int)(length < 60 ? length : 60), at);
		equals = strchr(word, '=');
		if (equals != NULL)
			*equals = '\0';
		role = sim_role_find(word);
		if (equals == NULL || role == -1 ||
		    text_number(equals + 1, 1, INT64_MAX, &tag) != OK) {
			text_format(why, size,
				    "--tag %.100s: expected world, tp, pp, dp or ep, '=' and a "
				    "number from 1 on, e.g. tp=1,dp=2",
				    text);
			return ERR_FORMAT;
		}
		tags[role] = (uint64_t)tag;
		at += length;
		if (*at == '\0')
			return OK;
	}
}

enum fault_key {
	KEY_RANK = 1u << 0,
	KEY_FROM = 1u << 1,
	KEY_TO = 1u << 2,
	KEY_FACTOR = 1u << 3,
	KEY_COMM = 1u << 4,
	KEY_WHAT = 1u << 5,
	KEY_AT = 1u << 6,
	KEY_UNTIL = 1u << 7,
	KEY_PEER = 1u << 8,
	KEY_NODE = 1u << 9,
	KEY_LINK = 1u << 10,
	KEY_CHANNEL = 1u << 11,
	KEY_RAIL = 1u << 12,
};

static const char *const key_names[] = { "rank",  "from", "to",	  "factor", "comm",    "what", "at",
					 "until", "peer", "node", "link",   "channel", "rail" };

/* Values of what=, by fault; the first is the default. */
static const char *const mismatches[SIM_MISMATCHES + 1] = { "count", "function", "datatype",
							    "root",  "order",	 NULL };
static const char *const gpu_stucks[SIM_GPU_STUCKS + 1] = { "not-started", "not-launched",
							    "not-producing", NULL };
static const char *const ways[SIM_WAYS + 1] = { "both", "sending", "receiving", NULL };
static const char *const receivers[SIM_RECEIVERS + 1] = { "credits", "wire", NULL };

static const struct {
	struct sim_fault_page page;
	unsigned int allowed;
	unsigned int needed;
	uint64_t factor_permille; /* default */
} kinds[SIM_FAULT_KINDS] = {
	[SIM_FAULT_NONE] = { { "none", "", "No fault." }, KEY_AT, 0, 0 },
	[SIM_SLOW_RANK] = { { "slow-rank", "rank=R[,factor=F][,at=T][,until=T]",
			      "Rank R computes F times slower (1.5), like a throttled GPU. It is a "
			      "straggler: it arrives late at every collective and waits least, and "
			      "all others wait for it." },
			    KEY_RANK | KEY_FACTOR | KEY_AT | KEY_UNTIL,
			    KEY_RANK,
			    1500 },
	[SIM_SLOW_LINK] = { { "slow-link", "from=A,to=B[,factor=F][,at=T][,until=T]",
			      "Sends from rank A to rank B take F times as long (4). Collectives "
			      "whose ring or tree goes from A to B slow down for all ranks, in one "
			      "channel: A's sends stay on the wire, B waits for data." },
			    KEY_FROM | KEY_TO | KEY_FACTOR | KEY_AT | KEY_UNTIL,
			    KEY_FROM | KEY_TO,
			    4000 },
	[SIM_DEGRADED_NETWORK] = { { "degraded-network", "[factor=F][,at=T][,until=T]",
				     "All links between nodes have 1/F of their bandwidth (2). "
				     "Links inside nodes are not affected." },
				   KEY_FACTOR | KEY_AT | KEY_UNTIL,
				   0,
				   2000 },
	[SIM_SLOW_NVLINK] = { { "slow-nvlink", "[node=N][,factor=F][,at=T][,until=T]",
				"Links inside node N, or inside all nodes, have 1/F of their "
				"bandwidth (4). Links between nodes are not affected." },
			      KEY_NODE | KEY_FACTOR | KEY_AT | KEY_UNTIL,
			      0,
			      4000 },
	[SIM_SLOW_RAIL] = { { "slow-rail", "rail=L[,factor=F][,at=T][,until=T]",
			      "What the L-th GPU of any node sends to or receives from other nodes "
			      "takes F times as long (4), like one switch of a rail-optimized "
			      "network." },
			    KEY_RAIL | KEY_FACTOR | KEY_AT | KEY_UNTIL,
			    KEY_RAIL,
			    4000 },
	[SIM_SLOW_UPLINK] = { { "slow-uplink",
				"node=N[,what=both|sending|receiving][,factor=F][,at=T][,until=T]",
				"All NICs of node N are F times slower (4), both ways or one." },
			      KEY_NODE | KEY_WHAT | KEY_FACTOR | KEY_AT | KEY_UNTIL,
			      KEY_NODE,
			      4000 },
	[SIM_SLOW_RECEIVER] = { { "slow-receiver",
				  "rank=R[,what=credits|wire][,factor=F][,at=T][,until=T]",
				  "Rank R takes what other nodes send F times slower (4). Senders "
				  "wait until it is ready (credits), or what they send stays on "
				  "the "
				  "wire (wire)." },
				KEY_RANK | KEY_WHAT | KEY_FACTOR | KEY_AT | KEY_UNTIL,
				KEY_RANK,
				4000 },
	[SIM_STARVED] = { { "starved", "rank=R[,factor=F][,at=T][,until=T]",
			    "Rank R's process gets a core for 1/F (1/5) of the time, in turns of "
			    "25 ms: its calls and all its transfers are late." },
			  KEY_RANK | KEY_FACTOR | KEY_AT | KEY_UNTIL,
			  KEY_RANK,
			  5000 },
	[SIM_POWER_CAP] = { { "power-cap", "[factor=F][,at=T][,until=T]",
			      "All ranks compute F times slower (1.4). Nobody waits longer." },
			    KEY_FACTOR | KEY_AT | KEY_UNTIL,
			    0,
			    1400 },
	[SIM_NEVER_ARRIVES] = { { "never-arrives", "rank=R[,comm=NAME][,at=T][,until=T]",
				  "Rank R stops before its next call (on communicator NAME), like "
				  "a hung data loader. The others wait in that operation. With "
				  "until=, R goes on then." },
				KEY_RANK | KEY_COMM | KEY_AT | KEY_UNTIL,
				KEY_RANK,
				0 },
	[SIM_STUCK_SEND] = { { "stuck-send", "rank=R[,link=N|,channel=C][,to=B][,at=T]",
			       "From then on, nothing that rank R sends over the network "
			       "completes: R's transfers stay on the wire, its peers wait for "
			       "data, all ranks hang. With link=N only on the N-th of the channels "
			       "on which R sends to another node, with channel=C on that one, with "
			       "to=B only sends to rank B." },
			     KEY_RANK | KEY_LINK | KEY_CHANNEL | KEY_TO | KEY_AT,
			     KEY_RANK,
			     0 },
	[SIM_MISMATCH] = { { "mismatch",
			     "rank=R[,what=count|function|datatype|root|order][,comm=NAME][,at=T]",
			     "Rank R makes one collective call with half the count (count), "
			     "another function, a datatype of half the size, or another root than "
			     "the others, or swaps two calls (order). With another function all "
			     "ranks hang in that call; with less data or another root R leaves it "
			     "early and hangs in its next one." },
			   KEY_RANK | KEY_WHAT | KEY_COMM | KEY_AT,
			   KEY_RANK,
			   0 },
	[SIM_DEADLOCK] = { { "deadlock", "rank=R,peer=P[,at=T]",
			     "Ranks R and P use two communicators in opposite order: P is in the "
			     "first and waits for R, R is in the second and waits for P. For "
			     "workloads in which both ranks share at least two communicators." },
			   KEY_RANK | KEY_PEER | KEY_AT,
			   KEY_RANK | KEY_PEER,
			   0 },
	[SIM_GPU_STUCK] = { { "gpu-stuck",
			      "rank=R[,what=not-started|not-launched|not-producing][,comm=NAME][,"
			      "at=T"
			      "]",
			      "Rank R's kernel is launched and never starts (not-started), like "
			      "behind another one that does not end; or R's call does not return "
			      "(not-launched); or the kernel runs and does nothing "
			      "(not-producing). The others wait in that operation." },
			    KEY_RANK | KEY_WHAT | KEY_COMM | KEY_AT,
			    KEY_RANK,
			    0 },
	[SIM_STOP] = { { "stop", "rank=R[,at=T]",
			 "Rank R's process gets SIGSTOP, as from a debugger or a frozen container. "
			 "It exists but does nothing; the others wait for it." },
		       KEY_RANK | KEY_AT,
		       KEY_RANK,
		       0 },
	[SIM_KILL] = { { "kill", "rank=R[,at=T]",
			 "Rank R's process gets SIGKILL. Its recording ends there; the others wait "
			 "for "
			 "it." },
		       KEY_RANK | KEY_AT,
		       KEY_RANK,
		       0 },
};

const struct sim_fault_page *sim_fault_page(enum sim_fault_kind kind)
{
	return (unsigned int)kind < SIM_FAULT_KINDS ? &kinds[kind].page : NULL;
}

bool sim_fault_hangs(const struct sim_fault *fault)
{
	return fault->kind >= SIM_NEVER_ARRIVES && fault->until_ns == UINT64_MAX;
}

static enum status find_kind(const char *name, size_t length, enum sim_fault_kind *kind, char *why,
			     size_t size)
{
	size_t used;

	for (int i = 0; i < SIM_FAULT_KINDS; i++)
		if (strlen(kinds[i].page.name) == length &&
		    memcmp(kinds[i].page.name, name, length) == 0) {
			*kind = (enum sim_fault_kind)i;
			return OK;
		}
	text_format(why, size, "unknown fault '%.*s'; use one of", (int)length, name);
	for (int i = 0; i < SIM_FAULT_KINDS; i++) {
		used = strlen(why);
		text_format(why + used, size - used, "%s %s", i ? "," : "", kinds[i].page.name);
	}
	return ERR_UNKNOWN;
}

static enum status set_number(const char *text, int *number)
{
	int64_t value;
	enum status status = text_number(text, 0, INT32_MAX, &value);

	if (status == OK)
		*number = (int)value;
	return status;
}

static const char *const *whats_of(enum sim_fault_kind kind)
{
	switch (kind) {
	case SIM_GPU_STUCK:
		return gpu_stucks;
	case SIM_SLOW_UPLINK:
		return ways;
	case SIM_SLOW_RECEIVER:
		return receivers;
	default:
		return mismatches;
	}
}

static enum status set_what(struct sim_fault *fault, const char *text)
{
	const char *const *names = whats_of(fault->kind);

	for (int i = 0; names[i]; i++)
		if (strcmp(names[i], text) == 0) {
			fault->what = i;
			return OK;
		}
	return ERR_UNKNOWN;
}

/* Links are counted from 1. */
static enum status set_link(struct sim_fault *fault, const char *text)
{
	enum status status = set_number(text, &fault->link);

	return status == OK && fault->link == 0 ? ERR_RANGE : status;
}

static enum status set_key(struct sim_fault *fault, enum fault_key key, const char *value)
{
	switch (key) {
	case KEY_RANK:
		return set_number(value, &fault->rank);
	case KEY_FROM:
		return set_number(value, &fault->from);
	case KEY_TO:
		return set_number(value, &fault->to);
	case KEY_FACTOR:
		return text_permille(value, 1000, &fault->factor_permille);
	case KEY_COMM:
		fault->role = sim_role_find(value);
		return fault->role == -1 ? ERR_UNKNOWN : OK;
	case KEY_WHAT:
		return set_what(fault, value);
	case KEY_AT:
		fault->has_at = true;
		return text_duration(value, &fault->at_ns);
	case KEY_UNTIL:
		return text_duration(value, &fault->until_ns);
	case KEY_PEER:
		return set_number(value, &fault->peer);
	case KEY_NODE:
		return set_number(value, &fault->node);
	case KEY_LINK:
		return set_link(fault, value);
	case KEY_CHANNEL:
		return set_number(value, &fault->channel);
	case KEY_RAIL:
		return set_number(value, &fault->rail);
	}
	return ERR_UNKNOWN;
}

static const char *what_wants(enum sim_fault_kind kind)
{
	switch (kind) {
	case SIM_GPU_STUCK:
		return "not-started, not-launched or not-producing";
	case SIM_SLOW_UPLINK:
		return "both, sending or receiving";
	case SIM_SLOW_RECEIVER:
		return "credits or wire";
	default:
		return "count, function, datatype, root or order";
	}
}

static const char *fault_wants(enum sim_fault_kind kind, enum fault_key key)
{
	switch (key) {
	case KEY_FACTOR:
		return "a factor of at least 1, e.g. 1.5";
	case KEY_COMM:
		return "world, tp, pp, dp or ep";
	case KEY_WHAT:
		return what_wants(kind);
	case KEY_NODE:
		return "a node number";
	case KEY_LINK:
		return "a number from 1";
	case KEY_CHANNEL:
		return "a channel number";
	case KEY_RAIL:
		return "the number of a GPU in its node";
	case KEY_AT:
	case KEY_UNTIL:
		return "a time, e.g. 30s or 500ms";
	default:
		return "a rank number";
	}
}

/* One "key=value" of `length` bytes. */
static enum status parse_pair(struct sim_fault *fault, const char *text, size_t length,
			      unsigned int *seen, char *why, size_t size)
{
	const struct sim_fault_page *page = &kinds[fault->kind].page;
	const char *equals = memchr(text, '=', length);
	size_t key_length = equals ? (size_t)(equals - text) : length;
	char value[64];

	for (unsigned int i = 0; i < ARRAY_LENGTH(key_names); i++) {
		enum fault_key key = (enum fault_key)(1u << i);

		if (strlen(key_names[i]) != key_length ||
		    memcmp(key_names[i], text, key_length) != 0 ||
		    !(kinds[fault->kind].allowed & key))
			continue;
		text_format(value, sizeof(value), "%.*s",
			    (int)(equals ? length - key_length - 1 : 0), equals ? equals + 1 : "");
		*seen |= key;
		if (set_key(fault, key, value) == OK)
			return OK;
		text_format(why, size, "fault %s: '%s=%s' must be %s", page->name, key_names[i],
			    value, fault_wants(fault->kind, key));
		return ERR_RANGE;
	}
	text_format(why, size, "fault %s has no key '%.*s'; valid keys: %s", page->name,
		    (int)key_length, text, page->keys[0] ? page->keys : "none");
	return ERR_UNKNOWN;
}

static enum status fault_check(const struct sim_fault *fault, unsigned int seen, char *why,
			       size_t size)
{
	unsigned int missing = kinds[fault->kind].needed & ~seen;

	if (missing != 0) {
		text_format(why, size, "fault %s needs %s=; valid keys: %s",
			    kinds[fault->kind].page.name, key_names[__builtin_ctz(missing)],
			    kinds[fault->kind].page.keys);
		return ERR_FORMAT;
	}
	if (fault->kind == SIM_SLOW_LINK && fault->from == fault->to) {
		text_format(why, size, "fault slow-link: from and to are the same rank (%d)",
			    fault->from);
		return ERR_RANGE;
	}
	if (fault->kind == SIM_DEADLOCK && fault->rank == fault->peer) {
		text_format(why, size, "fault deadlock: rank and peer are the same rank (%d)",
			    fault->rank);
		return ERR_RANGE;
	}
	if ((seen & KEY_LINK) && (seen & KEY_CHANNEL)) {
		text_format(why, size, "fault stuck-send: use only one of link= and channel=");
		return ERR_RANGE;
	}
	return OK;
}

enum status sim_fault_parse(struct sim_fault *fault, const char *text, char *why, size_t size)
{
	size_t length = strcspn(text, ":");
	struct sim_fault made = {
		.to = -1, .node = -1, .channel = -1, .role = -1, .until_ns = UINT64_MAX
	};
	unsigned int seen = 0;
	enum status status = find_kind(text, length, &made.kind, why, size);

	if (status != OK)
		return status;
	made.factor_permille = kinds[made.kind].factor_permille;
	text += length;
	while (*text != '\0' && text[1] != '\0') {
		text++;
		length = strcspn(text, ",");
		status = parse_pair(&made, text, length, &seen, why, size);
		if (status != OK)
			return status;
		text += length;
	}
	status = fault_check(&made, seen, why, size);
	if (status == OK)
		*fault = made;
	return status;
}

enum { DEFAULT_SECONDS = 10, DEFAULT_SAMPLE_LEVEL = 3 };

static const struct sim_workload_page pages[SIM_WORKLOADS] = {
	[SIM_DDP] = { "ddp",
		      "Data parallel: gradients are summed over all ranks with one AllReduce per "
		      "bucket, overlapping the backward pass. Starts with a Broadcast of the "
		      "weights.",
		      "of the buckets (25MiB)" },
	[SIM_FSDP] = { "fsdp",
		       "Sharded data parallel: each layer's weights are collected with an "
		       "AllGather before use, forward and backward, and its gradients are "
		       "distributed with a ReduceScatter. One small AllReduce for the gradient "
		       "norm.",
		       "of a layer's weights (256MiB)" },
	[SIM_TP_PP] = { "tp-pp",
			"Tensor and pipeline parallel: AllReduce in each tensor group (--tp, one "
			"node), Send and Recv between pipeline stages (--pp), AllReduce of "
			"gradients between pipelines at the end.",
			"of the activations (32MiB)" },
	[SIM_MOE] = { "moe",
		      "Mixture of experts: tokens go to their experts and back with an all-to-all "
		      "(grouped Send and Recv, including to itself) in each expert group (--ep), "
		      "after an AllGather of the token counts; AllReduce of gradients between "
		      "groups and over all ranks.",
		      "of the data one rank sends to another (2MiB)" },
	[SIM_LOOP] = { "loop",
		       "A benchmark: AllReduce, AllGather and ReduceScatter of each size in turn "
		       "over all "
		       "ranks.",
		       "of the messages (1KiB,1MiB,64MiB)" },
};

const struct sim_workload_page *sim_workload_page(enum sim_workload workload)
{
	return (unsigned int)workload < SIM_WORKLOADS ? &pages[workload] : NULL;
}

enum sim_workload sim_workload_find(const char *name)
{
	int i = 0;

	while (i < SIM_WORKLOADS && strcmp(pages[i].name, name) != 0)
		i++;
	return (enum sim_workload)i;
}

void sim_options_init(struct sim_options *options)
{
	*options = (struct sim_options){
		.nodes = 1,
		.gpus = 8,
		.workload = SIM_DDP,
		.seed = 1,
		.release = HOST_NCCL_2_28,
		.clock_shift_ns = 100000000,
		.sample_level = DEFAULT_SAMPLE_LEVEL,
		.hang_ns = DEFAULT_SECONDS * SECOND_NS,
		.jitter_permille = 20,
		.attempt = 1,
		.nvlink = { .bytes_per_us = 360000, .latency_ns = 1000 },
		.network = { .bytes_per_us = 48000, .latency_ns = 5000 },
	};
}

int sim_options_interface(const struct sim_options *options)
{
	return host_release_native(options->release);
}

static enum status check_group(const char *name, int size, int world, char *why, size_t why_size)
{
	if (size >= 1 && size <= world && world % size == 0)
		return OK;
	text_format(why, why_size, "cannot split %d ranks into groups of %d (--%s)", world, size,
		    name);
	return ERR_RANGE;
}

static enum status finish_groups(struct sim_options *options, char *why, size_t size)
{
	int world = sim_options_world(options);
	enum status status;

	if (options->tensor == 0)
		options->tensor = options->gpus;
	status = check_group("tp", options->tensor, world, why, size);
	if (status != OK)
		return status;
	if (options->pipeline == 0)
		for (options->pipeline = 4; world / options->tensor % options->pipeline != 0;)
			options->pipeline /= 2;
	if (world / options->tensor % options->pipeline != 0) {
		text_format(why, size,
			    "cannot arrange %d groups of %d ranks in pipelines of %d (--pp)",
			    world / options->tensor, options->tensor, options->pipeline);
		return ERR_RANGE;
	}
	if (options->expert == 0)
		options->expert = options->nodes % 2 == 0 ? 2 * options->gpus : options->gpus;
	return check_group("ep", options->expert, world, why, size);
}

static enum status check_rank(const struct sim_fault *fault, const char *key, int rank, int world,
			      char *why, size_t size)
{
	if (rank < world)
		return OK;
	text_format(why, size, "fault %s: no rank %d (%s=); the last rank is %d",
		    sim_fault_page(fault->kind)->name, rank, key, world - 1);
	return ERR_RANGE;
}

static bool has_role(const struct sim_options *options, int role)
{
	switch (role) {
	case -1:
	case SIM_WORLD:
		return true;
	case SIM_TENSOR:
	case SIM_PIPELINE:
		return options->workload == SIM_TP_PP;
	case SIM_EXPERT:
		return options->workload == SIM_MOE;
	default:
		return options->workload == SIM_TP_PP || options->workload == SIM_MOE;
	}
}

static enum status check_ranks(const struct sim_fault *fault, int world, char *why, size_t size)
{
	enum status status = check_rank(fault, "rank", fault->rank, world, why, size);

	if (status == OK)
		status = check_rank(fault, "from", fault->from, world, why, size);
	if (status == OK)
		status = check_rank(fault, "to", fault->to, world, why, size);
	if (status == OK)
		status = check_rank(fault, "peer", fault->peer, world, why, size);
	return status;
}

/* What a fault requires of the job. */
static enum status check_needs(const struct sim_options *options, const struct sim_fault *fault,
			       char *why, size_t size)
{
	const char *name = sim_fault_page(fault->kind)->name;
	const char *workload = pages[options->workload].name;

	if ((fault->kind == SIM_DEGRADED_NETWORK || fault->kind == SIM_SLOW_RAIL ||
	     fault->kind == SIM_SLOW_UPLINK || fault->kind == SIM_SLOW_RECEIVER) &&
	    options->nodes == 1)
		text_format(why, size, "fault %s: one node has no network; use --nodes 2 or more",
			    name);
	else if (fault->kind == SIM_SLOW_NVLINK && options->gpus == 1)
		text_format(why, size, "fault %s: nodes with one GPU have no internal links", name);
	else if (fault->kind == SIM_SLOW_RAIL && fault->rail >= options->gpus)
		text_format(why, size, "fault %s: no GPU %d in a node; the last is %d", name,
			    fault->rail, options->gpus - 1);
	else if (fault->node >= options->nodes)
		text_format(why, size, "fault %s: no node %d; the last node is %d", name,
			    fault->node, options->nodes - 1);
	else if (fault->kind == SIM_DEADLOCK && options->workload != SIM_TP_PP &&
		 options->workload != SIM_MOE)
		text_format(why, size,
			    "fault %s: workload %s has only one communicator; use -w "
			    "tp-pp",
			    name, workload);
	else if (fault->kind == SIM_MISMATCH && fault->what == SIM_MISMATCH_ROOT &&
		 options->workload != SIM_DDP)
		text_format(why, size, "fault %s: workload %s has no call with a root; use -w ddp",
			    name, workload);
	else if (fault->kind == SIM_GPU_STUCK && fault->what == SIM_NOT_LAUNCHED &&
		 sim_options_interface(options) < 5)
		text_format(why, size,
			    "fault %s: this release does not show calls that were not launched; "
			    "use --release 2.28",
			    name);
	else
		return OK;
	return ERR_RANGE;
}

static enum status finish_fault(const struct sim_options *options, struct sim_fault *fault,
				char *why, size_t size)
{
	const char *name = sim_fault_page(fault->kind)->name;
	enum status status = check_ranks(fault, sim_options_world(options), why, size);

	if (status != OK)
		return status;
	if (!fault->has_at)
		fault->at_ns = options->at_ns;
	if (fault->until_ns <= fault->at_ns) {
		text_format(why, size, "fault %s ends (until=) before it begins (at=)", name);
		return ERR_RANGE;
	}
	if (!has_role(options, fault->role)) {
		text_format(why, size, "fault %s: workload %s has no communicator '%s'", name,
			    pages[options->workload].name, sim_role_name(fault->role));
		return ERR_UNKNOWN;
	}
	return check_needs(options, fault, why, size);
}

static enum status finish_kernel(struct sim_options *options, char *why, size_t size)
{
	const struct kernel_policy *policy =
		kernel_policy_of((unsigned int)sim_options_interface(options));

	if (!options->is_kernel_said)
		options->kernel = (enum kernel_events)policy->by_default;
	if (options->kernel != KERNEL_EVENTS_SAMPLED || policy->can_sample)
		return OK;
	text_format(why, size,
		    "kernel events of this release cannot be sampled; use --kernel, --no-kernel or "
		    "--release 2.28");
	return ERR_RANGE;
}

enum status sim_options_finish(struct sim_options *options, char *why, size_t size)
{
	uint64_t last_ns = 0;
	enum status status;

	if (sim_options_world(options) > SIM_RANKS_MAX) {
		text_format(why, size, "%d nodes with %d GPUs exceed the limit of %d ranks",
			    options->nodes, options->gpus, SIM_RANKS_MAX);
		return ERR_RANGE;
	}
	if (sim_options_world(options) < 2) {
		text_format(why, size, "a single rank does not communicate; use --gpus 2 or more");
		return ERR_RANGE;
	}
	for (int role = 0; role < SIM_ROLES; role++)
		if (options->tags[role] != 0 && sim_options_interface(options) < 7) {
			text_format(why, size, "this release has no tags; use --release 2.31");
			return ERR_RANGE;
		}
	status = finish_kernel(options, why, size);
	if (status != OK)
		return status;
	if (options->noises[SIM_NOISE_CHECKPOINT].is_on &&
	    options->noises[SIM_NOISE_CHECKPOINT].rank >= sim_options_world(options)) {
		text_format(why, size, "noise checkpoint: no rank %d (rank=); the last rank is %d",
			    options->noises[SIM_NOISE_CHECKPOINT].rank,
			    sim_options_world(options) - 1);
		return ERR_RANGE;
	}
	status = finish_groups(options, why, size);
	for (size_t i = 0; i < options->fault_count && status == OK; i++) {
		status = finish_fault(options, &options->faults[i], why, size);
		if (options->faults[i].kind != SIM_FAULT_NONE && options->faults[i].at_ns > last_ns)
			last_ns = options->faults[i].at_ns;
	}
	if (options->seconds_ns == 0 && options->iterations == 0)
		options->seconds_ns = last_ns + DEFAULT_SECONDS * SECOND_NS;
	return status;
}
