//! Taints of nodes and tolerations of pods.

use serde::Deserialize;

use crate::Name;

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum Effect {
    /// New pods stay away.
    NoSchedule,
    /// New pods stay away if they can.
    PreferNoSchedule,
    /// New pods stay away, running ones are evicted.
    NoExecute,
}

impl Effect {
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
    pub effect: Effect,
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
    pub effect: Option<Effect>,
}

impl Toleration {
    /// Whether it tolerates a taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && match self.operator {
                TolerationOperator::Equal => self.value == taint.value,
                TolerationOperator::Exists => true,
                TolerationOperator::Lt | TolerationOperator::Gt => false,
            }
    }
}

/// Whether any of the tolerations tolerates a taint.
pub fn tolerated(taint: &Taint, tolerations: &[Toleration]) -> bool {
    tolerations.iter().any(|t| t.tolerates(taint))
}

/// The first taint that keeps a pod with these tolerations off a node.
pub fn find_untolerated<'t>(taints: &'t [Taint], tolerations: &[Toleration]) -> Option<&'t Taint> {
    taints.iter().find(|taint| taint.effect.repels() && !tolerated(taint, tolerations))
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

fn effect<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Effect>, D::Error> {
    #[derive(Deserialize)]
    enum Written {
        NoSchedule,
        PreferNoSchedule,
        NoExecute,
        #[serde(rename = "")]
        Absent,
    }
    Ok(match Written::deserialize(d)? {
        Written::NoSchedule => Some(Effect::NoSchedule),
        Written::PreferNoSchedule => Some(Effect::PreferNoSchedule),
        Written::NoExecute => Some(Effect::NoExecute),
        Written::Absent => None,
    })
}
