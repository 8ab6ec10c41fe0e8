#include "programs/cli/cli_page.h"

#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "programs/cli/cli_errors.h"
#include "view/sink.h"
#include "view/table.h"

enum { HELP_WIDTH = 80, HELP_COLUMN = 26 };

static const struct cli_option help_option = { 'h', "help", NULL, "show this help" };

static void write_option(struct sink *sink, const struct cli_option *option, unsigned int width)
{
	char head[80], letter[8] = "    ";
	size_t length;

	if (option->id < CLI_LONG_ONLY)
		text_format(letter, sizeof(letter), "-%c, ", option->id);
	text_format(head, sizeof(head), "  %s--%s%s%s", letter, option->name,
		    option->value ? " " : "", option->value ? option->value : "");
	length = strlen(head);
	if (length + 2 > HELP_COLUMN) {
		sink_format(sink, "%s\n", head);
		memset(head, ' ', HELP_COLUMN);
	} else {
		memset(head + length, ' ', HELP_COLUMN - length);
	}
	head[HELP_COLUMN] = '\0';
	table_wrap(sink, option->help, head, HELP_COLUMN, width);
}

static void write_about(struct sink *sink, const char *about, unsigned int width)
{
	while (*about != '\0') {
		size_t length = strcspn(about, "\n");
		char paragraph[1024];

		text_format(paragraph, sizeof(paragraph), "%.*s", (int)length, about);
		table_wrap(sink, paragraph, "", 0, width);
		sink_text(sink, "\n");
		about += length + (about[length] == '\n');
	}
}

int cli_page_help(const struct cli_page *page)
{
	unsigned int width = cli_width();
	struct sink sink;

	/* The same into a pipe as on a plain terminal: tests and manuals compare it. */
	if (width == 0 || width > HELP_WIDTH)
		width = HELP_WIDTH;
	sink_init_fd(&sink, STDOUT_FILENO);
	sink_format(&sink, "usage: ringside %s [OPTION...]%s%s\n\n", page->name,
		    page->operands[0] ? " " : "", page->operands);
	write_about(&sink, page->about, width);
	sink_text(&sink, "options:\n");
	for (const struct cli_option *option = page->options; option->name; option++)
		write_option(&sink, option, width);
	write_option(&sink, &help_option, width);
	if (page->examples && page->examples->command)
		sink_text(&sink, "\nexamples:\n");
	for (const struct cli_example *example = page->examples; example && example->command;
	     example++) {
		sink_format(&sink, "  %s\n", example->command);
		table_wrap(&sink, example->what, "      ", 6, width);
	}
	return cli_finish(&sink, CLI_EXIT_DONE);
}
