#include "programs/cli/cli_nameless.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/text.h"
#include "programs/cli/cli_pending.h"

enum { FD_NAME = 32, COPIED_AT_ONCE = 1 << 30 };

static void name_of_fd(char to[static FD_NAME], int fd)
{
	text_format(to, FD_NAME, "/proc/self/fd/%d", fd);
}

/* Some kernels forget the umask here where the file system has no access lists. Those of a directory decide instead of
 * it, and are not to be touched. */
static void apply_umask(int fd, const char *directory)
{
	mode_t mask = umask(0777);
	struct stat st;

	umask(mask);
	if (fstat(fd, &st) == 0 && (st.st_mode & mask & 0777) != 0 &&
	    getxattr(directory, "system.posix_acl_default", NULL, 0) <= 0)
		(void)fchmod(fd, st.st_mode & 0777 & ~mask);
}

int cli_nameless_open(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *directory = slash ? cli_path_join(path, (int)(slash - path + 1), "", ".")
				: cli_path_join("", 0, "", ".");
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	char name[FD_NAME];

	if (fd != -1) {
		name_of_fd(name, fd);
		if (access(name, F_OK) == 0) {
			apply_umask(fd, directory);
		} else {
			close(fd);
			fd = -1;
		}
	}
	free(directory);
	return fd;
}

int cli_nameless_link(int fd, const char *path)
{
	char name[FD_NAME];

	name_of_fd(name, fd);
	return linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == -1 ? errno : 0;
}

int cli_nameless_settle(int fd)
{
	return fsync(fd) == -1 && errno != EINVAL && errno != ENOSYS ? errno : 0;
}

int cli_nameless_copy(int fd, const char *path)
{
	int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), error = 0;
	ssize_t copied = 1;
	struct stat st;
	off_t at = 0;

	if (to == -1)
		return errno;
	if (fstat(fd, &st) == -1 || fchmod(to, st.st_mode & 0777) == -1)
		error = errno;
	while (error == 0 && copied > 0) {
		copied = sendfile(to, fd, &at, COPIED_AT_ONCE);
		error = copied == -1 ? errno : 0;
	}
	if (error == 0)
		error = cli_nameless_settle(to);
	if (close(to) == -1 && error == 0)
		error = errno;
	return error;
}
