//! The most that an expression can cost, as the API server estimates it before it takes one: from the sizes of literals, the
//! limits of what a device has, and worst cases. The scheduler does not ask for it.

mod calls;
mod sizes;

use crate::{
    ast::{Expr, ExprKind, Fold, Id},
    checker::Checked,
    types::Type,
    value::Value,
};
use sizes::{Container, EntrySizes, Range, path_size, scalar};
use std::{collections::HashMap, sync::Arc};

/// What is known of a variable of a comprehension.
#[derive(Clone)]
struct Local {
    path: Path,
    size: Option<Range>,
    entries: Option<EntrySizes>,
}

/// From a variable down to what is selected of it.
type Path = Vec<Arc<str>>;

const LIST_CREATION: Range = Range::fixed(10);
const MAP_CREATION: Range = Range::fixed(30);
const MESSAGE_CREATION: Range = Range::fixed(40);

pub(crate) fn largest_cost(checked: &Checked) -> u64 {
    let mut estimator = Estimator {
        checked,
        paths: HashMap::new(),
        locals: HashMap::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
    };
    estimator.cost(&checked.root).max
}

struct Estimator<'c> {
    checked: &'c Checked,
    paths: HashMap<Id, Path>,
    locals: HashMap<Arc<str>, Vec<Local>>,
    sizes: HashMap<Id, Range>,
    entries: HashMap<Id, EntrySizes>,
}

impl<'c> Estimator<'c> {
    fn cost(&mut self, expr: &'c Expr) -> Range {
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Broken => Range::fixed(0),
            ExprKind::Ident(name) => {
                let path = self.local(name).map_or_else(|| vec![name.clone()], |local| local.path.clone());
                self.paths.insert(expr.id, path);
                Range::fixed(1)
            }
            ExprKind::Select { operand, test_only: true, .. } => self.cost(operand),
            ExprKind::Select { operand, field, .. } => {
                let mut cost = self.cost(operand);
                if matches!(self.checked.type_of(operand), Type::Map(_) | Type::Struct(_) | Type::Param(_)) {
                    cost = cost.plus(Range::fixed(1));
                }
                let mut path = self.path(operand);
                path.push(field.clone());
                self.paths.insert(expr.id, path);
                cost
            }
            ExprKind::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            ExprKind::List(elements) => {
                let mut sizes = Range::nothing_yet(elements.is_empty());
                let mut cost = LIST_CREATION;
                for element in elements {
                    cost = cost.plus(self.cost(&element.expr));
                    sizes = sizes.union(self.size_or_unknown(&element.expr));
                }
                let kind = Container::List;
                self.entries.insert(expr.id, EntrySizes { kind, key: Range::fixed(1), value: sizes });
                cost
            }
            ExprKind::Map(entries) => {
                let mut keys = Range::nothing_yet(entries.is_empty());
                let mut values = keys;
                let mut cost = MAP_CREATION;
                for entry in entries {
                    cost = cost.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
                    keys = keys.union(self.size_or_unknown(&entry.key));
                    values = values.union(self.size_or_unknown(&entry.value));
                }
                self.entries.insert(expr.id, EntrySizes { kind: Container::Map, key: keys, value: values });
                cost
            }
            ExprKind::Message(_) => MESSAGE_CREATION,
            ExprKind::Fold(fold) if is_bind(fold) => self.bind(expr, fold),
            ExprKind::Fold(fold) => self.fold(expr, fold),
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.get(name).and_then(|known| known.last())
    }

    fn push(&mut self, name: &Arc<str>, local: Local) {
        self.locals.entry(name.clone()).or_default().push(local);
    }

    fn pop(&mut self, name: &str) {
        if let Some(known) = self.locals.get_mut(name) {
            known.pop();
        }
    }

    fn push_value(&mut self, name: &Arc<str>, of: &Expr) {
        let local = Local { path: self.path(of), size: self.size(of), entries: self.entries_of(of) };
        self.push(name, local);
    }

    fn bind(&mut self, expr: &Expr, fold: &'c Fold) -> Range {
        let cost = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_value(&fold.accumulator, &fold.init);
        let cost = cost.plus(self.cost(&fold.result));
        self.pop(&fold.accumulator);
        self.copy_sizes(expr, &fold.result);
        cost
    }

    fn fold(&mut self, expr: &Expr, fold: &'c Fold) -> Range {
        let cost = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_value(&fold.accumulator, &fold.init);
        let entries = self.entries_of(&fold.range);
        let is_list = match entries {
            Some(entries) => entries.kind == Container::List,
            None => matches!(self.checked.type_of(&fold.range), Type::List(_)),
        };
        let key = entries.map(|entries| entries.key);
        let value = entries.map(|entries| entries.value);
        let range_path = self.path(&fold.range);
        let below = |step: &str, size| {
            let mut path = range_path.clone();
            path.push(step.into());
            Local { path, size, entries: None }
        };
        match &fold.second {
            Some(second) => {
                self.push(&fold.variable, below(if is_list { "@indices" } else { "@keys" }, key));
                self.push(second, below(if is_list { "@items" } else { "@values" }, value));
            }
            None if is_list => self.push(&fold.variable, below("@items", value)),
            None => self.push(&fold.variable, below("@keys", key)),
        }
        let round = self.cost(&fold.condition).plus(self.cost(&fold.step));
        self.pop(&fold.variable);
        if let Some(second) = &fold.second {
            self.pop(second);
        }
        let cost = cost.plus(self.cost(&fold.result));
        self.pop(&fold.accumulator);
        let rounds = self.size_or_unknown(&fold.range);
        match &fold.init.kind {
            ExprKind::Literal(_) => {
                if let Some(size) = self.size(&fold.init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                self.sizes.insert(expr.id, rounds);
                if let Some(entries) = self.entries_of(&fold.step) {
                    self.entries.insert(expr.id, entries);
                }
            }
            _ => {}
        }
        cost.plus(rounds.times(round))
    }

    fn path(&self, expr: &Expr) -> Path {
        if let Some(local) = expr.ident().and_then(|name| self.local(name)) {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    fn size(&mut self, expr: &Expr) -> Option<Range> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = written_size(expr) {
            return Some(Range::fixed(size));
        }
        if let Some(size) = path_size(&self.path(expr)) {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if scalar(self.checked.type_of(expr)) {
            return Some(Range::fixed(1));
        }
        expr.ident().and_then(|name| self.local(name)).and_then(|local| local.size)
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    fn entries_of(&self, expr: &Expr) -> Option<EntrySizes> {
        let of_local = || expr.ident().and_then(|name| self.local(name)).and_then(|local| local.entries);
        self.entries.get(&expr.id).copied().or_else(of_local)
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to.id, size);
        }
        if let Some(entries) = self.entries_of(from) {
            self.entries.insert(to.id, entries);
        }
    }
}

fn is_bind(fold: &Fold) -> bool {
    let over_nothing = matches!(&fold.range.kind, ExprKind::List(elements) if elements.is_empty());
    over_nothing && matches!(fold.condition.literal(), Some(Value::Bool(false)))
}

fn written_size(expr: &Expr) -> Option<u64> {
    Some(match &expr.kind {
        ExprKind::Literal(value) => value.size().unwrap_or(1),
        ExprKind::List(elements) => elements.len() as u64,
        ExprKind::Map(entries) => entries.len() as u64,
        _ => return None,
    })
}
