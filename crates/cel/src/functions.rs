//! What functions do. Each takes its arguments, which are of the declared types if the function is guarded.

pub(crate) mod conversions;
pub(crate) mod formats;
pub(crate) mod lists;
pub(crate) mod net;
pub(crate) mod operators;
pub(crate) mod optionals;
pub(crate) mod quantities;
pub(crate) mod regexes;
pub(crate) mod text;
pub(crate) mod text_format;
pub(crate) mod time;
pub(crate) mod url;
pub(crate) mod versions;
