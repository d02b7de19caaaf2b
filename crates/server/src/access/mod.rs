//! Who calls, and whether they may: both are asked of the API server, as kube-scheduler does.
//!
//! Every way to fail ends in a refusal.

mod answers;
mod pace;
mod refusal;
mod reviewer;

pub use reviewer::{AccessDecision, AccessRequest, BoxFuture, ReviewError, Reviewer, UserInfo};

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::{sync::Semaphore, time::timeout};
use tracing::{debug, warn};

use crate::clock::Clock;
use answers::{ReviewCache, ReviewKey};
use pace::{Asker, ReviewPace};
pub(crate) use refusal::RequestRefusal;

/// Members of this group may do everything.
const MASTERS: &str = "system:masters";

/// How access is decided. The defaults are kube-scheduler's.
#[derive(Clone, Debug)]
pub struct AccessOptions {
    /// Paths that are open to everybody; one that ends in `*` stands for all that begin so.
    pub always_allow_paths: Vec<String>,
    /// How long the answer about a token is kept.
    pub token_ttl: Duration,
    /// How long a permission is kept.
    pub authorized_ttl: Duration,
    /// How long a refusal is kept.
    pub unauthorized_ttl: Duration,
    /// How long a caller waits for the API server before being refused.
    pub review_timeout: Duration,
    /// How many answers are kept, of each kind.
    pub kept_answers: usize,
    /// How many questions are put to the API server at the same time.
    pub reviews_at_once: usize,
    /// How many questions about one user, or about tokens that one client shows, are asked in a row.
    pub reviews_burst: u32,
    /// How many of them are asked in a second from then on.
    pub reviews_per_second: u32,
}

impl Default for AccessOptions {
    fn default() -> Self {
        Self {
            always_allow_paths: ["/healthz", "/readyz", "/livez"].map(str::to_owned).into(),
            token_ttl: Duration::from_secs(10),
            authorized_ttl: Duration::from_secs(10),
            unauthorized_ttl: Duration::from_secs(10),
            review_timeout: Duration::from_secs(10),
            kept_answers: 4096,
            reviews_at_once: 32,
            reviews_burst: 40,
            reviews_per_second: 10,
        }
    }
}

/// Decides who may see what.
pub struct AccessControl {
    reviewer: Arc<dyn Reviewer>,
    options: AccessOptions,
    tokens: ReviewCache<Option<UserInfo>>,
    verdicts: ReviewCache<AccessDecision>,
    turns: Semaphore,
    pace: ReviewPace,
}

/// Who the caller's certificate says they are; put there by the connection.
#[derive(Clone)]
pub(crate) struct PeerIdentity(pub(crate) UserInfo);

impl AccessControl {
    /// Asks this reviewer.
    pub fn new(reviewer: Arc<dyn Reviewer>, options: AccessOptions, clock: Clock) -> Self {
        Self {
            reviewer,
            tokens: ReviewCache::new(clock.clone(), options.kept_answers),
            verdicts: ReviewCache::new(clock.clone(), options.kept_answers),
            pace: ReviewPace::new(clock, options.reviews_burst, options.reviews_per_second),
            turns: Semaphore::new(options.reviews_at_once),
            options,
        }
    }

    async fn admit(&self, request: &Parts) -> Result<UserInfo, RequestRefusal> {
        let path = request.uri.path();
        if self.is_open(path) {
            // Health must not depend on the API server, so that nobody asks who this is.
            return Ok(UserInfo::anonymous());
        }
        let user = self.identify(request).await?;
        if user.groups.iter().any(|group| group == MASTERS) {
            return Ok(user);
        }
        let verb = request.method.as_str().to_ascii_lowercase();
        self.authorize(AccessRequest { user, verb, path: path.to_owned() }).await
    }

    fn is_open(&self, path: &str) -> bool {
        self.options.always_allow_paths.iter().any(|open| match open.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == open,
        })
    }

    async fn identify(&self, request: &Parts) -> Result<UserInfo, RequestRefusal> {
        if let Some(PeerIdentity(user)) = request.extensions.get() {
            return Ok(user.clone().authenticated());
        }
        let Some(token) = bearer_token(&request.headers) else { return Ok(UserInfo::anonymous()) };
        let key = ReviewKey::of([token]);
        let known = match self.tokens.get(&key) {
            Some(known) => known,
            None => {
                if !self.pace.allows(Asker::Client(request.extensions.get().copied())) {
                    return Err(RequestRefusal::TooManyReviews);
                }
                let answer = self.ask(self.reviewer.review_token(token)).await.map_err(|error| {
                    warn!(%error, "a caller's token could not be looked up: refused");
                    RequestRefusal::Unauthorized
                })?;
                self.tokens.keep(key, answer.clone(), self.options.token_ttl);
                answer
            }
        };
        known.map(UserInfo::authenticated).ok_or(RequestRefusal::Unauthorized)
    }

    async fn authorize(&self, request: AccessRequest) -> Result<UserInfo, RequestRefusal> {
        let key = request.key();
        let verdict = match self.verdicts.get(&key) {
            Some(verdict) => verdict,
            None => {
                if !self.pace.allows(Asker::User(request.user.name.clone())) {
                    return Err(RequestRefusal::TooManyReviews);
                }
                let verdict = self.ask(self.reviewer.review_access(&request)).await.map_err(|error| {
                    warn!(%error, user = request.user.name, path = request.path, "access could not be looked up: refused");
                    RequestRefusal::Unknown { path: request.path.clone() }
                })?;
                let allowed = verdict.allowed;
                let ttl = if allowed { self.options.authorized_ttl } else { self.options.unauthorized_ttl };
                self.verdicts.keep(key, verdict.clone(), ttl);
                verdict
            }
        };
        if verdict.allowed {
            Ok(request.user)
        } else {
            Err(RequestRefusal::forbidden(&request, &verdict.reason))
        }
    }

    /// Waits for an answer of the API server, for a turn too, but not for ever.
    async fn ask<T>(&self, question: BoxFuture<'_, Result<T, ReviewError>>) -> Result<T, ReviewError> {
        let answer = async {
            let _turn = self.turns.acquire().await.map_err(|error| ReviewError::new(error.to_string()))?;
            question.await
        };
        timeout(self.options.review_timeout, answer).await.unwrap_or_else(|_| {
            let waited = self.options.review_timeout;
            Err(ReviewError::new(format!("no answer from the API server in {waited:?}")))
        })
    }
}

/// Lets a request through, with the caller as an extension ([`UserInfo`]), or refuses it.
pub(crate) async fn guard(
    State(access): State<Arc<AccessControl>>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let (mut parts, body) = request.into_parts();
    let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
    let (user, mut response) = match access.admit(&parts).await {
        Ok(user) => {
            let name = user.name.clone();
            parts.extensions.insert(user);
            (name, next.run(Request::from_parts(parts, body)).await)
        }
        Err(refusal) => (String::new(), refusal.into_response()),
    };
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
    headers.entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    // Neither the query nor headers: they may hold secrets.
    debug!(%method, path, user, status = response.status().as_u16(), took = ?began.elapsed(), "served");
    response
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
