//! Tokens, with which programs on other machines send requests of admins.
//!
//! The configuration has the SHA-256 of each token, so that its file may be read. Tokens are random, so that they cannot
//! be guessed from it. They are used only on loopback and with TLS.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use moka::future::Cache;
use sha2::{Digest, Sha256};

use super::problem::{Problem, ProblemKind};
use crate::api::{Access, Permission};

/// How many wrong tokens an address may send within [`FAILURES_AGE`].
const FAILURES_MAX: u32 = 10;

const FAILURES_AGE: Duration = Duration::from_secs(60);

/// Addresses whose wrong tokens are counted; a MB.
const ADDRESSES_MAX: u64 = 10_000;

/// Begins each token, so that a search for leaked secrets finds it.
const PREFIX: &str = "clqd_";

/// Random bytes of a token.
const RANDOM_BYTES: usize = 32;

/// A token: its hash, and what it permits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub name: String,
    pub hash: TokenHash,
    pub may: Vec<Permission>,
}

/// The SHA-256 of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenHash([u8; 32]);

/// Who sends a request of an admin.
#[derive(Clone, Debug)]
pub(super) enum Caller {
    /// Over the control socket.
    Local,
    Token(Arc<Token>),
}

/// The tokens that are valid, and failed attempts.
pub(super) struct Tokens {
    tokens: Vec<Arc<Token>>,
    failures: Cache<IpAddr, Arc<AtomicU32>>,
}

impl TokenHash {
    pub fn of(token: &str) -> TokenHash {
        TokenHash(Sha256::digest(token.as_bytes()).into())
    }

    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<TokenHash> {
        let digits = text.as_bytes();
        let is_hex = digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit);
        let byte = |n: usize| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).expect("hexadecimal digits");
        is_hex.then(|| TokenHash(std::array::from_fn(byte)))
    }
}

impl std::fmt::Display for TokenHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A new token. Only its hash is kept.
pub fn new_token() -> Result<String, getrandom::Error> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random)?;
    Ok(format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(random)))
}

impl Tokens {
    pub fn new(tokens: &[Token]) -> Tokens {
        Tokens {
            tokens: tokens.iter().cloned().map(Arc::new).collect(),
            failures: Cache::builder().max_capacity(ADDRESSES_MAX).time_to_live(FAILURES_AGE).build(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The token of a request; `None`: it has none. `is_private`: nobody can read the connection.
    pub async fn caller(
        &self,
        headers: &HeaderMap,
        client: IpAddr,
        is_private: bool,
    ) -> Result<Option<Caller>, Problem> {
        let Some(token) = headers.get(AUTHORIZATION).and_then(bearer).filter(|_| !self.is_empty()) else {
            return Ok(None);
        };
        let hash = TokenHash::of(token);
        // Others may have the same address: their wrong tokens do not lock it out. It has 256 random bits.
        match self.tokens.iter().find(|known| known.hash == hash) {
            Some(token) if is_private => return Ok(Some(Caller::Token(token.clone()))),
            Some(token) => {
                // Whoever reads the connection has it now.
                tracing::warn!(%client, token = token.name, "a token was sent without TLS; replace it: clqd token new");
                let detail = "tokens are accepted only with TLS (web.tls_cert) or on loopback; this one may have been read \
                              by others, so replace it";
                return Err(Problem::new(ProblemKind::Forbidden, detail));
            }
            None => {}
        }
        let failures = self.failures.get_with(client, async { Arc::default() }).await;
        if failures.load(Ordering::Relaxed) >= FAILURES_MAX {
            let detail = format!("this address has sent {FAILURES_MAX} wrong tokens; try again in a minute");
            let retry_after_s = Some(FAILURES_AGE.as_secs());
            return Err(Problem { retry_after_s, ..Problem::new(ProblemKind::TooManyRequests, detail) });
        }
        let failed = failures.fetch_add(1, Ordering::Relaxed) + 1;
        if failed == 1 || failed == FAILURES_MAX {
            tracing::warn!(%client, failed, "a request with a wrong token was refused");
        }
        Err(Problem::new(ProblemKind::Unauthorized, "the token is not one of [[web.token]]"))
    }
}

/// The token in a header, such as `Bearer clqd_...`.
fn bearer(header: &HeaderValue) -> Option<&str> {
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl Caller {
    /// Whether the caller may send a request of this kind.
    pub fn check(&self, access: Access) -> Result<(), Problem> {
        let Caller::Token(token) = self else { return Ok(()) };
        let refuse = |why: String| Err(Problem::new(ProblemKind::Forbidden, why));
        let needed = match access {
            Access::Read => Permission::Read,
            Access::Change(permission) => permission,
            Access::Machine => return refuse("this request is possible only over the control socket".to_owned()),
        };
        if token.may.contains(&needed) {
            return Ok(());
        }
        let names: Vec<&str> = token.may.iter().map(|permission| permission.name()).collect();
        refuse(format!("the token {:?} may {}; this needs {}", token.name, names.join(", "), needed.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

    fn headers(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(value).expect("a header"))])
    }

    fn kind<T>(result: Result<T, Problem>) -> Option<ProblemKind> {
        result.err().map(|problem| problem.kind)
    }

    #[test]
    fn hash_is_that_of_sha256sum() {
        let text = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        assert_eq!(TokenHash::of("test").to_string(), text);
        assert_eq!(TokenHash::parse(text), Some(TokenHash::of("test")));
        assert_eq!(TokenHash::parse(&text.to_uppercase()), Some(TokenHash::of("test")));
        for bad in ["", &text[1..], &format!("{text}0"), &format!("+{}", &text[1..]), &"é".repeat(32)] {
            assert_eq!(TokenHash::parse(bad), None, "{bad}");
        }
        let [first, second] = [new_token().expect("random"), new_token().expect("random")];
        assert!(first.starts_with(PREFIX) && first.len() == PREFIX.len() + 43 && first != second, "{first}");
    }

    #[tokio::test]
    async fn only_known_tokens_are_accepted_and_wrong_ones_are_limited() {
        let (token, other) = (new_token().expect("random"), IpAddr::from([192, 0, 2, 8]));
        let known = Token { name: "ops".into(), hash: TokenHash::of(&token), may: vec![Permission::Rescan] };
        let tokens = Tokens::new(std::slice::from_ref(&known));
        let right = headers(&format!("bearer {token}"));
        assert!(matches!(tokens.caller(&HeaderMap::new(), CLIENT, true).await, Ok(None)));
        assert!(matches!(tokens.caller(&headers("Basic YTpi"), CLIENT, true).await, Ok(None)));
        assert!(matches!(tokens.caller(&right, CLIENT, true).await, Ok(Some(Caller::Token(found))) if *found == known));
        assert_eq!(kind(tokens.caller(&right, CLIENT, false).await), Some(ProblemKind::Forbidden));
        for _ in 0..FAILURES_MAX {
            let wrong = headers(&format!("Bearer {token}x"));
            assert_eq!(kind(tokens.caller(&wrong, CLIENT, true).await), Some(ProblemKind::Unauthorized));
        }
        let wrong = headers(&format!("Bearer {token}x"));
        for is_private in [true, false] {
            let refused = tokens.caller(&wrong, CLIENT, is_private).await;
            assert_eq!(kind(refused), Some(ProblemKind::TooManyRequests));
        }
        assert_eq!(kind(tokens.caller(&wrong, other, true).await), Some(ProblemKind::Unauthorized), "another address");
        assert!(matches!(tokens.caller(&right, CLIENT, true).await, Ok(Some(_))), "others have the address, too");
    }

    #[test]
    fn token_permits_only_what_it_names() {
        let token =
            Token { name: "ops".into(), hash: TokenHash::of("x"), may: vec![Permission::Read, Permission::Rescan] };
        let caller = Caller::Token(Arc::new(token));
        assert_eq!(kind(caller.check(Access::Read)), None);
        assert_eq!(kind(caller.check(Access::Change(Permission::Rescan))), None);
        let refused = caller.check(Access::Change(Permission::Servers)).expect_err("not permitted");
        assert_eq!(refused.detail, "the token \"ops\" may read, rescan; this needs servers");
        assert_eq!(kind(caller.check(Access::Machine)), Some(ProblemKind::Forbidden));
        assert_eq!(kind(Caller::Local.check(Access::Machine)), None);
    }
}
