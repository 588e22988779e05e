//! The hash that recognises a forgotten name without storing it: SHA-256 of its game, a zero
//! byte and the normalised name.
//!
//! A hash does not protect a name that is easily guessed: a guess can be checked against it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::name::{ColourCodes, normalise_name};

/// Written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NameHash([u8; 32]);

impl NameHash {
    /// The hash of a normalised name in a game; `game` is the name that servers report.
    pub fn of(game: &str, name: &str) -> NameHash {
        let hasher = Sha256::new().chain_update(game).chain_update([0]).chain_update(name);
        NameHash(hasher.finalize().into())
    }

    /// The hash of a name as a server wrote it. `None`: the normalised string is empty, so it is
    /// not a name. The engine computes this hash for the names of each new scan.
    pub fn of_listed(game: &str, listed: &str, codes: ColourCodes) -> Option<NameHash> {
        let name = normalise_name(listed, codes);
        (!name.is_empty()).then(|| NameHash::of(game, &name))
    }

    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub fn from_bytes(bytes: [u8; 32]) -> NameHash {
        NameHash(bytes)
    }
}

impl fmt::Display for NameHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for NameHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NameHash({self})")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the hash of a name: expected 64 hexadecimal digits, as `clqd player forgotten` lists them")]
pub struct NameHashError(String);

impl FromStr for NameHash {
    type Err = NameHashError;

    fn from_str(text: &str) -> Result<NameHash, NameHashError> {
        let bad = || NameHashError(text.chars().take(80).collect());
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(bad());
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| bad())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| bad())?;
        }
        Ok(NameHash(bytes))
    }
}

impl TryFrom<String> for NameHash {
    type Error = NameHashError;
    fn try_from(text: String) -> Result<NameHash, NameHashError> {
        text.parse()
    }
}

impl From<NameHash> for String {
    fn from(hash: NameHash) -> String {
        hash.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf 'baseq3\0Visor' | sha256sum`
    #[test]
    fn name_hash_equals_sha256sum() {
        let hash = NameHash::of("baseq3", "Visor");
        assert_eq!(hash.to_string(), "929bda7af60cd66eb9519862ecfe6a5eb8efe0f5700988ce5f917002f62f10ec");
        assert_eq!(hash.to_string().to_uppercase().parse(), Ok(hash));
        assert_ne!(hash, NameHash::of("baseq", "3Visor"));
        for bad in ["", "abc", &"g".repeat(64), &"é".repeat(32), &"0".repeat(65), &"+1".repeat(32)] {
            assert!(bad.parse::<NameHash>().is_err(), "{bad}");
        }
    }
}
