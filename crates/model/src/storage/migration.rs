//! How disks of the way of old are handed to the CSI drivers that took their plugins' place.

use std::{collections::BTreeSet, fmt, sync::Arc};

use super::{CsiVolume, Disk, PersistentVolume};
use crate::{
    Name,
    selector::{NodeSelector, NodeSelectorTerm, Requirement},
};

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const OLD_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const OLD_REGION: &str = "failure-domain.beta.kubernetes.io/region";
/// Separates the zones of a volume that is in several.
const ZONE_DELIMITER: &str = "__";
/// Stands for a project or a zone that is not known.
const UNSPECIFIED: &str = "UNSPECIFIED";

/// A plugin of old and the driver that took its place.
struct Migration {
    plugin: &'static str,
    driver: &'static str,
    /// A scheduler counts and places the plugin's volumes as the driver's.
    handed_over: bool,
}

const GCE: Migration = Migration::new("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", true);
const AWS: Migration = Migration::new("kubernetes.io/aws-ebs", "ebs.csi.aws.com", true);
const AZURE_DISK: Migration = Migration::new("kubernetes.io/azure-disk", "disk.csi.azure.com", true);
const CINDER: Migration = Migration::new("kubernetes.io/cinder", "cinder.csi.openstack.org", true);
const PORTWORX: Migration = Migration::new("kubernetes.io/portworx-volume", "pxd.portworx.com", true);
const AZURE_FILE: Migration = Migration::new("kubernetes.io/azure-file", "file.csi.azure.com", false);
const VSPHERE: Migration = Migration::new("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", false);

const ALL: [Migration; 7] = [GCE, AWS, AZURE_DISK, CINDER, PORTWORX, AZURE_FILE, VSPHERE];

impl Migration {
    const fn new(plugin: &'static str, driver: &'static str, handed_over: bool) -> Self {
        Self { plugin, driver, handed_over }
    }

    fn of(disk: &Disk) -> Option<Self> {
        match disk {
            Disk::GcePersistentDisk(_) => Some(GCE),
            Disk::AwsElasticBlockStore(_) => Some(AWS),
            Disk::AzureDisk(_) => Some(AZURE_DISK),
            Disk::AzureFile(_) => Some(AZURE_FILE),
            Disk::Cinder(_) => Some(CINDER),
            Disk::Vsphere(_) => Some(VSPHERE),
            Disk::Portworx(_) => Some(PORTWORX),
            Disk::Rbd(_) | Disk::Iscsi(_) => None,
        }
    }
}

/// The driver in place of the plugin of old that a storage class names: `None` if the name is not of such a plugin,
/// `Some(None)` if the plugin's volumes are not handed over.
pub fn migrated_driver(provisioner: &str) -> Option<Option<&'static str>> {
    let migration = ALL.into_iter().find(|m| m.plugin == provisioner)?;
    Some(migration.handed_over.then_some(migration.driver))
}

/// Why a disk cannot be handed to a CSI driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untranslatable(String);

impl fmt::Display for Untranslatable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Untranslatable {}

impl Disk {
    /// The CSI driver that took its plugin's place.
    pub fn csi_driver(&self) -> Option<&'static str> {
        Migration::of(self).map(|migration| migration.driver)
    }

    /// The disk as its driver's volume; `None` if it is not handed over.
    pub fn csi_volume(&self) -> Result<Option<CsiVolume>, Untranslatable> {
        self.csi_volume_in("")
    }

    /// The same for a disk in known zones, as they stand on a persistent volume's label.
    fn csi_volume_in(&self, zones: &str) -> Result<Option<CsiVolume>, Untranslatable> {
        let handle = match self {
            Self::GcePersistentDisk(disk) => gce_handle(&disk.pd_name, zones)?,
            Self::AwsElasticBlockStore(disk) => aws_handle(&disk.volume_id)?,
            Self::AzureDisk(disk) => azure_handle(disk.kind.as_deref(), disk.disk_uri.as_ref())?,
            Self::Cinder(disk) => disk.volume_id.clone(),
            Self::Portworx(disk) => disk.volume_id.clone(),
            Self::AzureFile(_) | Self::Vsphere(_) | Self::Rbd(_) | Self::Iscsi(_) => return Ok(None),
        };
        Ok(self.csi_driver().map(|driver| CsiVolume { driver: driver.into(), volume_handle: Some(handle) }))
    }
}

fn gce_handle(disk: &str, zones: &str) -> Result<Name, Untranslatable> {
    let zones: Vec<&str> = zones.split(ZONE_DELIMITER).collect();
    let place = match zones[..] {
        [""] => format!("zones/{UNSPECIFIED}"),
        [zone] => format!("zones/{zone}"),
        _ => match gce_region(&zones) {
            Ok(region) => format!("regions/{region}"),
            Err(reason) => return Err(Untranslatable(format!("failed to get region from zones: {reason}"))),
        },
    };
    Ok(format!("projects/{UNSPECIFIED}/{place}/disks/{disk}").into())
}

/// The one region of all zones: `us-central1` of `us-central1-a`.
fn gce_region(zones: &[&str]) -> Result<String, String> {
    let mut regions = BTreeSet::new();
    for zone in zones {
        let [locale, region, _] = zone.split('-').collect::<Vec<_>>()[..] else {
            return Err(format!(
                "zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            ));
        };
        regions.insert(format!("{locale}-{region}"));
    }
    if regions.len() > 1 {
        let listed: Vec<String> = regions.iter().map(|region| format!("{region}:{{}}")).collect();
        let listed = listed.join(" ");
        return Err(format!("multiple or no regions gotten from zones, got: map[{listed}]"));
    }
    Ok(regions.pop_first().unwrap_or_default())
}

/// `vol-1` of `aws://zone/vol-1`; anything else stands for itself.
fn aws_handle(id: &Name) -> Result<Name, Untranslatable> {
    let Some(rest) = id.strip_prefix("aws://") else {
        return Ok(id.clone());
    };
    let address = rest.split(['?', '#']).next().unwrap_or_default();
    let path = address.split_once('/').map_or("", |(_, path)| path);
    let volume = path.trim_matches('/');
    if volume.starts_with("vol-") && !volume.contains('/') {
        Ok(volume.into())
    } else {
        Err(Untranslatable(format!(
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({id})"
        )))
    }
}

fn azure_handle(kind: Option<&str>, uri: Option<&Name>) -> Result<Name, Untranslatable> {
    match kind {
        Some(kind) if !kind.eq_ignore_ascii_case("Managed") => {
            Err(Untranslatable(format!("kind({kind}) is not supported in csi migration")))
        }
        _ => Ok(uri.cloned().unwrap_or_default()),
    }
}

impl PersistentVolume {
    /// The plugin of old that its disk belongs to, if a node may hand it to a CSI driver.
    pub fn migrated_plugin(&self) -> Option<&'static str> {
        let migration = Migration::of(self.disk.as_ref()?)?;
        migration.handed_over.then_some(migration.plugin)
    }

    /// Its volume at a CSI driver, be it the driver's own or a disk handed over.
    pub fn csi_volume(&self) -> Result<Option<CsiVolume>, Untranslatable> {
        match (&self.csi, &self.disk) {
            (Some(csi), _) => Ok(Some(csi.clone())),
            (None, Some(disk)) => disk.csi_volume_in(self.zones()),
            (None, None) => Ok(None),
        }
    }

    fn zones(&self) -> &str {
        let label = |key| self.labels.get(key).map(|zones| &**zones).filter(|zones| !zones.is_empty());
        label(OLD_ZONE).or_else(|| label(ZONE)).unwrap_or_default()
    }

    /// The nodes that can reach it where its disk is handed over: zones go by the driver's own label there.
    pub fn migrated_node_affinity(&self) -> Result<Option<Arc<NodeSelector>>, Untranslatable> {
        self.csi_volume()?;
        let driver_label = match &self.disk {
            Some(Disk::GcePersistentDisk(_)) => "topology.gke.io/zone",
            Some(Disk::AwsElasticBlockStore(_)) => "topology.ebs.csi.aws.com/zone",
            Some(Disk::Cinder(_)) => "topology.cinder.csi.openstack.org/zone",
            _ => return Ok(self.node_affinity.clone()),
        };
        Ok(self.with_zones_as(driver_label))
    }

    fn with_zones_as(&self, driver_label: &str) -> Option<Arc<NodeSelector>> {
        let affinity = self.node_affinity.as_deref();
        let has_key = |key| expressions(affinity).any(|e| &*e.key == key);
        let old_names = if has_key(ZONE) || has_key(OLD_ZONE) {
            !has_key(ZONE)
        } else {
            !self.labels.has(ZONE) && self.labels.has(OLD_ZONE)
        };
        let zone = if old_names { OLD_ZONE } else { ZONE };
        let mut translated = affinity.cloned();
        if expressions(affinity).any(|e| &*e.key == zone && !e.values.is_empty()) {
            translated = translated.map(|affinity| renamed(&affinity, zone, driver_label));
        } else if let Some(zones) = self.labels.get(zone) {
            translated = narrowed(translated, driver_label, zones);
        }
        if old_names && expressions(affinity).any(|e| &*e.key == OLD_REGION && !e.values.is_empty()) {
            translated = translated.map(|affinity| renamed(&affinity, OLD_REGION, REGION));
        }
        translated.map(Arc::new)
    }
}

fn expressions(affinity: Option<&NodeSelector>) -> impl Iterator<Item = &Requirement> {
    let terms = affinity.map_or(&[][..], |affinity| &affinity.node_selector_terms[..]);
    terms.iter().flat_map(|term| &term.match_expressions)
}

/// The same selector, with a label's key replaced.
fn renamed(affinity: &NodeSelector, from: &str, to: &str) -> NodeSelector {
    let renamed = |expression: &Requirement| {
        let mut expression = expression.clone();
        if &*expression.key == from {
            expression.key = to.into();
        }
        expression
    };
    let terms = affinity.node_selector_terms.iter().map(|term| {
        let expressions = term.match_expressions.iter().map(renamed).collect();
        NodeSelectorTerm::new(expressions, term.match_fields.clone())
    });
    NodeSelector { node_selector_terms: terms.collect() }
}

/// The same selector, with every term narrowed to some zones; a selector of its own, if there was none.
fn narrowed(affinity: Option<NodeSelector>, key: &str, zones: &str) -> Option<NodeSelector> {
    let zones: BTreeSet<&str> =
        zones.split(ZONE_DELIMITER).map(str::trim).filter(|zone| !zone.is_empty()).collect();
    if zones.is_empty() {
        return affinity;
    }
    let mut terms = affinity.unwrap_or_default().node_selector_terms;
    if terms.is_empty() {
        terms.push(NodeSelectorTerm::default());
    }
    let terms = terms.into_iter().map(|term| {
        let mut expressions = term.match_expressions;
        expressions.push(Requirement::is_in(key, zones.iter().copied()));
        NodeSelectorTerm::new(expressions, term.match_fields)
    });
    Some(NodeSelector { node_selector_terms: terms.collect() })
}

#[cfg(test)]
mod tests;
