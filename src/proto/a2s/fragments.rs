//! Fragments of one reply, in the forms that Source and GoldSrc servers send
//! (PROTOCOLS section 2), put together and, where compressed, unpacked.
//!
//! After the id come, each a byte:
//! - Source: total, number; then a size of two bytes, which some games leave out;
//! - Source, bzip2 (bit 31 of the id): total, number, and in the first fragment
//!   unpacked size and checksum, four bytes each. No size field;
//! - GoldSrc: number in the high half, total in the low half of one byte.
//!
//! Which form it is, the first fragment shows: behind its header begins a
//! message (`FF FF FF FF`) or a bzip2 stream (`BZh`). Guessing from the game id
//! alone fails on games nobody thought of; it is kept for fragments that show
//! nothing.

use std::io::Read;

use super::super::{Ignored, ProtoError};
use crate::limits::REPLY_BYTES_MAX;

/// Replies in pieces at the same time, of one server: after a resend the pieces
/// of the first answer may still come. The oldest goes when there are more.
const FRAGMENT_SETS_MAX: usize = 3;

/// Whether a Source fragment has the two bytes of size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeField {
    Present,
    Absent,
}

/// What a fragment led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reassembly {
    /// Others are missing.
    Waiting,
    Whole(Vec<u8>),
}

/// The fragments of one server.
#[derive(Clone, Debug, Default)]
pub struct Reassembler {
    /// Oldest first.
    sets: Vec<FragmentSet>,
}

/// Fragments with one id.
#[derive(Clone, Debug)]
struct FragmentSet {
    id: u32,
    /// Each without the id, as it came. No two are equal.
    pieces: Vec<Vec<u8>>,
}

/// How to read the pieces of one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FragmentFormat {
    GoldSrc,
    Source(SizeField),
    Bzip2,
}

impl Reassembler {
    /// Takes a split datagram, from its id on. `size_field` is what the game is
    /// known to do.
    ///
    /// Errors: not a fragment; more than a reply can be; what does not unpack.
    /// After an error the whole set is forgotten, unless the fragment was no
    /// fragment at all.
    pub fn add(&mut self, datagram: &[u8], size_field: SizeField) -> Result<Reassembly, Ignored> {
        let (id, piece) = datagram.split_first_chunk::<4>().ok_or(Ignored::BadFragment)?;
        let id = u32::from_le_bytes(*id);
        // The shortest header, of GoldSrc, and at least a byte behind it.
        if piece.len() < 2 {
            return Err(Ignored::BadFragment);
        }
        let at = match self.sets.iter().position(|set| set.id == id) {
            Some(at) => at,
            None => {
                if self.sets.len() == FRAGMENT_SETS_MAX {
                    self.sets.remove(0);
                }
                self.sets.push(FragmentSet { id, pieces: Vec::new() });
                self.sets.len() - 1
            }
        };
        let set = &mut self.sets[at];
        if set.pieces.iter().any(|known| known == piece) {
            return Ok(Reassembly::Waiting);
        }
        let bytes: usize = set.pieces.iter().map(Vec::len).sum();
        if bytes + piece.len() > REPLY_BYTES_MAX || set.pieces.len() >= usize::from(u8::MAX) {
            self.sets.remove(at);
            return Err(Ignored::TooLarge);
        }
        set.pieces.push(piece.to_vec());
        match set.join(size_field) {
            Ok(None) => Ok(Reassembly::Waiting),
            Ok(Some(whole)) => {
                self.sets.clear();
                Ok(Reassembly::Whole(whole))
            }
            Err(reason) => {
                self.sets.remove(at);
                Err(reason)
            }
        }
    }
}

impl FragmentSet {
    fn join(&self, size_field: SizeField) -> Result<Option<Vec<u8>>, Ignored> {
        let compressed = self.id >> 31 == 1;
        let shown = self.pieces.iter().find_map(|piece| detect_format(piece, compressed));
        let form = match shown {
            Some(form) => form,
            // Nothing shows it: only the usual form is worth a try.
            None => FragmentFormat::Source(size_field),
        };
        let mut slots: Vec<Option<&[u8]>> = Vec::new();
        for piece in &self.pieces {
            let Some((number, total, body)) = form.read(piece) else {
                return if shown.is_some() { Err(Ignored::BadFragment) } else { Ok(None) };
            };
            let possible = total > 0 && number < total && (slots.is_empty() || slots.len() == total);
            if !possible {
                return if shown.is_some() { Err(Ignored::BadFragment) } else { Ok(None) };
            }
            slots.resize(total, None);
            if slots[number].replace(body).is_some_and(|other| other != body) {
                // Two fragments claim one place: one of them is not the server's.
                return Err(Ignored::BadFragment);
            }
        }
        let Some(bodies) = slots.into_iter().collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let whole = bodies.concat();
        if form == FragmentFormat::Bzip2 {
            decompress(&whole).map(Some).map_err(ProtoError::ignore_reason)
        } else {
            Ok(Some(whole))
        }
    }
}

/// The form, if this piece is a first one that shows it. No piece fits two: the
/// byte that must be 0 in one is FF in the other.
fn detect_format(piece: &[u8], compressed: bool) -> Option<FragmentFormat> {
    let message_at = |at: usize| piece.get(at..at + 4) == Some(b"\xff\xff\xff\xff");
    if piece[0] >> 4 == 0 && message_at(1) {
        return Some(FragmentFormat::GoldSrc);
    }
    if piece[1] != 0 {
        return None;
    }
    if message_at(2) {
        return Some(FragmentFormat::Source(SizeField::Absent));
    }
    if message_at(4) {
        return Some(FragmentFormat::Source(SizeField::Present));
    }
    (compressed && piece.get(10..13) == Some(b"BZh")).then_some(FragmentFormat::Bzip2)
}

impl FragmentFormat {
    /// Number, total and body of a piece; `None` where it is too short.
    fn read(self, piece: &[u8]) -> Option<(usize, usize, &[u8])> {
        if self == FragmentFormat::GoldSrc {
            let (&head, body) = piece.split_first()?;
            return Some(((head >> 4).into(), (head & 0x0f).into(), body));
        }
        let (&[total, number], body) = piece.split_first_chunk::<2>()?;
        let body = if self == FragmentFormat::Source(SizeField::Present) { body.get(2..)? } else { body };
        Some((number.into(), total.into(), body))
    }
}

/// Unpacks size, checksum and bzip2 stream. Never makes more than announced,
/// and never more than `REPLY_BYTES_MAX`.
fn decompress(packed: &[u8]) -> Result<Vec<u8>, ProtoError> {
    let mut c = super::super::cursor::Cursor::new(packed);
    let size = c.u32("unpacked size")?;
    let announced = c.u32("checksum")?;
    if size as usize > REPLY_BYTES_MAX {
        return Err(ProtoError::TooLarge { bytes: size.into() });
    }
    let mut whole = Vec::with_capacity(size as usize);
    let stream = bzip2::bufread::BzDecoder::new(c.rest());
    stream.take(u64::from(size) + 1).read_to_end(&mut whole).map_err(|_| ProtoError::Decompress)?;
    if whole.len() != size as usize {
        return Err(ProtoError::DecompressedSize { announced: size, got: whole.len() });
    }
    let got = crc32fast::hash(&whole);
    if got != announced {
        return Err(ProtoError::Checksum { announced, got });
    }
    Ok(whole)
}

/// Cuts a message into the datagrams that a server would send: for simulated
/// servers and tests. `body_bytes` is the most of the message in one datagram.
pub fn split_source(message: &[u8], id: u32, body_bytes: usize) -> Vec<Vec<u8>> {
    let bodies: Vec<&[u8]> = message.chunks(body_bytes.max(1)).collect();
    assert!(bodies.len() <= usize::from(u8::MAX), "more fragments than a byte counts");
    let total = bodies.len() as u8;
    let datagram = |(number, body): (usize, &&[u8])| {
        let mut datagram = super::SPLIT_HEADER.to_vec();
        datagram.extend_from_slice(&(id & 0x7fff_ffff).to_le_bytes());
        datagram.extend_from_slice(&[total, number as u8]);
        datagram.extend_from_slice(&(body_bytes as u16).to_le_bytes());
        datagram.extend_from_slice(body);
        datagram
    };
    bodies.iter().enumerate().map(datagram).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn message(len: usize) -> Vec<u8> {
        let mut message = b"\xff\xff\xff\xffD".to_vec();
        message.extend((0..len).map(|i| (i * 7) as u8));
        message
    }

    fn header(id: u32) -> Vec<u8> {
        id.to_le_bytes().to_vec()
    }

    fn goldsrc(message: &[u8], body: usize) -> Vec<Vec<u8>> {
        let total = message.chunks(body).count() as u8;
        let cut = |(i, chunk): (usize, &[u8])| [&header(9)[..], &[(i as u8) << 4 | total], chunk].concat();
        message.chunks(body).enumerate().map(cut).collect()
    }

    fn sourced(message: &[u8], body: usize, size: SizeField) -> Vec<Vec<u8>> {
        let total = message.chunks(body).count() as u8;
        let cut = |(i, chunk): (usize, &[u8])| {
            let size = if size == SizeField::Present { &[0xe0, 0x04][..] } else { &[] };
            [&header(9)[..], &[total, i as u8], size, chunk].concat()
        };
        message.chunks(body).enumerate().map(cut).collect()
    }

    fn bzip2ed(message: &[u8], body: usize, size: u32, crc: u32) -> Vec<Vec<u8>> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        encoder.write_all(message).unwrap();
        let stream = encoder.finish().unwrap();
        let total = stream.chunks(body).count() as u8;
        let cut = |(i, chunk): (usize, &[u8])| {
            let mut datagram = [&header(0x8000_0009)[..], &[total, i as u8]].concat();
            if i == 0 {
                datagram.extend_from_slice(&size.to_le_bytes());
                datagram.extend_from_slice(&crc.to_le_bytes());
            }
            [&datagram[..], chunk].concat()
        };
        stream.chunks(body).enumerate().map(cut).collect()
    }

    fn feed(datagrams: &[Vec<u8>], known: SizeField) -> Result<Reassembly, Ignored> {
        let mut fragments = Reassembler::default();
        let mut last = Ok(Reassembly::Waiting);
        for datagram in datagrams {
            last = fragments.add(datagram, known);
        }
        last
    }

    #[test]
    fn fragments_of_each_format_reassemble_in_any_order() {
        let whole = message(90);
        let crc = crc32fast::hash(&whole);
        // What INFO lets one expect must not matter where the bytes show the form.
        for known in [SizeField::Present, SizeField::Absent] {
            for mut datagrams in [
                goldsrc(&whole, 40),
                sourced(&whole, 40, SizeField::Present),
                sourced(&whole, 40, SizeField::Absent),
                bzip2ed(&whole, 60, whole.len() as u32, crc),
            ] {
                assert!(datagrams.len() >= 2);
                for _ in 0..datagrams.len() {
                    datagrams.rotate_left(1);
                    assert_eq!(feed(&datagrams, known), Ok(Reassembly::Whole(whole.clone())));
                    let mut twice: Vec<_> = datagrams.iter().flat_map(|d| [d.clone(), d.clone()]).collect();
                    twice.pop();
                    assert_eq!(feed(&twice, known), Ok(Reassembly::Whole(whole.clone())));
                    assert_eq!(feed(&datagrams[1..], known), Ok(Reassembly::Waiting));
                }
            }
        }
    }

    #[test]
    fn bit_15_of_the_id_does_not_mean_compressed() {
        let whole = message(30);
        for id in [0x8000_u32, 0xffff, 0x7fff_ffff] {
            let mut datagrams = sourced(&whole, 20, SizeField::Present);
            for datagram in &mut datagrams {
                datagram[..4].copy_from_slice(&id.to_le_bytes());
            }
            assert_eq!(feed(&datagrams, SizeField::Present), Ok(Reassembly::Whole(whole.clone())));
        }
    }

    #[test]
    fn short_and_out_of_range_fragments_are_rejected() {
        for len in 0..6 {
            assert_eq!(Reassembler::default().add(&vec![0; len], SizeField::Present), Err(Ignored::BadFragment));
        }
        // Ten and eleven bytes with the split header, six and seven without.
        for len in [6, 7] {
            let mut short = header(9);
            short.extend_from_slice(&[2, 0, 0xe0][..len - 4]);
            assert_eq!(Reassembler::default().add(&short, SizeField::Present), Ok(Reassembly::Waiting));
        }
        // No fragment at all in total; a number beyond the total.
        for (total, number) in [(0, 0), (0, 1), (2, 2), (2, 255)] {
            let mut fragments = Reassembler::default();
            let piece = [&header(9)[..], &[total, number, 0xe0, 4], &message(4)].concat();
            let added = fragments.add(&piece, SizeField::Present);
            assert!(matches!(added, Err(Ignored::BadFragment) | Ok(Reassembly::Waiting)), "{total} {number} {added:?}");
        }
    }

    #[test]
    fn fragments_of_two_replies_do_not_mix() {
        let (a, b) = (message(50), message(60));
        let mut other = sourced(&b, 40, SizeField::Present);
        for datagram in &mut other {
            datagram[0] = 8;
        }
        let first = sourced(&a, 40, SizeField::Present);
        let mixed = [first[0].clone(), other[0].clone(), other[1].clone()];
        assert_eq!(feed(&mixed, SizeField::Present), Ok(Reassembly::Whole(b)));
        let mut conflicting = sourced(&a, 40, SizeField::Present);
        conflicting.insert(1, [&header(9)[..], &[2, 0, 0xe0, 4], &message(3)].concat());
        assert_eq!(feed(&conflicting[..2], SizeField::Present), Err(Ignored::BadFragment));
    }

    #[test]
    fn wrong_size_or_checksum_is_rejected() {
        let whole = message(200);
        let (size, crc) = (whole.len() as u32, crc32fast::hash(&whole));
        for (size, crc, reason) in [
            (size, crc ^ 1, Ignored::BadCompression),
            (size - 1, crc, Ignored::BadCompression),
            (size + 1, crc, Ignored::BadCompression),
            (u32::MAX / 2, crc, Ignored::TooLarge),
        ] {
            assert_eq!(feed(&bzip2ed(&whole, 4_000, size, crc), SizeField::Present), Err(reason));
        }
        // A bomb stops at the size that it announced.
        let bomb = vec![0; 8 * REPLY_BYTES_MAX];
        assert_eq!(feed(&bzip2ed(&bomb, 4_000, 100, 0), SizeField::Present), Err(Ignored::BadCompression));
    }

    #[test]
    fn buffered_fragments_stay_below_reply_bytes_max() {
        let mut fragments = Reassembler::default();
        let mut refused = false;
        for number in 0..60_u8 {
            let piece = [&header(9)[..], &[200, number, 0xe0, 4], &vec![number; 60_000][..]].concat();
            refused |= fragments.add(&piece, SizeField::Present) == Err(Ignored::TooLarge);
            let kept: usize = fragments.sets.iter().flat_map(|set| &set.pieces).map(Vec::len).sum();
            assert!(kept <= REPLY_BYTES_MAX);
        }
        assert!(refused);
        for id in 0..100_u32 {
            let _ = fragments.add(&[&header(id)[..], &[2, 1, 0, 0, 5]].concat(), SizeField::Present);
            assert!(fragments.sets.len() <= FRAGMENT_SETS_MAX);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_fragments_do_not_panic(datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20)) {
            let mut fragments = Reassembler::default();
            for mut datagram in datagrams {
                if datagram.len() > 4 {
                    datagram[1..4].fill(0);
                    datagram[0] &= 1;
                }
                let _ = fragments.add(&datagram, SizeField::Present);
            }
        }

        #[test]
        fn split_reply_reassembles_to_itself(len in 0usize..3_000, body in 20usize..1_300) {
            let whole = message(len);
            let mut fragments = Reassembler::default();
            let mut joined = None;
            for datagram in split_source(&whole, 77, body) {
                if let Reassembly::Whole(bytes) = fragments.add(&datagram[4..], SizeField::Present).unwrap() {
                    joined = Some(bytes);
                }
            }
            prop_assert_eq!(joined, Some(whole));
        }
    }
}
