//! What the reference looks at after types are checked: literals of durations, times and regular expressions, lists and maps of one
//! type, formats.

use crate::{
    ast::{Expr, ExprKind, Id},
    checker::Checked,
    functions::{text_format, time},
    go_regex,
    issues::Issues,
    types::Type,
    value::Value,
};
use std::collections::HashSet;

pub(crate) fn validate(checked: &Checked, issues: &mut Issues) {
    let all = checked.root.descendants();
    for (function, is_valid) in
        [("duration", is_duration as fn(&Value) -> bool), ("timestamp", is_timestamp), ("matches", is_regex)]
    {
        for expr in &all {
            let ExprKind::Call { function: called, args, .. } = &expr.kind else { continue };
            let literal = args.first().and_then(|arg| Some((arg.id, arg.literal()?)));
            if let Some((id, value)) = literal.filter(|_| **called == *function)
                && !is_valid(value)
            {
                report(checked, issues, id, format!("invalid {function} argument"));
            }
        }
    }
    let exempt = within_formats(&checked.root);
    for expr in &all {
        match &expr.kind {
            ExprKind::List(_) if !exempt.contains(&expr.id) => same_elements(checked, issues, expr),
            _ => {}
        }
    }
    for expr in &all {
        match &expr.kind {
            ExprKind::Map(_) if !exempt.contains(&expr.id) => same_entries(checked, issues, expr),
            _ => {}
        }
    }
    for expr in &all {
        formats(checked, issues, expr);
    }
}

fn report(checked: &Checked, issues: &mut Issues, id: Id, message: String) {
    issues.report(checked.offsets[id as usize], message);
}

fn is_duration(value: &Value) -> bool {
    match value {
        Value::Text(text) => time::parse_duration(text).is_some(),
        _ => false,
    }
}

fn is_timestamp(value: &Value) -> bool {
    let moment = match value {
        Value::Text(text) => time::Moment::parse(text),
        Value::Int(seconds) => Some((*seconds, 0, 0)),
        _ => None,
    };
    moment.is_some_and(|(seconds, nanos, offset)| !time::Moment::at(seconds, nanos, offset).is_error())
}

fn is_regex(value: &Value) -> bool {
    value.as_text().is_some_and(|pattern| go_regex::compile(pattern).is_ok())
}

/// Lists and maps within `format(…)` may be of several types.
fn within_formats(root: &Expr) -> HashSet<Id> {
    let mut exempt = HashSet::new();
    let mut open = vec![(root, false)];
    while let Some((expr, within)) = open.pop() {
        if within {
            exempt.insert(expr.id);
        }
        let is_format = matches!(&expr.kind, ExprKind::Call { function, .. } if &**function == "format");
        open.extend(expr.children().into_iter().map(|child| (child, within || is_format)));
    }
    exempt
}

fn element_type(checked: &Checked, expr: &Expr, optional: bool) -> Type {
    let of = checked.type_of(expr).clone();
    match of.unwrap_optional() {
        Some(inner) if optional => inner.clone(),
        _ => of,
    }
}

fn mismatch(checked: &Checked, issues: &mut Issues, id: Id, expected: &Type, found: &Type) {
    let message = format!("expected type '{}' but found '{}'", expected.in_messages(), found.in_messages());
    report(checked, issues, id, message);
}

fn same_elements(checked: &Checked, issues: &mut Issues, expr: &Expr) {
    let ExprKind::List(elements) = &expr.kind else { return };
    let mut common: Option<Type> = None;
    for element in elements {
        let found = element_type(checked, &element.expr, element.optional);
        match &common {
            None => common = Some(found),
            Some(expected) if *expected != found => {
                return mismatch(checked, issues, element.expr.id, expected, &found);
            }
            Some(_) => {}
        }
    }
}

fn same_entries(checked: &Checked, issues: &mut Issues, expr: &Expr) {
    let ExprKind::Map(entries) = &expr.kind else { return };
    let mut common: Option<(Type, Type)> = None;
    for entry in entries {
        let key = checked.type_of(&entry.key).clone();
        let value = element_type(checked, &entry.value, entry.optional);
        let Some((keys, values)) = &common else {
            common = Some((key, value));
            continue;
        };
        if *keys != key {
            mismatch(checked, issues, entry.key.id, keys, &key);
        }
        if *values != value {
            mismatch(checked, issues, entry.value.id, values, &value);
        }
    }
}

fn formats(checked: &Checked, issues: &mut Issues, expr: &Expr) {
    let ExprKind::Call { function, target: Some(target), args } = &expr.kind else { return };
    let overloads = checked.overloads_of(expr.id);
    if &**function != "format" || !(overloads.is_empty() || overloads.contains(&"string_format")) {
        return;
    }
    let (Some(Value::Text(text)), [arg]) = (target.literal(), &args[..]) else { return };
    let ExprKind::List(elements) = &arg.kind else { return };
    let args: Vec<&Expr> = elements.iter().map(|element| &element.expr).collect();
    let type_of = |expr: &Expr| checked.type_of(expr).clone();
    if let Some((id, message)) = text_format::defect(expr.id, text, &args, &type_of) {
        report(checked, issues, id, message);
    }
}
