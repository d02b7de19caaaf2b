//! Binds pods in the ordinary way: one binding, sent to whoever keeps the cluster.

use supercargo_framework::{
    Status,
    points::{Bind, BindTarget, Binding, Bound},
};
use supercargo_model::{Name, Pod};

/// The plugin's name.
pub const NAME: &str = "DefaultBinder";

/// The plugin.
pub struct DefaultBinder;

impl Bind for DefaultBinder {
    fn bind(&self, target: &dyn BindTarget, pod: &Pod, node: &Name) -> Result<Bound, Status> {
        target.bind(&Binding {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            node: node.clone(),
        })?;
        Ok(Bound::Done)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use supercargo_framework::Verdict;
    use supercargo_model::testing::pod;

    struct Target {
        answer: Verdict,
        sent: RefCell<Vec<Binding>>,
    }

    impl BindTarget for Target {
        fn bind(&self, binding: &Binding) -> Verdict {
            self.sent.borrow_mut().push(binding.clone());
            self.answer.clone()
        }
    }

    #[test]
    fn the_binding_names_the_very_pod() {
        let target = Target { answer: Ok(()), sent: RefCell::default() };
        let pod = pod("web").namespace("shop").set("/metadata/uid", "u-1").pod();
        assert!(matches!(DefaultBinder.bind(&target, &pod, &"node-1".into()), Ok(Bound::Done)));
        let expected = Binding {
            namespace: "shop".into(),
            name: "web".into(),
            uid: "u-1".into(),
            node: "node-1".into(),
        };
        assert_eq!(target.sent.into_inner(), [expected]);
    }

    #[test]
    fn a_refused_binding_is_an_error() {
        let target = Target { answer: Err(Status::error("conflict")), sent: RefCell::default() };
        assert!(DefaultBinder.bind(&target, &pod("p").pod(), &"n".into()).is_err());
    }
}
