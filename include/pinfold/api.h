/* SPDX-License-Identifier: Apache-2.0 */
/* What every public header needs: export marking and C++ linkage. */
#ifndef PINFOLD_API_H
#define PINFOLD_API_H

#define PINFOLD_API __attribute__((visibility("default")))
#define PINFOLD_PRINTF(format_index, first_arg) \
    __attribute__((format(printf, format_index, first_arg)))

#ifdef __cplusplus
#define PINFOLD_BEGIN_DECLS extern "C" {
#define PINFOLD_END_DECLS }
#else
#define PINFOLD_BEGIN_DECLS
#define PINFOLD_END_DECLS
#endif

#endif
