//! What a plugin answers when it does not simply agree.

use std::{borrow::Cow, sync::Arc};

/// How a pod or a node was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// Not now; evicting pods could help.
    Unschedulable,
    /// Not now, and evicting pods would not help.
    UnschedulableAndUnresolvable,
    /// Not before something else has happened.
    Pending,
    /// Something is broken; the pod is tried again later.
    Error,
}

impl Code {
    /// kube-scheduler's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unschedulable => "Unschedulable",
            Self::UnschedulableAndUnresolvable => "UnschedulableAndUnresolvable",
            Self::Pending => "Pending",
            Self::Error => "Error",
        }
    }
}

/// A refusal and its reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What kind of refusal.
    pub code: Code,
    /// Why, in kube-scheduler's words. Thousands of nodes may share thousands of reasons.
    pub reasons: Arc<[Cow<'static, str>]>,
}

impl Status {
    /// Not now; evicting pods could help.
    pub fn unschedulable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Unschedulable, [reason.into()])
    }

    /// Not now, and evicting pods would not help.
    pub fn unresolvable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::UnschedulableAndUnresolvable, [reason.into()])
    }

    /// Something is broken.
    pub fn error(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Error, [reason.into()])
    }

    /// A refusal with several reasons.
    pub fn new(code: Code, reasons: impl IntoIterator<Item = Cow<'static, str>>) -> Self {
        Self { code, reasons: reasons.into_iter().collect() }
    }

    /// A refusal rather than a fault.
    pub fn is_rejection(&self) -> bool {
        self.code != Code::Error
    }

    /// All reasons in one line.
    pub fn message(&self) -> String {
        self.reasons.join(", ")
    }
}

/// Agreement, or why not.
pub type Verdict = Result<(), Status>;
