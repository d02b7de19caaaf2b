//! A client in the same process: what it asks is answered on the cluster's threads, as over a connection, and nothing is packed
//! into HTTP and taken out of it again.

use std::io;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use hyper::{Request, Response};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::{ApiServer, ResponseBody};

/// How many lines of a watch are on their way: about what the buffers of a connection hold.
const LINES_ON_THE_WAY: usize = 256;

/// Asks a [`TestCluster`](crate::TestCluster) without a connection. Clones ask the same one.
#[derive(Clone)]
pub struct InProcessClient {
    server: ApiServer,
    threads: Handle,
}

impl InProcessClient {
    pub(crate) fn new(server: ApiServer, threads: Handle) -> Self {
        Self { server, threads }
    }

    /// Sends a request, and gives its answer. An error is a connection that would have broken, or a cluster that has ended.
    pub async fn send(&self, request: Request<Bytes>) -> io::Result<Response<ResponseBody>> {
        let answer = self.server.answer(request);
        let threads = self.threads.clone();
        let answered =
            self.threads.spawn(async move { Ok(answer.await?.map(|body| from_afar(body, &threads))) });
        answered.await.map_err(io::Error::other)?
    }
}

/// A body whose lines are made on the cluster's threads, whoever reads them.
fn from_afar(body: ResponseBody, threads: &Handle) -> ResponseBody {
    let ResponseBody::Lines(lines) = body else { return body };
    let (give, mut taken) = mpsc::channel(LINES_ON_THE_WAY);
    threads.spawn(hand_over(lines, give));
    ResponseBody::Lines(stream::poll_fn(move |context| taken.poll_recv(context)).boxed())
}

async fn hand_over(mut lines: BoxStream<'static, io::Result<Bytes>>, give: mpsc::Sender<io::Result<Bytes>>) {
    loop {
        tokio::select! {
            biased;
            // A watch that nobody reads any more ends, also while nothing happens.
            () = give.closed() => return,
            line = lines.next() => match line {
                Some(line) => {
                    if give.send(line).await.is_err() {
                        return;
                    }
                }
                None => return,
            },
        }
    }
}
