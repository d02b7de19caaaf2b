//! What is wanted: a weighted sum of measures, with constraints.
//!
//! `minimize fragmentation + 0.5 * imbalance[cpu], pending_p99 <= 60`

use supercargo_manifest::{Location, Problem, Problems, Source, nearest};
use supercargo_model::Name;

use crate::measures::{MEASURES, Measures, measure};

/// What is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// The lower, the better.
    cost: Sum,
    constraints: Vec<Constraint>,
    /// As it was written.
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Sum(Vec<Term>);

#[derive(Clone, Debug, PartialEq)]
struct Term {
    factor: f64,
    /// A measure and its resource; none for a number.
    of: Option<(&'static str, Option<Name>)>,
}

/// A sum that must not be above 0.
#[derive(Clone, Debug, PartialEq)]
struct Constraint {
    excess: Sum,
    bound: f64,
    text: String,
}

impl Sum {
    fn value(&self, measures: &Measures) -> f64 {
        let value = |term: &Term| match &term.of {
            Some((name, resource)) => term.factor * measures.get(name, resource.as_deref()).unwrap_or(0.0),
            None => term.factor,
        };
        self.0.iter().map(value).sum()
    }

    fn negated(self) -> Self {
        Self(self.0.into_iter().map(|term| Term { factor: -term.factor, ..term }).collect())
    }
}

impl Objective {
    /// Reads an objective about a trace whose pods ask for these resources.
    ///
    /// # Errors
    ///
    /// What cannot be read, with its place and what may have been meant.
    pub fn parse(text: &str, resources: &[Name]) -> Result<Self, Problems> {
        let source = Source::new("--objective", text);
        let tokens = tokens(text).map_err(|at| problem(&source, at, "this is no part of an objective"))?;
        let mut parser = Parser { source: &source, text, tokens: &tokens, next: 0, resources };
        Ok(parser.objective()?)
    }

    /// What measures come to; the lower, the better.
    pub fn cost(&self, measures: &Measures) -> f64 {
        self.cost.value(measures)
    }

    /// By how much constraints are broken, together, each as a share of its bound.
    pub fn excess(&self, measures: &Measures) -> f64 {
        let excess = |c: &Constraint| c.excess.value(measures).max(0.0) / c.bound.abs().max(1.0);
        self.constraints.iter().map(excess).sum()
    }

    /// The constraints that are broken.
    pub fn broken(&self, measures: &Measures) -> Vec<&str> {
        let broken = self.constraints.iter().filter(|constraint| constraint.excess.value(measures) > 0.0);
        broken.map(|constraint| constraint.text.as_str()).collect()
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Resource(String),
    Number(f64),
    Sign(&'static str),
}

const SIGNS: [&str; 9] = ["<=", ">=", "<", ">", "+", "-", "*", ",", ";"];

/// The parts of a text, each with where it begins and ends; or where it makes no sense.
fn tokens(text: &str) -> Result<Vec<(usize, usize, Token)>, usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let run = |is: fn(char) -> bool| rest.find(|c: char| !is(c)).unwrap_or(rest.len());
        let (length, token) = if rest.starts_with(char::is_whitespace) {
            at += run(char::is_whitespace);
            continue;
        } else if rest.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            let length = run(|c| c.is_alphanumeric() || c == '_');
            (length, Token::Word(rest[..length].to_owned()))
        } else if rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            let length = run(|c| c.is_ascii_digit() || c == '.');
            (length, Token::Number(rest[..length].parse().map_err(|_| at)?))
        } else if let Some(inner) = rest.strip_prefix('[') {
            let length = inner.find(']').ok_or(at)?;
            (length + 2, Token::Resource(inner[..length].trim().to_owned()))
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).ok_or(at)?;
            (sign.len(), Token::Sign(sign))
        };
        found.push((at, at + length, token));
        at += length;
    }
    Ok(found)
}

fn problem(source: &Source, at: usize, message: impl Into<String>) -> Problem {
    let column = source.text.get(..at).map_or(at, |before| before.chars().count());
    let column = u32::try_from(column + 1).unwrap_or(u32::MAX);
    let hint = "such as: minimize fragmentation + 0.5 * imbalance[cpu], pending_p99 <= 60";
    Problem::error(message).at(source, Location { line: 1, column }).hint(hint)
}

struct Parser<'p> {
    source: &'p Source,
    text: &'p str,
    tokens: &'p [(usize, usize, Token)],
    next: usize,
    resources: &'p [Name],
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(.., token)| token)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.text.len(), |(at, ..)| *at)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(found)) if found == word)
    }

    fn take_sign(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        let Some(Token::Sign(sign)) = self.peek() else { return None };
        let found = signs.iter().find(|wanted| *wanted == sign).copied();
        self.next += usize::from(found.is_some());
        found
    }

    fn wrong(&self, message: impl Into<String>) -> Problem {
        problem(self.source, self.at(), message)
    }

    fn objective(&mut self) -> Result<Objective, Problem> {
        let maximize = self.is_word("maximize");
        if maximize || self.is_word("minimize") {
            self.next += 1;
        }
        let sum = self.sum()?;
        let cost = if maximize { sum.negated() } else { sum };
        if cost.0.iter().all(|term| term.of.is_none()) {
            return Err(problem(self.source, 0, "an objective needs at least one measure"));
        }
        let mut constraints = Vec::new();
        while self.take_sign(&[",", ";"]).is_some() {
            constraints.push(self.constraint()?);
        }
        match self.peek() {
            None => Ok(Objective { cost, constraints, text: self.text.trim().to_owned() }),
            Some(_) => Err(self.wrong("expected `+`, `-`, or a comma and a constraint")),
        }
    }

    fn constraint(&mut self) -> Result<Constraint, Problem> {
        let begin = self.at();
        let left = self.sum()?;
        let sign = self.take_sign(&["<=", ">=", "<", ">"]);
        let sign = sign.ok_or_else(|| self.wrong("a constraint needs `<=` or `>=`"))?;
        let right = self.sum()?;
        let end = self.tokens.get(self.next.wrapping_sub(1)).map_or(self.text.len(), |(_, end, _)| *end);
        let (low, high) = if sign.starts_with('<') { (left, right) } else { (right, left) };
        let bound =
            low.0.iter().chain(&high.0).filter(|term| term.of.is_none()).map(|term| term.factor).sum();
        let excess = Sum(low.0.into_iter().chain(high.negated().0).collect());
        Ok(Constraint { excess, bound, text: self.text[begin..end].to_owned() })
    }

    fn sum(&mut self) -> Result<Sum, Problem> {
        let mut sum = Sum::default();
        let mut sign = if self.take_sign(&["-"]).is_some() { -1.0 } else { 1.0 };
        loop {
            let term = self.term()?;
            sum.0.push(Term { factor: sign * term.factor, ..term });
            sign = match self.take_sign(&["+", "-"]) {
                Some("+") => 1.0,
                Some(_) => -1.0,
                None => return Ok(sum),
            };
        }
    }

    fn term(&mut self) -> Result<Term, Problem> {
        let mut term = self.factor()?;
        while self.take_sign(&["*"]).is_some() {
            let begin = self.at();
            let other = self.factor()?;
            if term.of.is_some() && other.of.is_some() {
                return Err(problem(self.source, begin, "measures cannot be multiplied with each other"));
            }
            term = Term { factor: term.factor * other.factor, of: term.of.or(other.of) };
        }
        Ok(term)
    }

    fn factor(&mut self) -> Result<Term, Problem> {
        match self.peek().cloned() {
            Some(Token::Number(number)) => {
                self.next += 1;
                Ok(Term { factor: number, of: None })
            }
            Some(Token::Word(word)) => self.measure(&word),
            _ => Err(self.wrong("expected a measure or a number")),
        }
    }

    fn measure(&mut self, word: &str) -> Result<Term, Problem> {
        let Some(kind) = measure(word) else {
            let near = nearest(word, MEASURES.iter().map(|measure| measure.name));
            let names: Vec<&str> = MEASURES.iter().map(|measure| measure.name).collect();
            let hint = match near {
                Some(near) => format!("did you mean {near}?"),
                None => format!("there are {}", names.join(", ")),
            };
            return Err(self.wrong(format!("there is no measure {word:?}")).hint(hint));
        };
        self.next += 1;
        let Some(Token::Resource(resource)) = self.peek().cloned() else {
            return Ok(Term { factor: 1.0, of: Some((kind.name, None)) });
        };
        if !kind.by_resource {
            return Err(self
                .wrong(format!("{} is not measured by resource", kind.name))
                .hint("leave the brackets out"));
        }
        let Some(known) = self.resources.iter().find(|known| ***known == *resource) else {
            let near = nearest(&resource, self.resources.iter().map(|known| &**known));
            let all: Vec<&str> = self.resources.iter().map(|known| &**known).collect();
            let hint = match near {
                Some(near) => format!("did you mean {near}?"),
                None => format!("the trace's pods ask for {}", all.join(", ")),
            };
            return Err(self.wrong(format!("no pod of the trace asks for {resource:?}")).hint(hint));
        };
        self.next += 1;
        Ok(Term { factor: 1.0, of: Some((kind.name, Some(known.clone()))) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measures::{PendingTimes, ResourceMeasures};

    fn measures() -> Measures {
        let resource = |name: &str, fragmentation, imbalance| ResourceMeasures {
            resource: name.into(),
            fragmentation,
            imbalance,
            ..ResourceMeasures::default()
        };
        Measures {
            evictions: 3,
            pending_seconds: PendingTimes { p99: 90.0, ..PendingTimes::default() },
            resources: vec![resource("cpu", 0.2, 0.5), resource("a.b/gpu", 0.4, 0.1)],
            ..Measures::default()
        }
    }

    fn parse(text: &str) -> Result<Objective, Problems> {
        Objective::parse(text, &["cpu".into(), "a.b/gpu".into()])
    }

    #[test]
    fn sums_are_worked_out() {
        for (text, cost) in [
            ("fragmentation", 0.3),
            ("minimize fragmentation[a.b/gpu]", 0.4),
            ("maximize placed - 2 * evictions", 6.0),
            ("0.5 * imbalance[cpu] + imbalance[ cpu ] * 2 - 1", 0.25),
        ] {
            let objective = parse(text).unwrap();
            assert!((objective.cost(&measures()) - cost).abs() < 1e-12, "{text}");
        }
    }

    #[test]
    fn constraints_are_told_when_broken() {
        let objective = parse("fragmentation, pending_p99 <= 60, evictions < 5; imbalance >= 0.9").unwrap();
        assert_eq!(objective.broken(&measures()), ["pending_p99 <= 60", "imbalance >= 0.9"]);
        // 30 s more than 60, and 0.6 less than 0.9 (of at least 1).
        assert!((objective.excess(&measures()) - (0.5 + 0.6)).abs() < 1e-12);
    }

    #[test]
    fn mistakes_are_located() {
        for (text, column, expected) in [
            ("minimize fragmentaton", 10, "did you mean fragmentation?"),
            ("fragmentation[gpu]", 14, "no pod of the trace asks for \"gpu\""),
            ("evictions[cpu]", 10, "evictions is not measured by resource"),
            ("fragmentation +", 16, "expected a measure or a number"),
            ("fragmentation, evictions", 25, "a constraint needs"),
            ("fragmentation * imbalance", 17, "cannot be multiplied"),
            ("fragmentation ? 2", 15, "no part of an objective"),
            ("3", 1, "at least one measure"),
            ("fragmentation imbalance", 15, "expected `+`"),
        ] {
            let problems = parse(text).expect_err(text);
            assert!(problems.to_string().contains(expected), "{text}: {problems}");
            assert_eq!(problems.0[0].at.map(|at| at.column), Some(column), "{text}");
        }
    }
}
