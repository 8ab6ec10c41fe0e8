/*
 * Injected failures: VARIABLE=function:nth[:error],... makes the nth call of that function return the error, 0:
 * every call. FAKE_GPU_STOP=function:rank stops that rank's process when it calls the function.
 */
#ifndef FAKE_POINT_H
#define FAKE_POINT_H

#include <stdint.h>

enum { FAKE_POINTS = 8 };

/*
 * 0: this call continues. `calls` has one count per entry of the variable; `standard` is the error if none is
 * given.
 */
int fake_point(const char *variable, const char *function, uint32_t calls[FAKE_POINTS],
	       int standard);

/* A number from the environment, with a suffix K, M or G (1024-based); `standard` if it is not set. */
uint64_t fake_setting(const char *name, uint64_t standard);

#endif
