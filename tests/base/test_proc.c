/* Programs that are started, waited for and stopped. */
#include "testing.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct vt_err err;

static struct vt_proc shell(const char *script)
{
    struct vt_proc p = {0};

    vt_proc_arg(&p, "/bin/sh");
    vt_proc_arg_pair(&p, "-c", script);
    return p;
}

static struct row {
    const char *name, *script;
    int want;
    const char *message;
} rows[] = {
    {"ends well", "echo hello", VT_OK, ""},
    {"its status and its last line", "echo one; echo two >&2; echo; exit 3", VT_EIO,
     "/bin/sh ended with status 3: two"},
    {"nothing said", "exit 4", VT_EIO, "/bin/sh ended with status 4"},
    {"its signal", "kill -9 $$", VT_EIO, "/bin/sh died of signal 9"},
    {"no input", "read x || exit 5", VT_EIO, "/bin/sh ended with status 5"},
    {"too slow", "sleep 60", VT_EIO, "/bin/sh took longer than 0.2 s"},
};

static void runs(void **state)
{
    const struct row *r = *state;
    struct vt_proc p = shell(r->script);

    err.msg[0] = '\0';
    assert_int_equal(
        vt_proc_run(&p, strcmp(r->name, "too slow") ? 0 : VT_SEC / 5, &err), r->want);
    assert_string_equal(r->want == VT_OK ? "" : err.msg, r->message);
    vt_proc_stop(&p);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
}

static void no_such_program(void **state)
{
    struct vt_proc p = {0};

    (void)state;
    vt_proc_arg(&p, "/no/such/program");
    assert_int_equal(vt_proc_start(&p, &err), VT_EINPUT);
    assert_string_equal(err.msg, "/no/such/program: No such file or directory");
    vt_proc_stop(&p);
    p.in_path = true;
    vt_proc_arg(&p, "no-such-program-anywhere");
    assert_int_equal(vt_proc_start(&p, &err), VT_EINPUT);
    vt_proc_stop(&p);
    p = shell("true");
    p.directory = "/no/such/directory";
    assert_int_equal(vt_proc_start(&p, &err), VT_EINPUT);
    vt_proc_stop(&p);
    vt_proc_stop(&p); /* a zeroed one is fine */
    assert_int_equal(vt_proc_start(&p, &err), VT_ENOMEM);
}

static void the_path_the_place_and_the_environment(void **state)
{
    char *environment[] = {(char[]){"A=b"}, NULL};
    struct vt_proc p = {
        .in_path = true, .directory = "/", .environment = environment, .name = "it"};
    char line[VT_PROC_LINE];

    (void)state;
    vt_proc_arg(&p, "sh");
    vt_proc_arg(&p, "-c");
    vt_proc_arg_printf(&p, "echo \"$A $HOME $(pwd) $%d $%d\"", 1, 2);
    vt_proc_arg_u64(&p, "-", UINT64_MAX);
    vt_proc_arg_pair(&p, "x", "y");
    assert_int_equal(vt_proc_run(&p, 0, &err), VT_OK);
    vt_proc_last_line(&p, line);
    assert_string_equal(line, "b  / 18446744073709551615 x");
    vt_proc_stop(&p);
    p = shell("test -n \"$PATH\"");
    p.our_environment = true;
    assert_int_equal(vt_proc_run(&p, 0, &err), VT_OK);
    vt_proc_stop(&p);
}

static void output_to_a_file(void **state)
{
    char path[] = "/tmp/vt_test_proc.XXXXXX";
    struct vt_proc p = shell("echo result; echo complaint >&2");
    struct vt_buf b = {0};
    char line[VT_PROC_LINE];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    p.output = VT_PROC_TO_FILE;
    p.out = path;
    assert_int_equal(vt_proc_run(&p, 0, &err), VT_OK);
    vt_proc_last_line(&p, line);
    assert_string_equal(line, "complaint");
    assert_int_equal(vt_read_file(path, 100, &b, &err), VT_OK);
    assert_string_equal(b.data, "result\n");
    vt_proc_stop(&p);
    p = shell("true");
    p.output = VT_PROC_TO_FILE;
    p.out = "/no/such/directory/file";
    assert_int_equal(vt_proc_start(&p, &err), VT_EIO);
    vt_proc_stop(&p);
    unlink(path);
    vt_buf_free(&b);
}

static void lines_of_a_long_log(void **state)
{
    struct vt_proc p =
        shell("echo; echo '   '; echo '  first'; i=0; while [ $i -lt 400 ]; "
              "do echo line $i; i=$((i+1)); done");
    char line[VT_PROC_LINE];

    (void)state;
    assert_int_equal(vt_proc_run(&p, 0, &err), VT_OK);
    vt_proc_first_line(&p, line);
    assert_string_equal(line, "  first");
    vt_proc_last_line(&p, line);
    assert_string_equal(line, "line 399");
    vt_fail(&err, VT_EIO, "no answer");
    assert_int_equal(vt_proc_within(&p, &err, VT_EIO), VT_EIO);
    assert_string_equal(err.msg, "no answer (/bin/sh: line 399)");
    vt_proc_stop(&p);
}

/* The shell's child says that it is there and would go on. */
static void a_group_is_stopped_as_one(void **state)
{
    struct vt_proc p = shell("trap '' TERM; sleep 60 & echo $!; wait; wait");
    char line[VT_PROC_LINE] = "";
    const struct timespec look = {.tv_nsec = 5000000};
    int child = 0;

    (void)state;
    p.own_group = true;
    p.grace = 50 * VT_MS;
    assert_int_equal(vt_proc_start(&p, &err), VT_OK);
    while (child == 0) {
        vt_proc_last_line(&p, line);
        child = (int)strtol(line, NULL, 10);
        assert_true(vt_proc_running(&p, &err));
        nanosleep(&look, NULL);
    }
    vt_proc_stop(&p);
    for (int i = 0; i < 1000 && kill(child, 0) == 0; i++)
        nanosleep(&look, NULL); /* init takes its time to bury it */
    assert_true(kill(child, 0) != 0 && errno == ESRCH);
}

static void one_that_ends_is_seen_to(void **state)
{
    struct vt_proc p = shell("echo done; exit 1");
    const struct timespec look = {.tv_nsec = 5000000};

    (void)state;
    p.name = "job";
    assert_int_equal(vt_proc_start(&p, &err), VT_OK);
    while (vt_proc_running(&p, &err))
        nanosleep(&look, NULL);
    assert_string_equal(err.msg, "job ended with status 1: done");
    assert_int_equal(WEXITSTATUS(p.status), 1);
    assert_false(vt_proc_running(&p, &err));
    vt_proc_stop(&p);
}

int main(void)
{
    static const struct CMUnitTest more[] = {
        cmocka_unit_test(no_such_program),
        cmocka_unit_test(the_path_the_place_and_the_environment),
        cmocka_unit_test(output_to_a_file),
        cmocka_unit_test(lines_of_a_long_log),
        cmocka_unit_test(a_group_is_stopped_as_one),
        cmocka_unit_test(one_that_ends_is_seen_to),
    };
    struct CMUnitTest tests[VT_COUNT(rows)];
    int failed;

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = runs, .initial_state = &rows[i]};
    failed = cmocka_run_group_tests_name("running", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("programs", more, NULL, NULL);
}
