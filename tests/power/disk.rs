//! A disk in memory that records its writes and flushes, and what a power cut leaves of it.
//!
//! A drive may keep a write in its cache until the next flush, and writes cached blocks in any
//! order. So after a cut the disk has every write that came before the last flush. Of the
//! later writes it has all, none, or any subset of their blocks, and a block that was
//! written several times may have any of its versions. A block of 4 KiB is written as a whole
//! or not at all.
//!
//! Requests are served one at a time, so a write that arrives before a flush counts as flushed
//! even if its sender has not seen the reply yet. A real drive does not promise that.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::load::Position;
use clqd::fleet::rng::{RngExt, SplitMix64};

pub const BLOCK_BYTES: usize = 4096;

type Block = [u8; BLOCK_BYTES];

/// The contents of a disk. A block that is absent was never written, and is zero.
#[derive(Clone, Default)]
pub struct Blocks(BTreeMap<u64, Arc<Block>>);

impl Blocks {
    pub fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        for piece in pieces(offset, len) {
            if let Some(block) = self.0.get(&piece.block) {
                data[piece.data.clone()].copy_from_slice(&block[piece.within()]);
            }
        }
        data
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) {
        pieces(offset, data.len()).for_each(|piece| self.write_piece(&piece, data));
    }

    fn write_piece(&mut self, piece: &Piece, data: &[u8]) {
        let data = &data[piece.data.clone()];
        if !self.0.contains_key(&piece.block) && data.iter().all(|&byte| byte == 0) {
            return;
        }
        let block = self.0.entry(piece.block).or_insert_with(|| Arc::new([0; BLOCK_BYTES]));
        Arc::make_mut(block)[piece.within()].copy_from_slice(data);
    }

    /// Creates a sparse file with these contents.
    pub fn save(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let file = File::create(path)?;
        file.set_len(bytes)?;
        self.0.iter().try_for_each(|(&block, data)| file.write_all_at(&data[..], block * BLOCK_BYTES as u64))
    }
}

/// The part of a write that is in one block.
struct Piece {
    block: u64,
    /// Where the part begins in the block.
    begin: usize,
    /// Where the part is in the data of the write.
    data: std::ops::Range<usize>,
}

impl Piece {
    fn within(&self) -> std::ops::Range<usize> {
        self.begin..self.begin + self.data.len()
    }
}

fn pieces(offset: u64, len: usize) -> impl Iterator<Item = Piece> {
    let block_bytes = BLOCK_BYTES as u64;
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let begin = (at % block_bytes) as usize;
        let part = (BLOCK_BYTES - begin).min(len - done);
        let piece = Piece { block: at / block_bytes, begin, data: done..done + part };
        done += part;
        (part > 0).then_some(piece)
    })
}

enum Event {
    Write { offset: u64, data: Box<[u8]> },
    Flush,
}

/// What is left of the writes after the last flush.
#[derive(Clone, Copy, Debug)]
pub enum Survival {
    All,
    None,
    /// Each block with this probability.
    Random(f64),
}

impl Survival {
    pub fn choose(rng: &mut SplitMix64) -> Survival {
        match rng.below(20) {
            0..3 => Survival::All,
            3..10 => Survival::None,
            _ => Survival::Random(rng.unit()),
        }
    }
}

/// The writes and flushes since a moment at which everything was on disk.
pub struct Recording {
    base: Blocks,
    events: Vec<Event>,
}

impl Recording {
    pub fn end(&self) -> Position {
        Position(self.events.len())
    }

    pub fn flushes(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Flush)).count()
    }

    /// The contents of the disk after a power cut at that position.
    pub fn after_cut(&self, at: Position, survival: Survival, rng: &mut SplitMix64) -> Blocks {
        let before = &self.events[..at.0];
        let flushed = before.iter().rposition(|event| matches!(event, Event::Flush)).map_or(0, |flush| flush + 1);
        let mut blocks = self.base.clone();
        for (number, event) in before.iter().enumerate() {
            let Event::Write { offset, data } = event else { continue };
            for piece in pieces(*offset, data.len()) {
                let survives = number < flushed
                    || match survival {
                        Survival::All => true,
                        Survival::None => false,
                        Survival::Random(probability) => rng.bool(probability),
                    };
                if survives {
                    blocks.write_piece(&piece, data);
                }
            }
        }
        blocks
    }
}

/// A disk of a fixed size.
pub struct Disk {
    bytes: u64,
    now: Blocks,
    recording: Option<Recording>,
}

impl Disk {
    pub fn new(bytes: u64) -> Disk {
        Disk { bytes, now: Blocks::default(), recording: None }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Up to `len` bytes; fewer at the end of the disk.
    pub fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let rest = self.bytes.saturating_sub(offset);
        self.now.read(offset, len.min(usize::try_from(rest).expect("64 bits")))
    }

    /// Error: the data do not fit.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        if offset + data.len() as u64 > self.bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.now.write(offset, data);
        if let Some(recording) = &mut self.recording {
            recording.events.push(Event::Write { offset, data: data.into() });
        }
        Ok(())
    }

    pub fn flush(&mut self) {
        if let Some(recording) = &mut self.recording {
            recording.events.push(Event::Flush);
        }
    }

    /// Begins a recording. All present contents count as flushed.
    pub fn record(&mut self) {
        self.recording = Some(Recording { base: self.now.clone(), events: Vec::new() });
    }

    /// The current position of the recording.
    pub fn position(&self) -> Position {
        self.recording.as_ref().expect("a recording").end()
    }

    /// Ends the recording. The disk still works.
    pub fn stop_recording(&mut self) -> Recording {
        self.recording.take().expect("a recording")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = BLOCK_BYTES as u64;

    #[test]
    fn writes_across_blocks_are_read_back() {
        let mut disk = Disk::new(3 * BLOCK);
        disk.write(BLOCK - 2, &[1, 2, 3, 4]).unwrap();
        assert_eq!(disk.read(BLOCK - 3, 6), [0, 1, 2, 3, 4, 0]);
        assert_eq!(disk.read(3 * BLOCK - 1, 100), [0]);
        assert!(disk.write(3 * BLOCK - 1, &[1, 2]).is_err());
    }

    #[test]
    fn cut_keeps_flushed_writes_and_any_subset_of_later_blocks() {
        let mut disk = Disk::new(16 * BLOCK);
        disk.write(0, &[1]).unwrap();
        disk.record();
        disk.write(BLOCK, &[2]).unwrap();
        disk.flush();
        let flushed = disk.position();
        // One write of two blocks, and a second version of the first of them.
        disk.write(2 * BLOCK, &[3; 2 * BLOCK_BYTES]).unwrap();
        disk.write(2 * BLOCK, &[4; BLOCK_BYTES]).unwrap();
        let recording = disk.stop_recording();
        let mut rng = SplitMix64::from_parts(&[1]);
        let mut cut = |at, survival| {
            let blocks = recording.after_cut(at, survival, &mut rng);
            [0, 1, 2, 3].map(|block| blocks.read(block * BLOCK, 1)[0])
        };
        assert_eq!(cut(Position(1), Survival::None), [1, 0, 0, 0]);
        assert_eq!(cut(flushed, Survival::None), [1, 2, 0, 0]);
        assert_eq!(cut(recording.end(), Survival::None), [1, 2, 0, 0]);
        assert_eq!(cut(recording.end(), Survival::All), [1, 2, 4, 3]);
        let found: std::collections::BTreeSet<_> =
            (0..200).map(|_| cut(recording.end(), Survival::Random(0.5))).collect();
        let possible = [[0, 0], [0, 3], [3, 0], [3, 3], [4, 0], [4, 3]].map(|[a, b]| [1, 2, a, b]);
        assert_eq!(found, possible.into_iter().collect());
    }
}
