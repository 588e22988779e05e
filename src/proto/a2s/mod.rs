//! A2S, the queries of Source and GoldSrc servers (docs/protocols.md): INFO,
//! then PLAYER. The server may reply to each with a challenge first.
//!
//! This file is the exchange; [`info`] and [`players`] decode the messages, and
//! [`fragments`] reassembles them.
//!
//! A2S replies carry no nonce. An attacker who sees or guesses the challenge and our
//! port can spoof a reply.

pub mod fragments;
mod info;
mod players;

use self::fragments::{Reassembler, Reassembly, SPLIT_HEADER};
use self::info::Info;
use self::players::PlayerReply;
use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step, lacks_few_entries};
use super::text::{player_name, points, short_text};
use crate::games::{self, Lists};
use crate::model::{Completeness, Snapshot};

const SINGLE_HEADER: &[u8; 4] = b"\xff\xff\xff\xff";

/// Maximum number of challenges followed in one scan. Two are usual; resends cause a
/// third and fourth. Without a limit a server could make clqd send packets forever.
const CHALLENGES_MAX: u32 = 6;

/// The name that CS:GO sends instead of a hidden player list.
const HIDDEN_LIST_NAME: &[u8] = b"Max Players";

/// An INFO and a PLAYER query.
#[derive(Clone, Debug, Default)]
pub struct A2sQuery {
    challenge: Option<[u8; 4]>,
    challenges: u32,
    info: Option<Info>,
    fragments: Reassembler,
    trusts_count: bool,
    announced_enough: Option<bool>,
    /// Arrival of the last valid datagram, Unix ms.
    last_received_ms: i64,
}

impl A2sQuery {
    pub fn new() -> Self {
        A2sQuery::default()
    }

    /// Handles a complete message, without its four-byte header.
    fn on_message(&mut self, t_ms: i64, message: &[u8]) -> Step {
        let step = match (message.split_first(), &self.info) {
            (Some((b'A', challenge)), _) => self.on_challenge(challenge),
            (Some((b'I', _)), None) => self.on_info(t_ms, info::decode(message)),
            (Some((b'm', _)), None) => self.on_info(t_ms, info::decode_goldsrc(message)),
            // Old GoldSrc servers reply to one INFO in both formats; the newer one has
            // more fields.
            (Some((b'I', _)), Some(Info { is_goldsrc_format: true, .. })) => match info::decode(message) {
                Ok(info) => {
                    self.info = Some(Info { is_goldsrc_format: true, ..info });
                    Step::Wait
                }
                Err(reason) => Step::Ignore(reason),
            },
            (Some((b'I' | b'm', _)), Some(_)) | (Some((b'D', _)), None) => {
                Step::Ignore(IgnoreReason::UnexpectedMessage)
            }
            (Some((b'D', body)), Some(info)) => match players::decode(body) {
                Ok(roster) => {
                    self.announced_enough = Some(roster.entries.len() <= info.players as usize);
                    Step::Done(Box::new(snapshot(t_ms, info, Some(roster))))
                }
                Err(reason) => Step::Ignore(reason),
            },
            _ => Step::Ignore(IgnoreReason::NotAReply),
        };
        if !matches!(step, Step::Ignore(_)) {
            self.last_received_ms = t_ms;
        }
        step
    }

    fn on_challenge(&mut self, challenge: &[u8]) -> Step {
        let Some(challenge) = challenge.first_chunk::<4>() else {
            return Step::Ignore(IgnoreReason::Malformed);
        };
        if self.challenges >= CHALLENGES_MAX {
            return Step::Ignore(IgnoreReason::TooManyChallenges);
        }
        self.challenges += 1;
        self.challenge = Some(*challenge);
        Step::Send
    }

    fn on_info(&mut self, t_ms: i64, info: Result<Info, IgnoreReason>) -> Step {
        match info {
            // Its list is that of the game, whose server has it, too.
            Ok(info) if info.is_proxy => {
                let snapshot = snapshot(t_ms, &info, None);
                self.info = Some(info);
                Step::Done(Box::new(snapshot))
            }
            // Only with a challenge: it authenticates the reply, as it does a list.
            Ok(info) if info.players == 0 && self.trusts_count && self.challenge.is_some() => {
                let snapshot = snapshot(t_ms, &info, Some(PlayerReply::default()));
                self.info = Some(info);
                Step::Done(Box::new(snapshot))
            }
            Ok(info) => {
                self.info = Some(info);
                Step::Send
            }
            Err(reason) => Step::Ignore(reason),
        }
    }
}

impl Exchange for A2sQuery {
    fn request(&self) -> Vec<u8> {
        if self.info.is_none() {
            let challenge = self.challenge.as_ref().map_or(&[][..], |c| c);
            return [SINGLE_HEADER, &b"TSource Engine Query\0"[..], challenge].concat();
        }
        [SINGLE_HEADER, &b"U"[..], &self.challenge.unwrap_or(*SINGLE_HEADER)].concat()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        if let Some(message) = bytes.strip_prefix(SINGLE_HEADER) {
            return self.on_message(t_ms, message);
        }
        let Some(fragment) = bytes.strip_prefix(SPLIT_HEADER) else {
            return Step::Ignore(IgnoreReason::NotAReply);
        };
        match self.fragments.add(fragment) {
            Ok(Reassembly::Waiting) => {
                self.last_received_ms = t_ms;
                Step::Wait
            }
            Ok(Reassembly::Complete(whole)) => match whole.strip_prefix(SINGLE_HEADER) {
                Some(message) => self.on_message(t_ms, message),
                None => Step::Ignore(IgnoreReason::Malformed),
            },
            Err(reason) if self.fragments.is_exhausted() => Step::Fail(reason),
            Err(reason) => Step::Ignore(reason),
        }
    }

    fn trust_count(&mut self) {
        self.trusts_count = true;
    }

    fn announced_enough(&self) -> Option<bool> {
        self.announced_enough
    }

    fn authentication(&self) -> Authentication {
        // Old servers require none.
        match (&self.info, self.challenge) {
            (Some(_), None) => Authentication::Address,
            _ => Authentication::Challenge,
        }
    }

    fn details(&self, _last_datagram: &[u8], _level: DetailLevel) -> Details {
        let Some(info) = &self.info else { return Details::default() };
        let tags = short_text(&info.tags);
        Details {
            game_type: Some(short_text(&info.game)),
            version: Some(short_text(&info.version)).filter(|version| !version.is_empty()),
            password: Some(info.password),
            secure: Some(info.secure),
            tags: tags.split(',').filter(|tag| !tag.is_empty()).map(str::to_owned).collect(),
            player_teams: Vec::new(),
            rules: Vec::new(),
        }
    }

    fn partial_snapshot(&mut self) -> Option<Snapshot> {
        let info = self.info.as_ref()?;
        Some(snapshot(self.last_received_ms, info, None))
    }
}

fn snapshot(t_ms: i64, info: &Info, roster: Option<PlayerReply>) -> Snapshot {
    let (players, whole) = match roster {
        None => (Vec::new(), false),
        Some(roster) => {
            let listed = roster.entries.len();
            let is_hidden = matches!(&roster.entries[..], [only] if only.name == HIDDEN_LIST_NAME);
            // PLAYER has no bot flag; if INFO reports only bots, all entries are bots.
            let bot = info.bots > 0 && info.bots >= info.players && listed <= info.bots as usize;
            // Games without scores send 0 for everybody, and some no names either.
            let has_points = games::by_app(info.app).is_none_or(|game| game.lists == Lists::Points);
            let players = roster.entries.into_iter().map(|entry| crate::model::Player {
                points: (has_points && !entry.name.is_empty()).then(|| points(entry.score.into())),
                name: player_name(entry.name),
                ping: None,
                connected_ms: connected_ms(entry.seconds),
                bot,
                spectator: false,
            });
            let players: Vec<_> = if is_hidden { Vec::new() } else { players.collect() };
            // Many servers do not list bots. A list without the players is hidden, too.
            let is_hidden = is_hidden || (listed == 0 && info.players > info.bots);
            let whole = roster.announced as usize <= listed && lacks_few_entries(listed, info.players);
            (players, whole && !is_hidden)
        }
    };
    let named = |bytes: &[u8]| Some(short_text(bytes)).filter(|text| !text.trim().is_empty());
    let by_app = || games::by_app(info.app).map(|game| game.values.first().unwrap_or(&game.id).clone());
    let game = named(&info.folder).or_else(by_app).or_else(|| named(&info.game));
    Snapshot {
        t_ms,
        game: game.unwrap_or_else(|| "source".to_owned()),
        map: short_text(&info.map),
        hostname: short_text(&info.hostname),
        slots: info.slots,
        players,
        completeness: if whole { Completeness::Full } else { Completeness::Partial },
        count: Some(info.players),
        bots: Some(info.bots),
    }
}

/// The connection time as sent. A server with a wrong clock sends an invalid duration.
#[cfg_attr(
    not(test),
    expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float saturates, and is not negative"
    )
)]
fn connected_ms(seconds: f32) -> Option<u64> {
    (seconds.is_finite() && seconds >= 0.0).then_some((f64::from(seconds) * 1_000.0) as u64)
}

#[cfg(test)]
mod tests;
