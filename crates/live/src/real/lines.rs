//! The lines of a watch, cut out of a body that comes in pieces.

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::world::{Cut, Lines, MAX_LINE_BYTES};

/// The lines of a body, as they come.
pub(super) fn of(body: Incoming) -> Lines {
    let state = (body, Splitter::default());
    stream::unfold(state, |(mut body, mut splitter)| async {
        let line = next_line(&mut body, &mut splitter).await?;
        Some((line, (body, splitter)))
    })
    .boxed()
}

async fn next_line(body: &mut Incoming, splitter: &mut Splitter) -> Option<Result<Bytes, Cut>> {
    loop {
        if splitter.is_ended {
            return None;
        }
        if let Some(line) = splitter.next() {
            return Some(Ok(line));
        }
        if splitter.waiting.len() > MAX_LINE_BYTES {
            splitter.is_ended = true;
            return Some(Err(Cut(format!("a line of more than {} MiB", MAX_LINE_BYTES >> 20))));
        }
        match body.frame().await {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    splitter.push(data);
                }
            }
            Some(Err(error)) => {
                splitter.is_ended = true;
                return Some(Err(Cut(super::trouble::chain(&error))));
            }
            None if splitter.waiting.is_empty() => return None,
            None => {
                splitter.is_ended = true;
                return Some(Err(Cut("ended in the middle of a line".to_owned())));
            }
        }
    }
}

/// Cuts lines out of pieces. A piece that holds whole lines is not copied.
#[derive(Default)]
struct Splitter {
    /// The beginning of a line whose end has not come yet.
    waiting: BytesMut,
    /// What has not been looked at.
    piece: Bytes,
    is_ended: bool,
}

impl Splitter {
    fn push(&mut self, piece: Bytes) {
        self.piece = piece;
    }

    fn next(&mut self) -> Option<Bytes> {
        loop {
            let Some(end) = memchr::memchr(b'\n', &self.piece) else {
                self.waiting.extend_from_slice(&std::mem::take(&mut self.piece));
                return None;
            };
            let mut line = self.piece.split_to(end + 1);
            line.truncate(end);
            if !self.waiting.is_empty() {
                self.waiting.extend_from_slice(&line);
                line = self.waiting.split().freeze();
            }
            if !line.is_empty() {
                return Some(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_however_they_are_cut() {
        let text = "one\ntwo\n\nthree\n";
        for cut in 0..text.len() {
            let mut splitter = Splitter::default();
            let mut lines = Vec::new();
            for piece in [&text[..cut], &text[cut..]] {
                splitter.push(Bytes::copy_from_slice(piece.as_bytes()));
                lines.extend(std::iter::from_fn(|| splitter.next()));
            }
            assert_eq!(lines, ["one", "two", "three"], "cut at {cut}");
            assert!(splitter.waiting.is_empty());
        }
    }
}
