//! The log code and its packing (docs/rules.md section 10).
//!
//! With n bits, top = 2^n - 1: `top` is no data, 0 is zero players, and a code c in between is
//! `0.05 * (4096 / 0.05)^((c - 1) / (top - 2))`.

use std::sync::LazyLock;

const MEAN_MIN: f64 = 0.05;
const MEAN_MAX: f64 = 4096.0;

/// Number of values in a 250-byte blob of 13-bit codes, three in five bytes.
const PACKED_13_VALUES: usize = 150;
const PACKED_13_BYTES: usize = 250;

/// Encodes a mean; `None` is no data. `bits` is 8 or 13.
pub fn encode(mean: Option<f64>, bits: u32) -> u16 {
    let top = (1u32 << bits) - 1;
    let code = match mean {
        None => top,
        Some(v) if v <= 0.0 => 0,
        Some(v) if v < MEAN_MIN => 1,
        Some(v) if v > MEAN_MAX => top - 1,
        Some(v) => 1 + ((v / MEAN_MIN).ln() / (MEAN_MAX / MEAN_MIN).ln() * f64::from(top - 2)).round() as u32,
    };
    code as u16
}

/// The means of all codes of 8 and of 13 bits: a power for each value takes five times as long.
static MEANS_8: LazyLock<Vec<Option<f64>>> = LazyLock::new(|| (0..1 << 8).map(|code| mean_of(code, 8)).collect());
static MEANS_13: LazyLock<Vec<Option<f64>>> = LazyLock::new(|| (0..1 << 13).map(|code| mean_of(code, 13)).collect());

/// Decodes a mean; `None` is no data. `bits` is 8 or 13.
pub fn decode(code: u16, bits: u32) -> Option<f64> {
    let means = if bits == 8 { &MEANS_8 } else { &MEANS_13 };
    means.get(usize::from(code)).copied().flatten()
}

fn mean_of(code: u16, bits: u32) -> Option<f64> {
    let top = (1u32 << bits) - 1;
    match u32::from(code) {
        0 => Some(0.0),
        c if c >= top => None,
        c => Some(MEAN_MIN * (MEAN_MAX / MEAN_MIN).powf(f64::from(c - 1) / f64::from(top - 2))),
    }
}

/// Packs 150 codes of 13 bits into 250 bytes: three in 39 bits, big-endian, first highest; the
/// lowest of the 40 bits is unused.
pub(super) fn pack_13(codes: &[u16; PACKED_13_VALUES]) -> [u8; PACKED_13_BYTES] {
    let mut blob = [0; PACKED_13_BYTES];
    for (three, bytes) in codes.chunks_exact(3).zip(blob.chunks_exact_mut(5)) {
        let word = u64::from(three[0]) << 27 | u64::from(three[1]) << 14 | u64::from(three[2]) << 1;
        bytes.copy_from_slice(&word.to_be_bytes()[3..]);
    }
    blob
}

/// The inverse of [`pack_13`]. A blob of another length is no data.
pub(super) fn unpack_13(blob: &[u8]) -> [u16; PACKED_13_VALUES] {
    let mut codes = [0x1FFF; PACKED_13_VALUES];
    if blob.len() == PACKED_13_BYTES {
        for (three, bytes) in codes.chunks_exact_mut(3).zip(blob.chunks_exact(5)) {
            let word = bytes.iter().fold(0u64, |word, &b| word << 8 | u64::from(b));
            three[0] = (word >> 27) as u16 & 0x1FFF;
            three[1] = (word >> 14) as u16 & 0x1FFF;
            three[2] = (word >> 1) as u16 & 0x1FFF;
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_stay_below_the_stated_bounds() {
        for (bits, bound) in [(8, 0.023), (13, 0.0007)] {
            let mut v = 0.05;
            while v < 4096.0 {
                let back = decode(encode(Some(v), bits), bits).unwrap();
                assert!((back - v).abs() / v < bound, "{v} -> {back} with {bits} bits");
                v *= 1.0007;
            }
        }
    }

    #[test]
    fn log_code_encodes_zero_no_data_and_both_ends() {
        for bits in [8, 13] {
            let top = (1 << bits) - 1;
            assert_eq!(encode(None, bits), top);
            assert_eq!(encode(Some(0.0), bits), 0);
            assert_eq!(encode(Some(0.001), bits), 1);
            assert_eq!(encode(Some(0.05), bits), 1);
            assert_eq!(encode(Some(4096.0), bits), top - 1);
            assert_eq!(encode(Some(1e9), bits), top - 1);
            for code in 0..=top {
                assert_eq!(encode(decode(code, bits), bits), code);
            }
        }
    }

    #[test]
    fn packed_codes_round_trip() {
        let codes: [u16; 150] = std::array::from_fn(|i| (i as u16).wrapping_mul(547) & 0x1FFF);
        assert_eq!(unpack_13(&pack_13(&codes)), codes);
        let mut codes = [0; 150];
        codes[0] = 0x1FFF;
        codes[2] = 1;
        assert_eq!(pack_13(&codes)[..5], [0xFF, 0xF8, 0, 0, 2]);
    }
}
