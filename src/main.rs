//! The `clqd` binary; everything is in the library.

fn main() {}
