/* json.c - summaries for programs. Keys and their order are a promise: add at the
 * end of a group, never rename (tests/e2e/json.sh holds the list). */
#include <math.h>

#include "report/report.h"

/* Six decimals: of milliseconds that is the nanosecond, and of rates more would be
 * noise. Values too large to have a sixth decimal stay as they are. */
static void number(struct vt_buf *b, double v)
{
    vt_buf_f64(b, fabs(v) < 1e9 ? nearbyint(v * 1e6) / 1e6 : v);
}

static void key(struct vt_buf *b, const char *indent, const char *name)
{
    if (b->len > 0 && b->data[b->len - 1] != '{')
        vt_buf_char(b, ',');
    vt_buf_printf(b, "\n%s  \"%s\": ", indent, name);
}

static void u64(struct vt_buf *b, const char *indent, const char *name, uint64_t v)
{
    key(b, indent, name);
    vt_buf_u64(b, v);
}

static void f64(struct vt_buf *b, const char *indent, const char *name, double v)
{
    key(b, indent, name);
    number(b, v);
}

static void str(struct vt_buf *b, const char *indent, const char *name, const char *v)
{
    key(b, indent, name);
    if (v)
        vt_buf_json_str(b, v, strlen(v));
    else
        vt_buf_str(b, "null");
}

static void stat(struct vt_buf *b, const char *indent, const struct vt_summary *s,
                 size_t row)
{
    key(b, indent, vt_stat_rows[row].key);
    for (size_t p = 0; p < VT_N_PARTS; p++) {
        vt_buf_printf(b, "%s\"%s\": ", p ? ", " : "{", vt_parts[p].key);
        number(b, vt_part_of(vt_stat_of(s, row), p));
    }
    vt_buf_char(b, '}');
}

static void amounts(struct vt_buf *b, const char *indent, const struct vt_summary *s)
{
    u64(b, indent, "requests", s->requests);
    key(b, indent, "duration_s");
    vt_buf_f64(b, s->duration_s); /* nine decimals are the nanosecond */
    f64(b, indent, "req_per_s", s->req_per_s);
    f64(b, indent, "output_tok_per_s", s->output_tok_per_s);
    f64(b, indent, "total_tok_per_s", s->total_tok_per_s);
    u64(b, indent, "prompt_tokens", s->prompt_tokens);
    u64(b, indent, "output_tokens", s->output_tokens);
}

static void predicted_object(struct vt_buf *b, const char *indent,
                             const struct vt_summary *s)
{
    vt_buf_char(b, '{');
    amounts(b, indent, s);
    for (size_t row = 0; row < VT_N_STATS; row++)
        stat(b, indent, s, row);
    u64(b, indent, "preemptions", s->preemptions);
    f64(b, indent, "prefix_hit_rate", s->prefix_hit_rate);
    f64(b, indent, "kv_usage_peak", s->kv_usage_peak);
    u64(b, indent, "steps", s->steps);
    str(b, indent, "workload", s->workload);
    str(b, indent, "profile", s->profile);
    u64(b, indent, "seed", s->seed);
    str(b, indent, "version", s->version);
    vt_buf_printf(b, "\n%s}", indent);
}

/* What a trace does not tell is left out, not written as zero. */
static void measured_object(struct vt_buf *b, const char *indent,
                            const struct vt_summary *s)
{
    vt_buf_char(b, '{');
    amounts(b, indent, s);
    for (size_t row = 0; row < VT_N_MEASURED; row++)
        stat(b, indent, s, row);
    f64(b, indent, "prefix_hit_rate", s->prefix_hit_rate);
    str(b, indent, "workload", s->workload);
    vt_buf_printf(b, "\n%s}", indent);
}

void vt_summary_json(struct vt_buf *b, const struct vt_summary *s)
{
    predicted_object(b, "", s);
    vt_buf_char(b, '\n');
}

static void error_stat(struct vt_buf *b, const struct vt_stat *predicted,
                       const struct vt_stat *measured)
{
    for (size_t p = 0; p < VT_N_PARTS; p++) {
        vt_buf_printf(b, "%s\"%s\": ", p ? ", " : "{", vt_parts[p].key);
        number(b, vt_error_percent(vt_part_of(predicted, p), vt_part_of(measured, p)));
    }
    vt_buf_char(b, '}');
}

static void error_object(struct vt_buf *b, const struct vt_summary *p,
                         const struct vt_summary *m)
{
    vt_buf_char(b, '{');
    for (size_t row = 0; row < VT_N_MEASURED; row++) {
        key(b, "  ", vt_stat_rows[row].key);
        error_stat(b, vt_stat_of(p, row), vt_stat_of(m, row));
    }
    for (size_t i = 0; i < VT_N_SCALARS; i++)
        f64(b, "  ", vt_scalars[i].key,
            vt_error_percent(vt_scalar_of(p, i), vt_scalar_of(m, i)));
    vt_buf_str(b, "\n  }");
}

void vt_compare_json(struct vt_buf *b, const struct vt_summary *predicted,
                     const struct vt_summary *measured)
{
    vt_buf_char(b, '{');
    key(b, "", "predicted");
    predicted_object(b, "  ", predicted);
    key(b, "", "measured");
    measured_object(b, "  ", measured);
    key(b, "", "error_percent");
    error_object(b, predicted, measured);
    vt_buf_str(b, "\n}\n");
}
