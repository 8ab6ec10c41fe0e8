/* The directory that NCCL Inspector's files go to. */
#ifndef INSPECTOR_PLACE_H
#define INSPECTOR_PLACE_H

/* mkdir -p, as Inspector makes its one: everybody may, as far as the umask lets them. What exists is left as
 * it is; whether it went well shows when a file is made. */
void inspector_make_directories(const char *path);

#endif
