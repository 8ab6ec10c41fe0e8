/* ringside-fetch: see docs/DOCTOR.md. The tool's `ringside doctor` runs it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/fetch/fetch_frames.h"
#include "programs/fetch/fetch_loop.h"
#include "programs/fetch/fetch_options.h"

/* Whatever a server makes of us: no core with a password in it, no rights by a set-user-id program. */
static void give_up_rights(void)
{
	const struct rlimit none = { 0, 0 };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGPIPE, SIG_IGN);
}

/* A pipe's other end may be slow. Others, a terminal too, would stay so for those who come after us. */
static void stop_waiting(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (flags != -1 && fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static int refuse(size_t line, const char *what)
{
	fprintf(stderr, "ringside-fetch: line %zu of the requests: %s\n", line, what);
	return 2;
}

/* All requests before the first is sent: who writes them need not read meanwhile. */
static int read_requests(struct fetch_request **list, size_t *count)
{
	struct fetch_request *requests = calloc(FETCH_REQUESTS_MAX, sizeof(*requests));
	char line[FETCH_LINE_MAX];
	char *kept;

	*count = 0;
	*list = requests;
	while (requests && fgets(line, sizeof(line), stdin)) {
		size_t length = strcspn(line, "\n");

		if (line[length] == '\0' && !feof(stdin))
			return refuse(*count + 1, "too long");
		line[length] = '\0';
		if (*count == FETCH_REQUESTS_MAX)
			return refuse(*count + 1, "one too many");
		kept = strdup(line);
		if (kept == NULL)
			return refuse(*count + 1, "no memory");
		if (fetch_request_parse(&requests[*count], kept) != OK)
			return refuse(*count + 1, "not \"ID http://...\"");
		++*count;
	}
	return requests ? -1 : refuse(1, "no memory");
}

int main(int argc, char **argv)
{
	struct fetch_options options;
	struct fetch_request *requests;
	size_t count;
	int code = fetch_options_parse(&options, argc, argv);

	if (code != -1)
		return code;
	give_up_rights();
	code = read_requests(&requests, &count);
	if (code != -1)
		return code;
	stop_waiting(STDOUT_FILENO);
	code = fetch_loop(&options, requests, count, STDOUT_FILENO);
	/* Names that are still being looked up are nobody's business any more. */
	_exit(code);
}
