//! Replays the history of a cluster.
