/* auto_tune.c - what vLLM's benchmarks/auto_tune/auto_tune.sh is told by its variables,
 * as flags of tune. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "cli/cmd/tune.h"

enum { MOST_TEXT = 512 };

/* In the script's own order; what it takes for those that nobody sets. */
static const struct variable {
    const char *name, *standard;
} variables[] = {
    {"BASE", "."},
    {"MODEL", "meta-llama/Llama-3.1-8B-Instruct"},
    {"TP", "1"},
    {"INPUT_LEN", "4000"},
    {"OUTPUT_LEN", "16"},
    {"MAX_MODEL_LEN", "4096"},
    {"MIN_CACHE_HIT_PCT", "0"},
    {"MAX_LATENCY_ALLOWED_MS", "100000000000"},
    {"NUM_SEQS_LIST", "128 256"},
    {"NUM_BATCHED_TOKENS_LIST", "512 1024 2048 4096"},
};
enum {
    BASE,
    MODEL,
    TP,
    INPUT_LEN,
    OUTPUT_LEN,
    MAX_MODEL_LEN,
    MIN_CACHE_HIT_PCT,
    MAX_LATENCY,
    NUM_SEQS,
    NUM_BATCHED_TOKENS,
    N_VARIABLES
};

struct told {
    char text[N_VARIABLES][MOST_TEXT];
};

/* ---- a file of assignments -------------------------------------------------- */

/* The script's older lists are written small. */
static int find_variable(const char *name, size_t len)
{
    for (int i = 0; i < N_VARIABLES; i++)
        if (strlen(variables[i].name) == len &&
            strncasecmp(variables[i].name, name, len) == 0)
            return i;
    return -1;
}

/* The value behind "NAME=": without quotes and comment; of ${NAME:-value} the value. */
static void take_value(char *out, const char *text)
{
    char quote = *text == '"' || *text == '\'' ? *text : '\0';
    size_t n;

    text += quote != '\0';
    n = strcspn(text, quote == '"' ? "\"\n" : quote ? "'\n" : " \t#;\n");
    if (n > 3 && memcmp(text, "${", 2) == 0 && text[n - 1] == '}') {
        const char *dash = strstr(text, ":-");

        if (dash && dash < text + n) {
            n -= (size_t)(dash + 2 - text) + 1;
            text = dash + 2;
        }
    }
    if (n >= 2 && text[0] == '"' && text[n - 1] == '"') {
        text++;
        n -= 2;
    }
    (void)snprintf(out, MOST_TEXT, "%.*s", (int)n, text);
}

static void take_line(struct told *t, const char *line)
{
    const char *equals;
    int i;

    line += strspn(line, " \t");
    if (strncmp(line, "export ", 7) == 0)
        line += 7;
    equals = strchr(line, '=');
    if (!equals || (i = find_variable(line, (size_t)(equals - line))) < 0)
        return;
    take_value(t->text[i], equals + 1);
}

static int take_file(struct told *t, const char *path, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc = vt_read_file(path, 1 << 20, &b, err);

    for (char *line = b.data, *end; rc == VT_OK && line && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        take_line(t, line);
    }
    vt_buf_free(&b);
    return rc;
}

/* ---- as flags ------------------------------------------------------------------ */

/* "64 128" is 64,128. */
static const char *commas(char *list)
{
    for (char *c = list; *c; c++)
        if (*c == ' ')
            *c = ',';
    return list;
}

static int read_count(const struct told *t, int which, int64_t most, int64_t *v,
                      struct vt_err *err)
{
    const char *text = t->text[which];

    if (vt_parse_i64(text, strlen(text), v) && *v >= 0 && *v <= most)
        return VT_OK;
    return vt_fail(err, VT_EINPUT, "%s: '%s' is not a whole number from 0 to %lld",
                   variables[which].name, text, (long long)most);
}

/* named: the model is on the command line. */
static int put_flags(struct opt_words *w, struct told *t, bool named,
                     struct vt_err *err)
{
    int64_t in, out, longest, percent, prefix;
    time_t now = time(NULL);
    struct tm day;
    char tag[32];
    int rc;

    if ((rc = read_count(t, INPUT_LEN, 1 << 24, &in, err)) ||
        (rc = read_count(t, OUTPUT_LEN, 1 << 24, &out, err)) ||
        (rc = read_count(t, MAX_MODEL_LEN, 1 << 25, &longest, err)) ||
        (rc = read_count(t, MIN_CACHE_HIT_PCT, 100, &percent, err)))
        return rc;
    if (in + out > longest)
        return vt_fail(err, VT_EINPUT,
                       "INPUT_LEN %lld and OUTPUT_LEN %lld are more than MAX_MODEL_LEN "
                       "%lld",
                       (long long)in, (long long)out, (long long)longest);
    prefix = in * percent / 100;
    if (!localtime_r(&now, &day) || !strftime(tag, sizeof(tag), "%Y_%m_%d_%H_%M", &day))
        return vt_fail(err, VT_EIO, "no time of day");
    if ((!named && (rc = opt_word_put(w, err, "%s", t->text[MODEL]))) ||
        (rc = opt_word_put(w, err, "--tensor-parallel-size=%s", t->text[TP])) ||
        (rc = opt_word_put(w, err, "--dataset-name=random")) ||
        (rc = opt_word_put(w, err, "--random-input-len=%lld",
                           (long long)(in - prefix))) ||
        (rc = opt_word_put(w, err, "--random-prefix-len=%lld", (long long)prefix)) ||
        (rc = opt_word_put(w, err, "--random-output-len=%lld", (long long)out)) ||
        (rc = opt_word_put(w, err, "--max-model-len=%lld", (long long)longest)) ||
        (rc = opt_word_put(w, err, "--max-latency-allowed-ms=%s",
                           t->text[MAX_LATENCY])) ||
        (rc = opt_word_put(w, err, "--num-prompts=1000")) ||
        (rc = opt_word_put(w, err, "--max-num-seqs=%s", commas(t->text[NUM_SEQS]))) ||
        (rc = opt_word_put(w, err, "--max-num-batched-tokens=%s",
                           commas(t->text[NUM_BATCHED_TOKENS]))))
        return rc;
    return opt_word_put(w, err, "--out=%s/auto-benchmark/%s", t->text[BASE], tag);
}

/* Where --auto-tune stands, and its value; argc: nowhere. */
static int find_flag(int argc, const char *const *argv, const char **value)
{
    static const char flag[] = "--auto-tune";
    size_t len = strlen(flag);

    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], flag, len) != 0)
            continue;
        *value = argv[i][len] == '='                    ? argv[i] + len + 1
                 : argv[i][len] == '\0' && i + 1 < argc ? argv[i + 1]
                                                        : NULL;
        if (*value)
            return i;
    }
    return argc;
}

int auto_tune_rewrite(struct vt_arena *arena, int *argc, const char *const **argv,
                      struct vt_err *err)
{
    struct opt_words w = {.arena = arena};
    const char *from = NULL;
    struct told t;
    int rc = VT_OK;

    if (find_flag(*argc, *argv, &from) == *argc)
        return VT_OK;
    for (int i = 0; i < N_VARIABLES; i++)
        (void)snprintf(t.text[i], MOST_TEXT, "%s", variables[i].standard);
    if (strcmp(from, "env") != 0)
        rc = take_file(&t, from, err);
    for (int i = 0; i < N_VARIABLES && rc == VT_OK; i++) {
        const char *set = getenv(variables[i].name);

        if (set)
            (void)snprintf(t.text[i], MOST_TEXT, "%s", set);
    }
    if (rc == VT_OK)
        rc = vt_within(err, put_flags(&w, &t, (*argv)[0][0] != '-', err),
                       "--auto-tune %s", from);
    /* What is on the command line comes after it and counts. */
    for (int i = 0; i < *argc && rc == VT_OK; i++)
        rc = opt_word_add(&w, (*argv)[i], err);
    *argc = (int)w.n;
    *argv = w.word;
    return rc;
}
