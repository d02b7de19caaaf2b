//! Decisions, the queue, and what is kept between pods, with the plugins that come with Supercargo.

mod any_cluster;
mod cycle;
mod devices;
mod extender_calls;
mod hostile_pods;
mod preemption;
mod queue;
mod queue_model;
mod requeue;
mod scheduling_queue;
mod siblings;
mod soft_taints;
mod starvation;
mod support;
mod trials;
