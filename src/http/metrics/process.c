/* process.c - what /proc tells of this process. */
#include "http/metrics/table.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

double metrics_boot_time(void)
{
    struct vt_buf text = {0};
    const char *at = NULL;
    double boot_s = 0;

    if (vt_read_file("/proc/stat", 1 << 24, &text, NULL) == VT_OK && text.data)
        at = strstr(text.data, "btime ");
    if (at)
        boot_s = strtod(at + 6, NULL);
    vt_buf_free(&text);
    return boot_s;
}

/* Fields of /proc/self/stat behind the name, in their own units. */
enum { USER = 11, SYSTEM, START = 19, VIRTUAL_BYTES, RESIDENT_PAGES, FIELDS };

static bool read_process(double field[FIELDS])
{
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    char text[1024];
    const char *at;
    ssize_t n;

    if (fd < 0)
        return false;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    at = strrchr(text, ')'); /* the name may hold anything */
    if (!at || strlen(at) < 4)
        return false;
    at += 2;
    for (int i = 0; i < FIELDS; i++) {
        char *end;

        field[i] = strtod(at, &end);
        at = i == 0 ? at + 1 : end; /* the state is a letter */
    }
    return true;
}

/* Newer kernels tell the number as the directory's size; listing 10,000 would hold up
 * the streams. */
static double open_files(void)
{
    struct stat st;
    double n = 0;
    DIR *dir;

    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
        return (double)st.st_size;
    dir = opendir("/proc/self/fd");
    if (!dir)
        return 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 3; /* ".", ".." and the directory itself */
}

static void put_value(struct vt_buf *b, const char *name, const char *help,
                      const char *type, double v)
{
    metrics_put_head(b, name, "", help, type);
    metrics_put_line(b, name, "", v);
}

void metrics_put_process(struct vt_buf *b, double boot_s)
{
    double ticks = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
    double field[FIELDS];
    struct rlimit limit;

    if (read_process(field)) {
        put_value(b, "process_virtual_memory_bytes", "Virtual memory.", "gauge",
                  field[VIRTUAL_BYTES]);
        put_value(b, "process_resident_memory_bytes", "Resident memory.", "gauge",
                  field[RESIDENT_PAGES] * page);
        put_value(b, "process_start_time_seconds", "Unix time of the start.", "gauge",
                  field[START] / ticks + boot_s);
        put_value(b, "process_cpu_seconds_total", "User and system time.", "counter",
                  field[USER] / ticks + field[SYSTEM] / ticks);
    }
    put_value(b, "process_open_fds", "Open file descriptors.", "gauge", open_files());
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        put_value(b, "process_max_fds", "Most file descriptors.", "gauge",
                  (double)limit.rlim_cur);
}
