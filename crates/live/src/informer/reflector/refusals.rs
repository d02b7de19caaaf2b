//! What to do when the server does not give a list or a watch.

use std::time::Duration;

use supercargo_framework::bugs::{self, Bug};
use supercargo_model::Kind;

use super::{
    super::discovery::{self, Served},
    Reflector, Step, Unheard,
};
use crate::world::{MAX_RETRY_AFTER, Refused, Reply, Unanswered, jittered};

/// How often a resource that the server does not serve is asked for again: its API may be switched on one day.
const UNSERVED_PAUSE: Duration = Duration::from_secs(60);
/// The same for custom kinds: their definitions are often installed along with the scheduler, in any order.
const UNSERVED_CUSTOM_PAUSE: Duration = Duration::from_secs(5);
/// How often it is told that a list is still forbidden.
const FORBIDDEN_TOLD_EVERY: Duration = Duration::from_secs(60);

impl Reflector {
    /// A list that was refused. Nothing is decided before it has been read, or the server has said that it has no such
    /// resource.
    pub(super) async fn list_refused(&mut self, refused: Refused) -> Result<Step, Unheard> {
        match refused {
            Refused::Reply(reply) if reply.status == 403 => {
                if bugs::is_on(Bug::ForbiddenCountsAsSynced) {
                    self.tell_synced().await?;
                }
                Ok(self.is_forbidden(&reply).await)
            }
            Refused::Reply(reply) if reply.status == 404 && !self.resource.required => {
                match discovery::served(&*self.world, &self.resource).await {
                    Served::No => self.is_unserved().await,
                    Served::Yes | Served::Unknown => self.refused(Step::List, Refused::Reply(reply)).await,
                }
            }
            refused => self.refused(Step::List, refused).await,
        }
    }

    /// Roles may be on their way, as at the start of a control plane: it is tried again within seconds.
    async fn is_forbidden(&mut self, reply: &Reply) -> Step {
        let now = self.world.uptime();
        if self.told_forbidden.is_none_or(|then| now.saturating_sub(then) >= FORBIDDEN_TOLD_EVERY) {
            self.told_forbidden = Some(now);
            let api = self.kind().api();
            let (resource, group) = (api.plural, api.group);
            let holds_up = if self.synced {
                "what was read before goes on to count"
            } else {
                "no pod is scheduled before"
            };
            tracing::warn!(
                kind = self.kind().name(),
                "cannot be listed, {holds_up}: {}; hint: grant list and watch on {resource} of the API group {group:?} \
                 (`supercargo rbac` prints the roles)",
                reply.message()
            );
        }
        self.health.lost(&self.resource, now);
        let wait = self.forbidden.next(&*self.world);
        self.world.sleep(wait).await;
        Step::List
    }

    /// A resource that the server does not serve has no objects.
    async fn is_unserved(&mut self) -> Result<Step, Unheard> {
        if !std::mem::replace(&mut self.told_unserved, true) {
            let api = self.kind().api().group_version_path();
            let hint = match self.kind() {
                Kind::Custom(_) => "; hint: install its CustomResourceDefinition",
                _ => "",
            };
            tracing::warn!(
                kind = self.kind().name(),
                api,
                "not served by the API server: taken for none{hint}"
            );
        }
        self.known.begin_list();
        self.tell_missing().await?;
        self.health.regained(&self.resource);
        self.tell_synced().await?;
        let pause = match self.kind() {
            Kind::Custom(_) => UNSERVED_CUSTOM_PAUSE,
            _ => UNSERVED_PAUSE,
        };
        self.world.sleep(jittered(&*self.world, pause, 1.0)).await;
        Ok(Step::List)
    }

    pub(super) async fn refused(&mut self, next: Step, refused: Refused) -> Result<Step, Unheard> {
        let wait = match &refused {
            Refused::Reply(reply) => reply.retry_after,
            Refused::Unanswered(_) => None,
        };
        let next = match refused {
            Refused::Reply(reply) => {
                let said = reply.message();
                self.trouble(next, &format!("the server answered {}: {said}", reply.status)).await
            }
            Refused::Unanswered(Unanswered::NotSent(why) | Unanswered::OutcomeUnknown(why)) => {
                self.trouble(next, &why).await
            }
        };
        if let Some(wait) = wait {
            self.world.sleep(wait.min(MAX_RETRY_AFTER)).await;
        }
        next
    }
}
