/* Command lines: options of every kind, their limits, mistakes, help, colors. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/text.h"
#include "tests/tap.h"

struct request {
	const char *unused; /* offset 0 means that work is not kept */
	const char *kept;
	bool is_json, has_more;
	const char *output;
	uint64_t hang_ns, bytes, count;
	int level;
	uint32_t port;
	double price;
	char operands[64];
};

static int take_operand(const struct cli_said *said)
{
	char *to = said->target;

	text_append(to, 64, "%s%s", to[0] ? " " : "", said->value);
	if (said->option != NULL)
		text_append(to, 64, "<%s", said->option->name);
	return strcmp(said->value, "bad") == 0 ? 7 : 0;
}

static const struct cli_option options[] = {
	{ 'j', "json", NULL, "write JSON", CLI_FLAG(struct request, is_json) },
	{ 0, "less", NULL, "show less", CLI_CLEAR(struct request, has_more), .is_view = true },
	{ 'o', "output", "FILE", "write to FILE", CLI_TEXT(struct request, output) },
	{ 0, "hang", "TIME", "report a hang after this long without progress",
	  CLI_TIME(struct request, hang_ns, CLI_SECONDS(1), CLI_SECONDS(60)),
	  .like = "is not a time like 20s", .less = "is too short", .more = "is too long" },
	{ 's', "size", "BYTES", "at most this much", CLI_SIZE(struct request, bytes),
	  .like = "is not a size like 64MiB" },
	{ 'l', "level", "N", "from -3 to 9", CLI_INT(struct request, level, -3, 9) },
	{ 'p', "port", "N", "a port", CLI_U32(struct request, port, 1, 65535) },
	{ 0, "count", "N", "how many", CLI_U64(struct request, count, 0, INT64_MAX) },
	{ 0, "an-option-with-a-long-name", "VALUE", "its help begins on a line of its own",
	  CLI_TEXT(struct request, output) },
	{ 0, "gpu-hour-price", "PRICE", "cost of a GPU",
	  CLI_CALL(struct request, price, cli_take_price) },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside try -j", "tries it" },
	{ NULL, NULL },
};

static const struct cli_other elsewhere[] = {
	{ 'z', "zip", "use -o FILE.gz" },
	{ 0, NULL, NULL },
};

static const struct cli_page page = { .name = "try",
				      .operands = "[PATH...]",
				      .about = "The first paragraph.\nThe second one.\n",
				      .options = options,
				      .examples = examples,
				      .elsewhere = elsewhere,
				      CLI_OPERANDS(struct request, operands, take_operand),
				      .work = offsetof(struct request, kept) };

/* ---- running ---------------------------------------------------------------------------------- */

static char said[8192];

/* A stream goes to a file from here on; returns what it was. */
static int redirect(int stream, const char *path)
{
	int before = dup(stream), fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	fflush(stdout);
	if (before == -1 || fd == -1 || dup2(fd, stream) == -1)
		abort();
	close(fd);
	return before;
}

static void restore(int stream, int before, const char *path)
{
	ssize_t length;
	int fd;

	fflush(stdout);
	dup2(before, stream);
	close(before);
	fd = open(path, O_RDONLY);
	length = read(fd, said, sizeof(said) - 1);
	said[length > 0 ? length : 0] = '\0';
	close(fd);
	unlink(path);
}

static const char *scratch_path(void)
{
	static char path[64];

	text_format(path, sizeof(path), "/tmp/ringside-parse-%d", (int)getpid());
	return path;
}

/* The words of a line, separated by blanks. What it prints on that stream is in `said`. */
static int run_page(const struct cli_page *on, struct request *request, const char *line,
		    int stream, int *operands)
{
	static char words[512];
	char *argv[32] = { (char[]){ "try" } }, *at = words;
	int argc = 1, before, code;

	*request = (struct request){ .has_more = true };
	text_copy(words, sizeof(words), line);
	for (; (argv[argc] = strtok_r(at, " ", &at)) != NULL; argc++)
		;
	before = redirect(stream, scratch_path());
	code = cli_parse_until(on, request, argc, argv, operands);
	restore(stream, before, scratch_path());
	return code;
}

static struct request request;

static int run(const char *line)
{
	int operands;

	return run_page(&page, &request, line, STDERR_FILENO, &operands);
}

/* ---- options ---------------------------------------------------------------------------------- */

static void values_are_stored(void)
{
	EXPECT(run("") == CLI_GO_ON && !request.is_json && request.has_more &&
	       request.kept == NULL);
	EXPECT(run("-j --less") == CLI_GO_ON && request.is_json && !request.has_more);
	EXPECT_THAT("what affects only the display is no work", strcmp(request.kept, "json") == 0);
	EXPECT(run("-jofile") == CLI_GO_ON && request.is_json &&
	       strcmp(request.output, "file") == 0 && strcmp(request.kept, "output") == 0);
	EXPECT(run("-o -j") == CLI_GO_ON && !request.is_json && strcmp(request.output, "-j") == 0);
	EXPECT(run("--output=a=b") == CLI_GO_ON && strcmp(request.output, "a=b") == 0);
	EXPECT(run("--output= x") == CLI_GO_ON && strcmp(request.output, "") == 0 &&
	       strcmp(request.operands, "x<output") == 0);
	EXPECT(run("--size 3KiB --level -3 --port 65535 --count 9223372036854775807") ==
		       CLI_GO_ON &&
	       request.bytes == 3072 && request.level == -3 && request.port == 65535 &&
	       request.count == INT64_MAX);
	EXPECT(run("--hang 1 -l9 -p 1") == CLI_GO_ON && request.hang_ns == 1000000000 &&
	       request.level == 9 && request.port == 1);
	EXPECT(run("--hang=60s --gpu-hour-price 2.5") == CLI_GO_ON &&
	       request.hang_ns == UINT64_C(60000000000) && request.price == 2.5);
}

static void operands_come_in_order(void)
{
	EXPECT(run("a -j b - -- -j --less") == CLI_GO_ON && request.is_json && request.has_more &&
	       strcmp(request.operands, "a b<json -<json -j<json --less<json") == 0);
	EXPECT_EQUAL(strcmp(request.kept, ""), 0);
	EXPECT_THAT("the first that fails ends it",
		    run("a bad c") == 7 && strcmp(request.operands, "a bad") == 0);
}

static void other_programs_keep_their_options(void)
{
	struct cli_page stops = page;
	int operands = 0;

	stops.stops_at_operand = true;
	EXPECT(run_page(&stops, &request, "-j prog -o x", STDERR_FILENO, &operands) == CLI_GO_ON &&
	       request.is_json && request.output == NULL && operands == 2);
	EXPECT(run_page(&stops, &request, "-j -- -o x", STDERR_FILENO, &operands) == CLI_GO_ON &&
	       request.output == NULL && operands == 3);
	EXPECT(run_page(&stops, &request, "-j", STDERR_FILENO, &operands) == CLI_GO_ON &&
	       operands == 2);
}

static void mistakes_are_explained(void)
{
	static const struct {
		const char *line, *complaint;
	} cases[] = {
		{ "--json=1", "option '--json' takes no argument" },
		{ "-o", "option '-o' needs FILE" },
		{ "--output", "option '--output' needs FILE" },
		{ "--hang 999ms", "--hang 999ms is too short" },
		{ "--hang 60.001s", "--hang 60.001s is too long" },
		{ "--hang soon", "--hang soon is not a time like 20s" },
		{ "--size big", "--size big is not a size like 64MiB" },
		{ "-l 10", "--level 10 is not a number from -3 to 9" },
		{ "-l -4", "--level -4 is not a number from -3 to 9" },
		{ "--port 0", "--port 0 is not a number from 1 to 65535" },
		{ "--port 65536", "--port 65536 is not a number from 1 to 65535" },
		{ "--jsn", "unknown option '--jsn', did you mean '--json'?" },
		{ "--hlep", "unknown option '--hlep', did you mean '--help'?" },
		{ "--gpu-hour-pric=3",
		  "unknown option '--gpu-hour-pric', did you mean '--gpu-hour-price'?" },
		{ "--nonsense", "unknown option '--nonsense'" },
		{ "--zip", "unknown option '--zip': use -o FILE.gz" },
		{ "-z", "unknown option '-z': use -o FILE.gz" },
		{ "-jx", "unknown option '-x'" },
		{ "--gpu-hour-price 0", "--gpu-hour-price 0 is not a price like 2.5" },
		{ "--gpu-hour-price 1000001", "--gpu-hour-price 1000001 is not a price like 2.5" },
		{ "--gpu-hour-price 2x", "--gpu-hour-price 2x is not a price like 2.5" },
		{ "--gpu-hour-price x", "--gpu-hour-price x is not a price like 2.5" },
	};
	char wanted[200];

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		int code = run(cases[i].line);

		text_format(wanted, sizeof(wanted),
			    "ringside try: %s (see 'ringside try --help')\n", cases[i].complaint);
		if (!EXPECT_THAT(cases[i].line,
				 code == CLI_EXIT_USAGE && strcmp(said, wanted) == 0))
			printf("#   %d %s", code, said);
	}
	EXPECT(run("--gpu-hour-price 1000000") == CLI_GO_ON && request.price == 1e6);
}

static void a_page_without_operands_takes_none(void)
{
	struct cli_page none = page;
	int operands;

	none.operand = NULL;
	EXPECT(run_page(&none, &request, "x", STDERR_FILENO, &operands) == CLI_EXIT_USAGE &&
	       strstr(said, "unexpected argument 'x'") != NULL);
}

/* ---- words ------------------------------------------------------------------------------------ */

static void near_words_are_suggested(void)
{
	static const char *const list[] = { "report", "record", "run", "doctor", "job", "top" };
	static const struct {
		const char *word, *nearest;
	} cases[] = {
		{ "report", "report" },	   { "reprot", "report" },
		{ "rport", "report" },	   { "rreport", "report" },
		{ "recrod", "record" },	   { "re", "report" },
		{ "rec", "record" },	   { "docter", "doctor" },
		{ "dokter", "doctor" },	   { "doktr", "doctor" },
		{ "doxxr", NULL },	   { "foo", NULL },
		{ "tp", "top" },	   { "r", NULL },
		{ "rin", "run" },	   { "", NULL },
		{ "xxxdoctor", "doctor" }, { "xxxxdoctor", NULL },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		const char *nearest = cli_nearest(cases[i].word, list, ARRAY_LENGTH(list));

		if (!EXPECT_THAT(cases[i].word, nearest == cases[i].nearest ||
							(nearest && cases[i].nearest &&
							 strcmp(nearest, cases[i].nearest) == 0)))
			printf("#   %s\n", nearest ? nearest : "none");
	}
	EXPECT(cli_nearest("report", list, 0) == NULL);
}

static void exit_codes_join(void)
{
	EXPECT(cli_exit_join(0, 0) == 0 && cli_exit_join(0, 3) == 3 && cli_exit_join(1, 0) == 1);
	EXPECT_THAT("trouble that was found counts more than what is unknown",
		    cli_exit_join(1, 3) == 1 && cli_exit_join(3, 1) == 1 &&
			    cli_exit_join(2, 3) == 2);
}

static void only_one_value(void)
{
	int before = redirect(STDERR_FILENO, scratch_path());
	int one = cli_one_value(&page, "rank", "3"), two = cli_one_value(&page, "rank", "3,4"),
	    all = cli_one_value(&page, "rank", "all");

	restore(STDERR_FILENO, before, scratch_path());
	EXPECT(one == 0 && two == CLI_EXIT_USAGE && all == CLI_EXIT_USAGE);
	EXPECT(strstr(said, "--rank '3,4': only one value is allowed here") != NULL);
}

static void width_comes_from_columns(void)
{
	setenv("COLUMNS", "123", 1);
	EXPECT_EQUAL(cli_width(), 123);
	setenv("COLUMNS", "10000", 1);
	EXPECT_EQUAL(cli_width(), 10000);
	unsetenv("COLUMNS");
}

/* ---- pages ------------------------------------------------------------------------------------ */

static const char help[] =
	"usage: ringside try [OPTION...] [PATH...]\n"
	"\n"
	"The first paragraph.\n"
	"\n"
	"The second one.\n"
	"\n"
	"options:\n"
	"  -j, --json              write JSON\n"
	"      --less              show less\n"
	"  -o, --output FILE       write to FILE\n"
	"      --hang TIME         report a hang after this long without progress\n"
	"  -s, --size BYTES        at most this much\n"
	"  -l, --level N           from -3 to 9\n"
	"  -p, --port N            a port\n"
	"      --count N           how many\n"
	"      --an-option-with-a-long-name VALUE\n"
	"                          its help begins on a line of its own\n"
	"      --gpu-hour-price PRICE\n"
	"                          cost of a GPU\n"
	"  -h, --help              show this help\n"
	"\n"
	"examples:\n"
	"  ringside try -j\n"
	"      tries it\n";

static void pages_are_shown(void)
{
	int operands;

	EXPECT_EQUAL(run_page(&page, &request, "--help", STDOUT_FILENO, &operands), 0);
	if (!EXPECT(strcmp(said, help) == 0))
		printf("# %s\n", said);
	EXPECT(run_page(&page, &request, "-jh", STDOUT_FILENO, &operands) == 0 &&
	       strcmp(said, help) == 0);
	setenv("COLUMNS", "40", 1);
	run_page(&page, &request, "-h", STDOUT_FILENO, &operands);
	EXPECT_THAT("a narrow terminal wraps",
		    strstr(said, "      --hang TIME         report a hang\n"
				 "                          after this\n") != NULL);
	setenv("COLUMNS", "200", 1);
	EXPECT(run_page(&page, &request, "-h", STDOUT_FILENO, &operands) == 0 &&
	       strcmp(said, help) == 0);
	unsetenv("COLUMNS");
	EXPECT_EQUAL(run_page(&page, &request, "--list-options", STDOUT_FILENO, &operands), 0);
	EXPECT(strncmp(said,
		       "operands\t[PATH...]\nj\tjson\t-\twrite JSON\n-\tless\t-\tshow less\n"
		       "o\toutput\tFILE\twrite to FILE\n",
		       80) == 0);
	EXPECT(strstr(said, "h\thelp\t-\tshow this help\n") != NULL);
}

/* Headings are bold; the first word of a line has the color of its severity. */
static void severities_have_colors(void)
{
	const struct cli_said always = { &page, options, "always", NULL },
			      never = { &page, options, "never", NULL },
			      sometimes = { &page, options, "sometimes", NULL };
	struct sink sink;
	int before, code;

	EXPECT(cli_take_color(&always) == 0 && cli_has_color());
	before = redirect(STDOUT_FILENO, scratch_path());
	cli_text(&sink);
	sink_text(&sink,
		  "AGE  OPERATION  BUSBW GB/s\nAGE OPERATION\nABC  D\nABC  \nThe AGE  OF\n"
		  "error: a\n- warning: b\n  healthy\ncomplete c\nerrors: d\nan error\nlast");
	code = cli_finish(&sink, CLI_EXIT_TROUBLE);
	restore(STDOUT_FILENO, before, scratch_path());
	EXPECT_EQUAL(code, CLI_EXIT_TROUBLE);
	if (!EXPECT(strcmp(said, "\033[1mAGE  OPERATION  BUSBW GB/s\033[0m\n"
				 "AGE OPERATION\n"
				 "\033[1mABC  D\033[0m\n"
				 "ABC  \n"
				 "The AGE  OF\n"
				 "\033[1;31merror\033[0m: a\n"
				 "- \033[1;33mwarning\033[0m: b\n"
				 "  \033[1;32mhealthy\033[0m\n"
				 "\033[1;32mcomplete\033[0m c\n"
				 "errors: d\n"
				 "an error\n"
				 "last") == 0))
		printf("# %s\n", said);
	EXPECT(cli_take_color(&never) == 0 && !cli_has_color());
	before = redirect(STDERR_FILENO, scratch_path());
	code = cli_take_color(&sometimes);
	restore(STDERR_FILENO, before, scratch_path());
	EXPECT(code == CLI_EXIT_USAGE && !cli_has_color());
}

int main(void)
{
	unsetenv("COLUMNS");
	values_are_stored();
	operands_come_in_order();
	other_programs_keep_their_options();
	mistakes_are_explained();
	a_page_without_operands_takes_none();
	near_words_are_suggested();
	exit_codes_join();
	only_one_value();
	width_comes_from_columns();
	pages_are_shown();
	severities_have_colors();
	return tap_done();
}
