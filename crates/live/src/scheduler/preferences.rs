//! What operators prefer, for DynamicScoring: their texts are read as they come, and a broken one changes nothing.

use supercargo_model::{ConfigMap, Name, object::Object};
use supercargo_plugins::dynamic_scoring::{self, Place, in_a_line};

use super::Scheduler;

impl Scheduler {
    /// A ConfigMap is there, or has changed. Of its texts only those are kept that a plugin reads, and that can be read:
    /// in place of a broken one stays the last good one.
    pub(super) fn config_map_is(&mut self, map: ConfigMap, uid: &Name) {
        let key = map.key();
        let before = self.engine.cluster().config_map(&key).cloned();
        let of_this_map = self.preferences.iter().filter(|(place, _)| place.config_map == key);
        let of_this_map: Vec<(Place, Name)> =
            of_this_map.map(|(place, scheduler)| (place.clone(), scheduler.clone())).collect();
        let mut texts = Vec::new();
        for (place, scheduler) in of_this_map {
            let text = match self.judge(&map, &place) {
                Ok(text) => text,
                Err(reason) => {
                    self.tell_broken(&place, &scheduler, uid, &reason);
                    before.as_ref().and_then(|before| before.data.get(&place.key)).cloned()
                }
            };
            texts.extend(text.map(|text| (place.key, text)));
        }
        self.object_is(Object::ConfigMap(ConfigMap { data: texts.into_iter().collect(), ..map }));
    }

    /// The text at a place, if there is one; or what is wrong with it.
    fn judge(&self, map: &ConfigMap, place: &Place) -> Result<Option<Name>, String> {
        let Some(text) = map.data.get(&place.key) else {
            tracing::warn!(config_map = %place.config_map, key = %place.key,
                "DynamicScoring prefers no node: the ConfigMap has no such key");
            return Ok(None);
        };
        match dynamic_scoring::read(&place.source(text)) {
            Ok(preferences) => {
                let entries = preferences.entries().len();
                tracing::info!(config_map = %place.config_map, key = %place.key, entries, "DynamicScoring has changed");
                Ok(Some(text.clone()))
            }
            Err(problems) => {
                let first = problems.iter().next().map(in_a_line).unwrap_or_default();
                let more = problems.len().saturating_sub(1);
                Err(if more == 0 { first } else { format!("{first} (and {more} more)") })
            }
        }
    }

    fn tell_broken(&self, place: &Place, scheduler: &Name, uid: &Name, reason: &str) {
        tracing::error!(config_map = %place.config_map, key = %place.key, reason,
            "DynamicScoring cannot be read; what held before still holds");
        self.meter.preferences_are_broken();
        self.reporter.broken_preferences(place, scheduler, uid, reason);
    }

    /// Tells the cluster the time, if anybody there asks for it.
    pub(super) fn tell_time(&mut self) {
        if !self.preferences.is_empty() {
            let now = self.world.now();
            self.engine.cluster_mut().set_now(now);
        }
    }
}
