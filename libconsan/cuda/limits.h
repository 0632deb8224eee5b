/* limits: of how host code and operations take turns ("Turns" in the section on `order` of libconsan/DESIGN.md).
 *
 * Who goes on is not a matter of time: an operation, when no thread of the host that could access memory unseen runs;
 * such a thread, when no operation runs. The limits are for what is not known, or does not end. */
#ifndef CONSAN_CUDA_LIMITS_H
#define CONSAN_CUDA_LIMITS_H

/* Seconds of processor time that a thread of the host gets to come to us (by a call, a guarded access, a sleep),
 * while another one waits for operations; then they go on beside it, until it has come, as it may never do.
 * Also seconds between two looks at what cannot tell us that it has changed. */
#define TURN 0.02
/* So many looks at least: of a virtual machine, the time in which its processor does not run counts, too. */
#define LOOKS_IN_TURN 40
/* So many times as long is waited where it costs nothing: while no thread waits; and by the clock, which runs on a
 * busy machine while the work does not. */
#define PATIENT 50
#define TURN_ALONE (TURN * PATIENT)
/* Seconds until a grid that was suspended looks again, where accesses of the host are not seen: first; each time
 * twice as long, up to TURN. Also between two looks at threads that are about to come. */
#define RETRY 0.0005
/* Seconds of work of an operation for which a thread of the host that is held does not go on; by the clock PATIENT
 * times as many. HOLD_BESIDE: if another thread waits for it anyway, so that it may be one that runs for long. It
 * works if it has used WORKS seconds of processor time within TURN_ALONE: one that writes to a pipe that is full, or
 * sleeps, does not. */
#define HOLD 2.0
#define HOLD_BESIDE 0.25
#define WORKS 0.001
/* Seconds of work for what is queued when the process ends, or unloads its kernels: it may wait for the host. */
#define END_LIMIT 5.0
/* Seconds without progress until it is reported; and until a thread of the host that is about to run, but does not,
 * counts as one that does not come. */
#define NO_PROGRESS 20.0
/* Turns without work until the thread that runs what none waits for sleeps. */
enum { IDLE_TURNS = 100 };

/* Accesses that are looked at, until a page is opened as it would take too long (guard_looks.c). Of a page: each
 * of its words of 4 bytes once, and some more; */
enum { LOOKS = 1100 };
/* so many times more if grids and the host signal each other by its words: what is unseen there makes the run one
 * that is not checked; */
enum { LOOKS_AT_SIGNALS = 8 };
/* of a program: so many until a page gets a quarter, then for twice as many a quarter of that, ... (0.3 s); */
enum { LOOKS_IN_ALL = 1 << 15, FEWEST_LOOKS = 2 };
/* of a function of the host; */
enum { LOOKS_IN_FUNCTION = 4096 };
/* pages that are opened ahead where the host goes through memory. */
enum { MOST_AHEAD = 256 };
/* A word that is accessed again in vain lets grids look after twice as many accesses each time, up to 2^this. */
enum { MOST_VAIN = 6 };
/* Words that are remembered: a thread that polls more of them in turn is not seen to poll. */
enum { WATCHED = 1024 };
/* Faults of a thread at one address, in a page that is not guarded, until it is the program's own protection. */
enum { MOST_REPEATS = 1000 };

#endif
