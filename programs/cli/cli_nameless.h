/* Files that have no name until they are whole. For cli_output.h; others want that one. */
#ifndef CLI_NAMELESS_H
#define CLI_NAMELESS_H

/* In the directory of `path`, with the rights that the umask leaves. -1 where the file system, or the machine, cannot give
 * it a name later. */
int cli_nameless_open(const char *path);

/* 0 or an errno: EEXIST where something has that name. */
int cli_nameless_link(int fd, const char *path);

/* All of it to the disk, where that can be told. 0 or an errno. */
int cli_nameless_settle(int fd);

/* For file systems that promise a name and then give none: all of it into a new file of that name, on the disk. 0 or an
 * errno. */
int cli_nameless_copy(int fd, const char *path);

#endif
