/*
 * Completions for bash, zsh and fish, generated from the option tables: each command prints its own
 * (CLI_LIST_OPTIONS), so new options need no change here. `make install` runs this.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cmds/commands.h"
#include "common/attributes.h"
#include "common/text.h"
#include "output/sink.h"

enum { LIST_SECONDS = 60, LIST_BYTES = 1 << 20, ROWS_MOST = 128 };

struct row {
	const char *letter; /* "-": none */
	const char *name;
	const char *value; /* "-": none */
	const char *help;
};

struct list {
	char name[32];	/* "ls", "bench health" */
	char *bytes;	/* what the rows point into */
	char *operands; /* "[PATH...]" */
	struct row rows[ROWS_MOST];
	size_t count;
};

static const char *const bench_words[] = { "health", "crossover", "profilers" };

/* False: the program is not installed, or has no options. */
static bool read_list(struct list *list, const char *command, const char *second)
{
	const char *words[] = { "/proc/self/exe", command, second, NULL, NULL };
	struct cli_capture got;
	char *line, *rest;
	bool is_good;

	words[second != NULL ? 3 : 2] = CLI_LIST_OPTIONS;
	is_good = cli_capture(&got, words, -1, LIST_SECONDS, LIST_BYTES) == OK &&
		  got.exit_code == 0 && strncmp(got.bytes, "operands\t", 9) == 0;
	*list = (struct list){ .bytes = got.bytes };
	text_format(list->name, sizeof(list->name), "%s%s%s", command, second ? " " : "",
		    second ? second : "");
	if (!is_good)
		return false;
	line = strtok_r(got.bytes, "\n", &rest);
	list->operands = line + 9;
	while ((line = strtok_r(NULL, "\n", &rest)) != NULL && list->count < ROWS_MOST) {
		struct row *row = &list->rows[list->count];

		row->letter = strsep(&line, "\t");
		row->name = strsep(&line, "\t");
		row->value = strsep(&line, "\t");
		row->help = line;
		list->count += row->help != NULL;
	}
	return true;
}

static bool has_value(const struct row *row)
{
	return strcmp(row->value, "-") != 0;
}

static bool is_file(const char *value)
{
	return strstr(value, "FILE") != NULL || strstr(value, "DIR") != NULL ||
	       strstr(value, "PATH") != NULL;
}

static bool is_when(const struct row *row)
{
	return strcmp(row->value, "WHEN") == 0;
}

/* ---- bash ------------------------------------------------------------------------------------ */

/* "-o --output ", for rows that match `want`: a file, another value, or any row. */
static void bash_options(struct sink *sink, const struct list *list, bool is_valued, bool has_files)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct row *row = &list->rows[i];

		if (is_valued && (!has_value(row) || is_file(row->value) != has_files))
			continue;
		if (row->letter[0] != '-')
			sink_format(sink, "-%s ", row->letter);
		sink_format(sink, "--%s ", row->name);
	}
}

static void bash_begin(struct sink *sink)
{
	sink_text(sink, "# ringside: completions for bash, made by 'ringside completions bash'\n"
			"_ringside()\n{\n"
			"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
			"\tlocal command=${COMP_WORDS[1]} options= files= values= operands=\n"
			"\tCOMPREPLY=()\n"
			"\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
			"\t\tCOMPREPLY=($(compgen -W \"");
	for (size_t i = 0; command_name(i) != NULL; i++)
		sink_format(sink, "%s ", command_name(i));
	sink_text(sink, "--help --version\" -- \"$cur\"))\n\t\treturn\n\tfi\n"
			"\tif [ \"$command\" = help ]; then\n"
			"\t\tcommand=${COMP_WORDS[2]}\n"
			"\t\t[ \"$COMP_CWORD\" -gt 2 ] || command=\n"
			"\t\t[ \"$COMP_CWORD\" -gt 2 ] || COMPREPLY=($(compgen -W \"");
	for (size_t i = 0; command_name(i) != NULL; i++)
		sink_format(sink, "%s ", command_name(i));
	sink_text(sink,
		  "\" -- \"$cur\"))\n"
		  "\t\t[ \"$command\" = bench ] && COMPREPLY=($(compgen -W \"health crossover "
		  "profilers\" -- \"$cur\"))\n\t\treturn\n\tfi\n"
		  "\tif [ \"$command\" = bench ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
		  "\t\tcase ${COMP_WORDS[2]} in health | crossover | profilers) command=\"bench "
		  "${COMP_WORDS[2]}\" ;; esac\n\tfi\n"
		  "\tcase $command in\n");
}

static void bash_command(struct sink *sink, const struct list *list)
{
	sink_format(sink, "\t'%s')\n\t\toptions=\"", list->name);
	bash_options(sink, list, false, false);
	sink_text(sink, "\"\n\t\tfiles=\"");
	bash_options(sink, list, true, true);
	sink_text(sink, "\"\n\t\tvalues=\"");
	bash_options(sink, list, true, false);
	sink_format(sink, "\"\n\t\toperands=%s\n\t\t;;\n",
		    strstr(list->operands, "CMD")	  ? "command"
		    : strcmp(list->name, "bench") == 0	  ? "bench"
		    : strcmp(list->name, "baseline") == 0 ? "baseline"
		    : list->operands[0]			  ? "file"
							  : "");
}

static void bash_end(struct sink *sink)
{
	sink_text(sink,
		  "\tesac\n"
		  "\tif [ \"$prev\" = --color ]; then\n"
		  "\t\tCOMPREPLY=($(compgen -W 'auto always never' -- \"$cur\"))\n"
		  "\t\treturn\n\tfi\n"
		  "\tcase \" $files\" in *\" $prev \"*)\n"
		  "\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n\t\treturn\n\t\t;;\n\tesac\n"
		  "\tcase \" $values\" in *\" $prev \"*) return ;; esac\n"
		  "\tcase $cur in -*)\n"
		  "\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n\t\treturn\n\t\t;;\n"
		  "\tesac\n"
		  "\tcase $operands in\n"
		  "\tfile) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
		  "\tcommand) COMPREPLY=($(compgen -c -- \"$cur\") $(compgen -f -- \"$cur\")) ;;\n"
		  "\tbench) [ \"$COMP_CWORD\" -gt 2 ] ||\n"
		  "\t\tCOMPREPLY=($(compgen -W 'health crossover profilers' -- \"$cur\")) ;;\n"
		  "\tbaseline)\n\t\tif [ \"$COMP_CWORD\" -eq 2 ]; then\n"
		  "\t\t\tCOMPREPLY=($(compgen -W 'save show' -- \"$cur\"))\n\t\telse\n"
		  "\t\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n\t\tfi\n\t\t;;\n"
		  "\tesac\n}\n"
		  "complete -o filenames -F _ringside ringside\n");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* Escapes for single quotes; brackets and colons are special to _arguments and _describe. */
static void zsh_text(struct sink *sink, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			sink_text(sink, "'\\'");
		else if (strchr("[]:\\", *text) != NULL)
			sink_byte(sink, '\\');
		sink_byte(sink, *text);
	}
}

static void zsh_commands(struct sink *sink)
{
	sink_text(sink, "\tlocal -a commands\n\tcommands=(\n");
	for (size_t i = 0; command_name(i) != NULL; i++) {
		sink_format(sink, "\t\t'%s:", command_name(i));
		zsh_text(sink, command_summary(i));
		sink_text(sink, "'\n");
	}
	sink_text(sink, "\t)\n");
}

static void zsh_begin(struct sink *sink)
{
	sink_text(sink, "#compdef ringside\n"
			"# ringside: completions for zsh, made by 'ringside completions zsh'\n"
			"_ringside() {\n");
	zsh_commands(sink);
	sink_text(sink,
		  "\tif (( CURRENT == 2 )); then\n"
		  "\t\t_describe -t commands command commands\n\t\treturn\n\tfi\n"
		  "\tlocal command=$words[2]\n"
		  "\tif [[ $command == help ]]; then\n"
		  "\t\t(( CURRENT == 3 )) && _describe -t commands command commands\n"
		  "\t\treturn\n\tfi\n"
		  "\tif [[ $command == bench && $words[3] == (health|crossover|profilers) ]] && (( "
		  "CURRENT > 3 )); then\n"
		  "\t\tcommand=\"bench $words[3]\"\n\t\tshift words\n\t\t(( CURRENT-- ))\n\tfi\n"
		  "\tshift words\n\t(( CURRENT-- ))\n"
		  "\tcase $command in\n");
}

static void zsh_value(struct sink *sink, const struct row *row)
{
	if (!has_value(row))
		return;
	sink_text(sink, ":");
	zsh_text(sink, row->value);
	sink_format(sink, ":%s",
		    is_when(row)	  ? "(auto always never)"
		    : is_file(row->value) ? "_files"
					  : " ");
}

static void zsh_command(struct sink *sink, const struct list *list)
{
	sink_format(sink, "\t'%s')\n\t\t_arguments -s -S", list->name);
	for (size_t i = 0; i < list->count; i++) {
		const struct row *row = &list->rows[i];

		sink_text(sink, " \\\n\t\t\t'*'");
		if (row->letter[0] != '-')
			sink_format(sink, "{-%s%s,--%s%s}'[", row->letter,
				    has_value(row) ? "+" : "", row->name,
				    has_value(row) ? "=" : "");
		else
			sink_format(sink, "'--%s%s[", row->name, has_value(row) ? "=" : "");
		zsh_text(sink, row->help);
		sink_text(sink, "]");
		zsh_value(sink, row);
		sink_text(sink, "'");
	}
	if (strstr(list->operands, "CMD") != NULL)
		sink_text(sink, " \\\n\t\t\t'*::command:_normal'");
	else if (strcmp(list->name, "bench") == 0)
		sink_text(sink, " \\\n\t\t\t'1:what:(health crossover profilers)'");
	else if (strcmp(list->name, "baseline") == 0)
		sink_text(sink, " \\\n\t\t\t'1:what:(save show)' '*:file:_files'");
	else if (list->operands[0] != '\0')
		sink_text(sink, " \\\n\t\t\t'*:file:_files'");
	sink_text(sink, "\n\t\t;;\n");
}

static void zsh_end(struct sink *sink)
{
	sink_text(sink, "\tesac\n}\n"
			"# Loaded by compinit it is the function's body; sourced it is not.\n"
			"if [[ $funcstack[1] == _ringside ]]; then\n\t_ringside \"$@\"\n"
			"else\n\tcompdef _ringside ringside\nfi\n");
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void fish_text(struct sink *sink, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'' || *text == '\\')
			sink_byte(sink, '\\');
		sink_byte(sink, *text);
	}
}

static void fish_begin(struct sink *sink)
{
	sink_text(sink, "# ringside: completions for fish, made by 'ringside completions fish'\n");
	for (size_t i = 0; command_name(i) != NULL; i++) {
		sink_format(sink, "complete -c ringside -f -n __fish_use_subcommand -a %s -d '",
			    command_name(i));
		fish_text(sink, command_summary(i));
		sink_format(
			sink,
			"'\ncomplete -c ringside -f -n '__fish_seen_subcommand_from help' -a %s\n",
			command_name(i));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(bench_words); i++)
		sink_format(
			sink,
			"complete -c ringside -f -n '__fish_seen_subcommand_from bench' -a %s\n",
			bench_words[i]);
	sink_text(
		sink,
		"complete -c ringside -n '__fish_seen_subcommand_from baseline' -a 'save show'\n");
}

static void fish_condition(struct sink *sink, const char *name)
{
	const char *second = strchr(name, ' ');

	sink_format(sink, "'__fish_seen_subcommand_from %.*s", (int)strcspn(name, " "), name);
	if (second != NULL)
		sink_format(sink, "; and __fish_seen_subcommand_from%s'", second);
	else if (strcmp(name, "bench") == 0)
		sink_text(sink,
			  "; and not __fish_seen_subcommand_from health crossover profilers'");
	else
		sink_text(sink, "; and not __fish_seen_subcommand_from help'");
}

static void fish_command(struct sink *sink, const struct list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct row *row = &list->rows[i];

		sink_text(sink, "complete -c ringside -n ");
		fish_condition(sink, list->name);
		if (row->letter[0] != '-')
			sink_format(sink, " -s %s", row->letter);
		sink_format(sink, " -l %s%s -d '", row->name,
			    is_when(row)	  ? " -x -a 'auto always never'"
			    : !has_value(row)	  ? ""
			    : is_file(row->value) ? " -r -F"
						  : " -x");
		fish_text(sink, row->help);
		sink_text(sink, "'\n");
	}
}

static void fish_end(struct sink *sink)
{
	(void)sink;
}

/* ---- the command ----------------------------------------------------------------------------- */

static const struct shell {
	const char *name;
	void (*begin)(struct sink *sink);
	void (*command)(struct sink *sink, const struct list *list);
	void (*end)(struct sink *sink);
} shells[] = {
	{ "bash", bash_begin, bash_command, bash_end },
	{ "zsh", zsh_begin, zsh_command, zsh_end },
	{ "fish", fish_begin, fish_command, fish_end },
};

static void write_list(struct sink *sink, const struct shell *shell, const char *command,
		       const char *second)
{
	struct list *list = cli_realloc(NULL, sizeof(*list));

	if (read_list(list, command, second))
		shell->command(sink, list);
	free(list->bytes);
	free(list);
}

static void write_shell(struct sink *sink, const struct shell *shell)
{
	shell->begin(sink);
	for (size_t i = 0; command_name(i) != NULL; i++) {
		if (strcmp(command_name(i), "help") == 0)
			continue;
		write_list(sink, shell, command_name(i), NULL);
		for (size_t j = 0;
		     j < ARRAY_LENGTH(bench_words) && strcmp(command_name(i), "bench") == 0; j++)
			write_list(sink, shell, "bench", bench_words[j]);
	}
	shell->end(sink);
}

/* `name` is the request's text. */
static int take_shell(const struct cli_said *said)
{
	*(const char **)said->target = said->value;
	return 0;
}

struct request {
	const char *name;
};

static const struct cli_option options[] = { CLI_OPTION_END };

static const struct cli_page page = {
	.name = "completions",
	.operands = "bash|zsh|fish",
	.about = "Prints completions of 'ringside' for a shell. 'make install' installs them.\n",
	.options = options,
	CLI_OPERANDS(struct request, name, take_shell),
};

int cmd_completions(int argc, char **argv)
{
	struct request request = { NULL };
	int code = cli_parse(&page, &request, argc, argv);
	struct sink sink;

	if (code != CLI_GO_ON)
		return code;
	for (size_t i = 0; request.name != NULL && i < ARRAY_LENGTH(shells); i++) {
		if (strcmp(shells[i].name, request.name) != 0)
			continue;
		sink_init_fd(&sink, STDOUT_FILENO);
		write_shell(&sink, &shells[i]);
		return cli_finish(&sink, CLI_EXIT_DONE);
	}
	return cli_usage(&page, "no shell: use bash, zsh or fish");
}
