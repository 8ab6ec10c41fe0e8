/* Messages, pager, help pages, the parser of options, progress. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "output/sink.h"
#include "output/table.h"

enum { CLI_LINE_BYTES = 2048, CLI_WORD_MAX = 40 };

/* The running command, set by cli_parse(); NULL before. */
static const struct cli_page *running;

static bool is_quiet, has_no_pager;
static enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color_when;

/* Messages contain paths and names from users, which must not control the terminal. */
static void print_line(const struct cli_page *page, const char *format, va_list values,
		       const char *suffix)
{
	char line[CLI_LINE_BYTES];

	vsnprintf(line, sizeof(line), format, values);
	text_clean(line);
	fprintf(stderr, "ringside%s%s: %s%s\n", page ? " " : "", page ? page->name : "", line,
		suffix);
}

int cli_error(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	print_line(running, format, values, "");
	va_end(values);
	return CLI_EXIT_UNKNOWN;
}

void cli_note(const char *format, ...)
{
	va_list values;

	if (is_quiet)
		return;
	va_start(values, format);
	print_line(running, format, values, "");
	va_end(values);
}

int cli_exit_join(int a, int b)
{
	if (a == CLI_EXIT_DONE || b == CLI_EXIT_DONE)
		return a == CLI_EXIT_DONE ? b : a;
	return a < b ? a : b;
}

int cli_usage(const struct cli_page *page, const char *format, ...)
{
	char suffix[96];
	va_list values;

	text_format(suffix, sizeof(suffix), " (see 'ringside %s --help')", page->name);
	va_start(values, format);
	print_line(page, format, values, suffix);
	va_end(values);
	return CLI_EXIT_USAGE;
}

int cli_one_value(const struct cli_page *page, const char *option, const char *value)
{
	if (strchr(value, ',') == NULL && strcmp(value, "all") != 0)
		return 0;
	return cli_usage(page, "--%s '%s': only one value is allowed here", option, value);
}

static unsigned int least_of(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Edit distance: letters replaced, left out, added, or swapped with a neighbor. */
static unsigned int word_distance(const char *a, const char *b)
{
	unsigned int rows[3][CLI_WORD_MAX + 1];
	size_t a_length = strlen(a), b_length = strlen(b);
	unsigned int *before = rows[0], *above = rows[1], *row = rows[2];

	if (a_length > CLI_WORD_MAX || b_length > CLI_WORD_MAX)
		return CLI_WORD_MAX;
	for (size_t j = 0; j <= b_length; j++)
		above[j] = before[j] = (unsigned int)j;
	for (size_t i = 1; i <= a_length; i++) {
		unsigned int *spare = before;

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= b_length; j++) {
			row[j] = least_of(above[j], row[j - 1]) + 1;
			row[j] = least_of(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least_of(row[j], before[j - 2] + 1);
		}
		before = above;
		above = row;
		row = spare;
	}
	return above[b_length];
}

const char *cli_nearest(const char *word, const char *const *list, size_t count)
{
	size_t length = strlen(word);
	/* If most letters differ ("foo" and "job"), it is not a typo. */
	unsigned int nearest = length > 6 ? 3 : length > 4 ? 2 : 1;
	const char *found = NULL;

	for (size_t i = 0; i < count; i++) {
		unsigned int far = word_distance(word, list[i]);

		/* A prefix counts as one wrong letter. */
		if (length >= 2 && strncmp(word, list[i], length) == 0)
			far = least_of(far, 1);
		if (far < nearest || (far == nearest && found == NULL)) {
			nearest = far;
			found = list[i];
		}
	}
	return found;
}

unsigned int cli_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	int64_t number;

	if (columns && text_number(columns, 1, 10000, &number) == OK)
		return (unsigned int)number;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		return size.ws_col;
	return 0;
}

/* ---- text output -------------------------------------------------------------------------- */

int cli_take_quiet(const struct cli_said *said)
{
	(void)said;
	is_quiet = true;
	return 0;
}

int cli_take_no_pager(const struct cli_said *said)
{
	(void)said;
	has_no_pager = true;
	return 0;
}

int cli_take_price(const struct cli_said *said)
{
	double *price = said->target;
	char *end = NULL;

	*price = strtod(said->value, &end);
	if (end == said->value || *end != '\0' || !(*price > 0) || *price > 1e6)
		return cli_usage(said->page, "--gpu-hour-price %s is not a price like 2.5",
				 said->value);
	return 0;
}

int cli_take_color(const struct cli_said *said)
{
	if (strcmp(said->value, "auto") == 0)
		color_when = COLOR_AUTO;
	else if (strcmp(said->value, "always") == 0)
		color_when = COLOR_ALWAYS;
	else if (strcmp(said->value, "never") == 0)
		color_when = COLOR_NEVER;
	else
		return cli_usage(said->page, "--color '%s' is not auto, always or never",
				 said->value);
	return 0;
}

bool cli_is_quiet(void)
{
	return is_quiet;
}

bool cli_has_color(void)
{
	const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");

	if (color_when != COLOR_AUTO)
		return color_when == COLOR_ALWAYS;
	return isatty(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0') &&
	       (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

/* Whether a sink holds text for cli_finish() to show. */
static const struct sink *held;

void cli_text(struct sink *sink)
{
	if (!cli_has_color() && !isatty(STDOUT_FILENO)) {
		sink_init_fd(sink, STDOUT_FILENO);
		return;
	}
	sink_init_memory(sink);
	held = sink;
}

void cli_begin(struct sink *sink, bool is_json)
{
	if (is_json)
		sink_init_fd(sink, STDOUT_FILENO);
	else
		cli_text(sink);
}

/* "AGE  OPERATION  BUSBW GB/s": two words at least, and capitals. */
static bool is_heading(const char *line, size_t length)
{
	size_t capitals = 0, gaps = 0;

	for (size_t i = 0; i < length; i++) {
		capitals += line[i] >= 'A' && line[i] <= 'Z';
		gaps += i > 0 && line[i] == ' ' && line[i - 1] == ' ';
		if (line[i] >= 'a' && line[i] <= 'z' && (i == 0 || line[i - 1] != '/'))
			return false;
	}
	return capitals > 3 && gaps > 0;
}

/* The first word of a line, after "- ": the severity. */
static const char *color_of(const char *line, size_t length, size_t *from, size_t *to)
{
	static const struct {
		const char *word;
		const char *color;
	} words[] = {
		{ "error", "\033[1;31m" },   { "trouble", "\033[1;31m" },
		{ "warning", "\033[1;33m" }, { "slower", "\033[1;33m" },
		{ "healthy", "\033[1;32m" }, { "complete", "\033[1;32m" },
	};

	*from = strspn(line, " -");
	for (size_t i = 0; i < ARRAY_LENGTH(words) && *from < length; i++) {
		size_t word = strlen(words[i].word);

		*to = *from + word;
		if (*to <= length && strncmp(line + *from, words[i].word, word) == 0 &&
		    (*to == length || line[*to] == ':' || line[*to] == ' '))
			return words[i].color;
	}
	return NULL;
}

static void color_lines(struct sink *to, const char *text)
{
	while (*text != '\0') {
		size_t length = strcspn(text, "\n"), from, end;
		const char *color = color_of(text, length, &from, &end);

		if (is_heading(text, length)) {
			sink_format(to, "\033[1m%.*s\033[0m", (int)length, text);
		} else if (color != NULL) {
			sink_format(to, "%.*s%s%.*s\033[0m", (int)from, text, color,
				    (int)(end - from), text + from);
			sink_write(to, text + end, length - end);
		} else {
			sink_write(to, text, length);
		}
		text += length;
		if (*text == '\n') {
			sink_byte(to, '\n');
			text++;
		}
	}
}

/* NULL: no pager. */
static const char *find_pager(void)
{
	const char *pager = getenv("RINGSIDE_PAGER");

	if (pager == NULL)
		pager = getenv("PAGER");
	if (pager == NULL)
		pager = "less -FRX";
	return pager[0] == '\0' || strcmp(pager, "cat") == 0 ? NULL : pager;
}

static bool is_longer_than_screen(const char *text)
{
	struct winsize size;
	unsigned int lines = 0;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0)
		return false;
	for (; *text != '\0' && lines < size.ws_row; text++)
		lines += *text == '\n';
	return lines >= size.ws_row;
}

/* False: the pager could not be run, and nothing was shown. */
static bool show_in_pager(const char *pager, const char *text, size_t length)
{
	void (*before)(int), (*child_before)(int), (*interrupt_before)(int);
	int ends[2], how = 0;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) == -1)
		return false;
	child_before = signal(SIGCHLD, SIG_DFL);
	/* Ctrl-C is for the pager. Without us it would share the terminal with the shell. */
	interrupt_before = signal(SIGINT, SIG_IGN);
	child = fork();
	if (child == 0) {
		signal(SIGINT, interrupt_before);
		dup2(ends[0], STDIN_FILENO);
		execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
		_exit(127);
	}
	close(ends[0]);
	/* Leaving the pager early is not an error. */
	before = signal(SIGPIPE, SIG_IGN);
	while (child != -1 && length > 0) {
		ssize_t wrote = write(ends[1], text, length);

		if (wrote <= 0)
			break;
		text += wrote;
		length -= (size_t)wrote;
	}
	close(ends[1]);
	while (child != -1 && waitpid(child, &how, 0) == -1 && errno == EINTR)
		;
	signal(SIGPIPE, before);
	signal(SIGINT, interrupt_before);
	signal(SIGCHLD, child_before);
	return child != -1 && !(WIFEXITED(how) && WEXITSTATUS(how) >= 126);
}

/* Writes the contents of a memory sink to stdout; then the sink writes to stdout directly. */
static void show_text(struct sink *sink)
{
	const char *pager = has_no_pager || !isatty(STDOUT_FILENO) ? NULL : find_pager();
	struct sink text, *shown = sink, out;

	held = NULL;
	sink_init_memory(&text);
	if (cli_has_color() && strchr(sink_string(sink), '\033') == NULL) {
		color_lines(&text, sink_string(sink));
		shown = &text;
	}
	sink_init_fd(&out, STDOUT_FILENO);
	if (pager == NULL || !is_longer_than_screen(sink_string(shown)) ||
	    !show_in_pager(pager, sink_string(shown), strlen(sink_string(shown))))
		sink_text(&out, sink_string(shown));
	if (sink->status != OK || text.status != OK)
		cli_no_memory();
	sink_release(&text);
	sink_release(sink);
	*sink = out;
}

int cli_finish(struct sink *sink, int exit_code)
{
	if (sink == held)
		show_text(sink);
	if (sink_flush(sink) != OK) {
		exit_code = CLI_EXIT_UNKNOWN;
		if (sink->error != EPIPE)
			cli_error("cannot write the output: %s", strerror(sink->error));
	}
	sink_release(sink);
	return exit_code;
}

void cli_no_memory(void)
{
	cli_error("out of memory");
	exit(CLI_EXIT_UNKNOWN);
}

void *cli_realloc(void *before, size_t bytes)
{
	void *memory = realloc(before, bytes);

	if (memory == NULL)
		cli_no_memory();
	return memory;
}

char *cli_read_file(const char *path, size_t most, size_t *length)
{
	struct stat st;
	int fd = strcmp(path, "-") == 0	       ? STDIN_FILENO
		 : file_examine(-1, path, &st) ? open(path, O_RDONLY | O_CLOEXEC)
					       : -1;
	char *text = fd != -1 ? file_read_whole(fd, most, length) : NULL;

	if (text == NULL && errno == ENOMEM)
		cli_no_memory();
	if (text == NULL && errno == EFBIG)
		cli_error("%s: larger than %zu MiB", path, most >> 20);
	else if (text == NULL)
		cli_error("%s: %s", path, file_error_text(errno));
	if (fd > STDIN_FILENO)
		close(fd);
	return text;
}

enum { HELP_WIDTH = 80, HELP_COLUMN = 26 };

static const struct cli_option help_option = { 'h', "help", NULL, "show this help",
					       .kind = CLI_KIND_FLAG };

static void write_option(struct sink *sink, const struct cli_option *option, unsigned int width)
{
	char head[80], letter[8] = "    ";
	size_t length;

	if (option->letter != 0)
		text_format(letter, sizeof(letter), "-%c, ", option->letter);
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

	/* The same in a pipe as on a plain terminal, because tests and manuals compare it. */
	if (width == 0 || width > HELP_WIDTH)
		width = HELP_WIDTH;
	cli_text(&sink);
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

static void list_option(struct sink *sink, const struct cli_option *option)
{
	sink_format(sink, "%c\t%s\t%s\t%s\n", option->letter ? option->letter : '-', option->name,
		    option->value ? option->value : "-", option->help);
}

int cli_page_list(const struct cli_page *page)
{
	struct sink sink;

	sink_init_fd(&sink, STDOUT_FILENO);
	sink_format(&sink, "operands\t%s\n", page->operands);
	for (const struct cli_option *option = page->options; option->name; option++)
		list_option(&sink, option);
	list_option(&sink, &help_option);
	return cli_finish(&sink, CLI_EXIT_DONE);
}

/* ---- options --------------------------------------------------------------------------------- */

struct parse {
	const struct cli_page *page;
	char *request;
	int argc;
	char **argv;
	int at;			       /* next argument */
	const struct cli_option *last; /* previous option, or NULL */
	bool only_operands;	       /* after `--` */
};

static int bad_value(const struct cli_said *said, const char *why)
{
	const struct cli_option *option = said->option;

	if (why != NULL)
		return cli_usage(said->page, "--%s %s %s", option->name, said->value, why);
	return cli_usage(said->page, "--%s %s is not a number from %" PRId64 " to %" PRId64,
			 option->name, said->value, option->least, option->most);
}

static int take_amount(const struct cli_said *said)
{
	const struct cli_option *option = said->option;
	const char *less = option->less ? option->less : option->like;
	enum status status;
	uint64_t amount;

	status = option->kind == CLI_KIND_TIME ? text_duration(said->value, &amount)
					       : text_size(said->value, &amount);
	if (status != OK)
		return bad_value(said, option->like);
	if (amount < (uint64_t)option->least)
		return bad_value(said, less);
	if (option->most != 0 && amount > (uint64_t)option->most)
		return bad_value(said, option->more ? option->more : less);
	*(uint64_t *)said->target = amount;
	return 0;
}

static int take_number(const struct cli_said *said)
{
	const struct cli_option *option = said->option;
	int64_t number;

	if (text_number(said->value, option->least, option->most, &number) != OK)
		return bad_value(said, option->like);
	if (option->kind == CLI_KIND_INT)
		*(int *)said->target = (int)number;
	else if (option->kind == CLI_KIND_U32)
		*(uint32_t *)said->target = (uint32_t)number;
	else
		*(uint64_t *)said->target = (uint64_t)number;
	return 0;
}

static int take_value(const struct cli_said *said)
{
	switch (said->option->kind) {
	case CLI_KIND_FLAG:
	case CLI_KIND_CLEAR:
		*(bool *)said->target = said->option->kind == CLI_KIND_FLAG;
		return 0;
	case CLI_KIND_TEXT:
		*(const char **)said->target = said->value;
		return 0;
	case CLI_KIND_TIME:
	case CLI_KIND_SIZE:
		return take_amount(said);
	case CLI_KIND_CALL:
		return said->option->take(said);
	default:
		return take_number(said);
	}
}

static void note_work(const struct parse *parse, const char *name)
{
	if (parse->page->work != 0)
		*(const char **)(void *)(parse->request + parse->page->work) = name;
}

/* `given` is the argument attached to the option (--name=VALUE, -nVALUE), or NULL. */
static int take_option(struct parse *parse, const struct cli_option *option, const char *shown,
		       const char *given)
{
	struct cli_said said = { parse->page, option, given, parse->request + option->target };
	int failed;

	if (option->value == NULL && given)
		return cli_usage(parse->page, "option '%s' takes no argument", shown);
	if (option->value && given == NULL) {
		if (parse->at == parse->argc)
			return cli_usage(parse->page, "option '%s' needs %s", shown, option->value);
		said.value = parse->argv[parse->at++];
	}
	parse->last = option;
	if (!option->is_view)
		note_work(parse, option->name);
	failed = take_value(&said);
	return failed ? failed : CLI_GO_ON;
}

/* Finds an option of another tool, by letter or name; NULL: none. */
static const struct cli_other *find_elsewhere(const struct cli_page *page, char letter,
					      const char *name)
{
	for (const struct cli_other *at = page->elsewhere; at && at->name; at++)
		if (name ? strcmp(at->name, name) == 0 : at->letter == letter)
			return at;
	return NULL;
}

static int unknown_option(const struct cli_page *page, const char *word, size_t length)
{
	const char *names[64] = { "help" };
	const struct cli_other *elsewhere;
	const char *nearest;
	char name[64];
	size_t count = 1;

	for (const struct cli_option *at = page->options; at->name; at++)
		if (count < ARRAY_LENGTH(names))
			names[count++] = at->name;
	text_format(name, sizeof(name), "%.*s", (int)length, word);
	elsewhere = find_elsewhere(page, 0, name);
	if (elsewhere)
		return cli_usage(page, "unknown option '--%s': %s", name, elsewhere->instead);
	nearest = cli_nearest(name, names, count);
	if (nearest)
		return cli_usage(page, "unknown option '--%s', did you mean '--%s'?", name,
				 nearest);
	return cli_usage(page, "unknown option '--%s'", name);
}

static int long_option(struct parse *parse, const char *word)
{
	size_t length = strcspn(word, "=");
	char shown[64];

	for (const struct cli_option *at = parse->page->options; at->name; at++) {
		if (strlen(at->name) != length || strncmp(at->name, word, length) != 0)
			continue;
		text_format(shown, sizeof(shown), "--%s", at->name);
		return take_option(parse, at, shown,
				   word[length] == '=' ? word + length + 1 : NULL);
	}
	if (strcmp(word, "help") == 0)
		return cli_page_help(parse->page);
	if (strcmp(word, &CLI_LIST_OPTIONS[2]) == 0)
		return cli_page_list(parse->page);
	return unknown_option(parse->page, word, length);
}

/* Short options in one argument; the first that takes a value gets the rest. */
static int short_options(struct parse *parse, const char *letters)
{
	int code = CLI_GO_ON;

	while (code == CLI_GO_ON && *letters != '\0') {
		const char shown[3] = { '-', *letters, '\0' };
		const struct cli_option *at = parse->page->options;
		const struct cli_other *elsewhere;

		while (at->name && at->letter != *letters)
			at++;
		letters++;
		if (at->name && at->value)
			return take_option(parse, at, shown, *letters != '\0' ? letters : NULL);
		if (at->name) {
			code = take_option(parse, at, shown, NULL);
			continue;
		}
		if (shown[1] == 'h')
			return cli_page_help(parse->page);
		elsewhere = find_elsewhere(parse->page, shown[1], NULL);
		return cli_usage(parse->page, "unknown option '%s'%s%s", shown,
				 elsewhere ? ": " : "", elsewhere ? elsewhere->instead : "");
	}
	return code;
}

static int take_operand(struct parse *parse, const char *word)
{
	const struct cli_page *page = parse->page;
	const struct cli_said said = { page, parse->last, word,
				       parse->request + page->operand_target };
	int failed;

	if (page->operand == NULL)
		return cli_usage(page, "unexpected argument '%s'", word);
	note_work(parse, "");
	failed = page->operand(&said);
	return failed ? failed : CLI_GO_ON;
}

int cli_parse_until(const struct cli_page *page, void *request, int argc, char **argv,
		    int *operands)
{
	struct parse parse = { .page = page, .request = request, .argc = argc, .argv = argv };
	int code = CLI_GO_ON;

	running = page;
	parse.at = 1;
	while (code == CLI_GO_ON && parse.at < argc) {
		const char *word = argv[parse.at++];

		/* A lone "-" is an operand. */
		if (!parse.only_operands && strcmp(word, "--") == 0)
			parse.only_operands = true;
		else if (!parse.only_operands && word[0] == '-' && word[1] == '-')
			code = long_option(&parse, word + 2);
		else if (!parse.only_operands && word[0] == '-' && word[1] != '\0')
			code = short_options(&parse, word + 1);
		else if (page->stops_at_operand) {
			parse.at--;
			break;
		} else
			code = take_operand(&parse, word);
	}
	*operands = parse.at;
	return code;
}

int cli_parse(const struct cli_page *page, void *request, int argc, char **argv)
{
	int operands;

	return cli_parse_until(page, request, argc, argv, &operands);
}

/* ---- progress -------------------------------------------------------------------------------- */

enum { PROGRESS_LINE = 160 };
#define PROGRESS_FIRST_NS UINT64_C(1000000000)
#define PROGRESS_AGAIN_NS UINT64_C(200000000)

/* The line must fit the terminal: a wrapped line cannot be rewritten. */
static size_t terminal_width(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static void progress_put(struct cli_progress *progress, const char *text, size_t length)
{
	/* Write errors are ignored: the work continues without progress. */
	if (write(progress->fd, text, length) != (ssize_t)length)
		progress->is_on = false;
}

void cli_progress_start(struct cli_progress *progress, const char *what, const char *unit,
			uint64_t total)
{
	const char *terminal = getenv("TERM");

	*progress = (struct cli_progress){
		.what = what, .unit = unit, .total = total, .fd = STDERR_FILENO
	};
	progress->began_ns = clock_system_ns(CLOCK_MONOTONIC);
	progress->next_ns = progress->began_ns + PROGRESS_FIRST_NS;
	progress->is_on =
		!is_quiet && isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

/* "  export  43 %  12 of 28 operations, 7 s left" */
static void write_line(char *line, size_t size, const struct cli_progress *progress,
		       uint64_t now_ns)
{
	uint64_t passed = now_ns - progress->began_ns, seconds;
	char done[UNITS_TEXT], total[UNITS_TEXT], left[UNITS_TEXT];
	double part;

	units_count(done, progress->done);
	if (progress->total == 0 || progress->done > progress->total) {
		text_format(line, size, "  %s  %s %s", progress->what, done, progress->unit);
		return;
	}
	part = (double)progress->done / (double)progress->total;
	text_format(line, size, "  %s  %2.0f%%  %s of %s %s", progress->what, part * 100, done,
		    units_count(total, progress->total), progress->unit);
	if (progress->done == 0)
		return;
	/* Whole seconds: fractions would only flicker. */
	seconds = (uint64_t)((double)passed / part - (double)passed) / 1000000000 + 1;
	if (seconds < 60)
		text_format(left, sizeof(left), "%d s", (int)seconds);
	else
		units_duration(left, seconds * 1000000000);
	text_format(line + strlen(line), size - strlen(line), ", %s left", left);
}

void cli_progress_at_time(struct cli_progress *progress, uint64_t done, uint64_t now_ns)
{
	char line[PROGRESS_LINE], text[PROGRESS_LINE + 8];
	size_t width;

	progress->done = done;
	if (!progress->is_on || now_ns < progress->next_ns)
		return;
	progress->next_ns = now_ns + PROGRESS_AGAIN_NS;
	write_line(line, sizeof(line), progress, now_ns);
	width = terminal_width(progress->fd);
	if (strlen(line) >= width)
		line[width - 1] = '\0';
	text_format(text, sizeof(text), "\r%s\033[K", line);
	progress->is_shown = true;
	progress_put(progress, text, strlen(text));
}

void cli_progress_at(struct cli_progress *progress, uint64_t done)
{
	if (progress->is_on)
		cli_progress_at_time(progress, done, clock_system_ns(CLOCK_MONOTONIC));
}

bool cli_progress_fraction(double fraction, void *context)
{
	struct cli_progress *progress = context;

	cli_progress_at(progress, (uint64_t)(fraction * (double)progress->total));
	return true;
}

void cli_progress_hide(struct cli_progress *progress)
{
	static const char clear[] = "\r\033[K";

	if (progress->is_shown && progress->is_on)
		progress_put(progress, clear, sizeof(clear) - 1);
	progress->is_shown = false;
}

void cli_progress_end(struct cli_progress *progress)
{
	cli_progress_hide(progress);
	progress->is_on = false;
}
