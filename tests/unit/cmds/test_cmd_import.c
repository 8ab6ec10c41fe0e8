/* ringside import: logs of other tools become trace files. */
#include "tests/support/command_play.h"
#include "tests/tap.h"

/* A text with each occurrence of a word replaced; the caller frees it. */
static char *replaced(const char *text, const char *word, const char *by)
{
	struct sink made;
	const char *found;
	char *copy;

	sink_init_memory(&made);
	for (; (found = strstr(text, word)) != NULL; text = found + strlen(word))
		sink_format(&made, "%.*s%s", (int)(found - text), text, by);
	sink_text(&made, text);
	copy = strdup(sink_string(&made));
	sink_release(&made);
	return copy;
}

/* More files than the table of names has room for at first, and host names that are no file names. */
static void many_processes(void)
{
	size_t length;
	char *one = command_read("tests/foreign/data/inspector-v4.2.log", &length);

	command_directory("many");
	for (int i = 0; i < 40; i++) {
		char host[32], pid[32], name[32], *first, *second;

		snprintf(host, sizeof(host), i % 4 ? "\"n.%d_a-Z\"" : "\".@ [`{/:%d\"", i / 4);
		snprintf(pid, sizeof(pid), "\"pid\":%d", i % 2 ? 7 : i);
		snprintf(name, sizeof(name), "many/%d.log", i);
		first = replaced(one, "\"alpha\"", host);
		second = replaced(first, "\"pid\":4100", pid);
		command_write_text(name, second);
		free(first);
		free(second);
	}
	free(one);
	command("import many -o many-out");
	command("ls many-out --job '' --rank 1");
	command("import many -o many-out --force --json");
}

int main(void)
{
	static const char *const names[] = {
		"inspector-v4.0.log",	 "inspector-v4.1.log",	  "inspector-v4.2.log",
		"inspector-v4.3.log",	 "inspector-v4.4.log",	  "inspector-v4.0-verbose.log",
		"inspector-damaged.log", "inspector-mixed.jsonl", "comma-latency.txt",
		"comma-summary.txt",	 "nccl-tests.json",	  "nccl-tests-all-reduce.txt",
	};
	static const char *const lines[] = {
		"import logs -o out",
		"ls out",
		"import logs -o out",
		"import logs -o out --force",
		"import -q logs/inspector-v4.0.log -o quiet",
		"import --json logs/inspector-mixed.jsonl logs/inspector-v4.2.log -o json",
		"import logs/inspector-damaged.log -o damaged",
		"import --json logs/inspector-damaged.log -o damaged-json",
		"import --strict logs/inspector-damaged.log -o strict",
		"import --strict logs/inspector-v4.0.log -o strict",
		"import logs/comma-latency.txt -o comma",
		"import logs/comma-summary.txt -o summary",
		"import logs/nccl-tests-all-reduce.txt -o tests",
		"import logs/nccl-tests.json -o tests",
		"import traces -o own",
		"import nowhere -o none",
		"import nowhere logs/inspector-v4.0.log -o partly",
		"import empty -o none",
		"import garbage -o none",
		"import logs/inspector-v4.1.log",
		"import -o none",
		"import logs/inspector-v4.1.log -o garbage",
		"import logs/inspector-v4.1.log -o garbage/below",
		"import logs/inspector-v4.1.log -o new/below",
		"import logs/inspector-v4.1.log -o empty",
		NULL,
	};

	command_begin();
	command_directory("logs");
	command_directory("empty");
	command_make("traces");
	command_write_text("garbage", "neither a trace nor a log\n");
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		char from[256], to[256];

		snprintf(from, sizeof(from), "tests/foreign/data/%s", names[i]);
		snprintf(to, sizeof(to), "logs/%s", names[i]);
		command_copy(from, to);
	}
	command_each(lines);
	many_processes();
	EXPECT_THAT("import prints what is expected",
		    command_expected("tests/unit/cmds/expected/import"));
	return tap_done();
}
