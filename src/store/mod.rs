//! Hot state in sled.
