//! Semantic versions as Kubernetes' library reads and orders them.

use crate::go_text::quoted;
use std::{cmp::Ordering, fmt};

#[derive(Clone, Debug)]
pub(crate) struct Semver {
    pub(crate) numbers: [u64; 3],
    prerelease: Vec<Identifier>,
    build: Vec<String>,
}

/// Numbers are before words.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl Semver {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".into());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".into());
        };
        let major = number(major, "major", "Major")?;
        let minor = number(minor, "minor", "Minor")?;
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, prerelease) =
            rest.split_once('-').map_or((rest, None), |(patch, pre)| (patch, Some(pre)));
        let patch = number(patch, "patch", "Patch")?;
        let prerelease =
            prerelease.map_or(Ok(Vec::new()), |text| text.split('.').map(identifier).collect())?;
        let build = build.map_or(Ok(Vec::new()), |text| text.split('.').map(metadata).collect())?;
        Ok(Self { numbers: [major, minor, patch], prerelease, build })
    }

    /// Tolerates a leading `v`, leading zeroes and missing numbers.
    pub(crate) fn parse_normalized(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_leading_zeroes).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".into());
            }
            parts.resize(3, "0".into());
        }
        Self::parse(&parts.join("."))
    }

    /// Build metadata does not count.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.prerelease.cmp(&other.prerelease),
            }
        })
    }
}

impl fmt::Display for Semver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(out, "{major}.{minor}.{patch}")?;
        for (place, identifier) in self.prerelease.iter().enumerate() {
            out.write_str(if place == 0 { "-" } else { "." })?;
            match identifier {
                Identifier::Number(number) => write!(out, "{number}")?,
                Identifier::Word(word) => out.write_str(word)?,
            }
        }
        for (place, word) in self.build.iter().enumerate() {
            write!(out, "{}{word}", if place == 0 { "+" } else { "." })?;
        }
        Ok(())
    }
}

fn without_leading_zeroes(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let trimmed = part.trim_start_matches('0');
    let begins_with_digit = trimmed.starts_with(|letter: char| letter.is_ascii_digit());
    if begins_with_digit { trimmed.to_owned() } else { format!("0{trimmed}") }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn parsed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
        format!("strconv.ParseUint: parsing {}: {why}", quoted(text))
    })
}

fn number(text: &str, which: &str, capitalized: &str) -> Result<u64, String> {
    if !is_number(text) {
        return Err(format!("Invalid character(s) found in {which} number {}", quoted(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{capitalized} number must not contain leading zeroes {}", quoted(text)));
    }
    parsed(text)
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".into());
    }
    if is_number(text) {
        if text.len() > 1 && text.starts_with('0') {
            let message = "Numeric PreRelease version must not contain leading zeroes";
            return Err(format!("{message} {}", quoted(text)));
        }
        return parsed(text).map(Identifier::Number);
    }
    if is_word(text) {
        return Ok(Identifier::Word(text.to_owned()));
    }
    Err(format!("Invalid character(s) found in prerelease {}", quoted(text)))
}

fn metadata(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("Build meta data is empty".into());
    }
    if !is_word(text) {
        return Err(format!("Invalid character(s) found in build meta data {}", quoted(text)));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_precedence() {
        let ascending = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.2.0",
            "1.10.0",
        ];
        for pair in ascending.windows(2) {
            let [lower, higher] = [pair[0], pair[1]].map(|text| Semver::parse(text).unwrap());
            assert_eq!(lower.compare(&higher), Ordering::Less, "{lower} and {higher}");
        }
        let [plain, built] = ["1.2.3", "1.2.3+x"].map(|text| Semver::parse(text).unwrap());
        assert_eq!(plain.compare(&built), Ordering::Equal);
    }

    #[test]
    fn normalizing_mends_what_people_write() {
        for (text, version) in
            [("v1.2", "1.2.0"), ("01.002.3", "1.2.3"), ("v1", "1.0.0"), ("1.0.00-rc.1", "1.0.0-rc.1")]
        {
            assert_eq!(Semver::parse_normalized(text).unwrap().to_string(), version);
        }
        assert!(Semver::parse_normalized("1.2-rc.1").is_err());
    }

    #[test]
    fn what_is_no_version_is_told_why() {
        for (text, why) in [
            ("", "Version string empty"),
            ("1.2", "No Major.Minor.Patch elements found"),
            ("a.1.2", "Invalid character(s) found in major number \"a\""),
            ("1.02.3", "Minor number must not contain leading zeroes \"02\""),
            ("1.2.3-", "Prerelease is empty"),
            ("1.2.3-01", "Numeric PreRelease version must not contain leading zeroes \"01\""),
            ("1.2.3+", "Build meta data is empty"),
            (
                "1.2.99999999999999999999",
                "strconv.ParseUint: parsing \"99999999999999999999\": value out of range",
            ),
        ] {
            assert_eq!(Semver::parse(text).unwrap_err(), why, "{text:?}");
        }
    }
}
