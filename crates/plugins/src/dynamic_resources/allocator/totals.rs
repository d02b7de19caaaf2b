//! How many devices of a class a node has, and how many of them are in use: what extended resources are scored by.

use supercargo_model::devices::{DeviceClass, DeviceId, Devices, ResourceSlice};

use super::{
    NodeInQuestion,
    pools::node_matches,
    selectors::{ReadyDevices, Selected, SelectorCache},
};

/// The devices of a class that a node can reach, and those of them that claims have. Every slice counts, of whatever
/// generation, as in the reference.
///
/// # Errors
/// What is wrong with a selector.
pub fn devices_of_class(
    devices: &Devices,
    class: &DeviceClass,
    node: NodeInQuestion<'_>,
    selectors: &mut SelectorCache,
) -> Result<(i64, i64), String> {
    selectors.tidy();
    let ids: Vec<_> =
        class.selectors.iter().filter_map(|one| one.expression()).map(|one| selectors.id(one)).collect();
    let (mut all, mut in_use) = (0, 0);
    let mut ready = ReadyDevices::default();
    for slice in devices.slices_on(node.name).iter().chain(devices.shared_slices()) {
        if !reaches_slice(slice, &node)? {
            continue;
        }
        for (place, device) in slice.devices.iter().enumerate() {
            let here = !slice.per_device_node_selection
                || node_matches(
                    &node,
                    device.node_name.as_ref(),
                    device.all_nodes == Some(true),
                    device.node_selector.as_ref(),
                )?;
            let mut selected = here;
            for id in &ids {
                match selectors.selects(*id, slice, place, &mut ready) {
                    _ if !selected => break,
                    Selected::Yes => {}
                    Selected::No => selected = false,
                    Selected::Failed(why) => return Err(why.to_string()),
                }
            }
            if selected {
                let id = DeviceId {
                    driver: slice.driver.clone(),
                    pool: slice.pool.name.clone(),
                    device: device.name.clone(),
                };
                let used = devices.in_use();
                all += 1;
                in_use += i64::from(used.has_whole(&id) || used.shared(&id).is_some());
            }
        }
    }
    Ok((all, in_use))
}

/// A slice that says nothing about nodes counts for all.
fn reaches_slice(slice: &ResourceSlice, node: &NodeInQuestion<'_>) -> Result<bool, String> {
    let is_named = slice.node_name.as_ref().is_some_and(|name| !name.is_empty());
    if slice.per_device_node_selection || slice.all_nodes || !is_named && slice.node_selector.is_none() {
        return Ok(true);
    }
    node_matches(node, slice.node_name.as_ref(), false, slice.node_selector.as_ref())
}
