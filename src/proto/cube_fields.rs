//! Numbers and strings of the Cube engine, in replies of Sauerbraten, Tesseract, AssaultCube and Red Eclipse.
//!
//! A number is one byte, or `80` and two bytes, or `81` and four; a string is numbers up to a zero. Cube 2 has a
//! character set of its own, with letters in place of most control characters.

use bytes::Buf;

use super::exchange::IgnoreReason;

/// Longest reply, bytes (`MAXTRANS`): servers build each datagram in a buffer of this size.
pub(super) const REPLY_BYTES_MAX: usize = 5_000;

/// Most clients of a server, and the first client number that no server uses. Sauerbraten has 128 clients and
/// 32 bots, AssaultCube and Red Eclipse 256 clients.
pub(super) const CLIENTS_MAX: usize = 512;

/// Longest string that is kept, bytes (`MAXSTRLEN` of Red Eclipse, which has the longest).
const STRING_BYTES_MAX: usize = 512;

/// Begins a request of the basic information: a number other than 0, and for AssaultCube the query of no further
/// information. Servers repeat the whole request, so what follows is a nonce.
pub(super) const PING: [u8; 2] = [1, 0];

/// The letters of the character set at 1 to 8, 14 to 31, and 127 to 255.
const LETTERS: [char; 155] = [
    'À', 'Á', 'Â', 'Ã', 'Ä', 'Å', 'Æ', 'Ç', 'È', 'É', 'Ê', 'Ë', 'Ì', 'Í', 'Î', 'Ï', 'Ñ', 'Ò', 'Ó', 'Ô', 'Õ', 'Ö', 'Ø',
    'Ù', 'Ú', 'Û', 'Ü', 'Ý', 'ß', 'à', 'á', 'â', 'ã', 'ä', 'å', 'æ', 'ç', 'è', 'é', 'ê', 'ë', 'ì', 'í', 'î', 'ï', 'ñ',
    'ò', 'ó', 'ô', 'õ', 'ö', 'ø', 'ù', 'ú', 'û', 'ü', 'ý', 'ÿ', 'Ą', 'ą', 'Ć', 'ć', 'Č', 'č', 'Ď', 'ď', 'Ę', 'ę', 'Ě',
    'ě', 'Ğ', 'ğ', 'İ', 'ı', 'Ł', 'ł', 'Ń', 'ń', 'Ň', 'ň', 'Ő', 'ő', 'Œ', 'œ', 'Ř', 'ř', 'Ś', 'ś', 'Ş', 'ş', 'Š', 'š',
    'Ť', 'ť', 'Ů', 'ů', 'Ű', 'ű', 'Ÿ', 'Ź', 'ź', 'Ż', 'ż', 'Ž', 'ž', 'Є', 'Б', 'Г', 'Д', 'Ж', 'З', 'И', 'Й', 'Л', 'П',
    'У', 'Ф', 'Ц', 'Ч', 'Ш', 'Щ', 'Ъ', 'Ы', 'Ь', 'Э', 'Ю', 'Я', 'б', 'в', 'г', 'д', 'ж', 'з', 'и', 'й', 'к', 'л', 'м',
    'н', 'п', 'т', 'ф', 'ц', 'ч', 'ш', 'щ', 'ъ', 'ы', 'ь', 'э', 'ю', 'я', 'є', 'Ґ', 'ґ',
];

/// A number, which is removed.
pub(super) fn int(bytes: &mut &[u8]) -> Result<i32, IgnoreReason> {
    match bytes.try_get_i8()? {
        -128 => Ok(bytes.try_get_i16_le()?.into()),
        -127 => Ok(bytes.try_get_i32_le()?),
        number => Ok(number.into()),
    }
}

/// A number of clients, which is removed.
pub(super) fn count(bytes: &mut &[u8]) -> Result<u32, IgnoreReason> {
    match u32::try_from(int(bytes)?) {
        Ok(count) if count as usize <= CLIENTS_MAX => Ok(count),
        _ => Err(IgnoreReason::Malformed),
    }
}

/// A number of slots, which is removed; 0 if it is negative.
pub(super) fn slots(bytes: &mut &[u8]) -> Result<u32, IgnoreReason> {
    int(bytes).map(|slots| slots.try_into().unwrap_or(0))
}

/// The first bytes of a string, which is removed with its end mark.
pub(super) fn string(bytes: &mut &[u8]) -> Result<Vec<u8>, IgnoreReason> {
    let mut text = Vec::new();
    loop {
        match int(bytes)?.to_le_bytes() {
            [0, ..] => return Ok(text),
            [byte, ..] if text.len() < STRING_BYTES_MAX => text.push(byte),
            _ => {}
        }
    }
}

/// A text without colour codes, a form feed and one character.
pub(super) fn without_colours(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\x0c' => _ = bytes.next(),
            _ => out.push(byte),
        }
    }
    out
}

/// A text in the character set of Cube 2.
pub(super) fn decode(text: &[u8]) -> String {
    text.iter().map(|&byte| character(byte)).collect()
}

fn character(byte: u8) -> char {
    let at = match byte {
        1..=8 => byte - 1,
        14..=31 => byte - 6,
        127.. => byte - 101,
        _ => return char::from(byte),
    };
    LETTERS[usize::from(at)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_three_or_five_bytes() {
        let mut bytes =
            &b"\x00\x7f\xff\x82\x80\x80\x00\x80\x00\x80\x81\x78\x56\x34\x12\x81\xff\xff\xff\xff\x80\x01"[..];
        for want in [0, 127, -1, -126, 128, -32_768, 0x1234_5678, -1] {
            assert_eq!(int(&mut bytes), Ok(want));
        }
        assert_eq!(int(&mut bytes), Err(IgnoreReason::Malformed));
        assert_eq!(int(&mut &b"\x81\x01\x02\x03"[..]), Err(IgnoreReason::Malformed));
        assert_eq!(int(&mut &b""[..]), Err(IgnoreReason::Malformed));
        assert_eq!(count(&mut &b"\x80\x00\x02"[..]), Ok(512));
        for bytes in [b"\x80\x01\x02", b"\xff\0\0"] {
            assert_eq!(count(&mut &bytes[..]), Err(IgnoreReason::Malformed));
        }
    }

    #[test]
    fn string_ends_at_its_zero() {
        // As two real servers sent them: 80 and 81 are three bytes, 82 is one.
        let mut bytes = &b"Zo\x80\x80\xff\x80\x81\xff\x82l\0rest"[..];
        assert_eq!(string(&mut bytes).map(|text| decode(&text)), Ok("ZoÝßàl".to_owned()));
        assert_eq!(bytes, b"rest");
        // As a server sends them whose `char` is unsigned.
        assert_eq!(string(&mut &b"\x80\x82\x00\0"[..]), Ok(vec![0x82]));
        assert_eq!(string(&mut &b"no end"[..]), Err(IgnoreReason::Malformed));
        let long = [&[b'x'; 4_000][..], b"\0rest"].concat();
        let mut bytes = &long[..];
        assert_eq!((string(&mut bytes).map(|text| text.len()), bytes), (Ok(STRING_BYTES_MAX), &b"rest"[..]));
    }

    #[test]
    fn characters_are_those_of_cube_2() {
        assert_eq!(decode(b"Az~\t \x01\x08\x0e\x1f\x7f\xff"), "Az~\t ÀÇÈÛÜґ");
        assert_eq!(decode(b"\x9c\x9d\x9e\x9f\xfe"), "üýÿĄҐ");
        let letters: std::collections::BTreeSet<char> = (1..=u8::MAX).map(character).collect();
        assert_eq!(letters.len(), 255);
    }

    #[test]
    fn colours_are_removed() {
        assert_eq!(without_colours(b"\x0c3red \x0c\x0c0white\x0c"), b"red 0white");
    }
}
