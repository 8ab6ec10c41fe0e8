#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cmds/cli.h"
#include "cmds/cli_input.h"
#include "cmds/commands.h"
#include "output/json.h"
#include "output/recorded.h"

struct request {
	struct cli_input input;
	bool has_details;
	bool is_json; /* as it is anyway */
};

static const struct cli_option options[] = {
	{ 0, "details", NULL, "also write what channels and transfers did (mode full records it)",
	  CLI_FLAG(struct request, has_details) },
	{ 'j', "json", NULL, "accepted for the sake of order: the output always is JSON",
	  CLI_FLAG(struct request, is_json) },
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

/* Going on is pointless once the output cannot be written. */
static bool dump_end(struct dump *dump)
{
	json_end(&dump->json);
	json_line(&dump->json);
	return dump->sink.status == OK;
}

static bool dump_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct dump *dump = context;

	dump_begin(dump, "operation", place);
	recorded_op_json(&dump->json, dump->process, op);
	return dump_end(dump);
}

static bool dump_detail(const struct op_detail *detail, enum recording_place place, void *context)
{
	struct dump *dump = context;

	dump_begin(dump, "detail", place);
	recorded_detail_json(&dump->json, dump->process, detail);
	return dump_end(dump);
}

/* What could not be dumped, in a line; the other troubles were told when the files were opened. */
static int dump_complain(const struct recording_process *process, enum status status,
			 const struct recording_walk *walk)
{
	char who[RECORDED_PROCESS_TEXT];

	recorded_process_text(process, who);
	if (status != OK)
		return cli_error("%s: %s", who,
				 status == ERR_SYSTEM ? strerror(errno) : status_text(status));
	if (walk->refused > 0)
		return cli_error("%s: %llu records are damaged (%s); 'ringside verify' says more",
				 who, (unsigned long long)walk->refused,
				 walk->problem ? walk->problem : "?");
	return 0;
}

static int dump_process(struct dump *dump, const struct recording_process *process,
			bool has_details)
{
	struct recording_walk walk = { 0 };
	enum status status;
	int failed;

	dump->process = process;
	status = recording_each_op(process, dump_op, dump, &walk);
	failed = dump_complain(process, status, &walk);
	if (has_details && dump->sink.status == OK) {
		memset(&walk, 0, sizeof(walk));
		status = recording_each_detail(process, dump_detail, dump, &walk);
		failed |= dump_complain(process, status, &walk);
	}
	return failed;
}

static int dump_all(void *context)
{
	const struct request *request = context;
	const struct cli_input *input = &request->input;
	int exit_code = cli_input_complain(input, true);
	struct dump dump;

	sink_init_fd(&dump.sink, STDOUT_FILENO);
	json_init(&dump.json, &dump.sink);
	for (size_t i = 0; i < input->recording.count && dump.sink.status == OK; i++)
		exit_code |=
			dump_process(&dump, input->recording.processes[i], request->has_details);
	return cli_finish(&dump.sink, exit_code);
}

int cmd_dump(int argc, char **argv)
{
	struct request request = { .has_details = false };

	return cli_input_command(&page, &request, RECORDING_WITH_TRACES, NULL, dump_all, argc,
				 argv);
}
