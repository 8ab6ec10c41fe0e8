#include "programs/cli/cli_become.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"
#include "programs/cli/cli_errors.h"

/* With links followed: a link in ~/bin finds what lies beside the real one. */
static void own_directory(char *directory, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", directory, size - 1);
	char *slash;

	directory[length > 0 ? length : 0] = '\0';
	slash = strrchr(directory, '/');
	if (slash)
		*slash = '\0';
}

static bool find(const char *directory, const char *program, char *path, size_t size)
{
	static const char *const places[] = { ".", "../libexec/ringside", "../lib/ringside" };

	for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
		if (text_format(path, size, "%s/%s/%s", directory, places[i], program) &&
		    access(path, X_OK) == 0)
			return true;
	return false;
}

bool cli_become_find(const char *program, char *path, size_t size)
{
	char directory[4000];

	own_directory(directory, sizeof(directory));
	if (find(directory, program, path, size))
		return true;
	text_copy(path, size, directory);
	return false;
}

int cli_become(const char *program, const char *lacks, char **argv)
{
	char path[4096];

	if (!cli_become_find(program, path, sizeof(path)))
		return cli_error("no %s beside %s/ringside: it was built without %s", program, path,
				 lacks);
	argv[0] = path;
	execv(path, argv);
	return cli_error("cannot run %s: %s", path, strerror(errno));
}
