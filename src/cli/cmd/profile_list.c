/* profile_list.c - vtwin profile list: those fitted for vtwin line by line, BLIS's
 * table of fits as one line unless all are wanted. */
#include "cli/cmd/profile.h"
#include "model/model.h"

static void table(struct vt_buf *b, const struct vt_profile_entry *e, size_t n,
                  bool all)
{
    size_t hidden = 0;

    for (size_t i = 0; i < n; i++) {
        if (e[i].blackbox && !all)
            hidden++;
        else
            vt_buf_printf(b, "%-20s %s\n", e[i].name, e[i].description);
    }
    if (hidden > 0)
        vt_buf_printf(b,
                      "\n  and %zu fits by BLIS, blackbox:MODEL:GPU:tpN"
                      " (`vtwin profile list --all`)\n",
                      hidden);
}

static void json(struct vt_buf *b, const struct vt_profile_entry *e, size_t n, bool all)
{
    const char *before = "";

    vt_buf_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        if (e[i].blackbox && !all)
            continue;
        vt_buf_printf(b, "%s\n  {\"name\": ", before);
        vt_buf_json_str(b, e[i].name, strlen(e[i].name));
        vt_buf_str(b, ", \"description\": ");
        vt_buf_json_str(b, e[i].description, strlen(e[i].description));
        vt_buf_char(b, '}');
        before = ",";
    }
    vt_buf_str(b, "\n]\n");
}

int profile_list(const struct cli_args *a, struct vt_buf *b, struct vt_err *err)
{
    struct vt_profile_entry *e;
    struct vt_arena arena = {0};
    size_t n;
    int rc = vt_profile_list(&arena, &e, &n, err);

    if (rc == VT_OK && cli_has(a, "json"))
        json(b, e, n, cli_has(a, "all"));
    else if (rc == VT_OK)
        table(b, e, n, cli_has(a, "all"));
    vt_arena_free(&arena);
    return rc;
}
