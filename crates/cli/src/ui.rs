//! `supercargo ui`: a cluster and its scheduling as a page, for a browser on this machine.

use std::{path::Path, sync::Arc, thread};

use supercargo_framework::registry::Registry;
use supercargo_live::world::{Request, SharedWorld};
use supercargo_manifest::{Problem, Problems};
use supercargo_server::{
    AnswerQueries, BoxFuture, Configz, Health, PAGE_PATH, Query, QueryAnswer, Routes, ServeError, Server,
    metrics::{BuildInfo, Metrics},
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    explain::{AskedScheduler, said},
    failure::{Ending, Failure},
    objects::{Inputs, tell_extenders},
    output::Console,
    page::{
        self, PATHS,
        offline::{OfflineAnswers, OfflineCluster},
    },
    run::{runtime, stop_on_signal},
};

/// How many questions may wait; a browser asks some at a time.
const MAX_QUESTIONS: usize = 64;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    inputs: Inputs,

    #[command(flatten)]
    server: AskedScheduler,

    /// The port on loopback; 0 for any that is free
    #[arg(long, value_name = "PORT", default_value_t = 8002)]
    port: u16,
}

/// What a browser asks, and the way back for the answer.
struct PageQuestion {
    path: &'static str,
    query: Query,
    reply: oneshot::Sender<QueryAnswer>,
}

/// Serves the page until it is told to stop.
pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    if options.server.is_given() {
        return relay(options, console);
    }
    let given = options.inputs.read(console, registry)?;
    if given.extender_caller.is_some() {
        tell_extenders(&given.configuration, console);
    }
    let cluster = OfflineCluster {
        title: options.inputs.name(),
        objects: given.objects,
        configuration: given.configuration,
        warnings: given.configuration_warnings,
        registry,
        seed: options.inputs.seed,
        now: given.now,
    };
    let mut answers = OfflineAnswers::new(cluster)?;
    let runtime = runtime()?;
    let server = runtime.block_on(page::bind_locally(options.port)).map_err(|error| cannot_serve(&error))?;
    tell_address(&server, console)?;
    let (questions, mut asked) = mpsc::channel(MAX_QUESTIONS);
    // This thread answers: plugins are not made to be asked by several at once. Another one serves.
    let serving = thread::Builder::new().name("page".to_owned()).spawn(move || {
        let stop = CancellationToken::new();
        runtime.block_on(async {
            tokio::spawn(stop_on_signal(stop.clone()));
            server.serve(page::open_locally(routes(&questions)), stop.cancelled()).await;
        });
    });
    let serving = serving.map_err(|error| Problem::error(format!("cannot start a thread: {error}")))?;
    while let Some(PageQuestion { path, query, reply }) = asked.blocking_recv() {
        // Whoever asked may have gone.
        let _ = reply.send(answers.answer(path, &query));
    }
    // It ends when nobody can ask any more.
    let _ = serving.join();
    Ok(Ending::Well)
}

/// Hands what the page asks on to a running scheduler, with the token that a browser would not send.
fn relay(options: &Options, console: &mut Console) -> Result<Ending, Failure> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let world: SharedWorld = Arc::new(options.server.open().await?);
        let server = page::bind_locally(options.port).await.map_err(|error| cannot_serve(&error))?;
        tell_address(&server, console)?;
        let stop = CancellationToken::new();
        tokio::spawn(stop_on_signal(stop.clone()));
        let url: Arc<str> = options.server.url().into();
        let routes =
            with_answers(move |path, query| Box::pin(ask_scheduler(world.clone(), url.clone(), path, query)));
        server.serve(page::open_locally(routes), stop.cancelled()).await;
        Ok(Ending::Well)
    })
}

async fn ask_scheduler(world: SharedWorld, url: Arc<str>, path: &'static str, query: Query) -> QueryAnswer {
    let reply = match world.send(Request::get(format!("{path}?{}", query.to_text()))).await {
        Ok(reply) => reply,
        Err(error) => return QueryAnswer::Unavailable(format!("{url} does not answer: {error}")),
    };
    match reply.status {
        200 => QueryAnswer::Json(reply.body),
        400 => QueryAnswer::BadRequest(said(&reply.body)),
        404 => QueryAnswer::NotFound(said(&reply.body)),
        401 | 403 => QueryAnswer::Unavailable(format!(
            "{url} refuses: {}\nhint: give a --token that may get the non-resource URL {path}",
            said(&reply.body)
        )),
        status => QueryAnswer::Unavailable(format!("{url} answered {status}: {}", said(&reply.body))),
    }
}

fn tell_address(server: &Server, console: &mut Console) -> std::io::Result<()> {
    console.line(address(server))?;
    console.flush()?;
    console.note("open this address in a browser; Ctrl-C ends it");
    Ok(())
}

/// Where a browser finds the page.
pub(crate) fn address(server: &Server) -> String {
    format!("http://{}{PAGE_PATH}", server.address())
}

/// Why the page cannot be served.
pub(crate) fn cannot_serve(error: &ServeError) -> Problems {
    Problem::error(error.to_string()).hint("choose another port, or 0 for any that is free").into()
}

/// What a scheduler that runs serves besides, and this one has nothing of.
pub(crate) fn bare_routes(metrics: Arc<Metrics>) -> Routes {
    Routes::new(Health::default(), metrics, Configz::default())
}

fn routes(questions: &mpsc::Sender<PageQuestion>) -> Routes {
    let questions = questions.clone();
    with_answers(move |path, query| {
        let questions = questions.clone();
        Box::pin(async move { ask(&questions, path, query).await })
    })
}

/// The page, and whoever answers it.
fn with_answers(
    answer: impl Fn(&'static str, Query) -> BoxFuture<'static, QueryAnswer> + Clone + Send + Sync + 'static,
) -> Routes {
    let build = BuildInfo::new(env!("CARGO_PKG_VERSION"), "");
    let routes = bare_routes(Arc::new(Metrics::new(&build, supercargo_server::Clock::system()))).page();
    PATHS.into_iter().fold(routes, |routes, path| {
        let answer = answer.clone();
        let answers: AnswerQueries = Arc::new(move |query| answer(path, query));
        routes.answers(path, answers)
    })
}

async fn ask(questions: &mpsc::Sender<PageQuestion>, path: &'static str, query: Query) -> QueryAnswer {
    let (reply, answer) = oneshot::channel();
    let question = PageQuestion { path, query, reply };
    let asked = questions.send(question).await.is_ok();
    match answer.await {
        Ok(answer) if asked => answer,
        _ => QueryAnswer::Unavailable("this is ending".to_owned()),
    }
}

/// How files are called in a title.
pub(crate) fn title_of<'p>(paths: impl IntoIterator<Item = &'p Path>) -> String {
    let name = |path: &Path| {
        path.file_name()
            .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
    };
    paths.into_iter().map(name).collect::<Vec<_>>().join(", ")
}
