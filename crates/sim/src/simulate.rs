//! Schedules pending pods one after another, in queue order, each seeing the ones before it.
