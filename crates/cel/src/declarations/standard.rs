//! CEL itself.

use super::{Functions, Trait};
use crate::{
    functions::{conversions, operators, text, time},
    types::Type::{self, Bool, Bytes, Double, Duration, Dyn, Int, Text, Timestamp, Uint},
};

const A: Type = Type::Param(0);
const B: Type = Type::Param(1);

pub(super) fn declare(functions: &mut Functions) {
    logic(functions);
    arithmetic(functions);
    for (function, ids, holds) in [
        ("_<_", LESS, operators::less as super::Implementation),
        ("_<=_", LESS_EQUALS, operators::less_equals),
        ("_>_", GREATER, operators::greater),
        ("_>=_", GREATER_EQUALS, operators::greater_equals),
    ] {
        let declared = functions.function(function);
        for (id, (left, right)) in ids.into_iter().zip(comparisons()) {
            declared.declared(id, vec![left, right], Bool);
        }
        declared.singleton(Trait::Comparer, holds);
    }
    aggregates(functions);
    conversions(functions);
    texts(functions);
    times(functions);
}

fn logic(functions: &mut Functions) {
    functions.function("_?_:_").declared("conditional", vec![Bool, A, A], A);
    functions.function("_&&_").declared("logical_and", vec![Bool, Bool], Bool);
    functions.function("_||_").declared("logical_or", vec![Bool, Bool], Bool);
    functions
        .function("!_")
        .declared("logical_not", vec![Bool], Bool)
        .singleton(Trait::Every, operators::not);
    functions.function("@not_strictly_false").declared("not_strictly_false", vec![Bool], Bool);
    functions.function("_==_").declared("equals", vec![A, A], Bool);
    functions.function("_!=_").declared("not_equals", vec![A, A], Bool);
}

fn arithmetic(functions: &mut Functions) {
    let list = || Type::list(A);
    functions
        .function("_+_")
        .declared("add_bytes", vec![Bytes, Bytes], Bytes)
        .declared("add_double", vec![Double, Double], Double)
        .declared("add_duration_duration", vec![Duration, Duration], Duration)
        .declared("add_duration_timestamp", vec![Duration, Timestamp], Timestamp)
        .declared("add_timestamp_duration", vec![Timestamp, Duration], Timestamp)
        .declared("add_int64", vec![Int, Int], Int)
        .declared("add_list", vec![list(), list()], list())
        .declared("add_string", vec![Text, Text], Text)
        .declared("add_uint64", vec![Uint, Uint], Uint)
        .singleton(Trait::Adder, operators::add);
    functions
        .function("_/_")
        .declared("divide_double", vec![Double, Double], Double)
        .declared("divide_int64", vec![Int, Int], Int)
        .declared("divide_uint64", vec![Uint, Uint], Uint)
        .singleton(Trait::Divider, operators::divide);
    functions
        .function("_%_")
        .declared("modulo_int64", vec![Int, Int], Int)
        .declared("modulo_uint64", vec![Uint, Uint], Uint)
        .singleton(Trait::Modder, operators::modulo);
    functions
        .function("_*_")
        .declared("multiply_double", vec![Double, Double], Double)
        .declared("multiply_int64", vec![Int, Int], Int)
        .declared("multiply_uint64", vec![Uint, Uint], Uint)
        .singleton(Trait::Multiplier, operators::multiply);
    functions
        .function("-_")
        .declared("negate_double", vec![Double], Double)
        .declared("negate_int64", vec![Int], Int)
        .singleton(Trait::Negator, operators::negate);
    functions
        .function("_-_")
        .declared("subtract_double", vec![Double, Double], Double)
        .declared("subtract_duration_duration", vec![Duration, Duration], Duration)
        .declared("subtract_int64", vec![Int, Int], Int)
        .declared("subtract_timestamp_duration", vec![Timestamp, Duration], Timestamp)
        .declared("subtract_timestamp_timestamp", vec![Timestamp, Timestamp], Duration)
        .declared("subtract_uint64", vec![Uint, Uint], Uint)
        .singleton(Trait::Subtractor, operators::subtract);
}

/// What can be ordered with what.
fn comparisons() -> [(Type, Type); 14] {
    [
        (Bool, Bool),
        (Int, Int),
        (Int, Double),
        (Int, Uint),
        (Uint, Uint),
        (Uint, Double),
        (Uint, Int),
        (Double, Double),
        (Double, Int),
        (Double, Uint),
        (Text, Text),
        (Bytes, Bytes),
        (Timestamp, Timestamp),
        (Duration, Duration),
    ]
}

macro_rules! comparison_ids {
    ($name:ident, $prefix:literal) => {
        const $name: [&str; 14] = [
            concat!($prefix, "_bool"),
            concat!($prefix, "_int64"),
            concat!($prefix, "_int64_double"),
            concat!($prefix, "_int64_uint64"),
            concat!($prefix, "_uint64"),
            concat!($prefix, "_uint64_double"),
            concat!($prefix, "_uint64_int64"),
            concat!($prefix, "_double"),
            concat!($prefix, "_double_int64"),
            concat!($prefix, "_double_uint64"),
            concat!($prefix, "_string"),
            concat!($prefix, "_bytes"),
            concat!($prefix, "_timestamp"),
            concat!($prefix, "_duration"),
        ];
    };
}

comparison_ids!(LESS, "less");
comparison_ids!(LESS_EQUALS, "less_equals");
comparison_ids!(GREATER, "greater");
comparison_ids!(GREATER_EQUALS, "greater_equals");

fn aggregates(functions: &mut Functions) {
    let list = || Type::list(A);
    let map = || Type::map(A, B);
    functions
        .function("_[_]")
        .declared("index_list", vec![list(), Int], A)
        .declared("index_map", vec![map(), A], B)
        .declared("optional_list_index_int", vec![Type::optional(list()), Int], Type::optional(A))
        .declared("optional_map_index_value", vec![Type::optional(map()), A], Type::optional(B));
    functions
        .function("@in")
        .declared("in_list", vec![A, list()], Bool)
        .declared("in_map", vec![A, map()], Bool)
        .singleton(Trait::Every, operators::within);
    functions
        .function("size")
        .declared("size_bytes", vec![Bytes], Int)
        .declared_member("bytes_size", vec![Bytes], Int)
        .declared("size_list", vec![list()], Int)
        .declared_member("list_size", vec![list()], Int)
        .declared("size_map", vec![map()], Int)
        .declared_member("map_size", vec![map()], Int)
        .declared("size_string", vec![Text], Int)
        .declared_member("string_size", vec![Text], Int)
        .singleton(Trait::Sizer, operators::size);
}

fn conversions(functions: &mut Functions) {
    use conversions::*;
    functions
        .function("type")
        .declared("type", vec![A], Type::Meta(Some(std::sync::Arc::new(A))))
        .singleton(Trait::Every, to_type);
    functions.function("dyn").declared("to_dyn", vec![A], Dyn).singleton(Trait::Every, identity);
    functions.function("bool").overload("bool_to_bool", vec![Bool], Bool, identity).overload(
        "string_to_bool",
        vec![Text],
        Bool,
        to_bool,
    );
    functions.function("bytes").overload("bytes_to_bytes", vec![Bytes], Bytes, identity).overload(
        "string_to_bytes",
        vec![Text],
        Bytes,
        to_bytes,
    );
    functions
        .function("double")
        .overload("double_to_double", vec![Double], Double, identity)
        .overload("int64_to_double", vec![Int], Double, to_double)
        .overload("string_to_double", vec![Text], Double, to_double)
        .overload("uint64_to_double", vec![Uint], Double, to_double);
    functions
        .function("duration")
        .overload("duration_to_duration", vec![Duration], Duration, identity)
        .overload("int64_to_duration", vec![Int], Duration, to_duration)
        .overload("string_to_duration", vec![Text], Duration, to_duration);
    functions
        .function("int")
        .overload("int64_to_int64", vec![Int], Int, identity)
        .overload("double_to_int64", vec![Double], Int, to_int)
        .overload("duration_to_int64", vec![Duration], Int, to_int)
        .overload("string_to_int64", vec![Text], Int, to_int)
        .overload("timestamp_to_int64", vec![Timestamp], Int, to_int)
        .overload("uint64_to_int64", vec![Uint], Int, to_int);
    functions
        .function("string")
        .overload("string_to_string", vec![Text], Text, identity)
        .overload("bool_to_string", vec![Bool], Text, to_text)
        .overload("bytes_to_string", vec![Bytes], Text, to_text)
        .overload("double_to_string", vec![Double], Text, to_text)
        .overload("duration_to_string", vec![Duration], Text, to_text)
        .overload("int64_to_string", vec![Int], Text, to_text)
        .overload("timestamp_to_string", vec![Timestamp], Text, to_text)
        .overload("uint64_to_string", vec![Uint], Text, to_text);
    functions
        .function("timestamp")
        .overload("timestamp_to_timestamp", vec![Timestamp], Timestamp, identity)
        .overload("int64_to_timestamp", vec![Int], Timestamp, to_timestamp)
        .overload("string_to_timestamp", vec![Text], Timestamp, to_timestamp);
    functions
        .function("uint")
        .overload("uint64_to_uint64", vec![Uint], Uint, identity)
        .overload("double_to_uint64", vec![Double], Uint, to_uint)
        .overload("int64_to_uint64", vec![Int], Uint, to_uint)
        .overload("string_to_uint64", vec![Text], Uint, to_uint);
}

fn texts(functions: &mut Functions) {
    functions
        .function("contains")
        .member("contains_string", vec![Text, Text], Bool, text::contains)
        .unguarded();
    functions
        .function("endsWith")
        .member("ends_with_string", vec![Text, Text], Bool, text::ends_with)
        .unguarded();
    functions
        .function("startsWith")
        .member("starts_with_string", vec![Text, Text], Bool, text::starts_with)
        .unguarded();
    functions
        .function("matches")
        .declared("matches", vec![Text, Text], Bool)
        .declared_member("matches_string", vec![Text, Text], Bool)
        .singleton(Trait::Matcher, crate::functions::regexes::matches);
}

fn times(functions: &mut Functions) {
    for (name, id, id_with_zone, read) in [
        (
            "getFullYear",
            "timestamp_to_year",
            "timestamp_to_year_with_tz",
            time::full_year as super::Implementation,
        ),
        ("getMonth", "timestamp_to_month", "timestamp_to_month_with_tz", time::month),
        ("getDayOfYear", "timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz", time::day_of_year),
        (
            "getDayOfMonth",
            "timestamp_to_day_of_month",
            "timestamp_to_day_of_month_with_tz",
            time::day_of_month,
        ),
        (
            "getDate",
            "timestamp_to_day_of_month_1_based",
            "timestamp_to_day_of_month_1_based_with_tz",
            time::date,
        ),
        ("getDayOfWeek", "timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz", time::day_of_week),
        ("getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", time::hours),
        ("getMinutes", "timestamp_to_minutes", "timestamp_to_minutes_with_tz", time::minutes),
        ("getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", time::seconds),
        (
            "getMilliseconds",
            "timestamp_to_milliseconds",
            "timestamp_to_milliseconds_with_tz",
            time::milliseconds,
        ),
    ] {
        functions.function(name).member(id, vec![Timestamp], Int, read).member(
            id_with_zone,
            vec![Timestamp, Text],
            Int,
            read,
        );
    }
    for (name, id, read) in [
        ("getHours", "duration_to_hours", time::duration_hours as super::Implementation),
        ("getMinutes", "duration_to_minutes", time::duration_minutes),
        ("getSeconds", "duration_to_seconds", time::duration_seconds),
        ("getMilliseconds", "duration_to_milliseconds", time::duration_milliseconds),
    ] {
        functions.function(name).member(id, vec![Duration], Int, read);
    }
}
