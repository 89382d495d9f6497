/* SPDX-License-Identifier: Apache-2.0 */
/* The one file in C++: toml++ is the parser of TOML that Debian keeps. No exception leaves it. */
#include "cli/toml.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include <toml++/toml.h>

namespace
{

struct teller {
    pf_toml_fn fn;
    void *ctx;
};

int tell_table(const teller &teller, const toml::table &table, const std::string &path);

std::string quoted(std::string_view key)
{
    static const char bare[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

    if (!key.empty() && key.find_first_not_of(bare) == key.npos)
        return std::string(key);
    std::string text = "\"";
    for (char c : key) {
        if (c == '"' || c == '\\')
            text += '\\';
        text += c;
    }
    return text + '"';
}

template <typename T> std::string printed(const T &value)
{
    std::ostringstream out;

    out.imbue(std::locale::classic());
    out << value;
    return out.str();
}

enum pf_toml_type type_of(const toml::node &node)
{
    switch (node.type()) {
    case toml::node_type::string:
        return PF_TOML_STRING;
    case toml::node_type::integer:
        return PF_TOML_INTEGER;
    case toml::node_type::floating_point:
        return PF_TOML_FLOAT;
    case toml::node_type::boolean:
        return PF_TOML_BOOLEAN;
    case toml::node_type::array:
        return PF_TOML_ARRAY;
    case toml::node_type::table:
        return PF_TOML_TABLE;
    default:
        return PF_TOML_DATE;
    }
}

std::string text_of(const toml::node &node)
{
    char number[32];

    if (const auto *text = node.as_string())
        return text->get();
    if (const auto *integer = node.as_integer())
        return std::to_string(integer->get());
    if (const auto *real = node.as_floating_point()) {
        std::snprintf(number, sizeof(number), "%.15g", real->get());
        return number;
    }
    if (const auto *boolean = node.as_boolean())
        return boolean->get() ? "true" : "false";
    if (const auto *date = node.as_date())
        return printed(date->get());
    if (const auto *time = node.as_time())
        return printed(time->get());
    if (const auto *both = node.as_date_time())
        return printed(both->get());
    return "";
}

int tell(const teller &teller, const toml::node &node, const std::string &path,
         const std::string &key, int index)
{
    const toml::source_region &source = node.source();
    std::string text = text_of(node);
    struct pf_toml_item item = {};

    item.type = type_of(node);
    item.path = path.c_str();
    item.key = key.c_str();
    item.key_len = key.size();
    item.text = text.c_str();
    item.index = index;
    item.line = source.begin.line;
    item.last = std::max(source.end.line, source.begin.line);
    /* C would see the value end there. */
    if (text.find('\0') != text.npos)
        item.type = PF_TOML_DATE, item.text = "(text with a NUL)";
    if (int r = teller.fn(teller.ctx, &item))
        return r;
    if (const auto *table = node.as_table())
        return tell_table(teller, *table, path);
    if (const auto *array = node.as_array()) {
        int i = 0;
        for (const toml::node &element : *array)
            if (int r = tell(teller, element, path, key, i++))
                return r;
    }
    return 0;
}

/* A table is sorted by key; who reads of a mistake begins at the top of the file. */
int tell_table(const teller &teller, const toml::table &table, const std::string &path)
{
    std::vector<std::pair<std::string, const toml::node *>> members;

    for (const auto &member : table)
        members.emplace_back(member.first.str(), &member.second);
    std::stable_sort(members.begin(), members.end(), [](const auto &a, const auto &b) {
        return a.second->source().begin.line < b.second->source().begin.line;
    });
    for (const auto &member : members) {
        std::string key = quoted(member.first);
        if (int r = tell(teller, *member.second, path.empty() ? key : path + "." + key,
                         member.first, -1))
            return r;
    }
    return 0;
}

int fail(struct pinfold_error *err, int code, const char *name, unsigned line, const char *what)
{
    if (!err)
        return -code;
    *err = PINFOLD_ERROR_INIT;
    err->code = code;
    if (line)
        std::snprintf(err->msg, sizeof(err->msg), "%s:%u: %s", name, line, what);
    else
        std::snprintf(err->msg, sizeof(err->msg), "read %s: %s", name, what);
    return -code;
}

} // namespace

extern "C" int pf_toml_read(const char *name, const char *text, size_t len, pf_toml_fn fn,
                            void *ctx, struct pinfold_error *err)
{
    try {
        toml::table table = toml::parse(std::string_view(text, len));
        return tell_table({ fn, ctx }, table, "");
    } catch (const toml::parse_error &wrong) {
        return fail(err, PINFOLD_EVALUE, name, wrong.source().begin.line,
                    std::string(wrong.description()).c_str());
    } catch (const std::bad_alloc &) {
        return fail(err, PINFOLD_ENOMEM, name, 0, "out of memory");
    } catch (...) {
        return fail(err, PINFOLD_EVALUE, name, 0, "toml++ failed");
    }
}
