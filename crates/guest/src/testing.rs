//! Tries a plugin without a host: attributes are written down by hand, and what it answers can be compared.
//!
//! ```
//! use supercargo_guest::{Args, Column, Attributes, Nodes, Plugin, Pod, testing::Scene};
//!
//! struct MostPods(Column<i64>);
//!
//! impl Plugin for MostPods {
//!     fn new(_: Args<'_>, attributes: &mut Attributes) -> Result<Self, String> {
//!         Ok(Self(attributes.node("pods")))
//!     }
//!     fn score(&self, _: &Pod<'_>, nodes: &Nodes<'_>, scores: &mut [i64]) -> Result<(), String> {
//!         scores.copy_from_slice(nodes.column(self.0));
//!         Ok(())
//!     }
//! }
//!
//! let scene = Scene::<MostPods>::new("{}").unwrap().node(&[("pods", 3.into())]).node(&[("pods", 5.into())]);
//! assert_eq!(scene.scores(), Ok(Some(vec![3, 5])));
//! ```

use std::{any::Any, cell::RefCell, collections::HashMap};

use crate::{
    Args, Attributes, Nodes, Plugin, Pod, PreScore, Text, Verdict, Verdicts,
    attributes::sealed::Row,
    view::{Columns as Given, PodAttributes, Texts},
};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// A number.
    Number(i64),
    /// A text; as a number it is read.
    Text(String),
}

impl From<i64> for Attribute {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

type Written = HashMap<String, Attribute>;

/// A plugin, some nodes and a pod. Attributes that are not written down are absent, as in a cluster.
#[derive(Debug)]
pub struct Scene<P> {
    plugin: P,
    asked_for: Asked,
    nodes: Vec<Written>,
    pod: Written,
}

/// What a plugin asked for: each attribute with the number of its form.
#[derive(Clone, Debug, Default)]
struct Asked {
    node: Vec<(String, u32)>,
    pod: Vec<(String, u32)>,
}

thread_local! {
    static ASKED: RefCell<Asked> = RefCell::default();
    static TEXTS: RefCell<Vec<String>> = RefCell::default();
}

/// Stands in for the host's functions.
pub(crate) mod host {
    use super::{ASKED, TEXTS};

    #[allow(dead_code, reason = "only used where there is no host")]
    pub(crate) fn node_column(attribute: &str, form: u32) -> u32 {
        ASKED.with_borrow_mut(|asked| place(&mut asked.node, attribute, form))
    }

    #[allow(dead_code, reason = "only used where there is no host")]
    pub(crate) fn pod_attribute(attribute: &str, form: u32) -> u32 {
        ASKED.with_borrow_mut(|asked| place(&mut asked.pod, attribute, form))
    }

    fn place(attributes: &mut Vec<(String, u32)>, attribute: &str, form: u32) -> u32 {
        attributes.push((attribute.to_owned(), form));
        attributes.len() as u32 - 1
    }

    pub(crate) fn intern(text: &str) -> u32 {
        TEXTS.with_borrow_mut(|texts| {
            let known = texts.iter().position(|other| other == text);
            let index = known.unwrap_or_else(|| {
                texts.push(text.to_owned());
                texts.len() - 1
            });
            index as u32 + 1
        })
    }

    #[allow(dead_code, reason = "only used where there is no host")]
    pub(crate) fn fail(_: &str) {}

    /// Tests see it as they see all output.
    #[allow(clippy::print_stderr, reason = "there is no other log where there is no host")]
    pub(crate) fn log(level: u32, line: &str) {
        eprintln!("guest log, level {level}: {line}");
    }
}

/// Columns that were written down, each a vector of its type.
#[derive(Debug)]
pub(crate) struct Columns(Vec<Box<dyn Any>>);

impl Columns {
    #[allow(private_bounds, reason = "only i64, f64 and Text are values")]
    pub(crate) fn get<T: Row>(&self, index: u32) -> &[T] {
        self.0[index as usize].downcast_ref::<Vec<T>>().expect("the type that was asked for")
    }
}

fn integer(attribute: Option<&Attribute>) -> i64 {
    match attribute {
        Some(Attribute::Number(number)) => *number,
        Some(Attribute::Text(text)) => text.parse().unwrap_or(i64::MIN),
        None => i64::MIN,
    }
}

fn real(attribute: Option<&Attribute>) -> f64 {
    match attribute {
        Some(Attribute::Number(number)) => *number as f64,
        Some(Attribute::Text(text)) => text.parse().unwrap_or(f64::NAN),
        None => f64::NAN,
    }
}

fn text(attribute: Option<&Attribute>) -> Text {
    Text::from_id(match attribute {
        Some(Attribute::Number(number)) => host::intern(&number.to_string()),
        Some(Attribute::Text(text)) => host::intern(text),
        None => 0,
    })
}

fn column(nodes: &[Written], attribute: &str, form: u32) -> Box<dyn Any> {
    let of_nodes = nodes.iter().map(|node| node.get(attribute));
    match form {
        0 => Box::new(of_nodes.map(integer).collect::<Vec<_>>()),
        1 => Box::new(of_nodes.map(real).collect::<Vec<_>>()),
        _ => Box::new(of_nodes.map(text).collect::<Vec<_>>()),
    }
}

fn bits(attribute: Option<&Attribute>, form: u32) -> u64 {
    match form {
        0 => integer(attribute) as u64,
        1 => real(attribute).to_bits(),
        _ => u64::from(text(attribute).id()),
    }
}

impl<P: Plugin> Scene<P> {
    /// Makes the plugin with its arguments, as JSON.
    ///
    /// # Errors
    /// What the plugin says is wrong with them.
    pub fn new(args: &str) -> Result<Self, String> {
        ASKED.take();
        let plugin = P::new(Args(args), &mut Attributes(()))?;
        Ok(Self { plugin, asked_for: ASKED.take(), nodes: Vec::new(), pod: Written::new() })
    }

    /// Adds a node with these attributes.
    #[must_use]
    pub fn node(mut self, attributes: &[(&str, Attribute)]) -> Self {
        self.nodes.push(written(attributes));
        self
    }

    /// The pod has these attributes.
    #[must_use]
    pub fn pod(mut self, attributes: &[(&str, Attribute)]) -> Self {
        self.pod = written(attributes);
        self
    }

    fn show<T>(&self, show: impl FnOnce(&P, &Pod<'_>, &Nodes<'_>) -> T) -> T {
        let Asked { node, pod } = &self.asked_for;
        let columns =
            Columns(node.iter().map(|(attribute, form)| column(&self.nodes, attribute, *form)).collect());
        let attributes: Vec<u64> =
            pod.iter().map(|(attribute, form)| bits(self.pod.get(attribute), *form)).collect();
        let asked: Vec<u32> = (0..self.nodes.len() as u32).collect();
        let texts = TEXTS.with_borrow(Clone::clone);
        let texts = Texts::List(&texts);
        let nodes = Nodes { rows: self.nodes.len(), asked: &asked, columns: Given::Given(&columns), texts };
        show(&self.plugin, &Pod { attributes: PodAttributes::Given(&attributes), texts }, &nodes)
    }

    /// The scores of the nodes, before they are normalized; `None` if the plugin skips the pod.
    ///
    /// # Errors
    /// As the plugin's.
    pub fn scores(&self) -> Result<Option<Vec<i64>>, String> {
        self.show(|plugin, pod, nodes| {
            if plugin.pre_score(pod, nodes)? == PreScore::Skip {
                return Ok(None);
            }
            let mut scores = vec![0; nodes.rows()];
            plugin.score(pod, nodes, &mut scores)?;
            Ok(Some(scores))
        })
    }

    /// The scores of the nodes after normalizing; `None` if the plugin skips the pod.
    ///
    /// # Errors
    /// As the plugin's.
    pub fn normalized(&self) -> Result<Option<Vec<i64>>, String> {
        let Some(mut scores) = self.scores()? else { return Ok(None) };
        self.show(|plugin, pod, nodes| plugin.normalize(pod, nodes, &mut scores))?;
        Ok(Some(scores))
    }

    /// What the plugin says of each node, and why.
    ///
    /// # Errors
    /// As the plugin's.
    pub fn verdicts(&self) -> Result<Vec<(Verdict, String)>, String> {
        let rows = self.nodes.len();
        let (mut codes, mut reasons) = (vec![0; rows], vec![0; rows]);
        self.show(|plugin, pod, nodes| {
            let mut verdicts = Verdicts { codes: &mut codes, reasons: &mut reasons };
            plugin.filter(pod, nodes, &mut verdicts)
        })?;
        let verdict = |code: &u32| match code {
            0 => Verdict::Fit,
            1 => Verdict::Unschedulable,
            _ => Verdict::Unresolvable,
        };
        let texts = TEXTS.with_borrow(Clone::clone);
        let reason = |id: &u32| id.checked_sub(1).map_or(String::new(), |id| texts[id as usize].clone());
        Ok(codes.iter().map(verdict).zip(reasons.iter().map(reason)).collect())
    }
}

fn written(attributes: &[(&str, Attribute)]) -> Written {
    attributes.iter().map(|(name, attribute)| ((*name).to_owned(), attribute.clone())).collect()
}
