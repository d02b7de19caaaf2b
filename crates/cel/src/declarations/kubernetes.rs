//! Kubernetes' own libraries.

use super::{Functions, Implementation, comparable};
use crate::{
    functions::{
        formats::{self, FORMATS},
        lists, net, quantities, regexes, url, versions,
    },
    types::{
        CIDR, FORMAT, IP, QUANTITY, SEMVER,
        Type::{self, Bool, Double, Duration, Int, Text, Uint},
        URL,
    },
};

pub(super) fn declare(functions: &mut Functions) {
    urls(functions);
    regex_functions(functions);
    list_functions(functions);
    quantity_functions(functions);
    addresses(functions);
    networks(functions);
    named_formats(functions);
    semantic_versions(functions);
}

fn urls(functions: &mut Functions) {
    functions.function("url").overload("string_to_url", vec![Text], URL, url::to_url);
    functions.function("isURL").overload("is_url_string", vec![Text], Bool, url::is_url);
    for (name, id, read) in [
        ("getScheme", "url_get_scheme", url::scheme as Implementation),
        ("getHost", "url_get_host", url::host),
        ("getHostname", "url_get_hostname", url::hostname),
        ("getPort", "url_get_port", url::port),
        ("getEscapedPath", "url_get_escaped_path", url::escaped_path),
    ] {
        functions.function(name).member(id, vec![URL], Text, read);
    }
    let query = Type::map(Text, Type::list(Text));
    functions.function("getQuery").member("url_get_query", vec![URL], query, url::query);
}

fn regex_functions(functions: &mut Functions) {
    functions.function("find").member("string_find_string", vec![Text, Text], Text, regexes::find);
    functions
        .function("findAll")
        .member("string_find_all_string", vec![Text, Text], Type::list(Text), regexes::find_all)
        .member("string_find_all_string_int", vec![Text, Text, Int], Type::list(Text), regexes::find_all);
}

ids_by_type!(IS_SORTED, "duration", "timestamp", "is_sorted_bool");
ids_by_type!(MAX, "duration", "timestamp", "max");
ids_by_type!(MIN, "duration", "timestamp", "min");

fn list_functions(functions: &mut Functions) {
    let each = |functions: &mut Functions, name, ids: [&'static str; 8], implementation: Implementation| {
        for (id, element) in ids.into_iter().zip(comparable()) {
            let result = if name == "isSorted" { Bool } else { element.clone() };
            functions.function(name).member(id, vec![Type::list(element)], result, implementation);
        }
    };
    each(functions, "isSorted", IS_SORTED, lists::is_sorted);
    each(functions, "max", MAX, lists::max);
    each(functions, "min", MIN, lists::min);
    functions
        .function("sum")
        .member("list_int_sum_int", vec![Type::list(Int)], Int, lists::sum_ints)
        .member("list_uint_sum_uint", vec![Type::list(Uint)], Uint, lists::sum_uints)
        .member("list_double_sum_double", vec![Type::list(Double)], Double, lists::sum_doubles)
        .member("list_duration_sum_duration", vec![Type::list(Duration)], Duration, lists::sum_durations);
    let (element, list) = (Type::Param(0), Type::list(Type::Param(0)));
    let args = vec![list, element];
    functions.function("indexOf").member("list_a_index_of_int", args.clone(), Int, lists::index_of);
    functions.function("lastIndexOf").member("list_a_last_index_of_int", args, Int, lists::last_index_of);
}

fn quantity_functions(functions: &mut Functions) {
    use quantities::*;
    functions.function("quantity").overload("string_to_quantity", vec![Text], QUANTITY, to_quantity);
    functions.function("isQuantity").overload("is_quantity_string", vec![Text], Bool, is_quantity);
    functions.function("sign").overload("quantity_sign", vec![QUANTITY], Int, sign);
    let two = || vec![QUANTITY, QUANTITY];
    functions.function("isGreaterThan").member("quantity_is_greater_than", two(), Bool, is_greater_than);
    functions.function("isLessThan").member("quantity_is_less_than", two(), Bool, is_less_than);
    functions.function("compareTo").member("quantity_compare_to", two(), Int, compare_to);
    functions.function("asApproximateFloat").member(
        "quantity_get_float",
        vec![QUANTITY],
        Double,
        as_approximate_float,
    );
    functions.function("asInteger").member("quantity_get_int", vec![QUANTITY], Int, as_integer);
    functions.function("isInteger").member("quantity_is_integer", vec![QUANTITY], Bool, is_integer);
    functions.function("add").member("quantity_add", two(), QUANTITY, add).member(
        "quantity_add_int",
        vec![QUANTITY, Int],
        QUANTITY,
        add,
    );
    functions.function("sub").member("quantity_sub", two(), QUANTITY, subtract).member(
        "quantity_sub_int",
        vec![QUANTITY, Int],
        QUANTITY,
        subtract,
    );
}

fn addresses(functions: &mut Functions) {
    functions.function("ip").overload("string_to_ip", vec![Text], IP, net::to_ip);
    functions.function("isIP").overload("is_ip", vec![Text], Bool, net::is_ip);
    functions.function("ip.isCanonical").overload("ip_is_canonical", vec![Text], Bool, net::is_canonical);
    functions.function("string").overload("ip_to_string", vec![IP], Text, net::ip_to_text);
    functions.function("family").member("ip_family", vec![IP], Int, net::family);
    for (name, id, holds) in [
        ("isUnspecified", "ip_is_unspecified", net::is_unspecified as Implementation),
        ("isLoopback", "ip_is_loopback", net::is_loopback),
        ("isLinkLocalMulticast", "ip_is_link_local_multicast", net::is_link_local_multicast),
        ("isLinkLocalUnicast", "ip_is_link_local_unicast", net::is_link_local_unicast),
        ("isGlobalUnicast", "ip_is_global_unicast", net::is_global_unicast),
    ] {
        functions.function(name).member(id, vec![IP], Bool, holds);
    }
}

fn networks(functions: &mut Functions) {
    functions.function("cidr").overload("string_to_cidr", vec![Text], CIDR, net::to_cidr);
    functions.function("isCIDR").overload("is_cidr", vec![Text], Bool, net::is_cidr);
    functions.function("string").overload("cidr_to_string", vec![CIDR], Text, net::cidr_to_text);
    functions
        .function("containsIP")
        .member("cidr_contains_ip_string", vec![CIDR, Text], Bool, net::contains_ip)
        .member("cidr_contains_ip_ip", vec![CIDR, IP], Bool, net::contains_ip);
    functions
        .function("containsCIDR")
        .member("cidr_contains_cidr_string", vec![CIDR, Text], Bool, net::contains_cidr)
        .member("cidr_contains_cidr", vec![CIDR, CIDR], Bool, net::contains_cidr);
    functions.function("ip").member("cidr_ip", vec![CIDR], IP, net::address);
    functions.function("prefixLength").member("cidr_prefix_length", vec![CIDR], Int, net::prefix_length);
    functions.function("masked").member("cidr_masked", vec![CIDR], CIDR, net::masked);
}

fn named_formats(functions: &mut Functions) {
    functions.function("format.named").overload(
        "format-named",
        vec![Text],
        Type::optional(FORMAT),
        formats::named,
    );
    let found = Type::optional(Type::list(Text));
    functions.function("validate").member("format-validate", vec![FORMAT, Text], found, formats::validate);
    for format in &FORMATS {
        functions.function(format.function).overload(format.function, Vec::new(), FORMAT, format.constant);
    }
}

fn semantic_versions(functions: &mut Functions) {
    use versions::*;
    functions.function("semver").overload("string_to_semver", vec![Text], SEMVER, to_semver).overload(
        "string_bool_to_semver",
        vec![Text, Bool],
        SEMVER,
        to_semver,
    );
    functions.function("isSemver").overload("is_semver_string", vec![Text], Bool, is_semver).overload(
        "is_semver_string_bool",
        vec![Text, Bool],
        Bool,
        is_semver,
    );
    let two = || vec![SEMVER, SEMVER];
    functions.function("isGreaterThan").member("semver_is_greater_than", two(), Bool, is_greater_than);
    functions.function("isLessThan").member("semver_is_less_than", two(), Bool, is_less_than);
    functions.function("compareTo").member("semver_compare_to", two(), Int, compare_to);
    functions.function("major").member("semver_major", vec![SEMVER], Int, major);
    functions.function("minor").member("semver_minor", vec![SEMVER], Int, minor);
    functions.function("patch").member("semver_patch", vec![SEMVER], Int, patch);
}
