/* SPDX-License-Identifier: Apache-2.0 */
/* Many sessions at once: each is found, nothing is had twice, and they end in any order. */
#include "fake_backend.h"

#include <sys/wait.h>

enum { MANY = 2000, MANAGERS = 300, STRIDE = 1237 /* no factor of either: an order of its own */ };

struct box {
    struct fake fake;
    struct pinfold_backend *backend;
    char id[16], key[24];
};

static struct box *new_boxes(int count)
{
    struct box *boxes = calloc((size_t)count, sizeof(*boxes));

    assert_non_null(boxes);
    for (int i = 0; i < count; i++) {
        snprintf(boxes[i].id, sizeof(boxes[i].id), "w%d", i);
        snprintf(boxes[i].key, sizeof(boxes[i].key), "disk:%d", i);
        boxes[i].fake.key = boxes[i].key;
        boxes[i].backend = fake_backend(&boxes[i].fake);
    }
    return boxes;
}

static void free_boxes(struct box *boxes, int count)
{
    for (int i = 0; i < count; i++)
        pinfold_backend_unref(boxes[i].backend);
    free(boxes);
}

static struct pinfold_manager *new_manager(double ttl)
{
    struct pinfold_manager_options options = PINFOLD_MANAGER_OPTIONS_INIT;
    struct pinfold_manager *manager = NULL;

    options.ttl_seconds = ttl;
    assert_int_equal(pinfold_manager_new(&options, &manager, NULL), 0);
    return manager;
}

/* owner: NULL for the path of agents. */
static int open_session(struct pinfold_manager *manager, const char *id, const struct box *box,
                        const char *owner, struct pinfold_error *err)
{
    struct pinfold_backend_factory factory = { .make = fake_make, .ctx = box->backend };

    return owner ? pinfold_manager_claim_session(manager, id, &factory, owner, 0, NULL, NULL, err)
                 : pinfold_manager_get_or_create(manager, id, &factory, NULL, NULL, err);
}

static void assert_found(struct pinfold_manager *manager, const struct box *box)
{
    struct pinfold_session found = { 0 };

    assert_int_equal(pinfold_manager_get_session(manager, box->id, &found, NULL), 1);
    assert_string_equal(found.session_id, box->id);
    assert_ptr_equal(found.backend, box->backend);
    pinfold_session_done(&found);
}

static void assert_not_found(struct pinfold_manager *manager, const char *id)
{
    struct pinfold_session found = { 0 };

    assert_int_equal(pinfold_manager_get_session(manager, id, &found, NULL), 0);
}

static void assert_refused(struct pinfold_manager *manager, const char *id, const struct box *box,
                           const char *owner, const char *why)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    assert_int_equal(open_session(manager, id, box, owner, &err), -PINFOLD_ESTART);
    assert_non_null(strstr(err.msg, why));
}

static void each_of_many_is_found_and_nothing_is_had_twice(void **unused)
{
    struct pinfold_manager *manager = new_manager(10);
    struct box *boxes = new_boxes(MANY), *spare = new_boxes(1);

    (void)unused;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(open_session(manager, boxes[i].id, &boxes[i], i % 2 ? "me" : NULL, NULL),
                         0);
    assert_not_found(manager, "w2000");
    assert_not_found(manager, "");
    for (int i = 0; i < MANY; i++) {
        spare->fake.key = boxes[i].key;
        assert_found(manager, &boxes[i]);
        assert_refused(manager, boxes[i].id, spare, "you",
                       i % 2 ? "owned by another Sandbox of this process (me)" : "in use by");
        assert_refused(manager, "other", &boxes[i], NULL, "the backend instance of workspace");
        assert_refused(manager, "other", spare, NULL, "the storage of workspace");
        assert_not_found(manager, "other");
    }
    for (int i = 0; i < MANY; i += 2) /* shared, not made again */
        assert_int_equal(open_session(manager, boxes[i].id, spare, NULL, NULL), 0);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(boxes[i].fake.created, 1);
    pinfold_manager_unref(manager);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(boxes[i].fake.closed, 1);
    free_boxes(spare, 1);
    free_boxes(boxes, MANY);
}

static void they_end_in_any_order_and_what_they_had_is_free(void **unused)
{
    struct pinfold_manager *manager = new_manager(10), *other = new_manager(10);
    struct box *boxes = new_boxes(MANY);

    (void)unused;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(open_session(manager, boxes[i].id, &boxes[i], "me", NULL), 0);
    for (int n = 0; n < MANY; n++) {
        const struct box *box = &boxes[n * STRIDE % MANY];
        assert_int_equal(pinfold_manager_close_session(manager, box->id, NULL, NULL, NULL), 0);
        assert_not_found(manager, box->id);
        if (n + 1 < MANY)
            assert_found(manager, &boxes[(n + 1) * STRIDE % MANY]);
        assert_int_equal(open_session(other, box->id, box, "you", NULL), 0);
        assert_found(other, box);
        assert_not_found(manager, box->id);
    }
    for (int i = 0; i < MANY; i++)
        assert_found(other, &boxes[i]);
    pinfold_manager_unref(manager);
    pinfold_manager_unref(other);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(boxes[i].fake.closed, 2);
    free_boxes(boxes, MANY);
}

static void one_id_in_many_managers_keeps_owners_out_until_the_last_is_closed(void **unused)
{
    struct pinfold_manager *managers[MANAGERS], *owner = new_manager(10);
    struct box *boxes = new_boxes(MANAGERS), *spare = new_boxes(1);

    (void)unused;
    spare->fake.key = "disk:spare";
    for (int i = 0; i < MANAGERS; i++) {
        managers[i] = new_manager(10);
        assert_int_equal(open_session(managers[i], "default", &boxes[i], NULL, NULL), 0);
    }
    assert_refused(owner, "default", spare, "me", pinfold_manager_id(managers[0]));
    for (int n = 0; n < MANAGERS; n++) {
        struct pinfold_session found = { 0 };
        int i = n * STRIDE % MANAGERS;
        assert_refused(owner, "default", spare, "me", "in use by a session of manager");
        assert_int_equal(pinfold_manager_get_session(managers[i], "default", &found, NULL), 1);
        assert_ptr_equal(found.backend, boxes[i].backend);
        pinfold_session_done(&found);
        pinfold_manager_unref(managers[i]);
        assert_int_equal(boxes[i].fake.closed, 1);
    }
    assert_int_equal(open_session(owner, "default", spare, "me", NULL), 0);
    managers[0] = new_manager(10);
    assert_refused(managers[0], "default", &boxes[0], NULL, "owned by another Sandbox");
    pinfold_manager_unref(owner);
    assert_int_equal(open_session(managers[0], "default", &boxes[0], NULL, NULL), 0);
    pinfold_manager_unref(managers[0]);
    free_boxes(spare, 1);
    free_boxes(boxes, MANAGERS);
}

static void those_that_expire_do_so_oldest_first_and_in_their_manager_alone(void **unused)
{
    enum { OLD = 100 };
    struct pinfold_manager *manager = new_manager(0.001), *other = new_manager(0.001);
    struct pinfold_strings ids = { 0 };
    struct box *boxes = new_boxes(OLD);

    (void)unused;
    for (int i = 0; i < OLD; i++)
        assert_int_equal(open_session(i % 2 ? other : manager, boxes[i].id, &boxes[i], NULL, NULL),
                         0);
    usleep(20000);
    assert_int_equal(pinfold_manager_cleanup_expired(manager, &ids, NULL), 0);
    assert_int_equal(ids.count, OLD / 2);
    for (int i = 0; i < OLD; i++)
        assert_int_equal(boxes[i].fake.closed, i % 2 == 0);
    for (int i = 0; i < OLD / 2; i++)
        assert_string_equal(ids.items[i], boxes[2 * i].id);
    pinfold_strings_done(&ids);
    pinfold_manager_unref(manager);
    pinfold_manager_unref(other);
    free_boxes(boxes, OLD);
}

/* Returns 0, or which expectation was not met. */
static int be_a_fork(struct pinfold_manager *manager, struct box *boxes)
{
    struct pinfold_session found = { 0 };

    for (int i = 0; i < MANY; i++)
        if (pinfold_manager_get_session(manager, boxes[i].id, &found, NULL) != 0)
            return 1;
    /* All of it is free here: it is the parent that knows whose it is. */
    for (int i = 0; i < MANY; i++)
        if (open_session(manager, boxes[i].id, &boxes[i], "child", NULL) != 0)
            return 2;
    if (pinfold_manager_get_session(manager, "w7", &found, NULL) != 1)
        return 3;
    pinfold_session_done(&found);
    pinfold_manager_unref(manager);
    for (int i = 0; i < MANY; i++)
        if (boxes[i].fake.created != 2 || boxes[i].fake.closed != 1)
            return 4;
    return 0;
}

static void a_fork_has_none_of_them_and_may_have_its_own(void **unused)
{
    struct pinfold_manager *manager = new_manager(10);
    struct box *boxes = new_boxes(MANY);
    int status = -1;
    pid_t pid;

    (void)unused;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(open_session(manager, boxes[i].id, &boxes[i], "me", NULL), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(be_a_fork(manager, boxes));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    for (int i = 0; i < MANY; i++)
        assert_found(manager, &boxes[i]);
    pinfold_manager_unref(manager);
    free_boxes(boxes, MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_of_many_is_found_and_nothing_is_had_twice),
        cmocka_unit_test(they_end_in_any_order_and_what_they_had_is_free),
        cmocka_unit_test(one_id_in_many_managers_keeps_owners_out_until_the_last_is_closed),
        cmocka_unit_test(those_that_expire_do_so_oldest_first_and_in_their_manager_alone),
        cmocka_unit_test(a_fork_has_none_of_them_and_may_have_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
