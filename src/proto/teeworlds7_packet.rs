//! Packets of Teeworlds 0.7 outside a connection, of servers and masters. First both sides exchange
//! tokens, so a forged request cannot cause a long reply to a third party. Then every packet begins
//! with both tokens.
//!
//! | packet | bytes |
//! |---|---|
//! | token | `04 00 00`, token of the receiver, `05`, token of the sender |
//! | message | `21`, token of the receiver, token of the sender, content |

use super::exchange::IgnoreReason;
use super::fields::take;
use super::nonce::Nonce;

/// A control message: flags, acknowledged number, count of chunks.
const CONTROL: [u8; 3] = [0x04, 0x00, 0x00];
const TOKEN_MESSAGE: u8 = 0x05;
const UNKNOWN_TOKEN: [u8; 4] = [0xff; 4];
/// A datagram without a connection, version 1.
const CONNECTIONLESS: u8 = 0x21;

/// A shorter request for a token is ignored, because it would be shorter than its reply.
const TOKEN_REQUEST_PAYLOAD_BYTES: usize = 512;

/// The tokens of both sides.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    own: [u8; 4],
    /// `None`: it must be requested.
    peer: Option<[u8; 4]>,
}

/// A packet with our token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packet<'a> {
    /// The peer's token, which is kept.
    Token,
    /// The content after the tokens.
    Message(&'a [u8]),
}

impl Tokens {
    pub fn new(nonce: Nonce) -> Tokens {
        let own = nonce.bytes4();
        Tokens { own: if own == UNKNOWN_TOKEN { [0; 4] } else { own }, peer: None }
    }

    /// Our token.
    pub fn own(&self) -> [u8; 4] {
        self.own
    }

    /// The packet to send now: the request for the peer's token, or the message if it is known.
    pub fn packet(&self, message: &[u8]) -> Vec<u8> {
        match &self.peer {
            None => {
                let mut payload = [&[TOKEN_MESSAGE][..], &self.own].concat();
                payload.resize(TOKEN_REQUEST_PAYLOAD_BYTES, 0);
                [&CONTROL[..], &UNKNOWN_TOKEN, &payload].concat()
            }
            Some(peer) => [&[CONNECTIONLESS][..], peer, &self.own, message].concat(),
        }
    }

    /// Takes a datagram of the peer. Error: it has no or another token, or it is not expected now.
    pub fn handle<'a>(&mut self, datagram: &'a [u8]) -> Result<Packet<'a>, IgnoreReason> {
        match datagram.strip_prefix(&CONTROL) {
            Some(body) => self.on_token(body).map(|()| Packet::Token),
            None => self.message(datagram).map(Packet::Message),
        }
    }

    /// The content of a message.
    pub fn message<'a>(&self, datagram: &'a [u8]) -> Result<&'a [u8], IgnoreReason> {
        let mut rest = datagram.strip_prefix(&[CONNECTIONLESS]).ok_or(IgnoreReason::NotAReply)?;
        if self.peer.is_none() {
            return Err(IgnoreReason::UnexpectedMessage);
        }
        if take(&mut rest, 4)? != self.own {
            return Err(IgnoreReason::WrongNonce);
        }
        // The peer may have changed its token, so this one is not compared.
        take(&mut rest, 4)?;
        Ok(rest)
    }

    fn on_token(&mut self, mut body: &[u8]) -> Result<(), IgnoreReason> {
        if take(&mut body, 4)? != self.own {
            return Err(IgnoreReason::WrongNonce);
        }
        if take(&mut body, 1)? != [TOKEN_MESSAGE] {
            return Err(IgnoreReason::UnexpectedMessage);
        }
        let token = body.first_chunk::<4>().ok_or(IgnoreReason::Malformed)?;
        if self.peer.is_some() {
            return Err(IgnoreReason::UnexpectedMessage);
        }
        self.peer = Some(*token);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &[u8] = b"\x04\0\0wxyz\x05PEER";

    fn tokens() -> Tokens {
        Tokens::new(Nonce(u64::from(u32::from_be_bytes(*b"wxyz"))))
    }

    #[test]
    fn message_is_sent_after_the_token_of_the_peer() {
        let mut tokens = tokens();
        let request = tokens.packet(b"message");
        assert_eq!(request[..12], *b"\x04\0\0\xff\xff\xff\xff\x05wxyz");
        assert_eq!(request.len(), 7 + TOKEN_REQUEST_PAYLOAD_BYTES);
        assert!(request[12..].iter().all(|&b| b == 0));
        let message = b"\x21wxyzPEERreply";
        assert_eq!(tokens.handle(message), Err(IgnoreReason::UnexpectedMessage));
        assert_eq!(tokens.handle(TOKEN), Ok(Packet::Token));
        assert_eq!(tokens.handle(TOKEN), Err(IgnoreReason::UnexpectedMessage));
        assert_eq!(tokens.packet(b"message"), b"\x21PEERwxyzmessage");
        assert_eq!(tokens.handle(message), Ok(Packet::Message(b"reply")));
        assert_eq!(tokens.handle(b"\x21wxyzPEE2"), Ok(Packet::Message(b"")), "another token of the peer");
    }

    #[test]
    fn packet_without_our_token_is_refused() {
        let mut tokens = tokens();
        assert_eq!(tokens.handle(b"\x04\0\0wxyZ\x05PEER"), Err(IgnoreReason::WrongNonce));
        assert_eq!(tokens.handle(b"\x04\0\0wxyz\x04PEER"), Err(IgnoreReason::UnexpectedMessage));
        for length in 0..TOKEN.len() {
            assert!(tokens.handle(&TOKEN[..length]).is_err(), "{length}");
        }
        assert_eq!(tokens.handle(TOKEN), Ok(Packet::Token));
        assert_eq!(tokens.handle(b"\x21wxyZPEERreply"), Err(IgnoreReason::WrongNonce));
        assert_eq!(tokens.handle(b"\x21PEERwxyzreply"), Err(IgnoreReason::WrongNonce));
        for length in 0..9 {
            assert!(tokens.handle(&b"\x21wxyzPEER"[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn own_token_is_never_the_unknown_one() {
        assert_eq!(Tokens::new(Nonce(u64::MAX)).own(), [0; 4]);
    }
}
