//! cel-go's extensions, in the versions that Kubernetes 1.36 has.

use super::{Functions, Trait, comparable};
use crate::{
    functions::{lists, optionals, text, text_format},
    types::Type::{self, Bool, Dyn, Int, Text},
};

const T: Type = Type::Param(0);
const V: Type = Type::Param(1);

pub(super) fn declare(functions: &mut Functions) {
    strings(functions);
    sets(functions);
    list_functions(functions);
    optional_functions(functions);
    functions
        .function("cel.@mapInsert")
        .overload(
            "@mapInsert_map_key_value",
            vec![Type::map(T, V), T, V],
            Type::map(T, V),
            lists::insert_entry,
        )
        .overload(
            "@mapInsert_map_map",
            vec![Type::map(T, V), Type::map(T, V)],
            Type::map(T, V),
            lists::insert_map,
        );
}

fn strings(functions: &mut Functions) {
    functions.function("charAt").member("string_char_at_int", vec![Text, Int], Text, text::char_at);
    functions
        .function("indexOf")
        .member("string_index_of_string", vec![Text, Text], Int, text::index_of)
        .member("string_index_of_string_int", vec![Text, Text, Int], Int, text::index_of);
    functions
        .function("lastIndexOf")
        .member("string_last_index_of_string", vec![Text, Text], Int, text::last_index_of)
        .member("string_last_index_of_string_int", vec![Text, Text, Int], Int, text::last_index_of);
    functions.function("lowerAscii").member("string_lower_ascii", vec![Text], Text, text::lower_ascii);
    functions
        .function("replace")
        .member("string_replace_string_string", vec![Text, Text, Text], Text, text::replace)
        .member("string_replace_string_string_int", vec![Text, Text, Text, Int], Text, text::replace);
    functions
        .function("split")
        .member("string_split_string", vec![Text, Text], Type::list(Text), text::split)
        .member("string_split_string_int", vec![Text, Text, Int], Type::list(Text), text::split);
    functions
        .function("substring")
        .member("string_substring_int", vec![Text, Int], Text, text::substring)
        .member("string_substring_int_int", vec![Text, Int, Int], Text, text::substring);
    functions.function("trim").member("string_trim", vec![Text], Text, text::trim);
    functions.function("upperAscii").member("string_upper_ascii", vec![Text], Text, text::upper_ascii);
    let format = functions.function("format");
    format.member("string_format", vec![Text, Type::list(Dyn)], Text, text_format::format);
    format.last().stops_early = true;
    functions.function("strings.quote").overload("strings_quote", vec![Text], Text, text::quote);
    functions.function("join").member("list_join", vec![Type::list(Text)], Text, text::join).member(
        "list_join_string",
        vec![Type::list(Text), Text],
        Text,
        text::join,
    );
}

fn sets(functions: &mut Functions) {
    let list = || Type::list(T);
    functions.function("sets.contains").overload(
        "list_sets_contains_list",
        vec![list(), list()],
        Bool,
        lists::sets_contains,
    );
    functions.function("sets.equivalent").overload(
        "list_sets_equivalent_list",
        vec![list(), list()],
        Bool,
        lists::sets_equivalent,
    );
    functions.function("sets.intersects").overload(
        "list_sets_intersects_list",
        vec![list(), list()],
        Bool,
        lists::sets_intersect,
    );
}

fn list_functions(functions: &mut Functions) {
    let list = || Type::list(T);
    functions.function("slice").member("list_slice", vec![list(), Int, Int], list(), lists::slice);
    functions
        .function("flatten")
        .member("list_flatten", vec![Type::list(list())], list(), lists::flatten)
        .member("list_flatten_int", vec![Type::list(Dyn), Int], Type::list(Dyn), lists::flatten)
        .unguarded();
    let sort = functions.function("sort");
    for (id, element) in SORT.into_iter().zip(comparable()) {
        sort.declared_member(id, vec![Type::list(element.clone())], Type::list(element));
    }
    sort.singleton(Trait::Lister, lists::sort);
    let by_keys = functions.function("@sortByAssociatedKeys");
    for (id, key) in SORT_BY.into_iter().zip(comparable()) {
        by_keys.declared_member(id, vec![list(), Type::list(key)], list());
    }
    by_keys.singleton(Trait::Lister, lists::sort_by_keys);
    functions.function("lists.range").overload("lists_range", vec![Int], Type::list(Int), lists::range);
    functions.function("reverse").member("list_reverse", vec![list()], list(), lists::reverse);
    functions.function("distinct").member("list_distinct", vec![list()], list(), lists::distinct);
}

ids_by_type!(SORT, "google.protobuf.Duration", "google.protobuf.Timestamp", "sort");
ids_by_type!(SORT_BY, "google.protobuf.Duration", "google.protobuf.Timestamp", "sortByAssociatedKeys");

fn optional_functions(functions: &mut Functions) {
    let optional = || Type::optional(V);
    let list = || Type::list(V);
    let map = || Type::map(T, V);
    functions.function("optional.of").overload("optional_of", vec![V], optional(), optionals::of);
    functions.function("optional.ofNonZeroValue").overload(
        "optional_ofNonZeroValue",
        vec![V],
        optional(),
        optionals::of_non_zero,
    );
    functions.function("optional.none").overload("optional_none", Vec::new(), optional(), optionals::none);
    functions.function("value").member("optional_value", vec![optional()], V, optionals::value);
    functions.function("hasValue").member("optional_hasValue", vec![optional()], Bool, optionals::has_value);
    functions.function("or").declared_member(
        "optional_or_optional",
        vec![optional(), optional()],
        optional(),
    );
    functions.function("orValue").declared_member("optional_orValue_value", vec![optional(), V], V);
    functions.function("_?._").declared("select_optional_field", vec![Dyn, Text], optional());
    functions
        .function("_[?_]")
        .declared("list_optindex_optional_int", vec![list(), Int], optional())
        .declared("optional_list_optindex_optional_int", vec![Type::optional(list()), Int], optional())
        .declared("map_optindex_optional_value", vec![map(), T], optional())
        .declared("optional_map_optindex_optional_value", vec![Type::optional(map()), T], optional());
    functions.function("last").member("list_last", vec![list()], optional(), optionals::last);
    functions.function("first").member("list_first", vec![list()], optional(), optionals::first);
    functions.function("optional.unwrap").overload(
        "optional_unwrap",
        vec![Type::list(optional())],
        list(),
        optionals::unwrap,
    );
    functions.function("unwrapOpt").member(
        "optional_unwrapOpt",
        vec![Type::list(optional())],
        list(),
        optionals::unwrap,
    );
}
