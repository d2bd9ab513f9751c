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

void vt_conform_table(struct vt_buf *b, const struct vt_conform *c)
{
    int width = 0;

    if (c->n_goldens == 0) {
        vt_buf_str(b, "no goldens to check\n");
        return;
    }
    for (size_t i = 0; i < c->n_rows; i++) {
        int w = widest_name(c->row[i].golden, 1);

        width = w > width ? w : width;
    }
    vt_buf_printf(b, "%-*s  line     check       result\n", width, "golden");
    for (size_t i = 0; i < c->n_rows; i++) {
        const struct vt_conform_row *row = &c->row[i];

        vt_buf_printf(b, "%-*s  %-7s  %-10s  %-7s  %s%s\n", width, row->golden->name,
                      row->golden->line, row->check,
                      row->excused ? "failed" : result_names[row->result], row->text,
                      row->excused ? " (this line is not validated)" : "");
    }
    vt_buf_printf(b, "%zu golden%s: %zu checks ok, %zu failed, %zu skipped",
                  c->n_goldens, c->n_goldens == 1 ? "" : "s", c->n_ok, c->n_failed,
                  c->n_skipped);
    if (c->n_excused)
        vt_buf_printf(b, ", %zu failed on lines that are not validated", c->n_excused);
    vt_buf_char(b, '\n');
}

void vt_conform_json(struct vt_buf *b, const struct vt_conform *c)
{
    struct vt_jw w;

    vt_jw_init(&w, b, &vt_json_pretty);
    vt_jw_map(&w, NULL);
    vt_jw_u64(&w, "goldens", c->n_goldens);
    vt_jw_u64(&w, "ok", c->n_ok);
    vt_jw_u64(&w, "failed", c->n_failed);
    vt_jw_u64(&w, "failed_not_validated", c->n_excused);
    vt_jw_u64(&w, "skipped", c->n_skipped);
    vt_jw_list(&w, "checks");
    for (size_t i = 0; i < c->n_rows; i++) {
        const struct vt_conform_row *row = &c->row[i];

        vt_jw_row(&w, NULL);
        vt_jw_str(&w, "golden", row->golden->name);
        vt_jw_str(&w, "line", row->golden->line);
        vt_jw_str(&w, "role", vt_golden_roles[row->golden->role]);
        vt_jw_str(&w, "check", row->check);
        vt_jw_str(&w, "result",
                  row->result == VT_CHECK_FAILED ? "failed"
                                                 : result_names[row->result]);
        vt_jw_bool(&w, "excused", row->excused);
        vt_jw_str(&w, "text", row->text);
        vt_jw_end(&w);
    }
    vt_jw_end(&w);
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
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
                      vt_golden_roles[g->role], g->model ? g->model->name : "-",
                      g->workload);
    }
}

void vt_manifest_json(struct vt_buf *b, const struct vt_manifest *m)
{
    struct vt_jw w;

    vt_jw_init(&w, b, &vt_json_pretty);
    vt_jw_map(&w, NULL);
    vt_jw_list(&w, "lines");
    for (size_t i = 0; i < m->n_lines; i++) {
        const struct vt_golden_line *l = &m->line[i];

        vt_jw_row(&w, NULL);
        vt_jw_str(&w, "line", l->line);
        vt_jw_str(&w, "tag", l->tag);
        vt_jw_str(&w, "protocol_rev", l->protocol_rev);
        vt_jw_str(&w, "patch_repo", l->patch_repo);
        vt_jw_str(&w, "patch_rev", l->patch_rev);
        vt_jw_bool(&w, "fidelity_validated", l->fidelity_validated);
        vt_jw_bool(&w, "default", l->is_default);
        vt_jw_end(&w);
    }
    vt_jw_end(&w);
    vt_jw_list(&w, "goldens");
    for (size_t i = 0; i < m->n_goldens; i++) {
        const struct vt_golden *g = &m->golden[i];

        vt_jw_row(&w, NULL);
        vt_jw_str(&w, "golden", g->name);
        vt_jw_str(&w, "line", g->line);
        vt_jw_str(&w, "role", vt_golden_roles[g->role]);
        vt_jw_str(&w, "workload", g->workload);
        vt_jw_str(&w, "model", g->model ? g->model->name : NULL);
        vt_jw_str(&w, "path", g->path);
        vt_jw_str(&w, "bucket_path", g->bucket_path);
        vt_jw_str(&w, "sha256", g->sha256);
        vt_jw_str(&w, "config_hash", g->config_hash);
        vt_jw_end(&w);
    }
    vt_jw_end(&w);
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
}
