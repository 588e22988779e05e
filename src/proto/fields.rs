//! Fields of binary replies that `bytes::Buf` does not read. All take them from the front of
//! the remaining bytes.

use super::exchange::IgnoreReason;

/// Settings of a reply: keys in lower case, and values.
pub(super) type Pairs<'a> = Vec<(Vec<u8>, &'a [u8])>;

/// The bytes before the next zero byte, which is removed too.
pub(super) fn c_str<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], IgnoreReason> {
    let len = memchr::memchr(0, bytes).ok_or(IgnoreReason::Malformed)?;
    let text = &bytes[..len];
    *bytes = &bytes[len + 1..];
    Ok(text)
}

/// Removes fields that are not used.
pub(super) fn skip(bytes: &mut &[u8], count: usize) -> Result<(), IgnoreReason> {
    take(bytes, count).map(drop)
}

/// Removes a field of a known length and returns it.
pub(super) fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], IgnoreReason> {
    bytes.split_off(..count).ok_or(IgnoreReason::Malformed)
}

/// A decimal number, spaces around it allowed.
pub(super) fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use bytes::Buf;

    use super::*;

    #[test]
    fn truncated_field_is_malformed_and_not_removed() {
        let mut bytes = &b"\x01\x02\x03ab\0\x04\x05"[..];
        assert_eq!(bytes.try_get_u8(), Ok(1));
        assert_eq!(bytes.try_get_u16_le(), Ok(0x0302));
        assert_eq!(c_str(&mut bytes), Ok(&b"ab"[..]));
        assert_eq!(bytes.try_get_u32_le().map_err(IgnoreReason::from), Err(IgnoreReason::Malformed));
        assert_eq!(c_str(&mut bytes), Err(IgnoreReason::Malformed));
        assert_eq!(skip(&mut bytes, 3), Err(IgnoreReason::Malformed));
        assert_eq!(bytes, b"\x04\x05");
        assert_eq!((skip(&mut bytes, 2), bytes.is_empty()), (Ok(()), true));
    }
}
