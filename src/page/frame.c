/* frame.c - what stands around every page, and its parts of text. */
#include "page/page.h"

#include <string.h>

extern const struct vt_builtin vt_page_file_table[];
extern const size_t vt_page_file_count;

/* ---- text -------------------------------------------------------------- */

void vt_page_text(struct vt_buf *b, const char *text)
{
    for (; text && *text; text++) {
        if (*text == '&')
            vt_buf_str(b, "&amp;");
        else if (*text == '<')
            vt_buf_str(b, "&lt;");
        else if (*text == '>')
            vt_buf_str(b, "&gt;");
        else if (*text == '"')
            vt_buf_str(b, "&quot;");
        else
            vt_buf_char(b, *text);
    }
}

const char *vt_page_number(char out[VT_PAGE_NUMBER], double v)
{
    double size = v < 0 ? -v : v;

    (void)snprintf(out, VT_PAGE_NUMBER, size < 100 ? "%.3g" : "%.0f", v);
    return out;
}

/* Formats, then escapes. */
VT_PRINTF(2, 0)
static void put_args(struct vt_buf *b, const char *fmt, va_list args)
{
    struct vt_buf text = {0};

    vt_buf_vprintf(&text, fmt, args);
    b->failed |= text.failed;
    vt_page_text(b, text.data);
    vt_buf_free(&text);
}

static void put_element(struct vt_buf *b, const char *open, const char *text,
                        const char *close)
{
    vt_buf_str(b, open);
    vt_page_text(b, text);
    vt_buf_str(b, close);
}

/* ---- the frame --------------------------------------------------------- */

static const char *file_text(const char *name)
{
    for (size_t i = 0; i < vt_page_file_count; i++)
        if (strcmp(vt_page_file_table[i].name, name) == 0)
            return vt_page_file_table[i].text;
    return "";
}

const char *vt_page_style(void)
{
    return file_text("page.css");
}

const char *vt_page_script(void)
{
    return file_text("page.js");
}

void vt_page_begin(struct vt_buf *b, const char *kind, const char *title,
                   const char *subtitle)
{
    vt_buf_str(b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width,"
                  "initial-scale=1\">\n"
                  "<meta name=\"color-scheme\" content=\"light dark\">\n"
                  "<link rel=\"icon\" href=\"data:,\">\n");
    put_element(b, "<title>", title, "</title>\n<style>\n");
    vt_buf_str(b, vt_page_style());
    put_element(b, "</style></head><body><main>\n<header><p class=\"kind\">", kind,
                "</p>\n");
    put_element(b, "<h1>", title, "</h1>\n");
    if (subtitle)
        put_element(b, "<p class=\"sub\">", subtitle, "</p>\n");
    vt_buf_str(b, "</header>\n<noscript><p class=\"bad\">Charts are drawn by a script "
                  "in this page, which the browser does not run. Tables hold the "
                  "numbers.</p></noscript>\n");
}

void vt_page_end(struct vt_buf *b)
{
    vt_buf_str(b, "</main>\n<script>\n");
    vt_buf_str(b, vt_page_script());
    vt_buf_str(b, "</script></body></html>\n");
}

int vt_page_write(struct vt_buf *b, int rc, const char *path, struct vt_err *err)
{
    if (rc == VT_OK) {
        vt_page_end(b);
        rc = b->failed ? vt_nomem(err) : vt_write_file(path, b, err);
    }
    vt_buf_free(b);
    return rc;
}

/* ---- the answer -------------------------------------------------------- */

static void put_trust(struct vt_buf *b, const struct vt_page_trust *t)
{
    vt_buf_str(b, "<div class=\"trust");
    vt_buf_str(b, t->n_outside > 0 ? " beyond\">" : "\">");
    if (t->basis)
        put_element(b, "<p><b class=\"basis\">", t->basis, "</b> ");
    else
        vt_buf_str(b, "<p>");
    vt_page_text(b, t->about);
    if (t->expected_error_pct > 0)
        vt_buf_printf(b, " Expected error: about <b>%.*f&nbsp;%%</b>.",
                      t->expected_error_pct < 9.95, t->expected_error_pct);
    vt_buf_str(b, "</p>\n");
    for (size_t i = 0; i < t->n_outside; i++)
        put_element(b, "<p class=\"outside\">Outside: ", t->outside[i], "</p>\n");
    vt_buf_str(b, "</div>\n");
}

void vt_page_answer(struct vt_buf *b, const char *sentence,
                    const struct vt_page_trust *trust)
{
    put_element(b, "<section class=\"answer\"><p class=\"sentence\">", sentence,
                "</p>\n");
    if (trust && (trust->basis || trust->n_outside > 0))
        put_trust(b, trust);
    vt_buf_str(b, "</section>\n");
}

void vt_page_figures(struct vt_buf *b, const struct vt_page_figure *f, size_t n)
{
    vt_buf_str(b, "<dl class=\"figures\">\n");
    for (size_t i = 0; i < n; i++) {
        put_element(b, f[i].bad ? "<div class=\"bad\"><dt>" : "<div><dt>", f[i].label,
                    "</dt><dd>");
        vt_page_text(b, f[i].value);
        if (f[i].unit)
            put_element(b, "<small>", f[i].unit, "</small>");
        vt_buf_str(b, "</dd></div>\n");
    }
    vt_buf_str(b, "</dl>\n");
}

/* ---- parts ------------------------------------------------------------- */

void vt_page_section(struct vt_buf *b, const char *id, const char *title,
                     const char *note)
{
    if (id)
        put_element(b, "<h2 id=\"", id, "\">");
    else
        vt_buf_str(b, "<h2>");
    put_element(b, "", title, "</h2>\n");
    if (note)
        put_element(b, "<p class=\"sub\">", note, "</p>\n");
}

void vt_page_para(struct vt_buf *b, enum vt_page_voice voice, const char *fmt, ...)
{
    static const char *const open[] = {"<p>", "<p class=\"sub\">", "<p class=\"bad\">"};
    va_list args;

    vt_buf_str(b, open[voice]);
    va_start(args, fmt);
    put_args(b, fmt, args);
    va_end(args);
    vt_buf_str(b, "</p>\n");
}

void vt_page_facts_begin(struct vt_buf *b)
{
    vt_buf_str(b, "<dl class=\"facts\">\n");
}

void vt_page_fact(struct vt_buf *b, const char *name, const char *fmt, ...)
{
    va_list args;

    put_element(b, "<div><dt>", name, "</dt><dd>");
    va_start(args, fmt);
    put_args(b, fmt, args);
    va_end(args);
    vt_buf_str(b, "</dd></div>\n");
}

void vt_page_facts_end(struct vt_buf *b)
{
    vt_buf_str(b, "</dl>\n");
}

void vt_page_facts(struct vt_buf *b, const struct vt_page_fact *f, size_t n)
{
    vt_page_facts_begin(b);
    for (size_t i = 0; i < n; i++)
        vt_page_fact(b, f[i].name, "%s", f[i].value ? f[i].value : "");
    vt_page_facts_end(b);
}

void vt_page_svg(struct vt_buf *b, const char *id, bool narrow,
                 const struct vt_buf *svg, const char *why)
{
    const char *from = svg && svg->len > 0 ? strstr(svg->data, "<svg") : NULL;

    if (!from) {
        put_element(b, "<p class=\"sub\">Not drawn: ", why, ".</p>\n");
        return;
    }
    vt_buf_str(b,
               narrow ? "<figure class=\"drawn narrow\"" : "<figure class=\"drawn\"");
    if (id)
        put_element(b, " id=\"", id, "\"");
    vt_buf_str(b, ">\n");
    vt_buf_str(b, from);
    vt_buf_str(b, "</figure>\n");
}

void vt_page_fold_begin(struct vt_buf *b, const char *summary)
{
    put_element(b, "<details><summary>", summary, "</summary>\n");
}

void vt_page_fold_end(struct vt_buf *b)
{
    vt_buf_str(b, "</details>\n");
}

/* ---- tables ------------------------------------------------------------ */

static bool stands_left(const struct vt_page_table *t, size_t column)
{
    return column < t->n && t->head[column][0] == '<';
}

void vt_page_table_begin(struct vt_page_table *t, struct vt_buf *b,
                         const char *const *head, size_t n)
{
    *t = (struct vt_page_table){.b = b, .head = head, .n = n, .at = SIZE_MAX};
    vt_buf_str(b, "<div class=\"wide\" tabindex=\"0\"><table><thead><tr>");
    for (size_t i = 0; i < n; i++)
        put_element(b, stands_left(t, i) ? "<th class=\"l\">" : "<th>",
                    head[i] + stands_left(t, i), "</th>");
    vt_buf_str(b, "</tr></thead><tbody>\n");
}

static void end_row(struct vt_page_table *t)
{
    if (t->at != SIZE_MAX)
        vt_buf_str(t->b, "</tr>\n");
}

void vt_page_row(struct vt_page_table *t, const char *tone)
{
    end_row(t);
    t->at = 0;
    if (tone)
        put_element(t->b, "<tr class=\"", tone, "\">");
    else
        vt_buf_str(t->b, "<tr>");
}

static void begin_cell(struct vt_page_table *t)
{
    vt_buf_str(t->b, stands_left(t, t->at++) ? "<td class=\"l\">" : "<td>");
}

void vt_page_cell(struct vt_page_table *t, const char *fmt, ...)
{
    va_list args;

    begin_cell(t);
    va_start(args, fmt);
    put_args(t->b, fmt, args);
    va_end(args);
    vt_buf_str(t->b, "</td>");
}

void vt_page_cell_small(struct vt_page_table *t, const char *text, const char *small)
{
    begin_cell(t);
    vt_page_text(t->b, text);
    put_element(t->b, "<small>", small, "</small></td>");
}

void vt_page_table_end(struct vt_page_table *t)
{
    end_row(t);
    vt_buf_str(t->b, "</tbody></table></div>\n");
}
