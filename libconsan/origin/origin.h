/* origin: a store of the PTX from which machine code was made. Assemblers and linkers of machine
 * code (libconsan/makers/) write it, the loaders of modules read it. An entry is named by the
 * digest of the cubin, so it is found again when another process loads the cubin, or a later
 * run from a compiler's cache on disk.
 *
 * The store is a folder with one file for each entry. Files are complete when they appear, and
 * may disappear at any time. */
#ifndef CONSAN_ORIGIN_H
#define CONSAN_ORIGIN_H

#include "libconsan/base/base.h"

/* The environment variable with the folder; unset or empty, or a folder that others can write: there is no
 * store. */
#define ORIGIN_ENV "CONSAN_ORIGIN_DIR"

/* Remembers that the cubin was made from this PTX. Replaces an earlier entry: the last PTX that
 * gave this code has the lines of the present source. most: bytes that may be read of the cubin,
 * whose own headers say where it ends. Bytes that are no cubin are not remembered. */
void origin_put(const void *cubin, size_t most, const char *ptx, size_t n);

/* The PTX of a cubin, from the store or from the same folder of a compiler's cache (pairs.def),
 * NUL-terminated, *n bytes without the NUL; free() it. NULL: not known. */
char *origin_get(const void *cubin, size_t most, size_t *n);

/* The same of a cubin or of the cubins in a fatbin that this device runs. */
char *origin_find(const void *image, size_t most, unsigned sm, char suffix, size_t *n);

/* Other things that are kept in the store, under a name of any bytes that determines all that they depend
 * on. Each has a suffix of its own. */
enum origin_kind {
	ORIGIN_CODE,               /* machine code of instrumented PTX */
	ORIGIN_LAUNCHED,           /* the kernels of a module that earlier runs launched, one a line */
};
void origin_put_named(const void *name, size_t nname, enum origin_kind kind, const void *data,
	size_t n);
/* NUL-terminated, *n bytes without the NUL; free() it. NULL: it is not there, or damaged. */
void *origin_get_named(const void *name, size_t nname, enum origin_kind kind, size_t *n);

/* The folder for the store of all runs, $XDG_CACHE_HOME/consan or ~/.cache/consan, with the version
 * of the format; free() it. NULL: neither $XDG_CACHE_HOME nor $HOME is set. */
char *origin_default_dir(void);
/* Creates the folder and those above it, for this user alone. False: CONSAN_ERR_IO in *e. */
bool origin_make_dir(const char *dir, struct consan_err *e);
/* Is the folder's content only of this user and root? False: why is in *e, CONSAN_ERR_IO; such a folder is
 * neither read nor written by the functions above. */
bool origin_trusts(const char *dir, struct consan_err *e);
/* Removes the entries that were not used for the longest time until at most `most` bytes are left;
 * 0 removes all, and the folder. Only files with the names of entries are touched. */
void origin_trim(const char *dir, uint64_t most);

/* ---- the other header of this module ---- */
#include "parts.h"

#endif
