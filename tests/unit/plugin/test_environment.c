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

static unsigned int environment_lines(void)
{
	unsigned int lines = 0;

	for (size_t i = 0; i < environment.bytes; i++)
		lines += environment.text[i] == '\n';
	return lines;
}

static int look_from_inside(const char *what)
{
	environment_read(&environment);
	if (strcmp(what, "many") == 0)
		return environment.left_out + environment_lines() == 10000 ? 0 : 1;
	if (strcmp(what, "odd") == 0)
		return holds("env.NCCL_LATER=1\n") && !holds("env.NCCL_NOTHING") &&
				       !holds("env.NCCL_A B=") && !holds("env.NCCL_=") &&
				       environment.left_out == 1
			       ? 0
			       : 1;
	return 2;
}

static int run_with(char **variables, const char *what)
{
	char *arguments[] = { (char *)"plugin", (char *)"test_environment", (char *)what, NULL };
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		execve("/proc/self/exe", arguments, variables);
		_exit(99);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void any_environment_is_survived(void)
{
	enum { MANY = 10000 };
	char **variables = calloc(MANY + 1, sizeof(*variables));
	char *texts = calloc(MANY, 32);
	char *huge = malloc(120000);
	char *odd[] = {
		(char *)"NCCL_NOTHING",
		(char *)"=",
		(char *)"",
		(char *)"NCCL_A B=1",
		(char *)"NCCL_LATER=1",
		(char *)"NCCL_LATER=2",
		(char *)"NCCL_A_NAME_THAT_IS_LONGER_THAN_ANY_THAT_NCCL_HAS_AND_HAS_NO_ROOM=1",
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
	secrets_stay_out();
	values_that_look_secret_are_not_kept();
	long_values_are_cut();
	any_environment_is_survived();
	return tap_done();
}
