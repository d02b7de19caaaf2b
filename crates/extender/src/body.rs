//! Reads the body of an answer, in bounded memory: however long it is, and however small its pieces are.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;

/// What came of reading.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// All of it.
    Whole(Vec<u8>),
    /// It is longer; this is its beginning.
    Beginning(Vec<u8>),
}

/// Reads at most `max_bytes` of a body into one buffer. Pieces are let go as soon as they are copied: each of them holds on
/// to the buffer that it was received in.
///
/// # Errors
///
/// Those of the body.
pub async fn read<B>(body: B, max_bytes: usize) -> Result<Read, B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut body = body;
    let mut buffer = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        let room = max_bytes - buffer.len();
        if piece.len() > room {
            buffer.extend_from_slice(&piece[..room]);
            return Ok(Read::Beginning(buffer));
        }
        buffer.extend_from_slice(&piece);
    }
    Ok(Read::Whole(buffer))
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use futures_util::{FutureExt, StreamExt, stream};
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    /// A piece that is counted as long as anybody holds on to it, by all that are.
    struct Counted(&'static [u8], Arc<AtomicUsize>);

    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            self.0
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn pieces_are_let_go_as_they_come() {
        let (held, most) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let pieces = stream::iter(0..1 << 10).map(|_| {
            most.fetch_max(1 + held.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
            Ok::<_, Infallible>(Frame::data(Bytes::from_owner(Counted(b"x", held.clone()))))
        });
        let read = read(StreamBody::new(pieces), 16 << 20).now_or_never().unwrap().unwrap();
        assert_eq!(read, Read::Whole(vec![b'x'; 1 << 10]));
        assert_eq!((held.load(Ordering::Relaxed), most.load(Ordering::Relaxed)), (0, 1));
    }

    /// Reads a body of equal pieces; and how many of them were taken.
    fn read_pieces(piece: &'static [u8], count: usize, max_bytes: usize) -> (Read, usize) {
        let taken = AtomicUsize::new(0);
        let pieces = stream::iter(0..count).map(|_| {
            taken.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(piece)))
        });
        let read = read(StreamBody::new(pieces), max_bytes).now_or_never().unwrap().unwrap();
        (read, taken.load(Ordering::Relaxed))
    }

    #[test]
    fn a_million_pieces_of_one_byte_cost_what_they_weigh() {
        let (read, _) = read_pieces(b"x", 1 << 20, 16 << 20);
        let Read::Whole(bytes) = read else { panic!("it fits") };
        assert_eq!(bytes.len(), 1 << 20);
        assert!(bytes.capacity() <= 2 << 20, "{}", bytes.capacity());
    }

    #[test]
    fn no_more_is_taken_than_may_be_read() {
        let (read, taken) = read_pieces(b"1234", 1 << 20, 10);
        assert_eq!((read, taken), (Read::Beginning(b"1234123412".to_vec()), 3));
        let (read, _) = read_pieces(b"12345", 2, 10);
        assert_eq!(read, Read::Whole(b"1234512345".to_vec()));
    }
}
