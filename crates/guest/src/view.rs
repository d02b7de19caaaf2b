//! What a plugin sees in a call: the pod, the nodes, and where its answers go.

use crate::{
    Column, PodAttribute, Value,
    attributes::sealed,
    memory::{Frame, host, slice},
};

/// A text that an attribute holds. Equal texts are equal values; their order means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Text(u32);

impl Text {
    /// There is no such label, annotation, ….
    pub const ABSENT: Self = Self(0);

    pub(crate) fn from_id(id: u32) -> Self {
        Self(id)
    }

    pub(crate) fn id(self) -> u32 {
        self.0
    }

    /// Whether there is none.
    pub fn is_absent(self) -> bool {
        self == Self::ABSENT
    }
}

/// The pod that is to be placed.
#[derive(Clone, Copy, Debug)]
pub struct Pod<'a> {
    pub(crate) attributes: PodAttributes<'a>,
    pub(crate) texts: Texts<'a>,
}

/// Where the attributes of the pod are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PodAttributes<'a> {
    /// The address of the first.
    Memory(u32),
    /// In tests.
    Given(&'a [u64]),
}

impl<'a> Pod<'a> {
    /// An attribute that was asked for.
    pub fn get<T: Value>(&self, attribute: PodAttribute<T>) -> T {
        let bits = match self.attributes {
            PodAttributes::Memory(first) => {
                slice::<u64>(first, attribute.index + 1)[attribute.index as usize]
            }
            PodAttributes::Given(attributes) => attributes[attribute.index as usize],
        };
        <T as sealed::Value>::from_bits(bits)
    }

    /// What a text says; empty if it is absent.
    pub fn text(&self, text: Text) -> &'a str {
        self.texts.get(text)
    }
}

/// The texts of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Texts<'a> {
    /// As they lie in memory: address and length of each.
    Memory(&'a [u32]),
    /// In tests.
    List(&'a [String]),
}

impl<'a> Texts<'a> {
    fn get(self, text: Text) -> &'a str {
        let id = text.id() as usize;
        match self {
            Self::Memory(entries) => match entries.get(2 * id..2 * id + 2) {
                Some([at, length]) => std::str::from_utf8(slice(*at, *length)).unwrap_or_default(),
                _ => "",
            },
            Self::List(texts) => id.checked_sub(1).and_then(|id| texts.get(id)).map_or("", String::as_str),
        }
    }
}

/// The nodes. Each has a row; a column is a slice with a value for each row.
///
/// Rows that are not asked about may belong to no node, or to one that cannot take the pod: what is answered for them does
/// not matter, so that loops can run over all rows.
#[derive(Clone, Copy, Debug)]
pub struct Nodes<'a> {
    pub(crate) rows: usize,
    pub(crate) asked: &'a [u32],
    pub(crate) columns: Columns<'a>,
    pub(crate) texts: Texts<'a>,
}

/// Where the columns are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Columns<'a> {
    /// The address of the table of their addresses.
    Memory(u32),
    /// In tests.
    Given(&'a crate::testing::Columns),
}

impl<'a> Nodes<'a> {
    pub(crate) fn of(frame: &Frame) -> Self {
        Self {
            rows: frame.rows as usize,
            asked: slice(frame.asked_rows, frame.asked),
            columns: Columns::Memory(frame.columns),
            texts: Texts::Memory(slice(frame.texts, 2 * frame.text_count)),
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The rows of the nodes that are asked about, ascending.
    pub fn asked(&self) -> impl ExactSizeIterator<Item = usize> + Clone + 'a {
        self.asked.iter().map(|row| *row as usize)
    }

    /// An attribute that was asked for, of every row.
    #[allow(private_bounds, reason = "only i64, f64 and Text are values")]
    pub fn column<T: Value + sealed::Row>(&self, column: Column<T>) -> &'a [T] {
        match self.columns {
            Columns::Memory(table) => {
                let addresses = slice::<u32>(table, column.index + 1);
                slice(addresses[column.index as usize], self.rows as u32)
            }
            Columns::Given(columns) => columns.get(column.index),
        }
    }

    /// What a text says; empty if it is absent.
    pub fn text(&self, text: Text) -> &'a str {
        self.texts.get(text)
    }
}

/// What a filter says of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The pod can run there.
    Fit,
    /// Not now; evicting pods could help.
    Unschedulable,
    /// Not now, and evicting pods would not help.
    Unresolvable,
}

/// Where a filter's answers go. A node about which nothing is said is fit.
#[derive(Debug)]
pub struct Verdicts<'a> {
    pub(crate) codes: &'a mut [u32],
    pub(crate) reasons: &'a mut [u32],
}

impl Verdicts<'_> {
    /// Refuses the node of a row, for a reason that was made with [`crate::Attributes::text`] or [`Self::reason`].
    pub fn refuse(&mut self, row: usize, verdict: Verdict, reason: Text) {
        self.codes[row] = verdict as u32;
        self.reasons[row] = reason.id();
    }

    /// A reason that is only known now. Prefer few different ones: each is kept.
    pub fn reason(&self, text: &str) -> Text {
        Text::from_id(host::intern(text))
    }
}
