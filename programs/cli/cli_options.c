#include "programs/cli/cli_options.h"

#include <string.h>

#include "common/text.h"
#include "programs/cli/cli_errors.h"

void cli_args_init(struct cli_args *args, const struct cli_page *page, int argc, char **argv)
{
	*args = (struct cli_args){ .page = page, .argc = argc, .argv = argv, .at = 1 };
}

static int stop(struct cli_args *args, int exit_code)
{
	args->exit_code = exit_code;
	return CLI_STOP;
}

static int show_help(struct cli_args *args)
{
	return stop(args, cli_page_help(args->page));
}

/* `given` is the argument that came with the option's own word, or NULL. */
static int take(struct cli_args *args, const struct cli_option *option, const char *shown,
		const char *given)
{
	if (option->value == NULL) {
		args->value = NULL;
		if (given)
			return stop(args,
				    cli_usage(args->page, "option '%s' takes no argument", shown));
		return option->id;
	}
	if (given == NULL) {
		if (args->at == args->argc)
			return stop(args, cli_usage(args->page, "option '%s' needs %s", shown,
						    option->value));
		given = args->argv[args->at++];
	}
	args->value = given;
	return option->id;
}

/* One that another tool has, by its letter or its name: NULL if not. */
static const struct cli_option *find_elsewhere(const struct cli_page *page, int letter,
					       const char *name)
{
	for (const struct cli_option *at = page->elsewhere; at && at->name; at++)
		if (name ? strcmp(at->name, name) == 0 : at->id == letter)
			return at;
	return NULL;
}

static int unknown(struct cli_args *args, const char *word, size_t length)
{
	const char *names[64] = { "help" };
	const struct cli_option *elsewhere;
	const char *nearest;
	char name[64];
	size_t count = 1;

	for (const struct cli_option *at = args->page->options; at->name; at++)
		if (count < ARRAY_LENGTH(names))
			names[count++] = at->name;
	text_format(name, sizeof(name), "%.*s", (int)length, word);
	elsewhere = find_elsewhere(args->page, 0, name);
	if (elsewhere)
		return stop(args, cli_usage(args->page, "unknown option '--%s': %s", name,
					    elsewhere->help));
	nearest = cli_nearest(name, names, count);
	if (nearest)
		return stop(args,
			    cli_usage(args->page, "unknown option '--%s', did you mean '--%s'?",
				      name, nearest));
	return stop(args, cli_usage(args->page, "unknown option '--%s'", name));
}

static int long_option(struct cli_args *args, const char *word)
{
	size_t length = strcspn(word, "=");
	char shown[64];

	for (const struct cli_option *at = args->page->options; at->name; at++) {
		if (strlen(at->name) != length || strncmp(at->name, word, length) != 0)
			continue;
		text_format(shown, sizeof(shown), "--%s", at->name);
		return take(args, at, shown, word[length] == '=' ? word + length + 1 : NULL);
	}
	if (strcmp(word, "help") == 0)
		return show_help(args);
	return unknown(args, word, length);
}

static int short_option(struct cli_args *args)
{
	char letter = *args->bundle++;
	char shown[3] = { '-', letter, '\0' };
	const struct cli_option *elsewhere;

	for (const struct cli_option *at = args->page->options; at->name; at++) {
		const char *given = NULL;

		if (at->id != letter)
			continue;
		if (at->value && *args->bundle != '\0')
			given = args->bundle;
		if (at->value || *args->bundle == '\0')
			args->bundle = NULL;
		return take(args, at, shown, given);
	}
	if (letter == 'h')
		return show_help(args);
	elsewhere = find_elsewhere(args->page, letter, NULL);
	return stop(args, cli_usage(args->page, "unknown option '%s'%s%s", shown,
				    elsewhere ? ": " : "", elsewhere ? elsewhere->help : ""));
}

int cli_next(struct cli_args *args)
{
	const char *word;

	if (args->bundle)
		return short_option(args);
	if (args->at == args->argc)
		return CLI_END;
	word = args->argv[args->at++];
	if (!args->only_operands && strcmp(word, "--") == 0) {
		args->only_operands = true;
		return cli_next(args);
	}
	/* A lone "-" is an operand. */
	if (!args->only_operands && word[0] == '-' && word[1] == '-')
		return long_option(args, word + 2);
	if (!args->only_operands && word[0] == '-' && word[1] != '\0') {
		args->bundle = word + 1;
		return short_option(args);
	}
	if (args->page->stops_at_operand) {
		args->at--;
		return CLI_END;
	}
	args->value = word;
	return CLI_OPERAND;
}
