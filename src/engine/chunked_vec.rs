//! A list of millions that grows without being copied.

use std::ops::{Index, IndexMut};

/// A list in chunks of `LEN` values.
#[derive(Debug)]
pub(super) struct ChunkedVec<T, const LEN: usize>(Vec<Vec<T>>);

impl<T, const LEN: usize> Default for ChunkedVec<T, LEN> {
    fn default() -> ChunkedVec<T, LEN> {
        ChunkedVec(Vec::new())
    }
}

impl<T, const LEN: usize> ChunkedVec<T, LEN> {
    pub fn push(&mut self, value: T) {
        if self.0.last().is_none_or(|chunk| chunk.len() == LEN) {
            // The first chunk grows as needed: most lists are short.
            self.0.push(if self.0.is_empty() { Vec::new() } else { Vec::with_capacity(LEN) });
        }
        self.0.last_mut().expect("just pushed").push(value);
    }

    pub fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * LEN + last.len())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, at: usize) -> Option<&T> {
        self.0.get(at / LEN)?.get(at % LEN)
    }

    /// For sorted values: how many values at the start fulfil a condition.
    pub fn partition_point(&self, holds: impl Fn(&T) -> bool) -> usize {
        let full = self.0.partition_point(|chunk| chunk.last().is_some_and(&holds));
        let beyond = self.0.get(full).map_or(0, |chunk| chunk.partition_point(&holds));
        self.len().min(full * LEN + beyond)
    }

    /// The chunks in order; none is empty.
    pub fn into_chunks(self) -> Vec<Vec<T>> {
        self.0
    }
}

impl<T, const LEN: usize> Index<usize> for ChunkedVec<T, LEN> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.0[at / LEN][at % LEN]
    }
}

impl<T, const LEN: usize> IndexMut<usize> for ChunkedVec<T, LEN> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.0[at / LEN][at % LEN]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunked_vec_behaves_like_a_vec() {
        const LEN: usize = 2_048;
        for n in [0, 1, LEN, LEN + 1, 3 * LEN] {
            let mut chunks = ChunkedVec::<usize, LEN>::default();
            (0..n).for_each(|value| chunks.push(2 * value));
            assert_eq!((chunks.len(), chunks.is_empty()), (n, n == 0));
            for value in [0, 1, n, 2 * n, 2 * LEN, 2 * LEN + 1] {
                assert_eq!(chunks.partition_point(|kept| *kept < value), n.min(value.div_ceil(2)), "{value} of {n}");
            }
            assert!((0..n).all(|at| chunks.get(at) == Some(&(2 * at)) && chunks[at] == 2 * at));
            (0..n).for_each(|at| chunks[at] += 1);
            assert_eq!(chunks.get(n), None);
            assert!(chunks.into_chunks().into_iter().flatten().eq((0..n).map(|value| 2 * value + 1)));
        }
    }
}
