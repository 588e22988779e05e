//! Whether the system clock is synchronised, as reported by the kernel and systemd.

use std::path::Path;

/// systemd-timesyncd creates this file when it has set the clock since the boot. Inside a
/// container it may be the only visible source.
const TIMESYNCD: &str = "/run/systemd/timesync/synchronized";

/// `STA_UNSYNC` of `<linux/timex.h>`: set while no daemon disciplines the clock, and after it
/// was set by hand.
const STA_UNSYNC: i32 = 0x40;

/// From this maximum error on the kernel considers the clock not synchronised, us. A clock with
/// a smaller error is disciplined, even if `STA_UNSYNC` is set so that the kernel does not
/// write the hardware clock: `timedatectl` uses only this criterion.
const MAX_ERROR_US: i64 = 16_000_000;

/// `None`: the kernel denies the call, and systemd does not report synchronisation.
pub(super) fn synchronised() -> Option<bool> {
    let mut timex = rtime_clock::adjtime::Timex::new();
    match rtime_clock::adjtime::adjtimex(&mut timex) {
        Ok(_) => Some(timex.0.status & STA_UNSYNC == 0 || timex.0.maxerror < MAX_ERROR_US),
        Err(_) => Path::new(TIMESYNCD).exists().then_some(true),
    }
}
