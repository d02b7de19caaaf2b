//! A configuration as it is written: nothing is filled in yet, and absent fields are known to be absent.

use serde::{Deserialize, de::IgnoredAny};

use supercargo_framework::registry::Point;

use crate::{Duration, extender::Extender};

/// A KubeSchedulerConfiguration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Document {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) parallelism: Option<i32>,
    pub(crate) leader_election: LeaderElectionFields,
    pub(crate) client_connection: ClientConnectionFields,
    pub(crate) enable_profiling: Option<bool>,
    pub(crate) enable_contention_profiling: Option<bool>,
    pub(crate) percentage_of_nodes_to_score: Option<i32>,
    pub(crate) pod_initial_backoff_seconds: Option<i64>,
    pub(crate) pod_max_backoff_seconds: Option<i64>,
    pub(crate) profiles: Vec<ProfileFields>,
    pub(crate) extenders: Vec<Extender>,
    pub(crate) delay_cache_until_active: bool,
    /// Older versions have these two; v1 of kube-scheduler has not.
    pub(crate) healthz_bind_address: Option<String>,
    pub(crate) metrics_bind_address: Option<String>,
    /// These two are ours.
    pub(crate) min_feasible_nodes_to_find: Option<i32>,
    pub(crate) tie_break: Option<TieBreak>,
}

/// Which of the nodes with the highest total is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TieBreak {
    /// Any of them, equally likely, from the seed.
    #[default]
    Random,
    /// The first in node order.
    First,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LeaderElectionFields {
    pub(crate) leader_elect: Option<bool>,
    pub(crate) lease_duration: Duration,
    pub(crate) renew_deadline: Duration,
    pub(crate) retry_period: Duration,
    pub(crate) resource_lock: String,
    pub(crate) resource_name: String,
    pub(crate) resource_namespace: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClientConnectionFields {
    pub(crate) kubeconfig: String,
    pub(crate) accept_content_types: String,
    pub(crate) content_type: String,
    pub(crate) qps: f32,
    pub(crate) burst: i32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ProfileFields {
    pub(crate) scheduler_name: Option<String>,
    pub(crate) percentage_of_nodes_to_score: Option<i32>,
    pub(crate) plugins: PluginsFields,
    pub(crate) plugin_config: Vec<PluginConfigFields>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PluginsFields {
    pub(crate) multi_point: PluginSetFields,
    pub(crate) pre_enqueue: PluginSetFields,
    pub(crate) queue_sort: PluginSetFields,
    pub(crate) pre_filter: PluginSetFields,
    pub(crate) filter: PluginSetFields,
    pub(crate) post_filter: PluginSetFields,
    pub(crate) pre_score: PluginSetFields,
    pub(crate) score: PluginSetFields,
    pub(crate) reserve: PluginSetFields,
    pub(crate) permit: PluginSetFields,
    pub(crate) pre_bind: PluginSetFields,
    pub(crate) bind: PluginSetFields,
    pub(crate) post_bind: PluginSetFields,
    /// Points of kube-scheduler's pod group scheduling, which is off by default there.
    pub(crate) placement_generate: PluginSetFields,
    pub(crate) placement_score: PluginSetFields,
}

impl PluginsFields {
    pub(crate) fn at(&self, point: Point) -> &PluginSetFields {
        match point {
            Point::PreEnqueue => &self.pre_enqueue,
            Point::QueueSort => &self.queue_sort,
            Point::PreFilter => &self.pre_filter,
            Point::Filter => &self.filter,
            Point::PostFilter => &self.post_filter,
            Point::PreScore => &self.pre_score,
            Point::Score => &self.score,
            Point::Reserve => &self.reserve,
            Point::Permit => &self.permit,
            Point::PreBind => &self.pre_bind,
            Point::Bind => &self.bind,
            Point::PostBind => &self.post_bind,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PluginSetFields {
    pub(crate) enabled: Vec<PluginFields>,
    pub(crate) disabled: Vec<PluginFields>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PluginFields {
    pub(crate) name: String,
    pub(crate) weight: Option<i32>,
}

/// The arguments themselves stay in the text: only their plugin knows their type.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PluginConfigFields {
    pub(crate) name: String,
    #[serde(default)]
    #[expect(dead_code, reason = "named so that it is a known field; its value is taken from the text")]
    pub(crate) args: Option<IgnoredAny>,
}
