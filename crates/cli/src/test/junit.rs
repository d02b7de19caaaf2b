//! Results as JUnit XML, which every pipeline can show.

use std::{collections::BTreeMap, fmt::Write};

use super::Tested;

/// All results: a test suite for each file.
pub(super) fn report(tested: &[Tested]) -> String {
    let mut files: BTreeMap<&str, Vec<&Tested>> = BTreeMap::new();
    for test in tested {
        files.entry(&test.file).or_default().push(test);
    }
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let failed = |tests: &[&Tested]| tests.iter().filter(|test| !test.passed).count();
    let all: Vec<&Tested> = tested.iter().collect();
    let _ = writeln!(xml, "<testsuites tests=\"{}\" failures=\"{}\">", all.len(), failed(&all));
    for (file, tests) in files {
        let (count, failed) = (tests.len(), failed(&tests));
        let file = escaped(file);
        let _ = writeln!(xml, "  <testsuite name=\"{file}\" tests=\"{count}\" failures=\"{failed}\">");
        for test in tests {
            let name = escaped(&test.name);
            let head = format!(
                "    <testcase classname=\"{file}\" name=\"{name}\" file=\"{file}\" line=\"{}\"",
                test.line
            );
            if test.passed {
                let _ = writeln!(xml, "{head}/>");
                continue;
            }
            let _ = writeln!(xml, "{head}>");
            for failure in &test.failures {
                let first = failure.details.first().map(String::as_str).unwrap_or_default();
                let all = failure.details.join("\n");
                let place = format!("line {}, seed {}", failure.line, failure.seed);
                let (first, all) = (escaped(first), escaped(&all));
                let _ = writeln!(xml, "      <failure message=\"{first}\">{place}: {all}</failure>");
            }
            xml.push_str("    </testcase>\n");
        }
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

/// A text as XML may have it: without what steers terminals, which XML cannot say at all.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
