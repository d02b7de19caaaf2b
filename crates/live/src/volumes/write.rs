//! Writes a plan into the API server: volumes first, then claims, in the plan's order.

use std::time::Duration;

use serde_json::Value;
use supercargo_model::ResourceVersion;
use supercargo_plugins::volume_binding::WrittenPlan;

use super::{
    Order, VolumeFailure,
    edit::{check_free, give_away, select_node},
};
use crate::{
    requests::{get_claim, get_volume, update_claim, update_volume},
    world::{Reply, Request, World},
};

/// How often a write is tried whose outcome is unknown, or that the server has no time for.
const MAX_ATTEMPTS: u32 = 4;

/// How long to wait between attempts, unless the server wishes for more.
const RETRY_WAIT: Duration = Duration::from_secs(1);

pub(super) struct Writer<'a> {
    pub(super) world: &'a dyn World,
    pub(super) may_write: &'a (dyn Fn() -> bool + Send + Sync),
}

/// How a request ended that brought nothing.
enum Trouble {
    /// The object is not what it was when it was read.
    Stale(String),
    /// It makes sense to try again; whether the server has done what was asked may be unknown.
    Passing { why: String, wait: Duration },
    /// The server refuses.
    Final(String),
}

impl Writer<'_> {
    pub(super) async fn write(&self, order: &Order) -> Result<WrittenPlan, VolumeFailure> {
        let (mut bound, mut provisioned) = (Vec::new(), Vec::new());
        for (volume, claim) in &order.plan.bind {
            let claim_object = self.read(get_claim(&claim.key)).await?;
            check_free(&claim_object, claim, volume).map_err(VolumeFailure::Conflict)?;
            let change = |object: &mut Value| give_away(object, &claim_object);
            let update = |object: &Value| update_volume(volume, object);
            let version = self.bring_about(get_volume(volume), change, update).await?;
            bound.push((volume.clone(), claim.clone(), version));
        }
        for claim in &order.plan.provision {
            let change = |object: &mut Value| select_node(object, claim, &order.node);
            let update = |object: &Value| update_claim(&claim.key, object);
            let version = self.bring_about(get_claim(&claim.key), change, update).await?;
            provisioned.push((claim.clone(), version));
        }
        Ok(WrittenPlan { pod: order.pod.clone(), node: order.node.clone(), bound, provisioned })
    }

    /// Reads an object, and writes it unless it is as it should be; the version that is. Where it is unknown whether a
    /// write was done, the object is read again: it tells.
    async fn bring_about(
        &self,
        read: Request,
        change: impl Fn(&mut Value) -> Result<bool, String>,
        update: impl Fn(&Value) -> Request,
    ) -> Result<ResourceVersion, VolumeFailure> {
        let mut last_trouble = None;
        for _ in 0..MAX_ATTEMPTS {
            let mut object = self.read(read.clone()).await?;
            if !change(&mut object).map_err(VolumeFailure::Conflict)? {
                return Ok(version_of(&object));
            }
            if !(self.may_write)() {
                return Err(VolumeFailure::NotLeading);
            }
            match self.send(update(&object)).await {
                Ok(reply) => {
                    return Ok(version_of(&serde_json::from_slice(&reply.body).unwrap_or_default()));
                }
                Err(Trouble::Final(why)) => return Err(VolumeFailure::Refused(why)),
                // After an attempt of unknown outcome, it may be that attempt which has changed the object.
                Err(Trouble::Stale(why)) if last_trouble.is_none() => {
                    return Err(VolumeFailure::Conflict(why));
                }
                Err(Trouble::Stale(why)) => last_trouble = Some(why),
                Err(Trouble::Passing { why, wait }) => {
                    last_trouble = Some(why);
                    self.world.sleep(wait).await;
                }
            }
        }
        Err(VolumeFailure::Refused(last_trouble.unwrap_or_default()))
    }

    async fn read(&self, request: Request) -> Result<Value, VolumeFailure> {
        let mut last_trouble = String::new();
        for _ in 0..MAX_ATTEMPTS {
            match self.send(request.clone()).await {
                Ok(reply) => {
                    let unreadable = |error| VolumeFailure::Refused(format!("{request}: {error}"));
                    return serde_json::from_slice(&reply.body).map_err(unreadable);
                }
                Err(Trouble::Stale(why) | Trouble::Final(why)) => return Err(VolumeFailure::Refused(why)),
                Err(Trouble::Passing { why, wait }) => {
                    last_trouble = why;
                    self.world.sleep(wait).await;
                }
            }
        }
        Err(VolumeFailure::Refused(last_trouble))
    }

    async fn send(&self, request: Request) -> Result<Reply, Trouble> {
        let told = request.to_string();
        match self.world.send(request).await {
            Ok(reply) if reply.is_success() => Ok(reply),
            Ok(reply) if reply.status == 409 => Err(Trouble::Stale(reply.message())),
            Ok(reply) if reply.status == 429 || reply.status >= 500 => Err(Trouble::Passing {
                why: reply.message(),
                wait: reply.retry_after.unwrap_or_default().max(RETRY_WAIT),
            }),
            Ok(reply) => Err(Trouble::Final(reply.message())),
            Err(unanswered) => {
                Err(Trouble::Passing { why: format!("{told}: {unanswered}"), wait: RETRY_WAIT })
            }
        }
    }
}

fn version_of(object: &Value) -> ResourceVersion {
    ResourceVersion(object["metadata"]["resourceVersion"].as_str().unwrap_or_default().into())
}
