/*
 * Reads a dump of PyTorch's Flight Recorder: a pickle or JSON file per rank, with the last calls of
 * each process group, their states, and where in the program they were made. docs/IMPORT.md has the
 * mapping. Formats 2.4 to 2.10, and the same from torchcomms.
 *
 *	{"version": "2.10",
 *	 "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}},
 *	 "entries": [{"process_group": ["0", "default_pg"], "collective_seq_id": 17, "op_id": 17,
 *		      "profiling_name": "nccl:all_reduce", "state": "started", "frames": [...],
 *		      ...}]}
 *
 * The rank of the process is only in the name of the file.
 */
#include "import/foreign.h"
#include "import/foreign_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/text.h"
#include "import/plain_values.h"

enum {
	/* PyTorch keeps 2,000 calls by default, a few megabytes with their frames. */
	DUMP_BYTES_MAX = 512 << 20,
	GROUPS_MAX = 1 << 12, /* searched for each call */
	GROUP_RANKS_MAX = 1 << 20,
	FRAMES_SHOWN = 3,
	KEYS_REMEMBERED = 64,
	/* Items looked at, per byte of the file and at least; a real dump needs one or two per byte. */
	WORK_PER_BYTE = 16,
	WORK_LEAST = 16 << 20,
};

/* A process group that the dump names. */
struct group {
	char name[96];
	char what[96]; /* its description, else its name */
	int64_t *ranks;
	uint32_t rank_count; /* 0: unknown */
	uint32_t comm;	     /* index in the log */
	uint64_t last_number;
	uint64_t last_collective;
	struct op_record last_done;
	const struct plain_value *last_frames; /* its; NULL: none */
};

enum entry_key {
	ENTRY_FRAMES,
	ENTRY_GROUP,
	ENTRY_COLLECTIVE,
	ENTRY_P2P,
	ENTRY_OP,
	ENTRY_NAME,
	ENTRY_CREATED,
	ENTRY_DURATION,
	ENTRY_INPUT_SIZES,
	ENTRY_INPUT_TYPES,
	ENTRY_OUTPUT_SIZES,
	ENTRY_OUTPUT_TYPES,
	ENTRY_STATE,
	ENTRY_STARTED,
	ENTRY_COMPLETED,
	ENTRY_TIMEOUT,
	ENTRY_IS_P2P,
	ENTRY_KEYS,
};

static const char *const entry_keys[ENTRY_KEYS] = {
	[ENTRY_FRAMES] = "frames",
	[ENTRY_GROUP] = "process_group",
	[ENTRY_COLLECTIVE] = "collective_seq_id",
	[ENTRY_P2P] = "p2p_seq_id",
	[ENTRY_OP] = "op_id",
	[ENTRY_NAME] = "profiling_name",
	[ENTRY_CREATED] = "time_created_ns",
	[ENTRY_DURATION] = "duration_ms",
	[ENTRY_INPUT_SIZES] = "input_sizes",
	[ENTRY_INPUT_TYPES] = "input_dtypes",
	[ENTRY_OUTPUT_SIZES] = "output_sizes",
	[ENTRY_OUTPUT_TYPES] = "output_dtypes",
	[ENTRY_STATE] = "state",
	[ENTRY_STARTED] = "time_discovered_started_ns",
	[ENTRY_COMPLETED] = "time_discovered_completed_ns",
	[ENTRY_TIMEOUT] = "timeout_ms",
	[ENTRY_IS_P2P] = "is_p2p",
};

struct entry {
	const struct plain_value *of[ENTRY_KEYS];
};

struct dump {
	struct foreign_reading *reading;
	uint32_t process;
	int64_t rank;
	struct group *groups;
	uint32_t group_count;
	/* Entries have the same keys in the same order, and a pickle shares their texts. */
	const struct plain_value *key_at[KEYS_REMEMBERED];
	int8_t key_number[KEYS_REMEMBERED];
	/* For each entry, the one that says how its group of calls went; 0: none. */
	uint32_t *ends;
	uint64_t work_left;
};

static void complain(struct dump *dump, const char *what)
{
	foreign_damage_note(dump->reading, &(struct foreign_damage){ .what = what });
}

/*
 * A pickle can name one long list in a million places, two bytes each. False: that is enough; it was
 * noted, and the rest of the dump is not read.
 */
static bool work(struct dump *dump, uint64_t items)
{
	if (items < dump->work_left) {
		dump->work_left -= items;
		return true;
	}
	if (dump->work_left > 0)
		complain(dump, "the same values are repeated too often: the rest is not read");
	dump->work_left = 0;
	return false;
}

static uint64_t items_in(const struct plain_value *value)
{
	return 1 + (value != NULL && value->kind >= PLAIN_TEXT ? value->count : 0);
}

/* ---- process groups -------------------------------------------------------------------------- */

/* "[0, 1, 2]", "0,1,2", or a list of numbers. */
static bool read_ranks(struct dump *dump, struct group *group, const struct plain_value *ranks)
{
	int64_t rank = -1;
	uint32_t count = plain_count(ranks);
	bool is_text = ranks != NULL && ranks->kind == PLAIN_TEXT;

	if (is_text)
		count = ranks->count + 1;
	if (!work(dump, count))
		return false;
	for (uint32_t i = 0; i < count && group->rank_count < GROUP_RANKS_MAX; i++) {
		bool is_digit = is_text && i < ranks->count && ranks->text[i] >= '0' &&
				ranks->text[i] <= '9';

		if (is_digit) {
			if (rank < GROUP_RANKS_MAX)
				rank = (rank < 0 ? 0 : rank * 10) + (ranks->text[i] - '0');
			continue;
		}
		if (!is_text && !plain_integer(ranks->items[i], &rank))
			rank = -1;
		if (rank < 0)
			continue;
		if (!list_grow(&group->ranks, group->rank_count, sizeof(*group->ranks))) {
			dump->reading->status = ERR_NO_SPACE;
			return false;
		}
		group->ranks[group->rank_count++] = rank;
		rank = -1;
	}
	return true;
}

static int32_t rank_in(const struct group *group, int64_t rank)
{
	for (uint32_t i = 0; i < group->rank_count; i++)
		if (group->ranks[i] == rank)
			return (int32_t)i;
	return -1;
}

/* The same for all ranks of the group, and different for groups of one name. */
static uint64_t group_hash(const struct group *group)
{
	uint64_t hash = hash_text(0, group->name);

	for (uint32_t i = 0; i < group->rank_count; i++)
		hash = hash_word(hash, (uint64_t)group->ranks[i]);
	return hash != 0 ? hash : 1;
}

static struct group *add_group(struct dump *dump, const struct plain_value *name,
			       const struct plain_value *what, const struct plain_value *ranks)
{
	struct comm_info info = { .rank = -1, .gpu = -1 };
	struct group *group;

	if (dump->group_count == GROUPS_MAX)
		return NULL;
	if (!list_grow(&dump->groups, dump->group_count, sizeof(*dump->groups))) {
		dump->reading->status = ERR_NO_SPACE;
		return NULL;
	}
	group = &dump->groups[dump->group_count];
	*group = (struct group){ 0 };
	plain_text(name, group->name, sizeof(group->name));
	if (!plain_text(what, group->what, sizeof(group->what)) || group->what[0] == '\0' ||
	    strcmp(group->what, "undefined") == 0)
		text_copy(group->what, sizeof(group->what), group->name);
	if (!read_ranks(dump, group, ranks)) {
		free(group->ranks);
		return NULL;
	}
	info.hash = group_hash(group);
	info.nranks = (int32_t)group->rank_count;
	info.rank = rank_in(group, dump->rank);
	text_copy(info.name, sizeof(info.name), group->what);
	dump->reading->status =
		foreign_comm_of(dump->reading->log, dump->process, &info, &group->comm);
	if (dump->reading->status != OK) {
		free(group->ranks);
		return NULL;
	}
	dump->group_count++;
	return group;
}

static void read_groups(struct dump *dump, const struct plain_value *config)
{
	for (uint32_t i = 0; config != NULL && config->kind == PLAIN_MAP && i + 1 < config->count &&
			     dump->reading->status == OK;
	     i += 2) {
		const struct plain_value *group = config->items[i + 1];
		const struct plain_value *name;

		if (!work(dump, 3 * items_in(group)))
			return;
		name = plain_get(group, "name");
		add_group(dump, name != NULL ? name : config->items[i], plain_get(group, "desc"),
			  plain_get(group, "ranks"));
	}
}

/* Of a process group as an entry has it: its name, or [name, description]. */
static const struct plain_value *group_name(const struct plain_value *said)
{
	return plain_count(said) > 0 ? said->items[0] : said;
}

static struct group *group_of(struct dump *dump, const struct plain_value *said)
{
	const struct plain_value *name = group_name(said);
	const struct plain_value *what = plain_count(said) > 1 ? said->items[1] : NULL;
	char text[sizeof(dump->groups->name)];

	if (!plain_text(name, text, sizeof(text)))
		return NULL;
	for (uint32_t i = 0; i < dump->group_count; i++)
		if (strcmp(dump->groups[i].name, text) == 0)
			return &dump->groups[i];
	return add_group(dump, name, what, NULL);
}

/* ---- a call ---------------------------------------------------------------------------------- */

static int find_key(const struct plain_value *key)
{
	for (int i = 0; i < ENTRY_KEYS; i++)
		if (plain_is(key, entry_keys[i]))
			return i;
	return -1;
}

static void read_entry(struct dump *dump, const struct plain_value *map, struct entry *entry)
{
	*entry = (struct entry){ 0 };
	if (map->kind != PLAIN_MAP || !work(dump, items_in(map)))
		return;
	for (uint32_t i = 0; i + 1 < map->count; i += 2) {
		const struct plain_value *key = map->items[i];
		uint32_t place = i / 2 < KEYS_REMEMBERED ? i / 2 : KEYS_REMEMBERED - 1;

		if (dump->key_at[place] != key) {
			dump->key_at[place] = key;
			dump->key_number[place] = (int8_t)find_key(key);
		}
		if (dump->key_number[place] >= 0)
			entry->of[dump->key_number[place]] = map->items[i + 1];
	}
}

static uint64_t number_of(const struct plain_value *value)
{
	int64_t number = 0;

	plain_integer(value, &number);
	return number > 0 ? (uint64_t)number : 0;
}

/* Groups of calls end with an entry of this name, which is no call of NCCL. */
static bool is_end_of_calls(const struct entry *entry)
{
	const struct plain_value *name = entry->of[ENTRY_NAME];
	static const char tail[] = ":coalesced";
	size_t length = sizeof(tail) - 1;

	return name != NULL && name->kind == PLAIN_TEXT && name->count >= length &&
	       memcmp(name->text + name->count - length, tail, length) == 0;
}

static bool is_same_text(const struct plain_value *one, const struct plain_value *other)
{
	return one != NULL && other != NULL && one->kind == PLAIN_TEXT &&
	       other->kind == PLAIN_TEXT && one->count == other->count &&
	       memcmp(one->text, other->text, one->count) == 0;
}

/*
 * Calls between "group start" and "group end" have no state of their own: they are done when the
 * entry that ends them is.
 */
static bool find_ends(struct dump *dump, const struct plain_value *entries)
{
	struct entry end = { 0 }, entry;
	uint32_t end_at = 0;

	dump->ends = calloc(entries->count + 1, sizeof(*dump->ends));
	if (dump->ends == NULL) {
		dump->reading->status = ERR_NO_SPACE;
		return false;
	}
	for (uint32_t i = entries->count; i-- > 0 && dump->work_left > 0;) {
		read_entry(dump, entries->items[i], &entry);
		if (is_end_of_calls(&entry)) {
			end = entry;
			end_at = i + 1;
		} else if (end_at != 0 &&
			   is_same_text(group_name(end.of[ENTRY_GROUP]),
					group_name(entry.of[ENTRY_GROUP])) &&
			   number_of(end.of[ENTRY_COLLECTIVE]) ==
				   number_of(entry.of[ENTRY_COLLECTIVE]) &&
			   number_of(end.of[ENTRY_P2P]) == number_of(entry.of[ENTRY_P2P])) {
			dump->ends[i] = end_at;
		}
	}
	return true;
}

/* "nccl:_all_gather_base", "nccl:send 0->1", "nccl:all_reduce_barrier": the longest words first. */
static uint8_t function_of(const struct plain_value *name)
{
	static const struct {
		const char *word;
		uint8_t function;
	} words[] = {
		{ "reduce_scatter", OP_REDUCE_SCATTER },
		{ "all_reduce", OP_ALL_REDUCE },
		{ "allreduce", OP_ALL_REDUCE },
		{ "all_gather", OP_ALL_GATHER },
		{ "allgather", OP_ALL_GATHER },
		{ "all_to_all", OP_ALL_TO_ALL },
		{ "alltoall", OP_ALL_TO_ALL },
		{ "broadcast", OP_BROADCAST },
		{ "reduce", OP_REDUCE },
		{ "gather", OP_GATHER },
		{ "scatter", OP_SCATTER },
		{ "send", OP_SEND },
		{ "recv", OP_RECV },
		{ "barrier", OP_ALL_REDUCE },
	};
	char text[64];

	if (!plain_text(name, text, sizeof(text)))
		return OP_FUNCTION_UNKNOWN;
	for (char *at = text; *at != '\0'; at++)
		if (*at >= 'A' && *at <= 'Z')
			*at = (char)(*at - 'A' + 'a');
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
		if (strstr(text, words[i].word) != NULL)
			return words[i].function;
	return OP_FUNCTION_UNKNOWN;
}

/* "nccl:send 0->1", "nccl:recv 0<-1": ranks of the group. */
static int32_t peer_of(const struct plain_value *name)
{
	char text[64];
	const char *at;
	int64_t peer;

	if (!plain_text(name, text, sizeof(text)))
		return OP_NOBODY;
	at = strpbrk(text, "<>");
	at = at != NULL ? at + 1 + (at[1] == '-') : NULL;
	return at != NULL && text_number(at, 0, INT32_MAX, &peer) == OK ? (int32_t)peer : OP_NOBODY;
}

static uint8_t datatype_of(const struct plain_value *types)
{
	static const struct {
		const char *name;
		uint8_t datatype;
	} names[] = {
		{ "Float", OP_FLOAT32 },
		{ "BFloat16", OP_BFLOAT16 },
		{ "Half", OP_FLOAT16 },
		{ "Double", OP_FLOAT64 },
		{ "Int", OP_INT32 },
		{ "Long", OP_INT64 },
		{ "Char", OP_INT8 },
		{ "Byte", OP_UINT8 },
		{ "Bool", OP_UINT8 },
		{ "Float8_e4m3fn", OP_FLOAT8_E4M3 },
		{ "Float8_e5m2", OP_FLOAT8_E5M2 },
		{ "UInt32", OP_UINT32 },
		{ "UInt64", OP_UINT64 },
	};

	for (size_t i = 0; plain_count(types) > 0 && i < ARRAY_LENGTH(names); i++)
		if (plain_is(types->items[0], names[i].name))
			return names[i].datatype;
	return OP_DATATYPE_UNKNOWN;
}

/* Elements of all tensors; UINT64_MAX: not given, or more than can be. */
static uint64_t elements_of(struct dump *dump, const struct plain_value *tensors)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < plain_count(tensors); i++) {
		const struct plain_value *sizes = tensors->items[i];
		uint64_t elements = 1;

		if (!work(dump, items_in(sizes)))
			return UINT64_MAX;

		for (uint32_t j = 0; j < plain_count(sizes); j++)
			if (__builtin_mul_overflow(elements, number_of(sizes->items[j]), &elements))
				return UINT64_MAX;
		if (__builtin_add_overflow(total, elements, &total))
			return UINT64_MAX;
	}
	return plain_count(tensors) > 0 ? total : UINT64_MAX;
}

/* What one rank gave to NCCL, as op_message_bytes() wants it. */
static uint64_t count_of(struct dump *dump, const struct entry *entry, uint8_t function,
			 int32_t nranks)
{
	uint64_t input = elements_of(dump, entry->of[ENTRY_INPUT_SIZES]);
	uint64_t output = elements_of(dump, entry->of[ENTRY_OUTPUT_SIZES]);

	switch (function) {
	case OP_REDUCE_SCATTER:
	case OP_RECV:
	case OP_SCATTER:
		return output;
	case OP_ALL_TO_ALL:
		return input != UINT64_MAX && nranks > 0 ? input / (uint64_t)nranks : UINT64_MAX;
	case OP_BROADCAST:
		return input != UINT64_MAX ? input : output;
	default:
		return input;
	}
}

static void set_size(struct dump *dump, const struct entry *entry, struct op_record *op,
		     int32_t nranks)
{
	uint64_t count = count_of(dump, entry, op->function, nranks);

	op->datatype = datatype_of(entry->of[ENTRY_INPUT_TYPES]);
	if (op->datatype == OP_DATATYPE_UNKNOWN)
		op->datatype = datatype_of(entry->of[ENTRY_OUTPUT_TYPES]);
	op->bytes = OP_BYTES_UNKNOWN;
	if (count == UINT64_MAX)
		return;
	op->count = count;
	op->bytes = op_message_bytes(op->function, count, op_datatype_bytes(op->datatype), nranks);
}

/* `end` is the entry that says how far it is: itself, or the end of its group of calls. */
static void set_state(const struct entry *end, struct op_record *op)
{
	double duration_ms = 0;
	uint64_t duration_ns;

	op->active_ns = number_of(end->of[ENTRY_STARTED]);
	if (!plain_is(end->of[ENTRY_STATE], "completed")) {
		/*
		 * PyTorch asked the GPU when it wrote the dump: it is not over, whether or not its
		 * start is known.
		 */
		op->state = OP_RUNNING;
		return;
	}
	op->state = OP_DONE;
	op->done_ns = number_of(end->of[ENTRY_COMPLETED]);
	if (op->done_ns == 0)
		return;
	op->time_source = OP_TIME_HOST;
	if (!plain_real(end->of[ENTRY_DURATION], &duration_ms) || duration_ms <= 0 ||
	    duration_ms > 1e12)
		return;
	duration_ns = (uint64_t)(duration_ms * 1e6);
	if (duration_ns == 0 || duration_ns >= op->done_ns)
		return;
	op->time_source = OP_TIME_KERNEL_GPU;
	op->gpu_stop_ns = op->done_ns;
	op->gpu_start_ns = op->done_ns - duration_ns;
}

/*
 * PyTorch counts calls per group; the first ones may have been overwritten. Two with one number are
 * parts of one group of calls.
 */
static void set_numbers(const struct entry *entry, struct group *group, struct op_record *op)
{
	uint64_t number = number_of(entry->of[ENTRY_OP]);
	uint64_t collective = number_of(entry->of[ENTRY_COLLECTIVE]);
	bool is_p2p = false;

	op->number = number > group->last_number ? number : group->last_number + 1;
	group->last_number = op->number;
	plain_truth(entry->of[ENTRY_IS_P2P], &is_p2p);
	op->nccl_sequence = is_p2p ? number_of(entry->of[ENTRY_P2P]) : collective;
	if (is_p2p || op->function == OP_SEND || op->function == OP_RECV ||
	    collective <= group->last_collective)
		return;
	op->match = collective;
	group->last_collective = collective;
	/* Of this call alone: what came before may be missing. */
	op->signature = hash_word(hash_word(hash_word(1, op->function), op->datatype), op->count);
}

/* ---- where in the program -------------------------------------------------------------------- */

/* PyTorch itself, its launchers, and what has no file. */
static bool is_library(const char *file)
{
	return file[0] == '\0' || file[0] == '<' || strcmp(file, "??") == 0 ||
	       strstr(file, "/torch/") != NULL || strstr(file, "/torchcomms/") != NULL ||
	       strstr(file, "/importlib/") != NULL || strstr(file, "/runpy.py") != NULL;
}

static bool add_frame(const struct plain_value *frame, char *where, size_t size,
		      bool may_be_library)
{
	char file[256] = "", function[96] = "";

	plain_text(plain_get(frame, "filename"), file, sizeof(file));
	plain_text(plain_get(frame, "name"), function, sizeof(function));
	if (file[0] == '\0' || (!may_be_library && is_library(file)))
		return false;
	text_append(where, size, "%s%s:%llu", where[0] != '\0' ? " < " : "", file,
		    (unsigned long long)number_of(plain_get(frame, "line")));
	if (function[0] != '\0')
		text_append(where, size, " in %s", function);
	return true;
}

/* Innermost first: "train.py:88 in step < train.py:120 in main". Frames of PyTorch say nothing. */
static void describe_frames(struct dump *dump, const struct plain_value *frames, char *where,
			    size_t size)
{
	unsigned int shown = 0;

	where[0] = '\0';
	for (uint32_t i = 0; i < plain_count(frames) && shown < FRAMES_SHOWN; i++) {
		if (!work(dump, 3 * items_in(frames->items[i])))
			return;
		shown += add_frame(frames->items[i], where, size, false);
	}
	for (uint32_t i = 0; i < plain_count(frames) && shown == 0; i++)
		shown += add_frame(frames->items[i], where, size, true);
}

/* ---- the dump -------------------------------------------------------------------------------- */

static void note_open(struct dump *dump, const struct entry *entry, const struct op_record *op)
{
	struct foreign_process *process = &dump->reading->log->processes[dump->process];

	if (op->state == OP_DONE || op->issue_ns == 0)
		return;
	if (process->open_since_ns == 0 || op->issue_ns < process->open_since_ns) {
		process->open_since_ns = op->issue_ns;
		process->open_limit_ns = number_of(entry->of[ENTRY_TIMEOUT]) * 1000000;
	}
}

static void say_where(struct dump *dump, const struct op_record *op,
		      const struct plain_value *frames)
{
	struct foreign_reading *reading = dump->reading;
	char where[FOREIGN_WHERE_BYTES];

	if (reading->request->visit_where == NULL || reading->is_over)
		return;
	describe_frames(dump, frames, where, sizeof(where));
	if (where[0] != '\0')
		reading->request->visit_where(op, where, reading->request->context);
}

static void read_call(struct dump *dump, const struct plain_value *entries, uint32_t at)
{
	struct foreign_reading *reading = dump->reading;
	struct op_record op = { .root = OP_NOBODY, .peer = OP_NOBODY };
	struct entry entry, end;
	struct group *group;

	read_entry(dump, entries->items[at], &entry);
	if (is_end_of_calls(&entry) || !work(dump, dump->group_count))
		return;
	group = group_of(dump, entry.of[ENTRY_GROUP]);
	if (group == NULL || entry.of[ENTRY_NAME] == NULL || entry.of[ENTRY_STATE] == NULL) {
		if (reading->status == OK)
			complain(dump, "an entry has no process group, name or state: skipped");
		return;
	}
	end = entry;
	if (dump->ends[at] != 0)
		read_entry(dump, entries->items[dump->ends[at] - 1], &end);
	op.function = function_of(entry.of[ENTRY_NAME]);
	if (op.function == OP_SEND || op.function == OP_RECV)
		op.peer = peer_of(entry.of[ENTRY_NAME]);
	op.issue_ns = number_of(entry.of[ENTRY_CREATED]);
	set_size(dump, &entry, &op, (int32_t)group->rank_count);
	set_state(&end, &op);
	set_numbers(&entry, group, &op);
	op_check_time(&op);
	note_open(dump, &entry, &op);
	foreign_give_op(reading, group->comm, &op);
	if (op.state != OP_DONE) {
		say_where(dump, &op, entry.of[ENTRY_FRAMES]);
	} else {
		group->last_done = op;
		group->last_frames = entry.of[ENTRY_FRAMES];
	}
}

static void read_root(struct dump *dump, const struct plain_value *root)
{
	struct foreign_process *process = &dump->reading->log->processes[dump->process];
	const struct plain_value *entries = plain_get(root, "entries");

	plain_text(plain_get(root, "version"), process->version, sizeof(process->version));
	read_groups(dump, plain_get(root, "pg_config"));
	if (entries == NULL || entries->kind != PLAIN_LIST) {
		if (dump->reading->status == OK)
			complain(dump, "the dump has no list of entries");
		return;
	}
	if (dump->reading->status != OK || !find_ends(dump, entries))
		return;
	for (uint32_t i = 0; i < entries->count && dump->reading->status == OK &&
			     !dump->reading->is_over && dump->work_left > 0;
	     i++)
		read_call(dump, entries, i);
	/* Of the calls that are over, only the last of each group matters. */
	for (uint32_t i = 0; i < dump->group_count; i++)
		if (dump->groups[i].last_frames != NULL)
			say_where(dump, &dump->groups[i].last_done, dump->groups[i].last_frames);
}

/* The last digits of "nccl_trace_rank_17", "rank_3.json". */
static int64_t rank_in_name(const char *path)
{
	const char *name = path != NULL ? path : "", *end;
	int64_t rank = -1;

	if (strrchr(name, '/') != NULL)
		name = strrchr(name, '/') + 1;
	end = name + strcspn(name, ".");
	while (end > name && end[-1] >= '0' && end[-1] <= '9')
		end--;
	for (; *end >= '0' && *end <= '9' && rank < INT32_MAX; end++)
		rank = (rank < 0 ? 0 : rank * 10) + (*end - '0');
	return rank <= INT32_MAX ? rank : -1;
}

static void read_values(struct foreign_reading *reading, const char *bytes, size_t length)
{
	struct dump dump = { .reading = reading,
			     .rank = rank_in_name(reading->request->name),
			     .work_left = (uint64_t)length * WORK_PER_BYTE + WORK_LEAST };
	struct plain_values values;
	const struct plain_value *root;

	plain_values_init(&values);
	root = (unsigned char)bytes[0] == 0x80 ? plain_values_pickle(&values, bytes, length)
					       : plain_values_json(&values, bytes, length);
	if (root != NULL)
		reading->status = foreign_process_of(reading->log, "", -1, &dump.process);
	if (root != NULL && reading->status == OK) {
		reading->log->processes[dump.process].rank = dump.rank;
		read_root(&dump, root);
	}
	if (root == NULL)
		foreign_damage_note(reading, &(struct foreign_damage){ .offset = values.problem_at,
								       .what = values.problem });
	plain_values_release(&values);
	for (uint32_t i = 0; i < dump.group_count; i++)
		free(dump.groups[i].ranks);
	free(dump.groups);
	free(dump.ends);
}

void foreign_read_torch_dump(struct foreign_reading *reading, int fd, uint64_t limit)
{
	struct foreign_damage damage = { .what = "larger than any dump of a Flight Recorder" };
	struct stat st;
	size_t got = 0;
	char *bytes;

	if (fstat(fd, &st) == -1) {
		reading->status = ERR_SYSTEM;
		return;
	}
	if ((uint64_t)st.st_size < limit)
		limit = (uint64_t)st.st_size;
	if (limit > DUMP_BYTES_MAX) {
		foreign_damage_note(reading, &damage);
		return;
	}
	bytes = malloc(limit + 1);
	reading->status = bytes != NULL ? file_pread_some(fd, bytes, limit, 0, &got) : ERR_NO_SPACE;
	if (reading->status == OK && got > 0)
		read_values(reading, bytes, got);
	reading->log->bytes = got;
	free(bytes);
}
