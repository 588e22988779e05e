//! A2S_INFO replies: the current format (`I`, 0x49) and the old one of GoldSrc
//! (`m`, 0x6D).

use super::super::ProtoError;
use super::super::cursor::Cursor;
use crate::proto::a2s::fragments::SizeField;

/// The Ship inserts three bytes before the version.
const APP_THE_SHIP: u16 = 2_400;

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
    pub protocol: u8,
    /// 0 if unknown. Taken from the game id if it is sent, because the 16-bit field
    /// cannot hold newer ids.
    pub app: u32,
    /// Received in the `m` format.
    pub is_goldsrc_format: bool,
}

impl Info {
    /// Whether fragments from this server have the size field. Used only if the
    /// fragments themselves do not show it.
    pub fn size_field(&self) -> SizeField {
        match (self.app, self.protocol) {
            (215 | 17_550 | 17_700, _) | (240, 7) => SizeField::Absent,
            _ => SizeField::Present,
        }
    }
}

/// Decodes an `I` message, from its type byte on.
///
/// Errors: truncated before the end of the version. The data after the version are
/// optional.
pub fn decode(message: &[u8]) -> Result<Info, ProtoError> {
    let mut c = Cursor::new(message);
    expect_type(&mut c, b'I')?;
    let protocol = c.u8("protocol")?;
    let hostname = c.c_str("host name")?.to_vec();
    let map = c.c_str("map")?.to_vec();
    let folder = c.c_str("folder")?.to_vec();
    let game = c.c_str("game")?.to_vec();
    let app = c.u16("app id")?;
    let players = c.u8("players")?.into();
    let slots = c.u8("slots")?.into();
    let bots = c.u8("bots")?.into();
    c.take(4, "server type, system, password, VAC")?;
    if app == APP_THE_SHIP {
        c.take(3, "mode, witnesses, duration")?;
    }
    c.c_str("version")?;
    let app = read_extra_data(&mut c).ok().flatten().unwrap_or(app.into());
    Ok(Info { hostname, map, folder, game, players, slots, bots, protocol, app, is_goldsrc_format: false })
}

/// The extra data: returns the app id from the game id, if it is present. The
/// fields have this order, whatever the order of their flags.
fn read_extra_data(c: &mut Cursor<'_>) -> Result<Option<u32>, ProtoError> {
    let flags = c.u8("extra data flags")?;
    if flags & 0x80 != 0 {
        c.u16("port")?;
    }
    if flags & 0x10 != 0 {
        c.take(8, "Steam id")?;
    }
    if flags & 0x40 != 0 {
        c.u16("SourceTV port")?;
        c.c_str("SourceTV name")?;
    }
    if flags & 0x20 != 0 {
        c.c_str("tags")?;
    }
    if flags & 0x01 == 0 {
        return Ok(None);
    }
    let id = c.u32("game id")?;
    c.u32("game id")?;
    Ok(Some(id & 0x00ff_ffff))
}

/// Decodes an `m` message, from its type byte on.
///
/// Errors: truncated before the mod flag. The bot count, which the oldest servers do
/// not send, is 0 if absent.
pub fn decode_goldsrc(message: &[u8]) -> Result<Info, ProtoError> {
    let mut c = Cursor::new(message);
    expect_type(&mut c, b'm')?;
    c.c_str("address")?;
    let hostname = c.c_str("host name")?.to_vec();
    let map = c.c_str("map")?.to_vec();
    let folder = c.c_str("folder")?.to_vec();
    let game = c.c_str("game")?.to_vec();
    let players = c.u8("players")?.into();
    let slots = c.u8("slots")?.into();
    let protocol = c.u8("protocol")?;
    c.take(3, "server type, system, password")?;
    let is_mod = c.u8("mod flag")?;
    let bots = goldsrc_bots(&mut c, is_mod == 1).unwrap_or(0);
    Ok(Info { hostname, map, folder, game, players, slots, bots, protocol, app: 0, is_goldsrc_format: true })
}

fn goldsrc_bots(c: &mut Cursor<'_>, is_mod: bool) -> Result<u32, ProtoError> {
    if is_mod {
        c.c_str("link")?;
        c.c_str("download link")?;
        c.take(11, "zero, version, size, type, library")?;
    }
    c.u8("VAC")?;
    c.u8("bots").map(u32::from)
}

fn expect_type(c: &mut Cursor<'_>, kind: u8) -> Result<(), ProtoError> {
    if c.u8("message type")? == kind { Ok(()) } else { Err(ProtoError::NotAReply) }
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
        assert_eq!((info.players, info.slots, info.bots, info.protocol), (5, 32, 2, 17));
        assert_eq!((&info.folder[..], &info.map[..]), (&b"cstrike"[..], &b"de_dust2"[..]));
        assert_eq!(info.app, 4_000_000);
        // Truncated anywhere in the extra data: the other fields are kept.
        let version_end = bytes.len() - (1 + 2 + 8 + 2 + 15 + 10 + 8);
        for cut in version_end..bytes.len() {
            let cut_info = decode(&bytes[..cut]).unwrap();
            assert_eq!(cut_info, Info { app: 240, ..info.clone() }, "{cut}");
        }
        for cut in 0..version_end {
            assert!(decode(&bytes[..cut]).is_err(), "{cut}");
        }
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
        assert_eq!((info.players, info.slots, info.bots, info.protocol, info.is_goldsrc_format), (6, 16, 4, 47, true));
        let modded = [&head[..], b"\x01http://x\0\0\0\x01\0\0\0\0\0\x01\0\0\x01\x00\x03"].concat();
        assert_eq!(decode_goldsrc(&modded).unwrap().bots, 3);
        // The oldest servers end after the mod flag.
        assert_eq!(decode_goldsrc(&[&head[..], b"\x00"].concat()).unwrap().bots, 0);
        assert!(decode_goldsrc(&head).is_err());
    }

    #[test]
    fn size_field_is_absent_for_the_known_apps() {
        for (app, protocol, want) in [
            (215, 17, SizeField::Absent),
            (17_550, 17, SizeField::Absent),
            (17_700, 17, SizeField::Absent),
            (240, 7, SizeField::Absent),
            (240, 17, SizeField::Present),
            (440, 7, SizeField::Present),
        ] {
            assert_eq!(Info { app, protocol, ..Info::default() }.size_field(), want);
        }
    }
}
