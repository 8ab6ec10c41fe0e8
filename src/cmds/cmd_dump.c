/* `ringside dump`: one JSON object per operation. */
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "output/json.h"
#include "output/recorded.h"

struct request {
	struct cli_input input;
	struct report_filter chosen;
	bool has_details;
	bool is_json; /* ignored: output is always JSON */
};

static const struct cli_option options[] = {
	{ 0, "details", NULL, "also write channels and transfers (recorded by mode full)",
	  CLI_FLAG(struct request, has_details) },
	{ 'j', "json", NULL, "accepted for consistency; output is always JSON",
	  CLI_FLAG(struct request, is_json) },
	REPORT_FILTER_OPTIONS(struct request),
	CLI_OPTION_QUIET,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside dump traces/ | jq -s 'group_by(.function) | map({f: .[0].function, n: "
	  "length})'",
	  "how many operations of each kind" },
	{ "ringside dump @4711 | tail -n 5", "the last operations of a running process" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "dump",
	.operands = "[PATH...]",
	.about = "Writes one JSON object per operation and line: what it was, when, how long it "
		 "took and how that is known. docs/JSON.md explains every field.\n" CLI_INPUT_ABOUT
			 CLI_INPUT_NONE "\n",
	.options = options,
	CLI_OPERANDS(struct request, input, cli_input_take),
	.examples = examples,
};

struct dump {
	struct json json;
	struct sink sink;
	const struct recording_process *process;
	struct filter_rows rows;
	bool has_filter;
};

static const char *place_name(enum recording_place place)
{
	switch (place) {
	case RECORDING_IN_TRACE:
		return "trace";
	case RECORDING_IN_RING:
		return "ring";
	case RECORDING_IN_LIVE:
		return "live";
	}
	return "?";
}

static void dump_begin(struct dump *dump, const char *record, enum recording_place place)
{
	json_object(&dump->json);
	json_put_string(&dump->json, "record", record);
	json_put_string(&dump->json, "place", place_name(place));
}

/* Stop if the output cannot be written. */
static bool dump_end(struct dump *dump)
{
	json_finish(&dump->json);
	return dump->sink.status == OK;
}

static bool dump_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct dump *dump = context;

	if (dump->has_filter && !filter_rows_has_op(&dump->rows, op))
		return true;
	dump_begin(dump, "operation", place);
	recorded_op_json(&dump->json, dump->process, op);
	return dump_end(dump);
}

static bool dump_detail(const struct op_detail *detail, enum recording_place place, void *context)
{
	struct dump *dump = context;

	if (dump->has_filter &&
	    (!filter_rows_has_comm(&dump->rows, detail->comm) ||
	     !filter_is_within(dump->rows.since_ns, dump->rows.until_ns, detail->time_ns[0], 0)))
		return true;
	dump_begin(dump, "detail", place);
	recorded_detail_json(&dump->json, dump->process, detail);
	return dump_end(dump);
}

static int dump_process(struct dump *dump, const struct recording_process *process,
			bool has_details)
{
	struct recording_walk walk = { 0 };
	enum status status;
	int failed;

	dump->process = process;
	status = recording_each_op(process, dump_op, dump, &walk);
	failed = cli_walk_complain(process, status, &walk);
	if (has_details && dump->sink.status == OK) {
		memset(&walk, 0, sizeof(walk));
		status = recording_each_detail(process, dump_detail, dump, &walk);
		failed |= cli_walk_complain(process, status, &walk);
	}
	return failed;
}

static int dump_processes(struct dump *dump, const struct request *request, const struct job *job,
			  int exit_code)
{
	const struct recording *recording = &request->input.recording;

	dump->has_filter = !filter_is_empty(&request->chosen.filter);
	for (uint32_t i = 0; i < recording->count && dump->sink.status == OK; i++)
		if (!dump->has_filter ||
		    filter_rows_start(&dump->rows, &request->chosen.filter, job, i))
			exit_code =
				cli_exit_join(exit_code, dump_process(dump, recording->processes[i],
								      request->has_details));
	return exit_code;
}

static int dump_all(void *context)
{
	struct request *request = context;
	struct cli_input *input = &request->input;
	int complaint = cli_input_complain(input, true), exit_code;
	struct dump dump = { .process = NULL };
	struct job job;

	exit_code = cli_input_choose(input, &request->chosen, &page);
	if (exit_code != 0)
		return exit_code;
	if (job_make(&job, &input->recording) != OK)
		cli_no_memory();
	sink_init_fd(&dump.sink, STDOUT_FILENO);
	json_init(&dump.json, &dump.sink);
	exit_code = dump_processes(&dump, request, &job, complaint);
	job_release(&job);
	return cli_finish(&dump.sink, exit_code);
}

int cmd_dump(int argc, char **argv)
{
	struct request request = { .has_details = false };

	int exit_code = cli_input_command(&page, &request, RECORDING_WITH_TRACES, NULL, dump_all,
					  argc, argv);

	report_filter_release(&request.chosen);
	return exit_code;
}
