//! The records of a base and the deltas after it, in one pass in order of key.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::file::Reader;
use crate::store::error::StoreError;
use crate::store::keys;

/// A record: its key and its value.
pub(in crate::store) type Record = (Vec<u8>, Vec<u8>);

/// All records, in order of key. Ends after an error.
#[derive(Debug)]
pub(in crate::store) struct Records {
    layers: Vec<Layer>,
    /// The next key of each layer: the smallest first, and of equal keys that of the newest layer.
    next: BinaryHeap<Reverse<(Vec<u8>, Reverse<usize>)>>,
    /// Whether a layer deletes records by prefix.
    has_prefixes: bool,
    has_failed: bool,
}

#[derive(Debug)]
struct Layer {
    reader: Reader,
    /// The value of its next key.
    value: Option<Vec<u8>>,
}

impl Records {
    /// The readers of a base and of the deltas after it, oldest first.
    pub(super) fn new(readers: Vec<Reader>) -> Result<Records, StoreError> {
        let layers: Vec<Layer> = readers.into_iter().map(|reader| Layer { reader, value: None }).collect();
        let has_prefixes = layers.iter().any(|layer| !layer.reader.deleted_prefixes().is_empty());
        let next = BinaryHeap::with_capacity(layers.len());
        let mut records = Records { next, layers, has_prefixes, has_failed: false };
        (0..records.layers.len()).try_for_each(|layer| records.advance(layer))?;
        Ok(records)
    }

    fn advance(&mut self, layer: usize) -> Result<(), StoreError> {
        if let Some((key, value)) = self.layers[layer].reader.next_change()? {
            self.layers[layer].value = value;
            self.next.push(Reverse((key, Reverse(layer))));
        }
        Ok(())
    }

    fn read_next(&mut self) -> Result<Option<Record>, StoreError> {
        while let Some(Reverse((key, Reverse(newest)))) = self.next.pop() {
            let value = self.layers[newest].value.take();
            self.advance(newest)?;
            while let Some(Reverse((_, Reverse(older)))) = self.next.peek().filter(|next| next.0.0 == key) {
                let older = *older;
                self.next.pop();
                self.advance(older)?;
            }
            let is_deleted = |layer: &Layer| keys::has_prefix(&key, layer.reader.deleted_prefixes());
            if let Some(value) = value
                && !(self.has_prefixes && self.layers[newest..].iter().any(is_deleted))
            {
                return Ok(Some((key, value)));
            }
        }
        Ok(None)
    }
}

impl Iterator for Records {
    type Item = Result<Record, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let next = self.read_next();
        self.has_failed = next.is_err();
        next.transpose()
    }
}
