use super::*;

fn check(text: &str, line: u32, column: u32, expected: &str) {
    let source = Source::new("t.yaml", text);
    let problem = Problem::error("no").at(&source, Location { line, column });
    let shown = problem.to_string();
    let excerpt = shown.split_once('\n').map_or("", |(_, excerpt)| excerpt);
    assert_eq!(excerpt, expected, "{text:?} {line}:{column}");
}

#[test]
fn a_problem_shows_its_line() {
    let text = "spec:\n".to_owned() + &"\n".repeat(10) + "          cpu: 1x\n";
    let problem = Problem::error(r#""1x" is not a quantity"#)
        .at(&Source::new("cluster.yaml", text), Location { line: 12, column: 16 })
        .path("spec.containers[0].resources.requests.cpu")
        .hint("write a number");
    assert_eq!(
        problem.to_string(),
        r#"error: cluster.yaml:12:16: spec.containers[0].resources.requests.cpu: "1x" is not a quantity
   |
12 |           cpu: 1x
   |                ^^
hint: write a number"#
    );
}

#[test]
fn without_a_place_there_is_one_line() {
    assert_eq!(Problem::error("no").to_string(), "error: no");
    assert_eq!(Problem::warning("hm").path("spec").hint("h").to_string(), "warning: spec: hm\nhint: h");
    let nowhere = Problem { source: Some(Source::new("f", "text")), ..Problem::error("no") };
    assert_eq!(nowhere.to_string(), "error: f: no");
    check("one line", 7, 1, "");
}

#[test]
fn the_whole_scalar_is_underlined() {
    check("a: \"x y\" # c", 1, 4, "  |\n1 | a: \"x y\" # c\n  |    ^^^^^");
    check("a: \"x\\\"y\", b", 1, 4, "  |\n1 | a: \"x\\\"y\", b\n  |    ^^^^^^");
    check("a: x y # c", 1, 4, "  |\n1 | a: x y # c\n  |    ^^^");
    check("a: [x, y]", 1, 5, "  |\n1 | a: [x, y]\n  |     ^");
    check("a: [x, y]", 1, 4, "  |\n1 | a: [x, y]\n  |    ^");
    check("key: x", 1, 1, "  |\n1 | key: x\n  | ^^^");
    check("a:b: x", 1, 1, "  |\n1 | a:b: x\n  | ^^^");
    check("- - x", 1, 1, "  |\n1 | - - x\n  | ^");
    check("-5", 1, 1, "  |\n1 | -5\n  | ^^");
    // At the end of a line, and beyond it.
    check("a:", 1, 3, "  |\n1 | a:\n  |   ^");
    check("", 1, 1, "  |\n1 |\n  | ^");
}

#[test]
fn odd_lines() {
    check("\ta:\tx", 1, 5, "  |\n1 |     a:    x\n  |           ^");
    check("\u{1b}[31m: x", 1, 8, "  |\n1 | \u{fffd}[31m: x\n  |        ^");
    check("ä: ö", 1, 4, "  |\n1 | ä: ö\n  |    ^");
    check("a: 1\r\nb: 2\r\n", 2, 4, "  |\n2 | b: 2\n  |    ^");
    check("a: 1\rb: 2", 2, 4, "  |\n2 | b: 2\n  |    ^");
    check("\u{feff}a: 1", 1, 4, "  |\n1 | a: 1\n  |    ^");
}

#[test]
fn a_long_line_is_cut_around_the_place() {
    let text = format!("{}X{}", "a,".repeat(100), ",b".repeat(100));
    check(
        &text,
        1,
        201,
        &format!("  |\n1 | …{}X{},…\n  |  {}^", "a,".repeat(30), ",b".repeat(19), " ".repeat(60)),
    );
    check(&text, 1, 1, &format!("  |\n1 | {}…\n  | ^", "a,".repeat(50)));
    check(&text, 1, 401, &format!("  |\n1 | …{}\n  | {}^", ",b".repeat(50), " ".repeat(100)));
    let scalar = "x".repeat(300);
    check(&scalar, 1, 1, &format!("  |\n1 | {}…\n  | {}", "x".repeat(100), "^".repeat(100)));
}

#[test]
fn problems_follow_each_other() {
    let mut problems = Problems::default();
    assert!(problems.is_empty() && !problems.has_errors());
    problems.push(Problem::warning("w"));
    assert!(!problems.has_errors());
    problems.extend(Problems::from(Problem::error("e")));
    assert!(problems.has_errors());
    assert_eq!(problems.to_string(), "warning: w\n\nerror: e");
    let many: Problems = (0..60).map(|index| Problem::error(format!("{index}"))).collect();
    assert!(many.to_string().ends_with("error: 49\n\n… and 10 more"));
    assert_eq!((many.len(), many.into_iter().count()), (60, 60));
}

#[test]
fn secrets_are_neither_in_the_line_nor_in_the_message() {
    let line = "- {urlPrefix: 'http://user:hunter2@a', weight: x, tlsConfig: {keyData: c2VjcmV0}}";
    let source = Source::new("c.yaml", line);
    let at = |what: &str| Location { line: 1, column: line.find(what).unwrap() as u32 + 1 };
    let weight = Problem::error("no number").at(&source, at("x,")).to_string();
    let address = "'http://--- REDACTED ---@a'";
    let shown = format!("- {{urlPrefix: {address}, weight: x, tlsConfig: {{keyData: --- REDACTED ---}}}}");
    let before = " ".repeat(shown.find("x,").unwrap());
    assert_eq!(weight, format!("error: c.yaml:1:48: no number\n  |\n1 | {shown}\n  | {before}^"));
    let url = Problem::warning("'http://user:hunter2@a' is odd")
        .hint("not http://user:hunter2@a")
        .at(&source, at("'h"));
    let carets = "^".repeat(address.len());
    let expected = format!(
        "warning: c.yaml:1:15: {address} is odd\n  |\n1 | {shown}\n  |               {carets}\nhint: not {}",
        address.trim_matches('\'')
    );
    assert_eq!(url.to_string(), expected);
    // Far along a line, where its beginning is not shown.
    let line = format!("{{\"keyData\": \"{}\", \"x\": 1}}", "c2VjcmV0".repeat(1000));
    for column in [1, 100, 5_000, 8_020] {
        let problem = Problem::error("no").at(&Source::new("c", &*line), Location { line: 1, column });
        assert!(!problem.to_string().contains("c2VjcmV0"), "{problem}");
    }
}
