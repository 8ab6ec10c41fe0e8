#include "programs/fetch/fetch_options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"

enum { EXIT_USAGE = 2 };

static const char help[] =
	"usage: ringside-fetch [OPTION...] <REQUESTS >FRAMES\n\n"
	"Fetches what the lines of its standard input ask for, many at a time, and writes the\n"
	"answers as they come. 'ringside doctor' runs it; docs/DOCTOR.md has the format.\n\n"
	"options:\n"
	"  --parallel N         requests at a time (default 32)\n"
	"  --timeout MS         for one request (default 5000)\n"
	"  --connect MS         of that, until it is connected (default: the same)\n"
	"  --limit BYTES        the most that one answer may have (default 64MiB)\n"
	"  --total BYTES        the most that all answers may have (default 4GiB)\n"
	"  --auth FILE          a line \"basic NAME:PASSWORD\" or \"bearer TOKEN\"\n"
	"  --cacert FILE        certificates of those who may sign, instead of the system's\n"
	"  --insecure           take any certificate\n"
	"  --help               show this help\n";

static int usage(const char *what, const char *word)
{
	fprintf(stderr, "ringside-fetch: %s '%s' (see 'ringside-fetch --help')\n", what, word);
	return EXIT_USAGE;
}

static int take_number(uint64_t *to, const char *text, int64_t least, int64_t most)
{
	int64_t number;

	if (text_number(text, least, most, &number) != OK)
		return usage("no number that can be used:", text);
	*to = (uint64_t)number;
	return -1;
}

static int take_size(uint64_t *to, const char *text)
{
	if (text_size(text, to) != OK || *to == 0 || *to > (uint64_t)1 << 40)
		return usage("no size that can be used:", text);
	return -1;
}

/* Blanks at the end of a line were not meant. */
static size_t line_length(const char *text)
{
	size_t length = strcspn(text, "\r\n");

	while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		length--;
	return length;
}

bool fetch_options_secret(struct fetch_options *options, const char *text)
{
	size_t length = line_length(text);

	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	if (length > 6 && strncmp(text, "basic ", 6) == 0 && memchr(text + 6, ':', length - 6))
		return text_format(options->user, sizeof(options->user), "%.*s", (int)length - 6,
				   text + 6);
	if (length > 7 && strncmp(text, "bearer ", 7) == 0)
		return text_format(options->bearer, sizeof(options->bearer), "%.*s",
				   (int)length - 7, text + 7);
	return false;
}

/* A pipe has nobody's rights; a file that all may read keeps no secret. */
static bool is_open_to_all(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IROTH);
}

static int take_auth(struct fetch_options *options, const char *path)
{
	char text[sizeof(options->bearer) + 16];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd == -1 ? -1 : read(fd, text, sizeof(text) - 1);

	if (length == -1) {
		fprintf(stderr, "ringside-fetch: %s: %s\n", path, strerror(errno));
	} else if (is_open_to_all(fd)) {
		fprintf(stderr,
			"ringside-fetch: %s: everybody can read it, so it is no secret: chmod 600 "
			"it\n",
			path);
		length = -1;
	}
	if (fd != -1)
		close(fd);
	if (length == -1)
		return EXIT_USAGE;
	text[length] = '\0';
	if (!fetch_options_secret(options, text))
		return usage("no line \"basic NAME:PASSWORD\" or \"bearer TOKEN\" in", path);
	return -1;
}

static int take(struct fetch_options *options, int found, const char *value)
{
	uint64_t parallel = options->parallel;
	int code;

	switch (found) {
	case 'p':
		code = take_number(&parallel, value, 1, 1024);
		options->parallel = (unsigned int)parallel;
		return code;
	case 't':
		return take_number(&options->timeout_ms, value, 1, 3600000);
	case 'c':
		return take_number(&options->connect_ms, value, 1, 3600000);
	case 'l':
		return take_size(&options->limit_bytes, value);
	case 'T':
		return take_size(&options->total_bytes, value);
	case 'a':
		return take_auth(options, value);
	case 'C':
		options->ca_file = value;
		return -1;
	case 'i':
		options->is_insecure = true;
		return -1;
	case 'h':
		fputs(help, stdout);
		return 0;
	default:
		return EXIT_USAGE;
	}
}

int fetch_options_parse(struct fetch_options *options, int argc, char **argv)
{
	static const struct option names[] = {
		{ "parallel", required_argument, NULL, 'p' },
		{ "timeout", required_argument, NULL, 't' },
		{ "connect", required_argument, NULL, 'c' },
		{ "limit", required_argument, NULL, 'l' },
		{ "total", required_argument, NULL, 'T' },
		{ "auth", required_argument, NULL, 'a' },
		{ "cacert", required_argument, NULL, 'C' },
		{ "insecure", no_argument, NULL, 'i' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int found, code;

	*options = (struct fetch_options){
		.parallel = 32,
		.timeout_ms = 5000,
		.limit_bytes = (uint64_t)64 << 20,
		.total_bytes = (uint64_t)4 << 30,
	};
	while ((found = getopt_long(argc, argv, "", names, NULL)) != -1) {
		code = take(options, found, optarg);
		if (code != -1)
			return code;
	}
	if (optind < argc)
		return usage("not expected:", argv[optind]);
	if (options->connect_ms == 0)
		options->connect_ms = options->timeout_ms;
	return -1;
}
