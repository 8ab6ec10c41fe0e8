#include "programs/cli/report_read.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/cli_progress.h"

enum { TROUBLES_TOLD = 20 };

static int tell_all(const struct cli_input *input)
{
	const struct recording *recording = &input->recording;
	size_t told = 0;

	for (; told < recording->trouble_count && told < TROUBLES_TOLD; told++)
		cli_error("%s: %s", recording->troubles[told].path, recording->troubles[told].what);
	if (recording->trouble_count + recording->troubles_left_out > told)
		cli_error("%zu more of such troubles; 'ringside verify' has all",
			  recording->trouble_count + recording->troubles_left_out - told);
	return told > 0 ? CLI_EXIT_TROUBLE : CLI_EXIT_DONE;
}

int report_read_troubles(const struct cli_input *input, bool is_strict)
{
	int exit_code;

	if (is_strict)
		exit_code = tell_all(input);
	else
		exit_code = cli_input_complain(input, false) ? CLI_EXIT_TROUBLE : CLI_EXIT_DONE;
	if (input->recording.count == 0 && exit_code == CLI_EXIT_DONE)
		exit_code = cli_input_nothing();
	return exit_code;
}

int report_read_strictly(const struct timeline_report *report)
{
	const struct timeline_completeness *found = &report->completeness;

	if (found->refused + found->damages == 0)
		return CLI_EXIT_DONE;
	return cli_error("%" PRIu64 " records are not acceptable, %" PRIu64
			 " blocks are damaged; 'ringside verify' says where",
			 found->refused, found->damages);
}

static int told(enum status status)
{
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	return cli_error("cannot read: %s",
			 status == ERR_SYSTEM ? strerror(errno) : status_text(status));
}

int report_read(struct timeline_report *report, const struct cli_input *input,
		const struct report_filter *chosen, const struct timeline_options *options,
		const struct cli_page *page)
{
	struct timeline_options watched = *options;
	struct cli_progress progress;
	enum status status;
	int exit_code;

	exit_code = report_filter_check(chosen, page, &input->recording);
	if (exit_code != 0)
		return exit_code;
	cli_progress_start(&progress, page->name, "operations",
			   cli_input_operations(&input->recording));
	watched.progress = cli_progress_fraction;
	watched.progress_context = &progress;
	status = timeline_report_make(report, &input->recording, &chosen->filter, &watched);
	cli_progress_end(&progress);
	return status == OK ? 0 : told(status);
}
