//! Names with what is selected from them: `device.attributes["domain"].?name`.

use super::{Answer, Evaluator, Scope, shown};
use crate::{
    ast::Id,
    budget::Halt,
    functions::conversions,
    plan::{Attribute, AttributeSource, Qualifier},
    value::{MapValue, Value},
};
use std::sync::Arc;

/// What a key leads to.
enum Looked {
    Up(Value),
    Absent,
    Failed(Value),
}

impl<'p> Evaluator<'p> {
    pub(super) fn attribute(&mut self, attribute: &'p Attribute, scope: Scope) -> Answer {
        let value = self.resolve(attribute, scope)?;
        self.count(attribute);
        self.reported(attribute.id(), value)
    }

    pub(super) fn test(&mut self, id: Id, attribute: &'p Attribute, scope: Scope) -> Answer {
        let value = match self.resolve(attribute, scope)? {
            Value::Optional(inner) => Value::Bool(inner.is_some()),
            other => other,
        };
        self.count(attribute);
        // Whether something is there costs nothing by itself.
        self.tracker.take_back(1);
        self.reported(id, value)
    }

    fn count(&mut self, attribute: &Attribute) {
        match &attribute.source {
            AttributeSource::Conditional(_, branches) => {
                for id in [branches.no.id(), branches.yes.id(), branches.condition.id()] {
                    self.tracker.drop_to(id);
                }
            }
            _ => {
                self.tracker.drop_to(attribute.id());
                self.tracker.add(1);
            }
        }
    }

    fn resolve(&mut self, attribute: &'p Attribute, scope: Scope) -> Answer {
        let value = match &attribute.source {
            AttributeSource::Variable(_, name) => self.variable(name, scope)?,
            AttributeSource::Value(_, node) => self.eval(node, scope)?,
            AttributeSource::Conditional(_, branches) => {
                return match self.eval(&branches.condition, scope)? {
                    Value::Bool(true) => self.resolve(&branches.yes, scope),
                    Value::Bool(false) => self.resolve(&branches.no, scope),
                    error @ Value::Error(_) => Ok(error),
                    _ => Ok(Value::no_such_overload()),
                };
            }
        };
        if value.is_error() {
            return Ok(value);
        }
        self.qualified(value, &attribute.qualifiers, scope)
    }

    fn qualified(&mut self, value: Value, qualifiers: &'p [Arc<Qualifier>], scope: Scope) -> Answer {
        let (mut current, mut optional) = match value {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => (without_default(&inner), true),
            other => (other, false),
        };
        for qualifier in qualifiers {
            optional |= qualifier.is_optional();
            match self.qualify(qualifier, &current, optional, scope)? {
                Looked::Up(value) => current = value,
                Looked::Absent => return Ok(Value::Optional(None)),
                Looked::Failed(error) => return Ok(error),
            }
        }
        Ok(if optional { Value::some(current) } else { current })
    }

    fn qualify(
        &mut self,
        qualifier: &'p Qualifier,
        of: &Value,
        if_present: bool,
        scope: Scope,
    ) -> Result<Looked, Halt> {
        let looked = match qualifier {
            Qualifier::Constant { key, test_only: true, .. } => match look_up(of, key, true) {
                looked if if_present => looked,
                Looked::Up(_) => Looked::Up(Value::Bool(true)),
                Looked::Absent => Looked::Up(Value::Bool(false)),
                failed => failed,
            },
            Qualifier::Constant { key, .. } => look_up(of, key, if_present),
            Qualifier::Computed { key, .. } => match self.resolve(key, scope)? {
                error @ Value::Error(_) => Looked::Failed(error),
                found => look_up(of, &found, if_present),
            },
        };
        let value = match &looked {
            Looked::Up(value) | Looked::Failed(value) => value,
            Looked::Absent => return Ok(looked),
        };
        if if_present && matches!(looked, Looked::Failed(_)) {
            // What fails is not present, and nothing is reported.
            return Ok(looked);
        }
        if let Qualifier::Computed { key, relative: true, .. } = qualifier {
            self.tracker.drop_to(key.id());
        }
        self.tracker.add(1);
        self.tracker.report(qualifier.id(), value)?;
        Ok(looked)
    }
}

/// The reference looks into an optional's value as Go has it, where maps have no default.
fn without_default(value: &Value) -> Value {
    match value {
        Value::Map(map) if map.default.is_some() => {
            Value::Map(Arc::new(MapValue { entries: map.entries.clone(), default: None }))
        }
        other => other.clone(),
    }
}

fn look_up(of: &Value, key: &Value, if_present: bool) -> Looked {
    use Value::*;
    if !matches!(key, Text(_) | Int(_) | Uint(_) | Bool(_) | Double(_)) {
        return Looked::Failed(Value::error(format!("invalid qualifier type: {}", key.type_name())));
    }
    let missing =
        |message: String| if if_present { Looked::Absent } else { Looked::Failed(Value::error(message)) };
    match of {
        Map(map) => match map.find(key) {
            Some(value) => Looked::Up(value.clone()),
            None => missing(format!("no such key: {}", shown(key))),
        },
        List(list) => match place(key) {
            Ok(place) => match usize::try_from(place).ok().and_then(|place| list.get(place)) {
                Some(value) => Looked::Up(value.clone()),
                None => missing(format!("index out of bounds: {}", shown(key))),
            },
            Err(message) => Looked::Failed(Value::error(message)),
        },
        Error(_) => Looked::Failed(of.clone()),
        _ => missing(format!("no such key: {}", shown(key))),
    }
}

fn place(key: &Value) -> Result<i64, String> {
    let unsupported = || format!("unsupported index value {} in list", shown(key));
    match key {
        Value::Int(place) => Ok(*place),
        Value::Uint(place) => i64::try_from(*place).map_err(|_| unsupported()),
        Value::Double(place) => {
            match conversions::to_int(&[Value::Double(*place)], &mut crate::budget::Budget::new()) {
                Ok(Value::Int(whole)) if whole as f64 == *place => Ok(whole),
                _ => Err(unsupported()),
            }
        }
        other => Err(format!("unsupported index type '{}' in list", other.type_name())),
    }
}
