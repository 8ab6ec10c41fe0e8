#include "programs/cli/bench_outputs.h"

#include <string.h>

#include "cmds/cli.h"
#include "cmds/cli_output.h"
#include "common/text.h"

void bench_outputs_command(char *to, size_t size, int argc, char **argv)
{
	text_copy(to, size, "ringside bench");
	for (int i = 0; i < argc; i++) {
		size_t at = strlen(to);

		text_format(to + at, size - at, " %s", argv[i]);
	}
}

int bench_outputs_add(struct bench_outputs *files, const struct cli_page *page, const char *path,
		      enum bench_output_kind kind)
{
	if (path[0] == '\0')
		return cli_usage(page, "'' is no name of a file");
	if (strcmp(path, "-") == 0)
		return cli_usage(page, "standard output has the results anyway; --json for JSON");
	if (files->count == BENCH_OUTPUTS_MOST)
		return cli_usage(page, "more than %d files", BENCH_OUTPUTS_MOST);
	files->kinds[files->count] = kind;
	files->paths[files->count++] = path;
	return 0;
}

int bench_outputs_take(struct bench_outputs *files, const struct cli_page *page, const char *path,
		       bool has_html)
{
	if (text_ends_with(path, ".json"))
		return bench_outputs_add(files, page, path, BENCH_OUTPUT_JSON);
	if (has_html && text_ends_with(path, ".html"))
		return bench_outputs_add(files, page, path, BENCH_OUTPUT_HTML);
	return bench_outputs_add(files, page, path, BENCH_OUTPUT_TEXT);
}

int bench_outputs_check(const struct bench_outputs *files)
{
	for (size_t i = 0; i < files->count; i++)
		if (cli_output_check(files->paths[i]) != 0)
			return CLI_EXIT_TROUBLE;
	return 0;
}

int bench_team_quit(struct bench_team *team)
{
	hub_fail(team->hub, "a file cannot be written");
	return bench_team_drop(team);
}

static int write_one(const char *path, enum bench_output_kind kind, unsigned int width,
		     bench_outputs_fn write, const void *context, int exit_code)
{
	struct cli_output output;
	enum status status;

	if (cli_output_open(&output, path) != 0)
		return CLI_EXIT_TROUBLE;
	status = write(context, kind, width, &output.sink);
	if (status == ERR_NO_SPACE && output.sink.status == OK)
		cli_no_memory();
	if (status != OK && output.sink.status == OK) {
		cli_output_discard(&output);
		return cli_error("%s: what was measured does not hold together: %s", path,
				 status_text(status));
	}
	return cli_output_commit(&output, exit_code);
}

int bench_outputs_write(const struct bench_outputs *files, bench_outputs_fn write,
			const void *context, int exit_code)
{
	int trouble = 0;

	for (size_t i = 0; i < files->count; i++)
		trouble |= write_one(files->paths[i], files->kinds[i], 0, write, context,
				     CLI_EXIT_DONE);
	trouble |= write_one("-", files->is_json ? BENCH_OUTPUT_JSON : BENCH_OUTPUT_TEXT,
			     cli_width(), write, context, CLI_EXIT_DONE);
	return trouble != 0 ? CLI_EXIT_TROUBLE : exit_code;
}
