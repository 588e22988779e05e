//! The version of the layout of stored records.

/// The first byte of every sled record. A store with an older version is migrated when it
/// is opened (`migrate`). A store with a newer version is rejected.
pub(super) const VERSION: u8 = 9;

/// The oldest version that can be migrated.
pub(super) const OLDEST: u8 = VERSION;
