//! Every expression gets a type, every call its overloads, or there is an issue.

use crate::{
    ast::{Element, Entry, Expr, ExprKind, Fold, Id},
    declarations::{Function, functions, type_named},
    issues::Issues,
    parser::Parsed,
    types::{DEVICE, QUANTITY, Type},
    unify::{Substitution, most_general},
    value::Value,
};
use std::sync::Arc;

/// What is known of an expression beyond its text.
pub(crate) struct Checked {
    pub(crate) root: Expr,
    pub(crate) offsets: Vec<usize>,
    /// By id.
    pub(crate) types: Vec<Type>,
    /// By id of a call.
    pub(crate) overloads: Vec<Vec<&'static str>>,
    /// By id: names of types.
    pub(crate) named_types: Vec<Option<&'static str>>,
}

impl Checked {
    pub(crate) fn type_of(&self, expr: &Expr) -> &Type {
        &self.types[expr.id as usize]
    }

    pub(crate) fn overloads_of(&self, id: Id) -> &[&'static str] {
        &self.overloads[id as usize]
    }
}

/// The fields of `device`.
fn device_field(name: &str) -> Option<Type> {
    let domains = |of: Type| Type::map(Type::Text, Type::map(Type::Text, of));
    Some(match name {
        "driver" => Type::Text,
        "allowMultipleAllocations" => Type::Bool,
        "attributes" => domains(Type::Any),
        "capacity" => domains(QUANTITY),
        _ => return None,
    })
}

pub(crate) fn check(parsed: Parsed, issues: &mut Issues) -> Option<Checked> {
    let Parsed { mut root, offsets } = parsed;
    let count = offsets.len();
    let mut checker = Checker {
        issues,
        offsets: &offsets,
        types: vec![None; count],
        overloads: vec![Vec::new(); count],
        named_types: vec![None; count],
        substitution: Substitution::default(),
        scopes: Vec::new(),
    };
    checker.check(&mut root);
    let Checker { types, overloads, named_types, mut substitution, .. } = checker;
    if substitution.is_exhausted() {
        issues.report(0, "the types of this expression are too large to be worked out");
    }
    if !issues.is_empty() {
        return None;
    }
    let types: Vec<Type> =
        types.into_iter().map(|of| of.map_or(Type::Error, |of| substitution.resolve(&of, true))).collect();
    if substitution.is_exhausted() {
        issues.report(0, "the types of this expression are too large to be worked out");
        return None;
    }
    Some(Checked { root, offsets, types, overloads, named_types })
}

struct Checker<'c> {
    issues: &'c mut Issues,
    offsets: &'c [usize],
    types: Vec<Option<Type>>,
    overloads: Vec<Vec<&'static str>>,
    named_types: Vec<Option<&'static str>>,
    substitution: Substitution,
    /// Variables of comprehensions, the innermost last.
    scopes: Vec<(Arc<str>, Type)>,
}

impl Checker<'_> {
    fn set(&mut self, id: Id, of: Type) {
        self.types[id as usize] = Some(of);
    }

    fn type_of(&self, id: Id) -> Type {
        self.types[id as usize].clone().unwrap_or(Type::Error)
    }

    fn resolved(&mut self, id: Id) -> Type {
        let of = self.type_of(id);
        self.substitution.resolve(&of, false)
    }

    fn report(&mut self, id: Id, message: impl Into<String>) {
        self.issues.report(self.offsets[id as usize], message);
    }

    fn undeclared(&mut self, id: Id, name: &str) {
        self.report(id, format!("undeclared reference to '{name}' (in container '')"));
        self.set(id, Type::Error);
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        let message =
            format!("expected type '{}' but found '{}'", expected.in_messages(), found.in_messages());
        self.report(id, message);
    }

    fn check(&mut self, expr: &mut Expr) {
        if self.substitution.is_exhausted() {
            return;
        }
        let id = expr.id;
        match &mut expr.kind {
            ExprKind::Literal(value) => {
                let of = literal_type(value);
                self.set(id, of);
            }
            ExprKind::Ident(name) => {
                let name = name.clone();
                if !self.name(expr, &name) {
                    self.undeclared(id, &name);
                }
            }
            ExprKind::Select { .. } => self.select(expr),
            ExprKind::Call { .. } => self.call(expr),
            ExprKind::List(elements) => self.list(id, elements),
            ExprKind::Map(entries) => self.map(id, entries),
            ExprKind::Message(name) => {
                let name = name.clone();
                self.undeclared(id, &name);
            }
            ExprKind::Fold(fold) => self.fold(id, fold),
            ExprKind::Broken => self.set(id, Type::Error),
        }
    }

    /// A variable or a type, if the name is one's.
    fn name(&mut self, expr: &mut Expr, name: &str) -> bool {
        let name = name.strip_prefix('.').unwrap_or(name);
        let scope = self.scopes.iter().rev().find(|(known, _)| **known == *name);
        let of = match scope {
            Some((_, of)) => of.clone(),
            None if name == "device" => Type::Struct(DEVICE),
            None => {
                let Some(named) = type_named(name) else { return false };
                self.named_types[expr.id as usize] = Some(named.name());
                let named = self.substitution.instantiate(&[named]).remove(0);
                Type::Meta(Some(Arc::new(named)))
            }
        };
        self.set(expr.id, of);
        expr.kind = ExprKind::Ident(name.into());
        true
    }

    fn select(&mut self, expr: &mut Expr) {
        if let Some(name) = expr.qualified_name()
            && name.contains('.')
            && self.name(expr, &name)
        {
            return;
        }
        let id = expr.id;
        let ExprKind::Select { operand, field, test_only } = &mut expr.kind else { return };
        let found = self.field(id, operand, field, false);
        let of = if *test_only { Type::Bool } else { self.substitution.resolve(&found, false) };
        self.set(id, of);
    }

    fn field(&mut self, id: Id, operand: &mut Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let of = self.resolved(operand.id);
        let (target, is_optional) = match of.unwrap_optional() {
            Some(inner) => (inner.clone(), true),
            None => (of, false),
        };
        let found = match &target {
            Type::Map(of) => of.1.clone(),
            Type::Struct(DEVICE) => device_field(field).unwrap_or_else(|| {
                self.report(id, format!("undefined field '{field}'"));
                Type::Error
            }),
            Type::Struct(name) => {
                self.report(id, format!("unexpected failed resolution of '{name}'"));
                Type::Error
            }
            Type::Param(_) => {
                self.substitution.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            other => {
                if !other.is_dyn_or_error() {
                    let message = format!("type '{}' does not support field selection", other.in_messages());
                    self.report(id, message);
                }
                Type::Dyn
            }
        };
        if is_optional || optional { Type::optional(found) } else { found }
    }

    fn call(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let ExprKind::Call { function, target, args } = &mut expr.kind else { return };
        if &**function == "_?._" {
            let [operand, name] = &mut args[..] else { return };
            self.set(name.id, Type::Text);
            let Some(Value::Text(field)) = name.literal().cloned() else { return };
            let found = self.field(id, operand, &field, true);
            let found = self.substitution.resolve(&found, false);
            self.set(id, found);
            self.overloads[id as usize] = vec!["select_optional_field"];
            return;
        }
        for arg in args.iter_mut() {
            self.check(arg);
        }
        let Some(receiver) = target else {
            let name = function.strip_prefix('.').unwrap_or(function).to_owned();
            return match functions().get(&name) {
                Some(declared) => {
                    *function = name.into();
                    self.resolve_overload(id, declared, None, args);
                }
                None => self.undeclared(id, &function.clone()),
            };
        };
        if let Some(prefix) = receiver.qualified_name() {
            let name = format!("{prefix}.{function}");
            if let Some(declared) = functions().get(name.strip_prefix('.').unwrap_or(&name)) {
                *function = declared.name.into();
                *target = None;
                return self.resolve_overload(id, declared, None, args);
            }
        }
        self.check(receiver);
        match functions().get(function) {
            Some(declared) => self.resolve_overload(id, declared, Some(receiver.id), args),
            None => self.undeclared(id, &function.clone()),
        }
    }

    fn resolve_overload(&mut self, id: Id, function: &Function, target: Option<Id>, args: &[Expr]) {
        let found: Vec<Type> =
            target.into_iter().chain(args.iter().map(|arg| arg.id)).map(|id| self.type_of(id)).collect();
        if matches!(function.name, "_&&_" | "_||_") {
            return self.logical(id, function, &found, args);
        }
        let mut result: Option<Type> = None;
        for overload in &function.overloads {
            if overload.member != target.is_some() || overload.args.len() != found.len() {
                continue;
            }
            let mut declared = overload.args.clone();
            declared.push(overload.result.clone());
            let mut declared = self.substitution.instantiate(&declared);
            let own = declared.pop().unwrap_or(Type::Error);
            if !self.substitution.all_assignable(&found, &declared) {
                continue;
            }
            self.overloads[id as usize].push(overload.id);
            let own = self.substitution.resolve(&own, false);
            result = Some(match result {
                None => own,
                Some(known) if !known.is_dyn() && known != own => Type::Dyn,
                Some(known) => known,
            });
        }
        match result {
            Some(of) => self.set(id, of),
            None => self.no_overload(id, function.name, &found, target.is_some()),
        }
    }

    fn logical(&mut self, id: Id, function: &Function, found: &[Type], args: &[Expr]) {
        let mut of = Type::Bool;
        for (arg, found) in args.iter().zip(found) {
            if !self.substitution.assignable(found, &Type::Bool) {
                self.mismatch(arg.id, &Type::Bool, found);
                of = Type::Error;
            }
        }
        if of == Type::Bool {
            self.overloads[id as usize] = function.overloads.iter().map(|overload| overload.id).collect();
        }
        self.set(id, of);
    }

    fn no_overload(&mut self, id: Id, name: &str, found: &[Type], member: bool) {
        let shown: Vec<String> =
            found.iter().map(|of| self.substitution.resolve(of, true).in_messages()).collect();
        let signature = match (member, shown.split_first()) {
            (true, Some((target, args))) => format!("{target}.({})", args.join(", ")),
            _ => format!("({})", shown.join(", ")),
        };
        self.report(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
        self.set(id, Type::Error);
    }

    /// What is in an optional element, which has to be one.
    fn optional_element(&mut self, id: Id) -> Type {
        let of = self.type_of(id);
        match of.unwrap_optional() {
            Some(inner) => inner.clone(),
            None => {
                if !of.is_dyn() {
                    self.mismatch(id, &Type::optional(of.clone()), &of);
                }
                of
            }
        }
    }

    fn list(&mut self, id: Id, elements: &mut [Element]) {
        let mut common = None;
        for element in elements {
            self.check(&mut element.expr);
            let of = match element.optional {
                true => self.optional_element(element.expr.id),
                false => self.type_of(element.expr.id),
            };
            common = Some(self.join(element.expr.id, common, of));
        }
        let of = common.unwrap_or_else(|| self.substitution.new_variable());
        self.set(id, Type::list(of));
    }

    fn map(&mut self, id: Id, entries: &mut [Entry]) {
        let mut common: Option<(Type, Type)> = None;
        for Entry { key, value, optional } in entries {
            self.check(key);
            let of_key = self.type_of(key.id);
            self.check(value);
            let (keys, values) = common.map_or((None, None), |(key, value)| (Some(key), Some(value)));
            let keys = self.join(key.id, keys, of_key);
            let of_value = match optional {
                true => self.optional_element(value.id),
                false => self.type_of(value.id),
            };
            common = Some((keys, self.join(value.id, values, of_value)));
        }
        let (keys, values) =
            common.unwrap_or_else(|| (self.substitution.new_variable(), self.substitution.new_variable()));
        self.set(id, Type::map(keys, values));
    }

    fn join(&mut self, id: Id, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.substitution.assignable(&previous, &current) {
            return most_general(&previous, &current);
        }
        self.mismatch(id, &previous, &current);
        Type::Error
    }

    fn fold(&mut self, id: Id, fold: &mut Fold) {
        self.check(&mut fold.range);
        self.check(&mut fold.init);
        let range = self.resolved(fold.range.id);
        let accumulated = self.type_of(fold.init.id);
        let outside = self.scopes.len();
        self.scopes.push((fold.accumulator.clone(), accumulated.clone()));
        let (first, second) = self.variables(fold.range.id, &range, fold.second.is_some());
        self.scopes.push((fold.variable.clone(), first));
        if let Some(name) = &fold.second {
            self.scopes.push((name.clone(), second));
        }
        self.check(&mut fold.condition);
        self.assert_type(fold.condition.id, &Type::Bool);
        self.check(&mut fold.step);
        self.assert_type(fold.step.id, &accumulated);
        self.scopes.truncate(outside + 1);
        self.check(&mut fold.result);
        self.scopes.truncate(outside);
        let of = self.resolved(fold.result.id);
        self.set(id, of);
    }

    /// The types of a comprehension's variables.
    fn variables(&mut self, range_id: Id, range: &Type, two: bool) -> (Type, Type) {
        match range {
            Type::List(of) if two => (Type::Int, (**of).clone()),
            Type::List(of) => ((**of).clone(), Type::Error),
            Type::Map(of) => (of.0.clone(), of.1.clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.substitution.assignable(&Type::Dyn, range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    other.in_messages()
                );
                self.report(range_id, message);
                (Type::Error, Type::Error)
            }
        }
    }

    fn assert_type(&mut self, id: Id, expected: &Type) {
        let found = self.type_of(id);
        if !self.substitution.assignable(expected, &found) {
            self.mismatch(id, expected, &found);
        }
    }
}

fn literal_type(value: &Value) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Bool,
        Value::Int(_) => Type::Int,
        Value::Uint(_) => Type::Uint,
        Value::Double(_) => Type::Double,
        Value::Text(_) => Type::Text,
        _ => Type::Bytes,
    }
}
