//! Whether the system's clock is synchronised, as the kernel and systemd know it.

use std::path::Path;

/// systemd-timesyncd makes this file when it has set the clock since the boot. Inside a
/// container it may be all that is visible.
const TIMESYNCD: &str = "/run/systemd/timesync/synchronized";

/// `STA_UNSYNC` of `<linux/timex.h>`: set while nobody keeps the clock right, and by
/// everyone who sets it by hand.
const STA_UNSYNC: i32 = 0x40;

/// From this largest error on the kernel takes the clock for not synchronised, us.
/// Below it the clock is kept, even where `STA_UNSYNC` is set so that the kernel does
/// not write the hardware's clock: `timedatectl` asks for this alone.
const MAX_ERROR_US: i64 = 16_000_000;

/// `None`: the kernel does not let us ask, and systemd does not say that it is.
pub(super) fn synchronised() -> Option<bool> {
    let mut timex = rtime_clock::adjtime::Timex::new();
    match rtime_clock::adjtime::adjtimex(&mut timex) {
        Ok(_) => Some(timex.0.status & STA_UNSYNC == 0 || timex.0.maxerror < MAX_ERROR_US),
        Err(_) => Path::new(TIMESYNCD).exists().then_some(true),
    }
}
