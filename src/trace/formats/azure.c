/* azure.c - Azure LLM inference traces (Azure Public Dataset).
 *
 *     TIMESTAMP,ContextTokens,GeneratedTokens
 *     2023-11-16 18:17:03.9799600,4808,10
 *
 * Arrivals count from the earliest row. Nothing is known of the prompts' content, so
 * none is shared. */
#include "trace/formats/formats.h"

static bool recognise(const char *line, size_t len, const struct vt_node *first)
{
    static const char header[] = "TIMESTAMP,ContextTokens,GeneratedTokens";

    (void)first;
    return len == sizeof(header) - 1 && memcmp(line, header, len) == 0;
}

/* Takes exactly `digits` digits. */
static bool take_number(const char **at, int digits, int *out)
{
    *out = 0;
    for (int i = 0; i < digits; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *out = *out * 10 + (**at - '0');
    }
    return true;
}

static bool take_char(const char **at, char c)
{
    return **at == c && (*at)++;
}

/* "YYYY-MM-DD HH:MM:SS.fffffff" in the Gregorian calendar; any number of digits, those
 * beyond nanoseconds cut off. Later years do not fit in nanoseconds. */
static bool parse_timestamp(const char *text, vt_ns *out)
{
    static const int month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const char *at = text;
    int year, month, day, hour, minute, second;
    int64_t y, m, days, unit = VT_SEC / 10;
    bool leap;

    if (!take_number(&at, 4, &year) || !take_char(&at, '-') ||
        !take_number(&at, 2, &month) || !take_char(&at, '-') ||
        !take_number(&at, 2, &day) || !take_char(&at, ' ') ||
        !take_number(&at, 2, &hour) || !take_char(&at, ':') ||
        !take_number(&at, 2, &minute) || !take_char(&at, ':') ||
        !take_number(&at, 2, &second))
        return false;
    leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 ||
        day > month_days[month - 1] + (month == 2 && leap) || hour >= 24 ||
        minute >= 60 || second >= 60)
        return false;
    /* Counting years from March puts the leap day last, so that months before it have a
     * fixed length. */
    y = month > 2 ? year : year - 1;
    m = month > 2 ? month - 3 : month + 9;
    days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 719469;
    *out = (days * 86400 + hour * 3600 + minute * 60 + second) * VT_SEC;
    if (take_char(&at, '.'))
        for (; *at >= '0' && *at <= '9'; at++, unit /= 10)
            *out += (*at - '0') * unit;
    return *at == '\0' || strcmp(at, "+00:00") == 0;
}

static int read_row(void *user, struct trace_reader *r, struct vt_err *err)
{
    struct trace_build *b = user;
    char *field[3];
    struct vt_work *q;
    int rc;

    b->line = r->number;
    if (vt_csv_split(r->line, field, 3) != 3)
        return vt_fail(err, VT_EINPUT, "a row needs 3 columns");
    rc = trace_build_add_numbered(b, b->n, &q, err);
    if (rc != VT_OK)
        return rc;
    if (!parse_timestamp(field[0], &q->arrival_ns))
        return vt_fail(err, VT_EINPUT,
                       "column 'TIMESTAMP': '%.40s' is not YYYY-MM-DD HH:MM:SS.fffffff",
                       field[0]);
    if ((rc = trace_column_u32("ContextTokens", field[1], 1, TRACE_MAX_TOKENS,
                               &q->prompt_tokens, err)) ||
        (rc = trace_column_u32("GeneratedTokens", field[2], 1, TRACE_MAX_TOKENS,
                               &q->output_tokens, err)))
        return rc;
    q->max_tokens = q->output_tokens;
    return trace_build_own(b, q->prompt_tokens, err);
}

/* A file in pieces is in order of arrival, so its first piece has the earliest. */
static int read_rows(struct trace_build *b, struct trace_reader *r, void *state,
                     struct vt_err *err)
{
    struct vt_workload *w = b->w;
    vt_ns *first = state;
    size_t from = w->n, all = b->n;
    int rc;

    b->check_ids = false;
    rc = trace_reader_lines(r, read_row, b, err);
    if (all == 0)
        *first = VT_NEVER;
    for (size_t i = from; all == 0 && i < w->n; i++)
        if (w->req[i].arrival_ns < *first)
            *first = w->req[i].arrival_ns;
    for (size_t i = from; i < w->n; i++)
        w->req[i].arrival_ns -= *first;
    return rc;
}

const struct trace_format trace_format_azure = {
    .name = "azure",
    .recognise = recognise,
    .read = read_rows,
    .state_size = sizeof(vt_ns),
};
