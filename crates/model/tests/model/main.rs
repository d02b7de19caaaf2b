//! Objects as they are read, and the cluster that they make.

mod cluster;
mod devices;
mod extremes;
mod kinds;
mod labels_and_selectors;
mod objects;
mod pods;
mod support;
