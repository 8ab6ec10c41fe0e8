/*
 * Asks running processes to time every launch for a while. The request is one word in the region of a process; its
 * recorder polls it and answers in the next word.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "common/nccl_interface.h"
#include "common/text.h"
#include "output/json.h"
#include "output/recorded.h"
#include "recording/recording.h"

struct asked {
	const struct recording_process *process;
	struct recording_ask ask;
};

struct record {
	struct cli_input input;
	struct report_filter chosen;
	uint64_t times_ns, wait_ns;
	uint64_t kernel_ns; /* the same, by its former name */
	bool is_json;
	struct asked *asked;
	size_t count;
};

static const struct cli_option options[] = {
	CLI_OPTION_JSON(struct record),
	{ 0, "times", "TIME", "time every launch for this long (1s to 60m)",
	  CLI_TIME(struct record, times_ns, CLI_SECONDS(1), CLI_SECONDS(3600)),
	  .like = "is not a time like 30s, at most 60m" },
	{ 0, "kernel", "TIME", "former name of --times",
	  CLI_TIME(struct record, kernel_ns, CLI_SECONDS(1), CLI_SECONDS(3600)),
	  .like = "is not a time like 30s, at most 60m" },
	CLI_OPTIONS_PROCESSES(struct record),
	{ 0, "wait", "TIME", "wait this long for answers (default 2s)",
	  CLI_TIME(struct record, wait_ns, 0, CLI_SECONDS(3600)),
	  .like = "is not a time like 30s, at most 60m" },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside record --times 30s @4711", "time every launch of one process" },
	{ "ringside record --times 1m --job train7", "all processes of a job on this host" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "record",
	.operands = "[@PID...]",
	.about = "Asks running processes to time every launch on the GPU for a while, not only a "
		 "share of them. A process complies at one of its next operations, or refuses "
		 "if it times nothing; see docs/SETTINGS.md. Ranks can only be compared "
		 "if all of them are asked, so run this on every node of the job.\n"
		 "Without @PID, all processes recorded on this host are asked.\n",
	.options = options,
	CLI_OPERANDS(struct record, input, cli_input_take),
	.examples = examples,
};

static void wait_for_answers(struct record *record)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	uint64_t waited_ns = 0;
	size_t answered;

	do {
		answered = 0;
		for (size_t i = 0; i < record->count; i++)
			answered += recording_ask_answered(&record->asked[i].ask,
							   record->asked[i].process);
		if (answered == record->count || waited_ns >= record->wait_ns)
			return;
		nanosleep(&pause, NULL);
		waited_ns += (uint64_t)pause.tv_nsec;
	} while (true);
}

static void record_choose(struct record *record)
{
	const struct recording *recording = &record->input.recording;

	record->asked = calloc(recording->count + 1, sizeof(*record->asked));
	if (record->asked == NULL)
		cli_no_memory();
	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		if (process->life != RECORDING_ALIVE || process->region == NULL ||
		    process->region_path == NULL)
			continue;
		record->asked[record->count++].process = process;
	}
}

static void write_text(const struct record *record, struct sink *sink)
{
	char who[RECORDED_PROCESS_TEXT], time[UNITS_TEXT];

	units_duration(time, record->times_ns);
	for (size_t i = 0; i < record->count; i++) {
		const struct asked *asked = &record->asked[i];

		recorded_process_text(asked->process, who);
		if (asked->ask.answer == RECORDING_GRANTED)
			sink_format(sink, "%s: every launch is timed for %s\n", who, time);
		else if (asked->ask.answer == RECORDING_PENDING)
			sink_format(sink, "%s: asked; %s\n", who, asked->ask.reason);
		else if (asked->ask.answer == RECORDING_FAILED)
			sink_format(sink, "%s: cannot be asked: %s\n", who, asked->ask.reason);
		else
			sink_format(sink, "%s: %s%s\n", who,
				    asked->ask.answer == RECORDING_REFUSED ? "not timed: " : "",
				    asked->ask.reason);
	}
}

static void write_json(const struct record *record, struct sink *sink)
{
	struct json json;

	json_begin(&json, sink);
	json_put_array(&json, "processes");
	for (size_t i = 0; i < record->count; i++) {
		json_object(&json);
		recorded_process_json(&json, record->asked[i].process);
		json_put_string(&json, "answer",
				recording_answer_name(record->asked[i].ask.answer));
		json_put_text_or_null(&json, "reason", record->asked[i].ask.reason);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
	sink_text(sink, "\n");
}

/* What works if no process can be asked: another setting from the job's start. */
static void tell_other_way(const struct record *record)
{
	enum { FIRST_WITH_LAUNCHES = 5 };
	const char *times = "kernel";

	for (size_t i = 0; i < record->count; i++) {
		const struct asked *asked = &record->asked[i];

		if (asked->ask.answer != RECORDING_REFUSED)
			return;
		/* Where CUDA events cannot be used, more of them cannot, either. */
		if (asked->process->interface >= FIRST_WITH_LAUNCHES &&
		    asked->process->region->header.sampling < SAMPLING_BY_CUDA)
			times = "all";
	}
	cli_note("to time all of a job from its start: ringside run --times %s -- COMMAND, or "
		 "RINGSIDE_TIMES=%s in its environment",
		 times, times);
}

static int record_show(const struct record *record)
{
	int code = CLI_EXIT_DONE;
	struct sink sink;

	for (size_t i = 0; i < record->count; i++)
		if (record->asked[i].ask.answer == RECORDING_REFUSED ||
		    record->asked[i].ask.answer == RECORDING_FAILED)
			code = CLI_EXIT_UNKNOWN;
	sink_init_fd(&sink, STDOUT_FILENO);
	if (record->is_json)
		write_json(record, &sink);
	else
		write_text(record, &sink);
	tell_other_way(record);
	return cli_finish(&sink, code);
}

static int record_check(void *context)
{
	struct record *record = context;

	if (record->kernel_ns != 0 && record->times_ns != 0)
		return cli_usage(&page, "--kernel is the former name of --times: use one of them");
	if (record->kernel_ns != 0) {
		cli_note("use --times instead of --kernel");
		record->times_ns = record->kernel_ns;
	}
	return record->times_ns == 0 ? cli_usage(&page, "nothing to record: use --times TIME")
				     : CLI_GO_ON;
}

static int record_ask(void *context)
{
	struct record *record = context;
	int code = cli_input_complain(&record->input, false);

	if (code == 0)
		code = cli_input_choose_processes(&record->input, &record->chosen, &page);
	if (code != 0)
		return code;
	record_choose(record);
	for (size_t i = 0; i < record->count; i++)
		recording_ask_times(&record->asked[i].ask, record->asked[i].process,
				    (uint32_t)(record->times_ns / 1000000000));
	wait_for_answers(record);
	code = record->count == 0 ? cli_error("no running process is recorded here")
				  : record_show(record);
	free(record->asked);
	return code;
}

int cmd_record(int argc, char **argv)
{
	struct record record = { .wait_ns = 2000000000 };

	return cli_input_command(&page, &record, 0, record_check, record_ask, argc, argv);
}
