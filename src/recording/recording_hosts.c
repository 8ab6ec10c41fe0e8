/*
 * The hosts of a process's job, as its launcher lists them in the environment of the process:
 *
 *	RINGSIDE_HOSTS, SLURM_JOB_NODELIST   a list, passed on as it is:  node[001-064],node070
 *	LSB_HOSTS, LSB_MCPU_HOSTS            words, each as often as it has slots, or with a number after it
 *	PBS_NODEFILE, LSB_DJOB_HOSTFILE      a file with a host per line
 *
 * People paste the result into a shell, and whoever starts a job chooses these values: anything that is not
 * a plain list of host names is refused. Files are read only if the user of the process could have written
 * them, or if they are where PBS puts them; otherwise an agent that runs as root would show parts of files
 * that the user may not read.
 */
#include "recording/recording.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/text.h"

enum {
	ENVIRONMENT_MOST = 1024 * 1024 - 1,
	FILE_MOST = 1024 * 1024 - 1,
	HOST_MOST = 128, /* of a name */
	HOSTS_MOST = 16384,
};

enum hosts_form {
	HOSTS_LIST = 0,
	HOSTS_WORDS = 1, /* repeated names; numbers are slots */
	HOSTS_FILE = 2,	 /* the path of a file; the first word of each line */
};

static const struct {
	const char *name;
	enum hosts_form form;
} variables[] = {
	{ "RINGSIDE_HOSTS", HOSTS_LIST },  { "SLURM_JOB_NODELIST", HOSTS_LIST },
	{ "SLURM_NODELIST", HOSTS_LIST },  { "LSB_MCPU_HOSTS", HOSTS_WORDS },
	{ "LSB_HOSTS", HOSTS_WORDS },	   { "LSB_DJOB_HOSTFILE", HOSTS_FILE },
	{ "PBS_NODEFILE", HOSTS_FILE },	   { "COBALT_NODEFILE", HOSTS_FILE },
	{ "HYDRA_HOST_FILE", HOSTS_FILE }, { "I_MPI_HYDRA_HOST_FILE", HOSTS_FILE },
	{ "VC_WORKER_HOSTS", HOSTS_LIST },
};

/* ---- names ------------------------------------------------------------------------------------ */

static bool is_name_byte(char byte)
{
	return isalnum((unsigned char)byte) || byte == '.' || byte == '-' || byte == '_';
}

/* Host names, ranges in brackets, ports; no option, no blank, nothing that a shell interprets in quotes. */
static bool is_plain_list(const char *text)
{
	int depth = 0;

	if (!isalnum((unsigned char)text[0]))
		return false;
	for (; *text != '\0'; text++) {
		depth += *text == '[' ? 1 : *text == ']' ? -1 : 0;
		if (depth < 0 || depth > 1 ||
		    (!is_name_byte(*text) && strchr("[],:", *text) == NULL))
			return false;
	}
	return depth == 0;
}

/* ---- a list from words ------------------------------------------------------------------------ */

struct host_words {
	char (*names)[HOST_MOST];
	size_t count;
	bool is_wrong; /* a name that is none, too many, or out of memory */
};

static bool has_host(const struct host_words *words, const char *name)
{
	/* They come in order, so it is usually the last one. */
	for (size_t i = words->count; i-- > 0;)
		if (strcmp(words->names[i], name) == 0)
			return true;
	return false;
}

static void add_host(struct host_words *words, const char *word, size_t length)
{
	char name[HOST_MOST];

	if (length == 0 || words->is_wrong)
		return;
	words->is_wrong = length >= sizeof(name) || words->count == HOSTS_MOST ||
			  !isalnum((unsigned char)word[0]);
	for (size_t i = 0; i < length && !words->is_wrong; i++)
		words->is_wrong = !is_name_byte(word[i]);
	if (words->is_wrong)
		return;
	memcpy(name, word, length);
	name[length] = '\0';
	if (has_host(words, name))
		return;
	words->is_wrong = !list_grow(&words->names, words->count, sizeof(*words->names));
	if (!words->is_wrong)
		memcpy(words->names[words->count++], name, sizeof(name));
}

/* "node7 8 node8 8": numbers are slots. A host whose name is a number looks like them and is left out. */
static void add_words(struct host_words *words, const char *text)
{
	while (*text != '\0') {
		size_t length = strcspn(text, " \t\n");

		if (strspn(text, "0123456789") < length)
			add_host(words, text, length);
		text += length;
		text += strspn(text, " \t\n");
	}
}

/* The first word of each line: "node7 slots=8", "node7:8"; "#" starts a comment. */
static void add_lines(struct host_words *words, const char *text)
{
	while (*text != '\0') {
		const char *start = text + strspn(text, " \t");

		add_host(words, start, strcspn(start, " \t\r\n:#"));
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
}

/* Digits at the end of a name: where they begin. */
static size_t digits_at(const char *name)
{
	size_t at = strlen(name);

	while (at > 0 && isdigit((unsigned char)name[at - 1]))
		at--;
	return at;
}

/* Does `next` have the number after that of `name`, with the same name and number of digits? */
static bool is_successor(const char *name, const char *next)
{
	size_t at = digits_at(name);

	return name[at] != '\0' && strlen(name) - at <= 15 && strlen(name) == strlen(next) &&
	       digits_at(next) == at && memcmp(name, next, at) == 0 &&
	       strtoull(next + at, NULL, 10) == strtoull(name + at, NULL, 10) + 1;
}

/* "node[001-064],login1". False: it does not fit. */
static bool say_words(const struct host_words *words, char *text, size_t size)
{
	text[0] = '\0';
	for (size_t i = 0, end; i < words->count; i = end) {
		const char *first = words->names[i];
		size_t at = digits_at(first);

		for (end = i + 1;
		     end < words->count && is_successor(words->names[end - 1], words->names[end]);)
			end++;
		if (strlen(text) + 2 * HOST_MOST + 8 > size)
			return false;
		text_append(text, size, "%s", i > 0 ? "," : "");
		if (end == i + 1)
			text_append(text, size, "%s", first);
		else
			text_append(text, size, "%.*s[%s-%s]", (int)at, first, first + at,
				    words->names[end - 1] + at);
	}
	return words->count > 0;
}

/* ---- files ------------------------------------------------------------------------------------ */

static bool is_readable_to(const struct stat *file, const char *path, uid_t user)
{
	return file->st_uid == user ||
	       (file->st_mode & S_IROTH && strncmp(path, "/var/spool/", 11) == 0 &&
		strstr(path, "/..") == NULL);
}

/* The user of a job chooses the path, and the reader may be root: some devices do things when they are opened. */
static char *read_host_file(const char *path, uid_t user)
{
	struct stat file;
	size_t used;
	char *text = file_text_of(user, path, true, FILE_MOST, &used, &file);

	if (text == NULL || is_readable_to(&file, path, user))
		return text;
	free(text);
	return NULL;
}

/* ---- the environment -------------------------------------------------------------------------- */

static bool take_value(const char *value, enum hosts_form form, uid_t user, char *hosts,
		       size_t size)
{
	struct host_words words = { .count = 0 };
	char *text;
	bool is_found;

	if (form == HOSTS_LIST) {
		if (strlen(value) >= size || !is_plain_list(value))
			return false;
		text_copy(hosts, size, value);
		return true;
	}
	if (form == HOSTS_WORDS) {
		add_words(&words, value);
	} else {
		text = read_host_file(value, user);
		if (text != NULL)
			add_lines(&words, text);
		free(text);
	}
	is_found = !words.is_wrong && say_words(&words, hosts, size);
	free(words.names);
	return is_found;
}

/* A variable of the environment as /proc shows it; NULL none. */
static const char *value_of(const char *environment, size_t bytes, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = environment; at < environment + bytes; at += strlen(at) + 1)
		if (strncmp(at, name, length) == 0 && at[length] == '=')
			return at + length + 1;
	return NULL;
}

static bool hosts_of_process(const struct recording_process *process, char *hosts, size_t size)
{
	char pid[24], path[64], *text;
	struct stat file;
	size_t used = 0;
	bool is_found = false;
	uid_t user;

	if (process->pid_here <= 0 || process->life != RECORDING_ALIVE)
		return false;
	text_format(pid, sizeof(pid), "%" PRId64, process->pid_here);
	text_format(path, sizeof(path), "/proc/%s/environ", pid);
	/* The file itself may belong to root: a process can ask for that. */
	user = file_proc_user(pid);
	text = file_text_of(user, path, false, ENVIRONMENT_MOST, &used, &file);
	for (size_t i = 0; text != NULL && i < ARRAY_LENGTH(variables) && !is_found; i++) {
		const char *value = value_of(text, used, variables[i].name);

		is_found = value != NULL && value[0] != '\0' &&
			   take_value(value, variables[i].form, user, hosts, size);
	}
	free(text);
	return is_found;
}

bool recording_hosts(const struct recording_process *process, char *hosts, size_t size)
{
	char value[512];

	if (hosts_of_process(process, hosts, size))
		return true;
	/* Another user's process, or a snapshot: what its recorder wrote down. Long values end in dots there. */
	return recording_info(process, "env.RINGSIDE_HOSTS", value, sizeof(value)) &&
	       strstr(value, "...") == NULL && take_value(value, HOSTS_LIST, 0, hosts, size);
}
