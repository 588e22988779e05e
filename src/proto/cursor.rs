//! Reads little-endian fields from a reply. Every read names its field, so that an
//! error states which field was truncated.

use super::ProtoError;

/// A read position in the bytes of a reply.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// The next `count` bytes. Error: fewer are left; then nothing is consumed.
    pub fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], ProtoError> {
        let taken = self.rest().get(..count).ok_or(ProtoError::Cut { what, at: self.bytes.len() })?;
        self.at += count;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], ProtoError> {
        let taken = self.take(N, what)?;
        Ok(std::array::from_fn(|i| taken[i]))
    }

    pub fn u8(&mut self, what: &'static str) -> Result<u8, ProtoError> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub fn u16(&mut self, what: &'static str) -> Result<u16, ProtoError> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub fn u32(&mut self, what: &'static str) -> Result<u32, ProtoError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub fn i32(&mut self, what: &'static str) -> Result<i32, ProtoError> {
        self.array(what).map(i32::from_le_bytes)
    }

    pub fn f32(&mut self, what: &'static str) -> Result<f32, ProtoError> {
        self.array(what).map(f32::from_le_bytes)
    }

    /// The bytes before the next zero byte, which is consumed too.
    pub fn c_str(&mut self, what: &'static str) -> Result<&'a [u8], ProtoError> {
        let rest = self.rest();
        let len = rest.iter().position(|&b| b == 0).ok_or(ProtoError::Cut { what, at: self.bytes.len() })?;
        self.at += len + 1;
        Ok(&rest[..len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_read_names_its_field() {
        let mut c = Cursor::new(b"\x01\x02\x03ab\0\x04\x05");
        assert_eq!(c.u8("a"), Ok(1));
        assert_eq!(c.u16("b"), Ok(0x0302));
        assert_eq!(c.c_str("c"), Ok(&b"ab"[..]));
        assert_eq!(c.u32("score"), Err(ProtoError::Cut { what: "score", at: 8 }));
        assert_eq!(c.c_str("name"), Err(ProtoError::Cut { what: "name", at: 8 }));
        assert_eq!(c.rest(), b"\x04\x05");
    }
}
