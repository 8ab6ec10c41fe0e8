/* The commands of this program; main.c starts others. Each gets its own name as argv[0] and returns the exit code. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include <stddef.h>

int cmd_run(int argc, char **argv);
int cmd_env(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_stacks(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_baseline(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_bundle(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_self_check(int argc, char **argv);
int cmd_completions(int argc, char **argv); /* not listed in the help */

/* Name and summary of a listed command; NULL past the end. */
const char *command_name(size_t number);
const char *command_summary(size_t number);

#endif
