/* replay_main.c - runs every file of a corpus through one fuzz target, so that what a
 * fuzzer once found stays found under every compiler.
 *
 *   replay_fuzz_json DIR_OR_FILE... */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t size = 0, got;
    int rc = -1;

    if (!f)
        goto out;
    do {
        uint8_t *more = realloc(data, size + 65536);

        if (!more)
            goto out;
        data = more;
        got = fread(data + size, 1, 65536, f);
        size += got;
    } while (got > 0);
    if (ferror(f))
        goto out;
    /* An exact block, so that the sanitizer sees one byte too far. */
    if (size > 0) {
        uint8_t *exact = malloc(size);

        if (!exact)
            goto out;
        memcpy(exact, data, size);
        free(data);
        data = exact;
    }
    LLVMFuzzerTestOneInput(data, size);
    rc = 0;
out:
    if (f)
        fclose(f);
    free(data);
    if (rc != 0)
        perror(path);
    return rc;
}

static int is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int replay_dir(const char *path, unsigned *n)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_file, alphasort), rc = 0;

    if (count < 0) {
        perror(path);
        return -1;
    }
    for (int i = 0; i < count; i++) {
        size_t cap = strlen(path) + strlen(entries[i]->d_name) + 2;
        char *name = malloc(cap);

        if (name)
            snprintf(name, cap, "%s/%s", path, entries[i]->d_name);
        if (!name || replay_file(name) != 0)
            rc = -1;
        else
            ++*n;
        free(name);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

int main(int argc, char **argv)
{
    unsigned n = 0;
    int rc = 0;

    for (int i = 1; i < argc; i++) {
        struct stat st;

        if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
            rc |= replay_dir(argv[i], &n);
        else if (replay_file(argv[i]) == 0)
            n++;
        else
            rc = -1;
    }
    printf("%u inputs replayed\n", n);
    /* An empty corpus means a wrong path, not success. */
    return rc != 0 || n == 0;
}
