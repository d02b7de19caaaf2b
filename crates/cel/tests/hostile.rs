//! What is long, deep or endless ends with an error, soon and on an ordinary stack.

use supercargo_cel::{COST_LIMIT, DeviceFacts, DeviceSelector, EvaluationErrorKind, SelectableDevice};

fn device() -> SelectableDevice {
    DeviceFacts::new("gpu.example.com", false).build()
}

fn defect(expression: &str) -> String {
    DeviceSelector::compile(expression).unwrap_err().message
}

#[test]
fn nesting_has_a_limit() {
    for (open, middle, close) in [
        ("(", "true", ")"),
        ("[", "1", "]"),
        ("!(", "true", ")"),
        ("{1:", "1", "}"),
        ("dyn(", "1", ")"),
        ("[1].map(x, ", "1", ")"),
        ("[1].all(x, ", "true", ")"),
        ("true ? false : ", "true", ""),
        ("cel.bind(x, 1, ", "x", ")"),
        ("optional.of(1).optMap(x, ", "x", ")"),
        ("(true && ", "true", ")"),
    ] {
        let nested = |depth: usize| format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
        // What is nested too deeply is told so; neither compiling nor evaluating what is not ends the thread.
        let told = defect(&nested(400));
        assert!(told.contains("limit exceeded") || told.contains("recursion depth"), "{open}: {told}");
        for depth in [20, 100, 200, 240] {
            if let Ok(selector) = DeviceSelector::compile(&nested(depth)) {
                let _ = selector.evaluate(&device());
            }
        }
    }
    let chain = format!("device.driver{}", ".a".repeat(1000));
    assert!(defect(&chain).contains("expression recursion limit exceeded: 250"));
    let sum = format!("{}1 > 0", "1 + ".repeat(1000));
    assert!(defect(&sum).contains("expression recursion limit exceeded: 250"));
    // A long condition is balanced, and not deep.
    let condition = format!("{}true", "device.driver == 'x' || ".repeat(1000));
    assert_eq!(DeviceSelector::compile(&condition).unwrap().evaluate(&device()).result, Ok(true));
}

#[test]
fn what_grows_without_end_is_refused() {
    let long = format!("'{}' == ''", "a".repeat(100_001));
    assert!(defect(&long).contains("expression code point size exceeds limit"));
    // Each doubles what stands before it.
    let doubling = format!("optional.of(1){}.hasValue()", ".optMap(x, x)".repeat(100));
    assert!(defect(&doubling).contains("parts when macros are expanded"));
    let mut typed = "{1: 1}".to_owned();
    for level in 0..60 {
        typed = format!("cel.bind(v{level}, {typed}, {{v{level}: v{level}}})");
    }
    assert!(!defect(&format!("{typed} == {{}}")).is_empty());
}

#[test]
fn an_evaluation_ends_by_its_budget() {
    let mut lists = "[1, 1]".to_owned();
    for level in 0..40 {
        lists = format!("cel.bind(v{level}, {lists}, [v{level}, v{level}])");
    }
    for expression in [
        "lists.range(1000000000000).size() > 0",
        "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, true)))",
        "lists.range(100000).map(x, 'aaaaaaaaaaaaaaaaaaaa').join('-').replace('', 'bbbbbbbbbbbbbbbbbbbbbb').size() > 0",
        "cel.bind(s, lists.range(10000).map(x, 'aaaaaaaaaa').join(), s.replace('', s)).size() > 0",
        &format!("{lists} == {lists}"),
        &format!("dyn({lists}).flatten(100) == []"),
        &format!("'%s'.format([{lists}]) == ''"),
    ] {
        let selector =
            DeviceSelector::compile(expression).unwrap_or_else(|defect| panic!("{expression}: {defect}"));
        let evaluated = selector.evaluate(&device());
        let error = evaluated.result.unwrap_err();
        let ended = error.kind == EvaluationErrorKind::TooExpensive || error.message.contains("too long");
        assert!(ended, "{expression:.80}: {error}");
    }
}

#[test]
fn costs_are_counted_up_to_the_limit() {
    for (expression, cost, result) in [
        // 3 qualifiers and the attribute itself, then the comparison.
        ("device.attributes['a'].b == 1", 5, None),
        // Per element: accumulator, not-strictly-false, accumulator, x, >; and the result.
        ("[1, 2, 3].all(x, x > 0)", 3 * 5 + 1, Some(true)),
        // 10000 elements at 6 each, the range, and the result: the accumulator grows in place.
        ("lists.range(10000).map(x, x).size() == 10000", 10_011 + 10_000 * 13 + 1 + 2, Some(true)),
        ("lists.range(10000).transformMap(i, v, v).size() == 10000", 10_011 + 10_000 * 4 + 1 + 2, Some(true)),
    ] {
        let evaluated = DeviceSelector::compile(expression).unwrap().evaluate(&device());
        assert_eq!((evaluated.cost, evaluated.result.ok()), (cost, result), "{expression}");
        assert!(cost < COST_LIMIT);
    }
}

#[test]
fn broken_texts_are_told() {
    for text in [
        "",
        " ",
        "\n",
        "'",
        "\"\"\"",
        "`a`",
        "a.`b`",
        "b'",
        "r\"",
        "0x",
        "1e",
        "1.",
        ".",
        "a.",
        "a?",
        "a ? b",
        "{",
        "[",
        "[,",
        "{,",
        "f(",
        "f(,",
        "a[",
        "a[?",
        "=",
        "&",
        "|",
        "\u{0}",
        "é",
        "'\\q'",
        "'\\u12'",
        "b'\\u1234'",
        "'\\777'",
        "a{b:1}",
        ".a.b{}",
        "in",
        "1 in",
        "--",
        "!",
        "9223372036854775808",
        "18446744073709551616u",
        "1e999",
        "// nothing",
        "has()",
        "has(a)",
        "[1].all(1, true)",
        "[1].all(x, x, x)",
        "cel.bind(1, 2, 3)",
        "device.nothing",
        "1.sortBy(x, x)",
        "'\\ud800'",
        "'%'.format([])",
        "'%.'.format([1])",
        "'%.99999999999f'.format([1.0])",
        "'%é'.format([1])",
        "{b'a': 1} == {}",
        "{[1]: 1}.size() == 1",
        "[1][null]",
        "timestamp(99999999999999) == timestamp(0)",
    ] {
        let outcome = DeviceSelector::compile(text).map(|selector| selector.evaluate(&device()));
        assert!(outcome.is_err() || outcome.is_ok_and(|evaluated| evaluated.result.is_err()), "{text:?}");
    }
}
