/* The options that people know from nccl-tests and that have other names here: for the page of `ringside bench`. */
#ifndef NCCL_TESTS_OPTIONS_H
#define NCCL_TESTS_OPTIONS_H

#include "cmds/cli.h"

extern const struct cli_option nccl_tests_options[];

#endif
