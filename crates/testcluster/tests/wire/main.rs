//! The test cluster as its clients see it: over HTTP.

mod access;
mod bindings;
mod client;
mod controllers;
mod custom_resources;
mod devices;
mod discovery;
mod faults;
mod kubectl;
mod lists;
mod objects;
mod patches;
mod pods;
mod robustness;
mod speed;
mod watches;
mod web;
