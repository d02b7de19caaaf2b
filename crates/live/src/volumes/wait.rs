//! Waits until the volume controller and the provisioners have done their part.
//!
//! The server itself is asked, because what a watch tells may be from before the writes. So that many waiting pods do not
//! keep it busy, it is asked when there are news, and else the more seldom the longer it takes.

use std::time::Duration;

use futures_util::future::select;
use supercargo_manifest::Source;
use supercargo_model::{
    Key, Node,
    object::{Kind, Object},
    storage::{CsiNode, PersistentVolume, PersistentVolumeClaim},
};
use supercargo_plugins::volume_binding::{
    ClaimId,
    annotations::{BIND_COMPLETED, SELECTED_NODE},
    reaches_volume,
};
use tokio::sync::watch;

use super::{Order, VolumeFailure, Word};
use crate::{
    requests::{get_claim, get_csi_node, get_node, get_volume},
    world::{Request, World},
};

/// The shortest time between two looks, and before the first: kube-scheduler's.
const MIN_WAIT: Duration = Duration::from_secs(1);

/// The longest time between two looks.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Without news, a binding is noticed at most so much later than it took: a tenth.
const PATIENCE: u32 = 10;

/// Why not everything is bound.
enum Unbound {
    NotYet,
    Never(String),
}

pub(super) async fn until_bound(
    world: &dyn World,
    order: &Order,
    mut word: watch::Receiver<Word>,
) -> Result<(), VolumeFailure> {
    let start = world.uptime();
    loop {
        let waited = world.uptime() - start;
        let patience = (waited / PATIENCE).clamp(MIN_WAIT, MAX_WAIT);
        world.sleep(MIN_WAIT).await;
        if patience > MIN_WAIT {
            select(Box::pin(word.changed()), world.sleep(patience - MIN_WAIT)).await;
        }
        word.mark_unchanged();
        match (Look { world, order }).at_everything().await {
            Ok(()) => return Ok(()),
            Err(Unbound::NotYet) => {}
            Err(Unbound::Never(why)) => return Err(VolumeFailure::Undone(why)),
        }
    }
}

/// One look at everything that was written.
struct Look<'a> {
    world: &'a dyn World,
    order: &'a Order,
}

impl Look<'_> {
    async fn at_everything(&self) -> Result<(), Unbound> {
        let node = self.node().await?;
        for (volume, claim) in &self.order.plan.bind {
            self.at_binding(&node, volume, claim).await?;
        }
        for claim in &self.order.plan.provision {
            self.at_provisioning(&node, claim).await?;
        }
        Ok(())
    }

    async fn at_binding(&self, node: &Node, volume: &str, id: &ClaimId) -> Result<(), Unbound> {
        let failed = |why: String| Unbound::Never(format!("failed to check binding: {why}"));
        let missing = || failed(not_found("PersistentVolume", volume));
        let volume = self.volume(volume).await?.ok_or_else(missing)?;
        let claim = self.claim(id).await?.ok_or_else(|| failed(claim_not_found(id)))?;
        self.check_reach(node, &volume).await?;
        let name = &volume.name;
        if volume.claim.and_then(|claim| claim.uid).as_ref() != Some(&id.uid) {
            return Err(Unbound::Never(format!("ClaimRef got reset for pv {name:?}")));
        }
        if !claim.volume.is_empty() && claim.volume != *name {
            let (claim, other) = (&claim.name, &claim.volume);
            return Err(Unbound::Never(format!(
                "PVC {claim:?} is bound to pv {other:?} instead of {name:?}"
            )));
        }
        check_bound(&claim)
    }

    async fn at_provisioning(&self, node: &Node, id: &ClaimId) -> Result<(), Unbound> {
        let missing = || Unbound::Never(format!("failed to check provisioning pvc: {}", claim_not_found(id)));
        let claim = self.claim(id).await?.ok_or_else(missing)?;
        let name = &claim.name;
        if claim.annotations.is_empty() {
            return Err(Unbound::Never(format!("selectedNode annotation reset for PVC {name:?}")));
        }
        if claim.annotations.get(SELECTED_NODE) != Some(&self.order.node) {
            return Err(Unbound::Never(format!("provisioning failed for PVC {name:?}")));
        }
        if claim.volume.is_empty() {
            return Err(Unbound::NotYet);
        }
        // A claim can name its volume before the volume can be seen.
        let volume = self.volume(&claim.volume).await?.ok_or(Unbound::NotYet)?;
        self.check_reach(node, &volume).await?;
        check_bound(&claim)
    }

    async fn check_reach(&self, node: &Node, volume: &PersistentVolume) -> Result<(), Unbound> {
        let csi_node = match volume.migrated_plugin() {
            Some(_) => self.csi_node().await?,
            None => None,
        };
        match reaches_volume(volume, &node.labels, csi_node.as_ref()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Unbound::Never(format!(
                "pv {:?} node affinity doesn't match node {:?}: no matching NodeSelectorTerms",
                volume.name, node.name
            ))),
            Err(status) => {
                Err(Unbound::Never(format!("failed to translate pv to csi: {}", status.message())))
            }
        }
    }

    async fn node(&self) -> Result<Node, Unbound> {
        let name = &self.order.node;
        match self.object(Kind::Node, get_node(name)).await? {
            Some(Object::Node(node)) => Ok(node),
            _ => Err(Unbound::Never(format!("failed to get node {name:?}: node {name:?} not found"))),
        }
    }

    async fn csi_node(&self) -> Result<Option<CsiNode>, Unbound> {
        match self.object(Kind::CsiNode, get_csi_node(&self.order.node)).await? {
            Some(Object::CsiNode(csi_node)) => Ok(Some(csi_node)),
            _ => Ok(None),
        }
    }

    async fn volume(&self, name: &str) -> Result<Option<PersistentVolume>, Unbound> {
        match self.object(Kind::PersistentVolume, get_volume(name)).await? {
            Some(Object::PersistentVolume(volume)) => Ok(Some(volume)),
            _ => Ok(None),
        }
    }

    /// The claim, if it still is the same.
    async fn claim(&self, id: &ClaimId) -> Result<Option<PersistentVolumeClaim>, Unbound> {
        match self.object(Kind::PersistentVolumeClaim, get_claim(&id.key)).await? {
            Some(Object::PersistentVolumeClaim(claim)) if claim.uid == id.uid => Ok(Some(claim)),
            _ => Ok(None),
        }
    }

    /// An object of the server, if it exists. A server that does not answer is asked again later.
    async fn object(&self, kind: Kind, request: Request) -> Result<Option<Object>, Unbound> {
        let told = request.to_string();
        let reply = match self.world.send(request).await {
            Ok(reply) => reply,
            Err(_) => return Err(Unbound::NotYet),
        };
        match reply.status {
            404 => return Ok(None),
            429 | 500.. => return Err(Unbound::NotYet),
            _ if !reply.is_success() => return Err(Unbound::Never(reply.message())),
            _ => {}
        }
        let text = String::from_utf8_lossy(&reply.body);
        let object = Object::from_text(kind, &Source::new(told, text));
        object.map(Some).map_err(|problems| Unbound::Never(problems.to_string()))
    }
}

fn check_bound(claim: &PersistentVolumeClaim) -> Result<(), Unbound> {
    let is_bound = !claim.volume.is_empty() && claim.annotations.has(BIND_COMPLETED);
    if is_bound { Ok(()) } else { Err(Unbound::NotYet) }
}

fn claim_not_found(ClaimId { key, .. }: &ClaimId) -> String {
    let Key { namespace, name } = key;
    not_found("PersistentVolumeClaim", &format!("{namespace}/{name}"))
}

fn not_found(kind: &str, key: &str) -> String {
    format!("could not find v1.{kind} {key:?}")
}
