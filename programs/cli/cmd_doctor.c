/* ringside doctor: see docs/DOCTOR.md. */
#include <stdlib.h>
#include <unistd.h>

#include "programs/cli/cli_commands.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/doctor_case.h"
#include "programs/cli/doctor_found.h"
#include "programs/cli/doctor_options.h"
#include "programs/cli/doctor_watch.h"
#include "view/json.h"
#include "view/verdict_json.h"
#include "view/verdict_text.h"

struct verdict_text_options doctor_text_options(const struct doctor_options *options)
{
	const char *no_color = getenv("NO_COLOR");

	return (struct verdict_text_options){
		.width = cli_width(),
		.has_colour = isatty(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0'),
		.has_all = options->has_all,
		.documents = options->documents,
	};
}

static int show(const struct doctor_case *look)
{
	struct verdict_text_options style = doctor_text_options(look->options);
	struct verdict_look shown = doctor_case_look(look);
	bool has_found = look->options->has_all && look->has_log;
	enum status status = OK;
	struct sink sink;
	struct json json;

	sink_init_fd(&sink, STDOUT_FILENO);
	if (look->options->is_json) {
		json_init(&json, &sink);
		verdict_json_open(&json, &look->verdicts, &shown);
		if (has_found)
			doctor_found_json(&json, &look->log);
		json_end(&json);
		json_line(&json);
	} else {
		status = verdict_text(&sink, &look->verdicts, &shown, &style);
		if (has_found)
			doctor_found_text(&sink, &look->log);
	}
	if (status == ERR_NO_SPACE && sink.status == OK)
		cli_no_memory();
	return cli_finish(&sink,
			  scene_has_trouble(look->has_job ? &look->scene : NULL, &look->verdicts)
				  ? CLI_EXIT_TROUBLE
				  : CLI_EXIT_DONE);
}

static int look_once(const struct doctor_options *options, const struct doctor_yardstick *yardstick)
{
	struct doctor_case look;
	int code = doctor_case_make(&look, options, yardstick, -1);

	if (code == 0)
		code = show(&look);
	doctor_case_release(&look);
	return code;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_yardstick yardstick = { .has_baseline = false };
	struct doctor_options options;
	int code = doctor_options_parse(&options, argc, argv);

	if (code == -1) {
		code = doctor_yardstick_read(&yardstick, &options);
		if (code == 0)
			code = options.is_watch ? doctor_watch(&options, &yardstick)
						: look_once(&options, &yardstick);
	}
	doctor_yardstick_release(&yardstick);
	doctor_options_release(&options);
	return code;
}
