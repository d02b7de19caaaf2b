//! Runs programs.

mod attributes;

use crate::{
    budget::{Budget, Halt, elements},
    cost::{LIST_CREATION, MAP_CREATION, Tracker, of_call},
    declarations::{Function, Overload},
    functions::regexes,
    go_text,
    plan::{CallNode, CallTarget, EntryNode, FoldNode, Node},
    types::Type,
    value::{Equality, Key, MapValue, NO_SUCH_OVERLOAD, Value, equal},
};
use std::{collections::BTreeSet, sync::Arc};

type Answer = Result<Value, Halt>;

/// What names stand for: nothing but the device, or the variables of the fold at this place and of those around it.
type Scope = usize;

pub(crate) const OUTERMOST: Scope = 0;

pub(crate) struct Evaluator<'p> {
    device: &'p Value,
    folds: Vec<FoldState<'p>>,
    pub(crate) tracker: Tracker,
    budget: Budget,
}

struct FoldState<'p> {
    fold: &'p FoldNode,
    around: Scope,
    accumulated: Option<Value>,
    first: Value,
    second: Value,
    /// Variables are not known in the result.
    in_result: bool,
}

impl<'p> Evaluator<'p> {
    pub(crate) fn new(device: &'p Value, ids: usize, limit: u64) -> Self {
        Self { device, folds: Vec::new(), tracker: Tracker::new(ids, limit), budget: Budget::new() }
    }

    pub(crate) fn eval(&mut self, node: &'p Node, scope: Scope) -> Answer {
        match node {
            Node::Const(id, value) => {
                self.tracker.report(*id, value)?;
                Ok(value.clone())
            }
            Node::Attribute(attribute) => self.attribute(attribute, scope),
            Node::Test(id, attribute) => self.test(*id, attribute, scope),
            Node::Call(call) => self.call(call, scope),
            Node::Or(_, terms) => self.logical(node, terms, true, scope),
            Node::And(_, terms) => self.logical(node, terms, false, scope),
            Node::Equal(id, sides) => {
                let value = match self.sides(sides, scope)? {
                    Ok((left, right)) => equal(&left, &right, &mut self.budget)?.value(),
                    Err(error) => error,
                };
                self.called("_==_", "equals", &sides[..], *id, value)
            }
            Node::NotEqual(id, sides) => {
                let value = match self.sides(sides, scope)? {
                    Ok((left, right)) => {
                        Value::Bool(equal(&left, &right, &mut self.budget)? != Equality::Equal)
                    }
                    Err(error) => error,
                };
                self.called("_!=_", "not_equals", &sides[..], *id, value)
            }
            Node::NotStrictlyFalse(id, arg) => {
                let value = match self.eval(arg, scope)? {
                    value @ Value::Bool(_) => value,
                    _ => Value::Bool(true),
                };
                let args = std::slice::from_ref(&**arg);
                self.called("@not_strictly_false", "not_strictly_false", args, *id, value)
            }
            Node::List(..) | Node::Map(..) => self.aggregate(node, scope),
            Node::Fold(fold) => {
                let value = self.fold(fold, scope)?;
                self.tracker.drop_to(fold.range.id());
                self.reported(fold.id, value)
            }
            Node::Member(id, arg, set) => {
                let value = self.eval(arg, scope)?;
                let value = member(value, set)?;
                self.reported(*id, value)
            }
            Node::OptionalOr(id, sides) => {
                let value = match self.eval(&sides[0], scope)? {
                    Value::Optional(None) => self.eval(&sides[1], scope)?,
                    other => other,
                };
                self.reported(*id, value)
            }
            Node::OptionalOrValue(id, sides) => {
                let value = match self.eval(&sides[0], scope)? {
                    Value::Optional(None) => self.eval(&sides[1], scope)?,
                    Value::Optional(Some(value)) => (*value).clone(),
                    other => other,
                };
                self.reported(*id, value)
            }
        }
    }

    fn reported(&mut self, id: u32, value: Value) -> Answer {
        self.tracker.report(id, &value)?;
        Ok(value)
    }

    /// Counts a call whose value is known.
    fn called(&mut self, function: &str, overload: &str, args: &[Node], id: u32, value: Value) -> Answer {
        if let Some(values) = self.tracker.take_args(args) {
            let cost = of_call(function, overload, &values, &value, &mut self.budget)?;
            self.tracker.add(cost);
        }
        self.reported(id, value)
    }

    /// Both sides, or the first error.
    fn sides(&mut self, sides: &'p [Node; 2], scope: Scope) -> Result<Result<(Value, Value), Value>, Halt> {
        let left = self.eval(&sides[0], scope)?;
        let right = self.eval(&sides[1], scope)?;
        Ok(match (left, right) {
            (error @ Value::Error(_), _) | (_, error @ Value::Error(_)) => Err(error),
            sides => Ok(sides),
        })
    }

    /// A term that decides wins over errors.
    fn logical(&mut self, node: &Node, terms: &'p [Node; 2], decides: bool, scope: Scope) -> Answer {
        let mut failed = None;
        let mut value = None;
        for term in terms {
            match self.eval(term, scope)? {
                Value::Bool(found) if found == decides => {
                    value = Some(Value::Bool(decides));
                    break;
                }
                Value::Bool(_) => {}
                error @ Value::Error(_) => failed = failed.or(Some(error)),
                _ => failed = failed.or_else(|| Some(Value::no_such_overload())),
            }
        }
        for term in terms {
            self.tracker.drop_to(term.id());
        }
        let value = value.or(failed).unwrap_or(Value::Bool(!decides));
        self.reported(node.id(), value)
    }

    fn call(&mut self, call: &'p CallNode, scope: Scope) -> Answer {
        let mut args = Vec::with_capacity(call.args.len());
        let mut failed: Option<Value> = None;
        for arg in &call.args {
            let value = self.eval(arg, scope)?;
            if value.is_error() {
                failed = failed.or(Some(value.clone()));
                if call.stops_early {
                    break;
                }
            }
            args.push(value);
        }
        if let Some(error) = failed {
            return self.called(call.function, call.overload, &call.args, call.id, error);
        }
        if call.grows_accumulator {
            return self.grown(call, args, scope);
        }
        let value = apply(call, &args, &mut self.budget)?;
        self.called(call.function, call.overload, &call.args, call.id, value)
    }

    /// Adds to the accumulator in place: nobody else will see it as it was.
    fn grown(&mut self, call: &'p CallNode, mut args: Vec<Value>, scope: Scope) -> Answer {
        if let Some(values) = self.tracker.take_args(&call.args) {
            let cost = of_call(call.function, call.overload, &values, &Value::Null, &mut self.budget)?;
            self.tracker.add(cost);
        }
        if let Some(state) = scope.checked_sub(1).and_then(|place| self.folds.get_mut(place)) {
            state.accumulated = None;
        }
        let value = match &mut args[..] {
            [Value::List(list), Value::List(more)] => {
                elements(list.len() + more.len())?;
                Arc::make_mut(list).extend(more.iter().cloned());
                args.swap_remove(0)
            }
            [Value::Map(map), key, value] if !map.contains(key) && key.key().is_some() => {
                elements(map.entries.len() + 1)?;
                Arc::make_mut(map).insert(key.clone(), value.clone());
                args.swap_remove(0)
            }
            _ => apply(call, &args, &mut self.budget)?,
        };
        self.reported(call.id, value)
    }

    fn aggregate(&mut self, node: &'p Node, scope: Scope) -> Answer {
        let value = match node {
            Node::List(_, elements) => self.list(elements, scope)?,
            Node::Map(_, entries) => self.map(entries, scope)?,
            _ => Value::Null,
        };
        match node {
            Node::List(_, elements) => {
                self.drop_reported(elements.iter().map(|(element, _)| element));
                self.tracker.add(LIST_CREATION);
            }
            Node::Map(_, entries) => {
                self.drop_reported(entries.iter().flat_map(|(key, value, _)| [key, value]));
                self.tracker.add(MAP_CREATION);
            }
            _ => {}
        }
        self.reported(node.id(), value)
    }

    /// As arguments are, without asking for their values: up to the first that was not reported.
    fn drop_reported(&mut self, nodes: impl DoubleEndedIterator<Item = &'p Node>) {
        for node in nodes.rev() {
            if self.tracker.take_args(std::slice::from_ref(node)).is_none() {
                return;
            }
        }
    }

    fn list(&mut self, nodes: &'p [(Node, bool)], scope: Scope) -> Answer {
        let mut values = Vec::with_capacity(nodes.len());
        for (node, optional) in nodes {
            match (self.eval(node, scope)?, optional) {
                (error @ Value::Error(_), _) => return Ok(error),
                (Value::Optional(None), true) => {}
                (Value::Optional(Some(value)), true) => values.push((*value).clone()),
                (other, true) => {
                    return Ok(Value::error(format!(
                        "cannot initialize optional list element from non-optional value {}",
                        shown(&other)
                    )));
                }
                (value, false) => values.push(value),
            }
        }
        Ok(Value::list(values))
    }

    fn map(&mut self, entries: &'p [EntryNode], scope: Scope) -> Answer {
        let mut map = MapValue::default();
        for (key, value, optional) in entries {
            let key = self.eval(key, scope)?;
            if key.is_error() {
                return Ok(key);
            }
            let value = match (self.eval(value, scope)?, optional) {
                (error @ Value::Error(_), _) => return Ok(error),
                (Value::Optional(None), true) => {
                    if let Some(key) = key.key() {
                        map.entries.remove(&key);
                    }
                    continue;
                }
                (Value::Optional(Some(value)), true) => (*value).clone(),
                (other, true) => {
                    return Ok(Value::error(format!(
                        "cannot initialize optional entry '{}' from non-optional value {}",
                        shown(&key),
                        shown(&other)
                    )));
                }
                (value, false) => value,
            };
            if !map.insert(key.clone(), value) {
                return Err(unhashable(&key));
            }
        }
        Ok(Value::Map(Arc::new(map)))
    }

    fn fold(&mut self, fold: &'p FoldNode, scope: Scope) -> Answer {
        let range = self.eval(&fold.range, scope)?;
        let pairs: Vec<(Value, Value)> = match &range {
            Value::Error(_) => return Ok(range),
            Value::List(list) if fold.second.is_some() => list
                .iter()
                .enumerate()
                .map(|(place, value)| (Value::Int(place as i64), value.clone()))
                .collect(),
            Value::List(list) => list.iter().map(|value| (value.clone(), Value::Null)).collect(),
            Value::Map(map) => map.entries.values().cloned().collect(),
            other => {
                return Ok(Value::error(format!("got '{}', expected iterable type", other.type_name())));
            }
        };
        let (first, second) = (Value::Null, Value::Null);
        self.folds.push(FoldState {
            fold,
            around: scope,
            accumulated: None,
            first,
            second,
            in_result: false,
        });
        let inner = self.folds.len();
        let value = self.folded(fold, pairs, inner);
        self.folds.truncate(inner - 1);
        value
    }

    fn folded(&mut self, fold: &'p FoldNode, pairs: Vec<(Value, Value)>, inner: Scope) -> Answer {
        for (first, second) in pairs {
            let state = &mut self.folds[inner - 1];
            (state.first, state.second) = (first, second);
            if matches!(self.eval(&fold.condition, inner)?, Value::Bool(false)) {
                break;
            }
            let value = self.eval(&fold.step, inner)?;
            self.tracker.forget(fold.step.id());
            self.folds[inner - 1].accumulated = Some(value);
        }
        self.folds[inner - 1].in_result = true;
        self.eval(&fold.result, inner)
    }

    /// What a name stands for.
    fn variable(&mut self, name: &str, scope: Scope) -> Answer {
        let mut scope = scope;
        while scope > OUTERMOST {
            let state = &self.folds[scope - 1];
            let fold = state.fold;
            if *name == *fold.accumulator {
                if let Some(value) = &state.accumulated {
                    return Ok(value.clone());
                }
                // Only worked out when somebody asks.
                let around = state.around;
                let value = self.eval(&fold.init, around)?;
                self.folds[scope - 1].accumulated = Some(value.clone());
                return Ok(value);
            }
            if !state.in_result {
                if *name == *fold.variable {
                    return Ok(state.first.clone());
                }
                if fold.second.as_ref().is_some_and(|second| **second == *name) {
                    return Ok(state.second.clone());
                }
            }
            scope = state.around;
        }
        Ok(match name {
            "device" => self.device.clone(),
            _ => Value::error(format!("no such attribute(s): {name}")),
        })
    }
}

/// Go cannot hash some values, and panics.
fn unhashable(value: &Value) -> Halt {
    let name = match value {
        Value::Bytes(_) => "types.Bytes",
        Value::Semver(_) => "cel.Semver",
        other => other.type_name(),
    };
    Halt::Internal(format!("internal error: runtime error: hash of unhashable type {name}"))
}

fn member(value: Value, set: &BTreeSet<Key>) -> Answer {
    match value {
        error @ Value::Error(_) => Ok(error),
        Value::Bytes(_) | Value::Semver(_) => Err(unhashable(&value)),
        other => Ok(Value::Bool(other.key().is_some_and(|key| set.contains(&key)))),
    }
}

/// Calls with values that are no errors.
pub(crate) fn apply(call: &CallNode, args: &[Value], budget: &mut Budget) -> Answer {
    match &call.target {
        CallTarget::Singleton(singleton) if singleton.operand.has(&args[0]) => {
            (singleton.implementation)(args, budget)
        }
        CallTarget::Singleton(_) if args[0].has_receiver() => Ok(Value::no_such_overload()),
        CallTarget::Singleton(_) => Ok(Value::error(format!("{NO_SUCH_OVERLOAD}: {}", call.function))),
        CallTarget::Regex(regex) => regexes::compiled(call.function, regex, args),
        CallTarget::Overload(overload, function) => match overload.implementation {
            Some(implementation) if !function.guarded || fits(overload, args) => implementation(args, budget),
            _ => Ok(misfit(function, args)),
        },
        CallTarget::Function(function) => {
            for overload in &function.overloads {
                let taken =
                    if function.guarded { fits(overload, args) } else { overload.args.len() == args.len() };
                if let (true, Some(implementation)) = (taken, overload.implementation) {
                    return implementation(args, budget);
                }
            }
            Ok(misfit(function, args))
        }
    }
}

fn misfit(function: &Function, args: &[Value]) -> Value {
    let types: Vec<&str> = args.iter().map(Value::type_name).collect();
    Value::error(format!("{NO_SUCH_OVERLOAD}: {}({})", function.name, types.join(", ")))
}

fn fits(overload: &Overload, args: &[Value]) -> bool {
    overload.args.len() == args.len() && overload.args.iter().zip(args).all(|(of, value)| is_of(of, value))
}

/// Of a list and a map only the first element is looked at.
fn is_of(of: &Type, value: &Value) -> bool {
    if matches!(of, Type::Dyn | Type::Any | Type::Param(_)) {
        return true;
    }
    if of.name() != value.type_name() {
        return false;
    }
    match (of, value) {
        (Type::List(of), Value::List(list)) => list.first().is_none_or(|first| is_of(of, first)),
        (Type::Map(of), Value::Map(map)) => {
            map.entries.values().next().is_none_or(|(key, value)| is_of(&of.0, key) && is_of(&of.1, value))
        }
        _ => true,
    }
}

/// A value in a message, as Go writes it.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Double(value) => go_text::general(*value),
        other => other.type_name().to_owned(),
    }
}
