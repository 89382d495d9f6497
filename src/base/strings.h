/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of strings, and lists of them: the growing struct pinfold_strings, and NULL-terminated
 * vectors. */
#ifndef PF_BASE_STRINGS_H
#define PF_BASE_STRINGS_H

#include <stdbool.h>

#include <pinfold/result.h>

/* Copy a text, or NULL. Returns whether there was memory for it. */
bool pf_text_copy(char **ret, const char *text);

/* Replace each occurrence of a secret in a text, in place: services repeat what they were sent, and
 * errors end in logs. Before the text is cut, which could leave a part. What has fewer than 8 bytes
 * is no secret; both may be NULL. */
void pf_text_hide(char *text, const char *secret);

/* Append; returns 0 or -PINFOLD_ENOMEM (then a taken text is freed). */
int pf_strings_add(struct pinfold_strings *list, const char *text);
int pf_strings_take(struct pinfold_strings *list, char *text);
int pf_strings_addf(struct pinfold_strings *list, const char *format, ...) PINFOLD_PRINTF(2, 3);
int pf_strings_copy(struct pinfold_strings *to, const struct pinfold_strings *from);
void pf_strings_sort(struct pinfold_strings *list); /* bytewise */

/* NULL-terminated vectors on the heap; NULL counts as empty. */
size_t pf_strv_count(const char *const *strv);
char **pf_strv_copy(const char *const *strv);                         /* NULL when out of memory */
char **pf_strv_concat(const char *const *const *lists, size_t count); /* likewise */
void pf_strv_free(char **strv);
void pf_strv_freep(char ***strv);

#define _cleanup_strv_ __attribute__((cleanup(pf_strv_freep)))

#endif
