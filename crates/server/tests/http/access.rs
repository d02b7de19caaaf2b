//! Who is let in.

use std::{sync::atomic::Ordering, time::Duration};

use supercargo_server::AccessOptions;

use crate::{
    client::get,
    setup::{Mood, Setup},
};

const ANN: &str = "Authorization: Bearer ann";
const BOB: &str = "Authorization: Bearer bob";
const ROOT: &str = "Authorization: bearer root";
const STRANGER: &str = "Authorization: Bearer stolen";

#[tokio::test]
async fn health_is_open_and_nothing_else_is() {
    let server = Setup::default().start().await;
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(get(server.address, path, &[]).await.code, 200, "{path}");
    }
    let closed = [
        "/metrics",
        "/metrics/slis",
        "/metrics/resources",
        "/configz",
        "/whoami",
        "/nowhere",
        "/",
        "/readyz/ping",
        "/healthz/",
    ];
    for path in closed {
        let (code, reason, message) = get(server.address, path, &[]).await.status();
        assert_eq!((code, &*reason), (403, "Forbidden"), "{path}");
        let expected =
            format!("forbidden: User \"system:anonymous\" cannot get path \"{path}\": no rule for it");
        assert_eq!(message, expected);
    }
    let asked = server.reviewer.accesses_asked.lock().unwrap();
    assert!(asked.iter().all(|asked| asked.user.groups == ["system:unauthenticated"]));
}

#[tokio::test]
async fn a_known_and_allowed_caller_is_let_in() {
    let server = Setup::default().start().await;
    for path in ["/metrics", "/metrics/slis", "/metrics/resources", "/configz", "/whoami", "/readyz/ping"] {
        assert_eq!(get(server.address, path, &[ANN]).await.code, 200, "{path}");
    }
    assert_eq!(get(server.address, "/whoami", &[ANN]).await.body, "ann");
    assert_eq!(get(server.address, "/nowhere", &[ANN]).await.code, 404);
    let asked = server.reviewer.accesses_asked.lock().unwrap();
    assert_eq!((&*asked[0].verb, &*asked[0].path), ("get", "/metrics"));
    assert_eq!(asked[0].user.groups, ["people", "system:authenticated"]);
}

#[tokio::test]
async fn a_query_is_not_part_of_the_path_that_is_asked_about() {
    let server = Setup::default().start().await;
    get(server.address, "/metrics?a=b", &[ANN]).await;
    assert_eq!(server.reviewer.accesses_asked.lock().unwrap()[0].path, "/metrics");
}

#[tokio::test]
async fn a_spelling_that_only_looks_open_is_closed() {
    let server = Setup::default().start().await;
    for path in ["/healthz/../metrics", "//healthz", "/%68ealthz", "/healthz%2f..%2fmetrics", "/%6detrics"] {
        assert_eq!(get(server.address, path, &[]).await.code, 403, "{path}");
    }
}

#[tokio::test]
async fn a_token_that_nobody_knows_is_refused() {
    let server = Setup::default().start().await;
    let answer = get(server.address, "/metrics", &[STRANGER]).await;
    assert_eq!(answer.status(), (401, "Unauthorized".into(), "Unauthorized".into()));
    assert!(server.reviewer.accesses_asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn other_kinds_of_credentials_are_none() {
    let server = Setup::default().start().await;
    for header in ["Authorization: Basic YW5uOmFubg==", "Authorization: Bearer", "Authorization: Bearer  "] {
        assert_eq!(get(server.address, "/metrics", &[header]).await.code, 403, "{header}");
    }
    assert_eq!(server.reviewer.tokens_asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_caller_who_may_not_is_refused() {
    let server = Setup::default().start().await;
    let (code, _, message) = get(server.address, "/metrics", &[BOB]).await.status();
    assert_eq!(
        (code, &*message),
        (403, "forbidden: User \"bob\" cannot get path \"/metrics\": no rule for it")
    );
}

#[tokio::test]
async fn masters_may_everything_without_a_question() {
    let server = Setup::default().start().await;
    assert_eq!(get(server.address, "/whoami", &[ROOT]).await.body, "root");
    assert!(server.reviewer.accesses_asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_failed_look_up_is_a_refusal() {
    let server = Setup::default().start().await;
    server.mood(Mood::Fails);
    let (code, ..) = get(server.address, "/metrics", &[ANN]).await.status();
    assert_eq!(code, 401, "whose token it is could not be found out");
    let (code, reason, message) = get(server.address, "/metrics", &[]).await.status();
    assert_eq!((code, &*reason), (500, "InternalError"));
    assert!(!message.contains("connection refused"), "the cause is for the log: {message}");
    assert_eq!(get(server.address, "/healthz", &[ANN]).await.code, 200, "health asks nobody");

    server.mood(Mood::Answers);
    assert_eq!(get(server.address, "/metrics", &[ANN]).await.code, 200, "a failure is not kept");
}

#[tokio::test]
async fn a_slow_look_up_is_a_refusal_in_bounded_time() {
    let server = Setup::default().start().await;
    server.mood(Mood::Hangs);
    let answers = tokio::time::timeout(Duration::from_secs(5), async {
        (get(server.address, "/metrics", &[ANN]).await.code, get(server.address, "/metrics", &[]).await.code)
    });
    assert_eq!(answers.await.expect("bounded time"), (401, 500));
}

#[tokio::test]
async fn callers_beyond_the_questions_at_once_are_refused_in_bounded_time_too() {
    let access = AccessOptions {
        reviews_at_once: 1,
        review_timeout: Duration::from_millis(100),
        ..AccessOptions::default()
    };
    let server = Setup { access, ..Setup::default() }.start().await;
    server.mood(Mood::Hangs);
    let (one, other) =
        tokio::join!(get(server.address, "/metrics", &[ANN]), get(server.address, "/metrics", &[BOB]));
    assert_eq!((one.code, other.code), (401, 401));
}

#[tokio::test]
async fn ever_new_paths_and_tokens_are_asked_about_only_so_often() {
    let server = Setup::default().start().await;
    let mut codes = Vec::new();
    for i in 0..100 {
        codes.push(get(server.address, &format!("/nowhere/{i}"), &[]).await.code);
    }
    // The clock stands still: forty in a row and no more.
    assert_eq!(server.reviewer.accesses_asked.lock().unwrap().len(), 40);
    assert_eq!((&codes[..40], &codes[40..]), (&[403; 40][..], &[429; 60][..]));
    let (_, reason, message) = get(server.address, "/another", &[]).await.status();
    assert_eq!(reason, "TooManyRequests");
    assert!(message.ends_with("try again later"), "{message}");
    // Whoever is known is asked about apart from those.
    assert_eq!(get(server.address, "/metrics", &[ANN]).await.code, 200);
    let tokens = server.reviewer.tokens_asked.load(Ordering::SeqCst);
    for i in 0..100 {
        get(server.address, "/metrics", &[&format!("Authorization: Bearer made-up-{i}")]).await;
    }
    assert_eq!(
        server.reviewer.tokens_asked.load(Ordering::SeqCst) - tokens,
        39,
        "ann's was the first of forty"
    );
    assert_eq!(get(server.address, "/metrics", &[ANN]).await.code, 200, "what is known need not be asked");
    server.pass(Duration::from_secs(1));
    assert_eq!(get(server.address, "/nowhere/100", &[]).await.code, 403);
    assert_eq!(get(server.address, "/metrics", &[BOB]).await.code, 403);
}

#[tokio::test]
async fn answers_are_kept_for_ten_seconds() {
    let server = Setup::default().start().await;
    let asked = || {
        let accesses = server.reviewer.accesses_asked.lock().unwrap().len();
        (server.reviewer.tokens_asked.load(Ordering::SeqCst), accesses)
    };
    for header in [ANN, BOB, STRANGER] {
        let first = get(server.address, "/metrics", &[header]).await.code;
        let before = asked();
        server.pass(Duration::from_secs(9));
        assert_eq!(get(server.address, "/metrics", &[header]).await.code, first);
        assert_eq!(asked(), before, "{header}");

        server.pass(Duration::from_secs(1));
        assert_eq!(get(server.address, "/metrics", &[header]).await.code, first);
        let accesses = if header == STRANGER { 0 } else { 1 };
        assert_eq!(asked(), (before.0 + 1, before.1 + accesses), "{header}");
    }
}

#[tokio::test]
async fn a_permission_that_was_kept_ends_in_a_refusal_when_nobody_can_be_asked() {
    let server = Setup::default().start().await;
    assert_eq!(get(server.address, "/metrics", &[ANN]).await.code, 200);
    server.mood(Mood::Fails);
    assert_eq!(get(server.address, "/metrics", &[ANN]).await.code, 200);
    server.pass(Duration::from_secs(10));
    assert_eq!(get(server.address, "/metrics", &[ANN]).await.code, 401);
}

#[tokio::test]
async fn an_open_path_may_stand_for_all_below_it() {
    let access = AccessOptions { always_allow_paths: vec!["/readyz*".into()], ..AccessOptions::default() };
    let server = Setup { access, ..Setup::default() }.start().await;
    assert_eq!(get(server.address, "/readyz/ping", &[]).await.code, 200);
    assert_eq!(get(server.address, "/healthz", &[]).await.code, 403);
}
