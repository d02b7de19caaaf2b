use crate::outline::outline;
use crate::{Source, read};

fn outlines(text: &str) -> Vec<String> {
    match read(&Source::new("t.json", text)) {
        Ok(documents) => documents.iter().map(outline).collect(),
        Err(problems) => problems
            .iter()
            .map(|problem| {
                let at = problem.at.expect("a syntax error has a place");
                format!("{}:{}: {}", at.line, at.column, problem.message)
            })
            .collect(),
    }
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(outlines(text), expected, "{text:?}");
}

#[test]
fn locations() {
    check("{}", &["{}@1:1"]);
    check(" [ ] ", &["[]@1:2"]);
    check(r#"{"a": 1}"#, &["{a@1:2: 1@1:7}@1:1"]);
    check(
        "{\n  \"a\": [true, null],\n  \"b\": \"x\"\n}\n",
        &[r#"{a@2:3: [true@2:9, null@2:15]@2:8, b@3:3: "x"@3:8}@1:1"#],
    );
    // Columns count characters, and every kind of line break counts once.
    check("{\"ä\": \"é😀\", \"b\": 1}", &[r#"{ä@1:2: "é😀"@1:7, b@1:13: 1@1:18}@1:1"#]);
    check("[\r\n1,\r2,\n3]", &["[1@2:1, 2@3:1, 3@4:1]@1:1"]);
    check("\u{feff}[1]", &["[1@1:2]@1:1"]);
}

#[test]
fn one_document_after_another() {
    check("{\"a\": 1}\n{\"a\": 2}\n\n[3]", &["{a@1:2: 1@1:7}@1:1", "{a@2:2: 2@2:7}@2:1", "[3@4:2]@4:1"]);
    check("{}{}", &["{}@1:1", "{}@1:3"]);
    check("{} null []", &["{}@1:1", "[]@1:9"]);
}

#[test]
fn numbers_keep_their_text() {
    check(
        "[0, -0, 1.50, 1e3, 1E+3, -0.1e-2]",
        &["[0@1:2, -0@1:5, 1.50@1:9, 1e3@1:15, 1E+3@1:20, -0.1e-2@1:26]@1:1"],
    );
    let digits = "123456789012345678901234567890.123456789";
    check(&format!("[{digits}]"), &[&format!("[{digits}@1:2]@1:1")]);
}

#[test]
fn escapes() {
    check(r#"["\"\\\/\b\f\n\r\t"]"#, &[r#"["\"\\/\u{8}\u{c}\n\r\t"@1:2]@1:1"#]);
    check(r#"["\u0041\u00e9\ud83d\ude00"]"#, &[r#"["Aé😀"@1:2]@1:1"#]);
    check(r#"["a\u0041b", "\n"]"#, &[r#"["aAb"@1:2, "\n"@1:14]@1:1"#]);
}

#[test]
fn flow_yaml_is_read_as_yaml() {
    check("{a: 1}", &["{a@1:2: 1@1:5}@1:1"]);
    check("[1, 2,]", &["[1@1:2, 2@1:5]@1:1"]);
    check("{\"a\": 1} # why", &["{a@1:2: 1@1:7}@1:1"]);
    check("[0x10, 'x']", &[r#"[0x10@1:2, "x"@1:8]@1:1"#]);
}

#[test]
fn mistakes() {
    for (text, expected) in [
        ("{\"a\": 1, \"a\": 2}", "1:10: the key \"a\" is already set on line 1"),
        ("{\"a\" 1}", "1:6: expected a colon after the key, found '1'"),
        ("[1 {}]", "1:4: expected a comma or the closing ] of the list, found '{'"),
        ("{\"a\": [1, 2}", "1:12: expected a comma or the closing ] of the list, found '}'"),
        ("{\"a\": [1, 2", "1:12: expected a comma or the closing ] of the list, found the end of the text"),
        ("{\"a\": ]}", "1:7: expected a value, found ']'"),
        ("{\"a\": 1}}", "1:9: expected a value, found '}'"),
        ("[1, 2x]]", "1:6: expected the end of the number, found 'x'"),
        ("{\"a", "1:4: the text ends inside a string"),
        (r#"["\ud83d"]"#, "1:3: half of a surrogate pair, without the other half"),
        (r#"["\udc00"]"#, "1:3: half of a surrogate pair, without the other half"),
        (r#"["\u12"]"#, r"1:3: \u needs four hexadecimal digits"),
        (r#"["\x"]"#, r#"1:3: after a backslash comes one of " \ / b f n r t u"#),
        // Not JSON, but nearly YAML: there the error is told in YAML's words.
        (
            "{a: 1, b: 2]",
            "1:12: this is not valid YAML: while parsing a flow mapping, did not find expected ',' or '}'",
        ),
    ] {
        check(text, &[expected]);
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(outlines(&nested(128))[0].starts_with("[["));
    check(&nested(129), &["1:129: lists and maps are nested more than 128 deep"]);
    check(&"[{\"a\":".repeat(100_000), &["1:385: lists and maps are nested more than 128 deep"]);
}

#[test]
fn many_keys_are_checked_too() {
    let keys: Vec<String> = (0..100).map(|key| format!("\"k{key}\": 1")).collect();
    assert!(outlines(&format!("{{{}}}", keys.join(",")))[0].starts_with('{'));
    check(
        &format!("{{\n{},\n\"k7\": 2}}", keys.join(",\n")),
        &["102:1: the key \"k7\" is already set on line 9"],
    );
}
