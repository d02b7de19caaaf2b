//! Types as the checker knows them, and how the reference writes them.

use std::{fmt::Write, sync::Arc};

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Type {
    Any,
    Bool,
    Bytes,
    Double,
    Duration,
    Dyn,
    Error,
    Int,
    List(Arc<Type>),
    Map(Arc<(Type, Type)>),
    Null,
    /// A type of which only the name is known, and at most one parameter.
    Opaque(&'static str, Option<Arc<Type>>),
    Text,
    Struct(&'static str),
    Timestamp,
    Meta(Option<Arc<Type>>),
    /// In a declaration a parameter, in the checker a variable.
    Param(u32),
    Uint,
}

pub(crate) const OPTIONAL: &str = "optional_type";
pub(crate) const DEVICE: &str = "kubernetes.DRADevice";
pub(crate) const QUANTITY: Type = Type::Struct("kubernetes.Quantity");
pub(crate) const SEMVER: Type = Type::Struct("kubernetes.Semver");
pub(crate) const URL: Type = Type::Struct("kubernetes.URL");
pub(crate) const FORMAT: Type = Type::Struct("kubernetes.NamedFormat");
pub(crate) const IP: Type = Type::Opaque("net.IP", None);
pub(crate) const CIDR: Type = Type::Opaque("net.CIDR", None);

impl Type {
    pub(crate) fn list(of: Type) -> Self {
        Self::List(Arc::new(of))
    }

    pub(crate) fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    pub(crate) fn optional(of: Type) -> Self {
        Self::Opaque(OPTIONAL, Some(Arc::new(of)))
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        self.is_dyn() || *self == Self::Error
    }

    /// What is in the optional, if it is one.
    pub(crate) fn unwrap_optional(&self) -> Option<&Type> {
        match self {
            Self::Opaque(OPTIONAL, Some(inner)) => Some(inner),
            _ => None,
        }
    }

    /// The name at run time.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Any => "google.protobuf.Any",
            Self::Bool => "bool",
            Self::Bytes => "bytes",
            Self::Double => "double",
            Self::Duration => "google.protobuf.Duration",
            Self::Dyn => "dyn",
            Self::Error => "error",
            Self::Int => "int",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Null => "null_type",
            Self::Opaque(name, _) | Self::Struct(name) => name,
            Self::Text => "string",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Meta(_) => "type",
            Self::Param(_) => "param",
            Self::Uint => "uint",
        }
    }

    /// As in messages about types; at most so long.
    pub(crate) fn in_messages(&self) -> String {
        self.written(|kind| match kind {
            Self::Any => "any",
            Self::Duration => "duration",
            Self::Error => "!error!",
            Self::Null => "null",
            Self::Timestamp => "timestamp",
            other => other.name(),
        })
    }

    /// As the result of an expression is told.
    pub(crate) fn as_result(&self) -> String {
        self.written(Self::name)
    }

    fn written(&self, name: fn(&Self) -> &'static str) -> String {
        let mut text = String::new();
        self.write(name, &mut text);
        text
    }

    fn write(&self, name: fn(&Self) -> &'static str, text: &mut String) {
        if let Self::Param(number) = self {
            let _ = write!(text, "_var{number}");
            return;
        }
        text.push_str(name(self));
        if text.len() > LONGEST_WRITTEN {
            return;
        }
        let parameters: &[&Type] = match self {
            Self::List(of) | Self::Opaque(_, Some(of)) | Self::Meta(Some(of)) => &[of],
            Self::Map(of) => &[&of.0, &of.1],
            _ => return,
        };
        text.push('(');
        for (place, parameter) in parameters.iter().enumerate() {
            if place > 0 {
                text.push_str(", ");
            }
            parameter.write(name, text);
        }
        text.push(')');
    }
}

/// Types can be far larger than the text that they are of.
const LONGEST_WRITTEN: usize = 4096;
