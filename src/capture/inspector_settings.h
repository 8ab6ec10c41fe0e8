/* NCCL Inspector's own variables, NCCL_INSPECTOR_*: docs/INSPECTOR.md says what becomes of each. */
#ifndef INSPECTOR_SETTINGS_H
#define INSPECTOR_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "inspector/inspector_line.h"

struct settings;

/* Interval: hold back until a communicator ends, the process ends, or there is too much. */
#define INSPECTOR_AT_END INT64_C(-1)

struct inspector_settings {
	bool is_on;
	bool is_prom;	 /* metrics instead of lines */
	bool is_verbose; /* lines with events */
	struct inspector_filter filter;
	int64_t interval_us; /* at least so long between two writes, or INSPECTOR_AT_END */
	char dir[512];	     /* relative ones are the process's */
	char job[128];	     /* "" unknown */
};

/* Into settings->inspector. All but is_on may be unset when it is off. */
void inspector_settings_read(struct settings *settings);

#endif
