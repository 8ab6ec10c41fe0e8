#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/profilers.h"
#include "bench/profilers_read.h"
#include "cmds/cli.h"
#include "cmds/cli_output.h"
#include "cmds/commands.h"
#include "common/text.h"
#include "programs/cli/profilers_options.h"
#include "view/profilers_html.h"
#include "view/profilers_json.h"
#include "view/profilers_text.h"

enum { FROM_BYTES_MAX = 1 << 30, SETTINGS_BYTES = 1024, NOTE_WORDS_BYTES = 160 };

/* ---- showing ---------------------------------------------------------------------------------- */

enum form { FORM_TEXT, FORM_JSON, FORM_HTML };

static enum form form_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	if (dot && strcmp(dot, ".json") == 0)
		return FORM_JSON;
	return dot && strcmp(dot, ".html") == 0 ? FORM_HTML : FORM_TEXT;
}

static int show(const char *path, enum form form, const struct profilers_comparison *comparison)
{
	unsigned int width = strcmp(path, "-") == 0 ? cli_width() : 0;
	struct cli_output output;
	enum status status;

	if (cli_output_open(&output, path) != 0)
		return CLI_EXIT_TROUBLE;
	if (form == FORM_JSON)
		status = profilers_json_write(&output.sink, comparison);
	else if (form == FORM_HTML)
		status = profilers_html_write(&output.sink, comparison);
	else
		status = profilers_text_write(&output.sink, comparison, width);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	return cli_output_commit(&output, CLI_EXIT_DONE);
}

/* What was hard to get is written wherever it can be. */
static int show_all(const struct profilers_options *options,
		    const struct profilers_comparison *comparison)
{
	int failed = 0;

	for (size_t i = 0; i < options->file_count; i++)
		failed |= show(options->files[i], form_of(options->files[i]), comparison);
	if (options->html)
		failed |= show(options->html, FORM_HTML, comparison);
	failed |= show("-", options->is_json ? FORM_JSON : FORM_TEXT, comparison);
	return failed ? CLI_EXIT_TROUBLE : CLI_EXIT_DONE;
}

/* Minutes of measuring are not to end at a file that cannot be written. */
static int check_files(const struct profilers_options *options)
{
	for (size_t i = 0; i <= options->file_count; i++) {
		const char *path = i < options->file_count ? options->files[i] : options->html;

		if (path != NULL && cli_output_check(path) != 0)
			return CLI_EXIT_TROUBLE;
	}
	return 0;
}

/* ---- comparing -------------------------------------------------------------------------------- */

static void tell_command(struct profilers *profilers, int argc, char **argv)
{
	char command[PROFILERS_COMMAND_BYTES];
	size_t used = 0;

	text_format(command, sizeof(command), "ringside bench");
	for (int i = 0; i < argc; i++) {
		used += strlen(command + used);
		text_format(command + used, sizeof(command) - used, " %s", argv[i]);
	}
	profilers_command(profilers, command);
}

/* A note has room for a few variables: several notes, cut between them. */
static void tell_settings(struct profilers *profilers, const struct profilers_variant *variant)
{
	char settings[SETTINGS_BYTES], *at = settings;

	profilers_variant_words(variant, settings, sizeof(settings));
	while (*at != '\0') {
		size_t length = strlen(at);
		const char *space;

		while (length > NOTE_WORDS_BYTES && (space = memrchr(at, ' ', length)) != NULL)
			length = (size_t)(space - at);
		profilers_note(profilers, "%s was told %s%.*s", variant->label,
			       at == settings ? "" : "also ", (int)length, at);
		at += length + (at[length] == ' ');
	}
}

static int tell_plugins(struct profilers *profilers, struct profilers_request *request)
{
	for (size_t i = 1; i < request->variant_count; i++) {
		struct profilers_variant *variant = &request->variants[i];

		variant->number =
			profilers_plugin(profilers, variant->label, variant->path, variant->kind);
		if (variant->number == 0)
			return cli_error("too many plugins");
		tell_settings(profilers, variant);
	}
	return 0;
}

static int compare(struct profilers_options *options, struct profilers_session *session,
		   struct profilers_comparison *comparison)
{
	struct profilers_request *request = &options->request;
	int failed = check_files(options);

	if (!failed)
		failed = tell_plugins(session->profilers, request);
	if (failed)
		return failed;
	failed = profilers_work_open(&session->work, request->keep);
	if (failed)
		return failed;
	failed = profilers_session_run(session);
	profilers_work_close(&session->work);
	if (failed)
		return failed;
	if (profilers_finish(session->profilers, comparison) != OK)
		cli_no_memory();
	return 0;
}

static int compare_and_show(struct profilers_options *options, int argc, char **argv)
{
	struct profilers_session *session = cli_realloc(NULL, sizeof(*session));
	struct profilers_comparison comparison;
	int failed;

	memset(session, 0, sizeof(*session));
	session->request = &options->request;
	session->profilers = profilers_new();
	if (session->profilers == NULL)
		cli_no_memory();
	tell_command(session->profilers, argc, argv);
	profilers_comparison_init(&comparison);
	failed = compare(options, session, &comparison);
	if (!failed)
		failed = show_all(options, &comparison);
	profilers_comparison_release(&comparison);
	profilers_free(session->profilers);
	free(session);
	return failed;
}

/* ---- once more -------------------------------------------------------------------------------- */

static int recall_and_show(const struct profilers_options *options)
{
	struct profilers_comparison comparison;
	struct bench_read_problem problem;
	size_t length = 0;
	char *text = profilers_read_file(options->from, FROM_BYTES_MAX, &length);
	enum status status;
	int failed;

	if (text == NULL)
		return cli_error("cannot read '%s': %s", options->from, strerror(errno));
	profilers_comparison_init(&comparison);
	status = profilers_read(&comparison, text, length, &problem);
	free(text);
	if (status == ERR_FORMAT || status == ERR_UNKNOWN)
		failed = cli_error("'%s' is no comparison of profilers: line %llu: %s",
				   options->from, (unsigned long long)problem.line, problem.text);
	else if (status != OK)
		failed = cli_error("cannot read '%s': %s", options->from, status_text(status));
	else
		failed = show_all(options, &comparison);
	profilers_comparison_release(&comparison);
	return failed;
}

int bench_profilers(int argc, char **argv)
{
	struct profilers_options *options = cli_realloc(NULL, sizeof(*options));
	int exit_code;

	if (profilers_options_take(options, argc, argv, &exit_code))
		exit_code = options->from ? recall_and_show(options)
					  : compare_and_show(options, argc, argv);
	free(options);
	return exit_code;
}
