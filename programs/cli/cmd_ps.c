#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"
#include "programs/cli/cli_commands.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_input.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/cli_op.h"
#include "programs/cli/cli_options.h"
#include "programs/cli/cli_process.h"
#include "programs/cli/ps_list.h"
#include "programs/cli/ps_words.h"
#include "view/flight_words.h"
#include "view/json.h"
#include "view/report_json.h"
#include "view/table.h"

enum { PS_DEAD = CLI_LONG_ONLY };

static const struct cli_option options[] = {
	CLI_OPTION_JSON,
	{ 'a', "all", NULL, "all operations whose end NCCL does not show, over or not" },
	{ PS_DEAD, "dead", NULL,
	  "also what dead processes of this machine had in flight (always with PATH)" },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside ps", "what is in flight on this machine, oldest first" },
	{ "ringside ps @4711", "what one process is doing" },
	{ "ringside ps traces/", "what was in flight when the recorded processes died" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "ps",
	.operands = "[PATH...]",
	.about =
		"Lists operations in flight, oldest first: age, what it is, its communicator with "
		"the rank there, and its state: issued (the call was made), launched (its kernel "
		"was enqueued) or running. Below it stands what it waits for, by peer and channel, "
		"where the network shows it. Where NCCL does not show whether operations end, the "
		"last call on a communicator is listed, as not timed, when the process has called "
		"nothing for 5 s.\n" CLI_INPUT_ABOUT CLI_INPUT_NONE "\n",
	.options = options,
	.examples = examples,
};

static void add_row(struct table *table, const struct ps_entry *entry)
{
	const struct op_record *op = &entry->flight->op;
	const struct recording_comm *comm = recording_comm(entry->process, op->comm);
	char what[PS_WORDS], name[CLI_COMM_TEXT], number[UNITS_TEXT];

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
	table_cell(table, cli_comm_text(comm, name));
	if (comm == NULL || comm->info.rank < 0)
		table_cell(table, "?");
	else if (comm->info.nranks > 0)
		table_cellf(table, "%d/%d", comm->info.rank, comm->info.nranks);
	else
		table_cellf(table, "%d", comm->info.rank);
	table_cellf(table, "%" PRIu64, op->number);
	table_cell(table, op_state_name(op->state));
	table_cellf(table, "%" PRId64,
		    entry->process->pid_here > 0 ? entry->process->pid_here : entry->process->pid);
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

static void write_foreign(const struct ps_list *list, struct sink *sink, unsigned int width)
{
	struct flight_wait *waits;
	char words[PS_WORDS], who[CLI_PROCESS_TEXT];
	size_t count;

	for (size_t i = 0; i < list->carrier_count; i++) {
		const struct ps_carrier *carrier = &list->carriers[i];

		sink_format(sink, "%s moves data for other processes, and there\n",
			    cli_process_text(carrier->process, who));
		take_waits(carrier->process->proxies, carrier->process->proxy_count, &waits,
			   &count);
		for (size_t j = 0; j < count; j++)
			table_wrap(sink, ps_words_wait(&waits[j], carrier->now_ns, words), "      ",
				   6, width);
		free(waits);
	}
}

static void write_text(const struct ps_list *list, struct sink *sink)
{
	static const struct table_column columns[] = {
		{ "AGE", TABLE_RIGHT, 0 },  { "OPERATION", TABLE_LEFT, 0 },
		{ "SIZE", TABLE_RIGHT, 0 }, { "TYPE", TABLE_LEFT, 0 },
		{ "ALGO", TABLE_LEFT, 4 },  { "COMM", TABLE_LEFT, 6 },
		{ "RANK", TABLE_RIGHT, 0 }, { "NUMBER", TABLE_RIGHT, 0 },
		{ "STATE", TABLE_LEFT, 0 }, { "PID", TABLE_RIGHT, 0 },
	};
	struct table *table = table_new(columns, ARRAY_LENGTH(columns));

	if (table == NULL)
		cli_no_memory();
	for (size_t i = 0; i < list->count; i++) {
		add_row(table, &list->entries[i]);
		add_notes(table, &list->entries[i]);
	}
	if (table_write(table, sink, cli_width()) == ERR_NO_SPACE)
		cli_no_memory();
	table_free(table);
	write_foreign(list, sink, cli_width());
}

/* What the table does not say, for people. */
static void write_remarks(const struct ps_list *list)
{
	bool has_snapshots = false, has_others = false;

	for (size_t i = 0; i < list->count; i++) {
		bool is_snapshot = list->entries[i].process->is_snapshot;

		has_snapshots |= is_snapshot;
		has_others |= !is_snapshot && !list->entries[i].is_live;
	}
	if (has_snapshots)
		cli_error("ages in a snapshot count to the moment it was made");
	if (has_others)
		cli_error("ages of processes that do not run here count to their last sign of "
			  "life: it may have been longer");
	if (list->count == 0 && list->processes > 0)
		cli_error("nothing is in flight in %zu process%s", list->processes,
			  list->processes == 1 ? "" : "es");
	if (list->unlisted > 0)
		cli_error("%zu %soperation%s not timed, and NCCL does not show whether %s over; "
			  "--all "
			  "lists %s",
			  list->unlisted, list->unlisted < list->unseen ? "more " : "",
			  list->unlisted == 1 ? " is" : "s are",
			  list->unlisted == 1 ? "it is" : "they are",
			  list->unlisted == 1 ? "it" : "them");
	if (list->dead > 0)
		cli_error("%zu dead process%s left out; --dead shows %s", list->dead,
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
		cli_json_number_or_null(json, "peer", waits[i].peer);
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

/* Network operations for other processes of the machine, whose own recordings have the rest. */
static void put_foreign(struct json *json, const struct ps_list *list)
{
	json_put_array(json, "foreign");
	for (size_t i = 0; i < list->carrier_count; i++) {
		const struct ps_carrier *carrier = &list->carriers[i];

		json_object(json);
		cli_process_json(json, carrier->process);
		put_waits(json, carrier->process->proxies, carrier->process->proxy_count,
			  carrier->now_ns);
		json_end(json);
	}
	json_end(json);
}

static void write_json(const struct cli_input *input, const struct ps_list *list, struct sink *sink)
{
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_array(&json, "operations");
	for (size_t i = 0; i < list->count; i++) {
		const struct ps_entry *entry = &list->entries[i];

		json_object(&json);
		cli_op_json(&json, entry->process, &entry->flight->op);
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
	json_end(&json);
	json_line(&json);
}

static int show(const struct cli_input *input, bool is_json, bool has_unseen, bool has_dead)
{
	int exit_code = cli_input_complain(input, false) ? CLI_EXIT_TROUBLE : CLI_EXIT_DONE;
	struct ps_list list;
	struct sink sink;

	ps_list_make(&list, &input->recording, has_unseen, has_dead || input->path_count > 0);
	sink_init_fd(&sink, STDOUT_FILENO);
	if (is_json)
		write_json(input, &list, &sink);
	else
		write_text(&list, &sink);
	exit_code = cli_finish(&sink, exit_code);
	if (!is_json)
		write_remarks(&list);
	if (!is_json && input->recording.count == 0 && input->path_count == 0)
		cli_input_nothing();
	ps_list_release(&list);
	return exit_code;
}

int cmd_ps(int argc, char **argv)
{
	bool is_json = false, has_unseen = false, has_dead = false;
	struct cli_input input;
	struct cli_args args;
	int found, exit_code;

	cli_input_init(&input);
	cli_args_init(&args, &page, argc, argv);
	while ((found = cli_next(&args)) != CLI_END && found != CLI_STOP) {
		if (found == CLI_OPERAND)
			cli_input_path(&input, args.value);
		is_json |= found == 'j';
		has_unseen |= found == 'a';
		has_dead |= found == PS_DEAD;
	}
	if (found == CLI_STOP)
		exit_code = args.exit_code;
	else if ((exit_code = cli_input_read(&input, 0)) == 0) {
		if (recording_find_flights(&input.recording) == ERR_NO_SPACE)
			cli_no_memory();
		exit_code = show(&input, is_json, has_unseen, has_dead);
	}
	cli_input_release(&input);
	return exit_code;
}
