//! Container images: how their names are compared.

use crate::Name;

/// An image's name with the tag that stands in when none is given.
pub fn normalized(name: &str) -> Name {
    let tag = name.rfind(':');
    let slash = name.rfind('/');
    // A colon before the last slash belongs to the registry's port. None sorts before Some, as -1 would.
    if tag <= slash { format!("{name}:latest").into() } else { name.into() }
}
