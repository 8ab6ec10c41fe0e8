/*
 * Calls that are told to fail: VARIABLE=function:nth[:error],... makes the nth call of that function give the error, 0
 * every call. And FAKE_GPU_STOP=function:rank: that rank's process is stopped when it calls it.
 */
#ifndef FAKE_POINT_H
#define FAKE_POINT_H

#include <stdint.h>

enum { FAKE_POINTS = 8 };

/* 0: this call may go on. `calls` counts, one for each entry of the variable; `standard` is the error where
 * none is given. */
int fake_point(const char *variable, const char *function, uint32_t calls[FAKE_POINTS],
	       int standard);

/* A number from the environment, with K, M or G of 1024 behind it; `standard` where it is not set. */
uint64_t fake_setting(const char *name, uint64_t standard);

#endif
