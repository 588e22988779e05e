//! The received bytes of a connection that are not decoded yet.

use super::exchange::IgnoreReason;
use crate::limits::REPLY_BYTES_MAX;

/// A queue of bytes: pieces of any size are added at the end, whole messages are removed from the front.
/// It holds at most `limits::REPLY_BYTES_MAX`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stream {
    bytes: Vec<u8>,
    /// Bytes at the front that are removed.
    at: usize,
}

impl Stream {
    /// Adds the next piece. Error: too many bytes are waiting. Then the piece is not added.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), IgnoreReason> {
        if bytes.len() > REPLY_BYTES_MAX - self.rest().len() {
            return Err(IgnoreReason::TooLarge);
        }
        // A byte is moved only after as many were removed, so moving costs at most as much as adding them.
        if self.at > self.rest().len() {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The bytes that were not removed.
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Removes bytes from the front; all of them if there are fewer.
    pub(super) fn consume(&mut self, count: usize) {
        self.at = self.at.saturating_add(count).min(self.bytes.len());
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pieces_are_joined_and_consumed_from_the_front() {
        let mut stream = Stream::default();
        assert_eq!(stream.rest(), b"");
        stream.push(b"abc").unwrap();
        stream.push(b"").unwrap();
        stream.push(b"de").unwrap();
        stream.consume(2);
        assert_eq!(stream.rest(), b"cde");
        stream.push(b"f").unwrap();
        assert_eq!(stream.rest(), b"cdef");
        stream.consume(usize::MAX);
        assert_eq!(stream, Stream::default());
        stream.consume(1);
        stream.push(b"g").unwrap();
        assert_eq!(stream.rest(), b"g");
    }

    #[test]
    fn limit_is_that_of_the_waiting_bytes() {
        let mut stream = Stream::default();
        stream.push(&vec![1; REPLY_BYTES_MAX - 1]).unwrap();
        assert_eq!(stream.push(b"23"), Err(IgnoreReason::TooLarge));
        assert_eq!(stream.rest().len(), REPLY_BYTES_MAX - 1);
        stream.push(b"2").unwrap();
        assert_eq!(stream.push(b"3"), Err(IgnoreReason::TooLarge));
        stream.consume(1);
        stream.push(b"3").unwrap();
        assert!(stream.rest().ends_with(b"\x0123") && stream.rest().len() == REPLY_BYTES_MAX);
    }

    #[test]
    fn removed_bytes_do_not_accumulate() {
        let mut stream = Stream::default();
        for _ in 0..10_000 {
            // Something always waits, so the queue is never empty.
            stream.push(&[7; 100]).unwrap();
            stream.consume(if stream.rest().len() > 100 { 100 } else { 99 });
        }
        assert!(stream.bytes.len() < 1_000, "{}", stream.bytes.len());
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_queue(
            steps in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..20), 0_usize..25), 0..50),
        ) {
            let (mut stream, mut want) = (Stream::default(), VecDeque::new());
            for (piece, count) in steps {
                stream.push(&piece).unwrap();
                want.extend(piece);
                prop_assert!(stream.rest().iter().eq(&want));
                stream.consume(count);
                want.drain(..count.min(want.len()));
                prop_assert!(stream.rest().iter().eq(&want));
            }
        }
    }
}
