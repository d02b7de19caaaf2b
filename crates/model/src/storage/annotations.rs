//! The annotations by which a scheduler, the volume controller and provisioners agree on volumes.

/// On a claim: the node for which a volume is to be made. A provisioner that cannot make one takes it away.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// On a claim: the volume controller has bound it for good.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// On a volume: its claim was chosen for it, and not written down by a person.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
