/* ringside bundle of recordings: what it packs, what it leaves out and what it refuses. */
#include "tests/support/command_play.h"
#include "tests/tap.h"

static void packed_is_read(void)
{
	static const char *const lines[] = {
		"ls traces.tar",
		"ls traces.tar.gz",
		"ls traces.tar.zst",
		"ps stuck.tar",
		"dump --op Broadcast --rank 0 traces.tar.gz",
		"ps hung.tar.zst",
		"doctor hung.tar.zst",
		"report --answer hung.tar.zst",
		"ls some.tar",
		"ls cut.tar.gz",
		"ls cut.tar",
		NULL,
	};
	size_t length;
	char *bytes;

	command_run(cmds_main, "ringside", "bundle traces --no-ras -o traces.tar.gz");
	command_run(cmds_main, "ringside", "bundle traces --no-ras -o traces.tar.zst");
	command_run(cmds_main, "ringside", "bundle traces --no-ras -o traces.tar");
	command_run(cmds_main, "ringside", "bundle stuck --no-ras --regions -o stuck.tar");
	command_run(cmds_main, "ringside",
		    "bundle hung --no-ras --operations 5 --no-traces -o hung.tar.zst");
	command_run(cmds_main, "ringside", "bundle hung --no-ras --rank 1 -o some.tar");
	bytes = command_read(command_path("traces.tar.gz"), &length);
	command_write("cut.tar.gz", bytes, length - 20);
	free(bytes);
	bytes = command_read(command_path("traces.tar"), &length);
	command_write("cut.tar", bytes, 2000);
	free(bytes);
	command_each(lines);
	EXPECT_THAT("bundles are read like what was packed",
		    command_expected("tests/unit/cmds/expected/bundle-read"));
}

/* The names of the files in an archive, which are 512 bytes before their content. */
static void show_names(const char *name)
{
	size_t length, at = 0;
	char *bytes = command_read(command_path(name), &length);

	sink_format(&command_play.text, "--- %s\n", name);
	while (bytes && at + 512 <= length && bytes[at] != '\0') {
		size_t size = strtoul(bytes + at + 124, NULL, 8);

		if (strstr(bytes + at, "/node/") == NULL)
			sink_format(&command_play.text, "%s\n", bytes + at);
		at += 512 + (size + 511) / 512 * 512;
	}
	free(bytes);
}

static void names(void)
{
	struct command_sample sample = { 0, "trace", "", "on", "" };

	/* Two files of one process. */
	command_directory("a");
	command_directory("b");
	command_write_trace(command_path("a"), &sample, 0, true);
	command_write_trace(command_path("b"), &sample, 0, true);
	command_run(cmds_main, "ringside", "bundle traces --no-ras -o names.tar");
	show_names("names.tar");
	command_run(cmds_main, "ringside", "bundle traces --no-ras --no-traces -o names.tar");
	show_names("names.tar");
	command_run(cmds_main, "ringside", "bundle stuck --no-ras --regions -o names.tar");
	show_names("names.tar");
	command_run(cmds_main, "ringside", "bundle stuck --no-ras -o names.tar");
	show_names("names.tar");
	command_run(cmds_main, "ringside", "bundle traces --no-ras --most 1 -o names.tar");
	show_names("names.tar");
	command_run(cmds_main, "ringside", "bundle traces --no-ras --most 1400 -o names.tar");
	show_names("names.tar");
	command_run(cmds_main, "ringside",
		    "bundle traces open --no-ras --rank 1 --most 1381 -o names.tar");
	show_names("names.tar");
	command_run(cmds_main, "ringside", "bundle a b --no-ras -o names.tar");
	show_names("names.tar");
	EXPECT_THAT("names of files in bundles",
		    command_expected("tests/unit/cmds/expected/bundle-names"));
}

static void refusals(void)
{
	static const char *const lines[] = {
		"bundle traces",
		"bundle traces -o ''",
		"bundle traces -o x",
		"bundle traces -o x.zip",
		"bundle traces -o x.tar --operations -1",
		"bundle traces -o x.tar --operations 10000001",
		"bundle traces -o x.tar --most x",
		"bundle traces -o x.tar --hang 0",
		"bundle traces -o x.tar --hang x",
		"bundle traces -o x.tar --ras ''",
		"bundle traces -o x.tar --agents node1",
		"bundle traces -o x.tar --timeout 1s",
		"bundle -o x.tar --insecure",
		"bundle nowhere -o x.tar",
		"bundle garbage -o x.tar",
		"bundle empty -o x.tar",
		"bundle traces --no-ras -o no/x.tar",
		"bundle traces --no-ras -o x.tar --rank 9",
		"bundle traces --no-ras -o x.tar --comm nobody",
		"bundle traces --no-ras -o x.tar --job nothing",
		NULL,
	};

	command_directory("empty");
	command_write_text("garbage", "neither a trace nor a log\n");
	command_each(lines);
	command_show("x.tar");
	EXPECT_THAT("what bundle refuses",
		    command_expected("tests/unit/cmds/expected/bundle-refusals"));
}

int main(void)
{
	command_begin();
	command_play.most_json = 40;
	setenv("RINGSIDE_STACKS", "0", 1);
	command_make("traces");
	command_make("stuck");
	command_make("open");
	command_sim("-o hung --nodes 1 --gpus 2 --seconds 30s -f never-arrives:rank=1 --at 1s");
	packed_is_read();
	names();
	refusals();
	return tap_done();
}
