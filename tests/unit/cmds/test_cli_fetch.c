/* Agents and Prometheus are asked through ringside-fetch, which is a script here. */
#include <time.h>

#include "tests/support/command_play.h"
#include "tests/tap.h"

/* Answers each request by a word in its URL. Requests and options are kept. */
static const char polite[] =
	"#!/bin/sh\n"
	"echo \"options: $*\" >>asked\n"
	"say() { printf '%s %s %s\\n%s' \"$id\" \"$1\" \"${#2}\" \"$2\"; }\n"
	"while read -r id url socket; do\n"
	"	echo \"$id $url $socket\" >>asked\n"
	"	case $url in\n"
	"	*silent*) ;;\n"
	"	*prom-none*) say 200 "
	"'{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}' ;;\n"
	"	*prom-error*) say 400 '{\"status\":\"error\",\"error\":\"bad query\"}' ;;\n"
	"	*good*) printf '%s 200 %s\\n' \"$id\" \"$(stat -c %s good.tar)\"; cat good.tar ;;\n"
	"	*gone*) say 0 'Connection refused' ;;\n"
	"	*locked*) say 401 '' ;;\n"
	"	*forbidden*) say 403 no ;;\n"
	"	*old*) say 404 'not found' ;;\n"
	"	*busy*) say 503 later ;;\n"
	"	*teapot*) say 418 tea ;;\n"
	"	*empty*) say 200 '' ;;\n"
	"	*text*) say 200 hello ;;\n"
	"	esac\n"
	"done\n";

/* The date and time of now, and how long a verdict lasted, become words. */
static void forget_times(char *text)
{
	time_t now = time(NULL);
	char days[2][16];
	char *at = text, *to = text;

	for (int i = 0; i < 2; i++) {
		time_t then = now - 600 * i;
		struct tm parts;

		strftime(days[i], sizeof(days[i]), "%Y-%m-%d", gmtime_r(&then, &parts));
	}
	while (*at != '\0') {
		if (strncmp(at, days[0], 10) == 0 || strncmp(at, days[1], 10) == 0) {
			/* What separates them stays. */
			memcpy(to, "DATE", 4);
			to[4] = at[10];
			memcpy(to + 5, "TIME", 4);
			to += 9;
			at += 19;
		} else if (strncmp(at, "cleared after ", 14) == 0) {
			memmove(to, at, 7);
			to += 7;
			at += strcspn(at, ":");
		} else {
			*to++ = *at++;
		}
	}
	*to = '\0';
}

/* A command about agents, whose verdicts are of now. */
static void timeless(const char *line)
{
	command_run(command_play.program, "ringside", line);
	forget_times(command_play.out);
	sink_format(&command_play.text, "=== ringside %s\n", line);
	command_note(command_play.out);
	command_note(command_play.err);
	sink_format(&command_play.text, "exit %d\n", command_play.code);
}

/* What a bundle says of itself depends on the machine. */
static void make_bundle(const char *line)
{
	command_run(command_play.program, "ringside", line);
	EXPECT_EQUAL(command_play.code, 0);
}

static void agents(void)
{
	static const char *const lines[] = {
		"doctor --agents good",
		"doctor --agents good,gone",
		"doctor --agents gone",
		"doctor --agents locked,forbidden,old,busy,teapot,empty,text",
		"doctor --agents good,text --job nothing",
		"doctor --agents good --job sim-1 --timeout 1999ms --parallel 2 --insecure --auth "
		"a "
		"--cacert c",
		"doctor --agents unix:/run/good.sock",
		"doctor --agents silent",
		"doctor --agents good,silent",
		"doctor --slurm 4711",
		"bundle --no-ras --agents gone,teapot -o none.tar",
		"bundle --no-ras --agents good --rank 9 -o none.tar",
		"bundle --no-ras --agents '' -o none.tar",
		NULL,
	};

	command_script("bin/ringside-fetch", polite);
	command_script("bin/squeue", "#!/bin/sh\necho '4711|sim-1|RUNNING|good'\n");
	for (size_t i = 0; lines[i] != NULL; i++)
		timeless(lines[i]);
	make_bundle("bundle --no-ras --agents good,gone,locked,text -o agents.tar.gz");
	make_bundle("bundle --no-ras --agents good --operations 100001 --timeout 60s --insecure "
		    "--rank 0 -o some.tar");
	command("ls agents.tar.gz");
	command("doctor agents.tar.gz");
	command("ls some.tar");
	command_show("asked");
	EXPECT_THAT("agents that answer, and others",
		    command_expected("tests/unit/cmds/expected/agents"));
}

static void prometheus(void)
{
	static const char *const lines[] = {
		"doctor --prometheus http://prom-none/",
		"doctor --prometheus http://prom-none --job x --window 1m --past 10m",
		"doctor --prometheus http://prom-error",
		"doctor --prometheus http://locked",
		"doctor --prometheus http://gone",
		"doctor --prometheus http://silent",
		NULL,
	};

	command_each(lines);
	EXPECT_THAT("a Prometheus without an answer",
		    command_expected("tests/unit/cmds/expected/prometheus"));
}

/* The third scan has another verdict, the fourth none; the fifth is the last. */
static void watching(void)
{
	static const char script[] = "#!/bin/sh\n"
				     "echo x >>scans\n"
				     "scan=$(wc -l <scans)\n"
				     "read -r id url\n"
				     "file=good.tar\n"
				     "[ $scan = 3 ] && file=other.tar\n"
				     "[ $scan = 4 ] && file=calm.tar\n"
				     "[ $scan = 5 ] && kill -INT $PPID && exec sleep 100\n"
				     "printf '%s 200 %s\\n' \"$id\" \"$(stat -c %s $file)\"\n"
				     "cat $file\n";

	command_script("bin/ringside-fetch", script);
	timeless("doctor --watch --interval 200ms --agents good");
	EXPECT_THAT("changes are reported until Ctrl-C",
		    command_expected("tests/unit/cmds/expected/doctor-watch"));
}

static void broken_programs(void)
{
	static const char *const scripts[] = {
		"exit 3",
		"exit 0",
		"kill -9 $$",
		"echo 'ringside-fetch: a: no such file' >&2; exit 2",
		"exit 127",
		"echo garbage; exec sleep 100",
		"printf '7 200 0\\n'; exec sleep 100",
		"printf '0 200 0\\n0 200 0\\n'; exec sleep 100",
		"printf '0 503 0\\n'",
	};
	char script[200];

	for (size_t i = 0; i < ARRAY_LENGTH(scripts); i++) {
		snprintf(script, sizeof(script), "#!/bin/sh\n%s\n", scripts[i]);
		command_script("bin/ringside-fetch", script);
		sink_format(&command_play.text, "+++ %s\n", scripts[i]);
		timeless("doctor --agents a,b");
	}
	unlink(command_path("bin/ringside-fetch"));
	command("doctor --agents a,b");
	command("top --once");
	command("agent");
	command("hub x");
	command("sim");
	command("bench x");
	command("model x");
	command_script("bin/ringside-bench", "#!/bin/sh\necho bench \"$@\"\n");
	command("model x");
	command("bench health x");
	command_script("bin/ringside-agent", "#!/bin/sh\necho agent \"$@\"\n");
	command("hub --x");
	command("agent --x");
	EXPECT_THAT("programs that are broken or missing",
		    command_expected("tests/unit/cmds/expected/programs"));
}

int main(void)
{
	char path[4096];

	command_begin();
	command_play.most_json = 40;
	command_install();
	snprintf(path, sizeof(path), "%s:%s", command_path("bin"), getenv("PATH"));
	setenv("PATH", path, 1);
	command_sim("-o hung --nodes 1 --gpus 2 --seconds 30s -f never-arrives:rank=1 --at 1s");
	command_sim("-o other --nodes 1 --gpus 4 --seconds 30s -f never-arrives:rank=2 --at 1s");
	command_sim("-o calm --nodes 1 --gpus 2 --iterations 3");
	command_play.program = command_again;
	make_bundle("bundle other --no-ras --no-traces -o other.tar");
	make_bundle("bundle calm --no-ras --no-traces -o calm.tar");
	make_bundle("bundle hung --no-ras --no-traces -o good.tar");
	agents();
	prometheus();
	watching();
	broken_programs();
	return tap_done();
}
