/* Opening a file that somebody else chose: regular files only, and nothing else is even touched. */
#ifndef FILE_OPEN_H
#define FILE_OPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/*
 * Opening a device can do things and opening a pipe can wait, so what it is gets asked first.
 * Gives back a descriptor for reading or -1 with errno: EISDIR a directory, ELOOP a link where none
 * is allowed, EINVAL something else that is no regular file.
 */
int file_open(int directory, const char *path, bool may_follow);

/* pread() until all of it is there. ERR_TRUNCATED when the file ends before, ERR_SYSTEM. */
enum status file_pread(int fd, void *to, size_t length, uint64_t offset);

/* The same, but the end of the file is fine: *got says how much there was. */
enum status file_pread_some(int fd, void *to, size_t length, uint64_t offset, size_t *got);

#endif
