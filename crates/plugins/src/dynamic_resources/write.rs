//! Writes what was chosen for a claim, in the server's own JSON: every other field stays, known or not.

use std::time::Duration;

use serde_json::{Value, json};
use supercargo_framework::handle::{
    ApiError, ApiFailure, ApiRequest, ApiResource, HandleRef, Measurement, Verb,
};
use supercargo_model::{
    Key, Kind, Name, Pod,
    devices::{ClaimAllocation, EXTENDED_RESOURCE_CLAIM, ResourceClaim},
    pod::ExtendedRequest,
};

use super::extended::ExtendedRequests;

pub(super) const CLAIMS: ApiResource = *Kind::ResourceClaim.api();
/// Keeps a claim that has devices from being deleted.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// client-go's figures for a write that somebody else was quicker with.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Why a claim is not written.
pub(super) struct WriteFailure {
    pub(super) message: String,
    /// The object has changed since it was read, or nobody knows whether it was written: it may be tried again.
    may_retry: bool,
}

impl WriteFailure {
    fn of(what: impl std::fmt::Display, error: &ApiError) -> Self {
        let may_retry = error.failure == ApiFailure::Conflict || error.is_unknown();
        Self { message: format!("{what}: {error}"), may_retry }
    }

    fn plain(message: String) -> Self {
        Self { message, may_retry: false }
    }
}

/// Writes about the claims of one pod.
#[derive(Clone, Copy)]
pub(super) struct ClaimWriter<'a> {
    pub(super) handle: &'a HandleRef,
    pub(super) pod: &'a Pod,
}

impl ClaimWriter<'_> {
    /// Writes an allocation into a claim, unless it has one, and the pod among those that may use it. The claim as it is then.
    pub(super) async fn reserve(
        &self,
        claim: &ResourceClaim,
        allocation: Option<&ClaimAllocation>,
        again: bool,
    ) -> Result<Value, String> {
        let mut attempt = 1;
        loop {
            match self.try_to_reserve(claim, allocation, again || attempt > 1).await {
                Err(failure) if failure.may_retry && attempt < ATTEMPTS => {
                    attempt += 1;
                    self.handle.sleep(PAUSE).await;
                }
                done => return done.map_err(|failure| failure.message),
            }
        }
    }

    async fn try_to_reserve(
        &self,
        claim: &ResourceClaim,
        allocation: Option<&ClaimAllocation>,
        again: bool,
    ) -> Result<Value, WriteFailure> {
        let key = claim.key();
        let read = self.handle.get_object(&CLAIMS, &key).await;
        let mut now = read.map_err(|error| WriteFailure::of(format_args!("get claim {key}"), &error))?;
        if now["metadata"]["uid"] != *claim.uid || !now["metadata"]["deletionTimestamp"].is_null() {
            return Err(WriteFailure::plain(format!("claim {key} got deleted in the meantime")));
        }
        if again && self.is_reserved(&now) && has_allocation(&now, allocation) {
            // It was written after all.
            return Ok(now);
        }
        if let Some(allocation) = allocation {
            if !now["status"]["allocation"].is_null() {
                return Err(WriteFailure::plain(format!(
                    "claim {key} got allocated elsewhere in the meantime"
                )));
            }
            now = self.protect(&key, now).await?;
            now["status"]["allocation"] = json!(allocation);
        }
        if now["status"]["allocation"].is_null() {
            return Err(WriteFailure::plain(format!(
                "claim {key} got deallocated elsewhere in the meantime"
            )));
        }
        let pod = json!({"resource": "pods", "name": &*self.pod.name, "uid": &*self.pod.uid});
        match now["status"]["reservedFor"].as_array_mut() {
            Some(reserved) => reserved.push(pod),
            None => now["status"]["reservedFor"] = json!([pod]),
        }
        if now["status"]["allocation"]["allocationTimestamp"].is_null() {
            now["status"]["allocation"]["allocationTimestamp"] = json!(self.now());
        }
        let written = self.update(&key, "status", now).await;
        written.map_err(|error| {
            let what = if allocation.is_some() { "allocation and reservation" } else { "reservation" };
            WriteFailure::of(format_args!("add {what} to claim {key}"), &error)
        })
    }

    /// Sees to it that a claim is not deleted while it has devices.
    async fn protect(&self, key: &Key, mut claim: Value) -> Result<Value, WriteFailure> {
        let finalizers = claim["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        if finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            return Ok(claim);
        }
        let finalizers: Vec<Value> = finalizers.into_iter().chain([FINALIZER.into()]).collect();
        claim["metadata"]["finalizers"] = finalizers.into();
        let written = self.update(key, "", claim).await;
        written.map_err(|error| WriteFailure::of(format_args!("add finalizer to claim {key}"), &error))
    }

    fn is_reserved(&self, claim: &Value) -> bool {
        let reserved = claim["status"]["reservedFor"].as_array();
        reserved.is_some_and(|reserved| reserved.iter().any(|consumer| consumer["uid"] == *self.pod.uid))
    }

    /// Whole seconds, as Kubernetes writes times.
    fn now(&self) -> Option<String> {
        let now = self.handle.get()?.now();
        Some(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    }

    async fn update(&self, key: &Key, part: &'static str, object: Value) -> Result<Value, ApiError> {
        self.handle.send(ApiRequest::new(Verb::Update, CLAIMS, key.clone(), object).at(part)).await
    }

    /// Makes the claim for the pod's extended resources.
    pub(super) async fn make(
        &self,
        claim: &ResourceClaim,
        asked: &ExtendedRequests,
    ) -> Result<Value, String> {
        let namespace = &*claim.namespace;
        let object = json!({
            "apiVersion": CLAIMS.api_version(), "kind": CLAIMS.kind,
            "metadata": {
                "generateName": format!("{}-extended-resources-", self.pod.name), "namespace": namespace,
                "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Pod", "name": &*self.pod.name, "uid": &*self.pod.uid,
                    "controller": true,
                }],
            },
            "spec": {"devices": {"requests": requests(asked)}},
            "status": {},
        });
        let key = Key::new(claim.namespace.clone(), "");
        let made = self.handle.send(ApiRequest::new(Verb::Create, CLAIMS, key, object)).await;
        self.handle.measure(Measurement::ClaimCreated { success: made.is_ok() });
        made.map_err(|error| format!("create claim for extended resources {namespace}/: {error}"))
    }

    /// Tells in the pod's status which requests of the claim stand for its extended resources.
    pub(super) async fn tell_mappings(
        &self,
        claim: &Name,
        mappings: &[ExtendedRequest],
    ) -> Result<(), String> {
        let pod = self.pod.key();
        if mappings.is_empty() {
            return Err(format!(
                "nil or empty request mappings, no update of pod {pod} ExtendedResourceClaimStatus"
            ));
        }
        let mapping = |one: &ExtendedRequest| {
            json!({
                "containerName": &*one.container_name, "resourceName": &*one.resource_name,
                "requestName": &*one.request_name,
            })
        };
        let mappings: Vec<Value> = mappings.iter().map(mapping).collect();
        let status = json!({"requestMappings": mappings, "resourceClaimName": &**claim});
        let patch = json!({"status": {"extendedResourceClaimStatus": status}});
        let request = ApiRequest::new(Verb::StrategicMergePatch, ApiResource::PODS, pod.clone(), patch);
        let told = self.handle.send(request.at("status")).await;
        told.map(drop).map_err(|error| format!("update pod {pod} ExtendedResourceClaimStatus: {error}"))
    }

    /// The pod does not use a claim after all.
    pub(super) async fn unreserve(&self, key: &Key, uid: &str) -> Result<(), ApiError> {
        let patch = json!({
            "metadata": {"uid": uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": &*self.pod.uid}]},
        });
        let request = ApiRequest::new(Verb::StrategicMergePatch, CLAIMS, key.clone(), patch);
        self.handle.send(request.at("status")).await.map(drop)
    }

    /// Takes the devices away from a claim that nobody uses.
    pub(super) async fn deallocate(&self, key: &Key, uid: &str) -> Result<(), String> {
        let mut claim = self.read(key, uid).await?;
        if let Some(status) = claim["status"].as_object_mut() {
            status.retain(|field, _| !["allocation", "reservedFor", "devices"].contains(&field.as_str()));
        }
        self.update(key, "status", claim).await.map(drop).map_err(|error| error.message)
    }

    /// Deletes a claim that the scheduler has made.
    pub(super) async fn delete(&self, key: &Key, uid: &str) -> Result<(), String> {
        let mut attempt = 1;
        loop {
            let mut claim = self.read(key, uid).await?;
            let finalizers = claim["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
            let others: Vec<Value> =
                finalizers.into_iter().filter(|finalizer| finalizer != FINALIZER).collect();
            claim["metadata"]["finalizers"] = others.into();
            match self.update(key, "", claim).await {
                Ok(_) => break,
                Err(error) if attempt < ATTEMPTS && WriteFailure::of("", &error).may_retry => {
                    attempt += 1;
                    self.handle.sleep(PAUSE).await;
                }
                Err(error) => return Err(format!("update resourceclaim {key}: {error}")),
            }
        }
        self.handle.delete(&CLAIMS, key, uid).await.map_err(|error| error.message)
    }

    async fn read(&self, key: &Key, uid: &str) -> Result<Value, String> {
        let read = self.handle.get_object(&CLAIMS, key).await;
        let claim = read.map_err(|error| format!("get resourceclaim {key}: {error}"))?;
        match claim["metadata"]["uid"] == *uid {
            true => Ok(claim),
            false => Err(format!("resourceclaim {key} is another by now")),
        }
    }
}

fn has_allocation(claim: &Value, allocation: Option<&ClaimAllocation>) -> bool {
    let Some(ours) = allocation else { return true };
    let there = serde_json::from_str::<ClaimAllocation>(&claim["status"]["allocation"].to_string());
    there.is_ok_and(|there| there.devices == ours.devices)
}

fn requests(asked: &ExtendedRequests) -> Value {
    if asked.requests.is_empty() {
        return Value::Null;
    }
    let one = |request: &supercargo_model::devices::DeviceRequest| {
        let exactly = request.exactly.as_ref().map(|asked| {
            json!({
                "deviceClassName": &*asked.device_class_name, "allocationMode": "ExactCount",
                "count": asked.count,
            })
        });
        json!({"name": &*request.name, "exactly": exactly})
    };
    asked.requests.iter().map(one).collect()
}
