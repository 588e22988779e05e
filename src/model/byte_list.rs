//! Lists of bytes for serde, in one piece: byte by byte, as `Vec<u8>` has it, a series takes 5 us. The encoding is the same.

use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserializer, Serializer};

pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    deserializer.deserialize_byte_buf(BytesVisitor)
}

struct BytesVisitor;

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Vec<u8>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = values.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Bytes(#[serde(with = "super")] Vec<u8>);

    #[test]
    fn encoding_is_that_of_a_list() {
        let list: Vec<u8> = (0..=255).cycle().take(700).collect();
        let bytes = Bytes(list.clone());
        let packed = postcard::to_stdvec(&bytes).unwrap();
        assert_eq!(packed, postcard::to_stdvec(&list).unwrap());
        assert_eq!(postcard::from_bytes::<Bytes>(&packed).unwrap(), bytes);
        assert!(postcard::from_bytes::<Bytes>(&packed[..600]).is_err());
        let json = serde_json::to_string(&bytes).unwrap();
        assert_eq!((&json, serde_json::from_str(&json).unwrap()), (&serde_json::to_string(&list).unwrap(), bytes));
    }
}
