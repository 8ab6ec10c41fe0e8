/* Comparing profilers: what jobs issued, what was recorded, and matching records to calls. */
#include "bench/profilers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"
#include "import/foreign.h"
#include "recording/recording.h"

/* ---- what was issued ---------------------------------------------------------------------- */

/* What identifies the operation of a record. */
struct profilers_key {
	uint8_t function;
	bool is_align;
	uint64_t bytes;	     /* 0 for alignment */
	uint64_t part_bytes; /* of one rank: what NCCL reports; 0 if nothing was issued */
};

/* The NCCL operations of one function and size that one call of a cell makes on one rank. */
struct profilers_part {
	struct profilers_key key;
	uint64_t per_step;
};

enum { PROFILERS_PARTS_MAX = 2, PROFILERS_KEYS_MAX = 4096 };

/* One per rank and key. */
struct profilers_tally {
	uint64_t issued;
	uint64_t recorded;
	uint64_t untimed;
};

/* All keys of a job, and how much was issued and recorded of each. */
struct profilers_ledger {
	const struct bench_run *bench;
	struct profilers_list
		keys; /* struct profilers_key: issued ones first, then others that were recorded */
	size_t issued_keys;
	struct profilers_tally
		*tallies; /* [(rank + 1) * PROFILERS_KEYS_MAX + key]: see ledger_tally() */
	size_t key_room;
};

static inline const struct profilers_key *profilers_ledger_key(
	const struct profilers_ledger *ledger, size_t key)
{
	return (const struct profilers_key *)ledger->keys.items + key;
}

/* ---- what was recorded -------------------------------------------------------------------- */

struct profilers_record {
	uint32_t key; /* in the ledger */
	int32_t rank; /* -1: unknown */
	uint32_t comm;
	uint8_t source;
	uint64_t number; /* order of calls in its communicator */
	uint64_t duration_ns;
	uint64_t wall_ns; /* when it was called; 0: unknown */
};

static const char *const kind_names[PROFILERS_KINDS] = {
	[PROFILERS_NONE] = "none",	     [PROFILERS_RINGSIDE] = "ringside",
	[PROFILERS_INSPECTOR] = "inspector", [PROFILERS_COMMA] = "comma",
	[PROFILERS_NCCLSEE] = "ncclsee",     [PROFILERS_UNKNOWN] = "unknown",
};

const char *profilers_kind_name(unsigned int kind)
{
	return kind < PROFILERS_KINDS ? kind_names[kind] : "?";
}

unsigned int profilers_kind_find(const char *name)
{
	unsigned int kind = 0;

	while (kind < PROFILERS_KINDS && strcmp(kind_names[kind], name) != 0)
		kind++;
	return kind;
}

void *profilers_list_add(struct profilers_list *list, size_t most)
{
	if (list->count >= most || !list_grow(&list->items, list->count, list->size))
		return NULL;
	return memset((char *)list->items + list->count++ * list->size, 0, list->size);
}

void profilers_list_release(struct profilers_list *list)
{
	free(list->items);
	list->items = NULL;
	list->count = 0;
}

void profilers_comparison_init(struct profilers_comparison *comparison)
{
	memset(comparison, 0, sizeof(*comparison));
}

void profilers_comparison_release(struct profilers_comparison *comparison)
{
	free(comparison->jobs);
	free(comparison->complete);
	free(comparison->accuracy);
	free(comparison->overhead);
	free(comparison->training);
	profilers_comparison_init(comparison);
}

struct profilers *profilers_new(void)
{
	struct profilers *work = calloc(1, sizeof(*work));

	if (work == NULL)
		return NULL;
	work->complete.size = sizeof(struct profilers_complete);
	work->samples.size = sizeof(struct profilers_sample);
	work->ratios.size = sizeof(struct profilers_ratios);
	work->jobs.size = sizeof(struct profilers_jobs);
	work->trainings.size = sizeof(struct profilers_training);
	text_copy(work->out.plugins[0].label, sizeof(work->out.plugins[0].label), "no plugin");
	work->out.plugins[0].kind = PROFILERS_NONE;
	work->out.plugin_count = 1;
	return work;
}

void profilers_free(struct profilers *work)
{
	if (work == NULL)
		return;
	for (size_t i = 0; i < work->samples.count; i++)
		free(((struct profilers_sample *)work->samples.items)[i].values);
	for (size_t i = 0; i < work->ratios.count; i++)
		free(((struct profilers_ratios *)work->ratios.items)[i].values);
	profilers_list_release(&work->complete);
	profilers_list_release(&work->samples);
	profilers_list_release(&work->ratios);
	profilers_list_release(&work->jobs);
	profilers_list_release(&work->trainings);
	profilers_comparison_release(&work->out);
	free(work);
}

size_t profilers_plugin(struct profilers *work, const char *label, const char *path,
			enum profilers_kind kind)
{
	struct profilers_plugin *plugin;

	if (work->out.plugin_count == PROFILERS_PLUGINS_MAX)
		return 0;
	plugin = &work->out.plugins[work->out.plugin_count];
	text_copy(plugin->label, sizeof(plugin->label), label);
	text_copy(plugin->path, sizeof(plugin->path), path);
	plugin->kind = (uint8_t)kind;
	return work->out.plugin_count++;
}

void profilers_command(struct profilers *work, const char *command)
{
	text_copy(work->out.command, sizeof(work->out.command), command);
}

/* Ignores duplicates. */

static void PRINTF_LIKE(4, 0) add_line(struct profilers *work, char lines[][PROFILERS_TEXT_BYTES],
				       size_t *count, const char *format, va_list arguments)
{
	char line[PROFILERS_TEXT_BYTES] = "";

	vsnprintf(line, sizeof(line), format, arguments);
	for (size_t i = 0; i < *count; i++)
		if (strcmp(lines[i], line) == 0)
			return;
	if (*count == PROFILERS_NOTES_MAX) {
		work->out.notes_lost++;
		return;
	}
	memcpy(lines[(*count)++], line, sizeof(line));
}

void profilers_not_run(struct profilers *work, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add_line(work, work->out.not_run, &work->out.not_run_count, format, arguments);
	va_end(arguments);
}

void profilers_note(struct profilers *work, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add_line(work, work->out.notes, &work->out.note_count, format, arguments);
	va_end(arguments);
}

static bool is_wanted(const struct profilers_complete *row, const struct profilers_which *which)
{
	return (which->plugin == PROFILERS_ALL || which->plugin == row->plugin) &&
	       (which->mode == PROFILERS_ALL || which->mode == row->mode) &&
	       (which->function == PROFILERS_ALL || which->function == row->function) &&
	       (which->rank == PROFILERS_ALL || which->rank == row->rank) &&
	       (which->is_any_size ||
		(which->bytes == row->bytes && which->bytes_to == row->bytes_to && !row->is_align));
}

void profilers_counts_add(struct profilers_counts *to, const struct profilers_counts *counts)
{
	to->issued += counts->issued;
	to->recorded += counts->recorded;
	to->untimed += counts->untimed;
	to->missing += counts->missing;
	to->excess += counts->excess;
}

struct profilers_counts profilers_counts(const struct profilers_comparison *comparison,
					 const struct profilers_which *which)
{
	struct profilers_counts sum = { 0 };

	for (size_t i = 0; i < comparison->complete_count; i++) {
		const struct profilers_complete *row = &comparison->complete[i];

		if (is_wanted(row, which))
			profilers_counts_add(&sum, &row->counts);
	}
	return sum;
}

double profilers_share(const struct profilers_counts *counts)
{
	if (counts->issued == 0)
		return 1;
	return (double)(counts->issued - counts->missing) / (double)counts->issued;
}

const struct profilers_jobs *profilers_jobs_of(const struct profilers_comparison *comparison,
					       unsigned int plugin, unsigned int mode)
{
	for (size_t i = 0; i < comparison->job_count; i++)
		if (comparison->jobs[i].plugin == plugin && comparison->jobs[i].mode == mode)
			return &comparison->jobs[i];
	return NULL;
}

bool profilers_is_judged(const struct profilers_comparison *comparison, unsigned int plugin,
			 unsigned int mode)
{
	const struct profilers_jobs *jobs = profilers_jobs_of(comparison, plugin, mode);

	return jobs && comparison->plugins[plugin].kind != PROFILERS_NONE &&
	       comparison->plugins[plugin].kind != PROFILERS_UNKNOWN &&
	       jobs->read + jobs->silent > 0;
}

/*
 * What a job issued, as a profiler should see it: per rank, function and size. Warm-ups and checks count like any
 * other call; captured calls do not run. AlltoAll, Gather and Scatter count as the Sends and Recvs that NCCL
 * reports (docs/BLIND-SPOTS.md).
 *
 *	keys:     issued | recorded but not issued | the rest
 *	tallies:  one row of keys per rank, the first for records of unknown ranks
 */

enum { ALIGN_BYTES_MAX = 8, STRAY_KEYS = 64 };

static bool has_aligns(const struct bench_run *bench)
{
	for (size_t i = 0; i < bench->cell_count; i++)
		if (bench->cells[i].aligns > 0)
			return true;
	return false;
}

static struct profilers_key key_of(bool is_aligned, uint8_t function, uint64_t bytes,
				   uint64_t part_bytes)
{
	struct profilers_key key = { .function = function,
				     .bytes = bytes,
				     .part_bytes = part_bytes };

	/* An AllReduce of one element cannot be distinguished from an alignment. */
	if (is_aligned && function == OP_ALL_REDUCE && bytes <= ALIGN_BYTES_MAX) {
		key.is_align = true;
		key.bytes = 0;
		key.part_bytes = 0;
	}
	return key;
}

static struct profilers_part part_of(uint8_t function, uint64_t bytes, uint64_t times)
{
	return (struct profilers_part){
		{ .function = function, .bytes = bytes, .part_bytes = bytes }, times
	};
}

static size_t pairs_of(const struct bench_cell *cell, int32_t rank, uint64_t part_bytes,
		       struct profilers_part parts[PROFILERS_PARTS_MAX])
{
	uint64_t ranks = (uint64_t)cell->nranks;
	bool is_root = rank == cell->root;

	switch (cell->function) {
	case OP_SEND_RECV:
		if (cell->peers && cell->peers[rank] < 0)
			return 0;
		parts[0] = part_of(OP_SEND, part_bytes, 1);
		parts[1] = part_of(OP_RECV, part_bytes, 1);
		return 2;
	case OP_ALL_TO_ALL:
		parts[0] = part_of(OP_SEND, part_bytes, ranks);
		parts[1] = part_of(OP_RECV, part_bytes, ranks);
		return 2;
	case OP_GATHER:
		parts[0] = part_of(OP_SEND, part_bytes, 1);
		parts[1] = part_of(OP_RECV, part_bytes, ranks);
		return is_root ? 2 : 1;
	default: /* OP_SCATTER */
		parts[0] = part_of(OP_RECV, part_bytes, 1);
		parts[1] = part_of(OP_SEND, part_bytes, ranks);
		return is_root ? 2 : 1;
	}
}

/* How many; 0: the rank does not take part. */
static size_t profilers_parts_of(const struct bench_run *bench, const struct bench_cell *cell,
				 int32_t rank, struct profilers_part parts[PROFILERS_PARTS_MAX])
{
	uint64_t part_bytes = cell->count * op_datatype_bytes(cell->datatype);

	switch (cell->function) {
	case OP_SEND_RECV:
	case OP_ALL_TO_ALL:
	case OP_GATHER:
	case OP_SCATTER:
		return pairs_of(cell, rank, part_bytes, parts);
	default:
		parts[0].key = key_of(has_aligns(bench), cell->function, cell->bytes, part_bytes);
		parts[0].per_step = 1;
		return 1;
	}
}

static bool is_key(const struct profilers_key *key, const struct profilers_key *other)
{
	return key->function == other->function && key->is_align == other->is_align &&
	       key->bytes == other->bytes;
}

static long find_key(const struct profilers_ledger *ledger, const struct profilers_key *key)
{
	for (size_t i = 0; i < ledger->keys.count; i++)
		if (is_key(profilers_ledger_key(ledger, i), key))
			return (long)i;
	return -1;
}

static long add_key(struct profilers_ledger *ledger, const struct profilers_key *key)
{
	long at = find_key(ledger, key);
	struct profilers_key *added;

	if (at >= 0)
		return at;
	added = profilers_list_add(&ledger->keys, PROFILERS_KEYS_MAX);
	if (added == NULL)
		return -1;
	*added = *key;
	return (long)ledger->keys.count - 1;
}

static enum status add_keys(struct profilers_ledger *ledger)
{
	const struct bench_run *bench = ledger->bench;
	struct profilers_part parts[PROFILERS_PARTS_MAX];
	struct profilers_key align = { .function = OP_ALL_REDUCE, .is_align = true };

	if (has_aligns(bench) && add_key(ledger, &align) < 0)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < bench->cell_count; i++)
		for (int32_t rank = 0; rank < bench->nranks; rank++) {
			size_t count = profilers_parts_of(bench, &bench->cells[i], rank, parts);

			for (size_t j = 0; j < count; j++)
				if (add_key(ledger, &parts[j].key) < 0)
					return ERR_NO_SPACE;
			if (bench->cells[i].function < OP_SEND && rank == 0)
				break; /* collectives: all ranks do the same */
		}
	return OK;
}

/* `rank` -1: unknown. */
static struct profilers_tally *profilers_ledger_tally(struct profilers_ledger *ledger, int32_t rank,
						      size_t key)
{
	return &ledger->tallies[(size_t)(rank + 1) * ledger->key_room + key];
}

static void add_issued(struct profilers_ledger *ledger, const struct bench_cell *cell, int32_t rank)
{
	struct profilers_part parts[PROFILERS_PARTS_MAX];
	size_t count = profilers_parts_of(ledger->bench, cell, rank, parts);

	for (size_t i = 0; i < count; i++) {
		size_t key = (size_t)find_key(ledger, &parts[i].key);

		profilers_ledger_tally(ledger, rank, key)->issued +=
			bench_cell_steps(cell) * parts[i].per_step;
	}
	if (cell->aligns > 0)
		profilers_ledger_tally(ledger, rank, 0)->issued += cell->aligns;
}

static enum status profilers_ledger_init(struct profilers_ledger *ledger,
					 const struct bench_run *bench)
{
	enum status status;

	*ledger = (struct profilers_ledger){ .bench = bench,
					     .keys.size = sizeof(struct profilers_key) };
	if (bench->nranks < 1)
		return ERR_RANGE;
	status = add_keys(ledger);
	if (status != OK)
		return status;
	ledger->issued_keys = ledger->keys.count;
	ledger->key_room = ledger->keys.count + STRAY_KEYS + 1;
	ledger->tallies =
		calloc(((size_t)bench->nranks + 1) * ledger->key_room, sizeof(*ledger->tallies));
	if (ledger->tallies == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < bench->cell_count; i++)
		for (int32_t rank = 0; rank < bench->nranks; rank++)
			add_issued(ledger, &bench->cells[i], rank);
	return OK;
}

static void profilers_ledger_release(struct profilers_ledger *ledger)
{
	profilers_list_release(&ledger->keys);
	free(ledger->tallies);
	ledger->tallies = NULL;
}

/* Index of a recorded operation's key, a new one if nothing like it was issued; -1: no room. */
static long profilers_ledger_find(struct profilers_ledger *ledger, uint8_t function, uint64_t bytes)
{
	bool is_aligned = ledger->issued_keys > 0 && profilers_ledger_key(ledger, 0)->is_align;
	struct profilers_key key =
		key_of(is_aligned, function < OP_FUNCTIONS ? function : 0, bytes, 0);
	struct profilers_key rest = { .bytes = PROFILERS_BYTES_UNKNOWN };
	long at = find_key(ledger, &key);

	if (at >= 0)
		return at;
	return add_key(ledger, ledger->keys.count + 1 < ledger->key_room ? &key : &rest);
}

/* Assigns the records of a profiler to ranks, functions and sizes of the job. */

enum { RECORDS_MAX = 1 << 26 };

struct record_walk {
	struct profilers_ledger *ledger;
	struct profilers_list *records;
	const struct recording_process *process;
	int32_t rank;
	enum status status;
};

/* The rank of this process; -1: none, or several. */
static int32_t profilers_rank_of_pid(const struct bench_run *bench, const char *host, int64_t pid)
{
	int32_t found = -1, count = 0;

	for (int32_t rank = 0; rank < bench->nranks; rank++) {
		const struct bench_rank *place = &bench->ranks[rank];
		bool is_elsewhere = host && host[0] != '\0' && place->host[0] != '\0' &&
				    strcmp(host, place->host) != 0;

		if (place->pid != pid || pid <= 0 || (is_elsewhere && bench->nodes > 1))
			continue;
		found = rank;
		count++;
	}
	return count == 1 ? found : -1;
}

static int32_t rank_of_process(const struct bench_run *bench,
			       const struct recording_process *process)
{
	int32_t rank = profilers_rank_of_pid(bench, process->host, process->pid);

	if (rank < 0 && process->rank >= 0 && process->rank < bench->nranks)
		rank = (int32_t)process->rank;
	return rank;
}

/* The communicator has all ranks of the job, in their order. */
static int32_t rank_of_comm(const struct record_walk *walk, uint32_t id)
{
	const struct recording_comm *comm = recording_comm(walk->process, id);
	int32_t nranks = walk->ledger->bench->nranks;

	if (comm == NULL || (comm->info.nranks != 0 && comm->info.nranks != nranks))
		return -1;
	return comm->info.rank >= 0 && comm->info.rank < nranks ? comm->info.rank : -1;
}

static bool take_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct record_walk *walk = context;
	struct profilers_record *record;
	struct profilers_tally *tally;
	uint64_t issue_ns;
	long key;

	(void)place;
	if (op->state == OP_CAPTURED)
		return true;
	key = profilers_ledger_find(walk->ledger, op->function, op->bytes);
	record = profilers_list_add(walk->records, RECORDS_MAX);
	if (key < 0 || record == NULL) {
		walk->status = ERR_NO_SPACE;
		return false;
	}
	record->rank = walk->rank >= 0 ? walk->rank : rank_of_comm(walk, op->comm);
	record->key = (uint32_t)key;
	record->comm = op->comm;
	record->number = op->number;
	record->duration_ns = op_duration_ns(op);
	record->source =
		record->duration_ns ? op_shown_source(op->time_source, op->flags) : OP_TIME_NONE;
	issue_ns = op->issue_ns ? op->issue_ns : op->task_ns; /* both are taken within the call */
	if (issue_ns == 0 || !recording_wall_ns(walk->process, issue_ns, &record->wall_ns))
		record->wall_ns = 0;
	tally = profilers_ledger_tally(walk->ledger, record->rank, record->key);
	tally->recorded++;
	tally->untimed += record->source == OP_TIME_NONE;
	return true;
}

static int by_place(const void *left, const void *right)
{
	const struct profilers_record *a = left, *b = right;

	return ORDER(a->rank, b->rank) ?: ORDER(a->key, b->key)
		?: ORDER(a->comm, b->comm) ?: ORDER(a->number, b->number);
}

/* Adds all records of a recording to the ledger's counts and to a list, sorted by rank, key, order. */
static enum status profilers_take_records(struct profilers_ledger *ledger,
					  const struct recording *recording,
					  struct profilers_list *records)
{
	struct record_walk walk = { .ledger = ledger, .records = records };
	enum status status;

	for (size_t i = 0; i < recording->count; i++) {
		walk.process = recording->processes[i];
		walk.rank = rank_of_process(ledger->bench, walk.process);
		status = recording_each_op(walk.process, take_op, &walk, NULL);
		if (status == OK)
			status = walk.status;
		if (status != OK)
			return status;
	}
	if (records->count > 1)
		qsort(records->items, records->count, records->size, by_place);
	return OK;
}

/* What the plugin itself reports as lost. False: it does not report it. */
static bool profilers_take_lost(const struct recording *recording, enum profilers_kind kind,
				uint64_t *lost)
{
	bool tells = false;

	*lost = 0;
	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		/* Gaps in NCCL's numbering were found by the reader, not reported by the plugin. */
		if (kind == PROFILERS_INSPECTOR && process->foreign) {
			*lost += process->lost[LOST_RING_OVERRUN];
			tells = tells || process->lost[LOST_RING_OVERRUN] > 0;
		} else if (kind == PROFILERS_RINGSIDE && process->has_counts) {
			*lost += op_lost_operations(process->lost);
			tells = true;
		}
	}
	return tells;
}

/*
 * Matches records to calls. If a rank has exactly as many records of a function and size as it made such calls, the
 * n-th record is the n-th call: warm-ups, measured calls, checks, cell after cell. Otherwise a record belongs to
 * the call during which it was issued, if the profiler recorded that time.
 */

/* Maximum difference between the clocks of a profiler and the benchmark. */
enum { CLOCKS_APART_NS = 10000 };

static bool is_function_sizeless(struct profilers_ledger *ledger, int32_t rank, uint8_t function)
{
	for (size_t i = 0; i < ledger->keys.count; i++) {
		const struct profilers_key *key = profilers_ledger_key(ledger, i);

		if (key->function == function && key->bytes == PROFILERS_BYTES_UNKNOWN &&
		    profilers_ledger_tally(ledger, rank, i)->recorded > 0)
			return true;
	}
	return false;
}

/* Without sizes, records can only be compared per function: all counts go to its first key. */
static bool sum_function(struct profilers_ledger *ledger, int32_t rank, size_t at,
			 struct profilers_tally *sum)
{
	uint8_t function = profilers_ledger_key(ledger, at)->function;

	for (size_t i = 0; i < at; i++)
		if (profilers_ledger_key(ledger, i)->function == function)
			return false;
	*sum = (struct profilers_tally){ 0 };
	for (size_t i = at; i < ledger->keys.count; i++) {
		const struct profilers_tally *tally = profilers_ledger_tally(ledger, rank, i);

		if (profilers_ledger_key(ledger, i)->function != function)
			continue;
		sum->issued += tally->issued;
		sum->recorded += tally->recorded;
		sum->untimed += tally->untimed;
	}
	return true;
}

static struct profilers_counts counts_of(const struct profilers_tally *tally)
{
	struct profilers_counts counts = { .issued = tally->issued,
					   .recorded = tally->recorded,
					   .untimed = tally->untimed };

	if (tally->issued > tally->recorded)
		counts.missing = tally->issued - tally->recorded;
	else
		counts.excess = tally->recorded - tally->issued;
	return counts;
}

static enum status add_row(struct profilers *work, const struct profilers_complete *like,
			   const struct profilers_tally *tally)
{
	struct profilers_complete *row;

	if (tally->issued == 0 && tally->recorded == 0)
		return OK;
	row = profilers_list_add(&work->complete, PROFILERS_ROWS_MAX);
	if (row == NULL)
		return ERR_NO_SPACE;
	*row = *like;
	row->counts = counts_of(tally);
	return OK;
}

/* Converts the ledger's counts to rows. */
static enum status profilers_add_complete(struct profilers *work,
					  const struct profilers_trial *trial, uint8_t mode,
					  struct profilers_ledger *ledger)
{
	enum status status = OK;

	for (int32_t rank = -1; rank < ledger->bench->nranks && status == OK; rank++)
		for (size_t i = 0; i < ledger->keys.count && status == OK; i++) {
			const struct profilers_key *key = profilers_ledger_key(ledger, i);
			struct profilers_tally tally = *profilers_ledger_tally(ledger, rank, i);
			struct profilers_complete row = { .plugin = (uint8_t)trial->plugin,
							  .mode = mode,
							  .rank = rank,
							  .function = key->function,
							  .is_align = key->is_align,
							  .bytes = key->bytes };

			if (is_function_sizeless(ledger, rank, key->function)) {
				if (!sum_function(ledger, rank, i, &tally))
					continue;
				row.bytes = PROFILERS_BYTES_UNKNOWN;
				row.is_align = false;
			}
			status = add_row(work, &row, &tally);
		}
	return status;
}

static bool is_ratios(const struct profilers_ratios *a, const struct profilers_ratios *b)
{
	return a->plugin == b->plugin && a->mode == b->mode && a->function == b->function &&
	       a->source == b->source && a->bytes == b->bytes && a->bytes_to == b->bytes_to;
}

struct profilers_ratios *profilers_ratios_of(struct profilers *work,
					     const struct profilers_ratios *like)
{
	struct profilers_ratios *list = work->ratios.items, *added;

	for (size_t i = 0; i < work->ratios.count; i++)
		if (is_ratios(&list[i], like))
			return &list[i];
	added = profilers_list_add(&work->ratios, PROFILERS_ROWS_MAX);
	if (added)
		*added = *like;
	return added;
}

bool profilers_ratios_add(struct profilers_ratios *ratios, double value)
{
	if (!list_grow(&ratios->values, ratios->count, sizeof(*ratios->values)))
		return false;
	ratios->values[ratios->count++] = value;
	return true;
}

/* The calls of one rank, function and size, and their records. */
struct joining {
	struct profilers *work;
	struct profilers_ratios like;
	const struct profilers_ledger *ledger;
	size_t key;
	int32_t rank;
	const struct profilers_record *records;
	size_t count;
	size_t at;	 /* in order: the next call's record; by time: the next unmatched one */
	uint64_t before; /* when the previous call was made */
	bool is_in_order;
};

static bool add_ratio(struct joining *joining, const struct profilers_record *record,
		      uint64_t measured_ns)
{
	struct profilers_ratios *ratios;

	if (record->source == OP_TIME_NONE)
		return true;
	joining->like.source = record->source;
	ratios = profilers_ratios_of(joining->work, &joining->like);
	if (ratios == NULL)
		return false;
	ratios->in_order += joining->is_in_order;
	ratios->by_time += !joining->is_in_order;
	return profilers_ratios_add(ratios, (double)record->duration_ns / (double)measured_ns);
}

static const struct profilers_record *find_by_time(struct joining *joining,
						   const struct bench_call *call)
{
	uint64_t slack = CLOCKS_APART_NS;
	const struct profilers_record *record;

	/* Not so early that the previous call could be meant. */
	if (joining->before && call->begin_ns > joining->before &&
	    (call->begin_ns - joining->before) / 2 < slack)
		slack = (call->begin_ns - joining->before) / 2;
	joining->before = call->begin_ns;
	while (joining->at < joining->count &&
	       joining->records[joining->at].wall_ns + slack < call->begin_ns)
		joining->at++;
	if (joining->at == joining->count)
		return NULL;
	record = &joining->records[joining->at];
	if (record->wall_ns > call->begin_ns + call->issue_ns + slack)
		return NULL;
	joining->at++;
	return record;
}

static bool join_cell(struct joining *joining, const struct bench_cell *cell, uint64_t per_step)
{
	struct profilers_ratios calls = joining->like, *counted;
	uint64_t measured = 0;

	joining->at += joining->is_in_order ? cell->warmups * per_step : 0;
	for (uint32_t i = 0; i < cell->calls; i++) {
		const struct bench_call *call = bench_cell_call(cell, joining->rank, i);
		const struct profilers_record *record = NULL;

		if (joining->is_in_order) {
			record = &joining->records[joining->at];
			joining->at += per_step;
		} else if (cell->mode != BENCH_GRAPH) {
			record = find_by_time(joining, call);
		}
		if (call->gpu_ns == 0 || per_step != 1)
			continue;
		measured++;
		if (record && !add_ratio(joining, record, call->gpu_ns))
			return false;
	}
	joining->at += joining->is_in_order ? cell->checks * per_step : 0;
	calls.source = OP_TIME_SHOWN_SOURCES;
	counted = measured ? profilers_ratios_of(joining->work, &calls) : NULL;
	if (counted)
		counted->calls += measured;
	return measured == 0 || counted != NULL;
}

/* All cells whose calls have this key. */
static enum status join_key(struct joining *joining)
{
	const struct profilers_key *key = profilers_ledger_key(joining->ledger, joining->key);
	const struct bench_run *bench = joining->ledger->bench;
	struct profilers_part parts[PROFILERS_PARTS_MAX];

	for (size_t i = 0; i < bench->cell_count; i++) {
		const struct bench_cell *cell = &bench->cells[i];
		size_t count = profilers_parts_of(bench, cell, joining->rank, parts);

		for (size_t j = 0; j < count; j++)
			if (parts[j].key.function == key->function &&
			    parts[j].key.bytes == key->bytes && !parts[j].key.is_align &&
			    cell->calls_of && !join_cell(joining, cell, parts[j].per_step))
				return ERR_NO_SPACE;
	}
	return OK;
}

static enum status profilers_join(struct profilers *work, const struct profilers_trial *trial,
				  uint8_t mode, struct profilers_ledger *ledger,
				  const struct profilers_list *records)
{
	const struct profilers_record *list = records->items;
	enum status status = OK;
	size_t at = 0, from;

	while (at < records->count && list[at].rank < 0)
		at++;
	for (int32_t rank = 0; rank < ledger->bench->nranks; rank++)
		for (size_t key = 0; key < ledger->keys.count && status == OK; key++) {
			const struct profilers_key *what = profilers_ledger_key(ledger, key);
			struct joining joining = {
				.work = work, .ledger = ledger, .key = key, .rank = rank
			};

			for (from = at;
			     at < records->count && list[at].rank == rank && list[at].key == key;)
				at++;
			if (key >= ledger->issued_keys || what->is_align)
				continue;
			joining.like.plugin = (uint8_t)trial->plugin;
			joining.like.mode = mode;
			joining.like.function = what->function;
			joining.like.bytes = what->bytes;
			joining.records = list ? list + from : NULL;
			joining.count = at - from;
			joining.is_in_order =
				joining.count == profilers_ledger_tally(ledger, rank, key)->issued;
			status = join_key(&joining);
		}
	return status;
}

/*
 * ncclsee has totals by size class: a class of calls is complete or not, and its mean time can be compared with the
 * mean of the measured ones.
 */

struct class_tally {
	struct profilers_tally tally;
	uint64_t steps; /* issued, without alignment */
	uint64_t calls; /* measured */
	double measured_ns; /* total time of all steps, from the mean of the measured calls of their cell */
	uint64_t timed_steps;
	double reported_ns;
	uint64_t first_bytes; /* size of the cells in it, and whether they differ */
	bool is_mixed;
};

struct classes {
	struct class_tally *list; /* [(rank + 1) * OP_FUNCTIONS * NCCLSEE_CLASSES ...] */
	int32_t nranks;
};

static struct class_tally *class_at(const struct classes *classes, int32_t rank, uint8_t function,
				    unsigned int size_class)
{
	return &classes->list[((size_t)(rank + 1) * OP_FUNCTIONS + function) * NCCLSEE_CLASSES +
			      size_class];
}

static void issue_cell(const struct classes *classes, const struct bench_run *bench,
		       const struct bench_cell *cell, int32_t rank)
{
	struct profilers_part parts[PROFILERS_PARTS_MAX];
	size_t count = profilers_parts_of(bench, cell, rank, parts);
	double sum_ns = 0;
	uint64_t timed = 0;

	for (uint32_t i = 0; cell->calls_of && i < cell->calls; i++) {
		sum_ns += (double)bench_cell_call(cell, rank, i)->gpu_ns;
		timed += bench_cell_call(cell, rank, i)->gpu_ns > 0;
	}
	for (size_t i = 0; i < count; i++) {
		struct profilers_key *key = &parts[i].key;
		uint64_t steps = bench_cell_steps(cell) * parts[i].per_step;
		struct class_tally *at =
			class_at(classes, rank, key->function, ncclsee_class_of(key->part_bytes));

		at->is_mixed = at->is_mixed || (at->steps && at->first_bytes != key->bytes);
		at->first_bytes = key->bytes;
		at->tally.issued += steps;
		at->steps += steps;
		at->calls += timed;
		if (timed) {
			at->timed_steps += steps;
			at->measured_ns += sum_ns / (double)timed * (double)steps;
		}
	}
	class_at(classes, rank, OP_ALL_REDUCE, 0)->tally.issued += cell->aligns;
}

static void take_profile(const struct classes *classes, const struct bench_run *bench,
			 const struct ncclsee_profile *profile, bool is_swapped)
{
	int32_t rank = profilers_rank_of_pid(bench, NULL, profile->pid);

	for (size_t i = 0; i < profile->row_count; i++) {
		const struct ncclsee_row *row = &profile->rows[i];
		uint8_t function = is_swapped ? ncclsee_other_label(row->function) : row->function;
		struct class_tally *at = class_at(classes, rank, function, row->size_class);

		at->tally.recorded += row->calls;
		at->tally.untimed += row->has_time ? 0 : row->calls;
		at->reported_ns += row->total_ns;
	}
}

static uint64_t bytes_apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Whether the names fit the issued calls better with Reduce and ReduceScatter swapped. */
static bool is_swapped(const struct classes *classes, const struct profilers_trial *trial)
{
	uint64_t as_written = 0, swapped = 0;

	for (size_t i = 0; i < trial->profile_count; i++) {
		const struct ncclsee_profile *profile = &trial->profiles[i];
		int32_t rank = profilers_rank_of_pid(trial->bench, NULL, profile->pid);

		for (size_t j = 0; j < profile->row_count; j++) {
			const struct ncclsee_row *row = &profile->rows[j];
			uint8_t other = ncclsee_other_label(row->function);

			as_written += bytes_apart(
				row->calls, class_at(classes, rank, row->function, row->size_class)
						    ->tally.issued);
			swapped += bytes_apart(
				row->calls,
				class_at(classes, rank, other, row->size_class)->tally.issued);
		}
	}
	return swapped < as_written;
}

static enum status add_mean(struct profilers *work, const struct profilers_ratios *like,
			    const struct class_tally *at)
{
	struct profilers_ratios key = *like, *ratios;
	bool is_whole = at->tally.recorded == at->tally.issued;

	if (at->calls == 0)
		return OK;
	key.source = OP_TIME_SHOWN_SOURCES;
	ratios = profilers_ratios_of(work, &key);
	if (ratios == NULL)
		return ERR_NO_SPACE;
	ratios->calls += at->calls;
	/* With alignment, several sizes or losses, the means are not of the same calls. */
	if (at->tally.issued != at->steps || at->timed_steps != at->steps ||
	    (at->is_mixed && !is_whole) || at->tally.recorded == 0 || at->tally.untimed > 0)
		return OK;
	ratios = profilers_ratios_of(work, like);
	if (ratios == NULL ||
	    !profilers_ratios_add(ratios, at->reported_ns / (double)at->tally.recorded /
						  (at->measured_ns / (double)at->steps)))
		return ERR_NO_SPACE;
	return OK;
}

static enum status add_class(struct profilers *work, const struct profilers_trial *trial,
			     const struct classes *classes, struct profilers_complete *row,
			     unsigned int size_class)
{
	const struct class_tally *at = class_at(classes, row->rank, row->function, size_class);
	const struct profilers_tally *tally = &at->tally;
	struct profilers_ratios like = { .plugin = (uint8_t)trial->plugin,
					 .mode = row->mode,
					 .function = row->function,
					 .is_mean_only = true };
	enum status status;

	if (tally->issued == 0 && tally->recorded == 0)
		return OK;
	ncclsee_class_bounds(size_class, &row->bytes, &row->bytes_to);
	row->is_align = tally->issued > 0 && at->steps == 0;
	status = add_row(work, row, tally);
	like.bytes = row->bytes;
	like.bytes_to = row->bytes_to;
	return status == OK ? add_mean(work, &like, at) : status;
}

static enum status profilers_take_ncclsee(struct profilers *work,
					  const struct profilers_trial *trial, uint8_t mode)
{
	const struct bench_run *bench = trial->bench;
	struct classes classes = { .nranks = bench->nranks };
	enum status status = OK;
	bool is_other;

	classes.list = calloc(((size_t)bench->nranks + 1) * OP_FUNCTIONS * NCCLSEE_CLASSES,
			      sizeof(*classes.list));
	if (classes.list == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < bench->cell_count; i++)
		for (int32_t rank = 0; rank < bench->nranks; rank++)
			issue_cell(&classes, bench, &bench->cells[i], rank);
	is_other = is_swapped(&classes, trial);
	for (size_t i = 0; i < trial->profile_count; i++)
		take_profile(&classes, bench, &trial->profiles[i], is_other);
	if (is_other)
		profilers_note(work,
			       "%s swaps the names Reduce and ReduceScatter: read accordingly, "
			       "because the calls match then",
			       work->out.plugins[trial->plugin].label);
	for (int32_t rank = -1; rank < bench->nranks; rank++)
		for (uint8_t function = 0; function < OP_FUNCTIONS; function++)
			for (unsigned int i = 0; i < NCCLSEE_CLASSES && status == OK; i++) {
				struct profilers_complete row = { .plugin = (uint8_t)trial->plugin,
								  .mode = mode,
								  .rank = rank,
								  .function = function };

				status = add_class(work, trial, &classes, &row, i);
			}
	free(classes.list);
	return status;
}

/* Takes one job at a time: its measurements, its plugin's output, and its outcome. */

static struct profilers_jobs *jobs_of(struct profilers *work, size_t plugin, uint8_t mode)
{
	struct profilers_jobs *list = work->jobs.items, *added;

	for (size_t i = 0; i < work->jobs.count; i++)
		if (list[i].plugin == plugin && list[i].mode == mode)
			return &list[i];
	added = profilers_list_add(&work->jobs, PROFILERS_ROWS_MAX);
	if (added) {
		added->plugin = (uint8_t)plugin;
		added->mode = mode;
	}
	return added;
}

static void count_job(struct profilers_jobs *jobs, const struct profilers_trial *trial)
{
	jobs->failed += trial->output == PROFILERS_FAILED;
	if (trial->output != PROFILERS_FAILED && trial->plugin == 0)
		jobs->read++;
	else {
		jobs->read += trial->output == PROFILERS_READ;
		jobs->silent += trial->output == PROFILERS_SILENT;
		jobs->unreadable += trial->output == PROFILERS_UNREADABLE;
	}
	if (trial->problem)
		text_copy(jobs->problem, sizeof(jobs->problem), trial->problem);
}

/* The mode of all cells; 0: they differ, or there are none. */
static uint8_t mode_of(const struct bench_run *bench)
{
	uint8_t mode = bench->cell_count ? bench->cells[0].mode : 0;

	for (size_t i = 1; i < bench->cell_count; i++)
		if (bench->cells[i].mode != mode)
			return 0;
	return mode < BENCH_MODES ? mode : 0;
}

static void set_place(struct profilers_comparison *out, const struct bench_run *bench)
{
	text_copy(out->host, sizeof(out->host), bench->ranks[0].host);
	text_copy(out->gpu, sizeof(out->gpu), bench->ranks[0].gpu_name);
	out->nccl_version = bench->nccl_version;
	out->cuda_version = bench->cuda_version;
	out->nranks = bench->nranks;
	out->nodes = bench->nodes;
	out->is_gpu_shared = bench->is_gpu_shared;
	out->is_mps = bench->is_mps;
	out->started_ns = bench->started_ns;
}

void profilers_place(struct profilers *work, const struct bench_run *bench)
{
	if (work->out.nranks == 0 && bench->ranks)
		set_place(&work->out, bench);
}

static void tell_place(struct profilers *work, const struct bench_run *bench)
{
	struct profilers_comparison *out = &work->out;

	if (out->calls == 0) {
		set_place(out, bench);
	} else if (out->nccl_version != bench->nccl_version || out->nranks != bench->nranks ||
		   out->is_mps != bench->is_mps || out->is_gpu_shared != bench->is_gpu_shared ||
		   strcmp(out->host, bench->ranks[0].host) != 0 ||
		   strcmp(out->gpu, bench->ranks[0].gpu_name) != 0) {
		profilers_note(work, "the jobs ran on different hosts or in different ways: their "
				     "times are not comparable");
	}
	if (bench->started_ns && bench->started_ns < out->started_ns)
		out->started_ns = bench->started_ns;
	for (size_t i = 0; i < bench->note_count; i++)
		profilers_note(work, "%s", bench->notes[i]);
	for (size_t i = 0; i < bench->cell_count; i++)
		out->calls += bench->cells[i].calls;
}

/* A plugin that changes results is worse than one that loses records. */
static void tell_wrong(struct profilers *work, const struct profilers_trial *trial)
{
	const struct bench_run *bench = trial->bench;

	for (size_t i = 0; i < bench->cell_count; i++)
		if (bench->cells[i].wrong > 0 && bench->cells[i].wrong != BENCH_UNCHECKED) {
			profilers_note(work, "%s: wrong results of %s, %s",
				       work->out.plugins[trial->plugin].label,
				       op_function_name(bench->cells[i].function),
				       bench_mode_name(bench->cells[i].mode));
			return;
		}
}

static enum status take_recording(struct profilers *work, const struct profilers_trial *trial,
				  uint8_t mode, struct profilers_jobs *jobs)
{
	struct profilers_list records = { .size = sizeof(struct profilers_record) };
	struct profilers_ledger ledger;
	enum status status;
	uint64_t lost;

	status = profilers_ledger_init(&ledger, trial->bench);
	if (status == OK && trial->recording && trial->output == PROFILERS_READ) {
		status = profilers_take_records(&ledger, trial->recording, &records);
		if (status == OK &&
		    profilers_take_lost(trial->recording, work->out.plugins[trial->plugin].kind,
					&lost)) {
			jobs->tells_lost = true;
			jobs->lost += lost;
		}
	}
	if (status == OK)
		status = profilers_add_complete(work, trial, mode, &ledger);
	if (status == OK)
		status = profilers_join(work, trial, mode, &ledger, &records);
	profilers_list_release(&records);
	profilers_ledger_release(&ledger);
	return status;
}

static bool is_allowed(const struct profilers *work, const struct profilers_trial *trial)
{
	const struct bench_run *bench = trial->bench;

	if (trial->plugin >= work->out.plugin_count || trial->run >= PROFILERS_RUNS_MAX ||
	    (trial->plugin > 0 &&
	     (trial->output < PROFILERS_READ || trial->output >= PROFILERS_OUTPUTS)))
		return false;
	if (trial->output == PROFILERS_FAILED)
		return trial->mode > 0 && trial->mode < BENCH_MODES;
	return bench && bench->nranks > 0 && bench->ranks && mode_of(bench) != 0;
}

enum status profilers_trial(struct profilers *work, const struct profilers_trial *trial)
{
	uint8_t kind, mode;
	struct profilers_jobs *jobs;
	enum status status = OK;

	if (!is_allowed(work, trial))
		return ERR_RANGE;
	kind = work->out.plugins[trial->plugin].kind;
	mode = trial->bench && trial->output != PROFILERS_FAILED ? mode_of(trial->bench)
								 : trial->mode;
	jobs = jobs_of(work, trial->plugin, mode);
	if (jobs == NULL)
		return ERR_NO_SPACE;
	if (trial->output != PROFILERS_FAILED && trial->plugin > 0 &&
	    trial->output != PROFILERS_UNREADABLE) {
		if (kind == PROFILERS_NCCLSEE)
			status = profilers_take_ncclsee(work, trial, mode);
		else if (kind != PROFILERS_UNKNOWN)
			status = take_recording(work, trial, mode, jobs);
	}
	if (status == OK && trial->output != PROFILERS_FAILED) {
		tell_place(work, trial->bench);
		tell_wrong(work, trial);
		status = profilers_take_times(work, trial);
	}
	if (status == OK)
		count_job(jobs, trial);
	return status;
}
