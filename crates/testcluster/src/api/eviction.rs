//! Evictions: deletions that ask the disruption budgets first.

use serde_json::Value;

use super::{Api, Caller, DeleteOptions, ObjectAddress};
use crate::failure::StatusError;
use crate::object::{self, as_map, at, map_at, text};
use crate::resource::POD_DISRUPTION_BUDGETS;
use crate::selector::Selector;
use crate::store::{Store, StoredObject};

impl Api {
    pub(crate) fn evict(
        &self,
        place: ObjectAddress<'_>,
        eviction: &Value,
        caller: &Caller,
    ) -> Result<(), StatusError> {
        let own = object::name(eviction);
        if !own.is_empty() && own != place.name {
            return Err(StatusError::bad_request("name in URL does not match name in Eviction object"));
        }
        let options = DeleteOptions::read(eviction.get("deleteOptions").unwrap_or(&Value::Null));
        let mut store = self.store();
        let pod = place.find(&store)?;
        options.check(place, &pod)?;
        if needs_budget(&pod.value) {
            self.take_from_budget(&mut store, place, &pod, caller)?;
        }
        self.delete_in(&mut store, place, &options, caller).map(drop)
    }

    fn take_from_budget(
        &self,
        store: &mut Store,
        place: ObjectAddress<'_>,
        pod: &StoredObject,
        caller: &Caller,
    ) -> Result<(), StatusError> {
        let covers = |budget: &Value| {
            Selector::of_labels(at(budget, &["spec", "selector"]))
                .is_some_and(|selector| selector.matches(&pod.value))
        };
        let budgets = store.objects(&POD_DISRUPTION_BUDGETS, place.namespace, None);
        let mut budgets = budgets.map(|(_, budget)| budget).filter(|budget| covers(&budget.value));
        let Some(budget) = budgets.next().cloned() else { return Ok(()) };
        if budgets.next().is_some() {
            let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(StatusError::internal(why));
        }
        drop(budgets);
        let number = |key: &str| at(&budget.value, &["status", key]).and_then(Value::as_i64).unwrap_or(0);
        let allowed = number("disruptionsAllowed");
        if allowed <= 0 {
            return Err(StatusError::disruption_budget(format!(
                "The disruption budget {} needs {} healthy pods and has {} currently",
                object::name(&budget.value),
                number("desiredHealthy"),
                number("currentHealthy")
            )));
        }
        if !caller.dry_run {
            let mut value = budget.value.clone();
            let status = map_at(&mut value, "status");
            status.insert("disruptionsAllowed".to_owned(), (allowed - 1).into());
            let disrupted = status.entry("disruptedPods").or_insert(Value::Null);
            as_map(disrupted).insert(place.name.to_owned(), self.time.now().into());
            store.put(&POD_DISRUPTION_BUDGETS, value);
        }
        Ok(())
    }
}

/// A pod that does not run, or is on its way out, disrupts nobody.
fn needs_budget(pod: &Value) -> bool {
    !matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed" | "Pending")
        && !object::is_terminating(pod)
}
