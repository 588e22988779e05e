//! Splits replies into fragments.

use std::io::Write;

use super::datagrams::Datagrams;

/// The fragment format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitFormat {
    /// One datagram of any length: the Quake 3 family, and Rust's servers.
    Never,
    Source,
    /// Source without the size field: CS:S at protocol 7.
    SourceWithoutSize,
    /// Source, compressed with bzip2.
    Bzip2,
    GoldSrc,
}

/// Splits a reply into datagrams. The highest bit of `id` is set for compressed replies
/// and cleared for others.
pub fn split(reply: &[u8], how: SplitFormat, fragment_bytes: usize, id: u32, out: &mut Datagrams) {
    if reply.len() <= fragment_bytes || how == SplitFormat::Never {
        out.bytes.extend_from_slice(reply);
        return out.end_datagram();
    }
    let compressed;
    let (id, body) = match how {
        SplitFormat::Bzip2 => {
            compressed = compress(reply);
            (id | 1 << 31, &compressed[..])
        }
        _ => (id & !(1 << 31), reply),
    };
    // GoldSrc counts fragments in a nibble, the other formats in a byte.
    let fragments_max = if how == SplitFormat::GoldSrc { 15 } else { 255 };
    let fragment_bytes = fragment_bytes.max(body.len().div_ceil(fragments_max));
    let total = body.len().div_ceil(fragment_bytes) as u8;
    for (number, chunk) in body.chunks(fragment_bytes).enumerate() {
        let number = number as u8;
        let bytes = &mut out.bytes;
        bytes.extend_from_slice(b"\xFE\xFF\xFF\xFF");
        bytes.extend_from_slice(&id.to_le_bytes());
        match how {
            SplitFormat::GoldSrc => bytes.push(number << 4 | total),
            _ => bytes.extend_from_slice(&[total, number]),
        }
        if how == SplitFormat::Source {
            bytes.extend_from_slice(&(fragment_bytes as u16).to_le_bytes());
        }
        bytes.extend_from_slice(chunk);
        out.end_datagram();
    }
}

/// Size and CRC-32 of the reply, then the reply compressed with bzip2.
fn compress(reply: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::with_capacity(reply.len());
    compressed.extend_from_slice(&(reply.len() as u32).to_le_bytes());
    compressed.extend_from_slice(&crc32fast::hash(reply).to_le_bytes());
    let mut encoder = bzip2::write::BzEncoder::new(compressed, bzip2::Compression::fast());
    encoder.write_all(reply).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::fleet::rng::hash_parts;

    #[test]
    fn fragments_equal_handwritten_bytes() {
        let cut = |how| {
            let mut out = Datagrams::default();
            split(b"0123456789", how, 4, 0x8001_0203, &mut out);
            out.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        assert_eq!(cut(SplitFormat::Never), [b"0123456789"]);
        assert_eq!(
            cut(SplitFormat::Source),
            [
                b"\xFE\xFF\xFF\xFF\x03\x02\x01\x00\x03\x00\x04\x000123".to_vec(),
                b"\xFE\xFF\xFF\xFF\x03\x02\x01\x00\x03\x01\x04\x004567".to_vec(),
                b"\xFE\xFF\xFF\xFF\x03\x02\x01\x00\x03\x02\x04\x0089".to_vec(),
            ]
        );
        assert_eq!(cut(SplitFormat::SourceWithoutSize)[2], b"\xFE\xFF\xFF\xFF\x03\x02\x01\x00\x03\x0289");
        assert_eq!(cut(SplitFormat::GoldSrc)[1], b"\xFE\xFF\xFF\xFF\x03\x02\x01\x00\x134567");
    }

    #[test]
    fn compressed_fragments_decompress() {
        let reply: Vec<u8> = (0..2_000_u32).flat_map(|i| hash_parts(&[u64::from(i)]).to_le_bytes()).collect();
        let mut out = Datagrams::default();
        split(&reply, SplitFormat::Bzip2, 1_248, 5, &mut out);
        let mut body = Vec::new();
        for (number, datagram) in out.iter().enumerate() {
            assert_eq!(&datagram[..8], b"\xFE\xFF\xFF\xFF\x05\0\0\x80");
            assert_eq!(datagram[8..10], [out.len() as u8, number as u8]);
            body.extend_from_slice(&datagram[10..]);
        }
        assert_eq!(body[..4], 16_000_u32.to_le_bytes());
        assert_eq!(body[4..8], crc32fast::hash(&reply).to_le_bytes());
        assert_eq!(&body[8..11], b"BZh");
        let mut decompressed = Vec::new();
        bzip2::read::BzDecoder::new(&body[8..]).read_to_end(&mut decompressed).unwrap();
        assert_eq!(decompressed, reply);
    }

    #[test]
    fn goldsrc_never_needs_more_than_15_fragments() {
        let mut out = Datagrams::default();
        split(&[7; 10_000], SplitFormat::GoldSrc, 256, 5, &mut out);
        assert_eq!(out.len(), 15);
        assert_eq!(out.iter().last().unwrap()[8], 0xEF);
    }
}
