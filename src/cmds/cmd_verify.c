/* `ringside verify`: is a recording complete, and what does NCCL not show? */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "common/attributes.h"
#include "common/nccl_interface.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "output/recorded.h"
#include "output/report.h"
#include "output/table.h"
#include "recording/recording.h"

/* Results of `verify` for a process, and their severity. */

enum verify_weight {
	VERIFY_FACT = 0,    /* information */
	VERIFY_REMARK = 1,  /* trouble with --strict */
	VERIFY_TROUBLE = 2, /* something is missing or damaged */
};

struct verify_note {
	enum verify_weight weight;
	char *text;
};

struct verify_process {
	const struct recording_process *process;
	struct recording_account account;
	enum status status; /* result of reading its operations */
	struct verify_note *notes;
	size_t note_count;
};

struct verify {
	const struct cli_input *input;
	struct verify_process *processes;
	size_t count;
	char *first_trouble; /* NULL: none */
};

/* The result of `verify`, as text and as JSON. */

/* "2.24-2.26", of interface versions. */
enum { VERIFY_RELEASES = 40 };

/* Why operations were lost: "overwritten before ...". NULL past the table. */
static const char *verify_lost_words(unsigned int reason)
{
	static const char *const words[] = {
		[LOST_NO_COMM] = "more communicators existed than the region has room for",
		[LOST_RING_BUSY] = "the ring wrapped around during a write",
		[LOST_RING_OVERRUN] =
			"overwritten in the ring before the trace thread read them; a "
			"larger RINGSIDE_BUFFER helps",
		[LOST_QUOTA] = "the trace file reached its quota; see RINGSIDE_QUOTA",
		[LOST_NO_SPACE] = "the disk of the trace file was full",
		[LOST_WRITE_ERROR] = "the trace file could not be written",
		[LOST_OFF] = "called while recording was switched off",
		[LOST_DETAIL_OVERRUN] =
			"details were overwritten before the trace thread read them",
		[LOST_DETAIL_QUOTA] = "details were not written: quota, full disk or write error",
		[LOST_PROXY_SLOT] = "proxy operations were not followed: their table was full",
		[LOST_TOTALS] = "operations were added up under 'other': the table of totals was "
				"full",
		[LOST_LATE_CHILD] =
			"kernel or network events arrived after their operation was released",
		[LOST_INSPECTOR] =
			"operations are not in NCCL Inspector's file: it could not be written "
			"in time",
		[LOST_NOT_SHOWN] =
			"not reported by NCCL: something else switched profiler events off "
			"for a while",
	};

	return reason < ARRAY_LENGTH(words) ? words[reason] : NULL;
}

static const char *verify_odd_words(unsigned int reason)
{
	static const char *const words[] = {
		[ODD_NULL_HANDLE] = "events without a handle",
		[ODD_STALE_HANDLE] = "events for operations that were already released",
		[ODD_FOREIGN_HANDLE] = "events with unknown handles",
		[ODD_UNKNOWN_CONTEXT] = "events for unknown communicators",
		[ODD_NULL_DESCRIPTOR] = "events without a descriptor",
		[ODD_UNKNOWN_EVENT] = "events of an unknown kind",
		[ODD_UNKNOWN_STATE] = "unknown states",
		[ODD_REPEATED_STOP] = "events stopped more than once",
		[ODD_REPEATED_START] = "transfers started more than once",
		[ODD_REPEATED_STATE] = "repeated states of transfers",
		[ODD_FOREIGN_PROCESS] = "proxy operations for other processes",
		[ODD_CHANNEL] = "channels of communicators with rejected GPU timestamps",
	};

	return reason < ARRAY_LENGTH(words) ? words[reason] : NULL;
}

static char *verify_format(const char *text, va_list values)
{
	char *made = NULL;

	if (vasprintf(&made, text, values) == -1)
		cli_no_memory();
	return made;
}

static void verify_add_note(struct verify_process *of, enum verify_weight weight, const char *text,
			    ...) PRINTF_LIKE(3, 4);

static void verify_add_note(struct verify_process *of, enum verify_weight weight, const char *text,
			    ...)
{
	va_list values;

	of->notes = cli_realloc(of->notes, (of->note_count + 1) * sizeof(*of->notes));
	va_start(values, text);
	of->notes[of->note_count++] = (struct verify_note){ weight, verify_format(text, values) };
	va_end(values);
}

/* "1 operation was", "2 operations were" */
#define WERE(count) (count) == 1 ? " was" : "s were"

static void judge_counts(struct verify_process *of)
{
	const struct recording_account *account = &of->account;

	if (!of->process->has_counts)
		verify_add_note(
			of, VERIFY_TROUBLE,
			"number of issued operations unknown: the file was truncated before its "
			"first counters");
	if (of->process->is_snapshot)
		verify_add_note(of, VERIFY_FACT,
				"a snapshot with the last %" PRIu64 " of %" PRIu64
				" recorded operations",
				account->kept, of->process->recorded);
	if (account->is_moving)
		verify_add_note(of, VERIFY_FACT,
				"running: counters were changing while they were read");
	if (account->is_moving || !of->process->has_counts)
		return;
	if (account->missing != 0)
		verify_add_note(of, VERIFY_TROUBLE,
				"%" PRId64
				" issued operations are neither recorded nor counted as lost",
				account->missing);
	if (!of->process->is_snapshot && !account->keeps_all && account->kept < account->recorded)
		verify_add_note(of, VERIFY_FACT,
				"mode %s keeps only the last operations: %" PRIu64 " of %" PRIu64
				" can be read",
				of->process->mode, account->kept, account->recorded);
	if (account->keeps_all && account->unread != 0)
		verify_add_note(of, VERIFY_TROUBLE,
				"%" PRId64 " recorded operations cannot be read back",
				account->unread);
}

/* Reasons differ for recordings of other tools. */
static const char *lost_words(const struct recording_process *process, unsigned int reason)
{
	char recorder[32];

	if (!recording_info(process, "recorder", recorder, sizeof(recorder)))
		return verify_lost_words(reason);
	switch (reason) {
	case LOST_RING_OVERRUN:
		return "overwritten in its recorder's ring before they were written";
	case LOST_OFF:
		return "counted by NCCL but not written by the recorder: too small, not "
		       "finished, or lost";
	default:
		return verify_lost_words(reason);
	}
}

/* Other recorders write no final counts, and NCCL's sequence numbers only cover earlier operations. */
static void judge_recorder(struct verify_process *of)
{
	char recorder[32];

	if (recording_info(of->process, "recorder", recorder, sizeof(recorder)))
		verify_add_note(of, VERIFY_REMARK,
				"recorded by %s: operations after its last record are unknown",
				recorder);
}

static void judge_losses(struct verify_process *of)
{
	uint64_t recovered = of->account.walk.recovered;

	for (unsigned int i = 0; i < LOST_REASONS; i++) {
		uint64_t count = of->process->lost[i];
		const char *words = lost_words(of->process, i);

		if (count == 0)
			continue;
		if (op_lost_is_whole(i))
			verify_add_note(of, VERIFY_TROUBLE, "%" PRIu64 " operation%s lost: %s",
					count, WERE(count),
					words ? words : "for a reason of a newer version");
		else
			verify_add_note(of, VERIFY_REMARK, "%" PRIu64 " %s", count,
					words ? words : "losses for a reason of a newer version");
	}
	if (of->account.lost_uncounted > 0)
		verify_add_note(of, VERIFY_TROUBLE,
				"%" PRIu64
				" operation%s lost: overwritten in the region before they reached "
				"the file, and not counted because the process was killed",
				of->account.lost_uncounted, WERE(of->account.lost_uncounted));
	if (recovered > 0)
		verify_add_note(of, VERIFY_FACT,
				"%" PRIu64
				" of the operations counted as lost are still in the region",
				recovered);
}

static void judge_damage(struct verify_process *of)
{
	const struct recording_walk *walk = &of->account.walk;

	if (of->status != OK)
		verify_add_note(of, VERIFY_TROUBLE, "its operations cannot be read: %s",
				status_reason(of->status));
	if (walk->damages > 0)
		verify_add_note(
			of, VERIFY_TROUBLE, "%" PRIu64 " %s%s of its %s cannot be read: damaged",
			walk->damages, of->process->foreign ? "line" : "block",
			walk->damages == 1 ? "" : "s", of->process->foreign ? "log" : "trace");
	if (walk->refused > 0)
		verify_add_note(of, VERIFY_TROUBLE, "%" PRIu64 " record%s damaged (%s)",
				walk->refused, walk->refused == 1 ? " is" : "s are",
				walk->problem ? walk->problem : "?");
	if (of->process->refused > 0)
		verify_add_note(of, VERIFY_TROUBLE, "%zu slots of its region are damaged",
				of->process->refused);
	if (walk->untimed > 0)
		verify_add_note(of, VERIFY_REMARK,
				"%" PRIu64 " record%s times that contradict each other",
				walk->untimed, walk->untimed == 1 ? " has" : "s have");
	if (walk->torn > 0 && of->process->life != RECORDING_ALIVE)
		verify_add_note(of,
				of->account.keeps_all && of->account.unread != 0 ? VERIFY_TROUBLE
										 : VERIFY_REMARK,
				"%" PRIu64 " record%s being written when it died", walk->torn,
				WERE(walk->torn));
	if (walk->repeated > 0)
		verify_add_note(of, VERIFY_REMARK, "%" PRIu64 " duplicate records, counted once",
				walk->repeated);
}

static const char *cut_words(enum recording_life life, bool is_whole)
{
	if (is_whole)
		return "the region has the rest";
	if (life == RECORDING_KILLED)
		return "its process was killed; later operations are unknown";
	return "its process was killed, or still runs on another machine";
}

/* A truncated file is harmless if the region has the rest. */
static void judge_files(struct verify_process *of)
{
	const struct recording_process *process = of->process;
	bool is_whole = process->region && of->account.is_exact;

	for (size_t i = 0; i < process->file_count; i++) {
		const struct recording_file *file = &process->files[i];

		if (file->is_closed || process->life == RECORDING_ALIVE ||
		    (file->is_snapshot && process->is_final))
			continue;
		verify_add_note(of, is_whole ? VERIFY_FACT : VERIFY_TROUBLE,
				"%s ends at byte %" PRIu64 " without its closing record: %s",
				file->path, file->cut_offset, cut_words(process->life, is_whole));
	}
	for (size_t i = 0; i < process->file_count; i++)
		if (process->files[i].unknown_blocks > 0)
			verify_add_note(of, VERIFY_REMARK,
					"%s has %" PRIu64 " blocks of a newer version",
					process->files[i].path, process->files[i].unknown_blocks);
}

static void judge_trust(struct verify_process *of)
{
	if (of->account.untrusted > 0)
		verify_add_note(of, VERIFY_REMARK,
				"%" PRIu64 " operation%s GPU timestamps that were rejected",
				of->account.untrusted,
				of->account.untrusted == 1 ? " has" : "s have");
	for (unsigned int i = 0; i < ODD_REASONS; i++)
		if (of->process->odd[i] > 0)
			verify_add_note(of, VERIFY_REMARK, "unexpected: %" PRIu64 " %s",
					of->process->odd[i],
					verify_odd_words(i) ? verify_odd_words(i)
							    : "for a reason of a newer version");
}

/* Messages of the recorder, which the user may not have seen. */
static void judge_messages(struct verify_process *of)
{
	char key[24], message[1024];

	for (unsigned int i = 1; text_format(key, sizeof(key), "message.%u", i) &&
				 recording_info(of->process, key, message, sizeof(message));
	     i++)
		verify_add_note(of, VERIFY_FACT, "message: %s", message);
}

static void verify_judge_process(struct verify_process *of)
{
	judge_damage(of);
	judge_counts(of);
	judge_losses(of);
	judge_recorder(of);
	judge_files(of);
	judge_trust(of);
	judge_messages(of);
}

static void set_first_trouble(struct verify *verify, const char *text, ...) PRINTF_LIKE(2, 3);

static void set_first_trouble(struct verify *verify, const char *text, ...)
{
	va_list values;

	if (verify->first_trouble)
		return;
	va_start(values, text);
	verify->first_trouble = verify_format(text, values);
	text_clean(verify->first_trouble);
	va_end(values);
}

/* Problems of files first: others may follow from them. */
static void find_first_trouble(struct verify *verify)
{
	const struct recording *recording = &verify->input->recording;
	char who[RECORDED_PROCESS_TEXT];

	for (size_t i = 0; i < recording->trouble_count; i++) {
		const struct recording_trouble *trouble = &recording->troubles[i];

		/* Truncation is judged with its process. */
		if (trouble->kind != RECORDING_CUT && cli_input_is_trouble(verify->input, trouble))
			set_first_trouble(verify, "%s: %s", trouble->path, trouble->what);
	}
	for (size_t i = 0; i < verify->count; i++) {
		struct verify_process *of = &verify->processes[i];

		for (size_t j = 0; j < of->note_count; j++)
			if (of->notes[j].weight == VERIFY_TROUBLE)
				set_first_trouble(verify, "%s: %s",
						  recorded_process_text(of->process, who),
						  of->notes[j].text);
	}
	if (verify->count == 0)
		set_first_trouble(verify, "%s",
				  verify->input->path_count > 0 ? "no recordings found"
								: CLI_INPUT_NOTHING);
}

/*
 * A finished operation stays in its live slot briefly, in case more events follow. The recorder does not count it as
 * recorded yet; here it does, because it can be read.
 */
static void count_lingering(struct verify_process *of)
{
	struct recording_account *account = &of->account;

	for (size_t i = 0; i < of->process->flight_count; i++) {
		const struct recording_flight *flight = &of->process->flights[i];
		struct recording_account_comm *comm = NULL;

		for (size_t j = 0; j < account->comm_count; j++)
			if (account->comms[j].id == flight->op.comm)
				comm = &account->comms[j];
		if (flight->op.state != OP_DONE || flight->is_retiring || comm == NULL ||
		    comm->in_flight == 0 || account->in_flight == 0)
			continue;
		comm->in_flight--;
		comm->recorded++;
		comm->kept++;
		account->in_flight--;
		account->recorded++;
		account->kept++;
	}
}

/* With is_strict, remarks are trouble. */
static void verify_init(struct verify *verify, const struct cli_input *input, bool is_strict)
{
	size_t count = input->recording.count;

	*verify = (struct verify){ .input = input, .count = count };
	verify->processes = cli_realloc(NULL, (count ? count : 1) * sizeof(*verify->processes));
	memset(verify->processes, 0, count * sizeof(*verify->processes));
	for (size_t i = 0; i < count; i++) {
		struct verify_process *of = &verify->processes[i];

		of->process = input->recording.processes[i];
		of->status = recording_account(&of->account, of->process);
		if (of->status == ERR_NO_SPACE)
			cli_no_memory();
		verify_judge_process(of);
		count_lingering(of);
		for (size_t j = 0; j < of->note_count && is_strict; j++)
			if (of->notes[j].weight == VERIFY_REMARK)
				of->notes[j].weight = VERIFY_TROUBLE;
	}
	find_first_trouble(verify);
}

static void verify_release(struct verify *verify)
{
	for (size_t i = 0; i < verify->count; i++) {
		struct verify_process *of = &verify->processes[i];

		for (size_t j = 0; j < of->note_count; j++)
			free(of->notes[j].text);
		free(of->notes);
		recording_account_release(&of->account);
	}
	free(verify->processes);
	free(verify->first_trouble);
}

/* "2.24-2.26": the first release of the one and the last of the other. */
static const char *verify_releases(unsigned int first, unsigned int last,
				   char text[VERIFY_RELEASES])
{
	static const char *const from[] = { "?",    "2.23", "2.24", "2.26",
					    "2.27", "2.28", "2.29", "2.31" };
	static const char *const to[] = { "?",	  "2.23", "2.25", "2.26",
					  "2.27", "2.28", "2.30", "later" };

	_Static_assert(ARRAY_LENGTH(from) == OP_INTERFACES + 1 &&
			       ARRAY_LENGTH(to) == OP_INTERFACES + 1,
		       "an interface without its releases");

	if (first > OP_INTERFACES || last > OP_INTERFACES)
		text_copy(text, VERIFY_RELEASES, "?");
	else if (last == OP_INTERFACES)
		text_format(text, VERIFY_RELEASES, "%s and later", from[first]);
	else if (strcmp(from[first], to[last]) == 0)
		text_copy(text, VERIFY_RELEASES, from[first]);
	else
		text_format(text, VERIFY_RELEASES, "%s to %s", from[first], to[last]);
	return text;
}

/* Distinct policies of releases, in order. */
static const struct kernel_policy *next_policy(const struct kernel_policy *policy)
{
	return kernel_policy_of(policy != NULL ? policy->last + 1u : 1);
}

static const char *policy_word(unsigned int events)
{
	return events == KERNEL_EVENTS_ABSENT ? "none exist" : kernel_events_name(events);
}

static void kernel_policies_text(struct sink *sink, unsigned int width)
{
	const struct kernel_policy *policy = NULL;
	char releases[VERIFY_RELEASES], line[512], head[VERIFY_RELEASES + 16];

	sink_text(sink, "\nKernel events (GPU times) requested by default, by NCCL's release:\n");
	while ((policy = next_policy(policy)) != NULL) {
		text_format(head, sizeof(head), "  %-16s ",
			    verify_releases(policy->first, policy->last, releases));
		text_format(line, sizeof(line), "%s: %s%s%s", policy_word(policy->by_default),
			    policy->why, policy->risk[0] ? ". With RINGSIDE_TIMES=kernel: " : "",
			    policy->risk);
		table_wrap(sink, line, head, 19, width);
	}
}

static void kernel_policies_json(struct json *json)
{
	const struct kernel_policy *policy = NULL;
	char releases[VERIFY_RELEASES];

	json_put_array(json, "kernel_events");
	while ((policy = next_policy(policy)) != NULL) {
		json_object(json);
		json_put_string(json, "nccl",
				verify_releases(policy->first, policy->last, releases));
		json_put_string(json, "default", policy_word(policy->by_default));
		json_put_string(json, "why", policy->why);
		json_put_text_or_null(json, "risk", policy->risk);
		json_end(json);
	}
	json_end(json);
}

/* Blind spots of all releases. */
static void verify_blind_text(struct sink *sink, unsigned int width)
{
	const struct op_blind_spot *spot;
	char releases[VERIFY_RELEASES], head[VERIFY_RELEASES + 16];

	sink_text(sink, "What NCCL does not show to any profiler plugin, by its release:\n");
	for (size_t i = 0; (spot = op_blind_spot(0, i)) != NULL; i++) {
		text_format(head, sizeof(head), "  %-16s ",
			    verify_releases(spot->first, spot->last, releases));
		table_wrap(sink, spot->sentence, head, 19, width);
	}
	kernel_policies_text(sink, width);
}

/* Adds the object of one blind spot to the open array. */
static void verify_blind_spot_json(struct json *json, unsigned int interface, size_t index)
{
	const struct op_blind_spot *spot = op_blind_spot(interface, index);
	char releases[VERIFY_RELEASES];

	json_object(json);
	json_put_string(json, "name", spot->name);
	json_put_unsigned(json, "first_interface", spot->first);
	json_put_unsigned(json, "last_interface", spot->last);
	json_put_string(json, "nccl", verify_releases(spot->first, spot->last, releases));
	json_put_string(json, "sentence", spot->sentence);
	json_end(json);
}

static void verify_blind_json(struct sink *sink)
{
	struct json json;

	json_begin(&json, sink);
	json_put_array(&json, "blind_spots");
	for (size_t i = 0; op_blind_spot(0, i) != NULL; i++)
		verify_blind_spot_json(&json, 0, i);
	json_end(&json);
	kernel_policies_json(&json);
	json_finish(&json);
}

/* Is this profiler interface version among the recorded ones? */
static bool verify_has_interface(const struct verify *verify, unsigned int interface)
{
	for (size_t i = 0; i < verify->count; i++) {
		const struct recording_process *process = verify->processes[i].process;

		if (process->interface == interface)
			return true;
		for (size_t j = 0; j < process->comm_count; j++)
			if (process->comms[j].info.interface == interface)
				return true;
	}
	return false;
}

static const struct table_column verify_columns[] = {
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
	char name[RECORDED_COMM_TEXT];

	add_who(table, process);
	table_cell(table, recorded_comm_text(recording_comm(process, comm->id), name));
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
	for (size_t i = 3; i < ARRAY_LENGTH(verify_columns); i++)
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

static void add_times_note(struct table *table, const struct verify_process *of)
{
	char text[RECORDED_TIMES_TEXT];

	recorded_times_text(of->process, of->account.timed, of->account.recorded, text);
	if (text[0] != '\0')
		table_note(table, "times: %s", text);
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
	add_times_note(table, of);
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

/* The path is a name that somebody chose. */
static void put_trouble(struct sink *sink, const struct recording_trouble *trouble)
{
	char path[PATH_MAX];

	text_copy(path, sizeof(path), trouble->path);
	text_clean(path);
	sink_format(sink, "trouble: %s: %s\n", path, trouble->what);
}

/* Prints all but the first, which is in the summary; truncation is reported with its process. */
static void write_file_troubles(const struct verify *verify, struct sink *sink)
{
	const struct recording *recording = &verify->input->recording;
	size_t left_out = recording->troubles_left_out - recording->cuts_left_out;
	bool is_first = true;

	for (size_t i = 0; i < recording->trouble_count; i++) {
		const struct recording_trouble *trouble = &recording->troubles[i];

		if (trouble->kind == RECORDING_CUT || !cli_input_is_trouble(verify->input, trouble))
			continue;
		if (!is_first)
			put_trouble(sink, trouble);
		is_first = false;
	}
	if (left_out > 0)
		sink_format(sink, "... and %zu more\n", left_out);
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

static void verify_show_text(const struct verify *verify, struct sink *sink, unsigned int width)
{
	struct table *table = table_new(verify_columns, ARRAY_LENGTH(verify_columns));

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

static void put_comm(struct json *json, const struct recording_process *process,
		     const struct recording_account_comm *comm)
{
	json_object(json);
	recorded_comm_json(json, comm->id, recording_comm(process, comm->id));
	json_put_bool(json, "has_counts", comm->has_counts);
	json_put_unsigned(json, "issued", comm->issued);
	json_put_unsigned(json, "recorded", comm->recorded);
	json_put_unsigned(json, "timed", comm->timed);
	json_put_unsigned(json, "untrusted", comm->untrusted);
	json_put_unsigned(json, "captured", comm->captured);
	json_put_unsigned(json, "replayed", comm->replayed);
	json_put_unsigned(json, "abandoned", comm->abandoned);
	json_put_unsigned(json, "untracked", comm->untracked);
	json_put_unsigned(json, "in_flight", comm->in_flight);
	json_put_unsigned(json, "readable", comm->kept);
	json_put_signed(json, "missing", comm->missing);
	json_end(json);
}

/* Reasons that occurred, by name. */
static void put_reasons(struct json *json, const char *key, const uint64_t *counts, size_t count,
			const char *(*name)(unsigned int))
{
	json_put_object(json, key);
	for (unsigned int i = 0; i < count; i++)
		if (counts[i] > 0)
			json_put_unsigned(json, name(i) ? name(i) : "unknown", counts[i]);
	json_end(json);
}

static void put_files(struct json *json, const struct recording_process *process)
{
	json_put_array(json, "files");
	for (size_t i = 0; i < process->file_count; i++) {
		const struct recording_file *file = &process->files[i];

		json_object(json);
		json_put_string(json, "path", file->path);
		json_put_unsigned(json, "bytes", file->bytes);
		json_put_unsigned(json, "operations", file->records);
		json_put_unsigned(json, "details", file->details);
		json_put_unsigned(json, "damages", file->damages);
		json_put_bool(json, "is_closed", file->is_closed);
		if (file->is_snapshot)
			json_put_bool(json, "is_snapshot", true);
		json_put_time_or_null(json, "cut_offset", file->is_closed ? 0 : file->cut_offset);
		json_end(json);
	}
	json_end(json);
}

static void put_notes(struct json *json, const char *key, const struct verify_process *of,
		      bool is_trouble)
{
	json_put_array(json, key);
	for (size_t i = 0; i < of->note_count; i++)
		if ((of->notes[i].weight == VERIFY_TROUBLE) == is_trouble)
			json_string(json, of->notes[i].text);
	json_end(json);
}

static void put_info(struct json *json, const char *key, const struct recording_process *process)
{
	char value[RECORDING_REASON];

	recording_info(process, key, value, sizeof(value));
	json_put_text_or_null(json, key, value);
}

/* Of kernel events what was decided at the start. */
static void put_times(struct json *json, const struct recording_process *process)
{
	struct recording_times times;

	recording_times(process, &times);
	recorded_times_json(json, process);
	json_put_string(json, "times_missed",
			strcmp(times.in_effect, "off") == 0 ? op_times_missed() : NULL);
	put_info(json, "kernel_events", process);
	put_info(json, "kernel_events_reason", process);
	json_put_string(json, "kernel_events_missed",
			strcmp(times.in_effect, "off") == 0 ? op_times_missed() : NULL);
}

static void put_process(struct json *json, const struct verify_process *of)
{
	const struct recording_process *process = of->process;
	const struct recording_account *account = &of->account;

	json_object(json);
	recorded_process_json(json, process);
	json_put_string(json, "state", recording_life_name(process->life));
	json_put_text_or_null(json, "mode", process->mode);
	json_put_unsigned(json, "interface", process->interface);
	json_put_string(json, "nccl", op_interface_releases(process->interface));
	json_put_bool(json, "is_exact", account->is_exact);
	json_put_bool(json, "is_moving", account->is_moving);
	json_put_bool(json, "keeps_all", account->keeps_all);
	json_put_unsigned(json, "issued", account->issued);
	json_put_unsigned(json, "recorded", account->recorded);
	json_put_unsigned(json, "timed", account->timed);
	json_put_unsigned(json, "untrusted", account->untrusted);
	json_put_unsigned(json, "in_flight", account->in_flight);
	json_put_unsigned(json, "readable", account->kept);
	json_put_unsigned(json, "lost_operations", account->lost_operations);
	json_put_unsigned(json, "recovered_operations", account->walk.recovered);
	json_put_unsigned(json, "lost_details", account->lost_details);
	json_put_signed(json, "missing", account->missing);
	json_put_signed(json, "unread", account->unread);
	put_reasons(json, "lost", process->lost, LOST_REASONS, op_lost_name);
	put_reasons(json, "odd", process->odd, ODD_REASONS, op_odd_name);
	json_put_string(json, "region", process->region_path);
	put_files(json, process);
	put_times(json, process);
	put_notes(json, "troubles", of, true);
	put_notes(json, "remarks", of, false);
	json_put_array(json, "communicators");
	for (size_t i = 0; i < account->comm_count; i++)
		put_comm(json, process, &account->comms[i]);
	json_end(json);
	json_end(json);
}

static void put_blind_spots(struct json *json, const struct verify *verify)
{
	json_put_array(json, "blind_spots");
	for (unsigned int version = 1; version <= OP_INTERFACES; version++) {
		if (!verify_has_interface(verify, version))
			continue;
		json_object(json);
		json_put_unsigned(json, "interface", version);
		json_put_string(json, "nccl", op_interface_releases(version));
		json_put_array(json, "spots");
		for (size_t i = 0; op_blind_spot(version, i) != NULL; i++)
			verify_blind_spot_json(json, version, i);
		json_end(json);
		json_end(json);
	}
	json_end(json);
}

static void verify_show_json(const struct verify *verify, struct sink *sink)
{
	struct json json;

	json_begin(&json, sink);
	json_put_bool(&json, "is_complete", verify->first_trouble == NULL);
	json_put_string(&json, "trouble", verify->first_trouble);
	json_put_array(&json, "processes");
	for (size_t i = 0; i < verify->count; i++)
		put_process(&json, &verify->processes[i]);
	json_end(&json);
	report_json_put_troubles(&json, &verify->input->recording);
	put_blind_spots(&json, verify);
	json_finish(&json);
}

struct request {
	struct cli_input input;
	struct report_filter chosen;
	bool is_json, is_strict, is_blind;
};

static const struct cli_option options[] = {
	CLI_OPTION_JSON(struct request),
	{ 0, "strict", NULL,
	  "treat remarks as trouble: lost details, rejected GPU timestamps, unexpected events",
	  CLI_FLAG(struct request, is_strict) },
	{ 0, "blind-spots", NULL,
	  "only list what NCCL does not show and which kernel events are requested, per release; "
	  "reads no recordings",
	  CLI_FLAG(struct request, is_blind) },
	CLI_OPTIONS_PROCESSES(struct request),
	CLI_OPTIONS_SHOWING,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside verify traces/", "is everything there that the job did?" },
	{ "ringside verify --json traces/ | jq .trouble", "the first trouble, or null" },
	{ "ringside verify --blind-spots", "what no profiler can see" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "verify",
	.operands = "[PATH...]",
	.about = "Counts, per process and communicator: operations issued, recorded, timed, in "
		 "flight and lost, with reasons; rejected GPU timestamps, damage, and whether "
		 "files were closed. It also lists what NCCL itself does not show. When something "
		 "is missing or damaged the first line says what, and the exit code is "
		 "1.\n" CLI_INPUT_ABOUT CLI_INPUT_NONE "\n",
	.options = options,
	CLI_OPERANDS(struct request, input, cli_input_take),
	.examples = examples,
};

static int verify_check(void *context)
{
	struct request *request = context;
	struct cli_input *input = &request->input;
	struct verify verify;
	struct sink sink;
	int exit_code;

	exit_code = cli_input_choose_processes(input, &request->chosen, &page);
	if (exit_code != 0)
		return exit_code;
	verify_init(&verify, input, request->is_strict);
	cli_begin(&sink, request->is_json);
	if (request->is_json)
		verify_show_json(&verify, &sink);
	else if (input->recording.count > 0)
		verify_show_text(&verify, &sink, cli_width());
	if (input->recording.count == 0)
		exit_code = cli_input_complain(input, true);
	else
		exit_code = verify.first_trouble ? CLI_EXIT_TROUBLE : CLI_EXIT_DONE;
	verify_release(&verify);
	return cli_finish(&sink, exit_code);
}

static int list_blind_spots(bool is_json)
{
	struct sink sink;

	sink_init_fd(&sink, STDOUT_FILENO);
	if (is_json)
		verify_blind_json(&sink);
	else
		verify_blind_text(&sink, cli_width());
	return cli_finish(&sink, CLI_EXIT_DONE);
}

static int verify_blind(void *context)
{
	const struct request *request = context;

	return request->is_blind ? list_blind_spots(request->is_json) : CLI_GO_ON;
}

int cmd_verify(int argc, char **argv)
{
	struct request request = { .is_json = false };

	return cli_input_command(&page, &request, RECORDING_WITH_TRACES, verify_blind, verify_check,
				 argc, argv);
}
