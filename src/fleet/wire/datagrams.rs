//! A reply: datagrams in one buffer.

/// Datagrams in one buffer, in the order of sending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Datagrams {
    pub(super) bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Datagrams {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let froms = std::iter::once(0).chain(self.ends.iter().copied());
        froms.zip(&self.ends).map(|(from, &to)| &self.bytes[from..to])
    }

    /// Ends a datagram: all bytes since the previous one.
    pub(super) fn end_datagram(&mut self) {
        self.ends.push(self.bytes.len());
    }
}
