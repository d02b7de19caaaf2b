//! Writes a plan into the API server: volumes first, then claims, in the plan's order.

use std::time::Duration;

use serde_json::Value;
use supercargo_framework::{
    bugs::{self, Bug},
    handle::{ApiError, ApiFailure, ApiRequest, ApiResource, Handle, Verb},
};
use supercargo_model::{Key, ResourceVersion};

use super::{
    bind::{VolumeBindingRequest, VolumeFailure},
    edit::{check_free, give_away, select_node},
    progress::WrittenPlan,
};

/// How often a write is tried whose outcome is unknown, or that the server has no time for.
const MAX_ATTEMPTS: u32 = 4;

/// How long to wait between attempts, unless the server wishes for more.
const RETRY_WAIT: Duration = Duration::from_secs(1);

/// Writes what was planned.
pub(super) async fn write(
    handle: &dyn Handle,
    order: &VolumeBindingRequest,
) -> Result<WrittenPlan, VolumeFailure> {
    Writer { handle }.write(order).await
}

struct Writer<'a> {
    handle: &'a dyn Handle,
}

/// How a request ended that brought nothing.
enum Trouble {
    /// The object is not what it was when it was read.
    Stale(String),
    /// It makes sense to try again; whether the server has done what was asked may be unknown.
    Passing { why: String, wait: Duration },
    /// The server refuses.
    Final(String),
    /// Another scheduler leads.
    NotLeading,
}

impl Writer<'_> {
    async fn write(&self, order: &VolumeBindingRequest) -> Result<WrittenPlan, VolumeFailure> {
        let (mut bound, mut provisioned) = (Vec::new(), Vec::new());
        for (volume, claim) in &order.plan.bind {
            let claim_object = self.read(&ApiResource::PERSISTENT_VOLUME_CLAIMS, &claim.key).await?;
            check_free(&claim_object, claim, volume).map_err(VolumeFailure::Conflict)?;
            let change = |object: &mut Value| give_away(object, &claim_object);
            let key = Key::new("", volume.clone());
            let version = self.bring_about(&ApiResource::PERSISTENT_VOLUMES, &key, change).await?;
            bound.push((volume.clone(), claim.clone(), version));
        }
        for claim in &order.plan.provision {
            let change = |object: &mut Value| select_node(object, claim, &order.node);
            let resource = ApiResource::PERSISTENT_VOLUME_CLAIMS;
            let version = self.bring_about(&resource, &claim.key, change).await?;
            provisioned.push((claim.clone(), version));
        }
        Ok(WrittenPlan { pod: order.pod.key(), node: order.node.clone(), bound, provisioned })
    }

    /// Reads an object, and writes it unless it is as it should be; the version that is. Where it is unknown whether a
    /// write was done, the object is read again: it tells.
    async fn bring_about(
        &self,
        resource: &ApiResource,
        key: &Key,
        change: impl Fn(&mut Value) -> Result<bool, String>,
    ) -> Result<ResourceVersion, VolumeFailure> {
        let mut last_trouble = None;
        for _ in 0..MAX_ATTEMPTS {
            let mut object = self.read(resource, key).await?;
            if !change(&mut object).map_err(VolumeFailure::Conflict)? {
                return Ok(version_of(&object));
            }
            match self.send(Verb::Update, resource, key, object).await {
                Ok(written) => return Ok(version_of(&written)),
                Err(Trouble::NotLeading) => return Err(VolumeFailure::NotLeading),
                Err(Trouble::Final(why)) => return Err(VolumeFailure::Refused(why)),
                // After an attempt of unknown outcome, it may be that attempt which has changed the object.
                Err(Trouble::Stale(why)) if last_trouble.is_none() => {
                    return Err(VolumeFailure::Conflict(why));
                }
                Err(Trouble::Stale(why)) => last_trouble = Some(why),
                Err(Trouble::Passing { .. }) if bugs::is_on(Bug::UnansweredVolumeWriteIsDone) => {
                    return Ok(ResourceVersion::default());
                }
                Err(Trouble::Passing { why, wait }) => {
                    last_trouble = Some(why);
                    self.handle.sleep(wait).await;
                }
            }
        }
        Err(VolumeFailure::Refused(last_trouble.unwrap_or_default()))
    }

    async fn read(&self, resource: &ApiResource, key: &Key) -> Result<Value, VolumeFailure> {
        let mut last_trouble = String::new();
        for _ in 0..MAX_ATTEMPTS {
            match self.send(Verb::Get, resource, key, Value::Null).await {
                Ok(object) => return Ok(object),
                Err(Trouble::Stale(why) | Trouble::Final(why)) => return Err(VolumeFailure::Refused(why)),
                Err(Trouble::NotLeading) => return Err(VolumeFailure::NotLeading),
                Err(Trouble::Passing { why, wait }) => {
                    last_trouble = why;
                    self.handle.sleep(wait).await;
                }
            }
        }
        Err(VolumeFailure::Refused(last_trouble))
    }

    async fn send(
        &self,
        verb: Verb,
        resource: &ApiResource,
        key: &Key,
        body: Value,
    ) -> Result<Value, Trouble> {
        let request = ApiRequest::new(verb, *resource, key.clone(), body);
        self.handle.send(request).await.map_err(trouble)
    }
}

fn trouble(ApiError { failure, message: why }: ApiError) -> Trouble {
    match failure {
        ApiFailure::Conflict => Trouble::Stale(why),
        ApiFailure::Busy(wish) | ApiFailure::ServerError(wish) => {
            Trouble::Passing { why, wait: wish.unwrap_or_default().max(RETRY_WAIT) }
        }
        ApiFailure::NotSent | ApiFailure::OutcomeUnknown => Trouble::Passing { why, wait: RETRY_WAIT },
        ApiFailure::NotFound | ApiFailure::Refused => Trouble::Final(why),
        ApiFailure::NotLeading => Trouble::NotLeading,
    }
}

fn version_of(object: &Value) -> ResourceVersion {
    ResourceVersion(object["metadata"]["resourceVersion"].as_str().unwrap_or_default().into())
}
