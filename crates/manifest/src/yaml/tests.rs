use super::*;
use crate::outline::outline;
use crate::read;

/// The documents of a text, or its problems with their locations.
fn outlines(text: &str) -> Vec<String> {
    match read(&Source::new("t.yaml", text)) {
        Ok(documents) => documents.iter().map(outline).collect(),
        Err(problems) => problems.iter().map(told).collect(),
    }
}

fn told(problem: &Problem) -> String {
    let at = problem.at.expect("a syntax error has a place");
    let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{}:{}: {}{hint}", at.line, at.column, problem.message)
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(outlines(text), expected, "{text:?}");
}

#[test]
fn locations() {
    check("a: 1", &["{a@1:1: 1@1:4}@1:1"]);
    check(
        "a:\n  - x\n  - b: 2\n    c: 3\n",
        &[r#"{a@1:1: ["x"@2:5, {b@3:5: 2@3:8, c@4:5: 3@4:8}@3:5]@2:3}@1:1"#],
    );
    check("- - 1\n  - 2\n-\n  - 3\n", &["[[1@1:5, 2@2:5]@1:3, [3@4:5]@4:3]@1:1"]);
    check("{a: 1, b: [2, 3], c}", &["{a@1:2: 1@1:5, b@1:8: [2@1:12, 3@1:15]@1:11, c@1:19: null@1:20}@1:1"]);
    check("? a\n: b\n", &[r#"{a@1:3: "b"@2:3}@1:1"#]);
    check("a: |\n  x\n  y\nb: >-\n  x\n  y\n", &[r#"{a@1:1: "x\ny\n"@2:3, b@4:1: "x y"@5:3}@1:1"#]);
    // Columns count characters, and every kind of line break counts once.
    check(
        "ä: [\"ü\", 1]\r\nb: 'é'\r\nc: 1",
        &[r#"{ä@1:1: ["ü"@1:5, 1@1:10]@1:4, b@2:1: "é"@2:4, c@3:1: 1@3:4}@1:1"#],
    );
    check("a: 1\rb: 2", &["{a@1:1: 1@1:4, b@2:1: 2@2:4}@1:1"]);
    check("\u{feff}a: 1\n", &["{a@1:1: 1@1:4}@1:1"]);
}

#[test]
fn documents() {
    check("", &[]);
    check("# nothing\n", &[]);
    check("---\n---\nnull\n---\n~\n", &[]);
    check("---\na: 1\n---\n---\n# c\n---\nb: 2\n...\n", &["{a@2:1: 1@2:4}@2:1", "{b@7:1: 2@7:4}@7:1"]);
    check("{a: 1}\n---\n{b: 2}\n", &["{a@1:2: 1@1:5}@1:1", "{b@3:2: 2@3:5}@3:1"]);
    check("text", &[r#""text"@1:1"#]);
}

#[test]
fn plain_scalars() {
    let string = |text: &str| ValueKind::String(text.into());
    let number = |text: &str| ValueKind::Number(text.into());
    for (text, expected) in [
        ("null", ValueKind::Null),
        ("Null", ValueKind::Null),
        ("~", ValueKind::Null),
        ("", ValueKind::Null),
        ("nUll", string("nUll")),
        ("true", ValueKind::Bool(true)),
        ("True", ValueKind::Bool(true)),
        ("TRUE", ValueKind::Bool(true)),
        ("tRue", string("tRue")),
        ("false", ValueKind::Bool(false)),
        ("yes", ValueKind::Bool(true)),
        ("No", ValueKind::Bool(false)),
        ("on", ValueKind::Bool(true)),
        ("OFF", ValueKind::Bool(false)),
        ("y", ValueKind::Bool(true)),
        ("N", ValueKind::Bool(false)),
        ("0", number("0")),
        ("-12", number("-12")),
        ("0x1f", number("0x1f")),
        ("0o17", number("0o17")),
        ("0644", number("0644")),
        ("1_000", number("1_000")),
        ("1.50", number("1.50")),
        ("1e3", number("1e3")),
        (".inf", number(".inf")),
        (".NaN", number(".NaN")),
        ("12345678901234567890123", number("12345678901234567890123")),
        ("10m", string("10m")),
        ("1.2.3", string("1.2.3")),
        ("2024-05-01", string("2024-05-01")),
        ("12:30", string("12:30")),
        ("\"1\"", string("1")),
        ("'true'", string("true")),
        ("\"\"", string("")),
        ("'it''s'", string("it's")),
        ("\"\\u00e9\\n\"", string("é\n")),
        ("!!str 123", string("123")),
        ("!!str true", string("true")),
        ("!!str", string("")),
        ("! 5", string("5")),
        ("!!int \"4\"", number("4")),
        ("!!float 3", number("3")),
        ("!!bool 'yes'", ValueKind::Bool(true)),
        ("!!null ''", ValueKind::Null),
        ("!!timestamp 2024-05-01", string("2024-05-01")),
    ] {
        let source = Source::new("t.yaml", format!("key: {text}\n"));
        let documents = read(&source).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(documents[0].get("key").map(|value| &value.kind), Some(&expected), "{text:?}");
    }
}

#[test]
fn keys_become_strings() {
    check("1: a", &[r#"{1@1:1: "a"@1:4}@1:1"#]);
    check("0x10: a", &[r#"{16@1:1: "a"@1:7}@1:1"#]);
    check("1.50: a", &[r#"{1.50@1:1: "a"@1:7}@1:1"#]);
    check("yes: a", &[r#"{true@1:1: "a"@1:6}@1:1"#]);
    check("'yes': a", &[r#"{yes@1:1: "a"@1:8}@1:1"#]);
    check("~: a", &["1:1: a key is empty"]);
    check(
        "[a]: b",
        &["1:1: a key must be a string, and this is a list (a text that begins with { or [ needs quotes)"],
    );
    check(
        "a: {{ x }}",
        &["1:5: a key must be a string, and this is a map (a text that begins with { or [ needs quotes)"],
    );
}

#[test]
fn anchors_and_merges() {
    // A copy keeps the location of the original.
    check("a: &x {k: v}\nb: *x\n", &[r#"{a@1:1: {k@1:8: "v"@1:11}@1:4, b@2:1: {k@1:8: "v"@1:11}@1:4}@1:1"#]);
    check("a: &k key\n*k : 1\n", &[r#"{a@1:1: "key"@1:4, key@2:1: 1@2:6}@1:1"#]);
    // The map's own entry wins, and then the first of the merged maps.
    check(
        "- &a {k: 1, l: 1}\n- &b {l: 2, m: 2}\n- {<<: [*a, *b], k: 0}\n",
        &["[{k@1:7: 1@1:10, l@1:13: 1@1:16}@1:3, {l@2:7: 2@2:10, m@2:13: 2@2:16}@2:3, \
           {k@3:18: 0@3:21, l@1:13: 1@1:16, m@2:13: 2@2:16}@3:3]@1:1"],
    );
    check("a: {'<<': 1}", &["{a@1:1: {<<@1:5: 1@1:11}@1:4}@1:1"]);
    check("<<: 5", &["1:5: << merges a map or a list of maps, and this is a number"]);
    check("<<: [{a: 1}, 5]", &["1:5: << merges a map or a list of maps, and this is a list"]);
    check("a: &x [*x]", &["1:8: this alias names nothing that ends before it in its document"]);
    check("a: &x 1\n---\nb: *x", &["3:4: this alias names nothing that ends before it in its document"]);
}

#[test]
fn a_bomb_of_aliases_is_defused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let inner = vec![format!("*a{}", level - 1); 9].join(", ");
        text += &format!("a{level}: &a{level} [{inner}]\n");
    }
    let problems = outlines(&text);
    assert!(
        problems[0].ends_with("the anchors and aliases of this text copy more than 64 MiB"),
        "{problems:?}"
    );
}

#[test]
fn depth_is_bounded() {
    for text in ["- ".repeat(1000), "[".repeat(100_000), "? ".repeat(1000), "{a: ".repeat(1000)] {
        let problems = outlines(&text);
        assert!(problems[0].contains("128 deep") || problems[0].contains("recursion limit"), "{problems:?}");
    }
    // 128 levels are fine, and an alias must not make more of them.
    let deep = |levels: usize| "- ".repeat(levels) + "x\n";
    assert!(outlines(&deep(128))[0].starts_with("[["));
    let anchored = format!("a: &x\n  {}b:\n  {}*x\n", deep(100), "- ".repeat(100));
    assert!(!outlines(&anchored)[0].starts_with('{'));
}

#[test]
fn mistakes() {
    for (text, expected) in [
        (
            "a: 1\nb: 2\na: 3\nb: 4",
            vec![
                "3:1: the key \"a\" is already set on line 1 (keep one of the two)",
                "4:1: the key \"b\" is already set on line 2 (keep one of the two)",
            ],
        ),
        (
            "x: {a: 1, a: 2}\nx: 1",
            vec![
                "1:11: the key \"a\" is already set on line 1 (keep one of the two)",
                "2:1: the key \"x\" is already set on line 1 (keep one of the two)",
            ],
        ),
        ("1: a\n'1': b", vec!["2:1: the key \"1\" is already set on line 1 (keep one of the two)"]),
        (
            "a: b: c",
            vec![
                "1:5: this is not valid YAML: mapping values are not allowed in this context \
                          (check the indentation, and put a text that contains a colon and a space in quotes)",
            ],
        ),
        (
            "a:\n\tb: 1",
            vec![
                "2:2: this is not valid YAML: tabs disallowed within this context (block indentation) \
                             (indent with spaces)",
            ],
        ),
        (
            "a: @x",
            vec![
                "1:4: this is not valid YAML: unexpected character: `@' \
                        (a text that begins with this character needs quotes)",
            ],
        ),
        // An early end is on the last line that has something.
        (
            "a: [1, 2\n\n",
            vec!["1:9: this is not valid YAML: while parsing a flow sequence, expected ',' or ']'"],
        ),
        ("a: !foo x", vec!["1:4: the tag !foo means nothing in a manifest"]),
        ("a: !!binary x", vec!["1:4: the tag !!binary means nothing in a manifest"]),
        ("a: !!set {x}", vec!["1:4: the tag !!set means nothing in a manifest"]),
        ("a: !!int x", vec!["1:4: \"x\" is not what !!int promises"]),
        ("a: !!int 1.5", vec!["1:4: \"1.5\" is not what !!int promises"]),
        ("a: *x", vec!["1:4: this is not valid YAML: while parsing node, found unknown anchor"]),
    ] {
        check(text, &expected);
    }
}
