//! What a plugin asks for when it starts.

use std::marker::PhantomData;

use crate::{Text, memory::host};

/// How an attribute is read: as `i64`, `f64` or [`Text`].
pub trait Value: Copy + 'static + sealed::Value {}
impl Value for i64 {}
impl Value for f64 {}
impl Value for Text {}

pub(crate) mod sealed {
    use crate::{Text, memory::Plain};

    pub trait Value {
        const FORM: u32;
        fn from_bits(bits: u64) -> Self;
    }

    impl Value for i64 {
        const FORM: u32 = 0;
        fn from_bits(bits: u64) -> Self {
            bits as Self
        }
    }

    impl Value for f64 {
        const FORM: u32 = 1;
        fn from_bits(bits: u64) -> Self {
            Self::from_bits(bits)
        }
    }

    impl Value for Text {
        const FORM: u32 = 2;
        fn from_bits(bits: u64) -> Self {
            Self::from_id(bits as u32)
        }
    }

    /// A column holds values side by side.
    #[allow(private_bounds, reason = "only these three types are values")]
    pub trait Row: Plain + Value {}
    impl<T: Plain + Value> Row for T {}
}

/// An attribute of all nodes, to be looked up in [`crate::Nodes`].
#[derive(Clone, Copy, Debug)]
pub struct Column<T> {
    pub(crate) index: u32,
    of: PhantomData<T>,
}

/// An attribute of the pod, to be looked up in [`crate::Pod`].
#[derive(Clone, Copy, Debug)]
pub struct PodAttribute<T> {
    pub(crate) index: u32,
    of: PhantomData<T>,
}

/// The arguments that the configuration gives to the plugin.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a>(pub(crate) &'a str);

impl<'a> Args<'a> {
    /// As JSON; `{}` if there are none.
    pub fn text(self) -> &'a str {
        self.0
    }

    /// As a type of the plugin's own.
    ///
    /// # Errors
    /// What is wrong with them, for the plugin to return.
    #[cfg(feature = "json")]
    pub fn read<T: serde::de::DeserializeOwned>(self) -> Result<T, String> {
        serde_json::from_str(self.0).map_err(|error| format!("its arguments cannot be read: {error}"))
    }
}

/// Where a plugin asks for attributes. An attribute that there is not, or whose name is misspelt, is an error of the configuration.
#[derive(Debug)]
pub struct Attributes(pub(crate) ());

impl Attributes {
    /// An attribute of every node, such as `label:disk`, `allocatable:cpu`, `requested:memory`, `free:cpu`, `pods` or `name`.
    ///
    /// As a number, what is absent or not a number is `i64::MIN` or `f64::NAN`; as a text it is [`Text::ABSENT`]. Of cpu,
    /// numbers are thousandths of a core; of memory and disk, bytes.
    pub fn node<T: Value>(&mut self, attribute: &str) -> Column<T> {
        Column { index: host::node_column(attribute, T::FORM), of: PhantomData }
    }

    /// An attribute of the pod, such as `label:app`, `request:cpu`, `priority`, `namespace` or `json`.
    pub fn pod<T: Value>(&mut self, attribute: &str) -> PodAttribute<T> {
        PodAttribute { index: host::pod_attribute(attribute, T::FORM), of: PhantomData }
    }

    /// The text of a value, to compare attributes with: equal texts are equal values, so that no text is compared in a loop.
    pub fn text(&mut self, text: &str) -> Text {
        Text::from_id(host::intern(text))
    }
}
