//! How a server differs from others of its protocol.

use super::fragments::SplitFormat;
use crate::fleet::profile::ServerProfile;
use crate::fleet::protocol::{Protocol, TEEWORLDS_CLIENTS_MAX};
use crate::fleet::rng::{RngExt, SplitMix64, hash_parts};

/// How a server differs from others of its protocol. Each field is for one protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolVariant {
    /// Replies to A2S_INFO with a challenge first, as since 2020.
    pub info_challenge: bool,
    /// Sends A2S_INFO in the format of the oldest GoldSrc servers, `m`.
    pub goldsrc_info: bool,
    pub split: SplitFormat,
    /// Maximum payload of one fragment, bytes.
    pub fragment_bytes: usize,
    /// Extra data flag of A2S_INFO: which optional fields follow.
    pub edf: u8,
    /// GameSpy 2: the number of rows is before the rows.
    pub gamespy2_row_count: bool,
    /// GameSpy 3: queries need a challenge. The others send 0 for it.
    pub gamespy3_challenge: bool,
    /// Teeworlds 0.6: a server of DDNet, which knows the extended reply.
    pub teeworlds_extended: bool,
}

impl ProtocolVariant {
    pub fn of(seed: u64, server: u32, profile: &ServerProfile) -> ProtocolVariant {
        let rng = &mut SplitMix64::from_parts(&[seed, 0x3A21, u64::from(server)]);
        let (challenge, old, split, size) = (rng.unit(), rng.unit(), rng.unit(), rng.unit());
        let edf = *[0xB1, 0xB1, 0xA1, 0x21, 0xF1, 0x40, 0x01, 0x00].get(rng.below(8)).unwrap_or(&0);
        let goldsrc = profile.game.goldsrc;
        let old_info = goldsrc && old < 0.15;
        ProtocolVariant {
            info_challenge: !old_info && challenge < 0.85,
            goldsrc_info: old_info,
            split: match profile.game.protocol {
                Protocol::Source if goldsrc => SplitFormat::GoldSrc,
                Protocol::Source if split < 0.05 => SplitFormat::Never,
                Protocol::Source if split < 0.15 => SplitFormat::Bzip2,
                Protocol::Source if split < 0.25 && profile.game.app_id == 240 => SplitFormat::SourceWithoutSize,
                Protocol::Source => SplitFormat::Source,
                _ => SplitFormat::Never,
            },
            // Some operators configure small packets, which makes fragments common.
            fragment_bytes: if size < 0.15 { 256 } else { 1_248 },
            edf,
            gamespy2_row_count: rng.bool(0.7),
            gamespy3_challenge: rng.bool(0.8),
            teeworlds_extended: rng.bool(0.5) || profile.slots > TEEWORLDS_CLIENTS_MAX,
        }
    }

    pub(super) fn protocol(&self) -> u8 {
        match self.split {
            SplitFormat::GoldSrc => 48,
            SplitFormat::SourceWithoutSize => 7,
            _ => 17,
        }
    }
}

/// The challenge that a server sends to a client; never `FF FF FF FF`.
pub fn challenge(seed: u64, server: u32, client: u64) -> [u8; 4] {
    ((hash_parts(&[seed, 0xC4A1, u64::from(server), client]) as u32) & 0x7FFF_FFFF).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::profile::ProfileMix;
    use crate::fleet::protocol::ProtocolShares;

    #[test]
    fn every_protocol_variant_occurs() {
        let mix = ProfileMix { protocols: ProtocolShares::source(0.9), activity: 1.0 };
        let all: Vec<ProtocolVariant> =
            (0..2_000).map(|server| ProtocolVariant::of(1, server, &ServerProfile::generate(1, server, mix))).collect();
        for split in [
            SplitFormat::Never,
            SplitFormat::Source,
            SplitFormat::SourceWithoutSize,
            SplitFormat::Bzip2,
            SplitFormat::GoldSrc,
        ] {
            assert!(all.iter().filter(|v| v.split == split).count() > 20, "{split:?}");
        }
        assert!(all.iter().filter(|v| v.goldsrc_info).count() > 20);
        assert!(all.iter().filter(|v| v.info_challenge).count() > 1_000);
        for field in [
            |v: &ProtocolVariant| v.gamespy2_row_count,
            |v: &ProtocolVariant| v.gamespy3_challenge,
            |v: &ProtocolVariant| v.teeworlds_extended,
        ] {
            assert!((200..1_800).contains(&all.iter().filter(|v| field(v)).count()));
        }
    }
}
