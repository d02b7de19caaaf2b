//! Which type fits where, with variables for what is not known yet.

use crate::types::{OPTIONAL, Type};
use std::sync::Arc;

/// Types can grow far beyond the text that they are of; a checker that takes this many steps gives up.
const MOST_STEPS: u64 = 2_000_000;

/// What variables stand for. A trial that fails is taken back.
#[derive(Default)]
pub(crate) struct Substitution {
    bound: Vec<Option<Type>>,
    /// What variables stood for before, newest last.
    trail: Vec<(u32, Option<Type>)>,
    steps: u64,
}

impl Substitution {
    pub(crate) fn new_variable(&mut self) -> Type {
        self.bound.push(None);
        Type::Param((self.bound.len() - 1) as u32)
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.steps > MOST_STEPS
    }

    /// The declared type with variables of its own for each parameter.
    pub(crate) fn instantiate(&mut self, declared: &[Type]) -> Vec<Type> {
        let mut fresh: Vec<(u32, Type)> = Vec::new();
        declared.iter().map(|declared| self.fresh(declared, &mut fresh)).collect()
    }

    fn fresh(&mut self, declared: &Type, fresh: &mut Vec<(u32, Type)>) -> Type {
        match declared {
            Type::Param(number) => match fresh.iter().find(|(known, _)| known == number) {
                Some((_, variable)) => variable.clone(),
                None => {
                    let variable = self.new_variable();
                    fresh.push((*number, variable.clone()));
                    variable
                }
            },
            Type::List(of) => Type::list(self.fresh(of, fresh)),
            Type::Map(of) => {
                let key = self.fresh(&of.0, fresh);
                Type::map(key, self.fresh(&of.1, fresh))
            }
            Type::Opaque(name, Some(of)) => Type::Opaque(name, Some(Arc::new(self.fresh(of, fresh)))),
            Type::Meta(Some(of)) => Type::Meta(Some(Arc::new(self.fresh(of, fresh)))),
            other => other.clone(),
        }
    }

    /// The type with what is known of its variables; those unknown become dyn if that is asked for.
    pub(crate) fn resolve(&mut self, of: &Type, unknown_is_dyn: bool) -> Type {
        self.steps += 1;
        if self.is_exhausted() {
            return Type::Dyn;
        }
        match of {
            Type::Param(number) => match self.bound[*number as usize].clone() {
                Some(bound) => self.resolve(&bound, unknown_is_dyn),
                None if unknown_is_dyn => Type::Dyn,
                None => of.clone(),
            },
            Type::List(of) => Type::list(self.resolve(of, unknown_is_dyn)),
            Type::Map(of) => {
                let key = self.resolve(&of.0, unknown_is_dyn);
                Type::map(key, self.resolve(&of.1, unknown_is_dyn))
            }
            Type::Opaque(name, Some(of)) => {
                Type::Opaque(name, Some(Arc::new(self.resolve(of, unknown_is_dyn))))
            }
            Type::Meta(Some(of)) => Type::Meta(Some(Arc::new(self.resolve(of, unknown_is_dyn)))),
            other => other.clone(),
        }
    }

    pub(crate) fn assignable(&mut self, left: &Type, right: &Type) -> bool {
        self.all_assignable(std::slice::from_ref(left), std::slice::from_ref(right))
    }

    pub(crate) fn all_assignable(&mut self, left: &[Type], right: &[Type]) -> bool {
        self.trail.clear();
        let fits =
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| self.fits(left, right));
        if !fits {
            while let Some((variable, before)) = self.trail.pop() {
                self.bound[variable as usize] = before;
            }
        }
        fits
    }

    fn bind(&mut self, variable: u32, to: Type) {
        let before = self.bound[variable as usize].replace(to);
        self.trail.push((variable, before));
    }

    fn fits(&mut self, left: &Type, right: &Type) -> bool {
        self.steps += 1;
        if self.is_exhausted() {
            return false;
        }
        if let Type::Param(variable) = right {
            match self.substitutable(left, *variable) {
                Substitutable::Yes => return true,
                Substitutable::AgainstItsBinding => return false,
                Substitutable::No => {}
            }
        }
        if let Type::Param(variable) = left {
            return matches!(self.substitutable(right, *variable), Substitutable::Yes);
        }
        if left.is_dyn_or_error() || right.is_dyn_or_error() {
            return true;
        }
        match (left, right) {
            (Type::Null, other) | (other, Type::Null) => nullable(other),
            (Type::Meta(_), Type::Meta(_)) => true,
            (Type::List(left), Type::List(right)) => self.fits(left, right),
            (Type::Map(left), Type::Map(right)) => {
                self.fits(&left.0, &right.0) && self.fits(&left.1, &right.1)
            }
            (Type::Opaque(left, of_left), Type::Opaque(right, of_right)) => {
                left == right
                    && match (of_left, of_right) {
                        (None, None) => true,
                        (Some(left), Some(right)) => self.fits(left, right),
                        _ => false,
                    }
            }
            _ => left == right,
        }
    }

    fn substitutable(&mut self, with: &Type, variable: u32) -> Substitutable {
        if *with == Type::Param(variable) {
            return Substitutable::Yes;
        }
        if let Some(bound) = self.bound[variable as usize].clone() {
            if *with == bound {
                return Substitutable::Yes;
            }
            if self.fits(with, &bound) {
                let general = most_general(with, &bound);
                if !self.occurs(variable, &general) {
                    self.bind(variable, general);
                }
                return Substitutable::Yes;
            }
            return Substitutable::AgainstItsBinding;
        }
        if self.occurs(variable, with) {
            return Substitutable::No;
        }
        self.bind(variable, with.clone());
        Substitutable::Yes
    }

    fn occurs(&mut self, variable: u32, within: &Type) -> bool {
        self.steps += 1;
        if self.is_exhausted() {
            return true;
        }
        match within {
            Type::Param(other) if *other == variable => true,
            Type::Param(other) => match self.bound[*other as usize].clone() {
                Some(bound) => self.occurs(variable, &bound),
                None => false,
            },
            Type::List(of) | Type::Opaque(_, Some(of)) | Type::Meta(Some(of)) => self.occurs(variable, of),
            Type::Map(of) => self.occurs(variable, &of.0) || self.occurs(variable, &of.1),
            _ => false,
        }
    }
}

enum Substitutable {
    Yes,
    AgainstItsBinding,
    No,
}

fn nullable(other: &Type) -> bool {
    matches!(
        other,
        Type::Null | Type::Opaque(..) | Type::Struct(_) | Type::Any | Type::Duration | Type::Timestamp
    )
}

pub(crate) fn most_general(left: &Type, right: &Type) -> Type {
    if is_equal_or_less_specific(left, right) { left.clone() } else { right.clone() }
}

fn is_equal_or_less_specific(left: &Type, right: &Type) -> bool {
    if left.is_dyn() || matches!(left, Type::Param(_)) {
        return true;
    }
    if right.is_dyn() || matches!(right, Type::Param(_)) {
        return false;
    }
    match (left, right) {
        (Type::List(left), Type::List(right)) => is_equal_or_less_specific(left, right),
        (Type::Map(left), Type::Map(right)) => {
            is_equal_or_less_specific(&left.0, &right.0) && is_equal_or_less_specific(&left.1, &right.1)
        }
        (Type::Opaque(OPTIONAL, Some(left)), Type::Opaque(OPTIONAL, Some(right))) => {
            is_equal_or_less_specific(left, right)
        }
        (Type::Meta(_), Type::Meta(_)) => true,
        _ => left == right,
    }
}
