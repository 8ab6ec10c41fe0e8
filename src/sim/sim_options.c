/* Faults, noise, workloads and defaults, and the texts that they are given by. */
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

/* ---- faults and noise ------------------------------------------------------------------------ */

struct kind {
	struct sim_fault_page page;
	uint64_t factor_permille;  /* of a fault, unless given */
	struct sim_noise defaults; /* of noise */
};

static const struct kind fault_kinds[SIM_FAULT_KINDS] = {
	[SIM_FAULT_NONE] = { .page = { "none", "", "No fault." } },
	[SIM_SLOW_RANK] = { .page = { "slow-rank", "rank=R[,factor=F][,at=T][,until=T]",
				      "Rank R computes F times slower (1.5), like a throttled GPU. "
				      "It is a straggler: it arrives late at every collective and "
				      "waits least, and all others wait for it." },
			    .factor_permille = 1500 },
	[SIM_SLOW_LINK] = { .page = { "slow-link", "from=A,to=B[,factor=F][,at=T][,until=T]",
				      "Sends from rank A to rank B take F times as long (4). "
				      "Collectives whose ring or tree goes from A to B slow down "
				      "for all ranks, in one channel: A's sends stay on the wire, "
				      "B waits for data." },
			    .factor_permille = 4000 },
	[SIM_DEGRADED_NETWORK] = { .page = { "degraded-network", "[factor=F][,at=T][,until=T]",
					     "All links between nodes have 1/F of their bandwidth "
					     "(2). Links inside nodes are not affected." },
				   .factor_permille = 2000 },
	[SIM_SLOW_NVLINK] = { .page = { "slow-nvlink", "[node=N][,factor=F][,at=T][,until=T]",
					"Links inside node N, or inside all nodes, have 1/F of "
					"their bandwidth (4). Links between nodes are not "
					"affected." },
			      .factor_permille = 4000 },
	[SIM_SLOW_RAIL] = { .page = { "slow-rail", "rail=L[,factor=F][,at=T][,until=T]",
				      "What the L-th GPU of any node sends to or receives from "
				      "other nodes takes F times as long (4), like one switch of a "
				      "rail-optimized network." },
			    .factor_permille = 4000 },
	[SIM_SLOW_UPLINK] = { .page = { "slow-uplink",
					"node=N[,what=both|sending|receiving][,factor=F][,at=T][,"
					"until=T]",
					"All NICs of node N are F times slower (4), both ways or "
					"one." },
			      .factor_permille = 4000 },
	[SIM_SLOW_RECEIVER] = { .page = { "slow-receiver",
					  "rank=R[,what=credits|wire][,factor=F][,at=T][,until=T]",
					  "Rank R takes what other nodes send F times slower (4). "
					  "Senders wait until it is ready (credits), or what they "
					  "send stays on the wire (wire)." },
				.factor_permille = 4000 },
	[SIM_STARVED] = { .page = { "starved", "rank=R[,factor=F][,at=T][,until=T]",
				    "Rank R's process gets a core for 1/F (1/5) of the time, in "
				    "turns of 25 ms: its calls and all its transfers are late." },
			  .factor_permille = 5000 },
	[SIM_POWER_CAP] = { .page = { "power-cap", "[factor=F][,at=T][,until=T]",
				      "All ranks compute F times slower (1.4). Nobody waits "
				      "longer." },
			    .factor_permille = 1400 },
	[SIM_NEVER_ARRIVES] = { .page = { "never-arrives", "rank=R[,comm=NAME][,at=T][,until=T]",
					  "Rank R stops before its next call (on communicator "
					  "NAME), like a hung data loader. The others wait in that "
					  "operation. With until=, R goes on then." } },
	[SIM_STUCK_SEND] = { .page = { "stuck-send", "rank=R[,link=N|,channel=C][,to=B][,at=T]",
				       "From then on, nothing that rank R sends over the network "
				       "completes: R's transfers stay on the wire, its peers wait "
				       "for data, all ranks hang. With link=N only on the N-th of "
				       "the channels on which R sends to another node, with "
				       "channel=C on that one, with to=B only sends to rank B." } },
	[SIM_MISMATCH] = { .page = { "mismatch",
				     "rank=R[,what=count|function|datatype|root|order][,comm=NAME]["
				     ",at=T]",
				     "Rank R makes one collective call with half the count "
				     "(count), another function, a datatype of half the size, or "
				     "another root than the others, or swaps two calls (order). "
				     "With another function all ranks hang in that call; with less "
				     "data or another root R leaves it early and hangs in its next "
				     "one." } },
	[SIM_DEADLOCK] = { .page = { "deadlock", "rank=R,peer=P[,at=T]",
				     "Ranks R and P use two communicators in opposite order: P is "
				     "in the first and waits for R, R is in the second and waits "
				     "for P. For workloads in which both ranks share at least two "
				     "communicators." } },
	[SIM_GPU_STUCK] = { .page = { "gpu-stuck",
				      "rank=R[,what=not-started|not-launched|not-producing][,comm="
				      "NAME][,at=T]",
				      "Rank R's kernel is launched and never starts (not-started), "
				      "like behind another one that does not end; or R's call does "
				      "not return (not-launched); or the kernel runs and does "
				      "nothing (not-producing). The others wait in that "
				      "operation." } },
	[SIM_STOP] = { .page = { "stop", "rank=R[,at=T]",
				 "Rank R's process gets SIGSTOP, as from a debugger or a frozen "
				 "container. It exists but does nothing; the others wait for "
				 "it." } },
	[SIM_KILL] = { .page = { "kill", "rank=R[,at=T]",
				 "Rank R's process gets SIGKILL. Its recording ends there; the "
				 "others wait for it." } },
};

static const struct kind noise_kinds[SIM_NOISES] = {
	[SIM_NOISE_COMPUTE] = { .page = { "compute", "[percent=P][,every=T]",
					  "The compute speed of each rank wanders by up to P% (3), "
					  "correlated over about T (2s)." },
				.defaults = { .amount = 30, .every_ns = 2 * SECOND_NS } },
	[SIM_NOISE_TAIL] = { .page = { "tail", "[percent=P][,for=T]",
				       "P% (0.5) of the computations take longer, by T (10ms) on "
				       "average; a few by much more (Pareto)." },
			     .defaults = { .amount = 5, .duration_ns = 10 * MS_NS } },
	[SIM_NOISE_LOADER] = { .page = { "loader", "[every=T][,for=T]",
					 "Data loading: each rank waits for data before an "
					 "iteration, about every 20s for 200ms, independently of "
					 "the others." },
			       .defaults = { .every_ns = 20 * SECOND_NS,
					     .duration_ns = 200 * MS_NS } },
	[SIM_NOISE_GC] = { .page = { "gc", "[every=T][,for=T]",
				     "Garbage collection: each rank's host pauses before a call, "
				     "about every 5s for 30ms. The GPU goes on with what is "
				     "queued." },
			   .defaults = { .every_ns = 5 * SECOND_NS, .duration_ns = 30 * MS_NS } },
	[SIM_NOISE_CHECKPOINT] = { .page = { "checkpoint", "[every=T][,for=T][,rank=R]",
					     "All ranks, or only rank R, write a checkpoint before "
					     "an iteration, every 30s for 1s." },
				   .defaults = { .every_ns = 30 * SECOND_NS,
						 .duration_ns = SECOND_NS,
						 .rank = -1 } },
	[SIM_NOISE_EVALUATION] = { .page = { "evaluation", "[every=T][,for=T]",
					     "Phases of iterations without backward pass, every "
					     "30s for 4s." },
				   .defaults = { .every_ns = 30 * SECOND_NS,
						 .duration_ns = 4 * SECOND_NS } },
	[SIM_NOISE_THERMAL] = { .page = { "thermal", "[percent=P][,every=T]",
					  "Thermal and power drift: the GPUs of a node get slower "
					  "and faster again by up to P% (4), over about T (30s)." },
				.defaults = { .amount = 40, .every_ns = 30 * SECOND_NS } },
	[SIM_NOISE_GPUS] = { .page = { "gpus", "[percent=P]",
				       "Unequal GPUs: each is slower by up to P% (2), for good." },
			     .defaults = { .amount = 20 } },
	[SIM_NOISE_BATCHES] = { .page = { "batches", "[percent=P][,per=job|rank]",
					  "Variable batches: the compute time of an iteration "
					  "differs by up to P% (20), the same on all ranks (job) "
					  "or not (rank)." },
				.defaults = { .amount = 200 } },
	[SIM_NOISE_CONTENTION] = { .page = { "contention", "[percent=P]",
					     "Communicators of a node share its network: an "
					     "operation loses P% (50) of the time that it overlaps "
					     "with one of another communicator." },
				   .defaults = { .amount = 500 } },
	[SIM_NOISE_LOSS] = { .page = { "loss", "[percent=P][,for=T]",
				       "Packet loss: in P% (0.5) of the operations a channel "
				       "between nodes loses packets and waits for T (2ms) on "
				       "average; sometimes much longer (Pareto)." },
			     .defaults = { .amount = 5, .duration_ns = 2 * MS_NS } },
	[SIM_NOISE_EXPERTS] = { .page = { "experts", "[percent=P]",
					  "Uneven experts (moe): a rank gets up to P% (40) more or "
					  "fewer tokens than others, and computes as much longer "
					  "or shorter." },
				.defaults = { .amount = 400 } },
};

const struct sim_fault_page *sim_fault_page(enum sim_fault_kind kind)
{
	return (unsigned int)kind < SIM_FAULT_KINDS ? &fault_kinds[kind].page : NULL;
}

const struct sim_fault_page *sim_noise_page(enum sim_noise_kind kind)
{
	return (unsigned int)kind < SIM_NOISES ? &noise_kinds[kind].page : NULL;
}

bool sim_fault_hangs(const struct sim_fault *fault)
{
	return fault->kind >= SIM_NEVER_ARRIVES && fault->until_ns == UINT64_MAX;
}

/* How the value of a key is read, and what it is stored as. */
enum key_how {
	KEY_NUMBER,  /* int */
	KEY_TIME,    /* uint64_t, ns */
	KEY_FACTOR,  /* uint64_t, 1/1000 */
	KEY_PERCENT, /* uint64_t, 1/1000 */
	KEY_ROLE,    /* int, enum sim_role */
	KEY_CHOICE,  /* int: the number of the value among those in the kind's keys */
};

struct key {
	const char *name;
	enum key_how how;
	size_t offset;
	const char *wants; /* KEY_CHOICE: NULL, the kind's keys say it */
	uint64_t least;
	uint64_t most; /* 0: any */
};

static const char a_rank[] = "a rank number", a_time[] = "a time, e.g. 30s or 500ms";

enum { FAULT_AT = 0 }; /* every fault has it, also one that does not list it */

#define FAULT_KEY(name, how, field) name, how, offsetof(struct sim_fault, field)
static const struct key fault_keys[] = {
	[FAULT_AT] = { FAULT_KEY("at", KEY_TIME, at_ns), .wants = a_time },
	{ FAULT_KEY("until", KEY_TIME, until_ns), .wants = a_time },
	{ FAULT_KEY("rank", KEY_NUMBER, rank), .wants = a_rank },
	{ FAULT_KEY("from", KEY_NUMBER, from), .wants = a_rank },
	{ FAULT_KEY("to", KEY_NUMBER, to), .wants = a_rank },
	{ FAULT_KEY("peer", KEY_NUMBER, peer), .wants = a_rank },
	{ FAULT_KEY("node", KEY_NUMBER, node), .wants = "a node number" },
	{ FAULT_KEY("rail", KEY_NUMBER, rail), .wants = "the number of a GPU in its node" },
	{ FAULT_KEY("link", KEY_NUMBER, link), .wants = "a number from 1", .least = 1 },
	{ FAULT_KEY("channel", KEY_NUMBER, channel), .wants = "a channel number" },
	{ FAULT_KEY("factor", KEY_FACTOR, factor_permille),
	  .wants = "a factor of at least 1, e.g. 1.5" },
	{ FAULT_KEY("comm", KEY_ROLE, role), .wants = "world, tp, pp, dp or ep" },
	{ FAULT_KEY("what", KEY_CHOICE, what), .wants = NULL },
};

/* Events of noise are looked for one by one, so they are not closer than a millisecond. */
#define NOISE_KEY(name, how, field) name, how, offsetof(struct sim_noise, field)
static const struct key noise_keys[] = {
	{ NOISE_KEY("percent", KEY_PERCENT, amount), .wants = "a percentage from 0 to 500",
	  .most = 5000 },
	{ NOISE_KEY("every", KEY_TIME, every_ns), .wants = "a time, e.g. 30s", .least = MS_NS },
	{ NOISE_KEY("for", KEY_TIME, duration_ns), .wants = "a time, e.g. 200ms" },
	{ NOISE_KEY("rank", KEY_NUMBER, rank), .wants = a_rank, .most = SIM_RANKS_MAX - 1 },
	{ NOISE_KEY("per", KEY_CHOICE, per), .wants = NULL },
};

/*
 * "KIND:key=value,...". The keys that a page shows say what its kind takes: those before the first bracket are
 * needed, the others optional, and some list their values.
 *
 *	node=N[,what=both|sending|receiving][,factor=F][,at=T][,until=T]
 */
struct grammar {
	const char *name;
	const struct kind *kinds;
	int kind_count;
	const struct key *keys;
	unsigned int key_count;
};

static const struct grammar fault_grammar = { "fault", fault_kinds, SIM_FAULT_KINDS, fault_keys,
					      ARRAY_LENGTH(fault_keys) };
static const struct grammar noise_grammar = { "noise", noise_kinds, SIM_NOISES, noise_keys,
					      ARRAY_LENGTH(noise_keys) };

static enum status find_kind(const struct grammar *grammar, const char *name, size_t length,
			     int *kind, char *why, size_t size)
{
	for (int i = 0; i < grammar->kind_count; i++)
		if (strlen(grammar->kinds[i].page.name) == length &&
		    memcmp(grammar->kinds[i].page.name, name, length) == 0) {
			*kind = i;
			return OK;
		}
	text_format(why, size, "unknown %s '%.*s'; use one of", grammar->name, (int)length, name);
	for (int i = 0; i < grammar->kind_count; i++)
		text_append(why, size, "%s %s", i ? "," : "", grammar->kinds[i].page.name);
	return ERR_UNKNOWN;
}

/* What follows "name=" in the keys of a page; NULL: it has no such key. */
static const char *find_in_page(const char *keys, const char *name)
{
	size_t length = strlen(name);

	for (const char *word = keys; *word != '\0'; word += strcspn(word, "[],|")) {
		word += strspn(word, "[],|");
		if (strncmp(word, name, length) == 0 && word[length] == '=')
			return word + length + 1;
	}
	return NULL;
}

static bool is_needed(const char *keys, const char *name)
{
	const char *found = find_in_page(keys, name);

	return found != NULL && (size_t)(found - keys) <= strcspn(keys, "[");
}

/* The number of a value in "both|sending|receiving]"; -1: it is none of them. */
static int find_choice(const char *choices, const char *value)
{
	for (int i = 0;; i++) {
		size_t length = strcspn(choices, "|]");

		if (strlen(value) == length && memcmp(choices, value, length) == 0)
			return i;
		if (choices[length] != '|')
			return -1;
		choices += length + 1;
	}
}

/* "both, sending or receiving" */
static void put_choices(const char *choices, char *to, size_t size)
{
	for (const char *before = "", *at = choices;; at++) {
		size_t length = strcspn(at, "|]");

		text_append(to, size, "%s%.*s", before, (int)length, at);
		at += length;
		if (*at != '|')
			return;
		before = at[1 + strcspn(at + 1, "|]")] == '|' ? ", " : " or ";
	}
}

static enum status set_key(const struct key *key, const char *keys, const char *value, void *target)
{
	void *to = (char *)target + key->offset;
	enum status status = OK;
	uint64_t amount = 0;
	int64_t number = 0;

	switch (key->how) {
	case KEY_NUMBER:
		status = text_number(value, (int64_t)key->least,
				     key->most ? (int64_t)key->most : INT32_MAX, &number);
		break;
	case KEY_ROLE:
		number = sim_role_find(value);
		break;
	case KEY_CHOICE:
		number = find_choice(find_in_page(keys, key->name), value);
		break;
	case KEY_TIME:
		status = text_duration(value, &amount);
		if (status == OK && amount < key->least)
			status = ERR_RANGE;
		break;
	case KEY_FACTOR:
		status = text_permille(value, 1000, &amount);
		break;
	case KEY_PERCENT:
		status = text_permille(value, 0, &amount);
		amount /= 100;
		if (amount > key->most)
			status = ERR_RANGE;
		break;
	}
	if (number == -1)
		status = ERR_UNKNOWN;
	if (status != OK)
		return status;
	if (key->how == KEY_NUMBER || key->how == KEY_ROLE || key->how == KEY_CHOICE)
		*(int *)to = (int)number;
	else
		*(uint64_t *)to = amount;
	return OK;
}

/* One "key=value" of `length` bytes. */
static enum status parse_pair(const struct grammar *grammar, const struct sim_fault_page *page,
			      const char *text, size_t length, void *target, unsigned int *seen,
			      char *why, size_t size)
{
	const char *equals = memchr(text, '=', length);
	size_t key_length = equals ? (size_t)(equals - text) : length;
	char value[64];

	for (unsigned int i = 0; i < grammar->key_count; i++) {
		const struct key *key = &grammar->keys[i];

		if (strlen(key->name) != key_length || memcmp(key->name, text, key_length) != 0 ||
		    (find_in_page(page->keys, key->name) == NULL && key != &fault_keys[FAULT_AT]))
			continue;
		text_format(value, sizeof(value), "%.*s",
			    (int)(equals ? length - key_length - 1 : 0), equals ? equals + 1 : "");
		*seen |= 1u << i;
		if (set_key(key, page->keys, value, target) == OK)
			return OK;
		text_format(why, size, "%s %s: '%s=%s' must be %s", grammar->name, page->name,
			    key->name, value, key->wants ? key->wants : "");
		if (key->wants == NULL)
			put_choices(find_in_page(page->keys, key->name), why, size);
		return ERR_RANGE;
	}
	text_format(why, size, "%s %s has no key '%.*s'; valid keys: %s", grammar->name, page->name,
		    (int)key_length, text, page->keys[0] ? page->keys : "none");
	return ERR_UNKNOWN;
}

/* What follows a kind: ":key=value,...". Bit i of *seen: key i was given. */
static enum status parse_keys(const struct grammar *grammar, int kind, const char *text,
			      void *target, unsigned int *seen, char *why, size_t size)
{
	const struct sim_fault_page *page = &grammar->kinds[kind].page;

	*seen = 0;
	while (*text != '\0' && text[1] != '\0') {
		size_t length = strcspn(++text, ",");
		enum status status =
			parse_pair(grammar, page, text, length, target, seen, why, size);

		if (status != OK)
			return status;
		text += length;
	}
	for (unsigned int i = 0; i < grammar->key_count; i++)
		if (!(*seen >> i & 1) && is_needed(page->keys, grammar->keys[i].name)) {
			text_format(why, size, "%s %s needs %s=; valid keys: %s", grammar->name,
				    page->name, grammar->keys[i].name, page->keys);
			return ERR_FORMAT;
		}
	return OK;
}

static enum status fault_check(const struct sim_fault *fault, char *why, size_t size)
{
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
	if (fault->link > 0 && fault->channel >= 0) {
		text_format(why, size, "fault stuck-send: use only one of link= and channel=");
		return ERR_RANGE;
	}
	return OK;
}

enum status sim_fault_parse(struct sim_fault *fault, const char *text, char *why, size_t size)
{
	size_t length = strcspn(text, ":");
	unsigned int seen;
	int kind;
	enum status status = find_kind(&fault_grammar, text, length, &kind, why, size);
	struct sim_fault made = {
		.to = -1, .node = -1, .channel = -1, .role = -1, .until_ns = UINT64_MAX
	};

	if (status != OK)
		return status;
	made.kind = (enum sim_fault_kind)kind;
	made.factor_permille = fault_kinds[kind].factor_permille;
	status = parse_keys(&fault_grammar, kind, text + length, &made, &seen, why, size);
	if (status != OK)
		return status;
	made.has_at = seen >> FAULT_AT & 1;
	status = fault_check(&made, why, size);
	if (status == OK)
		*fault = made;
	return status;
}

enum status sim_noise_parse(struct sim_noise noises[SIM_NOISES], const char *text, char *why,
			    size_t size)
{
	size_t length = strcspn(text, ":");
	struct sim_noise made;
	unsigned int seen;
	int kind;
	enum status status = find_kind(&noise_grammar, text, length, &kind, why, size);

	if (status != OK)
		return status;
	made = noise_kinds[kind].defaults;
	made.is_on = true;
	status = parse_keys(&noise_grammar, kind, text + length, &made, &seen, why, size);
	if (status == OK)
		noises[kind] = made;
	return status;
}

/* ---- workloads and defaults ------------------------------------------------------------------- */

enum { DEFAULT_SECONDS = 10 };

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
		.hang_ns = DEFAULT_SECONDS * SECOND_NS,
		.jitter_permille = 20,
		.attempt = 1,
		.warm_up = 3,
		.nvlink = { .bytes_per_us = 360000, .latency_ns = 1000 },
		.network = { .bytes_per_us = 48000, .latency_ns = 5000 },
	};
}

int sim_options_interface(const struct sim_options *options)
{
	return host_release_native(options->release);
}

static const char *const times_names[SIM_TIMES_WORDS] = { "auto", "all", "off", "kernel" };

const char *sim_times_name(enum sim_times times)
{
	return times_names[times < SIM_TIMES_WORDS ? times : SIM_TIMES_AUTO];
}

const char *sim_graph_times_name(enum sim_graph_times times)
{
	return times == SIM_GRAPH_TIMES_ALL    ? "graphs"
	       : times == SIM_GRAPH_TIMES_NONE ? "no-graphs"
					       : "";
}

static bool is_word(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && memcmp(word, text, length) == 0;
}

enum status sim_times_parse(const char *text, enum sim_times *times,
			    enum sim_graph_times *graph_times)
{
	enum sim_graph_times some = SIM_GRAPH_TIMES_SOME;
	size_t length = strcspn(text, ",");
	int found = 0;

	while (found < SIM_TIMES_WORDS && !is_word(text, length, times_names[found]))
		found++;
	if (text[length] == ',')
		some = strcmp(text + length + 1, "graphs") == 0 ? SIM_GRAPH_TIMES_ALL
								: SIM_GRAPH_TIMES_NONE;
	if (found == SIM_TIMES_WORDS ||
	    (text[length] == ',' && strcmp(text + length + 1, sim_graph_times_name(some)) != 0))
		return ERR_UNKNOWN;
	*times = (enum sim_times)found;
	*graph_times = some;
	return OK;
}

enum { FIRST_WITH_KERNELS = 3, FIRST_WITH_LAUNCHES = 5 }; /* interface versions */
enum { FIRST_GRAPHS_WITH_KERNELS = 22603 };

enum sim_times sim_options_times(const struct sim_options *options)
{
	bool is_kernel = options->times == SIM_TIMES_KERNEL;
	int first = is_kernel ? FIRST_WITH_KERNELS : FIRST_WITH_LAUNCHES;

	return sim_options_interface(options) >= first ? options->times : SIM_TIMES_OFF;
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

static enum status check_times(const struct sim_options *options, char *why, size_t size)
{
	if (options->times != SIM_TIMES_ALL || sim_options_times(options) == SIM_TIMES_ALL)
		return OK;
	text_format(why, size,
		    "--times all: this release does not show launches; use --release 2.28 or "
		    "--times kernel");
	return ERR_RANGE;
}

/* Graphs repeat the same calls, and some faults change a single one. */
static enum status check_graphs(const struct sim_options *options, char *why, size_t size)
{
	bool is_kernel = sim_options_times(options) == SIM_TIMES_KERNEL;

	if (!options->has_graphs)
		return OK;
	for (size_t i = 0; i < options->fault_count; i++)
		if (options->faults[i].kind == SIM_MISMATCH ||
		    options->faults[i].kind == SIM_DEADLOCK) {
			text_format(why, size,
				    "--graphs: all replays have the same calls; fault %s needs a "
				    "job without graphs",
				    sim_fault_page(options->faults[i].kind)->name);
			return ERR_RANGE;
		}
	if (options->workload == SIM_MOE)
		text_format(why, size,
			    "--graphs: the messages of workload moe differ from iteration to "
			    "iteration; use ddp, fsdp, tp-pp or loop");
	else if (is_kernel && options->release < FIRST_GRAPHS_WITH_KERNELS)
		text_format(why, size,
			    "--graphs: kernel events in graphs hang NCCL 2.26.2; use --times off "
			    "or another --release");
	else if (is_kernel && sim_options_interface(options) < 7 &&
		 options->noises[SIM_NOISE_EVALUATION].is_on)
		text_format(why, size,
			    "--graphs: after calls outside the graph, NCCL before 2.31 gives its "
			    "replays old kernel times; use --times auto or no noise evaluation");
	else
		return OK;
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
	status = check_times(options, why, size);
	if (status == OK)
		status = check_graphs(options, why, size);
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
