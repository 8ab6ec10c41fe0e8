/*
 * Which variables are recorded, and which never are. That region and trace file contain them is
 * tested with real processes in tests/process/environment.t.
 */
#include "plugin/process_info.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/attributes.h"
#include "tests/tap.h"

static struct environment environment;

static bool holds(const char *line)
{
	const char *at;

	environment_read(&environment);
	at = memmem(environment.text, environment.bytes, line, strlen(line));
	return at != NULL && (at == environment.text || at[-1] == '\n');
}

static void what_matters_is_recorded(void)
{
	setenv("NCCL_ALGO", "Ring", 1);
	setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
	setenv("MASTER_ADDR", "node1", 1);
	setenv("HOME_OF_NOBODY", "x", 1);
	EXPECT(holds("env.NCCL_ALGO=Ring\n"));
	EXPECT(holds("env.CUDA_VISIBLE_DEVICES=0,1\n"));
	EXPECT(holds("env.MASTER_ADDR=node1\n"));
	EXPECT(!holds("env.HOME_OF_NOBODY="));
	EXPECT(!holds("env.PATH="));
	unsetenv("NCCL_ALGO");
	EXPECT_THAT("the current value", !holds("env.NCCL_ALGO="));
	EXPECT(environment.left_out == 0);
}

/* The first, the last and some of the listed names, and every prefix. */
static void names_are_listed_or_have_a_prefix(void)
{
	static const char *const recorded[] = {
		"NCCL_DEBUG",
		"TORCH_DISTRIBUTED_DEBUG",
		"CUDA_VISIBLE_DEVICES",
		"OMP_NUM_THREADS",
		"SLURM_JOB_NUM_NODES",
		"USER",
		"NODE_NAME",
		"NCCL_X",
		"TORCH_NCCL_X",
		"RINGSIDE_X",
		"OFI_NCCL_X",
		"UCX_X",
		"FI_X",
		"OMPI_MCA_btl_tcp",
		"OMPI_MCA_pml",
		"OMPI_MCA_oob_tcp_if_include",
	};
	static const char *const others[] = {
		"NODE_NAME_X", "USE", "CUDA_VISIBLE_DEVICE", "NCCL", "XNCCL_DEBUG", "OMPI_MCA_coll",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(recorded); i++)
		EXPECT_THAT(recorded[i], environment_has(recorded[i]));
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
		EXPECT_THAT(others[i], !environment_has(others[i]));
}

static void secrets_stay_out(void)
{
	EXPECT(environment_has("NCCL_SOMETHING_NEW") && environment_has("FI_PROVIDER"));
	EXPECT(!environment_has("AWS_SECRET_ACCESS_KEY") && !environment_has("") &&
	       !environment_has("SLURM_JWT"));
	EXPECT(!environment_has("NCCL_API_TOKEN") && !environment_has("UCX_PASSWORD") &&
	       !environment_has("NCCL_auth_file"));
	EXPECT(!environment_has("RINGSIDE_CREDENTIALS") && !environment_has("FI_PRIVATE_KEY"));
	setenv("MASTER_ADDR", "http://me:pa@ss/wo:rd@node1:80", 1);
	EXPECT(holds("env.MASTER_ADDR=***\n"));
	setenv("MASTER_ADDR", "me:secret@node1", 1);
	EXPECT(holds("env.MASTER_ADDR=***\n"));
	setenv("MASTER_ADDR", "me@node1:80", 1);
	EXPECT_THAT("a name without a value does not count",
		    holds("env.MASTER_ADDR=me@node1:80\n"));
	setenv("MASTER_ADDR", "a\nenv.X=1\tb", 1);
	EXPECT_THAT("a line stays a line", holds("env.MASTER_ADDR=a?env.X=1?b\n"));
	unsetenv("MASTER_ADDR");
}

static void values_that_look_secret_are_not_kept(void)
{
	static const char *const values[] = {
		"Bearer abc",
		"https://h/?token=abc",
		"eyJhbGciOi.x.y",
		":p@h",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
		setenv("NCCL_TOPO_FILE", values[i], 1);
		EXPECT_THAT(values[i], holds("env.NCCL_TOPO_FILE=***\n"));
	}
	setenv("NCCL_TOPO_FILE", "/opt/keys/token.xml", 1);
	EXPECT(holds("env.NCCL_TOPO_FILE=/opt/keys/token.xml\n"));
	unsetenv("NCCL_TOPO_FILE");
}

static void long_values_are_cut(void)
{
	size_t bytes = 1 << 20;
	char *value = malloc(bytes + 1);
	char wanted[300];

	memset(value, 'v', bytes);
	value[bytes] = '\0';
	setenv("NCCL_TOPO_FILE", value, 1);
	EXPECT_THAT("a value of a megabyte is not recorded",
		    holds("env.NCCL_TOPO_FILE=(too long to record)\n"));
	value[300] = '\0';
	setenv("NCCL_TOPO_FILE", value, 1);
	snprintf(wanted, sizeof(wanted), "env.NCCL_TOPO_FILE=%.*s...\n",
		 ENVIRONMENT_VALUE_BYTES - 3, value);
	EXPECT(holds(wanted));
	value[ENVIRONMENT_VALUE_BYTES] = '\0';
	setenv("NCCL_TOPO_FILE", value, 1);
	snprintf(wanted, sizeof(wanted), "env.NCCL_TOPO_FILE=%s\n", value);
	EXPECT(holds(wanted));
	unsetenv("NCCL_TOPO_FILE");
	free(value);
}

/* ---- started with it: the test runs itself ----------------------------------------------------- */

enum { MANY = 10000, FOUND_MOST = 256, NAME_MOST = 64 };

static bool text_is(const char *text, unsigned int left_out)
{
	environment_read(&environment);
	if (environment.bytes == strlen(text) &&
	    memcmp(environment.text, text, environment.bytes) == 0 &&
	    environment.left_out == left_out)
		return true;
	fprintf(stderr, "%.*s(%u left out)\n", (int)environment.bytes, environment.text,
		environment.left_out);
	return false;
}

/* The first ones, as many as there is room for; the others are counted. */
static bool has_the_first(void)
{
	static char text[ENVIRONMENT_BYTES + 64];
	unsigned int lines = 0;
	size_t used = 0;

	for (size_t i = 0; i < FOUND_MOST; i++) {
		char line[64];
		size_t length =
			(size_t)snprintf(line, sizeof(line), "env.NCCL_MANY_%zu=%zu\n", i, i);

		if (used + length > ENVIRONMENT_BYTES)
			continue;
		memcpy(text + used, line, length + 1);
		used += length;
		lines++;
	}
	return text_is(text, MANY - lines);
}

static const char longest[] = "NCCL_A_NAME_THAT_IS_AS_LONG_AS_ONE_CAN_BE_TO_BE_RECORDED_HERE_0";
static const char with_text[] = "NCCL_B=env.NCCL_LATER=0 env.NCCL_B=";

static int look_from_inside(const char *what)
{
	char text[1024];

	if (strcmp(what, "many") == 0)
		return has_the_first() ? 0 : 1;
	snprintf(text, sizeof(text),
		 "env.NCCL_DEBUG=IN FO?~\nenv.%s\nenv.NCCL_LATER=1\nenv.%s=1\n"
		 "env.NCCL_H=(too long to record)\n",
		 with_text, longest);
	return strcmp(what, "odd") == 0 && text_is(text, 2) ? 0 : 1;
}

/* With these variables, and with those that tools set for the tests. */
static int run_with(char **variables, const char *what)
{
	static const char *const kept[] = { "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS",
					    "MUTANT", "MUTANTS_SEEN" };
	char *arguments[] = { (char *)"plugin", (char *)"test_environment", (char *)what, NULL };
	static char texts[ARRAY_LENGTH(kept)][512];
	static char *all[MANY + ARRAY_LENGTH(kept) + 1];
	size_t count = 0;
	pid_t child;
	int status = -1;

	for (; variables[count] != NULL; count++)
		all[count] = variables[count];
	for (size_t i = 0; i < ARRAY_LENGTH(kept); i++)
		if (getenv(kept[i]) != NULL) {
			snprintf(texts[i], sizeof(texts[i]), "%s=%s", kept[i], getenv(kept[i]));
			all[count++] = texts[i];
		}
	all[count] = NULL;
	fflush(stdout);
	child = fork();
	if (child == 0) {
		execve("/proc/self/exe", arguments, all);
		_exit(99);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void any_environment_is_survived(void)
{
	char **variables = calloc(MANY + 1, sizeof(*variables));
	char *texts = calloc(MANY, 32);
	char *huge = malloc(120000), fits[80], longer[80];
	char *odd[] = {
		(char *)"NCCL_NOTHING",
		(char *)"=",
		(char *)"",
		(char *)"NCCL_A B=1",
		(char *)with_text,
		(char *)"NCCL_LATER=1",
		(char *)"NCCL_LATER=2",
		(char *)with_text,
		(char *)"NCCL_DEBUG=IN FO\x7f~",
		(char *)"NCCL_A_NAME_THAT_IS_LONGER_THAN_ANY_THAT_NCCL_HAS_AND_HAS_NO_ROOM=1",
		fits,
		longer,
		(char *)"NCCL_API_KEY=1",
		(char *)"HOME=1",
		huge,
		(char *)"NCCL_\x01=1",
		NULL
	};

	for (size_t i = 0; i < MANY; i++) {
		variables[i] = texts + 32 * i;
		snprintf(variables[i], 32, "NCCL_MANY_%zu=%zu", i, i);
	}
	EXPECT_EQUAL(run_with(variables, "many"), 0);
	memset(huge, 'h', 119999);
	huge[119999] = '\0';
	memcpy(huge, "NCCL_H=", 7);
	EXPECT_EQUAL(strlen(longest), NAME_MOST - 1);
	snprintf(fits, sizeof(fits), "%s=1", longest);
	snprintf(longer, sizeof(longer), "%s1=1", longest);
	EXPECT_EQUAL(run_with(odd, "odd"), 0);
	free(huge);
	free(texts);
	free(variables);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return look_from_inside(argv[1]);
	what_matters_is_recorded();
	names_are_listed_or_have_a_prefix();
	secrets_stay_out();
	values_that_look_secret_are_not_kept();
	long_values_are_cut();
	any_environment_is_survived();
	return tap_done();
}
