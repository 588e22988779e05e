//! Reassembles fragmented replies, and decompresses them, in the formats of Source
//! and GoldSrc servers (docs/protocols.md).
//!
//! After the id follow, each one byte:
//! - Source: total, number; then a size of two bytes, which some games omit;
//! - Source, bzip2 (bit 31 of the id): total, number, and in the first fragment
//!   decompressed size and checksum, four bytes each. No size field;
//! - GoldSrc: number in the high half, total in the low half of one byte.
//!
//! The first fragment shows the format: after its header comes a message
//! (`FF FF FF FF`) or a bzip2 stream (`BZh`).

use std::io::Read;

use bytes::Buf;

use crate::limits::REPLY_BYTES_MAX;
use crate::proto::exchange::IgnoreReason;

/// Begins every fragment; the bytes after it are passed to [`Reassembler::add`].
pub(super) const SPLIT_HEADER: &[u8; 4] = b"\xfe\xff\xff\xff";

/// Fragmented replies of one server at the same time: after a resend, fragments of
/// the first reply may still arrive. Beyond this the oldest is dropped.
const FRAGMENT_SETS_MAX: usize = 3;

/// The most that a compressed reply may have, bytes: a list of players has less. No other reply is
/// requested.
const DECOMPRESSED_BYTES_MAX: usize = 64 << 10;

/// The most that is decompressed, bytes. Before it is compressed, a list of 255 players has some 11 kB. Each byte
/// costs up to 40 ns.
const COMPRESSED_BYTES_MAX: usize = 16 << 10;

/// Decompressions that may fail in one scan. Then the scan ends, and further fragments are not kept.
const FAILED_DECOMPRESSIONS_MAX: u32 = 2;

/// Whether a Source fragment has the two-byte size field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SizeField {
    Present,
    Absent,
}

/// The result of adding a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reassembly {
    /// More fragments are needed.
    Waiting,
    Complete(Vec<u8>),
}

/// The fragments of one server.
#[derive(Clone, Debug, Default)]
pub struct Reassembler {
    /// Oldest first.
    sets: Vec<FragmentSet>,
    failed_decompressions: u32,
}

/// Fragments with one id.
#[derive(Clone, Debug)]
struct FragmentSet {
    id: u32,
    /// Each without the id, undecoded. No two are equal.
    fragments: Vec<Vec<u8>>,
}

/// The format of the fragments of one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FragmentFormat {
    GoldSrc,
    Source(SizeField),
    Bzip2,
}

impl Reassembler {
    /// Adds a split datagram, from its id on.
    ///
    /// Errors: not a fragment; larger than a reply may be; decompression failed. After
    /// an error the complete set is dropped, except if the datagram was not a fragment.
    pub fn add(&mut self, datagram: &[u8]) -> Result<Reassembly, IgnoreReason> {
        let (id, piece) = datagram.split_first_chunk::<4>().ok_or(IgnoreReason::BadFragment)?;
        let id = u32::from_le_bytes(*id);
        // The shortest header, that of GoldSrc, and at least one byte after it.
        if piece.len() < 2 {
            return Err(IgnoreReason::BadFragment);
        }
        if id >> 31 == 1 && self.is_exhausted() {
            return Err(IgnoreReason::BadCompression);
        }
        let at = match self.sets.iter().position(|set| set.id == id) {
            Some(at) => at,
            None => {
                if self.sets.len() == FRAGMENT_SETS_MAX {
                    self.sets.remove(0);
                }
                self.sets.push(FragmentSet { id, fragments: Vec::new() });
                self.sets.len() - 1
            }
        };
        let set = &mut self.sets[at];
        if set.fragments.iter().any(|known| known == piece) {
            return Ok(Reassembly::Waiting);
        }
        let bytes: usize = set.fragments.iter().map(Vec::len).sum();
        if bytes + piece.len() > REPLY_BYTES_MAX || set.fragments.len() >= usize::from(u8::MAX) {
            self.sets.remove(at);
            return Err(IgnoreReason::TooLarge);
        }
        set.fragments.push(piece.to_vec());
        match set.reassemble() {
            Ok(None) => Ok(Reassembly::Waiting),
            Ok(Some(whole)) => {
                self.sets.clear();
                Ok(Reassembly::Complete(whole))
            }
            Err(reason) => {
                self.sets.remove(at);
                let is_compressed = matches!(reason, IgnoreReason::BadCompression | IgnoreReason::TooLarge);
                self.failed_decompressions += u32::from(is_compressed);
                Err(reason)
            }
        }
    }

    /// Whether so many decompressions have failed that the scan is to end.
    pub(super) fn is_exhausted(&self) -> bool {
        self.failed_decompressions >= FAILED_DECOMPRESSIONS_MAX
    }
}

impl FragmentSet {
    fn reassemble(&self) -> Result<Option<Vec<u8>>, IgnoreReason> {
        let compressed = self.id >> 31 == 1;
        // The first fragment has not arrived yet.
        let Some(format) = self.fragments.iter().find_map(|piece| detect_format(piece, compressed)) else {
            return Ok(None);
        };
        let mut slots: Vec<Option<&[u8]>> = Vec::new();
        for piece in &self.fragments {
            let (number, total, body) = format.parse(piece).ok_or(IgnoreReason::BadFragment)?;
            let possible = total > 0 && number < total && (slots.is_empty() || slots.len() == total);
            if !possible {
                return Err(IgnoreReason::BadFragment);
            }
            slots.resize(total, None);
            if slots[number].replace(body).is_some_and(|other| other != body) {
                // Two fragments have the same number: one of them is not from the server.
                return Err(IgnoreReason::BadFragment);
            }
        }
        let Some(bodies) = slots.into_iter().collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let whole = bodies.concat();
        if format == FragmentFormat::Bzip2 { decompress(&whole).map(Some) } else { Ok(Some(whole)) }
    }
}

/// The format, if this is a first fragment that shows it. No fragment fits two
/// formats: the byte that must be 0 in one is FF in the other.
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
    /// Number, total and body of a fragment; `None` if it is too short.
    fn parse(self, piece: &[u8]) -> Option<(usize, usize, &[u8])> {
        if self == FragmentFormat::GoldSrc {
            let (&head, body) = piece.split_first()?;
            return Some(((head >> 4).into(), (head & 0x0f).into(), body));
        }
        let (&[total, number], body) = piece.split_first_chunk::<2>()?;
        let body = if self == FragmentFormat::Source(SizeField::Present) { body.get(2..)? } else { body };
        Some((number.into(), total.into(), body))
    }
}

/// Decompresses a bzip2 stream preceded by size and checksum. The output never
/// exceeds the announced size or `DECOMPRESSED_BYTES_MAX`.
///
/// The stream begins with `BZh` and the size of its blocks, a digit. A block is decoded before any output,
/// so a block of 900 kB would cost 1.6 ms whatever its output is. Nothing of our size needs more than
/// the smallest blocks: the digit is replaced by 1, and the decoder refuses larger blocks.
fn decompress(compressed: &[u8]) -> Result<Vec<u8>, IgnoreReason> {
    let mut rest = compressed;
    let size = rest.try_get_u32_le()?;
    let checksum = rest.try_get_u32_le()?;
    if size as usize > DECOMPRESSED_BYTES_MAX || rest.len() > COMPRESSED_BYTES_MAX {
        return Err(IgnoreReason::TooLarge);
    }
    let [b'B', b'Z', b'h', b'1'..=b'9', blocks @ ..] = rest else { return Err(IgnoreReason::BadCompression) };
    let mut whole = Vec::with_capacity(size as usize);
    let stream = bzip2::bufread::BzDecoder::new(Read::chain(&b"BZh1"[..], blocks));
    let read = stream.take(u64::from(size) + 1).read_to_end(&mut whole);
    let is_valid = read.is_ok() && whole.len() == size as usize && crc32fast::hash(&whole) == checksum;
    if is_valid { Ok(whole) } else { Err(IgnoreReason::BadCompression) }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    /// Splits a message into datagrams as a Source server does. `body_bytes` is the maximum
    /// message part per datagram.
    pub(in crate::proto::a2s) fn split_source(message: &[u8], id: u32, body_bytes: usize) -> Vec<Vec<u8>> {
        let bodies: Vec<&[u8]> = message.chunks(body_bytes.max(1)).collect();
        assert!(bodies.len() <= usize::from(u8::MAX), "the fragment count exceeds one byte");
        let total = bodies.len() as u8;
        let datagram = |(number, body): (usize, &&[u8])| {
            let mut datagram = SPLIT_HEADER.to_vec();
            datagram.extend_from_slice(&(id & 0x7fff_ffff).to_le_bytes());
            datagram.extend_from_slice(&[total, number as u8]);
            datagram.extend_from_slice(&(body_bytes as u16).to_le_bytes());
            datagram.extend_from_slice(body);
            datagram
        };
        bodies.iter().enumerate().map(datagram).collect()
    }

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

    /// Size, checksum, and a stream.
    fn compressed(message: &[u8], size: u32, crc: u32) -> Vec<u8> {
        let start = [size.to_le_bytes(), crc.to_le_bytes()].concat();
        let mut encoder = bzip2::write::BzEncoder::new(start, bzip2::Compression::best());
        encoder.write_all(message).unwrap();
        encoder.finish().unwrap()
    }

    fn bzip2ed(message: &[u8], body: usize, size: u32, crc: u32) -> Vec<Vec<u8>> {
        let whole = compressed(message, size, crc);
        let (start, stream) = whole.split_at(8);
        let total = stream.chunks(body).count() as u8;
        let cut = |(i, chunk): (usize, &[u8])| {
            let start = if i == 0 { start } else { &[] };
            [&header(0x8000_0009)[..], &[total, i as u8], start, chunk].concat()
        };
        stream.chunks(body).enumerate().map(cut).collect()
    }

    fn feed(datagrams: &[Vec<u8>]) -> Result<Reassembly, IgnoreReason> {
        let mut fragments = Reassembler::default();
        let mut last = Ok(Reassembly::Waiting);
        for datagram in datagrams {
            last = fragments.add(datagram);
        }
        last
    }

    #[test]
    fn fragments_of_each_format_reassemble_in_any_order() {
        let whole = message(90);
        let crc = crc32fast::hash(&whole);
        for mut datagrams in [
            goldsrc(&whole, 40),
            sourced(&whole, 40, SizeField::Present),
            sourced(&whole, 40, SizeField::Absent),
            bzip2ed(&whole, 60, whole.len() as u32, crc),
        ] {
            assert!(datagrams.len() >= 2);
            for _ in 0..datagrams.len() {
                datagrams.rotate_left(1);
                assert_eq!(feed(&datagrams), Ok(Reassembly::Complete(whole.clone())));
                let mut twice: Vec<_> = datagrams.iter().flat_map(|d| [d.clone(), d.clone()]).collect();
                twice.pop();
                assert_eq!(feed(&twice), Ok(Reassembly::Complete(whole.clone())));
                assert_eq!(feed(&datagrams[1..]), Ok(Reassembly::Waiting));
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
            assert_eq!(feed(&datagrams), Ok(Reassembly::Complete(whole.clone())));
        }
    }

    #[test]
    fn short_and_out_of_range_fragments_are_rejected() {
        for len in 0..6 {
            assert_eq!(Reassembler::default().add(&vec![0; len]), Err(IgnoreReason::BadFragment));
        }
        // Ten and eleven bytes with the split header, six and seven without it.
        for len in [6, 7] {
            let mut short = header(9);
            short.extend_from_slice(&[2, 0, 0xe0][..len - 4]);
            assert_eq!(Reassembler::default().add(&short), Ok(Reassembly::Waiting));
        }
        // A total of zero; a number beyond the total.
        for (total, number) in [(0, 0), (0, 1), (2, 2), (2, 255)] {
            let mut fragments = Reassembler::default();
            let piece = [&header(9)[..], &[total, number, 0xe0, 4], &message(4)].concat();
            let added = fragments.add(&piece);
            assert!(
                matches!(added, Err(IgnoreReason::BadFragment) | Ok(Reassembly::Waiting)),
                "{total} {number} {added:?}"
            );
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
        assert_eq!(feed(&mixed), Ok(Reassembly::Complete(b)));
        let mut conflicting = sourced(&a, 40, SizeField::Present);
        conflicting.insert(1, [&header(9)[..], &[2, 0, 0xe0, 4], &message(3)].concat());
        assert_eq!(feed(&conflicting[..2]), Err(IgnoreReason::BadFragment));
    }

    #[test]
    fn wrong_size_or_checksum_is_rejected() {
        let whole = message(200);
        let (size, crc) = (whole.len() as u32, crc32fast::hash(&whole));
        for (size, crc, reason) in [
            (size, crc ^ 1, IgnoreReason::BadCompression),
            (size - 1, crc, IgnoreReason::BadCompression),
            (size + 1, crc, IgnoreReason::BadCompression),
            (u32::MAX / 2, crc, IgnoreReason::TooLarge),
        ] {
            assert_eq!(feed(&bzip2ed(&whole, 4_000, size, crc)), Err(reason));
        }
        // A decompression bomb stops at the size that it announced.
        let bomb = vec![0; 8 * REPLY_BYTES_MAX];
        assert_eq!(feed(&bzip2ed(&bomb, 4_000, 100, 0)), Err(IgnoreReason::BadCompression));
    }

    #[test]
    fn large_replies_and_third_attempts_are_refused() {
        let whole = message(60_000);
        let valid = compressed(&whole, whole.len() as u32, crc32fast::hash(&whole));
        assert_eq!(decompress(&valid), Ok(whole.clone()));
        let large = vec![0; DECOMPRESSED_BYTES_MAX + 1];
        let large = compressed(&large, large.len() as u32, crc32fast::hash(&large));
        assert_eq!(decompress(&large), Err(IgnoreReason::TooLarge));

        let mut fragments = Reassembler::default();
        let mut add = |datagrams: &[Vec<u8>]| {
            let added = datagrams.iter().map(|datagram| fragments.add(datagram)).next_back();
            (added.expect("a fragment"), fragments.is_exhausted(), fragments.sets.len())
        };
        let bad = bzip2ed(&whole, 100_000, 100, 0);
        assert_eq!(add(&bad), (Err(IgnoreReason::BadCompression), false, 0));
        assert_eq!(add(&bad), (Err(IgnoreReason::BadCompression), true, 0));
        let good = bzip2ed(&whole, 100, whole.len() as u32, crc32fast::hash(&whole));
        assert_eq!(add(&good[..1]), (Err(IgnoreReason::BadCompression), true, 0), "not kept");
    }

    #[test]
    fn buffered_fragments_stay_below_reply_bytes_max() {
        let mut fragments = Reassembler::default();
        let mut is_rejected = false;
        for number in 0..60_u8 {
            let piece = [&header(9)[..], &[200, number, 0xe0, 4], &vec![number; 60_000][..]].concat();
            is_rejected |= fragments.add(&piece) == Err(IgnoreReason::TooLarge);
            let buffered: usize = fragments.sets.iter().flat_map(|set| &set.fragments).map(Vec::len).sum();
            assert!(buffered <= REPLY_BYTES_MAX);
        }
        assert!(is_rejected);
        for id in 0..100_u32 {
            let _ = fragments.add(&[&header(id)[..], &[2, 1, 0, 0, 5]].concat());
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
                let _ = fragments.add(&datagram);
            }
        }

        #[test]
        fn split_reply_reassembles_to_itself(len in 0usize..3_000, body in 20usize..1_300) {
            let whole = message(len);
            let mut fragments = Reassembler::default();
            let mut joined = None;
            for datagram in split_source(&whole, 77, body) {
                if let Reassembly::Complete(bytes) = fragments.add(&datagram[4..]).unwrap() {
                    joined = Some(bytes);
                }
            }
            prop_assert_eq!(joined, Some(whole));
        }
    }
}
