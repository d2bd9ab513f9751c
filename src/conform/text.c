/* text.c - rows and manifests as tables and as JSON. */
#include "conform/conform.h"

static const char *const result_names[] = {"ok", "FAILED", "skipped"};

static int widest_name(const struct vt_golden *g, size_t n)
{
    size_t widest = strlen("golden");

    for (size_t i = 0; i < n; i++)
        if (strlen(g[i].name) > widest)
            widest = strlen(g[i].name);
    return (int)(widest < 60 ? widest : 60);
}

/* ---- rows ------------------------------------------------------------- */

static int widest_row(const struct vt_conform *c)
{
    int widest = 0;

    for (size_t i = 0; i < c->n_rows; i++) {
        int w = widest_name(c->row[i].golden, 1);

        widest = w > widest ? w : widest;
    }
    return widest;
}

static void put_row(struct vt_buf *b, const struct vt_conform_row *row, int width)
{
    const char *result = row->excused ? "failed" : result_names[row->result];

    vt_buf_printf(b, "%-*s  %-7s  %-10s  %-7s  %s%s\n", width, row->golden->name,
                  row->golden->line, row->check, result, row->text,
                  row->excused ? " (this line is not validated)" : "");
}

static void put_sum(struct vt_buf *b, const struct vt_conform *c)
{
    vt_buf_printf(b, "%zu golden%s: %zu checks ok, %zu failed, %zu skipped",
                  c->n_goldens, c->n_goldens == 1 ? "" : "s", c->n_ok, c->n_failed,
                  c->n_skipped);
    if (c->n_excused)
        vt_buf_printf(b, ", %zu failed on lines that are not validated", c->n_excused);
    vt_buf_char(b, '\n');
}

void vt_conform_table(struct vt_buf *b, const struct vt_conform *c)
{
    int width = widest_row(c);

    if (c->n_goldens == 0) {
        vt_buf_str(b, "no goldens to check\n");
        return;
    }
    vt_buf_printf(b, "%-*s  line     check       result\n", width, "golden");
    for (size_t i = 0; i < c->n_rows; i++)
        put_row(b, &c->row[i], width);
    put_sum(b, c);
}

static void put_text(struct vt_buf *b, const char *before, const char *key,
                     const char *text)
{
    vt_buf_printf(b, "%s\"%s\": ", before, key);
    if (text)
        vt_buf_json_str(b, text, strlen(text));
    else
        vt_buf_str(b, "null");
}

static const char *yes_no(bool on)
{
    return on ? "true" : "false";
}

void vt_conform_json(struct vt_buf *b, const struct vt_conform *c)
{
    vt_buf_printf(b,
                  "{\n  \"goldens\": %zu,\n  \"ok\": %zu,\n  \"failed\": %zu,\n"
                  "  \"failed_not_validated\": %zu,\n  \"skipped\": %zu,\n"
                  "  \"checks\": [",
                  c->n_goldens, c->n_ok, c->n_failed, c->n_excused, c->n_skipped);
    for (size_t i = 0; i < c->n_rows; i++) {
        const struct vt_conform_row *row = &c->row[i];

        put_text(b, i ? ",\n    {" : "\n    {", "golden", row->golden->name);
        put_text(b, ", ", "line", row->golden->line);
        put_text(b, ", ", "role", vt_golden_role_name(row->golden->role));
        put_text(b, ", ", "check", row->check);
        put_text(b, ", ", "result",
                 row->result == VT_CHECK_FAILED ? "failed" : result_names[row->result]);
        vt_buf_printf(b, ", \"excused\": %s", yes_no(row->excused));
        put_text(b, ", ", "text", row->text);
        vt_buf_char(b, '}');
    }
    vt_buf_str(b, c->n_rows ? "\n  ]\n}\n" : "]\n}\n");
}

/* ---- manifests -------------------------------------------------------- */

void vt_manifest_table(struct vt_buf *b, const struct vt_manifest *m)
{
    int width = widest_name(m->golden, m->n_goldens);

    vt_buf_str(b, "line     tag         validated  default\n");
    for (size_t i = 0; i < m->n_lines; i++)
        vt_buf_printf(b, "%-7s  %-10s  %-9s  %s\n", m->line[i].line, m->line[i].tag,
                      m->line[i].fidelity_validated ? "yes" : "no",
                      m->line[i].is_default ? "yes" : "no");
    vt_buf_printf(b, "\n%-*s  line     role      model       workload\n", width,
                  "golden");
    for (size_t i = 0; i < m->n_goldens; i++) {
        const struct vt_golden *g = &m->golden[i];

        vt_buf_printf(b, "%-*s  %-7s  %-8s  %-10s  %s\n", width, g->name, g->line,
                      vt_golden_role_name(g->role), g->model ? g->model->name : "-",
                      g->workload);
    }
}

static void put_line(struct vt_buf *b, const struct vt_golden_line *l, bool first)
{
    put_text(b, first ? "\n    {" : ",\n    {", "line", l->line);
    put_text(b, ", ", "tag", l->tag);
    put_text(b, ", ", "protocol_rev", l->protocol_rev);
    put_text(b, ", ", "patch_repo", l->patch_repo);
    put_text(b, ", ", "patch_rev", l->patch_rev);
    vt_buf_printf(b, ", \"fidelity_validated\": %s, \"default\": %s}",
                  yes_no(l->fidelity_validated), yes_no(l->is_default));
}

void vt_manifest_json(struct vt_buf *b, const struct vt_manifest *m)
{
    vt_buf_str(b, "{\n  \"lines\": [");
    for (size_t i = 0; i < m->n_lines; i++)
        put_line(b, &m->line[i], i == 0);
    vt_buf_str(b, "\n  ],\n  \"goldens\": [");
    for (size_t i = 0; i < m->n_goldens; i++) {
        const struct vt_golden *g = &m->golden[i];

        put_text(b, i ? ",\n    {" : "\n    {", "golden", g->name);
        put_text(b, ", ", "line", g->line);
        put_text(b, ", ", "role", vt_golden_role_name(g->role));
        put_text(b, ", ", "workload", g->workload);
        put_text(b, ", ", "model", g->model ? g->model->name : NULL);
        put_text(b, ", ", "path", g->path);
        put_text(b, ", ", "bucket_path", g->bucket_path);
        put_text(b, ", ", "sha256", g->sha256);
        put_text(b, ", ", "config_hash", g->config_hash);
        vt_buf_char(b, '}');
    }
    vt_buf_str(b, m->n_goldens ? "\n  ]\n}\n" : "]\n}\n");
}
