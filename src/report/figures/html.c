/* html.c - the frame of a page, and what every page has in it. */
#include "report/figures/figures.h"

void vt_html_text(struct vt_buf *b, const char *text)
{
    for (; *text; text++) {
        if (*text == '&')
            vt_buf_str(b, "&amp;");
        else if (*text == '<')
            vt_buf_str(b, "&lt;");
        else if (*text == '>')
            vt_buf_str(b, "&gt;");
        else
            vt_buf_char(b, *text);
    }
}

void vt_html_begin(struct vt_buf *b, const char *title, const char *style,
                   const char *subtitle)
{
    vt_buf_str(b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                  "<title>");
    vt_html_text(b, title);
    vt_buf_printf(b, "</title>\n<style>\n%s</style></head><body>\n<h1>", style);
    vt_html_text(b, title);
    vt_buf_str(b, "</h1>\n<p class=sub>");
    vt_html_text(b, subtitle);
    vt_buf_str(b, "</p>\n");
}

void vt_html_end(struct vt_buf *b)
{
    vt_buf_str(b, "</body></html>\n");
}

bool vt_html_figure(struct vt_buf *b, const char *attributes, const struct vt_buf *svg)
{
    const char *from = svg->len > 0 ? strstr(svg->data, "<svg") : NULL;

    if (from)
        vt_buf_printf(b, "<figure%s>\n%s</figure>\n", attributes, from);
    return from != NULL;
}
