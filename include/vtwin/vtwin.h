/* vtwin.h - libvtwin: a GPU-free twin of a vLLM engine that other programs can link.
 *
 *     #include <vtwin/sim.h>          cc mine.c $(pkg-config --cflags --libs vtwin)
 *
 * latency.h says what a step costs; engine.h is one engine that is told the time; sim.h
 * simulates whole workloads, finds the highest load within latency limits and the
 * settings that bear most. Each includes what it needs, this header always. The library
 * opens no sockets and no files but profiles, traces and workloads, prints nothing and
 * never ends the process.
 *
 * Every struct that crosses this face begins with `size`, its own sizeof: set it with
 * VTWIN_INIT. So a program built with an older header works with a newer library, and
 * one that asks a library for more than that knows is told so. Opaque types are freed
 * by the function of their name; NULL is fine there. Nothing is shared between objects,
 * so different threads may use different ones; one object belongs to one thread at a
 * time. */
#ifndef VTWIN_VTWIN_H
#define VTWIN_VTWIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VTWIN_VERSION_MAJOR 0
#define VTWIN_VERSION_MINOR 2
#define VTWIN_VERSION_PATCH 0

#if defined(__GNUC__)
#define VTWIN_API __attribute__((visibility("default")))
#else
#define VTWIN_API
#endif

/* struct vtwin_request r = {VTWIN_INIT(r), .id = 7, .prompt_tokens = 100}; */
#define VTWIN_INIT(object) .size = sizeof(object)

VTWIN_API const char *vtwin_version(void); /* of the library that runs: "0.2.0" */

/* What functions return; 0 is success. */
enum vtwin_code {
    VTWIN_OK = 0,
    VTWIN_ECHECK, /* what was asked for does not exist, such as a rate within limits */
    VTWIN_EINPUT, /* a bad argument or a bad file */
    VTWIN_EIO,    /* a file could not be read */
    VTWIN_ENOMEM,
};

/* Where a function says what went wrong, in one line: file, line, field. Every `err`
 * may be NULL. */
struct vtwin_error {
    size_t size;
    int code; /* enum vtwin_code */
    char message[512];
};

#ifdef __cplusplus
}
#endif

#endif
