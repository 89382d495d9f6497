/* SPDX-License-Identifier: Apache-2.0 */
/* What every public header needs: export marking, C++ linkage, and options at their defaults. */
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

/* Options that say their size and nothing else, which has everything at its default. C++ has no
 * designated initializers before C++20, and warns of what they leave out. */
#ifdef __cplusplus
extern "C++" {
template <typename Options> inline Options pinfold_sized()
{
    Options options = Options();
    options.size = sizeof(options);
    return options;
}
}
#define PINFOLD_SIZED(type) pinfold_sized<type>()
#else
#define PINFOLD_SIZED(type)  \
    {                        \
        .size = sizeof(type) \
    }
#endif

#endif
