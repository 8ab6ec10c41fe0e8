/* ringside-top: see docs/TOP.md. The tool's `ringside top` starts it. */
#include <langinfo.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmds/cli.h"
#include "programs/top/top_loop.h"
#include "programs/top/top_once.h"
#include "programs/top/top_options.h"
#include "programs/top/top_screen.h"

static bool is_utf8_locale(void)
{
	setlocale(LC_CTYPE, "");
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

int main(int argc, char **argv)
{
	bool is_utf8 = is_utf8_locale();
	struct top_options options;
	int code = top_options_parse(&options, argc, argv);

	if (code != -1)
		return code;
	if (options.is_once || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return top_once(&options, is_utf8);
	if (!top_screen_open()) {
		const char *term = getenv("TERM");

		cli_error("a terminal of type '%s' cannot show this live (TERM): here is one look",
			  term ? term : "");
		return top_once(&options, is_utf8);
	}
	return top_loop(&options, is_utf8 && top_screen_has_blocks());
}
