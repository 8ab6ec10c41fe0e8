#include <inttypes.h>
#include <string.h>

#include "common/attributes.h"
#include "common/nccl_interface.h"
#include "common/text.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/cli_process.h"
#include "programs/cli/verify_show.h"
#include "recording/recording.h"
#include "view/table.h"

static const struct table_column columns[] = {
	{ "RANK", TABLE_RIGHT, 0 },	 { "PID", TABLE_RIGHT, 0 },
	{ "COMM", TABLE_LEFT, 6 },	 { "ISSUED", TABLE_RIGHT, 0 },
	{ "RECORDED", TABLE_RIGHT, 0 },	 { "TIMED", TABLE_RIGHT, 0 },
	{ "IN FLIGHT", TABLE_RIGHT, 0 }, { "MISSING", TABLE_RIGHT, 0 },
	{ "UNTRUSTED", TABLE_RIGHT, 0 }, { "READABLE", TABLE_RIGHT, 0 },
};

static void add_count(struct table *table, uint64_t count, bool is_known)
{
	char number[UNITS_TEXT];

	table_cell(table, is_known ? units_count(number, count) : "?");
}

static void add_who(struct table *table, const struct recording_process *process)
{
	if (process->rank < 0)
		table_cell(table, "-");
	else
		table_cellf(table, "%" PRId64, process->rank);
	table_cellf(table, "%" PRId64, process->pid);
}

static void add_comm_row(struct table *table, const struct recording_process *process,
			 const struct recording_account_comm *comm)
{
	char name[CLI_COMM_TEXT];

	add_who(table, process);
	table_cell(table, cli_comm_text(recording_comm(process, comm->id), name));
	add_count(table, comm->issued, comm->has_counts);
	add_count(table, comm->recorded, comm->has_counts);
	add_count(table, comm->timed, comm->has_counts);
	add_count(table, comm->in_flight, true);
	if (comm->has_counts)
		table_cellf(table, "%" PRId64, comm->missing);
	else
		table_cell(table, "?");
	add_count(table, comm->untrusted, comm->has_counts);
	add_count(table, comm->kept, true);
}

static void add_empty_row(struct table *table, const struct recording_process *process)
{
	add_who(table, process);
	table_cell(table, "none");
	for (size_t i = 3; i < ARRAY_LENGTH(columns); i++)
		table_cell(table, "-");
}

static void add_source_notes(struct table *table, const struct recording_process *process)
{
	char size[UNITS_TEXT], count[UNITS_TEXT];

	if (process->region_path)
		table_note(table, "region: %s", process->region_path);
	if (process->foreign)
		table_note(table, "log: %s, %s, %s operations, %s", process->foreign->path,
			   units_bytes(size, process->foreign->bytes),
			   units_count(count, process->foreign->records), process->foreign->format);
	for (size_t i = 0; i < process->file_count; i++) {
		const struct recording_file *file = &process->files[i];

		table_note(table, "trace: %s, %s, %s operations, %s", file->path,
			   units_bytes(size, file->bytes), units_count(count, file->records),
			   file->is_snapshot		      ? "snapshot"
			   : file->is_closed		      ? "closed"
			   : process->life == RECORDING_ALIVE ? "being written"
							      : "cut");
	}
}

static void add_kernel_note(struct table *table, const struct recording_process *process)
{
	char is_on[8], reason[RECORDING_REASON];
	bool is_off;

	recording_kernel_events(process, is_on, reason);
	is_off = strcmp(is_on, "off") == 0;
	if (is_on[0] != '\0')
		table_note(table, "kernel events are %s%s%s%s%s", is_on, reason[0] ? ": " : "",
			   reason, is_off ? "; so " : "", is_off ? op_kernel_events_missed() : "");
}

static void add_process(struct table *table, const struct verify_process *of)
{
	const struct recording_process *process = of->process;

	for (size_t i = 0; i < of->account.comm_count; i++)
		add_comm_row(table, process, &of->account.comms[i]);
	if (of->account.comm_count == 0)
		add_empty_row(table, process);
	table_note(table, "%s, mode %s, NCCL %s", recording_life_name(process->life),
		   process->mode[0] ? process->mode : "unknown",
		   op_interface_releases(process->interface));
	add_source_notes(table, process);
	for (size_t i = 0; i < of->note_count; i++)
		table_note(table, "%s%s", of->notes[i].weight == VERIFY_TROUBLE ? "trouble: " : "",
			   of->notes[i].text);
	add_kernel_note(table, process);
}

static void write_summary(const struct verify *verify, struct sink *sink, unsigned int width)
{
	uint64_t issued = 0, recorded = 0, in_flight = 0;
	char a[UNITS_TEXT], b[UNITS_TEXT], c[UNITS_TEXT], line[320];
	size_t running = 0;

	if (verify->first_trouble) {
		table_wrap(sink, verify->first_trouble, "trouble: ", 9, width);
		return;
	}
	for (size_t i = 0; i < verify->count; i++) {
		issued += verify->processes[i].account.issued;
		recorded += verify->processes[i].account.recorded;
		in_flight += verify->processes[i].account.in_flight;
		running += verify->processes[i].process->life == RECORDING_ALIVE;
	}
	text_format(line, sizeof(line),
		    "nothing is missing%s: %zu process%s, %s operations issued, %s recorded, %s in "
		    "flight",
		    running ? " so far" : "", verify->count, verify->count == 1 ? "" : "es",
		    units_count(a, issued), units_count(b, recorded), units_count(c, in_flight));
	table_wrap(sink, line, "", 0, width);
}

/* All but the first, which stands in the summary; a cut is said with its process. */
static void write_file_troubles(const struct verify *verify, struct sink *sink)
{
	const struct recording *recording = &verify->input->recording;
	bool is_first = true;

	for (size_t i = 0; i < recording->trouble_count; i++) {
		const struct recording_trouble *trouble = &recording->troubles[i];

		if (trouble->kind == RECORDING_CUT || !cli_input_is_trouble(verify->input, trouble))
			continue;
		if (!is_first)
			sink_format(sink, "trouble: %s: %s\n", trouble->path, trouble->what);
		is_first = false;
	}
	if (recording->troubles_left_out > 0)
		sink_format(sink, "and %zu more of such\n", recording->troubles_left_out);
	if (recording->files_foreign > 0 && recording->count > 0)
		sink_format(sink, "%zu file%s neither trace nor region\n", recording->files_foreign,
			    recording->files_foreign == 1 ? " is" : "s are");
}

static void write_blind(const struct verify *verify, struct sink *sink, unsigned int width)
{
	for (unsigned int version = 1; version <= OP_INTERFACES; version++) {
		if (!verify_has_interface(verify, version))
			continue;
		sink_format(sink, "\nNCCL %s does not show:\n", op_interface_releases(version));
		for (size_t i = 0; op_blind_spot(version, i) != NULL; i++)
			table_wrap(sink, op_blind_spot(version, i)->sentence, "  - ", 4, width);
	}
}

void verify_show_text(const struct verify *verify, struct sink *sink, unsigned int width)
{
	struct table *table = table_new(columns, ARRAY_LENGTH(columns));

	if (table == NULL)
		cli_no_memory();
	write_summary(verify, sink, width);
	write_file_troubles(verify, sink);
	for (size_t i = 0; i < verify->count; i++)
		add_process(table, &verify->processes[i]);
	if (verify->count > 0)
		sink_text(sink, "\n");
	if (table_write(table, sink, width) == ERR_NO_SPACE)
		cli_no_memory();
	table_free(table);
	write_blind(verify, sink, width);
}
