/* `ringside ps`: operations in flight, and what they wait for. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"
#include "output/json.h"
#include "output/recorded.h"
#include "output/report.h"
#include "output/table.h"

/* Operations in flight: oldest first, ranks in the same operation together. */

/*
 * If NCCL does not report ends, a hung operation looks like a finished one. The difference is whether the process
 * continues: if it has called nothing for this long (also the doctor's first threshold), its last calls are listed.
 */
#define PS_QUIET_NS UINT64_C(5000000000)

struct ps_entry {
	const struct recording_process *process;
	uint32_t number; /* index of the process in the recording */
	const struct recording_flight *flight;
	enum flight_kind kind;
	bool is_last_call; /* its end is not visible, and the process has called nothing for PS_QUIET_NS since */
	uint32_t absent; /* processes in its communicator that have not called it */
	uint64_t now_ns; /* recorder's clock */
	bool is_live;	 /* the process runs; else now_ns is the last time in the recording */
	uint64_t age_ns;
	uint64_t group_age_ns; /* age of the oldest with the same number and communicator */
	uint64_t hash;	       /* of the communicator, 0 unknown */
	int32_t rank;	       /* in it, -1 unknown */
};

/* A process whose proxy thread moves data for others (PXN). */
struct ps_carrier {
	const struct recording_process *process;
	uint64_t now_ns;
};

struct ps_list {
	const struct filter *filter; /* NULL: everything */
	const struct job *job;
	struct ps_entry *entries;
	size_t count;
	struct ps_carrier *carriers;
	size_t carrier_count;
	size_t unseen;	  /* operations without a visible end, listed or not */
	size_t unlisted;  /* of these, not listed */
	size_t processes; /* examined processes */
	size_t dead;	  /* left out because they are dead */
};

/* Describes an operation in flight. */

enum { PS_WORDS = 400 };

static bool is_chosen(const struct ps_list *list, const struct ps_entry *entry)
{
	const struct filter_rows rows = { .filter = list->filter,
					  .job = list->job,
					  .process = entry->number };

	return list->filter == NULL || filter_rows_has_comm(&rows, entry->flight->op.comm);
}

static void add_entry(struct ps_list *list, const struct ps_entry *entry)
{
	if (!is_chosen(list, entry))
		return;
	if (!list_grow(&list->entries, list->count, sizeof(*list->entries)))
		cli_no_memory();
	list->entries[list->count++] = *entry;
}

static bool is_dead(const struct recording_process *process)
{
	return process->life == RECORDING_ENDED || process->life == RECORDING_KILLED;
}

/*
 * Is this the last call on its communicator, and has the process stopped calling? If the process continued on other
 * communicators, it does not hang in this one (used only at start-up, for example).
 */
static bool is_last_call(const struct ps_entry *entry, size_t i, uint64_t last_ns)
{
	const struct recording_process *process = entry->process;
	const struct recording_flight *flight = &process->flights[i];
	const struct recording_comm *comm = recording_comm(process, flight->op.comm);

	if (comm == NULL || comm->info.flags & COMM_FLAG_FINALIZED)
		return false;
	return (i + 1 == process->flight_count || flight[1].op.comm != flight->op.comm) &&
	       last_ns != 0 && entry->now_ns >= last_ns + PS_QUIET_NS &&
	       flight_since_ns(flight) + PS_QUIET_NS >= last_ns;
}

/* Counts recorded ranks that have not called this collective: then it is not finished. */
static uint32_t count_absent(const struct recording *recording, const struct ps_entry *entry)
{
	const struct op_record *op = &entry->flight->op;
	uint32_t absent = 0;

	if (!op_is_collective(op->function) || op->match == 0 || op->flags & OP_FLAG_REPLAY)
		return 0;
	for (size_t p = 0; p < recording->count; p++) {
		const struct recording_process *process = recording->processes[p];

		for (size_t c = 0; c < process->comm_count && !is_dead(process); c++) {
			const struct recording_comm *comm = &process->comms[c];

			absent += comm->info.hash == entry->hash && comm->has_counts &&
				  !(comm->info.flags & COMM_FLAG_FINALIZED) && !comm->is_unplaced &&
				  comm->counts.collectives < op->match;
		}
	}
	return absent;
}

static void add_flights(struct ps_list *list, const struct recording *recording,
			struct ps_entry *entry, bool has_unseen)
{
	const struct recording_process *process = entry->process;
	uint8_t *kinds = cli_realloc(NULL, process->flight_count + 1);
	uint64_t last_ns = recording_last_call_ns(process);

	flight_kinds(process, kinds);
	for (size_t i = 0; i < process->flight_count; i++) {
		const struct recording_flight *flight = &process->flights[i];
		const struct recording_comm *comm = recording_comm(process, flight->op.comm);
		uint64_t since_ns = flight_since_ns(flight);

		entry->hash = comm ? comm->info.hash : 0;
		entry->rank = comm ? comm->info.rank : -1;
		entry->flight = flight;
		entry->kind = kinds[i];
		entry->age_ns = entry->now_ns > since_ns ? entry->now_ns - since_ns : 0;
		entry->is_last_call =
			entry->kind == FLIGHT_UNSEEN && is_last_call(entry, i, last_ns);
		entry->absent = entry->is_last_call ? count_absent(recording, entry) : 0;
		list->unseen += entry->kind == FLIGHT_UNSEEN;
		if (entry->kind == FLIGHT_OPEN || entry->is_last_call ||
		    (entry->kind == FLIGHT_UNSEEN && has_unseen))
			add_entry(list, entry);
		else
			list->unlisted += entry->kind == FLIGHT_UNSEEN;
	}
	free(kinds);
}

static void add_process(struct ps_list *list, const struct recording *recording, uint32_t number,
			bool has_unseen)
{
	const struct recording_process *process = recording->processes[number];
	struct ps_entry entry = { .process = process, .number = number };

	entry.is_live = !is_dead(process) && recording_now(process, &entry.now_ns);
	if (!entry.is_live)
		entry.now_ns = recording_last_ns(process);
	if (process->proxy_count > 0 && list->filter == NULL) {
		if (!list_grow(&list->carriers, list->carrier_count, sizeof(*list->carriers)))
			cli_no_memory();
		list->carriers[list->carrier_count++] =
			(struct ps_carrier){ process, entry.now_ns };
	}
	add_flights(list, recording, &entry, has_unseen);
}

static int by_operation(const struct ps_entry *a, const struct ps_entry *b)
{
	return ORDER(a->hash, b->hash) ?: ORDER(a->flight->op.number, b->flight->op.number);
}

static int compare_groups(const void *left, const void *right)
{
	const struct ps_entry *a = left, *b = right;

	return by_operation(a, b) ?: ORDER(b->age_ns, a->age_ns);
}

static int oldest_first(const void *left, const void *right)
{
	const struct ps_entry *a = left, *b = right;

	return ORDER(b->group_age_ns, a->group_age_ns) ?:
	       by_operation(a, b) ?:
	       ORDER((uint64_t)(a->rank + 1), (uint64_t)(b->rank + 1));
}

static void ps_list_sort(struct ps_list *list)
{
	if (list->count == 0)
		return;
	qsort(list->entries, list->count, sizeof(*list->entries), compare_groups);
	for (size_t i = 0; i < list->count; i++) {
		struct ps_entry *entry = &list->entries[i];
		bool is_first = i == 0 || by_operation(entry - 1, entry) != 0;

		entry->group_age_ns = is_first ? entry->age_ns : entry[-1].group_age_ns;
	}
	qsort(list->entries, list->count, sizeof(*list->entries), oldest_first);
}

static void ps_list_make(struct ps_list *list, const struct job *job, const struct filter *filter,
			 bool has_unseen, bool has_dead)
{
	const struct recording *recording = job->recording;

	*list = (struct ps_list){ .job = job, .filter = filter };
	for (uint32_t i = 0; i < recording->count; i++) {
		if (is_dead(recording->processes[i]) && !has_dead) {
			list->dead++;
			continue;
		}
		list->processes++;
		add_process(list, recording, i, has_unseen);
	}
	ps_list_sort(list);
}

static void ps_list_release(struct ps_list *list)
{
	free(list->entries);
	list->entries = NULL;
	free(list->carriers);
	list->carriers = NULL;
}

/* State of its kernel, or why it is unknown; "" if there is nothing to print. */
static const char *ps_words_kernel(const struct ps_entry *entry, char words[static PS_WORDS])
{
	if (entry->kind != FLIGHT_UNSEEN)
		return flight_words_kernel(entry->process, entry->flight, words);
	if (entry->absent > 0)
		text_format(words, PS_WORDS,
			    "not timed; %" PRIu32
			    " rank%s of its communicator here %s not called it",
			    entry->absent, entry->absent == 1 ? "" : "s",
			    entry->absent == 1 ? "has" : "have");
	else if (entry->is_last_call)
		text_copy(words, PS_WORDS,
			  "not timed: it hangs, or it is over and the process calls nothing more");
	else
		text_copy(words, PS_WORDS, "not timed: NCCL does not show its end here");
	return words;
}

static uint64_t ps_words_waiting_ns(const struct flight_wait *wait, uint64_t now_ns)
{
	return now_ns > wait->since_ns ? now_ns - wait->since_ns : 0;
}

/* "waits for data from rank 2 on channels 0-3 for 12.3 s, 24 of 128 transfers done". */
static const char *ps_words_wait(const struct flight_wait *wait, uint64_t now_ns,
				 char words[static PS_WORDS])
{
	char what[FLIGHT_WORDS], time[UNITS_TEXT], steps[64] = "";

	if (wait->steps > 0)
		text_format(steps, sizeof(steps), ", %" PRIu64 " of %" PRIu64 " transfers done",
			    wait->steps_done, wait->steps);
	text_format(words, PS_WORDS, "%s for %s%s", flight_words_wait(wait, what),
		    units_duration(time, ps_words_waiting_ns(wait, now_ns)), steps);
	return words;
}

struct request {
	struct cli_input input;
	struct report_filter chosen;
	bool is_json;
	bool has_all; /* a row for each rank, and operations that may have ended */
	bool has_dead;
};

static const struct cli_option options[] = {
	CLI_OPTION_JSON(struct request),
	{ 'a', "all", NULL,
	  "a row for every rank, and operations whose end NCCL does not show, over or not",
	  CLI_FLAG(struct request, has_all) },
	{ 0, "dead", NULL,
	  "also show what dead processes of this host had in flight (always with PATH)",
	  CLI_FLAG(struct request, has_dead) },
	CLI_OPTIONS_PROCESSES(struct request),
	CLI_OPTIONS_SHOWING,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside ps", "what is in flight on this host, oldest first" },
	{ "ringside ps @4711", "what one process is doing" },
	{ "ringside ps traces/", "what was in flight when the recorded processes died" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "ps",
	.operands = "[PATH...]",
	.about =
		"Lists operations in flight, oldest first: age, operation, communicator and rank, "
		"and state: issued (called), launched (its kernel was enqueued) or running. Ranks "
		"in the same operation and state are one row. Notes below a row show what it waits "
		"for, by peer and channel, where the network shows it.\n"
		"Where NCCL does not show when operations end, the last call on a communicator is "
		"listed as not timed once the process has called nothing for 5 s.\n" CLI_INPUT_ABOUT
			CLI_INPUT_NONE "\n",
	.options = options,
	CLI_OPERANDS(struct request, input, cli_input_take),
	.examples = examples,
};

/*
 * Ranks in the same operation and state are one row: of thousands of ranks, most wait for a few. `entry` is the
 * oldest one.
 */
struct ps_group {
	const struct ps_entry *entry;
	const struct ps_entry **members; /* by rank */
	size_t count;
};

static void add_row(struct table *table, const struct ps_group *group)
{
	const struct ps_entry *entry = group->entry;
	const struct op_record *op = &entry->flight->op;
	const struct recording_comm *comm = recording_comm(entry->process, op->comm);
	char what[PS_WORDS], name[RECORDED_COMM_TEXT], number[UNITS_TEXT];

	table_cellf(table, "%s%s", entry->is_live || entry->process->is_snapshot ? "" : ">",
		    units_duration(number, entry->age_ns));
	table_cell(table, flight_words_operation(entry->process, entry->flight, what));
	table_cell(table, op->bytes == OP_BYTES_UNKNOWN ? "?" : units_bytes(number, op->bytes));
	table_cell(table, op->datatype == 0 ? "?"
					    : recording_name(entry->process, OP_NAMES_DATATYPE,
							     op->datatype));
	if (op->algorithm == 0)
		table_cell(table, "-");
	else
		table_cellf(table, "%s/%s",
			    recording_name(entry->process, OP_NAMES_ALGORITHM, op->algorithm),
			    recording_name(entry->process, OP_NAMES_PROTOCOL, op->protocol));
	table_cell(table, recorded_comm_text(comm, name));
	if (group->count > 1)
		table_cellf(table, "%zu ranks", group->count);
	else if (comm == NULL || comm->info.rank < 0)
		table_cell(table, "?");
	else if (comm->info.nranks > 0)
		table_cellf(table, "%d/%d", comm->info.rank, comm->info.nranks);
	else
		table_cellf(table, "%d", comm->info.rank);
	table_cellf(table, "%" PRIu64, op->number);
	table_cell(table, op_state_name(op->state));
	if (group->count > 1)
		table_cell(table, "-");
	else
		table_cellf(table, "%" PRId64, recording_pid(entry->process));
}

static void take_waits(const struct recording_proxy *proxies, size_t proxy_count,
		       struct flight_wait **waits, size_t *count)
{
	if (flight_waits(proxies, proxy_count, waits, count) != OK)
		cli_no_memory();
}

static void add_notes(struct table *table, const struct ps_entry *entry)
{
	struct flight_wait *waits;
	char words[PS_WORDS];
	size_t count;

	if (ps_words_kernel(entry, words)[0])
		table_note(table, "%s", words);
	take_waits(entry->flight->proxies, entry->flight->proxy_count, &waits, &count);
	for (size_t i = 0; i < count; i++)
		table_note(table, "%s", ps_words_wait(&waits[i], entry->now_ns, words));
	free(waits);
}

/* "ranks 0-20,22-63 of 64" */
static void note_ranks(struct table *table, const struct ps_group *group)
{
	const struct recording_comm *comm =
		recording_comm(group->entry->process, group->entry->flight->op.comm);
	char words[PS_WORDS], all[32] = "";
	size_t used = 0, i = 0;

	words[0] = '\0';
	while (i < group->count && used + 32 < sizeof(words)) {
		int32_t first = group->members[i]->rank, last = first;

		for (i++; i < group->count && group->members[i]->rank <= last + 1; i++)
			last = group->members[i]->rank;
		text_format(words + used, sizeof(words) - used, "%s%d", used ? "," : "", first);
		used = strlen(words);
		if (last > first)
			text_format(words + used, sizeof(words) - used, "-%d", last);
		used = strlen(words);
	}
	if (comm != NULL && comm->info.nranks > 0)
		text_format(all, sizeof(all), " of %d", comm->info.nranks);
	table_note(table, "ranks %s%s%s", words, i < group->count ? ",..." : "", all);
}

/* The longest wait for this reason in the group; *ranks: how many ranks have one. */
static const struct ps_entry *find_longest(const struct ps_group *group, unsigned int reason,
					   struct flight_wait *longest, size_t *ranks)
{
	const struct ps_entry *found = NULL, *counted = NULL;
	uint64_t longest_ns = 0;

	*ranks = 0;
	for (size_t i = 0; i < group->count; i++) {
		const struct ps_entry *entry = group->members[i];
		struct flight_wait *waits;
		size_t count;

		take_waits(entry->flight->proxies, entry->flight->proxy_count, &waits, &count);
		for (size_t j = 0; j < count; j++) {
			uint64_t ns = ps_words_waiting_ns(&waits[j], entry->now_ns);

			if ((unsigned int)waits[j].reason != reason)
				continue;
			*ranks += counted != entry;
			counted = entry;
			if (found != NULL && ns <= longest_ns)
				continue;
			found = entry;
			longest_ns = ns;
			*longest = waits[j];
		}
		free(waits);
	}
	return found;
}

static void add_group_notes(struct table *table, const struct ps_group *group)
{
	const struct ps_entry *waiting;
	struct flight_wait wait;
	char words[PS_WORDS], others[PS_WORDS];
	bool is_same = true;
	size_t ranks;

	if (group->count == 1) {
		add_notes(table, group->entry);
		return;
	}
	note_ranks(table, group);
	ps_words_kernel(group->entry, words);
	for (size_t i = 0; i < group->count && is_same; i++)
		is_same = strcmp(words, ps_words_kernel(group->members[i], others)) == 0;
	if (words[0])
		table_note(table, "%s%s", is_same ? "" : "longest: ", words);
	/* One line per reason: the rare one is what the others wait for. */
	for (unsigned int reason = 0; reason < FLIGHT_REASONS; reason++) {
		waiting = find_longest(group, reason, &wait, &ranks);
		if (waiting != NULL)
			table_note(table, "%zu %s, longest: rank %d %s", ranks,
				   text_which(ranks, "rank", "ranks"), waiting->rank,
				   ps_words_wait(&wait, waiting->now_ns, words));
	}
}

static bool is_same_group(const struct ps_entry *a, const struct ps_entry *b)
{
	return a->hash != 0 && by_operation(a, b) == 0 && a->kind == b->kind &&
	       a->is_live == b->is_live && a->absent == b->absent &&
	       a->is_last_call == b->is_last_call && a->flight->op.state == b->flight->op.state &&
	       a->flight->op.function == b->flight->op.function &&
	       a->flight->op.bytes == b->flight->op.bytes &&
	       a->flight->op.peer == b->flight->op.peer;
}

/* Entries of one operation are adjacent and sorted by rank, with other states in between. */
static void add_groups(struct table *table, const struct ps_list *list, bool has_all)
{
	bool *is_added = cli_realloc(NULL, list->count + 1);
	const struct ps_entry **members =
		cli_realloc(NULL, (list->count + 1) * sizeof(struct ps_entry *));

	memset(is_added, 0, list->count + 1);
	for (size_t i = 0; i < list->count; i++) {
		struct ps_group group = { &list->entries[i], members, 0 };

		for (size_t j = i; j < list->count && !is_added[i]; j++) {
			const struct ps_entry *entry = &list->entries[j];

			if (j > i && (has_all || by_operation(&list->entries[i], entry) != 0))
				break;
			if (j > i && (is_added[j] || !is_same_group(&list->entries[i], entry)))
				continue;
			is_added[j] = j > i;
			members[group.count++] = entry;
			if (entry->age_ns > group.entry->age_ns)
				group.entry = entry;
		}
		if (is_added[i])
			continue;
		add_row(table, &group);
		add_group_notes(table, &group);
	}
	free(members);
	free(is_added);
}

static void write_foreign(const struct ps_list *list, struct sink *sink, unsigned int width)
{
	struct flight_wait *waits;
	char words[PS_WORDS], who[RECORDED_PROCESS_TEXT];
	size_t count;

	for (size_t i = 0; i < list->carrier_count; i++) {
		const struct ps_carrier *carrier = &list->carriers[i];

		sink_format(sink, "%s moves data for other processes, and there\n",
			    recorded_process_text(carrier->process, who));
		take_waits(carrier->process->proxies, carrier->process->proxy_count, &waits,
			   &count);
		for (size_t j = 0; j < count; j++)
			table_wrap(sink, ps_words_wait(&waits[j], carrier->now_ns, words), "      ",
				   6, width);
		free(waits);
	}
}

/* Narrow terminals get fewer columns, because lines would break within words. */
static void write_text(const struct ps_list *list, struct sink *sink, bool has_all)
{
	struct report_grid grid;

	report_grid_init(&grid);
	report_grid_column(&grid, "AGE", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "OPERATION", TABLE_LEFT, 0, 0);
	report_grid_column(&grid, "SIZE", TABLE_RIGHT, 0, 1);
	report_grid_column(&grid, "TYPE", TABLE_LEFT, 0, 3);
	report_grid_column(&grid, "ALGO", TABLE_LEFT, 4, 4);
	report_grid_column(&grid, "COMM", TABLE_LEFT, 6, 0);
	report_grid_column(&grid, "RANK", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "NUMBER", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "STATE", TABLE_LEFT, 0, 0);
	report_grid_column(&grid, "PID", TABLE_RIGHT, 0, 2);
	add_groups(&grid.table, list, has_all);
	if (report_grid_write(&grid, sink, cli_width(), NULL) == ERR_NO_SPACE)
		cli_no_memory();
	report_grid_release(&grid);
	write_foreign(list, sink, cli_width());
}

/* Remarks on what the table leaves out. */
static void write_remarks(const struct ps_list *list)
{
	bool has_snapshots = false, has_others = false;

	for (size_t i = 0; i < list->count; i++) {
		bool is_snapshot = list->entries[i].process->is_snapshot;

		has_snapshots |= is_snapshot;
		has_others |= !is_snapshot && !list->entries[i].is_live;
	}
	if (has_snapshots)
		cli_note("ages are as of the time of the snapshot");
	if (has_others)
		cli_note("processes that do not run here: ages are as of their last sign of "
			 "life and may be longer");
	if (list->count == 0 && list->processes > 0)
		cli_note("nothing in flight in %zu process%s", list->processes,
			 list->processes == 1 ? "" : "es");
	if (list->unlisted > 0)
		cli_note("%zu %soperation%s not timed, and NCCL does not show whether %s over; "
			 "--all "
			 "lists %s",
			 list->unlisted, list->unlisted < list->unseen ? "more " : "",
			 list->unlisted == 1 ? " is" : "s are",
			 list->unlisted == 1 ? "it is" : "they are",
			 list->unlisted == 1 ? "it" : "them");
	if (list->dead > 0)
		cli_note("%zu dead process%s left out; --dead shows %s", list->dead,
			 list->dead == 1 ? " is" : "es are", list->dead == 1 ? "it" : "them");
}

static void put_channels(struct json *json, const char *key, const uint64_t bits[4])
{
	json_put_array(json, key);
	for (unsigned int channel = 0; channel < 256; channel++)
		if (bits[channel / 64] >> (channel % 64) & 1)
			json_unsigned(json, channel);
	json_end(json);
}

static void put_waits(struct json *json, const struct recording_proxy *proxies, size_t proxy_count,
		      uint64_t now_ns)
{
	struct flight_wait *waits;
	char words[PS_WORDS];
	size_t count;

	take_waits(proxies, proxy_count, &waits, &count);
	json_put_array(json, "waits");
	for (size_t i = 0; i < count; i++) {
		json_object(json);
		json_put_string(json, "reason", flight_reason_name(waits[i].reason));
		json_put_number_or_null(json, "peer", waits[i].peer);
		put_channels(json, "channels", waits[i].channels);
		json_put_unsigned(json, "since_ns", waits[i].since_ns);
		json_put_unsigned(json, "waiting_ns", ps_words_waiting_ns(&waits[i], now_ns));
		json_put_unsigned(json, "steps_done", waits[i].steps_done);
		json_put_unsigned(json, "steps", waits[i].steps);
		json_put_string(json, "text", ps_words_wait(&waits[i], now_ns, words));
		json_end(json);
	}
	json_end(json);
	free(waits);
}

/* Network operations on behalf of other processes of the machine, whose recordings have the rest. */
static void put_foreign(struct json *json, const struct ps_list *list)
{
	json_put_array(json, "foreign");
	for (size_t i = 0; i < list->carrier_count; i++) {
		const struct ps_carrier *carrier = &list->carriers[i];

		json_object(json);
		recorded_process_json(json, carrier->process);
		put_waits(json, carrier->process->proxies, carrier->process->proxy_count,
			  carrier->now_ns);
		json_end(json);
	}
	json_end(json);
}

static void write_json(const struct cli_input *input, const struct ps_list *list, struct sink *sink)
{
	struct json json;

	json_begin(&json, sink);
	json_put_array(&json, "operations");
	for (size_t i = 0; i < list->count; i++) {
		const struct ps_entry *entry = &list->entries[i];

		json_object(&json);
		recorded_op_json(&json, entry->process, &entry->flight->op);
		json_put_bool(&json, "is_end_visible", entry->kind == FLIGHT_OPEN);
		json_put_bool(&json, "is_last_call", entry->is_last_call);
		json_put_unsigned(&json, "ranks_absent", entry->absent);
		json_put_bool(&json, "is_live", entry->is_live);
		json_put_unsigned(&json, "age_ns", entry->age_ns);
		put_channels(&json, "kernel_started", entry->flight->started);
		put_channels(&json, "kernel_stopped", entry->flight->stopped);
		put_waits(&json, entry->flight->proxies, entry->flight->proxy_count, entry->now_ns);
		json_end(&json);
	}
	json_end(&json);
	put_foreign(&json, list);
	json_put_unsigned(&json, "processes", list->processes);
	json_put_unsigned(&json, "processes_dead", list->dead);
	json_put_unsigned(&json, "operations_unseen", list->unseen);
	report_json_put_troubles(&json, &input->recording);
	json_finish(&json);
}

static int ps_show(void *context)
{
	struct request *request = context;
	struct cli_input *input = &request->input;
	const struct filter *filter = &request->chosen.filter;
	struct ps_list list;
	struct sink sink;
	struct job job;
	int exit_code, complaint;

	if (recording_find_flights(&input->recording) == ERR_NO_SPACE)
		cli_no_memory();
	complaint = cli_input_complain(input, false);
	input->has_last_run = true;
	exit_code = cli_input_choose(input, &request->chosen, &page);
	if (exit_code != 0)
		return exit_code;
	if (job_make(&job, &input->recording) != OK)
		cli_no_memory();
	ps_list_make(&list, &job, filter_is_empty(filter) ? NULL : filter, request->has_all,
		     request->has_dead || input->path_count > 0);
	cli_begin(&sink, request->is_json);
	if (request->is_json)
		write_json(input, &list, &sink);
	else if (input->recording.count > 0)
		write_text(&list, &sink, request->has_all);
	exit_code = cli_finish(&sink, complaint);
	if (!request->is_json)
		write_remarks(&list);
	ps_list_release(&list);
	job_release(&job);
	return exit_code;
}

int cmd_ps(int argc, char **argv)
{
	struct request request = { .is_json = false };

	return cli_input_command(&page, &request, 0, NULL, ps_show, argc, argv);
}
