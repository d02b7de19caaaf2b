//! The functions of the environment that DRA selectors are compiled in: of CEL itself, of cel-go's extensions (strings 2, sets,
//! lists 3, two-variable comprehensions, optionals) and of Kubernetes.

/// The names of the overloads of a function of lists, one for each of the [`comparable`] types; cel-go and Kubernetes call times
/// differently.
macro_rules! ids_by_type {
    ($name:ident, $duration:literal, $timestamp:literal, $suffix:literal) => {
        const $name: [&str; 8] = [
            concat!("list_int_", $suffix),
            concat!("list_uint_", $suffix),
            concat!("list_double_", $suffix),
            concat!("list_bool_", $suffix),
            concat!("list_", $duration, "_", $suffix),
            concat!("list_", $timestamp, "_", $suffix),
            concat!("list_string_", $suffix),
            concat!("list_bytes_", $suffix),
        ];
    };
}

mod extensions;
mod kubernetes;
mod standard;

use crate::{
    budget::{Budget, Halt},
    types::Type,
    value::Value,
};
use std::{collections::HashMap, sync::OnceLock};

/// The types whose values have an order.
fn comparable() -> [Type; 8] {
    use Type::*;
    [Int, Uint, Double, Bool, Duration, Timestamp, Text, Bytes]
}

pub(crate) type Implementation = fn(&[Value], &mut Budget) -> Result<Value, Halt>;

pub(crate) struct Overload {
    pub(crate) id: &'static str,
    pub(crate) member: bool,
    pub(crate) args: Vec<Type>,
    pub(crate) result: Type,
    /// Operators and what stands for the whole function have none of their own.
    pub(crate) implementation: Option<Implementation>,
    /// Arguments behind one that fails are not evaluated.
    pub(crate) stops_early: bool,
}

/// One implementation for all overloads, for values of types that have the trait.
#[derive(Clone, Copy)]
pub(crate) struct Singleton {
    pub(crate) implementation: Implementation,
    pub(crate) operand: Trait,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Trait {
    Every,
    Adder,
    Comparer,
    Divider,
    Lister,
    Matcher,
    Modder,
    Multiplier,
    Negator,
    Sizer,
    Subtractor,
}

impl Trait {
    pub(crate) fn has(self, value: &Value) -> bool {
        use Value::*;
        let number = matches!(value, Int(_) | Uint(_) | Double(_));
        match self {
            Self::Every => true,
            Self::Adder => number || matches!(value, Bytes(_) | Duration(_) | Moment(_) | Text(_) | List(_)),
            Self::Comparer => crate::value::is_comparable(value),
            Self::Divider | Self::Multiplier => number,
            Self::Lister => matches!(value, List(_)),
            Self::Matcher => matches!(value, Text(_)),
            Self::Modder => matches!(value, Int(_) | Uint(_)),
            Self::Negator => matches!(value, Bool(_) | Int(_) | Double(_) | Duration(_)),
            Self::Sizer => matches!(value, Text(_) | Bytes(_) | List(_) | Map(_)),
            Self::Subtractor => number || matches!(value, Duration(_) | Moment(_)),
        }
    }
}

pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) overloads: Vec<Overload>,
    pub(crate) singleton: Option<Singleton>,
    /// Arguments are checked before the implementation sees them.
    pub(crate) guarded: bool,
}

#[derive(Default)]
pub(crate) struct Functions {
    by_name: HashMap<&'static str, Function>,
}

impl Functions {
    pub(crate) fn get(&self, name: &str) -> Option<&Function> {
        self.by_name.get(name)
    }

    fn function(&mut self, name: &'static str) -> &mut Function {
        self.by_name.entry(name).or_insert_with(|| Function {
            name,
            overloads: Vec::new(),
            singleton: None,
            guarded: true,
        })
    }
}

impl Function {
    fn overload(
        &mut self,
        id: &'static str,
        args: Vec<Type>,
        result: Type,
        implementation: Implementation,
    ) -> &mut Self {
        // As the reference declares them: three arguments and more are handed over as a list.
        let stops_early = args.len() > 2;
        let implementation = Some(implementation);
        self.overloads.push(Overload { id, member: false, args, result, implementation, stops_early });
        self
    }

    fn member(
        &mut self,
        id: &'static str,
        args: Vec<Type>,
        result: Type,
        implementation: Implementation,
    ) -> &mut Self {
        self.overload(id, args, result, implementation);
        self.last().member = true;
        self
    }

    /// What has no implementation of its own.
    fn declared(&mut self, id: &'static str, args: Vec<Type>, result: Type) -> &mut Self {
        self.overloads.push(Overload {
            id,
            member: false,
            args,
            result,
            implementation: None,
            stops_early: false,
        });
        self
    }

    fn declared_member(&mut self, id: &'static str, args: Vec<Type>, result: Type) -> &mut Self {
        self.declared(id, args, result);
        self.last().member = true;
        self
    }

    fn last(&mut self) -> &mut Overload {
        let last = self.overloads.len() - 1;
        &mut self.overloads[last]
    }

    fn singleton(&mut self, operand: Trait, implementation: Implementation) -> &mut Self {
        self.singleton = Some(Singleton { implementation, operand });
        self
    }

    fn unguarded(&mut self) -> &mut Self {
        self.guarded = false;
        self
    }
}

pub(crate) fn functions() -> &'static Functions {
    static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let mut functions = Functions::default();
        standard::declare(&mut functions);
        extensions::declare(&mut functions);
        kubernetes::declare(&mut functions);
        functions
    })
}

/// The types that an expression can name, by that name.
pub(crate) fn type_named(name: &str) -> Option<Type> {
    let param = || Type::Param(0);
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "google.protobuf.Duration" => Type::Duration,
        "int" => Type::Int,
        "list" => Type::list(param()),
        "map" => Type::map(param(), Type::Param(1)),
        "null_type" => Type::Null,
        "string" => Type::Text,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "type" => Type::Meta(None),
        "uint" => Type::Uint,
        "optional_type" => Type::optional(Type::Dyn),
        "net.IP" => crate::types::IP,
        "net.CIDR" => crate::types::CIDR,
        _ => return None,
    })
}
