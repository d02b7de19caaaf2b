//! Which of many labelled things selectors select, found by label rather than by asking each.
//!
//! A requirement costs one bit operation for 64 things, and a look-up for each of its values: a selector of the largest
//! size that the API server takes (some 10⁵ values) stays within milliseconds, whatever it says. Asked thing by thing, the
//! cost is the product of both.

use crate::{
    Cluster, HashMap, Name, NodeId,
    bits::Bits,
    label_columns::LabelColumns,
    selector::{NODE_NAME_FIELD, NodeSelectorTerm, Operator, Requirement, Selector},
};

/// What a selector costs to be asked about one thing, in comparisons: a bound for asking thing by thing.
pub const FEW_COMPARISONS: usize = 32;

/// How many comparisons requirements may take for one thing.
pub fn comparisons(requirements: &[Requirement]) -> usize {
    requirements.iter().map(|requirement| 1 + requirement.values.len()).sum()
}

/// A place in a table.
pub(crate) trait TableIndex: Copy {
    fn place(self) -> usize;
}

impl TableIndex for u32 {
    fn place(self) -> usize {
        self as usize
    }
}

impl TableIndex for NodeId {
    fn place(self) -> usize {
        self.index()
    }
}

/// Things by their labels.
pub(crate) trait LabelIndex {
    type Place: TableIndex;

    /// The things with a value of a label.
    fn with_value(&self, key: &str, value: &str) -> &[Self::Place];

    /// All values of a label, with the things that have them.
    fn values(&self, key: &str) -> impl Iterator<Item = (&Name, &[Self::Place])>;
}

/// Pods of classes by label: key, value, places.
pub(crate) type ByLabel = HashMap<Name, HashMap<Name, Vec<u32>>>;

impl LabelIndex for ByLabel {
    type Place = u32;

    fn with_value(&self, key: &str, value: &str) -> &[u32] {
        self.get(key).and_then(|values| values.get(value)).map_or(&[], |places| places)
    }

    fn values(&self, key: &str) -> impl Iterator<Item = (&Name, &[u32])> {
        self.get(key).into_iter().flatten().map(|(value, places)| (value, &places[..]))
    }
}

impl LabelIndex for LabelColumns {
    type Place = NodeId;

    fn with_value(&self, key: &str, value: &str) -> &[NodeId] {
        let column = self.get(key);
        column.and_then(|column| Some(column.nodes(column.number(value)?))).unwrap_or(&[])
    }

    fn values(&self, key: &str) -> impl Iterator<Item = (&Name, &[NodeId])> {
        self.get(key).into_iter().flat_map(|column| {
            (0..column.range() as u32)
                .filter_map(|number| Some((column.value(number)?, column.nodes(number))))
                .filter(|(_, nodes)| !nodes.is_empty())
        })
    }
}

/// Selects among labelled things, for as many selectors as there are.
pub(crate) struct Selection<'a, I: LabelIndex> {
    index: &'a I,
    everyone: Bits,
    /// Things with a value that many have, by the address of their list: the next selector may ask for it as well.
    common: HashMap<usize, Bits>,
    /// Things that have a label, by key.
    labelled: HashMap<Name, Bits>,
    found: Bits,
}

impl<'a, I: LabelIndex> Selection<'a, I> {
    pub(crate) fn new(index: &'a I, everyone: Bits) -> Self {
        let (common, labelled) = (HashMap::default(), HashMap::default());
        Self { index, everyone, common, labelled, found: Bits::default() }
    }

    /// How many words it takes to look at everything.
    pub(crate) fn words(&self) -> usize {
        self.everyone.words().len()
    }

    /// What a selector selects.
    pub(crate) fn select(&mut self, selector: &Selector, selected: &mut Bits) {
        match selector {
            Selector::Nothing => selected.clear(),
            Selector::All(requirements) => {
                selected.clone_from(&self.everyone);
                self.narrow(requirements, selected);
            }
        }
    }

    /// What is left of a set if all requirements must be met.
    pub(crate) fn narrow(&mut self, requirements: &[Requirement], selected: &mut Bits) {
        for requirement in requirements {
            self.found.clear();
            match requirement.operator {
                Operator::In | Operator::NotIn => {
                    requirement.values.iter().for_each(|value| self.find_value(&requirement.key, value));
                }
                Operator::Exists | Operator::DoesNotExist => self.find_key(&requirement.key),
                Operator::Gt | Operator::Lt => {
                    let values = self.index.values(&requirement.key);
                    let met = values.filter(|(value, _)| requirement.matches_value(Some(value)));
                    met.flat_map(|(_, places)| places).for_each(|place| self.found.insert(place.place()));
                }
            }
            match requirement.operator {
                Operator::NotIn | Operator::DoesNotExist => selected.take_out(&self.found),
                _ => selected.keep_only(&self.found),
            }
        }
    }

    fn find_value(&mut self, key: &str, value: &str) {
        let places = self.index.with_value(key, value);
        if places.len() <= self.everyone.words().len() {
            places.iter().for_each(|place| self.found.insert(place.place()));
            return;
        }
        let bits = (self.common.entry(places.as_ptr() as usize))
            .or_insert_with(|| places.iter().map(|place| place.place()).collect());
        self.found.add_all(bits);
    }

    fn find_key(&mut self, key: &Name) {
        if !self.labelled.contains_key(key) {
            let places = self.index.values(key).flat_map(|(_, places)| places);
            self.labelled.insert(key.clone(), places.map(|place| place.place()).collect());
        }
        self.found.add_all(&self.labelled[key]);
    }
}

/// Selects among nodes.
pub struct NodeSelection<'a> {
    cluster: &'a Cluster,
    labels: Selection<'a, LabelColumns>,
}

impl<'a> NodeSelection<'a> {
    /// Among all nodes of a cluster.
    pub fn new(cluster: &'a Cluster) -> Self {
        let nodes = cluster.columns().live.places().clone();
        Self { cluster, labels: Selection::new(cluster.label_columns(), nodes) }
    }

    /// The nodes that a term of a node selector selects.
    pub fn select(&mut self, term: &NodeSelectorTerm, selected: &mut Bits) {
        selected.clear();
        if term.is_empty() || term.defect().is_some() {
            return;
        }
        selected.clone_from(&self.labels.everyone);
        self.labels.narrow(&term.match_expressions, selected);
        for field in &term.match_fields {
            self.narrow_by_field(field, selected);
        }
    }

    /// A field that nodes do not have reads as the empty string.
    fn narrow_by_field(&self, field: &Requirement, selected: &mut Bits) {
        if &*field.key != NODE_NAME_FIELD {
            if !field.matches_value(Some("")) {
                selected.clear();
            }
            return;
        }
        let named = field.values.iter().filter_map(|name| self.cluster.node(name));
        let named = named.map(|node| node.id.index()).collect();
        match field.operator {
            Operator::NotIn => selected.take_out(&named),
            _ => selected.keep_only(&named),
        }
    }
}
