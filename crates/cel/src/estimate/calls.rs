//! What calls can cost.

use super::{Estimator, Path, Range, path_size, sizes::EntrySizes};
use crate::{
    ast::{Expr, ExprKind, Id},
    cost::{PER_CHARACTER, PER_REGEX_CHARACTER, UNIT},
    macros::ACCUMULATOR,
    types::{CIDR, FORMAT, IP, QUANTITY, SEMVER, Type, URL},
    value::Value,
};

const LONGEST_FORMAT_REGEX: f64 = 128.0;
const LONGEST_FORMAT: u64 = 64;

/// An argument as estimates see it.
struct Argument<'c> {
    expr: &'c Expr,
    of: &'c Type,
    path: Option<Path>,
    computed: Option<Range>,
    cost: Range,
}

impl Argument<'_> {
    fn size(&self) -> Range {
        let of_path = || self.path.as_ref().and_then(path_size);
        self.computed.or_else(of_path).unwrap_or(Range::UNKNOWN)
    }

    /// If nothing but the argument itself tells its size.
    fn own_size(&self) -> Range {
        self.computed.unwrap_or(Range::UNKNOWN)
    }

    fn whole_number(&self, otherwise: u64) -> u64 {
        match self.expr.literal() {
            Some(Value::Int(value)) => u64::try_from(*value).unwrap_or(0),
            _ => otherwise,
        }
    }
}

/// What a call costs besides its arguments, or with them, and how large its result is.
struct Estimate {
    cost: Range,
    size: Option<Range>,
    with_arguments: bool,
}

impl Estimate {
    fn of(cost: Range) -> Self {
        Self { cost, size: None, with_arguments: false }
    }

    fn sized(cost: Range, size: Range) -> Self {
        Self { size: Some(size), ..Self::of(cost) }
    }
}

impl<'c> Estimator<'c> {
    pub(super) fn call(
        &mut self,
        expr: &'c Expr,
        function: &str,
        target: Option<&'c Expr>,
        args: &'c [Expr],
    ) -> Range {
        if function == "dyn" && args.len() == 1 {
            let cost = self.cost(&args[0]);
            self.copy_sizes(expr, &args[0]);
            return cost.plus(Range::fixed(1));
        }
        let args: Vec<Argument<'c>> = args.iter().map(|arg| self.argument(arg)).collect();
        let overloads = self.checked.overloads_of(expr.id);
        if overloads.is_empty() {
            return Range::fixed(0);
        }
        let target = target.map(|target| self.argument(target));
        let mut cost = Range { min: u64::MAX, max: 0 };
        let mut size: Option<Range> = None;
        for overload in overloads {
            let estimate = self.overload(expr.id, function, overload, target.as_ref(), &args);
            let of_args = args.iter().fold(Range::fixed(0), |sum, arg| sum.plus(arg.cost));
            let own = if estimate.with_arguments { estimate.cost } else { estimate.cost.plus(of_args) };
            cost = cost.union(own);
            size = match (size, estimate.size) {
                (Some(known), Some(new)) => Some(known.union(new)),
                (known, new) => known.or(new),
            };
            let step = match *overload {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let (Some(step), Some(first)) = (step, args.first()) {
                size = self.entries_of(first.expr).map(|entries| entries.value);
                let mut path = self.path(first.expr);
                path.push(step.into());
                self.paths.insert(expr.id, path);
            }
            if size.is_none() {
                size = self.size(expr);
            }
        }
        if let Some(size) = size {
            self.sizes.insert(expr.id, size);
        }
        cost.plus(target.map_or(Range::fixed(0), |target| target.cost))
    }

    fn argument(&mut self, expr: &'c Expr) -> Argument<'c> {
        let cost = self.cost(expr);
        let path = self.path(expr);
        let is_accumulator = path.first().is_some_and(|first| &**first == ACCUMULATOR);
        let path = (!is_accumulator && !path.is_empty()).then_some(path);
        Argument { expr, of: self.checked.type_of(expr), path, computed: self.size(expr), cost }
    }

    fn overload(
        &mut self,
        id: Id,
        function: &str,
        overload: &str,
        target: Option<&Argument<'c>>,
        args: &[Argument<'c>],
    ) -> Estimate {
        of_extension(overload, target, args)
            .or_else(|| of_kubernetes(function, overload, target, args))
            .unwrap_or_else(|| self.standard(id, overload, target, args))
    }

    fn standard(
        &mut self,
        id: Id,
        overload: &str,
        target: Option<&Argument<'c>>,
        args: &[Argument<'c>],
    ) -> Estimate {
        match (overload, target, args) {
            ("string_format", Some(target), _) => Estimate::of(target.own_size().scaled(PER_CHARACTER)),
            ("string_to_bytes", _, [text]) => {
                let size = text.own_size();
                let bytes = Range { min: size.min, max: size.max.wrapping_mul(4) };
                Estimate::sized(size.scaled(PER_CHARACTER), bytes)
            }
            ("bytes_to_string", _, [bytes]) => {
                let size = bytes.own_size();
                Estimate::sized(size.scaled(PER_CHARACTER), Range { min: size.min / 4, max: size.max })
            }
            ("strings_quote", _, [text]) => {
                let size = text.own_size();
                let max = size.max.wrapping_mul(2).wrapping_add(2);
                let quoted = Range { min: size.min.wrapping_add(2), max };
                Estimate::sized(size.scaled(PER_CHARACTER), quoted)
            }
            ("starts_with_string" | "ends_with_string", _, [part]) => {
                Estimate::of(part.own_size().scaled(PER_CHARACTER))
            }
            ("in_list", _, [_, list]) => Estimate::of(list.own_size().scaled(1.0)),
            ("matches_string", Some(target), [pattern]) => {
                Estimate::of(regex_cost(target.own_size(), pattern.own_size()))
            }
            ("contains_string", Some(target), [part]) => {
                let text = target.own_size().scaled(PER_CHARACTER);
                Estimate::of(text.times(part.own_size().scaled(PER_CHARACTER)))
            }
            ("logical_or" | "logical_and", _, [left, right]) => {
                let cost = Range { min: left.cost.min, max: left.cost.plus(right.cost).max };
                Estimate { with_arguments: true, ..Estimate::of(cost) }
            }
            ("conditional", _, [condition, yes, no]) => {
                let entries = EntrySizes::union(self.entries_of(yes.expr), self.entries_of(no.expr));
                if let Some(entries) = entries {
                    self.entries.insert(id, entries);
                }
                let cost = condition.cost.plus(yes.cost.union(no.cost));
                let size = yes.own_size().union(no.own_size());
                Estimate { with_arguments: true, ..Estimate::sized(cost, size) }
            }
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                let entries = EntrySizes::union(self.entries_of(left.expr), self.entries_of(right.expr));
                if let Some(entries) = entries {
                    self.entries.insert(id, entries);
                }
                let size = left.own_size().plus(right.own_size());
                let cost = if overload == "add_list" { Range::fixed(1) } else { size.scaled(PER_CHARACTER) };
                Estimate::sized(cost, size)
            }
            (_, _, [left, right]) if compares(overload) => {
                let max = left.own_size().max.min(right.own_size().max);
                Estimate::of(Range { min: u64::from(max > 0), max }.scaled(PER_CHARACTER))
            }
            _ => Estimate::of(Range::fixed(1)),
        }
    }
}

fn compares(overload: &str) -> bool {
    let texts =
        |prefix: &str| overload.strip_prefix(prefix).is_some_and(|of| matches!(of, "_string" | "_bytes"));
    matches!(overload, "equals" | "not_equals")
        || ["less", "greater", "less_equals", "greater_equals"].into_iter().any(texts)
}

fn regex_cost(text: Range, regex: Range) -> Range {
    let text = text.plus(Range::fixed(1)).scaled(PER_CHARACTER);
    text.times(regex.scaled(PER_REGEX_CHARACTER))
}

fn of_extension(overload: &str, target: Option<&Argument<'_>>, args: &[Argument<'_>]) -> Option<Estimate> {
    let allocating = |factor: f64, size: Range| {
        Estimate::sized(size.scaled(factor).plus(Range::fixed(1)).plus(Range::fixed(10)), size)
    };
    let compared = |list: &Argument<'_>, is_text: bool| {
        let size = list.size();
        allocating(if is_text { 2.0 + PER_CHARACTER } else { 2.0 }, size.times(size))
    };
    let of_texts = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
    Some(match (overload, target, args) {
        ("list_slice", Some(target), [start, end]) => {
            let (start, end) = (start.whole_number(0), end.whole_number(target.size().max));
            allocating(1.0, Range::fixed(end.wrapping_sub(start)))
        }
        ("lists_range", None, [end]) => allocating(1.0, Range::fixed(end.whole_number(u64::MAX))),
        ("list_reverse", Some(target), []) => allocating(1.0, target.size()),
        ("list_flatten" | "list_flatten_int", Some(target), args) => {
            let depth = args.first().map_or(1, |depth| depth.whole_number(u64::MAX));
            allocating(depth as f64, target.size())
        }
        ("list_distinct", Some(target), []) => compared(target, false),
        (_, Some(target), []) if overload.ends_with("_sort") => compared(target, of_texts),
        (_, Some(_), [keys]) if overload.ends_with("_sortByAssociatedKeys") => compared(keys, of_texts),
        ("list_sets_contains_list" | "list_sets_intersects_list", _, [left, right]) => {
            Estimate::of(left.size().times(right.size()).scaled(1.0).plus(Range::fixed(1)))
        }
        ("list_sets_equivalent_list", _, [left, right]) => {
            Estimate::of(left.size().times(right.size()).scaled(2.0).plus(Range::fixed(1)))
        }
        _ => return None,
    })
}

/// The type of what is in a list, and the size that its path tells.
fn element<'a>(list: &Argument<'a>) -> Option<(&'a Type, Range)> {
    let of: &'a Type = match list.of {
        Type::List(of) | Type::Opaque(_, Some(of)) | Type::Meta(Some(of)) => of,
        Type::Map(of) => &of.0,
        _ => return None,
    };
    let below = list.path.clone().map(|mut path| {
        path.push("@items".into());
        path
    });
    Some((of, below.as_ref().and_then(path_size).unwrap_or(Range::UNKNOWN)))
}

fn of_kubernetes(
    function: &str,
    overload: &str,
    target: Option<&Argument<'_>>,
    args: &[Argument<'_>],
) -> Option<Estimate> {
    let unit = || Some(Estimate::of(Range::fixed(1)));
    let characters = |of: &Argument<'_>, factor: f64| Estimate::of(of.size().scaled(factor));
    match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            let target = target?;
            let Some((of, size)) = element(target) else { return Some(characters(target, PER_CHARACTER)) };
            let is_text = matches!(of, Type::Text | Type::Bytes);
            let extra = if is_text { size.scaled(PER_CHARACTER) } else { Range::fixed(0) };
            Some(Estimate::of(target.size().times(Range::fixed(1).plus(extra))))
        }
        "url" => args.first().map(|text| Estimate::sized(text.size().scaled(PER_CHARACTER), text.size())),
        "lowerAscii" | "upperAscii" | "substring" | "trim" => {
            target.map(|text| Estimate::sized(text.size().scaled(PER_CHARACTER), text.size()))
        }
        "replace" => {
            let (target, [old, new, ..]) = (target?, args) else { return None };
            let cost = target.size().scaled(2.0 * PER_CHARACTER);
            Some(Estimate::sized(cost, replaced(target.size(), old.size(), new.size())))
        }
        "split" => {
            let size = target?.size();
            let limit = args.get(1).and_then(|limit| match limit.expr.kind {
                ExprKind::Literal(Value::Int(limit)) => Some(limit as u64),
                _ => None,
            });
            let parts = Range { min: 0, max: limit.unwrap_or(size.max) };
            Some(Estimate::sized(size.scaled(2.0 * PER_CHARACTER), parts))
        }
        "join" => {
            let target = target?;
            let count = target.size();
            let mut size = element(target).map_or(Range::fixed(0), |(_, size)| count.times(size));
            if let Some(separator) = args.first() {
                let gaps = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
                size = size.plus(separator.size().times(gaps));
            }
            Some(Estimate::sized(size.scaled(PER_CHARACTER), size))
        }
        "find" | "findAll" => {
            let size = target?.size();
            let cost = regex_cost(size, args.first()?.size());
            Some(Estimate::sized(cost, Range { min: 0, max: size.max }))
        }
        "ip" if overload == "cidr_ip" => unit(),
        "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            args.first().map(|text| characters(text, PER_CHARACTER))
        }
        "ip.isCanonical" => args.first().map(|text| characters(text, 2.0 * PER_CHARACTER)),
        "containsIP" | "containsCIDR" => contained(function, overload, args.first()?),
        "validate" => {
            let cost = args.first()?.size().scaled(PER_CHARACTER);
            Some(Estimate::of(cost.scaled(LONGEST_FORMAT_REGEX * PER_REGEX_CHARACTER)))
        }
        _ if UNIT.contains(&function) => unit(),
        "_==_" => equality(args),
        _ => None,
    }
}

fn contained(function: &str, overload: &str, other: &Argument<'_>) -> Option<Estimate> {
    let address = Range { min: 4, max: 16 };
    let mut cost = address.plus(address).scaled(PER_CHARACTER);
    if function == "containsCIDR" {
        cost = cost.plus(address.scaled(PER_CHARACTER)).plus(Range::fixed(1));
    }
    if overload.ends_with("_string") {
        cost = cost.plus(other.size().scaled(PER_CHARACTER));
    }
    Some(Estimate::of(cost))
}

fn equality(args: &[Argument<'_>]) -> Option<Estimate> {
    let [left, right] = args else { return None };
    if left.of.name() != right.of.name() {
        return None;
    }
    let cost = match left.of {
        of if *of == IP || *of == CIDR || *of == QUANTITY || *of == SEMVER => Range::fixed(1),
        of if *of == FORMAT => Range { min: 1, max: LONGEST_FORMAT }.scaled(PER_CHARACTER),
        of if *of == URL => {
            let size = right.computed.unwrap_or(Range::fixed(1));
            Range { min: 1, max: size.max }.scaled(PER_CHARACTER)
        }
        _ => return None,
    };
    Some(Estimate::of(cost))
}

/// How long a text can be when parts of it are replaced.
fn replaced(text: Range, old: Range, new: Range) -> Range {
    let (mut count, mut kept) = (Range::fixed(0), Range::fixed(0));
    let parts = |text: u64, of: u64| (text as f64 / of as f64).ceil() as u64;
    if old.min == 0 {
        // Nothing is found around every character.
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if new.max <= old.min {
        kept.max = text.max;
    } else {
        count.max = parts(text.max, old.min);
    }
    if old.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if old.max <= new.min {
        kept.min = text.min;
    } else {
        count.min = parts(text.min, old.max);
    }
    count.times(new).plus(kept)
}
