//! Taints of nodes and tolerations of pods.

use serde::Deserialize;

use crate::{HashSet, Name, work};

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum TaintEffect {
    /// New pods stay away.
    NoSchedule,
    /// New pods stay away if they can.
    PreferNoSchedule,
    /// New pods stay away, running ones are evicted.
    NoExecute,
}

impl TaintEffect {
    /// Whether the effect keeps a new pod off the node.
    pub fn repels(self) -> bool {
        matches!(self, Self::NoSchedule | Self::NoExecute)
    }
}

/// A mark on a node that pods must tolerate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Taint {
    /// Its key.
    pub key: Name,
    /// Its value.
    #[serde(default)]
    pub value: Name,
    /// What it does.
    pub effect: TaintEffect,
}

/// As `kubectl taint` takes it.
impl std::fmt::Display for Taint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key, value, effect } = self;
        if value.is_empty() { write!(f, "{key}:{effect:?}") } else { write!(f, "{key}={value}:{effect:?}") }
    }
}

/// How a toleration compares its value with a taint's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub enum TolerationOperator {
    /// The values are equal.
    #[default]
    Equal,
    /// Any value will do.
    Exists,
    /// Off by default in Kubernetes 1.36, and then tolerates nothing.
    Lt,
    /// Off by default in Kubernetes 1.36, and then tolerates nothing.
    Gt,
}

/// What a pod tolerates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Toleration {
    /// The taint's key; empty: any.
    #[serde(default)]
    pub key: Name,
    /// The comparison.
    #[serde(default, deserialize_with = "operator")]
    pub operator: TolerationOperator,
    /// The taint's value.
    #[serde(default)]
    pub value: Name,
    /// The taint's effect; absent: any.
    #[serde(default, deserialize_with = "effect")]
    pub effect: Option<TaintEffect>,
}

impl Toleration {
    /// Whether it tolerates a taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        work::done(1);
        self.effect.is_none_or(|effect| effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && match self.operator {
                TolerationOperator::Equal => self.value == taint.value,
                TolerationOperator::Exists => true,
                TolerationOperator::Lt | TolerationOperator::Gt => false,
            }
    }
}

/// Up to so many tolerations are asked one by one.
const FEW_TOLERATIONS: usize = 16;

/// The tolerations of a pod. Whether a taint is tolerated costs a few look-ups, however many there are.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Vec<Toleration>")]
pub struct Tolerations {
    list: Vec<Toleration>,
    /// All of them, if they are many. Those that do not look at the value have none.
    index: HashSet<Toleration>,
}

impl Tolerations {
    /// Whether any of them tolerates a taint.
    pub fn tolerate(&self, taint: &Taint) -> bool {
        if self.index.is_empty() {
            return self.list.iter().any(|toleration| toleration.tolerates(taint));
        }
        let keys = [&taint.key, &Name::default()].map(Clone::clone);
        let tests =
            [(TolerationOperator::Equal, taint.value.clone()), (TolerationOperator::Exists, Name::default())];
        keys.iter().any(|key| {
            tests.iter().any(|(operator, value)| {
                [None, Some(taint.effect)].into_iter().any(|effect| {
                    let (key, value) = (key.clone(), value.clone());
                    self.index.contains(&Toleration { key, operator: *operator, value, effect })
                })
            })
        })
    }
}

impl From<Vec<Toleration>> for Tolerations {
    fn from(list: Vec<Toleration>) -> Self {
        let mut index = HashSet::default();
        if list.len() > FEW_TOLERATIONS {
            index.extend(list.iter().cloned().map(|toleration| match toleration.operator {
                TolerationOperator::Exists => Toleration { value: Name::default(), ..toleration },
                _ => toleration,
            }));
        }
        Self { list, index }
    }
}

impl std::ops::Deref for Tolerations {
    type Target = [Toleration];

    fn deref(&self) -> &[Toleration] {
        &self.list
    }
}

impl PartialEq for Tolerations {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Eq for Tolerations {}

impl std::hash::Hash for Tolerations {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.list.hash(state);
    }
}

/// The first taint that keeps a pod with these tolerations off a node.
pub fn find_untolerated<'t>(taints: &'t [Taint], tolerations: &Tolerations) -> Option<&'t Taint> {
    taints.iter().find(|taint| taint.effect.repels() && !tolerations.tolerate(taint))
}

/// Kubernetes writes "not given" also as the empty string.
fn operator<'de, D: serde::Deserializer<'de>>(d: D) -> Result<TolerationOperator, D::Error> {
    #[derive(Deserialize)]
    enum Written {
        Equal,
        Exists,
        Lt,
        Gt,
        #[serde(rename = "")]
        Absent,
    }
    Ok(match Written::deserialize(d)? {
        Written::Equal | Written::Absent => TolerationOperator::Equal,
        Written::Exists => TolerationOperator::Exists,
        Written::Lt => TolerationOperator::Lt,
        Written::Gt => TolerationOperator::Gt,
    })
}

fn effect<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<TaintEffect>, D::Error> {
    #[derive(Deserialize)]
    enum Written {
        NoSchedule,
        PreferNoSchedule,
        NoExecute,
        #[serde(rename = "")]
        Absent,
    }
    Ok(match Written::deserialize(d)? {
        Written::NoSchedule => Some(TaintEffect::NoSchedule),
        Written::PreferNoSchedule => Some(TaintEffect::PreferNoSchedule),
        Written::NoExecute => Some(TaintEffect::NoExecute),
        Written::Absent => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_tolerations_tolerate_what_each_of_them_does() {
        let effects = [None, Some(TaintEffect::NoSchedule), Some(TaintEffect::NoExecute)];
        let operators = [
            TolerationOperator::Equal,
            TolerationOperator::Exists,
            TolerationOperator::Lt,
            TolerationOperator::Gt,
        ];
        let mut all = Vec::new();
        for effect in effects {
            for operator in operators {
                for (key, value) in [("", "a"), ("k", "a"), ("k", "b"), ("l", "")] {
                    all.push(Toleration { key: key.into(), operator, value: value.into(), effect });
                }
            }
        }
        let filler = |i: usize| Toleration {
            key: format!("filler-{i}").into(),
            operator: TolerationOperator::Exists,
            value: "ignored".into(),
            effect: None,
        };
        for toleration in &all {
            let many: Vec<Toleration> =
                (0..FEW_TOLERATIONS).map(filler).chain([toleration.clone()]).collect();
            let many = Tolerations::from(many);
            for (key, value) in [("k", "a"), ("k", "b"), ("l", ""), ("m", "a"), ("m", "c")] {
                for effect in [TaintEffect::NoSchedule, TaintEffect::NoExecute, TaintEffect::PreferNoSchedule]
                {
                    let taint = Taint { key: key.into(), value: value.into(), effect };
                    assert_eq!(
                        many.tolerate(&taint),
                        toleration.tolerates(&taint),
                        "{toleration:?} {taint:?}"
                    );
                }
            }
        }
    }
}
