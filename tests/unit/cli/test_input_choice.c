/* Which processes of a recording are chosen, and what is reported about names that are not there, and about problems. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cli_input.h"
#include "recording/recording.h"
#include "tests/support/command_play.h"
#include "tests/tap.h"

enum { PROCESSES = 12, COMMS = 7 };

static struct recording_process processes[PROCESSES], *list[PROCESSES];
static struct recording_comm comms[PROCESSES][COMMS];
static struct cli_input input;
static const struct cli_page page = { .name = "report" };
static int errors;

static void show_errors(void)
{
	size_t length;
	char *text;

	fflush(stderr);
	text = command_read(command_path("errors"), &length);
	sink_text(&command_play.text, text);
	free(text);
	if (ftruncate(errors, 0) != 0 || lseek(errors, 0, SEEK_SET) != 0)
		abort();
}

/* Ranks 0 to 3, 7 and so on, of one job with seven communicators. */
static void begin(void)
{
	static const int64_t ranks[PROCESSES] = { 0, 1, 2, 3, 7, 9, 10, 12, 14, 16, 18, 20 };

	memset(&input, 0, sizeof(input));
	memset(comms, 0, sizeof(comms));
	for (size_t i = 0; i < PROCESSES; i++) {
		processes[i] = (struct recording_process){ .job = "train",
							   .host = "node1",
							   .rank = ranks[i],
							   .pid = 100 + (int64_t)i,
							   .pid_here = -1,
							   .info = "",
							   .run = 1,
							   .recorded = 10 + i,
							   .comms = comms[i],
							   .comm_count = COMMS };
		for (size_t c = 0; c < COMMS; c++) {
			struct comm_info *info = &comms[i][c].info;

			*info = (struct comm_info){ .id = (uint32_t)c + 1,
						    .hash = 0xa0 + c,
						    .rank = (int32_t)i,
						    .nranks = PROCESSES };
			snprintf(info->name, sizeof(info->name), "comm%zu", c);
		}
		list[i] = &processes[i];
	}
	input.recording.processes = list;
	input.recording.count = PROCESSES;
}

static void show_chosen(const char *heading, int code)
{
	sink_format(&command_play.text, "=== %s\ncode %d, hidden %zu, ranks", heading, code,
		    input.hidden);
	for (size_t i = 0; i < input.recording.count; i++)
		sink_format(&command_play.text, " %lld", (long long)list[i]->rank);
	sink_text(&command_play.text, "\n");
	show_errors();
}

static void ranks_and_comms(void)
{
	static const struct {
		const char *ranks, *comm, *function;
	} cases[] = {
		{ "0-1,7", NULL, NULL },     { "5", NULL, NULL },	{ "4-6", NULL, NULL },
		{ "0,21-30", NULL, NULL },   { NULL, "comm1", NULL },	{ NULL, "nobody", NULL },
		{ NULL, "0xa3", NULL },	     { "20", "comm6", NULL },	{ NULL, NULL, "AllReduce" },
		{ NULL, NULL, "AllReduse" }, { NULL, NULL, "Nothing" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct report_filter chosen = { .by = 0 };
		char heading[100];

		begin();
		if (cases[i].ranks && filter_add_ranks(&chosen.filter, cases[i].ranks) != OK)
			abort();
		if (cases[i].comm)
			chosen.filter.comms[chosen.filter.comm_count++] = cases[i].comm;
		/* The second of two. */
		if (cases[i].function) {
			chosen.filter.functions[chosen.filter.function_count++] = "Broadcast";
			chosen.filter.functions[chosen.filter.function_count++] = cases[i].function;
		}
		snprintf(heading, sizeof(heading), "ranks %s, communicator %s, operation %s",
			 cases[i].ranks ? cases[i].ranks : "all",
			 cases[i].comm ? cases[i].comm : "any",
			 cases[i].function ? cases[i].function : "any");
		show_chosen(heading, cli_input_choose_processes(&input, &chosen, &page));
	}
	begin();
	input.recording.count = 0;
	show_chosen("nothing", cli_input_choose_processes(
				       &input, &(struct report_filter){ .job = "x" }, &page));
	begin();
	input.recording.count = 3;
	processes[1].comm_count = processes[2].comm_count = processes[0].comm_count = 4;
	show_chosen("few communicators",
		    cli_input_choose(&input,
				     &(struct report_filter){
					     .filter = { .comms = { "comm5" }, .comm_count = 1 } },
				     &page));
}

static void jobs_and_runs(void)
{
	static const char *const names[] = { "a", "a", "b", "c", "d", "d", "e", "f" };
	struct report_filter chosen = { .job = "d" };

	begin();
	input.recording.count = ARRAY_LENGTH(names);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		text_copy(processes[i].job, sizeof(processes[i].job), names[i]);
	show_chosen("one job", cli_input_choose_processes(&input, &chosen, &page));
	EXPECT_THAT("the others are behind it",
		    list[2]->rank == 0 && list[3]->rank == 1 && list[7]->rank == 12);
	for (size_t count = 5; count <= ARRAY_LENGTH(names); count++) {
		begin();
		for (size_t i = 0; i < count; i++)
			text_copy(processes[i].job, sizeof(processes[i].job), names[i]);
		processes[2].job[0] = '\0';
		input.recording.count = count;
		chosen.job = "x";
		show_chosen("no such job", cli_input_choose_processes(&input, &chosen, &page));
	}
	chosen.job = NULL;
	for (uint32_t run = 0; run < 6; run++) {
		begin();
		input.recording.count = 6;
		input.has_last_run = run != 4;
		chosen.run = run == 4 ? 0 : run == 5 ? REPORT_RUN_ALL : run;
		for (size_t i = 0; i < 6; i++) {
			processes[i].run = (uint32_t)i / 2 + 1;
			processes[i].is_earlier_run = i < 4;
		}
		show_chosen("runs", cli_input_choose_processes(&input, &chosen, &page));
	}
	begin();
	input.recording.count = 4;
	input.has_last_run = true;
	chosen.run = 0;
	processes[1].is_earlier_run = true;
	show_chosen("an earlier run", cli_input_choose(&input, &chosen, &page));
	begin();
	for (size_t i = 0; i < PROCESSES; i++)
		processes[i].flight_count = i;
	EXPECT_THAT("operations are counted, with those in flight",
		    cli_input_operations(&input.recording) == 120 + 66 + 66);
}

static void problems(void)
{
	static const char *paths[] = { "given", "no-such-path" };
	struct recording_trouble troubles[30];
	struct recording *recording = &input.recording;

	begin();
	input.paths = paths;
	input.path_count = 2;
	recording->troubles = troubles;
	for (size_t i = 0; i < ARRAY_LENGTH(troubles); i++) {
		troubles[i] =
			(struct recording_trouble){ .kind = i < 8    ? RECORDING_DAMAGE
							    : i < 12 ? RECORDING_CUT
								     : RECORDING_FOREIGN,
						    .path = (char *)(i == 13 ? "given" : "found") };
		snprintf(troubles[i].what, sizeof(troubles[i].what), "problem %zu", i);
	}
	for (int turn = 0; turn < 7; turn++) {
		static const size_t counts[] = { 0, 5, 6, 12, 14, 20, 30 };
		int code;

		recording->trouble_count = counts[turn];
		recording->troubles_left_out = turn == 5 ? 100 : 0;
		code = cli_input_complain(&input, turn % 2 == 1);
		sink_format(&command_play.text, "=== %zu problems: code %d\n", counts[turn], code);
		show_errors();
		code = report_read_troubles(&input, true);
		sink_format(&command_play.text, "strictly: code %d\n", code);
		show_errors();
	}
	recording->count = 0;
	recording->trouble_count = 0;
	sink_format(&command_play.text, "=== nothing in two paths: code %d\n",
		    cli_input_complain(&input, false));
	show_errors();
	input.path_count = 0;
	sink_format(&command_play.text, "=== nothing at all: code %d\n",
		    report_read_troubles(&input, false));
	show_errors();
}

static void strictness(void)
{
	static struct timeline_report report;

	EXPECT_EQUAL(report_read_strictly(&report), CLI_EXIT_DONE);
	report.completeness.refused = 2;
	EXPECT_EQUAL(report_read_strictly(&report), CLI_EXIT_UNKNOWN);
	report.completeness.refused = 0;
	report.completeness.damages = 3;
	EXPECT_EQUAL(report_read_strictly(&report), CLI_EXIT_UNKNOWN);
	sink_text(&command_play.text, "=== damage\n");
	show_errors();
}

int main(void)
{
	int before = dup(STDERR_FILENO);

	command_begin();
	errors = open(command_path("errors"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	fflush(stderr);
	dup2(errors, STDERR_FILENO);
	ranks_and_comms();
	jobs_and_runs();
	problems();
	strictness();
	dup2(before, STDERR_FILENO);
	EXPECT_THAT("choices and complaints",
		    command_expected("tests/unit/cli/expected/input-choice"));
	return tap_done();
}
