//! Numbers of variable length: seven bits a byte, lowest first (LEB128). Signed numbers are
//! zigzag-encoded, so that small ones of either sign take one byte.

/// Appends a number: one byte for each seven bits.
pub fn put_u64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

pub fn put_i64(out: &mut Vec<u8>, value: i64) {
    put_u64(out, (value.wrapping_shl(1) ^ (value >> 63)).cast_unsigned());
}

/// Reads numbers and bytes from a slice. Each method returns `None` if the slice ends too early
/// or a number does not fit.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes that are not read yet.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has one bit.
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.u64()?.try_into().ok()
    }

    pub fn i64(&mut self) -> Option<i64> {
        let value = self.u64()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_small_ones_take_one_byte() {
        for (value, bytes) in [(0, 1), (63, 1), (-64, 1), (64, 2), (-65, 2), (i64::MAX, 10), (i64::MIN, 10)] {
            let mut out = Vec::new();
            put_i64(&mut out, value);
            assert_eq!(out.len(), bytes, "{value}");
            let mut cursor = Cursor::new(&out);
            assert_eq!((cursor.i64(), cursor.is_empty()), (Some(value), true));
        }
        for value in [0, 127, 128, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put_u64(&mut out, value);
            assert_eq!(Cursor::new(&out).u64(), Some(value));
            assert_eq!(Cursor::new(&out[..out.len() - 1]).u64(), None, "{value} without its last byte");
        }
    }

    #[test]
    fn number_beyond_64_bits_is_rejected() {
        assert_eq!(Cursor::new(&[0xff; 10]).u64(), None);
        assert_eq!(Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).u64(), None);
        assert_eq!(Cursor::new(&[0x80, 0x80, 0x80, 0x80, 0x10]).u32(), None);
    }
}
