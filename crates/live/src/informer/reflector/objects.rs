//! An object that the server has sent: whether it is news, and what is told of it.

use std::sync::Arc;

use supercargo_framework::bugs::{self, Bug};
use supercargo_manifest::{Source, clip};
use supercargo_model::{
    Key, Name, Pod,
    object::{Kind, Object},
};

use super::{
    super::{
        Resource, WatchEvent,
        known_objects::KnownAs,
        wire::{self, Head},
    },
    Reflector, Unheard,
};

impl Reflector {
    /// An object of a list.
    pub(super) async fn item(&mut self, text: &str) -> Result<(), Unheard> {
        match Head::of_object(text.as_bytes(), self.kind()) {
            Ok(head) => self.object(&head, |resource| wire::object(text, resource), || Some(text)).await,
            Err(error) => {
                self.complaints.say_of_object(
                    &*self.world,
                    self.kind(),
                    &format!("an object without a readable name: {error}"),
                );
                Ok(())
            }
        }
    }

    /// An object, as its head and then all of it.
    pub(super) async fn object<'t>(
        &mut self,
        head: &Head<'_>,
        read: impl FnOnce(&Resource) -> Result<Object, String>,
        text: impl FnOnce() -> Option<&'t str>,
    ) -> Result<(), Unheard> {
        match self.known.known_as(&head.namespace, &head.name, &head.uid, &head.version) {
            KnownAs::Same => return Ok(()),
            KnownAs::Changed => {}
            KnownAs::Recreated(_) if bugs::is_on(Bug::RecreatedIsOld) => return Ok(()),
            KnownAs::Recreated(uid) => {
                self.known.forget(&head.namespace, &head.name);
                let key = Key::new(&*head.namespace, &*head.name);
                self.tell(WatchEvent::Gone { kind: self.kind(), key, uid }).await?;
            }
        }
        match read(&self.resource) {
            Ok(object) => {
                let uid = identity(&object, &head.uid);
                self.known.keep(&name_of(&object, head), uid.clone(), &head.version);
                let wanted = self.resource.texts.as_ref().filter(|wanted| wanted.wants(&object));
                let text = wanted.and_then(|_| text()).and_then(supercargo_extender::prepared);
                self.tell(WatchEvent::Put { object, uid, version: Arc::from(&*head.version), text }).await
            }
            Err(reason) => self.unreadable(head, reason, text()).await,
        }
    }

    async fn unreadable(
        &mut self,
        head: &Head<'_>,
        reason: String,
        text: Option<&str>,
    ) -> Result<(), Unheard> {
        let kind = self.kind();
        let key = Key::new(&*head.namespace, &*head.name);
        let reason = clip(&reason).into_owned();
        self.complaints.say_of_object(&*self.world, self.kind(), &format!("{key} cannot be read: {reason}"));
        if kind == Kind::Pod {
            self.known.keep(&key, Arc::from(&*head.uid), &head.version);
        } else if let Some(uid) = self.known.forget(&head.namespace, &head.name) {
            self.tell(WatchEvent::Gone { kind, key: key.clone(), uid }).await?;
        }
        if matches!(kind, Kind::Pod | Kind::Node) {
            let uid = Arc::from(&*head.uid);
            let remains = text.and_then(|text| self.remains(head, text));
            self.tell(WatchEvent::Unreadable { kind, key, uid, reason, remains }).await?;
        }
        Ok(())
    }

    /// What can be read of a pod that has a node.
    fn remains(&self, head: &Head<'_>, text: &str) -> Option<Arc<Pod>> {
        if self.kind() != Kind::Pod {
            return None;
        }
        let source = Source::new(self.kind().name(), text);
        let pod = Object::pod_in_part(&self.resource.annotations, &source)?;
        let is_this = *pod.name == *head.name && *pod.namespace == *head.namespace && *pod.uid == *head.uid;
        let counts = pod.node.is_some() && !bugs::is_on(Bug::UnreadablePodNotCounted);
        (is_this && counts).then(|| Arc::new(pod))
    }
}

/// An object's name, shared with the object; but as its head says it, by which it will be looked for.
fn name_of(object: &Object, head: &Head<'_>) -> Key {
    let key = object.key();
    let same = *key.namespace == *head.namespace && *key.name == *head.name;
    if same { key } else { Key::new(&*head.namespace, &*head.name) }
}

/// An object's identity, shared with the object where it keeps its own.
fn identity(object: &Object, uid: &str) -> Name {
    match object {
        Object::Pod(pod) if &*pod.uid == uid => pod.uid.clone(),
        Object::Node(node) if &*node.uid == uid => node.uid.clone(),
        Object::PersistentVolumeClaim(claim) if &*claim.uid == uid => claim.uid.clone(),
        _ => Arc::from(uid),
    }
}
