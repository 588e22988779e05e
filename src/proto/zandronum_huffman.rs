//! The Huffman code of Zandronum and Skulltag. It is the same for every datagram: the game has had one
//! tree of codes for all its protocols since Skulltag.
//!
//! A datagram is a byte with the number of unused bits at its end, and the codes; the first bit is the
//! lowest one of a byte. A datagram that would grow is sent as it is, after the byte `FF`.

/// The first byte of a datagram that is not compressed.
const UNCOMPRESSED: u8 = 0xff;

/// Longest code, bits.
const CODE_BITS_MAX: u32 = 10;

/// Shortest code, bits.
const CODE_BITS_MIN: usize = 3;

const CODES: usize = 1 << CODE_BITS_MAX;

/// A byte, and the length of its code.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    byte: u8,
    bits: u8,
}

/// A code; its first bit is the lowest one.
#[derive(Clone, Copy, Debug)]
struct Code {
    code: u16,
    bits: u8,
}

/// The leaf for each value of the next bits.
static LEAF_BY_BITS: [Leaf; CODES] = leaf_by_bits();

/// The code of each byte.
static CODE_BY_BYTE: [Code; 256] = code_by_byte();

/// Decodes at most `bytes_max` bytes. Any datagram can be decoded: what is no code at the end is left
/// out, as in the game.
pub(super) fn decode(datagram: &[u8], bytes_max: usize) -> Vec<u8> {
    let Some((&first, body)) = datagram.split_first() else { return Vec::new() };
    if first == UNCOMPRESSED {
        return body.iter().copied().take(bytes_max).collect();
    }
    // Bits that are not decoded yet.
    let mut left = (body.len() * 8).saturating_sub(first.into());
    let mut out = Vec::with_capacity(bytes_max.min(left / CODE_BITS_MIN));
    let mut rest = body;
    let (mut window, mut held) = (0_u64, 0_u32);
    while left > 0 && out.len() < bytes_max {
        if held < CODE_BITS_MAX {
            refill(&mut window, &mut held, &mut rest);
        }
        let leaf = LEAF_BY_BITS[remainder(window)];
        let bits = usize::from(leaf.bits);
        if bits > left {
            break;
        }
        out.push(leaf.byte);
        window >>= bits;
        held -= u32::from(leaf.bits);
        left -= bits;
    }
    out
}

/// The next bits, as an index of the codes.
#[expect(clippy::cast_possible_truncation, reason = "the remainder is less than the number of codes")]
fn remainder(window: u64) -> usize {
    (window % CODES as u64) as usize
}

/// Adds four bytes to the window, or the last ones. It holds less than a code.
fn refill(window: &mut u64, held: &mut u32, rest: &mut &[u8]) {
    if let Some((&bytes, after)) = rest.split_first_chunk::<4>() {
        *window |= u64::from(u32::from_le_bytes(bytes)) << *held;
        *held += u32::BITS;
        *rest = after;
        return;
    }
    for &byte in std::mem::take(rest) {
        *window |= u64::from(byte) << *held;
        *held += u8::BITS;
    }
}

/// Encodes a datagram.
pub(super) fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0];
    let (mut window, mut held) = (0_u32, 0_u8);
    for &byte in bytes {
        let code = CODE_BY_BYTE[usize::from(byte)];
        window |= u32::from(code.code) << held;
        held += code.bits;
        while held >= 8 {
            let [lowest, ..] = window.to_le_bytes();
            out.push(lowest);
            window >>= 8;
            held -= 8;
        }
    }
    if held > 0 {
        let [lowest, ..] = window.to_le_bytes();
        out.push(lowest);
        out[0] = 8 - held;
    }
    if out.len() > bytes.len() + 1 { [&[UNCOMPRESSED][..], bytes].concat() } else { out }
}

const fn leaf_by_bits() -> [Leaf; CODES] {
    let mut leaf_by_bits = [Leaf { byte: 0, bits: 0 }; CODES];
    let mut position = 0;
    let mut leaf = 0;
    while leaf < LEAVES.len() {
        let (bits, byte) = LEAVES[leaf];
        let end = position + width(bits);
        while position < end {
            leaf_by_bits[first_bit_lowest(position) as usize] = Leaf { byte, bits };
            position += 1;
        }
        leaf += 1;
    }
    // Each sequence of bits is a code or begins with one.
    assert!(position as usize == CODES);
    leaf_by_bits
}

const fn code_by_byte() -> [Code; 256] {
    let mut code_by_byte = [Code { code: 0, bits: 0 }; 256];
    let mut position = 0;
    let mut leaf = 0;
    while leaf < LEAVES.len() {
        let (bits, byte) = LEAVES[leaf];
        assert!(code_by_byte[byte as usize].bits == 0);
        code_by_byte[byte as usize] = Code { code: first_bit_lowest(position), bits };
        position += width(bits);
        leaf += 1;
    }
    code_by_byte
}

/// The number of longest codes in place of one of this length.
const fn width(bits: u8) -> u16 {
    1 << (CODE_BITS_MAX - bits as u32)
}

/// A path from the root, whose first bit is the highest of the longest code.
const fn first_bit_lowest(path: u16) -> u16 {
    path.reverse_bits() >> (u16::BITS - CODE_BITS_MAX)
}

/// The leaves of the tree from left (0) to right (1): depth and byte. Each code follows from the depths
/// of the leaves before it.
#[rustfmt::skip]
static LEAVES: [(u8, u8); 256] = [
    (4, 128), (8, 38), (8, 34), (9, 80), (10, 110), (10, 144), (8, 67), (9, 74), (10, 243), (10, 142), (8, 37),
    (9, 124), (9, 58), (8, 182), (8, 36), (10, 221), (10, 131), (10, 245), (10, 163), (8, 35), (9, 113), (9, 85),
    (8, 41), (9, 77), (10, 199), (10, 130), (9, 206), (10, 185), (10, 153), (9, 70), (9, 118), (5, 3), (5, 5),
    (7, 24), (10, 198), (10, 190), (9, 63), (10, 139), (10, 186), (9, 75), (8, 44), (10, 240), (10, 218), (9, 56),
    (8, 40), (8, 39), (10, 244), (10, 247), (9, 81), (8, 65), (9, 9), (9, 125), (9, 68), (9, 60), (9, 25),
    (10, 191), (10, 138), (9, 86), (9, 17), (9, 23), (10, 220), (10, 178), (10, 165), (10, 194), (9, 14), (3, 0),
    (10, 150), (10, 157), (9, 208), (8, 181), (8, 222), (10, 216), (10, 230), (9, 211), (10, 252), (10, 141), (9, 10),
    (8, 42), (10, 134), (10, 135), (9, 104), (9, 103), (10, 187), (10, 225), (5, 95), (4, 32), (8, 57), (9, 61),
    (10, 183), (10, 237), (10, 233), (10, 234), (10, 246), (10, 203), (10, 250), (10, 147), (9, 79), (7, 129), (9, 7),
    (10, 143), (10, 136), (9, 20), (10, 179), (10, 148), (9, 28), (9, 106), (9, 101), (9, 87), (8, 66), (10, 180),
    (10, 219), (10, 227), (10, 241), (8, 26), (9, 251), (10, 229), (10, 214), (8, 54), (8, 69), (10, 231), (10, 212),
    (10, 156), (10, 176), (9, 93), (9, 83), (9, 96), (9, 253), (9, 30), (9, 13), (10, 175), (10, 254), (9, 94),
    (9, 159), (9, 27), (9, 8), (10, 204), (10, 226), (8, 78), (9, 107), (9, 88), (9, 31), (10, 137), (10, 169),
    (10, 215), (10, 145), (9, 6), (8, 4), (7, 127), (9, 99), (10, 209), (10, 217), (10, 213), (10, 238), (10, 177),
    (10, 170), (4, 132), (9, 22), (9, 12), (8, 114), (10, 158), (10, 197), (9, 97), (8, 45), (8, 46), (9, 112),
    (10, 174), (10, 249), (9, 224), (9, 102), (10, 171), (10, 151), (9, 193), (9, 15), (9, 16), (9, 2), (9, 168),
    (8, 49), (9, 91), (9, 146), (8, 48), (9, 173), (9, 29), (9, 19), (9, 126), (9, 92), (9, 242), (9, 205),
    (9, 192), (10, 235), (10, 149), (9, 255), (9, 223), (9, 184), (8, 248), (9, 108), (9, 236), (9, 111), (9, 90),
    (9, 117), (9, 115), (8, 71), (8, 11), (8, 50), (9, 188), (9, 119), (9, 122), (10, 167), (10, 162), (7, 160),
    (8, 133), (9, 123), (9, 21), (8, 59), (10, 155), (10, 154), (9, 98), (7, 43), (8, 76), (8, 51), (9, 201),
    (9, 116), (8, 72), (9, 109), (9, 100), (8, 121), (9, 195), (9, 232), (8, 18), (6, 1), (7, 164), (9, 120),
    (9, 189), (8, 73), (8, 196), (9, 239), (9, 210), (8, 64), (8, 62), (5, 89), (7, 33), (9, 228), (9, 161),
    (8, 55), (8, 84), (8, 152), (7, 47), (9, 207), (9, 172), (8, 140), (8, 82), (8, 166), (8, 53), (8, 105),
    (8, 52), (9, 202), (9, 200),];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn codes_equal_handwritten_bits() {
        // 0 is `010` and a space is `0111`: 010 0111 0 is 0x72 from its lowest bit, 10 is 0x01.
        assert_eq!(encode(b"\0 \0"), b"\x06\x72\x01");
        assert_eq!(decode(b"\x06\x72\x01", 9), b"\0 \0");
        assert_eq!(decode(b"\x06\x72\x01", 2), b"\0 ");
        // A code that is cut is left out.
        assert_eq!(decode(b"\x07\x72\x01", 9), b"\0 ");
        assert_eq!(decode(b"\x01\x72", 9), b"\0 ");
        assert_eq!(decode(b"\xf0\x72", 9), b"");
        assert_eq!((decode(b"", 9), decode(b"\x00", 9), decode(b"\xff", 9)), (vec![], vec![], vec![]));
    }

    #[test]
    fn datagram_that_would_grow_is_not_compressed() {
        // The codes of 199 and 243 have ten bits.
        assert_eq!(encode(b"\xc7\xf3\xc7\xf3\xc7"), b"\xff\xc7\xf3\xc7\xf3\xc7");
        assert_eq!(decode(b"\xff\xc7\xf3\xc7\xf3\xc7", 9), b"\xc7\xf3\xc7\xf3\xc7");
        assert_eq!(decode(b"\xff\xc7\xf3\xc7\xf3\xc7", 2), b"\xc7\xf3");
    }

    #[test]
    fn every_byte_has_a_code() {
        for byte in 0..=u8::MAX {
            let compressed = encode(&[byte, 0, 0, 0]);
            assert!(compressed.len() <= 5 && compressed[0] < 8, "{byte}");
            assert_eq!(decode(&compressed, 9), [byte, 0, 0, 0]);
        }
    }

    proptest! {
        #[test]
        fn decoding_restores_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(decode(&encode(&bytes), 300), bytes);
        }

        #[test]
        fn any_datagram_can_be_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..300), max in 0..700_usize) {
            prop_assert!(decode(&bytes, max).len() <= max);
        }
    }
}
