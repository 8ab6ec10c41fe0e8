/* ringside run and ringside env: settings become variables, mistakes one line. */
#include "cli/cli.h"
#include "tests/support/command_play.h"
#include "tests/tap.h"

static void variables(void)
{
	static const char *const lines[] = {
		"env --plugin plugin.so",
		"env --plugin lib/libnccl-profiler-ringside.so",
		"env --plugin lib/libnccl-profiler-ringside.so --by-path",
		"env --plugin lib/libnccl-profiler-ringside.so --json",
		"env --plugin a:b/libnccl-profiler-ringside.so",
		"env --plugin nowhere.so",
		"env --plugin plugin.so -m trace -o /x/%j --events kernel,-steps --buffer 1MiB "
		"--quota none --shm /y "
		"--job j --labels a=b,c_1= --hang-after 900 --group users",
		"env --plugin plugin.so -m trace -o rel-%h --shm rel",
		"env --plugin plugin.so -m trace -o '/it has blanks' --labels 'a=b c'",
		"env --plugin plugin.so -m full -o x --json",
		"env --plugin plugin.so -m off",
		"env --plugin plugin.so -m profile",
		"env --plugin plugin.so -m flight -o x",
		"env --plugin plugin.so -m trase",
		"env --plugin plugin.so -m ''",
		"env --plugin plugin.so -m xyzzy",
		"env --plugin plugin.so --buffer 64KiB",
		"env --plugin plugin.so --buffer 65535",
		"env --plugin plugin.so --buffer 1GiB",
		"env --plugin plugin.so --buffer 1073741825",
		"env --plugin plugin.so --buffer '8 MiB'",
		"env --plugin plugin.so --quota 1MiB",
		"env --plugin plugin.so --quota 0",
		"env --plugin plugin.so --quota many",
		"env --plugin plugin.so --events kernel",
		"env --plugin plugin.so --events -kernel,proxy,-steps,launch",
		"env --plugin plugin.so --events proxy,kernels",
		"env --plugin plugin.so --events ''",
		"env --plugin plugin.so --events kernel,",
		"env --plugin plugin.so --events --",
		"env --plugin plugin.so --labels a-b=c",
		"env --plugin plugin.so --labels =c",
		"env --plugin plugin.so --labels a",
		"env --plugin plugin.so --labels ''",
		"env --plugin plugin.so --labels a=1,b=2,",
		"env --plugin plugin.so --labels A_1=x",
		"env --plugin plugin.so --labels 1a=x",
		"env --plugin plugin.so --hang-after 0",
		"env --plugin plugin.so --hang-after 604800",
		"env --plugin plugin.so --hang-after 604801",
		"env --plugin plugin.so --hang-after 15m",
		"env --plugin plugin.so --job ''",
		"env --plugin plugin.so --group ''",
		"env --plugin plugin.so true",
		"env --plugin plugin.so --bad",
		"env --plugin plugin.so --job a --job b -m trace --events +proxy --events auto",
		"env --plugin plugin.so --events proxi",
		"env --plugin plugin.so --events -",
		"env --plugin plugin.so --events +",
		NULL,
	};

	command_each(lines);
	command_run(cmds_main, "ringside", "env");
	EXPECT_THAT("without a plugin, the places are listed in which there is none",
		    command_play.code == 3 &&
			    strncmp(command_play.err,
				    "ringside env: cannot find " CLI_PLUGIN_FILE " in /",
				    55) == 0 &&
			    strstr(command_play.err, "/../lib/ringside, ") != NULL &&
			    strstr(command_play.err,
				   "/../lib64; install the package "
				   "nccl-profiler-ringside (apt install "
				   "./nccl-profiler-ringside_*.deb, dnf install "
				   "./nccl-profiler-ringside-*.rpm), or name the file "
				   "with --plugin\n") != NULL);
	setenv("LD_LIBRARY_PATH", "/a:/b", 1);
	command("env --plugin lib/libnccl-profiler-ringside.so");
	command("env --plugin lib/libnccl-profiler-ringside.so --json");
	setenv("LD_LIBRARY_PATH", command_path("lib"), 1);
	command("env --plugin lib/libnccl-profiler-ringside.so");
	setenv("LD_LIBRARY_PATH", command_path("a:b"), 1);
	command("env --plugin lib/libnccl-profiler-ringside.so");
	setenv("LD_LIBRARY_PATH", command_path("other"), 1);
	command("env --plugin lib/libnccl-profiler-ringside.so");
	setenv("LD_LIBRARY_PATH", "", 1);
	command("env --plugin lib/libnccl-profiler-other.so --json");
	unsetenv("LD_LIBRARY_PATH");
	EXPECT_THAT("settings and their limits", command_expected("tests/unit/cmds/expected/env"));
}

/* NCCL reads 254 characters of the plugin's path, and a variable has 4095. */
static void lengths(void)
{
	char name[300], line[5000];
	size_t room = 254 - strlen(command_path(""));

	for (size_t length = room; length <= room + 1; length++) {
		memset(name, 'n', length);
		name[length] = '\0';
		command_write_text(name, "x");
		snprintf(line, sizeof(line), "env --by-path --plugin %s", name);
		command_run(cmds_main, "ringside", line);
		EXPECT_THAT("a plugin's path of 254 characters is the longest",
			    command_play.code == (length == room ? 0 : 3));
	}
	EXPECT(strstr(command_play.err, "NCCL truncates names after 254 characters: move the "
					"plugin from '/") != NULL);
	for (int length = 4095; length <= 4096; length++) {
		snprintf(line, sizeof(line), "env --plugin plugin.so --job %0*d", length, 7);
		command_run(cmds_main, "ringside", line);
		EXPECT_THAT("a value of 4095 characters is the longest",
			    command_play.code == (length == 4095 ? 0 : 3));
	}
	EXPECT(strcmp(command_play.err, "ringside env: the value for RINGSIDE_JOB is longer than "
					"4095 bytes\n") == 0);
	for (int i = 0; i < 2; i++) {
		int length = 4095 - (int)strlen(command_path("")) + i;

		snprintf(line, sizeof(line), "env --plugin plugin.so -o %0*d", length, 7);
		command_run(cmds_main, "ringside", line);
		EXPECT_THAT("a path of 4095 characters is the longest",
			    command_play.code == (i == 0 ? 0 : 3));
	}
	EXPECT(strncmp(command_play.err, "ringside env: the path '00000", 29) == 0);
}

/* In a directory whose name has what starts a placeholder in paths of traces, and only there. */
static int in_percent(int argc, char **argv)
{
	return chdir("100%j") != 0 ? 96 : cmds_main(argc, argv);
}

static void jobs(void)
{
	static const char *const lines[] = {
		"run --plugin plugin.so",
		"run --plugin plugin.so --",
		"run --plugin plugin.so -- sh -c 'exit 42'",
		"run --plugin plugin.so sh -c 'kill -9 $$'",
		"run --plugin plugin.so -- echo -m --json -h",
		"run --plugin plugin.so no-such-command",
		"run --plugin plugin.so /etc/passwd",
		"run --plugin plugin.so --no-report -m trace -o good -- sh -c 'echo $RINGSIDE_MODE "
		"$RINGSIDE_DIR'",
		"run --plugin plugin.so -m trace -o good/a/b-%j -- true",
		"run --plugin plugin.so -m full -o file/%j -- true",
		"run --plugin plugin.so -o good -- true",
		"run --plugin plugin.so -m trase true",
		"run --plugin nowhere.so true",
		NULL,
	};

	command_directory("good");
	command_write_text("file", "");
	command_each(lines);
	setenv("NCCL_PROFILER_PLUGIN", "inspector", 1);
	command("run --plugin plugin.so true");
	command("run --plugin plugin.so --force -- sh -c 'echo $NCCL_PROFILER_PLUGIN'");
	setenv("NCCL_PROFILER_PLUGIN", "ringside", 1);
	command("run --plugin plugin.so -- sh -c 'echo $NCCL_PROFILER_PLUGIN'");
	setenv("NCCL_PROFILER_PLUGIN", "", 1);
	command("run --plugin plugin.so -- sh -c 'echo $NCCL_PROFILER_PLUGIN'");
	unsetenv("NCCL_PROFILER_PLUGIN");
	command("run --plugin lib/libnccl-profiler-ringside.so -- sh -c 'echo $LD_LIBRARY_PATH'");
	setenv("LD_LIBRARY_PATH", "", 1);
	command("run --plugin lib/libnccl-profiler-ringside.so -- sh -c 'echo $LD_LIBRARY_PATH'");
	setenv("LD_LIBRARY_PATH", "/a", 1);
	command("run --plugin lib/libnccl-profiler-ringside.so -- sh -c 'echo $LD_LIBRARY_PATH'");
	unsetenv("LD_LIBRARY_PATH");
	command("run --plugin plugin.so --no-report -m off -o good -- true");
	setenv("RINGSIDE_MODE", "", 1);
	command("run --plugin plugin.so --no-report --job x -o good -- true");
	command_directory("100%j");
	command_play.program = in_percent;
	command("env --plugin ../plugin.so -o traces --shm regions");
	command_play.program = cmds_main;
	setenv("RINGSIDE_MODE", "trace", 1);
	command("run --plugin plugin.so -o good -- sh -c 'echo $RINGSIDE_MODE $RINGSIDE_DIR'");
	setenv("RINGSIDE_REPORT", "0", 1);
	command("run --plugin plugin.so -o good -- true");
	EXPECT_THAT("jobs and their exit codes", command_expected("tests/unit/cmds/expected/run"));
}

int main(void)
{
	command_begin();
	command_write_text("plugin.so", "x");
	command_directory("lib");
	command_directory("other");
	command_directory("a:b");
	command_write_text("lib/libnccl-profiler-ringside.so", "x");
	command_write_text("other/libnccl-profiler-ringside.so", "another");
	command_write_text("a:b/libnccl-profiler-ringside.so", "x");
	command_write_text("lib/libnccl-profiler-other.so", "x");
	variables();
	lengths();
	jobs();
	return tap_done();
}
