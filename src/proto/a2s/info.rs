//! A2S_INFO replies: the current format (`I`, 0x49) and the old one of GoldSrc
//! (`m`, 0x6D).

use bytes::Buf;

use crate::proto::exchange::IgnoreReason;
use crate::proto::fields::{c_str, number, skip};

/// The Ship inserts three bytes before the version.
const APP_THE_SHIP: u16 = 2_400;

/// Rust announces more than 255 players and slots in its tags only: `cp` and `mp`.
const APP_RUST: u32 = 252_490;

/// The fields of INFO. Text is undecoded and not yet truncated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    pub hostname: Vec<u8>,
    pub map: Vec<u8>,
    /// The game's directory, `cstrike`: clqd uses it as the game.
    pub folder: Vec<u8>,
    /// The game's description, `Counter-Strike: Source`.
    pub game: Vec<u8>,
    /// Bots included.
    pub players: u32,
    pub slots: u32,
    pub bots: u32,
    /// 0 if unknown. Taken from the game id if it is sent, because the 16-bit field
    /// cannot hold newer ids.
    pub app: u32,
    pub version: Vec<u8>,
    pub password: bool,
    pub secure: bool,
    /// Separated by commas.
    pub tags: Vec<u8>,
    /// Received in the `m` format.
    pub is_goldsrc_format: bool,
    /// A proxy for spectators (HLTV, SourceTV), not the server of the game.
    pub is_proxy: bool,
}

/// Decodes an `I` message, from its type byte on.
///
/// Errors: truncated before the end of the version. The data after the version are
/// optional.
pub fn decode(message: &[u8]) -> Result<Info, IgnoreReason> {
    let mut rest = message;
    expect_type(&mut rest, b'I')?;
    let _protocol = rest.try_get_u8()?;
    let hostname = c_str(&mut rest)?.to_vec();
    let map = c_str(&mut rest)?.to_vec();
    let folder = c_str(&mut rest)?.to_vec();
    let game = c_str(&mut rest)?.to_vec();
    let app = rest.try_get_u16_le()?;
    let players = rest.try_get_u8()?.into();
    let slots = rest.try_get_u8()?.into();
    let bots = rest.try_get_u8()?.into();
    let is_proxy = is_proxy(rest.try_get_u8()?);
    skip(&mut rest, 1)?; // system
    let (password, secure) = (rest.try_get_u8()? != 0, rest.try_get_u8()? != 0);
    if app == APP_THE_SHIP {
        skip(&mut rest, 3)?; // mode, witnesses, duration
    }
    let version = c_str(&mut rest)?.to_vec();
    let mut info = Info {
        hostname,
        map,
        folder,
        game,
        players,
        slots,
        bots,
        app: app.into(),
        version,
        password,
        secure,
        tags: Vec::new(),
        is_goldsrc_format: false,
        is_proxy,
    };
    // A reply that ends here lacks only what is optional.
    let _ = read_extra_data(&mut rest, &mut info);
    if info.app == APP_RUST {
        let tag = |prefix: &[u8]| info.tags.split(|&b| b == b',').find_map(|tag| number(tag.strip_prefix(prefix)?));
        let (players, slots) = (tag(b"cp"), tag(b"mp"));
        info.players = players.unwrap_or(info.players);
        info.slots = slots.unwrap_or(info.slots);
    }
    Ok(info)
}

/// The extra data: tags, and the app id from the game id. The fields have this order,
/// whatever the order of their flags.
fn read_extra_data(rest: &mut &[u8], info: &mut Info) -> Result<(), IgnoreReason> {
    let flags = rest.try_get_u8()?;
    if flags & 0x80 != 0 {
        rest.try_get_u16_le()?; // port
    }
    if flags & 0x10 != 0 {
        skip(rest, 8)?; // Steam id
    }
    if flags & 0x40 != 0 {
        rest.try_get_u16_le()?; // SourceTV port
        c_str(rest)?; // SourceTV name
    }
    if flags & 0x20 != 0 {
        info.tags = c_str(rest)?.to_vec();
    }
    if flags & 0x01 != 0 {
        let game_id = rest.try_get_u64_le()?;
        info.app = (game_id & 0x00ff_ffff) as u32;
    }
    Ok(())
}

/// Decodes an `m` message, from its type byte on.
///
/// Errors: truncated before the mod flag. The bot count, which the oldest servers do
/// not send, is 0 if absent.
pub fn decode_goldsrc(message: &[u8]) -> Result<Info, IgnoreReason> {
    let mut rest = message;
    expect_type(&mut rest, b'm')?;
    c_str(&mut rest)?; // address
    let hostname = c_str(&mut rest)?.to_vec();
    let map = c_str(&mut rest)?.to_vec();
    let folder = c_str(&mut rest)?.to_vec();
    let game = c_str(&mut rest)?.to_vec();
    let players = rest.try_get_u8()?.into();
    let slots = rest.try_get_u8()?.into();
    let _protocol = rest.try_get_u8()?;
    let is_proxy = is_proxy(rest.try_get_u8()?);
    skip(&mut rest, 1)?; // system
    let password = rest.try_get_u8()? != 0;
    let is_mod = rest.try_get_u8()?;
    let (secure, bots) = goldsrc_secure_and_bots(&mut rest, is_mod == 1).unwrap_or((false, 0));
    Ok(Info {
        hostname,
        map,
        folder,
        game,
        players,
        slots,
        bots,
        app: 0,
        version: Vec::new(),
        password,
        secure,
        tags: Vec::new(),
        is_goldsrc_format: true,
        is_proxy,
    })
}

fn goldsrc_secure_and_bots(rest: &mut &[u8], is_mod: bool) -> Result<(bool, u32), IgnoreReason> {
    if is_mod {
        c_str(rest)?; // link
        c_str(rest)?; // download link
        skip(rest, 11)?; // zero, version, size, type, library
    }
    Ok((rest.try_get_u8()? != 0, rest.try_get_u8()?.into()))
}

/// By the type of the server.
fn is_proxy(kind: u8) -> bool {
    kind.eq_ignore_ascii_case(&b'p')
}

fn expect_type(rest: &mut &[u8], kind: u8) -> Result<(), IgnoreReason> {
    if rest.try_get_u8()? == kind { Ok(()) } else { Err(IgnoreReason::NotAReply) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(app: u16) -> Vec<u8> {
        let mut bytes = b"I\x11Caf\xe9\0de_dust2\0cstrike\0Counter-Strike: Source\0".to_vec();
        bytes.extend_from_slice(&app.to_le_bytes());
        bytes.extend_from_slice(b"\x05\x20\x02dl\x00\x01");
        bytes
    }

    #[test]
    fn truncated_extra_data_keeps_the_fields_before_it() {
        let mut bytes = fixed(240);
        bytes.extend_from_slice(b"1.0.0.70\0\xf1\x87\x69");
        bytes.extend_from_slice(&[9; 8]);
        bytes.extend_from_slice(b"\x8c\x69SourceTV of it\0");
        bytes.extend_from_slice(b"tag,other\0");
        bytes.extend_from_slice(&(0x0300_0000_0000_0000 | 4_000_000_u64).to_le_bytes());
        let info = decode(&bytes).unwrap();
        assert_eq!((info.players, info.slots, info.bots), (5, 32, 2));
        assert_eq!((&info.folder[..], &info.map[..]), (&b"cstrike"[..], &b"de_dust2"[..]));
        assert_eq!(info.app, 4_000_000);
        // Truncated anywhere in the extra data: the other fields are kept.
        let version_end = bytes.len() - (1 + 2 + 8 + 2 + 15 + 10 + 8);
        for cut in version_end..bytes.len() {
            let cut_info = decode(&bytes[..cut]).unwrap();
            let tags = cut_info.tags.clone();
            assert_eq!(cut_info, Info { app: 240, tags, ..info.clone() }, "{cut}");
        }
        for cut in 0..version_end {
            assert!(decode(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn counts_of_rust_come_from_its_tags() {
        let with_tags = |app: u64, tags: &[u8]| {
            let mut bytes = fixed(0);
            bytes.extend_from_slice(b"2622\0\x21");
            bytes.extend_from_slice(tags);
            bytes.push(0);
            bytes.extend_from_slice(&app.to_le_bytes());
            let info = decode(&bytes).unwrap();
            (info.players, info.slots)
        };
        assert_eq!(with_tags(APP_RUST.into(), b"mp500,cp287,qp0,v2622"), (287, 500));
        assert_eq!(with_tags(APP_RUST.into(), b"cpx,mp"), (5, 32));
        assert_eq!(with_tags(730, b"mp500,cp287"), (5, 32));
    }

    #[test]
    fn source_tv_fields_do_not_shift_the_game_id() {
        let mut bytes = fixed(240);
        bytes.extend_from_slice(b"1\0\x41\x8c\x69tv\0");
        bytes.extend_from_slice(&730_u64.to_le_bytes());
        assert_eq!(decode(&bytes).unwrap().app, 730);
    }

    #[test]
    fn extra_bytes_of_the_ship_are_skipped() {
        let mut bytes = fixed(APP_THE_SHIP);
        bytes.extend_from_slice(b"\x01\x02\x031.0.0.3\0\x80\x87\x69");
        assert_eq!(decode(&bytes).unwrap().app, 2_400);
        // A witness count of zero must not be read as an empty version.
        let mut bytes = fixed(APP_THE_SHIP);
        bytes.extend_from_slice(b"\x01\x00\x031.0.0.3\0\x01");
        bytes.extend_from_slice(&77_u64.to_le_bytes());
        assert_eq!(decode(&bytes).unwrap().app, 77);
    }

    #[test]
    fn goldsrc_info_is_decoded_with_and_without_a_mod() {
        let head = b"m127.0.0.1:27015\0Old\0crossfire\0valve\0Half-Life\0\x06\x10\x2fdl\x00".to_vec();
        let plain = [&head[..], b"\x00\x00\x04"].concat();
        let info = decode_goldsrc(&plain).unwrap();
        assert_eq!((info.players, info.slots, info.bots, info.is_goldsrc_format), (6, 16, 4, true));
        let modded = [&head[..], b"\x01http://x\0\0\0\x01\0\0\0\0\0\x01\0\0\x01\x00\x03"].concat();
        assert_eq!(decode_goldsrc(&modded).unwrap().bots, 3);
        // The oldest servers end after the mod flag.
        assert_eq!(decode_goldsrc(&[&head[..], b"\x00"].concat()).unwrap().bots, 0);
        assert!(decode_goldsrc(&head).is_err());
    }
}
