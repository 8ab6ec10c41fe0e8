/* The table of columns, and batches of rows made of records. */
#include "output/export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/job.h"
#include "common/search.h"
#include "common/text.h"
#include "output/json.h"

enum { EXPORT_NO_WORD = 255 };

/* Columns of a group. */
#define GROUP(label, kind, its_group, nullable)                                                  \
	{                                                                                        \
		.name = (label), .type = (kind), .group = (its_group), .is_nullable = (nullable) \
	}
/* A word of the record. */
#define WORD(label, kind, from, its_habit)                                                   \
	{                                                                                    \
		.name = (label), .type = (kind), .group = EXPORT_EACH, .habit = (its_habit), \
		.word = (from)                                                               \
	}
#define WORD_OR_NULL(label, kind, from, its_habit, none)                                     \
	{                                                                                    \
		.name = (label), .type = (kind), .group = EXPORT_EACH, .habit = (its_habit), \
		.is_nullable = true, .null = (none), .word = (from)                          \
	}
/* Computed from several words. */
#define MADE(label, kind, its_habit)                                                         \
	{                                                                                    \
		.name = (label), .type = (kind), .group = EXPORT_EACH, .habit = (its_habit), \
		.word = EXPORT_NO_WORD                                                       \
	}
#define MADE_OR_NULL(label, kind, its_habit)                                                 \
	{                                                                                    \
		.name = (label), .type = (kind), .group = EXPORT_EACH, .habit = (its_habit), \
		.is_nullable = true, .null = EXPORT_NULL_SIGNED, .word = EXPORT_NO_WORD      \
	}

const struct export_column export_columns[EXPORT_COLUMNS] = {
	[EXPORT_JOB] = GROUP("job", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_HOST] = GROUP("host", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_RANK] = GROUP("rank", EXPORT_INT64, EXPORT_WHO, true),
	[EXPORT_PID] = GROUP("pid", EXPORT_INT64, EXPORT_WHO, true),
	[EXPORT_COMM_ID] = GROUP("comm_id", EXPORT_UINT32, EXPORT_WHO, false),
	[EXPORT_COMM_HASH] = GROUP("comm_hash", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_COMM_NAME] = GROUP("comm_name", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_COMM_RANK] = GROUP("comm_rank", EXPORT_INT32, EXPORT_WHO, true),
	[EXPORT_COMM_RANKS] = GROUP("comm_ranks", EXPORT_INT32, EXPORT_WHO, true),
	[EXPORT_COMM_NODES] = GROUP("comm_nodes", EXPORT_INT32, EXPORT_WHO, true),
	[EXPORT_COMM_KIND] = GROUP("comm_kind", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_GPU] = GROUP("gpu", EXPORT_INT32, EXPORT_WHO, true),
	[EXPORT_GPU_UUID] = GROUP("gpu_uuid", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_INTERFACE] = GROUP("interface", EXPORT_UINT32, EXPORT_WHO, true),
	[EXPORT_FUNCTION] = GROUP("function", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_DATATYPE] = GROUP("datatype", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_ALGORITHM] = GROUP("algorithm", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_PROTOCOL] = GROUP("protocol", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_COUNT] = WORD("count", EXPORT_UINT64, OP_WORD_COUNT, EXPORT_REPEATS),
	[EXPORT_BYTES] = WORD_OR_NULL("bytes", EXPORT_UINT64, OP_WORD_BYTES, EXPORT_REPEATS,
				      OP_BYTES_UNKNOWN),
	[EXPORT_ROOT] = GROUP("root", EXPORT_INT32, EXPORT_ENDS, true),
	[EXPORT_PEER] = GROUP("peer", EXPORT_INT32, EXPORT_ENDS, true),
	[EXPORT_SEQUENCE] =
		WORD_OR_NULL("sequence", EXPORT_UINT64, OP_WORD_SEQUENCE, EXPORT_CLIMBS, 0),
	[EXPORT_NUMBER] = WORD("number", EXPORT_UINT64, OP_WORD_NUMBER, EXPORT_CLIMBS),
	[EXPORT_MATCH] = WORD_OR_NULL("match", EXPORT_UINT64, OP_WORD_MATCH, EXPORT_CLIMBS, 0),
	[EXPORT_SIGNATURE] = WORD("signature", EXPORT_UINT64, OP_WORD_SIGNATURE, EXPORT_JUMPS),
	[EXPORT_IS_REPLAY] = GROUP("is_replay", EXPORT_BOOL, EXPORT_STATE, false),
	[EXPORT_CAPTURED_NUMBER] = WORD_OR_NULL("captured_number", EXPORT_UINT64,
						OP_WORD_CAPTURED_NUMBER, EXPORT_CLIMBS, 0),
	[EXPORT_NCCL_SEQUENCE] =
		WORD("nccl_sequence", EXPORT_UINT64, OP_WORD_NCCL_SEQUENCE, EXPORT_CLIMBS),
	[EXPORT_STREAM] = WORD("stream", EXPORT_UINT64, OP_WORD_STREAM, EXPORT_REPEATS),
	[EXPORT_USER_TAG] = WORD("user_tag", EXPORT_UINT64, OP_WORD_USER_TAG, EXPORT_REPEATS),
	[EXPORT_STATE_NAME] = GROUP("state", EXPORT_STRING, EXPORT_STATE, false),
	[EXPORT_FLAGS] = GROUP("flags", EXPORT_STRING, EXPORT_STATE, false),
	[EXPORT_TIME_SOURCE] = GROUP("time_source", EXPORT_STRING, EXPORT_STATE, false),
	[EXPORT_DURATION] = MADE_OR_NULL("duration_ns", EXPORT_INT64, EXPORT_CLIMBS),
	[EXPORT_ISSUE_TIME] = MADE_OR_NULL("issue_time", EXPORT_TIME, EXPORT_CLIMBS),
	[EXPORT_LAUNCH_TIME] = MADE_OR_NULL("launch_time", EXPORT_TIME, EXPORT_CLIMBS),
	[EXPORT_TASK_TIME] = MADE_OR_NULL("task_time", EXPORT_TIME, EXPORT_CLIMBS),
	[EXPORT_ACTIVE_TIME] = MADE_OR_NULL("active_time", EXPORT_TIME, EXPORT_CLIMBS),
	[EXPORT_DONE_TIME] = MADE_OR_NULL("done_time", EXPORT_TIME, EXPORT_CLIMBS),
	[EXPORT_CLOCK_OFFSET] = MADE_OR_NULL("clock_offset_ns", EXPORT_INT64, EXPORT_REPEATS),
	[EXPORT_GPU_START] =
		WORD_OR_NULL("gpu_start_ns", EXPORT_UINT64, OP_WORD_GPU_START, EXPORT_CLIMBS, 0),
	[EXPORT_GPU_STOP] =
		WORD_OR_NULL("gpu_stop_ns", EXPORT_UINT64, OP_WORD_GPU_STOP, EXPORT_CLIMBS, 0),
	[EXPORT_START_SPREAD] = MADE_OR_NULL("start_spread_ns", EXPORT_UINT32, EXPORT_CLIMBS),
	[EXPORT_STOP_SPREAD] = MADE_OR_NULL("stop_spread_ns", EXPORT_UINT32, EXPORT_CLIMBS),
	[EXPORT_CHANNELS] = GROUP("channels", EXPORT_UINT8, EXPORT_STATE, false),
	[EXPORT_WARPS] = GROUP("warps", EXPORT_UINT8, EXPORT_STATE, false),
	[EXPORT_KERNELS_STARTED] = GROUP("kernels_started", EXPORT_UINT16, EXPORT_CHILDREN, false),
	[EXPORT_KERNELS_STOPPED] = GROUP("kernels_stopped", EXPORT_UINT16, EXPORT_CHILDREN, false),
	[EXPORT_PROXIES_STARTED] = GROUP("proxies_started", EXPORT_UINT16, EXPORT_CHILDREN, false),
	[EXPORT_PROXIES_STOPPED] = GROUP("proxies_stopped", EXPORT_UINT16, EXPORT_CHILDREN, false),
	[EXPORT_SEND_BYTES] = WORD("send_bytes", EXPORT_UINT64, OP_WORD_SEND_BYTES, EXPORT_REPEATS),
	[EXPORT_RECV_BYTES] = WORD("recv_bytes", EXPORT_UINT64, OP_WORD_RECV_BYTES, EXPORT_REPEATS),
	[EXPORT_SEND_STEPS] = MADE("send_steps", EXPORT_UINT32, EXPORT_REPEATS),
	[EXPORT_RECV_STEPS] = MADE("recv_steps", EXPORT_UINT32, EXPORT_REPEATS),
	[EXPORT_WAIT_SEND_GPU] =
		WORD("wait_send_gpu_ns", EXPORT_UINT64, OP_WORD_WAITS + 0, EXPORT_CLIMBS),
	[EXPORT_WAIT_SEND_PEER] =
		WORD("wait_send_peer_ns", EXPORT_UINT64, OP_WORD_WAITS + 1, EXPORT_CLIMBS),
	[EXPORT_WAIT_SEND_NET] =
		WORD("wait_send_net_ns", EXPORT_UINT64, OP_WORD_WAITS + 2, EXPORT_CLIMBS),
	[EXPORT_WAIT_RECV_NET] =
		WORD("wait_recv_net_ns", EXPORT_UINT64, OP_WORD_WAITS + 3, EXPORT_CLIMBS),
	[EXPORT_WAIT_RECV_FLUSH] =
		WORD("wait_recv_flush_ns", EXPORT_UINT64, OP_WORD_WAITS + 4, EXPORT_CLIMBS),
	[EXPORT_WAIT_RECV_GPU] =
		WORD("wait_recv_gpu_ns", EXPORT_UINT64, OP_WORD_WAITS + 5, EXPORT_CLIMBS),
};

uint32_t export_words(void)
{
	return OP_WORDS_ALL & ~OP_WORD_BIT(OP_WORD_RESERVED);
}

/* ---- text ------------------------------------------------------------------------------------ */

void export_string_free(struct export_string **strings)
{
	while (*strings != NULL) {
		struct export_string *next = (*strings)->next;

		free(*strings);
		*strings = next;
	}
}

static char *text_room(struct export_string **strings, size_t bytes)
{
	struct export_string *text = malloc(sizeof(*text) + bytes);

	if (text == NULL)
		return NULL;
	text->next = *strings;
	*strings = text;
	return text->bytes;
}

/* Length of the character at `at`; 0 if it is not UTF-8. */
static size_t character_bytes(const char *at)
{
	return (unsigned char)*at < 0x80 ? 1 : json_utf8_length((const unsigned char *)at);
}

const char *export_string_clean(struct export_string **strings, const char *text)
{
	static const char unknown[] = "\xef\xbf\xbd"; /* U+FFFD */
	const char *at = text;
	char *clean, *to;

	while (*at != '\0' && character_bytes(at) > 0)
		at += character_bytes(at);
	if (*at == '\0')
		return text;
	clean = to = text_room(strings, 3 * strlen(text) + 1);
	for (at = text; clean != NULL && *at != '\0';) {
		size_t length = character_bytes(at);

		memcpy(to, length ? at : unknown, length ? length : 3);
		to += length ? length : 3;
		at += length ? length : 1;
	}
	if (clean != NULL)
		*to = '\0';
	return clean;
}

/* ---- cells ----------------------------------------------------------------------------------- */

struct filling {
	struct export_cell *next;
	struct export_string **strings;
	const struct recording_process *process;
	enum status status;
};

static void put_cell(struct filling *filling, struct export_cell cell)
{
	*filling->next++ = cell;
}

static void put_number(struct filling *filling, int64_t number)
{
	put_cell(filling, (struct export_cell){ .number = (uint64_t)number });
}

static void put_number_unless(struct filling *filling, int64_t number, bool is_null)
{
	put_cell(filling, (struct export_cell){ .number = is_null ? 0 : (uint64_t)number,
						.is_null = is_null });
}

/* NULL: unknown. Valid as long as the recording. */
static void put_text(struct filling *filling, const char *text)
{
	const char *clean = text ? export_string_clean(filling->strings, text) : NULL;

	if (text != NULL && clean == NULL)
		filling->status = ERR_NO_SPACE;
	put_cell(filling, (struct export_cell){ .text = clean, .is_null = clean == NULL });
}

static void put_text_unless_empty(struct filling *filling, const char *text)
{
	put_text(filling, text[0] ? text : NULL);
}

static void put_name(struct filling *filling, enum op_name_table table, uint64_t word,
		     unsigned int shift)
{
	uint8_t number = (uint8_t)(word >> shift);

	/* 0 is "unknown" in all four tables. */
	put_text(filling, number ? recording_name(filling->process, table, number) : NULL);
}

/* "0x" and 16 digits, as in `ringside dump`, so that no reader rounds it. */
static void put_hash(struct filling *filling, uint64_t hash)
{
	char *text = hash ? text_room(filling->strings, 20) : NULL;

	if (hash != 0 && text == NULL)
		filling->status = ERR_NO_SPACE;
	if (text != NULL)
		text_format(text, 20, "0x%016" PRIx64, hash);
	put_text(filling, text);
}

/* As in src/analysis/job.c. */
/* NULL: unknown. */
static const char *comm_kind(const struct comm_info *info)
{
	enum job_comm_kind kind = job_comm_kind_of(info->nranks, info->nnodes);

	return kind == JOB_COMM_UNKNOWN ? NULL : job_comm_kind_name(kind);
}

static void put_comm(struct filling *filling, uint32_t id)
{
	static const struct comm_info unknown = { .rank = -1, .gpu = -1 };
	const struct recording_comm *comm = recording_comm(filling->process, id);
	const struct comm_info *info = comm ? &comm->info : &unknown;

	put_number(filling, id);
	put_hash(filling, info->hash);
	put_text_unless_empty(filling, info->name);
	put_number_unless(filling, info->rank, info->rank == -1);
	put_number_unless(filling, info->nranks, info->nranks <= 0);
	put_number_unless(filling, info->nnodes, info->nnodes <= 0);
	put_text(filling, comm_kind(info));
	put_number_unless(filling, info->gpu, info->gpu == -1);
	put_text_unless_empty(filling, info->gpu_uuid);
	put_number_unless(filling, info->interface, info->interface == 0);
}

static void put_who(struct filling *filling, uint64_t word)
{
	const struct recording_process *process = filling->process;

	put_text_unless_empty(filling, process->job);
	put_text_unless_empty(filling, process->host);
	put_number_unless(filling, process->rank, process->rank == -1);
	put_number_unless(filling, process->pid, process->pid == -1);
	put_comm(filling, op_kind_comm(word));
	put_name(filling, OP_NAMES_FUNCTION, word, 32);
	put_name(filling, OP_NAMES_DATATYPE, word, 40);
	put_name(filling, OP_NAMES_ALGORITHM, word, 48);
	put_name(filling, OP_NAMES_PROTOCOL, word, 56);
}

/* "replay,stamp_zero"; unknown bits of newer versions are "bit30". */
static void put_flags(struct filling *filling, uint32_t flags)
{
	char text[32 * 20] = "", number[16];
	size_t used = 0;
	char *kept;

	for (unsigned int bit = 0; bit < 32; bit++) {
		const char *name = op_flag_name(bit);

		if (!(flags >> bit & 1))
			continue;
		text_format(number, sizeof(number), "bit%u", bit);
		text_format(text + used, sizeof(text) - used, "%s%s", used ? "," : "",
			    name ? name : number);
		used += strlen(text + used);
	}
	kept = used ? text_room(filling->strings, used + 1) : NULL;
	if (kept != NULL)
		memcpy(kept, text, used + 1);
	else if (used > 0)
		filling->status = ERR_NO_SPACE;
	put_text(filling, kept ? kept : "");
}

static void put_state(struct filling *filling, uint64_t word)
{
	put_number(filling, (op_state_flags(word) & OP_FLAG_REPLAY) != 0);
	put_text(filling, op_state_name(op_state_state(word)));
	put_flags(filling, op_state_flags(word));
	put_text(filling, op_time_name(op_state_source(word), op_state_flags(word)));
	put_number(filling, (uint8_t)(word >> 48));
	put_number(filling, (uint8_t)(word >> 56));
}

/* One cell for each column of the group, in order. Returns OK or ERR_NO_SPACE. */
static enum status export_cells_fill(struct export_cell *cells, enum export_group group,
				     uint64_t word, const struct recording_process *process,
				     struct export_string **strings)
{
	struct filling filling = { .next = cells, .strings = strings, .process = process };

	switch (group) {
	case EXPORT_WHO:
		put_who(&filling, word);
		break;
	case EXPORT_STATE:
		put_state(&filling, word);
		break;
	case EXPORT_ENDS:
		for (unsigned int shift = 0; shift < 64; shift += 32)
			put_number_unless(&filling, (int32_t)(word >> shift),
					  (int32_t)(word >> shift) == OP_NOBODY);
		break;
	case EXPORT_CHILDREN:
		for (unsigned int shift = 0; shift < 64; shift += 16)
			put_number(&filling, (uint16_t)(word >> shift));
		break;
	default:
		break;
	}
	return filling.status;
}

/*
 * Words of groups are looked up instead of decoded: most rows repeat an earlier word, often the previous one. A new
 * process gets new entries, because its communicator numbers have other meanings.
 */

enum { SLOT_BITS = 15, SLOTS = 1 << SLOT_BITS };
enum { OFFSET_SPAN_NS = 100 * 1000 * 1000 };
_Static_assert(SLOTS == 2 * EXPORT_ENTRIES_MAX, "a search ends at an empty slot");

/* Buffers for computed columns and for the entries of a frame. */
enum {
	MADE_DURATION,
	MADE_ISSUE,
	MADE_LAUNCH,
	MADE_TASK,
	MADE_ACTIVE,
	MADE_DONE,
	MADE_OFFSET,
	MADE_START_SPREAD,
	MADE_STOP_SPREAD,
	MADE_SEND_STEPS,
	MADE_RECV_STEPS,
	MADE_COLUMNS,
};

struct export_scratch {
	uint64_t made[MADE_COLUMNS][EXPORT_FRAME_ROWS];
	uint64_t offset[EXPORT_FRAME_ROWS]; /* wall clock - recorder's clock, 0 unknown */
	uint16_t entry[EXPORT_GROUPS][EXPORT_FRAME_ROWS];
};

static const uint8_t group_word[EXPORT_GROUPS] = {
	[EXPORT_WHO] = OP_WORD_KIND,
	[EXPORT_STATE] = OP_WORD_STATE,
	[EXPORT_ENDS] = OP_WORD_ENDS,
	[EXPORT_CHILDREN] = OP_WORD_CHILDREN,
};

/* ---- life ------------------------------------------------------------------------------------ */

struct export_rows *export_rows_new(void)
{
	struct export_rows *rows = calloc(1, sizeof(*rows));
	bool is_short;

	if (rows == NULL)
		return NULL;
	for (unsigned int i = 0; i < EXPORT_COLUMNS; i++)
		if (export_columns[i].group != EXPORT_EACH)
			rows->place[i] = (uint8_t)rows->entries[export_columns[i].group].width++;
	rows->scratch = calloc(1, sizeof(*rows->scratch));
	is_short = rows->scratch == NULL;
	for (unsigned int i = 0; i < EXPORT_GROUPS; i++) {
		struct export_entries *entries = &rows->entries[i];
		size_t cells = (size_t)EXPORT_ENTRIES_MAX * entries->width;

		/* Unused pages take no memory. */
		entries->cells = malloc(cells * sizeof(*entries->cells));
		entries->keys = malloc(EXPORT_ENTRIES_MAX * sizeof(*entries->keys));
		entries->slots = calloc(SLOTS, sizeof(*entries->slots));
		is_short |= !entries->cells || !entries->keys || !entries->slots;
	}
	if (is_short) {
		export_rows_free(rows);
		return NULL;
	}
	return rows;
}

void export_rows_free(struct export_rows *rows)
{
	if (rows == NULL)
		return;
	for (unsigned int i = 0; i < EXPORT_GROUPS; i++) {
		free(rows->entries[i].cells);
		free(rows->entries[i].keys);
		free(rows->entries[i].slots);
	}
	export_string_free(&rows->strings);
	free(rows->scratch);
	free(rows);
}

static void empty_slots(struct export_entries *entries)
{
	memset(entries->slots, 0, SLOTS * sizeof(*entries->slots));
}

void export_rows_process(struct export_rows *rows, const struct recording_process *process)
{
	rows->process = process;
	rows->anchor_span = 0;
	rows->anchor_from = UINT64_MAX;
	empty_slots(&rows->entries[EXPORT_WHO]);
}

void export_rows_forget(struct export_rows *rows)
{
	for (unsigned int i = 0; i < EXPORT_GROUPS; i++) {
		rows->entries[i].count = 0;
		empty_slots(&rows->entries[i]);
	}
	export_string_free(&rows->strings);
	rows->is_full = false;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Adds an entry for a word; -1 if there is no room. */
static int add_entry(struct export_rows *rows, enum export_group group, uint64_t word,
		     uint32_t slot)
{
	struct export_entries *entries = &rows->entries[group];
	uint32_t entry = entries->count;

	if (entry == EXPORT_ENTRIES_MAX) {
		rows->is_full = true;
		return -1;
	}
	rows->status = export_cells_fill(&entries->cells[(size_t)entry * entries->width], group,
					 word, rows->process, &rows->strings);
	if (rows->status != OK)
		return -1;
	entries->keys[entry] = word;
	entries->slots[slot] = (uint16_t)(entry + 1);
	entries->count++;
	return (int)entry;
}

static int find_entry(struct export_rows *rows, enum export_group group, uint64_t word)
{
	struct export_entries *entries = &rows->entries[group];
	uint32_t slot = (uint32_t)(((word ^ word >> 32) * UINT64_C(0x9e3779b97f4a7c15)) >>
				   (64 - SLOT_BITS));

	while (entries->slots[slot] != 0) {
		uint32_t entry = entries->slots[slot] - 1u;

		if (entries->keys[entry] == word)
			return (int)entry;
		slot = (slot + 1) & (SLOTS - 1);
	}
	return add_entry(rows, group, word, slot);
}

/* Returns how many rows have an entry; fewer than requested if there is no room. */
static uint32_t find_entries(struct export_rows *rows, enum export_group group,
			     const uint64_t *words, uint32_t count)
{
	uint16_t *entry = rows->scratch->entry[group];
	uint64_t last = ~words[0];
	int found = -1;

	for (uint32_t i = 0; i < count; i++) {
		if (words[i] != last) {
			found = find_entry(rows, group, words[i]);
			if (found < 0)
				return i;
			last = words[i];
		}
		entry[i] = (uint16_t)found;
	}
	return count;
}

/* ---- times ----------------------------------------------------------------------------------- */

/* The span of the recorder's clock around `clock_ns` for which one anchor applies. */
static void find_anchor(struct export_rows *rows, uint64_t clock_ns)
{
	const struct recording_process *process = rows->process;
	size_t next =
		SEARCH_FIRST(i, process->anchor_count, process->anchors[i].clock_ns > clock_ns);
	uint64_t wall_ns = 0;

	/* Times before all anchors use the first one. */
	rows->anchor_from = next > 0 ? clock_ns : 0;
	rows->anchor_span =
		(next < process->anchor_count ? process->anchors[next].clock_ns - 1 : UINT64_MAX) -
		rows->anchor_from;
	/* Within this time the offset changes by 5 us if clocks differ by 50 ppm. */
	if (next > 0 && rows->anchor_span > OFFSET_SPAN_NS)
		rows->anchor_span = OFFSET_SPAN_NS;
	rows->anchor_offset =
		recording_wall_ns(process, clock_ns, &wall_ns) ? wall_ns - clock_ns : 0;
}

/* Per row, by its earliest known time: all times of a row use the same offset. */
static void find_offsets(struct export_rows *rows, const struct op_batch *batch, uint32_t at,
			 uint32_t count)
{
	uint64_t *offset = rows->scratch->offset;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t clock_ns = batch->column[OP_WORD_ISSUE][at + i];

		for (unsigned int word = OP_WORD_LAUNCH; clock_ns == 0 && word <= OP_WORD_DONE;
		     word++)
			clock_ns = batch->column[word][at + i];
		if (clock_ns - rows->anchor_from > rows->anchor_span)
			find_anchor(rows, clock_ns);
		offset[i] = rows->anchor_offset;
	}
}

/* Vectorized and branch-free: this dominates the conversion of times. */
static void move_times(uint64_t *to, const uint64_t *from, const uint64_t *offset, uint32_t count)
{
	typedef uint64_t lanes __attribute__((vector_size(16), aligned(8), may_alias));
	const lanes null = { EXPORT_NULL_SIGNED, EXPORT_NULL_SIGNED }, zero = { 0, 0 };
	uint32_t i = 0;

	for (; i + 2 <= count; i += 2) {
		const lanes time = *(const lanes *)(const void *)(from + i);
		const lanes by = *(const lanes *)(const void *)(offset + i);
		const lanes is_null = (lanes)(time == zero);

		*(lanes *)(void *)(to + i) = (null & is_null) | ((time + by) & ~is_null);
	}
	for (; i < count; i++)
		to[i] = from[i] ? from[i] + offset[i] : EXPORT_NULL_SIGNED;
}

static void make_times(struct export_rows *rows, const struct op_batch *batch, uint32_t at,
		       uint32_t count)
{
	struct export_scratch *scratch = rows->scratch;
	const uint64_t *offset = scratch->offset;

	find_offsets(rows, batch, at, count);
	for (unsigned int word = OP_WORD_ISSUE; word <= OP_WORD_DONE; word++) {
		const uint64_t *from = batch->column[word] + at;
		uint64_t *to = scratch->made[MADE_ISSUE + word - OP_WORD_ISSUE];

		move_times(to, from, offset, count);
	}
	if (rows->process->anchor_count > 0)
		memcpy(scratch->made[MADE_OFFSET], offset, count * sizeof(*offset));
	else
		for (uint32_t i = 0; i < count; i++)
			scratch->made[MADE_OFFSET][i] = EXPORT_NULL_SIGNED;
}

/* Without timestamps of its channels their spread is unknown, not 0. */
static void null_unless(uint64_t *to, const uint64_t *stamps, const uint64_t *states,
			uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		to[i] = stamps[i] && !(op_state_flags(states[i]) & OP_FLAG_CUDA_EVENT)
				? to[i]
				: EXPORT_NULL_SIGNED;
}

/* As duration_ns of a dump: null if unknown, if it is a span or a bound, or if times contradict each other. */
static void make_durations(struct export_rows *rows, const struct op_batch *batch, uint32_t at,
			   uint32_t count)
{
	static const uint8_t ends[OP_TIME_SOURCES][2] = {
		[OP_TIME_KERNEL_GPU] = { OP_WORD_GPU_START, OP_WORD_GPU_STOP },
		[OP_TIME_PROXY] = { OP_WORD_ACTIVE, OP_WORD_DONE },
		[OP_TIME_HOST] = { OP_WORD_ISSUE, OP_WORD_DONE },
	};
	const uint64_t *states = batch->column[OP_WORD_STATE] + at;
	const uint64_t *first = NULL, *last = NULL;
	uint64_t *to = rows->scratch->made[MADE_DURATION];
	uint64_t before = UINT64_MAX;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t what = states[i] & (UINT64_C(0xff) << 40 | OP_FLAG_TOOL_TIME);

		if (what != before) {
			unsigned int source = op_state_source(what);

			before = what;
			if (source >= OP_TIME_SOURCES ||
			    !op_is_duration(op_shown_source((uint8_t)source, op_state_flags(what))))
				source = OP_TIME_NONE;
			first = source == OP_TIME_NONE ? NULL : batch->column[ends[source][0]] + at;
			last = source == OP_TIME_NONE ? NULL : batch->column[ends[source][1]] + at;
		}
		to[i] = first == NULL || first[i] == 0 || last[i] < first[i] ? EXPORT_NULL_SIGNED
									     : last[i] - first[i];
	}
}

/* Two numbers of 32 bits in one word. */
static void split_words(const uint64_t *from, uint64_t *low, uint64_t *high, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		low[i] = (uint32_t)from[i];
		high[i] = from[i] >> 32;
	}
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void point_columns(const struct export_rows *rows, const struct op_batch *batch, uint32_t at,
			  struct export_frame *frame)
{
	static const uint8_t made[MADE_COLUMNS] = {
		[MADE_DURATION] = EXPORT_DURATION,	 [MADE_ISSUE] = EXPORT_ISSUE_TIME,
		[MADE_LAUNCH] = EXPORT_LAUNCH_TIME,	 [MADE_TASK] = EXPORT_TASK_TIME,
		[MADE_ACTIVE] = EXPORT_ACTIVE_TIME,	 [MADE_DONE] = EXPORT_DONE_TIME,
		[MADE_OFFSET] = EXPORT_CLOCK_OFFSET,	 [MADE_START_SPREAD] = EXPORT_START_SPREAD,
		[MADE_STOP_SPREAD] = EXPORT_STOP_SPREAD, [MADE_SEND_STEPS] = EXPORT_SEND_STEPS,
		[MADE_RECV_STEPS] = EXPORT_RECV_STEPS,
	};

	for (unsigned int i = 0; i < EXPORT_COLUMNS; i++) {
		const struct export_column *column = &export_columns[i];

		frame->values[i] = NULL;
		if (column->group == EXPORT_EACH && column->word != EXPORT_NO_WORD)
			frame->values[i] = batch->column[column->word] + at;
	}
	for (unsigned int i = 0; i < MADE_COLUMNS; i++)
		frame->values[made[i]] = rows->scratch->made[i];
	for (unsigned int i = 0; i < EXPORT_GROUPS; i++)
		frame->entry[i] = rows->scratch->entry[i];
}

uint32_t export_rows_take(struct export_rows *rows, const struct op_batch *batch, uint32_t at,
			  struct export_frame *frame)
{
	struct export_scratch *scratch = rows->scratch;
	uint32_t count = batch->rows - at;

	if (count > EXPORT_FRAME_ROWS)
		count = EXPORT_FRAME_ROWS;
	for (unsigned int i = 0; i < EXPORT_GROUPS && count > 0; i++)
		count = find_entries(rows, i, batch->column[group_word[i]] + at, count);
	if (rows->status != OK)
		count = 0;
	frame->rows = count;
	if (count == 0)
		return 0;
	make_times(rows, batch, at, count);
	make_durations(rows, batch, at, count);
	split_words(batch->column[OP_WORD_SPREADS] + at, scratch->made[MADE_START_SPREAD],
		    scratch->made[MADE_STOP_SPREAD], count);
	null_unless(scratch->made[MADE_START_SPREAD], batch->column[OP_WORD_GPU_START] + at,
		    batch->column[OP_WORD_STATE] + at, count);
	null_unless(scratch->made[MADE_STOP_SPREAD], batch->column[OP_WORD_GPU_STOP] + at,
		    batch->column[OP_WORD_STATE] + at, count);
	split_words(batch->column[OP_WORD_STEPS] + at, scratch->made[MADE_SEND_STEPS],
		    scratch->made[MADE_RECV_STEPS], count);
	point_columns(rows, batch, at, frame);
	return count;
}
