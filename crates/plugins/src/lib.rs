//! The plugins that kube-scheduler comes with and some of our own, one folder each, and the older names that still work.
//!
//! Plugins do not know each other. To add one, see CONTRIBUTING.md.

pub mod default_binder;
pub mod default_preemption;
mod device_resources;
mod domain_sums;
pub mod dynamic_resources;
pub mod dynamic_scoring;
mod fast_parts;
pub mod image_locality;
pub mod inter_pod_affinity;
pub mod node_affinity;
pub mod node_declared_features;
pub mod node_name;
pub mod node_ports;
pub mod node_resources_balanced_allocation;
pub mod node_resources_fit;
pub mod node_unschedulable;
pub mod node_volume_limits;
pub mod pod_topology_spread;
pub mod priority_sort;
mod required_nodes;
mod resource_weights;
pub mod scheduling_gates;
pub mod taint_toleration;
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;

use supercargo_framework::registry::{ApiPermission, Point, Registry, define};

/// All plugins, by the names that configurations use.
pub fn registry() -> Registry {
    use node_resources_fit as fit;
    let mut all = Registry::default();
    all.add(
        define(default_binder::NAME, |args| Ok(default_binder::DefaultBinder::new(args))).bind().gives_way(),
    );
    all.add(
        define(default_preemption::NAME, default_preemption::DefaultPreemption::new)
            .needs(ApiPermission {
                at: Point::PostFilter,
                why: "make room: DefaultPreemption is on",
                group: "",
                resources: &["pods"],
                verbs: &["delete"],
            })
            .default_args(r#"{"minCandidateNodesPercentage":10,"minCandidateNodesAbsolute":100}"#)
            .pre_enqueue()
            .post_filter()
            .observe()
            .requeue(),
    );
    all.add(
        define(dynamic_resources::NAME, dynamic_resources::DynamicResources::new)
            .needs(claims_permission(Point::PostFilter))
            .needs(claim_status_permission(Point::PostFilter))
            .needs(claims_permission(Point::PreBind))
            .needs(claim_status_permission(Point::PreBind))
            .default_args(r#"{"filterTimeout":"10s","bindingTimeout":"10m0s"}"#)
            .pre_enqueue()
            .pre_filter()
            .filter()
            .post_filter()
            .score()
            .normalize()
            .reserve()
            .pre_bind()
            .gives_way()
            .observe()
            .reads_time()
            .requeue()
            .fast_filter()
            .fast_score(),
    );
    all.add(
        define(dynamic_scoring::NAME, dynamic_scoring::DynamicScoring::new)
            .score()
            .normalize()
            .observe()
            .reads_time()
            .fast_score(),
    );
    all.add(define(image_locality::NAME, image_locality::ImageLocality::new).score().fast_score());
    all.add(
        define(inter_pod_affinity::NAME, inter_pod_affinity::InterPodAffinity::new)
            .default_args(r#"{"hardPodAffinityWeight":1,"ignorePreferredTermsOfExistingPods":false}"#)
            .pre_filter()
            .filter()
            .pre_score()
            .score()
            .normalize()
            .requeue()
            .fast_filter()
            .fast_score(),
    );
    all.add(
        define(node_affinity::NAME, node_affinity::NodeAffinity::new)
            .default_args(r#"{}"#)
            .pre_filter()
            .filter()
            .pre_score()
            .score()
            .normalize()
            .requeue()
            .fast_filter()
            .fast_score(),
    );
    all.add(
        define(node_declared_features::NAME, |_| Ok(node_declared_features::NodeDeclaredFeatures))
            .pre_filter()
            .filter()
            .requeue()
            .fast_filter(),
    );
    all.add(define(node_name::NAME, |_| Ok(node_name::NodeName)).filter().requeue().fast_filter());
    all.add(
        define(node_ports::NAME, |_| Ok(node_ports::NodePorts)).pre_filter().filter().requeue().fast_filter(),
    );
    all.add(
        define(
            node_resources_balanced_allocation::NAME,
            node_resources_balanced_allocation::NodeResourcesBalancedAllocation::new,
        )
        .default_args(r#"{"resources":[{"name":"cpu","weight":1},{"name":"memory","weight":1}]}"#)
        .pre_score()
        .score()
        .fast_score(),
    );
    all.add(
        define(fit::NAME, fit::NodeResourcesFit::new)
            .default_args(r#"{"scoringStrategy":{"type":"LeastAllocated","resources":[{"name":"cpu","weight":1},{"name":"memory","weight":1}]}}"#)
            .pre_filter()
            .filter()
            .pre_score()
            .score()
            .requeue().fast_filter().fast_score(),
    );
    all.add(define(fit::LEAST_ALLOCATED, fit::SingleStrategy::least_allocated).score().fast_score());
    all.add(define(fit::MOST_ALLOCATED, fit::SingleStrategy::most_allocated).score().fast_score());
    all.add(
        define(fit::REQUESTED_TO_CAPACITY_RATIO, fit::SingleStrategy::requested_to_capacity_ratio)
            .score()
            .fast_score(),
    );
    all.add(
        define(node_unschedulable::NAME, |_| Ok(node_unschedulable::NodeUnschedulable))
            .filter()
            .requeue()
            .fast_filter(),
    );
    all.add(
        define(pod_topology_spread::NAME, pod_topology_spread::PodTopologySpread::new)
            .default_args(r#"{"defaultingType":"System"}"#)
            .pre_filter()
            .filter()
            .pre_score()
            .score()
            .normalize()
            .requeue()
            .fast_filter()
            .fast_score(),
    );
    all.add(
        define(node_volume_limits::NAME, |_| Ok(node_volume_limits::NodeVolumeLimits::default()))
            .pre_filter()
            .filter()
            .requeue()
            .fast_filter(),
    );
    all.add(
        define(volume_binding::NAME, volume_binding::VolumeBinding::new)
            .default_args(r#"{"bindTimeoutSeconds":600}"#)
            .pre_filter()
            .filter()
            .pre_score()
            .score()
            .reserve()
            .pre_bind()
            .needs(ApiPermission {
                at: Point::PreBind,
                why: "bind volumes: VolumeBinding is on",
                group: "",
                resources: &["persistentvolumes", "persistentvolumeclaims"],
                verbs: &["update"],
            })
            .gives_way()
            .requeue()
            .fast_filter()
            .fast_score(),
    );
    all.add(
        define(volume_restrictions::NAME, |_| Ok(volume_restrictions::VolumeRestrictions))
            .pre_filter()
            .filter()
            .requeue()
            .fast_filter(),
    );
    all.add(
        define(volume_zone::NAME, |_| Ok(volume_zone::VolumeZone))
            .pre_filter()
            .filter()
            .requeue()
            .fast_filter(),
    );
    all.add(define(priority_sort::NAME, |_| Ok(priority_sort::PrioritySort)).queue_sort());
    all.add(
        define(scheduling_gates::NAME, |_| Ok(scheduling_gates::SchedulingGates)).pre_enqueue().requeue(),
    );
    all.add(
        define(taint_toleration::NAME, |_| Ok(taint_toleration::TaintToleration))
            .filter()
            .pre_score()
            .score()
            .normalize()
            .requeue()
            .fast_filter()
            .fast_score(),
    );
    all
}

/// Claims for extended resources are made and deleted; every claim is kept from being deleted for as long as it has devices.
const fn claims_permission(at: Point) -> ApiPermission {
    ApiPermission {
        at,
        why: "allocate devices: DynamicResources is on",
        group: "resource.k8s.io",
        resources: &["resourceclaims"],
        verbs: &["create", "delete", "update"],
    }
}

/// What claims have got, and who uses them. From 1.36 on, API servers ask for `binding`, too.
const fn claim_status_permission(at: Point) -> ApiPermission {
    ApiPermission {
        at,
        why: "",
        group: "resource.k8s.io",
        resources: &["resourceclaims/status", "resourceclaims/binding"],
        verbs: &["patch", "update"],
    }
}
