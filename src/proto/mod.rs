//! Wire formats: bytes to values and back, one file per protocol family.
